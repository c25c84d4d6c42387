//! A live PEP: what it looks at, and how it ends. Each test that needs root says
//! loudly if it is skipped.

#![allow(clippy::disallowed_methods)] // Tests of a command run commands and read files.

mod common;

use common::spaces::{Spaces, ip, own_mounts};
use common::text;
use std::fs;
use std::ops::Deref;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ROUTER: &str = "r";
const OUTSIDE: &str = "o";

/// A router with two interfaces, and the other ends of both.
struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl Net {
    /// `None`, and says so, where that cannot be.
    fn new() -> Option<Net> {
        host::lab::check().inspect_err(|why| eprintln!("SKIPPED: {why}")).ok()?;
        ebpf::pep::check().inspect_err(|why| eprintln!("SKIPPED: {why}")).ok()?;
        own_mounts(&[]);
        let net = Net(Spaces::new(&[ROUTER, OUTSIDE]));
        net.join((ROUTER, "wan", &[]), (OUTSIDE, "wan-end", &[]));
        net.join((ROUTER, "ran", &[]), (OUTSIDE, "ran-end", &[]));
        Some(net)
    }

    fn ranway(&self, args: &[&str]) -> Command {
        let mut command = self.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
        command.args(args);
        command
    }

    /// A PEP between both interfaces.
    fn start_pep(&self, options: &[&str]) -> Child {
        self.start(ROUTER, &[&["pep", "--wan", "wan", "--ran", "ran"], options].concat())
    }
}

/// Waits for a process to end, which takes a few seconds at most; whether it did, and with which code.
fn ended(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(50));
    }
    None
}

#[test]
fn root_an_interface_has_one_pep_and_one_program_that_takes_its_packets() {
    let Some(net) = Net::new() else { return };
    let mut pep = net.start_pep(&[]);
    // `ip netns exec` becomes the command.
    let taken =
        |interface: &str, pid: u32, does: &str| format!("error: `{interface}` is taken: process {pid} {does}\n");
    let runs = "runs a PEP there already; --take-over puts another in its place";
    let refused = |output: Output, expected: &str| {
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), expected));
    };
    for (wan, ran, first) in [("wan", "ran", "wan"), ("ran", "wan", "ran"), ("lo", "ran", "ran")] {
        let second = net.ranway(&["pep", "--wan", wan, "--ran", ran]).output().expect("it runs");
        refused(second, &taken(first, pep.id(), runs));
    }
    // Another role is no conflict: a PEP looks only.
    let mut backlog = net.start(ROUTER, &["backlog", "--modem", "wan"]);
    let handles = "handles its packets already";
    let second = net.ranway(&["backlog", "--modem", "wan"]).output().expect("it runs");
    refused(second, &taken("wan", backlog.id(), handles));
    fs::write(net.dir.path().join("way.toml"), WAY).expect("it is written");
    let attach = ["emulate", "way.toml", "--attach", "wan", "ran"];
    refused(net.ranway(&attach).output().expect("it runs"), &taken("wan", backlog.id(), handles));
    // What is killed holds nothing any more.
    for child in [&mut pep, &mut backlog] {
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    let mut again = net.start_pep(&[]);
    again.kill().expect("it is ours");
    again.wait().expect("it ends");
}

const WAY: &str = "duration = \"600 s\"\n[[links]]\nname = \"way\"\nfrom = \"server\"\nto = \"phone\"\nduplex = true\n\
                   rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n";

#[test]
fn root_a_pep_whose_interface_goes_away_says_so_and_ends() {
    let Some(net) = Net::new() else { return };
    for removal in ["-n {} link delete ran", "-n {} link set dev wan netns {}-away"] {
        let mut pep = net.ranway(&["pep", "--wan", "wan", "--ran", "ran"]);
        let mut pep = pep.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(1_500));
        let router = net.space(ROUTER);
        let moves = removal.contains("netns");
        if moves {
            ip(&format!("netns add {router}-away"));
        }
        ip(&removal.replace("{}", &router));
        let code = ended(&mut pep);
        if code.is_none() {
            pep.kill().expect("it is ours");
        }
        let said = text(&pep.wait_with_output().expect("it has ended").stderr);
        if moves {
            ip(&format!("netns delete {router}-away"));
        }
        let interface = if moves { "wan" } else { "ran" };
        let why = format!("error: the interface `{interface}` was removed, or moved to another network namespace\n");
        assert_eq!((code, said.ends_with(&why)), (Some(1), true), "{said}");
        if !moves {
            net.join((ROUTER, "ran", &[]), (OUTSIDE, "ran-end2", &[]));
        }
    }
}
