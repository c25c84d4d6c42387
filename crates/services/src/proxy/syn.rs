//! The SYN of a connection that the proxy may take: what it says, and the two ways that it can go on.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};

use netio::{Error, nflog::Logged, sys};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};
use wire::checksum::Sum;
use wire::{Options, ip, tcp};

use super::book::Ends;
use super::flow::Side;
use super::label::{ANNOUNCING, KNOWN, OF_SERVERS, OF_UES, PASSING, set_priority};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// The protocol's number.
const TCP: u8 = 6;
/// Where the checksum is in a TCP header.
const CHECKSUM: std::ops::Range<usize> = 16..18;

/// A packet that was held.
#[derive(Debug)]
pub(super) struct Held {
    destination: IpAddr,
    pub(super) mark: u32,
    /// The interface by which it would leave.
    outgoing: u32,
    packet: Box<[u8]>,
}

/// A SYN that was held.
#[derive(Debug)]
pub(super) struct Syn {
    pub(super) ends: Ends,
    /// The side of its client.
    pub(super) side: Side,
    /// The numbers of the interfaces towards the UE and towards its peer, as far as they are known.
    pub(super) interfaces: [Option<u32>; 2],
    /// Its TOS byte or traffic class.
    pub(super) tos: u8,
    /// The maximum segment size that its client, or a rule of this router, permits.
    pub(super) mss: Option<u16>,
    /// Whether the kernel tracks an established connection of these addresses and ports.
    pub(super) is_known: bool,
    pub(super) held: Held,
}

impl Syn {
    /// Reads a SYN that would leave by one of the interfaces with the numbers `wan` or `ran`.
    ///
    /// # Errors
    /// What was held, if it is no such SYN; `None` if it is no IP packet.
    pub(super) fn read(logged: &Logged, wan: &[u32], ran: &[u32]) -> Result<Syn, Option<Held>> {
        let Logged { packet, mark, incoming, outgoing, prefix } = *logged;
        let ip = ip::View::parse(packet).map_err(|_| None)?;
        let mut packet: Box<[u8]> = ip.bytes().into();
        let side = match outgoing {
            outgoing if wan.contains(&outgoing) => Some(Side::Ran),
            outgoing if ran.contains(&outgoing) => Some(Side::Wan),
            _ => None,
        };
        let tcp =
            tcp::View::parse(ip.payload()).ok().filter(|_| ip.fragment == ip::Fragment::Whole && ip.protocol == TCP);
        if let Some(tcp) = &tcp {
            complete(&mut packet[ip.header_len()..], &ip, tcp.checksum());
        }
        let held = Held { destination: ip.destination, mark, outgoing, packet };
        let (Some(side), Some(tcp)) = (side, tcp) else { return Err(Some(held)) };
        if ![ip.source, ip.destination].into_iter().all(is_of_a_host) {
            return Err(Some(held));
        }
        let (leaves, comes) = (Some(outgoing), came_by(incoming, if side == Side::Ran { ran } else { wan }));
        let interfaces = if side == Side::Ran { [comes, leaves] } else { [leaves, comes] };
        let client = SocketAddr::new(ip.source, tcp.source_port());
        let server = SocketAddr::new(ip.destination, tcp.destination_port());
        let mss = if let Options::Syn(options) = tcp.segment().options { Some(options.mss) } else { None };
        Ok(Syn { ends: (client, server), side, interfaces, tos: ip.tos, mss, is_known: prefix == KNOWN, held })
    }

    /// Whether its server's port is one of these.
    pub(super) fn is_early(&self, ports: &[RangeInclusive<u16>]) -> bool {
        ports.iter().any(|range| range.contains(&self.ends.1.port()))
    }
}

/// Whether a host behind the router may have an address. To others the proxy must not connect: `::` means this machine's loopback
/// address, and a link-local one nothing without an interface.
fn is_of_a_host(address: IpAddr) -> bool {
    let is_special = match address.to_canonical() {
        IpAddr::V4(v4) => address.is_ipv6() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(is_special || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

/// Returns the interface of a side by which a packet came. One of several in a VRF is unknown: the kernel names the VRF.
fn came_by(incoming: u32, side: &[u32]) -> Option<u32> {
    match side {
        [only] => Some(*only),
        several => Some(incoming).filter(|number| several.contains(number)),
    }
}

/// Completes the checksum of a segment if its sender left that to its interface, as a host of the same machine may.
fn complete(segment: &mut [u8], ip: &ip::View, found: u16) {
    let pseudo_header = Sum::pseudo_header(ip.source, ip.destination, ip.protocol, segment.len() as u16);
    // Such a field has the sum of the pseudo-header, not its complement.
    if found == !pseudo_header.clone().checksum() {
        segment[CHECKSUM].fill(0);
        let sum = pseudo_header.with(segment).checksum();
        segment[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Sends SYNs on.
#[derive(Debug)]
pub(super) struct Injector {
    /// For IPv4, and for IPv6 if there is any; of each, for the SYNs of UEs and of servers.
    own: [Option<[OwnedFd; 2]>; 2],
    /// For IPv4, and for IPv6 if there is any: tells the rules of connections that are about to begin.
    announcing: [Option<OwnedFd>; 2],
    /// Renews the lease, by packets to `lease`.
    beat: OwnedFd,
    lease: SocketAddr,
}

impl Injector {
    /// What it sends to the proxy's listeners has this mark. Packets to `lease` renew the lease.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn new(mark: u32, v6: bool, lease: SocketAddr) -> Result<Injector, Error> {
        let with = |v6: bool, priority: u32| -> std::io::Result<OwnedFd> {
            let socket = raw(v6)?;
            sys::set_mark(socket.as_fd(), mark)?;
            set_priority(&socket, priority)?;
            // Without the rule for the mark it must not leave this machine.
            sys::bind_to_device(socket.as_fd(), "lo")?;
            Ok(socket)
        };
        let both = |v6| std::io::Result::Ok([with(v6, OF_UES)?, with(v6, OF_SERVERS)?]);
        let make = || -> std::io::Result<Injector> {
            let beat = socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, None)?;
            sys::set_mark(beat.as_fd(), mark)?;
            let own = [Some(both(false)?), v6.then(|| both(true)).transpose()?];
            let announcing = [Some(with(false, ANNOUNCING)?), v6.then(|| with(true, ANNOUNCING)).transpose()?];
            Ok(Injector { own, announcing, beat, lease })
        };
        make().map_err(Error::system("make a socket that gives SYNs back"))
    }

    /// Gives a SYN to the listener.
    pub(super) fn deliver(&self, syn: &Syn) -> Result<(), Errno> {
        let server = syn.held.destination;
        let [of_ues, of_servers] = self.own[usize::from(server.is_ipv6())].as_ref().ok_or(Errno::AFNOSUPPORT)?;
        send(if syn.side == Side::Ran { of_ues } else { of_servers }, &syn.held)
    }

    /// Tells the rules of nftables that the proxy is about to connect as a client to its server. They take note of the packet and drop it.
    pub(super) fn announce(&self, ends: Ends) {
        if let Some(socket) = &self.announcing[usize::from(ends.1.is_ipv6())] {
            let to = SocketAddr::new(ends.1.ip(), 0);
            // What is dropped is an error.
            let _ = sendto(socket, &announcement(ends), SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &to);
        }
    }

    /// Lets a packet pass, as if it had not been held. The rules of nftables take note of it: should it not get through, because rules
    /// treat this machine's own packets otherwise, the client's next one is not held.
    pub(super) fn pass(&self, held: &Held) -> std::io::Result<()> {
        let socket = raw(held.destination.is_ipv6())?;
        sys::set_mark(socket.as_fd(), held.mark)?;
        set_priority(&socket, PASSING)?;
        sys::bind_to_interface(socket.as_fd(), held.outgoing)?;
        Ok(send(&socket, held)?)
    }

    /// Renews the lease of the proxy. The rules of nftables take note of the packet and drop it.
    pub(super) fn renew(&self) {
        let _ = sendto(&self.beat, &[], SendFlags::DONTWAIT, &self.lease);
    }
}

/// A packet from a client to its server, for the rules alone. It has no checksum, and is a reset, which nobody answers.
fn announcement((client, server): Ends) -> Vec<u8> {
    const RST: u8 = 4;
    let mut bytes = match (client.ip(), server.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0][..], &from.octets(), &to.octets()].concat()
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            [&[0x60, 0, 0, 0, 0, 20, TCP, 64][..], &octets(from), &octets(to)].concat()
        }
    };
    bytes.extend([client.port().to_be_bytes(), server.port().to_be_bytes()].concat());
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 5 << 4, RST, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// A socket that sends IP packets as they are.
fn raw(v6: bool) -> std::io::Result<OwnedFd> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::RAW, FLAGS, Some(ipproto::RAW))?;
    // It receives nothing, whatever the kernel would give it.
    set_socket_recv_buffer_size(&socket, 0)?;
    Ok(socket)
}

fn send(socket: &OwnedFd, held: &Held) -> Result<(), Errno> {
    // A raw socket of IPv6 takes no port.
    let to = SocketAddr::new(held.destination, 0);
    sendto(socket, &held.packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn packet(checksum: impl FnOnce(u16, u16) -> u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 1, 0, 2], [10, 2, 0, 2], 64)
            .tcp(40_000, 443, 7, 64_000)
            .syn()
            .write(&mut bytes, &[])
            .expect("it fits");
        let full = u16::from_be_bytes([bytes[36], bytes[37]]);
        let pseudo = Sum::pseudo_header([10, 1, 0, 2].into(), [10, 2, 0, 2].into(), 6, 20).checksum();
        bytes[36..38].copy_from_slice(&checksum(full, !pseudo).to_be_bytes());
        bytes
    }

    fn read(packet: &[u8], outgoing: u32) -> Result<Syn, Option<Held>> {
        Syn::read(&Logged { packet, mark: 5, incoming: 4, outgoing, prefix: &[] }, &[3], &[4])
    }

    #[test]
    fn no_address_of_this_machine_or_of_many_is_a_hosts() {
        let is = |text: &str| is_of_a_host(text.parse().expect("an address"));
        for text in ["10.1.0.2", "192.0.2.1", "169.254.1.1", "2001:db8::1", "fd00::1"] {
            assert!(is(text), "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.9.9.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.0.2",
        ] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn a_checksum_is_completed_where_its_sender_left_it_open_and_kept_where_it_is_wrong() {
        let right = packet(|full, _| full);
        let of = |bytes: &[u8]| read(bytes, 3).expect("it is a SYN").held.packet;
        assert_eq!(*of(&right), right[..]);
        assert_eq!(*of(&packet(|_, partial| partial)), right[..]);
        let wrong = packet(|full, _| full ^ 1);
        assert_eq!(*of(&wrong), wrong[..]);
    }

    #[test]
    fn the_interface_by_which_it_would_leave_tells_its_side() {
        let mut bytes = packet(|full, _| full);
        let syn = read(&bytes, 3).expect("it is a SYN");
        let ends = (([10, 1, 0, 2], 40_000).into(), ([10, 2, 0, 2], 443).into());
        assert_eq!((syn.ends, syn.side, syn.held.mark, syn.tos), (ends, Side::Ran, 5, 0));
        assert_eq!(read(&bytes, 4).map(|syn| syn.side).ok(), Some(Side::Wan));
        assert!(!syn.is_known);
        let known = Logged { packet: &bytes, mark: 5, incoming: 4, outgoing: 3, prefix: KNOWN };
        assert!(Syn::read(&known, &[3], &[4]).expect("it is a SYN").is_known);
        // Whatever else is held can pass.
        assert!(matches!(read(&bytes, 5), Err(Some(Held { outgoing: 5, .. }))));
        // Routers may fragment it, or have done so.
        bytes[6] = 0;
        assert!(read(&bytes, 3).is_ok());
        bytes[6] = 0x20;
        assert!(matches!(read(&bytes, 3), Err(Some(_))));
    }

    #[test]
    fn the_interfaces_of_a_connection_are_known_unless_it_came_by_one_of_several_in_a_vrf() {
        let bytes = packet(|full, _| full);
        let interfaces = |incoming, outgoing, [wan, ran]: [&[u32]; 2]| {
            let logged = Logged { packet: &bytes, mark: 0, incoming, outgoing, prefix: &[] };
            Syn::read(&logged, wan, ran).expect("it is a SYN").interfaces
        };
        assert_eq!(interfaces(5, 3, [&[3, 7], &[4, 5]]), [Some(5), Some(3)]);
        assert_eq!(interfaces(7, 5, [&[3, 7], &[4, 5]]), [Some(5), Some(7)]);
        // A VRF has the number 9.
        assert_eq!(interfaces(9, 3, [&[3, 7], &[4, 5]]), [None, Some(3)]);
        assert_eq!(interfaces(9, 3, [&[3, 7], &[4]]), [Some(4), Some(3)]);
    }

    #[test]
    fn an_announcement_has_the_ends_of_its_connection_and_asks_for_no_answer() {
        for [client, server] in [["10.1.0.2:40000", "10.2.0.2:443"], ["[fd01::2]:40000", "[fd02::2]:443"]] {
            let ends: Ends = (client.parse().expect("an address"), server.parse().expect("an address"));
            let packet = announcement(ends);
            let ip = ip::View::parse(&packet).expect("it is a packet");
            let tcp = tcp::View::parse(ip.payload()).expect("it is a segment");
            let found = [(ip.source, tcp.source_port()), (ip.destination, tcp.destination_port())];
            assert_eq!(found, [ends.0, ends.1].map(|end| (end.ip(), end.port())));
            assert_eq!(ip.payload()[13], 4);
        }
    }

    #[test]
    fn any_packet_is_a_syn_or_nothing() {
        bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| drop(read(bytes, 3)));
    }
}
