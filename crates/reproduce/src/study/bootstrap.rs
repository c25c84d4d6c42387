//! The cluster bootstrap ([`observe::bootstrap`]) over pairs of values, of one group of tests or of two.

use observe::bootstrap::draw;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

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
        for i in draw(one.len(), &mut random) {
            ours.extend_from_slice(&one[i]);
            if together {
                theirs.extend_from_slice(&two[i]);
            }
        }
        if !together {
            draw(two.len(), &mut random).for_each(|i| theirs.extend_from_slice(&two[i]));
        }
        values.extend(combine(&ours, &theirs));
    }
    values
}
