//! What a flow wants, from what it used of its share.

use super::parameters::{GAIN, HEADROOM, MARGIN, PERIOD, SMOOTHING, STEP, TELLS, UNKNOWN};
use super::rules::Rule;
use crate::decision::{Decision, Sample};
use units::{Span, Time};

/// The slack of receive windows: at first, its steps and its bound, as parts of the bandwidth-delay product.
const SLACK: f64 = HEADROOM;
const SLACK_STEP: f64 = MARGIN;
const MOST_SLACK: f64 = 1.0;
/// A flow is slow if it used less than this part of its share in a period, and fast again if it used its demand this many
/// times, for which its windows have room.
const USED_BY_SLOW: f64 = 1.0 - TELLS;
const EXCEEDED: f64 = 1.0 + TELLS;
/// A flow that uses this part of what it would have as a fast one is fast.
const USED_BY_FAST: f64 = 1.0 - STEP;
/// A rate that grew by this factor in a period still grows: slow start doubles it each round trip.
const GROWS: f64 = 1.0 + HEADROOM;
/// So many segments more than before say nothing: a flow of 1 Mbit/s has four or five in a period.
const SEGMENTS: f64 = 2.0;
/// A flow does not sleep while its average of delivery, in bytes a second, may count in a window.
const NOTHING: f64 = 1.0;

/// What a flow wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Demand {
    /// It is new, or was silent; a period will show. Most connections are over before.
    Unknown,
    /// Whatever it is given: the flow is fast.
    Everything,
    /// So many bytes a second: the flow is slow.
    Limited(f64),
}

impl Demand {
    /// Returns whether nothing is kept for the flow alone: it is new, or was silent.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Demand::Unknown | Demand::Limited(0.0))
    }
}

/// The state of a flow.
#[derive(Clone, Debug)]
pub(crate) struct BestFlow {
    pub(crate) demand: Demand,
    /// The start of the period, and what had arrived then.
    began: Time,
    arrived: u64,
    /// The rate in the last period.
    pub(crate) last: f64,
    /// The share times the time since the start of the period.
    promised: f64,
    /// The share now.
    pub(crate) share: f64,
    /// What the receive window has beyond the bandwidth-delay product, as part of it.
    pub(crate) slack: f64,
    /// What its share would be if it took everything.
    pub(crate) potential: f64,
    /// Whether the proxy was empty of it at some time in the period.
    ran_empty: bool,
    /// The average of delivery in bytes a second, and what had been delivered at the last update.
    pub(crate) rate: f64,
    delivered: u64,
    /// What had arrived at the last update, and when data arrived last.
    came: (u64, Time),
}

impl BestFlow {
    pub(crate) fn new(now: Time) -> BestFlow {
        BestFlow {
            demand: Demand::Unknown,
            began: now,
            arrived: 0,
            last: 0.0,
            promised: 0.0,
            share: 0.0,
            slack: SLACK,
            potential: 0.0,
            ran_empty: false,
            rate: 0.0,
            delivered: 0,
            came: (0, now),
        }
    }

    /// Begins anew after silence.
    pub(crate) fn restart(&mut self, arrived: u64, now: Time) {
        let BestFlow { rate, delivered, .. } = *self;
        *self = BestFlow { arrived, rate, delivered, ..BestFlow::new(now) };
    }

    /// Begins a period.
    #[cfg(test)]
    pub(crate) fn begin(&mut self, now: Time) {
        (self.began, self.came.1, self.promised) = (now, now, 0.0);
    }

    /// Averages what is delivered, for when the capacity is unknown.
    pub(crate) fn measure(&mut self, delivered: u64, span: f64) {
        if span > 0.0 {
            let rate = delivered.saturating_sub(self.delivered) as f64 / span;
            self.rate += (rate - self.rate) * span / (span + SMOOTHING);
        }
        self.delivered = delivered;
    }

    /// Returns whether updates would change nothing as long as the flow is silent.
    pub(crate) fn rest(&mut self) -> bool {
        let rests = self.rate < NOTHING;
        if rests {
            self.rate = 0.0;
        }
        rests
    }

    /// Observes the flow for `span` seconds, and judges it at the end of a period.
    pub(crate) fn observe(&mut self, sample: &Sample, mss: u32, span: f64, now: Time) {
        self.promised += self.share * span;
        if sample.arrived != self.came.0 {
            self.came = (sample.arrived, now);
        }
        let rtt = sample.wired_rtt().unwrap_or_default();
        // All that has come has passed on, so long ago.
        let silence = if sample.arrived == sample.delivered { now - self.came.1 } else { Span::ZERO };
        self.ran_empty |= sample.held() < u64::from(2 * mss);
        let period = PERIOD.max(rtt * 2);
        if now - self.began < period {
            return;
        }
        let seconds = (now - self.began).as_secs_f64();
        let used = sample.arrived.saturating_sub(self.arrived) as f64 / seconds;
        let promised = self.promised / seconds;
        let some = SEGMENTS * f64::from(mss) / seconds;
        let is_more = |than: f64, by: f64| used > (than * by).max(than + some);
        let grows = is_more(self.last, GROWS);
        let is_limited = used < USED_BY_SLOW * promised && self.ran_empty;
        self.demand = match self.demand {
            Demand::Unknown | Demand::Everything if is_limited && !(grows && Rule::WaitForGrowth.applies()) => {
                Demand::Limited(used)
            }
            // Any flow grows at first, and may just have ended.
            Demand::Unknown if is_limited || (silence > rtt / 2 && Rule::WaitForEnd.applies()) => Demand::Unknown,
            Demand::Unknown | Demand::Everything => Demand::Everything,
            Demand::Limited(_)
                if (Rule::SeeFast.applies() && used > USED_BY_FAST * self.potential) || !self.ran_empty =>
            {
                Demand::Everything
            }
            // Its demand has grown, nobody knows how far.
            Demand::Limited(demand) if Rule::AskAnew.applies() && is_more(demand, EXCEEDED) => Demand::Unknown,
            Demand::Limited(demand) if used > demand => Demand::Limited(used),
            // Nothing is kept for a flow that has become silent: if it goes on, it is as a new one.
            Demand::Limited(_) if Rule::ForgetSilent.applies() && used == 0.0 => Demand::Limited(0.0),
            Demand::Limited(demand) => Demand::Limited(demand + (used - demand) * GAIN),
        };
        // A sender hears of the room that reading makes only with its next acknowledgement: the window must bear that.
        let step = if !Rule::LearnSlack.applies() {
            0.0
        } else if self.ran_empty {
            SLACK_STEP
        } else {
            -SLACK_STEP / 2.0
        };
        self.slack = (self.slack + step).clamp(0.0, MOST_SLACK);
        self.last = used;
        (self.began, self.arrived, self.promised, self.ran_empty) = (now, sample.arrived, 0.0, false);
    }

    /// Returns the settings of a flow whose UE's capacity is unknown: a congestion control rules the radio leg, and the receive
    /// window is twice what passes, so that the proxy holds little.
    pub(crate) fn without_capacity(&self, sample: &Sample, mss: u32) -> Decision {
        let rtt = sample.wired_rtt().unwrap_or_default();
        let window = 2.0 * self.rate * (rtt + PERIOD).as_secs_f64() + f64::from(UNKNOWN * mss);
        Decision {
            receive_window: Some(window as u64),
            receive_buffer: Some(window as u64),
            unsent: Some(u64::from(UNKNOWN * mss)),
            ..Decision::UNLIMITED
        }
    }
}

#[cfg(test)]
mod tests;
