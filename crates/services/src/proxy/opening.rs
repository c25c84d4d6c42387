//! Connections whose client's handshake is not complete.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::book::Place;
use super::syn::Syn;

/// How long a client has to complete a handshake that its server has completed. The kernel repeats the SYN-ACK after 1, 2, 4 and 8 s.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(15);
/// The same for a client that has never completed one: anybody may have sent its SYN.
pub(super) const FIRST_HANDSHAKE: Duration = Duration::from_secs(5);

/// A connection whose client's handshake is not complete.
pub(super) struct Opening {
    pub(super) syn: Syn,
    pub(super) place: Place,
    pub(super) outgoing: OwnedFd,
    /// Whether the server has answered.
    pub(super) is_connected: bool,
    /// When it began, or the server has answered.
    pub(super) since: Instant,
    pub(super) generation: u32,
}
