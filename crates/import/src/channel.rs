//! Channel logs of other simulators, imported as recorded channels.

mod ns3;
mod omnet;

use std::fmt::Write as _;

use channel::Recorded;
pub use channel::recorded::Quantity;
pub use ns3::{Ns3, ns3};
pub use omnet::{Omnet, omnet};

use crate::Error;

/// Maximum number of samples of a channel.
pub const MAX_SAMPLES: usize = 5_000_000;
/// Resolution of times in seconds: nothing changes within a subframe.
const GRAIN: f64 = 1e-3;

/// What is said of a log of the uplink.
const UPLINK: &str =
    "it has the SINR or CQI of the uplink at the base station, and a recorded channel is what a UE hears";

/// Times in seconds, and values.
type Samples = Vec<(f64, f64)>;

/// One UE's measurements of one cell over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// The measured quantity.
    pub quantity: Quantity,
    /// Times in seconds, increasing and in whole milliseconds, and values in the quantity's unit.
    pub samples: Vec<(f64, f64)>,
    /// The received power in dBm of each sample, if it is known beside an SINR or CQI.
    pub powers: Option<Vec<f64>>,
}

impl Channel {
    /// Creates a channel from samples in the order of time, in seconds, which become whole milliseconds; samples of the same
    /// millisecond are averaged.
    ///
    /// # Errors
    /// [`Error::File`] if there is no sample, or one is out of the quantity's range.
    pub fn new(quantity: Quantity, samples: Vec<(f64, f64)>) -> Result<Channel, Error> {
        let mut merged: Vec<(f64, f64)> = Vec::new();
        let mut same = 0.0;
        for (at, value) in samples {
            let at = libm::round(at / GRAIN);
            match merged.last_mut() {
                Some((last, mean)) if *last == at => {
                    same += 1.0;
                    *mean += (value - *mean) / same;
                }
                _ => {
                    merged.push((at, value));
                    same = 1.0;
                }
            }
        }
        let round = |value: f64| if quantity == Quantity::Cqi { libm::round(value) } else { value };
        let samples = merged.into_iter().map(|(at, value)| (at * GRAIN, round(value))).collect();
        let channel = Channel { quantity, samples, powers: None };
        // The output must be readable as part of a scenario.
        Recorded::parse(channel.to_csv())
            .map_err(|error| Error::File(format!("cannot be converted to a channel: {error}")))?;
        Ok(channel)
    }

    /// Adds the received powers, which are those of the same times.
    ///
    /// # Errors
    /// [`Error::File`] if they have other times.
    pub(crate) fn beside(self, powers: &Channel) -> Result<Channel, Error> {
        let has_same_times = self.samples.len() == powers.samples.len()
            && self.samples.iter().zip(&powers.samples).all(|(one, other)| one.0 == other.0);
        match has_same_times {
            true => Ok(Channel { powers: Some(powers.samples.iter().map(|(_, dbm)| *dbm).collect()), ..self }),
            false => Err(Error::File("the received powers have other times than the other values".to_owned())),
        }
    }

    /// Returns the channel as the text of a recorded channel's file.
    pub fn to_csv(&self) -> String {
        let name = match self.quantity {
            Quantity::Sinr => "sinr_db",
            Quantity::Cqi => "cqi",
            Quantity::Rsrp => "rsrp_dbm",
        };
        let decimals = if self.quantity == Quantity::Cqi { 0 } else { 3 };
        let mut text = format!("time_s,{name}{}\n", if self.powers.is_some() { ",rsrp_dbm" } else { "" });
        for (index, (at, value)) in self.samples.iter().enumerate() {
            write!(text, "{at:.3},{value:.decimals$}").expect("a text takes everything");
            if let Some(dbm) = self.powers.as_ref().and_then(|powers| powers.get(index)) {
                write!(text, ",{dbm:.3}").expect("a text takes everything");
            }
            text.push('\n');
        }
        text
    }
}
