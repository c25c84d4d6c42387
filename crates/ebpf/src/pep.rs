//! The lightweight PEP between two interfaces of this host, which forwards between them.
//!
//! It works for as long as the [`Pep`] lives, and takes no part in forwarding: if this process dies, in whatever way, the
//! kernel detaches the programs and packets go on as before. Another process may take over: then that one's programs are in
//! the same places, with the same maps, and the links are kept by both.

mod options;
mod running;

pub use options::Options;

use crate::Error;
use crate::loading::{self, attach_tcx, attempt};
use crate::skeleton::pep::PepSkelBuilder;
use crate::sys::Tcx;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program, ProgramMut};
use running::Running;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Kinds of interfaces (`if_arp.h`): with Ethernet's header before packets, and with none.
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_PPP: u32 = 512;
const ARPHRD_RAWIP: u32 = 519;
const ARPHRD_NONE: u32 = 0xfffe;
const ETHERNET_HEADER: u32 = 14;
/// What reports are like, as in `bpf/pep_flow.h`.
const TO_ALL: u32 = 1;
const TAGGED: u32 = 2;

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
    /// What looks at data, as the kernel numbers programs.
    program: u32,
    /// What comes in goes first, and what the copies meet last.
    links: [OwnedFd; 3],
    /// The interfaces of these links.
    interfaces: [String; 3],
    took_over: bool,
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

/// Attaches the programs for data, replies and reports, the first to look last.
fn attach(options: &Options, programs: [&ProgramMut<'_>; 3], wan: u32, ran: u32) -> Result<[OwnedFd; 3], Error> {
    let attach = |program: &ProgramMut<'_>, index, place, name: &str| {
        attach_tcx(program.as_fd(), index, place, &format!("the PEP to `{name}`"))
    };
    let [data, replies, back] = programs;
    let back = attach(back, wan, Tcx::Egress, &options.wan)?;
    let replies = attach(replies, ran, Tcx::Ingress, &options.ran)?;
    let data = attach(data, wan, Tcx::Ingress, &options.wan)?;
    Ok([data, replies, back])
}

impl Pep {
    /// Starts one, in the network namespace of this thread.
    pub fn start(options: &Options) -> Result<Pep, Error> {
        options.check()?;
        check()?;
        let (wan, wan_l2) = interface(&options.wan)?;
        let (ran, ran_l2) = interface(&options.ran)?;
        let running = Running::find(options, wan, ran)?;
        if running.is_some() && !options.take_over {
            let why = "a PEP is at work at `{}` already; --take-over puts this one in its place";
            return Err(Error::Wrong(why.replace("{}", &options.wan)));
        }
        let mut object = MaybeUninit::uninit();
        let mut open = attempt("load the PEP", || PepSkelBuilder::default().open(&mut object))?;
        let settings = &mut open.maps.rodata_data.as_deref_mut().expect("it has settings").settings;
        settings.every = options.every;
        settings.how = u32::from(options.all) * TO_ALL + u32::from(options.key.is_some()) * TAGGED;
        [settings.key_low, settings.key_high] = options.key.unwrap_or_default().words();
        (settings.wan_l2, settings.ran_l2) = (wan_l2, ran_l2);
        settings.idle = u32::from(options.blind);
        if let Some(running) = &running {
            running.lend_maps(&mut open)?;
        }
        let skeleton = attempt("load the PEP", || {
            if running.is_none() {
                open.maps.flows.set_max_entries(options.flows)?;
            }
            open.load()
        })?;
        let programs = [&skeleton.progs.pep_wan, &skeleton.progs.pep_ran, &skeleton.progs.pep_back];
        let program = Program::id_from_fd(programs[0].as_fd());
        let program = program.map_err(Error::refused("load the PEP"))?;
        let counters = MapHandle::try_from(&skeleton.maps.counters);
        let counters = counters.map_err(Error::refused("read counters"))?;
        let took_over = running.is_some();
        let links = match running {
            Some(running) => running.replace_by(programs.map(AsFd::as_fd))?,
            None => attach(options, programs, wan, ran)?,
        };
        let Options { wan, ran, .. } = options;
        let interfaces = [wan, ran, wan].map(String::clone);
        Ok(Pep { counters, program, links, interfaces, took_over })
    }

    /// Whether it has taken the place of another.
    pub fn took_over(&self) -> bool {
        self.took_over
    }

    /// Whether another has taken the place of this one, which has nothing to do any more.
    pub fn is_replaced(&self) -> bool {
        LinkInfo::from_fd(self.links[0].as_fd()).is_ok_and(|link| link.prog_id != self.program)
    }

    /// The interface that was removed or moved to another network namespace than this thread's, if one was.
    pub fn lost_interface(&self) -> Option<&str> {
        let is_lost = |link: &OwnedFd| {
            let Ok(LinkTypeInfo::Tcx(at)) = LinkInfo::from_fd(link.as_fd()).map(|link| link.info) else { return false };
            // The kernel detaches programs from what is removed, and leaves them at what is moved. nix 0.31 gives an empty name
            // for an interface that is not there.
            let is_here = nix::net::if_::if_indextoname(at.ifindex).is_ok_and(|name| !name.is_empty());
            at.ifindex == 0 || !is_here
        };
        let lost = self.links.iter().position(is_lost)?;
        Some(&self.interfaces[lost])
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
