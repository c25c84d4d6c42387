//! RLC: the transparent, unacknowledged and acknowledged modes of LTE (36.322), and the last two of NR (38.322).
//!
//! A [`Bearer`] holds both ends of both directions. In each direction a transmitting entity segments the stream of SDUs
//! ([`crate::pdcp`]) into PDUs according to its grants, and a receiving entity processes what arrives. The two ends
//! communicate only through PDUs, which a [`Block`] carries and HARQ may lose or reorder; only the bytes are not
//! copied.
//!
//! Order of calls: [`Bearer::handle_timeout`] at the time returned by [`Bearer::poll_timeout`], before other calls at
//! that time; [`Bearer::enqueue`], [`Bearer::build`] and [`Bearer::receive`] in any order. After each, the backlog and
//! the next timeout may have changed. Time never goes back. A timeout that is handled late takes effect late.
//!
//! Deviations, in addition to those of `am_transmit`, `am_receive`, `um` and [`crate::pdcp`]:
//! 1. In LTE, a block carries at most eight data PDUs of a bearer (one new, and retransmissions). In NR, it carries any
//!    number of new ones, and retransmissions of at most twelve gaps.
//! 2. No LI of 15 bits (36.322, release 11) and no SN of 16 bits (release 13): an element longer than 2047 bytes is the
//!    last of its PDU, as in 6.2.2.5.
//! 3. Both directions of a bearer have the same parameters.
//! 4. With a full window, SDUs do not count as data available for transmission (4.5 makes no such exception): a grant
//!    for them would be padding. They count again as soon as the window advances.
//! 5. The sender does not inform upper layers of each acknowledged SDU (5.1.3.1.1): PDCP here knows what has arrived.

mod block;
pub(crate) mod lte;
mod mode;
pub(crate) mod nr;

pub use block::Block;
pub use mode::{Am, AmSn, Mode, NrAm, NrUm, SnLength, Stats, Um, UmSn};

use aqm::{Completion, DropReason, Drops, Packet};
use channel::Direction;
use units::Time;

use crate::pdcp::{self, Deliver, Keep, Received, Sdus};
use lte::am_receive::Receiver;
use lte::am_transmit::Transmitter;
use lte::elements::LengthIndicators;
use lte::pdu::{AMD_HEADER, MAC_SUBHEADER, Pdu, SEGMENT_HEADER, SO_END};
use lte::um;

/// A bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The RLC mode of both directions.
    pub mode: Mode,
    /// PDCP towards the UE.
    pub downlink: pdcp::Config,
    /// PDCP from the UE.
    pub uplink: pdcp::Config,
}

/// The backlog of one direction, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Never sent; with PDCP headers, without RLC headers.
    pub new: u64,
    /// Likewise, but AM's window is full: it cannot be sent before a STATUS PDU arrives.
    pub held_back: u64,
    /// To be retransmitted; without RLC headers.
    pub retx: u64,
    /// The STATUS PDU about the other direction that may be sent now.
    pub status: u32,
    /// Approximate size of RLC headers and of MAC subheaders between PDUs.
    pub headers: u64,
}

/// A bearer: both ends of both directions, and the SDUs in between.
#[derive(Clone, Debug)]
pub struct Bearer<P> {
    mode: Mode,
    pipes: [Pipe<P>; 2],
    /// Number of re-establishments so far.
    epoch: u32,
    /// Bytes that PDCP adds to each SDU.
    header: u32,
    /// NR: maximum occupancy of each direction, in bytes.
    limits: [u64; 2],
}

/// One direction.
#[derive(Clone, Debug)]
struct Pipe<P> {
    sdus: Sdus<P>,
    entity: Entity,
    stats: Stats,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all bearers are AM, and a pointer would cost a memory access")]
enum Entity {
    Tm,
    Um(um::Entity),
    Am(Transmitter, Receiver),
    NrUm(nr::um::Entity),
    NrAm(nr::am_transmit::Transmitter, nr::am_receive::Receiver),
}

impl Backlog {
    /// Returns the bytes that could be sent now, as counted by a buffer status report (36.322, 4.5; 36.321, 6.1.3.1),
    /// without headers and without data held back by a full window.
    #[inline]
    pub fn data(&self) -> u64 {
        self.new + self.retx + u64::from(self.status)
    }

    /// Returns the approximate size of a grant for all of it.
    #[inline]
    pub fn with_headers(&self) -> u64 {
        self.data() + self.headers
    }

    /// Returns whether there is nothing that could be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.data() == 0
    }
}

impl<P: Packet> Bearer<P> {
    /// Creates a bearer with nothing to send.
    pub fn new(config: &Config) -> Self {
        Bearer::with_header(config, header(&config.mode))
    }

    /// Creates a bearer whose PDCP adds `header` bytes to each SDU.
    pub(crate) fn with_header(config: &Config, header: u32) -> Self {
        let pipe = |way, pdcp| {
            let mut sdus = Sdus::new(way, pdcp, header);
            sdus.set_nr(config.mode.nr());
            Pipe { entity: Entity::new(&config.mode, &sdus, header), sdus, stats: Stats::default() }
        };
        Bearer {
            mode: config.mode,
            pipes: [pipe(Direction::Downlink, &config.downlink), pipe(Direction::Uplink, &config.uplink)],
            epoch: 0,
            header,
            limits: limits(&config.mode),
        }
    }

    /// Returns the backlog of direction `way` at `now`.
    #[inline(always)]
    pub fn backlog(&self, way: Direction, now: Time) -> Backlog {
        let (this, other) = (&self.pipes[way as usize], &self.pipes[1 - way as usize]);
        let (new, sdus) = this.sdus.unsent();
        match (&this.entity, &other.entity) {
            (Entity::Am(transmitter, _), Entity::Am(_, receiver)) => {
                am_backlog(transmitter, receiver, (new, sdus), now)
            }
            (Entity::NrAm(transmitter, _), Entity::NrAm(_, receiver)) => {
                nr_am_backlog(transmitter, receiver, &this.sdus, now)
            }
            (Entity::NrUm(entity), _) => {
                Backlog { new, headers: entity.headers.estimate(sdus, sdus.min(1)), ..Backlog::default() }
            }
            _ => Backlog { new, headers: lte_headers(new, sdus), ..Backlog::default() },
        }
    }

    /// Returns whether direction `way` has something that could be sent at `now`: whether [`Bearer::backlog`] is not empty.
    #[inline]
    pub fn has_data(&self, way: Direction, now: Time) -> bool {
        let (this, other) = (&self.pipes[way as usize], &self.pipes[1 - way as usize]);
        match (&this.entity, &other.entity) {
            (Entity::Am(transmitter, _), Entity::Am(_, receiver)) => {
                this.sdus.has_unsent() && !transmitter.is_stalled()
                    || transmitter.pending().0 > 0
                    || receiver.may_report(now)
            }
            (Entity::NrAm(transmitter, _), Entity::NrAm(_, receiver)) => {
                let is_new =
                    if transmitter.is_full() { this.sdus.partly_sent().is_some() } else { this.sdus.has_unsent() };
                is_new || transmitter.pending().0 > 0 || receiver.may_report(now)
            }
            _ => this.sdus.has_unsent(),
        }
    }

    /// Returns the length of the next SDU of `way` in TM, which can only send it whole; the SDU leaves the queue.
    /// Returns `None` in other modes and if there is none.
    pub(crate) fn next_whole(&mut self, way: Direction, now: Time, drops: &mut impl Drops<P>) -> Option<u32> {
        match self.mode {
            Mode::Tm => self.pipes[way as usize].sdus.next_len(now, drops),
            Mode::Um(_) | Mode::Am(_) | Mode::NrUm(_) | Mode::NrAm(_) => None,
        }
    }

    /// Returns whether it is in an acknowledged mode.
    #[inline]
    pub(crate) fn acknowledges(&self) -> bool {
        self.mode.retransmits()
    }

    /// Returns when the next SDU to be sent entered the queue, if the discipline is a FIFO or the SDU is partly sent.
    pub fn head_since(&self, way: Direction) -> Option<Time> {
        self.pipe(way).sdus.head_since()
    }

    /// Returns the backlog in the queue discipline of `way`.
    #[inline]
    pub fn queue(&self, way: Direction) -> aqm::Backlog {
        self.pipe(way).sdus.queued()
    }

    /// Returns the number of SDUs of `way` that left the queue and were neither delivered nor lost.
    pub fn in_transit(&self, way: Direction) -> usize {
        self.pipe(way).sdus.in_transit()
    }

    /// Returns the counters of `way`.
    pub fn stats(&self, way: Direction) -> Stats {
        self.pipe(way).stats
    }

    /// Returns the direction in which a PDU has reached maxRetxThreshold since the last re-establishment, if any: the
    /// radio link of its sender has failed.
    #[inline]
    pub fn failed(&self) -> Option<Direction> {
        if !self.mode.retransmits() {
            return None;
        }
        let failed = |way: &Direction| match &self.pipe(*way).entity {
            Entity::Am(sender, _) => sender.failed,
            Entity::NrAm(sender, _) => sender.failed,
            Entity::Tm | Entity::Um(_) | Entity::NrUm(_) => false,
        };
        [Direction::Downlink, Direction::Uplink].into_iter().find(failed)
    }

    /// Passes `packet` to the PDCP entity that sends in direction `way`.
    #[inline]
    pub fn enqueue(&mut self, way: Direction, packet: P, now: Time, drops: &mut impl Drops<P>) {
        let limit = self.limits[way as usize];
        if limit != u64::MAX && self.occupancy(way) + u64::from(packet.len()) > limit {
            return drops.dropped(packet, DropReason::Overflow);
        }
        self.pipes[way as usize].sdus.enqueue(packet, now, drops);
    }

    /// Returns the bytes, without headers, of the SDUs of `way` that the sender stores: those that wait and, in AM,
    /// those that were sent and are not acknowledged. NR's limit applies to it ([`pdcp::Nr::limit`]).
    #[inline]
    pub fn occupancy(&self, way: Direction) -> u64 {
        self.held(way, Completion::Acknowledged).bytes
    }

    /// Passes `packet`, which waited in a queue above, to the PDCP entity that sends in direction `way`. NR's limit does
    /// not apply: the queue above respects the room below.
    #[inline]
    pub fn take_over(&mut self, way: Direction, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.pipes[way as usize].sdus.take_over(packet, now, drops);
    }

    /// Returns the SDUs of `way` that have not left RLC yet; bytes without headers.
    #[inline]
    pub fn held(&self, way: Direction, completion: Completion) -> aqm::Backlog {
        let pipe = self.pipe(way);
        match (&pipe.entity, completion) {
            (Entity::Am(transmitter, _), Completion::Acknowledged) => transmitter.held(&pipe.sdus),
            (Entity::NrAm(transmitter, _), Completion::Acknowledged) => {
                let mut sum = pipe.sdus.queued();
                sum += transmitter.unacknowledged();
                sum
            }
            _ => pipe.sdus.not_sent(),
        }
    }

    /// Replaces the contents of `block` by what `way` sends in `grant` bytes: a STATUS PDU, then retransmissions, then
    /// new data. Returns its bytes: at most `grant`, and 0 if there is nothing to send or nothing fits.
    #[inline]
    pub fn build(
        &mut self,
        way: Direction,
        grant: u32,
        now: Time,
        block: &mut Block,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        if self.mode.nr().is_some() {
            return self.build_nr(way, grant, now, block, drops);
        }
        block.clear(self.epoch);
        let status_alone = matches!(self.mode, Mode::Am(am) if am.status_alone);
        let (this, other) = self.both(way);
        match (&mut this.entity, &mut other.entity) {
            (Entity::Am(transmitter, _), Entity::Am(_, receiver)) => {
                if let Some(status) = receiver.status(now, grant) {
                    block.set_status(status);
                    receiver.status_sent(now);
                    if status_alone {
                        return block.bytes();
                    }
                }
                transmitter.build(&mut this.sdus, grant, now, block, &mut this.stats, drops);
            }
            (Entity::Um(entity), _) => {
                entity.build(&mut this.sdus, grant, now, block, drops);
                this.stats.pdus += block.data().len() as u64;
            }
            _ => this.build_transparent(grant, now, block, drops),
        }
        block.bytes()
    }

    #[inline]
    fn build_nr(&mut self, way: Direction, grant: u32, now: Time, block: &mut Block, drops: &mut impl Drops<P>) -> u32 {
        let (contents, bytes) = block.clear_nr(self.epoch);
        let (this, other) = self.both(way);
        match (&mut this.entity, &mut other.entity) {
            (Entity::NrAm(transmitter, _), Entity::NrAm(_, receiver)) => {
                if let Some((report, size)) = receiver.status(now, grant) {
                    contents.set_report(report);
                    *bytes = size;
                }
                *bytes += transmitter.build(&mut this.sdus, grant - *bytes, now, contents, &mut this.stats, drops);
            }
            (Entity::NrUm(entity), _) => {
                *bytes = entity.build(&mut this.sdus, grant, now, contents, drops);
                this.stats.pdus += contents.pdus() as u64;
            }
            _ => {}
        }
        *bytes
    }

    /// Receives `block`, decoded by HARQ, from direction `way`. A STATUS PDU in it goes to the sender of the other
    /// direction.
    #[inline]
    pub fn receive(
        &mut self,
        way: Direction,
        block: &Block,
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        if block.epoch != self.epoch {
            return;
        }
        let (this, other) = self.both(way);
        if let (Some(report), Entity::NrAm(transmitter, receiver)) = (block.report(), &mut other.entity)
            && let Some(nacks) = receiver.nacks(report)
        {
            transmitter.handle_status(report, nacks);
            transmitter.ensure_answer(&other.sdus);
            other.stats.statuses += 1;
        }
        if let (Some(status), Entity::Am(transmitter, _)) = (block.status(), &mut other.entity) {
            transmitter.handle_status(status);
            transmitter.ensure_answer(&other.sdus);
            other.stats.statuses += 1;
        }
        match &mut this.entity {
            Entity::Am(_, receiver) => {
                let mut in_order = 0;
                for pdu in block.data() {
                    in_order = receiver.receive(pdu, now);
                }
                this.sdus.arrived(0, in_order, deliver, drops);
            }
            Entity::Um(entity) => {
                for pdu in block.data() {
                    entity.receive(pdu, now, &mut this.sdus, deliver, drops);
                }
            }
            Entity::Tm => {
                for (packet, times) in block.data().iter().filter_map(|pdu| this.sdus.take(pdu.start)) {
                    deliver.delivered(way, packet, times);
                }
            }
            Entity::NrAm(_, receiver) => {
                for run in block.runs() {
                    let (from, to) = receiver.receive(run, now);
                    if from < to {
                        this.sdus.complete(from, to, now, deliver, drops);
                    }
                }
            }
            Entity::NrUm(entity) => {
                for run in block.runs() {
                    entity.receive(run, now, |from, to| this.sdus.complete(from, to, now, deliver, drops));
                }
            }
        }
        for pdu in block.data() {
            this.sdus.decoded(pdu.start, pdu.end(), now);
        }
    }

    /// Informs that HARQ has abandoned `block`. UM and AM detect this themselves; TM, which does not number its SDUs,
    /// has to be informed that they are lost.
    #[inline]
    pub fn lost(&mut self, way: Direction, block: &Block, drops: &mut impl Drops<P>) {
        let pipe = &mut self.pipes[way as usize];
        if block.epoch == self.epoch && matches!(pipe.entity, Entity::Tm) {
            for (packet, _) in block.data().iter().filter_map(|pdu| pipe.sdus.take(pdu.start)) {
                drops.dropped(packet, DropReason::Loss);
            }
        }
    }

    /// Returns when [`Bearer::handle_timeout`] is due. This includes the expiry of t-StatusProhibit if a STATUS PDU
    /// waits, because the backlog changes then.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = |pipe: &Pipe<P>| {
            let entity = match &pipe.entity {
                Entity::Tm => Time::MAX,
                Entity::Um(entity) => entity.reordering,
                Entity::Am(sender, receiver) => {
                    sender.poll_retransmit.min(receiver.reordering).min(receiver.status_due)
                }
                Entity::NrUm(entity) => entity.reassembly,
                Entity::NrAm(sender, receiver) => {
                    sender.poll_retransmit.min(receiver.reassembly).min(receiver.status_due)
                }
            };
            entity.min(pipe.sdus.next_discard()).min(pipe.sdus.reordering())
        };
        let due = due(&self.pipes[0]).min(due(&self.pipes[1]));
        (due != Time::MAX).then_some(due)
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Time, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        for pipe in &mut self.pipes {
            pipe.sdus.discard(now, drops);
            match &mut pipe.entity {
                Entity::Tm => {}
                Entity::Um(entity) => entity.handle_timeout(now, &mut pipe.sdus, deliver, drops),
                Entity::Am(transmitter, receiver) => {
                    transmitter.handle_timeout(now, &pipe.sdus);
                    receiver.handle_timeout(now);
                }
                Entity::NrUm(entity) => entity.handle_timeout(now),
                Entity::NrAm(transmitter, receiver) => {
                    transmitter.handle_timeout(now, &pipe.sdus);
                    receiver.handle_timeout(now);
                }
            }
            pipe.sdus.reorder(now, deliver, drops);
        }
    }

    /// 36.322, 5.4; 38.322, 5.1.2: re-establishes the bearer, at a handover or after a radio link failure. SDUs that are
    /// complete at the receiver are not lost. Blocks built before are void: [`Bearer::receive`] and [`Bearer::lost`]
    /// ignore them.
    pub fn reestablish(
        &mut self,
        downlink: Keep,
        uplink: Keep,
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        self.restart(&self.mode.clone(), [downlink, uplink], now, deliver, drops);
    }

    /// Re-establishes the bearer, as [`Bearer::reestablish`], with other parameters and possibly another mode: a
    /// handover between LTE and NR, or with a reconfiguration. If the bearer retransmits before and after,
    /// [`Keep::All`] loses nothing; otherwise it is the same as [`Keep::Queue`]. SDUs in a queue stay, as far as the
    /// limits of another discipline permit.
    pub fn reconfigure(
        &mut self,
        config: &Config,
        downlink: Keep,
        uplink: Keep,
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        self.header = header(&config.mode);
        self.limits = limits(&config.mode);
        for (pipe, pdcp) in self.pipes.iter_mut().zip([&config.downlink, &config.uplink]) {
            pipe.sdus.configure(pdcp, self.header, now, drops);
            pipe.sdus.set_nr(config.mode.nr());
        }
        self.restart(&config.mode, [downlink, uplink], now, deliver, drops);
    }

    /// Begins again with empty entities of `mode`.
    fn restart(
        &mut self,
        mode: &Mode,
        keep: [Keep; 2],
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        self.epoch += 1;
        let lossless = self.mode.retransmits() && mode.retransmits();
        self.mode = *mode;
        for (pipe, keep) in self.pipes.iter_mut().zip(keep) {
            let keep = if lossless { keep } else { keep.at_most_queue() };
            let received = match &pipe.entity {
                Entity::Tm => Received::Ranges(Vec::new()),
                Entity::Um(entity) => Received::Ranges(merged(entity.received())),
                Entity::Am(_, receiver) => Received::Ranges(merged(receiver.received())),
                Entity::NrUm(_) | Entity::NrAm(..) => Received::Decoded,
            };
            pipe.sdus.reestablish(keep, &received, mode.nr().is_some(), now, deliver, drops);
            pipe.entity = Entity::new(mode, &pipe.sdus, self.header);
        }
    }

    fn pipe(&self, way: Direction) -> &Pipe<P> {
        &self.pipes[way as usize]
    }

    #[inline]
    fn both(&mut self, way: Direction) -> (&mut Pipe<P>, &mut Pipe<P>) {
        let [downlink, uplink] = &mut self.pipes;
        match way {
            Direction::Downlink => (downlink, uplink),
            Direction::Uplink => (uplink, downlink),
        }
    }
}

/// Returns the size of the headers of a PDU in LTE that carries all of `new` bytes of this many SDUs.
#[inline]
fn lte_headers(new: u64, sdus: u64) -> u64 {
    if new == 0 { 0 } else { u64::from(AMD_HEADER) + (3 * sdus).div_ceil(2) }
}

/// Returns the backlog of AM in LTE, of which `new` bytes of this many SDUs have not been sent.
fn am_backlog(transmitter: &Transmitter, receiver: &Receiver, (new, sdus): (u64, u64), now: Time) -> Backlog {
    let (retx, portions) = transmitter.pending();
    let mut backlog = Backlog { new, retx, headers: lte_headers(new, sdus), ..Backlog::default() };
    if transmitter.is_stalled() {
        backlog.held_back = core::mem::take(&mut backlog.new);
        backlog.headers = 0;
    }
    backlog.headers += u64::from(SEGMENT_HEADER + MAC_SUBHEADER) * portions as u64;
    if let Some(status) = receiver.status(now, u32::MAX) {
        backlog.status = status.bytes();
        backlog.headers += u64::from(MAC_SUBHEADER);
    }
    backlog
}

/// Returns the backlog of AM in NR.
fn nr_am_backlog<P: Packet>(
    transmitter: &nr::am_transmit::Transmitter,
    receiver: &nr::am_receive::Receiver,
    sdus: &Sdus<P>,
    now: Time,
) -> Backlog {
    let (new, mut pdus) = sdus.unsent();
    let (retx, headers) = transmitter.pending();
    let mut backlog = Backlog { new, retx, headers, ..Backlog::default() };
    if transmitter.is_full() {
        // The rest of an SDU that is partly sent is inside the window.
        let rest = sdus.partly_sent();
        backlog.new = rest.map_or(0, u64::from);
        backlog.held_back = new - backlog.new;
        pdus = u64::from(rest.is_some());
    }
    backlog.headers += transmitter.headers.estimate(pdus, pdus.min(1));
    let (status, subheader) = receiver.status_size(now);
    backlog.status = status;
    backlog.headers += u64::from(subheader);
    backlog
}

impl<P: Packet> Pipe<P> {
    /// 5.1.1.1: SDUs without headers or segmentation.
    fn build_transparent(&mut self, grant: u32, now: Time, block: &mut Block, drops: &mut impl Drops<P>) {
        while let Some(len) = self.sdus.next_len(now, drops) {
            if len > block.room(grant).min(u32::from(SO_END)) {
                break;
            }
            let start = self.sdus.map::<LengthIndicators>(len, now, drops, |_| {}).start;
            block.push(Pdu { start, len: len as u16, so: 0, sn: 0, last: true, poll: false }, 0);
            self.stats.pdus += 1;
        }
    }
}

impl Entity {
    fn new<P: Packet>(mode: &Mode, sdus: &Sdus<P>, header: u32) -> Self {
        match mode {
            Mode::NrUm(um) => Entity::NrUm(nr::um::Entity::new(um)),
            Mode::NrAm(am) => {
                let lengths = sdus.lengths();
                let receiver = nr::am_receive::Receiver::new(am, lengths.0);
                Entity::NrAm(nr::am_transmit::Transmitter::new(am, header, lengths), receiver)
            }
            Mode::Tm => Entity::Tm,
            Mode::Um(um) => Entity::Um(um::Entity::new(um)),
            Mode::Am(am) => Entity::Am(Transmitter::new(am, sdus.borders()), Receiver::new(am)),
        }
    }
}

/// Returns the bytes that PDCP adds to each SDU.
fn header(mode: &Mode) -> u32 {
    match mode {
        Mode::Tm => 0,
        Mode::Um(_) | Mode::Am(_) => pdcp::HEADER,
        Mode::NrUm(NrUm { pdcp, .. }) | Mode::NrAm(NrAm { pdcp, .. }) => pdcp.header(),
    }
}

/// Returns the maximum occupancy of each direction, in bytes.
fn limits(mode: &Mode) -> [u64; 2] {
    mode.nr().map_or([u64::MAX; 2], |nr| nr.limit.map(|limit| limit.unwrap_or(u64::MAX)))
}

/// Merges adjacent ranges of an ascending list.
fn merged(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}
