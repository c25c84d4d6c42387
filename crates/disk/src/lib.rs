//! Directories held open while files are written to them, for all parts of Ranway that write files.
//!
//! Root may write anywhere, so if another user can change a path between two system calls, they choose which file root
//! overwrites. Therefore a [`Dir`] is opened once, component by component from the root of the file system, and all
//! operations are relative to its file descriptor: files are created (`O_EXCL`, `O_NOFOLLOW`), replaced by renaming,
//! and removed without following links. Paths are used only in messages.
//!
//! While the process is root, a directory is rejected ([`Error::Untrusted`]) if anyone other than root and the calling
//! user could exchange an entry in it or on the path to it:
//!
//! - it belongs to neither root nor the caller, which is the user who ran `sudo` or `pkexec` (`SUDO_UID`,
//!   `PKEXEC_UID`);
//! - its group or others may write to it, and it is not sticky. The private groups of root and of the caller (a group
//!   with the caller's user ID, as in most distributions) are trusted;
//! - a symbolic link on the path belongs to another user.
//!
//! In a sticky directory such as `/tmp`, entries belong to their owners, so it is accepted on the path; a directory
//! opened below it has to pass the same check. A process without privileges gives an attacker nothing to gain, so
//! nothing is rejected.
//!
//! Files that users name are read by [`read()`]: regular files, up to a length; those with secrets by [`secret`].

#![allow(clippy::disallowed_methods)] // This crate is where the others meet the disk.

mod dir;
mod draft;
mod error;
mod open;
mod read;
mod trust;
mod walk;

pub use dir::{Dir, Identity, Space, space};
pub use draft::{Draft, remove_drafts};
pub use error::Error;
pub use open::write;
pub use read::{read, regular, secret};
pub use walk::Made;
