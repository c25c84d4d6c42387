//! The book of connections that the proxy has or is about to have: who has how many, and which ones it lets pass.
//!
//! No host can take more than its share: there are limits for each UE, each server and each side, apart for connections whose
//! handshakes are not complete. What goes beyond a limit passes the proxy as if there were none.
//!
//! Anybody can send SYNs from addresses of others. So half of the places for connections in their handshake belong to hosts that
//! have completed one before, and most of those at a server: it has a connection for each place, whoever asked for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::flow::Side;
use super::gate::Gate;
use super::settings::Settings;
use crate::server::host;

/// A client and the server that it asks for.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// A SYN that passed is sent again for this long, and then has to pass, too: the server may know it.
const REMEMBERED: Duration = Duration::from_secs(130);
/// For this long after a server has refused a client's connection to a port, further ones of this client to it pass at once. Otherwise
/// each would cost two answers, and many hosts send few ICMP errors (`net.ipv4.icmp_ratelimit` of Linux: 6 at once and one a second to
/// each host). A server may serve other clients that it does not refuse.
const REFUSING: Duration = Duration::from_secs(10);
/// Hosts with a connection that was established within this time are served.
const SERVED: Duration = Duration::from_secs(10);
/// Connections of one pair count twice in this time at most.
const SERVED_AGAIN: Duration = Duration::from_secs(1);
/// If connections come by chance at some rate (a Poisson process), none comes in so many times their mean interval but once in a million
/// (-ln 1e-6).
const NO_CHANCE: f64 = 13.8;
/// Clients that have completed no handshake get at a server an eighth of its places for handshakes, but not less than a few; no more than
/// these few after as many of such clients have left a handshake incomplete for [`LATE`]. Fitted: 16 serve 160 new clients a second
/// whose handshake takes 0.1 s.
const UNPROVEN_PART: usize = 8;
const FEW: usize = 16;
/// Places of a side while the gate is on trial, one for each UE.
const ON_TRIAL: usize = 8;
/// How long after its server's answer a client should have completed its handshake. The SYN-ACK is repeated after a second.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// SYNs that are remembered, at most, and clients that have completed a handshake.
const MOST_REMEMBERED: usize = 1 << 16;

/// Why a connection passes the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The proxy takes no connections at the moment.
    Closed,
    /// The UE has as many as it may have.
    Ue,
    /// The server has as many as it may have.
    Server,
    /// The UE has too many that are not established.
    HalfOpenUe,
    /// The server has too many that are not established.
    HalfOpenServer,
    /// The side has too many that are not established.
    HalfOpen,
    /// The server has refused the proxy now or a moment ago, or cannot be reached. Its answer to the client is its own.
    Refused,
    /// The server has not answered the proxy in time.
    Silent,
    /// The machine lacks memory or descriptors.
    Exhausted,
    /// It passed before, and its SYN came again; or the kernel knows it as established, and it is not split.
    Again,
    /// Its first packet is in fragments, or the like.
    Unreadable,
    /// The client's packets to this port did not reach the proxy before, as with a rule of a firewall.
    Unheard,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 12] = [
        Reason::Closed,
        Reason::Ue,
        Reason::Server,
        Reason::HalfOpenUe,
        Reason::HalfOpenServer,
        Reason::HalfOpen,
        Reason::Refused,
        Reason::Silent,
        Reason::Exhausted,
        Reason::Again,
        Reason::Unreadable,
        Reason::Unheard,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Closed => "closed",
            Reason::Ue => "ue",
            Reason::Server => "server",
            Reason::HalfOpenUe => "half_open_ue",
            Reason::HalfOpenServer => "half_open_server",
            Reason::HalfOpen => "half_open",
            Reason::Refused => "refused",
            Reason::Silent => "silent",
            Reason::Exhausted => "exhausted",
            Reason::Again => "again",
            Reason::Unreadable => "unreadable",
            Reason::Unheard => "unheard",
        }
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The proxy connects to its server.
    Connecting,
    /// The proxy's listener has its SYN.
    Delivered,
    /// Its client's handshake is complete.
    Accepted,
}

/// How connections get on whose client's handshake is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshakes {
    /// There are none.
    None,
    UnderWay,
    /// Some have taken longer than they should: all of them those of one UE or at one server, which may be at fault itself.
    StuckAtOne,
    /// The same of several UEs at several servers.
    Stuck,
}

/// What is done with a SYN.
#[derive(Debug)]
pub(super) enum Answer {
    /// The connection has a place.
    Take(Place),
    /// It passes.
    Pass(Reason),
    /// The listener has it already, and answers again.
    Deliver,
    /// This worker has a connection of the same addresses and ports, which may be over.
    Check(usize),
    /// The proxy has it already, and is not ready to answer.
    Wait,
    /// This worker has tried to reach the server for a while, which is likely to refuse: it lets the SYN pass.
    GiveUp(usize),
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    half_open: usize,
    open: usize,
    /// Those among `half_open` for which [`Place::is_late`] was called. Of servers alone.
    late: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stage: Stage,
    worker: usize,
    since: Instant,
    /// The UE and the server.
    pair: (IpAddr, IpAddr),
}

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<Ends, Entry>,
    /// How many connections have these ends whose client is gone.
    released: BTreeMap<Ends, usize>,
    ues: BTreeMap<IpAddr, Counts>,
    servers: BTreeMap<IpAddr, Counts>,
    /// Of those that the UEs and the servers open.
    half_open: [usize; 2],
    /// Those that passed.
    passed: Memory<Ends>,
    /// Clients that have completed a handshake.
    proven: Memory<IpAddr>,
    /// Servers for which many SYNs are forged.
    flooded: Memory<IpAddr>,
    /// Clients that a server has refused at a port.
    refused: Memory<(IpAddr, SocketAddr)>,
    /// Servers that have refused somebody.
    refusing: Memory<IpAddr>,
    /// Clients of which the proxy heard nothing after its SYN-ACK, and the ports.
    unheard: Memory<(IpAddr, u16)>,
    /// The same of clients that have completed a handshake.
    heard: Memory<(IpAddr, u16)>,
    /// UEs and servers between which a connection was established.
    served: Memory<(IpAddr, IpAddr)>,
}

/// Things of the last time, of which the oldest are forgotten.
#[derive(Debug)]
struct Memory<T> {
    last: BTreeMap<T, Instant>,
    /// By age. Each may be here more than once.
    ages: VecDeque<(Instant, T)>,
}

impl<T> Default for Memory<T> {
    fn default() -> Memory<T> {
        Memory { last: BTreeMap::new(), ages: VecDeque::new() }
    }
}

impl<T: Copy + Ord> Memory<T> {
    fn note(&mut self, thing: T, now: Instant) {
        while let Some(&(at, oldest)) = self.ages.front()
            && (self.ages.len() >= MOST_REMEMBERED || now.saturating_duration_since(at) >= REMEMBERED)
        {
            self.ages.pop_front();
            // It may have come again since.
            if self.last.get(&oldest) == Some(&at) {
                self.last.remove(&oldest);
            }
        }
        self.last.insert(thing, now);
        self.ages.push_back((now, thing));
    }

    /// Notes a thing that matters for `span`, unless that was done within half of it: those of one host must not make others forgotten.
    fn refresh(&mut self, thing: T, span: Duration, now: Instant) {
        if !self.has_within(span / 2, &thing, now) {
            self.note(thing, now);
        }
    }

    fn has(&self, thing: &T, now: Instant) -> bool {
        self.has_within(REMEMBERED, thing, now)
    }

    fn has_within(&self, span: Duration, thing: &T, now: Instant) -> bool {
        self.last.get(thing).is_some_and(|&at| now.saturating_duration_since(at) < span)
    }

    fn forget(&mut self, thing: &T) {
        self.last.remove(thing);
    }
}

/// The book.
#[derive(Debug)]
pub(super) struct Book {
    inner: Mutex<Inner>,
    gate: Arc<Gate>,
}

/// The place of a connection, which ends with this.
#[derive(Debug)]
pub(super) struct Place {
    book: Arc<Book>,
    ends: Ends,
    side: Side,
    ue: IpAddr,
    server: IpAddr,
    stage: Stage,
    /// Whether its client had completed a handshake before.
    is_proven: bool,
    /// Whether its client takes too long.
    is_late: bool,
    /// Whether its addresses and ports are free for another connection.
    is_released: bool,
}

impl Book {
    pub(super) fn new(gate: Arc<Gate>) -> Book {
        Book { inner: Mutex::default(), gate }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a SYN of a client on a side, and gives its connection to `worker` if it takes it.
    pub(super) fn ask(
        self: &Arc<Book>,
        ends: Ends,
        side: Side,
        worker: usize,
        settings: &Settings,
        now: Instant,
    ) -> Answer {
        let mut inner = self.lock();
        match inner.known.get(&ends).map(|entry| (entry.stage, entry.worker)) {
            Some((Stage::Connecting, worker)) => return inner.on_again(ends, worker, now),
            // The SYN-ACK was lost.
            Some((Stage::Delivered, _)) => return Answer::Deliver,
            Some((Stage::Accepted, worker)) => return Answer::Check(worker),
            None => {}
        }
        if inner.passed.has(&ends, now) {
            return Answer::Pass(Reason::Again);
        }
        let (ue, server) = parties(ends, side, settings.ipv6_prefix);
        let client = client(side, ue, server);
        let of = |counts: &BTreeMap<IpAddr, Counts>, address| counts.get(&address).copied().unwrap_or_default();
        let (of_ue, of_server) = (of(&inner.ues, ue), of(&inner.servers, server));
        let has_connections = of(&inner.ues, client).open > 0 || of(&inner.servers, client).open > 0;
        let is_proven = has_connections || inner.proven.has(&client, now);
        let [of_side, at_server] = match is_proven {
            true => [settings.max_half_open, settings.max_half_open_per_server],
            false => {
                let is_flooded = inner.flooded.has(&server, now);
                [settings.max_half_open.div_ceil(2), unproven(settings.max_half_open_per_server, is_flooded)]
            }
        };
        // On trial, each UE has one place, so that none keeps the others from showing that connections get on.
        let [most_of_ue, most_of_side] = match self.gate.is_on_trial() {
            true => [1, ON_TRIAL],
            false => [settings.max_half_open_per_ue, of_side],
        };
        let reasons = [
            (Reason::Closed, !self.gate.is_open()),
            (Reason::Refused, inner.refused.has_within(REFUSING, &(ends.0.ip(), ends.1), now)),
            (Reason::Unheard, inner.unheard.has(&(ends.0.ip(), ends.1.port()), now)),
            (Reason::Ue, of_ue.open + of_ue.half_open >= settings.max_per_ue),
            (Reason::Server, of_server.open + of_server.half_open >= settings.max_per_server),
            (Reason::HalfOpenUe, of_ue.half_open >= most_of_ue),
            (Reason::HalfOpenServer, of_server.half_open >= at_server),
            (Reason::HalfOpen, inner.half_open[side as usize] >= most_of_side),
        ];
        if let Some((reason, _)) = reasons.into_iter().find(|(_, holds)| *holds) {
            inner.passed.note(ends, now);
            return Answer::Pass(reason);
        }
        let place = Place {
            book: Arc::clone(self),
            ends,
            side,
            ue,
            server,
            stage: Stage::Connecting,
            is_proven,
            is_late: false,
            is_released: false,
        };
        inner.enter(&place, Stage::Connecting, worker, now);
        drop(inner);
        self.gate.enter();
        Answer::Take(place)
    }

    /// Gives a connection that another process had to `worker`, although there may be too many. Its client has accepted it.
    pub(super) fn adopt(
        self: &Arc<Book>,
        ends: Ends,
        side: Side,
        worker: usize,
        ipv6_prefix: u8,
        now: Instant,
    ) -> Place {
        let (ue, server) = parties(ends, side, ipv6_prefix);
        let place = Place {
            book: Arc::clone(self),
            ends,
            side,
            ue,
            server,
            stage: Stage::Delivered,
            is_proven: true,
            is_late: false,
            is_released: false,
        };
        self.lock().enter(&place, Stage::Accepted, worker, now);
        self.gate.enter();
        place
    }

    /// The connections that have passed lately, and when.
    pub(super) fn passed(&self) -> Vec<(Ends, Instant)> {
        self.lock().passed.ages.iter().map(|&(at, ends)| (ends, at)).collect()
    }

    /// Returns the worker of a connection that the listener has accepted; `None` if there is none that waits for it.
    pub(super) fn accept(&self, ends: Ends) -> Option<usize> {
        let mut inner = self.lock();
        let entry = inner.known.get_mut(&ends).filter(|entry| entry.stage == Stage::Delivered)?;
        entry.stage = Stage::Accepted;
        Some(entry.worker)
    }

    /// Whether the proxy has a connection between these ends.
    pub(super) fn has(&self, ends: &Ends) -> bool {
        let inner = self.lock();
        inner.known.contains_key(ends) || inner.released.contains_key(ends)
    }

    /// Whether the proxy has a connection between these ends whose client is gone.
    pub(super) fn has_left(&self, ends: &Ends) -> bool {
        self.lock().released.contains_key(ends)
    }

    /// Takes note that a connection passes.
    pub(super) fn remember(&self, ends: Ends, now: Instant) {
        self.lock().passed.note(ends, now);
    }

    /// Takes note that a server has refused a client's connection, or cannot be reached.
    pub(super) fn refuses(&self, (client, server): Ends, now: Instant) {
        let mut inner = self.lock();
        inner.refused.note((client.ip(), server), now);
        inner.refusing.note(server.ip(), now);
    }

    /// How the handshakes of clients get on, of which each should be complete after `within`. They are not stuck while others are served:
    /// a host can keep its own from getting on, and has more than one address. But if many were served until a moment ago, and now nobody
    /// is, something keeps all of them.
    pub(super) fn handshakes(&self, now: Instant, within: Duration) -> Handshakes {
        let inner = self.lock();
        let mut under_way = inner.known.values().filter(|entry| entry.stage != Stage::Accepted).peekable();
        if under_way.peek().is_none() {
            return Handshakes::None;
        }
        let stuck = under_way.filter(|entry| now.saturating_duration_since(entry.since) >= within);
        let (ues, servers): (BTreeSet<IpAddr>, BTreeSet<IpAddr>) = stuck.map(|entry| entry.pair).unzip();
        let is_other = |ue: &IpAddr, server: &IpAddr| match (ues.len(), servers.len()) {
            (1, _) => !ues.contains(ue),
            (_, 1) => !servers.contains(server),
            _ => !ues.contains(ue) && !servers.contains(server),
        };
        let others_are_served = || {
            let age = |at: &Instant| now.saturating_duration_since(*at);
            let recent = inner.served.ages.iter().rev().take_while(|(at, _)| age(at) < SERVED);
            let mut others = recent.filter(|(_, (ue, server))| is_other(ue, server)).map(|(at, _)| age(at)).peekable();
            // So long a silence does not come by chance after so many.
            others.peek().copied().is_some_and(|silence| {
                silence.as_secs_f64() * (others.count() as f64) < NO_CHANCE * SERVED.as_secs_f64()
            })
        };
        if ues.is_empty() || others_are_served() {
            Handshakes::UnderWay
        } else if ues.len() == 1 || servers.len() == 1 {
            Handshakes::StuckAtOne
        } else {
            Handshakes::Stuck
        }
    }

    /// The number of connections that are not established.
    pub(super) fn half_open(&self) -> usize {
        self.lock().half_open.iter().sum()
    }
}

/// Returns by what the UE and the server of a connection are known that a client on this side opens. A UE has a whole IPv6 network, and so
/// may a server that opens connections.
fn parties((client, to): Ends, side: Side, ipv6_prefix: u8) -> (IpAddr, IpAddr) {
    let client = host(client.ip(), ipv6_prefix);
    match side {
        Side::Ran => (client, to.ip()),
        Side::Wan => (host(to.ip(), ipv6_prefix), client),
    }
}

/// Which of them has opened it.
fn client(side: Side, ue: IpAddr, server: IpAddr) -> IpAddr {
    if side == Side::Ran { ue } else { server }
}

/// Returns how many places at a server may be taken when a client gets another one that has completed no handshake.
fn unproven(most: usize, is_flooded: bool) -> usize {
    let share = if is_flooded { FEW } else { FEW.max(most / UNPROVEN_PART) };
    share.min(most.div_ceil(2))
}

impl Inner {
    fn enter(&mut self, place: &Place, stage: Stage, worker: usize, since: Instant) {
        self.known.insert(place.ends, Entry { stage, worker, since, pair: (place.ue, place.server) });
        self.ues.entry(place.ue).or_default().half_open += 1;
        self.servers.entry(place.server).or_default().half_open += 1;
        self.half_open[place.side as usize] += 1;
    }

    /// Decides about a SYN that comes again while the proxy connects. It does not pass as long as the server may answer the proxy's own,
    /// which is sent again as well: the server would take the second one for an old one, and answer with a challenge. But a host
    /// that has refused before and serves nobody may have no further ICMP error to send: then the client should get the next one.
    fn on_again(&self, ends: Ends, worker: usize, now: Instant) -> Answer {
        let server = ends.1.ip();
        let serves = [&self.servers, &self.ues].iter().any(|all| all.get(&server).is_some_and(|count| count.open > 0));
        if !serves && self.refusing.has(&server, now) { Answer::GiveUp(worker) } else { Answer::Wait }
    }

    fn leave(&mut self, place: &Place, half_open: bool) {
        let late = usize::from(place.is_late);
        for (counts, address, late) in [(&mut self.ues, place.ue, 0), (&mut self.servers, place.server, late)] {
            let Some(count) = counts.get_mut(&address) else { continue };
            if half_open {
                count.half_open -= 1;
                count.late -= late;
            } else {
                count.open -= 1;
            }
            if count.half_open + count.open == 0 {
                counts.remove(&address);
            }
        }
        if half_open {
            self.half_open[place.side as usize] -= 1;
        }
    }
}

impl Place {
    /// The client and its server.
    pub(super) fn ends(&self) -> Ends {
        self.ends
    }

    /// Whether the client had completed a handshake before.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Its server has answered [`LATE`] ago, and its client has not. If a server has many such clients that nobody knows, their SYNs are
    /// likely to be forged.
    pub(super) fn is_late(&mut self, now: Instant) {
        if self.is_proven || std::mem::replace(&mut self.is_late, true) {
            return;
        }
        let mut inner = self.book.lock();
        let Some(count) = inner.servers.get_mut(&self.server) else { return };
        count.late += 1;
        if count.late >= FEW && !inner.flooded.has(&self.server, now + REMEMBERED / 2) {
            inner.flooded.note(self.server, now);
        }
    }

    /// The client is gone, and may open another connection from the same port.
    pub(super) fn release(&mut self) {
        if !std::mem::replace(&mut self.is_released, true) {
            let mut inner = self.book.lock();
            inner.known.remove(&self.ends);
            *inner.released.entry(self.ends).or_default() += 1;
        }
    }

    /// The client has not gone on with its handshake, although its server has: something between them drops its packets. For a
    /// while, its connections to that port pass.
    pub(super) fn is_unheard(&self, now: Instant) {
        let (mut inner, what) = (self.book.lock(), (self.ends.0.ip(), self.ends.1.port()));
        // Whoever forges its address could otherwise keep the client from the proxy.
        if !inner.heard.has(&what, now) {
            inner.unheard.note(what, now);
        }
    }

    /// The listener is about to have the client's SYN.
    pub(super) fn deliver(&mut self) {
        self.stage = Stage::Delivered;
        if let Some(entry) = self.book.lock().known.get_mut(&self.ends) {
            entry.stage = Stage::Delivered;
        }
    }

    /// Both handshakes are complete, since `now`.
    pub(super) fn establish(&mut self, now: Instant) {
        if std::mem::replace(&mut self.stage, Stage::Accepted) == Stage::Accepted {
            return;
        }
        let book = Arc::clone(&self.book);
        let mut inner = book.lock();
        // The other count first, so that the host's entry stays.
        for (counts, address) in [(0, self.ue), (1, self.server)] {
            let counts = if counts == 0 { &mut inner.ues } else { &mut inner.servers };
            counts.entry(address).or_default().open += 1;
        }
        inner.leave(self, true);
        let client = client(self.side, self.ue, self.server);
        inner.proven.refresh(client, REMEMBERED, now);
        inner.refused.forget(&(self.ends.0.ip(), self.ends.1));
        inner.refusing.forget(&self.ends.1.ip());
        inner.served.refresh((self.ue, self.server), SERVED_AGAIN, now);
        inner.heard.refresh((self.ends.0.ip(), self.ends.1.port()), REMEMBERED, now);
        if let Some(entry) = inner.known.get_mut(&self.ends) {
            entry.stage = Stage::Accepted;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.book.lock();
        if !self.is_released {
            inner.known.remove(&self.ends);
        } else if let Some(count) = inner.released.get_mut(&self.ends) {
            *count -= 1;
            if *count == 0 {
                inner.released.remove(&self.ends);
            }
        }
        inner.leave(self, self.stage != Stage::Accepted);
        drop(inner);
        self.book.gate.leave();
    }
}

#[cfg(test)]
mod tests;
