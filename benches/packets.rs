//! What one bulk flow of 10 s costs with and without something that takes time for packets: on its way there is a PEP, or (`backlog`)
//! queues with byte queue limits above RLC, or (`split`) a proxy that splits the connection. `pair` adds a flow between two other hosts,
//! whose endpoints are what a proxy's are compared with. An iteration is a run.
//!
//! Each prints how many data packets arrive, by which the instructions of one run are divided: docs/src/performance.md has the command.

use criterion::{Criterion, criterion_group, criterion_main};
use scenario::{Loaded, Scenario};
use std::io;
use std::sync::atomic::AtomicBool;

/// What is alike in all. The receiver's buffer, half of which is window, keeps queues from overflowing: all flows send the same.
const FLOW: &str = r#"
duration = "10 s"
[[flows]]
name = "bulk"
from = "server"
to = "phone"
cc = "mdcc"
tcp = { linux = "6.1", small_queues = false, tso = false, send_autotuning = false, receive_buffer = "500 kB" }
"#;

/// Two links. A packet's passage is known in advance behind a queue of the kind `drop-tail` (`link::Foreseen`).
fn links(queue: &str, pep: bool) -> String {
    format!(
        r#"{FLOW}
[[links]]
name = "internet"
from = "server"
to = "border"
rate = "1 Gbit/s"
delay = "5 ms"
pep = {pep}
[[links]]
name = "radio"
from = "border"
to = "phone"
rate = "35 Mbit/s"
delay = "10 ms"
queue = {{ kind = "{queue}", packets = 100 }}
"#
    )
}

/// One UE in a cell of 20 MHz; `at_core` is the key of what stands at the core, if anything does.
fn lte(at_core: &str) -> String {
    format!(
        r#"{FLOW}
[lte]
bandwidth = "20 MHz"
{at_core}
[[lte.ues]]
name = "phone"
"#
    )
}

/// The same without a PEP, with queues above RLC on both sides or with RLC's alone, which hold as much.
fn backlog(limited: bool) -> String {
    let queue = r#"{ kind = "drop-tail", bytes = "1 MB" }"#;
    let above = if limited { format!(r#"above = {{ queue = {queue}, limit = "bql" }}"#) } else { String::new() };
    let limit = if limited { "bql" } else { "none" };
    format!(
        r#"{FLOW}
[lte]
bandwidth = "20 MHz"
[[lte.ues]]
name = "phone"
modem_limit = "{limit}"
reports_host = {limited}
[lte.ues.bearer]
queue = {queue}
{above}
"#
    )
}

/// Beside the same, another flow, which carries as much over a link.
const PAIR: &str = r#"
[[links]]
name = "wire"
from = "a"
to = "b"
rate = "71 Mbit/s"
delay = "10 ms"
[[flows]]
name = "pair"
from = "a"
to = "b"
tcp = { linux = "6.1", small_queues = false, tso = false, send_autotuning = false, receive_buffer = "500 kB" }
"#;

fn load(text: &str) -> Loaded {
    let read = |name: &str| if name == "cost" { Ok(text.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) };
    Scenario::load("cost", &[], &read).expect("the scenario of this file is right")
}

/// Returns how many data packets arrive.
fn run(scenario: &Loaded) -> u64 {
    let stop = AtomicBool::new(false);
    let options = sim::Options::new(1, &stop, &|_| {});
    sim::run(scenario, &options).expect("nothing stops it").results.timing.packets
}

fn flows(c: &mut Criterion) {
    for (name, text) in [
        ("drop-tail/off", links("drop-tail", false)),
        ("drop-tail/on", links("drop-tail", true)),
        ("pfifo-fast/off", links("pfifo-fast", false)),
        ("pfifo-fast/on", links("pfifo-fast", true)),
        ("lte/off", lte("")),
        ("lte/on", lte("pep = true")),
        ("backlog/off", backlog(false)),
        ("backlog/on", backlog(true)),
        ("split/on", lte("proxy = { policy = \"split\" }")),
        ("pair/on", lte("") + PAIR),
    ] {
        let scenario = load(&text);
        let mut packets = 0;
        c.bench_function(name, |b| b.iter(|| packets = run(&scenario)));
        if packets > 0 {
            println!("{name}: {packets} data packets");
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = flows
}
criterion_main!(benches);
