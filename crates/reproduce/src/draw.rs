//! Draws the figures of an experiment.

use crate::data::Data;
use crate::drawn::Drawn;
use crate::paper::{Experiment, Paper};
use record::Results;

/// Returns the figures of an experiment.
pub fn draw(paper: &Paper, experiment: &Experiment, results: &Results) -> Vec<Drawn> {
    let data = Data::new(results);
    let blank = Drawn::blank(&paper.name, &experiment.name);
    experiment.figures.iter().map(|figure| figure.draw(&data, blank.clone())).collect()
}
