//! A directory stays the same one, whatever its names come to mean.

#![allow(clippy::disallowed_methods)] // These tests are about files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use disk::{Dir, Error};

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_name_that_is_exchanged_redirects_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (ours, other) = (temp.path().join("ours"), temp.path().join("other"));
    fs::create_dir(&other).unwrap();
    fs::write(other.join("page"), "precious").unwrap();
    let (dir, made) = Dir::open_or_make(&ours).unwrap();
    made.keep();
    fs::rename(&ours, temp.path().join("moved")).unwrap();
    symlink(&other, &ours).unwrap();
    dir.replace("page", b"new").unwrap();
    dir.create_new("file").unwrap().write_all(b"new").unwrap();
    dir.make("deeper", false).unwrap().replace("page", b"new").unwrap();
    assert_eq!(names(&temp.path().join("moved")), ["deeper", "file", "page"]);
    dir.remove_tree("deeper").unwrap();
    assert_eq!(
        (names(&other), fs::read_to_string(other.join("page")).unwrap()),
        (vec!["page".into()], "precious".into())
    );
}

#[test]
fn a_link_is_replaced_and_removed_but_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let precious = temp.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    symlink(&precious, temp.path().join("link")).unwrap();
    assert!(dir.create_new("link").is_err() && dir.sub("link").is_err() && dir.read("link").is_err());
    dir.replace("link", b"new").unwrap();
    assert!(!fs::symlink_metadata(temp.path().join("link")).unwrap().is_symlink());
    fs::create_dir(temp.path().join("tree")).unwrap();
    symlink(temp.path(), temp.path().join("tree/up")).unwrap();
    dir.remove_tree("tree").unwrap();
    assert_eq!(
        (names(temp.path()), fs::read_to_string(&precious).unwrap()),
        (vec!["link".to_owned(), "precious".to_owned()], "precious".to_owned())
    );
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    for name in ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0b"] {
        assert!(matches!(dir.create_new(name), Err(Error::Io { .. })), "{name:?}");
        assert!(dir.make(name, true).is_err() && dir.replace(name, b"").is_err() && dir.sub(name).is_err(), "{name:?}");
    }
    assert_eq!(names(temp.path()), [""; 0]);
}

#[test]
fn links_on_the_way_are_followed_and_loops_are_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    symlink("a/b", at("relative")).unwrap();
    symlink(at("relative"), at("absolute")).unwrap();
    symlink("loop", at("loop")).unwrap();
    let real = fs::canonicalize(at("a/b")).unwrap();
    for path in ["relative", "absolute", "a/../absolute", "a/./b/"] {
        assert_eq!(Dir::open(&at(path)).unwrap().path(), real, "{path}");
    }
    assert!(Dir::open(&at("loop")).is_err());
    fs::write(at("file"), "").unwrap();
    let error = Dir::open(&at("file/x")).unwrap_err().to_string();
    assert!(error.contains("Not a directory") && error.contains("file"), "{error}");
}

#[test]
fn what_was_made_on_the_way_goes_unless_it_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    drop(Dir::open_or_make(&temp.path().join("a/b/c")).unwrap());
    assert_eq!(names(temp.path()), [""; 0]);
    disk::write(&temp.path().join("a/b/file"), b"text").unwrap();
    assert_eq!(names(&temp.path().join("a/b")), ["file"]);
}
