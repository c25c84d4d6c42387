//! Intervals of a replay's time, and means over them.

use record::tables::FlowRow;

/// Of how many bins with a queue, before and after, the capacity is taken where there was none.
const NEAR_BINS: usize = 10;

/// Intervals of time.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) start_s: f64,
    pub(super) seconds: f64,
    pub(super) width_s: f64,
    pub(super) count: usize,
}

impl Axis {
    /// The bin that a sample at the end of an interval tells of; `None` outside of the replay.
    pub(super) fn bin(&self, at_s: f64) -> Option<usize> {
        let at_s = at_s - self.start_s - self.width_s / 2.0;
        (0.0..=self.seconds).contains(&at_s).then(|| ((at_s / self.width_s) as usize).min(self.count - 1))
    }

    /// Adds the bytes of a rate that held from one moment to another.
    pub(super) fn add(&self, bytes: &mut [f64], from_s: f64, to_s: f64, mbps: f64) {
        let (from, to) = ((from_s - self.start_s).max(0.0), (to_s - self.start_s).min(self.seconds));
        if !(mbps > 0.0 && mbps < 1e6 && from_s < to_s && from < to) {
            return;
        }
        let (first, last) = ((from / self.width_s) as usize, ((to / self.width_s) as usize).min(self.count - 1));
        for (bin, sum) in (first..=last).zip(&mut bytes[first..=last]) {
            let width = to.min((bin + 1) as f64 * self.width_s) - from.max(bin as f64 * self.width_s);
            *sum += mbps * 1e6 / 8.0 * width.max(0.0);
        }
    }

    /// In which bins a flow is under way.
    pub(super) fn mark(&self, bins: &mut [bool], row: &FlowRow<'_>) {
        self.mark_between(bins, row.start_s, row.measured_to_s);
    }

    /// Which bins are between two moments, at least in part.
    pub(super) fn mark_between(&self, bins: &mut [bool], from_s: f64, to_s: f64) {
        let place = |at_s: f64| ((at_s - self.start_s) / self.width_s).clamp(0.0, bins.len() as f64);
        let (first, last) = (place(from_s).floor() as usize, place(to_s).ceil() as usize);
        bins.get_mut(first..last).into_iter().flatten().for_each(|mark| *mark = true);
    }
}

/// A sum of values that are averaged.
#[derive(Clone, Copy, Default)]
pub(super) struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    pub(super) fn get(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// The mean of the bytes of those bins of a list that are near another bin; `None` if the list is empty.
pub(super) fn mean_near(bytes: &[f64], of: &[usize], bin: usize) -> Option<f64> {
    let place = of.partition_point(|&other| other < bin);
    let near = place.saturating_sub(NEAR_BINS)..(place + NEAR_BINS).min(of.len());
    let mut mean = Mean::default();
    of[near].iter().for_each(|&near| mean.add(bytes[near]));
    mean.get()
}
