//! The simulated and the live proxy see the same and decide the same: a differential test.
//!
//! A simulation runs with a control that makes each decision twice: from what the simulated proxy sees, and from what the live one
//! would see of the same connections (`tcp_info` of both legs) and of the same reports (lines of JSON with wall-clock times). The
//! simulation goes on with the first.

use rapid::{Best, Category, Config, Control, Decision, Policy, Published, Rapid, Sample};
use rnis::RadioReport;
use scenario::Scenario;
use services::proxy::{Inbox, Observation};
use sim::{Live, NoVisitors};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use units::{Span, Time};
use wire::tcp_info::TcpInfo;

/// The wall-clock time of the simulation's start.
const START: Span = Span::from_secs(1_800_000_000);

/// Decides twice.
struct Twice {
    simulated: Rapid<usize, u32>,
    live: Rapid<usize, IpAddr>,
    inbox: Inbox,
    counts: Arc<Mutex<Counts>>,
}

/// How often the control was called.
#[derive(Clone, Debug, Default)]
struct Counts {
    opened: u32,
    closed: u32,
    reports: u32,
    decisions: u32,
    limited: u32,
    slow: u32,
}

fn address(ue: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a01_0002 + ue).into()
}

/// Rounds times to the microseconds of the kernel.
fn rounded(seen: Sample) -> Sample {
    let round = |span: Option<Span>| span.map(|span| Span::from_micros((span.as_nanos() / 1000).max(1)));
    Sample {
        wan_rtt: round(seen.wan_rtt),
        wan_min_rtt: round(seen.wan_min_rtt),
        wan_receive_rtt: round(seen.wan_receive_rtt),
        ran_rtt: round(seen.ran_rtt),
        ran_min_rtt: round(seen.ran_min_rtt),
        ..seen
    }
}

/// Returns what the live proxy would see of such a connection, if half of what it holds were still in the receive buffer.
fn observed(seen: &Sample) -> Observation {
    let micros = |span: Option<Span>, none| span.map_or(none, |span| (span.as_nanos() / 1000) as u32);
    let held = seen.held();
    let [mut wired, mut radio] = [TcpInfo::default(); 2];
    (wired.rtt, wired.min_rtt) = (micros(seen.wan_rtt, 0), micros(seen.wan_min_rtt, u32::MAX));
    (wired.bytes_received, wired.rcv_rtt) = (seen.arrived, micros(seen.wan_receive_rtt, 0));
    (radio.rtt, radio.min_rtt) = (micros(seen.ran_rtt, 0), micros(seen.ran_min_rtt, u32::MAX));
    (radio.bytes_acked, radio.notsent_bytes) = (seen.delivered, (held - held / 2 - held / 4) as u32);
    Observation { taken: seen.arrived - held / 2, held: held / 4, taken_from_ue: 0, held_from_ue: 0, wired, radio }
}

impl Control<usize, u32> for Twice {
    fn open(&mut self, flow: usize, ue: u32, mss: u32, now: Time) {
        self.counts.lock().expect("nobody panics").opened += 1;
        self.simulated.open(flow, ue, mss, now);
        self.live.open(flow, address(ue), mss, now);
    }

    fn close(&mut self, flow: usize) {
        self.counts.lock().expect("nobody panics").closed += 1;
        self.simulated.close(flow);
        self.live.close(flow);
    }

    fn on_progress(&mut self, flow: usize) {
        self.simulated.on_progress(flow);
        self.live.on_progress(flow);
    }

    fn on_report(&mut self, ue: u32, report: &RadioReport, now: Time) {
        self.counts.lock().expect("nobody panics").reports += 1;
        self.simulated.on_report(ue, report, now);
        let mut sent = report.clone();
        (sent.time, sent.ue.address) = (report.time + START, Some(address(ue)));
        let line = serde_json::to_string(&sent).expect("it is JSON");
        let back: RadioReport = serde_json::from_str(&line).expect("it is a report");
        assert_eq!(back, sent, "{line}");
        self.inbox.put(&back);
    }

    fn poll_timeout(&self) -> Option<Time> {
        assert_eq!(self.simulated.poll_timeout(), self.live.poll_timeout());
        self.simulated.poll_timeout()
    }

    fn update(&mut self, now: Time, sample: &mut dyn FnMut(usize) -> Sample, each: &mut dyn FnMut(usize, &Decision)) {
        let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
        self.simulated.update(now, &mut |flow| rounded(sample(flow)), &mut |flow, decision| {
            here.insert(flow, *decision);
            each(flow, decision);
        });
        for report in self.inbox.take(now, now + START) {
            self.live.on_report(report.ue.address.expect("it has one"), &report, now);
        }
        let mut seen = |flow| {
            let seen = rounded(sample(flow));
            let observed = observed(&seen).sample(0);
            assert_eq!(observed, seen);
            observed
        };
        self.live.update(now, &mut seen, &mut |flow, decision| {
            there.insert(flow, *decision);
        });
        assert_eq!(here, there, "at {now:?}");
        let mut counts = self.counts.lock().expect("nobody panics");
        counts.decisions += here.len() as u32;
        counts.limited += here.values().filter(|decision| decision.window.is_some()).count() as u32;
        counts.slow += here.values().filter(|decision| decision.category == Category::Slow).count() as u32;
    }
}

/// Runs a scenario with this policy.
fn run(text: &str, policy: Policy) -> Counts {
    let read = |path: &str| (path == "scenario").then(|| text.to_owned()).ok_or(io::ErrorKind::NotFound.into());
    let loaded = Scenario::load("scenario", &[], &read).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let scenario = &loaded.points()[0].scenario;
    let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
    let config = Config { policy, ..Config::default() };
    let counts = Arc::default();
    let twice = Twice {
        simulated: Rapid::new(config),
        live: Rapid::new(config),
        inbox: Inbox::default(),
        counts: Arc::clone(&counts),
    };
    assert!(live.set_control(Box::new(twice)), "there is no proxy");
    live.advance(Time::ZERO + scenario.duration, &mut NoVisitors);
    let counts = counts.lock().expect("nobody panics").clone();
    println!("{policy:?}: {counts:?}");
    counts
}

/// A download to `ue`, and an application with these times on and off and this rate.
fn bulk_and_app(on: &str, off: &str, rate: &str) -> String {
    format!(
        r#"
[[flows]]
name = "download"
to = "ue"
cc = "cubic"
[[flows]]
name = "app"
to = "ue"
cc = "bbr"
traffic = {{ kind = "on-off", on = "{on}", off = "{off}", rate = "{rate}" }}
"#
    )
}

/// Two UEs with flows of each kind that begin and end, one of which moves from cell to cell; `reports` is their table.
fn lte(reports: &str) -> String {
    let flows = bulk_and_app("1 s", "400 ms", "1 Mbit/s");
    format!(
        r#"
duration = "8 s"
[lte]
bandwidth = "5 MHz"
server_delay = "25 ms"
cells = [{{ position = [0, 0, 10] }}, {{ position = [250, 0, 10] }}]
[lte.proxy]
reports = {reports}
[[lte.ues]]
name = "ue"
[[lte.ues]]
name = "car"
mobility = {{ kind = "line", from = [60, 5, 1.5], velocity = [20, 0, 0] }}
{flows}
[[flows]]
name = "call"
to = "ue"
traffic = {{ kind = "cbr", rate = "300 kbit/s", packet = "250 B" }}
[[flows]]
name = "page"
to = "car"
traffic = {{ kind = "pages", objects = 9, object_size = "20 kB", think = "1 s" }}
[[flows]]
name = "other"
to = "car"
start = "1.3 s"
cc = "new-reno"
"#
    )
}

/// The carrier of the RAPID paper.
const NR: &str = r#"
duration = "1.5 s"
include = ["preset:nr-fr2-200mhz"]
[nr]
server_delay = "4 ms"
[nr.proxy]
[tcp]
send_buffer = "64 MB"
receive_buffer = "64 MB"
"#;

fn policies() -> [Policy; 3] {
    [Policy::Best(Best::default()), Policy::Published(Published::default()), Policy::MilliProxy]
}

#[test]
fn simulated_and_live_proxies_decide_the_same_over_lte() {
    for reports in ["{}", "{ period = \"20 ms\", delay = \"7 ms\", loss = 0.2, factor = 2.0 }", "{ period = \"1 s\" }"]
    {
        for policy in policies() {
            let counts = run(&lte(reports), policy);
            assert!(counts.opened >= 4 && counts.closed >= 1 && counts.reports > 5 && counts.limited > 1000);
            assert!(counts.slow > 0 || policy == Policy::MilliProxy);
        }
    }
}

#[test]
fn simulated_and_live_proxies_decide_the_same_over_nr() {
    let text = NR.to_owned() + &bulk_and_app("300 ms", "200 ms", "16 Mbit/s");
    for policy in policies() {
        let counts = run(&text, policy);
        assert!(counts.opened == 2 && counts.reports > 1000 && counts.limited > 1000);
    }
}
