//! The result: flows, each one direction of a connection.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use units::{Bytes, Distribution, Rate, Span, Time};
use wire::ip;

use crate::connection::{Connection, SILENCE, Way};
use crate::counters::{Counters, Packets};
use crate::inspect::Tcp;
use crate::sample::Sample;

/// A connection's second direction is a flow only if it carried more than this many bytes, and more than one part in
/// [`SECOND_SHARE`] of what the first carried: less is acknowledgements and requests.
const SECOND_BYTES: u64 = 10_000;
const SECOND_SHARE: u64 = 100;
/// What a direction has carried, or how old a connection is, when it can be told which direction is the larger one.
const CLEAR_BYTES: u64 = 10_000;
const CLEAR_AGE: Span = Span::from_secs(1);
/// The name of the far end of connections that are counted together.
const OTHERS: &str = "others";

/// A vantage point: the edge of the network at a host. The addresses are unspecified where hosts of any address may be
/// behind it.
#[derive(Clone, Debug)]
pub struct VantagePoint {
    /// The host's name.
    pub name: String,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
}

/// The vantage points of an observer, and how it names addresses by them.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) points: Vec<VantagePoint>,
    /// Whether an address belongs to no host of the network, so that a packet with it came through a router.
    pub(crate) is_outside: fn(IpAddr) -> bool,
}

/// The sender and the receiver of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The address and port that the data comes from.
    pub sender: SocketAddr,
    /// The address and port that it goes to.
    pub receiver: SocketAddr,
    /// The IP protocol number.
    pub protocol: u8,
}

/// One direction of a connection, as measured from outside. What only a TCP sender knows (its congestion window, what
/// limits it, why it retransmits) is not in it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// `None` if it stands for the connections that were counted together.
    pub key: Option<Key>,
    /// `PROTOCOL SENDER:PORT > RECEIVER:PORT`, in the direction of the data; hosts by name, others by address.
    pub name: String,
    /// Number of earlier flows with this name.
    pub conn: u32,
    /// `tcp`, `udp`, `icmp` or `ip`.
    pub transport: &'static str,
    /// The identifier of the tunnel (GTP-U) that its data came in, if the source of packets knows one.
    pub teid: Option<u32>,
    /// The host that sends the data.
    pub from: String,
    /// The host that receives it.
    pub to: String,
    /// The time of the connection's first packet, in either direction.
    pub start: Time,
    /// Whether its sender ended it and all of it arrived; only TCP tells.
    pub completed: bool,
    /// Its packets since the start, including the warm-up.
    pub packets: Packets,
    /// Round-trip times after the warm-up.
    pub rtts: Distribution,
    /// One-way delays of data packets after the warm-up.
    pub owds: Distribution,
    /// Its state at the sampling times.
    pub samples: Vec<Sample>,
    /// Start and end of the measured period, which begins after the warm-up.
    pub measured: (Time, Time),
    /// When payload last arrived.
    pub last_delivery: Option<Time>,
    /// What was counted in the measured period.
    pub counters: Counters,
    /// Packets of either direction that were lost in the measured period; unknown with one vantage point.
    pub lost: Option<u64>,
    /// Whether its packets tell of retransmissions: those of TCP do.
    pub tells_retransmissions: bool,
    /// Whether they tell of acknowledgements: those of TCP, if acknowledgements were seen.
    pub tells_acknowledgements: bool,
    /// Whether they tell of congestion marks: with one vantage point, those of ECN-capable packets may come behind it.
    pub tells_marks: bool,
    /// Mean bytes in flight, from the start of the measured period until the connection was over; unknown without TCP's
    /// acknowledgements.
    pub mean_in_flight: Option<f64>,
    /// Most bytes in flight; likewise.
    pub max_in_flight: Option<u64>,
    /// Of captures: what else packets tell of TCP.
    pub tcp: Option<Box<Tcp>>,
}

impl Flow {
    /// Payload delivered over the measured period.
    pub fn goodput(&self) -> Rate {
        self.rate(self.counters.delivered)
    }

    /// IP bytes that arrived over the measured period.
    pub fn throughput(&self) -> Rate {
        self.rate(self.counters.arrived)
    }

    fn rate(&self, bytes: u64) -> Rate {
        let (from, to) = self.measured;
        Rate::over(Bytes::new(bytes), to.saturating_since(from))
    }
}

/// Returns the flows of all connections, in the order in which the connections began.
pub(crate) fn flows(connections: Vec<Connection>, points: &Points, warmed_up: Time, end: Time) -> Vec<Flow> {
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    let mut all = Vec::new();
    for mut connection in connections {
        connection.end(end);
        for way in directions(&connection) {
            let mut flow = flow(&mut connection, way, points, warmed_up, end);
            let before = known.entry(flow.name.clone()).or_default();
            flow.conn = *before;
            *before += 1;
            all.push(flow);
        }
    }
    all
}

/// Returns the directions that are flows, the larger one first.
fn directions(connection: &Connection) -> impl Iterator<Item = usize> + use<> {
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

/// Returns the flows of a connection so far, with the samples that were not shown before.
pub(crate) fn flows_so_far(
    connection: &Connection,
    points: &Points,
    warmed_up: Time,
    now: Time,
) -> impl Iterator<Item = Flow> {
    // A request is often larger than its answer at first.
    let payload = connection.ways.iter().map(|way| way.payload).max().unwrap_or(0);
    let is_clear = payload >= CLEAR_BYTES || now.saturating_since(connection.start) >= CLEAR_AGE;
    directions(connection).filter(move |_| is_clear).map(move |way| {
        let Way { rtts, owds, samples, .. } = &connection.ways[way];
        let first = samples.partition_point(|sample| sample.at <= connection.shown);
        let contents = (rtts.clone(), owds.clone(), samples[first..].to_vec());
        Flow { conn: connection.earlier, ..flow_with(connection, way, points, (warmed_up, now), contents, None) }
    })
}

fn flow(connection: &mut Connection, number: usize, points: &Points, warmed_up: Time, end: Time) -> Flow {
    let from = connection.start.max(warmed_up);
    let open = connection.closed.unwrap_or(end).saturating_since(from).as_secs_f64();
    let tcp = connection.tcp(number, open).map(Box::new);
    let way = &mut connection.ways[number];
    let contents = (std::mem::take(&mut way.rtts), std::mem::take(&mut way.owds), std::mem::take(&mut way.samples));
    flow_with(connection, number, points, (warmed_up, end), contents, tcp)
}

/// A direction of a connection, measured from `warmed_up` to `end`, with its distributions and samples.
fn flow_with(
    connection: &Connection,
    number: usize,
    points: &Points,
    (warmed_up, end): (Time, Time),
    (rtts, owds, mut samples): (Distribution, Distribution, Vec<Sample>),
    mut tcp: Option<Box<Tcp>>,
) -> Flow {
    let (start, last, protocol) = (connection.start, connection.last, connection.protocol);
    let single = connection.ends.is_some();
    let completed = connection.completed(number);
    let transport = transport(protocol);
    let (sender, receiver) = if single {
        (End::of(&connection.ways[number], points), End::of(&connection.ways[1 - number], points))
    } else {
        let ends = [End::of_many(points.points.first().map(|point| point.name.as_str())), End::of_many(None)];
        let [first, others] = ends;
        if number == 0 { (first, others) } else { (others, first) }
    };
    let back = &connection.ways[1 - number].totals;
    let lost_back = back.since(&connection.ways[1 - number].before).packets.lost;
    let is_alone = connection.is_alone;
    let (is_tcp, tells_flight) = (connection.ways[number].is_tcp(), connection.ways[number].tells_flight(is_alone));
    let address = |way: usize| connection.ways[way].source;
    let key = Key { sender: address(number), receiver: address(1 - number), protocol };

    let from = start.max(warmed_up);
    let open = connection.closed.unwrap_or(end).saturating_since(from).as_secs_f64();
    let way = &connection.ways[number];
    let mut counters = way.totals.since(&way.before);
    if let Some(tcp) = &tcp {
        let of = tcp.counters;
        (counters.segments, counters.retransmitted, counters.dup_acks) =
            (of.segments, of.retransmitted, of.duplicate_acks);
    }
    if !tells_flight {
        samples.iter_mut().for_each(|sample| (sample.in_flight, sample.pipe) = (None, None));
        tcp.iter_mut().for_each(|tcp| (tcp.mean_pipe, tcp.max_pipe) = (None, None));
    }
    // Only TCP tells when it ends; other protocols end by silence.
    let silent = single && transport != "tcp" && end.saturating_since(last) >= SILENCE;
    let to = if completed || silent { way.last_delivery.unwrap_or(last).max(from) } else { end.max(from) };
    Flow {
        key: single.then_some(key),
        name: format!("{transport} {} > {}", sender.label, receiver.label),
        conn: 0,
        transport,
        teid: None,
        from: sender.host,
        to: receiver.host,
        start,
        completed,
        packets: way.totals.packets,
        rtts,
        samples,
        measured: (from, to),
        last_delivery: way.last_delivery,
        counters,
        lost: (!is_alone).then_some(counters.packets.lost + lost_back),
        tells_retransmissions: is_tcp,
        tells_acknowledgements: is_tcp && tells_flight && (!is_alone || back.packets.entered > 0),
        tells_marks: !is_alone || counters.marked > 0 || counters.markable == 0,
        owds,
        mean_in_flight: tells_flight.then_some(if open > 0.0 { counters.flight_area / open } else { 0.0 }),
        max_in_flight: tells_flight.then_some(way.max_flight),
        tcp,
    }
}

/// The name of an end.
struct End {
    host: String,
    /// With its port, if it has one.
    label: String,
}

impl End {
    /// Names the end that sends a direction's packets: by the vantage point that they entered at, or else by the one that
    /// has their address.
    fn of(way: &Way, Points { points, is_outside }: &Points) -> End {
        let (address, port) = (way.source.ip(), way.source.port());
        let has = |point: &&VantagePoint| address == IpAddr::V4(point.v4) || address == IpAddr::V6(point.v6);
        // An end that sent nothing may be an address of no host.
        let is_host = || way.totals.packets.entered > 0 || points.iter().any(|point| has(&point));
        let known =
            way.from.filter(|_| is_host()).and_then(|from| points.get(from)).or_else(|| points.iter().find(has));
        let host = known.map_or_else(|| address.to_string(), |point| point.name.clone());
        // There may be many hosts behind a point without an address, or behind a router.
        let named = known.is_some_and(|point| !point.v4.is_unspecified() && (has(&point) || !is_outside(address)));
        let label = match (named, port) {
            (true, 0) => host.clone(),
            (true, _) => format!("{host}:{port}"),
            (false, 0) => address.to_string(),
            (false, _) => way.source.to_string(),
        };
        End { host, label }
    }

    fn of_many(host: Option<&str>) -> End {
        let host = host.unwrap_or(OTHERS).to_owned();
        End { label: host.clone(), host }
    }
}

fn transport(protocol: u8) -> &'static str {
    match protocol {
        ip::TCP => "tcp",
        ip::UDP => "udp",
        ip::ICMP | ip::ICMP_V6 => "icmp",
        _ => "ip",
    }
}
