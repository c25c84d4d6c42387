//! Network namespaces of a test's own, with interfaces between them.

use super::text;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A host, an interface of its, and the addresses there.
pub(crate) type End<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Namespaces, a directory, and what runs for as long as they are there. All of it goes away with this.
pub(crate) struct Spaces {
    name: String,
    hosts: Vec<String>,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) running: Vec<Child>,
}

impl Spaces {
    /// A namespace for each of these hosts.
    pub(crate) fn new(hosts: &[&str]) -> Spaces {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ranway-n{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut spaces = Spaces { name, hosts: Vec::new(), dir, running: Vec::new() };
        for &host in hosts {
            ip(&format!("netns add {}", spaces.space(host)));
            spaces.hosts.push(host.to_owned());
        }
        spaces
    }

    /// A host's namespace, by name.
    pub(crate) fn space(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    /// Joins two hosts by interfaces that are up.
    pub(crate) fn join(&self, one: End, other: End) {
        let [this, that] = [one, other].map(|(host, ..)| self.space(host));
        ip(&format!("-n {this} link add {} type veth peer name {} netns {that}", one.1, other.1));
        for (host, interface, addresses) in [one, other] {
            let space = self.space(host);
            for address in addresses {
                let nodad = if address.contains(':') { "nodad" } else { "" };
                ip(&format!("-n {space} addr add {address} dev {interface} {nodad}"));
            }
            ip(&format!("-n {space} link set dev {interface} up"));
        }
    }

    /// A command inside a namespace.
    pub(crate) fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host), program]).current_dir(self.dir.path());
        command
    }

    /// Starts `ranway` in a namespace, and waits until it says that it is there.
    pub(crate) fn start(&self, host: &str, args: &[&str]) -> Child {
        let mut command = self.command(host, env!("CARGO_BIN_EXE_ranway"));
        let mut child = command.args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("it speaks");
        assert!(line.contains("press Ctrl-C to stop"), "{args:?}: {line}");
        thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        child
    }

    /// Acts in a namespace. Sockets made there stay there.
    pub(crate) fn inside<T: Send>(&self, host: &str, act: impl FnOnce() -> T + Send) -> T {
        let space = fs::File::open(Path::new("/run/netns").join(self.space(host))).expect("it exists");
        let act = move || {
            setns(space, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            act()
        };
        thread::scope(|scope| scope.spawn(act).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Ends what runs, and waits until it has written its results.
    pub(crate) fn end_running(&mut self) {
        for child in &self.running {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        for mut child in self.running.drain(..) {
            let _ = child.wait();
        }
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        self.end_running();
        for host in &self.hosts {
            let _ = Command::new("ip").args(["netns", "delete", &self.space(host)]).output();
        }
    }
}

/// Mounts of this test's own at `/run` and at these places, with these file systems: the kernel lets go of what is kept there
/// when the test's processes end, however they do.
pub(crate) fn own_mounts(more: &[(&str, &str)]) {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).expect("mounts of its own");
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("nobody else sees them");
    for (at, system) in [&[("/run", "tmpfs")], more].concat() {
        mount(Some(system), at, Some(system), MsFlags::empty(), none).unwrap_or_else(|why| panic!("{at}: {why}"));
    }
}

pub(crate) fn ip(line: &str) {
    let output = Command::new("ip").args(line.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {line}: {}", text(&output.stderr));
}
