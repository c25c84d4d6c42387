//! Results of our own runs and measurements, to put them beside others.

use std::path::Path;

use record::{Point, Results, Table as _, Tables};
use serde_json::json;

use crate::collector::{Collector, Error};

/// Rows of a table that are read; of a longer one over time, every n-th moment is.
const MOST_ROWS: usize = 1_000_000;
/// Points of results.
const MOST_POINTS: usize = 10_000;

/// Reads a directory. Its points are points of the new results, with the directory's name as one more value.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let (mut results, notes) = Results::read_within(path, MOST_ROWS).map_err(|error| match error {
        record::Error::Io { source, path, .. } => Error::Io { path, source },
        error => Error::Invalid(error.to_string()),
    })?;
    all.notes.extend(notes);
    let meta = &mut results.meta;
    if meta.points.is_empty() {
        meta.points.push(Point::default());
    }
    if meta.points.len() + all.points.len() > MOST_POINTS {
        return Err(Error::Invalid(format!("{}: more than {MOST_POINTS} points in all", path.display())));
    }
    if let Some(partial) = &meta.partial {
        all.note(path, format_args!("incomplete: {} of {} runs finished", partial.finished, partial.of));
    }
    if results.timing.lateness.is_some_and(|lateness| !lateness.valid) {
        all.note(path, "an emulation that did not keep to the time, and says little about its network");
    }
    let (first, count) = (all.points.len() as u32, meta.points.len() as u32);
    for point in &mut meta.points {
        point.values.insert("results".to_owned(), json!(path.display().to_string()));
    }
    all.points.append(&mut meta.points);
    all.runs = all.runs.max(meta.runs);
    let started = meta.scenario.pointer("/measurement/started_unix_s").and_then(serde_json::Value::as_f64);
    all.scenarios.insert(path.display().to_string(), std::mem::take(&mut meta.scenario));
    if !all.options.flows.is_empty() {
        keep_wanted(&mut results.tables, &|flow| all.options.wants(flow));
    }
    let shifted = results.tables.shift_points(first, count);
    shifted.map_err(|what| Error::Invalid(format!("{} is damaged: {what}", path.display())))?;
    for point in first..first + count {
        let flows = results.tables.flows.iter().filter(|row| row.point == point);
        let ends = flows.map(|row| row.measured_to_s).fold(0.0, f64::max);
        if let Some(started) = started {
            all.anchor(point, started, ends);
        }
        all.measured_s += ends;
    }
    all.tables.append(results.tables);
    all.packets += results.timing.packets;
    Ok(())
}

/// Keeps the rows of some flows in each table of flows.
fn keep_wanted(tables: &mut Tables, wants: &dyn Fn(&str) -> bool) {
    macro_rules! keep {
        ($($table:ident)+) => {$(
            if !tables.$table.is_empty() {
                let all = std::mem::take(&mut tables.$table);
                all.iter().filter(|row| wants(row.flow)).for_each(|row| tables.$table.push(&row));
            }
        )+};
    }
    keep!(flows samples rtts owds events transfers proxies passages tcp_info tcp_flows tcp_samples segments);
}
