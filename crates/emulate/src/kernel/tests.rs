//! The kernel's flows over a veth pair and over loopback.

use super::*;
use nix::sched::{CloneFlags, setns};
use scenario::{Scenario, Tcp};
use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;
use testkit::root::granted;
use units::Bytes;

/// Two namespaces that a veth pair joins; they go away with it.
struct Pair {
    names: [String; 2],
}

impl Pair {
    /// Unless this is not root, or there are no namespaces: says so then.
    fn new(name: &str) -> Option<Pair> {
        granted(netio::rights::check_rights())?;
        let id = std::process::id();
        let pair = Pair { names: [format!("ranway-test-{id}-{name}-0"), format!("ranway-test-{id}-{name}-1")] };
        let [a, b] = &pair.names;
        let made = ip(&format!("netns add {a}")) && ip(&format!("netns add {b}"));
        granted(made.then_some(()).ok_or("no network namespaces"))?;
        assert!(ip(&format!("-n {a} link add cell0 mtu 1500 type veth peer name cell0 netns {b}")));
        for (name, address) in [(a, "10.9.0.1/24"), (b, "10.9.0.2/24")] {
            assert!(ip(&format!("-n {name} addr add {address} dev cell0")));
            assert!(ip(&format!("-n {name} link set cell0 up")));
        }
        Some(pair)
    }

    /// Makes the first one send at 20 Mbit/s.
    fn slow_down(&self) {
        let queue = "tc qdisc add dev cell0 root tbf rate 20mbit burst 20kb latency 200ms";
        assert!(ip(&format!("netns exec {} {queue}", self.names[0])));
    }

    fn text(&self, host: usize, path: &str) -> String {
        self.inside(host, || Ok(std::fs::read_to_string(path).unwrap())).unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

impl Hosts for Pair {
    fn address(&self, host: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, 0, host as u8 + 1)
    }

    fn inside<T: Send>(&self, host: usize, act: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        let file = File::open(format!("/run/netns/{}", self.names[host])).unwrap();
        std::thread::scope(|scope| {
            let enter = || {
                setns(file, CloneFlags::CLONE_NEWNET).unwrap();
                act()
            };
            scope.spawn(enter).join().unwrap()
        })
    }
}

fn ip(line: &str) -> bool {
    Command::new("ip").args(line.split(' ')).output().is_ok_and(|output| output.status.success())
}

fn flow(bytes: Option<u64>) -> Flow {
    Flow {
        name: "a".to_owned(),
        copy: 0,
        cc: "cubic",
        from: 0,
        to: 1,
        start: Span::from_millis(50),
        stop: None,
        bytes,
        reader: None,
        tos: 0,
        tcp: Tcp::default(),
    }
}

fn run(pair: &Pair, flows: Vec<Flow>, for_ms: u64) -> Vec<Measured> {
    let epoch = Instant::now();
    let kernel = start(pair, flows, epoch, Span::from_millis(10)).unwrap();
    std::thread::sleep(Duration::from_millis(for_ms).saturating_sub(epoch.elapsed()));
    let stopped = Instant::now();
    let measured = kernel.finish();
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    measured
}

#[test]
fn root_a_transfer_arrives_whole_and_is_sampled_from_its_start_to_its_end() {
    let Some(pair) = Pair::new("transfer") else { return };
    let [one] = run(&pair, vec![flow(Some(3_000_000))], 600).try_into().unwrap();
    assert_eq!(one.failure, None);
    let completed = one.completed.expect("a veth pair carries 3 MB in half a second");
    assert!(completed > Span::from_millis(50));
    assert_eq!((one.received, one.completion()), (3_000_000, Some(completed - Span::from_millis(50))));
    assert!(one.established.is_some_and(|at| at >= Span::from_millis(50) && at < completed), "{:?}", one.established);
    let last = one.samples.last().unwrap();
    assert_eq!(last.bytes_received, 3_000_000);
    // The FIN counts as one, too.
    assert_eq!(last.bytes_acked.abs_diff(3_000_001), 1);
    assert!(u64::from(last.data_segs_out) >= 3_000_000 / 1448, "{last:?}");
    assert!(one.samples.iter().all(|sample| sample.at >= Span::from_millis(50)));
    assert!(last.at < completed + Span::from_millis(100), "{last:?}");
}

#[test]
fn root_a_reader_that_pauses_closes_the_window() {
    let Some(pair) = Pair::new("reader") else { return };
    pair.slow_down();
    let mut paused = flow(None);
    paused.reader = Some(scenario::Reader { reads: Span::from_millis(200), pauses: Span::from_secs(60) });
    paused.tcp.receive_buffer = Bytes::new(200_000);
    let [one] = run(&pair, vec![paused], 1_500).try_into().unwrap();
    assert_eq!(one.failure, None);
    // It reads for 200 ms at 20 Mbit/s; then its buffer is filled.
    assert!((1..600_000).contains(&one.received), "{}", one.received);
    let last = one.samples.last().unwrap();
    let earlier = one.samples.iter().find(|sample| sample.at >= Span::from_millis(900)).unwrap();
    assert!(last.at > Span::from_millis(1_300), "{last:?}");
    assert_eq!(earlier.bytes_acked, last.bytes_acked);
    assert!(last.bytes_acked > one.received, "{last:?}");
}

#[test]
fn root_a_bulk_flow_writes_until_it_is_told_to_stop() {
    let Some(pair) = Pair::new("bulk") else { return };
    pair.slow_down();
    let mut stopped = flow(None);
    stopped.stop = Some(Span::from_millis(400));
    let endless = Flow { cc: "bbr", copy: 1, ..flow(None) };
    let [stopped, endless] = run(&pair, vec![stopped, endless], 1_000).try_into().unwrap();
    assert_eq!((&stopped.failure, &endless.failure), (&None, &None));
    assert!(stopped.completed.expect("it ended") > Span::from_millis(350));
    assert_eq!(endless.completed, None);
    // From 50 ms on, each 10 ms: some may have been late.
    assert!((80..=98).contains(&endless.samples.len()), "{}", endless.samples.len());
    let last = endless.samples.last().unwrap();
    assert_eq!((last.state, last.mss), (1, 1448));
    assert!(last.srtt > Span::from_millis(2) && last.min_rtt.is_some(), "it is behind a queue: {last:?}");
    assert!(last.busy > Span::from_millis(500), "{last:?}");
    assert!(last.bytes_received > 100_000);
}

#[test]
fn root_what_a_scenario_says_of_tcp_reaches_the_sockets() {
    let Some(pair) = Pair::new("options") else { return };
    pair.slow_down();
    let mut one = flow(Some(1_000_000));
    one.cc = "reno";
    one.tos = 0x10;
    one.tcp = Tcp {
        mss: 1_000,
        initial_window: 3,
        min_rto: Span::from_millis(60),
        delayed_ack: false,
        pacing: Some(true),
        window_clamp: Some(Bytes::new(50_000)),
        send_buffer: Bytes::new(1 << 20),
        slow_start_after_idle: false,
        ..Tcp::default()
    };
    let [one] = run(&pair, vec![one], 900).try_into().unwrap();
    assert_eq!(one.failure, None);
    assert!(one.completed.is_some(), "{:?}", one.samples.last());
    let last = one.samples.last().unwrap();
    assert_eq!(last.mss, 1_000);
    assert!(u64::from(last.data_segs_out) >= 1_000, "{last:?}");
    // The variance part of the time-out is no less than this.
    assert!(last.rto >= Span::from_millis(60) && last.rto < Span::from_millis(200), "{last:?}");
    // What was announced before the first data was read is not taken back.
    let most = one.samples.iter().skip(10).map(|sample| sample.unacked).max();
    assert!(most.is_some_and(|most| (40..=50).contains(&most)), "the window is clamped: {most:?}");
    assert_eq!(pair.text(0, "/proc/sys/net/ipv4/tcp_wmem").split_whitespace().last(), Some("1048576"));
    assert_eq!(pair.text(0, "/proc/sys/net/ipv4/tcp_slow_start_after_idle").trim(), "0");
}

#[test]
fn root_a_flow_whose_segments_do_not_fit_fails_and_the_others_go_on() {
    let Some(pair) = Pair::new("failure") else { return };
    let mut large = flow(Some(1_000));
    large.tcp.mss = 4_000;
    let [large, good] = run(&pair, vec![large, flow(Some(1_000))], 400).try_into().unwrap();
    assert_eq!(large.failure.unwrap(), "its segments hold 1448 bytes, not 4000: the interface's MTU is too small");
    assert_eq!((good.failure, good.completed.is_some()), (None, true));
}

fn carried(flow: &str) -> Result<Vec<Flow>, String> {
    let network = "duration = \"5 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
    let scenario = Scenario::parse(&format!("{network}[[flows]]\nname = \"a\"\n{flow}")).unwrap();
    flows(&scenario, |node| ["sender", "receiver"].iter().position(|n| *n == node)).map_err(|error| error.to_string())
}

#[test]
fn each_copy_of_a_flow_is_one_of_the_kernels_and_starts_later_than_the_one_before() {
    let flows = carried("cc = \"new-reno\"\ncount = 3\nstart = \"1 s\"\nstagger = \"200 ms\"\npriority = 6").unwrap();
    let starts: Vec<u64> = flows.iter().map(|flow| flow.start.as_millis()).collect();
    assert_eq!(starts, [1_000, 1_200, 1_400]);
    let of = |flow: &Flow| (flow.name.clone(), flow.copy, flow.cc, flow.from, flow.to, flow.tos, flow.bytes);
    assert_eq!(of(&flows[2]), ("a".to_owned(), 2, "reno", 0, 1, 0x10, None));
    let transfer = carried("cc = \"new-reno\"\ntraffic = { kind = \"transfer\", size = \"30 kB\" }").unwrap();
    assert_eq!(transfer[0].bytes, Some(30_000));
}

#[test]
fn what_the_kernel_cannot_carry_is_refused_in_a_line() {
    if granted(netio::socket::check_congestion("cubic")).is_none() {
        return;
    }
    let refusals = [
        ("traffic = { kind = \"cbr\", rate = \"1 Mbit/s\" }", "the kernel carries only `bulk` and `transfer` traffic"),
        (
            "start_jitter = \"1 s\"",
            "`start_jitter` is drawn by the simulator; a flow of the kernel needs `start` and `stagger`",
        ),
        ("priority = 3", "priority 3 has no TOS byte; supported: 0 (0x00), 2 (0x08), 4 (0x18), 6 (0x10)"),
        ("cc = { kind = \"scalable\", step = 0.02 }", "the kernel's `scalable` has step 0.01 and decrease 0.125 alone"),
        ("tcp.min_rto = \"1500 us\"", "`tcp.min_rto`: the kernel takes whole milliseconds"),
    ];
    for (flow, what) in refusals {
        assert_eq!(carried(flow).unwrap_err(), format!("flow a: {what}"));
    }
}

#[test]
fn what_the_kernel_decides_itself_is_named_if_the_scenario_sets_it() {
    let keys = |text: &str| {
        let text = format!("duration = \"1 s\"\n{text}\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n");
        unheeded(&Scenario::parse(&(text + "[[flows]]\nname = \"a\"\n")).unwrap())
    };
    assert_eq!(keys(""), [""; 0]);
    assert_eq!(keys("[tcp]\ninitial_window = 4\nreceive_buffer = \"1 MB\""), [""; 0]);
    let keys = keys("[hosts]\nprocessing = \"0 s\"\n[tcp]\nlinux = \"6.1\"\ntso = false\nmax_header = 192");
    assert_eq!(keys, ["hosts", "tcp.linux", "tcp.tso", "tcp.max_header"]);
}

#[test]
fn root_a_flow_that_nobody_answers_is_said_to_have_failed_at_the_end() {
    let Some(pair) = Pair::new("unanswered") else { return };
    assert!(ip(&format!("-n {} link set cell0 down", pair.names[1])));
    let [one] = run(&pair, vec![flow(None)], 150).try_into().unwrap();
    assert_eq!(one.failure.as_deref(), Some("connect: no answer by the end"));
    assert_eq!(one.completed, None);
}

#[test]
fn root_flows_live_in_the_namespaces_of_a_lab() {
    if !crate::lab::may() {
        return;
    }
    let lab = Lab::new(&["server".to_owned(), "ue".to_owned()], None, 1_500, None).unwrap();
    // Nobody carries its packets; its sockets and its route are there.
    let mut one = flow(None);
    one.tcp.initial_window = 4;
    let kernel = Kernel::start(&lab, vec![one], Instant::now(), Span::from_millis(10)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let routes = lab.inside(0, || Command::new("ip").arg("route").output().unwrap().stdout).unwrap();
    assert!(String::from_utf8_lossy(&routes).contains("initcwnd 4"), "{}", String::from_utf8_lossy(&routes));
    let [one] = kernel.finish().try_into().unwrap();
    assert_eq!((one.sender.ip(), one.receiver.ip()), (lab.hosts()[0].v4.into(), lab.hosts()[1].v4.into()));
    assert_eq!(one.failure.as_deref(), Some("connect: no answer by the end"));
}
