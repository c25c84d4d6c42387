//! Options, errors, and what is collected while files are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use observe::Rules;
use record::{Point, Results, Tables};
use serde_json::{Value, json};
use units::Span;

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
    pub(crate) fn of(path: &Path) -> impl Fn(import::Error) -> Error + '_ {
        move |error| match error {
            import::Error::Io(source) => Error::Io { path: path.to_owned(), source },
            error => Error::Invalid(format!("{}: {error}", path.display())),
        }
    }

    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
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
    /// Time between snapshots of `ss` without times; `None` if such a file is an error.
    pub interval: Option<Span>,
    /// Called with the bytes read so far, of all files together.
    pub progress: &'a dyn Fn(u64),
    /// Set from elsewhere to end early.
    pub stop: &'a AtomicBool,
}

impl Options<'_> {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn wants(&self, flow: &str) -> bool {
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
pub(crate) struct Collector<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) tables: Tables,
    pub(crate) points: Vec<Point>,
    pub(crate) notes: Vec<String>,
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) measured_s: f64,
    /// Repetitions of each point.
    pub(crate) runs: u32,
    /// The scenarios of our own results, by directory.
    pub(crate) scenarios: BTreeMap<String, Value>,
    pub(crate) anchors: Vec<Anchor>,
    /// Points that share connections, as `join` found them.
    pub(crate) joined: Vec<Vec<u32>>,
}

/// Where a point is on the calendar, so that metadata finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) point: u32,
    /// Seconds since the Unix epoch of the point's time 0, and of its end.
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// Whether the start is known in whole seconds only.
    pub(crate) is_coarse: bool,
}

impl Collector<'_> {
    /// Begins a point, with the values that tell it from others.
    pub(crate) fn point(&mut self, values: &[(&str, String)]) -> u32 {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.points.push(Point { values });
        self.points.len() as u32 - 1
    }

    /// Notes that a point began at a time since the Unix epoch, and lasted for some seconds.
    pub(crate) fn anchor(&mut self, point: u32, start_s: f64, seconds: f64) {
        if (0.0..1e10).contains(&start_s) && (0.0..1e9).contains(&seconds) {
            self.anchors.push(Anchor { point, start_s, end_s: start_s + seconds, is_coarse: false });
        }
    }

    /// The same of a beginning in whole seconds.
    pub(crate) fn anchor_within_a_second(&mut self, point: u32, start_s: f64, seconds: f64) {
        self.anchor(point, start_s, seconds);
        self.anchors
            .last_mut()
            .filter(|anchor| anchor.point == point)
            .into_iter()
            .for_each(|anchor| anchor.is_coarse = true);
    }

    pub(crate) fn note(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.notes.push(format!("{}: {what}", path.display()));
    }

    /// Adds the flows of a point. Each is dropped when it is in the tables, which take more memory than it does.
    pub(crate) fn flows(&mut self, point: u32, flows: Vec<observe::Flow>, rules: Rules) {
        for flow in flows.into_iter().filter(|flow| self.options.wants(&flow.name)) {
            record::observed::push(&mut self.tables, &flow, (point, 0));
            record::observed::push_tcp(&mut self.tables, &flow, rules, (point, 0));
        }
    }
}

/// Opens a file, which is read more than once.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let about = std::fs::metadata(path).map_err(Error::io(path))?;
    if !about.is_file() && !about.is_dir() {
        let what = "not a regular file: write what comes out of a pipe to a file first";
        return Err(Error::Invalid(format!("{}: {what}", path.display())));
    }
    File::open(path).map_err(Error::io(path))
}
