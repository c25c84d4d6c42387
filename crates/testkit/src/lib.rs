//! Conformance suites for controllers and queues, and repetition of real-time tests.

pub mod controller;
pub mod queue;
pub mod realtime;
