//! Results that no simulation gave, but that look like some: a bulk transfer and a page load over a cell with a deep
//! buffer, with a sawtooth, a queue that follows it, and random-looking noise from a fixed sequence.

mod cells;

use std::collections::BTreeMap;

pub(crate) use cells::cells;
use record::tables::{EventRow, FlowRow, LinkRow, QueueRow, SampleRow, TransferRow};
use record::{Distribution, Meta, Point, Results, Tables, Timing, ms};
use serde_json::json;
use units::Span;

const MSS: f64 = 1448.0;

/// Numbers that look random (Knuth's MMIX constants).
struct Noise(u64);

impl Noise {
    /// The next one, 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A sweep over congestion controls and losses, so many runs each, so many samples a run, 60 s long.
pub(crate) fn sweep(title: &str, runs: u32, samples: u32) -> Results {
    let mut points = Vec::new();
    let mut tables = Tables::default();
    for cc in ["cubic", "bbr"] {
        for loss in [0.0, 0.0001, 0.001, 0.01] {
            let point = points.len() as u32;
            let values = [("flow.cc".to_owned(), json!(cc)), ("link.loss".to_owned(), json!(loss))];
            points.push(Point { values: BTreeMap::from(values) });
            for run in 0..runs {
                one_run(&mut tables, point, run, cc, loss, samples);
            }
        }
    }
    finish(title, points, runs, tables)
}

/// One point with one run.
pub(crate) fn single(title: &str, samples: u32) -> Results {
    let mut tables = Tables::default();
    one_run(&mut tables, 0, 0, "cubic", 0.0, samples);
    finish(title, vec![Point::default()], 1, tables)
}

fn finish(title: &str, points: Vec<Point>, runs: u32, tables: Tables) -> Results {
    let simulated_s = 60.0 * (points.len() as f64) * f64::from(runs);
    let scenario = json!({
        "title": title,
        "duration": "60s",
        "link": { "down": { "rate": "35Mbps", "delay": "20ms", "queue": "500 packets" }, "up": { "rate": "10Mbps" } },
        "flow": [{ "name": "download", "type": "bulk" }, { "name": "pages", "type": "page" }],
    });
    let meta =
        Meta { title: title.to_owned(), version: "0.1.0".to_owned(), scenario, points, runs, seed: 7, partial: None };
    let timing = Timing {
        wall_s: Some(1.84),
        cpu_s: 3.5,
        simulated_s,
        events: 91_000_000,
        packets: 11_200_000,
        threads: 2,
        lateness: None,
    };
    Results { meta, timing, tables }
}

fn one_run(tables: &mut Tables, point: u32, run: u32, cc: &str, loss: f64, samples: u32) {
    let mut noise = Noise(u64::from(point) * 1_000 + u64::from(run) + 1);
    let top = if cc == "bbr" { 330_000.0 } else { 900_000.0 };
    let capacity = 35.0 * if cc == "bbr" { 0.97 - loss * 4.0 } else { 1.0 / (1.0 + loss * 900.0) };
    let (mut cwnd, mut dropped, mut retransmitted) = (10.0 * MSS, 0, 0);
    let mut ssthresh = None;
    let mut rtts = Distribution::new();
    let (mut bytes, mut srtt_ms) = (0.0, 45.0);
    let step_s = 60.0 / f64::from(samples);
    for i in 0..samples {
        let t_s = f64::from(i + 1) * step_s;
        cwnd = match ssthresh {
            None => cwnd * (1.0 + 3.0 * step_s),
            Some(_) => cwnd + MSS * 40.0 * step_s,
        };
        let limit = top / (1.0 + loss * if cc == "bbr" { 4.0 } else { 900.0 }) * (0.9 + 0.2 * noise.next());
        if cwnd > limit {
            ssthresh = Some((limit * 0.7) as u64);
            cwnd = limit * 0.7;
            dropped += 3 + (noise.next() * 20.0) as u64;
            retransmitted += 12;
        }
        let goodput_mbps = (cwnd * 8.0 / srtt_ms / 1e3).min(capacity) * (0.94 + 0.06 * noise.next());
        let queue = (cwnd - capacity * 45.0 / 8.0 * 1e3).max(0.0);
        let sojourn_ms = queue * 8.0 / capacity / 1e3;
        srtt_ms = 45.0 + sojourn_ms;
        for _ in 0..20 {
            rtts.record(Span::from_secs_f64((srtt_ms * (0.95 + 0.15 * noise.next())) / 1e3));
        }
        bytes += goodput_mbps * 1e6 / 8.0 * step_s;
        tables.samples.push(&SampleRow {
            point,
            run,
            flow: "download",
            conn: 0,
            t_s,
            goodput_mbps,
            throughput_mbps: None,
            cwnd_bytes: Some(cwnd as u64),
            cwnd_pep_bytes: None,
            cwnd_e2e_bytes: None,
            ssthresh_bytes: ssthresh,
            in_flight_bytes: Some((cwnd * (0.93 + 0.07 * noise.next())) as u64),
            srtt_ms: Some(srtt_ms),
            rtt_ms: (i % 7 != 0).then_some(srtt_ms * 1.02),
            owd_ms: Some(20.0 + sojourn_ms),
            lost: Some(u64::from(i % 97 == 0)),
            rto_ms: Some(srtt_ms + 200.0),
            pacing_mbps: (cc == "bbr").then_some(capacity * 1.25),
            limit: "cwnd",
            state: if ssthresh.is_none() { "slow-start" } else { "congestion-avoidance" },
        });
        tables.queues.push(&QueueRow {
            point,
            run,
            link: "down",
            t_s,
            packets: (queue / MSS) as u64,
            bytes: queue as u64,
            dropped,
            marked: 0,
            served_mbps: goodput_mbps * 1.04,
            capacity_mbps: Some(35.0),
            sojourn_ms: Some(sojourn_ms),
            sojourn_max_ms: Some(1.2 * sojourn_ms),
        });
    }
    tables.push_delays((point, run), ("download", 0), &rtts, &rtts);
    let at = |q| rtts.quantile(q).map(ms);
    let sent = (bytes / MSS) as u64 + retransmitted;
    let bulk = FlowRow {
        point,
        run,
        flow: "download",
        conn: 0,
        transport: "tcp",
        cc: Some(cc),
        from: "server",
        to: "phone",
        start_s: 0.0,
        end_s: None,
        completed: false,
        measured_from_s: 0.0,
        measured_to_s: 60.0,
        bytes: bytes as u64,
        goodput_mbps: bytes as u64 as f64 * 8e-6 / 60.0,
        throughput_mbps: bytes * 8e-6 / 60.0 * 1.04,
        completion_s: None,
        rtt_min_ms: rtts.min().map(ms),
        rtt_p5_ms: at(0.05),
        rtt_p50_ms: at(0.5),
        rtt_mean_ms: rtts.mean().map(ms),
        rtt_p95_ms: at(0.95),
        rtt_p99_ms: at(0.99),
        rtt_max_ms: rtts.max().map(ms),
        owd_p5_ms: at(0.05).map(|x| x - 20.0),
        owd_p25_ms: at(0.25).map(|x| x - 20.0),
        owd_p50_ms: at(0.5).map(|x| x - 20.0),
        owd_p75_ms: at(0.75).map(|x| x - 20.0),
        owd_p95_ms: at(0.95).map(|x| x - 20.0),
        segments_sent: Some(sent),
        retransmitted: Some(retransmitted),
        retrans_fast: Some(retransmitted),
        retrans_rto: Some(0),
        retrans_tlp: Some(0),
        retrans_control: Some(0),
        rtos: Some(0),
        undos: Some(0),
        dup_acks: Some(retransmitted * 9),
        max_dup_acks: Some(9),
        ce_marks: Some(0),
        lost_packets: Some(dropped),
        jitter_ms: None,
        limited_app: Some(0.0),
        limited_cwnd: Some(if cc == "bbr" { 0.12 } else { 0.86 }),
        limited_rwnd: Some(if cc == "bbr" { 0.0 } else { 0.125 }),
        limited_pacing: Some(if cc == "bbr" { 0.865 } else { 0.0 }),
        limited_sndbuf: Some(0.0),
        limited_other: Some(0.015),
        mean_cwnd_bytes: Some(top * 0.8),
        max_cwnd_bytes: Some(top as u64),
        mean_in_flight_bytes: Some(top * 0.77),
        max_in_flight_bytes: Some(top as u64),
        teid: None,
    };
    tables.flows.push(&bulk);
    for index in 0..30 {
        let start_s = f64::from(index) * 2.0;
        let completion_s = 0.3 + srtt_ms / 1e3 * (3.0 + 9.0 * noise.next() * noise.next());
        let completed = Some(completion_s);
        let bytes = 120_000;
        tables.transfers.push(&TransferRow {
            point,
            run,
            flow: "pages",
            conn: 1,
            index,
            start_s,
            completion_s: completed,
            bytes,
        });
        if index < 6 {
            tables.flows.push(&FlowRow {
                flow: "pages",
                conn: 1 + index,
                start_s,
                end_s: Some(start_s + completion_s),
                completed: true,
                measured_from_s: start_s,
                measured_to_s: start_s + completion_s,
                bytes,
                goodput_mbps: 0.96 / completion_s,
                throughput_mbps: 1.0 / completion_s,
                completion_s: completed,
                segments_sent: Some(83),
                retransmitted: Some(0),
                retrans_fast: Some(0),
                limited_app: Some(0.55),
                limited_cwnd: Some(0.4),
                limited_rwnd: Some(0.0),
                limited_pacing: Some(0.0),
                limited_sndbuf: Some(0.0),
                limited_other: Some(0.05),
                ..bulk
            });
            tables.push_delays((point, run), ("pages", 1 + index), &rtts, &Distribution::new());
        }
    }
    tables.links.push(&LinkRow {
        point,
        run,
        link: "down",
        packets_in: sent,
        packets_out: sent - dropped,
        bytes_out: bytes as u64,
        dropped_overflow: dropped,
        dropped_control: 0,
        dropped_loss: (sent as f64 * loss) as u64,
        marked: 0,
        utilisation: capacity / 35.0 * 0.98,
        sojourn_p50_ms: at(0.5).map(|x| (x - 45.0).max(0.0)),
        sojourn_p95_ms: at(0.95).map(|x| (x - 45.0).max(0.0)),
        sojourn_p99_ms: at(0.99).map(|x| (x - 45.0).max(0.0)),
    });
    tables.events.push(&EventRow {
        point,
        run,
        t_ns: 20_000_000,
        kind: "drop",
        flow: "download",
        conn: 0,
        link: "down",
        towards: "to",
        seq: 5_000_000_000,
        ack: 0,
        len: 1448,
        detail: "overflow",
    });
}
