//! Measurements of others as our tables: captures of one end or both, what other tools write, and our own results beside them.
//!
//! | module | contents |
//! | --- | --- |
//! | `sniff` | tells what kind an input is |
//! | `capture` | a capture: one vantage point |
//! | `tunnel` | packets in tunnels of mobile networks |
//! | `pair` | captures of both ends: two vantage points and two clocks |
//! | `clock` | offset and drift of the second clock |
//! | `iperf3` | results of iperf3 |
//! | `ss` | logs of `ss -ti` |
//! | `ports` | names of ports |
//! | `stamps` | times in front of lines |
//! | `monroe` | tests of MONROE's nettest |
//! | `metadata`, `modems` | what the modems of a MONROE node told |
//! | `ndt7` | results of ndt7 |
//! | `recording` | our table `tcp_info` alone |
//! | `results` | directories of our own results |
//! | `replay` | a scenario that replays a point |
//! | `kernel` | connections by what their kernel told |
//! | `why` | what held senders back, as kernels or packets tell |
//! | `join` | recordings of the same connections on one time axis |
//! | `text` | texts, lines and lists in bounded memory |
//! | `collector` | options, errors, what is collected |
//!
//! Each file, or interface of a capture, or pair of captures, or test, or point of results, is a point of the results. Files are
//! untrusted: for any content analysis ends, uses bounded memory, and returns results or one line about what is wrong.
#![allow(clippy::disallowed_methods)] // This crate is where measurements are read from the disk.

mod capture;
mod clock;
mod collector;
mod iperf3;
mod join;
mod kernel;
mod metadata;
mod modems;
mod monroe;
mod ndt7;
mod pair;
mod ports;
mod recording;
mod replay;
mod results;
mod sniff;
mod ss;
mod stamps;
mod text;
mod tunnel;
mod why;

use std::collections::BTreeMap;
use std::path::PathBuf;

use collector::Collector;
use record::{Meta, Results, Table as _, Tables, Timing};
use serde_json::json;

pub use capture::Single;
pub use collector::{Analysis, Error, INTERVAL, Options};
pub use observe::Rules;
pub use replay::{Over, Replay, replay};
pub use sniff::{Kind, MonroeFile};
pub use why::{Shares, ToldBy, Why, why};

/// Analyses files and directories.
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
        runs: 1,
        scenarios: BTreeMap::new(),
        anchors: Vec::new(),
        joined: Vec::new(),
    };
    let kinds = files.iter().map(|path| sniff::kind(path)).collect::<Result<Vec<_>, _>>()?;
    let captures = kinds.iter().filter(|kind| **kind == Kind::Capture).count();
    let are_two = captures == 2 && files.len() == 2;
    if options.ends == Some(true) && !are_two {
        return Err(Error::Invalid(format!("--ends needs two captures, one of each end; given: {captures}")));
    }
    if options.interval.is_some() && !kinds.contains(&Kind::SocketStatistics) {
        let what = "--interval is the time between snapshots of ss, and no input is a log of ss";
        return Err(Error::Invalid(what.to_owned()));
    }
    let paired = are_two && options.ends != Some(false) && options.rules == Rules::Ranway;
    if !paired || !pair::analyse(&files[0], &files[1], &mut all)? {
        each(files, &kinds, &mut all)?;
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    if all.tables.flows.is_empty() && (all.tables.modem.is_empty() || !options.flows.is_empty()) {
        if !options.flows.is_empty() {
            return Err(Error::Invalid(format!("no flow matches --flow in {}", names.join(", "))));
        }
        // What was left out tells why.
        let why = if all.notes.is_empty() { String::new() } else { format!(" ({})", all.notes.join("; ")) };
        return Err(Error::Invalid(format!("no flow in {}{why}", names.join(", "))));
    }
    let title = match &files {
        [one] => one.file_name().map_or_else(|| names[0].clone(), |name| name.to_string_lossy().into_owned()),
        many if kinds.iter().all(|kind| *kind != Kind::Results) => format!("{} files", many.len()),
        many => format!("{} inputs", many.len()),
    };
    let rules = if options.rules == Rules::Wireshark { "wireshark" } else { "ranway" };
    let mut analysed = json!({ "files": names, "rules": rules });
    if !all.scenarios.is_empty() {
        analysed["scenarios"] = json!(all.scenarios);
    }
    if !all.joined.is_empty() {
        analysed["joined"] = json!(all.joined);
    }
    let meta = Meta {
        title,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: json!({ "analysed": analysed }),
        points: all.points,
        runs: all.runs,
        ..Meta::default()
    };
    let timing = Timing { simulated_s: all.measured_s, packets: all.packets, threads: 1, ..Timing::default() };
    let results = Results { meta, timing, tables: all.tables };
    Ok(Analysis { results, notes: all.notes, bytes: all.bytes, packets: all.packets })
}

/// Analyses each file alone; the files of a test together, and metadata after what it belongs to.
fn each(files: &[PathBuf], kinds: &[Kind], all: &mut Collector<'_>) -> Result<(), Error> {
    let (mut of_tests, mut metadata) = (Vec::new(), Vec::new());
    for (path, kind) in files.iter().zip(kinds) {
        match kind {
            Kind::Capture => capture::analyse(path, all)?,
            Kind::Iperf3 => iperf3::analyse(path, all)?,
            Kind::Results => results::analyse(path, all)?,
            Kind::Recording => recording::analyse(path, all)?,
            Kind::SocketStatistics => ss::analyse(path, all)?,
            Kind::Ndt7 => ndt7::analyse(path, all)?,
            Kind::Monroe(file) => of_tests.push((path.clone(), *file)),
            Kind::MonroeFolder => {
                let (tests, files) = monroe::folder(path, all)?;
                metadata.extend(files);
                for test in tests {
                    monroe::analyse(&test, all)?;
                }
            }
            Kind::Metadata => metadata.push(path.clone()),
        }
    }
    for test in monroe::tests(of_tests) {
        monroe::analyse(&test, all)?;
    }
    join::join(all);
    if metadata.is_empty() { Ok(()) } else { metadata::analyse(&metadata, all) }
}
