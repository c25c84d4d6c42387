//! What UEs of an NR cell report of their power and their buffers, and what the cell grants for it.

use crate::support::{World, bearer, each_mac, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Direction, Site};
use ran::rlc::{Mode, NrUm};
use ran::{CellConfig, Config, Duplex, Event, MacConfig, Nr, PowerReports, Rat, Transmission};
use units::{Span, Time};

/// 20 MHz with slots of 0.5 ms, FDD: 51 resource blocks.
fn network(mode: Mode, loss_db: f64) -> Config {
    let nr = Nr::new(Numerology::Khz30, Duplex::Fdd);
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.4e9, prbs: 51, subcarrier_hz: 30_000 };
    let mac = MacConfig { rat: Rat::Nr(nr), decoding: Span::from_micros(100), ..MacConfig::default() };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(mode, loss_db)], ..Config::default() }
}

fn um() -> Mode {
    Mode::NrUm(NrUm::default())
}

/// The first transmissions of the uplink.
fn blocks(world: &World) -> impl Iterator<Item = (Time, Transmission)> {
    world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) if t.direction == Direction::Uplink && t.attempt == 1 => Some((*at, *t)),
        _ => None,
    })
}

/// When power headroom reports were received, their levels, and the resource blocks of the blocks that carried them.
fn headrooms(world: &World) -> Vec<(Time, u8, u16)> {
    let level = |event: &Event| if let Event::PowerHeadroom { level, .. } = event { Some(*level) } else { None };
    let reports = world.events.iter().filter_map(|(at, event)| Some((*at, level(event)?)));
    // A slot, and 100 us to decode it in.
    let carried = |at: Time| blocks(world).find(|(sent, t)| *sent + Span::from_micros(600) == at && t.decoded);
    reports.map(|(at, level)| (at, level, carried(at).expect("a block carried it").1.prbs)).collect()
}

#[test]
fn a_headroom_is_reported_at_first_each_period_and_when_the_path_loss_changes() {
    let mut config = network(um(), 90.0);
    each_mac(&mut config, |mac| {
        mac.power_reports = PowerReports {
            periodic: Some(Span::from_millis(200)),
            prohibit: Span::from_millis(50),
            path_loss_change_db: Some(3.0),
        }
    });
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0], 60, ms(500));
    let before = headrooms(&world);
    assert_eq!(before.len(), 3);
    assert!(before.windows(2).all(|w| (200..203).contains(&(w[1].0 - w[0].0).as_millis())));
    assert!(before[0].2 < before[1].2, "the first grant is small");
    for (_, level, prbs) in &before {
        // 23 dBm less 90 dB and -80 dBm for 15 kHz, on subcarriers of 30 kHz twice as much: 38.133 table 10.1.17.1-1.
        let headroom_db = 23.0 - (-80.0 + 10.0 * 2f64.log10() + 90.0) - 10.0 * f64::from(*prbs).log10();
        assert_eq!(f64::from(*level), (headroom_db + 32.0).floor() + 1.0, "{headroom_db} dB");
    }
    // 2.9 dB of path loss trigger nothing, 6 dB a report at once.
    let downlink_db = 30.0 - 10.0 * (51.0f64 * 12.0).log10() - 90.0 + 174.0 - 10.0 * 30e3f64.log10() - 9.0;
    let mut number = 3;
    for (better_db, reported) in [(2.9, false), (8.9, true)] {
        world.ran.set_sinr(0, Some(downlink_db + better_db), world.now);
        let changed = world.now;
        world.saturate(Direction::Uplink, &[0], 60, changed + Span::from_millis(20));
        let reports = headrooms(&world);
        number += usize::from(reported);
        assert_eq!(reports.len(), number, "{better_db}: {reports:?}");
        if reported {
            assert!(
                (reports[3].0 - changed).as_micros() <= 2000,
                "sent in the next slot, decoded two later: {reports:?}"
            );
        }
    }
    // Back again: it is reported when t-Prohibit has passed.
    world.ran.set_sinr(0, Some(downlink_db), world.now);
    world.saturate(Direction::Uplink, &[0], 60, world.now + Span::from_millis(60));
    let reports = headrooms(&world);
    let waited = reports[4].0 - reports[3].0;
    assert!(reports.len() == 5 && (50..53).contains(&waited.as_millis()), "{waited}: {reports:?}");
}

/// The buffer status reports.
fn buffers(world: &World) -> Vec<[u8; 8]> {
    let levels = |event: &Event| if let Event::BufferStatus { levels, .. } = event { Some(*levels) } else { None };
    world.events.iter().filter_map(|(_, event)| levels(event)).collect()
}

#[test]
fn the_cell_grants_what_a_report_of_five_bits_for_one_group_or_of_eight_for_two_stands_for() {
    // 8000 bytes of one bearer, or 4000 of each of two. The grant for the request takes 201 bytes, of which 190 are data.
    for (packets, levels, granted) in [
        // 38.321 table 6.1.3.1-1: more than 7587, at most 10570.
        ([0, 8], [0, 0, 0, 22, 0, 0, 0, 0], 10_570),
        // Table 6.1.3.1-2: more than 3934, at most 4189, and more than 3694, at most 3934.
        ([4, 4], [0, 0, 96, 95, 0, 0, 0, 0], 4_189 + 3_934),
    ] {
        let mut config = network(um(), 70.0);
        let mut second = bearer(um());
        (second.group, second.filter) = (2, ran::Filter::Flows(vec![7]));
        config.ues[0].bearers.push(second);
        let mut world = World::new(&config);
        world.run(ms(100));
        for (number, flow) in packets.into_iter().zip([7, 0]) {
            (0..number).for_each(|_| world.send_flow(Direction::Uplink, 0, 1000, flow));
        }
        world.run(ms(200));
        assert_eq!(buffers(&world)[0], levels);
        assert_eq!(world.arrivals.len(), 8);
        let sizes: Vec<u32> = blocks(&world).map(|(_, t)| t.bits / 8).collect();
        assert_eq!(sizes[0], 201);
        // Blocks have whole resource blocks of 100 bytes each, and headers.
        let all = sizes[1..].iter().sum::<u32>();
        assert!((granted..granted + 250).contains(&all), "{sizes:?}");
    }
}
