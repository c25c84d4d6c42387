//! Synthetic traces that resemble a cell's capacity, for use without a recorded one.
//!
//! The logarithm of the capacity is a first-order autoregressive process with one step per millisecond (so the capacity
//! is log-normal and its autocorrelation falls as `exp(-t / correlation)`), interrupted by outages: an on-off Markov
//! chain with geometric, hence nearly exponential, durations. Capacity is accumulated, and every full 1500 bytes are an
//! opportunity.
//!
//! This models a trace, not a radio channel. The defaults are of the same order as the Saturator's LTE recordings in
//! mahimahi (standard deviation of the logarithm over 100 ms from 1.0 to 1.8 including outages, autocorrelation of 0.3
//! to 0.6 after 2 s in most, a gap of more than 100 ms every 1 to 7 s, lasting 0.2 to 0.4 s).

use units::check::{Check, MAX_RATE, MAX_SPAN, Range};
use units::{Rate, Span, parameters};

use super::{OPPORTUNITY, Trace};
use crate::Random;
use crate::wire::{normal, unit};

parameters! {
    /// A random rate resembling a cell's, drawn for each run: its logarithm is a stationary Gaussian process with
    /// exponentially decaying correlation, interrupted by outages.
    #[derive(Copy)]
    pub struct Synthetic {
        /// Mean rate outside outages, before clipping at the peak.
        pub mean: Rate, in Range::RATE;
        /// Upper bound of the rate.
        pub peak: Rate;
        /// Standard deviation of the rate's natural logarithm: 0 is constant, 0.8 a strongly varying cell.
        #[serde(default = "spread")]
        pub spread: f64, in 0.0..=3.0;
        /// Time after which the correlation has fallen to 1/e.
        #[serde(default = "correlation")]
        pub correlation: Span, in Range::POSITIVE_SPAN;
        /// Mean time from the end of one outage to the next. Default: no outages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outage_every: Option<Span>, in Range::POSITIVE_SPAN;
        /// Mean duration of an outage.
        #[serde(default = "outage")]
        pub outage: Span, in Span::from_millis(1)..=MAX_SPAN;
    } with check_peak()
}

impl Synthetic {
    /// Checks that the peak is not below the mean.
    fn check_peak(&self, c: &mut Check) {
        c.range("peak", self.peak, self.mean..=MAX_RATE);
    }

    /// A capacity of this mean and peak, with the other parameters' defaults.
    pub fn new(mean: Rate, peak: Rate) -> Synthetic {
        Synthetic { mean, peak, spread: spread(), correlation: correlation(), outage_every: None, outage: outage() }
    }
}

fn spread() -> f64 {
    0.8
}

fn correlation() -> Span {
    Span::from_secs(2)
}

fn outage() -> Span {
    Span::from_millis(250)
}

/// How a capacity varies around its mean: a log-normal process of mean 1 with one step per millisecond.
#[derive(Clone, Debug)]
pub struct Variation {
    spread: f64,
    /// The share of the logarithm that is kept in a step, and of what is new.
    keep: f64,
    innovate: f64,
    /// The logarithm, standardized.
    level: f64,
}

impl Variation {
    /// A process whose logarithm has the standard deviation `spread`, and an autocorrelation that falls to 1/e after
    /// `correlation`.
    pub fn new(spread: f64, correlation: Span, random: &mut Random) -> Variation {
        let keep = libm::exp(-1e6 / correlation.as_nanos().max(1) as f64);
        Variation { spread, keep, innovate: (1.0 - keep * keep).sqrt(), level: normal(random) }
    }

    /// Returns the factor of the next millisecond.
    pub fn next(&mut self, random: &mut Random) -> f64 {
        self.level = self.keep * self.level + self.innovate * normal(random);
        // exp(spread * x - spread^2 / 2) has mean 1 for a standard normal x.
        libm::exp(self.spread * self.level - self.spread * self.spread / 2.0)
    }
}

/// Generates a trace of this duration, rounded up to a millisecond; at least one, at most 49 days. Equal parameters and streams give
/// the same trace on any machine. The last opportunity is always at the end of the duration, so that the trace has the requested
/// period.
pub fn synthetic(parameters: &Synthetic, duration: Span, random: &mut Random) -> Trace {
    let millis = duration.as_nanos().div_ceil(1_000_000).clamp(1, u64::from(u32::MAX)) as u32;
    let per_ms = |span: Span| 1e6 / span.as_nanos().max(1) as f64;
    let (begin_outage, end_outage) = (per_ms(parameters.outage_every.unwrap_or(Span::MAX)), per_ms(parameters.outage));
    let bytes_per_ms = |rate: Rate| rate.bits_per_sec() as f64 / 8000.0;
    let (mean, peak) = (bytes_per_ms(parameters.mean), bytes_per_ms(parameters.peak));

    let mut times = Vec::new();
    let mut variation = Variation::new(parameters.spread, parameters.correlation, random);
    let mut outage = false;
    let mut bytes = 0.0;
    for ms in 1..=millis {
        let factor = variation.next(random);
        outage ^= unit(random) < if outage { end_outage } else { begin_outage };
        if !outage {
            bytes += (mean * factor).min(peak);
        }
        while bytes >= f64::from(OPPORTUNITY) {
            bytes -= f64::from(OPPORTUNITY);
            times.push(ms);
        }
    }
    if times.last() != Some(&millis) {
        times.push(millis);
    }
    Trace { times: times.into() }
}
