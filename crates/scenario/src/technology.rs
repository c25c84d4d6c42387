//! The technologies of cells, and the side of a bearer that only NR cells have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span, kinds};

/// A radio access technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Technology {
    /// LTE.
    Lte,
    /// NR.
    Nr,
}

/// A bearer in NR cells: RLC (38.322), PDCP (38.323) and SDAP (37.324).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NrBearer {
    /// The RLC mode.
    pub rlc: NrRlc,
    /// Bits of PDCP's sequence number, 12 or 18.
    pub pdcp_sn: u8,
    /// How long PDCP waits for a missing packet before it delivers later ones; longer than RLC takes to repair a gap in
    /// AM, which is `t_reassembly` and a few blocks.
    pub t_reordering: Span,
    /// Whether each packet has an SDAP header.
    pub sdap: bool,
    /// The limit on what a bearer's PDCP and RLC hold together, in either direction: packets that wait, and in AM those
    /// that were sent and not acknowledged.
    pub buffer: Bytes,
}

impl Default for NrBearer {
    fn default() -> NrBearer {
        NrBearer {
            rlc: NrRlc::default(),
            pdcp_sn: 18,
            t_reordering: Span::from_millis(200),
            sdap: true,
            buffer: Bytes::new(6_172_672),
        }
    }
}

kinds! { "NrRlc",
    /// The RLC mode of NR (38.322) and its parameters.
    #[derive(Copy)]
    pub enum NrRlc {
        /// Unacknowledged.
        Um {
            /// Bits of the sequence number of segments, 6 or 12.
            #[serde(default = "um_sn")]
            sn: u8,
            /// How long to wait for a missing segment.
            #[serde(default = "t_reassembly")]
            t_reassembly: Span,
        },
        /// Acknowledged.
        Am {
            /// Bits of the sequence number, 12 or 18.
            #[serde(default = "am_sn")]
            sn: u8,
            /// How long to wait for the response to a poll.
            #[serde(default = "t_poll_retransmit")]
            t_poll_retransmit: Span,
            /// How long to wait for a missing PDU or segment before reporting it.
            #[serde(default = "t_reassembly")]
            t_reassembly: Span,
            /// Minimum interval between status reports.
            #[serde(default = "t_status_prohibit")]
            t_status_prohibit: Span,
            /// Number of new PDUs between polls.
            #[serde(default = "poll_pdu")]
            poll_pdu: u32,
            /// New bytes between polls.
            #[serde(default = "poll_byte")]
            poll_byte: Bytes,
            /// Number of retransmissions of a PDU after which the radio link has failed.
            #[serde(default = "max_retx")]
            max_retx: u32,
        },
    }
}

impl Default for NrRlc {
    fn default() -> NrRlc {
        NrRlc::Am {
            sn: am_sn(),
            t_poll_retransmit: t_poll_retransmit(),
            t_reassembly: t_reassembly(),
            t_status_prohibit: t_status_prohibit(),
            poll_pdu: poll_pdu(),
            poll_byte: poll_byte(),
            max_retx: max_retx(),
        }
    }
}

fn um_sn() -> u8 {
    12
}
fn am_sn() -> u8 {
    18
}
fn t_poll_retransmit() -> Span {
    Span::from_millis(80)
}
fn t_reassembly() -> Span {
    Span::from_millis(80)
}
fn t_status_prohibit() -> Span {
    Span::from_millis(10)
}
fn poll_pdu() -> u32 {
    64
}
fn poll_byte() -> Bytes {
    Bytes::new(125_000)
}
fn max_retx() -> u32 {
    4
}
