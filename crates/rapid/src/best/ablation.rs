//! What each rule of the policy is worth, in networks that were not used to choose it: none has the capacity, round-trip times,
//! reports or disturbances of another test.
//!
//! `cargo test -p rapid ablation -- --ignored` checks the table of docs/src/reference/rapid-ablation.md. `make test` leaves it out.

use super::parameters::Best;
use super::rules::{LEFT_OUT, Rule};
use crate::Policy;
use crate::fluid::{Draw, Lab, Reports};
use std::fmt::Write;
use units::{Span, Time};

/// The step of events, and how many there are before the measurement and in it.
const STEP: f64 = 0.05;
const BEFORE: u64 = 80;
const MEASURED: u64 = 200;

/// A flow to the UE: the round-trip time of its wired leg in milliseconds, and what its application writes in Mbit/s.
#[derive(Clone, Copy)]
enum Flow {
    Bulk(u64),
    App(u64, f64),
    /// As `App`, in whole segments.
    Segments(u64, f64),
    /// Its application writes only what an event of the network tells it to.
    Pages(u64),
}
use Flow::{App, Bulk, Pages, Segments};

/// A network: the UE's capacity in Mbit/s at first, its reports and flows, and what happens in each step.
struct Network {
    name: &'static str,
    mbps: f64,
    reports: Reports,
    flows: &'static [Flow],
    event: fn(&mut Run, u64),
}

struct Run {
    lab: Lab,
    ue: u32,
    mbps: f64,
    flows: Vec<usize>,
    draw: Draw,
}

/// What becomes of a network.
#[derive(Clone, Copy)]
struct Outcome {
    /// The part that was used of what the radio could carry beside other traffic.
    used: f64,
    /// Jain's index of the bulk flows.
    fair: f64,
    /// The least part of its demand that an application-limited flow received.
    kept: f64,
    /// The median and the 95th percentile of the time that a byte waits in the proxy and the radio, in milliseconds.
    p50: f64,
    p95: f64,
}

impl Network {
    fn run(&self) -> Outcome {
        let mut lab = Lab::new(Policy::Best(Best::default()), self.reports);
        let ue = lab.ue(self.mbps);
        let mut flow = |flow: &Flow| match *flow {
            Bulk(rtt) => lab.flow(ue, rtt, None),
            App(rtt, mbps) => lab.flow(ue, rtt, Some(mbps)),
            Pages(rtt) => lab.flow(ue, rtt, Some(0.0)),
            Segments(rtt, mbps) => {
                let flow = lab.flow(ue, rtt, Some(mbps));
                lab.in_segments(flow);
                flow
            }
        };
        let flows = self.flows.iter().map(&mut flow).collect();
        let mut run = Run { lab, ue, mbps: self.mbps, flows, draw: Draw(3) };
        let mut got = Vec::new();
        for at in 0..BEFORE + MEASURED {
            if at == BEFORE {
                run.lab.begin();
            }
            (self.event)(&mut run, at);
            got = run.lab.run(STEP);
        }
        // A run divides what came since the beginning by the length of the last step.
        got.iter_mut().for_each(|mbps| *mbps /= MEASURED as f64);
        self.outcome(&got, run.lab)
    }

    fn outcome(&self, got: &[f64], mut lab: Lab) -> Outcome {
        let seconds = STEP * MEASURED as f64;
        let used = got.iter().sum::<f64>() * 125_000.0 * seconds / lab.room;
        let (mut sum, mut squares, mut bulks, mut kept) = (0.0, 0.0, 0.0, 1.0_f64);
        for (flow, got) in self.flows.iter().zip(got) {
            match *flow {
                Bulk(_) => (sum, squares, bulks) = (sum + got, squares + got * got, bulks + 1.0),
                App(_, mbps) | Segments(_, mbps) => kept = kept.min(got / mbps),
                Pages(_) => {}
            }
        }
        lab.waits.sort_unstable_by(f64::total_cmp);
        let percentile = |part: f64| lab.waits[((lab.waits.len() - 1) as f64 * part) as usize] * 1e3;
        Outcome { used, fair: sum * sum / squares / bulks, kept, p50: percentile(0.5), p95: percentile(0.95) }
    }
}

fn nothing(_: &mut Run, _: u64) {}

/// The channel fades each 200 ms, down to 30 %.
fn fades(run: &mut Run, at: u64) {
    if at.is_multiple_of(4) {
        let part = 0.3 + run.draw.below(701) as f64 / 1000.0;
        run.lab.set_capacity(run.ue, run.mbps * part);
    }
}

/// Each 2.5 s, 50 ms without a radio, and then another cell.
fn hands_over(run: &mut Run, at: u64) {
    let part = match at % 100 {
        0 | 50 => 1e-5,
        1 => 0.3,
        51 => 1.0,
        _ => return,
    };
    run.lab.set_capacity(run.ue, run.mbps * part);
}

/// 30 % of the capacity are of others.
fn others(run: &mut Run, _: u64) {
    run.lab.unseen(run.ue, run.mbps * 0.3);
}

/// 40 % of the capacity are of others, in each other second.
fn others_at_times(run: &mut Run, at: u64) {
    let part = if (at / 20).is_multiple_of(2) { 0.4 } else { 0.0 };
    run.lab.unseen(run.ue, run.mbps * part);
}

/// Each 100 ms a flow of 30 kB, which closes a second later.
fn short_flows(run: &mut Run, at: u64) {
    if at.is_multiple_of(2) {
        let flow = run.lab.flow(run.ue, 40, Some(0.0));
        run.lab.write_once(flow, 30_000.0);
        run.flows.push(flow);
        if run.flows.len() > 11 {
            let flow = run.flows.remove(1);
            run.lab.close(flow);
        }
    }
}

/// Each 400 ms, 60 kB on each flow of pages.
fn pages(run: &mut Run, at: u64) {
    for flow in 1..run.flows.len() {
        if (at + 2 * flow as u64).is_multiple_of(8) {
            run.lab.write_once(run.flows[flow], 60_000.0);
        }
    }
}

/// All flows but the first write 12 Mbit/s for 0.6 of 1.5 s.
fn pauses(run: &mut Run, at: u64) {
    for flow in 1..run.flows.len() {
        match (at + 7 * flow as u64) % 30 {
            0 => run.lab.write(run.flows[flow], Some(12.0)),
            12 => run.lab.write(run.flows[flow], Some(0.0)),
            _ => {}
        }
    }
}

/// The first flow writes 6 or 20 Mbit/s, for 2 s each.
fn changes(run: &mut Run, at: u64) {
    if at.is_multiple_of(40) {
        let mbps = if at.is_multiple_of(80) { 6.0 } else { 20.0 };
        run.lab.write(run.flows[0], Some(mbps));
    }
}

/// Acknowledgements wait for an upload, for 2 of 4 s.
fn uploads(run: &mut Run, at: u64) {
    if at.is_multiple_of(40) {
        run.lab.delay_acks(Span::from_millis(if at.is_multiple_of(80) { 0 } else { 110 }));
    }
}

/// Each 2 s, acknowledgements stand still for 450 ms, as while a loss is repaired.
fn losses(run: &mut Run, at: u64) {
    match at % 40 {
        0 => run.lab.delay_acks(Span::from_millis(450)),
        9 => run.lab.delay_acks(Span::ZERO),
        _ => {}
    }
}

fn far_radio(run: &mut Run, at: u64) {
    if at == 0 {
        run.lab.set_radio_rtt(Span::from_millis(30));
    }
}

fn near_radio(run: &mut Run, at: u64) {
    if at == 0 {
        run.lab.set_radio_rtt(Span::from_millis(2));
    }
}

/// Reports of a fifth of the capacity, in each other second.
fn feed_errs(run: &mut Run, at: u64) {
    if at.is_multiple_of(20) {
        run.lab.set_factor(if at.is_multiple_of(40) { 1.0 } else { 0.2 });
    }
}

/// There are no reports for 4 of 7 s.
fn feed_stops(run: &mut Run, at: u64) {
    match at % 140 {
        0 => run.lab.report_until(Time::MAX),
        60 => run.lab.report_until(Time::ZERO),
        _ => {}
    }
}

/// Reports each so many milliseconds, which do not tell the queue.
fn each(ms: u64) -> Reports {
    Reports { period: Span::from_millis(ms), ..Reports::default() }
}

/// As `each`, with the queue.
fn queue(ms: u64) -> Reports {
    Reports { queue: true, ..each(ms) }
}

const FEW: &[Flow] = &[App(35, 7.0), Bulk(35)];
const FAR_AND_NEAR: &[Flow] = &[Segments(45, 1.2), Bulk(12), Bulk(70), Bulk(150)];
const SMALL: &[Flow] = &[Segments(60, 0.7), Bulk(60)];
const MANY: &[Flow] = &[Bulk(30); 24];
const MORE: &[Flow] = &[Bulk(35); 48];
const ALONE: &[Flow] = &[Bulk(28)];
const PAGES: &[Flow] = &[Bulk(25), Pages(25), Pages(25), Pages(25), Pages(25)];
const PAUSES: &[Flow] = &[Bulk(25), App(25, 4.8), App(25, 4.8), App(25, 4.8)];
const CHANGES: &[Flow] = &[App(35, 13.0), Bulk(35)];

fn networks() -> Vec<Network> {
    let of = |name, mbps, reports, flows, event| Network { name, mbps, reports, flows, event };
    let late = |ms: u64, reports: Reports| Reports { late: Span::from_millis(ms), ..reports };
    let wrong = |factor: f64, reports: Reports| Reports { factor, ..reports };
    let noise = |reports: Reports| Reports { noise: 0.2, ..reports };
    vec![
        of("60 Mbit/s", 60.0, each(5), FEW, nothing),
        of("60 Mbit/s, queue told", 60.0, queue(5), FEW, nothing),
        of("600 Mbit/s, four RTTs", 600.0, each(2), FAR_AND_NEAR, nothing),
        of("8 Mbit/s", 8.0, each(40), SMALL, nothing),
        of("3 Mbit/s, queue told", 3.0, queue(5), SMALL, nothing),
        of("24 flows", 90.0, each(40), MANY, nothing),
        of("24 flows, queue told", 30.0, queue(5), MANY, nothing),
        of("48 flows, rare reports", 40.0, queue(120), MORE, nothing),
        of("far radio", 60.0, each(5), FEW, far_radio),
        of("near radio", 400.0, each(2), FEW, near_radio),
        of("near radio, queue told", 400.0, queue(2), FEW, near_radio),
        of("noise", 60.0, noise(each(5)), FEW, nothing),
        of("noise, rare reports", 60.0, noise(queue(250)), FEW, nothing),
        of("reports × 0.7", 60.0, wrong(0.7, each(30)), FEW, nothing),
        of("reports × 1.6", 60.0, wrong(1.6, each(30)), FEW, nothing),
        of("reports × 1.6, queue told", 60.0, wrong(1.6, queue(30)), FEW, nothing),
        of("reports × 1.6, others", 70.0, wrong(1.6, queue(5)), FEW, others),
        of("blocks × 0.2", 60.0, Reports { bits: false, ..wrong(0.2, each(30)) }, FEW, nothing),
        of("reports × 0.2, rare", 60.0, wrong(0.2, each(300)), FEW, nothing),
        of("reports × 6, queue told", 60.0, wrong(6.0, queue(30)), FEW, nothing),
        of("reports × 6, rare", 60.0, wrong(6.0, each(300)), FEW, nothing),
        of("reports × 0.2 at times", 60.0, each(10), FEW, feed_errs),
        of("blocks × 16", 15.0, Reports { bits: false, ..wrong(16.0, each(30)) }, FEW, nothing),
        of("no reports", 60.0, Reports { until: Time::ZERO, ..each(20) }, FEW, nothing),
        of("reports stop", 60.0, each(20), FEW, feed_stops),
        of("fading", 70.0, each(10), FEW, fades),
        of("fading, queue told", 70.0, queue(2), FEW, fades),
        of("fading, rare reports", 70.0, queue(400), FEW, fades),
        of("fading, late reports", 70.0, late(80, queue(10)), FEW, fades),
        of("handovers", 75.0, each(10), FEW, hands_over),
        of("handovers, rare reports", 75.0, queue(150), FEW, hands_over),
        of("others", 70.0, each(5), FEW, others),
        of("others, queue told", 70.0, queue(5), FEW, others),
        of("others, rare reports", 70.0, queue(200), FEW, others),
        of("others at times", 70.0, queue(5), FEW, others_at_times),
        of("others at times, late reports", 70.0, late(60, each(20)), FEW, others_at_times),
        of("short flows", 40.0, each(10), ALONE, short_flows),
        of("pages", 30.0, each(10), PAGES, pages),
        of("pages, rare reports", 30.0, queue(300), PAGES, pages),
        of("pauses", 50.0, each(10), PAUSES, pauses),
        of("changes of demand", 45.0, each(10), CHANGES, changes),
        of("losses", 60.0, each(10), FEW, losses),
        of("losses, queue told", 60.0, queue(2), FEW, losses),
        of("upload", 50.0, each(10), FEW, uploads),
        of("upload, queue told", 50.0, queue(5), FEW, uploads),
        of("upload, rare reports", 50.0, queue(200), FEW, uploads),
        of("upload, late reports", 50.0, late(120, queue(10)), FEW, uploads),
    ]
}

/// The networks and what `best` makes of them.
fn outcomes(networks: &[Network], all: &[Outcome]) -> String {
    let mut out = String::from(
        "| network | capacity used, % | fairness of bulk flows | demand kept, % | median wait, ms | 95th percentile, ms |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (network, Outcome { used, fair, kept, p50, p95 }) in networks.iter().zip(all) {
        let (name, used, kept) = (network.name, used * 100.0, kept * 100.0);
        writeln!(out, "| {name} | {used:.1} | {fair:.2} | {kept:.1} | {p50:.0} | {p95:.0} |")
            .expect("a string takes it");
    }
    out
}

/// What a change costs in the networks, as a row of a table.
fn cost(what: &str, networks: &[Network], before: &[Outcome], after: &[Outcome]) -> String {
    let of = |cost: &dyn Fn(&Outcome, &Outcome) -> f64| {
        let all = before.iter().zip(after).map(|(before, after)| cost(before, after)).zip(networks);
        let all: Vec<(f64, &str)> = all.map(|(cost, network)| (cost, network.name)).collect();
        let mean = all.iter().map(|(cost, _)| cost).sum::<f64>() / all.len() as f64;
        let (worst, name) = all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).expect("there are networks");
        (mean, worst, name)
    };
    let (used, worst_used, least_used) = of(&|before, after| (before.used - after.used) * 100.0);
    let (_, kept, least_kept) = of(&|before, after| (before.kept - after.kept) * 100.0);
    let (_, fair, _) = of(&|before, after| before.fair - after.fair);
    // Less than 2 ms are no difference.
    let (delay, worst_delay, longest) = of(&|before, after| (after.p95.max(2.0) / before.p95.max(2.0)).ln());
    let used = if used.abs() < 0.05 { 0.0 } else { used };
    let named = |value: String, is_some: bool, name: &str| if is_some { format!("{value} ({name})") } else { value };
    format!(
        "| {what} | {used:.1} | {} | {} | {fair:.2} | {:.2} | {} |\n",
        named(format!("{worst_used:.1}"), worst_used >= 0.5, least_used),
        named(format!("{kept:.1}"), kept >= 0.5, least_kept),
        delay.exp(),
        named(format!("{:.2}", worst_delay.exp()), worst_delay.exp() >= 1.05, longest),
    )
}

#[test]
#[ignore = "it takes minutes"]
fn each_rule_is_worth_what_the_table_says() {
    let networks = networks();
    let run = || -> Vec<Outcome> { networks.iter().map(Network::run).collect() };
    let before = run();
    let mut out = outcomes(&networks, &before);
    out += "\n| rule that is left out | capacity lost, points: mean | at most | demand not kept, points: at most | fairness lost: \
            at most | 95th percentile of the wait: mean factor | at most |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for &rule in Rule::ALL {
        LEFT_OUT.set(Some(rule));
        out += &cost(rule.what(), &networks, &before, &run());
    }
    LEFT_OUT.set(None);
    insta::assert_binary_snapshot!("worth.md", out.into_bytes());
}
