//! Conformance suites that every controller and queue passes, and attempts of tests in real time

pub mod controller;
pub mod queue;
pub mod realtime;
