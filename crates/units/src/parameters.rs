//! Parameters as scenario files write them, each declared once.

use crate::check::{Check, Valid};
use crate::{Bytes, Rate, Span};
use core::ops::Bound;
use schemars::Schema;
use schemars::transform::Transform;

/// Declares a table of parameters for scenario files: a line for each with its documentation, key, type, default and the range that
/// is valid, if any value of the type is not, or a list of the valid values. Adds `Default`, the forms for serde and JSON Schema, and
/// `check`, which compares the values with their ranges.
///
/// ```
/// use units::{Span, check::Range, parameters};
///
/// parameters! {
///     /// A limit on a queue.
///     pub struct Config {
///         /// The acceptable standing delay.
///         pub target: Span = Span::from_millis(5), in Range::POSITIVE_SPAN;
///         /// Maximum number of packets. Default: no limit.
///         pub packets: Option<u32> = None, in 1..=1000;
///         /// Number of bands.
///         pub bands: u8 = 3, in &[1, 3];
///     }
/// }
///
/// let mut check = units::check::Check::default();
/// Config { target: Span::ZERO, ..Config::default() }.check(&mut check);
/// assert_eq!(check.faults[0].1, "0 ns is out of range: must be greater than 0 ns and at most 1000 h");
/// ```
///
/// Either all parameters have a default or none; in a table without, `#[serde(default)]` makes one optional.
///
/// What must hold of several parameters together is checked by a method of the table that is named after it, with what it needs
/// to know of others, if anything. `check` takes the same, and calls it after it has compared the ranges:
///
/// ```
/// use units::{check::Check, parameters};
///
/// parameters! {
///     /// A window.
///     pub struct Window {
///         /// The least packets.
///         pub least: u32 = 1;
///         /// The most packets.
///         pub most: u32 = 10;
///     } with check_order(room: u32)
/// }
///
/// impl Window {
///     fn check_order(&self, room: u32, c: &mut Check) {
///         c.range("most", self.most, self.least..=room);
///     }
/// }
///
/// let mut check = Check::default();
/// Window::default().check(5, &mut check);
/// assert_eq!(check.faults[0].1, "10 is out of range: must be from 1 to 5");
/// ```
///
/// The caller needs the crates `serde` and `schemars`.
#[macro_export]
macro_rules! parameters {
    (@describe $type:ty, $range:expr) => {
        $crate::parameters::Describe::<$type>(($range).into())
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$of:meta])* pub $key:ident: $type:ty = $default:expr $(, in $range:expr)?;)*
    } $(with $($whole:tt)*)?) => {
        $crate::parameters! {
            @table [#[serde(default)]] $(#[$meta])* $name { $($(#[$of])* $key: $type $(, $range)?;)* } $($($whole)*)?
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($key: $default),* }
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$of:meta])* pub $key:ident: $type:ty $(, in $range:expr)?;)*
    } $(with $($whole:tt)*)?) => {
        $crate::parameters! { @table [] $(#[$meta])* $name { $($(#[$of])* $key: $type $(, $range)?;)* } $($($whole)*)? }
    };
    (@table [$(#[$default:meta])?] $(#[$meta:meta])* $name:ident {
        $($(#[$of:meta])* $key:ident: $type:ty $(, $range:expr)?;)*
    } $($whole:ident($($given:ident: $of_given:ty),*))?) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        $(#[$default])?
        pub struct $name {
            $(
                $(#[$of])*
                $(#[schemars(transform = $crate::parameters!(@describe $type, $range))])?
                pub $key: $type,
            )*
        }

        impl $name {
            /// Checks that each parameter is in its range, and what must hold of several.
            #[allow(unused_variables, reason = "a table may have no ranges")]
            pub fn check(&self, $($($given: $of_given,)*)? c: &mut $crate::check::Check) {
                $($($crate::parameters::Parameter::check(&self.$key, stringify!($key), &($range).into(), c);)?)*
                $(self.$whole($($given,)* c);)?
            }
        }
    };
}

/// Adds the valid values to the schema of a parameter's type.
#[doc(hidden)]
pub struct Describe<T: Parameter>(pub Valid<T::Value>);

impl<T: Parameter> Transform for Describe<T> {
    fn transform(&mut self, schema: &mut Schema) {
        T::describe(&self.0, schema);
    }
}

/// The type of a parameter that has a range.
pub trait Parameter {
    /// What the range compares.
    type Value: 'static;
    /// Checks that the value of `key` is valid.
    fn check(&self, key: &str, valid: &Valid<Self::Value>, c: &mut Check);
    /// Adds the valid values to the type's schema, if JSON Schema can express them.
    fn describe(valid: &Valid<Self::Value>, schema: &mut Schema);
}

impl<T: Parameter> Parameter for Option<T> {
    type Value = T::Value;
    fn check(&self, key: &str, valid: &Valid<T::Value>, c: &mut Check) {
        if let Some(value) = self {
            value.check(key, valid, c);
        }
    }
    fn describe(valid: &Valid<T::Value>, schema: &mut Schema) {
        T::describe(valid, schema);
    }
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Parameter for $number {
            type Value = $number;
            fn check(&self, key: &str, valid: &Valid<$number>, c: &mut Check) {
                c.range(key, *self, *valid);
            }
            fn describe(valid: &Valid<$number>, schema: &mut Schema) {
                let range = match valid {
                    Valid::In(range) => range,
                    Valid::OneOf(values) => {
                        schema.insert("enum".to_owned(), values.iter().copied().collect());
                        return;
                    }
                };
                let names = [(range.low, "minimum", "exclusiveMinimum"), (range.high, "maximum", "exclusiveMaximum")];
                for (bound, included, excluded) in names {
                    match bound {
                        Bound::Included(bound) => schema.insert(included.to_owned(), bound.into()),
                        Bound::Excluded(bound) => schema.insert(excluded.to_owned(), bound.into()),
                        Bound::Unbounded => None,
                    };
                }
            }
        }
    )*};
}
number!(u8, u16, u32, u64, f64);

macro_rules! quantity {
    ($($quantity:ty),*) => {$(
        impl Parameter for $quantity {
            type Value = $quantity;
            fn check(&self, key: &str, valid: &Valid<$quantity>, c: &mut Check) {
                c.range(key, *self, *valid);
            }
            // A string with a unit.
            fn describe(_: &Valid<$quantity>, _: &mut Schema) {}
        }
    )*};
}
quantity!(Span, Bytes, Rate);

#[cfg(test)]
#[allow(unreachable_pub, reason = "tables of parameters are public")]
mod tests {
    use super::*;
    use crate::check::Range;

    crate::parameters! {
        /// A limit.
        pub struct Limit {
            /// Packets.
            pub packets: Option<u32> = None, in 1..=1000;
            /// A share.
            pub share: f64 = 0.5, in Range::between(0.0, 1.0);
            /// A span.
            pub target: Span = Span::from_millis(5), in Range::POSITIVE_SPAN;
            /// One of some numbers.
            pub bands: Option<u8> = None, in &[1, 3];
        } with check_whole(most: u32)
    }

    impl Limit {
        fn check_whole(&self, most: u32, c: &mut Check) {
            if self.packets.is_some_and(|packets| packets > most) {
                c.wrong("too many packets");
            }
        }
    }

    crate::parameters! {
        /// A distribution.
        pub struct Distribution {
            /// The mean.
            pub mean: Bytes, in Range::SIZE;
        }
    }

    #[test]
    fn each_value_out_of_its_range_is_a_fault() {
        let mut c = Check::default();
        Limit::default().check(100, &mut c);
        assert!(c.faults.is_empty(), "{:?}", c.faults);
        Limit { packets: Some(0), share: f64::NAN, target: Span::ZERO, bands: Some(2) }.check(100, &mut c);
        Limit { packets: Some(200), ..Limit::default() }.check(100, &mut c);
        Distribution { mean: Bytes::ZERO }.check(&mut c);
        let told: Vec<&str> = c.faults.iter().map(|(_, message)| message.as_str()).collect();
        assert_eq!(
            told,
            [
                "0 is out of range: must be from 1 to 1000",
                "NaN is out of range: must be greater than 0 and less than 1",
                "0 ns is out of range: must be greater than 0 ns and at most 1000 h",
                "2 is not one of 1, 3",
                "too many packets",
                "0 B is out of range: must be greater than 0 B and at most 1000000 GB",
            ]
        );
    }

    #[test]
    fn the_schema_has_the_ranges_of_numbers_and_the_defaults() {
        let schema = schemars::schema_for!(Limit).to_value();
        let of = |key: &str, what: &str| schema["properties"][key][what].as_f64();
        assert_eq!((of("packets", "minimum"), of("packets", "maximum")), (Some(1.0), Some(1000.0)));
        assert_eq!((of("share", "exclusiveMinimum"), of("share", "exclusiveMaximum")), (Some(0.0), Some(1.0)));
        assert_eq!((of("share", "default"), &schema["properties"]["target"]["default"]), (Some(0.5), &"5 ms".into()));
        assert_eq!(schema["properties"]["bands"]["enum"].as_array().map(Vec::len), Some(2));
        let required = schemars::schema_for!(Distribution).to_value();
        assert_eq!(required["required"][0], "mean");
    }
}
