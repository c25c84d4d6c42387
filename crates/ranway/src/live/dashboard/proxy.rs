//! The page of `ranway proxy`: for each UE, the sum of its flows and the bytes that are queued for it.

use ::services::dashboard::Publisher;
use ::services::proxy::{Connection, Observer, Status};
use record::Tables;
use record::report::live::Board;
use record::tables::{FlowRow, ProxyRow, QueueRow, SampleRow};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// UEs that are shown; further ones wait until others have been silent for a while.
const MOST_UES: usize = 1_000;

/// Columns of queues that the proxy cannot fill: it counts bytes alone.
const UNKNOWN: [&str; 3] = ["packets", "dropped", "marked"];

/// Follows a proxy.
pub(crate) struct ProxyFollower {
    publisher: Publisher,
    observer: Observer,
    state: Arc<Mutex<State>>,
}

/// What was known at the last look.
struct State {
    begun: Instant,
    at_s: f64,
    /// Bytes that each connection had delivered.
    delivered: BTreeMap<(SocketAddr, SocketAddr), u64>,
    ues: BTreeMap<IpAddr, Ue>,
    accepting: Option<bool>,
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
        let (begun, delivered, ues) = (Instant::now(), BTreeMap::new(), BTreeMap::new());
        let state = State { begun, at_s: 0.0, delivered, ues, accepting: None };
        ProxyFollower { publisher, observer, state: Arc::new(Mutex::new(state)) }
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
    fn show(&mut self, status: &Status, board: &mut Board) {
        let t_s = self.begun.elapsed().as_secs_f64();
        let rows = self.rows(status, t_s);
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
        self.ues.retain(|_, ue| t_s - ue.seen_s < record::report::live::SILENCE_S);
        for (ue, connections) in status.by_ue() {
            if !self.ues.contains_key(&ue) && self.ues.len() >= MOST_UES {
                continue;
            }
            let mut bytes = 0;
            for one in connections {
                let had = before.get(&(one.ue, one.peer)).copied().unwrap_or(0);
                // Another connection may have the same ends.
                bytes += one.delivered.checked_sub(had).unwrap_or(one.delivered);
                self.delivered.insert((one.ue, one.peer), one.delivered);
            }
            let known = self.ues.entry(ue).or_insert(Ue { since_s: t_s - seconds, seen_s: t_s, bytes: 0 });
            known.bytes += bytes;
            known.seen_s = t_s;
            push(&mut rows, ue, connections, (t_s, seconds, bytes), known);
        }
        rows
    }
}

/// Adds the rows of a UE, to which so many bytes went in the last seconds.
fn push(rows: &mut Tables, ue: IpAddr, connections: &[Connection], (t_s, seconds, bytes): (f64, f64, u64), known: &Ue) {
    let name = ue.to_string();
    let sum = |of: fn(&Connection) -> u64| connections.iter().map(of).sum::<u64>();
    let mbps = |bytes: u64, seconds: f64| bytes as f64 * 8e-6 / seconds.max(1e-3);
    let measured: Vec<f64> = connections.iter().map(|one| one.radio_rtt_ms).filter(|rtt| *rtt > 0.0).collect();
    let rtt = (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64);
    let waiting = sum(Connection::waiting);
    rows.samples.push(&SampleRow {
        flow: &name,
        t_s,
        goodput_mbps: mbps(bytes, seconds),
        cwnd_bytes: Some(sum(|one| one.radio_window)),
        in_flight_bytes: Some(sum(|one| one.arrived.saturating_sub(one.delivered + one.waiting()))),
        srtt_ms: rtt,
        ..SampleRow::default()
    });
    rows.queues.push(&QueueRow { link: &name, t_s, bytes: waiting, ..QueueRow::default() });
    let promised_mbps = Connection::all_promised_mbps(connections);
    rows.proxies.push(&ProxyRow {
        flow: &name,
        ue: &name,
        t_s,
        promised_mbps,
        held_bytes: waiting,
        ..ProxyRow::default()
    });
    let congestion = connections.first().map(|one| one.radio_congestion.as_str());
    rows.flows.push(&FlowRow {
        flow: &name,
        transport: "tcp",
        cc: congestion,
        from: "servers",
        to: &name,
        start_s: known.since_s,
        measured_from_s: known.since_s,
        measured_to_s: t_s,
        bytes: known.bytes,
        goodput_mbps: mbps(known.bytes, t_s - known.since_s),
        throughput_mbps: mbps(known.bytes, t_s - known.since_s),
        ..FlowRow::default()
    });
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

    fn state() -> State {
        let (delivered, ues) = (BTreeMap::new(), BTreeMap::new());
        State { begun: Instant::now(), at_s: 0.0, delivered, ues, accepting: None }
    }

    #[test]
    fn connections_of_a_ue_are_added_up_and_may_come_and_go() {
        let mut state = state();
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
        let mut state = state();
        state.rows(&Status { connections: vec![connection(1, 1)], ..Status::default() }, 1.0);
        state.rows(&Status::default(), 100.0);
        assert!(state.ues.is_empty() && state.delivered.is_empty());
    }
}
