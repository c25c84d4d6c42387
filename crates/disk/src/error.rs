//! Errors of directory operations.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a directory cannot be used. The message names the path and, where possible, a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system reported an error.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The operation, as in "cannot write ...".
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Root would write where another user can exchange files.
    #[error(
        "root does not write below {}: {why}, so others could exchange files while they are written; choose a directory that \
         belongs to you or to root, or run it with sudo as the directory's owner", .path.display()
    )]
    Untrusted {
        /// The directory or link that others can change.
        path: PathBuf,
        /// Who can change it, and why.
        why: String,
    },
}

impl Error {
    /// An [`Error::Io`] for use in `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { doing, path: path.clone(), source }
    }
}
