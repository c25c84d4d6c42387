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
