//! The lightweight PEP between two interfaces of a host that forwards between them.
//!
//! It runs for the lifetime of the [`Pep`], and takes no part in forwarding: if this process dies for any reason, the
//! kernel detaches the programs and packets are forwarded as before. Another process may take over: its programs then
//! replace these, with the same maps, and both processes hold the links.

mod options;
mod running;

pub use options::Options;

use crate::Error;
use crate::loading::{self, attach_tcx, attempt};
use crate::skeleton::pep::PepSkelBuilder;
use crate::sys::{self, Tcx};
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program, ProgramMut};
use running::Running;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// Types of interfaces (`if_arp.h`), with an Ethernet header or without a header in front of packets.
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_PPP: u32 = 512;
const ARPHRD_RAWIP: u32 = 519;
const ARPHRD_NONE: u32 = 0xfffe;
const ETHERNET_HEADER: u32 = 14;
/// Flags of reports, as in `bpf/pep_flow.h`.
const TO_ALL: u32 = 1;
const TAGGED: u32 = 2;

/// Statistics of a PEP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Data segments from the senders' side, and their bytes on the IP layer.
    pub data: u64,
    /// See `data`.
    pub data_bytes: u64,
    /// Reports, those of them that named missing data, and their bytes.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// See `reports`.
    pub report_bytes: u64,
    /// Reports not sent because they would have exceeded the traffic received.
    pub withheld: u64,
    /// Flows tracked since the start.
    pub flows: u64,
    /// Segments not processed because another CPU was processing the flow.
    pub missed: u64,
    /// Reports that could not be built or sent.
    pub failed: u64,
    /// Segments of either side that were ignored for a wrong checksum.
    pub damaged: u64,
}

/// Reads the statistics of a PEP, in any thread and without capabilities.
#[derive(Debug)]
pub struct Statistics {
    counters: MapHandle,
    flows_limit: u32,
}

impl Statistics {
    /// Returns the counters; `None` if the kernel does not tell them.
    pub fn counters(&self) -> Option<Counters> {
        let mut sum = [0_u64; 10];
        let values = self.counters.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        for value in values {
            let (words, _) = value.as_chunks::<8>();
            for (sum, word) in sum.iter_mut().zip(words) {
                *sum += u64::from_ne_bytes(*word);
            }
        }
        let [data, data_bytes, reports, nacks, report_bytes, withheld, flows, missed, failed, damaged] = sum;
        Some(Counters { data, data_bytes, reports, nacks, report_bytes, withheld, flows, missed, failed, damaged })
    }

    /// Returns the most flows that it remembers.
    pub fn flows_limit(&self) -> u32 {
        self.flows_limit
    }
}

/// A running PEP.
#[derive(Debug)]
pub struct Pep {
    statistics: Arc<Statistics>,
    /// The kernel's ID of the program that processes data.
    program: u32,
    /// The links, in order of detachment: input first, the program for copies last.
    links: [OwnedFd; 3],
    /// The interfaces of these links.
    interfaces: [String; 3],
    took_over: TookOver,
    /// What a service manager can keep, by name.
    parts: Vec<(String, OwnedFd)>,
}

/// What a PEP has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TookOver {
    /// Nothing: there was no PEP.
    Nothing,
    /// The programs' places. The other version's state has another layout, so flows are found again.
    Places,
    /// Places and state.
    All,
}

/// Returns the index of an interface, and the length of its link-layer header.
fn interface(name: &str) -> Result<(u32, u32), Error> {
    let at = Path::new("/sys/class/net").join(name);
    let number = |file: &str| fs::read_to_string(at.join(file)).ok()?.trim().parse::<u32>().ok();
    // /sys shows the namespace in which it was mounted; this asks for that of this thread.
    let index =
        nix::net::if_::if_nametoindex(name).map_err(|_| Error::Wrong(format!("there is no interface `{name}`")))?;
    let kind = if number("ifindex") == Some(index) { number("type") } else { None };
    match kind {
        None | Some(ARPHRD_ETHER) => Ok((index, ETHERNET_HEADER)),
        Some(ARPHRD_NONE | ARPHRD_RAWIP | ARPHRD_PPP) => Ok((index, 0)),
        Some(other) => Err(Error::Wrong(format!("`{name}` is neither Ethernet nor plain IP (type {other})"))),
    }
}

/// Checks that this machine and user can run a PEP.
pub fn check() -> Result<(), Error> {
    loading::check("a PEP")
}

/// Attaches the programs for data, replies and reports, the one for data last.
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
    /// Starts a PEP in the network namespace of this thread. It takes over from a previous one of which `kept` are the
    /// [parts](Pep::parts), if there are any for these interfaces.
    pub fn start(options: &Options, kept: Vec<(String, OwnedFd)>) -> Result<Pep, Error> {
        options.check()?;
        check()?;
        let (wan, wan_l2) = interface(&options.wan)?;
        let (ran, ran_l2) = interface(&options.ran)?;
        let mut running = Running::kept(kept, wan, ran);
        if running.is_none() {
            running = Running::find(options, wan, ran)?;
            if running.is_some() && !options.take_over {
                let why = "a PEP is already running at `{}`; use --take-over to replace it";
                return Err(Error::Wrong(why.replace("{}", &options.wan)));
            }
        }
        let mut object = MaybeUninit::uninit();
        let mut open = attempt("load the PEP", || PepSkelBuilder::default().open(&mut object))?;
        let settings = &mut open.maps.rodata_data.as_deref_mut().expect("it has settings").settings;
        settings.every = options.every;
        settings.how = u32::from(options.all) * TO_ALL + u32::from(options.key.is_some()) * TAGGED;
        [settings.key_low, settings.key_high] = options.key.unwrap_or_default().words();
        (settings.wan_l2, settings.ran_l2) = (wan_l2, ran_l2);
        settings.idle = u32::from(options.blind);
        let took_over = match &running {
            None => TookOver::Nothing,
            Some(running) if running.lend_maps(&mut open)? => TookOver::All,
            Some(_) => TookOver::Places,
        };
        let types = sys::types_of(open.open_object()).ok().flatten();
        let layout = types.map_or_else(String::new, |types| running::number(&types));
        let skeleton = attempt("load the PEP", || {
            if took_over != TookOver::All {
                open.maps.flows.set_max_entries(options.flows)?;
            }
            open.load()
        })?;
        let programs = [&skeleton.progs.pep_wan, &skeleton.progs.pep_ran, &skeleton.progs.pep_back];
        let program = Program::id_from_fd(programs[0].as_fd());
        let program = program.map_err(Error::refused("load the PEP"))?;
        let counters = MapHandle::try_from(&skeleton.maps.counters);
        let counters = counters.map_err(Error::refused("read counters"))?;
        // Of flows that were taken over, the limit is the other PEP's.
        let statistics = Arc::new(Statistics { counters, flows_limit: skeleton.maps.flows.max_entries() });
        let links = match running {
            Some(running) if took_over == TookOver::All => running.replace_by(programs.map(AsFd::as_fd))?,
            Some(running) => {
                // What one version's program leaves for the next, the other version's would misread.
                running.detach()?;
                attach(options, programs, wan, ran)?
            }
            None => attach(options, programs, wan, ran)?,
        };
        let Options { wan, ran, .. } = options;
        let interfaces = [wan, ran, wan].map(String::clone);
        let maps = &skeleton.maps;
        let maps = [&maps.flows, &maps.newcomers, &maps.openings, &maps.counters, &maps.outbox].map(AsFd::as_fd);
        let names = running::LINKS.into_iter().chain(running::PROGRAMS).map(str::to_owned);
        let names = names.chain(running::map_names(&layout));
        let all = links.iter().map(AsFd::as_fd).chain(programs.map(AsFd::as_fd)).chain(maps);
        let parts = names.zip(all).map(|(name, part)| Ok((name, part.try_clone_to_owned()?)));
        let parts = parts.collect::<Result<_, std::io::Error>>().map_err(Error::system("keep the PEP's parts"))?;
        Ok(Pep { statistics, program, links, interfaces, took_over, parts })
    }

    /// Returns its parts and their names, once. While somebody has them open, the programs stay attached, also after the end of
    /// this process, and another PEP can take over.
    pub fn parts(&mut self) -> Vec<(String, OwnedFd)> {
        std::mem::take(&mut self.parts)
    }

    /// Returns what it has taken over from another PEP.
    pub fn took_over(&self) -> TookOver {
        self.took_over
    }

    /// Returns whether another PEP has taken over from this one, which then has nothing left to do.
    pub fn is_replaced(&self) -> bool {
        LinkInfo::from_fd(self.links[0].as_fd()).is_ok_and(|link| link.prog_id != self.program)
    }

    /// Returns the interface that was removed or moved to a network namespace other than this thread's, if any.
    pub fn lost_interface(&self) -> Option<&str> {
        let is_lost = |link: &OwnedFd| {
            let Ok(LinkTypeInfo::Tcx(at)) = LinkInfo::from_fd(link.as_fd()).map(|link| link.info) else { return false };
            // The kernel detaches programs from a removed interface, but not from one that was moved. nix 0.31 returns
            // an empty name for a missing interface.
            let is_here = nix::net::if_::if_indextoname(at.ifindex).is_ok_and(|name| !name.is_empty());
            at.ifindex == 0 || !is_here
        };
        let lost = self.links.iter().position(is_lost)?;
        Some(&self.interfaces[lost])
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.statistics.counters().unwrap_or_default()
    }

    /// Returns what reads its statistics elsewhere.
    pub fn statistics(&self) -> Arc<Statistics> {
        Arc::clone(&self.statistics)
    }
}
