//! What came out of a measurement, and what it means.

use std::collections::BTreeMap;

use measure::rate::{Samples, Throughput};
use measure::responsiveness::{Probes, Responsiveness};
use observe::limits::{Limits, shows_pacing};
use observe::located::{Loaded, Located, Measured};
use units::{Span, Time};
use wire::tcp_info::TcpInfo;

use crate::flow::{Passage, Sample};
use crate::kinds::{Latency, Probe, Requests, Way};
use crate::modem::CellSample;
use crate::remote::Remote;

/// The interval over which waiting times are shown: that of the probes to routers.
const WINDOW: Span = Span::from_secs(1);

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
    /// The congestion control of its sender, if this end knows it or the server tells it.
    pub congestion: String,
    /// When its transfer began.
    pub start: Time,
    /// Bytes over time since then: as the server reports them of an upload, as they arrived here of a download. Empty if they are
    /// not known, as of a transfer that did not begin.
    pub bytes: Samples,
    /// Whether the bytes are those of an upload that were acknowledged to this end, because the server's count did not come.
    pub acknowledged: bool,
    /// When this end took note of its end, which is the time of the last sample; `None` of flows that were not measured here.
    pub ended: Option<Time>,
    /// What the kernel of its sender had counted before it began, if that is at this end: a connection may be older than its flow.
    pub before: Option<TcpInfo>,
    /// Its state in the kernel at this end.
    pub samples: Vec<Sample>,
    /// Its sender as the server tells it, of a download.
    pub remote: Remote,
    /// The times of some of its writes.
    pub passages: Vec<Passage>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl FlowOutcome {
    /// Whether its sender keeps to a pacing rate in a state.
    pub fn is_paced(&self, info: &TcpInfo) -> bool {
        is_paced(&self.congestion, info)
    }

    /// The congestion control of its sender as scenarios call it; `None` if this end does not know it.
    pub(crate) fn control(&self) -> Option<&str> {
        Some(scenario_name(&self.congestion)).filter(|name| !name.is_empty())
    }

    /// The states of its sender's kernel: at this end of an upload, as the server tells them of a download.
    pub(crate) fn sender(&self) -> &[Sample] {
        if self.way == Way::Down { &self.remote.samples } else { &self.samples }
    }

    /// Those of the states while it was going on: at its beginning and at its end nothing is in flight.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &Sample> {
        let (start, ended) = (self.start, self.ended);
        let is_under_way = move |at: Time| ended.is_none_or(|ended| start < at && at < ended);
        self.sender().iter().filter(move |sample| is_under_way(sample.at))
    }

    /// Where its sender's time went; `None` of a download whose server does not tell.
    pub fn limits(&self) -> Option<Limits> {
        let states = self.sender();
        let (first, last) = (states.first()?, states.last()?);
        let between = |before: Option<&Sample>, after: &Sample| {
            let span = after.at.saturating_since(before.map_or(self.start, |before| before.at));
            Limits::between(before.map(|before| &before.info), &after.info, span, self.is_paced(&after.info))
        };
        // A server's first message comes some time after the start.
        let (from, mut sum) = match self.way {
            Way::Down => (self.start, between(None, first)),
            Way::Up => (first.at, Limits::default()),
        };
        for two in states.windows(2) {
            sum = sum.plus(between(Some(&two[0]), &two[1]));
        }
        (last.at > from).then_some(sum)
    }

    /// The bytes delivered in all, if they are known.
    pub fn total(&self) -> Option<u64> {
        self.bytes.last().map(|last| last.1)
    }

    /// The smoothed round-trip times of a sender's kernel that the server tells; otherwise those in the kernel of this end: of its
    /// sender (`at_sender`), or as the receiver of the data estimates them, see [`round_trip`]. A time that is told again although
    /// nothing has come since is one sample.
    pub fn rtts(&self, at_sender: bool) -> impl Iterator<Item = Span> {
        let is_told = self.remote.has_rtts();
        let (states, at_sender) = if is_told { (&self.remote.samples, true) } else { (&self.samples, at_sender) };
        let known = |info: &TcpInfo| (info.rtt, info.rttvar, info.rcv_rtt, info.bytes_acked, info.bytes_received);
        let mut before = None;
        let is_news = move |sample: &&Sample| before.replace(known(&sample.info)) != Some(known(&sample.info));
        states.iter().filter(is_news).filter_map(move |sample| round_trip(&sample.info, at_sender))
    }
}

/// Whether a sender with this congestion control keeps to a pacing rate in a state: BBR of any version always does, others if the
/// state shows it.
pub(crate) fn is_paced(congestion: &str, info: &TcpInfo) -> bool {
    congestion.contains("bbr") || shows_pacing(info)
}

/// The name of flows of a direction in tables, with the congestion control that tells them from others of this direction.
pub fn flow_name(way: Way, control: Option<&str>) -> String {
    control.map_or_else(|| way.name().to_owned(), |control| format!("{}-{control}", way.name()))
}

/// What scenarios call a congestion control of the kernel.
pub(crate) fn scenario_name(congestion: &str) -> &str {
    if congestion == "reno" { "new-reno" } else { congestion }
}

/// A load, with the probes before and after it.
#[derive(Clone, Debug)]
pub struct Load {
    /// When it began and ended.
    pub times: LoadTimes,
    /// Its flows.
    pub flows: Vec<FlowOutcome>,
}

/// When the parts of a [`Load`] began.
#[derive(Clone, Copy, Debug)]
pub struct LoadTimes {
    /// The probes alone.
    pub before: Time,
    /// The warm-up of the flows; without one, the same as the next.
    pub warming: Time,
    /// The load itself.
    pub during: Time,
    /// The probes alone again.
    pub after: Time,
    /// The end of it all.
    pub end: Time,
}

/// The smoothed round-trip time in a kernel; `None` before it was measured. What a receiver knows as a sender (`tcpi_rtt`) is as old
/// as its last data, a request before the load: it has the time from an acknowledgement to the data that echoes its timestamp
/// (`tcpi_rcv_rtt`).
pub(crate) fn round_trip(info: &TcpInfo, at_sender: bool) -> Option<Span> {
    let micros = if at_sender { info.rtt } else { info.rcv_rtt };
    (micros > 0).then(|| Span::from_micros(micros.into()))
}

#[cfg(test)]
impl LoadTimes {
    pub(crate) fn of_ms(ms: [u64; 5]) -> LoadTimes {
        let [before, warming, during, after, end] = ms.map(|ms| Time::from_nanos(ms * 1_000_000));
        LoadTimes { before, warming, during, after, end }
    }
}

impl Load {
    /// The part that a moment belongs to; `None` outside of the load and in the warm-up.
    pub fn phase(&self, at: Time) -> Option<Phase> {
        let LoadTimes { before, warming, during, after, end } = self.times;
        match at {
            at if at < before || (warming..during).contains(&at) || at >= end => None,
            at if at < warming => Some(Phase::Before),
            at if at < after => Some(Phase::During),
            _ => Some(Phase::After),
        }
    }

    /// The throughput of all flows of a direction together, by both formulas; `None` without flows that moved bytes.
    pub fn throughput(&self, way: Way) -> Option<Throughput> {
        let flows = self.flows.iter().filter(|flow| flow.way == way && flow.failure.is_none());
        Throughput::of(flows.map(|flow| &flow.bytes))
    }

    /// The name of one of its flows in tables: the direction and, if the flows of this direction have several congestion controls,
    /// its own, as `upload-bbr`. Flows of one name are summarised together, and what limits different controls differs.
    pub fn name(&self, flow: &FlowOutcome) -> String {
        // A flow that failed early may have none.
        let differs = |control: &&str| {
            let other_has = |other: &FlowOutcome| other.control().is_some_and(|other| other != *control);
            self.flows.iter().any(|other| other.way == flow.way && other_has(other))
        };
        flow_name(flow.way, flow.control().filter(differs))
    }

    /// Whether it has flows of this direction.
    pub fn has(&self, way: Way) -> bool {
        self.flows.iter().any(|flow| flow.way == way)
    }
}

/// The outcome of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The wall-clock time at which it began, since the Unix epoch.
    pub unix: Span,
    /// The loads, in their order.
    pub loads: Vec<Load>,
    /// The probes, in the order of their sending.
    pub latencies: Vec<Latency>,
    /// What the connection for requests tells of the path, if the protocol has one.
    pub requests: Option<Requests>,
    /// The serving cells of modems, in the order of time.
    pub cells: Vec<CellSample>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// The number of loads that were not cut short. One that was is the last.
    pub finished: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// What ended it before all loads had run, other than an interruption: all flows of a load failed, after others had run.
    pub fault: Option<String>,
}

impl Outcome {
    /// Whether loads are missing, or cut short.
    pub fn is_partial(&self) -> bool {
        self.interrupted || self.fault.is_some()
    }

    /// The answered probes of a kind in a part of a load.
    pub fn rtts(&self, load: &Load, phase: Phase, wanted: impl Fn(Probe) -> bool) -> Vec<Span> {
        let of = |latency: &&Latency| wanted(latency.probe) && load.phase(latency.at) == Some(phase);
        self.latencies.iter().filter(of).filter_map(|latency| latency.rtt).collect()
    }

    /// Round trips to the server before, during and after a load, and by which probes. They are all of one kind, because kinds take
    /// different times on the same path: ICMP echo, requests or handshakes, the first kind that was answered both before the load and
    /// under it, or else under it. `None` if no probe was answered.
    pub fn to_server(&self, load: &Load) -> Option<(Probe, [Vec<Span>; 3])> {
        let of = |wanted: Probe| {
            let rtts = |phase| self.rtts(load, phase, |probe| probe == wanted);
            (wanted, [Phase::Before, Phase::During, Phase::After].map(rtts))
        };
        let rank = |(_, rtts): &(Probe, [Vec<Span>; 3])| match rtts.each_ref().map(|rtts| !rtts.is_empty()) {
            [true, true, _] => 3,
            [_, true, _] => 2,
            [false, false, false] => 0,
            _ => 1,
        };
        // Of equals, this takes the last one.
        let best = [Probe::Handshake, Probe::Request, Probe::Echo].into_iter().map(of).max_by_key(rank)?;
        (rank(&best) > 0).then_some(best)
    }

    /// Where packets waited under a load.
    pub fn located(&self, load: &Load) -> Located {
        let loaded = |probe: Probe| {
            let of = |phase| self.rtts(load, phase, |other| other == probe);
            Loaded { before: of(Phase::Before), under: of(Phase::During) }
        };
        let passages = load.flows.iter().flat_map(|flow| &flow.passages);
        locate(passages.filter_map(|passage| passage.queued).collect(), (1..=u8::MAX).map(Probe::Hop), loaded)
    }

    /// Where packets waited in each second of a load, with the probes before and after it.
    pub fn waits(&self, load: &Load) -> Vec<(Time, Located)> {
        #[derive(Clone, Default)]
        struct Window {
            host: Vec<Span>,
            rtts: BTreeMap<Probe, Vec<Span>>,
        }
        let LoadTimes { before: start, end, .. } = load.times;
        let place = |at: Time| (at.saturating_since(start).as_nanos() / WINDOW.as_nanos()) as usize;
        let mut windows = vec![Window::default(); place(end) + 1];
        let mut before = Window::default();
        for latency in &self.latencies {
            let (Some(phase), Some(rtt)) = (load.phase(latency.at), latency.rtt) else { continue };
            windows[place(latency.at)].rtts.entry(latency.probe).or_default().push(rtt);
            if phase == Phase::Before {
                before.rtts.entry(latency.probe).or_default().push(rtt);
            }
        }
        for passage in load.flows.iter().flat_map(|flow| &flow.passages) {
            if let (Some(_), Some(queued)) = (load.phase(passage.written), passage.queued) {
                windows[place(passage.written)].host.push(queued);
            }
        }
        let all_hops = || before.rtts.keys().copied().filter(|probe| matches!(probe, Probe::Hop(_)));
        let locate_window = |window: Window| {
            let of = |window: &Window, probe| window.rtts.get(&probe).cloned().unwrap_or_default();
            let loaded = |probe| Loaded { before: of(&before, probe), under: of(&window, probe) };
            locate(window.host.clone(), all_hops(), loaded)
        };
        let times = (0u64..).map(|number| start + WINDOW * number);
        times.zip(windows.into_iter().map(locate_window)).filter(|window| window.1 != Located::default()).collect()
    }

    /// Responsiveness under a load. The round trips on loaded connections are those of the kernel at this end or, of downloads, at
    /// the server's if it tells them; the protocols have no request that passes a transfer.
    pub fn responsiveness(&self, load: &Load) -> Option<Responsiveness> {
        let under = |wanted: Probe| self.rtts(load, Phase::During, |probe| probe == wanted);
        let loaded = load.flows.iter().flat_map(|flow| flow.rtts(flow.way == Way::Up)).collect();
        let probes = Probes { tcp: under(Probe::Handshake), tls: Vec::new(), http: under(Probe::Request), loaded };
        probes.responsiveness()
    }
}

/// Locates the queues by what `loaded` has of each kind of probe.
fn locate(host: Vec<Span>, hops: impl Iterator<Item = Probe>, loaded: impl Fn(Probe) -> Loaded) -> Located {
    let echoes = loaded(Probe::Echo);
    let has_echoes = !echoes.before.is_empty() && !echoes.under.is_empty();
    Located::of(&Measured {
        host,
        hops: hops.map(&loaded).filter(|hop| !hop.before.is_empty()).collect(),
        server: if has_echoes { echoes } else { loaded(Probe::Request) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// An upload that begins after a second.
    fn upload(congestion: &str) -> FlowOutcome {
        FlowOutcome {
            way: Way::Up,
            number: 0,
            congestion: congestion.into(),
            start: at(1000),
            bytes: Samples::default(),
            acknowledged: false,
            ended: None,
            before: None,
            samples: Vec::new(),
            remote: Remote::default(),
            passages: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn any_congestion_control_that_paces_is_limited_by_its_pacer_and_tells_its_rate() {
        let of = |congestion: &str, pacing_rate: u64| {
            let sample = |ms: u64| {
                let info = TcpInfo {
                    snd_cwnd: 100,
                    snd_mss: 1000,
                    rtt: 100_000,
                    unacked: 50,
                    pacing_rate,
                    delivery_rate: 500_000,
                    busy_time: Some(ms * 1000),
                    rwnd_limited: Some(0),
                    sndbuf_limited: Some(0),
                    ..TcpInfo::default()
                };
                Sample { at: at(1000 + ms), raw: Box::default(), info, bbr: None, delivered: ms }
            };
            let mut flow = FlowOutcome { samples: vec![sample(0), sample(500), sample(1000)], ..upload(congestion) };
            flow.bytes.finish(Span::from_secs(1), 500_000);
            let limits = flow.limits().expect("it took a second");
            let shares = (limits.share(limits.cwnd), limits.share(limits.pacing));
            let load = Load { times: LoadTimes::of_ms([0, 1000, 1000, 2000, 2000]), flows: vec![flow] };
            let outcome = Outcome { loads: vec![load], finished: 1, ..Outcome::default() };
            let tables = outcome.tables();
            let row = tables.samples.row(1);
            (shares, row.pacing_mbps, row.limit.to_owned())
        };
        // Of the same rate, which is less than what the window permits.
        for control in ["bbr", "bbr3", "bpf_own", ""] {
            assert_eq!(of(control, 500_000), ((0.0, 1.0), Some(4.0), "pacing".to_owned()), "{control}");
        }
        // What the kernel tells of those that nothing paces.
        assert_eq!(of("cubic", 1_200_000), ((1.0, 0.0), None, "cwnd".to_owned()));
        assert_eq!(of("bpf_own", u64::MAX), ((1.0, 0.0), None, "cwnd".to_owned()));
    }

    #[test]
    fn waits_are_what_round_trips_grow_by_in_each_second() {
        let ms = Span::from_millis;
        let flow = FlowOutcome {
            passages: vec![Passage { written: at(2500), buffered: None, queued: Some(ms(4)), travelled: None }],
            ..upload("cubic")
        };
        let load = Load { times: LoadTimes::of_ms([0, 800, 1000, 3000, 4000]), flows: vec![flow] };
        let probe = |ms_at, probe, rtt| Latency { at: at(ms_at), probe, rtt: Some(ms(rtt)) };
        let latencies = vec![
            probe(100, Probe::Hop(2), 20),
            probe(200, Probe::Request, 30),
            // In the warm-up.
            probe(900, Probe::Hop(2), 500),
            probe(900, Probe::Request, 500),
            probe(1100, Probe::Hop(2), 70),
            probe(1200, Probe::Request, 180),
            probe(2100, Probe::Hop(2), 224),
            probe(2200, Probe::Request, 235),
            // The router has stopped answering.
            probe(3200, Probe::Request, 30),
        ];
        let outcome = Outcome { loads: vec![load.clone()], latencies, finished: 1, ..Outcome::default() };
        let parts = |host, modem, network, total| {
            let span = |part: Option<u64>| part.map(ms);
            Located { host: span(host), modem: span(modem), network: span(network), total: span(total) }
        };
        let expected = [
            (at(0), parts(None, Some(0), Some(0), Some(0))),
            (at(1000), parts(None, Some(50), Some(100), Some(150))),
            (at(2000), parts(Some(4), Some(200), Some(1), Some(205))),
            (at(3000), parts(None, None, None, Some(0))),
        ];
        assert_eq!(outcome.waits(&load), expected);
        let rows: Vec<_> = outcome.tables().waits.iter().map(|row| (row.t_s, row.modem_ms)).collect();
        assert_eq!(rows, [(0.0, Some(0.0)), (1.0, Some(50.0)), (2.0, Some(200.0)), (3.0, None)]);
    }
}
