//! Processing of acknowledgements by the sender, from the window update to the controller's sample.
//!
//! Source: Linux `tcp_input.c` (`tcp_ack`, `tcp_ack_update_window`, `tcp_sacktag_write_queue`, `tcp_check_dsack`,
//! `tcp_sacktag_one`, `tcp_clean_rtx_queue`, `tcp_remove_reno_sacks`, `tcp_check_reno_reordering`, `tcp_skb_spurious_retrans`,
//! `tcp_ack_update_rtt`, `tcp_check_sack_reordering`).
//!
//! Deviations:
//! 1. A SACK block that covers a segment in part does not acknowledge it. (Linux does the same below a segment's size.)

use crate::Context;
use crate::queue::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, Record, SACKED};
use crate::ranges::Range;
use crate::rate::Sampler;
use crate::sender::{Sender, Timer};
use cc::{AckSample, Controller, Phase};
use units::{Span, Time};
use wire::Sack;

/// Maximum degree of reordering, in segments (`tcp_max_reordering`).
const REORDERING_MAX: u64 = 300;

/// An acknowledgement, as offsets.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    /// Not beyond SND.NXT.
    pub(crate) ack: u64,
    /// The segment's own offset in the peer's stream, and whether it takes sequence space.
    pub(crate) seq: u64,
    pub(crate) has_data: bool,
    /// The peer's window in bytes.
    pub(crate) window: u64,
    pub(crate) sack: &'a Sack,
    pub(crate) ece: bool,
    /// The echoed timestamp, in milliseconds of our clock.
    pub(crate) echo: Option<u32>,
}

/// Findings about an acknowledgement (Linux `FLAG_*` and `struct tcp_sacktag_state`).
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) advanced: bool,
    /// Data, a window update or a cumulative acknowledgement: not a duplicate.
    pub(crate) not_duplicate: bool,
    pub(crate) sacked: bool,
    d_sack: bool,
    pub(crate) d_sack_of_probe: bool,
    /// Data from before `high` that was never retransmitted was delivered.
    pub(crate) original_delivered: bool,
    pub(crate) lost_retransmission: bool,
    pub(crate) ece: bool,
    pub(crate) set_timer: bool,
    /// It acknowledged one short segment that was all of its round trip (`FLAG_ACK_MAYBE_DELAYED`).
    lone: bool,
    pub(crate) echo: Option<u32>,
    retransmitted_acked: bool,
    acked: u32,
    /// When the first and last newly selectively acknowledged original was sent.
    first_sacked: Option<Time>,
    last_sacked: Option<Time>,
    rtt: Option<Span>,
    /// Whether a timestamp told it.
    is_echoed: bool,
    sampler: Sampler,
}

/// Whether a retransmitted segment is acknowledged in answer to an earlier transmission of it: the echoed timestamp is older
/// than the last one (`tcp_skb_spurious_retrans`).
#[inline]
fn is_original(record: &Record, echo: Option<u32>) -> bool {
    record.has(RETRANSMITTED | EVER_RETRANSMITTED)
        && echo.is_some_and(|echo| (echo.wrapping_sub(crate::millis(record.sent)) as i32) < 0)
}

impl<C: Controller> Sender<C> {
    /// One past the highest selectively acknowledged offset, or SND.UNA.
    #[inline]
    fn highest_sacked(&self) -> u64 {
        self.queue.sacked.end().map_or(self.una, |end| end.max(self.una))
    }

    /// Whether an acknowledgement without SACK blocks does not concern the sending side: all that a receiver of data ever
    /// hears.
    #[inline]
    pub(crate) fn is_unconcerned(&self, ack: u64, window: u64) -> bool {
        self.queue.is_empty()
            && ack == self.una
            && window == self.window
            && self.timer == Timer::Idle
            && self.rack.probe_end == 0
    }

    /// Records an acknowledgement that does not concern the sending side.
    #[inline]
    pub(crate) fn note_ack(&mut self, seq: u64, ece: bool) {
        self.retries = 0;
        self.window_seq = self.window_seq.max(seq);
        self.stats.ece_received += u64::from(ece);
    }

    /// Processes an acknowledgement and returns its RTT sample, unless it comes from a timestamp. A window of zero is accepted
    /// even from a segment with which nothing else changes, as in 6.18; 6.1 accepts only a larger window (`tcp_may_update_window`).
    #[inline]
    pub(crate) fn on_ack(&mut self, a: &Incoming, cx: &mut Context) -> Option<Span> {
        let prior_una = self.una;
        let mut seen = Seen { ece: a.ece, echo: a.echo, not_duplicate: a.has_data, ..Seen::default() };
        self.stats.ece_received += u64::from(a.ece);
        self.buffer.acknowledged = true;
        self.touch();
        if a.ack < prior_una {
            // Old; what it reports may still be news.
            if self.sack && !a.sack.is_empty() && !self.queue.is_empty() {
                self.process_sacks(a, prior_una, &mut seen, cx);
                self.alert(prior_una, false, &mut seen, cx);
            }
            return None;
        }
        let prior_highest = self.highest_sacked();
        let prior_in_flight = self.queue.in_flight();
        let (prior_delivered, prior_lost) = (self.rate.delivered, self.rate.lost);
        seen.advanced = a.ack > prior_una;
        if seen.advanced
            || a.seq > self.window_seq
            || (a.seq == self.window_seq && (a.window > self.window || a.window == 0))
        {
            seen.not_duplicate = true;
            self.window_seq = a.seq;
            self.window = a.window;
            self.max_window = self.max_window.max(a.window);
        }
        self.una = a.ack;
        self.refresh_room();
        if self.sack && !a.sack.is_empty() {
            self.process_sacks(a, prior_una, &mut seen, cx);
        }
        if self.queue.is_empty() {
            self.retries = 0;
            if seen.d_sack {
                self.alert(prior_una, false, &mut seen, cx);
            }
            self.update_window_probe(cx.now);
            self.process_probe(a.ack, &seen, cx);
            return None;
        }
        if seen.advanced {
            self.retries = 0;
            self.clean(prior_una, prior_highest, &mut seen, cx.now);
            self.pass_acknowledged(prior_una, cx);
        }
        self.sample_rtt(prior_una, &mut seen, cx.now);
        self.rack.update_steps(seen.sampler.prior.map(|(delivered, _)| delivered), self.rate.delivered);
        self.process_probe(a.ack, &seen, cx);
        let alarming = seen.sacked || seen.ece || seen.d_sack;
        if !seen.not_duplicate || alarming || self.recovery.phase != Phase::Open {
            let dup_ack = !(seen.advanced || seen.not_duplicate || seen.d_sack);
            let dup_acks = u64::from(!seen.advanced && !seen.not_duplicate);
            self.stats.dup_acks_received += dup_acks;
            self.stats.dup_acks_since = if seen.advanced { 0 } else { self.stats.dup_acks_since + dup_acks };
            self.stats.dup_acks_longest = self.stats.dup_acks_longest.max(self.stats.dup_acks_since);
            self.alert(prior_una, dup_ack, &mut seen, cx);
        }
        if seen.set_timer && !self.schedule_loss_probe(true, cx.now) {
            self.rearm_rto(cx.now);
        }
        let delivered = (self.rate.delivered - prior_delivered) as u32;
        let mut rate = self.rate.sample(&seen.sampler, delivered, self.path.min_rtt, cx.now);
        rate.maybe_delayed = seen.lone;
        let sample = AckSample {
            acked: seen.acked,
            delivered,
            delivered_ce: if seen.ece { delivered } else { 0 },
            lost: (self.rate.lost - prior_lost) as u32,
            prior_in_flight,
            in_flight: self.queue.in_flight(),
            advanced: seen.advanced,
            cwnd_limited: self.is_cwnd_limited(),
            ece: seen.ece,
            phase: self.recovery.phase,
            rtt: seen.rtt,
            una: self.una,
            next: self.next,
            rate,
        };
        self.controller.on_ack(&sample, &mut cx.controller(&self.path));
        self.limits = self.controller.limits();
        self.refresh_stack_rate();
        seen.rtt.filter(|_| !seen.is_echoed)
    }

    /// Removes cumulatively acknowledged segments (`tcp_clean_rtx_queue`).
    #[inline]
    fn clean(&mut self, prior_una: u64, prior_highest: u64, seen: &mut Seen, now: Time) {
        let una = self.una;
        let mut reordered_from = self.next;
        let (mut first_sent, mut last_sent) = (None, None);
        let reno_sacked = self.queue.sacked_out;
        while let Some(&record) = self.queue.front() {
            let end = record.end();
            if end > una {
                if record.seq < una {
                    // Acknowledged in part: the rest remains a segment.
                    let first = self.queue.ids().start;
                    let first = self.queue.get_mut(first);
                    first.len -= (una - first.seq) as u16;
                    self.stats.bytes_acked += una - first.seq;
                    first.seq = una;
                }
                break;
            }
            self.queue.pop();
            seen.acked += 1;
            if record.has(RETRANSMITTED | EVER_RETRANSMITTED) {
                seen.retransmitted_acked = true;
            } else if !record.has(SACKED) {
                last_sent = Some(record.sent);
                first_sent = first_sent.or(last_sent);
                reordered_from = reordered_from.min(record.seq);
                seen.original_delivered |= end <= self.recovery.high;
            }
            if !record.has(SACKED) {
                if self.sack {
                    self.rate.delivered += 1;
                    if !is_original(&record, seen.echo) {
                        self.advance_rack(&record, now);
                    }
                }
                self.rate.on_delivered(&mut seen.sampler, &record);
            }
            self.stats.bytes_acked += u64::from(record.len);
        }
        self.queue.sacked.forget_below(una);
        if seen.acked > 0 {
            seen.set_timer = true;
            if self.sack {
                if reordered_from < prior_highest {
                    self.check_reordering(reordered_from);
                }
            } else {
                // Duplicates had counted some of these already (`tcp_remove_reno_sacks`).
                self.rate.delivered += u64::from(seen.acked.saturating_sub(reno_sacked).max(1));
                self.queue.sacked_out = reno_sacked.saturating_sub(seen.acked - 1);
                self.limit_dup_acks(seen.acked);
            }
        }
        if !seen.retransmitted_acked
            && let (Some(first), Some(last)) = (first_sent, last_sent)
        {
            seen.rtt = Some(now.saturating_since(last));
            seen.lone = seen.acked == 1
                && una - prior_una < u64::from(self.path.mss)
                && seen.sampler.prior.is_some_and(|(prior, _)| prior + 1 == self.rate.delivered)
                && !seen.sacked
                && !seen.ece;
            // A short segment alone: its acknowledgement was probably delayed, so it tells nothing of the minimum.
            self.take_rtt(now.saturating_since(first), seen.rtt.filter(|_| !seen.lone), now);
        }
    }

    /// Returns the RTT from selective acknowledgements, or from a timestamp if only retransmissions were acknowledged
    /// (`tcp_ack_update_rtt`).
    #[inline]
    fn sample_rtt(&mut self, prior_una: u64, seen: &mut Seen, now: Time) {
        let cumulative = seen.rtt.is_some();
        if let (Some(first), Some(last)) = (seen.first_sacked, seen.last_sacked) {
            seen.rtt = Some(now.saturating_since(last));
            if cumulative {
                self.rtt.sample_min(now, now.saturating_since(last));
                self.path.min_rtt = self.rtt.min();
            } else {
                let rtt = now.saturating_since(first);
                self.take_rtt(rtt, seen.rtt, now);
                // The timer is not moved by data sent before the first in flight was sent again.
                let front = self.queue.front().map(|front| now.saturating_since(front.sent));
                seen.set_timer |= front.is_some_and(|since| rtt > since);
            }
        } else if !cumulative
            && self.una > prior_una
            && let Some(echo) = seen.echo
        {
            let millis = crate::millis(now).wrapping_sub(echo);
            if millis < 1 << 31 {
                let rtt = Span::from_millis(u64::from(millis.max(1)));
                seen.rtt = Some(rtt);
                seen.is_echoed = true;
                self.take_rtt(rtt, seen.rtt, now);
            }
        }
    }

    #[inline]
    pub(crate) fn take_rtt(&mut self, rtt: Span, for_min: Option<Span>, now: Time) {
        if let Some(min) = for_min.or(if self.path.min_rtt.is_none_or(|min| rtt <= min) { Some(rtt) } else { None }) {
            self.rtt.sample_min(now, min);
        }
        self.rtt.sample(rtt, self.una, self.next);
        self.refresh_path();
        self.backoff = 0;
    }

    /// Informs RACK of a delivered segment, which may be the newest.
    #[inline]
    fn advance_rack(&mut self, record: &Record, now: Time) {
        self.rack.on_delivered(record, self.path.min_rtt, now);
    }

    /// Records reordering: a segment from `low`, never retransmitted, was delivered after higher ones
    /// (`tcp_check_sack_reordering`).
    pub(crate) fn check_reordering(&mut self, low: u64) {
        let highest = self.highest_sacked();
        if low < highest {
            let distance = (highest - low).div_ceil(u64::from(self.path.mss)).min(REORDERING_MAX) as u32;
            self.rack.reordering = self.rack.reordering.max(distance);
            self.rack.reordered = true;
            self.stats.reorderings += 1;
        }
    }

    /// Without SACK, duplicates cannot stand for more segments than are in flight and not lost: one more tells of reordering
    /// (`tcp_limit_reno_sacked`, `tcp_check_reno_reordering`). `acked` segments were just acknowledged.
    pub(crate) fn limit_dup_acks(&mut self, acked: u32) {
        let out = self.queue.len();
        let holes = self.queue.lost_out.max(1).min(out);
        if self.queue.sacked_out > out - holes {
            self.queue.sacked_out = out - holes;
            self.rack.reordering = u64::from(out + acked).min(REORDERING_MAX) as u32;
            self.rack.reordered = true;
            self.stats.reorderings += 1;
        }
    }

    /// Processes selective acknowledgements (`tcp_sacktag_write_queue`).
    fn process_sacks(&mut self, a: &Incoming, prior_una: u64, seen: &mut Seen, cx: &mut Context) {
        let mut blocks = [Range::default(); 4];
        let mut count = 0;
        for block in a.sack.blocks() {
            let (Some(start), Some(end)) = (self.offset(block.start), self.offset(block.end)) else { continue };
            if start < end && end <= self.next {
                blocks[count] = Range::new(start, end);
                count += 1;
            }
        }
        let mut blocks = &mut blocks[..count];
        // RFC 2883 section 4: a first block below the acknowledgement or within the second is a D-SACK.
        let duplicate = match blocks {
            [first, ..] if first.start < a.ack => true,
            [first, second, ..] => second.start <= first.start && first.end <= second.end,
            _ => false,
        };
        if duplicate {
            let first = blocks[0];
            self.on_d_sack(first, prior_una, seen);
            blocks = &mut blocks[1..];
        }
        blocks.sort_unstable_by_key(|block| block.start);
        let mut reordered_from = self.next;
        for block in blocks.iter() {
            let mut rest = Range::new(block.start.max(self.una), block.end);
            while !rest.is_empty() {
                let new = self.queue.sacked.gap(&rest);
                if new.is_empty() {
                    break;
                }
                rest.start = new.end;
                let ids = self.queue.within(&new);
                if ids.is_empty() {
                    continue;
                }
                let whole = Range::new(self.queue.get(ids.start).seq, self.queue.get(ids.end - 1).end());
                for id in ids {
                    self.sack_one(id, &mut reordered_from, seen, cx.now);
                }
                self.queue.sacked.insert(whole);
            }
        }
        if self.recovery.phase != Phase::Loss || self.recovery.has_marker() {
            self.check_reordering(reordered_from);
        }
    }

    /// Marks a segment as selectively acknowledged (`tcp_sacktag_one`).
    #[inline]
    fn sack_one(&mut self, id: u64, reordered_from: &mut u64, seen: &mut Seen, now: Time) {
        self.queue.unlink(id);
        let record = *self.queue.get(id);
        if record.has(SACKED) {
            return;
        }
        self.advance_rack(&record, now);
        let mut flags = record.flags | SACKED;
        if record.has(RETRANSMITTED) {
            // Not marked lost, the retransmission is still in flight.
            if record.has(LOST) {
                flags &= !(LOST | RETRANSMITTED);
                self.queue.lost_out -= 1;
                self.queue.retrans_out -= 1;
            }
        } else {
            if !record.has(EVER_RETRANSMITTED) {
                if record.seq < self.highest_sacked() {
                    *reordered_from = record.seq.min(*reordered_from);
                }
                seen.original_delivered |= record.end() <= self.recovery.high;
                seen.first_sacked = seen.first_sacked.or(Some(record.sent));
                seen.last_sacked = Some(record.sent);
            }
            if record.has(LOST) {
                flags &= !LOST;
                self.queue.lost_out -= 1;
            }
        }
        seen.sacked = true;
        self.queue.sacked_out += 1;
        self.rate.delivered += 1;
        self.rate.on_delivered(&mut seen.sampler, &record);
        self.queue.get_mut(id).flags = flags;
    }

    /// Processes a D-SACK: the receiver got data twice (`tcp_check_dsack`, `tcp_dsack_seen`).
    fn on_d_sack(&mut self, range: Range, prior_una: u64, seen: &mut Seen) {
        let len = range.end - range.start;
        if len > self.max_window {
            return;
        }
        let mss = u64::from(self.path.mss);
        let of_probe = len <= mss && self.rack.probe_end != 0 && self.rack.probe_end == range.end;
        seen.d_sack_of_probe = of_probe;
        let count = len.div_ceil(mss) as u32;
        self.stats.dsacks_received += u64::from(count);
        if self.stats.dsacks_received > self.stats.retransmitted() {
            // The network duplicated it.
            return;
        }
        if self.rack.reordered && !of_probe {
            self.rack.d_sack_seen = true;
        }
        seen.d_sack = true;
        self.rate.delivered += u64::from(count);
        if range.end <= prior_una {
            self.recovery.on_needless(range.end, count);
            return;
        }
        // Of what is still in flight here, retransmissions were needless too.
        for id in self.queue.within(&Range::new(range.start.max(self.una), range.end)) {
            let record = *self.queue.get(id);
            if record.has(RETRANSMITTED | EVER_RETRANSMITTED) {
                self.recovery.on_needless(record.end(), 1);
            }
            if record.has(RETRANSMITTED) && !record.has(LOST) {
                self.queue.get_mut(id).flags &= !RETRANSMITTED;
                self.queue.retrans_out -= 1;
            }
        }
    }
}
