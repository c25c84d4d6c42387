//! UEs that go to and fro between two cells, on top of the made-up flows.

use std::f64::consts::TAU;

use record::tables::{MobilityRow, RadioRow, TransmissionRow, UeRow};
use record::{Point, Results, Tables};
use serde_json::json;

use super::{Noise, finish, one_run};

const DURATION_S: f64 = 60.0;
const CELLS: [&str; 2] = ["west", "east"];
const PRBS: f64 = 50.0;

/// A sweep over schedulers, so many runs each, so many samples a run, with so many UEs.
pub(crate) fn cells(title: &str, runs: u32, samples: u32, ues: u32) -> Results {
    let mut points = Vec::new();
    let mut tables = Tables::default();
    for scheduler in ["proportional-fair", "round-robin"] {
        let point = points.len() as u32;
        points.push(Point { values: [("lte.mac.scheduler".to_owned(), json!(scheduler))].into() });
        for run in 0..runs {
            one_run(&mut tables, point, run, "cubic", 0.0, samples);
            for ue in 0..ues {
                walk(&mut tables, point, run, ue, samples, f64::from(ues));
            }
        }
    }
    finish(title, points, runs, tables)
}

/// A UE's way: a swing between the cells, the later UEs' slower and farther.
fn walk(tables: &mut Tables, point: u32, run: u32, index: u32, samples: u32, ues: f64) {
    let mut noise = Noise(u64::from(point) * 7_919 + u64::from(run) * 131 + u64::from(index) + 1);
    let name = format!("ue-{}", index + 1);
    let ue = name.as_str();
    let step_s = DURATION_S / f64::from(samples);
    let mut serving = index as usize % 2;
    let (mut handovers, mut failures, mut lost_s) = (0, 0, 0.0);
    let (mut mbits, mut prbs, mut queue) = ([0.0; 2], [0.0; 2], 0.0);
    for i in 0..samples {
        let t_s = f64::from(i + 1) * step_s;
        let swing = (t_s * TAU / (25.0 + 9.0 * f64::from(index)) + f64::from(index)).sin();
        let rsrp = [-92.0 - 14.0 * swing + 3.0 * noise.next(), -92.0 + 14.0 * swing + 3.0 * noise.next()];
        if rsrp[1 - serving] > rsrp[serving] + 4.0 {
            serving = 1 - serving;
            let failed = (handovers, failures, index) == (1, 0, 1);
            let mut push = |t_s, event, interruption_ms| {
                let cell = CELLS[serving];
                tables.mobility.push(&MobilityRow { point, run, t_s, ue, event, cell, interruption_ms });
            };
            push(t_s, "triggered", None);
            push(t_s + 0.02, "left", None);
            if failed {
                push(t_s + 0.12, "failed", None);
            }
            let interruption_ms = if failed { 612.0 } else { 38.0 + 10.0 * noise.next() };
            push(t_s + 0.02 + interruption_ms / 1e3, "connected", Some(interruption_ms));
            lost_s = if failed { 0.6 } else { 0.0 };
            (handovers, failures) = if failed { (handovers, failures + 1) } else { (handovers + 1, failures) };
        }
        lost_s -= step_s;
        let connected = lost_s <= 0.0;
        let sinr_db = rsrp[serving] + 98.0 + 4.0 * (noise.next() - 0.5);
        let mcs = (sinr_db * 1.1 + 4.0).clamp(0.0, 28.0).floor();
        let share = if connected { (0.85 + 0.15 * noise.next()) / ues } else { 0.0 };
        let dl_mbps = mcs * 1.3 * share;
        queue = (queue + (7.5 - dl_mbps) * 1e5 * step_s).clamp(0.0, 750_000.0);
        let busy = connected && i > 3;
        mbits[0] += dl_mbps * step_s;
        mbits[1] += dl_mbps * 0.04 * step_s;
        prbs[0] += share * PRBS * 1e3 * step_s;
        prbs[1] += share * 0.1 * PRBS * 1e3 * step_s;
        tables.radio.push(&RadioRow {
            point,
            run,
            ue,
            t_s,
            cell: if connected { CELLS[serving] } else { "" },
            rsrp_dbm: rsrp[serving],
            rsrq_db: -11.0 + 0.1 * sinr_db,
            sinr_db: connected.then_some(sinr_db),
            cqi: (mcs / 2.0 + 1.0) as u32,
            dl_mcs: busy.then_some(mcs),
            ul_mcs: busy.then_some((mcs * 0.8).min(20.0)),
            dl_mbps,
            ul_mbps: dl_mbps * 0.04,
            dl_prbs: Some(share),
            ul_prbs: share * 0.1,
            // As if another carrier of half the width were there for others.
            dl_cell_prbs: Some(share / 1.5),
            dl_queue_bytes: Some(queue as u64),
            ul_queue_bytes: (noise.next() * 2_500.0) as u64,
            host_queue_bytes: if noise.next() > 0.9 { 12_000 } else { 0 },
            dl_above_bytes: 0,
            dl_limit_bytes: None,
            ul_limit_bytes: None,
            dl_bler: busy.then_some(0.08 + 0.04 * noise.next()),
            ul_bler: None,
            dl_buffer_bytes: 0,
            ul_buffer_bytes: 0,
            los: true,
            cell_beam: None,
            ue_beam: None,
            blocked_db: 0.0,
            harq_retx: (noise.next() * 9.0) as u64,
        });
        if i % 50 == 0 {
            tables.transmissions.push(&TransmissionRow {
                point,
                run,
                t_ns: (t_s * 1e9) as u64,
                ue,
                rnti: 61 + index,
                cell: CELLS[serving],
                direction: "downlink",
                process: i % 8,
                attempt: 1,
                decoded: noise.next() > 0.1,
                mcs: mcs as u32,
                layers: 1,
                cqi: (mcs / 2.0 + 1.0) as u32,
                sinr_db,
                first_prb: 0,
                prbs: (share * PRBS) as u32,
                bits: (dl_mbps * 1e3) as u32,
                padding_bytes: 0,
                queued_bytes: queue as u64,
            });
        }
    }
    let loaded = f64::from(index) * 11.0;
    for (direction, i) in [("downlink", 0), ("uplink", 1)] {
        let blocks = (DURATION_S * if i == 0 { 700.0 } else { 90.0 }) as u64;
        let both = |n: u64| if i == 1 { n } else { 0 };
        tables.ues.push(&UeRow {
            point,
            run,
            ue,
            direction,
            measured_s: DURATION_S,
            blocks,
            mbits: mbits[i],
            retransmissions: blocks / 9,
            block_error_rate: 0.07 + 0.04 * noise.next(),
            residual_errors: blocks / 4_000,
            prbs: prbs[i] as u64,
            utilisation: Some(prbs[i] / (DURATION_S * 1e3 * PRBS)),
            starved_blocks: 0,
            padding_bytes: blocks * if i == 0 { 12 } else { 160 },
            rlc_retx_pdus: blocks / 3_900,
            rlc_retx_bytes: blocks / 3_900 * 1_500,
            scheduling_requests: both(2_310),
            random_accesses: both(handovers),
            handovers: both(handovers),
            handover_failures: both(failures),
            link_failures: both(u64::from(index == 2)),
            asleep: 0.0,
            core_ms: 12.5,
            queue_ms: if i == 0 { 24.0 + loaded } else { 9.3 },
            air_ms: if i == 0 { 1.4 + noise.next() } else { 3.1 },
            harq_ms: if i == 0 { 2.0 + noise.next() } else { 5.2 },
            rlc_ms: if i == 0 { 0.6 } else { 1.1 },
            packets: blocks * 2,
            reported_s: 0.0,
            report_bytes: 0,
        });
    }
}
