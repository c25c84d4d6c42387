//! Brokers and publishers that send what no honest one sends.

use crate::common::{report, start, until};
use rnis::Record;
use rnis::feed::recording;
use services::Log;
use services::rnis::{Broker, Follower, Input, Options};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// Returns a field table that is nested `depth` deep.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(vec![0; 4], |inner, _| {
        let entry = [&[1, b'a', b'F'][..], &inner].concat();
        [&(entry.len() as u32).to_be_bytes()[..], &entry].concat()
    })
}

/// Returns a frame.
fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&[kind][..], &channel.to_be_bytes(), &length.to_be_bytes(), payload, &[0xce]].concat()
}

fn start_method(table: &[u8]) -> Vec<u8> {
    let long = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    frame(1, 0, &[&[0, 10, 0, 10, 0, 9][..], table, &long("PLAIN"), &long("en_US")].concat())
}

/// Everything that an honest broker sends until a consumer is ready.
fn greeting(properties: &[u8]) -> Vec<u8> {
    let method = |channel, fields: &[u8]| frame(1, channel, fields);
    let tune = [&[0, 10, 0, 30, 0, 0][..], &(128_u32 << 10).to_be_bytes(), &[0, 60]].concat();
    let queue = [&[0, 50, 0, 11, 1, b'q'][..], &[0; 8]].concat();
    [
        start_method(properties),
        method(0, &tune),
        method(0, &[0, 10, 0, 41, 0]),
        method(1, &[0, 20, 0, 11, 0, 0, 0, 0]),
        method(1, &[0, 40, 0, 11]),
        method(1, &queue),
        method(1, &[0, 50, 0, 21]),
        method(1, &[0, 60, 0, 11]),
        method(1, &[0, 60, 0, 21, 1, b'c']),
    ]
    .concat()
}

/// A message with these properties.
fn message(properties: &[u8], body: &[u8]) -> Vec<u8> {
    let deliver = [&[0, 60, 0, 60, 1, b'c', 0, 0, 0, 0, 0, 0, 0, 1, 0, 3][..], b"rni", &[1, b'k']].concat();
    let header = [&[0, 60, 0, 0][..], &(body.len() as u64).to_be_bytes(), properties].concat();
    [frame(1, 1, &deliver), frame(2, 1, &header), frame(3, 1, body)].concat()
}

fn body(rnti: u16) -> Vec<u8> {
    recording::format_line(&Record::Report(report(7, rnti))).into_bytes()
}

fn logged() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    (Log::new(move |line| kept.lock().unwrap().push(line.to_owned())), lines)
}

async fn listen() -> (TcpListener, String) {
    let broker = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = broker.local_addr().expect("it has one");
    (broker, address.to_string())
}

async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    stream.read_exact(&mut [0; 8]).await.expect("the protocol header");
    stream.write_all(bytes).await.expect("it reads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_nested_ten_thousand_deep_pass_a_consumer_that_goes_on() {
    let (broker, address) = listen().await;
    let input: Input = format!("amqp://{address}").parse().expect("it is valid");
    let (log, lines) = logged();
    let service = start(Options { inputs: vec![input], log, ..Options::default() }).await;
    let (mut stream, _) = broker.accept().await.expect("it connects");
    let deep = nested(10_000);
    let hostile = message(&[&(1_u16 << 13).to_be_bytes()[..], &deep].concat(), b"no report");
    serve(&mut stream, &[greeting(&deep), hostile, message(&[0, 0], &body(61))].concat()).await;
    let ue = IpAddr::from([10, 45, 0, 61]);
    until(|| service.hub.latest(ue).is_some()).await;
    let lines = lines.lock().unwrap().clone();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("receiving reports from ") && lines[1].contains("expected"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reader_of_a_proxy_outlives_brokers_that_violate_the_protocol() {
    let (broker, address) = listen().await;
    let input: Input = format!("amqp://{address}").parse().expect("it is valid");
    let (log, lines) = logged();
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let follower = tokio::task::spawn_blocking(move || {
        Follower::start(input, log, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            0
        })
    });
    let follower = follower.await.expect("it runs").expect("it starts");
    for bytes in
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &greeting(&nested(0))[..40], &[1, 0, 0, 0xff, 0xff, 0xff, 0xff]]
    {
        let (mut stream, _) = broker.accept().await.expect("it connects again");
        serve(&mut stream, bytes).await;
    }
    let (mut stream, _) = broker.accept().await.expect("it connects again");
    serve(&mut stream, &[greeting(&nested(0)), message(&[0, 0], &body(61))].concat()).await;
    until(|| count.load(Ordering::Relaxed) == 1).await;
    let told = lines.lock().unwrap().clone();
    let expected = [
        format!("amqp://{address}: the peer is not a broker for AMQP 0-9-1; trying again"),
        format!("receiving reports from amqp://{address}"),
    ];
    assert_eq!(told, expected, "the first fault is told, and that it is over");
    tokio::task::spawn_blocking(|| drop(follower)).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_panics_ends_alone() {
    let (broker, address) = listen().await;
    let input: Input = format!("amqp://{address}").parse().expect("it is valid");
    let (log, lines) = logged();
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let take = move |_: &rnis::RadioReport| {
        assert!(counted.fetch_add(1, Ordering::Relaxed) > 0, "the first one is a disaster");
        0
    };
    let follower = tokio::task::spawn_blocking(move || Follower::start(input, log, take));
    let follower = follower.await.expect("it runs").expect("it starts");
    let mut streams = Vec::new();
    for n in 1..=2 {
        let (mut stream, _) = broker.accept().await.expect("it connects again");
        serve(&mut stream, &[greeting(&nested(0)), message(&[0, 0], &body(61))].concat()).await;
        until(|| count.load(Ordering::Relaxed) == n).await;
        streams.push(stream);
    }
    let receiving = format!("receiving reports from amqp://{address}");
    let failed = format!("amqp://{address}: its session failed by an error of this program; trying again");
    assert_eq!(*lines.lock().unwrap(), [receiving.clone(), failed, receiving]);
    tokio::task::spawn_blocking(|| drop(follower)).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_are_reached_over_tls_if_an_authority_vouches_for_them() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("there is room");
    let [ca, other] = ["ca.pem", "other.pem"].map(|name| directory.path().join(name));
    std::fs::write(&ca, made.cert.pem()).expect("there is room");
    let stranger = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(&other, stranger.cert.pem()).expect("there is room");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key.into()).expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (broker, address) = listen().await;
    let with = |file: &std::path::Path| {
        let input: Input = format!("amqps://{address}").parse().expect("it is valid");
        input.with_broker(|broker: Broker| broker.with_authorities(Some(file))).expect("it has an authority")
    };
    let (log, lines) = logged();
    let refusing = start(Options { inputs: vec![with(&other)], log, ..Options::default() }).await;
    let (stream, _) = broker.accept().await.expect("it connects");
    assert!(acceptor.accept(stream).await.is_err(), "another authority is trusted");
    until(|| !lines.lock().unwrap().is_empty()).await;
    let told = lines.lock().unwrap()[0].clone();
    assert!(told.starts_with(&format!("amqps://{address}: invalid peer certificate")), "{told}");
    drop(refusing);

    let service = start(Options { inputs: vec![with(&ca)], ..Options::default() }).await;
    let serving = async {
        loop {
            // The one that refuses comes back.
            let (stream, _) = broker.accept().await.expect("it connects");
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            serve(&mut stream, &[greeting(&nested(0)), message(&[0, 0], &body(61))].concat()).await;
            stream.flush().await.expect("it reads");
            std::future::pending::<()>().await;
        }
    };
    let arrived = until(|| service.hub.latest(IpAddr::from([10, 45, 0, 61])).is_some());
    let both = async {
        tokio::select! {
            () = serving => {}
            () = arrived => {}
        }
    };
    timeout(Duration::from_secs(20), both).await.expect("the report arrives");
}
