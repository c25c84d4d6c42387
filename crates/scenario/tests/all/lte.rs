//! The table `[lte]`: what it becomes, and each of its errors.

use crate::common::load;
use aqm::drop_tail;
use insta::assert_snapshot;
use ran::parameters::Um;
use scenario::{Bandwidth, Capacity, Channel, Delay, Fading, Link, Loss, Mobility, Queue, Rlc, Scenario, Scheduler};
use units::{Bytes, Rate, Span};

fn scenario(files: &[(&str, &str)]) -> Scenario {
    let loaded = load(files, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.points().len(), 1);
    loaded.points()[0].scenario.clone()
}

/// An LTE network of which `keys` are said, and two UEs `a-1` and `a-2`.
fn cell(keys: &str) -> String {
    format!("duration = \"10 s\"\n[lte]\n{keys}\n[[lte.ues]]\nname = \"a\"\ncount = 2\n")
}

fn routes(s: &Scenario) -> String {
    let line = |f: &scenario::Flow| format!("{}: {} | {}\n", f.name, f.route.join(" "), f.return_route.join(" "));
    s.flows.iter().map(line).collect()
}

#[test]
fn a_network_is_hosts_a_core_cells_and_ues() {
    let text =
        cell("servers = [\"x\", \"y\"]\nserver_delay = \"10 ms\"\nserver_rate = \"1 Gbit/s\"\ns1_delay = \"2 ms\"");
    let s = scenario(&[("s", &format!("{text}[[flows]]\n"))]);
    assert_eq!(s.nodes(), ["x", "core", "y", "ran", "a-1", "a-2"]);
    let delay = |link: &Link| match link.delay {
        Delay::Constant { delay } => delay,
        _ => panic!("{}", link.name),
    };
    let links: String = s.links.iter().map(|l| format!("{}: {} -> {}, {}\n", l.name, l.from, l.to, delay(l))).collect();
    assert_snapshot!(links, @r#"
internet-x: x -> core, 10 ms
internet-x-reverse: core -> x, 10 ms
internet-y: y -> core, 10 ms
internet-y-reverse: core -> y, 10 ms
s1: core -> ran, 2 ms
s1-reverse: ran -> core, 2 ms
"#);
    assert_eq!(s.links[0].rate, Some(Capacity::Constant { rate: Rate::from_mbps(1000) }));
    assert_eq!((&s.links[4].rate, &s.links[4].loss, &s.links[4].queue), (&None, &None, &Queue::default()));
    assert_snapshot!(routes(&s), @"flow-1: internet-x s1 radio-a-1 | radio-a-1-reverse s1-reverse internet-x-reverse");
    let radio = s.radio.as_ref().expect("it stays");
    let lte = radio.carriers.lte.as_ref().expect("its carriers");
    assert_eq!(radio.ues.iter().map(|ue| (ue.name.as_str(), ue.count)).collect::<Vec<_>>(), [("a-1", 1), ("a-2", 1)]);
    assert_eq!((radio.cells.len(), radio.cells[0].name.as_str(), lte.bandwidth), (1, "cell-1", Bandwidth::Mhz10));
}

#[test]
fn the_links_of_hosts_lose_packets_in_either_direction() {
    for table in ["lte", "nr"] {
        let text = cell("server_loss = 0.01\nserver_delay = \"1 ms\"").replace("lte", table);
        let s = scenario(&[("s", &format!("{text}[[flows]]\n"))]);
        let lossy: Vec<&str> = s.links.iter().filter(|l| l.loss.is_some()).map(|l| l.name.as_str()).collect();
        assert_eq!(lossy, ["internet-server", "internet-server-reverse"]);
        assert!(s.links.iter().all(|l| l.loss.is_none_or(|loss| loss == Loss::Random { probability: 0.01 })));
    }
}

#[test]
fn a_ue_says_where_it_is_what_it_hears_and_what_carries_it() {
    let text = r#"
duration = "10 s"
[[flows]]
priority = 6
[lte]
bandwidth = "1.4 MHz"
cells = [{}, { name = "far", position = [500, 0, 10], sector_deg = 90, scheduler = "round-robin" }, {}]
[[lte.ues]]
name = "here"
mobility = [1, 2, 3]
channel = "umi"
fading = { kind = "eva", kmh = 60 }
cell = "cell-3"
bearer = { rlc = "um", queue = "drop-tail", discard = "100 ms" }
dedicated = [{ priorities = [6, 7], bearer = { qci = 1, queue = "codel" } }]
[[lte.ues]]
name = "there"
mobility = { kind = "waypoints", points = [["0 s", [0, 0, 1.5]], ["10 s", [100, 0, 1.5]]] }
channel = { kind = "log-distance", exponent = 3.5, at_1m_db = 38 }
fading = 3
"#;
    let s = scenario(&[("s", text)]);
    let radio = s.radio.as_ref().expect("it stays");
    let lte = radio.carriers.lte.as_ref().expect("its carriers");
    assert_eq!(lte.bandwidth, Bandwidth::Mhz1_4);
    assert_eq!(radio.cells.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["cell-1", "far", "cell-3"]);
    assert_eq!((radio.cells[1].scheduler, radio.cells[1].sector_deg), (Scheduler::RoundRobin, Some(90.0)));
    let [here, there] = radio.ues.as_slice() else { panic!("two UEs") };
    assert_eq!(here.mobility, Mobility::Still { position: [1.0, 2.0, 3.0] });
    assert_eq!(here.fading, Some(Fading::Eva { kmh: Some(60.0) }));
    assert_eq!(here.bearer.rlc, Rlc::Um(Um { t_reordering: Span::from_millis(45) }));
    assert_eq!(here.bearer.queue, Some(Queue::default()), "a drop-tail queue without a limit gets one");
    assert_eq!(here.bearer.discard, Some(Span::from_millis(100)));
    assert_eq!((here.dedicated[0].bearer.qci, here.dedicated[0].bearer.rlc), (1, Rlc::default()));
    assert_eq!(there.fading, Some(Fading::Epa { kmh: Some(3.0) }));
    assert_eq!(
        there.bearer.queue(scenario::Technology::Lte),
        Queue::DropTail(drop_tail::Config { bytes: Some(Bytes::new(1_000_000)), ..drop_tail::Config::default() })
    );
    assert!(matches!(&there.mobility, Mobility::Waypoints { points } if points[1].1 == [100.0, 0.0, 1.5]));
    assert_eq!(s.flows[0].priority, 6);
}

#[test]
fn a_star_is_a_flow_for_each_ue_or_else_for_each_host() {
    let text = cell("servers = [\"x\", \"a\", \"b1\", \"b2\"]");
    let flows = "[[flows]]\nname = \"down\"\nto = \"a*\"\ncount = 3\n[[flows]]\nfrom = \"*\"\nto = \"x\"\n[[flows]]\nfrom = \"b*\"";
    let s = scenario(&[("s", &format!("{text}{flows}"))]);
    assert_snapshot!(routes(&s), @r#"
down-a-1: internet-x s1 radio-a-1 | radio-a-1-reverse s1-reverse internet-x-reverse
down-a-2: internet-x s1 radio-a-2 | radio-a-2-reverse s1-reverse internet-x-reverse
flow-2-a-1: radio-a-1-reverse s1-reverse internet-x-reverse | internet-x s1 radio-a-1
flow-2-a-2: radio-a-2-reverse s1-reverse internet-x-reverse | internet-x s1 radio-a-2
flow-3-b1: internet-b1 s1 radio-a-1 | radio-a-1-reverse s1-reverse internet-b1-reverse
flow-3-b2: internet-b2 s1 radio-a-1 | radio-a-1-reverse s1-reverse internet-b2-reverse
"#);
    assert!(s.flows[..2].iter().all(|f| f.count == 3));
}

#[test]
fn a_route_may_name_radio_hops_and_links_beside_them() {
    let text = cell(
        "s1_delay = \"1 ms\"\n[[links]]\nname = \"edge\"\nfrom = \"ran\"\nto = \"cache\"\n[[links]]\nname = \"wifi\"\nfrom = \"server\"\nto = \"a-1\"\ndelay = \"9 ms\"",
    );
    let flows = r#"
[[flows]]
[[flows]]
route = ["internet-server", "s1", "radio-a-1"]
return_route = ["wifi-reverse"]
[[flows]]
from = "a-2"
to = "cache"
[[flows]]
from = "a-1"
to = "a-2"
"#;
    assert_snapshot!(routes(&scenario(&[("s", &format!("{text}{flows}"))])), @r#"
flow-1: wifi | wifi-reverse
flow-2: internet-server s1 radio-a-1 | wifi-reverse
flow-3: radio-a-2-reverse edge | edge-reverse radio-a-2
flow-4: radio-a-1-reverse s1-reverse s1 radio-a-2 | radio-a-2-reverse s1-reverse s1 radio-a-1
"#);
}

#[test]
fn recorded_channels_are_read_beside_the_file_that_names_them() {
    let ue = "channel = { kind = \"recorded\", files = { cell-1 = \"../r/one.csv\" } }\n[[flows]]";
    let (main, base) = ("include = [\"e/base\"]", format!("{}{ue}", cell("")));
    let csv = "time_s,sinr_db\n0,10\n";
    let loaded = load(&[("d/s", main), ("d/e/base", &base), ("d/r/one.csv", csv)], &[]).unwrap();
    assert_eq!(loaded.channel("d/r/one.csv"), Some(csv));
    assert_eq!(loaded.trace("d/r/one.csv"), None);
    for ue in &loaded.points()[0].scenario.radio.as_ref().expect("it stays").ues {
        assert!(matches!(&ue.channel, Channel::Recorded { files, .. } if files["cell-1"] == "d/r/one.csv"));
    }
    let missing = load(&[("d/s", main), ("d/e/base", &base)], &[]).unwrap_err();
    assert_snapshot!(missing, @"d/e/base:7:51: lte.ues[0].channel.files.cell-1: cannot read `d/r/one.csv`: no such file");
}

#[test]
fn a_resolved_network_loads_as_itself_with_links_of_its_own() {
    let links = "[[links]]\nname = \"edge\"\nfrom = \"ran\"\nto = \"cache\"\nrate = \"1 Gbit/s\"\n";
    let text = format!("{}{links}[[flows]]\nto = \"a*\"", cell("s1_rate = \"1 Gbit/s\"\nservers = [\"x\", \"y\"]"));
    let s = scenario(&[("s", &text)]);
    let again = toml::to_string(&s).unwrap();
    assert_eq!(scenario(&[("again", &again)]), s, "{again}");
}

/// The errors of a network of which `keys` are said.
fn says(keys: &str) -> String {
    load(&[("s", &format!("duration = \"10 s\"\n[[flows]]\n[lte]\n{keys}\n"))], &[]).expect_err("this is wrong")
}

/// The errors of a UE of which `keys` are said.
fn ue(keys: &str) -> String {
    says(&format!("[[lte.ues]]\nname = \"a\"\n{keys}"))
}

/// The errors of a good network with `more` behind it.
fn with(more: &str) -> String {
    load(&[("s", &format!("{}{more}", cell("")))], &[]).expect_err("this is wrong")
}

#[test]
fn a_network_needs_ues_and_no_dumbbell() {
    assert_snapshot!(says(""), @"s:3:1: lte: missing key `ues`");
    assert_snapshot!(says("ues = []\nservers = []\ncells = []"), @r#"
s:5:11: lte.servers: at least one is required
s:6:9: lte.cells: at least one is required
s:4:7: lte.ues: at least one is required
"#);
    assert_snapshot!(with("[[flows]]\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\""), @"s:2:1: lte: a scenario has either `[dumbbell]` or `[lte]`, not both");
    assert_snapshot!(with(""), @"s:1:1: flows: the scenario has no flows; add [[flows]]");
}

#[test]
fn a_name_is_given_once() {
    assert_snapshot!(says("servers = [\"x\", \"x\", \"core\", \"../x\"]\nues = [{ name = \"ran\" }, { name = \"a-1\" }, { name = \"a\", count = 2 }, { name = \"a-reverse\" }]"), @r#"
s:4:30: lte.servers[3]: invalid name `../x`; use 1 to 100 letters, digits, spaces, or - _ . :
s:4:17: lte.servers[1]: duplicate node `x`
s:4:22: lte.servers[2]: duplicate node `core`
s:5:17: lte.ues[0].name: duplicate node `ran`
s:5:53: lte.ues[2].name: duplicate node `a-1`
s:5:80: lte.ues[3].name: `a-reverse` ends in `-reverse`, which is reserved for reverse links
"#);
    assert_snapshot!(says("cells = [{ name = \"cell-2\" }, {}]\nues = [{ name = \"a\" }]"), @"s:4:31: lte.cells[1].name: duplicate cell `cell-2`");
    assert_snapshot!(with("[[flows]]\n[[links]]\nname = \"radio-a-1\"\nfrom = \"ran\"\nto = \"x\"\n[[links]]\nname = \"s1\"\nfrom = \"core\"\nto = \"ran\""), @r#"
s:9:8: links[0].name: duplicate link `radio-a-1`
s:9:8: links[0].name: duplicate link `radio-a-1-reverse`
s:13:8: links[1].name: duplicate link `s1`
s:13:8: links[1].name: duplicate link `s1-reverse`
"#);
}

#[test]
fn a_cell_that_is_not_there_is_named() {
    assert_snapshot!(ue("cell = \"cel-1\""), @"s:6:8: lte.ues[0].cell: unknown cell `cel-1`; did you mean `cell-1`?");
    assert_snapshot!(ue("channel = { kind = \"recorded\", files = { cell-2 = \"x.csv\", cell-1 = \"\" } }"), @r#"
s:6:69: lte.ues[0].channel.files.cell-1: a file name is required
s:6:51: lte.ues[0].channel.files.cell-2: unknown cell `cell-2`; did you mean `cell-1`?
"#);
    assert_snapshot!(ue("channel = { kind = \"recorded\", files = {} }"), @"s:6:40: lte.ues[0].channel.files: at least one is required");
}

#[test]
fn a_star_needs_a_ue_or_host_and_stands_at_one_end() {
    assert_snapshot!(with("[[flows]]\nto = \"u*\""), @"s:8:6: flows[0].to: unknown UE or host `u*`; valid: a-1, a-2, server");
    assert_snapshot!(with("[[flows]]\nto = \"b-*\""), @"s:8:6: flows[0].to: unknown UE or host `b-*`; valid: a-1, a-2, server");
    assert_snapshot!(with("[[flows]]\nfrom = \"s*\"\nto = \"a*\""), @"s:9:6: flows[0].to: only one of `from` and `to` may contain a `*`");
    assert_snapshot!(with("[[flows]]\nto = \"a*\"\ncount = 50001"), @"s:8:6: flows[0].to: more than 100000 flows");
    assert_snapshot!(with("[[flows]]\nname = \"f-a-1\"\n[[flows]]\nname = \"f\"\nto = \"a*\""), @"s:10:8: flows[1].name: duplicate flow `f-a-1`");
}

#[test]
fn a_radio_hop_cannot_be_captured() {
    assert_snapshot!(with("[[flows]]\n[record]\npcap = [\"*\", \"s1\", \"radio-a-1\", \"radio-a-2-reverse\", \"s11\"]"), @r#"
s:9:20: record.pcap[2]: `radio-a-1` is a radio hop and cannot be captured; capture `s1`, the link in front of it
s:9:33: record.pcap[3]: `radio-a-2-reverse` is a radio hop and cannot be captured; capture `s1`, the link in front of it
s:9:54: record.pcap[4]: unknown link or host with flows `s11`; did you mean `s1`?
"#);
}

#[test]
fn a_route_that_leaves_out_the_radio_hop_is_refused() {
    assert_snapshot!(with("[[flows]]\nroute = [\"internet-server\", \"radio-a-1\"]"), @"s:8:29: flows[0].route[1]: the link `radio-a-1` starts at `ran`, but the route has reached `core`");
    assert_snapshot!(with("[[flows]]\nroute = [\"internet-server\", \"s1\"]"), @"s:8:9: flows[0].route: the route ends at `ran`, not at `a-1`");
    assert_snapshot!(with("[[flows]]\nroute = [\"internet-server\", \"s1\", \"radio-a\"]"), @"s:8:35: flows[0].route[2]: unknown link `radio-a`; did you mean `radio-a-1`?");
}

#[test]
fn a_value_of_a_cell_out_of_range_says_the_range() {
    assert_snapshot!(says("downlink_mhz = 28000\nuplink_mhz = 0\nserver_delay = \"2000 h\"\ns1_rate = \"0 bit/s\"\nues = [{ name = \"a\" }]"), @r#"
s:7:11: lte.s1_rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s
s:4:16: lte.downlink_mhz: 28000 is out of range: must be from 400 to 6000
s:5:14: lte.uplink_mhz: 0 is out of range: must be from 400 to 6000
s:6:16: lte.server_delay: 2000 h is out of range: must be from 0 ns to 1000 h
"#);
    assert_snapshot!(says("bandwidth = \"7 MHz\""), @"s:4:13: lte.bandwidth: unknown value `7 MHz`; did you mean `3 MHz`?");
    assert_snapshot!(says("ues = [{ name = \"a\" }]\ncells = [{ position = [0, 0], load = 2 }]"), @"s:5:23: lte.cells[0].position: expected an array of 3 values, found 2");
    assert_snapshot!(says("ues = [{ name = \"a\" }]\ncells = [{ position = [0, 2e6, nan], load = 2, power_dbm = inf, noise_figure_db = -1, sector_deg = 400 }]"), @r#"
s:5:27: lte.cells[0].position[1]: 2000000 is out of range: must be from -1000000 to 1000000
s:5:32: lte.cells[0].position[2]: NaN is out of range: must be from -1000000 to 1000000
s:5:60: lte.cells[0].power_dbm: inf is out of range: must be from -50 to 80
s:5:83: lte.cells[0].noise_figure_db: -1 is out of range: must be from 0 to 50
s:5:100: lte.cells[0].sector_deg: 400 is out of range: must be from -360 to 360
s:5:45: lte.cells[0].load: 2 is out of range: must be from 0 to 1
"#);
    let cells = "{},".repeat(401);
    assert_snapshot!(says(&format!("ues = [{{ name = \"a\" }}]\ncells = [{cells}]")), @"s:5:9: lte.cells: more than 400 cells");
}

#[test]
fn a_value_of_a_ue_out_of_range_says_the_range() {
    assert_snapshot!(ue("count = 0\nlayers = 3\npower_dbm = 100\ngain_db = 51\nnoise_figure_db = nan\nmodem = \"0 B\""), @r#"
s:6:9: lte.ues[0].count: 0 is out of range: must be from 1 to 10000
s:10:19: lte.ues[0].noise_figure_db: NaN is out of range: must be from 0 to 50
s:9:11: lte.ues[0].gain_db: 51 is out of range: must be from -50 to 50
s:8:13: lte.ues[0].power_dbm: 100 is out of range: must be from -50 to 80
s:7:10: lte.ues[0].layers: 3 is out of range: must be from 1 to 2
s:11:9: lte.ues[0].modem: 0 B is out of range: must be greater than 0 B and at most 1000000 GB
"#);
    assert_snapshot!(ue("layers = 300"), @"s:6:10: lte.ues[0].layers: expected a whole number from 0 to 255, found the number 300");
    assert_snapshot!(ue("count = 9000\n[[lte.ues]]\nname = \"b\"\ncount = 1001"), @"s:7:1: lte.ues[1]: more than 10000 UEs");
    assert_snapshot!(ue("fading = { kind = \"etu\", kmh = -1 }\nhost_queue = { kind = \"pfifo-fast\", packets = 0 }"), @r#"
s:6:32: lte.ues[0].fading.kmh: -1 is out of range: must be from 0 to 1000
s:7:47: lte.ues[0].host_queue.packets: 0 is out of range: must be from 1 to 1000000000
"#);
    assert_snapshot!(ue("channel = { kind = \"log-distance\", exponent = 0, at_1m_db = -1, shadowing_db = 31, correlation_m = 0 }"), @r#"
s:6:47: lte.ues[0].channel.exponent: 0 is out of range: must be greater than 0 and at most 10
s:6:61: lte.ues[0].channel.at_1m_db: -1 is out of range: must be from 0 to 300
s:6:80: lte.ues[0].channel.shadowing_db: 31 is out of range: must be from 0 to 30
s:6:100: lte.ues[0].channel.correlation_m: 0 is out of range: must be greater than 0 and at most 1000000
"#);
    assert_snapshot!(ue("channel = { kind = \"fixed\", loss_db = nan }"), @"s:6:39: lte.ues[0].channel.loss_db: NaN is out of range: must be from 0 to 300");
}

#[test]
fn a_way_that_cannot_be_gone_is_refused() {
    assert_snapshot!(ue("mobility = [0, 0, 1e7]"), @"s:6:12: lte.ues[0].mobility.position[2]: 10000000 is out of range: must be from -1000000 to 1000000");
    assert_snapshot!(ue("mobility = { kind = \"line\", from = [0, 0, 0], velocity = [0, 2000, 0] }"), @"s:6:62: lte.ues[0].mobility.velocity[1]: 2000 is out of range: must be from -1000 to 1000");
    assert_snapshot!(ue("mobility = { kind = \"waypoints\", points = [] }"), @"s:6:43: lte.ues[0].mobility.points: at least one is required");
    assert_snapshot!(ue("mobility = { kind = \"waypoints\", points = [[\"1 s\", [0, 0, 0]], [\"1 s\", [0, 1e9, 0]], [\"2000 h\", [0, 0, 0]]] }"), @r#"
s:6:76: lte.ues[0].mobility.points[1][1][1]: 1000000000 is out of range: must be from -1000000 to 1000000
s:6:87: lte.ues[0].mobility.points[2][0]: 2000 h is out of range: must be from 0 ns to 1000 h
s:6:64: lte.ues[0].mobility.points[1]: 1 s must be later than the point before it, 1 s
"#);
    assert_snapshot!(ue("mobility = { kind = \"route\", points = [[0, 0, 0]], speeds = [] }"), @r#"
s:6:39: lte.ues[0].mobility.points: at least two are required
s:6:61: lte.ues[0].mobility.speeds: expected at most one speed for each leg, 1 to 1, found 0
"#);
    assert_snapshot!(ue("mobility = { kind = \"route\", points = [[0, 0, 0], [1, inf, 0]], speeds = [1, 0] }"), @r#"
s:6:55: lte.ues[0].mobility.points[1][1]: inf is out of range: must be from -1000000 to 1000000
s:6:74: lte.ues[0].mobility.speeds: expected at most one speed for each leg, 1 to 1, found 2
s:6:78: lte.ues[0].mobility.speeds[1]: 0 is out of range: must be greater than 0 and at most 1000
"#);
}

#[test]
fn a_bearer_that_cannot_be_is_refused() {
    assert_snapshot!(ue("bearer = { qci = 10, rlc = { kind = \"am\", t_poll_retransmit = \"0 s\", poll_pdu = 0, max_retx = 33 }, discard = \"0 s\", queue = { kind = \"drop-tail\", packets = 0 } }"), @r#"
s:6:18: lte.ues[0].bearer.qci: 10 is out of range: must be from 1 to 9
s:6:63: lte.ues[0].bearer.rlc.t_poll_retransmit: 0 ns is out of range: must be from 1 ms to 100 s
s:6:81: lte.ues[0].bearer.rlc.poll_pdu: 0 is out of range: must be from 1 to 65536
s:6:95: lte.ues[0].bearer.rlc.max_retx: 33 is out of range: must be from 1 to 32
s:6:158: lte.ues[0].bearer.queue.packets: 0 is out of range: must be from 1 to 1000000000
s:6:111: lte.ues[0].bearer.discard: 0 ns is out of range: must be from 1 ms to 100 s
"#);
    assert_snapshot!(ue("bearer = { rlc = { kind = \"um\", t_reordering = \"200 s\" } }"), @"s:6:48: lte.ues[0].bearer.rlc.t_reordering: 200 s is out of range: must be from 0 ns to 100 s");
    assert_snapshot!(ue("dedicated = [{ priorities = [] }, { priorities = [3, 16] }, { priorities = [3], bearer = { qci = 0 } }]"), @r#"
s:6:29: lte.ues[0].dedicated[0].priorities: at least one is required
s:6:54: lte.ues[0].dedicated[1].priorities[1]: 16 is out of range: must be from 0 to 15
s:6:77: lte.ues[0].dedicated[2].priorities[0]: priority 3 is already assigned to a dedicated bearer
s:6:98: lte.ues[0].dedicated[2].bearer.qci: 0 is out of range: must be from 1 to 9
"#);
    let eight: String = (0..8).map(|i| format!("{{ priorities = [{i}] }},")).collect();
    assert_snapshot!(ue(&format!("dedicated = [{eight}]")), @"s:6:13: lte.ues[0].dedicated: a UE may have at most 7 dedicated bearers in addition to its default one");
    assert_snapshot!(with("[[flows]]\npriority = 16"), @"s:8:12: flows[0].priority: 16 is out of range: must be from 0 to 15");
}

#[test]
fn a_second_carrier_lies_apart_and_is_for_ues_that_receive_it() {
    let both =
        |carrier: &str, ue: &str| says(&format!("secondary = {{ {carrier} }}\nues = [{{ name = \"a\", {ue} }}]"));
    assert_snapshot!(both("downlink_mhz = 2130, bandwidth = \"15 MHz\"", "carriers = 0"), @r#"
s:4:30: lte.secondary.downlink_mhz: 2130 overlaps the first carrier at 2120: they must be at least 12.5 MHz apart
s:5:33: lte.ues[0].carriers: 0 is out of range: must be from 1 to 2
"#);
    assert_snapshot!(both("downlink_mhz = 1800", "category = 4, carriers = 2"), @"s:5:47: lte.ues[0].carriers: a UE of category 4 receives one carrier; those from 6 on receive two");
    assert_snapshot!(both("downlink_mhz = 1800", "carriers = 2, channel = { kind = \"recorded\", files = { cell-1 = \"a\" } }"), @"s:5:33: lte.ues[0].carriers: a UE with a recorded channel receives one carrier; use a model of the channel");
    assert_snapshot!(both("downlink_mhz = 6001", "channel = \"cost-231\""), @r#"
s:4:30: lte.secondary.downlink_mhz: 6001 is out of range: must be from 400 to 6000
s:5:32: lte.ues[0].channel: `cost-231` holds for carriers of 1500 to 2000 MHz (COST 231 final report, 4.4.1), but `downlink_mhz` is 2120
s:5:32: lte.ues[0].channel: `cost-231` holds for carriers of 1500 to 2000 MHz (COST 231 final report, 4.4.1), but `secondary.downlink_mhz` is 6001
s:5:32: lte.ues[0].channel: `cost-231` holds for distances of 1000 to 20000 m (COST 231 final report, 4.4.1), but the nearest cell, `cell-1`, is 100 m from (100, 0)
"#);
}

#[test]
fn each_time_of_drx_that_the_standard_lacks_is_told_what_it_has() {
    let drx = |keys: &str| says(&format!("mac = {{ drx = {{ {keys} }} }}\nues = [{{ name = \"a\" }}]"));
    assert_snapshot!(drx("on_duration = \"9 ms\", inactivity = \"7 ms\", cycle = \"15 ms\", short_cycle = \"3 ms\", short_cycles = 17, retransmission = \"3 ms\""), @r#"
s:4:114: lte.mac.drx.short_cycles: 17 is out of range: must be from 1 to 16
s:4:31: lte.mac.drx.on_duration: 9 ms is not one of 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600 ms
s:4:52: lte.mac.drx.inactivity: 7 ms is not one of 0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920, 2560 ms
s:4:68: lte.mac.drx.cycle: 15 ms is not one of 10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560 ms
s:4:135: lte.mac.drx.retransmission: 3 ms is not one of 0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320 ms
s:4:91: lte.mac.drx.short_cycle: 3 ms is not one of 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640 ms
"#);
    assert_snapshot!(drx("on_duration = \"200 ms\", short_cycle = \"64 ms\", offset = \"160 ms\""), @r#"
s:4:31: lte.mac.drx.on_duration: 200 ms is longer than the cycle, 160 ms
s:4:73: lte.mac.drx.offset: 160 ms must be whole milliseconds, and less than the cycle, 160 ms
s:4:55: lte.mac.drx.short_cycle: the cycle, 160 ms, is not a multiple of 64 ms
"#);
    assert_snapshot!(says("mac = { ideal = true, drx = {} }\nues = [{ name = \"a\" }]"), @"s:4:29: lte.mac.drx: UEs that send no scheduling requests (`ideal = true`) always listen");
    assert_snapshot!(drx("harq_rtt = 8"), @"s:4:17: lte.mac.drx.harq_rtt: unknown key; valid keys are on_duration, inactivity, cycle, offset, short_cycle, short_cycles, retransmission");
}

#[test]
fn a_value_of_the_mac_layer_or_of_handover_out_of_range_says_the_range() {
    assert_snapshot!(says("ues = [{ name = \"a\" }]\nmac = { harq_transmissions = 9, decoding = \"200 s\", cqi_period = \"0 s\", cqi_delay = \"200 s\", outer_loop_db = -1, sr_period = 3, sr_prohibit = 8, sr_maximum = 3, bsr_period = \"0 s\", bsr_retx = \"0 s\" }"), @r#"
s:5:30: lte.mac.harq_transmissions: 9 is out of range: must be from 1 to 8
s:5:44: lte.mac.decoding: 200 s is out of range: must be from 0 ns to 3 ms
s:5:66: lte.mac.cqi_period: 0 ns is out of range: must be from 1 ms to 100 s
s:5:110: lte.mac.outer_loop_db: -1 is out of range: must be from 0 to 10
s:5:126: lte.mac.sr_period: 3 is not one of 1, 2, 5, 10, 20, 40, 80
s:5:143: lte.mac.sr_prohibit: 8 is out of range: must be from 0 to 7
s:5:159: lte.mac.sr_maximum: 3 is out of range: must be from 4 to 64
s:5:175: lte.mac.bsr_period: 0 ns is out of range: must be from 1 ms to 100 s
s:5:193: lte.mac.bsr_retx: 0 ns is out of range: must be from 1 ms to 100 s
s:5:85: lte.mac.cqi_delay: 200 s is out of range: must be from 0 ns to 100 s
"#);
    assert_snapshot!(says("ues = [{ name = \"a\" }]\nhandover = { offset_db = 16, hysteresis_db = -1, time_to_trigger = \"11 s\", preparation = \"200 s\", interruption = \"200 s\", t304 = \"0 s\", reestablishment = \"200 s\" }"), @r#"
s:5:26: lte.handover.offset_db: 16 is out of range: must be from -15 to 15
s:5:46: lte.handover.hysteresis_db: -1 is out of range: must be from 0 to 15
s:5:68: lte.handover.time_to_trigger: 11 s is out of range: must be from 0 ns to 10 s
s:5:90: lte.handover.preparation: 200 s is out of range: must be from 0 ns to 100 s
s:5:114: lte.handover.interruption: 200 s is out of range: must be from 0 ns to 100 s
s:5:130: lte.handover.t304: 0 ns is out of range: must be from 1 ms to 100 s
s:5:155: lte.handover.reestablishment: 200 s is out of range: must be from 0 ns to 100 s
"#);
}

#[test]
fn what_expands_without_bound_is_stopped() {
    let sweep = format!("[[flows]]\nto = \"a*\"\n[sweep]\nseed = {:?}", (0..20).collect::<Vec<_>>());
    let text = cell("").replace("count = 2", "count = 10000");
    assert_snapshot!(load(&[("s", &format!("{text}{sweep}"))], &[]).unwrap_err(), @"s:10:9: sweep: too large: 20 points of a scenario of this size");
}

#[test]
fn many_ues_have_their_routes_soon() {
    let text = cell("").replace("count = 2", "count = 10000");
    let s = scenario(&[("s", &format!("{text}[[flows]]\nto = \"a*\"\n[[flows]]\nfrom = \"a*\"\nto = \"server\"\n"))]);
    assert_eq!(s.flows.len(), 20_000);
    assert_eq!(s.flows[19_999].route, ["radio-a-10000-reverse", "s1-reverse", "internet-server-reverse"]);
}

#[test]
fn a_radio_link_is_judged_and_handed_over_by_what_a_file_says() {
    let keys = r#"
power_control = { p0_dbm = -95, alpha = 0.8 }
[lte.handover]
report_interval = "480 ms"
measurement_period = "200 ms"
filter = 8
command_size = "100 B"
q_out_db = -8
q_in_db = -6
n310 = 2
n311 = 1
t310 = "500 ms"
"#;
    let s = scenario(&[("s", &format!("{}[[flows]]\n", cell(keys)))]);
    let radio = s.radio.unwrap();
    assert_eq!((radio.power_control.p0_dbm, radio.power_control.alpha), (-95.0, 0.8));
    let h = radio.handover;
    assert_eq!(
        (h.report_interval, h.measurement_period, h.t310),
        (Span::from_millis(480), Span::from_millis(200), Span::from_millis(500))
    );
    assert_eq!((h.filter, h.n310, h.n311, h.command_size), (8, 2, 1, Bytes::new(100)));
    assert_eq!((h.q_out_db, h.q_in_db, h.hysteresis_db), (-8.0, -6.0, 3.0));
    let wrong = r#"
power_control = { p0_dbm = -200, alpha = 0.3 }
[lte.handover]
report_interval = "0 s"
measurement_period = "2 s"
filter = 20
command_size = "9 kB"
q_out_db = -3
q_in_db = -4
n310 = 0
n311 = 11
t310 = "7 s"
"#;
    assert_snapshot!(load(&[("s", &format!("{}[[flows]]\n", cell(wrong)))], &[]).unwrap_err(), @r#"
s:4:28: lte.power_control.p0_dbm: -200 is out of range: must be from -134 to 31
s:4:42: lte.power_control.alpha: 0.3 is not one of 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1
s:6:19: lte.handover.report_interval: 0 ns is out of range: must be from 1 ms to 100 s
s:7:22: lte.handover.measurement_period: 2 s is out of range: must be from 1 ms to 1 s
s:8:10: lte.handover.filter: 20 is out of range: must be from 0 to 19
s:9:16: lte.handover.command_size: 9 kB is out of range: must be from 1 B to 8.188 kB
s:12:8: lte.handover.n310: 0 is out of range: must be from 1 to 20
s:13:8: lte.handover.n311: 11 is out of range: must be from 1 to 10
s:14:8: lte.handover.t310: 7 s is out of range: must be from 0 ns to 6 s
s:11:11: lte.handover.q_in_db: -4 is below `q_out_db`, -3
"#);
}

/// The faults of a UE with a channel and a place, in a cell at a height.
fn placed(channel: &str, place: &str, height: f64, more: &str) -> String {
    let text = format!(
        "duration = \"10 s\"\n[lte]\ncells = [{{ position = [0, 0, {height}] }}]\n{more}\n[[lte.ues]]\nname = \"a\"\nmobility = {place}\nchannel = {channel}\n[[flows]]\n"
    );
    load(&[("s", &text)], &[]).map_or_else(|e| e.to_string(), |_| "fine".into())
}

#[test]
fn a_ue_has_a_category_that_exists_and_allows_its_layers() {
    let of = |keys: &str| load(&[("s", &format!("{}{keys}\n[[flows]]\n", cell("")))], &[]);
    assert_eq!(
        of("category = 6\nlayers = 2").unwrap().points()[0].scenario.radio.as_ref().unwrap().ues[0].category,
        Some(6)
    );
    let wrong = [of("category = 13").unwrap_err(), of("category = 1\nlayers = 2").unwrap_err()];
    assert_snapshot!(wrong.map(|e| e.to_string()).join("\n"), @r#"
s:7:12: lte.ues[0].category: 13 is out of range: must be from 1 to 12
s:8:10: lte.ues[0].layers: a UE of category 1 supports one layer (36.306 table 4.1-1)
"#);
}

#[test]
fn a_path_loss_model_is_refused_where_it_does_not_hold() {
    let band_3 = "downlink_mhz = 1842.5\nuplink_mhz = 1747.5";
    for (channel, place, height, more) in [
        ("\"umi\"", "[3, 0, 1.5]", 10.0, ""),
        ("{ kind = \"umi\", sight = \"los\" }", "[0, 4000, 22.5]", 30.0, ""),
        ("\"uma\"", "[100, 0, 1.5]", 25.0, ""),
        ("{ kind = \"uma\", sight = \"nlos\", shadowing = false }", "[0, 4000, 12]", 25.0, ""),
        ("\"rma\"", "[100, 0, 1.5]", 35.0, ""),
        ("{ kind = \"rma\", sight = \"los\", building_m = 10, street_m = 30 }", "[9000, 0, 1.5]", 35.0, ""),
        ("\"cost-231\"", "[2000, 0, 1.5]", 30.0, band_3),
        ("{ kind = \"cost-231\", metropolitan = true, shadowing_db = 8 }", "[2000, 0, 1.5]", 50.0, band_3),
    ] {
        assert_eq!(placed(channel, place, height, more), "fine", "{channel}");
    }
    let line = |velocity| format!("{{ kind = \"line\", from = [100, 0, 1.5], velocity = {velocity} }}");
    let says = [
        placed("\"umi\"", "[100, 0, 1]", 10.0, ""),
        placed("\"umi\"", "[100, 0, 1.5]", 1.0, ""),
        placed("\"umi\"", "[0, 5001, 1.5]", 10.0, ""),
        placed("\"umi\"", &line("[0, 0, -0.15]"), 10.0, ""),
        placed("\"rma\"", &line("[600, 0, 0]"), 35.0, ""),
        placed("\"uma\"", "[100, 0, 1.5]", 30.0, ""),
        placed("\"uma\"", "[5, 0, 1.5]", 25.0, ""),
        placed("\"uma\"", "[100, 0, 20]", 25.0, ""),
        placed("\"uma\"", "[100, 0, 1.5]", 25.0, "uplink_mhz = 450"),
        placed("\"rma\"", "{ kind = \"route\", points = [[100, 0, 1.5], [6000, 0, 1.5]], speeds = [10] }", 35.0, ""),
        placed("{ kind = \"rma\", building_m = 4, street_m = 60 }", "[100, 0, 1.5]", 35.0, ""),
        placed("\"cost-231\"", "[2000, 0, 1.5]", 30.0, ""),
        placed("\"cost-231\"", "[500, 0, 1.5]", 30.0, band_3),
        placed("\"cost-231\"", "[2000, 0, 0.5]", 20.0, band_3),
    ];
    assert_snapshot!(says.join("\n"), @r#"
s:8:11: lte.ues[0].channel: `umi` holds for UEs at a height of 1.5 to 22.5 m (TR 38.901 table 7.4.1-1, continued from its antennas of 10 m), but this one is at 1 m
s:8:11: lte.ues[0].channel: `umi` holds for antennas at a height of 1.5 to 30 m (TR 38.901 table 7.4.1-1, continued from its antennas of 10 m), but cell `cell-1` is at 1 m
s:8:11: lte.ues[0].channel: `umi` holds for distances of 0 to 5000 m (TR 38.901 table 7.4.1-1, continued from its antennas of 10 m), but the nearest cell, `cell-1`, is 5001 m from (0, 5001)
s:8:11: lte.ues[0].channel: `umi` holds for UEs at a height of 1.5 to 22.5 m (TR 38.901 table 7.4.1-1, continued from its antennas of 10 m), but this one is at 0 m
s:8:11: lte.ues[0].channel: `rma` holds for distances of 10 to 5000 m (TR 38.901 table 7.4.1-1), but the nearest cell, `cell-1`, is 6100 m from (6100, 0)
s:8:11: lte.ues[0].channel: `uma` holds for antennas at a height of 25 m (TR 38.901 table 7.4.1-1), but cell `cell-1` is at 30 m
s:8:11: lte.ues[0].channel: `uma` holds for distances of 10 to 5000 m (TR 38.901 table 7.4.1-1), but the nearest cell, `cell-1`, is 5 m from (5, 0)
s:8:11: lte.ues[0].channel: `uma` holds for UEs at a height of 1.5 to 13 m (TR 38.901 table 7.4.1-1), but this one is at 20 m
s:8:11: lte.ues[0].channel: `uma` holds for carriers of 500 to 100000 MHz (TR 38.901 table 7.4.1-1), but `uplink_mhz` is 450
s:8:11: lte.ues[0].channel: `rma` holds for distances of 10 to 5000 m (TR 38.901 table 7.4.1-1), but the nearest cell, `cell-1`, is 6000 m from (6000, 0)
s:8:40: lte.ues[0].channel.building_m: 4 is out of range: must be from 5 to 50
s:8:54: lte.ues[0].channel.street_m: 60 is out of range: must be from 5 to 50
s:8:11: lte.ues[0].channel: `cost-231` holds for carriers of 1500 to 2000 MHz (COST 231 final report, 4.4.1), but `downlink_mhz` is 2120
s:9:11: lte.ues[0].channel: `cost-231` holds for distances of 1000 to 20000 m (COST 231 final report, 4.4.1), but the nearest cell, `cell-1`, is 500 m from (500, 0)
s:9:11: lte.ues[0].channel: `cost-231` holds for antennas at a height of 30 to 200 m (COST 231 final report, 4.4.1), but cell `cell-1` is at 20 m
s:9:11: lte.ues[0].channel: `cost-231` holds for UEs at a height of 1 to 10 m (COST 231 final report, 4.4.1), but this one is at 0.5 m
"#);
}

#[test]
fn carriers_do_not_overlap() {
    assert_snapshot!(placed("\"friis\"", "[100, 0, 1.5]", 30.0, "downlink_mhz = 1935"), @"s:2:1: lte.uplink_mhz: 1930 overlaps the downlink carrier at 1935: they must be at least 10 MHz apart");
    assert_snapshot!(placed("\"friis\"", "[100, 0, 1.5]", 30.0, "secondary = { downlink_mhz = 1935 }"), @"s:4:30: lte.secondary.downlink_mhz: 1935 overlaps the uplink carrier at 1930: they must be at least 10 MHz apart");
}

#[test]
fn packets_fit_into_pdcp_and_into_buffers() {
    let of = |network: &str, ue: &str, flow: &str| {
        let text = format!(
            "duration = \"10 s\"\n[{network}]\n[[{network}.ues]]\nname = \"a\"\ncount = 2\n{ue}\n[[flows]]\n{flow}\n"
        );
        load(&[("s", &text)], &[]).map_or_else(|e| e.to_string(), |_| "fine".into())
    };
    let small = "host_queue = { kind = \"fq-codel\", bytes = \"4 kB\" }\nmodem = \"4 kB\"\nmodem_full = \"drop\"\n\
                 bearer = { queue = { kind = \"drop-tail\", bytes = \"4 kB\" } }";
    let large = "tcp = { mss = 4000 }";
    for (network, ue, flow) in [
        ("lte", "", "tcp = { mss = 8136 }"),
        ("nr", "", "tcp = { mss = 8948 }"),
        ("lte", small, ""),
        // A modem that lets the host wait takes a packet whenever it is empty, and so does a buffer below a queue.
        ("lte", "modem = \"1 B\"", "from = \"a-1\"\nto = \"server\""),
        ("lte", "bearer = { queue = { kind = \"drop-tail\", bytes = \"1 kB\" }, above = {} }", ""),
    ] {
        assert_eq!(of(network, ue, flow), "fine", "{network}\n{ue}\n{flow}");
    }
    let says = [
        of("lte", "", "tcp = { mss = 8137 }"),
        of("nr", "", "tcp = { mss = 8949 }"),
        of("nr", "", "traffic = { kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"9001 B\" }"),
        of("lte", "modem = \"1 kB\"\nmodem_full = \"drop\"", ""),
        of("lte", small, &format!("from = \"a*\"\nto = \"server\"\n{large}")),
        of("lte", small, large),
        of("nr", "bearer = { nr = { buffer = \"4 kB\" } }", large),
    ];
    assert_snapshot!(says.join("\n"), @r#"
s:8:15: flows[0].tcp.mss: 8137, with 52 bytes of headers, does not pass a cell (LTE's PDCP carries 8188 bytes at most, 36.323): must be at most 8136
s:8:15: flows[0].tcp.mss: 8949, with 52 bytes of headers, does not pass a cell (NR's PDCP carries 9000 bytes at most, 38.323): must be at most 8948
s:8:55: flows[0].traffic.packet: 9001 B do not pass a cell (NR's PDCP carries 9000 bytes at most, 38.323): must be at most 9000 B
s:6:9: lte.ues[0].modem: 1 kB is too small for a packet of 1.5 kB: must be at least 1.5 kB
s:6:43: lte.ues[0].host_queue.bytes: 4 kB is too small for a packet of 4.052 kB: must be at least 4.052 kB
s:7:9: lte.ues[0].modem: 4 kB is too small for a packet of 4.052 kB: must be at least 4.052 kB
s:9:50: lte.ues[0].bearer.queue.bytes: 4 kB is too small for a packet of 4.052 kB: must be at least 4.052 kB
s:6:28: nr.ues[0].bearer.nr.buffer: 4 kB is too small for a packet of 4.052 kB: must be at least 4.052 kB
"#);
}
