//! Measurements over TLS on loopback.

#![allow(clippy::disallowed_methods)] // Tests open sockets and measure time.

mod common;

use common::{Server, earlier, plan, run};
use meter::{Phase, Plan, Probe, Protocol, Target, Tls, Trust, request_token};
use services::measure::{Open, Options, Tls as Certificate};
use std::path::PathBuf;

use observe::kernel::Way;

/// A server whose certificate is for `name`, and the file with the certificate, which is its own authority.
fn secure(name: &str, options: Options) -> (Server, tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    };
    let (certificate, key) = (file("certificate", made.cert.pem()), file("key", made.signing_key.serialize_pem()));
    let tls = Some(Certificate::Files { certificate: certificate.clone(), key });
    (Server::with(Options { tls, ..options }), directory, certificate)
}

fn with_tls(plan: Plan, trust: &Trust) -> Plan {
    let tls = Some(Tls::new(trust).expect("there are authorities"));
    Plan { target: Target { tls, ..plan.target }, ..plan }
}

#[test]
fn each_protocol_measures_over_tls_what_the_socket_below_has() {
    let (server, _directory, certificate) = secure("localhost", Options { tls_only: true, ..Options::default() });
    let trust = Trust::File(certificate);
    for (protocol, flows) in [(Protocol::Rmbt, 2), (Protocol::Throughput1, 2), (Protocol::Ndt7, 1)] {
        let plan = Plan { flows, ..plan(server.address(), protocol) };
        let outcome = run(&with_tls(plan, &trust)).expect("it succeeds");
        for (load, way) in outcome.loads.iter().zip([Way::Up, Way::Down]) {
            println!("{protocol:?} {way:?}: {:?}", load.throughput(way).expect("bytes moved").total);
            for flow in &load.flows {
                assert_eq!((flow.way, flow.failure.as_deref()), (way, None));
                assert!(
                    flow.samples.len() > 20 && flow.total() > Some(1_000_000),
                    "{protocol:?} {}",
                    flow.samples.len()
                );
                let info = flow.samples.last().expect("the last one is of its end").info;
                let below = if way == Way::Up { info.bytes_acked } else { info.bytes_received } as f64;
                let total = flow.total().expect("it is known") as f64;
                // Records of up to 16 KiB have 22 bytes more; the handshake comes before.
                println!("{total} bytes, {below} below TLS");
                assert!(total < below, "{protocol:?} {way:?}: {total} {below}");
                // A client that ends a download leaves what has arrived meanwhile.
                let is_left = protocol == Protocol::Ndt7 && way == Way::Down;
                assert!(is_left || below - total < 0.01 * below, "{protocol:?} {way:?}: {total} {below}");
            }
            let stamped = load.flows.iter().flat_map(|flow| &flow.passages).filter(|one| one.travelled.is_some());
            assert!(way == Way::Down || stamped.count() > 10, "{protocol:?}");
            let requests = outcome.rtts(load, Phase::During, |probe| probe == Probe::Request);
            assert!(protocol != Protocol::Rmbt || !requests.is_empty());
        }
    }
}

#[test]
fn a_warm_upload_of_an_amount_is_the_same_over_tls() {
    let (server, _directory, certificate) = secure("localhost", Options::default());
    let amount = meter::Amount::Bytes(3_000_000);
    let plan = Plan { amount, warm: true, ..plan(server.address(), Protocol::Rmbt) };
    for load in run(&with_tls(plan, &Trust::File(certificate))).expect("it succeeds").loads {
        for flow in &load.flows {
            let total = flow.total().expect("it is known");
            assert!((3_000_000..3_000_000 + (64 << 10)).contains(&total), "{:?} {total}", flow.way);
            // The handshake and what records have besides their data are some kilobytes.
            assert!(earlier(flow) > 1_000_000, "{:?} {}", flow.way, earlier(flow));
        }
    }
}

#[test]
fn certificates_that_are_not_trusted_are_refused_in_one_line() {
    let (server, _directory, certificate) = secure("other.example", Options::default());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), other.cert.pem()).expect("there is room");
    let unknown = "the server's certificate is signed by no authority that is trusted here; give its authority with --ca, or do \
                   without any with --insecure";
    let mismatch = "the server's certificate is not valid for `localhost`, but for other.example";
    for protocol in [Protocol::Rmbt, Protocol::Throughput1] {
        let why = |trust: &Trust| {
            let plan = with_tls(plan(server.address(), protocol), trust);
            run(&plan).expect_err("it is not trusted").to_string()
        };
        assert_eq!(why(&Trust::File(file.path().into())), unknown);
        assert_eq!(why(&Trust::File(certificate.clone())), mismatch);
    }
    let loads = vec![vec![Way::Up]];
    let plan = Plan { loads, flows: 1, ..plan(server.address(), Protocol::Throughput1) };
    let outcome = run(&with_tls(plan, &Trust::Anyone)).expect("anyone is trusted");
    assert_eq!(outcome.loads[0].flows[0].failure, None);
}

#[test]
fn a_server_without_tls_is_told_from_one_with_it() {
    let server = Server::start(Open::Private);
    for protocol in [Protocol::Rmbt, Protocol::Throughput1] {
        let plan = with_tls(plan(server.address(), protocol), &Trust::Anyone);
        let why = run(&plan).expect_err("there is no TLS").to_string();
        assert_eq!(why, "the server does not answer with TLS: measure without it, or ask for its port");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is loopback");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let why = run(&with_tls(plan(address, Protocol::Rmbt), &Trust::Anyone)).expect_err("it closes").to_string();
    let closed = "the server closed the connection in the TLS handshake; it may have no TLS";
    assert!(why == closed || why.starts_with("the connection to the server broke: "), "{why}");
    let (server, _directory, _) = secure("localhost", Options { tls_only: true, ..Options::default() });
    let why = run(&plan(server.address(), Protocol::Rmbt)).expect_err("it wants TLS").to_string();
    assert!(why.starts_with("the server closed the connection"), "{why}");
}

#[test]
fn a_control_server_is_asked_over_tls() {
    let (server, _directory, certificate) = secure("localhost", Options { open: Open::Nobody, ..Options::default() });
    let url = format!("https://localhost:{}", server.address().port());
    let trust = Trust::File(certificate);
    let mut plan = with_tls(Plan { loads: vec![vec![Way::Up]], ..plan(server.address(), Protocol::Rmbt) }, &trust);
    plan.target.token = request_token(&url, &trust, None).expect("it gives a token");
    assert_eq!(run(&plan).expect("the server admits it").loads[0].flows[0].failure, None);
    let why = request_token(&url, &Trust::File("/nonexistent".into()), None).expect_err("there is none").to_string();
    assert!(why.starts_with("--ca: "), "{why}");
    let address = format!("https://127.0.0.1:{}", server.address().port());
    let why = request_token(&address, &trust, None).expect_err("the name is another").to_string();
    assert_eq!(why, "the server's certificate is not valid for `127.0.0.1`, but for localhost");
    let plain = Server::start(Open::Nobody);
    let url = format!("https://localhost:{}", plain.address().port());
    let why = request_token(&url, &Trust::Anyone, None).expect_err("there is no TLS").to_string();
    assert_eq!(why, "the server does not answer with TLS: measure without it, or ask for its port");
}
