//! Times, links and a driver of them, for the tests of links.

#![allow(dead_code, reason = "each test binary uses a part")]

use aqm::DropReason;
use link::{Config, Link, Random, Schedule, Service, Sharing, Trace};
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::Arc;
use testkit::queue::TestPacket;
use units::{Rate, Span, Time};

pub(crate) fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

pub(crate) fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

pub(crate) fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

pub(crate) fn rate(bits_per_sec: u64) -> Service {
    Service::Rate(Schedule::constant(Rate::from_bits_per_sec(bits_per_sec)))
}

pub(crate) fn no_drops(packet: TestPacket, reason: DropReason) {
    panic!("lost {packet:?}: {reason:?}");
}

/// Drives a link as a simulator does: wakes it only when it asks for it, and hands packets over at their times.
pub(crate) struct Driver {
    pub(crate) link: Link<TestPacket>,
    pub(crate) delivered: Vec<(Time, u64)>,
    pub(crate) lost: Vec<(u64, DropReason)>,
    pub(crate) wake_ups: u64,
}

impl Driver {
    pub(crate) fn new(config: Config) -> Self {
        Driver { link: Link::new(config, random(1)), delivered: Vec::new(), lost: Vec::new(), wake_ups: 0 }
    }

    pub(crate) fn run(mut self, arrivals: impl IntoIterator<Item = (Time, u32)>) -> Self {
        for (id, (now, len)) in arrivals.into_iter().enumerate() {
            self.run_until(now);
            let packet = TestPacket::new(id as u64, 0, len);
            self.link.handle_packet(packet, now, &mut |packet: TestPacket, why| self.lost.push((packet.id, why)));
            self.collect(now);
        }
        self.run_until(Time::MAX);
        self
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(now) = self.link.poll_timeout().filter(|&now| now <= end) {
            self.wake_ups += 1;
            self.link.handle_timeout(now, &mut |packet: TestPacket, why| self.lost.push((packet.id, why)));
            self.collect(now);
            assert!(
                self.link.poll_timeout() > Some(now) || self.link.poll_timeout().is_none(),
                "a wake-up did nothing"
            );
        }
    }

    pub(crate) fn collect(&mut self, now: Time) {
        while let Some(packet) = self.link.poll_delivery(now) {
            self.delivered.push((now, packet.id));
        }
    }

    pub(crate) fn times(&self) -> Vec<Time> {
        self.delivered.iter().map(|&(time, _)| time).collect()
    }
}

pub(crate) fn tiny_trace(sharing: Sharing) -> Service {
    Service::Trace { trace: Arc::new(Trace::parse("0\n2\n2\n5\n").unwrap()), sharing, offset: Span::ZERO }
}
