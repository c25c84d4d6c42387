//! The RRC messages of a handover, and the bearer that carries them.
//!
//! SRB1 is a bearer like any other, through MAC, HARQ and RLC: it is acknowledged, goes before all others, and its uplink
//! is reported in group 0. Its parameters are the defaults of 36.331 9.2.1.1. It comes into being with a UE's first
//! message, so that UEs that are never handed over do not pay for it.
//!
//! Sizes are those of the PER encoding of 36.331 6.2.2, with one byte of PDCP header and four of MAC-I (36.323 6.2.2).
//! That of the command depends on the operator's configuration: [`crate::Handover::command_bytes`].
//!
//! Deviations: no other RRC messages are sent (a re-establishment's are part of its duration); what the messages need to
//! be processed at either end is part of [`crate::Handover::preparation`] and [`crate::Handover::interruption`]; with
//! [`crate::MacConfig::ideal`] messages arrive at once and cost nothing, as ns-3's idealised RRC protocol has it.

use aqm::{Ecn, Packet};
use units::{Span, Time};

use crate::handover::Report;
use crate::pdcp;
use crate::rlc::{self, Am, Bearer, Mode};

/// Stands for SRB1 where data bearers are numbered.
pub(crate) const SRB: u8 = 8;
/// Its bit among those of bearers with uplink data.
pub(crate) const SRB_BIT: u16 = 1 << SRB;
/// Its logical channel group.
pub(crate) const SRB_GROUP: usize = 0;
/// Before all data bearers, whose priorities begin at 1.
pub(crate) const SRB_PRIORITY: u8 = 0;
/// 36.323 6.2.2: the sequence number of a control plane PDU, and its MAC-I.
const PDCP_OVERHEAD: u32 = 1 + 4;
/// Neighbours that a report may list (`maxCellReport`).
const MOST_REPORTED: usize = 8;

/// An RRC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// MeasurementReport, from the UE to its cell.
    Report(Report),
    /// RRCConnectionReconfiguration with mobilityControlInfo, to the UE from its cell.
    Command {
        /// The cell that it is to change to.
        target: usize,
        /// Bytes of the message.
        bytes: u32,
    },
    /// RRCConnectionReconfigurationComplete, from the UE to its new cell.
    Complete,
}

impl Message {
    /// Bytes of its encoding.
    fn bytes(&self) -> u32 {
        match self {
            // The message's choices and options 10 bits, measId 7, the serving cell's RSRP and RSRQ 13, the list's choice
            // and length 6; for each neighbour 13 of options and identity and 13 of results.
            Message::Report(report) => (36 + 26 * report.cells.min(MOST_REPORTED) as u32).div_ceil(8),
            Message::Command { bytes, .. } => *bytes,
            // Choices, transaction identifier and options: 9 bits.
            Message::Complete => 2,
        }
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub(crate) message: Message,
    enqueued: Time,
}

impl Signal {
    pub(crate) fn new(message: Message, now: Time) -> Signal {
        Signal { message, enqueued: now }
    }
}

impl Packet for Signal {
    fn len(&self) -> u32 {
        self.message.bytes()
    }
    fn flow(&self) -> u64 {
        0
    }
    fn priority(&self) -> u8 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}

/// SRB1 with the default parameters of 36.331 9.2.1.1.
pub(crate) fn bearer() -> Bearer<Signal> {
    let mode = Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(45),
        poll_pdu: None,
        poll_byte: None,
        max_retx: 4,
        t_reordering: Span::from_millis(35),
        t_status_prohibit: Span::ZERO,
        status_alone: false,
    });
    let pdcp = pdcp::Config::default();
    Bearer::with_header(&rlc::Config { mode, downlink: pdcp, uplink: pdcp }, PDCP_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_their_encoding() {
        let report = |cells| Message::Report(Report { best: 1, cells }).bytes();
        assert_eq!([1, 2, 8, 20].map(report), [8, 11, 31, 31]);
        assert_eq!(Message::Complete.bytes(), 2);
    }
}
