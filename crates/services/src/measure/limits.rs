//! Limits of the server, and who counts against them.

use crate::server::Site;
use speedtest::rmbt::token::{EARLY, LATE};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The most addresses that are remembered; those without a connection are forgotten first.
const MOST_ADDRESSES: usize = 65_536;
/// Long bodies of requests that an address may send at the same time: all addresses together have a bound.
const MOST_BODIES: usize = 2;
/// The most tokens that are remembered, while they are valid.
const MOST_TOKENS: usize = 65_536;
/// When a client that was refused may ask again, in seconds.
pub(super) const RETRY_AFTER: u64 = 5;

/// What clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections.
    pub connections: usize,
    /// The most connections that have not presented a token yet. When there are more, the oldest of them is closed.
    pub waiting: usize,
    /// The most connections of an IPv4 address or an IPv6 /64.
    pub connections_per_address: usize,
    /// The most flows: connections that have presented a token.
    pub flows: usize,
    /// The most flows of an IPv4 address or an IPv6 /64. By default a client may have 64 in both directions, and ask for times.
    pub flows_per_address: usize,
    /// The most connections with one token, one after the other included.
    pub uses_per_token: u32,
    /// The most requests to the control server per minute and address.
    pub requests_per_minute: u32,
    /// The longest transfer in seconds.
    pub seconds: u32,
    /// The most bytes of a transfer.
    pub bytes: u64,
    /// The longest time without a byte.
    pub idle: Duration,
    /// The longest time from the connection to the token.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 4096,
            waiting: 1024,
            connections_per_address: 256,
            flows: 1024,
            flows_per_address: 130,
            uses_per_token: 130,
            requests_per_minute: 60,
            seconds: 60,
            bytes: 1 << 37,
            idle: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
        }
    }
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Busy {
    Connections,
    AddressConnections,
    Flows,
    AddressFlows,
    Token,
    Requests,
}

impl Busy {
    pub(super) const ALL: [(Busy, &str); 6] = [
        (Busy::Connections, "connections"),
        (Busy::AddressConnections, "connections_of_address"),
        (Busy::Flows, "flows"),
        (Busy::AddressFlows, "flows_of_address"),
        (Busy::Token, "uses_of_token"),
        (Busy::Requests, "requests_of_address"),
    ];
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Busy::Token => f.write_str("token used too often"),
            _ => write!(f, "busy, retry after {RETRY_AFTER} s"),
        }
    }
}

/// Returns the part of an address that is logged and stored: its /24 or /48.
pub(super) fn truncated(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(address) => format!("{}/48", std::net::Ipv6Addr::from_bits(address.to_bits() >> 80 << 80)),
    }
}

/// Whether an address is of this host or of a private network.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local(),
    }
}

#[derive(Debug)]
struct Counts {
    connections: usize,
    flows: usize,
    /// Long bodies of requests that are being read.
    bodies: usize,
    /// Requests that are left, as a fraction of those of a minute, at a time.
    requests: (f64, Instant),
}

#[derive(Debug, Default)]
struct Book {
    connections: usize,
    flows: usize,
    next: u64,
    /// Connections without a token, by age, and how to end them.
    waiting: BTreeMap<u64, Arc<Notify>>,
    sites: BTreeMap<Site, Counts>,
    tokens: BTreeMap<String, (u32, Instant)>,
    evicted: u64,
}

impl Book {
    /// Returns the counts of a site, or nothing if no further site can be remembered.
    fn site(&mut self, site: Site, now: Instant) -> Option<&mut Counts> {
        if self.sites.len() >= MOST_ADDRESSES && !self.sites.contains_key(&site) {
            let minute = Duration::from_secs(60);
            self.sites.retain(|_, counts| counts.connections > 0 || now - counts.requests.1 < minute);
            if self.sites.len() >= MOST_ADDRESSES {
                // Whoever has so many addresses gains little by some more requests; others must not be refused for that.
                self.sites.retain(|_, counts| counts.connections > 0);
            }
            if self.sites.len() >= MOST_ADDRESSES {
                return None;
            }
        }
        Some(self.sites.entry(site).or_insert(Counts { connections: 0, flows: 0, bodies: 0, requests: (1.0, now) }))
    }
}

/// Counts connections, flows, uses of tokens and requests against the limits.
#[derive(Debug)]
pub(super) struct Gate {
    limits: Limits,
    book: Mutex<Book>,
}

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(super) struct Visitor {
    gate: Arc<Gate>,
    site: Site,
    id: u64,
    flow: bool,
    evicted: Arc<Notify>,
}

impl Gate {
    pub(super) fn new(limits: Limits) -> Arc<Gate> {
        Arc::new(Gate { limits, book: Mutex::default() })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Each method leaves the book consistent, even if it panics.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection that has just been accepted.
    pub(super) fn enter(self: &Arc<Gate>, address: IpAddr) -> Result<Visitor, Busy> {
        let (site, limits) = (Site::of(address), &self.limits);
        let mut book = self.book();
        if book.connections >= limits.connections {
            return Err(Busy::Connections);
        }
        let counts = book.site(site, Instant::now()).ok_or(Busy::Connections)?;
        if counts.connections >= limits.connections_per_address {
            return Err(Busy::AddressConnections);
        }
        counts.connections += 1;
        book.connections += 1;
        if book.waiting.len() >= limits.waiting
            && let Some((_, oldest)) = book.waiting.pop_first()
        {
            book.evicted += 1;
            oldest.notify_one();
        }
        let (id, evicted) = (book.next, Arc::new(Notify::new()));
        book.next += 1;
        book.waiting.insert(id, evicted.clone());
        Ok(Visitor { gate: self.clone(), site, id, flow: false, evicted })
    }

    /// Counts a request to the control server.
    pub(super) fn request(&self, address: IpAddr) -> Result<(), Busy> {
        let now = Instant::now();
        let mut book = self.book();
        let (left, since) = &mut book.site(Site::of(address), now).ok_or(Busy::Requests)?.requests;
        let refilled = (*left + (now - *since).as_secs_f64() / 60.0).min(1.0);
        let one = 1.0 / f64::from(self.limits.requests_per_minute.max(1));
        (*left, *since) = (refilled, now);
        // The sum of many refills is not exact.
        if refilled + 1e-9 < one {
            return Err(Busy::Requests);
        }
        *left = (refilled - one).max(0.0);
        Ok(())
    }

    /// Counts a long body of a request from an address, until what it returns is dropped; nothing if the address has as many as it may.
    pub(super) fn body(&self, address: IpAddr) -> Option<Body<'_>> {
        let site = Site::of(address);
        let mut book = self.book();
        // Its connection keeps it there.
        let counts = book.sites.get_mut(&site).filter(|counts| counts.bodies < MOST_BODIES)?;
        counts.bodies += 1;
        Some(Body { gate: self, site })
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns connections, flows, connections that wait, and how many of those were ended to make room.
    pub(super) fn counts(&self) -> (usize, usize, usize, u64) {
        let book = self.book();
        (book.connections, book.flows, book.waiting.len(), book.evicted)
    }
}

/// A long body of a request.
#[derive(Debug)]
pub(super) struct Body<'a> {
    gate: &'a Gate,
    site: Site,
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.gate.book().sites.get_mut(&self.site) {
            counts.bodies -= 1;
        }
    }
}

impl Visitor {
    /// Waits until the connection has to end, to make room for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Counts the connection as a flow, with the token that it has presented.
    pub(super) fn start_flow(&mut self, token: Option<&str>) -> Result<(), Busy> {
        let now = Instant::now();
        let limits = &self.gate.limits;
        let mut book = self.gate.book();
        if book.flows >= limits.flows {
            return Err(Busy::Flows);
        }
        if book.sites.get(&self.site).is_none_or(|counts| counts.flows >= limits.flows_per_address) {
            return Err(Busy::AddressFlows);
        }
        if let Some(token) = token {
            let valid = Duration::from_secs((EARLY + LATE).unsigned_abs());
            if book.tokens.len() >= MOST_TOKENS {
                book.tokens.retain(|_, (_, first)| now - *first <= valid);
            }
            if book.tokens.len() >= MOST_TOKENS && !book.tokens.contains_key(token) {
                return Err(Busy::Flows);
            }
            let (uses, _) = book.tokens.entry(token.to_owned()).or_insert((0, now));
            if *uses >= limits.uses_per_token {
                return Err(Busy::Token);
            }
            *uses += 1;
        }
        book.flows += 1;
        if let Some(counts) = book.sites.get_mut(&self.site) {
            counts.flows += 1;
        }
        book.waiting.remove(&self.id);
        self.flow = true;
        Ok(())
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut book = self.gate.book();
        book.connections -= 1;
        book.waiting.remove(&self.id);
        book.flows -= usize::from(self.flow);
        let now = Instant::now();
        if let Some(counts) = book.sites.get_mut(&self.site) {
            counts.connections -= 1;
            counts.flows -= usize::from(self.flow);
            let (left, since) = counts.requests;
            let rested = left + (now - since).as_secs_f64() / 60.0 >= 1.0;
            if counts.connections == 0 && rested {
                book.sites.remove(&self.site);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(limits: Limits) -> Arc<Gate> {
        Gate::new(limits)
    }

    fn address(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    #[test]
    fn an_address_has_its_own_limits_and_leaves_no_trace() {
        let gate = gate(Limits { connections_per_address: 2, flows_per_address: 1, ..Limits::default() });
        let (mut one, mut two) = (gate.enter(address(1)).expect("first"), gate.enter(address(1)).expect("second"));
        assert_eq!(gate.enter(address(1)).err(), Some(Busy::AddressConnections));
        let other = gate.enter(address(2)).expect("another address");
        assert_eq!(one.start_flow(None), Ok(()));
        assert_eq!(two.start_flow(None), Err(Busy::AddressFlows));
        assert_eq!(gate.counts(), (3, 1, 2, 0));
        drop((one, two, other));
        assert_eq!(gate.counts(), (0, 0, 0, 0));
        assert!(gate.book().sites.is_empty());
    }

    #[test]
    fn all_addresses_of_a_64_count_as_one() {
        let gate = gate(Limits { connections_per_address: 1, ..Limits::default() });
        let six = |text: &str| text.parse::<IpAddr>().expect("an address");
        let _one = gate.enter(six("2001:db8:0:1::1")).expect("the first");
        assert_eq!(gate.enter(six("2001:db8:0:1:ffff::2")).err(), Some(Busy::AddressConnections));
        let _two = gate.enter(six("2001:db8:0:2::1")).expect("another /64");
        let _three = gate.enter(six("::ffff:10.0.0.1")).expect("an IPv4 address");
        assert_eq!(gate.enter(address(1)).err(), Some(Busy::AddressConnections));
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_token_makes_room() {
        let gate = gate(Limits { waiting: 2, connections: 4, ..Limits::default() });
        let mut flow = gate.enter(address(1)).expect("there is room");
        flow.start_flow(None).expect("there is room");
        let (first, _second) = (gate.enter(address(2)).expect("room"), gate.enter(address(3)).expect("room"));
        let _third = gate.enter(address(4)).expect("room is made");
        first.evicted().await;
        assert_eq!(gate.counts(), (4, 1, 2, 1));
        assert_eq!(gate.enter(address(5)).err(), Some(Busy::Connections));
        drop(first);
        assert!(gate.enter(address(5)).is_ok());
    }

    #[test]
    fn a_token_is_good_for_so_many_connections() {
        let gate = gate(Limits { uses_per_token: 2, ..Limits::default() });
        for expected in [Ok(()), Ok(()), Err(Busy::Token)] {
            assert_eq!(gate.enter(address(1)).expect("room").start_flow(Some("a")), expected);
        }
        assert_eq!(gate.enter(address(1)).expect("room").start_flow(Some("b")), Ok(()));
    }

    #[test]
    fn requests_have_a_rate() {
        let gate = gate(Limits { requests_per_minute: 3, ..Limits::default() });
        for _ in 0..3 {
            assert_eq!(gate.request(address(1)), Ok(()));
        }
        assert_eq!(gate.request(address(1)), Err(Busy::Requests));
        assert_eq!(gate.request(address(2)), Ok(()));
    }

    #[test]
    fn many_networks_do_not_close_the_server_to_others() {
        let gate = gate(Limits::default());
        let visitor = gate.enter(address(1)).expect("room");
        for n in 0..=MOST_ADDRESSES as u32 {
            let [_, a, b, c] = n.to_be_bytes().map(u16::from);
            assert_eq!(gate.request([0x2001, 0xdb8, a << 8 | b, c, 0, 0, 0, 1].into()), Ok(()));
        }
        assert_eq!((gate.request(address(2)), gate.counts().0), (Ok(()), 1));
        drop(visitor);
    }

    #[test]
    fn an_address_has_two_long_bodies_at_a_time() {
        let gate = gate(Limits::default());
        let _visitors = [1, 2].map(|n| gate.enter(address(n)).expect("room"));
        let bodies = [(); MOST_BODIES].map(|()| gate.body(address(1)).expect("it has none"));
        assert!(gate.body(address(1)).is_none() && gate.body(address(2)).is_some());
        drop(bodies);
        assert!(gate.body(address(1)).is_some());
    }

    #[test]
    fn addresses_are_truncated() {
        for (address, kept) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ] {
            assert_eq!(truncated(address.parse().expect("an address")), kept);
        }
    }

    #[test]
    fn private_addresses_are_those_of_the_host_and_of_private_networks() {
        for (address, private) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("::ffff:192.168.0.1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("8.8.8.8", false),
            ("2001:db8::1", false),
            ("100.64.0.1", false),
        ] {
            assert_eq!(is_private(address.parse().expect("an address")), private, "{address}");
        }
    }
}
