//! Why a measurement fails.

use std::io;
use std::time::Duration;

/// Time without any progress after which a connection is given up.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a measurement, or a flow of it, failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The server cannot be reached.
    #[error("{server}: {source}")]
    Connect {
        /// The server.
        server: String,
        /// The system's answer.
        source: io::Error,
    },
    /// An option is not valid, or the system refuses it.
    #[error("{0}")]
    Option(String),
    /// There is no TLS with the server: its certificate, or what it says.
    #[error("{0}")]
    Tls(String),
    /// The connection broke.
    #[error("the connection to the server broke: {0}")]
    Broken(io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection {0}")]
    Closed(&'static str),
    /// The server says nothing.
    #[error("the server has not answered for {} s", IDLE_TIMEOUT.as_secs())]
    Silent,
    /// The server refuses.
    #[error("the server refuses the measurement{}", because(.0))]
    Refused(String),
    /// The server does not speak the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The user has ended the measurement.
    #[error("interrupted")]
    Interrupted,
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Broken(error)
    }
}
