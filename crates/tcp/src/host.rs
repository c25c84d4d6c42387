//! What the sender's own host does to a connection: the queue above its interface, and what it remembers of destinations.
//!
//! Sources: Linux `tcp_output.c` (`tcp_small_queue_check`, `tcp_write_xmit`, `tcp_xmit_retransmit_queue`, and `tcp_enter_cwr`
//! in `__tcp_transmit_skb`), `tcp_input.c` (`tcp_enter_cwr`), `skbuff.h` (`SKB_TRUESIZE`), `tcp_metrics.c`
//! (`tcp_update_metrics`, `tcp_init_metrics`, `tcpm_check_stamp`).
//!
//! Deviations:
//! 1. The memory of segments in the queue is computed from their payload, as if each packet were as long as the next one.
//!    Acknowledgements without payload take none.
//! 2. A full queue is noticed before a segment is built, so that a retransmission that it refuses leaves no trace.
//! 3. Of the metrics of a destination only the slow-start threshold is kept: no round-trip time, which would set the
//!    retransmission timeout until the first sample, and no reordering.

use crate::Context;
use crate::endpoint::Endpoint;
use crate::sender::Sender;
use cc::{Controller, INFINITE_SSTHRESH, Phase, Sign};
use units::{Rate, Span, Time};

/// Memory of a packet besides its payload: the structure (256 bytes), the header's buffer (704) and its tail (320).
const PACKET_OVERHEAD: u64 = 1280;
/// The most memory in the queue of a connection without pacing (`tcp_limit_output_bytes`).
const LIMIT_OUTPUT: u64 = 1 << 20;
/// How long the metrics of a destination are valid (`TCP_METRICS_TIMEOUT`).
const METRICS_TIMEOUT: Span = Span::from_secs(3600);

/// The host's queue, as far as the driver has told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostQueue {
    /// Payload of this connection in it.
    bytes: u64,
    /// Whether it would drop the next segment.
    is_full: bool,
    /// Whether the connection waits for its own data to leave the queue (`TSQ_THROTTLED`).
    throttled: bool,
}

impl<C: Controller> Sender<C> {
    /// Whether the host's queue keeps a segment from being sent, which otherwise would be now. If the queue is full, the
    /// window is reduced.
    #[inline(always)]
    pub(crate) fn is_held_by_host(&mut self, again: bool, cx: &mut Context) -> bool {
        (self.host.bytes > 0 || self.host.is_full) && self.checks_host(again, cx)
    }

    #[inline(never)]
    fn checks_host(&mut self, again: bool, cx: &mut Context) -> bool {
        if self.host.bytes > 0 && !self.queue.is_empty() && self.queued_memory() > self.small_queue_limit(again) {
            self.host.throttled = true;
            return true;
        }
        if self.host.is_full {
            self.stats.host_drops += 1;
            self.enter_cwr(cx);
        }
        self.host.is_full
    }

    /// Payload and memory of a packet.
    fn packet_memory(&self) -> (u64, u64) {
        let payload = u64::from(self.packet_segments()) * u64::from(self.path.mss.max(1));
        (payload, payload + PACKET_OVERHEAD)
    }

    fn queued_memory(&self) -> u64 {
        let (payload, memory) = self.packet_memory();
        self.host.bytes.saturating_mul(memory) / payload
    }

    /// Two packets, or a millisecond at the pacing rate; twice that for a retransmission.
    fn small_queue_limit(&self, again: bool) -> u64 {
        let rate = self.limits.pacing.or_else(|| self.path.stack_rate.get()).map_or(0, Rate::bytes_per_sec);
        let limit = (2 * self.packet_memory().1).max(rate >> 10);
        let limit = if self.pacing_rate().is_some() { limit } else { limit.min(LIMIT_OUTPUT) };
        limit << u32::from(again)
    }

    /// Reduces the window without a loss (`tcp_enter_cwr`).
    fn enter_cwr(&mut self, cx: &mut Context) {
        if matches!(self.recovery.phase, Phase::Open | Phase::Disorder) {
            self.recovery.forget_undo();
            self.begin_reduction(Sign::Ecn, cx);
            self.enter_phase(Phase::Cwr);
        }
    }
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
struct Closing {
    cwnd: u32,
    ssthresh: u32,
    open: bool,
    has_rtt: bool,
    backed_off: bool,
}

impl Metrics {
    /// Returns the slow-start threshold for a connection that begins at `now`, in segments.
    pub fn ssthresh(&self, now: Time) -> Option<u32> {
        self.ssthresh.filter(|_| now.saturating_since(self.updated) <= METRICS_TIMEOUT)
    }

    fn update(&mut self, of: Closing, now: Time) {
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

impl<C: Controller> Endpoint<C> {
    /// Tells of the queue of this endpoint's own host, through which its segments leave: the payload of this connection in
    /// it, and whether it would drop a further segment. To be called before
    /// [`poll_transmit`](Endpoint::poll_transmit) whenever either may have changed; without a call there is no such queue.
    /// Returns whether the endpoint has waited for the queue to empty and is to be polled.
    pub fn set_host_queue(&mut self, bytes: u64, is_full: bool) -> bool {
        let host = &mut self.sender.host;
        let leaves = host.throttled && bytes < host.bytes;
        (host.bytes, host.is_full) = (bytes, is_full);
        if leaves {
            host.throttled = false;
            self.sender.touch();
        }
        leaves
    }

    /// Begins with what the host remembers of the destination, when the connection is established.
    pub fn begin_with(&mut self, metrics: &Metrics, now: Time) {
        if let Some(ssthresh) = metrics.ssthresh(now) {
            self.sender.controller.begin_at(ssthresh);
            self.sender.limits = self.sender.controller.limits();
        }
    }

    /// Updates what the host remembers of the destination, when the connection has closed in order.
    pub fn remember(&self, metrics: &mut Metrics, now: Time) {
        let s = &self.sender;
        let closing = Closing {
            cwnd: s.limits.cwnd,
            ssthresh: s.limits.ssthresh,
            open: s.recovery.phase == Phase::Open,
            has_rtt: s.rtt.smoothed().is_some(),
            backed_off: s.backoff > 0,
        };
        metrics.update(closing, now);
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
    }
}
