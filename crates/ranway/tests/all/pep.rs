//! Tests of a live PEP with individual frames: which segments it processes, which it answers, and how it ends. Tests
//! that need root report when they are skipped.

use crate::common::spaces::{Spaces, ip, own_mounts};
use crate::common::text;
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice, VlanId};
use netio::attach::{self, LONGEST, Wire};
use netio::reservation::{Reservation, Role};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::unistd::close;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, IoSliceMut, Read};
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::root::granted;
use wire::Timestamps;
use wire::report::{Key, Message, Report, announcement};

const ROUTER: &str = "r";
const OUTSIDE: &str = "o";

/// A router with two interfaces, and the other ends of both.
struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl Net {
    /// Returns `None`, with a message, where it is not available.
    fn new() -> Option<Net> {
        granted(emulate::lab::check())?;
        granted(ebpf::pep::check())?;
        own_mounts(&[]);
        let net = Net(Spaces::new(&[ROUTER, OUTSIDE]));
        net.join((ROUTER, "wan", &[]), (OUTSIDE, "wan-end", &[]));
        net.join((ROUTER, "ran", &[]), (OUTSIDE, "ran-end", &[]));
        Some(net)
    }

    fn ranway(&self, args: &[&str]) -> Command {
        let mut command = self.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
        command.args(args);
        command
    }

    /// Starts a PEP between both interfaces.
    fn start_pep(&self, options: &[&str]) -> Child {
        self.start(ROUTER, &[&["pep", "--wan", "wan", "--ran", "ran"], options].concat())
    }
}

/// Waits a few seconds for a process to end; returns its exit code if it did.
fn ended(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(50));
    }
    None
}

#[test]
fn root_an_interface_has_at_most_one_pep_and_one_program_that_takes_packets() {
    let Some(net) = Net::new() else { return };
    let mut pep = net.start_pep(&[]);
    // `ip netns exec` becomes the command.
    let taken =
        |interface: &str, pid: u32, does: &str| format!("error: `{interface}` is in use: process {pid} {does}\n");
    let runs = "already runs a PEP on it; --take-over replaces that";
    let refused = |output: Output, expected: &str| {
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), expected));
    };
    for (wan, ran, first) in [("wan", "ran", "wan"), ("ran", "wan", "ran"), ("lo", "ran", "ran")] {
        let second = net.ranway(&["pep", "--wan", wan, "--ran", ran]).output().expect("it runs");
        refused(second, &taken(first, pep.id(), runs));
    }
    // A different role does not conflict: a PEP only observes.
    let mut backlog = net.start(ROUTER, &["backlog", "--modem", "wan"]);
    let handles = "already handles its packets";
    let second = net.ranway(&["backlog", "--modem", "wan"]).output().expect("it runs");
    refused(second, &taken("wan", backlog.id(), handles));
    fs::write(net.dir.path().join("way.toml"), WAY).expect("it is written");
    let attach = ["emulate", "way.toml", "--attach", "wan", "ran"];
    refused(net.ranway(&attach).output().expect("it runs"), &taken("wan", backlog.id(), handles));
    // A killed process holds no reservation.
    for child in [&mut pep, &mut backlog] {
        child.kill().expect("it is ours");
        child.ends();
    }
    let mut again = net.start_pep(&[]);
    again.kill().expect("it is ours");
    again.ends();
}

const WAY: &str = "duration = \"600 s\"\n[[links]]\nname = \"way\"\nfrom = \"server\"\nto = \"phone\"\nduplex = true\n\
                   rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n";

#[test]
fn root_a_pep_beside_a_proxy_says_what_will_not_work() {
    let Some(net) = Net::new() else { return };
    let mut pep = net.ranway(&["pep", "--wan", "wan", "--ran", "ran", "--quiet"]);
    let mut pep = pep.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut stderr = BufReader::new(pep.stderr.take().expect("it is piped"));
    // What a proxy holds for as long as it runs.
    let reserve = || Reservation::new(Role::Proxy, "ran").expect("nobody has it");
    let proxy = net.inside(ROUTER, reserve);
    let mut said = String::new();
    stderr.read_line(&mut said).expect("it speaks");
    // It has no rights any more by which it could learn which process that is.
    assert!(
        said.starts_with("warning: another process proxies the connections of `ran`: ")
            && said.contains("no server gets reports on them"),
        "{said}"
    );
    drop(proxy);
    pep.kill().expect("it is ours");
    pep.ends();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("it has ended");
    assert_eq!(rest, "", "once is enough");
}

/// A service manager that keeps descriptors, as `sd_notify(3)` describes it.
struct Manager {
    socket: UnixDatagram,
    kept: BTreeMap<String, RawFd>,
    /// Have the numbers at which the next PEP is to find what is kept.
    _low: Vec<fs::File>,
}

impl Manager {
    fn new(net: &Net) -> Manager {
        let socket = UnixDatagram::bind(net.dir.path().join("notify")).expect("a name of its own");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        let low = (0..40).map(|_| fs::File::open("/dev/null").expect("it is there")).collect();
        Manager { socket, kept: BTreeMap::new(), _low: low }
    }

    /// Starts a PEP with what is kept, and waits until it is ready.
    fn start(&mut self, net: &Net) -> Child {
        let (names, kept): (Vec<&str>, Vec<RawFd>) = self.kept.iter().map(|(name, fd)| (name.as_str(), *fd)).unzip();
        let moves: String = (3..).zip(&kept).map(|(to, from)| format!(" {to}<&{from}")).collect();
        let script = format!("exec {moves}; export LISTEN_PID=$$ LISTEN_FDS={}; exec \"$@\"", kept.len());
        let mut command = Command::new("bash");
        command.args(["-c", &script, "bash", "ip", "netns", "exec", &net.space(ROUTER), env!("CARGO_BIN_EXE_ranway")]);
        command.args(["pep", "--wan", "wan", "--ran", "ran", "--quiet"]);
        command.env("NOTIFY_SOCKET", net.dir.path().join("notify")).env("LISTEN_FDNAMES", names.join(":"));
        let child = command.spawn().expect("it starts");
        while self.hear() != "READY=1" {}
        child
    }

    fn hear(&mut self) -> String {
        let (mut bytes, mut space) = ([0; 512], nix::cmsg_space!([RawFd; 1]));
        let mut content = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::empty();
        let message = recvmsg::<()>(self.socket.as_raw_fd(), &mut content, Some(&mut space), flags).expect("a message");
        let passed = message.cmsgs().expect("they are whole").find_map(|passed| match passed {
            ControlMessageOwned::ScmRights(passed) => passed.first().copied(),
            _ => None,
        });
        let len = message.bytes;
        let said = text(&bytes[..len]);
        if let Some(name) = said.strip_prefix("FDSTORE=1\nFDNAME=").and_then(|rest| rest.strip_suffix("\nFDPOLL=0")) {
            self.kept.insert(name.to_owned(), passed.expect("a descriptor"));
        } else if let Some(name) = said.strip_prefix("FDSTOREREMOVE=1\nFDNAME=") {
            close(self.kept.remove(name).expect("it is kept")).expect("it is ours");
        }
        said
    }
}

#[test]
fn root_a_service_manager_restarts_a_pep_without_a_gap() {
    let Some(net) = Net::new() else { return };
    let (ends, mut manager) = (Ends::new(&net), Manager::new(&net));
    let reports = |n: u32| {
        ends.send(&Sent { flags: PSH, ..Sent::data(n) });
        ends.come().len()
    };
    let mut pep = manager.start(&net);
    assert_eq!(manager.kept.len(), 11, "{:?}", manager.kept);
    ends.begin(None);
    assert_eq!(reports(0), 1);
    pep.kill().expect("it is ours");
    pep.ends();
    assert_eq!(reports(1), 1, "nothing runs, and the programs do");
    let mut pep = manager.start(&net);
    assert_eq!(reports(2), 1, "the flow is remembered");
    pep.kill().expect("it is ours");
    pep.ends();
    // State of another version is not understood: programs replace the others, and find flows again.
    let names: Vec<String> = manager.kept.keys().filter(|name| name.starts_with("map-")).cloned().collect();
    for name in names {
        let fd = manager.kept.remove(&name).expect("it is there");
        let (name, _) = name.rsplit_once('-').expect("a number");
        manager.kept.insert(format!("{name}-0123456789abcdef"), fd);
    }
    let mut pep = manager.start(&net);
    assert_eq!(reports(3), 0);
    ends.begin(None);
    assert_eq!(reports(0), 1);
    pep.kill().expect("it is ours");
    pep.ends();
    // The service is stopped.
    for &fd in manager.kept.values() {
        close(fd).expect("it is ours");
    }
    thread::sleep(Duration::from_millis(500));
    assert_eq!(reports(1), 0);
}

#[test]
fn root_removing_an_interface_ends_the_pep_with_a_message() {
    let Some(net) = Net::new() else { return };
    for removal in ["-n {} link delete ran", "-n {} link set dev wan netns {}-away"] {
        let mut pep = net.ranway(&["pep", "--wan", "wan", "--ran", "ran"]);
        let mut pep = pep.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let mut stderr = BufReader::new(pep.stderr.take().expect("it is piped"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("it says that it runs");
        let router = net.space(ROUTER);
        let moves = removal.contains("netns");
        if moves {
            ip(&format!("netns add {router}-away"));
        }
        ip(&removal.replace("{}", &router));
        let code = ended(&mut pep);
        if code.is_none() {
            pep.kill().expect("it is ours");
        }
        stderr.read_to_string(&mut said).expect("it has ended");
        if moves {
            ip(&format!("netns delete {router}-away"));
        }
        let interface = if moves { "wan" } else { "ran" };
        let why = format!("error: the interface `{interface}` was removed, or moved to another network namespace\n");
        assert_eq!((code, said.ends_with(&why)), (Some(1), true), "{said}");
        if !moves {
            net.join((ROUTER, "ran", &[]), (OUTSIDE, "ran-end2", &[]));
        }
    }
}

const SENDER: [u8; 4] = [10, 7, 1, 1];
const PHONE: [u8; 4] = [10, 7, 2, 2];
/// Ethernet addresses at the senders' side: the gateway's, and another host's.
const GATEWAY: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const MSS: usize = 1000;
/// The sender's and the receiver's first byte.
const FIRST: u32 = 5_000;
const REPLY: u32 = 90_000;
/// The first timestamps of both.
const STAMP: u32 = 700_000;
const REPLY_STAMP: u32 = 3_000_000_000;
const KEY: [u8; 16] = [0xa1; 16];

const SYN: u8 = 2;
const PSH: u8 = 8;

/// A segment of the sender, or of the receiver.
#[derive(Clone, Copy)]
struct Sent<'a> {
    from_sender: bool,
    neighbour: [u8; 6],
    vlan: Option<u16>,
    flags: u8,
    seq: u32,
    ack: u32,
    stamps: (u32, u32),
    option: &'a [u8],
    len: usize,
}

impl Sent<'_> {
    /// Data of the sender: segment `n`.
    fn data(n: u32) -> Self {
        Sent {
            from_sender: true,
            neighbour: GATEWAY,
            vlan: None,
            flags: 0,
            seq: FIRST + n * MSS as u32,
            ack: REPLY,
            stamps: (STAMP + 1 + n, REPLY_STAMP),
            option: &[],
            len: MSS,
        }
    }

    /// The receiver acknowledges so many segments and echoes this.
    fn reply(n: u32, echo: u32) -> Self {
        let ack = FIRST + n * MSS as u32;
        Sent { from_sender: false, seq: REPLY, ack, stamps: (REPLY_STAMP + n, echo), len: 0, ..Sent::data(0) }
    }

    fn frame(&self) -> Vec<u8> {
        let (from, to, ports) =
            if self.from_sender { (SENDER, PHONE, (80, 4000)) } else { (PHONE, SENDER, (4000, 80)) };
        let mut options = vec![1, 1, 8, 10];
        options.extend(self.stamps.0.to_be_bytes());
        options.extend(self.stamps.1.to_be_bytes());
        options.extend(self.option);
        let ethernet = PacketBuilder::ethernet2(self.neighbour, [2, 0, 0, 0, 0, 9]);
        let ip = match self.vlan {
            Some(vlan) => ethernet.single_vlan(VlanId::try_new(vlan).expect("a VLAN")).ipv4(from, to, 64),
            None => ethernet.ipv4(from, to, 64),
        };
        let mut tcp = ip.tcp(ports.0, ports.1, self.seq, 65_000).ack(self.ack);
        if self.flags & SYN > 0 {
            tcp = tcp.syn();
        }
        if self.flags & PSH > 0 {
            tcp = tcp.psh();
        }
        let mut frame = Vec::new();
        tcp.options_raw(&options).expect("they fit").write(&mut frame, &vec![0; self.len]).expect("it is written");
        frame
    }
}

/// The far ends of both interfaces.
struct Ends([Wire; 2]);

/// A report that has come: the Ethernet address that it goes to, its acknowledgement number and timestamps, and what it says.
type Came = ([u8; 6], u32, Timestamps, Report);

impl Ends {
    fn new(net: &Net) -> Ends {
        Ends(net.inside(OUTSIDE, || attach::open(["wan-end", "ran-end"])).expect("they are there"))
    }

    fn send(&self, sent: &Sent) {
        self.0[usize::from(!sent.from_sender)].send(&sent.frame()).expect("there is room");
    }

    /// The segments that come back to the senders' side within a while.
    fn come(&self) -> Vec<Came> {
        let (start, mut buffer, mut came) = (Instant::now(), vec![0; LONGEST], Vec::new());
        while start.elapsed() < Duration::from_millis(150) {
            let Ok(frame) = self.0[0].receive(&mut buffer) else {
                thread::sleep(Duration::from_millis(2));
                continue;
            };
            let Ok(packet) = SlicedPacket::from_ethernet(frame.bytes) else { continue };
            let Some(TransportSlice::Tcp(tcp)) = packet.transport else { continue };
            let Some(Message::Report(report)) = Message::find(tcp.options()) else { panic!("no report: {tcp:?}") };
            let number = |at: usize| u32::from_be_bytes(*tcp.options()[at..].first_chunk().expect("timestamps"));
            let timestamps = Timestamps { value: number(4), echo: number(8) };
            came.push((
                *frame.bytes.first_chunk().expect("an address"),
                tcp.acknowledgment_number(),
                timestamps,
                report,
            ));
        }
        came
    }

    /// The handshake of a sender that understands reports.
    fn begin(&self, vlan: Option<u16>) {
        let syn = Sent { flags: SYN, seq: FIRST - 1, stamps: (STAMP, REPLY_STAMP), len: 0, vlan, ..Sent::data(0) };
        self.send(&Sent { option: &announcement(), ..syn });
        self.settle();
        self.send(&Sent { vlan, ..Sent::reply(0, STAMP) });
        self.settle();
    }

    /// Both sides' packets are looked at on different processors: one after the other.
    fn settle(&self) {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn root_forged_packets_make_a_live_pep_tell_nothing_and_stop_nothing() {
    let Some(net) = Net::new() else { return };
    let key = net.dir.path().join("key");
    fs::write(&key, "a1".repeat(16)).expect("it is written");
    let key = key.to_str().expect("UTF-8");
    let refused = net.ranway(&["pep", "--wan", "wan", "--ran", "ran", "--key", key]).output().expect("it runs");
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("accessible to others than its owner"), "{said}");
    fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let mut pep = net.start_pep(&["--key", key]);
    let ends = Ends::new(&net);
    ends.begin(None);
    let far = 1 << 31;
    let other = Sent { neighbour: OTHER, flags: PSH, len: 1, ..Sent::data(0) };
    let forged = [
        ("a SYN", Sent { flags: SYN, seq: 77, len: 0, ..other }),
        ("data out of the window", Sent { seq: FIRST + far, ..other }),
        ("a byte with a late timestamp", Sent { seq: FIRST + 2_000, stamps: (STAMP + far - 9, far), ..other }),
        ("a byte of the next data", Sent { seq: FIRST + 60_000, ..other }),
        ("data of another VLAN", Sent { vlan: Some(7), neighbour: GATEWAY, seq: FIRST + 5_000, ..other }),
        ("an answer", Sent { from_sender: false, seq: REPLY + far, ack: FIRST + far, stamps: (1, 2), ..other }),
    ];
    let mut n = 0;
    for (what, forged) in forged {
        for _ in 0..5 {
            ends.send(&forged);
        }
        ends.settle();
        ends.send(&Sent::data(n));
        ends.send(&Sent { flags: PSH, ..Sent::data(n + 1) });
        let came = ends.come();
        // At one after both segments, and at each if something seems to be missing in between.
        let Some((to, ack, timestamps, report)) = came.last() else { panic!("{what} has stopped it") };
        assert!(came.iter().all(|(to, ..)| *to == GATEWAY), "{what}: {came:?}");
        assert_eq!((*to, timestamps.echo), (GATEWAY, STAMP + n + 2), "{what}");
        assert!(report.is_authentic(Key::new(KEY), *ack, *timestamps), "{what}: {report:?}");
        n += 2;
        assert_eq!(ack.wrapping_add(report.through), FIRST + n * MSS as u32, "{what}: {report:?}");
        ends.send(&Sent::reply(n, STAMP + n));
        ends.settle();
    }
    pep.kill().expect("it is ours");
    pep.ends();
}

/// Changes a frame's bytes.
type Damage = fn(&mut Vec<u8>);
/// Where frames have their IP header and TCP header.
const IP: usize = 14;
const TCP: usize = IP + 20;

/// Frames of data that the receiver never gets, and why.
const DAMAGED: [(&str, Damage); 6] = [
    ("a wrong byte of the payload", |frame| *frame.last_mut().expect("it has some") ^= 1),
    ("a wrong byte of the header", |frame| frame[TCP + 15] ^= 1),
    ("a wrong checksum", |frame| frame[TCP + 17] ^= 1),
    ("a wrong checksum of the IP header", |frame| frame[IP + 11] ^= 1),
    ("no hop left", |frame| {
        // RFC 1624: what the one byte loses, the sum gains.
        let gone = u16::from(frame[IP + 8] - 1) << 8;
        frame[IP + 8] = 1;
        let sum = u32::from(u16::from_be_bytes([frame[IP + 10], frame[IP + 11]])) + u32::from(gone);
        let sum = (sum & 0xffff) as u16 + (sum >> 16) as u16;
        frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    }),
    ("fewer bytes than its header says", |frame| frame.truncate(frame.len() - 100)),
];

#[test]
fn root_data_that_the_receiver_never_gets_is_not_reported() {
    let Some(net) = Net::new() else { return };
    let mut pep = net.start_pep(&[]);
    let ends = Ends::new(&net);
    ends.begin(None);
    let mut n = 0;
    for (what, damage) in DAMAGED {
        for forged in 0..6 {
            let mut frame = Sent { flags: PSH, ..Sent::data(n + forged) }.frame();
            damage(&mut frame);
            ends.0[0].send(&frame).expect("there is room");
        }
        assert_eq!(ends.come(), [], "{what}");
        // Odd lengths, short and of several pieces.
        for len in [1, 3, 511, 512, 513, 999] {
            let start = FIRST + n * MSS as u32;
            ends.send(&Sent { flags: PSH, len, seq: start, ..Sent::data(n) });
            ends.settle();
            ends.send(&Sent { flags: PSH, len: MSS - len, seq: start + len as u32, ..Sent::data(n) });
            n += 1;
            let came = ends.come();
            let Some((_, ack, _, report)) = came.last() else { panic!("{what}: {len} bytes say nothing") };
            assert_eq!(ack.wrapping_add(report.through), FIRST + n * MSS as u32, "{what}: {len}: {report:?}");
            ends.send(&Sent::reply(n, STAMP + n));
            ends.settle();
        }
    }
    // An answer that the sender never gets does not keep the PEP from reporting what is missing.
    for above in 1..4 {
        let mut forged = Sent::reply(n + above, STAMP + n).frame();
        forged[TCP + 17] ^= 1;
        ends.0[1].send(&forged).expect("there is room");
        ends.settle();
        ends.send(&Sent::data(n + above));
        ends.settle();
    }
    let missing: usize = ends.come().iter().map(|(.., report)| report.missing().len()).sum();
    assert_eq!(missing, 1);
    pep.kill().expect("it is ours");
    pep.ends();
}

#[test]
fn root_a_flood_keeps_no_new_connection_from_reports() {
    const FRAMES: u32 = 150_000;
    let Some(net) = Net::new() else { return };
    let mut pep = net.start_pep(&[]);
    let ends = Ends::new(&net);
    // MSS and a window scale of 7, with the timestamps in front.
    let scale = [3, 3, 7, 1];
    let opening =
        Sent { flags: SYN, seq: REPLY - 1, ack: 0, stamps: (REPLY_STAMP, 0), option: &scale, ..Sent::reply(0, 0) };
    let offer = [&scale[..], &announcement()].concat();
    let answer =
        Sent { flags: SYN, seq: FIRST - 1, stamps: (STAMP, REPLY_STAMP), len: 0, option: &offer, ..Sent::data(0) };
    for from_sender in [true, false] {
        let mut syn = opening.frame();
        // etherparse sets ACK with an acknowledgement number; this one has none.
        without_ack(&mut syn);
        ends.0[1].send(&syn).expect("there is room");
        ends.settle();
        ends.send(&answer);
        ends.settle();
        // From the senders' side, SYN-ACKs to every port, blindly; from the receivers' side, the SYNs of one receiver.
        let mut frame = if from_sender { Sent { ack: 77, ..answer }.frame() } else { syn };
        if !from_sender {
            set(&mut frame, IP + 15, 9);
        }
        // All but the connection's own port.
        for n in (0..FRAMES).filter(|n| n & 0xffff != 4000) {
            set(&mut frame, TCP + 2 * usize::from(from_sender), (n >> 8) as u8);
            set(&mut frame, TCP + 2 * usize::from(from_sender) + 1, n as u8);
            set(&mut frame, TCP + 5, (n >> 16) as u8);
            while ends.0[usize::from(!from_sender)].send(&frame).is_err() {
                thread::sleep(Duration::from_micros(50));
            }
        }
        ends.settle();
        ends.send(&Sent::reply(0, STAMP));
        ends.settle();
        ends.send(&Sent { flags: PSH, ..Sent::data(0) });
        let came = ends.come();
        assert_eq!(came.len(), 1, "a flood from the {} side", if from_sender { "senders'" } else { "receivers'" });
        pep.kill().expect("it is ours");
        pep.ends();
        pep = net.start_pep(&[]);
    }
    pep.kill().expect("it is ours");
    pep.ends();
}

/// Sets a byte of a frame, and makes its checksums right again (RFC 1624 equation 3).
fn set(frame: &mut [u8], at: usize, byte: u8) {
    let sums: &[usize] = if at < TCP { &[IP + 10, TCP + 16] } else { &[TCP + 16] };
    let word = at & !1;
    let before = u16::from_be_bytes([frame[word], frame[word + 1]]);
    frame[at] = byte;
    let after = u16::from_be_bytes([frame[word], frame[word + 1]]);
    for &sum in sums {
        let old = u16::from_be_bytes([frame[sum], frame[sum + 1]]);
        let mut new = u32::from(!old) + u32::from(!before) + u32::from(after);
        new = (new & 0xffff) + (new >> 16);
        new = (new & 0xffff) + (new >> 16);
        frame[sum..sum + 2].copy_from_slice(&(!(new as u16)).to_be_bytes());
    }
}

/// Takes the flag ACK off a frame.
fn without_ack(frame: &mut [u8]) {
    let flags = frame[TCP + 13] & !0x10;
    set(frame, TCP + 13, flags);
}

#[test]
fn root_of_two_peps_in_a_row_the_outer_one_is_silent() {
    let Some(net) = Net::new() else { return };
    let key = net.dir.path().join("key");
    fs::write(&key, "a1".repeat(16)).expect("it is written");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let mut pep = net.start_pep(&["--key", key.to_str().expect("UTF-8")]);
    let ends = Ends::new(&net);
    ends.begin(None);
    let pass = |n: u32| {
        ends.send(&Sent { flags: PSH, ..Sent::data(n) });
        ends.come().len()
    };
    assert_eq!(pass(0), 1);
    for (key, reports) in [([7; 16], 1), (KEY, 0)] {
        let timestamps = Timestamps { value: REPLY_STAMP, echo: STAMP + 1 };
        let mut report = Report::new(0, MSS as u32);
        report.authenticate(Key::new(key), FIRST, timestamps);
        ends.send(&Sent { option: &report.to_bytes(), ..Sent::reply(0, STAMP + 1) });
        ends.settle();
        assert_eq!(pass(if reports > 0 { 1 } else { 2 }), reports);
    }
    assert_eq!(pass(3), 0);
    ends.send(&Sent { option: &announcement(), flags: PSH, ..Sent::data(4) });
    assert_eq!(ends.come().len(), 1, "the sender hears no other");
    pep.kill().expect("it is ours");
    pep.ends();
}

#[test]
fn root_a_pep_looks_at_no_frame_with_a_vlan_tag() {
    let Some(net) = Net::new() else { return };
    let mut pep = net.start_pep(&[]);
    let ends = Ends::new(&net);
    ends.begin(Some(7));
    for n in 0..4 {
        ends.send(&Sent { vlan: Some(7), flags: PSH, ..Sent::data(n) });
    }
    assert_eq!(ends.come(), []);
    ends.begin(None);
    for n in 0..4 {
        // The other VLAN's flow has the same addresses and ports, and other numbers.
        ends.send(&Sent { vlan: Some(7), flags: PSH, ..Sent::data(n + 9) });
        ends.send(&Sent { flags: PSH, ..Sent::data(n) });
    }
    let said: Vec<u32> =
        ends.come().iter().map(|(_, ack, _, report)| ack.wrapping_add(report.through) - FIRST).collect();
    assert_eq!(said, [1, 2, 3, 4].map(|n| n * MSS as u32));
    pep.kill().expect("it is ours");
    pep.ends();
}

#[test]
fn root_a_pep_that_was_killed_and_started_anew_serves_a_connection_that_announces_itself_again() {
    let Some(net) = Net::new() else { return };
    let ends = Ends::new(&net);
    let mut pep = net.start_pep(&[]);
    ends.begin(None);
    ends.send(&Sent { flags: PSH, ..Sent::data(0) });
    assert_eq!(ends.come().len(), 1);
    pep.kill().expect("it is ours");
    pep.ends();
    let mut pep = net.start_pep(&[]);
    for n in 1..4 {
        ends.send(&Sent { flags: PSH, ..Sent::data(n) });
        ends.settle();
        ends.send(&Sent::reply(n + 1, STAMP + n + 1));
        ends.settle();
    }
    assert_eq!(ends.come(), [], "nobody has asked this one");
    ends.send(&Sent { option: &announcement(), ..Sent::data(4) });
    ends.send(&Sent { flags: PSH, ..Sent::data(5) });
    let came = ends.come();
    let Some((to, ack, _, report)) = came.last() else { panic!("it is not served") };
    let number = |offset: u32| ack.wrapping_add(offset) - FIRST;
    assert_eq!((*to, number(report.from), number(report.through)), (GATEWAY, 4 * MSS as u32, 6 * MSS as u32));
    pep.kill().expect("it is ours");
    pep.ends();
}
