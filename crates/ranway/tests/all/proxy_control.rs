//! End-to-end tests of the control of `ranway proxy`: windows and rates of flows. Tests that need root report when they are skipped.

use crate::common::proxied::*;
use rapid::{Control, Decision, Sample};
use rnis::RadioReport;
use services::proxy::{Connection, FlowKey, Governor, Inbox, Notice, Proxy, RadioWindows, Settings, Trust};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::broker::Broker;
use testkit::realtime::{Watch, conclusive};
use testkit::root::granted;
use units::Time;

/// The payload of a full segment here.
const MSS: u64 = 1448;

/// Decides the same for each flow, and notes what it sees.
struct Told {
    decision: Arc<Mutex<Decision>>,
    /// Whether it panics at the next update.
    fails: Arc<AtomicBool>,
    flows: Vec<FlowKey>,
    next: Option<Time>,
    seen: Arc<Mutex<Vec<Sample>>>,
}

impl Told {
    fn new(decision: Decision) -> Told {
        let decision = Arc::new(Mutex::new(decision));
        Told { decision, fails: Arc::default(), flows: Vec::new(), next: None, seen: Arc::default() }
    }
}

impl Control<FlowKey, IpAddr> for Told {
    fn open(&mut self, flow: FlowKey, ue: IpAddr, _: u32, now: Time) {
        assert_eq!(ue.to_string(), UES[0]);
        self.flows.push(flow);
        self.next = Some(now);
    }
    fn close(&mut self, flow: FlowKey) {
        self.flows.retain(|&other| other != flow);
    }
    fn on_progress(&mut self, _: FlowKey) {}
    fn on_report(&mut self, _: IpAddr, _: &RadioReport, _: Time) {}
    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }
    fn update(
        &mut self,
        now: Time,
        sample: &mut dyn FnMut(FlowKey) -> Sample,
        each: &mut dyn FnMut(FlowKey, &Decision),
    ) {
        assert!(!self.fails.load(Relaxed), "a fault");
        for &flow in &self.flows {
            self.seen.lock().expect("nobody panics").push(sample(flow));
            each(flow, &self.decision.lock().expect("nobody panics"));
        }
        self.next = Some(now + units::Span::from_millis(2));
    }
}

/// The kernel's windows, and how many were set.
struct Counted(ebpf::rapid::Windows, Arc<AtomicU32>);

impl RadioWindows for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn set(&mut self, socket: BorrowedFd, segments: u32) -> io::Result<()> {
        self.1.fetch_add(1, Relaxed);
        self.0.set(socket, segments).map_err(io::Error::other)
    }
    fn clear(&mut self, socket: BorrowedFd) -> io::Result<()> {
        self.0.clear(socket).map_err(io::Error::other)
    }
    fn renew(&mut self, time: Duration) -> io::Result<()> {
        self.0.renew(time).map_err(io::Error::other)
    }
}

/// Starts a proxy in this process, without reports.
fn start(net: &Net, control: Told, windows: Option<Box<dyn RadioWindows>>) -> Proxy {
    start_with(
        net,
        Governor {
            control: Box::new(control),
            reports: Inbox::default(),
            reports_socket: None,
            ipv6_prefix: 64,
            windows,
        },
    )
}

fn start_with(net: &Net, governor: Governor) -> Proxy {
    let guardian = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        command.arg("proxy-guardian");
        command
    };
    let settings = Settings { max_connections: 100, ..Settings::new(&["wan"], &["ran"]) };
    let proxy = net.inside(ROUTER, || Proxy::start(settings, Some(governor), None, guardian).expect("it starts"));
    thread::sleep(Duration::from_millis(200));
    proxy
}

#[test]
fn root_a_control_sees_the_flows_and_holds_their_windows() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let control = Told::new(Decision { receive_window: Some(64 << 10), ..Decision::UNLIMITED });
    let seen = Arc::clone(&control.seen);
    let mut proxy = start(&net, control, None);
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    const MUCH: usize = 20_000_000;
    let windows = thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&vec![7; MUCH]).expect("it is open");
        });
        let mut buffer = vec![0; 1 << 16];
        let (mut read, mut windows) = (0, Vec::new());
        while read < MUCH {
            read += client.read(&mut buffer).expect("no reset");
            if read > MUCH / 2 {
                windows.extend(proxy.status(true).connections.first().map(|flow| flow.wired_window));
            }
            let _ = net.inside(ROUTER, || proxy.tick());
        }
        windows
    });
    assert!(windows.len() > 10);
    // The window is advertised in steps of the window scale.
    assert!(windows.iter().all(|&window| window <= (64 << 10) + 4096), "{windows:?}");
    drop(client);
    net.inside(ROUTER, || drop(proxy));
    let seen = seen.lock().expect("nobody panics");
    let last = seen.last().expect("it was asked");
    assert!(last.arrived > MUCH as u64 / 2 && last.delivered > MUCH as u64 / 2, "{last:?}");
    assert!(seen.windows(2).all(|two| two[0].arrived <= two[1].arrived && two[0].delivered <= two[1].delivered));
    assert!(seen.iter().all(|one| one.delivered + one.in_flight <= one.arrived));
    assert!(last.wan_rtt.is_some() && last.ran_rtt.is_some() && last.ran_min_rtt.is_some());
}

/// Notes to which UE each flow belongs, how many there have been, and the UEs of the reports.
#[derive(Clone, Default)]
struct Belongs {
    flows: Arc<Mutex<BTreeMap<FlowKey, IpAddr>>>,
    opened: Arc<AtomicU32>,
    reported: Arc<Mutex<Vec<IpAddr>>>,
}

impl Control<FlowKey, IpAddr> for Belongs {
    fn open(&mut self, flow: FlowKey, ue: IpAddr, _: u32, _: Time) {
        let before = self.flows.lock().expect("nobody panics").insert(flow, ue);
        assert!(before.is_none());
        self.opened.fetch_add(1, Relaxed);
    }
    fn close(&mut self, flow: FlowKey) {
        self.flows.lock().expect("nobody panics").remove(&flow).expect("it is open");
    }
    fn on_progress(&mut self, _: FlowKey) {}
    fn on_report(&mut self, ue: IpAddr, _: &RadioReport, _: Time) {
        self.reported.lock().expect("nobody panics").push(ue);
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(Time::ZERO)
    }
    fn update(&mut self, _: Time, _: &mut dyn FnMut(FlowKey) -> Sample, _: &mut dyn FnMut(FlowKey, &Decision)) {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn root_flows_over_both_ip_versions_belong_to_one_ue_once_a_report_says_so() {
    let Some(net) = Net::new() else { return };
    let (belongs, reports) = (Belongs::default(), Inbox::default());
    let control = Box::new(belongs.clone());
    let proxy = start_with(
        &net,
        Governor { control, reports: reports.clone(), reports_socket: None, ipv6_prefix: 64, windows: None },
    );
    let _connections = SERVERS.map(|server| net.pair(&net.listen(SERVER, server)));
    let names = || -> Vec<String> {
        thread::sleep(Duration::from_millis(300));
        let flows = belongs.flows.lock().expect("nobody panics");
        flows.values().map(ToString::to_string).collect::<BTreeSet<_>>().into_iter().collect()
    };
    assert_eq!(names(), ["10.1.0.2", "fd01::"]);
    let mut report: RadioReport = serde_json::from_str(
        r#"{"time_us":0,"interval_us":1000,"cell":1,"rnti":61,"n_prb":100,"slots":1,"acked_bits":8000,"blocks":1,"failed":0,
            "address":"10.1.0.2","second_address":"fd01::77"}"#,
    )
    .expect("it can be read");
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    report.time = Time::from_nanos(since_1970.as_nanos() as u64);
    reports.put(&report);
    assert_eq!(names(), ["10.1.0.2"]);
    assert_eq!(*belongs.reported.lock().expect("nobody panics"), [IpAddr::from([10, 1, 0, 2])]);
    net.inside(ROUTER, || drop(proxy));
}

#[test]
fn root_connections_are_controlled_once_they_carry_data_or_last() {
    conclusive(connections_are_controlled_once_they_carry_data_or_last);
}

fn connections_are_controlled_once_they_carry_data_or_last(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let belongs = Belongs::default();
    let control = Box::new(belongs.clone());
    let mut proxy = start_with(
        &net,
        Governor { control, reports: Inbox::default(), reports_socket: None, ipv6_prefix: 64, windows: None },
    );
    let listener = net.listen(SERVER, SERVERS[0]);
    let mut opened = |after: Duration| {
        thread::sleep(after);
        net.inside(ROUTER, || proxy.tick()).expect("it goes on");
        belongs.opened.load(Relaxed)
    };
    for _ in 0..20 {
        let (mut client, mut server) = net.pair(&listener);
        client.write_all(b"?").expect("it is open");
        server.read_exact(&mut [0]).expect("it arrives");
        server.write_all(b"!").expect("it is open");
        client.read_exact(&mut [0]).expect("it arrives");
    }
    assert_eq!(opened(Duration::from_millis(200)), 0, "short ones are over before");
    let _idle = net.pair(&listener);
    assert_eq!(opened(Duration::from_millis(200)), 1, "one that lasts");
    let (mut client, mut server) = net.pair(&listener);
    server.write_all(&[7; 10_000]).expect("it is open");
    client.read_exact(&mut [0; 10_000]).expect("it arrives");
    assert_eq!(opened(Duration::from_millis(50)), 2, "one that carries data");
    net.inside(ROUTER, || drop(proxy));
}

/// A UE with short segments is given windows by its own segments. The server's are longer.
#[test]
fn root_a_window_has_room_for_the_senders_segments_whatever_is_decided() {
    const BYTES: usize = 2_000_000;
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let less_than_a_segment = Some(MSS - 448);
    let decision =
        Decision { receive_window: less_than_a_segment, receive_buffer: less_than_a_segment, ..Decision::UNLIMITED };
    let proxy = start(&net, Told::new(decision), None);
    let (mut client, mut server) = net.pair(&listener);
    let sender = thread::spawn(move || server.write_all(&vec![7; BYTES]).expect("it is read"));
    let start = Instant::now();
    client.read_exact(&mut vec![0; BYTES]).expect("no reset");
    // If the window is less than a segment, the server sends one of a kilobyte each 0.2 s.
    assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", start.elapsed());
    sender.join().expect("it does not panic");
    net.inside(ROUTER, || drop(proxy));
}

#[test]
fn root_the_radio_legs_window_follows_the_decision() {
    conclusive(the_radio_legs_window_follows_the_decision);
}

fn the_radio_legs_window_follows_the_decision(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let Some(windows) = granted(ebpf::rapid::Windows::load()) else { return };
    let (name, set) = (windows.name().to_owned(), Arc::new(AtomicU32::new(0)));
    let listener = net.listen(SERVER, SERVERS[0]);
    // The connection is there before it has a window.
    let control = Told::new(Decision::UNLIMITED);
    let (decision, seen) = (Arc::clone(&control.decision), Arc::clone(&control.seen));
    let mut proxy = start(&net, control, Some(Box::new(Counted(windows, Arc::clone(&set)))));
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let receiver = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while !stop.load(Relaxed) {
            assert!(client.read(&mut buffer).expect("no reset") > 0);
        }
    });
    let mut leg = || {
        net.inside(ROUTER, || proxy.tick()).expect("it goes on");
        let connection = proxy.status(true).connections.first().expect("it is open").clone();
        (connection.radio_congestion, connection.radio_window)
    };
    let before = leg().0;
    assert_ne!(before, name);
    let decide = |segments: Option<u64>| {
        let window = segments.map(|segments| segments * MSS);
        decision.lock().expect("nobody panics").window = window;
        thread::sleep(Duration::from_millis(300));
    };
    for segments in [30, 120, 15] {
        decide(Some(segments));
        for _ in 0..50 {
            assert_eq!(leg(), (name.clone(), segments * MSS));
            thread::sleep(Duration::from_millis(2));
        }
    }
    decide(None);
    assert_eq!(leg().0, before);
    decide(Some(40));
    assert_eq!(leg(), (name.clone(), 40 * MSS));
    let updates = seen.lock().expect("nobody panics").len();
    println!("{} windows set in {updates} updates", set.load(Relaxed));
    assert_eq!(set.load(Relaxed), 4);
    // The proxy's own thread keeps windows in force, and takes the congestion control with it.
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(leg(), (name.clone(), 40 * MSS));
    done.store(true, Relaxed);
    receiver.join().expect("it does not panic");
    sender.join().expect("it does not panic");
    net.inside(ROUTER, || drop(proxy));
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(available).expect("it can be read");
    assert!(!names.split_whitespace().any(|other| other == name), "{names}");
}

#[test]
fn root_flows_go_on_without_limits_when_the_control_fails() {
    let Some(net) = Net::new() else { return };
    let windows = granted(ebpf::rapid::Windows::load()).map(|windows| Box::new(Counted(windows, Arc::default())));
    let limited = windows.is_some();
    let listener = net.listen(SERVER, SERVERS[0]);
    let control = Told::new(Decision {
        receive_window: Some(20 << 10),
        window: Some(10 * MSS),
        pacing: Some(units::Rate::from_bits_per_sec(8_000_000)),
        ..Decision::UNLIMITED
    });
    let fails = Arc::clone(&control.fails);
    let mut proxy = start(&net, control, windows.map(|windows| windows as Box<dyn RadioWindows>));
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    let leg = |proxy: &Proxy| proxy.status(true).connections.first().expect("it is open").clone();
    read_for(&mut client, Duration::from_secs(1));
    let slow = read_for(&mut client, Duration::from_secs(1));
    let before = leg(&proxy);
    assert!(before.wired_window <= 24 << 10, "{before:?}");
    assert!(before.radio_congestion.starts_with("rapid") || !limited, "{before:?}");
    // The kernel shows a limit after the present rate.
    let is_paced = || net.on_router("ss", &["-Htin"]).contains("/8000000bps");
    assert!(is_paced() && (slow as f64) < 1.5 * 1e6, "{slow} bytes in a second; {}", net.on_router("ss", &["-Htin"]));
    assert_eq!(net.inside(ROUTER, || proxy.tick()).expect("it goes on"), None);
    fails.store(true, Relaxed);
    read_for(&mut client, Duration::from_secs(1));
    let notice = net.inside(ROUTER, || proxy.tick()).expect("it goes on");
    let why = "the control of windows and rates has failed: connections go on without limits";
    assert!(matches!(&notice, Some(Notice::Failed(said)) if said.starts_with(why)), "{notice:?}");
    // The failure is reported once.
    assert_eq!(net.inside(ROUTER, || proxy.tick()).expect("it goes on"), None);
    let fast = read_for(&mut client, Duration::from_secs(1));
    // While the reader is slow, the window is small at times.
    let legs = (0..20).map(|_| (read_for(&mut client, Duration::from_millis(10)), leg(&proxy)).1);
    let after = legs.max_by_key(|leg| leg.wired_window).expect("there are some");
    assert!(!is_paced());
    println!("{slow} bytes in a second, then {fast}; {after:?}");
    assert!(fast > 5 * slow && after.wired_window > 2 * before.wired_window, "{slow} {fast} {after:?}");
    assert!(!after.radio_congestion.starts_with("rapid"), "{after:?}");
    drop(client);
    sender.join().expect("it does not panic");
    net.inside(ROUTER, || drop(proxy));
}

/// Reads for a time; returns the bytes.
fn read_for(client: &mut TcpStream, span: Duration) -> usize {
    let (start, mut buffer, mut bytes) = (Instant::now(), vec![0; 1 << 16], 0);
    while start.elapsed() < span {
        bytes += client.read(&mut buffer).expect("no reset");
    }
    bytes
}

/// Reads for a time. Returns the rate in Mbit/s, and the first connection when its radio leg had the median round trip.
fn observe(net: &Net, client: &mut TcpStream, span: Duration) -> (f64, Connection) {
    let (start, mut seen) = (Instant::now(), Vec::new());
    let bytes = thread::scope(|scope| {
        let reading = scope.spawn(|| read_for(client, span));
        while !reading.is_finished() {
            seen.push(net.status().connections.first().expect("it is open").clone());
            thread::sleep(Duration::from_millis(50));
        }
        reading.join().expect("it does not panic")
    });
    let mbps = bytes as f64 * 8e-6 / start.elapsed().as_secs_f64();
    seen.sort_by(|one, other| one.radio_rtt_ms.total_cmp(&other.radio_rtt_ms));
    (mbps, seen.swap_remove(seen.len() / 2))
}

/// Megabits per second of the bottleneck towards the UE, whose queue holds 300 ms.
const BOTTLENECK: f64 = 40.0;

/// A download through a proxy: rates in Mbit/s and the connection before reports come, with them, and some seconds after the
/// last one.
struct Managed {
    before: (f64, Connection),
    with: (f64, Connection),
    after: (f64, Connection),
}

/// Downloads through a proxy with these options over a bottleneck with a deep queue. Reports of it come for some seconds.
fn download(net: &Net, options: &[&str]) -> Managed {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("reports").display().to_string();
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&[options, &["--reports", &format!("recording:unix:{path}")]].concat());
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    read_for(&mut client, Duration::from_millis(1500));
    let before = observe(net, &mut client, Duration::from_secs(1));
    let cell = Cell::start(&path, BOTTLENECK);
    read_for(&mut client, Duration::from_millis(1500));
    let with = observe(net, &mut client, Duration::from_secs(2));
    drop(cell);
    // Reports are believed for a while, and then their capacity fades.
    read_for(&mut client, Duration::from_secs(3));
    let after = observe(net, &mut client, Duration::from_secs(1));
    drop(client);
    sender.join().expect("it does not panic");
    Managed { before, with, after }
}

#[test]
fn root_rapid_keeps_the_radios_queue_short_as_long_as_reports_come() {
    conclusive(rapid_keeps_the_radios_queue_short_as_long_as_reports_come);
}

fn rapid_keeps_the_radios_queue_short_as_long_as_reports_come(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    if granted(ebpf::rapid::check()).is_none() {
        return;
    }
    net.limit_radio(BOTTLENECK);
    let Managed { before, with, after } = download(&net, &["--cc", "cubic"]);
    for (when, (mbps, leg)) in [("before reports", &before), ("with them", &with), ("after them", &after)] {
        let (rtt, segments) = (leg.radio_rtt_ms, leg.radio_window / MSS);
        println!("{when}: {mbps:.1} of {BOTTLENECK} Mbit/s, round trip {rtt:.1} ms, window {segments} segments");
        assert!(*mbps > 0.8 * BOTTLENECK, "{when}: {mbps}");
    }
    let [before, with, after] = [before.1, with.1, after.1];
    // Afterwards, CUBIC fills the queue again as slowly as it likes.
    assert!(with.radio_rtt_ms < 20.0 && before.radio_rtt_ms > 2.0 * with.radio_rtt_ms, "{before:?} {with:?}");
    assert!(with.radio_congestion.starts_with("rapid"), "{with:?}");
    let all = 0.8 * BOTTLENECK..1.1 * BOTTLENECK;
    assert!(before.promised_mbps.is_none() && with.promised_mbps.is_some_and(|mbps| all.contains(&mbps)), "{with:?}");
    assert_eq!([before.radio_congestion, after.radio_congestion], ["cubic", "cubic"]);
}

#[test]
fn root_wrong_reports_cost_no_more_than_none_and_are_shown() {
    conclusive(wrong_reports_cost_no_more_than_none_and_are_shown);
}

fn wrong_reports_cost_no_more_than_none_and_are_shown(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    if granted(ebpf::rapid::check()).is_none() {
        return;
    }
    net.limit_radio(BOTTLENECK);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("reports").display().to_string();
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&["--cc", "cubic", "--reports", &format!("recording:unix:{path}")]);
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    read_for(&mut client, Duration::from_millis(1500));
    let none = observe(&net, &mut client, Duration::from_secs(2));
    let trust = || net.status().feeds.first().map(|feed| feed.trust);
    assert_eq!(trust(), None);
    for (factor, expected) in [(0.01, Trust::TooLow), (10.0, Trust::TooHigh), (30.0, Trust::TooHigh)] {
        let cell = Cell::start(&path, BOTTLENECK * factor);
        let start = Instant::now();
        while trust() != Some(expected) {
            assert!(start.elapsed() < 3 * TEST_TIMEOUT, "{factor}: {:?}", net.status().feeds);
            read_for(&mut client, Duration::from_millis(100));
        }
        let doubted = start.elapsed();
        read_for(&mut client, Duration::from_millis(1500));
        let (mbps, leg) = observe(&net, &mut client, Duration::from_secs(2));
        println!(
            "{factor}: doubted after {doubted:.1?}, {mbps:.1} of {:.1} Mbit/s, {:.1} ms",
            none.0, leg.radio_rtt_ms
        );
        assert!(mbps > 0.9 * none.0, "{factor}: {mbps} of {}", none.0);
        drop(cell);
        // Right reports are believed again, each time after a longer time.
        if factor > 1.0 {
            continue;
        }
        let cell = Cell::start(&path, BOTTLENECK);
        let start = Instant::now();
        while trust() != Some(Trust::Believed) {
            assert!(start.elapsed() < 4 * TEST_TIMEOUT, "{factor}: {:?}", net.status().feeds);
            read_for(&mut client, Duration::from_millis(100));
        }
        println!("believed again after {:.1?}", start.elapsed());
        drop(cell);
    }
    // No block carries so much.
    let cell = Cell::start(&path, 100.0 * BOTTLENECK);
    read_for(&mut client, Duration::from_secs(1));
    drop(cell);
    let cell = Cell::ahead(&path, BOTTLENECK, Duration::from_secs(60));
    read_for(&mut client, Duration::from_secs(3));
    let status = net.status();
    let unused = status.unused_reports;
    assert!(unused.ahead > 100 && unused.impossible > 50, "{unused:?}");
    assert_eq!(trust(), Some(Trust::Stale));
    drop(cell);
    drop(client);
    sender.join().expect("it does not panic");
}

#[test]
fn root_reports_of_a_broker_count_until_it_ends() {
    let Some(net) = Net::new() else { return };
    let Some(mut broker) = Broker::new(net.dir.path()) else { return };
    net.inside(ROUTER, || broker.start());
    let (path, url) = (net.dir.path().join("reports").display().to_string(), broker.url());
    let input = format!("recording:unix:{path}");
    let rnis = ["rnis", "--listen", "127.0.0.1:0", "--input", &input, "--amqp", &url];
    let _rnis = Running(Some(net.start(ROUTER, &rnis)));
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--wan", "wan", "--ran", "ran", "--quiet", "--reports", &url]);
    let _proxy = Running(Some(command.spawn().expect("it starts")));
    net.until("it accepts", |status| status.accepting);
    let _cell = Cell::start(&path, BOTTLENECK);
    let (mut client, mut server) = net.pair(&net.listen(SERVER, SERVERS[0]));
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    let mut await_promise = |wanted: bool| {
        let start = Instant::now();
        while net.status().connections[0].promised_mbps.is_some() != wanted {
            assert!(start.elapsed() < TEST_TIMEOUT, "{wanted}: {:?}", net.status());
            read_for(&mut client, Duration::from_millis(50));
        }
    };
    await_promise(true);
    broker.kill();
    await_promise(false);
    drop(client);
    sender.join().expect("it does not panic");
}

/// A method `start` whose properties are nested 10,000 deep, as of no honest broker. It overflowed the stack of the client before.
fn hostile_greeting() -> Vec<u8> {
    let long = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let table = (0..10_000).fold(long(b""), |inner, _| long(&[&[1, b'a', b'F'][..], &inner].concat()));
    let payload = [&[0, 10, 0, 10, 0, 9][..], &table, &long(b"PLAIN"), &long(b"en_US")].concat();
    [&[1, 0, 0][..], &long(&payload), &[0xce]].concat()
}

#[test]
fn root_a_hostile_broker_neither_ends_the_proxy_nor_touches_a_connection() {
    let Some(net) = Net::new() else { return };
    let broker = net.inside(ROUTER, || std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
    let url = format!("amqp://{}", broker.local_addr().expect("it has one"));
    let _proxy = net.proxy(&["--reports", &url]);
    let (mut client, mut server) = net.pair(&net.listen(SERVER, SERVERS[0]));
    exchange(&mut client, &mut server);
    for _ in 0..2 {
        let (mut stream, _) = broker.accept().expect("it connects, and connects again");
        stream.write_all(&hostile_greeting()).expect("it reads");
        // It answers, and is then cut off in the middle.
        let mut answer = [0; 8 + 7];
        stream.read_exact(&mut answer).expect("it goes on");
        assert_eq!(answer[8..11], [1, 0, 0], "a method of the connection");
        stream.write_all(&[0xff; 64]).expect("it reads");
    }
    exchange(&mut client, &mut server);
    let totals = net.status().totals;
    assert_eq!((totals.open, totals.reset, totals.internal_errors), (1, 0, 0));
}

#[test]
fn root_what_the_proxy_cannot_use_is_one_line_and_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let interfaces = ["--wan", "wan", "--ran", "ran"];
    for (options, message) in [
        (&["--reports", "recrding:x"][..], "invalid input `recrding:x`"),
        (&["--reports", "recording:/nowhere/reports"], "No such file"),
        (&["--reports", "recording:unix:/nowhere/reports"], "No such file"),
        (&["--reports", "amqp:http://127.0.0.1"], "amqp"),
        (&["--cc", "nosuch"], "the kernel has no congestion control `nosuch`; it has "),
    ] {
        let output = net.fails(&[&interfaces[..], options].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(message), "{text}");
    }
    for options in [&["--policy", "best"][..], &["--reports", "recording:-", "--tick", "0 s"]] {
        let output = net.fails(&[&interfaces[..], options].concat());
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(net.traces(), before);
}

#[test]
fn root_reports_can_be_added_and_removed_while_data_flows() {
    conclusive(reports_can_be_added_and_removed_while_data_flows);
}

fn reports_can_be_added_and_removed_while_data_flows(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let (file, path) = (net.dir.path().join("proxy.toml"), net.dir.path().join("reports").display().to_string());
    net.limit_radio(BOTTLENECK);
    net.on_router("sysctl", &["-qw", "net.ipv4.tcp_congestion_control=reno"]);
    std::fs::write(&file, "").expect("it is ours");
    let listener = net.listen(SERVER, SERVERS[0]);
    let proxy = net.proxy(&["--config", &file.display().to_string()]);
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    let reload = |options: &str| {
        std::fs::write(&file, options).expect("it is ours");
        nix::sys::signal::kill(proxy.pid(), nix::sys::signal::Signal::SIGHUP).expect("it runs");
    };
    read_for(&mut client, Duration::from_millis(1000));
    let (_, before) = observe(&net, &mut client, Duration::from_millis(1000));
    reload(&format!("reports = 'recording:unix:{path}'\n"));
    let start = Instant::now();
    while !std::path::Path::new(&path).exists() {
        assert!(start.elapsed() < TEST_TIMEOUT, "it does not listen for reports");
        read_for(&mut client, Duration::from_millis(20));
    }
    let cell = Cell::start(&path, BOTTLENECK);
    read_for(&mut client, Duration::from_millis(1500));
    let (managed, during) = observe(&net, &mut client, Duration::from_millis(1500));
    reload("");
    read_for(&mut client, Duration::from_millis(3000));
    let (_, after) = observe(&net, &mut client, Duration::from_millis(1000));
    drop(cell);
    let congestion = [&before, &during, &after].map(|leg| leg.radio_congestion.as_str());
    let [before, during, after] = [&before, &during, &after].map(|leg| leg.radio_rtt_ms);
    println!(
        "{managed:.1} of {BOTTLENECK} Mbit/s, round trip {before:.1} ms, with reports {during:.1} ms, then {after:.1} ms {congestion:?}"
    );
    assert!(managed > 0.8 * BOTTLENECK, "{managed}");
    assert!(during < 20.0 && before.min(after) > 2.0 * during, "{before} {during} {after}");
    assert!(congestion[0] == "reno" && congestion[2] == "reno", "{congestion:?}");
    assert!(congestion[1].starts_with("rapid") || granted(ebpf::rapid::check()).is_none(), "{congestion:?}");
    assert!(!std::path::Path::new(&path).exists(), "the socket of the reports is left");
    drop(client);
    sender.join().expect("it does not panic");
}
