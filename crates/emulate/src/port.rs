//! An end of the network: the TUN interface of a namespace, or an existing interface with hosts behind it.

use netio::attach::{self, Frame, Wire};
use netio::tun::Tun;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Room for the longest frame: that of an existing interface.
pub(crate) const LONGEST: usize = attach::LONGEST;

/// One end of the network.
#[derive(Debug)]
pub(crate) enum Port {
    /// A namespace's interface with its name, whose frames are IP packets.
    Tun(Tun, &'static str),
    /// An existing interface, whose frames are Ethernet's.
    Wire(Wire),
}

impl Port {
    /// Reads the next frame; `None` if there is none now. An error means that the interface is gone for good.
    #[inline]
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<Frame<'a>>> {
        match self {
            // The kernel says no error of a TUN device that is there, and of one that is gone whenever it is asked.
            Port::Tun(tun, _) => {
                Ok(tun.read(buffer)?.map(|len| Frame { bytes: &buffer[..len], ip: Some(0..len), segment: None }))
            }
            // Whatever is wrong here is wrong with one frame, or passes, and is said once.
            Port::Wire(wire) => Ok(wire.receive(buffer).ok()),
        }
    }

    /// Writes a frame. An error means that it takes none now.
    #[inline]
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<()> {
        match self {
            Port::Tun(tun, _) => tun.write(frame),
            Port::Wire(wire) => wire.send(frame),
        }
    }

    /// Whether the interface is gone. A TUN interface reports that when it is read; an existing one has to be asked.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Port::Wire(wire) if !wire.exists())
    }

    /// The interface's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Port::Tun(_, name) => name,
            Port::Wire(wire) => wire.interface(),
        }
    }

    /// Frames lost because they were not read in time. Those of TUN interfaces are counted in their namespaces.
    pub(crate) fn missed(&self) -> u64 {
        match self {
            Port::Tun(..) => 0,
            Port::Wire(wire) => wire.lost().map_or(0, u64::from),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Tun(tun, _) => tun.as_fd(),
            Port::Wire(wire) => wire.as_fd(),
        }
    }
}
