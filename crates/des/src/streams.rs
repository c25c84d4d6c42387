//! Named random streams derived from one seed.
//!
//! Each consumer of random numbers has its own stream, found by name, so that adding a component does not change
//! another's numbers, and the same name and seed give the same numbers on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// The random streams of one run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Creates the streams of run `run` under `seed`.
    pub fn new(seed: u64, run: u64) -> Streams {
        Streams { seed: mix(mix(seed) ^ run) }
    }

    /// Returns the stream called `name`.
    pub fn named(&self, name: &str) -> Xoshiro256PlusPlus {
        // FNV-1a: stable by definition, unlike the standard library's hasher.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Xoshiro256PlusPlus::seed_from_u64(mix(self.seed ^ hash))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): decorrelates consecutive seeds.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::Rng;

    #[test]
    fn a_stream_depends_on_seed_run_and_name_only() {
        let first = |seed, run, name: &str| Streams::new(seed, run).named(name).next_u64();
        assert_eq!(first(1, 0, "loss"), first(1, 0, "loss"));
        let others = [first(2, 0, "loss"), first(1, 1, "loss"), first(1, 0, "jitter"), first(0, 1, "loss")];
        for (i, a) in others.iter().enumerate() {
            assert_ne!(*a, first(1, 0, "loss"));
            assert!(others[..i].iter().all(|b| b != a));
        }
    }

    #[test]
    fn the_numbers_are_pinned_so_that_published_results_stay_reproducible() {
        assert_eq!(Streams::new(1, 0).named("link bottleneck loss").next_u64(), PINNED);
    }

    const PINNED: u64 = 2_578_863_812_455_290_868;
}
