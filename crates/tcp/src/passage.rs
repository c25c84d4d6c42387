//! A PEP's reports on data in flight: data that has passed it, data missing there, and early retransmissions.
//!
//! Source: Krämer et al., "Towards Multi-Domain Congestion Control in Next-Generation Networks" (WCNC 2019), section IV-B;
//! `docs/src/pep-messages.md` for what makes a report acceptable.

pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::queue::{ANNOUNCED, EVER_RETRANSMITTED, Queue, SACKED};
use crate::ranges::Range;
use crate::sender::Sender;
use cc::{Controller, Passage, Phase, Signal};
use state::{ANNOUNCE_FIRST, ANNOUNCE_LAST, Pep};
use units::{Span, Time};
use wire::Timestamps;
use wire::report::Report;

impl<C: Controller> Sender<C> {
    /// Returns whether the next data segment announces that the sender understands reports.
    #[inline]
    pub(crate) fn announcement_is_due(&self, now: Time) -> bool {
        let Some(pep) = &self.pep else { return false };
        pep.heard && now >= pep.announce_at && self.controller.listens().misses_passages
    }

    /// Records that a data segment with an announcement is sent.
    pub(crate) fn note_announcement(&mut self, now: Time) {
        if let Some(pep) = &mut self.pep {
            pep.announce_at = now + pep.announce_after;
            pep.announce_after = (pep.announce_after * 2).min(ANNOUNCE_LAST);
        }
    }

    /// Processes a PEP's report in a segment with the acknowledgement number `base`; returns whether it was acceptable.
    pub(crate) fn on_report(&mut self, base: u32, report: &Report, stamps: Timestamps, cx: &mut Context) -> bool {
        let Some(mut pep) = self.pep.take() else { return false };
        let is_believed = match pep.key {
            Some(key) => report.is_authentic(key, base, stamps),
            None => !report.is_tagged(),
        };
        let taken = if is_believed { self.take_report(&mut pep, base, report, stamps.echo, cx) } else { None };
        self.pep = Some(pep);
        if let Some(lost) = taken.filter(|&lost| lost > 0) {
            self.rate.lost += u64::from(lost);
            self.stats.lost += u64::from(lost);
            if !matches!(self.recovery.phase, Phase::Recovery | Phase::Loss) {
                self.enter_recovery(false, cx);
                let first = self.queue.next_lost().map(|id| self.queue.get(id).end());
                self.recovery.early = first.unwrap_or(0);
            }
        }
        taken.is_some()
    }

    /// Applies a report and returns the number of segments that it marked lost, or `None` if it is not acceptable.
    fn take_report(&mut self, pep: &mut Pep, base: u32, report: &Report, echo: u32, cx: &mut Context) -> Option<u32> {
        let offset = |number: u32| self.offset(base.wrapping_add(number));
        let (from, through) = (offset(report.from)?, offset(report.through)?);
        let was_sent = crate::millis(cx.now).wrapping_sub(echo) as i32 >= 0;
        let is_news = echo.wrapping_sub(pep.echo) as i32 >= 0;
        if !report.is_sound() || through <= from || through > self.next || !was_sent || !is_news {
            return None;
        }
        let mut missing = [Range::default(); wire::report::RANGES];
        for (range, block) in missing.iter_mut().zip(report.missing()) {
            *range = Range::new(offset(block.start)?.max(self.una), offset(block.end)?);
        }
        let missing = &missing[..report.missing().len()];
        pep.echo = echo;
        (pep.heard, pep.announce_at, pep.announce_after) = (true, cx.now, ANNOUNCE_FIRST);
        let limits = self.limits;

        let (mut at, mut bytes, mut newest) = (from.max(self.una), 0, None);
        let missing_below = pep.missing_below;
        let ends = missing.iter().map(|range| (range.start, range.end)).chain([(through, through)]);
        for (end, next) in ends {
            let queue = &mut self.queue;
            bytes += pep.pass(Range::new(at, end), |piece| {
                newest = Some(piece.end);
                if piece.start < missing_below {
                    for id in queue.within(&piece) {
                        queue.get_mut(id).flags &= !ANNOUNCED;
                    }
                }
            });
            at = next.max(at);
        }
        let last = newest.and_then(|end| self.queue.first_from(end).checked_sub(1));
        let last = last.filter(|id| self.queue.ids().contains(id)).map(|id| self.queue.get(id));
        let rtt = last.filter(|last| !last.has(EVER_RETRANSMITTED)).map(|last| cx.now.saturating_since(last.sent));

        let (mut announced, mut lost) = (0, 0);
        for range in missing.iter().filter(|range| !range.is_empty()) {
            pep.missing_below = pep.missing_below.max(range.end);
            for id in self.queue.within(range) {
                let record = *self.queue.get(id);
                if record.has(SACKED) {
                    continue;
                }
                announced += u32::from(!record.has(ANNOUNCED));
                self.queue.get_mut(id).flags |= ANNOUNCED;
                // What left after the newest segment that has passed may still be on its way to the PEP.
                let age = echo.wrapping_sub(crate::millis(record.sent)) as i32;
                let is_missing = age > 0 || (age == 0 && !record.has(EVER_RETRANSMITTED));
                lost += u32::from(pep.retransmit && is_missing && self.queue.mark_lost(id).is_some());
            }
        }
        self.tell_passage(pep, true, bytes, announced, rtt, cx);
        if lost > 0 || self.limits != limits {
            self.touch();
        }
        Some(lost)
    }

    /// Counts data acknowledged since `prior_una` as passed, whether it was reported or not.
    #[inline]
    pub(crate) fn pass_acknowledged(&mut self, prior_una: u64, cx: &mut Context) {
        let Some(mut pep) = self.pep.take() else { return };
        let known = pep.passed.bytes();
        pep.passed.forget_below(self.una);
        let bytes = (self.una - prior_una).saturating_sub(known - pep.passed.bytes());
        if bytes > 0 {
            self.tell_passage(&mut pep, false, bytes, 0, None, cx);
        }
        self.pep = Some(pep);
    }

    fn tell_passage(
        &mut self,
        pep: &mut Pep,
        reported: bool,
        bytes: u64,
        missing: u32,
        rtt: Option<Span>,
        cx: &mut Context,
    ) {
        let passage = Passage {
            reported,
            passed: pep.segments(bytes, self.path.mss),
            missing,
            in_flight: self.queue.in_flight(),
            cwnd_limited: self.is_cwnd_limited(),
            rtt,
            una: pep.passed.first().filter(|first| first.start <= self.una).map_or(self.una, |first| first.end),
            next: self.next,
        };
        self.on_signal(&Signal::Passage(passage), cx);
    }

    /// Whether something was marked lost since the controller last heard of a loss, and all of it had been announced. It
    /// hears now.
    pub(crate) fn was_announced(&mut self) -> bool {
        let Some(pep) = &mut self.pep else { return false };
        let Queue { announced, unannounced, .. } = self.queue;
        pep.filtered = pep.unannounced == unannounced && pep.announced != announced;
        (pep.unannounced, pep.announced) = (unannounced, announced);
        pep.filtered
    }

    /// Whether the controller was told of announced losses only, and others have been found since.
    pub(crate) fn is_understated(&self) -> bool {
        self.pep.as_ref().is_some_and(|pep| pep.filtered && pep.unannounced != self.queue.unannounced)
    }
}
