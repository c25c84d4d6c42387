//! What is measured of a flow: counters, distributions, and where its time went.
//!
//! A flow's connections are counted together, those that have ended and those that live. At the end of the warm-up the
//! meter remembers what had been counted by then, and [`Meter::row`] reports the difference.

use super::RunId;
use aqm::Ecn;
use cc::multi_domain::{CWND_E2E, CWND_PEP};
use record::tables::{Delays, FlowRow, SampleRow};
use record::{Distribution, ms};
use scenario::Transport;
use tcp::{Limit, Snapshot, Stats};
use units::{Bytes, Rate, Span, Time};

/// Counters that only grow. The spans are in the order of [`Limit::ALL`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) received: u64,
    arrived: u64,
    marked: u64,
    lost: u64,
    sent: u64,
    fast: u64,
    timeout: u64,
    probe: u64,
    control: u64,
    timeouts: u64,
    undos: u64,
    dup_acks: u64,
    /// The most in succession, of any connection.
    dup_acks_longest: u64,
    limited: [Span; Limit::ALL.len()],
    /// Integrals over the time that the sender was connected: cwnd and flight in byte-seconds.
    cwnd_area: f64,
    flight_area: f64,
    connected: Span,
}

impl Totals {
    fn add(&mut self, stats: &Stats, limited: [Span; Limit::ALL.len()]) {
        self.sent += stats.data_segments_sent;
        self.fast += stats.retransmitted_fast;
        self.timeout += stats.retransmitted_timeout + stats.retransmitted_syn;
        self.probe += stats.retransmitted_probe;
        self.control += stats.retransmitted_syn + stats.retransmitted_fin;
        self.timeouts += stats.timeouts;
        self.undos += stats.undone_dsack + stats.undone_timestamp + stats.undone_frto;
        self.dup_acks += stats.dup_acks_received;
        self.dup_acks_longest = self.dup_acks_longest.max(stats.dup_acks_longest);
        for (sum, span) in self.limited.iter_mut().zip(limited) {
            *sum += span;
        }
    }
}

/// The state of a sender that the areas are counted from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    since: Time,
    cwnd: u64,
    flight: u64,
}

/// The meter of a flow.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Counted of connections that have ended, and what is counted outside connections.
    pub(crate) totals: Totals,
    /// What had been counted at the end of the warm-up.
    before: Totals,
    measured_from: Time,
    rtts: Distribution,
    owds: Distribution,
    /// The newest sample since the last row of samples.
    latest_rtt: Option<Span>,
    /// The one-way delays of the data packets since the last row of samples: their sum and number.
    sampled_owds: (Span, u64),
    /// What had been lost at the last row of samples.
    sampled_lost: u64,
    max_cwnd: u64,
    max_flight: u64,
    /// Completion times of transfers that ended.
    pub(crate) completions: Vec<Span>,
    /// `totals.received` and `totals.arrived` at the previous sample.
    sampled_received: u64,
    sampled_arrived: u64,
    pub(crate) datagrams_sent: u64,
    last_arrival: Time,
}

impl Meter {
    /// A packet arrives at the receiving end; one of data had this delay.
    #[inline]
    pub(crate) fn arrive(&mut self, len: u32, ecn: Ecn, delay: Option<Span>, now: Time) {
        self.totals.arrived += u64::from(len);
        self.totals.marked += u64::from(ecn == Ecn::Ce);
        if let Some(delay) = delay {
            self.owds.record(delay);
            self.sampled_owds = (self.sampled_owds.0 + delay, self.sampled_owds.1 + 1);
            self.last_arrival = now;
        }
    }

    /// The sender took a round-trip time sample.
    #[inline]
    pub(crate) fn rtt(&mut self, rtt: Span) {
        self.rtts.record(rtt);
        self.latest_rtt = Some(rtt);
    }

    /// Payload arrived that the application can read: of TCP, in order.
    #[inline]
    pub(crate) fn receive(&mut self, bytes: u64) {
        self.totals.received += bytes;
    }

    /// The sender's window and flight are now these, in bytes.
    #[inline]
    pub(crate) fn level(&mut self, level: &mut Level, cwnd: u64, flight: u64, now: Time) {
        let span = now.saturating_since(level.since);
        if span > Span::ZERO && level.cwnd > 0 {
            // Signed numbers convert faster.
            let seconds = span.as_nanos() as i64 as f64 / 1e9;
            self.totals.cwnd_area += level.cwnd as i64 as f64 * seconds;
            self.totals.flight_area += level.flight as i64 as f64 * seconds;
            self.totals.connected += span;
        }
        *level = Level { since: now, cwnd, flight };
        self.max_cwnd = self.max_cwnd.max(cwnd);
        self.max_flight = self.max_flight.max(flight);
    }

    /// A connection's sender ended, with these counts.
    pub(crate) fn end(&mut self, stats: &Stats, limited: [Span; Limit::ALL.len()]) {
        self.totals.add(stats, limited);
    }

    fn all(&self, lost: u64, live: &[(&Stats, [Span; Limit::ALL.len()])]) -> Totals {
        let mut all = self.totals.clone();
        all.lost = lost;
        all.sent += self.datagrams_sent;
        for (stats, limited) in live {
            all.add(stats, *limited);
        }
        all
    }

    /// Ends the warm-up: the summary leaves out what was counted so far.
    pub(crate) fn begin(&mut self, now: Time, lost: u64, live: &[(&Stats, [Span; Limit::ALL.len()])]) {
        self.before = self.all(lost, live);
        self.measured_from = now;
        self.rtts = Distribution::new();
        self.owds = Distribution::new();
        (self.max_cwnd, self.max_flight) = (0, 0);
    }

    /// The distributions of the round-trip time samples, and of the data packets' one-way delays.
    pub(crate) fn delays(&self) -> (&Distribution, &Distribution) {
        (&self.rtts, &self.owds)
    }

    /// The flow's row of the table, counted from the later of `start` and the warm-up's end to `end`.
    pub(crate) fn row<'a>(
        &self,
        id: &Identity<'a>,
        life: &Life,
        lost: u64,
        live: &[(&Stats, [Span; Limit::ALL.len()])],
    ) -> FlowRow<'a> {
        let all = self.all(lost, live);
        let b = &self.before;
        let from = life.start.max(self.measured_from);
        let to = if life.completed { self.last_arrival.max(from) } else { life.now };
        let span = to - from;
        let mbps = |bytes: u64| Rate::over(Bytes::new(bytes), span).as_mbps();
        let limited = |i: Limit| (all.limited[i as usize] - b.limited[i as usize]).as_secs_f64();
        let total: f64 = Limit::ALL.iter().map(|&l| limited(l)).sum();
        let others = limited(Limit::Handshake) + limited(Limit::HostQueue);
        let [app, cwnd, rwnd, pacing, sndbuf] =
            [Limit::Application, Limit::Cwnd, Limit::ReceiveWindow, Limit::Pacing, Limit::SendBuffer].map(limited);
        let share = |part: f64| (total > 0.0).then(|| part / total);
        let delays = Delays::of(&self.rtts, &self.owds);
        let connected = (all.connected - b.connected).as_secs_f64();
        let mean = |area: f64| if connected > 0.0 { area / connected } else { 0.0 };
        let count = self.completions.len() as u64;
        FlowRow {
            point: id.point,
            run: id.run,
            flow: id.flow,
            conn: id.copy,
            transport: id.transport,
            cc: id.cc,
            from: id.from,
            to: id.to,
            start_s: life.start.as_secs_f64(),
            end_s: life.completed.then(|| self.last_arrival.as_secs_f64()),
            completed: life.completed,
            measured_from_s: from.as_secs_f64(),
            measured_to_s: to.as_secs_f64(),
            bytes: all.received - b.received,
            goodput_mbps: mbps(all.received - b.received),
            throughput_mbps: mbps(all.arrived - b.arrived),
            completion_s: (count > 0).then(|| {
                let sum: Span = self.completions.iter().copied().sum();
                sum.as_secs_f64() / count as f64
            }),
            segments_sent: Some(all.sent - b.sent),
            retransmitted: Some((all.fast + all.timeout + all.probe) - (b.fast + b.timeout + b.probe)),
            retrans_fast: Some(all.fast - b.fast),
            retrans_rto: Some(all.timeout - b.timeout),
            retrans_tlp: Some(all.probe - b.probe),
            retrans_control: Some(all.control - b.control),
            rtos: Some(all.timeouts - b.timeouts),
            undos: Some(all.undos - b.undos),
            dup_acks: Some(all.dup_acks - b.dup_acks),
            max_dup_acks: Some(all.dup_acks_longest),
            ce_marks: Some(all.marked - b.marked),
            lost_packets: Some(all.lost - b.lost),
            mean_cwnd_bytes: Some(mean(all.cwnd_area - b.cwnd_area)),
            max_cwnd_bytes: Some(self.max_cwnd),
            mean_in_flight_bytes: Some(mean(all.flight_area - b.flight_area)),
            max_in_flight_bytes: Some(self.max_flight),
            rtt_min_ms: delays.rtt_min_ms,
            rtt_p5_ms: delays.rtt_p5_ms,
            rtt_p50_ms: delays.rtt_p50_ms,
            rtt_mean_ms: delays.rtt_mean_ms,
            rtt_p95_ms: delays.rtt_p95_ms,
            rtt_p99_ms: delays.rtt_p99_ms,
            rtt_max_ms: delays.rtt_max_ms,
            owd_p5_ms: delays.owd_p5_ms,
            owd_p25_ms: delays.owd_p25_ms,
            owd_p50_ms: delays.owd_p50_ms,
            owd_p75_ms: delays.owd_p75_ms,
            owd_p95_ms: delays.owd_p95_ms,
            limited_app: share(app),
            limited_cwnd: share(cwnd),
            limited_rwnd: share(rwnd),
            limited_pacing: share(pacing),
            limited_sndbuf: share(sndbuf),
            limited_other: share(others),
            // A simulation has neither datagrams that tell it nor tunnels.
            jitter_ms: None,
            teid: None,
        }
    }

    /// The flow's row of samples: its newest connection's state, its goodput over `interval`. By now `lost` packets of it
    /// were lost.
    pub(crate) fn sample<'a>(
        &mut self,
        id: &Identity<'a>,
        now: Time,
        interval: Span,
        lost: u64,
        state: Option<&Snapshot>,
    ) -> SampleRow<'a> {
        let (owds, packets) = std::mem::take(&mut self.sampled_owds);
        let lost_before = std::mem::replace(&mut self.sampled_lost, lost);
        let bytes = self.totals.received - self.sampled_received;
        self.sampled_received = self.totals.received;
        let arrived = self.totals.arrived - std::mem::replace(&mut self.sampled_arrived, self.totals.arrived);
        let mbps = |bytes| Rate::over(Bytes::new(bytes), interval).as_mbps();
        let gauge = |name| {
            let state = state?;
            let &(_, segments) = state.gauges.iter().find(|(gauge, _)| *gauge == name)?;
            Some(segments * u64::from(state.mss))
        };
        SampleRow {
            point: id.point,
            run: id.run,
            flow: id.flow,
            conn: id.copy,
            t_s: now.as_secs_f64(),
            goodput_mbps: mbps(bytes),
            throughput_mbps: Some(mbps(arrived)),
            cwnd_bytes: Some(state.map_or(0, |s| u64::from(s.cwnd) * u64::from(s.mss))),
            cwnd_pep_bytes: gauge(CWND_PEP),
            cwnd_e2e_bytes: gauge(CWND_E2E),
            ssthresh_bytes: state
                .filter(|s| s.ssthresh < cc::INFINITE_SSTHRESH)
                .map(|s| u64::from(s.ssthresh) * u64::from(s.mss)),
            in_flight_bytes: Some(state.map_or(0, |s| u64::from(s.in_flight) * u64::from(s.mss))),
            srtt_ms: state.and_then(|s| s.srtt).map(ms),
            rtt_ms: self.latest_rtt.take().map(ms),
            owd_ms: (packets > 0).then(|| ms(owds) / packets as f64),
            lost: Some(lost - lost_before),
            rto_ms: Some(state.map_or(0.0, |s| ms(s.rto))),
            pacing_mbps: state.and_then(|s| s.pacing).map(Rate::as_mbps),
            limit: state.map_or("idle", |s| limit_name(s.limit)),
            state: state.map_or("closed", |s| state_name(s)),
        }
    }
}

/// Which flow a row is about.
pub(crate) struct Identity<'a> {
    pub(crate) point: u32,
    pub(crate) run: u32,
    pub(crate) flow: &'a str,
    pub(crate) copy: u32,
    pub(crate) transport: &'a str,
    pub(crate) cc: Option<&'a str>,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

impl<'a> Identity<'a> {
    /// The copy `copy` of the flow that the scenario describes as `flow`.
    pub(crate) fn new(RunId { point, run }: RunId, flow: &'a scenario::Flow, copy: u32) -> Identity<'a> {
        let (transport, cc) = match flow.transport() {
            Transport::Tcp => ("tcp", Some(flow.cc.name())),
            Transport::Udp => ("udp", None),
        };
        Identity { point, run, flow: &flow.name, copy, transport, cc, from: &flow.from, to: &flow.to }
    }
}

/// When a flow lived.
pub(crate) struct Life {
    pub(crate) start: Time,
    pub(crate) now: Time,
    pub(crate) completed: bool,
}

/// What to call a sender's state: recovery from loss hides what the controller would do otherwise.
fn state_name(state: &Snapshot) -> &'static str {
    match state.phase {
        cc::Phase::Open | cc::Phase::Disorder => state.controller_state,
        cc::Phase::Cwr => "cwr",
        cc::Phase::Recovery => "recovery",
        cc::Phase::Loss => "loss",
    }
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Handshake => "idle",
        Limit::Application => "app",
        Limit::Cwnd => "cwnd",
        Limit::ReceiveWindow => "rwnd",
        Limit::Pacing => "pacing",
        Limit::SendBuffer => "sndbuf",
        Limit::HostQueue => "hostq",
    }
}
