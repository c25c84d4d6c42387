//! How senders heed the queue of their own host, and what its memory of destinations does to them ([`crate::host`]).

use crate::Context;
use crate::config::Kernel;
use crate::endpoint::Endpoint;
use crate::host::{Closing, HostQueue, Metrics};
use crate::sender::Sender;
use cc::{Controller, Phase, Sign};
use units::{Rate, Time};

/// The most memory in the queue (`tcp_limit_output_bytes`): in 6.1 of a connection without pacing, in 6.18 of any.
const LIMIT_OUTPUT_6_1: u64 = 1 << 20;
const LIMIT_OUTPUT: u64 = 4 << 20;

impl<C: Controller> Sender<C> {
    /// Whether the host's queue keeps a segment from being sent, which otherwise would be now. If the queue is full, the
    /// window is reduced.
    #[inline(always)]
    pub(crate) fn is_held_by_host(&mut self, again: bool, cx: &mut Context) -> bool {
        (self.host.queue.payload > 0 || self.host.queue.is_full) && self.checks_host(again, cx)
    }

    #[inline(never)]
    fn checks_host(&mut self, again: bool, cx: &mut Context) -> bool {
        // Packets are held back whole.
        let whole = again || !self.tso.on || self.tso.begins;
        if whole
            && self.host.queue.payload > 0
            // One packet may always follow (`tcp_rtx_queue_empty_or_single_skb`).
            && self.queue.packets() > 1
            // A socket without packets counts one byte (`sk_wmem_alloc`), so two packets exceed a limit of two packets.
            && self.queued_memory() + 1 > self.small_queue_limit(again)
        {
            self.host.throttled = true;
            return true;
        }
        if self.host.queue.is_full {
            self.stats.host_drops += 1;
            self.enter_cwr(cx);
        }
        self.host.queue.is_full
    }

    /// Payload and memory of a packet of so many segments.
    fn packet_memory(&self, segments: u32) -> (u64, u64) {
        let payload = u64::from(segments) * u64::from(self.path.mss.max(1));
        (payload, payload + self.buffer.packet_overhead())
    }

    fn queued_memory(&self) -> u64 {
        // A segment cut off a packet has a head of the same size (`skb_segment`), and the whole memory of all segments counts
        // against the socket (`tcp_gso_segment`).
        let segments = if self.host.queue.is_segmented { 1 } else { self.packet_segments() };
        let (payload, memory) = self.packet_memory(segments);
        self.host.queue.payload.saturating_mul(memory) / payload
    }

    /// Two packets, or a millisecond at the pacing rate; twice that for a retransmission.
    fn small_queue_limit(&self, again: bool) -> u64 {
        let rate = self.limits.pacing.or_else(|| self.path.stack_rate.get()).map_or(0, Rate::bytes_per_sec);
        let limit = (2 * self.packet_memory(self.packet_segments()).1).max(rate >> 10);
        let limit = match self.buffer.kernel() {
            Kernel::V6_1 if self.pacing_rate().is_some() => limit,
            Kernel::V6_1 => limit.min(LIMIT_OUTPUT_6_1),
            Kernel::V6_18 => limit.min(LIMIT_OUTPUT),
        };
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

impl<C: Controller> Endpoint<C> {
    /// Tells of the queue of this endpoint's own host, through which its segments leave. To be called before
    /// [`poll_transmit`](Endpoint::poll_transmit) whenever it may have changed; without a call there is no such queue.
    /// Returns whether the endpoint has waited for the queue to empty and is to be polled.
    pub fn set_host_queue(&mut self, queue: HostQueue) -> bool {
        let host = &mut self.sender.host;
        let leaves = host.throttled && queue.payload < host.queue.payload;
        host.queue = queue;
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
    use crate::Config;
    use cc::INFINITE_SSTHRESH;
    use cc::new_reno::NewReno;
    use units::Span;

    fn connection() -> Endpoint<NewReno> {
        Endpoint::connect(&Config::default(), NewReno::new(10), 0, Time::ZERO)
    }

    /// What the host remembers of a connection in congestion avoidance, with a window of 100 and a threshold of 40, that has
    /// been changed like this.
    fn remembered(change: impl FnOnce(&mut Sender<NewReno>)) -> Metrics {
        let mut endpoint = connection();
        let sender = &mut endpoint.sender;
        sender.take_rtt(Span::from_millis(100), None, Time::ZERO);
        (sender.limits.cwnd, sender.limits.ssthresh) = (100, 40);
        change(sender);
        let mut metrics = Metrics::default();
        endpoint.remember(&mut metrics, Time::ZERO);
        metrics
    }

    #[test]
    fn a_connection_leaves_its_threshold_to_the_next() {
        let at = |metrics: Metrics, now: Time| {
            let mut endpoint = connection();
            endpoint.begin_with(&metrics, now);
            (endpoint.sender.limits.ssthresh, endpoint.controller().limits().ssthresh)
        };
        let metrics = remembered(|_| {});
        assert_eq!(at(metrics, Time::ZERO), (50, 50));
        assert_eq!(at(metrics, Time::ZERO + Span::from_secs(3_601)), (INFINITE_SSTHRESH, INFINITE_SSTHRESH));
    }

    #[test]
    fn nothing_is_learnt_of_a_connection_that_was_not_calm() {
        let changes: [fn(&mut Sender<NewReno>); 5] = [
            |s| s.backoff = 1,
            |s| s.rtt = crate::rtt::Rtt::new(Span::from_millis(200)),
            |s| s.recovery.phase = Phase::Recovery,
            |s| s.limits.cwnd = 39,
            |s| s.limits.ssthresh = INFINITE_SSTHRESH,
        ];
        for change in changes {
            assert_eq!(remembered(change).ssthresh(Time::ZERO), None);
        }
    }
}
