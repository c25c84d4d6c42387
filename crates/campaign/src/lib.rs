//! Campaigns: many tests of combinations of congestion controls, flow counts and directions, in randomised blocks.
//!
//! | module | contents |
//! | --- | --- |
//! | `error` | what goes wrong |
//! | `file` | campaign files |
//! | `plan` | the tests and their order |
//! | `store` | the directory of a campaign: what has finished, what failed, and whether the file is still the same |
//! | `host` | the kernel, queueing disciplines and settings of this machine; its cached TCP metrics |
//! | `measures` | the values of a test, from its tables |
//! | `bootstrap` | the cluster bootstrap |
//! | `comparisons` | differences between congestion controls within blocks |
//! | `distributions` | empirical distributions of tests, with a band |
//! | `summary` | medians and intervals over all tests |
//! | `report` | the report page |
//! | `scrub` | removes identities, coarsens places |
//! | `cells` | labels for cells of real modems |
//! | `publish` | the export for others |
//!
//! This crate does not run tests: its caller does, test by test, in the order of [`Plan`], and tells the [`Store`] of each outcome.

// This crate is where campaigns meet the disk.
#![allow(clippy::disallowed_methods)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod bootstrap;
mod cells;
mod comparisons;
mod distributions;
mod error;
mod file;
mod host;
mod measures;
mod plan;
mod publish;
mod report;
mod scrub;
mod store;
mod summary;

pub use comparisons::{Comparison, Difference};
pub use distributions::Distribution;
pub use error::Error;
pub use file::{Amount, Direction, File, Place, Protocol, Publish, Where, WhereKind};
pub use host::{Host, flush_metrics};
pub use measures::{FlowValues, Values, values};
pub use plan::{Combination, Plan, Test};
pub use publish::export as export_publication;
pub use report::{report_of, write_report};
pub use scrub::{Scrub, coarsen};
pub use store::{Entry, Outcome, State, Store, difference};
pub use summary::{CombinationSummary, Estimate, Failed, Summary};
