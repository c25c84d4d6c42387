//! The cluster bootstrap: whole tests are drawn with replacement, as many as there are.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Number of resamples.
const RESAMPLES: usize = 1000;
/// The random stream is the same for each measure.
const SEED: u64 = 0x5eed;

/// A pair of values of a test.
pub(super) type Pair = (f64, f64);

/// Returns the values of `combine` for resamples of two groups of tests, those that have one. With `together`, the groups
/// are the same tests, and each draw takes a test of both.
pub(super) fn resample(
    one: &[Vec<Pair>],
    two: &[Vec<Pair>],
    together: bool,
    combine: impl Fn(&[Pair], &[Pair]) -> Option<f64>,
) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut values = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ours.clear();
        theirs.clear();
        for _ in 0..one.len() {
            let i = below(one.len(), &mut random);
            ours.extend_from_slice(&one[i]);
            if together {
                theirs.extend_from_slice(&two[i]);
            }
        }
        if !together {
            for _ in 0..two.len() {
                theirs.extend_from_slice(&two[below(two.len(), &mut random)]);
            }
        }
        values.extend(combine(&ours, &theirs));
    }
    values
}

/// A number below `n`, equally likely each.
fn below(n: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}
