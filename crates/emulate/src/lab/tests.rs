use super::*;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const MTU: usize = 1400;
const SECOND: Duration = Duration::from_secs(1);

/// A lab of a server and two phones, or why there is none.
fn lab() -> Option<Lab> {
    if !may() {
        return None;
    }
    let names = ["server", "phone", "ue 2"].map(String::from);
    Some(Lab::new(&names, None, MTU as u32, None).expect("a lab"))
}

/// Waits for one of the interfaces to have a packet.
fn wait(tuns: &[Tun], time: Duration) -> bool {
    let mut fds: Vec<PollFd> = tuns.iter().map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN)).collect();
    poll(&mut fds, PollTimeout::try_from(time).unwrap()).unwrap() > 0
}

/// Runs `act` while every packet that a host sends is given to the one whose address it bears: the longest packet's
/// length.
fn forwarding(lab: &mut Lab, act: impl FnOnce(&Lab)) -> usize {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let tuns: Vec<Tun> = (0..lab.hosts.len()).map(|n| lab.tun(n)).collect();
    let (stop, longest, lab) = (AtomicBool::new(false), AtomicUsize::new(0), &*lab);
    let forward = || {
        let mut buffer = [0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            wait(&tuns, SECOND / 50);
            for tun in &tuns {
                while let Ok(Some(len)) = tun.read(&mut buffer) {
                    longest.fetch_max(len, Ordering::Relaxed);
                    let packet = &buffer[..len];
                    let host = lab.hosts.iter().position(|host| match packet[0] >> 4 {
                        4 => packet[16..20] == host.v4.octets(),
                        _ => packet[24..40] == host.v6.octets(),
                    });
                    tuns[host.expect("an address of a host")].write(packet).expect("the host takes it");
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(forward);
        let _stop = Stop(&stop);
        act(lab);
    });
    longest.into_inner()
}

#[test]
fn hosts_are_numbered_on_past_an_octet() {
    let shown = |n| {
        let (v4, v6) = host_addresses(n);
        format!("{v4} {v6}")
    };
    assert_eq!(shown(0), "10.0.0.1 fd00::1");
    assert_eq!(shown(1), "10.0.1.1 fd00:0:1:1::1");
    assert_eq!(shown(254), "10.0.1.254 fd00:0:1:fe::1");
    assert_eq!(shown(255), "10.0.2.1 fd00:0:2:1::1");
    assert_eq!(shown(HOSTS_MAX), "10.0.255.254 fd00:0:ff:fe::1");
}

#[test]
fn names_become_plain_and_stay_different() {
    let long = "long".repeat(20);
    let names = ["core", "ue 1", "ue/1", "UE-1", "", "..", "\n#é", &long].map(String::from);
    let plain = plain_names(&names);
    assert_eq!(plain, ["core", "ue-1", "ue-1-2", "UE-1-3", "host", "..", "---", &long[..32]]);
}

#[test]
fn hosts_are_known_by_their_names_and_by_what_they_are() {
    let file = all_names(&["core", "phone", "ue", "car"].map(String::from), None).hosts_file();
    let expected = "127.0.0.1 localhost\n\
                    ::1 localhost\n\
                    10.0.0.1 core server\n\
                    fd00::1 core server\n\
                    10.0.1.1 phone ue1\n\
                    fd00:0:1:1::1 phone ue1\n\
                    10.0.1.2 ue ue2\n\
                    fd00:0:1:2::1 ue ue2\n\
                    10.0.1.3 car ue3\n\
                    fd00:0:1:3::1 car ue3\n";
    assert_eq!(file, expected);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let wrong = |names: &[String], mtu| Lab::new(names, None, mtu, None).expect_err("it cannot be").to_string();
    let one = ["server".to_owned()];
    assert_eq!(wrong(&one, 1279), "an MTU of 1279 bytes: real hosts need 1280 (for IPv6) to 65535");
    assert_eq!(wrong(&[], 1500), "0 hosts: there can be 1 to 64771");
}

#[test]
fn root_what_ip_refuses_is_told_with_the_command() {
    if !may() {
        return;
    }
    let error = ip(&[], "link show dev lo\nlink show dev no-such-device\n").unwrap_err().to_string();
    assert_eq!(error, r#"ip link show dev no-such-device: Device "no-such-device" does not exist."#);
}

#[test]
fn root_hosts_reach_each_other_over_both_protocols_in_packets_within_the_mtu() {
    const BULK: usize = 4_000_000;
    let Some(mut lab) = lab() else { return };
    let longest = forwarding(&mut lab, |lab| {
        let (server, phone) = (&lab.hosts[0], &lab.hosts[2]);
        for (server, phone) in
            [(IpAddr::from(server.v4), IpAddr::from(phone.v4)), (IpAddr::from(server.v6), IpAddr::from(phone.v6))]
        {
            let bind = move || UdpSocket::bind((server, 7)).unwrap();
            let udp = lab.inside(0, bind).unwrap();
            udp.set_read_timeout(Some(5 * SECOND)).unwrap();
            let from = lab.inside(2, || {
                let socket = UdpSocket::bind((phone, 0)).unwrap();
                socket.send_to(b"hello", (server, 7)).unwrap();
                socket.local_addr().unwrap()
            });
            let mut buffer = [0; 16];
            assert_eq!(udp.recv_from(&mut buffer).unwrap(), (5, from.unwrap()));

            let listener = lab.inside(2, || TcpListener::bind((phone, 80)).unwrap()).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let address = SocketAddr::from((phone, 80));
                    let stream = lab.inside(0, || TcpStream::connect_timeout(&address, 5 * SECOND)).unwrap();
                    stream.unwrap().write_all(&vec![1; BULK]).unwrap();
                });
                let (mut stream, from) = listener.accept().unwrap();
                assert_eq!(from.ip(), server);
                stream.set_read_timeout(Some(5 * SECOND)).unwrap();
                assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), BULK);
            });
        }
    });
    assert_eq!(longest, MTU);
}

#[test]
fn root_a_host_is_silent_until_somebody_speaks_and_any_address_leads_into_the_cell() {
    let Some(mut lab) = lab() else { return };
    let tun = [lab.tun(1)];
    assert!(!wait(&tun, 3 * SECOND), "an idle host sent a packet");
    for to in ["192.0.2.1:9", "[2001:db8::1]:9"] {
        lab.inside(1, || {
            let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            UdpSocket::bind(any).unwrap().send_to(b"hello", to).unwrap();
        })
        .unwrap();
        let mut buffer = [0; MTU];
        assert!(wait(&tun, SECOND));
        let len = tun[0].read(&mut buffer).unwrap().unwrap();
        assert!(buffer[..len].ends_with(b"hello"));
    }
    assert_eq!(tun[0].read(&mut [0; MTU]).unwrap(), None);
}

#[test]
fn root_a_burst_waits_until_it_is_read() {
    let Some(mut lab) = lab() else { return };
    let tun = lab.tun(1);
    lab.inside(1, || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for n in 0..tun::QUEUE {
            socket.send_to(&n.to_be_bytes(), "10.0.0.1:9").unwrap();
        }
    })
    .unwrap();
    let mut buffer = [0; MTU];
    for n in 0..tun::QUEUE {
        let len = tun.read(&mut buffer).unwrap().unwrap();
        assert!(buffer[..len].ends_with(&n.to_be_bytes()), "packet {n} is missing");
    }
}

#[test]
fn root_what_a_host_receives_is_handled_by_the_processors_that_the_network_leaves_to_it() {
    let Some(mut lab) = lab() else { return };
    let Some(others) = realtime::others() else { return eprintln!("SKIPPED: there is one processor only") };
    let setting = lab.inside(1, || fs::read_to_string(format!("/proc/sys/net/{STEERING}"))).unwrap();
    let setting = setting.map_err(|_| format!("the kernel has no {STEERING}"));
    let Some(setting) = testkit::root::granted(setting) else { return };
    let number = |set: &str| u128::from_str_radix(&set.trim().replace(',', ""), 16).expect("hexadecimal");
    assert_eq!(number(&setting), number(&others));
    let tun = lab.tun(1);
    let open = || {
        let socket = UdpSocket::bind("10.0.1.1:9").expect("a port");
        // Only connected sockets remember the processor.
        socket.connect("10.0.0.1:5000").expect("a route");
        socket2::Socket::from(socket)
    };
    let mut receiver = lab.inside(1, open).unwrap();
    receiver.set_read_timeout(Some(SECOND)).unwrap();
    let mine = std::thread::scope(|scope| {
        let write = || {
            let cpu = realtime::hurry().cpu.expect("a processor of its own");
            (0..100).for_each(|n| tun.write(&datagram(n)).expect("the host takes it"));
            cpu
        };
        scope.spawn(write).join().expect("it writes")
    });
    for n in 0..100 {
        let mut buffer = [0; 9];
        assert_eq!(receiver.read(&mut buffer).expect("a datagram"), 1);
        assert_eq!(buffer[0], n, "they come in order");
    }
    assert_ne!(receiver.cpu_affinity().expect("the last processor"), mine);
    assert_eq!(lab.lost(), Lost { overflowed: lab.lost().overflowed, ..Lost::default() });
}

#[test]
fn root_who_writes_faster_than_a_host_can_receive_waits_and_no_packet_is_lost() {
    const COUNT: usize = 5_000;
    let Some(mut lab) = lab() else { return };
    let tun = lab.tun(1);
    // A packet takes the host longer than it takes to write it.
    let rules: String = (0..1_000).map(|port| format!("add rule ip slow input udp sport {port} drop\n")).collect();
    let rules = format!(
        "add table ip slow\nadd chain ip slow input {{ type filter hook input priority 0; }}\n{rules}\
         add rule ip slow input udp dport 9 counter drop\n"
    );
    let nft = |arguments: &[&str], input: &str| {
        let inside = ["netns", "exec", &lab.hosts[1].netns, "nft"];
        uplink::run("ip", &[&inside, arguments].concat(), input).expect("it succeeds")
    };
    nft(&["-f", "-"], &rules);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            realtime::hurry();
            (0..COUNT).for_each(|_| tun.write(&datagram(0)).expect("the host takes it"));
        });
    });
    let begun = Instant::now();
    let counted = || nft(&["list", "chain", "ip", "slow", "input"], "").contains(&format!("counter packets {COUNT} "));
    while !counted() {
        assert!(begun.elapsed() < 10 * SECOND, "packets are missing: {:?}", lab.lost());
    }
    assert_eq!(lab.lost().untaken, 0);
}

/// A UDP datagram of one byte from 10.0.0.1 to port 9 of 10.0.1.1.
fn datagram(byte: u8) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 1, 1], 64).udp(5_000, 9);
    let mut packet = Vec::new();
    builder.write(&mut packet, &[byte]).expect("a vector takes it");
    packet
}

#[test]
fn what_nobody_noticed_is_neither_what_could_not_be_written_nor_what_a_host_drops_itself() {
    let lost = |unread, untaken, overflowed| Lost { unread, untaken, overflowed };
    assert_eq!(lost(0, 5, 5).unnoticed(0), 5);
    assert_eq!(lost(2, 5, 9).unnoticed(3), 4);
    assert_eq!(lost(0, 5, 0).unnoticed(0), 0, "XDP");
    assert_eq!(lost(1, 5, 9).unnoticed(6), 1, "refused since");
}

#[test]
fn root_the_kernel_refuses_what_is_no_packet_and_what_comes_to_an_interface_that_is_down() {
    let Some(mut lab) = lab() else { return };
    let tun = lab.tun(1);
    assert_eq!(tun.write(b"text").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let netns = lab.hosts[1].netns.clone();
    ip(&["-netns", &netns], "link set dev cell0 down\n").unwrap();
    let mut packet = [0; 20];
    packet[0] = 0x45;
    assert!(tun.write(&packet).is_err());
}

#[test]
fn root_labs_stand_side_by_side() {
    let Some(mut first) = lab() else { return };
    let mut second = lab().expect("another");
    assert_ne!(first.id(), second.id());
    // Each has its own 10.0.0.1.
    let (a, b) = ([first.tun(1)], [second.tun(1)]);
    second.inside(1, || UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"hello", "10.0.0.1:9").unwrap()).unwrap();
    assert!(wait(&b, SECOND));
    assert!(!wait(&a, SECOND / 10));
    drop(first);
    second.inside(0, || TcpListener::bind("10.0.0.1:80").unwrap()).expect("the other one is as it was");
}

#[test]
fn root_a_command_runs_in_its_host_as_the_process_that_was_spawned() {
    let Some(lab) = lab() else { return };
    let script = "echo $$; cat /etc/hosts; readlink /proc/self/ns/net";
    let command = |host| lab.command(host, "sh".as_ref()).args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let [server, phone] = [0, 2].map(|host| {
        let child = command(host);
        let pid = child.id().to_string();
        let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<String> = said.lines().map(String::from).collect();
        assert_eq!(lines[0], pid);
        assert!(lines.iter().any(|line| line == "10.0.1.2 ue-2 ue2"), "{said}");
        lines.last().unwrap().clone()
    });
    let mine = fs::read_link("/proc/self/ns/net").unwrap();
    assert!(server != phone && Path::new(&server) != mine && Path::new(&phone) != mine);
    // A program's status is the command's.
    let status = lab.command(1, "sh".as_ref()).args(["-c", "exit 7"]).status().unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn root_a_name_that_no_host_has_is_unknown_at_once() {
    let Some(lab) = lab() else { return };
    let start = std::time::Instant::now();
    let status = lab.command(1, "getent".as_ref()).args(["hosts", "nobody.example"]).status().unwrap();
    assert_eq!((status.code(), start.elapsed() < SECOND), (Some(2), true));
}

#[test]
fn root_a_panic_inside_comes_out() {
    let Some(lab) = lab() else { return };
    let act = std::panic::AssertUnwindSafe(|| lab.inside(0, || panic!("out")));
    let panic = std::panic::catch_unwind(act).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"out"));
}
