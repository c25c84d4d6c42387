//! Checks of the carriers of NR cells: carriers that 38.104 has, patterns of 38.331, and the values of timers.

use super::*;
use crate::nr::McsTable;
use channel::tables::nr::{Allocation, LEAST_BITS, SYMBOLS, fewest_symbols, tbs};
use ran::parameters::Tdd;

/// A frequency range.
struct FrequencyRange {
    name: &'static str,
    mhz: RangeInclusive<f64>,
    /// The width of its widest carrier.
    widest_mhz: f64,
}

/// The frequency ranges (38.104 tables 5.1-1, 5.3.5-1 and 5.3.5-2).
const RANGES: [FrequencyRange; 2] = [
    FrequencyRange { name: "FR1", mhz: 410.0..=7125.0, widest_mhz: 100.0 },
    FrequencyRange { name: "FR2", mhz: 24_250.0..=52_600.0, widest_mhz: 400.0 },
];

/// Lengths of TDD patterns in microseconds (`dl-UL-TransmissionPeriodicity`, 38.331).
const PERIODS_US: [u64; 10] = [500, 625, 1000, 1250, 2000, 2500, 3000, 4000, 5000, 10_000];

pub(super) fn check(nr: &NrCarriers, c: &mut Check) {
    c.range("numerology", nr.numerology, 0..=4);
    check_carrier(&nr.carrier(), c);
    if let Some(mhz) = nr.uplink_mhz {
        check_uplink(mhz, nr, c);
    }
    // What follows depends on the numerology, and on symbols of the MAC layer.
    let NrMac { control_symbols, uplink_control_symbols, dmrs_symbols, overhead, .. } = nr.mac;
    let has_symbols = control_symbols <= 3 && uplink_control_symbols <= 2 && dmrs_symbols <= 4 && overhead <= 18;
    if nr.numerology <= 4 && has_symbols {
        c.key("duplex", |c| check_duplex(nr, c));
        check_least_block(nr, c);
    }
    if nr.uplink_mcs_table == McsTable::Qam1024 {
        c.key("uplink_mcs_table", |c| c.wrong("1024QAM is for the downlink only: use `64qam`, `256qam` or `low-rate`"));
    }
    c.key("mac", |c| nr.mac.check(&nr.cell(), c));
    check_secondary(nr, c);
}

/// Checks the uplink's carrier, which is as wide as the downlink's.
fn check_uplink(mhz: f64, nr: &NrCarriers, c: &mut Check) {
    check_frequency("uplink_mhz", mhz, c);
    if nr.duplex != Duplex::Fdd {
        return c.key("uplink_mhz", |c| {
            c.wrong("only FDD has a carrier for each direction; leave it out or set `duplex = \"fdd\"`");
        });
    }
    // As by default: two carriers at one frequency that do not interfere.
    if mhz == nr.frequency_mhz {
        return;
    }
    let width = nr.carrier().width_mhz();
    secondary::check_apart("uplink_mhz", (mhz, width), ("downlink carrier", (nr.frequency_mhz, width)), c);
}

/// Checks the frequency and the width of a carrier.
pub(super) fn check_carrier(carrier: &NrCarrier, c: &mut Check) {
    check_frequency("frequency_mhz", carrier.frequency_mhz, c);
    if carrier.numerology <= 4 {
        check_bandwidth(carrier, c);
    }
}

fn check_frequency(key: &str, mhz: f64, c: &mut Check) {
    if !RANGES.iter().any(|range| range.mhz.contains(&mhz)) {
        c.key(key, |c| {
            c.wrong(format!("{} is out of range: must be 410 to 7125 (FR1) or 24250 to 52600 (FR2)", shown(mhz)));
        });
    }
}

fn check_bandwidth(carrier: &NrCarrier, c: &mut Check) {
    let range = RANGES.iter().find(|range| range.mhz.contains(&carrier.frequency_mhz));
    if let Some(blocks) = carrier.resource_blocks {
        c.range("resource_blocks", blocks, 1..=275);
        if let Some(range) = range.filter(|range| blocks <= 275 && carrier.width_mhz() > range.widest_mhz) {
            let (khz, wide) = (15 << carrier.numerology, shown(carrier.width_mhz()));
            let FrequencyRange { name, widest_mhz, .. } = range;
            let most = (widest_mhz * 1000.0 / f64::from(12 * khz)) as u16;
            c.key("resource_blocks", |c| {
                c.wrong(format!(
                    "{blocks} resource blocks of {khz} kHz are {wide} MHz wide, and carriers of {name} at most \
                     {widest_mhz} MHz: must be from 1 to {most}"
                ));
            });
        }
        return;
    }
    let Some(FrequencyRange { name, .. }) = range else { return };
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
fn check_secondary(nr: &NrCarriers, c: &mut Check) {
    let Some(of) = &nr.secondary else { return };
    let [second, first] = [of.carrier(nr.numerology), nr.carrier()];
    c.key("secondary", |c| {
        check_carrier(&second, c);
        let [second, first] = [second, first].map(|carrier| (carrier.frequency_mhz, carrier.width_mhz()));
        secondary::check_apart("frequency_mhz", second, ("first carrier", first), c);
        if nr.duplex == Duplex::Fdd && nr.uplink_mhz() != nr.frequency_mhz {
            secondary::check_apart("frequency_mhz", second, ("uplink carrier", (nr.uplink_mhz(), first.1)), c);
        }
    });
}

fn check_duplex(nr: &NrCarriers, c: &mut Check) {
    let Duplex::Tdd(tdd) = &nr.duplex else { return };
    let Tdd { pattern, downlink_symbols, uplink_symbols } = tdd;
    if tdd.slots().is_none() {
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
    tdd.check(c);
    let both = u16::from(*downlink_symbols) + u16::from(*uplink_symbols);
    if pattern.contains('S') && both > SYMBOLS.into() {
        c.key("uplink_symbols", |c| c.wrong(format!("a special slot has {SYMBOLS} symbols, not {both}")));
    } else if pattern.contains('S') && both == u16::from(SYMBOLS) {
        let most = SYMBOLS - 1;
        c.key("uplink_symbols", |c| {
            c.wrong(format!(
                "the special slot has no symbol of guard between downlink and uplink: \
                 `downlink_symbols` and `uplink_symbols` must be {most} together at most"
            ));
        });
    }
    let fewest = fewest_symbols(nr.mac.dmrs_symbols, nr.mac.overhead);
    for Way { direction, letter, control, symbols, .. } in ways(nr) {
        let needed = control.saturating_add(fewest);
        if !pattern.contains(letter) && symbols < needed {
            c.key("pattern", |c| {
                c.wrong(format!(
                    "`{pattern}` carries no data {direction}: it has no `{letter}`, and an `S` would need \
                     {direction}link_symbols = {needed}, {control} of them for control"
                ));
            });
        }
    }
}

/// What a direction has.
struct Way {
    /// `down` or `up`, and its letter in patterns.
    direction: &'static str,
    letter: char,
    /// Symbols of a slot for its control channel.
    control: u8,
    /// Its most symbols in a slot, with those of control: none if no slot of the pattern is for it.
    symbols: u8,
    table: McsTable,
}

/// Returns what the downlink and the uplink have.
fn ways(nr: &NrCarriers) -> [Way; 2] {
    let mac = &nr.mac;
    let symbols = |letter, special, opposite| match &nr.duplex {
        Duplex::Fdd => SYMBOLS,
        Duplex::Flexible => SYMBOLS.saturating_sub(opposite),
        Duplex::Tdd(Tdd { pattern, .. }) if pattern.contains(letter) => SYMBOLS,
        Duplex::Tdd(Tdd { pattern, .. }) => special * u8::from(pattern.contains('S')),
    };
    let [down, up] = match nr.duplex {
        Duplex::Tdd(Tdd { downlink_symbols, uplink_symbols, .. }) => [downlink_symbols, uplink_symbols],
        Duplex::Fdd | Duplex::Flexible => [0; 2],
    };
    [
        Way {
            direction: "down",
            letter: 'D',
            control: mac.control_symbols,
            symbols: symbols('D', down, mac.uplink_control_symbols),
            table: nr.mcs_table,
        },
        Way {
            direction: "up",
            letter: 'U',
            control: mac.uplink_control_symbols,
            symbols: symbols('U', up, mac.control_symbols),
            table: nr.uplink_mcs_table,
        },
    ]
}

/// Checks that the largest block of each direction has room for data.
fn check_least_block(nr: &NrCarriers, c: &mut Check) {
    let NrMac { dmrs_symbols, overhead, .. } = nr.mac;
    // The key's own check tells it.
    let Some(prbs) = nr.carrier().blocks().filter(|prbs| (1..=275).contains(prbs)) else { return };
    for Way { direction, control, symbols, table, .. } in ways(nr) {
        // The pattern's own check tells it.
        let Some(symbols) = symbols.checked_sub(control).filter(|at| *at >= fewest_symbols(dmrs_symbols, overhead))
        else {
            continue;
        };
        let bits = |prbs: u16| {
            let allocation = Allocation { prbs, symbols, dmrs: 12 * dmrs_symbols, overhead, layers: 1 };
            table.table().schemes().last().map_or(0, |mcs| tbs(*mcs, &allocation, 0))
        };
        if bits(prbs) < LEAST_BITS {
            let least = (prbs..=275).find(|prbs| bits(*prbs) >= LEAST_BITS).unwrap_or(275);
            let bits = bits(prbs);
            c.key("resource_blocks", |c| {
                c.wrong(format!(
                    "the {direction}link's largest block has {bits} bits, and headers and data need {LEAST_BITS}: \
                     use at least {least} resource blocks, or more {direction}link symbols",
                ));
            });
        }
    }
}
