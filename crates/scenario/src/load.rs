//! Expands files and overrides to the points of a sweep: include, override, sweep, substitute, deserialize, check.

use crate::check::{self, Flows};
use crate::error::{Error, Fault, Origin, did_you_mean};
use crate::faults::{Check, unknown};
use crate::older::{self, Forms};
use crate::tree::{self, Node, Step, Table, Value};
use crate::{Scenario, Tcp, builtin, de, priorities, replicates, topology, without_effect};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Maximum depth of nested includes.
const MAX_INCLUDE_DEPTH: usize = 16;
/// Maximum number of files in a scenario.
const MAX_FILES: usize = 256;
/// Maximum size of a scenario file in bytes.
const MAX_FILE: usize = 1 << 20;
/// Maximum number of points in a sweep.
const MAX_POINTS: usize = 10_000;
/// Maximum number of values and characters in one point after substitution, and in all points together.
const MAX_POINT_SIZE: usize = 4 << 20;
const MAX_SWEEP_SIZE: usize = 64 << 20;
/// What each UE and flow of an LTE network adds to that count: loading may have created it from a `count` or a `*`.
const EXPANDED_SIZE: usize = 256;

/// Reads scenario files, traces and recorded channels. A closure `Fn(&str) -> io::Result<String>` implements it.
pub trait Files {
    /// Returns the text of the file at `path`: the path given to [`Scenario::load`], or one relative to it.
    fn read(&self, path: &str) -> io::Result<String>;
}

impl<F: Fn(&str) -> io::Result<String>> Files for F {
    fn read(&self, path: &str) -> io::Result<String> {
        self(path)
    }
}

/// Maximum size of any file of a scenario, in bytes: a trace of an hour at 100 Mbit/s has 240 MB.
const LONGEST: u64 = 256 << 20;

/// Reads real files, for [`Scenario::load`]: regular files of up to 256 MB.
///
/// # Errors
/// The system's error, and [`io::ErrorKind::InvalidInput`] for anything longer or not a regular file.
#[allow(clippy::disallowed_methods, reason = "the only function here that reads files; callers opt in")]
pub fn read_file(path: &str) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    // Only regular files are opened: opening a pipe would block until somebody writes to it.
    let refuse = |about: &std::fs::Metadata| {
        if about.is_dir() {
            Err(io::ErrorKind::IsADirectory.into())
        } else if !about.is_file() {
            Err(wrong("not a regular file".to_owned()))
        } else if about.len() > LONGEST {
            Err(wrong(format!("too large: {} MB, at most {} MB allowed", about.len() >> 20, LONGEST >> 20)))
        } else {
            Ok(())
        }
    };
    refuse(&std::fs::metadata(path)?)?;
    let file = std::fs::File::open(path)?;
    // The file may have been replaced since.
    refuse(&file.metadata()?)?;
    let mut text = String::new();
    // Files in /proc and similar file systems do not report their length.
    if io::Read::read_to_string(&mut io::Read::take(file, LONGEST + 1), &mut text)? as u64 > LONGEST {
        return Err(wrong(format!("too large: at most {} MB allowed", LONGEST >> 20)));
    }
    Ok(text)
}

/// A scenario that was read: the points of its sweep, or a single point without a sweep.
#[derive(Clone, Debug)]
pub struct Loaded {
    points: Vec<Point>,
    traces: BTreeMap<String, String>,
    channels: BTreeMap<String, String>,
    warnings: Vec<Fault>,
}

/// One point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The swept keys and their values at this point, for display; empty without a sweep.
    pub label: BTreeMap<String, String>,
    /// The resolved, checked scenario.
    pub scenario: Scenario,
    values: BTreeMap<String, serde_json::Value>,
}

impl Point {
    /// Returns the swept keys and their values at this point, for tables: numbers stay numbers, and compound values
    /// become their label.
    pub fn values(&self) -> BTreeMap<String, serde_json::Value> {
        self.values.clone()
    }
}

impl Loaded {
    /// Returns the points, at least one; the first key of `[sweep]` varies slowest.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether any point writes captures.
    pub fn has_captures(&self) -> bool {
        self.points.iter().any(|point| !point.scenario.record.pcap.is_empty())
    }

    /// Returns the text of a trace file that a link of any point names.
    pub fn trace(&self, file: &str) -> Option<&str> {
        self.traces.get(file).map(String::as_str)
    }

    /// Returns the text of a recorded channel's file that a UE of any point names.
    pub fn channel(&self, file: &str) -> Option<&str> {
        self.channels.get(file).map(String::as_str)
    }

    /// Returns the warnings, such as unused parameters.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }
}

impl Scenario {
    /// Reads the scenario file at `path`, or the built-in scenario of that name, and applies `overrides` (`KEY=VALUE`,
    /// as given to `--set`).
    pub fn load(path: &str, overrides: &[String], files: &impl Files) -> Result<Loaded, Error> {
        load(path, overrides, files, Flows::Needed)
    }

    /// Like [`Scenario::load`], for a network used by real hosts, which may have no flows.
    pub fn load_for_emulation(path: &str, overrides: &[String], files: &impl Files) -> Result<Loaded, Error> {
        load(path, overrides, files, Flows::Optional)
    }

    /// Reads a scenario without a sweep that needs no other file.
    pub fn parse(text: &str) -> Result<Scenario, Error> {
        let none = |_: &str| Err(io::Error::other("files are not available here"));
        let mut gather = Gather::new(&none);
        let root = gather.own("scenario", text, &mut Vec::new())?;
        let mut loaded = expand(root, gather.forms, &[], &none, Flows::Needed)?;
        if loaded.points.len() > 1 {
            return Err(Fault::new(None, "sweep", "a sweep is not allowed here").into());
        }
        Ok(loaded.points.remove(0).scenario)
    }
}

fn load(path: &str, overrides: &[String], files: &impl Files, flows: Flows) -> Result<Loaded, Error> {
    let mut gather = Gather::new(files);
    let root = gather.start(path)?;
    expand(root, gather.forms, overrides, files, flows)
}

struct Gather<'a, F> {
    files: &'a F,
    left: usize,
    forms: Forms,
}

impl<F: Files> Gather<'_, F> {
    fn new(files: &F) -> Gather<'_, F> {
        Gather { files, left: MAX_FILES, forms: Forms::default() }
    }

    fn start(&mut self, path: &str) -> Result<Node, Error> {
        if let Some(text) = builtin::find(path) {
            return Ok(self.own(&format!("built-in {path}"), text, &mut vec![path.to_owned()])?);
        }
        let text = self.files.read(path).map_err(|e| {
            let names = builtin::list().iter().map(|b| b.name);
            Fault::new(None, "", format!("cannot read `{path}`: {}{}", reason(&e), did_you_mean(path, names)))
        })?;
        Ok(self.own(path, &text, &mut vec![path.to_owned()])?)
    }

    /// Returns the tree of one file, merged onto the files it includes. `chain` lists the files being read.
    fn own(&mut self, source: &str, text: &str, chain: &mut Vec<String>) -> Result<Node, Fault> {
        if text.len() > MAX_FILE {
            return Err(Fault::new(None, "", format!("{source}: larger than {MAX_FILE} bytes")));
        }
        let mut own = tree::parse(source, text)?;
        let include = own.table_mut().and_then(|table| table.remove("include"));
        let mut all = Node::new(&own.origin, Value::Table(Table::new()));
        for (i, name) in names(include.as_ref())?.into_iter().enumerate() {
            let fault = |message: String| Fault::new(Some(&name.origin), format!("include[{i}]"), message);
            let path = name.text().expect("names are texts");
            tree::merge(&mut all, self.include(source, path, chain, &fault)?);
        }
        self.forms.file(&mut own)?;
        // What a file sweeps it sweeps instead of the files that it includes, in whatever form.
        let sweep = own.table().and_then(|table| table.get("sweep")?.table());
        sweep.map(|sweep| axes(sweep, "")).unwrap_or_default().iter().for_each(|axis| unsweep_key(&mut all, axis));
        older::merge(&mut all, own);
        Ok(all)
    }

    fn include(
        &mut self,
        from: &str,
        name: &str,
        chain: &mut Vec<String>,
        fault: &dyn Fn(String) -> Fault,
    ) -> Result<Node, Fault> {
        let preset = name.strip_prefix("preset:");
        let built_in = match preset {
            Some(preset) => Some(
                builtin::find_preset(preset)
                    .ok_or_else(|| fault(unknown("preset", preset, builtin::presets().iter().map(|b| b.name))))?,
            ),
            None => builtin::find(name),
        };
        let path = if built_in.is_some() { name.to_owned() } else { beside(from, name) };
        if let Some(first) = chain.iter().position(|c| *c == path) {
            let circle = chain[first..].iter().map(String::as_str).chain([path.as_str()]).collect::<Vec<_>>();
            return Err(fault(format!("circular include: {}", circle.join(" -> "))));
        }
        if chain.len() >= MAX_INCLUDE_DEPTH {
            return Err(fault(format!("includes are nested more than {MAX_INCLUDE_DEPTH} deep")));
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| fault(format!("more than {MAX_FILES} files")))?;
        chain.push(path.clone());
        let tree = match built_in {
            Some(text) => {
                let source = if preset.is_some() { path } else { format!("built-in {path}") };
                self.own(&source, text, chain)
            }
            None => {
                let text = self.files.read(&path);
                let text = text.map_err(|e| fault(format!("cannot read `{path}`: {}", reason(&e))))?;
                self.own(&path, &text, chain)
            }
        };
        chain.pop();
        tree
    }
}

/// The operating system's error message, without its number.
fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "is a directory".into(),
        io::ErrorKind::InvalidData => "not UTF-8 text".into(),
        _ => e.to_string(),
    }
}

/// Returns the elements of `include`.
fn names(include: Option<&Node>) -> Result<Vec<&Node>, Fault> {
    let Some(node) = include else { return Ok(Vec::new()) };
    let wrong = |n: &Node| {
        let message = format!("expected an array of file names, found {}", n.describe());
        Fault::new(Some(&n.origin), "include", message)
    };
    let Value::Array(items) = &node.value else { return Err(wrong(node)) };
    items.iter().map(|item| item.text().map(|_| item).ok_or_else(|| wrong(item))).collect()
}

/// Resolves `path` relative to the directory of the file `from`, including `.` and `..`, so that circles are detected.
fn beside(from: &str, path: &str) -> String {
    let base = match from.rsplit_once('/') {
        Some((directory, _)) if !path.starts_with('/') => format!("{directory}/{path}"),
        _ => path.to_owned(),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "")) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Splits `KEY=VALUE`.
fn override_of(text: &str) -> Result<(String, Node), Fault> {
    let origin = Origin { source: format!("--set {text}").into(), position: None };
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| Fault::new(Some(&origin), "", "expected KEY=VALUE, such as --set dumbbell.rtt=\"50 ms\""))?;
    Ok((key.trim().to_owned(), value_of(value.trim(), &origin)))
}

/// Reads the value of an override: TOML, or else a string.
pub(crate) fn value_of(value: &str, origin: &Origin) -> Node {
    let parsed = tree::parse("", &format!("value = {value}")).ok();
    let toml = parsed.and_then(|mut root| {
        let table = root.table_mut()?;
        // Several keys mean that the text contains a line break, and so is not one value.
        if table.len() == 1 { table.remove("value") } else { None }
    });
    let mut node = toml.unwrap_or_else(|| Node::new(origin, Value::Text(value.to_owned())));
    relocate(&mut node, origin);
    node
}

fn relocate(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    node.key = origin.clone();
    match &mut node.value {
        Value::Table(table) => table.values_mut().for_each(|n| relocate(n, origin)),
        Value::Array(items) => items.iter_mut().for_each(|n| relocate(n, origin)),
        _ => {}
    }
}

/// Removes the table `key` from the root and returns it.
fn take_table(root: &mut Node, key: &str) -> Result<Table, Fault> {
    let Some(node) = root.table_mut().and_then(|table| table.remove(key)) else { return Ok(Table::new()) };
    match node.value {
        Value::Table(table) => Ok(table),
        _ => Err(Fault::new(Some(&node.origin), key, format!("expected a table, found {}", node.describe()))),
    }
}

/// Returns the arrays of `[sweep]` by dotted key, in the order of the file.
fn sweep_axes(sweep: Table) -> Result<Vec<(String, Vec<Node>)>, Fault> {
    fn flatten(prefix: &str, table: Table, axes: &mut Vec<(Origin, String, Vec<Node>)>) -> Result<(), Fault> {
        for (key, node) in table {
            let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
            match node.value {
                Value::Table(inner) => flatten(&name, inner, axes)?,
                Value::Array(items) if !items.is_empty() => axes.push((node.key, name, items)),
                ref value => {
                    let empty = matches!(value, Value::Array(_));
                    let is = if empty { "an empty array".into() } else { node.describe() };
                    let message = format!("expected an array of at least one value, found {is}");
                    return Err(Fault::new(Some(&node.origin), format!("sweep.{name}"), message));
                }
            }
        }
        Ok(())
    }
    let mut axes = Vec::new();
    flatten("", sweep, &mut axes)?;
    axes.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    Ok(axes.into_iter().map(|(_, name, items)| (name, items)).collect())
}

/// A name is a parameter if it is declared as one. Otherwise it is a key of the scenario if it is one or begins with
/// one. Otherwise it is an undeclared parameter, and must be used.
fn is_parameter(name: &str, declared: &Table) -> bool {
    let first = name.split(['.', '[']).next().unwrap_or("");
    let scenario_key = de::keys_of::<Scenario>().contains(&first) || older::is_table(first);
    declared.contains_key(name) || !(scenario_key || name.contains(['.', '[']))
}

/// Checks that no two axes are of one key, and no two values of an axis have the same name.
fn check_axes(axes: &[(String, Vec<Node>)]) -> Result<(), Fault> {
    let mut swept = BTreeMap::new();
    for (axis, items) in axes {
        let fault = |item: &Node, message| Err(Fault::new(Some(&item.origin), format!("sweep.{axis}"), message));
        if let Some(other) = swept.insert(older::current(axis), axis) {
            return fault(&items[0], format!("`{other}` is the same key, and is swept too"));
        }
        for (i, item) in items.iter().enumerate().filter(|(_, item)| item.name().is_some()) {
            if items[..i].iter().any(|other| other.name() == item.name()) {
                return fault(item, format!("two values have the name `{item}`"));
            }
        }
    }
    Ok(())
}

/// Checks that each name that an override or the sweep has `given` is `used`.
fn check_used(given: &BTreeMap<String, Origin>, used: &BTreeSet<String>, declared: &Table) -> Result<(), Error> {
    let mut faults = Vec::new();
    for (name, origin) in given.iter().filter(|(name, _)| !used.contains(*name)) {
        let known = used.iter().chain(declared.keys()).filter(|known| *known != name).map(String::as_str);
        let near = did_you_mean(name, known.chain(de::keys_of::<Scenario>().iter().copied()));
        let message = format!("`{name}` is neither a scenario key nor a parameter used in this scenario{near}");
        faults.push(Fault::new(Some(origin), "", message));
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::new(faults)) }
}

/// Expands a tree, and reports faults and warnings under the keys that the files and overrides have.
fn expand(
    root: Node,
    mut forms: Forms,
    overrides: &[String],
    files: &impl Files,
    flows: Flows,
) -> Result<Loaded, Error> {
    let written = |faults: Vec<Fault>, forms: &Forms| faults.into_iter().map(|fault| forms.written(fault)).collect();
    match points(root, &mut forms, overrides, files, flows) {
        Ok(loaded) => Ok(Loaded { warnings: written(loaded.warnings, &forms), ..loaded }),
        Err(error) => Err(Error::new(written(error.into_faults(), &forms))),
    }
}

fn points(
    mut root: Node,
    forms: &mut Forms,
    overrides: &[String],
    files: &impl Files,
    flows: Flows,
) -> Result<Loaded, Error> {
    // Names that an override or the sweep assigns; each must be used.
    let mut given = BTreeMap::<String, Origin>::new();
    let mut parameters = take_table(&mut root, "parameters")?;
    let declared = parameters.clone();
    // A parameter used only by overridden values is not a mistake in the file.
    let in_file = mentioned(&root);
    for text in overrides {
        let (key, value) = override_of(text)?;
        unsweep_key(&mut root, key.strip_prefix("sweep.").unwrap_or(&key));
        if let Some(name) = key.strip_prefix("parameters.").or(is_parameter(&key, &declared).then_some(&key)) {
            given.insert(name.to_owned(), value.origin.clone());
            parameters.insert(name.to_owned(), value);
        } else {
            forms.path(&key, &value.origin);
            let fault = |message| Fault::new(Some(&value.origin), "", message);
            older::set(&mut root, &key, &value).map_err(fault)?;
        }
    }
    let axes = sweep_axes(take_table(&mut root, "sweep")?)?;
    let origin = |items: &Vec<Node>| items.first().map(|n| n.origin.clone());
    let count = axes.iter().try_fold(1usize, |n, (_, items)| n.checked_mul(items.len()).filter(|n| *n <= MAX_POINTS));
    let Some(count) = count else {
        let origin = axes.last().and_then(|(_, items)| origin(items));
        return Err(Fault::new(origin.as_ref(), "sweep", format!("more than {MAX_POINTS} points")).into());
    };
    for (name, items) in &axes {
        if is_parameter(name, &declared) {
            given.insert(name.clone(), items[0].origin.clone());
        } else {
            forms.path(name, &items[0].origin);
        }
    }
    check_axes(&axes)?;
    forms.check()?;

    let mut points = Vec::with_capacity(count);
    let mut recordings = Recordings::default();
    let mut used = BTreeSet::new();
    let mut size = 0;
    let fits = |size: usize| {
        if size <= MAX_SWEEP_SIZE {
            return Ok(());
        }
        let origin = axes.last().and_then(|(_, items)| origin(items));
        Err(Fault::new(origin.as_ref(), "sweep", format!("too large: {count} points of a scenario of this size")))
    };
    for number in 0..count {
        let mut document = root.clone();
        let mut values = parameters.clone();
        let (mut label, mut values_here) = (BTreeMap::new(), BTreeMap::new());
        let mut rest = number;
        for (name, items) in axes.iter().rev() {
            let item = &items[rest % items.len()];
            rest /= items.len();
            label.insert(name.clone(), item.to_string());
            values_here.insert(name.clone(), item.scalar());
            if is_parameter(name, &declared) {
                values.insert(name.clone(), item.clone());
            } else {
                let fault = |message| Fault::new(Some(&item.origin), format!("sweep.{name}"), message);
                older::set(&mut document, name, item).map_err(fault)?;
            }
        }
        let mut substitution = Substitution { values: &values, used: &mut used, left: MAX_POINT_SIZE };
        substitution.node(&mut document, &mut Vec::new())?;
        older::finish(&mut document)?;
        size += MAX_POINT_SIZE - substitution.left;
        fits(size)?;
        apply_tcp_defaults(&mut document);
        recordings.find(&mut document, &mut Vec::new());
        // Faults at the first point are the scenario's own; faults at a later one come from the swept values.
        let scenario = resolve(&document, flows).map_err(|mut faults| {
            if number > 0 {
                let at = label.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(", ");
                faults.iter_mut().for_each(|f| f.message += &format!(" (at {at})"));
            }
            Error::new(faults)
        })?;
        size += scenario.radio.as_ref().map_or(0, |radio| EXPANDED_SIZE * (radio.ues.len() + scenario.flows.len()));
        fits(size)?;
        points.push(Point { label, scenario, values: values_here });
    }

    check_used(&given, &used, &declared)?;
    let (traces, channels) = (read_named(recordings.traces, files)?, read_named(recordings.channels, files)?);
    let is_unused = |name: &String| !used.contains(name) && !in_file.contains(name);
    let unused = declared.iter().filter(|(name, _)| is_unused(name));
    let warnings = unused
        .map(|(name, node)| Fault::new(Some(&node.key), format!("parameters.{name}"), "unused parameter"))
        .chain(warnings(&points))
        .collect();
    Ok(Loaded { points, traces, channels, warnings })
}

/// Returns the warnings about the points.
fn warnings(points: &[Point]) -> Vec<Fault> {
    let scenarios: Vec<_> = points.iter().map(|point| &point.scenario).collect();
    let of_all = [replicates::warning(&scenarios), priorities::warning(&scenarios)].into_iter().flatten();
    of_all.chain(without_effect::warnings(&scenarios)).collect()
}

/// Reads the files that the points name.
fn read_named(named: Named, files: &impl Files) -> Result<BTreeMap<String, String>, Fault> {
    let read = |(path, (origin, key)): (String, (Origin, String))| match files.read(&path) {
        Ok(text) => Ok((path, text)),
        Err(e) => Err(Fault::new(Some(&origin), key, format!("cannot read `{path}`: {}", reason(&e)))),
    };
    named.into_iter().map(read).collect()
}

/// Returns the parameters mentioned in a tree's strings.
fn mentioned(node: &Node) -> BTreeSet<String> {
    let all = |nodes: &mut dyn Iterator<Item = &Node>| nodes.flat_map(mentioned).collect();
    match &node.value {
        Value::Table(table) => all(&mut table.values()),
        Value::Array(items) => all(&mut items.iter()),
        Value::Text(text) => {
            let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
            names.map(|(name, _)| name.split('.').next().unwrap_or("").trim().to_owned()).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// Removes the axis of an overridden key from the sweep, however its dots were written, and in either form.
fn unsweep_key(root: &mut Node, key: &str) {
    if let Some(sweep) = root.table_mut().and_then(|table| table.get_mut("sweep")).and_then(Node::table_mut) {
        unsweep(sweep, "", &older::current(key));
    }
}

/// Returns the dotted keys of a sweep.
fn axes(sweep: &Table, prefix: &str) -> Vec<String> {
    let of = |(name, node): (&String, &Node)| {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        node.table().map_or_else(|| vec![name.clone()], |inner| axes(inner, &name))
    };
    sweep.iter().flat_map(of).collect()
}

fn unsweep(sweep: &mut Table, prefix: &str, key: &str) {
    sweep.retain(|name, node| {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if let Some(inner) = node.table_mut() {
            unsweep(inner, &name, key);
        }
        older::current(&name) != key
    });
}

/// Substitutes parameters. Substituted text is not substituted again, so this terminates.
struct Substitution<'a> {
    values: &'a Table,
    used: &'a mut BTreeSet<String>,
    /// How many values and characters may still be produced.
    left: usize,
}

impl<'a> Substitution<'a> {
    fn node(&mut self, node: &mut Node, path: &mut Vec<Step>) -> Result<(), Fault> {
        self.spend(1, node, path)?;
        match &mut node.value {
            Value::Table(table) => {
                for (key, inner) in table {
                    path.push(Step::Key(key.clone()));
                    self.node(inner, path)?;
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (i, inner) in items.iter_mut().enumerate() {
                    path.push(Step::Index(i));
                    self.node(inner, path)?;
                    path.pop();
                }
            }
            Value::Text(text) => {
                let text = core::mem::take(text);
                match self.text(&text, node, path)? {
                    Some(new) => *node = new,
                    None => node.value = Value::Text(text),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Substitutes the parameters of a string, if it has any. A string that is only a parameter becomes its value.
    fn text(&mut self, text: &str, at: &Node, path: &[Step]) -> Result<Option<Node>, Fault> {
        let mut result = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let fault = |message| Fault::new(Some(&at.origin), tree::show(path), message);
            let end = rest[start..].find('}').map(|i| start + i);
            let end = end.ok_or_else(|| fault("missing `}` after `${`".to_owned()))?;
            let name = rest[start + 2..end].trim();
            let value = self.value(name).map_err(&fault)?;
            if start == 0 && end + 1 == text.len() && result.is_empty() {
                let mut whole = value.clone();
                whole.key = at.key.clone();
                self.spend(weight(&whole), at, path)?;
                return Ok(Some(whole));
            }
            if matches!(value.value, Value::Table(_) | Value::Array(_)) {
                return Err(fault(format!(
                    "the parameter `{name}` is {} and cannot be part of a string",
                    value.describe()
                )));
            }
            let value = value.to_string();
            self.spend(start + value.len(), at, path)?;
            result.push_str(&rest[..start]);
            result.push_str(&value);
            rest = &rest[end + 1..];
        }
        if rest.len() == text.len() {
            return Ok(None);
        }
        result.push_str(rest);
        Ok(Some(Node { origin: at.origin.clone(), key: at.key.clone(), value: Value::Text(result) }))
    }

    /// Returns the value of a parameter, or of a key of one that is a table (`remedy.cc`).
    fn value(&mut self, name: &str) -> Result<&'a Node, String> {
        let values = self.values;
        let (parameter, keys) = name.split_once('.').map_or((name, None), |(parameter, keys)| (parameter, Some(keys)));
        let unknown_parameter = || unknown("parameter", parameter, values.keys().map(String::as_str));
        let mut value = values.get(parameter).ok_or_else(unknown_parameter)?;
        self.used.insert(parameter.to_owned());
        for key in keys.into_iter().flat_map(|keys| keys.split('.')) {
            let Some(table) = value.table() else {
                return Err(format!("the parameter `{name}`: {} has no key `{key}`", value.describe()));
            };
            let unknown_key = || unknown("key", key, table.keys().map(String::as_str));
            value = table.get(key).ok_or_else(|| format!("the parameter `{name}`: {}", unknown_key()))?;
        }
        Ok(value)
    }

    fn spend(&mut self, amount: usize, at: &Node, path: &[Step]) -> Result<(), Fault> {
        self.left = self.left.checked_sub(amount).ok_or_else(|| {
            let message = format!("the scenario exceeds {MAX_POINT_SIZE} values and characters here");
            Fault::new(Some(&at.origin), tree::show(path), message)
        })?;
        Ok(())
    }
}

/// Counts the values and characters in a tree.
fn weight(node: &Node) -> usize {
    1 + match &node.value {
        Value::Table(table) => table.values().map(weight).sum(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Text(text) => text.len(),
        _ => 0,
    }
}

/// Uses the table `tcp` as the defaults of each flow's own, and the version's receive buffer as theirs.
fn apply_tcp_defaults(root: &mut Node) {
    let Some(table) = root.table_mut() else { return };
    let common = table.get("tcp").filter(|n| n.table().is_some()).cloned();
    let Some(Value::Array(flows)) = table.get_mut("flows").map(|n| &mut n.value) else { return };
    for flow in flows.iter_mut().filter_map(Node::table_mut) {
        let tcp = match (common.clone(), flow.remove("tcp")) {
            (Some(mut all), Some(own)) => {
                tree::merge(&mut all, own);
                Some(all)
            }
            (common, own) => own.or(common),
        };
        if let Some(mut tcp) = tcp {
            add_receive_buffer(&mut tcp);
            flow.insert("tcp".into(), tcp);
        }
    }
}

/// Gives hosts of Linux 6.1 without a `receive_buffer` that version's.
fn add_receive_buffer(tcp: &mut Node) {
    let Some(table) = tcp.table_mut().filter(|table| !table.contains_key("receive_buffer")) else { return };
    let version = table.get("linux").filter(|version| version.text() == Some("6.1"));
    if let Some(mut buffer) = version.cloned() {
        buffer.value = Value::Text(Tcp::RECEIVE_BUFFER_6_1.to_owned());
        table.insert("receive_buffer".into(), buffer);
    }
}

/// Files by path, each with the position and key where it is named.
type Named = BTreeMap<String, (Origin, String)>;

/// The recordings named by the points.
#[derive(Default)]
struct Recordings {
    traces: Named,
    channels: Named,
}

impl Recordings {
    /// Makes the names of recordings relative to the directory of the scenario, and collects them.
    fn find(&mut self, node: &mut Node, path: &mut Vec<Step>) {
        match &mut node.value {
            Value::Table(table) => {
                let is = |kind| table.get("kind").and_then(Node::text) == Some(kind);
                let (trace, recorded) = (is("trace"), is("recorded"));
                for (key, inner) in table {
                    path.push(Step::Key(key.clone()));
                    match key.as_str() {
                        "file" if trace => name_file(inner, path, &mut self.traces),
                        "files" if recorded => {
                            for (cell, file) in inner.table_mut().into_iter().flatten() {
                                path.push(Step::Key(cell.clone()));
                                name_file(file, path, &mut self.channels);
                                path.pop();
                            }
                        }
                        _ => self.find(inner, path),
                    }
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (i, inner) in items.iter_mut().enumerate() {
                    path.push(Step::Index(i));
                    self.find(inner, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}

fn name_file(node: &mut Node, path: &[Step], found: &mut Named) {
    let Some(file) = node.text().filter(|file| !file.is_empty()) else { return };
    let file = if node.origin.position.is_some() { beside(&node.origin.source, file) } else { file.to_owned() };
    found.insert(file.clone(), (node.origin.clone(), tree::show(path)));
    node.value = Value::Text(file);
}

/// Converts one point from its tree to a checked scenario.
fn resolve(document: &Node, flows: Flows) -> Result<Scenario, Vec<Fault>> {
    let mut scenario: Scenario = de::read(document).map_err(|fault| name_tcp_defaults(document, vec![fault]))?;
    let mut check = Check::default();
    check::scenario(&scenario, flows, &mut check);
    topology::resolve(&mut scenario, &mut check);
    if check.faults.is_empty() {
        return Ok(scenario);
    }
    let place = |(path, message): (Vec<Step>, String)| {
        Fault::new(Some(tree::origin_at(document, &path)), tree::show(&path), message)
    };
    Err(name_tcp_defaults(document, check.faults.into_iter().map(place).collect()))
}

/// Tells a fault of the table `tcp` once, under its own key, although each flow has a copy of the value.
fn name_tcp_defaults(document: &Node, faults: Vec<Fault>) -> Vec<Fault> {
    let common = document.table().and_then(|root| root.get("tcp")).and_then(Node::table);
    let mut told: Vec<Fault> = Vec::with_capacity(faults.len());
    for mut fault in faults {
        let of_flow = fault.key.strip_prefix("flows[").and_then(|key| key.split_once("].tcp."));
        if let Some((_, name)) = of_flow
            && let Some(value) = common.and_then(|common| common.get(name))
            && fault.origin.as_ref().is_some_and(|origin| [&value.origin, &value.key].contains(&origin))
        {
            fault.key = format!("tcp.{name}");
        }
        if !told.contains(&fault) {
            told.push(fault);
        }
    }
    told
}
