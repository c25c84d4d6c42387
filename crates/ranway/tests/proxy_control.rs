//! End-to-end tests of the control of `ranway proxy`: windows and rates of flows. Tests that need root report when they are skipped.

#![allow(clippy::disallowed_methods)] // Tests of a command run commands and read files.

mod common;

use common::proxied::*;
use services::proxy::{Control, Decision, FlowKey, Proxy, Sample, Settings};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::realtime::{Watch, conclusive};
use units::Time;

/// Limits the window of each flow, and notes what it sees.
struct Narrow {
    window: u64,
    flows: Vec<FlowKey>,
    next: Option<Time>,
    seen: Arc<Mutex<Vec<Sample>>>,
}

impl Control for Narrow {
    fn open(&mut self, flow: FlowKey, ue: IpAddr, _: u32, now: Time) {
        assert_eq!(ue.to_string(), UES[0]);
        self.flows.push(flow);
        self.next = Some(now);
    }
    fn close(&mut self, flow: FlowKey, _: Time) {
        self.flows.retain(|&other| other != flow);
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }
    fn update(
        &mut self,
        now: Time,
        sample: &mut dyn FnMut(FlowKey) -> Sample,
        each: &mut dyn FnMut(FlowKey, &Decision),
    ) {
        for &flow in &self.flows {
            self.seen.lock().expect("nobody panics").push(sample(flow));
            each(flow, &Decision { receive_window: Some(self.window), ..Decision::UNLIMITED });
        }
        self.next = Some(now + units::Span::from_millis(2));
    }
}

#[test]
fn root_a_control_sees_the_flows_and_holds_their_windows() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let control = Narrow { window: 64 << 10, flows: Vec::new(), next: None, seen: Arc::clone(&seen) };
    let guardian = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        command.arg("proxy-guardian");
        command
    };
    let settings = Settings { max_connections: 100, ..Settings::new("wan", "ran") };
    let mut proxy =
        net.inside(ROUTER, || Proxy::start(settings, Some(Box::new(control)), guardian).expect("it starts"));
    thread::sleep(Duration::from_millis(200));
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
            if read > MUCH / 4 {
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

/// A cell that has `mbps` for the UE alone, reported each 5 ms until it is dropped. It reports its blocks as unused: it does not
/// see the traffic.
struct Cell {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Cell {
    /// Writes reports to the socket at `path`.
    fn start(path: &str, mbps: f64) -> Cell {
        let (stop, path) = (Arc::new(AtomicBool::new(false)), path.to_owned());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut socket = UnixStream::connect(&path).expect("the proxy has made it");
            while !stopped.load(Relaxed) {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros();
                let line = format!(
                    concat!(
                        r#"{{"time_us":{},"interval_us":5000,"cell":1,"rnti":61,"address":"{}","n_prb":100,"slots":5,"cell_prbs":0,"#,
                        r#""active_ues":0,"prbs":0,"acked_bits":0,"blocks":0,"failed":0,"bits_per_prb":{}}}"#
                    ),
                    now,
                    UES[0],
                    mbps * 10.0,
                );
                if writeln!(socket, "{line}").is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        Cell { stop, thread: Some(thread) }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Bytes that are read in a time, in Mbit/s.
fn rate(client: &mut std::net::TcpStream, span: Duration) -> f64 {
    let (start, mut buffer, mut bytes) = (Instant::now(), vec![0; 1 << 16], 0);
    while start.elapsed() < span {
        bytes += client.read(&mut buffer).expect("no reset");
    }
    bytes as f64 * 8e-6 / start.elapsed().as_secs_f64()
}

/// Reads for a time. Returns the rate in Mbit/s and the median round trip of the first connection's radio leg in milliseconds.
fn observe(net: &Net, client: &mut std::net::TcpStream, span: Duration) -> (f64, f64) {
    let mut round_trips = Vec::new();
    let rate = thread::scope(|scope| {
        let reading = scope.spawn(|| rate(client, span));
        while !reading.is_finished() {
            round_trips.push(net.status().connections.first().expect("it is open").radio_rtt_ms);
            thread::sleep(Duration::from_millis(50));
        }
        reading.join().expect("it does not panic")
    });
    round_trips.sort_by(f64::total_cmp);
    (rate, round_trips[round_trips.len() / 2])
}

/// Megabits per second of the bottleneck towards the UE, whose queue holds 300 ms.
const BOTTLENECK: f64 = 40.0;

#[test]
fn root_rapid_keeps_the_radios_queue_short_as_long_as_reports_come() {
    conclusive(rapid_keeps_the_radios_queue_short_as_long_as_reports_come);
}

fn rapid_keeps_the_radios_queue_short_as_long_as_reports_come(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("reports").display().to_string();
    net.on_router(
        "tc",
        &["qdisc", "add", "dev", "ran", "root", "tbf", "rate", "40mbit", "burst", "16kb", "latency", "300ms"],
    );
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&["--cc", "cubic", "--reports", &format!("recording:unix:{path}")]);
    let cell = Cell::start(&path, BOTTLENECK);
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    rate(&mut client, Duration::from_millis(1500));
    let (managed, short) = observe(&net, &mut client, Duration::from_millis(1500));
    drop(cell);
    // Reports are believed for a while, and then their capacity fades.
    rate(&mut client, Duration::from_millis(3000));
    let (_, long) = observe(&net, &mut client, Duration::from_millis(1000));
    println!("{managed:.1} of {BOTTLENECK} Mbit/s, round trip {short:.1} ms; without reports {long:.1} ms");
    assert!(managed > 0.8 * BOTTLENECK, "{managed}");
    assert!(short < 20.0, "{short}");
    assert!(long > 2.0 * short, "{long}");
    drop(client);
    sender.join().expect("it does not panic");
}

#[test]
fn root_what_rapid_cannot_use_is_one_line_and_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let interfaces = ["--wan", "wan", "--ran", "ran"];
    for (options, message) in [
        (&["--reports", "recrding:x"][..], "invalid input `recrding:x`"),
        (&["--reports", "recording:/nowhere/reports"], "No such file"),
        (&["--reports", "recording:unix:/nowhere/reports"], "No such file"),
        (&["--reports", "amqp:http://127.0.0.1"], "amqp"),
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
}

#[test]
fn root_reports_can_be_added_and_removed_while_data_flows() {
    conclusive(reports_can_be_added_and_removed_while_data_flows);
}

fn reports_can_be_added_and_removed_while_data_flows(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let (file, path) = (net.dir.path().join("proxy.toml"), net.dir.path().join("reports").display().to_string());
    net.on_router(
        "tc",
        &["qdisc", "add", "dev", "ran", "root", "tbf", "rate", "40mbit", "burst", "16kb", "latency", "300ms"],
    );
    std::fs::write(&file, "").expect("it is ours");
    let listener = net.listen(SERVER, SERVERS[0]);
    let proxy = net.proxy(&["--cc", "cubic", "--config", &file.display().to_string()]);
    let (mut client, mut server) = net.pair(&listener);
    client.write_all(b"a request").expect("it is open");
    server.read_exact(&mut [0; 9]).expect("it arrives");
    let sender = thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
    let reload = |options: &str| {
        std::fs::write(&file, options).expect("it is ours");
        nix::sys::signal::kill(proxy.pid(), nix::sys::signal::Signal::SIGHUP).expect("it runs");
    };
    rate(&mut client, Duration::from_millis(1000));
    let (_, before) = observe(&net, &mut client, Duration::from_millis(1000));
    reload(&format!("reports = 'recording:unix:{path}'\n"));
    let start = Instant::now();
    while !std::path::Path::new(&path).exists() {
        assert!(start.elapsed() < PATIENCE, "it does not listen for reports");
        rate(&mut client, Duration::from_millis(20));
    }
    let cell = Cell::start(&path, BOTTLENECK);
    rate(&mut client, Duration::from_millis(1500));
    let (managed, during) = observe(&net, &mut client, Duration::from_millis(1500));
    reload("");
    rate(&mut client, Duration::from_millis(1500));
    let (_, after) = observe(&net, &mut client, Duration::from_millis(1000));
    drop(cell);
    println!(
        "{managed:.1} of {BOTTLENECK} Mbit/s, round trip {before:.1} ms, with reports {during:.1} ms, then {after:.1} ms"
    );
    assert!(managed > 0.8 * BOTTLENECK, "{managed}");
    assert!(during < 20.0 && before.min(after) > 2.0 * during, "{before} {during} {after}");
    assert!(!std::path::Path::new(&path).exists(), "the socket of the reports is left");
    drop(client);
    sender.join().expect("it does not panic");
}
