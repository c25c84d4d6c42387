//! The simulator: from a scenario to results, in virtual time.
//!
//! [`run`] takes a loaded scenario through all points of its sweep and all repetitions, on all cores, and gives back
//! [`record::Results`]. A single run is single-threaded and depends on nothing but the scenario, the seed and the traces
//! that it names: the same input gives the same tables on any machine, with any number of threads. Such a run is a [`Job`];
//! [`Batch`] runs any list of them, and [`record::merge`] puts the results of several lists together.
//!
//! | module | contents |
//! | --- | --- |
//! | `batch` | all jobs of a scenario, or a list of them, on all cores |
//! | `live` | one run in somebody else's time, with packets from outside |
//! | `build` | from a scenario to a world |
//! | `world` | one run: its parts, and the loop that calls them |
//! | `hosts` | applications and their connections |
//! | `network` | packets, routes, links and radio hops |
//! | `middlebox` | what stands between links and sees packets pass: PEPs, proxies |
//! | `reports` | a recording of the cells' reports |
//! | `reporting` | the cells' reports to the proxy |
//! | `rows` | counters of flows, links and UEs, and the rows that they become |
//! | `parts` | what the agenda's entries stand for |
//! | `error` | why a simulation cannot be run |

mod batch;
mod build;
mod error;
mod hosts;
mod live;
mod middlebox;
mod network;
mod parts;
mod reporting;
pub mod reports;
mod rows;
mod world;

pub use batch::{Batch, JobsError, Options, Outcome, Progress, Watch, check, jobs, run, run_all, sweep_dir};
pub use error::Error;
pub use live::{LinkStatus, Live, Status};
pub use middlebox::interface::{Emission, External, FlowKey, Middlebox, NoVisitors, Passing, Verdict, Way};
pub use middlebox::rapid_policy;
pub use network::packet::{Arrival, Visitor};
pub use network::radio::{UePlace, UeStatus};
pub use record::Job;
pub use rows::meta;
pub use world::Seen;

/// The version that results name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
