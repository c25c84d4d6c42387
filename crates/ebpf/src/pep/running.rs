//! Finds a PEP run by another process on this machine, and takes over from it.

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

/// The names of the programs for data, replies and reports, by which those of another process are found.
const NAMES: [&str; 3] = ["pep_wan", "pep_ran", "pep_back"];
/// The types in the maps that both versions have to agree on.
const SHARED: [&str; 11] =
    ["key", "flow", "hole", "neighbour", "corner", "newcomer", "door", "visit", "opening", "report", "counters"];

/// Its programs, links and maps, which stay valid while this exists.
#[derive(Debug)]
pub(super) struct Running {
    first: u32,
    programs: [OwnedFd; 3],
    links: [OwnedFd; 3],
    maps: Vec<MapHandle>,
}

/// For `map_err`.
fn refused(why: impl Display) -> Error {
    Error::refused("take over from the running PEP")(why)
}

/// Returns the program of this name attached there, and its link.
fn attached(index: u32, place: Tcx, name: &str) -> Option<(ProgramInfo, u32)> {
    // A kernel without tcx has no programs there; attaching a program reports that.
    let attached = sys::attached(index, place).ok()?;
    let query = ProgInfoQueryOptions::default().include_map_ids(true);
    let mut programs = ProgInfoIter::with_query_opts(query).filter(|program| program.name == name);
    programs.find_map(|program| {
        let link = attached.iter().find(|one| one.program == program.id && one.link != 0)?.link;
        Some((program, link))
    })
}

impl Running {
    /// Returns the PEP between these interfaces in this thread's network namespace, if there is one.
    pub(super) fn find(options: &Options, wan: u32, ran: u32) -> Result<Option<Running>, Error> {
        let Some(data) = attached(wan, Tcx::Ingress, NAMES[0]) else { return Ok(None) };
        let others = attached(ran, Tcx::Ingress, NAMES[1]).zip(attached(wan, Tcx::Egress, NAMES[2]));
        // All three use the same flows or counters.
        let belongs = |(program, _): &(ProgramInfo, u32)| program.map_ids.iter().any(|id| data.0.map_ids.contains(id));
        let Some((replies, back)) = others.filter(|(replies, back)| belongs(replies) && belongs(back)) else {
            let Options { wan, ran, .. } = options;
            return Err(Error::Wrong(format!(
                "a PEP is already running at `{wan}`, and `{ran}` is not its other interface"
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

    /// Makes programs about to be loaded use its maps: they continue with its state, and while both are attached, each
    /// understands the other's entries.
    pub(super) fn lend_maps(&self, open: &mut OpenPepSkel<'_>) -> Result<(), Error> {
        let theirs = Btf::from_prog_id(self.first).map_err(refused)?;
        let ours = sys::types_of(open.open_object()).map_err(refused)?.ok_or_else(|| refused("no types"))?;
        let same = SHARED.iter().all(|name| layout(&theirs, name) == layout(&ours, name));
        drop(ours);
        if !same {
            return Err(refused("it is a different version with an incompatible state; stop it first"));
        }
        let maps = &mut open.maps;
        for (name, map) in [
            ("flows", &mut maps.flows),
            ("newcomers", &mut maps.newcomers),
            ("openings", &mut maps.openings),
            ("counters", &mut maps.counters),
            ("outbox", &mut maps.outbox),
        ] {
            let lent = self.maps.iter().find(|lent| lent.name() == name);
            let lent = lent.ok_or_else(|| refused(format!("it has no map `{name}`")))?;
            map.reuse_fd(lent.as_fd()).map_err(refused)?;
        }
        Ok(())
    }

    /// Replaces its programs by these, all or none.
    pub(super) fn replace_by(self, programs: [BorrowedFd<'_>; 3]) -> Result<[OwnedFd; 3], Error> {
        let old = self.programs.each_ref().map(AsFd::as_fd);
        for (at, link) in self.links.iter().enumerate() {
            if let Err(error) = sys::replace(link.as_fd(), old[at], programs[at]) {
                for back in 0..at {
                    // It existed a moment ago.
                    let _ = sys::replace(self.links[back].as_fd(), programs[back], old[back]);
                }
                return Err(refused(error));
            }
        }
        Ok(self.links)
    }
}

/// Returns the layout of a structure; `None` if there is none of this name.
fn layout(types: &Btf<'_>, name: &str) -> Option<(usize, Vec<String>)> {
    let it = types.type_by_name::<types::Struct<'_>>(name)?;
    Some((it.size(), it.iter().map(|member| format!("{:?} {:?}", member.name, member.attr)).collect()))
}
