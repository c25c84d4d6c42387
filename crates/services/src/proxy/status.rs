//! The status of a running proxy, through a socket that vanishes with it.
//!
//! The socket ([`super::names`]) answers the same user and root alone: addresses of UEs are nobody else's business. [`ask`] believes
//! only root, its own user, and a process that may change the network.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use netio::Error;
use rustix::net::sockopt::{socket_peercred, tcp_congestion};
use rustix::process::Pid;
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use super::book::Reason;
use super::feeds::{Feed, Unused};
use super::flow::{Flow, Side};
use super::gate::Bypass;
use super::hall::Hall;
use super::names::{NAMES, is_one_of_us, name};
use super::thread;
use super::worker::Shared;

/// Interval between checks whether the proxy ends.
const TURN: Duration = Duration::from_millis(50);
/// Time for a client to take the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Counters since the start.
    pub totals: Totals,
    /// Whether new connections pass through the proxy; otherwise they bypass it.
    pub accepting: bool,
    /// Why they bypass it, if they do.
    #[serde(default)]
    pub bypass: Option<Bypass>,
    /// Connections at which new ones begin to bypass it, and the memory in bytes that they may take together.
    #[serde(default)]
    pub limits: Limits,
    /// The reports on UEs that have connections, ordered by address.
    pub feeds: Vec<Feed>,
    /// How many reports were of no use since RAPID started.
    pub unused_reports: Unused,
    /// The connections, ordered by UE.
    pub connections: Vec<Connection>,
}

/// Counters since the start; `open` and `half_open` are present numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Connections at present whose client's handshake is complete.
    pub open: u64,
    /// Connections at present of which it is not.
    pub half_open: u64,
    /// Connections that bypassed the proxy although it was asked, by reason.
    pub bypassed: BTreeMap<Reason, u64>,
    /// SYNs that found no room on their way to the proxy, or could not be sent on. Their clients send them again.
    pub lost_syns: u64,
    /// Connections accepted from UEs.
    pub from_ue: u64,
    /// Connections accepted from servers.
    pub from_wan: u64,
    /// Connections of which both legs were established.
    pub established: u64,
    /// Connections that ended after both sides had everything.
    pub closed: u64,
    /// Connections that one side reset.
    pub reset: u64,
    /// Connections to hosts that refused or could not be reached. They bypassed the proxy, unless they had been accepted early.
    pub connect_failed: u64,
    /// Connections to hosts that did not answer in time. The same holds for them.
    pub connect_timeouts: u64,
    /// Connections without a byte for too long.
    pub idle_timeouts: u64,
    /// The same of half-closed ones.
    pub half_closed_timeouts: u64,
    /// Connections that did not keep the client's port, because it was still in use.
    pub other_port: u64,
    /// Connections whose client was there when its server had gone.
    pub not_ours: u64,
    /// How often new connections began to bypass the proxy because of overload.
    pub overloads: u64,
    /// How often descriptors or memory ran out.
    pub exhausted: u64,
    /// Connections ended by an error in the proxy.
    pub internal_errors: u64,
    /// Connections with readers that had stopped, reset because all together took too much memory.
    pub starved: u64,
    /// Bytes of memory that connections take at present, in sockets and pipes.
    pub memory_bytes: u64,
    /// Segments that were sent again to UEs, as of the latest samples of connections.
    #[serde(default)]
    pub retransmissions_to_ues: u64,
    /// The same to servers.
    #[serde(default)]
    pub retransmissions_to_servers: u64,
    /// Connections that ended and are not in the log, because the disk was full or too slow.
    #[serde(default)]
    pub unlogged: u64,
    /// Flow records of connections that ended which were sent to a collector. Whether it has them is unknown.
    #[serde(default)]
    pub exported: u64,
    /// Flow records that could not be sent, or that the collector's host is known to have refused.
    #[serde(default)]
    pub unexported: u64,
    /// Bytes taken from wired legs.
    pub to_ue_bytes: u64,
    /// Bytes taken from radio legs.
    pub from_ue_bytes: u64,
    /// Bytes of IP packets to UEs from UDP port 443 of servers (QUIC), which pass beside the proxy, as of a few seconds ago.
    #[serde(default)]
    pub quic_to_ue_bytes: u64,
    /// The same of packets from UEs.
    #[serde(default)]
    pub quic_from_ue_bytes: u64,
}

/// What connections may take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Their number at which new ones begin to bypass the proxy.
    pub connections: u64,
    /// Bytes of memory, in sockets and pipes.
    pub memory_bytes: u64,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Address and port of the UE.
    pub ue: SocketAddr,
    /// Address and port of its peer.
    pub peer: SocketAddr,
    /// Whether the UE opened it.
    pub from_ue: bool,
    /// Whether both legs are established.
    pub established: bool,
    /// Age in seconds.
    pub age_s: f64,
    /// Bytes that have arrived for the UE, and those that it has acknowledged.
    pub arrived: u64,
    /// See `arrived`.
    pub delivered: u64,
    /// Bytes towards the UE in the proxy, in the wired leg's receive buffer, and unsent in the radio leg's socket.
    pub held: u64,
    /// See `held`.
    pub unread: u64,
    /// See `held`.
    pub unsent: u64,
    /// Bytes that have arrived from the UE.
    pub from_ue_bytes: u64,
    /// Smoothed round-trip times of the wired and the radio leg in ms.
    pub wired_rtt_ms: f64,
    /// See `wired_rtt_ms`.
    pub radio_rtt_ms: f64,
    /// Delivery rate of the radio leg in Mbit/s.
    pub radio_mbps: f64,
    /// The payload rate in Mbit/s that RAPID promises it, if it does.
    pub promised_mbps: Option<f64>,
    /// Receive window of the wired leg in bytes.
    pub wired_window: u64,
    /// Congestion window of the radio leg in bytes.
    pub radio_window: u64,
    /// Congestion control of the radio leg, by its name in the kernel.
    pub radio_congestion: String,
}

impl Connection {
    /// Bytes towards the UE that wait in the proxy and its sockets.
    pub fn waiting(&self) -> u64 {
        self.held + self.unread + self.unsent
    }

    /// The rate in Mbit/s that RAPID promises connections together, if it promises any of them one.
    pub fn all_promised_mbps(connections: &[Connection]) -> Option<f64> {
        connections.iter().filter_map(|one| one.promised_mbps).reduce(|sum, rate| sum + rate)
    }

    fn of(flow: &Flow) -> Option<Connection> {
        let seen = flow.observe().ok()?;
        Some(Connection {
            ue: flow.ue(),
            peer: flow.peer(),
            from_ue: flow.opened_by() == Side::Ran,
            established: flow.is_established(),
            age_s: flow.opened().elapsed().as_secs_f64(),
            arrived: seen.arrived(),
            delivered: seen.delivered(),
            held: seen.held,
            unread: seen.unread(),
            unsent: u64::from(seen.radio.notsent_bytes),
            from_ue_bytes: seen.taken_from_ue,
            wired_rtt_ms: f64::from(seen.wired.rtt) / 1e3,
            radio_rtt_ms: f64::from(seen.radio.rtt) / 1e3,
            radio_mbps: seen.radio.delivery_rate as f64 * 8e-6,
            promised_mbps: flow.promised().map(|rate| rate.bits_per_sec() as f64 / 1e6),
            wired_window: u64::from(seen.wired.rcv_wnd.unwrap_or(0)),
            radio_window: u64::from(seen.radio.snd_cwnd) * u64::from(seen.radio.snd_mss),
            radio_congestion: tcp_congestion(flow.radio()).unwrap_or_default(),
        })
    }
}

/// Returns the status of all workers; with each connection if `connections`.
pub(super) fn status(workers: &[Arc<Shared>], connections: bool) -> Status {
    let mut totals = Totals::default();
    let mut flows = Vec::new();
    for shared in workers {
        let of = &shared.counters;
        for (total, counter) in [
            (&mut totals.established, &of.established),
            (&mut totals.closed, &of.closed),
            (&mut totals.reset, &of.reset),
            (&mut totals.connect_failed, &of.connect_failed),
            (&mut totals.connect_timeouts, &of.connect_timeouts),
            (&mut totals.idle_timeouts, &of.idle_timeouts),
            (&mut totals.half_closed_timeouts, &of.half_closed_timeouts),
            (&mut totals.other_port, &of.other_port),
            (&mut totals.exhausted, &of.exhausted),
            (&mut totals.internal_errors, &of.internal_errors),
            (&mut totals.starved, &of.starved),
            (&mut totals.memory_bytes, &of.memory),
            (&mut totals.retransmissions_to_ues, &of.samples.retransmissions[Side::Ran as usize]),
            (&mut totals.retransmissions_to_servers, &of.samples.retransmissions[Side::Wan as usize]),
            (&mut totals.to_ue_bytes, &of.to_ue_bytes),
            (&mut totals.from_ue_bytes, &of.from_ue_bytes),
        ] {
            *total += counter.load(Relaxed);
        }
        if connections {
            shared.registry.for_each(|_, flow| flows.push(Arc::clone(flow)));
        }
    }
    if let Some(Hall { book, admitted, gate, records, exports, .. }) = workers.first().map(|shared| &*shared.hall) {
        [totals.from_ue, totals.from_wan] =
            [Side::Ran, Side::Wan].map(|side| admitted.accepted[side as usize].load(Relaxed));
        totals.half_open = book.half_open() as u64;
        totals.open = (gate.count() as u64).saturating_sub(totals.half_open);
        let passed = admitted.passed.iter().map(|count| count.load(Relaxed));
        totals.bypassed = Reason::ALL.into_iter().zip(passed).filter(|(_, count)| *count > 0).collect();
        totals.lost_syns = admitted.lost.load(Relaxed) + admitted.failed.load(Relaxed);
        totals.not_ours = admitted.not_ours.load(Relaxed);
        [totals.quic_to_ue_bytes, totals.quic_from_ue_bytes] =
            admitted.quic.each_ref().map(|bytes| bytes.load(Relaxed));
        totals.unlogged = records.unlogged();
        [totals.exported, totals.unexported] = exports.get();
    }
    let gate = workers.first().map(|shared| &shared.gate);
    let is_leased = workers.first().is_some_and(|shared| shared.hall.leased.load(Relaxed));
    totals.overloads = gate.map_or(0, |gate| gate.shuts() as u64);
    flows.sort_by_key(|flow| (flow.ue(), flow.peer()));
    let connections = flows.iter().filter_map(|flow| Connection::of(flow)).collect();
    let (feeds, unused_reports) = workers.first().map(|shared| shared.registry.feeds.get()).unwrap_or_default();
    let accepting = is_leased && gate.is_some_and(|gate| gate.is_open());
    let why = gate.and_then(|gate| gate.why()).unwrap_or(Bypass::NotReady);
    let limits = workers.first().map(|shared| shared.settings.get());
    let limits = limits.map(|of| Limits { connections: of.max_connections as u64, memory_bytes: of.memory });
    Status {
        totals,
        accepting,
        bypass: (!accepting).then_some(why),
        limits: limits.unwrap_or_default(),
        feeds,
        unused_reports,
        connections,
    }
}

/// Answers questions for the status of the proxy whose interface towards the RAN has the number `ran`. `None` if others have all
/// names of the socket.
pub(super) fn serve(
    ran: u32,
    workers: Vec<Arc<Shared>>,
    stop: Arc<AtomicBool>,
) -> Result<Option<JoinHandle<()>>, Error> {
    let what = "open a socket for the status";
    let Some(listener) = bind(ran).map_err(Error::system(what))? else { return Ok(None) };
    listener.set_nonblocking(true).map_err(Error::system(what))?;
    let run = move || {
        while !stop.load(Relaxed) {
            match listener.accept() {
                // Who does not take the answer gets none.
                Ok((stream, _)) => drop(answer(&stream, &workers)),
                Err(_) => std::thread::sleep(TURN),
            }
        }
    };
    thread::start("proxy-status", run).map(Some)
}

/// Takes the first name that is free, if there is one.
fn bind(ran: u32) -> std::io::Result<Option<UnixListener>> {
    for n in 0..NAMES {
        match UnixListener::bind_addr(&address(ran, n)?) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return bound.map(Some),
        }
    }
    Ok(None)
}

fn answer(mut stream: &UnixStream, workers: &[Arc<Shared>]) -> std::io::Result<()> {
    if !is_one_of_us(stream) {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(&serde_json::to_vec(&status(workers, true))?)
}

/// Asks the proxy of this network namespace whose interface towards the RAN is `ran` for its status, or the only one.
///
/// # Errors
/// [`Error::Missing`] if there is none; [`Error::Wrong`] if, without `ran`, there is more than one.
pub fn ask(ran: Option<&str>) -> Result<Status, Error> {
    let what = || "list the interfaces".to_owned();
    let all = nix::net::if_::if_nameindex().map_err(Error::system(what()))?;
    let named = all.iter().map(|interface| (interface.name().to_string_lossy().into_owned(), interface.index()));
    // It may be an alternative name. No interface has the number 0.
    let wanted = ran.map(|ran| nix::net::if_::if_nametoindex(ran).unwrap_or(0));
    let found = named.filter(|(_, index)| wanted.is_none_or(|wanted| wanted == *index));
    let mut foreign = None;
    let mut connect = |index| {
        let answering = (0..NAMES).filter_map(|n| UnixStream::connect_addr(&address(index, n).ok()?).ok());
        answering.into_iter().find(|stream| match socket_peercred(stream) {
            Ok(of) if is_one_of_us(stream) || has_rights(of.pid) => true,
            of => {
                foreign = of.ok().map(|of| of.uid.as_raw());
                false
            }
        })
    };
    let running: Vec<(String, UnixStream)> = found.filter_map(|(text, index)| Some((text, connect(index)?))).collect();
    let names: Vec<&str> = running.iter().map(|(name, _)| name.as_str()).collect();
    let mut stream = match (running.as_slice(), ran) {
        ([(_, stream)], _) => stream,
        ([], _) if foreign.is_some() => {
            let user = foreign.unwrap_or_default();
            return Err(Error::Missing(format!(
                "a program of user {user} that is no proxy has the name of the status socket: stop it"
            )));
        }
        ([], Some(ran)) => {
            return Err(Error::Missing(format!("no proxy runs with --ran {ran} in this network namespace")));
        }
        ([], None) => return Err(Error::Missing("no proxy runs in this network namespace".into())),
        _ => return Err(Error::Wrong(format!("several proxies run; choose one with --ran: {}", names.join(", ")))),
    };
    let mut text = String::new();
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(Error::system("ask the proxy"))?;
    stream.read_to_string(&mut text).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Error::Wrong(format!(
            "the proxy does not answer within {} s: it hangs or is stopped",
            ANSWER_TIMEOUT.as_secs()
        )),
        _ => Error::system("read the status")(error),
    })?;
    if text.is_empty() {
        return Err(Error::Wrong("the proxy belongs to another user: use sudo".into()));
    }
    serde_json::from_str(&text).map_err(|error| Error::system("read the status")(std::io::Error::from(error)))
}

/// Whether a process may change the network, as a proxy must. In a user namespace of its own, anybody may have the rights for that.
fn has_rights(process: Pid) -> bool {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let namespace = |folder: &str| std::fs::read_link(format!("{folder}/ns/user")).ok();
    if namespace(&folder).is_none_or(|its| namespace("/proc/self").is_none_or(|own| own != its)) {
        return false;
    }
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    let rights = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    rights.is_some_and(|rights| rights & CapabilitySet::NET_ADMIN.bits() != 0)
}

fn address(ran: u32, n: u32) -> std::io::Result<Name> {
    Name::from_abstract_name(name("status", ran, n))
}

impl Status {
    /// Returns the reports on the UE that has an address, if there are any.
    pub fn feed(&self, ue: IpAddr) -> Option<&Feed> {
        let at = self.feeds.binary_search_by_key(&ue, |feed| feed.ue).ok()?;
        self.feeds.get(at)
    }

    /// Returns the connections of each UE.
    pub fn by_ue(&self) -> impl Iterator<Item = (IpAddr, &[Connection])> {
        self.connections.chunk_by(|one, other| one.ue.ip() == other.ue.ip()).map(|chunk| (chunk[0].ue.ip(), chunk))
    }
}
