//! The interface between applications and their driver.

use rand_xoshiro::Xoshiro256PlusPlus;
use units::{Span, Time};

/// Minimum delay after a failed connection before an application begins the next transfer or page: a network that
/// refuses every connection at once must not be retried at the same instant.
pub const RETRY_AFTER: Span = Span::from_secs(1);

/// Bytes of the IPv4 and UDP headers in front of a datagram's payload.
pub const UDP_HEADERS: u32 = 28;

/// The random stream of one application, named and seeded by the driver.
pub type Random = Xoshiro256PlusPlus;

/// One of the two hosts between which an application runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host that mainly sends data: the server of a download.
    From,
    /// The host that mainly receives data.
    To,
}

impl Side {
    /// Returns the other host.
    #[inline]
    pub const fn peer(self) -> Side {
        match self {
            Side::From => Side::To,
            Side::To => Side::From,
        }
    }
}

/// The transport of an application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP connections: [`Action::Connect`] and related actions, never [`Action::Datagram`].
    Tcp,
    /// UDP: only [`Action::Datagram`].
    Udp,
}

/// A request of an application to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open connection `conn`, a number not used before by this application; `opener` sends the SYN.
    Connect {
        /// The new connection: 0, 1, 2 and so on.
        conn: u32,
        /// The host that opens it; the other one listens.
        opener: Side,
    },
    /// Offer further bytes for sending. Only on a connection for which `side` has received [`Notice::Connected`].
    Write {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
        /// Bytes, more than zero.
        bytes: u64,
    },
    /// Offer as much data as the transport accepts, until [`Action::Pause`] or [`Action::Close`].
    WriteUnlimited {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
    },
    /// End [`Action::WriteUnlimited`]: data not yet sent for the first time is withdrawn.
    Pause {
        /// The connection.
        conn: u32,
        /// The writing side.
        side: Side,
    },
    /// `side` writes no more: its FIN follows the data offered. It still reads. May be requested while the connection
    /// is being opened.
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
    /// A transfer or page is complete: its last byte has reached the reader. Yields a row in the table of transfers.
    Completed(Transfer),
    /// A transfer or page was abandoned because a connection failed; `bytes` is the number that arrived.
    Failed(Transfer),
    /// The application has finished: it opens, offers and reports nothing more. Sent once. Notices about connections
    /// that are still closing may follow, and are handled.
    Finished,
}

/// A notification of an application about one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `side` may write: its handshake is done.
    Connected {
        /// The connection.
        conn: u32,
        /// The side that may write from now on.
        side: Side,
    },
    /// Further bytes have reached the reader in order.
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
    /// The connection was reset, refused or timed out. No further notices follow.
    Failed {
        /// The connection.
        conn: u32,
    },
}

/// A transfer of known size, or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its number within the application: 0, 1, 2 in order of the starts.
    pub index: u32,
    /// When its first connection was requested.
    pub start: Time,
    /// When its last byte was delivered, or when it failed.
    pub end: Time,
    /// The bytes delivered.
    pub bytes: u64,
}
