//! Limits, and the error of a service.

use std::time::Duration;

/// Limits of the delivery of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time for one callback.
    pub callback_timeout: Duration,
    /// Attempts to deliver one notification.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each.
    pub first_retry: Duration,
    /// A subscription is removed after so many notifications in a row that could not be delivered.
    pub most_failed: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            callback_timeout: Duration::from_secs(5),
            attempts: 4,
            first_retry: Duration::from_millis(500),
            most_failed: 10,
        }
    }
}

/// The reason why a service cannot start or go on: a feed, an address or a broker that is not as required.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);
