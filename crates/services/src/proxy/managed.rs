//! RAPID as the control of a proxy: reports of the radio network in, windows and rates out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rapid::{Config, Decision, FlowId, Rapid, Sample};
use rnis::RadioReport;
use units::{Span, Time};

use super::control::{Control, FlowKey};
use crate::rnis::unix_now;

/// UEs whose latest report is kept until the next update.
const MOST_UES: usize = 65_536;
/// Interval between removals of UEs that are gone.
const FORGET: Span = Span::from_secs(10);

/// The latest report of each UE since the last update.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Mutex<BTreeMap<IpAddr, RadioReport>>>);

impl Inbox {
    /// Puts a report, which replaces an older one of the same UE. One without the UE's address is of no use.
    pub fn put(&self, report: &RadioReport) {
        let Some(address) = report.ue.address else { return };
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = latest.get(&address).is_none_or(|before| before.time <= report.time);
        if is_newer && (latest.len() < MOST_UES || latest.contains_key(&address)) {
            latest.insert(address, report.clone());
        }
    }

    fn take(&self) -> BTreeMap<IpAddr, RadioReport> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Controls flows by RAPID.
#[derive(Debug)]
pub struct Managed {
    rapid: Rapid<IpAddr>,
    inbox: Inbox,
    flows: BTreeMap<FlowKey, FlowId>,
    keys: BTreeMap<FlowId, FlowKey>,
    forgotten: Time,
}

impl Managed {
    /// Creates a control that takes reports from `inbox`.
    pub fn new(config: Config, inbox: Inbox) -> Managed {
        let (flows, keys) = (BTreeMap::new(), BTreeMap::new());
        Managed { rapid: Rapid::new(config), inbox, flows, keys, forgotten: Time::ZERO }
    }

    /// Passes new reports on, with their times on the clock of `now`.
    fn take_reports(&mut self, now: Time) {
        let present = unix_now();
        for (address, mut report) in self.inbox.take() {
            let age = report.age(present);
            report.time = Time::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
            self.rapid.on_report(address, &report, now);
        }
    }
}

impl Control for Managed {
    fn open(&mut self, flow: FlowKey, ue: IpAddr, mss: u32, now: Time) {
        let id = self.rapid.open(ue, mss, now);
        self.flows.insert(flow, id);
        self.keys.insert(id, flow);
    }

    fn close(&mut self, flow: FlowKey, _now: Time) {
        if let Some(id) = self.flows.remove(&flow) {
            self.keys.remove(&id);
            self.rapid.close(id);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.rapid.poll_timeout()
    }

    fn update(
        &mut self,
        now: Time,
        sample: &mut dyn FnMut(FlowKey) -> Sample,
        each: &mut dyn FnMut(FlowKey, &Decision),
    ) {
        self.take_reports(now);
        let Managed { rapid, keys, .. } = self;
        rapid.update(now, |id| sample(keys[&id]), |id, decision| each(keys[&id], decision));
        if now.saturating_since(self.forgotten) >= FORGET {
            self.forgotten = now;
            self.rapid.forget_stale(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnis::UeId;

    fn report(at: u64, address: Option<[u8; 4]>) -> RadioReport {
        let text = format!(
            r#"{{"time_us":{at},"interval_us":1000,"cell":1,"rnti":61,"n_prb":100,"slots":1,"acked_bits":8000,"blocks":1,"failed":0}}"#
        );
        let mut report: RadioReport = serde_json::from_str(&text).expect("it can be read");
        report.ue = UeId { rnti: 61, address: address.map(IpAddr::from) };
        report
    }

    #[test]
    fn the_inbox_keeps_the_latest_report_of_each_address() {
        let inbox = Inbox::default();
        inbox.put(&report(5, Some([10, 0, 0, 1])));
        inbox.put(&report(7, Some([10, 0, 0, 1])));
        inbox.put(&report(6, Some([10, 0, 0, 1])));
        inbox.put(&report(1, Some([10, 0, 0, 2])));
        inbox.put(&report(9, None));
        let times: Vec<u64> = inbox.take().values().map(|report| report.time.as_nanos() / 1000).collect();
        assert_eq!(times, [7, 1]);
        assert!(inbox.take().is_empty());
    }
}
