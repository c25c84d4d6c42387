//! The values of a file with their positions: TOML, before it is interpreted as a scenario.

use crate::error::{Fault, Origin, did_you_mean};
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
pub(crate) use units::check::Step;

/// Maximum number of names in a key path, so that deep nesting cannot exhaust the stack.
const MAX_DEPTH: usize = 32;

pub(crate) type Table = BTreeMap<String, Node>;

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    /// The position of its key; for an element of an array, the position of the value itself.
    pub(crate) key: Origin,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Table(Table),
    Array(Vec<Node>),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Date(String),
}

impl Node {
    pub(crate) fn new(origin: &Origin, value: Value) -> Node {
        Node { origin: origin.clone(), key: origin.clone(), value }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }

    /// Returns the key `name` of a table.
    pub(crate) fn name(&self) -> Option<&str> {
        self.table()?.get("name")?.text()
    }

    /// Returns a single value as JSON; otherwise its text.
    pub(crate) fn scalar(&self) -> serde_json::Value {
        match &self.value {
            Value::Int(n) => (*n).into(),
            Value::Float(x) => (*x).into(),
            Value::Bool(b) => (*b).into(),
            _ => self.to_string().into(),
        }
    }

    /// Describes the value in an error message.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Table(_) => "a table".into(),
            Value::Array(_) => "an array".into(),
            Value::Text(text) => format!("the string \"{text}\""),
            Value::Int(_) | Value::Float(_) => format!("the number {self}"),
            Value::Bool(b) => format!("`{b}`"),
            Value::Date(_) => "a date".into(),
        }
    }
}

/// Formats the value as a label or for substitution into a string.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) | Value::Date(text) => f.write_str(text),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) if *x != 0.0 && !(1e-3..1e15).contains(&x.abs()) => write!(f, "{x:e}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Table(table) => {
                if let Some(name) = self.name() {
                    return f.write_str(name);
                }
                // The kind describes a table best.
                let rest = table.iter().filter(|(key, _)| *key != "kind");
                if let Some(kind) = table.get("kind") {
                    write!(f, "{kind}")?;
                    if table.len() > 1 {
                        f.write_str(" ")?;
                    }
                }
                for (i, (key, item)) in rest.enumerate() {
                    write!(f, "{}{key}={item}", if i == 0 { "" } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

/// Parses TOML. `source` is the name of the file in positions.
pub(crate) fn parse(source: &str, text: &str) -> Result<Node, Fault> {
    let reader = Reader {
        source: source.into(),
        text,
        lines: core::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect(),
    };
    let document = DeTable::parse(text).map_err(|e| {
        let origin = reader.origin(e.span().map_or(0, |s| s.start));
        Fault::new(Some(&origin), "", format!("not TOML: {}", e.message().replace('\n', ", ")))
    })?;
    let origin = reader.origin(0);
    Ok(Node::new(&origin, Value::Table(reader.table(document.get_ref())?)))
}

struct Reader<'a> {
    source: Arc<str>,
    text: &'a str,
    /// The offset at which each line starts.
    lines: Vec<usize>,
}

impl Reader<'_> {
    fn origin(&self, at: usize) -> Origin {
        let line = self.lines.partition_point(|&start| start <= at);
        let start = self.lines[line - 1];
        let column = 1 + self.text.get(start..at).map_or(0, |before| before.chars().count());
        Origin { source: self.source.clone(), position: Some((line as u32, column as u32)) }
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Table, Fault> {
        let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            let mut node = self.node(value).map_err(|fault| fault.inside(name))?;
            node.key = self.origin(key.span().start);
            Ok((name.to_string(), node))
        };
        table.iter().map(entry).collect()
    }

    fn node(&self, value: &toml::Spanned<DeValue<'_>>) -> Result<Node, Fault> {
        let origin = self.origin(value.span().start);
        let out_of_range = |what: &str| {
            let number = if what.len() > 30 { "the number".to_owned() } else { format!("the number {what}") };
            let message = format!("{number} is out of range: must be from {} to {}", i64::MIN, i64::MAX);
            Fault::new(Some(&origin), "", message)
        };
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(n) => {
                Value::Int(i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| out_of_range(n.as_str()))?)
            }
            DeValue::Float(x) => Value::Float(x.as_str().parse().map_err(|_| out_of_range(x.as_str()))?),
            DeValue::Boolean(b) => Value::Bool(*b),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => {
                let item = |(i, item)| self.node(item).map_err(|fault| fault.inside(&format!("[{i}]")));
                Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table)?),
        };
        Ok(Node::new(&origin, value))
    }
}

/// Merges `over` into `base`: tables are merged key by key, any other value is replaced. A table with a `kind` is
/// replaced as a whole, because the keys of one kind have no meaning for another.
pub(crate) fn merge(base: &mut Node, over: Node) {
    match (&mut base.value, over.value) {
        (Value::Table(into), Value::Table(from)) if !from.contains_key("kind") => {
            for (key, node) in from {
                match into.get_mut(&key) {
                    Some(old) => merge(old, node),
                    None => {
                        into.insert(key, node);
                    }
                }
            }
        }
        (value, new) => {
            *value = new;
            base.origin = over.origin;
            base.key = over.key;
        }
    }
}

/// Formats the path as users write it: `flows[0].cc`.
pub(crate) fn show(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text = text + "." + key,
            Step::Index(i) => text = format!("{text}[{i}]"),
        }
    }
    text
}

/// Returns the position of the value at `path`, or of the nearest enclosing one.
pub(crate) fn origin_at<'a>(root: &'a Node, path: &[Step]) -> &'a Origin {
    let mut node = root;
    for step in path {
        let next = match (step, &node.value) {
            (Step::Key(key), Value::Table(table)) => table.get(key),
            (Step::Index(i), Value::Array(items)) => items.get(*i),
            _ => None,
        };
        match next {
            Some(inner) => node = inner,
            None => break,
        }
    }
    &node.origin
}

/// Sets the value at a dotted path. A step into an array is an index, an element's name, or `*` for all of them. A step
/// into a string turns it into a table of that kind. The error is a message.
pub(crate) fn set(root: &mut Node, path: &str, value: &Node) -> Result<(), String> {
    // Errors show `flows[0].cc`, so this form is accepted as well as `flows.0.cc`.
    let dotted = path.replace('[', ".").replace(']', "");
    let steps: Vec<&str> = dotted.split('.').map(str::trim).collect();
    if steps.len() > MAX_DEPTH {
        return Err(format!("a key may have at most {MAX_DEPTH} parts"));
    }
    if steps.contains(&"") {
        return Err("a key consists of names joined by dots, such as `dumbbell.rate`".into());
    }
    set_steps(root, &steps, value)
}

fn set_steps(node: &mut Node, steps: &[&str], value: &Node) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    if matches!(&node.value, Value::Text(_)) {
        let kind = Node::new(&node.origin, node.value.clone());
        node.origin = value.origin.clone();
        node.value = Value::Table(Table::from([("kind".to_owned(), kind)]));
    }
    match &mut node.value {
        Value::Table(table) => {
            let empty = Node::new(&value.origin, Value::Table(Table::new()));
            set_steps(table.entry((*step).to_owned()).or_insert(empty), rest, value)
        }
        Value::Array(items) if *step == "*" => items.iter_mut().try_for_each(|item| set_steps(item, rest, value)),
        Value::Array(items) => {
            let count = items.len();
            let named = |item: &Node| item.table().and_then(|t| t.get("name")).and_then(Node::text) == Some(*step);
            let index = step.parse().ok().or_else(|| items.iter().position(named));
            if let Some(item) = index.and_then(|i: usize| items.get_mut(i)) {
                return set_steps(item, rest, value);
            }
            let names = items.iter().filter_map(|i| i.table()?.get("name")?.text());
            let hint = did_you_mean(step, names);
            Err(format!("`{step}` is neither an element's name nor an index below {count}{hint}"))
        }
        _ => Err(format!("`{step}`: {} has no keys", node.describe())),
    }
}
