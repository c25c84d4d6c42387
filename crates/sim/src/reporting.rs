//! The reports of all cells: when they are made, which are lost, and who receives them.

use crate::middlebox::ProxyBox;
use crate::network::medium::radio::Radio;
use crate::network::reports::{MEASURED, Reporter};
use crate::parts::{Kind, Parts};
use des::Streams;
use rnis::{Event, Record};
use std::collections::VecDeque;
use units::Time;

/// The reports of all cells to the simulated proxy, and to readers outside the simulation.
pub(crate) struct Reports {
    reporter: Reporter,
    of: scenario::Reports,
    random: link::Random,
    /// For readers outside, if there are any.
    outside: Option<Outside>,
}

/// The reports on their way to readers outside: on all UEs, with losses of their own.
struct Outside {
    random: link::Random,
    /// When each arrives, and its UE. Events are not lost.
    records: VecDeque<(Time, u32, Record)>,
}

impl Outside {
    fn put(&mut self, due: Time, ue: u32, record: Record) {
        self.records.push_back((due, ue, record));
    }
}

impl Reports {
    /// Has the cells of a network report, from the first interval on.
    pub(crate) fn new(network: &scenario::Radio, radio: &Radio, parts: &mut Parts, streams: &Streams) -> Reports {
        let of = network.reports().cloned().unwrap_or_default();
        let (ues, carriers) = radio.size();
        let part = parts.add(Kind::Reports);
        parts.agenda.wake(part, Some(Time::ZERO + of.period));
        let reporter = Reporter::new(ues, carriers, of.factor);
        Reports { reporter, of, random: streams.named("reports"), outside: None }
    }

    /// Has reports on all UEs made for readers outside, too, and events.
    pub(crate) fn open(&mut self, random: link::Random, parts: &mut Parts) {
        self.outside = Some(Outside { random, records: VecDeque::new() });
        let part = parts.add(Kind::Measurements);
        parts.agenda.wake(part, Some(Time::ZERO + MEASURED));
    }

    /// Returns whether there are readers outside.
    pub(crate) fn is_open(&self) -> bool {
        self.outside.is_some()
    }

    /// Makes the reports that are due at `now`, sends those that are not lost, and returns when the next are due.
    pub(crate) fn send(&mut self, radio: &mut Radio, mut proxy: Option<&mut ProxyBox>, now: Time) -> Time {
        let Reports { reporter, of, random, outside } = self;
        let mut made = Vec::new();
        let is_open = outside.is_some();
        let is_wanted = |ue| is_open || proxy.as_deref().is_some_and(|proxy| proxy.wants(ue));
        radio.report(reporter, now, is_wanted, |ue, report| made.push((ue, report)));
        let arrives = |random: &mut link::Random| of.loss == 0.0 || link::unit(random) >= of.loss;
        if let Some(outside) = outside {
            radio.tell_changes(reporter, |ue, event| outside.put(now + of.delay, ue, Record::Event(event)));
        }
        for (ue, report) in made {
            if let Some(outside) = outside
                && arrives(&mut outside.random)
            {
                outside.put(now + of.delay, ue, Record::Report(report.clone()));
            }
            if let Some(proxy) = proxy.as_deref_mut().filter(|proxy| proxy.wants(ue)) {
                radio.count_report(ue, &report);
                if arrives(random) {
                    proxy.send_report(now + of.delay, ue, report);
                }
            }
        }
        now + of.period
    }

    /// Makes the measurement reports of the UEs at `now`, and returns when the next are due.
    pub(crate) fn measure(&mut self, radio: &mut Radio, now: Time) -> Time {
        let Reports { reporter, of, outside, .. } = self;
        if let Some(outside) = outside {
            let mut put = |ue, event: Event| outside.put(now + of.delay, ue, Record::Event(event));
            radio.tell_changes(reporter, &mut put);
            radio.measure(reporter, now, &mut put);
        }
        now + MEASURED
    }

    /// Returns the next report or event that has arrived outside by `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(u32, Record)> {
        let (_, ue, record) = self.outside.as_mut()?.records.pop_front_if(|(due, ..)| *due <= now)?;
        Some((ue, record))
    }

    /// Returns when the next report or event arrives outside.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.outside.as_ref()?.records.front().map(|(due, ..)| *due)
    }
}
