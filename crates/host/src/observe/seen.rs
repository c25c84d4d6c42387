//! What was seen, as rows of the tables.

use crate::lab::is_foreign;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, ip_number};
use record::tables::{FlowRow, SampleRow};
use record::{Distribution, ms};
use units::{Bytes, Rate, Span, Time};

use super::connection::{Connection, Packets, Totals, Way};
use super::{Names, SILENCE};

/// A connection's second direction is of interest only if it carried more than this, and more than this share of the
/// other: the rest is acknowledgements and requests.
const SECOND_BYTES: u64 = 10_000;
const SECOND_SHARE: u64 = 100;
/// The end of connections that are not followed singly.
const OTHERS: &str = "others";

/// Who sends a flow's data to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Where the data comes from.
    pub sender: SocketAddr,
    /// Where it goes.
    pub receiver: SocketAddr,
    /// The IP protocol number.
    pub protocol: u8,
}

/// One direction of a connection, from outside. Of TCP, what only the sender knows (its window, what holds it back,
/// why it retransmits) is not in it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `None` if it stands for connections that were not followed singly.
    pub key: Option<Key>,
    /// `PROTOCOL SENDER:PORT > RECEIVER:PORT`, the way that the data takes; hosts by name, others by address.
    pub name: String,
    /// How many of this name there were before.
    pub conn: u32,
    /// `tcp`, `udp`, `icmp` or `ip`.
    pub transport: &'static str,
    /// The host that sends the data.
    pub from: String,
    /// The host that receives it.
    pub to: String,
    /// When its first packet was sent, in either direction.
    pub start: Time,
    /// Whether its sender ended it and all of it arrived; only TCP says so.
    pub completed: bool,
    /// Its packets since the start, with those of the warm-up.
    pub packets: Packets,
    /// Round-trip times after the warm-up.
    pub rtts: Distribution,
    /// One-way delays of data packets after the warm-up.
    pub owds: Distribution,
    /// Its states at the sampling moments.
    pub samples: Vec<Sampled>,
    /// From when to when it was counted.
    measured: (Time, Time),
    last_delivery: Option<Time>,
    /// Without the warm-up.
    totals: Totals,
    /// The other direction's packets that were lost.
    lost_back: u64,
    mean_flight: f64,
    max_flight: u64,
}

/// A direction of a connection at a sampling moment.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// The moment.
    pub at: Time,
    /// Payload that was delivered in the interval before it.
    pub delivered: u64,
    /// That interval.
    pub interval: Span,
    /// Bytes sent and not acknowledged.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The latest round-trip time of the interval.
    pub rtt: Option<Span>,
    /// The mean one-way delay of the data packets that arrived in the interval.
    pub owd: Option<Span>,
    /// Packets of this direction that were lost in the interval.
    pub lost: u64,
    /// Whether the connection is over.
    pub closed: bool,
}

impl Seen {
    /// Its row of the table `flows`. Nobody knows what held its sender back: all of its time is `limited_other`.
    pub fn row(&self, point: u32, run: u32) -> FlowRow<'_> {
        let (from, to) = self.measured;
        let mbps = |bytes: u64| Rate::over(Bytes::new(bytes), to.saturating_since(from)).as_mbps();
        FlowRow {
            point,
            run,
            flow: &self.name,
            conn: self.conn,
            transport: self.transport,
            from: &self.from,
            to: &self.to,
            start_s: self.start.as_secs_f64(),
            end_s: self.last_delivery.filter(|_| self.completed).map(Time::as_secs_f64),
            completed: self.completed,
            measured_from_s: from.as_secs_f64(),
            measured_to_s: to.as_secs_f64(),
            bytes: self.totals.delivered,
            goodput_mbps: mbps(self.totals.delivered),
            throughput_mbps: mbps(self.totals.arrived),
            segments_sent: self.totals.segments,
            retransmitted: self.totals.retransmitted,
            dup_acks: self.totals.dup_acks,
            ce_marks: self.totals.marked,
            lost_packets: self.totals.packets.lost + self.lost_back,
            limited_other: 1.0,
            mean_in_flight_bytes: self.mean_flight,
            max_in_flight_bytes: self.max_flight,
            ..FlowRow::with_delays(&self.rtts, &self.owds)
        }
    }
}

impl Sampled {
    /// This one and the `next`, as one sample of both intervals.
    pub(super) fn merged(&self, next: &Sampled) -> Sampled {
        Sampled {
            delivered: self.delivered + next.delivered,
            interval: self.interval + next.interval,
            srtt: next.srtt.or(self.srtt),
            rtt: next.rtt.or(self.rtt),
            ..*next
        }
    }

    /// Its row of the table `samples`; `of` is whose it is.
    pub fn row<'a>(&self, of: &'a Seen, point: u32, run: u32) -> SampleRow<'a> {
        SampleRow {
            point,
            run,
            flow: &of.name,
            conn: of.conn,
            t_s: self.at.as_secs_f64(),
            goodput_mbps: Rate::over(Bytes::new(self.delivered), self.interval).as_mbps(),
            in_flight_bytes: self.in_flight,
            srtt_ms: self.srtt.map(ms),
            rtt_ms: self.rtt.map(ms),
            owd_ms: self.owd.map(ms),
            lost: self.lost,
            state: if self.closed { "closed" } else { "" },
            ..SampleRow::default()
        }
    }
}

/// The directions of interest of all connections, in the order in which these began.
pub(super) fn seen(connections: Vec<Connection>, hosts: &[Names], warmed_up: Time, end: Time) -> Vec<Seen> {
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    let mut all = Vec::new();
    for mut connection in connections {
        connection.end(end);
        for way in of_interest(&connection) {
            let mut seen = one(&mut connection, way, hosts, warmed_up, end);
            let before = known.entry(seen.name.clone()).or_default();
            seen.conn = *before;
            *before += 1;
            all.push(seen);
        }
    }
    all
}

/// The larger direction first.
fn of_interest(connection: &Connection) -> impl Iterator<Item = usize> + use<> {
    let payload = |way: usize| connection.ways[way].payload;
    let (opener, other) = (connection.opener, 1 - connection.opener);
    // Replies to echoes are part of their requests.
    let larger = if payload(other) > payload(opener) && !connection.is_echo() { other } else { opener };
    let smaller = 1 - larger;
    let both = !connection.is_echo()
        && payload(smaller) > SECOND_BYTES
        && payload(smaller).saturating_mul(SECOND_SHARE) > payload(larger);
    [connection.began().then_some(larger), both.then_some(smaller)].into_iter().flatten()
}

fn one(connection: &mut Connection, number: usize, hosts: &[Names], warmed_up: Time, end: Time) -> Seen {
    let (start, last, protocol) = (connection.start, connection.last, connection.protocol);
    let single = connection.ends.is_some();
    let completed = connection.completed(number);
    let transport = transport(protocol);
    let (sender, receiver) = if single {
        (At::of(&connection.ways[number], hosts), At::of(&connection.ways[1 - number], hosts))
    } else {
        let ends = [At::of_many(hosts.first().map(|host| host.0.as_str())), At::of_many(None)];
        let [first, others] = ends;
        if number == 0 { (first, others) } else { (others, first) }
    };
    let back = &connection.ways[1 - number].totals;
    let lost_back = back.since(&connection.ways[1 - number].before).packets.lost;
    let address = |way: usize| connection.ways[way].source;
    let key = Key { sender: address(number), receiver: address(1 - number), protocol };

    let way = &mut connection.ways[number];
    let totals = way.totals.since(&way.before);
    let from = start.max(warmed_up);
    // Only TCP says when it ends; of the others silence does.
    let silent = single && transport != "tcp" && end.saturating_since(last) >= SILENCE;
    let to = if completed || silent { way.last_delivery.unwrap_or(last).max(from) } else { end.max(from) };
    let open = connection.closed.unwrap_or(end).saturating_since(from).as_secs_f64();
    Seen {
        key: single.then_some(key),
        name: format!("{transport} {} > {}", sender.label, receiver.label),
        conn: 0,
        transport,
        from: sender.host,
        to: receiver.host,
        start,
        completed,
        packets: way.totals.packets,
        rtts: std::mem::take(&mut way.rtts),
        samples: std::mem::take(&mut way.samples),
        measured: (from, to),
        last_delivery: way.last_delivery,
        totals,
        lost_back,
        owds: std::mem::take(&mut way.owds),
        mean_flight: if open > 0.0 { totals.flight_area / open } else { 0.0 },
        max_flight: way.max_flight,
    }
}

/// What to call an end.
struct At {
    host: String,
    /// With its port, if it has one.
    label: String,
}

impl At {
    /// The end that a direction comes from: the host that its packets came from, or else the one that has its address.
    fn of(way: &Way, hosts: &[Names]) -> At {
        let (address, port) = (way.source.ip(), way.source.port());
        let has = |(_, v4, v6): &&Names| address == IpAddr::V4(*v4) || address == IpAddr::V6(*v6);
        let known = way.host.and_then(|host| hosts.get(host)).or_else(|| hosts.iter().find(has));
        let host = known.map_or_else(|| address.to_string(), |(name, ..)| name.clone());
        // Behind an end without an address there may be many, and so there are behind a router.
        let named = known.is_some_and(|host| !host.1.is_unspecified() && (has(&host) || !is_foreign(address)));
        let label = match (named, port) {
            (true, 0) => host.clone(),
            (true, _) => format!("{host}:{port}"),
            (false, 0) => address.to_string(),
            (false, _) => way.source.to_string(),
        };
        At { host, label }
    }

    fn of_many(host: Option<&str>) -> At {
        let host = host.unwrap_or(OTHERS).to_owned();
        At { label: host.clone(), host }
    }
}

fn transport(protocol: u8) -> &'static str {
    match IpNumber(protocol) {
        ip_number::TCP => "tcp",
        ip_number::UDP => "udp",
        ip_number::ICMP | ip_number::IPV6_ICMP => "icmp",
        _ => "ip",
    }
}
