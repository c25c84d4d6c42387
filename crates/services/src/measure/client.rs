//! The other side of a connection, and how a connection with it ends.

use super::stream::Stream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

/// How long the end of a connection may take.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// Why a connection ended early.
#[derive(Debug)]
pub(super) enum Fault {
    /// Its client broke it off.
    Broken,
    /// Its client was silent for too long.
    Timeout,
    /// Its client does not follow the protocol.
    Protocol,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            // A record that is none of TLS, or an alert that ends it.
            io::ErrorKind::InvalidData => Fault::Protocol,
            _ => Fault::Broken,
        }
    }
}

/// Who is on the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) peer: SocketAddr,
    /// When it must have presented a token.
    pub(super) deadline: Instant,
}

/// Ends a connection so that the client gets all of what was sent: a socket that is closed before it has read everything sends
/// a reset, which may overtake the data.
pub(super) async fn linger(stream: &mut Stream) {
    let end = async {
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(LINGER, end).await;
}
