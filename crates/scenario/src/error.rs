//! What is wrong with a scenario: one line a fault, with where, what, and what would be right.

use core::fmt;
use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file as it was named, `preset:NAME`, or `--set KEY=VALUE`.
    pub source: Arc<str>,
    /// Line and column in characters, both from 1; `None` in a `--set`.
    pub position: Option<(u32, u32)>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.position.map_or(Ok(()), |(line, column)| write!(f, ":{line}:{column}"))
    }
}

/// A fault of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The position of the faulty value, if it was written in a file or an override.
    pub origin: Option<Origin>,
    /// The key, such as `flows[0].cc`; empty for the whole file.
    pub key: String,
    /// The problem, and what would be valid.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(origin: Option<&Origin>, key: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { origin: origin.cloned(), key: key.into(), message: message.into() }
    }

    /// Returns the fault of the value that contains this one, whose key in it is `step`.
    pub(crate) fn inside(mut self, step: &str) -> Fault {
        let dot = if self.key.is_empty() || self.key.starts_with('[') { "" } else { "." };
        self.key.insert_str(0, &format!("{step}{dot}"));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The reasons why a scenario cannot be used. Displays one line for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    faults: Vec<Fault>,
}

impl Error {
    /// Returns the faults, at least one.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    pub(crate) fn new(faults: Vec<Fault>) -> Error {
        debug_assert!(!faults.is_empty());
        Error { faults }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error { faults: vec![fault] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

/// Maximum number of names compared with a misspelled one.
const MAX_NAMES: usize = 1000;

/// Returns `; did you mean ...?`, or an empty string if no name is near.
pub(crate) fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Returns the name of which `wrong` is most likely a misspelling, if one is near, or that it begins.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The cost is the product of the lengths; a string longer than any name is not a misspelling of one.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase();
    /// So many letters begin a name that is meant, and are not only near it.
    const BEGINNING: usize = 4;
    let ranked = names.into_iter().take(MAX_NAMES).map(|name| {
        let lower = name.to_lowercase();
        let begins = wrong.len() >= BEGINNING && lower.starts_with(&wrong);
        (!begins, strsim::damerau_levenshtein(&wrong, &lower), name)
    });
    let near = ranked.filter(|(is_other, distance, name)| !is_other || *distance <= 1 + name.chars().count() / 4).min();
    near.map(|(_, _, name)| name)
}
