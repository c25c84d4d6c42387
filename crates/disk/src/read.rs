//! Reads files that others name.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it. It does not wait for the other end of a pipe.
///
/// # Errors
/// The system's error; [`ErrorKind::InvalidInput`] for anything else than a regular file.
pub fn regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let is_file = file.metadata()?.is_file();
    is_file.then_some(file).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not a regular file"))
}

/// Reads a regular file of at most `longest` bytes.
///
/// # Errors
/// Those of [`regular`]; [`ErrorKind::InvalidInput`] for a longer one.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if regular(path)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)? as u64 > longest {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("longer than {longest} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_regular_file_is_read_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        std::fs::write(&path, b"1234").expect("it is ours");
        assert_eq!(read(&path, 4).expect("it is short"), b"1234");
        assert_eq!(read(&path, 3).expect_err("it is long").to_string(), "longer than 3 bytes");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("a pipe");
        for other in [Path::new("/dev/zero"), dir.path(), &pipe] {
            assert_eq!(
                read(other, 4).expect_err("it is none").to_string(),
                "not a regular file",
                "{}",
                other.display()
            );
        }
    }
}
