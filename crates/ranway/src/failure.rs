//! Why a command fails, and its exit code.

/// What went wrong, by the exit code that it gives.
pub(crate) enum Failure {
    /// Something outside: a disk, a missing file. Exit code 1.
    Failed(anyhow::Error),
    /// The input is wrong. Exit code 2; nothing was written.
    Wrong(String),
    /// Whatever ended has this exit code, and has said why.
    Ended(u8),
    /// Stopped by Ctrl-C after writing what had finished. Exit code 130.
    Interrupted,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let untrusted = matches!(error.downcast_ref(), Some(record::Error::Untrusted(_)))
            || matches!(error.downcast_ref(), Some(emulate::Error::Record(record::Error::Untrusted(_))))
            || matches!(error.downcast_ref(), Some(disk::Error::Untrusted { .. }));
        if untrusted {
            return Failure::Wrong(error.to_string());
        }
        let wrong = match (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()) {
            (Some(emulate::Error::Wrong(what)), _, _)
            | (_, Some(netio::Error::Wrong(what)), _)
            | (_, _, Some(ebpf::Error::Wrong(what))) => Some(what.clone()),
            _ => None,
        };
        wrong.map_or(Failure::Failed(error), Failure::Wrong)
    }
}
