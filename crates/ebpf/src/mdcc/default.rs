//! The default congestion control of a network namespace.

use crate::Error;
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The name of the congestion control, and of its directory.
pub(super) const NAME: &str = "mdcc";

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Records the namespace in which mdcc was made the default, and the previous default.
const BEFORE: &str = "/run/ranway-mdcc-default";
/// This thread's namespace.
const OURS: &str = "/proc/thread-self/ns/net";

/// Makes mdcc the default of this thread's network namespace.
pub(super) fn set() -> Result<(), Error> {
    let before = fs::read_to_string(DEFAULT).map_err(Error::system(format!("read {DEFAULT}")))?;
    let namespace = fs::metadata(OURS).map_err(Error::system(format!("read {OURS}")))?.ino();
    let record = format!("{namespace} {}\n", before.trim());
    fs::write(BEFORE, record).map_err(Error::system(format!("write {BEFORE}")))?;
    let set = fs::write(DEFAULT, NAME).map_err(Error::system("make mdcc the default congestion control"));
    if set.is_err() {
        let _ = fs::remove_file(BEFORE);
    }
    set
}

/// Restores the namespace's previous default, if mdcc still is the default and the namespace still exists.
pub(super) fn restore() -> Result<(), Error> {
    let Ok(record) = fs::read_to_string(BEFORE) else { return Ok(()) };
    let _ = fs::remove_file(BEFORE);
    let Some((namespace, before)) = record.trim().split_once(' ') else { return Ok(()) };
    let (Ok(namespace), before) = (namespace.parse::<u64>(), before.to_owned()) else { return Ok(()) };
    let Some(file) = find(namespace) else { return Ok(()) };
    // The file's content depends on the namespace of the thread that opens it.
    let thread = std::thread::spawn(move || -> io::Result<()> {
        setns(file, CloneFlags::CLONE_NEWNET)?;
        if fs::read_to_string(DEFAULT)?.trim() == NAME { fs::write(DEFAULT, before) } else { Ok(()) }
    });
    let restored = thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    restored.map_err(Error::system("restore the default congestion control"))
}

/// Finds a network namespace by its number: this thread's, one with a name, or a process's. A namespace found in none
/// of these ways has no process, so nobody can open a connection in it.
fn find(namespace: u64) -> Option<File> {
    let names = entries("/run/netns");
    let processes = entries("/proc").map(|process| process.join("ns/net"));
    let places = [PathBuf::from(OURS)].into_iter().chain(names).chain(processes);
    places.filter_map(|place| File::open(place).ok()).find(|file| file.metadata().is_ok_and(|m| m.ino() == namespace))
}

fn entries(directory: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}
