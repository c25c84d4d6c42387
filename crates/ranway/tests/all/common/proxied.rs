//! A UE, a router that runs `ranway proxy`, and a server, for the tests of it.

use super::spaces::{Spaces, ip, own_mounts};
use super::text;
use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, listen, sendto, setsockopt, socket,
    sockopt,
};
use nix::unistd::Pid;
use services::proxy::Status;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::ends::Ends as _;
use testkit::root::granted;

pub(crate) const UE: &str = "u";
pub(crate) const ROUTER: &str = "p";
pub(crate) const SERVER: &str = "s";

/// Addresses of the UE and of the server.
pub(crate) const UES: [&str; 2] = ["10.1.0.2", "fd01::2"];
pub(crate) const SERVERS: [&str; 2] = ["10.2.0.2", "fd02::2"];

/// The longest that a connection or a transfer takes here.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// In a row: a UE, a router, a server.
pub(crate) struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

/// A proxy that is killed with the test.
pub(crate) struct Running(pub(crate) Option<Child>);

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.as_ref().expect("it runs").id() as i32)
    }

    pub(crate) fn end(mut self, signal: Signal) {
        kill(self.pid(), signal).expect("it runs");
        self.0.take().expect("it runs").ends();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Net {
    /// Returns `None`, with a message, where namespaces or nftables are not available.
    pub(crate) fn new() -> Option<Net> {
        Net::with(&[])
    }

    /// The same with more hosts, which are joined to nothing yet.
    pub(crate) fn with(more: &[&str]) -> Option<Net> {
        granted(emulate::lab::check())?;
        granted(emulate::uplink::check())?;
        own_mounts(&[]);
        let net = Spaces::new(&[&[UE, ROUTER, SERVER], more].concat());
        net.join((UE, "u0", &["10.1.0.2/24", "fd01::2/64"]), (ROUTER, "ran", &["10.1.0.1/24", "fd01::1/64"]));
        net.join((SERVER, "s0", &["10.2.0.2/24", "fd02::2/64"]), (ROUTER, "wan", &["10.2.0.1/24", "fd02::1/64"]));
        for (host, gateway) in [(UE, ["10.1.0.1", "fd01::1"]), (SERVER, ["10.2.0.1", "fd02::1"])] {
            for gateway in gateway {
                ip(&format!("-n {} route add default via {gateway}", net.space(host)));
            }
        }
        for host in [UE, ROUTER, SERVER] {
            ip(&format!("-n {} link set dev lo up", net.space(host)));
        }
        let net = Net(net);
        net.forwards(ROUTER);
        Some(net)
    }

    /// Makes a host a router.
    pub(crate) fn forwards(&self, host: &str) {
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";
        assert!(self.command(host, "sh").args(["-c", forward]).status().expect("sh").success());
    }

    /// Changes the rules of a host's firewall.
    pub(crate) fn nft(&self, host: &str, rules: &str) {
        let output = self.command(host, "nft").arg(rules).output().expect("nft runs");
        assert!(output.status.success(), "{rules}: {}", text(&output.stderr));
    }

    /// Gives the radio a rate (Mbit/s) and a queue of 300 ms.
    pub(crate) fn limit_radio(&self, mbps: f64) {
        let rate = format!("{mbps}mbit");
        let shape = ["qdisc", "add", "dev", "ran", "root", "tbf", "rate", &rate, "burst", "16kb", "latency", "300ms"];
        assert_eq!(self.on_router("tc", &shape), "");
    }

    /// Starts a proxy, and waits until it gets new connections.
    pub(crate) fn proxy(&self, args: &[&str]) -> Running {
        self.proxy_towards("wan", args)
    }

    /// The same with these interfaces towards the servers.
    pub(crate) fn proxy_towards(&self, wan: &str, args: &[&str]) -> Running {
        let drain = if args.contains(&"--drain") { &[][..] } else { &["--drain", "300 ms"] };
        let args = [&["proxy", "--wan", wan, "--ran", "ran"], drain, args].concat();
        let running = Running(Some(self.start(ROUTER, &args)));
        self.until("it accepts", |status| status.accepting);
        self.await_lease(true);
        running
    }

    /// Waits until the proxy has a lease, and so gets new connections, or has none any more.
    pub(crate) fn await_lease(&self, wanted: bool) {
        let start = Instant::now();
        let has = |rules: &str| {
            let set = rules.split_once("set lease {").and_then(|(_, after)| after.split_once("\n\t}"));
            set.is_some_and(|(set, _)| set.contains("expires"))
        };
        while has(&self.on_router("nft", &["list", "ruleset"])) != wanted {
            assert!(start.elapsed() < TEST_TIMEOUT, "{}", self.on_router("nft", &["list", "ruleset"]));
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs the proxy with these options to its end.
    pub(crate) fn fails(&self, args: &[&str]) -> Output {
        self.command(ROUTER, env!("CARGO_BIN_EXE_ranway")).arg("proxy").args(args).output().expect("it starts")
    }

    pub(crate) fn status(&self) -> Status {
        let said = self.command(ROUTER, env!("CARGO_BIN_EXE_ranway")).args(["proxy", "status", "--json"]).output();
        let said = said.expect("it starts");
        if !said.status.success() {
            return Status::default();
        }
        serde_json::from_slice(&said.stdout).expect("it is JSON")
    }

    /// Waits until the status fulfils a condition.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let start = Instant::now();
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "not in time: {what}: {status:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn on_router(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(ROUTER, program).args(args).output().expect("it starts");
        text(&output.stdout) + &text(&output.stderr)
    }

    /// What a proxy could leave behind on the router.
    pub(crate) fn traces(&self) -> String {
        let rules = ["-4", "-6"].map(|family| self.on_router("ip", &[family, "rule"]));
        let routes = ["-4", "-6"].map(|family| self.on_router("ip", &[family, "route", "show", "table", "all"]));
        let listening = self.on_router("ss", &["-Hltn"]);
        let routes = routes.concat();
        // Addresses of IPv6 get what belongs to them when they have been checked.
        let passing = ["fe80::", "multicast", "anycast"];
        let lasting = routes.lines().filter(|line| !passing.iter().any(|word| line.contains(word)));
        let lasting = lasting.collect::<Vec<_>>().join("\n");
        // Without what a proxy counts and renews.
        let changing = ["packets", "expires"];
        let rules_of_nft = self.on_router("nft", &["list", "ruleset"]);
        let rules_of_nft = rules_of_nft.lines().filter(|line| !changing.iter().any(|word| line.contains(word)));
        let rules_of_nft = rules_of_nft.collect::<Vec<_>>().join("\n");
        format!("{}{lasting}\n{rules_of_nft}{listening}", rules.concat())
    }

    pub(crate) fn is_clean_again(&self, before: &str) {
        let start = Instant::now();
        while self.traces() != before {
            assert!(start.elapsed() < Duration::from_secs(3), "{}\nbefore: {before}", self.traces());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn listen(&self, host: &str, address: &str) -> TcpListener {
        let address: IpAddr = address.parse().expect("an address");
        let listener = self.inside(host, || TcpListener::bind((address, 0)).expect("a free port"));
        // Many connect at once. What does not fit in the default backlog of 128, a SYN cookie may lose without a word.
        listen(&listener, Backlog::new(4096).expect("it is in range")).expect("it is bound");
        listener
    }

    pub(crate) fn connect(&self, host: &str, to: SocketAddr) -> TcpStream {
        let stream = self.inside(host, || TcpStream::connect_timeout(&to, TEST_TIMEOUT).expect("it is accepted"));
        patient(stream)
    }

    /// How a connection of the UE ends that the proxy accepts and the server does not.
    pub(crate) fn fate(&self, to: SocketAddr) -> Option<ErrorKind> {
        match self.inside(UE, || TcpStream::connect_timeout(&to, TEST_TIMEOUT)) {
            Ok(stream) => ending(&mut patient(stream)),
            Err(error) => {
                println!("{error:?}");
                Some(error.kind())
            }
        }
    }

    /// Acts at the UE. Answers to what it forges come back to the UE, whose kernel drops them: the addresses are not its own.
    pub(crate) fn forge(&self, to: SocketAddr, act: impl FnOnce(&Forger) + Send) {
        ip(&format!("-n {} route replace 10.66.0.0/16 via 10.1.0.2", self.space(ROUTER)));
        self.forge_at(UE, to, act);
    }

    /// The same at any host, from addresses of that side.
    pub(crate) fn forge_at(&self, host: &str, to: SocketAddr, act: impl FnOnce(&Forger) + Send) {
        let SocketAddr::V4(to) = to else { panic!("IPv4 alone") };
        self.inside(host, || {
            let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw);
            act(&Forger { socket: socket.expect("root may"), to });
        });
    }

    /// A connection from the UE to the server.
    pub(crate) fn pair(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = self.connect(UE, listener.local_addr().expect("an address"));
        (client, accept(listener))
    }
}

/// Sends segments that no kernel vouches for, mostly from addresses that begin with 10.66.
pub(crate) struct Forger {
    socket: OwnedFd,
    to: SocketAddrV4,
}

impl Forger {
    /// Begins to write a segment from a port 40,000.
    pub(crate) fn segment(&self, source: [u8; 4], sequence: u32) -> PacketBuilderStep<TcpHeader> {
        self.segment_from(SocketAddrV4::new(source.into(), 40_000), sequence)
    }

    /// Begins to write a segment from any address and port.
    pub(crate) fn segment_from(&self, source: SocketAddrV4, sequence: u32) -> PacketBuilderStep<TcpHeader> {
        PacketBuilder::ipv4(source.ip().octets(), self.to.ip().octets(), 64).tcp(
            source.port(),
            self.to.port(),
            sequence,
            64_000,
        )
    }

    pub(crate) fn send(&self, segment: PacketBuilderStep<TcpHeader>, payload: &[u8]) {
        let mut bytes = Vec::new();
        segment.write(&mut bytes, payload).expect("it fits");
        self.put(&bytes);
    }

    /// Sends a segment in a packet with options of IP. The kernel completes its length and checksum.
    pub(crate) fn send_with(&self, options: &[u8], segment: PacketBuilderStep<TcpHeader>) {
        const HEADER: usize = 20;
        let mut bytes = Vec::new();
        segment.write(&mut bytes, &[]).expect("it fits");
        bytes.splice(HEADER..HEADER, options.iter().copied());
        // Its version and its length in words.
        bytes[0] = 0x40 | ((HEADER + options.len()) / 4) as u8;
        self.put(&bytes);
    }

    fn put(&self, packet: &[u8]) {
        let _ = sendto(self.socket.as_raw_fd(), packet, &SockaddrIn::from(self.to), MsgFlags::empty());
    }
}

pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let start = Instant::now();
    listener.set_nonblocking(true).expect("it is a socket");
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).expect("it is a socket");
                return patient(stream);
            }
            Err(error) => assert!(error.kind() == ErrorKind::WouldBlock && start.elapsed() < TEST_TIMEOUT, "{error}"),
        }
        thread::sleep(Duration::from_micros(200));
    }
}

pub(crate) fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a time");
    stream.set_write_timeout(Some(TEST_TIMEOUT)).expect("a time");
    stream
}

/// Checks that a few bytes pass both ways.
pub(crate) fn exchange(one: &mut TcpStream, other: &mut TcpStream) {
    for _ in 0..2 {
        one.write_all(b"question").expect("it is open");
        let mut bytes = [0; 8];
        other.read_exact(&mut bytes).expect("they arrive");
        assert_eq!(&bytes, b"question");
        other.write_all(b"answers!").expect("it is open");
        one.read_exact(&mut bytes).expect("they arrive");
        assert_eq!(&bytes, b"answers!");
    }
}

/// A cell that has `mbps` for the UE alone, reported each 5 ms until it is dropped. It reports its blocks as unused: it does not
/// see the traffic.
pub(crate) struct Cell {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Cell {
    /// Writes reports to the socket at `path`.
    pub(crate) fn start(path: &str, mbps: f64) -> Cell {
        Cell::ahead(path, mbps, Duration::ZERO)
    }

    /// The same with a clock that is ahead.
    pub(crate) fn ahead(path: &str, mbps: f64, ahead: Duration) -> Cell {
        let (stop, path) = (Arc::new(AtomicBool::new(false)), path.to_owned());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut socket = UnixStream::connect(&path).expect("the proxy has made it");
            while !stopped.load(Relaxed) {
                let now = (SystemTime::now() + ahead).duration_since(UNIX_EPOCH).expect("it is later").as_micros();
                let line = format!(
                    concat!(
                        r#"{{"time_us":{},"interval_us":5000,"cell":1,"rnti":61,"address":"{}","second_address":"{}","n_prb":100,"slots":5,"#,
                        r#""cell_prbs":0,"active_ues":0,"prbs":0,"acked_bits":0,"blocks":0,"failed":0,"bits_per_prb":{}}}"#
                    ),
                    now,
                    UES[0],
                    UES[1],
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

/// Reads to the end, and checks each byte by its place. Calls `after` with the number of bytes after each read. Returns how many
/// there were.
pub(crate) fn read_whole(stream: &mut TcpStream, expected: impl Fn(u64) -> u8, after: impl Fn(u64)) -> u64 {
    let (mut read, mut buffer) = (0, vec![0; 50_000]);
    while let count @ 1.. = stream.read(&mut buffer).expect("no reset") {
        for &found in &buffer[..count] {
            assert_eq!(found, expected(read), "at {read}");
            read += 1;
        }
        after(read);
    }
    read
}

/// Ends a connection with a reset.
pub(crate) fn reset(stream: TcpStream) {
    setsockopt(&stream, sockopt::Linger, &libc_linger()).expect("it can be set");
    drop(stream);
}

pub(crate) fn libc_linger() -> nix::libc::linger {
    nix::libc::linger { l_onoff: 1, l_linger: 0 }
}

/// Returns how reading ends: with an end (`None`) or an error.
pub(crate) fn ending(stream: &mut TcpStream) -> Option<ErrorKind> {
    let mut buffer = [0; 1 << 12];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(error.kind()),
        }
    }
}

/// The byte at a position of a stream.
pub(crate) fn byte(position: u64, salt: u64) -> u8 {
    ((position + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0x1234_5678_9abc_def1)) >> 56)
        as u8
}

/// Random numbers of a test, by its seed (xorshift64*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}
