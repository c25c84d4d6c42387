//! What a measurement has found, for people and for programs.

use super::limits;
use crate::out::counted;
use meter::{LEAST_WAIT, Load, Outcome, Phase, Plan, ProxySign};
use observe::kernel::{Flow, Way};
use observe::located::{Place, median};
use observe::modem::{CellSample, cell_changes};
use record::ms;
use serde_json::{Value, json};
use std::fmt::Write as _;
use units::Span;
use units::stats::{lower_place, nearest_rank};

/// Whether a proxy on the path answers for the server, for programs: null if that cannot be told.
pub(super) fn proxy(outcome: &Outcome) -> Value {
    outcome.proxy_signs().map_or(Value::Null, |signs| {
        let listed: Vec<Value> = signs.iter().map(|sign| describe_sign(*sign)).collect();
        let text = (!signs.is_empty()).then(|| proxy_text(&signs));
        json!({ "found": !signs.is_empty(), "signs": listed, "text": text })
    })
}

fn describe_sign(sign: ProxySign) -> Value {
    let mut described = match sign {
        ProxySign::Answers { acknowledged, answered } => {
            json!({ "acknowledged_ms": ms(acknowledged), "answered_ms": ms(answered) })
        }
        ProxySign::Ends { here, there } => json!({ "here_ms": ms(here), "there_ms": ms(there) }),
        ProxySign::Data { ahead, late } => json!({ "ahead_bytes": ahead.get(), "late_ms": ms(late) }),
    };
    described["sign"] = sign.name().into();
    described
}

/// Tells that a proxy answers for the server, and what that means for the results.
pub(super) fn proxy_text(signs: &[ProxySign]) -> String {
    let signs: Vec<String> = signs.iter().map(ProxySign::to_string).collect();
    format!(
        "a proxy on the path answers for the server: {}; TCP's round trips, limits, retransmissions and bytes in flight are those of \
         the path up to the proxy",
        signs.join("; ")
    )
}

/// What a load shows, for programs.
pub(super) fn describe(outcome: &Outcome, load: &Load) -> Value {
    let located = outcome.located(load);
    let milliseconds = |span: Option<Span>| span.map(ms);
    let worst = located.worst(LEAST_WAIT).map(|(place, _)| place.name());
    let ways: Vec<Value> = [Way::Down, Way::Up]
        .into_iter()
        .filter(|&way| load.has(way))
        .map(|way| {
            let rates = load.throughput(way);
            let flows = || load.flows.iter().filter(move |flow| flow.way == way);
            json!({
                "direction": way.name(),
                "mbps": rates.map(|rates| rates.total.as_mbps()),
                "mbps_interpolated": rates.map(|rates| rates.interpolated.as_mbps()),
                "bytes": flows().map(Flow::total).sum::<Option<u64>>(),
                "flows": flows().map(limits::describe).collect::<Vec<_>>(),
                "failures": flows().filter_map(|flow| flow.failure.clone()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let (probe, rtts) =
        outcome.to_server(load).map_or_else(Default::default, |(probe, rtts)| (Some(probe.name()), rtts));
    let [before, during, after] = rtts.map(|rtts| milliseconds(median(&rtts)));
    let responsiveness = outcome.responsiveness(load);
    json!({
        "directions": ways,
        "rtt_ms": { "probe": probe, "before": before, "during": during, "after": after },
        "rpm": responsiveness.map(|responsiveness| responsiveness.rpm),
        "queue_ms": {
            "host": milliseconds(located.host),
            "modem": milliseconds(located.modem),
            "network": milliseconds(located.network),
            "total": milliseconds(located.total),
            "behind": located.behind.map(|behind| json!({ "value": behind.ms, "error": behind.error_ms })),
            "longest": worst,
        },
    })
}

/// What a load shows, for people.
pub(super) fn text(plan: &Plan, outcome: &Outcome, load: &Load) -> String {
    let mut text = String::new();
    for way in [Way::Down, Way::Up].into_iter().filter(|&way| load.has(way)) {
        let flows: Vec<_> = load.flows.iter().filter(|flow| flow.way == way).collect();
        let names: Vec<&str> =
            flows.iter().map(|flow| flow.congestion.as_str()).filter(|name| !name.is_empty()).collect();
        let kinds = names.iter().fold(Vec::new(), |mut kinds: Vec<&str>, name| {
            if !kinds.contains(name) {
                kinds.push(name);
            }
            kinds
        });
        let of = if kinds.is_empty() { String::new() } else { format!(" of {}", kinds.join(" and ")) };
        let rate = load.throughput(way).map_or_else(
            || {
                let is_cut = outcome.interrupted && flows.iter().any(|flow| flow.failure.is_some());
                let what = if is_cut { "interrupted before its end" } else { "no flow reached its end" };
                what.to_owned()
            },
            |rates| {
                format!(
                    "{:.2} Mbit/s over {:.1} s ({:.2} Mbit/s until the first flow ended)",
                    rates.total.as_mbps(),
                    rates.longest.as_secs_f64(),
                    rates.interpolated.as_mbps()
                )
            },
        );
        let _ = writeln!(text, "{}, {}{of}: {rate}", way.name(), counted(plan.flows as u64, "flow"));
        // What limited a download is the server's to tell.
        if way == Way::Up || flows.iter().any(|flow| flow.limits().is_some()) {
            for (line, limited) in limits::lines(&flows).into_iter().enumerate() {
                let _ = writeln!(text, "  {:<10}   {limited}", if line == 0 { "limited by" } else { "" });
            }
        }
        for flow in flows.iter().filter_map(|flow| Some((flow.number, flow.failure.as_ref()?))) {
            let _ = writeln!(text, "  flow {} failed: {}", flow.0, flow.1);
        }
    }
    let [before, during, _] = outcome.to_server(load).map(|(_, rtts)| rtts).unwrap_or_default();
    let show = |spans: &[Span]| median(spans).map_or_else(|| "-".to_owned(), |span| format!("{:.0} ms", ms(span)));
    let mut sorted = during.clone();
    sorted.sort_unstable();
    let p95 = lower_place(&sorted, 0.95);
    let _ = write!(text, "  round trip   {} idle, {} under load", show(&before), show(&during));
    if let Some(p95) = p95 {
        let _ = write!(text, " (p95 {:.0} ms)", ms(p95));
    }
    if let Some(responsiveness) = outcome.responsiveness(load) {
        let _ = write!(text, ", {:.0} round trips a minute", responsiveness.rpm);
    }
    let _ = writeln!(text, "\n  queue        {}", queue(outcome, load));
    if let Some(radio) = radio(outcome, load) {
        let _ = writeln!(text, "  radio        {radio}");
    }
    text
}

/// What the first cell's modem told during a load; `None` if it told nothing.
fn radio(outcome: &Outcome, load: &Load) -> Option<String> {
    let is_during = |at| load.phase(at) == Some(Phase::During);
    let first = |cell: &&CellSample| !cell.secondary && is_during(cell.at);
    let cells: Vec<&CellSample> = outcome.cells.iter().filter(first).collect();
    let mut rsrps: Vec<f64> = cells.iter().filter_map(|cell| cell.rsrp_dbm).collect();
    rsrps.sort_by(f64::total_cmp);
    let technology = cells.iter().rev().find_map(|cell| cell.technology);
    let changes = cell_changes(&outcome.cells).filter(|cell| is_during(cell.at)).count();
    let strength = match &rsrps[..] {
        [] => "RSRP unknown".to_owned(),
        [least, .., most] => {
            let median = nearest_rank(&rsrps, 0.5).unwrap_or(*least);
            format!("RSRP {median:.0} dBm ({least:.0} to {most:.0})")
        }
        [only] => format!("RSRP {only:.0} dBm"),
    };
    let technology = technology.map_or("no service", |technology| technology.name()).to_uppercase();
    (!cells.is_empty()).then(|| format!("{technology}, {strength}, {}", counted(changes as u64, "cell change")))
}

/// Where packets waited.
fn queue(outcome: &Outcome, load: &Load) -> String {
    let located = outcome.located(load);
    let host = located.host.map(|host| format!("host {:.0} ms", ms(host)));
    // The parts have the uncertainty of the difference that divides them.
    let digits = |error: f64| usize::from(error < 1.0);
    let part = |name: &str, part: Option<Span>, error: f64| {
        let digits = digits(error);
        let value =
            part.map_or_else(|| "unknown".to_owned(), |part| format!("{:.digits$} ± {error:.digits$} ms", ms(part)));
        format!("{name} {value}")
    };
    let modem = located.behind.map(|behind| part("modem and radio", located.modem, behind.error_ms));
    let network = located.behind.map(|behind| match located.network {
        None => {
            let digits = digits(behind.error_ms);
            format!("network behind unknown: {:.digits$} ± {:.digits$} ms", behind.ms, behind.error_ms)
        }
        network => part("network behind", network, behind.error_ms),
    });
    let shown: Vec<String> = [host, modem, network].into_iter().flatten().collect();
    let place = match (located.worst(LEAST_WAIT), located.total) {
        (Some((Place::Host, _)), _) => "in this host",
        (Some((Place::Modem, _)), _) if load.has(Way::Up) => "in the modem or the radio access",
        (Some((Place::Modem, _)), _) => "in the radio access",
        (Some((Place::Network, _)), _) => "in the network behind the radio access",
        (None, Some(total)) if total >= LEAST_WAIT && located.behind.is_none() => {
            "somewhere on the path: no router answered under load"
        }
        (None, Some(total)) if total >= LEAST_WAIT => "somewhere on the path: the probes of routers do not tell where",
        (None, Some(_)) => "none worth a name",
        (None, None) => "not measured",
    };
    if shown.is_empty() { place.to_owned() } else { format!("{place} ({})", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meter::{Latency, LoadTimes, Probe};
    use observe::kernel::Remote;
    use observe::progress::Samples;
    use units::Time;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// A flow that begins with the second second and moves a megabyte in it.
    fn flow(way: Way, number: usize, failure: Option<&str>) -> Flow {
        let mut bytes = Samples::default();
        bytes.finish(Span::from_secs(1), 1_000_000);
        Flow {
            way,
            number,
            congestion: String::new(),
            start: at(1_000),
            bytes,
            acknowledged: false,
            ended: None,
            before: None,
            samples: Vec::new(),
            remote: Remote::default(),
            passages: Vec::new(),
            failure: failure.map(str::to_owned),
        }
    }

    /// The outcome of a load in the second second, between two of probes alone.
    fn outcome(flows: Vec<Flow>, latencies: Vec<Latency>) -> Outcome {
        let times =
            LoadTimes { before: at(0), warming: at(1_000), during: at(1_000), after: at(2_000), end: at(3_000) };
        Outcome { loads: vec![Load { times, flows }], latencies, finished: 1, ..Outcome::default() }
    }

    #[test]
    fn a_failure_is_told_in_its_own_direction_alone() {
        let refused = Some("the server refuses the measurement");
        let outcome = outcome(vec![flow(Way::Down, 0, refused), flow(Way::Up, 0, None)], Vec::new());
        let described = describe(&outcome, &outcome.loads[0]);
        assert_eq!(described["directions"][0]["failures"], json!([refused]));
        assert_eq!(described["directions"][1]["failures"], json!([]));
    }

    #[test]
    fn the_round_trips_of_a_load_are_of_one_kind_of_probe() {
        let probe = |ms: u64, probe, rtt| Latency { at: at(ms), probe, rtt: Some(Span::from_millis(rtt)) };
        let of = |latencies: &[Latency]| {
            let outcome = outcome(vec![flow(Way::Up, 0, None)], latencies.to_vec());
            describe(&outcome, &outcome.loads[0])["rtt_ms"].take()
        };
        let requests = [(500, 30), (1_500, 90), (2_500, 31)].map(|(ms, rtt)| probe(ms, Probe::Request, rtt));
        let expected = json!({ "probe": "request", "before": 30.0, "during": 90.0, "after": 31.0 });
        assert_eq!(of(&requests), expected);
        // No echo is answered under load: requests are not compared with it.
        let echo = probe(400, Probe::Echo, 10);
        assert_eq!(of(&[&[echo][..], &requests].concat()), expected);
        let under = probe(1_600, Probe::Echo, 70);
        let expected = json!({ "probe": "echo", "before": 10.0, "during": 70.0, "after": null });
        assert_eq!(of(&[&[echo, under][..], &requests].concat()), expected);
        let expected = json!({ "probe": null, "before": null, "during": null, "after": null });
        assert_eq!(of(&[]), expected);
    }

    #[test]
    fn a_proxy_is_told_to_people_and_programs_and_null_if_nothing_tells() {
        let mut outcome = outcome(vec![flow(Way::Up, 0, None)], Vec::new());
        assert_eq!(proxy(&outcome), Value::Null);
        let of = |answered| {
            let acknowledged = Some(Span::from_millis(2));
            Some(meter::Requests { acknowledged, answered: Span::from_millis(answered), count: 20 })
        };
        outcome.requests = of(4);
        assert_eq!(proxy(&outcome), json!({ "found": false, "signs": [], "text": null }));
        outcome.requests = of(62);
        let found = proxy(&outcome);
        let signs = json!([{ "sign": "answers", "acknowledged_ms": 2.0, "answered_ms": 62.0 }]);
        assert_eq!((&found["found"], &found["signs"]), (&json!(true), &signs));
        let text = found["text"].as_str().expect("a sentence");
        assert!(
            text.starts_with("a proxy on the path answers for the server: TCP is answered within 2.0 ms"),
            "{text}"
        );
    }
}
