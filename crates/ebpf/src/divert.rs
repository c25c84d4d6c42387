//! Packets that leave by an interface go through another one, for as long as its owner looks after them.
//!
//! It works below routing, filters and address translation, whose rules stay as they are: what would leave the machine comes
//! to the owner instead, as it would have left. Nothing of it outlives the [`Diversion`]: if the process dies, in whatever
//! way, the kernel detaches the program; if it stands still, the program lets packets pass after the time of the last
//! [`Diversion::renew`].

use crate::Error;
use crate::loading::{self, attach_tcx, attempt};
use crate::skeleton::divert::DivertSkelBuilder;
use crate::sys::Tcx;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Packets with this mark (`SO_MARK`) leave the interface: "RWBL".
pub const MARK: u32 = 0x5257_424c;

/// See the module.
#[derive(Debug)]
pub struct Diversion {
    until: MapHandle,
    /// The program is attached while this is open.
    _link: OwnedFd,
}

/// Whether this machine and user can have one. `what` needs it.
pub fn check(what: &str) -> Result<(), Error> {
    loading::check(what)
}

impl Diversion {
    /// What leaves by the interface `from` goes through `through` (indices in the network namespace of this thread), once
    /// [`Diversion::renew`] has been called.
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

    /// The owner looks after packets for so much longer; not at all from now on if that is zero.
    pub fn renew(&self, time: Duration) -> Result<(), Error> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(Error::system("read the clock"))?;
        let end = if time.is_zero() { Duration::ZERO } else { Duration::from(now) + time };
        let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
        let updated = self.until.update(&0_u32.to_ne_bytes(), &end.to_ne_bytes(), MapFlags::ANY);
        updated.map_err(Error::refused("set a time"))
    }
}
