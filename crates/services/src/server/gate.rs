//! Limits of connections, in all and of one client.
//!
//! A connection without a request makes room for a new one, the oldest first. If there is none, the client with the most connections
//! gives its oldest one up to a client that has fewer. So whoever opens connections and sends nothing, or sends or reads slowly, keeps
//! nobody out, unless it has as many addresses as there may be connections.

use super::site::Site;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    /// In all.
    pub(crate) connections: usize,
    /// Of an IPv4 address or an IPv6 /64.
    pub(crate) of_site: usize,
}

#[derive(Debug, Default)]
struct Book {
    count: usize,
    sites: BTreeMap<Site, usize>,
    next: u64,
    /// Connections without a request, by age, and how to end them.
    idle: BTreeMap<u64, (Site, Arc<Notify>)>,
    /// Connections of clients with a limit of their own, by age, and how to end them; no WebSockets.
    held: BTreeMap<u64, (Site, Arc<Notify>)>,
}

/// Counts connections.
#[derive(Debug)]
pub(super) struct Gate {
    most: Most,
    book: Mutex<Book>,
}

/// A connection, which counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Visitor {
    gate: Arc<Gate>,
    site: Site,
    /// Its number in [`Book::held`].
    number: u64,
    evicted: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests whose answers are not complete.
    busy: usize,
    /// Its number among the idle ones, unless it is busy or was ended.
    idle: Option<u64>,
}

/// A request of a connection, until its answer is complete.
#[derive(Clone, Debug)]
pub(crate) struct Busy(#[expect(dead_code, reason = "it counts by being there")] Arc<Occupied>);

#[derive(Debug)]
struct Occupied(Arc<Visitor>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each method leaves the counts consistent, even if it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    pub(super) fn new(most: Most) -> Arc<Gate> {
        Arc::new(Gate { most, book: Mutex::default() })
    }

    /// Counts a connection, or returns `None` if there is no room. A client that is `shared` by many, such as a reverse proxy, has no
    /// limit of its own.
    pub(super) fn enter(self: &Arc<Gate>, address: IpAddr, is_shared: bool) -> Option<Arc<Visitor>> {
        let site = Site::of(address);
        let mut book = lock(&self.book);
        let of_site = book.sites.get(&site).copied().unwrap_or(0);
        if !is_shared && of_site >= self.most.of_site && !book.evict(Some(site)) {
            return None;
        }
        if book.count >= self.most.connections && !book.evict(None) && !book.evict_of_heaviest(of_site) {
            return None;
        }
        book.count += 1;
        *book.sites.entry(site).or_default() += 1;
        let evicted = Arc::new(Notify::new());
        let number = book.rest(site, &evicted);
        if !is_shared {
            book.held.insert(number, (site, evicted.clone()));
        }
        let state = Mutex::new(State { busy: 0, idle: Some(number) });
        Some(Arc::new(Visitor { gate: self.clone(), site, number, evicted, state }))
    }
}

impl Book {
    /// Ends the oldest idle connection, of one site or of all, and returns whether there is one.
    fn evict(&mut self, site: Option<Site>) -> bool {
        let found = self.idle.iter().find(|(_, (of, _))| site.is_none_or(|site| site == *of)).map(|(&n, _)| n);
        let Some((_, notify)) = found.and_then(|number| self.idle.remove(&number)) else { return false };
        self.held.retain(|_, (_, held)| !Arc::ptr_eq(held, &notify));
        notify.notify_one();
        true
    }

    /// Ends the oldest connection of the client that has the most, if these are at least two more than `own`.
    fn evict_of_heaviest(&mut self, own: usize) -> bool {
        let mut counts: BTreeMap<Site, usize> = BTreeMap::new();
        self.held.values().for_each(|(site, _)| *counts.entry(*site).or_default() += 1);
        let heaviest = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > own + 1);
        let Some((site, _)) = heaviest else { return false };
        let oldest = self.held.iter().find(|(_, (of, _))| *of == site).map(|(&number, _)| number);
        let Some((_, notify)) = oldest.and_then(|number| self.held.remove(&number)) else { return false };
        notify.notify_one();
        true
    }

    fn rest(&mut self, site: Site, notify: &Arc<Notify>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.idle.insert(number, (site, notify.clone()));
        number
    }
}

impl Visitor {
    /// Waits until the connection has to end, to make room for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Notes that nobody waits for [`Visitor::evicted`] any more: the connection has ended, or has become a WebSocket.
    pub(super) fn detach(&self) {
        lock(&self.gate.book).held.remove(&self.number);
    }

    /// Keeps the connection from making room as long as the result or a clone of it exists.
    pub(super) fn occupy(self: &Arc<Visitor>) -> Busy {
        let mut state = lock(&self.state);
        state.busy += 1;
        if let Some(number) = state.idle.take() {
            lock(&self.gate.book).idle.remove(&number);
        }
        drop(state);
        Busy(Arc::new(Occupied(self.clone())))
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let visitor = &self.0;
        let mut state = lock(&visitor.state);
        state.busy -= 1;
        if state.busy == 0 {
            state.idle = Some(lock(&visitor.gate.book).rest(visitor.site, &visitor.evicted));
        }
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut book = lock(&self.gate.book);
        book.count -= 1;
        book.held.remove(&self.number);
        if let Some(number) = lock(&self.state).idle {
            book.idle.remove(&number);
        }
        if let Some(count) = book.sites.get_mut(&self.site) {
            *count -= 1;
            if *count == 0 {
                book.sites.remove(&self.site);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn gate(connections: usize, of_site: usize) -> Arc<Gate> {
        Gate::new(Most { connections, of_site })
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_makes_room_and_a_busy_one_does_not() {
        let gate = gate(2, 2);
        let [first, second] = [1, 2].map(|n| gate.enter(address(n), false).expect("there is room"));
        let request = first.occupy();
        let third = gate.enter(address(3), false).expect("the second makes room");
        second.evicted().await;
        drop(second);
        let other = third.occupy();
        assert!(gate.enter(address(4), false).is_none(), "both are busy");
        drop((request.clone(), request, other));
        assert!(gate.enter(address(4), false).is_some(), "the first makes room");
        first.evicted().await;
    }

    #[tokio::test]
    async fn a_site_has_its_share_and_a_reverse_proxy_all() {
        let gate = gate(8, 2);
        let six = |text: &str| text.parse::<IpAddr>().expect("an address");
        let busy: Vec<_> = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2"]
            .map(|text| gate.enter(six(text), false).expect("there is room").occupy())
            .into();
        assert!(gate.enter(six("2001:db8:0:1::3"), false).is_none(), "a /64 is one site");
        assert!(gate.enter(six("2001:db8:0:1::3"), true).is_some());
        assert!(gate.enter(six("2001:db8:0:2::1"), false).is_some());
        drop(busy);
        let book = lock(&gate.book);
        assert_eq!((book.count, book.sites.len(), book.idle.len(), book.held.len()), (0, 0, 0, 0));
    }

    #[tokio::test]
    async fn whoever_has_most_gives_one_up_to_whoever_has_fewer() {
        let gate = gate(4, 4);
        let enter = |n| {
            let visitor = gate.enter(address(n), false)?;
            let busy = visitor.occupy();
            Some((visitor, busy))
        };
        let mut greedy: Vec<_> = (0..3).map(|_| enter(1).expect("there is room")).collect();
        let _second = enter(2).expect("there is room");
        let _third = enter(3).expect("the first gives one up");
        greedy[0].0.evicted().await;
        drop(greedy.remove(0));
        assert!(enter(1).is_none(), "it has most");
        // A WebSocket stays.
        greedy.iter().for_each(|(visitor, _)| visitor.detach());
        assert!(enter(4).is_none());
    }
}
