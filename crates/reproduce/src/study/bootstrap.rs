//! The cluster bootstrap ([`units::stats::bootstrap`]) over pairs of values, of one group of tests or of several.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use units::stats::bootstrap::draw;

/// Number of resamples.
const RESAMPLES: usize = 1000;
/// The random stream is the same for each measure.
const SEED: u64 = 0x5eed;

/// A pair of values of a test.
pub(super) type Pair = (f64, f64);

/// The values of each test of a group, and the number of the draw that selects from it: groups with the same draw have the
/// same tests, and each test is drawn in all of them.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) tests: Vec<Vec<Pair>>,
    pub(super) draw: usize,
}

/// Returns the values of `combine` for resamples of groups, those that have one.
pub(super) fn resample(groups: &[Group], combine: impl Fn(&[Vec<Pair>]) -> Option<f64>) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let draws = groups.iter().map(|group| group.draw + 1).max().unwrap_or(0);
    let mut drawn: Vec<Vec<Pair>> = vec![Vec::new(); groups.len()];
    let mut values = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        drawn.iter_mut().for_each(Vec::clear);
        for number in 0..draws {
            let alike = |group: &&Group| group.draw == number;
            let tests = groups.iter().find(alike).map_or(0, |group| group.tests.len());
            for i in draw(tests, &mut random) {
                for (group, drawn) in groups.iter().zip(&mut drawn).filter(|(group, _)| group.draw == number) {
                    drawn.extend_from_slice(&group.tests[i]);
                }
            }
        }
        values.extend(combine(&drawn));
    }
    values
}
