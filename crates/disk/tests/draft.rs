//! Drafts of a process that exits without dropping them. They are removed all at once, so this is the only test here.

#![allow(clippy::disallowed_methods)] // This test is about files.

use disk::{Draft, Error, remove_drafts};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

#[test]
fn drafts_replace_regular_files_and_are_all_removed_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let count = || fs::read_dir(dir.path()).unwrap().count();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    fs::write(&first, "old").unwrap();
    let mut draft = Draft::create(&first).unwrap();
    draft.write_all(b"new").unwrap();
    draft.commit().unwrap();
    assert_eq!((fs::read_to_string(&first).unwrap(), count()), ("new".to_owned(), 1));
    symlink(&first, &second).unwrap();
    assert!(matches!(Draft::create(&second), Err(Error::Io { doing: "write", .. })));
    assert_eq!(fs::read_link(&second).unwrap(), first);
    fs::remove_file(&second).unwrap();
    let drafts = [Draft::create(&first).unwrap(), Draft::create(&second).unwrap()];
    assert_eq!(count(), 3);
    remove_drafts();
    assert_eq!(count(), 1);
    assert!(drafts.into_iter().all(|draft| draft.commit().is_err()));
    assert_eq!((fs::read_to_string(&first).unwrap(), count()), ("new".to_owned(), 1));
}
