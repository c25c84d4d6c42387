//! How far values may differ, and when a difference is noise.

/// The largest difference that is within the bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// As a fraction of the kernel's value.
    pub(crate) share: f64,
    /// In the value's unit, if that is more: what neither side can tell apart. For times of slow start's end, the bound in round
    /// trips.
    pub(crate) floor: f64,
    /// Whether the value is a quantile of round-trip times, which have steps ([`units::Distribution`]).
    pub(crate) has_steps: bool,
}

impl Bound {
    /// Returns the largest difference from the kernel's value, in the value's unit. `base` is the path's round-trip time, above
    /// which delays are compared.
    pub(crate) fn allowed(self, kernel: f64, base: f64) -> f64 {
        let step = if self.has_steps { (base + kernel) / STEPS } else { 0.0 };
        (self.share * kernel.abs()).max(self.floor).max(step)
    }
}

const fn share(share: f64) -> Bound {
    floored(share, 0.0)
}

const fn floored(share: f64, floor: f64) -> Bound {
    Bound { share, floor, has_steps: false }
}

/// Steps of a round-trip time: the number of buckets for each power of two in [`units::Distribution`].
const STEPS: f64 = 128.0;

/// The emulator delivers half of the packets within 0.05 ms, in each direction of a round trip.
const LATENESS_MS: f64 = 0.1;

/// Bound on the median of the queueing delay.
pub(crate) const DELAY_MEDIAN: Bound = Bound { share: 0.10, floor: LATENESS_MS, has_steps: true };
/// The same for its 95th percentile.
pub(crate) const DELAY_P95: Bound = Bound { share: 0.15, floor: LATENESS_MS, has_steps: true };
/// The same for the smoothed round-trip time.
pub(crate) const SMOOTHED_MEDIAN: Bound = floored(0.10, LATENESS_MS);
/// See `SMOOTHED_MEDIAN`.
pub(crate) const SMOOTHED_P95: Bound = floored(0.15, LATENESS_MS);
/// Bound on the retransmitted share of the segments, in percent: one in a thousand more does not count.
pub(crate) const RETRANSMITTED: Bound = floored(0.20, 0.1);
/// Bound on the number of timeouts: one more does not count.
pub(crate) const TIMEOUTS: Bound = floored(0.20, 1.0);
/// Bound on the difference of the end of slow start, in round trips.
pub(crate) const EXIT_ROUNDS: Bound = floored(0.0, 1.0);
/// Bound on the window at the end of slow start.
pub(crate) const EXIT_WINDOW: Bound = share(0.15);
/// Bound on the window of `mdcc`: median.
pub(crate) const WINDOW_MEDIAN: Bound = share(0.10);
/// The same for its 95th percentile.
pub(crate) const WINDOW_P95: Bound = share(0.15);
/// Bound on the mean relative difference of CUBIC's curve.
pub(crate) const CURVE: f64 = 0.05;

/// Returns the bound on goodput. Under random loss, two runs lose different packets.
pub(crate) fn goodput(loses_at_random: bool) -> Bound {
    share(if loses_at_random { 0.10 } else { 0.05 })
}

/// Utilisation from which on a link counts as full: the goodput of the only flow is the link's then.
pub(crate) const FULL: f64 = 0.99;

/// Kernel runs from which on their variation excuses a difference: some figures have two modes, which fewer runs do not show.
pub(crate) const RUNS_FOR_NOISE: usize = 6;
