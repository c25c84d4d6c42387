//! The table of connections that packets are counted in.

use std::net::IpAddr;

use hashbrown::HashTable;
use units::{Span, Time};
use wire::{Headers, ip};

use crate::connection::{Connection, Ends, SILENCE};
use crate::counters::Packets;
use crate::flow::{Flow, Points, VantagePoint, flows};

/// Connections that are followed singly.
pub const MOST_CONNECTIONS: usize = 4_096;
/// Connections sampled at one moment.
const MOST_SAMPLED: usize = 256;
/// Samples kept in all, of some 80 bytes each.
const MOST_SAMPLES: usize = 400_000;
/// The protocols for which connections that are not followed singly are counted together; the last stands for any other.
const OF_MANY: [u8; 4] = [ip::TCP, ip::UDP, ip::ICMP, u8::MAX];

/// Measures the flows of the packets that pass its vantage points.
///
/// With two vantage points, a packet's [`Observer::entered`] returns the number to pass to its [`Observer::arrived`] or
/// [`Observer::lost`]. With one, call [`Observer::passed`]. Then [`Observer::sample`] at each sampling time, and
/// [`Observer::finish`] once. Time never goes back. The cost of a packet does not depend on the number of connections,
/// but for the processor's caches.
#[derive(Debug)]
pub struct Observer {
    points: Points,
    /// First the ones that count many together, in the order of [`OF_MANY`].
    connections: Vec<Connection>,
    /// Indices of the connections that are followed singly, by their ends; the later of two between the same ends.
    table: HashTable<u32>,
    /// Indices of the connections that had a packet lately, in the order in which they became active.
    active: Vec<u32>,
    warmed_up: Time,
    /// An upper bound on the number of samples kept, and its limit.
    kept: usize,
    most_samples: usize,
}

impl Observer {
    /// An observer with these vantage points, numbered in their order. `is_outside` tells whether an address belongs to
    /// no host of the network: such an end is named by its address, not by the vantage point that it is behind.
    pub fn new(points: Vec<VantagePoint>, is_outside: fn(IpAddr) -> bool) -> Observer {
        // With room for all, so that nothing is moved while packets wait.
        let mut connections = Vec::with_capacity(OF_MANY.len() + MOST_CONNECTIONS);
        connections.extend(OF_MANY.map(Connection::of_many));
        let (table, active) = (HashTable::with_capacity(MOST_CONNECTIONS), Vec::with_capacity(connections.capacity()));
        let points = Points { points, is_outside };
        Observer { points, connections, table, active, warmed_up: Time::ZERO, kept: 0, most_samples: MOST_SAMPLES }
    }

    /// A packet enters the network at the vantage point `from` and leaves it at `to`. Returns the number of its direction
    /// of its connection. Packets with the same addresses between other vantage points belong to another connection.
    pub fn entered(&mut self, from: usize, to: usize, header: &Headers, now: Time) -> u32 {
        self.enter((from, Some(to)), leg(from, to), header, now)
    }

    fn enter(&mut self, points: (usize, Option<usize>), leg: u32, header: &Headers, now: Time) -> u32 {
        let (ends, way) = Ends::of(header, leg);
        let hash = ends.hash();
        let found = self.table.find(hash, |&at| self.connections[at as usize].ends == Some(ends)).copied();
        let (at, way) = match found {
            Some(at) if !self.connections[at as usize].is_replaced_by(header, way) => (at, way),
            _ if self.connections.len() < OF_MANY.len() + MOST_CONNECTIONS => (self.open(ends, hash, way, header), way),
            // The directions are what the first vantage point sends, and what all others do.
            other => {
                if other.is_some() {
                    self.forget(&ends, hash);
                }
                (of_many(header.protocol), usize::from(points.0 != 0))
            }
        };
        self.touch(at);
        self.connections[at as usize].entered(way, points, header, now);
        at << 1 | way as u32
    }

    /// A packet of the direction `flow` arrives at the other vantage point, `delay` after it entered; `ce` if it carries a
    /// congestion mark.
    pub fn arrived(&mut self, flow: u32, header: &Headers, delay: Span, ce: bool, now: Time) {
        self.touch(flow >> 1);
        self.connections[(flow >> 1) as usize].arrived((flow & 1) as usize, header, Some(delay), ce, now);
    }

    /// A packet passes the only vantage point, from the side `from`. What passes counts as delivered, there are no one-way
    /// delays, and each direction's round-trip times are those between the vantage point and its receiver.
    pub fn passed(&mut self, from: usize, header: &Headers, ce: bool, now: Time) {
        let flow = self.enter((from, None), 0, header, now);
        self.connections[(flow >> 1) as usize].arrived((flow & 1) as usize, header, None, ce, now);
    }

    /// A packet of the direction `flow` was lost.
    pub fn lost(&mut self, flow: u32, _now: Time) {
        self.connections[(flow >> 1) as usize].lost((flow & 1) as usize);
    }

    /// Ends the warm-up: the measured period of the flows begins now.
    pub fn warmed_up(&mut self, now: Time) {
        self.warmed_up = now;
        self.connections.iter_mut().for_each(|connection| connection.warmed_up(now));
    }

    /// Samples the connections that had packets lately, for [`Flow::samples`]; `interval` is the time since the sample
    /// before. Returns the interval to the next one: when there are too many samples, neighbours are merged, and from then
    /// on samples are taken half as often, so that a run may last for any time.
    pub fn sample(&mut self, now: Time, interval: Span) -> Span {
        self.take_samples(now, interval);
        let kept = |observer: &Observer| observer.connections.iter().map(Connection::sample_count).sum::<usize>();
        // Counting exactly costs time; a moment adds at most this many.
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
            // A closed connection gets one empty sample after its last packet.
            let silence = if connection.closed.is_some() { interval.min(SILENCE) } else { SILENCE };
            connection.active = now.saturating_since(connection.last) < silence;
            connection.active
        });
    }

    /// Returns where all packets so far are.
    pub fn packets(&self) -> Packets {
        self.connections.iter().flat_map(|connection| &connection.ways).map(|way| way.totals.packets).sum()
    }

    /// Returns the flows of all connections, in the order in which the connections began: the direction that carried more,
    /// and the other one if it carried much too.
    pub fn finish(self, end: Time) -> Vec<Flow> {
        flows(self.connections, &self.points, self.warmed_up, end)
    }

    /// Begins to follow a connection, at its first packet.
    #[cold]
    fn open(&mut self, ends: Ends, hash: u64, way: usize, header: &Headers) -> u32 {
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

    /// Stops following the connection between these ends: later packets between them belong to another one.
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

/// Returns the number of the leg between two vantage points, the same in both directions.
#[inline]
fn leg(one: usize, other: usize) -> u32 {
    (one.min(other) as u32) << 16 | one.max(other) as u32 & 0xffff
}

/// Returns the index of the connection that counts those of a protocol together.
#[cold]
fn of_many(protocol: u8) -> u32 {
    let protocol = if protocol == ip::ICMP_V6 { ip::ICMP } else { protocol };
    let last = OF_MANY.len() - 1;
    OF_MANY[..last].iter().position(|&one| one == protocol).unwrap_or(last) as u32
}

#[cfg(test)]
mod tests;
