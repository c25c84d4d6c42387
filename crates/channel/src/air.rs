//! One UE's radio channels to all cells.
//!
//! The SINR of a resource block is the received power of a resource element over noise plus the received powers of the
//! other cells on the same carrier, each times its load. Power is uniform over a carrier.
//!
//! Deviations:
//! 1. Fast fading applies to the serving cell's link, and to the downlink of others only with
//!    [`AirConfig::interference_fades`]: otherwise their interference is a mean over fading, as it always is in the uplink.
//!    So are RSRP and RSRQ: the layer-3 filter of a UE removes most of it.
//! 2. Uplink and downlink fade independently, as on two carriers, with the same shadowing.
//! 3. The path loss between a UE and the other cells that it interferes with differs from the downlink's by the ratio of the
//!    squared frequencies, as in free space. Reference signals of an idle cell do not interfere with data.
//! 4. A recorded SINR or CQI, or one that is set ([`Air::set_sinr`]), is converted to the received power that it would
//!    need without interference; the uplink is derived from that as from a path loss.
//! 5. A cell with an array is received with the best pair of beams, which also is its RSRP, and its reference signals in
//!    the RSRQ of others. Its interference with another link uses the beam of its transmission ([`Occupied::beam`]), what
//!    is measured uses those of past ones ([`Air::set_beams`]), and the interference of unknown beams has the gain of an
//!    element: the mean over beams that point anywhere. The UE receives and causes interference through the beam for its
//!    serving cell; a cell's array receives interference in the uplink with the gain of an element.
//! 6. Walls, the car and blockers attenuate both directions as at the downlink's frequency.
//! 7. A cell in a building is behind that building's wall, but its depth and the deviation of the wall's loss are left
//!    out.
//! 8. Among more than seven masts, those that are received with 20 dB less than the strongest are updated once in 16
//!    times only, unless there are beams, blockers or buildings in the way, which may change that suddenly.
//! 9. Shadowing with line of sight, without it and in a building are three independent processes: at a change of state
//!    the shadow is a new one, and a UE that returns to a state within the correlation distance finds a similar one.

mod beamed;
mod cell;
mod faded;
mod interference;
mod mast;
mod site;
mod surroundings;

use std::sync::Arc;

use rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

use crate::antenna::{Array, Beams, Ends, SWEEP};
use crate::blockage::Blockage;
use crate::buildings::{Buildings, Car, Penetration};
use crate::fading::{self, Doppler, Fading, Grid, Turns};
use crate::pathloss::{self, Antenna, LIGHT, PathLoss, Sight, noise_dbm};
use crate::phy::cqi_sinr_db;
use crate::recorded::{Quantity, Start};
use crate::tables::Direction;
use crate::{Mobility, Position, Random, Recorded, SUBFRAME_NANOS, Shadowing, Sinr, decibels, linear};

pub use beamed::BeamShare;
use beamed::Beamed;
pub use cell::Sites;
use cell::{Cell, Link};
pub use interference::Occupied;
use mast::Mast;
pub use site::{Carrier, Site};
pub use surroundings::Orientation;
use surroundings::{Place, Surroundings};

/// Margin in dB added to the minimum SINR of a recorded CQI, so that it results in the same CQI.
const CQI_MARGIN_DB: f64 = 0.05;

/// The large-scale channel between the UE and the cells.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// A model.
    Modelled {
        /// The mean path loss.
        path_loss: PathLoss,
        /// Shadowing by buildings and terrain.
        shadowing: Option<Shadowing>,
    },
    /// A recording for each cell, in the order of the cells, and where the run begins in them; a cell without one is not
    /// received.
    Recorded(Vec<Option<Arc<Recorded>>>, Start),
}

/// Open-loop power control of the uplink, 36.213 5.1.1.1 and 38.213 7.1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkPower {
    /// Maximum power in dBm (`P_CMAX`).
    pub max_dbm: f64,
    /// The target received power in dBm of a resource block of 15 kHz subcarriers (`P_0`). With wider ones it is higher in
    /// proportion, so that the power density is the same.
    pub p0_dbm: f64,
    /// The fraction of the path loss that is compensated, 0 to 1.
    pub alpha: f64,
}

impl Default for UplinkPower {
    /// 23 dBm, -80 dBm, 1.
    fn default() -> UplinkPower {
        UplinkPower { max_dbm: 23.0, p0_dbm: -80.0, alpha: 1.0 }
    }
}

/// The configuration of one UE's radio.
#[derive(Clone, Debug)]
pub struct AirConfig {
    /// Position and movement of the UE.
    pub mobility: Mobility,
    /// The large-scale channel between the UE and the cells.
    pub channel: Channel,
    /// Fast fading, on the serving cell's link.
    pub fading: Option<fading::Config>,
    /// Whether the downlink interference of other cells fades in the same way, each cell independently. It costs the fading of
    /// each cell that interferes.
    pub interference_fades: bool,
    /// Gain of the UE's antenna in dBi, the same in all directions.
    pub gain_db: f64,
    /// Noise figure of the UE's receiver in dB.
    pub noise_figure_db: f64,
    /// Uplink power control.
    pub power: UplinkPower,
    /// The buildings. Walls attenuate a UE indoors; line of sight depends on buildings with [`Sight::Buildings`].
    pub buildings: Option<Arc<Buildings>>,
    /// The loss into buildings.
    pub penetration: Penetration,
    /// The loss of the car in which the UE is.
    pub car: Option<Car>,
    /// Blockage by the user and others.
    pub blockage: Option<Blockage>,
    /// The UE's array, whose gain adds to `gain_db`.
    pub array: Option<Array>,
    /// The UE's orientation.
    pub orientation: Orientation,
    /// Interval between sweeps of beams; above zero.
    pub sweep: Span,
}

impl Default for AirConfig {
    /// At (100, 0, 1.5) m in free space without fading, noise figure 9 dB, without an array and with nothing around.
    fn default() -> AirConfig {
        AirConfig {
            mobility: Mobility::fixed(Position::new(100.0, 0.0, 1.5)),
            channel: Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None },
            fading: None,
            interference_fades: false,
            gain_db: 0.0,
            noise_figure_db: 9.0,
            power: UplinkPower::default(),
            buildings: None,
            penetration: Penetration::default(),
            car: None,
            blockage: None,
            array: None,
            orientation: Orientation::default(),
            sweep: SWEEP,
        }
    }
}

/// One UE's radio channels to all cells. Cells have the indices of their sites.
///
/// Results depend only on the time of a call and not on earlier calls. Times that go back cost more than those that do not.
/// The UE's position is updated often enough that it moves at most a decimetre in between (weak masts: 1.6 m), and with
/// arrays or moving blockers at least at each sweep; until the next update, and on a channel without fading, a call costs
/// one comparison.
#[derive(Clone, Debug)]
pub struct Air {
    mobility: Mobility,
    channel: Channel,
    fading: Option<fading::Config>,
    /// The Doppler frequency in Hz, if it does not depend on the UE's movement.
    doppler_hz: Option<f64>,
    gain_db: f64,
    power: UplinkPower,
    /// Maximum power of the UE in mW.
    max_mw: f64,
    noise_figure_db: f64,
    sites: Arc<Sites>,
    /// Of each cell: received power of a resource element in dBm and mW, the fraction of resource blocks in use, and the
    /// rest.
    rsrp_dbm: Box<[f64]>,
    received_mw: Box<[f64]>,
    loads: Arc<[f32]>,
    links: Box<[Link]>,
    /// The cells with arrays.
    beamed: Box<[Beamed]>,
    masts: Box<[Mast]>,
    /// Of each cell, with fading: its seed, and the processes of both directions, which are created when the cell first
    /// serves the UE, or its interference first fades.
    fades: Box<[(u64, Option<Fades>)]>,
    /// Reused memory, if interference fades.
    faded: Option<Vec<f64>>,
    surroundings: Surroundings,
    array: Option<Array>,
    orientation: Orientation,
    /// Nanoseconds between sweeps, at which the positions are updated too; `None` if nothing depends on sweeps.
    sweep: Option<u64>,
    /// Nanoseconds between updates of the UE's position; `None` if it is stationary.
    period: Option<u64>,
    /// Nanoseconds between updates of weak masts, if they are updated less often.
    survey: Option<u64>,
    /// When all masts were last updated.
    surveyed: Option<Time>,
    /// The interval in which the large-scale values are valid.
    valid_from: Time,
    valid_until: Time,
    /// The UE's position and orientation in degrees.
    place: Position,
    orientation_deg: f64,
    /// The SINR in dB set by [`Air::set_sinr`].
    set_db: Option<f64>,
    /// The cell whose flat downlink SINR is in `downlink`; `None` if it has to be recomputed.
    downlink_of: Option<usize>,
    downlink: f32,
    /// The same for the uplink.
    uplink_of: Option<usize>,
    uplink: Uplink,
}

/// The fading of downlink and uplink.
type Fades = Box<[Fading; 2]>;

/// The flat uplink channel to a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Uplink {
    /// Target transmit power of a resource block in mW.
    target_mw: f64,
    /// The SINR for a transmit power of 1 mW per resource block.
    sinr_per_mw: f64,
    /// The power headroom in dB for one resource block, once it was needed.
    headroom_db: Option<f64>,
}

/// Distance in metres that a UE moves before its large-scale values are recomputed.
const MOVED_M: f64 = 0.1;

/// Updates after which weak masts are updated too.
const SURVEY: u64 = 16;
/// A mast is weak if all its cells are received with this many dB less than the strongest cell of their carriers.
const WEAK_DB: f64 = 20.0;
/// Number of masts up to which none is considered weak.
const FEW: usize = 7;

impl Air {
    /// Creates the radio of a UE among `sites`.
    pub fn new(config: &AirConfig, sites: &[Site], random: Random) -> Air {
        Air::among(config, &Arc::new(Sites::new(sites)), random)
    }

    /// Creates the radio of one of several UEs.
    pub fn among(config: &AirConfig, sites: &Arc<Sites>, mut random: Random) -> Air {
        let (shadowing, sight_m) = match config.channel {
            Channel::Modelled { shadowing, path_loss } => (shadowing, path_loss.sight_correlation_m()),
            Channel::Recorded(..) => (None, PathLoss::default().sight_correlation_m()),
        };
        let mut masts: Vec<Mast> = Vec::with_capacity(sites.masts.len());
        let mut fades = Vec::new();
        let mut links = Vec::with_capacity(sites.cells.len());
        for cell in &sites.cells {
            if cell.mast == masts.len() {
                masts.push(Mast::new(shadowing, sight_m, &mut random));
            }
            let beams = match (cell.antenna, config.array) {
                (Antenna::Array(array), ue) => Some(Beams::new(Some(array), ue, config.sweep)),
                (_, Some(array)) => Some(Beams::new(None, Some(array), config.sweep)),
                (_, None) => None,
            };
            let ue_noise_dbm = noise_dbm(f64::from(cell.carrier.subcarrier_hz), config.noise_figure_db);
            links.push(Link::new(linear(ue_noise_dbm), beams));
            let seed = random.next_u64();
            if config.fading.is_some() {
                fades.push((seed, None));
            }
        }
        let path_loss = match config.channel {
            Channel::Modelled { path_loss, .. } => path_loss,
            Channel::Recorded(..) => PathLoss::default(),
        };
        let around = surroundings::Config {
            mobility: &config.mobility,
            path_loss,
            buildings: config.buildings.as_ref(),
            penetration: config.penetration,
            car: config.car,
            blockage: config.blockage,
        };
        let surroundings = Surroundings::new(around, &mut random);
        for (mast, site) in masts.iter_mut().zip(&sites.masts) {
            let indoors = shadowing.filter(|_| config.buildings.is_some()).map(|shadowing| shadowing.indoors);
            mast.enclose(surroundings.around(site.position), indoors, &mut random);
        }
        let max_speed = config.mobility.max_speed();
        let subframes = MOVED_M / max_speed * (1e9 / SUBFRAME_NANOS as f64);
        let period = (subframes as u64).max(1).saturating_mul(SUBFRAME_NANOS);
        let blockers_move = config.blockage.is_some_and(|blockage| blockage.blockers > 0 && blockage.speed > 0.0);
        let sweeps = max_speed > 0.0 && links.iter().any(|link: &Link| link.beams.is_some()) || blockers_move;
        let sweep = sweeps.then_some(config.sweep.as_nanos().max(1));
        let is_gradual = sweep.is_none() && config.blockage.is_none() && path_loss.sight() != Sight::Buildings;
        let survey = (max_speed > 0.0 && is_gradual && masts.len() > FEW).then_some(period.saturating_mul(SURVEY));
        Air {
            mobility: config.mobility.clone(),
            channel: config.channel.clone(),
            fading: config.fading,
            doppler_hz: config.fading.and_then(|fading| match fading.doppler {
                Doppler::Hz(hz) => Some(hz),
                Doppler::Speed => None,
            }),
            gain_db: config.gain_db,
            power: config.power,
            max_mw: linear(config.power.max_dbm),
            noise_figure_db: config.noise_figure_db,
            sites: Arc::clone(sites),
            rsrp_dbm: vec![f64::NEG_INFINITY; links.len()].into(),
            received_mw: vec![0.0; links.len()].into(),
            loads: vec![0.0; links.len()].into(),
            links: links.into(),
            beamed: Beamed::of(&sites.cells),
            masts: masts.into(),
            fades: fades.into(),
            faded: (config.interference_fades && config.fading.is_some()).then(Vec::new),
            surroundings,
            array: config.array,
            orientation: config.orientation,
            sweep,
            period: (max_speed > 0.0 || sweep.is_some()).then_some(period.min(sweep.unwrap_or(u64::MAX))),
            survey,
            surveyed: None,
            valid_from: Time::ZERO,
            valid_until: Time::ZERO,
            place: Position::default(),
            orientation_deg: 0.0,
            set_db: None,
            downlink_of: None,
            downlink: 0.0,
            uplink_of: None,
            uplink: Uplink::default(),
        }
    }

    /// Returns whether the received signal may change with time alone. If not, only [`Air::set_load`] and
    /// [`Air::set_sinr`] change it.
    pub fn varies(&self) -> bool {
        // The bounds of the SINR are those of interference that does not fade.
        let fades = self.doppler_hz.is_some() || self.period.is_some() || self.faded.is_some();
        self.period.is_some() || matches!(self.channel, Channel::Recorded(..)) || self.fading.is_some() && fades
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.links.len()
    }

    /// Sets the mean SINR in dB with which the UE receives its serving cell, regardless of interference; the uplink
    /// follows from the path loss that it implies. Fading applies on top. `None` restores the channel.
    ///
    /// Received powers ([`Air::rsrp`], [`Air::rsrq`]) remain those of the channel.
    pub fn set_sinr(&mut self, sinr_db: Option<f64>) {
        self.set_db = sinr_db;
        (self.downlink_of, self.uplink_of) = (None, None);
    }

    /// Returns the received power of a cell's reference signals per resource element, in dBm, without fast fading
    /// (36.214 5.1.1); negative infinity if the cell is not received.
    #[inline]
    pub fn rsrp(&mut self, cell: usize, now: Time) -> f64 {
        self.update(now);
        self.rsrp_dbm[cell]
    }

    /// Returns the same of all cells.
    #[inline]
    pub fn rsrps(&mut self, now: Time) -> &[f64] {
        self.update(now);
        &self.rsrp_dbm
    }

    /// Returns whether there is line of sight to a cell: nothing obstructs it, and the UE is not indoors while the cell is
    /// outdoors.
    pub fn is_los(&mut self, cell: usize, now: Time) -> bool {
        self.update(now);
        self.links[cell].sees && !self.links[cell].walled
    }

    /// Returns the loss in dB of the walls and the car between the UE and a cell. It is part of the path loss.
    pub fn walls_db(&mut self, cell: usize, now: Time) -> f64 {
        self.update(now);
        self.links[cell].walls_db
    }

    /// Returns the loss in dB of blockers between the UE and a cell. It is part of the path loss.
    pub fn blocked_db(&mut self, cell: usize, now: Time) -> f64 {
        self.update(now);
        self.links[cell].blocked_db
    }

    /// Returns the beams of a cell and of the UE for each other; `None` if neither has an array.
    pub fn beam(&mut self, cell: usize, now: Time) -> Option<(u32, u32)> {
        self.update(now);
        self.links[cell].beams.as_deref().map(Beams::pair)
    }

    /// Computes the SINR of `serving`'s resource blocks at the UE.
    #[inline]
    pub fn downlink(&mut self, serving: usize, now: Time, sinr: &mut Sinr) {
        self.update(now);
        if self.faded.is_some() && self.has_interference(serving) {
            return self.downlink_faded(serving, now, sinr);
        }
        if self.downlink_of != Some(serving) {
            self.downlink = self.flat_downlink(serving);
            self.downlink_of = Some(serving);
        }
        self.fill(Direction::Downlink, serving, self.downlink, now, sinr);
    }

    /// Computes the SINR of the UE's resource blocks at `serving` if it spreads its power over `prbs_in_use` of them
    /// (at least one).
    #[inline]
    pub fn uplink(&mut self, serving: usize, now: Time, prbs_in_use: u16, sinr: &mut Sinr) {
        let flat = self.block_mw(serving, now, prbs_in_use) * self.uplink.sinr_per_mw;
        self.fill(Direction::Uplink, serving, flat as f32, now, sinr);
    }

    /// Returns the SINR in dB with which `serving` receives a single resource block of the UE, without fast fading and
    /// interference.
    pub fn uplink_sinr_db(&mut self, serving: usize, now: Time) -> f64 {
        decibels(self.block_mw(serving, now, 1) * self.uplink.sinr_per_mw)
    }

    /// Returns the power in dBm with which the UE sends `prbs` resource blocks (at least one) to `serving`. 36.213
    /// 5.1.1.1, 38.213 7.1.1.
    pub fn uplink_power_dbm(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        decibels(self.block_mw(serving, now, prbs) * f64::from(prbs))
    }

    /// Returns the power headroom in dB for sending `prbs` resource blocks (at least one) to `serving`; negative if the
    /// UE cannot send them with the power requested by power control (36.213 5.1.1.2, 38.213 7.7.1).
    #[inline]
    pub fn headroom_db(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        self.block_mw(serving, now, 1);
        let Uplink { target_mw, headroom_db, .. } = &mut self.uplink;
        if prbs == 1 {
            return *headroom_db.get_or_insert_with(|| decibels(self.max_mw / *target_mw));
        }
        decibels(self.max_mw / (*target_mw * f64::from(prbs)))
    }

    /// Returns the path loss in dB from `serving` as the UE measures it from the reference signals: without fast
    /// fading.
    #[inline]
    pub fn path_loss_db(&mut self, serving: usize, now: Time) -> f64 {
        self.update(now);
        self.downlink_loss_db(serving)
    }

    /// Returns the UE's position at `now`.
    pub fn position(&self, now: Time) -> Position {
        self.mobility.position(now)
    }

    /// Returns the UE's distance in metres from the antenna of `cell` at `now`.
    pub fn distance_m(&self, cell: usize, now: Time) -> f64 {
        self.position(now).distance(self.sites.cells[cell].position)
    }

    /// Returns the UE's speed at `now`, in metres per second.
    pub fn speed(&self, now: Time) -> f64 {
        self.mobility.speed(now)
    }

    /// Returns the power in mW of each of `prbs` resource blocks (at least one) that the UE sends to `serving`.
    #[inline]
    pub fn block_mw(&mut self, serving: usize, now: Time, prbs: u16) -> f64 {
        self.update(now);
        if self.uplink_of != Some(serving) {
            self.uplink = self.flat_uplink(serving);
            self.uplink_of = Some(serving);
        }
        (self.max_mw / f64::from(prbs)).min(self.uplink.target_mw)
    }

    /// Updates the large-scale values to `now`.
    #[inline]
    fn update(&mut self, now: Time) {
        if now >= self.valid_until || now < self.valid_from {
            self.refresh(now);
        }
    }

    #[inline(never)]
    fn refresh(&mut self, now: Time) {
        (self.downlink_of, self.uplink_of) = (None, None);
        match self.channel {
            Channel::Modelled { path_loss, shadowing } => self.follow(path_loss, shadowing, now),
            Channel::Recorded(..) => self.look_up(now),
        }
    }

    /// Moves the UE to its position at `now`.
    fn follow(&mut self, path_loss: PathLoss, shadowing: Option<Shadowing>, now: Time) {
        // Positions are evaluated at multiples of the period, counted from the last sweep, independent of the times of
        // calls.
        let Some(period) = self.period else {
            (self.valid_from, self.valid_until) = (Time::ZERO, Time::MAX);
            return self.receive(path_loss, shadowing, Time::ZERO, true);
        };
        let sweep = self.sweep.map_or(0, |sweep| now.as_nanos() / sweep * sweep);
        let start = sweep + (now.as_nanos() - sweep) / period * period;
        let next = self.sweep.map_or(u64::MAX, |interval| sweep.saturating_add(interval));
        self.valid_from = Time::from_nanos(start);
        self.valid_until = Time::from_nanos(start.saturating_add(period).min(next));
        let Some(survey) = self.survey else { return self.receive(path_loss, shadowing, self.valid_from, true) };
        let from = Time::from_nanos(start / survey * survey);
        if self.surveyed != Some(from) {
            self.receive(path_loss, shadowing, from, true);
            self.find_weak_masts();
            self.surveyed = Some(from);
        }
        self.receive(path_loss, shadowing, self.valid_from, false);
    }

    /// Receives the masts where the UE is at `at`, those that are weak only if `all`.
    fn receive(&mut self, path_loss: PathLoss, shadowing: Option<Shadowing>, at: Time, all: bool) {
        self.place = self.mobility.position(at);
        if self.array.is_some() || self.surroundings.has_blockers() {
            self.orientation_deg = self.orientation.degrees(&self.mobility, at);
        }
        let place = Place {
            now: at,
            position: self.place,
            orientation_deg: self.orientation_deg,
            travelled: self.mobility.travelled(at),
            building: self.surroundings.around(self.place),
        };
        for (mast, site) in self.masts.iter_mut().zip(&self.sites.masts) {
            if mast.is_weak && !all {
                continue;
            }
            // Sectors on the same carrier have the same path.
            let mut last = None;
            let mut bearing_deg = None;
            for &index in &site.cells {
                let (cell, link) = (&self.sites.cells[index], &mut self.links[index]);
                let hz = cell.carrier.downlink_hz;
                let (path, loss_db) = match last {
                    Some((of_hz, path)) if of_hz == hz => path,
                    _ => {
                        let path = mast.path(site.position, path_loss, shadowing, &mut self.surroundings, &place, hz);
                        let known = &mut link.logarithms;
                        (path, path_loss.loss_with(known, site.position, self.place, hz, path.sees))
                    }
                };
                last = Some((hz, (path, loss_db)));
                (link.sees, link.walled) = (path.sees, path.walled);
                (link.walls_db, link.blocked_db) = (path.walls_db, path.blocked_db);
                let bearing = || *bearing_deg.get_or_insert_with(|| pathloss::bearing_deg(cell.position, self.place));
                link.site_db = cell.antenna.gain_along_db(cell.position, self.place, bearing);
                link.ue_db = 0.0;
                if let Some(beams) = &mut link.beams {
                    let ends = |now| Ends {
                        site: cell.position,
                        ue: self.mobility.position(now),
                        orientation_deg: self.orientation.degrees(&self.mobility, now),
                    };
                    beams.update(at, ends);
                    let [site_db, ue_db] = beams.gains_db(&ends(at));
                    if matches!(cell.antenna, Antenna::Array(_)) {
                        link.site_db = site_db;
                    }
                    link.ue_db = ue_db;
                }
                link.gain_db = link.site_db + self.gain_db - path.shadow_db + link.ue_db;
                link.gain_db -= link.walls_db + link.blocked_db;
                let rsrp_dbm = cell.element_dbm - loss_db + link.gain_db;
                self.rsrp_dbm[index] = rsrp_dbm;
                self.received_mw[index] = linear(rsrp_dbm);
            }
        }
    }

    /// Finds the masts that are weak.
    fn find_weak_masts(&mut self) {
        let first = |index: usize| self.sites.carriers[index].first as usize;
        // Of each carrier, at the index of its first cell.
        let mut strongest = vec![f64::NEG_INFINITY; self.rsrp_dbm.len()];
        for (index, rsrp_dbm) in self.rsrp_dbm.iter().enumerate() {
            strongest[first(index)] = strongest[first(index)].max(*rsrp_dbm);
        }
        let is_weak = |index: usize| self.rsrp_dbm[index] < strongest[first(index)] - WEAK_DB;
        for (mast, site) in self.masts.iter_mut().zip(&self.sites.masts) {
            mast.is_weak = site.cells.iter().all(|index| is_weak(*index));
        }
    }

    /// Looks up the recorded channels at `now`.
    fn look_up(&mut self, now: Time) {
        let Channel::Recorded(records, start) = &self.channel else { return };
        (self.valid_from, self.valid_until) = (Time::ZERO, Time::MAX);
        for (index, record) in records.iter().enumerate() {
            let (Some(record), Some(cell)) = (record, self.sites.cells.get(index)) else { continue };
            let (from, value, until, power_dbm) = start.look_up(record, now);
            self.valid_from = self.valid_from.max(from);
            self.valid_until = self.valid_until.min(until);
            let (value, noise_dbm) = (f64::from(value), self.ue_noise_dbm(cell));
            let sinr_db = match record.quantity() {
                Quantity::Sinr => Some(value),
                Quantity::Cqi => Some(f64::from(cqi_sinr_db(value as u8)) + CQI_MARGIN_DB),
                Quantity::Rsrp => None,
            };
            let power_dbm = power_dbm.map(f64::from);
            let link = &mut self.links[index];
            self.rsrp_dbm[index] = match (sinr_db, power_dbm) {
                // What is not loss is noise and interference in the UE's receiver.
                (Some(sinr_db), Some(power_dbm)) => {
                    link.ue_noise_mw = linear(power_dbm - sinr_db);
                    power_dbm
                }
                (Some(sinr_db), None) => sinr_db + noise_dbm,
                (None, _) => value,
            };
            (link.complete, link.loss_db) = (sinr_db.is_some(), record.loss_db());
            self.received_mw[index] = linear(self.rsrp_dbm[index]);
        }
    }

    /// Returns the noise in dBm in a resource element of `cell` in the UE's receiver.
    fn ue_noise_dbm(&self, cell: &Cell) -> f64 {
        noise_dbm(f64::from(cell.carrier.subcarrier_hz), self.noise_figure_db)
    }

    /// Returns the received power in dBm of a resource element of `serving`, or that of the SINR that was set.
    fn serving_dbm(&self, serving: usize) -> f64 {
        let set = |sinr_db| sinr_db + self.ue_noise_dbm(&self.sites.cells[serving]);
        self.set_db.map_or_else(|| self.rsrp_dbm[serving], set)
    }

    /// Returns the path loss in dB from `serving` as the UE measures it, or that of a recording without received powers.
    fn downlink_loss_db(&self, serving: usize) -> f64 {
        let known = self.links[serving].loss_db.filter(|_| self.set_db.is_none());
        known.unwrap_or_else(|| self.sites.cells[serving].element_dbm - self.serving_dbm(serving))
    }

    /// Returns the uplink's power and SINR without fading.
    fn flat_uplink(&self, serving: usize) -> Uplink {
        let (cell, link) = (&self.sites.cells[serving], &self.links[serving]);
        let downlink_db = self.downlink_loss_db(serving);
        let uplink_db = match &self.channel {
            Channel::Modelled { path_loss, .. } if self.set_db.is_none() => {
                path_loss.loss_db(cell.position, self.place, cell.carrier.uplink_hz, link.sees) - link.gain_db
            }
            Channel::Modelled { .. } | Channel::Recorded(..) => downlink_db,
        };
        // The term 2^mu of 38.213 7.1.1.
        let widths = f64::from(cell.carrier.subcarrier_hz) / 15_000.0;
        Uplink {
            // The UE assumes that the uplink's path loss equals the downlink's.
            target_mw: widths * linear(self.power.p0_dbm + self.power.alpha * downlink_db),
            sinr_per_mw: linear(-uplink_db - cell.noise_dbm),
            headroom_db: None,
        }
    }

    /// Fills `sinr` with the SINR `flat`, shaped by the fading of one direction.
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
        let gains = self.fade(config, direction, serving, now);
        if !matches!(sinr, Sinr::PerRb(all) if all.len() == gains.len()) {
            *sinr = Sinr::PerRb(vec![0.0; gains.len()].into());
        }
        if let Sinr::PerRb(all) = sinr {
            for (sinr, gain) in all.iter_mut().zip(gains) {
                *sinr = flat * gain;
            }
        }
    }

    /// Returns the power gains by fading of a cell's resource blocks.
    #[inline]
    fn fade(&mut self, config: fading::Config, direction: Direction, index: usize, now: Time) -> &[f32] {
        let cell = &self.sites.cells[index];
        let length = cell.carrier.slot_nanos();
        let slot = now.as_nanos() / length;
        let way = match self.doppler_hz {
            Some(hz) => Turns::new(hz * length as f64 * 1e-9).times(slot),
            None => {
                let hz = match direction {
                    Direction::Downlink => cell.carrier.downlink_hz,
                    Direction::Uplink => cell.carrier.uplink_hz,
                };
                Turns::new(self.mobility.travelled(Time::from_nanos(slot * length)) * hz / LIGHT)
            }
        };
        let grid = Grid::new(cell.carrier.prbs, cell.carrier.subcarrier_hz);
        let (seed, fading) = &mut self.fades[index];
        let fading = fading.get_or_insert_with(|| {
            let mut random = Random::seed_from_u64(*seed);
            Box::new([(); 2].map(|()| Fading::on_grid(config.profile, grid, &mut random)))
        });
        fading[direction as usize].gains(way)
    }
}
