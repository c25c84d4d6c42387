//! The directory in which loaded programs outlive the command that loaded them: `/sys/fs/bpf/ranway`.

use crate::Error;
use nix::mount::MsFlags;
use std::path::{Path, PathBuf};
use std::{fs, io};

const ROOT: &str = "/sys/fs/bpf";
const OURS: &str = "/sys/fs/bpf/ranway";
/// Records that the file system was mounted by us and has to be unmounted. Exists while something is loaded.
const RECORD: &str = "/run/ranway-bpf";
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// Returns whether the file system is mounted.
fn is_mounted() -> bool {
    nix::sys::statfs::statfs(ROOT).is_ok_and(|at| at.filesystem_type().0 == BPF_FS_MAGIC)
}

/// Returns the directory for this name, which may not exist.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(OURS).join(name)
}

/// Returns whether something is loaded under this name.
pub(crate) fn exists(name: &str) -> bool {
    is_mounted() && directory(name).exists()
}

/// Creates the directory for this name.
pub(crate) fn create(name: &str) -> Result<PathBuf, Error> {
    if !is_mounted() {
        fs::write(RECORD, "").map_err(Error::system(format!("write {RECORD}")))?;
        let mounted = nix::mount::mount(Some("bpf"), ROOT, Some("bpf"), MsFlags::empty(), Some("mode=0700"));
        if let Err(e) = mounted {
            let _ = fs::remove_file(RECORD);
            return Err(Error::System { what: format!("mount the bpf file system at {ROOT}"), source: e.into() });
        }
    }
    let directory = directory(name);
    fs::create_dir_all(&directory).map_err(Error::system(format!("make {}", directory.display())))?;
    Ok(directory)
}

/// Removes the directory for this name, and its parents if they are empty then.
pub(crate) fn remove(name: &str) -> Result<(), Error> {
    let directory = directory(name);
    let removed = || -> io::Result<()> {
        for entry in fs::read_dir(&directory)? {
            fs::remove_file(entry?.path())?;
        }
        fs::remove_dir(&directory)
    };
    removed().map_err(Error::system(format!("remove {}", directory.display())))?;
    // Others may be loaded, and other programs may use that file system.
    let _ = fs::remove_dir(OURS);
    // The kernel's own are there from the start.
    let kernels = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".debug");
    let empty = fs::read_dir(ROOT).is_ok_and(|entries| entries.flatten().all(|entry| kernels(&entry)));
    if empty && Path::new(RECORD).exists() && nix::mount::umount(ROOT).is_ok() {
        let _ = fs::remove_file(RECORD);
    }
    Ok(())
}
