//! Delays that change over time, such as a satellite's.
//!
//! A recorded delay is a table of comma-separated values. The first line names two columns: `time_s` or `time_ms`, and `delay_s` or
//! `delay_ms` (one way) or `rtt_s` or `rtt_ms` (both ways, of which each direction has half). Each further line is a time, later than the
//! previous line's, and the delay from then on. The first one also applies before its time, and the last one for as long as the one
//! before it; then the recording repeats. Spaces around fields, empty lines at the end, CR LF and a byte-order mark are accepted.

use core::fmt;
use std::sync::Arc;
use units::{Span, Time};

/// The longest time and delay in a recording, in seconds.
const MAX_TIME: f64 = 1e9;
const MAX_DELAY: f64 = 1e3;

/// The delay of a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// One that does not change.
    Constant(Span),
    /// One that changes. Packets stay in order: one that would overtake another arrives with it.
    Varying {
        /// The delays; many links may share them.
        delays: Arc<Delays>,
        /// The time in them at which the link's time zero lies.
        offset: Span,
    },
}

impl Default for Delay {
    fn default() -> Delay {
        Delay::Constant(Span::ZERO)
    }
}

impl From<Span> for Delay {
    fn from(delay: Span) -> Delay {
        Delay::Constant(delay)
    }
}

impl Delay {
    /// Returns the delay of a packet that enters the wire at `at`.
    #[inline]
    pub(crate) fn at(&self, at: Time) -> Span {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Varying { delays, offset } => delays.at(at, *offset),
        }
    }
}

/// Delays over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Times, which increase, and the delay from each on; never empty.
    changes: Box<[(Span, Span)]>,
    /// The time after which they repeat.
    period: Option<Span>,
}

/// The error for invalid delays, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaysError {
    /// The line, from 1; of steps, their number.
    pub line: usize,
    /// The fault of the line.
    pub what: DelaysFault,
}

/// The possible faults of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaysFault {
    /// The first line does not name a time and a delay.
    Header,
    /// There is no delay.
    Empty,
    /// The line has not two fields.
    Fields,
    /// The time is not a number from 0 to a billion seconds.
    BadTime,
    /// The time is not later than the previous one.
    NotLater,
    /// The delay of one way is not a number from a nanosecond to a thousand seconds.
    BadDelay,
}

impl fmt::Display for DelaysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            DelaysFault::Header => {
                "the header must be `time_s` or `time_ms`, and `delay_s` or `delay_ms` (one way) or `rtt_s` or `rtt_ms`"
            }
            DelaysFault::Empty => "there is no delay",
            DelaysFault::Fields => "expected a time and a delay, separated by a comma",
            DelaysFault::BadTime => "the time must be a number from 0 to 1000000000 s",
            DelaysFault::NotLater => "the time must be later than that of the previous line",
            DelaysFault::BadDelay => "the delay must be a number of at least 1 ns and at most 1000 s, one way",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for DelaysError {}

impl Delays {
    /// Delays from each time on, the last one without end; the first one also applies before.
    pub fn steps(changes: Vec<(Span, Span)>) -> Result<Delays, DelaysError> {
        Delays::new(changes.into_iter().enumerate().map(|(i, change)| (i + 1, change)), 1)
    }

    /// Parses a recording from the text of its file.
    pub fn parse(text: &str) -> Result<Delays, DelaysError> {
        let mut lines =
            text.trim_start_matches('\u{feff}').trim_end().lines().enumerate().map(|(i, line)| (i + 1, line));
        let header = lines.next().and_then(|(_, line)| columns(line));
        let [time_unit, delay_unit] = header.ok_or(DelaysError { line: 1, what: DelaysFault::Header })?;
        let mut read = Vec::new();
        for (line, text) in lines {
            let error = |what| DelaysError { line, what };
            let (time, delay) = text.split_once(',').ok_or(error(DelaysFault::Fields))?;
            let number = |text: &str, unit: f64| text.trim().parse::<f64>().ok().map(|number| number * unit);
            let is_time = |time: &f64| (0.0..=MAX_TIME).contains(time);
            let time = number(time, time_unit).filter(is_time).ok_or(error(DelaysFault::BadTime))?;
            let is_delay = |delay: &f64| (1e-9..=MAX_DELAY).contains(delay);
            let delay = number(delay, delay_unit).filter(is_delay).ok_or(error(DelaysFault::BadDelay))?;
            read.push((line, (Span::from_secs_f64(time), Span::from_secs_f64(delay))));
        }
        let delays = Delays::new(read.into_iter(), 2)?;
        let period = match *delays.changes {
            [.., (before, _), (last, _)] => Some(last + (last - before)),
            _ => None,
        };
        Ok(Delays { period, ..delays })
    }

    /// The delays of numbered lines, of which the `first` must be there.
    fn new(lines: impl Iterator<Item = (usize, (Span, Span))>, first: usize) -> Result<Delays, DelaysError> {
        let mut changes: Vec<(Span, Span)> = Vec::new();
        for (line, change) in lines {
            if changes.last().is_some_and(|last| change.0 <= last.0) {
                return Err(DelaysError { line, what: DelaysFault::NotLater });
            }
            changes.push(change);
        }
        if changes.is_empty() {
            return Err(DelaysError { line: first, what: DelaysFault::Empty });
        }
        Ok(Delays { changes: changes.into(), period: None })
    }

    /// Returns the time after which they repeat, if they do.
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// Returns the delay at `at`, if time zero lies at `offset`.
    fn at(&self, at: Time, offset: Span) -> Span {
        let mut place = at.as_nanos().saturating_add(offset.as_nanos());
        if let Some(period) = self.period {
            place %= period.as_nanos();
        }
        let later = self.changes.partition_point(|(from, _)| from.as_nanos() <= place);
        self.changes[later.saturating_sub(1)].1
    }
}

/// Returns the units of both columns in seconds of one way.
fn columns(header: &str) -> Option<[f64; 2]> {
    let (time, delay) = header.split_once(',')?;
    let time = match time.trim() {
        "time_s" => 1.0,
        "time_ms" => 1e-3,
        _ => return None,
    };
    let delay = match delay.trim() {
        "delay_s" => 1.0,
        "delay_ms" => 1e-3,
        "rtt_s" => 0.5,
        "rtt_ms" => 0.5e-3,
        _ => return None,
    };
    Some([time, delay])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn at(delays: &Delays, at: u64, offset: u64) -> Span {
        delays.at(Time::ZERO + ms(at), ms(offset))
    }

    #[test]
    fn a_delay_applies_from_its_time_until_the_next() {
        let delays = Delays::steps(vec![(ms(10), ms(20)), (ms(30), ms(40))]).expect("they are in order");
        let found = [0, 9, 10, 29, 30, 1_000_000].map(|moment| at(&delays, moment, 0));
        assert_eq!(found, [20, 20, 20, 20, 40, 40].map(ms));
        assert_eq!(at(&delays, 5, 25), ms(40));
        assert_eq!(delays.period(), None);
    }

    #[test]
    fn a_recording_repeats_after_its_last_delay_was_as_long_as_the_one_before() {
        let delays = Delays::parse("time_s, delay_ms\r\n0,20\r\n15,34.5\r\n30,21\r\n\r\n").expect("it is one");
        assert_eq!(delays.period(), Some(Span::from_secs(45)));
        let found = [0, 14_999, 15_000, 30_000, 44_999, 45_000, 60_000].map(|moment| at(&delays, moment, 0));
        let micros = [20_000, 20_000, 34_500, 21_000, 21_000, 20_000, 34_500];
        assert_eq!(found, micros.map(Span::from_micros));
        assert_eq!(at(&delays, 0, 15_000), Span::from_micros(34_500));
        assert_eq!(Delays::parse("\u{feff}time_s,delay_ms\n0,20\n").map(|delays| delays.period()), Ok(None));
        // Times far away.
        delays.at(Time::MAX, Span::MAX);
    }

    #[test]
    fn a_round_trip_is_half_in_each_direction_and_units_are_those_of_the_header() {
        for (header, expected) in [("rtt_ms", ms(20)), ("rtt_s", Span::from_secs(20)), ("delay_s", Span::from_secs(40))]
        {
            let delays = Delays::parse(&format!("time_ms,{header}\n5,40")).expect("it is one");
            assert_eq!((at(&delays, 0, 0), delays.period()), (expected, None), "{header}");
        }
    }

    #[test]
    fn each_fault_is_found_in_its_line() {
        use DelaysFault::*;
        let head = "time_s,delay_ms\n";
        let rows = [
            ("", Header, 1),
            ("0,20\n", Header, 1),
            ("time,delay\n0,20\n", Header, 1),
            ("time_s,delay_ms,rtt_ms\n", Header, 1),
            ("time_s,delay\n0,20\n", Header, 1),
            (head, Empty, 2),
            ("time_s,delay_ms\n0 20\n", Fields, 2),
            ("time_s,delay_ms\n0,20\n-1,20\n", BadTime, 3),
            ("time_s,delay_ms\n0,20\nnan,20\n", BadTime, 3),
            ("time_s,delay_ms\n0,20\n1e10,20\n", BadTime, 3),
            ("time_s,delay_ms\n0,20\n0,21\n", NotLater, 3),
            ("time_s,delay_ms\n0,20\n1,0\n", BadDelay, 3),
            ("time_s,delay_ms\n0,inf\n", BadDelay, 2),
            ("time_s,delay_ms\n0,20,3\n", BadDelay, 2),
            ("time_s,delay_ms\n0,2000000\n", BadDelay, 2),
            ("time_s,delay_ms\n0,0.0000005\n", BadDelay, 2),
            ("time_s,delay_ms\n0,20\n\n1,21\n", Fields, 3),
        ];
        for (text, what, line) in rows {
            assert_eq!(Delays::parse(text), Err(DelaysError { line, what }), "{text:?}");
        }
        assert_eq!(Delays::steps(vec![]), Err(DelaysError { line: 1, what: Empty }));
    }
}
