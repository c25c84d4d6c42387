//! The module check: no ring of files that import each other, no methods of a type outside the file that defines it, services that
//! share only what is below them, and crate docs that list the modules that exist.
//!
//! A file uses another one if its code or a private `use` names an item that the other one defines. Re-exports (`pub use`)
//! and declarations (`mod`) do not count: through them a name leads to the file that defines the item. Tests may import
//! anything. A method is called without an import, so an `impl` of a type in another file, even in a child module, would hide
//! a ring; implementations of traits are not concerned.

mod graph;
mod source;
#[cfg(test)]
mod tests;

use crate::step::metadata;
use anyhow::{Context, Result, bail};
use graph::{Graph, methods_elsewhere};
use source::Sources;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Crates whose rings are still to be broken, and whose lists of modules are still to be completed.
const TOLERATED: &[&str] = &[];

/// Modules of a crate that do not use one another: each could be a crate.
const APART: (&str, &[&str]) = ("services", &["backlog", "dashboard", "measure", "proxy", "rnis"]);

/// Crates with `impl`s outside the file that defines the type, and how many they have. These numbers may only fall.
const METHODS_ELSEWHERE: &[(&str, usize)] = &[
    ("cc", 4),
    ("channel", 2),
    ("disk", 1),
    ("meter", 3),
    ("observe", 1),
    ("ran", 1),
    ("ranway", 1),
    ("record", 2),
    ("reproduce", 7),
    ("scenario", 1),
    ("services", 6),
    ("sim", 1),
    ("tcp", 14),
];

/// Checks the modules of every crate of the workspace.
pub(crate) fn check() -> Result<()> {
    println!("==> modules");
    let mut wrong = Vec::new();
    // A package with a library and a program has two roots.
    let mut elsewhere: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, root) in roots()? {
        let sources = read(&name, &root)?;
        elsewhere.entry(name.clone()).or_default().extend(methods_elsewhere(&sources));
        let graph = Graph::new(&sources);
        let apart = if name == APART.0 { APART.1 } else { &[] };
        let errors: Vec<String> =
            graph.rings().into_iter().chain(graph.crossings(apart)).chain(list_errors(&sources)).collect();
        match (TOLERATED.contains(&name.as_str()), errors.is_empty()) {
            (true, true) => wrong.push(format!("{name}: nothing is wrong any more; remove it from TOLERATED")),
            (true, false) => errors.iter().for_each(|error| println!("    tolerated: {name}: {error}")),
            (false, _) => wrong.extend(errors.iter().map(|error| format!("{name}: {error}"))),
        }
    }
    for (name, found) in &elsewhere {
        let listed = METHODS_ELSEWHERE.iter().find(|(of, _)| of == name).map_or(0, |(_, number)| *number);
        wrong.extend(elsewhere_errors(found, listed).iter().map(|error| format!("{name}: {error}")));
    }
    if !wrong.is_empty() {
        bail!("modules:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// What is wrong with the `impl`s `found` outside the files of their types, of which a crate may have as many as are `listed`.
fn elsewhere_errors(found: &[String], listed: usize) -> Vec<String> {
    if found.len() > listed {
        return found.to_vec();
    }
    let falls = found.len() < listed;
    falls
        .then(|| format!("METHODS_ELSEWHERE lists {listed}, but there are {}; lower it", found.len()))
        .into_iter()
        .collect()
}

/// Every crate's module graph, from bottom to top: the layer, the module, and the modules whose items it uses. Modules that only
/// declare and re-export others are left out.
pub(crate) fn graphs() -> Result<String> {
    let mut graphs = String::new();
    for (name, root) in roots()? {
        let text = Graph::new(&read(&name, &root)?).text();
        write!(graphs, "{name}\n\n{text}\n")?;
    }
    Ok(graphs)
}

fn read(name: &str, root: &Path) -> Result<Sources> {
    Sources::read(root, &|path| std::fs::read_to_string(path).ok()).with_context(|| name.to_owned())
}

/// The crates of the workspace and their root files; a package with a library and a program has two.
fn roots() -> Result<Vec<(String, PathBuf)>> {
    let metadata = metadata(&["--no-deps"])?;
    let mut roots = Vec::new();
    for package in metadata["packages"].as_array().context("cargo metadata names packages")? {
        let name = package["name"].as_str().unwrap_or_default();
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_source = |kind: &serde_json::Value| matches!(kind.as_str(), Some("lib" | "cdylib" | "bin"));
            if target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(is_source)) {
                roots.push((name.to_owned(), PathBuf::from(target["src_path"].as_str().unwrap_or_default())));
            }
        }
    }
    roots.sort();
    Ok(roots)
}

/// How the list of modules in a crate's documentation differs from its modules. Such a list is a table whose first
/// column is headed `module` or `file` and holds names of modules.
fn list_errors(sources: &Sources) -> Vec<String> {
    let mut lines = sources.doc.iter().map(|line| line.trim());
    let is_head = |line: &str| ["| module |", "| file |"].iter().any(|head| line.starts_with(head));
    if !lines.any(is_head) {
        return Vec::new();
    }
    let rows = lines.skip(1).map_while(|line| line.strip_prefix('|')?.split('|').next());
    let listed: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    // The files that a crate writes are no modules.
    if listed.iter().any(|name| name.contains('.')) {
        return Vec::new();
    }
    let modules = &sources.modules[0].children;
    let missing = modules.keys().filter(|module| !listed.contains(&module.as_str()));
    let absent = listed.iter().filter(|name| !modules.contains_key(**name));
    let missing = missing.map(|name| format!("the crate's documentation does not list the module `{name}`"));
    missing.chain(absent.map(|name| format!("the crate's documentation lists `{name}`, which is no module"))).collect()
}
