//! End-to-end tests of real hosts behind a simulated network. Tests that need root and TUN report when they are
//! skipped.

use crate::common::{
    CELLS, LINK, Running, command, emulate, eventually, flows, is_late, may, namespaces, ping_times, scratch, text,
};
use record::Results;
use record::tables::FlowRow;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use testkit::realtime::{Watch, conclusive};
use testkit::root::has_program;

#[test]
fn root_the_command_has_its_own_streams_and_exit_code() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let output = emulate(dir.path(), &["--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).contains("err\n") && text(&output.stderr).contains("report: "));
    assert!(dir.path().join("ranway-out/net-emulated/report.html").is_file());

    let mut cat = Running::start(dir.path(), &["--quiet", "--", "cat"]);
    cat.say("through\n");
    let output = cat.end();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "through\n".to_owned()));
}

#[test]
fn root_a_signal_reaches_the_command_and_the_results_are_written() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let catch = "trap 'echo caught; exit 9' TERM; echo ready; sleep 30 & wait";
    let mut running = Running::start(dir.path(), &["--", "sh", "-c", catch]);
    running.ready();
    running.signal("-TERM");
    let output = running.end();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(9), "caught\n".to_owned()));
    assert!(dir.path().join("ranway-out/net-emulated/summary.json").is_file());
}

#[test]
fn root_ctrl_c_ends_the_command_and_the_results_are_written() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let line = format!("{} emulate net.toml -- sh -c 'echo ready; exec sleep 30'", env!("CARGO_BIN_EXE_ranway"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(dir.path());
    let mut terminal = Running::of(script);
    terminal.ready();
    terminal.say("\x03");
    let output = terminal.end();
    assert_eq!(output.status.code(), Some(128 + 2), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("report: "), "{}", text(&output.stdout));
}

#[test]
fn root_the_status_line_occupies_the_last_row_below_a_command() {
    if !may() {
        return;
    }
    let dir = scratch(&format!("{LINK}[[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"));
    let shown = |options: &str| {
        let ranway = env!("CARGO_BIN_EXE_ranway");
        let line = format!("stty rows 24 cols 100; {ranway} emulate net.toml --max-lateness '1 s' {options}");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(dir.path());
        let output = Running::of(script).end();
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}");
        said
    };
    let said = shown("");
    let (line, rest) = said.rsplit_once("\r\x1b[K").unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("\r\x1b[?7l") && line.ends_with("\x1b[K\x1b[?7h"), "{line}");
    assert!(line.contains(" s  down ") && !line.contains('\n'), "{line}");
    assert!(rest.contains(" s emulated, ") && !rest.contains('\x1b'), "{rest}");
    // Its row is reserved before the command's first output, and released after its last.
    let said = shown("-- sh -c 'echo first; sleep 2.2; echo last'");
    let part = |text: &str| said.find(text).unwrap_or_else(|| panic!("no {text:?} in {said:?}"));
    let places = [
        "\x1b[1;23r",
        "first\r\n",
        "\x1b7\x1b[24;1H\x1b[?7l",
        " s  down ",
        "last\r\n",
        "\x1b7\x1b[r\x1b[24;1H\x1b[K\x1b8",
    ];
    assert!(places.map(part).is_sorted(), "{said:?}");
    for options in ["--quiet -- sleep 2.2", "--quiet --json", "2> log"] {
        let said = shown(options);
        assert!(!said.contains('\x1b'), "{options}: {said}");
    }
}

#[test]
fn root_packets_take_as_long_as_the_links_say_over_ipv4_and_ipv6() {
    conclusive(packets_take_as_long_as_the_links_say_over_ipv4_and_ipv6);
}

fn packets_take_as_long_as_the_links_say_over_ipv4_and_ipv6(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    // 1000 bytes of payload and 8 of ICMP: 1.028 ms (IPv4) and 1.048 ms (IPv6) each way at 8 Mbit/s, and 10 ms.
    for (version, least) in [("-4", 22.056), ("-6", 22.096)] {
        let output =
            emulate(dir.path(), &["--quiet", "--", "ping", version, "-c", "10", "-i", "0.1", "-s", "1000", "server"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        if is_late(dir.path(), watch) {
            return;
        }
        let said = text(&output.stdout);
        let times = ping_times(&said);
        assert_eq!(times.len(), 10, "{said}");
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        // Processing in the hosts adds to it, considerably on a busy machine.
        assert!((least..least + 5.0).contains(&fastest), "{version}: {fastest} ms, of which {least} are the network's");
    }
}

#[test]
fn root_the_built_in_web_server_fills_the_link_and_takes_uploads() {
    conclusive(the_built_in_web_server_fills_the_link_and_takes_uploads);
}

fn the_built_in_web_server_fills_the_link_and_takes_uploads(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let output =
        emulate(dir.path(), &["--", "curl", "-s", "-o", "/dev/null", "-w", "%{size_download}", "http://server/1MB"]);
    assert_eq!(text(&output.stdout), "1000000", "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    let flows = flows(dir.path());
    let down = flows
        .iter()
        .find(|flow| flow["flow"].as_str().is_some_and(|name| name.starts_with("tcp a:80")))
        .expect("a row");
    assert!(down["limited"].is_null(), "only its sender knows: {down}");
    assert!(text(&output.stderr).contains(" s emulated, "), "{}", text(&output.stderr));
    let goodput = down["goodput_mbps"]["mean"].as_f64().expect("a number");
    // 1448 of 1500 bytes are payload; slow start and the handshake take some of it.
    assert!((4.0..7.73).contains(&goodput), "{goodput} Mbit/s");

    let file = dir.path().join("upload");
    fs::write(&file, vec![7; 300_000]).expect("it is written");
    let output = emulate(dir.path(), &["--quiet", "--", "curl", "-s", "-T", "upload", "http://server/"]);
    assert!(text(&output.stdout).contains("300000"), "{}", text(&output.stdout));
}

#[test]
fn root_a_download_by_curl_fills_an_nr_carrier() {
    conclusive(a_download_by_curl_fills_an_nr_carrier);
}

fn a_download_by_curl_fills_an_nr_carrier(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch("include = [\"preset:nr-fr2-200mhz\"]\nduration = \"60 s\"\n");
    let url = "http://server/150MB";
    let output = emulate(dir.path(), &["--", "curl", "-s", "-o", "/dev/null", "-w", "%{speed_download}", url]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mbps = text(&output.stdout).parse::<f64>().expect("bytes per second") * 8e-6;
    // What transport blocks of 852.6 Mbit/s carry of packets of 1500 bytes with 1448 of payload. That holds however late.
    assert!(mbps < 817.6, "{mbps} Mbit/s");
    if !is_late(dir.path(), watch) {
        // Slow start takes some of it.
        assert!(mbps > 600.0, "{mbps} Mbit/s");
    }
}

#[test]
fn root_a_change_over_the_control_socket_has_its_effect() {
    if !may() {
        return;
    }
    let dir = scratch(CELLS);
    let mut running = Running::start(dir.path(), &["--", "sh", "-c", "echo ready; sleep 30"]);
    running.ready();
    let status = || running.control("status").1;
    assert!(status().contains("\"cell\":\"cell-1\""), "{}", status());
    assert_eq!(running.control("handover phone cell-2").0, Some(0));
    eventually("it is in the other cell", || status().contains("\"cell\":\"cell-2\""));
    assert_eq!(running.control("sinr phone -4").0, Some(0));
    eventually("its CQI is low", || status().contains("\"cqi\":1,") || status().contains("\"cqi\":2,"));
    for (words, hint) in [
        ("handover phone cell-9", "cell-2"),
        ("sinr fone 3", "phone"),
        ("rate s2 3 Mbit/s", "s1"),
        ("jump", "handover"),
    ] {
        let (code, said) = running.control(words);
        assert!(code == Some(2) && said.contains(hint), "{words}: {said}");
    }
    assert_eq!(running.control("stop").0, Some(0));
    let output = running.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn root_nothing_is_left_after_the_end_or_a_kill() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    // A process with a unique argument.
    let nap = format!("sleep 77{}", std::process::id());
    for kill in [None, Some("-TERM"), Some("-KILL")] {
        let mut running =
            Running::start(dir.path(), &["--", "sh", "-c", &format!("setsid {nap} & echo ready; sleep 1")]);
        running.ready();
        let id = running.id();
        assert_eq!(namespaces(&id).len(), 2);
        kill.inspect(|signal| running.signal(signal));
        let status = running.end().status;
        assert!(kill != Some("-KILL") || status.signal() == Some(9));
        eventually("the namespaces are gone", || namespaces(&id).is_empty());
        let left = Command::new("pgrep").args(["-f", &nap]).output().expect("pgrep runs");
        assert!(left.stdout.is_empty(), "{kill:?} leaves {}", text(&left.stdout));
    }
}

#[test]
fn root_two_emulations_run_side_by_side() {
    if !may() {
        return;
    }
    let (one, other) = (scratch(LINK), scratch(LINK));
    let ping = ["--quiet", "--", "ping", "-c", "5", "-i", "0.2", "server"];
    let both = [Running::start(one.path(), &ping), Running::start(other.path(), &ping)];
    for running in both {
        let output = running.end();
        assert!(
            output.status.success() && text(&output.stdout).contains(" 0% packet loss"),
            "{}",
            text(&output.stdout)
        );
    }
}

#[test]
fn root_real_packets_wait_behind_simulated_ones() {
    conclusive(real_packets_wait_behind_simulated_ones);
}

fn real_packets_wait_behind_simulated_ones(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(&(LINK.to_owned() + "[[flows]]\nname = \"download\"\nfrom = \"a\"\nto = \"b\"\n"));
    let output = emulate(dir.path(), &["--", "sh", "-c", "sleep 3; ping -c 10 -i 0.1 server"]);
    if is_late(dir.path(), watch) {
        return;
    }
    let said = text(&output.stdout);
    let mean = said.lines().find_map(|line| line.strip_prefix("rtt ")?.split('/').nth(4)?.parse::<f64>().ok());
    // 100 packets of 1500 bytes at 8 Mbit/s are 150 ms of queue; CUBIC keeps much of it full.
    let mean = mean.unwrap_or_else(|| panic!("{said}"));
    assert!((60.0..190.0).contains(&mean), "{mean} ms");
    assert!(flows(dir.path()).iter().any(|flow| flow["flow"] == "download"));
}

#[test]
fn root_the_kernel_sends_the_flows_of_the_scenario() {
    conclusive(the_kernel_sends_the_flows_of_the_scenario);
}

fn the_kernel_sends_the_flows_of_the_scenario(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(
        &(LINK.replace("2 s", "4 s") + "[[flows]]\nname = \"download\"\nfrom = \"a\"\nto = \"b\"\ncc = \"new-reno\"\n"),
    );
    let output = emulate(dir.path(), &["--kernel"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    let flows = flows(dir.path());
    let [download] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!((download["flow"].as_str(), download["cc"].as_str()), (Some("download"), Some("new-reno")));
    let goodput = download["goodput_mbps"]["mean"].as_f64().expect("a number");
    assert!((6.5..7.73).contains(&goodput), "{goodput} Mbit/s");
}

#[test]
fn root_the_kernels_transfers_are_timed_and_its_paced_flows_are_limited_by_pacing() {
    conclusive(the_kernels_transfers_are_timed_and_its_paced_flows_are_limited_by_pacing);
}

fn the_kernels_transfers_are_timed_and_its_paced_flows_are_limited_by_pacing(watch: &mut Watch) {
    if !may() {
        return;
    }
    let bbr = "[[flows]]\nname = \"paced\"\nfrom = \"a\"\nto = \"b\"\ncc = \"bbr\"\n";
    let transfer = "[[flows]]\nname = \"file\"\nfrom = \"b\"\nto = \"a\"\nstart = \"500 ms\"\n\
                    traffic = { kind = \"transfer\", size = \"500 kB\" }\n";
    let dir = scratch(&(LINK.replace("2 s", "4 s") + bbr + transfer));
    let simulated = command(dir.path(), &["run", "net.toml", "--out", "simulated"]).output().expect("it starts");
    assert!(simulated.status.success(), "{}", text(&simulated.stderr));
    let output = emulate(dir.path(), &["--kernel"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    let summary = fs::read(dir.path().join("simulated/summary.json")).expect("the run has a summary");
    let simulated: serde_json::Value = serde_json::from_slice(&summary).expect("it is JSON");
    let simulated = simulated["points"][0]["flows"].as_array().expect("flows").clone();
    let kernel = flows(dir.path());
    let figure = |flows: &[serde_json::Value], name: &str, path: &str| {
        let flow = flows.iter().find(|flow| flow["flow"] == name).expect("both have both flows");
        flow.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{name}: {path}: {flow}"))
    };
    let completion = |flows: &[serde_json::Value]| figure(flows, "file", "/completion_s/mean");
    // 500 kB and the headers take 0.52 s at 8 Mbit/s.
    let (ours, theirs) = (completion(&simulated), completion(&kernel));
    assert!(theirs > 0.52 && (0.8..1.25).contains(&(theirs / ours)), "simulated {ours} s, kernel {theirs} s");
    for flows in [&simulated, &kernel] {
        let pacing = figure(flows, "paced", "/limited/pacing/mean");
        assert!(pacing > 0.5, "limited by pacing for {pacing} of the time");
    }
}

/// A flow of the scenario `text` as simulated, and as the kernel sends it over the emulated network; `None` if the emulation was late.
fn both(text: &str, watch: &mut Watch) -> Option<[Results; 2]> {
    let dir = scratch(text);
    let output = command(dir.path(), &["run", "net.toml", "--out", "simulated"]).output().expect("it starts");
    assert!(output.status.success(), "{}", crate::common::text(&output.stderr));
    let output = emulate(dir.path(), &["--kernel"]);
    assert!(output.status.success(), "{}", crate::common::text(&output.stderr));
    let read = |out: &str| Results::read(&dir.path().join(out)).expect("results");
    (!is_late(dir.path(), watch)).then(|| [read("simulated"), read("ranway-out/net-emulated")])
}

/// The figure of the only flow that the kernel sends.
fn figure<T>(of: &Results, figure: impl Fn(&FlowRow<'_>) -> T) -> T {
    let flow = of.tables.flows.iter().find(|flow| flow.flow == "download").expect("the flow");
    figure(&flow)
}

const DOWNLOAD: &str = "[[flows]]\nname = \"download\"\nfrom = \"a\"\nto = \"b\"\n";

#[test]
fn root_a_run_and_the_kernel_measure_the_same_in_a_long_recovery() {
    conclusive(a_run_and_the_kernel_measure_the_same_in_a_long_recovery);
}

/// Slow start overflows a queue of 4.5 s: for seconds, what arrives waits behind holes.
fn a_run_and_the_kernel_measure_the_same_in_a_long_recovery(watch: &mut Watch) {
    if !may() {
        return;
    }
    let large = "cc = \"new-reno\"\ntcp = { receive_buffer = \"32 MiB\", send_buffer = \"32 MiB\" }\n";
    let scenario = LINK.replace("2 s", "14 s").replace("packets = 100", "packets = 3000") + DOWNLOAD + large;
    let Some([simulated, kernel]) = both(&scenario, watch) else { return };
    let near = |what: &str, of: fn(&FlowRow<'_>) -> f64, bound: f64| {
        let [ours, theirs] = [&simulated, &kernel].map(|results| figure(results, of));
        println!("{what}: simulated {ours:.3}, kernel {theirs:.3}");
        assert!((ours / theirs - 1.0).abs() < bound, "{what}: simulated {ours}, kernel {theirs}");
    };
    near("goodput", |flow| flow.goodput_mbps, 0.1);
    near("median RTT", |flow| flow.rtt_p50_ms.expect("it is known"), 0.1);
    near("95th percentile of the RTT", |flow| flow.rtt_p95_ms.expect("it is known"), 0.05);
    near("retransmissions", |flow| flow.retransmitted.expect("it is known") as f64, 0.1);
}

#[test]
fn root_a_run_and_the_kernel_count_lost_syns() {
    conclusive(a_run_and_the_kernel_count_lost_syns);
}

fn a_run_and_the_kernel_count_lost_syns(watch: &mut Watch) {
    if !may() {
        return;
    }
    // Nothing arrives. The second SYN leaves after 1 s; for the third, kernels since 6.5 wait less than earlier ones.
    let scenario = LINK.replace("\"2 s\"", "\"1900 ms\"\n").replace("delay =", "loss = 1\ndelay =") + DOWNLOAD;
    let Some(both) = both(&scenario, watch) else { return };
    for results in &both {
        let counts = figure(results, |flow| (flow.bytes, flow.segments_sent, flow.retransmitted, flow.rtos));
        assert_eq!(counts, (0, Some(0), Some(1), Some(1)));
    }
}

#[test]
fn root_a_small_send_buffer_bounds_what_the_kernel_has_in_flight() {
    conclusive(a_small_send_buffer_bounds_what_the_kernel_has_in_flight);
}

fn a_small_send_buffer_bounds_what_the_kernel_has_in_flight(watch: &mut Watch) {
    if !may() {
        return;
    }
    let scenario = "duration = \"6 s\"\nwarmup = \"3 s\"\n[[links]]\nname = \"wire\"\nfrom = \"a\"\nto = \"b\"\nduplex = true\n\
                    rate = \"50 Mbit/s\"\ndelay = \"40 ms\"\n";
    let Some([simulated, kernel]) = both(&format!("{scenario}{DOWNLOAD}tcp.send_buffer = \"150 kB\"\n"), watch) else {
        return;
    };
    let [ours, theirs] = [&simulated, &kernel].map(|results| figure(results, |flow| flow.goodput_mbps));
    println!("simulated {ours:.2} Mbit/s, kernel {theirs:.2}");
    // 150 kB each 80 ms; of the kernel's, five sixths are payload, and it keeps from two thirds to all of it full.
    assert!(ours <= 15.0 && (0.6 * ours..1.05 * ours).contains(&theirs), "simulated {ours}, kernel {theirs}");
}

#[test]
fn root_a_flow_that_the_kernel_cannot_send_is_refused_and_nothing_is_written() {
    if !may() {
        return;
    }
    let dir =
        scratch(&(LINK.to_owned() + "[[flows]]\nname = \"late\"\nfrom = \"a\"\nto = \"b\"\nstart_jitter = \"1 s\"\n"));
    let output = emulate(dir.path(), &["--kernel"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("flow late: `start_jitter`"), "{}", text(&output.stderr));
    assert!(!dir.path().join("ranway-out").exists());
}

#[test]
fn root_a_late_run_is_reported_as_invalid() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let args = ["emulate", "net.toml", "--max-lateness", "1 ns", "--", "ping", "-c", "2", "-i", "0.1", "server"];
    let output = command(dir.path(), &args).output().expect("it starts");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("invalid: "), "{}", text(&output.stderr));
    let summary = fs::read_to_string(dir.path().join("ranway-out/net-emulated/summary.json")).expect("a summary");
    assert!(summary.contains("\"valid\": false"), "{summary}");
}

#[test]
fn root_captures_hold_the_real_packets() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let output = emulate(dir.path(), &["--pcap", "--", "curl", "-s", "-o", "/dev/null", "http://server/10kB"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = dir.path().join("ranway-out/net-emulated/captures/hosts.pcapng");
    let request = "tcp.payload contains \"GET /10kB\"";
    let tshark = Command::new("tshark").arg("-r").arg(&file).args(["-Y", request]).output();
    if !testkit::root::has_program(tshark.is_ok(), "tshark") {
        return;
    }
    let tshark = tshark.expect("it is there");
    // Once at each host.
    assert_eq!(text(&tshark.stdout).lines().count(), 2, "{}", text(&tshark.stderr));
}

#[test]
fn invalid_requests_are_rejected_in_one_line() {
    let dir = scratch(&(LINK.to_owned() + "[sweep]\n\"links.wire.delay\" = [\"1 ms\", \"2 ms\"]\n"));
    for (args, hint) in [
        (&["emulate", "net.toml"][..], "--set links.wire.delay="),
        (&["emulate", "net.tom"], "net.tom"),
        (&["emulate", "net.toml", "--set", "links.wire.delay=1 ms"], "nothing to run"),
        (&["emulate", "net.toml", "--set", "links.wire.delay=1 ms", "--ue", "2"], "--ue 2"),
        (&["emulate", "net.toml", "--set", "links.wire.delay=1 ms", "--max-lateness", "soon"], "soon"),
    ] {
        let output = command(dir.path(), args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{args:?}: {}", text(&output.stderr));
    }
    assert!(!dir.path().join("ranway-out").exists());
    let args = ["emulate", "net.toml", "--set", "links.wire.delay=1 ms", "--", "no-such-program"];
    let output = command(dir.path(), &args).output().expect("it starts");
    assert_eq!(output.status.code(), Some(127), "{}", text(&output.stderr));
}

#[test]
fn root_without_privileges_one_line_names_what_is_missing() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("it is ours");
    let binary = dir.path().join("ranway");
    fs::copy(env!("CARGO_BIN_EXE_ranway"), &binary).expect("it is copied");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["emulate", "net.toml", "--", "true"])
        .current_dir(dir.path())
        .output();
    let output = output.expect("setpriv is part of Debian");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("root"), "{said}");
}

/// Runs a command as a user without rights, in a mount namespace in which anybody may open `/dev/net/tun`, as on a desktop.
fn as_nobody(dir: &Path, command: &str) -> Output {
    let script = format!(
        "mknod tun c 10 200 && chmod 666 tun && mount --bind tun /dev/net/tun && rm tun && \
         exec setpriv --reuid 65534 --regid 65534 --clear-groups {command}"
    );
    fs::set_permissions(dir, Permissions::from_mode(0o777)).expect("it is ours");
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]).current_dir(dir).output().expect("unshare of util-linux")
}

#[test]
fn root_is_not_needed_where_users_may_have_namespaces() {
    if !may() {
        return;
    }
    let (dir, ranway) = (scratch(LINK), env!("CARGO_BIN_EXE_ranway"));
    let allowed = as_nobody(dir.path(), "unshare --user --map-root-user --mount mount -t tmpfs none /mnt");
    if !has_program(allowed.status.success(), "user namespaces for everybody") {
        return;
    }
    let command = "sh -c 'id -u && ping -c 2 -i 0.2 api.example.com >&2 && curl -s http://server/5kB | wc -c'";
    let options = "--out out --max-lateness '200 ms' --name api.example.com=server";
    let output = as_nobody(dir.path(), &format!("{ranway} emulate net.toml {options} -- {command}"));
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    assert!(complained.contains("note: without root: no real-time priority"), "{complained}");
    assert!(said.lines().take(2).eq(["0", "5000"]), "{said}");
    // What is written is the user's.
    let results = fs::metadata(dir.path().join("out/flows.parquet")).expect("results");
    assert_eq!(results.uid(), 65_534);
    let refused = as_nobody(dir.path(), &format!("{ranway} emulate net.toml --nat -- true"));
    assert!(text(&refused.stderr).contains("--nat needs root"), "{}", text(&refused.stderr));
    let inside = as_nobody(dir.path(), &format!("{ranway} rootless -- id -u"));
    assert_eq!(text(&inside.stdout).trim(), "0", "{}", text(&inside.stderr));
}
