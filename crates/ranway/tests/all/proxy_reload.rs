//! End-to-end tests of `ranway proxy --config`: options that change while connections are open. Tests that need root report when
//! they are skipped.

use crate::common::proxied::*;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// What the proxy says when it has read its configuration.
const AGAIN: &str = "the configuration was read again";

/// A proxy whose options are in a file, and what it says.
struct Configured<'a> {
    net: &'a Net,
    file: PathBuf,
    said: PathBuf,
    running: Running,
}

impl<'a> Configured<'a> {
    fn start(net: &'a Net, options: &str) -> Configured<'a> {
        let (file, said) = (net.dir.path().join("proxy.toml"), net.dir.path().join("said"));
        fs::write(&file, options).expect("it is ours");
        let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
        command.arg("proxy").arg("--config").arg(&file).stderr(fs::File::create(&said).expect("it is ours"));
        let running = Running(Some(command.spawn().expect("it starts")));
        net.until("it accepts", |status| status.accepting);
        net.await_lease(true);
        Configured { net, file, said, running }
    }

    /// Changes the file and waits for what the proxy says to it.
    fn reload(&self, options: &str) -> String {
        fs::write(&self.file, options).expect("it is ours");
        self.reload_file()
    }

    /// Waits for what the proxy says to the file as it is. What it says of room or of its feeds may come before or after.
    fn reload_file(&self) -> String {
        let before = self.lines().len();
        kill(self.running.pid(), Signal::SIGHUP).expect("it runs");
        let start = Instant::now();
        loop {
            let is_answer = |line: &&String| line.contains(AGAIN) || line.starts_with("error: ");
            if let Some(answer) = self.lines()[before..].iter().find(is_answer) {
                return answer.clone();
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "it says nothing");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn lines(&self) -> Vec<String> {
        let said = fs::read_to_string(&self.said).expect("it is there");
        // The last line may not be complete.
        said.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| line.trim().to_owned()).collect()
    }

    /// Whether a new connection to a server passes through the proxy.
    fn splits(&self, listener: &TcpListener) -> bool {
        let before = self.net.status().totals.established;
        let (mut client, mut server) = self.net.pair(listener);
        exchange(&mut client, &mut server);
        self.net.status().totals.established > before
    }
}

#[test]
fn root_settings_change_without_touching_a_connection() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let [one, other] = [0, 1].map(|family| net.listen(SERVER, SERVERS[family]));
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let options = |more: &str| format!("wan = 'wan'\nran = 'ran'\nthreads = 2\ndrain = '300 ms'\n{more}\n");
    let first = options(&format!("ports = {}", port(&one)));
    let proxy = Configured::start(&net, &first);
    assert!(proxy.splits(&one) && !proxy.splits(&other));
    net.until("they have ended", |status| status.totals.open == 0);

    // A transfer goes on all the time.
    let (mut client, mut server) = net.pair(&one);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (mut sent, block): (u64, Vec<u8>) = (0, (0..1 << 16).map(|n| byte(n, 5)).collect());
            while !stop.load(Relaxed) {
                server.write_all(&block).expect("it is open");
                sent += block.len() as u64;
            }
            server.shutdown(Shutdown::Write).expect("it is open");
            sent
        });
        let reader = scope.spawn(|| read_whole(&mut client, |at| byte(at & 0xffff, 5), |_| {}));
        let second = options(&format!("ports = '{}'\nreceive-buffer = '40 KiB'", port(&other)));
        assert_eq!(proxy.reload(&second), AGAIN);
        assert!(!proxy.splits(&one) && proxy.splits(&other));
        // The size holds for new connections, and the kernel doubles it.
        let has_buffers = |bytes: u32| {
            let (mut new, mut new_server) = net.pair(&other);
            exchange(&mut new, &mut new_server);
            let of_new = format!("( sport = {0} or dport = {0} )", port(&other));
            let buffers = net.on_router("ss", &["-Htnm", "state", "established", &of_new]);
            assert_eq!(buffers.matches(&format!(",rb{bytes},")).count(), 2, "{buffers}");
        };
        has_buffers(81_920);
        // A large one begins as the kernel's, and not as the one before.
        assert_eq!(proxy.reload(&options(&format!("ports = {}", port(&other)))), AGAIN);
        has_buffers(131_072);
        assert_eq!(proxy.reload(&second), AGAIN);
        has_buffers(81_920);

        for (wrong, why) in [
            ("prots = 80", "there is no option `prots`; did you mean `ports`?"),
            ("ports = 0", "invalid value '0' for '--ports <PORTS>': `0` is not a port from 1 to 65535"),
            ("cc = 'none'", "the kernel has no congestion control `none`; it has "),
            ("idle-timeout = '0 s'", "the times without a byte must be greater than 0"),
            ("reports = 'recording:/nowhere'", "No such file or directory"),
            ("ports = ", "line 5: "),
        ] {
            let said = proxy.reload(&options(wrong));
            assert!(said.starts_with("error: ") && said.contains(why), "{said}");
            assert!(said.ends_with("; the settings stay as they were"), "{said}");
            assert!(!proxy.splits(&one) && proxy.splits(&other), "{wrong}");
        }
        // What cannot change keeps nothing else from changing.
        for (fixed, what) in [
            ("buffer = '1 MiB'", "the buffer between two sockets"),
            ("metrics = '127.0.0.1:9180'", "the address of the metrics or the file of their token"),
            ("dashboard = '127.0.0.1:9181'", "the address of the page or the file of its token"),
        ] {
            let stays = format!("warning: {AGAIN}; until a restart, these stay: {what}");
            assert_eq!(proxy.reload(&format!("{first}\n{fixed}")), stays);
            assert!(proxy.splits(&one) && !proxy.splits(&other), "{fixed}");
            assert_eq!(proxy.reload(&second), AGAIN);
        }
        // What is not a regular file is not read.
        fs::remove_file(&proxy.file).expect("it is ours");
        nix::unistd::mkfifo(&proxy.file, nix::sys::stat::Mode::S_IRWXU).expect("there is room");
        assert!(proxy.reload_file().contains("not a regular file"));
        fs::remove_file(&proxy.file).expect("it is ours");
        // An option that is no longer there has its default again.
        net.on_router("sysctl", &["-qw", "net.ipv4.tcp_congestion_control=reno"]);
        for (control, expected) in [("cc = 'cubic'", "cubic"), ("", "reno")] {
            assert_eq!(proxy.reload(&format!("{second}\n{control}")), AGAIN);
            let (mut new, mut new_server) = net.pair(&other);
            exchange(&mut new, &mut new_server);
            let port = new.local_addr().expect("an address").port();
            let leg = net.until("it is open", |status| status.connections.iter().any(|of| of.ue.port() == port));
            let leg = leg.connections.iter().find(|of| of.ue.port() == port).expect("it is open");
            assert_eq!(leg.radio_congestion, expected);
        }
        for round in 0..20 {
            assert_eq!(proxy.reload(if round % 2 == 0 { &first } else { &second }), AGAIN);
        }
        // The transfer is one, and some of those before may not have ended.
        assert_eq!(proxy.reload(&options("max-connections = 1")), AGAIN);
        net.await_lease(false);
        assert!(!proxy.splits(&one) && !proxy.splits(&other));
        assert_eq!(proxy.reload(&options("max-connections = 100")), AGAIN);
        net.await_lease(true);
        assert!(proxy.splits(&one) && proxy.splits(&other));
        stop.store(true, Relaxed);
        assert_eq!(sender.join().expect("it is open"), reader.join().expect("the bytes are right"));
    });
    drop((client, server));
    let status = net.until("all have ended", |status| status.totals.open == 0);
    assert_eq!((status.totals.reset, status.totals.internal_errors), (0, 0));
    proxy.running.end(Signal::SIGTERM);
    net.is_clean_again(&before);
}

#[test]
fn root_other_processors_do_not_keep_a_proxy_from_reading_its_configuration_again() {
    let Some(net) = Net::new() else { return };
    let options = "wan = 'wan'\nran = 'ran'\ndrain = '300 ms'\n";
    let proxy = Configured::start(&net, options);
    let allowed = sched_getaffinity(proxy.running.pid()).expect("it runs");
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect();
    if cpus.len() < 2 {
        println!("SKIPPED: there is one processor");
        return;
    }
    let mut one = CpuSet::new();
    one.set(cpus[0]).expect("it is in range");
    sched_setaffinity(proxy.running.pid(), &one).expect("it runs");
    // The default number of threads is that of the start.
    assert_eq!(proxy.reload(&format!("{options}receive-buffer = '80 KiB'\n")), AGAIN);
    let said = proxy.reload(&format!("{options}threads = 1\n"));
    assert!(said.ends_with("until a restart, these stay: the number of threads"), "{said}");
    let listener = net.listen(SERVER, SERVERS[0]);
    assert!(proxy.splits(&listener));
    proxy.running.end(Signal::SIGTERM);
}

#[test]
fn a_file_without_interfaces_is_refused_in_a_line() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("proxy.toml");
    for (text, missing) in [
        ("# nothing\n", "no `wan` and no `ran`"),
        ("ran = \"eth1\"\n", "no `wan`"),
        ("wan = [\"eth0\"]\nran = []\n", "no `ran`"),
    ] {
        fs::write(&file, text).expect("it is ours");
        let command = env!("CARGO_BIN_EXE_ranway");
        let done =
            std::process::Command::new(command).args(["proxy", "--config"]).arg(&file).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.lines().count() == 1 && said.contains(&format!("{missing}: both interfaces")), "{said}");
    }
}
