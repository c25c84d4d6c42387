//! Access to the operating system, for every product that needs it: interfaces, sockets, signals, privileges and clocks.
//! What only the emulator needs (namespaces, routes, kernel flows) is in `emulate`.
//!
//! | module | contents |
//! | --- | --- |
//! | `attach` | existing interfaces whose frames a program takes and gives |
//! | `frames` | Ethernet frames: finding the IP packet, segmentation, checksums |
//! | `errqueue` | times of data that was sent, and ICMP errors |
//! | `nflog` | packets that nftables logs |
//! | `netlink` | messages of netlink |
//! | `counters` | named counters of nftables |
//! | `rules` | changes of the rules of nftables |
//! | `sniff` | the headers of the packets of connections with one server |
//! | `socket` | Unix sockets for their owner alone, keepalive, sockets bound to interfaces |
//! | `tun` | TUN and TAP interfaces |
//! | `manager` | what a service manager is told, and the descriptors that it keeps |
//! | `reservation` | one program at a time for an interface |
//! | `realtime` | the monotonic clock, real-time priority, locked memory |
//! | `rights` | privileges: checked before, given up after setting up |
//! | `process` | signals, and a command that runs attended |
//! | `program` | programs of the system, `ip` above all |
//! | `tls` | authorities that clients of TLS trust (feature `tls`) |
//! | `sys` | system calls that no library wraps; the only `unsafe` code outside `ebpf` |
//!
//! # Path of a packet
//!
//! A packet enters by [`attach::Wire::receive`], which completes what the sender left to its interface (checksums) and tells
//! what is left to do (segmentation, [`frames::cut`]), or by [`tun::Tun::read`], where the kernel has done both. It leaves
//! by [`attach::Wire::send`] or [`tun::Tun::write`].

// This crate is where the program meets the machine.
#![allow(clippy::disallowed_methods)]
// Only the command prints, in a way that survives a closed terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod attach;
pub mod counters;
pub mod errqueue;
pub mod frames;
pub mod manager;
mod netlink;
pub mod nflog;
pub mod process;
pub mod program;
pub mod realtime;
pub mod reservation;
pub mod rights;
pub mod rules;
pub mod sniff;
pub mod socket;
pub mod sys;
#[cfg(feature = "tls")]
pub mod tls;
pub mod tun;

/// Why the machine does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks something, or does not allow it.
    #[error("{0}")]
    Missing(String),
    /// An option asks for what cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: a system's error, with what was tried.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        move |source| Error::System { what: what.into(), source: source.into() }
    }
}
