//! Each kind of error, with its exact line.

use crate::common::load;
use insta::assert_snapshot;

/// A scenario in which nothing is wrong, to which a test adds what is.
const GOOD: &str = r#"
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
rtt = "30 ms"
"#;

/// The errors of the one file `text`.
fn says(text: &str) -> String {
    load(&[("s.toml", text)], &[]).expect_err("this scenario is wrong")
}

/// The errors of a good scenario with `more` after it.
fn with(more: &str) -> String {
    says(&format!("{GOOD}{more}"))
}

/// The errors of a good scenario with `more` before its tables.
fn before(more: &str) -> String {
    says(&format!("{more}{GOOD}[[flows]]\n"))
}

/// The errors of a good scenario with overrides.
fn set(set: &[&str]) -> String {
    load(&[("s.toml", &format!("{GOOD}[[flows]]\ncc = \"${{cc}}\"\n[parameters]\ncc = \"cubic\""))], set).unwrap_err()
}

#[test]
fn what_is_not_toml_is_pointed_at() {
    assert_snapshot!(says("duration = \"1 s"), @r#"s.toml:1:16: not TOML: invalid basic string, expected `"`"#);
    assert_snapshot!(says("a = 1\na = 2"), @"s.toml:2:1: not TOML: duplicate key");
    assert_snapshot!(says("seed = 99999999999999999999"), @"s.toml:1:8: seed: the number 99999999999999999999 is out of range: must be from -9223372036854775808 to 9223372036854775807");
    assert_snapshot!(says(&format!("[record]\nx.y = [0, [0, 1{}]]", "0".repeat(300))), @"s.toml:2:15: record.x.y[1][1]: the number is out of range: must be from -9223372036854775808 to 9223372036854775807");
}

#[test]
fn a_misspelt_key_gets_the_nearest_one() {
    assert_snapshot!(with("[[flows]]\nstrat = \"1 s\""), @"s.toml:7:1: flows[0].strat: unknown key; did you mean `start`?");
    assert_snapshot!(with("qeue = \"codel\"\n[[flows]]"), @"s.toml:6:1: dumbbell.qeue: unknown key; did you mean `queue`?");
    assert_snapshot!(before("durration = \"3 s\""), @"s.toml:1:1: durration: unknown key; did you mean `duration`?");
    assert_snapshot!(with("queue = { kind = \"codel\", taget = \"5 ms\" }\n[[flows]]"), @"s.toml:6:27: dumbbell.queue.taget: unknown key; did you mean `target`?");
    assert_snapshot!(with("[[flows]]\ntcp = { initial_widnow = 3 }"), @"s.toml:7:9: flows[0].tcp.initial_widnow: unknown key; did you mean `initial_window`?");
    assert_snapshot!(with("[record]\nxyzzy = 1\n[[flows]]"), @"s.toml:7:1: record.xyzzy: unknown key; valid keys are samples, events, radio, pcap");
    assert_snapshot!(with("[[flows]]\ncc = { kind = \"bbr\", gain = 2 }"), @"s.toml:7:22: flows[0].cc.gain: unknown key; valid keys are linux");
}

#[test]
fn a_misspelt_name_gets_the_nearest_one() {
    assert_snapshot!(with("[[flows]]\ncc = \"cubik\""), @"s.toml:7:6: flows[0].cc: unknown value `cubik`; did you mean `cubic`?");
    assert_snapshot!(with("[[flows]]\ncc = { kind = \"renno\" }"), @"s.toml:7:15: flows[0].cc.kind: unknown value `renno`; did you mean `reno`?");
    assert_snapshot!(with("jitter = \"gamma\"\n[[flows]]"), @"s.toml:6:10: dumbbell.jitter: unknown value `gamma`; valid values are uniform, half-normal");
    assert_snapshot!(with("[[flows]]\ntraffic = \"bluk\""), @"s.toml:7:11: flows[0].traffic: unknown value `bluk`; did you mean `bulk`?");
}

#[test]
fn a_missing_key_is_named_where_it_should_be() {
    assert_snapshot!(says("[[flows]]"), @"s.toml:1:1: missing key `duration`");
    assert_snapshot!(with("[[flows]]\ntraffic = \"transfer\""), @"s.toml:7:11: flows[0].traffic: missing key `size`");
    assert_snapshot!(with("[[flows]]\ntraffic = { size = \"1 MB\" }"), @"s.toml:7:11: flows[0].traffic: missing key `kind`: one of bulk, transfer, short-flows, on-off, steps, pages, cbr, ppbp");
    assert_snapshot!(with("[[links]]\nfrom = \"a\"\nto = \"b\""), @"s.toml:6:1: links[0]: missing key `name`");
}

#[test]
fn a_wrong_type_says_what_would_be_right() {
    assert_snapshot!(before("runs = \"many\""), @r#"s.toml:1:8: runs: expected a whole number from 0 to 4294967295, found the string "many""#);
    assert_snapshot!(before("runs = -1"), @"s.toml:1:8: runs: expected a whole number from 0 to 4294967295, found the number -1");
    assert_snapshot!(before("runs = 1.5"), @"s.toml:1:8: runs: expected a whole number from 0 to 4294967295, found the number 1.5");
    assert_snapshot!(before("title = 1"), @"s.toml:1:9: title: expected a string, found the number 1");
    assert_snapshot!(before("warmup = 5"), @r#"s.toml:1:10: warmup: expected a string with a unit, such as "30 ms", found the number 5"#);
    assert_snapshot!(before("warmup = 2020-01-01"), @r#"s.toml:1:10: warmup: expected a string with a unit, such as "30 ms", found a date"#);
    assert_snapshot!(before("flows = 1\nrecord.samples = 5"), @"s.toml:7:3: not TOML: duplicate key");
    assert_snapshot!(with("loss = true\n[[flows]]"), @"s.toml:6:8: dumbbell.loss: expected a number, found `true`");
    assert_snapshot!(says("duration = \"9 s\"\ndumbbell = { rtt = \"1 s\", rate = { kind = \"trace\", file = \"x\", service = 1 } }"), @"s.toml:2:74: dumbbell.rate.service: expected a string or the `kind` of a table, one of bytes, packets, found the number 1");
    assert_snapshot!(with("[[flows]]\ntraffic = 7"), @"s.toml:7:11: flows[0].traffic: expected a string or the `kind` of a table, one of bulk, transfer, short-flows, on-off, steps, pages, cbr, ppbp, found the number 7");
    assert_snapshot!(with("[[flows]]\ntcp = 7"), @"s.toml:7:7: flows[0].tcp: expected a table, found the number 7");
    assert_snapshot!(with("[[flows]]\ntcp.ecn = 1"), @"s.toml:7:11: flows[0].tcp.ecn: expected `true` or `false`, found the number 1");
    assert_snapshot!(with("[[flows]]\nroute = \"bottleneck\""), @r#"s.toml:7:9: flows[0].route: expected an array, found the string "bottleneck""#);
    assert_snapshot!(with("[[flows]]\ncc = { kind = 1 }"), @"s.toml:7:15: flows[0].cc.kind: expected a string, found the number 1");
    assert_snapshot!(says("duration = \"9 s\"\ndumbbell = { rtt = \"1 s\", rate = { kind = \"steps\", steps = [[\"0 s\", \"1 Mbit/s\", 3]] } }"), @"s.toml:2:81: dumbbell.rate.steps[0]: unexpected additional element: the number 3");
    assert_snapshot!(says("duration = \"9 s\"\ndumbbell = { rtt = \"1 s\", rate = { kind = \"steps\", steps = [[\"0 s\"]] } }"), @"s.toml:2:61: dumbbell.rate.steps[0]: expected an array of 2 values, found 1");
}

#[test]
fn a_wrong_unit_says_the_units() {
    assert_snapshot!(before("warmup = \"5\""), @"s.toml:1:10: warmup: `5` has no unit: a time is written with one of h, min, s, ms, us, ns");
    assert_snapshot!(before("warmup = \"5 sec\""), @"s.toml:1:10: warmup: `sec` is not a unit of a time: use one of h, min, s, ms, us, ns; did you mean `s`?");
    assert_snapshot!(says("duration = \"9 s\"\n[dumbbell]\nrate = \"35 MB\"\nrtt = \"1 s\""), @"s.toml:3:8: dumbbell.rate: `MB` is not a unit of a rate: use one of Gbit/s, Mbit/s, kbit/s, bit/s");
    assert_snapshot!(before("record.samples = \"10 millis\""), @"s.toml:1:18: record.samples: `millis` is not a unit of a time: use one of h, min, s, ms, us, ns; did you mean `ms`?");
}

#[test]
fn a_value_out_of_range_says_the_range() {
    assert_snapshot!(with("loss = 1.5\n[[flows]]"), @"s.toml:6:8: dumbbell.loss: 1.5 is out of range: must be from 0 to 1");
    assert_snapshot!(with("loss = nan\n[[flows]]"), @"s.toml:6:8: dumbbell.loss: NaN is out of range: must be from 0 to 1");
    assert_snapshot!(with("loss = { kind = \"gilbert-elliott\", good_to_bad = 0.1, bad_to_good = -1 }\n[[flows]]"), @"s.toml:6:69: dumbbell.loss.bad_to_good: -1 is out of range: must be from 0 to 1");
    assert_snapshot!(before("runs = 0"), @"s.toml:1:8: runs: 0 is out of range: must be from 1 to 10000");
    assert_snapshot!(before("warmup = \"10 s\""), @"s.toml:1:10: warmup: 10 s must be shorter than the duration, 10 s");
    assert_snapshot!(says("duration = \"0 s\"\n[dumbbell]\nrate = \"0 bit/s\"\nrtt = \"1 s\"\n[[flows]]"), @r#"
s.toml:1:12: duration: 0 ns is out of range: must be greater than 0 ns and at most 1000 h
s.toml:3:8: dumbbell.rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s
"#);
    assert_snapshot!(with("queue = { kind = \"drop-tail\", packets = 0 }\n[[flows]]"), @"s.toml:6:41: dumbbell.queue.packets: 0 is out of range: must be from 1 to 1000000000");
    assert_snapshot!(with("[[flows]]\nstart = \"20 s\"\nstop = \"5 s\"\ncount = 0"), @r#"
s.toml:9:9: flows[0].count: 0 is out of range: must be from 1 to 100000
s.toml:7:9: flows[0].start: 20 s must be before the end, 10 s
s.toml:8:8: flows[0].stop: 5 s must be later than the start, 20 s
"#);
    assert_snapshot!(with("[[flows]]\ncount = 20\nstagger = \"1 s\""), @"s.toml:8:11: flows[0].stagger: the last of 20 flows would start after the end, 10 s");
    assert_snapshot!(with("[[flows]]\ncount = 100000\n[[flows]]"), @"s.toml:8:1: flows[1]: more than 100000 flows");
    assert_snapshot!(with("[[flows]]\ntcp = { mss = 10, min_rto = \"0 s\" }"), @r#"
s.toml:7:15: flows[0].tcp.mss: 10 is out of range: must be from 64 to 65483
s.toml:7:29: flows[0].tcp.min_rto: 0 ns is out of range: must be from 1 ms to 2 min
"#);
    assert_snapshot!(with("[[flows]]\ntraffic = { kind = \"ppbp\", burst_rate = \"1 Mbit/s\", mean_burst = \"1 s\", arrival_rate = 0, hurst = 1 }"), @r#"
s.toml:7:99: flows[0].traffic.hurst: 1 is out of range: must be greater than 0.5 and less than 1
s.toml:7:88: flows[0].traffic.arrival_rate: 0 is out of range: must be greater than 0 and at most 100000
"#);
    assert_snapshot!(with("[[flows]]\ntraffic = { kind = \"short-flows\", size = \"1 kB\", interval = \"0 s\" }"), @"s.toml:7:61: flows[0].traffic.interval: 0 ns is out of range: must be greater than 0 ns and at most 1000 h");
    assert_snapshot!(says("duration = \"9 s\"\n[[flows]]\n[dumbbell]\nrtt = \"1 s\"\n[dumbbell.rate]\nkind = \"steps\"\nsteps = [\n  [\"1 s\", \"1 Mbit/s\"],\n  [\"1 s\", \"2 Mbit/s\"],\n]"), @r#"
s.toml:7:9: dumbbell.rate.steps: the first step must be at "0 s"
s.toml:9:3: dumbbell.rate.steps[1]: 1 s must be later than the step before it, 1 s
"#);
}

#[test]
fn all_faults_of_meaning_are_told_at_once() {
    assert_snapshot!(says("duration = \"9 s\"\nwarmup = \"9 s\"\nruns = 0\n[[flows]]\nfrom = \"a\"\nto = \"b\""), @r#"
s.toml:2:10: warmup: 9 s must be shorter than the duration, 9 s
s.toml:3:8: runs: 0 is out of range: must be from 1 to 10000
s.toml:5:8: flows[0].from: unknown node `a`; valid: none
s.toml:6:6: flows[0].to: unknown node `b`; valid: none
"#);
}

#[test]
fn a_flow_needs_nodes_and_a_route() {
    let links = "duration = \"9 s\"\nlinks = [{ name = \"ab\", from = \"a\", to = \"b\" }, { name = \"cd\", from = \"c\", to = \"d\", duplex = false }]\n";
    assert_snapshot!(with("[[flows]]\nfrom = \"\""), @"s.toml:6:1: flows[0].from: a node has no empty name; name one, or leave the key out");
    assert_snapshot!(with("[[flows]]\nfrom = \"sendr\""), @"s.toml:7:8: flows[0].from: unknown node `sendr`; did you mean `sender`?");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"")), @"s.toml:3:1: flows[0].to: a node is required, because the scenario has neither a dumbbell nor a radio network");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"\nto = \"d\"")), @"s.toml:4:8: flows[0].from: there is no route from `a` to `d`");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"c\"\nto = \"d\"")), @"s.toml:5:6: flows[0].to: there is no route from `d` to `c`");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"\nto = \"a\"")), @"s.toml:5:6: flows[0].to: the flow leads from `a` to itself");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"\nto = \"b\"\nroute = [\"ba\"]")), @"s.toml:6:10: flows[0].route[0]: unknown link `ba`; did you mean `ab`?");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"\nto = \"b\"\nroute = [\"cd\"]")), @"s.toml:6:10: flows[0].route[0]: the link `cd` starts at `c`, but the route has reached `a`");
    assert_snapshot!(says(&format!("{links}[[flows]]\nfrom = \"a\"\nto = \"d\"\nroute = [\"ab\"]")), @"s.toml:6:9: flows[0].route: the route ends at `b`, not at `d`");
    assert_snapshot!(says("duration = \"9 s\"\n[[flows]]\nfrom = \"a\"\nto = \"b\""), @r#"
s.toml:3:8: flows[0].from: unknown node `a`; valid: none
s.toml:4:6: flows[0].to: unknown node `b`; valid: none
"#);
    assert_snapshot!(says("duration = \"9 s\""), @"s.toml:1:1: flows: the scenario has no flows; add [[flows]]");
}

#[test]
fn names_are_unique_and_known() {
    assert_snapshot!(with("[[flows]]\nname = \"a\"\n[[flows]]\nname = \"a\""), @"s.toml:9:8: flows[1].name: duplicate flow `a`");
    assert_snapshot!(with("[[links]]\nname = \"bottleneck\"\nfrom = \"r1\"\nto = \"r2\"\n[[flows]]"), @r#"
s.toml:7:8: links[0].name: duplicate link `bottleneck`
s.toml:7:8: links[0].name: duplicate link `bottleneck-reverse`
"#);
    assert_snapshot!(with("[[links]]\nname = \"bottleneck-reverse\"\nfrom = \"r1\"\nto = \"x\"\nduplex = false\n[[flows]]"), @"s.toml:7:8: links[0].name: duplicate link `bottleneck-reverse`");
    assert_snapshot!(with("[record]\npcap = [\"botleneck\"]\n[[flows]]"), @"s.toml:7:9: record.pcap[0]: unknown link or host with flows `botleneck`; did you mean `bottleneck`?");
    assert_snapshot!(with("[[flows]]\nname = \"../a\""), @"s.toml:7:8: flows[0].name: invalid name `../a`; use 1 to 100 letters, digits, spaces, or - _ . :");
}

#[test]
fn a_link_that_contradicts_itself_is_refused() {
    assert_snapshot!(with("[[links]]\nname = \"x\"\nfrom = \"r1\"\nto = \"x\"\nqueue = \"codel\"\n[[flows]]"), @"s.toml:10:9: links[0].queue: a link without a `rate` is infinitely fast and never queues; give it a rate");
    assert_snapshot!(with("[[links]]\nname = \"x\"\nfrom = \"r1\"\nto = \"x\"\nduplex = false\nreverse = {}\n[[flows]]"), @"s.toml:11:11: links[0].reverse: this link is not duplex; remove `reverse` or `duplex = false`");
}

#[test]
fn a_queue_in_a_host_is_that_of_the_first_link() {
    let links = |more: &str| {
        format!(
            "duration = \"9 s\"\n[[links]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\n{more}\n\
             [[links]]\nname = \"bc\"\nfrom = \"b\"\nto = \"c\"\nrate = \"1 Mbit/s\"\nqueue_in_host = true\n\
             [[flows]]\nfrom = \"b\"\nto = \"c\"\n"
        )
    };
    let and = |flow: &str| format!("{}[[flows]]\nname = \"f\"\n{flow}", links(""));
    assert_snapshot!(says(&links("queue_in_host = true")), @"s.toml:6:17: links[0].queue_in_host: a link without a `rate` is infinitely fast and never queues; give it a rate");
    let behind = "s.toml:12:17: links[1].queue_in_host: the route of flow `f` from `a` comes to `bc` over `ab`, but a queue in a host \
                  is that of the first link of all routes over it; use a link that begins at the host, or remove `queue_in_host`";
    assert_eq!(says(&and("from = \"a\"\nto = \"c\"")), behind);
    assert_eq!(says(&and("from = \"c\"\nto = \"a\"\nreturn_route = [\"ab\", \"bc\"]")), behind);
    // The other direction of a link has its queue in the network, so it may be anywhere.
    let loaded = load(&[("s.toml", &links(""))], &[]).unwrap();
    let in_hosts = loaded.points()[0].scenario.links.iter().filter(|link| link.queue_in_host);
    assert_eq!(in_hosts.map(|link| link.name.as_str()).collect::<Vec<_>>(), ["bc"]);
}

#[test]
fn a_bad_override_is_pointed_at_by_its_own_text() {
    assert_snapshot!(set(&["cc"]), @r#"--set cc: expected KEY=VALUE, such as --set dumbbell.rtt="50 ms""#);
    assert_snapshot!(set(&["ccc=bbr"]), @"--set ccc=bbr: `ccc` is neither a scenario key nor a parameter used in this scenario; did you mean `cc`?");
    assert_snapshot!(set(&["cc=bbrr"]), @"--set cc=bbrr: flows[0].cc: unknown value `bbrr`; did you mean `bbr`?");
    assert_snapshot!(set(&["duratoin=5 s"]), @"--set duratoin=5 s: `duratoin` is neither a scenario key nor a parameter used in this scenario; did you mean `duration`?");
    assert_snapshot!(set(&["dumbbell.rat=5 s"]), @"--set dumbbell.rat=5 s: dumbbell.rat: unknown key; did you mean `rate`?");
    assert_snapshot!(set(&["dumbbell..rate=5 s"]), @"--set dumbbell..rate=5 s: a key consists of names joined by dots, such as `dumbbell.rate`");
    assert_snapshot!(set(&["duration.x=1"]), @r#"--set duration.x=1: duration: expected a string with a unit, such as "30 ms", found a table"#);
    assert_snapshot!(set(&["runs=2", "runs.x=1"]), @"--set runs.x=1: `x`: the number 2 has no keys");
    assert_snapshot!(set(&["links[0].delay=1 ms"]), @"--set links[0].delay=1 ms: links: there is no element `0`, because the scenario does not list any; set all of them, as `[{ ... }]`");
    assert_snapshot!(set(&["links.a.delay=1 ms"]), @"--set links.a.delay=1 ms: links: there is no element `a`, because the scenario does not list any; set all of them, as `[{ ... }]`");
    assert_snapshot!(set(&["links.*.delay=1 ms"]), @"--set links.*.delay=1 ms: links: there is no element `*`, because the scenario does not list any; set all of them, as `[{ ... }]`");
    assert_snapshot!(set(&["links={ name = \"a\" }"]), @r#"--set links={ name = "a" }: links: expected an array, found a table; put it in brackets, as `[{ ... }]`"#);
    assert_snapshot!(with("[links]\nname = \"a\""), @"s.toml:6:1: links: expected an array, found a table; put it in brackets, as `[{ ... }]`");
    assert_snapshot!(set(&["flows.a.cc=bbr"]), @"--set flows.a.cc=bbr: `a` is neither an element's name nor an index below 1");
    assert_snapshot!(set(&["flows[0].cc=bbbr"]), @"--set flows[0].cc=bbbr: flows[0].cc: unknown value `bbbr`; did you mean `bbr`?");
    assert_snapshot!(set(&["dumbbell.loss=2"]), @"--set dumbbell.loss=2: dumbbell.loss: 2 is out of range: must be from 0 to 1");
}

#[test]
fn a_parameter_must_be_known_whole_and_used_if_it_is_given() {
    assert_snapshot!(with("[parameters]\nloss = 1\n[[flows]]\ncc = \"${los}\""), @"s.toml:9:6: flows[0].cc: unknown parameter `los`; did you mean `loss`?");
    assert_snapshot!(with("[[flows]]\ncc = \"${cc\""), @"s.toml:7:6: flows[0].cc: missing `}` after `${`");
    assert_snapshot!(with("[parameters]\nq = [1]\n[[flows]]\nname = \"a${q}\""), @"s.toml:9:8: flows[0].name: the parameter `q` is an array and cannot be part of a string");
    assert_snapshot!(with("[parameters]\nloss = 1.5\n[[flows]]\n[dumbbell.reverse]\nloss = \"${loss}\""), @"s.toml:7:8: dumbbell.reverse.loss: 1.5 is out of range: must be from 0 to 1");
    assert_snapshot!(with("[sweep]\nlos = [1, 2]\n[[flows]]\nname = \"f${loss}\"\n[parameters]\nloss = 1"), @"s.toml:7:8: `los` is neither a scenario key nor a parameter used in this scenario; did you mean `loss`?");
    assert_snapshot!(before("parameters = 1\n"), @"s.toml:1:14: parameters: expected a table, found the number 1");
}

#[test]
fn a_sweep_is_arrays_and_not_too_many_points() {
    assert_snapshot!(with("[[flows]]\n[sweep]\nseed = 1"), @"s.toml:8:8: sweep.seed: expected an array of at least one value, found the number 1");
    assert_snapshot!(with("[[flows]]\n[sweep]\nseed = []"), @"s.toml:8:8: sweep.seed: expected an array of at least one value, found an empty array");
    assert_snapshot!(with(&format!("[[flows]]\n[sweep]\nseed = {0:?}\nruns = {0:?}", [1; 101])), @"s.toml:9:9: sweep: more than 10000 points");
    assert_snapshot!(with("[[flows]]\n[sweep]\nruns = [1, 0]\ndumbbell.rtt = [\"1 ms\", \"2 ms\"]"), @"s.toml:8:12: runs: 0 is out of range: must be from 1 to 10000 (at dumbbell.rtt=1 ms, runs=0)");
    assert_snapshot!(with("[[flows]]\n[sweep]\n\"flows.b.cc\" = [\"bbr\"]"), @"s.toml:8:17: sweep.flows.b.cc: `b` is neither an element's name nor an index below 1");
    assert_snapshot!(with("[[flows]]\n[sweep]\ndumbbell.rt = [\"1 ms\"]"), @"s.toml:8:16: dumbbell.rt: unknown key; did you mean `rtt`?");
}

#[test]
fn a_file_that_cannot_be_included_is_named() {
    let included = |files: &[(&str, &str)]| load(files, &[]).unwrap_err();
    assert_snapshot!(says("include = [\"base.toml\"]"), @"s.toml:1:12: include[0]: cannot read `base.toml`: no such file");
    assert_snapshot!(says("include = \"base.toml\""), @r#"s.toml:1:11: include: expected an array of file names, found the string "base.toml""#);
    assert_snapshot!(says("include = [1]"), @"s.toml:1:12: include: expected an array of file names, found the number 1");
    assert_snapshot!(says("include = [\"preset:lte\"]"), @"s.toml:1:12: include[0]: unknown preset `lte`; valid: lte-like, nr-like, wired, lte-5mhz, lte-10mhz, lte-20mhz, lte-pedestrian, lte-vehicular, lte-drive, nr-fr1-100mhz, nr-fr2-200mhz, nr-street, nr-drive, nr-ns3-mmwave, nr-lte");
    assert_snapshot!(says("include = [\"s.toml\"]"), @"s.toml:1:12: include[0]: circular include: s.toml -> s.toml");
    assert_snapshot!(included(&[("d/a", "include = [\"../b\"]"), ("b", "include = [\"d/c\"]"), ("d/c", "include = [\"./a\"]")]), @"d/c:1:12: include[0]: circular include: d/a -> b -> d/c -> d/a");
    assert_snapshot!(included(&[("a", "include = [\"b\"]\n[[flows]]"), ("b", "duration = \"9 s\"\nwarmup = \"x\"")]), @"b:2:10: warmup: `x` is not a time: it needs a number and a unit (h, min, s, ms, us, ns)");
    let deep: Vec<_> = (0..20).map(|i| (format!("f{i}"), format!("include = [\"f{}\"]", i + 1))).collect();
    let deep: Vec<_> = deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_snapshot!(included(&deep), @"f15:1:12: include[0]: includes are nested more than 16 deep");
    assert_snapshot!(included(&[("a", &format!("include = {:?}", ["b"; 300])), ("b", "")]), @"a:1:1292: include[256]: more than 256 files");
}

#[test]
fn a_scenario_that_is_neither_file_nor_built_in_is_refused() {
    let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let load = |name: &str| scenario::Scenario::load(name, &[], &none).unwrap_err().to_string();
    assert_snapshot!(load("dumbell"), @"cannot read `dumbell`: no such file; did you mean `dumbbell`?");
    assert_snapshot!(load("mine.toml"), @"cannot read `mine.toml`: no such file");
}

#[test]
fn a_trace_file_that_is_missing_is_named() {
    assert_snapshot!(set(&["dumbbell.rate={ kind = \"trace\", file = \"x.down\" }"]), @r#"--set dumbbell.rate={ kind = "trace", file = "x.down" }: dumbbell.rate.file: cannot read `x.down`: no such file"#);
    assert_snapshot!(load(&[("d/s.toml", "duration = \"9 s\"\n[[flows]]\n[dumbbell]\nrtt = \"1 s\"\nrate = { kind = \"trace\", file = \"x.down\" }")], &[]).unwrap_err(), @"d/s.toml:5:33: dumbbell.rate.file: cannot read `d/x.down`: no such file");
}

#[test]
fn what_grows_without_bound_is_stopped() {
    let many = "${a}".repeat(20_000);
    assert_snapshot!(with(&format!("[parameters]\na = \"{}\"\n[[flows]]\nname = \"{many}\"", "x".repeat(1000))), @"s.toml:9:8: flows[0].name: the scenario exceeds 4194304 values and characters here");
    let links: String = (0..5001).map(|i| format!("{{name=\"{i}\",from=\"{i}\",to=\"x\"}},")).collect();
    assert_snapshot!(before(&format!("links = [{links}]")), @"s.toml:1:9: links: more than 5000 duplex links");
    let chain: String = (0..70).map(|i| format!("{{name=\"{i}\",from=\"n{i}\",to=\"n{}\"}},", i + 1)).collect();
    assert_snapshot!(says(&format!("duration = \"1 s\"\nlinks = [{chain}]\n[[flows]]\nfrom = \"n0\"\nto = \"n70\"")), @"s.toml:4:8: flows[0].from: the route from `n0` to `n70` has more than 64 links");
    assert_snapshot!(says(&" ".repeat((1 << 20) + 1)), @"s.toml: larger than 1048576 bytes");
    assert_snapshot!(set(&[&format!("a{}=1", ".a".repeat(100))]).len(), @"242");
}
