//! When a UE changes its cell, and when it has lost it.
//!
//! Event A3 of 36.331 5.5.4.4: a neighbour is better than the serving cell by an offset and a hysteresis for the time to
//! trigger, on measurements that went through the layer-3 filter of 5.5.3.2. Radio link failure of 5.3.11: N310
//! out-of-sync indications in a row start T310, N311 in-sync ones stop it, its end or RLC's last retransmission is a
//! failure.
//!
//! Deviations: the neighbour's and the serving cell's individual offsets are one number, [`A3::offset_db`]; the
//! reporting interval and amount are left out, because the first report is acted upon (if the command is lost, the next
//! comes after another time to trigger); a UE's measurements are
//! free of error and need no gaps; sync is judged once per measurement from the mean SINR, not from a hypothetical PDCCH
//! error rate over 200 and 100 ms.

use units::{Span, Time};

/// What decides on handovers, and what they cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handover {
    /// The measurement that leads to one; `None` leaves each UE with its cell.
    pub a3: Option<A3>,
    /// How often UEs that may move measure signal strengths.
    pub period: Span,
    /// The layer-3 filter's coefficient k: a new measurement at the standard's 200 ms has the share 2^(-k/4).
    pub filter: u8,
    /// From the trigger until the UE has the command: measurement report, decision, preparation of the target over X2.
    pub preparation: Span,
    /// From the command, when the source cell stops, to the first TTI in which the target may serve the UE.
    pub interruption: Span,
    /// Whether the source hands to the target what the UE has not got yet. Otherwise it is lost.
    pub forwarding: bool,
    /// How long the UE tries to reach the target (36.331: 50 to 10000 ms). At its end it re-establishes with the cell
    /// that it hears best.
    pub t304: Span,
    /// How long a re-establishment takes: cell search, random access, and its messages.
    pub reestablishment: Span,
    /// How a lost radio link is recognised.
    pub link: RadioLink,
}

impl Default for Handover {
    fn default() -> Self {
        Handover {
            a3: Some(A3::default()),
            period: Span::from_millis(40),
            filter: 4,
            preparation: Span::from_millis(30),
            interruption: Span::from_millis(30),
            forwarding: true,
            t304: Span::from_millis(500),
            reestablishment: Span::from_millis(150),
            link: RadioLink::default(),
        }
    }
}

/// Event A3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct A3 {
    /// By how much a neighbour has to be better in dB,
    pub offset_db: f64,
    /// and by how much more to enter, less to leave.
    pub hysteresis_db: f64,
    /// For how long.
    pub time_to_trigger: Span,
}

impl Default for A3 {
    fn default() -> Self {
        A3 { offset_db: 0.0, hysteresis_db: 3.0, time_to_trigger: Span::from_millis(256) }
    }
}

/// When a radio link is lost (36.331 5.3.11, 36.133 7.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioLink {
    /// Below this SINR in dB the link is out of sync, and a cell cannot be reached.
    pub q_out_db: f64,
    /// Above this SINR in dB it is in sync.
    pub q_in_db: f64,
    /// Out-of-sync indications in a row that start T310.
    pub n310: u8,
    /// In-sync indications in a row that stop it.
    pub n311: u8,
    /// How long after that the link is lost.
    pub t310: Span,
}

impl Default for RadioLink {
    fn default() -> Self {
        RadioLink { q_out_db: -5.0, q_in_db: -3.9, n310: 6, n311: 2, t310: Span::from_secs(1) }
    }
}

/// The filtered signal strengths at one UE, and for how long each neighbour has been better.
#[derive(Clone, Debug)]
pub(crate) struct Measurements {
    /// In dBm; nothing measured yet is NaN.
    filtered: Box<[f64]>,
    entered: Box<[Option<Time>]>,
    /// The share that a new measurement has.
    weight: f64,
}

impl Measurements {
    pub(crate) fn new(cells: usize, config: &Handover) -> Measurements {
        // The standard's filter assumes a measurement each 200 ms; another period keeps its time constant.
        let old = 1.0 - libm::exp2(-f64::from(config.filter) / 4.0);
        let periods = config.period.as_secs_f64() / 0.2;
        Measurements {
            filtered: vec![f64::NAN; cells].into(),
            entered: vec![None; cells].into(),
            weight: 1.0 - libm::pow(old, periods),
        }
    }

    /// Takes in a measurement of `cell`.
    #[inline]
    pub(crate) fn measured(&mut self, cell: usize, dbm: f64) {
        let filtered = &mut self.filtered[cell];
        *filtered = if filtered.is_nan() { dbm } else { *filtered + self.weight * (dbm - *filtered) };
    }

    /// The cell that A3 triggers for now, if it does: the best of those that have been better for long enough.
    pub(crate) fn a3(&mut self, a3: &A3, serving: usize, now: Time) -> Option<usize> {
        let level = self.filtered[serving] + a3.offset_db;
        let mut best: Option<usize> = None;
        for (cell, (neighbour, entered)) in self.filtered.iter().zip(self.entered.iter_mut()).enumerate() {
            if cell == serving {
                *entered = None;
                continue;
            }
            if neighbour - a3.hysteresis_db > level {
                entered.get_or_insert(now);
            } else if neighbour + a3.hysteresis_db < level {
                *entered = None;
            }
            let long_enough = entered.is_some_and(|since| now.saturating_since(since) >= a3.time_to_trigger);
            if long_enough && best.is_none_or(|b| *neighbour > self.filtered[b]) {
                best = Some(cell);
            }
        }
        best
    }

    /// The serving cell has changed, or the command to change it was lost: no neighbour has been better than it yet.
    pub(crate) fn forget(&mut self) {
        self.entered.fill(None);
    }
}

/// Whether one UE still hears its cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sync {
    out: u8,
    inside: u8,
    /// When T310 ends.
    t310: Option<Time>,
}

impl Sync {
    /// One indication; whether the link is lost now.
    pub(crate) fn indicate(&mut self, link: &RadioLink, sinr_db: f64, now: Time) -> bool {
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
            measurements.measured(0, -90.0);
            measurements.measured(1, if ms >= 400 { -86.5 } else { -95.0 });
            measurements.measured(2, -87.5);
            if let Some(cell) = measurements.a3(&a3, 0, at(ms)) {
                triggered = Some((cell, ms));
                break;
            }
        }
        assert_eq!(triggered, Some((1, 680)), "entered at 400, 256 ms later the next measurement is at 680");
    }

    #[test]
    fn a_dip_within_the_hysteresis_does_not_restart_the_time_to_trigger_but_a_deep_one_does() {
        let a3 = A3::default();
        let run = |dip: f64| {
            let mut measurements = Measurements::new(2, &Handover { filter: 0, ..Handover::default() });
            (0..2000).step_by(40).find(|ms| {
                measurements.measured(0, -90.0);
                measurements.measured(1, if *ms == 120 { dip } else { -86.0 });
                measurements.a3(&a3, 0, at(*ms)).is_some()
            })
        };
        assert_eq!(run(-91.0), Some(280));
        assert_eq!(run(-93.5), Some(440));
    }

    #[test]
    fn the_filter_keeps_its_time_constant_at_any_period() {
        let slow = Handover { period: Span::from_millis(200), ..Handover::default() };
        let fast = Handover::default();
        let mut levels = [0.0; 2];
        for (level, (config, steps)) in levels.iter_mut().zip([(slow, 3), (fast, 15)]) {
            let mut measurements = Measurements::new(1, &config);
            measurements.measured(0, 0.0);
            for _ in 0..steps {
                measurements.measured(0, 8.0);
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
