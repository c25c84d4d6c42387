//! What can go wrong, for the caller to tell.

use std::fmt::Display;
use std::io;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This kernel, or this user, cannot.
    #[error("{0}")]
    Missing(String),
    /// What was asked for makes no sense as things are.
    #[error("{0}")]
    Wrong(String),
    /// The kernel refused.
    #[error("cannot {what}: {why}")]
    Refused {
        /// What it was to do.
        what: String,
        /// Its answer, with what its verifier said last.
        why: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what the kernel was to do.
    pub(crate) fn refused<E: Display>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |why| Error::Refused { what, why: why.to_string() }
    }

    /// For `map_err`: what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |source| Error::System { what, source: source.into() }
    }
}
