//! MAC: scheduling, transport blocks and HARQ (36.321).
//!
//! [`downlink`] and [`uplink`] are the steps of a slot, [`cells`] finds the cells that have something to do in it, and
//! [`sched`] divides a [`cell`]'s carrier among its [`active`] UEs. [`control`] is the room for assignments, [`adaptation`]
//! (with its [`outer_loop`]) and [`power`] determine the size of blocks. [`requests`] has the states of uplink requests, which
//! are sent at [`opportunities`] and handled by [`access`], and [`configured`] and [`occasions`] are what is granted without
//! them. [`needs`] is what UEs need of a slot's grants, and [`filling`] what they send with them. [`harq`] stores blocks until
//! they are decoded, [`carriers`] are those of a UE, and [`drx`] and [`sleep`] let UEs sleep. [`reach`] is the limit of a
//! cell's hearing, and [`interference`] connects the cells of a carrier.
//!
//! What happens in a slot are functions of a [`crate::network::Network`]. They know nothing of mobility: those after which
//! bearers may have new data, or may have failed, return whether that is so.

pub(crate) mod access;
pub(crate) mod active;
pub(crate) mod adaptation;
pub(crate) mod blocks;
pub(crate) mod carriers;
pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod configured;
pub(crate) mod control;
pub(crate) mod downlink;
pub(crate) mod drx;
pub(crate) mod filling;
pub(crate) mod harq;
pub(crate) mod interference;
pub(crate) mod needs;
pub(crate) mod occasions;
pub(crate) mod opportunities;
pub(crate) mod outer_loop;
pub(crate) mod power;
pub(crate) mod reach;
pub(crate) mod requests;
pub(crate) mod sched;
pub(crate) mod sleep;
pub(crate) mod uplink;
