//! Reports of the radio network on their way to the control.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rnis::RadioReport;
use units::Time;

/// Reports that wait for the next update. Those beyond replace the oldest.
const MOST: usize = 65_536;

/// Reports since the last update, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Mutex<VecDeque<RadioReport>>>);

impl Inbox {
    /// Puts a report. One without the UE's address is of no use.
    pub fn put(&self, report: &RadioReport) {
        if report.ue.address.is_none() {
            return;
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back(report.clone());
    }

    /// Takes the reports, with times on the clock of `now`. `present` is `now` on the clock of the reports.
    pub fn take(&self, now: Time, present: Time) -> impl Iterator<Item = RadioReport> + use<> {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().filter_map(move |mut report| {
            // A report from before the control began, such as one of an old recording, says nothing about the present.
            report.time = Time::from_nanos(now.as_nanos().checked_sub(report.age(present).as_nanos())?);
            Some(report)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(at_us: u64, address: &str) -> RadioReport {
        let text = format!(
            r#"{{"time_us":{at_us},"interval_us":1000,"cell":1,"rnti":61,"n_prb":100,"slots":1,"acked_bits":8000,"blocks":1,"failed":0}}"#
        );
        let mut report: RadioReport = serde_json::from_str(&text).expect("it can be read");
        report.ue.address = address.parse().ok();
        report
    }

    #[test]
    fn reports_keep_their_order_and_bear_the_controls_times() {
        let (inbox, micros) = (Inbox::default(), |micros: u64| Time::from_nanos(micros * 1000));
        // The control started at 1,000,000.
        for (at, address) in [
            (999_999, "10.0.0.1"),
            (1_000_300, "10.0.0.1"),
            (1_000_100, "10.0.0.2"),
            (1_000_400, ""),
            (1_000_400, "10.0.0.1"),
            (1_900_000, "fd00::1"),
        ] {
            inbox.put(&report(at, address));
        }
        let take = |now, present| -> Vec<_> {
            inbox.take(micros(now), micros(present)).map(|report| (report.time, report.ue.address)).collect()
        };
        let expected = [(300, "10.0.0.1"), (100, "10.0.0.2"), (400, "10.0.0.1"), (500, "fd00::1")];
        assert_eq!(take(500, 1_000_500), expected.map(|(at, address)| (micros(at), address.parse().ok())));
        assert_eq!(take(600, 1_000_600), []);
    }
}
