//! One UE's radio: everything between it and all cells.
//!
//! The SINR of a resource block is the received power of a resource element over noise and the received powers of the
//! other cells on the same carrier, each times its load. Power is even over a carrier.
//!
//! Deviations:
//! 1. Fast fading is on the serving cell's link alone: interference and RSRP have their means over it. The layer 3
//!    filter of a UE leaves little of it in an RSRP.
//! 2. Uplink and downlink fade independently, as on two carriers, and shadow alike.
//! 3. Uplink interference is a constant noise rise, in the cell's noise figure. Reference signals of an idle cell do not
//!    interfere with data.
//! 4. A recorded SINR or CQI, and one that is set ([`Air::set_sinr`]), also stands for the received power that it would
//!    need without interference, from which the uplink follows as from a path loss.

use std::sync::Arc;

use rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;
use units::Time;

use crate::fading::{self, Doppler, Fading, Turns};
use crate::pathloss::{Antenna, LIGHT, PathLoss, Sight, noise_dbm};
use crate::phy::cqi_sinr_db;
use crate::recorded::Quantity;
use crate::shadowing::Process;
use crate::tables::Direction;
use crate::tables::lte::{Bandwidth, SUBCARRIER_HZ, SUBCARRIERS};
use crate::{Mobility, Position, Random, Recorded, SUBFRAME_NANOS, Shadowing, Sinr, decibels, linear};

/// How much more SINR a recorded CQI stands for than the least that gives it, in dB, so that it gives it.
const CQI_MARGIN_DB: f64 = 0.05;

/// A pair of carriers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// Centre of the downlink in Hz.
    pub downlink_hz: f64,
    /// Centre of the uplink in Hz.
    pub uplink_hz: f64,
    /// Width of each.
    pub bandwidth: Bandwidth,
}

impl Default for Carrier {
    /// 10 MHz in band 1, EARFCN 100 and 18100.
    fn default() -> Carrier {
        Carrier { downlink_hz: 2.12e9, uplink_hz: 1.93e9, bandwidth: Bandwidth::default() }
    }
}

/// A cell as the radio sees it. Sectors of one mast are cells at one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Where its antenna is.
    pub position: Position,
    /// Its antenna.
    pub antenna: Antenna,
    /// Power in dBm over the whole carrier.
    pub power_dbm: f64,
    /// Noise figure of its receiver in dB. The noise rise that UEs of other cells cause may be added to it.
    pub noise_figure_db: f64,
    /// Its carriers.
    pub carrier: Carrier,
}

impl Default for Site {
    /// 30 dBm and 5 dB at a height of 30 m, isotropic.
    fn default() -> Site {
        Site {
            position: Position::new(0.0, 0.0, 30.0),
            antenna: Antenna::default(),
            power_dbm: 30.0,
            noise_figure_db: 5.0,
            carrier: Carrier::default(),
        }
    }
}

/// What lies between the UE and the cells on the large scale.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// A model.
    Modelled {
        /// The mean loss.
        path_loss: PathLoss,
        /// What buildings add to or take from it.
        shadowing: Option<Shadowing>,
    },
    /// A record for each cell, in the order of the cells; a cell without one is not heard.
    Recorded(Vec<Option<Arc<Recorded>>>),
}

/// Open-loop power control of the uplink, 36.213 5.1.1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkPower {
    /// The most power in dBm (`P_CMAX`).
    pub max_dbm: f64,
    /// The power that a resource block should arrive with, in dBm (`P_0`).
    pub p0_dbm: f64,
    /// The share of the path loss that is made up for, 0 to 1.
    pub alpha: f64,
}

impl Default for UplinkPower {
    /// 23 dBm, -80 dBm, 1.
    fn default() -> UplinkPower {
        UplinkPower { max_dbm: 23.0, p0_dbm: -80.0, alpha: 1.0 }
    }
}

/// One UE's radio.
#[derive(Clone, Debug)]
pub struct AirConfig {
    /// Where the UE is.
    pub mobility: Mobility,
    /// What lies between it and the cells.
    pub channel: Channel,
    /// Fast fading, on the serving cell's link.
    pub fading: Option<fading::Config>,
    /// Gain of the UE's antenna in dBi, the same in all directions.
    pub gain_db: f64,
    /// Noise figure of the UE's receiver in dB.
    pub noise_figure_db: f64,
    /// Power of the UE.
    pub power: UplinkPower,
}

impl Default for AirConfig {
    /// At (100, 0, 1.5) m in free space without fading, noise figure 9 dB.
    fn default() -> AirConfig {
        AirConfig {
            mobility: Mobility::fixed(Position::new(100.0, 0.0, 1.5)),
            channel: Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None },
            fading: None,
            gain_db: 0.0,
            noise_figure_db: 9.0,
            power: UplinkPower::default(),
        }
    }
}

/// One UE's radio: everything between it and all cells. Cells have the indices of their sites.
///
/// What a call gives depends on its moment alone and not on the calls before, as long as time does not go back further than
/// it takes the UE to go a shadow's correlation distance. The UE's place is
/// looked at often enough for it to have moved a decimetre at most; in between, and on a channel without fading, a call
/// costs a comparison.
#[derive(Clone, Debug)]
pub struct Air {
    mobility: Mobility,
    channel: Channel,
    fading: Option<fading::Config>,
    /// Turns of the fading in a subframe, if they do not come from the UE's way.
    turns: Option<Turns>,
    gain_db: f64,
    /// Noise in a resource element of the UE's receiver, in dBm,
    noise_dbm: f64,
    /// and in mW.
    noise_mw: f64,
    power: UplinkPower,
    /// The most power of the UE in mW.
    max_mw: f64,
    cells: Box<[Cell]>,
    masts: Box<[Mast]>,
    /// Nanoseconds between two looks at the UE's place; none if it stands.
    period: Option<u64>,
    /// From when to when the large-scale terms hold.
    valid_from: Time,
    valid_until: Time,
    /// The UE's place,
    place: Position,
    /// the SINR in dB that was set,
    set_db: Option<f64>,
    /// the cell whose flat downlink SINR there is `downlink`; none if it is to be computed again,
    downlink_of: Option<usize>,
    downlink: f32,
    /// and the same for the uplink.
    uplink_of: Option<usize>,
    uplink: Uplink,
}

/// The flat uplink to a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Uplink {
    /// The power in mW that a resource block should be sent with.
    target_mw: f64,
    /// The SINR that 1 mW in a resource block gives.
    sinr_per_mw: f64,
}

/// A cell, and what the UE has of it now.
#[derive(Clone, Debug)]
struct Cell {
    position: Position,
    antenna: Antenna,
    carrier: Carrier,
    mast: usize,
    /// Power in dBm of a resource element,
    element_dbm: f64,
    /// Noise in dBm in a resource block of the cell's receiver.
    noise_dbm: f64,
    /// The share of resource blocks in use.
    load: f64,
    /// Received power of a resource element in dBm,
    rsrp_dbm: f64,
    /// and in mW.
    rsrp_mw: f64,
    /// Gains of both antennas less the shadow, in dB.
    gain_db: f64,
    /// Whether the UE sees it.
    sees: bool,
    /// Whether a recorded SINR has its interference in it already.
    complete: bool,
    /// Seed of the fading, which is made when the cell first serves.
    seed: u64,
    fading: Option<Box<[Fading; 2]>>,
}

/// What the cells at one place have in common.
#[derive(Clone, Debug)]
struct Mast {
    position: Position,
    /// Decides whether the UE sees it.
    sight: Process,
    /// The shadow with and without a sight, if there is shadowing.
    shadows: Option<[Process; 2]>,
}

/// How far a UE moves, in metres, before its large-scale terms are computed again.
const MOVED_M: f64 = 0.1;

/// Share of a cell's resource elements in a symbol with reference signals that are in use without any data.
const REFERENCE_SHARE: f64 = 1.0 / 6.0;

impl Air {
    /// The radio of a UE among `sites`.
    pub fn new(config: &AirConfig, sites: &[Site], mut random: Random) -> Air {
        let (shadowing, sight_m) = match config.channel {
            Channel::Modelled { shadowing, path_loss } => (shadowing, path_loss.sight_correlation_m()),
            Channel::Recorded(_) => (None, PathLoss::default().sight_correlation_m()),
        };
        let mut masts: Vec<Mast> = Vec::new();
        let mut cells = Vec::with_capacity(sites.len());
        for site in sites {
            let mast = masts.iter().position(|mast| mast.position == site.position).unwrap_or_else(|| {
                let mut process = |correlation_m| Process::new(correlation_m, random.next_u64());
                masts.push(Mast {
                    position: site.position,
                    sight: process(sight_m),
                    shadows: shadowing.map(|s| [process(s.los.correlation_m), process(s.nlos.correlation_m)]),
                });
                masts.len() - 1
            });
            let elements = f64::from(SUBCARRIERS) * f64::from(site.carrier.bandwidth.prbs());
            cells.push(Cell {
                position: site.position,
                antenna: site.antenna,
                carrier: site.carrier,
                mast,
                element_dbm: site.power_dbm - decibels(elements),
                noise_dbm: noise_dbm(f64::from(SUBCARRIERS) * SUBCARRIER_HZ, site.noise_figure_db),
                load: 0.0,
                rsrp_dbm: f64::NEG_INFINITY,
                rsrp_mw: 0.0,
                gain_db: 0.0,
                sees: true,
                complete: false,
                seed: random.next_u64(),
                fading: None,
            });
        }
        let max_speed = config.mobility.max_speed();
        let subframes = MOVED_M / max_speed * (1e9 / SUBFRAME_NANOS as f64);
        let period = (subframes as u64).max(1).saturating_mul(SUBFRAME_NANOS);
        let noise_dbm = noise_dbm(SUBCARRIER_HZ, config.noise_figure_db);
        Air {
            mobility: config.mobility.clone(),
            channel: config.channel.clone(),
            fading: config.fading,
            turns: config.fading.and_then(|fading| match fading.doppler {
                Doppler::Hz(hz) => Some(Turns::new(hz * SUBFRAME_NANOS as f64 * 1e-9)),
                Doppler::Speed => None,
            }),
            gain_db: config.gain_db,
            noise_dbm,
            noise_mw: linear(noise_dbm),
            power: config.power,
            max_mw: linear(config.power.max_dbm),
            cells: cells.into(),
            masts: masts.into(),
            period: (max_speed > 0.0).then_some(period),
            valid_from: Time::ZERO,
            valid_until: Time::ZERO,
            place: Position::default(),
            set_db: None,
            downlink_of: None,
            downlink: 0.0,
            uplink_of: None,
            uplink: Uplink::default(),
        }
    }

    /// Whether time alone may change what the UE hears. If not, only [`Air::set_load`] and [`Air::set_sinr`] do.
    pub fn varies(&self) -> bool {
        let fades = self.turns.is_some() || self.period.is_some();
        self.period.is_some() || matches!(self.channel, Channel::Recorded(_)) || self.fading.is_some() && fades
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The share of its resource blocks, 0 to 1, that `cell` sends on: interference for the others. Zero at first.
    #[inline]
    pub fn set_load(&mut self, cell: usize, load: f32) {
        let load = f64::from(load);
        if self.cells[cell].load != load {
            self.cells[cell].load = load;
            self.downlink_of = None;
        }
    }

    /// From now on the UE hears whichever cell serves it with this mean SINR in dB, whatever others send, and the uplink is
    /// what the path loss behind it would make of it. Fading goes on around it. `None` goes back to the channel.
    ///
    /// Received powers ([`Air::rsrp`], [`Air::rsrq`]) stay those of the channel.
    pub fn set_sinr(&mut self, sinr_db: Option<f64>) {
        self.set_db = sinr_db;
        (self.downlink_of, self.uplink_of) = (None, None);
    }

    /// Received power of a cell's reference signals per resource element, in dBm, without fast fading (36.214 5.1.1);
    /// negative infinity if the cell is not heard.
    #[inline]
    pub fn rsrp(&mut self, cell: usize, now: Time) -> f64 {
        self.look(now);
        self.cells[cell].rsrp_dbm
    }

    /// Quality of a cell's reference signals, in dB (36.214 5.1.3): their power over that of all cells and noise in the
    /// symbols that carry reference signals of one antenna port.
    pub fn rsrq(&mut self, cell: usize, now: Time) -> f64 {
        self.look(now);
        let carrier = self.cells[cell].carrier;
        let all = self.cells.iter().filter(|other| other.carrier.downlink_hz == carrier.downlink_hz);
        let received: f64 =
            all.map(|other| other.rsrp_mw * (REFERENCE_SHARE + (1.0 - REFERENCE_SHARE) * other.load)).sum();
        decibels(self.cells[cell].rsrp_mw / (f64::from(SUBCARRIERS) * (received + self.noise_mw)))
    }

    /// The SINR of `serving`'s resource blocks at the UE.
    #[inline]
    pub fn downlink(&mut self, serving: usize, now: Time, sinr: &mut Sinr) {
        self.look(now);
        if self.downlink_of != Some(serving) {
            self.downlink = self.flat_downlink(serving);
            self.downlink_of = Some(serving);
        }
        self.fill(Direction::Downlink, serving, self.downlink, now, sinr);
    }

    /// The SINR of the UE's resource blocks at `serving` when it spreads its power over `prbs_in_use` of them (at least
    /// one).
    #[inline]
    pub fn uplink(&mut self, serving: usize, now: Time, prbs_in_use: u16, sinr: &mut Sinr) {
        let flat = self.block_mw(serving, now, prbs_in_use) * self.uplink.sinr_per_mw;
        self.fill(Direction::Uplink, serving, flat as f32, now, sinr);
    }

    /// The power in dBm that the UE sends `prbs` resource blocks (at least one) to `serving` with. 36.213 5.1.1.1.
    pub fn uplink_power_dbm(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        decibels(self.block_mw(serving, now, prbs) * f64::from(prbs))
    }

    /// How many dB more power in all the UE could send `prbs` resource blocks (at least one) to `serving` with than power
    /// control asks for; below zero if it cannot send them with as much (36.213 5.1.1.2).
    #[inline]
    pub fn headroom_db(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        self.block_mw(serving, now, 1);
        decibels(self.max_mw / (self.uplink.target_mw * f64::from(prbs)))
    }

    /// The loss in dB from `serving` to the UE, as the UE knows it from the reference signals' power: without fast fading.
    #[inline]
    pub fn path_loss_db(&mut self, serving: usize, now: Time) -> f64 {
        self.look(now);
        let cell = &self.cells[serving];
        cell.element_dbm - self.set_db.map_or(cell.rsrp_dbm, |sinr_db| sinr_db + self.noise_dbm)
    }

    /// Where the UE is at `now`.
    pub fn position(&self, now: Time) -> Position {
        self.mobility.position(now)
    }

    /// How fast it is at `now`, in metres per second.
    pub fn speed(&self, now: Time) -> f64 {
        self.mobility.speed(now)
    }

    /// The power in mW of each of `prbs` resource blocks to `serving`.
    #[inline]
    fn block_mw(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        self.look(now);
        if self.uplink_of != Some(serving) {
            self.uplink = self.flat_uplink(serving);
            self.uplink_of = Some(serving);
        }
        (self.max_mw / f64::from(prbs)).min(self.uplink.target_mw)
    }

    /// Brings the large-scale terms up to `now`.
    #[inline]
    fn look(&mut self, now: Time) {
        if now >= self.valid_until || now < self.valid_from {
            self.refresh(now);
        }
    }

    #[inline(never)]
    fn refresh(&mut self, now: Time) {
        (self.downlink_of, self.uplink_of) = (None, None);
        match &self.channel {
            Channel::Modelled { path_loss, shadowing } => {
                // Places are those at the multiples of the period, whenever the calls come.
                let (start, end) = match self.period {
                    Some(period) => {
                        let start = now.as_nanos() / period * period;
                        (Time::from_nanos(start), Time::from_nanos(start.saturating_add(period)))
                    }
                    None => (Time::ZERO, Time::MAX),
                };
                (self.valid_from, self.valid_until) = (start, end);
                self.place = self.mobility.position(start);
                let travelled = self.mobility.travelled(start);
                for cell in &mut self.cells {
                    let mast = &mut self.masts[cell.mast];
                    let hz = cell.carrier.downlink_hz;
                    cell.sees = mast.is_seen(*path_loss, self.place, travelled);
                    let far = path_loss.is_beyond_break(cell.position, self.place, hz);
                    let shadow_db =
                        shadowing.map_or(0.0, |shadowing| mast.shadow_db(shadowing, cell.sees, far, travelled));
                    cell.gain_db = cell.antenna.gain_db(cell.position, self.place) + self.gain_db - shadow_db;
                    let loss_db = path_loss.loss_db(cell.position, self.place, hz, cell.sees);
                    cell.receive(cell.element_dbm - loss_db + cell.gain_db);
                }
            }
            Channel::Recorded(records) => {
                (self.valid_from, self.valid_until) = (Time::ZERO, Time::MAX);
                for (cell, record) in self.cells.iter_mut().zip(records) {
                    let Some(record) = record else { continue };
                    let (from, value, until) = record.at(now);
                    self.valid_from = self.valid_from.max(from);
                    self.valid_until = self.valid_until.min(until);
                    let value = f64::from(value);
                    let rsrp_dbm = match record.quantity() {
                        Quantity::Sinr => value + self.noise_dbm,
                        Quantity::Cqi => f64::from(cqi_sinr_db(value as u8)) + CQI_MARGIN_DB + self.noise_dbm,
                        Quantity::Rsrp => value,
                    };
                    cell.complete = record.quantity() != Quantity::Rsrp;
                    cell.receive(rsrp_dbm);
                }
            }
        }
    }

    /// The downlink's SINR without fading.
    fn flat_downlink(&self, serving: usize) -> f32 {
        if let Some(sinr_db) = self.set_db {
            return linear(sinr_db) as f32;
        }
        let cell = &self.cells[serving];
        let others = self.cells.iter().enumerate().filter(|&(index, other)| {
            index != serving && !cell.complete && other.carrier.downlink_hz == cell.carrier.downlink_hz
        });
        let interference: f64 = others.map(|(_, other)| other.rsrp_mw * other.load).sum();
        (cell.rsrp_mw / (self.noise_mw + interference)) as f32
    }

    /// The uplink's power and SINR without fading.
    fn flat_uplink(&self, serving: usize) -> Uplink {
        let cell = &self.cells[serving];
        let rsrp_dbm = self.set_db.map_or(cell.rsrp_dbm, |sinr_db| sinr_db + self.noise_dbm);
        let downlink_db = cell.element_dbm - rsrp_dbm;
        let uplink_db = match &self.channel {
            Channel::Modelled { path_loss, .. } if self.set_db.is_none() => {
                path_loss.loss_db(cell.position, self.place, cell.carrier.uplink_hz, cell.sees) - cell.gain_db
            }
            Channel::Modelled { .. } | Channel::Recorded(_) => downlink_db,
        };
        Uplink {
            // The UE knows the downlink's loss and takes it for the uplink's.
            target_mw: linear(self.power.p0_dbm + self.power.alpha * downlink_db),
            sinr_per_mw: linear(-uplink_db - cell.noise_dbm),
        }
    }

    /// Fills `sinr` with the SINR `flat` as the fading of one direction shapes it.
    #[inline]
    fn fill(&mut self, direction: Direction, serving: usize, flat: f32, now: Time, sinr: &mut Sinr) {
        match self.fading {
            None => *sinr = Sinr::Flat(flat),
            Some(config) => self.fill_faded(config, direction, serving, flat, now, sinr),
        }
    }

    #[inline(never)]
    fn fill_faded(
        &mut self,
        config: fading::Config,
        direction: Direction,
        serving: usize,
        flat: f32,
        now: Time,
        sinr: &mut Sinr,
    ) {
        let cell = &mut self.cells[serving];
        let subframe = now.as_nanos() / SUBFRAME_NANOS;
        let way = match self.turns {
            Some(turns) => turns.times(subframe),
            None => {
                let hz = match direction {
                    Direction::Downlink => cell.carrier.downlink_hz,
                    Direction::Uplink => cell.carrier.uplink_hz,
                };
                Turns::new(self.mobility.travelled(Time::from_nanos(subframe * SUBFRAME_NANOS)) * hz / LIGHT)
            }
        };
        let prbs = cell.carrier.bandwidth.prbs();
        let fading = cell.fading.get_or_insert_with(|| {
            let mut random = Random::seed_from_u64(cell.seed);
            Box::new([(); 2].map(|()| Fading::new(config.profile, prbs, &mut random)))
        });
        let gains = fading[direction as usize].gains(way);
        if !matches!(sinr, Sinr::PerRb(all) if all.len() == gains.len()) {
            *sinr = Sinr::PerRb(vec![0.0; gains.len()].into());
        }
        if let Sinr::PerRb(all) = sinr {
            for (sinr, gain) in all.iter_mut().zip(gains) {
                *sinr = flat * gain;
            }
        }
    }
}

impl Cell {
    /// The UE receives a resource element with so many dBm.
    fn receive(&mut self, rsrp_dbm: f64) {
        self.rsrp_dbm = rsrp_dbm;
        self.rsrp_mw = linear(rsrp_dbm);
    }
}

impl Mast {
    fn is_seen(&mut self, path_loss: PathLoss, ue: Position, travelled: f64) -> bool {
        match path_loss.sight() {
            Sight::Los => true,
            Sight::Nlos => false,
            Sight::Random => {
                let normal = self.sight.at(travelled);
                let uniform = 0.5 * libm::erfc(-normal * core::f64::consts::FRAC_1_SQRT_2);
                uniform < path_loss.sight_probability(self.position.ground_distance(ue))
            }
        }
    }

    fn shadow_db(&mut self, shadowing: Shadowing, sees: bool, far: bool, travelled: f64) -> f64 {
        let Some([los, nlos]) = &mut self.shadows else { return 0.0 };
        match (sees, far) {
            (true, false) => shadowing.los.sigma_db * los.at(travelled),
            (true, true) => shadowing.far_los_sigma_db * los.at(travelled),
            (false, _) => shadowing.nlos.sigma_db * nlos.at(travelled),
        }
    }
}
