//! From counters to the rows of the results.

pub(crate) mod links;
pub(crate) mod meter;
pub(crate) mod radio;

use record::{Meta, Point};
use scenario::Loaded;

/// Which run a row belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunId {
    pub(crate) point: u32,
    pub(crate) run: u32,
}

/// The description of the runs of `loaded`.
pub fn meta(loaded: &Loaded) -> Meta {
    let points = loaded.points();
    let first = &points[0].scenario;
    Meta {
        title: first.title.clone(),
        version: crate::VERSION.to_owned(),
        scenario: serde_json::to_value(first).expect("a scenario is plain data"),
        points: points.iter().map(|point| Point { values: point.values() }).collect(),
        runs: first.runs,
        seed: first.seed,
        partial: None,
    }
}
