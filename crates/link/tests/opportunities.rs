//! Service by a trace against a model that looks at each opportunity.

mod common;

use bolero::check;
use common::{Driver, at, ms};
use link::{Config, Service, Sharing, Trace};
use std::sync::Arc;
use units::{Span, Time};

/// The opportunities of a trace from the link's time zero on, one by one.
struct Model<'a> {
    times: &'a [u32],
    offset: u64,
    next: usize,
    /// Bytes of the next one that nobody has used.
    left: u64,
    wasted: u64,
}

impl Model<'_> {
    fn new(times: &[u32], offset: u64) -> Model<'_> {
        let period = u64::from(times[times.len() - 1]);
        let mut model = Model { times, offset: offset % period, next: 0, left: 1500, wasted: 0 };
        // What was before is not wasted.
        while model.in_trace() < model.offset * 1_000_000 {
            model.next += 1;
        }
        model
    }

    /// Returns the time of the next opportunity in the trace, in nanoseconds.
    fn in_trace(&self) -> u64 {
        let (rounds, index) = (self.next / self.times.len(), self.next % self.times.len());
        let period = self.times[self.times.len() - 1];
        (rounds as u64 * u64::from(period) + u64::from(self.times[index])) * 1_000_000
    }

    fn time(&self) -> u64 {
        self.in_trace() - self.offset * 1_000_000
    }

    /// Leaves the rest of the next opportunity unused.
    fn skip(&mut self) {
        self.wasted += self.left;
        (self.next, self.left) = (self.next + 1, 1500);
    }

    /// Leaves opportunities up to `now` unused.
    fn skip_until(&mut self, now: u64) {
        while self.time() <= now {
            self.skip();
        }
    }

    /// Serves a packet that came at `now`, behind all before it. Returns when it leaves.
    fn serve(&mut self, mut bytes: u64, now: u64, sharing: Sharing) -> u64 {
        self.skip_until(now);
        loop {
            let (end, used) = (self.time(), bytes.min(self.left));
            bytes -= used;
            self.left -= used;
            let is_whole = bytes == 0 && sharing == Sharing::Packets;
            if self.left == 0 || is_whole {
                self.skip();
            }
            if bytes == 0 {
                return end;
            }
        }
    }
}

#[test]
fn packets_use_the_opportunities_after_their_arrival_and_the_rest_is_wasted() {
    check!().with_type::<(u8, Vec<u8>, Vec<(u8, u16)>)>().for_each(|(kind, steps, packets)| {
        let mut times = vec![u32::from(*kind % 2)];
        times.extend(steps.iter().take(12).scan(times[0], |time, step| {
            *time += u32::from(step % 4);
            Some(*time)
        }));
        times.push(times[times.len() - 1] + 1);
        let offset = u64::from(kind / 8);
        let sharing = if kind & 4 == 0 { Sharing::Bytes } else { Sharing::Packets };
        let mut model = Model::new(&times, offset);
        let mut now = 0;
        let (mut arrivals, mut expected) = (Vec::new(), Vec::new());
        for &(gap, len) in packets {
            // Some come at whole milliseconds, when opportunities are, and some after a long time.
            now += match gap % 4 {
                0 => 0,
                1 => u64::from(gap) * 20_000,
                2 => u64::from(gap % 8) * 1_000_000,
                _ => u64::from(gap / 64) * 40_000_000,
            };
            if gap % 16 == 0 {
                now = now.next_multiple_of(1_000_000);
            }
            let len = u32::from(len % 4000) + 1;
            arrivals.push((at(now), len));
            expected.push(at(model.serve(u64::from(len), now, sharing)));
        }
        let trace = Arc::new(Trace::from_times(times.clone()).expect("it is one"));
        let service = Service::Trace { trace, sharing, offset: Span::from_millis(offset) };
        let mut driver = Driver::new(Config { service, ..Config::default() }).run(arrivals);
        assert_eq!(driver.times(), expected, "{times:?} from {offset} ms on");
        let mut end = driver.delivered.last().map_or(Time::ZERO, |last| last.0);
        for _ in 0..3 {
            model.skip_until(end.as_nanos());
            assert_eq!(driver.link.stats(end).wasted, model.wasted, "{times:?} from {offset} ms on, at {end}");
            end += Span::from_millis(7) + (ms(1) - Time::ZERO) / 2;
        }
    });
}
