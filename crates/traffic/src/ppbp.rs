//! The Poisson Pareto burst process: bursts start as a Poisson process, have Pareto distributed durations and send at a
//! constant rate. The sum is long-range dependent with Hurst parameter H (Zukerman, Neame, Addie: "Internet traffic
//! modeling and future technology implications", INFOCOM 2003; as a generator: Ammar, Begin, Guerin Lassous: "A new tool
//! for generating realistic internet traffic in NS-3", 2011).
//!
//! A burst's duration has the shape alpha = 3 - 2H and the given mean T, so its scale is T * (alpha - 1) / alpha. The
//! mean number of concurrent bursts is lambda * T, and the mean rate is lambda * T * r.
//!
//! Differences from the ns-3 application:
//! - T is the mean duration. There it is passed on as the Pareto scale, so bursts last alpha / (alpha - 1) times as
//!   long (2.7 times at H = 0.7).
//! - Each burst sends its own evenly spaced datagrams, beginning at a random point of its first step, so that a burst
//!   of duration L sends a mean of L / step datagrams. There a single stream is re-spaced whenever a burst starts or
//!   ends.
//! - The process is stationary from the start: bursts already active are drawn (Poisson with mean lambda * T, with the
//!   residual duration of a Pareto time). From an empty start, the heavy tail takes very long to build up.
//! - The rate counts IP packets, with 28 bytes of headers on the payload; there it is 30.

use crate::draw::{after, exponential, pareto, scaled, uniform};
use crate::limits::PACKETS;
use crate::ticker::Ticker;
use crate::{Action, Random, UDP_HEADERS};
use core::cmp::Reverse;
use std::collections::BinaryHeap;
use units::check::{Check, Range};
use units::{Bytes, Rate, Span, Time, parameters};

/// Maximum mean number of concurrent bursts (lambda * T): each costs memory and heap operations.
const MAX_ACTIVE: f64 = 1e5;

parameters! {
    /// The bursts of the process.
    #[derive(Copy)]
    pub struct Parameters {
        /// Rate of one burst, including IP headers.
        // r; the mean total rate is lambda * T * r.
        pub burst_rate: Rate, in Range::RATE;
        /// Mean length of a burst.
        // T.
        pub mean_burst: Span, in Range::POSITIVE_SPAN;
        /// Mean number of bursts started per second.
        // lambda.
        pub arrival_rate: f64;
        /// Hurst parameter of the aggregate: the Pareto shape is 3 - 2 H.
        #[serde(default = "hurst")]
        pub hurst: f64, in Range::between(0.5, 1.0);
        /// Bytes of an IP packet.
        #[serde(default = "crate::limits::mtu")]
        pub packet: Bytes, in PACKETS;
    } with check_active()
}

impl Parameters {
    /// Checks the number of bursts at a time.
    fn check_active(&self, c: &mut Check) {
        c.positive("arrival_rate", self.arrival_rate, 0.0, MAX_ACTIVE / self.mean_burst.as_secs_f64().max(0.1));
    }
}

fn hurst() -> f64 {
    0.7
}

/// The starts and durations of bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// Mean time between starts, 1 / lambda.
    gap: Span,
    /// lambda * T.
    mean_active: f64,
    /// T.
    mean: Span,
    /// alpha.
    shape: f64,
}

impl Bursts {
    /// Creates the process with `per_s` bursts per second of mean duration `mean`; `hurst` in (0.5, 1).
    pub(crate) fn new(per_s: f64, mean: Span, hurst: f64) -> Bursts {
        let gap = Span::from_secs_f64(1.0 / per_s);
        Bursts { gap, mean_active: per_s * mean.as_secs_f64(), mean, shape: 3.0 - 2.0 * hurst }
    }

    fn until_next(&self, random: &mut Random) -> Span {
        scaled(self.gap, exponential(random))
    }

    fn length(&self, random: &mut Random) -> Span {
        scaled(self.mean, pareto(self.shape, random))
    }

    /// Draws the residual duration of an active burst. With P(L > s) = min(1, (scale/s)^shape), the residual R has P(R
    /// > s) = 1 - s/T up to the scale, and (s/scale)^(1 - shape) / shape beyond it.
    fn residual(&self, random: &mut Random) -> Span {
        let beyond = uniform(random);
        let factor = if beyond * self.shape < 1.0 {
            (self.shape - 1.0) / self.shape * libm::pow(beyond * self.shape, -1.0 / (self.shape - 1.0))
        } else {
            1.0 - beyond
        };
        scaled(self.mean, factor)
    }

    /// Draws a Poisson number with mean lambda * T: the arrivals of a unit Poisson process within that time.
    fn active(&self, random: &mut Random) -> u32 {
        let mut count = 0;
        let mut at = exponential(random);
        while at < self.mean_active {
            count += 1;
            at += exponential(random);
        }
        count
    }
}

/// Datagrams of a Poisson Pareto burst process.
#[derive(Clone, Debug)]
pub struct Ppbp {
    bursts: Bursts,
    /// The active bursts, the one with the earliest datagram on top.
    active: BinaryHeap<Reverse<Burst>>,
    /// When the next burst starts.
    next_burst: Time,
    /// The number of the next burst.
    index: u64,
    /// The spacing of a burst's datagrams.
    spacing: Ticker,
    /// UDP payload of a datagram.
    payload: u32,
    stop: Time,
    finished: bool,
    random: Random,
}

/// A burst with a datagram due at `next`. Equal times are ordered by the bursts' numbers.
#[derive(Clone, Copy, Debug)]
struct Burst {
    ticker: Ticker,
    index: u64,
    end: Time,
}

impl Ppbp {
    pub(crate) fn new(bursts: Bursts, rate: Rate, packet: u32, start: Time, stop: Time, mut random: Random) -> Ppbp {
        let under_way = bursts.active(&mut random);
        let mut app = Ppbp {
            bursts,
            active: BinaryHeap::new(),
            next_burst: after(start, bursts.until_next(&mut random)),
            index: 0,
            spacing: Ticker::new(rate, packet, start),
            payload: packet - UDP_HEADERS,
            stop,
            finished: false,
            random,
        };
        for _ in 0..under_way {
            let length = bursts.residual(&mut app.random);
            app.begin(start, length);
        }
        app
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        while now >= self.poll_timeout() && !self.finished {
            let at = self.poll_timeout();
            if at >= self.stop {
                self.finished = true;
                return Some(Action::Finished);
            }
            if at == self.next_burst {
                let length = self.bursts.length(&mut self.random);
                self.begin(at, length);
                self.next_burst = after(at, self.bursts.until_next(&mut self.random));
            } else {
                self.send();
                return Some(Action::Datagram { bytes: self.payload });
            }
        }
        None
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        if self.finished {
            return Time::MAX;
        }
        let datagram = self.active.peek().map_or(Time::MAX, |Reverse(burst)| burst.ticker.next());
        datagram.min(self.next_burst).min(self.stop)
    }

    fn begin(&mut self, at: Time, length: Span) {
        let phase = scaled(Span::from_nanos(self.spacing.step()), 1.0 - uniform(&mut self.random));
        let mut ticker = self.spacing;
        ticker.move_to(after(at, phase));
        let burst = Burst { ticker, index: self.index, end: after(at, length) };
        self.index += 1;
        if ticker.next() < burst.end {
            self.active.push(Reverse(burst));
        }
    }

    /// Sends the earliest burst's datagram.
    fn send(&mut self) {
        if let Some(mut top) = self.active.peek_mut() {
            top.0.ticker.advance();
            if top.0.ticker.next() >= top.0.end {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
    }
}

impl Burst {
    fn key(&self) -> (Time, u64) {
        (self.ticker.next(), self.index)
    }
}

impl PartialEq for Burst {
    fn eq(&self, other: &Burst) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Burst {}

impl PartialOrd for Burst {
    fn partial_cmp(&self, other: &Burst) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Burst {
    fn cmp(&self, other: &Burst) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, Config};
    use rand_core::SeedableRng;

    const PACKET: u32 = 1500;
    const RATE: Rate = Rate::from_mbps(1);
    const BURST: Span = Span::from_millis(200);
    const PER_S: f64 = 20.0;

    fn app_until(hurst: f64, stop: Option<Time>, seed: u64) -> App {
        let packet = Bytes::new(PACKET.into());
        let of = Parameters { burst_rate: RATE, mean_burst: BURST, arrival_rate: PER_S, hurst, packet };
        App::new(&Config::Ppbp(of), 0, Time::ZERO, stop, Random::seed_from_u64(seed))
    }

    fn app(hurst: f64, seed: u64) -> App {
        app_until(hurst, None, seed)
    }

    /// Datagrams in each of `slots` slots of `slot`.
    fn counts(mut app: App, slot: Span, slots: usize) -> Vec<f64> {
        let mut counts = vec![0.0; slots];
        while let Some(at) = app.poll_timeout() {
            let slot = (at.as_nanos() / slot.as_nanos()) as usize;
            let Some(count) = counts.get_mut(slot) else { break };
            while app.poll_action(at).is_some() {
                *count += 1.0;
            }
        }
        counts
    }

    /// lambda * scale^alpha / (alpha - 1): the autocovariance of the number of active bursts at lag u is this times
    /// u^(1 - alpha) beyond the scale (Cox and Isham: lambda times the integral of P(L > s) from u on).
    fn covariance_factor(shape: f64) -> f64 {
        let scale = BURST.as_secs_f64() * (shape - 1.0) / shape;
        PER_S * libm::pow(scale, shape) / (shape - 1.0)
    }

    #[test]
    fn the_mean_rate_is_bursts_a_second_times_their_mean_length_times_their_rate() {
        let (hurst, seconds) = (0.6, 20_000);
        let counts = counts(app(hurst, 3), Span::from_secs(1), seconds);
        let mean = counts.iter().sum::<f64>() * f64::from(PACKET) * 8.0 / seconds as f64;
        // The variance of the mean of a process with covariance c * u^(1-alpha) over t is 2c t^(1-alpha) / ((2-alpha)(3-alpha)).
        let shape = 3.0 - 2.0 * hurst;
        let variance =
            2.0 * covariance_factor(shape) * libm::pow(seconds as f64, 1.0 - shape) / ((2.0 - shape) * (3.0 - shape));
        // In bursts: four at a time, each of 1 Mbit/s. Taking T for the scale would give 9.
        let tolerance = 4.0 * libm::sqrt(variance);
        assert!(tolerance < 0.3);
        assert!((mean / 1e6 - 4.0).abs() < tolerance, "{mean} +- {tolerance}");
    }

    #[test]
    fn the_first_second_has_the_mean_rate_too() {
        // Over 4000 seeds; one second's variance is at most that of the number of active bursts, which is Poisson: 4.
        let runs = 4000;
        let sum: f64 = (0..runs).map(|seed| counts(app(0.7, seed), Span::from_secs(1), 1)[0]).sum();
        let mean = sum * f64::from(PACKET) * 8.0 / runs as f64 / 1e6;
        assert!((mean - 4.0).abs() < 4.0 * libm::sqrt(4.0 / runs as f64), "{mean}");
    }

    #[test]
    fn burst_lengths_are_pareto_with_the_mean_that_is_asked_for() {
        let bursts = Bursts::new(PER_S, BURST, 0.7);
        let mut random = Random::seed_from_u64(5);
        let draws = 100_000;
        // alpha = 1.6: scale 75 ms; P(L > s) = (75 ms / s)^1.6. A share's standard error is at most 0.5/sqrt(draws).
        let tolerance = 5.0 * 0.5 / libm::sqrt(f64::from(draws));
        let lengths: Vec<f64> = (0..draws).map(|_| bursts.length(&mut random).as_secs_f64()).collect();
        assert!(lengths.iter().all(|&length| length >= 0.075));
        for s in [0.1, 0.2, 0.5, 2.0] {
            let beyond = lengths.iter().filter(|&&length| length > s).count() as f64 / f64::from(draws);
            assert!((beyond - libm::pow(0.075 / s, 1.6)).abs() < tolerance, "{s}: {beyond}");
        }
    }

    #[test]
    fn residual_lengths_have_the_density_of_a_burst_that_is_found_under_way() {
        let bursts = Bursts::new(PER_S, BURST, 0.7);
        let mut random = Random::seed_from_u64(6);
        let draws = 100_000;
        let tolerance = 5.0 * 0.5 / libm::sqrt(f64::from(draws));
        let lengths: Vec<f64> = (0..draws).map(|_| bursts.residual(&mut random).as_secs_f64()).collect();
        // P(R > s) is the integral of P(L > .) from s on, over T: by hand, on both sides of the scale of 75 ms.
        let beyond_scale = |s: f64| libm::pow(0.075, 1.6) * libm::pow(s, -0.6) / 0.6 / 0.2;
        for (s, expected) in [(0.03, 1.0 - 0.03 / 0.2), (0.075, beyond_scale(0.075)), (1.0, beyond_scale(1.0))] {
            let beyond = lengths.iter().filter(|&&length| length > s).count() as f64 / f64::from(draws);
            assert!((beyond - expected).abs() < tolerance, "{s}: {beyond}, not {expected}");
        }
    }

    #[test]
    fn the_variance_of_the_mean_falls_with_time_as_the_hurst_parameter_says() {
        // The variance of the mean over m seconds falls as m^(2H-2), a slope of -0.6 at H = 0.7 and -1 without long
        // range dependence. Between 1 s and 64 s there are 400 of the longest means; the logarithm of a variance from n
        // nearly independent means has a standard error of about sqrt(2/n) = 0.07, on a base of ln 64 = 4.16, and what
        // dependence is left at most doubles it: 0.034. Heavy tails make the estimate noisier; three times that is allowed.
        let hurst = 0.7;
        let counts = counts(app(hurst, 8), Span::from_secs(1), 64 * 400);
        let variance = |m: usize| {
            let means: Vec<f64> = counts.chunks_exact(m).map(|chunk| chunk.iter().sum::<f64>() / m as f64).collect();
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / means.len() as f64
        };
        let slope = libm::log(variance(64) / variance(1)) / libm::log(64.0);
        assert!((slope - (2.0 * hurst - 2.0)).abs() < 0.1, "{slope}");
    }

    #[test]
    fn the_same_seed_gives_the_same_datagrams_and_another_seed_others() {
        let run = |seed| counts(app(0.7, seed), Span::from_millis(10), 500);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn it_stops() {
        let stop = Time::ZERO + Span::from_secs(2);
        let mut app = app_until(0.7, Some(stop), 1);
        let mut last = None;
        while let Some(at) = app.poll_timeout() {
            while let Some(action) = app.poll_action(at) {
                last = Some((at, action));
            }
        }
        assert_eq!(last, Some((stop, Action::Finished)));
    }
}
