//! The lightweight PEP between two interfaces of this host, which forwards between them.
//!
//! It works for as long as the [`Pep`] lives, and takes no part in forwarding: if this process dies, in whatever way, the
//! kernel detaches the programs and packets go on as before.

use crate::Error;
use crate::loading::{self, attempt};
use crate::skeleton::pep::PepSkelBuilder;
use crate::sys::{Tcx, attach_tcx};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// What the program is called that comes first; by it others are recognised.
const FIRST: &str = "pep_wan";
/// Kinds of interfaces (`if_arp.h`): with Ethernet's header before packets, and with none.
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_PPP: u32 = 512;
const ARPHRD_RAWIP: u32 = 519;
const ARPHRD_NONE: u32 = 0xfffe;
const ETHERNET_HEADER: u32 = 14;

/// Between what, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface to the senders.
    pub wan: String,
    /// The interface to the receivers.
    pub ran: String,
    /// Report to senders that have not announced that they understand it, too.
    pub all: bool,
    /// A report for so many segments of data, unless something is missing or a burst ends.
    pub every: u32,
    /// Flows that are remembered at most.
    pub flows: u32,
    /// How long an idle flow is remembered.
    pub idle: Duration,
    /// Attach the programs, and have them look at nothing: for measuring.
    pub blind: bool,
}

impl Options {
    /// The usual, between these interfaces.
    pub fn new(wan: &str, ran: &str) -> Options {
        let idle = Duration::from_secs(120);
        Options { wan: wan.into(), ran: ran.into(), all: false, every: 2, flows: 65_536, idle, blind: false }
    }
}

/// What a PEP has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Segments with data from the senders' side, and their bytes on the IP layer.
    pub data: u64,
    /// See `data`.
    pub data_bytes: u64,
    /// Reports, those of them that named something missing, and their bytes.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// See `reports`.
    pub report_bytes: u64,
    /// Reports that were not sent because they would have been more than what came.
    pub withheld: u64,
    /// Flows that it began to remember.
    pub flows: u64,
    /// Segments that were not looked at because the flow was being looked at elsewhere.
    pub missed: u64,
    /// Reports that could not be made or sent.
    pub failed: u64,
}

/// A PEP at work.
#[derive(Debug)]
pub struct Pep {
    counters: MapHandle,
    /// What comes in goes first, and what the copies meet last.
    _links: [OwnedFd; 3],
}

/// The index of an interface, and the bytes before an IP packet there.
fn interface(name: &str) -> Result<(u32, u32), Error> {
    let at = Path::new("/sys/class/net").join(name);
    let number = |file: &str| fs::read_to_string(at.join(file)).ok()?.trim().parse::<u32>().ok();
    // /sys shows the namespace in which it was mounted; the kernel is asked for that of this thread.
    let index =
        nix::net::if_::if_nametoindex(name).map_err(|_| Error::Wrong(format!("there is no interface `{name}`")))?;
    let kind = if number("ifindex") == Some(index) { number("type") } else { None };
    match kind {
        None | Some(ARPHRD_ETHER) => Ok((index, ETHERNET_HEADER)),
        Some(ARPHRD_NONE | ARPHRD_RAWIP | ARPHRD_PPP) => Ok((index, 0)),
        Some(other) => Err(Error::Wrong(format!("`{name}` is neither Ethernet nor plain IP (type {other})"))),
    }
}

/// Whether this machine and user can have one.
pub fn check() -> Result<(), Error> {
    loading::check("a PEP")
}

/// Whether a PEP looks at what comes in from this interface's side already.
fn is_taken(index: u32) -> bool {
    let ours: Vec<u32> = ProgInfoIter::default().filter(|p| p.name == FIRST).map(|p| p.id).collect();
    LinkInfoIter::default()
        .any(|link| matches!(link.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == index) && ours.contains(&link.prog_id))
}

impl Pep {
    /// Starts one, in the network namespace of this thread.
    pub fn start(options: &Options) -> Result<Pep, Error> {
        if options.wan == options.ran {
            return Err(Error::Wrong(format!("`{}` is on one side only: --wan and --ran differ", options.wan)));
        }
        if !(1..=64).contains(&options.every) || options.flows == 0 {
            return Err(Error::Wrong("a report is for 1 to 64 segments, and at least one flow is remembered".into()));
        }
        check()?;
        let (wan, wan_l2) = interface(&options.wan)?;
        let (ran, ran_l2) = interface(&options.ran)?;
        if is_taken(wan) {
            return Err(Error::Wrong(format!("a PEP is at work at `{}` already", options.wan)));
        }
        let mut object = MaybeUninit::uninit();
        let skeleton = attempt("load the PEP", || {
            let mut open = PepSkelBuilder::default().open(&mut object)?;
            let settings = &mut open.maps.rodata_data.as_deref_mut().expect("it has settings").settings;
            settings.idle_ns = u64::try_from(options.idle.as_nanos()).unwrap_or(u64::MAX);
            settings.every = options.every;
            settings.all = u32::from(options.all);
            (settings.wan_l2, settings.ran_l2) = (wan_l2, ran_l2);
            settings.idle = u32::from(options.blind);
            open.maps.flows.set_max_entries(options.flows)?;
            open.load()
        })?;
        let attach = |program: &libbpf_rs::ProgramMut<'_>, index, place, name: &str| {
            attach_tcx(program.as_fd(), index, place).map_err(|e| match e.raw_os_error() {
                Some(libc::EINVAL) => Error::Missing("this kernel has no tcx (Linux 6.6)".into()),
                _ => Error::System { what: format!("attach the PEP to `{name}`"), source: e },
            })
        };
        let back = attach(&skeleton.progs.pep_back, wan, Tcx::Egress, &options.wan)?;
        let replies = attach(&skeleton.progs.pep_ran, ran, Tcx::Ingress, &options.ran)?;
        let data = attach(&skeleton.progs.pep_wan, wan, Tcx::Ingress, &options.wan)?;
        let counters = MapHandle::try_from(&skeleton.maps.counters);
        let counters = counters.map_err(|e| Error::Refused { what: "read counters".into(), why: e.to_string() })?;
        Ok(Pep { counters, _links: [data, replies, back] })
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let mut sum = [0_u64; 9];
        let values = self.counters.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        for value in values.ok().flatten().unwrap_or_default() {
            let (words, _) = value.as_chunks::<8>();
            for (sum, word) in sum.iter_mut().zip(words) {
                *sum += u64::from_ne_bytes(*word);
            }
        }
        let [data, data_bytes, reports, nacks, report_bytes, withheld, flows, missed, failed] = sum;
        Counters { data, data_bytes, reports, nacks, report_bytes, withheld, flows, missed, failed }
    }
}
