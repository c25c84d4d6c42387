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
//! 4. The capacity of the reports is corrected by what the radio leg does (`radio.rs`): a queue of our own that
//!    grows says that it is too high, an empty one while all is used that it is too low. This bears wrong and slow reports.
//! 5. A report is believed for three periods. Then its capacity fades to what is delivered, and in the end the proxy lifts
//!    all limits.
//!    A feed that is far from what the radio leg delivers is not believed at all until it agrees again (`trust.rs`).
//! 6. A new flow may take a share, but others leave it only what new flows take together, until a period has shown that it
//!    wants a share. If each new flow had its share from the start, many short connections would leave most of the capacity
//!    unused. A flow that pauses wants nothing until it goes on, and is then as a new one.
//! 7. What the UE decodes beyond our flows (UDP, QUIC) counts as one more flow.

#[cfg(test)]
mod ablation;
pub(crate) mod demand;
mod division;
pub(crate) mod parameters;
pub(crate) mod radio;
pub(crate) mod rules;
pub(crate) mod trust;

use crate::decision::{Category, Decision, Sample, rate};
use crate::flow::{Flow, Terms, Ue};
use demand::Demand;
use division::Division;
use parameters::{Best, FADE, FRESH, LATE, MUCH, PACING, PAYLOAD, ROUND, STEP};
use radio::Seen;
use rules::Rule;
use slab::Slab;
use trust::Evidence;
use units::{Span, Time};

/// The radio leg's round-trip time before it is known.
const RADIO_RTT: Span = ROUND;
/// Other traffic that has this part of the capacity makes queues.
const CROWDED: f64 = STEP;
/// A fast flow has used its share if it took this part of it.
const USED: f64 = 1.0 - STEP;
/// In a queue that is not ours, a window is so many times what passes in the present round-trip time.
const WIDER: f64 = 1.0 + STEP;

/// Returns the UE's capacity in payload, in bytes a second; `None` if it is unknown, or not believed.
pub(crate) fn capacity(ue: &Ue, now: Time) -> Option<f64> {
    if ue.best.trust.doubt().is_some() {
        return None;
    }
    let reported = ue.capacity.fair()? * PAYLOAD * ue.best.gain;
    let late = ue.capacity.age(now)?.saturating_sub(ue.capacity.believed());
    if late > FADE {
        return None;
    }
    let weight = late.as_secs_f64() / FADE.as_secs_f64();
    Some(reported + (ue.best.delivered - reported) * weight)
}

/// Judges the feed of a UE that has bytes `in_flight`, and a present and a least round-trip time on the radio leg, in seconds.
fn judge(ue: &mut Ue, (in_flight, rtt, least): (u64, f64, f64), has_backlog: bool, span: f64, now: Time) {
    let is_fresh = ue.capacity.age(now).is_some_and(|age| age <= ue.capacity.believed());
    let Some(told) = ue.capacity.fair().filter(|_| is_fresh) else { return ue.best.trust.lapse() };
    let (delivered, promised) = (ue.best.delivered, ue.best.expected);
    let seen = Evidence {
        told: told * PAYLOAD,
        delivered,
        received: ue.best.received,
        decoded: ue.best.decoded,
        promised: Some(promised).filter(|_| ue.best.is_busy),
        has_backlog,
        on_leg: in_flight as f64 / delivered,
        rtt,
        least,
        believed: ue.capacity.believed(),
    };
    if ue.best.trust.judge(&seen, span, now) {
        ue.best.start_anew();
    }
}

/// What is seen of a UE's flows together.
#[derive(Debug, Default)]
struct Sum {
    /// Bytes delivered since the last update, and those of them that are of flows of unknown demand.
    new: u64,
    unknown: u64,
    /// Bytes on the radio leg.
    in_flight: u64,
    /// A segment of each flow that has data on its way.
    segments: u64,
    has_backlog: bool,
    /// The longest round-trip time of the radio leg, and the least one that was ever seen.
    rtt: Span,
    radio_rtt: Span,
}

/// Measures the flows of a UE that are awake, `span` seconds after the last update.
fn measure<F, U>(ue: &Ue, flows: &mut Slab<Flow<F, U>>, span: f64) -> Sum {
    let mut sum = Sum::default();
    let mut radio_rtt = ue.least_rtt_asleep();
    for &id in &ue.awake {
        let Flow { sample, gained, state, mss, .. } = &mut flows[id];
        let state = state.best();
        sum.new += *gained;
        sum.unknown += if state.demand.is_unknown() { *gained } else { 0 };
        sum.in_flight += sample.in_flight;
        sum.segments += if sample.arrived > sample.delivered { u64::from(*mss) } else { 0 };
        sum.has_backlog |= sample.held() > 0;
        radio_rtt = radio_rtt.into_iter().chain(sample.ran_min_rtt).min();
        sum.rtt = sum.rtt.max(sample.ran_rtt.unwrap_or_default());
        state.measure(sample.delivered, span);
    }
    Sum { radio_rtt: radio_rtt.unwrap_or(RADIO_RTT), ..sum }
}

/// Updates the flows of a UE.
pub(crate) fn update<F: Copy, U>(
    of: &Best,
    floor_segments: u32,
    ue: &mut Ue,
    flows: &mut Slab<Flow<F, U>>,
    now: Time,
    decide: &mut dyn FnMut(F, &Decision),
) {
    let span = ue.best.updated.map_or(0.0, |before| (now - before).as_secs_f64());
    let sum = measure(ue, flows, span);
    ue.best.measure([sum.new, sum.unknown, sum.in_flight], &mut ue.capacity, now);
    let on_leg = (sum.in_flight, sum.rtt.as_secs_f64(), sum.radio_rtt.as_secs_f64());
    judge(ue, on_leg, sum.has_backlog, span, now);
    if let Some(capacity) = capacity(ue, now) {
        let seen = Seen {
            capacity,
            service: ue.best.service(capacity),
            in_flight: sum.in_flight,
            segments: sum.segments as f64,
            radio_rtt: sum.radio_rtt.as_secs_f64(),
            queue: ue.capacity.queue(now, FRESH),
            late_queue: ue.capacity.queue(now, LATE),
            period: ue.capacity.period(),
            has_backlog: sum.has_backlog,
        };
        ue.best.observe(of, &seen, span, now);
        divide(of, floor_segments, ue, flows, (capacity, span, now), decide);
    } else {
        ue.best.lose_capacity(now);
        let renewals = ue.renewals(None, span, now);
        for &id in ue.awake.iter().chain(&renewals) {
            let flow = &mut flows[id];
            decide(flow.key, &flow.state.best().without_capacity(&flow.sample, flow.mss));
        }
    }
    ue.rest(flows, now);
}

/// Observes what the flows of a UE that are awake want; `None` if they are silent.
fn demands<F, U>(ue: &mut Ue, flows: &mut Slab<Flow<F, U>>, span: f64, now: Time) -> Vec<Option<Demand>> {
    let Ue { awake, best, .. } = ue;
    let mut demand = |&id: &usize| {
        let flow = &mut flows[id];
        let (sample, mss, is_active) = (flow.sample, flow.mss, flow.is_active(now));
        let state = flow.state.best();
        let before = state.demand;
        if is_active {
            state.observe(&sample, mss, span, now);
        } else {
            state.restart(sample.arrived, now);
        }
        match (before.is_unknown(), state.demand.is_unknown()) {
            (true, false) => best.unknown = (best.unknown - state.rate).max(0.0),
            (false, true) => best.unknown += state.rate,
            _ => {}
        }
        is_active.then_some(state.demand)
    };
    awake.iter().map(&mut demand).collect()
}

/// Divides the capacity of a UE among its flows, and decides for each.
fn divide<F: Copy, U>(
    of: &Best,
    floor_segments: u32,
    ue: &mut Ue,
    flows: &mut Slab<Flow<F, U>>,
    (capacity, span, now): (f64, f64, Time),
    decide: &mut dyn FnMut(F, &Decision),
) {
    let demands = demands(ue, flows, span, now);
    let unseen = ue.best.unseen(capacity);
    let division = Division::new(capacity, &demands, unseen, ue.best.unknown);
    let (potential, promises) = (division.potential(), division.promises());
    let (base, target, stretch) = (ue.best.leg(), ue.best.target(of), ue.best.stretch);
    let pace = ue.best.pace();
    let is_crowded = unseen.is_some_and(|rate| rate > CROWDED * capacity) && Rule::FollowOthers.applies();
    // What a new flow would have; nothing was promised to it.
    let for_idle = capacity / ue.flows() as f64;
    let terms = Terms { at: now, share: for_idle, potential: potential(0.0) };
    let renewals = ue.renewals(Some(terms), span, now);
    for &id in &renewals {
        let arrived = flows[id].sample.arrived;
        flows[id].state.best().restart(arrived, now);
    }
    let (mut used, mut expected) = (true, division.expected());
    let awake = ue.awake.iter().zip(demands).zip(division.shares.iter().copied());
    let asleep = renewals.iter().map(|id| ((id, None), 0.0));
    for ((&id, demand), share) in awake.chain(asleep) {
        let flow = &mut flows[id];
        let (key, sample, mss) = (flow.key, flow.sample, f64::from(flow.mss));
        let state = flow.state.best();
        let (promise, category) = demand.map_or((for_idle, Category::Idle), |demand| promises(demand, share));
        (state.share, state.potential) = (promise, potential(share));
        // That of a silent flow is unknown.
        if demand == Some(Demand::Everything) {
            used &= sample.held() > 0 || state.last > USED * promise;
            expected += promise;
        }
        // A slow flow does not fill its windows: they leave room for more than its demand, in any queue.
        let is_slow = category == Category::Slow;
        let room = if is_slow { promise.max(share * (1.0 + of.headroom)) } else { promise };
        let follows_queue = is_crowded || (is_slow && Rule::FollowSlow.applies());
        let mut decision =
            settings(of, floor_segments, &sample, (mss, room), (base, target, stretch, state.slack), follows_queue);
        if !is_slow {
            decision.pacing = Some(rate(promise * pace));
        }
        decide(key, &Decision { rate: (category != Category::Idle).then(|| rate(promise)), category, ..decision });
    }
    (ue.best.is_busy, ue.best.expected, ue.best.fast) = (division.fast > 0.0 && used, expected, division.fast);
}

/// Returns the windows and the pacing of a flow of `promise` bytes a second. `follows_queue`: its radio window is large
/// enough for the rate in any queue.
fn settings(
    of: &Best,
    floor_segments: u32,
    sample: &Sample,
    (mss, promise): (f64, f64),
    (base, target, stretch, slack): (Option<f64>, f64, f64, f64),
    follows_queue: bool,
) -> Decision {
    let seconds = Span::as_secs_f64;
    let floor = f64::from(floor_segments) * mss;
    let wan_rtt = sample.wired_rtt().map_or(0.0, seconds);
    // Half of what the proxy keeps is in the receive buffer, and half in the send buffer.
    let half = promise * seconds(of.proxy_target) / 2.0 + MUCH * mss;
    let receive_window = (promise * wan_rtt * (1.0 + slack) + half).max(floor);
    let least = seconds(sample.ran_min_rtt.unwrap_or(RADIO_RTT));
    let radio_rtt = (base.map_or(least, |base| base.max(least)) + target) * stretch;
    let radio_rtt = match sample.ran_rtt {
        // In a queue that is not ours, the window must be that much larger for the same rate.
        Some(now) if follows_queue => radio_rtt.max(seconds(now) * WIDER),
        _ => radio_rtt,
    };
    let window = (promise * radio_rtt).max(floor);
    Decision {
        receive_window: Some(receive_window as u64),
        receive_buffer: Some(receive_window as u64),
        unsent: Some(half as u64),
        window: Some(window as u64),
        // The next segment waits for as long as the rate at the last one says: a flow of which nothing is expected would wait
        // long after it begins again.
        pacing: Some(rate(PACING * window / radio_rtt)),
        ..Decision::UNLIMITED
    }
}

#[cfg(test)]
mod tests;
