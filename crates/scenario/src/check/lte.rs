//! Checks of the table `[lte]`, and of the carriers of LTE cells.

use super::radio::{ASSIGNMENTS, MAX_AVERAGE, MAX_TIMER, MILLISECOND, check_reports, check_shared};
use super::*;

/// Carriers below 6 GHz, for which the path loss models are valid.
const CARRIER_MHZ: RangeInclusive<f64> = 400.0..=6000.0;
/// Intervals between scheduling request opportunities in milliseconds (36.213 table 10.1.5-1).
const SR_PERIODS: [u8; 7] = [1, 2, 5, 10, 20, 40, 80];

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
    c.key("mac", |c| check_mac(of.mac, c));
    let Some(LteSecondary { downlink_mhz, bandwidth }) = of.secondary else { return };
    c.key("secondary", |c| {
        c.range("downlink_mhz", *downlink_mhz, CARRIER_MHZ);
        let second = (*downlink_mhz, bandwidth.mhz());
        secondary::check_apart("downlink_mhz", second, ("first carrier", downlink), c);
        secondary::check_apart("downlink_mhz", second, ("uplink carrier", uplink), c);
    });
}

fn check_mac(mac: &Mac, c: &mut Check) {
    c.range("harq_transmissions", mac.harq_transmissions, 1..=8);
    // 36.213 7.3: the acknowledgement is sent in the fourth subframe after the block.
    c.range("decoding", mac.decoding, Span::ZERO..=MILLISECOND * 3);
    check_reports(mac.cqi_period, mac.cqi_delay, MILLISECOND, c);
    c.range("outer_loop_db", mac.outer_loop_db, 0.0..=10.0);
    c.range("fairness", mac.fairness, MILLISECOND * 2..=MAX_AVERAGE);
    if !SR_PERIODS.contains(&mac.sr_period) {
        c.key("sr_period", |c| c.wrong(format!("{} is not one of 1, 2, 5, 10, 20, 40, 80", mac.sr_period)));
    }
    c.range("sr_prohibit", mac.sr_prohibit, 0..=7);
    c.range("sr_maximum", mac.sr_maximum, 4..=64);
    c.range("bsr_period", mac.bsr_period, MILLISECOND..=MAX_TIMER);
    c.range("bsr_retx", mac.bsr_retx, MILLISECOND..=MAX_TIMER);
    c.range("assignments", mac.assignments.unwrap_or(2), ASSIGNMENTS);
    drx::check_lte(mac, c);
}
