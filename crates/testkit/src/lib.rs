//! Conformance suites for controllers and queues, repetition of real-time tests, waits with a bound, tests that need root, a
//! broker, the report's types, and comparison of results.

pub mod broker;
pub mod controller;
pub mod ends;
pub mod ipfix;
pub mod page;
pub mod queue;
pub mod realtime;
pub mod results;
pub mod root;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Adds a line to a file of `target`: test runners show nothing of a test that passes.
fn remember(file: impl AsRef<Path>, line: &str) {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let _ = fs::create_dir_all(&target);
    let file = OpenOptions::new().create(true).append(true).open(target.join(file));
    // In one call, since tests run at the same time.
    let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}
