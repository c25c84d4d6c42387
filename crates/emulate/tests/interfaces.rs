//! Hosts do to their interfaces what they like. Each test that needs root and TUN says loudly if it is skipped.

#![allow(clippy::disallowed_methods)] // These tests wait.

use std::process::Output;
use std::time::{Duration, Instant};

use emulate::{Emulation, Options};
use record::Table;
use scenario::Scenario;
use testkit::root::granted;

const LINK: &str = r#"
duration = "2 s"
[[links]]
name = "wire"
from = "a"
to = "b"
duplex = true
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", packets = 100 }
"#;

const CELL: &str = r#"
duration = "2 s"
[lte]
[[lte.ues]]
name = "phone"
"#;

/// A network of `scenario` that runs, unless that cannot be.
fn start(scenario: &str) -> Option<Emulation> {
    granted(emulate::lab::check())?;
    let loaded = Scenario::load_for_emulation("net.toml", &[], &|_: &str| Ok(scenario.to_owned())).unwrap();
    Some(Emulation::start(loaded, Options::default()).unwrap())
}

/// Has a shell at the second host run `line`.
fn run(emulation: &Emulation, line: &str) -> Output {
    emulation.lab().unwrap().command(1, "sh".as_ref()).args(["-c", line]).output().unwrap()
}

#[test]
fn root_a_deleted_interface_ends_it_and_what_was_measured_is_there() {
    let Some(emulation) = start(LINK) else { return };
    assert!(run(&emulation, "ping -c 2 -i 0.2 server && ip link del cell0").status.success());
    let begun = Instant::now();
    while !emulation.is_over() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    let finished = emulation.finish().unwrap();
    assert_eq!(finished.gone.as_deref(), Some("the interface cell0 of b is gone"));
    assert_eq!(finished.results.tables.flows.len(), 1);
}

#[test]
fn root_an_interface_that_is_down_costs_no_time_and_what_it_does_not_take_is_counted() {
    testkit::realtime::conclusive(|_| an_interface_that_is_down_costs_no_time_and_what_it_does_not_take_is_counted());
}

fn an_interface_that_is_down_costs_no_time_and_what_it_does_not_take_is_counted() {
    let Some(emulation) = start(&LINK.replace("10 ms", "400 ms")) else { return };
    // The reply comes when the interface that it is for is down.
    run(&emulation, "ping -c 1 -W 0.01 server; ip link set cell0 down; sleep 1");
    assert!(!emulation.is_over());
    let finished = emulation.finish().unwrap();
    let share = finished.results.timing.lateness.unwrap().cpu_share;
    assert!(share < 0.3, "the engine was busy for {share} of the time");
    assert_eq!((finished.untaken, finished.gone), (1, None));
}

#[test]
fn root_packets_far_longer_than_the_mtu_pass_links_and_cells() {
    for (scenario, bytes) in [(LINK, 60_000), (CELL, 20_000)] {
        let Some(emulation) = start(scenario) else { return };
        let line = format!("ip link set cell0 mtu 65535; ping -4 -c 2 -i 0.2 -W 5 -s {bytes} server");
        let said = String::from_utf8_lossy(&run(&emulation, &line).stdout).into_owned();
        assert!(said.contains(" 0% packet loss"), "{said}");
        assert_eq!(emulation.finish().unwrap().refused, 0);
    }
}
