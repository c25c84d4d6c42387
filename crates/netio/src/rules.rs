//! Notices of changes of the rules of nftables, by netlink.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

use crate::Error;

/// The bit of the group `NFNLGRP_NFTABLES`, the seventh.
const GROUP: u32 = 1 << 6;

/// Tells whether rules have changed in this thread's network namespace.
#[derive(Debug)]
pub struct Changes {
    socket: OwnedFd,
}

impl Changes {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn open() -> Result<Changes, Error> {
        let open = || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkNetFilter)?;
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUP))?;
            Ok::<_, Errno>(Changes { socket })
        };
        open().map_err(Error::system("listen to changes of nftables"))
    }

    /// Returns whether rules have changed since the last call.
    pub fn any(&self) -> bool {
        let mut found = false;
        // What they are is of no importance, and so is it if there were too many.
        let mut nothing = [0; 64];
        loop {
            match recv(self.socket.as_raw_fd(), &mut nothing, MsgFlags::empty()) {
                Ok(_) | Err(Errno::ENOBUFS) => found = true,
                Err(_) => return found,
            }
        }
    }
}
