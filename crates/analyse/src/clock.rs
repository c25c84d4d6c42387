//! The second of two clocks beside the first, from packets that both captures have.
//!
//! Source: S. Moon, P. Skelly, D. Towsley, "Estimation and Removal of Clock Skew from Network Delay Measurements", INFOCOM
//! 1999: the skew is the slope of the line that lies below all one-way differences and as close to them as possible, an
//! edge of their convex hull. Here it is taken of both directions, and the offset is such that the smallest delays of both
//! are equal.
//!
//! What cannot be known is how the smallest round-trip time is divided between the directions: by half of it the offset may be
//! wrong ([`Clock::offset_bound`]). Both bounds hold for clocks whose rates do not change during the capture.

/// A packet in both captures: its time by the first clock, and by how much the second clock's time was later, in nanoseconds.
pub(crate) type Point = (f64, f64);

/// The second clock beside the first. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Clock {
    /// The time in the middle, by the first clock.
    pub(crate) middle: f64,
    /// What the second clock is ahead by then.
    pub(crate) offset: f64,
    pub(crate) offset_bound: f64,
    /// How much faster it runs, as a share.
    pub(crate) drift: f64,
    pub(crate) drift_bound: f64,
}

impl Clock {
    /// What the second clock is ahead by when the first shows `at`.
    #[cfg(test)]
    pub(crate) fn ahead(&self, at: f64) -> f64 {
        self.offset + self.drift * (at - self.middle)
    }

    /// The first clock's time when the second shows `at`.
    pub(crate) fn first(&self, at: f64) -> f64 {
        // at = t + offset + drift (t - middle)
        let t = at - self.offset - self.middle;
        self.middle + t / (1.0 + self.drift)
    }

    /// The clock by packets from the first capture to the second, and from the second to the first. `None` if one of these is
    /// empty.
    pub(crate) fn of(mut there: Vec<Point>, mut back: Vec<Point>) -> Option<Clock> {
        if there.is_empty() || back.is_empty() {
            return None;
        }
        let times = there.iter().chain(&back).map(|point| point.0);
        let middle = times.clone().sum::<f64>() / (there.len() + back.len()) as f64;
        // Those from the second to the first are below their line: turned over, above.
        back.iter_mut().for_each(|point| point.1 = -point.1);
        let (below, slope) = tangent(&mut there, middle);
        let (above, other) = tangent(&mut back, middle);
        let (above, other) = (-above, -other);
        let (mut drift, mut drift_bound) = ((slope + other) / 2.0, (slope - other).abs() / 2.0);
        if drift_bound >= drift.abs() {
            // Too little is known of it.
            (drift, drift_bound) = (0.0, slope.abs().max(other.abs()));
        }
        let (offset, offset_bound) = ((below + above) / 2.0, (below - above).abs() / 2.0);
        Some(Clock { middle, offset, offset_bound, drift, drift_bound })
    }
}

/// The line below all points that touches them around `middle`: its value there, and its slope.
fn tangent(points: &mut [Point], middle: f64) -> (f64, f64) {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<Point> = Vec::new();
    for &point in points.iter() {
        while let [.., a, b] = hull[..] {
            // Whether b is above the line from a to the point.
            if (b.1 - a.1) * (point.0 - a.0) >= (point.1 - a.1) * (b.0 - a.0) {
                hull.pop();
            } else {
                break;
            }
        }
        if hull.last().is_none_or(|last| last.0 < point.0) {
            hull.push(point);
        }
    }
    let after = hull.partition_point(|point| point.0 <= middle).clamp(1, hull.len().max(2) - 1);
    match (hull.get(after - 1), hull.get(after)) {
        (Some(a), Some(b)) => {
            let slope = (b.1 - a.1) / (b.0 - a.0);
            (a.1 + slope * (middle - a.0), slope)
        }
        (Some(a), None) => (a.1, 0.0),
        _ => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 10 ms for `seconds`, with delays of at least `there` and `back` ms and up to 40 ms more, of a clock that is
    /// ahead by `offset` ms at first and `ppm` faster.
    fn packets(seconds: u32, (there, back): (f64, f64), offset: f64, ppm: f64) -> (Vec<Point>, Vec<Point>) {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        let ahead = |t: f64| offset * 1e6 + ppm * 1e-6 * t;
        let mut all = (Vec::new(), Vec::new());
        for n in 0..seconds * 100 {
            let t = f64::from(n) * 1e7;
            // Squared: most are short.
            let (more, less) = (random() * random() * 40e6, random() * random() * 40e6);
            all.0.push((t, there * 1e6 + more + ahead(t + there * 1e6 + more)));
            all.1.push((t, ahead(t) - back * 1e6 - less));
        }
        all
    }

    #[test]
    fn offset_and_drift_are_found_below_queueing_delays() {
        for (offset, ppm) in [(0.0, 0.0), (3_600_000.0, 30.0), (-250.0, -80.0)] {
            let (there, back) = packets(120, (10.0, 10.0), offset, ppm);
            let clock = Clock::of(there, back).unwrap();
            let middle = offset + ppm * 1e-6 * clock.middle / 1e6;
            assert!((clock.offset / 1e6 - middle).abs() < 0.1, "{clock:?}, {middle}");
            assert!((clock.drift * 1e6 - ppm).abs() < 2.0 + clock.drift_bound * 1e6, "{clock:?}, {ppm}");
            assert!((clock.drift * 1e6 - ppm).abs() < 3.0, "{clock:?}, {ppm}");
            assert!((clock.offset_bound / 1e6 - 10.0).abs() < 0.2, "{clock:?}");
            let t = 33e9;
            assert!((clock.first(t + clock.ahead(t)) - t).abs() < 1.0);
        }
    }

    #[test]
    fn an_asymmetric_path_shifts_the_offset_by_no_more_than_its_bound() {
        let (there, back) = packets(60, (25.0, 5.0), 100.0, 0.0);
        let clock = Clock::of(there, back).unwrap();
        assert!((clock.offset / 1e6 - 110.0).abs() < 0.2, "{clock:?}");
        assert!(clock.offset_bound / 1e6 >= 10.0, "{clock:?}");
    }

    #[test]
    fn a_single_packet_each_way_gives_an_offset_and_no_drift() {
        let clock = Clock::of(vec![(5.0, 30.0)], vec![(6.0, 10.0)]).unwrap();
        assert_eq!((clock.offset, clock.offset_bound, clock.drift), (20.0, 10.0, 0.0));
        assert_eq!(Clock::of(Vec::new(), vec![(6.0, 10.0)]), None);
    }
}
