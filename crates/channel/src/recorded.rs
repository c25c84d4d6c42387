//! Recorded channels: tables of times and measurements.
//!
//! The format is comma-separated values. The first line names the two columns: `time_s` or `time_ms`, and `sinr_db`,
//! `cqi` or `rsrp_dbm`. Each further line is a time, later than the previous line's, and a value, which applies until
//! the next line's time; the first value also applies before it, and the last one without end. Spaces around numbers,
//! empty lines at the end and CR LF are accepted.
//!
//! Measurements are converted to an SINR and a received power (see [`Channel::Recorded`](crate::Channel)). SINR and CQI
//! include the interference of other cells, a received power does not. A CQI is interpreted as the minimum SINR that
//! gives it.

use core::fmt;

use units::{Span, Time};

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// SINR in dB, -100 to 100.
    Sinr,
    /// Wideband CQI, 0 to 15.
    Cqi,
    /// Received power of the reference signals per resource element in dBm, -200 to 50.
    Rsrp,
}

/// A recorded channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    quantity: Quantity,
    /// In order of time; never empty.
    samples: Box<[(Time, f32)]>,
}

/// The error for an invalid recording, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedError {
    /// The line, from 1.
    pub line: usize,
    /// The fault of the line.
    pub what: RecordedFault,
}

/// The possible faults of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedFault {
    /// The first line does not name two known columns.
    Header,
    /// There are no lines after the header.
    Empty,
    /// The line does not have two fields.
    Fields,
    /// The time is not a number from 0 to a billion seconds.
    BadTime,
    /// The time is not later than the previous line's.
    NotLater,
    /// The value is not a number in the quantity's range.
    BadValue(Quantity),
}

impl fmt::Display for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            RecordedFault::Header => {
                "the header must be `time_s` or `time_ms`, a comma, and `sinr_db`, `cqi` or `rsrp_dbm`"
            }
            RecordedFault::Empty => "the recording has no lines after the header",
            RecordedFault::Fields => "expected a time, a comma and a value",
            RecordedFault::BadTime => "the time must be a number from 0 to 1000000000 s",
            RecordedFault::NotLater => "the time must be later than that of the previous line",
            RecordedFault::BadValue(Quantity::Sinr) => "the SINR must be a number from -100 to 100 dB",
            RecordedFault::BadValue(Quantity::Cqi) => "the CQI must be a whole number from 0 to 15",
            RecordedFault::BadValue(Quantity::Rsrp) => "the RSRP must be a number from -200 to 50 dBm",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for RecordedError {}

/// The maximum time in seconds.
const MAX_SECONDS: f64 = 1e9;

impl Recorded {
    /// Parses a recording from the text of its file.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Recorded, RecordedError> {
        let mut lines = text.as_ref().trim_ascii_end().split(|&byte| byte == b'\n').enumerate();
        let (seconds, quantity) = lines
            .next()
            .and_then(|(_, line)| header(line))
            .ok_or(RecordedError { line: 1, what: RecordedFault::Header })?;
        let mut samples: Vec<(Time, f32)> = Vec::new();
        for (index, line) in lines {
            let error = |what| RecordedError { line: index + 1, what };
            let [time, value] = fields(line).ok_or(error(RecordedFault::Fields))?;
            let time = number(time)
                .map(|time| time * seconds)
                .filter(|time| (0.0..=MAX_SECONDS).contains(time))
                .ok_or(error(RecordedFault::BadTime))?;
            let time = Time::ZERO + Span::from_secs_f64(time);
            if samples.last().is_some_and(|&(last, _)| time <= last) {
                return Err(error(RecordedFault::NotLater));
            }
            let fits = |value: &f64| match quantity {
                Quantity::Sinr => (-100.0..=100.0).contains(value),
                Quantity::Cqi => (0.0..=15.0).contains(value) && libm::trunc(*value) == *value,
                Quantity::Rsrp => (-200.0..=50.0).contains(value),
            };
            let value = number(value).filter(fits).ok_or(error(RecordedFault::BadValue(quantity)))?;
            samples.push((time, value as f32));
        }
        if samples.is_empty() {
            return Err(RecordedError { line: 2, what: RecordedFault::Empty });
        }
        Ok(Recorded { quantity, samples: samples.into() })
    }

    /// Returns the measured quantity.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// Returns the value at `now`, in the quantity's unit, between the time from which it applies and that of the next
    /// value: [`Time::ZERO`] for the first one, and [`Time::MAX`] if there is no next.
    pub fn at(&self, now: Time) -> (Time, f32, Time) {
        let next = self.samples.partition_point(|&(time, _)| time <= now);
        // Before the first sample, the first value applies, and the second is next.
        let next = next.max(1);
        let (begins, value) = self.samples[next - 1];
        let begins = if next == 1 { Time::ZERO } else { begins };
        (begins, value, self.samples.get(next).map_or(Time::MAX, |&(time, _)| time))
    }

    /// Returns the number of samples, at least one.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Returns the time of the last value.
    pub fn end(&self) -> Time {
        self.samples[self.samples.len() - 1].0
    }
}

/// Returns the unit of the first column in seconds, and the second column's quantity.
fn header(line: &[u8]) -> Option<(f64, Quantity)> {
    let [time, quantity] = fields(line)?;
    let seconds = match time {
        b"time_s" => 1.0,
        b"time_ms" => 1e-3,
        _ => return None,
    };
    let quantity = match quantity {
        b"sinr_db" => Quantity::Sinr,
        b"cqi" => Quantity::Cqi,
        b"rsrp_dbm" => Quantity::Rsrp,
        _ => return None,
    };
    Some((seconds, quantity))
}

fn fields(line: &[u8]) -> Option<[&[u8]; 2]> {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let both = [fields.next()?, fields.next()?];
    fields.next().is_none().then_some(both)
}

fn number(digits: &[u8]) -> Option<f64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
