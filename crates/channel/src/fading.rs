//! Fast fading: Rayleigh taps with Doppler, and the response of each resource block.
//!
//! Sources: 3GPP TS 36.104 Annex B.2 (the taps); R. H. Clarke, "A Statistical Theory of Mobile-Radio Reception" (Bell
//! Syst. Tech. J. 47(6), 1968): waves from all directions, so that a tap's autocorrelation is J0(2 pi f t); M. F. Pop,
//! N. C. Beaulieu, "Limitations of Sum-of-Sinusoids Fading Channel Simulators" (IEEE Trans. Commun. 49(4), 2001): waves
//! with random phases, so that the process is stationary.
//!
//! Each tap is a sum of [`WAVES`] waves from directions evenly spaced around the UE, all rotated by a random angle,
//! each with a random phase. A wave's phase is the distance travelled by the UE, in wavelengths, times the cosine of
//! its direction: the fading is a function of that distance (or of time, for a given Doppler frequency), has no state,
//! and does not repeat, because the cosines are incommensurable. Averaged over the random angles, the autocorrelation
//! is exactly J0; that of one channel follows it until `2 pi f t` approaches the number of waves, and stays near 1 /
//! sqrt(WAVES) afterwards.
//!
//! Deviations:
//! 1. Power is constant over the 180 kHz of a resource block and the millisecond of a subframe.
//! 2. Phases are quantised to 1024 steps per turn, which adds noise 55 dB below a tap.
//! 3. There is one antenna at each end.

use rand_core::Rng;

use crate::Random;

/// A tapped delay line of TS 36.104 Annex B.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Extended Pedestrian A.
    #[default]
    Epa,
    /// Extended Vehicular A.
    Eva,
    /// Extended Typical Urban.
    Etu,
}

/// The rate of change of the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doppler {
    /// A maximum Doppler frequency in Hz, independent of the UE's speed.
    Hz(f64),
    /// The Doppler frequency of the UE's speed at the carrier's frequency; a stationary UE has a constant channel.
    Speed,
}

/// The parameters of a fading channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The power delay profile.
    pub profile: Profile,
    /// The rate of change.
    pub doppler: Doppler,
}

/// Maximum number of taps of a profile.
const TAPS: usize = 9;

/// Number of waves of a tap.
pub const WAVES: usize = 16;

/// Spacing of resource blocks in Hz.
const BLOCK_HZ: f64 = 180e3;

/// Number of resource blocks computed together.
const LANES: usize = 8;

/// Resource blocks of the widest carrier, rounded up to whole lanes.
const BLOCKS: usize = 104;

/// Delay in nanoseconds and relative power in dB. TS 36.104 Tables B.2-2 to B.2-4.
const EPA: [(f64, f64); 7] =
    [(0.0, 0.0), (30.0, -1.0), (70.0, -2.0), (90.0, -3.0), (110.0, -8.0), (190.0, -17.2), (410.0, -20.8)];
const EVA: [(f64, f64); 9] = [
    (0.0, 0.0),
    (30.0, -1.5),
    (150.0, -1.4),
    (310.0, -3.6),
    (370.0, -0.6),
    (710.0, -9.1),
    (1090.0, -7.0),
    (1730.0, -12.0),
    (2510.0, -16.9),
];
const ETU: [(f64, f64); 9] = [
    (0.0, -1.0),
    (50.0, -1.0),
    (120.0, -1.0),
    (200.0, 0.0),
    (230.0, 0.0),
    (500.0, 0.0),
    (1600.0, -3.0),
    (2300.0, -5.0),
    (5000.0, -7.0),
];

impl Profile {
    /// Excess delay in nanoseconds and relative power in dB of each tap.
    pub const fn taps(self) -> &'static [(f64, f64)] {
        match self {
            Profile::Epa => &EPA,
            Profile::Eva => &EVA,
            Profile::Etu => &ETU,
        }
    }
}

/// A distance in wavelengths, or a time in periods of the maximum Doppler frequency, in units of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns(u64);

impl Turns {
    /// Creates a distance in wavelengths from zero.
    #[inline]
    pub fn new(wavelengths: f64) -> Turns {
        Turns((wavelengths * (1u64 << 32) as f64) as u64)
    }

    /// Returns a multiple of it.
    #[inline]
    pub(crate) fn times(self, times: u64) -> Turns {
        Turns(self.0.wrapping_mul(times))
    }
}

/// The fading of one link.
#[derive(Clone, Debug)]
pub struct Fading {
    profile: Profile,
    blocks: usize,
    /// The waves of all taps, tap by tap.
    waves: [[Wave; WAVES]; TAPS],
    /// Amplitude of each wave of a tap.
    amplitudes: [f32; TAPS],
    /// The distance for which `gains` was computed.
    at: Option<Turns>,
    gains: [f32; BLOCKS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Wave {
    /// Cosine of the direction, in units of 2^-31.
    cosine: i64,
    /// Initial phase, in units of 2^-63 of a turn.
    phase: u64,
}

impl Fading {
    /// Creates a link of `blocks` resource blocks, at most 100.
    pub fn new(profile: Profile, blocks: u8, random: &mut Random) -> Fading {
        let taps = profile.taps();
        let total: f64 = taps.iter().map(|&(_, db)| crate::linear(db)).sum();
        let mut waves = [[Wave::default(); WAVES]; TAPS];
        let mut amplitudes = [0.0; TAPS];
        for (tap, &(_, db)) in taps.iter().enumerate() {
            amplitudes[tap] = libm::sqrt(crate::linear(db) / total / WAVES as f64) as f32;
            let turned = crate::uniform(random);
            for (n, wave) in waves[tap].iter_mut().enumerate() {
                let angle = core::f64::consts::TAU * (n as f64 + turned) / WAVES as f64;
                wave.cosine = libm::round(libm::cos(angle) * (1u64 << 31) as f64) as i64;
                wave.phase = random.next_u64();
            }
        }
        Fading { profile, blocks: usize::from(blocks), waves, amplitudes, at: None, gains: [0.0; BLOCKS] }
    }

    /// Returns the power gain of each resource block after a distance, with a mean of 1.
    #[inline]
    pub fn gains(&mut self, way: Turns) -> &[f32] {
        if self.at != Some(way) {
            self.compute(way);
        }
        &self.gains[..self.blocks]
    }

    #[inline(never)]
    fn compute(&mut self, way: Turns) {
        self.at = Some(way);
        let taps = self.profile.taps().len();
        let mut values = [[0.0f32; 2]; TAPS];
        for (tap, value) in values.iter_mut().enumerate().take(taps) {
            *value = self.tap(tap, way);
        }
        let response = &RESPONSES[self.profile as usize];
        for (lane, gains) in self.gains.chunks_exact_mut(LANES).enumerate().take(self.blocks.div_ceil(LANES)) {
            let (mut re, mut im) = ([0.0f32; LANES], [0.0f32; LANES]);
            for ([h_re, h_im], turns) in values.iter().zip(&response[lane]).take(taps) {
                for n in 0..LANES {
                    re[n] += h_re * turns.cos[n] + h_im * turns.sin[n];
                    im[n] += h_im * turns.cos[n] - h_re * turns.sin[n];
                }
            }
            for n in 0..LANES {
                gains[n] = re[n] * re[n] + im[n] * im[n];
            }
        }
    }

    /// Returns the complex gain of a tap after a distance.
    #[inline]
    fn tap(&self, tap: usize, Turns(way): Turns) -> [f32; 2] {
        let (mut re, mut im) = (0.0, 0.0);
        for wave in &self.waves[tap] {
            // 2^-32 times 2^-31 turns: overflow drops whole turns.
            let phase = way.wrapping_mul(wave.cosine as u64).wrapping_add(wave.phase);
            let [cos, sin] = TURN[(phase >> (63 - STEPS.ilog2())) as usize % STEPS];
            re += cos;
            im += sin;
        }
        [re * self.amplitudes[tap], im * self.amplitudes[tap]]
    }
}

/// Number of steps of [`TURN`].
const STEPS: usize = 1024;

/// Cosine and sine of each step of a turn.
static TURN: [[f32; 2]; STEPS] = {
    let mut table = [[0.0; 2]; STEPS];
    let mut n = 0;
    while n < STEPS {
        let (cos, sin) = unit((n as f64 + 0.5) / STEPS as f64);
        table[n] = [cos as f32, sin as f32];
        n += 1;
    }
    table
};

/// The phase rotation of a tap over the resource blocks of a lane.
#[derive(Clone, Copy)]
struct Response {
    cos: [f32; LANES],
    sin: [f32; LANES],
}

/// By profile, lane and tap. Frequencies are relative to the first resource block, as each tap's phase is random
/// anyway.
static RESPONSES: [[[Response; TAPS]; BLOCKS / LANES]; 3] = [responses(&EPA), responses(&EVA), responses(&ETU)];

const fn responses(taps: &[(f64, f64)]) -> [[Response; TAPS]; BLOCKS / LANES] {
    let mut table = [[Response { cos: [0.0; LANES], sin: [0.0; LANES] }; TAPS]; BLOCKS / LANES];
    let mut block = 0;
    while block < BLOCKS {
        let mut tap = 0;
        while tap < taps.len() {
            let (cos, sin) = unit(block as f64 * BLOCK_HZ * taps[tap].0 * 1e-9);
            let response = &mut table[block / LANES][tap];
            response.cos[block % LANES] = cos as f32;
            response.sin[block % LANES] = sin as f32;
            tap += 1;
        }
        block += 1;
    }
    table
}

/// Returns cosine and sine of a number of turns, by their series: the standard library's are not `const`.
const fn unit(turns: f64) -> (f64, f64) {
    let turns = turns - turns as i64 as f64;
    let x = (turns - if turns > 0.5 { 1.0 } else { 0.0 }) * core::f64::consts::TAU;
    let (mut cos, mut sin, mut term, mut n) = (1.0, x, x, 2.0);
    // Terms of up to pi^40 / 40!, which is 1e-28.
    while n < 40.0 {
        term *= -x / n;
        cos += term;
        term *= x / (n + 1.0);
        sin += term;
        n += 2.0;
    }
    (cos, sin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_taps_autocorrelation_is_j0() {
        // The complex autocorrelation over a way, averaged over 3,000 taps: J0, and nothing imaginary.
        let ways = [0.05, 0.1, 0.2, 0.383, 0.6, 1.0, 1.5, 2.5, 5.0, 20.0];
        let mut sums = [[0.0f64; 2]; 10];
        let (mut power, mut count) = (0.0, 0.0);
        for seed in 0..3000 {
            let fading = Fading::new(Profile::Etu, 1, &mut Random::seed_from_u64(seed));
            let value = |way: f64| fading.tap(3, Turns::new(way)).map(f64::from);
            for start in [0.0, 7.3, 123.4] {
                let [a, b] = value(start);
                power += a * a + b * b;
                count += 1.0;
                for (sum, way) in sums.iter_mut().zip(ways) {
                    let [c, d] = value(start + way);
                    *sum = [sum[0] + c * a + d * b, sum[1] + d * a - c * b];
                }
            }
        }
        // The tap's share of the power: 0 dB of seven taps at 0 or -1 dB and three weaker ones.
        let total: f64 = ETU.iter().map(|&(_, db)| crate::linear(db)).sum();
        assert!((power / count * total - 1.0).abs() < 0.03, "power {}", power / count * total);
        for ([re, im], way) in sums.into_iter().zip(ways) {
            let exact = libm::j0(core::f64::consts::TAU * way);
            assert!((re / power - exact).abs() < 0.03, "{} after {way} wavelengths, not {exact}", re / power);
            assert!((im / power).abs() < 0.03, "{} after {way} wavelengths", im / power);
        }
    }

    #[test]
    fn one_channels_autocorrelation_is_j0_over_the_first_two_wavelengths() {
        // Over a long way, and without any averaging over channels.
        let fading = Fading::new(Profile::Eva, 1, &mut Random::seed_from_u64(4));
        let value = |way: f64| fading.tap(0, Turns::new(way)).map(f64::from);
        for way in [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 1.9] {
            let (mut product, mut power) = (0.0, 0.0);
            for n in 0..20_000 {
                let start = f64::from(n) * 0.37;
                let ([a, b], [c, d]) = (value(start), value(start + way));
                product += a * c + b * d;
                power += a * a + b * b;
            }
            let exact = libm::j0(core::f64::consts::TAU * way);
            assert!((product / power - exact).abs() < 0.03, "{} after {way}, not {exact}", product / power);
        }
    }

    #[test]
    fn constant_cosines_and_sines_are_those_of_the_library() {
        for n in 0..20_000 {
            let turns = f64::from(n) * 0.003_7;
            let angle = core::f64::consts::TAU * (turns - libm::floor(turns));
            let (cos, sin) = unit(turns);
            assert!((cos - libm::cos(angle)).abs() < 1e-12 && (sin - libm::sin(angle)).abs() < 1e-12, "{turns} turns");
        }
    }
}
