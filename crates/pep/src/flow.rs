//! What is remembered of a flow: how far its data has passed, which holes that has, and what a report needs to say.

use core::ops::Range;
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
    /// `high` at which the oldest of what is remembered lies too far back.
    full: u64,
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
            full: first + NEAR,
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
        if self.open == 0 && start == self.high {
            // As nearly all do.
            self.reach(end);
            self.unreported = self.unreported.saturating_add(packets);
            self.due = if segment.flags.has(Flags::PSH) { Due::All } else { Due::Nothing };
        } else if end < self.high + NEAR {
            self.pass_out_of_order(segment, start..end, stamp, packets);
        }
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
        let Some(known) = &mut self.receiver else {
            self.receiver = Some(Receiver { ack, moved: false, next, window: segment.window, stamp: value });
            self.full = self.full.min(ack + NEAR);
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
        let ack = known.ack;
        self.forget_below(ack);
    }

    /// What the receiver has is no hole, whichever way it took.
    #[inline]
    fn forget_below(&mut self, ack: u64) {
        if self.open > 0 {
            self.forget_holes(ack);
        }
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

    /// The highest byte is this one, or is still another.
    #[inline]
    fn reach(&mut self, end: u64) {
        self.high = self.high.max(end);
        if self.high > self.full {
            self.forget_old();
        }
    }

    /// What lies further back than any window reaches is forgotten.
    #[cold]
    fn forget_old(&mut self) {
        let bottom = self.high - NEAR;
        self.forget_holes(bottom);
        self.first = self.first.max(bottom);
        self.through = self.through.max(bottom);
        self.receiver = self.receiver.filter(|receiver| receiver.ack >= bottom);
        let (hole, ack) = (self.holes().first().map(|hole| hole.start), self.receiver.map(|receiver| receiver.ack));
        let oldest = [hole, ack].into_iter().flatten().fold(self.first.min(self.through), u64::min);
        self.full = oldest + NEAR;
    }

    /// Whether a report is due, for a sender that takes it.
    #[inline]
    pub(crate) fn is_due(&self, every: u32, all: bool) -> bool {
        let Some(receiver) = &self.receiver else { return false };
        let heard = self.announced || (all && receiver.moved);
        let news = self.holes[..self.open].iter().any(|hole| hole.missing && !hole.reported);
        heard && (self.due != Due::Nothing || news || self.unreported >= every)
    }

    /// What a report is to say that is due, if there is anything new.
    #[inline]
    pub(crate) fn news(&self) -> Option<News> {
        let receiver = self.receiver.as_ref()?;
        let news = match self.due {
            Due::Filled(start, end) => News { from: start.max(receiver.ack), through: end, missing: (0, 0) },
            // Nothing is known of what went before the flow was first seen.
            Due::Nothing | Due::All => self.overview(receiver.ack.max(self.first)),
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
    pub(crate) fn report(&mut self, news: &News, ip_header: u32) -> Option<(Segment, u32)> {
        let receiver = self.receiver.as_ref()?;
        let base = self.base(receiver);
        let number = |offset: u64| (offset - base) as u32;
        let mut report = Report::new(number(news.from), number(news.through));
        for hole in self.missing(news) {
            report.push(Block { start: number(hole.start), end: number(hole.end) });
        }
        let segment = Segment {
            seq: receiver.next,
            ack: base as u32,
            window: receiver.window,
            len: 0,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: receiver.stamp, echo: self.stamp }),
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
        if self.announced && !receiver.moved { receiver.ack } else { receiver.ack - 1 }
    }

    /// From where to where a report reaches, and what is missing in between.
    #[inline]
    fn overview(&self, floor: u64) -> News {
        if self.open == 0 {
            return News { from: floor, through: self.high, missing: (0, 0) };
        }
        let holes = &self.holes[..self.open];
        let missing = holes.iter().position(|hole| !hole.missing).unwrap_or(self.open);
        let top = holes.get(missing).map_or(self.high, |hole| hole.start);
        let missing = &holes[..missing];
        let last = missing.len().saturating_sub(RANGES);
        let first = missing.iter().position(|hole| !hole.reported).map_or(last, |new| new.min(last));
        let from = first.checked_sub(1).map_or(floor, |before| missing[before].end);
        let through = missing.get(first + RANGES).map_or(top, |next| next.start);
        News { from, through, missing: (first, missing.len().min(first + RANGES)) }
    }
}
