//! The licences of the libraries in the packages' programs, and the libraries that are no crates, for `cargo xtask package`.

use crate::step::{metadata, output};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What programs are made of.
const PROGRAMS: [&str; 2] = ["ranway", "ranway-python"];
/// How the names of files with licences and notices begin.
const NAMES: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicense", "patents"];
/// Folders below a library in which C sources may have licences of their own.
const DEPTH: u32 = 3;
/// C libraries of the system that are linked into the programs: their names, Debian's packages, and their licences.
const SYSTEM: [(&str, &str, &str); 2] =
    [("elfutils", "libelf-dev", "GPL-2.0-or-later OR LGPL-3.0-or-later"), ("zlib", "zlib1g-dev", "Zlib")];
/// The report's page, which is in the programs, and the manifest with the version of the library in it.
const PAGE: &str = "crates/record/assets/report.html";
const PAGE_MANIFEST: &str = "web/package.json";

/// A library in the programs that is no crate.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) licence: &'static str,
    /// The package URL, by which scanners know the library.
    pub(crate) purl: String,
    text: String,
}

#[cfg(test)]
impl Part {
    /// A library with a licence of no interest.
    pub(crate) fn for_tests(name: &'static str, version: &str, purl: &str) -> Part {
        Part { name, version: version.to_owned(), licence: "MIT", purl: purl.to_owned(), text: String::new() }
    }
}

/// Returns the libraries in the programs that are no crates.
pub(crate) fn parts() -> Result<Vec<Part>> {
    let distribution = distribution()?;
    let mut parts = Vec::new();
    for (name, package, licence) in SYSTEM {
        let said = output("dpkg-query", &["--show", "--showformat=${Version}\n", package])?;
        let version = String::from_utf8_lossy(&said).lines().next().context(package)?.to_owned();
        let purl = format!("pkg:deb/{distribution}/{package}@{}", version.replace(':', "%3A"));
        let text = read(&format!("/usr/share/doc/{package}/copyright"))?;
        parts.push(Part { name, version, licence, purl, text });
    }
    let manifest: Value = serde_json::from_str(&read(PAGE_MANIFEST)?).context(PAGE_MANIFEST)?;
    let version = manifest["dependencies"]["uplot"].as_str().with_context(|| format!("{PAGE_MANIFEST}: no uplot"))?;
    let page = read(PAGE)?;
    let comment = page.split_once(" (uPlot) */").and_then(|(before, _)| Some(before.rsplit_once("/* ")?.1));
    parts.push(Part {
        name: "uPlot",
        version: version.to_owned(),
        licence: "MIT",
        purl: format!("pkg:npm/uplot@{version}"),
        text: comment.with_context(|| format!("{PAGE}: no licence of uPlot"))?.to_owned(),
    });
    Ok(parts)
}

/// The name of this distribution in package URLs.
fn distribution() -> Result<String> {
    let release = read("/etc/os-release")?;
    let id = release.lines().find_map(|line| line.strip_prefix("ID="));
    Ok(id.context("/etc/os-release: no ID")?.trim_matches('"').to_owned())
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(file).with_context(|| file.to_owned())
}

/// Returns the texts of the licences of all libraries, each once, with the names of those that it is for.
pub(crate) fn texts(host: &str) -> Result<String> {
    let mut of_texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |library: &str, text: String| {
        of_texts.entry(text.trim().to_owned()).or_default().insert(library.to_owned());
    };
    for package in libraries(host)? {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let library = format!("{} {}", text("name"), text("version"));
        let folder = Path::new(text("manifest_path")).parent().context("a manifest is in a folder")?;
        let mut files = Vec::new();
        find(folder, DEPTH, &mut files)?;
        for file in &files {
            add(&library, String::from_utf8_lossy(&fs::read(file)?).into_owned());
        }
        if files.is_empty() {
            add(&library, format!("{} ({})", text("license"), text("repository")));
        }
    }
    for part in parts()? {
        add(&format!("{} {}", part.name, part.version), part.text);
    }
    let mut all =
        "The programs of Ranway contain these libraries. Each text is followed by the next after a line of `=`.\n"
            .to_owned();
    for (text, libraries) in of_texts {
        let libraries = libraries.into_iter().collect::<Vec<_>>().join(", ");
        write!(all, "\n{:=<100}\n{libraries}\n\n{text}\n", "")?;
    }
    Ok(all)
}

/// The libraries that are linked into the programs on `host`, as `cargo metadata` describes them.
fn libraries(host: &str) -> Result<Vec<Value>> {
    let metadata = metadata(&["--filter-platform", host, "--features", "ranway/static"])?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (package["id"].to_string(), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (node["id"].to_string(), node)).collect();
    let mut todo: Vec<String> = packages
        .iter()
        .filter(|(_, package)| PROGRAMS.iter().any(|name| package["name"] == *name))
        .map(|(id, _)| id.clone())
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let is_linked = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        todo.extend(list(&nodes[&id]["deps"]).iter().filter(|one| is_linked(one)).map(|one| one["pkg"].to_string()));
    }
    // Our own have no source.
    Ok(packages
        .into_iter()
        .filter(|(id, package)| seen.contains(id) && !package["source"].is_null())
        .map(|(_, package)| package)
        .collect())
}

/// Finds files with licences in a folder, and in those below it.
fn find(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if kind.is_dir() && depth > 0 {
            find(&path, depth - 1, found)?;
        } else if kind.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_into_the_programs_has_its_licence_and_nothing_else_has() {
        std::env::set_current_dir("..").expect("the workspace is above");
        let texts = texts("x86_64-unknown-linux-gnu").expect("cargo and Debian know them");
        let headings = texts.lines().filter(|line| line.len() < 20_000);
        let has = |name: &str| headings.clone().any(|line| line.split(", ").any(|one| one.starts_with(name)));
        for name in ["tokio 1", "libbpf-sys 1", "pyo3 0", "elfutils 0", "zlib 1", "uPlot 1"] {
            assert!(has(name), "{name}");
        }
        // Of tests, of build scripts, and ours.
        for name in ["bolero 0", "libbpf-cargo 0", "services 0"] {
            assert!(!has(name), "{name}");
        }
        assert!(texts.contains("Apache License"));
        assert!(texts.contains("Leon Sorokin"), "the author of uPlot");
    }

    #[test]
    fn libraries_that_are_no_crates_have_a_version_and_a_package_url() {
        std::env::set_current_dir("..").expect("the workspace is above");
        let parts = parts().expect("Debian and the page have them");
        assert_eq!(parts.iter().map(|part| part.name).collect::<Vec<_>>(), ["elfutils", "zlib", "uPlot"]);
        for part in parts {
            assert!(part.version.starts_with(|first: char| first.is_ascii_digit()), "{}", part.version);
            let (kind, version) = part.purl.split_once('@').expect("a version");
            assert!(kind.starts_with("pkg:deb/") || kind == "pkg:npm/uplot", "{kind}");
            assert_eq!(version.replace("%3A", ":"), part.version);
        }
    }
}
