//! Rows of the tables for real flows: as observed from outside, and as the kernel reports those that it sent.

use crate::kernel::{Measured, Sample};
use observe::limits::Limits;
use record::observed::{self, flow_row, flow_row_with};
use record::tables::{FlowRow, SampleRow, TransferRow};
use record::{Tables, ms};
use units::{Bytes, Distribution, Rate, Span, Time};

/// Adds the rows of the observed flows. Flows that the kernel sent for us have the scenario's names, and are measured from
/// `warmup` on. Behind a router, they are flows like any other; behind a proxy (`has_proxy`), their delays include it, and are
/// those of the whole flow. `hosts` has the hosts' names.
pub(crate) fn add(
    tables: &mut Tables,
    hosts: &[String],
    has_proxy: bool,
    observed: &[observe::Flow],
    measured: &[Measured],
    (which, warmup): ((u32, u32), Time),
) {
    let ends = |measured: &Measured| (measured.sender, measured.receiver);
    let is_sent = |measured: &&Measured, seen: &observe::Flow| {
        seen.key.is_some_and(|key| (key.sender, key.receiver) == ends(measured))
            && seen.from == hosts[measured.flow.from]
    };
    let is_answer = |measured: &Measured, seen: &observe::Flow| {
        seen.key.is_some_and(|key| (key.receiver, key.sender) == ends(measured)) && seen.to == hosts[measured.flow.from]
    };
    for seen in observed {
        if let Some(measured) = measured.iter().find(|measured| is_sent(measured, seen)) {
            let far = observed.iter().find(|far| far.key == seen.key && far.to == hosts[measured.flow.to]);
            let far = far.unwrap_or(seen);
            let owds = if has_proxy { &far.owds } else { &seen.owds };
            tables.flows.push(&sent_row(measured, (seen, far), owds, which, warmup));
            tables.push_delays(which, (&measured.flow.name, measured.flow.copy), &seen.rtts, owds);
        } else if !measured.iter().any(|measured| is_answer(measured, seen)) {
            // The other direction of a connection of ours is no flow.
            observed::push(tables, seen, which);
        }
    }
    for measured in measured {
        if let Some(row) = transfer_row(measured, which) {
            tables.transfers.push(&row);
        }
        let is_far = |seen: &observe::Flow| {
            has_proxy
                && seen.key.is_some_and(|key| (key.sender, key.receiver) == ends(measured))
                && !is_sent(&measured, seen)
        };
        let far = observed.iter().find(|seen| is_far(seen));
        let outside = far.or_else(|| observed.iter().find(|seen| is_sent(&measured, seen)));
        let is_observed = outside.is_some();
        let mut outside = outside.map_or(&[][..], |seen| &seen.samples).iter().peekable();
        let mut before = None;
        for sample in &measured.samples {
            // The kernel is asked at moments of its own: what was seen by then, from outside, belongs to its row.
            let (mut owd, mut lost) = (None, is_observed.then_some(0u64));
            while let Some(seen) = outside.next_if(|seen| seen.at <= Time::ZERO + sample.at) {
                (owd, lost) = (seen.owd.or(owd), lost.zip(seen.lost).map(|(lost, seen)| lost + seen));
            }
            let row = sample_row(measured, sample, before, which);
            tables.samples.push(&SampleRow { owd_ms: owd.map(ms), lost, ..row });
            before = Some(sample);
        }
    }
}

/// The row of a flow that the kernel sent, as observed next to its sender and next to its receiver. With a router in its path,
/// these are two observed flows.
fn sent_row<'a>(
    measured: &'a Measured,
    (near, far): (&'a observe::Flow, &'a observe::Flow),
    owds: &Distribution,
    which: (u32, u32),
    warmup: Time,
) -> FlowRow<'a> {
    let samples = &measured.samples;
    let warm = samples.partition_point(|sample| Time::ZERO + sample.at < warmup);
    let (before, after) = samples.split_at(warm);
    let cwnds = || after.iter().map(|sample| f64::from(sample.cwnd) * f64::from(sample.mss));
    // What counts up begins at zero with the connection.
    let (zero, last) = (before.last(), samples.last());
    let since = |what: fn(&Sample) -> Option<u64>| Some(what(last?)?.saturating_sub(zero.and_then(what).unwrap_or(0)));
    let [limited_app, limited_cwnd, limited_rwnd, limited_pacing, limited_sndbuf, limited_other] =
        limits(measured, warm).shares().map_or([None; 6], |shares| shares.map(Some));
    let (sent, delivered) = (flow_row_with(near, owds, which), flow_row(far, which));
    FlowRow {
        flow: &measured.flow.name,
        conn: measured.flow.copy,
        cc: Some(in_scenarios(measured.flow.cc)),
        completion_s: measured.completion().map(Span::as_secs_f64),
        retransmitted: since(|s| Some(s.total_retrans.into())),
        segments_sent: since(|s| Some(s.data_segs_out.into())),
        rtos: since(|s| s.total_rto.map(u64::from)),
        mean_cwnd_bytes: (!after.is_empty()).then(|| cwnds().sum::<f64>() / after.len() as f64),
        max_cwnd_bytes: cwnds().reduce(f64::max).map(|most| most as u64),
        to: delivered.to,
        end_s: delivered.end_s,
        completed: delivered.completed,
        measured_from_s: delivered.measured_from_s,
        measured_to_s: delivered.measured_to_s,
        bytes: delivered.bytes,
        goodput_mbps: delivered.goodput_mbps,
        throughput_mbps: delivered.throughput_mbps,
        limited_app,
        limited_cwnd,
        limited_rwnd,
        limited_pacing,
        limited_sndbuf,
        limited_other,
        // What packets tell next to its sender.
        point: sent.point,
        run: sent.run,
        transport: sent.transport,
        from: sent.from,
        start_s: sent.start_s,
        rtt_min_ms: sent.rtt_min_ms,
        rtt_p5_ms: sent.rtt_p5_ms,
        rtt_p50_ms: sent.rtt_p50_ms,
        rtt_mean_ms: sent.rtt_mean_ms,
        rtt_p95_ms: sent.rtt_p95_ms,
        rtt_p99_ms: sent.rtt_p99_ms,
        rtt_max_ms: sent.rtt_max_ms,
        owd_p5_ms: sent.owd_p5_ms,
        owd_p25_ms: sent.owd_p25_ms,
        owd_p50_ms: sent.owd_p50_ms,
        owd_p75_ms: sent.owd_p75_ms,
        owd_p95_ms: sent.owd_p95_ms,
        retrans_fast: sent.retrans_fast,
        retrans_rto: sent.retrans_rto,
        retrans_tlp: sent.retrans_tlp,
        retrans_control: sent.retrans_control,
        undos: sent.undos,
        dup_acks: sent.dup_acks,
        max_dup_acks: sent.max_dup_acks,
        ce_marks: sent.ce_marks,
        lost_packets: sent.lost_packets,
        jitter_ms: sent.jitter_ms,
        mean_in_flight_bytes: sent.mean_in_flight_bytes,
        max_in_flight_bytes: sent.max_in_flight_bytes,
        teid: sent.teid,
    }
}

/// Where a sender's time went from sample `first - 1`, or the flow's start if there is none before, to its end.
fn limits(measured: &Measured, first: usize) -> Limits {
    let mut before = first.checked_sub(1).map(|i| &measured.samples[i]);
    measured.samples[first..]
        .iter()
        .fold(Limits::default(), |sum, sample| sum.plus(limits_between(measured, before.replace(sample), sample)))
}

/// Where a sender's time went between two samples, of which the first may be the flow's start. Of the handshake the kernel tells
/// nothing: its time is the part `unknown`.
fn limits_between(measured: &Measured, before: Option<&Sample>, sample: &Sample) -> Limits {
    let from = before.map_or(measured.flow.start, |before| before.at);
    // When all has arrived the sender has nothing to wait for.
    let to = measured.completed.map_or(sample.at, |completed| completed.min(sample.at)).max(from);
    let handshake = measured.established.map_or(to, |established| established.min(to)).saturating_sub(from);
    let connected = to.saturating_sub(from).saturating_sub(handshake);
    let (before, after) = (before.map(Sample::sending), sample.sending());
    let mut limits = Limits::between(before.as_ref(), &after, connected, measured.is_paced());
    if to < sample.at {
        // The sender is busy until the last acknowledgement has come back, after the end: this is no time taken from idle times before.
        limits.app = limits.app.max(0.0);
    }
    limits.plus(Limits { unknown: handshake.as_secs_f64(), ..Limits::default() })
}

/// The row of a transfer that is over, well or not.
fn transfer_row(measured: &Measured, (point, run): (u32, u32)) -> Option<TransferRow<'_>> {
    let completion = measured.completion();
    (measured.flow.bytes.is_some() && (completion.is_some() || measured.failure.is_some())).then(|| TransferRow {
        point,
        run,
        flow: &measured.flow.name,
        conn: measured.flow.copy,
        index: 0,
        start_s: measured.flow.start.as_secs_f64(),
        completion_s: completion.map(Span::as_secs_f64),
        bytes: measured.received,
    })
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
        throughput_mbps: None,
        cwnd_bytes: Some(bytes(sample.cwnd)),
        cwnd_pep_bytes: None,
        cwnd_e2e_bytes: None,
        ssthresh_bytes: sample.ssthresh.map(bytes),
        in_flight_bytes: Some(bytes(sample.in_flight())),
        srtt_ms: (sample.srtt > Span::ZERO).then(|| ms(sample.srtt)),
        rtt_ms: None,
        owd_ms: None,
        lost: None,
        rto_ms: Some(ms(sample.rto)),
        // Of others the kernel tells a rate that it does not keep to.
        pacing_mbps: sample.pacing_rate.filter(|_| measured.is_paced()).map(Rate::as_mbps),
        limit: limits_between(measured, before, sample).most(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Flow;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// A flow that starts at 100 ms, and is connected at 120 ms.
    fn measured(cc: &'static str, bytes: Option<u64>, samples: Vec<Sample>) -> Measured {
        let flow = Flow {
            name: "a".to_owned(),
            copy: 0,
            cc,
            from: 0,
            to: 1,
            start: ms(100),
            stop: None,
            bytes,
            reader: None,
            tos: 0,
            tcp: scenario::Tcp::default(),
        };
        Measured {
            flow,
            sender: ([10, 0, 0, 1], 10_000).into(),
            receiver: ([10, 0, 0, 2], 5_000).into(),
            samples,
            established: Some(ms(120)),
            received: 0,
            completed: None,
            failure: None,
        }
    }

    /// So many segments of 30 are in flight, and the sender has been busy since it was connected.
    fn sample(at: Span, unacked: u32) -> Sample {
        Sample {
            at,
            state: 1,
            ca_state: 0,
            cwnd: 30,
            ssthresh: None,
            mss: 1_000,
            srtt: ms(20),
            rttvar: ms(1),
            rto: ms(220),
            min_rtt: Some(ms(20)),
            unacked,
            lost: 0,
            retrans: 0,
            sacked: 0,
            total_retrans: 0,
            data_segs_out: 100,
            notsent_bytes: 1,
            bytes_acked: 1,
            bytes_received: 0,
            delivery_rate: None,
            pacing_rate: None,
            busy: at.saturating_sub(ms(120)),
            rwnd_limited: Span::ZERO,
            sndbuf_limited: Span::ZERO,
            total_rto: None,
        }
    }

    fn shares(measured: &Measured, first: usize) -> [f64; 6] {
        let of = limits(measured, first);
        [of.app, of.rwnd, of.cwnd, of.pacing, of.buffer, of.unknown].map(|part| (of.share(part) * 1e3).round() / 1e3)
    }

    fn most(measured: &Measured) -> Vec<&'static str> {
        let samples = &measured.samples;
        let before = std::iter::once(None).chain(samples.iter().map(Some));
        before.zip(samples).map(|(before, sample)| limits_between(measured, before, sample).most()).collect()
    }

    #[test]
    fn a_paced_flow_with_room_in_its_window_is_limited_by_pacing() {
        let samples = vec![sample(ms(200), 15), sample(ms(300), 15), sample(ms(400), 29), sample(ms(500), 15)];
        let bbr = measured("bbr", None, samples.clone());
        // 20 ms of handshake, 80 + 100 + 100 ms of pacing, and 100 ms of a full window.
        assert_eq!(shares(&bbr, 0), [0.0, 0.0, 0.25, 0.7, 0.0, 0.05]);
        assert_eq!(most(&bbr), ["pacing", "pacing", "cwnd", "pacing"]);
        // After the second sample alone.
        assert_eq!(shares(&bbr, 2), [0.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
        // Nothing paces CUBIC, unless it is asked for.
        let mut cubic = measured("cubic", None, samples);
        assert_eq!(shares(&cubic, 0), [0.0, 0.0, 0.95, 0.0, 0.0, 0.05]);
        cubic.flow.tcp.pacing = Some(true);
        assert_eq!(shares(&cubic, 0), shares(&bbr, 0));
    }

    #[test]
    fn what_the_kernel_tells_of_other_limits_is_not_counted_as_pacing() {
        let mut first = sample(ms(200), 15);
        (first.busy, first.rwnd_limited, first.sndbuf_limited) = (ms(70), ms(40), ms(20));
        let bbr = measured("bbr", None, vec![first]);
        assert_eq!(shares(&bbr, 0), [0.1, 0.4, 0.0, 0.1, 0.2, 0.2]);
        assert_eq!(most(&bbr), ["rwnd"]);
    }

    #[test]
    fn a_transfer_is_timed_from_the_flows_start_to_the_last_byte_read() {
        let mut transfer = measured("cubic", Some(5_000), vec![sample(ms(200), 20), sample(ms(300), 0)]);
        assert_eq!(transfer_row(&transfer, (0, 0)), None);
        (transfer.completed, transfer.received) = (Some(ms(220)), 5_000);
        let row = transfer_row(&transfer, (0, 0)).expect("it is over");
        assert_eq!((row.start_s, row.completion_s, row.bytes), (0.1, Some(0.12), 5_000));
        // What follows its end is no idle time of its.
        transfer.samples[1].busy = ms(100);
        assert_eq!(shares(&transfer, 0), [0.0, 0.0, 0.833, 0.0, 0.0, 0.167]);
        // It was stopped, or broke, before everything was written.
        transfer.received = 4_000;
        assert_eq!((transfer.completion(), transfer_row(&transfer, (0, 0))), (None, None));
        transfer.failure = Some("send: reset".to_owned());
        assert_eq!(transfer_row(&transfer, (0, 0)).map(|row| (row.completion_s, row.bytes)), Some((None, 4_000)));
        assert_eq!(measured("cubic", None, Vec::new()).completion(), None);
    }
}
