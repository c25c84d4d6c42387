//! How old what an eNodeB knows of a channel is.

use crate::support::{World, each_mac, loss_for, ms, network, ue, um, us};
use channel::fading::{self, Doppler, Profile};
use channel::{AirConfig, Bandwidth, Channel, Direction, Mobility, PathLoss, Position, Shadowing};
use ran::Config;
use units::{Span, Time};

const WAYS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// A UE whose channel changes within the age of a report, without an outer loop that would learn from errors.
fn fast(loss_db: f64) -> Config {
    let mut config = network(Bandwidth::Mhz5, vec![ue(um(), loss_db)]);
    config.ues[0].air.fading = Some(fading::Config { profile: Profile::Eva, doppler: Doppler::Hz(70.0) });
    each_mac(&mut config, |mac| mac.link.step_db = 0.0);
    config
}

/// The share of first transmissions that fail when the UE has `packets` to send each `pause`, over four channels.
fn errors(config: &Config, way: Direction, packets: u32, pause: Span) -> f64 {
    let (mut failed, mut blocks) = (0, 0);
    for seed in 0..4 {
        let mut world = World::seeded(config, seed);
        while world.now < ms(16_000) {
            for _ in 0..packets {
                world.send(way, 0, 300);
            }
            let next = world.now + pause;
            world.run(next);
        }
        let stats = world.ran.stats(0);
        let stats = if way == Direction::Downlink { stats.downlink } else { stats.uplink };
        failed += stats.first_failures;
        blocks += stats.blocks;
    }
    failed as f64 / blocks as f64
}

#[test]
fn a_block_after_silence_fails_as_often_as_one_without() {
    for (way, loss) in [(Direction::Downlink, loss_for(12.0)), (Direction::Uplink, 118.0)] {
        let config = fast(loss);
        let busy = errors(&config, way, 2, Span::from_millis(1));
        let idle = errors(&config, way, 1, Span::from_micros(40_300));
        assert!(busy > 0.15, "{way:?}: {busy}");
        assert!((idle / busy - 1.0).abs() < 0.25, "{way:?}: {idle} after silence, {busy} without");
    }
}

#[test]
fn what_is_reported_does_not_depend_on_who_looks_at_the_channel_meanwhile() {
    // It moves among shadows, fades, and is heard of in bursts.
    let mut config = fast(100.0);
    config.cells[0].site.power_dbm = 0.0;
    config.ues[0].air = AirConfig {
        mobility: Mobility::line(Position::new(150.0, 40.0, 1.5), [25.0, 0.0, 0.0]),
        channel: Channel::Modelled { path_loss: PathLoss::Friis, shadowing: Some(Shadowing::uniform(8.0, 10.0)) },
        ..config.ues[0].air.clone()
    };
    let run = |look: bool| {
        let mut world = World::new(&config);
        for step in 0..400u64 {
            for way in WAYS {
                world.send(way, 0, 1200);
            }
            let next = us(step * 23_700 + 23_700);
            while world.now < next {
                let until = (world.now + Span::from_micros(700)).min(next);
                world.run(until);
                if look {
                    world.ran.hears(0, until);
                }
            }
        }
        let end = world.now + Span::from_secs(1);
        world.run(end);
        let arrivals: Vec<(Time, u64)> = world.arrivals.iter().map(|a| (a.at, a.packet.id)).collect();
        (arrivals, world.ran.stats(0))
    };
    let alone = run(false);
    assert!(alone.1.downlink.first_failures > 20, "{:?}", alone.1);
    assert!(alone == run(true), "sampling changes nothing");
}

#[test]
fn a_change_of_the_channel_is_known_when_a_report_has_come() {
    // CQI reports each 5 ms, used 6 ms later: a UE that was idle sends with the old scheme until then.
    let mut world = World::new(&network(Bandwidth::Mhz5, vec![ue(um(), loss_for(0.0))]));
    world.send(Direction::Downlink, 0, 300);
    world.run(ms(1000));
    world.ran.set_sinr(0, Some(20.0), world.now);
    let schemes = |world: &World| -> Vec<(u64, u8)> {
        let at = |at: &Time| (*at - Time::ZERO).as_millis();
        let mcs =
            |e: &ran::Event| if let ran::Event::Transmission(t) = e { (t.attempt == 1).then_some(t.mcs) } else { None };
        world.events.iter().filter_map(|(time, e)| Some((at(time), mcs(e)?))).filter(|(at, _)| *at >= 1000).collect()
    };
    world.saturate(Direction::Downlink, &[0], 20, ms(1030));
    let first = schemes(&world).into_iter().find(|(_, mcs)| *mcs > 20).unwrap().0;
    assert!((1006..=1011).contains(&first), "{:?}", schemes(&world));
}
