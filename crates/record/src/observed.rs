//! Rows of the tables for flows that were observed from outside: nothing is known of what limited their senders.

use observe::{Flow, Item, Rules, Sample};
use units::{Distribution, Time};
use wire::SynOptions;

use crate::Tables;
use crate::tables::{Delays, FlowRow, SampleRow, SegmentRow, TcpFlowRow, TcpSampleRow, ms};

/// Adds all rows of an observed flow.
pub fn push(tables: &mut Tables, flow: &Flow, which: (u32, u32)) {
    tables.flows.push(&flow_row(flow, which));
    tables.push_delays(which, (&flow.name, flow.conn), &flow.rtts, &flow.owds);
    for sample in &flow.samples {
        tables.samples.push(&sample_row(flow, sample, which));
    }
}

/// Adds the rows about TCP of a flow of a capture.
pub fn push_tcp(tables: &mut Tables, flow: &Flow, rules: Rules, (point, run): (u32, u32)) {
    let Some(tcp) = &flow.tcp else { return };
    let (name, conn) = (flow.name.as_str(), flow.conn);
    let (of, quantile) = (tcp.counters, |q| tcp.ts_rtts.quantile(q).map(ms));
    // What acknowledgements tell, and of this what Wireshark does not judge.
    let heard = |count: u64| flow.tells_acknowledgements.then_some(count);
    let judged = |count: u64| heard(count).filter(|_| rules == Rules::Ranway);
    let mss = |syn: Option<SynOptions>| syn.map(|syn| u64::from(syn.mss));
    let scale = |syn: Option<SynOptions>| syn.and_then(|syn| syn.window_scale).map(u64::from);
    let options = options(tcp.syn, tcp.syn_timestamps);
    let far_options = self::options(tcp.far_syn, tcp.syn_timestamps);
    tables.tcp_flows.push(&TcpFlowRow {
        point,
        run,
        flow: name,
        conn,
        rules: if rules == Rules::Wireshark { "wireshark" } else { "ranway" },
        segments: of.segments,
        payload_bytes: of.bytes,
        retransmitted: of.retransmitted,
        retransmitted_bytes: of.retransmitted_bytes,
        fast: heard(of.fast),
        timeouts: judged(of.timeouts),
        spurious: heard(of.spurious),
        out_of_order: of.out_of_order,
        dup_acks: heard(of.duplicate_acks),
        dsacks: judged(of.dsacks),
        zero_windows: heard(of.zero_windows),
        window_full: heard(of.window_full).filter(|_| rules == Rules::Wireshark || tcp.window.is_some()),
        keep_alives: heard(of.keep_alives),
        zero_window_probes: heard(of.zero_window_probes),
        gaps: of.gaps,
        acked_unseen: heard(of.acked_unseen),
        super_packets: of.super_packets,
        foreign: (rules == Rules::Ranway).then_some(of.foreign),
        mss: mss(tcp.syn),
        peer_mss: mss(tcp.peer_syn),
        far_mss: mss(tcp.far_syn),
        window_scale: scale(tcp.syn),
        peer_window_scale: scale(tcp.peer_syn),
        options: &options,
        far_options: &far_options,
        handshake_server_ms: tcp.handshake[0].map(ms),
        handshake_client_ms: tcp.handshake[1].map(ms),
        rtt_ts_p50_ms: quantile(0.5),
        rtt_ts_p95_ms: quantile(0.95),
        to_sender_min_ms: tcp.min_to_sender.map(ms),
        window_min_bytes: tcp.window.map(|window| window.0),
        window_max_bytes: tcp.window.map(|window| window.1),
        mean_pipe_bytes: tcp.mean_pipe,
        max_pipe_bytes: tcp.max_pipe,
    });
    for sample in &flow.samples {
        tables.tcp_samples.push(&TcpSampleRow {
            point,
            run,
            flow: name,
            conn,
            t_s: sample.at.as_secs_f64(),
            in_flight_bytes: sample.in_flight,
            pipe_bytes: sample.pipe.or(sample.in_flight),
            window_bytes: sample.window,
            retransmitted: sample.retransmitted,
            out_of_order: sample.out_of_order,
        });
    }
    for row in &tcp.rows {
        tables.segments.push(&SegmentRow {
            point,
            run,
            flow: name,
            conn,
            t_s: row.at.as_secs_f64(),
            kind: match row.item {
                Item::Data => "data",
                Item::Retransmission => "retransmission",
                Item::OutOfOrder => "out-of-order",
                Item::Ack => "ack",
                Item::Sack => "sack",
                Item::Dsack => "dsack",
            },
            start: row.start,
            end: row.end,
        });
    }
}

/// The options of a SYN, in words.
fn options(syn: Option<SynOptions>, timestamps: bool) -> String {
    let Some(syn) = syn else { return String::new() };
    let all = [
        (true, "mss"),
        (syn.window_scale.is_some(), "wscale"),
        (syn.sack_permitted, "sack"),
        (timestamps, "timestamps"),
    ];
    all.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// The row of an observed flow.
pub fn flow_row(flow: &Flow, which: (u32, u32)) -> FlowRow<'_> {
    flow_row_with(flow, &flow.owds, which)
}

/// The same with other one-way delays.
pub fn flow_row_with<'a>(flow: &'a Flow, owds: &Distribution, (point, run): (u32, u32)) -> FlowRow<'a> {
    let (from, to) = flow.measured;
    let counters = &flow.counters;
    let delays = Delays::of(&flow.rtts, owds);
    FlowRow {
        point,
        run,
        flow: &flow.name,
        conn: flow.conn,
        transport: flow.transport,
        teid: flow.teid.map(u64::from),
        from: &flow.from,
        to: &flow.to,
        start_s: flow.start.as_secs_f64(),
        end_s: flow.last_delivery.filter(|_| flow.completed).map(Time::as_secs_f64),
        completed: flow.completed,
        measured_from_s: from.as_secs_f64(),
        measured_to_s: to.as_secs_f64(),
        bytes: counters.delivered,
        goodput_mbps: flow.goodput().as_mbps(),
        throughput_mbps: flow.throughput().as_mbps(),
        segments_sent: Some(counters.segments),
        retransmitted: flow.tells_retransmissions.then_some(counters.retransmitted + counters.retransmitted_control),
        retrans_control: flow.tells_retransmissions.then_some(counters.retransmitted_control),
        dup_acks: flow.tells_acknowledgements.then_some(counters.dup_acks),
        ce_marks: flow.tells_marks.then_some(counters.marked),
        lost_packets: flow.lost,
        mean_in_flight_bytes: flow.mean_in_flight,
        max_in_flight_bytes: flow.max_in_flight,
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
        // Packets do not tell these.
        cc: None,
        completion_s: None,
        retrans_fast: None,
        retrans_rto: None,
        retrans_tlp: None,
        rtos: None,
        undos: None,
        max_dup_acks: None,
        jitter_ms: None,
        limited_app: None,
        limited_cwnd: None,
        limited_rwnd: None,
        limited_pacing: None,
        limited_sndbuf: None,
        limited_other: None,
        mean_cwnd_bytes: None,
        max_cwnd_bytes: None,
    }
}

/// The row of an observed flow's sample.
pub fn sample_row<'a>(flow: &'a Flow, sample: &Sample, (point, run): (u32, u32)) -> SampleRow<'a> {
    SampleRow {
        point,
        run,
        flow: &flow.name,
        conn: flow.conn,
        t_s: sample.at.as_secs_f64(),
        goodput_mbps: sample.goodput().as_mbps(),
        in_flight_bytes: sample.in_flight,
        srtt_ms: sample.srtt.map(ms),
        rtt_ms: sample.rtt.map(ms),
        owd_ms: sample.owd.map(ms),
        lost: sample.lost,
        state: if sample.closed { "closed" } else { "" },
        // Packets do not tell these.
        throughput_mbps: None,
        cwnd_bytes: None,
        cwnd_pep_bytes: None,
        cwnd_e2e_bytes: None,
        ssthresh_bytes: None,
        rto_ms: None,
        pacing_mbps: None,
        limit: "",
    }
}
