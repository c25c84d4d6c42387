//! TUN and TAP interfaces without offloads, by which a namespace's packets come to a program and leave it.
//!
//! Without a virtio header (`IFF_VNET_HDR`) the kernel may hand over nothing unfinished: it cuts what TCP sends in one
//! piece (GSO) to the MTU, and completes checksums, before a packet is read here. What is written is not merged (GRO)
//! either, so both ends see the packets that the simulated network sees.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::sys;

/// Where TUN devices come from.
pub const DEVICE: &str = "/dev/net/tun";

/// How many packets wait to be read, at most (`txqueuelen`).
///
/// The kernel takes a packet off its sender's account when it enters this queue, and what finds the queue full is lost
/// in silence: neither TCP small queues nor a send buffer (nor byte queue limits, which TUN lacks) hold a sender back
/// here. So the queue has to take what may be sent at once while the reader is busy elsewhere. The default, 500, is less
/// than one connection's window. 10,000 are the default largest send buffers (`tcp_wmem`, 4 MiB) of three connections,
/// for 80 kB of pointers; in normal use the queue is empty, and waiting is the simulated network's business.
pub const QUEUE: u32 = 10_000;

/// The kernel's counters of an interface of the namespace of the thread that opened them, from wherever they are read.
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

    /// Packets that were sent by the interface and not taken.
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

    /// Makes an interface whose packets have Ethernet's header, or none, with a name that begins so: its whole name.
    pub fn beside(name: &str, ethernet: bool) -> io::Result<(Tun, String)> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        let kind = if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        let name = sys::make_tun(file.as_fd(), &format!("{name}%d"), kind)?;
        Ok((Tun { file }, name))
    }

    /// Reads one IP packet that the namespace sends; `buffer` holds the MTU, or the packet's end is lost. None if there is
    /// nothing now.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match uninterrupted(|| (&self.file).read(buffer)) {
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Gives one IP packet to the namespace. The kernel refuses what is no IP packet, and everything while the interface
    /// is down; later on, its own rules apply, as to a packet from any interface.
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
