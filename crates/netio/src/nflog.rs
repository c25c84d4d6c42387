//! Packets that a rule of nftables logs to a group (`log group`), by netlink (`nfnetlink_log`).
//!
//! The kernel's messages are read here and nowhere else. A message that does not make sense is skipped: the kernel wrote it, but a
//! later one may know more attributes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, setsockopt, socket,
    sockopt,
};

use crate::Error;
use crate::netlink::{self, OF_NETFILTER, attributes, messages};

/// `NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET` and `… | NFULNL_MSG_CONFIG`.
const PACKET: u16 = 4 << 8;
const CONFIG: u16 = 4 << 8 | 1;
/// Attributes of a configuration (`enum nfulnl_attr_config`), and its command to bind.
const CONFIG_COMMAND: u16 = 1;
const CONFIG_MODE: u16 = 2;
const CONFIG_BUFFER: u16 = 3;
const CONFIG_THRESHOLD: u16 = 5;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// Attributes of a packet (`enum nfulnl_attr_type`).
const MARK: u16 = 2;
const INCOMING: u16 = 4;
const OUTGOING: u16 = 5;
const PAYLOAD: u16 = 9;
const PREFIX: u16 = 10;
/// The least size of a message in bytes. It has room for a SYN and its attributes; longer packets get longer messages.
const MESSAGE: u32 = 512;
/// Kernel memory for messages that wait, each of which takes about twice its size.
const ROOM: usize = 16 << 20;

/// The packets of a group.
#[derive(Debug)]
pub struct Log {
    socket: OwnedFd,
    group: u16,
    buffer: Vec<u8>,
}

/// A packet that was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// The IP packet, whole.
    pub packet: &'a [u8],
    /// Its mark.
    pub mark: u32,
    /// The number of the interface by which it came, which may be a VRF; 0 if this machine sends it.
    pub incoming: u32,
    /// The number of the interface by which it would leave; 0 if none is known yet.
    pub outgoing: u32,
    /// The prefix that the rule gives it (`log prefix`); empty without one.
    pub prefix: &'a [u8],
}

impl Log {
    /// Listens to the first group of `groups` that is free in this thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Missing`] if all are in use or the kernel lacks `nfnetlink_log`; [`Error::System`].
    pub fn open(groups: impl IntoIterator<Item = u16>) -> Result<Log, Error> {
        let what = || "listen to packets that nftables logs";
        for group in groups {
            match Log::bind(group) {
                Ok(log) => return Ok(log),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM)) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    return Err(Error::Missing(
                        "this kernel lacks nfnetlink_log (CONFIG_NETFILTER_NETLINK_LOG)".into(),
                    ));
                }
                Err(error) => return Err(Error::system(what())(error)),
            }
        }
        Err(Error::Missing("other programs use all groups of nfnetlink_log that were tried, or it is forbidden".into()))
    }

    fn bind(group: u16) -> io::Result<Log> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkNetFilter)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        // It takes CAP_NET_ADMIN; without more room, fewer SYNs may come at once.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &ROOM);
        let mut log = Log { socket, group, buffer: vec![0; 128 << 10] };
        log.configure(CONFIG_COMMAND, &[BIND])?;
        let [a, b, c, d] = u32::from(u16::MAX).to_be_bytes();
        log.configure(CONFIG_MODE, &[a, b, c, d, COPY_PACKET, 0])?;
        log.configure(CONFIG_BUFFER, &MESSAGE.to_be_bytes())?;
        // Each at once.
        log.configure(CONFIG_THRESHOLD, &1_u32.to_be_bytes())?;
        Ok(log)
    }

    /// The group's number, for the rule.
    pub fn group(&self) -> u16 {
        self.group
    }

    fn configure(&mut self, attribute: u16, value: &[u8]) -> io::Result<()> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let request = netlink::request(CONFIG, flags, 0, self.group, attribute, value);
        sendto(self.socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        // The kernel answers in the call. A packet may come before the answer to a later request.
        for _ in 0..64 {
            let count = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            let answer = messages(&self.buffer[..count]).find(|(kind, _)| i32::from(*kind) == libc::NLMSG_ERROR);
            if let Some((_, body)) = answer {
                let failure = netlink::failure(body);
                // An acknowledgement is an error with the number 0.
                return if failure.raw_os_error() == Some(0) { Ok(()) } else { Err(failure) };
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Calls `act` for packets that were logged. Returns whether there may be more.
    ///
    /// # Errors
    /// [`libc::ENOBUFS`] if packets found no room and are missing.
    pub fn take(&mut self, act: impl FnMut(Logged)) -> io::Result<bool> {
        match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
            Ok(count) => {
                packets(&self.buffer[..count]).for_each(act);
                Ok(true)
            }
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Log {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the packets in netlink messages.
fn packets(bytes: &[u8]) -> impl Iterator<Item = Logged<'_>> {
    messages(bytes).filter(|(kind, _)| *kind == PACKET).filter_map(|(_, body)| {
        let (mut packet, mut mark, mut incoming, mut outgoing, mut prefix) = (None, 0, 0, 0, &[][..]);
        let number = |value: &[u8]| value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        for (kind, value) in attributes(body.get(OF_NETFILTER..)?) {
            match kind {
                PAYLOAD => packet = Some(value),
                MARK => mark = number(value),
                INCOMING => incoming = number(value),
                OUTGOING => outgoing = number(value),
                // The kernel ends it with a zero.
                PREFIX => prefix = value.split(|&byte| byte == 0).next().unwrap_or_default(),
                _ => {}
            }
        }
        Some(Logged { packet: packet?, mark, incoming, outgoing, prefix })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::tests::message;

    #[test]
    fn packets_are_found_among_other_messages_and_attributes() {
        let mut bytes = message(libc::NLMSG_ERROR as u16, &[]);
        bytes.extend(message(
            PACKET,
            &[
                (1, &[8, 0, 2, 0]),
                (PREFIX, b"why\0"),
                (MARK, &[0, 0, 1, 2]),
                (INCOMING, &[0, 0, 0, 4]),
                (OUTGOING, &[0, 0, 0, 3]),
                (PAYLOAD, b"abcde"),
            ],
        ));
        bytes.extend(message(PACKET, &[(PAYLOAD | 0x8000, b"f")]));
        bytes.extend(message(PACKET, &[(MARK, &[0, 0, 1, 2])]));
        let found: Vec<Logged> = packets(&bytes).collect();
        let expected = [
            Logged { packet: b"abcde", mark: 0x102, incoming: 4, outgoing: 3, prefix: b"why" },
            Logged { packet: b"f", mark: 0, incoming: 0, outgoing: 0, prefix: b"" },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_are_packets_or_nothing() {
        bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| packets(bytes).for_each(drop));
        // A message that would never end, and one that is longer than it is.
        assert_eq!(packets(&[0; 64]).count(), 0);
        let mut short = message(PACKET, &[(PAYLOAD, b"abcde")]);
        short.truncate(short.len() - 1);
        assert_eq!(packets(&short).count(), 0);
    }
}
