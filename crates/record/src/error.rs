//! What can go wrong with results on a disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why results could not be written or read. Its text names the path and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {doing} {}: {source}{}", .path.display(), advice(.doing, .source))]
    Io {
        /// What was being done, as in "cannot write ...".
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The directory holds something that no run wrote; replacing the directory would lose it.
    #[error("{} holds {entry:?}, which is not part of results: choose another directory, or move it away", .path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first entry that is not ours.
        entry: String,
    },
    /// This process is root, and others could exchange files in the directory while they are written.
    #[error(transparent)]
    Untrusted(disk::Error),
    /// Another run is writing to the same place.
    #[error("another run is writing to {}: wait for it, or choose another directory", .path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds complete results, and the new ones are partial.
    #[error("{} holds complete results, which partial ones do not replace: choose another directory", .path.display())]
    Complete {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no results.
    #[error("{} holds no results (no meta.json)", .path.display())]
    NotResults {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is of another sweep.
    #[error("{} holds jobs of another sweep, with a different {what}: choose another directory, or remove it", .path.display())]
    OtherSweep {
        /// The directory.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// The directory holds no sweep.
    #[error("{} holds no jobs of a sweep (no sweep.json)", .path.display())]
    NotSweep {
        /// The directory.
        path: PathBuf,
    },
    /// The directory of a sweep has jobs, but not the file that says what was run.
    #[error("{} holds jobs, but its sweep.json is lost: {remedy}", .path.display())]
    LostSweep {
        /// The directory.
        path: PathBuf,
        /// What to do about it.
        remedy: &'static str,
    },
    /// In place of a job's file there is something that a sweep does not replace: a directory, a file that cannot be read, or a job
    /// of another sweep.
    #[error("{} {what}: move it away or remove it, and start the same sweep again", .path.display())]
    NotJob {
        /// The entry.
        path: PathBuf,
        /// What it is, as in "is a directory".
        what: String,
    },
    /// The results of a sweep would go into its directory of jobs.
    #[error("{}: it is inside {}, which is removed when the results are written: choose another directory", .path.display(), .sweep.display())]
    InsideSweep {
        /// Where the results would go.
        path: PathBuf,
        /// The directory of the sweep.
        sweep: PathBuf,
    },
    /// The jobs of a sweep do not fit together, or are not complete.
    #[error(transparent)]
    Merge(#[from] crate::MergeError),
    /// A file of the results does not say what it should.
    #[error("{} is damaged or of another version: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Error {
    /// Whether the disk is full, or what this user may use of it.
    pub fn is_full(&self) -> bool {
        let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        matches!(self, Error::Io { source, .. } if full(source.kind()))
    }

    /// Whether results cannot go to the place that was chosen for them: a file is there, or others could exchange it.
    pub fn is_invalid_place(&self) -> bool {
        match self {
            Error::Io { doing, source, .. } => is_file(doing, source),
            error => matches!(error, Error::Untrusted(_)),
        }
    }

    /// An [`Error::Io`] for use in `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }

    /// An [`Error::Damaged`].
    pub(crate) fn damaged(path: &Path, what: &impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.to_string() }
    }
}

impl From<disk::Error> for Error {
    fn from(error: disk::Error) -> Error {
        match error {
            disk::Error::Io { doing, path, source } => Error::Io { doing, path, source },
            error @ disk::Error::Untrusted { .. } => Error::Untrusted(error),
        }
    }
}

/// Whether a directory was to be used, and a file is there.
fn is_file(doing: &str, source: &io::Error) -> bool {
    doing == "use" && source.kind() == io::ErrorKind::NotADirectory
}

fn advice(doing: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        _ if is_file(doing, source) => ": it is a file; choose a directory that is new, is empty or holds results",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some space or choose another directory",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if doing != "read" => {
            ": choose a directory that you may write to"
        }
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
            ": a mount point cannot be replaced; choose a directory below it"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_is_not_told_where_to_write() {
        let said = |doing| Error::io(doing, Path::new("x"))(io::ErrorKind::PermissionDenied.into()).to_string();
        assert_eq!(said("write"), "cannot write x: permission denied: choose a directory that you may write to");
        assert_eq!(said("read"), "cannot read x: permission denied");
    }
}
