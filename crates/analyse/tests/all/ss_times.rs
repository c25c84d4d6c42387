//! Times in logs of `ss`, and what its kernel remembers of round trips.

use crate::common::analysed;
use analyse::{Analysis, Rules};

/// A snapshot of a connection that has so many MB acknowledged, with more of its state.
fn snapshot(megabytes: u64, state: &str) -> String {
    format!(
        "ESTAB 0 0 192.0.2.1:40000 198.51.100.1:443\n\t cubic wscale:7,7 rto:204 mss:1448 bytes_sent:{0} bytes_acked:{0} \
         {state}\n",
        megabytes * 1_000_000
    )
}

fn of(text: &str) -> Analysis {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ss.log");
    std::fs::write(&file, text).unwrap();
    analysed(&[file], Rules::Ranway).unwrap()
}

/// The goodput of the only flow, to a tenth of a Mbit/s.
fn mbps(analysis: &Analysis) -> f64 {
    let rows: Vec<f64> = analysis.results.tables.flows.iter().map(|row| row.goodput_mbps).collect();
    assert_eq!(rows.len(), 1);
    (rows[0] * 10.0).round() / 10.0
}

const STATE: &str = "rtt:20/1 cwnd:20 minrtt:20";

#[test]
fn what_stands_before_the_first_time_is_left_out_and_said() {
    for times in [
        ["10:00:00", "10:00:01", "10:00:02", "10:00:03"],
        ["1795597442.0", "1795597443.0", "1795597444.0", "1795597445.0"],
        ["Nov 25 09:04:02", "Nov 25 09:04:03", "Nov 25 09:04:04", "Nov 25 09:04:05"],
    ] {
        let log = times.iter().zip(1..).map(|(time, n)| snapshot(n, STATE) + time + "\n").collect::<String>();
        let analysis = of(&log);
        assert_eq!(mbps(&analysis), 8.0, "{times:?}");
        let note = "1 states stand before the first time and were left out";
        assert!(analysis.notes.iter().any(|said| said.contains(note)), "{:?}", analysis.notes);
    }
}

#[test]
fn times_without_a_year_pass_the_ends_of_february_and_of_the_year() {
    for times in [
        ["Feb 28 23:59:58", "Feb 28 23:59:59", "Mar  1 00:00:00", "Mar  1 00:00:01"],
        ["Feb 28 23:59:59", "Feb 29 00:00:00", "Feb 29 00:00:01", "Feb 29 00:00:02"],
        ["Feb 29 23:59:58", "Feb 29 23:59:59", "Mar  1 00:00:00", "Mar  1 00:00:01"],
        ["Dec 31 23:59:58", "Dec 31 23:59:59", "Jan  1 00:00:00", "Jan  1 00:00:01"],
        ["23:59:58", "23:59:59", "00:00:00", "00:00:01"],
    ] {
        let log = times.iter().zip(1..).map(|(time, n)| format!("{time}\n{}", snapshot(n, STATE))).collect::<String>();
        assert_eq!(mbps(&of(&log)), 8.0, "{times:?}");
    }
}

#[test]
fn the_kernels_smallest_round_trip_tells_of_a_queue_that_was_always_there() {
    let state = |n: u64| format!("rtt:400/1.5 cwnd:276 unacked:276 notsent:90000 minrtt:20 busy:{n}000ms");
    let log = (1..5).map(|n| format!("10:00:0{n}\n{}", snapshot(n, &state(n)))).collect::<String>();
    let results = of(&log).results;
    let flow = results.tables.flows.row(0);
    assert_eq!((flow.rtt_min_ms, flow.rtt_p50_ms.map(f64::round)), (Some(20.0), Some(400.0)));
    let said = &analyse::why(&results)[0].verdict;
    assert!(said.contains("packets waited in a queue") && said.contains("20 ms idle, 400 ms loaded"), "{said}");
}
