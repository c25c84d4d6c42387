//! The table of connections that packets are counted in.

use std::net::IpAddr;

use hashbrown::HashTable;
use units::{Span, Time};
use wire::{Headers, ip};

use crate::connection::{Connection, Ends, SILENCE};
use crate::counters::Packets;
use crate::flow::{Flow, Points, VantagePoint, flows, flows_so_far};
use crate::inspect::{Inspected, Inspection, Marks};

/// Connections that are followed singly.
pub const MOST_CONNECTIONS: usize = 4_096;
/// Connections sampled at one moment.
const MOST_SAMPLED: usize = 256;
/// Samples kept in all, of some 150 bytes each.
const MOST_SAMPLES: usize = 400_000;
/// The same of captures, which may be of any length: with the rows of tables that become of them, each takes half a kilobyte.
const MOST_CAPTURED: usize = 1 << 17;
/// Rows of time–sequence plots that are kept in all, of 32 bytes each.
const MOST_ROWS: usize = 400_000;
/// Segments in flight whose times are kept, of the first connections and of the others.
const NOTES: [usize; 2] = [16_384, 512];
const NOTED: usize = 128;
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
    inspection: Option<Inspection>,
    most_connections: usize,
    /// An upper bound on the rows of time–sequence plots, and whether no more are kept.
    rows: usize,
    rows_closed: bool,
    /// Connections that could not be followed singly.
    together: u64,
    /// What [`Observer::flows_so_far`] goes by, once it was called.
    following: Option<Following>,
}

/// Whose turn it is to be looked at while the observer goes on.
#[derive(Debug, Default)]
struct Following {
    /// The place among those that are active.
    next: usize,
    /// Connections that are no longer active, and were not looked at since.
    left: Vec<u32>,
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
        Observer {
            points,
            connections,
            table,
            active,
            warmed_up: Time::ZERO,
            kept: 0,
            most_samples: MOST_SAMPLES,
            inspection: None,
            most_connections: MOST_CONNECTIONS,
            rows: 0,
            rows_closed: false,
            together: 0,
            following: None,
        }
    }

    /// The same for captures: looks at TCP packet by packet, for [`Flow::tcp`].
    pub fn inspecting(points: Vec<VantagePoint>, inspection: Inspection) -> Observer {
        let most_connections = inspection.connections;
        let most_samples = MOST_CAPTURED;
        Observer { inspection: Some(inspection), most_connections, most_samples, ..Observer::new(points, |_| true) }
    }

    /// A packet passes the only vantage point of a capture. A TCP packet of several segments is cut, and counts as so many,
    /// unless Wireshark's rules are used. Returns what it told, and the number of its direction of its connection.
    pub fn inspect(&mut self, header: &Headers, ce: bool, now: Time) -> (u32, Inspected) {
        let (at, way) = self.find((0, None), 0, header);
        self.touch(at);
        let connection = &mut self.connections[at as usize];
        let flow = at << 1 | way as u32;
        // Each packet adds six rows at most: data, an acknowledgement and four SACK blocks.
        self.rows += 6;
        let told = match connection.cut(header) {
            Some(size) if is_tcp(header) => {
                let mut told = Inspected::default();
                let mut first = true;
                pieces(header, size, |piece| {
                    let piece = connection.inspect(way, piece, ce, now);
                    told.marks.add(piece.marks);
                    told.rtt = told.rtt.or(piece.rtt);
                    (told.in_flight, told.pipe) = (piece.in_flight, piece.pipe);
                    self.rows += if std::mem::take(&mut first) { 0 } else { 1 };
                });
                told.marks.add(Marks::SUPER_PACKET);
                connection.super_packet(way);
                told
            }
            _ => connection.inspect(way, header, ce, now),
        };
        if self.rows > MOST_ROWS {
            self.thin_rows();
        }
        (flow, told)
    }

    /// Connections that could not be followed singly, because there were too many.
    pub fn counted_together(&self) -> u64 {
        self.together
    }

    /// Merges rows of the plots that have most, until half of what may be kept is left.
    #[cold]
    fn thin_rows(&mut self) {
        let count = |all: &[Connection]| all.iter().map(Connection::row_count).sum::<usize>();
        self.rows = count(&self.connections);
        // Small plots stay whole for as long as possible.
        let mut small = 1_024;
        while self.rows > MOST_ROWS / 2 && small > 0 {
            self.connections.iter_mut().filter(|one| one.row_count() > small).for_each(Connection::thin_rows);
            let rows = count(&self.connections);
            small = if rows > self.rows * 3 / 4 { small / 2 } else { small };
            self.rows = rows;
        }
        if small < 16 {
            // So many connections cannot be looked at.
            self.rows_closed = true;
            self.connections.iter_mut().for_each(Connection::close_rows);
        }
    }

    /// A packet enters the network at the vantage point `from` and leaves it at `to`. Returns the number of its direction
    /// of its connection. Packets with the same addresses between other vantage points belong to another connection.
    pub fn entered(&mut self, from: usize, to: usize, header: &Headers, now: Time) -> u32 {
        self.enter((from, Some(to)), leg(from, to), header, now)
    }

    fn enter(&mut self, points: (usize, Option<usize>), leg: u32, header: &Headers, now: Time) -> u32 {
        let (at, way) = self.find(points, leg, header);
        self.touch(at);
        self.connections[at as usize].entered(way, points, header, now);
        at << 1 | way as u32
    }

    /// The connection of a packet that enters, and its direction.
    #[inline]
    fn find(&mut self, points: (usize, Option<usize>), leg: u32, header: &Headers) -> (u32, usize) {
        let (ends, way) = Ends::of(header, leg);
        let hash = ends.hash();
        let found = self.table.find(hash, |&at| self.connections[at as usize].ends == Some(ends)).copied();
        match found {
            Some(at) if !self.connections[at as usize].is_replaced_by(header, way) => (at, way),
            _ if self.connections.len() < OF_MANY.len() + self.most_connections => {
                (self.open(ends, hash, way, header), way)
            }
            // The directions are what the first vantage point sends, and what all others do.
            other => {
                if other.is_some() {
                    self.forget(&ends, hash);
                }
                self.together += 1;
                (of_many(header.protocol), usize::from(points.0 != 0))
            }
        }
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
        let Observer { connections, active, following, .. } = self;
        let mut number = 0;
        active.retain(|&at| {
            let connection = &mut connections[at as usize];
            connection.sample(now, interval, number < MOST_SAMPLED);
            number += 1;
            // A closed connection gets one empty sample after its last packet.
            let silence = if connection.closed.is_some() { interval.min(SILENCE) } else { SILENCE };
            connection.active = now.saturating_since(connection.last) < silence;
            if !connection.active && connection.closed.is_some() {
                connection.release();
            }
            if let Some(following) = following.as_mut().filter(|_| !connection.active) {
                following.left.push(at);
            }
            connection.active
        });
    }

    /// Returns the flows of up to `most` connections that had packets lately, as they are `now`, with their samples since an
    /// earlier call returned them. Further ones have their turn in later calls.
    pub fn flows_so_far(&mut self, now: Time, most: usize) -> Vec<Flow> {
        let Observer { connections, active, following, points, warmed_up, .. } = self;
        let Following { next, left } = following.get_or_insert_with(Following::default);
        let gone = left.drain(..most.min(left.len())).collect::<Vec<_>>();
        let room = most - gone.len();
        let first = if active.len() <= room || *next >= active.len() { 0 } else { *next };
        *next = first + room;
        let some = gone.iter().chain(active.iter().skip(first).take(room));
        let mut flows = Vec::new();
        for &at in some {
            let connection = &mut connections[at as usize];
            let before = flows.len();
            flows.extend(flows_so_far(connection, points, *warmed_up, now));
            if flows.len() > before {
                connection.shown = now;
            }
        }
        flows
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
        let Observer { connections, table, inspection, rows_closed, .. } = self;
        let mut earlier = 0;
        match table.find_mut(hash, |&at| connections[at as usize].ends == Some(ends)) {
            Some(at) => earlier = connections[std::mem::replace(at, new) as usize].earlier + 1,
            None => {
                let hash_of = |&at: &u32| connections[at as usize].ends.map_or(0, |ends| ends.hash());
                table.insert_unique(hash, new, hash_of);
            }
        }
        let notes = NOTES[usize::from(connections.len() > NOTED)];
        connections.push(Connection::new(ends, way, header, inspection.as_ref(), notes));
        if let Some(last) = connections.last_mut() {
            last.earlier = earlier;
            if *rows_closed {
                last.close_rows();
            }
        }
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

/// Whether a packet is a TCP segment.
fn is_tcp(header: &Headers) -> bool {
    matches!(header.transport, wire::Transport::Tcp(_))
}

/// Cuts a packet of TCP into segments with `size` bytes of payload each, of which the last may be shorter. Only that one has
/// the flags PSH and FIN.
#[cold]
pub fn pieces(header: &Headers, size: u32, mut each: impl FnMut(&Headers)) {
    let wire::Transport::Tcp(tcp) = header.transport else { return };
    let overhead = header.len - header.payload_len;
    let mut done = 0;
    while done < header.payload_len {
        let len = size.min(header.payload_len - done);
        let mut segment = tcp;
        segment.seq = tcp.seq.wrapping_add(done);
        segment.len = len.min(u32::from(u16::MAX)) as u16;
        done += len;
        if done < header.payload_len {
            segment.flags = wire::Flags(tcp.flags.0 & !(wire::Flags::FIN | wire::Flags::PSH).0);
        }
        let transport = wire::Transport::Tcp(segment);
        each(&Headers { len: overhead + len, payload_len: len, transport, ..*header });
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
