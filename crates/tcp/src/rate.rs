//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).

use crate::queue::{APP_LIMITED, EVER_RETRANSMITTED, RETRANSMITTED, Record};
use cc::RateSample;
use units::{Span, Time};

/// The connection's counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    /// Segments delivered, the SYN included.
    pub(crate) delivered: u64,
    /// Segments marked lost.
    pub(crate) lost: u64,
    /// When `delivered` last grew.
    delivered_at: Time,
    /// When the newest delivered segment was sent.
    first_sent: Time,
    /// The count of delivered segments at which the bubble of an idle application has passed; 0 if there is none.
    pub(crate) app_limited: u64,
}

/// What one acknowledgement's segments tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    /// The count when the newest segment was sent, and when that was reached.
    pub(crate) prior: Option<(u64, Time)>,
    app_limited: bool,
    retransmitted: bool,
    interval: Span,
    /// The place of the newest segment among all transmissions.
    order: u64,
}

impl Rate {
    /// The connection begins: the SYN was delivered.
    pub(crate) fn begin(&mut self, now: Time) {
        self.delivered = 1;
        self.delivered_at = now;
        self.first_sent = now;
    }

    /// Stamps a segment that is sent now; `idle` if nothing was in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, record: &mut Record, idle: bool, now: Time) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        record.first_sent = self.first_sent;
        record.delivered_at = self.delivered_at;
        record.delivered = self.delivered as u32;
        if self.app_limited > 0 {
            record.flags |= APP_LIMITED;
        } else {
            record.flags &= !APP_LIMITED;
        }
    }

    /// A segment was delivered; only the one sent last counts.
    #[inline]
    pub(crate) fn on_delivered(&mut self, sampler: &mut Sampler, record: &Record) {
        if record.order > sampler.order {
            let since = (self.delivered as u32).wrapping_sub(record.delivered);
            sampler.prior = Some((self.delivered - u64::from(since), record.delivered_at));
            sampler.app_limited = record.has(APP_LIMITED);
            sampler.retransmitted = record.has(RETRANSMITTED | EVER_RETRANSMITTED);
            sampler.order = record.order;
            self.first_sent = record.sent;
            sampler.interval = record.sent.saturating_since(record.first_sent);
        }
    }

    /// The sample of an acknowledgement that newly delivered so many segments, already counted.
    #[inline]
    pub(crate) fn sample(&mut self, sampler: &Sampler, delivered: u32, min_rtt: Option<Span>, now: Time) -> RateSample {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let mut sample = RateSample {
            total_delivered: self.delivered,
            total_lost: self.lost,
            app_limited: sampler.app_limited,
            retransmitted: sampler.retransmitted,
            ..RateSample::default()
        };
        if let Some((prior_delivered, prior_at)) = sampler.prior {
            let interval = sampler.interval.max(now.saturating_since(prior_at));
            sample.prior_delivered = prior_delivered;
            sample.interval = interval;
            // An interval below the smallest round-trip time is an artefact of acknowledgements that came together.
            if min_rtt.is_none_or(|min| interval >= min) {
                sample.delivered = u32::try_from(self.delivered - prior_delivered).ok();
            }
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// A segment is sent, as the `order`-th.
    fn sent(rate: &mut Rate, order: u64, idle: bool, ms: u64) -> Record {
        let mut record = Record { order, sent: at(ms), ..Record::default() };
        rate.on_sent(&mut record, idle, at(ms));
        record
    }

    /// Segments are delivered, in this order, by one acknowledgement.
    fn acked(rate: &mut Rate, records: &[Record], min_rtt: Option<u64>, ms: u64) -> RateSample {
        let mut sampler = Sampler::default();
        for record in records {
            rate.delivered += 1;
            rate.on_delivered(&mut sampler, record);
        }
        rate.sample(&sampler, records.len() as u32, min_rtt.map(MS), at(ms))
    }

    #[test]
    fn a_sample_is_over_the_longer_of_the_sending_and_the_acknowledging() {
        let mut rate = Rate::default();
        rate.begin(at(0));
        let a = sent(&mut rate, 1, true, 10);
        let b = sent(&mut rate, 2, false, 12);
        let c = sent(&mut rate, 3, false, 70);
        // One of two is delivered after 20 ms: since the pipe was empty at 10 ms.
        let sample = acked(&mut rate, &[a], None, 30);
        assert_eq!((sample.delivered, sample.interval, sample.prior_delivered), (Some(1), MS(20), 1));
        assert_eq!(sample.total_delivered, 2);
        // The newest counts, in whatever order they come; it was sent 60 ms after the first, and arrives 30 ms later.
        let sample = acked(&mut rate, &[c, b], None, 100);
        assert_eq!((sample.delivered, sample.interval, sample.prior_delivered), (Some(3), MS(90), 1));
        // What was sent after the first delivery counts from that, and the sending from the newest delivered.
        let d = sent(&mut rate, 4, false, 150);
        assert_eq!((d.delivered, d.delivered_at, d.first_sent), (4, at(100), at(70)));
        let sample = acked(&mut rate, &[d], None, 160);
        assert_eq!((sample.delivered, sample.interval), (Some(1), MS(80)), "sent 80 ms after the one before");
    }

    #[test]
    fn an_interval_below_the_least_round_trip_gives_no_sample() {
        for (min, delivered) in [(20, Some(1)), (21, None)] {
            let mut rate = Rate::default();
            rate.begin(at(0));
            let a = sent(&mut rate, 1, true, 10);
            assert_eq!(acked(&mut rate, &[a], Some(min), 30).delivered, delivered);
        }
        let mut rate = Rate::default();
        rate.begin(at(0));
        let sample = acked(&mut rate, &[], None, 30);
        assert_eq!((sample.delivered, sample.interval, sample.total_delivered), (None, Span::ZERO, 1));
        // An acknowledgement that delivers nothing does not move the time of the last delivery.
        assert_eq!(rate.delivered_at, at(0));
    }

    #[test]
    fn samples_are_marked_until_the_bubble_of_an_idle_application_has_passed() {
        let mut rate = Rate::default();
        rate.begin(at(0));
        rate.app_limited = 3;
        let a = sent(&mut rate, 1, true, 10);
        let b = sent(&mut rate, 2, false, 10);
        let c = sent(&mut rate, 3, false, 10);
        for record in [a, b] {
            let sample = acked(&mut rate, &[record], None, 30);
            assert!(sample.app_limited);
        }
        assert_eq!((rate.delivered, rate.app_limited), (3, 3));
        assert!(acked(&mut rate, &[c], None, 30).app_limited, "it was sent before");
        assert_eq!(rate.app_limited, 0);
        // A record that is sent again forgets the mark.
        let mut again = Record { order: 4, ..a };
        rate.on_sent(&mut again, false, at(40));
        assert!(!again.has(APP_LIMITED));
        again.flags |= EVER_RETRANSMITTED;
        let sample = acked(&mut rate, &[again], None, 60);
        assert_eq!((sample.app_limited, sample.retransmitted), (false, true));
    }
}
