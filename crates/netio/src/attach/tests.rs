//! Two hosts, and between them a machine whose two interfaces are wires: `a0 - ma` and `mb - b0`, all in namespaces.

use super::*;
use crate::rights::check_rights;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{MsgFlags, SockProtocol, SockaddrIn, SockaddrIn6, recv, sendto};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::root::granted;

const A: &str = "a";
const MIDDLE: &str = "m";
const B: &str = "b";
const A4: &str = "10.9.0.1";
const B4: &str = "10.9.0.2";
const A6: &str = "fd09::1";
const B6: &str = "fd09::2";

/// Three namespaces that go away with this.
struct Net(String);

impl Net {
    /// `None`, and says so, where that cannot be.
    fn new() -> Option<Net> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        granted(check_rights())?;
        let net = Net(format!("ranway-t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        for host in [A, MIDDLE, B] {
            net.ip(&format!("netns add {}", net.name(host)));
        }
        for (host, end, [v4, v6]) in [(A, "a0", [A4, A6]), (B, "b0", [B4, B6])] {
            let (this, middle) = (net.name(host), net.name(MIDDLE));
            net.ip(&format!("-n {this} link add {end} type veth peer name m{host} netns {middle}"));
            net.ip(&format!("-n {this} addr add {v4}/24 dev {end}"));
            net.ip(&format!("-n {this} addr add {v6}/64 dev {end} nodad"));
            net.ip(&format!("-n {this} link set dev {end} up"));
            net.ip(&format!("-n {middle} link set dev m{host} up"));
        }
        Some(net)
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.0)
    }

    fn ip(&self, arguments: &str) {
        let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Does something in the namespace of a host. Sockets made there stay there.
    fn inside<T: Send>(&self, host: &str, act: impl FnOnce() -> T + Send) -> T {
        let space = std::fs::File::open(format!("/run/netns/{}", self.name(host))).unwrap();
        let act = move || {
            setns(space, CloneFlags::CLONE_NEWNET).unwrap();
            // As `ip netns exec` does, for /sys/class/net.
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let (none, flags) = (None::<&str>, nix::mount::MsFlags::empty());
            let slave = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_SLAVE;
            nix::mount::mount(none, "/", none, slave, none).unwrap();
            nix::mount::mount(Some("sysfs"), "/sys", Some("sysfs"), flags, none).unwrap();
            act()
        };
        std::thread::scope(|scope| scope.spawn(act).join()).unwrap_or_else(|why| std::panic::resume_unwind(why))
    }

    fn open(&self, host: &str, interface: &str) -> Wire {
        self.inside(host, || Wire::find(interface).and_then(|mut wire| wire.hold().map(|()| wire))).unwrap()
    }

    fn set(&self, host: &str, interface: &str, number: Number, value: u32) -> u32 {
        self.inside(host, || {
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None).unwrap();
            sys::ethtool(socket.as_fd(), interface, number, value).unwrap()
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in [A, MIDDLE, B] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(host)]).status();
        }
    }
}

/// What went through the middle.
#[derive(Debug, Default)]
struct Seen {
    straight: u32,
    packets: u32,
    /// Those that came as one frame of many.
    trains: u32,
    answers: u32,
    longest: usize,
    lost: u32,
}

/// Passes frames between the wires as a network would, until told to stop.
fn carry(wires: &[Wire; 2], mtu: u16, stop: &AtomicBool) -> Seen {
    let (mut seen, mut buffer) = (Seen::default(), vec![0; LONGEST]);
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [0, 1].map(|side: usize| PollFd::new(wires[side].as_fd(), PollFlags::POLLIN));
        poll(&mut ready, PollTimeout::from(20_u8)).unwrap();
        for (from, to) in [(&wires[0], &wires[1]), (&wires[1], &wires[0])] {
            while let Some(frame) = next(from, &mut buffer) {
                if frame.ip.is_none() {
                    seen.straight += 1;
                    to.send(frame.bytes).unwrap();
                    continue;
                }
                let mut pass = |piece: &[u8]| {
                    if let Some(answer) = frames::too_big(piece, mtu) {
                        seen.answers += 1;
                        return from.send(&answer).unwrap();
                    }
                    let ip = frames::packet(piece).unwrap();
                    seen.packets += 1;
                    seen.longest = seen.longest.max(ip.len());
                    seen.lost += u32::from(to.send(piece).is_err());
                };
                match frame.segment {
                    None => pass(frame.bytes),
                    Some(size) => {
                        frames::cut(frame.bytes, size).unwrap().for_each(|piece| pass(&piece));
                        seen.trains += 1;
                    }
                }
            }
        }
    }
    seen
}

fn next<'a>(wire: &Wire, buffer: &'a mut [u8]) -> Option<Frame<'a>> {
    match wire.receive(buffer) {
        Ok(frame) => Some(frame),
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => None,
        Err(why) => panic!("{why}"),
    }
}

/// Carries frames while `act` goes on.
fn while_carrying(net: &Net, mtu: u16, act: impl FnOnce()) -> Seen {
    let wires = [net.open(MIDDLE, "ma"), net.open(MIDDLE, "mb")];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let carrying = scope.spawn(|| carry(&wires, mtu, &stop));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        stop.store(true, Ordering::Relaxed);
        let seen = carrying.join().unwrap();
        result.unwrap_or_else(|why| std::panic::resume_unwind(why));
        seen
    })
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// Sends `data` by TCP from one host to another and compares what comes.
fn transfer(net: &Net, from: &str, to: &str, address: &str, data: &[u8]) {
    let address = SocketAddr::new(address.parse().unwrap(), 5000);
    let listener = net.inside(to, || TcpListener::bind(address)).unwrap();
    let patience = Duration::from_secs(10);
    let mut stream = net.inside(from, || TcpStream::connect_timeout(&address, patience)).unwrap();
    stream.set_write_timeout(Some(patience)).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(patience)).unwrap();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut got = Vec::new();
            receiver.read_to_end(&mut got).map(|_| got)
        });
        stream.write_all(data).unwrap();
        drop(stream);
        assert!(receiving.join().unwrap().unwrap() == data, "from {from} to {address}");
    });
}

/// Sends an echo request by hand and waits for its answer.
fn ping(net: &Net, from: &str, to: &str) {
    let to: IpAddr = to.parse().unwrap();
    let kind = |family, protocol| socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, Some(protocol)).unwrap();
    // Type, code, checksum (of IPv6 the kernel's), identifier, sequence number.
    let (socket, request) = match to {
        IpAddr::V4(_) => {
            (net.inside(from, || kind(AddressFamily::Inet, SockProtocol::Icmp)), [8, 0, 0xf0, 0xf6, 0, 7, 7, 2])
        }
        IpAddr::V6(_) => {
            (net.inside(from, || kind(AddressFamily::Inet6, SockProtocol::IcmpV6)), [128, 0, 0, 0, 0, 7, 7, 2])
        }
    };
    let patience = nix::sys::time::TimeVal::new(5, 0);
    setsockopt(&socket, sockopt::ReceiveTimeout, &patience).unwrap();
    let flags = MsgFlags::empty();
    match to {
        IpAddr::V4(to) => sendto(socket.as_raw_fd(), &request, &SockaddrIn::from(SocketAddrV4::new(to, 0)), flags),
        IpAddr::V6(to) => {
            sendto(socket.as_raw_fd(), &request, &SockaddrIn6::from(SocketAddrV6::new(to, 0, 0, 0)), flags)
        }
    }
    .unwrap();
    let (reply, header) = if to.is_ipv4() { (0, 20) } else { (129, 0) };
    let mut buffer = [0; 1500];
    loop {
        let len = recv(socket.as_raw_fd(), &mut buffer, flags).expect("an echo reply");
        let message = &buffer[header..len];
        if message[0] == reply && message[4..] == request[4..] {
            return;
        }
    }
}

#[test]
fn root_hosts_find_and_ping_each_other_through_wires() {
    let Some(net) = Net::new() else { return };
    let seen = while_carrying(&net, 1500, || {
        for (from, to) in [(A, B4), (B, A4), (A, B6), (B, A6)] {
            ping(&net, from, to);
        }
    });
    assert_eq!((seen.packets, seen.trains, seen.answers, seen.lost), (8, 0, 0, 0), "{seen:?}");
    assert!(seen.straight >= 4, "ARP, and neighbours' questions and answers: {seen:?}");
}

#[test]
fn root_tcp_comes_through_intact_with_all_offloads_at_the_hosts_and_with_none() {
    let Some(net) = Net::new() else { return };
    let data = noise(8_000_000);
    for offloads in [true, false] {
        if !offloads {
            net.set(A, "a0", Number::SetTxChecksum, 0);
            net.set(B, "b0", Number::SetTxChecksum, 0);
        }
        let seen = while_carrying(&net, 1500, || {
            for (from, to, address) in [(A, B, B4), (B, A, A4), (A, B, B6), (B, A, A6)] {
                transfer(&net, from, to, address, &data);
            }
        });
        assert_eq!(seen.trains > 0, offloads, "{seen:?}");
        assert_eq!((seen.longest, seen.answers), (1500, 0), "{seen:?}");
    }
}

#[test]
fn root_senders_learn_the_mtu_of_the_network() {
    let Some(net) = Net::new() else { return };
    let seen = while_carrying(&net, 1300, || {
        for (from, to, address) in [(A, B, B4), (B, A, A6)] {
            transfer(&net, from, to, address, &noise(1_000_000));
        }
    });
    assert!(seen.answers > 0 && seen.longest == 1300, "{seen:?}");
}

#[test]
fn root_a_udp_train_comes_as_its_datagrams() {
    let Some(net) = Net::new() else { return };
    let data = noise(3_000);
    let seen = while_carrying(&net, 1500, || {
        for (address, from) in [(B4, "0.0.0.0:0"), (B6, "[::]:0")] {
            let address = SocketAddr::new(address.parse().unwrap(), 5000);
            let receiver = net.inside(B, || UdpSocket::bind(address)).unwrap();
            receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let sender = net.inside(A, || UdpSocket::bind(from)).unwrap();
            setsockopt(&sender, sockopt::UdpGsoSegment, &1_200).unwrap();
            sender.send_to(&data, address).unwrap();
            let mut buffer = [0; 2_000];
            for part in data.chunks(1_200) {
                let len = receiver.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..len], *part);
            }
        }
    });
    assert_eq!((seen.trains, seen.packets), (2, 6), "{seen:?}");
}

#[test]
fn root_tags_and_what_is_not_ip_pass_as_they_are() {
    let Some(net) = Net::new() else { return };
    let (a, b) = (net.open(A, "a0"), net.open(B, "b0"));
    while_carrying(&net, 1500, || {
        for start in
            [&[0x81, 0, 0xa0, 5, 0x88, 0xb5][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 0x88, 0xb5], &[0x88, 0xb5]]
        {
            let frame = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8][..], start, &noise(400)].concat();
            a.send(&frame).unwrap();
            let (begun, mut buffer) = (Instant::now(), vec![0; LONGEST]);
            while next(&b, &mut buffer).is_none_or(|got| got.bytes != frame) {
                assert!(begun.elapsed() < Duration::from_secs(5), "{start:?} does not come");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

#[test]
fn root_what_the_machine_sends_itself_is_not_received() {
    let Some(net) = Net::new() else { return };
    let [sender, other, peer] = [(A, "a0"), (A, "a0"), (MIDDLE, "ma")].map(|(host, end)| net.open(host, end));
    let frame = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5][..], &noise(400)].concat();
    sender.send(&frame).unwrap();
    let mut buffer = vec![0; LONGEST];
    // A veth passes a frame on before the call returns; other frames may come from the machine itself.
    assert!(std::iter::from_fn(|| next(&peer, &mut buffer).map(|got| got.bytes == frame)).any(|same| same));
    for wire in [&sender, &other] {
        assert!(!std::iter::from_fn(|| next(wire, &mut buffer).map(|got| got.bytes == frame)).any(|same| same));
    }
    assert_eq!(peer.lost().unwrap(), 0);
}

#[test]
fn root_offloads_are_off_while_a_wire_is_open_and_as_before_afterwards() {
    let Some(net) = Net::new() else { return };
    net.set(MIDDLE, "ma", Number::SetGro, 1);
    net.set(MIDDLE, "mb", Number::SetGro, 0);
    net.set(MIDDLE, "mb", Number::SetRxChecksum, 0);
    let now = || {
        ["ma", "mb"].map(|name| {
            [Number::GetRxChecksum, Number::GetGro, Number::GetFlags].map(|number| net.set(MIDDLE, name, number, 0))
        })
    };
    let before = now();
    let wires = [net.open(MIDDLE, "ma"), net.open(MIDDLE, "mb")];
    assert_eq!(now().map(|numbers| (numbers[0], numbers[1])), [(0, 0), (0, 0)]);
    assert_eq!(wires[0].restore_lines(), "ethtool -K 'ma' rx on gro on\n");
    assert_eq!(wires[1].restore_lines(), "");
    drop(wires);
    assert_eq!(now(), before);
    assert_eq!((before[0][0], before[0][1]), (1, 1));
}

#[test]
fn root_what_cannot_be_attached_is_told_in_a_line() {
    let Some(net) = Net::new() else { return };
    let middle = net.name(MIDDLE);
    net.ip(&format!("-n {middle} link add idle type veth peer name other"));
    net.ip(&format!("-n {middle} link add bridge0 type bridge"));
    net.ip(&format!("-n {middle} link set dev mb master bridge0"));
    for (interface, why) in [
        ("nowhere", "there is no such interface"),
        ("lo", "it does not carry Ethernet frames"),
        ("idle", "it is down; bring it up with: ip link set dev idle up"),
        ("mb", "it belongs to `bridge0`; take it out with: ip link set dev mb nomaster"),
    ] {
        let error = net.inside(MIDDLE, || open(["ma", interface])).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot attach `{interface}`: {why}"));
    }
    net.ip(&format!("-n {middle} link property add dev ma altname front"));
    for name in ["ma", "front"] {
        let error = net.inside(MIDDLE, || open(["ma", name])).unwrap_err().to_string();
        assert_eq!(error, format!("cannot attach `{name}`: it is one interface with `ma`, and two are needed"));
    }
}

#[test]
fn what_a_sender_left_to_its_interface_is_read_from_the_header() {
    let header = |flags, kind, size: u16, start: u16, offset: u16| {
        let words = [0, size, start, offset].map(u16::to_ne_bytes);
        let mut header = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        header[2..].copy_from_slice(words.as_flattened());
        Todo::of(&header)
    };
    assert_eq!(header(0, 0, 0, 0, 0), Todo { checksum: None, segment: None });
    assert_eq!(header(1, 0, 0, 34, 16), Todo { checksum: Some((34, 16)), segment: None });
    for kind in [1, 4, 5, 0x81] {
        assert_eq!(header(1, kind, 1448, 34, 16), Todo { checksum: Some((34, 16)), segment: Some(1448) });
    }
    assert_eq!(header(2, 3, 1448, 34, 6), Todo { checksum: None, segment: None }, "fragments are not segments");
}
