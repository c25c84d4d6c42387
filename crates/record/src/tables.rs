//! The tables of a run. Times are seconds of simulated time since the start, unless the name says otherwise.
//!
//! `point` numbers the points of a sweep from 0 (see `Meta::points`), `run` the repetitions of a point from 0. A `flow` is
//! a name of the scenario. It may have several copies, and each copy one connection or many, one after the other or side
//! by side (a page load has several). `conn` is the number of the copy within its flow, from 0, and a row is about all of
//! that copy's connections together; in [`EventRow`] alone, `conn` is the number of the connection within the run. A rate
//! in Mbit/s is 10^6 bits per second.
//!
//! Code that makes a row names every column, without `..default()`: a new column is a compile error wherever nobody has decided
//! on its value. What a source does not know is missing, and a comment tells why. `default()` is for tests.

mod all;
mod measured;
mod simulated;

pub use all::Tables;
pub(crate) use all::each_table;
pub use measured::*;
pub use simulated::*;
