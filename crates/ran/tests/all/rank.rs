//! The rank: several layers never carry less than one, and the outer loop keeps its target with any of them.

use crate::support::{World, ms, network, ue, um};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::rlc::{Mode, NrUm};
use ran::{CellConfig, Config, Duplex, Event, MacConfig, Nr, Rat};
use units::{Span, Time};

/// A carrier of 20 MHz.
fn nr() -> Config {
    let rat = Rat::Nr(Nr::new(Numerology::Khz30, Duplex::Fdd));
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.4e9, prbs: 51, subcarrier_hz: 30_000 };
    let mac = MacConfig { rat, decoding: Span::from_micros(100), ..MacConfig::default() };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrUm(NrUm::default()), 60.0)], ..Config::default() }
}

/// Mbit/s, the share of first transmissions that failed, and the mean rank of a UE with up to `layers`.
fn measured(mut config: Config, layers: u8, sinr_db: f64) -> (f64, f64, f64) {
    config.ues[0].layers = layers;
    let mut world = World::new(&config);
    world.ran.set_sinr(0, Some(sinr_db), Time::ZERO);
    world.saturate(Direction::Downlink, &[0], 200, ms(3000));
    let (mut blocks, mut failed, mut ranks) = (0u32, 0u32, 0u32);
    for (at, event) in &world.events {
        if let Event::Transmission(t) = event
            && t.attempt == 1
            && *at > ms(1000)
        {
            blocks += 1;
            failed += u32::from(!t.decoded);
            ranks += u32::from(t.layers);
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(blocks);
    (world.bytes(Direction::Downlink, 0, ms(1000)) as f64 * 8.0 / 2e6, share(failed), share(ranks))
}

#[test]
fn more_layers_never_carry_less_than_one_nor_fail_more_often() {
    for (name, config, most) in [("NR", nr(), 4), ("LTE", network(Bandwidth::Mhz20, vec![ue(um(), 60.0)]), 2)] {
        for sinr_db in -5..=16 {
            let of = |layers| measured(config.clone(), layers, sinr_db.into());
            let one = of(1);
            print!("{name} {sinr_db} dB: {one:.3?}");
            for layers in (2..=most).step_by(2) {
                let several = of(layers);
                print!(", {layers} layers {several:.3?}");
                assert!(several.0 > 0.95 * one.0, "{name} {sinr_db} dB: {several:?}, and with one layer {one:?}");
                assert!(several.1 < 0.15, "{name} {sinr_db} dB, {layers} layers: {several:?}");
            }
            println!();
        }
    }
}
