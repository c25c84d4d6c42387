//! Round-trip times beside the flows.
//!
//! - ICMP echo to the server, where the system permits it to this user.
//! - Datagrams with a small hop limit, to which each router on the path answers with an ICMP error. No privilege is needed: the
//!   kernel gives the error to the socket that has sent the datagram.
//! - TCP handshakes with the server, which no network treats as probes, and requests by HTTP on these connections.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use netio::errqueue::{self, Entry};
use netio::socket::{bind_device, connect_through};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, recv, send, sendto,
    setsockopt, socket, sockopt,
};
use units::{Span, Time};
use wire::icmp::{self, Echo};

use crate::kinds::{Latency, Probe};
use crate::line::Clock;

/// Time after which a probe counts as lost: longer than any modem's queue.
const LOST: Span = Span::from_secs(10);
/// The least time after which a probe counts as lost that still waits when probing ends.
const LEAST_LOST: Span = Span::from_secs(1);
/// Echo requests that wait for an answer.
const OUTSTANDING: usize = 256;
/// Length of an echo request with its header, as of `ping`.
const LEN: usize = 64;
/// Destination ports of probes with a small hop limit, as of `traceroute`: each probe has its own, by which its answer is known.
const PORTS: std::ops::Range<u16> = 33_434..33_534;
/// Interval between probes to the same router. Linux answers one in a second, and six at once after silence
/// (`inet_peer_xrlim_allow` in net/ipv4/inetpeer.c, `XRLIM_BURST_FACTOR`).
const ROUTERS: Span = Span::from_secs(1);
/// Interval between the first probes to a router, and their number: before a load, each tells how far it is.
const FIRST_ROUTERS: (Span, u32) = (Span::from_millis(400), 5);
/// Interval between handshakes: each one opens a connection at the server.
const HANDSHAKES: Span = Span::from_secs(1);
/// Time for a handshake: it waits in the same queues as other probes.
const HANDSHAKE: Duration = Duration::from_nanos(LOST.as_nanos());

/// A server, and the interface through which it is probed, if one is given.
pub(crate) type Through<'a> = (SocketAddr, Option<&'a str>);

/// Probes a server until `stop`. Returns the round-trip times, and why a kind of probe is missing.
pub(crate) fn run(
    server: Through<'_>,
    (interval, hops): (Span, u8),
    clock: Clock,
    stop: &AtomicBool,
) -> (Vec<Latency>, Vec<String>) {
    let mut reasons = Vec::new();
    let mut echoes = Echoes::open(server).map_err(|why| reasons.push(why)).ok();
    let mut routers: Vec<Router> = (1..=hops).filter_map(|limit| Router::open(server, limit).ok()).collect();
    let mut found = Vec::new();
    let mut due = clock.now();
    while !stop.load(Relaxed) {
        let now = clock.now();
        if now >= due {
            due = now.max(due + interval);
            if let Some(echoes) = &mut echoes {
                echoes.send(now);
            }
            routers.iter_mut().for_each(|router| router.send(now));
        }
        wait(echoes.as_ref(), &routers, due.saturating_since(clock.now()));
        let now = clock.now();
        if let Some(echoes) = &mut echoes {
            echoes.receive(now, &mut found);
        }
        for router in &mut routers {
            router.receive(now, &mut found);
        }
        // The server itself ends the path.
        if let Some(last) = routers.iter().position(|router| router.is_server) {
            routers.truncate(last);
        }
    }
    let (now, mut lost) = (clock.now(), Vec::new());
    if let Some(echoes) = &echoes {
        lost.extend(lost_at_end(Probe::Echo, &echoes.waiting, now, &found));
    }
    for router in &routers {
        lost.extend(lost_at_end(Probe::Hop(router.limit), &router.waiting, now, &found));
    }
    found.extend(lost);
    if hops > 0 && !found.iter().any(|latency| matches!(latency.probe, Probe::Hop(_)) && latency.rtt.is_some()) {
        reasons.push("no router on the path answers probes with a small hop limit".into());
    }
    (found, reasons)
}

/// Returns how long a probe must have waited to count as lost when probing ends: a second, and as long as the slowest answer to its
/// kind took. One that was sent later may still be on its way: it is neither answered nor lost.
pub(crate) fn patience(probe: Probe, found: &[Latency]) -> Span {
    let answered = found.iter().filter(|latency| latency.probe == probe).filter_map(|latency| latency.rtt);
    answered.fold(LEAST_LOST, Span::max)
}

/// Returns the lost ones among the probes of a kind that still wait when probing ends.
fn lost_at_end(probe: Probe, waiting: &[(u16, Time)], now: Time, found: &[Latency]) -> Vec<Latency> {
    let patience = patience(probe, found);
    let sent = waiting.iter().map(|&(_, at)| at);
    let lost = sent.filter(|at| now.saturating_since(*at) >= patience);
    lost.map(|at| Latency { at, probe, rtt: None }).collect()
}

/// Measures TCP handshakes with the server until `stop`. With the name of a `host`, each of these connections asks it for `/` by HTTP:
/// a request ends with the first byte of whatever answer.
pub(crate) fn handshakes(
    (server, interface): Through<'_>,
    host: Option<&str>,
    clock: Clock,
    stop: &AtomicBool,
) -> Vec<Latency> {
    let request = host.map(|host| format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    let mut found = Vec::new();
    while !stop.load(Relaxed) {
        let sent = clock.now();
        let connection = connect_through(server, interface, HANDSHAKE).ok();
        let rtt = connection.as_ref().map(|_| clock.now().saturating_since(sent));
        found.push(Latency { at: sent, probe: Probe::Handshake, rtt });
        if let (Some(mut connection), Some(request)) = (connection, &request) {
            let at = clock.now();
            let rtt = ask(&mut connection, request).ok().map(|()| clock.now().saturating_since(at));
            found.push(Latency { at, probe: Probe::Request, rtt });
        }
        while clock.now().saturating_since(sent) < HANDSHAKES && !stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    found
}

/// Sends a request, and waits for the first byte of its answer.
fn ask(connection: &mut TcpStream, request: &str) -> io::Result<()> {
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(HANDSHAKE))?;
    connection.write_all(request.as_bytes())?;
    connection.read_exact(&mut [0])
}

/// Waits for an answer for at most `span`.
fn wait(echoes: Option<&Echoes>, routers: &[Router], span: Span) {
    let echo = echoes.map(|echoes| PollFd::new(echoes.socket.as_fd(), PollFlags::POLLIN));
    // Errors are always waited for.
    let others = routers.iter().map(|router| PollFd::new(router.socket.as_fd(), PollFlags::empty()));
    let mut all: Vec<PollFd> = echo.into_iter().chain(others).collect();
    let time = Duration::from_nanos(span.as_nanos()).clamp(Duration::from_millis(1), Duration::from_millis(50));
    let _ = poll(&mut all, PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO));
}

/// Echo requests to a server.
struct Echoes {
    socket: OwnedFd,
    v6: bool,
    /// Whether the socket is a raw one, which gets the IPv4 header as well, and the answers to others.
    raw: bool,
    id: u16,
    count: u16,
    waiting: Vec<(u16, Time)>,
}

impl Echoes {
    fn open((mut server, interface): Through<'_>) -> Result<Echoes, String> {
        let v6 = server.is_ipv6();
        let (family, protocol) = match v6 {
            true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
            false => (AddressFamily::Inet, SockProtocol::Icmp),
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let open = |kind| socket(family, kind, flags, protocol);
        let (socket, raw) = match open(SockType::Datagram) {
            Ok(socket) => (socket, false),
            Err(_) => (open(SockType::Raw).map_err(|_| no_echoes())?, true),
        };
        bind_device(&socket, interface).map_err(|why| format!("no ICMP echo: {why}"))?;
        // It keeps the interface of a link-local address.
        server.set_port(0);
        connect(socket.as_raw_fd(), &SockaddrStorage::from(server))
            .map_err(|errno| format!("no ICMP echo: {errno}"))?;
        Ok(Echoes { socket, v6, raw, id: std::process::id() as u16, count: 0, waiting: Vec::new() })
    }

    fn send(&mut self, now: Time) {
        let mut request = [0; LEN];
        let echo = Echo { reply: false, id: self.id, seq: self.count };
        request[..icmp::HEADER_LEN].copy_from_slice(&echo.header(self.v6));
        if self.waiting.len() < OUTSTANDING && send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).is_ok() {
            self.waiting.push((self.count, now));
        }
        self.count = self.count.wrapping_add(1);
    }

    fn receive(&mut self, now: Time, found: &mut Vec<Latency>) {
        let mut buffer = [0; 256];
        loop {
            let packet = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(length) => &buffer[..length],
                Err(Errno::EINTR) => continue,
                Err(_) => break,
            };
            let header =
                if self.raw && !self.v6 { usize::from(packet.first().copied().unwrap_or(0) & 15) * 4 } else { 0 };
            let Some(Ok(echo)) = packet.get(header..).map(|packet| Echo::parse(self.v6, packet)) else { continue };
            // A datagram socket gets the answers to its own requests only, under an identifier that the kernel chose.
            let is_own = echo.reply && (!self.raw || echo.id == self.id);
            let position = self.waiting.iter().position(|&(seq, _)| is_own && seq == echo.seq);
            if let Some(position) = position {
                let (_, at) = self.waiting.remove(position);
                found.push(Latency { at, probe: Probe::Echo, rtt: Some(now.saturating_since(at)) });
            }
        }
        let lost = |&(_, at): &(u16, Time)| now.saturating_since(at) >= LOST;
        found.extend(self.waiting.iter().filter(|one| lost(one)).map(|&(_, at)| Latency {
            at,
            probe: Probe::Echo,
            rtt: None,
        }));
        self.waiting.retain(|one| !lost(one));
    }
}

fn no_echoes() -> String {
    "no ICMP echo: it takes CAP_NET_RAW, or a group in net.ipv4.ping_group_range".into()
}

/// Probes whose hop limit ends at a router.
struct Router {
    socket: OwnedFd,
    server: SocketAddr,
    limit: u8,
    due: Time,
    /// The number of probes so far.
    sent: u32,
    port: u16,
    waiting: Vec<(u16, Time)>,
    /// Whether the server itself has answered.
    is_server: bool,
}

impl Router {
    fn open((server, interface): Through<'_>, limit: u8) -> io::Result<Router> {
        let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Datagram, flags, None)?;
        bind_device(&socket, interface)?;
        match server {
            SocketAddr::V4(_) => {
                setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
                setsockopt(&socket, sockopt::Ipv4Ttl, &i32::from(limit))?;
            }
            SocketAddr::V6(_) => {
                setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
                setsockopt(&socket, sockopt::Ipv6Ttl, &i32::from(limit))?;
            }
        }
        let (due, port, waiting) = (Time::ZERO, PORTS.start, Vec::new());
        Ok(Router { socket, server, limit, due, sent: 0, port, waiting, is_server: false })
    }

    fn send(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        let (first, count) = FIRST_ROUTERS;
        self.sent += 1;
        self.due = now + if self.sent < count { first } else { ROUTERS };
        self.server.set_port(self.port);
        let to = SockaddrStorage::from(self.server);
        // An error of an earlier probe is returned once.
        let sent = (0..2).any(|_| sendto(self.socket.as_raw_fd(), &[0; 32], &to, MsgFlags::empty()).is_ok());
        if sent {
            self.waiting.push((self.port, now));
        }
        self.port = if self.port + 1 < PORTS.end { self.port + 1 } else { PORTS.start };
    }

    fn receive(&mut self, now: Time, found: &mut Vec<Latency>) {
        let probe = Probe::Hop(self.limit);
        while let Ok(Some((entry, _))) = errqueue::take(self.socket.as_fd(), &mut [0; 64]) {
            let Entry::Icmp { hop_limit_exceeded, port, .. } = entry else { continue };
            self.is_server |= !hop_limit_exceeded;
            if let Some(position) = self.waiting.iter().position(|waiting| waiting.0 == port && hop_limit_exceeded) {
                let (_, at) = self.waiting.remove(position);
                found.push(Latency { at, probe, rtt: Some(now.saturating_since(at)) });
            }
        }
        let is_lost = |&(_, at): &(u16, Time)| now.saturating_since(at) >= LOST;
        let lost = self.waiting.iter().filter(|one| is_lost(one));
        found.extend(lost.map(|&(_, at)| Latency { at, probe, rtt: None }));
        self.waiting.retain(|one| !is_lost(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{Backlog, listen};
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::thread;

    /// The handshakes and requests with a server that gives this answer to a request, until it has given two.
    fn probed(answer: &'static str) -> Vec<Latency> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is loopback");
        let server = listener.local_addr().expect("it is bound");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let probes = scope.spawn(|| handshakes((server, None), Some("server.example"), Clock::start(), &stop));
            for _ in 0..2 {
                let (mut client, _) = listener.accept().expect("it connects");
                let mut request = [0; 256];
                let length = client.read(&mut request).expect("it asks");
                assert!(request[..length].starts_with(b"GET / HTTP/1.1\r\nHost: server.example\r\n"));
                client.write_all(answer.as_bytes()).expect("it listens");
            }
            stop.store(true, Relaxed);
            probes.join().expect("it ends")
        })
    }

    #[test]
    fn a_request_ends_with_the_first_byte_of_whatever_answer() {
        let found = probed("HTTP/1.1 404 Not Found\r\n\r\n");
        let answered: Vec<_> = found.iter().map(|latency| (latency.probe, latency.rtt.is_some())).collect();
        assert_eq!(&answered[..4], [(Probe::Handshake, true), (Probe::Request, true)].repeat(2));
    }

    #[test]
    fn a_request_without_an_answer_is_lost() {
        let found = probed("");
        assert_eq!((found[0].rtt.is_some(), found[1].probe, found[1].rtt), (true, Probe::Request, None));
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_probe_that_waits_at_the_end_is_lost_once_it_has_waited_longer_than_any_other() {
        let answered = |probe, ms| Latency { at: at(0), probe, rtt: Some(Span::from_millis(ms)) };
        let lost = |probe, found: &[Latency]| -> Vec<Time> {
            let waiting = [(1, at(1_000)), (2, at(7_500)), (3, at(9_000)), (4, at(9_001))];
            let lost = lost_at_end(probe, &waiting, at(10_000), found);
            assert!(lost.iter().all(|latency| latency.probe == probe && latency.rtt.is_none()));
            lost.iter().map(|latency| latency.at).collect()
        };
        // Nothing takes less than a second to be lost.
        assert_eq!(lost(Probe::Echo, &[]), [1_000, 7_500, 9_000].map(at));
        assert_eq!(lost(Probe::Echo, &[answered(Probe::Echo, 90)]), [1_000, 7_500, 9_000].map(at));
        // Others have waited in a queue of 2.6 s.
        let queue = [answered(Probe::Echo, 2_600), answered(Probe::Echo, 90), answered(Probe::Hop(2), 9_500)];
        assert_eq!(lost(Probe::Echo, &queue), [1_000].map(at));
        assert_eq!(lost(Probe::Hop(2), &queue), [0; 0].map(at));
    }

    #[test]
    fn probes_that_nobody_answers_until_the_end_are_lost() {
        // Who listens to the ports of the first probes does not answer.
        let server = Ipv4Addr::new(127, 0, 0, 93);
        let _silent = [0, 1, 2, 3, 4]
            .map(|number| UdpSocket::bind((server, PORTS.start + number)).expect("nobody else uses this address"));
        let (clock, stop) = (Clock::start(), AtomicBool::new(false));
        let (found, _) = thread::scope(|scope| {
            let probes = scope.spawn(|| run(((server, 1).into(), None), (Span::from_millis(50), 1), clock, &stop));
            thread::sleep(Duration::from_millis(1_500));
            stop.store(true, Relaxed);
            probes.join().expect("it does not panic")
        });
        // Later ones may still be on their way.
        let hops: Vec<&Latency> = found.iter().filter(|latency| latency.probe == Probe::Hop(1)).collect();
        let is_lost = |latency: &&Latency| latency.rtt.is_none() && latency.at < at(500);
        assert!((1..=2).contains(&hops.len()) && hops.iter().all(is_lost), "{hops:?}");
    }

    #[test]
    fn a_handshake_is_not_given_up_before_a_deep_queue_is_empty() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        listen(&listener, Backlog::new(0).expect("a length")).expect("it listens");
        let server = listener.local_addr().expect("it is bound");
        // The first one waits for the program to accept it, and there is no room for another.
        let _first = TcpStream::connect(server).expect("there is room for one");
        let (clock, stop) = (Clock::start(), AtomicBool::new(false));
        let found = thread::scope(|scope| {
            let handshakes = scope.spawn(|| handshakes((server, None), None, clock, &stop));
            thread::sleep(Duration::from_millis(5_500));
            stop.store(true, Relaxed);
            listener.accept().expect("the first one");
            handshakes.join().expect("it does not panic")
        });
        assert!(matches!(found[..], [Latency { rtt: Some(rtt), .. }] if rtt > Span::from_secs(5)), "{found:?}");
    }
}
