//! What can be seen of real packets at the edges of the simulated network: connections and their goodput, delays,
//! round-trip times and losses, without a word from the hosts.
//!
//! A packet is seen twice, when it enters the network at its sender's edge and when it arrives at its receiver's, or is
//! lost between. What a sender knows by itself (its congestion window, why it sends nothing) cannot be seen from here.
//!
//! Hosts send what they like, so that everything is bounded: [`MOST_CONNECTIONS`] are followed singly, and those that
//! come later are counted together for each protocol. Connections that are over keep their place, for their row.

mod connection;
mod header;
mod seen;
mod tcp;

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::ip_number;
use hashbrown::HashTable;
use units::{Span, Time};

pub use connection::Packets;
use connection::{Connection, Ends};
pub use header::{Echo, Header, Tcp, Transport, mark_ce};
pub use seen::{Key, Sampled, Seen};

/// Connections that are followed singly.
pub const MOST_CONNECTIONS: usize = 4_096;
/// Connections of which samples are kept at one moment.
const MOST_SAMPLED: usize = 256;
/// Samples that are kept in all, of some 80 bytes each.
const MOST_SAMPLES: usize = 400_000;
/// After so long without a packet there are no samples of a connection, and one that cannot end otherwise has ended.
const SILENCE: Span = Span::from_secs(10);
/// What stands for the connections that are not followed singly; the last for all protocols but the others.
const OF_MANY: [u8; 4] = [ip_number::TCP.0, ip_number::UDP.0, ip_number::ICMP.0, u8::MAX];

/// A host's name and addresses; unspecified ones if it stands for hosts of any addresses.
pub type Names = (String, Ipv4Addr, Ipv6Addr);

/// Measures packets at the edges of the network.
///
/// Each packet's [`Observer::entered`] gives the number to be used for its [`Observer::arrived`] or [`Observer::lost`].
/// Time never goes back. None of the three takes more time for there being many connections, but for the processor's
/// caches.
#[derive(Debug)]
pub struct Observer {
    hosts: Vec<Names>,
    /// Those that stand for many come first, in the order of [`OF_MANY`].
    connections: Vec<Connection>,
    /// By their ends, where those that are followed singly are. Of two between the same ends, the later.
    table: HashTable<u32>,
    /// Those that had a packet lately, in the order in which they began to have them.
    active: Vec<u32>,
    warmed_up: Time,
    /// Samples that are kept, at most, and how many there may be.
    kept: usize,
    most_samples: usize,
}

impl Observer {
    /// An observer of these hosts, numbered as they stand here.
    pub fn new(hosts: Vec<Names>) -> Observer {
        // With room for all, so that nothing is moved while packets wait.
        let mut connections = Vec::with_capacity(OF_MANY.len() + MOST_CONNECTIONS);
        connections.extend(OF_MANY.map(Connection::of_many));
        let (table, active) = (HashTable::with_capacity(MOST_CONNECTIONS), Vec::with_capacity(connections.capacity()));
        Observer { hosts, connections, table, active, warmed_up: Time::ZERO, kept: 0, most_samples: MOST_SAMPLES }
    }

    /// A packet has come from the host `from`. Returns the number of its direction of its connection.
    pub fn entered(&mut self, from: usize, header: &Header, now: Time) -> u32 {
        let (ends, way) = Ends::of(header);
        let hash = ends.hash();
        let found = self.table.find(hash, |&at| self.connections[at as usize].ends == Some(ends)).copied();
        let (at, way) = match found {
            Some(at) if !self.connections[at as usize].is_replaced_by(header, way) => (at, way),
            _ if self.connections.len() < OF_MANY.len() + MOST_CONNECTIONS => (self.open(ends, hash, way, header), way),
            // As seen from the first host: what it sends, and what others do.
            other => {
                if other.is_some() {
                    self.forget(&ends, hash);
                }
                (of_many(header.protocol), usize::from(from != 0))
            }
        };
        self.touch(at);
        self.connections[at as usize].entered(way, from, header, now);
        at << 1 | way as u32
    }

    /// A packet of the direction `flow` has arrived, `delay` after it entered; `ce` if it carries a congestion mark.
    pub fn arrived(&mut self, flow: u32, header: &Header, delay: Span, ce: bool, now: Time) {
        self.touch(flow >> 1);
        self.connections[(flow >> 1) as usize].arrived((flow & 1) as usize, header, delay, ce, now);
    }

    /// A packet of the direction `flow` was lost.
    pub fn lost(&mut self, flow: u32, _now: Time) {
        self.connections[(flow >> 1) as usize].lost((flow & 1) as usize);
    }

    /// The warm-up ends: what was counted so far is left out of the rows of the table `flows`.
    pub fn warmed_up(&mut self, now: Time) {
        self.warmed_up = now;
        self.connections.iter_mut().for_each(|connection| connection.warmed_up(now));
    }

    /// Keeps the state of the connections that had packets lately, for [`Seen::samples`]; `interval` is the time since
    /// the sample before. Returns the interval to the next one: when there are too many samples, neighbours are merged, and
    /// from then on they are taken half as often, so that a run may last for any time.
    pub fn sample(&mut self, now: Time, interval: Span) -> Span {
        self.take_samples(now, interval);
        let kept = |observer: &Observer| observer.connections.iter().map(Connection::sample_count).sum::<usize>();
        // Counting costs something; a moment adds no more than so many.
        self.kept += 2 * MOST_SAMPLED;
        if self.kept < self.most_samples {
            return interval;
        }
        self.kept = kept(self);
        if self.kept < self.most_samples {
            return interval;
        }
        self.connections.iter_mut().for_each(Connection::thin);
        self.kept = kept(self);
        interval * 2
    }

    fn take_samples(&mut self, now: Time, interval: Span) {
        let Observer { connections, active, .. } = self;
        let mut number = 0;
        active.retain(|&at| {
            let connection = &mut connections[at as usize];
            connection.sample(now, interval, number < MOST_SAMPLED);
            number += 1;
            // Of one that is over, a sample without anything follows the last packet.
            let silence = if connection.closed.is_some() { interval.min(SILENCE) } else { SILENCE };
            connection.active = now.saturating_since(connection.last) < silence;
            connection.active
        });
    }

    /// Where all packets so far are.
    pub fn packets(&self) -> Packets {
        self.connections.iter().flat_map(|connection| &connection.ways).map(|way| way.totals.packets).sum()
    }

    /// The directions of interest of all connections, in the order in which these began: the larger one, and the other
    /// if it carried much too.
    pub fn finish(self, end: Time) -> Vec<Seen> {
        seen::seen(self.connections, &self.hosts, self.warmed_up, end)
    }

    /// Follows a connection from its first packet on.
    #[cold]
    fn open(&mut self, ends: Ends, hash: u64, way: usize, header: &Header) -> u32 {
        let new = self.connections.len() as u32;
        let Observer { connections, table, .. } = self;
        match table.find_mut(hash, |&at| connections[at as usize].ends == Some(ends)) {
            Some(at) => *at = new,
            None => {
                let hash_of = |&at: &u32| connections[at as usize].ends.map_or(0, |ends| ends.hash());
                table.insert_unique(hash, new, hash_of);
            }
        }
        connections.push(Connection::new(ends, way, header));
        new
    }

    /// What comes between these ends from now on belongs to another connection.
    #[cold]
    fn forget(&mut self, ends: &Ends, hash: u64) {
        let Observer { connections, table, .. } = self;
        if let Ok(entry) = table.find_entry(hash, |&at| connections[at as usize].ends.as_ref() == Some(ends)) {
            entry.remove();
        }
    }

    #[inline]
    fn touch(&mut self, at: u32) {
        let connection = &mut self.connections[at as usize];
        if !connection.active {
            connection.active = true;
            self.active.push(at);
        }
    }
}

/// The connection that stands for those of a protocol that are not followed singly.
#[cold]
fn of_many(protocol: u8) -> u32 {
    let protocol = if protocol == ip_number::IPV6_ICMP.0 { ip_number::ICMP.0 } else { protocol };
    let last = OF_MANY.len() - 1;
    OF_MANY[..last].iter().position(|&one| one == protocol).unwrap_or(last) as u32
}

#[cfg(test)]
mod tests;
