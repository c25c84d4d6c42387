//! Where `--reports` may record reports.

use crate::failure::Failure;
use rnis::feed::{LONGEST_MESSAGE, recording};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Refuses a recording in `file` that would replace anything but an earlier recording, or that would be replaced by the results
/// in `out`.
pub(crate) fn check(file: &Path, out: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::Invalid(format!("--reports {}: {why}", file.display()));
    if file.as_os_str().as_encoded_bytes().starts_with(b"unix:") {
        return Err(refuse(
            "`ranway emulate` streams reports to a socket; name a file (`./unix:...` for one of this name)",
        ));
    }
    let (Some(name), Some(parent)) = (file.file_name(), file.parent()) else {
        return Err(refuse("expected the name of a file"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let (place, out_place) = (resolved(parent)?.join(name), resolved(out)?);
    if place.starts_with(&out_place) || out_place.starts_with(&place) {
        let out = out.display();
        return Err(refuse(&format!("the results replace the directory {out} as a whole; name a file outside it")));
    }
    if !parent.is_dir() {
        return Err(refuse(&format!("no such directory: {}", parent.display())));
    }
    match place.symlink_metadata() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(refuse(&why.to_string())),
        Ok(about) if !about.is_file() => Err(refuse("not a regular file; name a new file or an earlier recording")),
        Ok(_) if is_recording(&place)? => Ok(()),
        Ok(_) => Err(refuse("not a recording of reports; name a new file or an earlier recording")),
    }
}

/// Returns the path without symbolic links, as far as it exists.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let known = path.ancestors().find_map(|known| Some((known, known.canonicalize().ok()?)));
    Ok(known.map_or_else(|| path.clone(), |(known, real)| real.join(path.strip_prefix(known).unwrap_or(&path))))
}

/// Returns whether a file is empty or begins with a record.
fn is_recording(path: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    BufReader::new(disk::regular(path)?.take(LONGEST_MESSAGE as u64)).read_until(b'\n', &mut first)?;
    Ok(first.is_empty() || recording::parse_line(&first).is_ok())
}
