//! LTE: subframes, and delays of grants, data and feedback.

use units::Span;

/// The length of a subframe, which is a TTI.
pub(crate) const SLOT: Span = Span::from_millis(1);

/// TTIs from a scheduling request to the resulting grant: its own, and three for decoding and scheduling.
pub(crate) const REQUEST_TO_GRANT: u64 = 4;

/// TTIs from an uplink grant to the transmission, and from a NACK to the repetition (36.213 8.0).
pub(crate) const GRANT_TO_DATA: u64 = 4;

/// TTIs from an uplink transmission until the UE knows that it has failed (36.213 9.1.2).
pub(crate) const DATA_TO_NACK: u64 = 4;

/// TTIs from a downlink transmission until its process can be reused: feedback comes after four (36.213 7.3).
pub(crate) const DATA_TO_REUSE: u64 = 8;

/// The maximum decoding time in TTIs for a block to be acknowledged in time.
pub(crate) const LONGEST_DECODING: u64 = 3;

/// 36.321 5.3.2, 5.4.2.
pub(crate) const PROCESSES: u8 = 8;

/// Synchronous HARQ: the TTI number determines the process (36.321 5.4.2).
#[inline]
pub(crate) fn uplink_process(tti: u64) -> u8 {
    (tti % u64::from(PROCESSES)) as u8
}
