//! What a flow of TCP wanted to send, from what held its sender back: the traffic of its replay.

use units::{Rate, Span};

use crate::why::{Held, Hold};
use record::tables::FlowRow;

/// A flow that its application held back for less than this share of the time takes what it gets.
const LEAST_APP: f64 = 0.1;
/// A flow that the receive window held back for this share of the time is replayed with that window.
const LEAST_RWND: f64 = 0.5;
/// The shortest step of a rate in seconds, and by how much rates of neighbouring steps differ that are the same.
const STEP_S: f64 = 0.1;
const SAME: f64 = 0.02;

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Demand {
    /// As much as the path takes.
    Bulk,
    /// The same, through a receive window of so many bytes.
    Window(u64),
    /// So many bytes, after which it ended by itself.
    Transfer(u64),
    /// What its application wrote: rates from times after its start on.
    Steps(Vec<(Span, Rate)>),
}

impl Demand {
    /// That of a flow. `ends` if it is known whether it ended by itself, as packets tell; `most` is the number of steps.
    pub(crate) fn of(row: &FlowRow<'_>, held: &Held, ends: bool, most: usize) -> Demand {
        if row.transport != "tcp" {
            return Demand::Bulk;
        }
        if held.share(&[Hold::App, Hold::Room]) >= LEAST_APP
            && let Some(steps) = steps(row, held, most)
        {
            return Demand::Steps(steps);
        }
        let window = row.max_in_flight_bytes.filter(|&bytes| bytes >= 2_000);
        match window {
            Some(window) if held.share(&[Hold::Rwnd]) >= LEAST_RWND => Demand::Window(window),
            _ if ends && row.completed => Demand::Transfer(row.bytes),
            _ => Demand::Bulk,
        }
    }
}

/// The rate of what an application wrote over time. While its sender was held back by something else, all that it delivered until its
/// application held it back again was written at once.
fn steps(row: &FlowRow<'_>, held: &Held, most: usize) -> Option<Vec<(Span, Rate)>> {
    let seconds = row.measured_to_s - row.start_s;
    let width_s = STEP_S.max(seconds / most.max(1) as f64);
    // What rounding leaves of a step is none.
    let count = (seconds / width_s - 1e-6).ceil().max(1.0) as usize;
    let mut bytes = vec![0.0; count];
    // When what is being delivered was written.
    let mut written: Option<(f64, f64)> = None;
    for one in &held.stretches {
        let own = (one.from_s - row.start_s, one.to_s - row.start_s);
        let (from_s, to_s) = match one.hold {
            Hold::App | Hold::Room => {
                written = None;
                own
            }
            _ => *written.get_or_insert((own.0, own.0 + width_s.min(own.1 - own.0))),
        };
        spread(&mut bytes, width_s, (from_s, to_s), one.bytes);
    }
    let rate = |bytes: f64| (bytes * 8.0 / width_s).round().min(1e12);
    let mut steps: Vec<(f64, f64, f64)> = Vec::new();
    for (bin, bytes) in bytes.iter().enumerate() {
        let at_s = bin as f64 * width_s;
        match steps.last_mut() {
            // Rates that are nearly the same become one, with their mean.
            Some((from_s, sum, _)) if is_same(*sum / (at_s - *from_s), bytes / width_s) => *sum += bytes,
            _ => steps.push((at_s, *bytes, 0.0)),
        }
        if let Some((from_s, sum, mean)) = steps.last_mut() {
            *mean = rate(*sum / (at_s + width_s - *from_s) * width_s);
        }
    }
    let steps: Vec<(Span, Rate)> = steps
        .into_iter()
        .map(|(at_s, _, rate)| (Span::from_secs_f64(at_s), Rate::from_bits_per_sec(rate as u64)))
        .collect();
    steps.iter().any(|(_, rate)| *rate > Rate::default()).then_some(steps)
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME * one.max(other)
}

/// Adds bytes to the bins of a while.
fn spread(bins: &mut [f64], width_s: f64, (from_s, to_s): (f64, f64), bytes: f64) {
    let (from_s, to_s) = (from_s.max(0.0), to_s.min(bins.len() as f64 * width_s));
    if from_s >= to_s {
        return;
    }
    let (first, last) = ((from_s / width_s) as usize, ((to_s / width_s).ceil() as usize).min(bins.len()));
    for (bin, sum) in (first..last).zip(&mut bins[first..last]) {
        let overlap = to_s.min((bin + 1) as f64 * width_s) - from_s.max(bin as f64 * width_s);
        *sum += bytes * overlap.max(0.0) / (to_s - from_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Stretch;

    fn flow(seconds: f64) -> FlowRow<'static> {
        FlowRow { transport: "tcp", measured_to_s: seconds, bytes: 1_000_000, ..FlowRow::default() }
    }

    /// What held a flow back in each tenth of a second, and what it delivered.
    fn held(of: &[(Hold, f64)]) -> Held {
        let stretch = |(n, &(hold, bytes)): (usize, &(Hold, f64))| Stretch {
            from_s: n as f64 / 10.0,
            to_s: (n + 1) as f64 / 10.0,
            bytes,
            hold,
            queued: None,
        };
        Held { stretches: of.iter().enumerate().map(stretch).collect(), ..Held::default() }
    }

    fn shown(demand: &Demand) -> Vec<(f64, f64)> {
        let Demand::Steps(steps) = demand else { panic!("{demand:?}") };
        steps.iter().map(|(at, rate)| ((at.as_secs_f64() * 10.0).round(), rate.as_mbps())).collect()
    }

    #[test]
    fn an_application_with_a_rate_of_its_own_writes_at_that_rate() {
        let steady = held(&[(Hold::App, 12_500.0); 50]);
        assert_eq!(shown(&Demand::of(&flow(5.0), &steady, false, 100)), [(0.0, 1.0)]);
        // Coarser steps have the same bytes.
        let half = [[(Hold::App, 12_500.0); 25], [(Hold::App, 0.0); 25]].concat();
        assert_eq!(shown(&Demand::of(&flow(5.0), &held(&half), false, 100)), [(0.0, 1.0), (25.0, 0.0)]);
        assert_eq!(shown(&Demand::of(&flow(5.0), &held(&half), false, 5)), [(0.0, 1.0), (20.0, 0.5), (30.0, 0.0)]);
    }

    #[test]
    fn what_the_path_held_back_was_written_at_once() {
        let chunk = [(Hold::Cwnd, 100_000.0); 5];
        let video = [&chunk[..], &[(Hold::App, 0.0); 15], &chunk, &[(Hold::App, 0.0); 15]].concat();
        let expected = [(0.0, 40.0), (1.0, 0.0), (20.0, 40.0), (21.0, 0.0)];
        assert_eq!(shown(&Demand::of(&flow(4.0), &held(&video), false, 100)), expected);
    }

    #[test]
    fn what_the_path_or_the_window_limits_takes_what_it_gets() {
        let limited = held(&[(Hold::Cwnd, 100_000.0); 10]);
        assert_eq!(Demand::of(&flow(1.0), &limited, true, 100), Demand::Bulk);
        let ended = FlowRow { completed: true, ..flow(1.0) };
        assert_eq!(Demand::of(&ended, &limited, true, 100), Demand::Transfer(1_000_000));
        let windowed = held(&[(Hold::Rwnd, 100_000.0); 10]);
        let row = FlowRow { max_in_flight_bytes: Some(64_000), ..flow(1.0) };
        assert_eq!(Demand::of(&row, &windowed, true, 100), Demand::Window(64_000));
    }
}
