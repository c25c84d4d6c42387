//! The JSON Schema of scenario files, generated from the structs.
//!
//! The structs cannot express some rules, which are added afterwards: a choice may be written as its name alone, a bare
//! quantity may stand for its first kind, and a string with a parameter may stand for any value. Keys are required only
//! in elements of arrays and in choices: a table's other keys may come from an included file.

use crate::model::FileKeys;
use crate::{Scenario, builtin, older};
use schemars::schema_for;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Aliases of kinds, which schemars does not know.
const ALIASES: &[(&str, &str)] = &[("new-reno", "reno")];

/// Returns the JSON Schema (draft 2020-12) of a scenario file.
pub fn schema() -> Value {
    let mut root = described();
    let Some(definitions) = root.get_mut("$defs").and_then(Value::as_object_mut) else { return root };
    for definition in definitions.values_mut() {
        allow_short_forms(definition);
    }
    definitions.insert(
        "Parameter".into(),
        json!({ "type": "string", "pattern": "\\$\\{[^}]*\\}", "description": "A string with the value of a parameter." }),
    );
    for table in ["Dumbbell", "Radio"] {
        if let Some(table) = definitions.get_mut(table).and_then(Value::as_object_mut) {
            table.remove("required");
        }
    }
    let older_tables = older::tables(definitions);
    if let Some(root) = root.as_object_mut() {
        root.remove("required");
        if let Some(keys) = root.get_mut("properties").and_then(Value::as_object_mut) {
            keys.extend(older_tables);
        }
    }
    allow_parameters(&mut root);
    root
}

/// Returns the keys that a scenario may have as they are written for changes, with `*` for each element of an array: `links.*.delay`;
/// and the parameters of the built-in scenarios. Sorted.
pub fn keys() -> Vec<String> {
    /// Adds the keys of `value`, whose own path is `path`; `within` are the definitions that it is part of, which may be recursive.
    fn add(
        value: &Value,
        path: &str,
        definitions: &Map<String, Value>,
        within: &mut Vec<String>,
        keys: &mut BTreeSet<String>,
    ) {
        if let Some(name) = value["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"))
            && let Some(definition) = definitions.get(name).filter(|_| !within.iter().any(|one| one == name))
        {
            within.push(name.to_owned());
            add(definition, path, definitions, within, keys);
            within.pop();
        }
        let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|choice| value[choice].as_array()).flatten();
        choices.for_each(|choice| add(choice, path, definitions, within, keys));
        if value["items"].is_object() {
            add(&value["items"], &format!("{path}.*"), definitions, within, keys);
        }
        for (key, of) in value["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            keys.insert(path.clone());
            add(of, &path, definitions, within, keys);
        }
    }
    let (root, mut keys) = (described(), BTreeSet::new());
    let none = Map::new();
    add(&root, "", root["$defs"].as_object().unwrap_or(&none), &mut Vec::new(), &mut keys);
    for file in builtin::list() {
        let table: toml::Table = file.text.parse().unwrap_or_default();
        keys.extend(
            table.get("parameters").and_then(toml::Value::as_table).into_iter().flatten().map(|(name, _)| name.clone()),
        );
    }
    keys.into_iter().collect()
}

/// Returns the structs' own schema, as shown in the reference.
pub(crate) fn described() -> Value {
    let mut root = schema_for!(Scenario).to_value();
    let file_keys = schema_for!(FileKeys).to_value();
    if let (Some(keys), Some(more)) = (root["properties"].as_object_mut(), file_keys["properties"].as_object()) {
        keys.extend(more.clone());
    }
    remove_null(&mut root);
    root
}

/// Removes null from types: TOML has no null; an optional key is left out.
fn remove_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_null),
        Value::Object(map) => {
            // Serde's "not serialized" is irrelevant for a file.
            map.remove("writeOnly");
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|o| o["type"] != "null");
                if let [Value::Object(only)] = options.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(remove_null);
        }
        _ => {}
    }
}

/// One kind of a choice.
pub(crate) struct Kind<'a> {
    pub(crate) name: &'a str,
    /// The keys other than `kind`.
    pub(crate) keys: Vec<(&'a String, &'a Value)>,
    /// The required keys.
    pub(crate) needed: Vec<&'a str>,
    pub(crate) schema: &'a Value,
}

/// Returns the kinds of a choice, if the definition is one.
pub(crate) fn kinds(definition: &Value) -> Option<Vec<Kind<'_>>> {
    let kind = |schema| {
        let schema: &Value = schema;
        let properties = schema["properties"].as_object()?;
        let needed = schema["required"].as_array()?.iter().filter_map(Value::as_str);
        Some(Kind {
            name: properties.get("kind")?["const"].as_str()?,
            keys: properties.iter().filter(|(key, _)| *key != "kind").collect(),
            needed: needed.filter(|key| *key != "kind").collect(),
            schema,
        })
    };
    definition["oneOf"].as_array()?.iter().map(kind).collect()
}

fn allow_short_forms(definition: &mut Value) {
    let Some(kinds) = kinds(definition) else { return };
    let alias_of = |kind: &Kind<'_>| ALIASES.iter().find(|(name, _)| kind.name == *name).map(|(_, alias)| *alias);
    let names = kinds.iter().filter(|kind| kind.needed.is_empty()).flat_map(|kind| [Some(kind.name), alias_of(kind)]);
    let names: Vec<&str> = names.flatten().collect();
    let mut options = Vec::new();
    if !names.is_empty() {
        options.push(json!({ "type": "string", "enum": names }));
    }
    if let Some(first) = kinds.first()
        && let [(_, only)] = first.keys.as_slice()
    {
        options.push((*only).clone());
    }
    options.extend(kinds.iter().map(|kind| {
        let mut option = kind.schema.clone();
        if let Some(alias) = alias_of(kind) {
            option["properties"]["kind"] = json!({ "type": "string", "enum": [kind.name, alias] });
        }
        option
    }));
    if let Some(map) = definition.as_object_mut() {
        map.remove("oneOf");
        map.insert("anyOf".into(), options.into());
    }
}

/// Allows a string with a parameter for each key's value and each element.
fn allow_parameters(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(allow_parameters),
        Value::Object(map) => {
            map.values_mut().for_each(allow_parameters);
            if let Some(Value::Object(keys)) = map.get_mut("properties") {
                let file_keys = ["kind", "include", "parameters", "sweep"];
                keys.iter_mut()
                    .filter(|(key, _)| !file_keys.contains(&key.as_str()))
                    .for_each(|(_, v)| or_parameter(v));
            }
            if let Some(item) = map.get_mut("items") {
                or_parameter(item);
            }
            if let Some(Value::Array(items)) = map.get_mut("prefixItems") {
                items.iter_mut().for_each(or_parameter);
            }
        }
        _ => {}
    }
}

fn or_parameter(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    let any_text = map.get("type").is_some_and(|t| t == "string") && !map.contains_key("pattern");
    if any_text {
        return;
    }
    let mut outside = Map::new();
    for key in ["description", "default"] {
        if let Some(value) = map.remove(key) {
            outside.insert(key.into(), value);
        }
    }
    let inside = Value::Object(core::mem::take(map));
    outside.insert("anyOf".into(), json!([inside, { "$ref": "#/$defs/Parameter" }]));
    *map = outside;
}

#[cfg(test)]
mod tests;
