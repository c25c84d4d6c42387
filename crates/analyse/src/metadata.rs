//! Metadata of the modems of a MONROE node: messages `MONROE.META.DEVICE.MODEM` as JSON, one after the other, with or without their
//! topic in front.
//!
//! Their times are those of the export, on the calendar. A message belongs to the points during which it came; what was known
//! before a point began is its first row. Without such points, the messages are a point of their own.

use std::path::{Path, PathBuf};

use observe::modem::CellSample;
use record::told::add_cells;
use serde::Deserialize;
use units::{Span, Time};

use crate::collector::{Anchor, Collector, Error};
use crate::modems::Modems;
use crate::text::Lines;

/// Messages that are kept.
const MOST_MESSAGES: usize = 200_000;
/// Their bytes in all.
const MOST_BYTES: u64 = 256 << 20;
/// For how long a message tells something about a test that began after it: all values come every 30 s.
const VALID_S: f64 = 60.0;

/// When a message was sent, in seconds since the Unix epoch.
#[derive(Deserialize)]
struct Stamp {
    #[serde(rename = "Timestamp")]
    timestamp: Option<f64>,
}

/// Reads files and divides their messages among the points.
pub(crate) fn analyse(paths: &[PathBuf], all: &mut Collector<'_>) -> Result<(), Error> {
    let mut messages = (Vec::new(), 0);
    for path in paths {
        read(path, all, &mut messages)?;
    }
    let mut messages = messages.0;
    messages.sort_by(|a: &(f64, String), b| a.0.total_cmp(&b.0));
    let mut modems = Modems::default();
    let at = |seconds: f64| Time::ZERO + Span::from_secs_f64(seconds);
    let samples: Vec<CellSample> =
        messages.iter().filter_map(|(seconds, json)| modems.take(json, at(*seconds))).collect();
    drop(messages);
    let [first, ..] = paths else { return Ok(()) };
    let (Some(earliest), Some(latest)) = (samples.first(), samples.last()) else {
        let what = "no message about a modem with a time (`Timestamp`) and an interface (`InternalInterface`)";
        return Err(Error::Invalid(format!("{}: {what}", first.display())));
    };
    if all.anchors.is_empty() {
        let point = all.point(&[("file", first.display().to_string())]);
        let (start_s, end_s) = (earliest.at.as_secs_f64(), latest.at.as_secs_f64());
        push(all, Anchor { point, start_s, end_s, is_coarse: false }, &samples);
        all.measured_s += end_s - start_s;
        return Ok(());
    }
    let mut found = 0;
    for anchor in all.anchors.clone() {
        found += usize::from(push(all, anchor, &samples));
    }
    if found == 0 {
        all.note(first, "no message is of the time of a test");
    } else if found < all.anchors.len() {
        all.note(first, format_args!("has messages of {found} of {} tests", all.anchors.len()));
    }
    Ok(())
}

/// Messages with their times, and their bytes in all.
type Messages = (Vec<(f64, String)>, u64);

fn read(path: &Path, all: &mut Collector<'_>, (messages, bytes): &mut Messages) -> Result<(), Error> {
    let (mut lines, mut other) = (Lines::open(path)?, 0u64);
    while let Some(line) = lines.next(path)? {
        if lines.number.is_multiple_of(1 << 10) {
            all.options.check()?;
        }
        // The topic, if it is there, ends before the object.
        let Some(begin) = line.find('{') else {
            other += u64::from(!line.is_empty());
            continue;
        };
        let (topic, json) = line.split_at(begin);
        let is_modem = topic.contains("DEVICE.MODEM") || json.contains("DEVICE.MODEM");
        let stamp = serde_json::from_str::<Stamp>(json).ok().and_then(|stamp| stamp.timestamp);
        match stamp.filter(|seconds| is_modem && (0.0..1e10).contains(seconds)) {
            Some(_) if messages.len() >= MOST_MESSAGES || *bytes > MOST_BYTES => {
                let what = format!("more than {MOST_MESSAGES} messages, or {} MiB: split the file", MOST_BYTES >> 20);
                return Err(Error::Invalid(format!("{}: {what}", path.display())));
            }
            Some(seconds) => {
                *bytes += json.len() as u64;
                messages.push((seconds, json.to_owned()));
            }
            None => other += 1,
        }
        all.bytes += line.len() as u64 + 1;
    }
    if other > 0 {
        all.note(path, format_args!("{other} lines are not messages about a modem with a time"));
    }
    Ok(())
}

/// Adds the rows of a point. Returns whether there are any.
fn push(all: &mut Collector<'_>, anchor: Anchor, samples: &[CellSample]) -> bool {
    let Anchor { point, start_s, end_s, .. } = anchor;
    let start = Time::ZERO + Span::from_secs_f64(start_s);
    let seconds = |sample: &CellSample| sample.at.as_secs_f64();
    let from = samples.partition_point(|sample| seconds(sample) < start_s);
    let to = samples.partition_point(|sample| seconds(sample) <= end_s);
    // The latest of each modem before the start.
    let mut during: Vec<CellSample> = Vec::new();
    for sample in samples[..from].iter().rev().take_while(|sample| seconds(sample) >= start_s - VALID_S) {
        if !during.iter().any(|other| other.modem == sample.modem) {
            let age = start.saturating_since(sample.at);
            during.push(CellSample { at: start, lag: sample.lag.map(|lag| lag + age), ..sample.clone() });
        }
    }
    during.reverse();
    during.extend(samples[from..to.max(from)].iter().cloned());
    for sample in &mut during {
        sample.at = Time::ZERO + sample.at.saturating_since(start);
    }
    add_cells(&mut all.tables, &during, |_| Some(point));
    !during.is_empty()
}
