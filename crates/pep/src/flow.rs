//! What is remembered of a flow: how far its data has passed, which holes that has, and what a report needs to say.

use tcp::report::{RANGES, Report};
use tcp::segment::{Block, Flags, Options, Segment, Timestamps};
use units::Time;

/// Holes that are remembered at most. A segment that would open another is not noted.
const HOLES: usize = 8;
/// Segments that pass above a hole before it counts as missing (RFC 5681's three duplicates), and the most that
/// reordering can make of it (Linux `tcp_max_reordering`).
const REORDERING: u32 = 3;
const REORDERING_MAX: u32 = 300;
/// Sequence numbers are near if they differ by less: no window is larger (RFC 7323 section 2.3).
const NEAR: u64 = 1 << 30;

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
    /// The first byte after the SYN.
    start: u32,
    /// Where it was first seen, and one past the highest byte that has passed.
    first: u64,
    high: u64,
    /// In rising order, the first `open` of them, all below `high`.
    holes: [Hole; HOLES],
    open: usize,
    /// What makes a hole count as missing.
    reordering: u32,
    /// The first and the newest `TSval` of the sender.
    first_stamp: u32,
    stamp: u32,
    /// New segments since the last report; the end of what it was about.
    unreported: u32,
    through: u64,
    due: Due,
    /// Bytes that came and were not answered with bytes.
    credit: u64,
    /// What is known of the receiver; `None` until it has answered the sender.
    receiver: Option<Receiver>,
    closing: [bool; 2],
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

/// Whether a timestamp or sequence number is later.
#[inline]
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Flow {
    /// A flow whose next byte is `next`.
    pub(crate) fn new(next: u32, stamp: u32, announced: bool, now: Time) -> Flow {
        // Room below, for what is older.
        let first = (1 << 32) | u64::from(next);
        Flow {
            announced,
            seen: now,
            start: next,
            first,
            high: first,
            holes: [Hole::default(); HOLES],
            open: 0,
            reordering: REORDERING,
            first_stamp: stamp,
            stamp,
            unreported: 0,
            through: first,
            due: Due::Nothing,
            credit: 0,
            receiver: None,
            closing: [false; 2],
        }
    }

    pub(crate) fn starts_at(&self, next: u32) -> bool {
        self.start == next
    }

    /// Whether a reset with this sequence number would be taken.
    pub(crate) fn is_next(&self, seq: u32) -> bool {
        self.high as u32 == seq
    }

    pub(crate) fn is_next_reply(&self, seq: u32) -> bool {
        self.receiver.is_some_and(|receiver| receiver.next == seq)
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

    /// A segment of the sender passes, or so many of them in one.
    #[inline]
    pub(crate) fn pass(&mut self, segment: &Segment, stamp: u32, packets: u32, packet_len: u32, now: Time) {
        self.seen = now;
        self.due = Due::Nothing;
        self.credit = self.credit.saturating_add(packet_len.into());
        self.closing[0] |= segment.flags.has(Flags::FIN);
        if is_after(stamp, self.stamp) {
            self.stamp = stamp;
        }
        let Some(start) = self.offset(segment.seq) else { return };
        let end = start + u64::from(segment.seq_len());
        if end >= self.high + NEAR {
            return;
        }
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
        self.reach(end);
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

    /// A segment of the receiver passes.
    #[inline]
    pub(crate) fn reply(&mut self, segment: &Segment, now: Time) {
        let Some(timestamps) = segment.timestamps.filter(|_| segment.flags.has(Flags::ACK)) else { return };
        // It answers what has passed here: its echo proves it.
        let Timestamps { value, echo } = timestamps;
        if is_after(self.first_stamp, echo) || is_after(echo, self.stamp) {
            return;
        }
        let Some(ack) = self.offset(segment.ack) else { return };
        self.seen = now;
        self.closing[1] |= segment.flags.has(Flags::FIN);
        let next = segment.seq.wrapping_add(segment.seq_len());
        let Some(mut known) = self.receiver else {
            self.receiver = Some(Receiver { ack, moved: false, next, window: segment.window, stamp: value });
            return self.forget_below(ack);
        };
        known.moved |= ack > known.ack;
        known.ack = known.ack.max(ack);
        if is_after(next, known.next) {
            known.next = next;
        }
        if !is_after(known.stamp, value) {
            (known.stamp, known.window) = (value, segment.window);
        }
        self.receiver = Some(known);
        self.forget_below(known.ack);
    }

    /// What the receiver has is no hole, whichever way it took.
    #[inline]
    fn forget_below(&mut self, ack: u64) {
        self.forget_holes(ack);
        self.reach(ack);
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

    /// The highest byte is this one, or is still another. What lies further back than any window reaches is forgotten.
    fn reach(&mut self, end: u64) {
        self.high = self.high.max(end);
        let bottom = self.high - NEAR;
        self.forget_holes(bottom);
        self.first = self.first.max(bottom);
        self.through = self.through.max(bottom);
        self.receiver = self.receiver.filter(|receiver| receiver.ack >= bottom);
    }

    /// Whether a report is due, for a sender that takes it.
    #[inline]
    pub(crate) fn is_due(&self, every: u32, all: bool) -> bool {
        let Some(receiver) = &self.receiver else { return false };
        let heard = self.announced || (all && receiver.moved);
        let news = self.holes[..self.open].iter().any(|hole| hole.missing && !hole.reported);
        heard && (self.due != Due::Nothing || news || self.unreported >= every)
    }

    /// The report that is due, if it says anything new.
    #[inline]
    pub(crate) fn report(&self) -> Option<Segment> {
        let receiver = self.receiver?;
        let base = self.base(&receiver);
        let (from, through, missing) = match self.due {
            Due::Filled(start, end) => (start.max(receiver.ack), end, &[][..]),
            // Nothing is known of what went before the flow was first seen.
            Due::Nothing | Due::All => self.overview(receiver.ack.max(self.first)),
        };
        let says_news = through > self.through || missing.iter().any(|hole| !hole.reported);
        if through <= from || !(says_news || matches!(self.due, Due::Filled(..))) {
            return None;
        }
        let number = |offset: u64| (offset - base) as u32;
        let mut report = Report::new(number(from), number(through));
        for hole in missing {
            report.push(Block { start: number(hole.start), end: number(hole.end) });
        }
        Some(Segment {
            seq: receiver.next,
            ack: base as u32,
            window: receiver.window,
            len: 0,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: receiver.stamp, echo: self.stamp }),
            options: Options::Report(report),
        })
    }

    /// The acknowledgement number of a report: an old one, which changes nothing. Before any data is acknowledged Linux
    /// answers an old one (RFC 5961 section 5.2); a sender that knows reports then gets the receiver's own.
    #[inline]
    fn base(&self, receiver: &Receiver) -> u64 {
        if self.announced && !receiver.moved { receiver.ack } else { receiver.ack - 1 }
    }

    /// From where to where a report reaches, and what is missing in between.
    #[inline]
    fn overview(&self, floor: u64) -> (u64, u64, &[Hole]) {
        let holes = &self.holes[..self.open];
        let missing = holes.iter().position(|hole| !hole.missing).unwrap_or(self.open);
        let top = holes.get(missing).map_or(self.high, |hole| hole.start);
        let missing = &holes[..missing];
        let last = missing.len().saturating_sub(RANGES);
        let first = missing.iter().position(|hole| !hole.reported).map_or(last, |new| new.min(last));
        let from = first.checked_sub(1).map_or(floor, |before| missing[before].end);
        let through = missing.get(first + RANGES).map_or(top, |next| next.start);
        (from, through, &missing[first..missing.len().min(first + RANGES)])
    }

    /// Whether a reply of so many bytes is no more than what came; if so, it is taken off.
    #[inline]
    pub(crate) fn afford(&mut self, len: u32) -> bool {
        let rest = self.credit.checked_sub(len.into());
        self.credit = rest.unwrap_or(self.credit);
        rest.is_some()
    }

    /// A report was sent.
    #[inline]
    pub(crate) fn note_report(&mut self, segment: &Segment) {
        let Options::Report(report) = segment.options else { return };
        if matches!(self.due, Due::Filled(..)) {
            return;
        }
        let through = self.receiver.map_or(0, |receiver| self.base(&receiver)) + u64::from(report.through);
        self.unreported = 0;
        self.through = self.through.max(through);
        let from = through - u64::from(report.through.wrapping_sub(report.from));
        for hole in self.holes().iter_mut() {
            hole.reported |= hole.missing && hole.start >= from && hole.end <= through;
        }
    }
}
