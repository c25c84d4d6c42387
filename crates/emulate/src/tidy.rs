//! Removes everything a lab created, however it ends.
//!
//! A lab's record is the directory `/run/ranway/ID`. The lab is alive while a process holds the lock (flock) on that
//! directory; process IDs do not matter. There is one implementation of the cleanup, `tidy.sh`, and it runs
//!
//! - as the *keeper*, a process in a session of its own that waits from the start for the end of its input, which comes
//!   when the [`Claim`] is dropped, or when this process dies in any way;
//! - in place of a keeper that was itself killed;
//! - at the next start, for labs that died together with their keepers ([`sweep`]).
//!
//! It also runs the script that the lab left in its directory ([`Claim::restore_by`]), which only root can write.
//!
//! The keeper shares the lock (one open file description), so there is no moment between a lab's death and the end of its
//! cleanup at which another process could take it for abandoned, or its ID for free.
//!
//! A cleanup that runs in another network namespace than the lab's cannot undo the lab's changes there: it removes the
//! record, and the changes stay ([`Claim::restore_by`]).
//!
//! Three things are not removed: a process that moved to a network namespace that it made, one whose namespace was deleted by
//! name (`ip netns delete`), and the directories `/run/netns`, `/etc/netns` and `/run/ranway` themselves.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use disk::Dir;

use crate::Error;
use netio::sys;

/// Where the records of labs are, each in a directory with its ID.
pub(crate) const RECORDS: &str = "/run/ranway";
/// Where `ip netns` keeps namespaces.
pub(crate) const NAMESPACES: &str = "/run/netns";
/// Where `ip netns exec` looks for a namespace's own files of `/etc`.
pub(crate) const FILES: &str = "/etc/netns";

/// Ownership of an ID, and of the namespaces whose names begin with [`Claim::prefix`]. Dropping it removes them, with every
/// process inside.
#[derive(Debug)]
pub(crate) struct Claim {
    id: String,
    directory: Dir,
    lock: File,
    keeper: Child,
}

impl Claim {
    /// Cleans up after dead labs, and takes a new ID.
    pub(crate) fn new() -> Result<Claim, Error> {
        let failed = |source| Error::System { what: format!("make a directory in {RECORDS}"), source };
        // Whoever starts it is root, and nobody else may write on the way there.
        let (run, name, _) = Dir::parent_of(Path::new(RECORDS))?;
        let records = match run.make(&name, true) {
            Err(disk::Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                run.trusted_sub(&name)?
            }
            made => made?,
        };
        // Held to the end of this function: whoever finds a directory without a lock now, finds an abandoned one.
        let records = File::from(records.as_fd().try_clone_to_owned().map_err(failed)?);
        records.lock().map_err(failed)?;
        sweep();

        let mut tries = 0;
        let id = loop {
            let id = match tries {
                0 => format!("{:x}", std::process::id()),
                _ => format!("{:x}x{tries:x}", std::process::id()),
            };
            match make(&record(&id)) {
                Ok(()) => break id,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => tries += 1,
                Err(e) => return Err(failed(e)),
            }
        };
        let started = take(&id).and_then(|lock| {
            let lock = lock.ok_or(io::ErrorKind::ResourceBusy)?;
            let directory = Dir::open(&record(&id)).map_err(io::Error::other)?;
            Ok((tidy(&id, &lock, Stdio::piped())?, lock, directory))
        });
        match started {
            Ok((keeper, lock, directory)) => Ok(Claim { directory, id, lock, keeper }),
            Err(source) => {
                // Nothing is in it yet; and if it stays, the next start finds it.
                let _ = fs::remove_dir(record(&id));
                Err(Error::System { what: "start `sh` to clean up in the end".into(), source })
            }
        }
    }

    /// The ID: short, and unique among living labs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The lab's directory.
    pub(crate) fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Lets the cleanup run `lines` in a shell, to undo changes outside the lab's namespaces. They run only in the caller's
    /// network namespace, because the process that cleans up may be in another.
    pub(crate) fn restore_by(&self, lines: &str) -> Result<(), Error> {
        let namespace =
            fs::read_link("/proc/thread-self/ns/net").map_err(Error::system("tell the network namespace"))?;
        let guard = format!("[ \"$(readlink /proc/self/ns/net)\" = '{}' ] || exit 0\n", namespace.display());
        Ok(self.directory.replace("restore", (guard + lines).as_bytes())?)
    }

    /// The prefix of the names of this lab's namespaces, and of no others.
    pub(crate) fn prefix(&self) -> String {
        format!("ranway-{}-", self.id)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Waiting ends the keeper's input.
        if !self.keeper.wait().is_ok_and(|status| status.success()) {
            clean(&self.id, &self.lock);
        }
    }
}

/// Cleans up after labs that died together with their keepers. The lock on [`RECORDS`] is held.
fn sweep() {
    let mut found: BTreeSet<String> = names(RECORDS).collect();
    // Files of /etc outlive a restart of the machine, unlike records and namespaces.
    let files = names(FILES).filter(|ns| !Path::new(NAMESPACES).join(ns).exists());
    found.extend(files.filter_map(|ns| Some(ns.strip_prefix("ranway-")?.split_once('-')?.0.to_owned())));
    for id in found.iter().filter(|id| is_id(id)) {
        // No record is as good as one that nobody holds.
        let _ = make(&record(id));
        // What cannot be cleaned up now stands in nobody's way, and is tried again at the next start.
        if let Ok(Some(lock)) = take(id) {
            clean(id, &lock);
        }
    }
}

/// Cleans up the lab `id`, whose lock the caller holds.
fn clean(id: &str, lock: &File) {
    if let Ok(mut child) = tidy(id, lock, Stdio::null()) {
        let _ = child.wait();
    }
}

/// Starts the script, which cleans up the lab when `input` ends, and holds `lock` until it is done.
fn tidy(id: &str, lock: &File, input: Stdio) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", include_str!("tidy.sh"), "ranway-tidy", id]).current_dir("/");
    command.stdin(input).stdout(lock.try_clone()?).stderr(Stdio::null());
    sys::in_own_session(&mut command).spawn()
}

/// Takes the lock of `id`, unless another process holds it.
fn take(id: &str) -> io::Result<Option<File>> {
    let directory = File::open(record(id))?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(e)) => Err(e),
    }
}

fn make(record: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(record)
}

fn record(id: &str) -> PathBuf {
    Path::new(RECORDS).join(id)
}

/// Whether a name has the form of an ID: hexadecimal numbers, joined by `x`.
fn is_id(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'x'))
}

/// Returns the names in a directory; none if it cannot be read.
fn names(directory: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Lab, may};
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    /// Runs on for a while in a host after its parents have gone, in a session of its own, and does not mind SIGTERM.
    const STUBBORN: &str =
        "setsid sh -c 'trap \"\" HUP INT TERM; echo $$; for n in 1 2 3 4 5 6 7 8 9; do sleep 1; done' 2>/dev/null &";

    fn lab() -> Lab {
        Lab::new(&["server".into(), "phone".into()], None, 1500, None).expect("a lab")
    }

    /// Starts [`STUBBORN`] in a host: its process number.
    fn stubborn(lab: &Lab) -> u32 {
        let mut child = lab.command(1, "sh".as_ref()).args(["-c", STUBBORN]).stdout(Stdio::piped()).spawn().unwrap();
        let pid = line(child.stdout.take().unwrap()).parse().unwrap();
        assert!(child.wait().unwrap().success());
        pid
    }

    fn line(from: impl io::Read) -> String {
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Whether a process runs: not if it waits to be reaped.
    fn runs(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    }

    /// What there is of the lab `id`.
    fn traces(id: &str) -> Vec<String> {
        let prefix = format!("ranway-{id}-");
        let of_lab = |at: &'static str| names(at).filter(|n| n.starts_with(&prefix)).map(move |n| format!("{at}/{n}"));
        let records = names(RECORDS).filter(|n| n == id).map(|n| format!("{RECORDS}/{n}"));
        records.chain(of_lab(NAMESPACES)).chain(of_lab(FILES)).collect()
    }

    fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Another process that holds a lab: this test binary, in the test below.
    struct Holder {
        child: Child,
        id: String,
        keeper: u32,
        stubborn: u32,
    }

    impl Holder {
        fn start() -> Holder {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["tidy::tests::root_another_process_holds_a_lab", "--exact", "--ignored", "--nocapture"])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let said = line(child.stderr.take().unwrap());
            let [id, keeper, stubborn] = said.split(' ').collect::<Vec<_>>().try_into().expect("it holds a lab");
            Holder { child, id: id.into(), keeper: keeper.parse().unwrap(), stubborn: stubborn.parse().unwrap() }
        }

        fn kill(&mut self) -> ExitStatus {
            self.child.kill().unwrap();
            self.child.wait().unwrap()
        }
    }

    #[test]
    #[ignore = "it is run by others"]
    fn root_another_process_holds_a_lab() {
        if may() {
            let lab = lab();
            let stubborn = stubborn(&lab);
            eprintln!("{} {} {stubborn}", lab.id(), lab.claim().keeper.id());
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
        }
    }

    #[test]
    fn only_the_exact_form_of_an_id_is_one() {
        for id in ["1", "1a2b", "1a2bx3", "deadbeefx10"] {
            assert!(is_id(id), "{id}");
        }
        for name in ["", ".", "..", "-1", "1-2", "1/2", "1A", "g", "1 2", "$(id)", "*", "1\n", &"1".repeat(33)] {
            assert!(!is_id(name), "{name}");
        }
    }

    #[test]
    fn the_script_refuses_what_is_no_id() {
        let lock = File::open("/").unwrap();
        for name in ["", ".", "..", "*", "1/..", "1;id"] {
            let status = tidy(name, &lock, Stdio::null()).unwrap().wait().unwrap();
            assert_eq!(status.code(), Some(2), "{name}");
        }
    }

    #[test]
    fn root_a_dropped_lab_leaves_nothing() {
        if !may() {
            return;
        }
        let lab = lab();
        let (id, keeper, stubborn) = (lab.id().to_owned(), lab.claim().keeper.id(), stubborn(&lab));
        assert_eq!(traces(&id).len(), 1 + 2 + 2, "{:?}", traces(&id));
        assert!(runs(keeper) && runs(stubborn));
        drop(lab);
        assert_eq!(traces(&id), [""; 0]);
        assert!(!runs(keeper));
        within(Duration::from_secs(1), "the process is gone", || !runs(stubborn));
    }

    #[test]
    fn root_a_lab_is_dropped_clean_without_its_keeper() {
        if !may() {
            return;
        }
        let lab = lab();
        let (id, keeper, stubborn) = (lab.id().to_owned(), lab.claim().keeper.id(), stubborn(&lab));
        kill(Pid::from_raw(keeper as i32), Signal::SIGKILL).unwrap();
        within(Duration::from_secs(1), "the keeper is gone", || !runs(keeper));
        drop(lab);
        assert_eq!(traces(&id), [""; 0]);
        within(Duration::from_secs(1), "the process is gone", || !runs(stubborn));
    }

    #[test]
    fn root_a_killed_process_leaves_no_lab() {
        if !may() {
            return;
        }
        let mut holder = Holder::start();
        // The keeper minds no signal that a terminal or a service manager sends to all.
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            kill(Pid::from_raw(holder.keeper as i32), signal).unwrap();
        }
        assert_eq!(holder.kill().signal(), Some(Signal::SIGKILL as i32));
        within(Duration::from_secs(2), "everything is gone", || {
            traces(&holder.id).is_empty() && !runs(holder.stubborn) && !runs(holder.keeper)
        });
    }

    #[test]
    fn root_the_next_start_sweeps_up_what_died_with_its_keeper_and_spares_the_living() {
        if !may() {
            return;
        }
        let (mut dead, mut living) = (Holder::start(), Holder::start());
        kill(Pid::from_raw(dead.keeper as i32), Signal::SIGKILL).unwrap();
        dead.kill();
        // Files of /etc from before the machine was started.
        let old = Path::new(FILES).join("ranway-fffffffffx1-server");
        fs::create_dir(&old).unwrap();
        fs::write(old.join("hosts"), "").unwrap();
        // Names that only resemble ours.
        let strangers = ["ranway-mine-server", "ranway-ffffffffff"].map(|name| Path::new(FILES).join(name));
        strangers.iter().for_each(|path| fs::create_dir(path).unwrap());

        let lab = lab();
        let spared = strangers.map(|path| fs::remove_dir(path).is_ok());
        assert_eq!(spared, [true, true]);
        assert_eq!(traces(&dead.id), [""; 0]);
        assert!(!old.exists());
        within(Duration::from_secs(1), "the process is gone", || !runs(dead.stubborn));
        assert_eq!(traces(&living.id).len(), 5);
        assert!(runs(living.stubborn) && runs(living.keeper));

        drop((lab, living.child.stdin.take()));
        living.child.wait().unwrap();
        assert_eq!(traces(&living.id), [""; 0]);
    }

    #[test]
    fn root_a_lab_that_cannot_be_completed_leaves_nothing() {
        if !may() {
            return;
        }
        // Its interfaces are more than it may have files.
        let exe = std::env::current_exe().unwrap();
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 32; exec \"$0\" \"$@\""])
            .arg(exe)
            .args(["tidy::tests::root_another_process_fails", "--exact", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (id, error) = said.lines().next().and_then(|line| line.split_once(' ')).expect("an ID and an error");
        assert!(error.contains("Too many open files"), "{error}");
        assert_eq!(traces(id), [""; 0]);
    }

    #[test]
    #[ignore = "it is run by others"]
    fn root_another_process_fails() {
        let names: Vec<String> = (0..64).map(|n| format!("host{n}")).collect();
        if let Err(e) = Lab::new(&names, None, 1500, None) {
            eprintln!("{:x} {e}", std::process::id());
        }
    }
}
