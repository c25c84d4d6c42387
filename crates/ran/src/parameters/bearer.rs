//! RLC and PDCP of bearers.

use super::{POSITIVE_TIMER, TIMER};
use crate::pdcp::{self, PdcpSn};
use crate::rlc::{self, AmSn, Mode, SnLength, UmSn};
use core::ops::RangeInclusive;
use units::check::{Check, Range};
use units::{Bytes, Span, kinds, parameters};

/// New PDUs between polls.
const POLL_PDU: RangeInclusive<u32> = 1..=65_536;
/// New bytes between polls in LTE, where files do not say it.
const POLL_BYTE: u32 = 750_000;
/// `maxRetxThreshold` (36.331 6.3.2, 38.331 6.3.2).
const MAX_RETX: RangeInclusive<u32> = 1..=32;

kinds! { "Rlc",
    /// The RLC mode (36.322) and its parameters.
    #[derive(Copy)]
    pub enum Rlc {
        /// Transparent: no segmentation, no numbering.
        Tm,
        /// Unacknowledged.
        Um(Um),
        /// Acknowledged.
        Am(Am),
    }
}

parameters! {
    /// Parameters of UM. The default is srsRAN 4G's example.
    #[derive(Copy)]
    pub struct Um {
        /// How long to wait for a missing PDU.
        pub t_reordering: Span = Span::from_millis(45), in TIMER;
    }
}

parameters! {
    /// Parameters of AM. The default is srsRAN 4G's example for QCI 9.
    #[derive(Copy)]
    pub struct Am {
        /// How long to wait for the response to a poll.
        pub t_poll_retransmit: Span = Span::from_millis(120), in POSITIVE_TIMER;
        /// How long to wait for a missing PDU before reporting it.
        pub t_reordering: Span = Span::from_millis(50), in TIMER;
        /// Minimum interval between status reports.
        pub t_status_prohibit: Span = Span::from_millis(50), in TIMER;
        /// Number of new PDUs between polls.
        pub poll_pdu: u32 = 64, in POLL_PDU;
        /// Number of retransmissions of a PDU after which the radio link has failed.
        pub max_retx: u32 = 16, in MAX_RETX;
        /// Whether a STATUS PDU occupies a whole transport block, as in ns-3, instead of sharing it with data.
        /// Default: the same as `mac.ideal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub status_alone: Option<bool> = None;
    }
}

impl Default for Rlc {
    fn default() -> Rlc {
        Rlc::Am(Am::default())
    }
}

impl Rlc {
    /// Checks that each parameter is in its range.
    pub fn check(&self, c: &mut Check) {
        match self {
            Rlc::Tm => {}
            Rlc::Um(um) => um.check(c),
            Rlc::Am(am) => am.check(c),
        }
    }

    /// Returns the mode above a MAC layer that may be `ideal`.
    pub fn mode(&self, ideal: bool) -> Mode {
        match self {
            Rlc::Tm => Mode::Tm,
            Rlc::Um(um) => Mode::Um(um.into()),
            Rlc::Am(am) => Mode::Am(rlc::Am { status_alone: am.status_alone.unwrap_or(ideal), ..am.into() }),
        }
    }
}

impl From<&Um> for rlc::Um {
    fn from(of: &Um) -> rlc::Um {
        rlc::Um { sn: SnLength::Ten, t_reordering: of.t_reordering }
    }
}

impl From<&Am> for rlc::Am {
    fn from(of: &Am) -> rlc::Am {
        rlc::Am {
            t_poll_retransmit: of.t_poll_retransmit,
            poll_pdu: Some(of.poll_pdu),
            poll_byte: Some(POLL_BYTE),
            max_retx: of.max_retx,
            t_reordering: of.t_reordering,
            t_status_prohibit: of.t_status_prohibit,
            status_alone: of.status_alone.unwrap_or(false),
        }
    }
}

impl Default for rlc::Um {
    fn default() -> rlc::Um {
        (&Um::default()).into()
    }
}

impl Default for rlc::Am {
    fn default() -> rlc::Am {
        (&Am::default()).into()
    }
}

parameters! {
    /// A bearer in NR cells: RLC (38.322), PDCP (38.323) and SDAP (37.324).
    #[derive(Copy)]
    pub struct NrBearer {
        /// The RLC mode.
        pub rlc: NrRlc = NrRlc::default();
        /// Bits of PDCP's sequence number, 12 or 18.
        pub pdcp_sn: u8 = 18, in &[12, 18];
        /// How long PDCP waits for a missing packet before it delivers later ones; longer than RLC takes to repair a gap in
        /// AM, which is `t_reassembly` and a few blocks.
        pub t_reordering: Span = Span::from_millis(200), in TIMER;
        /// Whether each packet has an SDAP header.
        pub sdap: bool = true;
        /// The limit on what a bearer's PDCP and RLC hold together, in either direction: packets that wait, and in AM those
        /// that were sent and not acknowledged.
        pub buffer: Bytes = Bytes::new(6_172_672), in Range::SIZE;
    } with check_mode()
}

kinds! { "NrRlc",
    /// The RLC mode of NR (38.322) and its parameters.
    #[derive(Copy)]
    pub enum NrRlc {
        /// Unacknowledged.
        Um(NrUm),
        /// Acknowledged.
        Am(NrAm),
    }
}

parameters! {
    /// Parameters of NR's UM.
    #[derive(Copy)]
    pub struct NrUm {
        /// Bits of the sequence number of segments, 6 or 12.
        pub sn: u8 = 12, in &[6, 12];
        /// How long to wait for a missing segment.
        pub t_reassembly: Span = Span::from_millis(80), in TIMER;
    }
}

parameters! {
    /// Parameters of NR's AM. The default is srsRAN Project's for 5QI 9, with a longer sequence number.
    #[derive(Copy)]
    pub struct NrAm {
        /// Bits of the sequence number, 12 or 18.
        pub sn: u8 = 18, in &[12, 18];
        /// How long to wait for the response to a poll.
        pub t_poll_retransmit: Span = Span::from_millis(80), in POSITIVE_TIMER;
        /// How long to wait for a missing PDU or segment before reporting it.
        pub t_reassembly: Span = Span::from_millis(80), in TIMER;
        /// Minimum interval between status reports.
        pub t_status_prohibit: Span = Span::from_millis(10), in TIMER;
        /// Number of new PDUs between polls.
        pub poll_pdu: u32 = 64, in POLL_PDU;
        /// New bytes between polls.
        pub poll_byte: Bytes = Bytes::new(125_000), in Bytes::new(1)..=Bytes::new(40_000_000);
        /// Number of retransmissions of a PDU after which the radio link has failed.
        pub max_retx: u32 = 4, in MAX_RETX;
    }
}

impl Default for NrRlc {
    fn default() -> NrRlc {
        NrRlc::Am(NrAm::default())
    }
}

impl NrBearer {
    fn check_mode(&self, c: &mut Check) {
        c.key("rlc", |c| match &self.rlc {
            NrRlc::Um(um) => um.check(c),
            NrRlc::Am(am) => am.check(c),
        });
    }
}

impl From<&NrBearer> for pdcp::Nr {
    fn from(of: &NrBearer) -> pdcp::Nr {
        pdcp::Nr {
            sn: if of.pdcp_sn == 12 { PdcpSn::Twelve } else { PdcpSn::Eighteen },
            t_reordering: Some(of.t_reordering),
            sdap: of.sdap,
            limit: [Some(of.buffer.get()); 2],
        }
    }
}

impl From<&NrBearer> for Mode {
    fn from(of: &NrBearer) -> Mode {
        match of.rlc {
            NrRlc::Um(um) => Mode::NrUm(um.below(of.into())),
            NrRlc::Am(am) => Mode::NrAm(am.below(of.into())),
        }
    }
}

impl NrUm {
    fn below(&self, pdcp: pdcp::Nr) -> rlc::NrUm {
        let sn = if self.sn == 6 { UmSn::Six } else { UmSn::Twelve };
        rlc::NrUm { sn, t_reassembly: self.t_reassembly, pdcp }
    }
}

impl NrAm {
    fn below(&self, pdcp: pdcp::Nr) -> rlc::NrAm {
        rlc::NrAm {
            sn: if self.sn == 12 { AmSn::Twelve } else { AmSn::Eighteen },
            t_poll_retransmit: self.t_poll_retransmit,
            poll_pdu: Some(self.poll_pdu),
            poll_byte: Some(self.poll_byte.get() as u32),
            max_retx: self.max_retx,
            t_reassembly: self.t_reassembly,
            t_status_prohibit: self.t_status_prohibit,
            pdcp,
        }
    }
}

impl Default for rlc::NrUm {
    fn default() -> rlc::NrUm {
        NrUm::default().below(pdcp::Nr::default())
    }
}

impl Default for rlc::NrAm {
    fn default() -> rlc::NrAm {
        rlc::NrAm { sn: AmSn::Twelve, ..NrAm::default().below(pdcp::Nr::default()) }
    }
}
