//! What a modem tells about its cell, on the time axis of the measurement.
//!
//! | module | contents |
//! | --- | --- |
//! | `cell` | what is known about a cell |
//! | `manager` | ModemManager, over D-Bus |
//! | `monroe` | the metadata broker of a MONROE node, over `ZeroMQ` |
//! | `carrier` | bands and frequencies from channel numbers |
//!
//! Both sources also know who the subscriber is. Of that nothing is asked for and nothing is kept: no IMSI, IMEI, ICCID or number,
//! and no operator, which a cell's identity is told without.

mod carrier;
mod cell;
mod manager;
mod monroe;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use crate::line::Clock;
use manager::Wanted;

pub use cell::{CellSample, Technology};
pub use monroe::{BROKER, Modems};

/// Where metadata about the radio comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modem {
    /// From nowhere.
    None,
    /// From ModemManager.
    Manager {
        /// The address of its bus; the system bus if there is none.
        bus: Option<String>,
        /// A network interface, a port or the number of a modem; all modems if there is none.
        name: Option<String>,
    },
    /// From the metadata broker of a MONROE node.
    Monroe {
        /// Its address.
        broker: SocketAddr,
    },
}

/// Returns the samples that are the first of another cell than the one before, of each modem's first and second cell.
pub fn cell_changes(samples: &[CellSample]) -> impl Iterator<Item = &CellSample> {
    let mut latest: BTreeMap<(&str, bool), &CellSample> = BTreeMap::new();
    samples.iter().filter(|sample| sample.is_identified()).filter(move |sample| {
        let before = latest.insert((&sample.modem, sample.secondary), sample);
        before.is_some_and(|before| before.is_left_for(sample))
    })
}

/// Follows the modems until `end`. Returns what they told, in the order of time, and what is missing and why: `through` is the interface
/// that the measured packets pass, if it is known.
pub(crate) fn follow(
    modem: &Modem,
    through: Option<&str>,
    clock: Clock,
    end: &AtomicBool,
) -> (Vec<CellSample>, Vec<String>) {
    let mut samples = Vec::new();
    let missing = match modem {
        Modem::None => Vec::new(),
        Modem::Manager { bus, name } => {
            let wanted = Wanted { name: name.as_deref(), through };
            manager::follow(bus.as_deref(), wanted, clock, end, &mut samples)
        }
        Modem::Monroe { broker } => monroe::follow(*broker, clock, end, &mut samples),
    };
    (samples, missing.into_iter().map(|why| format!("radio: {why}")).collect())
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
