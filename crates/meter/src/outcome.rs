//! What came out of a measurement, and what it means.

use std::collections::{BTreeMap, BTreeSet};

use observe::kernel::{Flow, Way};
use observe::located::{Loaded, Located, Measured, Pair, Pairs};
use observe::modem::CellSample;
use speedtest::rate::Throughput;
use speedtest::responsiveness::{Probes, Responsiveness};
use units::{Span, Time};

use crate::kinds::{Latency, Probe, Requests};

/// The shortest wait that is worth a name.
pub const LEAST_WAIT: Span = Span::from_millis(10);
/// The interval over which waiting times are shown: that of the probes to routers.
const WINDOW: Span = Span::from_secs(1);
/// Intervals on each side of one whose pairs of probes are used for it: a single pair has no uncertainty.
const AROUND: usize = 2;
/// The longest time between a probe of a router and the one of the server that counts as sent together with it. ICMP echoes are sent
/// at the same moment.
const TOGETHER: Span = Span::from_millis(100);

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

/// The name of flows of a direction in tables, with the congestion control that tells them from others of this direction.
pub fn flow_name(way: Way, control: Option<&str>) -> String {
    control.map_or_else(|| way.name().to_owned(), |control| format!("{}-{control}", way.name()))
}

/// A load, with the probes before and after it.
#[derive(Clone, Debug)]
pub struct Load {
    /// When it began and ended.
    pub times: LoadTimes,
    /// Its flows.
    pub flows: Vec<Flow>,
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
    pub fn name(&self, flow: &Flow) -> String {
        // A flow that failed early may have none.
        let differs = |control: &&str| {
            let other_has = |other: &Flow| other.control().is_some_and(|other| other != *control);
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
        let paths = self.paths(load);
        let passages = load.flows.iter().flat_map(|flow| &flow.passages);
        let host = passages.filter_map(|passage| passage.queued).collect();
        let under = paths.server.iter().filter(|(phase, ..)| *phase == Phase::During).map(|&(.., rtt)| rtt).collect();
        paths.locate(host, under, |phase, _| phase == Phase::During)
    }

    /// Where packets waited in each second of a load, with the probes before and after it.
    pub fn waits(&self, load: &Load) -> Vec<(Time, Located)> {
        #[derive(Clone, Default)]
        struct Window {
            phase: Option<Phase>,
            host: Vec<Span>,
            server: Vec<Span>,
        }
        let paths = self.paths(load);
        let LoadTimes { before: start, end, .. } = load.times;
        let place = |at: Time| (at.saturating_since(start).as_nanos() / WINDOW.as_nanos()) as usize;
        let mut windows = vec![Window::default(); place(end) + 1];
        for &(phase, at, rtt) in &paths.server {
            let window = &mut windows[place(at)];
            window.server.push(rtt);
            window.phase.get_or_insert(phase);
        }
        for passage in load.flows.iter().flat_map(|flow| &flow.passages) {
            if let (Some(_), Some(queued)) = (load.phase(passage.written), passage.queued) {
                windows[place(passage.written)].host.push(queued);
            }
        }
        let locate = |(number, window): (usize, Window)| {
            let is_near = |at: Time| place(at).abs_diff(number) <= AROUND;
            let located =
                paths.locate(window.host, window.server, |phase, at| Some(phase) == window.phase && is_near(at));
            (start + WINDOW * number as u64, located)
        };
        windows.into_iter().enumerate().map(locate).filter(|window| window.1 != Located::default()).collect()
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

/// What the probes of a load tell of its path.
struct Paths {
    /// Round trips to the server by probes of one kind, when these were sent, and in which part of the load.
    server: Vec<(Phase, Time, Span)>,
    /// Of each router, the nearest first.
    hops: Vec<Hop>,
}

/// Answered probes of a router, each with that of the server that was sent together with it.
struct Hop {
    /// Those of the load, when they were sent, and in which part of it.
    pairs: Vec<(Phase, Time, Pair)>,
    /// Those before and after any load while nothing waited.
    idle: Vec<Pair>,
}

impl Outcome {
    /// The probes of the server are ICMP echoes, or requests if there were no echoes both before the load and under it.
    fn paths(&self, load: &Load) -> Paths {
        let of = |wanted: Probe| {
            let answered = |latency: &Latency| Some((latency.at, latency.rtt?));
            self.latencies.iter().filter(move |latency| latency.probe == wanted).filter_map(answered)
        };
        let in_load = |(at, rtt)| Some((load.phase(at)?, at, rtt));
        let has = |wanted: Phase| of(Probe::Echo).filter_map(in_load).any(|(phase, ..)| phase == wanted);
        let kind = if has(Phase::Before) && has(Phase::During) { Probe::Echo } else { Probe::Request };
        let server: Vec<_> = of(kind).filter_map(in_load).collect();
        let shortest = server.iter().filter(|(phase, ..)| *phase == Phase::Before).map(|&(.., rtt)| rtt).min();
        let times: BTreeMap<Time, Span> = of(kind).collect();
        let together = |at: Time| {
            let near = [times.range(..=at).next_back(), times.range(at..).next()].into_iter().flatten();
            let apart = near.map(|(&other, &rtt)| (other.max(at).saturating_since(other.min(at)), rtt));
            apart.min().filter(|(apart, _)| *apart <= TOGETHER).map(|(_, rtt)| rtt)
        };
        let is_idle = |at: Time| {
            let phases = self.loads.iter().filter_map(|load| load.phase(at));
            phases.fold(None, |_, phase| Some(phase != Phase::During)) == Some(true)
        };
        let is_short = |rtt: Span| shortest.is_some_and(|shortest| rtt.saturating_sub(shortest) < LEAST_WAIT);
        let hop = |limit: u8| {
            let pair = |(at, router)| Some((at, Pair { router, server: together(at)? }));
            let pairs: Vec<(Time, Pair)> = of(Probe::Hop(limit)).filter_map(pair).collect();
            let idle = pairs.iter().filter(|(at, pair)| is_idle(*at) && is_short(pair.server)).map(|&(_, pair)| pair);
            let of_load = |&(at, pair): &(Time, Pair)| Some((load.phase(at)?, at, pair));
            Hop { idle: idle.collect(), pairs: pairs.iter().filter_map(of_load).collect() }
        };
        let limit = |latency: &Latency| if let Probe::Hop(limit) = latency.probe { Some(limit) } else { None };
        let limits: BTreeSet<u8> = self.latencies.iter().filter_map(limit).collect();
        Paths { server, hops: limits.into_iter().map(hop).collect() }
    }
}

impl Paths {
    /// Locates queues by times in the host, round trips to the server, and the pairs that are chosen.
    fn locate(&self, host: Vec<Span>, under: Vec<Span>, is_chosen: impl Fn(Phase, Time) -> bool) -> Located {
        let pairs = |hop: &Hop| {
            let chosen = hop.pairs.iter().filter(|(phase, at, _)| is_chosen(*phase, *at));
            Pairs { idle: hop.idle.clone(), under: chosen.map(|&(.., pair)| pair).collect() }
        };
        let before = self.server.iter().filter(|(phase, ..)| *phase == Phase::Before).map(|&(.., rtt)| rtt);
        let server = Loaded { before: before.collect(), under };
        Located::of(&Measured { host, hops: self.hops.iter().map(pairs).collect(), server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::kernel::{Passage, Remote, State};
    use observe::progress::Samples;
    use wire::tcp_info::TcpInfo;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// An upload that begins after a second.
    fn upload(congestion: &str) -> Flow {
        Flow {
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
                    notsent_bytes: 1,
                    pacing_rate,
                    delivery_rate: 500_000,
                    busy_time: Some(ms * 1000),
                    rwnd_limited: Some(0),
                    sndbuf_limited: Some(0),
                    ..TcpInfo::default()
                };
                State { at: at(1000 + ms), raw: Box::default(), info, bbr: None, delivered: ms }
            };
            let mut flow = Flow { samples: vec![sample(0), sample(500), sample(1000)], ..upload(congestion) };
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
        let flow = Flow {
            passages: vec![Passage { written: at(5_500), buffered: None, queued: Some(ms(4)), travelled: None }],
            ..upload("cubic")
        };
        let load = Load { times: LoadTimes::of_ms([0, 2_800, 3_000, 13_000, 15_000]), flows: vec![flow] };
        let probe = |ms_at, probe, rtt| Latency { at: at(ms_at), probe, rtt: Some(ms(rtt)) };
        // Requests before and after each probe of the router; the nearer one is sent together with it.
        let pair = |second: u64, router: u64, server: u64| {
            let at = second * 1_000 + 200;
            let server = server + second % 2;
            [(at - 100, Probe::Request, server), (at, Probe::Hop(2), router), (at + 60, Probe::Request, server)]
        };
        let mut latencies: Vec<_> = (0..3).flat_map(|second| pair(second, 20, 30)).collect();
        // In the warm-up.
        latencies.extend([(2_900, Probe::Hop(2), 500), (2_900, Probe::Request, 900)]);
        latencies.extend((3..8).flat_map(|second| pair(second, second * 100, second * 100 + 10)));
        latencies.extend((8..13).flat_map(|second| pair(second, 22, 230)));
        // A router that is slow now and then.
        latencies.extend([(13_200, Probe::Hop(2), 21), (13_200, Probe::Request, 30)]);
        let latencies = latencies.into_iter().map(|(at, kind, rtt)| probe(at, kind, rtt)).collect();
        let outcome = Outcome { loads: vec![load.clone()], latencies, finished: 1, ..Outcome::default() };
        let waits = outcome.waits(&load);
        let parts = |second: u64| {
            let located = waits.iter().find(|(time, _)| *time == at(second * 1_000)).expect("the second has probes").1;
            [located.host, located.modem, located.network, located.total].map(|span| span.map(Span::as_millis))
        };
        // Nothing waits, which no pair of probes can divide.
        assert_eq!(parts(0), [None, None, None, Some(0)]);
        // The queue in the modem grows by 100 ms from one second to the next.
        let [host, modem, network, total] = parts(5);
        assert_eq!((host, network, total), (Some(4), None, Some(481)));
        assert!(modem.is_some_and(|modem| (474..=477).contains(&modem)), "{modem:?}");
        let [_, modem, network, total] = parts(11);
        assert!(modem.is_none_or(|modem| modem <= 2) && total == Some(201), "{modem:?} {total:?}");
        assert!(network.is_some_and(|network| (195..=201).contains(&network)), "{network:?}");
        assert_eq!(parts(13), [None, None, None, Some(0)]);
        let rows: Vec<_> = outcome.tables().waits.iter().map(|row| (row.t_s, row.worst.to_owned())).collect();
        assert_eq!([&rows[5], &rows[11]], [&(5.0, "modem".to_owned()), &(11.0, "network".to_owned())]);
        let tables = outcome.tables();
        assert!(tables.waits.iter().all(|row| row.modem_ms <= row.total_ms && row.network_ms <= row.total_ms));
        // The load as a whole: the modem's queue was there for half of the time, and that behind it for the other half.
        assert_eq!(outcome.located(&load).worst(ms(10)), None);
    }

    #[test]
    fn a_probe_of_the_server_long_before_that_of_the_router_is_not_its_pair() {
        let load = Load { times: LoadTimes::of_ms([0, 3_000, 3_000, 9_000, 9_000]), flows: Vec::new() };
        let of = |apart: u64| {
            let both = |second: u64| {
                let rtt = |ms| Some(Span::from_millis(ms));
                [
                    Latency { at: at(second * 1_000), probe: Probe::Request, rtt: rtt(30) },
                    Latency { at: at(second * 1_000 + apart), probe: Probe::Hop(2), rtt: rtt(20) },
                ]
            };
            let loads = vec![load.clone()];
            let latencies = (0..9).flat_map(both).collect();
            Outcome { loads, latencies, ..Outcome::default() }.located(&load).behind.is_some()
        };
        assert_eq!([0, 100, 101].map(of), [true, true, false]);
    }
}
