//! The test network of the applications: a wire with unlimited bandwidth and a delay of half a round trip. The
//! handshake takes one round trip for the opener and half of one for the listener.

use crate::{Action, App, Config, Notice, Random, Side, Transfer};
use rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet};
use units::{Span, Time};

/// Bytes of a write at a rate.
pub(crate) const WRITE: u32 = 1000;
/// Half a round trip.
pub(crate) const HALF: Span = Span::from_millis(10);

pub(crate) fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

/// An application, the notices under way to it, and its actions.
pub(crate) struct Story {
    pub(crate) app: App,
    pub(crate) now: Time,
    notices: BTreeMap<(Time, u64), Notice>,
    sequence: u64,
    /// The connections to refuse.
    pub(crate) refused: BTreeSet<u32>,
    pub(crate) log: Vec<(Time, Action)>,
}

impl Story {
    pub(crate) fn new(config: &Config, start: Time, stop: Option<Time>) -> Story {
        Story::of(App::new(config, WRITE, start, stop, Random::seed_from_u64(11)))
    }

    pub(crate) fn of(app: App) -> Story {
        Story { app, now: Time::ZERO, notices: BTreeMap::new(), sequence: 0, refused: BTreeSet::new(), log: Vec::new() }
    }

    /// Runs until `end`, or until nothing is pending.
    pub(crate) fn run(mut self, end: Time) -> Story {
        loop {
            let notice = self.notices.keys().next().map_or(Time::MAX, |(at, _)| *at);
            let at = notice.min(self.app.poll_timeout().unwrap_or(Time::MAX));
            if at > end {
                return self;
            }
            assert!(at >= self.now, "a deadline in the past: {at:?} at {:?}", self.now);
            self.now = at;
            if notice == at {
                let (_, notice) = self.notices.pop_first().expect("a notice is due");
                self.app.handle(notice, at);
            }
            while let Some(action) = self.app.poll_action(at) {
                self.log.push((at, action));
                self.carry_out(action);
            }
            assert!(self.app.poll_timeout().is_none_or(|next| next > at), "a deadline that was not acted upon");
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Connect { conn, .. } if self.refused.contains(&conn) => self.later(2, Notice::Failed { conn }),
            Action::Connect { conn, opener } => {
                self.later(1, Notice::Connected { conn, side: opener.peer() });
                self.later(2, Notice::Connected { conn, side: opener });
            }
            Action::Write { conn, side, bytes } => {
                // In two pieces, because a stream may be split anywhere.
                let first = bytes / 3;
                for bytes in [first, bytes - first] {
                    self.later(1, Notice::Delivered { conn, side: side.peer(), bytes });
                }
            }
            Action::Close { conn, side } => self.later(1, Notice::Closed { conn, side: side.peer() }),
            _ => {}
        }
    }

    fn later(&mut self, halves: u64, notice: Notice) {
        self.notices.insert((self.now + HALF * halves, self.sequence), notice);
        self.sequence += 1;
    }

    /// Returns the completed transfers.
    pub(crate) fn completed(&self) -> Vec<Transfer> {
        let completed = |action: &Action| match action {
            Action::Completed(transfer) => Some(*transfer),
            _ => None,
        };
        self.log.iter().filter_map(|(_, action)| completed(action)).collect()
    }

    /// Returns the times of the actions selected by `which`.
    pub(crate) fn moments(&self, which: impl Fn(&Action) -> bool) -> Vec<Time> {
        self.log.iter().filter(|(_, action)| which(action)).map(|(at, _)| *at).collect()
    }

    /// Returns the time of `Finished`, which is sent once.
    pub(crate) fn finished(&self) -> Option<Time> {
        let moments = self.moments(|action| *action == Action::Finished);
        assert!(moments.len() <= 1, "finished more than once");
        moments.first().copied()
    }

    /// Returns whether both sides have closed each connection exactly once.
    pub(crate) fn all_is_closed(&self) -> bool {
        let opened = self.moments(|action| matches!(action, Action::Connect { .. })).len() - self.refused.len();
        let closed =
            |of: Side| self.moments(|action| matches!(action, Action::Close { side, .. } if *side == of)).len();
        closed(Side::From) == opened && closed(Side::To) == opened
    }
}
