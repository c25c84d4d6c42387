//! Parsers of feeds: bytes in, [`Record`]s out. They do no I/O; everything that they remember is bounded.
//!
//! | module | input |
//! | --- | --- |
//! | [`recording`] | our own reports and events, one JSON object a line: a simulation, an emulation or a recording of any feed |
//! | [`srsran`] | the metrics that srsRAN's gNB sends on its WebSocket |
//! | [`kpm`] | E2SM-KPM measurements as an xApp prints them: JSON or CSV |
//! | [`flexric`] | FlexRIC's MAC and RLC service models: CSV |
//! | [`modem`] | the signal quality that ModemManager reports: a hint, from which no capacity follows |

pub mod flexric;
mod json;
pub mod kpm;
pub mod modem;
pub mod recording;
pub mod srsran;
mod table;

use crate::error::FeedError;
use crate::event::Record;
use units::{Span, Time};

/// The longest line or message that is parsed.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// The most UEs whose counters a parser remembers.
const MOST_UES: usize = 4096;
/// After a pause of this length, differences of counters mean nothing.
const LONGEST_INTERVAL: Span = Span::from_secs(10);

/// What the records of base stations leave out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// The cell, for feeds that do not name one.
    pub cell: u64,
    /// Resource blocks of the carrier.
    pub n_prb: u16,
    /// Downlink slots per second, those that the duplexing pattern permits.
    pub slots_per_second: u32,
    /// The interval of the reports, where neither they nor the time between them tells.
    pub period: Span,
}

impl Default for Carrier {
    /// An LTE carrier of 20 MHz that reports each second.
    fn default() -> Carrier {
        Carrier { cell: 1, n_prb: 100, slots_per_second: 1000, period: Span::from_secs(1) }
    }
}

impl Carrier {
    /// Returns the downlink slots in an interval, rounded.
    fn slots(&self, interval: Span) -> u32 {
        let slots = u128::from(interval.as_nanos()) * u128::from(self.slots_per_second) + 500_000_000;
        u32::try_from(slots / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Returns the slots in an interval that a duplexing pattern divides between the directions: the numerology has 1000, 2000,
    /// 4000... a second, and is the smallest that has enough of them for the downlink.
    fn slots_of_both_directions(&self, interval: Span) -> f64 {
        let mut per_second = 1000;
        while per_second < self.slots_per_second && per_second < 64_000 {
            per_second *= 2;
        }
        interval.as_secs_f64() * f64::from(per_second)
    }
}

/// A parser of any feed.
#[derive(Clone, Debug)]
pub enum Parser {
    /// Our own records.
    Recording,
    /// srsRAN's metrics.
    Srsran(srsran::Srsran),
    /// E2SM-KPM.
    Kpm(kpm::Kpm),
    /// FlexRIC.
    Flexric(flexric::Flexric),
    /// ModemManager.
    Modem(modem::Modem),
}

impl Parser {
    /// Parses a line or message that arrived at `now`; an empty line has no records.
    pub fn parse(&mut self, message: &[u8], now: Time) -> Result<Vec<Record>, FeedError> {
        if message.len() > LONGEST_MESSAGE {
            return Err(FeedError::new(format_args!("longer than {LONGEST_MESSAGE} bytes")));
        }
        let message = message.trim_ascii();
        if message.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Parser::Recording => recording::parse_line(message).map(|record| vec![record]),
            Parser::Srsran(parser) => parser.parse(message, now),
            Parser::Kpm(parser) => parser.parse(message, now),
            Parser::Flexric(parser) => parser.parse(message, now),
            Parser::Modem(parser) => parser.parse(message, now),
        }
    }
}

/// The interval between two reports of one source.
fn interval(before: Option<Time>, time: Time, otherwise: Span) -> Span {
    match before {
        Some(before) if before < time && time - before <= LONGEST_INTERVAL => time - before,
        _ => otherwise,
    }
}

/// Multiplies a count with a share, rounded, for values from outside: no more than `u64::MAX`, and 0 for what is not a number.
fn scaled(value: f64) -> u64 {
    if value.is_finite() && value > 0.0 { (value + 0.5) as u64 } else { 0 }
}
