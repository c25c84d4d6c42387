//! Merges the results of lists of jobs.

use std::collections::BTreeMap;

use crate::table::Table;
use crate::tables::each_table;
use crate::{Job, Meta, Partial, Results, Timing};

/// The most runs of a point, as in scenarios.
pub(crate) const MAX_RUNS: u32 = 10_000;

/// Why results cannot be merged. Parts are numbered from 0, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There are no parts.
    #[error("there are no results to merge")]
    Empty,
    /// Two parts are of different scenarios, or of different versions of the program.
    #[error("results 0 and {part} cannot be merged: they differ in their {key}")]
    Different {
        /// The part that differs from the first one.
        part: usize,
        /// What differs.
        key: &'static str,
    },
    /// A part is not complete, and does not name its jobs.
    #[error("results {part} do not name their jobs: they are of an interrupted emulation or of an earlier version")]
    Unnamed {
        /// The part.
        part: usize,
    },
    /// A part has rows out of order, or rows of jobs that it does not name.
    #[error("results {part} are damaged: table {table} has rows that do not belong to their jobs, in their order")]
    Damaged {
        /// The part.
        part: usize,
        /// The table's name.
        table: &'static str,
    },
    /// A part's `meta.json` has an impossible number of runs, or jobs that the scenario does not have.
    #[error("results {part} are damaged: their meta.json does not fit the scenario's points and runs")]
    Meta {
        /// The part.
        part: usize,
    },
    /// Several parts have the same jobs, or some are missing, or both.
    #[error("{}", jobs_message(.missing, .repeated))]
    Jobs {
        /// The jobs of the scenario that no part has, in order.
        missing: Vec<Job>,
        /// The jobs that more than one part has, in order.
        repeated: Vec<Job>,
    },
}

fn jobs_message(missing: &[Job], repeated: &[Job]) -> String {
    let missing = (!missing.is_empty()).then(|| format!("missing jobs: {}", Job::list(missing)));
    let repeated =
        (!repeated.is_empty()).then(|| format!("jobs in more than one of the results: {}", Job::list(repeated)));
    missing.into_iter().chain(repeated).collect::<Vec<_>>().join("; ")
}

/// Merges the results of disjoint lists of jobs, in any order. Together they must have all jobs of the scenario.
///
/// What [`Results::write`] makes of the merged results is, byte for byte, what it makes of the results of one run of all
/// jobs, except for the timing, which is that of the parts one after the other. Captures are not part of
/// results: they stay where they were written.
///
/// # Errors
/// Every [`MergeError`].
pub fn merge(parts: &[&Results]) -> Result<Results, MergeError> {
    let (&first, others) = parts.split_first().ok_or(MergeError::Empty)?;
    if others.is_empty() && first.meta.partial.is_none() {
        return Ok(first.clone());
    }
    for (part, other) in (1..).zip(others) {
        if let Some(key) = difference(&first.meta, &other.meta) {
            return Err(MergeError::Different { part, key });
        }
    }
    let owners = owners(parts)?;

    let mut merged = Results { meta: Meta { partial: None, ..first.meta.clone() }, ..Results::default() };
    macro_rules! merge {
        ($table:ident) => {
            let to = &mut merged.tables.$table;
            let mut left: Vec<_> = parts.iter().map(|part| part.tables.$table.stretches().peekable()).collect();
            for (&job, &part) in &owners {
                if let Some((_, rows)) = left[part].next_if(|(next, _)| *next == job) {
                    to.push_rows(&parts[part].tables.$table, rows);
                }
            }
            if let Some(part) = left.iter_mut().position(|left| left.peek().is_some()) {
                return Err(MergeError::Damaged { part, table: stringify!($table) });
            }
        };
    }
    each_table!(merge);
    merged.timing = together(parts.iter().map(|part| &part.timing));
    Ok(merged)
}

/// What differs between the runs that two parts are of.
pub(crate) fn difference(a: &Meta, b: &Meta) -> Option<&'static str> {
    // Complete results do not tell the runs of each point.
    let runs = |meta: &Meta| meta.partial.as_ref().map(|partial| partial.runs.clone()).filter(|runs| !runs.is_empty());
    let runs_differ = matches!((runs(a), runs(b)), (Some(a), Some(b)) if a != b);
    [
        ("version", a.version != b.version),
        ("title", a.title != b.title),
        ("seed", a.seed != b.seed),
        ("number of runs", a.runs != b.runs || runs_differ),
        ("points", a.points != b.points),
        ("scenario", a.scenario != b.scenario),
    ]
    .into_iter()
    .find_map(|(key, differs)| differs.then_some(key))
}

/// Which part has each job of the scenario.
fn owners(parts: &[&Results]) -> Result<BTreeMap<Job, usize>, MergeError> {
    let (mut owners, mut repeated, mut missing) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (part, results) in parts.iter().enumerate() {
        let jobs = results.jobs().ok_or(MergeError::Unnamed { part })?;
        if results.meta.partial.as_ref().is_some_and(|partial| !is_plausible(partial)) {
            return Err(MergeError::Meta { part });
        }
        repeated.extend(jobs.into_iter().filter(|&job| owners.insert(job, part).is_some()));
    }
    if let Some(partial) = parts.iter().find_map(|part| part.meta.partial.as_ref()) {
        missing.extend(Job::all(&partial.runs).filter(|job| !owners.contains_key(job)));
    }
    if missing.is_empty() && repeated.is_empty() {
        return Ok(owners);
    }
    repeated.sort_unstable();
    repeated.dedup();
    Err(MergeError::Jobs { missing, repeated })
}

/// Returns whether all jobs exist, and no point has more runs than a scenario can have.
fn is_plausible(partial: &Partial) -> bool {
    let exists = |job: &Job| partial.runs.get(job.point as usize).is_some_and(|&runs| job.run < runs);
    partial.runs.iter().all(|&runs| runs <= MAX_RUNS) && partial.jobs.iter().all(exists)
}

/// Returns the timing of several jobs or parts, which may have run at the same time.
pub(crate) fn together<'a>(timings: impl Iterator<Item = &'a Timing>) -> Timing {
    timings.fold(Timing::default(), |sum, timing| Timing {
        wall_s: None,
        cpu_s: sum.cpu_s + timing.cpu_s,
        simulated_s: sum.simulated_s + timing.simulated_s,
        events: sum.events + timing.events,
        packets: sum.packets + timing.packets,
        threads: sum.threads.max(timing.threads),
        lateness: None,
    })
}

impl Results {
    /// The jobs that these results have, in order: of complete results those with a row in the table `flows`. `None` if
    /// they are not complete and do not name their jobs.
    pub fn jobs(&self) -> Option<Vec<Job>> {
        let Some(partial) = &self.meta.partial else {
            return Some(self.tables.flows.stretches().map(|(job, _)| job).collect());
        };
        // Every scenario has a point.
        (!partial.runs.is_empty()).then(|| partial.jobs.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_knows_how_long_jobs_took_that_ran_side_by_side() {
        let job = Timing { wall_s: Some(2.0), cpu_s: 1.5, threads: 1, ..Timing::default() };
        let sum = together([&job, &job].into_iter());
        assert_eq!((sum.wall_s, sum.cpu_s, sum.threads), (None, 3.0, 1));
    }
}
