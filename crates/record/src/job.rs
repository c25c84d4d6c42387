//! The identity of a run within a scenario.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many jobs [`Job::list`] names one by one.
const NAMED: usize = 8;

/// One run of one point of a scenario: the smallest unit of work. Jobs depend on nothing but the scenario, so they can run
/// in any order and on any machine. They are ordered as the rows of the tables are, by point and then by run.
///
/// As text, and in JSON, a job is `point/run`, as in `3/0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Job {
    /// Point of the sweep, from 0.
    pub point: u32,
    /// Repetition of the point, from 0.
    pub run: u32,
}

impl Job {
    /// All jobs of points with so many runs each, in order.
    pub fn all(runs: &[u32]) -> impl Iterator<Item = Job> {
        (0..).zip(runs).flat_map(|(point, &runs)| (0..runs).map(move |run| Job { point, run }))
    }

    /// Names `jobs` for a message: `0/1, 0/2, 3/0`. Of a long list, the first few and the number of the others.
    pub fn list(jobs: &[Job]) -> String {
        let named: Vec<String> = jobs.iter().take(NAMED).map(Job::to_string).collect();
        let more = jobs.len() - named.len();
        if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.point, self.run)
    }
}

/// A text that is not a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid job `{0}`: write it as POINT/RUN, two numbers from 0, as in `3/0`")]
pub struct InvalidJob(String);

impl FromStr for Job {
    type Err = InvalidJob;

    fn from_str(text: &str) -> Result<Job, InvalidJob> {
        let parse = || {
            let (point, run) = text.split_once('/')?;
            Some(Job { point: point.parse().ok()?, run: run.parse().ok()? })
        };
        parse().ok_or_else(|| InvalidJob(text.to_owned()))
    }
}

impl TryFrom<String> for Job {
    type Error = InvalidJob;

    fn try_from(text: String) -> Result<Job, InvalidJob> {
        text.parse()
    }
}

impl From<Job> for String {
    fn from(job: Job) -> String {
        job.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(point: u32, run: u32) -> Job {
        Job { point, run }
    }

    #[test]
    fn a_job_is_read_as_it_is_written() {
        for job in [job(0, 0), job(3, 17), job(u32::MAX, u32::MAX)] {
            assert_eq!(job.to_string().parse(), Ok(job));
            let json = serde_json::to_string(&job).unwrap();
            assert_eq!(json, format!("\"{job}\""));
            assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), job);
        }
    }

    #[test]
    fn other_texts_are_named_in_the_error() {
        for text in ["", "3", "3/", "/0", "-1/0", "3/0/1", "3 / 0", "4294967296/0", "a/b"] {
            let said = text.parse::<Job>().unwrap_err().to_string();
            assert_eq!(said, format!("invalid job `{text}`: write it as POINT/RUN, two numbers from 0, as in `3/0`"));
        }
        assert!(serde_json::from_str::<Job>("\"3\"").is_err());
    }

    #[test]
    fn jobs_are_ordered_by_point_and_then_by_run() {
        let mut jobs = [job(1, 0), job(0, 10), job(0, 2)];
        jobs.sort();
        assert_eq!(jobs, [job(0, 2), job(0, 10), job(1, 0)]);
    }

    #[test]
    fn a_long_list_is_cut_short() {
        let jobs: Vec<Job> = (0..10).map(|run| job(1, run)).collect();
        assert_eq!(Job::list(&jobs[..2]), "1/0, 1/1");
        assert_eq!(Job::list(&jobs), "1/0, 1/1, 1/2, 1/3, 1/4, 1/5, 1/6, 1/7 and 2 more");
    }
}
