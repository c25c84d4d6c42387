//! Elements, arrays and beams against the table of TR 38.901 and worked numbers.

use channel::antenna::{Array, Beams, ELEMENT_DBI, Element, Ends, SWEEP, Steering, angles, direction};
use channel::pathloss::Antenna;
use channel::{Position, Random};
use rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

fn codebook(rows: u8, columns: u8, oversampling: u8) -> Array {
    Array { rows, columns, steering: Steering::Codebook { oversampling }, ..Array::default() }
}

/// The unit vector of an azimuth and an elevation in degrees.
fn toward(azimuth: f64, elevation: f64) -> [f64; 3] {
    let (azimuth, elevation) = (azimuth.to_radians(), elevation.to_radians());
    let level = libm::cos(elevation);
    [level * libm::cos(azimuth), level * libm::sin(azimuth), libm::sin(elevation)]
}

fn random_direction(random: &mut Random) -> [f64; 3] {
    let mut draw = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let up = 2.0 * draw() - 1.0;
    let (sin, cos) = libm::sincos(core::f64::consts::TAU * draw());
    let level = libm::sqrt(1.0 - up * up);
    [level * cos, level * sin, up]
}

#[test]
fn an_element_has_the_pattern_of_the_table() {
    let text = include_str!("../data/nr_38901_7.3-1_antenna_element.csv");
    for row in [
        "vertical cut dB,\"-min(12((theta-90)/65)^2, 30)\"",
        "horizontal cut dB,\"-min(12(phi/65)^2, 30)\"",
        "combined dB,\"-min(-(Av+Ah), 30)\"",
    ] {
        assert!(text.contains(row), "{row}");
    }
    assert!(text.contains(&format!("maximum element gain dBi,{ELEMENT_DBI},")));
    let gain = |azimuth, zenith| Element::Directional.gain_db(azimuth, zenith);
    close(gain(0.0, 90.0), 8.0, 1e-12);
    // Half of 65 degrees: 3 dB in each cut.
    close(gain(32.5, 90.0), 5.0, 1e-12);
    close(gain(0.0, 57.5), 5.0, 1e-12);
    close(gain(-32.5, 122.5), 2.0, 1e-12);
    // 12 (60/65)^2 + 12 (40/65)^2 = 10.2249 + 4.5444.
    close(gain(60.0, 130.0), 8.0 - 14.7692, 1e-4);
    // 12 (90/65)^2 = 23.0059 each: 30 dB in total, like each behind.
    close(gain(90.0, 90.0), 8.0 - 23.0059, 1e-4);
    close(gain(90.0, 0.0), -22.0, 1e-12);
    close(gain(180.0, 90.0), -22.0, 1e-12);
    assert_eq!(Element::Isotropic.gain_db(180.0, 10.0), 0.0);
}

#[test]
fn an_ideal_beam_has_ten_times_the_logarithm_of_its_elements() {
    let array = |rows, columns| Array { rows, columns, steering: Steering::Ideal, ..Array::default() };
    close(array(8, 8).max_gain_db(), 8.0 + 18.0618, 1e-4);
    close(array(4, 4).max_gain_db(), 8.0 + 12.0412, 1e-4);
    // Wherever it points, the element's pattern remains.
    for (azimuth, elevation) in [(0.0, 0.0), (32.5, 0.0), (-50.0, -20.0), (170.0, 5.0)] {
        let at = toward(azimuth, elevation);
        let element = Element::Directional.gain_db(azimuth, 90.0 - elevation);
        close(array(8, 8).gain_db(0, at, 0.0), 18.0618 + element, 1e-4);
        close(array(8, 8).mean_gain_db(at, 0.0), element, 1e-9);
        assert_eq!((array(8, 8).best_beam(at, 0.0), array(8, 8).beams()), (0, 1));
    }
}

#[test]
fn beams_are_the_sums_of_their_elements() {
    // The array factor element by element: weights exp(-j 2 pi (p m / P + q n / Q)) / sqrt(N).
    let mut random = Random::seed_from_u64(4);
    for array in [codebook(8, 8, 1), codebook(4, 8, 2), codebook(1, 4, 2), codebook(2, 1, 1), codebook(1, 1, 2)] {
        let count = |elements: u8| {
            let Steering::Codebook { oversampling } = array.steering else { unreachable!() };
            if elements == 1 { 1 } else { u32::from(elements) * u32::from(oversampling) }
        };
        let (rows, columns) = (count(array.rows), count(array.columns));
        assert_eq!(array.beams(), rows * columns);
        for _ in 0..200 {
            let [x, y, z] = random_direction(&mut random);
            let element = array.mean_gain_db([x, y, z], 0.0);
            let mut best = (0, f64::NEG_INFINITY);
            for beam in 0..array.beams() {
                let (p, q) = (f64::from(beam / columns), f64::from(beam % columns));
                let (mut re, mut im) = (0.0, 0.0);
                for m in 0..array.rows {
                    for n in 0..array.columns {
                        let (m, n) = (f64::from(m), f64::from(n));
                        let turns = (m * z + n * y) / 2.0 - p * m / f64::from(rows) - q * n / f64::from(columns);
                        let (sin, cos) = libm::sincos(core::f64::consts::TAU * turns);
                        (re, im) = (re + cos, im + sin);
                    }
                }
                let power = (re * re + im * im) / (f64::from(array.rows) * f64::from(array.columns));
                let gain = array.gain_db(beam, [x, y, z], 0.0);
                close(libm::exp10((gain - element) / 10.0), power.max(1e-6), 1e-9);
                if gain > best.1 {
                    best = (beam, gain);
                }
            }
            let picked = array.gain_db(array.best_beam([x, y, z], 0.0), [x, y, z], 0.0);
            close(picked, best.1, 1e-9);
        }
    }
}

#[test]
fn the_largest_array_numbers_all_its_beams() {
    let array = Array { panels: 8, ..codebook(64, 64, 2) };
    assert_eq!(array.beams(), 8 * 128 * 128);
    // The last panel points to the south-east, at 315 degrees.
    let beam = array.best_beam([core::f64::consts::FRAC_1_SQRT_2, -core::f64::consts::FRAC_1_SQRT_2, 0.0], 0.0);
    assert_eq!(beam, 7 * 128 * 128);
}

#[test]
fn ideal_steering_interferes_with_a_beam_in_nearly_the_direction_of_the_other_end() {
    let array = Array { panels: 3, downtilt_deg: 6.0, steering: Steering::Ideal, ..codebook(8, 16, 1) };
    let mut random = Random::seed_from_u64(5);
    for _ in 0..500 {
        let site = Position::default();
        let [x, y, z] = random_direction(&mut random);
        let ends = Ends { site, ue: Position::new(x, y, z), orientation_deg: 0.0 };
        let mut beams = Beams::new(Some(array), None, SWEEP);
        beams.update(Time::ZERO, |_| ends);
        let aim = beams.site_aim(&ends);
        close(array.gain_beside_db(aim, [x, y, z], 0.0), beams.gains_db(&ends)[0], 0.002);
        assert_eq!(beams.ue_aim(&ends), None);
    }
}

#[test]
fn halfway_between_two_beams_a_codebook_loses_3_9_or_0_9_db() {
    // A row of eight: beams at sines of 2 / 8 apart, halfway at 1/8: 1 / (64 sin^2(pi/16)) = 0.410533, -3.8665 dB. With
    // twice as many at 1/16: sin^2(pi/4) / (64 sin^2(pi/32)) = 0.813179, -0.8981 dB.
    for (oversampling, sine, loss) in [(1, 0.125, 3.8665), (2, 0.0625, 0.8981)] {
        let array = Array { element: Element::Isotropic, ..codebook(1, 8, oversampling) };
        let at = |sine: f64| [libm::sqrt(1.0 - sine * sine), sine, 0.0];
        let best = |sine| array.gain_db(array.best_beam(at(sine), 0.0), at(sine), 0.0);
        close(best(0.0), 9.0309, 1e-4);
        close(best(sine), 9.0309 - loss, 1e-4);
        close(best(2.0 * sine), 9.0309, 1e-4);
        close(best(-3.0 * sine), 9.0309 - loss, 1e-4);
    }
    // The beams of a codebook without oversampling share out all elements' power in each direction.
    let mut random = Random::seed_from_u64(6);
    let array = Array { element: Element::Isotropic, ..codebook(4, 8, 1) };
    for _ in 0..100 {
        let at = random_direction(&mut random);
        let sum: f64 = (0..32).map(|beam| libm::exp10(array.gain_db(beam, at, 0.0) / 10.0)).sum();
        close(sum, 32.0, 1e-4);
    }
}

#[test]
fn an_array_points_where_it_is_turned_and_tilted() {
    let array = Array { azimuth_deg: 120.0, downtilt_deg: 10.0, ..codebook(8, 8, 1) };
    close(array.gain_db(0, toward(120.0, -10.0), 0.0), 26.0618, 1e-4);
    close(array.gain_db(0, toward(150.0, -10.0), 30.0), 26.0618, 1e-4);
    assert_eq!(array.best_beam(toward(120.0, -10.0), 0.0), 0);
    // The second beam of the first row is at a sine of 1/4, 14.478 degrees, to the left.
    let untilted = Array { downtilt_deg: 0.0, ..array };
    assert_eq!(untilted.best_beam(toward(120.0 + 14.478, 0.0), 0.0), 1);
    assert_eq!(untilted.best_beam(toward(120.0 - 14.478, 0.0), 0.0), 7);
    // The second row points 14.478 degrees up, the last one as much down.
    assert_eq!(untilted.best_beam(toward(120.0, 14.478), 0.0), 8);
    assert_eq!(untilted.best_beam(toward(120.0, -14.478), 0.0), 56);
    // Of two panels the one behind takes over, with its own beams.
    let pair = Array { panels: 2, ..untilted };
    assert_eq!(pair.beams(), 128);
    assert_eq!(pair.best_beam(toward(120.0, 0.0), 0.0), 0);
    assert_eq!(pair.best_beam(toward(-60.0, 0.0), 0.0), 64);
    close(pair.gain_db(64, toward(-60.0, 0.0), 0.0), 26.0618, 1e-4);
    close(pair.gain_db(0, toward(-60.0, 0.0), 0.0), 18.0618 - 22.0, 1e-4);
    close(pair.mean_gain_db(toward(-60.0, 0.0), 0.0), 8.0, 1e-9);
    // As a site's antenna without a beam, it is an element.
    let site = Position::new(5.0, 5.0, 10.0);
    let ue = Position::new(5.0 + 40.0, 5.0, 10.0);
    close(Antenna::Array(Array::default()).gain_db(site, ue), 8.0, 1e-9);
}

#[test]
fn directions_are_unit_vectors_and_angles() {
    let (a, b) = (Position::new(1.0, 2.0, 3.0), Position::new(1.0, 5.0, -1.0));
    assert_eq!(direction(a, b), [0.0, 0.6, -0.8]);
    assert_eq!(direction(a, a), [1.0, 0.0, 0.0]);
    let [azimuth, zenith] = angles([0.0, 0.6, -0.8]);
    close(azimuth, 90.0, 1e-9);
    close(zenith, 143.130_102, 1e-6);
}

#[test]
fn beams_are_held_between_sweeps_while_the_ue_turns_and_moves() {
    let array = codebook(1, 8, 1);
    let mut beams = Beams::new(Some(array), Some(Array { azimuth_deg: 180.0, ..array }), SWEEP);
    // The UE is 20 m to the east and looks west. At 25 ms it turns by a sine of 1/4 and goes 5 m to the north.
    let site = Position::new(0.0, 0.0, 1.5);
    let ends = |now: Time| {
        if now < Time::ZERO + Span::from_millis(25) {
            Ends { site, ue: Position::new(20.0, 0.0, 1.5), orientation_deg: 0.0 }
        } else {
            Ends { site, ue: Position::new(20.0, 5.0, 1.5), orientation_deg: 14.0 }
        }
    };
    let mut at = |milliseconds| {
        let now = Time::ZERO + Span::from_millis(milliseconds);
        beams.update(now, ends);
        (beams.pair(), beams.gains_db(&ends(now)), beams.misalignment_db(&ends(now)))
    };
    let (pair, gains, loss) = at(24);
    assert_eq!(pair, (0, 0));
    close(gains[0], 17.0309, 1e-4);
    close(gains[1], 17.0309, 1e-4);
    close(loss, 0.0, 1e-9);
    // 14.036 degrees off at the cell: an element's 0.5596 dB, and a sine of 0.242536 from a beam whose first null is at
    // 0.25. The UE's array is 14.036 - 14 degrees off.
    let (pair, gains, loss) = at(25);
    assert_eq!(pair, (0, 0));
    let phase = core::f64::consts::PI * 0.242_536;
    let factor = libm::sin(4.0 * phase) / libm::sin(phase / 2.0);
    close(gains[0], 8.0 - 0.5596 + 10.0 * libm::log10(factor * factor / 8.0), 2e-3);
    close(gains[1], 17.0309, 1e-3);
    assert!(loss > 25.0, "{loss}");
    let (pair, gains, loss) = at(39);
    assert_eq!((pair, gains[0] < 0.0, loss > 25.0), ((0, 0), true, true));
    // The next sweep finds the cell's second beam.
    let (pair, gains, loss) = at(40);
    assert_eq!(pair, (1, 0));
    close(gains[0], 17.0309 - 0.5596, 2e-2);
    close(loss, 0.0, 1e-9);
    // Asking about an earlier time gives the earlier beams.
    assert_eq!(at(24).0, (0, 0));
    // An end without an array adds nothing.
    let mut one = Beams::new(Some(array), None, SWEEP);
    one.update(Time::ZERO, ends);
    close(one.gains_db(&ends(Time::ZERO))[0], 17.0309, 1e-4);
    assert_eq!((one.gains_db(&ends(Time::ZERO))[1], one.pair()), (0.0, (0, 0)));
}

#[test]
fn a_sweep_sees_the_positions_at_a_multiple_of_its_interval_whenever_it_is_asked_for() {
    let array = codebook(1, 8, 1);
    let ends = Ends { site: Position::new(0.0, 0.0, 1.5), ue: Position::new(20.0, 0.0, 1.5), orientation_deg: 0.0 };
    let at = |micros| Time::ZERO + Span::from_micros(micros);
    // Asked at, for the positions at, and until when nothing is swept again, in microseconds.
    for (asked, swept, until) in [
        (0, 0, 19_999),
        (19_999, 0, 19_999),
        (20_000, 20_000, 39_999),
        (39_500, 20_000, 39_999),
        (1_234_567, 1_220_000, 1_239_999),
    ] {
        let mut beams = Beams::new(Some(array), Some(array), SWEEP);
        let mut sweeps = Vec::new();
        for now in [asked, until, until + 1] {
            beams.update(at(now), |time| {
                sweeps.push(time);
                ends
            });
        }
        assert_eq!(sweeps, [at(swept), at(until + 1)], "asked at {asked} us");
    }
    // An interval of zero is one of a nanosecond.
    let mut beams = Beams::new(Some(array), None, Span::ZERO);
    beams.update(at(7), |time| {
        assert_eq!(time, at(7));
        ends
    });
}
