//! Evenly spaced times at an exact rate: the fraction of a nanosecond left by one step carries over to the next.

use units::{Rate, Time};

const BIT_NANOS: u128 = 8 * 1_000_000_000;

/// The departure times of packets of one size at one rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker {
    next: Time,
    /// One step is `step + step_rest / rate` nanoseconds.
    step: u64,
    step_rest: u64,
    /// Less than `rate`: the exact time is `next + rest / rate` nanoseconds.
    rest: u64,
    rate: u64,
}

impl Ticker {
    /// Creates a ticker for packets of `bytes` at `rate`, neither of them zero, with the first one at `first`.
    pub(crate) fn new(rate: Rate, bytes: u32, first: Time) -> Ticker {
        let rate = rate.bits_per_sec();
        let bit_nanos = u128::from(bytes) * BIT_NANOS;
        let (step, step_rest) = (bit_nanos / u128::from(rate), bit_nanos % u128::from(rate));
        // Both fit: the step is at most 2^32 * 8e9 / rate, and exceeds u64 only below 2 bit/s, where it means never.
        let step = u64::try_from(step).unwrap_or(u64::MAX);
        Ticker { next: first, step, step_rest: step_rest as u64, rest: 0, rate }
    }

    /// Returns the next time.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Returns the nanoseconds of one step, rounded down.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Advances to the following packet.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let mut step = self.step;
        // rest and step_rest are both below rate; comparing them avoids their sum, which may exceed u64.
        if self.rest >= self.rate - self.step_rest {
            self.rest -= self.rate - self.step_rest;
            step = step.saturating_add(1);
        } else {
            self.rest += self.step_rest;
        }
        self.next = Time::from_nanos(self.next.as_nanos().saturating_add(step));
    }

    /// Moves the next time to `to`, keeping the carried fraction.
    pub(crate) fn move_to(&mut self, to: Time) {
        self.next = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_steps_of_a_third_of_a_nanosecond_too_many_lose_nothing() {
        // 1 byte at 3 bit/s: 8/3 s a step, so three steps are 8 s exactly.
        let mut ticker = Ticker::new(Rate::from_bits_per_sec(3), 1, Time::ZERO);
        for _ in 0..3_000_000 {
            ticker.advance();
        }
        assert_eq!(ticker.next(), Time::from_nanos(8_000_000 * 1_000_000_000));
    }

    #[test]
    fn a_step_is_rounded_down_until_the_fractions_make_a_nanosecond() {
        // 1500 B at 7 Mbit/s: 1714285.714... ns.
        let mut ticker = Ticker::new(Rate::from_mbps(7), 1500, Time::ZERO);
        let moments: Vec<u64> = (0..4)
            .map(|_| {
                ticker.advance();
                ticker.next().as_nanos()
            })
            .collect();
        assert_eq!(moments, [1_714_285, 3_428_571, 5_142_857, 6_857_142]);
    }

    #[test]
    fn the_slowest_rate_and_the_largest_packet_mean_never() {
        let mut ticker = Ticker::new(Rate::from_bits_per_sec(1), u32::MAX, Time::ZERO);
        ticker.advance();
        assert_eq!(ticker.next(), Time::MAX);
    }
}
