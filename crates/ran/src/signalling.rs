//! The RRC messages of a handover, and the bearer that carries them.
//!
//! SRB1 uses MAC, HARQ and RLC like any other bearer: it is acknowledged, has priority over all others, and its uplink
//! is reported in group 0. Its parameters are the defaults of 36.331 9.2.1.1. It is created with a UE's first message,
//! so that it costs nothing for UEs without handovers.
//!
//! Sizes are those of the PER encoding of 36.331 6.2.2, with one byte of PDCP header and four of MAC-I (36.323 6.2.2).
//! The command's size depends on the operator's configuration: [`crate::Handover::command_bytes`].
//!
//! Deviations: no other RRC messages are sent (those of a re-establishment are part of its duration); the processing
//! time of messages at either end is part of [`crate::Handover::preparation`] and [`crate::Handover::interruption`];
//! with [`crate::MacConfig::ideal`] messages arrive at once without any cost, as in ns-3's idealised RRC protocol.

use aqm::{Ecn, Packet};
use units::{Span, Time};

use crate::handover::Report;
use crate::pdcp;
use crate::rat::Rat;
use crate::rlc::{self, Am, AmSn, Bearer, Mode, NrAm};

/// The number of SRB1, where data bearers are numbered.
pub(crate) const SRB: u8 = 8;
/// The bit of SRB1 in the set of bearers with uplink data.
pub(crate) const SRB_BIT: u16 = 1 << SRB;
/// The logical channel group of SRB1.
pub(crate) const SRB_GROUP: usize = 0;
/// Priority of SRB1: before all data bearers, whose priorities begin at 1.
pub(crate) const SRB_PRIORITY: u8 = 0;
/// 36.323 6.2.2: the sequence number of a control plane PDU, and its MAC-I.
const PDCP_OVERHEAD: u32 = 1 + 4;
/// 38.323 6.2.2.1: likewise in NR.
const NR_PDCP_OVERHEAD: u32 = 2 + 4;
/// Maximum number of neighbours in a report (`maxCellReport`).
const MOST_REPORTED: usize = 8;

/// An RRC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// MeasurementReport, from the UE to its cell.
    Report(Report),
    /// RRCConnectionReconfiguration with mobilityControlInfo, to the UE from its cell.
    Command {
        /// The target cell.
        target: usize,
        /// Bytes of the message.
        bytes: u32,
    },
    /// RRCConnectionReconfigurationComplete, from the UE to its new cell.
    Complete,
}

impl Message {
    /// Returns the size of its encoding in bytes.
    fn bytes(&self) -> u32 {
        match self {
            // 10 bits of choices and options, 7 of measId, 13 of the serving cell's RSRP and RSRQ, 6 of the list's
            // choice and length; for each neighbour 13 of options and identity and 13 of results.
            Message::Report(report) => (36 + 26 * report.cells.min(MOST_REPORTED) as u32).div_ceil(8),
            Message::Command { bytes, .. } => *bytes,
            // Choices, transaction identifier and options: 9 bits.
            Message::Complete => 2,
        }
    }
}

/// A message under way.
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

/// SRB1 with the default parameters of 36.331 9.2.1.1, or 38.331 9.2.1.
pub(crate) fn bearer(rat: Rat) -> Bearer<Signal> {
    let pdcp = pdcp::Config::default();
    if let Rat::Nr(_) = rat {
        let mode = Mode::NrAm(NrAm {
            sn: AmSn::Twelve,
            t_poll_retransmit: Span::from_millis(45),
            poll_pdu: None,
            poll_byte: None,
            max_retx: 8,
            t_reassembly: Span::from_millis(35),
            t_status_prohibit: Span::ZERO,
            pdcp: pdcp::Nr { t_reordering: None, ..pdcp::Nr::default() },
        });
        return Bearer::with_header(&rlc::Config { mode, downlink: pdcp, uplink: pdcp }, NR_PDCP_OVERHEAD);
    }
    let mode = Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(45),
        poll_pdu: None,
        poll_byte: None,
        max_retx: 4,
        t_reordering: Span::from_millis(35),
        t_status_prohibit: Span::ZERO,
        status_alone: false,
    });
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
