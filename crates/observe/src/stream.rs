//! One direction of a TCP connection, observed at both edges of the network: what its sender sent, what reached its
//! receiver, and what the sender knows to have arrived.
//!
//! Round-trip times are those that Linux's sender takes without looking at timestamps (`tcp_clean_rtx_queue`,
//! `tcp_sacktag_one`): of the newest segment that an acknowledgement newly covers, selectively or else cumulatively, which is
//! what congestion controls see (`ca_rtt_us`) and the simulator reports; and of the oldest, cumulatively or else selectively,
//! which the smoothed time is made of (`seq_rtt_us`, `sack_rtt_us`). Segments that were retransmitted do not count, and if the
//! acknowledgement cumulatively covers one, no other that it covers so (Karn's rule). SYN and FIN count as segments.
//!
//! Deviations, so that nobody's packets cost much time or memory: of a flight of more segments than [`Stream::new`] is told,
//! some have no round-trip time; more holes than [`Ranges`] keeps are not kept apart, and the receiver's own acknowledgements
//! then tell what has arrived.

use std::collections::VecDeque;

use units::{Span, Time};
use wire::{Block, Flags, Options, Segment};

use crate::ranges::Ranges;

/// The largest window (RFC 7323, section 2.3). What lies farther from where the connection is does not belong to it.
const LARGEST_WINDOW: u64 = 1 << 30;
/// A connection of which one direction alone is seen is where its sender is, and a hole that is this old will not be filled.
const ONE_WAY: u64 = LARGEST_WINDOW / 2;
/// Offsets are sequence numbers that do not wrap around; they begin here, so that there are some before the first.
const ORIGIN: u64 = 1 << 32;

/// One direction of a connection. Call [`Stream::entered`] for its packets at the sender's edge and [`Stream::arrived`] at
/// the receiver's; for acknowledgements, which go the other way, [`Stream::confirmed`] at the receiver's edge and
/// [`Stream::acknowledged`] at the sender's.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The first sequence number that was seen; `None` before it.
    first: Option<u32>,
    /// One past the highest offset that was sent.
    highest: u64,
    /// Everything below was acknowledged, as the sender knows.
    acked: u64,
    /// Where the data begins, and where it ends, once a FIN was sent.
    begin: u64,
    fin: Option<u64>,
    /// Segments in flight, in order, and how many are kept.
    notes: VecDeque<Note>,
    most_notes: usize,
    /// The window that the sender last received.
    window: u16,
    /// Everything below has reached the receiver.
    next: u64,
    /// What has reached it beyond the first hole, and of that, what the sender knows.
    held: Ranges,
    sacked: Ranges,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Note {
    end: u64,
    len: u32,
    timing: Timing,
}

impl Note {
    fn start(&self) -> u64 {
        self.end - u64::from(self.len)
    }
}

/// Whether an acknowledgement of a segment yields a round-trip time.
#[derive(Clone, Copy, Debug)]
enum Timing {
    Sent(Time),
    /// A SACK has yielded it.
    Taken,
    Retransmitted,
}

/// What a packet is, at its sender's edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Data for the first time.
    New,
    /// Data of which some was sent before.
    Again,
    /// A SYN or FIN without data that was sent before.
    ControlAgain,
    /// No data, or that of a keep-alive probe.
    Nothing,
}

/// What an acknowledgement tells the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) rtt: Option<Span>,
    /// And the one that the smoothed time is made of.
    pub(crate) slowest: Option<Span>,
    /// A duplicate, as RFC 5681 defines it.
    pub(crate) duplicate: bool,
}

impl Stream {
    /// One that keeps the times of so many segments in flight.
    pub(crate) fn new(most_notes: usize) -> Stream {
        Stream {
            first: None,
            highest: 0,
            acked: 0,
            begin: 0,
            fin: None,
            notes: VecDeque::new(),
            most_notes,
            window: 0,
            next: 0,
            held: Ranges::default(),
            sacked: Ranges::default(),
        }
    }

    /// Forgets what only packets to come would need.
    pub(crate) fn release(&mut self) {
        self.notes = VecDeque::new();
        self.held.clear();
        self.sacked.clear();
    }

    /// The first sequence number.
    pub(crate) fn first(&self) -> Option<u32> {
        self.first
    }

    /// One past the highest offset that was sent.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Everything below was acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// The offset of a sequence number near what was acknowledged.
    pub(crate) fn offset(&self, number: u32) -> u64 {
        near(number, self.acked)
    }

    /// The offset of a sequence number relative to the connection's first one.
    pub(crate) fn relative(&self, offset: u64) -> u64 {
        offset.saturating_sub(ORIGIN + u64::from(self.first.unwrap_or(0)))
    }

    /// The offsets that a segment at the sender's edge takes; see [`Stream::entered`]. `None` if there are none, or before
    /// any segment.
    pub(crate) fn extent(&self, tcp: &Segment, payload: u32) -> Option<(u64, u64)> {
        self.first.and_then(|_| extent(tcp, payload, self.place())).filter(|(start, end)| start < end)
    }

    /// Where the connection is, as the sender's edge knows.
    #[inline]
    fn place(&self) -> u64 {
        if self.highest - self.acked < ONE_WAY { self.acked } else { self.highest }
    }

    /// Whether nothing of it has reached the receiver's edge.
    pub(crate) fn is_unseen(&self, start: u64, end: u64) -> bool {
        start >= self.next && !self.held.overlaps(start, end)
    }

    /// Whether this is the SYN of another connection between the same ports.
    pub(crate) fn is_replaced_by(&self, tcp: &Segment) -> bool {
        tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK) && self.first.is_some_and(|first| first != tcp.seq)
    }

    /// Bytes in flight, as a sender without SACK counts them: sent and not acknowledged.
    pub(crate) fn in_flight(&self) -> u64 {
        self.highest - self.acked
    }

    /// Whether a FIN was sent.
    pub(crate) fn ended(&self) -> bool {
        self.fin.is_some()
    }

    /// Whether all that was sent has arrived.
    pub(crate) fn all_arrived(&self) -> bool {
        self.next >= self.highest
    }

    /// The sender sent a segment.
    #[inline]
    pub(crate) fn entered(&mut self, tcp: &Segment, payload: u32, now: Time) -> Sent {
        if self.first.is_none() {
            self.first = Some(tcp.seq);
            self.highest = ORIGIN + u64::from(tcp.seq);
            (self.acked, self.next) = (self.highest, self.highest);
            self.begin = self.highest + u64::from(tcp.flags.has(Flags::SYN));
        }
        let extent = extent(tcp, payload, self.place()).filter(|(start, end)| start < end);
        let Some((start, end)) = extent else { return Sent::Nothing };
        if tcp.flags.has(Flags::FIN) && self.fin.is_none() {
            self.fin = Some(end - 1);
        }
        if start >= self.highest {
            self.highest = end;
            if self.notes.len() < self.most_notes {
                let note = Note { end, len: (end - start) as u32, timing: Timing::Sent(now) };
                self.notes.push_back(note);
            }
            return if payload > 0 { Sent::New } else { Sent::Nothing };
        }
        // A keep-alive probe of one byte, which was acknowledged long ago; those of Linux have none.
        if payload == 1 && end == self.highest && self.acked == self.highest {
            return Sent::Nothing;
        }
        self.highest = self.highest.max(end);
        let at = self.notes.partition_point(|note| note.end <= start);
        let mut known = false;
        for note in self.notes.range_mut(at..).take_while(|note| note.start() < end) {
            note.timing = Timing::Retransmitted;
            known = true;
        }
        // A capture may have missed it the first time: whoever acknowledges it has waited for it.
        if !known && start >= self.acked && at < self.notes.len() && self.notes.len() < self.most_notes {
            self.notes.insert(at, Note { end, len: (end - start) as u32, timing: Timing::Retransmitted });
        }
        if payload > 0 { Sent::Again } else { Sent::ControlAgain }
    }

    /// A segment reached the receiver. Returns the bytes of payload that are in order now and were not before.
    #[inline]
    pub(crate) fn arrived(&mut self, tcp: &Segment, payload: u32) -> u64 {
        match extent(tcp, payload, self.next) {
            Some((start, end)) if start <= self.next => self.advance(end),
            Some((start, end)) => {
                if start - self.next >= ONE_WAY {
                    self.next = self.held.start().map_or(start, |held| held.min(start));
                }
                self.held.insert(start, end);
                0
            }
            None => 0,
        }
    }

    /// The receiver acknowledged, at its edge. Returns as [`Stream::arrived`].
    #[inline]
    pub(crate) fn confirmed(&mut self, tcp: &Segment) -> u64 {
        let ack = near(tcp.ack, self.next);
        if tcp.flags.has(Flags::ACK) && self.first.is_some() && ack <= self.highest { self.advance(ack) } else { 0 }
    }

    /// An acknowledgement reached the sender; `bare` if it carries nothing else.
    #[inline]
    pub(crate) fn acknowledged(&mut self, tcp: &Segment, bare: bool, now: Time) -> Heard {
        let ack = near(tcp.ack, self.acked);
        if !tcp.flags.has(Flags::ACK) || self.first.is_none() || ack > self.highest {
            return Heard::default();
        }
        let mut heard = Heard::default();
        if ack > self.acked {
            (heard.rtt, heard.slowest) = self.covered(ack, now).unzip();
            self.acked = ack;
            if !self.sacked.is_empty() {
                self.sacked.remove_below(ack);
            }
        } else {
            heard.duplicate = bare && ack == self.acked && self.highest > ack && tcp.window == self.window;
        }
        self.window = tcp.window;
        if let Options::Sack(sack) = &tcp.options
            && let Some((newest, oldest)) = self.selectively(sack.blocks(), now)
        {
            (heard.rtt, heard.slowest) = (Some(newest), heard.slowest.or(Some(oldest)));
        }
        heard
    }

    /// Forgets the segments up to `ack`, and gives the round-trip times of the newest and the oldest, if they tell any.
    #[inline]
    fn covered(&mut self, ack: u64, now: Time) -> Option<(Span, Span)> {
        let (mut newest, mut oldest, mut retransmitted) = (None, None, false);
        while let Some(note) = self.notes.pop_front_if(|note| note.end <= ack) {
            match note.timing {
                Timing::Sent(at) => (newest, oldest) = (Some(at), oldest.or(Some(at))),
                Timing::Taken => {}
                Timing::Retransmitted => retransmitted = true,
            }
        }
        let since = |at: Time| now.saturating_since(at);
        newest.zip(oldest).filter(|_| !retransmitted).map(|(newest, oldest)| (since(newest), since(oldest)))
    }

    /// Marks the segments in these SACK blocks, and gives the round-trip times of the newest and the oldest that are new and were
    /// sent once. What of a block lies below the acknowledgement is a D-SACK (RFC 2883 section 4).
    #[inline]
    fn selectively(&mut self, blocks: &[Block], now: Time) -> Option<(Span, Span)> {
        let mut extremes: Option<(Time, Time)> = None;
        for block in blocks {
            let (mut start, end) = (near(block.start, self.acked).max(self.acked), near(block.end, self.acked));
            if end > self.highest {
                continue;
            }
            let whole = start;
            while start < end {
                let (from, to) = self.sacked.gap(start, end);
                start = to;
                let at = self.notes.partition_point(|note| note.end <= from);
                for note in self.notes.range_mut(at..).take_while(|note| note.end <= to) {
                    if note.start() >= from
                        && let Timing::Sent(sent) = note.timing
                    {
                        note.timing = Timing::Taken;
                        let (newest, oldest) = extremes.unwrap_or((sent, sent));
                        extremes = Some((newest.max(sent), oldest.min(sent)));
                    }
                }
            }
            self.sacked.insert(whole, end);
        }
        extremes.map(|(newest, oldest)| (now.saturating_since(newest), now.saturating_since(oldest)))
    }

    /// Everything below `to` has reached the receiver.
    #[inline]
    fn advance(&mut self, to: u64) -> u64 {
        if to <= self.next {
            return 0;
        }
        let from = self.next;
        let to = self.held.absorb(to);
        self.next = to;
        // SYN and FIN take an offset and are no data.
        let last = self.fin.unwrap_or(u64::MAX).max(self.begin);
        let data = |offset: u64| offset.clamp(self.begin, last);
        data(to) - data(from)
    }
}

/// The offsets that a segment takes, SYN and FIN included, if they belong to a connection that is at `at`.
#[inline]
fn extent(tcp: &Segment, payload: u32, at: u64) -> Option<(u64, u64)> {
    let start = near(tcp.seq, at);
    let end = start + u64::from(payload) + u64::from(tcp.flags.has(Flags::SYN)) + u64::from(tcp.flags.has(Flags::FIN));
    (start.abs_diff(at) <= LARGEST_WINDOW).then_some((start, end))
}

/// The offset with this sequence number that is nearest to `at`.
#[inline]
fn near(number: u32, at: u64) -> u64 {
    at.wrapping_add_signed(i64::from(number.wrapping_sub(at as u32) as i32))
}
