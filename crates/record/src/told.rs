//! Rows of what the kernels at a flow's ends and a modem tell.

use observe::kernel::{Flow, State, round_trip};
use observe::limits::Limits;
use observe::modem::{CellSample, Technology, cell_changes};
use units::{Bytes, Distribution, Rate, Span, Time};
use wire::tcp_info::TcpInfo;

use crate::tables::{Delays, FlowRow, MobilityRow, ModemRow, PassageRow, SampleRow, TcpInfoRow};
use crate::{Tables, ms};

/// Adds the rows of what modems told, with their times as they are, and of their changes of cell. What belongs to no point has none.
pub fn add_cells(tables: &mut Tables, cells: &[CellSample], point: impl Fn(Time) -> Option<u32>) {
    for sample in cells {
        let Some(point) = point(sample.at) else { continue };
        tables.modem.push(&modem_row(sample, point));
    }
    for sample in cell_changes(cells) {
        let Some(point) = point(sample.at) else { continue };
        tables.mobility.push(&MobilityRow {
            point,
            run: 0,
            t_s: sample.at.as_secs_f64(),
            ue: &sample.modem,
            event: "changed",
            cell: &sample.cell_name(),
            interruption_ms: None,
        });
    }
}

fn modem_row(sample: &CellSample, point: u32) -> ModemRow<'_> {
    ModemRow {
        point,
        run: 0,
        t_s: sample.at.as_secs_f64(),
        source: sample.source,
        lag_ms: sample.lag.map(ms),
        modem: &sample.modem,
        technology: sample.technology.map_or("", Technology::name),
        cell: sample.cell,
        pci: sample.pci.map(u64::from),
        band: sample.band.map(u64::from),
        frequency_mhz: sample.frequency_mhz,
        rsrp_dbm: sample.rsrp_dbm,
        rsrq_db: sample.rsrq_db,
        rssi_dbm: sample.rssi_dbm,
        sinr_db: sample.sinr_db,
    }
}

/// How a flow appears in tables, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// Its number, which no other flow with this name has.
    pub conn: u32,
    /// The host that sends the data.
    pub from: &'a str,
    /// The host that receives it.
    pub to: &'a str,
    /// Whether the samples are of its sender's kernel: those of the receiver's tell neither windows nor what limited it.
    pub at_sender: bool,
    /// Whether the round-trip times of the samples are the sender's. Usually the same, but a part of the state may have no windows.
    pub has_senders_rtt: bool,
    /// Whether the samples have all that the table `tcp_info` has.
    pub is_whole: bool,
    /// Whether the samples tell in which state of recovery the sender is.
    pub has_state: bool,
    /// Whether each sample counts the bytes delivered until then; otherwise they are those of [`Flow::bytes`].
    pub counts_bytes: bool,
}

/// Adds the rows of a flow. One without bytes over time ends at `end`.
pub fn add_flow(tables: &mut Tables, flow: &Flow, end: Time, point: u32, told: &Told<'_>) {
    let mut rtts = Distribution::default();
    flow.rtts(told.has_senders_rtt).for_each(|rtt| rtts.record(rtt));
    let owds = Distribution::default();
    tables.flows.push(&flow_row(flow, end, point, told, &rtts));
    tables.push_delays((point, 0), (told.flow, told.conn), &rtts, &owds);
    let mut before: Option<&State> = None;
    for sample in &flow.samples {
        tables.samples.push(&sample_row(flow, sample, before, point, told));
        if told.is_whole {
            tables.tcp_info.push(&tcp_info_row(sample, point, told));
        }
        before = Some(sample);
    }
    for passage in &flow.passages {
        tables.passages.push(&PassageRow {
            point,
            run: 0,
            flow: told.flow,
            conn: told.conn,
            t_s: passage.written.as_secs_f64(),
            buffer_ms: passage.buffered.map(ms),
            host_ms: passage.queued.map(ms),
            path_ms: passage.travelled.map(ms),
        });
    }
}

/// What only the sender knows is missing if neither the samples are its own nor the server tells it.
fn flow_row<'a>(flow: &'a Flow, end: Time, point: u32, told: &Told<'a>, rtts: &Distribution) -> FlowRow<'a> {
    let end = flow.bytes.last().map_or(end, |(span, _)| flow.start + span);
    let span = end.saturating_since(flow.start);
    let total = flow.total().unwrap_or(0);
    let goodput = Rate::over(Bytes::new(total), span).as_mbps();
    let (states, is_whole) = (flow.sender(), if told.at_sender { told.is_whole } else { !flow.remote.is_partial });
    let last = states.last().map(|sample| sample.info).filter(|_| is_whole);
    let bytes = |sample: &State, segments: u32| u64::from(segments) * u64::from(sample.info.snd_mss);
    let cwnds = || flow.under_way().map(|sample| bytes(sample, sample.info.snd_cwnd));
    let flights = || flow.under_way().map(|sample| bytes(sample, sample.info.in_flight()));
    let count = flow.under_way().count();
    let mean = |sum: u64| (count > 0).then(|| sum as f64 / count as f64);
    let [limited_app, limited_cwnd, limited_rwnd, limited_pacing, limited_sndbuf, limited_other] =
        flow.limits().and_then(|limits| limits.shares()).map_or([None; 6], |shares| shares.map(Some));
    let since = |count: fn(&TcpInfo) -> Option<u32>| {
        let before = flow.before.as_ref().and_then(count).unwrap_or(0);
        last.as_ref().and_then(count).map(|now| u64::from(now.saturating_sub(before)))
    };
    // The kernel has seen round trips that no sample fell on; of the receiver's, its own segments alone.
    let has_kernels = told.has_senders_rtt || flow.remote.has_rtts();
    let kernels = states.iter().filter(|_| has_kernels).filter_map(|sample| sample.info.min_rtt());
    let delays = Delays::of(rtts, &Distribution::default());
    let least = delays.rtt_min_ms.map(|least| kernels.map(|us| f64::from(us) / 1e3).fold(least, f64::min));
    FlowRow {
        point,
        run: 0,
        flow: told.flow,
        conn: told.conn,
        transport: "tcp",
        cc: flow.control(),
        from: told.from,
        to: told.to,
        start_s: flow.start.as_secs_f64(),
        end_s: flow.failure.is_none().then(|| end.as_secs_f64()),
        completed: flow.failure.is_none(),
        measured_from_s: flow.start.as_secs_f64(),
        measured_to_s: end.as_secs_f64(),
        bytes: total,
        goodput_mbps: goodput,
        throughput_mbps: goodput,
        // Who has delivered data has sent segments: where there are none, nobody counted them (Linux before 4.6, an old ss).
        segments_sent: since(|info| (info.data_segs_out > 0 || info.bytes_acked == 0).then_some(info.data_segs_out)),
        retransmitted: since(|info| Some(info.total_retrans)),
        rtos: since(|info| info.total_rto.map(u32::from)),
        rtt_min_ms: least,
        mean_cwnd_bytes: mean(cwnds().fold(0, u64::saturating_add)).filter(|_| last.is_some()),
        max_cwnd_bytes: cwnds().max().filter(|_| last.is_some()),
        mean_in_flight_bytes: mean(flights().fold(0, u64::saturating_add)).filter(|_| last.is_some()),
        max_in_flight_bytes: flights().max().filter(|_| last.is_some()),
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
        limited_app,
        limited_cwnd,
        limited_rwnd,
        limited_pacing,
        limited_sndbuf,
        limited_other,
        // The kernel does not tell these.
        completion_s: None,
        retrans_fast: None,
        retrans_rto: None,
        retrans_tlp: None,
        retrans_control: None,
        undos: None,
        dup_acks: None,
        max_dup_acks: None,
        ce_marks: None,
        lost_packets: None,
        jitter_ms: None,
        teid: None,
    }
}

fn sample_row<'a>(
    flow: &'a Flow,
    sample: &State,
    before: Option<&State>,
    point: u32,
    told: &Told<'a>,
) -> SampleRow<'a> {
    let info = &sample.info;
    let since = before.map_or(flow.start, |before| before.at);
    let span = sample.at.saturating_since(since);
    let delivered = if told.counts_bytes {
        Bytes::new(sample.delivered.saturating_sub(before.map_or(0, |before| before.delivered)))
    } else {
        // What the server reports comes late and in steps; the samples that came with the result do not.
        let total = |at: Time| flow.bytes.bytes_at(at.saturating_since(flow.start));
        Bytes::new((total(sample.at) - total(since)).max(0.0) as u64)
    };
    let own_rtt = round_trip(info, told.has_senders_rtt);
    let remote_rtts = flow.remote.has_rtts();
    // What a server tells of its kernel counts until its next message.
    let sender = match flow.remote.latest(sample.at) {
        _ if told.at_sender => Some((before, sample, told.is_whole, told.has_state)),
        Some((before, state)) => Some((before, state, !flow.remote.is_partial, !flow.remote.lacks_state)),
        None => None,
    };
    let limit = sender.map_or("", |(before, sample, ..)| {
        let span = sample.at.saturating_since(before.map_or(flow.start, |before| before.at));
        let limits =
            Limits::between(before.map(|before| &before.info), &sample.info, span, flow.is_paced(&sample.info));
        let is_known = span > Span::ZERO && (told.at_sender || limits.is_known());
        if is_known { limits.most() } else { "" }
    });
    let senders_rtt = sender.and_then(|(_, sample, ..)| round_trip(&sample.info, true));
    // The state of a sender that tells its windows.
    let whole = sender.filter(|(_, _, is_whole, _)| *is_whole);
    let info = whole.map(|(_, sample, ..)| &sample.info);
    let bytes = |segments: fn(&TcpInfo) -> Option<u32>| {
        info.and_then(|info| Some(u64::from(segments(info)?) * u64::from(info.snd_mss)))
    };
    SampleRow {
        point,
        run: 0,
        flow: told.flow,
        conn: told.conn,
        t_s: sample.at.as_secs_f64(),
        goodput_mbps: Rate::over(delivered, span).as_mbps(),
        cwnd_bytes: bytes(|info| Some(info.snd_cwnd)),
        ssthresh_bytes: bytes(TcpInfo::ssthresh),
        in_flight_bytes: bytes(|info| Some(info.in_flight())),
        srtt_ms: if remote_rtts { senders_rtt } else { own_rtt }.map(ms),
        rto_ms: info.map(|info| f64::from(info.rto) / 1e3),
        // Of others the kernel tells a rate that it does not keep to.
        pacing_mbps: info
            .and_then(|info| info.pacing_rate().filter(|_| flow.is_paced(info)))
            .map(|rate| rate as f64 * 8e-6),
        limit,
        state: whole.filter(|(.., has_state)| *has_state).map_or("", |(_, sample, ..)| state(sample, flow)),
        // The kernel does not tell these.
        throughput_mbps: None,
        cwnd_pep_bytes: None,
        cwnd_e2e_bytes: None,
        rtt_ms: None,
        owd_ms: None,
        lost: None,
    }
}

/// What the simulator would call a sender's state.
fn state(sample: &State, flow: &Flow) -> &'static str {
    match sample.info.ca_state {
        2 => "cwr",
        3 => "recovery",
        4 => "loss",
        // BBR has phases of its own, which it does not tell this way.
        _ if flow.congestion == "bbr" => "",
        _ if sample.info.ssthresh().is_none_or(|ssthresh| sample.info.snd_cwnd < ssthresh) => "slow-start",
        _ => "avoidance",
    }
}

fn tcp_info_row<'a>(sample: &'a State, point: u32, told: &Told<'a>) -> TcpInfoRow<'a> {
    let info = &sample.info;
    let mbps = |bytes_per_sec: u64| bytes_per_sec as f64 * 8e-6;
    TcpInfoRow {
        point,
        run: 0,
        flow: told.flow,
        conn: told.conn,
        t_s: sample.at.as_secs_f64(),
        raw: &sample.raw,
        rtt_us: info.rtt.into(),
        rttvar_us: info.rttvar.into(),
        min_rtt_us: info.min_rtt().map(u64::from),
        rto_us: info.rto.into(),
        cwnd: info.snd_cwnd,
        mss_bytes: info.snd_mss,
        unacked: info.unacked,
        sacked: info.sacked,
        lost: info.lost,
        retrans: info.retrans,
        total_retrans: info.total_retrans,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        notsent_bytes: info.notsent_bytes,
        delivery_mbps: mbps(info.delivery_rate),
        busy_us: info.busy_time,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.sndbuf_limited,
        bbr_bw_mbps: sample.bbr.map(|bbr| mbps(bbr.bandwidth)),
        bbr_min_rtt_us: sample.bbr.and_then(|bbr| bbr.min_rtt).map(u64::from),
        bbr_pacing_gain: sample.bbr.map(|bbr| bbr.pacing_gain),
        bbr_cwnd_gain: sample.bbr.map(|bbr| bbr.cwnd_gain),
    }
}
