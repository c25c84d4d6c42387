//! Results on a disk.

#![allow(clippy::disallowed_methods)] // Results are files.

use std::fs;
use std::path::Path;

/// Returns the names in a directory, sorted.
///
/// # Panics
/// If it cannot be read.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Asserts that two results have the same files with the same bytes, but for the timing and its place in the report.
///
/// # Panics
/// If they differ.
pub fn assert_same(one: &Path, other: &Path) {
    assert_eq!(names(one), names(other));
    for name in names(one).iter().filter(|name| !["timing.json", "report.html"].contains(&name.as_str())) {
        let read = |dir: &Path| fs::read(dir.join(name)).expect("it was written");
        assert!(read(one) == read(other), "{name} differs");
    }
    let report = |dir: &Path| {
        let text = fs::read_to_string(dir.join("report.html")).expect("it was written");
        let start = text.find("\"timing\":").expect("it quotes the timing");
        let end = start + text[start..].find('}').expect("an object ends");
        format!("{}{}", &text[..start], &text[end..])
    };
    assert!(report(one) == report(other), "report.html differs in more than the timing");
}
