//! LTE's PDUs and entities: 36.322.

pub(crate) mod am_receive;
pub(crate) mod am_transmit;
pub(crate) mod elements;
pub(crate) mod pdu;
pub(crate) mod um;
