//! Wrong values of each key of the schema, and the messages about them.

use super::*;
use std::collections::BTreeSet;
use toml::Value as Toml;

/// Words that mean something to Rust's programmers only.
const RUST: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "str",
    "String", "bool", "struct", "enum", "variant", "newtype", "tuple", "map", "sequence", "Option", "Vec", "BTreeMap",
    "borrowed", "integer", "floating",
];

/// What is wrong for at least some keys. The last ones are numbers that no key takes.
fn wrong_values() -> Vec<Toml> {
    let texts = ["", "8 ms", "8 kB", "8 Mbit/s", "8", "-1 ms", "1e300 s", "1e300 B", "nan s", "inf bit/s", "much"];
    let long = Toml::Integer(i64::MAX);
    let mut values: Vec<Toml> = texts.iter().map(|text| Toml::String((*text).into())).collect();
    values.extend([Toml::Boolean(true), Toml::Array(Vec::new()), Toml::Table(toml::Table::new())]);
    values.extend([
        Toml::Array(vec![long.clone(); 9]),
        Toml::Table(toml::Table::from_iter([("x".into(), long.clone())])),
    ]);
    values.extend([Toml::Integer(-1), Toml::Integer(i64::MIN), Toml::Float(0.5), Toml::Float(-1e-300), long]);
    values.extend([1e300, -1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Toml::Float));
    values
}

/// Whether no key takes this value.
fn is_absurd(value: &Toml) -> bool {
    matches!(value, Toml::Float(x) if x.abs() > 1e299 || x.is_nan())
}

struct Walk {
    root: Value,
    /// The keys that were tried.
    keys: BTreeSet<String>,
    complaints: Vec<String>,
}

impl Walk {
    fn definition<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => &self.root["$defs"][name],
            None => schema,
        }
    }

    /// A value of this schema, with its required keys.
    fn sample(&self, schema: &Value) -> Toml {
        match schema["$ref"].as_str() {
            Some("#/$defs/Span") => return Toml::String("10 ms".into()),
            Some("#/$defs/Bytes") => return Toml::String("100 kB".into()),
            Some("#/$defs/Rate") => return Toml::String("1 Mbit/s".into()),
            _ => {}
        }
        let schema = self.definition(schema);
        if let Some(first) = kinds(schema).and_then(|kinds| kinds.first().map(|kind| kind.name.to_owned())) {
            let of = kinds(schema).expect("a choice").remove(0);
            return self.table(of.schema, Some(&first));
        }
        if let Some(name) = schema["oneOf"][0]["const"].as_str() {
            return Toml::String(name.into());
        }
        match schema["type"].as_str() {
            Some("string") => Toml::String("a".into()),
            Some("boolean") => Toml::Boolean(true),
            Some("integer") => Toml::Integer(1),
            Some("number") => Toml::Float(1.0),
            Some("array") => match schema["prefixItems"].as_array() {
                Some(items) => Toml::Array(items.iter().map(|item| self.sample(item)).collect()),
                None => {
                    Toml::Array(vec![self.sample(&schema["items"]); schema["minItems"].as_u64().unwrap_or(1) as usize])
                }
            },
            _ => self.table(schema, None),
        }
    }

    /// A table with its required keys.
    fn table(&self, schema: &Value, kind: Option<&str>) -> Toml {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut table: toml::Table = required
            .filter(|key| *key != "kind")
            .map(|key| (key.to_owned(), self.sample(&schema["properties"][key])))
            .collect();
        if let Some(kind) = kind {
            table.insert("kind".into(), Toml::String(kind.into()));
        }
        Toml::Table(table)
    }

    /// Tries wrong values of what `schema` describes, and of all inside it. `put` returns a file with the value in its place.
    fn walk(&mut self, schema: &Value, path: &str, put: &dyn Fn(Toml) -> toml::Table) {
        self.keys.insert(path.to_owned());
        for value in wrong_values() {
            self.try_one(&put(value.clone()), path, &value);
        }
        let schema = &self.definition(schema).clone();
        if let Some(kinds) = kinds(schema) {
            for kind in kinds {
                for (key, inner) in &kind.keys {
                    self.walk_key(&self.table(kind.schema, Some(kind.name)), key, inner, path, put);
                }
            }
            return;
        }
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            self.walk_key(&self.table(schema, None), key, inner, path, put);
        }
        if schema["additionalProperties"].is_object() {
            self.walk_key(&Toml::Table(toml::Table::new()), "cell-1", &schema["additionalProperties"], path, put);
        }
        if let Some(items) = schema["prefixItems"].as_array() {
            for (i, item) in items.iter().enumerate() {
                let sample = self.sample(schema);
                let put_item = |value: Toml| {
                    let Toml::Array(mut all) = sample.clone() else { unreachable!() };
                    all[i] = value;
                    put(Toml::Array(all))
                };
                self.walk(item, &format!("{path}[{i}]"), &put_item);
            }
        } else if schema["items"].is_object() {
            let sample = self.sample(schema);
            let put_item = |value: Toml| {
                let Toml::Array(mut all) = sample.clone() else { unreachable!() };
                all[0] = value;
                put(Toml::Array(all))
            };
            self.walk(&schema["items"], &format!("{path}[0]"), &put_item);
        }
    }

    fn walk_key(&mut self, table: &Toml, key: &str, schema: &Value, path: &str, put: &dyn Fn(Toml) -> toml::Table) {
        let put_key = |value: Toml| {
            let Toml::Table(mut table) = table.clone() else { unreachable!() };
            table.insert(key.to_owned(), value);
            put(Toml::Table(table))
        };
        self.walk(schema, &format!("{path}.{key}"), &put_key);
    }

    fn try_one(&mut self, file: &toml::Table, path: &str, value: &Toml) {
        let text = toml::to_string(file).expect("TOML");
        let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        let error = match Scenario::load("s.toml", &[], &|path: &str| {
            if path == "s.toml" { Ok(text.clone()) } else { none(path) }
        }) {
            Err(error) => error,
            Ok(_) => {
                if is_absurd(value) {
                    self.complaints.push(format!("{path} = {value:?} is accepted"));
                }
                return;
            }
        };
        let mut is_named = false;
        for fault in error.faults() {
            let message = fault.to_string();
            let mut words = fault.message.split(|c: char| !c.is_alphanumeric());
            let digits = message.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
            let has_place = fault.origin.as_ref().is_some_and(|origin| origin.position.is_some());
            if words.any(|word| RUST.contains(&word)) || message.contains('\n') || digits > 19 || !has_place {
                self.complaints.push(format!("{path} = {value:?}: {message}"));
            }
            // The table `[tcp]` is part of each flow.
            let key = fault.key.strip_prefix("flows[0].").filter(|_| path.starts_with("tcp")).unwrap_or(&fault.key);
            is_named |= key.starts_with(path) || path.starts_with(key) && !key.is_empty();
        }
        if is_absurd(value) && !is_named {
            self.complaints.push(format!("{path} = {value:?} is not named: {error}"));
        }
    }
}

#[test]
fn a_wrong_value_of_any_key_gets_one_line_that_names_the_key_and_no_type_of_rust() {
    let root = described();
    let mut walk = Walk { root: root.clone(), keys: BTreeSet::new(), complaints: Vec::new() };
    for (key, schema) in root["properties"].as_object().expect("keys") {
        if ["include", "parameters", "sweep"].contains(&key.as_str()) {
            continue;
        }
        let put = |value: Toml| {
            let mut file: toml::Table = toml::from_str("duration = \"10 s\"\n[[flows]]").expect("TOML");
            if !["radio", "dumbbell"].contains(&key.as_str()) {
                file.insert("dumbbell".into(), toml::from_str("rate = \"1 Mbit/s\"\nrtt = \"10 ms\"").expect("TOML"));
            }
            file.insert(key.clone(), value);
            file
        };
        walk.walk(schema, key, &put);
    }
    for key in [
        "radio.carriers.nr.mac.drx.retransmission",
        "radio.ues[0].mobility.points[0][1][0]",
        "radio.buildings[0].x[0]",
        "radio.cells[0].layout.sites",
    ] {
        assert!(walk.keys.contains(key), "{key} is not among the {} keys", walk.keys.len());
    }
    assert!(walk.complaints.is_empty(), "{} complaints:\n{}", walk.complaints.len(), walk.complaints.join("\n"));
}
