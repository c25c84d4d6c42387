//! An NR cell: capacity, latency from idle slot by slot, HARQ, TDD, and the books under load.

mod ran_support;

use aqm::DropReason;
use channel::tables::nr::{McsTable, Numerology};
use channel::{Carrier, Direction, Site};
use ran::{CellConfig, Config, Duplex, Event, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests};
use ran_support::{World, am, ms, ue, um, us};
use units::{Span, Time};

/// RAPID's carrier: 132 resource blocks of 120 kHz at 28 GHz.
const FR2: (u16, Numerology) = (132, Numerology::Khz120);
/// 100 MHz at 3.5 GHz.
const FR1: (u16, Numerology) = (273, Numerology::Khz30);

fn mac(nr: Nr) -> MacConfig {
    MacConfig {
        rat: Rat::Nr(nr),
        decoding: Span::from_micros(100),
        link: LinkAdaptation { period: Span::from_millis(5), delay: Span::from_millis(2), ..LinkAdaptation::default() },
        requests: Requests { sr_period: 8, ..Requests::default() },
        ..MacConfig::default()
    }
}

fn cell(nr: Nr, prbs: u16) -> CellConfig {
    let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs, subcarrier_hz: nr.numerology.subcarrier_hz() };
    CellConfig { site: Site { carrier, ..Site::default() }, mac: mac(nr), ..CellConfig::default() }
}

fn network((prbs, numerology): (u16, Numerology), duplex: Duplex) -> Config {
    Config { cells: vec![cell(Nr::new(numerology, duplex), prbs)], ues: vec![ue(am(), 50.0)], ..Config::default() }
}

#[test]
fn rapids_carrier_fills_852_6_mbit_per_second() {
    let mut world = World::new(&network(FR2, Duplex::Fdd));
    world.saturate(Direction::Downlink, &[0], 2000, ms(300));
    let stats = world.ran.stats(0).downlink;
    let bits = world.bytes(Direction::Downlink, 0, ms(100)) * 8;
    let rate = bits as f64 / 0.2 / 1e6;
    assert!(stats.blocks > 2350, "a block in each of 2400 slots: {}", stats.blocks);
    assert!((800.0..852.608).contains(&rate), "{rate} Mbit/s");
}
