//! The headers of the packets of TCP connections with one server, on the interface of the route to it.
//!
//! A packet socket of the kind that gives IP packets without the header of the link, so that any interface will do; a classic packet
//! filter for the server's address and port; a ring of packets in memory. Only opening it takes a capability (`CAP_NET_RAW`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K,
    BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_RSH, BPF_W, BPF_X, sock_filter,
};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::socket::own_address;
use crate::sys::{self, Caught, PacketRing, SNAP};
use crate::{Error, rights};

/// The packets of connections with a server.
#[derive(Debug)]
pub struct Sniffer {
    ring: PacketRing,
    socket: OwnedFd,
}

impl Sniffer {
    /// Begins to keep the packets of TCP connections with this address and port on an interface.
    ///
    /// # Errors
    /// [`Error::Missing`] without `CAP_NET_RAW`; [`Error::System`].
    pub fn open(interface: &str, server: SocketAddr) -> Result<Sniffer, Error> {
        if !rights::has(rights::CapabilitySet::NET_RAW) {
            return Err(Error::Missing("a capture needs the capability CAP_NET_RAW".into()));
        }
        let open = || -> io::Result<Sniffer> {
            let index = nix::net::if_::if_nametoindex(interface)?;
            // Without a protocol it receives nothing before it is bound.
            let socket = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
            sys::attach_filter(socket.as_fd(), &filter(server))?;
            if interface == LOOPBACK {
                // What it sends comes back as what it receives.
                sys::ignore_outgoing(socket.as_fd())?;
            }
            let ring = PacketRing::new(socket.as_fd())?;
            sys::bind_packet(socket.as_fd(), index)?;
            Ok(Sniffer { ring, socket })
        };
        open().map_err(Error::system(format!("capture on {interface}")))
    }

    /// Copies the beginning of the next packet; `None` if there is none now.
    pub fn take(&mut self, buffer: &mut [u8; SNAP]) -> Option<Caught> {
        self.ring.take(buffer)
    }

    /// Returns the number of packets that found no room in the ring since the last call.
    ///
    /// # Errors
    /// Any that the system returns.
    pub fn dropped(&self) -> io::Result<u32> {
        sys::packets_lost(self.socket.as_fd())
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The loopback interface.
const LOOPBACK: &str = "lo";

/// Returns the interface of the route to a server.
///
/// # Errors
/// [`Error::Missing`] if there is no route; [`Error::System`].
pub fn interface_to(server: SocketAddr) -> Result<String, Error> {
    let local = own_address(server, None).map_err(Error::system(format!("find the route to {}", server.ip())))?;
    if local == server.ip() || local.is_loopback() {
        return Ok(LOOPBACK.to_owned());
    }
    let addresses = getifaddrs().map_err(Error::system("list interfaces"))?;
    let has = |address: &nix::ifaddrs::InterfaceAddress| {
        let storage = address.address?;
        let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    let found = addresses.into_iter().find(|address| has(address) == Some(local));
    found
        .map(|address| address.interface_name)
        .ok_or_else(|| Error::Missing(format!("no interface has the address {local}")))
}

/// A program of the classic packet filter in the making.
struct Program(Vec<sock_filter>);

impl Program {
    fn push(&mut self, code: u32, k: u32) {
        self.0.push(sock_filter { code: code as u16, jt: 0, jf: 0, k });
    }

    /// Loads a value, and goes to the instruction `otherwise` if it is not the wanted one.
    fn expect(&mut self, load: u32, at: u32, wanted: u32, otherwise: usize) {
        self.push(load, at);
        let jf = (otherwise - self.0.len() - 1) as u8;
        self.0.push(sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf, k: wanted });
    }

    /// Loads a value, and goes to the instruction `otherwise` if it has any of these bits.
    fn refuse(&mut self, load: u32, at: u32, bits: u32, otherwise: usize) {
        self.push(load, at);
        let jt = (otherwise - self.0.len() - 1) as u8;
        self.0.push(sock_filter { code: (BPF_JMP | BPF_JSET | BPF_K) as u16, jt, jf: 0, k: bits });
    }
}

/// Builds the program that accepts the packets of TCP connections with a server, and of them the headers alone, which are shorter than
/// [`SNAP`]. Later fragments, and IPv6 packets with extension headers, are not accepted: TCP sends neither.
fn filter(server: SocketAddr) -> Vec<sock_filter> {
    const WORD: u32 = BPF_LD | BPF_W | BPF_ABS;
    const HALF: u32 = BPF_LD | BPF_H | BPF_ABS;
    const BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    /// The kernel's own idea of the protocol, which the header of the link had.
    const PROTOCOL: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    let (octets, source) = match server.ip() {
        IpAddr::V4(v4) => (v4.octets().to_vec(), 12),
        IpAddr::V6(v6) => (v6.octets().to_vec(), 8),
    };
    let words: Vec<u32> = octets.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]])).collect();
    // Instructions before the addresses, and for each of them.
    let (before, each) = (if server.is_ipv4() { 7 } else { 5 }, 2 * words.len() + 7);
    let refusal = before + 2 * each;
    let mut program = Program(Vec::with_capacity(refusal + 1));
    if server.is_ipv4() {
        program.expect(HALF, PROTOCOL, libc::ETH_P_IP as u32, refusal);
        program.expect(BYTE, 9, libc::IPPROTO_TCP as u32, refusal);
        program.refuse(HALF, 6, 0x1fff, refusal);
        // The ports come after a header of this length.
        program.push(BPF_LDX | BPF_B | BPF_MSH, 0);
    } else {
        program.expect(HALF, PROTOCOL, libc::ETH_P_IPV6 as u32, refusal);
        program.expect(BYTE, 6, libc::IPPROTO_TCP as u32, refusal);
        program.push(BPF_LDX | BPF_W | BPF_IMM, 40);
    }
    // From the server, or else to it.
    for (address, port, otherwise) in [(source, 0, before + each), (source + octets.len() as u32, 2, refusal)] {
        for (&word, at) in words.iter().zip((address..).step_by(4)) {
            program.expect(WORD, at, word, otherwise);
        }
        program.expect(BPF_LD | BPF_H | BPF_IND, port, server.port().into(), otherwise);
        // The length of TCP's header in words is in the upper half of a byte.
        program.push(BPF_LD | BPF_B | BPF_IND, 12);
        program.push(BPF_ALU | BPF_AND | BPF_K, 0xf0);
        program.push(BPF_ALU | BPF_RSH | BPF_K, 2);
        program.push(BPF_ALU | BPF_ADD | BPF_X, 0);
        program.push(BPF_RET | BPF_A, 0);
    }
    program.push(BPF_RET | BPF_K, 0);
    program.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Runs a program on a packet, as the kernel does; the protocol of the link follows from the packet's version.
    fn run(program: &[sock_filter], packet: &[u8]) -> u32 {
        let (mut a, mut x, mut at) = (0, 0, 0);
        let bytes = |from: u32, count: usize| {
            let part = packet.get(from as usize..from as usize + count)?;
            Some(part.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
        };
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let loaded = match u32::from(code) {
                code if code == BPF_LD | BPF_H | BPF_ABS && k == (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32 => {
                    Some(if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd })
                }
                code if code == BPF_LD | BPF_W | BPF_ABS => bytes(k, 4),
                code if code == BPF_LD | BPF_H | BPF_ABS => bytes(k, 2),
                code if code == BPF_LD | BPF_B | BPF_ABS => bytes(k, 1),
                code if code == BPF_LD | BPF_H | BPF_IND => bytes(x + k, 2),
                code if code == BPF_LDX | BPF_B | BPF_MSH => {
                    x = 4 * (u32::from(packet[k as usize]) & 15);
                    Some(a)
                }
                code if code == BPF_LDX | BPF_W | BPF_IMM => {
                    x = k;
                    Some(a)
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if a == k { jt } else { jf });
                    Some(a)
                }
                code if code == BPF_JMP | BPF_JSET | BPF_K => {
                    at += usize::from(if a & k > 0 { jt } else { jf });
                    Some(a)
                }
                code if code == BPF_LD | BPF_B | BPF_IND => bytes(x + k, 1),
                code if code == BPF_ALU | BPF_AND | BPF_K => Some(a & k),
                code if code == BPF_ALU | BPF_RSH | BPF_K => Some(a >> k),
                code if code == BPF_ALU | BPF_ADD | BPF_X => Some(a + x),
                code if code == BPF_RET | BPF_K => return k,
                code if code == BPF_RET | BPF_A => return a,
                code => panic!("{code}"),
            };
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
        }
    }

    /// A packet with 24 bytes of TCP's header and 100 of payload.
    fn packet(from: &str, to: &str, protocol: u8) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().expect("valid"), to.parse().expect("valid"));
        let header = wire::ip::Header { source: from.ip(), destination: to.ip(), tos: 0, protocol, payload_len: 124 };
        let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
        [&header.to_bytes().expect("it fits")[..], &ports, &[0; 8], &[0x6f; 12], &[0; 100]].concat()
    }

    #[test]
    fn only_headers_of_tcp_with_the_server_and_its_port_are_accepted() {
        const TCP: u8 = 6;
        for (server, client, other, headers) in [
            ("192.0.2.1:5231", "10.0.0.2:40000", "192.0.2.2:5231", 20 + 24),
            ("[2001:db8::1]:5231", "[2001:db8::2]:40000", "[2001:db8::3]:5231", 40 + 24),
        ] {
            let filter = filter(server.parse().expect("valid"));
            let accepts = |from, to, protocol| run(&filter, &packet(from, to, protocol));
            assert_eq!((accepts(server, client, TCP), accepts(client, server, TCP)), (headers, headers));
            assert_eq!((accepts(other, client, TCP), accepts(client, other, TCP)), (0, 0));
            assert_eq!((accepts(server, client, 17), accepts(client, server, 17)), (0, 0));
            let port = server.replace("5231", "443");
            assert_eq!((accepts(&port, client, TCP), accepts(client, &port, TCP)), (0, 0));
            // The port belongs to the server, not to its client.
            assert_eq!(accepts(&client.replace("40000", "5231"), &port, TCP), 0);
            let mut short = packet(server, client, TCP);
            short.truncate(short.len() - 124);
            assert_eq!(run(&filter, &short), 0);
        }
        let v4 = filter("192.0.2.1:5231".parse().expect("valid"));
        let mut fragment = packet("192.0.2.1:5231", "10.0.0.2:1", TCP);
        fragment[7] = 9;
        assert_eq!(run(&v4, &fragment), 0);
        assert_eq!(run(&v4, &packet("[2001:db8::1]:5231", "[2001:db8::2]:1", TCP)), 0);
    }

    #[test]
    fn the_route_to_this_host_is_loopback() {
        assert_eq!(interface_to(([127, 0, 0, 1], 5231).into()).expect("there is loopback"), "lo");
    }

    #[test]
    fn root_packets_are_kept_up_to_the_ring_and_counted_beyond() {
        use std::io::{Read, Write};
        const TURNS: usize = 12_000;
        let has = rights::has(rights::CapabilitySet::NET_RAW);
        if testkit::root::granted(if has { Ok(()) } else { Err("captures need CAP_NET_RAW") }).is_none() {
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is loopback");
        let server = listener.local_addr().expect("it is bound");
        let mut sniffer = Sniffer::open("lo", server).expect("it may");
        let (mut client, mut other) =
            (std::net::TcpStream::connect(server).expect("it listens"), listener.accept().expect("it connects").0);
        for end in [&client, &other] {
            end.set_nodelay(true).expect("an option");
        }
        // Each turn has a packet in each direction, at least.
        let mut byte = [7];
        for _ in 0..TURNS {
            client.write_all(&byte).and_then(|()| other.read_exact(&mut byte)).expect("it is connected");
            other.write_all(&byte).and_then(|()| client.read_exact(&mut byte)).expect("it is connected");
        }
        let (mut buffer, mut kept, mut last) = ([0; SNAP], 0, Duration::ZERO);
        while let Some(caught) = sniffer.take(&mut buffer) {
            kept += 1;
            assert!(caught.time >= last && !caught.is_outgoing && caught.kept <= caught.len as usize, "{caught:?}");
            assert!(caught.kept >= 40 && buffer[0] >> 4 == 4, "{caught:?}");
            last = caught.time;
        }
        let dropped = sniffer.dropped().expect("it is told") as usize;
        assert_eq!((kept, sniffer.dropped().expect("it is told")), (16_384, 0));
        assert!(dropped >= 2 * TURNS + 3 - kept, "{dropped}");
        // The ring goes on after it was full.
        client.write_all(&byte).and_then(|()| other.read_exact(&mut byte)).expect("it is connected");
        assert!(sniffer.take(&mut buffer).is_some_and(|caught| caught.len as usize == caught.kept + 1));
    }
}
