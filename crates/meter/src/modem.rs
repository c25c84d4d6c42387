//! What a modem tells about its cell, on the time axis of the measurement.
//!
//! | module | contents |
//! | --- | --- |
//! | `manager` | ModemManager, over D-Bus |
//! | `carrier` | bands and frequencies from channel numbers |
//!
//! ModemManager also knows who the subscriber is. Of that nothing is asked for and nothing is kept: no IMSI, IMEI, ICCID or number,
//! and no operator, which a cell's identity is told without.

mod carrier;
mod manager;

use std::sync::atomic::AtomicBool;

use observe::modem::CellSample;

use crate::line::Clock;
use manager::Wanted;

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
    };
    (samples, missing.into_iter().map(|why| format!("radio: {why}")).collect())
}
