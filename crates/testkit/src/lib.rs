//! Conformance suites that every controller and queue passes

pub mod controller;
pub mod queue;
