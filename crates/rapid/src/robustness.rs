//! Any sequence of calls, with any numbers.

use crate::fluid::{alone, report};
use crate::{Best, Category, Config, Control, FORGET, MOST_UES, Policy, Published, Rapid, Sample};
use rnis::state::KEEP;
use units::{Span, Time};

const POLICIES: [fn() -> Policy; 3] =
    [|| Policy::Published(Published::default()), || Policy::Best(Best::default()), || Policy::MilliProxy];

#[test]
fn no_report_and_no_sample_panics_or_starves_a_flow() {
    bolero::check!().with_type::<Vec<(u8, u32, u64, u32)>>().for_each(|operations| {
        for policy in POLICIES {
            let config = Config { policy: policy(), ..Config::default() };
            let floor = u64::from(2 * 1448u32);
            let mut rapid = Rapid::new(config);
            let (mut now, mut open, mut opened) = (Time::ZERO, Vec::new(), 0);
            for &(what, span, big, small) in operations {
                now += Span::from_micros(u64::from(span % 2_000_000));
                match what % 4 {
                    0 => {
                        open.push(opened);
                        rapid.open(opened, u32::from(what / 64), 1448, now);
                        opened += 1;
                    }
                    1 if !open.is_empty() => rapid.close(open.swap_remove(what as usize % open.len())),
                    2 => {
                        let mut report = report(now, Span::from_micros(u64::from(small % 3_000_000)), 0.0);
                        report.acked_bits = big;
                        report.n_prb = small as u16;
                        report.slots = small >> 4;
                        report.prbs = Some(big >> 7);
                        report.cell_prbs = (what & 16 == 0).then_some(big >> 9);
                        report.active_ues = (what & 32 == 0).then_some(small as u16 >> 3);
                        report.bits_per_prb = (what & 8 == 0).then(|| f64::from_bits(big)).filter(|b| *b >= 0.0);
                        (report.blocks, report.failed) = (small, span);
                        rapid.on_report(u32::from(what / 64), &report, now);
                    }
                    _ => {
                        let rtt = |n: u32| (n & 1 == 0).then(|| Span::from_micros(u64::from(n % 10_000_000)));
                        let sample = Sample {
                            arrived: big >> 16,
                            delivered: big >> 16 >> (small % 48),
                            in_flight: u64::from(small),
                            wan_rtt: rtt(span),
                            wan_min_rtt: rtt(small),
                            wan_receive_rtt: rtt(span >> 2),
                            ran_rtt: rtt(small >> 1),
                            ran_min_rtt: rtt(span >> 1),
                        };
                        open.iter().filter(|_| span & 1 == 0).for_each(|&flow| rapid.on_progress(flow));
                        rapid.update(now, &mut |_| sample, &mut |_, decision| {
                            for bytes in [decision.receive_window, decision.receive_buffer, decision.window] {
                                assert!(bytes.is_none_or(|bytes| bytes >= floor), "{decision:?}");
                            }
                        });
                    }
                }
            }
        }
    });
}

/// UEs are looked through each ten seconds.
#[test]
fn a_ue_without_flows_is_forgotten_once_no_report_has_named_it_for_long() {
    let mut rapid: Rapid<u32, u32> = Rapid::new(Config::default());
    rapid.open(0, 9, 1448, Time::ZERO);
    let mut known_after = |ue, ms: u64| {
        let now = Time::ZERO + Span::from_millis(ms);
        rapid.on_report(ue, &report(now, Span::from_millis(1), 0.0), now);
        rapid.ues.keys().copied().collect::<Vec<u32>>()
    };
    assert_eq!((FORGET, KEEP), (Span::from_secs(10), Span::from_secs(60)));
    assert_eq!(known_after(1, 1_000), [1, 9]);
    assert_eq!(known_after(2, 9_999), [1, 2, 9]);
    // The report on the first is 60 s old; when they are looked through next, it and the second are older.
    assert_eq!(known_after(3, 61_000), [1, 2, 3, 9]);
    assert_eq!(known_after(4, 70_999), [1, 2, 3, 4, 9]);
    assert_eq!(known_after(4, 71_000), [3, 4, 9]);
}

#[test]
fn reports_on_more_ues_than_are_remembered_are_ignored_unless_they_are_known() {
    let mut rapid: Rapid<u32, u32> = Rapid::new(Config::default());
    let now = Time::ZERO + Span::from_secs(1);
    let told = report(now, Span::from_millis(1), 0.0);
    (0..MOST_UES as u32 + 1).for_each(|ue| rapid.on_report(ue, &told, now));
    assert_eq!((rapid.ues.len(), rapid.ues.contains_key(&(MOST_UES as u32))), (MOST_UES, false));
    rapid.open(0, MOST_UES as u32, 1448, now);
    rapid.on_report(MOST_UES as u32, &told, now);
    assert_eq!(rapid.ues[&(MOST_UES as u32)].capacity.age(now), Some(Span::ZERO));
}

#[test]
fn updates_are_due_each_tick_while_there_are_flows() {
    let mut rapid: Rapid<u32, u32> = Rapid::new(Config { tick: Span::from_millis(5), ..Config::default() });
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let update = |rapid: &mut Rapid<u32, u32>, ms: u64| {
        let mut decided = Vec::new();
        rapid.update(at(ms), &mut |_| Sample::default(), &mut |flow, _| decided.push(flow));
        (decided, rapid.poll_timeout())
    };
    assert_eq!((rapid.poll_timeout(), update(&mut rapid, 1)), (None, (vec![], None)));
    rapid.open(7, 2, 1448, at(3));
    rapid.open(8, 1, 1448, at(4));
    assert_eq!(rapid.poll_timeout(), Some(at(3)), "at once");
    assert_eq!(update(&mut rapid, 4), (vec![8, 7], Some(at(9))), "by UE");
    rapid.close(7);
    rapid.close(7);
    assert_eq!(update(&mut rapid, 9), (vec![8], Some(at(14))));
    rapid.close(8);
    assert_eq!(rapid.poll_timeout(), None);
    rapid.open(7, 1, 1448, at(20));
    assert_eq!(rapid.poll_timeout(), Some(at(20)));
}

/// A flow that only receives from the server, or only delivers to the UE, is not silent.
#[test]
fn a_flow_is_silent_once_nothing_has_arrived_and_nothing_was_delivered_for_a_second() {
    for (arrives, delivers, category) in [(0, 0, Category::Idle), (1, 0, Category::Fast), (0, 1, Category::Fast)] {
        // Nothing waits: more has been delivered than has arrived.
        let sample = |ms: u64| Sample { arrived: ms * arrives, delivered: 5_000 + ms * delivers, ..Sample::default() };
        assert_eq!(alone(Policy::MilliProxy, 1_500, sample).category, category, "{arrives}, {delivers}");
    }
}
