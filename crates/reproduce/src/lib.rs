//! Papers' experiments: published and measured numbers side by side.
//!
//! [`papers`] reads the built-in folders (`papers/` is embedded in the program) and [`Paper::open`] a user's own.
//! [`Experiment::load`] returns the scenario to run, [`compare()`] compares the results with the published rows, and
//! [`draw()`] draws the figures. `papers/README.md` explains the files and the verdicts.

mod check;
mod compare;
mod counts;
mod data;
mod draw;
mod drawn;
mod fault;
mod figure;
mod folder;
mod measure;
mod open;
mod paper;
mod pattern;
mod percentile;
mod points;
mod route;
mod rtt;
mod sampled;
mod sequence;
mod study;
#[cfg(test)]
mod types;

pub use check::{Check, Form, Origin, Published, PublishedRow};
pub use compare::{Row, Verdict, compare};
pub use counts::{Counts, Tally, counts_by_paper};
pub use draw::draw;
pub use drawn::{Drawn, Kind, Line};
pub use figure::Figure;
pub use folder::Error;
pub use measure::{Ceiling, Edge, Floor, Measure, Received};
pub use open::{is_folder, papers};
pub use paper::{Experiment, Paper, Setting};
pub use points::At;
pub use route::Along;
pub use rtt::Base;
pub use sequence::Sequence;
pub use study::{OverTests, Quantity, Statistic, Tests};
