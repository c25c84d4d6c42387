//! The carriers of NR cells.

use channel::Carrier;
use scenario::NrCarrier;

/// The carrier of NR cells, and the second one.
pub(super) fn carriers(nr: &scenario::NrCarriers) -> (Carrier, Option<Carrier>) {
    let second = nr.secondary.as_ref().map(|second| second.carrier(nr.numerology));
    (carrier(nr.carrier(), nr.uplink_mhz()), second.map(|second| carrier(second, second.frequency_mhz)))
}

fn carrier(of: NrCarrier, uplink_mhz: f64) -> Carrier {
    Carrier {
        downlink_hz: of.frequency_mhz * 1e6,
        uplink_hz: uplink_mhz * 1e6,
        prbs: of.blocks().expect("a checked carrier has resource blocks"),
        subcarrier_hz: of.numerology().subcarrier_hz(),
    }
}
