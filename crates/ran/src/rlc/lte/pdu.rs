//! RLC PDUs as ranges of a direction's stream (36.322, 6.2).

use super::elements::LengthIndicators;
use crate::pdcp::Concatenation;

/// 36.322, 6.2.1.4: the fixed part of the header of an AMD PDU.
pub(in crate::rlc) const AMD_HEADER: u32 = 2;
/// 36.322, 6.2.1.5: likewise of an AMD PDU segment.
pub(in crate::rlc) const SEGMENT_HEADER: u32 = 4;
/// 36.322, 6.2.2.8: SOstart and SOend have 15 bits, and the maximum value means the end. This is also the maximum
/// length of a data field.
pub(in crate::rlc) const SO_END: u16 = 0x7fff;
/// 36.321, 6.1.2: the longest MAC subheader, needed for a long PDU that is not the last of its block.
pub(in crate::rlc) const MAC_SUBHEADER: u32 = 3;
/// 36.321, 6.2.1: from this many bytes on, a length field has 15 bits instead of 7.
const LONG_PDU: u32 = 128;
/// 36.322, 7.1: modulus of the sequence numbers of AMD PDUs.
const AM_MODULUS: u16 = 1024;
/// AM_Window_Size (7.2).
pub(in crate::rlc) const AM_WINDOW: u16 = 512;

/// Maximum number of data PDUs in a block.
const MAX_PDUS: usize = 8;
/// Maximum number of runs of NACKs in a STATUS PDU.
const MAX_NACKS: usize = 8;
/// 36.322, 6.2.1.6, in bits: D/C, CPT, ACK_SN and E1; NACK_SN with E1 and E2; SOstart and SOend.
const STATUS_BITS: u32 = 15;
const NACK_BITS: u32 = 12;
const SO_BITS: u32 = 30;

/// Returns `a - b` of AM's sequence numbers: the position of `a` in a window that begins at `b`.
#[inline]
pub(in crate::rlc) fn ahead(a: u16, b: u16) -> u16 {
    a.wrapping_sub(b) % AM_MODULUS
}

/// Returns the sequence number `n` after `sn`.
#[inline]
pub(in crate::rlc) fn after(sn: u16, n: u16) -> u16 {
    sn.wrapping_add(n) % AM_MODULUS
}

/// A data PDU, whole or a segment of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Pdu {
    /// Start of its data field in the stream.
    pub(in crate::rlc) start: u64,
    /// Length of its data field.
    pub(in crate::rlc) len: u16,
    /// Start of its data field in that of the whole PDU (SO); 0 for a whole PDU.
    pub(in crate::rlc) so: u16,
    pub(in crate::rlc) sn: u16,
    /// LSF: whether it ends where the PDU ends. True for a whole PDU.
    pub(in crate::rlc) last: bool,
    /// P.
    pub(in crate::rlc) poll: bool,
}

impl Pdu {
    #[inline]
    pub(in crate::rlc) fn is_whole(&self) -> bool {
        self.so == 0 && self.last
    }

    #[inline]
    pub(in crate::rlc) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// PDUs reported missing by a STATUS PDU: `count` whole ones starting at `sn`, or bytes `from..to` of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Nack {
    pub(in crate::rlc) sn: u16,
    pub(in crate::rlc) count: u16,
    pub(in crate::rlc) from: u16,
    /// [`SO_END`] is the end of the PDU.
    pub(in crate::rlc) to: u16,
}

impl Nack {
    fn is_whole(&self) -> bool {
        self.from == 0 && self.to == SO_END
    }
}

/// A STATUS PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Status {
    /// Everything before this has arrived except what is reported missing.
    pub(in crate::rlc) ack_sn: u16,
    runs: u8,
    bits: u16,
    nacks: [Nack; MAX_NACKS],
}

impl Status {
    /// Creates a STATUS PDU that reports nothing missing.
    pub(in crate::rlc) fn new() -> Status {
        Status { bits: STATUS_BITS as u16, ..Status::default() }
    }

    pub(in crate::rlc) fn bytes(&self) -> u32 {
        u32::from(self.bits).div_ceil(8)
    }

    pub(in crate::rlc) fn nacks(&self) -> &[Nack] {
        &self.nacks[..usize::from(self.runs)]
    }

    /// Adds a NACK, in order, if it fits into `room` bytes.
    pub(in crate::rlc) fn push(&mut self, sn: u16, from: u16, to: u16, room: u32) -> bool {
        let nack = Nack { sn, count: 1, from, to };
        let bits = u32::from(self.bits) + NACK_BITS + if nack.is_whole() { 0 } else { SO_BITS };
        if bits > room.saturating_mul(8) || bits > u32::from(u16::MAX) {
            return false;
        }
        let runs = usize::from(self.runs);
        match self.nacks[..runs].last_mut() {
            Some(run) if run.is_whole() && nack.is_whole() && after(run.sn, run.count) == sn => run.count += 1,
            _ if runs < MAX_NACKS => {
                self.nacks[runs] = nack;
                self.runs += 1;
            }
            _ => return false,
        }
        self.bits = bits as u16;
        true
    }

    /// Extends the last NACK, if it is of a portion of `sn`, to the end of that PDU.
    pub(in crate::rlc) fn extend(&mut self, sn: u16) -> bool {
        let last = self.nacks[..usize::from(self.runs)].last_mut().filter(|last| last.sn == sn && last.count == 1);
        last.is_some_and(|last| {
            last.to = SO_END;
            true
        })
    }
}

/// LTE's contents of a block: a STATUS PDU about the other direction, and data PDUs.
#[derive(Clone, Debug, Default)]
pub(in crate::rlc) struct Contents {
    /// Bytes of its last PDU.
    last: u32,
    has_status: bool,
    len: u8,
    pdus: [Pdu; MAX_PDUS],
    status: Status,
}

impl Contents {
    #[inline]
    pub(in crate::rlc) fn clear(&mut self) {
        (self.last, self.has_status, self.len) = (0, false, 0);
    }

    /// Returns the number of PDUs.
    #[inline]
    pub(in crate::rlc) fn pdus(&self) -> usize {
        usize::from(self.len) + usize::from(self.has_status)
    }

    #[inline]
    pub(in crate::rlc) fn data(&self) -> &[Pdu] {
        &self.pdus[..usize::from(self.len)]
    }

    #[inline]
    pub(in crate::rlc) fn status(&self) -> Option<&Status> {
        self.has_status.then_some(&self.status)
    }

    /// Returns whether there is no room for another data PDU.
    #[inline]
    pub(in crate::rlc) fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_PDUS
    }

    /// Returns the additional overhead of another PDU after its last, in bytes: the subheader of the last gets a length
    /// field of 7 or 15 bits (36.321 6.2.1), and the new one has a subheader without.
    #[inline]
    pub(in crate::rlc) fn subheader(&self) -> u32 {
        match self.last {
            0 => 0,
            last if last < LONG_PDU => MAC_SUBHEADER - 1,
            _ => MAC_SUBHEADER,
        }
    }

    /// Adds a data PDU of `bytes`; returns by how much the block grows.
    #[inline]
    pub(in crate::rlc) fn push(&mut self, pdu: Pdu, bytes: u32) -> u32 {
        self.pdus[usize::from(self.len)] = pdu;
        self.len += 1;
        self.add(bytes)
    }

    /// Sets the STATUS PDU; returns by how much the block grows.
    pub(in crate::rlc) fn set_status(&mut self, status: Status) -> u32 {
        self.status = status;
        self.has_status = true;
        self.add(status.bytes())
    }

    #[inline]
    fn add(&mut self, bytes: u32) -> u32 {
        let more = self.subheader() + bytes;
        self.last = bytes;
        more
    }
}

/// Returns the length of the header of an AMD PDU or, with another `fixed` part, of another PDU, with `borders` SDU
/// boundaries inside.
#[inline]
pub(in crate::rlc) fn header(fixed: u32, borders: u32) -> u32 {
    fixed + LengthIndicators::overhead(borders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_costs_15_bits_12_a_nack_and_30_an_offset() {
        let mut status = Status::new();
        assert_eq!(status.bytes(), 2);
        assert!(!status.push(7, 0, SO_END, 3), "27 bits do not fit 3 bytes");
        assert!(status.push(7, 0, SO_END, 4));
        assert_eq!(status.bytes(), 4);
        assert!(status.push(8, 10, 20, 100));
        assert_eq!(status.bytes(), 9, "69 bits");
        assert!(status.push(9, 0, SO_END, 100) && status.push(10, 0, SO_END, 100));
        assert_eq!(status.bytes(), 12, "93 bits");
        let whole = |sn, count| Nack { sn, count, from: 0, to: SO_END };
        assert_eq!(status.nacks(), [whole(7, 1), Nack { sn: 8, count: 1, from: 10, to: 20 }, whole(9, 2)]);
    }

    #[test]
    fn a_run_of_missing_pdus_goes_on_over_the_wrap() {
        let mut status = Status::new();
        for sn in [1022, 1023, 0, 1] {
            assert!(status.push(sn, 0, SO_END, 100));
        }
        assert_eq!(status.nacks(), [Nack { sn: 1022, count: 4, from: 0, to: SO_END }]);
    }

    #[test]
    fn the_length_field_of_a_pdu_below_128_bytes_has_7_bits() {
        for (first, subheader) in [(2, 2), (127, 2), (128, 3), (1500, 3)] {
            let mut contents = Contents::default();
            assert_eq!((contents.subheader(), contents.add(first)), (0, first));
            assert_eq!(contents.subheader(), subheader);
            assert_eq!(contents.add(100), subheader + 100);
        }
    }

    #[test]
    fn length_indicators_are_padded_to_bytes() {
        assert_eq!([0, 1, 2, 3, 4].map(|n| header(AMD_HEADER, n)), [2, 4, 5, 7, 8]);
        assert_eq!(header(SEGMENT_HEADER, 1), 6);
    }
}
