//! The parameters of NR's PDCP, and the state of its reordering.

use std::collections::VecDeque;

use units::{Span, Time};

/// Length of the sequence number of NR's PDCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdcpSn {
    /// 12 bits: a header of two bytes.
    Twelve,
    /// 18 bits: a header of three bytes.
    Eighteen,
}

/// Parameters of NR's PDCP and SDAP in both directions. The default is srsRAN Project's for 5QI 9, without an SDAP
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nr {
    /// Length of the sequence number.
    pub sn: PdcpSn,
    /// t-Reordering: how long to wait for a missing SDU before delivering later ones; `None` is infinity.
    pub t_reordering: Option<Span>,
    /// Whether SDUs have an SDAP header of one byte.
    pub sdap: bool,
    /// By direction: the maximum bytes, without headers, of SDUs in PDCP and RLC together, as counted by
    /// [`crate::rlc::Bearer::occupancy`]. An SDU that does not fit is dropped on arrival (`DropReason::Overflow`);
    /// `None` is unlimited.
    pub limit: [Option<u64>; 2],
}

impl Default for Nr {
    fn default() -> Self {
        Nr { sn: PdcpSn::Twelve, t_reordering: Some(Span::from_millis(80)), sdap: false, limit: [None; 2] }
    }
}

impl Nr {
    /// Returns the bytes before each SDU: 38.323, 6.2.2.2 and 6.2.2.3, and 37.324, 6.2.2.
    pub fn header(&self) -> u32 {
        let pdcp = match self.sn {
            PdcpSn::Twelve => 2,
            PdcpSn::Eighteen => 3,
        };
        pdcp + u32::from(self.sdap)
    }
}

/// The first bytes that have not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The SDU they belong to.
    pub(crate) number: u64,
    /// How much of it has been sent.
    pub(crate) so: u32,
    /// How much of it has not.
    pub(crate) left: u32,
}

/// The state of the receiving PDCP entity. RX_DELIV is the number of the first SDU in transit.
#[derive(Clone, Debug)]
pub(super) struct Reordering<S> {
    pub(super) t_reordering: Option<Span>,
    /// When t-Reordering expires; `Time::MAX` if it is not running.
    pub(super) expires: Time,
    /// RX_NEXT: after the highest SDU received.
    pub(super) next: u64,
    /// RX_REORD: after the SDU that started t-Reordering.
    pub(super) trigger: u64,
    /// SDUs that arrived before the last re-establishment, out of order, and the number of the SDU that precedes each.
    pub(super) followers: VecDeque<(u64, S)>,
}

impl<S> Reordering<S> {
    pub(super) fn new() -> Self {
        Reordering { t_reordering: None, expires: Time::MAX, next: 0, trigger: 0, followers: VecDeque::new() }
    }
}
