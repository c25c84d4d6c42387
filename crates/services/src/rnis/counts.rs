//! What the service counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What an input has sent so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Its name, in which there is no secret.
    pub(super) name: String,
    pub(super) records: AtomicU64,
    /// What could not be read, and failures to connect.
    pub(super) faults: Arc<AtomicU64>,
    /// The Unix time in ns at which its latest record arrived, or 0.
    pub(super) latest: AtomicU64,
    /// Whether it has ended, as a file does.
    pub(super) has_ended: AtomicBool,
}

/// What a service has counted since its start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Notifications that hosts have acknowledged, or that were sent to WebSockets.
    pub(super) delivered: AtomicU64,
    /// Notifications that were dropped because others waited.
    pub(super) dropped: AtomicU64,
    /// Notifications that could not be delivered by callback.
    pub(super) undelivered: AtomicU64,
    /// Subscriptions that were removed for that.
    pub(super) removed: AtomicU64,
}
