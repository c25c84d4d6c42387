//! What can go wrong with a directory.

use std::io;
use std::path::{Path, PathBuf};

/// Why a directory could not be used. Its text names the path and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done, as in "cannot write ...".
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Root would write where somebody else can exchange files.
    #[error(
        "root does not write below {}: {why}, who could exchange files while they are written; choose a directory that \
         belongs to you or to root, or run it with sudo as the directory's owner", .path.display()
    )]
    Untrusted {
        /// The directory or link that others can change.
        path: PathBuf,
        /// Who can.
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
