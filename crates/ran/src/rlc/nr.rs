//! NR's PDUs and entities: 38.322.
//!
//! An RLC SDU is a PDCP PDU, numbered consecutively for the lifetime of the bearer ([`crate::pdcp`]). A [`pdu::Pos`] is
//! a byte of an SDU; whatever is sent, received or missing is a range of positions, so that the cost of a block depends
//! on its gaps and not on its PDUs.

pub(crate) mod am_receive;
pub(crate) mod am_transmit;
pub(crate) mod pdu;
pub(crate) mod ranges;
pub(crate) mod um;
