//! Selects the points of a sweep for a check or a line of a figure.

use record::Point;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Points of a sweep, selected by the values of some of its keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct At(BTreeMap<String, Key>);

/// A value of a swept parameter, or several alternatives.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Key {
    Bool(bool),
    Number(f64),
    Text(String),
    Any(Vec<Key>),
}

impl Key {
    fn is(&self, value: &serde_json::Value) -> bool {
        match self {
            Key::Bool(wanted) => value.as_bool() == Some(*wanted),
            Key::Number(wanted) => value.as_f64() == Some(*wanted),
            Key::Text(wanted) => value.as_str() == Some(wanted),
            Key::Any(any) => any.iter().any(|key| key.is(value)),
        }
    }
}

impl At {
    /// Returns whether `point` is selected.
    pub(crate) fn is(&self, point: &Point) -> bool {
        self.0.iter().all(|(key, wanted)| point.values.get(key).is_some_and(|value| wanted.is(value)))
    }

    /// Returns whether `other` is `point` with these values.
    pub(crate) fn leads(&self, point: &Point, other: &Point) -> bool {
        let same = |(key, value): (&String, &serde_json::Value)| {
            self.0.contains_key(key) || other.values.get(key) == Some(value)
        };
        self.is(other) && point.values.iter().all(same)
    }
}
