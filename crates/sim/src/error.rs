//! Why a simulation cannot be run.

/// Why a simulation cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace cannot be read, or is not one.
    #[error("trace {file}: {what}")]
    Trace {
        /// The file, as the scenario names it.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// A recorded channel cannot be read, or is not one.
    #[error("channel {file}: {what}")]
    Channel {
        /// The file, as the scenario names it.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// The system gives no threads.
    #[error("no threads: {0}")]
    Threads(String),
}

/// The message about a name that nothing has.
pub(crate) fn unknown_name<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("unknown {what} `{name}`; known: {}", known.collect::<Vec<_>>().join(", "))
}
