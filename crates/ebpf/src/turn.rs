//! Serialises changes of the programs loaded for the whole machine.

use crate::Error;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

/// The lock file, accessible only to root; exists while a change is being made.
const FILE: &str = "/run/ranway-mdcc.lock";

/// The lock for loading and unloading, until dropped. The kernel releases it when the process ends.
#[derive(Debug)]
pub(crate) struct Turn {
    _file: Flock<File>,
}

impl Turn {
    /// Waits until no other process is loading or unloading.
    pub(crate) fn take() -> Result<Turn, Error> {
        let what = || format!("lock {FILE}");
        loop {
            let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
            let mut file = options.open(FILE).map_err(Error::system(what()))?;
            let file = loop {
                match Flock::lock(file, FlockArg::LockExclusive) {
                    Ok(locked) => break locked,
                    Err((again, Errno::EINTR)) => file = again,
                    Err((_, error)) => return Err(Error::system(what())(error)),
                }
            };
            // The previous holder has removed the file: another one may exist by now.
            let number = |metadata: std::io::Result<fs::Metadata>| metadata.ok().map(|m| (m.dev(), m.ino()));
            let locked = number(file.metadata());
            if locked.is_some() && locked == number(fs::symlink_metadata(FILE)) {
                return Ok(Turn { _file: file });
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // While it is locked.
        let _ = fs::remove_file(FILE);
    }
}
