//! Errors of loading and controlling programs.

use std::fmt::Display;
use std::io;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel or the user lacks a requirement.
    #[error("{0}")]
    Missing(String),
    /// The request is invalid in the current state.
    #[error("{0}")]
    Wrong(String),
    /// The kernel rejected the operation.
    #[error("cannot {what}: {why}")]
    Refused {
        /// The operation.
        what: String,
        /// The kernel's error, with the last message of its verifier.
        why: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`, with the operation of the kernel.
    pub(crate) fn refused<E: Display>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |why| Error::Refused { what, why: why.to_string() }
    }

    /// For `map_err`, with the operation.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |source| Error::System { what, source: source.into() }
    }
}
