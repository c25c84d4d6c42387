//! The PEP that another process has at work here, and how its place is taken.

use super::options::Options;
use crate::Error;
use crate::skeleton::pep::OpenPepSkel;
use crate::sys::{self, Tcx};
use libbpf_rs::btf::{Btf, HasSize, types};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{MapCore, MapHandle, Program};
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What the programs for data, replies and reports are called, by which others' are recognised.
const NAMES: [&str; 3] = ["pep_wan", "pep_ran", "pep_back"];
/// What both have to agree on, as the maps hold it.
const SHARED: [&str; 8] = ["key", "flow", "hole", "neighbour", "corner", "newcomer", "report", "counters"];

/// Its programs, its links and its maps; all stay for as long as this does.
#[derive(Debug)]
pub(super) struct Running {
    first: u32,
    programs: [OwnedFd; 3],
    links: [OwnedFd; 3],
    maps: Vec<MapHandle>,
}

/// For `map_err`.
fn refused(why: impl Display) -> Error {
    Error::refused("take over from the PEP at work")(why)
}

/// The program of this name that is attached there, and its link.
fn attached(index: u32, place: Tcx, name: &str) -> Option<(ProgramInfo, u32)> {
    // Kernels without tcx have nothing there; that is said when a program is attached.
    let attached = sys::attached(index, place).ok()?;
    let query = ProgInfoQueryOptions::default().include_map_ids(true);
    let mut programs = ProgInfoIter::with_query_opts(query).filter(|program| program.name == name);
    programs.find_map(|program| {
        let link = attached.iter().find(|one| one.program == program.id && one.link != 0)?.link;
        Some((program, link))
    })
}

impl Running {
    /// The PEP between these interfaces of this thread's network namespace, if there is one.
    pub(super) fn find(options: &Options, wan: u32, ran: u32) -> Result<Option<Running>, Error> {
        let Some(data) = attached(wan, Tcx::Ingress, NAMES[0]) else { return Ok(None) };
        let others = attached(ran, Tcx::Ingress, NAMES[1]).zip(attached(wan, Tcx::Egress, NAMES[2]));
        // All three have the same flows or counters.
        let belongs = |(program, _): &(ProgramInfo, u32)| program.map_ids.iter().any(|id| data.0.map_ids.contains(id));
        let Some((replies, back)) = others.filter(|(replies, back)| belongs(replies) && belongs(back)) else {
            let Options { wan, ran, .. } = options;
            return Err(Error::Wrong(format!(
                "a PEP is at work at `{wan}` already, and `{ran}` is not its other side"
            )));
        };
        let maps: Result<Vec<MapHandle>, _> = data.0.map_ids.iter().map(|&id| MapHandle::from_map_id(id)).collect();
        let ids = [&data, &replies, &back].map(|(program, link)| (program.id, *link));
        let [data_program, replies_program, back_program] = ids.map(|(id, _)| Program::fd_from_id(id));
        let [data_link, replies_link, back_link] = ids.map(|(_, id)| sys::link_by_id(id));
        Ok(Some(Running {
            first: data.0.id,
            programs: [
                data_program.map_err(refused)?,
                replies_program.map_err(refused)?,
                back_program.map_err(refused)?,
            ],
            links: [data_link.map_err(refused)?, replies_link.map_err(refused)?, back_link.map_err(refused)?],
            maps: maps.map_err(refused)?,
        }))
    }

    /// Lets programs that are to be loaded use its maps: they go on with what it remembers, and while both are at work each
    /// understands what the other leaves.
    pub(super) fn lend_maps(&self, open: &mut OpenPepSkel<'_>) -> Result<(), Error> {
        let theirs = Btf::from_prog_id(self.first).map_err(refused)?;
        let ours = sys::types_of(open.open_object()).map_err(refused)?.ok_or_else(|| refused("no types"))?;
        let same = SHARED.iter().all(|name| layout(&theirs, name) == layout(&ours, name));
        drop(ours);
        if !same {
            return Err(refused("it is of another version, which remembers flows differently; end it first"));
        }
        let maps = &mut open.maps;
        for (name, map) in [
            ("flows", &mut maps.flows),
            ("newcomers", &mut maps.newcomers),
            ("counters", &mut maps.counters),
            ("outbox", &mut maps.outbox),
        ] {
            let lent = self.maps.iter().find(|lent| lent.name() == name);
            let lent = lent.ok_or_else(|| refused(format!("it has no map `{name}`")))?;
            map.reuse_fd(lent.as_fd()).map_err(refused)?;
        }
        Ok(())
    }

    /// Puts these programs in the places of its own, all or none.
    pub(super) fn replace_by(self, programs: [BorrowedFd<'_>; 3]) -> Result<[OwnedFd; 3], Error> {
        let old = self.programs.each_ref().map(AsFd::as_fd);
        for (at, link) in self.links.iter().enumerate() {
            if let Err(error) = sys::replace(link.as_fd(), old[at], programs[at]) {
                for back in 0..at {
                    // It was there a moment ago.
                    let _ = sys::replace(self.links[back].as_fd(), programs[back], old[back]);
                }
                return Err(refused(error));
            }
        }
        Ok(self.links)
    }
}

/// Where the members of a structure lie; `None` if there is none of this name.
fn layout(types: &Btf<'_>, name: &str) -> Option<(usize, Vec<String>)> {
    let it = types.type_by_name::<types::Struct<'_>>(name)?;
    Some((it.size(), it.iter().map(|member| format!("{:?} {:?}", member.name, member.attr)).collect()))
}
