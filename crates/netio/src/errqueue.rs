//! The error queue of a socket: times of data that was sent, and ICMP errors.

use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg};
use nix::sys::time::TimeSpec;
use units::Span;

/// A point on the way of data, of which the kernel tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Given to the queueing discipline of the interface.
    Scheduled,
    /// Given to the driver of the interface.
    Sent,
    /// Acknowledged by the receiver.
    Acknowledged,
}

/// What the error queue tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Data passed a point.
    Stamp {
        /// The point.
        mark: Mark,
        /// The number of the byte, modulo 2^32 (see [`crate::sys::enable_stamps`]).
        byte: u32,
        /// The wall-clock time, since the Unix epoch.
        time: Span,
    },
    /// An ICMP error about a datagram that was sent.
    Icmp {
        /// Who sent it.
        from: Option<IpAddr>,
        /// The port that the datagram was sent to.
        port: u16,
        /// Whether it says that the hop limit was exceeded.
        hop_limit_exceeded: bool,
    },
    /// Anything else.
    Other,
}

/// Takes the oldest entry of a socket's error queue, and the datagram that it is about as far as it fits into `datagram`, with its
/// length. `None` if the queue is empty.
///
/// # Errors
/// Any that `recvmsg` returns.
pub fn take(socket: BorrowedFd, datagram: &mut [u8]) -> io::Result<Option<(Entry, usize)>> {
    let mut beside = nix::cmsg_space!([TimeSpec; 3], [u64; 8]);
    let mut parts = [IoSliceMut::new(datagram)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = loop {
        match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut beside), flags) {
            Ok(message) => break message,
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    };
    let (mut time, mut error, mut from) = (None, None, None);
    let port = message.address.as_ref().map_or(0, port_of);
    for part in message.cmsgs()? {
        match part {
            ControlMessageOwned::ScmTimestampsns(times) => time = Some(since_epoch(times.system)),
            ControlMessageOwned::Ipv4RecvErr(found, address) => {
                error = Some(found);
                from = address.map(|address| IpAddr::from(u32::from_be(address.sin_addr.s_addr).to_be_bytes()));
            }
            ControlMessageOwned::Ipv6RecvErr(found, address) => {
                error = Some(found);
                from = address.map(|address| IpAddr::from(address.sin6_addr.s6_addr));
            }
            _ => {}
        }
    }
    let entry = match (error, time) {
        (Some(error), Some(time)) if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING => {
            // `SCM_TSTAMP_SND`, `SCM_TSTAMP_SCHED`, `SCM_TSTAMP_ACK` of linux/errqueue.h.
            let mark = match error.ee_info {
                0 => Some(Mark::Sent),
                1 => Some(Mark::Scheduled),
                2 => Some(Mark::Acknowledged),
                _ => None,
            };
            mark.map_or(Entry::Other, |mark| Entry::Stamp { mark, byte: error.ee_data, time })
        }
        (Some(error), _) if error.ee_origin == libc::SO_EE_ORIGIN_ICMP => {
            Entry::Icmp { from, port, hop_limit_exceeded: error.ee_type == 11 }
        }
        (Some(error), _) if error.ee_origin == libc::SO_EE_ORIGIN_ICMP6 => {
            Entry::Icmp { from, port, hop_limit_exceeded: error.ee_type == 3 }
        }
        _ => Entry::Other,
    };
    Ok(Some((entry, message.bytes)))
}

fn port_of(address: &SockaddrStorage) -> u16 {
    let v4 = address.as_sockaddr_in().map(SockaddrIn::port);
    v4.or_else(|| address.as_sockaddr_in6().map(SockaddrIn6::port)).unwrap_or(0)
}

fn since_epoch(time: TimeSpec) -> Span {
    let (seconds, nanos) = (time.tv_sec().max(0) as u64, time.tv_nsec().clamp(0, 999_999_999) as u64);
    Span::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{enable_stamps, send_stamped};
    use std::io::{IoSlice, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    fn all(socket: BorrowedFd, count: usize) -> Vec<Entry> {
        let (mut entries, start) = (Vec::new(), Instant::now());
        while entries.len() < count && start.elapsed() < Duration::from_secs(5) {
            match take(socket, &mut [0; 64]).expect("it can be read") {
                Some((entry, _)) => entries.push(entry),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        entries
    }

    #[test]
    fn a_write_is_stamped_on_its_way_with_the_number_of_its_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is loopback");
        let mut sender = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let mut receiver = listener.accept().expect("it connects").0;
        sender.write_all(b"before").expect("it is open");
        enable_stamps(sender.as_fd()).expect("Linux supports it");
        sender.write_all(&[0; 100]).expect("it is open");
        let (head, tail) = ([1; 30], [2; 20]);
        let sent = send_stamped(sender.as_fd(), &[IoSlice::new(&head), IoSlice::new(&tail)]).expect("it is open");
        assert_eq!(sent, 50);
        receiver.read_exact(&mut [0; 156]).expect("it arrives");
        let entries = all(sender.as_fd(), 3);
        let mut stamps: Vec<_> = entries
            .iter()
            .map(|entry| match *entry {
                Entry::Stamp { mark, byte, time } => (mark, byte, time),
                other => panic!("{other:?}"),
            })
            .collect();
        stamps.sort_unstable();
        assert_eq!(
            stamps.iter().map(|stamp| stamp.0).collect::<Vec<_>>(),
            [Mark::Scheduled, Mark::Sent, Mark::Acknowledged]
        );
        // 100 bytes before it, and 50 of its own.
        assert!(stamps.iter().all(|stamp| stamp.1 == 149), "{stamps:?}");
        assert!(stamps.windows(2).all(|two| two[0].2 <= two[1].2), "{stamps:?}");
        // The kernel says nothing of writes that were not to be stamped.
        assert_eq!(take(sender.as_fd(), &mut []).expect("it can be read"), None);
    }

    #[test]
    fn a_port_that_nobody_has_is_an_icmp_error_from_its_host() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is loopback");
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv4RecvErr, &true).expect("Linux has it");
        let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("there is loopback");
        socket.send_to(b"a probe", free).expect("it can be sent");
        let mut datagram = [0; 64];
        let start = Instant::now();
        let found = loop {
            if let Some(found) = take(socket.as_fd(), &mut datagram).expect("it can be read") {
                break found;
            }
            assert!(start.elapsed() < Duration::from_secs(5));
        };
        let from = Some(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(found, (Entry::Icmp { from, port: free.port(), hop_limit_exceeded: false }, 7));
        assert_eq!(&datagram[..7], b"a probe");
    }
}
