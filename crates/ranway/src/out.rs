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
