//! Collects a scenario's faults under the paths of the faulty values; holds limits that several checks share.

use crate::error::{did_you_mean, shown};
use crate::tree::Step;
use core::fmt::Display;
use core::ops::RangeInclusive;
use units::{Bytes, Rate, Span};

/// Maximum number of flows, including each flow's `count`.
pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Maximum number of UEs, including each one's `count`.
pub(crate) const MAX_UES: u64 = 10_000;
/// Maximum number of cells.
pub(crate) const MAX_CELLS: u64 = 400;
/// Maximum number of one-way links.
pub(crate) const MAX_LINKS: usize = 10_000;

// Well above any realistic value, and small enough that no sum of them overflows 64 bits.
pub(crate) const MAX_SPAN: Span = Span::from_secs(1000 * 3600);
pub(crate) const MAX_RATE: Rate = Rate::from_mbps(10_000_000);
pub(crate) const MAX_BYTES: Bytes = Bytes::new(1_000_000_000_000_000);
/// The largest window that window scaling can announce (RFC 7323, 2.3).
pub(crate) const MAX_BUFFER: Bytes = Bytes::new(1 << 30);

/// Number of faults after which checking stops: many UEs or flows may have the same fault.
pub(crate) const MAX_FAULTS: usize = 100;

/// Collects faults under the path of the value being checked.
#[derive(Default)]
pub(crate) struct Check {
    path: Vec<Step>,
    pub(crate) faults: Vec<(Vec<Step>, String)>,
}

impl Check {
    /// Checks values inside `key`.
    pub(crate) fn key<R>(&mut self, key: &str, check: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Key(key.to_owned()), check)
    }

    /// Checks the element `index` of the current array.
    pub(crate) fn index<R>(&mut self, index: usize, check: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Index(index), check)
    }

    pub(crate) fn step<R>(&mut self, step: Step, check: impl FnOnce(&mut Check) -> R) -> R {
        self.path.push(step);
        let result = check(self);
        self.path.pop();
        result
    }

    /// Records a fault of the current value.
    pub(crate) fn wrong(&mut self, message: impl Into<String>) {
        self.faults.push((self.path.clone(), message.into()));
    }

    pub(crate) fn range<T: PartialOrd + Display + Copy>(&mut self, key: &str, value: T, range: RangeInclusive<T>) {
        if !range.contains(&value) {
            self.key(key, |c| c.within(value, range));
        }
    }

    /// Checks that the current value is in the range.
    pub(crate) fn within<T: PartialOrd + Display + Copy>(&mut self, value: T, range: RangeInclusive<T>) {
        if !range.contains(&value) {
            let (low, high) = range.into_inner();
            self.wrong(format!("{} is out of range: must be from {low} to {high}", shown(value)));
        }
    }

    /// Checks that a value is greater than `zero` and at most `most`.
    pub(crate) fn positive<T: PartialOrd + Display + Copy>(&mut self, key: &str, value: T, zero: T, most: T) {
        if !(value > zero && value <= most) {
            self.key(key, |c| {
                let value = shown(value);
                c.wrong(format!("{value} is out of range: must be greater than {zero} and at most {most}"));
            });
        }
    }

    pub(crate) fn span(&mut self, key: &str, value: Span) {
        self.range(key, value, Span::ZERO..=MAX_SPAN);
    }

    pub(crate) fn positive_span(&mut self, key: &str, value: Span) {
        self.positive(key, value, Span::ZERO, MAX_SPAN);
    }

    pub(crate) fn rate(&mut self, key: &str, value: Rate) {
        self.positive(key, value, Rate::default(), MAX_RATE);
    }

    pub(crate) fn size(&mut self, key: &str, value: Bytes) {
        self.positive(key, value, Bytes::ZERO, MAX_BYTES);
    }

    pub(crate) fn probability(&mut self, key: &str, value: f64) {
        self.range(key, value, 0.0..=1.0);
    }

    pub(crate) fn name(&mut self, key: &str, name: &str) {
        self.key(key, |c| c.is_name(name));
    }

    /// Checks that the current value is a valid name.
    pub(crate) fn is_name(&mut self, name: &str) {
        let fit = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | ' ');
        if name.is_empty() || name.len() > 100 || !name.chars().all(fit) {
            let right = "use 1 to 100 letters, digits, spaces, or - _ . :";
            self.wrong(format!("invalid name `{name}`; {right}"));
        }
    }
}

/// The error for an unknown name, with the nearest of `names`, or all of them if none is near and they are few.
pub(crate) fn unknown<'a>(what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut hint = did_you_mean(name, names.iter().copied());
    if hint.is_empty() && names.len() <= 16 {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        hint = format!("; valid: {known}");
    }
    format!("unknown {what} `{name}`{hint}")
}
