//! Our own records as JSON: a [`RadioReport`] or an [`Event`], which has the member `event`.

use crate::error::FeedError;
use crate::event::{Event, Record};
use crate::report::RadioReport;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
