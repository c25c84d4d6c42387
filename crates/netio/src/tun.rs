//! TUN and TAP interfaces without offloads, by which a namespace's packets come to a program and leave it.
//!
//! Without a virtio header (`IFF_VNET_HDR`) the kernel hands over only finished packets: it segments what TCP sends in one
//! piece (GSO) to the MTU, and completes checksums, before a packet is read here. It does not merge written packets (GRO)
//! either, so both ends see the packets that pass here.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::sys;

/// Where TUN devices come from.
pub const DEVICE: &str = "/dev/net/tun";

/// Most packets that wait to be read (`txqueuelen`).
///
/// A packet that enters this queue no longer counts against its sender's buffer, and one that finds the queue full is lost
/// silently: neither TCP small queues nor a send buffer (nor byte queue limits, which TUN lacks) limit a sender here. So
/// the queue must take what may be sent at once while the reader is busy. The default, 500, is less than one connection's
/// window. 10,000 packets are the largest default send buffers (`tcp_wmem`, 4 MiB) of three connections, for 80 kB of
/// pointers. In normal use the queue is empty.
pub const QUEUE: u32 = 10_000;

/// The kernel's counters of an interface, in the namespace of the thread that opened them, from whatever thread they are
/// read.
#[derive(Debug)]
pub struct Counts {
    file: File,
    interface: String,
}

impl Counts {
    /// Opens the counters of `interface`, in the namespace of the calling thread.
    pub fn open(interface: impl Into<String>) -> io::Result<Counts> {
        // Of this thread: `/proc/net` is that of the process.
        Ok(Counts { file: File::open("/proc/thread-self/net/dev")?, interface: interface.into() })
    }

    /// Returns the packets sent by the interface that nobody read in time.
    pub fn dropped(&self) -> Option<u64> {
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match self.file.read_at(&mut buffer, text.len() as u64).ok()? {
                0 => break,
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
        let text = String::from_utf8(text).ok()?;
        let prefix =
            |line: &'_ str| Some(line.trim_start().strip_prefix(&self.interface)?.strip_prefix(':')?.to_owned());
        // Eight numbers of what was received come first; of what was sent, drops are the fourth.
        text.lines().find_map(prefix)?.split_ascii_whitespace().nth(11)?.parse().ok()
    }
}

/// A TUN device's descriptor: non-blocking, closed on exec. The interface goes away with it.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes the TUN interface `name`, in the namespace of the calling thread.
    pub fn new(name: &str) -> io::Result<Tun> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        sys::make_tun(file.as_fd(), name, libc::IFF_TUN)?;
        Ok(Tun { file })
    }

    /// Makes a TAP interface if `ethernet`, or else a TUN interface, whose name begins with `name`. Returns its whole name.
    pub fn beside(name: &str, ethernet: bool) -> io::Result<(Tun, String)> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        let kind = if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        let name = sys::make_tun(file.as_fd(), &format!("{name}%d"), kind)?;
        Ok((Tun { file }, name))
    }

    /// Reads one packet that the namespace sends; `None` if there is none now. A packet longer than `buffer` loses its end.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match uninterrupted(|| (&self.file).read(buffer)) {
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes one IP packet to the namespace. The kernel refuses what is no IP packet, and everything while the interface is
    /// down; otherwise its own rules apply, as to a packet from any interface.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        // A packet is taken whole or not at all.
        uninterrupted(|| (&self.file).write(packet)).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
