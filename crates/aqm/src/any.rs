//! All queue disciplines behind one type, with static dispatch.

use units::Time;

use crate::codel::{self, Codel};
use crate::drop_tail::{self, DropTail};
use crate::fq::{self, Fq};
use crate::fq_codel::{self, FqCodel};
use crate::pfifo_fast::{self, PfifoFast};
use crate::{Backlog, Drops, Packet, Queue};

/// A queue discipline with its parameters. The default is a FIFO without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// A FIFO with a limit.
    DropTail(drop_tail::Config),
    /// Three FIFO bands in strict priority.
    PfifoFast(pfifo_fast::Config),
    /// A FIFO under CoDel.
    Codel(codel::Config),
    /// Deficit round robin over flows.
    Fq(fq::Config),
    /// Deficit round robin over flows under CoDel.
    FqCodel(fq_codel::Config),
}

impl Default for Config {
    fn default() -> Self {
        Config::DropTail(drop_tail::Config::default())
    }
}

/// Any of the queue disciplines.
#[derive(Clone, Debug)]
pub enum AnyQueue<P> {
    /// See [`DropTail`].
    DropTail(DropTail<P>),
    /// See [`PfifoFast`].
    PfifoFast(PfifoFast<P>),
    /// See [`Codel`].
    Codel(Codel<P>),
    /// See [`Fq`].
    Fq(Fq<P>),
    /// See [`FqCodel`].
    FqCodel(FqCodel<P>),
}

macro_rules! each {
    ($queue:expr, $q:ident => $body:expr) => {
        match $queue {
            AnyQueue::DropTail($q) => $body,
            AnyQueue::PfifoFast($q) => $body,
            AnyQueue::Codel($q) => $body,
            AnyQueue::Fq($q) => $body,
            AnyQueue::FqCodel($q) => $body,
        }
    };
}

impl<P: Packet> AnyQueue<P> {
    /// Creates an empty queue.
    pub fn new(config: &Config) -> Self {
        match *config {
            Config::DropTail(c) => AnyQueue::DropTail(DropTail::new(c)),
            Config::PfifoFast(c) => AnyQueue::PfifoFast(PfifoFast::new(c)),
            Config::Codel(c) => AnyQueue::Codel(Codel::new(c)),
            Config::Fq(c) => AnyQueue::Fq(Fq::new(c)),
            Config::FqCodel(c) => AnyQueue::FqCodel(FqCodel::new(c)),
        }
    }

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
        matches!(self, AnyQueue::Codel(_) | AnyQueue::FqCodel(_))
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
