//! What several checks share: limits, and names.

use crate::error::did_you_mean;
pub(crate) use units::check::{Check, MAX_SPAN};

/// Maximum number of flows, including each flow's `count`.
pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Maximum number of UEs, including each one's `count`.
pub(crate) const MAX_UES: u64 = 10_000;
/// Maximum number of cells.
pub(crate) const MAX_CELLS: u64 = 400;
/// Maximum number of one-way links.
pub(crate) const MAX_LINKS: usize = 10_000;

/// Number of faults after which checking stops: many UEs or flows may have the same fault.
pub(crate) const MAX_FAULTS: usize = 100;

/// Checks of names.
pub(crate) trait Names {
    fn name(&mut self, key: &str, name: &str);
    /// Checks that the current value is a valid name.
    fn is_name(&mut self, name: &str);
}

impl Names for Check {
    fn name(&mut self, key: &str, name: &str) {
        self.key(key, |c| c.is_name(name));
    }

    fn is_name(&mut self, name: &str) {
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
