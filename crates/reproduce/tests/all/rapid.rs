//! RAPID's claims, and what holds of both policies however short the downloads are.

use super::{experiment, judge, measured, paper, row, run};
use reproduce::Verdict;

/// Downloads of a tenth, runs of a tenth, and two of four delays.
fn short(experiment: &str) -> Vec<&'static str> {
    let mut set = vec!["runs=1"];
    match experiment {
        "mmwave_fast" | "mmwave_fast_nlos" | "mmwave_fast_street" | "mmwave_classic" | "mmwave_six" => {
            set.extend(["flows.*.traffic.size=20 MB", "duration=8 s"]);
            if experiment != "mmwave_classic" {
                set.push(r#"sweep.delay=["0.5 ms", "4 ms"]"#);
            }
        }
        "mmwave_mixed" | "mmwave_mixed_nlos" => set.extend(["duration=3 s", r#"sweep.delay=["0.5 ms"]"#]),
        "mmwave_mixed_street" => set.extend(["duration=5 s", r#"sweep.delay=["0.5 ms"]"#]),
        "mixed_best" | "mixed_above" | "mixed_mdcc" => set.push("duration=3 s"),
        "mmwave_web" => set.push("duration=4 s"),
        "mmwave_25_cubic" => set.push("duration=2 s"),
        "oai_quic_ends" => {}
        // Until CUBIC has its 60 MB.
        "oai_fast" => set.push("duration=45 s"),
        _ => set.push("duration=30 s"),
    }
    set
}

#[test]
fn each_check_has_a_verdict_and_each_figure_shows_something() {
    for name in ["rapid", "rapid-beyond"] {
        let paper = paper(name);
        for experiment in &paper.experiments {
            let results = run(experiment, &short(&experiment.name), 1);
            let (rows, _) = judge(&paper, experiment, &results);
            // The first is not compared, and short downloads are less than what ends the second.
            let unmeasured = ["RTT of BBR at the 80th percentile", "BBR's share until CUBIC's end"];
            for row in rows.iter().filter(|row| !unmeasured.iter().any(|metric| row.metric.starts_with(metric))) {
                assert!(row.measured.is_some() && row.verdict != Verdict::NotPossible, "{}: {row:?}", experiment.name);
            }
        }
    }
}

#[test]
fn rapid_and_fq_codel_above_rlc_isolate_flows_and_multi_domain_congestion_control_does_not() {
    let paper = paper("rapid-beyond");
    for (name, isolates) in [("lte_best", true), ("lte_above", true), ("lte_mdcc", false)] {
        let experiment = experiment(&paper, name);
        let (rows, _) = judge(&paper, experiment, &run(experiment, &short(name), 1));
        for flow in ["CUBIC", "BBR"] {
            let delay = row(&rows, flow, "LTE, 50 ms", "median one-way delay").verdict;
            assert_eq!(delay == Verdict::Held, isolates, "{name}: {rows:?}");
        }
    }
}

#[test]
fn demand_is_met_beside_a_download_and_unlike_senders_share() {
    let paper = paper("rapid");
    let rows = |name| {
        let experiment = experiment(&paper, name);
        judge(&paper, experiment, &run(experiment, &short(name), 1)).0
    };
    let mixed = rows("mmwave_mixed");
    let app = |variant| measured(&mixed, variant, "16 Mbit/s", "goodput of the app-limited flow");
    assert!(app("no rapid") < 10.0 && app("rapid") > 15.5 && app("best") > 15.5, "{mixed:?}");
    let share = |rows: &[_], variant| row(rows, variant, "every RTT", "BBR's share").verdict;
    let fast = rows("mmwave_fast");
    assert_eq!(share(&fast, "best"), Verdict::Held, "{fast:?}");
    let many = rows("mmwave_25_cubic");
    for metric in ["Jain's index", "packets lost"] {
        assert_eq!(row(&many, "best", "2 and 8 ms RTT", metric).verdict, Verdict::Held, "{many:?}");
    }
}
