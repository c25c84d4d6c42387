//! What is known about a cell.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use units::{Span, Time};

/// Samples that are kept.
pub(super) const MOST_SAMPLES: usize = 200_000;
/// Interval between looks at the flag that ends the measurement.
pub(super) const TURN: Duration = Duration::from_millis(50);

/// A radio access technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Technology {
    /// LTE, with LTE-M and NB-IoT.
    Lte,
    /// 5G NR.
    Nr,
    /// UMTS, with HSPA.
    Umts,
    /// GSM, with GPRS and EDGE.
    Gsm,
}

impl Technology {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Technology::Lte => "lte",
            Technology::Nr => "nr",
            Technology::Umts => "umts",
            Technology::Gsm => "gsm",
        }
    }
}

/// A serving cell of a modem at a moment. What is unknown is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSample {
    /// When it was read.
    pub at: Time,
    /// `modemmanager` or `monroe`.
    pub source: &'static str,
    /// For how long before that the values may have been true, if there is a bound.
    pub lag: Option<Span>,
    /// The modem's network interface, or what else names it.
    pub modem: String,
    /// The radio access technology; missing without service.
    pub technology: Option<Technology>,
    /// Whether another cell serves the modem first: the NR cell beside LTE (EN-DC).
    pub secondary: bool,
    /// The identity of the cell within its operator's network: 28 bits in LTE and UMTS, 36 in NR, 16 in GSM.
    pub cell: Option<u64>,
    /// The physical cell identity.
    pub pci: Option<u32>,
    /// The band, as a number of its technology.
    pub band: Option<u32>,
    /// The downlink's frequency in MHz: the carrier's from ModemManager, the band's nominal one from MONROE.
    pub frequency_mhz: Option<f64>,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f64>,
    /// RSRQ in dB.
    pub rsrq_db: Option<f64>,
    /// RSSI in dBm.
    pub rssi_dbm: Option<f64>,
    /// SINR in dB.
    pub sinr_db: Option<f64>,
}

impl CellSample {
    /// Whether another cell than in `self` serves in `later`; not if that is unknown.
    pub(super) fn is_left_for(&self, later: &CellSample) -> bool {
        if let (Some(one), Some(other)) = (self.technology, later.technology)
            && one != other
        {
            return true;
        }
        match (self.cell, later.cell, self.pci, later.pci) {
            (Some(one), Some(other), ..) => one != other,
            (.., Some(one), Some(other)) => one != other,
            _ => false,
        }
    }

    /// Whether it tells which cell it is about.
    pub(super) fn is_identified(&self) -> bool {
        self.cell.is_some() || self.pci.is_some()
    }

    /// The cell's name in tables: its identity, or else its physical one.
    pub fn cell_name(&self) -> String {
        match (self.cell, self.pci) {
            (Some(cell), _) => cell.to_string(),
            (None, Some(pci)) => format!("PCI {pci}"),
            (None, None) => String::new(),
        }
    }
}

/// Waits until the end.
pub(super) async fn ended(end: &AtomicBool) {
    while !end.load(Relaxed) {
        tokio::time::sleep(TURN).await;
    }
}

/// An RSSI in dBm that a modem can have measured. RSRP, RSRQ and SINR are judged by [`rnis::event::Signal::of_modem`].
pub(super) fn rssi(value: f64) -> Option<f64> {
    (-126.0..0.0).contains(&value).then_some(value)
}
