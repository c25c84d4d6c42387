//! The paper's algorithm: equations 4 to 13, to the letter ([`Published::default`]), or as its artefacts have them.
//!
//! Known defects, which [`crate::Policy::Best`] mends: a slow flow's window becomes its demand, so that it uses all of it in
//! the next period, counts as fast and takes the fast flows' share back; windows of flows with different round-trip times
//! are added; the proxy's own queue is not seen.
//!
//! What the paper leaves open:
//! 1. A fast flow's window follows the capacity at each update; a slow flow's stays until its period ends.
//! 2. Periods end by time, but nothing is decided of a silent flow: its period lasts until data arrives. Otherwise a
//!    transfer that waits in the proxy, all of it, would count as slow.
//! 3. The window has a floor ([`crate::Config::floor_segments`]): equation 4 vanishes with the round-trip time.
//! 4. A flow that has been silent for a second is not counted (N).

pub(crate) mod state;

use crate::decision::{Category, Decision, rate};
use crate::flow::{Flow, Ue};
use slab::Slab;
use state::{Published, RadioWindow, Released};
use units::{Span, Time};

/// Returns the length of a period in round trips (equations 6 and 7): so long takes slow start to fill the window.
fn period(window: f64, mss: u32) -> u64 {
    let segments = (window / f64::from(mss)).ceil() as u64;
    u64::from(segments.next_power_of_two().trailing_zeros()) + 1
}

/// Updates the flows of a UE.
pub(crate) fn update<F: Copy, U>(
    of: &Published,
    floor_segments: u32,
    ue: &Ue,
    flows: &mut Slab<Flow<F, U>>,
    now: Time,
    decide: &mut dyn FnMut(F, &Decision),
) {
    let Some((equal_share, active)) = ue.equal_share(&of.blocks, flows, now) else {
        return ue.awake.iter().for_each(|&id| decide(flows[id].key, &Decision::UNLIMITED));
    };
    let (mut released, mut slow) = (0.0, 0.0);
    for &id in &ue.awake {
        let flow = &mut flows[id];
        let floor = f64::from(floor_segments * flow.mss);
        let (rtt, smoothed) = of.round_trip.of(&flow.sample);
        let (mss, sample, is_active) = (flow.mss, flow.sample, flow.is_active(now));
        let state = flow.state.published();
        state.equal = (equal_share * rtt).max(floor);
        if state.period_ends.is_none() {
            state.window = state.equal;
            state.period_ends = Some(now + smoothed * period(state.window, mss));
            state.trip = (now, sample.arrived);
        }
        if now - state.trip.0 >= smoothed {
            state.end_trip(sample.arrived, of.alpha, now);
        }
        if state.last > 0.0 && state.period_ends.is_some_and(|end| end <= now) {
            let expected = state.window / smoothed.as_secs_f64();
            let before = state.window;
            state.slow = state.last < of.slow_threshold * expected;
            if state.slow {
                // Equation 10.
                let demand = state.demand.unwrap_or(0.0);
                state.window = (state.window * demand / expected).clamp(floor, state.window.max(floor));
            }
            state.released = before - state.window;
            let least = sample.ran_min_rtt.map(Span::as_secs_f64);
            state.radio_rtt = match (state.radio_rtt, least) {
                (Some(old), Some(new)) => Some(old + (new - old) / 8.0),
                (old, new) => new.or(old),
            };
            state.demand = None;
            state.period_ends = Some(now + smoothed * period(state.window, mss));
        }
        if is_active && state.slow {
            // Equation 11, and the sum of equation 12.
            released += match of.released {
                Released::OfWindow => state.released,
                Released::OfShare => state.equal - state.window,
            }
            .max(0.0);
            slow += 1.0;
        }
    }
    let fast = active - slow;
    for &id in &ue.awake {
        let flow = &mut flows[id];
        let (key, mss, sample, is_active) = (flow.key, flow.mss, flow.sample, flow.is_active(now));
        let state = flow.state.published();
        if !state.slow {
            // Equation 13.
            state.window = state.equal + if fast > 0.0 { released / fast } else { 0.0 };
        }
        let floor = f64::from(floor_segments * mss);
        let (least, present) = of.round_trip.of(&sample);
        let smoothed = present.as_secs_f64();
        let expected = state.window / smoothed;
        let radio_rtt = state.radio_rtt.or(sample.ran_min_rtt.map(Span::as_secs_f64));
        let window = match (of.radio_window, radio_rtt) {
            (RadioWindow::ReceiveWindow, _) => Some(state.window),
            (_, None) => None,
            (RadioWindow::Bdp, Some(rtt)) => Some(expected * rtt),
            (RadioWindow::Rounded, Some(rtt)) => {
                let wired = if least > 0.0 { least } else { smoothed };
                let segments = state.window * (rtt + 0.016) / wired / f64::from(mss);
                Some((segments.min(1e9) as u64).next_power_of_two() as f64 * f64::from(mss))
            }
        };
        decide(
            key,
            &Decision {
                rate: Some(rate(expected)),
                receive_window: Some(state.window as u64),
                window: window.map(|bytes| bytes.max(floor) as u64),
                category: match (is_active, state.slow) {
                    (false, _) => Category::Idle,
                    (true, false) => Category::Fast,
                    (true, true) => Category::Slow,
                },
                ..Decision::UNLIMITED
            },
        );
    }
}

#[cfg(test)]
mod tests;
