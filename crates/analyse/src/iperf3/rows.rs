//! The rows of a test of iperf3.

use std::collections::BTreeMap;
use std::path::Path;

use record::tables::{Delays, FlowRow, SampleRow};
use units::stats::upper_median;
use units::{Distribution, Span};

use super::format::{Connected, EndStream, Stream, Test, Total};
use crate::collector::{Collector, Error};

/// A connection of a test.
struct Named<'a> {
    name: String,
    from: &'a str,
    to: &'a str,
    /// Whether the end that wrote the file sends.
    sends: bool,
}

/// An interval of a stream, or several together.
#[derive(Clone, Copy, Default)]
struct Part {
    seconds: f64,
    bytes: u64,
    cwnd: Option<u64>,
    srtt_ms: Option<f64>,
    lost: Option<u64>,
}

/// A stream over the whole test.
#[derive(Default)]
struct Sum {
    parts: Vec<Part>,
    from_s: f64,
    seconds: f64,
    bytes: u64,
    /// Missing if no interval tells any: of a receiver, or of UDP.
    retransmitted: Option<u64>,
    cwnd_area: f64,
    /// The time of the intervals that tell a window.
    cwnd_seconds: f64,
    max_cwnd: Option<u64>,
    /// The smallest, the sum, the number and the largest of the smoothed round-trip times.
    rtts: (f64, f64, u32, f64),
}

/// Adds the rows of a test. Returns its length in seconds.
pub(super) fn push(path: &Path, test: &Test, point: u32, all: &mut Collector<'_>) -> Result<f64, Error> {
    let is_udp = test.start.test_start.protocol.eq_ignore_ascii_case("UDP");
    let names = names(test, if is_udp { "udp" } else { "tcp" });
    let sums = sums(path, test, &names, all)?;
    let mut longest: f64 = 0.0;
    let (mut unknown, mut rows) = (0, Vec::new());
    let nothing = Sum::default();
    for (socket, named) in names.iter().filter(|(_, named)| all.options.wants(&named.name)) {
        let sum = sums.get(socket).unwrap_or(&nothing);
        let of_sender = is_udp && named.sends;
        let received = if is_udp { datagrams(test, *socket, &names, sum) } else { bytes(test, *socket, sum) };
        let Some((bytes, length_s)) = received.filter(|(_, seconds)| *seconds > 0.0) else {
            unknown += 1;
            continue;
        };
        samples(&mut rows, (point, named), sum, of_sender.then_some((bytes, length_s)));
        // Smoothed ones at the end of each interval, as those of kernels' states are.
        let mut rtts = Distribution::default();
        let told = sum.parts.iter().filter_map(|part| part.srtt_ms);
        told.for_each(|ms| rtts.record(Span::from_secs_f64(ms.min(1e9) / 1e3)));
        let row = flow(test, (point, *socket), named, sum, (is_udp, bytes, length_s), &rtts);
        all.tables.flows.push(&row);
        all.tables.push_delays((point, 0), (&named.name, 0), &rtts, &Distribution::default());
        longest = longest.max(length_s);
        all.measured_s += length_s;
    }
    rows.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    rows.iter().for_each(|row| all.tables.samples.push(row));
    if unknown > 0 {
        let what = "streams were left out: only what their sender wrote is known, or they have no interval that counts";
        all.note(path, format_args!("{unknown} {what}"));
    }
    Ok(longest)
}

/// The streams by their sockets.
fn names<'a>(test: &'a Test, transport: &str) -> BTreeMap<i64, Named<'a>> {
    let said = || test.intervals.iter().flat_map(|interval| &interval.streams);
    let mut first: BTreeMap<i64, bool> = BTreeMap::new();
    for stream in said() {
        if let Some(sends) = stream.sender {
            first.entry(stream.socket).or_insert(sends);
        }
    }
    let is_server = test.start.accepted_connection.is_some();
    let usual = (test.start.test_start.reverse == 0) != is_server;
    let label = |host: &str, port: u16| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    };
    let named = |one: &'a Connected| {
        // A stream of a test in both directions has its own direction.
        let sends = first.get(&one.socket).copied().unwrap_or(usual);
        let ends = [(one.local_host.as_str(), one.local_port), (one.remote_host.as_str(), one.remote_port)];
        let [from, to] = if sends { ends } else { [ends[1], ends[0]] };
        let name = format!("{transport} {} > {}", label(from.0, from.1), label(to.0, to.1));
        (one.socket, Named { name, from: from.0, to: to.0, sends })
    };
    test.start.connected.iter().map(named).collect()
}

/// What the intervals tell.
fn sums(
    path: &Path,
    test: &Test,
    names: &BTreeMap<i64, Named<'_>>,
    all: &Collector<'_>,
) -> Result<BTreeMap<i64, Sum>, Error> {
    let mut sums: BTreeMap<i64, Sum> = BTreeMap::new();
    for stream in test.intervals.iter().flat_map(|interval| &interval.streams) {
        let Some(named) = names.get(&stream.socket) else { continue };
        if stream.omitted || !all.options.wants(&named.name) {
            continue;
        }
        let seconds = stream.seconds.unwrap_or(stream.end - stream.start);
        if !(seconds.is_finite() && stream.end.is_finite() && (0.0..1e9).contains(&seconds) && stream.end.abs() < 1e9) {
            let what = format!("an interval of {seconds} s that ends at {} s", stream.end);
            return Err(Error::Invalid(format!("{}: {what}", path.display())));
        }
        let sum = sums.entry(stream.socket).or_default();
        if sum.parts.is_empty() {
            // It may begin by the clock of the omitted seconds, and ends by the one that counts.
            sum.from_s = (stream.end - seconds).max(0.0);
        }
        sum.add(stream, seconds);
    }
    for sum in sums.values_mut() {
        sum.merge_short();
    }
    Ok(sums)
}

impl Sum {
    fn add(&mut self, stream: &Stream, seconds: f64) {
        self.bytes = self.bytes.saturating_add(stream.bytes);
        self.seconds += seconds;
        if let Some(more) = stream.retransmits.and_then(|more| u64::try_from(more).ok()) {
            self.retransmitted = Some(self.retransmitted.unwrap_or(0).saturating_add(more));
        }
        let cwnd = stream.snd_cwnd;
        if let Some(cwnd) = cwnd {
            self.cwnd_area += cwnd as f64 * seconds;
            self.cwnd_seconds += seconds;
        }
        self.max_cwnd = self.max_cwnd.max(cwnd);
        let srtt_ms = ms(stream.rtt);
        if let Some(rtt) = srtt_ms {
            let (least, sum, count, most) = self.rtts;
            self.rtts = (if count == 0 { rtt } else { least.min(rtt) }, sum + rtt, count + 1, most.max(rtt));
        }
        let lost = stream.lost_packets.map(|lost| u64::try_from(lost).unwrap_or(0));
        self.parts.push(Part { seconds, bytes: stream.bytes, cwnd, srtt_ms, lost });
    }

    /// Makes one of neighbours if one is shorter than half of the usual interval: the last may be of microseconds, and its rate
    /// means nothing.
    fn merge_short(&mut self) {
        let mut lengths: Vec<f64> = self.parts.iter().map(|part| part.seconds).collect();
        let shortest = upper_median(&mut lengths).map_or(0.0, |usual| usual / 2.0);
        let mut merged: Vec<Part> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            match merged.last_mut() {
                Some(last) if part.seconds < shortest || last.seconds < shortest => {
                    *last = Part {
                        seconds: last.seconds + part.seconds,
                        bytes: last.bytes.saturating_add(part.bytes),
                        cwnd: part.cwnd.or(last.cwnd),
                        srtt_ms: part.srtt_ms.or(last.srtt_ms),
                        lost: last.lost.zip(part.lost).map(|(one, other)| one.saturating_add(other)),
                    };
                }
                _ => merged.push(*part),
            }
        }
        merged.retain(|part| part.seconds > 0.0);
        self.parts = merged;
    }
}

/// The totals of a stream at the end.
fn total(test: &Test, socket: i64, of: fn(&EndStream) -> Option<&Total>) -> Option<&Total> {
    test.end.streams.iter().filter_map(of).find(|total| total.socket == socket)
}

/// The bytes that a stream of TCP delivered, and in how many seconds.
fn bytes(test: &Test, socket: i64, sum: &Sum) -> Option<(u64, f64)> {
    let received = total(test, socket, |end| end.receiver.as_ref()).filter(|total| total.bytes > 0);
    let sent = || total(test, socket, |end| end.sender.as_ref()).filter(|_| sum.seconds == 0.0);
    match received.or_else(sent) {
        Some(total) => Some((total.bytes, total.length_s().unwrap_or(sum.seconds))),
        None => Some((sum.bytes, sum.seconds)),
    }
}

/// The same of UDP: what the receiver counted, which it tells of all streams of a direction together.
fn datagrams(test: &Test, socket: i64, names: &BTreeMap<i64, Named<'_>>, sum: &Sum) -> Option<(u64, f64)> {
    let udp = |socket: i64| total(test, socket, |end| end.udp.as_ref());
    let is_sender = |socket: &i64| names.get(socket).is_some_and(|named| named.sends);
    if !is_sender(&socket) {
        return Some((sum.bytes, udp(socket).and_then(Total::length_s).unwrap_or(sum.seconds)));
    }
    // What was sent, without the share of what was lost.
    let arrived = |total: &Total| {
        let packets = total.packets.filter(|packets| *packets > 0)? as f64;
        let lost = total.lost_packets?.max(0) as f64;
        Some(total.bytes as f64 * (1.0 - lost / packets).max(0.0))
    };
    let own = udp(socket)?;
    let senders = names.keys().filter(|socket| is_sender(socket));
    let all: Vec<f64> = senders.filter_map(|socket| arrived(udp(*socket)?)).collect();
    // A server that sends in a test in both directions has its sum under another name, and an interrupted test none.
    let is_clear = test.start.accepted_connection.is_none() || test.end.sum_received_bidir_reverse.is_none();
    let is_known = |total: &&Total| total.bytes > 0 || total.lost_packets.is_some_and(|lost| lost > 0);
    let is_sum_of_none = test.end.sum_received.as_ref().filter(|_| is_clear).is_some_and(|sum| !is_known(&sum));
    let received = test.end.sum_received.as_ref().filter(|_| is_clear).filter(is_known);
    let length_s = received.and_then(Total::length_s).or(own.length_s()).unwrap_or(sum.seconds);
    let bytes = match (received, arrived(own)) {
        (Some(received), _) if all.len() <= 1 => received.bytes as f64,
        (Some(received), Some(bytes)) if bytes > 0.0 => received.bytes as f64 * bytes / all.iter().sum::<f64>(),
        // An interrupted test has no report of the receiver, and iperf3 writes 0 for losses; otherwise nothing was received.
        (None, _) if test.error.is_some() => return None,
        (None, _) if is_sum_of_none => 0.0,
        (_, bytes) => bytes?,
    };
    Some((bytes.round() as u64, length_s))
}

/// Adds the samples of a stream; of a sender of UDP one, of all that the receiver counted.
fn samples<'a>(
    rows: &mut Vec<SampleRow<'a>>,
    (point, named): (u32, &'a Named<'_>),
    sum: &Sum,
    whole: Option<(u64, f64)>,
) {
    let mut t_s = sum.from_s;
    if let Some((bytes, seconds)) = whole {
        let goodput_mbps = bytes as f64 * 8.0 / seconds / 1e6;
        // The receiver's count alone is known.
        return rows.push(SampleRow::counted((point, &named.name, 0), t_s + seconds, goodput_mbps));
    }
    for part in &sum.parts {
        t_s += part.seconds;
        rows.push(SampleRow {
            point,
            flow: &named.name,
            t_s,
            goodput_mbps: part.bytes as f64 * 8.0 / part.seconds / 1e6,
            cwnd_bytes: part.cwnd,
            srtt_ms: part.srtt_ms,
            lost: part.lost,
            run: 0,
            conn: 0,
            // iperf3 does not tell these.
            throughput_mbps: None,
            cwnd_pep_bytes: None,
            cwnd_e2e_bytes: None,
            ssthresh_bytes: None,
            in_flight_bytes: None,
            rtt_ms: None,
            owd_ms: None,
            rto_ms: None,
            pacing_mbps: None,
            limit: "",
            state: "",
        });
    }
}

/// The row of a stream.
fn flow<'a>(
    test: &'a Test,
    (point, socket): (u32, i64),
    named: &'a Named<'_>,
    sum: &Sum,
    (is_udp, bytes, length_s): (bool, u64, f64),
    smoothed: &Distribution,
) -> FlowRow<'a> {
    // A test that was interrupted, or failed, reports an error, or has no summary.
    let completed = test.error.is_none() && !test.end.streams.is_empty();
    let sent = total(test, socket, |end| end.sender.as_ref());
    let udp = total(test, socket, |end| end.udp.as_ref());
    let count = |value: Option<i64>| value.and_then(|count| u64::try_from(count).ok());
    let (from_s, to_s) = (sum.from_s, sum.from_s + length_s);
    let mbps = bytes as f64 * 8.0 / length_s / 1e6;
    let has_omitted = test.start.test_start.omit > 0.0;
    // Those of the summary include what was omitted.
    let of_intervals = Some(sum.rtts).filter(|rtts| has_omitted && rtts.2 > 0);
    let rtts = match of_intervals {
        Some((least, all, count, most)) => [Some(least), Some(all / f64::from(count)), Some(most)],
        None => [|of: &Total| of.min_rtt, |of: &Total| of.mean_rtt, |of: &Total| of.max_rtt]
            .map(|of| ms(sent.filter(|_| !has_omitted).and_then(of))),
    };
    let delays = Delays::of(smoothed, &Distribution::default());
    let both = test.start.connected.len() > 1 && test.end.sum_received_bidir_reverse.is_some();
    let cc = if both && !named.sends { &test.end.receiver_tcp_congestion } else { &test.end.sender_tcp_congestion };
    FlowRow {
        point,
        flow: &named.name,
        transport: if is_udp { "udp" } else { "tcp" },
        cc: cc.as_deref(),
        from: named.from,
        to: named.to,
        start_s: from_s,
        end_s: completed.then_some(to_s),
        completed,
        measured_from_s: from_s,
        measured_to_s: to_s,
        bytes,
        goodput_mbps: mbps,
        throughput_mbps: mbps,
        rtt_min_ms: rtts[0].or(delays.rtt_min_ms),
        rtt_p5_ms: delays.rtt_p5_ms,
        rtt_p50_ms: delays.rtt_p50_ms,
        rtt_mean_ms: rtts[1].or(delays.rtt_mean_ms),
        rtt_p95_ms: delays.rtt_p95_ms,
        rtt_p99_ms: delays.rtt_p99_ms,
        rtt_max_ms: rtts[2].or(delays.rtt_max_ms),
        segments_sent: udp.and_then(|total| count(total.packets)).filter(|packets| *packets > 0),
        retransmitted: sum
            .retransmitted
            .or_else(|| sent.filter(|_| !has_omitted).and_then(|total| count(total.retransmits))),
        // A receiver that got nothing counts nothing as lost.
        lost_packets: udp
            .and_then(|total| total.lost_packets)
            .map(|lost| u64::try_from(lost).unwrap_or(0))
            .filter(|_| bytes > 0),
        // A sender has its receiver's.
        jitter_ms: udp
            .filter(|_| bytes > 0)
            .and_then(|total| total.jitter_ms)
            .filter(|ms| ms.is_finite() && *ms >= 0.0),
        mean_cwnd_bytes: sum.max_cwnd.filter(|_| sum.cwnd_seconds > 0.0).map(|_| sum.cwnd_area / sum.cwnd_seconds),
        max_cwnd_bytes: sum.max_cwnd,
        run: 0,
        conn: 0,
        // iperf3 does not tell these.
        completion_s: None,
        owd_p5_ms: None,
        owd_p25_ms: None,
        owd_p50_ms: None,
        owd_p75_ms: None,
        owd_p95_ms: None,
        retrans_fast: None,
        retrans_rto: None,
        retrans_tlp: None,
        retrans_control: None,
        rtos: None,
        undos: None,
        dup_acks: None,
        max_dup_acks: None,
        ce_marks: None,
        limited_app: None,
        limited_cwnd: None,
        limited_rwnd: None,
        limited_pacing: None,
        limited_sndbuf: None,
        limited_other: None,
        mean_in_flight_bytes: None,
        max_in_flight_bytes: None,
        teid: None,
    }
}

/// Milliseconds of a known time in microseconds.
fn ms(us: Option<f64>) -> Option<f64> {
    us.filter(|us| us.is_finite() && *us > 0.0).map(|us| us / 1e3)
}
