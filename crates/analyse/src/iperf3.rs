//! Results of iperf3 (`iperf3 --json`): goodput, congestion window and smoothed round-trip time of each stream and interval.
//!
//! iperf3 documents its JSON only by its source; keys are those of versions 3.1 to 3.18. Round-trip times are the kernel's
//! smoothed ones at the end of each interval, of the sending side; without them (a receiver's file, or not Linux) they are
//! missing. What a sender counts in an interval was written to its socket, not received; the total is the receiver's, if it
//! reported one.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _};
use std::path::Path;

use record::tables::{FlowRow, SampleRow};
use serde::Deserialize;

use crate::collector::{Collector, Error, open};

/// Bytes of the longest file: a day of 100 streams, sampled each second, has less.
const LONGEST: u64 = 512 << 20;
/// Streams of a test.
const MOST_STREAMS: usize = 1_024;

#[derive(Deserialize)]
struct File {
    start: Start,
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
    #[serde(default)]
    test_start: TestStart,
}

#[derive(Deserialize)]
struct Connected {
    socket: i64,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Default, Deserialize)]
struct TestStart {
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    reverse: u8,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default)]
    streams: Vec<Stream>,
}

/// A stream in an interval.
#[derive(Deserialize)]
struct Stream {
    socket: i64,
    start: f64,
    end: f64,
    bytes: u64,
    retransmits: Option<u64>,
    snd_cwnd: Option<u64>,
    /// In microseconds.
    rtt: Option<f64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

#[derive(Default, Deserialize)]
struct End {
    #[serde(default)]
    streams: Vec<EndStream>,
    sender_tcp_congestion: Option<String>,
}

#[derive(Deserialize)]
struct EndStream {
    sender: Option<Total>,
    receiver: Option<Total>,
}

#[derive(Deserialize)]
struct Total {
    socket: i64,
    bytes: u64,
    /// In microseconds.
    min_rtt: Option<f64>,
    mean_rtt: Option<f64>,
    max_rtt: Option<f64>,
}

/// A stream over the whole test.
#[derive(Default)]
struct Sum {
    bytes: u64,
    from_s: f64,
    to_s: f64,
    /// Missing if no interval tells any: of a receiver, or of UDP.
    retransmitted: Option<u64>,
    cwnd_area: f64,
    /// The time of the intervals that tell a window.
    cwnd_seconds: f64,
    max_cwnd: Option<u64>,
    is_begun: bool,
}

/// Whether a file that begins so is one.
pub(crate) fn is_one(start: &[u8]) -> bool {
    let has = |text: &[u8]| start.windows(text.len()).any(|part| part == text);
    start.trim_ascii_start().starts_with(b"{") && has(b"\"start\"") && has(b"\"connected\"")
}

/// Reads a file.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let invalid = |what: String| Error::Invalid(format!("{}: {what}", path.display()));
    let file = open(path)?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    if size > LONGEST {
        return Err(invalid("results of iperf3 of more than 512 MiB: run shorter tests".to_owned()));
    }
    let read: File = serde_json::from_reader(BufReader::new(file.take(LONGEST)))
        .map_err(|error| invalid(format!("no results of iperf3: {error}")))?;
    if let Some(error) = &read.error {
        all.note(path, format_args!("iperf3 reports an error: {}", error.escape_debug()));
    }
    if read.start.connected.len() > MOST_STREAMS {
        return Err(invalid(format!("more than {MOST_STREAMS} streams")));
    }
    let transport = if read.start.test_start.protocol.eq_ignore_ascii_case("UDP") { "udp" } else { "tcp" };
    let streams: BTreeMap<i64, &Connected> = read.start.connected.iter().map(|one| (one.socket, one)).collect();
    let point = all.point(&[("file", path.display().to_string())]);
    let mut sums: BTreeMap<i64, Sum> = BTreeMap::new();
    let mut names: BTreeMap<i64, (String, String, String)> = BTreeMap::new();
    for (socket, one) in &streams {
        // A stream of a test in both directions has its own direction.
        let said = read.intervals.iter().flat_map(|interval| &interval.streams);
        let sends = said.filter(|stream| stream.socket == *socket).find_map(|stream| stream.sender);
        let sends = sends.unwrap_or(read.start.test_start.reverse == 0);
        let ends = [(&one.local_host, one.local_port), (&one.remote_host, one.remote_port)];
        let [from, to] = if sends { ends } else { [ends[1], ends[0]] };
        let label = |(host, port): (&String, u16)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        let name = format!("{transport} {} > {}", label(from), label(to));
        names.insert(*socket, (name, from.0.clone(), to.0.clone()));
    }
    for stream in read.intervals.iter().flat_map(|interval| &interval.streams) {
        let Some((name, ..)) = names.get(&stream.socket) else { continue };
        let (start, end) = (stream.start, stream.end);
        if !(start.is_finite() && end.is_finite() && 0.0 <= start && start < end && end < 1e9) {
            return Err(invalid(format!("an interval from {start} to {end} s")));
        }
        if stream.omitted || !all.options.wants(name) {
            continue;
        }
        let sum = sums.entry(stream.socket).or_default();
        if !sum.is_begun {
            (sum.is_begun, sum.from_s) = (true, start);
        }
        let seconds = end - start;
        sum.bytes = sum.bytes.saturating_add(stream.bytes);
        sum.to_s = sum.to_s.max(end);
        if let Some(more) = stream.retransmits {
            sum.retransmitted = Some(sum.retransmitted.unwrap_or(0).saturating_add(more));
        }
        if let Some(cwnd) = stream.snd_cwnd {
            sum.cwnd_area += cwnd as f64 * seconds;
            sum.cwnd_seconds += seconds;
        }
        sum.max_cwnd = sum.max_cwnd.max(stream.snd_cwnd);
        let srtt_ms = stream.rtt.filter(|rtt| rtt.is_finite() && *rtt > 0.0).map(|rtt| rtt / 1e3);
        all.tables.samples.push(&SampleRow {
            point,
            flow: name,
            t_s: end,
            goodput_mbps: stream.bytes as f64 * 8.0 / seconds / 1e6,
            cwnd_bytes: stream.snd_cwnd,
            srtt_ms,
            ..SampleRow::default()
        });
    }
    // A test that was interrupted, or failed, reports an error, or has no summary.
    let completed = read.error.is_none() && !read.end.streams.is_empty();
    for (socket, sum) in &sums {
        let Some((name, from, to)) = names.get(socket) else { continue };
        let total = |of: fn(&EndStream) -> Option<&Total>| {
            read.end.streams.iter().filter_map(of).find(|total| total.socket == *socket)
        };
        let (sent, received) = (total(|end| end.sender.as_ref()), total(|end| end.receiver.as_ref()));
        let bytes = received.map(|total| total.bytes).filter(|bytes| *bytes > 0).unwrap_or(sum.bytes);
        let ms = |value: Option<f64>| value.filter(|us| us.is_finite() && *us > 0.0).map(|us| us / 1e3);
        let seconds = sum.to_s - sum.from_s;
        let mbps = bytes as f64 * 8.0 / seconds / 1e6;
        all.tables.flows.push(&FlowRow {
            point,
            flow: name,
            transport,
            cc: read.end.sender_tcp_congestion.as_deref(),
            from,
            to,
            start_s: sum.from_s,
            end_s: completed.then_some(sum.to_s),
            completed,
            measured_from_s: sum.from_s,
            measured_to_s: sum.to_s,
            bytes,
            goodput_mbps: mbps,
            throughput_mbps: mbps,
            rtt_min_ms: ms(sent.and_then(|total| total.min_rtt)),
            rtt_mean_ms: ms(sent.and_then(|total| total.mean_rtt)),
            rtt_max_ms: ms(sent.and_then(|total| total.max_rtt)),
            retransmitted: sum.retransmitted,
            mean_cwnd_bytes: sum.max_cwnd.map(|_| sum.cwnd_area / sum.cwnd_seconds),
            max_cwnd_bytes: sum.max_cwnd,
            ..FlowRow::default()
        });
        all.measured_s += seconds;
    }
    all.bytes += size;
    Ok(())
}
