//! What a flow's samples tell over time.

use record::tables::SampleRow;
use serde::Deserialize;

/// A quantity of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// The congestion window, kB.
    Cwnd,
    /// The window of the wired domain, kB.
    CwndPep,
    /// The end-to-end window, kB.
    CwndE2e,
    /// Payload, Mbit/s.
    Goodput,
    /// The data packets' one-way delay, ms.
    Delay,
    /// What the sender has in flight, kB.
    InFlight,
}

impl Series {
    /// Returns the label of an axis.
    pub(crate) fn axis(self) -> &'static str {
        match self {
            Series::Goodput => "goodput, Mbit/s",
            Series::Delay => "one-way delay, ms",
            Series::InFlight => "in flight, kB",
            Series::Cwnd | Series::CwndPep | Series::CwndE2e => "window, kB",
        }
    }

    /// Returns the value of a sample, if it has one.
    pub(crate) fn of(self, row: &SampleRow) -> Option<f64> {
        match self {
            Series::Goodput => Some(row.goodput_mbps),
            Series::Delay => row.owd_ms,
            Series::InFlight => row.in_flight_bytes.map(|bytes| bytes as f64 / 1e3),
            Series::Cwnd => row.cwnd_bytes.map(|bytes| bytes as f64 / 1e3),
            Series::CwndPep => row.cwnd_pep_bytes.map(|bytes| bytes as f64 / 1e3),
            Series::CwndE2e => row.cwnd_e2e_bytes.map(|bytes| bytes as f64 / 1e3),
        }
    }
}
