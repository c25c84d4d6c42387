//! What somebody without rights can do to root's files, while root writes results where they may write too.
//!
//! The functions whose names begin with `root_inside` are run by the others, in processes of their own.

#![allow(clippy::disallowed_methods)] // These tests are about files.

#[allow(dead_code, unused_imports, reason = "this test binary uses a part")]
mod made_up;

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use record::{Error, Output, Results};

/// `nobody`.
const STRANGER: u32 = 65_534;
/// How long somebody tries.
const LONG: Duration = Duration::from_secs(4);

/// Whether the test can run; says so loudly if not.
fn may() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    if !is_root {
        // Not by a macro, whose output the test harness would keep to itself.
        let _ = writeln!(io::stderr(), "SKIPPED: only root has something to lose");
    }
    is_root
}

/// One of the functions below, in a process of its own, that works in `dir`.
fn inside(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.args([&format!("root_inside_{name}"), "--exact", "--ignored", "--nocapture"]);
    command.env("RANWAY_INSIDE", dir).env_remove("SUDO_UID").env_remove("PKEXEC_UID");
    command
}

fn given() -> Option<PathBuf> {
    std::env::var_os("RANWAY_INSIDE").map(PathBuf::from)
}

/// Ends with the test, however that ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory of the stranger's, and a file of root's beside it.
fn scene() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).unwrap();
    let (theirs, victim) = (temp.path().join("theirs"), temp.path().join("victim"));
    fs::create_dir(&theirs).unwrap();
    fs::write(&victim, "precious").unwrap();
    chown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
    (temp, theirs, victim)
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_names_are_exchanged() {
    let Some(dir) = given() else { return };
    let (partial, aside, trap) = (dir.join(".r.partial"), dir.join("aside"), dir.join("trap"));
    fs::create_dir(&trap).unwrap();
    for name in ["report.html", "meta.json", "summary.json", "flows.parquet", ".lock", "captures"] {
        symlink(dir.with_file_name("victim"), trap.join(name)).unwrap();
    }
    fs::write(dir.join("ready"), "").unwrap();
    // It is never asked to end: who started it kills it.
    for n in 0_u64.. {
        if fs::rename(&partial, &aside).is_ok() {
            let _ = fs::rename(&trap, &partial);
            std::thread::sleep(Duration::from_micros(n % 2_000));
            let _ = fs::rename(&partial, &trap);
            let _ = fs::rename(&aside, dir.join(format!("old{n}")));
        }
    }
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_results_are_written() {
    let Some(dir) = given() else { return };
    let (results, start) = (made_up::single("x", 50), Instant::now());
    let (mut refused, mut others) = (0, 0);
    while start.elapsed() < LONG {
        // What becomes of the results is up to whoever owns the directory.
        match results.write(&dir.join("r")) {
            Err(Error::Untrusted(_)) => refused += 1,
            _ => others += 1,
        }
    }
    let _ = writeln!(io::stderr(), "refused {refused} times, not refused {others} times");
}

/// Lets the stranger exchange names while root writes; what root said, and what then is in the victim.
fn race(caller: Option<u32>) -> (String, String) {
    let (_temp, theirs, victim) = scene();
    let mut exchange = inside("names_are_exchanged", &theirs);
    let _exchanges = Ends(exchange.uid(STRANGER).gid(STRANGER).spawn().unwrap());
    let start = Instant::now();
    while !theirs.join("ready").exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "the stranger cannot start this test binary");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut root = inside("results_are_written", &theirs);
    if let Some(caller) = caller {
        root.env("SUDO_UID", caller.to_string());
    }
    let output = root.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (said, fs::read_to_string(victim).unwrap())
}

#[test]
fn root_results_do_not_overwrite_what_a_stranger_points_to() {
    if !may() {
        return;
    }
    let (said, victim) = race(None);
    assert_eq!(victim, "precious");
    assert!(said.contains(", not refused 0 times") && !said.contains("refused 0 times,"), "{said}");
}

#[test]
fn root_results_do_not_overwrite_what_the_caller_of_sudo_points_to() {
    if !may() {
        return;
    }
    // The caller's own directory is not refused, unless the exchange puts somebody else's in its place: only descriptors help.
    let (said, victim) = race(Some(STRANGER));
    assert_eq!(victim, "precious");
    assert!(said.contains(", not refused ") && !said.contains(", not refused 0 times"), "{said}");
}

#[test]
fn root_clean_up_does_not_follow_links() {
    if !may() {
        return;
    }
    let (temp, theirs, victim) = scene();
    let precious = temp.path().join("directory");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    // In the place of what an interrupted run left, and in it.
    for plant in [&theirs.join(".a.partial"), &theirs.join(".b.partial/captures")] {
        fs::create_dir_all(plant.parent().unwrap()).unwrap();
        symlink(&precious, plant).unwrap();
    }
    chown(&theirs, Some(0), Some(0)).unwrap();
    for name in ["a", "b"] {
        drop(Output::create(&theirs.join(name)).unwrap());
        made_up::single("x", 10).write(&theirs.join(name)).unwrap();
        assert!(Results::read(&theirs.join(name)).is_ok());
    }
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!theirs.join(".a.partial").exists() && !theirs.join(".b.partial").exists());
}

#[test]
fn root_refuses_what_others_can_change_and_nothing_else() {
    if !may() {
        return;
    }
    let (temp, theirs, _) = scene();
    let untrusted = |dir: &Path| matches!(Output::create(dir), Err(Error::Untrusted(_)));
    assert!(untrusted(&theirs.join("r")) && untrusted(&theirs.join("deep/er/r")));
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0, "nothing was made");
    // Root's own, but anybody may write to it, unless it is sticky.
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).unwrap();
    for (mode, refused) in [(0o777, true), (0o1777, false), (0o755, false)] {
        fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
        assert_eq!(untrusted(&shared.join("r")), refused, "{mode:o}");
    }
    // In a sticky directory somebody has been faster.
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let (link, there) = (shared.join("link"), shared.join("there"));
    fs::create_dir(&there).unwrap();
    symlink(temp.path(), &link).unwrap();
    for path in [&link, &there] {
        std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
        assert!(untrusted(&path.join("r")) && untrusted(path), "{}", path.display());
    }
    let said = Output::create(&there).unwrap_err().to_string();
    assert!(said.contains("belongs to user 65534") && said.contains("choose a directory"), "{said}");
}

#[test]
fn root_nobody_sees_results_before_they_are_complete() {
    if !may() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let output = Output::create(&dir).unwrap();
    assert_eq!(mode(&temp.path().join(".r.partial")), 0o700);
    made_up::single("x", 10).write_to(&output).unwrap();
    output.commit().unwrap();
    assert_eq!((mode(&dir), mode(&dir.join("meta.json"))), (0o755, 0o644));
}
