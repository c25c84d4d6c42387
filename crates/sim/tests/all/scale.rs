//! Size: ten thousand flows at once, and thousands of segments in flight.

#![allow(clippy::disallowed_methods, reason = "the memory of this process is read from /proc")]

use crate::common::{flow, load, run_on};

/// The most memory that this process has ever had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn ten_thousand_flows_at_once_take_less_than_a_gibibyte() {
    // Ten segments of each are always on the way, and no more, so that none is lost and all flows live.
    let loaded = load(
        r#"
duration = "3 s"
record.samples = "500 ms"
[dumbbell]
rate = "5 Gbit/s"
rtt = "300 ms"
queue = { kind = "drop-tail", packets = 100000 }
[[flows]]
name = "f"
count = 10000
start_jitter = "1 s"
tcp = { window_clamp = "15 kB" }
"#,
        &[],
    );
    let outcome = run_on(&loaded, 1);
    let flows = &outcome.results.tables.flows;
    // None has ended, so all were there at the end, each with its window.
    assert_eq!(flows.iter().filter(|f| !f.completed && f.max_in_flight_bytes.unwrap() > 14_000).count(), 10_000);
    let peak = peak_memory();
    println!("peak memory {} MiB, {:?}", peak >> 20, outcome.results.timing);
    assert!(peak < 1 << 30, "{peak} bytes");
}

// What a packet costs must not grow with the window. Processor time is printed and not judged; the events that the
// simulation handles for a packet are counted, and judged.
#[test]
fn a_packet_costs_the_same_with_thousands_of_segments_in_flight() {
    let cost = |rate: &str, rtt: &str, loss: f64, duration: &str| {
        let loaded = load(
            &format!(
                r#"
duration = "{duration}"
record.samples = "off"
[tcp]
send_buffer = "64 MB"
receive_buffer = "128 MB"
[dumbbell]
rate = "{rate}"
rtt = "{rtt}"
loss = {loss}
queue = {{ kind = "drop-tail", packets = 8333 }}
[[flows]]
name = "f"
cc = "scalable"
"#
            ),
            &[],
        );
        let outcome = run_on(&loaded, 1);
        let (timing, f) = (outcome.results.timing, flow(&outcome.results.tables, "f"));
        let packets = timing.packets as f64;
        println!(
            "{rate} x {rtt}: {packets} packets, {:.2} events and {:.0} ns a packet, at most {} segments in flight",
            timing.events as f64 / packets,
            timing.cpu_s * 1e9 / packets,
            f.max_in_flight_bytes.unwrap() / 1448
        );
        (timing.events as f64 / packets, f.max_in_flight_bytes.unwrap() / 1448, packets)
    };
    let (small, window, packets) = cost("10 Mbit/s", "10 ms", 1e-2, "150 s");
    assert!(window < 100 && packets > 50_000.0);
    let (fat, window, packets) = cost("1 Gbit/s", "100 ms", 1e-4, "8 s");
    assert!(window > 1000 && packets > 100_000.0);
    assert!(fat < 1.5 * small, "{fat} events a packet, and {small} with a small window");
}
