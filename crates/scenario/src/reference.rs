//! The reference page of all keys, generated from the schema.

use crate::schema::{described, kinds};
use core::fmt::Write;
use serde_json::Value;

/// The types of quantities: their names in the schema and in the reference, and examples.
const AMOUNTS: &[(&str, &str, &str)] = &[
    ("Span", "time", "`\"30 ms\"`: h, min, s, ms, us, ns"),
    ("Bytes", "amount", "`\"500 kB\"`: GB, MB, kB, B, or GiB, MiB, KiB"),
    ("Rate", "rate", "`\"35 Mbit/s\"`: Gbit/s, Mbit/s, kbit/s, bit/s"),
];

/// Returns a Markdown page with each key's type, default and meaning.
pub fn reference_markdown() -> String {
    let root = described();
    let mut page = String::from("# Scenario keys\n\n");
    page += "A choice is written `\"name\"`, or `{ kind = \"name\", ... }` if it has keys of its own. Quantities are strings with a unit:\n";
    for (_, name, example) in AMOUNTS {
        write_to(&mut page, format_args!("- {name}: {example}\n"));
    }
    page += "\n## Top level\n\n";
    keys_table(&mut page, &root);
    let mut order = Vec::new();
    mentioned(&root["properties"], &root, &mut order);
    for name in order {
        let definition = &root["$defs"][&name];
        write_to(&mut page, format_args!("\n## {name}\n\n{}\n\n", text_of(definition)));
        match kinds(definition) {
            Some(kinds) => {
                for kind in kinds {
                    write_to(&mut page, format_args!("- `{}`: {}\n", kind.name, text_of(kind.schema)));
                    for (key, value) in kind.keys {
                        let default = default_of(value, kind.needed.contains(&key.as_str()));
                        let (of, text) = (type_of(value), text_of(value));
                        write_to(&mut page, format_args!("    - `{key}` ({of}, {default}): {text}\n"));
                    }
                }
            }
            None if definition["properties"].is_object() => keys_table(&mut page, definition),
            None => {
                for option in definition["oneOf"].as_array().into_iter().flatten() {
                    let name = option["const"].as_str().unwrap_or_default();
                    write_to(&mut page, format_args!("- `{name}`: {}\n", text_of(option)));
                }
            }
        }
    }
    page
}

fn write_to(page: &mut String, text: core::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a String takes any text");
}

fn keys_table(page: &mut String, of: &Value) {
    *page += "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
    let needed: Vec<&str> = of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in of["properties"].as_object().into_iter().flatten() {
        let (kind, default) = (type_of(value), default_of(value, needed.contains(&key.as_str())));
        write_to(page, format_args!("| `{key}` | {kind} | {default} | {} |\n", text_of(value)));
    }
}

fn reference_of(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Adds the definitions that `value` references, each before those it references itself.
fn mentioned(value: &Value, root: &Value, order: &mut Vec<String>) {
    if let Some(name) = reference_of(value)
        && !AMOUNTS.iter().any(|(amount, ..)| *amount == name)
        && !order.iter().any(|o| o == name)
    {
        order.push(name.to_owned());
        mentioned(&root["$defs"][name], root, order);
    }
    match value {
        Value::Array(items) => items.iter().for_each(|v| mentioned(v, root, order)),
        Value::Object(map) => map.values().for_each(|v| mentioned(v, root, order)),
        _ => {}
    }
}

/// Returns a description as one line.
fn text_of(value: &Value) -> String {
    value["description"]
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn default_of(value: &Value, needed: bool) -> String {
    match &value["default"] {
        _ if needed => "required".into(),
        Value::Null => "none".into(),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) if items[0].is_object() => "see below".into(),
        Value::Object(map) if map.is_empty() => "none".into(),
        // A choice without keys of its own is its name; a table's defaults are listed with the table's keys.
        Value::Object(map) => match map.get("kind") {
            Some(Value::String(kind)) => format!("`{}`", toml_of(kind, map)),
            _ => "see below".into(),
        },
        Value::String(text) if text.is_empty() => "none".into(),
        other => format!("`{other}`"),
    }
}

fn toml_of(kind: &str, map: &serde_json::Map<String, Value>) -> String {
    let rest: Vec<_> = map.iter().filter(|(key, _)| *key != "kind").map(|(k, v)| format!("{k} = {v}")).collect();
    match rest.as_slice() {
        [] => format!("\"{kind}\""),
        rest => format!("{{ kind = \"{kind}\", {} }}", rest.join(", ")),
    }
}

fn type_of(value: &Value) -> String {
    if let Some(name) = reference_of(value) {
        let amount = AMOUNTS.iter().find(|(amount, ..)| *amount == name);
        return amount.map_or_else(|| format!("[{name}](#{})", name.to_lowercase()), |(_, name, _)| (*name).to_owned());
    }
    match value["type"].as_str() {
        Some("array") => match value["prefixItems"].as_array() {
            Some(items) => format!("[{}]", items.iter().map(type_of).collect::<Vec<_>>().join(", ")),
            None => match value["minItems"].as_u64().filter(|least| value["maxItems"] == *least) {
                Some(exactly) => format!("[{}]", vec![type_of(&value["items"]); exactly as usize].join(", ")),
                None => format!("array of {}", type_of(&value["items"])),
            },
        },
        Some("string") => "text".into(),
        Some("integer") => "whole number".into(),
        Some("number") => "number".into(),
        Some("boolean") => "true or false".into(),
        _ => "table".into(),
    }
}
