//! What a data packet and its share of acknowledgements cost, for windows from small to large and losses from none to many:
//! `cargo run --release -p tcp --example endpoint_cost [PACKETS]`. The cost must not grow with the bytes in flight.
//!
//! Two endpoints over a constant delay and a constant rate, with a fixed window; the loop around them is part of the cost.
#![allow(clippy::disallowed_methods, reason = "it measures the processor's time")]

use cc::{AckSample, Congestion, Controller, Ctx, Limits, Random, Sent};
use rand_core::SeedableRng;
use std::collections::VecDeque;
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

/// Nanoseconds that this process has run, whatever else the machine does (Linux).
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a Linux machine");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds first")
}

/// Packets on their way, with when they arrive.
type Wire = VecDeque<(Time, Segment)>;

fn run(window: u32, loss_every: u64, packets: u64) -> (f64, u64, f64) {
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
    let (mut start, mut counted) = (cpu(), 0);
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
        if counted == 0 && ends[0].stats().data_segments_sent > packets / 10 {
            (start, counted) = (cpu(), ends[0].stats().data_segments_sent);
        }
        if ends[0].stats().data_segments_sent >= packets {
            break;
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
    let stats = ends[0].stats();
    let sent = stats.data_segments_sent - counted;
    let share = ends[1].stats().acks_sent as f64 / stats.data_segments_sent as f64;
    ((cpu() - start) as f64 / sent as f64, stats.timeouts, share)
}

fn main() {
    let packets = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    println!("an endpoint at rest: {} bytes", size_of::<Endpoint<cc::AnyController>>());
    println!("{:>8} {:>10} {:>14} {:>10} {:>10}", "window", "loss", "ns per packet", "time-outs", "ACKs each");
    for loss_every in [0, 1000, 100, 20] {
        for window in [20, 200, 2000, 8600, 40_000] {
            let (ns, timeouts, acks) = run(window, loss_every, packets);
            let loss = if loss_every == 0 { 0.0 } else { 1.0 / loss_every as f64 };
            println!("{window:>8} {loss:>10} {ns:>14.1} {timeouts:>10} {acks:>10.2}");
        }
    }
}
