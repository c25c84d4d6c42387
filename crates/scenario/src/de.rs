//! Deserializes the tree into the structs, with serde, keeping the position of each value for errors.
//!
//! On the way out, each level adds its step to an error's path; the innermost position is kept. An enumeration takes
//! its variant from a string, or from the `kind` of a table. Any other value (a number, or a string that begins with a
//! digit and is not a variant's name: `loss = 1e-3`, `samples = "10 ms"`) stands for the only key of the first variant.

use crate::error::{Fault, Origin, did_you_mean};
use crate::tree::{Node, Step, Table, Value, show};
use core::fmt;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use units::check::shown;

/// Deserializes a `T` from the tree.
pub(crate) fn read<T: de::DeserializeOwned>(node: &Node) -> Result<T, Fault> {
    T::deserialize(De(node)).map_err(|mut e| {
        e.path.reverse();
        Fault::new(e.origin.as_ref(), show(&e.path), e.message)
    })
}

#[derive(Debug)]
struct Error {
    message: String,
    origin: Option<Origin>,
    /// Innermost step first.
    path: Vec<Step>,
}

impl Error {
    fn at(mut self, origin: &Origin) -> Error {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    fn inside(mut self, step: Step) -> Error {
        self.path.push(step);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error { message: message.to_string(), origin: None, path: Vec::new() }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Error {
        let is = match unexpected {
            Unexpected::Signed(n) => format!("the number {n}"),
            Unexpected::Float(x) => format!("the number {}", shown(x)),
            Unexpected::Bool(b) => format!("`{b}`"),
            Unexpected::Str(text) => format!("the string \"{text}\""),
            Unexpected::Map => "a table".into(),
            Unexpected::Seq => "an array".into(),
            other => other.to_string(),
        };
        Error::custom(format_args!("expected {expected}, found {is}"))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Error {
        Error::custom(format_args!("expected {expected}, found {length}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::invalid_type(unexpected, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Error {
        Error::custom(format_args!("unknown key{}", suggest(field, "valid keys are", expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Error {
        Error::custom(format_args!("unknown value `{variant}`{}", suggest(variant, "valid values are", expected)))
    }

    fn missing_field(field: &'static str) -> Error {
        Error::custom(format_args!("missing key `{field}`"))
    }
}

/// Suggests the nearest name, or lists all of them if none is near.
pub(crate) fn suggest(wrong: &str, all_are: &str, names: &[&str]) -> String {
    let near = did_you_mean(wrong, names.iter().copied());
    match names {
        _ if !near.is_empty() => near,
        [] => "; this table has no keys".into(),
        _ => format!("; {all_are} {}", names.join(", ")),
    }
}

#[derive(Clone, Copy)]
struct De<'de>(&'de Node);

impl<'de> De<'de> {
    fn mismatch(self, expected: &str) -> Error {
        Error {
            message: format!("expected {expected}, found {}", self.0.describe()),
            origin: Some(self.0.origin.clone()),
            path: Vec::new(),
        }
    }

    fn map<V: Visitor<'de>>(self, table: &'de Table, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries { rest: table.iter(), value: None }).map_err(|e| e.at(&self.0.origin))
    }

    /// The error for a table where an array of tables is expected. An override of an element's key makes one if the file
    /// has no such array.
    fn not_an_array(self, table: &Table) -> Error {
        let mut error = self.mismatch("an array");
        let Origin { source, position } = &self.0.origin;
        let key = source.split('=').next().unwrap_or_default().replace('[', ".").replace(']', "");
        match table.keys().next() {
            Some(element) if position.is_none() && key.contains(&format!(".{element}")) => {
                error.message = format!(
                    "there is no element `{element}`, because the scenario does not list any; set all of them, as `[{{ ... }}]`"
                );
            }
            _ => error.message += "; put it in brackets, as `[{ ... }]`",
        }
        error
    }

    fn whole(self, most: u64) -> Result<u64, Error> {
        match self.0.value {
            Value::Int(n) if u64::try_from(n).is_ok_and(|n| n <= most) => Ok(n as u64),
            _ => Err(self.mismatch(&format!("a whole number from 0 to {}", most.min(i64::MAX as u64)))),
        }
    }
}

impl<'de> Deserializer<'de> for De<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.0.value {
            Value::Table(table) => return self.map(table, visitor),
            Value::Array(items) => {
                let mut elements = Elements { rest: items.iter().enumerate() };
                let result = visitor.visit_seq(&mut elements);
                match (result, elements.rest.next()) {
                    (Ok(_), Some((_, extra))) => {
                        let surplus = format!("unexpected additional element: {}", extra.describe());
                        Err(<Error as de::Error>::custom(surplus).at(&extra.origin))
                    }
                    (result, _) => result,
                }
            }
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Int(n) => visitor.visit_i64(*n),
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Date(_) => Err(<Error as de::Error>::invalid_type(Unexpected::Other("a date"), &visitor)),
        };
        result.map_err(|e| e.at(&self.0.origin))
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.whole(u64::from(u8::MAX))?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.whole(u64::from(u16::MAX))?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.whole(u64::from(u32::MAX))?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.whole(u64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Float(x) => visitor.visit_f64(x),
            Value::Int(n) => visitor.visit_f64(n as f64),
            _ => Err(self.mismatch("a number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Bool(b) => visitor.visit_bool(b),
            _ => Err(self.mismatch("`true` or `false`")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_str(text),
            _ => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Array(_) => self.deserialize_any(visitor),
            Value::Table(ref table) => Err(self.not_an_array(table)),
            _ => Err(self.mismatch("an array")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        match &self.0.value {
            Value::Array(items) if items.len() >= length => self.deserialize_any(visitor),
            Value::Array(items) => {
                let message = format!("expected an array of {length} values, found {}", items.len());
                Err(<Error as de::Error>::custom(message).at(&self.0.origin))
            }
            _ => Err(self.mismatch(&format!("an array of {length} values"))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.value {
            Value::Table(table) => self.map(table, visitor),
            _ => Err(self.mismatch("a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let bare =
            |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let (kind, name) = match &self.0.value {
            Value::Table(table) => match table.get("kind") {
                Some(kind) => (kind, kind.text().ok_or_else(|| De(kind).mismatch("a string").inside(kind_step()))?),
                None => {
                    let missing = format!("missing key `kind`: one of {}", variants.join(", "));
                    return Err(<Error as de::Error>::custom(missing).at(&self.0.origin));
                }
            },
            Value::Text(text) if !bare(text) || variants.contains(&text.as_str()) => (self.0, text.as_str()),
            _ => (self.0, ""),
        };
        let bare = name.is_empty() && !matches!(&self.0.value, Value::Table(_));
        let name = if bare { variants.first().copied().unwrap_or("") } else { name };
        visitor.visit_enum(Kind { of: self, kind, name, variants, bare }).map_err(|e| e.at(&self.0.origin))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char str bytes byte_buf unit unit_struct newtype_struct tuple_struct
        identifier ignored_any
    }
}

fn kind_step() -> Step {
    Step::Key("kind".into())
}

struct Entries<'de> {
    rest: std::collections::btree_map::Iter<'de, String, Node>,
    value: Option<(&'de String, &'de Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, node)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key, node));
        let name: StrDeserializer<'_, Error> = key.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|e| e.at(&node.key).inside(Step::Key(key.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (key, node) = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(De(node)).map_err(|e| e.inside(Step::Key(key.clone())))
    }
}

struct Elements<'de> {
    rest: core::iter::Enumerate<core::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for &mut Elements<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((i, node)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(De(node)).map(Some).map_err(|e| e.inside(Step::Index(i)))
    }
}

/// The variant `name` of the value `of`; `kind` is the node with the variant's name.
struct Kind<'de> {
    of: De<'de>,
    kind: &'de Node,
    name: &'de str,
    variants: &'static [&'static str],
    /// Whether the value itself stands for the only key of the variant.
    bare: bool,
}

impl<'de> Kind<'de> {
    fn mismatch(&self) -> Error {
        self.of.mismatch(&format!("a string or the `kind` of a table, one of {}", self.variants.join(", ")))
    }
}

impl<'de> EnumAccess<'de> for Kind<'de> {
    type Error = Error;
    type Variant = Kind<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Kind<'de>), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        let in_table = self.of.0.table().is_some();
        let variant = seed.deserialize(name).map_err(|e| {
            let e = e.at(&self.kind.origin);
            if in_table { e.inside(kind_step()) } else { e }
        })?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Kind<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        if self.bare {
            return Err(match self.of.0.text() {
                Some(text) => <Error as de::Error>::unknown_variant(text, self.variants),
                None => self.mismatch(),
            });
        }
        match self.of.0.table().and_then(|table| table.iter().find(|(key, _)| *key != "kind")) {
            Some((key, node)) => {
                let none = format!("unknown key; `{}` has no keys", self.name);
                Err(<Error as de::Error>::custom(none).at(&node.key).inside(Step::Key(key.clone())))
            }
            None => Ok(()),
        }
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        if self.bare {
            let [only] = fields else { return Err(self.mismatch()) };
            return visitor.visit_map(Bare { key: Some(only), node: self.of.0 });
        }
        match &self.of.0.value {
            Value::Table(table) => {
                let fields = Fields { inner: Entries { rest: table.iter(), value: None } };
                visitor.visit_map(fields)
            }
            _ => visitor.visit_map(Bare { key: None, node: self.of.0 }),
        }
        .map_err(|e| e.at(&self.of.0.origin))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Inner(self))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.of.deserialize_any(visitor)
    }
}

/// The struct that a variant consists of: the same as a variant with the struct's keys.
struct Inner<'de>(Kind<'de>);

impl<'de> Deserializer<'de> for Inner<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.of.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.struct_variant(fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The entries of a table except `kind`.
struct Fields<'de> {
    inner: Entries<'de>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let mut ahead = self.inner.rest.clone();
        if ahead.next().is_some_and(|(key, _)| key == "kind") {
            self.inner.rest = ahead;
        }
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A table of at most one key, made from a value that is not a table.
struct Bare<'de> {
    key: Option<&'static str>,
    node: &'de Node,
}

impl<'de> MapAccess<'de> for Bare<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(key) = self.key.take() else { return Ok(None) };
        let name: StrDeserializer<'_, Error> = key.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(De(self.node))
    }
}

/// Returns the keys of the struct `T`.
pub(crate) fn keys_of<T: de::DeserializeOwned>() -> &'static [&'static str] {
    struct Probe<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Probe<'_> {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(de::Error::custom("only structs have keys"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Error> {
            *self.0 = fields;
            Err(de::Error::custom("the keys are known now"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut keys: &'static [&'static str] = &[];
    // The probe always fails: it reads nothing.
    let _ = T::deserialize(Probe(&mut keys));
    keys
}
