//! Tests of MONROE's container nettest, and those that we export in its layout: up to three files of a test.
//!
//! Read first: nettest/readme.md in MONROE-PROJECT/Experiments, and `rmbt_result.c` and `rmbt_stats.c` of its client, lwimmer/rmbt-client.
//! All times are in ns since the test's zero, but those of a time series, which are since its flow's start. A flow's number in STATS
//! is that of its connection, which download and upload may share: then the time tells which of them a state is of.
//!
//! The client polls its own kernel. Of an upload, that is the sender's; of a download, windows and limits are the server's and unknown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use observe::progress::Samples;
use record::tables::LatencyRow;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use units::{Span, Time};
use wire::tcp_info::TcpInfo;

use crate::collector::{Collector, Error};
use crate::kernel::{self, Connection, States};
use crate::sniff::{self, Kind, MonroeFile};
use crate::text::{at_most, each_value, not_json, open_text};

/// Files of a directory that are looked at.
const MOST_FILES: usize = 30_000;
/// Flows of a test and direction.
const MOST_FLOWS: usize = 1_024;
/// How much later than its flow's end a state may be and still be of it: the last one is taken after the last byte.
const GRACE: Span = Span::from_millis(500);

/// The files of a test.
#[derive(Debug, Default)]
pub(crate) struct Test {
    files: BTreeMap<MonroeFile, PathBuf>,
}

/// Groups files by the test that they are of, in the order of their names.
pub(crate) fn tests(files: impl IntoIterator<Item = (PathBuf, MonroeFile)>) -> Vec<Test> {
    let mut tests: BTreeMap<(PathBuf, String), Test> = BTreeMap::new();
    for (path, file) in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = sniff::stem(&name).unwrap_or(&name).to_owned();
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        tests.entry((folder, stem)).or_default().files.insert(file, path);
    }
    tests.into_values().collect()
}

/// Finds the tests of a directory, and the files with metadata in it.
pub(crate) fn folder(path: &Path, all: &mut Collector<'_>) -> Result<(Vec<Test>, Vec<PathBuf>), Error> {
    let (mut files, mut metadata, mut other) = (Vec::new(), Vec::new(), 0u64);
    let entries = path.read_dir().map_err(Error::io(path))?;
    for (entry, number) in entries.zip(1..) {
        let entry = entry.map_err(Error::io(path))?.path();
        if number > MOST_FILES {
            return Err(Error::Invalid(format!("{}: more than {MOST_FILES} files", path.display())));
        }
        if !entry.is_file() {
            continue;
        }
        match sniff::kind(&entry) {
            Ok(Kind::Monroe(file)) => files.push((entry, file)),
            Ok(Kind::Metadata) => metadata.push(entry),
            Err(error @ Error::Io { .. }) => return Err(error),
            _ => other += 1,
        }
    }
    if other > 0 {
        all.note(path, format_args!("{other} files are neither tests of nettest nor metadata of modems"));
    }
    metadata.sort();
    Ok((tests(files), metadata))
}

/// What is read of a summary.
#[derive(Default, Deserialize)]
struct Summary {
    #[serde(default)]
    res_time_start_s: Option<f64>,
    #[serde(default)]
    res_tcp_congestion: Option<String>,
    #[serde(default)]
    res_version_client: Option<String>,
    #[serde(default)]
    res_status: Option<String>,
    #[serde(default)]
    res_dl_num_flows: Option<u64>,
    #[serde(default)]
    res_dl_time_ns: Option<u64>,
    #[serde(default)]
    res_dl_bytes: Option<u64>,
    #[serde(default)]
    res_ul_num_flows: Option<u64>,
    #[serde(default)]
    res_ul_time_ns: Option<u64>,
    #[serde(default)]
    res_ul_bytes: Option<u64>,
}

/// What is read of FLOWS.
#[derive(Default, Deserialize)]
struct Flows {
    #[serde(default)]
    res_time_start_s: Option<f64>,
    #[serde(default)]
    res_details: Details,
}

#[derive(Default, Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "at_most::<MOST_FLOWS, _, _>")]
    dl: Vec<Flow>,
    #[serde(default, deserialize_with = "at_most::<MOST_FLOWS, _, _>")]
    ul: Vec<Flow>,
    #[serde(default)]
    rtt_tcp_payload: Payloads,
}

#[derive(Deserialize)]
struct Flow {
    flow_id: Option<u64>,
    time_start_rel_ns: Option<i64>,
    time_end_rel_ns: Option<i64>,
    #[serde(default)]
    time_series: Series,
}

#[derive(Default, Deserialize)]
struct Payloads {
    #[serde(default, deserialize_with = "at_most::<10_000, _, _>")]
    values: Vec<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    time_start_rel_ns: Option<i64>,
    rtt_client_ns: Option<i64>,
}

/// Bytes over time, thinned out while they are read.
#[derive(Default)]
struct Series(Samples);

#[derive(Deserialize)]
struct Count {
    t: Option<i64>,
    t_end: Option<i64>,
    b: i64,
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Series, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Series;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a list of times and bytes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Series, A::Error> {
                let mut samples = Samples::default();
                let mut last = None;
                while let Some(count) = from.next_element::<Count>()? {
                    let time = count.t.or(count.t_end).and_then(|ns| u64::try_from(ns).ok());
                    let (Some(time), Ok(bytes)) = (time.map(Span::from_nanos), u64::try_from(count.b)) else {
                        continue;
                    };
                    samples.record(time, bytes);
                    last = Some((time, bytes));
                }
                if let Some((time, bytes)) = last {
                    samples.finish(time, bytes);
                }
                Ok(Series(samples))
            }
        }
        from.deserialize_seq(List)
    }
}

/// Makes the row of STATS, and the kernel's state from it.
macro_rules! state_row {
    (required { $($name:ident: $key:ident),+ $(,)? } optional { $($later:ident: $later_key:ident),+ $(,)? }) => {
        #[derive(Deserialize)]
        struct State {
            flow_id: u64,
            timestamp_ns: i64,
            tcpi_ca_state: Option<u8>,
            tcpi_delivery_rate_app_limited: Option<u8>,
            tcpi_snd_ssthresh: Option<u32>,
            tcpi_min_rtt: Option<u32>,
            tcpi_data_segs_out: Option<u32>,
            tcpi_pacing_rate: Option<u64>,
            $($key: Option<u64>,)+
            $($later_key: Option<u64>,)+
        }

        impl State {
            /// What it tells, and whether that is all of the table `tcp_info`.
            fn info(&self) -> (TcpInfo, bool) {
                let info = TcpInfo {
                    ca_state: self.tcpi_ca_state.unwrap_or(0),
                    flags: self.tcpi_delivery_rate_app_limited.unwrap_or(0) & 1,
                    snd_ssthresh: self.tcpi_snd_ssthresh.unwrap_or(u32::MAX),
                    min_rtt: self.tcpi_min_rtt.unwrap_or(0),
                    data_segs_out: self.tcpi_data_segs_out.unwrap_or(0),
                    pacing_rate: self.tcpi_pacing_rate.unwrap_or(0),
                    $($name: self.$key.and_then(|value| value.try_into().ok()).unwrap_or_default(),)+
                    $($later: self.$later_key.and_then(|value| value.try_into().ok()),)+
                    ..TcpInfo::default()
                };
                (info, $(self.$key.is_some())&&+)
            }
        }
    };
}
state_row! {
    required {
        rto: tcpi_rto, snd_mss: tcpi_snd_mss, unacked: tcpi_unacked, sacked: tcpi_sacked, lost: tcpi_lost, retrans: tcpi_retrans,
        rtt: tcpi_rtt, rttvar: tcpi_rttvar, snd_cwnd: tcpi_snd_cwnd, total_retrans: tcpi_total_retrans,
        bytes_acked: tcpi_bytes_acked, bytes_received: tcpi_bytes_received, notsent_bytes: tcpi_notsent_bytes,
        delivery_rate: tcpi_delivery_rate,
    }
    optional { busy_time: tcpi_busy_time, rwnd_limited: tcpi_rwnd_limited, sndbuf_limited: tcpi_sndbuf_limited }
}

/// The states of a file of STATS by flow, and what all of them tell.
struct Stats {
    states: States<u64>,
    is_whole: bool,
    has_state: bool,
}

fn stats(path: &Path, all: &Collector<'_>) -> Result<Stats, Error> {
    let mut stats = Stats { states: States::default(), is_whole: true, has_state: true };
    let mut count = 0u64;
    each_value::<State>(open_text(path)?, &mut |row| {
        count += 1;
        if count.is_multiple_of(1 << 12) && all.options.check().is_err() {
            return Err("interrupted".to_owned());
        }
        if row.flow_id >= MOST_FLOWS as u64 {
            return Err(format!("flow_id {}: expected a number below {MOST_FLOWS}", row.flow_id));
        }
        let Ok(at) = u64::try_from(row.timestamp_ns) else { return Ok(()) };
        let (info, is_whole) = row.info();
        stats.is_whole &= is_whole;
        stats.has_state &= row.tcpi_ca_state.is_some();
        stats.states.push(row.flow_id, kernel::state(Time::from_nanos(at), info, None));
        Ok(())
    })
    .map_err(|error| match all.options.check() {
        Err(interrupted) => interrupted,
        Ok(()) => not_json(path, "STATS of nettest")(error),
    })?;
    stats.has_state &= stats.is_whole;
    Ok(stats)
}

/// Reads a test.
pub(crate) fn analyse(test: &Test, all: &mut Collector<'_>) -> Result<(), Error> {
    all.options.check()?;
    let path = |file| test.files.get(&file);
    let Some(first) = path(MonroeFile::Flows).or(path(MonroeFile::Stats)).or(path(MonroeFile::Summary)) else {
        return Ok(());
    };
    let summary: Option<Summary> = match path(MonroeFile::Summary) {
        Some(path) => {
            let read = serde_json::from_reader(open_text(path)?);
            Some(read.map_err(not_json(path, "a summary of nettest"))?)
        }
        None => None,
    };
    let flows: Option<Flows> = match path(MonroeFile::Flows) {
        Some(path) => {
            let read = serde_json::from_reader(open_text(path)?);
            Some(read.map_err(not_json(path, "FLOWS of nettest"))?)
        }
        None => None,
    };
    let mut stats = path(MonroeFile::Stats).map(|path| stats(path, all)).transpose()?;
    for path in test.files.values() {
        all.bytes += path.metadata().map_or(0, |data| data.len());
    }
    let start_s = summary.as_ref().and_then(|summary| summary.res_time_start_s);
    let start_s = start_s.or(flows.as_ref().and_then(|flows| flows.res_time_start_s));
    let summary = summary.unwrap_or_default();
    if let Some(status) = summary.res_status.as_ref().filter(|status| *status != "success") {
        all.note(first, format_args!("the test ended with status {}", status.escape_debug()));
    }
    let point = all.point(&[("file", first.display().to_string())]);
    let mut writer = Writer { all, point, first, summary: &summary, ends_s: 0.0, told: false };
    match flows {
        Some(flows) => writer.flows(&flows.res_details, stats.as_mut()),
        None if stats.is_some() => writer.states(stats.as_mut()),
        None => writer.figures(),
    }
    let (ends_s, told) = (writer.ends_s, writer.told);
    if let Some(stats) = &stats {
        if !stats.is_whole && told {
            all.note(first, "windows, losses and limits are unknown, and missing in the tables");
        }
        if stats.states.stride() > 1 {
            all.note(first, format_args!("of every {} states one is kept", stats.states.stride()));
        }
    }
    all.measured_s += ends_s;
    if let Some(start_s) = start_s {
        all.anchor(point, start_s, ends_s);
    }
    Ok(())
}

/// Writes the rows of a test.
struct Writer<'a, 'b> {
    all: &'a mut Collector<'b>,
    point: u32,
    first: &'a Path,
    summary: &'a Summary,
    /// The end of the latest flow.
    ends_s: f64,
    /// Whether a flow with states was written.
    told: bool,
}

impl Writer<'_, '_> {
    /// The sender's congestion control. That of the client is the sender's of uploads; our own exports tell the server's.
    fn congestion(&self, is_upload: bool) -> String {
        let ours = self.summary.res_version_client.as_ref().is_some_and(|version| version.starts_with("ranway "));
        let name = self.summary.res_tcp_congestion.as_deref().unwrap_or("");
        if is_upload || ours { name.chars().take(32).collect() } else { String::new() }
    }

    /// Adds a flow, unless its name is not wanted.
    fn flow(
        &mut self,
        is_upload: bool,
        conn: usize,
        bytes: Option<(Time, Samples)>,
        stats: Option<(Vec<kernel::State>, &Stats)>,
    ) {
        let (flow, from, to) = kernel::ends(is_upload);
        if !self.all.options.wants(flow) {
            return;
        }
        let (states, is_whole, has_state) =
            stats.map_or((Vec::new(), false, false), |(states, stats)| (states, stats.is_whole, stats.has_state));
        let start_s = bytes.as_ref().map(|bytes| bytes.0).or(states.first().map(|state| state.at));
        let congestion = self.congestion(is_upload);
        self.told |= !states.is_empty();
        let one = Connection {
            flow,
            conn: conn as u32,
            from,
            to,
            congestion: &congestion,
            at_sender: is_upload && is_whole,
            has_senders_rtt: is_upload,
            is_whole,
            has_state,
            bytes,
        };
        let seconds = kernel::push(self.all, self.point, &one, states);
        self.ends_s = self.ends_s.max(start_s.map_or(0.0, Time::as_secs_f64) + seconds);
    }

    fn flows(&mut self, details: &Details, mut stats: Option<&mut Stats>) {
        for payload in &details.rtt_tcp_payload.values {
            let ns = |value: Option<i64>| value.and_then(|ns| u64::try_from(ns).ok()).map(|ns| ns as f64);
            if let (Some(at), Some(rtt)) = (ns(payload.time_start_rel_ns), ns(payload.rtt_client_ns)) {
                self.all.tables.latencies.push(&LatencyRow {
                    point: self.point,
                    run: 0,
                    t_s: at / 1e9,
                    probe: "request",
                    hop: None,
                    phase: "before",
                    rtt_ms: (rtt > 0.0).then_some(rtt / 1e6),
                });
            }
        }
        let ids = |flows: &[Flow]| -> Vec<u64> {
            flows.iter().zip(0..).map(|(flow, index)| flow.flow_id.unwrap_or(index)).collect()
        };
        let shared = ids(&details.dl).iter().any(|id| ids(&details.ul).contains(id));
        let mut guessed = false;
        for (is_upload, flows) in [(false, &details.dl), (true, &details.ul)] {
            let before = Time::ZERO + Span::from_secs_f64(self.ends_s);
            for (conn, (flow, id)) in flows.iter().zip(ids(flows)).enumerate() {
                let time = |ns: Option<i64>| ns.and_then(|ns| u64::try_from(ns).ok()).map(Time::from_nanos);
                let mut states = stats.as_mut().map_or_else(Vec::new, |stats| stats.states.remove(&id));
                let told = states.first().map(|state| state.at).filter(|_| !shared);
                let start = time(flow.time_start_rel_ns).or(told).unwrap_or_else(|| {
                    guessed |= is_upload && !details.dl.is_empty();
                    before
                });
                let last = flow.time_series.0.last().map_or(Span::ZERO, |last| last.0);
                let end = time(flow.time_end_rel_ns).unwrap_or(start + last) + GRACE;
                if shared && flow.time_start_rel_ns.is_none() {
                    states.clear();
                }
                let (of_it, others) = states.into_iter().partition(|state| (start..=end).contains(&state.at));
                if let Some(stats) = stats.as_mut() {
                    let others: Vec<kernel::State> = others;
                    others.into_iter().for_each(|state| stats.states.give_back(id, state));
                }
                let stats = stats.as_deref().map(|stats| (of_it, stats));
                self.flow(is_upload, conn, Some((start, flow.time_series.0.clone())), stats);
            }
        }
        if guessed {
            self.all.note(self.first, "does not tell when the uploads began: they are shown after the downloads");
        }
    }

    /// Writes flows of which states alone are known: the direction is where bytes went.
    fn states(&mut self, stats: Option<&mut Stats>) {
        let Some(stats) = stats else { return };
        let ids: Vec<u64> = stats.states.keys().copied().collect();
        let mut conns = [0, 0];
        for id in ids {
            let states = stats.states.remove(&id);
            let is_upload = kernel::are_of_sender(&states);
            let conn = &mut conns[usize::from(is_upload)];
            *conn += 1;
            let conn = *conn - 1;
            self.flow(is_upload, conn, None, Some((states, stats)));
        }
        self.all.note(self.first, "has no FLOWS beside it: bytes are those of the kernel's counters");
    }

    /// Writes the flows of a summary alone: all of a direction as one.
    fn figures(&mut self) {
        let summary = self.summary;
        let all = [
            (false, summary.res_dl_num_flows, summary.res_dl_time_ns, summary.res_dl_bytes),
            (true, summary.res_ul_num_flows, summary.res_ul_time_ns, summary.res_ul_bytes),
        ];
        for (is_upload, flows, time, bytes) in all {
            let (Some(time), Some(bytes)) = (time.filter(|time| *time > 0), bytes) else { continue };
            let mut samples = Samples::default();
            samples.record(Span::ZERO, 0);
            samples.finish(Span::from_nanos(time), bytes);
            let start = Time::ZERO + Span::from_secs_f64(self.ends_s);
            self.flow(is_upload, 0, Some((start, samples)), None);
            if flows.is_some_and(|flows| flows > 1) {
                let what = "is a summary alone: the flows of a direction are one, and nothing is known over time";
                self.all.note(self.first, what);
            }
        }
    }
}
