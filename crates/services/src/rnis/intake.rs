//! The way of an input's records into the hub, on which they are counted.

use super::counts::Counts;
use super::faults::Faults;
use super::hub::Hub;
use crate::clock::unix_now;
use crate::log::Log;
use rnis::Record;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Takes the records of an input to the hub.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    hub: Arc<Hub>,
    counts: Arc<Counts>,
}

impl Intake {
    pub(super) fn new(hub: Arc<Hub>, counts: Arc<Counts>) -> Intake {
        Intake { hub, counts }
    }

    /// See [`Hub::feed_paced`].
    pub(super) async fn feed_paced(&self, record: Record) {
        self.counts.records.fetch_add(1, Relaxed);
        self.counts.latest.store(unix_now().as_nanos(), Relaxed);
        self.hub.feed_paced(record).await;
    }

    /// Takes in the records of a message.
    pub(super) async fn feed_all(&self, records: Vec<Record>) {
        for record in records {
            self.feed_paced(record).await;
        }
    }

    /// Reports and counts the faults of the input.
    pub(super) fn faults(&self, log: &Log, name: String) -> Faults {
        Faults::new(log.clone(), name).counted(self.counts.faults.clone())
    }
}
