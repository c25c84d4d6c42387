//! What can go wrong, and what the system gives: random bytes and the time.

use std::time::{SystemTime, UNIX_EPOCH};

/// The reason why a server cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

pub(super) fn unix_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Fills a buffer with random bytes.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|why| Error(format!("no random numbers: {why}")))
}
