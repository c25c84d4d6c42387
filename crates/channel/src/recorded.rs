//! Recorded channels: a table of times and of what was measured then.
//!
//! A text of comma-separated values. The first line names the two columns: `time_s` or `time_ms`, and `sinr_db`, `cqi`
//! or `rsrp_dbm`. Each other line is a time, later than that of the line before, and a value, which holds until the
//! next line's time; the first one holds before it, too, and the last one for ever. Spaces around a number, empty lines
//! at the end and CR LF are let pass.
//!
//! What was measured becomes an SINR and a received power (see [`Channel::Recorded`](crate::Channel)). An SINR and a CQI
//! contain the interference of other cells, a received power does not. A CQI is taken for the least SINR that gives it.

use core::fmt;

use units::{Span, Time};

/// What was measured.
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

/// What is wrong with a text, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: RecordedFault,
}

/// What may be wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedFault {
    /// The first line does not name two columns that are known.
    Header,
    /// There is no line after the first.
    Empty,
    /// The line has not two fields.
    Fields,
    /// The time is not a number from 0 to a billion seconds.
    BadTime,
    /// The time is not later than that of the line before.
    NotLater,
    /// The value is not a number in the quantity's range.
    BadValue(Quantity),
}

impl fmt::Display for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            RecordedFault::Header => {
                "must name the columns: `time_s` or `time_ms`, a comma, and `sinr_db`, `cqi` or `rsrp_dbm`"
            }
            RecordedFault::Empty => "the record has no line after the one that names the columns",
            RecordedFault::Fields => "must be a time, a comma and a value",
            RecordedFault::BadTime => "the time is not a number from 0 to 1000000000 s",
            RecordedFault::NotLater => "the time must be later than that of the line before",
            RecordedFault::BadValue(Quantity::Sinr) => "the SINR is not a number from -100 to 100 dB",
            RecordedFault::BadValue(Quantity::Cqi) => "the CQI is not a whole number from 0 to 15",
            RecordedFault::BadValue(Quantity::Rsrp) => "the RSRP is not a number from -200 to 50 dBm",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for RecordedError {}

/// The longest time in seconds.
const MAX_SECONDS: f64 = 1e9;

impl Recorded {
    /// Reads a record from the text of its file.
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

    /// What was measured.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// The value at `now`, in the quantity's unit, between the time when it begins and that when the next one does:
    /// [`Time::ZERO`] for the first one, and [`Time::MAX`] if there is no next.
    pub fn at(&self, now: Time) -> (Time, f32, Time) {
        let next = self.samples.partition_point(|&(time, _)| time <= now);
        // Before the first sample, it is the first that holds, and the second that comes next.
        let next = next.max(1);
        let (begins, value) = self.samples[next - 1];
        let begins = if next == 1 { Time::ZERO } else { begins };
        (begins, value, self.samples.get(next).map_or(Time::MAX, |&(time, _)| time))
    }

    /// The number of samples, at least one.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// When the last value begins.
    pub fn end(&self) -> Time {
        self.samples[self.samples.len() - 1].0
    }
}

/// The seconds of the first column's unit, and the second column.
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
