//! What is wrong with a check, as far as its row and its own keys tell: conditions that have no effect or contradict each other,
//! tolerances without a reason, and limits that no value can have.

use crate::check::{Bound, Check, Claim, Form, Published, PublishedRow};
use crate::measure::{Ceiling, Floor, Measure};

impl Check {
    /// Returns what is wrong with its condition, its tolerance, its marks or its limits for `row`.
    pub(crate) fn fault(&self, row: &PublishedRow) -> Option<String> {
        if let Some(expect) = self.expect.as_deref().filter(|expect| Claim::parse(expect).is_none()) {
            return Some(format!(
                "`expect` is `{expect}`, but must be `>=x`, `<=x`, `±x`, `[a, b]` or `a..b` with finite numbers"
            ));
        }
        if let Some(tolerance) = self.tolerance.filter(|tolerance| !(0.0..=f64::MAX).contains(tolerance)) {
            return Some(format!(
                "`tolerance` is {tolerance}, but must be a finite number from 0 on, in the row's unit"
            ));
        }
        let reasons =
            [("because", &self.because), ("fitted", &self.fitted), ("given", &self.given), ("why", &self.why)];
        if let Some((key, _)) =
            reasons.iter().find(|(_, text)| text.as_ref().is_some_and(|text| text.trim().is_empty()))
        {
            return Some(format!("`{key}` is empty, but must say why"));
        }
        if self.fitted.is_some() && self.given.is_some() {
            return Some("`fitted` and `given` exclude each other".into());
        }
        self.idle_key().map(str::to_owned).or_else(|| self.idle_condition(row)).or_else(|| self.excess(row)).or_else(
            || {
                let floor = self.floor.as_ref().and_then(|floor| self.floor_fault(floor, row));
                floor.or_else(|| self.ceiling.as_ref().and_then(|ceiling| self.ceiling_fault(ceiling, row)))
            },
        )
    }

    /// Returns which key of the comparison has no effect.
    fn idle_key(&self) -> Option<&'static str> {
        match (&self.against, self.form, &self.measure) {
            (None, _, Measure::UntilFilled { .. }) => {
                Some("`until-filled` is defined for a pair of points only: name the other with `against`")
            }
            (None, Form::Gain | Form::Reduction | Form::Difference, _) => {
                Some("`as` has no effect without `against`, the point to compare with")
            }
            _ => None,
        }
    }

    /// Returns which condition has no effect beside another one, or beside the published value.
    fn idle_condition(&self, row: &PublishedRow) -> Option<String> {
        let along: Vec<&String> = self.along().collect();
        if let Some(twice) = (1..along.len()).find(|&i| along[..i].contains(&along[i])) {
            return Some(format!("`rising` and `falling` name `{}` twice; a key has one direction", along[twice]));
        }
        match &row.value {
            Some(published) if !along.is_empty() => {
                let what = match published {
                    Published::Number(_) => "number",
                    Published::Text(_) => "range or bound",
                };
                let trend = "`rising` and `falling` have no effect on a published";
                Some(format!("{trend} {what}; they are for a claim in words, whose value is empty"))
            }
            Some(Published::Text(_)) if self.expect.is_some() => Some(
                "`expect` has no effect on a published range or bound; if the paper has words only, leave the value empty in \
                 published.csv"
                    .into(),
            ),
            None if !along.is_empty() && self.expect.is_some() => {
                Some("`expect` has no effect beside `rising` or `falling`; use one of them".into())
            }
            _ => None,
        }
    }

    /// Returns what is wrong with a tolerance that is wider than the default without a reason, or of no use.
    fn excess(&self, row: &PublishedRow) -> Option<String> {
        let is_range = |text: &String| matches!(Claim::parse(text), Some(Claim::Bound(Bound::Between(..))));
        let (allowed, default) = match (&row.value, &self.expect) {
            (Some(Published::Number(value)), Some(expect)) => {
                let margin = self.strict_margin(row, *value);
                let (least, most) = (value - margin, value + margin);
                if self.tolerance.is_some() {
                    return Some("`tolerance` has no effect beside `expect`".into());
                }
                let within = match Claim::parse(expect) {
                    Some(Claim::Bound(Bound::Between(from, to))) => least <= from && to <= most,
                    _ => false,
                };
                let why = format!("`expect` replaces the default of {least:.4}..{most:.4}; say why with `because`");
                return (!within && self.because.is_none()).then_some(why);
            }
            (Some(Published::Number(value)), None) => (self.tolerance, self.strict_margin(row, *value)),
            (Some(Published::Text(text)), _) if is_range(text) => (self.tolerance, 0.0),
            _ if self.tolerance.is_some() => {
                return Some("`tolerance` has no effect on a bound or a claim in words".into());
            }
            _ => (None, 0.0),
        };
        let is_number = matches!(row.value, Some(Published::Number(_)));
        match (allowed, &self.because) {
            // Beside a range, a bound or words, it is the reason of how they are read.
            (None, Some(_)) if is_number => {
                Some("`because` is the reason of a `tolerance` or an `expect`, which is missing".into())
            }
            (Some(allowed), None) if allowed > default => Some(format!(
                "`tolerance` is {allowed}, which is more than the default of {default:.4}; say why with `because`"
            )),
            _ => None,
        }
    }

    /// Returns what is wrong with the least time that is physically possible.
    fn floor_fault(&self, floor: &Floor, row: &PublishedRow) -> Option<String> {
        if row.value.is_none() {
            return Some("`floor` has no effect on a claim in words".into());
        }
        if self.against.is_some() {
            return Some("`floor` is a time, but the row compares two points; `ceiling` limits a reduction".into());
        }
        if !floor.is_real() {
            return Some("`floor` needs a `size` and a `rate` above zero".into());
        }
        let unit = &row.unit;
        floor
            .value(unit)
            .is_none()
            .then(|| format!("`floor` is a time, but the row's unit is `{unit}`; use s, ms or us"))
    }

    /// Returns what is wrong with the most that is physically possible.
    fn ceiling_fault(&self, ceiling: &Ceiling, row: &PublishedRow) -> Option<String> {
        if row.value.is_none() {
            return Some("`ceiling` has no effect on a claim in words".into());
        }
        match ceiling {
            Ceiling::Value { most } => (!(0.0..=f64::MAX).contains(most)).then(|| {
                format!("`ceiling` has `most = {most}`, but must have a finite number from 0 on, in the row's unit")
            }),
            Ceiling::Reduction { size, rate, from } => {
                let floor = Floor::new(*size, *rate);
                let is_reduction = self.against.is_some() && self.form == Form::Reduction && row.unit == "%";
                if !is_reduction {
                    return Some(
                        "a `ceiling` of `size`, `rate` and `from` is the most that a time can be reduced: the row must be in % \
                         and the check `as = \"reduction\"`"
                            .into(),
                    );
                }
                if !floor.is_real() {
                    return Some("`ceiling` needs a `size` and a `rate` above zero".into());
                }
                (ceiling.value() < 0.0).then(|| {
                    format!(
                        "`ceiling` has `from = {from}`, which is less than the {:.3} s that `size` takes at `rate`",
                        floor.seconds()
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rounding;

    /// What is wrong with a check with these keys of a row with this value and unit.
    fn fault(value: &str, unit: &str, keys: &str) -> String {
        let measure = if keys.contains("measure =") { "" } else { "measure = { kind = 'completion', flow = 'f' }\n" };
        let check: Check =
            toml::from_str(&format!("variant = 'a'\nparameter = ''\nmetric = 'm'\n{measure}{keys}")).unwrap();
        let row = PublishedRow {
            variant: "a".into(),
            metric: "m".into(),
            unit: unit.into(),
            rounding: rounding(value),
            value: (!value.is_empty())
                .then(|| value.parse().map_or_else(|_| Published::Text(value.into()), Published::Number)),
            ..PublishedRow::default()
        };
        check.fault(&row).unwrap_or_default()
    }

    #[test]
    fn conditions_that_have_no_effect_are_rejected() {
        for (value, keys, hint) in [
            ("", "rising = ['a']\nfalling = ['a']", "name `a` twice"),
            ("", "rising = ['a', 'a']", "name `a` twice"),
            ("", "rising = ['a']\nexpect = '<=-5'", "`expect` has no effect beside `rising`"),
            ("", "falling = ['a']\ntolerance = 1", "`tolerance` has no effect"),
            ("5", "falling = ['a']", "no effect on a published number"),
            ("5..6", "rising = ['a']", "no effect on a published range"),
            ("5..6", "expect = '>=1'", "`expect` has no effect on a published range"),
            (">=5", "expect = '>=1'\nbecause = 'x'", "`expect` has no effect on a published range or bound"),
            (">=5", "tolerance = 1", "`tolerance` has no effect"),
            ("5", "tolerance = 1\nexpect = '[4, 5]'", "`tolerance` has no effect beside `expect`"),
            ("5", "because = 'x'", "which is missing"),
            ("5", "as = 'gain'", "`as` has no effect without `against`"),
            ("5", "measure = { kind = 'until-filled', link = 'l', after = '1 s', rate = 'r', share = 1 }", "`against`"),
            ("5", "why = ' '", "`why` is empty"),
        ] {
            let said = fault(value, "s", keys);
            assert!(said.contains(hint), "{value} {keys}: {said}");
        }
        for (value, keys) in
            [("", "rising = ['a']\nfalling = ['b']"), ("", "expect = '±0.03'"), ("5..6", ""), ("5", "")]
        {
            assert_eq!(fault(value, "s", keys), "", "{value} {keys}");
        }
    }

    #[test]
    fn conditions_have_finite_numbers() {
        for expect in [">=nan", "<=inf", "±-1", "[1, inf]", "nan..1", "6..5"] {
            let said = fault("", "s", &format!("expect = '{expect}'"));
            assert!(said.contains("with finite numbers"), "{expect}: {said}");
        }
        assert!(fault("5", "s", "tolerance = nan").contains("finite number from 0 on"));
    }

    #[test]
    fn the_reading_of_words_and_bounds_may_have_a_reason() {
        let because = "because = 'the paper says almost none'";
        for (value, keys) in [("", "expect = '<=1.5'"), ("", "rising = ['a']"), (">=5", ""), ("5..6", "")] {
            assert_eq!(fault(value, "s", &format!("{keys}\n{because}")), "", "{value} {keys}");
        }
    }

    #[test]
    fn limits_are_possible_values_in_the_unit_of_the_row() {
        let floor = "floor = { size = '10 MB', rate = '80 Mbit/s' }";
        let reduction = "against = { cc = 'cubic' }\nas = 'reduction'\n";
        for (value, unit, keys, hint) in [
            ("5", "%", floor.to_owned(), "the row's unit is `%`; use s, ms or us"),
            ("5", "s", format!("{floor}\n{reduction}"), "the row compares two points"),
            ("", "s", format!("{floor}\nexpect = '<=5'"), "no effect on a claim in words"),
            ("5", "s", "floor = { size = '10 MB', rate = '0 Mbit/s' }".into(), "above zero"),
            ("5", "s", "floor = { size = '0 B', rate = '1 Mbit/s' }".into(), "above zero"),
            ("5", "s", "ceiling = { most = nan }".into(), "finite number from 0 on"),
            ("5", "s", "ceiling = { most = inf }".into(), "finite number from 0 on"),
            ("5", "s", "ceiling = { most = -5 }".into(), "finite number from 0 on"),
            ("5", "s", "ceiling = { size = '10 MB', rate = '80 Mbit/s', from = '2 s' }".into(), "as = \"reduction\""),
            (
                "5",
                "%",
                format!("{reduction}ceiling = {{ size = '10 MB', rate = '80 Mbit/s', from = '0.5 s' }}"),
                "less than",
            ),
            (
                "5",
                "%",
                format!("{reduction}ceiling = {{ size = '10 MB', rate = '0 Mbit/s', from = '2 s' }}"),
                "above zero",
            ),
        ] {
            let said = fault(value, unit, &keys);
            assert!(said.contains(hint), "{value} {unit} {keys}: {said}");
        }
        assert_eq!(fault("5", "ms", floor), "");
    }
}
