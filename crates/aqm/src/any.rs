//! All queue disciplines with their parameters, as scenario files write them, and behind one type, with static dispatch.

use units::check::Check;
use units::{Bytes, Time, kinds};

use crate::codel::{self, Codel};
use crate::drop_tail::{self, DropTail};
use crate::fq::{self, Fq};
use crate::fq_codel::{self, FqCodel};
use crate::pfifo_fast::{self, PfifoFast};
use crate::{Backlog, Drops, Packet, Queue};

/// The table of disciplines: documentation for files, and the type, by which the variant is named, with its module.
macro_rules! disciplines {
    ($($(#[$meta:meta])* $queue:ident in $module:ident;)*) => {
        kinds! { "Config" as "Queue",
            /// The queue in front of a link. Default: drop-tail with 1000 packets, as Linux configures an interface.
            #[derive(Copy, Eq)]
            pub enum Config {
                $($(#[$meta])* $queue($module::Config),)*
            }
        }

        impl Config {
            /// Checks that each parameter is in its range.
            pub fn check(&self, c: &mut Check) {
                match self {
                    $(Config::$queue(config) => config.check(c),)*
                }
            }
        }

        /// Any of the queue disciplines.
        #[derive(Clone, Debug)]
        pub enum AnyQueue<P> {
            $(#[doc = concat!("See [`", stringify!($queue), "`].")] $queue($queue<P>),)*
        }

        impl<P: Packet> AnyQueue<P> {
            /// Creates an empty queue.
            pub fn new(config: &Config) -> Self {
                match *config {
                    $(Config::$queue(config) => AnyQueue::$queue($queue::new(config)),)*
                }
            }
        }

        macro_rules! each {
            ($any:expr, $q:ident => $body:expr) => {
                match $any {
                    $(AnyQueue::$queue($q) => $body,)*
                }
            };
        }
    };
}

disciplines! {
    /// First in, first out; packets that do not fit are dropped. Without a limit: 1000 packets.
    #[serde(deserialize_with = "drop_tail::limited")]
    DropTail in drop_tail;
    /// Three bands by priority, each first in, first out (Linux `pfifo_fast`).
    PfifoFast in pfifo_fast;
    /// Controlled delay (RFC 8289).
    Codel in codel;
    /// One queue per flow, served by deficit round robin; at the limit, the longest queue drops.
    Fq in fq;
    /// Flow queueing with CoDel in each queue (RFC 8290).
    FqCodel in fq_codel;
}

impl Default for Config {
    fn default() -> Self {
        Config::DropTail(drop_tail::Config::USUAL)
    }
}

impl Config {
    /// A FIFO without a limit.
    pub const UNLIMITED: Config = Config::DropTail(drop_tail::Config::UNLIMITED);

    /// Returns the most bytes that the queue holds, if that is limited.
    pub fn max_bytes(&self) -> Option<Bytes> {
        match self {
            Config::DropTail(config) => config.bytes,
            Config::FqCodel(config) => Some(config.bytes),
            Config::PfifoFast(_) | Config::Codel(_) | Config::Fq(_) => None,
        }
    }

    /// Sets the salt of a discipline that hashes flows.
    #[must_use]
    pub fn salted(self, salt: impl FnOnce() -> u64) -> Config {
        match self {
            Config::Fq(config) => Config::Fq(fq::Config { salt: salt(), ..config }),
            Config::FqCodel(config) => Config::FqCodel(fq_codel::Config { salt: salt(), ..config }),
            Config::DropTail(_) | Config::PfifoFast(_) | Config::Codel(_) => self,
        }
    }
}

impl<P: Packet> AnyQueue<P> {
    /// Returns whether a packet of `len` bytes and this priority would be dropped on arrival after `ahead`, which is still to
    /// arrive, as far as that depends on a fixed limit.
    pub fn is_full(&self, len: u32, priority: u8, ahead: Backlog) -> bool {
        match self {
            AnyQueue::DropTail(queue) => queue.is_full(len, ahead),
            AnyQueue::PfifoFast(queue) => queue.is_full(priority, ahead),
            AnyQueue::Codel(_) | AnyQueue::Fq(_) | AnyQueue::FqCodel(_) => false,
        }
    }

    /// Returns whether the discipline may drop packets at a service opportunity, and not only at an arrival.
    pub fn drops_when_served(&self) -> bool {
        match self {
            AnyQueue::Codel(_) | AnyQueue::FqCodel(_) => true,
            AnyQueue::DropTail(_) | AnyQueue::PfifoFast(_) | AnyQueue::Fq(_) => false,
        }
    }
}

// The control laws other than drop-tail are not inlined (`inline(never)`): inlining them would slow down the short
// paths.
impl<P: Packet> Queue<P> for AnyQueue<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        each!(self, q => q.enqueue(packet, now, drops));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P> {
        each!(self, q => q.dequeue(now, drops))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, q => q.backlog())
    }

    fn marks(&self) -> u64 {
        each!(self, q => q.marks())
    }
}
