//! Reports of the radio network on their way to the control.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rnis::RadioReport;
use units::Time;

/// Reports that wait for the next update. When there are more, each UE's latest is kept, of half as many UEs.
const MOST: usize = 65_536;

/// Reports since the last update, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    waiting: Arc<Mutex<VecDeque<RadioReport>>>,
    /// Reports that were made before the control began.
    old: Arc<AtomicU64>,
}

impl Inbox {
    /// Puts a report. One without the UE's address is of no use. Returns how many UEs have lost their latest report, for which
    /// there is no room.
    pub fn put(&self, report: &RadioReport) -> u64 {
        if report.ue.address.is_none() {
            return 0;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = if waiting.len() >= MOST { make_room(&mut waiting) } else { 0 };
        waiting.push_back(report.clone());
        lost
    }

    /// Takes the reports, with times on the clock of `now`. `present` is `now` on the clock of the reports, which may be ahead.
    pub fn take(&self, now: Time, present: Time) -> impl Iterator<Item = RadioReport> + use<> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let old = Arc::clone(&self.old);
        waiting.into_iter().filter_map(move |mut report| {
            let ahead = report.time.saturating_since(present);
            // A report from before the control began, such as one of an old recording, says nothing about the present.
            let Some(time) = (now + ahead).as_nanos().checked_sub(report.age(present).as_nanos()) else {
                old.fetch_add(1, Relaxed);
                return None;
            };
            report.time = Time::from_nanos(time);
            Some(report)
        })
    }

    /// Returns how many reports were made before the control began.
    pub fn old(&self) -> u64 {
        self.old.load(Relaxed)
    }
}

/// Keeps the latest report of each UE: a UE whose reports are rare is not displaced by the others. Of more than half of [`MOST`]
/// UEs, those that have been silent for longest lose theirs; returns how many.
fn make_room(waiting: &mut VecDeque<RadioReport>) -> u64 {
    let (mut seen, mut kept) = (BTreeSet::new(), VecDeque::new());
    for report in std::mem::take(waiting).into_iter().rev() {
        if seen.insert(report.ue.address) {
            kept.push_front(report);
        }
    }
    let lost = kept.len().saturating_sub(MOST / 2);
    kept.drain(..lost);
    *waiting = kept;
    lost as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

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
        let expected = [(300, "10.0.0.1"), (100, "10.0.0.2"), (400, "10.0.0.1"), (900_000, "fd00::1")];
        assert_eq!(take(500, 1_000_500), expected.map(|(at, address)| (micros(at), address.parse().ok())));
        assert_eq!(take(600, 1_000_600), []);
        assert_eq!(inbox.old(), 1);
    }

    fn addresses(inbox: &Inbox) -> Vec<Option<IpAddr>> {
        inbox.take(Time::from_nanos(1000), Time::from_nanos(1000)).map(|report| report.ue.address).collect()
    }

    #[test]
    fn many_reports_of_one_ue_do_not_displace_the_only_one_of_another() {
        let (inbox, rare, frequent) = (Inbox::default(), report(0, "10.0.0.1"), report(0, "10.0.0.2"));
        assert_eq!(inbox.put(&rare), 0);
        let lost: u64 = (0..MOST).map(|_| inbox.put(&frequent)).sum();
        let expected = [&rare, &frequent, &frequent].map(|report| report.ue.address);
        assert_eq!((lost, addresses(&inbox)), (0, expected.to_vec()));
    }

    #[test]
    fn ues_beyond_the_most_lose_their_reports_and_are_counted() {
        let (inbox, mut report) = (Inbox::default(), report(0, "10.0.0.1"));
        let all = (0..=MOST as u32).map(|number| Some(IpAddr::from(Ipv4Addr::from_bits(number)))).collect::<Vec<_>>();
        let mut lost = 0;
        for &address in &all {
            report.ue.address = address;
            lost += inbox.put(&report);
        }
        assert_eq!(lost, MOST as u64 / 2);
        assert!(addresses(&inbox) == all[MOST / 2..]);
    }
}
