//! The settings of a proxy.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use netio::Error;
use netio::socket::Keepalive;
use netio::sys::page_size;
use rustix::process::{Resource, getrlimit};
use units::Rate;

use super::relay::LEAST_PIPE;
use crate::server::{Network, host};

/// Descriptors of a connection: its sockets. While a direction holds bytes, it may have a pipe as well.
pub(super) const FILES_EACH: u64 = 2;
/// Descriptors of a worker beside its connections, and pipes that it may always have.
const FILES_OF_WORKER: usize = 8;
const LEAST_PIPES: usize = 16;
/// Descriptors for reports, metrics, status, programs and the like.
const OTHER_FILES: u64 = 128;

/// Of each side. Both together fit into the queue of a listener, where the kernel would otherwise begin with SYN cookies.
pub(super) const MOST_HALF_OPEN: usize = 2_000;

/// The least receive buffer for the beginning, with the kernel's overhead. Little is sent into a smaller one, and it does not grow until
/// enough has arrived.
const LEAST_FIRST: usize = 64 << 10;

/// Interval between keepalives to a silent peer, of which [`KEEPALIVES`] without an answer end the connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(75);
const KEEPALIVES: u32 = 9;
/// The least memory for a worker's connections.
const LEAST_MEMORY: u64 = 16 << 20;

/// Processors at the start. Others may be assigned while it runs.
static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Returns the kernel's first and its largest receive buffer, with its overhead.
fn kernel_receive_buffers() -> Option<[usize; 2]> {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").ok()?;
    let all: Vec<usize> = all.split_whitespace().map(|bytes| bytes.parse().ok()).collect::<Option<_>>()?;
    let [_least, first, most] = all[..] else { return None };
    Some([first, most])
}

/// Packets whose mark has the bits `value` where `mask` is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The bits.
    pub value: u32,
    /// Where they count.
    pub mask: u32,
}

impl Mark {
    /// Whether a packet has it, of which this is the whole mark.
    pub(super) fn is_of(&self, mark: u32) -> bool {
        mark & self.mask == self.value
    }
}

/// What the operator has decided for connections whose SYN has a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The mark.
    pub mark: Mark,
    /// The congestion control of their radio legs, by its name in the kernel; `None` for that of other connections.
    pub congestion: Option<String>,
    /// The rate that each has towards its UE at most; `None` for no limit.
    pub rate: Option<Rate>,
}

/// Returns what connections may take together by default: half of what makes the kernel save memory for TCP (the second value of
/// `net.ipv4.tcp_mem`, in pages), so that others' connections have as much, and half of what this process's control group may
/// have.
fn default_memory() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let pressure = read("/proc/sys/net/ipv4/tcp_mem")
        .and_then(|all| all.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map(|pages| pages.saturating_mul(page_size()));
    // Version 2 alone; `0::/…` names the group.
    let group = read("/proc/self/cgroup")
        .and_then(|all| Some(all.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned()))
        .and_then(|group| read(&format!("/sys/fs/cgroup{group}/memory.max"))?.trim().parse::<u64>().ok());
    pressure.into_iter().chain(group).min().unwrap_or(1 << 30) / 2
}

/// The settings of a proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The interfaces towards the servers.
    pub wan: Vec<String>,
    /// The interfaces towards the UEs. The first one names the proxy.
    pub ran: Vec<String>,
    /// Destination ports of connections to split.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Destination ports of connections that the proxy accepts before their server does.
    pub early: Vec<RangeInclusive<u16>>,
    /// Whether connections that servers open are split, too.
    pub opened_by_servers: bool,
    /// Hosts whose connections bypass the proxy, on either side.
    pub bypass: Vec<Network>,
    /// Marks of connections that bypass the proxy.
    pub bypass_marks: Vec<Mark>,
    /// Classes of connections. The first one whose mark a connection has counts.
    pub classes: Vec<Class>,
    /// UEs whose connections alone are split; all if there are none here.
    pub only: Vec<Network>,
    /// Length of the IPv6 prefix that each UE has.
    pub ipv6_prefix: u8,
    /// The port at which the proxy listens, on the loopback addresses.
    pub port: u16,
    /// Number of threads that move bytes.
    pub threads: usize,
    /// Number of connections at which new ones begin to bypass the proxy.
    pub max_connections: usize,
    /// The same for those of a UE, and for those of a server.
    pub max_per_ue: usize,
    /// See `max_per_ue`.
    pub max_per_server: usize,
    /// The same for connections that are not established yet: those that one side opens, those of a UE, and those of a server.
    pub max_half_open: usize,
    /// See `max_half_open`.
    pub max_half_open_per_ue: usize,
    /// See `max_half_open`.
    pub max_half_open_per_server: usize,
    /// Bytes that the proxy holds in each direction of a connection, between both sockets.
    pub buffer: usize,
    /// Receive buffer of each leg in bytes. The kernel uses up to as much again for its overhead.
    pub receive_buffer: usize,
    /// The kernel's first and its largest receive buffer (`net.ipv4.tcp_rmem`), with its overhead; `None` if unknown.
    pub kernel_receive_buffers: Option<[usize; 2]>,
    /// Bytes that a leg's socket holds beyond those that it has sent.
    pub unsent: usize,
    /// Bytes that connections may take together, in sockets and pipes.
    pub memory: u64,
    /// Time that a server has to accept a connection, before it bypasses the proxy.
    pub connect_timeout: Duration,
    /// Time without a byte after which a connection is reset.
    pub idle_timeout: Duration,
    /// The same for a connection of which one side has ended.
    pub half_closed_timeout: Duration,
    /// Time without a packet after which keepalives begin.
    pub keepalive: Duration,
    /// Time without an answer after which a host is dead that is probed because the other one asks.
    pub dead_peer_time: Duration,
    /// The congestion control of radio legs, by its name in the kernel; `None` for the kernel's default.
    pub radio_congestion: Option<String>,
}

impl Settings {
    /// The defaults between the interfaces `wan` and `ran`.
    pub fn new(wan: &[&str], ran: &[&str]) -> Settings {
        Settings {
            wan: wan.iter().copied().map(str::to_owned).collect(),
            ran: ran.iter().copied().map(str::to_owned).collect(),
            ports: vec![1..=u16::MAX],
            early: Vec::new(),
            opened_by_servers: false,
            bypass: Vec::new(),
            bypass_marks: Vec::new(),
            classes: Vec::new(),
            only: Vec::new(),
            ipv6_prefix: 64,
            port: 5080,
            threads: *CORES,
            max_connections: 20_000,
            max_per_ue: 1_000,
            max_per_server: 10_000,
            max_half_open: 2_000,
            max_half_open_per_ue: 200,
            max_half_open_per_server: 1_000,
            buffer: 256 << 10,
            receive_buffer: 1 << 20,
            kernel_receive_buffers: kernel_receive_buffers(),
            unsent: 256 << 10,
            memory: default_memory(),
            connect_timeout: Duration::from_secs(3),
            // RFC 5382, REQ-5.
            idle_timeout: Duration::from_secs((2 * 60 + 4) * 60),
            half_closed_timeout: Duration::from_secs(15 * 60),
            keepalive: Duration::from_secs(60 * 60),
            dead_peer_time: Duration::from_secs(15),
            radio_congestion: None,
        }
    }

    /// Returns the receive buffer with which legs begin if the kernel tunes it at first.
    pub(super) fn first_receive_buffer(&self) -> Option<usize> {
        self.kernel_receive_buffers.and_then(|kernels| tuned(kernels, self.receive_buffer))
    }

    /// Returns by what the host is known that has an address: all addresses of a UE's IPv6 network are one host's.
    pub(super) fn host(&self, address: IpAddr) -> IpAddr {
        host(address, self.ipv6_prefix)
    }

    fn class(&self, mark: u32) -> Option<&Class> {
        self.classes.iter().find(|class| class.mark.is_of(mark))
    }

    /// Returns the congestion control of the radio leg of a connection whose SYN has this mark; `None` for the kernel's default.
    pub(super) fn congestion(&self, mark: u32) -> Option<&str> {
        self.class(mark)
            .and_then(|class| class.congestion.as_ref())
            .or(self.radio_congestion.as_ref())
            .map(String::as_str)
    }

    /// Returns what such a leg may send at most, in bytes per second; [`u64::MAX`] without a limit.
    pub(super) fn most_pacing(&self, mark: u32) -> u64 {
        self.class(mark).and_then(|class| class.rate).map_or(u64::MAX, |rate| (rate.bits_per_sec() / 8).max(1))
    }

    /// Bytes that the connections of a worker may take together.
    pub(super) fn memory_each(&self) -> u64 {
        self.memory / self.threads.max(1) as u64
    }

    /// Keepalives to a host for which nobody asks.
    pub(super) fn keepalives(&self) -> Keepalive {
        Keepalive {
            silence: self.keepalive.max(Duration::from_secs(1)),
            interval: KEEPALIVE_INTERVAL,
            probes: KEEPALIVES,
        }
    }

    /// Whether the kernel tunes receive buffers at first.
    pub(super) fn is_tuned(&self) -> bool {
        self.first_receive_buffer().is_some()
    }

    /// Files that the proxy needs for these connections, without pipes for most of them.
    pub(super) fn files(&self) -> u64 {
        let each = (FILES_OF_WORKER + 2 * LEAST_PIPES) as u64;
        OTHER_FILES + self.threads as u64 * each + self.max_connections as u64 * FILES_EACH
    }

    /// Pipes that each worker may have: half of the files that the limit leaves it.
    pub(super) fn pipes_each(&self) -> usize {
        let left = getrlimit(Resource::Nofile).current.map_or(u64::MAX, |files| files.saturating_sub(self.files()));
        LEAST_PIPES + (left / 2 / self.threads.max(1) as u64).min(1 << 20) as usize
    }

    /// Returns what a running proxy can have of `new`, and the settings that wait for a restart.
    ///
    /// # Errors
    /// [`Error::Wrong`] if a setting is invalid.
    pub(super) fn changed(&self, new: Settings) -> Result<(Settings, Vec<&'static str>), Error> {
        new.check()?;
        let fixed = [
            ("the interfaces towards the servers", self.wan == new.wan),
            ("the interfaces towards the UEs", self.ran == new.ran),
            ("the port at which it listens", self.port == new.port),
            ("the number of threads", self.threads == new.threads),
            ("the buffer between two sockets", self.buffer == new.buffer),
        ];
        let waiting = fixed.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect();
        let (wan, ran) = (self.wan.clone(), self.ran.clone());
        Ok((Settings { wan, ran, port: self.port, threads: self.threads, buffer: self.buffer, ..new }, waiting))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |why: &str| Err(Error::Wrong(why.to_owned()));
        let limits = [self.max_connections, self.max_per_ue, self.max_per_server];
        let half_open = [self.max_half_open, self.max_half_open_per_ue, self.max_half_open_per_server];
        let all = [&limits[..], &half_open, &[self.threads, self.ports.len(), usize::from(self.port)]].concat();
        if all.contains(&0) {
            return wrong("the numbers of threads, connections and ports must be greater than 0");
        }
        if self.wan.is_empty() || self.ran.is_empty() {
            return wrong("an interface towards the servers (`wan`) and one towards the UEs (`ran`) are needed");
        }
        if self.max_half_open > MOST_HALF_OPEN {
            return Err(Error::Wrong(format!("at most {MOST_HALF_OPEN} connections may be half-open on each side")));
        }
        if !(LEAST_PIPE..=64 << 20).contains(&self.buffer) {
            return wrong("the buffer must be between 32 KiB and 64 MiB");
        }
        if [self.connect_timeout, self.idle_timeout, self.half_closed_timeout].contains(&Duration::ZERO) {
            return wrong("the time to connect and the times without a byte must be greater than 0");
        }
        if !(16 << 10..=1 << 30).contains(&self.receive_buffer) || !(4 << 10..=1 << 30).contains(&self.unsent) {
            return wrong(
                "the receive buffer must be between 16 KiB and 1 GiB, and unsent data between 4 KiB and 1 GiB",
            );
        }
        if self.memory_each() < LEAST_MEMORY {
            return wrong("connections need at least 16 MiB of memory for each thread");
        }
        Ok(())
    }
}

/// Returns the receive buffer with which legs begin if the kernel tunes it at first. Where it would begin with too much or too little,
/// or choose too small a window scale, buffers have their whole size from the start.
fn tuned([first, most]: [usize; 2], whole: usize) -> Option<usize> {
    (first >= LEAST_FIRST && (first..=most).contains(&(2 * whole))).then_some(first / 2)
}

/// The settings at present, for all threads.
#[derive(Debug)]
pub(super) struct Current(RwLock<Arc<Settings>>);

impl Current {
    pub(super) fn new(settings: Settings) -> Current {
        Current(RwLock::new(Arc::new(settings)))
    }

    pub(super) fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set(&self, settings: Settings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_change_waits_for_a_restart_and_keeps_nothing_else_from_changing() {
        let old = Settings::new(&["wan0"], &["ran0"]);
        let (unsent, buffer) = (old.unsent / 2, old.buffer * 2);
        let new = Settings { unsent, buffer, threads: old.threads + 1, ..old.clone() };
        let (changed, waiting) = old.changed(new.clone()).expect("it is valid");
        assert_eq!(waiting, ["the number of threads", "the buffer between two sockets"]);
        assert_eq!(changed, Settings { unsent, ..old.clone() });
        assert!(old.changed(Settings { idle_timeout: Duration::ZERO, ..new }).is_err());
        assert_eq!(old.changed(old.clone()).expect("it is valid"), (old.clone(), Vec::new()));
    }

    #[test]
    fn the_kernel_tunes_buffers_if_it_begins_with_enough_and_may_reach_the_whole() {
        // Since Linux 4.20, and before.
        assert_eq!(tuned([131_072, 6 << 20], 1 << 20), Some(65_536));
        assert_eq!(tuned([87_380, 6 << 20], 1 << 20), Some(43_690));
        for kernels in [[16_384, 6 << 20], [131_072, 1 << 20], [4 << 20, 6 << 20], [4096, 4096]] {
            assert_eq!(tuned(kernels, 1 << 20), None, "{kernels:?}");
        }
        assert_eq!(tuned([131_072, 6 << 20], 32 << 10), None);
    }
}
