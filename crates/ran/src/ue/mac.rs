//! MAC at both ends of a UE's link: blocks, link adaptation, requests and discontinuous reception.

use channel::tables::lte::Category;
use channel::{Air, Direction, Sinr};
use units::{Span, Time};

use crate::config::{MacConfig, UeConfig};
use crate::mac::adaptation::{self, Errors, LinkAdaptation};
use crate::mac::carriers::Carrier;
use crate::mac::cell::Cell;
use crate::mac::configured::Place;
use crate::mac::drx;
use crate::mac::harq::{CARRIERS, Harq, Transport, carrier_of};
use crate::mac::power::Reporting;
use crate::mac::requests::{BufferEstimate, RequestState};
use crate::mac::sched::Past;
use crate::rat::{Formats, Reports};
use crate::slots::Slots;

/// The uplink of a UE.
pub(crate) struct Way {
    pub(crate) harq: Harq,
    pub(crate) past: Past,
    pub(crate) errors: Errors,
}

impl Way {
    fn new(processes: u8, past: Past) -> Way {
        Way { harq: Harq::new(processes), past, errors: Errors::default() }
    }
}

/// See the module.
pub(crate) struct Mac {
    /// The UE's number, which spreads its reports over their period.
    index: u32,
    /// The carriers of the serving cell and of the secondary.
    pub(crate) down: [Carrier; CARRIERS],
    /// The service of all of them.
    pub(crate) down_past: Past,
    pub(crate) up: Way,
    /// The cell's view of the uplink.
    pub(crate) uplink: adaptation::Uplink,
    /// The layers that are configured.
    layers: u8,
    /// Whether the UE receives the secondary carrier of a cell that has one.
    aggregates: bool,
    /// The UE's category in LTE, and what limits it in the serving cell: that, or nothing in NR.
    lte_category: Category,
    pub(crate) category: Category,
    pub(crate) request_state: RequestState,
    pub(crate) reporting: Reporting,
    pub(crate) estimate: BufferEstimate,
    /// Its discontinuous reception, in a cell that configures it.
    pub(crate) drx: Option<Box<drx::State>>,
    /// Its place among the configured grants of its cell.
    pub(crate) configured: Option<Box<Place>>,
    /// Time outside its Active Time in earlier cells.
    pub(crate) asleep_before: Span,
    /// Bit b: bearer b had uplink data at the last check; `SRB_BIT`: SRB1 had.
    pub(crate) had_data: u16,
}

impl Mac {
    /// Creates the state of the UE number `index`, which is idle in `cell`.
    pub(crate) fn new(index: u32, config: &UeConfig, cell: &Cell) -> Mac {
        let processes = cell.timing.processes();
        let category = category_in(cell, config.category);
        Mac {
            index,
            down: [Carrier::new(index, processes), Carrier::new(index, 0)],
            down_past: cell.past(),
            up: Way { errors: Errors::of_uplink(category), ..Way::new(processes, cell.past()) },
            uplink: adaptation::Uplink::new(category, index),
            layers: config.layers,
            aggregates: config.aggregates,
            lte_category: config.category,
            category,
            request_state: RequestState::new(),
            reporting: Reporting::new(),
            estimate: BufferEstimate::default(),
            drx: None,
            configured: None,
            asleep_before: Span::ZERO,
            had_data: 0,
        }
    }

    /// Returns the block of a HARQ process; [`carrier_of`] explains the numbers of the downlink's.
    #[inline]
    pub(crate) fn block(&mut self, way: Direction, process: u8) -> &mut Transport {
        let (harq, process) = match way {
            Direction::Downlink => {
                let (carrier, process) = carrier_of(process);
                (&mut self.down[carrier].harq, process)
            }
            Direction::Uplink => (&mut self.up.harq, process),
        };
        &mut harq.processes[usize::from(process)]
    }

    /// Invalidates the SINR of this slot after a change of the channel.
    pub(crate) fn invalidate_sinr(&mut self) {
        self.down.iter_mut().for_each(Carrier::invalidate);
        self.uplink.reports.unsettle();
    }

    /// Adapts the uplink to the outcome of the block of `process`, if the cell has chosen its scheme for the channel.
    #[inline]
    pub(crate) fn adapt_uplink(&mut self, mac: &MacConfig, process: u8) {
        let Transport { attempts, chosen, decoded, .. } = self.up.harq.processes[usize::from(process)];
        let is_configured = self.configured.as_ref().is_some_and(|place| process < place.processes);
        if attempts == 1 && !is_configured {
            self.uplink.outer.outcome(mac.link.step_db, (1, chosen), decoded);
        }
    }

    /// Returns an idle uplink process for a dynamic grant.
    #[inline]
    pub(crate) fn idle_uplink(&self) -> Option<u8> {
        self.up.harq.idle_after(self.configured.as_ref().map_or(0, |place| place.processes))
    }

    /// Returns the state of its discontinuous reception before a change in `slot`.
    #[inline]
    pub(crate) fn drx_at(&mut self, slot: u64) -> Option<&mut drx::State> {
        let drx = self.drx.as_deref_mut()?;
        drx.count(slot, self.request_state.requested_at);
        Some(drx)
    }

    /// Returns how the serving cell, which has these `formats`, sends a block to the UE in the next of its `slots` in a network
    /// whose next tick is `tick`; `None` if its channel state reports are out of date at `now`.
    pub(crate) fn reported_scheme(
        &mut self,
        (formats, slots): (&Formats, Slots),
        now: Time,
        tick: u64,
    ) -> Option<adaptation::Scheme> {
        let link = &mut self.down[0].link;
        link.reports.is_fresh(slots.at(now)).then(|| link.scheme(formats, slots.next_at(tick)))
    }

    /// Makes the reports of `carrier`, that of `cell`, which the cell has in `slot`.
    pub(crate) fn measure_channel(
        &mut self,
        (air, cell, carrier): (&mut Air, usize, usize),
        (formats, link): (&Formats, &LinkAdaptation),
        group: u16,
        (slots, slot): (Slots, u64),
    ) {
        let layers = self.layers.min(self.category.layers).min(formats.most_layers());
        let group = link.worst_group.then_some(group);
        let Mac { down, drx, .. } = self;
        down[carrier].report((air, cell), (formats, layers, group), (link, drx.as_deref()), slots, slot);
    }

    /// Makes the measurements of `serving` in the uplink that it has in `slot`, for which `sinr` is memory.
    /// Interference lowers the SINR by `factor`.
    pub(crate) fn measure_uplink(
        &mut self,
        (air, sinr, serving): (&mut Air, &mut Sinr, usize),
        (link, reports): (&LinkAdaptation, Reports),
        factor: f32,
        (slots, slot): (Slots, u64),
    ) {
        while let Some(at) = self.uplink.reports.due_in(link, slots, slot, self.drx.as_deref()) {
            let now = slots.start(at);
            air.uplink(serving, now, 1, sinr);
            if factor < 1.0 && !air.is_set() {
                sinr.scale(factor);
            }
            let headroom_db = (!reports.include_power()).then(|| air.headroom_db(serving, now, 1));
            self.uplink.measure(link, sinr, headroom_db, slots, at);
        }
    }

    /// Starts discontinuous reception as `cell` configures it.
    pub(crate) fn start_drx(&mut self, cell: &Cell, now: Time) {
        let Some(config) = &cell.mac.drx else { return };
        let began = cell.slots.next_after(now);
        let drx = drx::State::new(config, (cell.timing, cell.slots), self.index, began);
        self.down.iter_mut().for_each(|carrier| carrier.link.reports.align(drx.offset));
        self.uplink.reports.align(drx.offset);
        self.drx = Some(Box::new(drx));
    }

    /// Ends discontinuous reception in a cell with these `slots`.
    pub(crate) fn stop_drx(&mut self, slots: Slots, now: Time) {
        if let Some(drx) = self.drx_at(slots.next_after(now)) {
            let asleep = drx.asleep();
            self.asleep_before += slots.length() * asleep;
            self.drx = None;
        }
    }

    /// Changes the serving cell to `cell`. The UE has left the previous one.
    pub(crate) fn tune(&mut self, cell: &Cell) {
        (self.down_past, self.up.past) = (cell.past(), cell.past());
        self.invalidate_sinr();
        let processes = cell.timing.processes();
        if usize::from(processes) != self.up.harq.processes.len() {
            self.down[0].harq = Harq::new(processes);
            self.up.harq = Harq::new(processes);
        }
        self.category = category_in(cell, self.lte_category);
        self.up.errors = Errors::of_uplink(self.category);
        self.uplink = adaptation::Uplink::new(self.category, self.index);
    }

    /// Returns whether it receives the secondary carrier of `cell` if the cell has one.
    pub(crate) fn aggregates_in(&self, cell: &Cell) -> bool {
        self.aggregates && category_in(cell, self.lte_category).aggregates
    }

    /// Returns the secondary carrier of its serving cell, which is `cell`, for which it has HARQ processes from then on, if it
    /// can receive it.
    pub(crate) fn aggregate(&mut self, cell: &Cell) -> Option<usize> {
        let secondary = cell.secondary.filter(|_| self.aggregates_in(cell));
        let processes = if secondary.is_some() { cell.timing.processes() } else { 0 };
        if usize::from(processes) != self.down[1].harq.processes.len() {
            self.down[1].harq = Harq::new(processes);
        }
        secondary
    }

    /// Resets everything about the cell that the UE leaves.
    pub(crate) fn leave(&mut self) {
        self.down.iter_mut().for_each(|carrier| carrier.leave(self.index));
        self.up.harq.flush();
        self.up.errors.forget();
        self.uplink = adaptation::Uplink::new(self.category, self.index);
        self.request_state = RequestState::new();
        // A handover command and a re-establishment reconfigure the reports.
        self.reporting = Reporting::new();
        self.estimate = BufferEstimate::default();
        self.had_data = 0;
    }
}

/// Returns what limits a UE of this category in `cell`: nothing in NR.
fn category_in(cell: &Cell, category: Category) -> Category {
    if cell.mac.rat.is_nr() { Category::UNLIMITED } else { category }
}
