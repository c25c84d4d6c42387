//! Our own records as JSON: a [`RadioReport`] or an [`Event`], which has the member `event`.

use crate::error::FeedError;
use crate::event::{Event, Record};
use crate::report::RadioReport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{self, Write};

#[derive(Deserialize)]
struct Peek {
    event: Option<IgnoredAny>,
}

/// Parses one record.
pub fn parse_line(line: &[u8]) -> Result<Record, FeedError> {
    let peek: Peek = serde_json::from_slice(line).map_err(|why| FeedError::json(&why))?;
    if peek.event.is_some() {
        let event: Event = serde_json::from_slice(line).map_err(|why| FeedError::json(&why))?;
        event.check().map_err(FeedError::new)?;
        return Ok(Record::Event(event));
    }
    let report: RadioReport = serde_json::from_slice(line).map_err(|why| FeedError::json(&why))?;
    check(&report).map_err(FeedError::new)?;
    Ok(Record::Report(report))
}

/// Formats one record, without a line break.
pub fn format_line(record: &Record) -> String {
    let text = match record {
        Record::Report(report) => serde_json::to_string(report),
        Record::Event(event) => serde_json::to_string(event),
    };
    // Records have text keys only, so serialisation cannot fail.
    text.unwrap_or_default()
}

/// Returns the length in bytes of a report's line, without the line break.
pub fn length(report: &RadioReport) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither counting nor a report's serialisation can fail.
    let _ = serde_json::to_writer(&mut count, report);
    count.0
}

/// Checks what JSON does not: that a report is possible.
pub(crate) fn check(report: &RadioReport) -> Result<(), &'static str> {
    if report.failed > report.blocks {
        return Err("`failed` is greater than `blocks`");
    }
    if report.prbs.is_some_and(|prbs| prbs > report.all_prbs()) {
        return Err("`prbs` is greater than `n_prb` times `slots`");
    }
    if report.cell_prbs.is_some_and(|prbs| prbs > report.all_prbs()) {
        return Err("`cell_prbs` is greater than `n_prb` times `slots`");
    }
    if report.bits_per_prb.is_some_and(|bits| !(0.0..=1e6).contains(&bits)) {
        return Err("`bits_per_prb` is not in 0 to 1000000");
    }
    Ok(())
}
