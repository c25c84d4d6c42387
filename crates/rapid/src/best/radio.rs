//! What the radio leg of a UE says of the capacity: how the reports' is corrected, and whose a queue is.

use super::parameters::*;
use super::rules::Rule;
use super::trust::Trust;
use crate::capacity::Capacity;
use units::{Span, Time};

/// The radio delivers at most so many times what reports tell, unless these have turned out too high: they may be too low.
const MOST_REPORTED: f64 = 2.0;
/// A queue is not only ours if it is longer than what our flows have on the leg, by so many seconds of the radio's rate and by
/// this factor: others that count fill as much of it while that holds.
const BEYOND: (f64, f64) = (UNSEEN, 1.0 + STEP);
const SHARED: Span = FADE;
/// To drain a queue, our flows send this part of what was delivered, for so long until the effect is judged. If it is not
/// ours, they try again only later. Fast flows keep at least a part of their pace.
const DRAINING: f64 = 1.0 - HEADROOM;
const LEAST_PACE: f64 = STEP;
/// A queue of so many times the target is drained.
const LONG: f64 = MUCH;
const DRAIN: Span = LONGEST;
const DRAIN_AGAIN: Span = FADE.mul_div(2, 1);
/// Others fill the gap if what is not seen grows by this part of the capacity.
const FILLED: f64 = MARGIN;
/// After a queue that was ours, the capacity is this part of what it was.
const LESS: f64 = 1.0 - MARGIN;
/// While nothing is queued and the UE uses less than the part `SPARE` of the blocks that it could have, a capacity below the
/// reported one comes back by this part.
const BACK_TO_SPARE: f64 = STEP;
const SPARE: f64 = 1.0 - STEP;
/// When a queue has gone, this part of what it took from the capacity comes back at each correction.
const RETURNS: f64 = 2.0 * STEP;
/// A correction that the next reports do not tell, for so many of their periods, was one of the reports.
const UNTOLD: f64 = 2.0;
/// The interval of corrections, their steps, and their bounds.
const CORRECTION: Span = ROUND;
const UP: f64 = 1.0 + PROBE / 2.0;
/// After a rise by this factor without any sign of a queue, the reports are too low, and nobody knows by how much: the capacity rises
/// by larger steps, as long as this part of what should be delivered was in the last interval. Where little is delivered, corrections
/// are as rare as the time constant of averages, and the second step counts.
const LONG_RISE: f64 = HALF_MORE;
const UP_FAST: (f64, f64) = (1.0 + MARGIN, 1.0 + HEADROOM);
const DELIVERED_FAST: f64 = 1.0 - STEP;
/// The most that is promised, as a part of what is delivered.
const PROMISED: f64 = 1.0 + PROBE;
const STRETCH: f64 = 1.0 + PROBE;
/// Below this part of what should be delivered, without a queue, the radio is idle at times.
const IDLE: f64 = 1.0 - 2.0 * PROBE;
/// So many times the least time on the leg is no queue, or so many times the time beside the queues that rare or late reports
/// tell, if that is beyond so many times the least.
const NO_QUEUE: f64 = 2.0;
const UNQUEUED: f64 = HALF_MORE;
const WAITING: f64 = MUCH;
const MOST_STRETCHED: f64 = (1u32 << DOUBLINGS) as f64;
const DOWN: f64 = STEP;
/// The same in a queue that is not long.
const DOWN_SHORT: f64 = DOWN * MARGIN;
/// The part of what was corrected that is given up at each correction while shares are not used, and while the proxy was empty.
const FORGETS: f64 = PROBE / 2.0;
const FALLS_BACK: f64 = PROBE;
/// A radio delivers this part of its capacity at least.
const LEAST_SERVICE: f64 = STEP;
/// In a queue of our own, a capacity of which less than this part is delivered is lowered.
const SHORT: f64 = 1.0 - PROBE;
/// A queue that no report tells may be none: it does not lower the capacity below this part of the reported one.
const LEAST_INFERRED: f64 = 1.0 / FAR;
const BOUNDS: (f64, f64) = (STEP, (1u32 << DOUBLINGS) as f64);
/// What is delivered while a queue stands, the radio can do: a queue lowers the capacity to this part of it at most.
const DRAINED: f64 = 1.0 - HEADROOM;
/// The least target of the radio's queue, in seconds, unless a lower one is set.
const LEAST_TARGET: f64 = SUBFRAME;

/// The state of a UE.
#[derive(Clone, Debug)]
pub(crate) struct BestUe {
    /// Times the reports' capacity is the capacity.
    pub(crate) gain: f64,
    /// By how much it was corrected that no report has told yet, as a logarithm, and the capacity that was last reported.
    untold: f64,
    told: f64,
    /// The gain from which a queue has lowered it, and whether it still does.
    high: f64,
    is_lowered: bool,
    /// The gain when the radio was last seen not to deliver all that is promised.
    risen_from: f64,
    /// Averages in bytes a second: what our flows have delivered, and the payload that the UE has decoded beside it.
    pub(crate) delivered: f64,
    unseen: f64,
    /// Averages over the time of the reports: the payload that the UE has decoded by them, and what it has received of our flows.
    pub(crate) decoded: f64,
    pub(crate) received: f64,
    /// Whether the reports are believed.
    pub(crate) trust: Trust,
    /// When the queue was longer than what our flows have on the leg.
    shared: Option<Time>,
    /// What flows of unknown demand have delivered, as an average in bytes a second, and what the UE used of the block-slots
    /// that it could have, as an average part.
    pub(crate) unknown: f64,
    used: f64,
    /// When `delivered` was updated, and what has been delivered.
    pub(crate) updated: Option<Time>,
    total: u64,
    /// The time of the last report, and when it came, with what the UE had received of our flows then.
    report: Time,
    reported: (Time, u64),
    /// The last correction: its time, and what had been delivered then.
    corrected: Time,
    corrected_total: u64,
    /// Since then: bytes in flight times seconds, the least reported queue in seconds, and whether the proxy was empty.
    in_flight: f64,
    least_queue: Option<f64>,
    ran_empty: bool,
    /// Whether the queue was reported at the last correction, and the time of the last report then.
    is_reported: bool,
    judged: Time,
    /// Whether the capacity is known. While our flows drain what may have been queued before: the time on the leg.
    has_capacity: bool,
    settling: Option<f64>,
    /// While our flows drain a queue: its start. When they may try next.
    draining: Option<Drain>,
    next_drain: Time,
    /// The least average time on the radio leg in seconds, and the windows as a multiple of what it asks for.
    base: Option<f64>,
    pub(crate) stretch: f64,
    /// If reports are rare or late: the time on the leg beside the queue that the last one told, in seconds, and the lesser one
    /// of the last two if that is much more than the least. Acknowledgements may wait for an upload.
    beside: f64,
    unqueued: Option<f64>,
    /// Whether the queue was long at the last correction.
    is_queued: bool,
    /// Whether the shares were all used at the last update, what should then be delivered, and the part of fast flows.
    pub(crate) is_busy: bool,
    pub(crate) expected: f64,
    pub(crate) fast: f64,
}

/// The start of a drain: the time, the queue in seconds, and the rate that is not seen.
#[derive(Clone, Copy, Debug)]
struct Drain {
    since: Time,
    queue: f64,
    unseen: f64,
}

impl Default for BestUe {
    fn default() -> BestUe {
        BestUe {
            gain: 1.0,
            untold: 0.0,
            told: 0.0,
            high: 0.0,
            is_lowered: false,
            risen_from: 1.0,
            delivered: 0.0,
            unseen: 0.0,
            decoded: 0.0,
            received: 0.0,
            trust: Trust::default(),
            shared: None,
            unknown: 0.0,
            used: 1.0,
            updated: None,
            total: 0,
            report: Time::ZERO,
            reported: (Time::ZERO, 0),
            corrected: Time::ZERO,
            corrected_total: 0,
            in_flight: 0.0,
            least_queue: None,
            ran_empty: false,
            is_reported: false,
            judged: Time::ZERO,
            has_capacity: false,
            settling: None,
            draining: None,
            next_drain: Time::ZERO,
            base: None,
            stretch: 1.0,
            beside: 0.0,
            unqueued: None,
            is_queued: false,
            is_busy: false,
            expected: 0.0,
            fast: 0.0,
        }
    }
}

impl BestUe {
    /// Updates the averages: our flows have delivered `new` bytes since the last call, `unknown` of them those of unknown demand,
    /// and have `in_flight`.
    pub(crate) fn measure(&mut self, [new, unknown, in_flight]: [u64; 3], capacity: &mut Capacity, now: Time) {
        self.total += new;
        // Bytes in flight that are not queued are at the UE, or their acknowledgements on the way.
        let queue = capacity.queue(now, FRESH).map_or(in_flight, |queue| queue as u64);
        let received = self.total + in_flight.saturating_sub(queue);
        let Some(before) = self.updated.replace(now) else {
            self.reported = (now, received);
            return;
        };
        let span = (now - before).as_secs_f64();
        if span <= 0.0 {
            return;
        }
        let weight = span / (span + SMOOTHING);
        self.delivered += (new as f64 / span - self.delivered) * weight;
        self.unknown += (unknown as f64 / span - self.unknown) * weight;
        self.used += (capacity.used() - self.used) * weight;
        // What was decoded and what was received must be of the same time: that of the reports since then. Reports that have
        // turned out too high are too high here as well, unless the queue shows that there are others.
        let Some((decoded, made)) = capacity.take_decoded() else { return };
        let span = (now - self.reported.0).as_secs_f64();
        let told = if self.is_shared(now) || !Rule::CorrectUnseen.applies() { 1.0 } else { self.gain.min(1.0) };
        let of_ours = (received as f64 - self.reported.1 as f64) / span;
        let unseen = decoded * PAYLOAD * told - of_ours;
        let weight = span / (span + SMOOTHING);
        self.unseen += (unseen - self.unseen) * weight;
        self.decoded += (decoded * PAYLOAD - self.decoded) * weight;
        self.received += (of_ours - self.received) * weight;
        (self.report, self.reported) = (made, (now, received));
        self.hear(capacity);
    }

    /// Takes back the corrections since the last report that were due to a change that this report tells, too. Together they
    /// would count twice, when another UE begins to send or ends. Frequent reports tell a change at once.
    fn hear(&mut self, capacity: &Capacity) {
        let before = std::mem::replace(&mut self.told, capacity.fair().unwrap_or(0.0));
        if capacity.period() <= CORRECTION || before <= 0.0 || self.told <= 0.0 {
            self.untold = 0.0;
            return;
        }
        let change = (self.told / before).ln().clamp(self.untold.min(0.0), self.untold.max(0.0));
        let change = if Rule::TakeBack.applies() { change } else { 0.0 };
        self.gain = (self.gain / change.exp()).clamp(BOUNDS.0, BOUNDS.1);
        self.untold = (self.untold - change) * (-1.0 / UNTOLD).exp();
    }

    /// Returns what the radio would deliver in bytes a second if it were never idle: a few bytes on an idle radio are no queue,
    /// although little is delivered.
    pub(crate) fn service(&self, capacity: f64) -> f64 {
        let most = capacity / self.gain * if self.gain < 1.0 { 1.0 } else { MOST_REPORTED };
        let most = if Rule::BoundService.applies() { most } else { f64::INFINITY };
        (self.delivered / self.used).min(most).max(self.delivered).max(LEAST_SERVICE * capacity)
    }

    /// Returns whether others have bytes in the queue.
    fn is_shared(&self, now: Time) -> bool {
        Rule::SeeShared.applies() && self.shared.is_some_and(|then| now.saturating_since(then) < SHARED)
    }

    /// Returns the rate of traffic that the proxy does not see, if it counts.
    pub(crate) fn unseen(&self, capacity: f64) -> Option<f64> {
        (self.unseen > UNSEEN * capacity).then_some(self.unseen)
    }

    /// The capacity is unknown: a congestion control rules the radio leg, and its queue does not say what the capacity is.
    pub(crate) fn lose_capacity(&mut self, now: Time) {
        self.begin_interval(now);
        (self.least_queue, self.draining, self.has_capacity, self.settling) = (None, None, false, None);
    }

    /// Takes back what was learnt from reports that turned out wrong.
    pub(crate) fn start_anew(&mut self) {
        (self.gain, self.risen_from, self.untold, self.high, self.is_lowered) = (1.0, 1.0, 0.0, 0.0, false);
        (self.stretch, self.is_busy) = (1.0, false);
    }

    fn begin_interval(&mut self, now: Time) {
        (self.corrected, self.corrected_total, self.in_flight, self.ran_empty) = (now, self.total, 0.0, false);
    }

    /// Observes the radio leg for `span` seconds, and corrects the capacity at the end of an interval.
    pub(crate) fn observe(&mut self, of: &Best, seen: &Seen, span: f64, now: Time) {
        self.in_flight += seen.in_flight as f64 * span;
        self.note_queue(seen, now);
        self.ran_empty |= !seen.has_backlog;
        let interval = now.saturating_since(self.corrected);
        let burst = (seen.segments / seen.service).min(LONGEST.as_secs_f64());
        if interval < CORRECTION.max(Span::from_secs_f64(seen.radio_rtt.max(burst))) {
            return;
        }
        let delivered = (self.total - self.corrected_total) as f64;
        // Of a rare report, the time on the leg must be known, too.
        let needs_time = self.least_queue.is_none() || seen.period > LONGEST;
        if needs_time && delivered <= ENOUGH && interval < LONGEST {
            return;
        }
        let reported = self.least_queue.take();
        self.is_reported = reported.is_some();
        // By Little's law: the time that our bytes spend on the leg.
        let is_known = delivered > ENOUGH || (delivered > 0.0 && interval >= LONGEST);
        let on_leg = is_known.then(|| (self.in_flight / delivered).max(seen.radio_rtt));
        if Rule::Settle.applies() && self.settles(on_leg, interval) {
            return self.begin_interval(now);
        }
        let rate = delivered / interval.as_secs_f64();
        let inferred = self.infer(seen, reported, on_leg, rate);
        if let Some(queue) = reported.or(inferred) {
            let before = self.gain;
            self.correct(of, seen, queue, rate, now);
            self.untold += (self.gain / before).ln();
        }
        let is_missed = |(reported, inferred)| reported > LONG * self.target(of) && inferred < reported / 2.0;
        if Rule::DenyQueue.applies() && seen.period > CORRECTION && reported.zip(inferred).is_some_and(is_missed) {
            // Between two reports, nothing says that a queue has gone.
            self.high = 0.0;
        }
        self.begin_interval(now);
    }

    /// Notes the least reported queue of the interval, and whether it is too long to be ours.
    fn note_queue(&mut self, seen: &Seen, now: Time) {
        let most = BEYOND.0 * seen.service + BEYOND.1 * seen.in_flight as f64;
        if seen.period <= CORRECTION && seen.queue.is_some_and(|bytes| bytes > most) {
            self.shared = Some(now);
        }
        // Flows that are paced alike may send a segment each at the same time. Such a burst is no queue: of several reports, some
        // are made when it has passed; a single one may be made before.
        let burst = if Rule::SparePaired.applies() && seen.period * 2 > CORRECTION { seen.segments } else { 0.0 };
        let queue = seen.queue.map(|bytes| (bytes - burst).max(0.0) / seen.service);
        self.least_queue = match (self.least_queue, queue) {
            (Some(least), Some(queue)) => Some(least.min(queue)),
            (least, queue) => queue.or(least),
        };
    }

    /// Learns the least time on the leg, and what of it is no queue. Returns the queue, in seconds, that the time `on_leg` tells while
    /// `rate` is delivered, if it is known.
    fn infer(&mut self, seen: &Seen, reported: Option<f64>, on_leg: Option<f64>, rate: f64) -> Option<f64> {
        self.base = match (self.base, on_leg) {
            (Some(base), Some(on_leg)) => Some(base.min(on_leg)),
            (base, on_leg) => base.or(on_leg),
        };
        let is_new = std::mem::replace(&mut self.judged, self.report) < self.report;
        let late = seen.late_queue.filter(|_| is_new).map(|bytes| bytes / seen.service);
        if seen.period <= CORRECTION && self.is_reported {
            self.unqueued = None;
        } else if let Some((queue, on_leg)) = reported.or(late).zip(on_leg).filter(|_| Rule::LearnUnqueued.applies()) {
            // A single report may be made between two bursts.
            let before = std::mem::replace(&mut self.beside, on_leg - queue);
            self.unqueued =
                Some(before.min(on_leg - queue)).filter(|time| self.base.is_some_and(|base| *time > WAITING * base));
        }
        // Without a reported queue, what is beyond twice the least is one: retransmissions and grants take their time, too.
        let none = self.unqueued.map_or(self.base.map(|base| NO_QUEUE * base), |time| Some(UNQUEUED * time));
        // A segment of each flow may be in a burst, or have arrived while its acknowledgement is delayed.
        let burst = if Rule::SpareBurst.applies() { seen.segments } else { 0.0 };
        let on_leg = on_leg.filter(|_| Rule::InferQueue.applies());
        on_leg.zip(none).map(|(on_leg, none)| ((on_leg - none) * rate - burst) / seen.service)
    }

    /// Drains what was queued before the capacity was known, if no report tells the queue: our flows slow down as long as that
    /// shortens the time on the leg. Returns whether they do; meanwhile nothing tells the least time and the capacity.
    fn settles(&mut self, on_leg: Option<f64>, interval: Span) -> bool {
        let before = if self.has_capacity { self.settling } else { Some(f64::INFINITY) };
        self.has_capacity = true;
        let must = (1.0 - DRAINING) * interval.as_secs_f64() / 2.0;
        let shrinks = |on_leg: &f64| before.is_some_and(|before| before - on_leg > must);
        self.settling = on_leg.filter(|on_leg| !self.is_reported && shrinks(on_leg));
        self.settling.is_some()
    }

    /// Corrects the capacity and the windows by the `queue` that stood in the radio, in seconds, while `rate` was
    /// delivered.
    fn correct(&mut self, of: &Best, seen: &Seen, queue: f64, rate: f64, now: Time) {
        let target = self.target(of);
        self.is_queued = queue > 2.0 * target;
        let (delivered, expected) = (self.delivered, self.expected);
        let is_short = |part: f64| delivered < part * expected;
        let possible = (seen.service / seen.capacity * self.gain).min(1.0);
        let has_unseen = self.unseen(seen.capacity).is_some();
        let is_empty = queue < target / 2.0;
        let fast_step = self.rises(seen, is_empty, rate, now);
        if !self.is_busy {
            self.gain += (1.0 - self.gain) * if Rule::Forget.applies() { FORGETS } else { 0.0 };
        } else if Rule::GoBack.applies() && (has_unseen || self.is_shared(now)) {
            // The queue may be somebody else's: only the reports say what the capacity is.
            self.gain += (1.0 - self.gain) * BACK;
        } else if self.is_queued {
            let excess = (queue - 2.0 * target) / (seen.radio_rtt + target);
            let most = (1.0 - DRAINED * delivered / seen.capacity).max(0.0);
            if !std::mem::replace(&mut self.is_lowered, true) {
                // A queue on the way back says that there is less than before.
                let is_back = self.gain >= LESS * self.high;
                self.high = if is_back { self.gain } else { (self.high + self.gain) / 2.0 };
            }
            self.lower((DOWN * excess.min(1.0)).min(if Rule::BoundFall.applies() { most } else { 1.0 }));
        } else if !is_empty {
            if Rule::FallShort.applies() && is_short(SHORT) {
                self.lower(DOWN_SHORT);
            }
        } else if let Some(step) = fast_step.filter(|_| Rule::RiseFast.applies()) {
            self.gain *= step;
        } else if !is_short(DELIVERED) {
            // What was delivered bounds what is promised next.
            let most = PROMISED * delivered / seen.capacity;
            self.gain *= if Rule::BoundRise.applies() { UP.min(most.max(1.0)) } else { UP };
        } else if Rule::FallBack.applies() && is_short(SHORT) && self.gain > 1.0 && self.ran_empty {
            // Nothing says that there is more than reported.
            self.gain += (1.0 - self.gain) * FALLS_BACK;
        }
        if Rule::ReturnSpare.applies() && self.is_busy && self.is_reported && queue < target / 2.0 && self.used < SPARE
        {
            // The reports tell of blocks to spare and of no queue: what these would carry is there.
            self.gain += ((possible - self.gain) * BACK_TO_SPARE).max(0.0);
        }
        if queue < target / 2.0 {
            self.is_lowered = false;
            if Rule::Return.applies() && self.is_busy && !has_unseen {
                self.gain += ((self.high - self.gain) * RETURNS).max(0.0);
            }
        }
        self.drain(of, seen, queue, now);
        if self.is_queued {
            self.stretch = (self.stretch * (1.0 - DOWN / 2.0)).max(1.0);
        } else if Rule::Stretch.applies() && self.is_busy && queue < target / 2.0 && is_short(IDLE) && !self.ran_empty {
            // Data waits, and the radio is idle at times: the windows are too small for its round-trip times.
            self.stretch = (self.stretch * STRETCH).min(MOST_STRETCHED);
        }
        self.gain = self.gain.clamp(BOUNDS.0, BOUNDS.1);
    }

    /// Returns the step by which the capacity rises next if it has risen for long without any sign that the radio is full, as when
    /// reports are far too low. At the first such sign, what was delivered bounds it.
    fn rises(&mut self, seen: &Seen, is_empty: bool, rate: f64, now: Time) -> Option<f64> {
        let is_rare = now.saturating_since(self.corrected).as_secs_f64() >= SMOOTHING;
        let step = if is_rare { UP_FAST.1 } else { UP_FAST.0 };
        let was_rising = self.gain > LONG_RISE * self.risen_from;
        let must = if was_rising { DELIVERED_FAST } else { SHORT };
        let goes_on = self.is_busy && is_empty && rate.max(self.delivered) >= must * self.expected;
        if !goes_on {
            if Rule::EndRise.applies() && was_rising && self.is_busy && seen.late_queue.is_none() {
                self.gain *= (PROMISED * rate.max(self.delivered) / seen.capacity).min(1.0);
            }
            self.risen_from = self.gain;
        }
        (goes_on && was_rising && seen.late_queue.is_none()).then_some(step)
    }

    /// Lowers the capacity by a part.
    fn lower(&mut self, part: f64) {
        let least =
            if self.is_reported || !Rule::BoundInferred.applies() { 0.0 } else { self.gain.min(LEAST_INFERRED) };
        self.gain = (self.gain * (1.0 - part)).max(least);
    }

    /// Finds out whose a long queue is that may be our own or that of traffic that the proxy does not see: our flows slow down
    /// for a moment. If the queue shrinks as it then must, it is ours, and they go on; if others fill the gap, it is theirs.
    fn drain(&mut self, of: &Best, seen: &Seen, queue: f64, now: Time) {
        if !self.is_queued || self.unseen(seen.capacity).is_none() {
            if let Some(drain) = self.draining.take()
                && self.report > drain.since
                && !self.has_filled(&drain, seen)
            {
                // It was ours: there is less than reported.
                self.gain *= LESS;
            }
            return;
        }
        match self.draining {
            None if Rule::Drain.applies() && now >= self.next_drain && queue > LONG * self.target(of) => {
                self.draining = Some(Drain { since: now, queue, unseen: self.unseen });
            }
            None => {}
            Some(drain) => {
                let span = now.saturating_since(drain.since);
                if span < DRAIN {
                    return;
                }
                let must = ((1.0 - DRAINING) * span.as_secs_f64()).min(drain.queue) / 2.0;
                // Whether others fill the gap, a report must tell.
                let is_told = self.report > drain.since;
                if !is_told || drain.queue - queue <= must || self.has_filled(&drain, seen) {
                    self.draining = None;
                    self.next_drain = now + DRAIN_AGAIN;
                }
            }
        }
    }

    /// Returns whether others have taken what our flows left.
    fn has_filled(&self, drain: &Drain, seen: &Seen) -> bool {
        self.unseen > drain.unseen + FILLED * seen.capacity
    }

    /// Returns the time that a segment and its acknowledgement take on the leg beside our queue, in seconds, if it is known.
    pub(crate) fn leg(&self) -> Option<f64> {
        self.unqueued.or(self.base)
    }

    /// Returns the queue that is kept in the radio, in seconds: not more than its own time, so that a fast radio stays fast.
    /// That takes a reported queue: an inferred one is too rough.
    pub(crate) fn target(&self, of: &Best) -> f64 {
        let own = self
            .base
            .filter(|_| Rule::ShortenTarget.applies() && self.is_reported)
            .map_or(f64::INFINITY, |base| base.max(LEAST_TARGET));
        of.radio_target.as_secs_f64().min(own)
    }

    /// Returns by what the pacing of fast flows is multiplied.
    pub(crate) fn pace(&self) -> f64 {
        let drains = self.settling.is_some() || self.draining.is_some();
        if !drains || self.fast <= 0.0 {
            return PACING;
        }
        // Slow flows are not slowed down.
        let slow = self.expected - self.fast;
        ((DRAINING * self.delivered - slow) / self.fast).clamp(LEAST_PACE, DRAINING)
    }
}

/// What is seen of the radio leg at an update.
pub(crate) struct Seen {
    /// The capacity in payload, in bytes a second.
    pub(crate) capacity: f64,
    /// What the radio would deliver if it were never idle, in bytes a second.
    pub(crate) service: f64,
    /// Bytes of our flows in flight.
    pub(crate) in_flight: u64,
    /// A segment of each flow that has data on its way, in bytes.
    pub(crate) segments: f64,
    /// The least round-trip time in seconds.
    pub(crate) radio_rtt: f64,
    /// The reported queue in bytes, if there is a fresh report of it, and the interval between reports.
    pub(crate) queue: Option<f64>,
    /// The reported queue in bytes, if the report is late.
    pub(crate) late_queue: Option<f64>,
    /// See `queue`.
    pub(crate) period: Span,
    /// Whether data waits in the proxy.
    pub(crate) has_backlog: bool,
}

#[cfg(test)]
mod tests;
