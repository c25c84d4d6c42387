//! Whether a split proxy before the server is found: a relay on loopback, behind which lies a delay or a slow path.

#![allow(clippy::disallowed_methods)] // Tests open sockets and measure time.

mod common;

use common::{Server, plan, run};
use meter::{Amount, Plan, Protocol, ProxySign};
use observe::kernel::Way;
use services::measure::Open;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// Bytes of a read of the relay, and the reads that it holds in each direction of a connection.
const BLOCK: usize = 16 << 10;
const BLOCKS: usize = 256;

/// Relays connections to a server, each direction with a delay; that to the server with a rate in bytes a second, if one is given.
fn relay(server: SocketAddr, delay: Duration, rate: Option<f64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("it accepts");
            // The server's end is that of the test.
            let Ok(server) = TcpStream::connect(server) else { return };
            let copy = |stream: &TcpStream| {
                stream.set_nodelay(true).expect("an option of TCP");
                stream.try_clone().expect("a copy")
            };
            carry(copy(&client), copy(&server), delay, rate);
            carry(copy(&server), copy(&client), delay, None);
        }
    });
    address
}

/// Carries what one end sends to the other one. The relay reads at once, and so acknowledges, what it can hold.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration, rate: Option<f64>) {
    let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(BLOCKS);
    thread::spawn(move || {
        let mut block = vec![0; BLOCK];
        while let Ok(length @ 1..) = from.read(&mut block) {
            if sender.send((Instant::now(), block[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        let mut free = Instant::now();
        for (read, block) in receiver {
            let due = (read + delay).max(free);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&block).is_err() {
                break;
            }
            free = due + rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(block.len() as f64 / rate));
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[test]
fn a_relay_before_a_delay_is_found_with_each_protocol_and_nothing_without_one() {
    let server = Server::start(Open::Private);
    for (protocol, flows) in [(Protocol::Rmbt, 2), (Protocol::Throughput1, 2), (Protocol::Ndt7, 1)] {
        let signs = |address| {
            let outcome = run(&Plan { flows, ..plan(address, protocol) }).expect("it succeeds");
            assert!(!outcome.reasons().iter().any(|reason| reason.starts_with("whether a proxy")), "{protocol:?}");
            outcome.proxy_signs().expect("round trips are compared")
        };
        let direct = signs(server.address());
        assert!(direct.is_empty(), "{protocol:?}: {direct:?}");
        let found = signs(relay(server.address(), Duration::from_millis(30), None));
        let is_it = |sign: &ProxySign| {
            let ProxySign::Answers { acknowledged, answered } = *sign else { return false };
            acknowledged < Span::from_millis(20) && answered >= Span::from_millis(60)
        };
        assert!(found.iter().any(is_it), "{protocol:?}: {found:?}");
    }
}

#[test]
fn a_relay_before_a_slow_path_is_found_by_what_it_acknowledges_before_the_server_has_it() {
    let server = Server::start(Open::Private);
    let address = relay(server.address(), Duration::ZERO, Some(2e6));
    let plan = Plan {
        loads: vec![vec![Way::Up]],
        flows: 1,
        amount: Amount::Time(Span::from_secs(2)),
        ..plan(address, Protocol::Rmbt)
    };
    let found = run(&plan).expect("it succeeds").proxy_signs().expect("round trips are compared");
    let [ProxySign::Data { ahead, late }] = found[..] else { panic!("{found:?}") };
    assert!(ahead.get() > 1_000_000 && late > Span::from_millis(500), "{found:?}");
}

#[test]
fn without_requests_nothing_tells_whether_there_is_a_proxy_and_this_has_a_reason() {
    let server = Server::start(Open::Private);
    let plan = Plan {
        loads: vec![vec![Way::Up]],
        amount: Amount::Bytes(1_000),
        idle: Span::ZERO,
        probing: Span::from_secs(5),
        ..plan(server.address(), Protocol::Rmbt)
    };
    let outcome = run(&plan).expect("it succeeds");
    assert_eq!(outcome.proxy_signs(), None);
    let reasons = outcome.reasons();
    assert!(reasons.iter().any(|reason| reason.starts_with("whether a proxy on the path answers ")), "{reasons:?}");
}
