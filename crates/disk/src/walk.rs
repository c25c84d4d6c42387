//! Resolves a path from the root of the file system, component by component.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::error::Error;
use crate::trust;

/// Maximum number of symbolic links on a path, as in the kernel.
const LINKS: u32 = 40;

/// Traversing a directory does not require the right to list it.
#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY;

/// Directories created on a path. When dropped, removes those that are empty, unless [`Made::keep`] was called.
#[derive(Debug, Default)]
pub struct Made(Vec<(Dir, OsString)>);

impl Made {
    /// Keeps the directories.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (parent, name) in self.0.iter().rev() {
            // Directories into which others have put entries stay.
            let _ = parent.remove_dir(name);
        }
    }
}

/// The remaining components, the next one last.
struct Rest(Vec<OsString>);

impl Rest {
    fn push(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        self.0.extend(names);
    }
}

/// Opens `path`, creating missing directories if `make` is set.
pub(crate) fn walk(path: &Path, make: bool) -> Result<(Dir, Made), Error> {
    let wrong = |source| Error::io("use", path)(source);
    let absolute = std::path::absolute(path).map_err(&wrong)?;
    let mut rest = Rest(Vec::new());
    rest.push(&absolute);
    let mut made = Made::default();
    let mut links = 0;
    let mut here = root().map_err(&wrong)?;
    trust::check(here.fd.as_fd(), &here.path)?;
    while let Some(name) = rest.0.pop() {
        let at = here.path.join(&name);
        let flags = PASS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&here.fd, &name, flags, Mode::empty()) {
            Ok(fd) => {
                let path = if name == ".." { parent(&here.path) } else { at };
                here = Dir { fd, path };
                trust::check(here.fd.as_fd(), &here.path)?;
            }
            Err(Errno::NOENT) if make => {
                let parent = reopened(&here).map_err(Error::io("open", &here.path))?;
                here = parent.make(&name, false)?;
                made.0.push((parent, name));
            }
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                let stat = fs::statat(&here.fd, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| wrong(e.into()))?;
                let target = match fs::readlinkat(&here.fd, &name, Vec::new()) {
                    Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
                    // It is a file.
                    Err(_) => return Err(Error::io("use", &at)(Errno::NOTDIR.into())),
                };
                trust::check_link(&stat, &at)?;
                links += 1;
                if links > LINKS {
                    return Err(wrong(Errno::LOOP.into()));
                }
                if target.is_absolute() {
                    here = root().map_err(&wrong)?;
                }
                rest.push(&target);
            }
            Err(errno) => return Err(Error::io("use", &at)(errno.into())),
        }
    }
    let dir = reopened(&here).map_err(Error::io("open", &here.path))?;
    Ok((dir, made))
}

fn root() -> io::Result<Dir> {
    let fd = fs::open("/", PASS | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Dir { fd, path: "/".into() })
}

/// Reopens the directory for listing and locking.
fn reopened(dir: &Dir) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd: OwnedFd = fs::openat(&dir.fd, OsStr::from_bytes(b"."), flags, Mode::empty())?;
    Ok(Dir { fd, path: dir.path.clone() })
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}
