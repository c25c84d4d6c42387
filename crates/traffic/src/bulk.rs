//! Bulk: as much data as the transport accepts, from start to stop, over one connection opened by the sender.
//!
//! A failed connection is not reopened.

use crate::{Action, Notice, Side};
use std::collections::VecDeque;
use units::Time;

const CONN: u32 = 0;

/// As much data as the transport accepts.
#[derive(Clone, Debug)]
pub struct Bulk {
    phase: Phase,
    start: Time,
    stop: Time,
    out: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Open,
    Done,
}

impl Bulk {
    pub(crate) fn new(start: Time, stop: Time) -> Bulk {
        Bulk { phase: Phase::Waiting, start, stop, out: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn handle(&mut self, notice: Notice) {
        match notice {
            Notice::Connected { side: Side::From, .. } if self.phase == Phase::Open => {
                self.out.push_back(Action::WriteUnlimited { conn: CONN, side: Side::From });
            }
            Notice::Closed { side: Side::To, .. } => self.out.push_back(Action::Close { conn: CONN, side: Side::To }),
            Notice::Failed { .. } => self.finish(),
            Notice::Connected { .. } | Notice::Delivered { .. } | Notice::Closed { .. } => {}
        }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        if self.phase == Phase::Waiting && now >= self.start {
            self.phase = Phase::Open;
            self.out.push_back(Action::Connect { conn: CONN, opener: Side::From });
        }
        if self.phase == Phase::Open && now >= self.stop {
            self.out.push_back(Action::Close { conn: CONN, side: Side::From });
            self.finish();
        }
        self.out.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        match self.phase {
            Phase::Waiting => self.start,
            Phase::Open => self.stop,
            Phase::Done => Time::MAX,
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

    #[test]
    fn it_opens_at_the_start_writes_when_it_is_connected_and_closes_at_the_stop() {
        let story = Story::new(&Config::Bulk, ms(100), Some(ms(500))).run(ms(1000));
        let (conn, side) = (CONN, Side::From);
        assert_eq!(
            story.log,
            [
                (ms(100), Action::Connect { conn, opener: side }),
                (ms(120), Action::WriteUnlimited { conn, side }),
                (ms(500), Action::Close { conn, side }),
                (ms(500), Action::Finished),
                (ms(510), Action::Close { conn, side: Side::To }),
            ]
        );
    }

    #[test]
    fn without_a_stop_it_never_ends() {
        let story = Story::new(&Config::Bulk, ms(0), None).run(Time::from_nanos(u64::MAX - 1));
        assert_eq!(story.finished(), None);
    }

    #[test]
    fn a_connection_that_fails_ends_it() {
        let mut story = Story::new(&Config::Bulk, ms(0), Some(ms(500)));
        story.refused.insert(CONN);
        assert_eq!(story.run(ms(1000)).finished(), Some(ms(20)));
    }
}
