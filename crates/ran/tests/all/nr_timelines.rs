//! Timelines of an NR cell worked by hand, and what a cell of few or divided symbols does.

use crate::support::{World, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Direction, Site};
use ran::rlc::{AmSn, Mode, NrAm};
use ran::{CellConfig, Config, Duplex, Event, MacConfig, Nr, Pattern, Rat, Requests, Transmission};
use units::{Span, Time};

/// DDDSU at 120 kHz: K1 = 2 and K2 = 3 slots of 125 us, decoding takes one, an opportunity for a request each slot.
fn network(nr: Nr) -> Config {
    let carrier =
        Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 132, subcarrier_hz: nr.numerology.subcarrier_hz() };
    let requests = Requests { sr_period: 1, ..Requests::default() };
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        decoding: Rat::Nr(nr).slot(),
        requests,
        transmissions: 2,
        ..MacConfig::default()
    };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    let am = NrAm {
        sn: AmSn::Eighteen,
        t_poll_retransmit: Span::from_millis(40),
        t_reassembly: Span::from_millis(5),
        t_status_prohibit: Span::ZERO,
        ..NrAm::default()
    };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrAm(am), 50.0)], ..Config::default() }
}

fn dddsu() -> Nr {
    Nr::new(Numerology::Khz120, Duplex::Tdd(Pattern::DDDSU))
}

/// The beginning of slot `slot` after the 8000th, with which a pattern begins.
fn at(slot: u64) -> Time {
    Time::ZERO + Span::from_micros(125) * (8000 + slot)
}

fn slot_of(time: Time) -> u64 {
    time.as_nanos() / 125_000 - 8000
}

fn transmissions(world: &World) -> Vec<(u64, Transmission)> {
    let of = |(time, event): &(Time, Event)| match event {
        Event::Transmission(t) if *time >= at(0) => Some((slot_of(*time), *t)),
        _ => None,
    };
    world.events.iter().filter_map(of).collect()
}

#[test]
fn dddsu_at_120_khz_from_idle_slot_by_slot() {
    // Downlink: slots 0 to 3 of the pattern carry it, decoding takes the slot after.
    // Uplink: the request goes in slot 3 or 4, whichever comes first, is known two slots later, and is answered by the
    // last control channel three slots before slot 9, or 14: slot 6, or 11. The special slot has one data symbol less
    // than a block needs. The block is decoded two slots later.
    let delivered = |direction, slot| {
        let mut world = World::new(&network(dddsu()));
        world.run(at(slot));
        world.send(direction, 0, 100);
        world.run(at(slot) + Span::from_millis(20));
        slot_of(world.arrivals[0].at)
    };
    let downlink = [0, 1, 2, 3, 4, 5].map(|slot| delivered(Direction::Downlink, slot));
    assert_eq!(downlink, [2, 3, 4, 5, 7, 7]);
    let uplink = [0, 3, 4, 5].map(|slot| delivered(Direction::Uplink, slot));
    assert_eq!(uplink, [11, 11, 11, 16]);
}

#[test]
fn a_status_report_repairs_what_harq_has_lost() {
    let mut world = World::new(&network(dddsu()));
    world.run(at(0));
    // Out of reach for the slots of the first packet: two transmissions fail.
    world.ran.set_sinr(0, Some(-30.0), at(0));
    world.send(Direction::Downlink, 0, 1000);
    world.run(at(7));
    world.ran.set_sinr(0, Some(30.0), at(7));
    world.run(at(12));
    world.send(Direction::Downlink, 0, 1000);
    world.run(at(400));
    assert_eq!(world.ids(Direction::Downlink, 0), [0, 1]);
    let sent: Vec<_> = transmissions(&world)
        .into_iter()
        .filter(|(_, t)| t.direction == Direction::Downlink)
        .map(|(slot, t)| (slot, t.attempt, t.decoded))
        .collect();
    // Acknowledged in slot 3, known in 5 and sent again there; that is acknowledged in 8, and given up in 10.
    assert_eq!(sent[..2], [(0, 1, false), (5, 2, false)]);
    // The second packet arrives behind the gap: decoded in 14, where t-Reassembly of 40 slots starts.
    assert_eq!(sent[2], (12, 1, true));
    // It ends in 54 with a request, which goes in 58, is known in 60 and answered in 61 for 64; decoded in 66, the STATUS
    // PDU has the first packet sent again there, and received in 68.
    assert_eq!(sent[3], (66, 1, true));
    assert_eq!(world.arrivals.iter().map(|a| slot_of(a.at)).collect::<Vec<_>>(), [68, 68], "in order");
}

#[test]
fn a_slot_whose_reference_signals_leave_no_room_is_not_used() {
    // Two of the special slot's three data symbols are for reference signals, and 18 elements are overhead.
    let pattern = Pattern { uplink_symbols: 4, downlink_symbols: 4, ..Pattern::DDDSU };
    let mut nr = Nr::new(Numerology::Khz120, Duplex::Tdd(pattern));
    (nr.dmrs, nr.overhead) = (2, 18);
    let mut world = World::new(&network(nr));
    world.run(at(0));
    for direction in [Direction::Downlink, Direction::Uplink] {
        world.saturate(direction, &[0], 100, world.now + Span::from_millis(10));
    }
    let sent = transmissions(&world);
    assert!(sent.len() > 80 && sent.iter().all(|(slot, _)| slot % 5 != 3));
}

#[test]
fn flexible_slots_come_to_rest_and_serve_the_downlink_beside_a_ue_out_of_reach() {
    let mut config = network(Nr::new(Numerology::Khz120, Duplex::Flexible));
    config.ues.push(config.ues[0].clone());
    let mut world = World::new(&config);
    world.run(at(0));
    world.send(Direction::Uplink, 0, 3000);
    world.run(at(4000));
    assert_eq!((world.arrivals.len(), world.ran.poll_timeout()), (1, None));
    // UE 1 has much to send, reports it, and is lost: the slots are for the downlink of the other.
    for _ in 0..200 {
        world.send(Direction::Uplink, 1, 1500);
    }
    world.run(at(4009));
    world.ran.set_sinr(1, Some(-30.0), at(4009));
    world.run(at(4300));
    let from = world.now;
    world.saturate(Direction::Downlink, &[0], 2000, from + Span::from_millis(20));
    let rate = world.bytes(Direction::Downlink, 0, from) as f64 * 8.0 / 0.02 / 1e6;
    assert!(rate > 600.0, "{rate} Mbit/s");
}

#[test]
fn small_blocks_at_the_highest_sinr_are_decoded() {
    // A flexible slot gives a small grant two symbols, one of them for reference signals.
    let mut config = network(Nr::new(Numerology::Khz120, Duplex::Flexible));
    config.cells[0].mac.requests.first_grant = 1;
    let mut world = World::new(&config);
    world.run(ms(100));
    for n in 0..200 {
        world.send(Direction::Uplink, 0, 20);
        world.run(ms(110 + 10 * n));
    }
    let stats = world.ran.stats(0).uplink;
    assert_eq!(world.arrivals.len(), 200);
    assert!(stats.first_failures * 5 < stats.blocks, "{stats:?}");
}
