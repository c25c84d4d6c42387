//! Opens and creates directories, and rejects those that others could exchange.

use crate::dir::{Dir, plain};
use crate::error::Error;
use crate::trust;
use crate::walk::{self, Made};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{self, Mode};

impl Dir {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if this process is root and anyone other than root and the caller could exchange it;
    /// [`Error::Io`] if it does not exist, or for errors of the system.
    pub fn open(path: &Path) -> Result<Dir, Error> {
        Ok(walk::walk(path, false)?.0)
    }

    /// Opens the directory at `path`, creating it and its parents if missing.
    ///
    /// # Errors
    /// The same as [`Dir::open`]. Directories already created are removed again.
    pub fn open_or_make(path: &Path) -> Result<(Dir, Made), Error> {
        walk::walk(path, true)
    }

    /// Opens the parent of `path`, creating missing directories; returns the parent, and the name in it.
    ///
    /// # Errors
    /// The same as [`Dir::open_or_make`]; [`Error::Io`] also for a path that does not end in a name.
    pub fn parent_of(path: &Path) -> Result<(Dir, OsString, Made), Error> {
        let name = path.file_name().ok_or_else(|| Error::io("use", path)(io::ErrorKind::InvalidInput.into()))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (dir, made) = Dir::open_or_make(parent)?;
        Ok((dir, name.to_owned(), made))
    }

    /// Creates the directory `name`, which must not exist, accessible only to its owner if `private`, and opens it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(&self, name: impl AsRef<OsStr>, private: bool) -> Result<Dir, Error> {
        let name = name.as_ref();
        let fail = self.fail("make", name);
        plain(name).map_err(&fail)?;
        let mode = if private { Mode::RWXU } else { trust::mode_of_new(0o777) };
        fs::mkdirat(&self.fd, name, mode).map_err(|errno| fail(errno.into()))?;
        let dir = self.sub(name)?;
        // Another directory may have been put in its place in the meantime.
        trust::made_by_us(dir.fd.as_fd(), &dir.path)?;
        Ok(dir)
    }

    /// Opens the directory `name` like [`Dir::sub`], and rejects it like [`Dir::open`] if others could exchange its
    /// entries.
    ///
    /// # Errors
    /// The same as [`Dir::open`].
    pub fn trusted_sub(&self, name: impl AsRef<OsStr>) -> Result<Dir, Error> {
        let dir = self.sub(name)?;
        trust::check(dir.fd.as_fd(), &dir.path)?;
        Ok(dir)
    }
}

/// Writes the file at `path` atomically, creating missing directories on the path.
///
/// # Errors
/// The same as [`Dir::open_or_make`] and [`Dir::replace`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (dir, name, made) = Dir::parent_of(path)?;
    dir.replace(&name, bytes)?;
    made.keep();
    Ok(())
}
