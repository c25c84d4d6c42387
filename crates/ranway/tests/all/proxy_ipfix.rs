//! End-to-end tests of `ranway proxy --ipfix`: flow records of connections, as other programs read them. Tests that need root report
//! when they are skipped.

use crate::common::proxied::*;
use crate::common::text;
use netio::sys::tcp_info;
use nix::sys::signal::{Signal, kill};
use services::proxy::Status;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::ipfix::flows;
use testkit::root::has_program;

/// A collector beside the server.
struct Collector {
    socket: UdpSocket,
    /// The messages so far of each session, which is known by its port.
    sessions: BTreeMap<u16, Vec<Vec<u8>>>,
}

impl Collector {
    fn start(net: &Net) -> Collector {
        let socket = net.inside(SERVER, || UdpSocket::bind((SERVERS[0], 0)).expect("a port"));
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
        Collector { socket, sessions: BTreeMap::new() }
    }

    fn address(&self) -> String {
        self.socket.local_addr().expect("an address").to_string()
    }

    /// Takes what has come. A proxy that has ended has sent everything.
    fn take(&mut self) {
        let mut message = vec![0; 1 << 16];
        while let Ok((length, from)) = self.socket.recv_from(&mut message) {
            assert!(length <= 1_280 - 28, "{length} bytes");
            self.sessions.entry(from.port()).or_default().push(message[..length].to_vec());
        }
    }

    /// The records of the only session, as tshark reads them.
    fn flows(&self) -> Option<Vec<BTreeMap<String, String>>> {
        let messages: Vec<&Vec<Vec<u8>>> = self.sessions.values().collect();
        let [messages] = messages[..] else { panic!("{} sessions", messages.len()) };
        elements(messages)
    }
}

/// The elements of the records in messages, by their names; those of the other direction have `reverse ` before them.
fn elements(messages: &[Vec<u8>]) -> Option<Vec<BTreeMap<String, String>>> {
    let element = |line: &String| {
        let (name, value) = line.trim_matches(['[', ']']).split_once(": ")?;
        let (value, kind) = value.split_once(" (").unwrap_or((value, ""));
        let name = if kind.starts_with("Reverse") { format!("reverse {name}") } else { name.to_owned() };
        Some((name, value.to_owned()))
    };
    Some(flows(messages)?.iter().map(|flow| flow.iter().filter_map(element).collect()).collect())
}

/// Two hosts write so many bytes and end. The one that ends first is the one that has connected.
fn converse(ends: [TcpStream; 2], [up, down]: [usize; 2]) -> [TcpStream; 2] {
    let [mut one, mut other] = ends.each_ref();
    thread::scope(|scope| {
        let answering = scope.spawn(move || {
            let mut asked = Vec::new();
            other.read_to_end(&mut asked).expect("it is open");
            other.write_all(&vec![8; down]).expect("it is open");
            other.shutdown(Shutdown::Write).expect("it is open");
            asked.len()
        });
        one.write_all(&vec![7; up]).expect("it is open");
        one.shutdown(Shutdown::Write).expect("it is open");
        let mut answer = Vec::new();
        one.read_to_end(&mut answer).expect("it is open");
        assert_eq!([answering.join().expect("it has answered"), answer.len()], [up, down]);
    });
    ends
}

fn ended(count: u64) -> impl Fn(&Status) -> bool {
    move |status| status.totals.closed + status.totals.reset == count && status.totals.open == 0
}

/// The packets and bytes that rules of the router have counted.
fn counters(net: &Net, name: &str) -> [u64; 2] {
    let text = net.on_router("nft", &["list", "counter", "inet", "truth", name]);
    let after = |word: &str| text.split_once(&format!("{word} ")).and_then(|(_, rest)| rest.split_whitespace().next());
    ["packets", "bytes"]
        .map(|word| after(word).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}")))
}

#[test]
fn root_flow_records_agree_with_the_log_with_what_was_exchanged_and_with_the_packets() {
    let Some(net) = Net::new() else { return };
    let has_ethtool = net.command(ROUTER, "ethtool").arg("--version").output().is_ok_and(|done| done.status.success());
    if !has_program(has_ethtool, "ethtool") {
        return;
    }
    // Packets are counted as they are on the wire.
    for (host, interface) in [(UE, "u0"), (ROUTER, "ran"), (ROUTER, "wan"), (SERVER, "s0")] {
        let off = ["-K", interface, "tso", "off", "gso", "off", "gro", "off"];
        assert!(net.command(host, "ethtool").args(off).status().expect("it starts").success());
    }
    let names = ["ran4", "wan4", "ran6", "wan6"];
    net.nft(ROUTER, "add table inet truth");
    net.nft(ROUTER, "add chain inet truth packets { type filter hook prerouting priority -400; }");
    for (name, family) in names.iter().zip(["ipv4", "ipv4", "ipv6", "ipv6"]) {
        let rule = format!("iifname {} meta nfproto {family} meta l4proto tcp counter name {name}", &name[..3]);
        net.nft(ROUTER, &format!("add counter inet truth {name}"));
        net.nft(ROUTER, &format!("add rule inet truth packets {rule}"));
    }
    let mut collector = Collector::start(&net);
    let log = net.dir.path().join("connections.jsonl");
    let (log_name, to) = (log.to_string_lossy().into_owned(), collector.address());
    let options = ["--from-servers", "--connection-log", &log_name, "--ipfix", &to, "--ipfix-templates", "1 s"];
    let proxy = net.proxy(&[&options[..], &["--ipfix-domain", "77"]].concat());

    let exchanged = [[100_000, 300_000], [20_000, 0], [5_000, 50_000]];
    let [v4, v6] = [0, 1].map(|family| net.listen(SERVER, SERVERS[family]));
    let to_ue = net.listen(UE, UES[1]);
    let mut clients = Vec::new();
    let mut truth = Vec::new();
    for ((opener, listener), (first, bytes)) in
        [(UE, &v4), (UE, &v6), (SERVER, &to_ue)].into_iter().zip([0, 2, 2].into_iter().zip(exchanged))
    {
        let before = [first, first + 1].map(|n| counters(&net, names[n]));
        let client = net.connect(opener, listener.local_addr().expect("an address"));
        clients.push([client.local_addr(), client.peer_addr()].map(|address| address.expect("it is connected")));
        let server = accept(listener);
        let ends = converse([client, server], bytes);
        net.until("it has ended", ended(clients.len() as u64));
        let after = [first, first + 1].map(|n| counters(&net, names[n]));
        let mut sides = [0, 1].map(|side| [0, 1].map(|what| after[side][what] - before[side][what]));
        if opener == SERVER {
            sides.reverse();
        }
        let repeated = ends.map(|end| tcp_info(end.as_fd()).expect("it is TCP").bytes_retrans.expect("it is counted"));
        truth.push((sides, repeated));
    }
    let status = net.until("they are sent", |status| status.totals.exported == 3);
    assert_eq!(status.totals.unexported, 0);
    let [ran, wan] = ["ran", "wan"]
        .map(|name| net.inside(ROUTER, || nix::net::if_::if_nametoindex(name).expect("it is there")).to_string());
    proxy.end(Signal::SIGTERM);
    collector.take();
    let logged: Vec<serde_json::Value> = fs::read_to_string(&log)
        .expect("it is there")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(logged.len(), 3);
    let Some(flows) = collector.flows() else { return };
    assert_eq!(flows.len(), 3);
    for ((([client, server], bytes), truth), is_from_ue) in
        clients.iter().zip(exchanged).zip(&truth).zip([true, true, false])
    {
        let port = client.port().to_string();
        let flow = flows.iter().find(|flow| flow["SrcPort"] == port).unwrap_or_else(|| panic!("{port}: {flows:?}"));
        println!("{flow:?}, on the wire {truth:?}");
        let number = |name: &str| flow[name].parse::<u64>().unwrap_or_else(|_| panic!("{name}: {flow:?}"));
        for (name, expected) in [
            ("SrcAddr", client.ip().to_string()),
            ("DstAddr", server.ip().to_string()),
            ("DstPort", server.port().to_string()),
            ("Protocol", "TCP".into()),
            ("Flow End Reason", "End of Flow detected".into()),
            ("Initiator Octets", bytes[0].to_string()),
            ("Responder Octets", bytes[1].to_string()),
            ("InputInt", if is_from_ue { &ran } else { &wan }.clone()),
            ("OutputInt", if is_from_ue { &wan } else { &ran }.clone()),
        ] {
            assert_eq!(flow[name], expected, "{name}: {flow:?}");
        }
        let [ue, peer] = if is_from_ue { [client, server] } else { [server, client] };
        let entry = logged.iter().find(|entry| entry["ue"] == ue.to_string() && entry["peer"] == peer.to_string());
        let entry = entry.unwrap_or_else(|| panic!("{ue} {peer}: {logged:?}"));
        let payload = if is_from_ue { ["from_ue_bytes", "to_ue_bytes"] } else { ["to_ue_bytes", "from_ue_bytes"] };
        assert_eq!(payload.map(|key| entry[key].as_u64()), bytes.map(|bytes| Some(bytes as u64)));
        // What comes in a host's TIME-WAIT belongs to no socket, and neither the options of a SYN nor repeated data are known.
        let (sides, repeated) = truth;
        for (side, [packets, octets]) in
            [["Packets", "Octets"], ["reverse Packets", "reverse Octets"]].iter().enumerate()
        {
            let [[packets, octets], [all, bytes]] = [[number(packets), number(octets)], sides[side]];
            let bytes = bytes - repeated[side];
            assert!((all - 2..=all).contains(&packets), "{packets} of {all}: {flow:?}");
            assert!((bytes - 170..=bytes).contains(&octets), "{octets} of {bytes}: {flow:?}");
        }
        assert_eq!(
            [number("Initiator Packets"), number("Responder Packets")],
            ["Packets", "reverse Packets"].map(number)
        );
    }
    let messages = collector.sessions.values().next().expect("there is a session");
    assert!(messages.iter().all(|message| message[12..16] == 77_u32.to_be_bytes()));
    nfdump_agrees(&net, messages, &flows);
}

/// Lets nfcapd collect messages, and compares what nfdump says with what tshark does.
fn nfdump_agrees(net: &Net, messages: &[Vec<u8>], flows: &[BTreeMap<String, String>]) {
    if !has_program(Command::new("nfdump").arg("-V").output().is_ok(), "nfdump") {
        return;
    }
    let dir = net.dir.path().join("nfcapd");
    fs::create_dir(&dir).expect("it is new");
    let mut nfcapd = net.command(SERVER, "nfcapd");
    nfcapd.args(["-p", "9995", "-b", "127.0.0.1", "-w"]).arg(&dir).stdout(Stdio::null()).stderr(Stdio::null());
    let nfcapd = Running(Some(nfcapd.spawn().expect("it starts")));
    let start = Instant::now();
    while !text(&net.command(SERVER, "ss").arg("-Hlun").output().expect("it starts").stdout).contains(":9995") {
        assert!(start.elapsed() < TEST_TIMEOUT, "nfcapd does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    net.inside(SERVER, || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        for message in messages {
            socket.send_to(message, "127.0.0.1:9995").expect("it listens");
        }
    });
    let fields = ["%sp", "%dp", "%ipkt", "%ibyt", "%opkt", "%obyt", "%in", "%out"];
    let wanted =
        ["SrcPort", "DstPort", "Packets", "Octets", "reverse Packets", "reverse Octets", "InputInt", "OutputInt"];
    let expected: Vec<String> = flows.iter().map(|flow| wanted.map(|name| flow[name].clone()).join(" ")).collect();
    // It writes what it has when it is asked to end.
    thread::sleep(Duration::from_millis(500));
    nfcapd.end(Signal::SIGTERM);
    let read = |dir: &Path| {
        let mut nfdump = Command::new("nfdump");
        nfdump.args(["-q", "-N", "-6", "-o", &format!("fmt:{}", fields.join(" ")), "-R"]).arg(dir);
        let output = nfdump.output().expect("it starts");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text(&output.stdout).lines().map(words).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(read(&dir)), sorted(expected));
}

#[test]
fn root_a_dead_collector_ends_nothing_and_one_that_is_there_after_a_reload_gets_records() {
    let Some(net) = Net::new() else { return };
    let [file, said] = ["proxy.toml", "said"].map(|name| net.dir.path().join(name));
    let options = |collector: &str| {
        let text = format!("wan = 'wan'\nran = 'ran'\ndrain = '300 ms'\nipfix = '{collector}'\n");
        fs::write(&file, text).expect("it is ours");
    };
    let mut collector = Collector::start(&net);
    // The server refuses the one, and there is no way to the other.
    options(&format!("{}:9", SERVERS[0]));
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--quiet", "--config"]).arg(&file).stderr(fs::File::create(&said).expect("it is ours"));
    let proxy = Running(Some(command.spawn().expect("it starts")));
    net.until("it accepts", |status| status.accepting);
    net.await_lease(true);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut idle, mut idle_too) = net.pair(&listener);
    let mut count = 0;
    let mut one_more = || {
        let (client, server) = net.pair(&listener);
        converse([client, server], [10, 20]);
        count += 1;
        net.until("it has ended", |status| status.totals.closed == count);
    };
    let reload = |collector: &str| {
        options(collector);
        kill(proxy.pid(), Signal::SIGHUP).expect("it runs");
    };
    let until = |what: &str, part: &str| {
        let start = Instant::now();
        while !fs::read_to_string(&said).expect("it is there").contains(part) {
            assert!(start.elapsed() < TEST_TIMEOUT, "{what}: {}", fs::read_to_string(&said).expect("it is there"));
            thread::sleep(Duration::from_millis(20));
        }
    };
    for _ in 0..3 {
        one_more();
        thread::sleep(Duration::from_millis(1_100));
    }
    let lost = net.until("records are lost", |status| status.totals.unexported >= 2).totals.unexported;
    let complaint = |address: &str| format!("error: the IPFIX collector {address} does not get all flow records (");
    until("it is refused", &complaint(&format!("{}:9", SERVERS[0])));
    reload("203.0.113.1:4739");
    until("there is no way", &complaint("203.0.113.1:4739"));
    one_more();
    net.until("one more is lost", |status| status.totals.unexported > lost);
    reload(&collector.address());
    // The signal is heard within a tenth of a second.
    thread::sleep(Duration::from_millis(500));
    one_more();
    exchange(&mut idle, &mut idle_too);
    let status = net.until("it is sent", |status| status.totals.exported >= 4);
    assert!(status.accepting && status.totals.internal_errors == 0, "{status:?}");
    drop(idle);
    assert_eq!(ending(&mut idle_too), None);
    drop(idle_too);
    net.until("all have ended", |status| status.totals.open == 0);
    // The last ones are sent at the end.
    proxy.end(Signal::SIGTERM);
    let text = fs::read_to_string(&said).expect("it is there");
    assert_eq!(text.matches("IPFIX").count(), 2, "{text}");
    collector.take();
    let Some(flows) = collector.flows() else { return };
    let payload: Vec<&str> = flows.iter().map(|flow| flow["Responder Octets"].as_str()).collect();
    assert_eq!(payload, ["20", "16"]);
}

#[test]
fn root_flow_records_go_on_in_the_process_that_takes_over() {
    let Some(net) = Net::new() else { return };
    let mut collector = Collector::start(&net);
    let to = collector.address();
    let options = ["--ipfix", &to, "--ipfix-templates", "1 s"];
    let mut first = net.proxy(&options);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let (other, other_too) = net.pair(&listener);
    converse([other, other_too], [30, 40]);
    net.until("one has ended", |status| status.totals.closed == 1);
    let second = net.proxy(&[&options[..], &["--take-over"]].concat());
    assert!(first.0.take().expect("it runs").ends().success());
    exchange(&mut client, &mut server);
    converse([client, server], [100, 200]);
    net.until("the other has ended", ended(1));
    second.end(Signal::SIGTERM);
    collector.take();
    let sessions: Vec<&Vec<Vec<u8>>> = collector.sessions.values().collect();
    let Some(flows) = sessions.iter().map(|messages| elements(messages)).collect::<Option<Vec<_>>>() else { return };
    assert_eq!(sessions.len(), 2);
    let mut flows = flows.concat();
    flows.sort_by_key(|flow| flow["Initiator Octets"].clone());
    let of = |name: &str| flows.iter().map(|flow| flow[name].clone()).collect::<Vec<_>>();
    // What the first process had taken counts, and so do the interfaces that it has known.
    assert_eq!(
        (of("Initiator Octets"), of("Responder Octets")),
        (vec!["132".to_owned(), "30".into()], vec!["232".to_owned(), "40".into()])
    );
    let ran = net.inside(ROUTER, || nix::net::if_::if_nametoindex("ran").expect("it is there")).to_string();
    assert_eq!(of("InputInt"), vec![ran; 2]);
}
