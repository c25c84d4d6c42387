//! What an outcome does not have, and why.

use std::collections::BTreeMap;

use observe::kernel::{Flow, Remote, Way};

use crate::kinds::Probe;
use crate::outcome::{LEAST_WAIT, Load, Outcome, Phase};

impl Outcome {
    /// Returns what is missing in the results, and why: what a source did not give ([`Outcome::missing`]), and what the flows, the
    /// kernel or the path do not tell. A reason that does not concern all loads names those that it does.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = self.missing.clone();
        reasons.extend(self.untold().into_iter().map(str::to_owned));
        let mut of_loads: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (number, load) in self.loads.iter().enumerate() {
            for reason in self.unmeasured(load) {
                of_loads.entry(reason).or_default().push(number.to_string());
            }
        }
        reasons.extend(of_loads.into_iter().map(|(reason, loads)| match loads.len() {
            all if all == self.loads.len() => reason.to_owned(),
            _ => format!("{reason} (load {})", loads.join(", ")),
        }));
        if self.proxy_signs().is_none() {
            reasons.push(
                "whether a proxy on the path answers for the server: too few requests to its program were answered, or the kernel \
                 tells no round trip of their connection; with TLS, RMBT alone has requests"
                    .to_owned(),
            );
        }
        reasons
    }

    /// What this end does not know of the flows.
    fn untold(&self) -> Vec<&'static str> {
        let flows = || self.loads.iter().flat_map(|load| &load.flows);
        let uploads = || flows().filter(|flow| flow.way == Way::Up);
        let infos = || uploads().filter_map(|flow| Some(&flow.samples.last()?.info));
        let mut reasons = Vec::new();
        let told_of_downloads = || flows().filter(|flow| flow.way == Way::Down).map(|flow| &flow.remote);
        if told_of_downloads().any(|remote| remote.samples.is_empty()) {
            reasons.push(
                "downloads: windows, bytes in flight, retransmissions, timeouts, limits, BBR's state and the queue of the \
                 sender's host are known at the server alone, which tells some of them with ndt7 and throughput1",
            );
        } else if told_of_downloads().any(|remote| remote.is_partial) {
            reasons.push(
                "downloads: windows, bytes in flight, retransmissions, timeouts, BBR's state and the queue of the sender's host \
                 are known at the server, which does not tell them",
            );
        } else if told_of_downloads().next().is_some() {
            reasons.push(
                "downloads: timeouts, BBR's state and the queue of the sender's host are known at the server, which does not \
                 tell them",
            );
        }
        let uncounted = |remote: &Remote| remote.samples.last().is_some_and(|last| last.info.busy_time.is_none());
        if told_of_downloads().any(uncounted) {
            reasons.push("what limited downloads: the server does not tell it");
        }
        let uncontrolled = |way: Way| flows().any(|flow| flow.way == way && flow.control().is_none());
        if uncontrolled(Way::Down) {
            reasons.push("the congestion control of downloads: the server does not tell it");
        }
        if uncontrolled(Way::Up) {
            reasons.push("the congestion control of an upload: it failed before the kernel told it");
        }
        if uploads().next().is_none() {
            return reasons;
        }
        if uploads().any(|flow| !flow.samples.is_empty() && flow.under_way().next().is_none()) {
            reasons.push(
                "windows and bytes in flight of an upload: no sample fell between its beginning and its end; use a shorter \
                 --interval",
            );
        }
        if infos().any(|info| info.total_rto.is_none()) {
            reasons.push("timeouts: the kernel does not count them, as Linux 6.7 does");
        }
        if infos().any(|info| info.busy_time.is_none()) {
            reasons.push("what limited uploads: the kernel does not count it, as Linux 4.10 does");
        }
        if !uploads().any(|flow| flow.congestion == "bbr") {
            reasons.push("BBR's state: no upload is sent with BBR");
        } else if uploads().any(lacks_bbr) {
            reasons.push("BBR's state: the kernel does not tell it");
        }
        if !uploads().flat_map(|flow| &flow.passages).any(|passage| passage.queued.is_some()) {
            reasons.push("the host's queue: the kernel stamped no data of uploads");
        }
        reasons
    }

    /// What the probes of a load do not tell.
    fn unmeasured(&self, load: &Load) -> Vec<&'static str> {
        let mut reasons = unknown(load);
        let rtts = self.to_server(load).map(|(_, rtts)| rtts).unwrap_or_default();
        let unanswered = [
            "round trips before the load: no probe of the server was answered then; --idle is the time for it",
            "round trips under load: no probe of the server was answered then",
            "round trips after the load: no probe of the server was answered then; --idle is the time for it",
        ];
        reasons.extend(unanswered.into_iter().zip(rtts).filter(|(_, rtts)| rtts.is_empty()).map(|(reason, _)| reason));
        if self.responsiveness(load).is_none() {
            let has = |wanted: Probe| !self.rtts(load, Phase::During, |probe| probe == wanted).is_empty();
            reasons.push(if !has(Probe::Request) {
                "round trips a minute: no request to the server's program was answered under load; with TLS, RMBT alone has them"
            } else if !has(Probe::Handshake) {
                "round trips a minute: no TCP handshake was answered under load"
            } else {
                "round trips a minute: the kernel tells no round-trip time of the flows"
            });
        }
        let located = self.located(load);
        let is_long = located.total.is_some_and(|total| total >= LEAST_WAIT);
        if located.behind.is_none() {
            reasons.push(
                "the queues of modem and network: no router behind the modem, 2 ms away or more, answered two probes under load and \
                 two while nothing waited, sent together with answered probes of the server",
            );
        } else if is_long && located.network.is_none() {
            reasons.push("the network's queue: not longer than the uncertainty of the probes of routers");
        }
        if is_long && located.behind.is_some() && located.modem.is_none() {
            reasons.push("the modem's queue: not longer than the uncertainty of the probes of routers");
        }
        reasons
    }
}

/// What is not known of the bytes of a load.
fn unknown(load: &Load) -> Vec<&'static str> {
    let ways = [
        (Way::Down, "throughput of downloads: none reached its end"),
        (Way::Up, "throughput of uploads: none reached its end"),
    ];
    let lacks = |way: Way| load.has(way) && load.throughput(way).is_none();
    let mut reasons: Vec<_> = ways.into_iter().filter(|(way, _)| lacks(*way)).map(|(_, reason)| reason).collect();
    if load.flows.iter().any(|flow| flow.acknowledged) {
        reasons.push(
            "the server's count of an upload: it did not come; bytes are those that were acknowledged to this end",
        );
    }
    if load.flows.iter().any(|flow| flow.total().is_none()) {
        reasons.push("bytes of a flow: its transfer did not begin, or neither the server nor the kernel counted it");
    }
    reasons
}

/// Whether the kernel does not tell the state of an upload with BBR.
fn lacks_bbr(flow: &Flow) -> bool {
    flow.congestion == "bbr" && flow.samples.last().is_some_and(|sample| sample.bbr.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Latency;
    use crate::outcome::LoadTimes;
    use observe::kernel::{Flow, Remote, Way};
    use observe::kernel::{Passage, State};
    use observe::progress::Samples;
    use record::Table;
    use units::{Span, Time};
    use wire::tcp_info::{BbrInfo, TcpInfo};

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn flow(way: Way, congestion: &str, info: TcpInfo) -> Flow {
        let queued = Some(Span::from_millis(1));
        let mut bytes = Samples::default();
        bytes.record(Span::ZERO, 0);
        bytes.finish(Span::from_secs(1), 1_000_000);
        Flow {
            way,
            number: 0,
            congestion: congestion.into(),
            start: at(1000),
            bytes,
            acknowledged: false,
            ended: None,
            before: None,
            samples: vec![State { at: at(1500), raw: Box::default(), info, bbr: None, delivered: 9 }],
            remote: Remote::default(),
            passages: vec![Passage { written: at(1500), buffered: None, queued, travelled: None }],
            failure: None,
        }
    }

    /// The state of a sender in a kernel that counts everything.
    fn told() -> TcpInfo {
        TcpInfo {
            rtt: 1,
            snd_cwnd: 10,
            snd_mss: 1000,
            total_retrans: 2,
            total_rto: Some(1),
            notsent_bytes: 1,
            busy_time: Some(1),
            rwnd_limited: Some(0),
            sndbuf_limited: Some(0),
            ..TcpInfo::default()
        }
    }

    fn outcome(flows: Vec<Vec<Flow>>, probes: &[Probe]) -> Outcome {
        let finished = flows.len();
        let times = LoadTimes::of_ms([0, 1000, 1000, 2000, 3000]);
        let loads = flows.into_iter().map(|flows| Load { times, flows });
        let latency = |probe: &Probe, ms| Latency { at: at(ms), probe: *probe, rtt: Some(Span::from_millis(5)) };
        Outcome {
            loads: loads.collect(),
            latencies: [300, 500, 1300, 1500, 2500]
                .iter()
                .flat_map(|&ms| probes.iter().map(move |probe| latency(probe, ms)))
                .collect(),
            finished,
            ..Outcome::default()
        }
    }

    const ALL: [Probe; 3] = [Probe::Hop(2), Probe::Request, Probe::Handshake];

    #[test]
    fn whatever_is_missing_has_a_reason() {
        let bbr = Flow {
            samples: vec![State {
                at: at(1500),
                raw: Box::default(),
                info: told(),
                bbr: Some(BbrInfo { bandwidth: 1, min_rtt: None, pacing_gain: 1.0, cwnd_gain: 2.0 }),
                delivered: 9,
            }],
            ..flow(Way::Up, "bbr", told())
        };
        assert_eq!(outcome(vec![vec![bbr]], &ALL).reasons(), [""; 0]);
        let of = |flow: Flow, probes: &[Probe]| outcome(vec![vec![flow]], probes).reasons();
        assert_eq!(of(flow(Way::Up, "bbr", told()), &ALL), ["BBR's state: the kernel does not tell it"]);
        assert_eq!(of(flow(Way::Up, "cubic", told()), &ALL), ["BBR's state: no upload is sent with BBR"]);
        let old = TcpInfo { total_rto: None, busy_time: None, ..told() };
        let reasons = of(Flow { passages: Vec::new(), ..flow(Way::Up, "cubic", old) }, &ALL);
        let begin = |begin: &str| reasons.iter().any(|reason| reason.starts_with(begin));
        assert!(begin("timeouts: ") && begin("what limited uploads: ") && begin("the host's queue: "), "{reasons:?}");
        let reasons = of(flow(Way::Up, "cubic", told()), &[]);
        let begin = |begin: &str| reasons.iter().any(|reason| reason.starts_with(begin));
        assert!(begin("round trips a minute: no request") && begin("the queues of modem and network: "), "{reasons:?}");
    }

    #[test]
    fn without_time_for_probes_alone_round_trips_before_and_after_have_a_reason() {
        let mut outcome = outcome(vec![vec![flow(Way::Up, "cubic", told())]], &ALL);
        let unanswered = |outcome: &Outcome| {
            let reasons = outcome.reasons().into_iter();
            let name = |reason: String| Some(reason.strip_prefix("round trips ")?.split_once(": ")?.0.to_owned());
            reasons.filter_map(name).collect::<Vec<_>>()
        };
        assert_eq!(unanswered(&outcome), [""; 0]);
        outcome.loads[0].times = LoadTimes::of_ms([1000, 1000, 1000, 2000, 2000]);
        assert_eq!(unanswered(&outcome), ["after the load", "before the load"]);
        outcome.latencies.clear();
        assert_eq!(unanswered(&outcome), ["a minute", "after the load", "before the load", "under load"]);
    }

    #[test]
    fn samples_of_a_flows_beginning_and_end_alone_tell_no_window_and_say_why() {
        let sample = |ms: u64, unacked| {
            let info = TcpInfo { unacked, ..told() };
            State { at: at(ms), raw: Box::default(), info, bbr: None, delivered: 9 }
        };
        let of = |samples: Vec<State>| {
            let flow = Flow { samples, ended: Some(at(2000)), ..flow(Way::Up, "cubic", told()) };
            let outcome = outcome(vec![vec![flow]], &ALL);
            let tables = outcome.tables();
            let row = tables.flows.row(0);
            let is_told = outcome.reasons().iter().any(|reason| reason.starts_with("windows and bytes in flight"));
            let windows = (row.mean_in_flight_bytes, row.max_in_flight_bytes, row.mean_cwnd_bytes, row.max_cwnd_bytes);
            (windows, row.retransmitted, is_told)
        };
        assert_eq!(of(vec![sample(1000, 0), sample(2000, 0)]), ((None, None, None, None), Some(2), true));
        let windows = (Some(7000.0), Some(7000), Some(10_000.0), Some(10_000));
        assert_eq!(of(vec![sample(1000, 0), sample(1500, 7), sample(2000, 0)]), (windows, Some(2), false));
    }

    #[test]
    fn a_reason_names_the_loads_that_it_concerns() {
        let down = flow(Way::Down, "", TcpInfo::default());
        let reasons = outcome(vec![vec![flow(Way::Up, "cubic", told())], vec![down]], &ALL).reasons();
        assert!(reasons[0].starts_with("downloads: "), "{reasons:?}");
        assert_eq!(reasons[1], "the congestion control of downloads: the server does not tell it");
        assert_eq!(reasons[3], "round trips a minute: the kernel tells no round-trip time of the flows (load 1)");
    }

    #[test]
    fn what_is_not_known_of_a_failed_flow_has_a_reason_and_is_not_zero() {
        let failure = Some("interrupted".to_owned());
        let cut = Flow { failure: failure.clone(), acknowledged: true, ..flow(Way::Up, "cubic", told()) };
        let bytes = Samples::default();
        let not_begun = Flow { failure, bytes, samples: Vec::new(), ..flow(Way::Down, "", TcpInfo::default()) };
        let outcome = outcome(vec![vec![cut, not_begun]], &ALL);
        let reasons = outcome.reasons();
        for begin in
            ["throughput of downloads: ", "throughput of uploads: ", "the server's count ", "bytes of a flow: "]
        {
            assert!(reasons.iter().any(|reason| reason.starts_with(begin)), "{begin} {reasons:?}");
        }
        let rows: Vec<_> = outcome.tables().flows.iter().map(|row| (row.flow.to_owned(), row.bytes)).collect();
        assert_eq!(rows, [("upload".to_owned(), 1_000_000)]);
    }

    #[test]
    fn what_the_kernel_or_this_end_does_not_know_is_missing_in_tables() {
        let old = TcpInfo { total_rto: None, ..told() };
        let flows =
            vec![vec![flow(Way::Up, "cubic", told()), flow(Way::Up, "cubic", old), flow(Way::Down, "", told())]];
        let tables = outcome(flows, &[]).tables();
        let [new, old, down] = [0, 1, 2].map(|row| tables.flows.row(row));
        assert_eq!((new.rtos, new.retransmitted, new.max_cwnd_bytes), (Some(1), Some(2), Some(10_000)));
        assert_eq!((old.rtos, old.retransmitted), (None, Some(2)));
        let counts = [down.segments_sent, down.retransmitted, down.rtos, down.max_cwnd_bytes, down.max_in_flight_bytes];
        assert_eq!((counts, down.mean_cwnd_bytes, down.mean_in_flight_bytes), ([None; 5], None, None));
        // Nobody at this end sees marks, losses on the way or what a sender undoes.
        assert_eq!((new.ce_marks, new.lost_packets, new.undos, new.dup_acks), (None, None, None, None));
        let sample = tables.samples.row(2);
        assert_eq!((sample.cwnd_bytes, sample.in_flight_bytes, sample.rto_ms, sample.lost), (None, None, None, None));
    }

    /// A download of a second with a sample each 250 ms at this end, whose server tells its sender's state at 200 and 800 ms.
    fn download(state: impl Fn(u64) -> TcpInfo) -> Flow {
        let sample = |ms: u64, info| State { at: at(ms), raw: Box::default(), info, bbr: None, delivered: ms };
        let here = TcpInfo { rcv_rtt: 50_000, ..TcpInfo::default() };
        let mut download = flow(Way::Down, "cubic", TcpInfo::default());
        download.samples = [1000, 1250, 1500, 1750, 2000].map(|ms| sample(ms, here)).to_vec();
        download.remote.samples = [200, 800].map(|ms| sample(1000 + ms, state(ms))).to_vec();
        download
    }

    /// The state of a sender that is always busy, for a quarter of the time because of the receive window.
    fn busy(ms: u64) -> TcpInfo {
        let counted = |micros: u64| Some(micros);
        TcpInfo { rtt: 30_000, busy_time: counted(ms * 1000), rwnd_limited: counted(ms * 250), ..told() }
    }

    #[test]
    fn a_download_has_what_its_server_tells_of_the_sender() {
        let outcome = outcome(vec![vec![download(busy)]], &ALL);
        let reasons = outcome.reasons();
        assert!(reasons[0].starts_with("downloads: timeouts, BBR's state and the queue"), "{reasons:?}");
        assert!(!reasons.iter().any(|reason| reason.starts_with("round trips")), "{reasons:?}");
        let tables = outcome.tables();
        // 60 000 ms a minute / 5 ms and / 30 ms.
        let of = tables.responsiveness.row(0);
        assert_eq!((of.direction, of.foreign_ms, of.loaded_ms), ("download", 5.0, 30.0));
        assert!((of.rpm - 7_000.0).abs() < 1e-6 && tables.responsiveness.len() == 1, "{of:?}");
        let flow = tables.flows.row(0);
        let limits = [flow.limited_app, flow.limited_cwnd, flow.limited_rwnd, flow.limited_pacing];
        let limits = limits.into_iter().chain([flow.limited_sndbuf, flow.limited_other]);
        for (share, expected) in limits.zip([0.0, 0.75, 0.25, 0.0, 0.0, 0.0]) {
            assert!(share.is_some_and(|share| (share - expected).abs() < 1e-9), "{flow:?}");
        }
        assert_eq!((flow.retransmitted, flow.max_cwnd_bytes, flow.rtos), (Some(2), Some(10_000), Some(1)));
        assert!(flow.rtt_p50_ms.is_some_and(|ms| (30.0..30.5).contains(&ms)), "{flow:?}");
        // A row has the latest message, if there was one.
        let rows: Vec<_> =
            tables.samples.iter().map(|row| (row.cwnd_bytes, row.srtt_ms, row.limit.to_owned())).collect();
        let known = (Some(10_000), Some(30.0), "cwnd".to_owned());
        assert_eq!(rows[0], (None, None, String::new()));
        assert_eq!(&rows[1..], [known.clone(), known.clone(), known.clone(), known]);
        // The kernel of this end is the receiver's.
        assert!(tables.tcp_info.len() == 5 && tables.tcp_info.iter().all(|row| row.cwnd == 0));
    }

    #[test]
    fn eleven_fields_of_a_download_tell_its_limits_and_round_trips_alone() {
        let part = |ms: u64| TcpInfo { snd_cwnd: 0, snd_mss: 0, total_retrans: 0, ..busy(ms) };
        let mut partial = download(part);
        (partial.remote.is_partial, partial.remote.lacks_state) = (true, true);
        let outcome = outcome(vec![vec![partial]], &ALL);
        let reasons = outcome.reasons();
        assert!(
            reasons[0].starts_with("downloads: windows") && reasons[0].ends_with("does not tell them"),
            "{reasons:?}"
        );
        let tables = outcome.tables();
        let flow = tables.flows.row(0);
        assert!(flow.limited_rwnd.is_some_and(|share| (share - 0.25).abs() < 1e-9), "{flow:?}");
        assert_eq!((flow.retransmitted, flow.max_cwnd_bytes, flow.rtos), (None, None, None));
        let sample = tables.samples.row(4);
        assert_eq!((sample.cwnd_bytes, sample.srtt_ms, sample.limit, sample.state), (None, Some(30.0), "cwnd", ""));
        // A server that does not count says nothing of limits.
        let uncounted = |ms: u64| TcpInfo { busy_time: None, rwnd_limited: None, sndbuf_limited: None, ..busy(ms) };
        let outcome = super::tests::outcome(vec![vec![download(uncounted)]], &[]);
        assert!(outcome.tables().responsiveness.is_empty(), "there are no probes");
        assert_eq!(outcome.tables().flows.row(0).limited_cwnd, None);
        assert!(outcome.reasons().iter().any(|reason| reason.starts_with("what limited downloads: ")));
    }
}
