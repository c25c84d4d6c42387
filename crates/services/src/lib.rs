//! Services on real hosts: what `ranway` runs between a machine's own interfaces, without a simulated network.
//!
//! | module | contents |
//! | --- | --- |
//! | `backlog` | `ranway backlog`: shapes traffic so that the queue forms in FQ-CoDel, not in the modem |
//! | `clock` | the time of day |
//! | `dashboard` | `--dashboard`: a page that follows a run, with metrics and controls |
//! | `log` | messages to the operator |
//! | `measure` | `ranway measure serve`: a server for tests with RMBT, ndt7 and throughput1 |
//! | `metrics` | the text format of Prometheus, in which all services tell their metrics, and the server of `--metrics` |
//! | `proxy` | `ranway proxy`: splits TCP connections transparently between servers and UEs |
//! | `rnis` | `ranway rnis`: radio network information (ETSI MEC 012) from the feeds of base stations |
//! | `secret` | random secrets, and tokens that requests present |
//! | `server` | the HTTP server of `rnis`, `dashboard` and `metrics` |
//! | `socket_file` | sockets with a file, which disappears with the process |
//!
//! A service shares with the others what `clock`, `log`, `metrics`, `secret`, `server` and `socket_file` hold, and nothing else.
//!
//! The path of a packet through each service is in the documentation of its module. `ranway pep` and `ranway mdcc` run in the
//! kernel: their programs and loaders are in `ebpf`.

// This crate is where the program meets the machine.
#![allow(clippy::disallowed_methods)]
// Only the command prints, in a way that survives a closed terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod backlog;
mod clock;
pub mod dashboard;
mod log;
pub mod measure;
mod metrics;
pub mod proxy;
pub mod rnis;
mod secret;
mod server;
mod socket_file;

pub use clock::unix_now;
pub use log::Log;
pub use metrics::{Metric, MetricsAccess, MetricsListener, MetricsServer};
pub use server::{Network, parse_host};
pub use socket_file::SocketFile;
