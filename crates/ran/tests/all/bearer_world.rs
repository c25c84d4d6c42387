//! A bearer whose blocks arrive late, in another order or not at all, with handovers between cells of LTE and NR, and what must
//! hold of it: SDUs are conserved, no grant is exceeded, what is announced can be sent, AM delivers everything exactly once and
//! in order, UM never reorders, and a bearer with nothing to do is silent.

use std::collections::BTreeMap;

use bolero::TypeGenerator;
use channel::Direction::{self, Downlink, Uplink};
use ran::pdcp::{self, Keep, Times};
use ran::rlc::{Am, Bearer, Block, Config, Mode};
use testkit::queue::TestPacket;
use units::{Span, Time};

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Op {
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
            assert_eq!([used == 0; 2], [block.is_empty(), block.pdus() == 0]);
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

/// Plays `ops`, beginning in the first of `configs`; what is delivered is in order if the modes order. If `lossless`, nothing is dropped.
pub(crate) fn play(configs: &[Config], ops: &[Op], lossless: bool) {
    let mut world = World::new(configs);
    for &op in ops {
        world.apply(op);
        world.check();
    }
    world.drain();
    world.check();
    let am = matches!(world.configs[world.config].mode, Mode::NrAm(_) | Mode::Am(_));
    let orders = configs.iter().all(|config| config.mode != Mode::Tm);
    for way in WAYS {
        let Fate { sent, delivered, dropped } = &world.fates[way as usize];
        if orders {
            assert!(delivered.is_sorted_by(|a, b| a < b), "out of order or twice");
        }
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

pub(crate) fn config(mode: Mode, queue: aqm::Config, discard: Option<u64>) -> Config {
    let pdcp = pdcp::Config { queue, discard: discard.map(Span::from_millis) };
    Config { mode, downlink: pdcp, uplink: pdcp }
}

pub(crate) fn plain(mode: Mode) -> Config {
    config(mode, aqm::Config::UNLIMITED, None)
}

pub(crate) fn lte_am() -> Mode {
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

/// Without what loses on purpose.
pub(crate) fn without_loss(ops: &[Op]) -> Vec<Op> {
    let gentle = |op: &Op| match *op {
        Op::HandOver { to, .. } => Op::HandOver { keep: [0, 0], to },
        op => op,
    };
    ops.iter().map(gentle).collect()
}
