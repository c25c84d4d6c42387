//! The page of `ranway proxy`: for each UE, the sum of its flows and the bytes that are queued for it, and the largest flows of the
//! moment by themselves.

use ::services::dashboard::Publisher;
use ::services::proxy::{Connection, Observer, Status};
use record::Tables;
use record::report::live::{Board, SILENCE_S};
use record::tables::{FlowRow, ProxyRow, QueueRow, SampleRow};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// UEs that are shown; further ones wait until others have been silent for a while.
const MOST_UES: usize = 1_000;

/// Flows that are shown by themselves at a time: those that move or hold the most.
const LARGEST: usize = 8;
/// The time for which a flow keeps its place among them, in seconds. Many short ones would otherwise take the places of UEs on the
/// board, where each name stays for a while.
const HOLD_S: f64 = 10.0;

/// Columns of queues that the proxy cannot fill: it counts bytes alone.
const UNKNOWN: [&str; 3] = ["packets", "dropped", "marked"];

/// Follows a proxy.
pub(crate) struct ProxyFollower {
    publisher: Publisher,
    observer: Observer,
    state: Arc<Mutex<State>>,
}

/// The ends of a connection: of the UE, and of its peer.
type Ends = (SocketAddr, SocketAddr);

/// What was known at the last look.
struct State {
    begun: Instant,
    at_s: f64,
    /// Bytes that each connection had delivered.
    delivered: BTreeMap<Ends, u64>,
    ues: BTreeMap<IpAddr, Ue>,
    /// The flows that are shown by themselves, and those that were until lately.
    largest: BTreeMap<Ends, Place>,
    accepting: Option<bool>,
}

/// A flow's place among the largest.
struct Place {
    since_s: f64,
    /// When it lost the place, if it has.
    left_s: Option<f64>,
}

/// What was counted of a UE.
struct Ue {
    since_s: f64,
    seen_s: f64,
    bytes: u64,
}

impl ProxyFollower {
    pub(crate) fn new(publisher: Publisher, observer: Observer) -> ProxyFollower {
        publisher.publish(|board| board.leave_out(&UNKNOWN));
        ProxyFollower { publisher, observer, state: Arc::new(Mutex::new(State::new())) }
    }

    /// Has the dashboard look at the proxy, if it wants to. Reading the state of many connections takes a while: the dashboard's
    /// thread does it.
    pub(crate) fn look(&self) {
        if self.publisher.is_due() {
            let (observer, state) = (self.observer.clone(), Arc::clone(&self.state));
            self.publisher.publish(move |board| {
                state.lock().unwrap_or_else(PoisonError::into_inner).show(&observer.status(), board);
            });
        }
    }
}

impl State {
    fn new() -> State {
        State {
            begun: Instant::now(),
            at_s: 0.0,
            delivered: BTreeMap::new(),
            ues: BTreeMap::new(),
            largest: BTreeMap::new(),
            accepting: None,
        }
    }

    fn show(&mut self, status: &Status, board: &mut Board) {
        let t_s = self.begun.elapsed().as_secs_f64();
        let rows = self.rows(status, t_s);
        self.take_forgotten(t_s).iter().for_each(|flow| board.forget(flow));
        board.change(|live| live.t_s = Some(t_s));
        board.add(&rows);
        let now = Some(status.accepting);
        if self.accepting != now && (self.accepting.is_some() || !status.accepting) {
            let text = if status.accepting { "new connections are split" } else { "new connections bypass the proxy" };
            board.note(Some(t_s), text);
        }
        self.accepting = now;
    }

    /// The rows of a moment.
    fn rows(&mut self, status: &Status, t_s: f64) -> Tables {
        let seconds = (t_s - self.at_s).max(1e-3);
        self.at_s = t_s;
        let mut rows = Tables::default();
        let before = std::mem::take(&mut self.delivered);
        self.ues.retain(|_, ue| t_s - ue.seen_s < SILENCE_S);
        let mut flows = Vec::new();
        for (ue, connections) in status.by_ue() {
            if !self.ues.contains_key(&ue) && self.ues.len() >= MOST_UES {
                continue;
            }
            let mut bytes = 0;
            for one in connections {
                let had = before.get(&ends(one)).copied().unwrap_or(0);
                // Another connection may have the same ends.
                let new = one.delivered.checked_sub(had).unwrap_or(one.delivered);
                bytes += new;
                flows.push((new, one));
                self.delivered.insert(ends(one), one.delivered);
            }
            let known = self.ues.entry(ue).or_insert(Ue { since_s: t_s - seconds, seen_s: t_s, bytes: 0 });
            known.bytes += bytes;
            known.seen_s = t_s;
            push(&mut rows, ue, connections, (t_s, seconds, bytes), known);
        }
        self.place(&mut flows, t_s);
        let is_placed = |one: &Connection| self.largest.get(&ends(one)).is_some_and(|place| place.left_s.is_none());
        for (new, one) in flows.into_iter().filter(|(_, one)| is_placed(one)) {
            push_flow(&mut rows, one, (t_s, mbps(new, seconds)));
        }
        rows
    }

    /// Gives the largest flows, of which so many bytes were delivered since the last look, their places.
    fn place(&mut self, flows: &mut [(u64, &Connection)], t_s: f64) {
        flows.sort_by_key(|(new, one)| Reverse(new.saturating_add(one.waiting())));
        let has_data = |(new, one): &&(u64, &Connection)| *new > 0 || one.waiting() > 0;
        let wanted: Vec<Ends> = flows.iter().take(LARGEST).filter(has_data).map(|(_, one)| ends(one)).collect();
        for (ends, place) in &mut self.largest {
            if place.left_s.is_none() && t_s - place.since_s >= HOLD_S && !wanted.contains(ends) {
                place.left_s = Some(t_s);
            }
        }
        let mut taken = self.largest.values().filter(|place| place.left_s.is_none()).count();
        for ends in wanted {
            let is_shown = self.largest.get(&ends).is_some_and(|place| place.left_s.is_none());
            if !is_shown && taken < LARGEST {
                self.largest.insert(ends, Place { since_s: t_s, left_s: None });
                taken += 1;
            }
        }
    }

    /// Takes the names of flows that lost their places long ago.
    fn take_forgotten(&mut self, t_s: f64) -> Vec<String> {
        let is_over = |place: &Place| place.left_s.is_some_and(|left_s| t_s - left_s >= SILENCE_S);
        let over: Vec<Ends> = self.largest.iter().filter(|(_, place)| is_over(place)).map(|(ends, _)| *ends).collect();
        for ends in &over {
            self.largest.remove(ends);
        }
        over.into_iter().map(name_of).collect()
    }
}

fn ends(one: &Connection) -> Ends {
    (one.ue, one.peer)
}

/// The name of a flow to a UE, as emulations call it.
fn name_of((ue, peer): Ends) -> String {
    format!("tcp {peer} > {ue}")
}

fn mbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds.max(1e-3)
}

/// Bytes that were sent to a UE and are not acknowledged.
fn in_flight(one: &Connection) -> u64 {
    one.arrived.saturating_sub(one.delivered.saturating_add(one.waiting()))
}

/// The row of what a flow or a UE has now: its windows and bytes in flight on the radio leg, and the round-trip time there.
fn sample_row(
    name: &str,
    (t_s, goodput_mbps): (f64, f64),
    (window, in_flight): (u64, u64),
    srtt_ms: Option<f64>,
) -> SampleRow<'_> {
    SampleRow {
        flow: name,
        t_s,
        goodput_mbps,
        cwnd_bytes: Some(window),
        in_flight_bytes: Some(in_flight),
        srtt_ms,
        point: 0,
        run: 0,
        conn: 0,
        // Not shown here.
        throughput_mbps: None,
        cwnd_pep_bytes: None,
        cwnd_e2e_bytes: None,
        ssthresh_bytes: None,
        rtt_ms: None,
        owd_ms: None,
        lost: None,
        rto_ms: None,
        pacing_mbps: None,
        limit: "",
        state: "",
    }
}

/// Adds the rows of a flow. There is no row of its means: they are in those of its UE.
fn push_flow(rows: &mut Tables, one: &Connection, (t_s, goodput_mbps): (f64, f64)) {
    let (flow, ue) = (name_of(ends(one)), one.ue.ip().to_string());
    let rtt = (one.radio_rtt_ms > 0.0).then_some(one.radio_rtt_ms);
    rows.samples.push(&sample_row(&flow, (t_s, goodput_mbps), (one.radio_window, in_flight(one)), rtt));
    rows.proxies.push(&ProxyRow {
        flow: &flow,
        ue: &ue,
        t_s,
        promised_mbps: one.promised_mbps,
        held_bytes: one.waiting(),
        point: 0,
        run: 0,
        conn: 0,
        // Not shown here.
        category: "",
        receive_window_bytes: None,
        window_bytes: 0,
        in_flight_bytes: 0,
        wired_rtt_ms: None,
        radio_rtt_ms: None,
    });
}

/// Adds the rows of a UE, to which so many bytes went in the last seconds.
fn push(rows: &mut Tables, ue: IpAddr, connections: &[Connection], (t_s, seconds, bytes): (f64, f64, u64), known: &Ue) {
    let name = ue.to_string();
    let sum = |of: fn(&Connection) -> u64| connections.iter().map(of).sum::<u64>();
    let measured: Vec<f64> = connections.iter().map(|one| one.radio_rtt_ms).filter(|rtt| *rtt > 0.0).collect();
    let rtt = (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64);
    let waiting = sum(Connection::waiting);
    let windows = (sum(|one| one.radio_window), sum(in_flight));
    rows.samples.push(&sample_row(&name, (t_s, mbps(bytes, seconds)), windows, rtt));
    rows.queues.push(&QueueRow {
        link: &name,
        t_s,
        bytes: waiting,
        point: 0,
        run: 0,
        // Only the waiting bytes are known.
        packets: 0,
        dropped: 0,
        marked: 0,
        served_mbps: 0.0,
        capacity_mbps: None,
        sojourn_ms: None,
        sojourn_max_ms: None,
    });
    let promised_mbps = Connection::all_promised_mbps(connections);
    rows.proxies.push(&ProxyRow {
        flow: &name,
        ue: &name,
        t_s,
        promised_mbps,
        held_bytes: waiting,
        point: 0,
        run: 0,
        conn: 0,
        // Not shown here.
        category: "",
        receive_window_bytes: None,
        window_bytes: 0,
        in_flight_bytes: 0,
        wired_rtt_ms: None,
        radio_rtt_ms: None,
    });
    let congestion = connections.first().map(|one| one.radio_congestion.as_str());
    rows.flows.push(&flow_row(&name, congestion, t_s, known));
}

/// The row of a UE's means.
fn flow_row<'a>(name: &'a str, congestion: Option<&'a str>, t_s: f64, known: &Ue) -> FlowRow<'a> {
    FlowRow {
        flow: name,
        transport: "tcp",
        cc: congestion,
        from: "servers",
        to: name,
        start_s: known.since_s,
        measured_from_s: known.since_s,
        measured_to_s: t_s,
        bytes: known.bytes,
        goodput_mbps: mbps(known.bytes, t_s - known.since_s),
        throughput_mbps: mbps(known.bytes, t_s - known.since_s),
        point: 0,
        run: 0,
        conn: 0,
        // What the proxy does not tell, or the page does not show.
        end_s: None,
        completed: false,
        completion_s: None,
        rtt_min_ms: None,
        rtt_p5_ms: None,
        rtt_p50_ms: None,
        rtt_mean_ms: None,
        rtt_p95_ms: None,
        rtt_p99_ms: None,
        rtt_max_ms: None,
        owd_p5_ms: None,
        owd_p25_ms: None,
        owd_p50_ms: None,
        owd_p75_ms: None,
        owd_p95_ms: None,
        segments_sent: None,
        retransmitted: None,
        retrans_fast: None,
        retrans_rto: None,
        retrans_tlp: None,
        retrans_control: None,
        rtos: None,
        undos: None,
        dup_acks: None,
        max_dup_acks: None,
        ce_marks: None,
        lost_packets: None,
        jitter_ms: None,
        limited_app: None,
        limited_cwnd: None,
        limited_rwnd: None,
        limited_pacing: None,
        limited_sndbuf: None,
        limited_other: None,
        mean_cwnd_bytes: None,
        max_cwnd_bytes: None,
        mean_in_flight_bytes: None,
        max_in_flight_bytes: None,
        teid: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(port: u16, delivered: u64) -> Connection {
        let text = format!(
            r#"{{"ue":"10.0.0.2:{port}","peer":"192.0.2.1:80","from_ue":true,"established":true,"age_s":1,"arrived":{},
            "delivered":{delivered},"held":100,"unread":20,"unsent":3,"from_ue_bytes":0,"wired_rtt_ms":10,"radio_rtt_ms":30,
            "radio_mbps":1,"promised_mbps":0.5,"wired_window":1000,"radio_window":14480,"radio_congestion":"cubic"}}"#,
            delivered + 1_000
        );
        serde_json::from_str(&text).expect("it can be read")
    }

    #[test]
    fn connections_of_a_ue_are_added_up_and_may_come_and_go() {
        let mut state = State::new();
        let status = |connections| Status { accepting: true, connections, ..Status::default() };
        let rows = state.rows(&status(vec![connection(1, 1_000_000), connection(2, 500_000)]), 1.0);
        let sample = rows.samples.row(0);
        assert_eq!((sample.flow, sample.goodput_mbps, sample.cwnd_bytes), ("10.0.0.2", 12.0, Some(28_960)));
        assert_eq!((sample.srtt_ms, sample.in_flight_bytes), (Some(30.0), Some(2 * 877)));
        assert_eq!((rows.queues.row(0).bytes, rows.proxies.row(0).promised_mbps), (246, Some(1.0)));
        // The second one is gone, and a third is there.
        let rows = state.rows(&status(vec![connection(1, 1_250_000), connection(3, 250_000)]), 2.0);
        assert_eq!((rows.samples.row(0).goodput_mbps, rows.flows.row(0).bytes), (4.0, 2_000_000));
        // Another one has the first one's ends.
        let rows = state.rows(&status(vec![connection(1, 125_000)]), 3.0);
        assert_eq!(rows.samples.row(0).goodput_mbps, 1.0);
    }

    #[test]
    fn ues_that_are_silent_make_room() {
        let mut state = State::new();
        state.rows(&Status { connections: vec![connection(1, 1)], ..Status::default() }, 1.0);
        state.rows(&Status::default(), 100.0);
        assert!(state.ues.is_empty() && state.delivered.is_empty());
    }

    /// The flows in rows by the ports of the UE, with their rates.
    fn flows(rows: &Tables) -> Vec<(u16, f64)> {
        let port = |name: &str| name.strip_prefix("tcp 192.0.2.1:80 > 10.0.0.2:")?.parse().ok();
        rows.samples.iter().filter_map(|row| Some((port(row.flow)?, row.goodput_mbps))).collect()
    }

    #[test]
    fn the_largest_flows_have_rows_of_their_own_and_keep_them_for_a_while() {
        let mut state = State::new();
        let status = |connections| Status { connections, ..Status::default() };
        let many = |from: u16, times: u64| {
            (from..from + 20).map(move |port| connection(port, times * u64::from(port) * 100_000))
        };
        let rows = state.rows(&status(many(1, 1).collect()), 1.0);
        assert_eq!(rows.samples.row(0).flow, "10.0.0.2");
        assert_eq!(flows(&rows), (13..=20).rev().map(|port| (port, f64::from(port) * 1e5 * 8e-6)).collect::<Vec<_>>());
        let row = rows.samples.iter().find(|row| row.flow.ends_with(":20")).expect("it is the largest");
        assert_eq!((row.cwnd_bytes, row.in_flight_bytes, row.srtt_ms), (Some(14_480), Some(877), Some(30.0)));
        let held = rows.proxies.iter().find(|row| row.flow.ends_with(":20")).expect("it is the largest");
        assert_eq!((held.ue, held.held_bytes, held.promised_mbps), ("10.0.0.2", 123, Some(0.5)));
        assert_eq!(rows.flows.iter().len(), 1, "its bytes are those of its UE");
        // Others are larger, and do not push them out at once; of those whose places they take, nothing stays.
        let rows = state.rows(&status(many(1, 1).chain(many(30, 1)).collect()), 2.0);
        assert_eq!(flows(&rows).iter().map(|(port, _)| *port).max(), Some(20));
        assert_eq!(state.take_forgotten(2.0), [""; 0]);
        let rows = state.rows(&status(many(1, 1).chain(many(30, 2)).collect()), 1.0 + HOLD_S);
        assert_eq!(flows(&rows).iter().map(|(port, _)| *port).collect::<Vec<_>>(), (42..50).rev().collect::<Vec<_>>());
        assert_eq!(state.take_forgotten(1.0 + HOLD_S), [""; 0]);
        let forgotten = state.take_forgotten(1.0 + HOLD_S + SILENCE_S);
        assert_eq!((forgotten.len(), &*forgotten[0]), (LARGEST, "tcp 192.0.2.1:80 > 10.0.0.2:13"));
        assert_eq!(state.largest.len(), LARGEST);
    }

    #[test]
    fn a_flow_that_stands_still_is_shown_if_the_proxy_holds_data_for_it() {
        let mut state = State::new();
        let stalled = Connection { held: 50_000, ..connection(1, 0) };
        let idle = Connection { held: 0, unread: 0, unsent: 0, ..connection(2, 0) };
        let rows = state.rows(&Status { connections: vec![stalled, idle], ..Status::default() }, 1.0);
        assert_eq!(flows(&rows), [(1, 0.0)]);
        assert_eq!(rows.proxies.iter().find(|row| row.flow.starts_with("tcp")).map(|row| row.held_bytes), Some(50_023));
    }
}
