//! Loss recovery: its phases, their triggers, and the undo of spurious reductions.
//!
//! Sources: Linux `tcp_input.c` (`tcp_fastretrans_alert`, `tcp_enter_recovery`, `tcp_enter_loss`, `tcp_process_loss`,
//! `tcp_try_undo_*`, `tcp_packet_delayed`, `tcp_process_tlp_ack`), `tcp_timer.c` (`tcp_retransmit_timer`); RFC 6675 with
//! RACK (RFC 8985) as the only detector of loss, RFC 5682 (F-RTO with SACK), RFC 3522 and 4015 (Eifel), RFC 3708 (D-SACK).
//!
//! ```text
//!            SACK, dup ACK            RACK marks a loss
//!   Open ----------------> Disorder -------------------> Recovery ---.
//!    ^ \-- ECN echo --> Cwr --'----------^                           | high acknowledged, or undone
//!    '------------------'---------------------------------------------'
//!   any ---- retransmission timer ----> Loss ---- high acknowledged, or undone (Eifel, D-SACK, F-RTO) ----> Open
//! ```
//!
//! Deviations:
//! 1. When the timer of the reordering window marks a loss, the controller sees an acknowledgement that delivers one
//!    segment, whichever it is; Linux gives this only to window-based ones.
//! 2. Segments that an undo finds not lost take part in loss detection by time again; Linux forgets them there.

pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::ack::Seen;
use crate::config::{RTO_MAX, TIMEOUT_MIN};
use crate::queue::{EVER_RETRANSMITTED, SACKED};
use crate::sender::{Forced, Sender, Timer};
use cc::{AckSample, Congestion, Controller, Phase, RateSample, Sign};
use units::{Span, Time};

/// The evidence for an undo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    DSack,
    Timestamp,
    FRto,
}

impl<C: Controller> Sender<C> {
    fn congestion(&self, sign: Sign, announced: bool) -> Congestion {
        Congestion {
            sign,
            in_flight: self.queue.in_flight(),
            lost: self.queue.lost_out.saturating_sub(self.queue.retrans_out),
            una: self.una,
            next: self.next,
            announced,
        }
    }

    fn signal(&mut self, sign: Sign, cx: &mut Context) {
        let announced = self.was_announced();
        let congestion = self.congestion(sign, announced);
        self.controller.on_congestion(&congestion, &mut cx.controller(&self.path));
        self.limits = self.controller.limits();
    }

    /// Begins the reduction of the window (`tcp_init_cwnd_reduction`).
    pub(crate) fn begin_reduction(&mut self, sign: Sign, cx: &mut Context) {
        self.recovery.high = self.next;
        self.rack.probe_end = 0;
        self.queue_cwr = true;
        self.signal(sign, cx);
    }

    fn any_retransmitted(&self) -> bool {
        self.queue.retrans_out > 0 || self.queue.front().is_some_and(|first| first.has(EVER_RETRANSMITTED))
    }

    /// The acknowledgement echoes a time before the first retransmission: the original had arrived (Eifel).
    fn original_arrived(&self, echo: Option<u32>) -> bool {
        match (self.recovery.retransmitted_at, echo) {
            (Some(at), Some(echo)) => (echo.wrapping_sub(crate::millis(at)) as i32) < 0,
            (at, _) => at.is_none(),
        }
    }

    /// `tcp_may_undo`.
    fn evidence(&self, echo: Option<u32>) -> Option<Evidence> {
        if !self.recovery.has_marker() {
            None
        } else if self.recovery.needed == Some(0) {
            Some(Evidence::DSack)
        } else if self.original_arrived(echo) {
            Some(Evidence::Timestamp)
        } else {
            None
        }
    }

    /// Undoes the last reduction (`tcp_undo_cwnd_reduction`).
    fn undo(&mut self, evidence: Evidence, unmark_lost: bool, cx: &mut Context) {
        match evidence {
            Evidence::DSack => self.stats.undone_dsack += 1,
            Evidence::Timestamp => self.stats.undone_timestamp += 1,
            Evidence::FRto => self.stats.undone_frto += 1,
        }
        if unmark_lost {
            self.queue.unmark_all_lost();
        }
        if self.recovery.restores {
            self.controller.on_undo(&mut cx.controller(&self.path));
            self.limits = self.controller.limits();
            self.recovery.restores = false;
            self.queue_cwr = false;
        }
        self.recovery.marker = None;
        self.rack.advanced = true;
    }

    /// `tcp_try_undo_dsack`.
    fn try_undo_d_sack(&mut self, cx: &mut Context) -> bool {
        let undo = self.recovery.has_marker() && self.recovery.needed == Some(0);
        if undo {
            self.rack.on_needless_recovery();
            self.undo(Evidence::DSack, false, cx);
        }
        undo
    }

    /// Everything sent before the phase began is acknowledged (`tcp_try_undo_recovery`); whether the phase must be kept
    /// for a duplicate acknowledgement without SACK to tell the difference (RFC 6582 section 5).
    fn end_recovery(&mut self, echo: Option<u32>, cx: &mut Context) -> bool {
        match self.evidence(echo) {
            Some(evidence) => self.undo(evidence, false, cx),
            None => self.rack.on_recovered(),
        }
        if !self.sack && self.una == self.recovery.high {
            if !self.any_retransmitted() {
                self.recovery.retransmitted_at = None;
            }
            return true;
        }
        self.enter_phase(Phase::Open);
        false
    }

    /// `tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, f_rto: bool, echo: Option<u32>, cx: &mut Context) -> bool {
        let evidence = if f_rto { Some(Evidence::FRto) } else { self.evidence(echo) };
        let Some(evidence) = evidence else { return false };
        self.undo(evidence, true, cx);
        self.retries = 0;
        self.recovery.f_rto = false;
        if f_rto || self.sack {
            self.enter_phase(Phase::Open);
        }
        true
    }

    /// `tcp_try_keep_open`.
    fn keep_open(&mut self) {
        let left_out = self.queue.sacked_out + self.queue.lost_out > 0;
        let phase = if left_out || self.any_retransmitted() { Phase::Disorder } else { Phase::Open };
        if phase != self.recovery.phase {
            self.enter_phase(phase);
            self.recovery.high = self.next;
        }
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, ece: bool, cx: &mut Context) {
        if !self.any_retransmitted() {
            self.recovery.retransmitted_at = None;
        }
        if ece && !self.recovery.reduces() {
            self.recovery.forget_undo();
            self.stats.ecn_reductions += 1;
            self.begin_reduction(Sign::Ecn, cx);
            self.enter_phase(Phase::Cwr);
        }
        if self.recovery.phase != Phase::Cwr {
            self.keep_open();
        }
    }

    /// Retransmissions whose D-SACKs may still arrive, that of a tail loss probe among them; `None` for none
    /// (`tcp_init_undo`).
    fn retransmissions_in_flight(&self) -> Option<u32> {
        let probe = self.rack.probe_end != 0 && self.rack.probe_retransmitted;
        Some(self.queue.retrans_out + u32::from(probe)).filter(|&count| count > 0)
    }

    pub(crate) fn enter_recovery(&mut self, ece: bool, cx: &mut Context) {
        self.recovery.marker = Some(self.una);
        self.recovery.early = 0;
        self.recovery.needed = self.retransmissions_in_flight();
        self.stats.recoveries += 1;
        if !self.recovery.reduces() {
            self.recovery.restores = !ece;
            self.begin_reduction(Sign::Loss, cx);
        } else {
            // The reduction of a CWR phase goes on; the controller still learns that losses are retransmitted now.
            self.recovery.restores = false;
            self.signal(Sign::Loss, cx);
        }
        self.enter_phase(Phase::Recovery);
    }

    /// Lets RACK (or, without SACK, duplicate acknowledgements) mark losses (`tcp_identify_packet_loss`).
    fn identify_loss(&mut self, seen: &mut Seen, cx: &mut Context) {
        if self.queue.is_empty() {
            return;
        }
        if !self.sack {
            self.mark_head_lost(seen.advanced);
        } else if self.rack.advanced {
            self.rack.advanced = false;
            let prior = self.queue.retrans_out;
            if let Some(at) = self.detect_loss(cx) {
                seen.set_timer = false;
                let at = (at + TIMEOUT_MIN).min(cx.now + self.rto());
                self.arm(Timer::Reorder, at.max(cx.now));
            }
            seen.lost_retransmission |= self.queue.retrans_out < prior;
        }
        if self.recovery.phase == Phase::Recovery && self.is_understated() {
            self.signal(Sign::Loss, cx);
        }
    }

    fn detect_loss(&mut self, cx: &Context) -> Option<Time> {
        let (rate, stats) = (&mut self.rate, &mut self.stats);
        self.rack.detect(&mut self.queue, self.recovery.phase, &self.path, cx.now, |_again| {
            rate.lost += 1;
            stats.lost += 1;
        })
    }

    /// An acknowledgement that is not plain, or any in a phase other than Open (`tcp_fastretrans_alert`).
    pub(crate) fn alert(&mut self, prior_una: u64, dup_ack: bool, seen: &mut Seen, cx: &mut Context) {
        if seen.ece {
            self.recovery.restores = false;
        }
        self.recovery.hold = false;
        if self.check_reneging(seen, cx) {
            return;
        }
        // States that end once `high` is acknowledged.
        if self.recovery.phase == Phase::Open {
            self.recovery.retransmitted_at = None;
        } else if self.una >= self.recovery.high {
            match self.recovery.phase {
                // Held a little longer, for the mark of CWR to reach the receiver.
                Phase::Cwr if self.una > self.recovery.high => self.enter_phase(Phase::Open),
                Phase::Recovery => {
                    if !self.sack {
                        self.queue.sacked_out = 0;
                    }
                    if self.end_recovery(seen.echo, cx) {
                        return;
                    }
                }
                _ => {}
            }
        }
        match self.recovery.phase {
            Phase::Recovery => {
                if !seen.advanced {
                    self.add_dup_ack(dup_ack);
                } else if self.try_undo_partial(prior_una, seen, cx) {
                    return;
                }
                if self.try_undo_d_sack(cx) {
                    self.try_to_open(seen.ece, cx);
                }
                self.identify_loss(seen, cx);
                if self.recovery.phase != Phase::Recovery && self.queue.lost_out > 0 {
                    self.enter_recovery(seen.ece, cx);
                }
                return;
            }
            Phase::Loss => {
                self.process_loss(dup_ack, seen, cx);
                self.identify_loss(seen, cx);
                if self.recovery.phase != Phase::Open && !seen.lost_retransmission {
                    return;
                }
                // The time-out was undone, or a retransmission is lost: look again, as in any other phase.
            }
            Phase::Open | Phase::Disorder | Phase::Cwr => {
                if !self.sack {
                    if seen.advanced {
                        self.queue.sacked_out = 0;
                    }
                    self.add_dup_ack(dup_ack);
                }
                if self.recovery.phase != Phase::Cwr {
                    self.try_undo_d_sack(cx);
                }
                self.identify_loss(seen, cx);
            }
        }
        if self.queue.lost_out == 0 {
            self.try_to_open(seen.ece, cx);
        } else {
            self.enter_recovery(seen.ece, cx);
        }
    }

    /// Advanced within recovery (`tcp_try_undo_partial`); whether to wait for D-SACKs of what is retransmitted.
    fn try_undo_partial(&mut self, prior_una: u64, seen: &Seen, cx: &mut Context) -> bool {
        if self.recovery.has_marker() && self.una >= self.recovery.early && self.original_arrived(seen.echo) {
            self.check_reordering(prior_una);
            if self.queue.retrans_out > 0 {
                return true;
            }
            if !self.any_retransmitted() {
                self.recovery.retransmitted_at = None;
            }
            self.undo(Evidence::Timestamp, true, cx);
            self.keep_open();
        }
        false
    }

    /// After a time-out (`tcp_process_loss`).
    fn process_loss(&mut self, dup_ack: bool, seen: &Seen, cx: &mut Context) {
        let recovered = self.una >= self.recovery.high;
        if seen.advanced && self.try_undo_loss(false, seen.echo, cx) {
            return;
        }
        if self.recovery.f_rto {
            // RFC 5682 section 3.1, step 3b: data that was sent before the time-out arrived.
            if seen.original_delivered && self.try_undo_loss(true, seen.echo, cx) {
                return;
            }
            if self.next > self.recovery.high {
                // Step 3a: the loss was real.
                if seen.sacked || dup_ack {
                    self.recovery.f_rto = false;
                }
            } else if seen.advanced && !recovered {
                // Step 2b.
                self.recovery.high = self.next;
                if self.buffered() > 0 && self.window > self.next - self.una {
                    self.recovery.new_data_first = true;
                    return;
                }
                self.recovery.f_rto = false;
            }
        }
        if recovered {
            self.end_recovery(seen.echo, cx);
            return;
        }
        if !self.sack {
            if self.next > self.recovery.high && dup_ack {
                self.add_dup_ack(true);
            } else if seen.advanced {
                self.queue.sacked_out = 0;
            }
        }
    }

    /// The acknowledgement stopped at a segment that was selectively acknowledged: the receiver may have dropped it
    /// (`tcp_check_sack_reneging`). It is given a moment before all is sent again.
    fn check_reneging(&mut self, seen: &mut Seen, cx: &Context) -> bool {
        let reneged = self.sack && seen.advanced && self.queue.front().is_some_and(|first| first.has(SACKED));
        if reneged {
            let delay = (self.path.srtt.unwrap_or(Span::ZERO) / 2).max(Span::from_millis(10));
            self.arm(Timer::Retransmit, cx.now + delay);
            seen.set_timer = false;
        }
        reneged
    }

    /// Without SACK, each duplicate acknowledgement tells of one segment that left the network (`tcp_add_reno_sack`).
    fn add_dup_ack(&mut self, dup_ack: bool) {
        if !self.sack && dup_ack {
            let prior = self.queue.sacked_out;
            self.queue.sacked_out += 1;
            self.limit_dup_acks(0);
            self.rate.delivered += u64::from(self.queue.sacked_out.saturating_sub(prior));
        }
    }

    /// Without SACK: three duplicates, or a partial acknowledgement, tell that the first segment is lost (RFC 6582;
    /// `tcp_newreno_mark_lost`).
    fn mark_head_lost(&mut self, advanced: bool) {
        let begins = !matches!(self.recovery.phase, Phase::Recovery | Phase::Loss);
        if (begins && self.queue.sacked_out >= self.rack.reordering)
            || (self.recovery.phase == Phase::Recovery && advanced)
        {
            let first = self.queue.ids().start;
            if self.queue.mark_lost(first).is_some() {
                self.rate.lost += 1;
                self.stats.lost += 1;
            }
        }
    }

    /// An acknowledgement while a tail loss probe is out (RFC 8985 section 7.4; `tcp_process_tlp_ack`).
    pub(crate) fn process_probe(&mut self, ack: u64, seen: &Seen, cx: &mut Context) {
        if self.rack.probe_end == 0 || ack < self.rack.probe_end {
            return;
        }
        if !self.rack.probe_retransmitted || seen.d_sack_of_probe {
            self.rack.probe_end = 0;
        } else if ack > self.rack.probe_end {
            // More than the probe was acknowledged and no D-SACK came: the probe repaired a loss.
            self.stats.loss_probe_recoveries += 1;
            self.begin_reduction(Sign::Loss, cx);
            self.enter_phase(Phase::Cwr);
            self.keep_open();
        } else if !(seen.advanced || seen.not_duplicate || seen.sacked) {
            self.rack.probe_end = 0;
        }
    }

    // Timers.

    /// Processes the expired timer of the sender; returns whether the connection survives.
    pub(crate) fn on_timer(&mut self, cx: &mut Context) -> bool {
        let timer = self.timer;
        self.disarm();
        self.touch();
        match timer {
            Timer::Idle => {}
            Timer::Retransmit => {
                if !self.queue.is_empty() {
                    return self.on_retransmission_timeout(cx);
                }
            }
            Timer::Reorder => self.on_reorder_timeout(cx),
            Timer::LossProbe => {
                if self.rack.probe_end == 0 && !self.queue.is_empty() {
                    self.forced = Forced::LossProbe;
                } else {
                    self.set_timer(Timer::LossProbe);
                    self.rearm_rto(cx.now);
                }
            }
            Timer::WindowProbe => {
                if self.retries >= u32::from(self.retries_max) {
                    return false;
                }
                self.retries += 1;
                self.backoff += 1;
                self.forced = Forced::WindowProbe;
                self.arm(Timer::WindowProbe, cx.now + self.probe_interval());
            }
        }
        true
    }

    /// `tcp_rack_reo_timeout`.
    fn on_reorder_timeout(&mut self, cx: &mut Context) {
        let prior_in_flight = self.queue.in_flight();
        let prior_lost = self.rate.lost;
        self.detect_loss(cx);
        if self.queue.in_flight() != prior_in_flight && self.recovery.phase != Phase::Recovery {
            self.enter_recovery(false, cx);
            let sample = AckSample {
                acked: 0,
                delivered: 1,
                delivered_ce: 0,
                lost: (self.rate.lost - prior_lost) as u32,
                prior_in_flight,
                in_flight: self.queue.in_flight(),
                advanced: false,
                cwnd_limited: true,
                ece: false,
                phase: Phase::Recovery,
                rtt: None,
                una: self.una,
                next: self.next,
                rate: RateSample {
                    total_delivered: self.rate.delivered,
                    total_lost: self.rate.lost,
                    ..RateSample::default()
                },
            };
            self.controller.on_ack(&sample, &mut cx.controller(&self.path));
            self.limits = self.controller.limits();
        }
        self.set_timer(Timer::Reorder);
        self.rearm_rto(cx.now);
    }

    /// `tcp_retransmit_timer`, `tcp_enter_loss`.
    fn on_retransmission_timeout(&mut self, cx: &mut Context) -> bool {
        if self.retries > 0
            && let Some(since) = self.recovery.retransmitted_at
            && cx.now.saturating_since(since) >= give_up_after(self.retries_max)
        {
            return false;
        }
        self.stats.timeouts += 1;
        let begins = !matches!(self.recovery.phase, Phase::Recovery | Phase::Loss);
        let again = self.retries > 0;
        self.mark_all_lost(cx.now);
        let quiet = matches!(self.recovery.phase, Phase::Open | Phase::Disorder);
        if quiet || self.recovery.high <= self.una || (self.recovery.phase == Phase::Loss && !again) {
            self.recovery.restores = true;
            self.recovery.marker = Some(self.una);
            self.recovery.needed = self.retransmissions_in_flight();
        }
        self.signal(Sign::Timeout { again }, cx);
        if quiet && self.queue.sacked_out >= 3 {
            // So much was reported and still nothing marked lost: reordering was overestimated.
            self.rack.reordering = self.rack.reordering.min(3);
        }
        self.enter_phase(Phase::Loss);
        self.recovery.high = self.next;
        self.recovery.f_rto = begins || again;
        self.recovery.new_data_first = false;
        self.recovery.hold = false;
        self.rack.probe_end = 0;
        self.queue_cwr = true;
        self.forced = Forced::Head;
        self.retries += 1;
        self.backoff = self.backoff.saturating_add(1).min(32);
        self.arm(Timer::Retransmit, cx.now + self.rto());
        true
    }

    /// All that was sent longer ago than a round trip (`tcp_timeout_mark_lost`), and the first in any case.
    fn mark_all_lost(&mut self, now: Time) {
        let reneged = self.queue.front().is_some_and(|first| first.has(SACKED));
        if reneged {
            self.queue.forget_sacks();
        }
        if !self.sack {
            self.queue.sacked_out = 0;
        }
        let ids = self.queue.ids();
        for id in ids.clone() {
            if (reneged || id == ids.start || self.rack.is_old(self.queue.get(id).sent, now))
                && self.queue.mark_lost(id).is_some()
            {
                self.rate.lost += 1;
                self.stats.lost += 1;
            }
        }
    }
}

/// How long retransmissions go on without an acknowledgement (`retransmits_timed_out`, with the smallest time-out doubled
/// at each try up to the largest).
fn give_up_after(retries: u8) -> Span {
    let min = Span::from_millis(200);
    let doublings = 9;
    if retries <= doublings {
        min * ((2 << retries) - 1)
    } else {
        min * ((2 << doublings) - 1) + RTO_MAX * u64::from(retries - doublings)
    }
}
