//! Measurements of loopback, against the measurement server and against servers that misbehave.

#![allow(clippy::disallowed_methods)] // Tests open sockets and measure time.

mod common;

use common::{Server, earlier, plan, run};
use meter::{Amount, Fault, LoadTimes, Outcome, Phase, Plan, Probe, Protocol, Trust, measure};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use observe::kernel::Way;
use record::Table;
use record::tables::{FlowRow, SampleRow};
use services::measure::Open;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use testkit::root::granted;
use units::Span;

/// How a middlebox passes on what it reads.
type Passing = fn(from: &mut TcpStream, to: &mut TcpStream);

const UNCHANGED: Passing = |from, to| {
    let _ = std::io::copy(from, to);
};

fn loopback() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("loopback is there")
}

/// A middlebox before a server, with its connections to clients.
fn middlebox(
    listener: TcpListener,
    server: SocketAddr,
    up: Passing,
    down: Passing,
) -> (SocketAddr, Arc<Mutex<Vec<TcpStream>>>) {
    let address = listener.local_addr().expect("it is bound");
    let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let clients = Arc::clone(&open);
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("it accepts");
            // The server's end is that of the test.
            let Ok(server) = TcpStream::connect(server) else { return };
            let copy = |stream: &TcpStream| stream.try_clone().expect("a copy");
            clients.lock().expect("nobody panics").push(copy(&client));
            for (mut from, mut to, pass) in [(copy(&client), copy(&server), up), (copy(&server), copy(&client), down)] {
                thread::spawn(move || {
                    pass(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (address, open)
}

#[test]
fn flows_and_probes_of_each_protocol_become_tables() {
    let server = Server::start(Open::Private);
    for (protocol, flows) in [(Protocol::Rmbt, 2), (Protocol::Throughput1, 2), (Protocol::Ndt7, 1)] {
        let outcome = run(&Plan { flows, ..plan(server.address(), protocol) }).expect("it succeeds");
        assert_eq!(outcome.loads.len(), 2);
        for (load, way) in outcome.loads.iter().zip([Way::Up, Way::Down]) {
            assert_eq!(load.flows.len(), flows);
            let rates = load.throughput(way).expect("bytes moved");
            assert!(rates.total.as_mbps() > 100.0, "{protocol:?} {way:?}: {rates:?}");
            for flow in &load.flows {
                assert_eq!((flow.way, flow.failure.as_deref()), (way, None));
                // A second has a hundred samples; a busy machine takes fewer.
                assert!(
                    flow.samples.len() > 20 && flow.total() > Some(1_000_000),
                    "{protocol:?} {}",
                    flow.samples.len()
                );
                assert!(
                    flow.samples.windows(2).all(|two| two[0].at < two[1].at && two[0].delivered <= two[1].delivered)
                );
            }
            for wanted in [Probe::Handshake, Probe::Request] {
                assert!(
                    !outcome.rtts(load, Phase::During, |probe| probe == wanted).is_empty(),
                    "{protocol:?} {wanted:?}"
                );
            }
            assert!(outcome.responsiveness(load).is_some_and(|of| of.rpm > 60.0), "{protocol:?} {way:?}");
        }
        let tables = outcome.tables();
        assert_eq!((tables.flows.len(), tables.responsiveness.len()), (2 * flows, 2));
        assert_eq!(tables.samples.len(), tables.tcp_info.len());
        assert!(tables.tcp_info.iter().all(|row| row.raw.len() >= wire::tcp_info::LEAST));
        let uploads: Vec<_> = tables.flows.iter().filter(|row| row.flow == "upload").collect();
        let shares = |row: &record::tables::FlowRow| {
            let [app, cwnd, rwnd] = [row.limited_app, row.limited_cwnd, row.limited_rwnd];
            [app, cwnd, rwnd, row.limited_pacing, row.limited_sndbuf, row.limited_other]
        };
        let whole =
            |row: &record::tables::FlowRow| shares(row).into_iter().sum::<Option<f64>>().expect("the sender is here");
        assert!(uploads.iter().all(|row| (whole(row) - 1.0).abs() < 1e-9), "{uploads:?}");
        for row in tables.flows.iter().filter(|row| row.flow == "download") {
            if protocol == Protocol::Rmbt {
                assert_eq!((shares(&row), row.retransmitted), ([None; 6], None), "only the sender knows");
                continue;
            }
            // A server of the others tells it, several times in a second.
            assert!((whole(&row) - 1.0).abs() < 1e-9 && row.retransmitted.is_some(), "{row:?}");
            assert!(row.max_cwnd_bytes > Some(10_000) && row.segments_sent > Some(10), "{row:?}");
            assert!(row.rtt_p50_ms.is_some_and(|ms| ms > 0.0 && ms < 500.0), "{row:?}");
            assert!(row.cc.is_some() || protocol == Protocol::Ndt7, "{row:?}");
        }
        let phases: std::collections::BTreeSet<_> = tables.latencies.iter().map(|row| row.phase).collect();
        assert_eq!(phases.into_iter().collect::<Vec<_>>(), ["after", "before", "during"]);
        assert!(tables.passages.iter().filter(|row| row.path_ms.is_some()).count() > 10, "{protocol:?}");
    }
}

/// A server that, as those of RMBT inside HTTP, waits for the client's first words. It passes them on to another one.
fn reticent(server: SocketAddr) -> SocketAddr {
    let listener = loopback();
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("it accepts");
            thread::spawn(move || {
                let mut first = [0; 1024];
                let length = client.read(&mut first).unwrap_or(0);
                assert!(first.starts_with(b"GET /rmbt HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&first[..length]));
                let mut server = TcpStream::connect(server).expect("it listens");
                server.write_all(&first[..length]).expect("it reads");
                let (mut answers, mut back) =
                    (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
                thread::spawn(move || {
                    let _ = std::io::copy(&mut answers, &mut back);
                    let _ = back.shutdown(Shutdown::Write);
                });
                let _ = std::io::copy(&mut client, &mut server);
                let _ = server.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

#[test]
fn a_server_that_expects_http_is_asked_for_an_upgrade() {
    let server = Server::start(Open::Private);
    let outcome = run(&Plan { flows: 2, ..plan(reticent(server.address()), Protocol::Rmbt) }).expect("it succeeds");
    for load in &outcome.loads {
        assert_eq!(load.flows.len(), 2);
        assert!(load.flows.iter().all(|flow| flow.failure.is_none() && flow.total() > Some(1_000_000)));
    }
}

#[test]
fn the_servers_bytes_of_an_upload_are_those_that_it_has_acknowledged() {
    let server = Server::start(Open::Private);
    for (protocol, flows) in [(Protocol::Rmbt, 2), (Protocol::Throughput1, 2), (Protocol::Ndt7, 1)] {
        let loads = vec![vec![Way::Up]];
        let outcome = run(&Plan { loads, flows, ..plan(server.address(), protocol) }).expect("it succeeds");
        for flow in &outcome.loads[0].flows {
            let acked = flow.samples.last().expect("the last one is of its end").info.bytes_acked as f64;
            let total = flow.total().expect("it is known") as f64;
            println!("{protocol:?}: {total} bytes at the server, {acked} acknowledged");
            assert!((total - acked).abs() < 0.01 * acked, "{protocol:?}: {total} {acked}");
        }
    }
}

/// M-Lab's server of ndt7 tells of an upload what its kernel has counted, and not what its program has.
#[test]
fn an_upload_of_ndt7_has_the_bytes_of_the_servers_kernel_if_it_tells_no_others() {
    let server = Server::start(Open::Private);
    let without_app: Passing = |from, to| {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let read = &mut buffer[..length];
            while let Some(at) = read.windows(9).position(|name| name == br#""AppInfo""#) {
                read[at + 1..at + 8].copy_from_slice(b"Nothing");
            }
            if to.write_all(read).is_err() {
                break;
            }
        }
    };
    let (address, _) = middlebox(loopback(), server.address(), UNCHANGED, without_app);
    let plan = Plan { loads: vec![vec![Way::Up]], flows: 1, ..plan(address, Protocol::Ndt7) };
    let outcome = run(&plan).expect("it succeeds");
    let flow = &outcome.loads[0].flows[0];
    assert_eq!(flow.failure, None);
    let sent = flow.samples.last().expect("the last one is of its end").info.bytes_acked as f64;
    let total = flow.total().expect("it is known") as f64;
    // The kernel counts the request and the framing, too; the middlebox holds what the server has not read.
    assert!(total > 1e6 && (0.9..=1.0).contains(&(total / sent)), "{total} {sent}");
}

#[test]
fn transfers_of_an_amount_count_its_bytes_and_not_those_that_have_warmed_the_connection() {
    let server = Server::start(Open::Private);
    for warm in [false, true] {
        let amount = Amount::Bytes(3_000_000);
        let outcome = run(&Plan { amount, warm, ..plan(server.address(), Protocol::Rmbt) }).expect("it succeeds");
        for (load, flow) in outcome.loads.iter().flat_map(|load| load.flows.iter().map(move |flow| (load, flow))) {
            let (way, total) = (flow.way, flow.total().expect("it is known"));
            // The warm-up is between the probes alone and the load, before which no window has the time to shrink.
            let LoadTimes { warming, during, .. } = load.times;
            assert_eq!(during.saturating_since(warming) > Span::from_millis(900), warm, "{way:?}");
            assert_eq!(load.phase(warming + Span::from_millis(1)).is_none(), warm);
            assert!((3_000_000..3_000_000 + (64 << 10)).contains(&total), "{way:?} {total}");
            // The kernel counts all that the connection has carried: only a warm one has carried data before.
            let earlier = earlier(flow);
            assert!(if warm { earlier > 1_000_000 } else { earlier < 100_000 }, "{way:?} {warm}: {earlier}");
        }
        let tables = outcome.tables();
        let uploads = outcome.loads.iter().flat_map(|load| &load.flows).filter(|flow| flow.way == Way::Up);
        for flow in uploads {
            let row = |row: &FlowRow| row.flow == "upload" && row.conn == flow.number as u32;
            let row = tables.flows.iter().find(row).expect("its bytes are known");
            let sent = row.segments_sent.expect("its sender is here");
            let all = u64::from(flow.samples.last().expect("the last one is of its end").info.data_segs_out);
            // A segment has less than 64 KiB; those of the warm-up are most of the connection's.
            assert!(sent * (64 << 10) > 3_000_000 && sent < all, "{warm}: {sent} of {all}");
            assert!(!warm || sent * 2 < all, "{sent} of {all}");
        }
    }
}

#[test]
fn samples_are_as_far_apart_as_the_plan_wants_them() {
    let server = Server::start(Open::Private);
    let (loads, interval) = (vec![vec![Way::Up]], Span::from_millis(50));
    let plan = Plan { loads, interval, flows: 1, idle: Span::ZERO, ..plan(server.address(), Protocol::Rmbt) };
    let outcome = run(&plan).expect("it succeeds");
    let samples = &outcome.loads[0].flows[0].samples;
    let (first, last) = (samples.first().expect("one at least"), samples.last().expect("one at least"));
    // There are twenty in a second, and fewer on a busy machine; at 10 ms there are a hundred.
    let most = last.at.saturating_since(first.at).as_millis() / 25 + 5;
    assert!((3..=most).contains(&(samples.len() as u64)), "{} samples, at most {most}", samples.len());
}

#[test]
fn samples_are_of_a_flows_time_however_long_their_interval() {
    let server = Server::start(Open::Private);
    let interval = Span::from_secs(10);
    for (protocol, flows) in [(Protocol::Rmbt, 2), (Protocol::Throughput1, 2)] {
        let plan = Plan { interval, flows, idle: Span::ZERO, ..plan(server.address(), protocol) };
        let start = Instant::now();
        let outcome = run(&plan).expect("it succeeds");
        // Two loads of a second each; nobody waits for the next sample.
        assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
        for (load, flow) in outcome.loads.iter().flat_map(|load| load.flows.iter().map(move |flow| (load, flow))) {
            let what = format!("{protocol:?} {:?}", flow.way);
            let ended = flow.ended.expect("it was measured here");
            let times: Vec<_> = flow.samples.iter().map(|sample| sample.at).collect();
            assert_eq!(times, [flow.start, ended], "{what}");
            assert!(ended <= load.times.after, "{what}");
            let is_known = flow.limits().is_some_and(|limits| limits.shares().is_some());
            assert!(is_known || flow.way == Way::Down, "{what}");
        }
        let begin = "windows and bytes in flight of an upload: no sample fell between";
        assert!(outcome.reasons().iter().any(|reason| reason.starts_with(begin)), "{:?}", outcome.reasons());
    }
}

/// Measures with congestion controls that the kernel may lack, or reserve for root: without them, the test is skipped or fails.
fn run_if_granted(plan: &Plan) -> Option<Outcome> {
    granted(match run(plan) {
        Err(Fault::Option(why)) => Err(why),
        other => Ok(other.expect("it succeeds")),
    })
}

#[test]
fn the_congestion_controls_of_uploads_take_turns() {
    let server = Server::start(Open::Private);
    let congestion = vec!["cubic".to_owned(), "reno".to_owned()];
    let loads = vec![vec![Way::Up]];
    let plan = Plan { congestion, loads, flows: 3, ..plan(server.address(), Protocol::Rmbt) };
    let Some(outcome) = run_if_granted(&plan) else { return };
    let names: Vec<&str> = outcome.loads[0].flows.iter().map(|flow| flow.congestion.as_str()).collect();
    assert_eq!(names, ["cubic", "reno", "cubic"]);
}

/// The gains of Linux's BBR in 256ths (`bbr_high_gain`, `bbr_drain_gain`, `bbr_pacing_gain`, `bbr_cwnd_gain` in `net/ipv4/tcp_bbr.c`):
/// 1000 / 2885 of itself is the drain's, rounded down.
const PACING: [f64; 5] = [739.0, 88.0, 320.0, 192.0, 256.0];
const WINDOW: [f64; 3] = [739.0, 512.0, 256.0];

#[test]
fn an_upload_with_bbr_has_its_state_and_others_have_none() {
    let server = Server::start(Open::Private);
    let (congestion, loads) = (vec!["bbr".to_owned(), "cubic".to_owned()], vec![vec![Way::Up]]);
    let plan = Plan { congestion, loads, ..plan(server.address(), Protocol::Rmbt) };
    let Some(outcome) = run_if_granted(&plan) else { return };
    let tables = outcome.tables();
    let of = |conn: u32| tables.tcp_info.iter().filter(move |row| row.conn == conn);
    assert!(of(0).count() > 20 && of(1).count() > 20);
    for row in of(0) {
        let gains = [row.bbr_pacing_gain, row.bbr_cwnd_gain].map(|gain| gain.expect("BBR tells it"));
        assert!(PACING.contains(&(gains[0] * 256.0)) && WINDOW.contains(&(gains[1] * 256.0)), "{gains:?}");
    }
    let last = of(0).last().expect("the last one");
    // Loopback carries more than 100 Mbit/s, within less than 100 ms.
    assert!(last.bbr_bw_mbps.is_some_and(|mbps| mbps > 100.0), "{last:?}");
    assert!(last.bbr_min_rtt_us.is_some_and(|us| us < 100_000), "{last:?}");
    for row in of(1) {
        let state = [row.bbr_bw_mbps, row.bbr_pacing_gain, row.bbr_cwnd_gain];
        assert_eq!((state, row.bbr_min_rtt_us), ([None; 3], None));
    }
    assert!(!outcome.reasons().iter().any(|reason| reason.starts_with("BBR")), "{:?}", outcome.reasons());
}

/// A middlebox before a server that takes 64 kB in 10 ms from each client, into a small buffer.
fn sluggish(server: SocketAddr) -> SocketAddr {
    let listener = loopback();
    setsockopt(&listener, RcvBuf, &32_768).expect("connections inherit it");
    let slowly: Passing = |from, to| {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
            if length > 4_096 {
                thread::sleep(Duration::from_millis(10));
            }
        }
    };
    middlebox(listener, server, slowly, UNCHANGED).0
}

#[test]
fn an_upload_to_a_receiver_that_does_not_read_is_limited_by_its_window() {
    let server = Server::start(Open::Private);
    let loads = vec![vec![Way::Up]];
    let plan = Plan { loads, flows: 1, ..plan(sluggish(server.address()), Protocol::Rmbt) };
    let outcome = run(&plan).expect("it succeeds");
    let tables = outcome.tables();
    let flow = tables.flows.row(0);
    assert!(flow.limited_rwnd.is_some_and(|share| share > 0.5), "{flow:?}");
    let by_window = tables.samples.iter().filter(|row| row.limit == "rwnd").count();
    assert!(by_window * 2 > tables.samples.len(), "{by_window} of {}", tables.samples.len());
}

#[test]
fn an_interrupted_measurement_keeps_what_it_has() {
    let server = Server::start(Open::Private);
    for loads in [vec![vec![Way::Up], vec![Way::Down]], vec![vec![Way::Down]]] {
        let amount = Amount::Time(Span::from_secs(20));
        let plan = Plan { loads, amount, ..plan(server.address(), Protocol::Rmbt) };
        let (stop, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let (flag, mut glances) = (Arc::clone(&stop), 0);
        let outcome = measure(&plan, &stop, &mut |glance| {
            glances += u32::from(!glance.ways.is_empty());
            // The first one is of the moment in which the flows begin.
            if glances > 1 && glance.bytes > 0 {
                flag.store(true, Relaxed);
            }
        });
        assert!(start.elapsed() < Duration::from_secs(10));
        let outcome = outcome.expect("a load had begun");
        assert!(outcome.interrupted && outcome.is_partial());
        assert_eq!((outcome.loads.len(), outcome.finished), (1, 0));
        has_what_was_delivered(&outcome, 0, "interrupted");
    }
}

#[test]
fn a_load_whose_flows_fail_leaves_the_loads_before_it_and_what_it_has() {
    let server = Server::start(Open::Private);
    for ways in [[Way::Up, Way::Down], [Way::Down, Way::Up]] {
        let (address, open) = middlebox(loopback(), server.address(), UNCHANGED, UNCHANGED);
        let plan = Plan { loads: Vec::from(ways.map(|way| vec![way])), ..plan(address, Protocol::Rmbt) };
        let mut glances = 0;
        let outcome = measure(&plan, &Arc::default(), &mut |glance| {
            glances += u32::from(glance.load == 1 && !glance.ways.is_empty());
            if glances > 1 && glance.bytes > 0 {
                for client in open.lock().expect("nobody panics").drain(..) {
                    let _ = client.shutdown(Shutdown::Both);
                }
            }
        });
        let outcome = outcome.expect("a load has finished");
        assert!(!outcome.interrupted && outcome.is_partial());
        assert_eq!((outcome.loads.len(), outcome.finished), (2, 1));
        assert!(outcome.loads[0].flows.iter().all(|flow| flow.failure.is_none() && flow.total() > Some(1_000_000)));
        let fault = outcome.fault.as_deref().expect("the connections broke");
        let reason = format!("the loads from 1 on: {fault}");
        assert!(fault.starts_with("the ") && outcome.reasons().contains(&reason), "{:?}", outcome.reasons());
        has_what_was_delivered(&outcome, 1, "the ");
    }
}

/// Checks that the flows of a load that was cut short have what was delivered until then.
fn has_what_was_delivered(outcome: &Outcome, load: u32, failure: &str) {
    let tables = outcome.tables();
    for flow in &outcome.loads[load as usize].flows {
        let what = format!("{:?} {}: {:?}", flow.way, flow.number, flow.total());
        assert!(flow.failure.as_deref().is_some_and(|why| why.starts_with(failure)), "{what} {:?}", flow.failure);
        assert!(flow.total() > Some(0), "{what}");
        // The server's count comes in the end, and there was none.
        assert_eq!(flow.acknowledged, flow.way == Way::Up, "{what}");
        let row = |row: &FlowRow| row.point == load && row.flow == flow.way.name() && row.conn == flow.number as u32;
        let found = tables.flows.iter().find(row).expect("its bytes are known");
        assert!(Some(found.bytes) == flow.total() && found.goodput_mbps > 0.0 && !found.completed, "{found:?}");
        let sample = |row: &SampleRow| row.point == load && row.flow == found.flow && row.conn == found.conn;
        let samples: Vec<SampleRow> = tables.samples.iter().filter(sample).collect();
        let moving = samples.iter().filter(|row| row.goodput_mbps > 0.0).count();
        // On a busy machine, flows stand still at times.
        assert!(moving > 0, "{what}: {moving} of {} samples", samples.len());
    }
    let acknowledged = "the server's count of an upload: ";
    let is_told = outcome.reasons().iter().any(|reason| reason.starts_with(acknowledged));
    assert_eq!(is_told, outcome.loads[load as usize].has(Way::Up), "{:?}", outcome.reasons());
}

#[test]
fn a_server_that_requires_a_token_refuses() {
    let server = Server::start(Open::Nobody);
    for protocol in [Protocol::Rmbt, Protocol::Throughput1] {
        let fault = run(&plan(server.address(), protocol)).expect_err("there is no token").to_string();
        assert!(fault.starts_with("the server refuses the measurement"), "{fault}");
    }
}

#[test]
fn a_control_servers_token_admits_each_protocol() {
    let server = Server::start(Open::Nobody);
    let url = format!("http://{}", server.address());
    for protocol in [Protocol::Rmbt, Protocol::Throughput1, Protocol::Ndt7] {
        let mut plan = Plan { loads: vec![vec![Way::Up]], flows: 1, ..plan(server.address(), protocol) };
        plan.target.token = meter::request_token(&url, &Trust::System, None).expect("it gives a token");
        let outcome = run(&plan).expect("the server admits it");
        assert_eq!(outcome.loads[0].flows[0].failure, None);
    }
    let why = meter::request_token(&format!("{url}/elsewhere"), &Trust::System, None)
        .expect_err("there is nothing")
        .to_string();
    assert!(!why.contains('\n') && !why.is_empty(), "{why}");
}

#[test]
fn servers_that_misbehave_are_one_line() {
    let cases: [(&'static [u8], &str); 6] = [
        (b"", "the server closed the connection before it said anything"),
        (
            b"RMBTv1.3.5\nACCEPT TOKEN QUIT\n",
            "the server closed the connection after it was sent the token, which may be made with another key",
        ),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "the server sent `SSH-2.0-OpenSSH_9.2`, which is not the protocol of RMBT at this point",
        ),
        (b"RMBTv1.3.5\nACCEPT TOKEN QUIT\nERR too busy\n", "the server refuses the measurement: too busy"),
        (b"RMBTv1.3.5\nACCEPT TOKEN QUIT\nOK\nCHUNKSIZE 4096\nACCEPT PING\nBYTES\n", ""),
        (&[b'x'; 5000], ""),
    ];
    for (bytes, expected) in cases {
        let listener = loopback();
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.write_all(bytes);
                if !bytes.is_empty() {
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                    while stream.read(&mut [0; 1000]).is_ok_and(|length| length > 0) {}
                }
            }
        });
        let fault = run(&plan(address, Protocol::Rmbt)).expect_err("it misbehaves").to_string();
        assert!(!fault.contains('\n') && !fault.is_empty());
        assert!(expected.is_empty() || fault == expected, "{fault}");
    }
    let free = loopback().local_addr().expect("it is bound");
    let fault = run(&plan(free, Protocol::Rmbt)).expect_err("nobody listens").to_string();
    assert_eq!(fault, format!("localhost ({free}): Connection refused (os error 111)"));
}

#[test]
fn a_congestion_control_that_the_server_lacks_fails_a_download() {
    let server = Server::start(Open::Private);
    let loads = vec![vec![Way::Down]];
    let with = |name: &str| Plan {
        loads: loads.clone(),
        congestion: vec![name.to_owned()],
        ..plan(server.address(), Protocol::Throughput1)
    };
    let fault = run(&with("nosuchcc")).expect_err("there is none").to_string();
    let begin = "the server refuses the measurement: it does not send with nosuchcc but with ";
    assert!(fault.starts_with(begin), "{fault}");
    let outcome = run(&with("reno")).expect("every kernel has it, for everybody");
    assert!(outcome.loads[0].flows.iter().all(|flow| flow.congestion == "reno" && flow.total() > Some(1_000_000)));
}

#[test]
fn as_many_flows_as_a_plan_may_have_are_admitted_in_both_directions() {
    let server = Server::start(Open::Private);
    let (loads, amount) = (vec![vec![Way::Down, Way::Up]], Amount::Bytes(100_000));
    let plan = Plan { loads, amount, flows: Plan::MOST_FLOWS, ..plan(server.address(), Protocol::Rmbt) };
    let outcome = run(&plan).expect("there is room");
    assert_eq!(outcome.loads[0].flows.iter().filter(|flow| flow.failure.is_none()).count(), 2 * Plan::MOST_FLOWS);
}

/// A server of RMBT without TLS that answers pings, and a transfer as `transfer` does.
fn endless(transfer: fn(command: &[u8], stream: &mut TcpStream) -> std::io::Result<()>) -> SocketAddr {
    let listener = loopback();
    let address = listener.local_addr().expect("it is bound");
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        stream.write_all(b"RMBTv1.3.5\nACCEPT TOKEN QUIT\n")?;
        let mut said = [0; 1000];
        let _ = stream.read(&mut said)?;
        let accept = b"ACCEPT GETCHUNKS GETTIME PUT PUTNORESULT PING QUIT\n";
        stream.write_all(b"OK\nCHUNKSIZE 4096\n")?;
        stream.write_all(accept)?;
        loop {
            let length = stream.read(&mut said)?;
            if said[..length].starts_with(b"PING") {
                stream.write_all(b"PONG\n")?;
                let _ = stream.read(&mut said)?;
                stream.write_all(b"TIME 1000000\n")?;
                stream.write_all(accept)?;
            }
            transfer(&said[..length], &mut stream)?;
            if length == 0 || said[..length].starts_with(b"QUIT") {
                return Ok(());
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

#[test]
fn a_download_without_end_is_given_up() {
    let address = endless(|command, stream| {
        if command.starts_with(b"GETTIME") {
            loop {
                // The last byte of a chunk, 0xff, would end it.
                stream.write_all(&[0; 65536])?;
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    let (loads, start) = (vec![vec![Way::Down]], Instant::now());
    let fault = run(&Plan { loads, flows: 1, ..plan(address, Protocol::Rmbt) }).expect_err("it has no end");
    assert_eq!(fault.to_string(), "the server does not end the download");
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
}

#[test]
fn an_upload_of_which_a_server_says_for_ever_that_it_has_five_bytes_is_given_up() {
    let address = endless(|command, stream| {
        if command.starts_with(b"PUT") {
            stream.write_all(b"OK\n")?;
            loop {
                stream.write_all(b"TIME 1000000 BYTES 5\n")?;
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    let (loads, start) = (vec![vec![Way::Up]], Instant::now());
    let fault = run(&Plan { loads, flows: 1, ..plan(address, Protocol::Rmbt) }).expect_err("it has no end");
    assert_eq!(fault.to_string(), "the server answers, but no data has moved for 30 s");
    assert!(start.elapsed() < Duration::from_secs(45), "{:?}", start.elapsed());
}

#[test]
fn plans_that_a_protocol_cannot_follow_are_refused() {
    let plan = |protocol| plan(([127, 0, 0, 1], 1).into(), protocol);
    let why = |plan: Plan| plan.check().expect_err("it cannot");
    assert!(why(Plan { flows: 0, ..plan(Protocol::Rmbt) }).contains("from 1 to 64"));
    assert!(why(Plan { flows: 2, ..plan(Protocol::Ndt7) }).contains("one flow"));
    let bbr = || vec!["bbr".to_owned()];
    assert!(why(Plan { congestion: bbr(), ..plan(Protocol::Rmbt) }).contains("throughput1"));
    assert_eq!(Plan { congestion: bbr(), ..plan(Protocol::Throughput1) }.check(), Ok(()));
    let two = Plan { congestion: vec!["cubic".into(), "reno".into()], flows: 1, ..plan(Protocol::Throughput1) };
    assert_eq!(why(two.clone()), "--cc names 2 congestion controls for --flows 1: each needs a flow");
    assert_eq!(Plan { flows: 2, ..two }.check(), Ok(()));
    let minute = Amount::Time(Span::from_secs(60));
    assert!(why(Plan { amount: minute, ..plan(Protocol::Rmbt) }).contains("30 s"));
    let up = vec![vec![Way::Up]];
    assert_eq!(Plan { amount: minute, loads: up, ..plan(Protocol::Rmbt) }.check(), Ok(()));
    assert!(why(Plan { amount: Amount::Bytes(9), ..plan(Protocol::Throughput1) }).contains("rmbt"));
    assert!(why(Plan { warm: true, ..plan(Protocol::Throughput1) }).contains("rmbt"));
}
