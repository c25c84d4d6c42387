//! Files that are texts in the test.

use scenario::{Loaded, Scenario};
use std::io;

/// Loads the first of `files` with the overrides `set`; the others can be included.
pub(crate) fn load(files: &[(&str, &str)], set: &[&str]) -> Result<Loaded, String> {
    let read = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::load(files[0].0, &set, &read).map_err(|e| e.to_string())
}
