//! What the types cannot say: ranges, and what one value means for another. All faults are collected.

mod lte;

use crate::error::did_you_mean;
use crate::tree::Step;
use crate::*;
use core::fmt::Display;
use core::ops::RangeInclusive;
use units::{Bytes, Rate, Span};

/// Most flows, counting each flow's `count`.
pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Most UEs, counting each one's `count`.
pub(crate) const MAX_UES: u64 = 10_000;
/// Most one-way links.
pub(crate) const MAX_LINKS: usize = 10_000;

// Far beyond what anybody studies, and small enough that no sum of them overflows 64 bits.
const MAX_SPAN: Span = Span::from_secs(1000 * 3600);
const MAX_RATE: Rate = Rate::from_mbps(10_000_000);
const MAX_BYTES: Bytes = Bytes::new(1_000_000_000_000_000);
/// The largest window that window scaling can announce (RFC 7323, 2.3).
const MAX_BUFFER: Bytes = Bytes::new(1 << 30);

const NO_RATE: &str = "a link without a `rate` is infinitely fast and never queues; give it a rate";

/// Most bursts at a time in the mean, so that each can have its timer.
const MAX_BURSTS: f64 = 100_000.0;

/// Collects faults under the path of what is being looked at.
#[derive(Default)]
pub(crate) struct Check {
    path: Vec<Step>,
    pub(crate) faults: Vec<(Vec<Step>, String)>,
}

impl Check {
    /// Looks at what is inside `key`.
    pub(crate) fn key<R>(&mut self, key: &str, look: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Key(key.to_owned()), look)
    }

    /// Looks at the element `index` of the array at hand.
    pub(crate) fn index<R>(&mut self, index: usize, look: impl FnOnce(&mut Check) -> R) -> R {
        self.step(Step::Index(index), look)
    }

    fn step<R>(&mut self, step: Step, look: impl FnOnce(&mut Check) -> R) -> R {
        self.path.push(step);
        let result = look(self);
        self.path.pop();
        result
    }

    /// The value at hand is wrong.
    pub(crate) fn wrong(&mut self, message: impl Into<String>) {
        self.faults.push((self.path.clone(), message.into()));
    }

    fn range<T: PartialOrd + Display + Copy>(&mut self, key: &str, value: T, range: RangeInclusive<T>) {
        if !range.contains(&value) {
            self.key(key, |c| c.within(value, range));
        }
    }

    /// The value at hand is in the range.
    fn within<T: PartialOrd + Display + Copy>(&mut self, value: T, range: RangeInclusive<T>) {
        if !range.contains(&value) {
            let (low, high) = range.into_inner();
            self.wrong(format!("{value} is out of range: from {low} to {high}"));
        }
    }

    /// More than the lowest, and at most the highest.
    fn positive<T: PartialOrd + Display + Copy>(&mut self, key: &str, value: T, zero: T, most: T) {
        if !(value > zero && value <= most) {
            self.key(key, |c| c.wrong(format!("{value} is out of range: more than {zero}, at most {most}")));
        }
    }

    fn span(&mut self, key: &str, value: Span) {
        self.range(key, value, Span::ZERO..=MAX_SPAN);
    }

    fn positive_span(&mut self, key: &str, value: Span) {
        self.positive(key, value, Span::ZERO, MAX_SPAN);
    }

    fn rate(&mut self, key: &str, value: Rate) {
        self.positive(key, value, Rate::default(), MAX_RATE);
    }

    fn size(&mut self, key: &str, value: Bytes) {
        self.positive(key, value, Bytes::ZERO, MAX_BYTES);
    }

    fn probability(&mut self, key: &str, value: f64) {
        self.range(key, value, 0.0..=1.0);
    }

    fn name(&mut self, key: &str, name: &str) {
        self.key(key, |c| c.is_name(name));
    }

    /// The value at hand is a name.
    fn is_name(&mut self, name: &str) {
        let fit = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | ' ');
        if name.is_empty() || name.len() > 100 || !name.chars().all(fit) {
            let right = "a name has 1 to 100 letters, digits, spaces, or - _ . :";
            self.wrong(format!("`{name}` is no name; {right}"));
        }
    }
}

/// Whether a scenario is of any use without flows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flows {
    /// It is simulated, and nothing would happen.
    Needed,
    /// Real hosts use its network.
    Optional,
}

/// Everything but the network as a whole, which [`crate::topology`] sees to.
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
        c.key("lte", |c| lte::check(lte, c));
    }
    for (i, link) in s.links.iter().enumerate() {
        c.key("links", |c| c.index(i, |c| check_link(link, c)));
    }
    c.key("tcp", |c| check_tcp(&s.tcp, c));
    if s.flows.is_empty() && needed == Flows::Needed {
        c.key("flows", |c| c.wrong("there is no flow; add [[flows]]"));
    }
    let mut flows = 0;
    for (i, flow) in s.flows.iter().enumerate() {
        c.key("flows", |c| c.index(i, |c| check_flow(flow, s, c)));
        flows += u64::from(flow.count);
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
    check_reverse(d.reverse.as_ref(), c);
    if let Some(rate) = &d.access_rate {
        check_capacity("access_rate", rate, c);
    }
    for (key, hosts) in [("senders", &d.senders), ("receivers", &d.receivers)] {
        c.key(key, |c| {
            if hosts.is_empty() {
                c.wrong("there must be at least one");
            }
        });
        for host in hosts {
            c.name(key, host);
        }
    }
}

fn check_link(link: &Link, c: &mut Check) {
    for (key, name) in [("name", &link.name), ("from", &link.from), ("to", &link.to)] {
        c.name(key, name);
    }
    if link.from == link.to {
        c.key("to", |c| c.wrong(format!("a link from `{}` to itself", link.from)));
    }
    match &link.rate {
        Some(rate) => check_capacity("rate", rate, c),
        None if link.queue != Queue::default() => {
            c.key("queue", |c| c.wrong(NO_RATE));
        }
        None => {}
    }
    c.span("delay", link.delay);
    check_pep(link.pep, link.pep_report_loss, c);
    check_shared(link.jitter.as_ref(), link.loss.as_ref(), &link.queue, link.overhead, c);
    let reverse_queues = link.reverse.as_ref().is_some_and(|r| r.queue.is_some() && r.rate.is_none());
    if reverse_queues && link.rate.is_none() {
        c.key("reverse", |c| c.key("queue", |c| c.wrong(NO_RATE)));
    }
    if link.reverse.is_some() && !link.duplex {
        c.key("reverse", |c| c.wrong("this link is not duplex; remove `reverse` or `duplex = false`"));
    }
    check_reverse(link.reverse.as_ref(), c);
}

fn check_pep(pep: bool, report_loss: f64, c: &mut Check) {
    c.probability("pep_report_loss", report_loss);
    if report_loss > 0.0 && !pep {
        c.key("pep_report_loss", |c| c.wrong("there is no PEP here; add `pep = true`"));
    }
}

fn check_reverse(reverse: Option<&Reverse>, c: &mut Check) {
    let Some(r) = reverse else { return };
    c.key("reverse", |c| {
        if let Some(rate) = &r.rate {
            check_capacity("rate", rate, c);
        }
        c.span("delay", r.delay.unwrap_or_default());
        let queue = r.queue.clone().unwrap_or_default();
        check_shared(r.jitter.as_ref(), r.loss.as_ref(), &queue, r.overhead.unwrap_or_default(), c);
    });
}

fn check_shared(jitter: Option<&Jitter>, loss: Option<&Loss>, queue: &Queue, overhead: Bytes, c: &mut Check) {
    match jitter {
        Some(Jitter::Uniform { max }) => c.span("jitter", *max),
        Some(Jitter::HalfNormal { sigma }) => c.key("jitter", |c| c.span("sigma", *sigma)),
        None => {}
    }
    match loss {
        Some(Loss::Random { probability }) => c.probability("loss", *probability),
        Some(Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }) => c.key("loss", |c| {
            c.probability("good_to_bad", *good_to_bad);
            c.probability("bad_to_good", *bad_to_good);
            c.probability("loss_good", *loss_good);
            c.probability("loss_bad", *loss_bad);
        }),
        None => {}
    }
    c.key("queue", |c| check_queue(queue, c));
    c.range("overhead", overhead, Bytes::ZERO..=Bytes::new(65_535));
}

fn check_capacity(key: &str, capacity: &Capacity, c: &mut Check) {
    if let Capacity::Constant { rate } = capacity {
        return c.rate(key, *rate);
    }
    c.key(key, |c| match capacity {
        Capacity::Constant { .. } => {}
        Capacity::Steps { steps } => c.key("steps", |c| {
            if steps.first().is_none_or(|(at, _)| *at != Span::ZERO) {
                c.wrong("the first step must be at \"0 s\"");
            }
            if steps.iter().all(|(_, rate)| *rate == Rate::default()) {
                c.wrong("at least one rate must be more than 0");
            }
            for (i, (_, rate)) in steps.iter().enumerate() {
                if *rate > MAX_RATE {
                    c.index(i, |c| c.wrong(format!("{rate} is out of range: at most {MAX_RATE}")));
                }
            }
            for (i, pair) in steps.windows(2).enumerate() {
                if pair[0].0 >= pair[1].0 {
                    let message = format!("{} must be later than the step before it, {}", pair[1].0, pair[0].0);
                    c.index(i + 1, |c| c.wrong(message));
                }
            }
        }),
        Capacity::Trace { file, offset, .. } => {
            if file.is_empty() {
                c.key("file", |c| c.wrong("the name of a file is needed"));
            }
            c.range("offset", offset.unwrap_or_default(), Span::ZERO..=MAX_SPAN);
        }
        Capacity::Synthetic { mean, peak, spread, correlation, outage_every, outage } => {
            c.rate("mean", *mean);
            c.range("peak", *peak, *mean..=MAX_RATE);
            c.range("spread", *spread, 0.0..=3.0);
            c.positive_span("correlation", *correlation);
            c.positive_span("outage_every", outage_every.unwrap_or(MAX_SPAN));
            c.range("outage", *outage, Span::from_millis(1)..=MAX_SPAN);
        }
    });
}

fn check_queue(queue: &Queue, c: &mut Check) {
    let packets_range = 1..=1_000_000_000;
    let check_codel = |target: Span, interval: Span, ce_threshold: Option<Span>, c: &mut Check| {
        c.positive_span("target", target);
        c.positive_span("interval", interval);
        if let Some(threshold) = ce_threshold {
            c.span("ce_threshold", threshold);
        }
    };
    let check_fair = |queues: u32, quantum: Bytes, c: &mut Check| {
        c.range("queues", queues, 1..=65_536);
        c.range("quantum", quantum, Bytes::new(1)..=Bytes::new(1 << 20));
    };
    match queue {
        Queue::DropTail { packets, bytes, .. } => {
            c.range("packets", packets.unwrap_or(1), packets_range);
            c.size("bytes", bytes.unwrap_or(Bytes::new(1)));
        }
        Queue::PfifoFast { packets } => c.range("packets", *packets, packets_range),
        Queue::Codel { target, interval, packets, ecn: _, ce_threshold } => {
            check_codel(*target, *interval, *ce_threshold, c);
            c.range("packets", *packets, packets_range);
        }
        Queue::Fq { packets, queues, quantum } => {
            c.range("packets", *packets, packets_range);
            check_fair(*queues, *quantum, c);
        }
        Queue::FqCodel { target, interval, packets, bytes, queues, quantum, ecn: _, ce_threshold } => {
            check_codel(*target, *interval, *ce_threshold, c);
            c.range("packets", *packets, packets_range);
            c.size("bytes", *bytes);
            check_fair(*queues, *quantum, c);
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
    c.key("traffic", |c| check_traffic(&flow.traffic, c));
    c.range("priority", flow.priority, 0..=15);
    if let Cc::Scalable { step, decrease } | Cc::Mdcc { step, decrease, .. } = flow.cc {
        c.key("cc", |c| {
            c.positive("step", step, 0.0, 1.0);
            c.range("decrease", decrease, 0.01..=0.99);
        });
    }
    c.key("tcp", |c| check_tcp(&flow.tcp, c));
}

fn check_tcp(tcp: &Tcp, c: &mut Check) {
    c.range("mss", tcp.mss, 64..=65_483);
    c.range("initial_window", tcp.initial_window, 1..=10_000);
    c.range("min_rto", tcp.min_rto, Span::from_millis(1)..=Span::from_secs(120));
    let segment = Bytes::new(u64::from(tcp.mss.min(65_483)));
    c.range("send_buffer", tcp.send_buffer, segment..=MAX_BUFFER);
    c.range("receive_buffer", tcp.receive_buffer, segment..=MAX_BUFFER);
    c.range("window_clamp", tcp.window_clamp.unwrap_or(segment), segment..=MAX_BUFFER);
}

fn check_traffic(traffic: &Traffic, c: &mut Check) {
    // IP and UDP headers and a byte of payload, to the largest IP packet.
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
            check_gap("on", on, Span::from_nanos(1), c);
            check_gap("off", off, Span::from_nanos(1), c);
            if let Some(rate) = rate {
                c.rate("rate", *rate);
            }
        }
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
            if !(*hurst > 0.5 && *hurst < 1.0) {
                c.key("hurst", |c| c.wrong(format!("{hurst} is out of range: more than 0.5, less than 1")));
            }
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
    // At a shape of 1 there is no mean any more.
    c.positive("shape", shape, 1.0, 100.0);
}

/// There is no such thing; the nearest of `names`, or all of them if none is near and they are few.
pub(crate) fn unknown<'a>(what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut hint = did_you_mean(name, names.iter().copied());
    if hint.is_empty() && names.len() <= 12 {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        hint = format!("; known: {known}");
    }
    format!("there is no {what} `{name}`{hint}")
}
