//! The rules of handover and radio link failure.
//!
//! Event A3 of 36.331 5.5.4.1 and 5.5.4.4, on measurements filtered by the layer-3 filter of 5.5.3.2. A neighbour for
//! which the entering condition (A3-1: better than the serving cell by offset and hysteresis) has held in all
//! measurements for the time to trigger joins the list of triggered cells, and the UE reports. It leaves the list once
//! the leaving condition (A3-2) has held for the same time. While the list is not empty, the UE repeats the report
//! every reporting interval. Radio link failure follows 5.3.11: N310 consecutive out-of-sync indications start T310,
//! N311 consecutive in-sync indications stop it, and its expiry or RLC's last retransmission is a failure.
//!
//! Deviations: the individual offsets of the neighbour and the serving cell are combined in [`A3::offset_db`]; the
//! number of reports is not limited (`reportAmount` infinity), and a cell that leaves the list is not reported
//! (`reportOnLeave` false); timers that expire between two measurements take effect at the next one; measurements are
//! free of errors and need no gaps; synchronization is evaluated once per measurement from the mean SINR, not from a
//! hypothetical PDCCH error rate over 200 and 100 ms.

use units::{Span, Time};

/// The parameters of handovers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handover {
    /// The event that triggers a handover; `None` disables handovers.
    pub a3: Option<A3>,
    /// Interval at which UEs measure signal strengths and evaluate their radio link. A UE whose channel cannot change
    /// pauses while its link is in sync and no event can trigger.
    pub period: Span,
    /// The layer-3 filter's coefficient k: a new measurement at the standard's 200 ms has the weight 2^(-k/4).
    pub filter: u8,
    /// Time from the arrival of the measurement report until the serving cell sends the command: decision, and
    /// preparation of the target over X2.
    pub preparation: Span,
    /// Size of the command in bytes, an RRCConnectionReconfiguration with mobilityControlInfo.
    pub command_bytes: u32,
    /// Time from the command's arrival, when the source cell stops, to the first TTI in which the target may serve the
    /// UE.
    pub interruption: Span,
    /// Whether the source forwards data not yet received by the UE to the target. Otherwise it is lost.
    pub forwarding: bool,
    /// How long the UE tries to reach the target (36.331: 50 to 10000 ms). When it expires, the UE re-establishes with
    /// the cell received best.
    pub t304: Span,
    /// Duration of a re-establishment: cell search, random access, and its messages.
    pub reestablishment: Span,
    /// Detection of radio link failure.
    pub link: RadioLink,
}

/// Event A3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct A3 {
    /// Offset in dB by which a neighbour must be better.
    pub offset_db: f64,
    /// Hysteresis in dB, added to enter and subtracted to leave.
    pub hysteresis_db: f64,
    /// How long the condition must hold.
    pub time_to_trigger: Span,
    /// `reportInterval`: the UE repeats its report after this time while a cell is in the list of triggered cells.
    pub report_interval: Span,
}

/// Radio link failure (36.331 5.3.11, 36.133 7.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioLink {
    /// Below this SINR in dB the link is out of sync, and a cell cannot be accessed.
    pub q_out_db: f64,
    /// Above this SINR in dB the link is in sync.
    pub q_in_db: f64,
    /// Consecutive out-of-sync indications that start T310.
    pub n310: u8,
    /// Consecutive in-sync indications that stop T310.
    pub n311: u8,
    /// T310: time until the link has failed.
    pub t310: Span,
}

/// A UE's measurements: filtered signal strengths, and the state of event A3 for each neighbour (`VarMeasReportList` of
/// 36.331 5.5.4.1).
#[derive(Clone, Debug)]
pub(crate) struct Measurements {
    /// In dBm; NaN before the first measurement.
    filtered: Box<[f64]>,
    /// The cells for which the condition that changes `triggered` held in the last measurements, in ascending order, and
    /// since when.
    holding: Vec<(u32, Time)>,
    /// cellsTriggeredList.
    triggered: Box<[bool]>,
    /// When the periodical reporting timer expires, if it runs.
    next_report: Option<Time>,
    /// The weight of a new measurement.
    weight: f64,
}

/// A measurement report of event A3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The neighbour received best.
    pub(crate) best: usize,
    /// Number of neighbours listed.
    pub(crate) cells: usize,
}

impl Measurements {
    pub(crate) fn new(cells: usize, config: &Handover) -> Measurements {
        // The standard's filter assumes a measurement every 200 ms; other periods keep its time constant.
        let old = 1.0 - libm::exp2(-f64::from(config.filter) / 4.0);
        let periods = config.period.as_secs_f64() / 0.2;
        Measurements {
            filtered: vec![f64::NAN; cells].into(),
            holding: Vec::new(),
            triggered: vec![false; cells].into(),
            next_report: None,
            weight: 1.0 - libm::pow(old, periods),
        }
    }

    /// Adds a measurement of each cell; there may be further ones.
    #[inline]
    pub(crate) fn measured(&mut self, dbm: &[f64]) {
        for (filtered, dbm) in self.filtered.iter_mut().zip(dbm) {
            *filtered = if filtered.is_nan() { *dbm } else { *filtered + self.weight * (dbm - *filtered) };
        }
    }

    /// Returns the report triggered by the measurements at `now`, if any (36.331 5.5.4.1, 5.5.4.4, 5.5.5).
    pub(crate) fn a3(&mut self, a3: &A3, serving: usize, now: Time) -> Option<Report> {
        let level = self.filtered[serving] + a3.offset_db;
        let is_near = |dbm: &f64| dbm - a3.hysteresis_db > level;
        if self.holding.is_empty() && !self.triggered.contains(&true) && !self.filtered.iter().any(is_near) {
            // No cell is in the list, none joins it, and none is about to.
            self.next_report = None;
            return None;
        }
        let mut report = self.next_report.is_some_and(|due| now >= due);
        for cell in 0..self.filtered.len() {
            if cell == serving {
                continue;
            }
            let (neighbour, triggered) = (self.filtered[cell], self.triggered[cell]);
            // A3-1 for a cell to join the list, A3-2 to leave it: either has to hold throughout the time to trigger.
            let holds =
                if triggered { neighbour + a3.hysteresis_db < level } else { neighbour - a3.hysteresis_db > level };
            let place = self.holding.binary_search_by_key(&(cell as u32), |(of, _)| *of);
            let since = place.map_or(now, |place| self.holding[place].1);
            let changes = holds && now.saturating_since(since) >= a3.time_to_trigger;
            match place {
                Ok(place) if changes || !holds => drop(self.holding.remove(place)),
                Err(place) if holds && !changes => self.holding.insert(place, (cell as u32, now)),
                _ => {}
            }
            if changes {
                self.triggered[cell] = !triggered;
                report |= !triggered;
            }
        }
        let listed = || (0..self.filtered.len()).filter(|cell| self.triggered[*cell]);
        let best = listed().reduce(|best, cell| if self.filtered[cell] > self.filtered[best] { cell } else { best });
        let Some(best) = best else {
            self.next_report = None;
            return None;
        };
        if report {
            self.next_report = Some(now + a3.report_interval);
        }
        report.then(|| Report { best, cells: listed().count() })
    }

    /// Returns whether no report can be triggered while the cells are received with the powers returned by `dbm`: the
    /// filtered levels approach these monotonically, so a condition that holds at neither end does not hold in between.
    pub(crate) fn are_settled(&self, a3: Option<&A3>, serving: usize, mut dbm: impl FnMut(usize) -> f64) -> bool {
        let Some(a3) = a3 else { return true };
        let margin = a3.offset_db + a3.hysteresis_db;
        let level = dbm(serving);
        let enters =
            |cell: usize, dbm: f64| dbm > level + margin || self.filtered[cell] > self.filtered[serving] + margin;
        let others = (0..self.filtered.len()).filter(|cell| *cell != serving);
        !self.triggered.contains(&true) && !others.into_iter().any(|cell| enters(cell, dbm(cell)))
    }

    /// Resets the comparison after a change of the serving cell (36.331 5.5.6.1).
    pub(crate) fn forget(&mut self) {
        self.holding.clear();
        self.triggered.fill(false);
        self.next_report = None;
    }
}

/// The synchronization of one UE with its cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sync {
    out: u8,
    inside: u8,
    /// When T310 expires.
    t310: Option<Time>,
}

impl Sync {
    /// Returns whether T310 is running.
    pub(crate) fn is_t310_running(&self) -> bool {
        self.t310.is_some()
    }

    /// Processes an indication; returns whether the link has failed.
    pub(crate) fn indicate(&mut self, link: &RadioLink, sinr_db: f64, now: Time) -> bool {
        if self.t310.is_some_and(|end| now >= end) {
            // T310 expired before this indication could stop it.
            return true;
        }
        if sinr_db < link.q_out_db {
            self.inside = 0;
            self.out = self.out.saturating_add(1);
            if self.out >= link.n310 && self.t310.is_none() {
                self.t310 = Some(now + link.t310);
            }
        } else if sinr_db > link.q_in_db {
            self.out = 0;
            self.inside = self.inside.saturating_add(1);
            if self.inside >= link.n311 {
                self.t310 = None;
            }
        }
        self.t310.is_some_and(|end| now >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a3_triggers_once_the_neighbour_was_better_for_the_time_to_trigger() {
        let a3 = A3::default();
        let mut measurements = Measurements::new(3, &Handover { filter: 0, ..Handover::default() });
        let mut triggered = None;
        for ms in (0..2000).step_by(40) {
            measurements.measured(&[-90.0, if ms >= 400 { -86.5 } else { -95.0 }, -87.5]);
            if let Some(report) = measurements.a3(&a3, 0, at(ms)) {
                triggered = Some((report, ms));
                break;
            }
        }
        let report = Report { best: 1, cells: 1 };
        assert_eq!(triggered, Some((report, 680)), "entered at 400, 256 ms later the next measurement is at 680");
    }

    /// Returns when reports are triggered, in ms, if the neighbour of a serving cell at -90 dBm is received with `dbm`
    /// at each measurement.
    fn reports(dbm: impl Fn(u64) -> f64) -> Vec<u64> {
        let a3 = A3::default();
        let mut measurements = Measurements::new(2, &Handover { filter: 0, ..Handover::default() });
        let reports = (0..4000).step_by(40).filter(|ms| {
            measurements.measured(&[-90.0, dbm(*ms)]);
            measurements.a3(&a3, 0, at(*ms)).is_some()
        });
        reports.collect()
    }

    #[test]
    fn the_entering_condition_has_to_hold_throughout_the_time_to_trigger() {
        let first = |dip: f64| reports(|ms| if ms == 120 { dip } else { -86.0 })[0];
        // Within the hysteresis, neither condition holds: the time restarts at the next measurement.
        assert_eq!(first(-89.0), 160 + 280);
        assert_eq!(first(-93.5), 160 + 280);
        assert_eq!(first(-86.9), 280, "above the hysteresis");
    }

    #[test]
    fn a_triggered_cell_is_reported_each_interval_until_it_has_left_for_the_time_to_trigger() {
        // Better from 0 on, within the hysteresis from 1000 on, worse by more than it from 2000 on.
        let levels = |ms: u64| [-86.0, -90.0, -94.0][(ms / 1000).min(2) as usize];
        let all = reports(levels);
        assert_eq!(all[..4], [280, 520, 760, 1000], "240 ms apart");
        assert_eq!(*all.last().unwrap(), 2200, "at 2280 it has left");
        // A dip shorter than the time to trigger does not end it.
        let dips = reports(|ms| if (1000..1200).contains(&ms) { -94.0 } else { levels(ms.min(1999)) });
        assert!(dips.windows(2).all(|pair| pair[1] - pair[0] == 240), "{dips:?}");
    }

    #[test]
    fn a_cell_that_left_the_list_triggers_anew() {
        // Better, away for a second, better again: the second report does not wait for the interval of the first.
        let all = reports(|ms| if (1000..2000).contains(&ms) { -94.0 } else { -86.0 });
        assert!(all.contains(&2280), "{all:?}");
        assert!(!all.iter().any(|ms| (1280..2280).contains(ms)), "{all:?}");
    }

    #[test]
    fn a_second_cell_is_reported_at_once_with_the_first() {
        let a3 = A3::default();
        let mut measurements = Measurements::new(3, &Handover { filter: 0, ..Handover::default() });
        let mut reports = Vec::new();
        for ms in (0..1000).step_by(40) {
            measurements.measured(&[-90.0, -86.0, if ms >= 80 { -85.0 } else { -95.0 }]);
            reports.extend(measurements.a3(&a3, 0, at(ms)).map(|report| (ms, report.best, report.cells)));
        }
        assert_eq!(reports[..3], [(280, 1, 1), (360, 2, 2), (600, 2, 2)]);
    }

    #[test]
    fn the_filter_keeps_its_time_constant_at_any_period() {
        let slow = Handover { period: Span::from_millis(200), ..Handover::default() };
        let fast = Handover::default();
        let mut levels = [0.0; 2];
        for (level, (config, steps)) in levels.iter_mut().zip([(slow, 3), (fast, 15)]) {
            let mut measurements = Measurements::new(1, &config);
            measurements.measured(&[0.0]);
            for _ in 0..steps {
                measurements.measured(&[8.0]);
            }
            *level = measurements.filtered[0];
        }
        assert!((levels[0] - 7.0).abs() < 1e-9, "k = 4 halves the gap each 200 ms: {levels:?}");
        assert!((levels[0] - levels[1]).abs() < 1e-9, "{levels:?}");
    }

    #[test]
    fn a_link_is_lost_t310_after_n310_bad_indications_unless_n311_good_ones_come() {
        let link = RadioLink::default();
        let mut sync = Sync::default();
        let lost = (0..100).find(|i| sync.indicate(&link, -8.0, at(i * 40)));
        assert_eq!(lost, Some(5 + 25), "the sixth starts T310 of 1 s");
        let mut sync = Sync::default();
        assert!(!(0..100).any(|i| sync.indicate(&link, if i % 15 >= 13 { 0.0 } else { -8.0 }, at(i * 40))));
    }
}
