//! End-to-end tests of the command, in one program: what they share is compiled once. Those of real hosts need root (`root_…`) and
//! report when they are skipped.

#![allow(clippy::disallowed_methods, reason = "tests of a command run commands and read files")]

mod abuse;
mod analyse;
mod attach;
mod backlog;
mod browser;
mod campaign;
mod capturing;
mod command;
mod common;
mod dashboard;
mod dashboard_services;
mod decisions;
mod docs;
mod emulate;
mod emulated_proxy;
mod mdcc;
mod measure;
mod measure_hosts;
mod measuring;
mod monitoring;
mod nat;
mod oracle;
mod packaging;
mod pep;
mod privileges;
mod proxy;
mod proxy_bytes;
mod proxy_control;
mod proxy_faults;
mod proxy_handover;
mod proxy_ipfix;
mod proxy_nat;
mod proxy_policy;
mod proxy_reload;
mod proxy_timeouts;
mod reports;
mod reproduce;
mod rnis;
mod router;
mod sweep;
mod systemd;
