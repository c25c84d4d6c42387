//! The processing time of hosts: what it delays, what it leaves in order, and what it does not change.

use crate::common::{far_text, flow, link, run};
use record::Tables;

/// One flow over an infinitely fast path with a round trip of 100 ms.
fn far(hosts: &str, flow: &str) -> Tables {
    run(&far_text(20, &format!("[hosts]\n{hosts}"), flow))
}

const TRANSFER: &str = "traffic = { kind = \"transfer\", size = \"100 kB\" }";

#[test]
fn a_round_trip_contains_the_processing_time_of_both_hosts() {
    let rtt = |hosts: &str| flow(&far(hosts, TRANSFER), "f").rtt_min_ms.unwrap();
    assert_eq!(rtt("processing = \"0 s\""), 100.0);
    assert_eq!(rtt("processing = \"3 ms\""), 106.0);
    let server = "named = [{ name = \"a*\", processing = \"0 s\" }]";
    assert_eq!(rtt(&format!("processing = \"3 ms\"\n{server}")), 103.0);
}

#[test]
fn a_transfer_of_one_window_takes_three_processing_times_more() {
    // Of the SYN, of the SYN-ACK, and of the data.
    let transfer = "traffic = { kind = \"transfer\", size = \"14480 B\" }";
    let took = |hosts: &str| flow(&far(hosts, transfer), "f").completion_s.unwrap();
    assert!((took("processing = \"2 ms\"") - took("processing = \"0 s\"") - 3.0 * 0.002).abs() < 1e-9);
}

#[test]
fn the_delay_follows_the_quantiles() {
    let tables = far(
        "processing = { kind = \"quantiles\", points = [[0, \"1 ms\"], [0.5, \"2 ms\"], [1, \"10 ms\"]] }\n\
         named = [{ name = \"b\", processing = \"0 s\" }]",
        // Far enough apart that none waits for the one before.
        "traffic = { kind = \"on-off\", on = \"1 ms\", off = \"20 ms\", rate = \"1 Mbit/s\" }",
    );
    let f = flow(&tables, "f");
    println!("{:?} {:?} {:?}", f.rtt_min_ms, f.rtt_p50_ms, f.rtt_max_ms);
    let off = |ms: Option<f64>, wanted: f64, by: f64| assert!((ms.unwrap() - wanted).abs() < by, "{ms:?} for {wanted}");
    off(f.rtt_min_ms, 101.0, 0.1);
    off(f.rtt_p50_ms, 102.0, 1.0);
    off(f.rtt_max_ms, 110.0, 1.0);
}

/// Hosts whose processing time varies by more than packets are apart.
const UNSTEADY: &str = "tcp.receive_buffer = \"300 kB\"\n[hosts]\nprocessing = { kind = \"quantiles\", points = [[0, \"0 s\"], [1, \"5 ms\"]] }\n";

#[test]
fn a_hosts_packets_stay_in_order_whatever_their_first_hop_is() {
    let wired = |more: &str| {
        format!(
            "duration = \"5 s\"\n{UNSTEADY}[[links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"50 Mbit/s\"\n\
             delay = \"10 ms\"\n{more}\n[[flows]]\nfrom = \"a\"\nto = \"b\"\ncount = 3\n"
        )
    };
    let upload = format!(
        "duration = \"5 s\"\n{UNSTEADY}[lte]\n[[lte.ues]]\nname = \"ue\"\n[[flows]]\nfrom = \"ue\"\nto = \"server\"\n"
    );
    let small_queues = format!("{upload}tcp = {{ small_queues = true }}\n");
    for text in [wired(""), wired("jitter = \"10 us\""), upload, small_queues] {
        let tables = run(&text);
        for f in tables.flows.iter() {
            assert!(f.bytes > 1_000_000, "{} B\n{text}", f.bytes);
            assert_eq!((f.lost_packets, f.retransmitted, f.max_dup_acks), (Some(0), Some(0), Some(0)), "{text}");
        }
    }
}

#[test]
fn a_hosts_delay_draws_from_its_own_stream() {
    let voice = |hosts: &str| {
        run(&format!(
            "duration = \"60 s\"\n{hosts}\n[[links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"5 Mbit/s\"\n\
             loss = 0.05\njitter = \"1 ms\"\n[[flows]]\nname = \"v\"\nfrom = \"a\"\nto = \"b\"\n\
             traffic = {{ kind = \"cbr\", rate = \"1 Mbit/s\" }}\n"
        ))
    };
    let (with, without) = (voice("hosts.processing = \"linux\""), voice("hosts.processing = \"0 s\""));
    // The wire loses the same packets. With a processing time, the last one may still be on its way.
    let lost = |tables: &Tables| link(tables, "l").dropped_loss;
    assert!(lost(&without) > 200, "{}", lost(&without));
    assert!(lost(&with).abs_diff(lost(&without)) <= 1);
}

#[test]
fn with_a_processing_time_the_phases_of_acknowledgements_do_not_lock() {
    // A queue of two packets. Without a processing time, an acknowledgement releases a segment just when there is room for
    // it: 8.9 Mbit/s, where the kernel's hosts carry 4.3 (docs/src/oracle.md).
    let carried = |hosts: &str| {
        let tables = run(&format!(
            "duration = \"15 s\"\nwarmup = \"3 s\"\nhosts.processing = \"{hosts}\"\ntcp.tso = true\n[dumbbell]\n\
             rate = \"10 Mbit/s\"\nrtt = \"10 ms\"\nqueue = {{ kind = \"drop-tail\", bytes = \"3.125 kB\" }}\n\
             [[flows]]\nname = \"f\"\n"
        ));
        flow(&tables, "f").goodput_mbps
    };
    let (locked, free) = (carried("0 s"), carried("linux"));
    println!("{locked} {free}");
    assert!(locked > 8.5 && free < 7.5, "{locked} {free}");
}

#[test]
fn stalls_of_the_hosts_lengthen_bbrs_queue() {
    // The longest percent of the kernel's processing times, which the default leaves out: the host waits for other
    // programs. BBR takes the burst of acknowledgements that follows for capacity (docs/src/oracle.md).
    let rtt = |longest: &str| {
        let points = "[0, \"2 us\"], [0.05, \"6 us\"], [0.1, \"7 us\"], [0.25, \"11 us\"], [0.5, \"22 us\"], \
                      [0.75, \"40 us\"], [0.9, \"55 us\"], [0.95, \"71 us\"], [0.99, \"122 us\"]";
        let tables = run(&format!(
            "duration = \"15 s\"\nwarmup = \"3 s\"\n[hosts]\n\
             processing = {{ kind = \"quantiles\", points = [{points}, [1, \"{longest}\"]] }}\n[dumbbell]\n\
             rate = \"50 Mbit/s\"\nrtt = \"700 us\"\nqueue = {{ kind = \"drop-tail\", bytes = \"500 kB\" }}\n\
             [[flows]]\nname = \"f\"\ncc = \"bbr\"\n"
        ));
        flow(&tables, "f").rtt_p50_ms.unwrap()
    };
    let (without, with) = (rtt("122 us"), rtt("3 ms"));
    println!("{without} {with}");
    assert!(with > 1.15 * without, "{without} {with}");
}
