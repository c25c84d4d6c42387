//! The measurement server, with clients that speak RMBT, ndt7 and throughput1.

#![allow(clippy::disallowed_methods)] // Tests of a server open sockets and read files.

mod measure_client;

use futures_util::{SinkExt, StreamExt};
use measure_client::{ALL, Conn, How, connect, exchange, post, token};
use serde_json::Value;
use services::MetricsAccess;
use services::measure::{Control, Limits, Open, Options, Service, Store, Tls};
use speedtest::rmbt::chunks::End;
use speedtest::rmbt::token::{self, Key};
use speedtest::{ndt7, throughput1};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use units::Span;

/// A server on its own threads, as long as it is not dropped.
struct Running {
    runtime: Runtime,
    service: Option<Service>,
    address: SocketAddr,
}

impl Running {
    fn start(options: Options) -> Running {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let service = runtime.block_on(Service::start(options)).expect("it starts");
        let address = service.addresses()[0];
        Running { runtime, service: Some(service), address }
    }

    fn metric(&self, name: &str) -> u64 {
        let address = self.service.as_ref().and_then(Service::metrics).expect("it has metrics");
        let text =
            exchange(&mut connect(address), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").2;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse().expect("a number")
    }

    fn stop(mut self) {
        if let Some(service) = self.service.take() {
            self.runtime.block_on(service.stop());
        }
    }
}

fn control() -> Option<Control> {
    Some(Control { name: None, seconds: 7, flows: 3 })
}

/// A server that requires the tokens of its own control server, and has metrics.
fn guarded() -> Options {
    let metrics = MetricsAccess::new(([127, 0, 0, 1], 0).into(), None).expect("it is loopback");
    Options { open: Open::Nobody, control: control(), metrics: Some(metrics), ..Options::default() }
}

/// The lines of all results.
fn stored(directory: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("it is there").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let text: String = files.iter().map(|path| std::fs::read_to_string(path).expect("it can be read")).collect();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Goes through all phases, and returns the bytes of the upload as the client counts them.
fn measure<S: Read + Write>(stream: S, how: How, token: &str) -> u64 {
    let mut conn = Conn::open(stream, how, token).expect("the token is valid");
    assert_eq!(conn.get_chunks(4, 8_192).expect("chunks").bytes, 32_768);
    let (client, server) = conn.ping().expect("a ping");
    assert!(client > Span::ZERO && server > Span::ZERO);
    let download = conn.get_time(1, 65_536).expect("a download");
    assert!(download.bytes > 1 << 20 && download.duration >= Span::from_secs(1), "{download:?}");
    let upload = conn.put(End::After(Span::from_secs(1)), 65_536, true).expect("an upload");
    assert!(upload.duration >= Span::from_millis(900), "{:?}", upload.duration);
    assert_eq!(conn.put(End::Chunks(2), 4_096, false).expect("a short upload").bytes, 8_192);
    conn.quit().expect("it says good-bye");
    upload.bytes
}

#[test]
fn one_port_serves_all_framings_of_rmbt_with_tls_and_without() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let results = tempfile::tempdir().expect("a temporary directory");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    };
    let tls = Tls::Files { certificate: file("c", made.cert.pem()), key: file("k", made.signing_key.serialize_pem()) };
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { tls: Some(tls), results: store, ..guarded() });
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let config =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let config = Arc::new(config);
    let mut uploads = Vec::new();
    for how in ALL {
        let token = token(server.address);
        uploads.push(measure(connect(server.address), how, &token));
        let name = "localhost".try_into().expect("a name");
        let session = ClientConnection::new(config.clone(), name).expect("a session");
        uploads.push(measure(StreamOwned::new(session, connect(server.address)), how, &token));
    }
    let all = eventually("24 transfers are stored", || Some(stored(results.path())).filter(|all| all.len() == 24));
    let of = |tls: bool| {
        let long =
            |line: &&Value| line["direction"] == "upload" && line["tls"] == tls && line["bytes"].as_u64() > Some(8_192);
        all.iter().filter(long).map(|line| line["bytes"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    let sent = |first: usize| uploads.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    assert_eq!((of(false), of(true)), (sent(0), sent(1)), "the server has what the clients have sent");
    for line in &all {
        assert_eq!(
            (&line["client"], &line["protocol"], &line["complete"]),
            (&"127.0.0.0/24".into(), &"rmbt".into(), &true.into())
        );
        let samples = line["samples"].as_array().expect("samples");
        assert_eq!(samples.last().expect("at least one")[1], line["bytes"]);
        assert!(!line.to_string().contains("127.0.0.1"), "{line}");
    }
    server.stop();
}

#[test]
fn without_a_valid_token_there_is_no_data() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let keys = directory.path().join("keys");
    std::fs::write(&keys, "0123456789abcdef first\n").expect("there is room");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let server = Running::start(Options { keys: Some(keys.clone()), ..guarded() });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    let key = Key::new(b"0123456789abcdef");
    let test = "8723358c-2037-4029-a70c-91e5d9d35cf3";
    let here = [127, 0, 0, 1].into();
    let open = |token: &str| Conn::open(connect(server.address), How::Upgrade, token).map(drop);
    assert_eq!(open(&token::make_v1(&key, test, now)), Ok(()));
    assert_eq!(open(&token::make(&key, test, here, now)), Ok(()));
    assert_eq!(open(&format!("x_#v2#{}", token::make_v2(&key, here, now))), Ok(()));
    for (token, why) in [
        (token::make_v1(&key, test, now - 100), "token expired"),
        (token::make_v1(&key, test, now + 60), "token not valid yet"),
        (token::make_v1(&Key::new(b"another key"), test, now), "token signed with another key"),
        (format!("x_#v2#{}", token::make_v2(&key, [10, 0, 0, 1].into(), now)), "token issued for another address"),
        ("hello".into(), "malformed token"),
    ] {
        assert_eq!(open(&token), Err(why.into()));
        let path = format!("{}?access_token={}", ndt7::DOWNLOAD, token.replace('+', "%2B").replace('#', "%23"));
        let request = speedtest::http::request_websocket("h", &path, [1; 16], Some(ndt7::SUBPROTOCOL));
        let (status, _, body) = exchange(&mut connect(server.address), request.as_bytes());
        assert_eq!((status, body), (401, format!("{why}\n")));
    }
    // Commands instead of a token.
    let mut stream = connect(server.address);
    stream.write_all(b"GETTIME 10 4096\nPUT\n").expect("it takes it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    assert_eq!(answer, "RMBTv1.3.5\nACCEPT TOKEN QUIT\nERR expected TOKEN\n");
    assert_eq!(server.metric("ranway_measure_bytes_total{direction=\"download\"}"), 0);
    assert_eq!(server.metric("ranway_measure_tokens_total{result=\"refused\"}"), 10);

    // A new key, and then a file that is none: the key before stays.
    let service = server.service.as_ref().expect("it runs");
    std::fs::write(&keys, "fedcba9876543210\n").expect("there is room");
    assert_eq!(service.reload(), Ok(()));
    assert_eq!(open(&token::make_v1(&key, test, now)), Err("token signed with another key".into()));
    let new = token::make_v1(&Key::new(b"fedcba9876543210"), test, now);
    assert_eq!(open(&new), Ok(()));
    std::fs::write(&keys, "").expect("there is room");
    assert!(service.reload().is_err());
    assert_eq!(open(&new), Ok(()));
    server.stop();
}

#[test]
fn a_token_that_is_replayed_is_used_up() {
    let limits = Limits { uses_per_token: 3, ..Limits::default() };
    let server = Running::start(Options { limits, ..guarded() });
    let first = token(server.address);
    let open = |token: &str| Conn::open(connect(server.address), How::Upgrade, token).map(drop);
    let expected = [Ok(()), Ok(()), Ok(()), Err("token used too often".to_owned())];
    assert_eq!([open(&first), open(&first), open(&first), open(&first)], expected);
    // Other text around the same signature is the same token.
    assert_eq!(open(first.split("_#v2#").next().expect("a v1 part")), Err("token used too often".into()));
    assert_eq!(open(&token(server.address)), Ok(()));
    server.stop();
}

#[test]
fn who_finds_no_room_learns_when_to_come_back() {
    let limits = Limits { flows_per_address: 2, requests_per_minute: 3, ..Limits::default() };
    let server = Running::start(Options { limits, ..guarded() });
    let open = || Conn::open(connect(server.address), How::Upgrade, &token(server.address));
    let (one, two) = (open().expect("first"), open().expect("second"));
    let text = token(server.address);
    let busy = Conn::open(connect(server.address), How::Greeting, &text).map(drop);
    assert_eq!(busy, Err("busy, retry after 5 s".into()));
    let path = format!("{}?access_token={}", ndt7::UPLOAD, text.replace('+', "%2B").replace('#', "%23"));
    let request = speedtest::http::request_websocket("h", &path, [1; 16], Some(ndt7::SUBPROTOCOL));
    let (status, retry, _) = exchange(&mut connect(server.address), request.as_bytes());
    assert_eq!((status, retry), (503, Some(5)));
    let (status, answer) = post(server.address, "testRequest", "{}");
    assert_eq!((status, answer), (503, serde_json::json!({ "error": ["busy, retry after 5 s"] })));
    one.quit().expect("it says good-bye");
    eventually("there is room again", || Conn::open(connect(server.address), How::Upgrade, &text).ok());
    drop(two);
    assert_eq!(server.metric("ranway_measure_refused_total{limit=\"requests_of_address\"}"), 1);
    server.stop();
}

#[test]
fn all_clients_together_have_so_many_flows() {
    let limits = Limits { flows: 2, ..Limits::default() };
    let server = Running::start(Options { limits, ..guarded() });
    let open = || Conn::open(connect(server.address), How::Upgrade, &token(server.address));
    let (one, two) = (open().expect("first"), open().expect("second"));
    assert_eq!(open().map(drop), Err("busy, retry after 5 s".into()));
    assert_eq!(server.metric("ranway_measure_flows"), 2);
    assert_eq!(server.metric("ranway_measure_refused_total{limit=\"flows\"}"), 1);
    assert_eq!(server.metric("ranway_measure_refused_total{limit=\"flows_of_address\"}"), 0);
    one.quit().expect("it says good-bye");
    eventually("there is room again", || open().ok());
    drop(two);
    server.stop();
}

#[test]
fn a_transfer_without_a_byte_for_too_long_ends() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let limits = Limits { idle: Duration::from_secs(1), ..Limits::default() };
    let server = Running::start(Options { limits, results: store, ..guarded() });
    let text = token(server.address);
    let path = format!("{}?access_token={}", ndt7::UPLOAD, text.replace('+', "%2B").replace('#', "%23"));
    let request = speedtest::http::request_websocket("h", &path, [1; 16], Some(ndt7::SUBPROTOCOL));
    let rmbt = [format!("TOKEN {text}\nPUTNORESULT 4096\n").into_bytes(), vec![0; 10_000]].concat();
    for (count, (what, words)) in (1..).zip([("rmbt", rmbt), ("ndt7", request.into_bytes())]) {
        let mut stream = connect(server.address);
        stream.write_all(&words).expect("it takes it");
        let start = Instant::now();
        // The server ends it, with or without last words.
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
        let seconds = start.elapsed().as_secs_f64();
        // The bound is above what a busy machine takes.
        assert!((0.9..8.0).contains(&seconds), "{what}: {seconds}");
        eventually("the time-out is counted", || {
            (server.metric("ranway_measure_timeouts_total") == count).then_some(())
        });
    }
    eventually("no flow is left", || (server.metric("ranway_measure_flows") == 0).then_some(()));
    let line = eventually("the transfer is stored", || {
        stored(results.path()).into_iter().find(|line| line["protocol"] == "rmbt")
    });
    assert_eq!((line["bytes"].as_u64(), &line["complete"]), (Some(10_000), &false.into()));
    server.stop();
}

#[test]
fn without_control_there_is_no_control_server() {
    let server = Running::start(Options::default());
    for what in ["settings", "testRequest", "result"] {
        assert_eq!(post(server.address, what, "{}").0, 404);
    }
    server.stop();
}

#[test]
fn the_control_server_answers_clients_and_stores_what_they_measured() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { results: store, ..guarded() });
    let (_, settings) = post(server.address, "settings", "{}");
    assert_eq!(settings["settings"][0]["uuid"].as_str().map(str::len), Some(36));
    let (_, test) = post(server.address, "testRequest", r#"{"client":"RMBTws"}"#);
    let expected = ("127.0.0.1", server.address.port(), false, "RMBTws", 7, 3);
    let value = |name: &str| test[name].clone();
    assert_eq!(value("test_server_address"), expected.0);
    assert_eq!((value("test_server_port"), value("test_server_encryption")), (expected.1.into(), expected.2.into()));
    assert_eq!((value("test_server_type"), value("test_duration")), (expected.3.into(), expected.4.into()));
    assert_eq!((value("test_numthreads"), value("error")), (expected.5.into(), serde_json::json!([])));
    let result = serde_json::json!({
        "test_token": test["test_token"], "client_uuid": "secret", "geoLocations": [{ "geo_lat": 59.402_713 }],
        "test_speed_upload": 4_711, "pings": [{ "value": 3, "value_server": 2, "time_ns": 1 }],
    });
    let (status, answer) = post(server.address, "result", &result.to_string());
    assert_eq!((status, answer), (200, serde_json::json!({ "error": [] })));
    let forged = r#"{"test_token":"8723358c-2037-4029-a70c-91e5d9d35cf3_1700000000_Q+55pZ/JOQgjMe49FlelxsfCxqA="}"#;
    assert_eq!(post(server.address, "result", forged).1["error"][0], "the token of the result is not valid");
    assert_eq!(post(server.address, "result", "{").1["error"][0], "the body is not a result");
    assert_eq!(post(server.address, "other", "{}").0, 404);
    let line = eventually("the result is stored", || stored(results.path()).pop());
    assert_eq!((&line["kind"], &line["test"]), (&"client".into(), &test["test_uuid"]));
    assert_eq!((&line["test_speed_upload"], &line["client"]), (&4_711.0.into(), &"127.0.0.0/24".into()));
    // Not only the degrees: a time may have them, too.
    assert!(!line.to_string().contains("secret") && !line.to_string().contains("59.4027"), "{line}");
    let too_long = "POST /RMBTControlServer/result HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n";
    assert_eq!(exchange(&mut connect(server.address), too_long.as_bytes()).0, 413);
    let chunked = "POST /RMBTControlServer/result HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(exchange(&mut connect(server.address), chunked.as_bytes()).0, 411);
    server.stop();
}

/// Opens a WebSocket with tungstenite, which knows nothing of our code.
async fn websocket(
    address: SocketAddr,
    target: &str,
    protocol: &str,
) -> Result<tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>, WsError> {
    let mut request = format!("ws://{address}{target}").into_client_request()?;
    request.headers_mut().insert("Sec-WebSocket-Protocol", protocol.parse().expect("a name"));
    let stream = tokio::net::TcpStream::connect(address).await?;
    let config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let (socket, response) = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
    assert_eq!(response.headers()["Sec-WebSocket-Protocol"], protocol);
    Ok(socket)
}

#[test]
fn a_download_of_throughput1_has_growing_messages_and_measurements() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { results: store, ..Options::default() });
    let target = format!("{}?streams=1&mid=m1&duration=1500&cc=reno", throughput1::DOWNLOAD);
    let begin = Instant::now();
    let (sizes, texts, total) = server.runtime.block_on(async {
        let mut socket = websocket(server.address, &target, throughput1::SUBPROTOCOL).await.expect("an upgrade");
        let (mut sizes, mut texts, mut total) = (Vec::new(), Vec::new(), 0);
        while let Some(message) = socket.next().await {
            match message.expect("frames are valid") {
                Message::Binary(data) => {
                    sizes.push(data.len());
                    total += data.len() as u64;
                }
                Message::Text(text) => texts.push(text.to_string()),
                Message::Close(frame) => assert_eq!(frame.map(|frame| frame.code.into()), Some(1000_u16)),
                _ => {}
            }
        }
        (sizes, texts, total)
    });
    let took = begin.elapsed().as_secs_f64();
    assert_eq!((sizes[0], sizes.last()), (1 << 10, Some(&(1 << 20))));
    assert!(sizes.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == 2 * pair[0]), "sizes double");
    let measurements: Vec<throughput1::Measurement> =
        texts.iter().map(|text| serde_json::from_str(text).expect("a measurement")).collect();
    assert!((2..=60).contains(&measurements.len()), "{}", measurements.len());
    assert_eq!(measurements[0].congestion, "reno");
    assert!(measurements[1].congestion.is_empty() && measurements[1].uuid.is_empty());
    assert!(measurements.is_sorted_by_key(|measurement| measurement.application.sent));
    assert!(measurements.iter().all(|measurement| measurement.tcp_info.is_some_and(|info| info.bytes_acked > Some(0))));
    // The client cannot ask the server's kernel, so the server tells all that it knows.
    let last = measurements.last().and_then(|last| last.tcp_info).expect("it was checked");
    let (state, is_whole) = last.state();
    assert!(is_whole && state.snd_cwnd > 0 && state.snd_mss > 0 && state.busy_time > Some(0), "{last:?}");
    let line = eventually("the transfer is stored", || stored(results.path()).pop());
    assert_eq!(
        (&line["protocol"], &line["test"], &line["congestion"]),
        (&"throughput1".into(), &"m1".into(), &"reno".into())
    );
    // The last message is sent to its end after the time is over.
    let bytes = line["bytes"].as_u64().expect("a number");
    assert!(bytes <= total && total - bytes <= 1 << 20, "{bytes} {total}");
    let seconds = line["seconds"].as_f64().expect("a number");
    // As long as was asked for, and no longer than the client saw it; the last message is on its way then.
    assert!(seconds >= 1.5 && seconds <= took && took - seconds < 0.2, "{seconds} of {took}");
    server.stop();
}

#[test]
fn a_download_of_throughput1_ends_after_the_bytes_that_were_asked_for() {
    let server = Running::start(Options::default());
    let target = format!("{}?streams=1&mid=m&duration=20000&bytes=100000", throughput1::DOWNLOAD);
    let total: usize = server.runtime.block_on(async {
        let mut socket = websocket(server.address, &target, throughput1::SUBPROTOCOL).await.expect("an upgrade");
        let mut total = 0;
        while let Some(Ok(message)) = socket.next().await {
            total += if message.is_binary() { message.len() } else { 0 };
        }
        total
    });
    assert!((100_000..20_000_000).contains(&total), "{total}");
    server.stop();
}

#[test]
fn an_upload_of_ndt7_is_counted_by_the_server() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { results: store, ..Options::default() });
    let (sent, measurements) = server.runtime.block_on(async {
        let socket = websocket(server.address, ndt7::UPLOAD, ndt7::SUBPROTOCOL).await.expect("an upgrade");
        let (mut sink, mut source) = socket.split();
        let read = tokio::spawn(async move {
            let mut measurements = Vec::new();
            while let Some(Ok(message)) = source.next().await {
                if let Message::Text(text) = message {
                    measurements.push(serde_json::from_str::<ndt7::Measurement>(&text).expect("a measurement"));
                }
            }
            measurements
        });
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(1) {
            let data = vec![7; 1 << 18];
            sent += data.len() as u64;
            sink.send(Message::binary(data)).await.expect("it takes it");
        }
        sink.send(Message::Ping(vec![1; 100].into())).await.expect("it takes it");
        sink.close().await.expect("it takes it");
        (sent, read.await.expect("it ends"))
    });
    assert!(!measurements.is_empty());
    let first = measurements[0].connection_info.as_ref().expect("the first one names the connection");
    assert!(first.client.starts_with("127.0.0.1:") && first.server == server.address.to_string());
    assert_eq!(measurements[0].test.as_deref(), Some("upload"));
    assert!(measurements.iter().all(|measurement| measurement.app_info.is_some()));
    let line = eventually("the transfer is stored", || stored(results.path()).pop());
    assert_eq!(
        (line["bytes"].as_u64(), &line["direction"], &line["complete"]),
        (Some(sent), &"upload".into(), &true.into())
    );
    server.stop();
}

#[test]
fn an_upload_of_throughput1_ends_with_a_measurement_of_all_that_was_sent() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { results: store, ..Options::default() });
    let target = format!("{}?streams=1&mid=m1&duration=300", throughput1::UPLOAD);
    let (sent, last) = server.runtime.block_on(async {
        let mut socket = websocket(server.address, &target, throughput1::SUBPROTOCOL).await.expect("an upgrade");
        let mut sent = 0;
        // The second part arrives when the time is over, as what a modem holds back does.
        for part in [3 << 20, 5 << 20] {
            socket.send(Message::binary(vec![7; part])).await.expect("it takes it");
            sent += part as i64;
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        socket.close(None).await.expect("it takes it");
        let mut last = None;
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message {
                last = Some(serde_json::from_str::<throughput1::Measurement>(&text).expect("a measurement"));
            }
        }
        (sent, last.expect("it was measured"))
    });
    assert_eq!(last.application.received, sent);
    assert!(last.elapsed_time >= 1_200_000, "{}", last.elapsed_time);
    let line = eventually("the transfer is stored", || stored(results.path()).pop());
    assert_eq!((line["bytes"].as_i64(), &line["complete"]), (Some(sent), &true.into()));
    server.stop();
}

#[test]
fn a_test_without_its_subprotocol_or_options_is_refused() {
    let server = Running::start(Options::default());
    let status = |target: &str, protocol: Option<&str>| {
        let request = speedtest::http::request_websocket("h", target, [1; 16], protocol);
        exchange(&mut connect(server.address), request.as_bytes()).0
    };
    assert_eq!(status(ndt7::DOWNLOAD, None), 400);
    assert_eq!(status(ndt7::DOWNLOAD, Some(throughput1::SUBPROTOCOL)), 400);
    assert_eq!(status("/throughput/v1/download?streams=1", Some(throughput1::SUBPROTOCOL)), 400);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("POST /ndt/v7/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404),
        ("GET / HTTP/9\r\n\r\n", 400),
    ] {
        assert_eq!(exchange(&mut connect(server.address), request.as_bytes()).0, expected, "{request}");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(9_000));
    assert_eq!(exchange(&mut connect(server.address), long.as_bytes()).0, 431);
    server.stop();
}

#[test]
fn a_client_that_vanishes_leaves_an_incomplete_transfer_and_no_flow() {
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let server = Running::start(Options { results: store, ..guarded() });
    let mut stream: TcpStream = connect(server.address);
    let line = format!("TOKEN {}\nPUTNORESULT 4096\n", token(server.address));
    stream.write_all(&[line.as_bytes(), &[0; 10_000]].concat()).expect("it takes it");
    eventually("the flow has begun", || (server.metric("ranway_measure_flows") == 1).then_some(()));
    // A client that has not read everything would reset the connection, and the kernel drop what the server has not read.
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("it is a time");
    while stream.read(&mut [0; 1000]).is_ok_and(|length| length > 0) {}
    drop(stream);
    let line = eventually("the transfer is stored", || stored(results.path()).pop());
    assert_eq!((line["bytes"].as_u64(), &line["complete"]), (Some(10_000), &false.into()));
    eventually("the flow has ended", || (server.metric("ranway_measure_flows") == 0).then_some(()));
    server.stop();
}

#[test]
fn options_that_cannot_work_are_refused_in_one_line() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let start = |options| runtime.block_on(Service::start(options)).map(drop).map_err(|why| why.0);
    let nobody = Options { open: Open::Nobody, ..Options::default() };
    assert!(start(nobody).is_err_and(|why| why.starts_with("tokens cannot be checked")));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let busy = Options { listen: vec![address], ..Options::default() };
    let why = "Address already in use (os error 98): choose another address with --listen";
    assert_eq!(start(busy), Err(format!("cannot listen on {address}: {why}")));
    let bare = Options { tls_only: true, ..Options::default() };
    assert_eq!(start(bare), Err("TLS alone is not possible without a certificate".into()));
}
