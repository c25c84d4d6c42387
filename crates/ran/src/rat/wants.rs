//! What a technology asks of a cell's schedulers.

use channel::Direction;

use super::ideal;

/// How a carrier is divided among UEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// By what each can use, as far as the control channel has room for assignments and grants.
    Use,
    /// As ns-3's LTE module does: in parts, whether a UE can use its part or not, and without a control channel.
    Parts,
}

impl Wants {
    /// Returns whether control channels have room for a limited number of assignments and grants.
    pub(crate) fn limits_control(self) -> bool {
        self == Wants::Use
    }

    /// Returns the least part into which a scheduler divides a carrier in turn: resource block groups of the downlink if it
    /// `is_round_robin`, or resource blocks of the uplink.
    pub(crate) fn least_part(self, direction: Direction, is_round_robin: bool) -> Option<u16> {
        match (self, direction) {
            (Wants::Parts, Direction::Downlink) if is_round_robin => Some(ideal::LEAST_GROUPS),
            (Wants::Parts, Direction::Uplink) => Some(ideal::LEAST_PRBS),
            _ => None,
        }
    }

    /// Returns for how many of a downlink carrier's `groups` a UE is a candidate that can fill `useful`: ns-3 gives the best
    /// UE all groups on which it is best, which here are all groups.
    #[inline]
    pub(crate) fn downlink(self, useful: impl FnOnce() -> u16, groups: u16) -> u16 {
        match self {
            Wants::Use => useful(),
            Wants::Parts => groups,
        }
    }

    /// Returns whether the candidates of the uplink have equal parts, regardless of their channels.
    #[inline]
    pub(crate) fn has_equal_uplink(self) -> bool {
        self == Wants::Parts
    }
}
