//! The state of one UE: its radio, its bearers, and both ends of its transmissions.

use aqm::{Completion, DropReason, Drops, Gate, Packet};
use channel::tables::lte::Category;
use channel::{Air, Direction, Random, Sinr};
use units::{Span, Time};

use crate::config::{self, BearerConfig, Filter, MacConfig, Room, UeConfig};
use crate::handover::{Measurements, Sync};
use crate::mac::adaptation::{self, Errors, LinkAdaptation};
use crate::mac::carriers::Carrier;
use crate::mac::cell::Cell;
use crate::mac::configured::Place;
use crate::mac::drx;
use crate::mac::harq::{CARRIERS, Harq, Transport, carrier_of};
use crate::mac::interference::Interference;
use crate::mac::power::Reporting;
use crate::mac::requests::{BufferEstimate, GROUPS, RequestState};
use crate::mac::sched::Past;
use crate::pdcp::{Deliver, Keep};
use crate::rat::{Formats, Rat, Reports};
use crate::rlc::{self, Bearer};
use crate::signalling::{SRB, SRB_BIT, SRB_GROUP, SRB_PRIORITY, Signal};
use crate::slots::Slots;
use crate::stats::{DirectionStats, UeStats};

/// A MAC subheader without a length, as the last one of a block has.
const LAST_SUBHEADER: u32 = 1;
/// Maximum overhead of another SDU: the subheader of the previous one gets a length of up to two bytes.
const FURTHER_SUBHEADER: u32 = 3;

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

/// A queue above a buffer of RLC.
pub(crate) struct Above<P> {
    pub(crate) gate: Gate<P>,
    room: Room,
    completion: Completion,
}

impl<P: Packet> Above<P> {
    fn new(config: &config::Above) -> Above<P> {
        Above { gate: Gate::new(&config.gate), room: config.room, completion: config.gate.limit.completion() }
    }
}

/// A bearer and its priority.
pub(crate) struct Slot<P> {
    pub(crate) rlc: Bearer<P>,
    /// Its RLC in LTE and NR cells.
    configs: [rlc::Config; 2],
    /// The queue above its downlink,
    pub(crate) above: Option<Above<P>>,
    /// and the size of the buffer below it in LTE and NR cells.
    rooms: Option<[Room; 2]>,
    filter: Filter,
    group: u8,
    pub(crate) qci: u8,
    priority: u8,
}

/// The state of a UE's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The serving cell serves it.
    Connected,
    /// It is served, and a handover to `target` is being prepared.
    Preparing { target: usize },
    /// It is served, and the command to change to `target` has been sent.
    Commanded { target: usize },
    /// Not served since `since`: the UE is accessing `target`, and gives up at `deadline`.
    Moving { target: usize, since: Time, deadline: Time },
    /// Not served since `since`: the UE searches for a cell.
    Searching { since: Time },
}

/// See the module.
pub(crate) struct Ue<P> {
    /// Its number, which spreads its reports over their period.
    index: u32,
    pub(crate) air: Air,
    /// The version of the loads in `air`.
    loads: u32,
    /// Random stream for decoding.
    pub(crate) random: Random,
    pub(crate) bearers: Vec<Slot<P>>,
    /// SRB1, once it had a message in this cell.
    pub(crate) srb: Option<Box<Bearer<Signal>>>,
    /// Whether its bearers are in their NR modes.
    is_nr: bool,
    /// Indices of the bearers by descending priority.
    order: Vec<u8>,
    pub(crate) host: Above<P>,
    /// Whether buffer status reports include the host's queue.
    reports_host: bool,
    /// Whether a full modem drops packets.
    modem_drops: bool,
    /// The tags of packets that have left the host's queue for the modem and have not been polled, if anybody asks.
    released: Option<Vec<u64>>,
    /// Whether one of its bearers is in TM, which needs room for a whole packet.
    pub(crate) has_transparent: bool,
    /// Whether a STATUS PDU may complete data for a queue above RLC.
    pub(crate) uses_status: bool,
    /// Whether PDCP discards SDUs after a time: a new one may be the next to expire.
    pub(crate) discards: bool,
    /// The cell that serves it, or served it last, and that cell's slots, which its MAC uses.
    pub(crate) serving: usize,
    pub(crate) slots: Slots,
    pub(crate) link: Link,
    /// Calendar entries from before the last change of the cell have a different epoch.
    pub(crate) epoch: u16,
    /// The secondary carrier, as a cell, that it receives as well.
    pub(crate) secondary: Option<usize>,
    /// Whether it receives the secondary carrier of a cell that has one.
    aggregates: bool,
    /// The carriers of the serving cell and of the secondary.
    pub(crate) down: [Carrier; CARRIERS],
    /// The service of all of them.
    pub(crate) down_past: Past,
    pub(crate) up: Way,
    pub(crate) uplink: adaptation::Uplink,
    /// The layers that are configured.
    layers: u8,
    /// Its category in LTE, and what limits it in the serving cell: that, or nothing in NR.
    lte_category: Category,
    pub(crate) category: Category,
    pub(crate) up_sinr: Sinr,
    pub(crate) request_state: RequestState,
    pub(crate) reporting: Reporting,
    pub(crate) estimate: BufferEstimate,
    /// Its discontinuous reception, in a cell that configures it.
    pub(crate) drx: Option<Box<drx::State>>,
    /// Its place among the configured grants of its cell.
    pub(crate) configured: Option<Box<Place>>,
    /// Time outside its Active Time in earlier cells.
    pub(crate) asleep_before: Span,
    /// Whether its channel changes only when its SINR or a cell's background is set.
    pub(crate) is_constant: bool,
    /// Bit b: bearer b had uplink data at the last check; `SRB_BIT`: SRB1 had.
    pub(crate) had_data: u16,
    /// The time of the only valid calendar entry for RLC's timers.
    pub(crate) rlc_noted: Time,
    pub(crate) measurements: Measurements,
    pub(crate) sync: Sync,
    /// Whether the calendar has an entry for its next measurement.
    pub(crate) measures: bool,
    /// Whether its cell heard it at the last measurement ([`crate::mac::reach`]).
    pub(crate) is_heard: bool,
    /// It has found no cell, and searches again when its channel changes.
    pub(crate) dormant: bool,
    pub(crate) stats: UeStats,
    /// The cell that it was connected to last, and when it came there, with the downlink's counters then.
    pub(crate) served_by: usize,
    pub(crate) connected: (Time, DirectionStats),
}

impl<P: Packet> Ue<P> {
    /// Creates the UE number `index`, idle and connected to `serving`, which is `cell`.
    pub(crate) fn new(
        index: u32,
        config: &UeConfig,
        (air, random): (Air, Random),
        measurements: Measurements,
        (serving, cell): (usize, &Cell),
    ) -> Ue<P> {
        let processes = cell.timing.processes();
        let is_nr = cell.mac.rat.is_nr();
        let category = category_in(cell, config.category);
        let configs = |bearer: &BearerConfig| {
            let mut nr = rlc::Config { mode: bearer.nr.unwrap_or(bearer.rlc.mode), ..bearer.rlc };
            if let Some(buffer) = &bearer.nr_buffer {
                nr.downlink.queue = buffer.queue;
            }
            [bearer.rlc, nr]
        };
        let rooms = |bearer: &BearerConfig| {
            let lte = bearer.above.as_ref()?.room;
            Some([lte, bearer.nr_buffer.map_or(lte, |buffer| buffer.room)])
        };
        let slot = |bearer: &BearerConfig| {
            let (configs, rooms, here) = (configs(bearer), rooms(bearer), usize::from(is_nr));
            let above = bearer.above.as_ref().zip(rooms);
            Slot {
                rlc: Bearer::new(&configs[here]),
                configs,
                above: above.map(|(of, rooms)| Above { room: rooms[here], ..Above::new(of) }),
                rooms,
                filter: bearer.filter.clone(),
                group: bearer.group.min(GROUPS as u8 - 1),
                qci: bearer.qci,
                priority: bearer.priority(),
            }
        };
        let bearers: Vec<Slot<P>> = config.bearers.iter().map(slot).collect();
        let mut order: Vec<u8> = (0..bearers.len() as u8).collect();
        order.sort_by_key(|b| bearers[usize::from(*b)].priority);
        let mut ue = Ue {
            air,
            loads: 0,
            random,
            bearers,
            srb: None,
            order,
            host: Above::new(&config.host),
            reports_host: config.reports_host,
            modem_drops: config.modem_drops,
            released: None,
            has_transparent: config.bearers.iter().any(|bearer| bearer.rlc.mode == rlc::Mode::Tm),
            uses_status: config
                .bearers
                .iter()
                .filter_map(|bearer| bearer.above)
                .chain([config.host])
                .any(|above| above.gate.limit.completion() == Completion::Acknowledged),
            discards: config
                .bearers
                .iter()
                .flat_map(|b| [b.rlc.downlink, b.rlc.uplink])
                .any(|pdcp| pdcp.discard.is_some()),
            serving,
            slots: cell.slots,
            link: Link::Connected,
            epoch: 0,
            secondary: None,
            aggregates: config.aggregates,
            down: [Carrier::new(index, processes), Carrier::new(index, 0)],
            down_past: cell.past(),
            up: Way { errors: Errors::of_uplink(category), ..Way::new(processes, cell.past()) },
            index,
            is_nr,
            uplink: adaptation::Uplink::new(category, index),
            layers: config.layers,
            lte_category: config.category,
            category,
            up_sinr: Sinr::default(),
            request_state: RequestState::new(),
            reporting: Reporting::new(),
            estimate: BufferEstimate::default(),
            drx: None,
            configured: None,
            asleep_before: Span::ZERO,
            is_constant: false,
            had_data: 0,
            rlc_noted: Time::MAX,
            measurements,
            sync: Sync::default(),
            measures: false,
            is_heard: true,
            dormant: false,
            stats: UeStats::default(),
            served_by: serving,
            connected: (Time::ZERO, DirectionStats::default()),
        };
        ue.aggregate(cell);
        ue.start_drx(cell, Time::ZERO);
        ue
    }

    /// Returns the bearer of `packet`: the first dedicated one that admits it, or the default one.
    #[inline]
    pub(crate) fn bearer_of(&self, packet: &P) -> usize {
        (1..self.bearers.len()).find(|b| self.bearers[*b].filter.admits(packet)).unwrap_or(0)
    }

    /// Returns whether a cell serves it.
    #[inline]
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.link, Link::Connected | Link::Preparing { .. } | Link::Commanded { .. })
    }

    /// Returns whether its cell has not heard it for long enough to send it no more data ([`crate::mac::reach`]).
    #[inline]
    pub(crate) fn is_unheard(&self) -> bool {
        !self.is_heard && self.sync.is_t310_running()
    }

    /// Returns the bytes of a grant for everything that could be sent.
    #[inline]
    pub(crate) fn backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes: u64 = self.bearers.iter().map(|b| waiting(&b.rlc, way, now)).sum();
        let bytes = bytes + self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns whether it has a bearer in an acknowledged mode: only then do blocks start timers when they are built, and
    /// change what can be sent when they arrive.
    #[inline]
    pub(crate) fn acknowledges(&self) -> bool {
        self.srb.is_some() || self.bearers.iter().any(|bearer| bearer.rlc.acknowledges())
    }

    /// Returns whether anything could be sent: whether [`Ue::backlog`] is not zero.
    #[inline]
    pub(crate) fn has_data(&self, way: Direction, now: Time) -> bool {
        let has_data = |rlc: &Bearer<P>| rlc.has_data(way, now);
        self.bearers.iter().any(|b| has_data(&b.rlc)) || self.srb.as_ref().is_some_and(|srb| srb.has_data(way, now))
    }

    /// Returns the same for RRC messages only.
    #[inline]
    pub(crate) fn signalling_backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes = self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns the part of [`Ue::backlog`] of which a block of `most` bytes could carry anything, and the minimum size
    /// of a block that carries something: TM sends only whole packets.
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

    /// Returns the bytes waiting in its bearers and above them, whether they could be sent or not.
    pub(crate) fn waits(&self, way: Direction, now: Time) -> u64 {
        let held_back: u64 = self.bearers.iter().map(|b| b.rlc.backlog(way, now).held_back).sum();
        u64::from(self.backlog(way, now)) + held_back + self.above(way).bytes
    }

    /// Returns a bit for each bearer with data in the uplink, as in `had_data`.
    #[inline]
    pub(crate) fn with_uplink_data(&self, now: Time) -> u16 {
        let has_data = |rlc: &Bearer<P>| rlc.has_data(Direction::Uplink, now);
        let signals = self.srb.as_ref().is_some_and(|srb| srb.has_data(Direction::Uplink, now));
        let bearers = self.bearers.iter().enumerate().map(|(b, bearer)| u16::from(has_data(&bearer.rlc)) << b);
        bearers.fold(if signals { SRB_BIT } else { 0 }, |sum, bit| sum | bit)
    }

    /// Returns [`Ue::backlog`] of the uplink by logical channel group.
    #[inline]
    pub(crate) fn uplink_groups(&self, now: Time) -> [u32; GROUPS] {
        let mut groups = [0u32; GROUPS];
        if let Some(srb) = &self.srb {
            let bytes = waiting(srb, Direction::Uplink, now);
            groups[SRB_GROUP] = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        for bearer in &self.bearers {
            let bytes = waiting(&bearer.rlc, Direction::Uplink, now);
            let group = &mut groups[usize::from(bearer.group)];
            *group = group.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        if self.reports_host && groups != [0; GROUPS] {
            let group = &mut groups[usize::from(self.bearers[0].group)];
            *group = group.saturating_add(u32::try_from(self.host.gate.backlog().bytes).unwrap_or(u32::MAX));
        }
        groups
    }

    /// Returns whether one of the bearers in `new` has priority over all those in `old`.
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

    /// Accepts a packet from the core.
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

    /// Updates the quotas of the queues above RLC, and passes packets down as far as allowed.
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
            let mut held = aqm::Backlog::default();
            self.bearers.iter().for_each(|b| held += b.rlc.held(way, self.host.completion));
            self.host.gate.settle(held, now);
        }
        loop {
            let has_room = self.host.room.is_left(self.queued(way));
            if self.host.gate.backlog().packets == 0 || !(has_room || self.modem_drops) {
                return;
            }
            let Some(packet) = self.host.gate.release(now, drops) else { return };
            if let Some(released) = &mut self.released {
                released.push(packet.tag());
            }
            if has_room {
                let bearer = self.bearer_of(&packet);
                self.bearers[bearer].rlc.enqueue(way, packet, now, drops);
            } else {
                drops.dropped(packet, DropReason::Overflow);
            }
        }
    }

    /// Keeps the tags of packets that leave the host's queue for [`Ue::poll_released`] from now on.
    pub(crate) fn note_released(&mut self) {
        self.released.get_or_insert_default();
    }

    /// Returns the tag of a packet that has left the host's queue for the modem, if there is one that was not returned before.
    #[inline]
    pub(crate) fn poll_released(&mut self) -> Option<u64> {
        self.released.as_mut()?.pop()
    }

    /// Returns the backlog above RLC.
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

    /// Returns the bytes allowed in RLC by byte queue limits; `None` if none of its queues has one.
    pub(crate) fn quota(&self, way: Direction) -> Option<u64> {
        match way {
            Direction::Uplink => self.host.gate.limit(),
            Direction::Downlink => {
                self.bearers.iter().filter_map(|b| b.above.as_ref()?.gate.limit()).reduce(|sum, one| sum + one)
            }
        }
    }

    /// Returns the backlog in its bearers in one direction that has not been sent in part.
    #[inline]
    pub(crate) fn queued(&self, way: Direction) -> aqm::Backlog {
        let mut sum = aqm::Backlog::default();
        self.bearers.iter().for_each(|bearer| sum += bearer.rlc.queue(way));
        sum
    }

    /// Fills the block of `process` with up to `bytes`, in order of bearers; returns the bytes left. If RLC runs empty
    /// and the block has room, the queues above are updated and may pass more down.
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
                // Unless RLC itself waits for acknowledgements, it is the quota that waits for them.
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
        let transport = block_of((&mut self.down, &mut self.up), way, process);
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

    /// Returns which of its carriers is `cell`'s: the serving cell's or the secondary's.
    #[inline]
    pub(crate) fn carrier_in(&self, cell: usize) -> usize {
        usize::from(cell != self.serving)
    }

    /// Computes the serving cell's SINR at `now`, the beginning of a slot.
    #[inline]
    pub(crate) fn measure_downlink(&mut self, now: Time) {
        self.down[0].measure(&mut self.air, self.serving, now);
    }

    /// Brings the loads of the cells up to date.
    #[inline]
    pub(crate) fn hear(&mut self, interference: &Interference) {
        if self.loads != interference.version() {
            self.loads = interference.version();
            interference.load(&mut self.air);
            self.invalidate_sinr();
        }
    }

    /// Sets the loads that the cells have at `now`, until the next call of [`Ue::hear`].
    pub(crate) fn hear_at(&mut self, now: Time, interference: &Interference, cells: &[Cell]) {
        interference.foresee(&mut self.air, now, cells);
        self.loads = interference.version().wrapping_sub(1);
    }

    /// Returns how the serving cell, which has these `formats`, sends a block to the UE in the next slot of a network
    /// whose next tick is `tick`; `None` if its channel state reports are out of date at `now`.
    pub(crate) fn reported_scheme(&mut self, formats: &Formats, now: Time, tick: u64) -> Option<adaptation::Scheme> {
        let Ue { down, slots, .. } = self;
        let link = &mut down[0].link;
        link.reports.is_fresh(slots.at(now)).then(|| link.scheme(formats, slots.next_at(tick)))
    }

    /// Invalidates the SINR of this slot after a change of the channel.
    pub(crate) fn invalidate_sinr(&mut self) {
        self.down.iter_mut().for_each(Carrier::invalidate);
        self.uplink.reports.unsettle();
    }

    /// Makes the reports of a carrier that its cell, with these parameters and resource block groups of `group` blocks, has
    /// in `slot`.
    #[inline]
    pub(crate) fn report_channel(
        &mut self,
        cell: usize,
        (formats, link): (&Formats, &LinkAdaptation),
        group: u16,
        slot: u64,
    ) {
        let carrier = self.carrier_in(cell);
        let passes = self.is_constant && self.drx.is_none() && self.down[carrier].link.reports.pass(slot);
        if !passes {
            self.measure_channel((cell, carrier), (formats, link), group, slot);
        }
    }

    fn measure_channel(
        &mut self,
        (cell, carrier): (usize, usize),
        (formats, link): (&Formats, &LinkAdaptation),
        group: u16,
        slot: u64,
    ) {
        let layers = self.layers.min(self.category.layers).min(formats.most_layers());
        let group = link.worst_group.then_some(group);
        let Ue { down, air, drx, slots, .. } = self;
        down[carrier].report((air, cell), (formats, layers, group), (link, drx.as_deref()), *slots, slot);
    }

    /// Makes the uplink measurements that the eNodeB has in `slot`, including the UE's power if that is not reported.
    /// Interference lowers the SINR by `factor`.
    #[inline]
    pub(crate) fn sound(&mut self, link: &LinkAdaptation, reports: Reports, factor: f32, slot: u64) {
        let passes = self.is_constant && self.drx.is_none() && self.uplink.reports.pass(slot);
        if !passes {
            self.measure_uplink(link, reports, factor, slot);
        }
    }

    fn measure_uplink(&mut self, link: &LinkAdaptation, reports: Reports, factor: f32, slot: u64) {
        let slots = self.slots;
        while let Some(at) = self.uplink.reports.due_in(link, slots, slot, self.drx.as_deref()) {
            let now = slots.start(at);
            self.air.uplink(self.serving, now, 1, &mut self.up_sinr);
            if factor < 1.0 && !self.air.is_set() {
                self.up_sinr.scale(factor);
            }
            let headroom_db = (!reports.include_power()).then(|| self.air.headroom_db(self.serving, now, 1));
            self.uplink.measure(link, &self.up_sinr, headroom_db, slots, at);
        }
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

    /// Starts discontinuous reception as `cell` configures it.
    pub(crate) fn start_drx(&mut self, cell: &Cell, now: Time) {
        let Some(config) = &cell.mac.drx else { return };
        let began = cell.slots.next_after(now);
        let drx = drx::State::new(config, (cell.timing, cell.slots), self.index, began);
        self.down.iter_mut().for_each(|carrier| carrier.link.reports.align(drx.offset));
        self.uplink.reports.align(drx.offset);
        self.drx = Some(Box::new(drx));
    }

    /// Ends discontinuous reception.
    pub(crate) fn stop_drx(&mut self, now: Time) {
        let slots = self.slots;
        if let Some(drx) = self.drx_at(slots.next_after(now)) {
            let asleep = drx.asleep();
            self.asleep_before += slots.length() * asleep;
            self.drx = None;
        }
    }

    /// Returns whether it has to be scheduled in a direction as soon as it listens.
    pub(crate) fn needs_cell(&self, way: Direction, now: Time) -> bool {
        match way {
            Direction::Downlink => {
                self.down.iter().any(|carrier| carrier.harq.again().is_some()) || self.has_data(way, now)
            }
            Direction::Uplink => self.up.harq.again().is_some() || self.estimate.wants(),
        }
    }

    /// Changes the serving cell to `serving`, which is `cell`. The UE has left the previous one.
    pub(crate) fn tune(&mut self, serving: usize, cell: &Cell) {
        self.serving = serving;
        self.slots = cell.slots;
        (self.down_past, self.up.past) = (cell.past(), cell.past());
        self.invalidate_sinr();
        let processes = cell.timing.processes();
        if usize::from(processes) != self.up.harq.processes.len() {
            self.down[0].harq = Harq::new(processes);
            self.up.harq = Harq::new(processes);
        }
        self.limit(cell);
        self.aggregate(cell);
    }

    /// Sets what limits it in its serving cell, which is `cell`.
    fn limit(&mut self, cell: &Cell) {
        self.category = category_in(cell, self.lte_category);
        self.up.errors = Errors::of_uplink(self.category);
        self.uplink = adaptation::Uplink::new(self.category, self.index);
    }

    /// Returns whether it receives the secondary carrier of `cell` if the cell has one.
    pub(crate) fn aggregates_in(&self, cell: &Cell) -> bool {
        self.aggregates && category_in(cell, self.lte_category).aggregates
    }

    /// Adds the secondary carrier of its serving cell, which is `cell`, if it can.
    fn aggregate(&mut self, cell: &Cell) {
        self.secondary = cell.secondary.filter(|_| self.aggregates_in(cell));
        let processes = if self.secondary.is_some() { cell.timing.processes() } else { 0 };
        if usize::from(processes) != self.down[1].harq.processes.len() {
            self.down[1].harq = Harq::new(processes);
        }
    }

    /// Changes the modes and buffers of its bearers to those of the technology of its cell, if that has changed.
    pub(crate) fn adopt(&mut self, rat: Rat, now: Time, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        let is_nr = rat.is_nr();
        if core::mem::replace(&mut self.is_nr, is_nr) == is_nr {
            return;
        }
        for Slot { rlc, configs, above, rooms, .. } in &mut self.bearers {
            rlc.reconfigure(&configs[usize::from(is_nr)], Keep::All, Keep::All, now, deliver, drops);
            if let (Some(above), Some(rooms)) = (above, rooms) {
                above.room = rooms[usize::from(is_nr)];
            }
        }
    }

    /// Resets everything about the previous serving cell, except the contents of RLC and PDCP.
    pub(crate) fn leave(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.down.iter_mut().for_each(|carrier| carrier.leave(self.index));
        self.up.harq.flush();
        self.up.errors.forget();
        self.uplink = adaptation::Uplink::new(self.category, self.index);
        self.request_state = RequestState::new();
        // A handover command and a re-establishment reconfigure the reports.
        self.reporting = Reporting::new();
        self.estimate = BufferEstimate::default();
        self.had_data = 0;
        self.srb = None;
        self.rlc_noted = Time::MAX;
        self.sync = Sync::default();
        self.measurements.forget();
        // The calendar entry is stale.
        self.measures = false;
        self.is_heard = true;
        self.dormant = false;
    }
}

/// Returns what limits a UE of this category in `cell`: nothing in NR.
fn category_in(cell: &Cell, category: Category) -> Category {
    if cell.mac.rat.is_nr() { Category::UNLIMITED } else { category }
}

/// Returns the block of a HARQ process; [`carrier_of`] explains the numbers of the downlink's.
#[inline]
pub(crate) fn block_of<'a>(
    (down, up): (&'a mut [Carrier; CARRIERS], &'a mut Way),
    way: Direction,
    process: u8,
) -> &'a mut Transport {
    let (harq, process) = match way {
        Direction::Downlink => {
            let (carrier, process) = carrier_of(process);
            (&mut down[carrier].harq, process)
        }
        Direction::Uplink => (&mut up.harq, process),
    };
    &mut harq.processes[usize::from(process)]
}

/// Returns the bytes of a grant for one bearer; 0 if there is nothing to send.
#[inline]
fn waiting<P: Packet>(rlc: &Bearer<P>, way: Direction, now: Time) -> u64 {
    let backlog = rlc.backlog(way, now);
    if backlog.is_empty() { 0 } else { backlog.with_headers() }
}
