//! Live feeds: sockets, WebSockets and files, broken and mended.
// Tests wait for real sockets and programs.

use crate::common::{report, start, until};
use futures_util::{SinkExt, StreamExt};
use rnis::feed::recording;
use rnis::{AddressMap, RadioReport, Record, UeId};
use services::rnis::{Follower, Input, Options, Service};
use services::{Log, unix_now};
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use units::Span;

fn input(text: &str) -> Input {
    text.parse().unwrap_or_else(|why| panic!("{why}"))
}

fn logged() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    (Log::new(move |line| kept.lock().unwrap().push(line.to_owned())), lines)
}

fn with(inputs: Vec<Input>) -> Options {
    let addresses = AddressMap::parse("0x4601 10.45.0.22\n0 10.45.0.23").expect("it is valid");
    Options { inputs, addresses, ..Options::default() }
}

fn address(last: u8) -> IpAddr {
    [10, 45, 0, last].into()
}

/// Runs a service whose input is a file, until it fails.
async fn failure(inputs: Vec<Input>) -> String {
    let mut service = match Service::start(with(inputs)).await {
        Ok(service) => service,
        Err(why) => return why.to_string(),
    };
    let ended = timeout(Duration::from_secs(10), service.run()).await.expect("it ends");
    ended.expect_err("the input is broken").to_string()
}

fn sample(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rnis/tests/feeds").join(name).display().to_string()
}

#[tokio::test]
async fn each_kind_of_file_feeds_the_service() {
    for (text, last) in [
        (format!("recording:{}", sample("recording.jsonl")), None),
        (format!("kpm:{}", sample("kpm.csv")), Some(22)),
        (format!("flexric:{}", sample("flexric-mac.csv")), Some(22)),
    ] {
        let (log, lines) = logged();
        let service = start(Options { log, ..with(vec![input(&text)]) }).await;
        let ended = || lines.lock().unwrap().iter().any(|line: &String| line.contains("ended after"));
        until(ended).await;
        if let Some(last) = last {
            assert!(service.hub.latest(address(last)).is_some(), "{text}");
        }
    }
}

#[tokio::test]
async fn broken_files_are_one_line() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("feed");
    let file = path.display().to_string();
    for (content, message) in [
        (&b"{\"event\":\"left\",\"time_us\":1,\"cell\":1,\"rnti\":1}\n{\n"[..], "line 2: EOF while parsing an object"),
        (b"\xff\n", "line 1: expected value"),
        (b"{\"time_us\":1}", "line 1: missing field `interval_us`"),
    ] {
        std::fs::write(&path, content).expect("there is room");
        let failure = failure(vec![input(&format!("recording:{file}"))]).await;
        assert!(failure.starts_with(&format!("input recording:{file}: {message}")), "{failure}");
        assert!(!failure.contains('\n'));
    }
    std::fs::write(&path, vec![b'x'; 3 << 20]).expect("there is room");
    assert!(failure(vec![input(&format!("kpm:{file}"))]).await.contains("longer than 1048576 bytes"));
    assert!(failure(vec![input("recording:/nonexistent")]).await.contains("No such file"));
    assert!(failure(vec![input("recording:/")]).await.contains("is a directory"));
    // A socket does not replace what is there.
    assert!(failure(vec![input(&format!("kpm:unix:{file}"))]).await.contains("Address already in use"));
    assert!(path.exists());
}

#[tokio::test]
async fn a_fifo_is_read_once_somebody_writes_to_it() {
    let directory = tempfile::tempdir().expect("there is room");
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("there is room");
    let (log, lines) = logged();
    let service = start(Options { log, ..with(vec![input(&format!("recording:{}", fifo.display()))]) }).await;
    let recording = std::fs::read(sample("recording.jsonl")).expect("it is there");
    std::fs::write(&fifo, recording).expect("it has room for ten lines");
    until(|| lines.lock().unwrap().iter().any(|line: &String| line.contains("ended after 10 lines"))).await;
    drop(service);
}

#[tokio::test]
async fn a_busy_port_is_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let listen = taken.local_addr().expect("it is bound");
    let why =
        Service::start(Options { listen, ..Options::default() }).await.expect_err("the port is taken").to_string();
    assert!(why.starts_with(&format!("cannot listen on {listen}: Address already in use")), "{why}");
}

#[tokio::test]
async fn programs_come_and_go_on_a_socket_and_faults_do_not_end_it() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("socket");
    let (log, lines) = logged();
    // A service that was killed has left its socket.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("it is free"));
    let mut service =
        Service::start(Options { log, ..with(vec![input(&format!("recording:unix:{}", path.display()))]) })
            .await
            .expect("it starts");
    assert!(
        failure(vec![input(&format!("recording:unix:{}", path.display()))]).await.contains("Address already in use")
    );
    let hub = service.hub();
    let running = tokio::spawn(async move { service.run().await });
    for rnti in 1..4 {
        let mut program = UnixStream::connect(&path).await.expect("the socket is there");
        let line = recording::format_line(&Record::Report(report(1, rnti)));
        program.write_all(format!("garbage\n{line}\n").as_bytes()).await.expect("it is read");
        drop(program);
        until(|| hub.latest(address(rnti as u8)).is_some()).await;
    }
    // Faults are reported, but not each of them.
    assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
    running.abort();
    until(|| !path.exists()).await;
}

#[tokio::test]
async fn a_gnb_is_subscribed_to_and_connected_again_after_it_restarted() {
    let gnb = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = gnb.local_addr().expect("it is bound").port();
    let (log, lines) = logged();
    let service = start(Options { log, ..with(vec![input(&format!("srsran:127.0.0.1:{port}"))]) }).await;
    let metrics = std::fs::read_to_string(sample("srsran.json")).expect("the sample is there");
    for round in 0..2 {
        let (stream, _) =
            timeout(Duration::from_secs(10), gnb.accept()).await.expect("it connects").expect("it connects");
        let mut socket = accept_async(stream).await.expect("it is a WebSocket");
        let asked = socket.next().await.expect("it asks").expect("it asks");
        assert_eq!(asked, Message::text(r#"{"cmd":"metrics_subscribe"}"#));
        socket.send(Message::text(r#"{"cmd":"metrics_subscribe"}"#)).await.expect("it is open");
        socket.send(Message::text("not JSON")).await.expect("it is open");
        let before = unix_now();
        socket.send(Message::text(metrics.clone())).await.expect("it is open");
        until(|| service.hub.latest(address(22)).is_some_and(|report| report.time >= before)).await;
        drop(socket);
        if round == 1 {
            assert!(!lines.lock().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn a_replay_keeps_its_timing_and_its_reports_are_fresh() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("recording");
    let mut text = String::new();
    for n in 0..5 {
        let mut report = report(1, 9);
        report.time = units::Time::from_nanos(1_000_000_000 + n * 100_000_000);
        text += &(recording::format_line(&Record::Report(report)) + "\n");
    }
    std::fs::write(&path, text).expect("there is room");
    let service = Service::start(with(vec![input(&format!("replay:{}", path.display()))])).await.expect("it starts");
    let mut reports = service.hub().records();
    let mut running = service;
    tokio::spawn(async move { running.run().await });
    let mut times = Vec::new();
    for _ in 0..5 {
        let record = timeout(Duration::from_secs(10), reports.recv()).await.expect("it arrives").expect("it arrives");
        let Record::Report(report) = &*record else { panic!("{record:?}") };
        assert!(report.age(unix_now()) < Span::from_millis(90), "{:?}", report.age(unix_now()));
        times.push(report.time);
    }
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Span::from_millis(100)), "{times:?}");
}

/// Before, a short recording was over before its printer asked for reports.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_before_the_service_runs_receives_the_first_report() {
    let mut service = Service::start(with(vec![input(&format!("recording:{}", sample("recording.jsonl")))]))
        .await
        .expect("it starts");
    sleep(Duration::from_millis(200)).await;
    let mut reports = service.hub().records();
    tokio::spawn(async move { service.run().await });
    let first = timeout(Duration::from_secs(10), reports.recv()).await.expect("it arrives").expect("it arrives");
    let text = std::fs::read_to_string(sample("recording.jsonl")).expect("it is there");
    assert_eq!(recording::format_line(&first), text.lines().next().expect("there is one"));
}

#[tokio::test]
async fn a_reader_that_lags_does_not_hold_up_the_feed() {
    let service = start(Options::default()).await;
    let mut slow = service.hub.records();
    let before = std::time::Instant::now();
    for n in 0..50_000u64 {
        let mut report = report(1, 9);
        report.acked_bits = n;
        service.hub.feed(Record::Report(report));
    }
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    assert!(matches!(slow.recv().await, Err(tokio::sync::broadcast::error::RecvError::Lagged(_))));
    assert_eq!(service.hub.latest(address(9)).expect("there is one").acked_bits, 49_999);
    sleep(Duration::from_millis(1)).await;
}

/// Four reports of each of 4096 UEs, as lines.
fn bursts() -> String {
    let burst = |_| {
        (1..=4096u16).map(|rnti| {
            let [high, low] = rnti.to_be_bytes();
            let report = RadioReport { ue: UeId::new(rnti).at([10, 45, high, low]), ..report(1, rnti) };
            recording::format_line(&Record::Report(report)) + "\n"
        })
    };
    (0..4).flat_map(burst).collect()
}

/// Before, a burst of more than 1024 lost reports.
#[test]
fn a_follower_receives_all_reports_of_4096_ues_in_bursts() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("socket");
    let (log, lines) = logged();
    let counts = Arc::new(Mutex::new(vec![0u64; 4097]));
    let take = {
        let counts = counts.clone();
        move |report: &RadioReport| {
            counts.lock().unwrap()[usize::from(report.ue.rnti)] += 1;
            0
        }
    };
    let input = input(&format!("recording:unix:{}", path.display()));
    let follower = Follower::start(input, log, take).expect("it starts");
    let mut program = std::os::unix::net::UnixStream::connect(&path).expect("the socket is there");
    program.write_all(bursts().as_bytes()).expect("it is read");
    let start = std::time::Instant::now();
    while counts.lock().unwrap()[1..].iter().any(|&count| count != 4) {
        let arrived: u64 = counts.lock().unwrap().iter().sum();
        assert!(start.elapsed() < Duration::from_secs(20), "{arrived} of {} arrived", 4 * 4096);
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(follower);
    assert!(lines.lock().unwrap().is_empty(), "{lines:?}");
}

/// A consumer without room, as a control that has too many UEs.
#[test]
fn what_a_follower_loses_is_told() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("socket");
    let (log, lines) = logged();
    let feed = format!("recording:unix:{}", path.display());
    let follower = Follower::start(input(&feed), log, |_| 3).expect("it starts");
    let mut program = std::os::unix::net::UnixStream::connect(&path).expect("the socket is there");
    program.write_all(bursts().as_bytes()).expect("it is read");
    let start = std::time::Instant::now();
    while lines.lock().unwrap().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing is told");
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = format!("input {feed}: 3 reports were lost: they came faster than they were taken");
    assert_eq!(lines.lock().unwrap()[0], told);
    drop(follower);
}

#[tokio::test]
async fn a_writer_beyond_the_sixteenth_waits_and_is_told_of() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("socket");
    let (log, lines) = logged();
    let service = start(Options { log, ..with(vec![input(&format!("recording:unix:{}", path.display()))]) }).await;
    let mut writers = Vec::new();
    for _ in 0..15 {
        writers.push(UnixStream::connect(&path).await.expect("the service listens"));
    }
    sleep(Duration::from_millis(200)).await;
    let told = || lines.lock().unwrap().iter().any(|line| line.contains("16 programs are connected; others wait"));
    assert!(!told(), "{lines:?}");
    writers.push(UnixStream::connect(&path).await.expect("the service listens"));
    until(told).await;
    let mut last = UnixStream::connect(&path).await.expect("the kernel accepts it");
    let line = recording::format_line(&Record::Report(report(1, 22))) + "\n";
    last.write_all(line.as_bytes()).await.expect("it is open");
    sleep(Duration::from_millis(200)).await;
    assert!(service.hub.latest(address(22)).is_none(), "it is read");
    // When one leaves, it has its turn.
    writers.pop();
    until(|| service.hub.latest(address(22)).is_some()).await;
}

#[tokio::test]
async fn a_broker_that_accepts_and_says_nothing_is_given_up_and_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (log, lines) = logged();
    let _service = start(Options { log, ..with(vec![input(&format!("amqp://127.0.0.1:{port}"))]) }).await;
    for _ in 0..2 {
        let accepted = timeout(Duration::from_secs(10), listener.accept()).await;
        let (mut silent, _) = accepted.expect("it connects").expect("it is bound");
        let mut sent = Vec::new();
        let closed = timeout(Duration::from_secs(10), silent.read_to_end(&mut sent)).await;
        closed.expect("it is given up").expect("it is closed");
        assert_eq!(sent, b"AMQP\0\0\x09\x01");
    }
    let why = format!("amqp://127.0.0.1:{port}: the broker does not answer within 5 s; trying again");
    assert_eq!(*lines.lock().unwrap(), [why], "it is told once");
}
