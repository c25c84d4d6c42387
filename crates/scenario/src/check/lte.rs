//! Checks of the carriers of LTE cells.

use super::*;

/// Carriers below 6 GHz, for which the path loss models are valid.
const CARRIER_MHZ: RangeInclusive<f64> = 400.0..=6000.0;

/// Checks the carriers of LTE cells, and their MAC layer.
pub(super) fn check(of: &LteCarriers, c: &mut Check) {
    let width = of.bandwidth.mhz();
    let [downlink, uplink] = [of.downlink_mhz, of.uplink_mhz].map(|mhz| (mhz, width));
    c.range("downlink_mhz", of.downlink_mhz, CARRIER_MHZ);
    c.range("uplink_mhz", of.uplink_mhz, CARRIER_MHZ);
    secondary::check_apart("uplink_mhz", uplink, ("downlink carrier", downlink), c);
    c.key("mac", |c| of.mac.check(c));
    let Some(LteSecondary { downlink_mhz, bandwidth }) = &of.secondary else { return };
    c.key("secondary", |c| {
        c.range("downlink_mhz", *downlink_mhz, CARRIER_MHZ);
        let second = (*downlink_mhz, bandwidth.mhz());
        secondary::check_apart("downlink_mhz", second, ("first carrier", downlink), c);
        secondary::check_apart("downlink_mhz", second, ("uplink carrier", uplink), c);
    });
}
