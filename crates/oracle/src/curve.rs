//! The growth of CUBIC's window after its first loss.

use record::tables::SampleRow;

/// Number of points at which two curves are compared.
const POINTS: u32 = 50;
/// A shorter curve is not evaluated.
const SHORTEST_S: f64 = 0.2;

/// The congestion window from the end of the first recovery to the next reduction.
///
/// A reduction is recognised by a change of the slow-start threshold, which after slow start only reductions change,
/// or, if the threshold is equal, by the sender's state. Recovery itself is excluded, because PRR governs the window
/// there.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// Seconds since its beginning, and kilobytes. The first time is 0; times increase.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Returns the first curve in a flow's samples, if it has one.
    pub(crate) fn new(samples: &[SampleRow<'_>]) -> Option<Curve> {
        // The first finite threshold may come from leaving slow start for delay, which is not a reduction.
        let exit = samples.iter().position(|row| row.ssthresh_bytes.is_some())?;
        let is_reduction = |pair: &[SampleRow<'_>]| {
            pair[0].ssthresh_bytes != pair[1].ssthresh_bytes || !reduces(&pair[0]) && reduces(&pair[1])
        };
        let reduction = if reduces(&samples[exit]) {
            exit
        } else {
            exit + 1 + samples[exit..].windows(2).position(is_reduction)?
        };
        let grows = |row: &SampleRow<'_>| {
            !reduces(row) && row.ssthresh_bytes.is_some_and(|least| row.cwnd_bytes >= Some(least))
        };
        let begin = reduction + samples[reduction..].iter().position(grows)?;
        let first = &samples[begin];
        let curve = samples[begin..].iter();
        let curve = curve
            .take_while(|row| !reduces(row) && row.ssthresh_bytes == first.ssthresh_bytes && row.state != "closed");
        let points: Vec<_> =
            curve.filter_map(|row| Some((row.t_s - first.t_s, row.cwnd_bytes? as f64 / 1e3))).collect();
        Some(Curve { points }).filter(|curve| curve.length() >= SHORTEST_S)
    }

    /// Returns its duration in seconds.
    pub(crate) fn length(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    /// Returns its mean up to a given time.
    pub(crate) fn mean(&self, until: f64) -> f64 {
        times(until).map(|t| self.at(t)).sum::<f64>() / f64::from(POINTS)
    }

    /// Returns the mean relative deviation from another curve up to a time that both cover.
    pub(crate) fn deviation(&self, other: &Curve, until: f64) -> f64 {
        times(until).map(|t| (self.at(t) - other.at(t)).abs() / other.at(t)).sum::<f64>() / f64::from(POINTS)
    }

    /// Returns the window at a given time, interpolated linearly between samples.
    fn at(&self, t: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 < t).clamp(1, self.points.len() - 1);
        let ((t0, w0), (t1, w1)) = (self.points[next - 1], self.points[next]);
        w0 + (w1 - w0) * ((t - t0) / (t1 - t0)).clamp(0.0, 1.0)
    }
}

fn times(until: f64) -> impl Iterator<Item = f64> {
    (0..POINTS).map(move |i| until * f64::from(i) / f64::from(POINTS - 1))
}

/// Returns whether the sender recovers from a loss or a mark.
pub(crate) fn reduces(row: &SampleRow<'_>) -> bool {
    matches!(row.state, "recovery" | "loss" | "cwr")
}
