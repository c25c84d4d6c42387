//! Messages to the operator about faults of inputs and lost reports, at most one in ten seconds each.

use crate::log::Log;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between messages about faults of one input.
const FAULTS: Duration = Duration::from_secs(10);

/// Tells when the operator may be told something again.
#[derive(Debug, Default)]
struct Pace(Option<Instant>);

impl Pace {
    /// Whether something may be told now, which it then is.
    fn may_tell(&mut self) -> bool {
        let may = self.0.is_none_or(|last| last.elapsed() >= FAULTS);
        if may {
            self.0 = Some(Instant::now());
        }
        may
    }
}

/// Reports faults of an input, not more often than the operator can read.
#[derive(Debug)]
pub(super) struct Faults {
    log: Log,
    name: String,
    pace: Pace,
    suppressed: u64,
    /// Those so far, for metrics.
    count: Arc<AtomicU64>,
}

impl Faults {
    pub(super) fn new(log: Log, name: String) -> Faults {
        Faults { log, name, pace: Pace::default(), suppressed: 0, count: Arc::default() }
    }

    /// Counts them there.
    pub(super) fn counted(self, count: Arc<AtomicU64>) -> Faults {
        Faults { count, ..self }
    }

    pub(super) fn report(&mut self, fault: &str) {
        self.count.fetch_add(1, Relaxed);
        if !self.pace.may_tell() {
            self.suppressed += 1;
            return;
        }
        let more = match std::mem::take(&mut self.suppressed) {
            0 => String::new(),
            n => format!(" ({n} more faults before)"),
        };
        self.log.line(format_args!("{}: {fault}{more}", self.name));
    }
}

/// Counts the reports that a consumer lost, and tells of them as often as of faults, and at its end.
#[derive(Debug)]
pub(super) struct Losses {
    log: Log,
    name: String,
    pace: Pace,
    untold: u64,
}

impl Losses {
    pub(super) fn new(log: Log, name: String) -> Losses {
        Losses { log, name, pace: Pace::default(), untold: 0 }
    }

    pub(super) fn add(&mut self, lost: u64) {
        self.untold += lost;
        if self.untold > 0 && self.pace.may_tell() {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let lost = std::mem::take(&mut self.untold);
        self.log.line(format_args!("{}: {lost} reports were lost: they came faster than they were taken", self.name));
    }
}

impl Drop for Losses {
    fn drop(&mut self) {
        if self.untold > 0 {
            self.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[tokio::test(start_paused = true)]
    async fn losses_are_told_each_ten_seconds_and_at_the_end() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = {
            let lines = lines.clone();
            Log::new(move |line| lines.lock().unwrap().push(line.to_owned()))
        };
        let mut losses = Losses::new(log, "input x".into());
        for lost in [0, 3, 4] {
            losses.add(lost);
        }
        tokio::time::sleep(FAULTS).await;
        for lost in [0, 5, 6] {
            losses.add(lost);
        }
        drop(losses);
        let told = |lost| format!("input x: {lost} reports were lost: they came faster than they were taken");
        assert_eq!(*lines.lock().unwrap(), [3, 4, 11].map(told));
    }
}
