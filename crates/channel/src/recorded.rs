//! Recorded channels: tables of times and measurements.
//!
//! The format is comma-separated values. The first line names the columns: `time_s` or `time_ms`, and `sinr_db`,
//! `cqi` or `rsrp_dbm`; `rsrp_dbm` may stand beside one of the others. Each further line is a time, later than the previous line's, and a value for each column, which applies until
//! the next line's time; the first value also applies before it, and the last one without end, unless the recording
//! repeats ([`Start`]). Spaces around numbers,
//! empty lines at the end and CR LF are accepted.
//!
//! Measurements are converted to an SINR and a received power (see [`Channel::Recorded`](crate::Channel)). SINR and CQI
//! include the interference of other cells, a received power does not. A CQI is interpreted as the minimum SINR that
//! gives it.
//!
//! The uplink follows from the received power. With an SINR or CQI beside it, the power sets the losses of both directions,
//! and the SINR what the UE hears of other cells. Of an SINR or CQI alone, nothing tells how much of it is loss: the loss must
//! come from elsewhere ([`Recorded::with_loss`]), or the SINR is taken for one without interference.

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
    /// The received power in dBm of each sample, beside its SINR or CQI.
    powers: Option<Box<[f32]>>,
    /// The loss in dB of both directions, if no received power tells it.
    loss_db: Option<f64>,
}

/// Where a run begins in recordings that were made together, and whether they repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The moment of the recordings at which the run begins.
    offset: Span,
    /// The time after which the recordings repeat; without one, their last values hold without end.
    period: Option<Span>,
}

impl Start {
    /// Begins at `offset`; each recording's last value holds without end.
    pub fn at(offset: Span) -> Start {
        Start { offset, period: None }
    }

    /// Begins at `offset`, and repeats recordings after `period`. Without a period, as of values that never change, it is as
    /// [`Start::at`].
    pub fn repeating(offset: Span, period: Option<Span>) -> Start {
        Start { offset, period: period.filter(|period| *period > Span::ZERO) }
    }

    /// Looks `record` up at `now`, a moment of the run: as [`Recorded::at`] with moments of the run, and the received power.
    pub(crate) fn look_up(self, record: &Recorded, now: Time) -> (Time, f32, Time, Option<f32>) {
        let run = u128::from(now.as_nanos());
        let ahead = run + u128::from(self.offset.as_nanos());
        let period = self.period.map(|period| u128::from(period.as_nanos()));
        let place = period.map_or(ahead, |period| ahead % period);
        let recorded = Time::from_nanos(u64::try_from(place).unwrap_or(u64::MAX));
        let (begins, value, ends) = record.at(recorded);
        let begins = run.saturating_sub(place - u128::from(begins.as_nanos()));
        let ends = match (ends, period) {
            (Time::MAX, None) => u128::from(u64::MAX),
            (_, period) => run + (u128::from(ends.as_nanos()).min(period.unwrap_or(u128::MAX)) - place),
        };
        let moment = |nanos: u128| Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (moment(begins), value, moment(ends), record.power_dbm(recorded))
    }
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
    /// The first line does not name a time and a quantity, or a quantity beside the received power.
    Header,
    /// There are no lines after the header.
    Empty,
    /// The line does not have a field for each column.
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
                "the header must be `time_s` or `time_ms`, and `sinr_db`, `cqi` or `rsrp_dbm`, or `rsrp_dbm` with one of the others"
            }
            RecordedFault::Empty => "the recording has no lines after the header",
            RecordedFault::Fields => "expected a time and a value for each column, separated by commas",
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
        let Header { seconds, quantity, power } = lines
            .next()
            .and_then(|(_, line)| header(line))
            .ok_or(RecordedError { line: 1, what: RecordedFault::Header })?;
        let mut samples: Vec<(Time, f32)> = Vec::new();
        let mut powers = power.map(|_| Vec::new());
        for (index, line) in lines {
            let error = |what| RecordedError { line: index + 1, what };
            let Fields { time, values, count } = fields(line).ok_or(error(RecordedFault::Fields))?;
            if count != 1 + usize::from(power.is_some()) {
                return Err(error(RecordedFault::Fields));
            }
            let time = number(time)
                .map(|time| time * seconds)
                .filter(|time| (0.0..=MAX_SECONDS).contains(time))
                .ok_or(error(RecordedFault::BadTime))?;
            let time = Time::ZERO + Span::from_secs_f64(time);
            if samples.last().is_some_and(|&(last, _)| time <= last) {
                return Err(error(RecordedFault::NotLater));
            }
            let read = |quantity: Quantity, digits: &[u8]| {
                let value = number(digits).filter(|value| quantity.has(*value));
                value.map(|value| value as f32).ok_or(error(RecordedFault::BadValue(quantity)))
            };
            samples.push((time, read(quantity, values[power.map_or(0, |power| 1 - power)])?));
            if let (Some(powers), Some(power)) = (&mut powers, power) {
                powers.push(read(Quantity::Rsrp, values[power])?);
            }
        }
        if samples.is_empty() {
            return Err(RecordedError { line: 2, what: RecordedFault::Empty });
        }
        Ok(Recorded { quantity, samples: samples.into(), powers: powers.map(Vec::into), loss_db: None })
    }

    /// Sets the loss in dB of both directions, which a received power overrides.
    #[must_use]
    pub fn with_loss(self, loss_db: f64) -> Recorded {
        let is_known = self.quantity == Quantity::Rsrp || self.powers.is_some();
        Recorded { loss_db: (!is_known).then_some(loss_db), ..self }
    }

    /// Returns whether the loss of the uplink is known.
    pub fn has_loss(&self) -> bool {
        self.quantity == Quantity::Rsrp || self.powers.is_some() || self.loss_db.is_some()
    }

    /// Returns the loss that was set.
    pub(crate) fn loss_db(&self) -> Option<f64> {
        self.loss_db
    }

    /// Returns the measured quantity.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// Returns the value at `now`, in the quantity's unit, between the time from which it applies and that of the next
    /// value: [`Time::ZERO`] for the first one, and [`Time::MAX`] if there is no next.
    pub fn at(&self, now: Time) -> (Time, f32, Time) {
        let next = self.next(now);
        let (begins, value) = self.samples[next - 1];
        let begins = if next == 1 { Time::ZERO } else { begins };
        (begins, value, self.samples.get(next).map_or(Time::MAX, |&(time, _)| time))
    }

    /// Returns the received power in dBm at `now`, if it was recorded beside the quantity.
    pub fn power_dbm(&self, now: Time) -> Option<f32> {
        self.powers.as_ref().map(|powers| powers[self.next(now) - 1])
    }

    /// The number of the sample after that of `now`, at least one: before the first sample, its value applies.
    fn next(&self, now: Time) -> usize {
        self.samples.partition_point(|&(time, _)| time <= now).max(1)
    }

    /// Returns the number of samples, at least one.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Returns the time of the last value.
    pub fn end(&self) -> Time {
        self.samples[self.samples.len() - 1].0
    }

    /// Returns the time after which the recording can repeat: its last value is taken to hold as long as the one before it.
    /// `None` if it has one value.
    pub fn period(&self) -> Option<Span> {
        let [.., (before, _), (last, _)] = *self.samples else { return None };
        Some((last - Time::ZERO) + (last - before))
    }
}

impl Quantity {
    /// Whether a value is in the quantity's range.
    fn has(self, value: f64) -> bool {
        match self {
            Quantity::Sinr => (-100.0..=100.0).contains(&value),
            Quantity::Cqi => (0.0..=15.0).contains(&value) && libm::trunc(value) == value,
            Quantity::Rsrp => (-200.0..=50.0).contains(&value),
        }
    }
}

/// What the first line says.
struct Header {
    /// Seconds in the unit of the times.
    seconds: f64,
    quantity: Quantity,
    /// Which of the two values is the received power, if there are two.
    power: Option<usize>,
}

fn header(line: &[u8]) -> Option<Header> {
    let Fields { time, values: names, count } = fields(line)?;
    let seconds = match time {
        b"time_s" => 1.0,
        b"time_ms" => 1e-3,
        _ => return None,
    };
    let quantity = |name: &[u8]| match name {
        b"sinr_db" => Some(Quantity::Sinr),
        b"cqi" => Some(Quantity::Cqi),
        b"rsrp_dbm" => Some(Quantity::Rsrp),
        _ => None,
    };
    let first = quantity(names[0])?;
    if count == 1 {
        return Some(Header { seconds, quantity: first, power: None });
    }
    let second = quantity(names[1])?;
    match (first == Quantity::Rsrp, second == Quantity::Rsrp) {
        (true, false) => Some(Header { seconds, quantity: second, power: Some(0) }),
        (false, true) => Some(Header { seconds, quantity: first, power: Some(1) }),
        _ => None,
    }
}

/// The fields of a line.
struct Fields<'a> {
    time: &'a [u8],
    /// One or two values; without a second one it is empty.
    values: [&'a [u8]; 2],
    count: usize,
}

fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let (time, first, second) = (fields.next()?, fields.next()?, fields.next());
    let count = 1 + usize::from(second.is_some());
    fields.next().is_none().then_some(Fields { time, values: [first, second.unwrap_or_default()], count })
}

fn number(digits: &[u8]) -> Option<f64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
