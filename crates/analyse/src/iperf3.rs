//! Results of iperf3 (`iperf3 --json`, `--json-stream`): goodput, congestion window and smoothed round-trip time of each stream and
//! interval. A file may have several tests, as `--logfile` appends them.
//!
//! iperf3 documents its JSON only by its source; keys are those of versions 3.1 to 3.21, read first: `iperf_print_intermediate`,
//! `iperf_print_results`, `get_results` in `iperf_api.c`. Round-trip times are the kernel's smoothed ones at the end of each
//! interval, of the sending side; without them (a receiver's file, or not Linux) they are missing. What a sender counts in an
//! interval was written to its socket, not received; the total is the receiver's, if it reported one. What a sender of UDP counts is
//! no goodput: over time, only the receiver's file tells it.
//!
//! The clock begins anew when the omitted seconds are over, within an interval: how long an interval was is what it says
//! (`seconds`), not the difference of its ends.

mod format;
mod rows;

use std::io::{self, BufRead};
use std::path::Path;

use crate::collector::{Collector, Error};
use crate::text::{each_value, failed, not_json, open_text};
use format::{Test, Value};

/// Streams of a test.
const MOST_STREAMS: usize = 1_024;
/// Tests of a file.
const MOST_TESTS: usize = 1_000;

/// Whether a file that begins so is one.
pub(crate) fn is_one(start: &[u8]) -> bool {
    let has = |text: &[u8]| start.windows(text.len()).any(|part| part == text);
    let is_json = start.split(|byte| *byte == b'\n').any(|line| matches!(line.trim_ascii_start(), [b'{' | b'[', ..]));
    is_json && has(b"\"start\"") && has(b"\"connected\"")
}

/// Passes over lines of text in front of the results, as of a script that ran the test. Returns their number.
fn skip_text(from: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let start = from.fill_buf()?;
        match start.first() {
            None | Some(b'{') => return Ok(skipped),
            // A list is the first thing in a file; `[  5] local` is text.
            Some(b'[') if skipped == 0 => return Ok(0),
            Some(byte) if byte.is_ascii_whitespace() => from.consume(1),
            _ => {
                skipped += 1;
                from.skip_until(b'\n')?;
            }
        }
    }
}

/// The tests of a file.
#[derive(Default)]
struct Tests {
    all: Vec<Test>,
    /// Parts of no test.
    others: u64,
}

impl Tests {
    fn take(&mut self, value: Value) -> Result<(), String> {
        let Value { start, intervals, end, error, event, data } = value;
        let Some(event) = event else {
            let Some(start) = start else {
                self.others += 1;
                return Ok(());
            };
            // The whole of a test whose parts came before (`--json-stream-full-output`).
            let is_whole =
                |test: &mut Test| test.is_streamed && start.cookie.is_some() && test.start.cookie == start.cookie;
            if self.all.last_mut().is_some_and(is_whole) {
                self.all.pop();
            }
            return self.begin(Test { start, intervals, end: end.unwrap_or_default(), error, is_streamed: false });
        };
        let data = data.unwrap_or_default();
        let fault = |error: serde_json::Error| format!("event `{event}`: {error}");
        if event == "start" {
            let start = serde_json::from_value(data).map_err(fault)?;
            return self.begin(Test { start, is_streamed: true, ..Test::default() });
        }
        let Some(test) = self.all.last_mut().filter(|test| test.is_streamed) else {
            self.others += 1;
            return Ok(());
        };
        match event.as_str() {
            "interval" => test.intervals.push(serde_json::from_value(data).map_err(fault)?),
            "end" => test.end = serde_json::from_value(data).map_err(fault)?,
            "error" => test.error = Some(data.as_str().map_or_else(|| data.to_string(), str::to_owned)),
            // What the server wrote.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, test: Test) -> Result<(), String> {
        if test.start.connected.len() > MOST_STREAMS {
            return Err(format!("more than {MOST_STREAMS} streams"));
        }
        if self.all.len() >= MOST_TESTS {
            return Err(format!("more than {MOST_TESTS} tests: split the file"));
        }
        self.all.push(test);
        Ok(())
    }
}

/// Reads a file.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let mut tests = Tests::default();
    let mut from = open_text(path)?;
    let skipped = skip_text(&mut from).map_err(failed(path))?;
    if skipped > 0 {
        all.note(path, format_args!("{skipped} lines of text before the results were left out"));
    }
    if let Err(error) = each_value::<Value>(from, &mut |value| tests.take(value)) {
        // What comes before damage, or before the end of an interrupted test, is right.
        if tests.all.is_empty() || error.is_data() {
            return Err(not_json(path, "results of iperf3 (--json or --json-stream)")(error));
        }
        all.note(path, format_args!("damaged after {} tests: {}", tests.all.len(), error.to_string().escape_debug()));
    }
    if tests.others > 0 {
        all.note(path, format_args!("{} values are not of a test and were left out", tests.others));
    }
    if let [Test { error: Some(error), start, .. }] = &tests.all[..]
        && start.connected.is_empty()
    {
        let what = format!("{}: iperf3 reports an error: {}", path.display(), error.escape_debug());
        return Err(Error::Invalid(what));
    }
    let many = tests.all.len() > 1;
    for (number, test) in tests.all.iter().enumerate() {
        if let Some(error) = &test.error {
            all.note(path, format_args!("iperf3 reports an error: {}", error.escape_debug()));
        }
        let mut values = vec![("file", path.display().to_string())];
        if many {
            values.push(("test", (number + 1).to_string()));
        }
        let point = all.point(&values);
        let seconds = rows::push(path, test, point, all)?;
        match (test.start.timestamp.exact_s(), test.start.timestamp.timesecs) {
            (Some(begun_s), _) => all.anchor(point, begun_s, seconds),
            (None, Some(begun_s)) => all.anchor_within_a_second(point, begun_s, seconds),
            (None, None) => {}
        }
    }
    all.bytes += path.metadata().map_or(0, |data| data.len());
    Ok(())
}
