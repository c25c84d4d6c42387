//! The interface of a modem: its diverted outgoing packets, a socket to send by it, and copies of its incoming packets.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use netio::reservation::{Reservation, Role};
use netio::rights::{self, CapabilitySet};
use netio::tun::{self, Counts, Tun};
use netio::{frames, program, sys};

use netio::Error;

/// Prefix of our interfaces' names.
const NAME: &str = "backlog";
/// To make an interface, and to send and hear packets.
const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);
/// Interfaces by the kind of their packets (`if_arp.h`): Ethernet's frames, and plain IP.
const ETHERNET: u16 = 1;
const PLAIN: [u16; 3] = [512, 519, 0xfffe];
/// Receive buffer for incoming frames, in bytes of kernel memory.
const WAITING: usize = 4 << 20;

/// The interface of a modem.
#[derive(Debug)]
pub(super) struct Modem {
    name: String,
    index: u32,
    ethernet: bool,
    out: OwnedFd,
    ears: OwnedFd,
    tun: Tun,
    beside: u32,
    _reservation: Reservation,
    counts: Counts,
}

impl Modem {
    /// Opens the interface, and makes one beside it to which its packets can be diverted. Sent packets have this mark.
    pub(super) fn open(name: &str, mark: u32) -> Result<Modem, Error> {
        if !rights::has(NEEDED) {
            let why = "shaping needs root (CAP_NET_ADMIN and CAP_NET_RAW): use sudo";
            return Err(Error::Missing(why.into()));
        }
        let what = || format!("cannot shape the traffic of `{name}`");
        let failed = |source: io::Error| Error::System { what: what(), source };
        let wrong = |why: &str| Error::Wrong(format!("{}: {why}", what()));
        let index = nix::net::if_::if_nametoindex(name).map_err(|_| wrong("there is no such interface"))?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // Without a protocol nothing comes to either.
        let packet_socket = || socket(AddressFamily::Packet, SockType::Raw, flags, None);
        let (out, ears) =
            (packet_socket().map_err(Error::system(what()))?, packet_socket().map_err(Error::system(what()))?);
        sys::set_mark(out.as_fd(), mark).map_err(failed)?;
        setsockopt(&ears, sockopt::RcvBufForce, &WAITING).map_err(Error::system(what()))?;
        sys::ignore_outgoing(ears.as_fd()).map_err(failed)?;
        let kind = sys::bind_packet(ears.as_fd(), index).map_err(failed)?;
        let ethernet = kind == ETHERNET;
        if !ethernet && !PLAIN.contains(&kind) {
            return Err(wrong(&format!("it is neither Ethernet nor plain IP (type {kind})")));
        }
        let reservation = Reservation::by_index(Role::Packets, name, index)?;
        let no_device = |source| Error::System { what: format!("{}: {}", what(), tun::DEVICE), source };
        let (tun, beside) = Tun::beside(NAME, ethernet).map_err(no_device)?;
        // Nobody but the modem's packets comes here: no neighbours, no addresses.
        let v6 = format!("/proc/sys/net/ipv6/conf/{beside}/disable_ipv6");
        if let Err(why) = std::fs::write(v6, "1")
            && why.kind() != ErrorKind::NotFound
        {
            return Err(failed(why));
        }
        program::ip(&[], &format!("link set dev {beside} txqueuelen {} arp off multicast off up\n", tun::QUEUE))?;
        let counts = Counts::open(beside.clone()).map_err(failed)?;
        let beside = nix::net::if_::if_nametoindex(beside.as_str()).map_err(Error::system(what()))?;
        Ok(Modem { name: name.to_owned(), index, ethernet, out, ears, tun, beside, counts, _reservation: reservation })
    }

    /// The interface's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The interface's number.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// The number of the interface beside it.
    pub(super) fn beside(&self) -> u32 {
        self.beside
    }

    /// Whether the interface is still there.
    pub(super) fn exists(&self) -> bool {
        nix::net::if_::if_indextoname(self.index).is_ok_and(|name| !name.is_empty())
    }

    /// Packets dropped by the full queue of the interface beside it, since the start.
    pub(super) fn missed(&self) -> Option<u64> {
        self.counts.dropped()
    }

    /// Incoming frames that found no room in the receive buffer, since the last call.
    pub(super) fn unheard(&self) -> u64 {
        sys::packets_lost(self.ears.as_fd()).map_or(0, u64::from)
    }

    /// Returns where in a frame of the interface the IP packet is, if there is one.
    pub(super) fn packet(&self, frame: &[u8]) -> Option<Range<usize>> {
        if self.ethernet { frames::packet(frame) } else { Some(0..frame.len()) }
    }

    /// Reads the next outgoing frame; `None` if there is none now.
    pub(super) fn take<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        Ok(self.tun.read(buffer)?.map(|len| &buffer[..len]))
    }

    /// Reads the next incoming frame; `None` if there is none now. Errors are about single frames, or pass.
    pub(super) fn hear<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let received = nix::sys::socket::recv(
            std::os::fd::AsRawFd::as_raw_fd(&self.ears),
            buffer,
            nix::sys::socket::MsgFlags::empty(),
        );
        received.ok().map(|len| &buffer[..len])
    }

    /// Sends a frame. [`ErrorKind::WouldBlock`] if the interface has no room for it now; with any other error it is lost.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        let protocol = if self.ethernet {
            frame.get(12..14).map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]))
        } else if frame.first().is_some_and(|first| first >> 4 == 6) {
            libc::ETH_P_IPV6 as u16
        } else {
            libc::ETH_P_IP as u16
        };
        sys::send_packet(self.out.as_fd(), self.index, protocol, frame)
    }

    /// The descriptors to poll: for outgoing frames, for incoming frames, and for room to send.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 3] {
        [self.tun.as_fd(), self.ears.as_fd(), self.out.as_fd()]
    }
}
