//! How long a worker looks for the next event before it sleeps.

use std::time::{Duration, Instant};

/// Time for which a worker looks for the next event, if the last one came within this time.
const LOOK: Duration = Duration::from_micros(100);
/// Beside bulk transfers, which do not notice, it sleeps at once: if it has moved so many bytes within [`BULK_TIME`].
const BULK: u64 = 4096;
const BULK_TIME: Duration = Duration::from_millis(1);
/// For so long after others have taken its processor away, a worker sleeps at once: then the time in which it looks is theirs.
const CONTENDED: Duration = Duration::from_millis(100);

/// Interval between looks at whether a worker uses up its time.
const INTERVAL: Duration = Duration::from_millis(100);
/// A worker that is preempted so often in this interval has more to do than its short slices of time permit, and one that is preempted
/// no more than so often has not.
const BUSY: (u64, u64) = (5, 1);

/// Whether a worker comes before others when it wakes. That is right for short messages, which then do not wait for a control or for
/// reports. But a worker that is busy beside other programs would interrupt them for each few packets, and each of its small turns
/// costs acknowledgements and wake-ups: with 1,000 flows, more than twice the time for a byte.
pub(super) struct Promptness {
    prompt: bool,
    preempted: u64,
    since: Instant,
}

impl Promptness {
    /// Of a worker that comes before others.
    pub(super) fn new(now: Instant) -> Promptness {
        Promptness { prompt: true, preempted: 0, since: now }
    }

    /// Returns whether it is to come before others, if that changes. `preempted` is as in [`BusyPoll::length`].
    pub(super) fn change(&mut self, now: Instant, preempted: impl FnOnce() -> u64) -> Option<bool> {
        if now.saturating_duration_since(self.since) < INTERVAL {
            return None;
        }
        let count = preempted();
        let new = count - std::mem::replace(&mut self.preempted, count).min(count);
        self.since = now;
        let prompt = if self.prompt { new < BUSY.0 } else { new <= BUSY.1 };
        (std::mem::replace(&mut self.prompt, prompt) != prompt).then_some(prompt)
    }
}

/// Waking a sleeping processor costs time, on it and on the one that wakes it. So where handshakes and short messages come in quick
/// succession, a worker looks for the next one before it sleeps.
pub(super) struct BusyPoll {
    /// [`LOOK`], or nothing.
    length: Duration,
    /// Bytes moved in this [`BULK_TIME`] and in the one before, and when this one began.
    moved: [u64; 2],
    since: Instant,
    /// How often the thread had been preempted at the last look, and until when that keeps it from looking.
    preempted: u64,
    contended: Instant,
}

impl BusyPoll {
    pub(super) fn new(now: Instant) -> BusyPoll {
        BusyPoll { length: Duration::ZERO, moved: [0; 2], since: now, preempted: 0, contended: now }
    }

    pub(super) fn on_moved(&mut self, bytes: u64) {
        self.moved[0] += bytes;
    }

    /// Returns how long to look. `preempted` tells how often others have taken the processor from the thread since its start.
    pub(super) fn length(&mut self, now: Instant, preempted: impl FnOnce() -> u64) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        if passed >= BULK_TIME {
            let last = if passed < 2 * BULK_TIME { self.moved[0] } else { 0 };
            (self.moved, self.since) = ([0, last], now);
        }
        if self.moved.iter().any(|&bytes| bytes >= BULK) {
            self.length = Duration::ZERO;
        }
        if self.length > Duration::ZERO {
            let count = preempted();
            if std::mem::replace(&mut self.preempted, count) != count {
                self.contended = now + CONTENDED;
            }
        }
        if now < self.contended { Duration::ZERO } else { self.length }
    }

    /// The worker has slept and has been woken `waited` after it began to look.
    pub(super) fn on_slept(&mut self, waited: Duration) {
        self.length = if waited <= LOOK { LOOK } else { Duration::ZERO };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_where_events_come_soon_and_not_beside_bulk_transfers() {
        let start = Instant::now();
        let at = |micros| start + Duration::from_micros(micros);
        let mut busy_poll = BusyPoll::new(start);
        assert_eq!(busy_poll.length(at(0), || 0), Duration::ZERO);
        busy_poll.on_slept(Duration::from_micros(30));
        assert_eq!(busy_poll.length(at(30), || 0), LOOK);
        busy_poll.on_slept(Duration::from_micros(130));
        assert_eq!(busy_poll.length(at(160), || 0), Duration::ZERO);

        busy_poll.on_slept(Duration::from_micros(30));
        busy_poll.on_moved(BULK);
        assert_eq!(busy_poll.length(at(200), || 0), Duration::ZERO);
        // What was moved in the time before counts as well, and no longer.
        busy_poll.on_slept(Duration::from_micros(30));
        assert_eq!(busy_poll.length(at(1100), || 0), Duration::ZERO);
        busy_poll.on_slept(Duration::from_micros(30));
        assert_eq!(busy_poll.length(at(2200), || 0), LOOK);
    }

    #[test]
    fn a_worker_that_uses_up_its_time_does_not_come_first() {
        let start = Instant::now();
        let mut promptness = Promptness::new(start);
        let mut at = |tenths: u32, count| promptness.change(start + tenths * INTERVAL, || count);
        assert_eq!(at(1, 4), None);
        assert_eq!(at(2, 9), Some(false));
        assert_eq!(at(3, 12), None);
        assert_eq!(at(4, 13), Some(true));
        assert_eq!(at(5, 13), None);
    }

    #[test]
    fn it_does_not_look_while_others_want_the_processor() {
        let start = Instant::now();
        let mut busy_poll = BusyPoll::new(start);
        busy_poll.on_slept(Duration::from_micros(30));
        assert_eq!(busy_poll.length(start, || 0), LOOK);
        assert_eq!(busy_poll.length(start, || 1), Duration::ZERO);
        assert_eq!(busy_poll.length(start + CONTENDED / 2, || 1), Duration::ZERO);
        assert_eq!(busy_poll.length(start + CONTENDED, || 1), LOOK);
    }
}
