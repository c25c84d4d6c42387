//! The simulator: from a scenario to results, in virtual time.
//!
//! [`run`] takes a loaded scenario through all points of its sweep and all repetitions, on all cores, and gives back
//! [`record::Results`]. A single run is single-threaded and depends on nothing but the scenario, the seed and the traces
//! that it names: the same input gives the same tables on any machine, with any number of threads.
//!
//! | file | what |
//! | --- | --- |
//! | `batch` | points and repetitions on all cores |
//! | `live` | one run whose time somebody else keeps, with packets from outside |
//! | `world` | one run: the parts, and the loop that calls them |
//! | `network` | links and routes |
//! | `packet` | what travels |
//! | `meter`, `watch` | what is measured of a flow; what is noted of single packets |
//! | `topology`, `setup` | from the scenario's words to the parts |

mod batch;
mod live;
mod lte;
mod meter;
mod network;
mod packet;
mod peps;
mod setup;
mod topology;
mod watch;
mod world;

pub use batch::{Options, Outcome, Progress, check, run};
pub use live::{Arrival, LinkStatus, Live, Status, UeStatus};
pub use packet::Visitor;
pub use peps::Passing;

/// The version that results name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a simulation cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace cannot be read, or is not one.
    #[error("trace {file}: {what}")]
    Trace {
        /// The file, as the scenario names it.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// A recorded channel cannot be read, or is not one.
    #[error("channel {file}: {what}")]
    Channel {
        /// The file, as the scenario names it.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// A flow's application cannot run with its parameters.
    #[error("flow {flow}: {what}")]
    Flow {
        /// The flow's name.
        flow: String,
        /// What is wrong.
        what: String,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// The system gives no threads.
    #[error("no threads: {0}")]
    Threads(String),
}
