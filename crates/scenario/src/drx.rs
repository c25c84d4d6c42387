//! Discontinuous reception of connected UEs (C-DRX).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Discontinuous reception in LTE cells (36.321 5.7): UEs listen in a part of the time only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drx {
    /// Time at the beginning of each cycle in which a UE listens (`onDurationTimer`).
    pub on_duration: Span,
    /// Time for which it listens after a new block of either direction (`drx-InactivityTimer`).
    pub inactivity: Span,
    /// The long cycle, 10 ms to 2.56 s.
    pub cycle: Span,
    /// Beginning of the cycles of all UEs, less than `cycle` (`drxStartOffset`). Default: UEs are spread over the cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// A short cycle, 2 to 640 ms, which is used after a UE has stopped listening for new blocks; `cycle` is a multiple of
    /// it. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_cycle: Option<Span>,
    /// Number of short cycles before the long one is used (`drxShortCycleTimer`), 1 to 16.
    pub short_cycles: u8,
    /// Time for which a UE listens for the retransmission of a block, from 8 ms after the block on
    /// (`drx-RetransmissionTimer`).
    pub retransmission: Span,
}

impl Default for Drx {
    fn default() -> Drx {
        Drx {
            on_duration: Span::from_millis(10),
            inactivity: Span::from_millis(100),
            cycle: Span::from_millis(160),
            offset: None,
            short_cycle: None,
            short_cycles: 2,
            retransmission: Span::from_millis(8),
        }
    }
}

/// Discontinuous reception in NR cells (38.321 5.7): UEs listen in a part of the time only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NrDrx {
    /// Time at the beginning of each cycle in which a UE listens (`drx-onDurationTimer`); with TDD, at least a pattern.
    pub on_duration: Span,
    /// Time for which it listens after a new block of either direction (`drx-InactivityTimer`).
    pub inactivity: Span,
    /// The long cycle, 10 ms to 10.24 s.
    pub cycle: Span,
    /// Beginning of the cycles of all UEs, less than `cycle` (`drx-StartOffset`). Default: UEs are spread over the cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// A short cycle, 2 to 640 ms, which is used after a UE has stopped listening for new blocks; `cycle` is a multiple of
    /// it. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_cycle: Option<Span>,
    /// Number of short cycles before the long one is used (`drx-ShortCycleTimer`), 1 to 16.
    pub short_cycles: u8,
    /// Slots in which a UE listens for the retransmission of a downlink block (`drx-RetransmissionTimerDL`).
    pub retransmission: u16,
    /// Slots in which it listens for a grant to repeat an uplink block (`drx-RetransmissionTimerUL`).
    pub uplink_retransmission: u16,
    /// Symbols from the acknowledgement of a downlink block that failed until the UE listens for its retransmission
    /// (`drx-HARQ-RTT-TimerDL`), 0 to 56.
    pub harq_rtt: u8,
    /// Symbols from an uplink block until the UE listens for a grant to repeat it (`drx-HARQ-RTT-TimerUL`), 0 to 56.
    pub uplink_harq_rtt: u8,
}

impl Default for NrDrx {
    fn default() -> NrDrx {
        NrDrx {
            on_duration: Span::from_millis(10),
            inactivity: Span::from_millis(100),
            cycle: Span::from_millis(160),
            offset: None,
            short_cycle: None,
            short_cycles: 2,
            retransmission: 8,
            uplink_retransmission: 8,
            harq_rtt: 56,
            uplink_harq_rtt: 56,
        }
    }
}
