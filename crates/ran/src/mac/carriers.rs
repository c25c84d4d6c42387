//! The downlink carriers of a UE: that of its serving cell and, with carrier aggregation, that of the cell's secondary.
//!
//! Each carrier has its own HARQ processes, channel reports, link adaptation and scheduler (36.300 5.5, 38.300 6.7); they
//! share the UE's bearers, its discontinuous reception, and the uplink of the serving cell, on which all feedback and
//! reports are sent.
//!
//! Deviations: the secondary carrier is active as long as the cell serves the UE (36.321 5.13 and 38.321 5.9 activate it
//! by a MAC control element); it is in the same place as the serving cell's, uses its array, and is not
//! monitored: neither for radio link failure, as in the standard, nor by measurement events.

use channel::{Air, Sinr};
use units::Time;

use crate::mac::adaptation::{self, Errors, LinkAdaptation};
use crate::mac::drx;
use crate::mac::harq::Harq;
use crate::rat::Formats;
use crate::slots::Slots;

/// One downlink carrier of a UE.
pub(crate) struct Carrier {
    pub(crate) harq: Harq,
    pub(crate) errors: Errors,
    /// The cell's view of it.
    pub(crate) link: adaptation::Downlink,
    pub(crate) sinr: Sinr,
    /// The time for which `sinr` was computed.
    sinr_at: Option<Time>,
    /// The share of each of several layers, if `divided` says how many.
    pub(crate) share: Sinr,
    pub(crate) divided: u8,
}

impl Carrier {
    /// Creates the carrier of the UE number `index`, with this many processes; an unused one has none.
    pub(crate) fn new(index: u32, processes: u8) -> Carrier {
        Carrier {
            harq: Harq::new(processes),
            errors: Errors::default(),
            link: adaptation::Downlink::new(index),
            sinr: Sinr::default(),
            sinr_at: None,
            share: Sinr::default(),
            divided: 0,
        }
    }

    /// Resets it after the UE number `index` has left its cell.
    pub(crate) fn leave(&mut self, index: u32) {
        self.harq.flush();
        self.errors.forget();
        self.link = adaptation::Downlink::new(index);
        self.sinr_at = None;
    }

    /// Invalidates the SINR after a change of the channel.
    pub(crate) fn invalidate(&mut self) {
        self.sinr_at = None;
        self.link.reports.unsettle();
    }

    /// Computes the SINR of `cell` at `now`, the beginning of a slot, into `self.sinr`.
    #[inline]
    pub(crate) fn measure(&mut self, air: &mut Air, cell: usize, now: Time) {
        if self.sinr_at != Some(now) {
            air.downlink(cell, now, &mut self.sinr);
            self.sinr_at = Some(now);
            self.divided = 0;
        }
    }

    /// Computes the SINR of each of `layers` into `self.share`.
    #[inline]
    pub(crate) fn divide_among(&mut self, layers: u8) {
        if layers > 1 && layers != self.divided {
            adaptation::divide(&self.sinr, layers, &mut self.share);
            self.divided = layers;
        }
    }

    /// Makes the reports about `cell` that it has in `slot`, each for up to `layers`; `group` is the size of the groups of
    /// resource blocks of which the worst is reported, `None` for the whole carrier.
    #[inline]
    pub(crate) fn report(
        &mut self,
        (air, cell): (&mut Air, usize),
        (formats, layers, group): (&Formats, u8, Option<u16>),
        (link, drx): (&LinkAdaptation, Option<&drx::State>),
        slots: Slots,
        slot: u64,
    ) {
        while let Some(at) = self.link.reports.due_in(link, slots, slot, drx) {
            self.measure(air, cell, slots.start(at));
            self.link.measure(formats, (link, group), (&self.sinr, layers, &mut self.share), slots, at);
            self.divided = 0;
        }
    }
}
