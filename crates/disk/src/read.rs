//! Reads files that others name.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

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

/// Reads a file with a secret of at most `longest` bytes: of this user or root, that nobody but its owner can change, and nobody but its
/// owner and its group can read. Space around the text is left out.
///
/// # Errors
/// Those of [`read`]; [`ErrorKind::InvalidInput`] if others could read or change the file, or if it is not text.
pub fn secret(path: &Path, longest: u64) -> io::Result<String> {
    let refused = |why: String| io::Error::new(ErrorKind::InvalidInput, why);
    let file = regular(path)?;
    let metadata = file.metadata()?;
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user && owner != 0 {
        return Err(refused(format!("it belongs to user {owner}, who could replace it; chown it to user {user}")));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o037 != 0 {
        let who = "accessible to others than its owner and readers of its group";
        return Err(refused(format!("{who} (mode {mode:04o}); use chmod 640 or 600")));
    }
    let mut text = String::new();
    let length =
        file.take(longest.saturating_add(1)).read_to_string(&mut text).map_err(|_| refused("not text".into()))?;
    if length as u64 > longest {
        return Err(refused(format!("longer than {longest} bytes")));
    }
    Ok(text.trim().to_owned())
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

    #[test]
    fn a_secret_is_readable_by_its_owner_and_its_group_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("secret");
        std::fs::write(&path, b" user:password\n").expect("it is ours");
        let read = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
            secret(&path, 20).map_err(|why| why.to_string())
        };
        for mode in [0o600, 0o640, 0o400] {
            assert_eq!(read(mode).as_deref(), Ok("user:password"), "{mode:o}");
        }
        for mode in [0o644, 0o660, 0o604, 0o602] {
            let who = "accessible to others than its owner and readers of its group";
            assert_eq!(read(mode), Err(format!("{who} (mode {mode:04o}); use chmod 640 or 600")));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        assert_eq!(secret(&path, 3).expect_err("it is long").to_string(), "longer than 3 bytes");
        std::fs::write(&path, b"\xff").expect("it is ours");
        assert_eq!(secret(&path, 3).expect_err("it is none").to_string(), "not text");
    }
}
