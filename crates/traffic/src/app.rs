//! All applications as one type, and their parameters.

use crate::action::{Action, BadConfig, Notice, Random, Transfer, Transport, UDP_HEADERS, require};
use crate::bulk::Bulk;
use crate::cbr::Cbr;
use crate::draw::{Length, Size};
use crate::on_off::OnOff;
use crate::pages::Pages;
use crate::ppbp::Ppbp;
use crate::short_flows::{Gap, ShortFlows};
use crate::steps::Steps;
use crate::{pages, ppbp};
use units::{Bytes, Rate, Span, Time};

/// An application and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// As much data as the transport accepts from start to stop, over one connection. See [`Bulk`].
    Bulk,
    /// One transfer of a given size over its own connection. See [`ShortFlows`].
    Transfer {
        /// Its size.
        bytes: Bytes,
    },
    /// A train of transfers, each over its own connection. See [`ShortFlows`].
    ShortFlows {
        /// Size of each transfer.
        size: Size,
        /// When the next transfer starts.
        gap: Gap,
        /// Number of transfers; `None` is unlimited.
        count: Option<u32>,
    },
    /// Periods of sending and of silence over one connection. See [`OnOff`].
    OnOff {
        /// Rate of the data offered in an on period; `None` is as much as the transport accepts.
        rate: Option<Rate>,
        /// Bytes per write; unused without a rate.
        write: u32,
        /// Duration of an on period.
        on: Length,
        /// Duration of an off period.
        off: Length,
    },
    /// A rate that changes at given times, over one connection. See [`Steps`].
    Steps {
        /// Times since the start, of which the first is 0, and the rate from each on.
        steps: Vec<(Span, Rate)>,
        /// Bytes per write.
        write: u32,
    },
    /// Pages of objects requested over parallel connections. See [`Pages`].
    Pages {
        /// Number of parallel connections of a page.
        connections: u32,
        /// Bytes per request.
        request: Bytes,
        /// Bytes of each object's response, in the order of the requests; drawn for each page.
        objects: Vec<Size>,
        /// Think time: from one page's completion to the next one's start.
        think: Length,
        /// Number of pages; `None` is unlimited.
        count: Option<u32>,
    },
    /// Datagrams at a constant rate. See [`Cbr`].
    Cbr {
        /// Rate of the IP packets.
        rate: Rate,
        /// Bytes of an IP packet: [`UDP_HEADERS`] and the payload.
        packet: u32,
    },
    /// Datagrams of a Poisson Pareto burst process. See [`Ppbp`].
    Ppbp {
        /// Mean number of new bursts per second (lambda).
        bursts_per_s: f64,
        /// Mean duration of a burst (T).
        burst: Span,
        /// Hurst parameter (H) of the resulting traffic, between 0.5 and 1.
        hurst: f64,
        /// Rate of the IP packets of one burst (r). The mean total rate is `bursts_per_s * burst * rate`.
        rate: Rate,
        /// Bytes of an IP packet: [`UDP_HEADERS`] and the payload.
        packet: u32,
    },
}

impl Config {
    /// Checks that an application can run with these parameters.
    pub fn check(&self) -> Result<(), BadConfig> {
        /// Largest IPv4 packet.
        const MAX_PACKET: u32 = 65_535;
        let positive = |ok, key| require(ok, key, "be more than zero");
        let datagrams = |rate: Rate, packet| {
            positive(rate.bits_per_sec() > 0, "rate")?;
            require((UDP_HEADERS..=MAX_PACKET).contains(&packet), "packet", "be between 28 and 65535 B")
        };
        match self {
            Config::Bulk => Ok(()),
            Config::Transfer { bytes } => positive(bytes.get() > 0, "bytes"),
            Config::ShortFlows { size, gap, count } => {
                size.check("size")?;
                match gap {
                    Gap::Every(length) => length.check_positive("gap")?,
                    Gap::Think(length) => length.check("gap")?,
                }
                positive(*count != Some(0), "count")
            }
            Config::OnOff { rate, write, on, off } => {
                positive(rate.is_none_or(|rate| rate.bits_per_sec() > 0), "rate")?;
                positive(rate.is_none() || *write > 0, "write")?;
                on.check_positive("on")?;
                off.check("off")
            }
            Config::Steps { steps, write } => {
                let is_first = steps.first().is_some_and(|(at, _)| *at == Span::ZERO);
                require(is_first && steps.is_sorted_by(|a, b| a.0 < b.0), "steps", "begin at zero and be in order")?;
                positive(*write > 0, "write")
            }
            Config::Pages { connections, request, objects, think, count } => {
                positive(*connections > 0, "connections")?;
                positive(request.get() > 0, "request")?;
                require(!objects.is_empty(), "objects", "name at least one object")?;
                objects.iter().try_for_each(|object| object.check("objects"))?;
                think.check("think")?;
                positive(*count != Some(0), "count")
            }
            Config::Cbr { rate, packet } => datagrams(*rate, *packet),
            Config::Ppbp { bursts_per_s, burst, hurst, rate, packet } => {
                let starts = *bursts_per_s > 0.0 && *bursts_per_s <= ppbp::MAX_BURSTS_PER_S;
                require(starts, "bursts_per_s", "be more than zero and at most a million")?;
                positive(*burst > Span::ZERO, "burst")?;
                let active = bursts_per_s * burst.as_secs_f64();
                require(active <= ppbp::MAX_ACTIVE, "bursts_per_s", "give a mean of at most 100000 concurrent bursts")?;
                require(*hurst > 0.5 && *hurst < 1.0, "hurst", "be between 0.5 and 1")?;
                datagrams(*rate, *packet)
            }
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
    /// Creates an application that begins at `start` and begins nothing new from `stop` on. All its random numbers come
    /// from `random`.
    pub fn new(config: &Config, start: Time, stop: Option<Time>, random: Random) -> Result<App, BadConfig> {
        config.check()?;
        require(stop.is_none_or(|stop| stop > start), "stop", "be later than the start")?;
        let stop = stop.unwrap_or(Time::MAX);
        Ok(match config.clone() {
            Config::Bulk => App::Bulk(Bulk::new(start, stop)),
            Config::Transfer { bytes } => {
                let gap = Gap::Think(Length::Fixed(Span::ZERO));
                App::ShortFlows(ShortFlows::new(Size::Fixed(bytes), gap, Some(1), start, stop, random))
            }
            Config::ShortFlows { size, gap, count } => {
                App::ShortFlows(ShortFlows::new(size, gap, count, start, stop, random))
            }
            Config::OnOff { rate, write, on, off } => {
                let rate = rate.map(|rate| (rate, write));
                App::OnOff(OnOff::new(rate, [on, off], start, stop, random))
            }
            Config::Steps { steps, write } => App::Steps(Steps::new(steps, write, start, stop)),
            Config::Pages { connections, request, objects, think, count } => {
                let page = pages::Page { connections, request, objects };
                App::Pages(Pages::new(page, think, count, start, stop, random))
            }
            Config::Cbr { rate, packet } => App::Cbr(Cbr::new(rate, packet, start, stop)),
            Config::Ppbp { bursts_per_s, burst, hurst, rate, packet } => {
                let bursts = ppbp::Bursts::new(bursts_per_s, burst, hurst);
                App::Ppbp(Ppbp::new(bursts, rate, packet, start, stop, random))
            }
        })
    }

    /// Returns the transport of its data.
    pub const fn transport(&self) -> Transport {
        match self {
            App::Cbr(_) | App::Ppbp(_) => Transport::Udp,
            App::Bulk(_) | App::ShortFlows(_) | App::OnOff(_) | App::Steps(_) | App::Pages(_) => Transport::Tcp,
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

    fn ppbp(bursts_per_s: f64, hurst: f64) -> Config {
        Config::Ppbp { bursts_per_s, burst: Span::from_millis(200), hurst, rate: Rate::from_mbps(1), packet: 1500 }
    }

    #[test]
    fn a_parameter_that_would_stall_or_flood_is_refused_by_name() {
        let second = Length::Fixed(Span::from_secs(1));
        let zero = Length::Fixed(Span::ZERO);
        let size = Size::Fixed(Bytes::new(1));
        let cases = [
            (Config::Transfer { bytes: Bytes::ZERO }, "bytes must be more than zero"),
            (Config::ShortFlows { size, gap: Gap::Every(zero), count: None }, "gap must be more than zero"),
            (Config::ShortFlows { size, gap: Gap::Think(zero), count: Some(0) }, "count must be more than zero"),
            (
                Config::ShortFlows {
                    size: Size::BoundedPareto { min: Bytes::new(2), max: Bytes::new(1), shape: 1.2 },
                    gap: Gap::Think(zero),
                    count: None,
                },
                "size must have its min at or below its max",
            ),
            (
                Config::OnOff { rate: Some(Rate::from_mbps(1)), write: 0, on: second, off: second },
                "write must be more than zero",
            ),
            (
                Config::OnOff {
                    rate: None,
                    write: 0,
                    on: second,
                    off: Length::Pareto { mean: Span::ZERO, shape: 1.0 },
                },
                "off must have a shape of more than 1, or it has no mean",
            ),
            (Config::OnOff { rate: None, write: 0, on: zero, off: second }, "on must be more than zero"),
            (
                Config::Pages {
                    connections: 1,
                    request: Bytes::new(1),
                    objects: Vec::new(),
                    think: second,
                    count: None,
                },
                "objects must name at least one object",
            ),
            (
                Config::Steps { steps: vec![(Span::from_secs(1), Rate::from_mbps(1))], write: 1 },
                "steps must begin at zero and be in order",
            ),
            (Config::Cbr { rate: Rate::from_mbps(1), packet: 27 }, "packet must be between 28 and 65535 B"),
            (Config::Cbr { rate: Rate::from_bits_per_sec(0), packet: 1500 }, "rate must be more than zero"),
            (ppbp(20.0, 0.5), "hurst must be between 0.5 and 1"),
            (ppbp(f64::NAN, 0.7), "bursts_per_s must be more than zero and at most a million"),
            (ppbp(600_000.0, 0.7), "bursts_per_s must give a mean of at most 100000 concurrent bursts"),
        ];
        for (config, error) in cases {
            let new = App::new(&config, Time::ZERO, None, Random::seed_from_u64(1));
            assert_eq!(new.expect_err("refused").to_string(), error);
        }
    }

    /// One of each kind, with a stop or a count so that it ends.
    fn one_of_each() -> Vec<Config> {
        let exponential = |ms| Length::Exponential { mean: Span::from_millis(ms) };
        let size = Size::Exponential { mean: Bytes::new(3000) };
        vec![
            Config::Bulk,
            Config::Transfer { bytes: Bytes::new(3000) },
            Config::ShortFlows { size, gap: Gap::Every(exponential(30)), count: None },
            Config::ShortFlows { size, gap: Gap::Think(Length::Fixed(Span::ZERO)), count: Some(50) },
            Config::OnOff { rate: Some(Rate::from_mbps(1)), write: 1448, on: exponential(10), off: exponential(10) },
            Config::OnOff { rate: None, write: 0, on: exponential(10), off: Length::Fixed(Span::ZERO) },
            Config::Steps {
                steps: vec![(Span::ZERO, Rate::from_mbps(2)), (Span::from_secs(1), Rate::from_bits_per_sec(0))],
                write: 1448,
            },
            Config::Pages {
                connections: 3,
                request: Bytes::new(400),
                objects: vec![size; 5],
                think: exponential(20),
                count: None,
            },
            Config::Cbr { rate: Rate::from_mbps(1), packet: 1500 },
            ppbp(20.0, 0.7),
        ]
    }

    #[test]
    fn whatever_is_noticed_in_whatever_order_an_application_comes_to_rest_and_ends_at_most_once() {
        use rand_core::Rng;
        for (config, seed) in one_of_each().iter().flat_map(|config| (0..50).map(move |seed| (config, seed))) {
            let mut random = Random::seed_from_u64(seed);
            let mut below = |n: u64| random.next_u64() % n;
            let stop = Time::from_nanos(2_000_000_000);
            let mut app = App::new(config, Time::ZERO, Some(stop), Random::seed_from_u64(seed)).expect("good");
            let (mut now, mut opened, mut finished) = (Time::ZERO, 0, false);
            for _ in 0..4000 {
                let mut actions = 0;
                while let Some(action) = app.poll_action(now) {
                    actions += 1;
                    assert!(actions < 1000, "{config:?} does not come to rest at {now}");
                    assert!(
                        !finished || matches!(action, Action::Close { .. }),
                        "{config:?}: {action:?} after its end"
                    );
                    if let Action::Connect { conn, .. } = action {
                        assert_eq!(conn, opened, "{config:?}");
                        opened += 1;
                    }
                    finished |= action == Action::Finished;
                }
                assert!(app.poll_timeout().is_none_or(|at| at > now), "{config:?} is overdue at {now}");
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
            assert!(finished || matches!(app, App::ShortFlows(_) | App::Pages(_)), "{config:?} goes on after its stop");
        }
    }

    #[test]
    fn what_does_not_follow_deliveries_is_unmoved_by_them() {
        for config in one_of_each() {
            let mut app = App::new(&config, Time::ZERO, None, Random::seed_from_u64(1)).expect("good");
            let now = Time::ZERO;
            while app.poll_action(now).is_some() {}
            for side in [Side::From, Side::To] {
                app.handle(Notice::Connected { conn: 0, side }, now);
            }
            while app.poll_action(now).is_some() {}
            for side in [Side::From, Side::To] {
                app.handle(Notice::Delivered { conn: 0, side, bytes: 1 << 40 }, now);
            }
            assert_eq!(app.poll_action(now).is_some(), app.follows_delivery(), "{config:?}");
        }
    }

    #[test]
    fn a_stop_at_the_start_is_refused() {
        let now = Time::from_nanos(5);
        let new = App::new(&Config::Bulk, now, Some(now), Random::seed_from_u64(1));
        assert_eq!(new.expect_err("refused").to_string(), "stop must be later than the start");
    }
}
