//! TUN and TAP interfaces without offloads, by which a namespace's packets come to a program and leave it.
//!
//! Without a virtio header (`IFF_VNET_HDR`) the kernel hands over only finished packets: it segments what TCP sends in one
//! piece (GSO) to the MTU, and completes checksums, before a packet is read here. It does not merge written packets (GRO)
//! either, so both ends see the packets that pass here.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

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

/// Most memory for written packets that no protocol of the namespace has received yet, in bytes: some 110 packets of 1500
/// bytes, or 340 short ones. If another processor handles them, they wait in its queue of 1,000 packets for all interfaces
/// (`net.core.netdev_max_backlog`). A packet that finds this queue full is lost silently.
const UNTAKEN: i32 = 256 << 10;
/// How long a writer waits for room at most.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

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
        // Eight numbers of what was received come first; of what was sent, drops are the fourth.
        self.number(11)
    }

    /// Returns the packets written to the interface that no protocol received: the kernel refused them ([`Tun::write`]
    /// fails with another error than [`io::ErrorKind::WouldBlock`]), or a processor's queue for incoming packets was full.
    pub fn untaken(&self) -> Option<u64> {
        self.number(3)
    }

    fn number(&self, index: usize) -> Option<u64> {
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
        text.lines().find_map(prefix)?.split_ascii_whitespace().nth(index)?.parse().ok()
    }
}

/// Returns the packets dropped by the machine so far because a processor's queue for incoming packets was full
/// (`net.core.netdev_max_backlog`), of all interfaces and namespaces.
pub fn overflowed() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/softnet_stat")?;
    // A line for each processor, in hexadecimal: packets, drops, ...
    let drops = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    Ok(text.lines().filter_map(drops).sum())
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
        sys::limit_tun(file.as_fd(), UNTAKEN)?;
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
    /// down; otherwise its own rules apply, as to a packet from any interface. While too many packets wait for the
    /// namespace's protocols, this waits, too, for up to 100 ms, and then fails with [`io::ErrorKind::WouldBlock`].
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        // A packet is taken whole or not at all.
        let write = || uninterrupted(|| (&self.file).write(packet)).map(drop);
        match write() {
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLOUT)];
                // Interrupted is as good as ready: it is tried once more.
                let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(WRITE_TIMEOUT)), None);
                write()
            }
            done => done,
        }
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
