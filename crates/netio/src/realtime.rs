//! The monotonic clock, real-time scheduling and locked memory.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use units::Time;

use crate::sys;

/// The priority of the thread among those of `SCHED_FIFO`: below the kernel's own threads (50).
const PRIORITY: i32 = 40;
/// The calling thread, for those who ask by number.
const THIS_THREAD: Pid = Pid::from_raw(0);

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

/// How often others have taken the processor from the calling thread since its start, because it had used its time or they come
/// first (`ru_nivcsw`).
pub fn preemptions() -> u64 {
    sys::preemptions()
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

/// Takes back [`wake_promptly`]: the thread has the kernel's slices.
pub fn wake_as_others() {
    // Zero stands for them (`__setparam_fair`).
    let _ = sys::set_slice(Duration::ZERO);
}

/// Returns the processors that [`hurry`] would leave to other threads, as the kernel reads a set of them
/// (Documentation/core-api/printk-formats.rst, bitmaps); `None` if there is only one processor.
pub fn others() -> Option<String> {
    let mut cpus = allowed().ok()?;
    cpus.pop();
    (!cpus.is_empty()).then(|| mask(&cpus))
}

/// Returns a set as hexadecimal words of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |n: usize| cpus.iter().filter(|&cpu| cpu / 32 == n).fold(0_u32, |word, cpu| word | 1 << (cpu % 32));
    let words: Vec<String> = (0..words).rev().map(|n| format!("{:08x}", word(n))).collect();
    words.join(",")
}

fn stay() -> nix::Result<Option<usize>> {
    let cpus = allowed()?;
    let (Some(&last), true) = (cpus.last(), cpus.len() > 1) else { return Ok(None) };
    let mut one = CpuSet::new();
    one.set(last)?;
    sched_setaffinity(THIS_THREAD, &one)?;
    Ok(Some(last))
}

/// Returns the processors on which the calling thread may run, in order.
fn allowed() -> nix::Result<Vec<usize>> {
    let allowed = sched_getaffinity(THIS_THREAD)?;
    Ok((0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_words_of_32_bits_with_the_highest_first() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 2, 31]), "80000006");
        assert_eq!(mask(&[0, 64, 67]), "00000009,00000000,00000001");
    }
}
