//! A connection by Wireshark's rules: the same verdicts as the fields `tcp.analysis.*` of tshark 4.0 with its default
//! preferences, to compare with it.
//!
//! Sources: Wireshark User's Guide, section 7.5 "TCP Analysis", and tshark's own output on captures of known content
//! (`crates/analyse/tests/all/wireshark.rs`). They judge by sequence numbers and times alone, whichever end the capture was made
//! at: a retransmission within a round trip of the handshake is called out of order, and a fast one needs its duplicate
//! acknowledgement within 20 ms. SACK blocks are only subtracted from the bytes in flight. Not followed: MPTCP's tolerance of duplicate acknowledgements;
//! and after a SYN within an open connection, with the same sequence number, Wireshark forgets the highest one.
//!
//! Segments are remembered in the order in which they came, [`MOST_UNACKED`] at most, as Wireshark does.

use std::collections::VecDeque;

use units::{Span, Time};
use wire::{Flags, Options, Segment};

use super::{Inspected, Marks};

/// Unacknowledged segments that are remembered.
const MOST_UNACKED: usize = 10_000;
/// How late after the latest acknowledgement a fast retransmission may be.
const FAST: Span = Span::from_millis(20);
/// How late after the highest segment another is out of order, without a handshake to tell.
const OUT_OF_ORDER: Span = Span::from_millis(3);

/// A segment that was not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Unacked {
    seq: u32,
    next: u32,
    at: Time,
}

/// One direction. Numbers are 0 before they are known.
#[derive(Debug)]
struct Side {
    unacked: VecDeque<Unacked>,
    /// Whether they are in the order of sequence numbers.
    is_sorted: bool,
    next: u32,
    next_at: Time,
    to_be_acked: u32,
    window: u16,
    scale: Option<u8>,
    /// Whether the window is that of a SYN, which is not scaled.
    is_unscaled: bool,
    last_ack: u32,
    last_ack_at: Time,
    duplicates: u32,
    /// Whether unseen data beyond all that this side sent was acknowledged, and that was said.
    has_said: bool,
    last: Marks,
    in_flight_known: bool,
    /// Bytes of the SACK blocks in its latest packet.
    sacked: u64,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            unacked: VecDeque::new(),
            is_sorted: true,
            next: 0,
            next_at: Time::ZERO,
            to_be_acked: 0,
            window: 0,
            scale: None,
            is_unscaled: false,
            last_ack: 0,
            last_ack_at: Time::ZERO,
            duplicates: 0,
            has_said: false,
            last: Marks::default(),
            in_flight_known: true,
            sacked: 0,
        }
    }
}

/// Both directions.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    sides: [Side; 2],
    syn_at: Option<Time>,
    first_rtt: Option<Span>,
}

/// Whether `a` is beyond `b`.
#[inline]
fn beyond(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Conversation {
    /// The next packet of the connection.
    pub(crate) fn inspect(&mut self, way: usize, tcp: &Segment, len: u32, now: Time) -> Inspected {
        let flags = tcp.flags;
        let (seq, ack, window) = (tcp.seq, if flags.has(Flags::ACK) { tcp.ack } else { 0 }, tcp.window);
        let has = |flag: Flags| flags.has(flag);
        let control = has(Flags::SYN) || has(Flags::FIN) || has(Flags::RST);
        self.handshake(tcp, now);
        let first_rtt = self.first_rtt;
        let [low, high] = &mut self.sides;
        let (own, other) = if way == 0 { (low, high) } else { (high, low) };
        if let Options::Syn(syn) = tcp.options {
            own.scale = syn.window_scale;
        }
        let mut marks = own.window_marks(other, (seq, ack, len, window), (control, has(Flags::RST)));
        if marks.any(Marks::DUPLICATE_ACK) {
            own.duplicates += 1;
        }
        if ack != own.last_ack {
            (own.duplicates, own.has_said) = (0, false);
        }
        if other.to_be_acked != 0 && has(Flags::ACK) && beyond(ack, other.to_be_acked) {
            // Of data beyond all that was seen it is said once, until the other side acknowledges something new.
            let is_behind = beyond(other.next, other.to_be_acked);
            marks = marks.with_if(Marks::ACKED_UNSEEN, is_behind || other.duplicates == 0 && !other.has_said);
            if is_behind {
                other.to_be_acked = other.next;
            } else {
                other.has_said = true;
            }
        }
        let ends = has(Flags::SYN) || has(Flags::FIN);
        if len > 0 || ends {
            marks.add(Marks::DATA);
            if !marks.any(Marks::KEEP_ALIVE) {
                marks.add(own.again(other, (seq, len, ends), first_rtt, now));
            }
        }
        own.advance((seq, len, ends), marks, now);
        (own.window, own.is_unscaled) = (window, has(Flags::SYN));
        (own.last_ack, own.last_ack_at) = (ack, now);
        own.last = marks;
        let rtt = other.acknowledged(ack, now);
        other.in_flight_known |= has(Flags::ACK);
        if has(Flags::ACK) {
            own.sacked = match &tcp.options {
                Options::Sack(sack) => sack.blocks().iter().map(|one| u64::from(one.end.wrapping_sub(one.start))).sum(),
                _ => 0,
            };
        }
        let sacked = other.sacked;
        let in_flight = (len > 0 && own.in_flight_known).then(|| own.in_flight(sacked)).flatten();
        // Its own SYN or FIN is no data.
        let in_flight = in_flight.map(|bytes| bytes - u64::from(ends));
        Inspected { marks, rtt, in_flight, pipe: None }
    }

    /// The round trip of the handshake: from the SYN to the first acknowledgement of either end.
    fn handshake(&mut self, tcp: &Segment, now: Time) {
        match (tcp.flags.has(Flags::SYN), tcp.flags.has(Flags::ACK)) {
            (true, false) => self.syn_at = Some(now),
            (false, true) if self.first_rtt.is_none() => {
                self.first_rtt = self.syn_at.map(|syn| now.saturating_since(syn));
            }
            _ => {}
        }
    }

    /// Forgets what only packets to come would need.
    pub(crate) fn release(&mut self) {
        self.sides.iter_mut().for_each(|side| side.unacked = VecDeque::new());
    }
}

impl Side {
    /// What concerns windows, probes and acknowledgements.
    fn window_marks(
        &mut self,
        other: &mut Side,
        (seq, ack, len, window): (u32, u32, u32, u16),
        (control, reset): (bool, bool),
    ) -> Marks {
        let mut marks = Marks::default();
        if len == 1 && seq == self.next && other.window == 0 {
            return Marks::ZERO_WINDOW_PROBE;
        }
        marks = marks.with_if(Marks::ZERO_WINDOW, window == 0 && !control);
        if self.next != 0 && beyond(seq, self.next) && !reset {
            marks.add(Marks::LOST_SEGMENT);
            self.in_flight_known = false;
        }
        let is_probe = len <= 1 && seq == self.next.wrapping_sub(1) && !control;
        marks = marks.with_if(Marks::KEEP_ALIVE, is_probe);
        let repeats = len == 0 && seq == self.next && ack == self.last_ack && !control;
        marks = marks.with_if(Marks::WINDOW_UPDATE, repeats && window != 0 && window != self.window);
        if len > 0 && !control && other.scale.is_some() {
            let shift = if other.is_unscaled { 0 } else { other.scale.unwrap_or(0) };
            let edge = other.last_ack.wrapping_add(u32::from(other.window) << shift);
            marks = marks.with_if(Marks::WINDOW_FULL, seq.wrapping_add(len) == edge);
        }
        let is_same = window == self.window;
        if repeats && window != 0 && is_same && other.last.any(Marks::KEEP_ALIVE) {
            marks.add(Marks::KEEP_ALIVE_ACK);
            return marks;
        }
        let next_too = ack == self.last_ack || ack == self.last_ack.wrapping_add(1);
        let answers = len == 0 && window == 0 && is_same && seq == self.next && next_too && !control;
        if answers && other.last.any(Marks::ZERO_WINDOW_PROBE) {
            marks.add(Marks::ZERO_WINDOW_PROBE_ACK);
            if ack == self.last_ack.wrapping_add(1) {
                (other.to_be_acked, other.next) = (ack, ack);
            }
            return marks;
        }
        marks.with_if(Marks::DUPLICATE_ACK, repeats && window != 0 && is_same)
    }

    /// What data below the highest is.
    fn again(&self, other: &Side, (seq, len, ends): (u32, u32, bool), first_rtt: Option<Span>, now: Time) -> Marks {
        let end = seq.wrapping_add(len);
        // A byte may have been a probe of a closed window.
        let is_again = self.next != 0 && beyond(self.next, seq) && !(len > 1 && self.next.wrapping_sub(1) == seq);
        if len > 0 && other.last_ack != 0 && !beyond(end, other.last_ack) {
            return Marks::SPURIOUS;
        }
        if !is_again {
            return Marks::default();
        }
        if other.duplicates >= 2 && other.last_ack == seq && now.saturating_since(other.last_ack_at) < FAST {
            return Marks::FAST;
        }
        let soon = now.saturating_since(self.next_at) < first_rtt.unwrap_or(OUT_OF_ORDER);
        if soon && self.next != end.wrapping_add(ends.into()) { Marks::OUT_OF_ORDER } else { Marks::RETRANSMISSION }
    }

    /// Remembers a segment.
    fn advance(&mut self, (seq, len, ends): (u32, u32, bool), marks: Marks, now: Time) {
        let mut next = seq.wrapping_add(len);
        if (len > 0 || ends) && self.unacked.len() < MOST_UNACKED {
            next = next.wrapping_add(ends.into());
            self.is_sorted &= self.unacked.back().is_none_or(|last| !beyond(last.next, seq));
            self.unacked.push_back(Unacked { seq, next, at: now });
        }
        if marks.any(Marks::ZERO_WINDOW_PROBE) {
            return;
        }
        if beyond(next, self.next) || self.next == 0 {
            (self.next, self.next_at) = (next, now);
        }
        if seq == self.to_be_acked || self.to_be_acked == 0 {
            self.to_be_acked = self.next;
        }
    }

    /// An acknowledgement: forgets what it covers, and returns the round-trip time of the oldest segment that ends there.
    fn acknowledged(&mut self, ack: u32, now: Time) -> Option<Span> {
        let mut rtt = None;
        if self.is_sorted {
            while let Some(old) = self.unacked.pop_front_if(|one| !beyond(one.next, ack)) {
                if old.next == ack {
                    rtt = rtt.or(Some(now.saturating_since(old.at)));
                }
            }
            if let Some(first) = self.unacked.front_mut().filter(|one| beyond(ack, one.seq)) {
                first.seq = ack;
            }
            return rtt;
        }
        self.unacked.retain_mut(|one| {
            if one.next == ack {
                rtt = rtt.or(Some(now.saturating_since(one.at)));
            } else if beyond(one.next, ack) && beyond(ack, one.seq) {
                one.seq = ack;
            }
            beyond(one.next, ack)
        });
        self.is_sorted = self.unacked.is_empty();
        rtt
    }

    fn in_flight(&self, sacked: u64) -> Option<u64> {
        let (first, last) = (self.unacked.front()?, self.unacked.back()?);
        let (mut low, mut high) = (first.seq, last.next);
        if !self.is_sorted {
            for one in &self.unacked {
                low = if beyond(low, one.seq) { one.seq } else { low };
                high = if beyond(one.next, high) { one.next } else { high };
            }
        }
        let in_flight = u64::from(high.wrapping_sub(low).wrapping_sub(sacked as u32));
        Some(in_flight).filter(|bytes| (1..2_000_000_000).contains(bytes))
    }
}
