//! What wins over what, and what a sweep is.

use crate::common::load;
use aqm::drop_tail::{self, Victim};
use aqm::{codel, pfifo_fast};
use cc::bbr::{self, Version};
use cc::scalable;
use scenario::{Capacity, Cc, Delay, Loaded, Loss, Queue, Samples, Scenario, Traffic, Transport};
use units::{Bytes, Rate, Span};

const BASE: &str = r#"
title = "base"
duration = "100 s"
warmup = "1 s"
seed = 1
[dumbbell]
rate = "10 Mbit/s"
rtt = "30 ms"
queue = { kind = "codel", target = "7 ms" }
[[flows]]
name = "a"
"#;

fn only(loaded: &Loaded) -> &Scenario {
    assert_eq!(loaded.points().len(), 1);
    &loaded.points()[0].scenario
}

fn constant(ms: u64) -> Delay {
    Span::from_millis(ms).into()
}

#[test]
fn the_file_wins_over_its_includes_and_a_later_include_over_an_earlier() {
    let mine = "include = [\"one\", \"two\"]\nseed = 4\n[dumbbell]\nrtt = \"50 ms\"";
    let two = "seed = 3\nwarmup = \"3 s\"";
    let loaded = load(&[("mine", mine), ("one", BASE), ("two", two)], &[]).unwrap();
    let s = only(&loaded);
    assert_eq!((s.title.as_str(), s.seed, s.warmup), ("base", 4, Span::from_secs(3)));
    assert_eq!(
        (&s.links[0].delay, &s.links[0].rate),
        (&constant(25), &Some(Capacity::Constant { rate: Rate::from_mbps(10) }))
    );
}

#[test]
fn an_override_wins_over_the_file() {
    let loaded = load(&[("s", BASE)], &["seed=9", "dumbbell.rate=2 Mbit/s", "flows.a.cc=bbr", "record.samples=off"]);
    let loaded = loaded.unwrap();
    let s = only(&loaded);
    assert_eq!(
        (s.seed, &s.flows[0].cc, s.record.samples.clone()),
        (9, &Cc::Bbr(bbr::Parameters { linux: Version::Linux6_1 }), Samples::Off)
    );
    assert_eq!(s.links[0].rate, Some(Capacity::Constant { rate: Rate::from_mbps(2) }));
}

#[test]
fn a_table_that_says_its_kind_replaces_and_one_that_does_not_is_joined() {
    let queue = |more: &str| {
        let loaded = load(&[("s", &format!("include = [\"base\"]\n[dumbbell]\nqueue = {more}")), ("base", BASE)], &[]);
        only(&loaded.unwrap()).links[0].queue
    };
    let (target, interval) = (Span::from_millis(7), Span::from_millis(50));
    assert_eq!(
        queue("{ interval = \"50 ms\" }"),
        Queue::Codel(codel::Config { target, interval, packets: 1000, ecn: true, ce_threshold: None })
    );
    assert_eq!(queue("{ kind = \"pfifo-fast\" }"), Queue::PfifoFast(pfifo_fast::Config { packets: 1000 }));
    assert_eq!(
        queue("\"drop-tail\""),
        Queue::DropTail(drop_tail::Config { packets: Some(1000), bytes: None, victim: Victim::Arriving })
    );
}

#[test]
fn a_path_into_a_name_makes_a_table_of_that_kind() {
    let text = BASE.replace("{ kind = \"codel\", target = \"7 ms\" }", "\"codel\"");
    let loaded = load(&[("s", &text)], &["dumbbell.queue.target=9 ms"]).unwrap();
    let queue = &only(&loaded).links[0].queue;
    let (target, interval) = (Span::from_millis(9), Span::from_millis(100));
    assert_eq!(*queue, Queue::Codel(codel::Config { target, interval, ..codel::Config::default() }));
}

#[test]
fn a_parameter_is_a_value_alone_and_a_text_inside_a_text() {
    let text = format!(
        "{BASE}cc = \"${{cc}}\"\n[dumbbell.reverse]\nloss = \"${{ loss }}\"\nrate = \"${{mbps}} Mbit/s\"\n[parameters]\nloss = 0.25\nmbps = 3\ncc = {{ kind = \"scalable\", step = 0.02 }}"
    );
    let loaded = load(&[("s", &text)], &[]).unwrap();
    let s = only(&loaded);
    assert_eq!(s.links[1].loss, Some(Loss::Random { probability: 0.25 }));
    assert_eq!(s.links[1].rate, Some(Capacity::Constant { rate: Rate::from_mbps(3) }));
    assert_eq!(s.flows[0].cc, Cc::Scalable(scalable::Parameters { step: 0.02, decrease: 0.125 }));
    let loaded = load(&[("s", &text)], &["loss=0.5", "parameters.mbps=4", "cc=vegas"]).unwrap();
    assert_eq!(only(&loaded).links[1].loss, Some(Loss::Random { probability: 0.5 }));
    assert_eq!(only(&loaded).links[1].rate, Some(Capacity::Constant { rate: Rate::from_mbps(4) }));
    assert_eq!(only(&loaded).flows[0].cc, Cc::Vegas);
}

#[test]
fn a_swept_table_changes_several_keys_together() {
    let sweep = r#"cc = "${system.cc}"
count = "${system.of.flows}"
[sweep]
system = [{ name = "one", cc = "bbr", of = { flows = 1 } }, { name = "two", cc = "mdcc", of = { flows = 2 } }]
"#;
    let loaded = load(&[("s", &format!("{BASE}{sweep}"))], &[]).unwrap();
    let points = loaded.points();
    assert_eq!(points.iter().map(|point| point.label["system"].as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(points.iter().map(|point| point.scenario.flows[0].count).collect::<Vec<_>>(), [1, 2]);
    assert!(matches!(points[1].scenario.flows[0].cc, Cc::Mdcc { .. }));
    let error = |from: &str, to: &str| {
        load(&[("s", &format!("{BASE}{}", sweep.replace(from, to)))], &[]).unwrap_err().to_string()
    };
    let texts = [error(".cc}", ".c}"), error(".cc}", ".cc.kind}"), error("\"two\"", "\"one\"")];
    insta::assert_snapshot!(texts.join("\n"), @r#"
    s:12:6: flows[0].cc: the parameter `system.c`: unknown key `c`; did you mean `cc`?
    s:12:6: flows[0].cc: the parameter `system.cc.kind`: the string "bbr" has no key `kind`
    s:15:61: sweep.system: two values have the name `one`
    "#);
}

#[test]
fn classes_that_differ_between_ues_are_a_warning_and_those_of_one_ue_are_not() {
    let says = |ues: &str| {
        let text = format!("duration = \"1 s\"\n[lte]\nues = [{ues}]\n[[flows]]\n");
        let loaded = load(&[("s", &text)], &[]).unwrap();
        loaded.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let voice = "{ name = \"a\", bearer = { qci = 1 } }";
    let with_voice = "dedicated = [{ priorities = [6], bearer = { qci = 1 } }]";
    for ues in [
        format!("{voice}, {{ name = \"b\" }}"),
        format!("{{ name = \"a\", {with_voice} }}, {{ name = \"b\" }}"),
        format!("{{ name = \"a\", count = 2, {with_voice} }}"),
    ] {
        let warning = says(&ues);
        assert!(warning.starts_with("qci: the bearers of several UEs have different classes"), "{ues}: {warning}");
    }
    let alone = format!("{{ name = \"a\", {with_voice} }}");
    let alike = format!("{voice}, {{ name = \"b\", bearer = {{ qci = 1 }} }}");
    assert_eq!([says(&alone), says(&alike)], ["", ""]);
}

#[test]
fn keys_that_change_nothing_are_a_warning_unless_they_do_at_another_point() {
    let says = |text: &str| {
        let loaded = load(&[("s", text)], &[]).unwrap_or_else(|e| panic!("{text}: {e}"));
        loaded.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let cell = |keys: &str| says(&format!("duration = \"1 s\"\n{keys}\n[[flows]]\n"));
    let lte = |keys: &str| cell(&format!("[lte]\nues = [{{ name = \"a\" }}]\n{keys}"));
    let nr = |keys: &str| cell(&format!("[nr]\nues = [{{ name = \"a\" }}]\n{keys}"));
    let path = |keys: &str| cell(&format!("[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"10 ms\"\n{keys}"));
    let turns = "cells = [{ scheduler = \"round-robin\", uplink_scheduler = \"max-throughput\" }]\n";
    insta::assert_snapshot!([
        lte("mac = { ideal = true, decoding = \"1 ms\", assignments = 4 }"),
        lte(&format!("{turns}mac.fairness = \"1 s\"")),
        nr(&format!("{turns}mac.fairness = \"1 s\"")),
        nr("cells = [{ rat = \"lte\" }]\nlte = { mac = { ideal = true, bsr_retx = \"1 s\" } }"),
        nr("mac = { sr_period = \"6 ms\" }"),
        path("reordering = { share = 0, delay = \"1 ms\" }"),
        path("reordering = { share = 1, delay = \"1 ms\" }"),
        path("[[hosts.named]]\nname = \"r1\"\nprocessing = \"1 ms\""),
    ].join("\n"), @r#"
    lte.mac.decoding: it has no effect with `ideal = true`
    lte.mac.assignments: it has no effect with `ideal = true`
    lte.mac.fairness: it has no effect: no scheduler of a cell is `proportional-fair`
    nr.mac.fairness: it has no effect: no scheduler of a cell is `proportional-fair`
    nr.lte.mac.bsr_retx: it has no effect with `ideal = true`
    nr.mac.sr_period: 6 ms is no multiple of the TDD pattern of 2.5 ms: UEs have an opportunity every 15 ms on average, since the others fall into slots without uplink
    reordering: link `bottleneck`: it has no effect with `share = 0`
    reordering: link `bottleneck`: no packet overtakes another if all are delayed alike; set `spread`, or a smaller `share`
    hosts.named[0]: no flow begins or ends at `r1`, and only such hosts have a processing time
    "#);
    for silent in [
        lte("mac = { ideal = true, harq_transmissions = 1 }"),
        lte("mac = { decoding = \"1 ms\", assignments = 4, fairness = \"1 s\" }"),
        lte(&format!("{turns}mac.fairness = \"100 ms\"")),
        nr("mac = { sr_period = \"10 ms\" }"),
        nr("mac = { sr_period = \"0.5 ms\" }"),
        path("reordering = { share = 1, delay = \"1 ms\", spread = \"1 ms\" }"),
        path("reordering = { share = 0.1, delay = \"1 ms\" }"),
        path("[[hosts.named]]\nname = \"s*\"\nprocessing = \"1 ms\""),
        path("reordering = { share = 0, delay = \"1 ms\" }\n[sweep]\ndumbbell.reordering.share = [0, 0.1]"),
    ] {
        assert_eq!(silent, "");
    }
}

#[test]
fn a_declared_parameter_that_nothing_uses_is_a_warning() {
    let loaded = load(&[("s", &format!("{BASE}[parameters]\nloss = 1"))], &[]).unwrap();
    let warnings: Vec<_> = loaded.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["s:13:1: parameters.loss: unused parameter"]);
}

const SWEEP: &str = r#"cc = "${cc}"
[sweep]
cc = ["cubic", { kind = "scalable", step = 0.1 }]
dumbbell.rtt = ["10 ms", "20 ms", "30 ms"]
"flows.*.count" = [2]
"#;

#[test]
fn a_sweep_is_the_product_of_its_arrays_the_first_slowest() {
    let loaded = load(&[("s", &format!("{BASE}{SWEEP}"))], &[]).unwrap();
    let labels: Vec<_> =
        loaded.points().iter().map(|p| p.label.values().cloned().collect::<Vec<_>>().join(" | ")).collect();
    assert_eq!(
        labels,
        [
            "cubic | 10 ms | 2",
            "cubic | 20 ms | 2",
            "cubic | 30 ms | 2",
            "scalable step=0.1 | 10 ms | 2",
            "scalable step=0.1 | 20 ms | 2",
            "scalable step=0.1 | 30 ms | 2",
        ]
    );
    let last = &loaded.points()[5];
    assert_eq!(last.values()["flows.*.count"], 2);
    assert_eq!((&last.scenario.links[0].delay, last.scenario.flows[0].count), (&constant(15), 2));
    assert_eq!(last.scenario.flows[0].cc, Cc::Scalable(scalable::Parameters { step: 0.1, decrease: 0.125 }));
}

#[test]
fn an_override_pins_what_would_be_swept() {
    let loaded = load(&[("s", &format!("{BASE}{SWEEP}"))], &["cc=bbr", "dumbbell.rtt=4 ms"]).unwrap();
    let s = only(&loaded);
    assert_eq!(
        (&s.flows[0].cc, &s.links[0].delay),
        (&Cc::Bbr(bbr::Parameters { linux: Version::Linux6_1 }), &constant(2))
    );
}

#[test]
fn tcp_options_of_all_flows_lie_under_each_flow_s_own() {
    let text = format!("{BASE}tcp = {{ mss = 1200 }}\n[[flows]]\n[tcp]\necn = true\nmss = 900");
    let loaded = load(&[("s", &text)], &[]).unwrap();
    let options = |i: usize| (only(&loaded).flows[i].tcp.mss, only(&loaded).flows[i].tcp.ecn);
    assert_eq!((options(0), options(1)), ((1200, true), (900, true)));
    assert_eq!(only(&loaded).flows[1].tcp.receive_buffer, Bytes::new(32 << 20));
}

#[test]
fn the_receive_buffer_is_that_of_the_version_unless_it_is_set() {
    let buffer = |common: &str, own: &str| {
        let text = format!("{BASE}{own}\n{common}");
        only(&load(&[("s", &text)], &[]).unwrap()).flows[0].tcp.receive_buffer
    };
    let (old, new, own) = (Bytes::new(6 << 20), Bytes::new(32 << 20), Bytes::new(1_000_000));
    assert_eq!(buffer("", ""), new);
    assert_eq!(buffer("[tcp]\nlinux = \"6.1\"", ""), old);
    assert_eq!(buffer("", "tcp = { linux = \"6.1\" }"), old);
    assert_eq!(buffer("[tcp]\nlinux = \"6.1\"", "tcp = { linux = \"6.18\" }"), new);
    assert_eq!(buffer("[tcp]\nreceive_buffer = \"1 MB\"", "tcp = { linux = \"6.1\" }"), own);
    let wrong = load(&[("s", &format!("{BASE}[tcp]\nlinux = \"6.2\""))], &[]).unwrap_err().to_string();
    assert!(wrong.contains("tcp.linux") && !wrong.contains("receive_buffer"), "{wrong}");
}

#[test]
fn a_dumbbell_becomes_one_way_links_and_flows_their_routes() {
    let text = "duration = \"9 s\"\n[dumbbell]\nrate = \"9 Mbit/s\"\nrtt = \"30 ms\"\nloss = 0.1\njitter = \"1 ms\"\noverhead = \"8 B\"\nsenders = [\"s1\", \"s2\"]\naccess_rate = \"1 Gbit/s\"\nreverse = { delay = \"1 ms\" }\n[[flows]]\nfrom = \"s2\"\n[[flows]]\nfrom = \"receiver\"\nto = \"s1\"\ntraffic = { kind = \"cbr\", rate = \"1 Mbit/s\" }";
    let loaded = load(&[("s", text)], &[]).unwrap();
    let s = only(&loaded);
    assert_eq!(s.nodes(), ["r1", "r2", "s1", "s2", "receiver"]);
    assert_eq!(s.flows[0].route, ["access-s2", "bottleneck", "access-receiver"]);
    assert_eq!(s.flows[0].return_route, ["access-receiver-reverse", "bottleneck-reverse", "access-s2-reverse"]);
    assert_eq!(s.flows[1].route, ["access-receiver-reverse", "bottleneck-reverse", "access-s1-reverse"]);
    assert_eq!((s.flows[0].name.as_str(), s.flows[0].transport()), ("flow-1", Transport::Tcp));
    assert_eq!((s.flows[1].transport(), &s.flows[0].traffic), (Transport::Udp, &Traffic::Bulk));
    let (there, back) = (&s.links[0], &s.links[1]);
    assert_eq!((&there.delay, &back.delay), (&constant(15), &constant(1)));
    assert_eq!((&there.rate, &there.queue, there.overhead), (&back.rate, &back.queue, back.overhead));
    assert_eq!((there.loss.is_some(), back.loss, back.jitter), (true, None, None), "loss and jitter stay in front");
    assert_eq!(s.links[2].rate, Some(Capacity::Constant { rate: Rate::from_mbps(1000) }));
}

#[test]
fn a_route_has_the_fewest_links_then_the_least_delay() {
    let link = |name: &str, from: &str, to: &str, delay: u32| {
        format!("{{ name = \"{name}\", from = \"{from}\", to = \"{to}\", delay = \"{delay} ms\" }},")
    };
    let links = [
        link("ab", "a", "b", 1),
        link("bd", "b", "d", 9),
        link("ac", "a", "c", 2),
        link("cd", "c", "d", 3),
        link("ax", "a", "x", 0),
        link("xy", "x", "y", 0),
        link("yd", "y", "d", 0),
    ];
    let text = |more: &str| {
        format!("duration = \"9 s\"\nlinks = [{}]\n[[flows]]\nfrom = \"a\"\nto = \"d\"\n{more}", links.concat())
    };
    let loaded = load(&[("s", &text(""))], &[]).unwrap();
    assert_eq!(only(&loaded).flows[0].route, ["ac", "cd"]);
    assert_eq!(only(&loaded).flows[0].return_route, ["cd-reverse", "ac-reverse"]);
    let loaded = load(
        &[("s", &text("route = [\"ab\", \"bd\"]\nreturn_route = [\"yd-reverse\", \"xy-reverse\", \"ax-reverse\"]"))],
        &[],
    )
    .unwrap();
    assert_eq!(only(&loaded).flows[0].route, ["ab", "bd"]);
    assert_eq!(only(&loaded).flows[0].return_route, ["yd-reverse", "xy-reverse", "ax-reverse"]);
}

#[test]
fn a_trace_is_found_beside_the_file_that_names_it() {
    let base = BASE.replace("\"10 Mbit/s\"", "{ kind = \"trace\", file = \"../t/x.down\", service = \"packets\" }");
    let loaded =
        load(&[("d/s", "include = [\"e/base\"]"), ("d/e/base", &base), ("d/t/x.down", "1\n2\n")], &[]).unwrap();
    assert_eq!(loaded.trace("d/t/x.down"), Some("1\n2\n"));
    assert!(matches!(&only(&loaded).links[0].rate, Some(Capacity::Trace { file, .. }) if file == "d/t/x.down"));
}
