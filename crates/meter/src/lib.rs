//! Measures a network from one of its ends: the client of `ranway measure`.
//!
//! | module | contents |
//! | --- | --- |
//! | `plan` | what to measure, and against which server |
//! | `fault` | why a measurement fails |
//! | `addresses` | the addresses of servers, and the interfaces to them |
//! | `tls` | who is trusted, and what an error of TLS means |
//! | `line` | a connection to the server, with the times of its own data |
//! | `upgrade` | requests that turn a connection of HTTP into another one |
//! | `rmbt`, `mlab` | a flow of each protocol |
//! | `kinds` | directions of flows, kinds of probes, what requests tell |
//! | `capture` | a capture of the packets, by a process of its own |
//! | `flow` | what the threads of a flow share |
//! | `sampler` | the kernel's state of all flows, at fixed times |
//! | `remote` | the sender of a download as its server tells it |
//! | `probes` | round-trip times beside the flows |
//! | `modem` | what a modem tells about its cell |
//! | `tokens` | tokens: from a control server, or made with a key |
//! | `session` | the course of a measurement |
//! | `outcome` | what came out, and what it means |
//! | `proxy` | signs of a split proxy on the path |
//! | `reasons` | what an outcome does not have, and why |
//! | `rows` | the outcome as tables |
//!
//! # Course of a measurement
//!
//! 1. [`measure()`] connects every flow and lets the server admit it, so that nothing of this falls into the measured time. One more
//!    connection is for latency: it carries small requests only.
//! 2. The probes run before, during and after the load. Each flow has a thread, which moves bytes as fast as the kernel takes them;
//!    one more samples all flows' `TCP_INFO`.
//! 3. The bytes of uploads are those that the server reports: what a client has written may still be in its own buffers.
//! 4. Of downloads, servers of ndt7 and throughput1 tell the state of their kernel: [`Remote`](observe::kernel::Remote).
//! 5. [`Outcome`] tells what limited each flow and where packets waited, and becomes the usual tables.

// This crate is where the program meets the network.
#![allow(clippy::disallowed_methods)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod addresses;
mod capture;
mod fault;
mod flow;
mod kinds;
mod line;
mod mlab;
mod modem;
mod outcome;
mod plan;
mod probes;
mod proxy;
mod reasons;
mod remote;
mod rmbt;
mod rows;
mod sampler;
mod session;
mod tls;
mod tokens;
mod upgrade;

pub use addresses::{addresses, check_interface};
pub use capture::{Capture, Captured, run_helper};
pub use fault::Fault;
pub use kinds::{Latency, Probe, Requests};
pub use line::{check_congestion, kernel_name};
pub use modem::Modem;
pub use outcome::{LEAST_WAIT, Load, LoadTimes, Outcome, Phase, flow_name};
pub use plan::{Amount, Plan, Protocol, Target};
pub use proxy::ProxySign;
pub use rows::ends;
pub use session::{FlowGlance, Glance, measure};
pub use speedtest::host_port::{HostPort, written_as_port};
pub use speedtest::rmbt::token::Key;
pub use tls::{Tls, Trust};
pub use tokens::{TOKEN_VARIABLE, check_url, first_key, make_token, request_token};
