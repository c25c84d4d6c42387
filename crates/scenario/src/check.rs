//! Checks that types cannot express: ranges, and dependencies between values. Collects all faults.

mod configured;
mod drx;
mod hosts;
mod links;
mod lte;
mod nr;
mod packets;
pub(crate) mod proxy;
mod radio;
mod secondary;

use crate::faults::*;
use crate::*;
use core::ops::RangeInclusive;
use links::{
    check_capacity, check_link, check_pep, check_pep_at, check_reordering, check_reverse, check_shared, check_steps,
};
use units::check::shown;
use units::{Bytes, Span};

/// Maximum mean number of concurrent bursts, so that each can have its own timer.
const MAX_BURSTS: f64 = 100_000.0;

/// Whether a scenario needs flows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flows {
    /// The scenario is simulated, so nothing would happen without flows.
    Needed,
    /// Real hosts use the scenario's network.
    Optional,
}

/// Checks everything but the network as a whole, which [`crate::topology`] checks.
pub(crate) fn scenario(s: &Scenario, needed: Flows, c: &mut Check) {
    c.positive_span("duration", s.duration);
    if s.warmup >= s.duration && s.duration > Span::ZERO {
        c.key("warmup", |c| c.wrong(format!("{} must be shorter than the duration, {}", s.warmup, s.duration)));
    }
    c.range("runs", s.runs, 1..=10_000);
    if let Samples::Every { interval } = s.record.samples {
        c.key("record", |c| c.range("samples", interval, Span::from_micros(1)..=MAX_SPAN));
    }
    if let Some(dumbbell) = &s.dumbbell {
        c.key("dumbbell", |c| check_dumbbell(dumbbell, c));
    }
    if let Some(lte) = &s.lte {
        c.key("lte", |c| lte::check(lte, s, c));
    }
    if let Some(nr) = &s.nr {
        c.key("nr", |c| nr::check(nr, s, c));
    }
    for (i, link) in s.links.iter().enumerate() {
        c.key("links", |c| c.index(i, |c| check_link(link, c)));
    }
    c.key("hosts", |c| hosts::check(&s.hosts, c));
    c.key("tcp", |c| check_tcp(&s.tcp, c));
    if s.flows.is_empty() && needed == Flows::Needed {
        c.key("flows", |c| c.wrong("the scenario has no flows; add [[flows]]"));
    }
    let mut flows = 0;
    for (i, flow) in s.flows.iter().enumerate() {
        c.key("flows", |c| {
            c.index(i, |c| {
                check_flow(flow, s, c);
                packets::check_flow(flow, s, c);
            });
        });
        flows += u64::from(flow.count).saturating_mul(flow.repeat.map_or(1, |repeat| repeat.count.into()));
        if flows > MAX_FLOWS {
            c.key("flows", |c| c.index(i, |c| c.wrong(format!("more than {MAX_FLOWS} flows"))));
            break;
        }
    }
}

fn check_dumbbell(d: &Dumbbell, c: &mut Check) {
    check_capacity("rate", &d.rate, c);
    c.span("rtt", d.rtt);
    check_shared(d.jitter.as_ref(), d.loss.as_ref(), &d.queue, d.overhead, c);
    check_reordering(d.reordering, c);
    check_reverse(d.reverse.as_ref(), c);
    if let Some(rate) = &d.access_rate {
        check_capacity("access_rate", rate, c);
    }
    for (key, hosts) in [("senders", &d.senders), ("receivers", &d.receivers)] {
        c.key(key, |c| {
            if hosts.is_empty() {
                c.wrong("at least one is required");
            }
        });
        for host in hosts {
            c.name(key, host);
        }
    }
}

fn check_flow(flow: &Flow, s: &Scenario, c: &mut Check) {
    if !flow.name.is_empty() {
        c.name("name", &flow.name);
    }
    c.range("count", flow.count, 1..=MAX_FLOWS as u32);
    if flow.start >= s.duration && s.duration > Span::ZERO {
        c.key("start", |c| c.wrong(format!("{} must be before the end, {}", flow.start, s.duration)));
    }
    if let Some(stop) = flow.stop
        && stop <= flow.start
    {
        c.key("stop", |c| c.wrong(format!("{stop} must be later than the start, {}", flow.start)));
    }
    let later = u128::from(flow.stagger.as_nanos()) * u128::from(flow.count.saturating_sub(1));
    if flow.stagger > Span::ZERO && u128::from(flow.start.as_nanos()) + later >= u128::from(s.duration.as_nanos()) {
        let message = format!("the last of {} flows would start after the end, {}", flow.count, s.duration);
        c.key("stagger", |c| c.wrong(message));
    }
    c.span("start_jitter", flow.start_jitter);
    if let Some(repeat) = flow.repeat {
        c.key("repeat", |c| check_repeat(flow, repeat, s.duration, c));
    }
    c.key("traffic", |c| check_traffic(&flow.traffic, c));
    if let Some(reader) = flow.reader {
        c.key("reader", |c| {
            c.range("reads", reader.reads, SHORTEST..=MAX_SPAN);
            c.range("pauses", reader.pauses, SHORTEST..=MAX_SPAN);
            if flow.transport() == Transport::Udp {
                c.wrong("only TCP has a window that a pause closes; remove `reader`");
            }
        });
    }
    c.range("priority", flow.priority, 0..=15);
    c.key("cc", |c| flow.cc.check(c));
    c.key("tcp", |c| check_tcp(&flow.tcp, c));
}

fn check_repeat(flow: &Flow, repeat: Repeat, duration: Span, c: &mut Check) {
    c.range("count", repeat.count, 1..=topology::MAX_REPEATS);
    c.range("every", repeat.every, Span::from_nanos(1)..=MAX_SPAN);
    let later = u128::from(repeat.every.as_nanos()) * u128::from(repeat.count.saturating_sub(1));
    if u128::from(flow.start.as_nanos()) + later >= u128::from(duration.as_nanos()) {
        c.key("count", |c| {
            c.wrong(format!("the last of {} flows would start after the end, {duration}", repeat.count));
        });
    }
}

/// The shortest period of an application that alternates: a run would spend all its time on shorter ones.
const SHORTEST: Span = Span::from_micros(10);

fn check_tcp(tcp: &Tcp, c: &mut Check) {
    c.range("mss", tcp.mss, 64..=65_483);
    c.range("initial_window", tcp.initial_window, 1..=10_000);
    c.range("min_rto", tcp.min_rto, Span::from_millis(1)..=Span::from_secs(120));
    let segment = Bytes::new(u64::from(tcp.mss.min(65_483)));
    c.range("send_buffer", tcp.send_buffer, segment..=MAX_BUFFER);
    c.range("receive_buffer", tcp.receive_buffer, segment..=MAX_BUFFER);
    c.range("max_header", tcp.max_header, 128..=1024);
    c.range("window_clamp", tcp.window_clamp.unwrap_or(segment), segment..=MAX_BUFFER);
}

fn check_traffic(traffic: &Traffic, c: &mut Check) {
    // From the IP and UDP headers with one byte of payload to the largest IP packet.
    let packets = Bytes::new(29)..=Bytes::new(65_535);
    match traffic {
        Traffic::Bulk => {}
        Traffic::Transfer { size } => c.size("size", *size),
        Traffic::ShortFlows { size, interval, count } => {
            check_size("size", size, c);
            check_gap("interval", interval, Span::from_nanos(1), c);
            c.range("count", u64::from(count.unwrap_or(1)), 1..=MAX_FLOWS);
        }
        Traffic::OnOff { on, off, rate } => {
            check_gap("on", on, SHORTEST, c);
            check_gap("off", off, SHORTEST, c);
            if let Some(rate) = rate {
                c.rate("rate", *rate);
            }
        }
        Traffic::Steps { steps } => check_steps(steps, c),
        Traffic::Pages { objects, object_size, connections, request, think, count } => {
            c.range("objects", *objects, 1..=10_000);
            check_size("object_size", object_size, c);
            c.range("connections", *connections, 1..=1_000);
            c.size("request", *request);
            check_gap("think", think, Span::ZERO, c);
            c.range("count", u64::from(count.unwrap_or(1)), 1..=MAX_FLOWS);
        }
        Traffic::Cbr { rate, packet } => {
            c.rate("rate", *rate);
            c.range("packet", *packet, packets);
        }
        Traffic::Ppbp { burst_rate, mean_burst, arrival_rate, hurst, packet } => {
            c.rate("burst_rate", *burst_rate);
            c.positive_span("mean_burst", *mean_burst);
            c.positive("arrival_rate", *arrival_rate, 0.0, MAX_BURSTS / mean_burst.as_secs_f64().max(0.1));
            c.range("hurst", *hurst, Range::between(0.5, 1.0));
            c.range("packet", *packet, packets);
        }
    }
}

fn check_size(key: &str, size: &Size, c: &mut Check) {
    match size {
        Size::Constant { size } => c.size(key, *size),
        Size::Exponential { mean } => c.key(key, |c| c.size("mean", *mean)),
        Size::Pareto { mean, shape } => c.key(key, |c| {
            c.size("mean", *mean);
            check_shape(*shape, c);
        }),
    }
}

fn check_gap(key: &str, gap: &Gap, least: Span, c: &mut Check) {
    match gap {
        Gap::Constant { time } => c.range(key, *time, least..=MAX_SPAN),
        Gap::Exponential { mean } => c.key(key, |c| c.range("mean", *mean, least..=MAX_SPAN)),
        Gap::Pareto { mean, shape } => c.key(key, |c| {
            c.range("mean", *mean, least..=MAX_SPAN);
            check_shape(*shape, c);
        }),
    }
}

fn check_shape(shape: f64, c: &mut Check) {
    // A Pareto distribution with a shape of 1 or less has no mean.
    c.positive("shape", shape, 1.0, 100.0);
}
