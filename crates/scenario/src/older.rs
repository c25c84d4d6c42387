//! The tables `[lte]` and `[nr]`, older forms of `[radio]`.
//!
//! The tree of each file has `[radio]` in their place before it is merged with others, and so have the paths of
//! overrides and sweeps. Faults are reported under the keys that the file or the override has itself.

use crate::de::{keys_of, suggest};
use crate::error::{Fault, Origin};
use crate::tree::{self, Node, Table, Value};
use crate::{LteCarriers, NrCarriers, Radio};
use serde_json::{Map, Value as Schema, json};

/// A table of a radio network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Radio,
    Lte,
    Nr,
}

impl Form {
    const ALL: [Form; 3] = [Form::Radio, Form::Lte, Form::Nr];

    fn table(self) -> &'static str {
        match self {
            Form::Radio => "radio",
            Form::Lte => "lte",
            Form::Nr => "nr",
        }
    }

    /// Returns the keys of an older table, each with its place in `[radio]`.
    fn keys(self) -> Vec<(&'static str, String)> {
        let own = match self {
            Form::Radio => return Vec::new(),
            Form::Lte => keys_of::<LteCarriers>(),
            Form::Nr => keys_of::<NrCarriers>(),
        };
        let of_nr = ["buildings", "penetration", "beam_sweep"];
        let common = keys_of::<Radio>().iter().filter(|key| self == Form::Nr || !of_nr.contains(key));
        let common = common.filter_map(|key| match (*key, self) {
            ("carriers", _) => None,
            ("core_delay", Form::Lte) => Some(("s1_delay", "core_delay")),
            ("core_rate", Form::Lte) => Some(("s1_rate", "core_rate")),
            ("core_delay", _) => Some(("n3_delay", "core_delay")),
            ("core_rate", _) => Some(("n3_rate", "core_rate")),
            (key, _) => Some((key, key)),
        });
        let of_lte = (self == Form::Nr).then_some(("lte", "carriers.lte"));
        let common = common.chain(of_lte).map(|(key, place)| (key, place.to_owned()));
        common.chain(own.iter().map(|key| (*key, format!("carriers.{}.{key}", self.table())))).collect()
    }

    /// Returns the place in `[radio]` of a key of an older table, or what is wrong with it.
    fn place(self, key: &str) -> Result<String, String> {
        let mut keys = self.keys();
        match keys.iter().position(|(own, _)| *own == key) {
            Some(at) => Ok(keys.swap_remove(at).1),
            None if key.starts_with("core_") => {
                let own = keys.iter().find(|(_, place)| place == key).map_or("", |(own, _)| *own);
                Err(format!("unknown key; did you mean `{own}`?"))
            }
            None => {
                let names: Vec<&str> = keys.iter().map(|(own, _)| *own).collect();
                Err(format!("unknown key{}", suggest(key, "valid keys are", &names)))
            }
        }
    }

    /// Returns the key at `path` as it is written in this form.
    fn written(self, path: &str) -> String {
        let Some(rest) = after("radio", path).filter(|_| self != Form::Radio) else { return path.to_owned() };
        let table = self.table();
        if rest.is_empty() || rest == ".carriers" || rest == format!(".carriers.{table}") {
            return table.to_owned();
        }
        let found = self.keys().into_iter().find_map(|(key, place)| Some((key, after(&format!(".{place}"), rest)?)));
        found.map_or_else(|| path.to_owned(), |(key, rest)| format!("{table}.{key}{rest}"))
    }
}

/// Returns what follows the keys `start` in a path.
fn after<'a>(start: &str, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(start).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns whether a path, however it is spaced, begins with `radio`.
fn is_of_radio(path: &str) -> bool {
    path.split(['.', '[']).next().is_some_and(|first| first.trim() == "radio")
}

/// A path that begins with an older table.
struct OlderPath {
    form: Form,
    /// The key of the table; empty for the table itself.
    key: String,
    /// What follows it, with the dot.
    rest: String,
}

impl OlderPath {
    fn of(path: &str) -> Option<OlderPath> {
        let dotted = path.replace('[', ".").replace(']', "");
        if dotted.split('.').any(|name| name.trim().is_empty()) {
            return None;
        }
        let (table, rest) = dotted.split_once('.').unwrap_or((&dotted, ""));
        let form = [Form::Lte, Form::Nr].into_iter().find(|form| form.table() == table.trim())?;
        let end = rest.find('.').unwrap_or(rest.len());
        Some(OlderPath { form, key: rest[..end].trim().to_owned(), rest: rest[end..].to_owned() })
    }
}

/// Returns the schemas of the older tables, from that of `[radio]` and those of carriers.
pub(crate) fn tables(definitions: &Map<String, Schema>) -> Map<String, Schema> {
    let property = |of: &str, key: &str| definitions[of]["properties"][key].clone();
    let table = |form: Form, carriers: &str| {
        let keys = form.keys().into_iter().map(|(key, place)| {
            let of = match place.split('.').collect::<Vec<_>>()[..] {
                [common] => property("Radio", common),
                ["carriers", rat] => property("Carriers", rat),
                [.., own] => property(carriers, own),
                [] => Schema::Null,
            };
            (key.to_owned(), of)
        });
        let keys: Map<String, Schema> = keys.collect();
        let description = format!("An older form of `[radio]`, with `carriers.{}`. It keeps working.", form.table());
        let schema = json!({
            "description": description, "deprecated": true, "type": "object", "properties": keys,
            "additionalProperties": false,
        });
        (form.table().to_owned(), schema)
    };
    Map::from_iter([table(Form::Lte, "LteCarriers"), table(Form::Nr, "NrCarriers")])
}

/// Returns whether a name is that of an older table.
pub(crate) fn is_table(name: &str) -> bool {
    [Form::Lte, Form::Nr].iter().any(|form| form.table() == name)
}

/// Returns a path in the form of `[radio]`.
pub(crate) fn current(path: &str) -> String {
    let place = OlderPath::of(path).and_then(|OlderPath { form, key, rest }| match key.as_str() {
        "" => Some("radio".to_owned()),
        key => form.place(key).ok().map(|place| format!("radio.{place}{rest}")),
    });
    place.unwrap_or_else(|| path.replace('[', ".").replace(']', ""))
}

/// Returns the older table of a tree for which a parameter stands, as [`Forms::file`] and [`set`] have translated all others.
fn whole(root: &Node) -> Option<Form> {
    let table = root.table()?;
    [Form::Lte, Form::Nr].into_iter().find(|form| table.contains_key(form.table()))
}

/// Removes the radio network in whatever form.
fn remove(root: &mut Node) {
    if let Some(table) = root.table_mut() {
        Form::ALL.iter().for_each(|form| drop(table.remove(form.table())));
    }
}

/// Merges a file onto those that it includes. A table for which a parameter stands replaces another one and is replaced.
pub(crate) fn merge(base: &mut Node, over: Node) {
    let has_network = over.table().is_some_and(|table| Form::ALL.iter().any(|form| table.contains_key(form.table())));
    if has_network && (whole(base).is_some() || whole(&over).is_some()) {
        remove(base);
    }
    tree::merge(base, over);
}

/// Sets the value at a dotted path, which may begin with an older table. The error is a message.
pub(crate) fn set(root: &mut Node, path: &str, value: &Node) -> Result<(), String> {
    let older = OlderPath::of(path);
    let is_whole = older.as_ref().map_or(path.trim() == "radio", |older| older.key.is_empty());
    if is_whole {
        remove(root);
    } else if let Some(form) = whole(root).filter(|_| older.is_some() || is_of_radio(path)) {
        let table = form.table();
        return Err(format!("{path}: a parameter stands for all of `{table}`; set its keys in `[parameters]`"));
    }
    let Some(OlderPath { form, key, rest }) = older else { return tree::set(root, path, value) };
    if is_whole {
        tree::set(root, form.table(), value)?;
        return translate(root, true).map_err(|Fault { key, message, .. }| format!("{key}: {message}"));
    }
    let place = form.place(&key).map_err(|message| format!("{}.{key}: {message}", form.table()))?;
    tree::set(root, &format!("radio.{place}{rest}"), value)?;
    if let Some(radio) = root.table_mut().and_then(|table| table.get_mut("radio")) {
        add_carriers(radio, form);
    }
    Ok(())
}

/// Adds the carriers of the technology that an older table is for.
fn add_carriers(radio: &mut Node, form: Form) {
    let empty = Node { key: radio.key.clone(), ..Node::new(&radio.origin, Value::Table(Table::new())) };
    let carriers = radio.table_mut().map(|table| table.entry("carriers".to_owned()).or_insert_with(|| empty.clone()));
    if let Some(carriers) = carriers.and_then(Node::table_mut) {
        carriers.entry(form.table().to_owned()).or_insert(empty);
    }
}

/// Returns `[radio]` for the value of an older table.
fn translated(form: Form, node: Node) -> Result<Node, Fault> {
    let Value::Table(table) = node.value else {
        let message = format!("expected a table, found {}", node.describe());
        return Err(Fault::new(Some(&node.origin), form.table(), message));
    };
    let empty = || Node { origin: node.origin.clone(), key: node.key.clone(), value: Value::Table(Table::new()) };
    let mut radio = empty();
    for (key, value) in table {
        let wrong = |message: String| Fault::new(Some(&value.key), format!("{}.{key}", form.table()), message);
        let place = form.place(&key).map_err(wrong)?;
        let mut at = &mut radio;
        for step in place.split('.') {
            let inner = at.table_mut().expect("places are tables in tables");
            at = inner.entry(step.to_owned()).or_insert_with(empty);
        }
        *at = value;
    }
    add_carriers(&mut radio, form);
    Ok(radio)
}

/// Replaces older tables by `[radio]`. Those that a parameter stands for are left if `parameters` is true.
fn translate(root: &mut Node, parameters: bool) -> Result<(), Fault> {
    for form in [Form::Lte, Form::Nr] {
        let Some(node) = root.table().and_then(|table| table.get(form.table())) else { continue };
        if parameters && node.text().is_some_and(|text| text.contains("${")) {
            continue;
        }
        let radio = translated(form, node.clone())?;
        let table = root.table_mut().expect("it has a key");
        table.remove(form.table());
        table.insert("radio".to_owned(), radio);
    }
    Ok(())
}

/// Replaces the older tables of a document whose parameters have been substituted.
pub(crate) fn finish(document: &mut Node) -> Result<(), Fault> {
    translate(document, false)
}

/// Where a radio network is written in some form.
#[derive(Debug)]
struct Use {
    form: Form,
    origin: Origin,
    /// Whether it is a file's table, and not the path of an override or of a sweep.
    is_table: bool,
    has_lte: bool,
    has_nr: bool,
}

/// The forms that the files, the overrides and the sweep of a scenario have.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    uses: Vec<Use>,
    /// That of the file that includes the others.
    main: Option<Form>,
}

impl Forms {
    /// Replaces the older table of a file by `[radio]`. Included files come before those that include them.
    pub(crate) fn file(&mut self, root: &mut Node) -> Result<(), Fault> {
        let Some(table) = root.table() else { return Ok(()) };
        let given = Form::ALL.into_iter().filter_map(|form| Some((form, table.get(form.table())?.key.clone())));
        let given: Vec<(Form, Origin)> = given.collect();
        let form = match given.as_slice() {
            [] => return Ok(()),
            [(form, _)] => *form,
            [(Form::Radio, _), (form, origin), ..] => {
                let older = form.table();
                let message = format!(
                    "`[{older}]` is the older form of `[radio]`, and a file has one of them: keep `[radio]`, and move the keys of `[{older}]` there"
                );
                return Err(Fault::new(Some(origin), older, message));
            }
            [.., (_, origin)] => return Err(Fault::new(Some(origin), "nr", BOTH)),
        };
        let origin = given.into_iter().next().map(|(_, origin)| origin).expect("one is given");
        translate(root, true)?;
        let carriers = root.table().and_then(|table| table.get("radio")?.table()?.get("carriers")?.table());
        let has = |of: Form| form == of || carriers.is_some_and(|carriers| carriers.contains_key(of.table()));
        let (has_lte, has_nr) = (has(Form::Lte), has(Form::Nr));
        self.uses.push(Use { form, origin, is_table: true, has_lte, has_nr });
        self.main = Some(form);
        Ok(())
    }

    /// Notes the path of an override or of a sweep.
    pub(crate) fn path(&mut self, path: &str, origin: &Origin) {
        let form = match OlderPath::of(path) {
            Some(older) => older.form,
            None if after("radio", path).is_some() => Form::Radio,
            None => return,
        };
        let has = |of: Form| form == of || after(&format!("radio.carriers.{}", of.table()), path).is_some();
        let (has_lte, has_nr) = (has(Form::Lte), has(Form::Nr));
        self.uses.push(Use { form, origin: origin.clone(), is_table: false, has_lte, has_nr });
    }

    /// Checks that older tables are of the technology that the network has.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let find = |fits: fn(&Use) -> bool| self.uses.iter().find(|of| fits(of));
        let fault = |of: &Use, message: &str| Err(Fault::new(Some(&of.origin), of.form.table(), message));
        if let (Some(lte), Some(other)) = (find(|of| of.form == Form::Lte), find(|of| of.has_nr)) {
            return match other.form {
                Form::Nr => fault(other, BOTH),
                _ => fault(
                    lte,
                    "`[lte]` is for networks of LTE cells alone, and this one has NR cells; use the keys of `radio`",
                ),
            };
        }
        let radio = self.uses.iter().filter(|of| of.form == Form::Radio);
        let has_both = self.uses.iter().any(|of| of.form == Form::Nr && of.is_table && of.has_lte);
        let is_lte = radio.clone().any(|of| of.is_table && of.has_lte) && !radio.clone().any(|of| of.has_nr);
        match find(|of| of.form == Form::Nr) {
            Some(nr) if is_lte && !has_both => fault(
                nr,
                "`[nr]` is for networks with NR cells, and this one has LTE cells alone; use the keys of `radio`",
            ),
            _ => Ok(()),
        }
    }

    /// Returns a fault with the keys that its file or override has.
    pub(crate) fn written(&self, fault: Fault) -> Fault {
        let source = fault.origin.as_ref().map(|origin| &origin.source);
        let here = self.uses.iter().find(|of| Some(&of.origin.source) == source).map(|of| of.form);
        let Some(form) = here.or(self.main).filter(|form| *form != Form::Radio) else { return fault };
        let mut message = String::new();
        let mut rest = fault.message.as_str();
        // Messages name tables in brackets.
        while let Some(at) = rest.find("[radio") {
            let (before, name) = rest.split_at(at + 1);
            let (name, after) = name.split_at(name.find(']').unwrap_or(name.len()));
            message = message + before + &form.written(name);
            rest = after;
        }
        message += rest;
        if message.contains("[radio") {
            message += &format!(", in a file with `[radio]` in place of `[{}]`", form.table());
        }
        Fault { key: form.written(&fault.key), message, ..fault }
    }
}

const BOTH: &str = "a scenario has either `[lte]` or `[nr]`, not both";
