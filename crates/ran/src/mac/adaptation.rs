//! Link adaptation: the size of a transport block for the reported channel.
//!
//! The UE reports a CQI for the whole carrier each period, and the eNodeB uses it after its arrival; in the uplink the
//! eNodeB measures the SINR itself (sounding). On top of either, an outer loop lowers the assumed SINR by
//! [`LinkAdaptation::step_db`] for each first transmission that fails and raises it by a ninth of that for each that
//! succeeds, which settles at one failure in ten if the channel lies between two schemes (Sampath, Kumar, Holtzman, VTC
//! 1997). It is trained only by what the choice for the channel decides ([`Chosen`]): a block whose scheme was raised so
//! that headers leave room for data says nothing if it fails. The small blocks of short slots fail more often than large
//! ones with the same scheme: a second loop lowers the SINR that is assumed for them.
//!
//! With several layers, each has its share of the power, and all have the same scheme: in LTE up to two, each with its own
//! code word, in NR up to four with one code word. The UE reports a CQI for each number of layers (rank); the cell uses
//! the rank with the highest expected goodput: the size of a block times the probability that its first transmission is
//! decoded. A higher rank must be worth the while, and meet the target for block errors with its lowest scheme. The outer
//! loop has an offset for each rank, so that it lowers the rank where the reports promise too much for it.
//!
//! Deviations: one wideband report, no subband reports; the outer loop stops if there is no better scheme; layers do
//! not interfere, which favours two layers at low SINR, and both code words of a block are decoded or neither is.

use channel::tables::lte::Category;
use channel::{Direction, Modulation, Sinr, Soft};
use units::Span;

use crate::mac::drx;
use crate::mac::outer_loop::{Chosen, OuterLoop};
use crate::mac::power::{Reported, Strength};
use crate::rat::Formats;
use crate::slots::{Slots, at_or_after, at_or_before};

/// The SINR in dB assumed for the uplink before it was measured.
const UNKNOWN_SINR_DB: f64 = -6.5;

/// The expected goodput of a rank relative to that of lower ones from which on it is used: more than the 4 % between the sizes
/// of NR's blocks (38.214 5.1.3.2), which make two ranks equal on some numbers of resource blocks and unequal on others.
const WORTHWHILE: f64 = 1.05;

/// The parameters of link adaptation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkAdaptation {
    /// Interval of channel measurements: CQI reports, and sounding in the uplink.
    pub period: Span,
    /// Age of a measurement when it is first used.
    pub delay: Span,
    /// Step of the outer loop in dB after a failed first transmission; zero disables it.
    pub step_db: f32,
    /// Whether the downlink is adapted to the CQI of the worst resource block group instead of the carrier's: ns-3's
    /// schedulers use the lowest subband CQI of all groups assigned to a UE. Exact if one UE has the whole carrier, and
    /// pessimistic if several share it.
    pub worst_group: bool,
}

/// The measurements of one channel: those under way, each with the TTI from which it is used, and when the next is due.
///
/// A UE reports and sounds in each period, at its own TTIs, whether it is active or not. Nothing is computed for an
/// idle UE: when it is used again, missing measurements are made up as of the times at which they were due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reports<T> {
    current: T,
    coming: [(u64, T); 16],
    first: u8,
    count: u8,
    /// Offset of the UE's TTI in each period.
    offset: u32,
    /// The TTI of the first missing measurement; `None` before the first one.
    next: Option<u64>,
    /// The period in TTIs at the time of the last measurement.
    period: u64,
    /// Whether a measurement of the same channel would change nothing.
    is_settled: bool,
}

impl<T: Copy + PartialEq> Reports<T> {
    fn new(value: T, offset: u32) -> Self {
        Reports {
            current: value,
            coming: [(0, value); 16],
            first: 0,
            count: 0,
            offset,
            next: None,
            period: 1,
            is_settled: false,
        }
    }

    /// Returns the slot, up to `slot`, of the next measurement needed to know what the eNodeB knows in `slot`.
    #[inline]
    pub(crate) fn due(&self, link: &LinkAdaptation, slots: Slots, slot: u64) -> Option<u64> {
        match self.next {
            Some(next) if slot < next => None,
            next => Some(self.missing(link, slots, next, slot)),
        }
    }

    /// Returns the same for a UE that reports only in a part of its slots if it has `drx`.
    #[inline]
    pub(crate) fn due_in(
        &mut self,
        link: &LinkAdaptation,
        slots: Slots,
        slot: u64,
        drx: Option<&drx::State>,
    ) -> Option<u64> {
        match (drx, self.next) {
            (Some(drx), Some(next)) if next <= slot => self.due_awake(link, slots, (next, slot), drx),
            _ => self.due(link, slots, slot),
        }
    }

    /// [`Reports::due_in`] from slot `next` on.
    fn due_awake(
        &mut self,
        link: &LinkAdaptation,
        slots: Slots,
        (next, slot): (u64, u64),
        drx: &drx::State,
    ) -> Option<u64> {
        let period = slots.spanning(link.period).max(1);
        let phase = u64::from(self.offset);
        let arrived = slot.saturating_sub(slots.spanning(link.delay));
        let newest = drx.newest_report(arrived, period, phase).filter(|newest| *newest >= next);
        let mut at = newest.unwrap_or_else(|| next.max(at_or_after(arrived + 1, period, phase)));
        while at <= slot {
            if drx.reports_in(at) {
                return Some(at);
            }
            at += period;
        }
        self.next = Some(at);
        None
    }

    /// Moves the UE's grid to slots `offset` into each period.
    pub(crate) fn align(&mut self, offset: u64) {
        self.offset = offset as u32;
    }

    fn missing(&self, link: &LinkAdaptation, slots: Slots, next: Option<u64>, slot: u64) -> u64 {
        let period = slots.spanning(link.period).max(1);
        let phase = u64::from(self.offset);
        // The newest report that has arrived replaces earlier ones. Initially it is one of slot 0.
        let arrived = slot.saturating_sub(slots.spanning(link.delay));
        let newest = at_or_before(arrived, period, phase).unwrap_or(0);
        next.map_or(newest, |next| next.max(newest))
    }

    /// Passes over the measurements up to `slot` of a channel that has been constant, if they would change nothing;
    /// returns whether it did.
    #[inline]
    pub(crate) fn pass(&mut self, slot: u64) -> bool {
        let Some(next) = self.next.filter(|_| self.is_settled) else { return false };
        if next <= slot {
            // In most cases one period has passed, and the next one ends after `slot`.
            let after = || at_or_after(slot + 1, self.period, u64::from(self.offset));
            let next = if slot < next + self.period { next + self.period } else { after() };
            debug_assert_eq!(next, after(), "measurements are on the UE's grid");
            self.next = Some(next);
        }
        true
    }

    /// Takes note that the channel changes.
    pub(crate) fn unsettle(&mut self) {
        self.is_settled = false;
    }

    /// Records a measurement of `value` in slot `at`; the first one applies at once, because the UE has reported
    /// before.
    #[inline]
    fn measured(&mut self, link: &LinkAdaptation, slots: Slots, value: T, at: u64) {
        let period = slots.spanning(link.period).max(1);
        if self.next.is_none() {
            self.current = value;
        } else if self.count > 0 || value != self.current {
            // A report under way that changes nothing need not be remembered.
            self.send(at + slots.spanning(link.delay), value);
        }
        self.is_settled = self.count == 0;
        self.period = period;
        // From a slot outside the UE's grid, as the first may be, to the next one on it.
        self.next = Some(at_or_after(at + 1, period, u64::from(self.offset)));
    }

    /// Returns whether all measurements up to `tti` were made.
    pub(crate) fn is_fresh(&self, tti: u64) -> bool {
        self.next.is_some_and(|next| tti <= next)
    }

    #[inline]
    fn send(&mut self, at: u64, value: T) {
        if usize::from(self.count) == self.coming.len() {
            // More reports are under way than are used: the oldest has long arrived.
            self.current = self.coming[usize::from(self.first)].1;
            self.first = (self.first + 1) % 16;
            self.count -= 1;
        }
        self.coming[usize::from((self.first + self.count) % 16)] = (at, value);
        self.count += 1;
    }

    #[inline]
    fn at(&mut self, tti: u64) -> T {
        while self.count > 0 && self.coming[usize::from(self.first)].0 <= tti {
            self.current = self.coming[usize::from(self.first)].1;
            self.first = (self.first + 1) % 16;
            self.count -= 1;
        }
        self.current
    }
}

/// A UE's report: the CQI of each layer with one to four of them, or 0 for more than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quality([u8; 4]);

/// The modulation and coding of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheme {
    /// The CQI it is derived from.
    pub(crate) cqi: u8,
    pub(crate) mcs: u8,
    pub(crate) layers: u8,
}

/// The eNodeB's view of a UE's downlink.
#[derive(Clone, Debug)]
pub(crate) struct Downlink {
    pub(crate) reports: Reports<Quality>,
    pub(crate) outer: OuterLoop,
    /// The channel of the last report, if it was flat.
    measured: Option<(f32, Quality)>,
    /// The scheme for a report and the offsets.
    scheme: Option<(Quality, [f32; 4], Scheme)>,
}

impl Downlink {
    /// Creates the initial state of a UE that reports in TTIs `offset` into each period.
    pub(crate) fn new(offset: u32) -> Downlink {
        Downlink {
            reports: Reports::new(Quality([1, 0, 0, 0]), offset),
            outer: OuterLoop::default(),
            measured: None,
            scheme: None,
        }
    }

    /// Measures `sinr` in `slot`, and the share of each of up to `layers`, for which `share` is memory, and reports it:
    /// with a `group` size in resource blocks the worst group's, otherwise the carrier's.
    pub(crate) fn measure(
        &mut self,
        formats: &Formats,
        (link, group): (&LinkAdaptation, Option<u16>),
        (sinr, layers, share): (&Sinr, u8, &mut Sinr),
        slots: Slots,
        slot: u64,
    ) {
        let cqi = |sinr: &Sinr| group.map_or_else(|| formats.cqi(sinr, None), |group| worst_cqi(formats, sinr, group));
        let quality = match (sinr, self.measured) {
            (Sinr::Flat(now), Some((then, quality))) if *now == then => quality,
            _ => {
                let mut quality = Quality([cqi(sinr), 0, 0, 0]);
                for more in 2..=layers {
                    divide(sinr, more, share);
                    quality.0[usize::from(more) - 1] = cqi(share);
                }
                quality
            }
        };
        self.measured = match sinr {
            Sinr::Flat(now) => Some((*now, quality)),
            Sinr::PerRb(_) => None,
        };
        self.reports.measured(link, slots, quality, slot);
    }

    /// Returns whether the newest report available to the eNodeB in `tti` is CQI 0 (36.213 Table 7.2.3-1: out of
    /// range).
    #[inline]
    pub(crate) fn is_out_of_range(&mut self, tti: u64) -> bool {
        self.reports.at(tti).0[0] == 0
    }

    /// Returns the scheme of a block in `tti`. `formats` are those of a whole slot, so that the layers do not depend on the slot of
    /// the first call.
    #[inline]
    pub(crate) fn scheme(&mut self, formats: &Formats, tti: u64) -> Scheme {
        self.scheme_in(formats, false, tti)
    }

    /// Returns the same, also for a short slot.
    #[inline]
    pub(crate) fn scheme_in(&mut self, formats: &Formats, is_short: bool, tti: u64) -> Scheme {
        let (quality, offsets) = (self.reports.at(tti), self.outer.offsets_in(is_short));
        if let Some((q, o, scheme)) = self.scheme
            && q == quality
            && o == offsets
        {
            return scheme;
        }
        self.choose_scheme(formats, (quality, offsets))
    }

    /// Computes the scheme for a report and the offsets.
    fn choose_scheme(&mut self, formats: &Formats, (quality, offsets): (Quality, [f32; 4])) -> Scheme {
        let offset = |layers: u8| offsets[usize::from(layers) - 1];
        let of = |cqi, layers| Scheme { cqi, mcs: formats.mcs_for(cqi, offset(layers)), layers };
        let bits = |scheme: Scheme| f64::from(scheme.bits(formats, 50));
        let assumed_db = |cqi, layers| formats.cqi_sinr_db(cqi) + offset(layers);
        let goodput = |scheme: Scheme| {
            bits(scheme) * (1.0 - formats.downlink_error(scheme.mcs, assumed_db(scheme.cqi, scheme.layers)))
        };
        let least_db = formats.downlink_sinr_db(0);
        let fits = |(cqi, layers): &(&u8, u8)| **cqi > 0 && assumed_db(**cqi, *layers) >= least_db;
        let mut scheme = of(quality.0[0], 1);
        let mut most = None;
        for (cqi, layers) in quality.0[1..].iter().zip(2..).filter(fits) {
            let more = of(*cqi, layers);
            let carried = WORTHWHILE * *most.get_or_insert_with(|| goodput(scheme));
            // Most cannot win, even without errors.
            if bits(more) > carried && goodput(more) > carried {
                (scheme, most) = (more, Some(goodput(more)));
            }
        }
        self.scheme = Some((quality, offsets, scheme));
        scheme
    }
}

impl Scheme {
    /// Returns the scheme of one layer for a channel that was not reported.
    pub(crate) fn first(formats: &Formats, sinr: &Sinr) -> Scheme {
        let cqi = formats.cqi(sinr, None);
        Scheme { cqi, mcs: formats.mcs_for(cqi, 0.0), layers: 1 }
    }

    /// Returns this scheme, or the best lower one with which a code word on `prbs` resource blocks has at most `bits`.
    #[inline(always)]
    pub(crate) fn within(mut self, formats: &Formats, prbs: u16, bits: u32) -> Scheme {
        while self.mcs > 0 && formats.downlink_bits(self.mcs, self.layers, prbs) > bits {
            self.mcs -= 1;
        }
        self
    }

    /// Returns this scheme, or the lowest higher one with which a code word on `prbs` resource blocks has `bits`, or the best.
    #[inline(always)]
    pub(crate) fn at_least(mut self, formats: &Formats, prbs: u16, bits: u32) -> Scheme {
        while formats.downlink_bits(self.mcs, self.layers, prbs) < bits
            && self.mcs < formats.best_mcs(Direction::Downlink)
        {
            self.mcs += 1;
        }
        self
    }

    /// Returns this scheme, or the next lower one if it cannot be decoded on `prbs` resource blocks.
    #[inline]
    pub(crate) fn usable(self, formats: &Formats, prbs: u16) -> Scheme {
        Scheme { mcs: formats.usable(Direction::Downlink, (self.mcs, self.layers), prbs), ..self }
    }

    /// Returns whether a code word on `prbs` resource blocks leaves room for headers and data.
    pub(crate) fn carries(self, formats: &Formats, prbs: u16) -> bool {
        let mcs = self.usable(formats, prbs).mcs;
        formats.downlink_bits(mcs, self.layers, prbs) >= formats.least_bytes(Direction::Downlink) * 8
    }

    /// Returns the bits of a block on `prbs` resource blocks.
    #[inline]
    pub(crate) fn bits(&self, formats: &Formats, prbs: u16) -> u32 {
        formats.downlink_bits(self.mcs, self.layers, prbs) * u32::from(formats.words(self.layers))
    }
}

/// Returns the lowest CQI of the groups of `group` resource blocks each; 0 only if the whole carrier's is 0.
fn worst_cqi(formats: &Formats, sinr: &Sinr, group: u16) -> u8 {
    let worst = match sinr {
        Sinr::Flat(_) => formats.cqi(sinr, None),
        Sinr::PerRb(all) => {
            let prbs = all.len() as u16;
            let groups = (0..prbs).step_by(usize::from(group.max(1)));
            let cqis = groups.map(|first| formats.cqi(sinr, Some(first..first.saturating_add(group).min(prbs))));
            cqis.min().unwrap_or(0)
        }
    };
    if worst == 0 { formats.cqi(sinr, None).min(1) } else { worst }
}

/// Divides a channel's power among `layers`, reusing the memory of `share`.
pub(crate) fn divide(sinr: &Sinr, layers: u8, share: &mut Sinr) {
    let layers = f32::from(layers);
    match (sinr, &mut *share) {
        (Sinr::PerRb(all), Sinr::PerRb(shares)) if all.len() == shares.len() => {
            for (share, whole) in shares.iter_mut().zip(all.iter()) {
                *share = whole / layers;
            }
        }
        (Sinr::PerRb(all), _) => *share = Sinr::PerRb(all.iter().map(|whole| whole / layers).collect()),
        (Sinr::Flat(whole), _) => *share = Sinr::Flat(whole / layers),
    }
}

/// The eNodeB's measurement of a UE's uplink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sounded {
    /// SINR of a resource block in dB while the UE's power suffices.
    sinr_db: f64,
    /// The UE's power headroom on one block in dB, if the eNodeB knows it without reports.
    headroom_db: Option<f64>,
}

/// The last MCS with which a block fitted.
#[derive(Clone, Copy, Debug)]
struct Fitting {
    /// The SINR in dB, the resource blocks, and the resource elements of each of them.
    of: (f64, u16, u32),
    fitted: (u8, Chosen),
}

/// The eNodeB's view of a UE's uplink.
#[derive(Clone, Debug)]
pub(crate) struct Uplink {
    pub(crate) reports: Reports<Sounded>,
    pub(crate) outer: OuterLoop,
    /// The UE's power headroom reports.
    pub(crate) power: Reported,
    category: Category,
    /// The last SINR, and the MCS for it.
    scheme: Option<(f64, u8)>,
    fitting: Option<Fitting>,
    /// The last SINR that was flat over the carrier, and the same in dB.
    flat: (f32, f64),
}

impl Uplink {
    /// Creates the initial state of a UE of this category that sounds in TTIs `offset` into each period.
    pub(crate) fn new(category: Category, offset: u32) -> Uplink {
        Uplink {
            category,
            reports: Reports::new(Sounded { sinr_db: UNKNOWN_SINR_DB, headroom_db: None }, offset),
            outer: OuterLoop::default(),
            power: Reported::default(),
            scheme: None,
            fitting: None,
            flat: (1.0, 0.0),
        }
    }

    /// Measures `sinr` on one resource block in `tti`. `headroom_db` is the remaining power, if the eNodeB knows it
    /// without reports.
    pub(crate) fn measure(
        &mut self,
        link: &LinkAdaptation,
        sinr: &Sinr,
        headroom_db: Option<f64>,
        slots: Slots,
        tti: u64,
    ) {
        let sinr_db = match sinr {
            Sinr::Flat(flat) => {
                if *flat != self.flat.0 {
                    self.flat = (*flat, decibels(f64::from(*flat)));
                }
                self.flat.1
            }
            // The mean in dB: approximates the value of the carrier for a block spread over it.
            Sinr::PerRb(all) => all.iter().map(|s| decibels(f64::from(*s))).sum::<f64>() / all.len() as f64,
        };
        self.reports.measured(link, slots, Sounded { sinr_db, headroom_db }, tti);
    }

    /// Returns the SINR that the eNodeB assumes in `tti`.
    #[inline]
    pub(crate) fn strength(&mut self, tti: u64) -> Strength {
        let sounded = self.reports.at(tti);
        Strength {
            sinr_db: sounded.sinr_db + f64::from(self.outer.offset_db()),
            headroom_db: sounded.headroom_db.unwrap_or(self.power.one_block_db).max(0.0),
        }
    }

    /// Returns whether the most robust block would fail in all of its `transmissions` with a probability of at least 90
    /// %, on the channel last sounded by `tti`.
    #[inline]
    pub(crate) fn is_out_of_range(&mut self, formats: &Formats, transmissions: u8, tti: u64) -> bool {
        // The outer loop is not applied: without blocks it would never recover.
        let sinr_db = self.reports.at(tti).sinr_db;
        (sinr_db as f32) < formats.robust_sinr_db() && self.is_lost(formats, transmissions, tti)
    }

    /// [`Uplink::is_out_of_range`] for an SINR at which not every number of resource blocks can be decoded.
    fn is_lost(&mut self, formats: &Formats, transmissions: u8, tti: u64) -> bool {
        let sinr_db = self.reports.at(tti).sinr_db;
        let strength = Strength { sinr_db, ..self.strength(tti) };
        let prbs = strength.full_power_prbs().min(formats.widest());
        let least = formats.least_mcs(prbs);
        if strength.sinr_db as f32 >= formats.uplink_sinr_db(least) {
            return false;
        }
        let (modulation, bits) = (formats.modulation(Direction::Uplink, least), formats.uplink_bits(least, prbs));
        let information = channel::mutual_information(modulation, channel::linear(strength.sinr_db) as f32);
        let mut soft = Soft::default();
        for _ in 0..transmissions {
            soft.add(information, formats.coded_bits(Direction::Uplink, modulation, 1, prbs));
        }
        formats.block_error(Direction::Uplink, least, bits, &soft) > 1.0 - channel::phy::TARGET
    }

    /// Returns the SINR in dB that the eNodeB assumes for a block on `prbs` resource blocks of a slot of `formats`.
    #[inline]
    fn assumed_db(&mut self, formats: &Formats, prbs: u16, tti: u64) -> f64 {
        let small_db = if formats.is_short(Direction::Uplink) { self.outer.small_db } else { 0.0 };
        self.strength(tti).on(prbs) + f64::from(small_db)
    }

    /// Returns the MCS for the channel on `prbs` resource blocks.
    #[inline]
    pub(crate) fn scheme_at(&mut self, formats: &Formats, prbs: u16, tti: u64) -> u8 {
        let sinr_db = self.assumed_db(formats, prbs, tti);
        match self.scheme {
            Some((of, mcs)) if of == sinr_db => mcs,
            _ => {
                let mcs = formats.uplink_mcs_at(sinr_db as f32, self.category.uplink_64qam);
                self.scheme = Some((sinr_db, mcs));
                mcs
            }
        }
    }

    /// Returns the MCS on `prbs` resource blocks: that for the channel, or the lowest one with which headers and a report
    /// leave room for data, as far as the UE's category permits.
    #[inline]
    pub(crate) fn scheme(&mut self, formats: &Formats, prbs: u16, tti: u64) -> u8 {
        self.fitted(formats, prbs, tti).0
    }

    /// Returns the same, and how it compares with the choice for the channel.
    #[inline]
    pub(crate) fn fitted(&mut self, formats: &Formats, prbs: u16, tti: u64) -> (u8, Chosen) {
        let key = (self.assumed_db(formats, prbs, tti), prbs, formats.elements(Direction::Uplink));
        match self.fitting {
            Some(Fitting { of, fitted }) if of == key => fitted,
            _ => {
                let fitted = self.fit(formats, prbs, tti);
                self.fitting = Some(Fitting { of: key, fitted });
                fitted
            }
        }
    }

    /// Finds [`Uplink::fitted`].
    fn fit(&mut self, formats: &Formats, prbs: u16, tti: u64) -> (u8, Chosen) {
        let choice = self.scheme_at(formats, prbs, tti);
        let wanted = choice.max(formats.least_mcs(prbs));
        let fits = |mcs: &u8| formats.uplink_bits(*mcs, prbs) <= self.category.uplink_block_bits;
        let permitted = (0..=wanted).rev().find(fits).unwrap_or(0);
        let mcs = formats.usable(Direction::Uplink, (permitted, 1), prbs);
        let best = formats.uplink_mcs_at(f32::INFINITY, self.category.uplink_64qam);
        let chosen = match mcs {
            _ if mcs > choice => Chosen::Raised,
            _ if mcs == best || permitted < choice => Chosen::Highest,
            _ => Chosen::Freely,
        };
        (mcs, chosen)
    }

    /// Returns the fewest resource blocks, from `few` to `most`, on which the scheme for the channel leaves room for headers
    /// and data; `None` if it does on none of them.
    pub(crate) fn carrying(&mut self, formats: &Formats, (few, most): (u16, u16), tti: u64) -> Option<u16> {
        let least = formats.least_bytes(Direction::Uplink) * 8;
        let mut carries = |prbs| {
            let (mcs, chosen) = self.fitted(formats, prbs, tti);
            chosen != Chosen::Raised && formats.uplink_bits(mcs, prbs) >= least
        };
        if carries(few) {
            return Some(few);
        }
        if few >= most || !carries(most) {
            return None;
        }
        // Power that is spread over more blocks carries more.
        let (mut none, mut some) = (few, most);
        while some - none > 1 {
            let middle = none.midpoint(some);
            if carries(middle) {
                some = middle;
            } else {
                none = middle;
            }
        }
        Some(some)
    }
}

/// The first transmission of a code word over a channel that is flat over the carrier.
#[derive(Clone, Copy, Debug)]
struct FirstTransmission {
    sinr: f32,
    mcs: u8,
    layers: u8,
    /// Resource elements; resource blocks if all slots are alike.
    elements: u32,
    information: f32,
    coded_bits: u32,
    /// The probability that it cannot be decoded.
    error: f64,
}

/// The block error probability, with a cache for an unchanged channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Errors {
    last: Option<FirstTransmission>,
    /// Whether the UE uses 16QAM where others use 64QAM.
    without_64qam: bool,
}

impl Errors {
    /// Creates the calculator for the uplink of a UE of `category`.
    pub(crate) fn of_uplink(category: Category) -> Errors {
        Errors { last: None, without_64qam: !category.uplink_64qam }
    }

    /// Forgets the last result, which is of another cell.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Adds a transmission of a code word of `bits` in direction `way`, with `mcs` on `layers` with an SINR of `sinr` each,
    /// on the resource blocks `prbs`, to the receiver's `soft` information; returns the probability that it still cannot
    /// be decoded.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        formats: &Formats,
        (way, mcs, layers): (Direction, u8, u8),
        bits: u32,
        (sinr, prbs): (&Sinr, impl ExactSizeIterator<Item = u16>),
        soft: &mut Soft,
    ) -> f64 {
        let elements = formats.elements(way) * prbs.len() as u32;
        if let (Sinr::Flat(flat), Some(last)) = (sinr, &self.last)
            && soft.coded_bits == 0
            && last.sinr == *flat
            && (last.mcs, last.layers, last.elements) == (mcs, layers, elements)
        {
            soft.add(last.information, last.coded_bits);
            return last.error;
        }
        self.receive(formats, (way, mcs, layers), bits, (sinr, prbs), soft)
    }

    /// [`Errors::transmit`] without its cache.
    fn receive(
        &mut self,
        formats: &Formats,
        (way, mcs, layers): (Direction, u8, u8),
        bits: u32,
        (sinr, prbs): (&Sinr, impl ExactSizeIterator<Item = u16>),
        soft: &mut Soft,
    ) -> f64 {
        let count = prbs.len() as u16;
        let first = soft.coded_bits == 0;
        let mut modulation = formats.modulation(way, mcs);
        if self.without_64qam {
            // 36.213 8.6.1.
            modulation = modulation.min(Modulation::Qam16);
        }
        let information = sinr.information(modulation, prbs);
        let coded_bits = formats.coded_bits(way, modulation, layers, count);
        let error = soft.receive_with(information, coded_bits, |soft| formats.block_error(way, mcs, bits, soft));
        if let Sinr::Flat(sinr) = *sinr
            && first
        {
            let elements = formats.elements(way) * u32::from(count);
            self.last = Some(FirstTransmission { sinr, mcs, layers, elements, information, coded_bits, error });
        }
        error
    }
}

/// Returns ten times the decimal logarithm.
pub(crate) fn decibels(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio.max(1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_from_its_arrival_on() {
        let mut reports = Reports::new(1, 0);
        reports.send(10, 2);
        reports.send(15, 3);
        assert_eq!([9, 10, 14, 15, 16].map(|tti| reports.at(tti)), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn one_deep_notch_decides_the_scheme_if_the_worst_group_is_reported() {
        // 30 dB on 50 blocks, but 3 dB on the three of the sixth group.
        let sinr = Sinr::PerRb((0..50).map(|prb| if (15..18).contains(&prb) { 2.0 } else { 1000.0 }).collect());
        let reported = |group| {
            let mut downlink = Downlink::new(0);
            downlink.measure(
                &Formats::Lte,
                (&LinkAdaptation::default(), group),
                (&sinr, 1, &mut Sinr::default()),
                Slots::LTE,
                0,
            );
            downlink.scheme(&Formats::Lte, 0).cqi
        };
        assert_eq!((reported(None), reported(Some(3))), (14, channel::wideband_cqi(&Sinr::Flat(2.0))));
        assert_eq!(worst_cqi(&Formats::Lte, &Sinr::Flat(1000.0), 3), 15);
        // A group without a signal does not put the UE out of range.
        let around = |sinr: f32| (0..50).map(|prb| if (15..18).contains(&prb) { 0.0 } else { sinr }).collect();
        assert_eq!([1000.0, 0.0].map(|sinr| worst_cqi(&Formats::Lte, &Sinr::PerRb(around(sinr)), 3)), [1, 0]);
    }

    #[test]
    fn a_scheme_falls_to_what_the_ue_can_take_down_to_the_lowest_and_rises_to_what_is_needed() {
        let scheme = |mcs| Scheme { cqi: 9, mcs, layers: 1 };
        let bits = |mcs| Formats::Lte.downlink_bits(mcs, 1, 50);
        for lower in 0..20 {
            // MCS 9 and 10, and 16 and 17, have the same block sizes.
            let fallen = scheme(20).within(&Formats::Lte, 50, bits(lower)).mcs;
            let risen = scheme(0).at_least(&Formats::Lte, 50, bits(lower)).mcs;
            assert!(risen <= lower && lower <= fallen, "{risen} and {fallen} for {lower}");
            assert_eq!([risen, fallen].map(bits), [bits(lower); 2]);
        }
        assert_eq!(scheme(20).within(&Formats::Lte, 50, 0).mcs, 0);
    }

    #[test]
    fn a_report_is_as_old_after_idle_time_as_without() {
        let link = LinkAdaptation::default();
        // Each measurement is its own TTI. Looked at in each TTI, and in a few.
        let look = |reports: &mut Reports<u64>, tti: u64| {
            let mut measured = 0;
            while let Some(at) = reports.due(&link, Slots::LTE, tti) {
                assert!(at <= tti);
                reports.measured(&link, Slots::LTE, at, at);
                measured += 1;
            }
            (reports.at(tti), measured)
        };
        for offset in 0..7 {
            let (mut busy, mut idle) = (Reports::new(u64::MAX, offset), Reports::new(u64::MAX, offset));
            let mut next = u64::from(offset * 3);
            for tti in 0..2000 {
                let (value, _) = look(&mut busy, tti);
                if tti == next {
                    let (after_idle, measured) = look(&mut idle, tti);
                    assert_eq!(after_idle, value, "{tti}");
                    assert!(measured <= 3, "{tti}: {measured}");
                    next = tti + 1 + tti * 7919 % 41;
                }
                if tti > 20 {
                    assert!((6..=10).contains(&(tti - value)), "{tti}: {value}");
                }
            }
        }
    }

    #[test]
    fn a_ue_at_its_power_limit_loses_3_db_for_twice_the_blocks() {
        let mut uplink = Uplink::new(Category::UNLIMITED, 0);
        uplink.measure(&LinkAdaptation::default(), &Sinr::Flat(100.0), None, Slots::LTE, 0);
        let at = |uplink: &mut Uplink, prbs| uplink.strength(0).on(prbs);
        assert!((at(&mut uplink, 10) - 10.0).abs() < 1e-6, "one block, until the UE has reported");
        uplink.power.learn(10.0, 1, 0);
        assert!((at(&mut uplink, 10) - 20.0).abs() < 1e-6 && (at(&mut uplink, 20) - 17.0).abs() < 0.02);
        uplink.outer.offsets_db[0] = -2.0;
        assert!((at(&mut uplink, 20) - 15.0).abs() < 0.02, "the outer loop counts");
    }

    #[test]
    fn no_scheme_has_more_bits_than_coded_bits_or_too_few_for_its_headers() {
        let mut uplink = Uplink::new(Category::UNLIMITED, 0);
        for db in -20..40 {
            uplink.reports = Reports::new(Sounded { sinr_db: f64::from(db) * 0.5, headroom_db: Some(30.0) }, 0);
            for prbs in 1..=100u16 {
                let mcs = uplink.scheme(&Formats::Lte, prbs, 0);
                let scheme = channel::tables::lte::ul_mcs(mcs);
                let bits = Formats::Lte.uplink_bits(mcs, prbs);
                let coded = channel::coded_bits(Direction::Uplink, scheme.modulation, prbs);
                assert!(bits + 24 <= coded, "MCS {mcs} on {prbs}: {bits} of {coded}");
                assert!(bits >= 56, "MCS {mcs} on {prbs}: {bits}");
            }
        }
    }
}
