//! An NR cell: capacity, latency from idle slot by slot, HARQ, TDD, and the books under load.

use crate::support::{World, ms, ue, us};
use aqm::DropReason;
use channel::tables::nr::{McsTable, Numerology};
use channel::{Carrier, Direction, Site};
use ran::rlc::{AmSn, Mode, NrAm, NrUm};
use ran::{CellConfig, Config, Duplex, Event, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests};
use units::{Span, Time};

/// RAPID's carrier: 132 resource blocks of 120 kHz at 28 GHz.
const FR2: (u16, Numerology) = (132, Numerology::Khz120);
/// 100 MHz at 3.5 GHz.
const FR1: (u16, Numerology) = (273, Numerology::Khz30);

fn am() -> Mode {
    Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() })
}

fn um() -> Mode {
    Mode::NrUm(NrUm::default())
}

fn mac(nr: Nr) -> MacConfig {
    let slot = Rat::Nr(nr).slot();
    MacConfig {
        rat: Rat::Nr(nr),
        decoding: Span::from_micros(100),
        link: LinkAdaptation { period: Span::from_millis(5), delay: Span::from_millis(2), ..LinkAdaptation::default() },
        requests: Requests { sr_period: (5_000_000 / slot.as_nanos()) as u16, ..Requests::default() },
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

/// The slot that has just ended when the last block of a packet of `len` bytes has been decoded. The packet is sent at the
/// beginning of slot `arrives` of a period.
fn delivered(config: &Config, direction: Direction, arrives: u64, len: u32) -> u64 {
    let slot = config.cells[0].mac.rat.slot();
    let mut world = World::new(config);
    let start = Time::ZERO + slot * (800 + arrives);
    world.run(start);
    world.send(direction, 0, len);
    world.run(start + Span::from_millis(100));
    assert_eq!((world.arrivals.len(), world.drops.len()), (1, 0));
    let ended = world.arrivals[0].at.as_nanos() - config.cells[0].mac.decoding.as_nanos();
    assert!(ended.is_multiple_of(slot.as_nanos()), "decoded between slots");
    ended / slot.as_nanos() - 800 - 1
}

#[test]
fn a_downlink_packet_is_sent_in_the_next_slot_with_downlink() {
    assert_eq!(delivered(&network(FR2, Duplex::Fdd), Direction::Downlink, 0, 1000), 0);
    // DDDSU: slot 3 is special and has downlink symbols; what arrives in slot 4 waits for slot 5.
    let dddsu = network(FR1, Duplex::Tdd(Pattern::DDDSU));
    let slots: Vec<u64> = (0..6).map(|slot| delivered(&dddsu, Direction::Downlink, slot, 1000)).collect();
    assert_eq!(slots, [0, 1, 2, 3, 5, 5]);
    // DDDDDDDSUU: slots 8 and 9 have no downlink.
    let long = network(FR1, Duplex::Tdd(Pattern::DDDDDDDSUU));
    let slots: Vec<u64> = (6..11).map(|slot| delivered(&long, Direction::Downlink, slot, 1000)).collect();
    assert_eq!(slots, [6, 7, 10, 10, 10]);
}

#[test]
fn an_uplink_packet_from_idle_takes_a_request_and_a_grant() {
    // The rest of a longer packet: the report of slot 5 arrives in slot 7, is answered there, and the rest is sent in slot
    // 10. Shorter ones are in the table of `nr_latency.rs`.
    let fdd = network(FR2, Duplex::Fdd);
    assert_eq!([100, 1500].map(|len| delivered(&fdd, Direction::Uplink, 0, len)), [5, 10]);
}

#[test]
fn a_block_that_fails_is_sent_again_after_its_acknowledgement() {
    for (duplex, known) in [
        // K1 = 2, one slot for its reception, one for decoding.
        (Duplex::Fdd, [4; 5]),
        // Acknowledged in slots 3, 3, 4, 8, 8 of the pattern (see `Nr`), known two slots later.
        (Duplex::Tdd(Pattern::DDDSU), [5, 4, 4, 7, 0]),
    ] {
        let mut config = network(FR2, duplex);
        // The scheme is of the channel's mean, so that about a tenth fails.
        config.ues[0] = ue(am(), 96.0);
        let mut world = World::new(&config);
        world.saturate(Direction::Downlink, &[0], 400, ms(200));
        let mut last = std::collections::BTreeMap::new();
        let (mut seen, mut at_once) = (0, 0);
        for (at, event) in &world.events {
            let Event::Transmission(t) = event else { continue };
            if t.direction != Direction::Downlink {
                continue;
            }
            let slot = at.as_nanos() / 125_000;
            if let Some((before, attempt, prbs)) = last.insert(t.process, (slot, t.attempt, t.prbs))
                && t.attempt > 1
            {
                seen += 1;
                // Where a slot has more symbols, fewer blocks hold as much.
                assert!(t.attempt == attempt + 1 && (t.prbs == prbs || duplex != Duplex::Fdd));
                let soonest = before + known[(before % 5) as usize];
                let next = (soonest..).find(|slot| duplex == Duplex::Fdd || slot % 5 < 4).unwrap();
                assert!(slot >= next, "sent in {before}, again in {slot}");
                at_once += i32::from(slot == next);
            }
        }
        // Unless another one takes the carrier, as when several slots are acknowledged in one.
        let least = if duplex == Duplex::Fdd { 0.8 } else { 0.4 };
        assert!(seen > 20 && f64::from(at_once) > f64::from(seen) * least, "{at_once} of {seen} retransmissions");
        assert_eq!(world.ids(Direction::Downlink, 0), (0..world.arrivals.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn the_directions_divide_a_tdd_carrier_by_its_pattern() {
    for (carrier, duplex, downlink, uplink) in [
        (FR1, Duplex::Fdd, 13.0, 13.0),
        // 3 x 13 and 9 of 5 x 14 symbols; 13 of 70.
        (FR1, Duplex::Tdd(Pattern::DDDSU), (3.0 * 13.0 + 9.0) / 5.0, 13.0 / 5.0),
        // 7 x 13 and 5; 3 and 2 x 13.
        (FR1, Duplex::Tdd(Pattern::DDDDDDDSUU), (7.0 * 13.0 + 5.0) / 10.0, 29.0 / 10.0),
        (FR2, Duplex::Tdd(Pattern::DDDSU), (3.0 * 13.0 + 9.0) / 5.0, 13.0 / 5.0),
    ] {
        let mut config = network(carrier, duplex);
        config.ues[0].host.room.bytes = Some(4_000_000);
        let mut world = World::new(&config);
        world.saturate(Direction::Downlink, &[0], 2000, ms(200));
        let measured = |world: &World, direction, from| world.bytes(direction, 0, ms(from)) as f64 * 8.0 / 0.1 / 1e6;
        let down = measured(&world, Direction::Downlink, 100);
        world.saturate(Direction::Uplink, &[0], 2000, ms(400));
        let up = measured(&world, Direction::Uplink, 300);
        // One of a block's symbols is for reference signals: over a period, its data is that of the others.
        let slots_per_second = 1e9 / config.cells[0].mac.rat.slot().as_nanos() as f64;
        let parts = |symbols: f64| if duplex == Duplex::Fdd { symbols - 1.0 } else { symbols };
        let rate = |symbols: f64| parts(symbols) * 12.0 * f64::from(carrier.0) * 5.55 * slots_per_second / 1e6;
        assert!(down < rate(downlink) && down > 0.78 * rate(downlink), "{duplex:?}: {down} of {}", rate(downlink));
        assert!(up < rate(uplink) && up > 0.7 * rate(uplink), "{duplex:?}: {up} of {}", rate(uplink));
    }
}

#[test]
fn flexible_slots_go_to_whom_they_are_needed_by() {
    let mut config = network(FR2, Duplex::Flexible);
    config.ues[0].host.room.bytes = Some(4_000_000);
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 2000, ms(200));
    let alone = world.bytes(Direction::Downlink, 0, ms(100)) as f64 * 8.0 / 0.1 / 1e6;
    // Twelve symbols, one of them for reference signals.
    assert!((700.0..782.0).contains(&alone), "{alone}");
    world.saturate(Direction::Uplink, &[0], 2000, ms(400));
    let up = world.bytes(Direction::Uplink, 0, ms(300)) as f64 * 8.0 / 0.1 / 1e6;
    assert!((650.0..782.0).contains(&up), "{up}");
}

#[test]
fn more_layers_and_higher_modulations_carry_more() {
    let rate = |table: McsTable, layers: u8, from: u64| {
        let mut config = network(FR1, Duplex::Fdd);
        let mut nr = Nr::new(FR1.1, Duplex::Fdd);
        nr.tables[0] = table;
        config.cells[0].mac.rat = Rat::Nr(nr);
        config.ues[0].layers = layers;
        let mut world = World::new(&config);
        world.saturate(Direction::Downlink, &[0], 3000, ms(from + 40));
        world.bytes(Direction::Downlink, 0, ms(from)) as f64 * 8.0 / 0.04 / 1e6
    };
    // No CQI stands for 1024QAM: the outer loop needs six times its step and a ninth of it for each decibel.
    let rates =
        [(McsTable::Qam64, 1, 20), (McsTable::Qam256, 1, 20), (McsTable::Qam1024, 1, 400), (McsTable::Qam256, 4, 20)];
    let rates = rates.map(|(table, layers, from)| rate(table, layers, from));
    // 273 blocks x 144 elements x 5.55, 7.41 and 9.26 bits x 2000 slots a second; sizes are rounded, up or down.
    for (rate, most) in rates.iter().zip([436.6, 582.2, 728.0, 2329.0]) {
        assert!(*rate < 1.03 * most && *rate > 0.95 * most, "{rates:?}");
    }
}

#[test]
fn the_books_balance_in_every_state() {
    for duplex in [Duplex::Fdd, Duplex::Tdd(Pattern::DDDSU), Duplex::Tdd(Pattern::DDDDDDDSUU), Duplex::Flexible] {
        for loss_db in [60.0, 96.0, 104.0, 112.0, 125.0] {
            for mode in [am(), um()] {
                let mut config = network(FR1, duplex);
                config.ues = (0..3).map(|n| ue(mode, loss_db + f64::from(n))).collect();
                let mut world = World::new(&config);
                for round in 0..6 {
                    world.saturate(Direction::Downlink, &[0, 1], 20, ms(20 + round * 40));
                    world.saturate(Direction::Uplink, &[1, 2], 20, ms(30 + round * 40));
                    world.run(ms(40 + round * 40));
                }
                world.run(ms(3000));
                assert!(world.drops.iter().all(|(_, reason)| *reason == DropReason::Loss), "{:?}", world.drops.first());
                if loss_db < 100.0 {
                    assert_eq!(world.ran.held(), 0, "{duplex:?} {loss_db} {mode:?}");
                    assert_eq!(world.sent as usize, world.arrivals.len() + world.drops.len());
                }
            }
        }
    }
}

#[test]
fn an_idle_cell_costs_nothing() {
    let mut world = World::new(&network(FR2, Duplex::Tdd(Pattern::DDDSU)));
    world.run(us(100));
    world.send(Direction::Downlink, 0, 1000);
    world.run(ms(200));
    let work = world.ran.work();
    world.run(ms(10_000));
    assert_eq!(world.ran.work(), work);
}

#[test]
fn both_directions_share_flexible_slots() {
    let config = network(FR2, Duplex::Flexible);
    let rates = |ways: &[Direction]| {
        let mut world = World::new(&config);
        while world.now < ms(300) {
            for way in ways {
                let waiting = world.ran.rlc_backlog(0, *way).packets + world.ran.above_backlog(0, *way).packets;
                (waiting..2000).for_each(|_| world.send(*way, 0, 1500));
            }
            let next = world.now + Span::from_millis(1);
            world.run(next);
        }
        [Direction::Downlink, Direction::Uplink].map(|way| world.bytes(way, 0, ms(100)) as f64 * 8.0 / 0.2 / 1e6)
    };
    let [down, _] = rates(&[Direction::Downlink]);
    let [_, up] = rates(&[Direction::Uplink]);
    let [beside_up, beside_down] = rates(&[Direction::Downlink, Direction::Uplink]);
    assert!(down > 700.0 && up > 500.0, "{down} and {up} Mbit/s alone");
    // The uplink leaves what it has not reported yet.
    assert!((0.4..0.75).contains(&(beside_up / down)), "{beside_up} of {down} Mbit/s");
    assert!((0.4..0.75).contains(&(beside_down / up)), "{beside_down} of {up} Mbit/s");
}
