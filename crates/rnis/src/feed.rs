//! Parsers of feeds: bytes in, [`Record`]s out. They do no I/O; everything that they remember is bounded.
//!
//! | module | input |
//! | --- | --- |
//! | [`recording`] | our own reports and events, one JSON object a line: a simulation, an emulation or a recording of any feed |
//! | [`srsran`] | the metrics that srsRAN's gNB sends on its WebSocket |
//! | [`kpm`] | E2SM-KPM measurements as an xApp prints them: JSON or CSV |
//! | [`flexric`] | FlexRIC's MAC and RLC service models: CSV |
//! | [`modem`] | the signal quality that ModemManager reports: a hint, from which no capacity follows |

mod blocks;
mod carrier;
pub mod flexric;
mod json;
pub mod kpm;
pub mod modem;
pub mod recording;
pub mod srsran;
mod table;

pub use carrier::Carrier;

use crate::error::FeedError;
use crate::event::Record;
use units::Time;

/// The longest line or message that is parsed.
pub const LONGEST_MESSAGE: usize = 1 << 20;
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
