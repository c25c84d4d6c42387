//! Real hosts without root: this process becomes root of namespaces of its own, in which it may set up hosts.
//!
//! The user, network and mount namespaces are new (`user_namespaces(7)`). `/run` is empty there, and `/etc/netns` is empty or
//! `/etc` an overlay, so that namespaces have their names and files as with root; all of it goes with the last process in them.
//! What the process writes elsewhere is the user's. It cannot raise its priority, has no way to the machine's networks, and is
//! not seen by programs outside.

use std::fs;
use std::path::Path;

use netio::program::ip;
use netio::rights::{CapabilitySet, has};
use netio::tun;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Error;
use crate::tidy::FILES;

/// What an emulation lacks without root.
pub const LACKS: &str =
    "no real-time priority, no way to this machine's networks and interfaces, and no `ranway control` from outside";

/// Whether this process lacks the rights to set up hosts.
pub fn is_needed() -> bool {
    !has(CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN)
}

/// Makes this process root of new namespaces. It must have no other threads.
///
/// # Errors
/// [`Error::Missing`] if the machine does not allow it. The process should end then.
pub fn enter() -> Result<(), Error> {
    let refused = |what: &str, why: &dyn std::fmt::Display| {
        Error::Missing(format!(
            "real hosts need root (use sudo), or a machine that lets everybody have user namespaces and open {} ({what}: {why})",
            tun::DEVICE
        ))
    };
    fs::OpenOptions::new().read(true).write(true).open(tun::DEVICE).map_err(|error| refused(tun::DEVICE, &error))?;
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(|error| refused("unshare", &error))?;
    // Without the right to drop groups, so that nobody gains what a group is denied.
    for (file, text) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("0 {user} 1")), ("gid_map", format!("0 {group} 1"))]
    {
        fs::write(Path::new("/proc/self").join(file), text).map_err(|error| refused(file, &error))?;
    }
    const NONE: Option<&str> = None;
    let mounted = |what: &str, result: nix::Result<()>| result.map_err(|error| refused(what, &error));
    mounted("mount", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let empty = |path: &str| {
        let made = mount(Some("tmpfs"), path, Some("tmpfs"), plain, Some("mode=755"));
        mounted(&format!("a tmpfs on {path}"), made)
    };
    empty("/run")?;
    if Path::new(FILES).exists() {
        // The machine's own folder is root's.
        empty(FILES)?;
    } else {
        for folder in ["/run/etc", "/run/work"] {
            fs::create_dir(folder).map_err(|error| refused(folder, &error))?;
        }
        let layers = "lowerdir=/etc,upperdir=/run/etc,workdir=/run/work,userxattr";
        let made = mount(Some("overlay"), "/etc", Some("overlay"), plain, Some(layers));
        mounted(&format!("an overlay on /etc, which is not needed if {FILES} exists"), made)?;
    }
    ip(&[], "link set dev lo up\n")?;
    Ok(())
}
