//! Steps: an application that writes at a rate that changes at given times after its start, over one connection opened by the sender.
//!
//! Data is written in pieces of one size, as often as the rate says; the unfinished piece of a step is carried over to the next one,
//! and written when the rate becomes 0 or the application stops, so that exactly the given amounts are written. Writes do not wait for
//! the network: what was due before the connection was established is written at once then. A failed connection is not reopened.

use crate::{Action, Notice, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use units::check::Check;
use units::{Rate, Span, Time};

const CONN: u32 = 0;
const SIDE: Side = Side::From;
/// A byte, in bits times nanoseconds per second.
const BYTE: u128 = 8 * 1_000_000_000;

/// A rate that changes at given times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Times since the start of the flow, and the rate from each time on, such as `[["0 s", "1 Mbit/s"], ["40 s",
    /// "0 bit/s"]]`; the first time is 0.
    pub steps: Vec<(Span, Rate)>,
}

impl Parameters {
    /// Checks that the times are in order, and that the rates are possible.
    pub fn check(&self, c: &mut Check) {
        c.rates("steps", &self.steps);
    }
}

/// An application whose rate changes at given times.
#[derive(Clone, Debug)]
pub struct Steps {
    phase: Phase,
    /// Times since the start, and the rate from each on.
    steps: Vec<(Span, Rate)>,
    /// The step after the current one.
    next: usize,
    /// Bytes of a write.
    write: u32,
    /// Until when what is to be written has been counted, and what of it is not written, in parts of [`BYTE`].
    until: Time,
    owed: u128,
    start: Time,
    stop: Time,
    out: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Opening,
    Open,
    Done,
}

impl Steps {
    /// The first of the steps is at 0, and each is later than the one before.
    pub(crate) fn new(steps: Vec<(Span, Rate)>, write: u32, start: Time, stop: Time) -> Steps {
        let (phase, out) = (Phase::Waiting, VecDeque::new());
        Steps { phase, steps, next: 1, write, until: start, owed: 0, start, stop, out }
    }

    #[inline]
    pub(crate) fn handle(&mut self, notice: Notice) {
        match notice {
            Notice::Connected { side: SIDE, .. } if self.phase == Phase::Opening => self.phase = Phase::Open,
            Notice::Closed { side: Side::To, .. } => self.out.push_back(Action::Close { conn: CONN, side: Side::To }),
            Notice::Failed { .. } => self.finish(),
            Notice::Connected { .. } | Notice::Delivered { .. } | Notice::Closed { .. } => {}
        }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        match self.phase {
            Phase::Waiting if now >= self.start => {
                self.phase = Phase::Opening;
                self.out.push_back(Action::Connect { conn: CONN, opener: SIDE });
            }
            Phase::Opening | Phase::Open if now >= self.stop => {
                let bytes = self.due(self.stop) + self.rest();
                self.write(bytes);
                self.out.push_back(Action::Close { conn: CONN, side: SIDE });
                self.finish();
            }
            Phase::Open => {
                let bytes = self.due(now);
                self.write(bytes);
            }
            _ => {}
        }
        self.out.pop_front()
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        match self.phase {
            Phase::Waiting => self.start,
            Phase::Opening => self.stop,
            Phase::Open => self.next_write().min(self.step_end()).min(self.stop),
            Phase::Done => Time::MAX,
        }
    }

    fn rate(&self) -> u128 {
        self.steps[self.next - 1].1.bits_per_sec().into()
    }

    /// When the current step ends.
    fn step_end(&self) -> Time {
        let after = |(span, _): &(Span, Rate)| self.start.as_nanos().saturating_add(span.as_nanos());
        self.steps.get(self.next).map_or(Time::MAX, |step| Time::from_nanos(after(step)))
    }

    /// When a whole piece is due, if the current step goes on until then.
    fn next_write(&self) -> Time {
        let rate = self.rate();
        if rate == 0 {
            return Time::MAX;
        }
        let nanos = (u128::from(self.write) * BYTE - self.owed).div_ceil(rate);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Time::from_nanos(self.until.as_nanos().saturating_add(nanos))
    }

    /// The bytes that are to be written now, in whole pieces but at the end of a step before silence.
    fn due(&mut self, now: Time) -> u64 {
        let mut bytes = 0;
        loop {
            let to = self.step_end().min(now);
            self.owed += self.rate() * u128::from(to.saturating_since(self.until).as_nanos());
            self.until = self.until.max(to);
            let piece = u128::from(self.write) * BYTE;
            bytes += (self.owed / piece) as u64 * u64::from(self.write);
            self.owed %= piece;
            if self.step_end() > now {
                return bytes;
            }
            self.next += 1;
            if self.rate() == 0 {
                bytes += self.rest();
            }
        }
    }

    /// The bytes of the unfinished piece.
    fn rest(&mut self) -> u64 {
        let bytes = (self.owed / BYTE) as u64;
        self.owed %= BYTE;
        bytes
    }

    fn write(&mut self, bytes: u64) {
        // Nobody is there to write to before the connection is established.
        if bytes > 0 && self.phase == Phase::Open {
            self.out.push_back(Action::Write { conn: CONN, side: SIDE, bytes });
        }
    }

    fn finish(&mut self) {
        if self.phase != Phase::Done {
            self.phase = Phase::Done;
            self.out.push_back(Action::Finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::story::{Story, ms};

    fn steps(steps: &[(u64, u64)]) -> Config {
        let of = |&(at, kbps): &(u64, u64)| (Span::from_millis(at), Rate::from_bits_per_sec(kbps * 1_000));
        Config::Steps(Parameters { steps: steps.iter().map(of).collect() })
    }

    fn writes(story: &Story) -> Vec<(Time, u64)> {
        let write = |(at, action): &(Time, Action)| match action {
            Action::Write { bytes, .. } => Some((*at, *bytes)),
            _ => None,
        };
        story.log.iter().filter_map(write).collect()
    }

    #[test]
    fn each_step_is_written_at_its_rate_and_nothing_is_left_before_silence() {
        // 800 kbit/s: 1,000 B in 10 ms. The connection is up at 20 ms.
        let story = Story::new(&steps(&[(0, 800), (45, 0), (100, 400)]), ms(0), Some(ms(130))).run(ms(1_000));
        // 2,000 B were due before, and 500 B are left at 45 ms; at 400 kbit/s, 1,000 B take 20 ms, and half a piece is left at the stop.
        assert_eq!(
            writes(&story),
            [(20, 2_000), (30, 1_000), (40, 1_000), (45, 500), (120, 1_000), (130, 500)].map(|(at, n)| (ms(at), n))
        );
        assert_eq!(story.finished(), Some(ms(130)));
        assert!(story.all_is_closed());
    }

    #[test]
    fn what_a_step_leaves_of_a_piece_is_carried_into_the_next() {
        let story = Story::new(&steps(&[(0, 800), (45, 1_600)]), ms(0), Some(ms(61))).run(ms(1_000));
        let expected = [(20, 2_000), (30, 1_000), (40, 1_000)].map(|(at, n)| (ms(at), n));
        assert_eq!(writes(&story)[..3], expected);
        // Half a piece in 5 ms at 0.8 Mbit/s, and the other half in 2.5 ms at twice that.
        assert_eq!(writes(&story)[3], (Time::from_nanos(47_500_000), 1_000));
        let all: u64 = writes(&story).iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, 4_500 + 3_200);
    }

    #[test]
    fn a_connection_that_fails_ends_it() {
        let mut story = Story::new(&steps(&[(0, 800)]), ms(0), Some(ms(500)));
        story.refused.insert(CONN);
        assert_eq!(story.run(ms(1_000)).finished(), Some(ms(20)));
    }
}
