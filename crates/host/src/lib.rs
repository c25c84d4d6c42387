//! Real hosts behind a simulated network: the only crate with clocks, sockets, interfaces and namespaces.
//!
//! | file | what |
//! | --- | --- |
//! | `emulate` | an emulation from its scenario to its results |
//! | `engine`, `held`, `realtime` | the loop that keeps the network at the present |
//! | `rows` | rows of the tables for real flows |
//! | `attend` | a command in a namespace |
//! | `lab`, `tidy` | network namespaces, and that they go away |
//! | `uplink` | the way from the server's namespace to the networks of this machine |
//! | `tun` | the interface by which a namespace's packets come to the network |
//! | `attach`, `frames` | existing interfaces as the network's ends |
//! | `port` | either of these |
//! | `reservation` | one program at a time for an interface |
//! | `backlog` | a modem's backlog, kept above it |
//! | `kernel` | the scenario's flows, sent by the kernel's TCP |
//! | `capture` | real packets into pcapng files |
//! | `serve` | a web server and iperf3 for the server's namespace |
//! | `control` | changes while it runs |
//! | `rights` | what a thread that moves packets gives up |
//! | `account` | another user, for a command |
//! | `sys` | system calls that no library wraps; the only `unsafe` code |

// This crate is where the program meets the machine.
#![allow(clippy::disallowed_methods)]
// It is for the command to say something, in a way that survives a terminal which is gone.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod account;
pub mod backlog;
mod border;
pub mod capture;
pub mod control;
pub mod emulate;
mod engine;
mod held;
pub mod kernel;
pub mod lab;
mod lateness;
mod port;
mod rows;
pub mod serve;
mod tidy;
pub mod uplink;

pub use emulate::{Emulation, Finished, Options, hosts, single};
pub use engine::Glance;

/// Why a network with real hosts cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks something, or does not allow it.
    #[error("{0}")]
    Missing(String),
    /// The scenario or an option asks for what cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The network cannot be set up.
    #[error(transparent)]
    Sim(#[from] sim::Error),
    /// Results cannot be written.
    #[error(transparent)]
    Record(#[from] record::Error),
}

impl From<netio::Error> for Error {
    fn from(error: netio::Error) -> Error {
        match error {
            netio::Error::Missing(what) => Error::Missing(what),
            netio::Error::Wrong(what) => Error::Wrong(what),
            netio::Error::System { what, source } => Error::System { what, source },
        }
    }
}

impl From<disk::Error> for Error {
    fn from(error: disk::Error) -> Error {
        Error::Record(error.into())
    }
}

impl Error {
    /// `map_err` with what was tried.
    pub(crate) fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        move |source| Error::System { what: what.into(), source: source.into() }
    }
}
