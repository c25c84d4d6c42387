//! Why tests fail.

use crate::failure::Failure;
use std::time::Duration;

/// How often an interruption is looked for while nothing else happens.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Why a test has no results.
pub(super) enum Failed {
    /// The test failed; the campaign goes on.
    Test(String),
    /// The user has asked to stop.
    Interrupted,
    /// Nothing more can be done.
    Campaign(Failure),
}

/// The beginning of a reason, on one line.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(500).collect()
}
