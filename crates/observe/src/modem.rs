//! What a modem tells of the cells that serve it.

use std::collections::BTreeMap;

use units::{Span, Time};

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
    pub(crate) fn is_left_for(&self, later: &CellSample) -> bool {
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
    pub(crate) fn is_identified(&self) -> bool {
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

/// An RSSI in dBm that a modem can have measured.
pub fn rssi_dbm(value: f64) -> Option<f64> {
    (-126.0..0.0).contains(&value).then_some(value)
}

/// Returns the samples that are the first of another cell than the one before, of each modem's first and second cell.
pub fn cell_changes(samples: &[CellSample]) -> impl Iterator<Item = &CellSample> {
    let mut latest: BTreeMap<(&str, bool), &CellSample> = BTreeMap::new();
    samples.iter().filter(|sample| sample.is_identified()).filter(move |sample| {
        let before = latest.insert((&sample.modem, sample.secondary), sample);
        before.is_some_and(|before| before.is_left_for(sample))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    #[test]
    fn a_cell_change_is_the_first_sample_of_another_cell() {
        let lte = |ms: u64, cell, pci| CellSample {
            at: Time::from_nanos(ms * 1_000_000),
            modem: "wwan0".into(),
            technology: Some(Technology::Lte),
            cell,
            pci,
            ..CellSample::default()
        };
        let nr = |ms, pci| CellSample { technology: Some(Technology::Nr), secondary: true, ..lte(ms, None, Some(pci)) };
        let samples = [
            lte(0, None, None),
            lte(1, Some(10), Some(1)),
            nr(1, 7),
            lte(2, Some(10), Some(1)),
            // Unknown is no change, and neither is what was known before.
            lte(3, None, None),
            CellSample { modem: "wwan1".into(), ..lte(3, Some(99), None) },
            lte(4, Some(10), None),
            lte(5, Some(11), None),
            nr(5, 7),
            lte(6, None, Some(1)),
            lte(7, None, Some(2)),
            nr(7, 8),
            CellSample { technology: Some(Technology::Umts), ..lte(8, Some(500), None) },
        ];
        let found: Vec<_> =
            cell_changes(&samples).map(|one| (one.at.as_nanos() / 1_000_000, one.cell_name())).collect();
        let expected = [(5, "11"), (7, "PCI 2"), (7, "PCI 8"), (8, "500")].map(|(at, name)| (at, name.to_owned()));
        assert_eq!(found, expected);
    }
}
