//! A network of LTE and NR cells, from the packets for a UE to the packets from it: PDCP, RLC, MAC and HARQ of cells and
//! UEs.
//!
//! Sans-IO: time, packets and randomness are arguments, and everything is generic over the packet ([`aqm::Packet`]).
//!
//! # Order of calls
//! A [`Ran`] is made of a [`Config`]. Then, in any order and with time that never goes back:
//! - [`Ran::handle_downlink`] when a packet for a UE arrives from the core, and [`Ran::handle_uplink`] when a UE's host
//!   sends one;
//! - [`Ran::handle_timeout`] at the time returned by [`Ran::poll_timeout`], before any other input at that time or
//!   later;
//! - after it, [`Ran::poll_delivery`] until it returns `None`: these packets are delivered at that time;
//! - [`Ran::set_load`], [`Ran::set_sinr`] and [`Ran::hand_over`] to change the configuration from then on.
//!
//! After any of them, call [`Ran::poll_timeout`] again. Every packet handed in is returned by `poll_delivery`, goes to
//! the [`aqm::Drops`] of the call that dropped it, or is counted by [`Ran::held`].
//!
//! # Time
//! Time is divided into slots, whose length depends on the technology ([`Rat`]): in LTE, TTIs of a millisecond, in NR
//! down to 62.5 us. The calendar's ticks are a common divisor of all cells' slots and decoding delays, so that a packet is
//! delivered when its block is decoded, between slots if need be. Slots run only while a UE has data to send or
//! data is in flight: if all UEs are idle and stationary, `poll_timeout` returns `None`. A slot processes only the UEs
//! that are active in it.
//!
//! # The path of a packet
//! In the downlink:
//! 1. *PDCP queue*: [`Ran::handle_downlink`] selects the bearer by the packet's priority (`Bearers::bearer_of` in
//!    `ue/bearers.rs`), whose queue discipline takes the packet (`Sdus::enqueue`, [`pdcp`]). A bearer may have a queue above
//!    PDCP's, which then serves as the buffer below it ([`Above`]). The UE becomes active in its cell.
//! 2. *Grant*: in the next slot, `schedule_downlink` (`mac/downlink.rs`) determines the possible rate of each active UE
//!    (`mac/adaptation.rs`, from the CQI reports of [`channel::Air`]), and the scheduler assigns resource block groups
//!    (`mac/sched.rs`).
//! 3. *RLC*: `Bearers::fill` serves the bearers in order of priority, and `Bearer::build` ([`rlc`]) dequeues packets and segments
//!    them into PDUs. No bytes are copied: a PDU is a range of bytes.
//! 4. *HARQ* (`mac/harq.rs`): the mutual information accumulated over all transmissions of a block determines the probability
//!    that it is decoded, and one random number decides. After the last transmission, `give_up` (`delivery.rs`) informs RLC.
//! 5. *RLC at the UE*: `Bearer::receive` reorders PDUs and answers with STATUS PDUs. Complete packets leave through
//!    [`Ran::poll_delivery`].
//!
//! In the uplink:
//! 1. *Host queue*: [`Ran::handle_uplink`] enqueues the packet in the host's queue discipline. `Bearers::hand_down` moves
//!    packets to the *modem*, the uplink queues of the bearers, while the modem has room.
//! 2. *SR and BSR* (`mac/requests.rs`, `mac/access.rs`): data that arrives in an empty buffer triggers a buffer status report.
//!    Without a grant for it, the UE sends a scheduling request at its next opportunity, or starts a random access after too
//!    many. The cell's view of the buffer is the last report minus the grants since. A configured grant needs neither.
//! 3. *Grant*: `schedule_uplink` (`mac/uplink.rs`) assigns blocks for a later slot. `uplink_transmit` fills the block at
//!    that time, with a report if one is due or padding leaves room. HARQ and RLC follow as in the downlink.
//!
//! Between cells, `mobility.rs` implements the procedure, `handover.rs` its triggers, and `signalling.rs` the RRC messages, which are
//! SDUs of SRB1 (`Bearers::srb`). A UE's state moves with it. A [`Sink`] receives transmissions, reports and handovers.
//!
//! # Rooms
//! `rat` holds what a technology decides, as values that a cell is created with. `ue` is the state of a UE in four parts, and
//! `network` that of all cells and UEs, with the calendar. The functions of `mac` and `delivery` change it, those of `mobility`
//! use them, and `ran`, with the public [`Ran`], calls all of them in the order of a slot. Nothing calls upwards: what a
//! higher room has to do, the lower one returns.
//!
//! # What is not modelled
//! Measurement gaps, more than two downlink carriers or one uplink carrier of a UE, guaranteed bit rates, subband CQI,
//! priorities between UEs, control channels with errors. Each file lists where it deviates from its source.

#![allow(clippy::doc_markdown, reason = "eNodeB is a name, not code")]

mod calendar;
mod config;
mod delivery;
mod handover;
mod mac;
mod mobility;
mod network;
pub mod parameters;
pub mod pdcp;
mod ran;
mod rat;
pub mod rlc;
mod signalling;
mod slots;
mod stats;
mod ue;

pub use config::{Above, BearerConfig, Buffer, CellConfig, Config, Filter, MacConfig, Room, Secondary, UeConfig};
pub use handover::{A3, Handover, RadioLink};
pub use mac::adaptation::LinkAdaptation;
pub use mac::configured::ConfiguredGrant;
pub use mac::drx::{Drx, ShortCycle};
pub use mac::power::PowerReports;
pub use mac::requests::Requests;
pub use mac::sched::Discipline;
pub use mobility::Refused;
pub use network::{Delivery, Stream};
pub use ran::{Heard, Ran, Scheme};
pub use rat::Rat;
pub use rat::nr::{Duplex, Nr, Pattern};
pub use stats::{DirectionStats, Event, Sink, Step, Transmission, UeStats};
