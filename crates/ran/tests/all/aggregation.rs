//! Carrier aggregation: two carriers against one, slot by slot and saturated, in LTE and NR.

use crate::support::{World, am, cell, each_mac, loss_for, ms, ue};
use channel::tables::lte::{CATEGORIES, Category};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Channel, Direction, Mobility, PathLoss, Position, Site};
use ran::rlc::{AmSn, Mode, NrAm};
use ran::{
    CellConfig, Config, Discipline, Drx, Duplex, Event, MacConfig, Nr, Pattern, Rat, Refused, Secondary, Transmission,
    UeConfig,
};
use units::{Span, Time};

/// An LTE cell with a carrier of 20 MHz and one of 10 MHz, and a UE.
fn lte() -> Config {
    let carrier = Carrier { downlink_hz: 1.82e9, uplink_hz: 1.72e9, ..Carrier::lte(Bandwidth::Mhz10) };
    let mut config = crate::support::network(Bandwidth::Mhz20, vec![ue(am(), 60.0)]);
    config.cells[0].secondary = Some(Secondary { carrier, power_dbm: 30.0 });
    config
}

/// The same with NR of 30 kHz: 51 and 24 resource blocks.
fn nr(duplex: Duplex) -> Config {
    let nr = Nr::new(Numerology::Khz30, duplex);
    let mac = MacConfig { rat: Rat::Nr(nr), decoding: Span::from_micros(250), ..MacConfig::default() };
    let carrier = |hz: f64, prbs| Carrier { downlink_hz: hz, uplink_hz: hz, prbs, subcarrier_hz: 30_000 };
    let cell = CellConfig {
        site: Site { carrier: carrier(3.5e9, 51), ..Site::default() },
        mac,
        secondary: Some(Secondary { carrier: carrier(3.7e9, 24), power_dbm: 30.0 }),
        ..CellConfig::default()
    };
    let mode = Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() });
    Config { cells: vec![cell], ues: vec![ue(mode, 60.0)], ..Config::default() }
}

/// A network with the second carriers of `config` only, as its cells.
fn second_alone(mut config: Config) -> Config {
    for cell in &mut config.cells {
        let Secondary { carrier, power_dbm } = cell.secondary.take().unwrap();
        (cell.site.carrier, cell.site.power_dbm) = (carrier, power_dbm);
    }
    config
}

fn first_alone(mut config: Config) -> Config {
    config.cells.iter_mut().for_each(|cell| cell.secondary = None);
    config
}

fn transmissions(world: &World, direction: Direction) -> impl Iterator<Item = (Time, Transmission)> {
    world.events.iter().filter_map(move |(at, event)| match event {
        Event::Transmission(t) if t.direction == direction => Some((*at, *t)),
        _ => None,
    })
}

/// Mbit/s of each UE, saturated in the downlink.
fn rates(config: &Config) -> Vec<f64> {
    let mut world = World::new(config);
    let ues: Vec<u32> = (0..config.ues.len() as u32).collect();
    world.saturate(Direction::Downlink, &ues, 400, ms(600));
    ues.iter().map(|ue| world.bytes(Direction::Downlink, *ue, ms(200)) as f64 * 8.0 / 0.4 / 1e6).collect()
}

#[test]
fn two_carriers_carry_the_sum_of_what_each_carries() {
    for config in [lte(), nr(Duplex::Fdd), nr(Duplex::Tdd(Pattern::DDDSU)), nr(Duplex::Flexible)] {
        let (first, second) = (rates(&first_alone(config.clone()))[0], rates(&second_alone(config.clone()))[0]);
        let both = rates(&config)[0];
        assert!((0.98..1.005).contains(&(both / (first + second))), "{first} and {second}, both {both} Mbit/s");
        let mut single = config.clone();
        single.ues[0].aggregates = false;
        assert_eq!(rates(&single)[0], first, "a UE without aggregation");
    }
}

#[test]
fn lte_sends_on_both_carriers_in_one_tti_and_has_feedback_8_ttis_later() {
    // A 20 MHz carrier with CQI 15 and MCS 28 holds 75,376 bits, one of 10 MHz 36,696: 14,009 bytes in one TTI.
    let mut world = World::new(&lte());
    world.saturate(Direction::Downlink, &[0], 400, ms(100));
    let late: Vec<_> = transmissions(&world, Direction::Downlink).filter(|(at, _)| *at >= ms(60)).collect();
    for tti in 60..99 {
        let now: Vec<_> = late.iter().filter(|(at, _)| *at == ms(tti)).map(|(_, t)| (t.cell, t.bits, t.prbs)).collect();
        assert_eq!(now, [(0, 75_376, 100), (1, 36_696, 50)], "TTI {tti}");
    }
    // Each carrier has eight processes of its own, and each process a block every eight TTIs.
    for cell in 0..2 {
        let of: Vec<_> = late.iter().filter(|(_, t)| t.cell == cell).collect();
        for pair in of.windows(9) {
            assert_eq!(pair[0].1.process, pair[8].1.process);
            assert_eq!(pair[8].0, pair[0].0 + Span::from_millis(8));
        }
    }
}

#[test]
fn each_carrier_adapts_to_its_own_channel() {
    // The second carrier at 40 dB less than the first.
    let mut config = lte();
    config.ues[0] = ue(am(), loss_for(30.0));
    config.cells[0].secondary.as_mut().unwrap().power_dbm -= 40.0;
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 400, ms(300));
    let mcs = |cell: u32| {
        let of = |(at, t): &(Time, Transmission)| *at > ms(100) && t.cell == cell && t.attempt == 1;
        transmissions(&world, Direction::Downlink).filter(of).map(|(_, t)| t.mcs).max()
    };
    assert_eq!((mcs(0), mcs(1)), (Some(28), None), "-7 dB is CQI 0");
    config.cells[0].secondary.as_mut().unwrap().power_dbm += 15.0;
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 400, ms(300));
    let most = |cell: u32| {
        let of = |(at, t): &(Time, Transmission)| *at > ms(100) && t.cell == cell && t.attempt == 1;
        transmissions(&world, Direction::Downlink).filter(of).map(|(_, t)| t.mcs).max()
    };
    // The scheme for 8 dB, and the next one by the outer loop.
    let scheme = channel::phy::mcs_at(8.0, Direction::Downlink);
    assert_eq!((most(0), most(1)), (Some(28), Some(scheme + 1)));
    // In AM, nothing is lost, and the order is kept although blocks of the second carrier fail more often.
    world.run(ms(2000));
    let ids = world.ids(Direction::Downlink, 0);
    assert!(world.ran.held() == 0 && ids.len() as u64 == world.sent && ids.is_sorted(), "{}", world.ran.held());
    let failed = transmissions(&world, Direction::Downlink).filter(|(_, t)| t.cell == 1 && !t.decoded).count();
    assert!(failed > 10, "{failed}");
}

#[test]
fn ues_with_one_and_with_two_carriers_share_a_cell() {
    // Round robin: each UE gets half of the first carrier, and the second carrier belongs to one of them.
    let mut config = lte();
    config.cells[0].downlink = Discipline::RoundRobin;
    config.ues.push(UeConfig { aggregates: false, ..config.ues[0].clone() });
    let one = |mut config: Config| {
        config.ues.truncate(1);
        rates(&config)[0]
    };
    let (first, second) = (one(first_alone(config.clone())), one(second_alone(config.clone())));
    let rates = rates(&config);
    // Half of the 25 groups is 12 or 13, and the smaller block holds a little less than half.
    assert!((rates[1] / (first / 2.0) - 1.0).abs() < 0.04, "{rates:?} {first}");
    assert!((rates[0] / (first / 2.0 + second) - 1.0).abs() < 0.03, "{rates:?} {first} {second}");
}

#[test]
fn proportional_fair_counts_both_carriers() {
    // Two equal carriers, and two equal UEs, of which one has both: it gets the second one, and the other UE the first.
    for mut config in [lte(), nr(Duplex::Fdd)] {
        let prbs = config.cells[0].site.carrier.prbs;
        config.cells[0].secondary.as_mut().unwrap().carrier.prbs = prbs;
        config.ues.push(UeConfig { aggregates: false, ..config.ues[0].clone() });
        let rates = rates(&config);
        println!("{rates:.1?} Mbit/s");
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.03, "{rates:?}");
    }
}

#[test]
fn ues_that_sleep_use_both_carriers_when_they_are_awake() {
    let [cycle, on_duration, inactivity] = [40, 4, 10].map(Span::from_millis);
    let drx = Drx { cycle, on_duration, inactivity, ..Drx::default() };
    let mut config = lte();
    each_mac(&mut config, |mac| mac.drx = Some(drx));
    let mut world = World::new(&config);
    for n in 0..20u64 {
        world.run(ms(200 * n));
        for _ in 0..20 {
            world.send(Direction::Downlink, 0, 1500);
        }
    }
    world.run(ms(4200));
    assert_eq!(world.ids(Direction::Downlink, 0), (0..400).collect::<Vec<_>>());
    let of = |cell| transmissions(&world, Direction::Downlink).filter(|(_, t)| t.cell == cell).count();
    assert!(of(0) >= 20 && of(1) >= 20, "{} {}", of(0), of(1));
    assert!(world.ran.time_asleep(0, ms(4200)) > Span::from_millis(2000));
}

#[test]
fn a_handover_changes_both_carriers_and_a_second_carrier_is_no_target() {
    // Two sites; their second carriers arrive with 10 dB more.
    let place = |x: f64| {
        let cell = cell(Bandwidth::Mhz5);
        let carrier = Carrier { downlink_hz: 2.16e9, ..cell.site.carrier };
        let site = Site { position: Position::new(x, 0.0, 30.0), ..cell.site };
        CellConfig { site, secondary: Some(Secondary { carrier, power_dbm: 40.0 }), ..cell }
    };
    let mut drives = UeConfig { cell: None, ..ue(am(), 0.0) };
    drives.air.channel = Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None };
    let route = [Position::new(100.0, 0.0, 1.5), Position::new(700.0, 0.0, 1.5)];
    drives.air.mobility = Mobility::route(&route, &[30.0]).unwrap();
    let mut config = Config { cells: vec![place(0.0), place(800.0)], ues: vec![drives], ..Config::default() };
    config.handover.forwarding = true;
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 100, ms(20_000));
    let used = |from, until| {
        let mut of: Vec<u32> = transmissions(&world, Direction::Downlink)
            .filter(|(at, _)| (ms(from)..ms(until)).contains(at))
            .map(|(_, t)| t.cell)
            .collect();
        of.sort_unstable();
        of.dedup();
        of
    };
    assert_eq!((used(0, 5000), used(15_000, 20_000)), (vec![0, 2], vec![1, 3]));
    assert_eq!((world.ran.serving(0), world.ran.secondary(0, 1)), (Some(1), Some(3)));
    assert_eq!(world.ran.hand_over(0, 2, ms(20_000), &mut ()), Err(Refused::NoSuchCell));
    world.run(ms(22_000));
    let ids = world.ids(Direction::Downlink, 0);
    assert!(ids.len() as u64 == world.sent && ids.is_sorted());
}

#[test]
fn a_category_limits_a_ue_in_lte_and_not_in_nr() {
    // An LTE cell and an NR cell, both with two carriers; the UE is handed over to and fro. Category 1 has 10 Mbit/s on one carrier
    // and one layer in the downlink, and 5 Mbit/s in the uplink, with 16QAM.
    let mut config = nr(Duplex::Fdd);
    config.cells.insert(0, lte().cells[0]);
    config.ues[0].layers = 2;
    config.ues[0].host.room.bytes = Some(1_000_000);
    let rates = |category: Category| {
        let mut config = config.clone();
        config.ues[0].category = category;
        let mut world = World::new(&config);
        let mut measure = |cell: Option<u32>| {
            if let Some(cell) = cell {
                world.ran.hand_over(0, cell, world.now, &mut ()).unwrap();
                let connected = world.now + Span::from_millis(300);
                world.run(connected);
            }
            [Direction::Downlink, Direction::Uplink].map(|direction| {
                let start = world.now;
                world.saturate(direction, &[0], 1000, start + Span::from_millis(300));
                let rate = world.bytes(direction, 0, start + Span::from_millis(100)) as f64 * 8.0 / 0.2 / 1e6;
                // Until nothing waits.
                let idle = world.now + Span::from_millis(300);
                world.run(idle);
                rate
            })
        };
        [None, Some(1), Some(0)].map(&mut measure)
    };
    let [limited, free] = [CATEGORIES[0], Category::UNLIMITED].map(rates);
    println!("{limited:?} {free:?}");
    for lte in [limited[0], limited[2]] {
        assert!((9.0..10.3).contains(&lte[0]) && (4.6..5.2).contains(&lte[1]), "{limited:?}");
    }
    for (limited, free) in limited[1].iter().zip(free[1]) {
        assert!((limited / free - 1.0).abs() < 0.01, "{limited} and {free} Mbit/s");
    }
    for lte in [free[0], free[2]] {
        assert!(lte[0] > 200.0 && lte[1] > 60.0, "{free:?}");
    }
}
