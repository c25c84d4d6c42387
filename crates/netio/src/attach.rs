//! Existing interfaces as the two ends of a network: what comes in on one goes out on the other.
//!
//! Packet sockets (packet(7)) receive and send the frames. By default the kernel hands over unfinished frames: without a
//! checksum, with several TCP segments in one, or merged on arrival. So merging is switched off on the interface while it
//! is open, and what the sender left to its interface is done here: the virtio header before each frame
//! (`PACKET_VNET_HDR`) tells what that is. Senders can keep their offloads. Sent frames are complete, so the interface's own
//! offloads for sending have nothing to do.
//!
//! The machine's own stack still sees incoming frames. An interface should have no address, and must not be a port of a
//! bridge, which would forward every frame a second time.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, setsockopt, socket, sockopt};

use crate::reservation::{Reservation, Role};
use crate::sys::{self, Number};
use crate::{Error, frames, rights};

/// Room for the longest frame: the longest that TCP leaves to an interface to segment, and Ethernet with its tags.
pub const LONGEST: usize = 65_536 + 64;
/// Length of a VLAN tag, which the kernel takes out of a frame and reports beside it.
const TAG: usize = 4;
/// Receive buffer in the kernel, including its overhead for each frame: some 10 ms at 10 Gbit/s.
const WAITING: usize = 16 << 20;
/// An Ethernet-like interface (`ARPHRD_ETHER`).
const ETHERNET: u16 = 1;

/// An interface whose frames a program receives, and by which it sends, for as long as this exists.
#[derive(Debug)]
pub struct Wire {
    socket: OwnedFd,
    interface: String,
    index: u32,
    /// The offloads that were switched off.
    changed: Vec<&'static Offload>,
    reservation: Option<Reservation>,
}

/// A frame that came in, without its check sequence.
#[derive(Debug)]
pub struct Frame<'a> {
    /// All of it, with VLAN tags. Checksums are complete if `segment` is `None`.
    pub bytes: &'a [u8],
    /// Where its IP packet is, if it has one for the network. Otherwise the frame goes straight to the other side
    /// ([`frames::packet`]).
    pub ip: Option<Range<usize>>,
    /// Payload bytes of each frame that this one stands for, if the sender left segmentation to its interface: see
    /// [`frames::cut`].
    pub segment: Option<u16>,
}

/// Checks that [`open`] would work. Changes nothing.
pub fn check(interfaces: [&str; 2]) -> Result<(), Error> {
    find(interfaces).map(drop)
}

/// Opens two interfaces of this thread's network namespace. Nothing is changed unless both can be opened.
pub fn open(interfaces: [&str; 2]) -> Result<[Wire; 2], Error> {
    let mut wires = find(interfaces)?;
    for wire in &mut wires {
        let (interface, index) = (&wire.interface, wire.index);
        wire.reservation = Some(Reservation::by_index(Role::Packets, interface, index)?);
    }
    for wire in &mut wires {
        wire.hold()?;
    }
    Ok(wires)
}

fn find([one, other]: [&str; 2]) -> Result<[Wire; 2], Error> {
    rights::check_rights()?;
    let wires = [Wire::find(one)?, Wire::find(other)?];
    // An interface may have several names.
    if wires[0].index == wires[1].index {
        return Err(Error::Wrong(format!(
            "cannot attach `{other}`: it is one interface with `{one}`, and two are needed"
        )));
    }
    Ok(wires)
}

impl Wire {
    /// Opens a socket at an interface, which stays as it is.
    fn find(interface: &str) -> Result<Wire, Error> {
        let wrong = |why| Err(Error::Wrong(format!("cannot attach `{interface}`: {why}")));
        let what = || format!("cannot attach `{interface}`");
        let Ok(index) = nix::net::if_::if_nametoindex(interface) else {
            return wrong("there is no such interface".to_owned());
        };
        if let Ok(master) = std::fs::read_link(Path::new("/sys/class/net").join(interface).join("master")) {
            let master = master.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return wrong(format!("it belongs to `{master}`; take it out with: ip link set dev {interface} nomaster"));
        }
        // Without a protocol nothing comes until it is bound, rather than from all interfaces.
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(Error::system(what()))?;
        setsockopt(&socket, sockopt::RcvBufForce, &WAITING).map_err(Error::system(what()))?;
        sys::set_packet_options(socket.as_fd()).map_err(Error::system(what()))?;
        if sys::bind_packet(socket.as_fd(), index).map_err(Error::system(what()))? != ETHERNET {
            return wrong("it does not carry Ethernet frames".to_owned());
        }
        if getsockopt(&socket, sockopt::SocketError).map_err(Error::system(what()))? == Errno::ENETDOWN as i32 {
            return wrong(format!("it is down; bring it up with: ip link set dev {interface} up"));
        }
        Ok(Wire { socket, interface: interface.to_owned(), index, changed: Vec::new(), reservation: None })
    }

    /// Lets the interface receive frames for any address, and merge none.
    fn hold(&mut self) -> Result<(), Error> {
        let what = || format!("cannot attach `{}`", self.interface);
        sys::be_promiscuous(self.socket.as_fd(), self.index).map_err(Error::system(what()))?;
        for offload in &OFFLOADS {
            // What cannot be switched off stays: it comes as what it was merged from, only all at once.
            if offload.is_on(self).unwrap_or(false) && offload.switch(self, false).is_ok() {
                self.changed.push(offload);
            }
        }
        Ok(())
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether the interface is still there.
    pub fn exists(&self) -> bool {
        // nix 0.31 takes a null pointer for success, and gives an empty name.
        nix::net::if_::if_indextoname(self.index).is_ok_and(|name| !name.is_empty())
    }

    /// Receives a frame that came in on the interface, not one that this machine sent. `buffer` has at least [`LONGEST`]
    /// bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none. Any other error means that one frame was lost, or that the interface
    /// went down, and may come back.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Frame<'a>> {
        let Some(room) = buffer.get_mut(TAG..) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut header = [0; sys::VNET_HEADER];
        let received = sys::receive_frame(self.socket.as_fd(), &mut header, room)?;
        if received.truncated {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is longer than the buffer"));
        }
        let todo = Todo::of(&header);
        if let (Some((start, offset)), None) = (todo.checksum, todo.segment) {
            frames::complete(&mut room[..received.len], start, offset);
        }
        let mut bytes = TAG..TAG + received.len;
        // A frame has two addresses before its tags.
        if let (Some(tag), 12..) = (received.tag, received.len) {
            buffer.copy_within(TAG..TAG + 12, 0);
            buffer[12..16].copy_from_slice(&tag);
            bytes.start = 0;
        }
        let bytes = &buffer[bytes];
        Ok(Frame { bytes, ip: frames::packet(bytes), segment: todo.segment })
    }

    /// Sends a frame out on the interface.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the interface has no room for it now.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let nothing_to_do = [0; sys::VNET_HEADER];
        nix::sys::uio::writev(&self.socket, &[IoSlice::new(&nothing_to_do), IoSlice::new(frame)])?;
        Ok(())
    }

    /// Returns the number of frames lost since the last call because the receive buffer was full.
    pub fn lost(&self) -> io::Result<u32> {
        sys::packets_lost(self.socket.as_fd())
    }

    /// Returns shell commands that restore the interface if this process dies; empty if nothing was changed.
    pub fn restore_lines(&self) -> String {
        if self.changed.is_empty() {
            return String::new();
        }
        let on: String = self.changed.iter().map(|offload| format!(" {} on", offload.name)).collect();
        // An interface may be called anything but for `/`, `:` and spaces.
        format!("ethtool -K '{}'{on}\n", self.interface.replace('\'', r"'\''"))
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for offload in &self.changed {
            // Fails only if the interface is gone.
            let _ = offload.switch(self, true);
        }
    }
}

/// An offload: what an interface does to frames before they are received.
#[derive(Debug)]
struct Offload {
    name: &'static str,
    get: Number,
    set: Number,
    bit: u32,
}

/// The offloads that merge frames, in the order in which they can be switched on. Merging in hardware depends on `rx`,
/// checksum validation.
const OFFLOADS: [Offload; 3] = [
    Offload { name: "rx", get: Number::GetRxChecksum, set: Number::SetRxChecksum, bit: 1 },
    Offload { name: "gro", get: Number::GetGro, set: Number::SetGro, bit: 1 },
    Offload { name: "lro", get: Number::GetFlags, set: Number::SetFlags, bit: 1 << 15 },
];

impl Offload {
    fn is_on(&self, wire: &Wire) -> io::Result<bool> {
        Ok(sys::ethtool(wire.as_fd(), &wire.interface, self.get, 0)? & self.bit != 0)
    }

    fn switch(&self, wire: &Wire, on: bool) -> io::Result<()> {
        let others = sys::ethtool(wire.as_fd(), &wire.interface, self.get, 0)? & !self.bit;
        sys::ethtool(wire.as_fd(), &wire.interface, self.set, others | if on { self.bit } else { 0 })?;
        Ok(())
    }
}

/// What a sender left to its interface to do (`struct virtio_net_hdr`).
#[derive(Debug, PartialEq)]
struct Todo {
    /// Where the checksummed bytes begin, and the checksum's offset from there.
    checksum: Option<(usize, usize)>,
    segment: Option<u16>,
}

impl Todo {
    fn of(header: &[u8; sys::VNET_HEADER]) -> Todo {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let checksum = (header[0] & 1 != 0).then(|| (usize::from(word(6)), usize::from(word(8))));
        // TCP over IPv4, TCP over IPv6, and UDP; a bit beside them says that the first has CWR.
        let segment = matches!(header[1] & 0x7f, 1 | 4 | 5).then(|| word(4));
        Todo { checksum, segment }
    }
}

#[cfg(test)]
mod tests;
