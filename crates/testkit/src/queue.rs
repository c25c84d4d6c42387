//! The conformance suite for queue disciplines.
//!
//! A driver (a fuzzer, or a loop over a random stream) generates a list of [`Op`]; [`conforms`] executes it on a
//! discipline and checks after every step that
//!
//! - packets and bytes are conserved: every packet that entered has, exactly once and unchanged, left, been dropped, or
//!   is in the backlog;
//! - packets of one flow leave in the order in which they entered;
//! - the limits hold;
//! - a queue with a backlog serves packets, and `dequeue` returns `None` only if the queue is empty;
//! - only ECN-capable packets are marked, at most [`aqm::Queue::marks`] of them;
//! - each packet carries its time of entry.

use std::collections::BTreeMap;

use aqm::{Backlog, DropReason, Ecn, Packet, Queue};
use bolero::TypeGenerator;
use units::{Span, Time};

/// A packet with a unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// Unique, and increasing in the order of arrival.
    pub id: u64,
    /// The flow; also used as the priority, so that a flow stays in one band.
    pub flow: u64,
    /// Length in bytes.
    pub len: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// When it entered its queue.
    pub enqueued: Time,
}

impl TestPacket {
    /// Creates a packet that is not ECN-capable.
    pub fn new(id: u64, flow: u64, len: u32) -> Self {
        TestPacket { id, flow, len, ecn: Ecn::NotEct, enqueued: Time::ZERO }
    }

    /// Sets the ECN field.
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        TestPacket { ecn, ..self }
    }
}

impl Packet for TestPacket {
    fn len(&self) -> u32 {
        self.len
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn priority(&self) -> u8 {
        (self.flow % 16) as u8
    }

    fn tag(&self) -> u64 {
        self.id
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        assert!(self.ecn.capable(), "a packet that is not ECN-capable was marked: {self:?}");
        self.ecn = Ecn::Ce;
    }

    fn enqueued(&self) -> Time {
        self.enqueued
    }

    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}

/// A step of a driver.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Op {
    /// Packets of one flow arrive, all of the same length.
    Arrive {
        /// The flow.
        flow: u8,
        /// Number of packets minus one, in the low four bits.
        count: u8,
        /// Length in bytes; zero counts as one.
        len: u16,
        /// The ECN field, in the low two bits.
        ecn: u8,
    },
    /// Service opportunities.
    Serve {
        /// Number of opportunities minus one, in the low four bits.
        count: u8,
        /// Duration of each, in units of 100 us.
        each: u8,
    },
    /// Time passes.
    Wait {
        /// Duration in milliseconds.
        millis: u8,
    },
}

/// The guarantees of a discipline's configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// Maximum number of packets.
    pub packets: Option<u64>,
    /// Maximum number of bytes.
    pub bytes: Option<u64>,
    /// Whether it may mark packets.
    pub marks: bool,
    /// Whether it may drop packets when serving.
    pub control: bool,
}

/// Executes `ops` on an empty `queue` and panics at the first violated invariant; drains the queue at the end.
pub fn conforms<Q: Queue<TestPacket>>(mut queue: Q, promise: Promise, ops: &[Op]) {
    let mut model = Model::default();
    let mut now = Time::from_nanos(1);
    for op in ops {
        match *op {
            Op::Arrive { flow, count, len, ecn } => {
                for _ in 0..=count % 16 {
                    let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn % 4)];
                    model.arrive(&mut queue, u64::from(flow), u32::from(len.max(1)), ecn, now);
                    model.check(&queue, promise);
                }
            }
            Op::Serve { count, each } => {
                for _ in 0..=count % 16 {
                    model.serve(&mut queue, promise, now);
                    model.check(&queue, promise);
                    now += Span::from_micros(u64::from(each) * 100);
                }
            }
            Op::Wait { millis } => now += Span::from_millis(u64::from(millis)),
        }
    }
    while model.serve(&mut queue, promise, now) {
        model.check(&queue, promise);
    }
    assert_eq!(queue.backlog(), Backlog::default(), "an emptied queue has a backlog");
}

/// The expected contents of the queue.
#[derive(Default)]
struct Model {
    inside: BTreeMap<u64, TestPacket>,
    bytes: u64,
    next_id: u64,
    /// The last packet served of each flow.
    last_served: BTreeMap<u64, u64>,
    marked: u64,
}

impl Model {
    fn arrive(&mut self, queue: &mut impl Queue<TestPacket>, flow: u64, len: u32, ecn: Ecn, now: Time) {
        self.next_id += 1;
        // The time stamp is deliberately wrong: the queue has to set it.
        let packet = TestPacket { enqueued: Time::MAX, ..TestPacket::new(self.next_id, flow, len).with_ecn(ecn) };
        self.inside.insert(packet.id, TestPacket { enqueued: now, ..packet });
        self.bytes += u64::from(len);
        let arriving = packet.id;
        queue.enqueue(packet, now, &mut |lost: TestPacket, reason| {
            assert_eq!(reason, DropReason::Overflow, "only a limit loses packets at arrival");
            let lost = if lost.id == arriving { TestPacket { enqueued: now, ..lost } } else { lost };
            self.leave(lost);
        });
    }

    /// Serves a packet; returns whether there was one.
    fn serve(&mut self, queue: &mut impl Queue<TestPacket>, promise: Promise, now: Time) -> bool {
        let served = queue.dequeue(now, &mut |lost: TestPacket, reason| {
            assert!(promise.control && reason == DropReason::Control, "dropped while serving: {reason:?}");
            self.leave(lost);
        });
        let Some(packet) = served else {
            assert!(self.inside.is_empty(), "nothing was served while {} packets wait", self.inside.len());
            return false;
        };
        self.leave(packet);
        let before = self.last_served.insert(packet.flow, packet.id);
        assert!(before < Some(packet.id), "flow {} was reordered: {before:?} before {}", packet.flow, packet.id);
        true
    }

    fn leave(&mut self, packet: TestPacket) {
        let mut entered = self.inside.remove(&packet.id).expect("a packet left that was not inside");
        if packet.ecn == Ecn::Ce && entered.ecn != Ecn::Ce {
            self.marked += 1;
            entered.ecn = Ecn::Ce;
        }
        assert_eq!(packet, entered, "a packet was changed");
        self.bytes -= u64::from(packet.len);
    }

    fn check(&self, queue: &impl Queue<TestPacket>, promise: Promise) {
        let held = Backlog { packets: self.inside.len() as u64, bytes: self.bytes };
        assert_eq!(queue.backlog(), held, "packets are not conserved");
        assert!(promise.packets.is_none_or(|limit| held.packets <= limit), "{held:?} is above {promise:?}");
        assert!(promise.bytes.is_none_or(|limit| held.bytes <= limit), "{held:?} is above {promise:?}");
        assert!(self.marked <= queue.marks(), "{} packets carry a mark, {} were counted", self.marked, queue.marks());
        assert!(promise.marks || queue.marks() == 0, "marked although the configuration does not mark");
    }
}
