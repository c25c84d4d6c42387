//! Discrete events: the agenda of what happens when, and named random streams.
//!
//! A simulation is a set of parts. Each part answers when it next wants to be called; the [`Agenda`] knows the earliest.
//! The driver's loop is: [`Agenda::next`] gives a part and sets the time; the driver lets the part do what is due, hands
//! what came out of it to other parts, and calls [`Agenda::wake`] for each part that it touched with that part's deadline.

mod agenda;
mod streams;

pub use agenda::{Agenda, Part};
pub use streams::Streams;
