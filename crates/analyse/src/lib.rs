//! Measurements of others as our tables: captures of one end or both, and what other tools write.
//!
//! | module | contents |
//! | --- | --- |
//! | `sniff` | tells what kind a file is |
//! | `capture` | a capture: one vantage point |
//! | `pair` | captures of both ends: two vantage points and two clocks |
//! | `iperf3` | results of iperf3 |
//! | `clock` | offset and drift of the second clock |
//!
//! Each file, or interface of a capture, or pair of captures, is a point of the results. Files are untrusted: for any content
//! analysis ends, uses bounded memory, and returns results or one line about what is wrong.
#![allow(clippy::disallowed_methods)] // This crate is where measurements are read from the disk.

mod capture;
mod clock;
mod iperf3;
mod pair;
mod sniff;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use record::{Meta, Point, Results, Table as _, Tables, Timing};
use serde_json::json;
use units::Span;

pub use capture::Single;
pub use observe::Rules;
pub use sniff::Kind;

/// The interval of samples, until there are too many.
pub const INTERVAL: Span = Span::from_millis(100);

/// Why nothing was analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file, or a choice, is invalid.
    #[error("{0}")]
    Invalid(String),
    /// [`Options::stop`] was set.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    fn of(path: &Path) -> impl Fn(import::Error) -> Error + '_ {
        move |error| match error {
            import::Error::Io(source) => Error::Io { path: path.to_owned(), source },
            error => Error::Invalid(format!("{}: {error}", path.display())),
        }
    }

    fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Io { path: path.to_owned(), source }
    }
}

/// How to analyse.
pub struct Options<'a> {
    /// Whose definitions are used for captures.
    pub rules: Rules,
    /// Only flows whose name contains one of these; all if there are none.
    pub flows: &'a [String],
    /// Whether two captures are of both ends; `None` to find out.
    pub ends: Option<bool>,
    /// Called with the bytes read so far, of all files together.
    pub progress: &'a dyn Fn(u64),
    /// Set from elsewhere to end early.
    pub stop: &'a AtomicBool,
}

impl Options<'_> {
    fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn wants(&self, flow: &str) -> bool {
        self.flows.is_empty() || self.flows.iter().any(|wanted| flow.contains(wanted.as_str()))
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Analysis {
    /// Tables, with a point for each source.
    pub results: Results,
    /// What a reader has to know: a line each.
    pub notes: Vec<String>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Packets that were read.
    pub packets: u64,
}

/// What is collected while files are read.
struct Collector<'a> {
    options: &'a Options<'a>,
    tables: Tables,
    points: Vec<Point>,
    notes: Vec<String>,
    bytes: u64,
    packets: u64,
    measured_s: f64,
}

impl Collector<'_> {
    /// Begins a point, with the values that tell it from others.
    fn point(&mut self, values: &[(&str, String)]) -> u32 {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.points.push(Point { values });
        self.points.len() as u32 - 1
    }

    fn note(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.notes.push(format!("{}: {what}", path.display()));
    }

    /// Adds the flows of a point.
    fn flows(&mut self, point: u32, flows: &[observe::Flow], rules: Rules) {
        for flow in flows.iter().filter(|flow| self.options.wants(&flow.name)) {
            record::observed::push(&mut self.tables, flow, (point, 0));
            record::observed::push_tcp(&mut self.tables, flow, rules, (point, 0));
        }
    }
}

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

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::io(path))
}
