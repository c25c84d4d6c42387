//! Draws the figures of an experiment.

use crate::figure::{Drawn, Kind};
use crate::paper::{Experiment, Paper};
use record::Results;

/// Returns the figures of an experiment.
pub fn draw(paper: &Paper, experiment: &Experiment, results: &Results) -> Vec<Drawn> {
    let blank = Drawn {
        paper: paper.name.clone(),
        experiment: experiment.name.clone(),
        kind: Kind::Lines,
        title: String::new(),
        x: String::new(),
        y: String::new(),
        down: String::new(),
        names: Vec::new(),
        lines: Vec::new(),
    };
    experiment.figures.iter().map(|figure| figure.draw(results, blank.clone())).collect()
}
