//! Checks of values: the ranges that are valid, and each fault under the path of its value.

use crate::{Bytes, Rate, Span};
use core::fmt::{self, Display};
use core::ops::{Bound, RangeBounds, RangeInclusive};

// Well above any realistic value, and small enough that no sum of them overflows 64 bits.
/// The longest span in a file.
pub const MAX_SPAN: Span = Span::from_secs(1000 * 3600);
/// The highest rate in a file.
pub const MAX_RATE: Rate = Rate::from_mbps(10_000_000);
/// The largest amount of data in a file.
pub const MAX_BYTES: Bytes = Bytes::new(1_000_000_000_000_000);

/// The values that are valid, with or without the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<T> {
    pub(crate) low: Bound<T>,
    pub(crate) high: Bound<T>,
}

impl<T> Range<T> {
    /// Values greater than `zero`, and at most `most`.
    pub const fn above(zero: T, most: T) -> Range<T> {
        Range { low: Bound::Excluded(zero), high: Bound::Included(most) }
    }

    /// Values greater than `low`, and less than `high`.
    pub const fn between(low: T, high: T) -> Range<T> {
        Range { low: Bound::Excluded(low), high: Bound::Excluded(high) }
    }
}

impl<T: PartialOrd + Copy> Range<T> {
    /// Returns whether the value is in the range.
    pub fn contains(&self, value: T) -> bool {
        (self.low, self.high).contains(&value)
    }
}

impl Range<Span> {
    /// Any span that a file may have.
    pub const SPAN: Range<Span> = Range { low: Bound::Included(Span::ZERO), high: Bound::Included(MAX_SPAN) };
    /// Any such span but 0.
    pub const POSITIVE_SPAN: Range<Span> = Range::above(Span::ZERO, MAX_SPAN);
}

impl Range<Rate> {
    /// Any rate that a file may have but 0.
    pub const RATE: Range<Rate> = Range::above(Rate::from_mbps(0), MAX_RATE);
}

impl Range<Bytes> {
    /// Any amount of data that a file may have but 0.
    pub const SIZE: Range<Bytes> = Range::above(Bytes::ZERO, MAX_BYTES);
}

impl Range<f64> {
    /// Probabilities.
    pub const PROBABILITY: Range<f64> = Range { low: Bound::Included(0.0), high: Bound::Included(1.0) };
}

impl<T> From<RangeInclusive<T>> for Range<T> {
    fn from(range: RangeInclusive<T>) -> Range<T> {
        let (low, high) = range.into_inner();
        Range { low: Bound::Included(low), high: Bound::Included(high) }
    }
}

impl<T: Display> Display for Range<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) => write!(f, "from {low} to {high}"),
            (Bound::Excluded(low), Bound::Included(high)) => write!(f, "greater than {low} and at most {high}"),
            (Bound::Excluded(low), Bound::Excluded(high)) => write!(f, "greater than {low} and less than {high}"),
            _ => unreachable!("no constructor makes one"),
        }
    }
}

/// The valid values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Valid<T: 'static> {
    /// Those in a range.
    In(Range<T>),
    /// These.
    OneOf(&'static [T]),
}

impl<T: PartialOrd + Copy> Valid<T> {
    /// Returns whether the value is valid.
    pub fn contains(&self, value: T) -> bool {
        match self {
            Valid::In(range) => range.contains(value),
            Valid::OneOf(values) => values.contains(&value),
        }
    }
}

impl<T> From<Range<T>> for Valid<T> {
    fn from(range: Range<T>) -> Valid<T> {
        Valid::In(range)
    }
}

impl<T> From<RangeInclusive<T>> for Valid<T> {
    fn from(range: RangeInclusive<T>) -> Valid<T> {
        Valid::In(range.into())
    }
}

impl<T, const N: usize> From<&'static [T; N]> for Valid<T> {
    fn from(values: &'static [T; N]) -> Valid<T> {
        Valid::OneOf(values)
    }
}

/// One step of the path of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The key of a table.
    Key(String),
    /// The index of an element.
    Index(usize),
}

/// Collects faults under the path of the value being checked.
#[derive(Debug, Default)]
pub struct Check {
    path: Vec<Step>,
    /// The faults: the path of each value, and what is wrong with it.
    pub faults: Vec<(Vec<Step>, String)>,
}

impl Check {
    /// Checks values inside `key`.
    pub fn key<R>(&mut self, key: &str, check: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Key(key.to_owned()), check)
    }

    /// Checks the element `index` of the current array.
    pub fn index<R>(&mut self, index: usize, check: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Index(index), check)
    }

    /// Checks values inside `step`.
    pub fn step<R>(&mut self, step: Step, check: impl FnOnce(&mut Check) -> R) -> R {
        self.path.push(step);
        let result = check(self);
        self.path.pop();
        result
    }

    /// Records a fault of the current value.
    pub fn wrong(&mut self, message: impl Into<String>) {
        self.faults.push((self.path.clone(), message.into()));
    }

    /// Checks that the value of `key` is valid.
    pub fn range<T: PartialOrd + Display + Copy + 'static>(&mut self, key: &str, value: T, valid: impl Into<Valid<T>>) {
        let valid = valid.into();
        if !valid.contains(value) {
            self.key(key, |c| c.within(value, valid));
        }
    }

    /// Checks that the current value is valid.
    pub fn within<T: PartialOrd + Display + Copy + 'static>(&mut self, value: T, valid: impl Into<Valid<T>>) {
        let valid = valid.into();
        if valid.contains(value) {
            return;
        }
        let value = shown(value);
        self.wrong(match valid {
            Valid::In(range) => format!("{value} is out of range: must be {range}"),
            Valid::OneOf(values) => {
                let list = values.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
                format!("{value} is not one of {list}")
            }
        });
    }

    /// Checks that the value of `key` is greater than `zero` and at most `most`.
    pub fn positive<T: PartialOrd + Display + Copy + 'static>(&mut self, key: &str, value: T, zero: T, most: T) {
        self.range(key, value, Range::above(zero, most));
    }

    /// Checks that values that change at given times begin at 0, each later than the one before.
    pub fn times<T>(&mut self, steps: &[(Span, T)]) {
        if steps.first().is_none_or(|(at, _)| *at != Span::ZERO) {
            self.wrong("the first step must be at \"0 s\"");
        }
        for (i, pair) in steps.windows(2).enumerate() {
            if pair[0].0 >= pair[1].0 {
                let message = format!("{} must be later than the step before it, {}", pair[1].0, pair[0].0);
                self.index(i + 1, |c| c.wrong(message));
            }
        }
    }

    /// Checks the value of `key`, a rate that changes at given times.
    pub fn rates(&mut self, key: &str, steps: &[(Span, Rate)]) {
        self.key(key, |c| {
            c.times(steps);
            if steps.iter().all(|(_, rate)| *rate == Rate::default()) {
                c.wrong("at least one rate must be greater than 0");
            }
            for (i, (_, rate)) in steps.iter().enumerate() {
                if *rate > MAX_RATE {
                    c.index(i, |c| c.wrong(format!("{rate} is out of range: must be at most {MAX_RATE}")));
                }
            }
        });
    }

    /// Checks that a span is at most [`MAX_SPAN`].
    pub fn span(&mut self, key: &str, value: Span) {
        self.range(key, value, Range::SPAN);
    }

    /// Checks that a span is not 0, and at most [`MAX_SPAN`].
    pub fn positive_span(&mut self, key: &str, value: Span) {
        self.range(key, value, Range::POSITIVE_SPAN);
    }

    /// Checks that a rate is not 0, and at most [`MAX_RATE`].
    pub fn rate(&mut self, key: &str, value: Rate) {
        self.range(key, value, Range::RATE);
    }

    /// Checks that an amount of data is not 0, and at most [`MAX_BYTES`].
    pub fn size(&mut self, key: &str, value: Bytes) {
        self.range(key, value, Range::SIZE);
    }

    /// Checks that a number is a probability.
    pub fn probability(&mut self, key: &str, value: f64) {
        self.range(key, value, Range::PROBABILITY);
    }
}

/// Formats a value in a message: a number with an exponent, if it has very many digits without one.
pub fn shown(value: impl Display) -> String {
    let text = value.to_string();
    match text.parse::<f64>() {
        Ok(x) if text.len() > 20 => format!("{x:e}"),
        _ => text,
    }
}
