//! Same scenario and seed, same bytes: with any number of threads, in every build; and streams that do not disturb each
//! other.

#![allow(missing_docs, reason = "a test binary")]

mod common;

use common::{load, run, run_on};
use record::{Table, Tables};
use scenario::Loaded;

/// Delivery opportunities of an uneven link that repeats after 40 ms, as mahimahi writes them.
const TRACE: &str = "1\n2\n2\n5\n9\n9\n9\n14\n15\n21\n28\n28\n29\n33\n38\n40\n";

/// Every congestion control, queue, traffic and impairment, on two points and two runs.
const MIXED: &str = r#"
title = "Everything at once"
duration = "12 s"
warmup = "1 s"
runs = 2
seed = 20
record = { samples = "250 ms" }

[sweep]
"links.core.loss" = [0.0005, { kind = "gilbert-elliott", good_to_bad = 0.001, bad_to_good = 0.3 }]

[[links]]
name = "core"
from = "a"
to = "b"
rate = "30 Mbit/s"
delay = "8 ms"
queue = { kind = "drop-tail", bytes = "200 kB" }
jitter = { kind = "half-normal", sigma = "200 us" }
loss = 0

[[links]]
name = "codel"
from = "b"
to = "c"
rate = { kind = "steps", steps = [["0 s", "8 Mbit/s"], ["4 s", "20 Mbit/s"], ["9 s", "3 Mbit/s"]] }
delay = "11 ms"
queue = "codel"
jitter = "300 us"
overhead = "14 B"

[[links]]
name = "fair"
from = "b"
to = "d"
rate = { kind = "synthetic", mean = "12 Mbit/s", peak = "40 Mbit/s", outage_every = "5 s" }
delay = "15 ms"
queue = "fq-codel"

[[links]]
name = "traced"
from = "b"
to = "e"
rate = { kind = "trace", file = "trace" }
delay = "21 ms"
queue = "fq"

[[links]]
name = "bands"
from = "b"
to = "f"
rate = "9 Mbit/s"
delay = "3 ms"
queue = { kind = "pfifo-fast", packets = 60 }

[[flows]]
name = "cubic"
from = "a"
to = "c"
tcp = { ecn = true }
count = 2
stagger = "500 ms"
[[flows]]
name = "reno"
from = "a"
to = "d"
cc = "new-reno"
start_jitter = "1 s"
[[flows]]
name = "bbr"
from = "a"
to = "d"
cc = "bbr"
[[flows]]
name = "vegas"
from = "a"
to = "e"
cc = "vegas"
[[flows]]
name = "westwood"
from = "a"
to = "e"
cc = "westwood"
tcp = { pacing = true }
[[flows]]
name = "yeah"
from = "a"
to = "f"
cc = "yeah"
tcp = { window_clamp = "60 kB" }
[[flows]]
name = "scalable"
from = "f"
to = "a"
cc = { kind = "scalable", step = 0.02 }
[[flows]]
name = "file"
from = "c"
to = "d"
traffic = { kind = "transfer", size = "2 MB" }
[[flows]]
name = "short"
from = "a"
to = "c"
traffic = { kind = "short-flows", size = { kind = "pareto", mean = "30 kB", shape = 1.3 }, interval = { kind = "exponential", mean = "300 ms" } }
[[flows]]
name = "pages"
from = "a"
to = "f"
traffic = { kind = "pages", objects = 9, object_size = { kind = "exponential", mean = "15 kB" }, think = { kind = "pareto", mean = "700 ms" } }
[[flows]]
name = "video"
from = "a"
to = "d"
traffic = { kind = "on-off", on = "400 ms", off = { kind = "exponential", mean = "300 ms" }, rate = "5 Mbit/s" }
[[flows]]
name = "voice"
from = "e"
to = "c"
traffic = { kind = "cbr", rate = "90 kbit/s", packet = "200 B" }
[[flows]]
name = "background"
from = "a"
to = "e"
traffic = { kind = "ppbp", burst_rate = "600 kbit/s", mean_burst = "200 ms", arrival_rate = 4.0 }
"#;

/// A drive past cells of NR and LTE with handovers between them, and a UE that walks beside it: all layers of both radios, a PEP whose
/// reports multi-domain congestion control hears, other flows in both directions.
const RADIO: &str = r#"
title = "Radio"
duration = "12 s"
warmup = "1 s"
runs = 2
seed = 20
include = ["preset:nr-lte"]
record = { samples = "250 ms" }

[nr]
pep = true
pep_report_loss = 0.01
handover = {}

[[nr.ues]]
name = "car"
mobility = { kind = "line", from = [0, 20, 1.5], velocity = [80, 0, 0] }
channel = { kind = "umi" }
layers = 2
[[nr.ues]]
name = "walker"
mobility = { kind = "line", from = [110, 30, 1.5], velocity = [1, 0.5, 0] }
channel = "umi"
fading = "tdla30"
[nr.ues.bearer]
rlc = "um"

[[flows]]
name = "mdcc"
to = "car"
cc = "mdcc"
[[flows]]
name = "download"
to = "walker"
count = 2
cc = "cubic"
[[flows]]
name = "upload"
from = "car"
to = "server"
cc = "bbr"
[[flows]]
name = "call"
from = "walker"
to = "server"
traffic = { kind = "cbr", rate = "100 kbit/s", packet = "250 B" }
"#;
const PEP: &str = "pep = true\npep_report_loss = 0.01\n";
/// The same with RAPID instead of the PEP.
const PROXY: &str = "proxy = { policy = \"best\" }\n";

/// FNV-1a of all rows of all tables. Texts print numbers so that they can be read back exactly, so equal digests mean
/// equal numbers to the last bit.
fn digest(tables: &Tables) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |row: String| {
        for byte in row.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    tables.flows.iter().for_each(|row| add(format!("{row:?}")));
    tables.samples.iter().for_each(|row| add(format!("{row:?}")));
    tables.rtts.iter().for_each(|row| add(format!("{row:?}")));
    tables.owds.iter().for_each(|row| add(format!("{row:?}")));
    tables.queues.iter().for_each(|row| add(format!("{row:?}")));
    tables.links.iter().for_each(|row| add(format!("{row:?}")));
    tables.events.iter().for_each(|row| add(format!("{row:?}")));
    tables.transfers.iter().for_each(|row| add(format!("{row:?}")));
    tables.ues.iter().for_each(|row| add(format!("{row:?}")));
    tables.radio.iter().for_each(|row| add(format!("{row:?}")));
    tables.mobility.iter().for_each(|row| add(format!("{row:?}")));
    tables.peps.iter().for_each(|row| add(format!("{row:?}")));
    tables.proxies.iter().for_each(|row| add(format!("{row:?}")));
    hash
}

/// The bytes of the tables' files.
fn bytes(tables: &Tables) -> Vec<u8> {
    let mut bytes = Vec::new();
    tables.flows.write_parquet(&mut bytes).unwrap();
    tables.samples.write_parquet(&mut bytes).unwrap();
    tables.rtts.write_parquet(&mut bytes).unwrap();
    tables.owds.write_parquet(&mut bytes).unwrap();
    tables.queues.write_parquet(&mut bytes).unwrap();
    tables.links.write_parquet(&mut bytes).unwrap();
    tables.transfers.write_parquet(&mut bytes).unwrap();
    bytes
}

fn mixed() -> Loaded {
    load(MIXED, &[("trace", TRACE)])
}

#[test]
fn determinism_the_same_bytes_with_any_number_of_threads() {
    let loaded = mixed();
    let first = run_on(&loaded, 1).results.tables;
    for jobs in [4, 1, 3, 4] {
        let again = run_on(&loaded, jobs).results.tables;
        assert!(first == again, "the tables differ with {jobs} threads");
        assert!(bytes(&first) == bytes(&again), "the files differ with {jobs} threads");
    }
}

// This constant is what the debug and the release build, and every machine, must agree on. It changes with a model or a
// table, and only then: whoever changes one on purpose writes the new one here.
#[test]
fn determinism_the_same_numbers_in_every_build_and_on_every_machine() {
    let tables = run_on(&mixed(), 1).results.tables;
    // The scenario is worth its name: everything in it happened.
    assert!(tables.flows.iter().all(|f| f.bytes > 0), "a flow delivered nothing");
    let links = |f: fn(&record::tables::LinkRow<'_>) -> u64| tables.links.iter().map(|l| f(&l)).sum::<u64>();
    assert!(links(|l| l.dropped_overflow) > 0 && links(|l| l.dropped_control) > 0);
    assert!(links(|l| l.dropped_loss) > 0 && links(|l| l.marked) > 0);
    assert_eq!(format!("{:016x}", digest(&tables)), "cbebabbf3ec70380");
}

// The scenario above has hosts that take no time; this one's take the default time.
#[test]
fn determinism_the_same_processing_times_in_every_build_and_on_every_machine() {
    let text = format!("hosts.processing = \"linux\"\n{MIXED}");
    let tables = run_on(&load(&text, &[("trace", TRACE)]), 1).results.tables;
    assert_eq!(format!("{:016x}", digest(&tables)), "8fd16ee91a3f1b07");
}

#[test]
fn determinism_the_same_radio_in_every_build_and_on_every_machine() {
    let with_pep = run_on(&load(RADIO, &[]), 1).results.tables;
    let with_proxy = run_on(&load(&RADIO.replace(PEP, PROXY), &[]), 1).results.tables;
    for tables in [&with_pep, &with_proxy] {
        assert!(tables.flows.iter().all(|f| f.bytes > 0), "a flow delivered nothing");
        let cells: Vec<_> = tables.mobility.iter().filter(|row| row.event == "connected").map(|row| row.cell).collect();
        assert_eq!(cells, ["lte", "nr-east", "lte", "nr-east"]);
        assert!(tables.ues.iter().any(|ue| ue.retransmissions > 0) && tables.ues.iter().any(|ue| ue.rlc_retx_pdus > 0));
    }
    assert!(with_pep.peps.iter().all(|pep| pep.reports > 0) && with_proxy.proxies.iter().count() > 0);
    let digests = [&with_pep, &with_proxy].map(|tables| format!("{:016x}", digest(tables)));
    assert_eq!(digests, ["27c8146dd86b64da", "2ac2e31f3ed1662f"]);
}

#[test]
fn determinism_the_same_radio_with_any_number_of_threads() {
    for text in [RADIO, &RADIO.replace(PEP, PROXY)] {
        let loaded = load(text, &[]);
        let first = run_on(&loaded, 1).results.tables;
        assert!(first == run_on(&loaded, 2).results.tables && first == run_on(&loaded, 5).results.tables);
    }
}

#[test]
fn determinism_recording_changes_nothing() {
    let short = MIXED.replace("\"12 s\"", "\"5 s\"");
    let tables = |record: &str| {
        let text = short.replace("record = { samples = \"250 ms\" }", record);
        assert_ne!(text, short);
        run_on(&load(&text, &[("trace", TRACE)]), 1).results.tables
    };
    let without = tables("record = { samples = \"off\" }");
    let with = tables("record = { samples = \"7 ms\", events = true }");
    assert!(with.events.len() > 10_000 && without.events.is_empty());
    assert!(with.flows == without.flows && with.rtts == without.rtts && with.transfers == without.transfers);
    assert!(with.links == without.links, "the links' counters differ");
    let times: Vec<u64> = with.events.iter().filter(|e| (e.point, e.run) == (0, 0)).map(|e| e.t_ns).collect();
    assert!(times.is_sorted(), "events are out of order");
}

/// Runs a UE that drives past an LTE cell at 20 m/s and sends now and then: meanwhile its channel reports are made up
/// afterwards. `mac` has keys of the MAC layer, `ue` of the UE.
fn driving(mac: &str, ue: &str, samples: &str) -> Tables {
    run(&format!(
        r#"
duration = "60 s"
warmup = "0 s"
seed = 1
record = {{ samples = "{samples}" }}
[lte]
servers = ["server"]
mac = {{ {mac} }}
[[lte.cells]]
position = [0, 0, 10]
[[lte.ues]]
name = "ue"
mobility = {{ kind = "line", from = [-400, 30, 1.5], velocity = [20, 0, 0] }}
{ue}
[[flows]]
from = "ue"
to = "server"
traffic = {{ kind = "on-off", on = "50 ms", off = {{ kind = "exponential", mean = "4 s" }}, rate = "20 Mbit/s" }}
"#
    ))
}

/// Asserts that results of a driving UE do not depend on samples, which look at its channel.
#[track_caller]
fn assert_samples_change_nothing(mac: &str, ue: &str) {
    let without = driving(mac, ue, "off");
    assert!(without.flows.iter().all(|flow| flow.bytes > 0), "the UE sent nothing");
    for samples in ["7 ms", "13 ms", "100 ms"] {
        let with = driving(mac, ue, samples);
        assert!(with.flows == without.flows, "the flows differ with samples each {samples}");
        assert!(with.owds == without.owds && with.rtts == without.rtts, "delays differ with samples each {samples}");
    }
}

#[test]
fn determinism_samples_do_not_change_a_ue_that_sleeps() {
    let drx = "drx = { cycle = \"2560 ms\", on_duration = \"10 ms\", inactivity = \"10 ms\" }";
    assert_samples_change_nothing(drx, "channel = \"umi\"");
}

#[test]
fn determinism_samples_do_not_change_a_ue_that_reports_its_channel_seldom() {
    assert_samples_change_nothing("cqi_period = \"1 s\"", "channel = \"umi\"");
}

#[test]
fn determinism_samples_do_not_change_a_ue_among_blockers() {
    let channel = "channel = { kind = \"log-distance\", exponent = 3.6, at_1m_db = 46 }";
    let blockage = "blockage = { kind = \"outdoor\", kmh = 100 }";
    assert_samples_change_nothing("cqi_period = \"1 s\"", &format!("{channel}\n{blockage}"));
}

/// UEs with layers in slots of different lengths, which change the best number of layers; samples look at whole slots.
const LAYERS: &str = r#"
duration = "1 s"
[nr]
resource_blocks = 79
duplex = "flexible"
[[nr.cells]]
name = "c0"
power_dbm = 40
load = 0.3
[[nr.cells]]
name = "c1"
position = [200, 0, 10]
[[nr.cells]]
name = "c2"
position = [400, 0, 10]
power_dbm = 40
[[nr.ues]]
name = "u0"
mobility = [389.4, 20, 1.5]
channel = { kind = "umi", sight = "los", shadowing = false }
layers = 2
[[nr.ues]]
name = "u1"
mobility = [262.2, 6.8, 1.5]
channel = { kind = "umi", sight = "los", shadowing = false }
layers = 2
[[nr.ues]]
name = "u2"
mobility = [48.2, 33.4, 1.5]
channel = "umi"
layers = 2
[[flows]]
to = "u0"
start = "100 ms"
[[flows]]
from = "u1"
to = "server"
start = "100 ms"
[[flows]]
to = "u2"
start = "100 ms"
"#;

#[test]
fn determinism_samples_do_not_change_the_layers_of_a_ue() {
    let flows = |samples: &str| run(&format!("record = {{ samples = \"{samples}\" }}\n{LAYERS}")).flows;
    assert!(flows("off") == flows("1 ms"));
}

#[test]
fn determinism_seeds_and_runs_differ() {
    let digests = |seed: u64| {
        let text = MIXED.replace("seed = 20", &format!("seed = {seed}")).replace("\"12 s\"", "\"10 s\"");
        let tables = run_on(&load(&text, &[("trace", TRACE)]), 1).results.tables;
        let bytes = |run: u32| tables.flows.iter().filter(|f| f.run == run).map(|f| f.bytes).collect::<Vec<_>>();
        (bytes(0), bytes(1))
    };
    let (a, b) = (digests(20), digests(21));
    assert!(a.0 != a.1 && a.0 != b.0 && a.1 != b.1);
}

/// A flow over a lossy, jittery, random-rate link; `before` and `after` stand around it in the file.
fn one_flow_among(before: &str, after: &str, more_flows: &str) -> Tables {
    run(&format!(
        r#"
duration = "15 s"
warmup = "1 s"
{before}
[[links]]
name = "radio"
from = "a"
to = "b"
rate = {{ kind = "synthetic", mean = "10 Mbit/s", peak = "30 Mbit/s", outage_every = "3 s" }}
delay = "20 ms"
loss = 0.001
jitter = "1 ms"
queue = "fq-codel"
{after}
{more_flows}
[[flows]]
name = "watched"
from = "a"
to = "b"
cc = "bbr"
start_jitter = "1 s"
"#
    ))
}

#[test]
fn determinism_a_further_component_shifts_no_other_numbers() {
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ndelay = \"5 ms\"\nloss = 0.01\n\
             jitter = \"2 ms\"\nrate = {{ kind = \"synthetic\", mean = \"5 Mbit/s\", peak = \"9 Mbit/s\" }}\nqueue = \"fq\"\n"
        )
    };
    let other = r#"
[[flows]]
name = "other"
from = "x"
to = "z"
cc = "bbr"
start_jitter = "1 s"
[[flows]]
name = "pages"
from = "y"
to = "x"
traffic = { kind = "pages", objects = 5, object_size = { kind = "pareto", mean = "20 kB" }, think = { kind = "exponential", mean = "500 ms" } }
"#;
    let alone = one_flow_among("", "", "");
    let among = one_flow_among(&link("first", "x", "y"), &link("second", "y", "z"), other);
    assert!(common::flow(&among, "other").bytes > 0 && common::flow(&among, "pages").bytes > 0);
    assert_eq!(common::flow(&alone, "watched"), common::flow(&among, "watched"));
    assert_eq!(common::link(&alone, "radio"), common::link(&among, "radio"));
    assert_eq!(common::link(&alone, "radio-reverse"), common::link(&among, "radio-reverse"));
    let samples = |t: &Tables| {
        let rows = t.samples.iter().filter(|s| s.flow == "watched").map(|s| format!("{s:?}"));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(samples(&alone), samples(&among));
}
