//! What can go wrong, and random bytes.

/// The reason why a server cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Fills a buffer with random bytes.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|why| Error(format!("no random numbers: {why}")))
}
