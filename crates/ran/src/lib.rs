//! An LTE network from the packets for a UE to the packets from it: PDCP, RLC, MAC and HARQ of cells and UEs.
//!
//! Sans-IO: time, packets and randomness are arguments, and everything is generic over the packet ([`aqm::Packet`]).
//!
//! # Order of calls
//! A [`Ran`] is made of a [`Config`]. Then, in any order and with time that never goes back:
//! - [`Ran::handle_downlink`] when a packet for a UE has come from the core, and [`Ran::handle_uplink`] when a UE's host
//!   sends one;
//! - [`Ran::handle_timeout`] at the time that [`Ran::poll_timeout`] gave, before anything else is handed in at that time
//!   or later;
//! - after it, [`Ran::poll_delivery`] until it gives nothing: what has come through is delivered at that time;
//! - [`Ran::set_load`], [`Ran::set_sinr`] and [`Ran::hand_over`] for what is to be other than configured from then on.
//!
//! After any of them, [`Ran::poll_timeout`] is asked again. Every packet that goes in comes out of `poll_delivery`, lands
//! in the [`aqm::Drops`] of the call that lost it, or is counted by [`Ran::held`].
//!
//! # Time
//! Time goes in slots, whose length is the technology's ([`Rat`]): an LTE cell's are its TTIs of a millisecond. The calendar
//! ticks at the shortest slot of all cells. Slots run only while a UE has something to send or something is on its way:
//! with everybody idle and standing still, `poll_timeout` gives `None`. A slot looks at the UEs that are active in it and
//! at no other.
//!
//! # A packet's way
//! Downlink: queue of PDCP ([`rlc`], [`pdcp`]), transport block of the UE's next assignment, HARQ, RLC at the UE, out.
//! A bearer may have a queue above PDCP's, which then is the buffer that it fills ([`Above`]).
//! Uplink: the host's queue, the modem's as soon as there is room, a scheduling request and a buffer status report, grant,
//! transport block, HARQ, RLC at the eNodeB, out.
//!
//! # What is left out
//! Measurement gaps, DRX, carrier aggregation, guaranteed bit rates, subband CQI, a control channel that errs or fills
//! up. Each file lists where it deviates from its source.

#![allow(clippy::doc_markdown, reason = "eNodeB is a name and not code")]

mod calendar;
mod config;
mod handover;
mod mac;
mod mobility;
mod network;
pub mod pdcp;
mod rat;
pub mod rlc;
mod signalling;
mod slots;
mod stats;
mod ue;

pub use config::{Above, BearerConfig, CellConfig, Config, Filter, MacConfig, Room, UeConfig};
pub use handover::{A3, Handover, RadioLink};
pub use mac::adaptation::LinkAdaptation;
pub use mac::power::PowerReports;
pub use mac::requests::Requests;
pub use mac::sched::Discipline;
pub use mobility::Refused;
pub use network::{Delivery, Heard, Ran, Stream};
pub use rat::Rat;
pub use stats::{DirectionStats, Event, Sink, Step, Transmission, UeStats};
