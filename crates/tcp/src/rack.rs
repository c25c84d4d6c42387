//! RACK-TLP's own state and loss detection by time (RFC 8985; Linux `tcp_recovery.c`).
//!
//! Deviation: which of two segments was sent first is known by counting transmissions. Linux compares times of transmission,
//! which in the kernel are hardly ever equal, and breaks ties by sequence number (RFC 8985 section 6.2 step 2).
//! In virtual time several acknowledgements arrive at one moment, so a new segment and a retransmission that follows it
//! leave at one moment too; by sequence number the retransmission would count as sent before the new segment, and as
//! lost once that is delivered.

use crate::queue::{EVER_RETRANSMITTED, Queue, RETRANSMITTED, Record};
use cc::Phase;
use units::{Span, Time};

/// Recoveries after which a widened reordering window is narrowed again (RFC 8985 section 6.2 step 4).
const PERSIST: u8 = 16;

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The place of the newest delivered segment among all transmissions.
    newest: u64,
    /// The round-trip time of the segment delivered last.
    rtt: Span,
    /// These changed since losses were last looked for.
    pub(crate) advanced: bool,
    /// Reordering in segments (`tp->reordering`), and whether any was seen.
    pub(crate) reordering: u32,
    pub(crate) reordered: bool,
    /// Multiples of a quarter of the smallest round-trip time.
    steps: u8,
    persist: u8,
    pub(crate) d_sack_seen: bool,
    /// The count of delivered segments when `steps` was last raised.
    last_delivered: u64,
    /// SND.NXT when the tail loss probe was sent; 0 if none is out.
    pub(crate) probe_end: u64,
    /// It was a retransmission.
    pub(crate) probe_retransmitted: bool,
    /// What a lone segment's acknowledgement may be delayed by.
    pub(crate) delayed_ack: Span,
}

impl Rack {
    pub(crate) fn new(delayed_ack: Span) -> Rack {
        Rack {
            newest: 0,
            rtt: Span::ZERO,
            advanced: false,
            reordering: 3,
            reordered: false,
            steps: 1,
            persist: 0,
            d_sack_seen: false,
            last_delivered: 0,
            probe_end: 0,
            probe_retransmitted: false,
            delayed_ack,
        }
    }

    /// A segment was delivered (RFC 8985 section 6.2 steps 1 and 2; Linux `tcp_rack_advance`).
    #[inline]
    pub(crate) fn on_delivered(&mut self, record: &Record, min_rtt: Option<Span>, now: Time) {
        let rtt = now.saturating_since(record.sent);
        if record.has(RETRANSMITTED | EVER_RETRANSMITTED) && min_rtt.is_some_and(|min| rtt < min) {
            // More likely the original than the retransmission.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max(record.order);
    }

    /// The reordering window (section 6.2 step 4; Linux `tcp_rack_reo_wnd`).
    fn window(&self, phase: Phase, sacked: u32, min_rtt: Option<Span>, srtt: Option<Span>) -> Span {
        if !self.reordered && (matches!(phase, Phase::Recovery | Phase::Loss) || sacked >= self.reordering) {
            return Span::ZERO;
        }
        let min_rtt = min_rtt.unwrap_or(Span::ZERO);
        (min_rtt / 4 * u64::from(self.steps)).min(srtt.unwrap_or(Span::MAX))
    }

    /// Marks what must be lost by now and gives to `each` whether it was a retransmission; when to look again, if some may
    /// be (section 6.2 step 5; Linux `tcp_rack_detect_loss`).
    pub(crate) fn detect(
        &mut self,
        queue: &mut Queue,
        phase: Phase,
        path: &cc::Path,
        now: Time,
        mut each: impl FnMut(bool),
    ) -> Option<Time> {
        let window = self.window(phase, queue.sacked_out, path.min_rtt, path.srtt);
        queue.advance_edge(self.newest);
        while let Some((id, sent)) = queue.oldest_before_edge() {
            if now.saturating_since(sent) < self.rtt + window {
                break;
            }
            match queue.mark_lost(id) {
                Some(again) => each(again),
                None => queue.unlink(id),
            }
        }
        queue.edge_sent().map(|sent| sent + self.rtt + window)
    }

    /// Whether a segment sent then has been out for longer than a round trip (`tcp_rack_skb_timeout`).
    pub(crate) fn is_old(&self, sent: Time, now: Time) -> bool {
        now.saturating_since(sent) >= self.rtt
    }

    /// Widens the window by a step for each round trip with a D-SACK (Linux `tcp_rack_update_reo_wnd`).
    #[inline]
    pub(crate) fn update_steps(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        let Some(prior) = prior_delivered else { return };
        if prior < self.last_delivered {
            self.d_sack_seen = false;
        }
        if self.d_sack_seen {
            self.steps = self.steps.saturating_add(1);
            self.d_sack_seen = false;
            self.last_delivered = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended that was needed.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was needless.
    pub(crate) fn on_needless_recovery(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
}
