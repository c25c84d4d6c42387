//! An open directory and operations on its entries.

use crate::error::Error;
use crate::trust;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Maximum depth of a tree that [`Dir::remove_tree`] removes: each level holds a file descriptor.
const DEEPEST: u32 = 64;

/// A directory held open by a file descriptor.
#[derive(Debug)]
pub struct Dir {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
}

/// Device and inode: identify a directory even if its name is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

/// Checks that a name is a single component, neither `.` nor `..`.
pub(crate) fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    let invalid = bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.contains(&0);
    if invalid { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(name) }
}

impl Dir {
    /// Returns the path at which the directory was opened, without symbolic links. For messages only: it may have been
    /// moved since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path to `name` through this directory's file descriptor, for system calls that accept only a path. It
    /// is valid in this process while the directory is open.
    pub fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()))
    }

    pub(crate) fn fail<'a>(&'a self, doing: &'static str, name: &'a OsStr) -> impl Fn(io::Error) -> Error + 'a {
        move |source| Error::Io { doing, path: self.path.join(name), source }
    }

    /// Opens the subdirectory `name`, which must not be a symbolic link. Does not check who may write to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sub(&self, name: impl AsRef<OsStr>) -> Result<Dir, Error> {
        let name = name.as_ref();
        let open = || -> io::Result<OwnedFd> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(fs::openat(&self.fd, plain(name)?, flags, Mode::empty())?)
        };
        let fd = open().map_err(self.fail("open", name))?;
        Ok(Dir { fd, path: self.path.join(name) })
    }

    /// Creates the file `name`, which must not exist, and opens it for writing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_new(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let open = || -> io::Result<OwnedFd> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(fs::openat(&self.fd, plain(name)?, flags, trust::mode_of_new(0o666))?)
        };
        open().map(File::from).map_err(self.fail("write", name))
    }

    /// Opens the regular file `name` for reading; rejects a symbolic link.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let open = || -> io::Result<OwnedFd> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let fd = fs::openat(&self.fd, plain(name)?, flags, Mode::empty())?;
            match FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) {
                FileType::RegularFile => Ok(fd),
                _ => Err(io::Error::other("not a regular file")),
            }
        };
        open().map(File::from).map_err(self.fail("read", name))
    }

    /// Writes the file `name` atomically, replacing an existing file or symbolic link.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), Error> {
        let name = name.as_ref();
        let (mut file, hidden) = self.create_hidden(name)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let written = written.and_then(|()| Ok(fs::renameat(&self.fd, &hidden, &self.fd, name)?));
        if written.is_err() {
            let _ = fs::unlinkat(&self.fd, &hidden, AtFlags::empty());
        }
        written.map_err(self.fail("write", name))
    }

    /// Creates a file that takes the place of `name` later. Returns its name until then, too.
    pub(crate) fn create_hidden(&self, name: &OsStr) -> Result<(File, OsString), Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        plain(name).map_err(self.fail("write", name))?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        Ok((self.create_new(&hidden)?, hidden))
    }

    /// Returns the names in the directory, sorted.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn names(&self) -> Result<Vec<OsString>, Error> {
        let list = || -> io::Result<Vec<OsString>> {
            let mut names = Vec::new();
            for entry in fs::Dir::read_from(&self.fd)? {
                let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        list().map_err(Error::io("read", &self.path))
    }

    /// Returns the type and identity of the entry `name`, if it exists. Does not follow links.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn look(&self, name: impl AsRef<OsStr>) -> Result<Option<(FileType, Identity)>, Error> {
        let name = name.as_ref();
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((FileType::from_raw_mode(stat.st_mode), Identity::of(&stat)))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.fail("read", name)(errno.into())),
        }
    }

    /// Returns the directory's identity.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn identity(&self) -> Result<Identity, Error> {
        fs::fstat(&self.fd).map(|stat| Identity::of(&stat)).map_err(|e| Error::io("read", &self.path)(e.into()))
    }

    /// Opens a directory created as `private` to the users allowed by the caller's umask.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(&self, mode: u32) -> Result<(), Error> {
        let mode = trust::mode_of_new(mode);
        fs::fchmod(&self.fd, mode).map_err(|errno| Error::io("open to readers", &self.path)(errno.into()))
    }

    /// Locks this directory until the last copy of the file descriptor is closed; returns `false` if another process
    /// holds the lock. On file systems without locks, always succeeds.
    pub fn lock(&self) -> bool {
        fs::flock(&self.fd, fs::FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
    }

    /// Flushes the directory's entries to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<(), Error> {
        fs::fsync(&self.fd).map_err(|errno| Error::io("write", &self.path)(errno.into()))
    }

    /// Renames an entry. `to` is replaced if it is an empty directory, or a file and so is `from`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        let rename = || -> io::Result<()> { Ok(fs::renameat(&self.fd, plain(from)?, &self.fd, plain(to)?)?) };
        rename().map_err(self.fail("rename", to))
    }

    /// Exchanges two entries atomically; returns `false` if the system or the file system cannot.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[cfg(target_os = "linux")]
    pub fn exchange(&self, a: &OsStr, b: &OsStr) -> Result<bool, Error> {
        match fs::renameat_with(&self.fd, a, &self.fd, b, fs::RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
            Err(errno) => Err(self.fail("rename", b)(errno.into())),
        }
    }

    /// Exchanges two entries atomically: not supported on this system.
    ///
    /// # Errors
    /// None.
    #[cfg(not(target_os = "linux"))]
    pub fn exchange(&self, _: &OsStr, _: &OsStr) -> Result<bool, Error> {
        Ok(false)
    }

    /// Removes the file or link `name`, if it exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let name = name.as_ref();
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.fail("remove", name)(errno.into())),
        }
    }

    /// Removes the empty directory `name`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_dir(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let name = name.as_ref();
        fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR).map_err(|errno| self.fail("remove", name)(errno.into()))
    }

    /// Removes `name` and everything in it, if it exists. Links are removed, not followed, and other file systems are
    /// not touched.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let device = fs::fstat(&self.fd).map_err(|errno| Error::io("read", &self.path)(errno.into()))?.st_dev;
        self.remove_below(name.as_ref(), device as u64, DEEPEST)
    }

    fn remove_below(&self, name: &OsStr, device: u64, deeper: u32) -> Result<(), Error> {
        match self.look(name)? {
            None => return Ok(()),
            Some((FileType::Directory, identity)) if identity.device == device && deeper > 0 => {}
            Some((FileType::Directory, _)) => {
                return Err(self.fail("remove", name)(io::Error::other("a mount point, or nested too deep")));
            }
            Some(_) => return self.remove_file(name),
        }
        let dir = match self.sub(name) {
            Ok(dir) => dir,
            // It has been replaced by a link or removed in the meantime.
            Err(_) => return self.remove_file(name),
        };
        for name in dir.names()? {
            dir.remove_below(&name, device, deeper - 1)?;
        }
        self.remove_dir(name)
    }

    /// Returns another handle of the same directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn try_clone(&self) -> Result<Dir, Error> {
        let fd = self.fd.try_clone().map_err(Error::io("open", &self.path))?;
        Ok(Dir { fd, path: self.path.clone() })
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Identity {
    fn of(stat: &fs::Stat) -> Identity {
        // The field types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }
}

/// The capacity of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can be written without privileges.
    pub free: u64,
    /// Total bytes.
    pub total: u64,
}

/// Returns the capacity of the file system of an open file or directory; `None` if it is unknown.
pub fn space(of: impl AsFd) -> Option<Space> {
    let about = fs::fstatvfs(of).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
    (about.f_blocks > 0).then(|| Space { free: bytes(about.f_bavail), total: bytes(about.f_blocks) })
}
