//! Recorded capacity: traces in mahimahi's format, and service according to them.
//!
//! Source: K. Winstein, A. Sivaraman, H. Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over
//! Cellular Networks" (NSDI 2013), and mahimahi's `mm-link` (`link_queue.cc`). Each line is a whole number of
//! milliseconds since the start, not less than the previous line: the time of one opportunity to deliver 1500 bytes. A
//! repeated number is several opportunities in one millisecond. At its end the trace repeats, with the last line's
//! number as the period.
//!
//! Opportunities at or before a packet's arrival are lost to it, as in `mm-link`, and so are those at which no packet
//! waits.
//!
//! Deviations from `mm-link`:
//! 1. Only opportunities are on whole milliseconds; arrivals and deliveries are not.
//! 2. [`Sharing::Bytes`] corresponds to `mm-link`. Its opportunity has 1504 bytes, because it counts the 4 bytes that a
//!    TUN device prepends to each packet; here it has the format's 1500 bytes, and packets have their own length.
//! 3. Lines may end in CR LF.

mod synthetic;

use core::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Span, Time};

pub use synthetic::{Synthetic, Variation, synthetic};

/// Bytes of an opportunity.
pub const OPPORTUNITY: u32 = 1500;

const NANOS_PER_MS: u64 = 1_000_000;

/// The service of a trace's delivery opportunity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Service")]
pub enum Sharing {
    /// 1500 bytes: several small packets, or a part of a large one.
    // A packet that needs more than is left continues at the next opportunity and leaves there, as in `mm-link`.
    #[default]
    Bytes,
    /// One packet of any size.
    // A larger one than an opportunity takes as many as it needs and leaves at the last. This follows the description of the format: one
    // packet crosses the link at each line.
    Packets,
}

/// Delivery opportunities over time, repeated at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds of each opportunity: non-decreasing; the last one (the period) is greater than zero.
    times: Box<[u32]>,
}

/// The error for an invalid trace, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// The fault of the line.
    pub what: TraceFault,
}

/// The possible faults of a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFault {
    /// The trace has no lines.
    Empty,
    /// The line is not a whole number in decimal digits.
    NotANumber,
    /// The number is above 4294967295 ms (49 days).
    TooLarge,
    /// The number is less than the previous line's.
    Decreasing,
    /// The last line is zero: the trace has no duration.
    ZeroPeriod,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            TraceFault::Empty => "the trace is empty; each line must be a number of milliseconds",
            TraceFault::NotANumber => "not a whole number of milliseconds",
            TraceFault::TooLarge => "more than 4294967295 milliseconds",
            TraceFault::Decreasing => "earlier than the previous line; times must not decrease",
            TraceFault::ZeroPeriod => "the last time is 0; the duration of a trace must be greater than 0",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Parses a trace from the text of its file.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
        let text = text.as_ref();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if text.is_empty() {
            return Err(TraceError { line: 1, what: TraceFault::Empty });
        }
        let mut times = Vec::with_capacity(text.len() / 8);
        let mut last = 0;
        for (line, digits) in text.split(|&byte| byte == b'\n').enumerate() {
            let error = |what| TraceError { line: line + 1, what };
            let time = milliseconds(digits.strip_suffix(b"\r").unwrap_or(digits)).map_err(error)?;
            if time < last {
                return Err(error(TraceFault::Decreasing));
            }
            last = time;
            times.push(time);
        }
        if last == 0 {
            return Err(TraceError { line: times.len(), what: TraceFault::ZeroPeriod });
        }
        Ok(Trace { times: times.into() })
    }

    /// Creates a trace from the milliseconds of its opportunities.
    ///
    /// # Errors
    /// The same as for the text of a file: no opportunities, decreasing times, or a last time of zero.
    pub fn from_times(times: Vec<u32>) -> Result<Trace, TraceError> {
        let error = |line: usize, what| Err(TraceError { line, what });
        if let Some(line) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return error(line + 2, TraceFault::Decreasing);
        }
        match times.last() {
            None => error(1, TraceFault::Empty),
            Some(0) => error(times.len(), TraceFault::ZeroPeriod),
            Some(_) => Ok(Trace { times: times.into() }),
        }
    }

    /// Returns the milliseconds of the opportunities in a period.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// Returns the number of opportunities in a period, at least one.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// Returns the time after which the trace repeats.
    pub fn period(&self) -> Span {
        Span::from_millis(u64::from(self.times[self.times.len() - 1]))
    }

    /// Returns the mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        Rate::over(Bytes::new(self.times.len() as u64 * u64::from(OPPORTUNITY)), self.period())
    }
}

/// Formats the text of the trace's file.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.times.iter().try_for_each(|time| writeln!(f, "{time}"))
    }
}

fn milliseconds(digits: &[u8]) -> Result<u32, TraceFault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TraceFault::NotANumber);
    }
    digits
        .iter()
        .try_fold(0u32, |number, digit| number.checked_mul(10)?.checked_add(u32::from(digit - b'0')))
        .ok_or(TraceFault::TooLarge)
}

#[derive(Clone, Debug)]
pub(crate) struct TraceServer {
    trace: Arc<Trace>,
    sharing: Sharing,
    /// Time in the trace at which the link's time zero lies, in nanoseconds.
    offset: u64,
    /// Start of the current repetition, in nanoseconds of the trace's time, which is `offset` ahead of the link's.
    base: u64,
    /// Index of the next opportunity with unused bytes.
    index: usize,
    /// Time of that opportunity.
    at: Time,
    /// Unused bytes of that opportunity, at least one.
    left: u64,
    /// Bytes that were not used.
    wasted: u64,
}

impl TraceServer {
    pub(crate) fn new(trace: Arc<Trace>, sharing: Sharing, offset: Span) -> Self {
        let offset = offset.as_nanos() % trace.period().as_nanos();
        // The last opportunity is at the end of the period, so one is always found.
        let first = trace.times.partition_point(|&time| u64::from(time) * NANOS_PER_MS < offset);
        let mut server = TraceServer { trace, sharing, offset, base: 0, index: 0, at: Time::ZERO, left: 0, wasted: 0 };
        server.go_to(first);
        server
    }

    #[inline]
    pub(crate) fn next_start(&self) -> Time {
        self.at
    }

    pub(crate) fn wasted(&self) -> u64 {
        self.wasted
    }

    /// Skips the opportunities up to `now`, at a cost independent of their number.
    pub(crate) fn idle_until(&mut self, now: Time) -> bool {
        if self.at > now {
            return false;
        }
        let times = &self.trace.times;
        let count = times.len() as u64;
        let period = self.trace.period().as_nanos();
        let now = now.as_nanos() + self.offset;
        let rounds = (now - self.base) / period;
        self.base += rounds * period;
        // Each complete repetition ends by `now`; the current one does not.
        let passed = (now - self.base) / NANOS_PER_MS;
        let from = if rounds > 0 { 0 } else { self.index };
        let next = from + times[from..].partition_point(|&time| u64::from(time) <= passed);
        let skipped = rounds * count + next as u64 - self.index as u64;
        self.wasted += self.left + (skipped - 1) * u64::from(OPPORTUNITY);
        self.go_to(next);
        true
    }

    /// Leaves the opportunities before `until` unused.
    pub(crate) fn pause(&mut self, until: Time) {
        self.idle_until(Time::from_nanos(until.as_nanos().saturating_sub(1)));
    }

    /// Returns the bytes of the opportunities up to `now` at which nothing waited.
    pub(crate) fn passing(&self, now: Time) -> u64 {
        let mut server = self.clone();
        server.idle_until(now);
        server.wasted - self.wasted
    }

    #[inline]
    pub(crate) fn serve(&mut self, bytes: u64) -> Time {
        let mut bytes = bytes;
        while bytes > self.left {
            bytes -= self.left;
            self.advance();
        }
        let end = self.at;
        self.left -= bytes;
        if self.sharing == Sharing::Packets {
            self.wasted += self.left;
            self.left = 0;
        }
        if self.left == 0 {
            self.advance();
        }
        end
    }

    #[inline]
    fn advance(&mut self) {
        let next = self.index + 1;
        if next < self.trace.times.len() {
            self.go_to(next);
        } else {
            self.base += self.trace.period().as_nanos();
            self.go_to(0);
        }
    }

    #[inline]
    fn go_to(&mut self, index: usize) {
        self.index = index;
        let at = self.base + u64::from(self.trace.times[index]) * NANOS_PER_MS;
        self.at = Time::from_nanos(at - self.offset);
        self.left = u64::from(OPPORTUNITY);
    }
}
