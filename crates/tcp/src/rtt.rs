//! Round-trip time and the retransmission time-out, as Linux's `tcp_rtt_estimator` and `tcp_set_rto`: RFC 6298 with the
//! variance taken as the largest mean deviation of a flight, never below the smallest time-out, so that RTO >= SRTT +
//! 200 ms. The smallest round-trip time is that of the last 300 s (`tcp_update_rtt_min`, `lib/win_minmax.c`).
//!
//! Deviation: nanoseconds where Linux has microseconds, and time-outs are not rounded up to a tick.

use crate::config::{RTO_FALLBACK, RTO_MAX};
use units::{Span, Time};

/// The window of the smallest round-trip time (`tcp_min_rtt_wlen`).
const MIN_WINDOW: Span = Span::from_secs(300);

/// The smallest of the samples of a sliding window, kept as the best, second best and third best in time order (Kathleen
/// Nichols's algorithm).
#[derive(Clone, Copy, Debug)]
struct MinFilter {
    best: [(Time, Span); 3],
}

impl MinFilter {
    fn new() -> MinFilter {
        MinFilter { best: [(Time::ZERO, Span::MAX); 3] }
    }

    #[inline]
    fn update(&mut self, now: Time, value: Span) {
        let sample = (now, value);
        if value <= self.best[0].1 || now.saturating_since(self.best[2].0) > MIN_WINDOW {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        let age = now.saturating_since(self.best[0].0);
        if age > MIN_WINDOW {
            // The best is too old, and perhaps the second too.
            self.best = [self.best[1], self.best[2], sample];
            if now.saturating_since(self.best[0].0) > MIN_WINDOW {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > MIN_WINDOW / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > MIN_WINDOW / 2 {
            self.best[2] = sample;
        }
    }
}

/// The estimator.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    /// Eight times the smoothed round-trip time, in nanoseconds; 0 without a sample.
    srtt8: i64,
    /// Four times the mean deviation, and its maximum in this flight and as a variance.
    mdev4: i64,
    mdev4_max: i64,
    rttvar4: i64,
    /// The flight ends when this is acknowledged.
    flight_end: u64,
    min: MinFilter,
    rto_min: i64,
    pub(crate) latest: Option<Span>,
}

impl Rtt {
    pub(crate) fn new(rto_min: Span) -> Rtt {
        Rtt {
            srtt8: 0,
            mdev4: 0,
            mdev4_max: 0,
            rttvar4: 0,
            flight_end: 0,
            min: MinFilter::new(),
            rto_min: rto_min.as_nanos() as i64,
            latest: None,
        }
    }

    /// A sample for the smoothed value. `una` and `next` tell where the flight ends.
    #[inline]
    pub(crate) fn sample(&mut self, rtt: Span, una: u64, next: u64) {
        let m = rtt.as_nanos().clamp(1, 1 << 50) as i64;
        self.latest = Some(rtt);
        if self.srtt8 == 0 {
            self.srtt8 = m << 3;
            self.mdev4 = m << 1;
            self.rttvar4 = self.mdev4.max(self.rto_min);
            self.mdev4_max = self.rttvar4;
            self.flight_end = next;
            return;
        }
        let mut error = m - (self.srtt8 >> 3);
        self.srtt8 = (self.srtt8 + error).max(1);
        if error < 0 {
            error = -error - (self.mdev4 >> 2);
            // A round-trip time that falls must not raise the time-out.
            if error > 0 {
                error >>= 3;
            }
        } else {
            error -= self.mdev4 >> 2;
        }
        self.mdev4 += error;
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.rttvar4 = self.rttvar4.max(self.mdev4_max);
        }
        if una > self.flight_end {
            if self.mdev4_max < self.rttvar4 {
                self.rttvar4 -= (self.rttvar4 - self.mdev4_max) >> 2;
            }
            self.flight_end = next;
            self.mdev4_max = self.rto_min;
        }
    }

    #[inline]
    pub(crate) fn sample_min(&mut self, now: Time, rtt: Span) {
        self.min.update(now, rtt);
    }

    /// No sample came from the handshake (RFC 6298 5.7).
    pub(crate) fn fall_back(&mut self) {
        let fallback = RTO_FALLBACK.as_nanos() as i64;
        (self.rttvar4, self.mdev4, self.mdev4_max) = (fallback, fallback, fallback);
    }

    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Span> {
        if self.srtt8 == 0 { None } else { Some(Span::from_nanos((self.srtt8 >> 3) as u64)) }
    }

    #[inline]
    pub(crate) fn min(&self) -> Option<Span> {
        let min = self.min.best[0].1;
        if min == Span::MAX { None } else { Some(min) }
    }

    /// The retransmission time-out without back-off; `None` without a sample.
    #[inline]
    pub(crate) fn rto(&self) -> Option<Span> {
        if self.rttvar4 == 0 {
            return None;
        }
        Some(Span::from_nanos(((self.srtt8 >> 3) + self.rttvar4) as u64).min(RTO_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn the_first_sample_gives_three_times_itself_but_at_least_200_ms_more() {
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(300), 0, 10);
        assert_eq!(rtt.rto(), Some(MS(900)));
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(40), 0, 10);
        assert_eq!(rtt.rto(), Some(MS(240)));
    }

    #[test]
    fn the_time_out_follows_linux_arithmetic_worked_by_hand() {
        // All in microseconds, as the kernel has them; the shifts are exact on these values in nanoseconds too.
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(400), 0, 10);
        // srtt = 3200/8 = 400 ms, mdev = rttvar = 800 ms: RTO 1200 ms.
        assert_eq!(rtt.rto(), Some(MS(1200)));
        // 480 ms within the flight: err 80, srtt 410; mdev 800 + 80 - 200 = 680 < max 800: RTO 410 + 800.
        rtt.sample(MS(480), 5, 20);
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(MS(410)), Some(MS(1210))));
        // The flight ends with 410 ms: err 0, mdev 680 - 170 = 510; max 800 = rttvar, so it stays; the next flight's
        // maximum starts at 200 ms.
        rtt.sample(MS(410), 11, 30);
        assert_eq!(rtt.rto(), Some(MS(1210)));
        // Another flight of equal samples: mdev 510 - 127.5 = 382.5 > 200 becomes the maximum; at the end of the flight
        // rttvar falls by a quarter of the difference: 800 - (800 - 382.5) / 4 = 695.625 ms.
        rtt.sample(MS(410), 31, 40);
        assert_eq!(rtt.rto(), Some(Span::from_micros(410_000 + 695_625)));
        // A sample of 330 ms: err -80, srtt 400; |err| - mdev/4 = 80 - 95.625 < 0: not weakened, mdev 366.875; rttvar
        // stays within the flight.
        rtt.sample(MS(330), 35, 45);
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(MS(400)), Some(Span::from_micros(400_000 + 695_625))));
        assert_eq!(rtt.mdev4, 366_875_000);
        // A sharp fall to 40 ms: err -360: 360 - 91.71875 = 268.28125, weakened by 8: + 33.53515625 ms.
        rtt.sample(MS(40), 36, 45);
        assert_eq!(rtt.mdev4, 366_875_000 + 33_535_156);
    }

    #[test]
    fn the_minimum_is_forgotten_after_its_window() {
        let mut rtt = Rtt::new(MS(200));
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        rtt.sample_min(at(0), MS(20));
        for s in 1..300 {
            rtt.sample_min(at(s), MS(50));
        }
        assert_eq!(rtt.min(), Some(MS(20)));
        rtt.sample_min(at(301), MS(60));
        assert_eq!(rtt.min(), Some(MS(50)));
    }

    /// What the kernel's `lib/win_minmax.c` keeps: the best, the second-best and the third-best sample. Computed by a literal
    /// reading of it, for a window of 300 s, in seconds and milliseconds.
    #[test]
    fn the_filter_keeps_what_the_kernels_does() {
        let table = [
            ((1, 20), [(1, 20), (1, 20), (1, 20)]),
            ((75, 50), [(1, 20), (1, 20), (1, 20)]),
            ((76, 40), [(1, 20), (1, 20), (1, 20)]),
            ((77, 45), [(1, 20), (77, 45), (77, 45)]),
            ((150, 60), [(1, 20), (77, 45), (77, 45)]),
            ((151, 60), [(1, 20), (77, 45), (77, 45)]),
            ((152, 55), [(1, 20), (77, 45), (152, 55)]),
            ((300, 70), [(1, 20), (77, 45), (152, 55)]),
            ((301, 80), [(1, 20), (77, 45), (152, 55)]),
            ((302, 85), [(77, 45), (152, 55), (302, 85)]),
            ((453, 90), [(302, 85), (453, 90), (453, 90)]),
            ((530, 88), [(302, 85), (530, 88), (530, 88)]),
            ((600, 95), [(302, 85), (530, 88), (600, 95)]),
            ((602, 95), [(302, 85), (530, 88), (602, 95)]),
            ((700, 99), [(530, 88), (602, 95), (700, 99)]),
            ((753, 97), [(530, 88), (602, 95), (753, 97)]),
            ((755, 98), [(530, 88), (602, 95), (753, 97)]),
            ((902, 99), [(602, 95), (753, 97), (902, 99)]),
            ((1202, 120), [(902, 99), (1202, 120), (1202, 120)]),
            ((1503, 130), [(1503, 130), (1503, 130), (1503, 130)]),
            ((1578, 130), [(1578, 130), (1578, 130), (1578, 130)]),
            ((1579, 140), [(1578, 130), (1578, 130), (1578, 130)]),
            ((1654, 145), [(1578, 130), (1654, 145), (1654, 145)]),
            ((1655, 135), [(1578, 130), (1655, 135), (1655, 135)]),
            ((1656, 135), [(1578, 130), (1656, 135), (1656, 135)]),
            ((1804, 150), [(1578, 130), (1656, 135), (1804, 150)]),
            ((1960, 160), [(1804, 150), (1960, 160), (1960, 160)]),
        ];
        let mut filter = MinFilter::new();
        for ((at, value), expected) in table {
            filter.update(Time::from_nanos(at * 1_000_000_000), MS(value));
            let best = filter.best.map(|(at, value)| (at.as_nanos() / 1_000_000_000, value.as_millis()));
            assert_eq!(best, expected, "after {value} ms at {at} s");
        }
    }

    #[test]
    fn a_flight_ends_with_what_was_sent_after_its_first_sample() {
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(400), 0, 10);
        for una in [5, 10] {
            rtt.sample(MS(400), una, 20);
        }
        // Not beyond 10: the flight goes on, and the variance is that of its beginning.
        assert_eq!((rtt.mdev4, rtt.mdev4_max, rtt.rttvar4), (450_000_000, 800_000_000, 800_000_000));
        rtt.sample(MS(400), 11, 20);
        assert_eq!((rtt.mdev4, rtt.mdev4_max, rtt.rttvar4), (337_500_000, 200_000_000, 800_000_000));
        // The next one ends beyond 20, and the variance falls by a quarter of its distance to the maximum of the flight.
        rtt.sample(MS(400), 20, 30);
        rtt.sample(MS(400), 21, 30);
        assert_eq!((rtt.mdev4, rtt.mdev4_max, rtt.rttvar4), (189_843_750, 200_000_000, 663_281_250));
        assert_eq!(rtt.latest, Some(MS(400)));
    }

    #[test]
    fn a_time_out_is_at_most_two_minutes() {
        let mut rtt = Rtt::new(MS(200));
        assert_eq!(rtt.rto(), None);
        rtt.fall_back();
        assert_eq!((rtt.rto(), rtt.smoothed()), (Some(RTO_FALLBACK), None));
        rtt.sample(Span::from_secs(100), 0, 10);
        assert_eq!(rtt.rto(), Some(RTO_MAX));
    }

    #[test]
    fn a_fall_by_little_more_than_the_deviation_counts_an_eighth() {
        // A deviation of 10 ns, and falls by 1, 7, 8 and 16 more: an eighth of those, rounded down.
        for (more, mdev4) in [(0, 40), (1, 40), (7, 40), (8, 41), (16, 42)] {
            let mut rtt = Rtt { srtt8: 8_000, mdev4: 40, ..Rtt::new(MS(200)) };
            rtt.sample(Span::from_nanos(1_000 - 10 - more), 0, 10);
            assert_eq!(rtt.mdev4, mdev4, "{more}");
        }
    }
}
