//! Where results go.

use crate::failure::Failure;
use record::Output;
use std::path::{Path, PathBuf};

/// Commits results to `out`, or partial results beside complete ones there. Returns the directory written to.
pub(crate) fn commit(output: Output, partial: bool, out: &Path) -> Result<PathBuf, Failure> {
    if !partial {
        output.commit()?;
        return Ok(out.to_owned());
    }
    let place = output.commit_partial()?;
    Ok(place.file_name().map_or_else(|| out.to_owned(), |name| out.with_file_name(name)))
}

pub(crate) fn default_out(file: &str) -> PathBuf {
    Path::new("ranway-out").join(stem(file))
}

pub(crate) fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| "scenario".to_owned(), |s| s.to_string_lossy().into_owned())
}

pub(crate) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Refuses to replace a file.
pub(crate) fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(Failure::Invalid(format!("{} exists already", path.display())));
    }
    Ok(())
}

/// Writes a new file atomically.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let (Some(name), parent) = (path.file_name(), path.parent()) else {
        return Err(Failure::Invalid(format!("{}: expected a file name", path.display())));
    };
    let dir = disk::Dir::open(parent.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    refuse_existing(path)?;
    Ok(dir.replace(name, text.as_bytes())?)
}
