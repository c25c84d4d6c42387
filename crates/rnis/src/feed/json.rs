//! Access to members of JSON objects from outside.

use serde_json::Value;

/// Returns a member as a number; a list's last entry; texts that are numbers, as some tools write them.
pub(super) fn number(object: &Value, name: &str) -> Option<f64> {
    as_number(object.get(name)?)
}

pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Array(list) => match list.last()? {
            Value::Array(_) => None,
            last => as_number(last),
        },
        _ => None,
    }
}

/// Returns a member as a whole number in the range of `T`, rounded.
pub(super) fn integer<T: TryFrom<u64>>(object: &Value, name: &str) -> Option<T> {
    match object.get(name)? {
        Value::Number(exact) if exact.is_u64() => exact.as_u64()?.try_into().ok(),
        other => rounded(as_number(other)?),
    }
}

/// Rounds a number that is not negative to a whole one in the range of `T`.
pub(super) fn rounded<T: TryFrom<u64>>(number: f64) -> Option<T> {
    let possible = number.is_finite() && (0.0..1.8e19).contains(&number);
    if possible { T::try_from((number + 0.5) as u64).ok() } else { None }
}

/// Returns the list of a member, or an empty one.
pub(super) fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], |list| list)
}
