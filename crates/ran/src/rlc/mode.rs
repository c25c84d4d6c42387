//! The modes of RLC, their parameters, and what is counted.

use units::Span;

use crate::pdcp;

/// The RLC mode of a bearer, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Transparent (5.1.1): no header, no segmentation, no numbering. An SDU waits for a grant for all of it.
    Tm,
    /// Unacknowledged (5.1.2).
    Um(Um),
    /// Acknowledged (5.1.3).
    Am(Am),
    /// NR's unacknowledged mode (38.322, 5.2.2).
    NrUm(NrUm),
    /// NR's acknowledged mode (38.322, 5.2.3).
    NrAm(NrAm),
}

impl Mode {
    /// Returns whether lost PDUs are retransmitted.
    pub(crate) fn retransmits(&self) -> bool {
        matches!(self, Mode::Am(_) | Mode::NrAm(_))
    }

    /// Returns the parameters of NR's PDCP in NR's modes.
    pub(crate) fn nr(&self) -> Option<&pdcp::Nr> {
        match self {
            Mode::NrUm(um) => Some(&um.pdcp),
            Mode::NrAm(am) => Some(&am.pdcp),
            Mode::Tm | Mode::Um(_) | Mode::Am(_) => None,
        }
    }
}

/// Parameters of NR's UM. The default is an SN of 12 bits with the timer of [`NrAm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrUm {
    /// Length of the sequence number.
    pub sn: UmSn,
    /// t-Reassembly: how long to wait for a missing segment.
    pub t_reassembly: Span,
    /// PDCP above it.
    pub pdcp: pdcp::Nr,
}

/// Length of the sequence number of NR's UM, which only segments carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UmSn {
    /// 6 bits: a window of 32 and a header of one byte.
    Six,
    /// 12 bits: a window of 2048 and a header of two bytes.
    Twelve,
}

/// Parameters of NR's AM. The default has a short sequence number, as signalling radio bearers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrAm {
    /// Length of the sequence number.
    pub sn: AmSn,
    /// t-PollRetransmit: how long to wait for the response to a poll.
    pub t_poll_retransmit: Span,
    /// pollPDU: number of new PDUs between polls; `None` is infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte: number of new bytes between polls; `None` is infinity.
    pub poll_byte: Option<u32>,
    /// maxRetxThreshold: the RETX_COUNT of an SDU that is a radio link failure.
    pub max_retx: u32,
    /// t-Reassembly: how long to wait for missing data before reporting it.
    pub t_reassembly: Span,
    /// t-StatusProhibit: minimum interval between STATUS PDUs.
    pub t_status_prohibit: Span,
    /// PDCP above it.
    pub pdcp: pdcp::Nr,
}

/// Length of the sequence number of NR's AM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmSn {
    /// 12 bits: a window of 2048 and a header of two bytes.
    Twelve,
    /// 18 bits: a window of 131072 and a header of three bytes.
    Eighteen,
}

/// Parameters of UM. The default is srsRAN 4G's example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Um {
    /// Length of the sequence number.
    pub sn: SnLength,
    /// t-Reordering: how long to wait for a missing PDU.
    pub t_reordering: Span,
}

/// Length of UM's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnLength {
    /// 5 bits: a window of 16 and a header of one byte.
    Five,
    /// 10 bits: a window of 512 and a header of two bytes.
    Ten,
}

/// Parameters of AM, with sequence numbers of 10 bits and windows of 512. The default is srsRAN 4G's example for QCI 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Am {
    /// t-PollRetransmit: how long to wait for the response to a poll.
    pub t_poll_retransmit: Span,
    /// pollPDU: number of new PDUs between polls; `None` is infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte: number of new bytes between polls; `None` is infinity.
    pub poll_byte: Option<u32>,
    /// maxRetxThreshold: number of retransmissions of a PDU; a further one is a radio link failure.
    pub max_retx: u32,
    /// t-Reordering: how long to wait for a missing PDU before reporting it.
    pub t_reordering: Span,
    /// t-StatusProhibit: minimum interval between STATUS PDUs.
    pub t_status_prohibit: Span,
    /// Whether a STATUS PDU takes a whole grant, as in ns-3. In the standard, data follows it.
    pub status_alone: bool,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// New data PDUs.
    pub pdus: u64,
    /// Retransmitted PDUs and segments (AM).
    pub retx_pdus: u64,
    /// Their bytes, without headers.
    pub retx_bytes: u64,
    /// STATUS PDUs about this direction that arrived.
    pub statuses: u64,
}

impl core::iter::Sum for Stats {
    fn sum<I: Iterator<Item = Stats>>(all: I) -> Stats {
        all.fold(Stats::default(), |sum, one| Stats {
            pdus: sum.pdus + one.pdus,
            retx_pdus: sum.retx_pdus + one.retx_pdus,
            retx_bytes: sum.retx_bytes + one.retx_bytes,
            statuses: sum.statuses + one.statuses,
        })
    }
}
