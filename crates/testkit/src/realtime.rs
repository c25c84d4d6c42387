//! Repeats real-time tests on a machine that may be busy.
//!
//! [`conclusive`] runs the body of a test. An attempt that passes decides, unless the body calls it *void* ([`Watch::void`]),
//! because the emulation marked its run invalid. A void attempt that passes, or that ends before its assertions, decides nothing.
//! What is measured in real time varies, so an attempt that fails is printed and repeated after a pause: once if the machine was
//! on time ([`Strain`]), and a bounded number of times and for a bounded time if it was late. An assertion that fails in every
//! attempt has failed, however late the machine was.
//!
//! If attempts were void and none decided, the test passes, says `INCONCLUSIVE` in its output and adds a line to
//! `target/inconclusive.txt`, which `cargo xtask ci` prints at its end. With `RANWAY_INCONCLUSIVE=fail` it fails instead. A test that
//! passed after a failure on a machine that was on time adds a line there as well (`FAILED ONCE`).
//!
//! `cargo xtask ci` sets `RANWAY_AGAIN` to the name of a file while it runs several tests at once. A test of which each attempt was void
//! or failed on a late machine then adds its name to that file instead of failing. `cargo xtask ci` runs the tests in the file again, one
//! at a time and without the variable: a test that fails then has failed.

#![allow(clippy::disallowed_methods, reason = "measures the machine that runs the test")]

use std::any::Any;
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{remember, root};

/// Maximum number of attempts of a test.
const ATTEMPTS: u32 = 4;
/// Time after which no further attempt begins if it may take as long as the last: nextest ends a test after 240 s.
const MOST_TIME: Duration = Duration::from_secs(200);
/// The pause after the first void attempt; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// Set to `fail`, it has a test fail that no attempt decided.
const STRICT: &str = "RANWAY_INCONCLUSIVE";
/// The file that takes the names of tests that are to run again.
const AGAIN: &str = "RANWAY_AGAIN";
/// Interval of the timer that measures the machine's lateness.
const TICK: Duration = Duration::from_millis(2);
/// Lateness from which a tick counts as late.
const LATE: Duration = Duration::from_millis(3);

/// Bounds above which the machine may have caused a failure: shares of the attempt's time, and the lateness of one
/// tick.
const MAX_LATE_TICKS: f64 = 0.02;
const MAX_STOLEN: f64 = 0.02;
const MAX_WAITING: f64 = 0.30;
const MAX_LATENESS: Duration = Duration::from_millis(50);

/// The test body's report on its attempt.
#[derive(Debug, Default)]
pub struct Watch {
    void: Option<String>,
}

impl Watch {
    /// Declares the attempt void, whatever its outcome: the measurement is invalid because of `why`.
    pub fn void(&mut self, why: impl Into<String>) {
        self.void.get_or_insert(why.into());
    }

    /// Calls [`Watch::void`] if the `lateness` of an emulation's `timing.json` has missed packets, or a 99th percentile
    /// above `bound_ms`. Returns whether it did.
    pub fn void_if_late(&mut self, p99_ms: f64, missed: u64, bound_ms: f64) -> bool {
        let late = missed > 0 || p99_ms > bound_ms;
        if late {
            self.void(format!("the emulation was late: p99 {p99_ms:.3} ms of {bound_ms} ms, {missed} packets missed"));
        }
        late
    }
}

/// The load of the machine during an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strain {
    /// Share of late ticks.
    pub late_ticks: f64,
    /// The latest tick.
    pub lateness: Duration,
    /// Share of CPU time taken by the hypervisor (`steal` in `/proc/stat`).
    pub stolen: f64,
    /// Share of the time in which a task waited for a CPU (`/proc/pressure/cpu`).
    pub waiting: f64,
}

impl Strain {
    /// Returns whether the machine may have caused a failure.
    pub fn excuses(&self) -> bool {
        self.late_ticks > MAX_LATE_TICKS
            || self.lateness > MAX_LATENESS
            || self.stolen > MAX_STOLEN
            || self.waiting > MAX_WAITING
    }
}

impl fmt::Display for Strain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Strain { late_ticks, lateness, stolen, waiting } = self;
        write!(
            f,
            "{:.1} % of ticks were late, one by {:.1} ms; {:.1} % of CPU time was stolen; tasks waited for a CPU \
             {:.0} % of the time",
            late_ticks * 100.0,
            lateness.as_secs_f64() * 1e3,
            stolen * 100.0,
            waiting * 100.0
        )
    }
}

/// The outcome of a test.
#[derive(Debug)]
enum Outcome {
    /// A conclusive attempt passed.
    Held,
    /// A conclusive attempt passed after one had failed.
    HeldAtLast,
    /// No attempt decided.
    Inconclusive,
    /// Each attempt failed, and the machine may have caused it; the last one's panic.
    Failed(Box<dyn Any + Send>),
}

/// Runs `attempt` until one is conclusive; see the module's documentation.
///
/// # Panics
/// If all attempts panic, or two on a machine that was on time, or one and no other passes.
pub fn conclusive(attempt: impl FnMut(&mut Watch)) {
    decide(conclusive_on(attempt, Machine::start, PAUSE, MOST_TIME));
}

/// Passes, fails or defers the test that ended so.
fn decide(outcome: Outcome) {
    match (outcome, std::env::var_os(AGAIN)) {
        (Outcome::Held, _) => {}
        (Outcome::HeldAtLast, _) => remember("inconclusive.txt", &format!("FAILED ONCE: {}", this_test())),
        (Outcome::Inconclusive | Outcome::Failed(_), Some(file)) => remember(file, &this_test()),
        (Outcome::Failed(panic), None) => resume_unwind(panic),
        (Outcome::Inconclusive, None) => {
            let what = format!("INCONCLUSIVE: {}: attempts were void, and none decided", this_test());
            assert!(std::env::var_os(STRICT).is_none_or(|wanted| wanted != "fail"), "{what}");
            eprintln!("{what}");
            remember("inconclusive.txt", &what);
        }
    }
}

/// The name of the test that this thread runs.
fn this_test() -> String {
    thread::current().name().unwrap_or("a test").to_owned()
}

/// Runs `act` for all of these at the same time and returns the results in order. Emulations run in real time: a test that
/// needs several waits no longer than for one.
///
/// # Panics
/// If one of them does.
pub fn at_once<T: Send, R: Send, const N: usize>(these: [T; N], act: impl Fn(T) -> R + Sync) -> [R; N] {
    // Messages name the test by its thread.
    let test = this_test();
    thread::scope(|scope| {
        let act = &act;
        let begin = |this| thread::Builder::new().name(test.clone()).spawn_scoped(scope, move || act(this));
        let running = these.map(|this| begin(this).expect("a thread"));
        running.map(|running| running.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn conclusive_on(
    mut attempt: impl FnMut(&mut Watch),
    machine: impl Fn() -> Machine,
    pause: Duration,
    most: Duration,
) -> Outcome {
    let test = this_test();
    let begin = Instant::now();
    // The latest failure, how many there were on a machine that was on time, and how many attempts decided nothing.
    let (mut failed, mut on_time, mut void) = (None, 0, 0);
    for number in 1..=ATTEMPTS {
        let this = Instant::now();
        let (machine, mut watch) = (machine(), Watch::default());
        let ended = catch_unwind(AssertUnwindSafe(|| attempt(&mut watch)));
        let strain = machine.stop();
        let why = match (watch.void, ended) {
            (None, Ok(())) => return if on_time > 0 { Outcome::HeldAtLast } else { Outcome::Held },
            (Some(why), Ok(())) => {
                void += 1;
                format!("{why} ({strain})")
            }
            // That root is missing is not the machine's fault.
            (_, Err(panic)) if panic.is::<root::Required>() => resume_unwind(panic),
            (why, Err(panic)) => {
                let is_excused = why.is_some() || strain.excuses();
                on_time += u32::from(!is_excused);
                if on_time > 1 {
                    resume_unwind(panic);
                }
                failed = Some(panic);
                format!("it failed, and the test fails unless a further attempt passes ({strain})")
            }
        };
        eprintln!("inconclusive: {test}: attempt {number} of {ATTEMPTS}: {why}");
        if begin.elapsed() + this.elapsed() > most {
            break;
        }
        if number < ATTEMPTS {
            thread::sleep(pause * 2u32.pow(number - 1));
        }
    }
    match failed {
        Some(panic) if on_time > 0 => resume_unwind(panic),
        Some(panic) if void == 0 => Outcome::Failed(panic),
        _ => Outcome::Inconclusive,
    }
}

/// Measures the machine's load until it is stopped.
struct Machine {
    stop: Arc<AtomicBool>,
    /// Number of ticks, number of late ticks, and the maximum lateness.
    ticks: JoinHandle<(u32, u32, Duration)>,
    start: Instant,
    stolen: u64,
    waiting: u64,
}

impl Machine {
    fn start() -> Machine {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let ticks = thread::spawn(move || {
            let (mut ticks, mut late, mut latest) = (0, 0, Duration::ZERO);
            while !stopped.load(Ordering::Relaxed) {
                let due = Instant::now() + TICK;
                thread::sleep(TICK);
                let lateness = due.elapsed();
                ticks += 1;
                late += u32::from(lateness > LATE);
                latest = latest.max(lateness);
            }
            (ticks, late, latest)
        });
        Machine { stop, ticks, start: Instant::now(), stolen: stolen(), waiting: waiting() }
    }

    fn stop(self) -> Strain {
        self.stop.store(true, Ordering::Relaxed);
        let (ticks, late, lateness) = self.ticks.join().expect("it only sleeps");
        let seconds = self.start.elapsed().as_secs_f64().max(1e-3);
        let processors = thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        Strain {
            late_ticks: f64::from(late) / f64::from(ticks.max(1)),
            lateness,
            // In hundredths of a second (USER_HZ).
            stolen: stolen().saturating_sub(self.stolen) as f64 / 100.0 / processors / seconds,
            waiting: waiting().saturating_sub(self.waiting) as f64 / 1e6 / seconds,
        }
    }
}

/// CPU time taken by the hypervisor, over all CPUs, in hundredths of a second.
fn stolen() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok()).unwrap_or(0)
}

/// Time in which a task waited for a CPU, in microseconds; 0 on a kernel without pressure stall information.
fn waiting() -> u64 {
    let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find(|line| line.starts_with("some "));
    some.and_then(|line| line.rsplit_once("total=")?.1.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// A machine on which this many of a hundred ticks are late, regardless of the actual one.
    fn machine(late: u32) -> Machine {
        let ticks = thread::spawn(move || (100, late, Duration::ZERO));
        let (stolen, waiting) = (u64::MAX, u64::MAX);
        Machine { stop: Arc::default(), ticks, start: Instant::now(), stolen, waiting }
    }

    fn busy() -> Machine {
        machine(50)
    }

    fn idle() -> Machine {
        machine(0)
    }

    #[test]
    fn a_passing_attempt_is_conclusive_even_on_a_busy_machine() {
        let mut attempts = 0;
        let outcome = conclusive_on(|_| attempts += 1, busy, Duration::ZERO, MOST_TIME);
        assert!(matches!(outcome, Outcome::Held) && attempts == 1);
    }

    #[test]
    fn the_second_failure_on_an_idle_machine_counts() {
        let mut attempts = 0;
        let failing = |_: &mut Watch| {
            attempts += 1;
            panic!("wrong by a factor of two");
        };
        let panic =
            catch_unwind(AssertUnwindSafe(|| conclusive_on(failing, idle, Duration::ZERO, MOST_TIME))).unwrap_err();
        assert_eq!((panic.downcast_ref::<&str>(), attempts), (Some(&"wrong by a factor of two"), 2));
    }

    /// Makes attempts that fail until the one of this number. Returns the outcome, and how many were made.
    fn failing_until(success: u32, machine: impl Fn() -> Machine) -> (Outcome, u32) {
        let mut attempts = 0;
        let attempt = |_: &mut Watch| {
            attempts += 1;
            assert_eq!(attempts, success, "late");
        };
        (conclusive_on(attempt, machine, Duration::ZERO, MOST_TIME), attempts)
    }

    #[test]
    fn a_failure_on_an_idle_machine_is_repeated_once() {
        assert!(matches!(failing_until(2, idle), (Outcome::HeldAtLast, 2)));
    }

    #[test]
    fn a_failure_counts_if_there_is_no_time_for_another_attempt() {
        let long = |_: &mut Watch| {
            thread::sleep(Duration::from_millis(2));
            panic!("wrong");
        };
        let _ = catch_unwind(|| conclusive_on(long, idle, Duration::ZERO, Duration::from_millis(3))).unwrap_err();
    }

    #[test]
    fn a_failure_on_a_busy_machine_is_repeated_until_an_attempt_passes() {
        assert!(matches!(failing_until(3, busy), (Outcome::Held, 3)));
    }

    #[test]
    fn an_assertion_that_fails_in_every_attempt_has_failed_however_late_the_machine() {
        for is_void in [false, true] {
            let mut attempts = 0;
            let failing = |watch: &mut Watch| {
                attempts += 1;
                watch.void_if_late(if is_void { 7.0 } else { 0.1 }, 0, 1.0);
                panic!("wrong by a factor of two");
            };
            let Outcome::Failed(panic) = conclusive_on(failing, busy, Duration::ZERO, MOST_TIME) else {
                panic!("it never held");
            };
            assert_eq!((panic.downcast_ref::<&str>(), attempts), (Some(&"wrong by a factor of two"), ATTEMPTS));
        }
    }

    #[test]
    fn void_attempts_whose_assertions_hold_or_are_not_reached_decide_nothing() {
        let mut attempts = 0;
        let late = |watch: &mut Watch| {
            attempts += 1;
            watch.void("late");
            // One failure among them may be the machine's.
            assert!(attempts > 1, "wrong");
        };
        assert!(matches!(conclusive_on(late, busy, Duration::ZERO, MOST_TIME), Outcome::Inconclusive));
    }

    #[test]
    #[ignore = "fails: a control of the gate"]
    fn control_that_is_always_wrong() {
        let wrong = |_: &mut Watch| assert!(std::hint::black_box(false), "always wrong");
        decide(conclusive_on(wrong, busy, Duration::ZERO, MOST_TIME));
    }

    #[test]
    #[ignore = "fails with `RANWAY_INCONCLUSIVE=fail`: a control of the gate"]
    fn control_that_is_always_late() {
        conclusive(|watch| watch.void("always late"));
    }

    const CONTROLS: [&str; 2] = ["control_that_is_always_wrong", "control_that_is_always_late"];

    /// Runs a control as CI does, and returns what it prints.
    fn judge(name: &str, again: Option<&Path>) -> String {
        let mut test = Command::new(std::env::current_exe().expect("this program"));
        test.args(["--ignored", "--exact", &format!("realtime::tests::{name}")]).env(STRICT, "fail");
        match again {
            Some(file) => test.env(AGAIN, file),
            None => test.env_remove(AGAIN),
        };
        String::from_utf8_lossy(&test.output().expect("it runs").stdout).into_owned()
    }

    #[test]
    fn the_gate_can_fail() {
        let why = ["always wrong", "attempts were void, and none decided"];
        for (said, why) in at_once(CONTROLS, |name| judge(name, None)).iter().zip(why) {
            assert!(said.contains("1 failed") && said.contains(why), "{said}");
        }
    }

    #[test]
    fn what_is_not_decided_beside_others_passes_for_now_and_is_named() {
        let file = std::env::temp_dir().join(format!("ranway-again-{}", std::process::id()));
        let said = at_once(CONTROLS, |name| judge(name, Some(&file)));
        let mut names: Vec<String> = fs::read_to_string(&file).expect("names").lines().map(str::to_owned).collect();
        fs::remove_file(&file).expect("it is there");
        names.sort_unstable_by(|a, b| b.cmp(a));
        assert!(said.iter().all(|said| said.contains("1 passed")), "{said:?}");
        assert_eq!(names, CONTROLS.map(|name| format!("realtime::tests::{name}")));
    }

    #[test]
    fn a_test_without_the_root_that_it_requires_fails_even_on_a_busy_machine() {
        let attempt = |_: &mut Watch| resume_unwind(Box::new(root::Required));
        let panic = catch_unwind(|| conclusive_on(attempt, busy, Duration::ZERO, MOST_TIME)).unwrap_err();
        assert!(panic.is::<root::Required>());
    }

    #[test]
    fn a_run_that_is_marked_invalid_is_void_even_if_it_passes() {
        let mut attempts = 0;
        let invalid_twice = |watch: &mut Watch| {
            attempts += 1;
            watch.void_if_late(if attempts < 3 { 7.0 } else { 0.1 }, 0, 1.0);
        };
        assert!(matches!(conclusive_on(invalid_twice, idle, Duration::ZERO, MOST_TIME), Outcome::Held));
        assert_eq!(attempts, 3);
    }

    #[test]
    fn what_is_done_at_once_overlaps_and_comes_back_in_order() {
        let all_are_there = std::sync::Barrier::new(3);
        let done = at_once([1, 2, 3], |n| {
            all_are_there.wait();
            (n, this_test())
        });
        assert_eq!(done, [1, 2, 3].map(|n| (n, this_test())));
    }

    #[test]
    fn this_machine_can_be_measured() {
        let machine = Machine::start();
        thread::sleep(Duration::from_millis(50));
        let strain = machine.stop();
        assert!(strain.late_ticks <= 1.0 && strain.stolen <= 1.1 && strain.waiting <= 1.1, "{strain}");
        let quiet = Strain::default();
        assert!(
            !quiet.excuses() && Strain { waiting: 0.9, ..quiet }.excuses() && Strain { stolen: 0.1, ..quiet }.excuses()
        );
    }
}
