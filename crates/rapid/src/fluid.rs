//! A fluid model of servers, proxy and radio, for tests of the policies.
//!
//! A server sends what its application writes, as its windows permit; slow start doubles its window each round trip. The
//! radio is one queue a UE, which drains at the UE's capacity. Cells divide nothing here: each UE has its own capacity.

use crate::{Category, Config, Control, Decision, Doubt, Policy, Rapid, Sample};
use rnis::{RadioReport, UeId};
use std::collections::VecDeque;
use units::{Span, Time};

const STEP: Span = Span::from_micros(500);
const MSS: u32 = 1448;
/// What a segment occupies on the radio for each byte of payload.
const OVERHEAD: f64 = (1448.0 + 62.0) / 1448.0;
const RADIO_RTT: Span = Span::from_millis(8);

/// Returns a report on a UE that has a cell of 100 blocks to itself and used it for `bytes_per_sec`.
pub(crate) fn report(time: Time, interval: Span, bits: f64) -> RadioReport {
    RadioReport {
        time,
        interval,
        cell: 1,
        ue: UeId::new(61),
        n_prb: 100,
        slots: (interval.as_nanos() / 1_000_000) as u32,
        cell_prbs: Some(0),
        active_ues: Some(1),
        prbs: Some(0),
        acked_bits: bits as u64,
        blocks: 0,
        failed: 0,
        mcs: None,
        layers: None,
        cqi: None,
        bits_per_prb: None,
        queue_bytes: None,
    }
}

/// Knuth's MMIX generator.
#[derive(Clone)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A quantity that is seen later.
#[derive(Clone)]
struct Delayed<T> {
    by: usize,
    values: VecDeque<T>,
}

/// Returns how many steps a time takes.
fn steps(span: Span) -> usize {
    (span.as_nanos() / STEP.as_nanos()) as usize
}

impl<T: Copy> Delayed<T> {
    fn new(by: Span, first: T) -> Delayed<T> {
        let by = steps(by);
        Delayed { by, values: VecDeque::from(vec![first; by + 1]) }
    }

    fn pass(&mut self, value: T) -> T {
        self.values.push_back(value);
        while self.values.len() > self.by + 1 {
            self.values.pop_front();
        }
        self.values[0]
    }
}

/// A flow to a UE.
struct Flow {
    ue: u32,
    wan_rtt: Span,
    /// Bytes a second that the application writes; none if it writes without limit.
    app: Option<f64>,
    /// What it writes is sent in whole segments.
    in_segments: bool,
    written: f64,
    sent: f64,
    cwnd: f64,
    to_proxy: Delayed<f64>,
    /// What the server knows: what has arrived, and the window.
    to_server: Delayed<(f64, f64)>,
    arrived: f64,
    forwarded: f64,
    delivered: f64,
    /// The proxy's view of `delivered`.
    from_ue: Delayed<f64>,
    acked: f64,
    decision: Option<Decision>,
    /// At the start of the measurement.
    before: f64,
}

/// A UE's radio.
#[derive(Clone)]
struct Radio {
    /// Bytes a second of MAC.
    capacity: f64,
    /// Traffic that the proxy does not see: what it sends a second, what of it waits, and what was served of it.
    unseen: (f64, f64, f64),
    served: f64,
    reported: f64,
    /// When the next report is made.
    due: Time,
}

/// Lets a policy decide each millisecond until `end`, in milliseconds, over flows of a UE that can receive 20 MB/s. `samples` tell
/// their samples at each; what these leave out is a leg of 10 ms to the server and one of 5 ms to the UE. Returns the last
/// decisions.
pub(crate) fn together(policy: Policy, end: u64, samples: &[&dyn Fn(u64) -> Sample]) -> Vec<Decision> {
    let time = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let mut rapid = Rapid::new(Config { policy, ..Config::default() });
    (0..samples.len()).for_each(|flow| rapid.open(flow, (), MSS, time(0)));
    let mut last = vec![Decision::UNLIMITED; samples.len()];
    for ms in 1..=end {
        let mut report = report(time(ms), Span::from_millis(1), 160_000.0);
        (report.prbs, report.cell_prbs, report.bits_per_prb) = (Some(100), Some(100), Some(1600.0));
        rapid.on_report((), &report, time(ms));
        let mut sample = |flow: usize| {
            let sample = samples[flow](ms);
            Sample {
                wan_rtt: sample.wan_rtt.or(Some(Span::from_millis(10))),
                wan_min_rtt: sample.wan_min_rtt.or(Some(Span::from_millis(10))),
                ran_min_rtt: sample.ran_min_rtt.or(Some(Span::from_millis(5))),
                ..sample
            }
        };
        rapid.update(time(ms), &mut sample, &mut |flow, decision| last[flow] = *decision);
    }
    last
}

/// As [`together`], of a flow alone.
pub(crate) fn alone(policy: Policy, end: u64, sample: impl Fn(u64) -> Sample) -> Decision {
    together(policy, end, &[&sample])[0]
}

/// How the reports are.
#[derive(Clone, Copy)]
pub(crate) struct Reports {
    pub(crate) period: Span,
    /// Reported capacity as a multiple of the true one.
    pub(crate) factor: f64,
    /// Whether the bits that the UE has decoded are as wrong. Without that, blocks are not reported.
    pub(crate) bits: bool,
    /// Whether they tell the bytes that wait in the radio.
    pub(crate) queue: bool,
    /// The part by which what a block carries is at most wrong, at random in each report.
    pub(crate) noise: f64,
    /// For so long they are on their way.
    pub(crate) late: Span,
    /// They are made from here on, and no more from there on.
    pub(crate) from: Time,
    pub(crate) until: Time,
}

impl Default for Reports {
    fn default() -> Reports {
        Reports {
            period: Span::from_millis(1),
            factor: 1.0,
            bits: true,
            queue: false,
            noise: 0.0,
            late: Span::ZERO,
            from: Time::ZERO,
            until: Time::MAX,
        }
    }
}

/// The model.
pub(crate) struct Lab {
    rapid: Rapid<usize, u32>,
    reports: Reports,
    /// Reports on their way, with the time at which they come.
    on_their_way: VecDeque<(Time, u32, RadioReport)>,
    draw: Draw,
    /// The radio leg's round-trip time without a queue, and by how much acknowledgements are late beyond that.
    radio_rtt: Span,
    ack_delay: Span,
    now: Time,
    radios: Vec<Radio>,
    flows: Vec<Flow>,
    /// The greatest sum of promises to a UE as part of its capacity, and the greatest queueing delay, since `begin`.
    pub(crate) promised: f64,
    pub(crate) delay: Span,
    pub(crate) held: f64,
    /// For each UE and millisecond since `begin`, how long a byte waits in the proxy and the radio, in seconds.
    pub(crate) waits: Vec<f64>,
    /// Payload that the radios could have carried for our flows since `begin`, in bytes.
    pub(crate) room: f64,
    /// How many decisions there were since `begin`, and the sums of their settings.
    pub(crate) decided: [u64; 7],
}

impl Lab {
    pub(crate) fn new(policy: Policy, reports: Reports) -> Lab {
        let config = Config { policy, ..Config::default() };
        Lab {
            rapid: Rapid::new(config),
            reports,
            on_their_way: VecDeque::new(),
            draw: Draw(1),
            radio_rtt: RADIO_RTT,
            ack_delay: Span::ZERO,
            now: Time::ZERO,
            radios: Vec::new(),
            flows: Vec::new(),
            promised: 0.0,
            delay: Span::ZERO,
            held: 0.0,
            waits: Vec::new(),
            room: 0.0,
            decided: [0; 7],
        }
    }

    /// Lets acknowledgements be late by so much, as beside an upload.
    pub(crate) fn delay_acks(&mut self, by: Span) {
        self.ack_delay = by;
        let steps = steps(self.radio_rtt + by);
        self.flows.iter_mut().for_each(|flow| flow.from_ue.by = steps);
    }

    /// Adds a UE that can receive `mbps` of payload.
    pub(crate) fn ue(&mut self, mbps: f64) -> u32 {
        let capacity = mbps * 125_000.0 * OVERHEAD;
        self.radios.push(Radio { capacity, unseen: (0.0, 0.0, 0.0), served: 0.0, reported: 0.0, due: Time::ZERO });
        self.radios.len() as u32 - 1
    }

    pub(crate) fn set_capacity(&mut self, ue: u32, mbps: f64) {
        self.radios[ue as usize].capacity = mbps * 125_000.0 * OVERHEAD;
    }

    /// Traffic of `mbps` beside the proxy.
    pub(crate) fn unseen(&mut self, ue: u32, mbps: f64) {
        self.radios[ue as usize].unseen.0 = mbps * 125_000.0;
    }

    /// Adds a flow, whose application writes `mbps`.
    pub(crate) fn flow(&mut self, ue: u32, wan_rtt_ms: u64, mbps: Option<f64>) -> usize {
        let wan_rtt = Span::from_millis(wan_rtt_ms);
        let floor = f64::from(10 * MSS);
        self.rapid.open(self.flows.len(), ue, MSS, self.now);
        self.flows.push(Flow {
            ue,
            wan_rtt,
            app: mbps.map(|mbps| mbps * 125_000.0),
            in_segments: false,
            written: 0.0,
            sent: 0.0,
            cwnd: floor,
            to_proxy: Delayed::new(wan_rtt / 2, 0.0),
            // A step is between the passage to the server and what it sends.
            to_server: Delayed::new((wan_rtt / 2).saturating_sub(STEP), (0.0, floor)),
            arrived: 0.0,
            forwarded: 0.0,
            delivered: 0.0,
            from_ue: Delayed::new(self.radio_rtt + self.ack_delay, 0.0),
            acked: 0.0,
            decision: None,
            before: 0.0,
        });
        self.flows.len() - 1
    }

    /// Lets a flow send what its application writes in whole segments only.
    pub(crate) fn in_segments(&mut self, flow: usize) {
        self.flows[flow].in_segments = true;
    }

    /// Changes what a flow's application writes.
    pub(crate) fn write(&mut self, flow: usize, mbps: Option<f64>) {
        let flow = &mut self.flows[flow];
        (flow.app, flow.written) = (mbps.map(|mbps| mbps * 125_000.0), flow.written.min(flow.sent));
    }

    /// Lets a flow's application write so many bytes more.
    pub(crate) fn write_once(&mut self, flow: usize, bytes: f64) {
        self.flows[flow].written += bytes;
    }

    /// Changes the round-trip time of the radio leg.
    pub(crate) fn set_radio_rtt(&mut self, rtt: Span) {
        self.radio_rtt = rtt;
        self.delay_acks(Span::ZERO);
    }

    /// Changes from when on no reports are made.
    pub(crate) fn report_until(&mut self, until: Time) {
        self.reports.until = until;
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        (self.promised, self.delay, self.held, self.decided) = (0.0, Span::ZERO, 0.0, [0; 7]);
        self.waits.clear();
        self.room = 0.0;
        self.flows.iter_mut().for_each(|flow| flow.before = flow.delivered);
    }

    /// Runs for `seconds`, and returns what each flow has received since `begin` in Mbit/s, if this was right before.
    pub(crate) fn run(&mut self, seconds: f64) -> Vec<f64> {
        let end = self.now + Span::from_secs_f64(seconds);
        while self.now < end {
            self.step();
        }
        self.flows.iter().map(|flow| (flow.delivered - flow.before) / 125_000.0 / seconds).collect()
    }

    /// Changes by which factor reports are wrong.
    pub(crate) fn set_factor(&mut self, factor: f64) {
        self.reports.factor = factor;
    }

    /// Changes how the reports are.
    pub(crate) fn set_reports(&mut self, reports: Reports) {
        self.reports = reports;
    }

    /// Closes a flow, which has nothing more to send.
    pub(crate) fn close(&mut self, flow: usize) {
        self.rapid.close(flow);
        let flow = &mut self.flows[flow];
        (flow.app, flow.written) = (Some(0.0), flow.sent);
    }

    /// Returns why the feed of a UE is not believed, if it is not.
    pub(crate) fn doubt(&self, ue: u32) -> Option<Doubt> {
        let mut doubt = None;
        self.rapid.feeds(self.now, &mut |name, feed| doubt = doubt.or(feed.doubt.filter(|_| name == ue)));
        doubt
    }

    pub(crate) fn category(&self, flow: usize) -> Category {
        self.flows[flow].decision.expect("it is decided").category
    }

    fn step(&mut self) {
        let step = STEP.as_secs_f64();
        self.now += STEP;
        self.report();
        if self.rapid.poll_timeout().is_some_and(|due| due <= self.now) {
            self.decide();
        }
        for flow in &mut self.flows {
            flow.step(step);
        }
        for (ue, radio) in (0..).zip(&mut self.radios) {
            radio.unseen.1 += radio.unseen.0 * step;
            let waiting = waiting(&self.flows, ue, radio);
            let served = (radio.capacity / OVERHEAD * step).min(waiting);
            radio.served += served;
            self.room += radio.capacity / OVERHEAD * step;
            if waiting > 0.0 {
                self.delay = self.delay.max(Span::from_secs_f64(waiting / (radio.capacity / OVERHEAD)));
                let part = served / waiting;
                self.room -= radio.unseen.1 * part;
                radio.unseen.1 -= radio.unseen.1 * part;
                serve(&mut self.flows, ue, part);
            }
        }
    }

    fn report(&mut self) {
        let Reports { period, factor, bits: has_wrong_bits, queue, noise, late, from, until } = self.reports;
        for (ue, radio) in (0..).zip(&mut self.radios) {
            if self.now < from {
                radio.reported = radio.served;
            }
            if radio.due > self.now || self.now < from || self.now >= until {
                continue;
            }
            radio.due = self.now + period;
            let per_slot = radio.capacity * 8.0 * 0.001;
            let bits = (radio.served - radio.reported) * OVERHEAD * 8.0;
            radio.reported = radio.served;
            let noise = if noise > 0.0 { 1.0 + noise * (self.draw.below(2001) as f64 / 1000.0 - 1.0) } else { 1.0 };
            let wrong = factor * noise;
            let mut report = report(self.now, period, bits * if has_wrong_bits { wrong } else { 1.0 });
            let used = (bits / per_slot * 100.0).round().min(report.all_prbs() as f64) as u64;
            (report.prbs, report.cell_prbs) = (has_wrong_bits.then_some(used), Some(used));
            report.bits_per_prb = Some(per_slot / 100.0 * wrong);
            report.queue_bytes = queue.then(|| (waiting(&self.flows, ue, radio) * OVERHEAD) as u64);
            self.on_their_way.push_back((self.now + late, ue, report));
        }
        while let Some((_, ue, report)) = self.on_their_way.pop_front_if(|(due, ..)| *due <= self.now) {
            self.rapid.on_report(ue, &report, self.now);
        }
    }

    fn decide(&mut self) {
        let delays: Vec<Span> = (0..)
            .zip(&self.radios)
            .map(|(ue, radio)| Span::from_secs_f64(waiting(&self.flows, ue, radio) / (radio.capacity / OVERHEAD)))
            .collect();
        let (radio_rtt, ack_delay) = (self.radio_rtt, self.ack_delay);
        let flows = &self.flows;
        let mut decisions = Vec::new();
        let mut sample = |id: usize| {
            let flow = &flows[id];
            Sample {
                arrived: flow.arrived as u64,
                delivered: flow.acked as u64,
                in_flight: (flow.forwarded - flow.acked) as u64,
                wan_rtt: Some(flow.wan_rtt),
                wan_min_rtt: Some(flow.wan_rtt),
                wan_receive_rtt: None,
                ran_rtt: Some(radio_rtt + delays[flow.ue as usize] + ack_delay),
                ran_min_rtt: Some(radio_rtt),
            }
        };
        self.rapid.update(self.now, &mut sample, &mut |id, decision| decisions.push((id, *decision)));
        let mut promised = vec![0.0; self.radios.len()];
        for (id, decision) in decisions {
            let flow = &mut self.flows[id];
            flow.decision = Some(decision);
            let Decision { receive_window, receive_buffer, unsent, window, pacing, rate, .. } = decision;
            let rates = [pacing, rate].map(|rate| rate.map_or(0, units::Rate::bytes_per_sec));
            let sizes = [receive_window, receive_buffer, unsent, window].map(Option::unwrap_or_default);
            let terms = [1].into_iter().chain(sizes).chain(rates);
            self.decided.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            promised[flow.ue as usize] += decision.rate.map_or(0.0, |rate| rate.bits_per_sec() as f64 / 8.0);
        }
        for (promised, radio) in promised.iter().zip(&self.radios) {
            self.promised = self.promised.max(promised * OVERHEAD / radio.capacity);
        }
        self.held = self.flows.iter().map(|flow| flow.arrived - flow.forwarded).fold(self.held, f64::max);
        for (ue, radio) in (0..).zip(&self.radios) {
            let held = self.flows.iter().filter(|flow| flow.ue == ue).map(|flow| flow.arrived - flow.forwarded);
            let waits = waiting(&self.flows, ue, radio) + held.sum::<f64>();
            self.waits.push(waits / (radio.capacity / OVERHEAD));
        }
    }
}

/// Returns the payload that waits in a UE's radio.
fn waiting(flows: &[Flow], ue: u32, radio: &Radio) -> f64 {
    let flows = flows.iter().filter(|flow| flow.ue == ue);
    flows.map(|flow| flow.forwarded - flow.delivered).sum::<f64>() + radio.unseen.1
}

fn serve(flows: &mut [Flow], ue: u32, part: f64) {
    for flow in flows.iter_mut().filter(|flow| flow.ue == ue) {
        flow.delivered += (flow.forwarded - flow.delivered) * part;
    }
}

impl Flow {
    fn step(&mut self, step: f64) {
        let decision = self.decision.unwrap_or(Decision::UNLIMITED);
        // The server.
        self.written = self.app.map_or(f64::INFINITY, |rate| self.written + rate * step);
        let (known, window) = self.to_server.values[0];
        let segment = f64::from(MSS);
        let written = if self.in_segments { (self.written / segment).floor() * segment } else { self.written };
        let may = written.min(known + window.min(self.cwnd));
        self.sent = self.sent.max(may);
        self.arrived = self.to_proxy.pass(self.sent);
        let free = |buffer: u64| (buffer as f64 - (self.arrived - self.forwarded)).max(0.0);
        let window = decision.receive_window.map_or(4e6, |window| window as f64);
        let advertised = window.min(decision.receive_buffer.map_or(4e6, free));
        let (before, edge) = (self.to_server.values[0].0, self.arrived);
        self.to_server.pass((edge, advertised));
        self.cwnd = (self.cwnd + self.to_server.values[0].0 - before).min(1e9);
        // The proxy.
        let in_flight = self.forwarded - self.acked;
        let pace = decision.pacing.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64 / 8.0 * step);
        let window = decision.window.map_or(4e6, |window| window as f64);
        let send = (self.arrived - self.forwarded).min(window - in_flight).min(pace).max(0.0);
        self.forwarded += send;
        self.acked = self.from_ue.pass(self.delivered);
    }
}
