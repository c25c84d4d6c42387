//! One-way delays of the data of connections that a proxy splits: from the first time that the sender's host sends a byte to
//! the time at which it arrives at the receiver. Both legs have the same addresses, and their sequence numbers count the
//! same bytes from different starts.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use units::{Span, Time};
use wire::{Flags, Headers, Segment, Transport};

/// Directions of connections that are followed; later ones have no such delays.
const MOST: usize = 8_192;
/// Packets on their way in each.
const MOST_SENT: usize = 1 << 20;
/// Bytes behind the furthest one that arrived for which a late retransmission still finds its time.
const LATE: u64 = 8 << 20;

/// The data on its way from one host through the proxy to another.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    directions: BTreeMap<[SocketAddr; 2], Direction>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// The first sequence numbers: of the leg that begins at the sender, and of the one that ends at the receiver.
    starts: [Option<u32>; 2],
    /// Where what was sent at a time ends, counted from the first byte.
    sent: VecDeque<(u64, Time)>,
    arrived: u64,
}

impl Passage {
    /// A packet of a host enters the network on its way to the proxy.
    pub(crate) fn entered(&mut self, header: &Headers, now: Time) {
        let Some((direction, segment)) = self.direction(header) else { return };
        direction.open(0, segment);
        let last = direction.sent.back().map_or(0, |(end, _)| *end);
        if let Some(end) = direction.end(0, segment, header.payload_len, last)
            && end > last
            && direction.sent.len() < MOST_SENT
        {
            direction.sent.push_back((end, now));
        }
    }

    /// A packet of the proxy arrives at a host. Returns the delay of its data, if its sender's time is known.
    pub(crate) fn arrived(&mut self, header: &Headers, now: Time) -> Option<Span> {
        let (direction, segment) = self.direction(header)?;
        direction.open(1, segment);
        let (end, is_last) =
            (direction.end(1, segment, header.payload_len, direction.arrived), segment.flags.has(Flags::FIN));
        let delay = end.and_then(|end| direction.arrive(end, now));
        if is_last {
            self.directions.remove(&key(header));
        }
        delay
    }

    /// Returns the direction of a packet, which a SYN begins and a reset ends.
    fn direction<'a, 'b>(&'a mut self, header: &'b Headers) -> Option<(&'a mut Direction, &'b Segment)> {
        let Transport::Tcp(segment) = &header.transport else { return None };
        let key = key(header);
        if segment.flags.has(Flags::RST) {
            self.directions.remove(&key);
        } else if segment.flags.has(Flags::SYN) && self.directions.len() < MOST {
            self.directions.entry(key).or_default();
        }
        Some((self.directions.get_mut(&key)?, segment))
    }
}

/// The sender and the receiver of a packet.
fn key(header: &Headers) -> [SocketAddr; 2] {
    let source = SocketAddr::new(header.source, header.source_port);
    [source, SocketAddr::new(header.destination, header.destination_port)]
}

impl Direction {
    /// Returns the delay of the data that ends at `end` and arrives now, if its sender's time is known.
    fn arrive(&mut self, end: u64, now: Time) -> Option<Span> {
        self.arrived = self.arrived.max(end);
        let at = self.sent.partition_point(|(sent, _)| *sent < end);
        let delay = self.sent.get(at).map(|(_, sent)| now.saturating_since(*sent));
        while self.sent.front().is_some_and(|(sent, _)| sent + LATE < self.arrived) {
            self.sent.pop_front();
        }
        delay
    }

    /// Begins anew with the SYN of a leg, unless it is the same once more.
    fn open(&mut self, leg: usize, segment: &Segment) {
        if segment.flags.has(Flags::SYN) && self.starts[leg] != Some(segment.seq) {
            self.starts[leg] = Some(segment.seq);
            self.sent.clear();
            self.arrived = 0;
        }
    }

    /// Returns where the data of a segment ends, counted from the first byte; `near` is about there.
    fn end(&self, leg: usize, segment: &Segment, len: u32, near: u64) -> Option<u64> {
        if len == 0 || segment.flags.has(Flags::SYN) {
            return None;
        }
        let low = segment.seq.wrapping_sub(self.starts[leg]?).wrapping_sub(1).wrapping_add(len);
        near.checked_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Options, segment_headers};

    fn header(from_server: bool, seq: u32, flags: Flags, len: u32) -> Headers {
        let (server, ue) = (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 1, 1], 4000)));
        let (from, to) = if from_server { (server, ue) } else { (ue, server) };
        let segment =
            Segment { seq, ack: 1, window: 100, len: 0, flags, timestamps: None, options: Options::default() };
        let packet = segment_headers(&segment, from, to, 0, &[]).expect("it is valid");
        Headers { payload_len: len, ..Headers::parse(&packet).expect("it is valid") }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_delay_of_data_is_counted_from_the_senders_host() {
        let mut passage = Passage::default();
        // The proxy accepts before the server does, and sequence numbers wrap around.
        assert_eq!(passage.arrived(&header(true, u32::MAX - 500, Flags::SYN, 0), ms(1)), None);
        passage.entered(&header(true, 7_000, Flags::SYN, 0), ms(2));
        for n in 0..3 {
            passage.entered(&header(true, 7_001 + n * 1000, Flags::ACK, 1000), ms(10 + u64::from(n)));
        }
        // A retransmission does not count, and the proxy's segments have other bounds.
        passage.entered(&header(true, 7_001, Flags::ACK, 1000), ms(30));
        let mut arrive = |offset: u32, len, at| {
            passage.arrived(&header(true, (u32::MAX - 499).wrapping_add(offset), Flags::ACK, len), ms(at))
        };
        assert_eq!(arrive(0, 1500, 50), Some(Span::from_millis(39)), "its last byte was sent at 11 ms");
        assert_eq!(arrive(2000, 1000, 52), Some(Span::from_millis(40)));
        assert_eq!(arrive(1500, 500, 60), Some(Span::from_millis(49)), "a retransmission of the proxy");
        assert_eq!(arrive(3000, 10, 61), None, "nobody has sent that");
        // Acknowledgements carry nothing.
        assert_eq!(passage.arrived(&header(false, 1, Flags::ACK, 0), ms(62)), None);
        // The same addresses again.
        passage.arrived(&header(true, 5, Flags::SYN, 0), ms(100));
        passage.entered(&header(true, 9, Flags::SYN, 0), ms(100));
        passage.entered(&header(true, 10, Flags::ACK, 100), ms(101));
        assert_eq!(passage.arrived(&header(true, 6, Flags::ACK, 100), ms(111)), Some(Span::from_millis(10)));
    }
}
