//! The multi-domain congestion control in the kernel, under the name `mdcc`.
//!
//! [`load`] gives it to the kernel, where it stays when this process ends; [`unload`] takes it away again. [`Held::load`]
//! gives it for as long as this process wants it. Sockets choose it like any other: by `TCP_CONGESTION`, by
//! `ip route … congctl mdcc`, or as the default of a network namespace.

mod default;

use crate::loading::{self, attempt};
use crate::skeleton::mdcc::MdccSkelBuilder;
use crate::turn::Turn;
use crate::{Error, Key, bpffs};
use default::NAME;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link};
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is kept under `bpffs::directory(NAME)`.
const OPS: &str = "congestion_control";
const OPTIONS: &str = "options";
const SOCKETS: &str = "sockets";
/// All that there are in this kernel.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Parameters, which are fixed while it is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How much each acknowledged segment adds to the window of the whole path, in segments: 0.02 (the first paper's
    /// results) or 0.1 (the second's text).
    pub step: f64,
    /// What a loss takes from that window.
    pub decrease: f64,
    /// It starts at so many times the initial window.
    pub initial_ratio: u32,
    /// The larger window is at most so many times the smaller.
    pub validation_ratio: u32,
    /// A loss that the PEP announced does not reduce the window of the whole path.
    pub loss_filter: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { step: 0.02, decrease: 0.125, initial_ratio: 10, validation_ratio: 2, loss_filter: true }
    }
}

impl Parameters {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Wrong(what));
        if !(0.0001..=1.0).contains(&self.step) {
            return wrong(format!("a step of {}: it is between 0.0001 and 1", self.step));
        }
        if !(0.0..=1.0).contains(&self.decrease) {
            return wrong(format!("a decrease of {}: it is between 0 and 1", self.decrease));
        }
        for (name, ratio) in [("initial", self.initial_ratio), ("validation", self.validation_ratio)] {
            if !(1..=1000).contains(&ratio) {
                return wrong(format!("an {name} ratio of {ratio}: it is between 1 and 1000"));
            }
        }
        Ok(())
    }
}

/// What to load, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// See there.
    pub parameters: Parameters,
    /// The cgroup (v2) whose sockets hear PEPs, with all below it; the root unless given.
    pub cgroup: Option<PathBuf>,
    /// Make it the default of this network namespace.
    pub default: bool,
    /// Let every connection announce that it understands reports, for those that choose mdcc when they are established.
    pub announce_all: bool,
    /// The key of the PEPs whose reports are taken. Without one, reports without a tag are, whoever made them.
    pub key: Option<Key>,
}

/// A socket that uses it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Socket {
    /// Its network namespace, by inode number.
    pub netns: u32,
    /// Its own address, and its peer's.
    pub local: SocketAddr,
    /// See `local`.
    pub remote: SocketAddr,
    /// A PEP is heard: the smaller of both windows counts. If not, `cwnd_pep` alone does, as CUBIC.
    pub joined: bool,
    /// The window of the wired domain and that of the whole path, in segments.
    pub cwnd_pep: u32,
    /// See `cwnd_pep`.
    pub cwnd_e2e: u32,
    /// Their slow-start thresholds; none before the first reduction.
    pub ssthresh_pep: Option<u32>,
    /// See `ssthresh_pep`.
    pub ssthresh_e2e: Option<u32>,
    /// The smoothed round-trip time to the PEP in ms, as fine as timestamps are.
    pub pep_rtt_ms: Option<f64>,
    /// Reports that were taken, and those of them that named something missing.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// Segments with our option that were no acceptable reports.
    pub ignored: u64,
    /// How often the PEP fell silent, or a time-out came.
    pub fallbacks: u64,
    /// Losses that did not reduce `cwnd_e2e`, because the PEP had announced them.
    pub filtered: u64,
}

/// Whether this machine and user can load it.
pub fn check() -> Result<(), Error> {
    loading::check("mdcc")?;
    loading::check_struct_ops()
}

/// Whether it is loaded, as this mount namespace shows.
pub fn is_loaded() -> bool {
    bpffs::exists(NAME)
}

/// Loads it; nothing is left of a failure.
pub fn load(options: &Options) -> Result<(), Error> {
    loading::check("mdcc")?;
    let _turn = Turn::take()?;
    let cgroup = prepare(options)?;
    let directory = bpffs::create(NAME)?;
    let loaded = attach(&cgroup, options, Some(&directory));
    let loaded = loaded.and_then(|_| if options.default { default::set() } else { Ok(()) });
    if loaded.is_err() {
        let _ = bpffs::remove(NAME);
    }
    loaded
}

/// It is loaded while this lives. The kernel takes it away when the process ends, however it does; there is no file that
/// would keep it, so [`status`] and [`unload`] do not know of it.
#[derive(Debug)]
pub struct Held {
    /// The congestion control, which goes first, and what hears reports.
    _links: [Link; 2],
}

impl Held {
    /// Loads it with these parameters, for sockets that choose it before they connect or listen.
    ///
    /// # Errors
    /// As [`load`]; nothing is left.
    pub fn load(parameters: Parameters) -> Result<Held, Error> {
        let options = Options { parameters, ..Options::default() };
        loading::check("mdcc")?;
        let _turn = Turn::take()?;
        let cgroup = prepare(&options)?;
        Ok(Held { _links: attach(&cgroup, &options, None)? })
    }
}

/// Whether it may be loaded with these options; the cgroup.
fn prepare(options: &Options) -> Result<File, Error> {
    options.parameters.check()?;
    check()?;
    if is_loaded() {
        return Err(Error::Wrong("mdcc is loaded already; `ranway mdcc unload` first".into()));
    }
    if std::fs::read_to_string(AVAILABLE).is_ok_and(|names| names.split_whitespace().any(|name| name == NAME)) {
        let who = "another program has loaded mdcc, or `ranway mdcc load` in another mount namespace";
        return Err(Error::Wrong(format!("{who}: only one can be in the kernel")));
    }
    let cgroup = options.cgroup.clone().map_or_else(loading::cgroup_root, Ok)?;
    File::open(&cgroup).map_err(Error::system(format!("open the cgroup {}", cgroup.display())))
}

/// Loads it. With `keep`, what is loaded gets names there, by which it stays when the links are dropped.
fn attach(cgroup: &File, options: &Options, keep: Option<&Path>) -> Result<[Link; 2], Error> {
    let parameters = &options.parameters;
    let mut object = MaybeUninit::uninit();
    let mut skeleton = attempt("read the programs", || {
        let mut open = MdccSkelBuilder::default().open(&mut object)?;
        open.progs.mdcc_status.set_autoload(false);
        let constants = open.maps.rodata_data.as_deref_mut().expect("it has parameters");
        constants.announce_all = options.announce_all.into();
        constants.trust.keyed = options.key.is_some().into();
        [constants.trust.key_low, constants.trust.key_high] = options.key.unwrap_or_default().words();
        let set = &mut constants.parameters;
        set.acks_per_segment = (1.0 / parameters.step).round() as u32;
        set.decrease_1024ths = (parameters.decrease * 1024.0).round() as u32;
        set.initial_ratio = parameters.initial_ratio;
        set.validation_ratio = parameters.validation_ratio;
        set.loss_filter = u32::from(parameters.loss_filter);
        Ok(open)
    })
    .and_then(|open| attempt("load mdcc", || open.load()))?;
    attempt("attach mdcc", || {
        // First who hears, then who needs it.
        let mut hearing = skeleton.progs.mdcc_options.attach_cgroup(cgroup.as_raw_fd())?;
        let mut ops = skeleton.maps.mdcc.attach_struct_ops()?;
        if let Some(directory) = keep {
            skeleton.maps.sockets.pin(directory.join(SOCKETS))?;
            hearing.pin(directory.join(OPTIONS))?;
            ops.pin(directory.join(OPS))?;
        }
        Ok([ops, hearing])
    })
}

/// Removes it. Sockets that use it go on without a PEP, as CUBIC, until they are closed; the answer is how many.
///
/// A network namespace whose default it was gets back what was its default before, whichever namespace this is called in.
pub fn unload() -> Result<usize, Error> {
    loading::check("mdcc")?;
    let _turn = Turn::take()?;
    if !is_loaded() {
        return Err(Error::Wrong("mdcc is not loaded".into()));
    }
    let users = status().map_or(0, |sockets| sockets.len());
    default::restore()?;
    let directory = bpffs::directory(NAME);
    for name in [OPS, OPTIONS] {
        // A link ends with its last name and descriptor, but another process may hold one.
        if let Ok(link) = Link::open(directory.join(name)) {
            let _ = link.detach();
        }
    }
    bpffs::remove(NAME)?;
    Ok(users)
}

/// The sockets that use it, in all network namespaces, in the order of their addresses.
pub fn status() -> Result<Vec<Socket>, Error> {
    loading::check("mdcc")?;
    if !is_loaded() {
        return Err(Error::Wrong("mdcc is not loaded: `ranway mdcc load`".into()));
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = attempt("ask the kernel about sockets", || {
        let mut open = MdccSkelBuilder::default().open(&mut object)?;
        for mut program in open.open_object_mut().progs_mut() {
            program.set_autoload(program.name() == "mdcc_status");
        }
        open.maps.mdcc.set_autocreate(false)?;
        open.maps.sockets.reuse_pinned_map(bpffs::directory(NAME).join(SOCKETS))?;
        open.load()
    })?;
    let mut bytes = Vec::new();
    let map = skeleton.maps.sockets.as_fd();
    let mut lines =
        attempt("ask the kernel about sockets", || Iter::new(&skeleton.progs.mdcc_status.attach_iter(map)?))?;
    lines.read_to_end(&mut bytes).map_err(Error::system("read about sockets"))?;
    let mut sockets: Vec<Socket> = bytes.chunks_exact(LINE).filter_map(|line| parse(line.try_into().ok()?)).collect();
    sockets.sort_by_key(|socket| (socket.netns, socket.local, socket.remote));
    Ok(sockets)
}

/// The length of `struct mdcc_status` in `src/bpf/mdcc_socket.h`.
const LINE: usize = 112;
const AF_INET: u16 = libc::AF_INET as u16;

fn parse(line: &[u8; LINE]) -> Option<Socket> {
    let u16_at = |at: usize| u16::from_ne_bytes([line[at], line[at + 1]]);
    let u32_at = |at: usize| line[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let u64_at = |at: usize| line[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let address = |at: usize| -> IpAddr {
        let bytes: [u8; 16] = line[at..].first_chunk().copied().unwrap_or_default();
        if u16_at(36) == AF_INET {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    let threshold = |at: usize| Some(u32_at(at)).filter(|&threshold| threshold < i32::MAX as u32);
    let rtt = Duration::from_micros(u32_at(60).into());
    // CLOSE and TIME-WAIT (include/net/tcp_states.h): its end is being cleaned up.
    if matches!(line[38], 0 | 6 | 7) {
        return None;
    }
    Some(Socket {
        netns: u32_at(40),
        local: SocketAddr::new(address(0), u16_at(32)),
        remote: SocketAddr::new(address(16), u16_at(34)),
        joined: line[39] != 0,
        cwnd_pep: u32_at(44),
        cwnd_e2e: u32_at(48),
        ssthresh_pep: threshold(52),
        ssthresh_e2e: threshold(56),
        pep_rtt_ms: (!rtt.is_zero()).then_some(rtt.as_secs_f64() * 1e3),
        reports: u64_at(72),
        nacks: u64_at(80),
        ignored: u64_at(88),
        fallbacks: u64_at(96),
        filtered: u64_at(104),
    })
}
