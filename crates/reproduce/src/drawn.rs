//! Figures with their data, as the report gets them.

use serde::Serialize;

/// Most points of a line, and most steps of a distribution: more cannot be told apart.
pub(crate) const POINTS: usize = 1500;
pub(crate) const STEPS: usize = 400;

/// A figure with its data.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Drawn {
    /// The paper's folder.
    pub paper: String,
    /// The experiment.
    pub experiment: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// Title of the horizontal axis.
    pub x: String,
    /// Title of the vertical axis, or of a map's cells.
    pub y: String,
    /// Title of a map's rows, or of what the colours of places stand for.
    pub down: String,
    /// Labels on the horizontal axis, if it is not numeric; of places, the names whose numbers the colours stand for.
    pub names: Vec<String>,
    /// The lines; for a map, the rows from top to bottom.
    pub lines: Vec<Line>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Values over time.
    Lines,
    /// A cumulative distribution.
    Steps,
    /// Means over a swept key.
    Means,
    /// Percentiles over a swept key.
    Boxes,
    /// Means, standard deviations and extremes of named groups.
    Spreads,
    /// A point for each pair of values.
    Points,
    /// A value for each combination of two swept keys.
    Map,
    /// Points on a map, coloured by a value or a name.
    Places,
    /// Lines through points in their order, with a gap where there is no value.
    Curves,
}

/// A line with its data.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Line {
    /// Its name.
    pub label: String,
    /// The horizontal positions.
    pub x: Vec<f64>,
    /// The values; null where there is none.
    pub y: Vec<Option<f64>>,
    /// For means: half the widths of 95 % confidence intervals.
    pub ci: Vec<Option<f64>>,
    /// For boxes: the 5th, 25th, 75th and 95th percentiles; the medians are `y`. For spreads: the least value, the mean (`y`)
    /// less and plus the standard deviation, and the greatest.
    pub around: Vec<Option<[f64; 4]>>,
    /// Of places: the value or the number of the name that gives each its colour; null for an outline without colour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<Option<f64>>>"))]
    pub shade: Vec<Option<f64>>,
    /// Whether it is a published level.
    pub published: bool,
    /// Of a plot of points: whether it is the outline around the points of the line before.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub outline: bool,
}

impl Drawn {
    /// Returns an empty figure of an experiment.
    pub(crate) fn blank(paper: &str, experiment: &str) -> Drawn {
        Drawn {
            paper: paper.to_owned(),
            experiment: experiment.to_owned(),
            kind: Kind::Lines,
            title: String::new(),
            x: String::new(),
            y: String::new(),
            down: String::new(),
            names: Vec::new(),
            lines: Vec::new(),
        }
    }
}
