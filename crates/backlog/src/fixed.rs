//! A modem whose rate is known. Whoever knows it may change it.

use units::{Bytes, Rate, Span, Time};

use crate::{Answer, DrainModel, Estimate, Probe};

/// Drains at a fixed rate, and is to hold what it sends in a given time.
#[derive(Clone, Debug)]
pub struct Fixed {
    rate: Rate,
    target: Span,
    /// When it will be empty.
    empty: Time,
}

impl Fixed {
    /// An empty one.
    pub fn new(rate: Rate, target: Span) -> Fixed {
        Fixed { rate, target, empty: Time::ZERO }
    }
}

impl DrainModel for Fixed {
    fn has_room(&mut self, now: Time) -> bool {
        // One packet always: a rate may be so low that a packet takes longer than the target.
        let held = self.empty.saturating_since(now);
        held == Span::ZERO || held < self.target
    }

    fn handed(&mut self, bytes: u32, _: Option<Probe>, now: Time) {
        self.empty = self.empty.max(now) + self.rate.time_for(Bytes::new(u64::from(bytes)));
    }

    fn on_idle(&mut self) {}

    fn answered(&mut self, _: Answer, _: Time) {}

    fn set_rate(&mut self, rate: Rate, now: Time) {
        // It holds the same bytes, for another time.
        let held = self.rate.bytes_in(self.empty.saturating_since(now));
        (self.rate, self.empty) = (rate, now + rate.time_for(held));
    }

    fn poll_timeout(&self, now: Time) -> Option<Time> {
        let held = self.empty.saturating_since(now);
        (held >= self.target && held > Span::ZERO).then(|| now + held.saturating_sub(self.target) + Span::from_nanos(1))
    }

    fn estimate(&self, now: Time) -> Estimate {
        let held = self.empty.saturating_since(now);
        Estimate { rate: Some(self.rate), bytes: self.rate.bytes_in(held).get(), delay: Some(held) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_its_rate_and_no_more() {
        let mut modem = Fixed::new(Rate::from_mbps(8), Span::from_millis(10));
        let (mut now, mut passed) = (Time::ZERO, 0_u64);
        let end = Time::ZERO + Span::from_secs(1);
        while now < end {
            while modem.has_room(now) {
                modem.handed(1500, None, now);
                passed += 1500;
                assert!(modem.estimate(now).bytes <= 10_000 + 1500);
            }
            now = modem.poll_timeout(now).expect("there is no room").max(now + Span::from_nanos(1));
        }
        // 1 MB in a second, and what it holds.
        assert!((1_000_000..=1_000_000 + 13_000).contains(&passed), "{passed}");
    }

    #[test]
    fn what_it_holds_stays_the_same_when_its_rate_changes() {
        let mut modem = Fixed::new(Rate::from_mbps(8), Span::from_millis(10));
        (0..8).for_each(|_| modem.handed(1500, None, Time::ZERO));
        // 12 kB take 12 ms at 8 Mbit/s and 48 ms at 2 Mbit/s; after 4 ms, 8 kB are left.
        let now = Time::ZERO + Span::from_millis(4);
        modem.set_rate(Rate::from_mbps(2), now);
        let estimate = modem.estimate(now);
        assert_eq!((estimate.bytes, estimate.delay), (8_000, Some(Span::from_millis(32))));
        assert!(!modem.has_room(now + Span::from_millis(22)));
        assert!(modem.has_room(now + Span::from_millis(23)));
    }

    #[test]
    fn a_packet_that_takes_longer_than_the_target_passes() {
        let mut modem = Fixed::new(Rate::from_bits_per_sec(8000), Span::from_millis(10));
        assert!(modem.has_room(Time::ZERO));
        modem.handed(1500, None, Time::ZERO);
        assert!(!modem.has_room(Time::ZERO + Span::from_secs(1)));
        assert!(modem.has_room(Time::ZERO + Span::from_millis(1491)));
    }

    /// There is room below the target, and a nanosecond after it.
    #[test]
    fn it_says_when_there_will_be_room() {
        let at = |nanos: u64| Time::ZERO + Span::from_nanos(nanos);
        for (target, room) in [(0, 1_500_001), (1_000_000, 500_001)] {
            let mut modem = Fixed::new(Rate::from_mbps(8), Span::from_nanos(target));
            assert_eq!((modem.has_room(at(0)), modem.poll_timeout(at(0))), (true, None), "{target}");
            modem.handed(1500, None, at(0));
            assert_eq!((modem.has_room(at(0)), modem.poll_timeout(at(0))), (false, Some(at(room))), "{target}");
            assert_eq!((modem.has_room(at(room)), modem.poll_timeout(at(room))), (true, None), "{target}");
        }
        let mut exact = Fixed::new(Rate::from_mbps(8), Span::from_nanos(1_500_000));
        exact.handed(1500, None, at(0));
        assert_eq!((exact.has_room(at(0)), exact.poll_timeout(at(0))), (false, Some(at(1))));
    }
}
