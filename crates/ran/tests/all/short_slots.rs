//! Special slots: a UE whose scheme carries nothing in a few symbols waits for a whole slot, and loses nothing by it.

use crate::support::{World, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Direction, Site};
use ran::rlc::{Mode, NrAm};
use ran::{CellConfig, Config, Duplex, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests};
use units::{Span, Time};

/// A cell with slots of 0.5 ms and `ues` behind `loss_db`.
fn network(pattern: Pattern, prbs: u16, ues: usize, loss_db: f64) -> Config {
    let nr = Nr::new(Numerology::Khz30, Duplex::Tdd(pattern));
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs, subcarrier_hz: 30_000 };
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        decoding: Span::from_micros(100),
        // Grants for special slots would take those of whole slots.
        assignments: Some(1000),
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
