//! Decides which directories root may write to.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags, Stat};
use rustix::process::{geteuid, getuid};

use crate::error::Error;

/// Returns whether this process has privileges that its caller lacks. Root of a user namespace of one user has those of that
/// user alone.
pub(crate) fn is_privileged() -> bool {
    geteuid().is_root() && !std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_of_one(&map))
}

/// Returns whether the map of a user namespace (`user_namespaces(7)`) has a single user.
fn is_of_one(map: &str) -> bool {
    map.split_ascii_whitespace().skip(2).eq(["1"])
}

/// Returns the user on whose behalf root acts.
fn caller() -> u32 {
    // Only root can set these variables for a process of root.
    let named = ["SUDO_UID", "PKEXEC_UID"].into_iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    named.unwrap_or_else(|| getuid().as_raw())
}

/// Returns the mode of a new entry. Entries created by root are never writable for others, whatever the umask.
pub(crate) fn mode_of_new(mode: u32) -> Mode {
    Mode::from_raw_mode((if is_privileged() { mode & 0o755 } else { mode }) as _)
}

/// Rejects a directory in which others could exchange entries that are not theirs.
pub(crate) fn check(dir: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    if !is_privileged() {
        return Ok(());
    }
    let stat = fs::fstat(dir).map_err(|errno| Error::io("read", path)(errno.into()))?;
    judge(&stat, has_acl(dir), caller()).map_or(Ok(()), |why| Err(Error::Untrusted { path: path.to_owned(), why }))
}

/// Returns whether a directory has an access control list.
fn has_acl(dir: BorrowedFd<'_>) -> bool {
    // A descriptor opened with `O_PATH` has no attributes.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = fs::openat(dir, c".", flags, Mode::empty()) else { return false };
    fs::fgetxattr(open, c"system.posix_acl_access", &mut [0_u8; 0][..]).is_ok_and(|len| len > 0)
}

/// Returns the reason why others could exchange entries of a directory, if they can.
fn judge(stat: &Stat, has_acl: bool, caller: u32) -> Option<String> {
    if let Some(why) = owner(stat, caller) {
        return Some(why);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.contains(Mode::SVTX) {
        return None;
    }
    // A group with the same ID as its user is that user's private group.
    let own_group = stat.st_gid == 0 || (stat.st_gid == caller && stat.st_uid == caller);
    if mode.contains(Mode::WOTH) {
        Some("any user may write to it".to_owned())
    } else if mode.contains(Mode::WGRP) && (has_acl || !own_group) {
        Some(format!("the group {} and the users in its access control list may write to it", stat.st_gid))
    } else {
        None
    }
}

fn owner(stat: &Stat, caller: u32) -> Option<String> {
    let trusted = stat.st_uid == 0 || stat.st_uid == caller;
    (!trusted).then(|| format!("it belongs to user {}", stat.st_uid))
}

/// Rejects a symbolic link created by another user.
pub(crate) fn check_link(stat: &Stat, path: &Path) -> Result<(), Error> {
    let why = if is_privileged() { owner(stat, caller()) } else { None };
    why.map_or(Ok(()), |why| Err(Error::Untrusted { path: path.to_owned(), why }))
}

/// Rejects a directory that is not the one just created, because another one has been put in its place.
pub(crate) fn made_by_us(dir: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let stat = fs::fstat(dir).map_err(|errno| Error::io("read", path)(errno.into()))?;
    if !is_privileged() || stat.st_uid == geteuid().as_raw() {
        return Ok(());
    }
    Err(Error::Untrusted {
        path: path.to_owned(),
        why: format!("user {} put another directory in its place", stat.st_uid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(uid: u32, gid: u32, mode: u32) -> Stat {
        let mut stat = fs::stat("/").expect("there is a root");
        (stat.st_uid, stat.st_gid, stat.st_mode) = (uid, gid, (0o040_000 | mode) as _);
        stat
    }

    #[test]
    fn a_namespace_of_one_user_is_told_by_its_map() {
        assert!(is_of_one("         0       1000          1\n"));
        for map in ["         0          0 4294967295\n", "0 1000 1\n1 100000 65536\n", "0 100000 65536\n", ""] {
            assert!(!is_of_one(map), "{map}");
        }
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        let refused = |uid, gid, mode, acl| judge(&stat(uid, gid, mode), acl, 1000);
        for (uid, gid, mode) in
            [(0, 0, 0o755), (0, 0, 0o775), (0, 50, 0o755), (0, 0, 0o1777), (1000, 1000, 0o775), (1000, 50, 0o750)]
        {
            assert_eq!(refused(uid, gid, mode, false), None, "{uid} {gid} {mode:o}");
        }
        for (uid, gid, mode) in [
            (65_534, 65_534, 0o755),
            (1001, 1000, 0o700),
            (0, 50, 0o775),
            (0, 0, 0o757),
            (1000, 50, 0o770),
            // Sticky, but its owner may still change any entry.
            (65_534, 0, 0o1777),
        ] {
            assert!(refused(uid, gid, mode, false).is_some(), "{uid} {gid} {mode:o}");
        }
        // With an access control list, the group bits are the maximum rights of anyone in the list.
        assert!(refused(0, 0, 0o775, true).is_some());
    }
}
