//! Decides whether the proxy takes new connections.
//!
//! While it does not, the proxy's lease ends and SYNs pass to their destination as without a proxy. The gate shuts when the
//! connections reach a maximum, or when the process runs out of descriptors, and opens again when a tenth of them is gone. It is
//! also shut while the kernel does not lead packets to the proxy. Then it opens for one connection of each UE at a time, on trial.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use netio::Error;
use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};

/// Why all new connections bypass the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bypass {
    /// The proxy has as many connections as it may have.
    Full,
    /// Descriptors or memory have run out.
    Exhausted,
    /// A setting of the kernel, a rule or a firewall keeps packets from the proxy.
    Obstructed,
    /// The proxy is about to end.
    Draining,
    /// The proxy hangs, or has just started.
    NotReady,
}

impl Bypass {
    /// All reasons.
    pub const ALL: [Bypass; 5] =
        [Bypass::Full, Bypass::Exhausted, Bypass::Obstructed, Bypass::Draining, Bypass::NotReady];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Bypass::Full => "full",
            Bypass::Exhausted => "exhausted",
            Bypass::Obstructed => "obstructed",
            Bypass::Draining => "draining",
            Bypass::NotReady => "not_ready",
        }
    }

    /// What it means, for the status.
    pub fn text(self) -> &'static str {
        match self {
            Bypass::Full => "it has as many connections as it may have",
            Bypass::Exhausted => "descriptors or memory have run out",
            Bypass::Obstructed => "something keeps packets from it (its log tells what)",
            Bypass::Draining => "it is about to end",
            Bypass::NotReady => "it hangs or has just started",
        }
    }
}

/// Wakes a worker.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    pub(super) fn new() -> Result<Waker, Error> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Waker(fd.map_err(Error::system("make an event descriptor"))?))
    }

    pub(super) fn wake(&self) {
        // It fails if it was woken 2^64 - 2 times and never ran.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Shared by all workers.
#[derive(Debug)]
pub(super) struct Gate {
    count: AtomicUsize,
    most: AtomicUsize,
    shut: AtomicBool,
    /// Whether that is for want of a resource.
    exhausted: AtomicBool,
    /// A shut gate opens at this number of connections.
    low: AtomicUsize,
    /// How often it shut.
    shuts: AtomicUsize,
    /// Whether something keeps packets from the proxy.
    obstructed: AtomicBool,
    /// Whether it is open to find out whether that is over.
    on_trial: AtomicBool,
    /// Whether the proxy is about to end.
    draining: AtomicBool,
    wakers: Vec<Waker>,
}

impl Gate {
    pub(super) fn new(most: usize, wakers: Vec<Waker>) -> Gate {
        Gate {
            count: AtomicUsize::new(0),
            most: AtomicUsize::new(most.max(1)),
            shut: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            low: AtomicUsize::new(0),
            shuts: AtomicUsize::new(0),
            obstructed: AtomicBool::new(false),
            on_trial: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            wakers,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        ![&self.shut, &self.obstructed, &self.draining].iter().any(|reason| reason.load(SeqCst))
    }

    /// Why it is not open, if it is not: what holds for longest first.
    pub(super) fn why(&self) -> Option<Bypass> {
        let shut = if self.exhausted.load(SeqCst) { Bypass::Exhausted } else { Bypass::Full };
        let reasons = [(&self.draining, Bypass::Draining), (&self.obstructed, Bypass::Obstructed), (&self.shut, shut)];
        reasons.into_iter().find_map(|(holds, why)| holds.load(SeqCst).then_some(why))
    }

    /// Whether there are as many connections as there may be.
    pub(super) fn is_shut(&self) -> bool {
        self.shut.load(SeqCst)
    }

    /// Whether it is open for one connection at a time.
    pub(super) fn is_on_trial(&self) -> bool {
        self.on_trial.load(SeqCst)
    }

    /// Number of connections.
    pub(super) fn count(&self) -> usize {
        self.count.load(SeqCst)
    }

    /// How often the gate shut because of overload.
    pub(super) fn shuts(&self) -> usize {
        self.shuts.load(SeqCst)
    }

    pub(super) fn waker(&self, worker: usize) -> &Waker {
        &self.wakers[worker]
    }

    /// Counts a new connection.
    pub(super) fn enter(&self) {
        if self.count.fetch_add(1, SeqCst) + 1 >= self.most.load(SeqCst) {
            self.shut_above(self.low_mark(), false);
        }
    }

    /// Changes the maximum, for connections to come.
    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most.max(1), SeqCst);
        if self.count() >= most {
            self.shut_above(self.low_mark(), false);
        } else {
            self.retry();
        }
    }

    /// The number of connections at which there is room again after the maximum.
    fn low_mark(&self) -> usize {
        let most = self.most.load(SeqCst);
        most - most.div_ceil(10)
    }

    /// Counts a connection that is gone.
    pub(super) fn leave(&self) {
        let left = self.count.fetch_sub(1, SeqCst) - 1;
        if left <= self.low.load(SeqCst) && self.shut.swap(false, SeqCst) {
            self.wake_all();
        }
    }

    /// Shuts the gate because a resource is exhausted. Call [`Gate::retry`] from time to time.
    pub(super) fn shut_for_exhaustion(&self) {
        // Others may leave in the meantime.
        let count = self.count();
        self.shut_above(count - count.div_ceil(10), true);
    }

    fn shut_above(&self, low: usize, exhausted: bool) {
        self.low.store(low, SeqCst);
        self.exhausted.store(exhausted, SeqCst);
        if !self.shut.swap(true, SeqCst) {
            self.shuts.fetch_add(1, SeqCst);
            self.wake_all();
        }
    }

    /// Opens the gate if it shut for want of a resource: what there are connections for has no need to wait for their end.
    pub(super) fn retry(&self) {
        if self.count() <= self.low_mark() && self.shut.swap(false, SeqCst) {
            self.wake_all();
        }
    }

    /// Shuts the gate while there is an obstacle. `on_trial`, without one, lets in one connection of each UE at a time.
    pub(super) fn set_obstructed(&self, obstructed: bool, on_trial: bool) {
        self.on_trial.store(on_trial, SeqCst);
        if self.obstructed.swap(obstructed, SeqCst) != obstructed {
            self.wake_all();
        }
    }

    /// Shuts the gate because the proxy is about to end, or opens it again because it is not.
    pub(super) fn set_draining(&self, draining: bool) {
        if self.draining.swap(draining, SeqCst) != draining {
            self.wake_all();
        }
    }

    pub(super) fn wake_all(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_shuts_at_the_maximum_and_opens_when_a_tenth_is_gone() {
        let gate = Gate::new(20, Vec::new());
        (0..19).for_each(|_| gate.enter());
        assert!(gate.is_open());
        gate.enter();
        assert!(!gate.is_open());
        // Those that were already waiting still come in.
        gate.enter();
        gate.leave();
        gate.leave();
        assert!(!gate.is_open());
        gate.leave();
        assert!(gate.is_open());
        assert_eq!((gate.count(), gate.shuts()), (18, 1));
    }

    #[test]
    fn a_gate_that_shut_for_lack_of_descriptors_opens_on_retry_and_one_that_is_full_does_not() {
        let gate = Gate::new(20, Vec::new());
        gate.shut_for_exhaustion();
        assert_eq!(gate.why(), Some(Bypass::Exhausted));
        gate.retry();
        assert!(gate.is_open());
        (0..20).for_each(|_| gate.enter());
        gate.retry();
        assert_eq!((gate.is_open(), gate.why()), (false, Some(Bypass::Full)));
    }

    #[test]
    fn a_gate_for_one_connection_opens_on_retry_too() {
        let gate = Gate::new(1, Vec::new());
        gate.shut_for_exhaustion();
        gate.retry();
        assert!(gate.is_open());
        gate.enter();
        gate.retry();
        assert!(!gate.is_open());
    }

    #[test]
    fn the_maximum_may_change() {
        let gate = Gate::new(20, Vec::new());
        (0..20).for_each(|_| gate.enter());
        assert!(!gate.is_open());
        gate.set_most(30);
        assert!(gate.is_open());
        gate.set_most(10);
        assert!(!gate.is_open());
        (0..11).for_each(|_| gate.leave());
        assert!(gate.is_open());
    }

    #[test]
    fn a_gate_that_is_shut_for_two_reasons_opens_when_both_are_gone() {
        let gate = Gate::new(1, Vec::new());
        gate.set_obstructed(true, false);
        gate.enter();
        gate.leave();
        assert!(!gate.is_open());
        gate.enter();
        assert_eq!(gate.why(), Some(Bypass::Obstructed));
        gate.set_obstructed(false, true);
        assert_eq!(gate.why(), Some(Bypass::Full));
        assert!(!gate.is_open() && gate.is_on_trial());
        gate.leave();
        assert!(gate.is_open());
    }

    #[test]
    fn a_draining_gate_stays_shut() {
        let gate = Gate::new(1, Vec::new());
        gate.enter();
        gate.set_draining(true);
        gate.leave();
        assert_eq!((gate.is_open(), gate.why()), (false, Some(Bypass::Draining)));
        gate.set_draining(false);
        assert!(gate.is_open());
    }
}
