//! Metrics of `pep`, `backlog` and `mdcc`: what these commands have in common.

use record::report::live::Counter;
use services::{Metric, MetricsServer};
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the counters of a dashboard as metrics, with the same names there and here.
pub(crate) fn of_counters(counters: Vec<Counter>) -> Vec<Metric> {
    counters.into_iter().map(|Counter { name, what, value }| Metric::counter(name, what, value)).collect()
}

/// Returns the end of a message that tells where metrics are served, if they are.
pub(crate) fn place(server: Option<&MetricsServer>) -> String {
    server.map_or_else(String::new, |server| format!(", metrics at http://{}/metrics", server.address()))
}

/// The latest value of a thread that never waits for those who read it.
#[derive(Clone, Debug)]
pub(crate) struct Latest<T>(Arc<Mutex<T>>);

impl<T: Copy> Latest<T> {
    pub(crate) fn new(value: T) -> Latest<T> {
        Latest(Arc::new(Mutex::new(value)))
    }

    /// Replaces the value, unless somebody reads it at this moment.
    pub(crate) fn set(&self, value: T) {
        if let Ok(mut latest) = self.0.try_lock() {
            *latest = value;
        }
    }

    pub(crate) fn get(&self) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{backlog, mdcc, pep};
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn the_reference_has_all_metrics_of_pep_backlog_and_mdcc_with_their_types_and_labels() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/metrics.md");
        let page = fs::read_to_string(page).expect("it is there");
        let told: BTreeSet<String> = page
            .lines()
            .filter(|line| ["pep", "backlog", "mdcc"].iter().any(|of| line.starts_with(&format!("| `ranway_{of}_"))))
            .map(|line| line.split_inclusive('|').take(4).collect())
            .collect();
        let row = |metric: &Metric| {
            let label = metric.label().map_or_else(String::new, |label| format!("`{label}`"));
            format!("| `{}` | {} | {label} |", metric.name(), metric.kind())
        };
        let all = [pep::example(), backlog::example(), mdcc::example()].concat();
        let named: BTreeSet<String> = all.iter().map(row).collect();
        assert_eq!(named.len(), all.len(), "each has a name of its own");
        assert_eq!(told, named);
    }

    #[test]
    fn a_value_that_somebody_reads_stays() {
        let latest = Latest::new(1);
        let reader = latest.0.lock().expect("nobody panicked");
        latest.set(2);
        drop(reader);
        assert_eq!(latest.get(), 1);
        latest.set(3);
        assert_eq!(latest.get(), 3);
    }
}
