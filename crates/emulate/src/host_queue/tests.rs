//! Which queues a real host can have, and what `tc` is told.

use super::*;

const NETWORK: &str = r#"
duration = "2 s"
[[links]]
name = "modem"
from = "phone"
to = "core"
rate = "20 Mbit/s"
queue = { kind = "drop-tail", bytes = "300 kB" }
queue_in_host = true
[[links]]
name = "path"
from = "core"
to = "server"
delay = "10 ms"
"#;

/// The queues of hosts at `server` and `phone`; `changed` replaces a part of the scenario.
fn queues_of(changed: (&str, &str)) -> Result<Vec<HostQueue>, String> {
    let text = NETWORK.replacen(changed.0, changed.1, 1);
    let loaded = Scenario::load_for_emulation("net.toml", &[], &|_: &str| Ok(text.clone())).unwrap();
    let scenario = &loaded.points()[0].scenario;
    queues(scenario, &["server".to_owned(), "phone".to_owned()]).map_err(|error| error.to_string())
}

/// The commands for the only queue.
fn commands(changed: (&str, &str)) -> Vec<String> {
    let queues = queues_of(changed).unwrap();
    assert_eq!((queues.len(), queues[0].host), (1, 1));
    queues[0].commands(1500)
}

#[test]
fn a_limit_in_bytes_is_that_of_the_shaper_itself() {
    assert_eq!(commands(("", "")), ["qdisc add dev cell0 root handle 1: tbf rate 20000000bit burst 1750 limit 300000"]);
}

#[test]
fn a_limit_in_packets_is_that_of_a_fifo_in_the_shaper() {
    let commands = commands(("bytes = \"300 kB\"", "packets = 10"));
    assert_eq!(commands[0], "qdisc add dev cell0 root handle 1: tbf rate 20000000bit burst 1750 limit 15000");
    assert_eq!(commands[1], "qdisc add dev cell0 parent 1:1 handle 10: pfifo limit 10");
}

#[test]
fn framing_counts_and_at_high_rates_more_may_leave_late() {
    let commands = commands(("rate = \"20 Mbit/s\"", "rate = \"200 Mbit/s\"\noverhead = \"18 B\""));
    assert_eq!(
        commands,
        ["qdisc add dev cell0 root handle 1: tbf rate 200000000bit burst 4018 limit 300000 overhead 18"]
    );
}

#[test]
fn a_queue_that_a_real_host_cannot_have_is_refused() {
    let codel = queues_of(("{ kind = \"drop-tail\", bytes = \"300 kB\" }", "\"codel\"")).unwrap_err();
    assert_eq!(
        codel,
        "link `modem`: its queue is in the host `phone`, where it is a FIFO; use `drop-tail` with either `bytes` or `packets` \
         and `drop = \"tail\"`, or remove `queue_in_host`"
    );
    let steps = queues_of((
        "rate = \"20 Mbit/s\"",
        "rate = { kind = \"steps\", steps = [[\"0 s\", \"20 Mbit/s\"], [\"1 s\", \"2 Mbit/s\"]] }",
    ));
    assert_eq!(
        steps.unwrap_err(),
        "link `modem`: its queue is in the host `phone`, where `tbf` serves it at a constant rate; give the link one, or \
         remove `queue_in_host`"
    );
    let another = "[[links]]\nname = \"other\"\nfrom = \"phone\"\nto = \"server\"\nduplex = false\n[[links]]";
    assert_eq!(
        queues_of(("[[links]]", another)).unwrap_err(),
        "link `modem`: its queue is in the host `phone`, which has a single interface, but also sends over another link; \
         remove `queue_in_host`"
    );
}

#[test]
fn a_link_without_the_key_or_without_a_real_host_needs_no_queue() {
    assert_eq!(queues_of(("queue_in_host = true", "")).unwrap(), []);
    assert_eq!(queues_of(("from = \"phone\"", "from = \"elsewhere\"")).unwrap(), []);
}

#[test]
fn root_a_host_gets_the_queue_of_its_link() {
    if !crate::lab::may() {
        return;
    }
    let lab = Lab::new(&["server".to_owned(), "phone".to_owned()], None, 1500, None).unwrap();
    for queue in queues_of(("bytes = \"300 kB\"", "packets = 10")).unwrap() {
        queue.install(&lab, 1500).unwrap();
    }
    let show = ["-netns", &lab.hosts()[1].netns, "qdisc", "show", "dev", INTERFACE];
    let shown = Command::new("tc").args(show).output().unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("tbf 1: root") && shown.contains("rate 20Mbit"), "{shown}");
    assert!(shown.contains("pfifo 10: parent 1:1 limit 10p"), "{shown}");
}
