//! MAC: who is served in a slot, with what, and what becomes of it (36.321).
//!
//! [`downlink`] and [`uplink`] are a slot's steps, [`sched`] divides a [`cell`]'s carrier, [`adaptation`] and [`power`] say
//! what blocks carry, [`requests`] how UEs come to send, and [`harq`] keeps blocks until they are decoded.

pub(crate) mod adaptation;
pub(crate) mod blocks;
pub(crate) mod cell;
pub(crate) mod downlink;
pub(crate) mod harq;
pub(crate) mod power;
pub(crate) mod requests;
pub(crate) mod sched;
pub(crate) mod uplink;
