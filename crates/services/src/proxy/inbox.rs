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
        waiting.push_back((address, report.clone()));
    }

    /// Passes the reports on to `control`. `present` is `now` on the clock of the reports.
    pub fn pass<F>(&self, control: &mut (impl Control<F, IpAddr> + ?Sized), now: Time, present: Time) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (address, mut report) in waiting {
            let age = report.age(present);
            report.time = Time::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
            control.on_report(address, &report, now);
        }
    }
}
