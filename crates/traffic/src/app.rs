//! All applications as one type, and their parameters.

use crate::action::{Action, Notice, Random, Transfer, Transport};
use crate::bulk::Bulk;
use crate::cbr::Cbr;
use crate::draw::{Gap, Size};
use crate::on_off::OnOff;
use crate::pages::Pages;
use crate::ppbp::Ppbp;
use crate::short_flows::{Loop, ShortFlows};
use crate::steps::Steps;
use crate::{cbr, on_off, pages, ppbp, short_flows, steps};
use units::check::Check;
use units::{Span, Time, kinds};

kinds! { "Config" as "Traffic",
    /// The traffic of an application.
    #[derive(Default)]
    pub enum Config {
        /// As much data as the transport accepts, without end.
        #[default]
        Bulk,
        /// One transfer; the connection then closes.
        Transfer(short_flows::Single),
        /// Short connections, each started without waiting for the previous one to end.
        ShortFlows(short_flows::Parameters),
        /// Alternates between sending and silence on one connection.
        OnOff(on_off::Parameters),
        /// Writes at a rate that changes at given times, on one connection: the rate of an application, not of the network.
        Steps(steps::Parameters),
        /// Loads web pages, one after another; the objects of a page are fetched over parallel connections.
        Pages(pages::Parameters),
        /// Packets of constant size at a constant rate, over UDP.
        Cbr(cbr::Parameters),
        /// Poisson Pareto burst process over UDP: bursts start at random times, have Pareto distributed lengths, and
        /// send at a constant rate.
        Ppbp(ppbp::Parameters),
    }
}

impl Config {
    /// Checks that an application can run with these parameters.
    pub fn check(&self, c: &mut Check) {
        match self {
            Config::Bulk => {}
            Config::Transfer(of) => of.check(c),
            Config::ShortFlows(of) => of.check(c),
            Config::OnOff(of) => of.check(c),
            Config::Steps(of) => of.check(c),
            Config::Pages(of) => of.check(c),
            Config::Cbr(of) => of.check(c),
            Config::Ppbp(of) => of.check(c),
        }
    }

    /// Returns the transport of its data.
    pub const fn transport(&self) -> Transport {
        match self {
            Config::Cbr(_) | Config::Ppbp(_) => Transport::Udp,
            Config::Bulk
            | Config::Transfer(_)
            | Config::ShortFlows(_)
            | Config::OnOff(_)
            | Config::Steps(_)
            | Config::Pages(_) => Transport::Tcp,
        }
    }

    /// Returns whether it draws from its random stream.
    pub fn varies(&self) -> bool {
        match self {
            Config::ShortFlows(of) => of.size.varies() || of.interval.varies(),
            Config::OnOff(of) => of.on.varies() || of.off.varies(),
            Config::Pages(of) => of.object_size.varies() || of.think.varies(),
            Config::Ppbp(_) => true,
            Config::Bulk | Config::Transfer(_) | Config::Steps(_) | Config::Cbr(_) => false,
        }
    }
}

/// One application between two hosts.
#[derive(Clone, Debug)]
pub enum App {
    /// See [`Bulk`].
    Bulk(Bulk),
    /// See [`ShortFlows`]; also a single transfer.
    ShortFlows(ShortFlows),
    /// See [`OnOff`].
    OnOff(OnOff),
    /// See [`Steps`].
    Steps(Steps),
    /// See [`Pages`].
    Pages(Pages),
    /// See [`Cbr`].
    Cbr(Cbr),
    /// See [`Ppbp`].
    Ppbp(Ppbp),
}

macro_rules! each {
    ($self:ident, $app:ident => $call:expr) => {
        match $self {
            App::Bulk($app) => $call,
            App::ShortFlows($app) => $call,
            App::OnOff($app) => $call,
            App::Steps($app) => $call,
            App::Pages($app) => $call,
            App::Cbr($app) => $call,
            App::Ppbp($app) => $call,
        }
    };
}

impl App {
    /// Creates an application of [checked](Config::check) parameters that begins at `start` and begins nothing new from `stop` on, which
    /// is later. What writes at a rate has `write` bytes in a write. All its random numbers come from `random`.
    pub fn new(config: &Config, write: u32, start: Time, stop: Option<Time>, random: Random) -> App {
        let stop = stop.unwrap_or(Time::MAX);
        match config.clone() {
            Config::Bulk => App::Bulk(Bulk::new(start, stop)),
            Config::Transfer(short_flows::Single { size }) => {
                let (size, again) = (Size::Constant { size }, Loop::Closed(Gap::Constant { time: Span::ZERO }));
                App::ShortFlows(ShortFlows::new(size, again, Some(1), start, stop, random))
            }
            Config::ShortFlows(short_flows::Parameters { size, interval, count }) => {
                App::ShortFlows(ShortFlows::new(size, Loop::Open(interval), count, start, stop, random))
            }
            Config::OnOff(on_off::Parameters { on, off, rate }) => {
                let rate = rate.map(|rate| (rate, write));
                App::OnOff(OnOff::new(rate, [on, off], start, stop, random))
            }
            Config::Steps(steps::Parameters { steps }) => App::Steps(Steps::new(steps, write, start, stop)),
            Config::Pages(pages::Parameters { objects, object_size, connections, request, think, count }) => {
                let page = pages::Page { connections, request, objects: vec![object_size; objects as usize] };
                App::Pages(Pages::new(page, think, count, start, stop, random))
            }
            Config::Cbr(cbr::Parameters { rate, packet }) => App::Cbr(Cbr::new(rate, packet.get() as u32, start, stop)),
            Config::Ppbp(of) => {
                let bursts = ppbp::Bursts::new(of.arrival_rate, of.mean_burst, of.hurst);
                App::Ppbp(Ppbp::new(bursts, of.burst_rate, of.packet.get() as u32, start, stop, random))
            }
        }
    }

    /// Returns whether it uses [`Notice::Delivered`]. If not, the driver may omit these notices.
    #[inline]
    pub const fn follows_delivery(&self) -> bool {
        matches!(self, App::ShortFlows(_) | App::Pages(_))
    }

    /// Handles an event of a connection.
    #[inline]
    pub fn handle(&mut self, notice: Notice, now: Time) {
        match self {
            App::Bulk(app) => app.handle(notice),
            App::ShortFlows(app) => app.handle(notice, now),
            App::OnOff(app) => app.handle(notice, now),
            App::Steps(app) => app.handle(notice),
            App::Pages(app) => app.handle(notice, now),
            App::Cbr(_) | App::Ppbp(_) => {}
        }
    }

    /// Returns the next action at `now`; call until `None`.
    #[inline]
    pub fn poll_action(&mut self, now: Time) -> Option<Action> {
        each!(self, app => app.poll_action(now))
    }

    /// Returns when it has to be polled next unless a notice comes before; `None` if only a notice can cause an action.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let at = each!(self, app => app.poll_timeout());
        (at != Time::MAX).then_some(at)
    }

    /// Returns the transfers and pages that have begun and not ended, in the order of their starts, as if they were given up
    /// at `now`.
    pub fn in_progress(&self, now: Time) -> Vec<Transfer> {
        match self {
            App::ShortFlows(app) => app.in_progress(now).collect(),
            App::Pages(app) => app.in_progress(now).into_iter().collect(),
            App::Bulk(_) | App::OnOff(_) | App::Steps(_) | App::Cbr(_) | App::Ppbp(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Side;
    use rand_core::SeedableRng;
    use units::{Bytes, Rate};

    /// One of each kind, with a stop or a count so that it ends.
    fn one_of_each(stop: Option<Time>, seed: u64) -> Vec<App> {
        let exponential = |ms| Gap::Exponential { mean: Span::from_millis(ms) };
        let none = Gap::Constant { time: Span::ZERO };
        let size = Size::Exponential { mean: Bytes::new(3000) };
        let (rate, packet) = (Rate::from_mbps(1), Bytes::new(1500));
        let (mean_burst, arrival_rate, hurst) = (Span::from_millis(200), 20.0, 0.7);
        let steps = vec![(Span::ZERO, Rate::from_mbps(2)), (Span::from_secs(1), Rate::from_bits_per_sec(0))];
        let (request, think) = (Bytes::new(400), exponential(20));
        let of = [
            Config::Bulk,
            Config::Transfer(short_flows::Single { size: Bytes::new(3000) }),
            Config::ShortFlows(short_flows::Parameters { size, interval: exponential(30), count: None }),
            Config::OnOff(on_off::Parameters { rate: Some(rate), on: exponential(10), off: exponential(10) }),
            Config::OnOff(on_off::Parameters { rate: None, on: exponential(10), off: none }),
            Config::Steps(steps::Parameters { steps }),
            Config::Pages(pages::Parameters {
                connections: 3,
                request,
                objects: 5,
                object_size: size,
                think,
                count: None,
            }),
            Config::Cbr(cbr::Parameters { rate, packet }),
            Config::Ppbp(ppbp::Parameters { burst_rate: rate, mean_burst, arrival_rate, hurst, packet }),
        ];
        let new = |config: &Config| App::new(config, 1448, Time::ZERO, stop, Random::seed_from_u64(seed));
        let closed = ShortFlows::new(
            size,
            Loop::Closed(none),
            Some(50),
            Time::ZERO,
            stop.unwrap_or(Time::MAX),
            Random::seed_from_u64(seed),
        );
        of.iter().map(new).chain([App::ShortFlows(closed)]).collect()
    }

    #[test]
    fn whatever_is_noticed_in_whatever_order_an_application_comes_to_rest_and_ends_at_most_once() {
        use rand_core::Rng;
        let stop = Some(Time::from_nanos(2_000_000_000));
        for (mut app, seed) in (0..50).flat_map(|seed| one_of_each(stop, seed).into_iter().map(move |app| (app, seed)))
        {
            let config = format!("{app:?}");
            let mut random = Random::seed_from_u64(seed);
            let mut below = |n: u64| random.next_u64() % n;
            let (mut now, mut opened, mut finished) = (Time::ZERO, 0, false);
            for _ in 0..4000 {
                let mut actions = 0;
                while let Some(action) = app.poll_action(now) {
                    actions += 1;
                    assert!(actions < 1000, "{config} does not come to rest at {now}");
                    assert!(!finished || matches!(action, Action::Close { .. }), "{config}: {action:?} after its end");
                    if let Action::Connect { conn, .. } = action {
                        assert_eq!(conn, opened, "{config}");
                        opened += 1;
                    }
                    finished |= action == Action::Finished;
                }
                assert!(app.poll_timeout().is_none_or(|at| at > now), "{config} is overdue at {now}");
                let step = now + Span::from_nanos(below(2_000_000));
                now = app.poll_timeout().map_or(step, |at| at.min(step));
                let side = if below(2) == 0 { Side::From } else { Side::To };
                // Mostly a connection that may be open.
                let conn = opened.saturating_sub(below(4) as u32);
                match below(16) {
                    0 => app.handle(Notice::Failed { conn }, now),
                    1..=3 => app.handle(Notice::Closed { conn, side }, now),
                    4..=7 => app.handle(Notice::Connected { conn, side }, now),
                    8..=13 => app.handle(Notice::Delivered { conn, side, bytes: below(2000) }, now),
                    _ => {}
                }
            }
            // Transfers and pages may still wait for a connection that nothing was heard of.
            assert!(finished || matches!(app, App::ShortFlows(_) | App::Pages(_)), "{config} goes on after its stop");
        }
    }

    #[test]
    fn what_does_not_follow_deliveries_is_unmoved_by_them() {
        for mut app in one_of_each(None, 1) {
            let config = format!("{app:?}");
            let now = Time::ZERO;
            while app.poll_action(now).is_some() {}
            for side in [Side::From, Side::To] {
                app.handle(Notice::Connected { conn: 0, side }, now);
            }
            while app.poll_action(now).is_some() {}
            for side in [Side::From, Side::To] {
                app.handle(Notice::Delivered { conn: 0, side, bytes: 1 << 40 }, now);
            }
            assert_eq!(app.poll_action(now).is_some(), app.follows_delivery(), "{config}");
        }
    }
}
