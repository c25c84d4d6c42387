//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};
use units::Time;

/// Returns the time since 1970-01-01 00:00 UTC; zero on a machine whose clock is set before that.
pub fn unix_now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
