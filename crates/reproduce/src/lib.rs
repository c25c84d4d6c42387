//! Papers' experiments beside what was published.
//!
//! [`papers`] reads the built-in folders (`papers/` is part of the program) and [`Paper::open`] a user's own.
//! [`Experiment::load`] returns the scenario to run, [`compare`] puts the results beside the published rows, and [`draw`]
//! makes the figures. `papers/README.md` explains the files and the verdicts.

mod compare;
mod figure;
mod folder;
mod measure;
mod paper;

pub use compare::{Row, Verdict, compare};
pub use figure::{Drawn, Figure, Line, draw};
pub use folder::{Error, is_folder, papers};
pub use measure::{Edge, Floor, Measure};
pub use paper::{At, Check, Experiment, Form, Paper, Published, PublishedRow, Setting};
