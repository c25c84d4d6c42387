//! The bearers of a UE, and the queues above them.

use aqm::{Completion, DropReason, Drops, Gate, Packet};
use channel::Direction;
use units::Time;

use crate::config::{self, BearerConfig, Filter, Room, UeConfig};
use crate::mac::harq::Transport;
use crate::mac::requests::GROUPS;
use crate::pdcp::{Deliver, Keep};
use crate::rlc::{self, Bearer};
use crate::signalling::{SRB, SRB_BIT, SRB_GROUP, SRB_PRIORITY, Signal};

/// A MAC subheader without a length, as the last one of a block has.
const LAST_SUBHEADER: u32 = 1;
/// Maximum overhead of another SDU: the subheader of the previous one gets a length of up to two bytes.
const FURTHER_SUBHEADER: u32 = 3;

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

/// See the module.
pub(crate) struct Bearers<P> {
    /// The data bearers: the default bearer, then the dedicated ones.
    pub(crate) data: Vec<Slot<P>>,
    /// SRB1, once it had a message in this cell.
    pub(crate) srb: Option<Box<Bearer<Signal>>>,
    /// Whether they are in their NR modes.
    is_nr: bool,
    /// Indices of the data bearers by descending priority.
    order: Vec<u8>,
    pub(crate) host: Above<P>,
    /// Whether buffer status reports include the host's queue.
    reports_host: bool,
    /// Whether a full modem drops packets.
    modem_drops: bool,
    /// The tags of packets that have left the host's queue for the modem and have not been polled, if anybody asks.
    released: Option<Vec<u64>>,
    /// Whether one of them is in TM, which needs room for a whole packet.
    pub(crate) has_transparent: bool,
    /// Whether a STATUS PDU may complete data for a queue above RLC.
    pub(crate) uses_status: bool,
    /// Whether PDCP discards SDUs after a time: a new one may be the next to expire.
    pub(crate) discards: bool,
    /// The time of the only valid calendar entry for RLC's timers.
    pub(crate) noted: Time,
}

impl<P: Packet> Bearers<P> {
    /// Creates the bearers of `config`, without data, in an NR cell if it `is_nr`.
    pub(crate) fn new(config: &UeConfig, is_nr: bool) -> Bearers<P> {
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
        let data: Vec<Slot<P>> = config.bearers.iter().map(slot).collect();
        let mut order: Vec<u8> = (0..data.len() as u8).collect();
        order.sort_by_key(|b| data[usize::from(*b)].priority);
        Bearers {
            data,
            srb: None,
            is_nr,
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
            noted: Time::MAX,
        }
    }

    /// Returns the bearer of `packet`: the first dedicated one that admits it, or the default one.
    #[inline]
    pub(crate) fn bearer_of(&self, packet: &P) -> usize {
        (1..self.data.len()).find(|b| self.data[*b].filter.admits(packet)).unwrap_or(0)
    }

    /// Returns the bytes of a grant for everything that could be sent.
    #[inline]
    pub(crate) fn backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes: u64 = self.data.iter().map(|b| waiting(&b.rlc, way, now)).sum();
        let bytes = bytes + self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns whether it has a bearer in an acknowledged mode: only then do blocks start timers when they are built, and
    /// change what can be sent when they arrive.
    #[inline]
    pub(crate) fn acknowledges(&self) -> bool {
        self.srb.is_some() || self.data.iter().any(|bearer| bearer.rlc.acknowledges())
    }

    /// Returns whether anything could be sent: whether [`Bearers::backlog`] is not zero.
    #[inline]
    pub(crate) fn has_data(&self, way: Direction, now: Time) -> bool {
        let has_data = |rlc: &Bearer<P>| rlc.has_data(way, now);
        self.data.iter().any(|b| has_data(&b.rlc)) || self.srb.as_ref().is_some_and(|srb| srb.has_data(way, now))
    }

    /// Returns the same for RRC messages only.
    #[inline]
    pub(crate) fn signalling_backlog(&self, way: Direction, now: Time) -> u32 {
        let bytes = self.srb.as_ref().map_or(0, |srb| waiting(srb, way, now));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns the part of [`Bearers::backlog`] of which a block of `most` bytes could carry anything, and the minimum size
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
        for bearer in &mut self.data {
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
        let held_back: u64 = self.data.iter().map(|b| b.rlc.backlog(way, now).held_back).sum();
        u64::from(self.backlog(way, now)) + held_back + self.above(way).bytes
    }

    /// Returns a bit for each bearer with data in the uplink, as in `had_data`.
    #[inline]
    pub(crate) fn with_uplink_data(&self, now: Time) -> u16 {
        let has_data = |rlc: &Bearer<P>| rlc.has_data(Direction::Uplink, now);
        let signals = self.srb.as_ref().is_some_and(|srb| srb.has_data(Direction::Uplink, now));
        let bearers = self.data.iter().enumerate().map(|(b, bearer)| u16::from(has_data(&bearer.rlc)) << b);
        bearers.fold(if signals { SRB_BIT } else { 0 }, |sum, bit| sum | bit)
    }

    /// Returns [`Bearers::backlog`] of the uplink by logical channel group.
    #[inline]
    pub(crate) fn uplink_groups(&self, now: Time) -> [u32; GROUPS] {
        let mut groups = [0u32; GROUPS];
        if let Some(srb) = &self.srb {
            let bytes = waiting(srb, Direction::Uplink, now);
            groups[SRB_GROUP] = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        for bearer in &self.data {
            let bytes = waiting(&bearer.rlc, Direction::Uplink, now);
            let group = &mut groups[usize::from(bearer.group)];
            *group = group.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        if self.reports_host && groups != [0; GROUPS] {
            let group = &mut groups[usize::from(self.data[0].group)];
            *group = group.saturating_add(u32::try_from(self.host.gate.backlog().bytes).unwrap_or(u32::MAX));
        }
        groups
    }

    /// Returns whether one of the bearers in `new` has priority over all those in `old`.
    #[inline]
    pub(crate) fn is_urgent(&self, new: u16, old: u16) -> bool {
        let first = |set: u16| {
            let in_set = |b: &usize| set & (1 << b) != 0;
            let data = (0..self.data.len()).filter(in_set).map(|b| self.data[b].priority).min();
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
        let Slot { rlc, above, .. } = &mut self.data[bearer];
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
        for Slot { rlc, above, .. } in &mut self.data {
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
            self.data.iter().for_each(|b| held += b.rlc.held(way, self.host.completion));
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
                self.data[bearer].rlc.enqueue(way, packet, now, drops);
            } else {
                drops.dropped(packet, DropReason::Overflow);
            }
        }
    }

    /// Keeps the tags of packets that leave the host's queue for [`Bearers::poll_released`] from now on.
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
                self.data.iter().filter_map(|b| b.above.as_ref()).for_each(|a| sum += a.gate.backlog());
            }
        }
        sum
    }

    /// Returns the bytes allowed in RLC by byte queue limits; `None` if none of its queues has one.
    pub(crate) fn quota(&self, way: Direction) -> Option<u64> {
        match way {
            Direction::Uplink => self.host.gate.limit(),
            Direction::Downlink => {
                self.data.iter().filter_map(|b| b.above.as_ref()?.gate.limit()).reduce(|sum, one| sum + one)
            }
        }
    }

    /// Returns the backlog in its bearers in one direction that has not been sent in part.
    #[inline]
    pub(crate) fn queued(&self, way: Direction) -> aqm::Backlog {
        let mut sum = aqm::Backlog::default();
        self.data.iter().for_each(|bearer| sum += bearer.rlc.queue(way));
        sum
    }

    /// Fills `transport` with up to `bytes`, in order of bearers; returns the bytes left. If RLC runs empty and the block has
    /// room, the queues above are updated and may pass more down; if these hold packets that only their quota keeps back,
    /// `starved` is counted up.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        way: Direction,
        (transport, starved): (&mut Transport, &mut u64),
        (bytes, headers): (u32, bool),
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let mut left = self.fill_once(way, transport, (bytes, headers), now, drops);
        while left > FURTHER_SUBHEADER && self.above(way).packets > 0 && self.queued(way).packets == 0 {
            self.hand_down(way, now, drops);
            let before = left;
            left = self.fill_once(way, transport, (left, headers), now, drops);
            if left == before {
                // Unless RLC itself waits for acknowledgements, it is the quota that waits for them.
                let above = self.above(way).bytes;
                *starved += u64::from(self.waits(way, now) == above);
                break;
            }
        }
        left
    }

    #[inline]
    fn fill_once(
        &mut self,
        way: Direction,
        transport: &mut Transport,
        (bytes, headers): (u32, bool),
        now: Time,
        drops: &mut impl Drops<P>,
    ) -> u32 {
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
                _ => self.data[usize::from(*b)].rlc.build(way, grant, now, block, drops),
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

    /// Changes their modes and buffers to those of NR cells if the cell `is_nr`, or of LTE cells, if that has changed.
    pub(crate) fn adopt(&mut self, is_nr: bool, now: Time, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        if core::mem::replace(&mut self.is_nr, is_nr) == is_nr {
            return;
        }
        for Slot { rlc, configs, above, rooms, .. } in &mut self.data {
            rlc.reconfigure(&configs[usize::from(is_nr)], Keep::All, Keep::All, now, deliver, drops);
            if let (Some(above), Some(rooms)) = (above, rooms) {
                above.room = rooms[usize::from(is_nr)];
            }
        }
    }

    /// Forgets the bearer and the calendar's entries of a cell that the UE leaves. The contents of data bearers remain.
    pub(crate) fn leave(&mut self) {
        self.srb = None;
        self.noted = Time::MAX;
    }
}

/// Returns the bytes of a grant for one bearer; 0 if there is nothing to send.
#[inline]
fn waiting<P: Packet>(rlc: &Bearer<P>, way: Direction, now: Time) -> u64 {
    let backlog = rlc.backlog(way, now);
    if backlog.is_empty() { 0 } else { backlog.with_headers() }
}
