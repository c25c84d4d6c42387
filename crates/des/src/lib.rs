//! Discrete-event simulation: the event queue, and named random streams.
//!
//! A simulation is a set of parts. Each part states when it next needs to be called; the [`Agenda`] knows the earliest.
//! The driver loops: [`Agenda::next`] returns a part and sets the time; the driver lets the part handle what is due,
//! passes its outputs to other parts, and calls [`Agenda::wake`] with the new deadline of each part involved.

mod agenda;
mod streams;

pub use agenda::{Agenda, Part};
pub use streams::Streams;
