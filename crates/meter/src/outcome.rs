//! What came out of a measurement, and what it means.

use measure::rate::{Samples, Throughput};
use measure::responsiveness::{Probes, Responsiveness};
use observe::limits::Limits;
use observe::located::{Loaded, Located, Measured};
use units::{Span, Time};

use crate::flow::Passage;
use crate::kinds::{Latency, Probe, Way};
use crate::sampler::Sample;

/// A part of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Probes alone, before a load.
    Before,
    /// Under load.
    During,
    /// Probes alone, after a load.
    After,
}

impl Phase {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::During => "during",
            Phase::After => "after",
        }
    }
}

/// A flow of a load.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Its direction.
    pub way: Way,
    /// Its number among those of its direction, from 0.
    pub number: usize,
    /// The congestion control of its sender, if this end knows it.
    pub congestion: String,
    /// When its transfer began.
    pub start: Time,
    /// Bytes over time since then: as the server reports them of an upload, as they arrived here of a download.
    pub bytes: Samples,
    /// Its state in the kernel at this end.
    pub samples: Vec<Sample>,
    /// The times of some of its writes.
    pub passages: Vec<Passage>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl FlowOutcome {
    /// Whether its sender keeps to a pacing rate.
    pub fn is_paced(&self) -> bool {
        self.congestion == "bbr"
    }

    /// Where its sender's time went; `None` of a download, whose sender is the server.
    pub fn limits(&self) -> Option<Limits> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        if self.way == Way::Down {
            return None;
        }
        let mut sum = Limits::default();
        for two in self.samples.windows(2) {
            let span = two[1].at.saturating_since(two[0].at);
            sum = sum.plus(Limits::between(Some(&two[0].info), &two[1].info, span, self.is_paced()));
        }
        (last.at > first.at).then_some(sum)
    }

    /// The bytes delivered in all.
    pub fn total(&self) -> u64 {
        self.bytes.last().map_or(0, |last| last.1)
    }

    /// The smoothed round-trip times in the kernel, as far as they were measured during the transfer.
    pub fn rtts(&self) -> impl Iterator<Item = Span> {
        self.samples.iter().filter(|sample| sample.info.rtt > 0).map(|sample| Span::from_micros(sample.info.rtt.into()))
    }
}

/// A load, with the probes before and after it.
#[derive(Clone, Debug)]
pub struct Load {
    /// When the probes alone began, the load, the probes alone again, and the end.
    pub times: [Time; 4],
    /// Its flows.
    pub flows: Vec<FlowOutcome>,
}

impl Load {
    /// The part that a moment belongs to; `None` outside of the load.
    pub fn phase(&self, at: Time) -> Option<Phase> {
        let [before, during, after, end] = self.times;
        match at {
            at if at < before || at >= end => None,
            at if at < during => Some(Phase::Before),
            at if at < after => Some(Phase::During),
            _ => Some(Phase::After),
        }
    }

    /// The throughput of all flows of a direction together, by both formulas; `None` without flows that moved bytes.
    pub fn throughput(&self, way: Way) -> Option<Throughput> {
        let flows = self.flows.iter().filter(|flow| flow.way == way && flow.failure.is_none());
        Throughput::of(flows.map(|flow| &flow.bytes))
    }

    /// Whether it has flows of this direction.
    pub fn has(&self, way: Way) -> bool {
        self.flows.iter().any(|flow| flow.way == way)
    }
}

/// The outcome of a measurement.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The wall-clock time at which it began, since the Unix epoch.
    pub unix: Span,
    /// The loads, in their order.
    pub loads: Vec<Load>,
    /// The probes, in the order of their sending.
    pub latencies: Vec<Latency>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl Outcome {
    /// The answered probes of a kind in a part of a load.
    pub fn rtts(&self, load: &Load, phase: Phase, wanted: impl Fn(Probe) -> bool) -> Vec<Span> {
        let of = |latency: &&Latency| wanted(latency.probe) && load.phase(latency.at) == Some(phase);
        self.latencies.iter().filter(of).filter_map(|latency| latency.rtt).collect()
    }

    /// Where packets waited under a load.
    pub fn located(&self, load: &Load) -> Located {
        let loaded = |probe: Probe| {
            let of = |phase| self.rtts(load, phase, |other| other == probe);
            Loaded { before: of(Phase::Before), under: of(Phase::During) }
        };
        let passages = load.flows.iter().flat_map(|flow| &flow.passages);
        let echoes = loaded(Probe::Echo);
        let has_echoes = !echoes.before.is_empty() && !echoes.under.is_empty();
        Located::of(&Measured {
            host: passages.filter_map(|passage| passage.queued).collect(),
            hops: (1..=u8::MAX).map(|limit| loaded(Probe::Hop(limit))).filter(|hop| !hop.before.is_empty()).collect(),
            server: if has_echoes { echoes } else { loaded(Probe::Request) },
        })
    }

    /// Responsiveness under a load. The round trips on loaded connections are those of the kernel; the protocols have no request
    /// that passes a transfer.
    pub fn responsiveness(&self, load: &Load) -> Option<Responsiveness> {
        let under = |wanted: Probe| self.rtts(load, Phase::During, |probe| probe == wanted);
        let loaded = load.flows.iter().flat_map(FlowOutcome::rtts).collect();
        let probes = Probes { tcp: under(Probe::Handshake), tls: Vec::new(), http: under(Probe::Request), loaded };
        probes.responsiveness()
    }
}
