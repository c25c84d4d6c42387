//! Estimates of how much a modem holds and how fast it drains, made from outside the modem.
//!
//! A modem accepts every packet that its host sends and reports nothing. To keep the queue out of the modem, the host has to
//! decide when to send the next packet. A [`DrainModel`] makes this decision: it is told of each packet that goes down and of
//! each answer that comes back, and says whether the modem should have another packet now.
//!
//! There are three models: [`Answers`] measures the drain by packets that the other side answers, [`Fixed`] is given the
//! rate, and [`Autorate`] searches for the rate by ping delay and load, as cake-autorate does. A modem that reports its radio
//! could be a fourth.
//!
//! # Order of calls
//! Ask [`DrainModel::has_room`]. If there is room and a packet waits, send it and call [`DrainModel::handed`]; if there is room
//! and none waits, call [`DrainModel::on_idle`]. Start again at [`DrainModel::poll_timeout`] at the latest.
//! [`DrainModel::answered`], [`DrainModel::reflected`] and [`DrainModel::set_rate`] may be called at any time. Time never goes
//! back.

mod answers;
mod autorate;
mod fixed;

pub use answers::Answers;
pub use autorate::{Autorate, Bounds};
pub use fixed::Fixed;

use units::{Rate, Span, Time};

/// A packet that the other side will answer, such as a TCP segment, which is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Identifies one direction of one connection.
    pub conversation: u64,
    /// An answer up to this number (modulo 2³²) answers the probe. Numbers of a conversation grow, except in
    /// retransmissions.
    pub end: u32,
}

/// An answer to probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The conversation of the probes that it answers.
    pub conversation: u64,
    /// Answers all probes up to this number.
    pub upto: u32,
    /// Also answers this one, whatever lies between.
    pub exactly: Option<u32>,
    /// The window field of a receiver that may also answer late for reasons of its own, as TCP does. Not that of a SYN, which
    /// has another unit.
    pub window: Option<u16>,
}

/// An estimate of the modem's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The drain rate; `None` if unknown.
    pub rate: Option<Rate>,
    /// Bytes in the modem.
    pub bytes: u64,
    /// The time that the last answered packet spent in the modem.
    pub delay: Option<Span>,
}

/// A model of how a modem drains. See the crate's documentation for the order of calls.
pub trait DrainModel: core::fmt::Debug {
    /// Returns whether the modem should have another packet now.
    fn has_room(&mut self, now: Time) -> bool;
    /// The modem was sent a packet of `bytes`.
    fn handed(&mut self, bytes: u32, probe: Option<Probe>, now: Time);
    /// There was room, but no packet to send.
    fn on_idle(&mut self);
    /// An answer came back.
    fn answered(&mut self, answer: Answer, now: Time);
    /// A reflector replied to a ping that was sent `rtt` ago. Only models that search by delay use it.
    fn reflected(&mut self, _reflector: usize, _rtt: Span, _now: Time) {}
    /// The modem's rate was set from outside. Models that measure the rate ignore it.
    fn set_rate(&mut self, _rate: Rate, _now: Time) {}
    /// Returns when there may be room even if no answer comes; `None` if there is room now, or only an answer can make some.
    fn poll_timeout(&self, now: Time) -> Option<Time>;
    /// Returns the current estimate.
    fn estimate(&self, now: Time) -> Estimate;
}
