//! The congestion control whose windows user space sets, over a router with a deep queue. Needs root; says so loudly if it is
//! skipped.

#![allow(clippy::disallowed_methods)] // Tests run commands, read files and measure time.

use ebpf::rapid::{self, Windows};
use libbpf_rs::query::ProgInfoIter;
use netio::sys::tcp_info;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, conclusive};
use testkit::root::granted;
use wire::tcp_info::TcpInfo;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Longer than any test.
const EVER: Duration = Duration::from_secs(300);
/// Time for a change to take effect: a few round trips of a full queue.
const SETTLED: Duration = Duration::from_millis(300);
/// The longest wait for what must happen.
const TEST_TIMEOUT: Duration = Duration::from_secs(15);

/// In a row: a sender `s`, a router `r` with a bottleneck of 20 Mbit/s whose queue holds 800 packets, a receiver `u`. Its names
/// are in a mount namespace of the test.
struct Net;

impl Net {
    fn new() -> Option<Net> {
        granted(rapid::check())?;
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS).expect("mounts of its own");
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("nobody else sees them");
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).expect("a /run of its own");
        for line in [
            "ip netns add s",
            "ip netns add r",
            "ip netns add u",
            "ip -n s link add s0 gso_max_segs 1 type veth peer name r0 netns r",
            "ip -n u link add u0 type veth peer name r1 netns r",
            "ip -n s addr add 10.9.1.2/24 dev s0",
            "ip -n r addr add 10.9.1.1/24 dev r0",
            "ip -n r addr add 10.9.2.1/24 dev r1",
            "ip -n u addr add 10.9.2.2/24 dev u0",
            "ip -n s link set s0 up",
            "ip -n r link set r0 up",
            "ip -n r link set r1 up",
            "ip -n u link set u0 up",
            "ip -n s route add default via 10.9.1.1",
            "ip -n u route add default via 10.9.2.1",
            "ip netns exec r sysctl -qw net.ipv4.ip_forward=1",
            "ip netns exec r tc qdisc add dev r1 root tbf rate 20mbit burst 16kb latency 500ms",
        ] {
            run(line);
        }
        Some(Net)
    }

    /// Drops the data packets for which this condition of nftables holds, until the guard is dropped.
    fn losing(&self, condition: &str) -> Losing {
        run("ip netns exec r nft add table ip radio");
        run("ip netns exec r nft add chain ip radio lost { type filter hook forward priority 0 ; }");
        run(&format!("ip netns exec r nft add rule ip radio lost oifname r1 {condition} drop"));
        Losing
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for space in ["s", "r", "u"] {
            let _ = Command::new("ip").args(["netns", "delete", space]).output();
        }
    }
}

struct Losing;

impl Drop for Losing {
    fn drop(&mut self) {
        run("ip netns exec r nft delete table ip radio");
    }
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().expect("a program")).args(words).output().expect("it starts");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Acts in a namespace. Sockets made there stay there.
fn inside<T: Send>(space: &str, act: impl FnOnce() -> T + Send) -> T {
    let space = fs::File::open(Path::new("/run/netns").join(space)).expect("it exists");
    let act = move || {
        setns(space, CloneFlags::CLONE_NEWNET).expect("root may enter it");
        act()
    };
    thread::scope(|scope| scope.spawn(act).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A download that runs until [`Download::finish`].
struct Download {
    socket: TcpStream,
    sender: thread::JoinHandle<u64>,
    receiver: thread::JoinHandle<u64>,
}

/// The byte at a position of the stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Download {
    fn start(windows: &Windows) -> Download {
        let listener = inside("u", || TcpListener::bind("10.9.2.2:0").expect("a free port"));
        let to = listener.local_addr().expect("an address");
        let mut socket = inside("s", || TcpStream::connect(to).expect("it is accepted"));
        let (mut receiving, _) = listener.accept().expect("it has connected");
        for stream in [&socket, &receiving] {
            stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a time");
            stream.set_write_timeout(Some(TEST_TIMEOUT)).expect("a time");
        }
        setsockopt(&socket, sockopt::TcpCongestion, &windows.name().into()).expect("it is available");
        let handle = socket.try_clone().expect("a descriptor");
        let sender = thread::spawn(move || {
            let mut sent = 0;
            loop {
                let block: Vec<u8> = (sent..sent + 16_384).map(byte).collect();
                match socket.write(&block) {
                    Ok(n) => sent += n as u64,
                    Err(_) => return sent,
                }
            }
        });
        let receiver = thread::spawn(move || {
            let (mut buffer, mut read) = (vec![0; 1 << 16], 0);
            loop {
                let n = receiving.read(&mut buffer).expect("no reset and no pause");
                if n == 0 {
                    return read;
                }
                assert!(buffer[..n].iter().zip(read..).all(|(&found, at)| found == byte(at)), "after byte {read}");
                read += n as u64;
            }
        });
        Download { socket: handle, sender, receiver }
    }

    fn info(&self) -> TcpInfo {
        tcp_info(self.socket.as_fd()).expect("it is TCP")
    }

    /// The window and the segments in flight, every half millisecond.
    fn samples(&self, span: Duration) -> Vec<(u32, u32)> {
        let (start, mut samples) = (Instant::now(), Vec::new());
        while start.elapsed() < span {
            let info = self.info();
            samples.push((info.snd_cwnd, (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost)));
            thread::sleep(Duration::from_micros(500));
        }
        samples
    }

    /// Checks that the window is `target`, and full.
    fn holds(&self, target: u32) {
        thread::sleep(SETTLED);
        let samples = self.samples(SETTLED);
        let most = samples.iter().map(|&(_, in_flight)| in_flight).max();
        let wrong = samples.iter().find(|&&(window, in_flight)| window != target || in_flight > target);
        assert!(wrong.is_none(), "{wrong:?} of {target}");
        assert!(most.is_some_and(|most| most + 2 >= target), "{most:?} of {target}");
    }

    /// Waits for a window.
    fn until(&self, what: &str, holds: impl Fn(u32) -> bool) -> u32 {
        let start = Instant::now();
        loop {
            let window = self.info().snd_cwnd;
            if holds(window) {
                return window;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "not {what}: {window}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it; every byte has arrived.
    fn finish(self) {
        self.socket.shutdown(std::net::Shutdown::Write).expect("it is open");
        let (sent, read) = (self.sender.join().expect("no panic"), self.receiver.join().expect("no panic"));
        assert!(sent > 0 && sent == read, "{read} of {sent}");
    }
}

/// Retransmission time-outs of a connection, of kernels since 6.7.
fn time_outs(info: &TcpInfo) -> u16 {
    info.total_rto.expect("the kernel counts them")
}

fn loaded() -> Windows {
    let windows = Windows::load().expect("it loads");
    windows.renew(EVER).expect("it is loaded");
    windows
}

#[test]
fn root_a_target_is_the_window_and_changes_it_in_both_directions() {
    conclusive(|_: &mut Watch| {
        let Some(_net) = Net::new() else { return };
        let windows = loaded();
        let download = Download::start(&windows);
        for target in [40, 100, 20] {
            windows.set(download.socket.as_fd(), target).expect("it is open");
            download.holds(target);
        }
        // The smallest.
        windows.set(download.socket.as_fd(), 0).expect("it is open");
        download.holds(10);
        windows.clear(download.socket.as_fd()).expect("it is open");
        windows.clear(download.socket.as_fd()).expect("there is nothing to clear");
        download.until("Reno's", |window| window > 40);
        windows.set(download.socket.as_fd(), 30).expect("it is open");
        download.holds(30);
        download.finish();
    });
}

#[test]
fn root_targets_count_only_as_long_as_they_are_renewed() {
    conclusive(|_: &mut Watch| {
        let Some(_net) = Net::new() else { return };
        let windows = Windows::load().expect("it loads");
        let download = Download::start(&windows);
        windows.set(download.socket.as_fd(), 30).expect("it is open");
        download.until("Reno's at first", |window| window > 60);
        windows.renew(EVER).expect("it is loaded");
        download.holds(30);
        windows.renew(Duration::from_millis(50)).expect("it is loaded");
        let fallen = Instant::now();
        download.until("Reno's again", |window| window > 40);
        // Congestion avoidance: a segment in each round trip of 18 ms and more.
        assert!(fallen.elapsed() > Duration::from_millis(100), "{:?}", fallen.elapsed());
        windows.renew(EVER).expect("it is loaded");
        download.holds(30);
        download.finish();
    });
}

#[test]
fn root_losses_leave_the_window_and_lose_nothing() {
    conclusive(|_: &mut Watch| {
        let Some(net) = Net::new() else { return };
        let windows = loaded();
        let download = Download::start(&windows);
        windows.set(download.socket.as_fd(), 50).expect("it is open");
        thread::sleep(SETTLED);
        let losing = net.losing("numgen random mod 100 < 3");
        let before = download.info();
        let samples = download.samples(Duration::from_secs(4));
        let after = download.info();
        let repaired = after.total_retrans - before.total_retrans;
        let timeouts = time_outs(&after) - time_outs(&before);
        let share = samples.iter().filter(|&&(window, _)| window == 50).count() as f64 / samples.len() as f64;
        let bytes = after.bytes_acked - before.bytes_acked;
        windows.clear(download.socket.as_fd()).expect("it is open");
        thread::sleep(Duration::from_secs(1));
        let reno = download.samples(Duration::from_secs(2));
        let mean = reno.iter().map(|&(window, _)| f64::from(window)).sum::<f64>() / reno.len() as f64;
        println!(
            "3 % lost: {repaired} retransmissions, {timeouts} timeouts, window 50 in {:.1} % of samples, {:.1} of 20 Mbit/s; \
             Reno's mean window without a target {mean:.1}",
            share * 100.0,
            bytes as f64 * 8e-6 / 4.0,
        );
        assert!(repaired > 50, "{repaired}");
        assert!(share == 1.0 || timeouts > 0 && share > 0.8, "{share}");
        assert!(mean > 2.0 && mean < 30.0, "{mean}");
        drop(losing);
        windows.set(download.socket.as_fd(), 50).expect("it is open");
        download.until("the target", |window| window == 50);
        download.finish();
    });
}

#[test]
fn root_after_a_timeout_the_window_comes_back_to_the_target() {
    conclusive(|_: &mut Watch| {
        let Some(net) = Net::new() else { return };
        let windows = loaded();
        let download = Download::start(&windows);
        windows.set(download.socket.as_fd(), 60).expect("it is open");
        download.holds(60);
        let losing = net.losing("ip protocol tcp");
        let small = download.until("small", |window| window < 10);
        thread::sleep(Duration::from_millis(500));
        assert!((1..10).contains(&small), "{small}");
        drop(losing);
        // Not at once: no burst of a whole window into a path that has lost everything.
        let between = download.until("growing", |window| window > small);
        assert!(between < 60, "{between}");
        download.until("the target", |window| window == 60);
        download.holds(60);
        let info = download.info();
        println!("{} timeouts, {} retransmissions", time_outs(&info), info.total_retrans);
        assert!(time_outs(&info) > 0);
        download.finish();
    });
}

#[test]
fn root_the_kernels_bound_on_a_window_is_kept() {
    conclusive(|_: &mut Watch| {
        let Some(_net) = Net::new() else { return };
        run("ip -n s route change default via 10.9.1.1 cwnd lock 25");
        let windows = loaded();
        // The kernel learns it from a connection, for the next one.
        let first = Download::start(&windows);
        thread::sleep(SETTLED);
        first.finish();
        let download = Download::start(&windows);
        windows.set(download.socket.as_fd(), u32::MAX).expect("it is open");
        download.holds(25);
        download.finish();
    });
}

#[test]
fn root_two_at_once_do_not_disturb_each_other() {
    conclusive(|_: &mut Watch| {
        let Some(_net) = Net::new() else { return };
        let (one, other) = (loaded(), loaded());
        assert_ne!(one.name(), other.name());
        let downloads = [Download::start(&one), Download::start(&other)];
        one.set(downloads[0].socket.as_fd(), 20).expect("it is open");
        other.set(downloads[1].socket.as_fd(), 50).expect("it is open");
        // It does not count for the socket of the other.
        one.set(downloads[1].socket.as_fd(), 90).expect("it is open");
        downloads[0].holds(20);
        downloads[1].holds(50);
        let name = one.name().to_owned();
        drop(one);
        gone(&name);
        downloads[1].holds(50);
        downloads.into_iter().for_each(Download::finish);
    });
}

/// Whether there is a congestion control of this name.
fn exists(name: &str) -> bool {
    fs::read_to_string(AVAILABLE).expect("it can be read").split_whitespace().any(|found| found == name)
}

/// Waits until the kernel has removed a congestion control.
fn gone(name: &str) {
    let start = Instant::now();
    while exists(name) {
        assert!(start.elapsed() < TEST_TIMEOUT, "{name} is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The numbers of all programs of this congestion control in the kernel.
fn programs() -> BTreeSet<u32> {
    let of = ProgInfoIter::default().filter(|program| program.name.to_string_lossy().starts_with("rapid_"));
    of.map(|program| program.id).collect()
}

/// Loads it in a process of its own, at the end of whose standard input it ends.
#[test]
#[ignore = "part of another test"]
fn root_holder() {
    if std::env::var_os("RANWAY_HOLD").is_none() {
        return;
    }
    // Those of others may be there, for as long as their sockets are.
    let before = programs();
    let windows = loaded();
    let programs: Vec<String> = programs().difference(&before).map(u32::to_string).collect();
    eprintln!("held {} {}", windows.name(), programs.join(" "));
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn root_nothing_is_left_of_a_process_that_is_killed() {
    if granted(rapid::check()).is_none() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.args(["--exact", "root_holder", "--ignored", "--nocapture"]).env("RANWAY_HOLD", "1");
    let mut child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut words = lines.map_while(Result::ok).find(|line| line.starts_with("held ")).expect("it loads");
    words.drain(..5);
    let (name, mine) = words.split_once(' ').expect("there are programs");
    let mine: BTreeSet<u32> = mine.split(' ').map(|id| id.parse().expect("a number")).collect();
    assert!(exists(name) && mine.len() >= 5 && mine.is_subset(&programs()), "{name}, {mine:?}");
    child.kill().expect("it runs");
    child.ends();
    gone(name);
    let start = Instant::now();
    while !self::programs().is_disjoint(&mine) {
        assert!(start.elapsed() < TEST_TIMEOUT, "programs are still there");
        thread::sleep(Duration::from_millis(50));
    }
}
