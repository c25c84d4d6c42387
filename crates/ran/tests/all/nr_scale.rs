//! NR cells of any configuration, alone and beside LTE: no packet is lost from the books, everything that can be
//! delivered is, runs repeat, and an idle network costs nothing.

use std::collections::BTreeMap;

use crate::support::{World, bearer, cell, listening, ms, ue, with_completion};
use aqm::{Completion, DropReason};
use channel::tables::nr::{McsTable, Numerology, fewest_symbols};
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::pdcp::{self, PdcpSn};
use ran::rlc::{Am, AmSn, Mode, NrAm, NrUm, Um, UmSn};
use ran::{
    Above, CellConfig, Config, ConfiguredGrant, Discipline, Drx, Duplex, Event, LinkAdaptation, MacConfig, Nr, Pattern,
    Rat, Requests, Room, Secondary, ShortCycle, Transmission,
};
use units::{Span, Time};

const WAYS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// A few numbers that look random and are the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn from(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Whether a slot with this many symbols of a direction carries data.
fn suffices(symbols: u8, control: u8, nr: &Nr) -> bool {
    symbols >= control + fewest_symbols(nr.dmrs, nr.overhead)
}

fn any_pattern(dice: &mut Dice, control: [u8; 2], nr: &Nr) -> Pattern {
    loop {
        let slots = if dice.below(4) == 0 { dice.from(1, 160) } else { dice.from(1, 10) } as u8;
        let downlink_slots = dice.from(0, slots.into()) as u8;
        let uplink_slots = dice.from(0, (slots - downlink_slots).into()) as u8;
        let special = dice.below(4) > 0;
        let symbols = |dice: &mut Dice| if special { dice.below(14) as u8 } else { 0 };
        let (downlink_symbols, uplink_symbols) = (symbols(dice), symbols(dice));
        let pattern = Pattern { slots, downlink_slots, downlink_symbols, uplink_symbols, uplink_slots };
        if pattern.is_valid()
            && (downlink_slots > 0 || suffices(downlink_symbols, control[0], nr))
            && (uplink_slots > 0 || suffices(uplink_symbols, control[1], nr))
        {
            return pattern;
        }
    }
}

fn any_nr(dice: &mut Dice) -> Nr {
    let numerology = dice.one(&Numerology::ALL);
    let control = [dice.from(1, 3) as u8, dice.from(1, 2) as u8];
    let mut nr = Nr::new(numerology, Duplex::Fdd);
    nr.dmrs = dice.from(0, 4) as u8;
    nr.overhead = dice.one(&[0, 0, 6, 12, 18]);
    let duplex = match dice.below(5) {
        0 => Duplex::Fdd,
        1 => Duplex::Flexible,
        2 => Duplex::Tdd(dice.one(&[Pattern::DDDSU, Pattern::DDDDDDDSUU])),
        _ => Duplex::Tdd(any_pattern(dice, control, &nr)),
    };
    let tables =
        [McsTable::Qam64, McsTable::Qam256, McsTable::LowSpectralEfficiency, McsTable::Qam1024].map(|table| table);
    nr.duplex = duplex;
    nr.tables = [dice.one(&tables), dice.one(&tables)];
    nr.k1 = dice.from(1, 16) as u8;
    nr.k2 = dice.from(1, 16) as u8;
    nr.processes = dice.one(&[1, 2, 4, 16]);
    nr.with_control(control[0], control[1])
}

fn any_requests(dice: &mut Dice) -> Requests {
    Requests {
        sr_period: dice.one(&[0, 1, 2, 5, 8, 80]),
        sr_prohibit: dice.below(8) as u8,
        sr_maximum: dice.one(&[1, 4, 64]),
        random_access: Span::from_millis(dice.from(1, 24)),
        bsr_periodic: dice.one(&[None, Some(Span::from_millis(1)), Some(Span::from_millis(10))]),
        bsr_retx: Span::from_millis(dice.one(&[10, 80, 320])),
        first_grant: dice.one(&[1, 20, 150, 1000]),
    }
}

fn any_nr_cell(dice: &mut Dice) -> CellConfig {
    let nr = any_nr(dice);
    // A single resource block of a few symbols has no room for headers.
    let prbs = dice.one(&[4, 11, 24, 66, 132, 273, 275]);
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs, subcarrier_hz: nr.numerology.subcarrier_hz() };
    let slot = Rat::Nr(nr).slot();
    let decoding = slot * dice.from(0, nr.k1.into());
    let link = LinkAdaptation {
        period: dice.one(&[slot, Span::from_millis(1), Span::from_millis(10)]),
        delay: Span::from_millis(dice.below(7)),
        worst_group: dice.below(4) == 0,
        ..LinkAdaptation::default()
    };
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        transmissions: dice.from(1, 8) as u8,
        decoding,
        link,
        requests: any_requests(dice),
        ..MacConfig::default()
    };
    CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() }
}

fn any_span(dice: &mut Dice) -> Span {
    Span::from_micros(dice.one(&[0, 50, 1000, 10_000, 80_000]))
}

/// The modes of a bearer in LTE and NR. In AM, nothing is lost.
fn any_modes(dice: &mut Dice) -> (Mode, Mode) {
    let sn = dice.one(&[PdcpSn::Twelve, PdcpSn::Eighteen]);
    let limit = if dice.below(3) == 0 { [Some(dice.from(3_000, 200_000)); 2] } else { [None; 2] };
    let mut nr = pdcp::Nr { sn, t_reordering: None, sdap: dice.below(2) == 0, limit };
    if dice.below(2) == 0 {
        nr.t_reordering = Some(any_span(dice));
        let um = Um { t_reordering: any_span(dice), ..Um::default() };
        let sn = dice.one(&[UmSn::Six, UmSn::Twelve]);
        return (Mode::Um(um), Mode::NrUm(NrUm { sn, t_reassembly: any_span(dice), pdcp: nr }));
    }
    // A timer shorter than a round trip repeats an SDU many times; with few repetitions the link would never last.
    let (t_poll_retransmit, max_retx) =
        if dice.below(2) == 0 { (any_span(dice), 100_000) } else { (Span::from_millis(320), dice.one(&[4, 32])) };
    let am = NrAm {
        sn: dice.one(&[AmSn::Twelve, AmSn::Eighteen]),
        t_poll_retransmit,
        poll_pdu: dice.one(&[Some(1), Some(4), Some(64), None]),
        poll_byte: dice.one(&[Some(1000), Some(125_000), None]),
        max_retx,
        t_reassembly: if max_retx < 100 { Span::from_millis(320) } else { any_span(dice) },
        t_status_prohibit: any_span(dice),
        pdcp: nr,
    };
    (Mode::Am(Am::default()), Mode::NrAm(am))
}

fn any_limit(dice: &mut Dice) -> aqm::Limit {
    match dice.below(3) {
        0 => aqm::Limit::None,
        1 => aqm::Limit::Bql(aqm::bql::Config::default()),
        _ => aqm::Limit::DynRlc(aqm::dyn_rlc::Config::default()),
    }
}

fn any_above(dice: &mut Dice) -> Above {
    let queues = [
        aqm::Config::UNLIMITED,
        aqm::Config::PfifoFast(aqm::pfifo_fast::Config::default()),
        aqm::Config::FqCodel(aqm::fq_codel::Config::default()),
    ];
    let (queue, limit) = (dice.one(&queues), any_limit(dice));
    let room = Room { packets: None, bytes: Some(3000 + dice.below(100_000)) };
    let limit = with_completion(limit, dice.one(&[Completion::Sent, Completion::Acknowledged]));
    Above { gate: aqm::gate::Config { queue, limit }, room }
}

/// A network of anything that can be configured, drawn from `dice`.
fn any_network(dice: &mut Dice) -> Config {
    let mut config = Config::default();
    for _ in 0..dice.from(1, 3) {
        let lte = dice.below(4) == 0;
        let mut any = if lte { cell(Bandwidth::ALL[dice.below(6) as usize]) } else { any_nr_cell(dice) };
        let disciplines = [Discipline::RoundRobin, Discipline::ProportionalFair, Discipline::MaxThroughput];
        (any.downlink, any.uplink) = (dice.one(&disciplines), dice.one(&disciplines));
        config.cells.push(any);
    }
    for _ in 0..dice.from(1, 5) {
        let (lte, nr) = any_modes(dice);
        // From strong to out of range.
        let mut fresh = ue(lte, dice.one(&[60.0, 100.0, 110.0, 120.0, 130.0, 160.0]));
        fresh.bearers[0].nr = Some(nr);
        fresh.cell = Some(dice.below(config.cells.len() as u64) as usize);
        fresh.layers = dice.from(1, 4) as u8;
        if dice.below(3) == 0 {
            let (lte, nr) = any_modes(dice);
            let mut second = bearer(lte);
            second.nr = Some(nr);
            second.qci = dice.from(1, 9) as u8;
            second.group = dice.below(8) as u8;
            second.filter = ran::Filter::Flows(vec![1]);
            fresh.bearers.push(second);
        }
        fresh.host = any_above(dice);
        fresh.reports_host = dice.below(2) == 0;
        for bearer in &mut fresh.bearers {
            bearer.above = (dice.below(3) == 0).then(|| any_above(dice));
        }
        config.ues.push(fresh);
    }
    config.handover.a3 = None;
    config.handover.forwarding = dice.below(3) > 0;
    config
}

/// A run with what was sent in it.
struct Run {
    world: World,
    sent: BTreeMap<u64, (u32, Direction, u64)>,
}

impl Run {
    fn send(&mut self, direction: Direction, ue: u32, len: u32, flow: u64) {
        self.sent.insert(self.world.sent, (ue, direction, flow));
        self.world.send_flow(direction, ue, len, flow);
    }

    /// Traffic that comes and goes, channels that fail and recover, handovers. `World` checks the books after each step.
    fn live(config: &Config, dice: &mut Dice, seed: u64) -> Run {
        let mut run = Run { world: World::seeded(config, seed), sent: BTreeMap::new() };
        let ues = config.ues.len() as u64;
        for _ in 0..80 {
            let longest = if dice.below(10) == 0 { 100_000 } else { 4_000 };
            let next = run.world.now + Span::from_micros(dice.below(longest));
            run.world.run(next);
            let ue = dice.below(ues) as u32;
            match dice.below(12) {
                0 => run.world.ran.set_sinr(ue, Some(-30.0), next),
                1 | 2 => {
                    let sinr = dice.one(&[None, Some(-6.0), Some(0.0), Some(12.0), Some(40.0)]);
                    run.world.ran.set_sinr(ue, sinr, next);
                }
                3 | 4 => {
                    let target = dice.below(config.cells.len() as u64) as u32;
                    // Rejections are part of it.
                    let _ = run.world.ran.hand_over(ue, target, next, &mut ());
                }
                _ => {
                    let (direction, flow) = (dice.one(&WAYS), dice.below(2));
                    let most = dice.one(&[1, 12, 12, 100]);
                    for _ in 0..dice.from(1, most) {
                        run.send(direction, ue, FLUSH + dice.below(1460) as u32, flow);
                    }
                }
            }
        }
        run
    }

    /// The packets that have arrived or were dropped and are longer than those that flush others.
    fn gone(&self) -> usize {
        let arrived = self.world.arrivals.iter().map(|a| a.packet.len);
        let dropped = self.world.drops.iter().map(|(packet, _)| packet.len);
        arrived.chain(dropped).filter(|len| *len > FLUSH).count()
    }

    /// Good channels for everybody, and time.
    fn settle(&mut self, ues: u32) {
        let now = self.world.now;
        for ue in 0..ues {
            self.world.ran.set_sinr(ue, Some(25.0), now);
        }
        let (mut idle, mut flushed, mut live) = (0, 0, 0);
        while self.world.ran.held() > 0 || self.world.ran.poll_timeout().is_some() {
            let before = self.world.arrivals.len() + self.world.drops.len();
            self.world.run(self.world.now + Span::from_millis(500));
            let after = self.world.arrivals.len() + self.world.drops.len();
            idle = if before == after { idle + 1 } else { 0 };
            if idle == 6 {
                // A cell of four resource blocks with one process takes minutes.
                let last = core::mem::replace(&mut live, self.gone());
                flushed = if last == live { flushed + 1 } else { 0 };
                if flushed == 40 {
                    return;
                }
                idle = 0;
                // What UM has lost is noticed with the next packets.
                for ue in 0..ues {
                    for (direction, flow) in WAYS.into_iter().flat_map(|way| [(way, 0), (way, 1)]) {
                        self.send(direction, ue, FLUSH, flow);
                    }
                }
            }
        }
    }
}

/// Bytes of the packets that flush others, and of the shortest others.
const FLUSH: u32 = 40;

fn modes(config: &Config, ue: u32, flow: u64) -> (Mode, Mode) {
    let bearers = &config.ues[ue as usize].bearers;
    let bearer = &bearers[if flow == 1 { bearers.len() - 1 } else { 0 }];
    (bearer.rlc.mode, bearer.nr.unwrap())
}

fn check(seed: u64) {
    let mut dice = Dice(seed);
    let config = any_network(&mut dice);
    check_network(&config, &mut dice, seed);
}

/// Lives in a network of `config`, and checks that everything comes to rest in the end.
fn check_network(config: &Config, dice: &mut Dice, seed: u64) -> World {
    let mut run = Run::live(config, dice, seed);
    run.settle(config.ues.len() as u32);
    let world = &mut run.world;
    assert_eq!(world.ran.held(), 0, "seed {seed}: something is held for ever");
    assert_eq!(world.ran.poll_timeout(), None, "seed {seed}: an idle network asks for calls");
    let work = world.ran.work();
    world.run(world.now + Span::from_secs(10));
    assert_eq!(world.ran.work(), work, "seed {seed}: idle time costs");
    let mut ids: Vec<u64> = world.arrivals.iter().map(|a| a.packet.id).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|w| w[0] < w[1]), "seed {seed}: a packet came twice");
    let mut last = BTreeMap::new();
    for a in &world.arrivals {
        let key = (a.ue, a.direction as usize, a.packet.flow);
        assert_eq!(run.sent[&a.packet.id], (a.ue, a.direction, a.packet.flow), "seed {seed}");
        assert!(last.insert(key, a.packet.id).is_none_or(|id| id < a.packet.id), "seed {seed}: {key:?} out of order");
    }
    for (packet, reason) in world.drops.iter().filter(|(_, reason)| *reason == DropReason::Loss) {
        let (ue, direction, flow) = run.sent[&packet.id];
        let is_am = matches!(modes(config, ue, flow), (Mode::Am(_), Mode::NrAm(_)));
        let kept = config.handover.forwarding || direction == Direction::Uplink;
        assert!(!(is_am && kept), "seed {seed}: AM has lost {packet:?} of ue {ue} {direction:?}, {reason:?}");
    }
    run.world
}

/// Discontinuous reception whose on-durations have slots of both directions.
fn any_drx(dice: &mut Dice, rat: Rat) -> Drx {
    let slots = match rat {
        Rat::Nr(Nr { duplex: Duplex::Tdd(pattern), .. }) => pattern.slots.into(),
        _ => 1,
    };
    let millis = |dice: &mut Dice, of: &[u64]| Span::from_millis(dice.one(of));
    let cycle = dice.one(&[10, 20, 32, 40, 64, 80, 160]);
    let fitting: Vec<u64> =
        [2, 4, 5, 8, 10, 16, 20, 32, 40].into_iter().filter(|short: &u64| u64::is_multiple_of(cycle, *short)).collect();
    let short = ShortCycle { cycle: millis(dice, &fitting), count: dice.from(1, 16) as u8 };
    Drx {
        on_duration: rat.slot() * (slots + dice.one(&[0, 0, 1, 7, 80])),
        inactivity: millis(dice, &[0, 1, 2, 5, 10, 60]),
        cycle: Span::from_millis(cycle),
        offset: Some(Span::from_millis(dice.below(cycle))),
        short: (dice.below(2) == 0).then_some(short),
        retransmission: dice.one(&[0, 1, 2, 4, 8, 16, 320]),
        uplink_retransmission: dice.one(&[0, 1, 2, 4, 8, 16, 320]),
        harq_rtt: dice.from(0, 56) as u8,
        uplink_harq_rtt: dice.from(0, 56) as u8,
    }
}

fn any_drx_network(dice: &mut Dice) -> Config {
    let mut config = any_network(dice);
    for cell in &mut config.cells {
        if let Rat::Nr(nr) = &mut cell.mac.rat {
            *nr = nr.with_control(1, 1);
        }
        cell.mac.drx = (dice.below(4) > 0).then(|| any_drx(dice, cell.mac.rat));
    }
    config
}

/// Checks when the UEs have listened; returns how many blocks that concerns, and of how many UEs it is known how long they
/// slept. Random accesses are not events.
fn check_listening(config: &Config, world: &mut World, seed: u64) -> (usize, usize) {
    let (mut checked, mut compared) = (0, 0);
    for ue in (0..config.ues.len() as u32).filter(|ue| world.ran.stats(*ue).random_accesses == 0).collect::<Vec<_>>() {
        let (blocks, asleep) = listening::check(config, &world.events, ue, world.now);
        checked += blocks;
        if let Some(asleep) = asleep {
            assert_eq!(world.ran.time_asleep(ue, world.now), asleep, "seed {seed}: ue {ue}");
            compared += 1;
        }
    }
    (checked, compared)
}

#[test]
fn ues_are_served_in_their_active_time_only_and_nothing_is_stuck() {
    let (mut served, mut compared, mut moved) = (0, 0, 0);
    for seed in (1000..1300).chain([3143, 4720]) {
        let mut dice = Dice(seed);
        let config = any_drx_network(&mut dice);
        let mut world = check_network(&config, &mut dice, seed);
        let (checked, told) = check_listening(&config, &mut world, seed);
        served += checked;
        compared += told;
        let stats = (0..config.ues.len() as u32).map(|ue| world.ran.stats(ue));
        moved += stats.map(|stats| stats.handovers + stats.link_failures).sum::<u64>();
    }
    assert!(served > 60_000 && compared > 80 && moved > 80, "{served} {compared} {moved}");
}

#[test]
fn everything_is_delivered_or_dropped_in_the_end_in_any_network() {
    for seed in (0..60).chain([210, 244, 277, 349, 427, 484, 657, 871, 5679, 6002]) {
        check(seed);
    }
}

/// Adds second carriers, UEs that cannot use them, and configured grants.
fn aggregate(config: &mut Config, dice: &mut Dice) {
    for cell in &mut config.cells {
        let period = dice.one(&[1, 2, 5, 10, 40, 71, 160]) * dice.one(&[1, 1, 5, 10]);
        let grant = ConfiguredGrant {
            period,
            prbs: dice.from(1, 30) as u16,
            mcs: dice.from(0, 27) as u8,
            processes: dice.from(1, 4) as u8,
            timer: dice.from(1, 3) as u8,
        };
        let is_valid = grant.is_valid(cell.mac.rat, cell.site.carrier.prbs);
        cell.mac.configured = (is_valid && dice.below(2) == 0).then_some(grant);
        let first = cell.site.carrier;
        let prbs = if matches!(cell.mac.rat, Rat::Nr(_)) { dice.one(&[4, 66, 275]) } else { dice.one(&[6, 50, 100]) };
        let carrier = Carrier { downlink_hz: first.downlink_hz + 1e8, prbs, ..first };
        let power_dbm = dice.one(&[30.0, 30.0, -30.0]);
        cell.secondary = (dice.below(3) > 0).then_some(Secondary { carrier, power_dbm });
    }
    config.ues.iter_mut().for_each(|ue| ue.aggregates = dice.below(4) > 0);
}

/// Checks that a cell has not granted a resource block twice, nor a UE two blocks of one slot.
fn check_uplink_blocks(events: &[(Time, Event)], seed: u64) {
    let mut taken: BTreeMap<(Time, u32), Vec<Transmission>> = BTreeMap::new();
    for (at, event) in events {
        let Event::Transmission(t) = event else { continue };
        if t.direction == Direction::Uplink {
            let others = taken.entry((*at, t.cell)).or_default();
            for other in others.iter() {
                let is_apart = t.first_prb >= other.first_prb + other.prbs || other.first_prb >= t.first_prb + t.prbs;
                assert!(is_apart && other.ue != t.ue, "seed {seed} at {at}: {other:?}, {t:?}");
            }
            others.push(*t);
        }
    }
}

#[test]
fn everything_is_delivered_or_dropped_in_the_end_with_two_carriers() {
    let (mut used, mut listened, mut compared) = (0, 0, 0);
    for seed in (2000..2120).chain([2222]) {
        let mut dice = Dice(seed);
        let mut config = if seed % 2 == 0 { any_network(&mut dice) } else { any_drx_network(&mut dice) };
        aggregate(&mut config, &mut dice);
        let mut world = check_network(&config, &mut dice, seed);
        check_uplink_blocks(&world.events, seed);
        if seed % 2 == 1 {
            let (checked, told) = check_listening(&config, &mut world, seed);
            listened += checked;
            compared += told;
        }
        let first = config.cells.len() as u32;
        let blocks = world.events.iter().filter(|(_, event)| match event {
            Event::Transmission(t) => t.cell >= first,
            _ => false,
        });
        used += blocks.count();
    }
    assert!(used > 5_000 && listened > 10_000 && compared > 10, "{used} {listened} {compared}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 7, 11] {
        let run = || {
            let mut dice = Dice(seed);
            let config = any_network(&mut dice);
            let Run { world, .. } = Run::live(&config, &mut dice, seed);
            (world.arrivals, world.events, world.drops, world.ran.work())
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

/// A cell of 66 blocks of 120 kHz with `ues` near it.
fn crowd(duplex: Duplex, ues: usize, discipline: Discipline) -> Config {
    let nr = Nr::new(Numerology::Khz120, duplex);
    let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 66, subcarrier_hz: 120_000 };
    let mac = MacConfig { rat: Rat::Nr(nr), decoding: Span::from_micros(125), ..MacConfig::default() };
    let mut cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    (cell.downlink, cell.uplink) = (discipline, discipline);
    let mut one = ue(Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() }), 50.0);
    one.host.room.bytes = Some(4_000_000);
    Config { cells: vec![cell], ues: vec![one; ues], ..Config::default() }
}

/// Mbit/s of each UE in a direction, while all UEs are saturated in `ways`.
fn rates(config: &Config, ways: &[Direction], of: Direction) -> Vec<f64> {
    let mut world = World::new(config);
    let ues: Vec<u32> = (0..config.ues.len() as u32).collect();
    let packets = 3000 / ues.len() as u64;
    while world.now < ms(220) {
        let next = world.now + Span::from_millis(2);
        for way in ways {
            for ue in &ues {
                let waiting = world.ran.rlc_backlog(*ue, *way).packets + world.ran.above_backlog(*ue, *way).packets;
                (waiting..packets).for_each(|_| world.send(*way, *ue, 1500));
            }
        }
        world.run(next);
    }
    ues.iter().map(|ue| world.bytes(of, *ue, ms(120)) as f64 * 8.0 / 0.1 / 1e6).collect()
}

#[test]
fn a_saturated_cell_carries_its_blocks_in_both_directions_at_once() {
    // 66 blocks of 144 elements with 5.5547 bits are 52791 bits: a block has 53288 (38.214 5.1.3.2).
    let whole = 53_288.0 * 8000.0 / 1e6;
    for (duplex, downlink, uplink) in [
        (Duplex::Fdd, 1.0, 1.0),
        // 3 slots of 12 symbols and one of 8, and 1 slot of 12, of 5 slots.
        (Duplex::Tdd(Pattern::DDDSU), (3.0 + 8.0 / 12.0) / 5.0, 1.0 / 5.0),
        (Duplex::Tdd(Pattern::DDDDDDDSUU), (7.0 + 4.0 / 12.0) / 10.0, (2.0 + 2.0 / 12.0) / 10.0),
    ] {
        let config = crowd(duplex, 1, Discipline::RoundRobin);
        for (way, part) in [(Direction::Downlink, downlink), (Direction::Uplink, uplink)] {
            let alone = rates(&config, &[way], way)[0];
            let both = rates(&config, &WAYS, way)[0];
            // Headers of RLC, PDCP and MAC are 0.6 % of a packet.
            let most = whole * part;
            assert!((0.95..1.0).contains(&(both / most)), "{duplex:?} {way:?}: {both} of {most} Mbit/s");
            assert!((both / alone - 1.0).abs() < 0.02, "{duplex:?} {way:?}: {both}, and alone {alone} Mbit/s");
        }
    }
}

#[test]
fn twenty_equal_ues_share_a_cell_equally() {
    for discipline in [Discipline::RoundRobin, Discipline::ProportionalFair] {
        for duplex in [Duplex::Fdd, Duplex::Tdd(Pattern::DDDSU)] {
            for way in WAYS {
                let rates = rates(&crowd(duplex, 20, discipline), &WAYS, way);
                let mean = rates.iter().sum::<f64>() / 20.0;
                let worst = rates.iter().map(|rate| (rate / mean - 1.0).abs()).fold(0.0, f64::max);
                assert!(worst < 0.1, "{discipline:?} {duplex:?} {way:?}: {rates:?}");
            }
        }
    }
}

#[test]
fn round_robin_shares_a_carrier_of_which_an_equal_part_is_too_small() {
    // With many UEs, a part is a single resource block; a weak UE needs several in the uplink.
    for (way, weaker_db) in [(WAYS[0], 0.0), (WAYS[1], 0.0), (WAYS[1], 75.0)] {
        for ues in [10, 25, 40, 100] {
            let sum = |discipline| {
                let mut config = crowd(Duplex::Fdd, ues, discipline);
                config.ues.iter_mut().for_each(|ue| ue.air.power.max_dbm -= weaker_db);
                rates(&config, &[way], way).iter().sum::<f64>()
            };
            let [pf, rr] = [Discipline::ProportionalFair, Discipline::RoundRobin].map(sum);
            println!("{way:?}, {ues} UEs, {weaker_db} dB weaker: {pf:.1} and {rr:.1} Mbit/s");
            // Its blocks are smaller, have more headers, and need a better channel.
            assert!(rr > 0.6 * pf, "{way:?}, {ues} UEs, {weaker_db} dB weaker: {pf} and {rr} Mbit/s");
        }
    }
}

#[test]
fn a_weak_uplink_is_served_beside_a_busy_downlink_in_flexible_slots() {
    // Its power suffices for one resource block, which needs more symbols than one UE's share of a slot.
    let mut config = crowd(Duplex::Flexible, 11, Discipline::RoundRobin);
    config.ues[10].air.power.max_dbm -= 75.0;
    let mut world = World::new(&config);
    let busy: Vec<u32> = (0..10).collect();
    world.saturate(Direction::Downlink, &busy, 200, ms(50));
    let mut sent = Vec::new();
    for n in 0..20 {
        sent.push(world.sent);
        world.send(Direction::Uplink, 10, 100);
        world.saturate(Direction::Downlink, &busy, 200, ms(50 + 20 * (n + 1)));
    }
    assert_eq!(world.ids(Direction::Uplink, 10), sent);
    let sinr = |(_, event): &(Time, Event)| match event {
        Event::Transmission(t) if t.ue == 10 && t.direction == Direction::Uplink => Some(t.sinr_cdb),
        _ => None,
    };
    assert!(world.events.iter().filter_map(sinr).max() < Some(600), "it is weak");
}
