//! Recorded capacity: traces in mahimahi's format, and service by them.
//!
//! Source: K. Winstein, A. Sivaraman, H. Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over
//! Cellular Networks" (NSDI 2013), and mahimahi's `mm-link` (`link_queue.cc`). Each line is a whole number of
//! milliseconds since the start, never less than the line before: the moment of one opportunity to deliver 1500 bytes.
//! A repeated number is several opportunities in one millisecond. At the end the trace begins again, the last line's
//! number being the period.
//!
//! Opportunities at or before a packet's arrival are gone when it arrives, as in `mm-link`, and so are those that find
//! nothing waiting.
//!
//! Deviations from `mm-link`:
//! 1. Only the opportunities lie on whole milliseconds; arrivals and deliveries do not.
//! 2. [`Sharing::Bytes`] is what `mm-link` does. Its opportunity has 1504 bytes, because it counts the 4 bytes that a
//!    TUN device puts before each packet; here it has the format's 1500 and packets have their own length.
//! 3. Lines may end in CR LF.

mod synthetic;

use core::fmt;
use std::sync::Arc;

use units::{Bytes, Rate, Span, Time};

pub use synthetic::{Synthetic, synthetic};

/// Bytes of an opportunity.
pub const OPPORTUNITY: u32 = 1500;

const NANOS_PER_MS: u64 = 1_000_000;

/// How packets use opportunities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The bytes of an opportunity go to packets one after the other; a packet that needs more than is left goes on at
    /// the next opportunity and leaves there. This is how `mm-link` serves.
    #[default]
    Bytes,
    /// One packet an opportunity, however small; a larger one takes as many as it needs and leaves at the last. This is
    /// how the format is described: one packet crosses the link at each line.
    Whole,
}

/// Delivery opportunities over time, over again at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds of each opportunity: never decreasing, the last one (the period) above zero.
    times: Box<[u32]>,
}

/// What is wrong with a trace, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: TraceFault,
}

/// What may be wrong with a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFault {
    /// There is no line at all.
    Empty,
    /// The line is not a whole number in decimal digits.
    NotANumber,
    /// The number is above 4294967295 ms (49 days).
    TooLarge,
    /// The number is less than the one of the line before.
    Decreasing,
    /// The last line is zero: the trace takes no time.
    ZeroPeriod,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            TraceFault::Empty => "the trace has no line; each must be a number of milliseconds",
            TraceFault::NotANumber => "not a whole number of milliseconds",
            TraceFault::TooLarge => "more than 4294967295 milliseconds",
            TraceFault::Decreasing => "earlier than the line before; times must not decrease",
            TraceFault::ZeroPeriod => "the last time is 0; a trace must last for some time",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Reads a trace from the text of its file.
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

    /// A trace of opportunities at these milliseconds.
    ///
    /// # Errors
    /// What would be wrong with the text of such a file: there is none, they decrease, the last one is zero.
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

    /// The milliseconds of the opportunities in a period.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// The number of opportunities in a period, at least one.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// The time after which the trace begins again.
    pub fn period(&self) -> Span {
        Span::from_millis(u64::from(self.times[self.times.len() - 1]))
    }

    /// The mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        Rate::over(Bytes::new(self.times.len() as u64 * u64::from(OPPORTUNITY)), self.period())
    }
}

/// The text of the trace's file.
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
    /// The moment of the trace at which the link's time begins, in nanoseconds.
    offset: u64,
    /// When the present round of the trace began, in nanoseconds of the trace's time, which is `offset` ahead of the link's.
    base: u64,
    /// The next opportunity with bytes left,
    index: usize,
    /// its time,
    at: Time,
    /// and its bytes that are left, at least one.
    left: u64,
    /// Bytes that passed unused.
    wasted: u64,
}

impl TraceServer {
    pub(crate) fn new(trace: Arc<Trace>, sharing: Sharing, offset: Span) -> Self {
        let offset = offset.as_nanos() % trace.period().as_nanos();
        // The last opportunity is at the period's end, so there is one.
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

    /// Passes over the opportunities up to `now`, at a cost that does not grow with their number.
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
        // All of the rounds end by now, and the last time of the present one does not.
        let passed = (now - self.base) / NANOS_PER_MS;
        let from = if rounds > 0 { 0 } else { self.index };
        let next = from + times[from..].partition_point(|&time| u64::from(time) <= passed);
        let skipped = rounds * count + next as u64 - self.index as u64;
        self.wasted += self.left + (skipped - 1) * u64::from(OPPORTUNITY);
        self.go_to(next);
        true
    }

    /// The bytes of the opportunities up to `now` that nothing has waited for.
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
        if self.sharing == Sharing::Whole {
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
