//! Bearers of NR under any grants, losses and reordering of HARQ, and handovers, also between NR and LTE: AM delivers
//! everything exactly once and in order, UM never reorders, SDUs are conserved, no grant is exceeded, what is announced
//! can be sent, and a bearer with nothing to do is silent.

use std::collections::BTreeMap;

use aqm::{codel, drop_tail};
use bolero::{TypeGenerator, check};
use channel::Direction::{self, Downlink, Uplink};
use ran::pdcp::{self, Keep, Nr, PdcpSn, Times};
use ran::rlc::{Am, AmSn, Bearer, Block, Config, Mode, NrAm, NrUm, Um, UmSn};
use testkit::queue::TestPacket;
use units::{Span, Time};

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Op {
    /// SDUs of one length arrive.
    Arrive { uplink: bool, count: u8, len: u16 },
    /// A subframe with a grant each way. The blocks are lost, or arrive after 1 + 8 * k ms.
    Grant { downlink: u16, uplink: u16, lost: [bool; 2], late: [u8; 2] },
    /// Subframes with the same grants, of which the ones with a bit set in `lost` are lost.
    Grants { bytes: u16, lost: u32 },
    /// Nothing is sent for a while.
    Wait { ms: u8 },
    /// A handover, to a cell with configuration `to` of the test.
    HandOver { keep: [u8; 2], to: u8 },
}

const WAYS: [Direction; 2] = [Downlink, Uplink];
/// Maximum occupancy by direction, where it is limited.
const LIMIT: [Option<u64>; 2] = [Some(20_000), Some(9_000)];

/// What became of the SDUs of one direction.
#[derive(Default)]
struct Fate {
    sent: u64,
    delivered: Vec<u64>,
    dropped: Vec<u64>,
}

struct World {
    bearer: Bearer<TestPacket>,
    /// The configurations of the cells, and the index of the one in use.
    configs: Vec<Config>,
    config: usize,
    now: Time,
    fates: [Fate; 2],
    /// Blocks on their way by (when they arrive, their number).
    air: BTreeMap<(Time, u64), (Direction, Block)>,
    blocks: u64,
}

/// The direction of a packet is its flow.
fn note(fates: &mut [Fate; 2], packet: &TestPacket, delivered: bool) {
    let fate = &mut fates[packet.flow as usize];
    if delivered { &mut fate.delivered } else { &mut fate.dropped }.push(packet.id);
}

macro_rules! sinks {
    ($world:expr, $deliver:ident, $drops:ident) => {
        let fates = std::cell::RefCell::new(&mut $world.fates);
        let mut $deliver = |way: Direction, packet: TestPacket, times: Times| {
            assert_eq!(packet.flow, way as u64);
            assert!(packet.enqueued <= times.first_sent && times.first_sent <= times.last_sent);
            assert!(times.last_sent <= $world.now);
            note(&mut fates.borrow_mut(), &packet, true);
        };
        let mut $drops = |packet: TestPacket, _: aqm::DropReason| note(&mut fates.borrow_mut(), &packet, false);
    };
}

impl World {
    fn new(configs: &[Config]) -> World {
        World {
            bearer: Bearer::new(&configs[0]),
            configs: configs.to_vec(),
            config: 0,
            now: Time::from_nanos(1),
            fates: Default::default(),
            air: BTreeMap::new(),
            blocks: 0,
        }
    }

    fn arrive(&mut self, way: Direction, len: u16) {
        let id = self.fates[way as usize].sent;
        self.fates[way as usize].sent += 1;
        sinks!(self, _deliver, drops);
        // From acknowledgements to jumbo frames.
        let len = 1 + u32::from(len % 9000);
        self.bearer.enqueue(way, TestPacket::new(id, way as u64, len), self.now, &mut drops);
    }

    fn send(&mut self, way: Direction, grant: u32, lost: bool, late: u8) {
        let before = self.bearer.backlog(way, self.now);
        assert_eq!(self.bearer.has_data(way, self.now), !before.is_empty());
        let mut block = Block::default();
        {
            sinks!(self, _deliver, drops);
            let used = self.bearer.build(way, grant, self.now, &mut block, &mut drops);
            assert_eq!(used, block.bytes());
            assert!(used <= grant, "{used} bytes in a grant of {grant}");
            assert!(used == 0 || !before.is_empty(), "something was sent, and nothing was announced");
            assert_eq!(used == 0, block.is_empty() && block.pdus() == 0);
            // A discipline may drop all there is when it is served.
            let config = &self.configs[self.config];
            if grant >= 25 && config == &plain(config.mode) {
                assert!(used > 0 || before.is_empty(), "{before:?} was announced, and nothing was sent in {grant}");
            }
            if lost {
                self.bearer.lost(way, &block, &mut drops);
            }
        }
        if !lost && !block.is_empty() {
            self.blocks += 1;
            let at = self.now + Span::from_millis(1 + 8 * u64::from(late % 4));
            self.air.insert((at, self.blocks), (way, block));
        }
    }

    /// The next subframe begins.
    fn tick(&mut self) {
        self.now += Span::from_millis(1);
        sinks!(self, deliver, drops);
        if self.bearer.poll_timeout().is_some_and(|due| due <= self.now) {
            self.bearer.handle_timeout(self.now, &mut deliver, &mut drops);
        }
        assert!(self.bearer.poll_timeout().is_none_or(|due| due > self.now), "a time-out is due for ever");
        while let Some(entry) = self.air.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (way, block) = entry.remove();
            self.bearer.receive(way, &block, self.now, &mut deliver, &mut drops);
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Arrive { uplink, count, len } => {
                (0..=count % 32).for_each(|_| self.arrive(if uplink { Uplink } else { Downlink }, len));
            }
            Op::Grant { downlink, uplink, lost, late } => {
                self.send(Downlink, u32::from(downlink % 4000), lost[0], late[0]);
                self.send(Uplink, u32::from(uplink % 4000), lost[1], late[1]);
                self.tick();
            }
            Op::Grants { bytes, lost } => {
                for n in 0..32 {
                    let lost = lost & (1 << n) != 0;
                    self.send(Downlink, u32::from(bytes), lost, 0);
                    self.send(Uplink, u32::from(bytes), lost, 0);
                    self.tick();
                }
            }
            Op::Wait { ms } => (0..ms).for_each(|_| self.tick()),
            Op::HandOver { keep, to } => {
                let keep = keep.map(|k| [Keep::All, Keep::All, Keep::Queue, Keep::Nothing][usize::from(k % 4)]);
                let to = usize::from(to) % self.configs.len();
                sinks!(self, deliver, drops);
                if to == self.config {
                    self.bearer.reestablish(keep[0], keep[1], self.now, &mut deliver, &mut drops);
                } else {
                    let config = &self.configs[to];
                    self.bearer.reconfigure(config, keep[0], keep[1], self.now, &mut deliver, &mut drops);
                    self.config = to;
                }
            }
        }
    }

    fn check(&self) {
        for way in WAYS {
            let fate = &self.fates[way as usize];
            let inside = self.bearer.queue(way).packets + self.bearer.in_transit(way) as u64;
            assert_eq!(fate.sent, fate.delivered.len() as u64 + fate.dropped.len() as u64 + inside, "conservation");
            let limit = match self.configs[self.config].mode {
                Mode::NrAm(am) => am.pdcp.limit,
                Mode::NrUm(um) => um.pdcp.limit,
                _ => [None; 2],
            };
            assert!(limit[way as usize].is_none_or(|limit| self.bearer.occupancy(way) <= limit));
        }
    }

    /// Sends without losses until nothing is left to do.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            let idle = |way| self.bearer.backlog(way, self.now).is_empty();
            if WAYS.into_iter().all(idle) && self.air.is_empty() && self.bearer.poll_timeout().is_none() {
                return;
            }
            WAYS.into_iter().for_each(|way| self.send(way, 9422, false, 0));
            self.tick();
        }
        panic!("a bearer without losses does not come to rest");
    }
}

/// Plays `ops`; what is delivered is in order. If `lossless`, nothing is dropped.
fn play(configs: &[Config], ops: &[Op], lossless: bool) {
    let mut world = World::new(configs);
    for &op in ops {
        world.apply(op);
        world.check();
    }
    world.drain();
    world.check();
    let am = matches!(world.configs[world.config].mode, Mode::NrAm(_) | Mode::Am(_));
    for way in WAYS {
        let Fate { sent, delivered, dropped } = &world.fates[way as usize];
        assert!(delivered.is_sorted_by(|a, b| a < b), "out of order or twice");
        assert_eq!(world.bearer.queue(way).packets, 0);
        if am {
            assert_eq!(world.bearer.in_transit(way), 0);
            assert_eq!(world.bearer.occupancy(way), 0);
            let mut all: Vec<u64> = delivered.iter().chain(dropped).copied().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..*sent), "each SDU has one fate");
        }
        if lossless {
            assert!(dropped.is_empty() && delivered.len() as u64 == *sent);
        }
    }
}

fn config(mode: Mode, queue: aqm::Config, discard: Option<u64>) -> Config {
    let pdcp = pdcp::Config { queue, discard: discard.map(Span::from_millis) };
    Config { mode, downlink: pdcp, uplink: pdcp }
}

fn plain(mode: Mode) -> Config {
    config(mode, aqm::Config::default(), None)
}

fn am() -> NrAm {
    NrAm {
        sn: AmSn::Twelve,
        t_poll_retransmit: Span::from_millis(20),
        poll_pdu: Some(4),
        poll_byte: Some(5000),
        max_retx: u32::MAX,
        t_reassembly: Span::from_millis(15),
        t_status_prohibit: Span::from_millis(10),
        pdcp: Nr { t_reordering: None, sdap: true, ..Nr::default() },
    }
}

fn um(sn: UmSn, t_reordering: u64) -> Mode {
    let pdcp = Nr { t_reordering: Some(Span::from_millis(t_reordering)), ..Nr::default() };
    Mode::NrUm(NrUm { sn, t_reassembly: Span::from_millis(15), pdcp })
}

fn lte_am() -> Mode {
    Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(20),
        poll_pdu: Some(4),
        poll_byte: Some(5000),
        max_retx: u32::MAX,
        t_reordering: Span::from_millis(15),
        t_status_prohibit: Span::from_millis(10),
        status_alone: false,
    })
}

/// Another length of everything that has several, and timers that expire at once.
fn hasty_am() -> NrAm {
    NrAm {
        sn: AmSn::Eighteen,
        t_poll_retransmit: Span::ZERO,
        poll_pdu: None,
        poll_byte: Some(1),
        t_reassembly: Span::ZERO,
        t_status_prohibit: Span::ZERO,
        pdcp: Nr { sn: PdcpSn::Eighteen, sdap: false, ..am().pdcp },
        ..am()
    }
}

fn without_loss(ops: &[Op]) -> Vec<Op> {
    let gentle = |op: &Op| match *op {
        Op::HandOver { to, .. } => Op::HandOver { keep: [0, 0], to },
        op => op,
    };
    ops.iter().map(gentle).collect()
}

#[test]
fn am_delivers_everything_once_and_in_order() {
    let configs = [plain(Mode::NrAm(am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn am_without_patience_delivers_everything_once_and_in_order() {
    let configs = [plain(Mode::NrAm(hasty_am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn handovers_between_lte_and_nr_lose_nothing_in_am() {
    let configs = [plain(Mode::NrAm(am())), plain(lte_am()), plain(Mode::NrAm(hasty_am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn handovers_between_all_modes_keep_order_and_conserve() {
    let short = NrAm { pdcp: Nr { t_reordering: Some(Span::from_millis(10)), ..am().pdcp }, ..am() };
    let codel = codel::Params { target: Span::from_millis(5), interval: Span::from_millis(20), ..Default::default() };
    let codel = aqm::Config::Codel(codel::Config { packets: Some(100), params: codel });
    let configs = [
        plain(Mode::NrAm(am())),
        config(Mode::NrAm(short), codel, Some(100)),
        plain(um(UmSn::Twelve, 30)),
        config(um(UmSn::Six, 0), codel, Some(50)),
        plain(lte_am()),
        plain(Mode::Um(Um::default())),
    ];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn am_delivers_what_queues_and_handovers_leave_once_and_in_order() {
    let limit = drop_tail::Config { packets: Some(40), bytes: Some(60_000), victim: drop_tail::Victim::Oldest };
    let queue = aqm::Config::DropTail(limit);
    let configs = [config(Mode::NrAm(am()), queue, Some(50))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn am_gives_up_in_order_when_t_reordering_is_short() {
    for t_reordering in [0, 10, 80] {
        let pdcp = Nr { t_reordering: Some(Span::from_millis(t_reordering)), ..am().pdcp };
        let configs = [plain(Mode::NrAm(NrAm { pdcp, ..am() }))];
        check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
    }
}

#[test]
fn a_limit_holds_for_pdcp_and_rlc_together() {
    for mode in [Mode::NrAm(am()), um(UmSn::Twelve, 20)] {
        let mode = match mode {
            Mode::NrAm(am) => Mode::NrAm(NrAm { pdcp: Nr { limit: LIMIT, ..am.pdcp }, ..am }),
            Mode::NrUm(um) => Mode::NrUm(NrUm { pdcp: Nr { limit: LIMIT, ..um.pdcp }, ..um }),
            mode => mode,
        };
        let configs = [plain(mode)];
        check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
    }
}

#[test]
fn um_with_long_numbers_never_reorders() {
    let configs = [config(um(UmSn::Twelve, 30), aqm::Config::default(), Some(100))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn um_with_short_numbers_never_reorders() {
    let configs = [plain(um(UmSn::Six, 10))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn what_a_discard_leaves_without_a_poll_is_acknowledged() {
    // Others wait, so that the last SDU has no poll. They are discarded before the poll of an earlier one is answered.
    let codel = codel::Params { target: Span::from_millis(5), interval: Span::from_millis(20), ..Default::default() };
    let codel = aqm::Config::Codel(codel::Config { packets: Some(100), params: codel });
    let configs = [config(Mode::NrAm(am()), codel, Some(100))];
    let grant = |downlink| Op::Grant { downlink, uplink: 0, lost: [false; 2], late: [3; 2] };
    for wait in 60..110 {
        let ops = [
            Op::Arrive { uplink: false, count: 30, len: 4316 },
            grant(126),
            grant(839),
            Op::Wait { ms: wait },
            Op::HandOver { keep: [0; 2], to: 0 },
        ];
        play(&configs, &ops, false);
    }
}
