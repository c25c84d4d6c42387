//! Tests of `ranway measure` through emulated networks, whose own observations are the reference. Tests that need root and TUN
//! report when they are skipped.

use crate::common::service::MeasureServer as Server;
use crate::common::{Running, command, emulate, is_late, may, scratch, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use record::tables::{FlowRow, SampleRow};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, at_once, conclusive};

/// A modem between `mid` and `b`, 20 ms behind it a server.
fn network(core: &str, access: &str) -> String {
    format!(
        r#"
duration = "60 s"
[[links]]
name = "core"
from = "a"
to = "mid"
duplex = true
rate = "{core}"
delay = "10 ms"
queue = {{ kind = "drop-tail", bytes = "500 kB" }}
[[links]]
name = "access"
from = "mid"
to = "b"
duplex = true
rate = "{access}"
delay = "10 ms"
queue = {{ kind = "drop-tail", bytes = "500 kB" }}
"#
    )
}

/// Addresses of the server in the network of a directory.
const SERVERS: [&str; 2] = ["10.0.0.1", "[fd00::1]"];

/// The same with a shallow buffer, losses in both directions and jitter in one.
fn lossy_network() -> String {
    let access =
        "name = \"access\"\nloss = 2e-3\njitter = { kind = \"uniform\", max = \"10 ms\" }\nreverse = { loss = 5e-3 }";
    let text = network("100 Mbit/s", "8 Mbit/s").replace("name = \"access\"", access);
    let (core, modem) = text.split_once(access).expect("the link");
    format!("{core}{access}{}", modem.replace("500 kB", "100 kB"))
}

/// A phone in an LTE cell, 20 ms behind it a server.
const CELL: &str = r#"
duration = "60 s"
[lte]
bandwidth = "5 MHz"
server_delay = "20 ms"
[[lte.ues]]
name = "ue"
"#;

/// Measures in the network of a directory; `before` is a command of the shell. Returns the only load of the results.
fn measure(dir: &Path, server: &str, before: &str, options: &str) -> Value {
    measure_behind("mid", dir, server, before, options)
}

/// The same with another router.
fn measure_behind(router: &str, dir: &Path, server: &str, before: &str, options: &str) -> Value {
    let ranway = env!("CARGO_BIN_EXE_ranway");
    let client =
        format!("{before} sleep 1; exec {ranway} measure {server}:5231 --json --idle 3s -o measured {options}");
    let mut serve = String::new();
    if options.contains("--tls") {
        let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).expect("a certificate");
        fs::write(dir.join("certificate"), made.cert.pem()).expect("there is room");
        fs::write(dir.join("key"), made.signing_key.serialize_pem()).expect("there is room");
        serve.push_str("--tls certificate key");
    }
    let server = format!("exec {ranway} measure serve --quiet --open --listen {server}:5231 {serve}");
    let output = emulate(dir, &["--quiet", "--router", router, "--server", &server, "--", "sh", "-c", &client]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let mut results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["loads"][0].take()
}

#[test]
fn root_the_queue_is_found_in_the_host_the_modem_or_the_network() {
    conclusive(the_queue_is_found_in_the_host_the_modem_or_the_network);
}

fn the_queue_is_found_in_the_host_the_modem_or_the_network(watch: &mut Watch) {
    if !may() {
        return;
    }
    let shaped = "tc qdisc replace dev cell0 root tbf rate 4mbit burst 10k limit 250k &&";
    let uploads = [
        ["up", "modem", SERVERS[0], "100 Mbit/s", "4 Mbit/s", ""],
        ["up", "network", SERVERS[1], "4 Mbit/s", "100 Mbit/s", ""],
        ["up", "host", SERVERS[0], "100 Mbit/s", "100 Mbit/s", shaped],
    ];
    // The queue of the server's host is known there alone.
    let downloads = [
        ["down", "modem", SERVERS[1], "100 Mbit/s", "4 Mbit/s", ""],
        ["down", "network", SERVERS[0], "4 Mbit/s", "100 Mbit/s", ""],
    ];
    let run = |[direction, place, server, core, access, before]: [&'static str; 6]| {
        let dir = scratch(&network(core, access));
        let cc = if direction == "up" { "--cc cubic" } else { "" };
        let load = measure(dir.path(), server, before, &format!("-d {direction} -t 5s --flows 2 {cc}"));
        (direction, place, dir, load)
    };
    let measured = at_once(uploads, run).into_iter().chain(at_once(downloads, run));
    for (direction, place, dir, load) in measured {
        if is_late(dir.path(), watch) {
            return;
        }
        let queue = &load["queue_ms"];
        println!("{direction} {place}: {queue}");
        assert_eq!(queue["longest"], place, "{load}");
        assert_eq!(queue["host"].is_null(), direction == "down", "{load}");
        let part = |name: &str| queue[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {load}"));
        let names = ["host", "modem", "network"].into_iter().filter(|&name| name != place && !queue[name].is_null());
        let others: f64 = names.map(part).sum();
        // A full buffer of 100 packets waits for 300 ms at 4 Mbit/s; a host lets each flow have some packets in its queue (TSQ). Senders
        // of downloads end slow start before the buffer is full.
        let expected = match (place, direction) {
            ("host", _) => 15.0..35.0,
            (_, "up") => 200.0..310.0,
            _ => 80.0..310.0,
        };
        assert!(expected.contains(&part(place)) && others < 0.25 * part(place), "{direction} {place}: {queue}");
        // What is not longer than the uncertainty is unknown, and the other is named.
        let behind = &queue["behind"];
        assert!(behind["value"].is_f64() && behind["error"].is_f64(), "{direction} {place}: {queue}");
        blames_nobody_else(place, dir.path());
    }
}

/// Checks that no second of a measurement names another place, and that no part of a wait is longer than the whole.
fn blames_nobody_else(place: &str, dir: &Path) {
    let measured = record::Results::read(&dir.join("measured")).expect("they were written");
    for row in measured.tables.waits.iter() {
        assert!(row.worst.is_empty() || row.worst == place, "{place}: {row:?}");
        assert!(row.modem_ms <= row.total_ms && row.network_ms <= row.total_ms, "{place}: {row:?}");
    }
    let named = measured.tables.waits.iter().filter(|row| row.worst == place).count();
    assert!(named >= 3, "{place}: {named} seconds");
}

#[test]
fn root_the_network_behind_a_cell_is_not_blamed_for_what_waits_in_it() {
    conclusive(the_network_behind_a_cell_is_not_blamed_for_what_waits_in_it);
}

fn the_network_behind_a_cell_is_not_blamed_for_what_waits_in_it(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(CELL);
    let load = measure_behind("core", dir.path(), SERVERS[0], "", "-d up -t 10s --cc cubic");
    if is_late(dir.path(), watch) {
        return;
    }
    println!("{}", load["queue_ms"]);
    assert_eq!((&load["queue_ms"]["longest"], &load["queue_ms"]["network"]), (&"modem".into(), &Value::Null), "{load}");
    blames_nobody_else("modem", dir.path());
}

#[test]
fn root_what_it_measures_is_what_the_emulator_observes() {
    conclusive(what_it_measures_is_what_the_emulator_observes);
}

fn what_it_measures_is_what_the_emulator_observes(watch: &mut Watch) {
    if !may() {
        return;
    }
    // A protocol, its direction, and the number of flows in each; so many emulations at once as two processors keep in time.
    let transfers = [
        [("rmbt", "up", 2), ("rmbt", "down", 2), ("throughput1", "up", 2)],
        [("rmbt", "both", 2), ("throughput1", "down", 2), ("ndt7", "up", 1)],
        [("rmbt --tls --insecure", "up", 2), ("rmbt --tls --insecure", "down", 2), ("ndt7", "down", 1)],
    ];
    for transfers in transfers {
        let measured = at_once(transfers, |(protocol, direction, flows)| {
            let dir = scratch(&network("100 Mbit/s", "8 Mbit/s"));
            let options = format!("--protocol {protocol} -d {direction} -t 6s --flows {flows} --probe-interval 50ms");
            let load = measure(dir.path(), SERVERS[0], "", &options);
            (format!("{protocol} {direction}"), flows, dir, load)
        });
        for (what, flows, dir, load) in measured {
            if is_late(dir.path(), watch) {
                return;
            }
            let path = Route { router: "mid", phone: "b", core_ms: 20.0, within: 0.05, has_loss: false };
            is_what_the_emulator_observes(&what, flows, &path, dir.path(), &load);
        }
    }
}

#[test]
fn root_what_it_measures_over_a_cell_and_with_losses_is_what_the_emulator_observes() {
    conclusive(what_it_measures_over_a_cell_and_with_losses_is_what_the_emulator_observes);
}

fn what_it_measures_over_a_cell_and_with_losses_is_what_the_emulator_observes(watch: &mut Watch) {
    if !may() {
        return;
    }
    // The receiver's estimate of round trips ends at the first of some packets that a cell delivers at once: 7 % were measured.
    let cell = |within: f64| Route { router: "core", phone: "ue", core_ms: 40.0, within, has_loss: false };
    let lossy = Route { router: "mid", phone: "b", core_ms: 20.0, within: 0.05, has_loss: true };
    let cases =
        [("up", CELL.to_owned(), cell(0.05)), ("down", CELL.to_owned(), cell(0.12)), ("up", lossy_network(), lossy)];
    let measured = at_once(cases, |(direction, text, path)| {
        let dir = scratch(&text);
        let options = format!("-d {direction} -t 6s --flows 2 --probe-interval 50ms");
        let load = measure_behind(path.router, dir.path(), SERVERS[0], "", &options);
        (format!("{} {direction}", path.phone), path, dir, load)
    });
    for (what, path, dir, load) in measured {
        if is_late(dir.path(), watch) {
            return;
        }
        is_what_the_emulator_observes(&what, 2, &path, dir.path(), &load);
    }
}

/// The path of a measurement.
struct Route {
    router: &'static str,
    phone: &'static str,
    /// The round trip between the router and the server.
    core_ms: f64,
    /// By how much, as a share, round trips may differ.
    within: f64,
    has_loss: bool,
}

/// Checks the bytes, the round trips and, of uploads, the retransmissions and bytes in flight of a load, in each of its directions. The
/// emulator does not know what limited a flow.
fn is_what_the_emulator_observes(what: &str, flows: usize, path: &Route, dir: &Path, load: &Value) {
    let results = |name: &str| record::Results::read(&dir.join(name)).expect("they were written");
    let (emulated, measured) = (results("ranway-out/net-emulated"), results("measured"));
    let mean = |rows: &[FlowRow]| {
        rows.iter().map(|row| row.rtt_p50_ms.expect("it was measured")).sum::<f64>() / rows.len() as f64
    };
    let proxy = measured.meta.scenario.pointer("/measurement/proxy/found");
    assert_eq!(proxy, Some(&Value::Bool(false)), "{what}: {}", measured.meta.scenario);
    let ways = load["directions"].as_array().expect("a list");
    for way in ways {
        let name = way["direction"].as_str().expect("its name");
        let (router, phone) = (path.router, path.phone);
        let from = if name == "upload" { format!("tcp {phone}:") } else { format!("tcp {router}:5231 > {phone}:") };
        // The server's reports of an upload are a flow as well.
        let big = |row: &FlowRow| row.flow.starts_with(&from) && row.bytes > 300_000;
        let observed: Vec<FlowRow> = emulated.tables.flows.iter().filter(big).collect();
        assert_eq!(observed.len(), flows, "{what}: {observed:?}");
        let there = observed.iter().map(|row| row.bytes).sum::<u64>() as f64;
        let here = way["bytes"].as_f64().expect("it is there");
        println!("{what}: {here} bytes of {name} here, {there} in the network");
        if what == "ndt7 down" {
            // The client ends it, and does not count what arrives until the server has noticed.
            assert!(here <= there, "{here} {there}");
        } else {
            assert!((here - there).abs() < 0.01 * there, "{what} {name}: {here} {there}");
        }
        let measured: Vec<FlowRow> = measured.tables.flows.iter().filter(|row| row.flow == name).collect();
        // The emulator sees a download from the router on, behind which is an empty core.
        let core = if name == "download" { path.core_ms } else { 0.0 };
        let (here, there) = (mean(&measured), mean(&observed) + core);
        println!("{what}: median round trips of {name}: {here} ms here, {there} ms in the network");
        let is_near = |here: f64| (here - there).abs() < (path.within * there).max(1.0);
        assert!(is_near(here), "{what} {name}: {here} {there}");
        if name == "upload" {
            is_sent_as_observed(what, path.has_loss, &measured, &observed);
        }
        // Probes pass the same queue as the download, and its acknowledgements' way, which is empty, back.
        if name == "download" && ways.len() == 1 {
            assert_eq!(load["rtt_ms"]["probe"], "echo", "{load}");
            let here = load["rtt_ms"]["during"].as_f64().expect("probes were answered");
            println!("{what}: median round trip of probes: {here} ms");
            assert!(is_near(here), "{what}, probes: {here} {there}");
        }
    }
}

/// Checks the retransmissions and bytes in flight of uploads, whose sender is at this end.
fn is_sent_as_observed(what: &str, has_loss: bool, measured: &[FlowRow], observed: &[FlowRow]) {
    let again = |rows: &[FlowRow]| rows.iter().map(|row| row.retransmitted.expect("it is known")).sum::<u64>();
    let (here, there) = (again(measured), again(observed));
    let most = |rows: &[FlowRow]| {
        let mut all: Vec<u64> = rows.iter().map(|row| row.max_in_flight_bytes.expect("it is known")).collect();
        all.sort_unstable();
        all
    };
    let (in_flight, sent, is_lossy) = (most(measured), most(observed), there > 0);
    println!("{what}: {here} retransmissions here, {there} in the network; most in flight {in_flight:?}, {sent:?}");
    // A tail loss probe or a retransmission of the last data may come after the last sample.
    assert!(here.abs_diff(there) <= 2 + there / 20, "{what}: {here}, {there} retransmitted");
    assert!(there > 0 || !has_loss, "{what}: {there} retransmitted");
    for (here, there) in in_flight.into_iter().zip(sent) {
        // The kernel's count is of data that is neither selectively acknowledged nor lost, the emulator's of all that is not cumulatively
        // acknowledged: with losses the latter is more. Samples are 10 ms apart.
        let share = here as f64 / there as f64;
        let (least, most) = if is_lossy { (0.3, 1.02) } else { (0.9, 1.02) };
        assert!((least..=most).contains(&share), "{what}: {here} of {there} bytes in flight");
    }
}

#[test]
fn root_a_measurement_is_replayed_with_its_goodput_its_round_trips_and_without_losses_that_it_had_not() {
    conclusive(a_measurement_is_replayed_with_its_goodput_its_round_trips_and_without_losses_that_it_had_not);
}

fn a_measurement_is_replayed_with_its_goodput_its_round_trips_and_without_losses_that_it_had_not(watch: &mut Watch) {
    if !may() {
        return;
    }
    let measured = at_once(["down", "up"], |direction| {
        let dir = scratch(&network("100 Mbit/s", "8 Mbit/s"));
        let options = format!("--protocol throughput1 -d {direction} -t 6s --flows 1 --cc cubic");
        measure(dir.path(), SERVERS[0], "", &options);
        (direction, dir)
    });
    for (direction, dir) in measured {
        if is_late(dir.path(), watch) {
            return;
        }
        let ranway = |args: &[&str]| {
            let output = command(dir.path(), args).output().expect("it runs");
            assert!(output.status.success(), "{}", text(&output.stderr));
        };
        ranway(&["analyse", "measured", "--scenario", "replay.toml", "--quiet", "--out", "seen"]);
        ranway(&["run", "replay.toml", "--quiet", "--out", "again"]);
        let of = |name: &str| {
            let results = record::Results::read(&dir.path().join(name)).expect("they were written");
            let row = results.tables.flows.iter().max_by_key(|row| row.bytes).expect("a flow");
            let rtts = [row.rtt_p50_ms, row.rtt_p95_ms].map(|ms| ms.expect("it was measured"));
            (row.goodput_mbps, rtts, row.retransmitted.expect("the sender tells it"))
        };
        let (before, after) = (of("measured"), of("again"));
        println!("{direction}: goodput, RTT, retransmitted {before:?}, replayed {after:?}");
        assert!((after.0 / before.0 - 1.0).abs() < 0.1, "{direction}: {before:?} {after:?}");
        // The kernel and the simulator leave slow start at different moments, so CUBIC's queue grows from another one: the median moves,
        // and less the 95th percentile, which is from the end.
        let [median, p95] = [0, 1].map(|place| after.1[place] / before.1[place]);
        assert!((0.65..1.4).contains(&median) && (0.75..1.25).contains(&p95), "{direction}: {before:?} {after:?}");
        assert!(before.2 > 0 || after.2 == 0, "{direction}: {before:?} {after:?}");
    }
}

#[test]
fn root_icmp_echo_is_answered_over_both_versions_of_ip() {
    if !may() {
        return;
    }
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let (server, dir) = (Server::start(listen), tempfile::tempdir().expect("a temporary directory"));
        let args = [
            "measure",
            &server.address,
            "--json",
            "-d",
            "up",
            "--cc",
            "cubic",
            "-t",
            "1s",
            "--flows",
            "1",
            "--idle",
            "500ms",
            "-o",
            "measured",
        ];
        let output = command(dir.path(), &args).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let results = record::Results::read(&dir.path().join("measured")).expect("they were written");
        for phase in ["before", "during", "after"] {
            let rows = || results.tables.latencies.iter().filter(|row| row.probe == "echo" && row.phase == phase);
            let answered = rows().filter(|row| row.rtt_ms.is_some_and(|ms| ms > 0.0 && ms < 1_000.0)).count();
            assert!(
                answered > 0 && answered * 2 >= rows().count(),
                "{listen} {phase}: {answered} of {}",
                rows().count()
            );
        }
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let missing: Vec<&str> =
            answer["missing"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert!(!missing.iter().any(|why| why.contains("ICMP")), "{missing:?}");
        // Loopback has no router, and CUBIC no state of BBR's: this is said, too.
        for why in ["the queues of modem and network: ", "BBR's state: "] {
            assert!(missing.iter().any(|reason| reason.starts_with(why)), "{why} {missing:?}");
        }
    }
}

#[test]
fn a_server_is_found_by_an_ipv6_address_with_its_interface_and_port() {
    let (server, dir) = (Server::start("[::1]:0"), tempfile::tempdir().expect("a temporary directory"));
    let zoned = server.address.replace(']', "%lo]");
    let args = ["measure", &zoned, "--json", "-d", "up", "-t", "200ms", "--flows", "1", "--idle", "0s", "--hops", "0"];
    let output = command(dir.path(), &args).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // Without time for probes before the load there are none, and this is said.
    assert!(answer["loads"][0]["rtt_ms"]["before"].is_null(), "{answer}");
    let mut missing = answer["missing"].as_array().expect("a list").iter().filter_map(Value::as_str);
    assert!(missing.any(|reason| reason.starts_with("round trips before the load: ")), "{answer}");
}

#[test]
fn a_server_that_cannot_be_meant_is_one_line() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (server, code, why) in [
        ("fe80::1%nosuch", 2, "fe80::1%nosuch: there is no interface `nosuch`"),
        ("fe80::1", 2, "fe80::1: a link-local address needs its interface, as fe80::1%eth0"),
        ("[::1", 2, "[::1: `]` is missing"),
        ("h:0", 2, "h:0: invalid port; expected 1 to 65535"),
        ("::1:5231", 1, "; write [::1]:5231 if the last group is a port"),
    ] {
        let output = command(dir.path(), &["measure", server]).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.ends_with(&format!("{why}\n")), "{server}: {said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{server}: {said}");
    }
}

#[test]
fn the_terminal_tells_why_something_was_not_measured() {
    let (server, dir) = (Server::start("127.0.0.1:0"), tempfile::tempdir().expect("a temporary directory"));
    let args = ["measure", &server.address, "-d", "up", "--cc", "cubic", "-t", "1s", "--flows", "1", "--idle", "500ms"];
    let output = command(dir.path(), &args).output().expect("it runs");
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(output.status.success(), "{said}");
    // What no source can tell: CUBIC has no state of BBR's, and loopback no router.
    for why in ["BBR's state: no upload is sent with BBR", "the queues of modem and network: no router"] {
        assert!(said.contains(&format!("not measured: {why}")), "{why}: {said}");
    }
    // The same lines as in the results.
    let meta = std::fs::read_to_string(dir.path().join("ranway-out/measure/meta.json")).expect("results");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    let missing = meta.pointer("/scenario/measurement/missing").and_then(Value::as_array).expect("a list");
    let lines: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("not measured: ")).map(|line| line.1).collect();
    assert_eq!(missing.iter().filter_map(Value::as_str).collect::<Vec<_>>(), lines);
}

#[test]
fn results_that_cannot_be_written_are_printed() {
    let server = Server::start("127.0.0.1:0");
    let dir = tempfile::tempdir().expect("a temporary directory");
    // No file may have more than 4 KiB, which is too few for the tables.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let args = ["measure", &server.address, "-d", "up", "-t", "500ms", "--flows", "1", "--idle", "100ms"];
    for format in [&["--json"][..], &[]] {
        let mut command = Command::new("sh");
        command
            .args(["-c", limited, env!("CARGO_BIN_EXE_ranway")])
            .args(args)
            .args(["--hops", "0", "--modem", "none", "-o", "full"]);
        let output = command.args(format).current_dir(dir.path()).output().expect("it starts");
        let (said, shown) = (text(&output.stderr), text(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.lines().any(|line| line.starts_with("error: ")), "{said}");
        assert!(!dir.path().join("full").exists(), "{said}");
        if format.is_empty() {
            assert!(said.contains("upload, 1 flow") && !said.contains("report: "), "{said}");
        } else {
            let answer: Value = serde_json::from_str(&shown).expect("JSON");
            let mbps = &answer["loads"][0]["directions"][0]["mbps"];
            assert!(answer["out"].is_null() && mbps.as_f64().is_some_and(|mbps| mbps > 1.0), "{answer}");
        }
    }
}

#[test]
fn a_server_that_starts_with_its_client_is_waited_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let address = free.to_string();
    let args = ["measure", &address, "-d", "up", "-t", "300ms", "--flows", "1", "--idle", "0s", "--hops", "0"];
    let client = Running::of(command(dir.path(), &args));
    thread::sleep(Duration::from_millis(500));
    let server = Server::start(&address);
    let output = client.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(server);
    let output = Running::of(command(dir.path(), &args)).end();
    let expected = format!("error: {address}: no server at {address}: Connection refused (os error 111)\n");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected));
}

#[test]
fn what_limited_each_flow_is_told_where_congestion_controls_differ() {
    let (server, dir) = (Server::start("127.0.0.1:0"), tempfile::tempdir().expect("a temporary directory"));
    let measure = |more: &[&str]| {
        let options = ["-d", "up", "--cc", "cubic,reno", "--flows", "3", "-t", "1s", "--idle", "300ms"];
        let output = command(dir.path(), &[&["measure", &server.address][..], &options, more].concat()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    };
    let said = text(&measure(&[]).stderr);
    let (_, rest) = said.split_once("  limited by   ").unwrap_or_else(|| panic!("{said}"));
    let lines: Vec<&str> = rest.lines().map_while(|line| line.trim_start().strip_prefix("flow")).collect();
    let of = |number: &str, control: &str| {
        let is_of = |line: &&&str| {
            let (flows, parts) = line.split_once(": ").expect("what limited it");
            let (numbers, controls) = flows.trim_start_matches(['s', ' ']).split_once(" (").expect("its control");
            assert!(parts.ends_with(" %"), "{line}");
            numbers.split(", ").any(|one| one == number) && controls == format!("{control})")
        };
        lines.iter().filter(is_of).count()
    };
    assert_eq!([of("0", "cubic"), of("1", "reno"), of("2", "cubic"), of("1", "cubic")], [1, 1, 1, 0], "{said}");
    let answer: Value = serde_json::from_slice(&measure(&["--json"]).stdout).expect("JSON");
    let sum = |limited: &Value, share: fn(&Value) -> Option<f64>| {
        let shares = limited.as_object().unwrap_or_else(|| panic!("nothing limited it: {answer}"));
        (shares.values().map(|value| share(value).expect("a share")).sum::<f64>() * 1e6).round() / 1e6
    };
    let flows = answer["loads"][0]["directions"][0]["flows"].as_array().expect("flows");
    let flows: Vec<_> = flows
        .iter()
        .map(|flow| (flow["flow"].as_u64(), flow["cc"].as_str(), sum(&flow["limited"], Value::as_f64)))
        .collect();
    assert_eq!(flows, [("cubic", 0), ("reno", 1), ("cubic", 2)].map(|(cc, flow)| (Some(flow), Some(cc), 1.0)));
    let rows = answer["summary"]["points"][0]["flows"].as_array().expect("flows");
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            (row["flow"].as_str(), row["copies"]["mean"].as_f64(), sum(&row["limited"], |of| of["mean"].as_f64()))
        })
        .collect();
    let expected = [("upload-cubic", 2.0), ("upload-new-reno", 1.0)];
    assert_eq!(rows, expected.map(|(name, copies)| (Some(name), Some(copies), 1.0)));
}

/// The page of the documentation.
const PAGE: &str = include_str!("../../../../docs/src/measure.md");
/// The load of its example, and that of the test.
const LOADS: [&str; 2] = ["-t 20s", "-t 6s"];

/// The example for newcomers: the command of the shell, and the lines that it prints.
fn example() -> (String, Vec<&'static str>) {
    let (_, block) = PAGE.split_once("```console\n# ranway emulate").expect("the example");
    let (block, _) = block.split_once("\n```").expect("its end");
    let is_continued = |line: &&str| line.ends_with('\\');
    let lines: Vec<&str> = block.lines().collect();
    let length = lines.iter().take_while(|line| is_continued(line)).count() + 1;
    (format!("ranway emulate{}", lines[..length].join("\n")), lines[length..].to_vec())
}

/// A line without its numbers.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for one in line.chars().filter(|one| *one != '.') {
        match one {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            one => text.push(one),
        }
    }
    text
}

#[test]
fn root_the_example_for_newcomers_tells_which_queue_caused_the_delay_and_what_limited_each_flow() {
    conclusive(the_example_for_newcomers_tells_which_queue_caused_the_delay_and_what_limited_each_flow);
}

fn the_example_for_newcomers_tells_which_queue_caused_the_delay_and_what_limited_each_flow(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    std::os::unix::fs::symlink(docs, dir.path().join("docs")).expect("a link");
    let (shell, printed) = example();
    let options = "ranway emulate --max-lateness '1 s' -o ranway-out/net-emulated";
    let shell = shell.replacen("ranway emulate", options, 1).replacen(LOADS[0], LOADS[1], 1);
    assert!(shell.contains(LOADS[1]), "{shell}");
    let own = Path::new(env!("CARGO_BIN_EXE_ranway")).parent().expect("a folder").display().to_string();
    let path = format!("{own}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env("PATH", path).current_dir(dir.path());
    let output = Running::of(command).end();
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(output.status.success(), "{said}");
    println!("{said}");
    if is_late(dir.path(), watch) {
        return;
    }
    let line = |begin: &str| said.lines().find_map(|line| line.strip_prefix(begin)).unwrap_or_else(|| panic!("{said}"));
    // What waits behind the modem is not longer than its error, in most runs.
    let known = |line: &str| line.replace("network behind unknown: ", "network behind ");
    let queue = known(line("  queue        in the modem or the radio access ("));
    let part = |name: &str| {
        let (_, rest) = queue.split_once(&format!("{name} ")).unwrap_or_else(|| panic!("{queue}"));
        rest.split(' ').next().and_then(|ms| ms.parse::<f64>().ok()).expect("milliseconds")
    };
    assert!(part("modem and radio") > 5.0 * (part("host") + part("network behind")), "{queue}");
    let (_, limits) = said.split_once("  limited by   ").expect("what limited the flows");
    let limits: Vec<&str> =
        limits.lines().take_while(|line| !line.starts_with("  round trip")).map(str::trim).collect();
    let by_window =
        limits.iter().filter_map(|line| line.split_once("congestion window ")?.1.split(' ').next()?.parse().ok());
    let by_window: Vec<u32> = by_window.collect();
    assert!(by_window.len() == limits.len() && by_window.iter().all(|share| *share >= 80), "{limits:?}");
    // The page shows what is printed, but for numbers, for reasons why something is missing, and for how the flows are alike.
    let is_shown = |line: &&str| !line.starts_with("not measured: ") && !line.contains("congestion window");
    let shown = |lines: &[&str]| {
        lines.iter().copied().filter(is_shown).map(|line| without_numbers(&known(line))).collect::<Vec<_>>()
    };
    assert_eq!(shown(&said.lines().collect::<Vec<_>>()), shown(&printed));
}

#[test]
fn root_an_upload_whose_application_stops_writing_is_limited_by_its_application() {
    conclusive(an_upload_whose_application_stops_writing_is_limited_by_its_application);
}

fn an_upload_whose_application_stops_writing_is_limited_by_its_application(watch: &mut Watch) {
    if !may() {
        return;
    }
    // The load begins 4 s after the shell, whose process becomes the client's. It stands still for 3 of the load's 6 s; what its
    // sockets hold is sent in the beginning of them.
    let stops = [("", false), ("(sleep 6; kill -STOP $$; sleep 3; kill -CONT $$) &", true)];
    let measured = at_once(stops, |(before, is_stopped)| {
        let dir = scratch(&network("20 Mbit/s", "20 Mbit/s"));
        measure(dir.path(), SERVERS[0], before, "-d up --cc cubic --flows 2 -t 6s");
        (is_stopped, dir)
    });
    for (is_stopped, dir) in measured {
        if is_late(dir.path(), watch) {
            return;
        }
        let results = record::Results::read(&dir.path().join("measured")).expect("they were written");
        for flow in results.tables.flows.iter() {
            let others = [flow.limited_cwnd, flow.limited_rwnd, flow.limited_pacing, flow.limited_sndbuf];
            let app = flow.limited_app.expect("the sender is here");
            println!("stopped {is_stopped}: {app:.2} of the time, others {others:?}");
            assert_eq!((app > 0.25, app < 0.05), (is_stopped, !is_stopped), "{flow:?}");
            // At its end, a flow waits for its last acknowledgements.
            let last = flow.end_s.expect("it ended") - 0.5;
            let is_of = |row: &SampleRow| row.flow == flow.flow && row.conn == flow.conn && row.t_s < last;
            let count = |of: &dyn Fn(&SampleRow) -> bool| results.tables.samples.iter().filter(|row| of(row)).count();
            let idle = count(&|row| is_of(row) && row.limit == "app") as f64 / count(&is_of) as f64;
            println!("application in {idle:.3} of the samples");
            // A client that stands still takes no samples; one that writes is late now and then.
            assert!(if is_stopped { idle > 0.0 } else { idle < 0.05 }, "{idle}: {flow:?}");
        }
    }
}

#[test]
fn options_that_cannot_work_are_refused_before_anything_is_sent() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Nobody listens: whoever asks this server fails with exit code 1.
    let server = "127.0.0.1:1";
    for (args, why) in [
        (&["--interval", "0ms"][..], "--interval: expected a time from "),
        (&["--probe-interval", "0s"], "--probe-interval: expected a time from "),
        (&["-t", "0s"], "a transfer lasts at least 100 ms"),
        (&["--bytes", "0B"], "a transfer has at least one byte"),
        (&["--protocol", "ndt7"], "ndt7 has one flow"),
        (&["--key", "/nonexistent"], "--key: /nonexistent: "),
        (&["--interface", "nosuch0"], "--interface: there is no interface `nosuch0`; there are "),
        (&["--token", "a b"], "--token: a token has no spaces"),
        (&["-d", "up", "--cc", "nosuchcc"], "the kernel has no congestion control `nosuchcc`; it has "),
        (&["-d", "up", "--cc", "cubic,reno", "-f", "1"], "--cc names 2 congestion controls for --flows 1"),
    ] {
        let output = command(dir.path(), &[&["measure", server][..], args].concat()).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.starts_with(&format!("error: {why}")), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn options_of_tls_that_cannot_work_are_one_line_and_exit_code_2() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let none = ": there is no TLS; add --tls, or use a control server of https://";
    for (args, why) in [
        (&["127.0.0.1:9", "--insecure"][..], format!("--insecure{none}")),
        (&["127.0.0.1:9", "--ca", "a.pem"], format!("--ca{none}")),
        (&["127.0.0.1:9", "--ca", "a.pem", "--tls"], "--ca: a.pem: No such file or directory (os error 2)".to_owned()),
        (
            &["https://127.0.0.1:9/x"],
            "https://127.0.0.1:9/x: expected HOST or HOST:PORT, as 127.0.0.1:9; --tls uses TLS".to_owned(),
        ),
    ] {
        let output = command(dir.path(), &[&["measure"], args].concat()).output().expect("it starts");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), format!("error: {why}\n")));
    }
}

#[test]
fn ctrl_c_ends_a_measurement_whose_server_says_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = silent.local_addr().expect("it is bound").to_string();
    let mut client = command(dir.path(), &["measure", &address, "--quiet"]).spawn().expect("it starts");
    // It first looks whether there is a server.
    let _connections = [(); 2].map(|()| silent.accept().expect("it connects"));
    let start = Instant::now();
    kill(Pid::from_raw(client.id() as i32), Signal::SIGINT).expect("it runs");
    let status = client.ends();
    // Without the signal, the server's silence would be an error after 30 s.
    assert_eq!(status.code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}
