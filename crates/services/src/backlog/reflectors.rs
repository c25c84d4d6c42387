//! Hosts that are pinged in turns, to measure round-trip times.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recv, sendto, socket,
};
use units::{Span, Time};
use wire::icmp::{self, Echo};

use netio::Error;

/// Unanswered pings that are remembered. A reply that comes after that many further pings is not counted.
const OUTSTANDING: usize = 1024;
/// Length of a request: a header of eight bytes, and as much content as `ping` sends.
const LEN: usize = 64;

/// Hosts to ping, all of one family: IPv4 or IPv6.
#[derive(Debug)]
pub(super) struct Reflectors {
    socket: OwnedFd,
    v6: bool,
    addresses: Vec<SockaddrStorage>,
    interval: Span,
    id: u16,
    /// Number of pings so far.
    count: u16,
    /// When the next one is due.
    due: Time,
    /// Each ping's number, host and time, by its number modulo [`OUTSTANDING`].
    asked: Vec<Option<(u16, usize, Time)>>,
}

impl Reflectors {
    /// Pings one of these each `interval`.
    pub(super) fn open(addresses: &[IpAddr], interval: Span) -> Result<Reflectors, Error> {
        let v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
        if addresses.is_empty() || addresses.iter().any(|address| address.is_ipv6() != v6) {
            return Err(Error::Wrong("reflectors are all IPv4 addresses or all IPv6 addresses".into()));
        }
        let (family, protocol) = match v6 {
            true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
            false => (AddressFamily::Inet, SockProtocol::Icmp),
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket =
            socket(family, SockType::Raw, flags, protocol).map_err(Error::system("open a socket for pings"))?;
        let addresses = addresses.iter().map(|&address| SocketAddr::new(address, 0).into()).collect();
        // Other pingers use their process number too; what is not ours has another number, or comes from elsewhere.
        let id = std::process::id() as u16;
        let asked = vec![None; OUTSTANDING];
        Ok(Reflectors { socket, v6, addresses, interval, id, count: 0, due: Time::ZERO, asked })
    }

    /// The descriptor that is readable when a reply has come.
    pub(super) fn end(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// When the next ping is due.
    pub(super) fn poll_timeout(&self) -> Time {
        self.due
    }

    /// Sends the ping that is due, if one is. A ping that cannot be sent, as without a route, counts as unanswered.
    pub(super) fn send(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        self.due = now.max(self.due) + self.interval;
        let reflector = usize::from(self.count) % self.addresses.len();
        let request = request(self.v6, self.id, self.count);
        self.asked[usize::from(self.count) % OUTSTANDING] = Some((self.count, reflector, now));
        self.count = self.count.wrapping_add(1);
        let _ = sendto(self.socket.as_raw_fd(), &request, &self.addresses[reflector], MsgFlags::empty());
    }

    /// Returns the next reply that has come: the host's index and the round-trip time.
    pub(super) fn receive(&mut self, now: Time) -> Option<(usize, Span)> {
        let mut buffer = [0; 256];
        loop {
            let packet = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(len) => &buffer[..len],
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            };
            let Some(count) = reply(self.v6, self.id, packet) else { continue };
            let asked = &mut self.asked[usize::from(count) % OUTSTANDING];
            if let Some((_, reflector, at)) = asked.take_if(|asked| asked.0 == count) {
                return Some((reflector, now.saturating_since(at)));
            }
        }
    }
}

/// An echo request with a content of zeros.
fn request(v6: bool, id: u16, seq: u16) -> [u8; LEN] {
    let mut request = [0; LEN];
    request[..icmp::HEADER_LEN].copy_from_slice(&Echo { reply: false, id, seq }.header(v6));
    request
}

/// Returns the number of the ping that this packet replies to, if it is a reply to this pinger. IPv4 packets come with
/// their header.
fn reply(v6: bool, id: u16, packet: &[u8]) -> Option<u16> {
    let header = if v6 { 0 } else { usize::from(packet.first()? & 15) * 4 };
    let echo = Echo::parse(v6, packet.get(header..)?).ok()?;
    (echo.reply && echo.id == id).then_some(echo.seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Headers, Transport};

    /// An IPv4 packet of ICMP.
    fn packet(icmp: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + icmp.len() as u8, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend_from_slice(icmp);
        packet
    }

    #[test]
    fn a_request_is_an_echo_request_with_a_right_checksum() {
        let request = request(false, 0xfffe, 0x1234);
        let words = request.chunks_exact(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]])));
        assert_eq!(words.sum::<u64>() % 0xffff, 0);
        let packet = packet(&request);
        let Ok(Headers { transport: Transport::Echo(Echo { reply: false, id, seq }), .. }) = Headers::parse(&packet)
        else {
            panic!("{packet:?}");
        };
        assert_eq!((id, seq), (0xfffe, 0x1234));
    }

    #[test]
    fn only_replies_with_our_number_are_ours() {
        let echo = |kind: u8, id: u16| {
            let mut icmp = request(false, id, 513);
            icmp[0] = kind;
            icmp
        };
        assert_eq!(reply(false, 7, &packet(&echo(0, 7))), Some(513));
        assert_eq!(reply(false, 7, &packet(&echo(0, 8))), None);
        assert_eq!(reply(false, 7, &packet(&echo(8, 7))), None);
        assert_eq!(reply(true, 7, &echo(129, 7)), Some(513));
        assert_eq!(reply(true, 7, &echo(128, 7)), None);
        for len in 0..28 {
            assert_eq!(reply(false, 7, &packet(&echo(0, 7))[..len]), None);
        }
        assert_eq!(reply(false, 7, &[]), None);
    }
}
