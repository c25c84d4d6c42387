//! Cells on one carrier interfere by what they transmit: against powers worked out from the events, and constant loads.

use crate::support::{World, am, cell, each_mac, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Channel, Direction, Mobility, PathLoss, Position, Site};
use ran::rlc::{Mode, NrAm};
use ran::{CellConfig, Config, Duplex, Event, Nr, Pattern, Rat, Transmission, UeConfig};
use units::{Span, Time};

const BLOCKS: u16 = 25;

/// Cells at these places on the x axis, 30 m high, with 5 MHz, and a UE near each in free space, at a distance of `aside`.
fn cells(places: &[f64], aside: f64) -> Config {
    let place = |x: &f64| CellConfig {
        site: Site { position: Position::new(*x, 0.0, 30.0), ..cell(channel::Bandwidth::Mhz5).site },
        ..cell(channel::Bandwidth::Mhz5)
    };
    let stands = |(cell, x): (usize, &f64)| {
        let mut ue = UeConfig { cell: Some(cell), ..ue(am(), 0.0) };
        ue.air.channel = Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None };
        ue.air.mobility = Mobility::fixed(Position::new(x + aside, 0.0, 1.5));
        ue
    };
    let mut config = Config {
        cells: places.iter().map(place).collect(),
        ues: places.iter().enumerate().map(stands).collect(),
        ..Config::default()
    };
    config.handover.a3 = None;
    config
}

/// The same with NR of 30 kHz on the same frequencies.
fn nr(mut config: Config, duplex: Duplex) -> Config {
    each_mac(&mut config, |mac| {
        mac.rat = Rat::Nr(Nr::new(Numerology::Khz30, duplex));
        mac.decoding = Span::from_micros(100);
    });
    config.cells.iter_mut().for_each(|cell| cell.site.carrier.subcarrier_hz = 30_000);
    config.ues.iter_mut().for_each(|ue| ue.bearers[0].nr = Some(Mode::NrAm(NrAm::default())));
    config
}

/// Noise in mW of a resource block.
fn noise_mw(config: &Config, figure_db: f64) -> f64 {
    linear(-174.0 + 10.0 * (12.0 * f64::from(config.cells[0].site.carrier.subcarrier_hz)).log10() + figure_db)
}

fn friis_db(config: &Config, cell: usize, ue: usize, hz: f64) -> f64 {
    let (site, at) = (config.cells[cell].site.position, config.ues[ue].air.mobility.position(Time::ZERO));
    20.0 * (4.0 * std::f64::consts::PI * site.distance(at) * hz / 299_792_458.0).log10()
}

fn linear(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

fn sent(world: &World, direction: Direction) -> Vec<(Time, Transmission)> {
    let each = world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) if t.direction == direction => Some((*at, *t)),
        _ => None,
    });
    each.collect()
}

/// Sends packets in irregular bursts to or from each UE for a second.
fn bursts(world: &mut World, direction: Direction, ues: u32, len: u32) {
    for n in 0..1000u64 {
        for ue in 0..ues {
            if n * (7 + u64::from(ue)) % 31 < 9 {
                world.send(direction, ue, len + n as u32 * 37 % len);
            }
        }
        world.run(ms(n + 1));
    }
}

/// Whether a transmission occupies a block.
fn occupies(t: &Transmission, prb: u16) -> bool {
    (t.first_prb..t.first_prb + t.prbs).contains(&prb)
}

#[test]
fn a_downlink_block_meets_what_the_neighbours_send_at_that_moment() {
    let lte = cells(&[0.0, 600.0, 1300.0], 200.0);
    for config in [lte.clone(), nr(lte.clone(), Duplex::Fdd), nr(lte, Duplex::Tdd(Pattern::DDDSU))] {
        check_downlink(&config);
    }
}

fn check_downlink(config: &Config) {
    let mut world = World::new(config);
    bursts(&mut world, Direction::Downlink, 3, 900);
    let sent = sent(&world, Direction::Downlink);
    let power = |cell: usize, ue: usize| linear(30.0 - friis_db(config, cell, ue, 2.12e9)) / f64::from(BLOCKS);
    let mut kinds = [0; 3];
    for (at, t) in &sent {
        let (cell, ue) = (t.cell as usize, t.ue as usize);
        let blocks: Vec<f64> = (t.first_prb..t.first_prb + t.prbs)
            .map(|prb| {
                let others = sent.iter().filter(|(when, o)| when == at && o.cell != t.cell && occupies(o, prb));
                let interference: f64 = others.map(|(_, o)| power(o.cell as usize, ue)).sum();
                power(cell, ue) / (noise_mw(config, 9.0) + interference)
            })
            .collect();
        let expected = 10.0 * (blocks.iter().sum::<f64>() / f64::from(t.prbs)).log10();
        let found = f64::from(t.sinr_cdb) / 100.0;
        assert!((found - expected).abs() < 0.03, "{at}: {t:?}, not {expected}");
        let is_even = blocks.iter().all(|sinr| *sinr == blocks[0]);
        kinds[if !is_even { 2 } else { usize::from(expected < 20.0) }] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 50), "alone, among others, and in part: {kinds:?}");
}

#[test]
fn an_uplink_block_meets_what_the_ues_of_neighbours_send_at_that_moment() {
    let lte = cells(&[0.0, 600.0, 1300.0], 200.0);
    check_uplink(&lte);
    check_uplink(&nr(lte, Duplex::Flexible));
}

fn check_uplink(config: &Config) {
    let mut world = World::new(config);
    bursts(&mut world, Direction::Uplink, 3, 900);
    let sent = sent(&world, Direction::Uplink);
    // -80 dBm of each block of 15 kHz arrive at the UE's own cell if the uplink is like the downlink.
    let widths = f64::from(config.cells[0].site.carrier.subcarrier_hz) / 15e3;
    let arrives = |cell: usize, t: &Transmission| {
        let (own, ue) = (t.cell as usize, t.ue as usize);
        let target = -80.0 + 10.0 * widths.log10() + friis_db(config, own, ue, 2.12e9);
        let most = 23.0 - 10.0 * f64::from(t.prbs).log10();
        linear(target.min(most) - friis_db(config, cell, ue, 1.93e9))
    };
    let mut met = 0;
    for (at, t) in &sent {
        let interference = |prb: u16| -> f64 {
            let others = sent.iter().filter(|(when, o)| when == at && o.cell != t.cell && occupies(o, prb));
            others.map(|(_, o)| arrives(t.cell as usize, o)).sum()
        };
        let blocks = t.first_prb..t.first_prb + t.prbs;
        let signal = arrives(t.cell as usize, t);
        let each = blocks.clone().map(|prb| signal / (noise_mw(config, 5.0) + interference(prb)));
        let expected = 10.0 * (each.sum::<f64>() / f64::from(t.prbs)).log10();
        let found = f64::from(t.sinr_cdb) / 100.0;
        assert!((found - expected).abs() < 0.03, "{at}: {t:?}, not {expected}");
        met += usize::from(blocks.clone().any(|prb| interference(prb) > 0.0));
    }
    assert!(met > 50 && sent.len() > met + 50, "{met} of {}", sent.len());
}

/// Megabits per second to UE 0 from `from` until `end`.
fn rate(world: &World, from: u64, end: u64) -> f64 {
    let these = |a: &&crate::support::Arrival| a.ue == 0 && a.at >= ms(from) && a.at < ms(end);
    let bytes: u64 = world.arrivals.iter().filter(these).map(|a| u64::from(a.packet.len)).sum();
    bytes as f64 * 8e-3 / (end - from) as f64
}

#[test]
fn a_busy_neighbour_costs_what_its_load_would() {
    let mut config = cells(&[0.0, 600.0], 200.0);
    let mut busy = World::new(&config);
    busy.saturate(Direction::Downlink, &[0, 1], 60, ms(2000));
    config.cells[1].load = 1.0;
    let mut loaded = World::new(&config);
    loaded.saturate(Direction::Downlink, &[0], 60, ms(2000));
    config.cells[1].load = 0.0;
    let mut alone = World::new(&config);
    alone.saturate(Direction::Downlink, &[0], 60, ms(2000));
    let [busy, loaded, alone] = [&busy, &loaded, &alone].map(|world| rate(world, 500, 2000));
    assert!((busy / loaded - 1.0).abs() < 0.02, "{busy} and {loaded} Mbit/s");
    assert!(busy < 0.6 * alone, "{busy} and {alone} Mbit/s");
    // Another carrier is out of reach.
    config.cells[1].site.carrier = Carrier { downlink_hz: 1.8e9, uplink_hz: 1.7e9, ..config.cells[1].site.carrier };
    let mut apart = World::new(&config);
    apart.saturate(Direction::Downlink, &[0, 1], 60, ms(2000));
    assert_eq!(rate(&apart, 500, 2000), alone);
}

#[test]
fn reports_follow_the_neighbours_and_the_network_comes_to_rest() {
    let config = cells(&[0.0, 600.0], 200.0);
    let mut world = World::new(&config);
    let (before, quiet) = (world.ran.hears(0, world.now), world.ran.poll_timeout());
    world.saturate(Direction::Downlink, &[1], 60, ms(200));
    let during = world.ran.hears(0, world.now);
    // Signal and interference of 200 m and 400 m.
    let expected = friis_db(&config, 1, 0, 2.12e9) - friis_db(&config, 0, 0, 2.12e9);
    assert!((during.sinr_db.unwrap() - expected).abs() < 0.1, "{during:?}, not {expected}");
    assert!(before.sinr_db.unwrap() > expected + 20.0 && during.cqi < before.cqi, "{before:?} {during:?}");
    world.run(ms(1000));
    let after = world.ran.hears(0, ms(1000));
    assert_eq!((after.sinr_db, after.cqi, world.ran.poll_timeout()), (before.sinr_db, before.cqi, quiet));
}

#[test]
fn the_rsrq_of_a_cell_without_neighbours_tells_its_own_load() {
    let config = cells(&[0.0], 200.0);
    let mut world = World::new(&config);
    // 36.214 5.1.3: a twelfth of what is received, of which noise is little. With reference signals only, a sixth is sent.
    let [idle, busy] = [1.0 / 6.0, 1.0].map(|sent: f64| -10.0 * (12.0 * sent).log10());
    let rsrq_db = |world: &mut World| world.ran.hears(0, world.now).rsrq_db;
    assert!((rsrq_db(&mut world) - idle).abs() < 0.05);
    world.saturate(Direction::Downlink, &[0], 60, ms(200));
    assert!((rsrq_db(&mut world) - busy).abs() < 0.05, "{} dB", rsrq_db(&mut world));
    world.run(ms(1000));
    assert!((rsrq_db(&mut world) - idle).abs() < 0.05, "{} dB", rsrq_db(&mut world));
    assert_eq!(world.ran.poll_timeout(), None, "the network comes to rest");
    // A UE that moves measures by itself.
    let mut config = config;
    config.ues[0].air.mobility = Mobility::line(Position::new(200.0, 0.0, 1.5), [1.0, 0.0, 0.0]);
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 60, ms(400));
    let measured = world.events.iter().rev().find_map(|(_, event)| match event {
        Event::Measured { rsrq_db, .. } => Some(*rsrq_db),
        _ => None,
    });
    assert!((measured.unwrap() - busy).abs() < 0.05, "{measured:?}");
}

#[test]
fn a_neighbour_that_talks_may_lose_the_link_of_a_still_ue() {
    let mut config = cells(&[0.0, 1000.0], 660.0);
    config.ues[1].air.mobility = Mobility::fixed(Position::new(1100.0, 0.0, 1.5));
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[1], 60, ms(3000));
    assert!(world.ran.stats(0).link_failures > 0, "{:?}", world.ran.stats(0));
    assert_eq!(world.ran.serving(0), Some(1), "it hears the other cell better");
    world.run(ms(10_000));
    assert_eq!((world.ran.poll_timeout(), world.ran.stats(0).link_failures), (None, 1));
}

#[test]
fn listening_does_not_change_what_happens() {
    let config = cells(&[0.0, 600.0], 350.0);
    let run = |listens: bool| {
        let mut world = World::new(&config);
        for n in 0..600 {
            let talks = n / 50 % 3 != 2;
            (0..2).for_each(|ue| {
                if talks && n % (ue + 2) == 0 {
                    world.send(Direction::Downlink, ue as u32, 1400);
                    world.send(Direction::Uplink, ue as u32, 700);
                }
            });
            let next = world.now + Span::from_micros(1300);
            world.run(next);
            if listens {
                let _ = [0, 1].map(|ue| world.ran.hears(ue, next));
            }
        }
        world.events
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn lte_and_nr_with_wider_subcarriers_on_one_carrier_interfere_by_their_power_in_a_bandwidth() {
    let config = cells(&[0.0, 600.0], 200.0);
    let mut mixed = nr(config.clone(), Duplex::Fdd);
    mixed.cells[0] = config.cells[0];
    // 12 blocks of 360 kHz beside 25 of 180 kHz; the LTE cell uses them all.
    mixed.cells[1].site.carrier.prbs = 12;
    let mut world = World::new(&mixed);
    for n in 0..200 {
        for direction in [Direction::Downlink, Direction::Uplink] {
            (0..8).for_each(|_| world.send(direction, 0, 1500));
            world.send(direction, 1, 200);
        }
        world.run(Time::ZERO + Span::from_millis(n + 1));
    }
    let is_busy = |(at, _): &(Time, Transmission)| (ms(40)..ms(190)).contains(at);
    let of = |ue: u32, direction| sent(&world, direction).into_iter().filter(move |s| s.1.ue == ue && is_busy(s));
    assert!(of(0, Direction::Downlink).all(|(_, t)| t.prbs == BLOCKS), "the LTE cell is full");
    let hz = |cell: usize| {
        let carrier = mixed.cells[cell].site.carrier;
        f64::from(carrier.prbs) * 12.0 * f64::from(carrier.subcarrier_hz)
    };
    let noise = linear(-174.0 + 9.0);
    let per_hz = |cell: usize, ue: usize| linear(30.0 - friis_db(&mixed, cell, ue, 2.12e9)) / hz(cell);
    let expected = 10.0 * (per_hz(1, 1) / (noise + per_hz(0, 1))).log10();
    let down: Vec<f64> = of(1, Direction::Downlink).map(|(_, t)| f64::from(t.sinr_cdb) / 100.0).collect();
    assert!(down.len() > 50 && down.iter().all(|sinr| (sinr - expected).abs() < 0.05), "{down:?}, not {expected}");
    // In the uplink, a TTI meets both slots of half a millisecond.
    let lte = of(0, Direction::Uplink).map(|(at, t)| (at, t.prbs)).collect::<std::collections::BTreeMap<_, _>>();
    let busiest = *lte.values().max().unwrap();
    let tti = |at: Time| ms(at.as_nanos() / 1_000_000);
    let met: Vec<(bool, f64)> = of(1, Direction::Uplink)
        .filter(|(at, _)| lte.get(&tti(*at)) == Some(&busiest))
        .map(|(at, t)| (at == tti(at), f64::from(t.sinr_cdb) / 100.0))
        .collect();
    let mean = |first: bool| {
        let these: Vec<f64> = met.iter().filter(|(is_first, _)| *is_first == first).map(|(_, sinr)| *sinr).collect();
        these.iter().sum::<f64>() / these.len() as f64
    };
    assert!((mean(true) - mean(false)).abs() < 0.5, "{met:?}");
}
