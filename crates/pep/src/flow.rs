//! What is remembered of a flow: how far its data has passed, which holes that has, and what a report needs to say.

use crate::arrival::{Arrival, NEAR, is_after};
use crate::newcomer::Newcomer;
use core::ops::Range;
use units::Time;
use wire::report::{Key, RANGES, RANGES_TAGGED, Report};
use wire::{Block, Flags, Options, Segment, Timestamps};

/// Holes that are remembered at most. A segment that would open another is not noted.
const HOLES: usize = 8;
/// Segments that pass above a hole before it counts as missing (RFC 5681's three duplicates), and the most that
/// reordering can make of it (Linux `tcp_max_reordering`).
const REORDERING: u32 = 3;
const REORDERING_MAX: u32 = 300;
/// What can follow the highest byte, or precede what the receiver has: as much as is on the way, and at least so many bytes.
/// More after data has passed unseen.
const SPAN: u64 = 1 << 23;
const SPAN_ADRIFT: u64 = 1 << 28;
/// How far timestamps of one side can lie apart in segments that are on the way at the same time: some seconds in
/// microseconds, the finest clock in use.
const SLACK: u32 = 1 << 22;

/// A range that has not passed while higher bytes have.
#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    start: u64,
    end: u64,
    /// Segments that have passed above it.
    overtaken: u32,
    /// The `TSval` of the segment that opened it.
    opened_by: u32,
    /// So many have that it is not merely late; a report has said so.
    missing: bool,
    reported: bool,
}

/// A report that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Of everything.
    All,
    /// A hole was filled by this range.
    Filled(u64, u64),
}

/// Offsets are sequence numbers of the sender without wrap-around: their low halves are what is on the wire.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The sender understands reports.
    pub(crate) announced: bool,
    /// The last segment of either side.
    pub(crate) seen: Time,
    /// The first byte after the SYN, if that was seen.
    start: Option<u32>,
    /// Data has passed unseen: what is known begins with the next segment.
    adrift: bool,
    /// The neighbour through which the sender's segments come.
    via: u64,
    /// Where it was first seen, and one past the highest byte that has passed.
    first: u64,
    high: u64,
    /// In rising order, the first `open` of them, all below `high`.
    holes: [Hole; HOLES],
    open: usize,
    /// What makes a hole count as missing.
    reordering: u32,
    /// The newest `TSval` of the sender.
    stamp: u32,
    /// New segments since the last report; the end of what it was about.
    unreported: u32,
    through: u64,
    due: Due,
    /// Bytes that came and were not answered with bytes.
    credit: u64,
    receiver: Receiver,
    /// It has sent more than a SYN-ACK: the sender may be answered.
    answered: bool,
    closing: [bool; 2],
}

/// What a report says: of the bytes in `[from, through)`, all have passed but those in some holes.
pub(crate) struct News {
    from: u64,
    through: u64,
    /// The first of these holes and one past the last.
    missing: (usize, usize),
}

impl News {
    /// Whether it names something missing.
    pub(crate) fn is_nack(&self) -> bool {
        self.missing.0 < self.missing.1
    }
}

/// The ranges that a report with this key names at most.
pub(crate) fn ranges(key: Option<Key>) -> usize {
    if key.is_some() { RANGES_TAGGED } else { RANGES }
}

#[derive(Clone, Copy, Debug)]
struct Receiver {
    /// Its highest acknowledgement, as an offset, and whether that has moved.
    ack: u64,
    moved: bool,
    /// One past what it has sent; its last window field and `TSval`.
    next: u32,
    window: u16,
    stamp: u32,
}

/// Whether a timestamp can be on the way while `known` is the newest: it is not much older.
#[inline]
fn is_recent(stamp: u32, known: u32) -> bool {
    !is_after(known.wrapping_sub(SLACK), stamp)
}

impl Flow {
    /// The flow that a newcomer turns out to be, as this segment of the receiver shows.
    pub(crate) fn new(newcomer: &Newcomer, reply: &Segment, timestamps: Timestamps, now: Time) -> Flow {
        // Room below, for what is older.
        let first = (1 << 32) | u64::from(reply.ack);
        let receiver = Receiver {
            ack: first,
            moved: false,
            next: reply.seq.wrapping_add(reply.seq_len()),
            window: reply.window,
            stamp: timestamps.value,
        };
        Flow {
            announced: newcomer.announced,
            seen: now,
            start: newcomer.syn.then_some(newcomer.next),
            adrift: !newcomer.syn,
            via: newcomer.via,
            first,
            high: first,
            holes: [Hole::default(); HOLES],
            open: 0,
            reordering: REORDERING,
            stamp: newcomer.stamp,
            unreported: 0,
            through: first,
            due: Due::Nothing,
            credit: 0,
            receiver,
            answered: !reply.flags.has(Flags::SYN),
            closing: [false; 2],
        }
    }

    pub(crate) fn starts_at(&self, next: u32) -> bool {
        self.start == Some(next)
    }

    /// Whether a reset with this sequence number would be taken (RFC 5961 section 3.2).
    pub(crate) fn is_next(&self, seq: u32) -> bool {
        self.high as u32 == seq
    }

    pub(crate) fn is_next_reply(&self, seq: u32) -> bool {
        self.receiver.next == seq
    }

    /// What may lie between the highest byte and a segment of this flow.
    #[inline]
    fn span(&self) -> u64 {
        if self.adrift { SPAN_ADRIFT } else { SPAN.max(self.high - self.receiver.ack) }
    }

    /// Whether a segment is of this flow, as far as its numbers tell: of the sender's window first (RFC 5961 in spirit), then
    /// by the timestamps of both sides.
    #[inline]
    pub(crate) fn owns(&self, segment: &Segment, timestamps: Timestamps) -> bool {
        let Some(start) = self.offset(segment.seq) else { return false };
        let (end, span, ack) = (start + u64::from(segment.seq_len()), self.span(), self.receiver.ack);
        let in_window = start <= self.high + span && end < ack + NEAR && end + span >= ack;
        let Timestamps { value, echo } = timestamps;
        in_window
            && is_recent(echo, self.receiver.stamp)
            && is_recent(self.receiver.stamp, echo)
            && is_recent(value, self.stamp)
    }

    /// Whether a segment of the receiver answers this flow, as far as its numbers tell: it echoes what has passed here, and is
    /// within both windows.
    #[inline]
    pub(crate) fn is_answered_by(&self, segment: &Segment, timestamps: Timestamps) -> bool {
        let Some(ack) = self.offset(segment.ack) else { return false };
        let Receiver { ack: known, next, stamp, .. } = self.receiver;
        let Timestamps { value, echo } = timestamps;
        let span = self.span();
        let in_window = ack <= self.high + span && ack < known + NEAR && ack + span >= known;
        let end = segment.seq.wrapping_add(segment.seq_len());
        let is_next = u64::from((end.wrapping_sub(next) as i32).unsigned_abs()) <= SPAN;
        in_window && is_next && !is_after(echo, self.stamp) && is_recent(echo, self.stamp) && is_recent(value, stamp)
    }

    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing == [true; 2]
    }

    /// The offset of a sequence number near the highest byte; `None` if there is none near.
    #[inline]
    fn offset(&self, number: u32) -> Option<u64> {
        let distance = i64::from(number.wrapping_sub(self.high as u32) as i32);
        self.high.checked_add_signed(distance).filter(|_| distance.unsigned_abs() < NEAR)
    }

    #[inline]
    fn holes(&mut self) -> &mut [Hole] {
        &mut self.holes[..self.open]
    }

    fn remove_hole(&mut self, at: usize) {
        self.holes.copy_within(at + 1..self.open, at);
        self.open -= 1;
    }

    fn insert_hole(&mut self, at: usize, hole: Hole) {
        self.holes.copy_within(at..self.open, at + 1);
        self.holes[at] = hole;
        self.open += 1;
    }

    /// A segment of the sender passes, which [owns](Flow::owns) it; whether it came by the flow's way, so that it may be
    /// answered. Another way is taken from the first segment that continues the flow there.
    #[inline]
    pub(crate) fn pass(&mut self, segment: &Segment, stamp: u32, arrival: &Arrival, now: Time) -> bool {
        let &Arrival { packets, packet_len, via } = arrival;
        self.seen = now;
        self.due = Due::Nothing;
        self.credit = self.credit.saturating_add(packet_len.into());
        self.closing[0] |= segment.flags.has(Flags::FIN);
        let Some(start) = self.offset(segment.seq) else { return false };
        if self.adrift {
            self.begin(start.max(self.receiver.ack));
        }
        let end = start + u64::from(segment.seq_len());
        let follows = start == self.high;
        let continues = follows && self.open == 0;
        if follows || is_after(stamp, self.stamp) {
            self.stamp = stamp;
        }
        if continues {
            // As nearly all do.
            self.high = end;
            self.unreported = self.unreported.saturating_add(packets);
            self.due = if segment.flags.has(Flags::PSH) { Due::All } else { Due::Nothing };
        } else {
            self.pass_out_of_order(segment, start..end, stamp, packets);
        }
        let known = self.via == via;
        if continues {
            self.via = via;
        }
        known
    }

    /// Forgets what has passed: what is known begins here.
    #[cold]
    fn begin(&mut self, at: u64) {
        self.adrift = false;
        self.open = 0;
        self.unreported = 0;
        self.reordering = REORDERING;
        (self.first, self.high, self.through) = (at, at, at);
    }

    fn pass_out_of_order(&mut self, segment: &Segment, Range { start, end }: Range<u64>, stamp: u32, packets: u32) {
        let opens = start > self.high;
        if opens && self.open == HOLES {
            return;
        }
        let filled = self.open > 0 && self.fill(start, end, stamp);
        let fresh = end > self.high;
        if opens {
            let hole = Hole { start: self.high, end: start, opened_by: stamp, ..Hole::default() };
            self.insert_hole(self.open, hole);
        }
        if !filled && !fresh {
            // It passed before.
            return;
        }
        self.high = self.high.max(end);
        let (reordering, mut found) = (self.reordering, false);
        for hole in self.holes().iter_mut().filter(|hole| hole.end <= start) {
            hole.overtaken = hole.overtaken.saturating_add(packets);
            found |= !hole.missing && hole.overtaken >= reordering;
            hole.missing |= hole.overtaken >= reordering;
        }
        self.unreported = self.unreported.saturating_add(if fresh { packets } else { 0 });
        self.due = match filled {
            true if !found => Due::Filled(start, end),
            _ if found || segment.flags.has(Flags::PSH) => Due::All,
            _ => Due::Nothing,
        };
    }

    /// Takes `[start, end)` out of the holes; whether it was in one.
    fn fill(&mut self, start: u64, end: u64, stamp: u32) -> bool {
        let mut filled = false;
        let mut at = 0;
        while at < self.open {
            let hole = self.holes[at];
            if hole.end <= start || hole.start >= end {
                at += 1;
                continue;
            }
            let splits = hole.start < start && end < hole.end;
            if splits && self.open == HOLES {
                return filled;
            }
            filled = true;
            if is_after(hole.opened_by, stamp) {
                // Sent before what overtook it: it was late, and not lost.
                self.reordering = self.reordering.max(hole.overtaken.min(REORDERING_MAX));
            }
            match (hole.start < start, end < hole.end) {
                (false, false) => self.remove_hole(at),
                (true, false) => self.holes[at].end = start,
                (false, true) => self.holes[at].start = end,
                (true, true) => {
                    self.holes[at].end = start;
                    self.insert_hole(at + 1, Hole { start: end, ..hole });
                    at += 1;
                }
            }
            at += usize::from(hole.start < start || end < hole.end);
        }
        filled
    }

    /// A segment of the receiver passes, which [answers](Flow::is_answered_by) this flow.
    #[inline]
    pub(crate) fn reply(&mut self, segment: &Segment, timestamps: Timestamps, now: Time) {
        let Some(ack) = self.offset(segment.ack) else { return };
        self.seen = now;
        self.closing[1] |= segment.flags.has(Flags::FIN);
        self.answered |= !segment.flags.has(Flags::SYN);
        let next = segment.seq.wrapping_add(segment.seq_len());
        let known = &mut self.receiver;
        known.moved |= ack > known.ack;
        known.ack = known.ack.max(ack);
        if is_after(next, known.next) {
            known.next = next;
        }
        if !is_after(known.stamp, timestamps.value) {
            (known.stamp, known.window) = (timestamps.value, segment.window);
            if segment.seq_len() == 0 {
                // What only acknowledges bears the number of what comes next.
                known.next = next;
            }
        }
        // What the receiver has is no hole, whichever way it took, and nobody asks about it any more.
        let ack = known.ack;
        if self.open > 0 {
            self.forget_holes(ack);
        }
        self.first = self.first.max(ack);
        self.through = self.through.max(ack);
        self.high = self.high.max(ack);
    }

    /// Nothing below is a hole.
    fn forget_holes(&mut self, bottom: u64) {
        while self.open > 0 && self.holes[0].end <= bottom {
            self.remove_hole(0);
        }
        if let Some(hole) = self.holes().first_mut() {
            hole.start = hole.start.max(bottom);
        }
    }

    /// Whether a report is due, for a sender that takes it.
    #[inline]
    pub(crate) fn is_due(&self, every: u32, all: bool) -> bool {
        let asked =
            if self.announced { self.start.is_some() || self.receiver.moved } else { all && self.receiver.moved };
        let news = self.holes[..self.open].iter().any(|hole| hole.missing && !hole.reported);
        self.answered && asked && (self.due != Due::Nothing || news || self.unreported >= every)
    }

    /// What a report is to say that is due, if there is anything new.
    #[inline]
    pub(crate) fn news(&self, ranges: usize) -> Option<News> {
        let receiver = &self.receiver;
        let news = match self.due {
            Due::Filled(start, end) => News { from: start.max(receiver.ack), through: end, missing: (0, 0) },
            // Nothing is known of what went before the flow was first seen.
            Due::Nothing | Due::All => self.overview(receiver.ack.max(self.first), ranges),
        };
        let is_new = news.through > self.through
            || self.missing(&news).iter().any(|hole| !hole.reported)
            || matches!(self.due, Due::Filled(..));
        Some(news).filter(|news| is_new && news.from < news.through)
    }

    fn missing(&self, news: &News) -> &[Hole] {
        &self.holes[news.missing.0..news.missing.1]
    }

    /// The report that says so, after which it is not new any more; `None` if its packet, with an IP header of so many bytes,
    /// would be more than what came and was not answered.
    #[inline]
    pub(crate) fn report(&mut self, news: &News, key: Option<Key>, ip_header: u32) -> Option<(Segment, u32)> {
        let receiver = &self.receiver;
        let base = self.base(receiver);
        let number = |offset: u64| (offset - base) as u32;
        let mut report = Report::new(number(news.from), number(news.through));
        for hole in self.missing(news) {
            report.push(Block { start: number(hole.start), end: number(hole.end) });
        }
        let timestamps = Timestamps { value: receiver.stamp, echo: self.stamp };
        if let Some(key) = key {
            report.authenticate(key, base as u32, timestamps);
        }
        let segment = Segment {
            seq: receiver.next,
            ack: base as u32,
            window: receiver.window,
            len: 0,
            flags: Flags::ACK,
            timestamps: Some(timestamps),
            options: Options::Report(report),
        };
        let len = ip_header + segment.header_len();
        self.credit = self.credit.checked_sub(len.into())?;
        if !matches!(self.due, Due::Filled(..)) {
            self.unreported = 0;
            self.through = self.through.max(news.through);
            for hole in self.holes() {
                hole.reported |= hole.missing && hole.start >= news.from && hole.end <= news.through;
            }
        }
        Some((segment, len))
    }

    /// The acknowledgement number of a report: an old one, which changes nothing. Before any data is acknowledged Linux
    /// answers an old one (RFC 5961 section 5.2); a sender that knows reports then gets the receiver's own.
    #[inline]
    fn base(&self, receiver: &Receiver) -> u64 {
        if self.announced && self.start.is_some() && !receiver.moved { receiver.ack } else { receiver.ack - 1 }
    }

    /// From where to where a report reaches, and what is missing in between.
    #[inline]
    fn overview(&self, floor: u64, ranges: usize) -> News {
        if self.open == 0 {
            return News { from: floor, through: self.high, missing: (0, 0) };
        }
        let holes = &self.holes[..self.open];
        let missing = holes.iter().position(|hole| !hole.missing).unwrap_or(self.open);
        let top = holes.get(missing).map_or(self.high, |hole| hole.start);
        let missing = &holes[..missing];
        let last = missing.len().saturating_sub(ranges);
        let first = missing.iter().position(|hole| !hole.reported).map_or(last, |new| new.min(last));
        let from = first.checked_sub(1).map_or(floor, |before| missing[before].end);
        let through = missing.get(first + ranges).map_or(top, |next| next.start);
        News { from, through, missing: (first, missing.len().min(first + ranges)) }
    }
}
