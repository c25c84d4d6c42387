//! Converts files of other tools into traces, recorded channels, buildings and routes: tables of rates, packet captures,
//! mahimahi's traces, channel logs of ns-3 and OMNeT++ (Simu5G), maps, recorded tracks and timetables.
//!
//! | input | function | output |
//! | --- | --- | --- |
//! | a table of times and rates | [`rates()`] | [`Trace`] |
//! | a capture (pcap, pcapng) | [`capture::read`], [`capture::Capture::trace`] | [`Trace`] |
//! | a capture | [`packets::Reader`] | its packets |
//! | its packets | [`counted::Counted`] | those that count: once each, whole, and inside tunnels |
//! | a phone's log of a drive | [`drive::read`] | [`drive::Drive`]: [`channel::Channel`]s, [`Trace`]s, a timeline |
//! | a mahimahi trace | [`mahimahi`] | [`Trace`] |
//! | `DlRsrpSinrStats.txt` of ns-3, `DlDataSinr.txt` and `RxPacketTrace.txt` of its NR modules | [`channel::ns3`] | [`channel::Channel`] |
//! | a map (GeoJSON) | [`buildings::geojson`] | [`buildings::Map`] |
//! | a track (GPX), a timetable (GTFS) | [`route::gpx`], [`route::gtfs`] | [`route::Route`] |
//! | vectors exported by `opp_scavetool` as CSV-R | [`channel::omnet`] | [`channel::Channel`] |
//!
//! Input files are untrusted: for any content, reading terminates, uses a bounded amount of memory ([`MAX_TEXT`],
//! [`MAX_OPPORTUNITIES`], [`channel::MAX_SAMPLES`], [`buildings::MAX_BUILDINGS`], [`route::MAX_WAYPOINTS`]), and returns a result or an [`Error`] with the position of the
//! fault.

pub mod buildings;
pub mod capture;
pub mod channel;
mod clock;
pub mod counted;
pub mod drive;
pub mod fragments;
mod gpx;
pub mod packets;
mod rates;
pub mod route;
mod select;
pub mod serving;
mod table;
pub mod texture;
mod times;
pub mod tunnel;
pub mod twice;
mod units;

use std::io::{self, Read};
use texture::Texture;

pub use link::trace::Trace;
pub use rates::{Columns, Covers, Format, rates};
pub use select::Where;
pub use units::Unit;

/// What was read, and what the user should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted<T> {
    /// What was read.
    pub value: T,
    /// What was assumed, and what was left out; each is a line without a full stop.
    pub notes: Vec<String>,
}

/// Maximum size in bytes of a text that is read as a whole.
pub const MAX_TEXT: u64 = 256 << 20;
/// Maximum number of delivery opportunities in a trace: 1500 bytes each, 45 GB in all. A scenario reads a file of 256 MiB.
pub const MAX_OPPORTUNITIES: usize = 30_000_000;
/// Maximum length of a recording in seconds: times in a trace are milliseconds below 2^32.
const MAX_SECONDS: f64 = 4_294_967.0;

/// The reasons why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is invalid.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// The problem, and what would be valid.
        what: String,
    },
    /// The file as a whole is invalid.
    #[error("{0}")]
    File(String),
    /// Several candidates match.
    #[error("{what}; choose one of {}", .of.join(", "))]
    Choose {
        /// What has to be selected.
        what: String,
        /// The candidates, largest first.
        of: Vec<String>,
    },
}

impl Error {
    fn line(line: u64, what: impl Into<String>) -> Error {
        Error::Line { line, what: what.into() }
    }
}

/// Maximum number of characters quoted from the file in an error.
const MOST_SHOWN: usize = 120;

/// Quotes the file's content in an error: truncated, and without control sequences.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST_SHOWN)]);
    let mut shown: String = text.trim_start_matches('\u{feff}').chars().take(MOST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Maximum number of candidates named in an error.
const MOST_NAMED: usize = 12;

/// Returns an error that lists the candidates, or the first ones if there are many.
fn choose(what: &str, mut of: Vec<String>) -> Error {
    let more = of.len().saturating_sub(MOST_NAMED);
    of.truncate(MOST_NAMED);
    if more > 0 {
        of.push(format!("or {more} more"));
    }
    Error::Choose { what: what.to_owned(), of }
}

/// Reads a mahimahi trace, which is also Ranway's format, and keeps only `length` seconds from `begin` on; times
/// restart at zero. A part ends where it was cut, also within an outage.
///
/// # Errors
/// [`Error::File`] if it is not a trace, or nothing is left in that part; [`Error::Io`].
pub fn mahimahi(from: impl Read, begin: f64, length: Option<f64>) -> Result<Trace, Error> {
    let text = text(from)?;
    let trace = Trace::parse(&text).map_err(|error| Error::File(error.to_string()))?;
    let times = trace.times().iter().map(|&ms| f64::from(ms) / 1e3);
    let mut sum = Opportunities::new(begin, length);
    for at in times {
        sum.add(at, f64::from(link::trace::OPPORTUNITY))?;
    }
    sum.finish(trace.period().as_secs_f64())
}

/// Reads a whole text of limited size.
fn text(from: impl Read) -> Result<Vec<u8>, Error> {
    read_up_to(MAX_TEXT, from, "split the file")
}

/// Reads up to `most` bytes; if there are more, the error tells what to do.
fn read_up_to(most: u64, from: impl Read, instead: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if from.take(most + 1).read_to_end(&mut bytes)? as u64 > most {
        return Err(Error::File(format!("more than {} MiB: {instead}", most >> 20)));
    }
    Ok(bytes)
}

/// Converts bytes over time to opportunities of 1500 bytes each, in the millisecond in which the sum reaches the next
/// multiple.
///
/// A part covers the times after `begin` up to and including `end`: an opportunity belongs to the millisecond that ends with
/// it. What is at the very beginning of the recording belongs to the first part.
struct Opportunities {
    begin: f64,
    end: f64,
    times: Vec<u32>,
    /// Bytes that do not yet fill an opportunity.
    left: f64,
    /// How rates vary.
    texture: Option<Texture>,
}

impl Opportunities {
    fn new(begin: f64, length: Option<f64>) -> Opportunities {
        let end = length.map_or(f64::INFINITY, |length| begin + length);
        Opportunities { begin, end, times: Vec::new(), left: 0.0, texture: None }
    }

    /// Lets rates vary as [`Columns::texture`] says, differently in each direction.
    fn vary(mut self, spread: Option<f64>, direction: u64) -> Opportunities {
        self.texture = spread.filter(|spread| *spread > 0.0).map(|spread| Texture::new(spread, direction));
        self
    }

    /// Adds `bytes` at `at` seconds since the recording's start; times never decrease.
    fn add(&mut self, at: f64, bytes: f64) -> Result<(), Error> {
        /// Seconds that are a rounding error.
        const SAME: f64 = 1e-9;
        let is_before = self.begin > 0.0 && at <= self.begin + SAME;
        if is_before || at < 0.0 || at > self.end + SAME {
            return Ok(());
        }
        self.left += bytes;
        let ms = milliseconds(at - self.begin);
        while self.left >= SIZE {
            self.left -= SIZE;
            self.push(ms)?;
        }
        Ok(())
    }

    /// Adds bytes at `rate` bytes per second from `from` to `to` seconds since the recording's start.
    fn flow(&mut self, rate: f64, from: f64, to: f64) -> Result<(), Error> {
        let (from, to) = (from.max(self.begin), to.min(self.end));
        if rate <= 0.0 || from >= to {
            return Ok(());
        }
        let Some(mut texture) = self.texture.take() else { return self.steady(rate, from, to) };
        let passed = match texture.parts(from, to) {
            Some(parts) => {
                let mut begin = from;
                parts.into_iter().try_for_each(|(end, share)| {
                    let part = std::mem::replace(&mut begin, end);
                    self.steady(rate * (to - from) * share / (end - part), part, end)
                })
            }
            None => self.steady(rate, from, to),
        };
        self.texture = Some(texture);
        passed
    }

    /// The same, at a rate that does not vary.
    fn steady(&mut self, rate: f64, from: f64, to: f64) -> Result<(), Error> {
        if rate <= 0.0 || from >= to {
            return Ok(());
        }
        let bytes = self.left + (to - from) * rate;
        // Tolerates rounding just below a whole opportunity.
        let whole = libm::floor(bytes / SIZE + 1e-6);
        if whole > MAX_OPPORTUNITIES as f64 {
            return Err(Error::File(TOO_MUCH.to_owned()));
        }
        let left = std::mem::replace(&mut self.left, (bytes - whole * SIZE).max(0.0));
        for n in 1..=whole as u64 {
            let at = from + (n as f64 * SIZE - left) / rate;
            self.push(milliseconds(at.min(to) - self.begin))?;
        }
        Ok(())
    }

    fn push(&mut self, ms: u32) -> Result<(), Error> {
        if self.times.len() >= MAX_OPPORTUNITIES {
            return Err(Error::File(TOO_MUCH.to_owned()));
        }
        let last = self.times.last().copied().unwrap_or(0);
        self.times.push(ms.max(last));
        Ok(())
    }

    /// Returns the trace of a recording that ends after `until` seconds.
    ///
    /// A trace lasts until its last opportunity, at which it repeats. After a silence at the end of the recording, or of the
    /// part, the last opportunity is therefore the end of it: it is the one that is late.
    fn finish(mut self, until: f64) -> Result<Trace, Error> {
        if self.begin > 0.0 && self.begin >= until {
            return Err(Error::File(format!("nothing is behind --begin: the recording ends after {until:.3} s")));
        }
        let end = milliseconds(self.end.min(until) - self.begin);
        let Some(last) = self.times.last_mut() else {
            return Err(Error::File(
                "the rates let no packet of 1500 bytes pass in that time: the trace would be empty".to_owned(),
            ));
        };
        // A trace must not have zero duration.
        *last = (*last).max(end).max(1);
        Trace::from_times(self.times).map_err(|error| Error::File(error.to_string()))
    }
}

const TOO_MUCH: &str = "more than 45 GB of data: import a shorter part with --begin and --length";
const SIZE: f64 = link::trace::OPPORTUNITY as f64;

/// Rounds up to the millisecond at whose end `seconds` have passed, so that capacity is never early. A time beyond a
/// millisecond only by rounding error counts as that millisecond.
fn milliseconds(seconds: f64) -> u32 {
    libm::ceil(seconds * 1e3 - 1e-6).clamp(0.0, f64::from(u32::MAX)) as u32
}
