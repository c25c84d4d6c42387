//! What the sender's own host does: TCP small queues, drops in its queue, what it remembers of destinations; and a modem
//! that drops.

use crate::common::{flow, link, load, run};
use record::Tables;
use scenario::Scenario;

/// Uploads of four CUBIC flows over a still cell for 20 s. The modem holds 100 kB.
fn upload(ue: &str, tcp: &str) -> Tables {
    run(&format!(
        r#"
duration = "20 s"
record = {{ samples = "20 ms" }}
[lte]
server_delay = "10 ms"
bandwidth = "5 MHz"
[[lte.ues]]
name = "ue"
channel = {{ kind = "fixed", loss_db = 90 }}
modem = "100 kB"
{ue}
[tcp]
{tcp}
[[flows]]
name = "up"
from = "ue"
to = "server"
count = 4
"#
    ))
}

fn lost(tables: &Tables) -> u64 {
    tables.flows.iter().map(|row| row.lost_packets.unwrap()).sum()
}

fn goodput(tables: &Tables) -> f64 {
    tables.flows.iter().map(|row| row.goodput_mbps).sum()
}

fn most_in_host(tables: &Tables) -> u64 {
    tables.radio.iter().map(|row| row.host_queue_bytes).max().unwrap()
}

#[test]
fn a_default_pfifo_fast_overflows_only_without_small_queues() {
    let without = upload("", "small_queues = false");
    assert!(most_in_host(&without) > 1_000_000 && lost(&without) > 0, "{}", most_in_host(&without));
    let with = upload("", "small_queues = true");
    // Packets of two segments have 2 * 1448 + 896 = 3792 bytes of memory for 2896 of payload, and a connection stops with
    // twice 3792, which is with two packets, or three if one of them has left in part: 20 segments of four flows.
    assert!(most_in_host(&with) <= 20 * 1500, "{}", most_in_host(&with));
    assert_eq!(lost(&with), 0);
    assert!(with.flows.iter().all(|row| row.retransmitted.unwrap() == 0));
    // The modem never runs empty for it.
    assert!(goodput(&with) > goodput(&without) * 0.99, "{} for {}", goodput(&with), goodput(&without));
    assert!(with.samples.iter().any(|row| row.limit == "hostq"));
}

#[test]
fn a_full_queue_of_the_host_reduces_the_window_without_a_loss() {
    let queue = r#"host_queue = { kind = "pfifo-fast", packets = 3 }"#;
    let without = upload(queue, "small_queues = false");
    assert!(lost(&without) > 0 && without.flows.iter().any(|row| row.retransmitted.unwrap() > 0));
    let with = upload(queue, "small_queues = true");
    assert_eq!(lost(&with), 0);
    assert!(with.flows.iter().all(|row| row.retransmitted.unwrap() == 0));
    assert!(with.samples.iter().any(|row| row.state == "cwr"));
    assert!(with.samples.iter().any(|row| row.ssthresh_bytes.is_some()));
    assert!(goodput(&with) > goodput(&without) * 0.98, "{} for {}", goodput(&with), goodput(&without));
}

#[test]
fn a_modem_that_drops_leaves_nothing_in_the_host() {
    let tables = upload("modem_full = \"drop\"", "small_queues = true");
    assert_eq!(most_in_host(&tables), 0);
    assert!(lost(&tables) > 0);
    let most = tables.radio.iter().map(|row| row.ul_queue_bytes).max().unwrap();
    // 100 kB, the packet that exceeds them, and headers.
    assert!((90_000..=104_000).contains(&most), "{most}");
}

/// Four bandwidth-delay products of [`wired`].
const LONG: &str = r#"queue = { kind = "drop-tail", bytes = "300 kB" }"#;

/// Uploads of two CUBIC flows for 10 s over a link of 20 Mbit/s; `link` has further keys of it.
fn wired(link: &str, tcp: &str) -> Tables {
    run(&format!(
        r#"
duration = "10 s"
record = {{ samples = "10 ms" }}
hosts.processing = "linux"
[tcp]
{tcp}
[[links]]
name = "modem"
from = "sender"
to = "core"
rate = "20 Mbit/s"
{link}
[[links]]
name = "path"
from = "core"
to = "receiver"
delay = "15 ms"
[[flows]]
name = "up"
from = "sender"
to = "receiver"
count = 2
"#
    ))
}

#[test]
fn small_queues_keep_a_link_s_queue_short_if_it_is_in_the_host() {
    let (without, with) = (wired(LONG, ""), wired(&format!("{LONG}\nqueue_in_host = true"), ""));
    assert!(lost(&without) > 0 && link(&without, "modem").sojourn_p50_ms.unwrap() > 30.0);
    // A segment takes 1448 + 896 bytes of memory and a packet of two 3792. A connection stops with more than twice 3792,
    // which is with four or five segments, and each takes 0.6 ms.
    let waits = link(&with, "modem").sojourn_p99_ms.unwrap();
    assert!(waits < 10.0 * 0.6, "{waits} ms");
    assert_eq!(lost(&with), 0);
    assert!(with.flows.iter().all(|row| row.retransmitted.unwrap() == 0));
    assert!(goodput(&with) > 18.9, "{}", goodput(&with));
    assert!(with.samples.iter().any(|row| row.limit == "hostq"));
}

#[test]
fn a_full_queue_of_a_link_in_the_host_reduces_the_window_without_a_loss() {
    let short = "queue = { kind = \"drop-tail\", packets = 3 }";
    let without = wired(short, "");
    assert!(lost(&without) > 0);
    let tables = wired(&format!("{short}\nqueue_in_host = true"), "");
    assert_eq!(lost(&tables), 0);
    assert!(tables.samples.iter().any(|row| row.state == "cwr"));
    assert!(goodput(&tables) > goodput(&without) * 0.9, "{} for {}", goodput(&tables), goodput(&without));
}

#[test]
fn without_small_queues_it_makes_no_difference_where_the_queue_is() {
    let tcp = "small_queues = false";
    let (host, network) = (wired(&format!("{LONG}\nqueue_in_host = true"), tcp), wired(LONG, tcp));
    assert_eq!(format!("{:?}", host.flows), format!("{:?}", network.flows));
    assert_eq!(format!("{:?}", host.samples), format!("{:?}", network.samples));
}

/// A CUBIC flow for 15 s, and then two NewReno flows: between the same hosts, and to another one.
fn after_another(cache: bool) -> Tables {
    run(&format!(
        r#"
duration = "40 s"
record = {{ samples = "10 ms" }}
[dumbbell]
rate = "20 Mbit/s"
rtt = "40 ms"
queue = {{ kind = "drop-tail", packets = 60 }}
receivers = ["receiver", "other"]
[tcp]
ssthresh_cache = {cache}
[[flows]]
name = "first"
cc = "cubic"
stop = "15 s"
[[flows]]
name = "second"
cc = "new-reno"
start = "20 s"
[[flows]]
name = "elsewhere"
cc = "new-reno"
to = "other"
start = "20 s"
"#
    ))
}

#[test]
fn a_connection_begins_with_the_threshold_that_the_last_one_left() {
    let first_threshold = |tables: &Tables, name: &str| {
        // From the handshake on, which gives the first round-trip time.
        let mut rows = tables.samples.iter().filter(|row| row.flow == name && row.srtt_ms.is_some());
        let first = rows.next().unwrap();
        assert_eq!(first.state, "slow-start");
        first.ssthresh_bytes
    };
    let tables = after_another(true);
    let last = tables.samples.iter().filter(|row| row.flow == "first").last().unwrap();
    // Congestion avoidance: the larger of the threshold and half of the window (tcp_update_metrics).
    let (cwnd, ssthresh) = (last.cwnd_bytes.unwrap() / 1448, last.ssthresh_bytes.unwrap() / 1448);
    assert!(cwnd >= ssthresh, "{cwnd} {ssthresh}");
    assert_eq!(first_threshold(&tables, "second"), Some((cwnd / 2).max(ssthresh) * 1448));
    assert_eq!(first_threshold(&tables, "elsewhere"), None);
    assert_eq!(first_threshold(&after_another(false), "second"), None);
}

#[test]
fn bbr_without_pacing_fills_the_queue_that_pacing_keeps_short() {
    let median_delay = |tcp: &str| {
        let tables = run(&format!(
            r#"
duration = "12 s"
warmup = "4 s"
[dumbbell]
rate = "20 Mbit/s"
rtt = "40 ms"
queue = {{ kind = "drop-tail", packets = 1000 }}
[tcp]
{tcp}
[[flows]]
name = "bbr"
cc = {{ kind = "bbr", linux = "4.9" }}
"#
        ));
        let row = flow(&tables, "bbr");
        assert!(row.goodput_mbps > 17.0, "{}", row.goodput_mbps);
        assert_eq!(row.limited_pacing.unwrap() > 0.0, tcp.is_empty());
        row.owd_p50_ms.unwrap()
    };
    // Without pacing, the drain phase cannot drain what startup's window of 2.885 pipes and three bursts of two segments
    // holds, until the first ProbeRTT at 10 s: 2.885 * 40 ms + 3.6 ms, less 20 ms on the way back, are 99 ms.
    let (paced, unpaced) = (median_delay(""), median_delay("pacing = false"));
    assert!(paced < 30.0 && (94.0..104.0).contains(&unpaced), "{paced} {unpaced}");
}

#[test]
fn repeated_flows_start_and_stop_one_after_another() {
    let text = "duration = \"30 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\n[[flows]]\nname = \"up\"\nstart = \"1 s\"\nstop = \"3 s\"\nrepeat = { count = 3, every = \"10 s\" }\n";
    let loaded = load(text, &[]);
    let flows: Vec<String> = loaded.points()[0]
        .scenario
        .flows
        .iter()
        .map(|flow| format!("{} {} {}", flow.name, flow.start, flow.stop.unwrap()))
        .collect();
    assert_eq!(flows, ["up-1 1 s 3 s", "up-2 11 s 13 s", "up-3 21 s 23 s"]);
    let tables = run(text);
    // No rows after the end of a flow.
    let last = tables.samples.iter().filter(|row| row.flow == "up-1").map(|row| row.t_s).fold(0.0, f64::max);
    assert!((3.0..10.0).contains(&last), "{last}");
}

#[test]
fn invalid_keys_give_one_clear_line() {
    let says = |flow: &str| {
        let text = format!("duration = \"10 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flows]]\n{flow}\n");
        Scenario::parse(&text).unwrap_err().to_string()
    };
    let all = [
        says("cc = { kind = \"bbr\", linux = \"4.8\" }"),
        says("tcp = { pacing = 3 }"),
        says("repeat = { count = 0, every = \"1 s\" }"),
        says("repeat = { count = 11, every = \"1 s\" }"),
        says("repeat = { count = 4000000000, every = \"1000 h\" }"),
        says("repeat = { count = 2 }"),
    ];
    for message in &all {
        println!("{message}");
        assert!(message.contains("scenario:"), "{message}");
    }
    assert!(all[0].contains("cc.linux: unknown value `4.8`; did you mean `4.9`?"), "{}", all[0]);
    assert!(all[3].contains("after the end"), "{}", all[3]);
    let modem = "duration = \"10 s\"\n[lte]\n[[lte.ues]]\nname = \"ue\"\nmodem_full = \"dropped\"\n[[flows]]\n";
    let message = Scenario::parse(modem).unwrap_err().to_string();
    assert!(message.contains("modem_full") && message.contains("drop"), "{message}");
}
