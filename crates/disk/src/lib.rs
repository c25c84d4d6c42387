//! Directories that are held open while something is written to them, for every part of Ranway that writes files.
//!
//! Root may write anywhere, so a path that somebody else can change between two system calls lets them choose which file
//! root overwrites. Therefore a [`Dir`] is opened once, from the root of the file system down, and afterwards everything
//! happens relative to its descriptor: files are made anew (`O_EXCL`, `O_NOFOLLOW`), replaced by a rename, and removed
//! without following links. A path is used for messages only.
//!
//! While the process is root, a directory is refused ([`Error::Untrusted`]) if somebody other than root and the caller
//! could exchange an entry on the way to it or in it:
//!
//! - it belongs to neither root nor the caller, the user who ran `sudo` or `pkexec` (`SUDO_UID`, `PKEXEC_UID`);
//! - its group or everybody may write to it, and it is not sticky. The groups of root and of the caller alone (a group
//!   with the number of the caller's user, as most distributions have it) are no others;
//! - a symbolic link on the way belongs to somebody else.
//!
//! In a sticky directory as `/tmp` entries belong to their owners, so it is all right on the way; what is opened below it
//! has to pass the same test. Without privileges there is nothing to be gained, and nothing is refused.

#![allow(clippy::disallowed_methods)] // This crate is where the others meet the disk.

mod dir;
mod error;
mod open;
mod trust;
mod walk;

pub use dir::{Dir, Identity, Space, space};
pub use error::Error;
pub use open::write;
pub use walk::Made;
