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
//!
//! A source with one vantage point may see one direction alone. Until data was acknowledged, and again when far more was sent than
//! the receiver permits, acknowledgements take another way: then all data that passes counts as delivered, in order or not, and
//! what is in flight is unknown.

mod admission;
mod suspect;

use std::collections::VecDeque;

use units::{Span, Time};
use wire::{Block, Flags, Options, Segment};

use crate::ranges::Ranges;
pub(crate) use admission::{Admission, Late};
use suspect::Suspect;

/// The largest window (RFC 7323, section 2.3). What lies farther from where the connection is does not belong to it.
const LARGEST_WINDOW: u64 = 1 << 30;
/// The largest window without a scale: as far ahead as anybody sends without being permitted more.
const LARGEST_UNSCALED: u64 = 65_535;
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
    /// The window field that the sender last received.
    window: Option<u16>,
    /// The window scale that its SYN offers, if the options of that were seen.
    scale: Option<Option<u8>>,
    /// Whether its SYN was seen.
    has_syn: bool,
    /// One past the highest offset that its receiver has ever permitted; `None` before, or if the scale of the window is unknown.
    edge: Option<u64>,
    /// Whether data was sent far beyond that since: acknowledgements pass elsewhere. And the bytes that were sent meanwhile.
    is_unheard: bool,
    unheard: u64,
    /// What may be of another connection.
    suspect: Option<Box<Suspect>>,
    /// The first sequence number of an earlier SYN-ACK that another one has replaced.
    spurned: Option<u32>,
    /// Everything below has reached the receiver.
    next: u64,
    /// What has reached it beyond the first hole, and of that, what the sender knows.
    held: Ranges,
    sacked: Ranges,
    /// Of what lies beyond the first hole, what has counted as delivered; all of it while no acknowledgement is seen.
    counted: Ranges,
    /// Whether all that is held counts as delivered.
    counts_held: bool,
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
            window: None,
            scale: None,
            has_syn: false,
            edge: None,
            is_unheard: false,
            unheard: 0,
            suspect: None,
            spurned: None,
            next: 0,
            held: Ranges::default(),
            sacked: Ranges::default(),
            counted: Ranges::default(),
            counts_held: false,
        }
    }

    /// Forgets what only packets to come would need.
    pub(crate) fn release(&mut self) {
        self.notes = VecDeque::new();
        self.held.clear();
        self.sacked.clear();
        self.counted.clear();
        self.suspect = None;
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

    /// Bytes in flight, as a sender without SACK counts them: sent and not acknowledged. 0 while that is unknown.
    pub(crate) fn in_flight(&self) -> u64 {
        if self.is_unheard { 0 } else { self.highest - self.acked }
    }

    /// Whether acknowledgements pass elsewhere: none was seen, or far more was sent than the last permits.
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_unheard || self.acked <= self.begin && self.highest - self.acked > LARGEST_UNSCALED
    }

    /// Whether data of it was acknowledged.
    pub(crate) fn was_heard(&self) -> bool {
        self.acked > self.begin
    }

    /// Bytes that were sent while acknowledgements passed elsewhere.
    pub(crate) fn unheard(&self) -> u64 {
        self.unheard
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
            if tcp.flags.has(Flags::RST) {
                return Sent::Nothing;
            }
            self.start_at(tcp.seq, tcp.flags.has(Flags::SYN));
        }
        self.note_syn(tcp);
        let extent = extent(tcp, payload, self.place()).filter(|(start, end)| start < end);
        let Some((start, end)) = extent else { return Sent::Nothing };
        if tcp.flags.has(Flags::FIN) && self.fin.is_none() {
            self.fin = Some(end - 1);
        }
        if start >= self.highest {
            self.highest = end;
            self.suspect.take_if(|suspect| suspect.start() < end);
            self.is_unheard |= self.edge.is_some_and(|edge| end > edge + LARGEST_UNSCALED);
            self.unheard += if self.is_unheard { end - start } else { 0 };
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

    /// Begins with a sequence number, that of a SYN if `is_syn`.
    #[cold]
    fn start_at(&mut self, seq: u32, is_syn: bool) {
        self.first = Some(seq);
        self.highest = ORIGIN + u64::from(seq);
        (self.acked, self.next) = (self.highest, self.highest);
        (self.begin, self.has_syn) = (self.highest + u64::from(is_syn), is_syn);
    }

    /// A segment reached the receiver; `alone` if there is one vantage point. Returns the bytes of payload that count as delivered
    /// now and did not before.
    #[inline]
    pub(crate) fn arrived(&mut self, tcp: &Segment, payload: u32, alone: bool) -> u64 {
        match extent(tcp, payload, self.next) {
            // The rest was not taken for the connection's.
            Some((start, end)) if end <= self.highest => self.arrive(start, end, alone),
            _ => 0,
        }
    }

    #[inline]
    fn arrive(&mut self, start: u64, end: u64, alone: bool) -> u64 {
        if start <= self.next {
            return self.advance(end);
        }
        if start - self.next >= ONE_WAY {
            self.next = self.held.start().map_or(start, |held| held.min(start));
        }
        if alone && (self.is_unheard || !self.was_heard()) {
            return self.hold_unheard(start, end);
        }
        if self.counts_held {
            self.count_in_order();
        }
        self.held.insert(start, end);
        0
    }

    /// Data passed beyond a hole, and whether the receiver has what is in the hole will not be seen.
    #[cold]
    fn hold_unheard(&mut self, start: u64, end: u64) -> u64 {
        let mut counted = 0;
        if !self.counts_held {
            // What waited for its acknowledgement.
            counted = self.held.bytes() - self.counted.bytes();
            self.counted.clear();
            self.counts_held = true;
        }
        let before = self.held.bytes();
        self.held.insert(start, end);
        if self.held.bytes() == before && !self.held.covers(start, end) {
            // Too many holes: the first is given up.
            if let Some(first) = self.held.start() {
                let before = self.held.bytes();
                self.next = self.held.absorb(first);
                let absorbed = before - self.held.bytes();
                debug_assert_eq!(self.next - first, absorbed);
            }
            let before = self.held.bytes();
            self.held.insert(start.max(self.next), end);
            return counted + self.held.bytes() - before;
        }
        counted + self.held.bytes() - before
    }

    /// Acknowledgements are seen again: what is beyond a hole counts when that is filled.
    #[cold]
    fn count_in_order(&mut self) {
        self.counted = self.held.clone();
        self.counts_held = false;
    }

    /// The receiver acknowledged, at its edge. Returns as [`Stream::arrived`].
    #[inline]
    pub(crate) fn confirmed(&mut self, tcp: &Segment) -> u64 {
        let ack = near(tcp.ack, self.next);
        if !tcp.flags.has(Flags::ACK) || self.first.is_none() || ack > self.highest {
            return 0;
        }
        if self.counts_held && ack > self.begin {
            self.count_in_order();
        }
        self.advance(ack)
    }

    /// An acknowledgement of `receiver`'s reached the sender; `bare` if it carries nothing else.
    #[inline]
    pub(crate) fn acknowledged(&mut self, receiver: &Stream, tcp: &Segment, bare: bool, now: Time) -> Heard {
        let ack = near(tcp.ack, self.acked);
        if !tcp.flags.has(Flags::ACK) || self.first.is_none() || ack > self.highest {
            return Heard::default();
        }
        let mut heard = Heard::default();
        if ack > self.acked {
            (heard.rtt, heard.slowest) = self.covered(ack, now).unzip();
            self.acked = ack;
            self.is_unheard = false;
            if !self.sacked.is_empty() {
                self.sacked.remove_below(ack);
            }
        } else {
            heard.duplicate = bare && ack == self.acked && self.highest > ack && self.window == Some(tcp.window);
        }
        self.permit(receiver, tcp, ack);
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
        let (from, held) = (self.next, self.held.bytes());
        let to = self.held.absorb(to);
        self.next = to;
        let mut before = 0;
        if self.counts_held {
            before = held - self.held.bytes();
        } else if !self.counted.is_empty() {
            before = self.counted.bytes_below(to);
            self.counted.remove_below(to);
        }
        // SYN and FIN take an offset and are no data.
        let last = self.fin.unwrap_or(u64::MAX).max(self.begin);
        let data = |offset: u64| offset.clamp(self.begin, last);
        (data(to) - data(from)).saturating_sub(before)
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
