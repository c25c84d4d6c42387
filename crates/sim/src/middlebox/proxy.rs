//! A proxy that splits the connections of UEs, and RAPID in it.
//!
//! A connection has an endpoint on each leg ([`Split`]). What arrives makes its connection ready; [`ProxyBox::handle_timeout`],
//! at the same moment, takes the segments that ready connections send. [`Rapid`] is the one that the live proxy uses.

#[cfg(test)]
mod tests;

use super::interface::{Emission, FlowKey, Middlebox, Passing, Towards, Verdict};
use super::split::{Leg, Split};
use crate::rows::RunId;
use cc::{Random, Target};
use rapid::{Config, Control, Decision, Rapid, Sample};
use record::ms;
use record::tables::{Proxies, ProxyRow};
use rnis::RadioReport;
use scenario::Proxy;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tcp::Context;
use units::{Bytes, Rate, Time};
use wire::{Flags, Options};

/// A report on its way to the proxy.
struct OnItsWay {
    /// When it arrives.
    due: Time,
    /// The UE.
    ue: u32,
    /// The report.
    report: RadioReport,
}

/// A connection, and its entries elsewhere.
struct Entry {
    split: Split,
    key: FlowKey,
    /// Whether the control knows it.
    is_controlled: bool,
    /// What the control decided last.
    decision: Option<Decision>,
    /// Its entry in the deadlines.
    due: Option<Time>,
    is_ready: bool,
}

/// A proxy.
pub(crate) struct ProxyBox {
    cc: scenario::Cc,
    config: tcp::Config,
    /// The most that a side takes from the other and has not sent, and the most that it has received and not passed on.
    half: u64,
    connections: Slab<Entry>,
    by_key: BTreeMap<FlowKey, usize>,
    deadlines: BTreeSet<(Time, usize)>,
    ready: VecDeque<usize>,
    /// What decides windows and rates, by connection and UE, unless the proxy only splits.
    control: Option<Box<dyn Control<usize, u32>>>,
    reports: VecDeque<OnItsWay>,
    /// By UE, its open flows.
    ues: BTreeMap<u32, u32>,
    random: Random,
    now: Time,
}

impl ProxyBox {
    /// Creates the proxy of a scenario.
    pub(crate) fn new(of: &Proxy, random: Random) -> ProxyBox {
        // One half is for what has arrived, the other for what has yet to be sent. Half of a receive buffer is payload.
        let buffer = of.buffer.get().min(1 << 30) as u32;
        let default = tcp::Config::default();
        let config = of.policy.policy().map(|policy| Config { policy, tick: of.tick, ..Config::default() });
        ProxyBox {
            cc: of.cc.clone(),
            config: tcp::Config {
                kernel: tcp::Kernel::V6_1,
                receive_buffer: default.receive_buffer.min(buffer),
                receive_buffer_max: buffer,
                auto_read: false,
                slow_start_after_idle: false,
                // The relay itself bounds what is not sent yet.
                send_buffer: tcp::SendBuffer::Fixed(u64::MAX),
                tso: false,
                ..default
            },
            half: u64::from(buffer / 2),
            connections: Slab::new(),
            by_key: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            control: config.map(|config| Box::new(Rapid::new(config)) as Box<dyn Control<usize, u32>>),
            reports: VecDeque::new(),
            ues: BTreeMap::new(),
            random,
            now: Time::ZERO,
        }
    }

    /// Replaces the control, before there are connections.
    pub(crate) fn set_control(&mut self, control: Box<dyn Control<usize, u32>>) {
        self.control = Some(control);
    }

    /// Returns whether reports on `ue` are of use.
    pub(crate) fn wants(&self, ue: u32) -> bool {
        self.control.is_some() && self.ues.contains_key(&ue)
    }

    /// Accepts a report that arrives at `due`.
    pub(crate) fn send_report(&mut self, due: Time, ue: u32, report: RadioReport) {
        self.reports.push_back(OnItsWay { due, ue, report });
    }

    fn open(&mut self, packet: &Passing<'_>, towards: Towards, now: Time) -> usize {
        let ProxyBox { cc, config, half, connections, random, .. } = self;
        let opener = if towards.ue { Leg::Wired } else { Leg::Radio };
        let controller = || cc.controller(cc::INITIAL_WINDOW);
        let mss = match packet.segment.options {
            Options::Syn(syn) => syn.mss,
            _ => config.mss,
        };
        let config = tcp::Config { mss, ..config.clone() };
        let way = ((packet.way, towards.ue), towards.number);
        let split = Split::new(opener, way, &config, controller, *half, (random, now));
        let (key, is_controlled) = (packet.flow, self.control.is_some());
        let at = connections.insert(Entry { split, key, is_controlled, decision: None, due: None, is_ready: false });
        self.by_key.insert(key, at);
        if let Some(control) = &mut self.control {
            control.open(at, towards.number, u32::from(mss).saturating_sub(12), now);
        }
        *self.ues.entry(towards.number).or_default() += 1;
        at
    }

    fn make_ready(&mut self, at: usize) {
        let entry = &mut self.connections[at];
        if !std::mem::replace(&mut entry.is_ready, true) {
            self.ready.push_back(at);
        }
    }

    /// Something has happened to a connection.
    fn progress(&mut self, at: usize) {
        if let Some(control) = &mut self.control {
            control.on_progress(at);
        }
        self.make_ready(at);
    }

    /// Renews a connection's deadline, or removes it if it is over.
    fn settle(&mut self, at: usize) {
        let entry = &mut self.connections[at];
        let due = entry.split.poll_timeout();
        if entry.due != due {
            if let Some(old) = entry.due {
                self.deadlines.remove(&(old, at));
            }
            self.deadlines.extend(due.map(|due| (due, at)));
            entry.due = due;
        }
        if entry.split.has_ended()
            && std::mem::take(&mut entry.is_controlled)
            && let Some(control) = &mut self.control
        {
            control.close(at);
        }
        if entry.split.is_over() {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) {
        let Entry { key, due, split, .. } = self.connections.remove(at);
        self.by_key.remove(&key);
        if let Some(due) = due {
            self.deadlines.remove(&(due, at));
        }
        if let Some(flows) = self.ues.get_mut(&split.ue) {
            *flows -= 1;
            if *flows == 0 {
                self.ues.remove(&split.ue);
            }
        }
    }

    /// Does what is due at `now` but for sending.
    fn run(&mut self, now: Time) {
        self.now = now;
        while let Some(&(due, at)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.pop_first();
            let entry = &mut self.connections[at];
            entry.due = None;
            entry.split.handle_timeout(&mut Context { now, random: &mut self.random, log: None });
            self.progress(at);
        }
        while let Some(OnItsWay { ue, report, .. }) = self.reports.pop_front_if(|report| report.due <= now) {
            if let Some(control) = &mut self.control {
                control.on_report(ue, &report, now);
            }
        }
        if self.control.as_ref().and_then(|control| control.poll_timeout()).is_some_and(|due| due <= now) {
            self.update(now);
        }
    }

    /// Lets the control decide, and applies its decisions.
    fn update(&mut self, now: Time) {
        let ProxyBox { control: Some(control), connections, .. } = self else { return };
        let mut decisions = Vec::with_capacity(connections.len());
        control
            .update(now, &mut |at| sample(&connections[at].split), &mut |at, decision| decisions.push((at, *decision)));
        for (at, decision) in decisions {
            let entry = &mut self.connections[at];
            entry.decision = Some(decision);
            let cx = &mut Context { now, random: &mut self.random, log: None };
            apply(&mut entry.split, &decision, self.half, cx);
            // A larger window may let something pass.
            self.make_ready(at);
        }
    }
}

impl ProxyBox {
    /// Writes the rows of the connections at a sampling moment. `flow` returns the name and the copy of a flow, `ue` the name
    /// of a UE.
    pub(crate) fn sample<'a>(
        &self,
        RunId { point, run }: RunId,
        now: Time,
        flow: impl Fn(u32) -> (&'a str, u32),
        ue: impl Fn(u32) -> &'a str,
        table: &mut Proxies,
    ) {
        for (_, Entry { split, decision, .. }) in &self.connections {
            if split.has_ended() {
                continue;
            }
            let Some((name, conn)) = split.way.0.flow().map(&flow) else { continue };
            let seen = sample(split);
            let (window, _) = split.endpoint(Leg::Radio).window();
            table.push(&ProxyRow {
                point,
                run,
                flow: name,
                conn,
                ue: ue(split.ue),
                t_s: now.as_secs_f64(),
                category: decision.map_or("", |decision| decision.category.name()),
                promised_mbps: decision.and_then(|decision| decision.rate).map(Rate::as_mbps),
                receive_window_bytes: decision.and_then(|decision| decision.receive_window),
                window_bytes: window,
                in_flight_bytes: seen.in_flight,
                held_bytes: split.endpoint(Leg::Wired).readable() + split.endpoint(Leg::Radio).unsent(),
                wired_rtt_ms: seen.wired_rtt().map(ms),
                radio_rtt_ms: seen.ran_rtt.map(ms),
            });
        }
    }
}

/// Returns what the control wants to know of a connection.
fn sample(split: &Split) -> Sample {
    let (wired, radio) = (split.endpoint(Leg::Wired), split.endpoint(Leg::Radio));
    let (wan_rtt, wan_min_rtt) = wired.rtt();
    let (ran_rtt, ran_min_rtt) = radio.rtt();
    let arrived = split.arrived(Leg::Wired);
    // An endpoint counts its SYN and its FIN as bytes.
    let delivered = radio.stats().bytes_acked.min(arrived);
    Sample {
        arrived,
        delivered,
        in_flight: radio.in_flight().min(arrived - delivered),
        wan_rtt,
        wan_min_rtt,
        wan_receive_rtt: wired.receive_rtt(),
        ran_rtt,
        ran_min_rtt,
    }
}

/// Sets the windows of a connection, which holds `most` bytes at most on each leg.
fn apply(split: &mut Split, decision: &Decision, most: u64, cx: &mut Context) {
    let wired = split.endpoint_mut(Leg::Wired);
    wired.set_window_clamp(decision.receive_window.map(|bytes| bytes.min(u32::MAX.into()) as u32));
    if let Some(bytes) = decision.receive_buffer {
        wired.set_receive_buffer(bytes.min(most));
    }
    split.unsent = decision.unsent.unwrap_or(most).min(most);
    let target = decision.window.map(|window| Target { window: Bytes::new(window), pacing: decision.pacing });
    split.direct(target, cx);
}

impl Middlebox for ProxyBox {
    fn handle_packet(&mut self, packet: &Passing<'_>, now: Time) -> Verdict {
        let Some(towards) = packet.towards else { return Verdict::Forward };
        self.run(now);
        let at = match self.by_key.get(&packet.flow) {
            Some(&at) => at,
            None if packet.segment.flags.has(Flags::SYN) => self.open(packet, towards, now),
            // It belongs to a connection that is over: its host has not heard of that.
            None => {
                let Some(segment) = packet.segment.refusal() else { return Verdict::Consume };
                return Verdict::Answer(Emission { way: packet.way, onward: false, segment, ect: false, sent: None });
            }
        };
        let leg = if towards.ue { Leg::Wired } else { Leg::Radio };
        let cx = &mut Context { now, random: &mut self.random, log: None };
        self.connections[at].split.handle_segment(leg, packet.segment, (packet.sent, packet.ce), cx);
        self.progress(at);
        Verdict::Consume
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Emission> {
        self.run(now);
        while let Some(&at) = self.ready.front() {
            let entry = &mut self.connections[at];
            let cx = &mut Context { now, random: &mut self.random, log: None };
            if let Some((leg, tcp::Transmit { segment, ect }, sent)) = entry.split.poll_transmit(cx) {
                let (way, to_ue) = entry.split.way;
                return Some(Emission { way, onward: (leg == Leg::Radio) == to_ue, segment, ect, sent });
            }
            entry.is_ready = false;
            self.ready.pop_front();
            self.settle(at);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ready = (!self.ready.is_empty()).then_some(self.now);
        let control = self.control.as_ref().and_then(|control| control.poll_timeout());
        let report = self.reports.front().map(|report| report.due);
        let deadline = self.deadlines.first().map(|(due, _)| *due);
        [ready, control, report, deadline].into_iter().flatten().min()
    }
}
