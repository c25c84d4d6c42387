//! A measurement on the dashboard: each flow by itself, and the round-trip times of probes.

use meter::{FlowGlance, Glance, Plan, Probe, ends, flow_name};
use observe::kernel::Way;
use observe::limits::Limits;
use record::tables::{FlowRow, LatencyRow, SampleRow};
use record::{Tables, ms};
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

/// The flows of the present load. A measurement has fewer than a page shows.
pub(super) struct Flows {
    /// Whether congestion controls tell flows of a direction apart, as in the results.
    has_several_controls: bool,
    load: usize,
    known: BTreeMap<(Way, usize), Known>,
}

/// What is known of a flow.
struct Known {
    last: FlowGlance,
    /// Where its sender's time went, if that is at this end.
    limits: Limits,
    /// The time and the bytes of the glance that was shown last.
    shown: (Time, u64),
}

impl Known {
    fn new(flow: &FlowGlance) -> Known {
        let last = FlowGlance { at: flow.start, sender: flow.sender.map(|[first, _]| [first, first]), ..flow.clone() };
        Known { last, limits: Limits::default(), shown: (flow.start, 0) }
    }

    fn add(&mut self, flow: &FlowGlance) {
        let (since, before) = (self.last.at, self.last.sender.map(|[_, now]| now));
        if let Some([_, now]) = &flow.sender
            && flow.at > since
        {
            let span = flow.at.saturating_since(since);
            self.limits = self.limits.plus(Limits::between(before.as_ref(), now, span, flow.is_paced));
        }
        self.last = flow.clone();
    }
}

impl Flows {
    pub(super) fn new(plan: &Plan) -> Flows {
        let controls = &plan.congestion[..plan.congestion.len().min(plan.flows)];
        let has_several_controls = controls.windows(2).any(|two| two[0] != two[1]);
        Flows { has_several_controls, load: 0, known: BTreeMap::new() }
    }

    /// Takes note of a glance; what limited a flow is counted from one to the next.
    pub(super) fn add(&mut self, glance: &Glance) {
        if self.load != glance.load {
            self.load = glance.load;
            self.known.clear();
        }
        for flow in &glance.flows {
            self.known.entry((flow.way, flow.number)).or_insert_with(|| Known::new(flow)).add(flow);
        }
    }

    /// The rows of flows that have gone on since the last call, and of the latest probe. `glance` is the latest one, at `t_s` of the
    /// page.
    pub(super) fn rows(&mut self, t_s: f64, glance: &Glance) -> Tables {
        let mut rows = Tables::default();
        if let Some(rtt) = glance.rtt {
            let phase = if glance.ways.is_empty() { "before" } else { "during" };
            rows.latencies.push(&LatencyRow {
                t_s,
                probe: Probe::Request.name(),
                phase,
                rtt_ms: Some(ms(rtt)),
                point: 0,
                run: 0,
                // One load is shown at a time, and these probes have no hop limit.
                hop: None,
            });
        }
        for Known { last: flow, limits, shown } in self.known.values_mut().filter(|known| known.last.at > known.shown.0)
        {
            let control = Some(flow.control.as_str()).filter(|name| !name.is_empty());
            let name = flow_name(flow.way, control.filter(|_| self.has_several_controls));
            let conn = flow.number as u32;
            let mbps =
                |bytes: u64, since: Time| Rate::over(Bytes::new(bytes), flow.at.saturating_since(since)).as_mbps();
            let (since, had) = std::mem::replace(shown, (flow.at, flow.bytes));
            let state = flow.sender.map(|[_, now]| now);
            let bytes = |segments: u32| state.map(|state| u64::from(segments) * u64::from(state.snd_mss));
            rows.samples.push(&SampleRow {
                flow: &name,
                conn,
                t_s,
                goodput_mbps: mbps(flow.bytes.saturating_sub(had), since),
                cwnd_bytes: state.and_then(|state| bytes(state.snd_cwnd)),
                ssthresh_bytes: state.and_then(|state| bytes(state.ssthresh()?)),
                in_flight_bytes: state.and_then(|state| bytes(state.in_flight())),
                srtt_ms: flow.rtt.map(ms),
                point: 0,
                run: 0,
                // Not shown while a measurement runs.
                throughput_mbps: None,
                cwnd_pep_bytes: None,
                cwnd_e2e_bytes: None,
                rtt_ms: None,
                owd_ms: None,
                lost: None,
                rto_ms: None,
                pacing_mbps: None,
                limit: "",
                state: "",
            });
            let second = |at: Time| t_s - (glance.at.as_secs_f64() - at.as_secs_f64());
            rows.flows.push(&flow_row((&name, control), flow, limits, [flow.start, flow.at].map(second)));
        }
        rows
    }
}

/// The row of a flow: its means so far.
fn flow_row<'a>(
    (name, control): (&'a str, Option<&'a str>),
    flow: &'a FlowGlance,
    limits: &Limits,
    [start_s, end_s]: [f64; 2],
) -> FlowRow<'a> {
    let (from, to) = ends(flow.way);
    let mean = Rate::over(Bytes::new(flow.bytes), flow.at.saturating_since(flow.start)).as_mbps();
    let [limited_app, limited_cwnd, limited_rwnd, limited_pacing, limited_sndbuf, limited_other] =
        limits.shares().map_or([None; 6], |shares| shares.map(Some));
    FlowRow {
        flow: name,
        conn: flow.number as u32,
        transport: "tcp",
        cc: control,
        from,
        to,
        start_s,
        measured_from_s: start_s,
        measured_to_s: end_s,
        bytes: flow.bytes,
        goodput_mbps: mean,
        throughput_mbps: mean,
        retransmitted: flow.sender.map(|[first, now]| u64::from(now.total_retrans.saturating_sub(first.total_retrans))),
        limited_app,
        limited_cwnd,
        limited_rwnd,
        limited_pacing,
        limited_sndbuf,
        limited_other,
        point: 0,
        run: 0,
        // Not shown while a measurement runs.
        end_s: None,
        completed: false,
        completion_s: None,
        rtt_min_ms: None,
        rtt_p5_ms: None,
        rtt_p50_ms: None,
        rtt_mean_ms: None,
        rtt_p95_ms: None,
        rtt_p99_ms: None,
        rtt_max_ms: None,
        owd_p5_ms: None,
        owd_p25_ms: None,
        owd_p50_ms: None,
        owd_p75_ms: None,
        owd_p95_ms: None,
        segments_sent: None,
        retrans_fast: None,
        retrans_rto: None,
        retrans_tlp: None,
        retrans_control: None,
        rtos: None,
        undos: None,
        dup_acks: None,
        max_dup_acks: None,
        ce_marks: None,
        lost_packets: None,
        jitter_ms: None,
        mean_cwnd_bytes: None,
        max_cwnd_bytes: None,
        mean_in_flight_bytes: None,
        max_in_flight_bytes: None,
        teid: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;
    use wire::tcp_info::TcpInfo;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn flows(has_several_controls: bool) -> Flows {
        Flows { has_several_controls, load: 0, known: BTreeMap::new() }
    }

    /// A flow that began after a second. Of an upload, its sender was busy all the time and waited for the receiver so long.
    fn flow(way: Way, number: usize, ms: u64, bytes: u64, waited_ms: u64) -> FlowGlance {
        let info = |busy_ms: u64, waited_ms: u64| TcpInfo {
            snd_cwnd: 10,
            snd_mss: 1_000,
            unacked: 4,
            notsent_bytes: 1,
            busy_time: Some(busy_ms * 1_000),
            rwnd_limited: Some(waited_ms * 1_000),
            sndbuf_limited: Some(0),
            ..TcpInfo::default()
        };
        FlowGlance {
            way,
            number,
            control: "cubic".into(),
            is_paced: false,
            start: at(1_000),
            at: at(ms),
            bytes,
            rtt: Some(Span::from_millis(20)),
            sender: (way == Way::Up).then(|| [info(0, 0), info(ms - 1_000, waited_ms)]),
        }
    }

    fn glance(load: usize, ms: u64, flows: Vec<FlowGlance>) -> Glance {
        let ways = flows.first().map(|flow| flow.way).into_iter().collect();
        Glance { load, at: at(ms), ways, bytes: 0, flows, rtt: None }
    }

    #[test]
    fn each_flow_has_its_rate_window_and_limits() {
        let mut flows = flows(false);
        let first = [flow(Way::Up, 0, 1_500, 500_000, 0), flow(Way::Up, 1, 1_500, 125_000, 0)];
        flows.add(&glance(0, 1_500, first.to_vec()));
        let rows = flows.rows(11.5, &glance(0, 1_500, Vec::new()));
        let samples: Vec<_> = rows.samples.iter().map(|row| (row.flow, row.conn, row.goodput_mbps)).collect();
        assert_eq!(samples, [("upload", 0, 8.0), ("upload", 1, 2.0)]);
        let row = rows.samples.row(1);
        assert_eq!((row.cwnd_bytes, row.in_flight_bytes, row.srtt_ms), (Some(10_000), Some(4_000), Some(20.0)));
        // What comes between two looks of the page counts, too.
        flows.add(&glance(0, 1_750, vec![flow(Way::Up, 0, 1_750, 500_000, 250)]));
        let second = glance(0, 2_000, vec![flow(Way::Up, 0, 2_000, 1_000_000, 250)]);
        flows.add(&second);
        let rows = flows.rows(12.0, &second);
        assert_eq!((rows.samples.row(0).goodput_mbps, rows.samples.iter().len()), (8.0, 1), "the other one has ended");
        let row = rows.flows.row(0);
        assert_eq!((row.start_s, row.measured_to_s, row.bytes, row.goodput_mbps), (11.0, 12.0, 1_000_000, 8.0));
        assert_eq!((row.limited_rwnd, row.limited_cwnd, row.limited_app), (Some(0.25), Some(0.75), Some(0.0)));
    }

    #[test]
    fn what_only_a_server_knows_is_missing() {
        let mut flows = flows(false);
        let mut look = glance(0, 2_000, vec![flow(Way::Down, 0, 2_000, 1_000_000, 0)]);
        look.rtt = Some(Span::from_millis(30));
        flows.add(&look);
        let rows = flows.rows(2.0, &look);
        let (sample, flow) = (rows.samples.row(0), rows.flows.row(0));
        assert_eq!((sample.flow, sample.goodput_mbps, sample.srtt_ms), ("download", 8.0, Some(20.0)));
        assert_eq!((sample.cwnd_bytes, sample.in_flight_bytes, flow.limited_cwnd), (None, None, None));
        let probe = rows.latencies.row(0);
        assert_eq!((probe.probe, probe.phase, probe.rtt_ms), ("request", "during", Some(30.0)));
    }

    #[test]
    fn loads_begin_anew_and_congestion_controls_have_names_of_their_own() {
        let mut flows = flows(true);
        let bbr = FlowGlance { control: "bbr".into(), ..flow(Way::Up, 1, 2_000, 1_000_000, 0) };
        flows.add(&glance(0, 2_000, vec![flow(Way::Up, 0, 2_000, 1_000_000, 0), bbr]));
        let rows = flows.rows(2.0, &glance(0, 2_000, Vec::new()));
        assert_eq!(rows.samples.iter().map(|row| row.flow).collect::<Vec<_>>(), ["upload-cubic", "upload-bbr"]);
        // The flow of the next load has the same number.
        let next = FlowGlance { start: at(5_000), ..flow(Way::Up, 0, 6_000, 250_000, 0) };
        flows.add(&glance(1, 6_000, vec![next]));
        let rows = flows.rows(6.0, &glance(1, 6_000, Vec::new()));
        assert_eq!(rows.samples.iter().map(|row| row.goodput_mbps).collect::<Vec<_>>(), [2.0]);
    }
}
