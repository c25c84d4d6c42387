//! What a PEP tells a sender, as a TCP option: which bytes have passed it and which are missing there.
//!
//! Source: this project's `docs/src/pep-messages.md`, on RFC 6994 (shared use of experimental TCP options). The papers of
//! the lightweight PEP leave the format open.

use crate::fields::{Block, Timestamps};
use crate::list::List;
pub use crate::siphash::Key;
use crate::siphash::sip_hash;
use arrayvec::ArrayVec;

/// The option's kind: an experiment (RFC 4727 section 7.1, RFC 6994).
pub const KIND: u8 = 253;
/// The experiment's identifier: "RW".
pub const EXID: u16 = 0x5257;
/// The identifier of reports that carry a tag: "RX".
pub const EXID_TAGGED: u16 = 0x5258;
/// Missing ranges in a report: as many as fit beside timestamps.
pub const RANGES: usize = 2;
/// Missing ranges in a report with a tag.
pub const RANGES_TAGGED: usize = 1;
/// Bytes of the announcement.
pub const ANNOUNCEMENT_LEN: usize = 4;
/// Bytes of a report without missing ranges, and of one range.
const BASE_LEN: usize = 12;
const RANGE_LEN: usize = 8;
/// Bytes of a tag.
const TAG_LEN: usize = 8;
/// Bytes of the longest report. A tag beside all ranges is never sent, but a report can hold both.
const MAX_LEN: usize = BASE_LEN + RANGES * RANGE_LEN + TAG_LEN;

/// Of the bytes in `[from, through)`, all have passed but those in the missing ranges. All numbers are offsets from the
/// segment's own acknowledgement number, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// First byte that the report is about.
    pub from: u32,
    /// One past the last.
    pub through: u32,
    missing: [Block; RANGES],
    ranges: u8,
    tag: Option<u64>,
}

/// What a TCP option of this experiment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender of the segment understands reports.
    Announcement,
    /// A PEP's report.
    Report(Report),
}

impl Report {
    /// A report that everything in `[from, through)` has passed.
    pub fn new(from: u32, through: u32) -> Report {
        Report { from, through, ..Report::default() }
    }

    /// Adds the tag that shows who made this report, for a segment with this acknowledgement number and these timestamps. It
    /// has [`RANGES_TAGGED`] missing ranges at most, and does not change any more.
    pub fn authenticate(&mut self, key: Key, ack: u32, timestamps: Timestamps) {
        debug_assert!(self.missing().len() <= RANGES_TAGGED, "there is room for its tag");
        self.tag = Some(self.expected_tag(key, ack, timestamps));
    }

    /// Whether it has a tag.
    pub fn is_tagged(&self) -> bool {
        self.tag.is_some()
    }

    /// Whether it has the tag that this key gives it in such a segment.
    pub fn is_authentic(&self, key: Key, ack: u32, timestamps: Timestamps) -> bool {
        self.tag == Some(self.expected_tag(key, ack, timestamps))
    }

    /// The tag that belongs to this report in a segment with this acknowledgement number and these timestamps: it binds the
    /// report to the connection, whose numbers these are, and to the moment: RFC 7323 section 5.3 and the sender's check of
    /// `TSecr` make old tags useless.
    fn expected_tag(&self, key: Key, ack: u32, timestamps: Timestamps) -> u64 {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let range = self.missing().first().copied().unwrap_or_default();
        let Timestamps { value, echo } = timestamps;
        let ranges = self.missing().len() as u32;
        let words = [pair(ack, value), pair(echo, self.from), pair(self.through, range.start), pair(range.end, ranges)];
        sip_hash(key, &words)
    }

    /// Adds a missing range, after those before; whether there was room.
    pub fn push(&mut self, range: Block) -> bool {
        let slot = self.missing.get_mut(usize::from(self.ranges));
        let room = slot.is_some();
        if let Some(slot) = slot {
            *slot = range;
            self.ranges += 1;
        }
        room
    }

    /// The missing ranges, in rising order.
    #[inline]
    pub fn missing(&self) -> &[Block] {
        &self.missing[..usize::from(self.ranges)]
    }

    /// Bytes of the option: a multiple of 4.
    #[inline]
    pub fn option_len(&self) -> u32 {
        let tag = if self.tag.is_some() { TAG_LEN } else { 0 };
        (BASE_LEN + RANGE_LEN * usize::from(self.ranges) + tag) as u32
    }

    /// Whether ranges are in order, not empty and within the report.
    pub fn is_sound(&self) -> bool {
        let mut at = self.from;
        let sound = self.missing().iter().all(|range| {
            let sound = at <= range.start && range.start < range.end;
            at = range.end;
            sound
        });
        sound && self.from < self.through && at <= self.through
    }

    /// The option's bytes.
    pub fn to_bytes(&self) -> ArrayVec<u8, MAX_LEN> {
        let [a, b] = if self.tag.is_some() { EXID_TAGGED } else { EXID }.to_be_bytes();
        let ranges = self.missing().iter().flat_map(|range| [range.start, range.end]);
        let numbers = [self.from, self.through].into_iter().chain(ranges).flat_map(u32::to_be_bytes);
        let tag = self.tag.into_iter().flat_map(u64::to_be_bytes);
        [KIND, self.option_len() as u8, a, b].into_iter().chain(numbers).chain(tag).collect()
    }
}

/// The bytes of the announcement.
pub fn announcement() -> [u8; ANNOUNCEMENT_LEN] {
    let [a, b] = EXID.to_be_bytes();
    [KIND, ANNOUNCEMENT_LEN as u8, a, b]
}

impl Message {
    /// What an option says, from its kind on; `None` if it is another one, or not sound.
    pub fn parse(option: &[u8]) -> Option<Message> {
        let (&[KIND, len, a, b], rest) = option.split_first_chunk::<4>()? else { return None };
        if usize::from(len) != option.len() {
            return None;
        }
        let (rest, tag) = match u16::from_be_bytes([a, b]) {
            EXID if rest.is_empty() => return Some(Message::Announcement),
            EXID => (rest, None),
            EXID_TAGGED => rest.split_last_chunk().map(|(rest, tag)| (rest, Some(u64::from_be_bytes(*tag))))?,
            _ => return None,
        };
        let (words, &[]) = rest.as_chunks::<4>() else { return None };
        let [from, through, ranges @ ..] = words else { return None };
        let (ranges, &[]) = ranges.as_chunks::<2>() else { return None };
        let number = |word: &[u8; 4]| u32::from_be_bytes(*word);
        let mut report = Report::new(number(from), number(through));
        let fits = ranges.iter().all(|[start, end]| report.push(Block { start: number(start), end: number(end) }));
        report.tag = tag;
        let fits = fits && (tag.is_none() || report.missing().len() <= RANGES_TAGGED);
        (fits && report.is_sound()).then_some(Message::Report(report))
    }

    /// The first message of this experiment among a TCP header's options.
    pub fn find(options: &[u8]) -> Option<Message> {
        List(options).find_map(Message::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolero::check;

    fn report() -> Report {
        let mut report = Report::new(1, 50_000);
        assert!(report.push(Block { start: 1_449, end: 2_897 }));
        assert!(report.push(Block { start: 10_000, end: 50_000 }));
        report
    }

    #[test]
    fn the_bytes_are_those_of_the_page() {
        let bytes = Report::new(1, 2_897).to_bytes();
        assert_eq!(bytes[..], [253, 12, 0x52, 0x57, 0, 0, 0, 1, 0, 0, 0x0b, 0x51]);
        let bytes = report().to_bytes();
        assert_eq!((bytes.len(), bytes[1]), (28, 28));
        assert_eq!(&bytes[12..16], [0, 0, 0x05, 0xa9]);
        assert_eq!(Message::parse(&[253, 4, 0x52, 0x57]), Some(Message::Announcement));
    }

    #[test]
    fn what_is_written_is_read_wherever_it_stands() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        options.extend(report().to_bytes());
        assert_eq!(options.len(), 40);
        assert_eq!(Message::find(&options), Some(Message::Report(report())));
    }

    #[test]
    fn a_tag_is_written_and_read_and_belongs_to_one_segment() {
        let (key, timestamps) = (Key::new([7; 16]), Timestamps { value: 3, echo: 4 });
        for range in [None, Some(Block { start: 1_449, end: 2_897 })] {
            let mut report = Report::new(1, 50_000);
            range.map(|range| report.push(range));
            assert!(!report.is_authentic(key, 5, timestamps) && !report.is_tagged());
            report.authenticate(key, 5, timestamps);
            let mut bytes = report.to_bytes();
            assert_eq!(bytes[..4], [253, if range.is_some() { 28 } else { 20 }, 0x52, 0x58]);
            let Some(Message::Report(read)) = Message::parse(&bytes) else { panic!("it is one") };
            assert_eq!((read, report.option_len() as usize), (report, bytes.len()));
            assert!(read.is_authentic(key, 5, timestamps));
            assert!(!read.is_authentic(key, 6, timestamps) && !read.is_authentic(Key::new([8; 16]), 5, timestamps));
            // Without the tag, and with another identifier, it is another report or none.
            bytes[3] = 0x57;
            assert_ne!(Message::parse(&bytes), Some(Message::Report(report)));
        }
    }

    #[test]
    fn a_third_range_has_no_room() {
        let mut report = report();
        assert!(!report.push(Block { start: 60_000, end: 70_000 }));
        assert_eq!(report.missing().len(), 2);
    }

    #[test]
    fn what_is_not_sound_is_no_report() {
        let unsound = [
            (Report::new(5, 5), None),
            (Report::new(6, 5), None),
            (Report::new(5, 10), Some(Block { start: 7, end: 7 })),
            (Report::new(5, 10), Some(Block { start: 4, end: 7 })),
            (Report::new(5, 10), Some(Block { start: 7, end: 11 })),
        ];
        for (mut report, range) in unsound {
            range.map(|range| report.push(range));
            assert_eq!(Message::parse(&report.to_bytes()), None, "{report:?}");
        }
        // Another experiment, a wrong length, half a range.
        assert_eq!(Message::parse(&[253, 4, 0x52, 0x58]), None);
        assert_eq!(Message::parse(&[253, 5, 0x52, 0x57]), None);
        assert_eq!(Message::parse(&[253, 16, 0x52, 0x57, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 2]), None);
    }

    #[test]
    fn any_bytes_are_a_sound_message_or_none() {
        check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
            if let Some(Message::Report(report)) = Message::find(bytes) {
                assert!(report.is_sound());
                assert_eq!(Message::parse(&report.to_bytes()), Some(Message::Report(report)));
            }
        });
    }

    #[test]
    fn a_tag_is_the_hash_of_the_words_of_the_page() {
        // `docs/src/pep-messages.md`: acknowledgement and `TSval`, `TSecr` and from, through and start, end and the count of
        // ranges; zeros without a range.
        let (key, timestamps) = (Key::new([7; 16]), Timestamps { value: 3, echo: 4 });
        let mut report = Report::new(1, 9);
        let words = [0x5_0000_0003, 0x4_0000_0001, 0x9_0000_0000, 0];
        assert_eq!(report.expected_tag(key, 5, timestamps), sip_hash(key, &words));
        assert!(report.push(Block { start: 2, end: 6 }));
        let words = [0x5_0000_0003, 0x4_0000_0001, 0x9_0000_0002, 0x6_0000_0001];
        assert_eq!(report.expected_tag(key, 5, timestamps), sip_hash(key, &words));
    }

    #[test]
    fn every_number_of_a_report_changes_its_tag() {
        let key = Key::new(core::array::from_fn(|i| i as u8));
        let report = |from, through, range: Option<(u32, u32)>| {
            let mut report = Report::new(from, through);
            range.map(|(start, end)| report.push(Block { start, end }));
            report
        };
        let tag = |report: &Report, ack, value, echo| report.expected_tag(key, ack, Timestamps { value, echo });
        let one = report(1, 9, Some((2, 3)));
        let mut tags = vec![
            tag(&one, 1, 2, 3),
            tag(&one, 2, 2, 3),
            tag(&one, 1, 3, 3),
            tag(&one, 1, 2, 4),
            tag(&report(0, 9, Some((2, 3))), 1, 2, 3),
            tag(&report(1, 8, Some((2, 3))), 1, 2, 3),
            tag(&report(1, 9, Some((1, 3))), 1, 2, 3),
            tag(&report(1, 9, Some((2, 4))), 1, 2, 3),
            tag(&report(1, 9, None), 1, 2, 3),
        ];
        let other = Key::new([1; 16]);
        tags.push(one.expected_tag(other, 1, Timestamps { value: 2, echo: 3 }));
        let count = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), count);
    }

    #[test]
    fn ranges_are_in_order_not_empty_and_within_the_report() {
        // Of the bytes 5 to 20.
        for (ranges, sound) in [
            (&[][..], true),
            (&[(5, 20)], true),
            (&[(5, 6)], true),
            (&[(4, 6)], false),
            (&[(19, 20)], true),
            (&[(19, 21)], false),
            (&[(7, 7)], false),
            (&[(8, 7)], false),
            // Two may touch and not overlap, and come in rising order.
            (&[(6, 10), (10, 12)], true),
            (&[(6, 10), (9, 12)], false),
            (&[(10, 12), (6, 10)], false),
            (&[(6, 10), (12, 12)], false),
            (&[(6, 10), (12, 20)], true),
            (&[(6, 10), (12, 21)], false),
            (&[(6, 6), (12, 20)], false),
        ] {
            let mut report = Report::new(5, 20);
            ranges.iter().for_each(|&(start, end)| assert!(report.push(Block { start, end })));
            assert_eq!(report.is_sound(), sound, "{ranges:?}");
            let parsed = Message::parse(&report.to_bytes());
            assert_eq!(parsed, sound.then_some(Message::Report(report)), "{ranges:?}");
            assert_eq!(report.option_len() as usize, 12 + 8 * ranges.len());
        }
    }

    #[test]
    fn a_tagged_report_of_two_ranges_is_none() {
        let mut bytes = report().to_bytes().to_vec();
        bytes.extend([7; 8]);
        (bytes[1], bytes[3]) = (36, 0x58);
        assert_eq!(Message::parse(&bytes), None);
        // With one range it is one.
        bytes.drain(20..28);
        bytes[1] = 28;
        assert!(matches!(Message::parse(&bytes), Some(Message::Report(report)) if report.is_tagged()));
    }
}
