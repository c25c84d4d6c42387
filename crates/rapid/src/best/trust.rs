//! How far the feed of a UE is believed: as long as what the radio leg delivers agrees with it.
//!
//! `radio.rs` corrects capacities that are wrong by a small factor. A feed that is further from what is measured is a fault of its
//! source: then the UE's flows are controlled as if there were no reports, which bounds the harm by that of having none. It is
//! believed again when it has agreed with a busy radio leg for a while.

use super::parameters::{DOUBLINGS, ENOUGH, FADE, FAR, HEADROOM, LATE, LONGEST, UNCLEAR};
use super::rules::Rule;
use crate::feed::Doubt;
use units::{Span, Time};

/// A feed is too low if more than this many times its capacity is delivered, or the UE has received more than this many times
/// the bytes that it says were decoded. Fitted: `radio.rs` corrects a capacity of half the true one within seconds.
const TOO_LOW: f64 = FAR;
/// It is too high if less than this part of what it lets the proxy promise is delivered, and the time on the radio leg is more than so
/// many times the least.
const TOO_HIGH: f64 = 1.0 / FAR;
const QUEUED: f64 = 2.0;
/// Time for which a feed must contradict what is measured, if its reports are not believed for longer.
const PERSISTS: Span = LONGEST;
/// A loss may be under repair, which takes a round trip or, at most, this time.
const LONGEST_REPAIR: Span = LATE;
/// A feed is too high only after the time [`UNCLEAR`] if there is no queue, or if the reports do not tell that this part of the
/// capacity is used: the radio leg may be idle for other reasons.
const FULL: f64 = 1.0 - HEADROOM;
/// A feed is believed again once it has agreed for this time with a radio leg that was always busy: its capacity was between these
/// parts of what was delivered. Disagreement takes from that time what agreement adds. Each new doubt doubles the time, up to
/// [`DOUBLINGS`] times.
const AGREES: Span = FADE.mul_div(2, 1);
const AGREEING: (f64, f64) = (1.0 / FAR, FAR);
/// Deliveries below this, in bytes a second, say nothing.
const LITTLE: f64 = ENOUGH;

/// What is seen of a UE at an update. Rates are averages of payload in bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// The capacity that the reports tell, uncorrected.
    pub(crate) told: f64,
    /// What our flows have delivered.
    pub(crate) delivered: f64,
    /// What the UE has received of our flows, and what the reports say that it has decoded, in the time of the reports.
    pub(crate) received: f64,
    /// See `received`.
    pub(crate) decoded: f64,
    /// What was promised to our flows, if these took all of it.
    pub(crate) promised: Option<f64>,
    /// Whether data for the UE waits in the proxy.
    pub(crate) has_backlog: bool,
    /// The time that our bytes spend on the radio leg, the round-trip time of their acknowledgements, and the least one, in seconds.
    pub(crate) on_leg: f64,
    /// See `on_leg`.
    pub(crate) rtt: f64,
    /// See `on_leg`.
    pub(crate) least: f64,
    /// For how long a report is believed.
    pub(crate) believed: Span,
}

/// Whether a feed is believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    doubt: Option<Doubt>,
    /// Since when each has been seen without interruption.
    low: Option<Time>,
    high: Option<Time>,
    /// As `high`, with a queue that leaves no doubt.
    clear: Option<Time>,
    /// The seconds for which a feed in doubt has agreed with what is measured, and how often it was in doubt before.
    agreed: f64,
    doubts: u32,
}

impl Trust {
    /// Returns why the feed is not believed, if it is not.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// The reports are late, so they neither agree nor disagree with what is measured now.
    pub(crate) fn lapse(&mut self) {
        (self.low, self.high, self.clear) = (None, None, None);
    }

    /// Judges the feed by what was seen for `span` seconds. Returns whether it is believed again.
    pub(crate) fn judge(&mut self, seen: &Evidence, span: f64, now: Time) -> bool {
        let counts = seen.delivered > LITTLE;
        let exceeds = |rate: f64, told: f64| counts && rate > TOO_LOW * told;
        // Some feeds do not tell what was decoded.
        let is_low = exceeds(seen.delivered, seen.told)
            || (Rule::DoubtReceived.applies() && seen.decoded > 0.0 && exceeds(seen.received, seen.decoded));
        if self.doubt.is_some() {
            let (least, most) = (AGREEING.0 * seen.delivered, AGREEING.1 * seen.delivered);
            let agrees = (least..=most).contains(&seen.told) && !is_low;
            if counts && seen.has_backlog {
                self.agreed = (self.agreed + if agrees { span } else { -span }).max(0.0);
            }
            let is_believed = self.agreed >= AGREES.as_secs_f64() * f64::from(1 << self.doubts.min(DOUBLINGS));
            if is_believed {
                *self = Trust { doubts: self.doubts + 1, ..Trust::default() };
            }
            return is_believed;
        }
        let arrives = seen.delivered.max(seen.received);
        let is_high = seen.promised.is_some_and(|promised| arrives < TOO_HIGH * promised);
        // Reports that tell of a radio at rest may be right: acknowledgements may wait for an upload.
        let is_full = seen.decoded > FULL * seen.told || !Rule::DoubtFull.applies();
        let is_clear = is_high && is_full && seen.on_leg > QUEUED * seen.least;
        let lasts = |since: &mut Option<Time>, is_seen: bool, least: Span| {
            *since = if is_seen { since.or(Some(now)) } else { None };
            since.is_some_and(|since| now - since >= least.max(seen.believed))
        };
        let is_low = lasts(&mut self.low, is_low, PERSISTS);
        let repaired = Span::from_secs_f64(seen.rtt).min(LONGEST_REPAIR);
        let least = if Rule::DoubtRepair.applies() { PERSISTS.max(repaired) } else { PERSISTS };
        let is_clearly_high = lasts(&mut self.clear, is_clear, least) && Rule::DoubtHigh.applies();
        if is_clearly_high || (lasts(&mut self.high, is_high, UNCLEAR) && Rule::DoubtUnclear.applies()) {
            self.doubt = Some(Doubt::TooHigh);
        } else if is_low && Rule::DoubtLow.applies() {
            self.doubt = Some(Doubt::TooLow);
        }
        false
    }
}

#[cfg(test)]
mod tests;
