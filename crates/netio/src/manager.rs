//! The service manager that has started this process: it learns when the service is ready, and keeps descriptors while the
//! service is restarted. By `sd_notify(3)` and `sd_listen_fds(3)`, without their library.

use crate::{Error, sys};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrLike, UnixAddr, sendmsg};
use std::env;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// The service manager.
#[derive(Debug)]
pub struct Manager {
    socket: UnixDatagram,
    address: UnixAddr,
}

impl Manager {
    /// Returns the service manager; `None` if nobody waits for messages.
    ///
    /// # Errors
    /// [`Error::Wrong`] if its address is not valid, and [`Error::System`].
    pub fn find() -> Result<Option<Manager>, Error> {
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(None) };
        let bytes = path.as_encoded_bytes();
        let address = match bytes.strip_prefix(b"@") {
            Some(name) => UnixAddr::new_abstract(name),
            None => UnixAddr::new(path.as_os_str()),
        };
        let address = address.map_err(|_| Error::Wrong("NOTIFY_SOCKET is no address of a socket".into()))?;
        let socket = UnixDatagram::unbound().map_err(Error::system("speak to the service manager"))?;
        Ok(Some(Manager { socket, address }))
    }

    /// Reports that the service is ready.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn ready(&self) -> io::Result<()> {
        self.send("READY=1", &[])
    }

    /// Reports that this process is the service's main one from now on, instead of the one that has started it, and ready.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn ready_as_main(&self) -> io::Result<()> {
        self.send(&format!("READY=1\nMAINPID={}", std::process::id()), &[])
    }

    /// Has a descriptor kept, under this name, until it is [forgotten](Manager::forget) or the service is stopped.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        // Without FDPOLL=0, it would be dropped once something can be read from it.
        self.send(&format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"), &[descriptor])
    }

    /// Forgets the descriptors that are kept under this name.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn forget(&self, name: &str) -> io::Result<()> {
        self.send(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), &[])
    }

    fn send(&self, message: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let descriptors: Vec<i32> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let rights = if descriptors.is_empty() { &[][..] } else { &rights };
        let content = [IoSlice::new(message.as_bytes())];
        debug_assert!(self.address.len() > 0, "it has an address");
        sendmsg(self.socket.as_raw_fd(), &content, rights, MsgFlags::MSG_NOSIGNAL, Some(&self.address))?;
        Ok(())
    }
}

/// Takes the descriptors that the service manager has kept, and their names. To be called once, before anything is opened.
pub fn kept() -> Vec<(String, OwnedFd)> {
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    // They may be meant for a process that has started this one.
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').chain(std::iter::repeat("unknown"));
    let descriptors = (0..number("LISTEN_FDS").unwrap_or(0)).filter_map(sys::take_passed);
    names.map(str::to_owned).zip(descriptors).collect()
}
