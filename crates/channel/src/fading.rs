//! Fast fading: Rayleigh taps with Doppler, and the response of each resource block.
//!
//! Sources: 3GPP TS 36.104 Annex B.2, TS 38.104 Annex G.2.1.1, TR 38.901 7.7.2 (the taps); R. H. Clarke, "A Statistical
//! Theory of Mobile-Radio Reception" (Bell Syst. Tech. J. 47(6), 1968): waves from all directions, so that a tap's
//! autocorrelation is J0(2 pi f t); M. F. Pop, N. C. Beaulieu, "Limitations of Sum-of-Sinusoids Fading Channel
//! Simulators" (IEEE Trans. Commun. 49(4), 2001): waves with random phases, so that the process is stationary.
//!
//! Each tap is a sum of [`WAVES`] waves from directions evenly spaced around the UE, all rotated by a random angle,
//! each with a random phase. A wave's phase is the distance travelled by the UE, in wavelengths, times the cosine of
//! its direction: the fading is a function of that distance (or of time, for a given Doppler frequency), has no state,
//! and does not repeat, because the cosines are incommensurable. Averaged over the random angles, the autocorrelation
//! is exactly J0; that of one channel follows it until `2 pi f t` approaches the number of waves, and stays near 1 /
//! sqrt(WAVES) afterwards. The line of sight of TDL-D and TDL-E is one more wave of its own power, whose Doppler shift is
//! 0.7 of the maximum.
//!
//! Deviations:
//! 1. Power is constant over a resource block and a slot (in LTE: 180 kHz and a subframe of a millisecond).
//! 2. Phases are quantised to 1024 steps per turn, which adds noise 55 dB below a tap.
//! 3. There is one antenna at each end: a profile describes the channel behind the beams of both ends.
//! 4. Every resource block of every grid is computed; none is interpolated from its neighbours.
//! 5. A profile and its delay spread do not follow the UE from line of sight to obstruction: TDL-D stays TDL-D.

mod profile;

use rand_core::Rng;

use crate::Random;

pub use profile::{Profile, Tdl};

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

/// Number of waves of a tap.
pub const WAVES: usize = 16;

/// Spacing in Hz of LTE's resource blocks.
const LTE_BLOCK_HZ: f64 = 180e3;

/// Taps of an LTE profile.
const LTE_TAPS: usize = 9;

/// Number of LTE's resource blocks computed together.
const LTE_LANES: usize = 8;

/// Resource blocks of LTE's widest carrier, rounded up to whole lanes.
const LTE_BLOCKS: usize = 104;

/// Number of resource blocks computed together on other grids.
const LANES: usize = 16;

/// Maximum number of resource blocks of a carrier, TS 38.101-1 Table 5.3.2-1.
const MAX_BLOCKS: usize = 275;

/// The same, rounded up to whole lanes.
const BLOCKS: usize = MAX_BLOCKS.next_multiple_of(LANES);

/// Doppler shift of a line of sight relative to the maximum one. TR 38.901 7.7.2.
const LINE_OF_SIGHT_DOPPLER: f64 = 0.7;

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

/// The resource blocks of a carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Number of resource blocks, at most 275.
    pub blocks: u16,
    /// Their spacing in Hz: twelve subcarriers.
    pub block_hz: f64,
}

impl Grid {
    /// Creates a grid of `blocks` resource blocks, at most 275, of subcarriers `subcarrier_hz` apart.
    pub const fn new(blocks: u16, subcarrier_hz: u32) -> Grid {
        Grid { blocks, block_hz: 12.0 * subcarrier_hz as f64 }
    }
}

/// The fading of one link.
#[derive(Clone, Debug)]
pub struct Fading {
    blocks: usize,
    taps: Box<[Tap]>,
    response: Response,
    /// The distance for which `gains` was computed.
    at: Option<Turns>,
    /// Rounded up to whole lanes.
    gains: Box<[f32]>,
}

/// A sum of waves with one delay.
#[derive(Clone, Debug)]
struct Tap {
    waves: [Wave; WAVES],
    /// Amplitude of each wave.
    amplitude: f32,
    /// A single stronger wave and its amplitude.
    line_of_sight: Option<(Wave, f32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wave {
    /// Cosine of the direction, in units of 2^-31.
    cosine: i64,
    /// Initial phase, in units of 2^-63 of a turn.
    phase: u64,
}

/// The phase rotation of the taps over the resource blocks. Frequencies are relative to the first resource block, as
/// each tap's phase is random anyway.
#[derive(Clone, Debug)]
enum Response {
    /// LTE's grid: each block's rotation is in a table.
    Lte(&'static LteResponse),
    /// Any grid: the first lanes' rotation, by tap, is advanced from lane to lane.
    Advanced(Box<[Rotation]>),
}

/// The rotation of a tap.
#[derive(Clone, Debug)]
struct Rotation {
    /// In the first blocks.
    cos: [f32; LANES],
    sin: [f32; LANES],
    /// From one lane to the next.
    step: [f32; 2],
}

impl Fading {
    /// Creates a link of `blocks` resource blocks of LTE, at most 100.
    pub fn new(profile: Profile, blocks: u8, random: &mut Random) -> Fading {
        Fading::on_grid(profile, Grid { blocks: u16::from(blocks), block_hz: LTE_BLOCK_HZ }, random)
    }

    /// Creates a link on any grid. Blocks beyond the 275th are left out.
    pub fn on_grid(profile: Profile, grid: Grid, random: &mut Random) -> Fading {
        let blocks = usize::from(grid.blocks).min(MAX_BLOCKS);
        let total = profile.power();
        let mut taps: Box<[Tap]> = profile
            .taps()
            .iter()
            .map(|&(_, db)| {
                let amplitude = libm::sqrt(crate::linear(db) / total / WAVES as f64) as f32;
                let turned = crate::uniform(random);
                let mut waves = [Wave::default(); WAVES];
                for (n, wave) in waves.iter_mut().enumerate() {
                    let angle = core::f64::consts::TAU * (n as f64 + turned) / WAVES as f64;
                    *wave = Wave::new(libm::cos(angle), random);
                }
                Tap { waves, amplitude, line_of_sight: None }
            })
            .collect();
        taps[0].line_of_sight = profile
            .line_of_sight_db()
            .map(|db| (Wave::new(LINE_OF_SIGHT_DOPPLER, random), libm::sqrt(crate::linear(db) / total) as f32));
        let lte = grid.block_hz == LTE_BLOCK_HZ && blocks <= LTE_BLOCKS;
        let response = match profile {
            Profile::Epa if lte => Response::Lte(&LTE_RESPONSES[0]),
            Profile::Eva if lte => Response::Lte(&LTE_RESPONSES[1]),
            Profile::Etu if lte => Response::Lte(&LTE_RESPONSES[2]),
            _ => {
                let rotation =
                    |&(delay, _): &(f64, f64)| Rotation::new(grid.block_hz * delay * profile.delay_unit_ns() * 1e-9);
                Response::Advanced(profile.taps().iter().map(rotation).collect())
            }
        };
        let gains = vec![0.0; blocks.next_multiple_of(LANES)].into();
        Fading { blocks, taps, response, at: None, gains }
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
        match &self.response {
            Response::Lte(response) => {
                let mut values = [[0.0f32; 2]; LTE_TAPS];
                for (value, tap) in values.iter_mut().zip(&self.taps) {
                    *value = tap.at(way);
                }
                let lanes = self.blocks.div_ceil(LTE_LANES);
                for (gains, response) in self.gains.chunks_exact_mut(LTE_LANES).zip(*response).take(lanes) {
                    let (mut re, mut im) = ([0.0f32; LTE_LANES], [0.0f32; LTE_LANES]);
                    for ([h_re, h_im], turns) in values.iter().zip(response).take(self.taps.len()) {
                        for n in 0..LTE_LANES {
                            re[n] += h_re * turns.cos[n] + h_im * turns.sin[n];
                            im[n] += h_im * turns.cos[n] - h_re * turns.sin[n];
                        }
                    }
                    for n in 0..LTE_LANES {
                        gains[n] = re[n] * re[n] + im[n] * im[n];
                    }
                }
            }
            Response::Advanced(rotations) => {
                let mut sums = [([0.0f32; LANES], [0.0f32; LANES]); BLOCKS / LANES];
                let sums = &mut sums[..self.gains.len() / LANES];
                for (tap, rotation) in self.taps.iter().zip(rotations) {
                    rotation.add(tap.at(way), sums);
                }
                for (gains, (re, im)) in self.gains.chunks_exact_mut(LANES).zip(sums) {
                    for n in 0..LANES {
                        gains[n] = re[n] * re[n] + im[n] * im[n];
                    }
                }
            }
        }
    }
}

impl Tap {
    /// Returns its complex gain after a distance.
    #[inline]
    fn at(&self, way: Turns) -> [f32; 2] {
        let (mut re, mut im) = (0.0, 0.0);
        for wave in &self.waves {
            let [cos, sin] = wave.at(way);
            re += cos;
            im += sin;
        }
        let (re, im) = (re * self.amplitude, im * self.amplitude);
        match self.line_of_sight {
            None => [re, im],
            Some((wave, amplitude)) => {
                let [cos, sin] = wave.at(way);
                [re + amplitude * cos, im + amplitude * sin]
            }
        }
    }
}

impl Wave {
    fn new(cosine: f64, random: &mut Random) -> Wave {
        Wave { cosine: libm::round(cosine * (1u64 << 31) as f64) as i64, phase: random.next_u64() }
    }

    /// Returns cosine and sine of its phase after a distance.
    #[inline]
    fn at(&self, Turns(way): Turns) -> [f32; 2] {
        // 2^-32 times 2^-31 turns: overflow drops whole turns.
        let phase = way.wrapping_mul(self.cosine as u64).wrapping_add(self.phase);
        TURN[(phase >> (63 - STEPS.ilog2())) as usize % STEPS]
    }
}

impl Rotation {
    /// Creates the rotation by `turns` from each block to the next.
    fn new(turns: f64) -> Rotation {
        let at = |blocks: usize| unit(blocks as f64 * turns);
        let (cos, sin) = at(LANES);
        Rotation {
            cos: core::array::from_fn(|n| at(n).0 as f32),
            sin: core::array::from_fn(|n| at(n).1 as f32),
            step: [cos as f32, sin as f32],
        }
    }

    /// Adds a tap with the gain `h` to all blocks.
    #[inline]
    fn add(&self, [h_re, h_im]: [f32; 2], sums: &mut [([f32; LANES], [f32; LANES])]) {
        let [cos, sin] = self.step;
        let (mut re, mut im) = ([0.0f32; LANES], [0.0f32; LANES]);
        for n in 0..LANES {
            re[n] = h_re * self.cos[n] + h_im * self.sin[n];
            im[n] = h_im * self.cos[n] - h_re * self.sin[n];
        }
        for (sum_re, sum_im) in sums {
            for n in 0..LANES {
                sum_re[n] += re[n];
                sum_im[n] += im[n];
                (re[n], im[n]) = (re[n] * cos + im[n] * sin, im[n] * cos - re[n] * sin);
            }
        }
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
#[derive(Clone, Copy, Debug)]
struct LteLane {
    cos: [f32; LTE_LANES],
    sin: [f32; LTE_LANES],
}

/// By lane and tap.
type LteResponse = [[LteLane; LTE_TAPS]; LTE_BLOCKS / LTE_LANES];

/// EPA, EVA and ETU.
static LTE_RESPONSES: [LteResponse; 3] =
    [lte_response(Profile::Epa.taps()), lte_response(Profile::Eva.taps()), lte_response(Profile::Etu.taps())];

const fn lte_response(taps: &[(f64, f64)]) -> LteResponse {
    let mut table = [[LteLane { cos: [0.0; LTE_LANES], sin: [0.0; LTE_LANES] }; LTE_TAPS]; LTE_BLOCKS / LTE_LANES];
    let mut block = 0;
    while block < LTE_BLOCKS {
        let mut tap = 0;
        while tap < taps.len() {
            let (cos, sin) = unit(block as f64 * LTE_BLOCK_HZ * taps[tap].0 * 1e-9);
            let lane = &mut table[block / LTE_LANES][tap];
            lane.cos[block % LTE_LANES] = cos as f32;
            lane.sin[block % LTE_LANES] = sin as f32;
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
            let value = |way: f64| fading.taps[3].at(Turns::new(way)).map(f64::from);
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
        let total = Profile::Etu.power();
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
        let value = |way: f64| fading.taps[0].at(Turns::new(way)).map(f64::from);
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
    fn a_line_of_sight_adds_a_line_at_seven_tenths_of_the_doppler_frequency() {
        let ways = [0.0, 0.1, 0.383, 0.6, 1.0, 1.5, 2.5];
        for (model, line_db, ray_db, k_db) in [(Tdl::D, -0.2, -13.5, 13.3), (Tdl::E, -0.03, -22.03, 22.0)] {
            let profile = Profile::Tdl { model, delay_spread_ns: 30.0 };
            let (mut sums, mut fourth, mut count) = ([[0.0f64; 2]; 7], 0.0, 0.0);
            for seed in 0..4000 {
                let fading = Fading::on_grid(profile, Grid::new(1, 30_000), &mut Random::seed_from_u64(seed));
                let value = |way: f64| fading.taps[0].at(Turns::new(way)).map(f64::from);
                for start in [0.0, 17.3] {
                    let [a, b] = value(start);
                    fourth += (a * a + b * b) * (a * a + b * b);
                    count += 1.0;
                    for (sum, way) in sums.iter_mut().zip(ways) {
                        let [c, d] = value(start + way);
                        *sum = [sum[0] + c * a + d * b, sum[1] + d * a - c * b];
                    }
                }
            }
            let [line, rays] = [line_db, ray_db].map(|db| crate::linear(db) / profile.power());
            for ([re, im], way) in sums.into_iter().zip(ways) {
                let angle = core::f64::consts::TAU * way;
                let expected = line * libm::cos(0.7 * angle) + rays * libm::j0(angle);
                assert!((re / count - expected).abs() < 0.01, "{model:?}: {} after {way}, not {expected}", re / count);
                let expected = line * libm::sin(0.7 * angle);
                assert!((im / count - expected).abs() < 0.01, "{model:?}: {} after {way}, not {expected}", im / count);
            }
            // The tap's K from its moments: E|h|^4 / (E|h|^2)^2 = 2 - (K / (K + 1))^2.
            let power = sums[0][0] / count;
            let share = libm::sqrt(2.0 - fourth / count / (power * power));
            let k = crate::decibels(share / (1.0 - share));
            assert!((k - k_db).abs() < 0.6, "{model:?}: K is {k} dB");
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
