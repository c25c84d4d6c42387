//! What the sender's own host does to a connection: the queue above its interface, and what it remembers of destinations.
//!
//! Sources: Linux `tcp_output.c` (`tcp_small_queue_check`, `tcp_write_xmit`, `tcp_xmit_retransmit_queue`, and `tcp_enter_cwr`
//! in `__tcp_transmit_skb`), `tcp_input.c` (`tcp_enter_cwr`), `skbuff.h` (`SKB_TRUESIZE`), `tcp_metrics.c`
//! (`tcp_update_metrics`, `tcp_init_metrics`, `tcpm_check_stamp`).
//!
//! Deviations:
//! 1. The memory of segments in the queue is computed from their payload, as if each packet were as long as the next one, or of a
//!    segmented queue, each segment.
//!    Acknowledgements without payload take none.
//! 2. A full queue is noticed before a segment is built, so that a retransmission that it refuses leaves no trace.
//! 3. Of the metrics of a destination only the slow-start threshold is kept: no round-trip time, which would set the
//!    retransmission timeout until the first sample, and no reordering.

use cc::INFINITE_SSTHRESH;
use units::{Span, Time};

/// How long the metrics of a destination are valid (`TCP_METRICS_TIMEOUT`).
const METRICS_TIMEOUT: Span = Span::from_secs(3600);

/// The queue of a sender's host, through which its segments leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostQueue {
    /// Bytes of payload of the connection in it.
    pub payload: u64,
    /// Whether it would drop the next segment.
    pub is_full: bool,
    /// Whether it holds segments, each of which takes memory of its own, and not packets of several segments that the
    /// interface divides.
    pub is_segmented: bool,
}

/// The host's queue, as far as the driver has told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnHost {
    pub(crate) queue: HostQueue,
    /// Whether the connection waits for its own data to leave the queue (`TSQ_THROTTLED`).
    pub(crate) throttled: bool,
}

/// What a host remembers of a destination (Linux `tcp_metrics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Slow-start threshold in segments, if there is one.
    ssthresh: Option<u32>,
    updated: Time,
}

/// The state of a connection that closes, as far as it counts for [`Metrics`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) open: bool,
    pub(crate) has_rtt: bool,
    pub(crate) backed_off: bool,
}

impl Metrics {
    /// Returns the slow-start threshold for a connection that begins at `now`, in segments.
    pub fn ssthresh(&self, now: Time) -> Option<u32> {
        self.ssthresh.filter(|_| now.saturating_since(self.updated) <= METRICS_TIMEOUT)
    }

    pub(crate) fn update(&mut self, of: Closing, now: Time) {
        if of.backed_off || !of.has_rtt {
            return;
        }
        let half = of.cwnd >> 1;
        let kept = self.ssthresh(now);
        self.ssthresh = if of.ssthresh >= INFINITE_SSTHRESH {
            // Slow start has not ended.
            kept.map(|kept| kept.max(half))
        } else if of.cwnd >= of.ssthresh && of.open {
            // Congestion avoidance: the window is reliable.
            Some(half.max(of.ssthresh))
        } else {
            kept.map(|kept| kept.max(of.ssthresh))
        };
        self.updated = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Closing = Closing { cwnd: 100, ssthresh: 40, open: true, has_rtt: true, backed_off: false };

    /// What is remembered of a threshold of `before` after a connection that closed like this.
    fn after(before: Option<u32>, closing: Closing) -> Option<u32> {
        let mut metrics = Metrics { ssthresh: before, updated: Time::ZERO };
        metrics.update(closing, Time::ZERO);
        metrics.ssthresh(Time::ZERO)
    }

    #[test]
    fn congestion_avoidance_replaces_the_threshold() {
        assert_eq!(after(None, CALM), Some(50));
        assert_eq!(after(Some(500), CALM), Some(50));
        assert_eq!(after(Some(5), Closing { ssthresh: 70, ..CALM }), Some(70));
        // A window that is at the threshold has left slow start.
        assert_eq!(after(Some(500), Closing { ssthresh: 100, ..CALM }), Some(100));
    }

    #[test]
    fn a_connection_that_never_left_slow_start_only_raises_it() {
        let slow = Closing { ssthresh: INFINITE_SSTHRESH, ..CALM };
        assert_eq!([after(None, slow), after(Some(40), slow), after(Some(80), slow)], [None, Some(50), Some(80)]);
    }

    #[test]
    fn slow_start_after_a_loss_and_recovery_only_raise_it() {
        for closing in [Closing { cwnd: 20, ..CALM }, Closing { open: false, ..CALM }] {
            assert_eq!(
                [after(None, closing), after(Some(30), closing), after(Some(60), closing)],
                [None, Some(40), Some(60)]
            );
        }
    }

    #[test]
    fn without_round_trip_times_nothing_changes() {
        assert_eq!(after(Some(9), Closing { has_rtt: false, ..CALM }), Some(9));
        assert_eq!(after(Some(9), Closing { backed_off: true, ..CALM }), Some(9));
    }

    #[test]
    fn an_hour_later_it_is_forgotten() {
        let mut metrics = Metrics::default();
        metrics.update(CALM, Time::ZERO);
        assert_eq!(metrics.ssthresh(Time::ZERO + METRICS_TIMEOUT), Some(50));
        assert_eq!(metrics.ssthresh(Time::ZERO + METRICS_TIMEOUT + Span::from_nanos(1)), None);
        // Each connection keeps it for another hour, whether it changes it or not.
        let half_an_hour = Time::ZERO + METRICS_TIMEOUT / 2;
        metrics.update(Closing { ssthresh: INFINITE_SSTHRESH, ..CALM }, half_an_hour);
        assert_eq!(metrics.ssthresh(half_an_hour + METRICS_TIMEOUT), Some(50));
        // What has expired is not kept.
        let later = half_an_hour + METRICS_TIMEOUT + Span::from_nanos(1);
        metrics.update(Closing { ssthresh: INFINITE_SSTHRESH, ..CALM }, later);
        assert_eq!(metrics.ssthresh(later), None);
    }
}
