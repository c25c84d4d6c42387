//! Special slots: a UE whose scheme carries nothing in a few symbols waits for a whole slot, and loses nothing by it. Nor do
//! grants for special slots take those of whole slots.

use crate::support::{World, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Direction, Site};
use ran::rlc::{Mode, NrAm};
use ran::{CellConfig, Config, Discipline, Duplex, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests};
use units::{Span, Time};

/// A cell with slots of 0.5 ms and `ues` behind `loss_db`.
fn network(pattern: Pattern, prbs: u16, ues: usize, loss_db: f64) -> Config {
    let nr = Nr::new(Numerology::Khz30, Duplex::Tdd(pattern));
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs, subcarrier_hz: 30_000 };
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        decoding: Span::from_micros(100),
        link: LinkAdaptation { delay: Span::from_millis(2), ..LinkAdaptation::default() },
        requests: Requests {
            sr_period: 10,
            bsr_periodic: Some(Span::from_millis(5)),
            bsr_retx: Span::from_millis(80),
            ..Requests::default()
        },
        ..MacConfig::default()
    };
    let site = Site { carrier, power_dbm: 46.0, ..Site::default() };
    let cell = CellConfig { site, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrAm(NrAm::default()), loss_db); ues], ..Config::default() }
}

/// The same with slots of `numerology`.
fn network_of(numerology: Numerology, pattern: Pattern, prbs: u16, ues: usize, loss_db: f64) -> Config {
    let mut config = network(pattern, prbs, ues, loss_db);
    let CellConfig { site, mac, .. } = &mut config.cells[0];
    mac.rat = Rat::Nr(Nr::new(numerology, Duplex::Tdd(pattern)));
    site.carrier.subcarrier_hz = numerology.subcarrier_hz();
    config
}

/// DDDSU with this many uplink symbols in the special slot.
fn dddsu(uplink_symbols: u8) -> Pattern {
    Pattern { downlink_symbols: 12 - uplink_symbols, uplink_symbols, ..Pattern::DDDSU }
}

/// Mbit/s of all UEs, saturated in a direction.
fn carried(world: &mut World, way: Direction) -> f64 {
    let ues: Vec<u32> = (0..world.ran.ues()).collect();
    world.saturate(way, &ues, 20, ms(4000));
    ues.iter().map(|ue| world.bytes(way, *ue, ms(1000))).sum::<u64>() as f64 * 8.0 / 3e6
}

#[test]
fn uplink_symbols_in_a_special_slot_never_cost_a_weak_uplink_its_whole_slots() {
    // With two symbols, of which one is for control, the special slot carries nothing.
    for (prbs, ues) in [(51, 1), (51, 10), (273, 10)] {
        for loss_db in (116..=138).step_by(2) {
            let carried =
                |pattern| carried(&mut World::new(&network(pattern, prbs, ues, loss_db.into())), Direction::Uplink);
            let [none, short, longer] = [2, 3, 4].map(|symbols| carried(dddsu(symbols)));
            println!("{prbs} blocks, {ues} UEs, {loss_db} dB: {none:.3} {short:.3} {longer:.3} Mbit/s");
            assert!(short >= 0.97 * none && longer >= 0.97 * none, "{prbs} {loss_db} dB: {none} {short} {longer}");
        }
    }
    for loss_db in (124..=136).step_by(4) {
        let pattern = |uplink_symbols| Pattern { uplink_symbols, ..Pattern::DDDDDDDSUU };
        let carried = |pattern| carried(&mut World::new(&network(pattern, 273, 10, loss_db.into())), Direction::Uplink);
        let [none, four] = [2, 4].map(|symbols| carried(pattern(symbols)));
        println!("DDDDDDDSUU, {loss_db} dB: {none:.3} {four:.3} Mbit/s");
        assert!(four >= 0.97 * none, "{loss_db} dB: {none} {four}");
    }
}

/// A pattern of downlink slots, a special slot and uplink slots.
fn pattern(downlink_slots: u8, uplink_slots: u8, uplink_symbols: u8) -> Pattern {
    let slots = downlink_slots + 1 + uplink_slots;
    Pattern { slots, downlink_slots, downlink_symbols: 12 - uplink_symbols, uplink_symbols, uplink_slots }
}

#[test]
fn uplink_symbols_in_a_special_slot_never_cost_many_ues_the_grants_of_whole_slots() {
    use Numerology::{Khz15, Khz30, Khz60};
    for (numerology, down, up, prbs, ues, losses) in [
        (Khz30, 3, 2, 51, 10, [100, 110, 122]),
        (Khz30, 7, 2, 51, 30, [110, 122, 130]),
        (Khz30, 3, 1, 51, 40, [110, 120, 126]),
        (Khz15, 1, 1, 25, 10, [110, 126, 132]),
        (Khz15, 1, 3, 52, 40, [100, 110, 126]),
        (Khz60, 3, 1, 51, 10, [110, 120, 128]),
    ] {
        for (loss_db, uplink) in losses.into_iter().flat_map(|loss| {
            [Discipline::ProportionalFair, Discipline::RoundRobin].map(|discipline| (loss, discipline))
        }) {
            let by_symbols = [2, 4, 6, 10].map(|symbols| {
                let pattern = pattern(down, up, symbols);
                let mut config = network_of(numerology, pattern, prbs, ues, loss_db.into());
                config.cells[0].uplink = uplink;
                carried(&mut World::new(&config), Direction::Uplink)
            });
            let which = format!("{numerology:?} D{down}U{up}, {prbs} blocks, {ues} UEs, {loss_db} dB, {uplink:?}");
            println!("{which}: {by_symbols:.3?} Mbit/s");
            assert!(by_symbols.iter().all(|some| *some >= 0.97 * by_symbols[0]), "{which}: {by_symbols:?}");
        }
    }
}

#[test]
fn a_weak_ue_with_little_to_send_waits_no_longer_where_special_slots_have_uplink_symbols() {
    for loss_db in [124.0, 128.0, 130.0, 132.0, 134.0] {
        let median = |symbols| {
            let mut world = World::new(&network(dddsu(symbols), 51, 1, loss_db));
            for n in 0..400 {
                // 24 kbit/s.
                world.send(Direction::Uplink, 0, 60);
                world.run(ms(20 * (n + 1)));
            }
            let late = world.arrivals.iter().filter(|a| a.packet.created > ms(1000));
            let mut delays: Vec<u64> = late.map(|a| (a.at - a.packet.created).as_micros()).collect();
            delays.sort_unstable();
            assert!(delays.len() > 300, "{loss_db} dB, {symbols} symbols: {}", delays.len());
            delays[delays.len() / 2]
        };
        let delays = [2, 3, 4].map(median);
        println!("{loss_db} dB: {delays:?} us");
        // A block of a few symbols is smaller, so that a packet may take one more.
        assert!(delays.iter().all(|delay| *delay <= delays[0] + 2_500), "{loss_db} dB: {delays:?} us");
    }
}

#[test]
fn downlink_symbols_in_a_special_slot_never_cost_a_weak_downlink_its_whole_slots() {
    for prbs in [11, 24, 51] {
        for sinr_db in -4..=8 {
            let carried = |downlink_symbols| {
                let pattern = Pattern { slots: 3, downlink_slots: 1, downlink_symbols, ..Pattern::DDDSU };
                let mut world = World::new(&network(pattern, prbs, 1, 100.0));
                world.ran.set_sinr(0, Some(sinr_db.into()), Time::ZERO);
                carried(&mut world, Direction::Downlink)
            };
            // One symbol is for control.
            let by_symbols = [1, 3, 4, 6, 10].map(carried);
            println!("{prbs} blocks, {sinr_db} dB: {by_symbols:.3?} Mbit/s");
            let none = by_symbols[0];
            assert!(by_symbols.iter().all(|some| *some >= 0.97 * none), "{prbs} {sinr_db} dB: {by_symbols:?}");
        }
    }
}
