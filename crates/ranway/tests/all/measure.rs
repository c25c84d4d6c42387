//! `ranway measure serve` as its operator meets it, and under attack.

#[path = "../../../services/tests/measure_client/mod.rs"]
mod measure_client;

use measure_client::{Conn, How, attempt, attempt_over, connect, exchange, token};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use speedtest::rmbt::chunks::End;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::root::granted;

/// The connections of an attack.
const ATTACKERS: u32 = 5_000;
/// The kinds of attackers, and the one that sends a complete `ClientHello` and then nothing.
const KINDS: u32 = 7;
const HELLO: u32 = 6;
/// The first byte of a record of TLS with a part of the handshake.
const HANDSHAKE: u8 = 0x16;

fn ranway() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ranway"))
}

/// A running server. It does not outlive the test, however that ends.
struct Server {
    child: Child,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    /// What it says after its first line.
    said: Option<JoinHandle<Vec<String>>>,
}

impl Server {
    fn start(args: &[&str]) -> Server {
        let mut command = ranway();
        command.args(["measure", "serve", "--listen", "127.0.0.1:0"]).args(args);
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = lines.next().expect("it says where it serves").expect("it is text");
        let rest = line.strip_prefix("serving at ").unwrap_or_else(|| panic!("{line}"));
        let address = rest.split([',', ';']).next().and_then(|text| text.parse().ok()).expect("an address");
        let metrics = rest.split_once("http://").and_then(|(_, text)| text.split(';').next()?.parse().ok());
        // What follows is read, so the command never waits for a full pipe.
        let said = Some(std::thread::spawn(move || lines.map_while(Result::ok).collect()));
        Server { child, address, metrics, said }
    }

    fn all_metrics(&self) -> String {
        let address = self.metrics.expect("it has metrics");
        exchange(&mut connect(address), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").2
    }

    fn metric(&self, name: &str) -> u64 {
        let text = self.all_metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse().expect("a number")
    }

    /// Waits until a metric is `value`: the server counts a connection's end after the client has seen it.
    fn counts(&self, name: &str, value: u64) {
        let start = Instant::now();
        while self.metric(name) != value {
            assert!(start.elapsed() < Duration::from_secs(10), "{name} is {} and not {value}", self.metric(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Resident memory in MiB, now and at most.
    fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux says so");
            line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") / 1024
        };
        (value("VmRSS:"), value("VmHWM:"))
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("it runs");
    }

    /// Ends the server in order. Returns what it has said since its first line.
    fn stop(mut self) -> Vec<String> {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.child.ends().code(), Some(0));
        self.said.take().expect("it is read once").join().expect("it does not panic")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects from an address of the loopback network. A connection that is refused may be reset before this returns.
fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
    let made = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    let IpAddr::V4(address) = to.ip() else { panic!("the server has an IPv4 address") };
    bind(made.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(from, 0))).expect("an address of this host");
    let address = SockaddrIn::from(std::net::SocketAddrV4::new(address, to.port()));
    let connected = connect(made.as_raw_fd(), &address);
    assert!(matches!(connected, Ok(()) | Err(nix::Error::ECONNRESET)), "{connected:?}");
    let stream = TcpStream::from(made);
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream
}

/// The address of an attacker: one of its own, or the same for all.
fn attacker(number: u32, own: bool) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + if own { number } else { 0 })
}

/// Allows this process all the files that the system allows, and returns how many; nothing if the attack needs more.
fn allow_files() -> Option<u64> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("Linux says so");
    let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    let enough = most > u64::from(ATTACKERS) + 200;
    granted(if enough { Ok(most) } else { Err(format!("the system allows {most} open files only")) })
}

/// The settings of a client that trusts these authorities.
fn trusting(roots: RootCertStore) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A client's side of TLS with `localhost`.
fn session(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = "localhost".try_into().expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a session")
}

/// The bytes of a complete `ClientHello`. The server answers them with its certificate and a signature.
fn hello() -> Vec<u8> {
    let mut hello: Vec<u8> = Vec::new();
    session(&trusting(RootCertStore::empty())).write_tls(&mut hello).expect("a vector takes it");
    hello
}

/// A certificate for `localhost`, which is its own authority, and clients that trust it.
struct Certificate {
    directory: tempfile::TempDir,
    config: Arc<ClientConfig>,
}

impl Certificate {
    fn new() -> Certificate {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        fs::write(directory.path().join("certificate"), made.cert.pem()).expect("there is room");
        fs::write(directory.path().join("key"), made.signing_key.serialize_pem()).expect("there is room");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        Certificate { directory, config: trusting(roots) }
    }

    /// Starts a server with this certificate and a control server.
    fn server(&self, args: &[&str]) -> Server {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let (certificate, key) = (path("certificate"), path("key"));
        let tls = ["--control", "--metrics", "127.0.0.1:0", "--tls", certificate.as_str(), key.as_str()];
        Server::start(&[&tls[..], args].concat())
    }

    /// Begins TLS on a connection.
    fn secure(&self, stream: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        StreamOwned::new(session(&self.config), stream)
    }
}

/// Whether a client got through. One that had to make room for others may try again.
fn is_served<S: Read + Write>(attempt: Result<Conn<S>, String>) -> bool {
    let Ok(mut conn) = attempt else { return false };
    assert_eq!(conn.get_chunks(10, 4_096).expect("it is served").bytes, 40_960);
    true
}

/// Attacks with connections that are silent, slow, or send garbage.
fn attack(server: &Server, own: bool) -> Vec<TcpStream> {
    let (mut streams, hello) = (Vec::new(), hello());
    for number in 0..ATTACKERS {
        let stream = connect_from(attacker(number, own), server.address);
        stream.set_nonblocking(true).expect("a socket");
        let words: &[u8] = match number % KINDS {
            0 => b"",
            1 => b"GET /rmbt HTTP/1.1\r\nHost: ",
            2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a hello that is none",
            3 => &[b'x'; 3_000],
            4 => b"POST /RMBTControlServer/result HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n{",
            HELLO => &hello,
            _ => b"TOKEN 8723358c-2037-4029-a70c-91e5d9d35cf3_1700000000_Q+55pZ/JOQgjMe49FlelxsfCxqA=\nGETTIME 30 4194304\n",
        };
        let _ = (&stream).write(words);
        streams.push(stream);
    }
    streams
}

/// Goes on with an attack: one more byte on each connection, but for those that have said all of their hello.
fn drip(streams: &[TcpStream]) {
    for (number, mut stream) in (0..).zip(streams) {
        if number % KINDS != HELLO {
            let _ = stream.write(b"x");
        }
    }
}

#[test]
fn what_cannot_work_is_one_line_and_exit_code_2() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str, content: &str, mode: u32| {
        let path = directory.path().join(name);
        fs::write(&path, content).expect("there is room");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path.display().to_string()
    };
    let (public, empty) = (path("public", "0123456789abcdef\n", 0o644), path("empty", "\n", 0o600));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let busy = taken.local_addr().expect("it is bound").to_string();
    for (args, message) in [
        (vec![], "error: tokens cannot be checked: give --key FILE, or --control, or --open for a laboratory"),
        (vec!["--open", "--tls-only"], "error: --tls-only needs --tls or --self-signed"),
        (vec!["--key", "/nonexistent"], "error: key file /nonexistent: No such file"),
        (vec!["--key", &public], &format!("error: key file {public}: accessible to others than its owner (mode 0644)")),
        (vec!["--key", &empty], &format!("error: key file {empty}: it has no key")),
        (vec!["--open", "--tls", "/nonexistent", "/nonexistent"], "error: certificate /nonexistent: No such file"),
        (vec!["--open", "--tls", "/dev/zero", "/dev/zero"], "error: certificate /dev/zero: not a regular file"),
        (vec!["--open", "--tls", &public, &public], &format!("error: certificate {public}: expected a certificate")),
        (
            vec!["--open", "--results", "/dev/null/results"],
            "error: results directory /dev/null/results: Not a directory",
        ),
        (vec!["--open", "--metrics", "0.0.0.0:0"], "error: metrics at 0.0.0.0:0 can be read by others"),
        (vec!["--open", "--idle", "0 s"], "error: --idle must be greater than 0, and at most 1 h"),
        (vec!["--open", "--max-bytes", "0 B"], "error: --max-bytes must be greater than 0"),
        (vec!["--open", "--listen", &busy], &format!("error: cannot listen on {busy}: Address already in use")),
    ] {
        let output = ranway().args(["measure", "serve"]).args(&args).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{args:?}: {text}");
        assert!(text.starts_with(message) && text.lines().count() == 1, "{args:?}: {text}");
    }
    for args in
        [["--listen", "localhost"], ["--open", "all"], ["--max-seconds", "0"], ["--tls", "one"], ["--name", "x"]]
    {
        let output = ranway().args(["measure", "serve"]).args(args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn the_end_of_the_server_waits_for_running_tests() {
    let server = Server::start(&["--control"]);
    let mut conn = Conn::open(connect(server.address), How::Upgrade, &token(server.address)).expect("a valid token");
    let test = std::thread::spawn(move || (conn.get_time(2, 65_536).expect("it goes on"), conn.quit()));
    std::thread::sleep(Duration::from_millis(500));
    let address = server.address;
    server.stop();
    assert!(test.join().expect("it does not panic").1.is_ok());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn neither_messages_nor_metrics_have_an_address_of_a_client() {
    let server = Server::start(&["--control", "--self-signed", "--metrics", "127.0.0.1:0"]);
    let client = Ipv4Addr::new(127, 7, 9, 77);
    let open = |token: &str| Conn::open(connect_from(client, server.address), How::Upgrade, token);
    let mut conn = open(&token(server.address)).expect("a valid token");
    conn.put(End::After(units::Span::from_millis(1_500)), 1 << 16, true).expect("an upload");
    conn.get_time(1, 1 << 16).expect("a download");
    conn.quit().expect("it says good-bye");
    // What a server might complain about: a forged token, TLS that is none, and a client that vanishes in a transfer.
    assert!(open("forged").is_err());
    let _ = connect_from(client, server.address).write_all(b"\x16\x03\x01\x00\x05hello");
    let _ =
        connect_from(client, server.address).write_all(format!("TOKEN {}\nPUT\nxxx", token(server.address)).as_bytes());
    server.counts("ranway_measure_open", 0);
    let metrics = server.all_metrics();
    let said = server.stop();
    assert_eq!(said.iter().filter(|line| line.contains("127.7.9.0/24: rmbt ")).count(), 2, "{said:?}");
    for text in said.iter().chain([&metrics]) {
        assert!(!text.contains("127.7.9.77"), "{text}");
    }
}

#[test]
fn a_hangup_reads_the_keys_again_and_tests_go_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let keys = directory.path().join("keys");
    fs::write(&keys, "0123456789abcdef\n").expect("there is room");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let server = Server::start(&["--control", "--key", keys.to_str().expect("text")]);
    let old = token(server.address);
    let mut conn = Conn::open(connect(server.address), How::Greeting, &old).expect("a valid token");
    fs::write(&keys, "fedcba9876543210\n").expect("there is room");
    server.signal(Signal::SIGHUP);
    let start = Instant::now();
    while Conn::open(connect(server.address), How::Upgrade, &old).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(10), "the old key is still valid");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Conn::open(connect(server.address), How::Upgrade, &token(server.address)).is_ok());
    assert_eq!(conn.get_chunks(1, 4_096).expect("it goes on").bytes, 4_096);
    drop(conn);
    server.stop();
}

#[test]
fn five_thousand_addresses_take_neither_memory_nor_the_tests_of_others() {
    if allow_files().is_none() {
        return;
    }
    let certificate = Certificate::new();
    let server = certificate.server(&["--max-connections", "2000"]);
    let (before, _) = server.memory();
    let running = token(server.address);
    let mut early = Conn::open(connect(server.address), How::Upgrade, &running).expect("a valid token");
    let streams = attack(&server, true);
    // A test that runs, and one that starts now, both get through; so does one over TLS.
    let test = std::thread::spawn(move || (early.get_time(3, 1 << 16), early.put(End::Chunks(100), 1 << 16, true)));
    let start = Instant::now();
    let (mut late, mut secure, mut again) = (0_u32, 0, 0);
    // A busy machine needs longer.
    while start.elapsed() < Duration::from_secs(3)
        || (late.min(secure) < 3 && start.elapsed() < Duration::from_secs(15))
    {
        drip(&streams);
        let plain = is_served(attempt(server.address));
        let tls = is_served(attempt_over(server.address, |stream| certificate.secure(stream)));
        (late, secure) = (late + u32::from(plain), secure + u32::from(tls));
        again += u32::from(!plain) + u32::from(!tls);
        std::thread::sleep(Duration::from_millis(200));
    }
    let (download, upload) = test.join().expect("it does not panic");
    assert!(download.expect("it goes on").bytes > 100 << 20, "the attack takes the test's throughput");
    assert_eq!(upload.expect("it goes on").bytes, 100 << 16);
    assert!(late.min(secure) >= 3 && again <= 2 * (late + secure), "{late} {secure} {again}");
    let (open, waiting) = (server.metric("ranway_measure_open"), server.metric("ranway_measure_waiting"));
    assert!(open <= 2_000 && waiting <= 500, "{open} {waiting}");
    let gone = server.metric("ranway_measure_evicted_total") + server.metric("ranway_measure_faults_total");
    assert!(gone > 1_000, "{gone}");
    let (after, most) = server.memory();
    println!(
        "resident: {before} MiB before, {after} MiB after, {most} MiB at most; {late} tests during the attack, {secure} over TLS, \
         {again} attempts"
    );
    assert!(most < 96, "{most} MiB");
    drop(streams);
    server.stop();
}

#[test]
fn thousands_of_half_open_handshakes_have_bounded_memory_and_let_others_through() {
    let Some(files) = allow_files() else { return };
    // A quarter of the connections may be without a token: all of these at once.
    let count = u32::try_from((files - 100) / 4).map_or(ATTACKERS, |most| most.min(ATTACKERS));
    let certificate = Certificate::new();
    let server = certificate.server(&["--max-connections", &(4 * count).to_string()]);
    let (before, _) = server.memory();
    let (start, hello) = (Instant::now(), hello());
    let mut streams: Vec<TcpStream> = (0..count)
        .map(|number| {
            let mut stream = connect_from(attacker(number, true), server.address);
            let _ = stream.write_all(&hello);
            stream
        })
        .collect();
    let answers = |stream: &mut TcpStream| {
        let mut first = [0];
        stream.read_exact(&mut first).is_ok() && first[0] == HANDSHAKE
    };
    let answered = streams.iter_mut().map(answers).filter(|&answered| answered).count();
    assert!(answered > count as usize * 9 / 10, "{answered} of {count}");
    let waiting = server.metric("ranway_measure_waiting");
    // The first have ended where a machine takes longer than their time to open all.
    let all = start.elapsed() < Duration::from_secs(9);
    assert!(!all || waiting * 10 > u64::from(count) * 9, "{waiting} of {count}");
    let begin = Instant::now();
    let (mut late, mut secure) = (false, false);
    while !(late && secure) {
        late = late || is_served(attempt(server.address));
        secure = secure || is_served(attempt_over(server.address, |stream| certificate.secure(stream)));
        assert!(begin.elapsed() < Duration::from_secs(15), "no client gets through: {late} {secure}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let (after, most) = server.memory();
    println!(
        "resident: {before} MiB before, {after} MiB after, {most} MiB at most, with {waiting} half-open handshakes"
    );
    assert!(most < 192, "{most} MiB");
    drop(streams);
    server.stop();
}

#[test]
fn one_address_gets_its_share_and_no_more() {
    if allow_files().is_none() {
        return;
    }
    let server = Server::start(&["--control", "--metrics", "127.0.0.1:0"]);
    let streams = attack(&server, false);
    let open = server.metric("ranway_measure_open");
    assert!(open <= 256 + 16, "{open}");
    let refused = server.metric("ranway_measure_refused_total{limit=\"connections_of_address\"}");
    assert!(refused > 3_000, "{refused}");
    let mut conn = Conn::open(connect(server.address), How::Greeting, &token(server.address)).expect("there is room");
    assert_eq!(conn.get_chunks(10, 4_096).expect("it is served").bytes, 40_960);
    drop((streams, conn));
    server.stop();
}

#[test]
fn slow_connections_end_after_ten_seconds() {
    let server = Server::start(&["--control", "--self-signed", "--metrics", "127.0.0.1:0"]);
    let (start, address) = (Instant::now(), server.address);
    let slow = |words: &'static [u8]| {
        std::thread::spawn(move || {
            let mut stream = connect(address);
            for byte in words.iter().chain(std::iter::repeat(&b'x')) {
                if stream.write_all(&[*byte]).is_err() {
                    return start.elapsed();
                }
                std::thread::sleep(Duration::from_millis(100));
                assert!(start.elapsed() < Duration::from_secs(20), "it is still open: {words:?}");
            }
            unreachable!("the bytes never end")
        })
    };
    let half_open = std::thread::spawn(move || {
        let mut stream = connect(address);
        stream.write_all(&hello()).expect("it takes it");
        let _ = stream.read_to_end(&mut Vec::new());
        start.elapsed()
    });
    let threads =
        [slow(b"GET / HTTP/1.1\r\nX: "), slow(b"TOKEN "), slow(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")];
    for thread in threads.into_iter().chain([half_open]) {
        let took = thread.join().expect("it was closed in time");
        assert!((9.0..13.0).contains(&took.as_secs_f64()), "{took:?}");
    }
    server.counts("ranway_measure_open", 0);
    server.stop();
}

#[test]
fn tls_faults_end_their_connection_alone() {
    let certificate = Certificate::new();
    let server = certificate.server(&["--tls-only"]);
    let mut other = attempt_over(server.address, |stream| certificate.secure(stream)).expect("there is room");
    let mut plain = connect(server.address);
    plain.write_all(b"GET /rmbt HTTP/1.1\r\n\r\n").expect("it takes it");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert_eq!(answer, b"", "without TLS there is no answer");
    for words in [&b"\x16\x03\x01\x00\x05hello"[..], b"\x16\x03\x01\xff\xff\xff\xff", b"\x16\x02\x00\x00\x01\x00"] {
        let mut stream = connect(server.address);
        stream.write_all(words).expect("it takes it");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 64, "an alert at most: {answer:?}");
    }
    server.counts("ranway_measure_tls_failures_total", 3);
    // After a handshake that succeeds.
    for (words, alert) in [
        (&b"\x17\x03\x03\x00\x18a record that is not one"[..], "BadRecordMac"),
        (b"\x17\x03\x03\xff\xffa record that is too long", "DecodeError"),
        (b"no record at all", "DecodeError"),
    ] {
        let mut bad = certificate.secure(connect(server.address));
        // The greeting tells that the handshake is over at the server as well.
        bad.read_exact(&mut [0; 10]).expect("a greeting");
        bad.sock.write_all(words).expect("it takes it");
        let why = bad.read_to_end(&mut Vec::new()).expect_err("the server refuses it").to_string();
        assert_eq!(why, format!("received fatal alert: {alert}"));
        assert_eq!(bad.sock.read(&mut [0]).expect("it is closed in order"), 0);
    }
    server.counts("ranway_measure_faults_total", 3);
    assert_eq!(server.metric("ranway_measure_tls_failures_total"), 3);
    assert_eq!(other.get_chunks(10, 4_096).expect("it goes on").bytes, 40_960);
    drop(other);
    server.stop();
}

#[test]
fn the_help_explains_tokens_and_examples() {
    let output = ranway().args(["measure", "serve", "--help"]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["access_token", "--open", "rmbt-client -h", "SIGHUP", "throughput1"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
