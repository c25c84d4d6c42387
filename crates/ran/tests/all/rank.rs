//! The rank: more layers never carry less than fewer, and the outer loop keeps its target with any of them.

use crate::support::{World, ms, network, ue, um};
use channel::fading::{self, Doppler, Profile};
use channel::tables::nr::{McsTable, Numerology};
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::rlc::{Mode, NrUm};
use ran::{CellConfig, Config, Duplex, Event, MacConfig, Nr, Rat};
use units::{Span, Time};

/// A carrier of 20 MHz.
fn nr(table: McsTable) -> Config {
    let mut nr = Nr::new(Numerology::Khz30, Duplex::Fdd);
    nr.tables = [table; 2];
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.4e9, prbs: 51, subcarrier_hz: 30_000 };
    let mac = MacConfig { rat: Rat::Nr(nr), decoding: Span::from_micros(100), ..MacConfig::default() };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrUm(NrUm::default()), 60.0)], ..Config::default() }
}

/// What the downlink of a UE carried.
#[derive(Clone, Copy, Debug)]
struct Carried {
    mbps: f64,
    /// The share of first transmissions that failed.
    bler: f64,
    /// The share of blocks with one to four layers.
    ranks: [f64; 4],
}

/// A UE with up to `layers` on a channel of `sinr_db`.
fn measured(config: &Config, layers: u8, sinr_db: f64) -> Carried {
    let mut config = config.clone();
    config.ues[0].layers = layers;
    let mut world = World::new(&config);
    world.ran.set_sinr(0, Some(sinr_db), Time::ZERO);
    world.saturate(Direction::Downlink, &[0], 200, ms(3000));
    let (mut blocks, mut failed, mut ranks) = (0u32, 0u32, [0u32; 4]);
    for (at, event) in &world.events {
        if let Event::Transmission(t) = event
            && t.attempt == 1
            && *at > ms(1000)
        {
            blocks += 1;
            failed += u32::from(!t.decoded);
            ranks[usize::from(t.layers) - 1] += 1;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(blocks);
    let mbps = world.bytes(Direction::Downlink, 0, ms(1000)) as f64 * 8.0 / 2e6;
    Carried { mbps, bler: share(failed), ranks: ranks.map(share) }
}

/// Asserts that more layers carry no less than fewer and do not fail more often, and that none are used in vain, in a cell
/// whose lowest scheme needs `least_db`.
fn assert_layers_pay(config: &Config, most: u8, least_db: f64) {
    for (hz, step_db, every) in [(None, 0.1, 1), (None, 0.0, 2), (Some(5.0), 0.1, 3), (Some(5.0), 0.0, 3)] {
        let mut config = config.clone();
        config.cells[0].mac.link.step_db = step_db;
        let fading = |hz| fading::Config { profile: Profile::Eva, doppler: Doppler::Hz(hz) };
        config.ues[0].air.fading = hz.map(fading);
        for sinr_db in (-6..=25).step_by(every) {
            let name = format!("{sinr_db} dB, fading {hz:?} Hz, steps of {step_db} dB");
            let one = measured(&config, 1, sinr_db.into());
            print!("{name}: {one:.3?}");
            let mut best = one.mbps;
            for layers in (2..=most).step_by(2) {
                let several = measured(&config, layers, sinr_db.into());
                print!(", {layers} layers {several:.3?}");
                // Two packets more or less are chance.
                assert!(
                    several.mbps > 0.97 * best - 0.012,
                    "{name}, {layers} layers: {several:?}, and {best} with fewer"
                );
                // Only the outer loop learns that large blocks fail more often than the reports' reference.
                assert!(
                    step_db == 0.0 || several.bler < one.bler.max(0.1) + 0.05,
                    "{name}, {layers} layers: {several:?}, and with one {one:?}"
                );
                for (share, rank) in several.ranks.iter().zip(1..).skip(1) {
                    let misses = f64::from(sinr_db) - 10.0 * f64::from(rank).log10() < least_db - 0.5;
                    // Trials by the outer loop.
                    let seldom = if step_db > 0.0 { 0.03 } else { 0.0 };
                    assert!(hz.is_some() || !misses || *share <= seldom, "{name}, rank {rank}: {several:?}");
                }
                best = best.max(several.mbps);
            }
            println!();
        }
    }
}

#[test]
fn more_layers_never_carry_less_in_lte() {
    assert_layers_pay(&network(Bandwidth::Mhz20, vec![ue(um(), 60.0)]), 2, -5.912);
}

#[test]
fn more_layers_never_carry_less_with_64qam() {
    assert_layers_pay(&nr(McsTable::Qam64), 4, -5.781);
}

#[test]
fn more_layers_never_carry_less_with_256qam() {
    assert_layers_pay(&nr(McsTable::Qam256), 4, -5.781);
}

#[test]
fn more_layers_never_carry_less_with_1024qam() {
    assert_layers_pay(&nr(McsTable::Qam1024), 4, -5.781);
}

#[test]
fn more_layers_never_carry_less_with_low_spectral_efficiency() {
    assert_layers_pay(&nr(McsTable::LowSpectralEfficiency), 4, -11.453);
}
