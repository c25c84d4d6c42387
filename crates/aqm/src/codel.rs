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
//! 3. The RFC leaves `maxpacket` open; as in Linux it is the MTU of the configuration.

use units::{Span, Time};

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Drops, Packet, Queue, sojourn};

/// RFC 8289, section 4.3: the acceptable standing delay.
const TARGET: Span = Span::from_millis(5);
/// RFC 8289, section 4.3: about the round-trip time of the slowest flows considered.
const INTERVAL: Span = Span::from_millis(100);
/// Linux `DEFAULT_CODEL_LIMIT`, in packets.
const LIMIT: u64 = 1000;
/// An Ethernet frame of 1500 bytes of payload: Linux `psched_mtu` of an Ethernet device.
const MTU: u64 = 1514;
/// RFC 8289, section 5.4: a drop state that ended less than this many intervals ago is resumed.
const RECENT: u64 = 16;

/// The parameters of the control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The acceptable standing delay. RFC: 5 ms.
    pub target: Span,
    /// How long the delay must be above the target before the first drop. RFC: 100 ms.
    pub interval: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Also mark each ECN-capable packet that waited longer than this, independently of the control law. Linux: off.
    pub ce_threshold: Option<Span>,
    /// A backlog of at most this many bytes behind the packet never causes a drop. Linux: 1514.
    pub mtu: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params { target: TARGET, interval: INTERVAL, ecn: false, ce_threshold: None, mtu: MTU }
    }
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
        if sojourn(&packet, now) < params.target || behind <= params.mtu {
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

/// The limit and the control law of a CoDel queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of packets; `None` is no limit. Linux: 1000.
    pub packets: Option<u64>,
    /// The control law.
    pub params: Params,
}

impl Default for Config {
    fn default() -> Self {
        Config { packets: Some(LIMIT), params: Params::default() }
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
            params: config.params,
            max_packets: config.packets.unwrap_or(u64::MAX),
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
