//! A modem whose rate is searched by delay and load, by the algorithm of cake-autorate.
//!
//! Reading list: cake-autorate 3.5.0 (<https://github.com/lynxthecat/cake-autorate>), the theory of operation in its
//! `README.md`, the settings that `defaults.sh` describes, and the changes of the control law in `CHANGELOG.md` (3.1.0,
//! 3.2.0, 3.3.0). Written from those descriptions; no code of it is here.
//!
//! Some hosts, the *reflectors*, are pinged in turns. Half of a round-trip time stands for the one-way delay. Each reflector
//! has a baseline, which follows a shorter delay at once and a longer one very slowly; what a delay exceeds it by is the
//! sample. With each sample the shaper's rate changes at most once:
//!
//! - *Bufferbloat*, three of the last six samples above the threshold: the rate falls by 1 % if the mean of the six is at the
//!   threshold, by up to 25 % if it is at twice the threshold, and then not again for 300 ms.
//! - *High load*, more than 75 % of the rate used in the last 200 ms: it grows by 4 % if the mean is at a third of the
//!   threshold or below, and by nothing at the threshold; once for each measurement of the load, and not within 300 ms after
//!   bufferbloat.
//! - Otherwise it moves by 1 % a second towards the base rate.
//!
//! Deviations, none of which acts in a run with a few good reflectors and traffic all the time:
//!
//! 1. Reflectors are not rotated, compared or replaced.
//! 2. It does not sleep when nothing is sent, and there is no separate idle or stalled state: without replies nothing
//!    changes until `SILENCE` has passed.
//! 3. The interval at which the load is measured is not lengthened below 12 Mbit/s.

use std::collections::BTreeMap;

use units::{Bytes, Rate, Span, Time};

use crate::{Answer, DrainModel, Estimate, Fixed, Probe};

/// Samples by which bufferbloat is detected, and how many of them have to be delayed (`bufferbloat_detection_window`,
/// `bufferbloat_detection_thr`).
const WINDOW: usize = 6;
const DELAYED: usize = 3;
/// `alpha_baseline_increase` and `alpha_baseline_decrease`, in thousandths.
const INCREASE: i64 = 1;
const DECREASE: i64 = 900;
/// `monitor_achieved_rates_interval_ms`.
const LOAD_INTERVAL: Span = Span::from_millis(200);
/// `high_load_thr`.
const HIGH_LOAD: f64 = 0.75;
/// `bufferbloat_refractory_period_ms` and `decay_refractory_period_ms`.
const BUFFERBLOAT_PAUSE: Span = Span::from_millis(300);
const DECAY_PAUSE: Span = Span::from_secs(1);
/// `shaper_rate_{min,max}_adjust_down_bufferbloat`.
const LEAST_DOWN: f64 = 0.99;
const MOST_DOWN: f64 = 0.75;
/// `shaper_rate_{min,max}_adjust_up_load_high`.
const LEAST_UP: f64 = 1.0;
const MOST_UP: f64 = 1.04;
/// `shaper_rate_adjust_{down,up}_load_low`.
const DECAY_DOWN: f64 = 0.99;
const DECAY_UP: f64 = 1.01;
/// Without any reply for so long the rate is the least (`global_ping_response_timeout_s`).
const SILENCE: Span = Span::from_secs(10);
/// A full packet: the thresholds grow by the time that it takes at the shaper's rate.
const PACKET: Bytes = Bytes::new(1500);
/// What the shaper hands down at once after it was late, in time.
const BURST: Span = Span::from_millis(1);

/// What a user has to know of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The rate never falls below this one, which should not cause bufferbloat at the worst of times.
    pub min: Rate,
    /// The rate to begin with and to come back to when little is sent.
    pub base: Rate,
    /// The rate never exceeds this one.
    pub max: Rate,
    /// By how much a delay has to exceed its baseline to count as delayed (`owd_delta_delay_thr_ms`, 30 ms there). The
    /// thresholds of the largest steps up and down are a third and twice that, as the defaults are.
    pub threshold: Span,
}

/// A rate that goes up under load and down with delay.
#[derive(Clone, Debug)]
pub struct Autorate {
    bounds: Bounds,
    shaper: Fixed,
    rate: Rate,
    /// One-way delays without a queue, by reflector.
    baselines: BTreeMap<usize, Span>,
    samples: [Sample; WINDOW],
    next: usize,
    load: Load,
    bufferbloat: Time,
    decayed: Time,
    replied: Time,
    delay: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    delta: Span,
    delayed: bool,
}

/// What was sent in the interval that runs, and the last measurement.
#[derive(Clone, Copy, Debug)]
struct Load {
    since: Time,
    bytes: u64,
    achieved: Rate,
    /// Whether that has not been used yet for a step up.
    fresh: bool,
}

impl Load {
    fn turn(&mut self, now: Time) {
        let span = now.saturating_since(self.since);
        if span >= LOAD_INTERVAL {
            let achieved = Rate::over(Bytes::new(self.bytes), span);
            *self = Load { since: now, bytes: 0, achieved, fresh: true };
        }
    }
}

impl Autorate {
    /// Begins with the base rate.
    pub fn new(bounds: Bounds) -> Autorate {
        Autorate {
            bounds,
            shaper: Fixed::new(bounds.base, BURST),
            rate: bounds.base,
            baselines: BTreeMap::new(),
            samples: [Sample::default(); WINDOW],
            next: 0,
            load: Load { since: Time::ZERO, bytes: 0, achieved: Rate::from_bits_per_sec(0), fresh: false },
            bufferbloat: Time::ZERO,
            decayed: Time::ZERO,
            replied: Time::ZERO,
            delay: None,
        }
    }

    /// By how much a delay exceeds its reflector's baseline, once that has followed it.
    fn delta(&mut self, reflector: usize, delay: Span) -> Span {
        let baseline = self.baselines.entry(reflector).or_insert(delay);
        let (old, new) = (nanos(*baseline), nanos(delay));
        let alpha = if new >= old { INCREASE } else { DECREASE };
        *baseline = Span::from_nanos((old + (new - old) * alpha / 1000).unsigned_abs());
        delay.saturating_sub(*baseline)
    }

    /// The rate that follows a sample.
    fn step(&mut self, now: Time) -> Rate {
        let Bounds { base, threshold, .. } = self.bounds;
        let packet = self.rate.time_for(PACKET);
        let seconds = |span: Span| (span + packet).as_secs_f64();
        let (up, middle, down) =
            (seconds(threshold.mul_div(1, 3)), seconds(threshold), seconds(threshold.mul_div(2, 1)));
        let mean = self.samples.iter().map(|sample| sample.delta.as_secs_f64()).sum::<f64>() / WINDOW as f64;
        let pauses = now.saturating_since(self.bufferbloat) <= BUFFERBLOAT_PAUSE;
        if self.samples.iter().filter(|sample| sample.delayed).count() >= DELAYED {
            if pauses {
                return self.rate;
            }
            (self.bufferbloat, self.decayed) = (now, now);
            return scaled(self.rate, between(mean, (middle, LEAST_DOWN), (down, MOST_DOWN)));
        }
        if self.load.achieved.bits_per_sec() as f64 > HIGH_LOAD * self.rate.bits_per_sec() as f64 {
            if pauses || !self.load.fresh {
                return self.rate;
            }
            self.load.fresh = false;
            self.decayed = now;
            return scaled(self.rate, between(mean, (up, MOST_UP), (middle, LEAST_UP)));
        }
        if now.saturating_since(self.decayed) <= DECAY_PAUSE {
            return self.rate;
        }
        self.decayed = now;
        if self.rate > base { scaled(self.rate, DECAY_DOWN).max(base) } else { scaled(self.rate, DECAY_UP).min(base) }
    }

    fn set(&mut self, rate: Rate, now: Time) {
        let rate = rate.max(self.bounds.min).min(self.bounds.max);
        if rate != self.rate {
            self.rate = rate;
            self.shaper.set_rate(rate, now);
        }
    }
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX / 1000)
}

fn scaled(rate: Rate, factor: f64) -> Rate {
    Rate::from_bits_per_sec((rate.bits_per_sec() as f64 * factor) as u64)
}

/// The line through two points at `x`, and level outside of them.
fn between(x: f64, (from, at_from): (f64, f64), (to, at_to): (f64, f64)) -> f64 {
    at_from + (at_to - at_from) * ((x - from) / (to - from)).clamp(0.0, 1.0)
}

impl DrainModel for Autorate {
    fn has_room(&mut self, now: Time) -> bool {
        self.load.turn(now);
        if now.saturating_since(self.replied) >= SILENCE {
            self.set(self.bounds.min, now);
        }
        self.shaper.has_room(now)
    }

    fn handed(&mut self, bytes: u32, probe: Option<Probe>, now: Time) {
        self.load.turn(now);
        self.load.bytes += u64::from(bytes);
        self.shaper.handed(bytes, probe, now);
    }

    fn on_idle(&mut self) {}

    fn answered(&mut self, _: Answer, _: Time) {}

    fn reflected(&mut self, reflector: usize, rtt: Span, now: Time) {
        self.replied = now;
        self.load.turn(now);
        let delta = self.delta(reflector, rtt.mul_div(1, 2));
        self.delay = Some(delta);
        let delayed = delta > self.bounds.threshold + self.rate.time_for(PACKET);
        self.samples[self.next] = Sample { delta, delayed };
        self.next = (self.next + 1) % WINDOW;
        let rate = self.step(now);
        self.set(rate, now);
    }

    fn poll_timeout(&self, now: Time) -> Option<Time> {
        self.shaper.poll_timeout(now)
    }

    fn estimate(&self, _: Time) -> Estimate {
        let held = self.delay.map_or(0, |delay| self.rate.bytes_in(delay).get());
        Estimate { rate: Some(self.rate), bytes: held, delay: self.delay }
    }
}

#[cfg(test)]
mod tests;
