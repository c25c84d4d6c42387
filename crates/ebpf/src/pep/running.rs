//! Finds a PEP run by another process on this machine, or left attached by a previous one, and takes over from it.

use super::options::Options;
use crate::Error;
use crate::skeleton::pep::OpenPepSkel;
use crate::sys::{self, Tcx};
use libbpf_rs::btf::{Btf, HasSize, types};
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{MapCore, MapHandle, Program};
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The names of the programs for data, replies and reports, by which those of another process are found.
const NAMES: [&str; 3] = ["pep_wan", "pep_ran", "pep_back"];
/// The types in the maps that both versions have to agree on.
const SHARED: [&str; 11] =
    ["key", "flow", "hole", "neighbour", "corner", "newcomer", "door", "visit", "opening", "report", "counters"];

/// The maps with its state, and the names of the parts of a PEP that a service manager keeps.
const MAPS: [&str; 5] = ["flows", "newcomers", "openings", "counters", "outbox"];
pub(super) const LINKS: [&str; 3] = ["link-data", "link-replies", "link-back"];
pub(super) const PROGRAMS: [&str; 3] = ["program-data", "program-replies", "program-back"];

/// Its programs, links and maps, which stay valid while this exists.
#[derive(Debug)]
pub(super) struct Running {
    programs: [OwnedFd; 3],
    links: [OwnedFd; 3],
    maps: Vec<(String, OwnedFd)>,
    layout: Layout,
}

/// What tells the layout of its state: its first program, or a number from that PEP itself.
#[derive(Debug)]
enum Layout {
    Of(u32),
    Number(String),
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
        let map = |&id: &u32| {
            let map = MapHandle::from_map_id(id).map_err(refused)?;
            let name = map.name().to_string_lossy().into_owned();
            Ok((name, map.as_fd().try_clone_to_owned().map_err(refused)?))
        };
        let maps: Result<Vec<_>, Error> = data.0.map_ids.iter().map(map).collect();
        let ids = [&data, &replies, &back].map(|(program, link)| (program.id, *link));
        let [data_program, replies_program, back_program] = ids.map(|(id, _)| Program::fd_from_id(id));
        let [data_link, replies_link, back_link] = ids.map(|(_, id)| sys::link_by_id(id));
        Ok(Some(Running {
            layout: Layout::Of(data.0.id),
            programs: [
                data_program.map_err(refused)?,
                replies_program.map_err(refused)?,
                back_program.map_err(refused)?,
            ],
            links: [data_link.map_err(refused)?, replies_link.map_err(refused)?, back_link.map_err(refused)?],
            maps: maps?,
        }))
    }

    /// Returns the PEP of which these are the parts that a service manager has kept, if they are all there and belong to these
    /// interfaces. Programs at others are detached.
    pub(super) fn kept(parts: Vec<(String, OwnedFd)>, wan: u32, ran: u32) -> Option<Running> {
        let mut parts = parts;
        let mut take = |name: &str| {
            let at = parts.iter().position(|(part, _)| part == name)?;
            Some(parts.swap_remove(at).1)
        };
        let mut three = |[a, b, c]: [&str; 3]| Some([take(a)?, take(b)?, take(c)?]);
        let (links, programs) = (three(LINKS)?, three(PROGRAMS)?);
        let is_at = |(link, interface): (&OwnedFd, u32)| matches!(LinkInfo::from_fd(link.as_fd()).map(|link| link.info), Ok(LinkTypeInfo::Tcx(at)) if at.ifindex == interface);
        if !links.iter().zip([wan, ran, wan]).all(is_at) {
            for link in &links {
                // Where an interface was removed, nothing is attached any more.
                let _ = sys::detach(link.as_fd());
            }
            return None;
        }
        let mut layout = None;
        let maps = parts.into_iter().filter_map(|(name, map)| {
            let (name, number) = name.strip_prefix("map-")?.split_once('-')?;
            layout = Some(number.to_owned());
            Some((name.to_owned(), map))
        });
        let maps: Vec<_> = maps.collect();
        Some(Running { programs, links, maps, layout: Layout::Number(layout?) })
    }

    /// Makes programs about to be loaded use its maps: they continue with its state, and while both are attached, each
    /// understands the other's entries. Returns false if its state has another layout.
    pub(super) fn lend_maps(&self, open: &mut OpenPepSkel<'_>) -> Result<bool, Error> {
        let ours = sys::types_of(open.open_object()).map_err(refused)?.ok_or_else(|| refused("no types"))?;
        let same = match &self.layout {
            Layout::Number(theirs) => *theirs == number(&ours),
            Layout::Of(program) => number(&Btf::from_prog_id(*program).map_err(refused)?) == number(&ours),
        };
        drop(ours);
        if !same {
            return Ok(false);
        }
        let maps = &mut open.maps;
        let ours = [&mut maps.flows, &mut maps.newcomers, &mut maps.openings, &mut maps.counters, &mut maps.outbox];
        for (name, map) in MAPS.into_iter().zip(ours) {
            let lent = self.maps.iter().find(|(lent, _)| lent == name);
            let (_, lent) = lent.ok_or_else(|| refused(format!("it has no map `{name}`")))?;
            map.reuse_fd(lent.as_fd()).map_err(refused)?;
        }
        Ok(true)
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

impl Running {
    /// Detaches its programs, whoever else holds their links.
    pub(super) fn detach(self) -> Result<(), Error> {
        self.links.iter().try_for_each(|link| sys::detach(link.as_fd())).map_err(refused)
    }
}

/// Returns the layout of a structure; `None` if there is none of this name.
fn layout(types: &Btf<'_>, name: &str) -> Option<(usize, Vec<String>)> {
    let it = types.type_by_name::<types::Struct<'_>>(name)?;
    Some((it.size(), it.iter().map(|member| format!("{:?} {:?}", member.name, member.attr)).collect()))
}

/// Returns a number, in hexadecimal, that is another one for another layout of the state (FNV-1a).
pub(super) fn number(types: &Btf<'_>) -> String {
    let text = SHARED.map(|name| format!("{name} {:?}", layout(types, name))).concat();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Returns the names under which a service manager keeps the maps of a PEP with this layout, in their order.
pub(super) fn map_names(layout: &str) -> [String; 5] {
    MAPS.map(|name| format!("map-{name}-{layout}"))
}
