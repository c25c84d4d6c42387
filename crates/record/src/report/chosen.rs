//! Which runs a report is made from: all, unless there are too many.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::{Job, Results};

/// The most rows, of all tables together, that a report is made from.
const MOST_ROWS: u64 = 2_000_000;

/// Chooses the jobs that a report is made from: the first runs of all points first, as many as have [`MOST_ROWS`] rows
/// together, and one at least. `rows` has each job's number of rows.
pub(crate) fn choose(rows: &BTreeMap<Job, u64>) -> BTreeSet<Job> {
    choose_within(rows, MOST_ROWS)
}

fn choose_within(rows: &BTreeMap<Job, u64>, most: u64) -> BTreeSet<Job> {
    let mut order: Vec<(&Job, u64)> = rows.iter().map(|(job, &rows)| (job, rows)).collect();
    order.sort_by_key(|(job, _)| (job.run, job.point));
    let mut sum = 0;
    let fitting = order.iter().take_while(|(_, rows)| {
        sum += rows;
        sum <= most
    });
    let fitting = fitting.count().max(1);
    order.into_iter().take(fitting).map(|(&job, _)| job).collect()
}

/// Returns the results of the chosen jobs, and how many jobs those are, and are there in all.
pub(super) fn chosen(results: &Results) -> (Cow<'_, Results>, (usize, usize)) {
    chosen_within(results, MOST_ROWS)
}

pub(super) fn chosen_within(results: &Results, most: u64) -> (Cow<'_, Results>, (usize, usize)) {
    let rows = results.tables.rows_of_jobs();
    let chosen = choose_within(&rows, most);
    let counts = (chosen.len().min(rows.len()), rows.len());
    if counts.0 == counts.1 {
        return (Cow::Borrowed(results), counts);
    }
    let tables = results.tables.of_jobs(&chosen);
    (Cow::Owned(Results { meta: results.meta.clone(), timing: results.timing, tables }), counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(point: u32, run: u32) -> Job {
        Job { point, run }
    }

    #[test]
    fn first_runs_come_first_and_one_job_at_least() {
        let rows = BTreeMap::from([(job(0, 0), 5), (job(0, 1), 5), (job(1, 0), 5), (job(1, 1), 5)]);
        let chosen = |most| choose_within(&rows, most).into_iter().collect::<Vec<_>>();
        assert_eq!(chosen(20), [job(0, 0), job(0, 1), job(1, 0), job(1, 1)]);
        assert_eq!(chosen(19), [job(0, 0), job(0, 1), job(1, 0)]);
        assert_eq!(chosen(10), [job(0, 0), job(1, 0)]);
        assert_eq!(chosen(1), [job(0, 0)]);
        assert!(choose_within(&BTreeMap::new(), 1).is_empty());
    }
}
