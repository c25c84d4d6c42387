//! Wall-clock time, a thread that gets the processor when it needs it, and how late things were.

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use record::{Distribution, Lateness};
use std::sync::{Mutex, PoisonError};
use units::{Span, Time};

use crate::sys;

/// The priority of the thread among those of `SCHED_FIFO`: below the kernel's own threads (50).
const PRIORITY: i32 = 40;

/// Counts from when it was made, in the kernel's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
}

impl Clock {
    /// It is time zero.
    pub(crate) fn start() -> Clock {
        Clock { start: monotonic() }
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.start)
    }
}

#[inline]
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// What the calling thread was allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// It runs before all ordinary threads (`SCHED_FIFO`).
    pub realtime: bool,
    /// The processor that it stays on.
    pub cpu: Option<usize>,
}

/// While one of these exists, the memory of the whole process is locked, as far as that is allowed. With the last of them
/// all of it is unlocked, whoever has locked it: the kernel does not count.
#[derive(Debug)]
pub struct Resident(());

/// How many [`Resident`]s there are.
static RESIDENTS: Mutex<u32> = Mutex::new(0);

impl Resident {
    /// Locks the process's memory unless that has been done.
    pub fn hold() -> Resident {
        let mut count = RESIDENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 {
            // Only what is used: stacks of threads are long.
            let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
            let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault);
        }
        *count += 1;
        Resident(())
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let mut count = RESIDENTS.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            let _ = munlockall();
        }
    }
}

/// Takes for the calling thread what keeps it on time, as far as it is allowed: a real-time priority, and a processor (the
/// last one, if there are several). It has them until it ends.
pub fn hurry() -> Granted {
    Granted { realtime: sys::be_realtime(PRIORITY).is_ok(), cpu: stay().ok().flatten() }
}

fn stay() -> nix::Result<Option<usize>> {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    let this_thread = Pid::from_raw(0);
    let allowed = sched_getaffinity(this_thread)?;
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect();
    let (Some(&last), true) = (cpus.last(), cpus.len() > 1) else { return Ok(None) };
    let mut one = CpuSet::new();
    one.set(last)?;
    sched_setaffinity(this_thread, &one)?;
    Ok(Some(last))
}

/// No packet of a valid run was later than so many times what 1 % of them may be, and it never stood still for longer.
const WORST: u64 = 40;
/// The share of the time for which a valid run may have stood still.
const MOST_STALLED: f64 = 0.01;

/// How late packets were given to the hosts, and for how long nothing was done although something was due.
#[derive(Debug)]
pub(crate) struct Lates {
    spans: Distribution,
    bound: Span,
    stalled: Span,
    longest: Span,
}

impl Lates {
    /// None yet; 1 % of the packets may be late by `bound`.
    pub(crate) fn within(bound: Span) -> Lates {
        Lates { spans: Distribution::default(), bound, stalled: Span::ZERO, longest: Span::ZERO }
    }

    /// What was due at `due` was done by `done`.
    #[inline]
    pub(crate) fn note(&mut self, due: Time, done: Time) {
        self.spans.record(done.saturating_since(due));
    }

    /// From `from`, when there was something to do, until `to` nobody looked for more. Within the bound that is work,
    /// beyond it the machine was busy with something else.
    #[inline]
    pub(crate) fn pass(&mut self, from: Time, to: Time) {
        let span = to.saturating_since(from);
        if span > self.bound {
            self.stalled += span;
            self.longest = self.longest.max(span);
        }
    }

    /// The figures, and whether they keep to the bound; it ran for `lasted`, and the network missed so many packets.
    pub(crate) fn summary(&self, lasted: Span, missed: u64, cpu_share: f64, granted: Granted) -> Lateness {
        let quantile = |q| self.spans.quantile(q).map_or(0.0, record::ms);
        let p99 = self.spans.quantile(0.99).unwrap_or(Span::ZERO);
        let max = self.spans.max().unwrap_or(Span::ZERO);
        let stalled_share = self.stalled.as_secs_f64() / lasted.as_secs_f64().max(1e-9);
        let worst = Span::from_nanos(self.bound.as_nanos().saturating_mul(WORST));
        let in_time = p99 <= self.bound && max <= worst && self.longest <= worst && stalled_share <= MOST_STALLED;
        Lateness {
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            max_ms: record::ms(max),
            bound_ms: record::ms(self.bound),
            worst_bound_ms: record::ms(worst),
            longest_stall_ms: record::ms(self.longest),
            stalled_share,
            packets: self.spans.count(),
            missed,
            cpu_share,
            realtime: granted.realtime,
            valid: in_time && missed == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Span = Span::from_micros(500);

    /// A minute with a packet each millisecond that is late by 50 us.
    fn punctual() -> Lates {
        let mut lates = Lates::within(BOUND);
        for n in 0..60_000 {
            let due = Time::ZERO + Span::from_millis(n);
            lates.note(due, due + Span::from_micros(50));
            lates.pass(due, due + Span::from_micros(60));
        }
        lates
    }

    fn judged(lates: &Lates, missed: u64) -> Lateness {
        lates.summary(Span::from_secs(60), missed, 0.5, Granted::default())
    }

    #[test]
    fn a_punctual_run_is_valid_unless_packets_were_missed() {
        assert!(judged(&punctual(), 0).valid && !judged(&punctual(), 1).valid);
        assert_eq!((judged(&punctual(), 0).longest_stall_ms, judged(&punctual(), 0).stalled_share), (0.0, 0.0));
    }

    #[test]
    fn a_run_that_stood_still_once_is_invalid_though_few_packets_were_late() {
        // For 2 s, with a packet in 200 late: the 99th percentile does not see it.
        let mut lates = punctual();
        for n in 0..300 {
            let due = Time::ZERO + Span::from_millis(7 * n);
            lates.note(due, Time::ZERO + Span::from_secs(2));
        }
        lates.pass(Time::ZERO, Time::ZERO + Span::from_secs(2));
        let lateness = judged(&lates, 0);
        assert!(lateness.p99_ms < lateness.bound_ms && !lateness.valid, "{lateness:?}");
        assert!((lateness.longest_stall_ms - 2_000.0).abs() < 1e-6, "{lateness:?}");
        assert!((lateness.stalled_share - 2.0 / 60.0).abs() < 1e-6, "{lateness:?}");
    }

    #[test]
    fn a_run_that_stood_still_while_nothing_was_on_its_way_is_invalid() {
        let mut lates = punctual();
        lates.pass(Time::ZERO, Time::ZERO + Span::from_millis(21));
        assert!(!judged(&lates, 0).valid);
    }

    #[test]
    fn many_short_stalls_are_as_bad_as_a_long_one() {
        let (mut few, mut many) = (punctual(), punctual());
        // Of 10 ms each, 0.5 and 2 s in all.
        for (lates, count) in [(&mut few, 50), (&mut many, 200)] {
            (0..count).for_each(|_| lates.pass(Time::ZERO, Time::ZERO + Span::from_millis(10)));
        }
        assert!(judged(&few, 0).valid && !judged(&many, 0).valid);
    }
}
