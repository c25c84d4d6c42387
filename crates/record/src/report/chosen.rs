//! Which runs a report is made from: all, unless there are too many.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{Job, Results};

/// The most rows, of all tables together, that a report is made from.
const MOST_ROWS: u64 = 2_000_000;

/// The jobs that a report is made from, chosen while they arrive, and something that is kept of each: the first runs of all
/// points first, as many as have [`MOST_ROWS`] rows together, and one at least.
pub(crate) struct Chosen<T> {
    most: u64,
    /// The rows of those that are kept, together.
    sum: u64,
    /// What is kept, with its rows, by run and point.
    kept: BTreeMap<(u32, u32), (u64, T)>,
    /// The first one by run and point that did not fit: none after it is kept.
    first_left_out: Option<(u32, u32)>,
    offered: usize,
}

impl<T> Chosen<T> {
    pub(crate) fn new() -> Chosen<T> {
        Chosen::within(MOST_ROWS)
    }

    fn within(most: u64) -> Chosen<T> {
        Chosen { most, sum: 0, kept: BTreeMap::new(), first_left_out: None, offered: 0 }
    }

    /// Offers a job with its number of rows.
    pub(crate) fn offer(&mut self, job: Job, rows: u64, of_job: T) {
        self.offered += 1;
        let place = (job.run, job.point);
        if self.first_left_out.is_some_and(|first| place > first) {
            return;
        }
        self.kept.insert(place, (rows, of_job));
        self.sum += rows;
        while self.sum > self.most && self.kept.len() > 1 {
            if let Some((last, (rows, _))) = self.kept.pop_last() {
                self.sum -= rows;
                self.first_left_out = Some(last);
            }
        }
    }

    /// How many jobs are chosen, and were offered.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.kept.len(), self.offered)
    }

    /// What is kept of the chosen jobs, in order.
    pub(crate) fn into_kept(self) -> impl Iterator<Item = (Job, T)> {
        let by_job: BTreeMap<Job, T> =
            self.kept.into_iter().map(|((run, point), (_, of_job))| (Job { point, run }, of_job)).collect();
        by_job.into_iter()
    }
}

/// Returns the results of the chosen jobs, and how many jobs those are, and are there in all.
pub(super) fn chosen(results: &Results) -> (Cow<'_, Results>, (usize, usize)) {
    chosen_within(results, MOST_ROWS)
}

pub(super) fn chosen_within(results: &Results, most: u64) -> (Cow<'_, Results>, (usize, usize)) {
    let mut chosen = Chosen::within(most);
    results.tables.rows_of_jobs().into_iter().for_each(|(job, rows)| chosen.offer(job, rows, ()));
    let counts = chosen.counts();
    if counts.0 == counts.1 {
        return (Cow::Borrowed(results), counts);
    }
    let tables = results.tables.of_jobs(&chosen.into_kept().map(|(job, ())| job).collect());
    (Cow::Owned(Results { meta: results.meta.clone(), timing: results.timing, tables }), counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(point: u32, run: u32) -> Job {
        Job { point, run }
    }

    #[test]
    fn first_runs_come_first_and_one_job_at_least_in_whatever_order_they_are_offered() {
        let jobs = [(job(0, 0), 5), (job(0, 1), 5), (job(1, 0), 5), (job(1, 1), 5)];
        for first in 0..jobs.len() {
            let chosen = |most| {
                let mut chosen = Chosen::within(most);
                for (job, rows) in jobs[first..].iter().chain(&jobs[..first]) {
                    chosen.offer(*job, *rows, rows * 2);
                }
                assert_eq!(chosen.counts().1, jobs.len());
                let kept = chosen.into_kept().inspect(|(_, of_job)| assert_eq!(*of_job, 10));
                kept.map(|(job, _)| job).collect::<Vec<_>>()
            };
            assert_eq!(chosen(20), [job(0, 0), job(0, 1), job(1, 0), job(1, 1)]);
            assert_eq!(chosen(19), [job(0, 0), job(0, 1), job(1, 0)]);
            assert_eq!(chosen(10), [job(0, 0), job(1, 0)]);
            assert_eq!(chosen(1), [job(0, 0)]);
        }
    }

    #[test]
    fn a_job_that_does_not_fit_leaves_out_all_that_follow() {
        for order in [[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1]] {
            let mut chosen = Chosen::within(10);
            order.into_iter().for_each(|point| chosen.offer(job(point, 0), if point == 1 { 100 } else { 1 }, ()));
            assert_eq!(chosen.counts(), (1, 3));
            assert_eq!(chosen.into_kept().next(), Some((job(0, 0), ())));
        }
    }
}
