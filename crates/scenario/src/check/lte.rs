//! Checks of the table `[lte]`, and of the carriers of LTE cells.

use super::radio::check_shared;
use super::*;

/// Carriers below 6 GHz, for which the path loss models are valid.
const CARRIER_MHZ: RangeInclusive<f64> = 400.0..=6000.0;

pub(super) fn check(lte: &Lte, s: &Scenario, c: &mut Check) {
    c.span("s1_delay", lte.s1_delay);
    if let Some(rate) = &lte.s1_rate {
        check_capacity("s1_rate", rate, c);
    }
    check_pep(lte.pep, lte.pep_report_loss, c);
    check_pep_at(lte.pep, lte.pep_at, c);
    proxy::check(lte.proxy.as_ref(), lte.pep, c);
    let radio = RadioNetwork::from(lte);
    if let Some(side) = &radio.lte {
        check_carriers(side, c);
    }
    check_shared(&radio, s, c);
}

/// Checks the carriers of LTE cells, and their MAC layer.
pub(super) fn check_carriers(of: &LteSide<'_>, c: &mut Check) {
    let width = of.bandwidth.mhz();
    let [downlink, uplink] = [of.downlink_mhz, of.uplink_mhz].map(|mhz| (mhz, width));
    c.range("downlink_mhz", of.downlink_mhz, CARRIER_MHZ);
    c.range("uplink_mhz", of.uplink_mhz, CARRIER_MHZ);
    secondary::check_apart("uplink_mhz", uplink, ("downlink carrier", downlink), c);
    c.key("mac", |c| of.mac.check(c));
    let Some(LteSecondary { downlink_mhz, bandwidth }) = of.secondary else { return };
    c.key("secondary", |c| {
        c.range("downlink_mhz", *downlink_mhz, CARRIER_MHZ);
        let second = (*downlink_mhz, bandwidth.mhz());
        secondary::check_apart("downlink_mhz", second, ("first carrier", downlink), c);
        secondary::check_apart("downlink_mhz", second, ("uplink carrier", uplink), c);
    });
}
