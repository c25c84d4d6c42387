//! The UEs of a proxy with most traffic: `ranway proxy status --top`.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use services::proxy::{Connection, Status};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The time over which traffic is counted.
pub(super) const TIME: Duration = Duration::from_secs(1);

/// A UE and its traffic.
#[derive(Debug, Serialize, PartialEq)]
pub(super) struct Ue {
    ue: IpAddr,
    connections: usize,
    to_ue_mbps: f64,
    from_ue_mbps: f64,
    /// Bytes towards it that wait in the proxy and its sockets.
    waiting_bytes: u64,
    #[serde(skip)]
    bytes: u64,
}

/// What tells a connection from a later one between the same ends is that it has carried more than before.
type Before = BTreeMap<(SocketAddr, SocketAddr), (u64, u64)>;

/// Returns the UEs with connections to and from which most bytes came in the `seconds` between two looks, at most `most`. The traffic
/// of connections that ended in the meantime is unknown.
pub(super) fn largest(before: &Status, now: &Status, seconds: f64, most: usize) -> Vec<Ue> {
    let counts = |one: &Connection| (one.arrived, one.from_ue_bytes);
    let before: Before = before.connections.iter().map(|one| ((one.ue, one.peer), counts(one))).collect();
    let mbps = |bytes: u64| bytes as f64 * 8e-6 / seconds.max(1e-3);
    let of_ue = |(ue, connections): (IpAddr, &[Connection])| {
        let (mut to, mut from) = (0, 0);
        for one in connections {
            let had = before.get(&(one.ue, one.peer)).copied().unwrap_or_default();
            to += one.arrived.checked_sub(had.0).unwrap_or(one.arrived);
            from += one.from_ue_bytes.checked_sub(had.1).unwrap_or(one.from_ue_bytes);
        }
        let waiting_bytes = connections.iter().map(Connection::waiting).sum();
        let (to_ue_mbps, from_ue_mbps) = (mbps(to), mbps(from));
        Ue { ue, connections: connections.len(), to_ue_mbps, from_ue_mbps, waiting_bytes, bytes: to + from }
    };
    let mut all: Vec<Ue> = now.by_ue().map(of_ue).collect();
    all.sort_by_key(|ue| Reverse((ue.bytes, ue.waiting_bytes, ue.connections)));
    all.truncate(most);
    all
}

/// Returns them with a row each.
pub(super) fn table(ues: &[Ue]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["UE", "connections", "to UE Mbit/s", "from UE Mbit/s", "held kB"]);
    for ue in ues {
        table.add_row([
            ue.ue.to_string(),
            ue.connections.to_string(),
            format!("{:.2}", ue.to_ue_mbps),
            format!("{:.2}", ue.from_ue_mbps),
            format!("{:.0}", ue.waiting_bytes as f64 / 1e3),
        ]);
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(ue: u8, port: u16, arrived: u64, from_ue_bytes: u64) -> Connection {
        let text = format!(
            r#"{{"ue":"10.0.0.{ue}:{port}","peer":"192.0.2.1:80","from_ue":true,"established":true,"age_s":1,"arrived":{arrived},
            "delivered":0,"held":100,"unread":20,"unsent":3,"from_ue_bytes":{from_ue_bytes},"wired_rtt_ms":10,"radio_rtt_ms":30,
            "radio_mbps":1,"promised_mbps":0.5,"wired_window":1000,"radio_window":14480,"radio_congestion":"cubic"}}"#
        );
        serde_json::from_str(&text).expect("it can be read")
    }

    #[test]
    fn ues_with_most_traffic_come_first_whatever_they_had_before() {
        let status = |connections| Status { connections, ..Status::default() };
        let before = status(vec![connection(1, 1, 1 << 40, 0), connection(2, 1, 5_000, 0), connection(3, 9, 9_000, 0)]);
        let now = status(vec![
            connection(1, 1, 1 << 40, 0),
            connection(2, 1, 255_000, 0),
            connection(2, 2, 250_000, 1_000_000),
            // Another one has the ends of an earlier one.
            connection(3, 9, 8_000, 0),
            connection(4, 1, 0, 0),
        ]);
        let ues = largest(&before, &now, 2.0, 3);
        let first = &ues[0];
        assert_eq!((first.connections, first.to_ue_mbps, first.from_ue_mbps, first.waiting_bytes), (2, 2.0, 4.0, 246));
        let order: Vec<String> = ues.iter().map(|ue| ue.ue.to_string()).collect();
        assert_eq!(order, ["10.0.0.2", "10.0.0.3", "10.0.0.1"]);
        let table = table(&ues).to_string();
        assert!(table.lines().nth(1).is_some_and(|line| line.contains("10.0.0.2") && line.contains("2.00")), "{table}");
    }
}
