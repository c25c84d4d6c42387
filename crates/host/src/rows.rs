//! Rows of the tables for real flows: what was seen of them from outside, and what the kernel told of those that it sent.

use crate::kernel::{Measured, Sample};
use crate::observe::Seen;
use record::tables::{FlowRow, SampleRow};
use record::{Tables, ms};
use units::{Bytes, Rate, Span, Time};

/// Adds the rows of what was seen. Flows that the kernel sent for us have the scenario's names; what is counted of them
/// begins at `warmup`.
pub(crate) fn add(tables: &mut Tables, seen: &[Seen], measured: &[Measured], which: (u32, u32), warmup: Time) {
    let (point, run) = which;
    for seen in seen {
        let sent_by = |ends| measured.iter().find(|m| Some((m.sender, m.receiver)) == ends);
        let forth = seen.key.map(|key| (key.sender, key.receiver));
        let back = seen.key.map(|key| (key.receiver, key.sender));
        if let Some(measured) = sent_by(forth) {
            tables.flows.push(&sent_row(measured, seen, which, warmup));
            tables.push_delays(which, (&measured.flow.name, measured.flow.copy), &seen.rtts, &seen.owds);
        } else if sent_by(back).is_none() {
            // The other direction of a connection of ours is no flow.
            tables.flows.push(&seen.row(point, run));
            tables.push_delays(which, (&seen.name, seen.conn), &seen.rtts, &seen.owds);
            for sample in &seen.samples {
                tables.samples.push(&sample.row(seen, point, run));
            }
        }
    }
    for measured in measured {
        let outside = seen
            .iter()
            .find(|seen| Some((measured.sender, measured.receiver)) == seen.key.map(|key| (key.sender, key.receiver)));
        let mut outside = outside.map_or(&[][..], |seen| &seen.samples).iter().peekable();
        let mut before = None;
        for sample in &measured.samples {
            // The kernel is asked at moments of its own: what was seen by then, from outside, belongs to its row.
            let (mut owd, mut lost) = (None, 0);
            while let Some(seen) = outside.next_if(|seen| seen.at <= Time::ZERO + sample.at) {
                (owd, lost) = (seen.owd.or(owd), lost + seen.lost);
            }
            let row = sample_row(measured, sample, before, which);
            tables.samples.push(&SampleRow { owd_ms: owd.map(ms), lost, ..row });
            before = Some(sample);
        }
    }
}

/// The row of a flow that the kernel sent.
fn sent_row<'a>(measured: &'a Measured, seen: &'a Seen, (point, run): (u32, u32), warmup: Time) -> FlowRow<'a> {
    let samples = &measured.samples;
    let (before, after) = samples.split_at(samples.partition_point(|sample| Time::ZERO + sample.at < warmup));
    let cwnds = || after.iter().map(|sample| f64::from(sample.cwnd) * f64::from(sample.mss));
    // What counts up begins at zero with the connection.
    let (zero, last) = (before.last(), samples.last());
    let since = |what: fn(&Sample) -> u64| last.map_or(0, what) - zero.map_or(0, what);
    let seconds = |what: fn(&Sample) -> Span| {
        last.map_or(Span::ZERO, what).saturating_sub(zero.map_or(Span::ZERO, what)).as_secs_f64()
    };
    let first = zero.or(samples.first());
    let connected = last.zip(first).map_or(0.0, |(last, first)| (last.at - first.at).as_secs_f64());
    let share = |part: f64| if connected > 0.0 { (part / connected).clamp(0.0, 1.0) } else { 0.0 };
    let (busy, rwnd, buffer) = (seconds(|s| s.busy), seconds(|s| s.rwnd_limited), seconds(|s| s.sndbuf_limited));
    FlowRow {
        flow: &measured.flow.name,
        conn: measured.flow.copy,
        cc: in_scenarios(measured.flow.cc),
        retransmitted: since(|s| s.total_retrans.into()),
        segments_sent: since(|s| s.data_segs_out.into()),
        rtos: since(|s| s.total_rto.unwrap_or(0).into()),
        limited_app: share(connected - busy),
        limited_rwnd: share(rwnd),
        // The kernel does not tell pacing from the window.
        limited_cwnd: share(busy - rwnd - buffer),
        limited_other: share(buffer),
        mean_cwnd_bytes: cwnds().sum::<f64>() / after.len().max(1) as f64,
        max_cwnd_bytes: cwnds().fold(0.0, f64::max) as u64,
        ..seen.row(point, run)
    }
}

fn sample_row<'a>(
    measured: &'a Measured,
    sample: &Sample,
    before: Option<&Sample>,
    (point, run): (u32, u32),
) -> SampleRow<'a> {
    let bytes = |segments: u32| u64::from(segments) * u64::from(sample.mss);
    let (then, had) = before.map_or((measured.flow.start, 0), |before| (before.at, before.bytes_received));
    let delivered = Bytes::new(sample.bytes_received - had);
    SampleRow {
        point,
        run,
        flow: &measured.flow.name,
        conn: measured.flow.copy,
        t_s: sample.at.as_secs_f64(),
        goodput_mbps: Rate::over(delivered, sample.at.saturating_sub(then)).as_mbps(),
        cwnd_bytes: bytes(sample.cwnd),
        cwnd_pep_bytes: None,
        cwnd_e2e_bytes: None,
        ssthresh_bytes: sample.ssthresh.map(bytes),
        // As `tcp_packets_in_flight` of the kernel.
        in_flight_bytes: bytes((sample.unacked + sample.retrans).saturating_sub(sample.sacked + sample.lost)),
        srtt_ms: (sample.srtt > Span::ZERO).then(|| ms(sample.srtt)),
        rtt_ms: None,
        owd_ms: None,
        lost: 0,
        rto_ms: ms(sample.rto),
        // Of others the kernel tells a rate that it does not keep to.
        pacing_mbps: sample
            .pacing_rate
            .filter(|_| measured.flow.cc == "bbr" || measured.flow.tcp.pacing)
            .map(Rate::as_mbps),
        limit: "",
        state: state(sample, measured.flow.cc),
    }
}

/// What the simulator would call a sender's state.
fn state(sample: &Sample, cc: &str) -> &'static str {
    match sample.ca_state {
        2 => "cwr",
        3 => "recovery",
        4 => "loss",
        // BBR has phases of its own, which it does not tell this way.
        _ if cc == "bbr" => "",
        _ if sample.ssthresh.is_none_or(|ssthresh| sample.cwnd < ssthresh) => "slow-start",
        _ => "avoidance",
    }
}

/// What scenarios call a congestion control of the kernel.
fn in_scenarios(cc: &'static str) -> &'static str {
    if cc == "reno" { "new-reno" } else { cc }
}
