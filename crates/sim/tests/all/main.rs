//! The tests of the simulation, in one program: the simulator is linked once for all of them.

#![allow(missing_docs, reason = "a test binary")]

mod backlog;
mod closed_forms;
#[path = "../common/mod.rs"]
mod common;
mod conservation;
mod delays;
mod flows;
mod host_time;
mod jobs;
mod live;
mod lte;
mod lte_keys;
mod mdcc;
mod middlebox;
mod nr;
mod nr_keys;
mod own_host;
mod pep;
mod proxy;
mod radio_random;
mod readers;
mod reordering;
mod replicates;
mod reports;
mod scale;
mod slow_start;
