//! Tests of the analysis, in one program: it is linked once for all of them.

#![allow(clippy::disallowed_methods, reason = "tests read files and measure")]

mod cases;
mod common;
mod copies;
mod foreign;
mod fuzz;
mod hostile;
mod inputs;
mod iperf3;
mod join;
mod known;
mod memory;
mod packed;
mod pair;
mod ss_times;
mod tcptrace;
mod tunnels;
mod wireshark;
