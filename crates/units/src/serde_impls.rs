//! Serialization of quantities in scenario files and summaries, as strings with a unit.

use crate::{Bytes, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

macro_rules! text {
    ($t:ident, $pattern:literal, $example:literal) => {
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$t, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $t;
                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str(concat!("a string with a unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$t, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visitor)
            }
        }
        impl JsonSchema for $t {
            fn schema_name() -> Cow<'static, str> {
                stringify!($t).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}
text!(Span, r"^\s*[0-9_.eE+-]+\s*(h|min|s|ms|us|µs|ns)\s*$|^0$", "30 ms");
text!(Bytes, r"^\s*[0-9_.eE+-]+\s*(GiB|GB|MiB|MB|KiB|kB|B)\s*$|^0$", "500 kB");
text!(Rate, r"^\s*[0-9_.eE+-]+\s*([GMk]?(bit/s|bps|b/s|B/s))\s*$|^0$", "35 Mbit/s");
