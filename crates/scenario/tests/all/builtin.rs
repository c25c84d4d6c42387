//! What comes with the program.

use scenario::{Scenario, builtin};
use std::io;

fn no_files(_: &str) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

#[test]
fn every_built_in_scenario_loads_without_a_warning() {
    let mut table = String::new();
    for b in builtin::list() {
        let loaded = Scenario::load_for_emulation(b.name, &[], &no_files).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.warnings(), [], "{}", b.name);
        let first = &loaded.points()[0].scenario;
        table += &format!(
            "{:14} {:2} points, {:2} links, {} flows: {}\n",
            b.name,
            loaded.points().len(),
            first.links.len(),
            first.flows.len(),
            b.about
        );
    }
    insta::assert_snapshot!(table, @r#"
dumbbell        1 points,  6 links, 1 flows: CUBIC alone on a bottleneck: the sawtooth of its window
bufferbloat     1 points,  6 links, 2 flows: A download fills a deep queue: the delay of a small transfer on the same link
aqm-compare     5 points,  6 links, 2 flows: Five queue disciplines under the same load: throughput against delay
cc-compare      7 points,  6 links, 1 flows: Seven congestion controls on the same lossy link
loss-sweep     12 points,  6 links, 1 flows: Throughput against random loss, with the square-root law
capacity-step   3 points,  6 links, 1 flows: The capacity grows tenfold and falls back: how fast congestion controls react
trace           3 points,  6 links, 1 flows: A link with a phone's varying capacity: random, or from a recording
page-load       3 points,  6 links, 2 flows: Web pages beside a download: page load times
parking-lot     1 points,  4 links, 3 flows: Two bottlenecks in a row: the long flow competes at both
lte-download    1 points,  4 links, 2 flows: A download over LTE fills the bearer's queue: the parts of a ping's delay
lte-cell        1 points,  4 links, 40 flows: Ten UEs share an LTE cell of 5 MHz, each with large and small flows in both directions
lte-drive       2 points,  4 links, 2 flows: A drive past five LTE cells: the cost of handovers with and without forwarding
lte-20mhz-vehicular  1 points,  4 links, 0 flows: For `ranway emulate`: a car at 60 km/h past an LTE cell of 20 MHz, a server 10 ms behind it
nr-fr2-200mhz   1 points,  4 links, 1 flows: A download on 200 MHz at 28 GHz, RAPID's carrier: 852.6 Mbit/s, and a buffer of 10 MB
nr-street       1 points,  4 links, 2 flows: One building between a 28 GHz cell and a walking UE: what it does to a download
nr-drive        1 points,  4 links, 2 flows: A drive past four NR sites: handovers, and the reach of 3.5 GHz
"#);
}

#[test]
fn a_built_in_scenario_without_flows_says_that_it_is_for_emulation_and_is_not_simulated() {
    for b in builtin::list() {
        let emulated = Scenario::load_for_emulation(b.name, &[], &no_files).unwrap();
        let without = emulated.points()[0].scenario.flows.is_empty();
        assert_eq!(b.about.contains("`ranway emulate`"), without, "{}", b.name);
        match Scenario::load(b.name, &[], &no_files) {
            Ok(simulated) => assert!(!without && simulated.points() == emulated.points(), "{}", b.name),
            Err(e) => {
                assert!(without && e.to_string().ends_with("flows: the scenario has no flows; add [[flows]]"), "{e}");
            }
        }
    }
}
