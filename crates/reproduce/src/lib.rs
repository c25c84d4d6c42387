//! Papers' experiments: run, and printed beside what was published.
//!
//! `papers/` is part of the program. [`papers`] reads it, [`Experiment::load`] gives the scenario to run, [`compare`] puts
//! the results beside the published rows, and [`draw`] makes the figures. `papers/README.md` explains the files and the
//! verdicts.

mod compare;
mod figure;
mod measure;
mod paper;

pub use compare::{Row, Verdict, compare};
pub use figure::{Drawn, Figure, Line, draw};
pub use measure::{Floor, Measure};
pub use paper::{At, Check, Experiment, Form, Paper, Published, PublishedRow, papers};
