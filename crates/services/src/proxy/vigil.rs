//! How long a worker looks for the next event before it sleeps.

use std::time::{Duration, Instant};

/// Time for which a worker looks for the next event, if the last one came within this time.
const LOOK: Duration = Duration::from_micros(100);
/// Beside bulk transfers, which do not notice, it sleeps at once: if it has moved so many bytes within [`BULK_TIME`].
const BULK: u64 = 4096;
const BULK_TIME: Duration = Duration::from_millis(1);

/// Waking a sleeping processor costs time, on it and on the one that wakes it. So where handshakes and short messages come in quick
/// succession, a worker looks for the next one before it sleeps.
pub(super) struct Vigil {
    /// [`LOOK`], or nothing.
    length: Duration,
    /// Bytes moved in this [`BULK_TIME`] and in the one before, and when this one began.
    moved: [u64; 2],
    since: Instant,
}

impl Vigil {
    pub(super) fn new(now: Instant) -> Vigil {
        Vigil { length: Duration::ZERO, moved: [0; 2], since: now }
    }

    pub(super) fn on_moved(&mut self, bytes: u64) {
        self.moved[0] += bytes;
    }

    /// Returns how long to look.
    pub(super) fn length(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        if passed >= BULK_TIME {
            let last = if passed < 2 * BULK_TIME { self.moved[0] } else { 0 };
            (self.moved, self.since) = ([0, last], now);
        }
        if self.moved.iter().any(|&bytes| bytes >= BULK) {
            self.length = Duration::ZERO;
        }
        self.length
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
        let mut vigil = Vigil::new(start);
        assert_eq!(vigil.length(at(0)), Duration::ZERO);
        vigil.on_slept(Duration::from_micros(30));
        assert_eq!(vigil.length(at(30)), LOOK);
        vigil.on_slept(Duration::from_micros(130));
        assert_eq!(vigil.length(at(160)), Duration::ZERO);

        vigil.on_slept(Duration::from_micros(30));
        vigil.on_moved(BULK);
        assert_eq!(vigil.length(at(200)), Duration::ZERO);
        // What was moved in the time before counts as well, and no longer.
        vigil.on_slept(Duration::from_micros(30));
        assert_eq!(vigil.length(at(1100)), Duration::ZERO);
        vigil.on_slept(Duration::from_micros(30));
        assert_eq!(vigil.length(at(2200)), LOOK);
    }
}
