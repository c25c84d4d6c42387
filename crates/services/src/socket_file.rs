//! Sockets with a file, which disappears with the process that made it.

use netio::socket::listen_for_owner;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use tokio::net::UnixListener;

/// The file of a socket that this process has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketFile {
    /// An absolute path.
    path: OsString,
    /// Device, inode and time of creation.
    identity: (u64, u64, i64, i64),
}

impl SocketFile {
    /// Returns that of the socket which this process has bound at `path`.
    pub(crate) fn at(path: &Path) -> io::Result<SocketFile> {
        let path = std::path::absolute(path)?;
        Ok(SocketFile { identity: SocketFile::identity(&path)?, path: path.into() })
    }

    /// Returns what tells a file from a later one at the same path.
    fn identity(path: &Path) -> io::Result<(u64, u64, i64, i64)> {
        let of = std::fs::symlink_metadata(path)?;
        // A number of an inode may be used again. Nothing changes the time of a socket's contents.
        Ok((of.dev(), of.ino(), of.mtime(), of.mtime_nsec()))
    }

    /// Removes the file, unless another one is in its place.
    pub(crate) fn remove(&self) {
        let path = Path::new(&self.path);
        if SocketFile::identity(path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens at `path`, where a program that was killed may have left its socket.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    match listen(path) {
        Err(why) if why.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
            let answer = std::os::unix::net::UnixStream::connect(path);
            if !is_socket || !answer.is_err_and(|why| why.kind() == io::ErrorKind::ConnectionRefused) {
                return Err(why);
            }
            std::fs::remove_file(path)?;
            listen(path)
        }
        bound => bound,
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    UnixListener::from_std(listen_for_owner(path, 128)?.into())
}
