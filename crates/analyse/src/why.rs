//! Why a flow was not faster: what held its sender back over time, and how long its packets waited.
//!
//! A sender's kernel counts what held it back, and so does the simulator: then this is repeated, and nothing is inferred. Of a capture at
//! the sender's end, packets tell some of it, by the rules of T-RAT (Zhang, Breslau, Paxson and Shenker, SIGCOMM 2002) and of Siekkinen et al.
//! (Computer Networks 52, 2008), as far as they need no assumption about the congestion control:
//!
//! - Nothing is in flight: nothing but the application keeps a sender from sending ([`Hold::App`]).
//! - The bytes in flight reach to the receive window but for a segment: [`Hold::Rwnd`].
//! - Segments are sent again, packets wait in a queue, or the bytes in flight grow from one round trip to the next: the congestion window
//!   is what limits ([`Hold::Cwnd`]).
//! - None of this: a congestion window that limits a sender grows until there is a queue or a loss. Bytes in flight that stay the same
//!   for many round trips of a connection without losses are therefore the application's, or a send buffer's, which packets do not tell
//!   apart. After losses, or beside a queue that comes and goes, the same is unknown. A sender that is as fast as its losses permit
//!   (Mathis et al. 1997) is limited by its congestion window.
//!
//! What tells a congestion window and a round-trip time, but no bytes in flight (iperf3), tells whether the window had room, by Little's law.
//!
//! Not followed: whether the capture is at the sender's end is decided for all of a connection; pacing is not told from an application;
//! T-RAT's flights are not reconstructed.

use std::collections::BTreeMap;

use record::Results;
use record::tables::{FlowRow, Tables, TcpFlowRow};
use serde::Serialize;

/// Round-trip times that are this much above the smallest one, in ms and as a share of it, tell of a queue.
const QUEUE_MS: f64 = 5.0;
const QUEUE_SHARE: f64 = 0.1;
/// By how much bytes in flight grow from one round trip to the next, beside a segment, if the congestion window limits (fitted: CUBIC far
/// from a loss and slow start grow by more, one segment among 20 is as much).
const GROWTH: f64 = 1.05;
/// The way from a capture to the sender and back, in ms and as a share of the round trip, within which it is at the sender's end.
const NEAR_MS: f64 = 1.0;
const NEAR_SHARE: f64 = 0.2;
/// Over how many round trips a congestion window that limits grows by more than this many segments: RFC 5681 has one for each.
const CREEP_ROUNDS: f64 = 5.0;
const CREEP_SEGMENTS: u64 = 2;
/// Round trips at the beginning in which slow start is expected.
const FIRST_ROUNDS: f64 = 10.0;
/// The share of the time with data in flight in which a sender that its application limits may seem to be limited by its window.
const STRAY: f64 = 0.2;
/// A window of which less than this is in flight has room, where bytes in flight are known as means.
const ROOM: f64 = 0.7;
/// The segment size where none is known.
const USUAL_MSS: u64 = 1_460;
/// The congestion window that losses permit, in segments, is this over the square root of their share (Mathis et al. 1997).
const MATHIS: f64 = 1.22;
/// Flows of a point about which something is said, the largest, and points.
const MOST_FLOWS: usize = 8;
const MOST_POINTS: usize = 40;

/// What held a sender back for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Its application.
    App,
    /// The receive window.
    Rwnd,
    /// The congestion window, pacing or the send buffer: the path.
    Cwnd,
    /// Not its congestion window.
    Room,
    /// Nobody knows.
    Unknown,
}

/// A while: from one sample to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Payload that was delivered.
    pub(crate) bytes: f64,
    pub(crate) hold: Hold,
    /// Whether packets waited; `None` if nothing tells.
    pub(crate) queued: Option<bool>,
}

/// Who tells what held a sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBy {
    /// Its windows and round-trip times.
    Windows,
    /// Its packets.
    Packets,
    /// Its kernel, or the simulator.
    Sender,
}

/// What held the sender of a flow back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Shares of the time, in the order of [`observe::limits::Limits::shares`].
    pub(crate) shares: Option<[f64; 6]>,
    pub(crate) told_by: Option<ToldBy>,
    pub(crate) stretches: Vec<Stretch>,
    /// Why nothing is known.
    pub(crate) unknown: &'static str,
}

impl Held {
    /// The share of the time in which something held it back.
    pub(crate) fn share(&self, holds: &[Hold]) -> f64 {
        let seconds =
            |stretches: &mut dyn Iterator<Item = &Stretch>| stretches.map(|one| one.to_s - one.from_s).sum::<f64>();
        let all = seconds(&mut self.stretches.iter());
        let held = seconds(&mut self.stretches.iter().filter(|one| holds.contains(&one.hold)));
        // A sum of nothing is -0.
        if all > 0.0 { held / all + 0.0 } else { 0.0 }
    }
}

/// A sample, with what packets tell beside.
#[derive(Clone, Copy, Debug, Default)]
struct Seen<'a> {
    from_s: f64,
    to_s: f64,
    bytes: f64,
    in_flight: Option<u64>,
    pipe: Option<u64>,
    window: Option<u64>,
    cwnd: Option<u64>,
    rtt_ms: Option<f64>,
    again: u64,
    limit: &'a str,
}

impl Seen<'_> {
    fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// A flow: point, run, name and number.
type Key<'a> = (u32, u32, &'a str, u32);

/// What held some flows back, in their order.
pub(crate) fn held(tables: &Tables, flows: &[FlowRow<'_>]) -> Vec<Held> {
    let key = |row: &FlowRow<'_>| row.point;
    let points = flows.iter().map(key).min().unwrap_or(0)..=flows.iter().map(key).max().unwrap_or(0);
    let numbers: BTreeMap<Key<'_>, usize> =
        flows.iter().zip(0..).map(|(row, number)| ((row.point, row.run, row.flow, row.conn), number)).collect();
    let mut seen: Vec<Vec<Seen<'_>>> = vec![Vec::new(); flows.len()];
    for row in tables.samples.iter().filter(|row| points.contains(&row.point)) {
        let Some(&number) = numbers.get(&(row.point, row.run, row.flow, row.conn)) else { continue };
        let from_s = seen[number].last().map_or(flows[number].start_s, |last| last.to_s);
        if !(row.t_s > from_s && row.t_s < 1e9 && row.goodput_mbps < 1e7) {
            continue;
        }
        seen[number].push(Seen {
            from_s,
            to_s: row.t_s,
            bytes: row.goodput_mbps.max(0.0) * 1e6 / 8.0 * (row.t_s - from_s),
            in_flight: row.in_flight_bytes,
            cwnd: row.cwnd_bytes,
            rtt_ms: row.rtt_ms.or(row.srtt_ms).filter(|ms| (0.0..1e6).contains(ms)),
            limit: row.limit,
            ..Seen::default()
        });
    }
    let mut place = vec![0; flows.len()];
    for row in tables.tcp_samples.iter().filter(|row| points.contains(&row.point)) {
        let Some(&number) = numbers.get(&(row.point, row.run, row.flow, row.conn)) else { continue };
        let place = &mut place[number];
        while seen[number].get(*place).is_some_and(|one| one.to_s < row.t_s) {
            *place += 1;
        }
        if let Some(one) = seen[number].get_mut(*place).filter(|one| one.to_s == row.t_s) {
            (one.pipe, one.window, one.again) = (row.pipe_bytes, row.window_bytes, row.retransmitted);
        }
    }
    let mut packets = vec![None; flows.len()];
    for row in tables.tcp_flows.iter() {
        if let Some(&number) = numbers.get(&(row.point, row.run, row.flow, row.conn)) {
            packets[number] = Some(row);
        }
    }
    let all = flows.iter().zip(&packets).zip(&seen);
    all.map(|((row, packets), seen)| held_one(row, packets.as_ref(), seen)).collect()
}

fn held_one(row: &FlowRow<'_>, packets: Option<&TcpFlowRow<'_>>, seen: &[Seen<'_>]) -> Held {
    let unknown = |unknown| Held {
        unknown,
        stretches: stretches(row, seen, &vec![Hold::Unknown; seen.len()]),
        ..Held::default()
    };
    let shares = [row.limited_app, row.limited_cwnd, row.limited_rwnd, row.limited_pacing];
    if let [Some(app), Some(cwnd), Some(rwnd), Some(pacing)] = shares {
        let holds: Vec<Hold> = seen.iter().map(|one| of_name(one.limit)).collect();
        let shares = [app, cwnd, rwnd, pacing, row.limited_sndbuf.unwrap_or(0.0), row.limited_other.unwrap_or(0.0)];
        let stretches = stretches(row, seen, &holds);
        return Held { shares: Some(shares), told_by: Some(ToldBy::Sender), stretches, unknown: "" };
    }
    if row.transport != "tcp" {
        return unknown(
            "nothing but its application holds back a sender without TCP, and nobody tells what that wanted to send",
        );
    }
    let is_sampled = |told: fn(&Seen<'_>) -> bool| seen.iter().filter(|one| told(one)).count() * 2 > seen.len();
    let (holds, told_by) = match packets {
        Some(_) if row.max_in_flight_bytes.is_none() => return unknown("the capture has no acknowledgements"),
        Some(packets) if !is_at_sender(row, packets) => {
            return unknown(
                "the capture was not made at the sender's end, where bytes in flight are those of the sender",
            );
        }
        Some(packets) if is_sampled(|one| one.in_flight.is_some()) => (by_packets(row, packets, seen), ToldBy::Packets),
        Some(_) => return unknown("the connection is too short"),
        None if is_sampled(|one| one.cwnd.is_some() && one.rtt_ms.is_some()) => {
            (by_windows(row, seen), ToldBy::Windows)
        }
        None => return unknown("neither a kernel at the sender's end nor packets tell it"),
    };
    let mut held = Held { stretches: stretches(row, seen, &holds), told_by: Some(told_by), ..Held::default() };
    let [app, cwnd, rwnd] = [Hold::App, Hold::Cwnd, Hold::Rwnd].map(|hold| held.share(&[hold]));
    held.shares = Some([app, cwnd, rwnd, 0.0, 0.0, held.share(&[Hold::Room, Hold::Unknown])]);
    held
}

/// What the column `limit` of the table of samples names.
fn of_name(limit: &str) -> Hold {
    match limit {
        "app" => Hold::App,
        "rwnd" => Hold::Rwnd,
        "cwnd" | "pacing" | "sndbuf" | "hostq" => Hold::Cwnd,
        _ => Hold::Unknown,
    }
}

fn stretches(row: &FlowRow<'_>, seen: &[Seen<'_>], holds: &[Hold]) -> Vec<Stretch> {
    let queued = |one: &Seen<'_>| Some(is_queue(row, one.rtt_ms?));
    let of = |(one, hold): (&Seen<'_>, &Hold)| Stretch {
        from_s: one.from_s,
        to_s: one.to_s,
        bytes: one.bytes,
        hold: *hold,
        queued: queued(one),
    };
    seen.iter().zip(holds).map(of).collect()
}

/// Whether a round-trip time tells of a queue.
fn is_queue(row: &FlowRow<'_>, rtt_ms: f64) -> bool {
    let least = row.rtt_min_ms.unwrap_or(rtt_ms);
    rtt_ms - least >= QUEUE_MS.max(least * QUEUE_SHARE)
}

/// Whether a capture was made near the sender: nearly all of the round trip is on the receiver's side of it, or the rest is too short
/// to matter.
fn is_at_sender(row: &FlowRow<'_>, packets: &TcpFlowRow<'_>) -> bool {
    let Some(rtt_ms) = row.rtt_min_ms else { return false };
    let handshake = packets.handshake_server_ms.zip(packets.handshake_client_ms);
    let by_handshake = handshake.map(|(server, client)| (server + client - rtt_ms).max(0.0));
    // An echo waits for the sender to send, and a handshake may be slower than what follows: the shorter one is right.
    let distance_ms = packets.to_sender_min_ms.into_iter().chain(by_handshake).reduce(f64::min);
    distance_ms.is_some_and(|ms| ms <= NEAR_MS.max((rtt_ms + ms) * NEAR_SHARE))
}

/// What packets tell.
fn by_packets(row: &FlowRow<'_>, packets: &TcpFlowRow<'_>, seen: &[Seen<'_>]) -> Vec<Hold> {
    let mss = packets.mss.into_iter().chain(packets.peer_mss).min().unwrap_or(USUAL_MSS);
    let rtt_s = row.rtt_p50_ms.or(row.rtt_min_ms).unwrap_or(0.0) / 1e3;
    let mut holds: Vec<Option<Hold>> = Vec::with_capacity(seen.len());
    for (one, earlier) in seen.iter().zip(earlier(seen, rtt_s)) {
        let Some(in_flight) = one.in_flight else {
            holds.push(Some(Hold::Unknown));
            continue;
        };
        let grows = in_flight as f64 > earlier.unwrap_or(in_flight) as f64 * GROWTH + mss as f64;
        let recovers = one.again > 0 || one.pipe.is_some_and(|pipe| pipe < in_flight);
        holds.push(if in_flight == 0 {
            Some(Hold::App)
        } else if one.window.is_some_and(|window| in_flight + mss > window) {
            Some(Hold::Rwnd)
        } else if recovers || grows || one.rtt_ms.is_some_and(|ms| is_queue(row, ms)) {
            Some(Hold::Cwnd)
        } else {
            None
        });
    }
    let creeps = earlier(seen, CREEP_ROUNDS * rtt_s);
    let creeps = seen.iter().zip(creeps).map(|(one, earlier)| {
        one.in_flight.zip(earlier).is_some_and(|(now, earlier)| now > earlier + CREEP_SEGMENTS * mss)
    });
    let flat = of_flat((row, packets, mss), seen, &holds, &creeps.collect::<Vec<_>>());
    holds.into_iter().map(|hold| hold.unwrap_or(flat)).collect()
}

/// The bytes in flight before each sample: of the latest one that is so much older, or of the first.
fn earlier(seen: &[Seen<'_>], by_s: f64) -> Vec<Option<u64>> {
    let mut before = 0;
    let of = |one: &Seen<'_>| {
        while seen[before + 1..].first().is_some_and(|next| next.to_s <= one.to_s - by_s) {
            before += 1;
        }
        seen[before].in_flight.filter(|_| seen[before].to_s < one.to_s)
    };
    seen.iter().map(of).collect()
}

/// What holds a sender back while its bytes in flight stay the same, without a queue. `creeps` tells where they grow slowly.
fn of_flat(
    (row, packets, mss): (&FlowRow<'_>, &TcpFlowRow<'_>, u64),
    seen: &[Seen<'_>],
    holds: &[Option<Hold>],
    creeps: &[bool],
) -> Hold {
    if packets.retransmitted > 0 {
        let share = packets.retransmitted as f64 / packets.segments.max(1) as f64;
        let permitted = MATHIS / share.sqrt() * mss as f64;
        let is_slow = row.mean_in_flight_bytes.is_some_and(|mean| mean < permitted / 2.0);
        return if is_slow { Hold::Unknown } else { Hold::Cwnd };
    }
    let first_s = row.start_s + FIRST_ROUNDS * row.rtt_min_ms.unwrap_or(0.0) / 1e3;
    let later = seen.iter().zip(holds).zip(creeps).filter(|((one, _), _)| one.from_s >= first_s);
    let (mut flat_s, mut limited_s) = (0.0, 0.0);
    for ((one, hold), creeps) in later {
        match hold {
            None if !creeps => flat_s += one.seconds(),
            None | Some(Hold::Cwnd) => limited_s += one.seconds(),
            Some(_) => {}
        }
    }
    if flat_s > 0.0 && limited_s <= STRAY * (flat_s + limited_s) { Hold::App } else { Hold::Unknown }
}

/// What windows and round-trip times tell. A queue beside a window with room is that of others, or the radio's.
fn by_windows(row: &FlowRow<'_>, seen: &[Seen<'_>]) -> Vec<Hold> {
    let of = |one: &Seen<'_>| {
        let Some((cwnd, rtt_ms)) = one.cwnd.zip(one.rtt_ms) else { return Hold::Unknown };
        let in_flight = one.bytes / one.seconds() * rtt_ms / 1e3;
        if in_flight >= ROOM * cwnd as f64 { Hold::Cwnd } else { Hold::Room }
    };
    let mut holds: Vec<Hold> = seen.iter().map(of).collect();
    // After a timeout a window is at first small, and larger when it is told: then it only seems to have had room.
    let with_room = holds.iter().filter(|hold| **hold == Hold::Room).count();
    if row.retransmitted.is_none_or(|again| again as f64 > STRAY * with_room as f64) {
        holds.iter_mut().filter(|hold| **hold == Hold::Room).for_each(|hold| *hold = Hold::Unknown);
    }
    holds
}

/// What is said of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The point.
    pub point: u32,
    /// The flow's name.
    pub flow: String,
    /// The number of its connection.
    pub conn: u32,
    /// Who told what held it back; missing if nobody did.
    pub told_by: Option<ToldBy>,
    /// The point whose recording told: another one of the same connection may know more.
    pub told_in: Option<u32>,
    /// Shares of the time (0 to 1).
    pub limited: Option<Shares>,
    /// The smallest round-trip time, in ms.
    pub idle_rtt_ms: Option<f64>,
    /// The median round-trip time while it carried data, in ms.
    pub loaded_rtt_ms: Option<f64>,
    /// The verdict, in words.
    pub verdict: String,
}

/// Shares of the time by what held a sender back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// Its application.
    pub app: f64,
    /// The congestion window.
    pub cwnd: f64,
    /// The receive window.
    pub rwnd: f64,
    /// Pacing.
    pub pacing: f64,
    /// The send buffer.
    pub sndbuf: f64,
    /// Unknown, or the rest.
    pub other: f64,
}

/// Says what held the largest flows of each point back, the largest first: of the first run, and of the first 40 points. Connections that
/// were there for something else are left out.
pub fn why(results: &Results) -> Vec<Why> {
    let tables = &results.tables;
    let told = results.meta.points.len().min(MOST_POINTS) as u32;
    let mut points: BTreeMap<u32, Vec<FlowRow<'_>>> = BTreeMap::new();
    for row in tables.flows.iter().filter(|row| row.point < told) {
        points.entry(row.point).or_default().push(row);
    }
    let mut flows = Vec::new();
    for mut rows in points.into_values() {
        let run = rows.iter().map(|row| row.run).min();
        rows.retain(|row| Some(row.run) == run);
        let most = rows.iter().map(|row| row.bytes).max().unwrap_or(0);
        rows.retain(|row| !row.is_aside(most));
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows.truncate(MOST_FLOWS);
        flows.append(&mut rows);
    }
    let held = held(tables, &flows);
    let all: Vec<(FlowRow<'_>, Held)> = flows.into_iter().zip(held).collect();
    let joined: Vec<Vec<u32>> = results
        .meta
        .scenario
        .pointer("/analysed/joined")
        .and_then(|joined| serde_json::from_value(joined.clone()).ok())
        .unwrap_or_default();
    // Of the recordings of a connection, the one that knows most tells for all.
    let best = |row: &FlowRow<'_>, own: &Held| {
        let group = joined.iter().find(|group| group.contains(&row.point));
        // Its number is that of its tool: ss has both ends of a connection within one host.
        let meets = |other: &FlowRow<'_>| other.start_s < row.measured_to_s && row.start_s < other.measured_to_s;
        let same = all.iter().filter(|(other, _)| {
            group.is_some_and(|group| group.contains(&other.point)) && other.flow == row.flow && meets(other)
        });
        same.max_by_key(|(_, held)| held.told_by).filter(|(_, held)| held.told_by > own.told_by)
    };
    let of = |(row, own): &(FlowRow<'_>, Held)| {
        let (teller, held) = best(row, own).map_or((row, own), |(teller, held)| (teller, held));
        let [app, cwnd, rwnd, pacing, sndbuf, other] = held.shares.unwrap_or_default();
        Why {
            point: row.point,
            flow: row.flow.to_owned(),
            conn: row.conn,
            told_by: held.told_by,
            told_in: held.told_by.map(|_| teller.point),
            limited: held.shares.map(|_| Shares { app, cwnd, rwnd, pacing, sndbuf, other }),
            idle_rtt_ms: row.rtt_min_ms,
            loaded_rtt_ms: loaded_ms(row),
            verdict: verdict(teller, held),
        }
    };
    all.iter().map(of).collect()
}

/// The median round-trip time, or the mean where that alone is known.
fn loaded_ms(row: &FlowRow<'_>) -> Option<f64> {
    row.rtt_p50_ms.or(row.rtt_mean_ms)
}

fn verdict(row: &FlowRow<'_>, held: &Held) -> String {
    let Some(shares) = held.shares else {
        return format!("unknown: {}{}", held.unknown, path(row));
    };
    let [app, cwnd, rwnd, pacing, buffer, other] = shares;
    let most = shares.into_iter().fold(0.0, f64::max);
    let what = if most <= 0.0 {
        "unknown"
    } else if app == most && held.told_by == Some(ToldBy::Packets) {
        "its application (or its send buffer) gave it no more to send"
    } else if app == most {
        "its application gave it no more to send"
    } else if rwnd == most {
        "the receive window was full"
    } else if pacing == most {
        "its sender paced"
    } else if buffer == most {
        "its send buffer was full"
    } else if cwnd == most {
        if row.rtt_min_ms.zip(loaded_ms(row)).is_some_and(|(_, loaded)| is_queue(row, loaded)) {
            "the path was full: packets waited in a queue"
        } else if row.retransmitted.is_some_and(|again| again > 0) {
            "losses kept its congestion window small, without a queue"
        } else {
            "its congestion window had not grown to what the path carries"
        }
    } else if other == most && held.share(&[Hold::Room]) > 0.5 {
        "not its congestion window, which had room: its application, its pacing or the receive window"
    } else {
        "unknown for most of the time"
    };
    let by = match held.told_by {
        Some(ToldBy::Packets) => ", by its packets",
        Some(ToldBy::Windows) => ", by its windows",
        _ => "",
    };
    format!("{what} ({}{by}){}", observe::limits::words(shares), path(row))
}

/// What is known of round trips and losses, behind a semicolon.
fn path(row: &FlowRow<'_>) -> String {
    let mut parts = Vec::new();
    if let Some((idle, loaded)) = row.rtt_min_ms.zip(loaded_ms(row)) {
        parts.push(format!("round trip {idle:.0} ms idle, {loaded:.0} ms loaded"));
    }
    match (row.transport, row.retransmitted_data(), row.retransmitted_share()) {
        ("tcp", Some(0), _) => parts.push("nothing retransmitted".to_owned()),
        ("tcp", _, Some(share)) => parts.push(format!("{:.2} % retransmitted", share * 100.0)),
        ("tcp", Some(again), None) => parts.push(format!("{again} segments retransmitted")),
        _ => {}
    }
    if let (Some(lost), Some(sent)) = (row.lost_packets.filter(|_| row.transport != "tcp"), row.segments_sent)
        && sent > 0
    {
        parts.push(format!("{:.2} % lost", lost as f64 / sent as f64 * 100.0));
    }
    if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::tables::{SampleRow, TcpSampleRow};

    /// A flow at 400 ms of which each tenth of a second of 20 s has so many bytes in flight, round trips of so many ms, and so many
    /// retransmissions, as a capture at the sender shows it.
    fn capture(at: impl Fn(u32) -> (u64, f64, u64), window: Option<u64>) -> Tables {
        let mut tables = Tables::default();
        let (flow, mut again, mut sum) = ("tcp a > b", 0, 0.0);
        for n in 1..=200 {
            let (in_flight, rtt_ms, retransmitted) = at(n);
            let t_s = f64::from(n) / 10.0;
            let (in_flight_bytes, pipe_bytes) = (Some(in_flight), Some(in_flight));
            again += retransmitted;
            sum += in_flight as f64;
            let row = SampleRow {
                flow,
                t_s,
                in_flight_bytes,
                rtt_ms: Some(rtt_ms),
                goodput_mbps: 1.0,
                ..SampleRow::default()
            };
            tables.samples.push(&row);
            let row = TcpSampleRow {
                flow,
                t_s,
                in_flight_bytes,
                pipe_bytes,
                window_bytes: window,
                retransmitted,
                ..TcpSampleRow::default()
            };
            tables.tcp_samples.push(&row);
        }
        tables.flows.push(&FlowRow {
            flow,
            transport: "tcp",
            measured_to_s: 20.0,
            bytes: 2_500_000,
            rtt_min_ms: Some(400.0),
            rtt_p50_ms: Some(400.0),
            retransmitted: Some(again),
            mean_in_flight_bytes: Some(sum / 200.0),
            max_in_flight_bytes: Some(50_000),
            ..FlowRow::default()
        });
        tables.tcp_flows.push(&TcpFlowRow {
            flow,
            segments: 2_000,
            retransmitted: again,
            mss: Some(1_460),
            handshake_server_ms: Some(400.0),
            handshake_client_ms: Some(0.1),
            ..TcpFlowRow::default()
        });
        tables
    }

    fn of(tables: &Tables) -> Held {
        held(tables, &tables.flows.iter().collect::<Vec<_>>()).remove(0)
    }

    fn shares(tables: &Tables) -> [f64; 6] {
        of(tables).shares.expect("packets tell").map(|share| (share * 100.0).round() / 100.0)
    }

    #[test]
    fn bytes_in_flight_that_stay_the_same_without_queue_and_loss_are_the_applications() {
        let wobbling = |n: u32| (50_000 + u64::from(n % 3) * 1_448, 400.0 + f64::from(n % 5), 0);
        assert_eq!(shares(&capture(wobbling, Some(3_000_000))), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        // A window that grows by a tenth in each round trip is a congestion window.
        let growing = |n: u32| ((50_000.0 * 1.1_f64.powf(f64::from(n) / 4.0)) as u64, 400.0, 0);
        assert!(shares(&capture(growing, Some(30_000_000)))[1] > 0.95);
        // One that grows by a segment in each may be one.
        let creeping = |n: u32| (50_000 + u64::from(n / 4) * 1_460, 400.0, 0);
        assert_eq!(shares(&capture(creeping, Some(30_000_000)))[0], 0.0);
        // Where a queue comes and goes, or after losses, nobody knows.
        let now_and_then = |n: u32| (50_000, if n.is_multiple_of(3) { 480.0 } else { 400.0 }, 0);
        let told = shares(&capture(now_and_then, None));
        assert!(told[0] < 0.01 && told[1] > 0.3 && told[5] > 0.6, "{told:?}");
        let once = |n: u32| (20_000, 400.0, u64::from(n == 100));
        assert!(shares(&capture(once, None))[5] > 0.98);
        // As fast as losses of 1 % permit, 12 segments.
        let lossy = |n: u32| (20_000, 400.0, u64::from(n.is_multiple_of(10)));
        assert_eq!(shares(&capture(lossy, None))[1], 1.0);
    }

    #[test]
    fn nothing_in_flight_is_the_applications_and_a_full_window_the_receivers() {
        let half = |n: u32| (if n <= 100 { 50_000 } else { 0 }, 400.0, 0);
        assert_eq!(shares(&capture(half, Some(51_000))), [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn what_cannot_be_known_has_a_reason() {
        let mut tables = capture(|_| (50_000, 400.0, 0), None);
        let rows: Vec<_> = tables.tcp_flows.iter().map(|row| row.segments).collect();
        assert_eq!(rows, [2_000]);
        // The same, captured in the middle of the path.
        let mut middle = record::tables::TcpFlows::default();
        tables.tcp_flows.iter().for_each(|row| middle.push(&TcpFlowRow { handshake_client_ms: Some(400.0), ..row }));
        tables.tcp_flows = middle;
        let held = of(&tables);
        assert!(held.shares.is_none() && held.unknown.contains("sender's end"), "{held:?}");
        assert!(held.stretches.iter().all(|one| one.hold == Hold::Unknown));
    }

    /// A flow of 12.5 kB in flight by Little's law, of which windows of so many bytes and smoothed times of 100 ms are told, and `again`
    /// retransmissions.
    fn told(cwnd_bytes: impl Fn(u32) -> u64, rtt_min_ms: f64, again: u64) -> Held {
        let mut tables = Tables::default();
        for n in 1..=20 {
            let (cwnd_bytes, srtt_ms) = (Some(cwnd_bytes(n)), Some(100.0));
            let sample = SampleRow { flow: "f", t_s: f64::from(n), goodput_mbps: 1.0, ..SampleRow::default() };
            tables.samples.push(&SampleRow { cwnd_bytes, srtt_ms, ..sample });
        }
        tables.flows.push(&FlowRow {
            flow: "f",
            transport: "tcp",
            measured_to_s: 20.0,
            rtt_min_ms: Some(rtt_min_ms),
            retransmitted: Some(again),
            ..FlowRow::default()
        });
        of(&tables)
    }

    #[test]
    fn a_window_with_room_does_not_hold_back() {
        let held = told(|n| if n <= 10 { 13_000 } else { 100_000 }, 99.0, 0);
        assert_eq!(held.told_by, Some(ToldBy::Windows));
        assert_eq!([Hold::Cwnd, Hold::Room].map(|hold| held.share(&[hold])), [0.5, 0.5]);
    }

    #[test]
    fn a_queue_beside_a_window_with_room_is_that_of_others() {
        for rtt_min_ms in [99.0, 80.0, 10.0] {
            assert_eq!(told(|_| 600_000, rtt_min_ms, 0).share(&[Hold::Room]), 1.0);
            assert_eq!(told(|_| 13_000, rtt_min_ms, 0).share(&[Hold::Cwnd]), 1.0);
        }
    }

    #[test]
    fn a_few_losses_leave_a_window_its_room_and_many_make_it_unknown() {
        let room = [0, 4, 5].map(|again| told(|_| 600_000, 10.0, again).share(&[Hold::Room]));
        assert_eq!(room, [1.0, 1.0, 0.0]);
        assert_eq!(told(|_| 600_000, 10.0, 5).share(&[Hold::Unknown]), 1.0);
    }
}
