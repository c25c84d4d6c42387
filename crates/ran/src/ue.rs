//! The state of one UE: its radio, its bearers, and both ends of its transmissions.
//!
//! [`Phy`], [`Mac`], [`Bearers`] and [`Rrc`] do not know each other. What needs several of them is a method of [`Ue`], or
//! takes them as arguments.

mod bearers;
mod mac;
mod phy;
mod rrc;

pub(crate) use bearers::Bearers;
pub(crate) use mac::Mac;
pub(crate) use phy::Phy;
pub(crate) use rrc::{Link, Rrc};

use aqm::{Drops, Packet};
use channel::{Air, Direction, Random};
use units::Time;

use crate::config::UeConfig;
use crate::handover::Measurements;
use crate::mac::adaptation::LinkAdaptation;
use crate::mac::cell::Cell;
use crate::mac::interference::Interference;
use crate::rat::{Formats, Reports};
use crate::slots::Slots;
use crate::stats::UeStats;

/// See the module.
pub(crate) struct Ue<P> {
    pub(crate) phy: Phy,
    pub(crate) mac: Mac,
    pub(crate) bearers: Bearers<P>,
    pub(crate) rrc: Rrc,
    /// The cell that serves it, or served it last, and that cell's slots, which its MAC uses.
    pub(crate) serving: usize,
    pub(crate) slots: Slots,
    /// The secondary carrier, as a cell, that it receives as well.
    pub(crate) secondary: Option<usize>,
    /// Calendar entries from before the last change of the cell have a different epoch.
    pub(crate) epoch: u16,
    pub(crate) stats: UeStats,
}

impl<P: Packet> Ue<P> {
    /// Creates the UE number `index`, idle and connected to `serving`, which is `cell`. Its channel `is_constant`, or may vary.
    pub(crate) fn new(
        index: u32,
        config: &UeConfig,
        (air, random, is_constant): (Air, Random, bool),
        measurements: Measurements,
        (serving, cell): (usize, &Cell),
    ) -> Ue<P> {
        let mut mac = Mac::new(index, config, cell);
        let secondary = mac.aggregate(cell);
        mac.start_drx(cell, Time::ZERO);
        Ue {
            phy: Phy::new(air, random, is_constant),
            mac,
            bearers: Bearers::new(config, cell.mac.rat.is_nr()),
            rrc: Rrc::new(measurements, serving),
            serving,
            slots: cell.slots,
            secondary,
            epoch: 0,
            stats: UeStats::default(),
        }
    }

    /// Fills the block of `process` with up to `bytes` ([`Bearers::fill`]); returns the bytes left.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        way: Direction,
        process: u8,
        size: (u32, bool),
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let block = self.mac.block(way, process);
        self.bearers.fill(way, (block, &mut self.stats.of(way).starved), size, now, drops)
    }

    /// Returns which of its carriers is `cell`'s: the serving cell's or the secondary's.
    #[inline]
    pub(crate) fn carrier_in(&self, cell: usize) -> usize {
        usize::from(cell != self.serving)
    }

    /// Computes the serving cell's SINR at `now`, the beginning of a slot.
    #[inline]
    pub(crate) fn measure_downlink(&mut self, now: Time) {
        self.mac.down[0].measure(&mut self.phy.air, self.serving, now);
    }

    /// Brings the loads of the cells up to date.
    #[inline]
    pub(crate) fn hear(&mut self, interference: &Interference) {
        if self.phy.hear(interference) {
            self.mac.invalidate_sinr();
        }
    }

    /// Makes the reports of a carrier that its cell, with these parameters and resource block groups of `group` blocks, has
    /// in `slot`.
    #[inline]
    pub(crate) fn report_channel(&mut self, cell: usize, with: (&Formats, &LinkAdaptation), group: u16, slot: u64) {
        let carrier = self.carrier_in(cell);
        let Ue { phy, mac, slots, .. } = self;
        let passes = phy.is_constant && mac.drx.is_none() && mac.down[carrier].link.reports.pass(slot);
        if !passes {
            mac.measure_channel((&mut phy.air, cell, carrier), with, group, (*slots, slot));
        }
    }

    /// Makes the uplink measurements that the eNodeB has in `slot`, including the UE's power if that is not reported.
    /// Interference lowers the SINR by `factor`.
    #[inline]
    pub(crate) fn sound(&mut self, link: &LinkAdaptation, reports: Reports, factor: f32, slot: u64) {
        let Ue { phy, mac, slots, serving, .. } = self;
        let passes = phy.is_constant && mac.drx.is_none() && mac.uplink.reports.pass(slot);
        if !passes {
            let air = (&mut phy.air, &mut phy.up_sinr, *serving);
            mac.measure_uplink(air, (link, reports), factor, (*slots, slot));
        }
    }

    /// Returns whether it has to be scheduled in a direction as soon as it listens.
    pub(crate) fn needs_cell(&self, way: Direction, now: Time) -> bool {
        let Ue { mac, bearers, .. } = self;
        match way {
            Direction::Downlink => {
                mac.down.iter().any(|carrier| carrier.harq.again().is_some()) || bearers.has_data(way, now)
            }
            Direction::Uplink => mac.up.harq.again().is_some() || mac.estimate.wants(),
        }
    }

    /// Changes the serving cell to `serving`, which is `cell`. The UE has left the previous one.
    pub(crate) fn tune(&mut self, serving: usize, cell: &Cell) {
        self.serving = serving;
        self.slots = cell.slots;
        self.mac.tune(cell);
        self.secondary = self.mac.aggregate(cell);
    }

    /// Resets everything about the previous serving cell, except the contents of RLC and PDCP.
    pub(crate) fn leave(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.mac.leave();
        self.bearers.leave();
        self.rrc.leave();
    }
}
