//! Receiving applications that pause: the window closes, is probed, and opens at once.

use crate::common::run;
use record::Tables;

/// A download whose reader pauses for 8 s after each 2 s.
fn paused() -> Tables {
    run(r#"
duration = "20 s"
record = { samples = "100 ms", events = true }
[[links]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "25 ms"
[[flows]]
name = "f"
from = "a"
to = "b"
reader = { reads = "2 s", pauses = "8 s" }
tcp = { receive_buffer = "200 kB" }
"#)
}

/// Bytes of a segment without payload.
const EMPTY: u32 = 52;
/// Bytes of a full segment.
const FULL: u32 = 1500;

#[test]
fn a_closed_window_is_probed_with_back_off_until_the_reader_goes_on() {
    let tables = paused();
    let sent = |len: fn(u32) -> bool| {
        let rows = tables.events.iter().filter(move |e| e.kind == "send" && e.towards == "to" && len(e.len));
        rows.map(|e| e.t_ns as f64 / 1e9).collect::<Vec<_>>()
    };
    // The first probe carries what still fits into the window.
    let data = sent(|len| len == FULL);
    assert!(data.iter().all(|t| !(2.3..10.0).contains(t)), "data was sent into a closed window");
    // RFC 9293 3.8.6.1: the interval between probes grows exponentially. As Linux's (`tcp_probe_timer`), it begins with the
    // retransmission timeout, at least 200 ms, and each answer, 50 ms later, starts it again.
    let probes: Vec<f64> = sent(|len| len == EMPTY).into_iter().filter(|t| (2.0..10.0).contains(t)).collect();
    let gaps: Vec<f64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("{probes:?} {gaps:?}");
    assert!(gaps.len() >= 3, "{gaps:?}");
    for pair in gaps.windows(2) {
        assert!(((pair[1] - 0.05) / (pair[0] - 0.05) - 2.0).abs() < 0.01, "{gaps:?}");
    }
    // The receiver tells at once that the window has opened, so data comes half a round trip later.
    let next = data.iter().find(|&&t| t > 9.0).unwrap();
    assert!((next - 10.025).abs() < 0.001, "{next}");
}

#[test]
fn a_pause_costs_its_time_and_nothing_else() {
    let tables = paused();
    let f = tables.flows.iter().next().unwrap();
    assert_eq!((f.retransmitted, f.rtos), (Some(0), Some(0)));
    // Two periods of 2 s at 9.65 Mbit/s, and the window's 100 kB twice.
    let expected = 2.0 * 2.0 * 9.65e6 / 8.0;
    assert!((f.bytes as f64 / expected - 1.0).abs() < 0.1, "{} for {expected}", f.bytes);
    assert!(f.limited_rwnd.unwrap() > 0.7, "{:?}", f.limited_rwnd);
}
