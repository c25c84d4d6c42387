//! What a run does with root's rights, and what becomes of it when its terminal or its processor is taken away.
//!
//! The functions whose names begin with `root_inside` are run by the others, in processes of their own.

use crate::common::spaces::{Spaces, ip, own_mounts};
use crate::common::{LINK, PATIENT, Running, command, eventually, json, may, namespaces, scratch, text};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::openpty;
use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use testkit::root::granted;

/// How long a flood lasts.
const FLOOD: Duration = Duration::from_secs(4);

/// Has `command` speak to a terminal, and gives the other side of that.
fn in_terminal(command: &mut Command) -> OwnedFd {
    let pty = openpty(None, None).expect("a terminal");
    // Held by the command itself, it would never be closed.
    fcntl(&pty.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("it is a descriptor");
    let end = || Stdio::from(pty.slave.try_clone().expect("another descriptor"));
    command.stdin(end()).stdout(end()).stderr(end());
    pty.master
}

/// The same, by `setsid`, so that the terminal is its controlling one: when it is closed there is a signal, too.
fn controlled(program: &Command) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program.get_program()).args(program.get_args());
    if let Some(dir) = program.get_current_dir() {
        command.current_dir(dir);
    }
    command
}

fn reap(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if start.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it did not end within 30 s");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads what is printed until it contains `what`.
fn read_until(terminal: &OwnedFd, what: &str) {
    let mut file = fs::File::from(terminal.try_clone().expect("another descriptor"));
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    while !text(&said).contains(what) {
        let count = file.read(&mut buffer).expect("it says something");
        said.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn root_a_terminal_that_is_closed_ends_an_emulation_in_order() {
    if !may() {
        return;
    }
    for has_signal in [false, true] {
        let dir = scratch(LINK);
        // Neither a signal nor a terminal that is gone ends it.
        let line = "trap '' HUP; echo $$ > pid; echo ready; while sleep 0.1; do ping -c 1 server > /dev/null; done";
        let args = [&["emulate", "net.toml"], &PATIENT[..], &["--", "sh", "-c", line]].concat();
        let mut ranway = command(dir.path(), &args);
        if has_signal {
            ranway = controlled(&ranway);
        }
        let terminal = in_terminal(&mut ranway);
        let child = ranway.spawn().expect("it starts");
        drop(ranway);
        let id = format!("{:x}", child.id());
        read_until(&terminal, "ready");
        let pid = fs::read_to_string(dir.path().join("pid")).expect("it was written").trim().to_owned();
        std::thread::sleep(Duration::from_millis(300));
        drop(terminal);
        let status = reap(child);
        assert_eq!(status.code(), Some(128 + 1), "signal: {has_signal}");
        assert!(json(dir.path(), "timing.json")["wall_s"].as_f64().is_some_and(|s| s > 0.2), "signal: {has_signal}");
        assert!(dir.path().join("ranway-out/net-emulated/report.html").exists());
        eventually("the command is gone", || !Path::new("/proc").join(&pid).exists());
        assert_eq!(namespaces(&id), [""; 0]);
        assert!(!Path::new("/run/ranway").join(&id).exists());
    }
}

#[test]
fn root_a_reader_that_leaves_ends_an_attached_emulation_in_order() {
    if !may() {
        return;
    }
    own_mounts(&[]);
    let spaces = Spaces::new(&["m", "f"]);
    spaces.join(("m", "left", &[]), ("f", "l0", &[]));
    spaces.join(("m", "right", &[]), ("f", "r0", &[]));
    fs::write(spaces.dir.path().join("net.toml"), LINK).expect("it is written");
    let mut ranway = spaces.command("m", env!("CARGO_BIN_EXE_ranway"));
    ranway.args(["emulate", "net.toml", "--attach", "left", "right"]).args(PATIENT);
    let terminal = in_terminal(&mut ranway);
    let child = ranway.spawn().expect("it starts");
    drop(ranway);
    read_until(&terminal, "press Ctrl-C to stop");
    drop(terminal);
    assert_eq!(reap(child).code(), Some(128 + 1));
    assert!(spaces.dir.path().join("ranway-out/net-emulated/meta.json").exists());
}

#[test]
fn root_a_terminal_that_is_closed_ends_a_backlog_and_a_pep_in_order() {
    if granted(emulate::lab::check()).is_none() || granted(ebpf::divert::check("this test")).is_none() {
        return;
    }
    own_mounts(&[("/sys/fs/bpf", "bpf")]);
    let spaces = Spaces::new(&["r", "f"]);
    spaces.join(("r", "modem", &["10.9.3.1/24"]), ("f", "f0", &["10.9.3.2/24"]));
    spaces.join(("r", "lan", &["10.9.4.1/24"]), ("f", "f1", &["10.9.4.2/24"]));
    for args in [&["backlog", "--modem", "modem"][..], &["pep", "--wan", "modem", "--ran", "lan"]] {
        let mut ranway = spaces.command("r", env!("CARGO_BIN_EXE_ranway"));
        ranway.args(args);
        let terminal = in_terminal(&mut ranway);
        let child = ranway.spawn().expect("it starts");
        drop(ranway);
        read_until(&terminal, "press Ctrl-C to stop");
        std::thread::sleep(Duration::from_millis(300));
        drop(terminal);
        assert_eq!(reap(child).code(), Some(0), "{args:?}");
        let left = spaces.command("r", "ip").args(["-oneline", "link"]).output().expect("ip runs");
        assert!(!text(&left.stdout).contains("backlog"), "{args:?}: {}", text(&left.stdout));
    }
    ip(&format!("-n {} link delete modem", spaces.space("r")));
}

#[test]
fn root_a_command_runs_as_the_user_who_was_chosen() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let line = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME ${SUDO_UID-none}; grep CapEff /proc/self/status; \
        touch /etc/ranway-test 2>/dev/null || echo refused; ip -oneline link show cell0 | wc -l";
    let mut ranway = command(dir.path(), &[&["emulate", "net.toml", "--user", "nobody"], &PATIENT[..]].concat());
    ranway.args(["--", "sh", "-c", line]).env("SUDO_UID", "0");
    let output = Running::of(ranway).end();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(&lines[..3], ["65534", "65534", "65534"], "{said}");
    assert!(lines[3].ends_with(" nobody nobody none") && lines[4].ends_with("0000000000000000"), "{said}");
    assert_eq!(&lines[5..], ["refused", "1"], "{said}");
    for (user, code, hint) in [("no-such-user", 2, "there is no user"), ("nobody", 2, "give one after `--`")] {
        let args = ["emulate", "net.toml", "--user", user];
        let args = if code == 2 && user == "nobody" { args.to_vec() } else { [&args[..], &["--", "true"]].concat() };
        let output = command(dir.path(), &args).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(hint), "{said}");
    }
}

#[test]
fn root_threads_that_read_packets_have_no_rights() {
    if !may() {
        return;
    }
    /// `CAP_IPC_LOCK`.
    const LEFT: u64 = 1 << 14;
    let dir = scratch(LINK);
    let line = "echo ready; read _";
    let args = [&["emulate", "net.toml", "--pcap"], &PATIENT[..], &["--", "sh", "-c", line]].concat();
    let mut running = Running::of(command(dir.path(), &args));
    running.ready();
    let mut confined = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs").flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_owned();
        let name = field("Name:");
        if !["engine", "web", "capture"].contains(&name.as_str()) {
            continue;
        }
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            let bits = u64::from_str_radix(&field(set), 16).expect("a number");
            assert_eq!(bits & !LEFT, 0, "{name}: {set} {bits:x}");
        }
        assert_eq!(field("NoNewPrivs:"), "1", "{name}");
        assert_eq!(field("Seccomp:"), if name == "capture" { "0" } else { "2" }, "{name}");
        confined.push(name);
    }
    confined.sort();
    assert_eq!(confined, ["capture", "engine", "web"]);
    running.say("\n");
    let output = running.end();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_the_processor_is_wanted() {
    let Some(_) = std::env::var_os("RANWAY_INSIDE") else { return };
    // The longest time for which an ordinary process did not get the processor.
    let (start, mut before, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while start.elapsed() < FLOOD {
        let now = Instant::now();
        longest = longest.max(now - before);
        before = now;
    }
    println!("\nlongest {}", longest.as_millis());
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_a_flood_is_sent() {
    let Some(_) = std::env::var_os("RANWAY_INSIDE") else { return };
    let start = Instant::now();
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    while start.elapsed() < FLOOD + Duration::from_secs(2) {
        for _ in 0..100 {
            let _ = socket.send_to(&[7], ("10.0.0.1", 9));
        }
    }
}

#[test]
fn root_a_flood_leaves_the_processor_to_others_too() {
    if !may() {
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        eprintln!("SKIPPED: a flood and the network need two processors");
        return;
    }
    let exe = std::env::current_exe().expect("it runs").display().to_string();
    let inside = |name: &str| format!("{exe} privileges::root_inside_{name} --exact --ignored --nocapture");
    let dir = scratch(&LINK.replace("8 Mbit/s", "1 Gbit/s"));
    // The network has the last processor, the flood the first.
    let line = format!("echo ready; exec taskset -c 0 {}", inside("a_flood_is_sent"));
    let args = [&["emulate", "net.toml"], &PATIENT[..], &["--", "sh", "-c", &line]].concat();
    let mut ranway = command(dir.path(), &args);
    let mut running = Running::of({
        ranway.env("RANWAY_INSIDE", "1");
        ranway
    });
    running.ready();
    std::thread::sleep(Duration::from_millis(500));
    // Before all ordinary processes on that processor, but not before real-time ones.
    let victim = Command::new("nice")
        .args(["-n", "-20", "taskset", "-c", &(cpus - 1).to_string(), "sh", "-c", &inside("the_processor_is_wanted")])
        .env("RANWAY_INSIDE", "1")
        .output()
        .expect("it starts");
    let said = text(&victim.stdout);
    let longest: u64 = said.lines().find_map(|line| line.strip_prefix("longest ")?.parse().ok()).expect("a number");
    let output = running.end();
    let cpu = json(dir.path(), "timing.json")["lateness"]["cpu_share"].as_f64().expect("a number");
    let _ = writeln!(std::io::stderr(), "the longest gap was {longest} ms, the network took {cpu:.2} of its processor");
    // Without the pauses, the kernel lets others wait for 950 ms, or for ever if it is configured so.
    assert!(longest < 300, "{longest} ms; {}", text(&output.stderr));
}

#[test]
fn root_a_full_disk_ends_the_capture_at_once_and_keeps_what_was_measured() {
    if !may() {
        return;
    }
    let dir = scratch(&LINK.replace("8 Mbit/s", "200 Mbit/s"));
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).expect("it is made");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&disk).status();
    assert!(mounted.expect("mount runs").success());
    let line = "echo ready; for n in 1 2 3 4 5; do curl -so /dev/null http://server/4MB; sleep 0.5; done; sleep 1";
    let args =
        [&["emulate", "net.toml", "--pcap", "--out", "disk/r"], &PATIENT[..], &["--", "sh", "-c", line]].concat();
    let output = Running::of(command(dir.path(), &args)).end();
    let written = |name: &str| disk.join("r").join(name).exists();
    let there = ["meta.json", "summary.json", "captures/hosts.incomplete.pcapng", "captures/hosts.pcapng"].map(written);
    let _ = Command::new("umount").arg(&disk).status();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), there), (Some(1), [true, true, true, false]), "{said}");
    let (early, end) = (said.find("warning: the capture"), said.find("report: "));
    assert!(early.is_some() && early < end && said.contains("the capture is incomplete"), "{said}");
}

#[test]
fn names_and_titles_cannot_control_the_terminal() {
    let evil = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m";
    let scenario = format!(
        "title = \"{evil}\"\nduration = \"1 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"30 ms\"\n[[flows]]\nname = \"x{evil}\"\n"
    );
    let dir = scratch(&scenario);
    let raw = |bytes: &[u8]| text(bytes).chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    for args in [
        &["run", "net.toml"][..],
        &["check", "net.toml"],
        &["run", "net.toml", "--json"],
        &["report", "ranway-out/net"],
        &["compare", "ranway-out/net", "ranway-out/net"],
        &["run", "net.toml", "--set", "flows.x=\u{1b}[2J"],
    ] {
        let output = command(dir.path(), args).output().expect("it starts");
        assert!(!raw(&output.stdout) && !raw(&output.stderr), "{args:?}: {output:?}");
    }
}

#[test]
fn what_is_no_file_of_a_scenario_is_refused_at_once() {
    let dir = scratch("include = [\"/dev/zero\"]\nduration = \"1 s\"\n");
    let long = dir.path().join("long.toml");
    fs::File::create(&long).and_then(|file| file.set_len(5 << 30)).expect("a sparse file");
    let trace = "duration = \"1 s\"\n[dumbbell]\nrate = { kind = \"trace\", file = \"/dev/zero\" }\nrtt = \"30 ms\"\n[[flows]]\n";
    fs::write(dir.path().join("trace.toml"), trace).expect("it is written");
    let pipe = dir.path().join("pipe.toml");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    for (file, hint) in [
        ("net.toml", "not a regular file"),
        ("long.toml", "5120 MB"),
        ("trace.toml", "not a regular file"),
        ("pipe.toml", "not a regular file"),
    ] {
        let start = Instant::now();
        let output = command(dir.path(), &["run", file]).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(hint), "{file}: {said}");
        assert!(start.elapsed() < Duration::from_secs(5), "{file}");
    }
}
