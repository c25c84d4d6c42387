//! What can go wrong with a campaign.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a campaign. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The campaign file, or its directory, is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The system refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Results cannot be read or written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// A directory cannot be used.
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }
}
