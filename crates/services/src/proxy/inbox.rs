//! Reports of the radio network on their way to the control.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rapid::Control;
use rnis::RadioReport;
use units::Time;

/// Reports that wait for the next update. Those beyond replace the oldest.
const MOST: usize = 65_536;

/// Reports since the last update, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Mutex<VecDeque<(IpAddr, RadioReport)>>>);

impl Inbox {
    /// Puts a report. One without the UE's address is of no use.
    pub fn put(&self, report: &RadioReport) {
        let Some(address) = report.ue.address else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back((address.to_canonical(), report.clone()));
    }

    /// Passes the reports on to `control`. `present` is `now` on the clock of the reports.
    pub fn pass<F>(&self, control: &mut (impl Control<F, IpAddr> + ?Sized), now: Time, present: Time) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (address, mut report) in waiting {
            // A report from before the control began, such as one of an old recording, says nothing about the present.
            let Some(time) = now.as_nanos().checked_sub(report.age(present).as_nanos()) else { continue };
            report.time = Time::from_nanos(time);
            control.on_report(address, &report, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapid::{Decision, Sample};

    /// Notes the reports that it gets.
    #[derive(Default)]
    struct Noted(Vec<(IpAddr, Time)>);

    impl Control<u32, IpAddr> for Noted {
        fn open(&mut self, _: u32, _: IpAddr, _: u32, _: Time) {}
        fn close(&mut self, _: u32) {}
        fn on_progress(&mut self, _: u32) {}
        fn on_report(&mut self, ue: IpAddr, report: &RadioReport, _: Time) {
            self.0.push((ue, report.time));
        }
        fn poll_timeout(&self) -> Option<Time> {
            None
        }
        fn update(&mut self, _: Time, _: &mut dyn FnMut(u32) -> Sample, _: &mut dyn FnMut(u32, &Decision)) {}
    }

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
            (1_000_400, "::ffff:10.0.0.1"),
            (1_900_000, "fd00::1"),
        ] {
            inbox.put(&report(at, address));
        }
        let mut noted = Noted::default();
        inbox.pass(&mut noted, micros(500), micros(1_000_500));
        let expected = [(300, "10.0.0.1"), (100, "10.0.0.2"), (400, "10.0.0.1"), (500, "fd00::1")];
        assert_eq!(noted.0, expected.map(|(at, address)| (address.parse().expect("an address"), micros(at))));
        inbox.pass(&mut noted, micros(600), micros(1_000_600));
        assert_eq!(noted.0.len(), 4);
    }
}
