//! Middleboxes of all kinds: they let pass, consume, answer at once and send later.

use crate::common::{flow, load, near, run};
use aqm::Ecn;
use cc::AnyController;
use pep::Arrival;
use record::Tables;
use sim::{Emission, External, FlowKey, Live, Middlebox, NoVisitors, Passing, Verdict, Visitor, Way};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tcp::{Context, Endpoint, Event, Transmit};
use units::{Span, Time};
use wire::{Flags, Segment};

/// A server 5 ms from `edge` and a phone 10 ms behind it, `more` on the way to `edge`.
fn text(more: &str) -> String {
    format!(
        r#"
duration = "10 s"
warmup = "2 s"
[[links]]
name = "core"
from = "server"
to = "edge"
rate = "20 Mbit/s"
delay = "5 ms"
{more}
[[links]]
name = "access"
from = "edge"
to = "phone"
rate = "100 Mbit/s"
delay = "10 ms"
[[flows]]
name = "f"
from = "server"
to = "phone"
"#
    )
}

/// The tables of the scenario of [`text`], with a middlebox at `edge` if there is one.
fn run_with(middlebox: Option<Box<dyn Middlebox>>) -> Tables {
    let loaded = load(&text(""), &[]);
    let scenario = &loaded.points()[0].scenario;
    let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
    let (there, back) = live.routes_of("f").expect("there is a flow f");
    if let Some(middlebox) = middlebox {
        live.place("edge", middlebox, there, back).expect("both routes lead through it");
    }
    let end = Time::ZERO + scenario.duration;
    live.advance(end, &mut NoVisitors);
    live.finish(end).expect("it ends").tables
}

/// Holds every segment towards the receiver back for a time.
struct Delay {
    by: Span,
    held: VecDeque<(Time, Emission)>,
}

impl Middlebox for Delay {
    fn handle_packet(&mut self, packet: &Passing, now: Time) -> Verdict {
        if !packet.towards_receiver {
            return Verdict::Forward;
        }
        let emission = Emission { way: packet.way, onward: true, segment: *packet.segment, ect: false, sent: None };
        self.held.push_back((now + self.by, emission));
        Verdict::Consume
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Emission> {
        self.held.pop_front_if(|(due, _)| *due <= now).map(|(_, emission)| emission)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.held.front().map(|&(due, _)| due)
    }
}

#[test]
fn a_middlebox_that_holds_packets_back_is_a_longer_link() {
    let longer = run(&text("").replace("\"10 ms\"", "\"17 ms\""));
    let held = run_with(Some(Box::new(Delay { by: Span::from_millis(7), held: VecDeque::new() })));
    let (longer, held) = (flow(&longer, "f").goodput_mbps, flow(&held, "f").goodput_mbps);
    near("goodput", held, longer, 0.02);
}

/// Lets no SYN pass.
struct Wall;

impl Middlebox for Wall {
    fn handle_packet(&mut self, packet: &Passing, _now: Time) -> Verdict {
        if packet.segment.flags.has(Flags::SYN) { Verdict::Consume } else { Verdict::Forward }
    }
}

#[test]
fn what_a_middlebox_consumes_does_not_arrive() {
    assert_eq!(flow(&run_with(Some(Box::new(Wall))), "f").goodput_mbps, 0.0);
}

#[test]
fn a_middlebox_that_lets_everything_pass_changes_nothing() {
    struct Pass;
    impl Middlebox for Pass {
        fn handle_packet(&mut self, _packet: &Passing, _now: Time) -> Verdict {
            Verdict::Forward
        }
    }
    assert_eq!(run_with(Some(Box::new(Pass))), run_with(None));
}

/// Splits the connection of a bulk flow: it answers the sender itself, and is a sender to the receiver.
struct Split {
    /// The endpoint that faces the sender, and the one that faces the receiver.
    ends: Option<[Endpoint<AnyController>; 2]>,
    /// The way of packets towards the receiver.
    way: Option<Way>,
    random: cc::Random,
    /// Something arrived at this moment, which the endpoints may answer.
    ready: Option<Time>,
}

impl Split {
    fn new() -> Split {
        Split { ends: None, way: None, random: des::Streams::new(1, 0).named("split"), ready: None }
    }
}

impl Middlebox for Split {
    fn handle_packet(&mut self, packet: &Passing, now: Time) -> Verdict {
        let Split { ends, way, random, ready } = self;
        let controller = || AnyController::by_name("cubic", cc::INITIAL_WINDOW).expect("it is known");
        let config = tcp::Config::default();
        let [near, far] = ends.get_or_insert_with(|| {
            [Endpoint::listen(&config, controller(), 1), Endpoint::connect(&config, controller(), 2, now)]
        });
        let cx = &mut Context { now, random, log: None };
        if packet.towards_receiver {
            *way = Some(packet.way);
            near.handle_segment(packet.segment, false, cx);
            while let Some(event) = near.poll_event() {
                match event {
                    Event::Delivered(bytes) => far.write_all(bytes),
                    Event::PeerClosed => far.close(),
                    _ => {}
                }
            }
        } else {
            far.handle_segment(packet.segment, false, cx);
            while let Some(event) = far.poll_event() {
                if event == Event::PeerClosed {
                    near.close();
                }
            }
        }
        *ready = Some(now);
        Verdict::Consume
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Emission> {
        let Split { ends, way, random, ready } = self;
        let cx = &mut Context { now, random, log: None };
        for (end, onward) in ends.as_mut()?.iter_mut().zip([false, true]) {
            if end.poll_timeout().is_some_and(|due| due <= now) {
                end.handle_timeout(cx);
            }
            if let Some(Transmit { segment, ect }) = end.poll_transmit(cx) {
                return Some(Emission { way: (*way)?, onward, segment, ect, sent: None });
            }
        }
        *ready = None;
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ends = self.ends.iter().flatten().filter_map(Endpoint::poll_timeout);
        ends.chain(self.ready).min()
    }
}

#[test]
fn a_middlebox_with_endpoints_of_its_own_splits_a_connection() {
    let whole = run_with(None);
    let split = run_with(Some(Box::new(Split::new())));
    let (whole, split) = (flow(&whole, "f"), flow(&split, "f"));
    near("goodput", split.goodput_mbps, whole.goodput_mbps, 0.03);
    // Behind the middlebox a packet is a new one, which never waited in the queue before it.
    assert!(whole.owd_p50_ms.is_some_and(|delay| delay > 30.0), "{whole:?}");
    assert!(split.owd_p50_ms.is_some_and(|delay| (10.0..10.5).contains(&delay)), "{split:?}");
}

/// Answers each packet towards the receiver with a segment without payload, and consumes those of 700 bytes.
struct Echo;

impl Middlebox for Echo {
    fn handle_packet(&mut self, packet: &Passing, _now: Time) -> Verdict {
        match packet.arrival.packet_len {
            700 => Verdict::Consume,
            _ if packet.towards_receiver => {
                let segment = Segment { len: 0, ..*packet.segment };
                Verdict::Emit(Emission { way: packet.way, onward: false, segment, ect: false, sent: None })
            }
            _ => Verdict::Forward,
        }
    }
}

/// Packets that are their lengths by tag.
#[derive(Default)]
struct Lengths {
    lengths: Vec<u32>,
    consumed: Rc<RefCell<Vec<u32>>>,
}

impl Lengths {
    fn visitor(&mut self, len: u32) -> Visitor {
        self.lengths.push(len);
        Visitor { tag: self.lengths.len() as u32 - 1, len, key: 1, ecn: Ecn::NotEct, priority: 0 }
    }
}

impl External for Lengths {
    fn segment(&self, tag: u32, _towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)> {
        let packet_len = self.lengths[tag as usize];
        // The shortest one is no TCP.
        let key = FlowKey::Simulated(u32::MAX, 0);
        (packet_len > 100).then_some((key, Segment::default(), Arrival { packets: 1, packet_len, via: 0 }))
    }

    fn build(&mut self, _tag: u32, onward: bool, segment: &Segment) -> Option<Visitor> {
        assert!(!onward && segment.len == 0);
        Some(self.visitor(40))
    }

    fn consumed(&mut self, tag: u32) {
        self.consumed.borrow_mut().push(tag);
    }
}

#[test]
fn packets_from_outside_are_shown_answered_and_consumed() {
    let loaded = load(&text(""), &[]);
    let mut scenario = loaded.points()[0].scenario.clone();
    scenario.flows.clear();
    let mut live = Live::new(&loaded, &scenario, (0, 0), None).expect("it runs");
    let mut route = |from, to| live.route(&scenario::route(&scenario, from, to).expect("a route"));
    let (there, back) = (route("server", "phone"), route("phone", "server"));
    assert!(live.place("phone", Box::new(Echo), there, back).is_err(), "nothing passes an end");
    live.place("edge", Box::new(Echo), there, back).expect("both lead through it");
    let mut packets = Lengths::default();
    for len in [60, 500, 700] {
        let visitor = packets.visitor(len);
        live.send(there, visitor);
    }
    live.advance(Time::ZERO + Span::from_millis(50), &mut packets);
    let arrived: Vec<u32> = std::iter::from_fn(|| live.poll_arrival()).map(|arrival| arrival.tag).collect();
    // The answer to the second one has the shorter way.
    assert_eq!(arrived, [3, 0, 1]);
    assert_eq!(*packets.consumed.borrow(), [2]);
    assert_eq!(live.poll_lost(), None);
}
