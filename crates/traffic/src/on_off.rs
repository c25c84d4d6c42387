//! On-off: over one long connection opened by the sender, periods of sending and of silence alternate. The first on
//! period starts when the connection is established.
//!
//! With a rate, an on period consists of writes of one size, evenly spaced over the on time: the unfinished part of a
//! step at the end of an on period carries over to the next one, so that the rate over all on time is exact. Writes do
//! not wait for the network. Without a rate, it sends as much as the transport accepts. A failed connection is not
//! reopened.

use crate::draw::after;
use crate::limits::PERIODS;
use crate::ticker::Ticker;
use crate::{Action, Gap, Notice, Random, Side};
use std::collections::VecDeque;
use units::check::Range;
use units::{Rate, Span, Time, parameters};

const CONN: u32 = 0;
const SIDE: Side = Side::From;

parameters! {
    /// Periods of sending and of silence.
    pub struct Parameters {
        /// Duration of a sending period.
        pub on: Gap, in PERIODS;
        /// Duration of a silent period.
        pub off: Gap, in PERIODS;
        /// Rate while sending. Default: as much as the transport accepts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rate: Option<Rate>, in Range::RATE;
    }
}

/// Periods of sending and of silence.
#[derive(Clone, Debug)]
pub struct OnOff {
    phase: Phase,
    /// The spaced writes and their size; `None` is as much as the transport accepts.
    writes: Option<(Ticker, u32)>,
    on: Gap,
    off: Gap,
    start: Time,
    stop: Time,
    out: VecDeque<Action>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting,
    Opening,
    On {
        until: Time,
    },
    /// The next write is due after `rest` of the next on period.
    Off {
        until: Time,
        rest: Span,
    },
    Done,
}

impl OnOff {
    pub(crate) fn new(
        rate: Option<(Rate, u32)>,
        [on, off]: [Gap; 2],
        start: Time,
        stop: Time,
        random: Random,
    ) -> OnOff {
        let writes = rate.map(|(rate, write)| (Ticker::new(rate, write, start), write));
        OnOff { phase: Phase::Waiting, writes, on, off, start, stop, out: VecDeque::new(), random }
    }

    #[inline]
    pub(crate) fn handle(&mut self, notice: Notice, now: Time) {
        match notice {
            Notice::Connected { side: SIDE, .. } if matches!(self.phase, Phase::Opening) => {
                self.phase = Phase::Off { until: now, rest: Span::ZERO };
            }
            Notice::Closed { side: Side::To, .. } => self.out.push_back(Action::Close { conn: CONN, side: Side::To }),
            Notice::Failed { .. } => self.finish(),
            Notice::Connected { .. } | Notice::Delivered { .. } | Notice::Closed { .. } => {}
        }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        while self.out.is_empty() {
            let at = self.poll_timeout();
            if now < at || at == Time::MAX {
                return None;
            }
            self.step(at);
        }
        self.out.pop_front()
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        let at = match self.phase {
            Phase::Waiting => return self.start,
            Phase::Done => return Time::MAX,
            Phase::Opening => Time::MAX,
            Phase::On { until } => self.writes.map_or(until, |(ticker, _)| ticker.next().min(until)),
            Phase::Off { until, .. } => until,
        };
        at.min(self.stop)
    }

    /// Performs what is due at `at`, which is [`OnOff::poll_timeout`]. At equal times, the stop precedes a change of
    /// period, which precedes a write.
    fn step(&mut self, at: Time) {
        match self.phase {
            Phase::Waiting => {
                self.phase = Phase::Opening;
                self.out.push_back(Action::Connect { conn: CONN, opener: SIDE });
            }
            _ if at == self.stop => {
                self.out.push_back(Action::Close { conn: CONN, side: SIDE });
                self.finish();
            }
            Phase::On { until } if at == until => {
                let rest = match &self.writes {
                    Some((ticker, _)) => ticker.next() - until,
                    None => {
                        self.out.push_back(Action::Pause { conn: CONN, side: SIDE });
                        Span::ZERO
                    }
                };
                self.phase = Phase::Off { until: after(at, self.off.draw(&mut self.random)), rest };
            }
            Phase::On { .. } => {
                let (ticker, bytes) = self.writes.as_mut().expect("only a write is due within an on period");
                ticker.advance();
                self.out.push_back(Action::Write { conn: CONN, side: SIDE, bytes: u64::from(*bytes) });
            }
            Phase::Off { rest, .. } => {
                self.phase = Phase::On { until: after(at, self.on.draw(&mut self.random)) };
                match &mut self.writes {
                    Some((ticker, _)) => ticker.move_to(after(at, rest)),
                    None => self.out.push_back(Action::WriteUnlimited { conn: CONN, side: SIDE }),
                }
            }
            Phase::Opening | Phase::Done => {}
        }
    }

    fn finish(&mut self) {
        if !matches!(self.phase, Phase::Done) {
            self.phase = Phase::Done;
            self.out.push_back(Action::Finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::story::{Story, WRITE, ms};

    fn fixed(ms: u64) -> Gap {
        Gap::Constant { time: Span::from_millis(ms) }
    }

    fn writes(story: &Story) -> Vec<Time> {
        story.moments(|action| matches!(action, Action::Write { .. }))
    }

    #[test]
    fn writes_are_evenly_spaced_within_on_periods_that_begin_once_connected() {
        // 1000 B at 0.8 Mbit/s: 10 ms. The connection is up at 20 ms.
        let rate = Some(Rate::from_bits_per_sec(800_000));
        let config = Config::OnOff(Parameters { rate, on: fixed(30), off: fixed(100) });
        let story = Story::new(&config, ms(0), Some(ms(200))).run(ms(1000));
        assert_eq!(writes(&story), [20, 30, 40, 150, 160, 170].map(ms));
        assert_eq!(story.finished(), Some(ms(200)));
        assert!(story.all_is_closed());
    }

    #[test]
    fn what_an_on_period_leaves_of_a_step_is_carried_into_the_next() {
        // A step of 10 ms in on periods of 4 ms: of each five on periods, two write.
        let rate = Some(Rate::from_bits_per_sec(800_000));
        let config = Config::OnOff(Parameters { rate, on: fixed(4), off: fixed(6) });
        let story = Story::new(&config, ms(0), Some(ms(121))).run(ms(1000));
        // On time 0, 10, 20, 30, 40 ms after 20 ms, in periods that begin each 10 ms.
        assert_eq!(writes(&story), [20, 42, 70, 92, 120].map(ms));
    }

    #[test]
    fn without_a_rate_it_writes_without_limit_and_pauses() {
        let config = Config::OnOff(Parameters { rate: None, on: fixed(30), off: fixed(100) });
        let story = Story::new(&config, ms(0), Some(ms(160))).run(ms(1000));
        let (conn, side) = (CONN, SIDE);
        assert_eq!(
            story.log,
            [
                (ms(0), Action::Connect { conn, opener: side }),
                (ms(20), Action::WriteUnlimited { conn, side }),
                (ms(50), Action::Pause { conn, side }),
                (ms(150), Action::WriteUnlimited { conn, side }),
                (ms(160), Action::Close { conn, side }),
                (ms(160), Action::Finished),
                (ms(170), Action::Close { conn, side: Side::To }),
            ]
        );
    }

    #[test]
    fn with_exponential_periods_the_mean_rate_is_the_rate_times_the_share_of_on_time() {
        let exponential = |ms| Gap::Exponential { mean: Span::from_millis(ms) };
        let rate = Some(Rate::from_mbps(2));
        let config = Config::OnOff(Parameters { rate, on: exponential(100), off: exponential(300) });
        let seconds = 4000;
        let story = Story::new(&config, ms(0), Some(ms(1000 * seconds))).run(ms(1000 * seconds));
        let mean = writes(&story).len() as f64 * f64::from(WRITE) * 8.0 / seconds as f64;
        // Over a time t, the on time of an alternating renewal process of exponential periods has the variance
        // t * 2 (on*off)^2 / (on+off)^3: here 0.0281 s * t, so the rate's standard error is 2 Mbit/s * sqrt(0.0281/t).
        let error = 2e6 * libm::sqrt(2.0 * libm::pow(0.1 * 0.3, 2.0) / libm::pow(0.4, 3.0) / seconds as f64);
        assert!((mean - 0.5e6).abs() < 5.0 * error, "{mean}");
    }

    #[test]
    fn a_connection_that_fails_ends_it() {
        let config = Config::OnOff(Parameters { rate: None, on: fixed(30), off: fixed(100) });
        let mut story = Story::new(&config, ms(0), Some(ms(500)));
        story.refused.insert(CONN);
        assert_eq!(story.run(ms(1000)).finished(), Some(ms(20)));
    }
}
