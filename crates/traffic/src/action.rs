//! What applications and their driver tell each other.

use core::fmt;
use rand_xoshiro::Xoshiro256PlusPlus;
use units::{Span, Time};

/// How long an application waits after a failed connection before it begins the next transfer or page, at least: a
/// network that refuses each connection at once must not be asked again in the same instant.
pub const RETRY_AFTER: Span = Span::from_secs(1);

/// Bytes of the IPv4 and UDP headers in front of a datagram's payload.
pub const UDP_HEADERS: u32 = 28;

/// The random stream of one application, named and seeded by the driver.
pub type Random = Xoshiro256PlusPlus;

/// One of the two hosts between which an application runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host that the data mainly comes from: the server of a download.
    From,
    /// The host that the data mainly goes to.
    To,
}

impl Side {
    /// The other host.
    #[inline]
    pub const fn peer(self) -> Side {
        match self {
            Side::From => Side::To,
            Side::To => Side::From,
        }
    }
}

/// What carries an application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Connections: [`Action::Connect`] and what follows, never [`Action::Datagram`].
    Tcp,
    /// [`Action::Datagram`]s only.
    Udp,
}

/// What an application asks of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open connection `conn`, a number that this application has not used before; `opener` sends the SYN.
    Connect {
        /// The new connection: 0, 1, 2 and so on.
        conn: u32,
        /// The host that opens it; the other one listens.
        opener: Side,
    },
    /// Offer so many more bytes for sending. Only on a connection that `side` was told to be connected.
    Write {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
        /// Bytes, more than zero.
        bytes: u64,
    },
    /// Offer as much as the transport takes, until [`Action::Pause`] or [`Action::Close`].
    WriteUnlimited {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
    },
    /// End [`Action::WriteUnlimited`]: what has not been sent for the first time by now is not offered any more.
    Pause {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
    },
    /// `side` writes no more: its FIN follows what it has offered. It still reads. It may come while the connection is
    /// being opened.
    Close {
        /// The connection.
        conn: u32,
        /// The closing side.
        side: Side,
    },
    /// Reset the connection; both sides forget it.
    Abort {
        /// The connection.
        conn: u32,
    },
    /// Send one UDP datagram from [`Side::From`] to [`Side::To`].
    Datagram {
        /// UDP payload in bytes.
        bytes: u32,
    },
    /// A transfer or page is complete: its last byte has reached the reader. A row of the table of transfers.
    Completed(Transfer),
    /// A transfer or page was given up because a connection failed; `bytes` are those that arrived.
    Failed(Transfer),
    /// The application is done: it opens, offers and reports nothing more. It comes once. Notices about connections that
    /// are still closing may follow, and are answered.
    Finished,
}

/// What the driver tells an application about one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `side` may write: its handshake is done.
    Connected {
        /// The connection.
        conn: u32,
        /// The side that may write from now on.
        side: Side,
    },
    /// So many more bytes have reached the reader in order.
    Delivered {
        /// The connection.
        conn: u32,
        /// The reading side.
        side: Side,
        /// Bytes newly delivered.
        bytes: u64,
    },
    /// `side` has read everything up to the other side's FIN.
    Closed {
        /// The connection.
        conn: u32,
        /// The side that reads the end.
        side: Side,
    },
    /// The connection was reset, refused or timed out. Nothing more is heard of it.
    Failed {
        /// The connection.
        conn: u32,
    },
}

/// A transfer of known size, or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which of the application's: 0, 1, 2 in the order of their starts.
    pub index: u32,
    /// When its first connection was asked for.
    pub start: Time,
    /// When its last byte was delivered, or when it failed.
    pub end: Time,
    /// The bytes delivered.
    pub bytes: u64,
}

/// A parameter with which an application cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadConfig {
    /// The parameter, by its name in [`Config`].
    pub key: &'static str,
    /// What it must be.
    pub must: &'static str,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must {}", self.key, self.must)
    }
}

impl core::error::Error for BadConfig {}

pub(crate) fn require(ok: bool, key: &'static str, must: &'static str) -> Result<(), BadConfig> {
    if ok { Ok(()) } else { Err(BadConfig { key, must }) }
}
