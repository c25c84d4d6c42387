//! CoDel: drops packets at the head if their sojourn time has exceeded a target for an interval (RFC 8289).
//!
//! Source: RFC 8289, section 5, pseudo-code of 5.3 to 5.6. Where the RFC is silent, Linux (`include/net/codel_impl.h`,
//! `net/sched/sch_codel.c`) is followed: an ECN-capable packet is marked CE instead of dropped and counts as a drop in
//! the control law; the hard limit is 1000 packets and drops the arriving one; optionally every packet that waited
//! longer than `ce_threshold` is marked.
//!
//! Deviations:
//! 1. Linux approximates 1/sqrt(count) by a Newton step on 16 bits; here the square root is correctly rounded, as the
//!    RFC specifies.
//! 2. Linux drops when `now > first_above_time`; the RFC's `>=` is used.
//! 3. The RFC leaves `maxpacket` open; as in Linux it is the MTU, here always that of Ethernet.
//! 4. Linux's `codel` marks only if `ecn` is set; here that is the default, as in its `fq_codel`.

use units::check::Range;
use units::{Span, Time, parameters};

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Drops, PACKETS, Packet, Queue, sojourn};

/// RFC 8289, section 4.3: the acceptable standing delay.
pub(crate) const TARGET: Span = Span::from_millis(5);
/// RFC 8289, section 4.3: about the round-trip time of the slowest flows considered.
pub(crate) const INTERVAL: Span = Span::from_millis(100);
/// Linux `DEFAULT_CODEL_LIMIT`, in packets.
const LIMIT: u32 = 1000;
/// A backlog of at most so many bytes behind a packet never causes a drop: an Ethernet frame of 1500 bytes of payload, Linux
/// `psched_mtu` of an Ethernet device.
const MTU: u64 = 1514;
/// RFC 8289, section 5.4: a drop state that ended less than this many intervals ago is resumed.
const RECENT: u64 = 16;

/// The parameters of the control law, in a queue's [`Config`] or that of [`crate::fq_codel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The acceptable standing delay.
    pub target: Span,
    /// How long the delay must be above the target before the first drop.
    pub interval: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Also mark each ECN-capable packet that waited longer than this, independently of the control law.
    pub ce_threshold: Option<Span>,
}

/// The control law's state for one queue: RFC 8289's variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodelState {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Time>,
    /// In the drop state, the time of the next drop; outside, the time of the drop that was not carried out.
    drop_next: Time,
    /// Drops since the drop state was entered.
    count: u32,
    /// `count` when the drop state was last entered; never above `count`.
    last_count: u32,
    dropping: bool,
}

impl CodelState {
    /// Returns the packet to serve now. `pop` removes the packet at the head of the queue and returns it with the bytes
    /// of backlog behind it. Marked packets are counted in `marks`, dropped ones go to `drops`.
    #[inline]
    pub fn dequeue<P: Packet>(
        &mut self,
        params: &Params,
        now: Time,
        mut pop: impl FnMut() -> Option<(P, u64)>,
        marks: &mut u64,
        drops: &mut impl Drops<P>,
    ) -> Option<P> {
        let (mut packet, mut over) = self.is_droppable(params, now, pop());
        // RFC 8289, section 5.4. All paths but the next line are rare.
        if self.dropping && !over {
            self.dropping = false;
        }
        if self.dropping {
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if try_mark(params, packet.as_mut()) {
                    *marks += 1;
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                    break;
                }
                drop_head(packet, drops);
                (packet, over) = self.is_droppable(params, now, pop());
                if over {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if over {
            if try_mark(params, packet.as_mut()) {
                *marks += 1;
            } else {
                drop_head(packet, drops);
                (packet, _) = self.is_droppable(params, now, pop());
            }
            self.enter_dropping(params, now);
        }
        if let (Some(threshold), Some(packet)) = (params.ce_threshold, packet.as_mut())
            && sojourn(packet, now) > threshold
            && packet.ecn().capable()
        {
            packet.mark_ce();
            *marks += 1;
        }
        packet
    }

    /// Informs the control law of `n` packets dropped at a limit, which increases its drop rate (Linux
    /// `fq_codel_drop`).
    pub fn on_overflow(&mut self, n: u32) {
        self.count = self.count.saturating_add(n);
    }

    fn enter_dropping(&mut self, params: &Params, now: Time) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = now.saturating_since(self.drop_next) < params.interval * RECENT;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, params.interval, self.count);
        self.last_count = self.count;
    }

    /// RFC 8289, section 5.6, `dodequeue`: returns whether the packet just taken from the head may be dropped.
    #[inline]
    fn is_droppable<P: Packet>(&mut self, params: &Params, now: Time, head: Option<(P, u64)>) -> (Option<P>, bool) {
        let Some((packet, behind)) = head else {
            self.first_above = None;
            return (None, false);
        };
        let mut over = false;
        if sojourn(&packet, now) < params.target || behind <= MTU {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + params.interval),
                Some(first_above) => over = now >= first_above,
            }
        }
        (Some(packet), over)
    }
}

parameters! {
    /// The limit and the control law of a CoDel queue.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Target: the acceptable standing delay.
        pub target: Span = TARGET, in Range::POSITIVE_SPAN;
        /// Interval: how long the delay may stay above the target.
        pub interval: Span = INTERVAL, in Range::POSITIVE_SPAN;
        /// Maximum number of packets.
        pub packets: u32 = LIMIT, in PACKETS;
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = true;
        /// Also mark each ECN-capable packet at once if it waited longer than this. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ce_threshold: Option<Span> = None, in Range::SPAN;
    }
}

impl Config {
    /// Returns the control law.
    pub fn params(&self) -> Params {
        let Config { target, interval, packets: _, ecn, ce_threshold } = *self;
        Params { target, interval, ecn, ce_threshold }
    }
}

/// A FIFO with CoDel.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    fifo: Fifo<P>,
    state: CodelState,
    params: Params,
    max_packets: u64,
    marks: u64,
}

impl<P: Packet> Codel<P> {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Self {
        Codel {
            fifo: Fifo::new(),
            state: CodelState::default(),
            params: config.params(),
            max_packets: config.packets.into(),
            marks: 0,
        }
    }
}

impl<P: Packet> Queue<P> for Codel<P> {
    #[inline(never)]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        if self.fifo.backlog().packets < self.max_packets {
            self.fifo.push(packet, now);
        } else {
            drops.dropped(packet, DropReason::Overflow);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P> {
        let fifo = &mut self.fifo;
        let pop = || fifo.pop().map(|packet| (packet, fifo.backlog().bytes));
        self.state.dequeue(&self.params, now, pop, &mut self.marks, drops)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

fn try_mark<P: Packet>(params: &Params, packet: Option<&mut P>) -> bool {
    match packet {
        Some(packet) if params.ecn && packet.ecn().capable() => {
            packet.mark_ce();
            true
        }
        _ => false,
    }
}

fn drop_head<P>(packet: Option<P>, drops: &mut impl Drops<P>) {
    drops.dropped(packet.expect("only a packet can be over the target"), DropReason::Control);
}

/// RFC 8289, section 5.3: `t + interval / sqrt(count)`. The square root is correctly rounded according to IEEE 754, so
/// the result is the same on every machine.
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64)
}
