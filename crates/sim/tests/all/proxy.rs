//! A proxy that splits connections at the core, with and without RAPID.

use crate::common::{flow, load, near, run, run_on};
use rapid::{Config, Control, Decision, Rapid, Sample};
use record::Tables;
use rnis::feed::kpm::Kpm;
use rnis::feed::srsran::Srsran;
use rnis::feed::{Carrier, Parser};
use rnis::{RadioReport, Record};
use sim::{Live, NoVisitors};
use std::collections::BTreeMap;
use units::{Span, Time};

/// RAPID's carrier: 852.6 Mbit/s at 28 GHz, with a path of 8 ms to the server. `proxy` is the contents of the table.
fn fr2(proxy: &str, flows: &str) -> String {
    format!(
        r#"
duration = "6 s"
warmup = "2 s"
include = ["preset:nr-fr2-200mhz"]
[nr]
server_delay = "4 ms"
{proxy}
[tcp]
send_buffer = "64 MB"
receive_buffer = "64 MB"
{flows}
"#
    )
}

/// LTE of 5 MHz, 50 ms from the server, as in the paper's section 5.
fn lte(proxy: &str, flows: &str) -> String {
    lte_between("", proxy, flows)
}

/// The same between hosts with these TCP options.
fn lte_between(tcp: &str, proxy: &str, flows: &str) -> String {
    format!(
        r#"
duration = "30 s"
warmup = "5 s"
[lte]
bandwidth = "5 MHz"
server_delay = "25 ms"
[[lte.ues]]
name = "ue"
[lte.ues.bearer]
rlc = "am"
queue = {{ kind = "drop-tail", bytes = "1 MB" }}
[tcp]
{tcp}
{proxy}
{flows}
"#
    )
}

/// The table of a proxy in `[nr]` or `[lte]`.
fn proxy(radio: &str, contents: &str) -> String {
    format!("[{radio}.proxy]\n{contents}\n")
}

/// The policy `best` in LTE, with a report each `period`.
fn reported_each(period: &str) -> String {
    proxy("lte", &format!("reports = {{ period = \"{period}\" }}"))
}

/// A download to the UE.
fn download(name: &str, cc: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nfrom = \"server\"\nto = \"ue\"\ncc = \"{cc}\"\n")
}

/// A flow to the UE whose application writes at `rate`.
fn app(rate: &str) -> String {
    let traffic = format!("{{ kind = \"on-off\", on = \"100 s\", off = \"1 ms\", rate = {rate:?} }}");
    download("app", "bbr") + &format!("traffic = {traffic}\n")
}

fn goodput(tables: &Tables, name: &str) -> f64 {
    flow(tables, name).goodput_mbps
}

/// The median of the time from the server to the UE, in the proxy too.
fn delay(tables: &Tables, name: &str) -> f64 {
    flow(tables, name).owd_p50_ms.expect("it has received data")
}

/// Checks that `got` is at least `part` of `wanted`.
#[track_caller]
fn at_least(what: &str, got: f64, part: f64, wanted: f64) {
    println!("{what}: {got:.2} of {wanted:.2}, {:.3}", got / wanted);
    assert!(got >= part * wanted, "{what}: {got:.2} is less than {part} of {wanted:.2}");
}

#[test]
fn rapid_gives_an_app_limited_flow_its_demand_and_a_download_the_rest() {
    let bulk = download("bulk", "cubic");
    let alone = goodput(&run(&fr2("", &bulk)), "bulk");
    // As in the paper's section 4.3.
    let flows = app("16 Mbit/s") + &bulk;
    let without = run(&fr2("", &flows));
    assert!(goodput(&without, "app") < 5.0, "{}", goodput(&without, "app"));
    assert!(delay(&without, "app") > 60.0);
    let best = run(&fr2(&proxy("nr", r#"policy = "best""#), &flows));
    at_least("app", goodput(&best, "app"), 0.97, 16.0);
    at_least("bulk", goodput(&best, "bulk"), 0.95, alone - 16.0);
    assert!(delay(&best, "app") < 15.0 && delay(&best, "bulk") < 20.0);
    assert_eq!(flow(&best, "bulk").lost_packets.unwrap(), 0);
    let published = run(&fr2(&proxy("nr", r#"policy = "published""#), &flows));
    at_least("app", goodput(&published, "app"), 0.97, 16.0);
    // The paper's windows give the download's rest away: see the tests of the crate `rapid`.
    assert!(goodput(&published, "bulk") < 0.9 * (alone - 16.0), "{}", goodput(&published, "bulk"));
}

#[test]
fn an_app_limited_flow_has_its_demand_and_a_download_the_rest_whatever_the_reports() {
    let bulk = download("bulk", "cubic");
    let all = goodput(&run(&lte("", &bulk)), "bulk");
    let flows = app("1.5 Mbit/s") + &bulk;
    for reports in [
        "{ factor = 0.5 }",
        "{ factor = 2 }",
        "{ period = \"100 ms\" }",
        "{ period = \"1 s\" }",
        "{ delay = \"50 ms\" }",
        "{ loss = 0.1 }",
        "{ period = \"1 s\", factor = 2 }",
        "{ period = \"100 ms\", delay = \"50 ms\", loss = 0.1 }",
    ] {
        println!("reports {reports}");
        let best = run(&lte(&proxy("lte", &format!("reports = {reports}")), &flows));
        at_least("app", goodput(&best, "app"), 0.97, 1.5);
        at_least("bulk", goodput(&best, "bulk"), 0.95, all - 1.5);
        // With a split alone, they are 400 ms and 8 s.
        let [app, bulk] = ["app", "bulk"].map(|name| delay(&best, name));
        assert!(app < 50.0 && bulk < 75.0, "{app}, {bulk}");
    }
}

/// The reports are far from the truth: the radio leg shows it, and CUBIC rules it as without reports.
#[test]
fn reports_that_are_wrong_by_any_factor_cost_no_more_than_none() {
    let bulk = download("bulk", "cubic");
    // No report arrives.
    let none = run(&lte(&proxy("lte", "reports = { loss = 1 }"), &bulk));
    let (all, longest) = (goodput(&none, "bulk"), delay(&none, "bulk"));
    for factor in [0.01, 0.1, 10.0, 100.0] {
        let wrong = run(&lte(&proxy("lte", &format!("reports = {{ factor = {factor:?} }}")), &bulk));
        println!("{factor}: {} of {all} Mbit/s, {} of {longest} ms", goodput(&wrong, "bulk"), delay(&wrong, "bulk"));
        at_least("bulk", goodput(&wrong, "bulk"), 0.9, all);
        assert!(delay(&wrong, "bulk") <= 1.05 * longest, "{} of {longest}", delay(&wrong, "bulk"));
    }
}

/// The JSON that a base station sends for the reports on its UEs in an interval.
type Message = fn(&[RadioReport]) -> String;
type MakeParser = fn(Carrier) -> Parser;

/// srsRAN tells neither a UE's blocks nor what a block carries.
fn srsran(reports: &[RadioReport]) -> String {
    let ue = |(rnti, report): (usize, &RadioReport)| {
        format!(
            r#"{{"rnti":{},"dl_brate":{},"dl_nof_ok":{},"dl_nof_nok":{},"dl_mcs":{},"dl_ri":1.0,"cqi":{},"dl_bs":{}}}"#,
            rnti + 1,
            report.acked_bits as f64 / report.interval.as_secs_f64(),
            report.blocks - report.failed,
            report.failed,
            report.mcs.unwrap_or(0),
            report.cqi.unwrap_or(0),
            report.queue_bytes.unwrap_or(0)
        )
    };
    let ues: Vec<String> = reports.iter().enumerate().map(ue).collect();
    let per_slot = reports[0].cell_prbs.unwrap_or(0) as f64 / f64::from(reports[0].slots);
    let cell = format!(r#"{{"pci":1,"pdsch_prbs_used_per_tdd_slot_idx":[{per_slot}]}}"#);
    format!(r#"{{"cells":[{{"cell_metrics":{cell},"ue_list":[{}]}}]}}"#, ues.join(","))
}

/// E2SM-KPM tells neither the queue and the MCS nor the number of active UEs, and in these objects not the blocks of a UE.
fn kpm(reports: &[RadioReport]) -> String {
    let ue = |(number, report): (usize, &RadioReport)| {
        let kbps = report.acked_bits as f64 / report.interval.as_secs_f64() / 1e3;
        format!(r#""{}":{{"measData":{{"DRB.UEThpDl":[{kbps}],"CQI":[{}]}}}}"#, number + 1, report.cqi.unwrap_or(0))
    };
    let ues: Vec<String> = reports.iter().enumerate().map(ue).collect();
    let first = &reports[0];
    let used = first.cell_prbs.unwrap_or(0) as f64 / f64::from(first.slots);
    format!(
        r#"{{"time_us":{},"granulPeriod":{},"measData":{{"RRU.PrbUsedDl":[{used}],"RRU.PrbAvailDl":[{}]}},"ueMeasData":{{{}}}}}"#,
        first.time.as_nanos() / 1000,
        first.interval.as_secs_f64() * 1e3,
        f64::from(first.n_prb) - used,
        ues.join(",")
    )
}

/// A control that is told what a base station's feed tells.
struct Fed {
    control: Rapid<usize, u32>,
    message: Message,
    parser: Parser,
    pending: Vec<(u32, RadioReport)>,
}

impl Fed {
    fn new(message: Message, parser: MakeParser) -> Fed {
        let carrier = Carrier { cell: 1, n_prb: 25, slots_per_second: 1000, period: Span::from_secs(1) };
        Fed { control: Rapid::new(Config::default()), message, parser: parser(carrier), pending: Vec::new() }
    }

    fn tell(&mut self, now: Time) {
        let (ues, reports): (Vec<u32>, Vec<RadioReport>) = self.pending.drain(..).unzip();
        let Some(last) = reports.last() else { return };
        let mut records = self.parser.parse((self.message)(&reports).as_bytes(), last.time).expect("it is valid");
        let told: Vec<_> = records.iter_mut().filter_map(Record::report_mut).collect();
        assert_eq!(told.len(), ues.len());
        ues.into_iter().zip(told).for_each(|(ue, report)| self.control.on_report(ue, report, now));
    }
}

impl Control<usize, u32> for Fed {
    fn open(&mut self, flow: usize, ue: u32, mss: u32, now: Time) {
        self.control.open(flow, ue, mss, now);
    }

    fn close(&mut self, flow: usize) {
        self.control.close(flow);
    }

    fn on_progress(&mut self, flow: usize) {
        self.control.on_progress(flow);
    }

    /// A message has the reports on all UEs.
    fn on_report(&mut self, ue: u32, report: &RadioReport, now: Time) {
        if self.pending.first().is_some_and(|(_, first)| first.time != report.time) {
            self.tell(now);
        }
        self.pending.push((ue, report.clone()));
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.control.poll_timeout()
    }

    fn update(&mut self, now: Time, sample: &mut dyn FnMut(usize) -> Sample, each: &mut dyn FnMut(usize, &Decision)) {
        self.tell(now);
        self.control.update(now, sample, each);
    }
}

/// Runs a scenario with reports as a base station's feed tells them.
fn run_fed(text: &str, message: Message, parser: MakeParser) -> Tables {
    let loaded = load(text, &[]);
    let scenario = &loaded.points()[0].scenario;
    let end = Time::ZERO + scenario.duration;
    let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
    assert!(live.set_control(Box::new(Fed::new(message, parser))), "there is no proxy");
    live.advance(end, &mut NoVisitors);
    live.finish(end).expect("it ends").tables
}

const FEEDS: [(&str, Message, MakeParser); 2] = [
    ("srsRAN", srsran, |carrier| Parser::Srsran(Srsran::new(carrier))),
    ("KPM", kpm, |carrier| Parser::Kpm(Kpm::new(carrier))),
];

#[test]
fn rapid_works_with_what_base_stations_report() {
    let bulk = download("bulk", "cubic");
    let all = goodput(&run(&lte("", &bulk)), "bulk");
    for (feed, message, parser) in FEEDS {
        for (period, factor) in [("10 ms", 1.0), ("100 ms", 1.0), ("1 s", 1.0), ("10 ms", 0.5), ("10 ms", 2.0)] {
            let reports = proxy("lte", &format!("reports = {{ period = {period:?}, factor = {factor} }}"));
            let best = run_fed(&lte(&reports, &(app("1.5 Mbit/s") + &bulk)), message, parser);
            let [app, bulk] = ["app", "bulk"].map(|name| delay(&best, name));
            println!("{feed}, {factor} times the capacity each {period}: {app} and {bulk} ms");
            at_least("app", goodput(&best, "app"), 0.97, 1.5);
            at_least("bulk", goodput(&best, "bulk"), 0.95, all - 1.5);
            assert!(app < 50.0 && bulk < 75.0, "{app}, {bulk}");
        }
    }
}

/// The servers are 1 and 51 ms from the core. A download alone has 17.63 Mbit/s of LTE and 817 Mbit/s of NR.
#[test]
fn downloads_from_a_near_and_a_far_server_share_equally() {
    let far = "[[links]]\nname = \"long\"\nfrom = \"distant\"\nto = \"core\"\ndelay = \"51 ms\"\n";
    let flows = far.to_owned() + &download("near", "cubic") + &download("far", "cubic").replace("server", "distant");
    // The windows of the wired leg are at most half of what the proxy may hold: 817 Mbit/s for 102 ms are 10 MB.
    let buffer = "buffer = \"64 MB\"";
    for (what, text, radio) in [
        ("LTE", lte(&proxy("lte", ""), &flows).replace("\"25 ms\"", "\"1 ms\""), 17.63),
        ("NR", fr2(&proxy("nr", buffer), &flows).replace("\"4 ms\"", "\"1 ms\""), 817.0),
    ] {
        println!("{what}");
        let best = run(&text);
        let [near_by, far] = ["near", "far"].map(|name| goodput(&best, name));
        near("shares", far, near_by, 0.15);
        at_least("both", near_by + far, 0.95, radio);
    }
}

#[test]
fn rapid_shares_lte_between_unlike_flows_without_a_queue_whatever_the_reports() {
    let flows = download("cubic", "cubic") + &download("bbr", "bbr");
    let without = run(&lte("", &flows));
    let all = goodput(&without, "cubic") + goodput(&without, "bbr");
    assert!(goodput(&without, "bbr") < 0.3 * all);
    assert!(delay(&without, "cubic") > 300.0);
    for (reports, part) in [
        (r#"{ period = "1 ms" }"#, 0.97),
        (r#"{ period = "1 ms", delay = "20 ms", loss = 0.1 }"#, 0.97),
        (r#"{ period = "10 ms" }"#, 0.97),
        (r#"{ period = "100 ms" }"#, 0.97),
        (r#"{ period = "1 s" }"#, 0.95),
        (r#"{ factor = 0.5 }"#, 0.95),
        (r#"{ factor = 2 }"#, 0.95),
    ] {
        println!("reports {reports}");
        let best = run(&lte(&proxy("lte", &format!("reports = {reports}")), &flows));
        let (cubic, bbr) = (goodput(&best, "cubic"), goodput(&best, "bbr"));
        at_least("both", cubic + bbr, part, all);
        near("shares", cubic, bbr, 0.15);
        for name in ["cubic", "bbr"] {
            assert!(delay(&best, name) < 75.0, "{name}: {}", delay(&best, name));
            assert_eq!(flow(&best, name).lost_packets.unwrap(), 0);
        }
    }
}

#[test]
fn rapid_leaves_room_for_what_it_does_not_see() {
    let udp = r#"
[[flows]]
name = "udp"
from = "server"
to = "ue"
traffic = { kind = "cbr", rate = "8 Mbit/s", packet = "1400 B" }
"#;
    let flows = download("cubic", "cubic") + udp;
    let all = goodput(&run(&lte("", &download("cubic", "cubic"))), "cubic");
    let best = run(&lte(&proxy("lte", ""), &flows));
    at_least("udp", goodput(&best, "udp"), 0.97, 8.0 * 1372.0 / 1400.0);
    at_least("cubic", goodput(&best, "cubic"), 0.95, all - 8.0);
    // 25 ms of it are the wire.
    assert!(delay(&best, "udp") < 40.0, "{}", delay(&best, "udp"));
}

#[test]
fn rapid_promises_the_ues_of_a_cell_what_it_has() {
    let mut flows = String::from(
        "[[flows]]\nname = \"app\"\nfrom = \"server\"\nto = \"ue-1\"\ncc = \"bbr\"\n\
         traffic = { kind = \"on-off\", on = \"100 s\", off = \"1 ms\", rate = \"1 Mbit/s\" }\n",
    );
    flows += "[[flows]]\nname = \"bulk\"\nfrom = \"server\"\nto = \"ue-*\"\n";
    let four = |proxy: &str| lte(proxy, &flows).replace("name = \"ue\"\n", "name = \"ue\"\ncount = 4\n");
    let bulk =
        |tables: &Tables| tables.flows.iter().filter(|f| f.flow != "app").map(|f| f.goodput_mbps).collect::<Vec<_>>();
    let without = run(&four(""));
    let all: f64 = bulk(&without).iter().sum::<f64>() + goodput(&without, "app");
    let own = |reports: &str| ("its own", run(&four(&proxy("lte", &format!("reports = {reports}")))));
    let [srsran, kpm] =
        FEEDS.map(|(feed, message, parser)| (feed, run_fed(&four(&reported_each("100 ms")), message, parser)));
    // A known miss (docs/src/limits.md): 1.04 was the aim for reports that are too high or rare.
    let (held, missed) = (0.0..1.02, 1.04..1.05);
    for ((feed, best), high_within) in
        [(own("{ period = \"1 ms\" }"), &held), (own("{ factor = 2 }"), &missed), (srsran, &missed), (kpm, &missed)]
    {
        at_least("app", goodput(&best, "app"), 0.97, 1.0);
        at_least("bulk", bulk(&best).iter().sum(), 0.95, all - 1.0);
        let mut promised = BTreeMap::<u64, f64>::new();
        for row in best.proxies.iter().filter(|row| row.t_s > 5.0) {
            *promised.entry((row.t_s * 1e3).round() as u64).or_default() += row.promised_mbps.unwrap_or_default();
        }
        let mut parts: Vec<f64> = promised.values().map(|promised| promised / all).collect();
        parts.sort_by(f64::total_cmp);
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let high = parts[parts.len() * 95 / 100];
        println!("reports of {feed}: {mean:.3} of the capacity is promised, {high:.3} at 95 %");
        // While nobody knows what the app wants, it may take more than the others leave.
        assert!(mean < 1.02 && high_within.contains(&high), "{mean}, {high}");
    }
}

#[test]
fn rapid_leaves_quic_a_share_and_an_app_its_demand_beside_it() {
    let all = goodput(&run(&lte("", &download("cubic", "cubic"))), "cubic");
    for cc in ["cubic", "bbr"] {
        let flows = download("bulk", "cubic") + &download("quic", cc) + "proxied = false\n" + &app("1.5 Mbit/s");
        // Their shares vary by some hundredths with the seed.
        let [mut bulk, mut quic] = [0.0; 2];
        for seed in 1..=5 {
            let best = run(&format!("seed = {seed}\n{}\n[hosts]\n", lte(&proxy("lte", ""), &flows)));
            bulk += goodput(&best, "bulk") / 5.0;
            quic += goodput(&best, "quic") / 5.0;
            at_least("app", goodput(&best, "app"), 0.97, 1.5);
        }
        println!("QUIC with {cc}: {quic:.2}, bulk {bulk:.2} Mbit/s, of {all:.2}");
        at_least("bulk and QUIC", bulk + quic, 0.95, all - 1.5);
        assert!(quic > 0.45 * (bulk + quic) && bulk > 0.45 * (bulk + quic), "{bulk}, {quic}");
    }
}

#[test]
fn rapid_follows_a_handover() {
    let flows = download("bulk", "cubic")
        + "[[flows]]\nname = \"app\"\nfrom = \"server\"\nto = \"car\"\ncc = \"bbr\"\n\
           traffic = { kind = \"on-off\", on = \"100 s\", off = \"1 ms\", rate = \"1 Mbit/s\" }\n";
    let flows = flows.replace("to = \"ue\"", "to = \"car\"");
    let drive = |more: &str| {
        run(&format!("duration = \"60 s\"\nwarmup = \"5 s\"\ninclude = [\"preset:lte-drive\"]\n{more}\n{flows}"))
    };
    let [without, best] = ["", "[lte.proxy]\npolicy = \"best\""].map(drive);
    let changes = best.mobility.iter().filter(|row| row.event == "connected").count();
    assert!(changes >= 2, "{changes} handovers");
    at_least("app", goodput(&best, "app"), 0.97, 1.0);
    let all = |tables: &Tables| goodput(tables, "app") + goodput(tables, "bulk");
    at_least("both", all(&best), 0.95, all(&without));
    println!(
        "{:.2} of {:.2} Mbit/s, delay {} of {} ms",
        all(&best),
        all(&without),
        delay(&best, "bulk"),
        delay(&without, "bulk")
    );
    assert!(delay(&best, "bulk") < 0.5 * delay(&without, "bulk"));
}

#[test]
fn a_flow_whose_reports_never_come_goes_on() {
    let flows = download("cubic", "cubic");
    let all = goodput(&run(&lte("", &flows)), "cubic");
    let lost = run(&lte(&proxy("lte", "reports = { loss = 1.0 }"), &flows));
    at_least("cubic", goodput(&lost, "cubic"), 0.95, all);
}

/// Transfers of all sizes over both legs with losses, opened from both sides: every byte arrives once.
#[test]
fn a_split_delivers_every_byte_and_every_end() {
    for policy in ["split", "published", "best", "milli-proxy"] {
        let text = format!(
            r#"
duration = "60 s"
[lte]
bandwidth = "5 MHz"
server_delay = "10 ms"
server_rate = "30 Mbit/s"
[lte.proxy]
policy = "{policy}"
[[lte.ues]]
name = "ue"
count = 3
[lte.ues.bearer]
rlc = "um"
queue = {{ kind = "drop-tail", bytes = "30 kB" }}
[[flows]]
name = "down"
from = "server"
to = "ue-*"
count = 4
start_jitter = "5 s"
traffic = {{ kind = "transfer", size = "300 kB" }}
[[flows]]
name = "up"
from = "ue-1"
to = "server"
count = 3
traffic = {{ kind = "transfer", size = "200 kB" }}
[[flows]]
name = "one"
from = "server"
to = "ue-2"
traffic = {{ kind = "transfer", size = "1 B" }}
[[flows]]
name = "web"
from = "server"
to = "ue-3"
traffic = {{ kind = "pages", objects = 10, object_size = "20 kB", think = "1 s", count = 5 }}
"#
        );
        let tables = run(&text);
        for row in tables.flows.iter() {
            assert!(row.completed, "{policy}: {} {} did not end", row.flow, row.conn);
            let size = match row.flow {
                "one" => 1,
                "web" => 5 * 10 * 20_000,
                name if name.starts_with("up") => 200_000,
                _ => 300_000,
            };
            assert_eq!(row.bytes, size, "{policy}: {} {}", row.flow, row.conn);
        }
    }
}

#[test]
fn results_are_the_same_each_time_and_on_any_number_of_threads() {
    let text = lte(&proxy("lte", r#"policy = "best""#), &(download("a", "cubic") + &download("b", "bbr")));
    let text = text.replace("duration = \"30 s\"", "duration = \"6 s\"\nruns = 2");
    assert_eq!(run(&text), run(&text));
    assert_eq!(run_on(&load(&text, &[]), 2).results.tables, run(&text));
}

#[test]
fn many_connections_share_a_cell() {
    let flows = format!("{}count = 25\n", download("f", "cubic"));
    let alone = goodput(&run(&fr2("", &download("f", "cubic"))), "f");
    let tables = run(&fr2(&proxy("nr", r#"policy = "best""#), &flows));
    let rates: Vec<f64> = tables.flows.iter().map(|row| row.goodput_mbps).collect();
    at_least("all", rates.iter().sum(), 0.95, alone);
    for rate in &rates {
        near("each", *rate, alone / 25.0, 0.1);
    }
    assert!(tables.flows.iter().all(|row| row.lost_packets.unwrap() == 0));
}

#[test]
fn rapid_fills_a_small_cell_with_many_downloads_whatever_the_reports() {
    let flows = |count: u32| format!("{}count = {count}\n", download("f", "cubic"));
    let all = |tables: &Tables| tables.flows.iter().map(|row| row.goodput_mbps).sum::<f64>();
    let without = all(&run(&lte("", &flows(50))));
    for (count, period, most) in [
        (10, "10 ms", 50.0),
        (10, "1 s", 50.0),
        (25, "20 ms", 75.0),
        (25, "1 s", 75.0),
        (50, "1 ms", 100.0),
        (50, "10 ms", 100.0),
        (50, "100 ms", 100.0),
        (100, "1 ms", 150.0),
        (100, "100 ms", 150.0),
        (100, "1 s", 150.0),
    ] {
        let reports = reported_each(period);
        let best = run(&lte(&reports, &flows(count)).replace("warmup = \"5 s\"", "warmup = \"10 s\""));
        let mut rtts: Vec<f64> =
            best.proxies.iter().filter(|row| row.t_s > 10.0).filter_map(|row| row.radio_rtt_ms).collect();
        rtts.sort_by(f64::total_cmp);
        let rtt = rtts[rtts.len() / 2];
        println!("{count} downloads, a report each {period}: a round-trip time of {rtt:.0} ms on the radio leg");
        at_least("all", all(&best), 0.95, without);
        // A segment of each takes 0.7 ms. Without a proxy, the queue is one of more than 400 ms.
        assert!(rtt < most, "{rtt}");
    }
}

#[test]
fn short_connections_take_no_more_from_a_download_than_they_carry() {
    let traffic = "traffic = { kind = \"short-flows\", size = \"20 kB\", interval = \"50 ms\" }\n";
    let flows = download("bulk", "cubic") + &download("short", "cubic") + traffic;
    for (server_delay, period) in [("25 ms", "1 ms"), ("25 ms", "1 s"), ("15 ms", "1 ms"), ("10 ms", "1 ms")] {
        let run = |proxy: &str| run(&lte(proxy, &flows).replace("\"25 ms\"", &format!("{server_delay:?}")));
        let without = run("");
        let best = run(&reported_each(period));
        at_least("bulk", goodput(&best, "bulk"), 0.9, goodput(&without, "bulk"));
        assert!(delay(&best, "short") < 60.0, "{}", delay(&best, "short"));
    }
}

/// A hundred connections in each second beside a download, without or with a download of another UE.
#[test]
fn short_connections_leave_downloads_the_rest_whatever_the_reports() {
    let traffic = "traffic = { kind = \"short-flows\", interval = \"10 ms\", size = \"30 kB\" }\n";
    let flows = download("bulk", "cubic") + &download("short", "cubic") + traffic;
    let other = "[[lte.ues]]\nname = \"other\"\n";
    let beside = flows.clone() + &download("beside", "cubic").replace("\"ue\"", "\"other\"");
    for (ues, flows, periods) in
        [("", &flows, ["1 ms", "100 ms", "1 s"]), (other, &beside, ["1 ms", "10 ms", "100 ms"])]
    {
        let text = |proxy: &str| lte(&format!("{ues}{proxy}"), flows).replace("\"5 MHz\"", "\"20 MHz\"");
        let without = goodput(&run(&text("")), "bulk");
        for period in periods {
            let best = run(&text(&reported_each(period)));
            at_least(&format!("bulk, a report each {period}"), goodput(&best, "bulk"), 0.95, without);
        }
    }
}

/// The other UE loads pages: half of the time the cell is one's own, and half of the time it is shared.
#[test]
fn another_ue_that_comes_and_goes_leaves_a_download_most_of_the_rest() {
    let pages = "[[flows]]\nname = \"pages\"\nfrom = \"server\"\nto = \"other\"\n\
                 traffic = { kind = \"pages\", objects = 10, object_size = \"60 kB\", think = \"500 ms\" }\n";
    let flows = download("bulk", "cubic") + pages;
    let text = |proxy: &str| {
        lte(&format!("[[lte.ues]]\nname = \"other\"\n{proxy}"), &flows).replace("\"5 MHz\"", "\"10 MHz\"")
    };
    let without = run(&text(""));
    for (period, part) in [("1 ms", 0.93), ("20 ms", 0.9), ("100 ms", 0.82), ("1 s", 0.82)] {
        let best = run(&text(&reported_each(period)));
        at_least(&format!("a report each {period}"), goodput(&best, "bulk"), part, goodput(&without, "bulk"));
        at_least("pages", goodput(&best, "pages"), 0.95, goodput(&without, "pages"));
    }
}

#[test]
fn pages_over_connections_that_stay_open_leave_a_download_most_of_what_they_do_not_carry() {
    // A page of 400 kB in a few connections, of which none ever uses its share for long.
    let traffic = "traffic = { kind = \"pages\", objects = 20, object_size = \"20 kB\", think = \"500 ms\" }\n";
    let flows = download("bulk", "cubic") + &download("page", "cubic") + traffic;
    let [without, best] = [lte("", &flows), lte(&proxy("lte", ""), &flows)].map(|text| run(&text));
    let all = goodput(&without, "bulk") + goodput(&without, "page");
    at_least("bulk", goodput(&best, "bulk"), 0.8, all - goodput(&best, "page"));
    at_least("pages", goodput(&best, "page"), 2.0, goodput(&without, "page"));
}

#[test]
fn flows_that_are_silent_most_of_the_time_leave_the_capacity_to_a_download() {
    let traffic = "count = 4\nstagger = \"170 ms\"\n\
                   traffic = { kind = \"on-off\", on = \"60 ms\", off = \"1.05 s\", rate = \"2 Mbit/s\" }\n";
    let flows = download("bulk", "cubic") + &download("bursts", "cubic") + traffic;
    let [without, best] = [lte("", &flows), lte(&proxy("lte", ""), &flows)].map(|text| run(&text));
    at_least("bulk", goodput(&best, "bulk"), 0.95, goodput(&without, "bulk"));
}

#[test]
fn a_download_is_fast_and_on_time_beside_an_upload_that_delays_its_acknowledgements() {
    let flows = download("down", "cubic") + "[[flows]]\nname = \"up\"\nfrom = \"ue\"\nto = \"server\"\n";
    // Small queues would keep the upload from delaying acknowledgements for long.
    let hosts = "small_queues = false\ntso = false";
    let without = run(&lte_between(hosts, "", &flows));
    for (period, late) in
        [("1 ms", "0 s"), ("100 ms", "0 s"), ("1 s", "0 s"), ("10 ms", "100 ms"), ("100 ms", "200 ms")]
    {
        println!("a report each {period}, {late} late");
        let reports = format!("reports = {{ period = {period:?}, delay = {late:?} }}");
        let best = run(&lte_between(hosts, &proxy("lte", &reports), &flows));
        at_least("download", goodput(&best, "down"), 0.95, goodput(&without, "down"));
        at_least("upload", goodput(&best, "up"), 0.95, goodput(&without, "up"));
        assert!(delay(&best, "down") < 75.0, "{}", delay(&best, "down"));
    }
}

/// With small queues, the upload delays acknowledgements by 0.2 s, which costs a download without a proxy nothing. Rare or
/// late reports do not tell this time from a queue in time.
#[test]
fn a_download_beside_an_upload_with_small_queues_loses_with_rare_and_late_reports_alone() {
    let flows = download("down", "cubic") + "[[flows]]\nname = \"up\"\nfrom = \"ue\"\nto = \"server\"\n";
    let mean = |proxy: &str| {
        let text = lte(proxy, &flows);
        let tables = (1..=5).map(|seed| run(&format!("seed = {seed}\n{text}\n[hosts]\n")));
        tables.fold([0.0; 2], |[down, up], tables| {
            [down + goodput(&tables, "down") / 5.0, up + goodput(&tables, "up") / 5.0]
        })
    };
    let without = mean("");
    for (period, late, part) in [
        ("1 ms", "0 s", 1.0),
        ("10 ms", "0 s", 1.0),
        ("100 ms", "0 s", 0.9),
        ("1 s", "0 s", 0.85),
        ("10 ms", "100 ms", 0.75),
        // A known miss (docs/src/limits.md): 0.7 was the aim.
        ("100 ms", "200 ms", 0.65),
    ] {
        let best = mean(&proxy("lte", &format!("reports = {{ period = {period:?}, delay = {late:?} }}")));
        at_least(&format!("download, a report each {period}, {late} late"), best[0], part, without[0]);
        assert!(late != "200 ms" || best[0] < 0.7 * without[0], "no miss any more: let it be 0.7 above");
        at_least("upload", best[1], 0.99, without[1]);
    }
}

/// Reports of twice the capacity are no traffic of others once it is known that they are too high.
#[test]
fn reports_that_are_too_high_cost_a_download_nothing() {
    let flows = download("bulk", "cubic")
        + &download("app", "cubic")
        + "traffic = { kind = \"on-off\", on = \"100 s\", off = \"1 ms\", rate = \"2 Mbit/s\" }\n"
        + &download("page", "cubic")
        + "traffic = { kind = \"pages\", objects = 10, object_size = \"20 kB\", think = \"500 ms\" }\n";
    let rest = |tables: &Tables| goodput(tables, "bulk") + goodput(tables, "page");
    let without = rest(&run(&lte("", &flows)));
    for factor in [1.0, 1.3, 2.0] {
        let best = run(&lte(&proxy("lte", &format!("reports = {{ period = \"10 ms\", factor = {factor} }}")), &flows));
        at_least(&format!("{factor} times the capacity, bulk and pages"), rest(&best), 0.87, without);
        at_least("app", goodput(&best, "app"), 0.97, 2.0);
    }
}

#[test]
fn flows_that_come_and_go_have_what_they_want_and_stall_nobody() {
    let traffic = "count = 8\ntraffic = { kind = \"on-off\", on = { kind = \"exponential\", mean = \"300 ms\" }, \
                   off = { kind = \"exponential\", mean = \"900 ms\" }, rate = \"4 Mbit/s\" }\n";
    let flows = download("bulk", "cubic") + &download("some", "cubic") + traffic;
    let [without, best] = [lte("", &flows), lte(&proxy("lte", ""), &flows)].map(|text| run(&text));
    let some = |tables: &Tables| tables.flows.iter().filter(|f| f.flow == "some").map(|f| f.goodput_mbps).sum::<f64>();
    at_least("those that come and go", some(&best), 0.97, some(&without));
    at_least("bulk", goodput(&best, "bulk"), 0.75, goodput(&without, "bulk"));
}

#[test]
fn reports_that_are_too_low_do_not_bound_the_downloads() {
    let flows = |count: u32| download("f", "cubic") + &format!("count = {count}\n");
    for (count, period, factor) in [(1, "10 ms", 0.5), (10, "1 ms", 0.9), (10, "10 ms", 0.7), (25, "20 ms", 0.5)] {
        let [without, best] =
            [String::new(), proxy("lte", &format!("reports = {{ period = {period:?}, factor = {factor} }}"))]
                .map(|proxy| run(&lte(&proxy, &flows(count))).flows.iter().map(|flow| flow.goodput_mbps).sum());
        at_least(&format!("{count} downloads, {factor} of the capacity each {period}"), best, 0.95, without);
    }
}

#[test]
fn rare_reports_beside_quic_leave_a_download_a_share() {
    let flows = download("tcp", "cubic") + &download("quic", "cubic") + "proxied = false\n";
    let text = |proxy: &str| lte(proxy, &flows).replace("bandwidth = \"5 MHz\"", "bandwidth = \"20 MHz\"");
    let best = run(&text(&reported_each("1 s")));
    let [tcp, quic] = ["tcp", "quic"].map(|name| goodput(&best, name));
    println!("{tcp} beside {quic} Mbit/s");
    assert!(tcp > 0.25 * (tcp + quic) && tcp + quic > 65.0, "{tcp} beside {quic} Mbit/s");
}

#[test]
fn a_proxy_holds_no_more_of_a_connection_than_its_buffer() {
    for policy in ["split", "published", "best"] {
        let contents = format!("policy = \"{policy}\"\nbuffer = \"200 kB\"");
        let text = lte(&proxy("lte", &contents), &download("f", "cubic"));
        let tables = run(&text.replace("server_delay = \"25 ms\"", "server_delay = \"1 ms\""));
        let most = tables.proxies.iter().map(|row| row.held_bytes).max().expect("there is a connection");
        println!("{policy}: {most} B");
        assert!(most <= 200_000, "{most}");
        assert!(policy == "best" || most > 150_000, "{most}");
    }
}

#[test]
fn connections_that_have_ended_are_not_listed() {
    let transfer = download("one", "cubic") + "traffic = { kind = \"transfer\", size = \"100 kB\" }\n";
    let tables = run(&lte(&proxy("lte", ""), &(transfer + &download("other", "cubic"))));
    let last = |name| tables.proxies.iter().filter(|row| row.flow == name).map(|row| row.t_s).fold(0.0, f64::max);
    assert!(last("one") > 0.0 && last("one") < 5.0 && last("other") > 29.0, "{}", last("one"));
}
