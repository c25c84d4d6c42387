//! What a data packet and its share of acknowledgements cost, for windows from small to large and losses from none to many. The cost
//! must not grow with the bytes in flight. An iteration is a packet.
//!
//! Two endpoints over a constant delay and a constant rate, with a fixed window; the loop around them is part of the cost.

use cc::{AckSample, Congestion, Controller, Ctx, Limits, Random, Sent};
use cpu_time::ProcessTime;
use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::SeedableRng;
use std::collections::VecDeque;
use std::time::Duration;
use tcp::{Config, Context, Endpoint, SendBuffer};
use units::{Rate, Span, Time};
use wire::Segment;

/// A window that nothing moves, so that what is measured is the endpoint.
struct Fixed(u32);

impl Controller for Fixed {
    fn on_sent(&mut self, _: &Sent, _: &mut Ctx) {}
    fn on_ack(&mut self, _: &AckSample, _: &mut Ctx) {}
    fn on_congestion(&mut self, _: &Congestion, _: &mut Ctx) {}
    fn on_undo(&mut self, _: &mut Ctx) {}
    fn limits(&self) -> Limits {
        Limits { cwnd: self.0, ssthresh: 2, pacing: None, burst: 2 }
    }
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn state(&self) -> &'static str {
        "fixed"
    }
}

/// Packets on their way, with when they arrive.
type Wire = VecDeque<(Time, Segment)>;

/// Returns what `packets` cost once the window has been sent four times.
fn run(window: u32, loss_every: u64, packets: u64) -> Duration {
    // The rate keeps `window` segments in flight over 20 ms.
    let rtt = Span::from_millis(20);
    let rate = Rate::from_bits_per_sec(u64::from(window) * 1500 * 8 * 50);
    let config = Config {
        receive_buffer: 1 << 30,
        receive_buffer_max: 1 << 30,
        send_buffer: SendBuffer::Fixed(u64::MAX),
        tso: false,
        ..Config::default()
    };
    let mut ends =
        [Endpoint::connect(&config, Fixed(window), 1, Time::ZERO), Endpoint::listen(&config, Fixed(window), 1)];
    let mut wires: [Wire; 2] = [VecDeque::new(), VecDeque::new()];
    let mut random = Random::seed_from_u64(1);
    let mut noise = 1u64;
    let (mut now, mut busy) = (Time::ZERO, Time::ZERO);
    ends[0].write_unlimited();
    let mut touched = 0;
    let (before, mut start) = (4 * u64::from(window), None);
    loop {
        loop {
            let mut cx = Context { now, random: &mut random, log: None };
            let Some(transmit) = ends[touched].poll_transmit(&mut cx) else { break };
            let segment = transmit.segment;
            let mut leaves = now;
            if touched == 0 {
                busy = busy.max(now) + rate.time_for(units::Bytes::new(u64::from(segment.len) + 52));
                leaves = busy;
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if segment.len > 0 && loss_every > 0 && (noise >> 33).is_multiple_of(loss_every) {
                    continue;
                }
            }
            wires[touched].push_back((leaves + rtt / 2, segment));
        }
        while ends[touched].poll_event().is_some() {}
        let sent = ends[0].stats().data_segments_sent;
        if sent >= before {
            let start = start.get_or_insert_with(ProcessTime::now);
            if sent >= before + packets {
                return start.elapsed();
            }
        }
        let arrival = |wire: &Wire| wire.front().map_or(Time::MAX, |&(at, _)| at);
        let timers = [ends[0].poll_timeout().unwrap_or(Time::MAX), ends[1].poll_timeout().unwrap_or(Time::MAX)];
        let arrivals = [arrival(&wires[1]), arrival(&wires[0])];
        touched = usize::from(arrivals[1].min(timers[1]) < arrivals[0].min(timers[0]));
        now = now.max(arrivals[touched].min(timers[touched]));
        let mut cx = Context { now, random: &mut random, log: None };
        if arrivals[touched] <= now {
            let (_, segment) = wires[1 - touched].pop_front().expect("it arrives");
            ends[touched].handle_segment(&segment, false, &mut cx);
        } else {
            ends[touched].handle_timeout(&mut cx);
        }
    }
}

fn packets(c: &mut Criterion) {
    for (loss, loss_every) in [("no loss", 0), ("0.1 % lost", 1000), ("1 % lost", 100), ("5 % lost", 20)] {
        let mut group = c.benchmark_group(loss);
        for window in [20, 200, 2000, 8600, 40_000] {
            group.bench_function(format!("{window} in flight"), |b| {
                b.iter_custom(|packets| run(window, loss_every, packets));
            });
        }
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
