//! Packets that no sound host sends, and some that it may but hardly does.

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, sendto, socket};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// The server, ourselves, nobody, and those whom no packet of one host to another names.
const V4: [Ipv4Addr; 9] = [
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(10, 0, 1, 1),
    Ipv4Addr::new(10, 9, 9, 9),
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(10, 255, 255, 255),
    Ipv4Addr::new(224, 0, 0, 1),
    Ipv4Addr::BROADCAST,
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::UNSPECIFIED,
];
const V6: [Ipv6Addr; 7] = [
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0, 1, 1, 0, 0, 0, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::LOCALHOST,
    Ipv6Addr::UNSPECIFIED,
];
/// Hop-by-hop and destination options, routing, fragment, authentication, mobility, and those that are no extensions.
const EXTENSIONS: [u8; 8] = [0, 60, 43, 44, 51, 135, 59, 253];
/// ICMP, TCP, UDP, IPv6 in IP, GRE, ESP, ICMP for IPv6, nothing, SCTP, and one that is free.
const PROTOCOLS: [u8; 10] = [1, 6, 17, 41, 47, 50, 58, 59, 132, 255];

/// Sends them all by an interface, as they are.
pub(crate) fn send(interface: &str) {
    let wire = Wire::open(interface);
    let mut packets = Vec::new();
    let mut noise = Noise(1);
    for round in 0..300 {
        packets.push(noise.bytes(1 + round * 5));
        // So that it seems to be IP at first sight.
        let mut packet = noise.bytes(1500 - round * 4);
        packet[0] = [0x45, 0x4f, 0x41, 0x60, 0x6f, 0x55][round % 6];
        packets.push(packet);
    }
    for destination in V4 {
        for source in V4 {
            packets.extend(PROTOCOLS.map(|protocol| v4(source, destination, protocol, &noise.bytes(64))));
        }
    }
    for destination in V6 {
        for source in V6 {
            packets.extend(PROTOCOLS.map(|protocol| v6(source, destination, protocol, &noise.bytes(64))));
        }
    }
    broken_v4(&mut packets, &mut noise);
    broken_v6(&mut packets, &mut noise);
    let mut sent = 0;
    for (n, packet) in packets.iter().enumerate() {
        assert!(wire.send(packet), "the kernel takes {} bytes", packet.len());
        sent += 1;
        if n % 4 == 0 {
            // Slowly enough for every queue.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for refused in [0, 1501, 9000, 65_535] {
        assert!(!wire.send(&vec![0x45; refused]), "the kernel takes {refused} bytes");
    }
    println!("\n{sent} packets sent");
}

fn broken_v4(packets: &mut Vec<Vec<u8>>, noise: &mut Noise) {
    let [server, us, ..] = V4;
    for protocol in [1, 6, 17] {
        let sound = v4(us, server, protocol, &noise.bytes(60));
        packets.extend((1..sound.len()).map(|len| sound[..len].to_vec()));
        // Lengths of the packet, of its header, and where in a datagram it is.
        for len in [0, 1, 19, 20, 21, 79, 81, 1500, 0xffff_u16] {
            packets.push(with(&sound, 2, &len.to_be_bytes()));
        }
        packets.extend((0..16).map(|words| with(&sound, 0, &[0x40 | words])));
        packets.extend((0..16).map(|version| with(&sound, 0, &[version << 4 | 5])));
        for fragment in [0x2000, 0x2001, 0x0001, 0x1fff, 0x3fff, 0x4000, 0x8000, 0xffff_u16] {
            packets.push(with(&sound, 6, &fragment.to_be_bytes()));
        }
        packets.extend((0..=255).map(|tos| with(&sound, 1, &[tos])));
        packets.push(with(&sound, 8, &[0]));
        for _ in 0..50 {
            // Options, up to the most that there can be.
            let options = with(&v4(us, server, protocol, &noise.bytes(80)), 0, &[0x4f]);
            packets.push(sums(options));
            // TCP: its header's length and flags. UDP: its length. ICMP: errors, and what they quote.
            packets.push(with(&sound, 20, &noise.bytes(20)));
            packets.push(with(&sound, 32, &noise.bytes(2)));
        }
        packets.push(with(&sound, 24, &[0, 0]));
    }
}

fn broken_v6(packets: &mut Vec<Vec<u8>>, noise: &mut Noise) {
    let [server, us, ..] = V6;
    for protocol in [58, 6, 17] {
        let sound = v6(us, server, protocol, &noise.bytes(60));
        packets.extend((1..sound.len()).map(|len| sound[..len].to_vec()));
        for len in [0, 1, 7, 59, 61, 1460, 0xffff_u16] {
            packets.push(with(&sound, 4, &len.to_be_bytes()));
        }
        packets.push(with(&sound, 7, &[0]));
    }
    for first in EXTENSIONS {
        for next in EXTENSIONS {
            // Each says that it is longer than the packet, or what it is; and a chain of them.
            packets.push(v6(us, server, first, &[&[next, 255][..], &noise.bytes(30)].concat()));
            packets.push(v6(us, server, first, &[&[next, 0][..], &noise.bytes(6)].concat()));
            packets.push(v6(us, server, first, &[&[next][..]].concat()));
            let chain: Vec<u8> = (0..150).flat_map(|n| [[first, next][n % 2], 0, 1, 4, 0, 0, 0, 0]).collect();
            packets.push(v6(us, server, first, &chain));
        }
    }
    for (offset, id) in [(1, 1), (0, 2), (8, 2), (0xfff8, 3), (0xffff_u16, 3)] {
        let [high, low] = offset.to_be_bytes();
        packets.push(v6(us, server, 44, &[&[17, 0, high, low, 0, 0, 0, id][..], &noise.bytes(24)].concat()));
    }
}

fn v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let head = [0x45, 0, high, low, 0, 7, 0, 0, 64, protocol, 0, 0];
    sums([&head[..], &source.octets(), &destination.octets(), payload].concat())
}

fn v6(source: Ipv6Addr, destination: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let head = [0x60, 0, 0, 0, high, low, next, 64];
    [&head[..], &source.octets(), &destination.octets(), payload].concat()
}

/// A packet with these bytes from `at` on; of IPv4 the checksum is right again, so that more of it is looked at.
fn with(packet: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    if packet[0] >> 4 == 4 { sums(packet) } else { packet }
}

fn sums(mut packet: Vec<u8>) -> Vec<u8> {
    let header = (usize::from(packet[0] & 15) * 4).min(packet.len());
    packet[10..12].fill(0);
    let words = packet[..header].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16 + (folded >> 16) as u16)).to_be_bytes());
    packet
}

/// The same noise each time (xorshift).
struct Noise(u64);

impl Noise {
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let next = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) as u8
        };
        (0..len).map(next).collect()
    }
}

/// An interface, below IP.
struct Wire {
    socket: OwnedFd,
    address: LinkAddr,
}

impl Wire {
    fn open(interface: &str) -> Wire {
        let all = SockProtocol::EthAll;
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), all).expect("a packet socket");
        let index = if_nametoindex(interface).expect("the interface") as usize;
        // Without a hardware address an interface is not listed with one of this kind, but what leaves by it has it.
        let out = UdpSocket::bind("0.0.0.0:0").and_then(|us| us.send_to(&[], (V4[0], 9)));
        out.expect("a way to the server");
        loop {
            let (_, from) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut [0; 64]).expect("what leaves is seen here");
            if let Some(address) = from.filter(|from| from.ifindex() == index) {
                return Wire { socket, address };
            }
        }
    }

    /// Whether the kernel takes it.
    fn send(&self, packet: &[u8]) -> bool {
        sendto(self.socket.as_raw_fd(), packet, &self.address, MsgFlags::empty()).is_ok()
    }
}
