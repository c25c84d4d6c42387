//! A lightweight PEP between server and phone, and multi-domain congestion control beside CUBIC.
//!
//! Sources: Krämer et al., "Towards Multi-Domain Congestion Control in Next-Generation Networks" (WCNC 2019); for the
//! throughput under random loss, T. Kelly, "Scalable TCP" (2003): a mean window of a / (b p).

use crate::common::{flow, near, run};
use record::{Table, Tables};

/// A server 5 ms from the PEP and a phone 10 ms behind it; `wired` and `radio` are further keys of their links.
fn path(cc: &str, pep: bool, seconds: u32, wired: &str, radio: &str) -> Tables {
    run(&path_text(cc, pep, seconds, wired, radio))
}

/// The scenario of [`path`].
fn path_text(cc: &str, pep: bool, seconds: u32, wired: &str, radio: &str) -> String {
    format!(
        r#"
duration = "{seconds} s"
warmup = "10 s"
record.samples = "100 ms"
# The paper's Linux 4.7 in ns-3 sends segments one by one.
[tcp]
tso = false
send_buffer = "64 MB"
receive_buffer = "64 MB"
[[links]]
name = "internet"
from = "server"
to = "border"
delay = "5 ms"
pep = {pep}
{wired}
[[links]]
name = "radio"
from = "border"
to = "phone"
delay = "10 ms"
{radio}
[[flows]]
name = "f"
from = "server"
to = "phone"
cc = {cc}
"#
    )
}

const RADIO: &str = "rate = \"35 Mbit/s\"\nqueue = { kind = \"pfifo-fast\", packets = 1000 }\nloss = 0.001";
const FAST: &str = "rate = \"1 Gbit/s\"\n";
const LOSSY: &str = "rate = \"35 Mbit/s\"\nloss = 0.001";

#[test]
fn loss_on_the_radio_costs_less_where_a_pep_tells_it_from_congestion() {
    let goodput = |cc: &str, pep| flow(&path(cc, pep, 60, "", RADIO), "f").goodput_mbps;
    let (cubic, alone, with_pep) = (goodput("\"cubic\"", true), goodput("\"mdcc\"", false), goodput("\"mdcc\"", true));
    assert!((alone / cubic - 1.0).abs() < 1e-9, "without a PEP it is CUBIC: {alone} and {cubic}");
    // The paper's gain at this loss rate is 108.75 % (Table I).
    assert!(with_pep > 1.6 * cubic, "{with_pep} and {cubic}");
}

#[test]
fn under_heavy_loss_the_window_is_scalables() {
    // Counted for each segment, and above 50 of them: W = 0.02 / (0.125 p) = 160 segments at 1e-3, on a fast link.
    let cc = r#"{ kind = "mdcc", per_acknowledgement = false }"#;
    let tables = path(cc, true, 200, "", "rate = \"10 Gbit/s\"\nloss = 0.001");
    let f = flow(&tables, "f");
    let window = f.goodput_mbps * 1e6 / 8.0 / 1448.0 * 0.03;
    assert!((window / 160.0 - 1.0).abs() < 0.1, "{window} segments");
    assert_eq!(f.rtos.unwrap(), 0);
}

#[test]
fn as_published_an_overflow_on_the_wire_reduces_the_window_more_than_once() {
    let wired = "rate = \"35 Mbit/s\"\nqueue = { kind = \"pfifo-fast\", packets = 100 }";
    let window = |mode: &str| {
        let cc = format!("{{ kind = \"mdcc\", mode = \"{mode}\" }}");
        flow(&path(&cc, true, 60, wired, ""), "f").mean_cwnd_bytes.expect("it is TCP")
    };
    // An overflow drops segments between others, and each gap has a report.
    let (safe, published) = (window("safe"), window("published"));
    assert!(published < 0.9 * safe, "{published} B as published, {safe} B with one reduction for an overflow");
}

#[test]
fn capacity_that_appears_on_the_radio_is_filled_sooner() {
    let radio = "rate = { kind = \"steps\", steps = [[\"0 s\", \"35 Mbit/s\"], [\"20 s\", \"350 Mbit/s\"]] }\n\
                 queue = { kind = \"codel\" }";
    let filled = |cc: &str| {
        let tables = path(cc, true, 50, "", radio);
        let mut samples = tables.samples.iter().filter(|s| s.t_s > 20.0);
        samples.find(|s| s.goodput_mbps > 300.0).map_or(f64::INFINITY, |s| s.t_s - 20.0)
    };
    let (cubic, mdcc) = (filled("\"cubic\""), filled("\"mdcc\""));
    // The paper: nearly 17 s, and 10 s earlier.
    assert!(mdcc < 0.6 * cubic && mdcc < 12.0, "{mdcc} and {cubic}");
}

#[test]
fn in_the_wired_domain_it_is_cubic() {
    let wired = "rate = \"35 Mbit/s\"\nloss = 0.0005";
    let tables = |cc: &str| path(cc, true, 100, wired, "");
    let (cubic, mdcc) = (tables("\"cubic\""), tables("\"mdcc\""));
    let (cubic, goodput) = (flow(&cubic, "f").goodput_mbps, flow(&mdcc, "f").goodput_mbps);
    // A sixth of the round trip is saved at each loss, no more.
    assert!((0.95..1.35).contains(&(goodput / cubic)), "{goodput} and {cubic}");
    let pep = mdcc.peps.iter().next().expect("there is a PEP");
    assert_eq!((pep.node, pep.withheld), ("border", 0));
    assert!(pep.nacks > 0 && pep.reports * 2 <= pep.segments + 2 * pep.nacks, "{pep:?}");
    assert!(pep.report_bytes * 20 < pep.bytes);
    for sample in mdcc.samples.iter().filter(|s| s.t_s > 5.0) {
        let (Some(pep), Some(e2e)) = (sample.cwnd_pep_bytes, sample.cwnd_e2e_bytes) else {
            panic!("no PEP: {sample:?}")
        };
        assert!(pep <= 2 * e2e && e2e <= 2 * pep && sample.cwnd_bytes == Some(pep.min(e2e)), "{sample:?}");
    }
}

#[test]
fn reports_that_are_lost_cost_little_and_a_sender_that_hears_none_goes_on() {
    let goodput = |cc: &str, loss: f64| {
        let wired = format!("rate = \"1 Gbit/s\"\nreverse = {{ loss = {loss} }}");
        flow(&path(cc, true, 60, &wired, RADIO), "f").goodput_mbps
    };
    for loss in [0.1, 0.5] {
        let (cubic, mdcc) = (goodput("\"cubic\"", loss), goodput("\"mdcc\"", loss));
        assert!(mdcc > 0.95 * cubic, "{loss}: {mdcc} and {cubic}");
    }
}

#[test]
fn a_pep_at_the_core_of_an_lte_network_reports_what_goes_to_the_cells() {
    let tables = run(r#"
duration = "5 s"
[lte]
server_delay = "10 ms"
s1_delay = "1 ms"
pep = true
[[lte.ues]]
name = "phone"
[[flows]]
name = "f"
cc = "mdcc"
"#);
    let pep = tables.peps.iter().next().expect("there is a PEP");
    assert_eq!(pep.node, "core");
    assert!(pep.reports > 100 && flow(&tables, "f").goodput_mbps > 20.0, "{pep:?}");
}

#[test]
fn after_a_handover_the_pep_of_the_new_cell_reports() {
    let drive = |cc: &str| {
        run(&format!(
            r#"
duration = "25 s"
[lte]
server_delay = "10 ms"
pep = true
pep_at = "cells"
cells = [{{ name = "west", position = [0, 0, 30] }}, {{ name = "east", position = [600, 0, 30] }}]
[[lte.ues]]
name = "phone"
mobility = {{ kind = "line", from = [50, 20, 1.5], velocity = [30, 0, 0] }}
channel = {{ kind = "log-distance", exponent = 3.5, at_1m_db = 36 }}
[[flows]]
name = "f"
cc = "{cc}"
"#
        ))
    };
    let tables = drive("mdcc");
    assert!(tables.mobility.iter().any(|row| row.event == "connected" && row.cell == "east"));
    let reports: Vec<_> = tables.peps.iter().map(|pep| (pep.node, pep.reports)).collect();
    assert!(matches!(reports[..], [("west", 1_000..), ("east", 1_000..)]), "{reports:?}");
    let (mdcc, cubic) = (flow(&tables, "f").goodput_mbps, flow(&drive("cubic"), "f").goodput_mbps);
    assert!(mdcc > 0.95 * cubic, "{mdcc} and {cubic}");
}

#[test]
fn a_pep_whose_reports_are_all_lost_is_no_pep() {
    let silent = path("\"mdcc\"", true, 40, &format!("{FAST}pep_report_loss = 1.0"), LOSSY);
    let absent = path("\"mdcc\"", false, 40, FAST, LOSSY);
    let cubic = path("\"cubic\"", false, 40, FAST, LOSSY);
    let bytes = |tables: &Tables| flow(tables, "f").bytes;
    assert_eq!(bytes(&silent), bytes(&absent));
    assert_eq!(bytes(&absent), bytes(&cubic));
}

#[test]
fn half_of_the_reports_do_where_the_radio_loses() {
    // CUBIC's Reno-friendly region at 1e-3 and 30 ms: about 15 Mbit/s. Scalable's a / (b p) with a segment for a hundred:
    // 80 segments in a round trip of 30 ms, 32 Mbit/s, held back a little by the bottleneck.
    let goodput = |cc: &str, lost: f64| {
        let wired = format!("{FAST}pep_report_loss = {lost}");
        flow(&path(cc, true, 40, &wired, LOSSY), "f").goodput_mbps
    };
    let (cubic, all, half) = (goodput("\"cubic\"", 0.0), goodput("\"mdcc\"", 0.0), goodput("\"mdcc\"", 0.5));
    near("CUBIC", cubic, 14.5, 0.15);
    near("Multi-Domain", all, 28.0, 0.15);
    near("with half of the reports", half, all, 0.05);
}

#[test]
fn a_sender_acts_upon_reports_in_the_same_way_whether_somebody_watches_or_not() {
    let text = path_text("\"mdcc\"", true, 15, FAST, LOSSY);
    let (alone, watched) = (run(&text), run(&text.replace("record.samples", "record.events = true\nrecord.samples")));
    assert!(alone.events.is_empty() && watched.events.len() > 10_000);
    assert!(alone.flows == watched.flows && alone.samples == watched.samples && alone.rtts == watched.rtts);
    assert!(alone.links == watched.links && alone.peps == watched.peps);
}
