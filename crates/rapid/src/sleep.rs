//! Flows that sleep make no difference to those that are awake.

use crate::fluid::report;
use crate::{Best, Category, Config, Control, Decision, Policy, Rapid, Sample};
use bolero::check;
use std::collections::BTreeMap;
use units::{Span, Time};

const TICK: Span = Span::from_millis(5);
const FLOWS: usize = 12;

/// A flow as the proxy sees it, which sends at a rate and pauses.
#[derive(Clone, Copy, Default)]
struct Seen {
    sample: Sample,
    /// Bytes in each tick.
    rate: u64,
}

impl Seen {
    /// Lets a tick pass. Returns whether anything has changed.
    fn step(&mut self, noise: u64) -> bool {
        let before = self.sample;
        self.sample.delivered += self.sample.in_flight;
        self.sample.in_flight = self.sample.arrived - self.sample.delivered;
        self.sample.arrived += self.rate;
        if before.delivered != self.sample.delivered {
            self.sample.ran_rtt = Some(Span::from_micros(9000 + noise % 4000));
            self.sample.ran_min_rtt = self.sample.ran_rtt.into_iter().chain(before.ran_min_rtt).min();
            self.sample.wan_rtt = Some(Span::from_micros(20_000 + noise % 500));
        }
        self.sample != before
    }
}

/// What happens in so many ticks.
type Period = (u16, [u8; 6]);

/// Runs two controls with the same flows and reports. The first hears of progress on every flow in each tick, so no flow sleeps;
/// the second hears of it only where something has changed. Returns how many decisions each has made.
fn compare(periods: &[Period]) -> [usize; 2] {
    let config = Config { policy: Policy::Best(Best::default()), tick: TICK, ..Config::default() };
    let (mut watchful, mut lazy) = (Rapid::new(config), Rapid::new(config));
    let mut flows = [Seen::default(); FLOWS];
    let mut open = [false; FLOWS];
    let mut told: BTreeMap<usize, (Decision, Time)> = BTreeMap::new();
    let (mut now, mut capacity, mut counts) = (Time::ZERO, 0_u64, [0; 2]);
    for &(ticks, [what, which, rate, report_rate, closes, ue]) in periods {
        let at = which as usize % FLOWS;
        if !open[at] {
            for rapid in [&mut watchful, &mut lazy] {
                rapid.open(at, u32::from(ue % 2), 1448, now);
            }
            (open[at], flows[at]) = (true, Seen::default());
        } else if closes < 40 {
            watchful.close(at);
            lazy.close(at);
            open[at] = false;
            told.remove(&at);
        }
        flows[at].rate = if what % 3 == 0 { u64::from(rate) * 400 } else { 0 };
        // Without reports for a while, the capacity is unknown.
        capacity = if what & 0x30 == 0 { 0 } else { capacity.max(1) + u64::from(report_rate) * 10_000 };
        for tick in 0..u64::from(ticks % 600) {
            now += TICK;
            for ue in (0..2).filter(|_| capacity > 0) {
                let mut report = report(now, TICK, 0.0);
                // Up to what a cell can do.
                report.bits_per_prb = Some((capacity % 3_000_000) as f64 / 300.0);
                watchful.on_report(ue, &report, now);
                lazy.on_report(ue, &report, now);
            }
            for (at, flow) in flows.iter_mut().enumerate().filter(|(at, _)| open[*at]) {
                if flow.step(now.as_nanos() / 1000 * (at as u64 + 7) + tick) {
                    lazy.on_progress(at);
                }
                watchful.on_progress(at);
            }
            let (mut expected, mut got) = (BTreeMap::new(), BTreeMap::new());
            watchful.update(now, &mut |at| flows[at].sample, &mut |at, decision| {
                expected.insert(at, *decision);
            });
            lazy.update(now, &mut |at| flows[at].sample, &mut |at, decision| {
                got.insert(at, *decision);
            });
            assert_eq!(watchful.poll_timeout(), lazy.poll_timeout());
            counts[0] += expected.len();
            counts[1] += got.len();
            told.extend(got.iter().map(|(&at, &decision)| (at, (decision, now))));
            for (at, expected) in &expected {
                let (last, when) = &told[at];
                if got.contains_key(at) {
                    assert_eq!(last, expected, "flow {at} at {now:?}");
                    continue;
                }
                // It sleeps: its settings are of the same kind, not old and not far from what they would be.
                // While flows that were decided for before it wake, its turn comes later.
                assert!(now - *when <= Span::from_millis(2_100), "flow {at} at {now:?}: since {when:?}");
                assert_eq!(last.receive_window.is_some(), expected.receive_window.is_some());
                assert_eq!(last.window.is_some(), expected.window.is_some());
                assert!(expected.window.is_none() || expected.category == Category::Idle);
                if let (Some(last), Some(expected)) = (last.window, expected.window) {
                    // In that time, the corrected capacity may grow by a factor of 2.8, and the stretch of windows by 4.
                    assert!(last <= 12 * expected && expected <= 12 * last, "{last} for {expected}");
                }
            }
        }
    }
    counts
}

#[test]
fn decisions_for_flows_that_are_awake_are_the_same_as_if_none_slept() {
    check!().with_type::<Vec<Period>>().for_each(|periods| {
        compare(&periods[..periods.len().min(40)]);
    });
}

#[test]
fn a_silent_flow_costs_about_one_decision_a_second() {
    let opening = (0..FLOWS as u8).map(|flow| (2, [0x30, flow, 10, 200, 255, 0]));
    let silence = (0..FLOWS as u8).map(|flow| (0, [0x31, flow, 0, 0, 255, 0]));
    // Half a minute without a byte.
    let quiet = (0..12).map(|_| (500, [0x31, 0, 0, 0, 255, 0]));
    let [all, some] = compare(&opening.chain(silence).chain(quiet).collect::<Vec<_>>());
    assert!(all > 12 * 500 * FLOWS, "{all}");
    // The first seconds are not over at once.
    assert!(some < all / 4 && some >= FLOWS * 30, "{some} of {all}");
}

/// Four seconds are long enough to sleep, and the shares change meanwhile.
#[test]
fn a_flow_that_goes_on_after_sleep_is_judged_as_if_it_had_been_awake() {
    let send = |ticks: u16, flow: u8, rate: u8| (ticks, [0x30, flow, rate, 40, 255, 0]);
    let rest = |ticks: u16, flow: u8| (ticks, [0x31, flow, 0, 0, 255, 0]);
    let mut periods = vec![send(1, 0, 10), send(1, 1, 20), send(200, 2, 250)];
    for pause in [599, 400, 599] {
        periods.extend([rest(1, 0), rest(pause, 1), send(pause, 3, 5), send(1, 0, 10), send(200, 1, 20), rest(200, 3)]);
    }
    let [all, some] = compare(&periods);
    assert!(some < all, "none slept: {some} of {all}");
}
