//! Traces and recorded channels out of files that other tools wrote: tables of rates, packet captures, mahimahi's traces,
//! and the channel logs of ns-3 and of OMNeT++ (Simu5G).
//!
//! | input | function | output |
//! | --- | --- | --- |
//! | a table of times and rates | [`rates`] | [`Trace`] |
//! | a capture (pcap, pcapng) | [`capture::read`], [`capture::Capture::trace`] | [`Trace`] |
//! | a trace of mahimahi's | [`mahimahi`] | [`Trace`] |
//! | `DlRsrpSinrStats.txt`, `UlSinrStats.txt` of ns-3 | [`channel::ns3`] | [`channel::Channel`] |
//! | vectors that `opp_scavetool` exported as CSV-R | [`channel::omnet`] | [`channel::Channel`] |
//!
//! Files come from anywhere, so whatever they hold, reading ends, takes a bounded amount of memory ([`MAX_TEXT`],
//! [`MAX_OPPORTUNITIES`], [`channel::MAX_SAMPLES`]) and either gives a result or an [`Error`] that says where the fault is.

pub mod capture;
pub mod channel;
mod rates;

use std::io::{self, Read};

pub use link::trace::Trace;
pub use rates::{Columns, Unit, rates};

/// Most bytes of a text that is read whole.
pub const MAX_TEXT: u64 = 256 << 20;
/// Most delivery opportunities of a trace: 1500 bytes each, 30 GB in all.
pub const MAX_OPPORTUNITIES: usize = 20_000_000;
/// The longest recording, in seconds: times of a trace are milliseconds below 2^32.
const MAX_SECONDS: f64 = 4_294_967.0;

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it, and what would be valid.
        what: String,
    },
    /// The file as a whole is not what it should be.
    #[error("{0}")]
    File(String),
    /// There are several that could be meant; which ones.
    #[error("{what}; choose one of {}", .of.join(", "))]
    Choose {
        /// What has to be chosen.
        what: String,
        /// The candidates, the one with the most data first.
        of: Vec<String>,
    },
}

impl Error {
    fn line(line: u64, what: impl Into<String>) -> Error {
        Error::Line { line, what: what.into() }
    }
}

/// Most characters of a file's own words in an error.
const MOST_SHOWN: usize = 120;

/// A file's own words for an error: not too long, and nothing in them that a terminal would obey.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST_SHOWN)]);
    let mut shown: String = text.trim_start_matches('\u{feff}').chars().take(MOST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Most candidates that an error names.
const MOST_NAMED: usize = 12;

/// An error that lists candidates, the first ones if there are many.
fn choose(what: &str, mut of: Vec<String>) -> Error {
    let more = of.len().saturating_sub(MOST_NAMED);
    of.truncate(MOST_NAMED);
    if more > 0 {
        of.push(format!("or {more} more"));
    }
    Error::Choose { what: what.to_owned(), of }
}

/// Reads a trace of mahimahi's, which is Ranway's format too, of which only the part from `begin` seconds on for `length`
/// seconds is kept; times begin again at zero.
///
/// # Errors
/// [`Error::File`] if it is no trace, or nothing of it is in that part, [`Error::Io`].
pub fn mahimahi(from: impl Read, begin: f64, length: Option<f64>) -> Result<Trace, Error> {
    let text = text(from)?;
    let trace = Trace::parse(&text).map_err(|error| Error::File(error.to_string()))?;
    let times = trace.times().iter().map(|&ms| f64::from(ms) / 1e3);
    let mut sum = Opportunities::new(begin, length);
    for at in times {
        sum.add(at, f64::from(link::trace::OPPORTUNITY))?;
    }
    sum.finish()
}

/// All of a text, which must not be too large.
fn text(from: impl Read) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    if from.take(MAX_TEXT + 1).read_to_end(&mut text)? as u64 > MAX_TEXT {
        return Err(Error::File(format!("more than {} MiB: cut it into parts", MAX_TEXT >> 20)));
    }
    Ok(text)
}

/// Bytes at moments, as opportunities of 1500 bytes each: one at the millisecond at which the sum reaches it.
struct Opportunities {
    begin: f64,
    end: f64,
    times: Vec<u32>,
    /// Bytes that make no whole opportunity yet.
    left: f64,
}

impl Opportunities {
    fn new(begin: f64, length: Option<f64>) -> Opportunities {
        let end = length.map_or(f64::INFINITY, |length| begin + length);
        Opportunities { begin, end, times: Vec::new(), left: 0.0 }
    }

    /// `bytes` pass at `at` seconds since the recording's start; times never decrease.
    fn add(&mut self, at: f64, bytes: f64) -> Result<(), Error> {
        if at < self.begin || at > self.end {
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

    /// Bytes pass at `rate` bytes a second from `from` to `to` seconds since the recording's start.
    fn flow(&mut self, rate: f64, from: f64, to: f64) -> Result<(), Error> {
        let (from, to) = (from.max(self.begin), to.min(self.end));
        if rate <= 0.0 || from >= to {
            return Ok(());
        }
        let bytes = self.left + (to - from) * rate;
        // What rounding keeps a hair below a whole opportunity is one.
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

    fn finish(mut self) -> Result<Trace, Error> {
        let Some(last) = self.times.last_mut() else {
            return Err(Error::File("no 1500 bytes pass in that time: there is nothing to make a trace of".to_owned()));
        };
        // A trace takes some time.
        *last = (*last).max(1);
        Trace::from_times(self.times).map_err(|error| Error::File(error.to_string()))
    }
}

const TOO_MUCH: &str = "more than 30 GB pass in it: import a shorter part, with --begin and --length";
const SIZE: f64 = link::trace::OPPORTUNITY as f64;

/// The millisecond at the end of which `seconds` have passed: capacity is never earlier than it was. A moment that only
/// rounding put past a millisecond is that one.
fn milliseconds(seconds: f64) -> u32 {
    libm::ceil(seconds * 1e3 - 1e-6).clamp(0.0, f64::from(u32::MAX)) as u32
}
