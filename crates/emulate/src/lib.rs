//! Real hosts behind the simulated network, in real time: `ranway emulate`, and the hosts of the kernel oracle.
//!
//! | module | contents |
//! | --- | --- |
//! | `emulation` | an emulation from its scenario to its results |
//! | `engine` | the real-time loop: reads packets, advances the network, writes packets when they are due |
//! | `held` | the real packets whose descriptors are in the network |
//! | `border` | real packets as middleboxes see them, and the packets that middleboxes send |
//! | `forward` | where packets of the hosts go |
//! | `port` | an end of the network: a host's TUN interface, or an existing interface |
//! | `lateness` | how late packets were delivered, and whether that makes the run invalid |
//! | `lab` | the hosts: a network namespace for each |
//! | `names` | names of hosts: `/etc/hosts`, and a name server in each |
//! | `host_queue` | queues in hosts, in front of a link |
//! | `proxy` | the scenario's proxy: `ranway proxy` in a router |
//! | `passage` | delays of data through the proxy |
//! | `reports` | the cells' reports to the proxy and to other readers |
//! | `uplink` | the route from the server's namespace to the networks of this machine |
//! | `tidy` | removes everything a lab created, even after a crash |
//! | `rootless` | hosts without root, in namespaces of the user |
//! | `account` | another user, for a command in a host |
//! | `serve` | a web server and iperf3 at the server's end |
//! | `control` | commands for a running emulation |
//! | `capture` | real packets into pcapng files |
//! | `kernel` | the scenario's flows, sent by the kernel's TCP |
//! | `rows` | rows of the tables for real flows |
//!
//! # Path of a packet
//!
//! A host sends it into its interface (`lab`), whose other end is a `port`. The `engine` reads it, has it counted by
//! [`observe::Observer`], keeps its bytes (`held`) and sends a descriptor into `sim::Live`. When the network delivers that,
//! the engine writes the bytes to the receiver's port, with a congestion mark if the network gave it one, and notes how late
//! it was (`lateness`). All links are `link::Link`s here, because their rates may change during the run. With the scenario's
//! `proxy`, the router has a port on each side, `ranway proxy` runs in it, and the cells' reports come from the same `Reports` as
//! the simulated proxy's (`Live::poll_report`). A packet that passes a middlebox is shown to it by `border`. Programs for hosts, the web server and
//! the kernel's senders run in threads and processes of their own.

// This crate is where the program meets the machine.
#![allow(clippy::disallowed_methods)]
// Only the command prints, in a way that survives a closed terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod account;
mod border;
pub mod capture;
pub mod control;
mod emulation;
mod engine;
mod forward;
mod held;
mod host_queue;
pub mod kernel;
pub mod lab;
mod lateness;
mod names;
mod passage;
mod port;
mod proxy;
pub mod reports;
pub mod rootless;
mod rows;
pub mod serve;
mod tidy;
pub mod uplink;

pub use emulation::{Emulation, Finished, Options, check, check_router, hosts, routers, single};
pub use engine::{Glance, News, Watch};
pub use names::GivenName;

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
