//! When things happen in a cell: its slots, and the delays between grants, data and feedback.

use core::ops::Range;

use units::Span;

use super::lte::timing as lte;
use super::nr::timing as nr;

/// The timing of a cell. Delays are in its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Of LTE.
    Lte,
    /// Of NR.
    Nr(nr::Timing),
}

impl Timing {
    /// Returns the length of a slot.
    #[inline]
    pub(crate) fn slot(self) -> Span {
        match self {
            Timing::Lte => lte::SLOT,
            Timing::Nr(nr) => nr.slot(),
        }
    }

    /// Returns the maximum decoding time for a block to be acknowledged in time.
    pub(crate) fn longest_decoding(self) -> u64 {
        match self {
            Timing::Lte => lte::LONGEST_DECODING,
            Timing::Nr(nr) => nr.longest_decoding(),
        }
    }

    /// Returns when the cell knows whether a downlink block sent in `slot` was decoded.
    #[inline]
    pub(crate) fn feedback(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::DATA_TO_REUSE,
            Timing::Nr(nr) => nr.acknowledged(slot) + 1 + decoding,
        }
    }

    /// Returns the first slot in which a UE listens for the retransmission of a downlink block sent in `slot` that was not
    /// decoded; `rtt` are slots from its acknowledgement if the technology has a timer for them.
    #[inline]
    pub(crate) fn downlink_retransmission(self, slot: u64, rtt: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::DATA_TO_REUSE,
            Timing::Nr(nr) => nr.acknowledged(slot) + 1 + rtt,
        }
    }

    /// Returns the first slot in which a UE listens for a grant to repeat an uplink block sent in `slot`; `rtt` are slots
    /// from its end if the technology has a timer for them.
    #[inline]
    pub(crate) fn uplink_retransmission(self, slot: u64, rtt: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::DATA_TO_NACK,
            Timing::Nr(_) => slot + 1 + rtt,
        }
    }

    /// Returns the slots whose uplink is granted in `slot`.
    #[inline]
    pub(crate) fn granted_in(self, slot: u64) -> Range<u64> {
        match self {
            Timing::Lte => slot + lte::GRANT_TO_DATA..slot + lte::GRANT_TO_DATA + 1,
            Timing::Nr(nr) => nr.granted_in(slot),
        }
    }

    /// Returns the first slot whose uplink cannot have been granted before `slot`.
    pub(crate) fn ungranted_from(self, slot: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::GRANT_TO_DATA,
            Timing::Nr(nr) => nr.ungranted_from(slot),
        }
    }

    /// Returns when an uplink block sent in `slot` is known to have failed: by the UE, which repeats it at once, or, if
    /// repetitions are granted, by the cell.
    #[inline]
    pub(crate) fn uplink_failure(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::DATA_TO_NACK,
            Timing::Nr(_) => slot + 1 + decoding,
        }
    }

    /// Returns the slot in which a UE repeats a block that it has known to have failed since `slot`; `None` if that needs a
    /// grant.
    #[inline]
    pub(crate) fn repetition(self, slot: u64) -> Option<u64> {
        match self {
            Timing::Lte => Some(slot + lte::GRANT_TO_DATA),
            Timing::Nr(_) => None,
        }
    }

    /// Returns the number of slots after which the directions of slots repeat.
    #[inline]
    pub(crate) fn pattern_slots(self) -> u64 {
        match self {
            Timing::Lte => 1,
            Timing::Nr(nr) => nr.pattern_slots(),
        }
    }

    /// Returns whether a UE can send a scheduling request in `slot`.
    #[inline]
    pub(crate) fn carries_requests(self, slot: u64) -> bool {
        match self {
            Timing::Lte => true,
            Timing::Nr(nr) => nr.has_uplink_control(slot),
        }
    }

    /// Returns whether `slot` has a control channel of the downlink.
    pub(crate) fn carries_grants(self, slot: u64) -> bool {
        match self {
            Timing::Lte => true,
            Timing::Nr(nr) => nr.has_control(slot),
        }
    }

    /// Returns when the cell can respond to a scheduling request sent in `slot`.
    #[inline]
    pub(crate) fn request_known(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Timing::Lte => slot + lte::REQUEST_TO_GRANT,
            Timing::Nr(_) => slot + 1 + decoding,
        }
    }

    /// Returns the number of HARQ processes of a direction, at most 16.
    #[inline]
    pub(crate) fn processes(self) -> u8 {
        match self {
            Timing::Lte => lte::PROCESSES,
            Timing::Nr(nr) => nr.processes(),
        }
    }

    /// Returns the HARQ process of a new uplink transmission in `slot`, or `None` if any idle one may be used.
    #[inline]
    pub(crate) fn uplink_process(self, slot: u64) -> Option<u8> {
        match self {
            Timing::Lte => Some(lte::uplink_process(slot)),
            Timing::Nr(_) => None,
        }
    }

    /// Returns whether grants that recur after `period` slots can be configured: always in slots that are all uplink.
    pub(crate) fn configurable(self, period: u16) -> bool {
        match self {
            Timing::Lte => false,
            Timing::Nr(nr) => nr.configurable(period),
        }
    }

    /// Returns for how many slots a UE listens for a grant to repeat an uplink block, of which NR `configures` some: in LTE,
    /// for the TTI of the acknowledgement.
    #[inline]
    pub(crate) fn uplink_listening(self, configures: u16) -> u64 {
        match self {
            Timing::Lte => 1,
            Timing::Nr(_) => configures.into(),
        }
    }
}
