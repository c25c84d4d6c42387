//! A window that somebody else sets: the radio leg of a split proxy, whose driver knows the radio.
//!
//! While there is a [`Target`], its window and its pacing rate govern, whatever is lost: losses of the radio are repaired, not
//! answered. The congestion control beneath follows all events, and governs when there is no target.

use crate::{AckSample, Congestion, Controller, Ctx, INFINITE_SSTHRESH, Limits, Listens, Sent, Signal, Target};

/// The smallest window, in segments.
const LEAST: u64 = 2;

/// A controller whose window is set by [`Signal::Target`].
#[derive(Debug)]
pub struct Directed<C> {
    beneath: C,
    /// The limits in force, if there is a target.
    limits: Option<Limits>,
}

impl<C: Controller> Directed<C> {
    /// Creates a controller that `beneath` governs until there is a target.
    pub fn new(beneath: C) -> Directed<C> {
        Directed { beneath, limits: None }
    }
}

impl<C: Controller> Controller for Directed<C> {
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        self.beneath.on_sent(sent, cx);
    }

    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        self.beneath.on_ack(ack, cx);
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        self.beneath.on_congestion(congestion, cx);
    }

    fn on_undo(&mut self, cx: &mut Ctx) {
        self.beneath.on_undo(cx);
    }

    fn on_signal(&mut self, signal: &Signal, cx: &mut Ctx) {
        match signal {
            Signal::Target(target) => {
                self.limits = target.map(|Target { window, pacing }| {
                    let segments = window.get() / u64::from(cx.path.mss.max(1));
                    let cwnd = segments.clamp(LEAST, u64::from(u32::MAX)) as u32;
                    Limits { cwnd, ssthresh: INFINITE_SSTHRESH, pacing, burst: 1 }
                });
            }
            Signal::Passage(_) => self.beneath.on_signal(signal, cx),
        }
    }

    fn listens(&self) -> Listens {
        self.beneath.listens()
    }

    fn gauges(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.beneath.gauges(each);
    }

    fn begin_at(&mut self, ssthresh: u32) {
        self.beneath.begin_at(ssthresh);
    }

    fn buffered_windows(&self) -> u32 {
        self.beneath.buffered_windows()
    }

    fn limits(&self) -> Limits {
        self.limits.unwrap_or_else(|| self.beneath.limits())
    }

    fn name(&self) -> &'static str {
        "directed"
    }

    fn state(&self) -> &'static str {
        if self.limits.is_some() { "directed" } else { self.beneath.state() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::multi_domain::{CWND_E2E, CWND_PEP, MultiDomain, MultiDomainConfig};
    use crate::new_reno::NewReno;
    use units::{Bytes, Rate};

    fn directed() -> Driver<Directed<NewReno>> {
        Driver::new(Directed::new(NewReno::new(10)))
    }

    #[test]
    fn the_target_governs_and_losses_do_not() {
        let mut driver = directed();
        assert_eq!(driver.limits().cwnd, 10);
        let target = Target { window: Bytes::new(100_000), pacing: Some(Rate::from_mbps(8)) };
        driver.call(|c, cx| c.on_signal(&Signal::Target(Some(target)), cx));
        assert_eq!(driver.limits().cwnd, 100);
        driver.lose_and_recover();
        assert_eq!((driver.limits().cwnd, driver.limits().pacing), (100, Some(Rate::from_mbps(8))));
        driver.call(|c, cx| c.on_signal(&Signal::Target(None), cx));
        assert!(driver.limits().cwnd < 10, "the loss counts without a target: {:?}", driver.limits());
    }

    #[test]
    fn what_is_beneath_hears_everything_whether_there_is_a_target_or_not() {
        let target = || Target { window: Bytes::new(3_500), pacing: None };
        let mut plain = Driver::new(NewReno::new(10));
        let (mut free, mut governed) = (directed(), directed());
        governed.call(|c, cx| c.on_signal(&Signal::Target(Some(target())), cx));
        // Each of the three hears an event.
        macro_rules! all {
            ($d:ident => $event:expr) => {
                for_each!($d, $event, plain, free, governed);
                assert_eq!(free.limits(), plain.limits());
                assert_eq!((governed.limits().cwnd, governed.limits().ssthresh), (3, INFINITE_SSTHRESH));
                assert_eq!((governed.limits().pacing, governed.limits().burst), (None, 1));
                assert_eq!((free.c.state(), governed.c.state()), (plain.c.state(), "directed"));
            };
        }
        macro_rules! for_each {
            ($d:ident, $event:expr, $($driver:ident),*) => {
                $({
                    let $d = &mut $driver;
                    $event;
                })*
            };
        }
        all!(d => d.c.begin_at(25));
        all!(d => d.acked_singly(30));
        all!(d => d.react(crate::Sign::Loss, 30));
        all!(d => d.undo());
        all!(d => d.send(0, Some(units::Span::from_millis(600))));
        all!(d => d.lose_and_recover());
        governed.call(|c, cx| c.on_signal(&Signal::Target(None), cx));
        assert_eq!(governed.limits(), plain.limits());
        assert_eq!((free.c.name(), free.c.buffered_windows()), ("directed", plain.c.buffered_windows()));
        assert_eq!(free.c.listens(), plain.c.listens());
    }

    #[test]
    fn a_target_of_less_than_two_segments_is_two() {
        for (mss, bytes, cwnd) in
            [(1_000, 0, 2), (1_000, 2_999, 2), (1_000, 3_000, 3), (1_000, u64::MAX, u32::MAX), (0, 3_000, 3_000)]
        {
            let mut driver = directed();
            driver.path.mss = mss;
            let target = Target { window: Bytes::new(bytes), pacing: None };
            driver.call(|c, cx| c.on_signal(&Signal::Target(Some(target)), cx));
            assert_eq!(driver.limits().cwnd, cwnd, "{bytes}");
        }
    }

    #[test]
    fn a_control_beneath_that_listens_to_peps_hears_them_and_is_shown() {
        let mut driver = Driver::new(Directed::new(MultiDomain::new(MultiDomainConfig::default(), 10)));
        assert!(driver.c.listens().misses_passages);
        let passage = crate::Passage {
            reported: true,
            passed: 0,
            missing: 0,
            in_flight: 0,
            cwnd_limited: false,
            rtt: None,
            una: 0,
            next: 0,
        };
        driver.call(|c, cx| c.on_signal(&Signal::Passage(passage), cx));
        assert!(!driver.c.listens().misses_passages);
        let windows = [CWND_PEP, CWND_E2E].map(|name| crate::gauge(&driver.c, name));
        assert_eq!(windows, [Some(10), Some(100)]);
    }
}
