//! Results of ndt7: measurements one after the other or as a list, as clients print them, and M-Lab's archives.
//!
//! Read first: `spec/ndt7-protocol.md` and `data/result.go` in m-lab/ndt-server, and the JSON of m-lab/ndt7-client-go. Both ends count
//! bytes; the server alone tells its kernel's state. Of a download, that is the sender's; of an upload, windows and limits are the
//! client's and unknown. A download's bytes are those that the client counted, if it did, else those that it acknowledged; an upload's
//! are those that the server received. A test with a state of BBR was sent by BBR; other congestion controls are not told.
//!
//! Each archive is a test of its own, and a point: archives are joined in one file as `cat` and `jq -c .` do it. Measurements one
//! after the other are of one point; a test begins anew with another connection, or when its time or its bytes go back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use observe::progress::Samples;
use serde::Deserialize;
use speedtest::ndt7::{BbrInfo, TcpInfo, told_or_0};
use units::{Span, Time};

use crate::collector::{Collector, Error};
use crate::kernel::{self, Connection, States};
use crate::stamps::{self, Stamp};
use crate::text::{at_most, each_value, not_json, open_text};

/// Measurements of a file.
const MOST: usize = 100_000;
/// Tests of a file.
const MOST_TESTS: usize = 1_000;
/// Microseconds of the longest test that is read: a day.
const LONGEST_US: i64 = 86_400_000_000;

/// Anything that is in such a file: a measurement, one in an envelope, or an archive.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Value {
    key: Option<String>,
    value: Option<Measurement>,
    download: Option<Archive>,
    upload: Option<Archive>,
    start_time: Option<String>,
    app_info: Option<AppInfo>,
    #[serde(rename = "TCPInfo")]
    tcp_info: Option<TcpInfo>,
    #[serde(rename = "BBRInfo")]
    bbr_info: Option<BbrInfo>,
    connection_info: Option<ConnectionInfo>,
    origin: Option<String>,
    test: Option<String>,
    /// Exports of `BigQuery` have the archive in it.
    #[serde(rename = "raw")]
    raw: Option<Box<Value>>,
}

/// A direction of an archive.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Archive {
    #[serde(rename = "UUID")]
    uuid: Option<String>,
    start_time: Option<String>,
    #[serde(deserialize_with = "at_most::<MOST, _, _>")]
    server_measurements: Vec<Measurement>,
    #[serde(deserialize_with = "at_most::<MOST, _, _>")]
    client_measurements: Vec<Measurement>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Measurement {
    app_info: Option<AppInfo>,
    #[serde(rename = "TCPInfo")]
    tcp_info: Option<TcpInfo>,
    #[serde(rename = "BBRInfo")]
    bbr_info: Option<BbrInfo>,
    connection_info: Option<ConnectionInfo>,
    origin: Option<String>,
    test: Option<String>,
    /// Of an envelope `error`.
    failure: Option<String>,
}

impl Measurement {
    fn uuid(&self) -> Option<&str> {
        self.connection_info.as_ref()?.uuid.as_deref()
    }

    fn is_by_server(&self) -> bool {
        self.origin.as_deref() != Some("client")
    }

    /// Its time, and the bytes by then, as the program and as the kernel counts them.
    fn progress(&self) -> [Option<(i64, i64)>; 2] {
        let of_kernel = |info: &TcpInfo| {
            let (state, _) = info.state();
            let bytes = state.bytes_acked.saturating_add(state.bytes_received);
            Some((info.elapsed_time?, i64::try_from(bytes).unwrap_or(i64::MAX)))
        };
        [self.app_info.map(|app| (app.elapsed_time, app.num_bytes)), self.tcp_info.as_ref().and_then(of_kernel)]
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct ConnectionInfo {
    #[serde(rename = "UUID")]
    uuid: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct AppInfo {
    #[serde(deserialize_with = "told_or_0")]
    elapsed_time: i64,
    #[serde(deserialize_with = "told_or_0")]
    num_bytes: i64,
}

/// A test: a direction, and its measurements of either end.
#[derive(Default)]
struct Test {
    /// Bytes that the client counted, the server's application, and its kernel as acknowledged or received.
    client: Samples,
    server: Samples,
    acked: Samples,
    received: Samples,
    states: States<()>,
    is_partial: bool,
    lacks_state: bool,
    is_bbr: bool,
    end: Span,
    uuid: Option<String>,
    /// [`Measurement::progress`] of the latest one of the client and of the server.
    latest: [[Option<(i64, i64)>; 2]; 2],
    /// Whether the client said that another begins.
    is_over: bool,
}

impl Test {
    /// Whether a measurement cannot be a later one of this test.
    fn is_followed_by(&self, measurement: &Measurement) -> bool {
        let of_other =
            self.uuid.is_some() && measurement.uuid().is_some() && self.uuid.as_deref() != measurement.uuid();
        let before = self.latest[usize::from(measurement.is_by_server())];
        let mut both = before.into_iter().zip(measurement.progress()).filter_map(|(before, now)| before.zip(now));
        let goes_back = both.any(|(before, now)| now.0 < before.0 || now.1 < before.1);
        self.is_over || of_other || goes_back
    }

    fn take(&mut self, measurement: &Measurement) {
        if self.uuid.is_none() {
            self.uuid = measurement.uuid().map(str::to_owned);
        }
        for (latest, now) in self.latest[usize::from(measurement.is_by_server())].iter_mut().zip(measurement.progress())
        {
            *latest = now.or(*latest);
        }
        let by_client = measurement.origin.as_deref() == Some("client");
        let span = |us: i64| (0..=LONGEST_US).contains(&us).then(|| Span::from_micros(us as u64));
        let bytes = |count: i64| u64::try_from(count).unwrap_or(0);
        if let Some(app) = &measurement.app_info
            && let Some(at) = span(app.elapsed_time)
        {
            let counted = if by_client { &mut self.client } else { &mut self.server };
            counted.record(at, bytes(app.num_bytes));
            self.end = self.end.max(at);
        }
        let Some(info) = measurement.tcp_info.as_ref().filter(|_| !by_client) else { return };
        let elapsed = info.elapsed_time.or(measurement.app_info.as_ref().map(|app| app.elapsed_time));
        let Some(at) = elapsed.and_then(span) else { return };
        self.end = self.end.max(at);
        let (state, is_whole) = info.state();
        self.acked.record(at, state.bytes_acked);
        self.received.record(at, state.bytes_received);
        self.is_partial |= !is_whole;
        self.lacks_state |= info.ca_state.is_none() || !is_whole;
        let bbr = measurement.bbr_info.and_then(|bbr| bbr.state());
        self.is_bbr |= bbr.is_some();
        self.states.push((), kernel::state(Time::ZERO + at, state, bbr));
    }
}

/// The tests of a point: all of an archive, or all measurements that are in none.
#[derive(Default)]
struct Group {
    /// In the order in which they began, with their names.
    tests: Vec<(&'static str, Test)>,
    begun_s: Option<f64>,
    started: Option<String>,
    is_archive: bool,
}

#[derive(Default)]
struct File {
    groups: Vec<Group>,
    /// The identifiers of the tests in archives.
    uuids: BTreeSet<String>,
    /// Archives that came twice.
    again: u64,
    failures: Vec<String>,
    count: usize,
    tests: usize,
}

impl File {
    fn value(&mut self, value: Value) -> Result<(), String> {
        if let Some(raw) = value.raw {
            return self.value(*raw);
        }
        let mut group = Group { is_archive: true, ..Group::default() };
        for (name, archive) in [("download", value.download), ("upload", value.upload)] {
            let Some(archive) = archive else { continue };
            if archive.uuid.as_ref().is_some_and(|uuid| !self.uuids.insert(format!("{name} {uuid}"))) {
                self.again += 1;
                continue;
            }
            let begun = archive.start_time.as_ref().or(value.start_time.as_ref());
            if let Some((Stamp::Unix(at), _)) = begun.and_then(|text| stamps::take(text)) {
                group.begun_s.get_or_insert(at);
            }
            group.started = group.started.or_else(|| begun.map(|text| text.chars().take(40).collect()));
            let all = [("server", archive.server_measurements), ("client", archive.client_measurements)];
            let mut test = Test::default();
            for (origin, measurements) in all {
                for mut measurement in measurements {
                    measurement.origin = Some(origin.to_owned());
                    if self.counts(&measurement)? {
                        test.take(&measurement);
                    }
                }
            }
            self.begins()?;
            group.tests.push((name, test));
        }
        if !group.tests.is_empty() {
            self.groups.push(group);
        }
        if let Some(measurement) = value.value {
            if let Some(failure) = measurement.failure.as_ref().filter(|_| self.failures.len() < 10) {
                self.failures.push(failure.chars().take(200).collect());
            }
            if value.key.as_deref() == Some("starting") {
                let name = name_of(&measurement);
                let tests = self.groups.iter_mut().filter(|group| !group.is_archive).flat_map(|group| &mut group.tests);
                tests.filter(|(other, _)| Some(*other) == name).for_each(|(_, test)| test.is_over = true);
            }
            self.measurement(&measurement)?;
        } else if value.key.is_none() {
            let Value { app_info, tcp_info, bbr_info, connection_info, origin, test, .. } = value;
            let measurement =
                Measurement { app_info, tcp_info, bbr_info, connection_info, origin, test, failure: None };
            self.measurement(&measurement)?;
        }
        Ok(())
    }

    /// Counts a measurement, if it is one.
    fn counts(&mut self, measurement: &Measurement) -> Result<bool, String> {
        if measurement.app_info.is_none() && measurement.tcp_info.is_none() {
            return Ok(false);
        }
        self.count += 1;
        if self.count > MOST { Err(format!("more than {MOST} measurements: split the file")) } else { Ok(true) }
    }

    /// Counts a test.
    fn begins(&mut self) -> Result<(), String> {
        self.tests += 1;
        if self.tests > MOST_TESTS { Err(format!("more than {MOST_TESTS} tests: split the file")) } else { Ok(()) }
    }

    /// A measurement that is in no archive.
    fn measurement(&mut self, measurement: &Measurement) -> Result<(), String> {
        if !self.counts(measurement)? {
            return Ok(());
        }
        let at = match self.groups.iter().position(|group| !group.is_archive) {
            Some(at) => at,
            None => {
                self.groups.push(Group::default());
                self.groups.len() - 1
            }
        };
        let tests = &self.groups[at].tests;
        let name = name_of(measurement).unwrap_or_else(|| tests.last().map_or("", |(name, _)| *name));
        // The latest of this name: what came before it is over.
        let place = tests.iter().rposition(|(other, _)| *other == name);
        let place = place.filter(|&place| !tests[place].1.is_followed_by(measurement));
        if let Some(place) = place {
            self.groups[at].tests[place].1.take(measurement);
            return Ok(());
        }
        self.begins()?;
        let mut test = Test::default();
        test.take(measurement);
        self.groups[at].tests.push((name, test));
        Ok(())
    }
}

/// The test that a measurement names.
fn name_of(measurement: &Measurement) -> Option<&'static str> {
    match measurement.test.as_deref() {
        Some("upload") => Some("upload"),
        Some(_) => Some("download"),
        None => None,
    }
}

/// Reads a file.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let mut file = File::default();
    let read = each_value::<Value>(open_text(path)?, &mut |value| file.value(value));
    read.map_err(not_json(path, "results of ndt7"))?;
    if file.count == 0 {
        return Err(Error::Invalid(format!("{}: no measurement of ndt7 (AppInfo or TCPInfo)", path.display())));
    }
    for failure in &file.failures {
        all.note(path, format_args!("ndt7 reports a failure: {}", failure.escape_debug()));
    }
    if file.again > 0 {
        all.note(path, format_args!("{} tests are in the file twice and were taken once", file.again));
    }
    let many = file.groups.len() > 1;
    let mut said = Said::default();
    for (number, group) in file.groups.into_iter().enumerate() {
        let mut values = vec![("file", path.display().to_string())];
        if many {
            values.push(("test", (number + 1).to_string()));
            values.extend(group.started.clone().map(|started| ("started", started)));
        }
        let point = all.point(&values);
        push(path, all, group, point, &mut said);
    }
    if said.is_partial {
        all.note(path, "congestion windows, losses and timeouts are unknown, and missing in the tables");
    }
    if said.is_in_turn {
        all.note(path, "does not tell when its tests began: they are shown one after the other");
    }
    all.bytes += path.metadata().map_or(0, |data| data.len());
    Ok(())
}

/// What is to be noted once of a file.
#[derive(Default)]
struct Said {
    is_partial: bool,
    is_in_turn: bool,
    of_program: bool,
    of_client: bool,
}

/// Adds the tests of a point.
fn push(path: &Path, all: &mut Collector<'_>, group: Group, point: u32, said: &mut Said) {
    let mut conns: BTreeMap<&str, u32> = BTreeMap::new();
    let mut begin = Time::ZERO;
    said.is_in_turn |= group.tests.len() > 1;
    for (name, mut test) in group.tests {
        // A test that does not tell its direction has the one in which there were more bytes.
        let total = |samples: &Samples| samples.last().map_or(0, |last| last.1);
        let is_upload = match name {
            "" => total(&test.received) > total(&test.acked),
            name => name == "upload",
        };
        let (flow, from, to) = kernel::ends(is_upload);
        if !all.options.wants(flow) {
            continue;
        }
        let of_kernel = if is_upload { &test.received } else { &test.acked };
        let candidates = match is_upload {
            true => [of_kernel, &test.server, &test.client],
            false => [&test.client, of_kernel, &test.server],
        };
        let Some(bytes) = candidates.into_iter().find(|samples| total(samples) > 0).cloned() else { continue };
        if total(of_kernel) == 0 && bytes != test.client && !std::mem::replace(&mut said.of_program, true) {
            all.note(
                path,
                format_args!("the bytes of the {flow} are those of the server's program, not of its kernel"),
            );
        } else if is_upload && bytes == test.client && !std::mem::replace(&mut said.of_client, true) {
            all.note(path, "the bytes of the upload are what the client wrote, in part into its own buffers");
        }
        let mut states = test.states.remove(&());
        for state in &mut states {
            state.at = begin + state.at.saturating_since(Time::ZERO);
        }
        states.sort_by_key(|state| state.at);
        states.dedup_by_key(|state| state.at);
        said.is_partial |= test.is_partial && !is_upload;
        let conn = conns.entry(flow).or_default();
        let one = Connection {
            flow,
            conn: *conn,
            from,
            to,
            congestion: if test.is_bbr && !is_upload { "bbr" } else { "" },
            at_sender: !is_upload,
            has_senders_rtt: !is_upload,
            is_whole: !test.is_partial,
            has_state: !test.lacks_state,
            bytes: Some((begin, bytes)),
        };
        *conn += 1;
        all.measured_s += kernel::push(all, point, &one, states);
        begin += test.end;
    }
    if let Some(begun_s) = group.begun_s {
        all.anchor(point, begun_s, begin.as_secs_f64());
    }
}
