//! Checks of the table `[nr]`: carriers that 38.104 has, patterns of 38.331, and the values of timers.

use super::radio::{MAX_TIMER, MILLISECOND, check_rectangle, check_reports, check_shared};
use super::*;
use crate::nr::{Duplex, McsTable, NrMac};
use channel::tables::nr::{SYMBOLS, fewest_symbols};

/// Frequency ranges in MHz (38.104 table 5.1-1), and their names.
const RANGES: [(&str, RangeInclusive<f64>); 2] = [("FR1", 410.0..=7125.0), ("FR2", 24_250.0..=52_600.0)];

/// Lengths of TDD patterns in microseconds (`dl-UL-TransmissionPeriodicity`, 38.331).
const PERIODS_US: [u64; 10] = [500, 625, 1000, 1250, 2000, 2500, 3000, 4000, 5000, 10_000];

/// Maximum number of buildings.
const MAX_BUILDINGS: usize = 10_000;

pub(super) fn check(nr: &Nr, c: &mut Check) {
    c.span("n3_delay", nr.n3_delay);
    if let Some(rate) = &nr.n3_rate {
        check_capacity("n3_rate", rate, c);
    }
    check_pep(nr.pep, nr.pep_report_loss, c);
    proxy::check(nr.proxy.as_ref(), nr.pep, c);
    c.range("numerology", nr.numerology, 0..=4);
    check_carrier(&nr.carrier(), c);
    if let Some(mhz) = nr.uplink_mhz {
        check_frequency("uplink_mhz", mhz, c);
    }
    if nr.uplink_mhz.is_some() && nr.duplex != Duplex::Fdd {
        c.key("uplink_mhz", |c| {
            c.wrong("only FDD has a carrier for each direction; leave it out or set `duplex = \"fdd\"`");
        });
    }
    // What follows depends on the numerology.
    if nr.numerology <= 4 {
        c.key("duplex", |c| check_duplex(nr, c));
    }
    if nr.buildings.len() > MAX_BUILDINGS {
        c.key("buildings", |c| c.wrong(format!("more than {MAX_BUILDINGS} buildings")));
    }
    for (i, building) in nr.buildings.iter().enumerate().take(MAX_BUILDINGS) {
        c.key("buildings", |c| c.index(i, |c| check_building(building, c)));
    }
    c.range("beam_sweep", nr.beam_sweep, Span::from_millis(5)..=Span::from_millis(160));
    if nr.uplink_mcs_table == McsTable::Qam1024 {
        c.key("uplink_mcs_table", |c| c.wrong("1024QAM is for the downlink only: use `64qam`, `256qam` or `low-rate`"));
    }
    c.key("mac", |c| {
        check_mac(&nr.mac, nr.numerology, c);
        drx::check_nr(nr, c);
        configured::check(nr, c);
    });
    if let Some(lte) = &nr.lte {
        c.key("lte", |c| {
            super::lte::check_carrier(lte.downlink_mhz, lte.uplink_mhz, &lte.mac, c);
            super::lte::check_secondary(lte.secondary.as_ref(), (lte.downlink_mhz, lte.bandwidth), c);
        });
    }
    check_secondary(nr, c);
    check_shared(&RadioNetwork::from(nr), c);
}

/// Checks the frequency and the width of a carrier.
pub(super) fn check_carrier(carrier: &NrCarrier, c: &mut Check) {
    check_frequency("frequency_mhz", carrier.frequency_mhz, c);
    if carrier.numerology <= 4 {
        check_bandwidth(carrier, c);
    }
}

fn check_frequency(key: &str, mhz: f64, c: &mut Check) {
    if !RANGES.iter().any(|(_, range)| range.contains(&mhz)) {
        c.key(key, |c| {
            c.wrong(format!("{} is out of range: must be 410 to 7125 (FR1) or 24250 to 52600 (FR2)", shown(mhz)));
        });
    }
}

fn check_bandwidth(carrier: &NrCarrier, c: &mut Check) {
    if let Some(blocks) = carrier.resource_blocks {
        return c.range("resource_blocks", blocks, 1..=275);
    }
    let Some((name, _)) = RANGES.iter().find(|(_, range)| range.contains(&carrier.frequency_mhz)) else { return };
    if carrier.blocks().is_none() {
        let valid = carrier.bandwidths().iter().map(|(mhz, _)| mhz.to_string()).collect::<Vec<_>>().join(", ");
        let khz = 15 << carrier.numerology;
        let message = if valid.is_empty() {
            format!(
                "{name} has no carriers with subcarriers of {khz} kHz; set `resource_blocks`, or another `numerology`"
            )
        } else {
            format!(
                "{} is not one of {valid} ({name}, {khz} kHz); set `resource_blocks` for others",
                carrier.bandwidth_mhz
            )
        };
        c.key("bandwidth_mhz", |c| c.wrong(message));
    }
}

/// Checks the second carrier of NR cells.
fn check_secondary(nr: &Nr, c: &mut Check) {
    let Some(of) = &nr.secondary else { return };
    let [second, first] = [of.carrier(nr.numerology), nr.carrier()];
    c.key("secondary", |c| {
        check_carrier(&second, c);
        secondary::check_apart(
            "frequency_mhz",
            [second, first].map(|carrier| (carrier.frequency_mhz, carrier.width_mhz())),
            c,
        );
    });
}

fn check_building(building: &Building, c: &mut Check) {
    check_rectangle(&building.x, &building.y, c);
    c.positive("height", building.height, 0.0, 1000.0);
}

fn check_duplex(nr: &Nr, c: &mut Check) {
    let Duplex::Tdd { pattern, downlink_symbols, uplink_symbols } = &nr.duplex else { return };
    if nr.pattern().is_none() {
        let message =
            format!("`{pattern}` is not a pattern: it has `D`s, then at most one `S`, then `U`s, such as `DDDSU`");
        return c.key("pattern", |c| c.wrong(message));
    }
    let slot_ns = 1_000_000u64 >> nr.numerology.min(4);
    let us = pattern.len() as u64 * slot_ns / 1000;
    if !PERIODS_US.contains(&us) {
        let message = format!(
            "{} slots take {} ms with this numerology: must be 0.5, 0.625, 1, 1.25, 2, 2.5, 3, 4, 5 or 10 ms",
            pattern.len(),
            us as f64 / 1000.0
        );
        c.key("pattern", |c| c.wrong(message));
    }
    c.range("downlink_symbols", *downlink_symbols, 0..=SYMBOLS - 1);
    c.range("uplink_symbols", *uplink_symbols, 0..=SYMBOLS - 1);
    let both = u16::from(*downlink_symbols) + u16::from(*uplink_symbols);
    if pattern.contains('S') && both > SYMBOLS.into() {
        c.key("uplink_symbols", |c| c.wrong(format!("a special slot has {SYMBOLS} symbols, not {both}")));
    }
    let NrMac { control_symbols, uplink_control_symbols, dmrs_symbols, overhead, .. } = nr.mac;
    let fewest = fewest_symbols(dmrs_symbols, overhead);
    for (letter, direction, symbols, control) in
        [('D', "down", *downlink_symbols, control_symbols), ('U', "up", *uplink_symbols, uplink_control_symbols)]
    {
        let needed = control + fewest;
        let in_special = if pattern.contains('S') { symbols } else { 0 };
        if !pattern.contains(letter) && in_special < needed {
            c.key("pattern", |c| {
                c.wrong(format!(
                    "`{pattern}` carries no data {direction}: it has no `{letter}`, and an `S` would need \
                     {direction}link_symbols = {needed}, {control} of them for control"
                ));
            });
        }
    }
}

fn check_mac(mac: &NrMac, numerology: u8, c: &mut Check) {
    let slot = Span::from_nanos(1_000_000 >> numerology.min(4));
    c.range("harq_transmissions", mac.harq_transmissions, 1..=8);
    c.range("harq_processes", mac.harq_processes, 1..=16);
    c.range("k1", mac.k1.unwrap_or(1), 1..=15);
    c.range("k2", mac.k2.unwrap_or(1), 1..=16);
    c.range("control_symbols", mac.control_symbols, 1..=3);
    c.range("uplink_control_symbols", mac.uplink_control_symbols, 1..=2);
    c.range("dmrs_symbols", mac.dmrs_symbols, 0..=4);
    if ![0, 6, 12, 18].contains(&mac.overhead) {
        c.key("overhead", |c| c.wrong(format!("{} is not one of 0, 6, 12, 18", mac.overhead)));
    }
    // 38.214 5.3: a block is decoded when it is acknowledged.
    let k1 = u64::from(mac.k1.unwrap_or(if numerology < 2 { 1 } else { 2 })).max(1);
    c.range("decoding", mac.decoding, Span::ZERO..=slot * k1);
    check_reports(mac.cqi_period, mac.cqi_delay, slot, c);
    c.range("outer_loop_db", mac.outer_loop_db, 0.0..=10.0);
    c.range("sr_period", mac.sr_period, slot / 7..=slot * 640);
    c.range("sr_prohibit", mac.sr_prohibit, 0..=7);
    c.range("sr_maximum", mac.sr_maximum, 4..=64);
    c.range("first_grant", mac.first_grant, Bytes::new(1)..=Bytes::new(100_000));
    c.range("bsr_period", mac.bsr_period, slot..=MAX_TIMER);
    c.range("bsr_retx", mac.bsr_retx, MILLISECOND..=MAX_TIMER);
}
