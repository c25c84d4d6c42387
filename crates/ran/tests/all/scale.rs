//! What a network costs, that runs repeat, and that no packet is lost from the books.

use crate::support::{Arrival, World, am, bearer, cell, each_mac, loss_for, ms, network, ue, um, us, with_completion};
use aqm::Completion;
use channel::fading::{self, Profile};
use channel::{AirConfig, Bandwidth, Carrier, Direction, Mobility, Position, Site};
use ran::rlc::Mode;
use ran::{Above, CellConfig, Config, Discipline, Event, MacConfig, Room, Secondary, UeConfig};
use units::{Span, Time};

/// Work of a second in which the first `active` of `ues` talk.
fn work(ues: u32, active: u32) -> u64 {
    let mut world = World::new(&network(Bandwidth::Mhz20, (0..ues).map(|_| ue(am(), 60.0)).collect()));
    for tick in 0..100 {
        for ue in 0..active {
            world.send(Direction::Downlink, ue, 1000);
            world.send(Direction::Uplink, ue, 500);
        }
        world.run(ms(tick * 10 + 10));
    }
    world.run(ms(2000));
    assert_eq!(world.arrivals.len(), 200 * active as usize);
    world.ran.work()
}

#[test]
fn idle_ues_cost_nothing() {
    assert_eq!(work(100, 20), work(1000, 20));
}

#[test]
fn the_work_grows_with_the_active_ues() {
    let (few, many) = (work(1000, 10), work(1000, 100));
    let ratio = many as f64 / few as f64;
    // A hundred share a carrier that ten do not fill: some wait a TTI or two, and are looked at in each.
    assert!((8.0..20.0).contains(&ratio), "{few} {many}");
}

#[test]
fn a_network_with_nothing_to_do_asks_for_no_call() {
    let mut world = World::new(&network(Bandwidth::Mhz20, (0..1000).map(|_| ue(am(), 60.0)).collect()));
    assert_eq!(world.ran.poll_timeout(), None);
    world.send(Direction::Downlink, 500, 1000);
    world.run(ms(1000));
    assert_eq!(world.ran.poll_timeout(), None, "everything is acknowledged");
    assert_eq!(world.ran.held(), 0);
}

/// A few numbers that look random and are the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A network of anything that can be configured, drawn from `dice`.
fn any_network(dice: &mut Dice) -> Config {
    let cells = 1 + dice.below(3);
    let disciplines = [Discipline::RoundRobin, Discipline::ProportionalFair, Discipline::MaxThroughput];
    let bandwidth = Bandwidth::ALL[dice.below(6) as usize];
    let mut config = Config::default();
    for i in 0..cells {
        let site = Site { position: Position::new(i as f64 * 600.0, 0.0, 30.0), ..cell(bandwidth).site };
        config.cells.push(CellConfig {
            site,
            downlink: disciplines[dice.below(3) as usize],
            uplink: disciplines[dice.below(3) as usize],
            load: dice.below(4) as f32 * 0.2,
            ..CellConfig::default()
        });
    }
    for _ in 0..1 + dice.below(8) {
        let modes: [Mode; 3] = [am(), um(), Mode::Tm];
        let mode = modes[dice.below(3) as usize];
        let mut fresh = ue(mode, loss_for(dice.below(40) as f64 - 6.0));
        if dice.below(3) > 0 {
            let from = Position::new(dice.below(1200) as f64, 30.0, 1.5);
            fresh.air = AirConfig {
                mobility: Mobility::line(from, [dice.below(80) as f64 - 40.0, 0.0, 0.0]),
                ..AirConfig::default()
            };
            fresh.cell = None;
        }
        if dice.below(3) == 0 {
            fresh.air.fading = Some(fading::Config { profile: Profile::Epa, doppler: fading::Doppler::Hz(5.0) });
        }
        if dice.below(2) == 0 {
            let mut second = bearer(modes[dice.below(3) as usize]);
            second.qci = 1 + dice.below(9) as u8;
            second.group = dice.below(4) as u8;
            second.filter = ran::Filter::Flows(vec![1]);
            fresh.bearers.push(second);
        }
        for bearer in &mut fresh.bearers {
            if dice.below(2) == 0 {
                bearer.rlc.downlink.discard = Some(Span::from_millis(50 + dice.below(200)));
                bearer.rlc.uplink.discard = Some(Span::from_millis(50 + dice.below(200)));
            }
            if dice.below(2) == 0 {
                bearer.rlc.downlink.queue = aqm::Config::DropTail(aqm::drop_tail::Config {
                    packets: Some(20),
                    ..aqm::drop_tail::Config::default()
                });
            }
        }
        fresh.host.room.bytes = Some(3000 + dice.below(100_000));
        fresh.host.gate.limit = any_limit(dice);
        fresh.host.gate.limit = with_completion(fresh.host.gate.limit, any_completion(dice));
        fresh.reports_host = dice.below(2) == 0;
        for bearer in &mut fresh.bearers {
            if dice.below(2) == 0 {
                bearer.rlc.downlink.queue = aqm::Config::UNLIMITED;
                let fair = aqm::Config::FqCodel(aqm::fq_codel::Config::default());
                let queue = if dice.below(2) == 0 { fair } else { aqm::Config::UNLIMITED };
                let limit = any_limit(dice);
                let room = Room { packets: None, bytes: Some(3000 + dice.below(100_000)) };
                let limit = with_completion(limit, any_completion(dice));
                bearer.above = Some(Above { gate: aqm::gate::Config { queue, limit }, room });
            }
        }
        config.ues.push(fresh);
    }
    if dice.below(4) == 0 {
        each_mac(&mut config, |mac| *mac = MacConfig::ideal());
    }
    each_mac(&mut config, |mac| mac.transmissions = 1 + dice.below(4) as u8);
    config.handover.forwarding = dice.below(2) == 0;
    config
}

fn any_limit(dice: &mut Dice) -> aqm::Limit {
    match dice.below(3) {
        0 => aqm::Limit::None,
        1 => aqm::Limit::Bql(aqm::bql::Config::default()),
        _ => aqm::Limit::DynRlc(aqm::dyn_rlc::Config::default()),
    }
}

fn any_completion(dice: &mut Dice) -> Completion {
    if dice.below(2) == 0 { Completion::Sent } else { Completion::Acknowledged }
}

/// Traffic that comes and goes. `World` checks the books after every step.
fn live(config: &Config, dice: &mut Dice, seed: u64) -> World {
    let mut world = World::seeded(config, seed);
    for _ in 0..400 {
        let longest = if dice.below(10) == 0 { 200_000 } else { 6_000 };
        let pause = dice.below(longest);
        let next = world.now + Span::from_micros(pause);
        world.run(next);
        let ue = dice.below(config.ues.len() as u64) as u32;
        let direction = if dice.below(2) == 0 { Direction::Downlink } else { Direction::Uplink };
        for _ in 0..1 + dice.below(12) {
            world.send_flow(direction, ue, 40 + dice.below(1460) as u32, dice.below(2));
        }
    }
    world
}

#[test]
fn packets_in_are_packets_out_dropped_or_held_after_every_step_of_any_network() {
    for seed in (0..60).chain([921, 1212]) {
        let mut dice = Dice(seed);
        let config = any_network(&mut dice);
        check(&config, &mut dice, seed);
    }
}

#[test]
fn so_they_are_with_two_carriers() {
    let mut used = 0;
    for seed in 100..160 {
        let mut dice = Dice(seed);
        let mut config = any_network(&mut dice);
        for cell in &mut config.cells {
            let of = cell.site.carrier;
            let prbs = [6, 50, 100][dice.below(3) as usize];
            let carrier = Carrier { downlink_hz: of.downlink_hz + 1e8, prbs, ..of };
            let power_dbm = [30.0, 20.0, -30.0][dice.below(3) as usize];
            cell.secondary = Some(Secondary { carrier, power_dbm });
        }
        let world = check(&config, &mut dice, seed);
        let is_second = |(_, event): &&(Time, Event)| match event {
            Event::Transmission(t) => t.cell as usize >= config.cells.len(),
            _ => false,
        };
        used += world.events.iter().filter(is_second).count();
    }
    assert!(used > 5_000, "{used}");
}

/// Lives in a network of `config`, and checks that nothing is lost, stopped, delivered twice or out of order.
fn check(config: &Config, dice: &mut Dice, seed: u64) -> World {
    let mut world = live(config, dice, seed);
    // Nothing is stopped for ever: what waits does so because the radio does not carry what is below.
    world.run(world.now + Span::from_secs(10));
    for (ue, state) in (0..).zip(&config.ues) {
        for way in [Direction::Downlink, Direction::Uplink] {
            let above = match way {
                Direction::Downlink => state.bearers.iter().filter_map(|b| b.above).collect(),
                Direction::Uplink => vec![state.host],
            };
            // What was sent is not seen from here if it waits for acknowledgements, nor what TM has taken and cannot send.
            let seen = above.iter().all(|above| above.gate.limit.completion() == Completion::Sent)
                && state.bearers.iter().all(|bearer| bearer.rlc.mode != Mode::Tm);
            // Below may be the rest of an SDU, which counts in the quota until its last byte is sent.
            let (above, below) = (world.ran.above_backlog(ue, way), world.ran.occupancy(ue, way));
            let stopped = seen && above.packets > 0 && below == 0;
            assert!(!stopped, "seed {seed}: ue {ue} {way:?} is stopped above an empty buffer");
        }
    }
    // In AM order holds within a bearer, and nothing arrives twice in any mode.
    let mut ids: Vec<u64> = world.arrivals.iter().map(|a| a.packet.id).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|w| w[0] < w[1]), "seed {seed}: a packet came twice");
    for (ue, state) in config.ues.iter().enumerate() {
        let bearer_of = |a: &&Arrival| if state.bearers.len() > 1 && a.packet.flow == 1 { 1 } else { 0 };
        for (b, bearer) in state.bearers.iter().enumerate() {
            if bearer.rlc.mode != Mode::Tm {
                for direction in [Direction::Downlink, Direction::Uplink] {
                    // Within a flow, under any discipline above.
                    for flow in 0..2 {
                        let these = |a: &&Arrival| {
                            (a.ue, a.direction, a.packet.flow) == (ue as u32, direction, flow) && bearer_of(a) == b
                        };
                        let ids = world.arrivals.iter().filter(these).map(|a| a.packet.id);
                        assert!(ids.is_sorted(), "seed {seed}: ue {ue} bearer {b} {direction:?} out of order");
                    }
                }
            }
        }
    }
    world
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let run = |seed: u64| {
        let mut dice = Dice(7);
        let mut config = any_network(&mut dice);
        config.ues[0] = UeConfig { air: ue(am(), loss_for(8.0)).air, ..ue(am(), 0.0) };
        let world = live(&config, &mut dice, seed);
        (world.arrivals, world.events.len(), world.ran.work())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn a_ue_more_does_not_change_what_the_others_draw() {
    let arrivals = |ues: usize| {
        let mut world = World::new(&network(Bandwidth::Mhz20, (0..ues).map(|_| ue(am(), loss_for(8.0))).collect()));
        for tick in 0..200 {
            world.run(us(tick * 3100));
            world.send(Direction::Downlink, 0, 1400);
        }
        world.run(ms(2000));
        world.arrivals
    };
    assert_eq!(arrivals(1), arrivals(5), "the others are idle");
}
