//! Published rows, and the checks that compare results with them.

use crate::measure::{Ceiling, Floor, Measure};
use crate::points::At;
use record::Point;
use serde::{Deserialize, Serialize};

/// Relative deviation up to which a measured and a published value count as equal by default.
const TOLERANCE: f64 = 0.10;

/// Selects the measurement to compare with a published row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub(crate) variant: String,
    pub(crate) parameter: String,
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
    /// Deviation from the published value up to which ours counts as equal, in the row's unit, instead of the default.
    pub tolerance: Option<f64>,
    /// For a claim in words, or instead of the tolerance: the condition, such as `>=0.9`.
    pub(crate) expect: Option<String>,
    /// Why `tolerance`, or `expect` beside a published number, allows more than the default, or why words or a bound are read so.
    pub(crate) because: Option<String>,
    /// For a claim: the swept keys along which the value rises,
    #[serde(default)]
    pub(crate) rising: Vec<String>,
    /// For a claim: the swept keys along which the value falls.
    #[serde(default)]
    pub(crate) falling: Vec<String>,
    /// The physical lower bound.
    pub floor: Option<Floor>,
    /// The physical upper bound.
    pub ceiling: Option<Ceiling>,
    /// The parameter that was chosen by this row, which then is no prediction.
    pub(crate) fitted: Option<String>,
    /// Why the row holds by construction, and is no prediction either.
    pub(crate) given: Option<String>,
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

impl Form {
    /// Converts a ratio to this form.
    pub(crate) fn figure(self, ratio: f64) -> f64 {
        match self {
            Form::Ratio | Form::Difference => ratio,
            Form::Gain => (ratio - 1.0) * 100.0,
            Form::Reduction => (1.0 - ratio) * 100.0,
        }
    }

    /// Inverts [`Form::figure`].
    fn ratio(self, figure: f64) -> f64 {
        match self {
            Form::Ratio | Form::Difference => figure,
            Form::Gain => 1.0 + figure / 100.0,
            Form::Reduction => 1.0 - figure / 100.0,
        }
    }
}

/// A claim about measured values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// Every value is within a bound.
    Bound(Bound),
    /// The value rises along some swept keys, and falls along others.
    Trend { rising: Vec<String>, falling: Vec<String> },
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
    /// Parses `>=0.9`, `<=5`, `±0.03`, `[2, 8]` or `22.4..111.18`. Numbers are finite, the first of two is not the larger, and what
    /// bounds an absolute value is not negative.
    pub(crate) fn parse(text: &str) -> Option<Claim> {
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let range = |(from, to): (&str, &str)| {
            let (from, to) = Some((number(from.trim())?, number(to.trim())?)).filter(|(from, to)| from <= to)?;
            Some(Bound::Between(from, to))
        };
        let in_brackets = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Some(ends) = in_brackets.and_then(|ends| ends.split_once(',')).or_else(|| text.split_once("..")) {
            return range(ends).map(Claim::Bound);
        }
        let bound = |sign: &str| text.strip_prefix(sign).and_then(number);
        let found = bound(">=").map(Bound::AtLeast).or_else(|| bound("<=").map(Bound::AtMost));
        found.or_else(|| bound("±").filter(|bound| *bound >= 0.0).map(Bound::Within)).map(Claim::Bound)
    }

    /// Widens a range at each end, by `margin` or by the rounding with which it was published.
    fn widened(self, published: &str, margin: Option<f64>) -> Claim {
        let Claim::Bound(Bound::Between(from, to)) = self else { return self };
        let (low, high) = roundings(published);
        Claim::Bound(Bound::Between(from - margin.unwrap_or(low), to + margin.unwrap_or(high)))
    }
}

/// Half a unit, which itself belongs to the next number.
const HALF: f64 = 0.499;

/// Returns how far the exact value of a decimal number may be from the printed one: half a unit of its last digit.
pub(crate) fn rounding(printed: &str) -> f64 {
    let (digits, exponent) = printed.trim().split_once(['e', 'E']).unwrap_or((printed.trim(), "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
    HALF * 10_f64.powi(exponent.parse().unwrap_or(0_i32).saturating_sub(decimals))
}

/// Returns the same of the ends of a published range, or twice of the number of a bound.
pub(crate) fn roundings(printed: &str) -> (f64, f64) {
    let ends = printed.trim_start_matches('[').trim_end_matches(']');
    match ends.split_once("..").or_else(|| ends.split_once(',')) {
        Some((from, to)) => (rounding(from), rounding(to)),
        None => {
            let of = rounding(ends.trim_start_matches(['>', '<', '=', '±']));
            (of, of)
        }
    }
}

/// Whose row it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The paper states it.
    #[default]
    Paper,
    /// What the paper's published artefact contains or gives, not its text.
    Artefact,
    /// We ask it; nobody has published it.
    Ours,
}

impl Origin {
    /// Parses the last column of `published.csv`: `ours` or `artefact`, each alone or before a colon, or else a place in the
    /// paper, which has nothing of ours.
    pub(crate) fn parse(place: &str) -> Result<Origin, String> {
        let named = [("ours", Origin::Ours), ("artefact", Origin::Artefact)];
        for (name, origin) in named {
            let Some(head) = place.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name)) else { continue };
            let rest = &place[head.len()..];
            if rest.is_empty() || rest.starts_with(": ") {
                return Ok(origin);
            }
            return Err(format!("where: `{place}` must be `{name}` or `{name}: ...`"));
        }
        if place.trim().is_empty() {
            return Err("where: name the place in the paper, or `ours`, or `artefact`".into());
        }
        let mut words = place.split(|c: char| !c.is_alphanumeric());
        if let Some(word) = words.find(|word| ["our", "ours"].iter().any(|ours| word.eq_ignore_ascii_case(ours))) {
            return Err(format!(
                "where: `{place}` says `{word}`: write `ours: ...` if nobody has published the row; if the paper has words only, \
                 name their place, leave the value empty, and say what we take them to mean with `expect`"
            ));
        }
        Ok(Origin::Paper)
    }
}

/// A row of `published.csv`.
#[derive(Clone, Debug, Default)]
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
    /// Half a unit of the last digit of a published number.
    pub(crate) rounding: f64,
    /// Half the width of the 95 % confidence interval.
    pub ci95: Option<f64>,
    /// The place in the paper, or where else it is from.
    pub place: String,
    /// Whose row it is, by `place`.
    pub origin: Origin,
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

    /// Returns the deviation from a published number up to which a measured one counts as equal.
    ///
    /// By default it is the larger of the published interval and a tenth of the published value. For a gain or a reduction it is
    /// a tenth of the change or of the ratio, whichever is smaller: a tenth of the change alone would make a reduction of 98 %
    /// equal to one of 90 %, which leaves five times as much. It is never less than the rounding of the published value.
    pub(crate) fn margin(&self, row: &PublishedRow, value: f64) -> f64 {
        self.tolerance.unwrap_or_else(|| self.strict_margin(row, value))
    }

    /// Returns the deviation that counts as equal by default.
    pub(crate) fn strict_margin(&self, row: &PublishedRow, value: f64) -> f64 {
        let share = match self.form {
            Form::Gain | Form::Reduction if self.against.is_some() => {
                let ratio = self.form.ratio(value);
                (TOLERANCE * 100.0 * (ratio - 1.0).abs().min(ratio.abs())).max(row.rounding)
            }
            _ => TOLERANCE * value.abs(),
        };
        share.max(row.ci95.unwrap_or(0.0))
    }

    /// Returns the swept keys along which it states a trend.
    pub(crate) fn along(&self) -> impl Iterator<Item = &String> {
        self.rising.iter().chain(&self.falling)
    }

    /// Returns the condition that stands for the words of a claim, or replaces the tolerance of a published number.
    pub(crate) fn expected(&self, row: &PublishedRow) -> Option<String> {
        if matches!(row.value, Some(Published::Text(_))) {
            return None;
        }
        let along =
            |word: &str, keys: &[String]| (!keys.is_empty()).then(|| format!("{word} with {}", keys.join(", ")));
        let trend: Vec<String> =
            [along("rises", &self.rising), along("falls", &self.falling)].into_iter().flatten().collect();
        if trend.is_empty() { self.expect.clone() } else { Some(trend.join("; ")) }
    }

    /// Returns the claim to be checked, if the row is one.
    pub(crate) fn claim_of(&self, row: &PublishedRow) -> Option<Claim> {
        match &row.value {
            Some(Published::Number(_)) => self.expect.as_deref().and_then(Claim::parse),
            Some(Published::Text(text)) => Claim::parse(text).map(|claim| claim.widened(text, self.tolerance)),
            None if self.along().next().is_some() => {
                Some(Claim::Trend { rising: self.rising.clone(), falling: self.falling.clone() })
            }
            None => self.expect.as_deref().and_then(Claim::parse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_a_unit_of_the_last_digit() {
        for (printed, unit) in
            [("70", 1.0), ("-3", 1.0), ("0.40", 0.01), ("1e-3", 1e-3), ("1.5e-3", 1e-4), ("fast", 1.0)]
        {
            assert!((rounding(printed) / unit - HALF).abs() < 1e-9, "{printed}");
        }
    }

    #[test]
    fn the_last_column_says_whose_row_it_is() {
        for (place, origin) in [
            ("Table I", Origin::Paper),
            ("Section V-D (four hours)", Origin::Paper),
            ("ours", Origin::Ours),
            ("ours: a closed form", Origin::Ours),
            ("Ours: as Table I", Origin::Ours),
            ("Artefact: README", Origin::Artefact),
            ("artefact: README", Origin::Artefact),
        ] {
            assert_eq!(Origin::parse(place), Ok(origin));
        }
        for place in ["", " ", "ours too", "artefact's README", "Our addition", "our own", "Section V-D (0.03 is ours)"]
        {
            assert!(Origin::parse(place).is_err(), "{place}");
        }
    }
}
