//! What a modem holds and how fast it drains, as seen from above it.
//!
//! A modem takes all that its host gives it, in order, and tells nothing. Whoever keeps the backlog above it has to know
//! when to hand down the next packet. That is a [`Below`]: it hears of each packet that is handed down and of what comes
//! back, and says whether the modem should have another one now.
//!
//! [`Answers`] learns it from packets that are answered by the other side; [`Fixed`] is told the rate; [`Autorate`] searches
//! it by the delay of pings and the load, as cake-autorate does. What a modem says of its radio could be a fourth.
//!
//! The order of calls: [`Below::has_room`], and if it has and a packet waits, [`Below::handed`] with that packet; if it has
//! and none waits, [`Below::ran_dry`]. [`Below::answered`] at any time, and at [`Below::poll_timeout`] at the latest again
//! from the beginning. [`Below::reflected`] and [`Below::set_rate`] at any time, too. Time never goes back.

mod answers;
mod autorate;
mod fixed;

pub use answers::Answers;
pub use autorate::{Autorate, Bounds};
pub use fixed::Fixed;

use units::{Rate, Span, Time};

/// A packet that the other side will answer, as a segment of TCP with its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// A number that this direction of a connection has alone.
    pub conversation: u64,
    /// An answer up to this number (modulo 2³²) answers it. Those of a conversation grow; one that does not is sent again.
    pub end: u32,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As in the question.
    pub conversation: u64,
    /// All questions up to this number are answered.
    pub upto: u32,
    /// And this one, whatever lies between.
    pub exactly: Option<u32>,
}

/// What is known of the modem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// How fast it drains, if that is known.
    pub rate: Option<Rate>,
    /// Bytes that it holds.
    pub bytes: u64,
    /// How long the last packet that was answered has waited in it.
    pub delay: Option<Span>,
}

/// Knows what the modem holds. See the crate's documentation for the order of calls.
pub trait Below: core::fmt::Debug {
    /// Whether the modem should have another packet now.
    fn has_room(&mut self, now: Time) -> bool;
    /// It was handed a packet of so many bytes.
    fn handed(&mut self, bytes: u32, question: Option<Question>, now: Time);
    /// There was room, and nothing waits.
    fn ran_dry(&mut self);
    /// Something came back.
    fn answered(&mut self, answer: Answer, now: Time);
    /// A host replied to a ping of ours, which was sent `rtt` ago. Only what searches by delay needs it.
    fn reflected(&mut self, _reflector: usize, _rtt: Span, _now: Time) {}
    /// Whoever knows the modem's rate says that it has changed. What learns the rate by itself keeps its own.
    fn set_rate(&mut self, _rate: Rate, _now: Time) {}
    /// When there may be room if nothing comes back until then; `None` if there is room, or only an answer makes some.
    fn poll_timeout(&self, now: Time) -> Option<Time>;
    /// What is known.
    fn estimate(&self, now: Time) -> Estimate;
}
