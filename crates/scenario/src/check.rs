//! Checks that types cannot express: ranges, and dependencies between values. Collects all faults.

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
use links::{check_capacity, check_link, check_path, check_pep, check_pep_at, check_reverse};
use traffic::PERIODS;
use units::check::shown;
use units::{Bytes, Span};

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
    if let Some(radio) = &s.radio {
        c.key("radio", |c| radio::check(radio, s, c));
    }
    for (i, link) in s.links.iter().enumerate() {
        c.key("links", |c| c.index(i, |c| check_link(link, c)));
    }
    c.key("hosts", |c| hosts::check(&s.hosts, c));
    c.key("tcp", |c| s.tcp.check(c));
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
    check_path(&d.path(), c);
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
    if let Some(stop) = flow.stop.filter(|stop| *stop > flow.start) {
        let (from, until) = (u128::from(flow.start.as_nanos()) + later, u128::from(stop.as_nanos()));
        if from >= until {
            let message = format!("the last of {} flows would start after their stop, {stop}", flow.count);
            c.key("stagger", |c| c.wrong(message));
        } else if from + u128::from(flow.start_jitter.as_nanos()) > until {
            let message = format!("{} may delay a start beyond the stop, {stop}", flow.start_jitter);
            c.key("start_jitter", |c| c.wrong(message));
        }
    }
    if let Some(repeat) = flow.repeat {
        c.key("repeat", |c| check_repeat(flow, repeat, s.duration, c));
    }
    c.key("traffic", |c| flow.traffic.check(c));
    if let Some(reader) = flow.reader {
        c.key("reader", |c| {
            c.range("reads", reader.reads, PERIODS);
            c.range("pauses", reader.pauses, PERIODS);
            if flow.transport() == Transport::Udp {
                c.wrong("only TCP has a window that a pause closes; remove `reader`");
            }
        });
    }
    c.range("priority", flow.priority, 0..=15);
    c.key("cc", |c| flow.cc.check(c));
    c.key("tcp", |c| flow.tcp.check(c));
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
