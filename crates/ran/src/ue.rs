//! One UE: its radio, its bearers, and both ends' knowledge of its transmissions.

use aqm::{Drops, Gate, Packet};
use channel::tables::lte::Category;
use channel::{Air, Direction, Random, Sinr};
use units::Time;

use crate::config::{self, BearerConfig, Filter, Room, UeConfig};
use crate::handover::{Measurements, Sync};
use crate::mac::adaptation::{self, Errors, LinkAdaptation};
use crate::mac::cell::Cell;
use crate::mac::harq::Harq;
use crate::mac::power::Reporting;
use crate::mac::requests::{Asking, Believed, GROUPS};
use crate::mac::sched::Past;
use crate::rat::Rat;
use crate::rlc::{self, Bearer, Completion};
use crate::signalling::{SRB, SRB_BIT, SRB_GROUP, SRB_PRIORITY, Signal};
use crate::slots::Slots;
use crate::stats::UeStats;

/// A MAC subheader without a length, as the last one of a block has.
const LAST_SUBHEADER: u32 = 1;
/// The most that another SDU adds: it gives the one before it a length of up to two bytes.
const FURTHER_SUBHEADER: u32 = 3;

/// What one direction of a UE remembers.
pub(crate) struct Way {
    pub(crate) harq: Harq,
    pub(crate) past: Past,
    pub(crate) errors: Errors,
}

impl Way {
    fn new(processes: u8) -> Way {
        Way { harq: Harq::new(processes), past: Past::default(), errors: Errors::default() }
    }
}

/// A queue above a buffer of RLC's.
pub(crate) struct Above<P> {
    pub(crate) gate: Gate<P>,
    room: Room,
    completion: Completion,
}

impl<P: Packet> Above<P> {
    fn new(config: &config::Above) -> Above<P> {
        Above { gate: Gate::new(&config.gate), room: config.room, completion: config.completion }
    }
}

/// One bearer and where it stands among the others.
pub(crate) struct Slot<P> {
    pub(crate) rlc: Bearer<P>,
    /// What is above its downlink.
    pub(crate) above: Option<Above<P>>,
    filter: Filter,
    group: u8,
    priority: u8,
}

/// Whether a cell serves the UE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The serving cell does.
    Connected,
    /// It does, and prepares a change to `target`.
    Preparing { target: usize },
    /// It does, and the command to change to `target` is on its way.
    Commanded { target: usize },
    /// None does since `since`: the UE is on its way to `target`, and gives up at `deadline`.
    Moving { target: usize, since: Time, deadline: Time },
    /// None does since `since`: the UE looks for a cell.
    Searching { since: Time },
}

/// See the module.
pub(crate) struct Ue<P> {
    /// Its number, by which its reports are spread over their period.
    index: u32,
    pub(crate) air: Air,
    /// Whether transport blocks are decoded.
    pub(crate) random: Random,
    pub(crate) bearers: Vec<Slot<P>>,
    /// SRB1, once there was a message for it in this cell.
    pub(crate) srb: Option<Box<Bearer<Signal>>>,
    /// Indices of the bearers by descending priority.
    order: Vec<u8>,
    pub(crate) host: Above<P>,
    /// Buffer status reports count what waits there.
    reports_host: bool,
    /// One of its bearers is in TM, which needs room for a whole packet.
    pub(crate) has_transparent: bool,
    /// A STATUS PDU may complete something for a queue above RLC.
    pub(crate) heeds_status: bool,
    /// The cell that serves it, or did last, and that cell's slots, which its MAC counts time in.
    pub(crate) serving: usize,
    pub(crate) slots: Slots,
    pub(crate) link: Link,
    /// Entries of the calendar from before the last change of the cell have another one.
    pub(crate) epoch: u16,
    pub(crate) down: Way,
    pub(crate) up: Way,
    pub(crate) downlink: adaptation::Downlink,
    pub(crate) uplink: adaptation::Uplink,
    /// Whether it can receive two layers.
    pub(crate) two_layers: bool,
    pub(crate) category: Category,
    pub(crate) sinr: Sinr,
    /// Half of it, where two layers share the power.
    pub(crate) half: Sinr,
    /// When `sinr` was the downlink's.
    sinr_at: Option<Time>,
    pub(crate) up_sinr: Sinr,
    pub(crate) asking: Asking,
    pub(crate) reporting: Reporting,
    pub(crate) believed: Believed,
    /// Bit b: bearer b had uplink data when it was last looked at; `SRB_BIT`: SRB1 had.
    pub(crate) had_data: u16,
    /// When the only entry for RLC's timers in the calendar that counts is due.
    pub(crate) rlc_noted: Time,
    pub(crate) measurements: Measurements,
    pub(crate) sync: Sync,
    /// Whether the calendar holds its next measurement.
    pub(crate) measures: bool,
    /// It has found no cell, and looks again when its channel is changed.
    pub(crate) dormant: bool,
    pub(crate) stats: UeStats,
}

impl<P: Packet> Ue<P> {
    /// The UE with the number `index`, idle and connected to `serving`, which has `cell`.
    pub(crate) fn new(
        index: u32,
        config: &UeConfig,
        (air, random): (Air, Random),
        measurements: Measurements,
        (serving, cell): (usize, &Cell),
    ) -> Ue<P> {
        let processes = cell.mac.rat.processes();
        let slot = |bearer: &BearerConfig| Slot {
            rlc: Bearer::new(&bearer.rlc),
            above: bearer.above.as_ref().map(Above::new),
            filter: bearer.filter.clone(),
            group: bearer.group.min(GROUPS as u8 - 1),
            priority: bearer.priority(),
        };
        let bearers: Vec<Slot<P>> = config.bearers.iter().map(slot).collect();
        let mut order: Vec<u8> = (0..bearers.len() as u8).collect();
        order.sort_by_key(|b| bearers[usize::from(*b)].priority);
        Ue {
            air,
            random,
            bearers,
            srb: None,
            order,
            host: Above::new(&config.host),
            reports_host: config.reports_host,
            has_transparent: config.bearers.iter().any(|bearer| bearer.rlc.mode == rlc::Mode::Tm),
            heeds_status: config
                .bearers
                .iter()
                .filter_map(|bearer| bearer.above)
                .chain([config.host])
                .any(|above| above.completion == Completion::Acknowledged),
            serving,
            slots: cell.slots,
            link: Link::Connected,
            epoch: 0,
            down: Way::new(processes),
            up: Way { errors: Errors::of_uplink(config.category), ..Way::new(processes) },
            index,
            downlink: adaptation::Downlink::new(index),
            uplink: adaptation::Uplink::new(config.category, index),
            two_layers: config.layers > 1 && config.category.layers > 1,
            category: config.category,
            sinr: Sinr::default(),
            half: Sinr::default(),
            sinr_at: None,
            up_sinr: Sinr::default(),
            asking: Asking::new(),
            reporting: Reporting::new(),
            believed: Believed::default(),
            had_data: 0,
            rlc_noted: Time::MAX,
            measurements,
            sync: Sync::default(),
            measures: false,
            dormant: false,
            stats: UeStats::default(),
        }
    }

    /// The bearer that `packet` belongs to: the first dedicated one that admits it, or the default one.
    #[inline]
    pub(crate) fn bearer_of(&self, packet: &P) -> usize {
        (1..self.bearers.len()).find(|b| self.bearers[*b].filter.admits(packet)).unwrap_or(0)
    }

    /// Whether a cell serves it.
    #[inline]
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.link, Link::Connected | Link::Preparing { .. } | Link::Commanded { .. })
    }

    /// Bytes that a grant would have to carry for all that could be sent.
    #[inline]
    pub(crate) fn backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes: u64 = self.bearers.iter().map(|b| waiting(&b.rlc, way, now)).sum();
        let bytes = bytes + self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// The same of RRC messages alone.
    #[inline]
    pub(crate) fn signalling_backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes = self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// [`Ue::backlog`] of what a block of `most` bytes could carry anything of, and the least bytes of a block that carries
    /// something: TM sends whole packets alone.
    pub(crate) fn fitting_backlog(
        &mut self,
        way: Direction,
        most: u32,
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> (u32, u32) {
        let srb = self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        let (mut bytes, mut least) = (srb, if srb > 0 { 1 } else { u32::MAX });
        for bearer in &mut self.bearers {
            let needs = bearer.rlc.next_whole(way, now, drops).map_or(1, |packet| packet + LAST_SUBHEADER);
            let waits = waiting(&bearer.rlc, way, now);
            if waits > 0 && needs <= most {
                bytes += waits;
                least = least.min(needs);
            }
        }
        (u32::try_from(bytes).unwrap_or(u32::MAX), least)
    }

    /// Bytes that wait in its bearers and above them, whether they could be sent or not.
    pub(crate) fn waits(&self, way: Direction, now: Time) -> u64 {
        let held_back: u64 = self.bearers.iter().map(|b| b.rlc.backlog(way, now).held_back).sum();
        u64::from(self.backlog(way, now)) + held_back + self.above(way).bytes
    }

    /// What [`Ue::backlog`] is for the uplink by logical channel group, and a bit for each bearer that has any, as in
    /// `had_data`.
    #[inline]
    pub(crate) fn uplink_groups(&self, now: Time) -> ([u32; GROUPS], u16) {
        let (mut groups, mut with_data) = ([0u32; GROUPS], 0);
        if let Some(srb) = &self.srb {
            let bytes = waiting(srb, Direction::Uplink, now);
            groups[SRB_GROUP] = u32::try_from(bytes).unwrap_or(u32::MAX);
            with_data |= if bytes > 0 { SRB_BIT } else { 0 };
        }
        for (b, bearer) in self.bearers.iter().enumerate() {
            let bytes = waiting(&bearer.rlc, Direction::Uplink, now);
            if bytes > 0 {
                let group = &mut groups[usize::from(bearer.group)];
                *group = group.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
                with_data |= 1 << b;
            }
        }
        if self.reports_host && with_data != 0 {
            let group = &mut groups[usize::from(self.bearers[0].group)];
            *group = group.saturating_add(u32::try_from(self.host.gate.backlog().bytes).unwrap_or(u32::MAX));
        }
        (groups, with_data)
    }

    /// Whether one of the bearers in `new` goes before all of those in `old`.
    #[inline]
    pub(crate) fn is_urgent(&self, new: u16, old: u16) -> bool {
        let first = |set: u16| {
            let in_set = |b: &usize| set & (1 << b) != 0;
            let data = (0..self.bearers.len()).filter(in_set).map(|b| self.bearers[b].priority).min();
            if set & SRB_BIT != 0 { Some(SRB_PRIORITY) } else { data }
        };
        match (first(new), first(old)) {
            (Some(new), Some(old)) => new < old,
            (new, _) => new.is_some(),
        }
    }

    /// A packet comes from the core.
    #[inline]
    pub(crate) fn enqueue_downlink(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        let bearer = self.bearer_of(&packet);
        let Slot { rlc, above, .. } = &mut self.bearers[bearer];
        match above {
            None => rlc.enqueue(Direction::Downlink, packet, now, drops),
            Some(above) => {
                above.gate.enqueue(packet, now, drops);
                self.hand_down(Direction::Downlink, now, drops);
            }
        }
    }

    /// The queues above RLC learn what has left it, and hand packets down while they may.
    #[inline]
    pub(crate) fn hand_down(&mut self, way: Direction, now: Time, drops: &mut impl Drops<P>) {
        if way == Direction::Uplink {
            return self.hand_down_uplink(now, drops);
        }
        for Slot { rlc, above, .. } in &mut self.bearers {
            let Some(above) = above else { continue };
            above.gate.settle(rlc.held(way, above.completion), now);
            while above.room.is_left(rlc.queue(way))
                && let Some(packet) = above.gate.release(now, drops)
            {
                rlc.take_over(way, packet, now, drops);
            }
        }
    }

    #[inline]
    fn hand_down_uplink(&mut self, now: Time, drops: &mut impl Drops<P>) {
        let way = Direction::Uplink;
        if self.host.gate.is_limited() {
            let held = self.bearers.iter().map(|b| b.rlc.held(way, self.host.completion)).sum();
            self.host.gate.settle(held, now);
        }
        while self.host.gate.backlog().packets > 0
            && self.host.room.is_left(self.queued(way))
            && let Some(packet) = self.host.gate.release(now, drops)
        {
            let bearer = self.bearer_of(&packet);
            self.bearers[bearer].rlc.enqueue(way, packet, now, drops);
        }
    }

    /// What waits above RLC.
    #[inline]
    pub(crate) fn above(&self, way: Direction) -> aqm::Backlog {
        let mut sum = aqm::Backlog::default();
        match way {
            Direction::Uplink => sum = self.host.gate.backlog(),
            Direction::Downlink => {
                self.bearers.iter().filter_map(|b| b.above.as_ref()).for_each(|a| sum += a.gate.backlog());
            }
        }
        sum
    }

    /// What may be in RLC by byte queue limits, in bytes; `None` if none of its queues has one.
    pub(crate) fn quota(&self, way: Direction) -> Option<u64> {
        match way {
            Direction::Uplink => self.host.gate.limit(),
            Direction::Downlink => {
                self.bearers.iter().filter_map(|b| b.above.as_ref()?.gate.limit()).reduce(|sum, one| sum + one)
            }
        }
    }

    /// What waits in its bearers in one direction and was not begun to be sent.
    #[inline]
    pub(crate) fn queued(&self, way: Direction) -> aqm::Backlog {
        let mut sum = aqm::Backlog::default();
        self.bearers.iter().for_each(|bearer| sum += bearer.rlc.queue(way));
        sum
    }

    /// Fills the block of `process` with up to `bytes`, bearer after bearer; gives the bytes that are left. If RLC has nothing
    /// more and the block has room, those above are told and may hand down more.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        way: Direction,
        process: u8,
        bytes: u32,
        headers: bool,
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let mut left = self.fill_once(way, process, bytes, headers, now, drops);
        while left > FURTHER_SUBHEADER && self.above(way).packets > 0 && self.queued(way).packets == 0 {
            self.hand_down(way, now, drops);
            let before = left;
            left = self.fill_once(way, process, left, headers, now, drops);
            if left == before {
                // A quota that waits for acknowledgements, unless it is RLC that waits for them.
                let above = self.above(way).bytes;
                self.stats.of(way).starved += u64::from(self.waits(way, now) == above);
                break;
            }
        }
        left
    }

    #[inline]
    fn fill_once(
        &mut self,
        way: Direction,
        process: u8,
        bytes: u32,
        headers: bool,
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let harq = match way {
            Direction::Downlink => &mut self.down.harq,
            Direction::Uplink => &mut self.up.harq,
        };
        let transport = &mut harq.processes[usize::from(process)];
        let mut left = bytes;
        let signalling = self.srb.is_some().then_some(SRB);
        for b in signalling.iter().chain(&self.order) {
            let header = match transport.parcels().last() {
                _ if !headers => 0,
                None => LAST_SUBHEADER,
                Some(before) => before.block.subheader(),
            };
            if left <= header {
                break;
            }
            let parcel = transport.spare();
            let (grant, block) = (left - header, &mut parcel.block);
            let used = match &mut self.srb {
                Some(srb) if *b == SRB => srb.build(way, grant, now, block, &mut |_, _| {}),
                _ => self.bearers[usize::from(*b)].rlc.build(way, grant, now, block, drops),
            };
            assert!(used <= left - header, "RLC filled more than its grant");
            if used > 0 {
                parcel.bearer = *b;
                transport.keep();
                left -= used + header;
            }
        }
        left
    }

    /// The downlink's SINR at `now`, the beginning of a slot, into `self.sinr` and `self.half`.
    #[inline]
    pub(crate) fn hear(&mut self, now: Time) {
        if self.sinr_at != Some(now) {
            self.air.downlink(self.serving, now, &mut self.sinr);
            self.sinr_at = Some(now);
            if self.two_layers {
                adaptation::halve(&self.sinr, &mut self.half);
            }
        }
    }

    /// The channel is not what it was: what was heard in this slot does not hold.
    pub(crate) fn forget_sinr(&mut self) {
        self.sinr_at = None;
    }

    /// Makes the reports of the channel that the eNodeB, whose resource block groups have `group` blocks, has in `slot`.
    #[inline]
    pub(crate) fn report_channel(&mut self, link: &LinkAdaptation, group: u16, slot: u64) {
        let slots = self.slots;
        while let Some(at) = self.downlink.reports.due(link, slots, slot) {
            self.hear(slots.start(at));
            let half = self.two_layers.then_some(&self.half);
            self.downlink.measure(link, &self.sinr, half, link.worst_group.then_some(group), slots, at);
        }
    }

    /// Makes the measurements of the uplink that the eNodeB has in `slot`, with the UE's power if that is not reported.
    #[inline]
    pub(crate) fn sound(&mut self, link: &LinkAdaptation, rat: Rat, slot: u64) {
        let slots = self.slots;
        while let Some(at) = self.uplink.reports.due(link, slots, slot) {
            let now = slots.start(at);
            self.air.uplink(self.serving, now, 1, &mut self.up_sinr);
            let headroom_db = (!rat.reports_power()).then(|| self.air.headroom_db(self.serving, now, 1));
            self.uplink.measure(link, &self.up_sinr, headroom_db, slots, at);
        }
    }

    /// `serving`, which has `cell`, is the one to be heard from now on. The UE has left the one before.
    pub(crate) fn tune(&mut self, serving: usize, cell: &Cell) {
        self.serving = serving;
        self.slots = cell.slots;
        self.sinr_at = None;
        let processes = cell.mac.rat.processes();
        if usize::from(processes) != self.down.harq.processes.len() {
            self.down.harq = Harq::new(processes);
            self.up.harq = Harq::new(processes);
        }
    }

    /// Forgets everything about the cell that served it, except what RLC and PDCP hold.
    pub(crate) fn leave(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.down.harq.flush();
        self.up.harq.flush();
        self.down.past = Past::default();
        self.up.past = Past::default();
        self.downlink = adaptation::Downlink::new(self.index);
        self.uplink = adaptation::Uplink::new(self.category, self.index);
        self.sinr_at = None;
        self.asking = Asking::new();
        // A handover command and a re-establishment configure the reports anew.
        self.reporting = Reporting::new();
        self.believed = Believed::default();
        self.had_data = 0;
        self.srb = None;
        self.rlc_noted = Time::MAX;
        self.sync = Sync::default();
        self.measurements.forget();
        // The entry of the calendar is stale.
        self.measures = false;
        self.dormant = false;
    }
}

/// Bytes that a grant would have to carry of one bearer; 0 if there is nothing to send.
#[inline]
fn waiting<P: Packet>(rlc: &Bearer<P>, way: Direction, now: Time) -> u64 {
    let backlog = rlc.backlog(way, now);
    if backlog.is_empty() { 0 } else { backlog.with_headers() }
}
