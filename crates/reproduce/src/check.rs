//! Published rows, and the checks that compare results with them.

use crate::measure::{Floor, Measure};
use crate::points::At;
use record::Point;
use serde::{Deserialize, Serialize};

/// Selects the measurement to compare with a published row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    variant: String,
    parameter: String,
    pub(crate) metric: String,
    /// The points of the scenario's sweep. Several points are averaged, unless the row is a claim about each of them.
    #[serde(default)]
    point: At,
    /// The values of swept keys at the point used as the reference.
    pub(crate) against: Option<At>,
    /// The form of the comparison.
    #[serde(default, rename = "as")]
    pub(crate) form: Form,
    /// The measure.
    pub measure: Measure,
    /// Relative deviation from the published value within which ours counts as equal.
    pub tolerance: Option<f64>,
    /// For a claim, or instead of the tolerance: the condition, such as `>=0.9`.
    expect: Option<String>,
    /// For a claim: the swept keys along which the value rises,
    #[serde(default)]
    rising: Vec<String>,
    /// For a claim: the swept keys along which the value falls.
    #[serde(default)]
    falling: Vec<String>,
    /// The physical lower bound.
    pub floor: Option<Floor>,
    /// Whether a parameter of the scenario was chosen by this row, which then is no prediction.
    #[serde(default)]
    pub(crate) fitted: bool,
    /// If the row is missed: the known reason.
    pub why: Option<String>,
}

/// The form of a comparison between two points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The ratio of the two values.
    #[default]
    Ratio,
    /// The increase in per cent.
    Gain,
    /// The decrease in per cent.
    Reduction,
    /// The difference.
    Difference,
}

/// A claim about measured values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// Every value is within a bound.
    Bound(Bound),
    /// The minimum and the maximum.
    Range(f64, f64),
    /// The value is monotonic.
    Trend { along: Vec<String>, rises: bool },
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// A bound on the absolute value.
    Within(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Claim {
    /// Parses `>=0.9`, `<=5`, `±0.03`, `[2, 8]` or `22.4..111.18`. Numbers are finite, and the first of two is not the larger.
    pub(crate) fn parse(text: &str) -> Option<Claim> {
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let range = |from: &str, to: &str| Some((number(from)?, number(to)?)).filter(|(from, to)| from <= to);
        if let Some((from, to)) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')?.split_once(',')) {
            return range(from.trim(), to.trim()).map(|(from, to)| Claim::Bound(Bound::Between(from, to)));
        }
        if let Some((from, to)) = text.split_once("..") {
            return range(from, to).map(|(from, to)| Claim::Range(from, to));
        }
        let bound = |sign: &str| text.strip_prefix(sign).and_then(number);
        let found = bound(">=").map(Bound::AtLeast).or_else(|| bound("<=").map(Bound::AtMost));
        found.or_else(|| bound("±").map(Bound::Within)).map(Claim::Bound)
    }
}

/// A row of `published.csv`.
#[derive(Clone, Debug)]
pub struct PublishedRow {
    /// The experiment.
    pub experiment: String,
    /// The system that was compared.
    pub variant: String,
    /// The conditions.
    pub parameter: String,
    /// The metric, or a claim in words.
    pub metric: String,
    /// The unit.
    pub unit: String,
    /// The value, if it is not a claim in words.
    pub value: Option<Published>,
    /// Half the width of the 95 % confidence interval.
    pub ci95: Option<f64>,
    /// The place in the paper.
    pub place: String,
    /// Its line in `published.csv`.
    pub(crate) line: u64,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Published {
    /// A number.
    Number(f64),
    /// A range or a bound.
    Text(String),
}

impl Check {
    /// Creates a check that is not tied to a row.
    pub(crate) fn of(measure: Measure, against: Option<At>, form: Form) -> Check {
        Check { measure, against, form, ..Check::default() }
    }

    /// Describes the row it names, for messages.
    pub(crate) fn row(&self) -> String {
        format!("`{}`, `{}`, `{}`", self.variant, self.parameter, self.metric)
    }

    /// Returns whether it applies to this row.
    pub fn answers(&self, row: &PublishedRow) -> bool {
        self.variant == row.variant && self.parameter == row.parameter && self.metric == row.metric
    }

    /// Returns whether it applies to this point of the sweep.
    pub fn is_at(&self, point: &Point) -> bool {
        self.point.is(point)
    }

    /// Returns what is wrong with its condition or its tolerance.
    pub(crate) fn fault(&self) -> Option<String> {
        if let Some(expect) = self.expect.as_deref().filter(|expect| Claim::parse(expect).is_none()) {
            return Some(format!("`expect` is `{expect}`, but must be `>=x`, `<=x`, `±x`, `[a, b]` or `a..b`"));
        }
        let tolerance = self.tolerance.filter(|tolerance| !(0.0..=f64::MAX).contains(tolerance))?;
        Some(format!("`tolerance` is {tolerance}, but must be a finite number from 0 on"))
    }

    /// Returns the claim to be checked, if the row is one.
    pub(crate) fn claim_of(&self, row: &PublishedRow) -> Option<Claim> {
        match &row.value {
            Some(Published::Number(_)) => self.expect.as_deref().and_then(Claim::parse),
            Some(Published::Text(text)) => Claim::parse(text),
            None if !self.rising.is_empty() => Some(Claim::Trend { along: self.rising.clone(), rises: true }),
            None if !self.falling.is_empty() => Some(Claim::Trend { along: self.falling.clone(), rises: false }),
            None => self.expect.as_deref().and_then(Claim::parse),
        }
    }
}
