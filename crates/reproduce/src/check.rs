//! Published rows, and the checks that answer them.

use crate::measure::{Floor, Measure};
use crate::points::At;
use record::Point;
use serde::{Deserialize, Serialize};

/// Which figure of a run answers which published row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    variant: String,
    parameter: String,
    metric: String,
    /// The points of the scenario's sweep: of several, the mean, unless the row is a claim about each of them.
    #[serde(default)]
    point: At,
    /// What differs at the point that it is compared with.
    pub(crate) against: Option<At>,
    /// How it is compared.
    #[serde(default, rename = "as")]
    pub(crate) form: Form,
    /// The figure.
    pub measure: Measure,
    /// Share of the published value within which ours counts as the same.
    pub tolerance: Option<f64>,
    /// Of a claim: what has to be true, as `>=0.9`.
    expect: Option<String>,
    /// Of a claim: the swept keys along which the figure rises,
    #[serde(default)]
    rising: Vec<String>,
    /// or falls.
    #[serde(default)]
    falling: Vec<String>,
    /// The least that is physically possible.
    pub floor: Option<Floor>,
    /// If it is missed: why.
    pub why: Option<String>,
}

/// How a figure is compared with that of another point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The one over the other.
    #[default]
    Ratio,
    /// By how many per cent it is more.
    Gain,
    /// By how many per cent it is less.
    Reduction,
    /// What is left of it.
    Difference,
}

/// A claim about figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// True of each.
    Bound(Bound),
    /// The least and the largest.
    Range(f64, f64),
    /// How it changes.
    Trend { along: Vec<String>, rises: bool },
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Of the absolute value.
    Within(f64),
}

impl Claim {
    /// `>=0.9`, `<=5`, `±0.03`, `22.4..111.18`.
    fn parse(text: &str) -> Option<Claim> {
        if let Some((from, to)) = text.split_once("..") {
            return Some(Claim::Range(from.parse().ok()?, to.parse().ok()?));
        }
        let bound = |sign: &str| text.strip_prefix(sign).and_then(|bound| bound.parse().ok());
        let found = bound(">=").map(Bound::AtLeast).or_else(|| bound("<=").map(Bound::AtMost));
        found.or_else(|| bound("±").map(Bound::Within)).map(Claim::Bound)
    }
}

/// A row of `published.csv`.
#[derive(Clone, Debug)]
pub struct PublishedRow {
    /// The experiment.
    pub experiment: String,
    /// Which of the compared things.
    pub variant: String,
    /// Under which conditions.
    pub parameter: String,
    /// What was measured, or a claim in words.
    pub metric: String,
    /// The unit.
    pub unit: String,
    /// The value, if it is not a claim in words.
    pub value: Option<Published>,
    /// Half the width of the interval.
    pub ci95: Option<f64>,
    /// Where in the paper.
    pub place: String,
    /// Its line in `published.csv`.
    pub(crate) line: u64,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Number(f64),
    /// A range or a bound.
    Text(String),
}

impl Check {
    /// One that answers no row.
    pub(crate) fn of(measure: Measure, against: Option<At>, form: Form) -> Check {
        Check { measure, against, form, ..Check::default() }
    }

    /// The row that it names, for people.
    pub(crate) fn row(&self) -> String {
        format!("`{}`, `{}`, `{}`", self.variant, self.parameter, self.metric)
    }

    /// Whether it is about this row.
    pub fn answers(&self, row: &PublishedRow) -> bool {
        self.variant == row.variant && self.parameter == row.parameter && self.metric == row.metric
    }

    /// Whether it is about this point of the sweep.
    pub fn is_at(&self, point: &Point) -> bool {
        self.point.is(point)
    }

    /// The claim to be checked, if the row is one.
    pub(crate) fn claim_of(&self, row: &PublishedRow) -> Option<Claim> {
        match &row.value {
            Some(Published::Number(_)) => None,
            Some(Published::Text(text)) => Claim::parse(text),
            None if !self.rising.is_empty() => Some(Claim::Trend { along: self.rising.clone(), rises: true }),
            None if !self.falling.is_empty() => Some(Claim::Trend { along: self.falling.clone(), rises: false }),
            None => self.expect.as_deref().and_then(Claim::parse),
        }
    }
}
