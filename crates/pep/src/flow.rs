//! The state of a flow: how far its data has passed, the holes in it, and the contents of the next report.

#[cfg(test)]
mod tests;

use crate::arrival::{Arrival, NEAR, is_after};
use crate::newcomer::{Newcomer, Opening};
use core::ops::Range;
use units::Time;
use wire::report::{Key, RANGES, RANGES_TAGGED, Report};
use wire::{Block, Flags, Options, Segment, Timestamps};

/// Maximum number of holes. A segment that would open another is ignored.
const HOLES: usize = 8;
/// Number of segments that pass above a hole before it counts as missing (RFC 5681's three duplicates), and its maximum
/// after reordering (Linux `tcp_max_reordering`).
const REORDERING: u32 = 3;
const REORDERING_MAX: u32 = 300;
/// Minimum number of bytes that are plausible above the highest byte, or below the receiver's acknowledgement.
/// The same after data has passed unseen.
const SPAN: u64 = 1 << 23;
const SPAN_ADRIFT: u64 = 1 << 28;
/// Maximum difference between the timestamps of segments in flight at the same time: some seconds in
/// microseconds, the finest clock in use.
const SLACK: u32 = 1 << 22;

/// A hole: a range that has not passed although higher bytes have.
#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    start: u64,
    end: u64,
    /// Segments that have passed above it.
    overtaken: u32,
    /// The `TSval` of the segment that opened it.
    opened_by: u32,
    /// Whether it counts as missing, and whether a report has named it.
    missing: bool,
    reported: bool,
}

/// A report that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    /// A report on everything.
    All,
    /// A report on this range, which has filled a hole.
    Filled(u64, u64),
}

/// Offsets are sequence numbers of the sender without wrap-around; their low halves are the numbers on the wire.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Whether the sender understands reports.
    pub(crate) announced: bool,
    /// When the last segment of either side passed.
    pub(crate) seen: Time,
    /// The first byte after the SYN, if that was seen.
    start: Option<u32>,
    /// Whether data has passed unseen, so that the state begins with the next segment.
    adrift: bool,
    /// Whether the reports of another PEP nearer to the receiver pass here, which then speaks for the flow.
    inner: bool,
    /// The neighbour through which the sender's segments come.
    via: u64,
    /// The first observed offset, and one past the highest byte that has passed.
    first: u64,
    high: u64,
    /// The holes: the first `open` entries, in ascending order, all below `high`.
    holes: [Hole; HOLES],
    open: usize,
    /// The number of segments above a hole at which it counts as missing.
    reordering: u32,
    /// The newest `TSval` of the sender.
    stamp: u32,
    /// New segments since the last report, and the end of its range.
    unreported: u32,
    through: u64,
    due: Due,
    /// Bytes received from the sender's side minus bytes sent back.
    credit: u64,
    receiver: Receiver,
    /// Whether the receiver has sent more than a SYN-ACK, so that the sender may be answered.
    answered: bool,
    closing: [bool; 2],
}

/// The contents of a report: all bytes in `[from, through)` have passed, except those in some holes.
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

/// Returns the maximum number of ranges in a report with this key.
pub(crate) fn ranges(key: Option<Key>) -> usize {
    if key.is_some() { RANGES_TAGGED } else { RANGES }
}

#[derive(Clone, Copy, Debug)]
struct Receiver {
    /// Its highest acknowledgement, as an offset, and whether it has advanced.
    ack: u64,
    moved: bool,
    /// One past its last sequence number; its last window field and `TSval`.
    next: u32,
    window: u16,
    stamp: u32,
    /// The shift of its window fields, if the handshake was seen (RFC 7323 section 2.2).
    scale: Option<u8>,
    /// One past the highest byte for which it has ever announced room, as an offset.
    edge: Option<u64>,
}

/// Returns the shift of the receiver's window fields: both sides have to offer one (RFC 7323 section 2.2). `opening` is its SYN,
/// if that was seen.
fn window_scale(newcomer: &Newcomer, opening: Option<&Opening>, reply: &Segment) -> Option<u8> {
    match (&reply.options, opening) {
        _ if !newcomer.syn => None,
        _ if !newcomer.scales => Some(0),
        (Options::Syn(syn), _) => Some(syn.window_scale.unwrap_or(0)),
        (_, Some(opening)) => Some(opening.scale.unwrap_or(0)),
        _ => None,
    }
}

/// Returns whether a timestamp is plausible in flight while `known` is the newest one: it is not much older.
#[inline]
fn is_recent(stamp: u32, known: u32) -> bool {
    !is_after(known.wrapping_sub(SLACK), stamp)
}

impl Receiver {
    /// Notes the room that a segment announces above this acknowledgement.
    fn announce(&mut self, ack: u64, segment: &Segment) {
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let Some(scale) = self.scale.map(|scale| if segment.flags.has(Flags::SYN) { 0 } else { scale }) else { return };
        let edge = ack + (u64::from(segment.window) << scale);
        self.edge = Some(self.edge.map_or(edge, |known| known.max(edge)));
    }
}

impl Flow {
    /// Creates the flow of a newcomer that this segment of the receiver confirms.
    pub(crate) fn new(
        newcomer: &Newcomer,
        opening: Option<&Opening>,
        reply: &Segment,
        timestamps: Timestamps,
        now: Time,
    ) -> Flow {
        // Room below, for what is older.
        let first = (1 << 32) | u64::from(reply.ack);
        let mut receiver = Receiver {
            ack: first,
            moved: false,
            next: reply.seq.wrapping_add(reply.seq_len()),
            window: reply.window,
            stamp: timestamps.value,
            scale: window_scale(newcomer, opening, reply),
            edge: None,
        };
        receiver.announce(first, reply);
        Flow {
            announced: newcomer.announced,
            seen: now,
            start: newcomer.syn.then_some(newcomer.next),
            adrift: !newcomer.syn,
            inner: false,
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

    /// Returns whether a reset with this sequence number would be accepted (RFC 5961 section 3.2).
    pub(crate) fn is_next(&self, seq: u32) -> bool {
        self.high as u32 == seq
    }

    pub(crate) fn is_next_reply(&self, seq: u32) -> bool {
        self.receiver.next == seq
    }

    /// Returns the plausible distance between the highest byte and a segment of this flow.
    #[inline]
    fn span(&self) -> u64 {
        if self.adrift { SPAN_ADRIFT } else { SPAN.max(self.high - self.receiver.ack) }
    }

    /// Returns whether a segment belongs to this flow by its numbers: by the sender's window (in the spirit of RFC 5961), by the
    /// room that the receiver has announced (RFC 9293 section 3.10.7.4: it takes nothing beyond), then by the timestamps of both
    /// sides.
    #[inline]
    pub(crate) fn owns(&self, segment: &Segment, timestamps: Timestamps) -> bool {
        let Some(start) = self.offset(segment.seq) else { return false };
        let (end, span, ack) = (start + u64::from(segment.seq_len()), self.span(), self.receiver.ack);
        let in_window = start <= self.high + span && end < ack + NEAR && end + span >= ack;
        let has_room = self.receiver.edge.is_none_or(|edge| start + u64::from(segment.len) <= edge);
        let Timestamps { value, echo } = timestamps;
        in_window
            && has_room
            && is_recent(echo, self.receiver.stamp)
            && is_recent(self.receiver.stamp, echo)
            && is_recent(value, self.stamp)
    }

    /// Returns whether a segment of the receiver answers this flow by its numbers: it echoes what has passed here, and is
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

    /// Returns the offset of a sequence number near the highest byte, or `None` if it is not near.
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

    /// Processes a segment of the sender that the flow [owns](Flow::owns). Returns whether it came from the flow's neighbour, so
    /// that it may be answered. The neighbour changes with the first segment that continues the flow from another one.
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

    /// Begins the state at this offset, with the first segment of a flow that was running before.
    #[cold]
    fn begin(&mut self, at: u64) {
        self.adrift = false;
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

    /// Removes `[start, end)` from the holes; returns whether it was in one.
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
                (false, false) => {
                    self.remove_hole(at);
                    continue;
                }
                (true, false) => self.holes[at].end = start,
                (false, true) => self.holes[at].start = end,
                (true, true) => {
                    self.holes[at].end = start;
                    self.insert_hole(at + 1, Hole { start: end, ..hole });
                }
            }
            at += 1;
        }
        filled
    }

    /// Processes a segment of the receiver that [answers](Flow::is_answered_by) this flow.
    #[inline]
    pub(crate) fn reply(&mut self, segment: &Segment, timestamps: Timestamps, now: Time) {
        let Some(ack) = self.offset(segment.ack) else { return };
        self.seen = now;
        self.closing[1] |= segment.flags.has(Flags::FIN);
        self.answered |= !segment.flags.has(Flags::SYN);
        let next = segment.seq.wrapping_add(segment.seq_len());
        let known = &mut self.receiver;
        known.announce(ack, segment);
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
        self.through = self.through.max(ack);
        self.high = self.high.max(ack);
    }

    /// Notes that another PEP nearer to the receiver reports on this flow.
    pub(crate) fn yield_to_inner(&mut self) {
        self.inner = true;
    }

    /// Notes an announcement in a segment of the sender: it hears no PEP.
    pub(crate) fn announce(&mut self) {
        (self.announced, self.inner) = (true, false);
    }

    /// Removes the holes below this offset.
    fn forget_holes(&mut self, bottom: u64) {
        while self.open > 0 && self.holes[0].end <= bottom {
            self.remove_hole(0);
        }
        if let Some(hole) = self.holes().first_mut() {
            hole.start = hole.start.max(bottom);
        }
    }

    /// Returns whether a report is due, for a sender that accepts reports.
    #[inline]
    pub(crate) fn is_due(&self, every: u32, all: bool) -> bool {
        let asked =
            if self.announced { self.start.is_some() || self.receiver.moved } else { all && self.receiver.moved };
        let news = self.holes[..self.open].iter().any(|hole| hole.missing && !hole.reported);
        self.answered && asked && !self.inner && (self.due != Due::Nothing || news || self.unreported >= every)
    }

    /// Returns the contents of a due report, if there is anything new.
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

    /// Returns the report with these contents and marks them as reported; `None` if its packet, with an IP header of
    /// `ip_header` bytes, would exceed the bytes received and not yet answered.
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

    /// Returns the acknowledgement number of a report: an old one, which has no effect. Before any data is acknowledged, Linux
    /// answers an old one (RFC 5961 section 5.2); a sender that knows reports then gets the receiver's own.
    #[inline]
    fn base(&self, receiver: &Receiver) -> u64 {
        if self.announced && self.start.is_some() && !receiver.moved { receiver.ack } else { receiver.ack - 1 }
    }

    /// The range of a report, and the missing ranges in it.
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
