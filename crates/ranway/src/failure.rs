//! The reasons for which a command fails, and their exit codes.

use crate::terminal::message;
use scenario::Loaded;

/// The reason why a command failed.
pub(crate) enum Failure {
    /// A failure of the environment, such as a full disk or a missing file. Exit code 1.
    Failed(anyhow::Error),
    /// The input is invalid. Exit code 2; nothing was written.
    Invalid(String),
    /// A program ended with this exit code and has printed its own message.
    Exit(u8),
    /// Interrupted by Ctrl-C, after the completed runs were written. Exit code 130.
    Interrupted,
}

impl Failure {
    /// What went wrong, if the command says so itself.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::Failed(error) => Some(with_causes(error)),
            Failure::Invalid(what) => Some(what.clone()),
            Failure::Exit(_) | Failure::Interrupted => None,
        }
    }

    /// The exit code of the command.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Invalid(_) => 2,
            Failure::Exit(code) => *code,
            Failure::Interrupted => 130,
        }
    }
}

/// Unwraps a loaded scenario; prints its warnings to standard error.
pub(crate) fn warned(loaded: Result<Loaded, scenario::Error>) -> Result<Loaded, Failure> {
    let loaded = loaded.map_err(|e| Failure::Invalid(e.to_string()))?;
    for warning in loaded.warnings() {
        message!("warning: {warning}");
    }
    Ok(loaded)
}

/// Formats an error and its causes, leaving out causes whose text the message already contains.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let refused = error.downcast_ref().is_some_and(record::Error::is_invalid_place)
            || matches!(error.downcast_ref(), Some(disk::Error::Untrusted { .. }));
        if refused {
            return Failure::Invalid(error.to_string());
        }
        #[cfg(feature = "live")]
        if let Some(what) = wrong(&error) {
            return Failure::Invalid(what);
        }
        Failure::Failed(error)
    }
}

/// Returns the message of an error of a live command, if it is about the input.
#[cfg(feature = "live")]
fn wrong(error: &anyhow::Error) -> Option<String> {
    let refused = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(emulate::Error::Record(error)), _) | (_, Some(campaign::Error::Record(error))) => {
            error.is_invalid_place()
        }
        (_, Some(error)) => {
            matches!(error, campaign::Error::Invalid(_) | campaign::Error::Disk(disk::Error::Untrusted { .. }))
        }
        _ => false,
    };
    if refused {
        return Some(error.to_string());
    }
    match (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()) {
        (Some(emulate::Error::Wrong(what)), _, _)
        | (_, Some(netio::Error::Wrong(what)), _)
        | (_, _, Some(ebpf::Error::Wrong(what))) => Some(what.clone()),
        _ => None,
    }
}
