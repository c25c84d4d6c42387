use super::demand::Demand;
use super::parameters::Best;
use crate::fluid::{Lab, Reports, report};
use crate::{Category, Config, Control, Doubt, Policy, Rapid, Sample};
use units::{Span, Time};

fn lab(reports: Reports) -> Lab {
    Lab::new(Policy::Best(Best::default()), reports)
}

/// Checks that `got` is at least `part` of `wanted`.
#[track_caller]
fn at_least(what: &str, got: f64, part: f64, wanted: f64) {
    assert!(got >= part * wanted, "{what}: {got:.2} of {wanted:.2} Mbit/s, {:.3}", got / wanted);
}

/// Checks that the flows of no UE were together promised more than `most` of its capacity since the measurement began.
#[track_caller]
fn promised_at_most(lab: &Lab, most: f64) {
    assert!(lab.promised <= most, "promised {:.4}", lab.promised);
}

/// The application-limited flow beside a bulk flow of the paper's section 4.3, each with its round-trip time.
fn app_beside_bulk(capacity: f64, demand: f64, (app_rtt, bulk_rtt): (u64, u64), reports: Reports) -> Lab {
    let mut lab = lab(reports);
    let ue = lab.ue(capacity);
    lab.flow(ue, app_rtt, Some(demand));
    lab.flow(ue, bulk_rtt, None);
    lab.run(4.0);
    lab.begin();
    lab
}

#[test]
fn an_app_limited_flow_has_its_demand_and_bulk_the_rest() {
    for (capacity, demand, rtts) in [
        (834.0, 16.0, (2, 2)),
        (834.0, 16.0, (100, 2)),
        (834.0, 16.0, (2, 100)),
        (834.0, 300.0, (8, 8)),
        (14.0, 1.5, (50, 50)),
    ] {
        let mut lab = app_beside_bulk(capacity, demand, rtts, Reports::default());
        let got = lab.run(10.0);
        at_least("app", got[0], 0.97, demand);
        at_least("bulk", got[1], 0.95, capacity - demand);
        promised_at_most(&lab, 1.02);
        assert_eq!([lab.category(0), lab.category(1)], [Category::Slow, Category::Fast]);
        assert!(lab.delay < Span::from_millis(20), "{:?}", lab.delay);
        // The proxy's queue: a few milliseconds of the capacity, and the slack of the windows.
        let most = capacity * 125_000.0 * (0.005 + 0.00025 * rtts.0.max(rtts.1) as f64) + 10_000.0;
        assert!(lab.held < most, "held {:.0} of {most:.0}", lab.held);
    }
}

/// A flow of few packets has one more or one less in a period, and stays slow.
#[test]
fn a_flow_of_few_packets_costs_a_bulk_flow_no_more_than_it_wants() {
    for demand in [0.1, 0.5, 1.0, 2.0] {
        let mut lab = lab(Reports::default());
        let ue = lab.ue(34.0);
        let app = lab.flow(ue, 20, Some(demand));
        lab.in_segments(app);
        lab.flow(ue, 20, None);
        lab.run(4.0);
        lab.begin();
        let got = lab.run(10.0);
        at_least("app", got[0], 0.97, demand);
        at_least("bulk", got[1], 0.95, 34.0 - demand);
        promised_at_most(&lab, 1.02);
    }
}

/// The time to the next segment is that of the rate at the last one, whatever the rate is then.
#[test]
fn a_flow_of_which_nothing_is_expected_does_not_wait_when_it_goes_on() {
    for promise in [0.0, 1.0, 1000.0] {
        let (flow, leg) = ((1448.0, promise), (Some(0.02), 0.005, 1.0, 0.25));
        let decision = super::settings(&Best::default(), 10, &crate::Sample::default(), flow, leg, true);
        let pacing = decision.pacing.expect("it is paced");
        assert!(pacing.time_for(units::Bytes::new(1500)) < Span::from_millis(5), "{promise}: {pacing:?}");
    }
}

#[test]
fn bulk_flows_with_different_round_trip_times_share_equally() {
    let mut lab = lab(Reports::default());
    let ue = lab.ue(834.0);
    for rtt in [1, 2, 20, 100] {
        lab.flow(ue, rtt, None);
    }
    lab.run(4.0);
    lab.begin();
    let got = lab.run(10.0);
    at_least("all", got.iter().sum(), 0.95, 834.0);
    for &flow in &got {
        assert!((flow / 208.5 - 1.0).abs() < 0.07, "{got:?}");
    }
    promised_at_most(&lab, 1.02);
}

#[test]
fn slow_and_wrong_reports_cost_little() {
    for (period, factor) in [(10, 1.0), (100, 1.0), (1000, 1.0), (1, 0.5), (1, 2.0), (1000, 0.5), (1000, 2.0)] {
        for queue in [false, true] {
            let reports = Reports { period: Span::from_millis(period), factor, queue, ..Reports::default() };
            let mut lab = app_beside_bulk(100.0, 10.0, (20, 20), reports);
            let got = lab.run(10.0);
            at_least("app", got[0], 0.97, 10.0);
            at_least("bulk", got[1], 0.95, 90.0);
            assert!(lab.delay < Span::from_millis(40), "{:?}", lab.delay);
            // Of the error of reports that are rare and too high, a part stays.
            promised_at_most(&lab, if (period, factor) == (1000, 2.0) { 1.051 } else { 1.02 });
        }
    }
}

/// Reports of twice the capacity let a queue grow. Without `queue_bytes`, only the time on the leg tells it.
#[test]
fn a_reported_queue_is_kept_shorter_than_an_inferred_one() {
    for (period, most) in [(1, 22), (20, 22), (100, 26)] {
        for capacity in [10.0, 100.0] {
            let [reported, inferred] = [true, false].map(|queue| {
                let reports = Reports { period: Span::from_millis(period), factor: 2.0, queue, ..Reports::default() };
                let mut lab = lab(reports);
                let ue = lab.ue(capacity);
                lab.flow(ue, 20, None);
                lab.run(4.0);
                lab.begin();
                let got = lab.run(10.0);
                at_least("bulk", got[0], 0.95, capacity);
                promised_at_most(&lab, 1.02);
                lab.delay
            });
            let most = Span::from_millis(most);
            assert!(reported < most && most < inferred, "{reported:?}, {inferred:?}");
        }
    }
}

#[test]
fn flows_go_on_without_reports() {
    let reports = Reports { until: Time::ZERO + Span::from_secs(4), ..Reports::default() };
    let mut lab = app_beside_bulk(100.0, 10.0, (20, 20), reports);
    let got = lab.run(10.0);
    at_least("app", got[0], 0.9, 10.0);
    at_least("bulk", got[1], 0.95, 90.0);
    promised_at_most(&lab, 1.02);
}

#[test]
fn a_queue_from_before_the_first_report_is_drained_and_costs_no_rate() {
    // Reports of too much look like traffic beside the proxy, whose queue it would be: it is drained again and again.
    for (capacity, factor, seconds, most) in
        [(40.0, 1.0, 2.0, 10), (40.0, 0.5, 3.0, 10), (40.0, 2.0, 6.0, 150), (5.0, 0.5, 9.0, 30), (800.0, 1.0, 1.0, 10)]
    {
        let from = Time::ZERO + Span::from_secs(4);
        let mut lab = lab(Reports { from, factor, ..Reports::default() });
        let ue = lab.ue(capacity);
        lab.flow(ue, 20, None);
        lab.run(3.0);
        lab.begin();
        lab.run(1.0);
        let before = lab.delay;
        assert!(before > Span::from_millis(15), "{before:?}");
        lab.run(seconds);
        lab.begin();
        let got = lab.run(3.0);
        at_least("bulk", got[0], 0.95, capacity);
        assert!(lab.delay < Span::from_millis(most), "{:?}", lab.delay);
        promised_at_most(&lab, 1.02);
    }
}

#[test]
fn traffic_beside_the_proxy_keeps_its_rate() {
    for unseen in [2.0, 8.0, 50.0] {
        let mut lab = lab(Reports::default());
        let ue = lab.ue(100.0);
        lab.unseen(ue, unseen);
        lab.flow(ue, 20, None);
        lab.flow(ue, 20, Some(5.0));
        lab.run(4.0);
        lab.begin();
        let got = lab.run(10.0);
        // What does not yield and has half of the capacity costs a little more: the queue must be tested now and then.
        at_least("bulk", got[0], if unseen < 50.0 { 0.95 } else { 0.93 }, 95.0 - unseen);
        at_least("app", got[1], 0.97, 5.0);
        assert!(lab.delay < Span::from_millis(30), "{:?}", lab.delay);
        promised_at_most(&lab, 1.02);
    }
}

/// Without a reported queue, one of less than twice the least time on the leg is not seen: the promises stay a little too high.
#[test]
fn a_change_of_capacity_is_followed() {
    for (queue, most) in [(true, 1.02), (false, 1.026)] {
        let mut lab = app_beside_bulk(100.0, 5.0, (20, 20), Reports { queue, ..Reports::default() });
        lab.set_capacity(0, 30.0);
        lab.run(1.0);
        lab.begin();
        let got = lab.run(5.0);
        at_least("bulk", got[1], 0.95, 25.0);
        assert!(lab.delay < Span::from_millis(20), "{:?}", lab.delay);
        promised_at_most(&lab, most);
        lab.set_capacity(0, 200.0);
        lab.run(1.0);
        lab.begin();
        let got = lab.run(5.0);
        at_least("bulk", got[1], 0.95, 195.0);
        promised_at_most(&lab, 1.02);
    }
}

#[test]
fn a_flow_whose_demand_grows_has_more_within_a_second() {
    let mut lab = app_beside_bulk(100.0, 5.0, (20, 20), Reports::default());
    lab.run(2.0);
    lab.write(0, Some(40.0));
    lab.run(1.0);
    lab.begin();
    let got = lab.run(5.0);
    at_least("app", got[0], 0.97, 40.0);
    at_least("bulk", got[1], 0.95, 60.0);
    promised_at_most(&lab, 1.02);
}

/// Two UEs of each kind: what one does is nothing to the other.
#[test]
fn four_ues_have_shares_of_their_own() {
    let mut lab = lab(Reports::default());
    for capacity in [400.0, 100.0, 20.0, 5.0] {
        let ue = lab.ue(capacity);
        lab.flow(ue, 20, None);
        lab.flow(ue, 50, Some(capacity / 10.0));
    }
    lab.run(4.0);
    lab.begin();
    let got = lab.run(10.0);
    for (pair, capacity) in got.chunks(2).zip([400.0, 100.0, 20.0, 5.0]) {
        at_least("bulk", pair[0], 0.95, 0.9 * capacity);
        at_least("app", pair[1], 0.97, 0.1 * capacity);
    }
    promised_at_most(&lab, 1.02);
}

/// A handover: no reports and no radio for 60 ms, then another cell of another capacity.
#[test]
fn a_handover_is_survived() {
    for (queue, most) in [(true, 1.02), (false, 1.026)] {
        let mut lab = app_beside_bulk(100.0, 5.0, (20, 20), Reports { queue, ..Reports::default() });
        lab.set_capacity(0, 0.001);
        lab.run(0.06);
        lab.set_capacity(0, 50.0);
        lab.run(1.0);
        lab.begin();
        let got = lab.run(5.0);
        at_least("app", got[0], 0.97, 5.0);
        at_least("bulk", got[1], 0.95, 45.0);
        assert!(lab.delay < Span::from_millis(20), "{:?}", lab.delay);
        promised_at_most(&lab, most);
    }
}

/// Returns what a bulk flow receives of 40 Mbit/s, from the start and after 10 s, and the longest queue after that.
fn bulk_with(reports: Reports) -> ([f64; 2], Span) {
    let mut lab = lab(reports);
    let ue = lab.ue(40.0);
    lab.flow(ue, 20, None);
    lab.begin();
    let early = lab.run(10.0)[0];
    // At first, a queue that has no limit in this model may grow.
    lab.begin();
    ([early, lab.run(10.0)[0]], lab.delay)
}

/// Some feeds tell only what a block carries wrongly, and no blocks: then only the radio leg shows that they are too low.
#[test]
fn a_feed_that_is_wrong_by_any_factor_costs_no_more_than_having_none() {
    let (none, longest) = bulk_with(Reports { until: Time::ZERO, ..Reports::default() });
    for factor in [0.01, 0.1, 0.25, 4.0, 10.0, 100.0] {
        for (queue, bits) in [(true, true), (false, true), (true, false), (false, false)] {
            let what = format!("{factor} queue {queue} bits {bits}");
            let (got, delay) = bulk_with(Reports { factor, queue, bits, ..Reports::default() });
            if bits || factor > 1.0 {
                at_least(&what, got[0], 0.9, none[0]);
            }
            at_least(&what, got[1], 0.98, none[1]);
            assert!(delay <= longest, "{what}: {delay:?} of {longest:?}");
        }
    }
}

#[test]
fn a_feed_in_doubt_is_believed_again_once_it_agrees() {
    for (factor, doubt) in [(0.1, Doubt::TooLow), (10.0, Doubt::TooHigh)] {
        let mut lab = app_beside_bulk(40.0, 4.0, (20, 20), Reports { factor, ..Reports::default() });
        assert_eq!(lab.doubt(0), Some(doubt));
        lab.set_factor(1.0);
        lab.run(1.0);
        assert_eq!(lab.doubt(0), Some(doubt), "too early");
        lab.run(6.0);
        assert_eq!(lab.doubt(0), None);
        lab.begin();
        let got = lab.run(10.0);
        at_least("bulk", got[1], 0.95, 36.0);
        assert!(lab.delay < Span::from_millis(20), "{:?}", lab.delay);
        // The second time, agreement must last for longer.
        lab.set_factor(factor);
        lab.run(4.0);
        assert_eq!(lab.doubt(0), Some(doubt));
        lab.set_factor(1.0);
        lab.run(3.0);
        assert_eq!(lab.doubt(0), Some(doubt));
    }
}

#[test]
fn reports_that_are_right_or_wrong_by_a_factor_of_two_are_never_in_doubt() {
    let cases = [(0.5, 40.0, 0.0), (2.0, 40.0, 0.0), (0.5, 5.0, 0.0), (2.0, 5.0, 0.0), (1.0, 100.0, 50.0)];
    for (factor, capacity, unseen) in cases {
        let mut lab = lab(Reports { factor, ..Reports::default() });
        let ue = lab.ue(capacity);
        lab.unseen(ue, unseen);
        lab.flow(ue, 20, None);
        for tenth in 1..100 {
            lab.run(0.1);
            assert_eq!(lab.doubt(ue), None, "{factor} of {capacity} after {tenth} tenths of a second");
        }
    }
}

/// Returns what flows of these demands are promised, and what they would be promised if they took everything, as parts of the
/// capacity. Demands are parts of it, too; a flow of none is silent. Flows of unknown demand have `taken` so much of it.
fn promises(demands: &[Option<Demand>], taken: f64) -> Vec<(f64, f64, Category)> {
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let mut rapid = Rapid::new(Config { policy: Policy::Best(Best::default()), ..Config::default() });
    (0..demands.len()).for_each(|flow| rapid.open(flow, (), 1448, at(0)));
    let mut decided = vec![None; demands.len()];
    for ms in [1, 2_000, 2_001] {
        // A cell that nobody uses, for 20 MB/s.
        let mut report = report(at(ms), Span::from_millis(1), 0.0);
        report.bits_per_prb = Some(1600.0);
        rapid.on_report((), &report, at(ms));
        let capacity = super::capacity(&rapid.ues[&()], at(ms)).expect("it is reported");
        rapid.ues.get_mut(&()).expect("it has flows").best.unknown = taken * capacity;
        for (id, flow) in &mut rapid.flows {
            flow.state.best().demand = match demands[id].unwrap_or(Demand::Unknown) {
                Demand::Limited(part) => Demand::Limited(part * capacity),
                demand => demand,
            };
            // No period ends here.
            flow.state.best().begin(at(ms));
        }
        let sample =
            |flow: usize| Sample { arrived: if demands[flow].is_some() { ms } else { 0 }, ..Sample::default() };
        rapid.update(at(ms), &mut { sample }, &mut |flow, decision| decided[flow] = Some((*decision, capacity)));
    }
    let states = rapid.flows.iter_mut().map(|(_, flow)| flow.state.best().potential);
    let of = |(decided, potential): (Option<(crate::Decision, f64)>, f64)| {
        let (decision, capacity) = decided.expect("it is decided");
        let rate = decision.rate.map_or(0.0, |rate| rate.bits_per_sec() as f64 / 8.0);
        (rate / capacity, potential / capacity, decision.category)
    };
    decided.into_iter().zip(states).map(of).collect()
}

/// Max-min by hand: the demands, what each flow is promised, and what it would be if it took everything.
#[test]
fn demands_of_all_kinds_share_the_capacity_and_no_more() {
    use Demand::{Everything, Limited, Unknown};
    type Case<'a> = &'a [(Option<Demand>, f64, f64)];
    let cases: [Case<'_>; 9] = [
        // Two want more than there is, and a slow one has what it wants and no more.
        &[(Some(Limited(0.1)), 0.1, 1.0 / 3.0), (Some(Limited(0.8)), 0.45, 0.45), (Some(Limited(0.8)), 0.45, 0.45)],
        // What nobody wants is for the slow ones, in equal parts. Each could have all that the other does not want.
        &[(Some(Limited(0.2)), 0.45, 0.7), (Some(Limited(0.3)), 0.55, 0.8)],
        &[(Some(Limited(0.2)), 1.0, 1.0)],
        &[(Some(Limited(0.2)), 0.2, 0.5), (Some(Everything), 0.8, 0.8)],
        &[(Some(Everything), 0.5, 0.5), (Some(Everything), 0.5, 0.5)],
        &[(Some(Everything), 0.4, 0.4), (Some(Limited(0.5)), 0.4, 0.4), (Some(Limited(0.2)), 0.2, 1.0 / 3.0)],
        // A new flow may take its share, and until it does, the others leave nothing.
        &[(Some(Unknown), 0.5, 0.5), (Some(Everything), 1.0, 1.0)],
        &[(Some(Unknown), 0.25, 0.5), (Some(Unknown), 0.25, 0.5), (Some(Limited(0.5)), 1.0, 1.0)],
        // A flow that is silent is none.
        &[(None, 0.0, 0.0), (Some(Everything), 1.0, 1.0)],
    ];
    for case in cases {
        let demands: Vec<_> = case.iter().map(|(demand, _, _)| *demand).collect();
        for (flow, (got, wanted)) in promises(&demands, 0.0).iter().zip(case).enumerate() {
            let (demand, promise, potential) = *wanted;
            assert!((got.0 - promise).abs() < 1e-6, "{demands:?}, {flow}: promised {} of {promise}", got.0);
            if demand.is_some() {
                assert!((got.1 - potential).abs() < 1e-6, "{demands:?}, {flow}: could have {} of {potential}", got.1);
            }
            let category = match demand {
                None => Category::Idle,
                Some(Limited(_)) => Category::Slow,
                Some(_) => Category::Fast,
            };
            assert_eq!(got.2, category, "{demands:?}, {flow}");
        }
    }
}

/// Once new flows take more than their share, they count as one flow more.
#[test]
fn new_flows_have_a_share_together() {
    use Demand::{Everything, Limited, Unknown};
    let demands = [Limited(0.2), Everything, Unknown, Unknown].map(Some);
    let of = promises(&demands, 10.0);
    // 0.4 for the fast flow and for the new ones. Each of these may have a third of both.
    let wanted = [(0.2, 1.0 / 3.0), (0.4, 0.4), (0.8 / 3.0, 0.8 / 3.0), (0.8 / 3.0, 0.8 / 3.0)];
    for (flow, (got, wanted)) in of.iter().zip(wanted).enumerate() {
        assert!((got.0 - wanted.0).abs() < 1e-6 && (got.1 - wanted.1).abs() < 1e-6, "{flow}: {got:?} for {wanted:?}");
    }
}

/// A flow whose demand shows, or becomes unknown again, takes its average of delivery with it. The flows of unknown demand have
/// together no less than nothing, although their average may be older than that of the flow.
#[test]
fn what_new_flows_take_together_changes_by_what_a_flow_takes_with_it() {
    use Demand::{Everything, Limited, Unknown};
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let after = |demand: Demand, before: f64, held: u64| {
        let mut rapid = Rapid::new(Config { policy: Policy::Best(Best::default()), ..Config::default() });
        rapid.open(0, (), 1448, at(0));
        let mut told = report(at(99), Span::from_millis(1), 0.0);
        told.bits_per_prb = Some(1600.0);
        rapid.on_report((), &told, at(99));
        rapid.ues.get_mut(&()).expect("it has a flow").best.unknown = before;
        let (_, flow) = rapid.flows.iter_mut().next().expect("it is open");
        let state = flow.state.best();
        (state.demand, state.rate, state.potential) = (demand, 1e6, 1e9);
        let sample = |_| Sample { arrived: 100_000 + held, delivered: 100_000, ..Sample::default() };
        rapid.update(at(100), &mut { sample }, &mut |_, _| {});
        let (_, flow) = rapid.flows.iter_mut().next().expect("it is open");
        (flow.state.best().demand, rapid.ues[&()].best.unknown)
    };
    // It has taken all that it was promised.
    assert_eq!(after(Unknown, 1.5e6, 10_000), (Everything, 0.5e6));
    assert_eq!(after(Unknown, 1e6, 10_000), (Everything, 0.0));
    assert_eq!(after(Unknown, 0.4e6, 10_000), (Everything, 0.0));
    // It has grown beyond what it wanted.
    assert_eq!(after(Limited(1000.0), 0.4e6, 0), (Unknown, 1.4e6));
    assert_eq!(after(Everything, 0.4e6, 10_000), (Everything, 0.4e6));
}

/// It is in doubt once it was far too low for 200 ms, in all of which there were fresh reports.
#[test]
fn a_feed_is_judged_for_as_long_as_its_latest_report_is_believed() {
    let start = Time::ZERO + Span::from_millis(1);
    let doubt = |last: Span| {
        let mut ue = crate::flow::Ue::default();
        ue.best.delivered = 1e6;
        for ms in 0..=200 {
            let now = start + Span::from_millis(ms);
            if now < start + last + Span::from_millis(1) {
                let mut told = report(now.min(start + last), Span::from_millis(1), 0.0);
                told.bits_per_prb = Some(1.0);
                ue.capacity.on_report(&told, now);
            }
            super::judge(&mut ue, (0, 0.02, 0.02), true, 0.001, now);
        }
        ue.best.trust.doubt()
    };
    let believed = Span::from_millis(100);
    let last = Span::from_millis(200) - believed;
    assert_eq!([doubt(last), doubt(last - Span::from_nanos(1))], [Some(Doubt::TooLow), None]);
}

/// Fresh for 100 ms, and then fading for a second.
#[test]
fn a_capacity_without_reports_fades_to_what_is_delivered_and_is_unknown_in_the_end() {
    let capacity = |bits_per_prb, delivered, age: Span| {
        let mut ue = crate::flow::Ue::default();
        let mut told = report(Time::ZERO + Span::from_millis(1), Span::from_millis(1), 0.0);
        (told.bits_per_prb, told.active_ues) = (Some(bits_per_prb), Some(0));
        ue.capacity.on_report(&told, told.time);
        (ue.best.delivered, ue.best.gain) = (delivered, 1.5);
        super::judge(&mut ue, (0, 0.02, 0.02), true, 0.001, told.time);
        super::capacity(&ue, told.time + age)
    };
    // 100 blocks of 1600 bits each millisecond, corrected.
    let reported = 20e6 * super::PAYLOAD * 1.5;
    for (ms, wanted) in
        [(0, reported), (100, reported), (350, 0.75 * reported + 1e6), (600, 0.5 * reported + 2e6), (1_100, 4e6)]
    {
        let got = capacity(1600.0, 4e6, Span::from_millis(ms)).expect("it is known");
        assert!((got - wanted).abs() < 1.0, "{ms} ms: {got} for {wanted}");
    }
    assert_eq!(capacity(1600.0, 4e6, Span::from_millis(1_100) + Span::from_nanos(1)), None);
    let more = capacity(1600.0, 1e6, Span::ZERO).expect("it is known");
    assert!((more - reported).abs() < 1.0, "less says nothing");
}

/// 1 MB/s in segments of 1000 bytes, with 50 ms to the server. By hand: half of the 2 ms that the proxy keeps are 1 kB, and four segments.
#[test]
fn windows_and_pacing_are_for_the_promise_on_each_leg() {
    let ms = |ms: u64| Some(Span::from_millis(ms));
    let sample = |least: u64, now: u64| Sample {
        wan_rtt: ms(50),
        ran_min_rtt: ms(least),
        ran_rtt: ms(now),
        ..Sample::default()
    };
    let unknown = Sample { ran_min_rtt: None, ran_rtt: None, ..sample(0, 0) };
    // The time on the leg and the target of 5 ms, twice.
    for (what, promise, sample, base, follows_queue, receive, unsent, window, pacing) in [
        ("the leg's own time", 1e6, sample(10, 60), Some(0.02), false, 67_500, 5_000, 50_000, 1.05e6),
        ("not less than the flow's", 1e6, sample(30, 60), Some(0.02), false, 67_500, 5_000, 70_000, 1.05e6),
        ("the flow's least", 1e6, sample(10, 60), None, false, 67_500, 5_000, 30_000, 1.05e6),
        ("unknown, it is 20 ms", 1e6, unknown, None, true, 67_500, 5_000, 50_000, 1.05e6),
        ("in a queue of others", 1e6, sample(10, 60), Some(0.02), true, 67_500, 5_000, 66_000, 1.05e6),
        ("without a queue", 1e6, sample(10, 30), Some(0.02), true, 67_500, 5_000, 50_000, 1.05e6),
        ("ten segments at least", 1e3, sample(10, 60), Some(0.02), false, 10_000, 4_001, 10_000, 0.21e6),
    ] {
        let leg = (base, 0.005, 2.0, 0.25);
        let got = super::settings(&Best::default(), 10, &sample, (1000.0, promise), leg, follows_queue);
        let is_near = |got: Option<u64>, wanted: u64| got.is_some_and(|got| got.abs_diff(wanted) <= 1);
        assert!(is_near(got.receive_window, receive) && got.receive_buffer == got.receive_window, "{what}: {got:?}");
        assert!(is_near(got.unsent, unsent) && is_near(got.window, window), "{what}: {got:?}");
        let paced = got.pacing.expect("it is paced").bits_per_sec() as f64 / 8.0;
        assert!((paced / pacing - 1.0).abs() < 1e-6, "{what}: {paced} for {pacing}");
    }
}

/// Beside a flow of short segments, of which more and more are in flight.
#[test]
fn segments_of_a_silent_flow_are_no_burst() {
    let windows = |mss: u32| {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut rapid = Rapid::new(Config { policy: Policy::Best(Best::default()), ..Config::default() });
        [(0, 100), (1, mss)].into_iter().for_each(|(flow, mss)| rapid.open(flow, (), mss, at(0)));
        let mut windows = Vec::new();
        for ms in 1..=500 {
            let mut told = report(at(ms), Span::from_millis(1), 8_000.0);
            (told.prbs, told.cell_prbs) = (Some(100), Some(100));
            rapid.on_report((), &told, at(ms));
            let rtt = |ms: u64| Some(Span::from_millis(ms));
            let busy = Sample {
                arrived: ms * 2_000,
                delivered: ms * 1_000,
                in_flight: 20_000 + ms * 300,
                wan_rtt: rtt(10),
                ran_rtt: rtt(20 + ms / 4),
                ran_min_rtt: rtt(20),
                ..Sample::default()
            };
            let mut sample = |flow| if flow == 0 { busy } else { Sample::default() };
            let mut decide = |flow, decision: &crate::Decision| windows.extend((flow == 0).then_some(*decision));
            rapid.update(at(ms), &mut sample, &mut decide);
        }
        (windows, rapid.ues[&()].best.gain)
    };
    let (short, gain) = windows(100);
    assert!(gain < 0.9, "the queue is seen: {gain}");
    assert_eq!(windows(60_000).0, short);
}
