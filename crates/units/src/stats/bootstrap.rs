//! Draws for the cluster bootstrap over tests.
//!
//! The test is the unit, and its flows are nested in it: flows of one test share a network at one time, so they are not
//! independent. A resample draws whole tests with replacement, as many as there are, and pools all their flows (Davison and
//! Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).

use rand_core::Rng;

/// Draws the tests of a resample: `tests` indices below `tests`, with replacement.
pub fn draw(tests: usize, random: &mut impl Rng) -> impl Iterator<Item = usize> {
    (0..tests).map(move |_| below(tests, random))
}

/// Returns a number below `n`, equally likely each; 0 if `n` is 0.
pub fn below(n: usize, random: &mut impl Rng) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::convert::Infallible;
    use rand_core::TryRng;

    /// A source that repeats one number.
    struct Always(u64);

    impl TryRng for Always {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok((self.0 >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(0);
            Ok(())
        }
    }

    #[test]
    fn equal_parts_of_the_random_numbers_give_each_index() {
        // Three parts of 2^64: up to its third, up to two of them, and the rest.
        let third = u64::MAX / 3;
        let of = |number| below(3, &mut Always(number));
        assert_eq!([0, third, third + 1, 2 * third, 2 * third + 1, u64::MAX].map(of), [0, 0, 1, 1, 2, 2]);
        assert_eq!(below(0, &mut Always(u64::MAX)), 0);
    }

    #[test]
    fn a_resample_has_as_many_tests_as_there_are() {
        assert_eq!(draw(4, &mut Always(u64::MAX)).collect::<Vec<_>>(), [3; 4]);
        assert_eq!(draw(0, &mut Always(0)).count(), 0);
    }
}
