//! Short flows: a sequence of transfers, each over its own connection, which the sender opens, and closes after its
//! last byte. The completion time is from the request to connect to the delivery of the last byte to the reader, which
//! then closes. A sequence of one is a single transfer.

use crate::draw::after;
use crate::limits::MAX_COUNT;
use crate::{Action, Gap, Notice, RETRY_AFTER, Random, Side, Size, Transfer};
use std::collections::VecDeque;
use units::check::Range;
use units::{Bytes, Span, Time, parameters};

/// When the next transfer of a sequence starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loop {
    /// This long after the previous start, regardless of its duration: an open loop. [`Gap::Exponential`] gives a
    /// Poisson process.
    Open(Gap),
    /// This long after the previous end: a closed loop. A length of zero is back to back.
    Closed(Gap),
}

parameters! {
    /// A single transfer.
    #[derive(Copy, Eq)]
    pub struct Single {
        /// Bytes to send.
        pub size: Bytes, in Range::SIZE;
    }
}

parameters! {
    /// A sequence of transfers in an open loop.
    pub struct Parameters {
        /// Bytes per connection.
        pub size: Size, in Range::SIZE;
        /// Time between consecutive starts.
        pub interval: Gap, in Range::POSITIVE_SPAN;
        /// Number of connections. Default: unlimited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub count: Option<u32>, in 1..=MAX_COUNT;
    }
}

/// A sequence of transfers, beginning at the start.
#[derive(Clone, Debug)]
pub struct ShortFlows {
    size: Size,
    gap: Loop,
    /// Number of transfers still to start.
    left: u32,
    /// When the next one starts, or [`Time::MAX`] if it waits for a completion or none is left.
    next: Time,
    stop: Time,
    /// The number of the next transfer and of its connection.
    index: u32,
    /// The transfers in progress, in order of their numbers.
    active: Vec<Active>,
    finished: bool,
    out: VecDeque<Action>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    index: u32,
    start: Time,
    size: u64,
    delivered: u64,
}

impl ShortFlows {
    pub(crate) fn new(
        size: Size,
        gap: Loop,
        count: Option<u32>,
        start: Time,
        stop: Time,
        random: Random,
    ) -> ShortFlows {
        ShortFlows {
            size,
            gap,
            left: count.unwrap_or(u32::MAX),
            next: start,
            stop,
            index: 0,
            active: Vec::new(),
            finished: false,
            out: VecDeque::new(),
            random,
        }
    }

    #[inline]
    pub(crate) fn handle(&mut self, notice: Notice, now: Time) {
        match notice {
            Notice::Delivered { conn, side: Side::To, bytes } => {
                let Some(at) = self.find(conn) else { return };
                let transfer = &mut self.active[at];
                transfer.delivered += bytes;
                if transfer.delivered >= transfer.size {
                    self.out.push_back(Action::Close { conn, side: Side::To });
                    self.end(at, now, Span::ZERO);
                }
            }
            Notice::Connected { conn, side: Side::From } => {
                let Some(at) = self.find(conn) else { return };
                self.out.push_back(Action::Write { conn, side: Side::From, bytes: self.active[at].size });
                self.out.push_back(Action::Close { conn, side: Side::From });
            }
            Notice::Failed { conn } => {
                let Some(at) = self.find(conn) else { return };
                self.end(at, now, RETRY_AFTER);
            }
            Notice::Delivered { .. } | Notice::Connected { .. } | Notice::Closed { .. } => {}
        }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        if self.out.is_empty() {
            if self.next != Time::MAX {
                if now >= self.next {
                    self.begin();
                }
            } else if self.active.is_empty() && !self.finished {
                self.finished = true;
                return Some(Action::Finished);
            }
        }
        self.out.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.next
    }

    pub(crate) fn in_progress(&self, now: Time) -> impl Iterator<Item = Transfer> {
        self.active.iter().map(move |&Active { index, start, delivered, .. }| Transfer {
            index,
            start,
            end: now,
            bytes: delivered,
        })
    }

    fn find(&self, conn: u32) -> Option<usize> {
        self.active.binary_search_by_key(&conn, |transfer| transfer.index).ok()
    }

    fn begin(&mut self) {
        let (index, start) = (self.index, self.next);
        let size = self.size.draw(&mut self.random).get();
        self.active.push(Active { index, start, size, delivered: 0 });
        self.out.push_back(Action::Connect { conn: index, opener: Side::From });
        self.index += 1;
        self.left -= 1;
        self.next = Time::MAX;
        if let Loop::Open(length) = self.gap {
            self.schedule(start, length, Span::ZERO);
        }
    }

    /// Ends the transfer at `at`, complete or failed; the next one waits at least `at_least`.
    fn end(&mut self, at: usize, now: Time, at_least: Span) {
        let Active { index, start, size, delivered } = self.active.remove(at);
        let transfer = Transfer { index, start, end: now, bytes: delivered };
        self.out.push_back(if delivered >= size { Action::Completed(transfer) } else { Action::Failed(transfer) });
        if let Loop::Closed(length) = self.gap {
            self.schedule(now, length, at_least);
        }
    }

    fn schedule(&mut self, from: Time, length: Gap, at_least: Span) {
        if self.left > 0 {
            let next = after(from, length.draw(&mut self.random).max(at_least));
            self.next = if next < self.stop { next } else { Time::MAX };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::{HALF, Story, ms};
    use crate::{App, Config};

    const SIZE: Size = Size::Constant { size: Bytes::new(500_000) };

    fn train(gap: Loop, count: Option<u32>, stop: Time) -> Story {
        let random = rand_core::SeedableRng::seed_from_u64(11);
        Story::of(App::ShortFlows(ShortFlows::new(SIZE, gap, count, ms(0), stop, random)))
    }

    #[test]
    fn a_transfer_is_complete_when_its_last_byte_is_delivered_after_one_and_a_half_round_trips() {
        let story = Story::new(&Config::Transfer(Single { size: Bytes::new(500_000) }), ms(100), None).run(ms(1000));
        let (start, end) = (ms(100), ms(100) + HALF * 3);
        assert_eq!(story.completed(), [Transfer { index: 0, start, end, bytes: 500_000 }]);
        assert_eq!(story.finished(), Some(end));
        assert!(story.all_is_closed());
    }

    #[test]
    fn an_open_loop_starts_a_transfer_whether_or_not_the_last_one_is_complete() {
        let gap = Loop::Open(Gap::Constant { time: Span::from_millis(8) });
        let story = train(gap, Some(4), Time::MAX).run(ms(1000));
        let starts: Vec<Time> = story.completed().iter().map(|transfer| transfer.start).collect();
        assert_eq!(starts, [ms(0), ms(8), ms(16), ms(24)]);
        assert!(story.completed().iter().all(|transfer| transfer.end - transfer.start == HALF * 3));
        assert!(story.all_is_closed());
    }

    #[test]
    fn what_has_begun_and_not_ended_is_in_progress() {
        let gap = Loop::Open(Gap::Constant { time: Span::from_millis(8) });
        let mut app = train(gap, None, Time::MAX).app;
        assert_eq!(app.in_progress(ms(0)), []);
        for now in [ms(0), ms(8)] {
            while app.poll_action(now).is_some() {}
        }
        app.handle(Notice::Delivered { conn: 0, side: Side::To, bytes: 500_000 }, ms(9));
        app.handle(Notice::Delivered { conn: 1, side: Side::To, bytes: 1_000 }, ms(9));
        assert_eq!(app.in_progress(ms(10)), [Transfer { index: 1, start: ms(8), end: ms(10), bytes: 1_000 }]);
    }

    #[test]
    fn a_closed_loop_starts_the_next_transfer_a_think_time_after_completion() {
        let gap = Loop::Closed(Gap::Constant { time: Span::from_millis(70) });
        let story = train(gap, Some(3), Time::MAX).run(ms(1000));
        let starts: Vec<Time> = story.completed().iter().map(|transfer| transfer.start).collect();
        assert_eq!(starts, [ms(0), ms(100), ms(200)]);
    }

    #[test]
    fn nothing_starts_from_the_stop_on_and_what_has_started_is_completed() {
        let gap = Loop::Open(Gap::Constant { time: Span::from_millis(50) });
        let story = train(gap, None, ms(100)).run(ms(1000));
        assert_eq!(story.completed().len(), 2);
        assert_eq!(story.finished(), Some(ms(80)));
    }

    #[test]
    fn a_failed_transfer_is_reported_and_the_next_one_waits_a_second() {
        let mut story = train(Loop::Closed(Gap::Constant { time: Span::ZERO }), Some(2), Time::MAX);
        story.refused.insert(0);
        let story = story.run(ms(2000));
        let failed = Transfer { index: 0, start: ms(0), end: ms(20), bytes: 0 };
        assert!(story.log.contains(&(ms(20), Action::Failed(failed))));
        let completed = Transfer { index: 1, start: ms(1020), end: ms(1050), bytes: 500_000 };
        assert_eq!(story.completed(), [completed]);
    }

    #[test]
    fn exponential_gaps_make_a_poisson_process() {
        let gap = Loop::Open(Gap::Exponential { mean: Span::from_millis(100) });
        let story = train(gap, None, ms(2_000_000)).run(ms(2_001_000));
        let mut per_second = [0_u32; 2000];
        for transfer in story.completed() {
            per_second[(transfer.start.as_secs_f64()) as usize] += 1;
        }
        // Ten a second in 2000 s: mean and variance are both 10. The mean's standard error is sqrt(10/2000); the
        // variance's is sqrt((mu4 - var^2)/n) with mu4 = 10 + 3 * 10^2. Five of each are allowed.
        let n = per_second.len() as f64;
        let mean = per_second.iter().map(|&count| f64::from(count)).sum::<f64>() / n;
        let variance =
            per_second.iter().map(|&count| (f64::from(count) - mean) * (f64::from(count) - mean)).sum::<f64>() / n;
        assert!((mean - 10.0).abs() < 5.0 * libm::sqrt(10.0 / n), "{mean}");
        assert!((variance - 10.0).abs() < 5.0 * libm::sqrt(210.0 / n), "{variance}");
    }
}
