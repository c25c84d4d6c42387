//! What decisions cost at 10,000 flows. An iteration is a flow and a tick.

use cpu_time::ProcessTime;
use criterion::{Criterion, criterion_group, criterion_main};
use rapid::{Best, Config, Control, Policy, Published, Rapid, Sample};
use rnis::{RadioReport, UeId};
use std::time::Duration;
use units::{Span, Time};

const FLOWS: u64 = 10_000;
const TICK: Span = Span::from_millis(1);

/// A report on a UE that decoded what a cell of 100 blocks carries in a millisecond.
fn report(time: Time) -> RadioReport {
    RadioReport {
        time,
        interval: TICK,
        cell: 1,
        ue: UeId::new(61),
        n_prb: 100,
        slots: 1,
        cell_prbs: Some(90),
        active_ues: Some(1),
        prbs: Some(90),
        acked_bits: 60_000,
        blocks: 2,
        failed: 0,
        mcs: None,
        layers: None,
        cqi: None,
        bits_per_prb: Some(700.0),
        queue_bytes: Some(10_000),
    }
}

/// Returns what `ticks` cost of the flows of `ues` UEs, of which each second one is application-limited.
fn run(policy: Policy, ues: u64, ticks: u64) -> Duration {
    let mut rapid = Rapid::new(Config { policy, tick: TICK, ..Config::default() });
    (0..FLOWS).for_each(|n| rapid.open(n, n % ues, 1448, Time::ZERO));
    let (mut spent, mut decided) = (Duration::ZERO, 0_u64);
    for tick in 1..=ticks {
        let now = Time::ZERO + TICK * tick;
        (0..ues).for_each(|ue| rapid.on_report(ue, &report(now), now));
        let start = ProcessTime::now();
        rapid.update(
            now,
            &mut |flow| {
                let bytes = tick * if flow % 2 == 0 { 7_500 } else { 100 };
                Sample {
                    arrived: bytes + 20_000,
                    delivered: bytes,
                    in_flight: 15_000,
                    wan_rtt: Some(Span::from_millis(20)),
                    wan_min_rtt: Some(Span::from_millis(20)),
                    wan_receive_rtt: None,
                    ran_rtt: Some(Span::from_millis(12)),
                    ran_min_rtt: Some(Span::from_millis(8)),
                }
            },
            &mut |_, decision| decided += u64::from(decision.rate.is_some()),
        );
        spent += start.elapsed();
    }
    assert!(decided > 0, "nothing was decided");
    spent
}

fn decisions(c: &mut Criterion) {
    for (name, policy) in [
        ("best", Policy::Best(Best::default())),
        ("published", Policy::Published(Published::default())),
        ("milli-proxy", Policy::MilliProxy),
    ] {
        let mut group = c.benchmark_group(name);
        for ues in [1, 100, FLOWS] {
            group.bench_function(format!("{ues} UEs"), |b| {
                b.iter_custom(|times| {
                    let ticks = times.div_ceil(FLOWS).max(200);
                    run(policy, ues, ticks).mul_f64(times as f64 / (FLOWS * ticks) as f64)
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = decisions
}
criterion_main!(benches);
