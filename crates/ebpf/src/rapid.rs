//! A congestion control whose windows this process sets: for the radio legs of a split proxy.
//!
//! [`Windows::load`] loads it under a name of its own, which sockets select with `TCP_CONGESTION`; that takes `CAP_NET_ADMIN`.
//! A socket with a window ([`Windows::set`]) keeps it whatever is lost, and comes back to it after a timeout. One without a
//! window is governed by Reno, and so are all once the time of the last [`Windows::renew`] has expired. The kernel removes it
//! when the process ends for any reason; sockets that outlive it continue with Reno.

use crate::Error;
use crate::loading::{self, attempt};
use crate::skeleton::rapid::RapidSkelBuilder;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Number of names that are tried: other processes of the same number, in other namespaces, may have the first ones.
const NAMES: u32 = 10;

/// See the module's documentation.
#[derive(Debug)]
pub struct Windows {
    name: String,
    targets: MapHandle,
    until: MapHandle,
    /// The congestion control is registered while this exists.
    _link: Link,
}

/// Checks that this machine and user can load it.
pub fn check() -> Result<(), Error> {
    loading::check("a congestion control for windows towards UEs")?;
    loading::check_struct_ops()
}

impl Windows {
    /// Loads it, without windows.
    ///
    /// # Errors
    /// [`Error::Missing`] if the kernel or this user's rights do not suffice, and [`Error::Refused`]. Leaves nothing behind.
    pub fn load() -> Result<Windows, Error> {
        check()?;
        let process = std::process::id();
        let name = |n: u32| if n == 0 { format!("rapid{process}") } else { format!("rapid{process}.{n}") };
        for name in (0..NAMES).map(name) {
            if let Some(windows) = attempt("load rapid", || Windows::load_as(&name))? {
                return Ok(windows);
            }
        }
        Err(Error::Wrong(format!("the names of rapid's congestion control are taken: rapid{process} and others")))
    }

    /// Loads it under a name of up to 15 bytes. Returns `None` if another congestion control has that name.
    fn load_as(name: &str) -> libbpf_rs::Result<Option<Windows>> {
        let mut object = MaybeUninit::uninit();
        let mut open = RapidSkelBuilder::default().open(&mut object)?;
        let place = &mut open.struct_ops.rapid_mut().name;
        place.fill(0);
        for (place, byte) in place[..15].iter_mut().zip(name.bytes()) {
            *place = byte as c_char;
        }
        let mut skeleton = open.load()?;
        let targets = MapHandle::try_from(&skeleton.maps.targets)?;
        let until = MapHandle::try_from(&skeleton.maps.until)?;
        match skeleton.maps.rapid.attach_struct_ops() {
            Ok(link) => Ok(Some(Windows { name: name.to_owned(), targets, until, _link: link })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the name of the congestion control.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the window of a socket in segments; the smallest is 10. It counts once the socket has selected the congestion
    /// control, from its next acknowledgement or burst.
    pub fn set(&self, socket: BorrowedFd<'_>, segments: u32) -> Result<(), Error> {
        let updated = self.targets.update(&socket.as_raw_fd().to_ne_bytes(), &segments.to_ne_bytes(), MapFlags::ANY);
        updated.map_err(Error::refused("set a window"))
    }

    /// Leaves the window of a socket to Reno, from where it is.
    pub fn clear(&self, socket: BorrowedFd<'_>) -> Result<(), Error> {
        match self.targets.delete(&socket.as_raw_fd().to_ne_bytes()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::refused("clear a window")(error)),
            _ => Ok(()),
        }
    }

    /// Keeps all windows in force for this time from now; zero leaves them to Reno.
    pub fn renew(&self, time: Duration) -> Result<(), Error> {
        loading::renew(&self.until, time)
    }
}
