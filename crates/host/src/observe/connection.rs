//! What is counted of a connection: both directions between two ends, whatever the protocol.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use record::Distribution;
use units::{Span, Time};

use super::header::{Echo, Header, Tcp, Transport, bits, hash};
use super::seen::Sampled;
use super::tcp::{Heard, Sent, Stream};

/// Echo requests of a pinger that can be unanswered at a time.
const MOST_ECHOES: usize = 256;

/// The two ends of a connection, the lower first, so that both directions have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) protocol: u8,
    v6: bool,
    low: End,
    high: End,
}

/// An address as a number, and a port; for echoes, which have none, the pinger's identifier.
type End = (u128, u16);

impl Ends {
    /// Those of a packet's connection, and its direction: 0 if it goes from the lower end to the higher, else 1.
    #[inline]
    pub(super) fn of(header: &Header) -> (Ends, usize) {
        let ports = match header.transport {
            Transport::Echo(Echo { id, .. }) => (id, id),
            _ => (header.source_port, header.destination_port),
        };
        let (from, to) = ((bits(header.source), ports.0), (bits(header.destination), ports.1));
        let (protocol, v6) = (header.protocol, header.source.is_ipv6());
        if from <= to {
            (Ends { protocol, v6, low: from, high: to }, 0)
        } else {
            (Ends { protocol, v6, low: to, high: from }, 1)
        }
    }

    /// The same for both directions.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let ports = u64::from(self.low.1) << 16 | u64::from(self.high.1);
        hash(self.low.0, self.high.0, ports << 16 | u64::from(self.protocol) << 8 | u64::from(self.v6))
    }
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) packets: Packets,
    /// IP bytes that arrived.
    pub(super) arrived: u64,
    /// Payload that arrived and, of TCP, is in order.
    pub(super) delivered: u64,
    /// Packets with payload that were sent.
    pub(super) segments: u64,
    pub(super) retransmitted: u64,
    pub(super) dup_acks: u64,
    pub(super) marked: u64,
    /// The integral of the bytes in flight until the connection is over, in byte-seconds.
    pub(super) flight_area: f64,
}

/// Where packets that entered the network are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// All that entered.
    pub entered: u64,
    /// Of these, those that arrived.
    pub arrived: u64,
    /// Of these, those that were lost.
    pub lost: u64,
}

impl Packets {
    /// Those that are still in the network.
    pub fn inside(&self) -> u64 {
        self.entered - self.arrived - self.lost
    }
}

impl std::iter::Sum for Packets {
    fn sum<I: Iterator<Item = Packets>>(all: I) -> Packets {
        all.fold(Packets::default(), |sum, one| Packets {
            entered: sum.entered + one.entered,
            arrived: sum.arrived + one.arrived,
            lost: sum.lost + one.lost,
        })
    }
}

impl Totals {
    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Totals) -> Totals {
        Totals {
            packets: Packets {
                entered: self.packets.entered - before.packets.entered,
                arrived: self.packets.arrived - before.packets.arrived,
                lost: self.packets.lost - before.packets.lost,
            },
            arrived: self.arrived - before.arrived,
            delivered: self.delivered - before.delivered,
            segments: self.segments - before.segments,
            retransmitted: self.retransmitted - before.retransmitted,
            dup_acks: self.dup_acks - before.dup_acks,
            marked: self.marked - before.marked,
            flight_area: self.flight_area - before.flight_area,
        }
    }
}

/// What a direction's packets mean.
#[derive(Debug)]
enum Kind {
    Tcp(Box<Stream>),
    /// Requests without a reply yet, each in the place that its sequence number says.
    Echo(Box<[Option<(u16, Time)>; MOST_ECHOES]>),
    Plain,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Way {
    /// The host that sends in it, once one has.
    pub(super) host: Option<usize>,
    /// Where its packets come from.
    pub(super) source: SocketAddr,
    kind: Kind,
    /// Payload that was sent, whatever became of it.
    pub(super) payload: u64,
    pub(super) totals: Totals,
    /// What had been counted at the end of the warm-up.
    pub(super) before: Totals,
    pub(super) rtts: Distribution,
    pub(super) owds: Distribution,
    pub(super) last_delivery: Option<Time>,
    pub(super) max_flight: u64,
    flight: u64,
    flight_since: Time,
    srtt: Option<Span>,
    /// The newest since the last sample.
    latest_rtt: Option<Span>,
    /// The one-way delays of the data packets since the last sample: their sum and number.
    sampled_owds: (Span, u64),
    sampled: u64,
    sampled_lost: u64,
    pub(super) samples: Vec<Sampled>,
}

impl Way {
    fn new(kind: Kind, source: SocketAddr) -> Way {
        Way {
            host: None,
            source,
            kind,
            payload: 0,
            totals: Totals::default(),
            before: Totals::default(),
            rtts: Distribution::new(),
            owds: Distribution::new(),
            last_delivery: None,
            max_flight: 0,
            flight: 0,
            flight_since: Time::ZERO,
            srtt: None,
            latest_rtt: None,
            sampled_owds: Default::default(),
            sampled: 0,
            sampled_lost: 0,
            samples: Vec::new(),
        }
    }

    #[inline]
    fn deliver(&mut self, bytes: u64, now: Time) {
        // Whoever leaves out sequence numbers and has them acknowledged has not sent them.
        let bytes = bytes.min(self.payload - self.totals.delivered);
        if bytes > 0 {
            self.totals.delivered += bytes;
            self.last_delivery = Some(now);
        }
    }

    /// The sender took a round-trip time sample; what it smooths (RFC 6298) is the `slowest` of its acknowledgement.
    #[inline]
    fn rtt(&mut self, rtt: Span, slowest: Span) {
        self.rtts.record(rtt);
        self.latest_rtt = Some(rtt);
        let smooth = |srtt: Span| Span::from_nanos(srtt.as_nanos() - srtt.as_nanos() / 8 + slowest.as_nanos() / 8);
        self.srtt = Some(self.srtt.map_or(slowest, smooth));
    }

    /// So many bytes are in flight now.
    #[inline]
    fn level(&mut self, flight: u64, now: Time) {
        if self.flight > 0 {
            let seconds = now.saturating_since(self.flight_since).as_secs_f64();
            self.totals.flight_area += self.flight as f64 * seconds;
        }
        (self.flight, self.flight_since) = (flight, now);
        self.max_flight = self.max_flight.max(flight);
    }

    /// Whether its sender said that no more will come, and it has all arrived.
    fn completed(&self, reset: bool) -> bool {
        let Kind::Tcp(stream) = &self.kind else { return false };
        stream.all_arrived() && (stream.ended() || reset && self.totals.delivered > 0)
    }

    /// Its state now, and the goodput of `interval`; `None` if it is nothing to tell of.
    fn sample(&mut self, now: Time, interval: Span, closed: bool) -> Option<Sampled> {
        let delivered = self.totals.delivered - std::mem::replace(&mut self.sampled, self.totals.delivered);
        let lost = self.totals.packets.lost - std::mem::replace(&mut self.sampled_lost, self.totals.packets.lost);
        let rtt = self.latest_rtt.take();
        let (owds, packets) = std::mem::take(&mut self.sampled_owds);
        let owd = (packets > 0).then(|| Span::from_nanos(owds.as_nanos() / packets));
        let (at, in_flight, srtt) = (now, self.flight, self.srtt);
        (self.payload > 0).then_some(Sampled { at, delivered, interval, in_flight, srtt, rtt, owd, lost, closed })
    }
}

/// A connection, or all those that are not followed singly.
#[derive(Debug)]
pub(super) struct Connection {
    /// `None` if it stands for many.
    pub(super) ends: Option<Ends>,
    pub(super) protocol: u8,
    /// When its first packet entered, and when its last entered or arrived.
    pub(super) start: Time,
    pub(super) last: Time,
    /// Which direction its first packet had.
    pub(super) opener: usize,
    reset: bool,
    /// When it was over: both directions had a FIN, or one an RST.
    pub(super) closed: Option<Time>,
    /// Whether it is in the list of those that are sampled.
    pub(super) active: bool,
    pub(super) ways: [Way; 2],
}

impl Connection {
    /// The connection whose first packet this is.
    pub(super) fn new(ends: Ends, way: usize, header: &Header) -> Connection {
        let kind = || match header.transport {
            Transport::Tcp(_) => Kind::Tcp(Box::default()),
            Transport::Echo(_) => Kind::Echo(Box::new([None; MOST_ECHOES])),
            _ => Kind::Plain,
        };
        let mut ways = [
            Way::new(kind(), SocketAddr::new(header.source, header.source_port)),
            Way::new(kind(), SocketAddr::new(header.destination, header.destination_port)),
        ];
        ways.rotate_left(way);
        Connection { ends: Some(ends), ways, ..Connection::of_many(header.protocol) }
    }

    /// What stands for all connections of a protocol that are not followed singly.
    pub(super) fn of_many(protocol: u8) -> Connection {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Connection {
            ends: None,
            protocol,
            start: Time::ZERO,
            last: Time::ZERO,
            opener: 0,
            reset: false,
            closed: None,
            active: false,
            ways: [Way::new(Kind::Plain, nowhere), Way::new(Kind::Plain, nowhere)],
        }
    }

    /// Whether any packet of it has entered.
    pub(super) fn began(&self) -> bool {
        self.ways.iter().any(|way| way.totals.packets.entered > 0)
    }

    /// Whether a packet that goes `way` begins another connection between the same ends.
    #[inline]
    pub(super) fn is_replaced_by(&self, header: &Header, way: usize) -> bool {
        match (&self.ways[way].kind, &header.transport) {
            (Kind::Tcp(stream), Transport::Tcp(tcp)) => stream.is_replaced_by(tcp),
            _ => false,
        }
    }

    /// A direction, and the other.
    #[inline]
    fn pair(&mut self, way: usize) -> (&mut Way, &mut Way) {
        let [low, high] = &mut self.ways;
        if way == 0 { (low, high) } else { (high, low) }
    }

    /// A packet that goes `way` has entered the network.
    #[inline]
    pub(super) fn entered(&mut self, way: usize, from: usize, header: &Header, now: Time) {
        if !self.began() {
            (self.start, self.opener) = (now, way);
        }
        self.last = now;
        let open = self.closed.is_none();
        let (mine, other) = self.pair(way);
        mine.host = Some(from);
        mine.totals.packets.entered += 1;
        mine.payload += u64::from(header.payload_len);
        let mut sent = if header.payload_len > 0 { Sent::New } else { Sent::Nothing };
        match (&mut mine.kind, &mut other.kind, &header.transport) {
            (Kind::Tcp(stream), Kind::Tcp(back), Transport::Tcp(tcp)) => {
                sent = stream.entered(tcp, header.payload_len, now);
                let (flight, over) = (stream.in_flight(), stream.ended() && back.ended() || tcp.has(Tcp::RST));
                let confirmed = back.confirmed(tcp);
                other.deliver(confirmed, now);
                if open {
                    mine.level(flight, now);
                }
                self.reset |= tcp.has(Tcp::RST);
                if open && over {
                    self.closed = Some(now);
                    self.ways.iter_mut().for_each(|way| way.level(0, now));
                }
            }
            (Kind::Echo(requests), _, Transport::Echo(Echo { reply: false, seq, .. })) => {
                requests[usize::from(*seq) % MOST_ECHOES] = Some((*seq, now));
            }
            _ => {}
        }
        let totals = &mut self.ways[way].totals;
        totals.segments += u64::from(sent != Sent::Nothing);
        totals.retransmitted += u64::from(sent == Sent::Again);
    }

    /// A packet that goes `way` has arrived.
    #[inline]
    pub(super) fn arrived(&mut self, way: usize, header: &Header, delay: Span, ce: bool, now: Time) {
        self.last = now;
        let open = self.closed.is_none();
        let (mine, other) = self.pair(way);
        mine.totals.packets.arrived += 1;
        mine.totals.arrived += u64::from(header.len);
        mine.totals.marked += u64::from(ce);
        if header.payload_len > 0 {
            mine.owds.record(delay);
            mine.sampled_owds = (mine.sampled_owds.0 + delay, mine.sampled_owds.1 + 1);
        }
        match (&mut mine.kind, &mut other.kind, &header.transport) {
            (Kind::Tcp(stream), Kind::Tcp(back), Transport::Tcp(tcp)) => {
                let delivered = stream.arrived(tcp, header.payload_len);
                mine.deliver(delivered, now);
                let bare = header.payload_len == 0 && tcp.flags & (Tcp::SYN | Tcp::FIN | Tcp::RST) == 0;
                let Heard { rtt, slowest, duplicate } = back.acknowledged(tcp, bare, now);
                let flight = back.in_flight();
                rtt.zip(slowest).into_iter().for_each(|(rtt, slowest)| other.rtt(rtt, slowest));
                other.totals.dup_acks += u64::from(duplicate);
                if open {
                    other.level(flight, now);
                }
            }
            (_, back, transport) => {
                mine.deliver(header.payload_len.into(), now);
                if let (Kind::Echo(requests), Transport::Echo(Echo { reply: true, seq, .. })) = (back, transport)
                    && let Some((_, sent)) =
                        requests[usize::from(*seq) % MOST_ECHOES].take_if(|(request, _)| request == seq)
                {
                    let rtt = now.saturating_since(sent);
                    other.rtt(rtt, rtt);
                }
            }
        }
    }

    /// A packet that went `way` was lost.
    pub(super) fn lost(&mut self, way: usize) {
        self.ways[way].totals.packets.lost += 1;
    }

    /// The warm-up ends: what was counted so far is left out of the rows.
    pub(super) fn warmed_up(&mut self, now: Time) {
        for way in &mut self.ways {
            way.level(way.flight, now);
            way.before = way.totals;
            (way.rtts, way.owds) = (Distribution::new(), Distribution::new());
            way.max_flight = way.flight;
        }
    }

    /// Both directions' state now; it is noted only if `keep`.
    pub(super) fn sample(&mut self, now: Time, interval: Span, keep: bool) {
        let closed = self.closed.is_some();
        for way in &mut self.ways {
            let sampled = way.sample(now, interval, closed);
            way.samples.extend(sampled.filter(|_| keep));
        }
    }

    /// How many samples are kept of it.
    pub(super) fn sample_count(&self) -> usize {
        self.ways.iter().map(|way| way.samples.len()).sum()
    }

    /// Merges each sample with the next one, so that about half of them are left.
    pub(super) fn thin(&mut self) {
        for way in &mut self.ways {
            let mut thinned: Vec<Sampled> = Vec::with_capacity(way.samples.len() / 2 + 1);
            let mut single = false;
            for &sampled in &way.samples {
                match thinned.last_mut().filter(|_| single) {
                    Some(before) => *before = before.merged(&sampled),
                    None => thinned.push(sampled),
                }
                single = !single;
            }
            way.samples = thinned;
        }
    }

    /// Counts up to `end`.
    pub(super) fn end(&mut self, end: Time) {
        self.ways.iter_mut().for_each(|way| way.level(way.flight, end));
    }

    /// Whether all that its sender wanted to send `way` has arrived.
    pub(super) fn completed(&self, way: usize) -> bool {
        self.ways[way].completed(self.reset)
    }

    /// Whether it is a pinger's.
    pub(super) fn is_echo(&self) -> bool {
        matches!(self.ways[0].kind, Kind::Echo(_))
    }
}
