//! Diverts packets that leave through an interface to another interface, as long as a process handles them.
//!
//! It works after routing, filtering and address translation, whose rules stay unchanged: packets that would leave the
//! machine go to the process instead, in their final form. Nothing outlives the [`Diversion`]: if the process dies for
//! any reason, the kernel detaches the program; if the process hangs, the program lets packets pass once the time of
//! the last [`Diversion::renew`] has expired.

use crate::Error;
use crate::loading::{self, attach_tcx, attempt};
use crate::skeleton::divert::DivertSkelBuilder;
use crate::sys::Tcx;
use libbpf_rs::MapHandle;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Packets with this mark (`SO_MARK`) are not diverted: "RWBL".
pub const MARK: u32 = 0x5257_424c;

/// See the module's documentation.
#[derive(Debug)]
pub struct Diversion {
    until: MapHandle,
    /// The program is attached while this is open.
    _link: OwnedFd,
}

/// Checks that this machine and user can divert packets, for the purpose `what`.
pub fn check(what: &str) -> Result<(), Error> {
    loading::check(what)
}

impl Diversion {
    /// Diverts packets that leave through the interface `from` to `through` (indices in the network namespace of this
    /// thread), once [`Diversion::renew`] has been called.
    pub fn start(from: u32, through: u32) -> Result<Diversion, Error> {
        let mut object = MaybeUninit::uninit();
        let mut open = attempt("load the diversion", || DivertSkelBuilder::default().open(&mut object))?;
        let settings = &mut open.maps.rodata_data.as_deref_mut().expect("it has settings").settings;
        (settings.through, settings.mark) = (through, MARK);
        let skeleton = attempt("load the diversion", || open.load())?;
        let until = MapHandle::try_from(&skeleton.maps.until);
        let until = until.map_err(Error::refused("set a time"))?;
        let link = attach_tcx(skeleton.progs.divert.as_fd(), from, Tcx::Egress, "the diversion")?;
        Ok(Diversion { until, _link: link })
    }

    /// Extends the diversion by this time; zero ends it.
    pub fn renew(&self, time: Duration) -> Result<(), Error> {
        loading::renew(&self.until, time)
    }
}
