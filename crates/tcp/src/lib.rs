//! A TCP endpoint without sockets and without payload: it counts bytes.
//!
//! [`Endpoint`] is one side of a connection. The Linux kernel is the reference for what it does, 6.18 or, where that is chosen
//! and differs, 6.1 ([`Kernel`]); each file names the functions that it follows and lists where it leaves them. What the
//! kernel has and this crate does not, as a whole:
//!
//! 1. GRO: segments are received one by one. They are sent one by one, too, but in the packets that TSO or GSO would cut.
//! 2. Nagle's algorithm and corking: every write leaves as soon as the windows allow.
//! 3. Ticks: timers fire when they are due, not at the next jiffy or timer-wheel slot.
//! 4. Fast Open, SYN cookies, urgent data, keep-alive, path MTU probing, thin-stream options, and the cache of
//!    metrics except for the slow-start threshold.
//! 5. A lost SYN or SYN-ACK does not reduce the initial window (Linux starts with one segment after the second loss), and
//!    is retried with exponential back-off from the first on (6.5 and later first retry four times at 1 s).
//! 6. FIN-WAIT-2 has no time-out: a half-closed connection lasts as long as its peer.
//!
//! A segment that belongs to no connection is answered by whoever looks connections up.

mod acceptance;
mod ack;
mod autotune;
mod config;
mod endpoint;
mod handshake;
mod host;
mod own_host;
mod pacing;
mod parameters;
mod passage;
mod queue;
mod rack;
mod ranges;
mod rate;
mod receiver;
mod recovery;
mod rtt;
mod send_buffer;
mod sender;
mod states;
mod stats;
mod tso;

pub use config::{Config, Kernel, Pacing, SendBuffer};
pub use endpoint::{Endpoint, Event, Outcome, Snapshot, State, Transmit};
pub use host::{HostQueue, Metrics};
pub use parameters::Parameters;
pub use stats::{Limit, Stats};

use units::Time;

/// What surrounds an input or output: the moment, the connection's random stream, and where the controller's state changes
/// are told. Time never goes back.
#[derive(Debug)]
pub struct Context<'a> {
    /// Now.
    pub now: Time,
    /// The controller's random stream.
    pub random: &'a mut cc::Random,
    /// Who listens to the controller, if anybody.
    pub log: Option<&'a mut Vec<cc::Event>>,
}

impl Context<'_> {
    /// The same for the controller.
    #[inline]
    fn controller<'b>(&'b mut self, path: &'b cc::Path) -> cc::Ctx<'b> {
        cc::Ctx { now: self.now, path, random: self.random, log: self.log.as_deref_mut() }
    }
}

/// The clock of the timestamps option: milliseconds (Linux `TCP_TS_HZ`).
#[inline]
fn millis(at: Time) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}
