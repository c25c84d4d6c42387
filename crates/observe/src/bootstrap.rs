//! Draws for the cluster bootstrap over tests.
//!
//! The test is the unit, and its flows are nested in it: flows of one test share a network at one time, so they are not
//! independent. A resample draws whole tests with replacement, as many as there are, and pools all their flows (Davison and
//! Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Draws the tests of a resample: `tests` indices below `tests`, with replacement.
pub fn draw(tests: usize, random: &mut Xoshiro256PlusPlus) -> impl Iterator<Item = usize> {
    (0..tests).map(move |_| below(tests, random))
}

/// A number below `n`, equally likely each; 0 if `n` is 0.
pub fn below(n: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}
