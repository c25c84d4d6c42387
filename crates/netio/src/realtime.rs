//! The monotonic clock, real-time scheduling and locked memory.

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use units::Time;

use crate::sys;

/// The priority of the thread among those of `SCHED_FIFO`: below the kernel's own threads (50).
const PRIORITY: i32 = 40;

/// Time since the clock was made, by the kernel's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
}

impl Clock {
    /// Makes a clock at time zero.
    pub fn start() -> Clock {
        Clock { start: monotonic() }
    }

    /// Returns the present.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.start)
    }
}

#[inline]
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Processor time that the calling thread has taken.
pub fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// What [`hurry`] achieved for the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Whether it runs before all ordinary threads (`SCHED_FIFO`).
    pub realtime: bool,
    /// The processor that it is pinned to.
    pub cpu: Option<usize>,
}

/// Locks the memory of the whole process while one of these exists, as far as that is allowed. Dropping the last one unlocks
/// all of it, whoever locked it: the kernel does not count.
#[derive(Debug)]
pub struct Resident(());

/// Number of [`Resident`]s.
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

/// Gives the calling thread a real-time priority and a processor of its own (the last one, if there are several), as far as
/// that is allowed, until the thread ends.
pub fn hurry() -> Granted {
    Granted { realtime: sys::be_realtime(PRIORITY).is_ok(), cpu: stay().ok().flatten() }
}

/// The shortest slice that the kernel permits.
const SHORT_SLICE: Duration = Duration::from_micros(100);

/// Lets the calling thread run as soon as it wakes, before ordinary threads that have not asked for that, without a greater
/// share of the processor. It has no effect where the kernel cannot do that (before Linux 6.12).
pub fn wake_promptly() {
    // The kernel refuses nothing of it to any user; an older one does not know of slices.
    let _ = sys::set_slice(SHORT_SLICE);
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
