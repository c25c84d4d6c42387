//! Tells the log of connections and the collector of flow records which connections have ended.

use std::sync::{Mutex, PoisonError};

use super::ended::Ended;
use super::export::Exporter;
use super::log::ConnectionLog;

/// Where what is known of connections goes that have ended.
#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Outlets>);

#[derive(Debug, Default)]
struct Outlets {
    log: Option<ConnectionLog>,
    exporter: Option<Exporter>,
}

impl Records {
    /// Replaces the log.
    pub(super) fn set_log(&self, log: Option<ConnectionLog>) {
        self.with(|outlets| outlets.log = log);
    }

    /// Replaces the way to a collector.
    pub(super) fn set_exporter(&self, exporter: Option<Exporter>) {
        self.with(|outlets| outlets.exporter = exporter);
    }

    /// Tells of a connection that has ended. Never waits for a disk or a network.
    pub(super) fn put(&self, ended: impl FnOnce() -> Ended) {
        let (log, exporter) = self.with(|outlets| (outlets.log.clone(), outlets.exporter.clone()));
        if log.is_none() && exporter.is_none() {
            return;
        }
        let ended = ended();
        if let Some(exporter) = exporter {
            exporter.put(ended.clone());
        }
        if let Some(log) = log {
            log.put(ended);
        }
    }

    /// Connections that could not be written to the log so far.
    pub(super) fn unlogged(&self) -> u64 {
        self.with(|outlets| outlets.log.as_ref().map_or(0, ConnectionLog::lost))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Outlets) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
