//! Signal quality of ModemManager (`org.freedesktop.ModemManager1.Modem.Signal`), as `mmcli -m 0 --signal-get -J` prints it.
//!
//! It becomes a periodic measurement report of the modem's UE. It is a hint: no report, and therefore no capacity, follows from
//! it. Values are refreshed in whole seconds at best (`mmcli -m 0 --signal-setup=1`).

use super::carrier::Carrier;
use super::json::number;
use crate::error::FeedError;
use crate::event::{Event, Measurement, PERIODICAL, Record, Signal, What};
use crate::report::UeId;
use serde_json::Value;
use units::Time;

/// The parser.
#[derive(Clone, Debug)]
pub struct Modem {
    carrier: Carrier,
}

impl Modem {
    /// Creates a parser for a modem in a cell; its UE has the RNTI 0, which no cell assigns.
    pub fn new(carrier: Carrier) -> Modem {
        Modem { carrier }
    }

    /// Parses one output that arrived at `now`. A modem that does not know its signal has no record.
    pub fn parse(&mut self, output: &[u8], now: Time) -> Result<Vec<Record>, FeedError> {
        let output: Value = serde_json::from_slice(output).map_err(FeedError::new)?;
        let signal = output.pointer("/modem/signal").unwrap_or(&output);
        // A modem on both is served by the NR cell, unless only the power of its anchor is known (EN-DC): values of two cells are
        // never mixed.
        let technologies = ["5g", "nr5g", "Nr5g", "lte", "Lte"];
        let known: Vec<&Value> = technologies.iter().filter_map(|name| signal.get(*name)).collect();
        if known.is_empty() {
            return Err(FeedError::new("no signal of LTE or 5G: is this the output of `mmcli --signal-get -J`?"));
        }
        let known: Vec<Signal> = known.into_iter().map(signal_of).collect();
        let with_power = known.iter().find(|signal| signal.rsrp_dbm.is_some());
        let serving = with_power.or_else(|| known.iter().find(|signal| **signal != Signal::default()));
        let Some(&serving) = serving else { return Ok(Vec::new()) };
        let what = What::Measurement(Measurement { trigger: PERIODICAL, serving, neighbours: vec![] });
        let ue = UeId::new(0);
        Ok(vec![Record::Event(Event { time: now, cell: self.carrier.cell, ue, temp_ue_id: None, what })])
    }
}

/// Reads the values; ModemManager writes `--` for those that it does not know, and what the modem says of an inactive signal.
fn signal_of(technology: &Value) -> Signal {
    Signal::of_modem(number(technology, "rsrp"), number(technology, "rsrq"), number(technology, "snr"))
}
