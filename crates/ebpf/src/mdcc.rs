//! Multi-domain congestion control in the kernel, under the name `mdcc`.
//!
//! [`load`] loads it into the kernel, where it stays when this process ends; [`unload`] removes it. [`Held::load`]
//! loads it for the lifetime of this process. Sockets select it like any other congestion control: with
//! `TCP_CONGESTION`, with `ip route … congctl mdcc`, or as the default of a network namespace.

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
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The entries in `bpffs::directory(NAME)`.
const OPS: &str = "congestion_control";
const OPTIONS: &str = "options";
const SOCKETS: &str = "sockets";
/// The congestion controls available in this kernel.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The parameters, which are fixed while it is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Increase of the end-to-end window for each acknowledged segment, in segments: 0.02 (the first paper's results)
    /// or 0.1 (the second's text).
    pub step: f64,
    /// Fraction by which a loss reduces that window.
    pub decrease: f64,
    /// Initial end-to-end window, as a multiple of the initial window.
    pub initial_ratio: u32,
    /// Upper bound on the ratio of the larger to the smaller window.
    pub validation_ratio: u32,
    /// Whether losses announced by the PEP leave the end-to-end window unchanged.
    pub loss_filter: bool,
    /// Whether losses reduce the windows as the papers say: each report of missing segments reduces the wired domain's
    /// window at once, and each window is reduced from its own value.
    pub published: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            step: 0.02,
            decrease: 0.125,
            initial_ratio: 10,
            validation_ratio: 2,
            loss_filter: true,
            published: false,
        }
    }
}

impl Parameters {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Wrong(what));
        if !(0.0001..=1.0).contains(&self.step) {
            return wrong(format!("invalid step {}: must be between 0.0001 and 1", self.step));
        }
        if !(0.0..=1.0).contains(&self.decrease) {
            return wrong(format!("invalid decrease {}: must be between 0 and 1", self.decrease));
        }
        for (name, ratio) in [("initial", self.initial_ratio), ("validation", self.validation_ratio)] {
            if !(1..=1000).contains(&ratio) {
                return wrong(format!("invalid {name} ratio {ratio}: must be between 1 and 1000"));
            }
        }
        Ok(())
    }
}

/// The options of loading.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The parameters of the algorithm.
    pub parameters: Parameters,
    /// The cgroup (v2) whose sockets receive PEP reports, including all cgroups below it. Default: the root.
    pub cgroup: Option<PathBuf>,
    /// Make it the default of this network namespace.
    pub default: bool,
    /// Announce on every connection that reports are understood, for sockets that select mdcc only after connecting.
    pub announce_all: bool,
    /// The key of the PEPs whose reports are accepted. Without a key, reports without a tag are accepted from anyone.
    pub key: Option<Key>,
}

/// A socket that uses it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Socket {
    /// Its network namespace, by inode number.
    pub netns: u32,
    /// Its local address and its peer's.
    pub local: SocketAddr,
    /// See `local`.
    pub remote: SocketAddr,
    /// Whether a PEP sends reports: then the smaller of both windows applies. If not, only `cwnd_pep` applies, as in
    /// CUBIC.
    pub joined: bool,
    /// The windows of the wired domain and of the whole path, in segments.
    pub cwnd_pep: u32,
    /// See `cwnd_pep`.
    pub cwnd_e2e: u32,
    /// Their slow-start thresholds; `None` before the first reduction.
    pub ssthresh_pep: Option<u32>,
    /// See `ssthresh_pep`.
    pub ssthresh_e2e: Option<u32>,
    /// The smoothed round-trip time to the PEP in ms, with the resolution of timestamps.
    pub pep_rtt_ms: Option<f64>,
    /// Reports accepted, and those of them that named missing data.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// Segments with our option that were not valid reports.
    pub ignored: u64,
    /// Number of times that the PEP fell silent, or a timeout occurred.
    pub fallbacks: u64,
    /// Losses that did not reduce `cwnd_e2e` because the PEP had announced them.
    pub filtered: u64,
}

/// Checks that this machine and user can load it.
pub fn check() -> Result<(), Error> {
    loading::check("mdcc")?;
    loading::check_struct_ops()
}

/// Returns whether it is loaded, as seen from this mount namespace.
pub fn is_loaded() -> bool {
    bpffs::exists(NAME)
}

/// Loads it; leaves nothing behind on failure.
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

/// Loads it for the lifetime of this value. The kernel removes it when the process ends for any reason; no file keeps
/// it, so [`status`] and [`unload`] do not find it.
#[derive(Debug)]
pub struct Held {
    /// The congestion control, which is detached first, and the program that receives reports.
    _links: [Link; 2],
}

impl Held {
    /// Loads it with these parameters, for sockets that select it before they connect or listen.
    ///
    /// # Errors
    /// The same as [`load`]; leaves nothing behind.
    pub fn load(parameters: Parameters) -> Result<Held, Error> {
        let options = Options { parameters, ..Options::default() };
        loading::check("mdcc")?;
        let _turn = Turn::take()?;
        let cgroup = prepare(&options)?;
        Ok(Held { _links: attach(&cgroup, &options, None)? })
    }
}

/// Checks that it may be loaded with these options; returns the cgroup.
fn prepare(options: &Options) -> Result<File, Error> {
    options.parameters.check()?;
    check()?;
    if is_loaded() {
        return Err(Error::Wrong("mdcc is already loaded; run `ranway mdcc unload` first".into()));
    }
    if std::fs::read_to_string(AVAILABLE).is_ok_and(|names| names.split_whitespace().any(|name| name == NAME)) {
        let who = "another program has loaded mdcc, or `ranway mdcc load` in another mount namespace";
        return Err(Error::Wrong(format!("{who}: only one can be loaded at a time")));
    }
    let cgroup = options.cgroup.clone().map_or_else(loading::cgroup_root, Ok)?;
    File::open(&cgroup).map_err(Error::system(format!("open the cgroup {}", cgroup.display())))
}

/// Loads it. With `keep`, pins the links in that directory, so that it stays loaded when they are dropped.
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
        set.published = u32::from(parameters.published);
        Ok(open)
    })
    .and_then(|open| attempt("load mdcc", || open.load()))?;
    attempt("attach mdcc", || {
        // The receiver of reports first, then the congestion control that needs it.
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

/// Removes it. Returns the number of sockets that use it, which continue without a PEP, as CUBIC, until they are
/// closed.
///
/// Restores the previous default of the network namespace in which it was made the default, from whichever namespace
/// this is called.
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
        // A link ends with its last name and descriptor, but another process may hold a descriptor.
        if let Ok(link) = Link::open(directory.join(name)) {
            let _ = link.detach();
        }
    }
    bpffs::remove(NAME)?;
    Ok(users)
}

/// Returns the sockets that use it. See [`Watch::sockets`].
pub fn status() -> Result<Vec<Socket>, Error> {
    Watch::open()?.sockets()
}

/// Lists the sockets that use it.
#[derive(Debug)]
pub struct Watch {
    iterator: Link,
    /// The inode number of what is loaded, by which another one is told from it.
    loaded: u64,
}

impl Watch {
    /// Prepares to list the sockets of what is loaded. It takes no capabilities afterwards.
    ///
    /// # Errors
    /// [`Error::Missing`] without the rights, [`Error::Wrong`] if it is not loaded, and what the kernel refuses.
    pub fn open() -> Result<Watch, Error> {
        loading::check("mdcc")?;
        let missing = || Error::Wrong("mdcc is not loaded; run `ranway mdcc load`".into());
        let loaded = loaded().ok_or_else(missing)?;
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
        let iterator = attempt("list sockets", || skeleton.progs.mdcc_status.attach())?;
        Ok(Watch { iterator, loaded })
    }

    /// Returns whether what it watches is still loaded.
    pub fn is_loaded(&self) -> bool {
        loaded() == Some(self.loaded)
    }

    /// Returns the sockets, in all network namespaces, ordered by address: those of the processes in this process's PID namespace.
    /// A socket that its process has closed, but that still sends, is not among them.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn sockets(&self) -> Result<Vec<Socket>, Error> {
        let mut bytes = Vec::new();
        let mut lines = attempt("list sockets", || Iter::new(&self.iterator))?;
        lines.read_to_end(&mut bytes).map_err(Error::system("read the list of sockets"))?;
        let lines = bytes.chunks_exact(LINE);
        let mut sockets: Vec<Socket> = lines.filter_map(|line| parse(line.try_into().ok()?)).collect();
        let key = |socket: &Socket| (socket.netns, socket.local, socket.remote);
        sockets.sort_by_key(key);
        // A socket may have several files, in one process or in several.
        sockets.dedup_by_key(|socket| key(socket));
        Ok(sockets)
    }
}

/// Returns the inode number of the directory of what is loaded, as seen from this mount namespace.
fn loaded() -> Option<u64> {
    is_loaded().then(|| Some(std::fs::metadata(bpffs::directory(NAME)).ok()?.ino())).flatten()
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
    // CLOSE and TIME-WAIT (include/net/tcp_states.h): the socket is being cleaned up.
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
