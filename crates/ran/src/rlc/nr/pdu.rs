//! RLC PDUs as runs of positions, and their sizes (38.322, 6.2; 38.321, 6.1.2).
//!
//! Deviation: an SO has two bytes, but the offset that it stands for is not limited to 65,535; an SDU may have 16 MB.

/// A byte of an SDU: the number of the SDU and the offset in it (SO). The end of an SDU is the start of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rlc) struct Pos(u64);

/// Bits of the offset, which leaves 40 for the number. An SO has 16, enough for any PDCP SDU (9000 bytes).
const OFFSET_BITS: u32 = 24;

/// The longest SDU with its header.
const LONGEST: u32 = (1 << OFFSET_BITS) - 1;

impl Pos {
    /// Returns the first byte of SDU `number`.
    #[inline]
    pub(in crate::rlc) fn start(number: u64) -> Pos {
        Pos(number << OFFSET_BITS)
    }

    #[inline]
    pub(in crate::rlc) fn new(number: u64, so: u32) -> Pos {
        Pos((number << OFFSET_BITS) | u64::from(so))
    }

    #[inline]
    pub(in crate::rlc) fn number(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    #[inline]
    pub(in crate::rlc) fn so(self) -> u32 {
        (self.0 & u64::from(LONGEST)) as u32
    }

    /// Returns the number of the first SDU that begins here or later.
    #[inline]
    pub(in crate::rlc) fn ceil(self) -> u64 {
        (self.0 + u64::from(LONGEST)) >> OFFSET_BITS
    }
}

/// Consecutive bytes of SDUs: each SDU in it is a PDU of its own, and only the first and the last can be segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Run {
    pub(in crate::rlc) from: Pos,
    pub(in crate::rlc) to: Pos,
    /// UM: the SN of its first segment; a second one has the next SN.
    pub(in crate::rlc) sn: u16,
    /// AM: which of its PDUs, counted from 1, are the first and the last with a poll; 0 is none.
    pub(in crate::rlc) polls: [u16; 2],
}

impl Run {
    #[inline]
    pub(in crate::rlc) fn at(from: Pos) -> Run {
        Run { from, to: from, ..Run::default() }
    }

    /// Sets the poll bit of the PDU with a part of SDU `number`.
    #[inline]
    pub(in crate::rlc) fn poll(&mut self, number: u64) {
        let index = (number - self.from.number()) as u16 + 1;
        if self.polls[0] == 0 {
            self.polls[0] = index;
        }
        self.polls[1] = index;
    }
}

/// A STATUS PDU. Its NACKs are in the log of the receiving entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Report {
    /// ACK_SN as an SDU's number: all before it has arrived, except what is reported missing.
    pub(in crate::rlc) ack: u64,
    /// The first NACK in the log, counted from the first ever.
    pub(in crate::rlc) first: u64,
    /// Number of NACKs.
    pub(in crate::rlc) nacks: u32,
}

/// The maximum number of runs in a block: one of new data, and retransmissions.
pub(in crate::rlc) const MAX_RUNS: usize = 12;

/// NR's contents of a block.
#[derive(Clone, Debug, Default)]
pub(in crate::rlc) struct Contents {
    /// Number of PDUs.
    pdus: u32,
    len: u8,
    has_report: bool,
    report: Report,
    runs: [Run; MAX_RUNS],
}

impl Contents {
    #[inline]
    pub(in crate::rlc) fn clear(&mut self) {
        (self.pdus, self.len, self.has_report) = (0, 0, false);
    }

    #[inline]
    pub(in crate::rlc) fn pdus(&self) -> usize {
        self.pdus as usize
    }

    #[inline]
    pub(in crate::rlc) fn runs(&self) -> &[Run] {
        &self.runs[..usize::from(self.len)]
    }

    #[inline]
    pub(in crate::rlc) fn report(&self) -> Option<&Report> {
        self.has_report.then_some(&self.report)
    }

    #[inline]
    pub(in crate::rlc) fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_RUNS
    }

    /// Adds a run of at least one PDU.
    #[inline]
    pub(in crate::rlc) fn push(&mut self, run: Run) {
        self.pdus += (run.to.ceil() - run.from.number()) as u32;
        self.runs[usize::from(self.len)] = run;
        self.len += 1;
    }

    pub(in crate::rlc) fn set_report(&mut self, report: Report) {
        self.pdus += 1;
        self.report = report;
        self.has_report = true;
    }
}

/// 38.321, 6.1.2: the subheader of a MAC subPDU has an L field of 8 or 16 bits.
#[inline]
pub(in crate::rlc) fn subheader(pdu: u32) -> u32 {
    if pdu < 256 { 2 } else { LONG_SUBHEADER }
}

/// The longest MAC subheader.
pub(in crate::rlc) const LONG_SUBHEADER: u32 = 3;

/// Returns the size of `pdu` bytes with the MAC subheader.
#[inline]
pub(in crate::rlc) fn with_subheader(pdu: u32) -> u32 {
    pdu + subheader(pdu)
}

/// Returns the size of the longest PDU that fits `room` with its MAC subheader.
#[inline]
pub(in crate::rlc) fn largest(room: u32) -> u32 {
    if room >= 256 + LONG_SUBHEADER { room - LONG_SUBHEADER } else { room.saturating_sub(2).min(255) }
}

/// Bytes of an SO field.
const SO: u32 = 2;

/// The lengths of the headers of data PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) struct Headers {
    /// Of a complete SDU.
    pub(in crate::rlc) whole: u32,
    /// Of a first segment. Later ones also have an SO.
    pub(in crate::rlc) segment: u32,
}

impl Headers {
    /// Returns how many bytes of an SDU fit `room` in one PDU, and the bytes they take with all headers. They begin at
    /// `so`, `left` bytes are to be sent, which reach to the end of the SDU if `ends`. Returns `None` if none fits.
    #[inline]
    pub(in crate::rlc) fn cut(self, so: u32, left: u32, ends: bool, room: u32) -> Option<(u32, u32)> {
        let most = largest(room);
        if so == 0 && ends && self.whole + left <= most {
            return Some((left, with_subheader(self.whole + left)));
        }
        let header = if so == 0 { self.segment } else { self.segment + SO };
        let take = left.min(most.saturating_sub(header));
        (take > 0).then(|| (take, with_subheader(header + take)))
    }

    /// Returns an upper bound of the headers of `pdus` PDUs in `runs` runs, of which only the first is a segment.
    #[inline]
    pub(in crate::rlc) fn estimate(self, pdus: u64, runs: u64) -> u64 {
        pdus * u64::from(self.whole + LONG_SUBHEADER) + runs * u64::from(self.segment - self.whole + SO)
    }
}

/// 38.322, 6.2.2.5: the sizes of a STATUS PDU and its elements.
pub(in crate::rlc) const STATUS_HEADER: u32 = 3;
/// SOstart and SOend.
pub(in crate::rlc) const STATUS_OFFSETS: u32 = 4;
/// NACK range.
pub(in crate::rlc) const STATUS_RANGE: u32 = 1;
/// The largest NACK range.
pub(in crate::rlc) const MOST_NACKED: u64 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subheader_has_three_bytes_from_256_on() {
        for (room, pdu) in [(0, 0), (2, 0), (3, 1), (256, 254), (257, 255), (258, 255), (259, 256), (1000, 997)] {
            assert_eq!(largest(room), pdu, "{room} bytes");
            assert!(with_subheader(pdu) <= room.max(2));
        }
        assert_eq!([255, 256].map(with_subheader), [257, 259]);
    }

    #[test]
    fn a_segment_costs_what_the_standard_says() {
        let am = Headers { whole: 2, segment: 2 };
        // 6.2.2.4: an SO unless the segment is the first.
        assert_eq!(am.cut(0, 100, true, 104), Some((100, 104)), "2 bytes of header, and 2 of subheader");
        assert_eq!(am.cut(0, 100, true, 102), Some((98, 102)));
        assert_eq!(am.cut(98, 2, true, 100), Some((2, 8)), "2 of header, 2 of SO, 2 of data, 2 of subheader");
        assert_eq!([4, 5].map(|room| am.cut(0, 9, true, room)), [None, Some((1, 5))]);
        assert_eq!([6, 7].map(|room| am.cut(1, 9, true, room)), [None, Some((1, 7))]);
        let um = Headers { whole: 1, segment: 2 };
        assert_eq!(um.cut(0, 100, true, 103), Some((100, 103)), "6.2.2.3: no SN in a complete SDU");
        assert_eq!(um.cut(0, 100, true, 102), Some((98, 102)), "and 12 bits of SN in a segment");
        assert_eq!(um.cut(98, 2, true, 102), Some((2, 8)));
    }

    #[test]
    fn a_position_is_ordered_by_sdu_and_offset() {
        assert!(Pos::new(4, 9000) < Pos::start(5) && Pos::start(5) < Pos::new(5, 1));
        let pos = Pos::new(7, 40);
        assert_eq!((pos.number(), pos.so(), pos.ceil()), (7, 40, 8));
        assert_eq!(Pos::start(7).ceil(), 7);
    }
}
