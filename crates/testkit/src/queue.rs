//! One suite for all queue disciplines.
//!
//! A driver (a fuzzer, or a loop over a random stream) makes up a list of [`Op`]; [`conforms`] plays it against a
//! discipline and checks after every step that
//!
//! - packets are conserved: what came in is, once each and unchanged, out, dropped, or in the backlog, in packets and
//!   in bytes;
//! - packets of one flow come out in the order in which they went in;
//! - the limits hold;
//! - a queue with a backlog serves, and `dequeue` gives `None` only when nothing is left;
//! - only ECN-capable packets are marked, never more than [`aqm::Queue::marks`] says;
//! - each packet carries the time at which it entered.

use std::collections::BTreeMap;

use aqm::{Backlog, DropReason, Ecn, Packet, Queue};
use bolero::TypeGenerator;
use units::{Span, Time};

/// A packet with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// Unique, and increasing in the order of arrival.
    pub id: u64,
    /// The flow; also the priority, so that a flow stays in one band.
    pub flow: u64,
    /// Length in bytes.
    pub len: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// When it entered its queue.
    pub enqueued: Time,
}

impl TestPacket {
    /// A packet that is not ECN-capable.
    pub fn new(id: u64, flow: u64, len: u32) -> Self {
        TestPacket { id, flow, len, ecn: Ecn::NotEct, enqueued: Time::ZERO }
    }

    /// The same with an ECN field.
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
    /// Packets of one flow arrive, one length each.
    Arrive {
        /// The flow.
        flow: u8,
        /// How many, less one, in the low four bits.
        count: u8,
        /// Length in bytes; zero counts as one.
        len: u16,
        /// The ECN field, in the low two bits.
        ecn: u8,
    },
    /// Service opportunities.
    Serve {
        /// How many, less one, in the low four bits.
        count: u8,
        /// How long each takes, in units of 100 us.
        each: u8,
    },
    /// Time passes.
    Wait {
        /// How long, in milliseconds.
        millis: u8,
    },
}

/// What a discipline promised in its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// At most so many packets.
    pub packets: Option<u64>,
    /// At most so many bytes.
    pub bytes: Option<u64>,
    /// Whether it may mark at all.
    pub marks: bool,
    /// Whether it may drop when it serves.
    pub control: bool,
}

/// Plays `ops` against an empty `queue` and panics at the first broken invariant; empties it at the end.
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

/// What must be in the queue.
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
        // The stamp is wrong on purpose: the queue has to set it.
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

    /// Whether a packet came out.
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
        assert!(promise.marks || queue.marks() == 0, "marked without leave");
    }
}
