//! A network with everything around it that tests need: packets, clock, and the books that packets are kept in.
#![allow(unreachable_pub)]

pub mod listening;

use aqm::{Completion, DropReason, Ecn, Limit, Packet};
use channel::{AirConfig, Bandwidth, Carrier, Channel, Direction, PathLoss, Random, Site};
use ran::pdcp;
use ran::rlc::{self, Am, Mode, Um};
use ran::{Above, BearerConfig, CellConfig, Config, Event, Filter, MacConfig, Ran, Room, Stream, UeConfig};
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

/// An LTE subframe.
pub const TTI: Span = Span::from_millis(1);

/// Changes the MAC of all cells.
pub fn each_mac(config: &mut Config, mut change: impl FnMut(&mut MacConfig)) {
    config.cells.iter_mut().for_each(|cell| change(&mut cell.mac));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pkt {
    pub id: u64,
    pub len: u32,
    pub flow: u64,
    pub created: Time,
    pub entered: Time,
}

impl Packet for Pkt {
    fn len(&self) -> u32 {
        self.len
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn priority(&self) -> u8 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn enqueued(&self) -> Time {
        self.entered
    }
    fn set_enqueued(&mut self, now: Time) {
        self.entered = now;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Time,
    pub ue: u32,
    pub direction: Direction,
    pub packet: Pkt,
}

pub struct World {
    pub ran: Ran<Pkt>,
    pub now: Time,
    pub sent: u64,
    pub arrivals: Vec<Arrival>,
    pub drops: Vec<(Pkt, DropReason)>,
    pub events: Vec<(Time, Event)>,
}

pub fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

pub fn us(n: u64) -> Time {
    Time::ZERO + Span::from_micros(n)
}

pub fn random(seed: u64) -> impl FnMut(Stream) -> Random {
    move |stream| {
        let n = match stream {
            Stream::Air(ue) => u64::from(ue) * 2,
            Stream::Decoding(ue) => u64::from(ue) * 2 + 1,
        };
        Random::seed_from_u64(seed.wrapping_mul(1_000_003) ^ n)
    }
}

impl World {
    pub fn new(config: &Config) -> World {
        World::seeded(config, 1)
    }

    pub fn seeded(config: &Config, seed: u64) -> World {
        World {
            ran: Ran::new(config, random(seed)),
            now: Time::ZERO,
            sent: 0,
            arrivals: Vec::new(),
            drops: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Runs until `end`, what is due at `end` included, and checks the books after each step.
    pub fn run(&mut self, end: Time) {
        while let Some(at) = self.ran.poll_timeout()
            && at <= end
        {
            assert!(at >= self.now, "a deadline in the past: {at} at {}", self.now);
            self.now = at;
            let (drops, events) = (&mut self.drops, &mut self.events);
            self.ran.handle_timeout(
                at,
                &mut |packet, reason| drops.push((packet, reason)),
                &mut |now: Time, event: &Event| events.push((now, *event)),
            );
            while let Some(d) = self.ran.poll_delivery() {
                let packet = d.packet;
                self.arrivals.push(Arrival { at, ue: d.ue, direction: d.direction, packet });
            }
            self.check();
        }
        self.now = end;
    }

    /// Packets in = packets out + dropped + held.
    pub fn check(&self) {
        let out = self.arrivals.len() + self.drops.len();
        assert_eq!(self.sent, out as u64 + self.ran.held(), "at {}", self.now);
    }

    pub fn send(&mut self, direction: Direction, ue: u32, len: u32) {
        self.send_flow(direction, ue, len, 0);
    }

    pub fn send_flow(&mut self, direction: Direction, ue: u32, len: u32, flow: u64) {
        let packet = Pkt { id: self.sent, len, flow, created: self.now, entered: self.now };
        self.sent += 1;
        let drops = &mut self.drops;
        let mut drops = |packet, reason| drops.push((packet, reason));
        match direction {
            Direction::Downlink => self.ran.handle_downlink(ue, packet, self.now, &mut drops),
            Direction::Uplink => self.ran.handle_uplink(ue, packet, self.now, &mut drops),
        }
        self.check();
    }

    /// Runs until `end` and keeps `packets` of 1500 bytes waiting in `direction` of each of `ues`.
    pub fn saturate(&mut self, direction: Direction, ues: &[u32], packets: u64, end: Time) {
        while self.now < end {
            for ue in ues {
                let waiting =
                    self.ran.rlc_backlog(*ue, direction).packets + self.ran.above_backlog(*ue, direction).packets;
                for _ in waiting..packets {
                    self.send(direction, *ue, 1500);
                }
            }
            let next = self.now + Span::from_millis(1);
            self.run(next);
        }
    }

    /// Bytes that arrived for or from `ue` since `from`.
    pub fn bytes(&self, direction: Direction, ue: u32, from: Time) -> u64 {
        let these = |a: &&Arrival| a.at >= from && a.ue == ue && a.direction == direction;
        self.arrivals.iter().filter(these).map(|a| u64::from(a.packet.len)).sum()
    }

    pub fn ids(&self, direction: Direction, ue: u32) -> Vec<u64> {
        let these = |a: &&Arrival| a.ue == ue && a.direction == direction;
        self.arrivals.iter().filter(these).map(|a| a.packet.id).collect()
    }
}

pub fn cell(bandwidth: Bandwidth) -> CellConfig {
    let site = Site { carrier: Carrier::lte(bandwidth), ..Site::default() };
    CellConfig { site, ..CellConfig::default() }
}

pub fn am() -> Mode {
    Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(45),
        poll_pdu: Some(32),
        poll_byte: Some(25_000),
        max_retx: 16,
        t_reordering: Span::from_millis(35),
        t_status_prohibit: Span::from_millis(10),
        status_alone: false,
    })
}

pub fn um() -> Mode {
    Mode::Um(Um::default())
}

/// Returns the limit, counting packets as completed at that time.
pub fn with_completion(mut limit: Limit, completed: Completion) -> Limit {
    match &mut limit {
        Limit::None => {}
        Limit::Bql(config) => config.completed = completed,
        Limit::DynRlc(config) => config.completed = completed,
    }
    limit
}

pub fn bearer(mode: Mode) -> BearerConfig {
    let pdcp = pdcp::Config { queue: aqm::Config::UNLIMITED, discard: None };
    let rlc = rlc::Config { mode, downlink: pdcp, uplink: pdcp };
    BearerConfig { qci: 9, filter: Filter::All, group: 3, rlc, nr: None, nr_buffer: None, above: None }
}

/// A UE that stands still behind a path loss of `loss_db`.
pub fn ue(mode: Mode, loss_db: f64) -> UeConfig {
    let channel = Channel::Modelled { path_loss: PathLoss::Fixed(loss_db), shadowing: None };
    UeConfig {
        air: AirConfig { channel, ..AirConfig::default() },
        cell: Some(0),
        aggregates: true,
        layers: 1,
        category: channel::tables::lte::Category::UNLIMITED,
        bearers: vec![bearer(mode)],
        host: Above {
            gate: aqm::gate::Config {
                queue: aqm::Config::PfifoFast(aqm::pfifo_fast::Config::default()),
                limit: aqm::Limit::None,
            },
            room: Room { packets: None, bytes: Some(100_000) },
        },
        reports_host: false,
        modem_drops: false,
    }
}

pub fn network(bandwidth: Bandwidth, ues: Vec<UeConfig>) -> Config {
    Config { cells: vec![cell(bandwidth)], ues, ..Config::default() }
}

/// A path loss that gives this SINR in the downlink of a 20 MHz cell: 30 dBm, noise figure 9 dB, 100 blocks.
pub fn loss_for(sinr_db: f64) -> f64 {
    let noise_dbm = -174.0 + 10.0 * (100.0f64 * 180_000.0).log10() + 9.0;
    30.0 - noise_dbm - sinr_db
}
