//! Measurements of others as our tables: captures of one end or both, and what other tools write.
//!
//! | module | contents |
//! | --- | --- |
//! | `sniff` | tells what kind a file is |
//! | `capture` | a capture: one vantage point |
//! | `pair` | captures of both ends: two vantage points and two clocks |
//! | `iperf3` | results of iperf3 |
//! | `collector` | options, errors, what is collected |
//! | `clock` | offset and drift of the second clock |
//!
//! Each file, or interface of a capture, or pair of captures, is a point of the results. Files are untrusted: for any content
//! analysis ends, uses bounded memory, and returns results or one line about what is wrong.
#![allow(clippy::disallowed_methods)] // This crate is where measurements are read from the disk.

mod capture;
mod clock;
mod collector;
mod iperf3;
mod pair;
mod sniff;

use std::path::PathBuf;

use collector::Collector;
use record::{Meta, Results, Table as _, Tables, Timing};
use serde_json::json;

pub use capture::Single;
pub use collector::{Analysis, Error, INTERVAL, Options};
pub use observe::Rules;
pub use sniff::Kind;

/// Analyses files.
///
/// # Errors
/// [`Error`], one line each.
pub fn analyse(files: &[PathBuf], options: &Options<'_>) -> Result<Analysis, Error> {
    let mut all = Collector {
        options,
        tables: Tables::default(),
        points: Vec::new(),
        notes: Vec::new(),
        bytes: 0,
        packets: 0,
        measured_s: 0.0,
    };
    let kinds = files.iter().map(|path| sniff::kind(path)).collect::<Result<Vec<_>, _>>()?;
    let captures = kinds.iter().filter(|kind| **kind == Kind::Capture).count();
    if options.ends == Some(true) && (captures != 2 || files.len() != 2) {
        return Err(Error::Invalid(format!("--ends needs two captures, one of each end; given: {captures}")));
    }
    let paired = captures == 2 && files.len() == 2 && options.ends != Some(false) && options.rules == Rules::Ranway;
    if !paired || !pair::analyse(&files[0], &files[1], &mut all)? {
        for (path, kind) in files.iter().zip(kinds) {
            match kind {
                Kind::Capture => capture::analyse(path, &mut all)?,
                Kind::Iperf3 => iperf3::analyse(path, &mut all)?,
            }
        }
    }
    if all.tables.flows.is_empty() {
        let what = if options.flows.is_empty() { "no flow in" } else { "no flow matches --flow in" };
        let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        return Err(Error::Invalid(format!("{what} {}", names.join(", "))));
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let title = match &files {
        [one] => one.file_name().map_or_else(|| names[0].clone(), |name| name.to_string_lossy().into_owned()),
        many => format!("{} files", many.len()),
    };
    let rules = if options.rules == Rules::Wireshark { "wireshark" } else { "ranway" };
    let meta = Meta {
        title,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: json!({ "analysed": { "files": names, "rules": rules } }),
        points: all.points,
        runs: 1,
        ..Meta::default()
    };
    let timing = Timing { simulated_s: all.measured_s, packets: all.packets, threads: 1, ..Timing::default() };
    let results = Results { meta, timing, tables: all.tables };
    Ok(Analysis { results, notes: all.notes, bytes: all.bytes, packets: all.packets })
}
