//! Results of ndt7: measurements one after the other or as a list, as clients print them, and M-Lab's archives.
//!
//! Read first: `spec/ndt7-protocol.md` and `data/result.go` in m-lab/ndt-server, and the JSON of m-lab/ndt7-client-go. Both ends count
//! bytes; the server alone tells its kernel's state. Of a download, that is the sender's; of an upload, windows and limits are the
//! client's and unknown. A download's bytes are those that the client counted, if it did, else those that it acknowledged; an upload's
//! are those that the server received. A test with a state of BBR was sent by BBR; other congestion controls are not told.

use std::collections::BTreeMap;
use std::path::Path;

use measure::ndt7::{BbrInfo, TcpInfo};
use measure::rate::Samples;
use serde::Deserialize;
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
    origin: Option<String>,
    test: Option<String>,
}

/// A direction of an archive.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Archive {
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
    origin: Option<String>,
    test: Option<String>,
    /// Of an envelope `error`.
    failure: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct AppInfo {
    elapsed_time: i64,
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
}

impl Test {
    fn take(&mut self, measurement: &Measurement) {
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

#[derive(Default)]
struct File {
    /// Tests in the order in which they began, with their names.
    tests: Vec<(&'static str, Test)>,
    begun_s: Option<f64>,
    failures: Vec<String>,
    count: usize,
}

impl File {
    fn value(&mut self, value: Value) -> Result<(), String> {
        for (name, archive) in [("download", value.download), ("upload", value.upload)] {
            let Some(archive) = archive else { continue };
            let begun = archive.start_time.as_ref().or(value.start_time.as_ref());
            if let Some((Stamp::Unix(at), _)) = begun.and_then(|text| stamps::take(text)) {
                self.begun_s.get_or_insert(at);
            }
            let all = [("server", archive.server_measurements), ("client", archive.client_measurements)];
            for (origin, measurements) in all {
                for mut measurement in measurements {
                    measurement.origin = Some(origin.to_owned());
                    self.measurement(Some(name), &measurement)?;
                }
            }
        }
        if let Some(measurement) = value.value {
            if let Some(failure) = measurement.failure.as_ref().filter(|_| self.failures.len() < 10) {
                self.failures.push(failure.chars().take(200).collect());
            }
            self.measurement(None, &measurement)?;
        } else if value.key.is_none() {
            let Value { app_info, tcp_info, bbr_info, origin, test, .. } = value;
            let measurement = Measurement { app_info, tcp_info, bbr_info, origin, test, failure: None };
            self.measurement(None, &measurement)?;
        }
        Ok(())
    }

    fn measurement(&mut self, name: Option<&'static str>, measurement: &Measurement) -> Result<(), String> {
        if measurement.app_info.is_none() && measurement.tcp_info.is_none() {
            return Ok(());
        }
        self.count += 1;
        if self.count > MOST {
            return Err(format!("more than {MOST} measurements: split the file"));
        }
        let name = name.unwrap_or(match measurement.test.as_deref() {
            Some("upload") => "upload",
            Some(_) => "download",
            None => self.tests.last().map_or("", |(name, _)| *name),
        });
        // A test of the same name begins when the time begins anew.
        let elapsed = measurement.app_info.as_ref().map(|app| app.elapsed_time);
        let is_again = |test: &Test| {
            let by_client = measurement.origin.as_deref() == Some("client");
            let counted = if by_client { &test.client } else { &test.server };
            let last = counted.last().map(|last| last.0.as_micros() as i64);
            last.zip(elapsed).is_some_and(|(last, now)| now < last / 2)
        };
        let place = self.tests.iter().rposition(|(other, test)| *other == name && !is_again(test));
        match place {
            Some(place) => self.tests[place].1.take(measurement),
            _ if self.tests.len() >= MOST_TESTS => return Err(format!("more than {MOST_TESTS} tests: split the file")),
            _ => {
                let mut test = Test::default();
                test.take(measurement);
                self.tests.push((name, test));
            }
        }
        Ok(())
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
    let point = all.point(&[("file", path.display().to_string())]);
    let mut conns: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut begin, mut partial, many) = (Time::ZERO, false, file.tests.len() > 1);
    for (name, mut test) in file.tests {
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
        if total(of_kernel) == 0 && bytes != test.client {
            all.note(
                path,
                format_args!("the bytes of the {flow} are those of the server's program, not of its kernel"),
            );
        } else if is_upload && bytes == test.client {
            all.note(path, "the bytes of the upload are what the client wrote, in part into its own buffers");
        }
        let mut states = test.states.remove(&());
        for state in &mut states {
            state.at = begin + state.at.saturating_since(Time::ZERO);
        }
        states.sort_by_key(|state| state.at);
        states.dedup_by_key(|state| state.at);
        partial |= test.is_partial && !is_upload;
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
    if partial {
        all.note(path, "congestion windows, losses and timeouts are unknown, and missing in the tables");
    }
    if many {
        all.note(path, "does not tell when its tests began: they are shown one after the other");
    }
    if let Some(begun_s) = file.begun_s {
        all.anchor(point, begun_s, begin.as_secs_f64());
    }
    all.bytes += path.metadata().map_or(0, |data| data.len());
    Ok(())
}
