//! The policy `best`: max-min shares of rate, windows that count what the proxy holds, and a capacity that the radio leg
//! corrects.
//!
//! What differs from the paper:
//! 1. *Rates* are shared, not windows: windows of flows with different round-trip times do not add up.
//! 2. A slow flow's windows exceed its demand, and it is slow until it uses them, so that it does not take the share of the
//!    fast flows back at each period.
//! 3. A flow has never more than its bandwidth-delay product and a small target in the wired leg and the proxy together: data
//!    that waits in the proxy shrinks the window at once. If only the next update shrank it, a burst that arrives between two
//!    updates would open the window for another one, and so on each round trip.
//! 4. The capacity of the reports is corrected by what the radio leg does ([`BestUe::correct`]): a queue of our own that
//!    grows says that it is too high, an empty one while all is used that it is too low. This bears wrong and slow reports.
//! 5. A report is believed for three periods. Then its capacity fades to what is delivered, and in the end the proxy lifts
//!    all limits.
//! 6. What the UE decodes beyond our flows (UDP, QUIC) counts as one more flow.

use crate::capacity::Capacity;
use crate::{Category, Config, Decision, Flow, Sample, State, Ue, rate, share};
use slab::Slab;
use units::{Span, Time};

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The queue that fast flows keep in the radio, beyond its least time for a packet and up to that time: what its
    /// scheduler needs to fill its transport blocks.
    pub radio_target: Span,
    /// What a flow keeps in the proxy, in time at its rate.
    pub proxy_target: Span,
    /// How much a slow flow's windows exceed its demand, as part of it.
    pub headroom: f64,
}

impl Default for Best {
    fn default() -> Best {
        Best { radio_target: Span::from_millis(5), proxy_target: Span::from_millis(2), headroom: 0.25 }
    }
}

/// The slack of receive windows: at first, its steps and its bound, as parts of the bandwidth-delay product.
const SLACK: f64 = 0.25;
const SLACK_STEP: f64 = 0.05;
const MOST_SLACK: f64 = 1.0;
/// The shortest period over which a flow's demand is measured.
const PERIOD: Span = Span::from_millis(50);
/// A flow is slow if it used less than this part of its share in a period, and fast again if it used its demand this many
/// times, for which its windows have room.
const USED_BY_SLOW: f64 = 0.85;
const EXCEEDED: f64 = 1.15;
/// A flow that uses this part of what it would have as a fast one is fast.
const USED_BY_FAST: f64 = 0.9;
/// A rate that grew by this factor in a period still grows: slow start doubles it each round trip.
const GROWS: f64 = 1.25;
/// Traffic that the proxy does not see counts from this part of the capacity.
const UNSEEN: f64 = 0.03;
/// Pacing above the share: the window limits, pacing only spreads.
const PACING: f64 = 1.05;
/// To drain a queue, our flows send this part of what was delivered, for so long until the effect is judged. If it is not
/// ours, they try again only later.
const DRAINING: f64 = 0.75;
/// A queue of so many times the target is drained.
const LONG: f64 = 4.0;
const DRAIN: Span = Span::from_millis(200);
const DRAIN_AGAIN: Span = Span::from_secs(2);
/// Others fill the gap if what is not seen grows by this part of the capacity.
const FILLED: f64 = 0.05;
/// After a queue that was ours, the capacity is this part of what it was; it comes back by this part at each correction.
const LESS: f64 = 0.95;
const BACK: f64 = 0.001;
/// The part of a full packet that is payload: beside it there are the headers of IPv4, TCP with timestamps, PDCP, RLC and MAC.
const PAYLOAD: f64 = 1448.0 / (1448.0 + 62.0);
/// The interval of corrections, their steps, and their bounds.
const CORRECTION: Span = Span::from_millis(20);
const UP: f64 = 1.01;
const STRETCH: f64 = 1.02;
/// Below this part of what should be delivered, without a queue, the radio is idle at times.
const IDLE: f64 = 0.96;
const MOST_STRETCHED: f64 = 4.0;
const DOWN: f64 = 0.1;
/// The part of what should be delivered that must be, for a capacity to be raised.
const DELIVERED: f64 = 0.992;
/// In a queue of our own, a capacity of which less than this part is delivered is lowered.
const SHORT: f64 = 0.98;
const BOUNDS: (f64, f64) = (0.1, 8.0);
/// The bytes from which an average time on the leg counts.
const ENOUGH: f64 = 20_000.0;
/// A reported queue older than this says nothing about the present.
const FRESH: Span = Span::from_millis(50);
/// The least window without a capacity, in segments.
const UNKNOWN: u32 = 40;
/// The least target of the radio's queue, in seconds, unless a lower one is set.
const LEAST_TARGET: f64 = 0.001;
/// The time constant of the averages of delivery.
const SMOOTHING: f64 = 0.1;
/// How long a capacity without reports fades before it is unknown.
const FADE: Span = Span::from_secs(1);
/// The radio leg's round-trip time before it is known.
const RADIO_RTT: Span = Span::from_millis(20);

/// The state of a UE.
#[derive(Clone, Debug)]
pub(crate) struct BestUe {
    /// Times the reports' capacity is the capacity.
    gain: f64,
    /// Averages in bytes a second: what our flows have delivered, and the payload that the UE has decoded beside it.
    delivered: f64,
    unseen: f64,
    /// When `delivered` was updated, and what had been delivered then.
    updated: Option<Time>,
    total: u64,
    /// The time of the last report, and when it came, with what had been delivered then.
    report: Time,
    reported: (Time, u64),
    /// The last correction: its time, and what had been delivered then.
    corrected: Time,
    corrected_total: u64,
    /// Since then: bytes in flight times seconds, the least reported queue in seconds, and whether the proxy was empty.
    in_flight: f64,
    least_queue: Option<f64>,
    ran_empty: bool,
    /// While our flows drain a queue: its start. When they may try next.
    draining: Option<Drain>,
    next_drain: Time,
    /// The least average time on the radio leg in seconds, and the windows as a multiple of what it asks for.
    base: Option<f64>,
    stretch: f64,
    /// Whether the queue was long at the last correction.
    is_queued: bool,
    /// Whether the shares were all used at the last update, and what should then be delivered.
    is_busy: bool,
    expected: f64,
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
            delivered: 0.0,
            unseen: 0.0,
            updated: None,
            total: 0,
            report: Time::ZERO,
            reported: (Time::ZERO, 0),
            corrected: Time::ZERO,
            corrected_total: 0,
            in_flight: 0.0,
            least_queue: None,
            ran_empty: false,
            draining: None,
            next_drain: Time::ZERO,
            base: None,
            stretch: 1.0,
            is_queued: false,
            is_busy: false,
            expected: 0.0,
        }
    }
}

/// The state of a flow.
#[derive(Clone, Debug)]
pub(crate) struct BestFlow {
    /// The demand of a slow flow in bytes a second; a fast one's is unlimited.
    demand: Option<f64>,
    /// The start of the period, and what had arrived then.
    began: Time,
    arrived: u64,
    /// The rate in the last period.
    last: f64,
    /// The share times the time since the start of the period.
    promised: f64,
    /// The share now.
    share: f64,
    /// What the receive window has beyond the bandwidth-delay product, as part of it.
    slack: f64,
    /// What its share would be if it took everything.
    potential: f64,
    /// Whether the proxy was empty of it at some time in the period.
    ran_empty: bool,
    /// While the capacity is unknown: the average of delivery in bytes a second, and what had been delivered.
    rate: f64,
    delivered: u64,
}

impl BestFlow {
    pub(crate) fn new(now: Time) -> BestFlow {
        BestFlow {
            demand: None,
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
        }
    }

    /// Begins anew after silence, as a fast flow.
    fn restart(&mut self, arrived: u64, now: Time) {
        let BestFlow { rate, delivered, .. } = *self;
        *self = BestFlow { arrived, rate, delivered, ..BestFlow::new(now) };
    }

    /// Observes the flow for `span` seconds, and judges it at the end of a period.
    fn observe(&mut self, sample: &Sample, mss: u32, span: f64, now: Time) {
        self.promised += self.share * span;
        self.ran_empty |= sample.held() < u64::from(2 * mss);
        let period = PERIOD.max(sample.wan_rtt.unwrap_or_default() * 2);
        if now - self.began < period {
            return;
        }
        let seconds = (now - self.began).as_secs_f64();
        let used = sample.arrived.saturating_sub(self.arrived) as f64 / seconds;
        let promised = self.promised / seconds;
        match &mut self.demand {
            None => {
                let grows = used >= self.last * GROWS;
                if used < USED_BY_SLOW * promised && self.ran_empty && !grows {
                    self.demand = Some(used);
                }
            }
            Some(demand) if used > *demand * EXCEEDED || used > USED_BY_FAST * self.potential || !self.ran_empty => {
                self.demand = None;
            }
            Some(demand) if used > *demand => *demand = used,
            Some(demand) => *demand += (used - *demand) / 8.0,
        }
        // A sender hears of the room that reading makes only with its next acknowledgement: the window must bear that.
        let step = if self.ran_empty { SLACK_STEP } else { -SLACK_STEP / 2.0 };
        self.slack = (self.slack + step).clamp(0.0, MOST_SLACK);
        self.last = used;
        (self.began, self.arrived, self.promised, self.ran_empty) = (now, sample.arrived, 0.0, false);
    }
}

impl BestFlow {
    /// Returns the settings of a flow whose UE's capacity is unknown: a congestion control rules the radio leg, and the receive
    /// window is twice what passes, so that the proxy holds little.
    fn without_capacity(&mut self, sample: &Sample, mss: u32, span: f64) -> Decision {
        if span > 0.0 {
            let rate = sample.delivered.saturating_sub(self.delivered) as f64 / span;
            self.rate += (rate - self.rate) * span / (span + SMOOTHING);
        }
        self.delivered = sample.delivered;
        let rtt = sample.wan_rtt.or(sample.wan_min_rtt).unwrap_or_default();
        let window = 2.0 * self.rate * (rtt + PERIOD).as_secs_f64() + f64::from(UNKNOWN * mss);
        Decision {
            receive_window: Some(window as u64),
            receive_buffer: Some(window as u64),
            unsent: Some(u64::from(UNKNOWN * mss)),
            ..Decision::UNLIMITED
        }
    }
}

/// Returns the UE's capacity in payload, in bytes a second; `None` if it is unknown.
pub(crate) fn capacity(ue: &Ue, now: Time) -> Option<f64> {
    let reported = ue.capacity.fair()? * PAYLOAD * ue.best.gain;
    let believed = (ue.capacity.period() * 3).max(Span::from_millis(100));
    let late = ue.capacity.age(now)?.saturating_sub(believed);
    if late > FADE {
        return None;
    }
    let weight = late.as_secs_f64() / FADE.as_secs_f64();
    Some(reported + (ue.best.delivered - reported) * weight)
}

impl BestUe {
    /// Updates the averages of delivery, `total` bytes of which our flows have delivered so far.
    fn measure(&mut self, total: u64, capacity: &Capacity, now: Time) {
        let Some(before) = self.updated.replace(now) else {
            (self.total, self.reported) = (total, (now, total));
            return;
        };
        let span = (now - before).as_secs_f64();
        if span <= 0.0 {
            return;
        }
        let delivered = total.saturating_sub(self.total) as f64 / span;
        self.total = total;
        self.delivered += (delivered - self.delivered) * span / (span + SMOOTHING);
        // What was decoded and what was delivered must be of the same time: that of a report.
        let Some((decoded, made)) = capacity.decoded().filter(|(_, made)| *made > self.report) else { return };
        let span = (now - self.reported.0).as_secs_f64();
        let delivered = total.saturating_sub(self.reported.1) as f64 / span;
        let unseen = decoded * PAYLOAD - delivered;
        self.unseen += (unseen - self.unseen) * span / (span + SMOOTHING);
        (self.report, self.reported) = (made, (now, total));
    }

    /// Returns the rate of traffic that the proxy does not see, if it counts.
    fn unseen(&self, capacity: f64) -> Option<f64> {
        (self.unseen > UNSEEN * capacity).then_some(self.unseen)
    }

    /// Observes the radio leg for `span` seconds, and corrects the capacity at the end of an interval.
    fn observe(&mut self, of: &Best, seen: &Seen, span: f64, now: Time) {
        self.in_flight += seen.in_flight as f64 * span;
        self.least_queue = match (self.least_queue, seen.queue) {
            (Some(least), Some(queue)) => Some(least.min(queue)),
            (least, queue) => queue.or(least),
        };
        self.ran_empty |= !seen.has_backlog;
        let interval = now.saturating_since(self.corrected);
        if interval < CORRECTION.max(Span::from_secs_f64(seen.radio_rtt)) {
            return;
        }
        // By Little's law: the time that our bytes spend on the leg.
        let delivered = self.total.saturating_sub(self.corrected_total) as f64;
        let on_leg = (delivered > ENOUGH).then(|| (self.in_flight / delivered).max(seen.radio_rtt));
        self.base = match (self.base, on_leg) {
            (Some(base), Some(on_leg)) => Some(base.min(on_leg)),
            (base, on_leg) => base.or(on_leg),
        };
        let reported = self.least_queue.take();
        // Without a reported queue, what is beyond twice the least is one: retransmissions and grants take their time, too.
        let queue = reported.or_else(|| Some(on_leg? - 2.0 * self.base?));
        if let Some(queue) = queue {
            self.correct(of, seen, queue, now);
        }
        (self.corrected, self.corrected_total, self.in_flight, self.ran_empty) = (now, self.total, 0.0, false);
    }

    /// Corrects the capacity and the windows by the `queue` that stood in the radio, in seconds.
    fn correct(&mut self, of: &Best, seen: &Seen, queue: f64, now: Time) {
        let target = self.target(of);
        self.is_queued = queue > 2.0 * target;
        let (delivered, expected) = (self.delivered, self.expected);
        let is_short = |part: f64| delivered < part * expected;
        if !self.is_busy {
            self.gain += (1.0 - self.gain) * 0.01;
        } else if self.unseen(seen.capacity).is_some() {
            // A queue may be somebody else's: only the reports say what the capacity is.
            self.gain += (1.0 - self.gain) * BACK;
        } else if self.is_queued {
            let excess = (queue - 2.0 * target) / (seen.radio_rtt + target);
            self.gain *= 1.0 - DOWN * excess.min(1.0);
        } else if queue > target / 2.0 {
            if is_short(SHORT) {
                self.gain *= 1.0 - DOWN / 20.0;
            }
        } else if !is_short(DELIVERED) {
            self.gain *= UP;
        } else if is_short(SHORT) && self.gain > 1.0 && self.ran_empty {
            // Nothing says that there is more than reported.
            self.gain += (1.0 - self.gain) * 0.02;
        }
        self.drain(of, seen, queue, now);
        if self.is_queued {
            self.stretch = (self.stretch * (1.0 - DOWN / 2.0)).max(1.0);
        } else if self.is_busy && queue < target / 2.0 && is_short(IDLE) && !self.ran_empty {
            // Data waits, and the radio is idle at times: the windows are too small for its round-trip times.
            self.stretch = (self.stretch * STRETCH).min(MOST_STRETCHED);
        }
        self.gain = self.gain.clamp(BOUNDS.0, BOUNDS.1);
    }
}

impl BestUe {
    /// Finds out whose a long queue is that may be our own or that of traffic that the proxy does not see: our flows slow down
    /// for a moment. If the queue shrinks as it then must, it is ours, and they go on; if others fill the gap, it is theirs.
    fn drain(&mut self, of: &Best, seen: &Seen, queue: f64, now: Time) {
        if !self.is_queued || self.unseen(seen.capacity).is_none() {
            if let Some(drain) = self.draining.take()
                && !self.has_filled(&drain, seen)
            {
                // It was ours: there is less than reported.
                self.gain *= LESS;
            }
            return;
        }
        match self.draining {
            None if now >= self.next_drain && queue > LONG * self.target(of) => {
                self.draining = Some(Drain { since: now, queue, unseen: self.unseen });
            }
            None => {}
            Some(drain) => {
                let span = now.saturating_since(drain.since);
                if span < DRAIN {
                    return;
                }
                let must = ((1.0 - DRAINING) * span.as_secs_f64()).min(drain.queue) / 2.0;
                if drain.queue - queue > must && !self.has_filled(&drain, seen) {
                    self.draining = Some(Drain { since: now, queue, unseen: self.unseen });
                } else {
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

    /// Returns the queue that is kept in the radio, in seconds: not more than its own time, so that a fast radio stays fast.
    fn target(&self, of: &Best) -> f64 {
        let own = self.base.map_or(f64::INFINITY, |base| base.max(LEAST_TARGET));
        of.radio_target.as_secs_f64().min(own)
    }

    /// Returns by what the pacing of fast flows is multiplied.
    fn pace(&self) -> f64 {
        match self.draining {
            Some(_) if self.expected > 0.0 => DRAINING * (self.delivered / self.expected).min(1.0),
            _ => PACING,
        }
    }
}

/// What is seen of the radio leg at an update.
struct Seen {
    /// The capacity in payload, in bytes a second.
    capacity: f64,
    /// Bytes of our flows in flight.
    in_flight: u64,
    /// The least round-trip time in seconds.
    radio_rtt: f64,
    /// The reported queue in seconds, if there is a fresh report of it.
    queue: Option<f64>,
    /// Whether data waits in the proxy.
    has_backlog: bool,
}

/// Updates the flows of a UE.
pub(crate) fn update<U: Copy>(
    of: &Best,
    config: &Config,
    ue: &mut Ue,
    flows: &mut Slab<Flow<U>>,
    now: Time,
    decide: &mut impl FnMut(usize, &Decision),
) {
    let span = ue.best.updated.map_or(0.0, |before| (now - before).as_secs_f64());
    let (mut total, mut in_flight, mut radio_rtt) = (0, 0, Span::from_secs(3600));
    let (mut any, mut has_backlog) = (false, false);
    for &id in &ue.flows {
        let sample = &flows[id].sample;
        total += sample.delivered;
        in_flight += sample.in_flight;
        has_backlog |= sample.held() > 0;
        if let Some(least) = sample.ran_min_rtt {
            (radio_rtt, any) = (radio_rtt.min(least), true);
        }
    }
    let radio_rtt = if any { radio_rtt } else { RADIO_RTT };
    ue.best.measure(total, &ue.capacity, now);
    let Some(capacity) = capacity(ue, now) else {
        return ue.flows.iter().for_each(|&id| {
            let flow = &mut flows[id];
            let (sample, mss) = (flow.sample, flow.mss);
            let State::Best(state) = &mut flow.state else { unreachable!("the policy does not change") };
            decide(id, &state.without_capacity(&sample, mss, span));
        });
    };
    let queue = ue.capacity.queue(now, FRESH).map(|bytes| bytes / ue.best.delivered.max(0.1 * capacity));
    let seen = Seen { capacity, in_flight, radio_rtt: radio_rtt.as_secs_f64(), queue, has_backlog };
    ue.best.observe(of, &seen, span, now);

    // Demands, of the active flows and of what is not seen.
    let mut shares = Vec::with_capacity(ue.flows.len() + 1);
    for &id in &ue.flows {
        let flow = &mut flows[id];
        let (sample, mss, is_active) = (flow.sample, flow.mss, flow.is_active(now));
        let State::Best(state) = &mut flow.state else { unreachable!("the policy does not change") };
        if is_active {
            state.observe(&sample, mss, span, now);
            shares.push(state.demand.unwrap_or(f64::INFINITY));
        } else {
            state.restart(sample.arrived, now);
            shares.push(0.0);
        }
    }
    let unseen = ue.best.unseen(capacity);
    shares.push(unseen.map_or(0.0, |rate| rate * 1.05));
    let level = share(capacity, &mut shares);

    // Slow flows may have what nobody wants.
    let (mut slow, mut slow_flows, mut limited, mut fast) = (0.0, 0u32, 0.0, 0.0);
    for (&id, &share) in ue.flows.iter().zip(&shares) {
        match demand(&flows[id].state) {
            Some(demand) if share >= demand && share > 0.0 => (slow, slow_flows) = (slow + share, slow_flows + 1),
            Some(_) => limited += share,
            None => fast += share,
        }
    }
    let spare = (capacity - shares[ue.flows.len()] - slow - limited - fast).max(0.0) / f64::from(slow_flows.max(1));

    // With the flow among them, so many would share what they and it have.
    let unsatisfied = shares.iter().filter(|&&share| share == level).count() as f64;
    let potential = |share: f64| {
        if level.is_finite() {
            (level * unsatisfied + share) / (unsatisfied + 1.0)
        } else {
            share + spare * f64::from(slow_flows)
        }
    };

    let (mut used, mut expected) = (true, slow + limited);
    let (base, target, stretch) = (ue.best.base, ue.best.target(of), ue.best.stretch);
    let crowded = unseen.is_some_and(|rate| rate > 0.1 * capacity);
    for (&id, &share) in ue.flows.iter().zip(&shares) {
        let flow = &mut flows[id];
        let (sample, mss, is_active) = (flow.sample, f64::from(flow.mss), flow.is_active(now));
        let State::Best(state) = &mut flow.state else { unreachable!("the policy does not change") };
        let (promise, category) = match (is_active, state.demand) {
            // What a new flow would have; nothing was promised to it.
            (false, _) => (capacity / (ue.flows.len() as f64), Category::Idle),
            (true, Some(demand)) if share >= demand => (share + spare, Category::Slow),
            (true, Some(_)) => (share, Category::Slow),
            (true, None) => (share, Category::Fast),
        };
        state.share = promise;
        state.potential = potential(share);
        if category == Category::Fast {
            used &= sample.held() > 0 || state.last > 0.9 * promise;
            expected += promise;
        }
        // A slow flow does not fill its windows: they leave room for more than its demand, in any queue.
        let is_slow = category == Category::Slow;
        let room = if is_slow { promise.max(share * (1.0 + of.headroom)) } else { promise };
        let mut decision =
            settings(of, config, &sample, (mss, room), (base, target, stretch, state.slack), crowded || is_slow);
        if !is_slow {
            decision.pacing = Some(rate(promise * ue.best.pace()));
        }
        decide(id, &Decision { rate: (category != Category::Idle).then(|| rate(promise)), category, ..decision });
    }
    (ue.best.is_busy, ue.best.expected) = (fast > 0.0 && used, expected);
}

fn demand(state: &State) -> Option<f64> {
    match state {
        State::Best(state) => state.demand,
        _ => None,
    }
}

/// Returns the windows and the pacing of a flow of `promise` bytes a second. `follows_queue`: its radio window is large
/// enough for the rate in any queue.
fn settings(
    of: &Best,
    config: &Config,
    sample: &Sample,
    (mss, promise): (f64, f64),
    (base, target, stretch, slack): (Option<f64>, f64, f64, f64),
    follows_queue: bool,
) -> Decision {
    let seconds = Span::as_secs_f64;
    let floor = f64::from(config.floor_segments) * mss;
    let wan_rtt = sample.wan_rtt.or(sample.wan_min_rtt).map_or(0.0, seconds);
    // Half of what the proxy keeps is in the receive buffer, and half in the send buffer.
    let half = promise * seconds(of.proxy_target) / 2.0 + 4.0 * mss;
    let receive_window = (promise * wan_rtt * (1.0 + slack) + half).max(floor);
    let least = seconds(sample.ran_min_rtt.unwrap_or(RADIO_RTT));
    let radio_rtt = (base.map_or(least, |base| base.max(least)) + target) * stretch;
    let radio_rtt = match sample.ran_rtt {
        // In a queue that is not ours, the window must be that much larger for the same rate.
        Some(now) if follows_queue => radio_rtt.max(seconds(now) * 1.1),
        _ => radio_rtt,
    };
    Decision {
        receive_window: Some(receive_window as u64),
        receive_buffer: Some(receive_window as u64),
        unsent: Some(half as u64),
        window: Some((promise * radio_rtt).max(floor) as u64),
        pacing: Some(rate(promise * PACING)),
        ..Decision::UNLIMITED
    }
}

#[cfg(test)]
mod tests;
