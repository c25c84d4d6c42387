//! Runs one bulk flow of 10 s with or without something that costs packets time, and prints how many data packets arrived,
//! so that the instructions of both can be counted: `cargo build --release -p sim --example packet_cost`, then `valgrind
//! --tool=callgrind target/release/examples/packet_cost NETWORK on|off`. On its way there is a PEP, or (`backlog`) queues
//! with byte queue limits above RLC, or (`split`) a proxy that splits the connection. `pair` adds a flow between two
//! other hosts, whose endpoints are what a proxy's are compared with.

use scenario::Scenario;
use std::io;
use std::process::ExitCode;
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

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let text = match words[..] {
        ["drop-tail" | "pfifo-fast", pep @ ("on" | "off")] => links(words[0], pep == "on"),
        ["backlog", limited @ ("on" | "off")] => backlog(limited == "on"),
        ["lte" | "split" | "pair", "off"] => lte(""),
        ["lte", "on"] => lte("pep = true"),
        ["split", "on"] => lte("proxy = { policy = \"split\" }"),
        ["pair", "on"] => lte("") + PAIR,
        _ => {
            eprintln!("packet_cost drop-tail|pfifo-fast|lte|backlog|split|pair on|off");
            return ExitCode::from(2);
        }
    };
    let read = |name: &str| if name == "cost" { Ok(text.clone()) } else { Err(io::ErrorKind::NotFound.into()) };
    let loaded = Scenario::load("cost", &[], &read).expect("the scenario of this file is right");
    let stop = AtomicBool::new(false);
    let options = sim::Options::new(1, &stop, &|_| {});
    match sim::run(&loaded, &options) {
        Ok(outcome) => println!("{} data packets", outcome.results.timing.packets),
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
