//! Variations within the rows of a table, which no row tells.

use link::Random;
use link::trace::Variation;
use rand_xoshiro::rand_core::SeedableRng as _;
use units::Span;

/// A usual standard deviation of the rate's natural logarithm within a second. Fitted, with [`CORRELATION`], to the eight LTE
/// recordings of mahimahi's Saturator with at least 400 opportunities a second: their coefficient of variation within a second is
/// 0.34 to 0.65 over 20 ms and 0.16 to 0.33 over 100 ms (that of the process: 0.49 and 0.24).
pub const USUAL: f64 = 0.7;
/// The time after which the autocorrelation has fallen to 1/e.
const CORRELATION: Span = Span::from_millis(5);
/// The longest time in seconds that is given a texture: what is longer is no row of a log, but a gap.
const LONGEST_S: f64 = 60.0;

/// Random variations of a rate, by the millisecond. Equal spreads and seeds give equal variations.
pub(crate) struct Texture {
    variation: Variation,
    random: Random,
    /// The factors of the milliseconds of a row; kept for its memory.
    factors: Vec<f64>,
}

impl Texture {
    pub(crate) fn new(spread: f64, seed: u64) -> Texture {
        let mut random = Random::seed_from_u64(seed);
        let variation = Variation::new(spread, CORRELATION, &mut random);
        Texture { variation, random, factors: Vec::new() }
    }

    /// Returns the ends of the parts of a time in seconds, and each one's share of what passes in all of it. `None` if it is too
    /// short or too long to have parts.
    pub(crate) fn parts(&mut self, from: f64, to: f64) -> Option<impl Iterator<Item = (f64, f64)>> {
        let first = libm::floor(from * 1e3);
        let count = libm::ceil(to * 1e3) - first;
        if !(2.0..=LONGEST_S * 1e3).contains(&count) {
            return None;
        }
        let end = move |part: usize| ((first + part as f64 + 1.0) / 1e3).min(to);
        self.factors.clear();
        let mut begin = from;
        for part in 0..count as usize {
            self.factors.push(self.variation.next(&mut self.random) * (end(part) - begin).max(0.0));
            begin = end(part);
        }
        let all: f64 = self.factors.iter().sum();
        Some(self.factors.iter().enumerate().map(move |(part, factor)| (end(part), factor / all)))
    }
}
