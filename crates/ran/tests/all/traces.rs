//! Networks of all kinds under random traffic, as tables of what arrives and what happens in each 200 ms. The other tests say
//! what is right; a change that none of them is about shows here, from which moment on and in which kinds of networks.

use std::fmt::Write;

use crate::support::{World, am, bearer, cell, each_mac, ms, network, ue, um, with_completion};
use aqm::{Completion, DropReason, Limit, bql, codel, dyn_rlc, fq_codel, gate};
use channel::fading::{self, Doppler, Profile};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Channel, Direction, Mobility, PathLoss, Position, Site};
use ran::rlc::{AmSn, Mode, NrAm, NrUm};
use ran::{
    Above, CellConfig, Config, ConfiguredGrant, Discipline, Drx, Duplex, Event, Filter, MacConfig, Nr, Pattern, Rat,
    Requests, Room, Secondary, ShortCycle, UeConfig,
};
use units::Span;

const LINES: u64 = 12;
const LINE: u64 = 200;

/// Knuth's MMIX generator.
struct Draw(u64);

impl Draw {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// FNV-1a.
fn hash(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs a network. Each UE has bursts and lone packets in either direction, and pauses; at the end, all drains.
fn table(config: &Config) -> String {
    let mut world = World::seeded(config, 7);
    let ues = config.ues.len() as u64;
    let mut draw = Draw(5);
    // How much is sent each millisecond, by UE and direction: nothing, little or much.
    let mut sends = vec![0; 2 * config.ues.len()];
    let mut out = String::new();
    let (mut events, mut arrivals, mut drops) = (0, 0, 0);
    for line in 1..=LINES {
        for now in (line - 1) * LINE..line * LINE {
            world.run(ms(now) + Span::from_micros(draw.below(999)));
            if line == LINES {
                continue;
            }
            for (flow, sends) in (0..).zip(&mut sends) {
                if draw.below(40) == 0 {
                    *sends = draw.below(4).saturating_sub(1);
                }
                let direction = if flow % 2 == 0 { Direction::Downlink } else { Direction::Uplink };
                let count = match *sends {
                    0 => u64::from(draw.below(300) == 0),
                    1 => u64::from(draw.below(8) == 0),
                    _ => draw.below(5) / 3,
                };
                for _ in 0..count {
                    let len = if draw.below(3) == 0 { 1500 } else { 40 + draw.below(1400) };
                    world.send_flow(direction, (flow / 2) as u32, len as u32, draw.below(3));
                }
            }
        }
        world.run(ms(line * LINE));
        write!(out, "{:>4} ms", line * LINE).unwrap();
        for (name, direction) in [("down", Direction::Downlink), ("up", Direction::Uplink)] {
            let these = world.arrivals[arrivals..].iter().filter(|arrival| arrival.direction == direction);
            let delays = these.map(|arrival| (arrival.at - arrival.packet.created).as_micros());
            let (count, sum) = delays.fold((0, 0), |(count, sum), delay| (count + 1, sum + delay));
            write!(out, "  {name} {count} in {sum} us").unwrap();
        }
        let order = world.arrivals[arrivals..].iter().fold(0, |order, arrival| hash(order, &format!("{arrival:?}")));
        let lost = world.drops[drops..].iter().fold(0, |lost, drop| hash(lost, &format!("{drop:?}")));
        let seen = world.events[events..].iter().fold(0, |seen, event| hash(seen, &format!("{event:?}")));
        let backlogs = (0..ues as u32).fold(0, |sum, ue| {
            let of = |direction| (world.ran.rlc_backlog(ue, direction), world.ran.above_backlog(ue, direction));
            hash(sum, &format!("{:?} {:?}", of(Direction::Downlink), of(Direction::Uplink)))
        });
        let counts = [world.drops.len() - drops, world.events.len() - events];
        writeln!(out, "  lost {}  events {}  {:08x}", counts[0], counts[1], (order ^ lost ^ seen ^ backlogs) as u32)
            .unwrap();
        (events, arrivals, drops) = (world.events.len(), world.arrivals.len(), world.drops.len());
    }
    for ue in 0..ues as u32 {
        let stats = world.ran.stats(ue);
        writeln!(out, "UE {ue}: {:08x}", hash(0, &format!("{stats:?}")) as u32).unwrap();
    }
    out
}

/// A UE in LTE's fading, and its speed as a Doppler shift.
fn faded(mode: Mode, loss_db: f64, hz: f64) -> UeConfig {
    let mut ue = ue(mode, loss_db);
    ue.air.fading = Some(fading::Config { profile: Profile::Eva, doppler: Doppler::Hz(hz) });
    ue
}

fn lte(bandwidth: Bandwidth) -> Config {
    network(
        bandwidth,
        vec![faded(am(), 100.0, 5.0), faded(um(), 122.0, 70.0), faded(am(), 132.0, 20.0), ue(um(), 140.0)],
    )
}

fn nr_mac(numerology: Numerology, duplex: Duplex) -> MacConfig {
    MacConfig { rat: Rat::Nr(Nr::new(numerology, duplex)), decoding: Span::from_micros(250), ..MacConfig::default() }
}

fn nr(numerology: Numerology, duplex: Duplex, prbs: u16) -> Config {
    let hz = numerology.subcarrier_hz();
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs, subcarrier_hz: hz };
    let site = Site { carrier, ..Site::default() };
    let cell = CellConfig { site, mac: nr_mac(numerology, duplex), ..CellConfig::default() };
    let modes = [
        Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() }),
        Mode::NrUm(NrUm::default()),
        Mode::NrAm(NrAm { sn: AmSn::Twelve, poll_pdu: Some(4), max_retx: 2, ..NrAm::default() }),
    ];
    let ues = modes.into_iter().zip([90.0, 118.0, 128.0]).map(|(mode, loss_db)| ue(mode, loss_db)).collect();
    Config { cells: vec![cell], ues, ..Config::default() }
}

/// A row of cells on one carrier, 400 m apart, UEs that drive along it, and one that stands.
fn row(cells: u32, of: impl Fn(u32) -> CellConfig) -> Config {
    let place = |i: u32| {
        let cell = of(i);
        CellConfig { site: Site { position: Position::new(f64::from(i) * 400.0, 0.0, 30.0), ..cell.site }, ..cell }
    };
    let drives = |x, speed, mode| {
        let mut ue = UeConfig { cell: None, ..ue(mode, 0.0) };
        ue.air.mobility = Mobility::line(Position::new(x, 30.0, 1.5), [speed, 0.0, 0.0]);
        ue.air.channel = Channel::Modelled {
            path_loss: PathLoss::LogDistance { exponent: 3.5, reference_m: 1.0, reference_db: 35.0 },
            shadowing: None,
        };
        ue.bearers[0].nr = Some(Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() }));
        ue
    };
    let ues = vec![drives(120.0, 60.0, am()), drives(260.0, -50.0, um()), drives(200.0, 0.0, am())];
    Config { cells: (0..cells).map(place).collect(), ues, ..Config::default() }
}

macro_rules! traces {
    ($($name:ident: $config:expr;)*) => {$(
        #[test]
        fn $name() {
            let config: Config = $config;
            insta::assert_snapshot!(stringify!($name), table(&config));
        }
    )*};
}

traces! {
    lte_in_fading: lte(Bandwidth::Mhz5);
    lte_with_narrow_grants: {
        let mut config = lte(Bandwidth::Mhz1_4);
        config.cells[0].downlink = Discipline::RoundRobin;
        config.cells[0].uplink = Discipline::RoundRobin;
        each_mac(&mut config, |mac| {
            mac.assignments = Some(2);
            mac.transmissions = 2;
            mac.link.worst_group = true;
            mac.requests = Requests { sr_period: 20, sr_prohibit: 1, sr_maximum: 2, bsr_periodic: None, first_grant: 20, ..Requests::default() };
        });
        config
    };
    lte_of_two_layers_and_the_best_ue_first: {
        let mut config = lte(Bandwidth::Mhz10);
        config.cells[0].downlink = Discipline::MaxThroughput;
        config.cells[0].uplink = Discipline::MaxThroughput;
        config.ues.iter_mut().for_each(|ue| ue.layers = 2);
        config
    };
    lte_with_sleep: {
        let mut config = lte(Bandwidth::Mhz5);
        let ms = Span::from_millis;
        each_mac(&mut config, |mac| {
            mac.drx = Some(Drx {
                on_duration: ms(4),
                inactivity: ms(10),
                cycle: ms(80),
                short: Some(ShortCycle { cycle: ms(20), count: 2 }),
                ..Drx::default()
            });
        });
        config
    };
    lte_with_managed_queues: {
        let mut config = lte(Bandwidth::Mhz3);
        let quick = fq_codel::Config { interval: Span::from_millis(50), ecn: false, ..fq_codel::Config::default() };
        let fair = aqm::Config::FqCodel(fq_codel::Config { packets: 60, ..quick });
        let limits = [Limit::Bql(bql::Config::default()), Limit::DynRlc(dyn_rlc::Config::default()), Limit::None];
        for (ue, limit) in config.ues.iter_mut().zip(limits) {
            let room = Room { packets: Some(20), bytes: Some(20_000) };
            ue.bearers[0].above = Some(Above { gate: gate::Config { queue: fair, limit }, room });
            let limit = with_completion(limit, Completion::Acknowledged);
            ue.host = Above { gate: gate::Config { queue: fair, limit }, room };
            ue.bearers[0].rlc.downlink.discard = Some(Span::from_millis(150));
            ue.bearers[0].rlc.uplink.discard = Some(Span::from_millis(100));
            ue.reports_host = true;
        }
        let mut urgent = bearer(um());
        (urgent.qci, urgent.group, urgent.filter) = (1, 1, Filter::Flows(vec![2]));
        config.ues[1].bearers.push(urgent);
        config.ues[3].modem_drops = true;
        config.ues[3].host.room.bytes = Some(10_000);
        config
    };
    lte_without_delays: {
        let mut config = lte(Bandwidth::Mhz5);
        each_mac(&mut config, |mac| *mac = MacConfig::ideal());
        config
    };
    lte_of_two_carriers: {
        let mut config = lte(Bandwidth::Mhz5);
        let carrier = Carrier { downlink_hz: 1.82e9, uplink_hz: 1.72e9, ..Carrier::lte(Bandwidth::Mhz3) };
        config.cells[0].secondary = Some(Secondary { carrier, power_dbm: 27.0 });
        config
    };
    lte_drive: {
        let mut config = row(3, |_| cell(Bandwidth::Mhz5));
        config.cells[2].load = 0.3;
        config
    };
    lte_drive_on_separate_carriers: row(3, |i| {
        let mut cell = cell(Bandwidth::Mhz5);
        cell.site.carrier.downlink_hz += 20e6 * f64::from(i);
        cell.site.carrier.uplink_hz += 20e6 * f64::from(i);
        cell
    });
    drive_from_lte_to_nr: row(2, |i| {
        let mut cell = cell(Bandwidth::Mhz5);
        if i == 1 {
            cell.mac = nr_mac(Numerology::Khz30, Duplex::Tdd(Pattern::DDDSU));
            cell.site.carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs: 24, subcarrier_hz: 30_000 };
        }
        cell
    });
    nr_drive: row(3, |_| {
        let carrier = Carrier { downlink_hz: 2.1e9, uplink_hz: 1.9e9, prbs: 24, subcarrier_hz: 30_000 };
        CellConfig { site: Site { carrier, ..Site::default() }, mac: nr_mac(Numerology::Khz30, Duplex::Fdd), ..CellConfig::default() }
    });
    nr_fdd: nr(Numerology::Khz15, Duplex::Fdd, 25);
    nr_tdd: nr(Numerology::Khz30, Duplex::Tdd(Pattern::DDDSU), 24);
    nr_flexible: nr(Numerology::Khz120, Duplex::Flexible, 32);
    nr_with_configured_grants: {
        let mut config = nr(Numerology::Khz30, Duplex::Fdd, 51);
        let grant = ConfiguredGrant { period: 10, prbs: 8, mcs: 8, processes: 2, timer: 2 };
        each_mac(&mut config, |mac| mac.configured = Some(grant));
        config
    };
    nr_with_sleep: {
        let mut config = nr(Numerology::Khz30, Duplex::Tdd(Pattern::DDDDDDDSUU), 24);
        let ms = Span::from_millis;
        each_mac(&mut config, |mac| {
            mac.drx = Some(Drx { on_duration: ms(4), inactivity: ms(8), cycle: ms(40), short: Some(ShortCycle { cycle: ms(10), count: 3 }), ..Drx::default() });
        });
        config
    };
    nr_of_two_carriers_and_layers: {
        let mut config = nr(Numerology::Khz30, Duplex::Fdd, 51);
        let carrier = Carrier { downlink_hz: 3.7e9, uplink_hz: 3.7e9, prbs: 24, subcarrier_hz: 30_000 };
        config.cells[0].secondary = Some(Secondary { carrier, power_dbm: 30.0 });
        config.ues.iter_mut().for_each(|ue| ue.layers = 4);
        config
    };
}

/// A packet of each kind is lost by something, so that losses are compared, too.
#[test]
fn the_traced_networks_lose_packets_by_overflow_and_by_control() {
    let mut config = network(Bandwidth::Mhz1_4, vec![ue(um(), 138.0)]);
    config.ues[0].bearers[0].rlc.downlink.queue =
        aqm::Config::Codel(codel::Config { packets: 60, ..codel::Config::default() });
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 80, ms(1500));
    let lost = |reason| world.drops.iter().any(|&(_, why)| why == reason);
    assert!(lost(DropReason::Overflow) && lost(DropReason::Control));
    assert!(world.events.iter().any(|(_, event)| matches!(event, Event::Transmission(t) if !t.decoded)));
}
