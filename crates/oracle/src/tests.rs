//! Tests of the comparison with artificial tables, and of the simulator against itself.

use super::*;
use record::tables::{FlowRow, LinkRow, SampleRow};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The behaviour of an artificial sender.
#[derive(Clone, Copy)]
struct World {
    cc: &'static str,
    goodput: f64,
    rtt: f64,
    /// Time and window at which slow start ends for delay.
    exit: (f64, u64),
    /// Growth of the window after the loss at 2 s, in segments per second, starting from 100.
    growth: f64,
    loss: bool,
    /// Of a thousand segments.
    retransmitted: u64,
    timeouts: u64,
    utilisation: f64,
}

/// The path takes 40 ms.
const WORLD: World = World {
    cc: "cubic",
    goodput: 10.0,
    rtt: 50.0,
    exit: (0.5, 100_000),
    growth: 20.0,
    loss: false,
    retransmitted: 20,
    timeouts: 0,
    utilisation: 0.9,
};

const FLOW: FlowRow<'static> = FlowRow {
    point: 0,
    run: 0,
    flow: "a",
    conn: 0,
    transport: "tcp",
    cc: Some("cubic"),
    from: "",
    to: "",
    start_s: 0.0,
    end_s: None,
    completed: false,
    measured_from_s: 0.0,
    measured_to_s: 5.0,
    bytes: 0,
    goodput_mbps: 0.0,
    throughput_mbps: 0.0,
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
    segments_sent: Some(1000),
    retransmitted: Some(20),
    retrans_fast: Some(0),
    retrans_rto: Some(0),
    retrans_tlp: Some(0),
    retrans_control: Some(0),
    rtos: Some(0),
    undos: Some(0),
    dup_acks: Some(0),
    max_dup_acks: Some(0),
    ce_marks: Some(0),
    lost_packets: Some(0),
    jitter_ms: None,
    limited_app: Some(0.0),
    limited_cwnd: Some(0.0),
    limited_rwnd: Some(0.0),
    limited_pacing: Some(0.0),
    limited_sndbuf: Some(0.0),
    limited_other: Some(0.0),
    mean_cwnd_bytes: Some(0.0),
    max_cwnd_bytes: Some(0),
    mean_in_flight_bytes: Some(0.0),
    max_in_flight_bytes: Some(0),
    teid: None,
};

const SAMPLE: SampleRow<'static> = SampleRow {
    point: 0,
    run: 0,
    flow: "a",
    conn: 0,
    t_s: 0.0,
    goodput_mbps: 0.0,
    throughput_mbps: None,
    cwnd_bytes: Some(0),
    cwnd_pep_bytes: None,
    cwnd_e2e_bytes: None,
    ssthresh_bytes: None,
    in_flight_bytes: Some(0),
    srtt_ms: None,
    rtt_ms: None,
    owd_ms: None,
    lost: Some(0),
    rto_ms: Some(0.0),
    pacing_mbps: None,
    limit: "",
    state: "",
};

const LINK: LinkRow<'static> = LinkRow {
    point: 0,
    run: 0,
    link: "there",
    packets_in: 0,
    packets_out: 0,
    bytes_out: 0,
    dropped_overflow: 0,
    dropped_control: 0,
    dropped_loss: 0,
    marked: 0,
    utilisation: 0.0,
    sojourn_p50_ms: None,
    sojourn_p95_ms: None,
    sojourn_p99_ms: None,
};

fn scenario(loss: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({
        "links": [{ "name": "there", "delay": "30 ms", "loss": loss }, { "name": "back", "delay": "10 ms" }],
        "flows": [{ "name": "a", "route": ["there"], "return_route": ["back"] }],
    })
}

fn world(w: World) -> Results {
    let mut results = Results::default();
    let loss = w.loss.then(|| serde_json::json!({ "kind": "random", "probability": 0.01 }));
    results.meta.scenario = scenario(&loss.unwrap_or_default());
    results.tables.links.push(&LinkRow { utilisation: w.utilisation, ..LINK });
    results.tables.flows.push(&FlowRow {
        cc: Some(w.cc),
        goodput_mbps: w.goodput,
        rtt_p50_ms: Some(w.rtt),
        rtt_p95_ms: Some(w.rtt),
        retransmitted: Some(w.retransmitted),
        rtos: Some(w.timeouts),
        ..FLOW
    });
    for i in 0..=500u32 {
        let t_s = f64::from(i) / 100.0;
        let (cwnd, ssthresh, state) = match t_s {
            t if t < w.exit.0 => (f64::from(i) * 1_000.0, None, "slow-start"),
            t if t < 2.0 => (w.exit.1 as f64, Some(w.exit.1), "avoidance"),
            t if t < 2.05 => (120_000.0, Some(100_000), "recovery"),
            t if t < 4.0 => (100_000.0 + w.growth * 1_000.0 * (t - 2.05), Some(100_000), "avoidance"),
            _ => (90_000.0, Some(90_000), "recovery"),
        };
        results.tables.samples.push(&SampleRow {
            t_s,
            cwnd_bytes: Some(cwnd as u64),
            ssthresh_bytes: ssthresh,
            srtt_ms: Some(w.rtt),
            state,
            ..SAMPLE
        });
    }
    results
}

fn row<'a>(rows: &'a [Row], metric: &str) -> &'a Row {
    rows.iter().find(|row| row.metric == metric).unwrap_or_else(|| panic!("no row {metric}"))
}

fn verdict(rows: &[Row], metric: &str) -> Verdict {
    row(rows, metric).verdict.unwrap()
}

#[test]
fn identical_results_are_within_all_bounds() {
    let rows = compare("made up", &world(WORLD), &[world(WORLD)]);
    assert_eq!(rows.len(), 11);
    assert!(rows.iter().all(|row| row.deviation == Some(0.0)), "{rows:?}");
    assert!(rows.iter().all(|row| row.verdict.is_none_or(|verdict| verdict == Verdict::Within)), "{rows:?}");
    // Five of a hundred samples after 2 s, and all from 4 s on: 106 of 501.
    let recovery = row(&rows, "time in recovery");
    assert!((recovery.simulated.unwrap() - 100.0 * 106.0 / 501.0).abs() < 1e-9, "{recovery:?}");
}

#[test]
fn each_figure_has_its_own_bound() {
    let bounds = [
        ("goodput", World { goodput: 10.4, ..WORLD }, World { goodput: 10.6, ..WORLD }),
        // 10 ms of 50 are queueing delay.
        ("queueing delay, median", World { rtt: 50.9, ..WORLD }, World { rtt: 51.1, ..WORLD }),
        ("queueing delay, p95", World { rtt: 51.4, ..WORLD }, World { rtt: 51.6, ..WORLD }),
        ("smoothed delay, median", World { rtt: 50.9, ..WORLD }, World { rtt: 51.1, ..WORLD }),
        ("smoothed delay, p95", World { rtt: 51.4, ..WORLD }, World { rtt: 51.6, ..WORLD }),
        // 2 % of the segments.
        ("retransmitted", World { retransmitted: 24, ..WORLD }, World { retransmitted: 25, ..WORLD }),
        ("timeouts", World { timeouts: 1, ..WORLD }, World { timeouts: 2, ..WORLD }),
        ("slow start's end, window", World { exit: (0.5, 114_000), ..WORLD }, World { exit: (0.5, 116_000), ..WORLD }),
        // A round trip of 50 ms, and an interval of 10 ms between samples.
        ("slow start's end, time", World { exit: (0.55, 100_000), ..WORLD }, World { exit: (0.58, 100_000), ..WORLD }),
        // At 1.94 s the windows are 138.8 and 148.5 or 158.2 kB: 7 and 14 % apart, half of it on average.
        ("CUBIC's curve", World { growth: 25.0, ..WORLD }, World { growth: 30.0, ..WORLD }),
    ];
    for (metric, near, far) in bounds {
        let of = |w| verdict(&compare("made up", &world(w), &[world(WORLD)]), metric);
        assert_eq!((of(near), of(far)), (Verdict::Within, Verdict::Beyond), "{metric}");
    }
}

#[test]
fn random_loss_doubles_the_bound_of_goodput() {
    let lossy = World { loss: true, ..WORLD };
    let rows = compare("made up", &world(World { goodput: 10.9, ..lossy }), &[world(lossy)]);
    assert_eq!(verdict(&rows, "goodput"), Verdict::Within);
}

#[test]
fn a_loss_probability_of_zero_does_not_count_as_random_loss() {
    let with = |goodput| {
        let mut results = world(World { goodput, ..WORLD });
        results.meta.scenario = scenario(&serde_json::json!({ "kind": "random", "probability": 0.0 }));
        results
    };
    assert_eq!(verdict(&compare("made up", &with(10.9), &[with(10.0)]), "goodput"), Verdict::Beyond);
}

#[test]
fn for_mdcc_the_window_is_compared_instead_of_a_curve() {
    let mdcc = World { cc: "mdcc", ..WORLD };
    let of = |ours: World| compare("made up", &world(ours), &[world(mdcc)]);
    let rows = of(mdcc);
    assert!(rows.iter().all(|row| row.metric != "CUBIC's curve" && row.deviation == Some(0.0)), "{rows:?}");
    // Of 501 samples 51 are below 50 kB, 156 at 90 or 100 and the others grow: the median is the exit's.
    assert_eq!(row(&rows, "window, median").emulated, Some(100.0));
    let (near, far) = (of(World { exit: (0.5, 108_000), ..mdcc }), of(World { exit: (0.5, 112_000), ..mdcc }));
    assert_eq!(verdict(&near, "window, median"), Verdict::Within);
    assert_eq!(verdict(&far, "window, median"), Verdict::Beyond);
}

#[test]
fn a_difference_within_the_kernels_own_range_is_noise_from_six_runs_on() {
    let kernel = |goodput| world(World { goodput, ..WORLD });
    let of = |ours, runs: usize| {
        let theirs: Vec<_> = (0..runs).map(|run| kernel(if run % 2 == 0 { 9.5 } else { 10.5 })).collect();
        let rows = compare("made up", &kernel(ours), &theirs);
        let row = row(&rows, "goodput");
        assert_eq!((row.emulated, row.noise), (Some(10.0), Some(0.05)));
        row.verdict.unwrap()
    };
    assert_eq!([10.4, 10.9, 11.1].map(|ours| of(ours, 6)), [Verdict::Within, Verdict::Noise, Verdict::Beyond]);
    assert_eq!([10.4, 10.9, 11.1].map(|ours| of(ours, 4)), [Verdict::Within, Verdict::Beyond, Verdict::Beyond]);
}

#[test]
fn the_goodput_of_the_only_flow_of_a_full_link_is_counted_apart() {
    let full = World { utilisation: 0.995, ..WORLD };
    let of = |ours: World, theirs: World| verdict(&compare("made up", &world(ours), &[world(theirs)]), "goodput");
    assert_eq!(of(full, full), Verdict::Full);
    assert_eq!(of(full, WORLD), Verdict::Within);
    // A difference is never hidden.
    assert_eq!(of(World { goodput: 11.0, ..full }, full), Verdict::Beyond);
    let mut two = world(full);
    two.tables.flows.push(&FlowRow { flow: "b", ..FLOW });
    assert_eq!(verdict(&compare("made up", &two, std::slice::from_ref(&two)), "goodput"), Verdict::Within);
}

#[test]
fn small_delays_may_differ_by_what_neither_side_can_tell_apart() {
    let of = |ours, theirs, metric| {
        let of = |rtt| world(World { rtt, ..WORLD });
        verdict(&compare("made up", &of(ours), &[of(theirs)]), metric)
    };
    // A round-trip time of about 41 ms has steps of a 128th; the smoothed one has not, but packets are late by 0.1 ms.
    let delays = [of(41.3, 41.0, "queueing delay, median"), of(41.4, 41.0, "queueing delay, median")];
    assert_eq!(delays, [Verdict::Within, Verdict::Beyond]);
    let smoothed = [of(40.58, 40.5, "smoothed delay, median"), of(40.65, 40.5, "smoothed delay, median")];
    assert_eq!(smoothed, [Verdict::Within, Verdict::Beyond]);
}

#[test]
fn over_radio_the_smallest_round_trip_time_is_that_of_the_path() {
    let of = |rtt| {
        let mut results = world(World { rtt, ..WORLD });
        results.meta.scenario["flows"][0]["route"] = serde_json::json!(["there", "radio-ue"]);
        results.tables.samples.push(&SampleRow { t_s: 0.01, srtt_ms: Some(30.0), state: "slow-start", ..SAMPLE });
        results
    };
    let rows = compare("made up", &of(50.0), &[of(50.0)]);
    assert_eq!(row(&rows, "queueing delay, median").emulated, Some(20.0));
}

#[test]
fn behind_a_queue_in_the_host_only_the_senders_own_delays_are_compared() {
    let of = |link: usize| {
        let mut results = world(WORLD);
        results.meta.scenario["links"][link]["queue_in_host"] = true.into();
        let rows = compare("made up", &results, std::slice::from_ref(&results));
        rows.iter().map(|row| row.metric).filter(|metric| metric.contains("delay")).collect::<Vec<_>>()
    };
    assert_eq!(of(0), ["smoothed delay, median", "smoothed delay, p95"]);
    // The other link's queue is in the receiver.
    assert_eq!(of(1).len(), 4);
}

#[test]
fn a_value_that_only_one_side_has_exceeds_the_bound() {
    let never = world(World { exit: (9.0, 0), ..WORLD });
    let rows = compare("made up", &world(WORLD), std::slice::from_ref(&never));
    assert_eq!(verdict(&rows, "slow start's end, time"), Verdict::Beyond);
    let rows = compare("made up", &world(WORLD), &[Results::default()]);
    assert_eq!(verdict(&rows, "goodput"), Verdict::Beyond);
    let rows = compare("made up", &never, std::slice::from_ref(&never));
    assert!(rows.iter().all(|row| !row.metric.starts_with("slow start")), "{rows:?}");
}

#[test]
fn tables_count_the_rows_beyond_the_bound() {
    let rows = compare("made up", &world(World { goodput: 11.0, ..WORLD }), &[world(WORLD)]);
    let comparison = Comparison { rows };
    assert_eq!(comparison.count(Verdict::Beyond), 1);
    let counts = "9 within the bound, 0 within the kernel's own noise, 1 beyond; apart, 0 goodputs of full links.";
    assert!(comparison.text().ends_with(&format!("{counts}\n")), "{}", comparison.text());
    let markdown = comparison.markdown();
    assert!(markdown.starts_with(counts), "{markdown}");
    assert!(markdown.contains("| **10.0 %** of 10.000 |"), "{markdown}");
}

fn simulate(case: &str, overrides: &[&str]) -> Results {
    let case = cases().into_iter().find(|other| other.name == case).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|&set| set.to_owned()).collect();
    let loaded = case.load(Path::new(""), &overrides).unwrap();
    assert_eq!(needs_mdcc(&loaded), case.name.starts_with("mdcc"));
    let stop = AtomicBool::new(false);
    let options = sim::Options::new(1, &stop, &|_| ());
    sim::run(&loaded, &options).unwrap().results
}

#[test]
fn another_seed_is_within_all_bounds_and_another_link_is_not() {
    let with = |more| simulate("short", &["cc=\"cubic\"", more]);
    let (one, other) = (with("seed=1"), with("seed=2"));
    let comparison = Comparison { rows: compare("short", &one, &[other]) };
    let metrics: Vec<_> = comparison.rows.iter().map(|row| row.metric).collect();
    assert!(metrics.contains(&"CUBIC's curve") && metrics.contains(&"slow start's end, time"), "{metrics:?}");
    assert_eq!((comparison.count(Verdict::Noise), comparison.count(Verdict::Beyond)), (0, 0), "{}", comparison.text());
    let faster = with("dumbbell.rate=\"24 Mbit/s\"");
    assert_eq!(verdict(&compare("short", &one, &[faster]), "goodput"), Verdict::Beyond);
}

#[test]
fn in_the_mdcc_cases_the_sender_receives_pep_reports() {
    for case in cases().iter().filter(|case| case.name.starts_with("mdcc")) {
        let results = simulate(&case.name, &["duration=\"4 s\""]);
        let measured = || results.tables.samples.iter().filter(|row| row.t_s > 3.0);
        assert!(measured().count() > 90, "{}", case.name);
        assert!(measured().all(|row| row.cwnd_e2e_bytes.is_some()), "{}", case.name);
    }
}

#[test]
fn the_case_of_the_hosts_own_queue_sees_small_queues() {
    let with = |small_queues: bool| {
        let small_queues = format!("tcp.small_queues={small_queues}");
        simulate("own-host", &["cc=\"new-reno\"", "count=1", &small_queues])
    };
    let rows = compare("own-host", &with(false), &[with(true)]);
    let delay = row(&rows, "smoothed delay, median");
    assert!(delay.emulated.unwrap() < 10.0 && delay.simulated.unwrap() > 50.0, "{delay:?}");
    assert_eq!(verdict(&rows, "smoothed delay, median"), Verdict::Beyond);
}
