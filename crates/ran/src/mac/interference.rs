//! Interference between the cells of a network that share a carrier.
//!
//! A downlink block is decoded with what the other cells transmit at that moment, resource block by resource block, and an
//! uplink block with what UEs of other cells transmit. What is measured (CQI, RSRQ, the quality of the radio link, sounding)
//! is the mean over the past windows of [`WINDOW`], each weighted with [`WEIGHT`]: 36.213 7.2.3 and 38.214 5.2.2.1 leave the
//! time over which a UE averages interference open. Of a cell with an array, the downlink has a mean for each beam. A cell
//! that shares its carrier with no other has a mean as well, on which only its own RSRQ depends.
//!
//! Deviations:
//! 1. The downlink of TDD cells does not interfere with the uplink of others, nor the other way round. Cells with one pattern
//!    never have opposite directions, and a scenario has one pattern; what is left out is that of flexible slots, whose symbols
//!    each cell divides by its own demand. It needs paths between masts and between UEs, and means for each pair of UEs.
//! 2. Interference of a cell whose carrier has another width or subcarrier spacing is spread over that carrier. If its slots
//!    are shorter, a longer slot meets those that begin with it.
//! 3. Control channels and reference signals do not interfere with data.
//! 4. A measurement that is made up for a UE that was idle ([`super::adaptation::Reports`]) has the mean of the time at
//!    which it is made up.
//! 5. A cell sends a whole slot with the beam of its first block, as far as others hear it. What it sends with a beam whose
//!    mean is below [`LEAST`], and the share of its resource blocks that interferes without data, is measured with the mean
//!    gain over beams. An ideal beam counts as the nearest of a fine codebook ([`channel::Array::interfering`]).
//! 6. The beam with which a cell receives its own UEs does not change what it receives of others.

use core::ops::Range;
use std::sync::Arc;

use channel::{Air, Antenna, BeamShare, Direction, Occupied, Random, Sinr, Site};
use rand_core::{Rng, SeedableRng};
use units::{Span, Time};

use crate::config::CellConfig;
use crate::mac::cell::Cell;

/// Interval after which the means are updated.
const WINDOW: Span = Span::from_millis(10);
/// Weight of the newest window.
const WEIGHT: f64 = 0.5;
/// Means below this are zero, so that an idle network comes to rest.
const LEAST: f64 = 1e-3;

/// What one cell does to others, and others to it.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Whether another cell uses its carrier of downlink and uplink.
    is_shared: [bool; 2],
    /// Fraction of the resource blocks without data that interferes.
    background: f32,
    /// Resource blocks with data in this window.
    used: u64,
    /// Resource blocks that downlink and uplink have had until the last window.
    had: [u64; 2],
    /// Mean fraction of the resource blocks with data.
    mean: f64,
    /// The sum of interference over noise in this window's uplink, over resource blocks.
    heard: f64,
    /// Mean interference over noise of a resource block of the uplink.
    rise: f64,
}

/// A UE that transmits.
#[derive(Clone, Copy, Debug)]
struct Sender {
    ue: u32,
    cell: usize,
    first: u16,
    end: u16,
    /// The tick in which its slot ends.
    until: u64,
    /// Power in mW of each resource block.
    mw: f64,
}

/// What a cell with an array sends with each beam.
#[derive(Clone, Debug)]
struct Beams {
    cell: usize,
    /// Mean shares of the resource blocks, in ascending order of the beams; zero, or at least [`LEAST`].
    means: Vec<BeamShare>,
    /// Resource blocks with data in this window, in the same order.
    used: Vec<u64>,
}

/// A window of one direction of a cell, and the empty ones after it.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Resource blocks that the cell had in it.
    blocks: u64,
    /// Weight that the empty windows leave to it and earlier ones.
    fade: f64,
}

/// The means over past windows.
#[derive(Clone, Debug)]
struct Means {
    cells: Box<[Activity]>,
    /// Of each cell, the mean fraction of resource blocks that interfere.
    loads: Arc<[f32]>,
    /// The cells with arrays on shared carriers.
    beams: Box<[Beams]>,
    /// The end of the present window.
    until: Time,
}

/// See the module.
pub(crate) struct Interference {
    means: Means,
    carriers: Box<[channel::Carrier]>,
    /// Whether any cells share a carrier of downlink and uplink.
    any_shared: [bool; 2],
    /// Number of changes of the loads.
    version: u32,
    /// What the cells transmit, and until when; zero if they do not.
    on_air: Box<[Occupied]>,
    ends: Box<[u64]>,
    /// The cells that transmit.
    sending: Vec<usize>,
    senders: Vec<Sender>,
    /// Reused buffers.
    steps: Vec<f64>,
    sinr: Sinr,
}

impl Interference {
    pub(crate) fn new(cells: &[CellConfig]) -> Interference {
        let shares = |site: &Site, hz: fn(&Site) -> f64| cells.iter().filter(|c| hz(&c.site) == hz(site)).count() > 1;
        let activity = |c: &CellConfig| Activity {
            is_shared: [shares(&c.site, |s| s.carrier.downlink_hz), shares(&c.site, |s| s.carrier.uplink_hz)],
            background: c.load,
            used: 0,
            had: [0; 2],
            mean: 0.0,
            heard: 0.0,
            rise: 0.0,
        };
        let quiet = |c: &CellConfig| Occupied { background: c.load, ..Occupied::default() };
        let activities: Box<[_]> = cells.iter().map(activity).collect();
        let steers =
            |cell: &usize| activities[*cell].is_shared[0] && matches!(cells[*cell].site.antenna, Antenna::Array(_));
        let beams = (0..cells.len()).filter(steers).map(Beams::new).collect();
        Interference {
            any_shared: [0, 1].map(|way| activities.iter().any(|a| a.is_shared[way])),
            means: Means {
                loads: activities.iter().map(Activity::load).collect(),
                cells: activities,
                beams,
                until: Time::ZERO + WINDOW,
            },
            carriers: cells.iter().map(|c| c.site.carrier).collect(),
            version: 0,
            on_air: cells.iter().map(quiet).collect(),
            ends: vec![0; cells.len()].into(),
            sending: Vec::new(),
            senders: Vec::new(),
            steps: Vec::new(),
            sinr: Sinr::default(),
        }
    }

    /// Returns whether another cell uses the carrier of `cell` in a direction.
    #[inline]
    pub(crate) fn is_shared(&self, cell: usize, direction: Direction) -> bool {
        self.means.cells[cell].is_shared[direction as usize]
    }

    /// Returns whether any cells share a carrier in a direction.
    #[inline]
    pub(crate) fn any_shared(&self, direction: Direction) -> bool {
        self.any_shared[direction as usize]
    }

    /// Returns whether the beams of `cell` matter to others.
    #[inline]
    pub(crate) fn steers(&self, cell: usize) -> bool {
        self.means.beams_of(cell).is_ok()
    }

    /// Returns the number of changes of the loads so far.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Sets the mean loads and beams of all cells in `air`.
    pub(crate) fn load(&self, air: &mut Air) {
        self.means.load(air);
    }

    /// Sets the fraction of the resource blocks of `cell` without data that interferes.
    pub(crate) fn set_background(&mut self, cell: usize, load: f32) {
        let activity = &mut self.means.cells[cell];
        activity.background = load;
        Arc::make_mut(&mut self.means.loads)[cell] = activity.load();
        self.on_air[cell].background = load;
        self.version += 1;
    }

    /// Returns whether no cell that others hear has transmitted recently.
    pub(crate) fn is_quiet(&self) -> bool {
        self.means.are_zero()
    }

    /// Updates the means to `now`; returns whether the network was quiet and no longer is.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time, cells: &[Cell]) -> bool {
        if now < self.means.until {
            return false;
        }
        let was_quiet = self.is_quiet();
        let changed = self.means.advance(now, cells);
        self.version += u32::from(changed);
        changed && was_quiet
    }

    /// Sets the mean loads in `air` that the cells will have at `now`.
    pub(crate) fn foresee(&self, air: &mut Air, now: Time, cells: &[Cell]) {
        let mut then = self.means.clone();
        if now >= then.until {
            then.advance(now, cells);
        }
        then.load(air);
    }

    /// Forgets what ended before `tick`.
    #[inline]
    pub(crate) fn begin(&mut self, tick: u64) {
        let Interference { sending, on_air, ends, .. } = self;
        sending.retain(|cell| {
            let goes_on = ends[*cell] > tick;
            if !goes_on {
                (on_air[*cell].prbs, on_air[*cell].beam, ends[*cell]) = (0, None, 0);
            }
            goes_on
        });
    }

    /// `cell` transmits on `prbs` resource blocks, for its mean load.
    #[inline]
    pub(crate) fn count(&mut self, cell: usize, prbs: u16) {
        self.means.cells[cell].used += u64::from(prbs);
    }

    /// `cell`, which others hear, transmits on these resource blocks until tick `end`, with this beam.
    #[inline]
    pub(crate) fn occupy(&mut self, cell: usize, blocks: Range<u16>, beam: Option<u32>, end: u64) {
        let prbs = blocks.len() as u16;
        let on_air = &mut self.on_air[cell];
        *on_air = Occupied { first: blocks.start, prbs, beam, ..*on_air };
        if self.ends[cell] == 0 {
            self.sending.push(cell);
        }
        self.ends[cell] = end;
        if let (Some(beam), Ok(index)) = (beam, self.means.beams_of(cell)) {
            self.means.beams[index].add(beam, prbs);
        }
    }

    /// Returns where `cell` begins to give out the resources of `slot`, of which it leaves `spare` unused: a pseudo-random
    /// number up to `spare` if others use its carrier in this direction, otherwise zero. Cells that all began with their
    /// first resource block would meet in each slot, whereas the mean that they measure is of the whole carrier.
    #[inline]
    pub(crate) fn start(&self, cell: usize, direction: Direction, slot: u64, spare: u16) -> u16 {
        if spare == 0 || !self.is_shared(cell, direction) {
            return 0;
        }
        let seed = slot.wrapping_mul(self.carriers.len() as u64).wrapping_add(cell as u64);
        let number = Random::seed_from_u64(seed).next_u64() >> 32;
        ((number * (u64::from(spare) + 1)) >> 32) as u16
    }

    /// Computes the SINR of `serving`'s resource blocks at a UE with what the cells transmit.
    #[inline]
    pub(crate) fn downlink(&mut self, air: &mut Air, serving: usize, now: Time) -> &Sinr {
        air.downlink_among(serving, now, &self.on_air, &mut self.steps, &mut self.sinr);
        &self.sinr
    }

    /// Forgets the senders whose slots have ended by `tick`.
    #[inline]
    pub(crate) fn end_senders(&mut self, tick: u64) {
        self.senders.retain(|sender| sender.until > tick);
    }

    /// `ue` transmits to `cell` on these resource blocks from `now` until tick `until`.
    pub(crate) fn add_sender(
        &mut self,
        (ue, air): (u32, &mut Air),
        cell: usize,
        prbs: (u16, u16),
        (now, until): (Time, u64),
    ) {
        let (first, count) = prbs;
        let mw = air.block_mw(cell, now, count);
        self.senders.push(Sender { ue, cell, first, end: first + count, until, mw });
        let Interference { means, carriers, .. } = self;
        air.interference(cell, |other, per_mw| {
            if carriers[other].uplink_hz == carriers[cell].uplink_hz {
                means.cells[other].heard += mw * per_mw * f64::from(count);
            }
        });
    }

    /// Adds the interference of other UEs to `sinr`, with which `cell` receives a UE on `blocks`. `air` returns a UE's
    /// radio.
    pub(crate) fn uplink<'a>(
        &mut self,
        cell: usize,
        blocks: Range<u16>,
        air: impl Fn(u32) -> &'a Air,
        sinr: &mut Sinr,
    ) {
        let Interference { senders, steps, carriers, .. } = self;
        let here = carriers[cell];
        let prbs = usize::from(here.prbs);
        let mut even = 0.0;
        steps.clear();
        for sender in senders.iter().filter(|s| s.cell != cell && carriers[s.cell].uplink_hz == here.uplink_hz) {
            let there = carriers[sender.cell];
            let is_alike = (there.prbs, there.subcarrier_hz) == (here.prbs, here.subcarrier_hz);
            if is_alike && (sender.end <= blocks.start || blocks.end <= sender.first) {
                continue;
            }
            let over_noise = sender.mw * air(sender.ue).interference_per_mw(sender.cell, cell);
            if !is_alike {
                even += over_noise * f64::from(sender.end - sender.first) / f64::from(there.prbs);
            } else if sender.first <= blocks.start && blocks.end <= sender.end {
                even += over_noise;
            } else {
                if steps.is_empty() {
                    steps.resize(prbs + 1, 0.0);
                }
                steps[usize::from(sender.first)] += over_noise;
                steps[usize::from(sender.end)] -= over_noise;
            }
        }
        if even > 0.0 {
            sinr.scale((1.0 / (1.0 + even)) as f32);
        }
        if !steps.is_empty() {
            let mut more = 0.0;
            for (value, step) in sinr.per_block(prbs).iter_mut().zip(steps) {
                more += *step;
                *value *= ((1.0 + even) / (1.0 + even + more)) as f32;
            }
        }
    }

    /// Returns by how much mean interference lowers the SINR of `cell`'s uplink, as a factor.
    #[inline]
    pub(crate) fn uplink_factor(&self, cell: usize) -> f32 {
        (1.0 / (1.0 + self.means.cells[cell].rise)) as f32
    }
}

impl Means {
    /// Sets the loads and beams of all cells in `air`.
    fn load(&self, air: &mut Air) {
        air.set_loads(&self.loads);
        for beams in &self.beams {
            air.set_beams(beams.cell, &beams.means);
        }
    }

    /// Returns the place of `cell` among those with arrays.
    #[inline]
    fn beams_of(&self, cell: usize) -> Result<usize, usize> {
        self.beams.binary_search_by_key(&cell, |beams| beams.cell)
    }

    /// Returns whether no cell that others hear has transmitted recently.
    fn are_zero(&self) -> bool {
        self.cells.iter().all(|activity| activity.mean == 0.0 || !activity.is_heard())
    }

    /// Ends the windows that are over by `now`; returns whether a load that others hear has changed.
    #[inline(never)]
    fn advance(&mut self, now: Time, cells: &[Cell]) -> bool {
        let windows = now.saturating_since(self.until).as_nanos() / WINDOW.as_nanos();
        let end = self.until;
        self.until = end + WINDOW * (windows + 1);
        // Nothing was sent in the windows after the first.
        let fade = libm::pow(1.0 - WEIGHT, windows as f64);
        let mut changed = false;
        let mut beams = self.beams.iter_mut().peekable();
        let loads = Arc::make_mut(&mut self.loads);
        for (index, (activity, cell)) in self.cells.iter_mut().zip(cells).enumerate() {
            let had = |way, at| cell.formats.slots_with(way, cell.slots.next_after(at)) * u64::from(cell.grid.prbs);
            let mut window = |way: Direction| {
                let blocks = had(way, end).saturating_sub(activity.had[way as usize]);
                activity.had[way as usize] = had(way, end + WINDOW * windows);
                Window { blocks, fade }
            };
            let [down, up] = [Direction::Downlink, Direction::Uplink].map(&mut window);
            let load = down.mean(activity.used as f64, activity.mean).min(1.0);
            activity.rise = up.mean(activity.heard, activity.rise);
            changed |= load != activity.mean && activity.is_heard();
            (activity.mean, activity.used, activity.heard) = (load, 0, 0.0);
            loads[index] = activity.load();
            if let Some(beams) = beams.next_if(|beams| beams.cell == index) {
                changed |= beams.advance(down, load);
            }
        }
        changed
    }
}

impl Window {
    /// Returns the mean of `sum` over the blocks of this window and `old`, that of earlier ones.
    fn mean(self, sum: f64, old: f64) -> f64 {
        let newest = if self.blocks > 0 { sum / self.blocks as f64 } else { 0.0 };
        let mean = (old + WEIGHT * (newest - old)) * self.fade;
        if mean < LEAST { 0.0 } else { mean }
    }
}

impl Beams {
    fn new(cell: usize) -> Beams {
        Beams { cell, means: Vec::new(), used: Vec::new() }
    }

    /// The cell transmits on `prbs` resource blocks with this beam.
    fn add(&mut self, beam: u32, prbs: u16) {
        let index = self.means.binary_search_by_key(&beam, |mean| mean.beam).unwrap_or_else(|index| {
            self.means.insert(index, BeamShare { beam, share: 0.0 });
            self.used.insert(index, 0);
            index
        });
        self.used[index] += u64::from(prbs);
    }

    /// Ends `window`, after which the cell's mean is `load`; returns whether a share has changed.
    fn advance(&mut self, window: Window, load: f64) -> bool {
        let mut changed = false;
        for (mean, used) in self.means.iter_mut().zip(&self.used) {
            let share = window.mean(*used as f64, mean.share).min(load);
            changed |= share != mean.share;
            mean.share = share;
        }
        self.means.retain(|mean| mean.share > 0.0);
        self.used.clear();
        self.used.resize(self.means.len(), 0);
        changed
    }
}

impl Activity {
    /// Returns whether another cell uses the carrier of its downlink.
    fn is_heard(&self) -> bool {
        self.is_shared[Direction::Downlink as usize]
    }

    /// Returns the mean fraction of resource blocks that interfere.
    fn load(&self) -> f32 {
        (self.mean + (1.0 - self.mean) * f64::from(self.background)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 100 resource blocks, and the empty ones after it.
    fn window(empty: i32) -> Window {
        Window { blocks: 100, fade: (1.0 - WEIGHT).powi(empty) }
    }

    /// Each window counts half, and those before it as much together.
    #[test]
    fn a_mean_follows_the_newest_window_and_fades_in_empty_ones() {
        let is_near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-12, "{got} for {wanted}");
        is_near(window(0).mean(50.0, 0.2), 0.35);
        is_near(window(2).mean(50.0, 0.2), 0.0875);
        is_near(Window { blocks: 0, ..window(0) }.mean(50.0, 0.2), 0.1);
        // Nearly nothing is nothing.
        is_near(window(0).mean(0.0, 0.002), LEAST);
        is_near(window(0).mean(0.0, 0.001_99), 0.0);
    }

    #[test]
    fn the_blocks_without_data_interfere_in_part() {
        let activity = Activity {
            is_shared: [true, false],
            background: 0.4,
            used: 0,
            had: [0; 2],
            mean: 0.5,
            heard: 0.0,
            rise: 0.0,
        };
        assert_eq!(activity.load(), 0.7);
        assert!(activity.is_heard() && !Activity { is_shared: [false, true], ..activity }.is_heard());
    }

    #[test]
    fn each_beam_has_its_share_while_it_is_used() {
        let mut beams = Beams::new(3);
        let mut after = |used: &[(u32, u16)], load: f64| {
            used.iter().for_each(|&(beam, prbs)| beams.add(beam, prbs));
            let changed = beams.advance(window(0), load);
            (changed, beams.means.iter().map(|mean| (mean.beam, mean.share)).collect::<Vec<_>>())
        };
        assert_eq!(after(&[(5, 10), (2, 20), (5, 30)], 1.0), (true, vec![(2, 0.1), (5, 0.2)]));
        assert_eq!(after(&[(2, 10), (5, 20)], 1.0), (false, vec![(2, 0.1), (5, 0.2)]), "as before");
        assert_eq!(after(&[(7, 50)], 1.0), (true, vec![(2, 0.05), (5, 0.1), (7, 0.25)]));
        // No beam has more than the cell.
        assert_eq!(after(&[(7, 50)], 0.125), (true, vec![(2, 0.025), (5, 0.05), (7, 0.125)]));
        // A beam that is not used any more is forgotten, and the others keep theirs.
        (0..4).for_each(|_| drop(after(&[(7, 50)], 0.125)));
        assert_eq!(after(&[(7, 50)], 0.125), (true, vec![(5, 0.05 / 32.0), (7, 0.125)]));
    }
}
