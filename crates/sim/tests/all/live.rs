//! A run whose time somebody else keeps: the same as any other run, and what becomes of packets from outside. And what those who
//! follow a run are given.

use crate::common::{load, run};
use aqm::Ecn;
use record::tables::LinkRow;
use record::{Job, Table, Tables};
use rnis::event::{HandoverStatus, What};
use rnis::{RadioReport, Record};
use sim::{Arrival, Live, NoVisitors, Options, Seen, UePlace, Visitor, Watch};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use units::{Rate, Span, Time};

const DUMBBELL: &str = r#"
duration = "5 s"
warmup = "1 s"
[dumbbell]
rate = "12 Mbit/s"
rtt = "40 ms"
loss = 0.001
queue = { kind = "drop-tail", packets = 50 }
[[flows]]
name = "download"
[[flows]]
name = "call"
traffic = { kind = "cbr", rate = "100 kbit/s", packet = "250 B" }
"#;

// The delay is no multiple of a TTI: what happens at the same moment has no order that both would share.
const LTE: &str = r#"
duration = "3 s"
[lte]
server_delay = "10.3 ms"
[[lte.ues]]
name = "ue"
[[flows]]
name = "download"
"#;

/// 15,000 samples a second.
const MANY: &str = r#"
duration = "2 s"
[dumbbell]
rate = "50 Mbit/s"
rtt = "20 ms"
[[flows]]
name = "download"
count = 150
[record]
samples = { kind = "every", interval = "10 ms" }
"#;

fn at(millis: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(millis / 1000.0)
}

fn visitor(tag: u32, len: u32) -> Visitor {
    Visitor { tag, len, key: 7, ecn: Ecn::NotEct, priority: 0 }
}

/// All that has arrived by `now`, which is passed in uneven steps.
fn arrivals(live: &mut Live, now: Time) -> Vec<Arrival> {
    live.advance(now, &mut NoVisitors);
    std::iter::from_fn(|| live.poll_arrival()).collect()
}

#[test]
fn a_run_in_uneven_steps_of_time_gives_the_tables_of_one_at_a_stretch() {
    for text in [DUMBBELL, LTE] {
        let loaded = load(text, &[]);
        let scenario = &loaded.points()[0].scenario;
        let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
        let (mut now, mut step) = (0.0, 0.013);
        while at(now) < Time::ZERO + scenario.duration {
            live.advance(at(now), &mut NoVisitors);
            now += step;
            step = (step * 1.37) % 3.1;
        }
        live.advance(Time::ZERO + scenario.duration, &mut NoVisitors);
        let mut stepped = live.finish(Time::ZERO + scenario.duration).expect("it ends").tables;
        let whole = run(text);
        // Which packets' waits count where the warm-up ends and at the end depends on the kind of link.
        let counts = |row: LinkRow<'_>| (row.packets_in, row.packets_out, row.bytes_out, row.dropped_loss);
        assert!(stepped.links.iter().map(counts).eq(whole.links.iter().map(counts)), "{text}");
        stepped.links = whole.links.clone();
        assert!(stepped == whole, "{text}");
    }
}

#[test]
fn a_visitor_takes_as_long_as_the_links_say() {
    // 12 Mbit/s: 1500 bytes take 1 ms; 20 ms one way.
    let text = DUMBBELL.replace("loss = 0.001", "").replace("[[flows]]\nname = \"download\"", "");
    let loaded = load(&text, &[]);
    let mut live = Live::new(&loaded, &loaded.points()[0].scenario, (0, 0), None).expect("it runs");
    let scenario = &loaded.points()[0].scenario;
    let route = live.route(&scenario.flows[0].return_route);
    live.advance(at(2.0), &mut NoVisitors);
    live.send(route, visitor(1, 1500));
    live.send(route, visitor(2, 1500));
    let all = arrivals(&mut live, at(100.0));
    let expected = |tag: u32, millis: f64| Arrival {
        tag,
        at: at(2.0 + millis),
        delay: Span::from_secs_f64(millis / 1e3),
        ce: false,
    };
    assert_eq!(all, [expected(1, 21.0), expected(2, 22.0)]);
}

/// What the cells tell by 1 s of a download over LTE, and when, in milliseconds.
fn records(settings: &str) -> Vec<(u64, Record)> {
    let key = format!("[lte]\nproxy = {{ policy = \"none\", reports = {{ {settings} }} }}");
    let loaded = load(&LTE.replace("[lte]", &key), &[]);
    let mut live = Live::new(&loaded, &loaded.points()[0].scenario, (0, 0), None).expect("it runs");
    assert!(live.open_reports());
    let mut all = Vec::new();
    for now in 1..=1000 {
        live.advance(at(f64::from(now)), &mut NoVisitors);
        all.extend(std::iter::from_fn(|| live.poll_report()).map(|(_, record)| (u64::from(now as u32), record)));
    }
    all
}

fn reports(settings: &str) -> Vec<(u64, RadioReport)> {
    let report = |(now, record)| match record {
        Record::Report(report) => Some((now, report)),
        Record::Event(_) => None,
    };
    records(settings).into_iter().filter_map(report).collect()
}

#[test]
fn ues_measure_each_120_ms_and_nothing_of_that_is_lost() {
    let measured = |settings| {
        let event = |(now, record)| match record {
            Record::Event(event) => Some((now, event)),
            Record::Report(_) => None,
        };
        records(settings).into_iter().filter_map(event).collect::<Vec<_>>()
    };
    let plain = measured("period=\"10 ms\"");
    let mut times = Vec::new();
    for (now, event) in &plain {
        let What::Measurement(measurement) = &event.what else {
            assert!(matches!(event.what, What::BearerEstablished(_) | What::TimingAdvance { .. }), "{event:?}");
            continue;
        };
        times.push(*now);
        let power = measurement.serving.rsrp_dbm.expect("it is known");
        assert!((-140.0..-40.0).contains(&power) && measurement.serving.sinr_db.is_some(), "{event:?}");
    }
    assert_eq!(times, (1..9).map(|n| 120 * n).collect::<Vec<_>>());
    assert_eq!(plain.len(), times.len() + 2);
    assert_eq!(measured("period=\"10 ms\",loss=0.5"), plain);
    assert_eq!(measured("period=\"1 s\"").len(), plain.len());
}

/// A drive past cells: each change is told once, from the cell before to the next, and the reports are from that one.
#[test]
fn a_change_of_cells_is_told_before_the_targets_first_report() {
    let text = "include = [\"preset:lte-drive\"]\nduration = \"40 s\"\n[lte]\nproxy = { policy = \"none\", \
                reports = { period = \"20 ms\" } }\n[[flows]]\nname = \"a\"\n";
    let loaded = load(text, &[]);
    let mut live = Live::new(&loaded, &loaded.points()[0].scenario, (0, 0), None).expect("it runs");
    assert!(live.open_reports());
    live.advance(at(40_000.0), &mut NoVisitors);
    let (mut cell, mut changes) = (None, 0);
    for (_, record) in std::iter::from_fn(|| live.poll_report()) {
        match record {
            Record::Report(report) => assert_eq!(*cell.get_or_insert(report.cell), report.cell),
            Record::Event(event) => {
                if let What::CellChange { status, targets } = &event.what {
                    assert_eq!((Some(event.cell), *status, targets.len()), (cell, HandoverStatus::Completed, 1));
                    cell = Some(targets[0]);
                    changes += 1;
                }
            }
        }
    }
    assert!(changes >= 1);
}

#[test]
fn readers_of_reports_and_events_change_no_result() {
    let text = "include = [\"preset:lte-drive\"]\nduration = \"20 s\"\n[[flows]]\nname = \"a\"\n";
    let loaded = load(text, &[]);
    let (stop, records) = (AtomicBool::new(false), AtomicUsize::new(0));
    let count = |_, _| {
        records.fetch_add(1, Ordering::Relaxed);
    };
    let options = sim::Options { reports: Some(&count), ..sim::Options::new(1, &stop, &|_| {}) };
    let read = sim::run(&loaded, &options).expect("it runs").results;
    assert!(records.load(Ordering::Relaxed) > 20_000);
    assert_eq!(read.tables, run(text));
}

#[test]
fn the_cells_reports_come_as_the_scenario_says() {
    let plain = reports("period=\"10 ms\"");
    assert_eq!(plain.len(), 100);
    assert!(
        plain.iter().all(|(now, report)| report.time == at(*now as f64) && report.interval == Span::from_millis(10))
    );
    let late = reports("period=\"10 ms\",delay=\"25 ms\"");
    assert_eq!(late.len(), 97);
    assert!(late.iter().zip(&plain).all(|((now, late), (then, report))| *now == then + 25 && late == report));
    let lost = reports("period=\"10 ms\",loss=0.5").len();
    assert!((30..70).contains(&lost), "{lost}");
    let bits = |reports: &[(u64, RadioReport)]| reports.iter().map(|(_, report)| report.acked_bits).sum::<u64>() as f64;
    let doubled = bits(&reports("period=\"10 ms\",factor=2.0")) / bits(&plain);
    assert!((doubled - 2.0).abs() < 0.01, "{doubled}");
    let loaded = load(DUMBBELL, &[]);
    let mut live = Live::new(&loaded, &loaded.points()[0].scenario, (0, 0), None).expect("it runs");
    assert!(!live.open_reports(), "there are no cells");
}

#[test]
fn each_visitor_comes_back_once_arrived_or_lost() {
    for text in [DUMBBELL, LTE] {
        let loaded = load(text, &[]);
        let scenario = &loaded.points()[0].scenario;
        let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
        let route = live.route(&scenario.flows[0].route);
        let (mut arrived, mut lost) = (BTreeSet::new(), BTreeSet::new());
        for tag in 0..2_000 {
            live.advance(at(f64::from(tag)), &mut NoVisitors);
            live.send(route, visitor(tag, 1 + tag % 1500));
            for arrival in std::iter::from_fn(|| live.poll_arrival()) {
                assert!(arrived.insert(arrival.tag), "{} arrived twice", arrival.tag);
            }
            for tag in std::iter::from_fn(|| live.poll_lost()) {
                assert!(lost.insert(tag), "{tag} was lost twice");
            }
        }
        for arrival in arrivals(&mut live, at(3_000.0)) {
            assert!(arrived.insert(arrival.tag));
        }
        while let Some(tag) = live.poll_lost() {
            assert!(lost.insert(tag));
        }
        assert!(arrived.is_disjoint(&lost));
        // The rest is still behind the download.
        assert!(arrived.len() + lost.len() > 1_900 && arrived.len() > 1_500, "{} and {}", arrived.len(), lost.len());
    }
}

#[test]
fn a_visitor_waits_behind_simulated_packets() {
    let loaded = load(DUMBBELL, &[]);
    let scenario = &loaded.points()[0].scenario;
    let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
    let route = live.route(&scenario.flows[0].route);
    live.advance(at(500.0), &mut NoVisitors);
    live.send(route, visitor(1, 1500));
    let alone = Span::from_millis(21);
    let all = arrivals(&mut live, at(1_000.0));
    assert!(all.len() == 1 && all[0].delay > alone + Span::from_millis(5), "{all:?}");
}

#[test]
fn commands_are_rows_with_their_times_and_among_the_events() {
    for settings in ["", "[record]\nevents = true\n"] {
        let loaded = load(&format!("{DUMBBELL}{settings}"), &[]);
        let scenario = &loaded.points()[0].scenario;
        let mut live = Live::new(&loaded, scenario, (0, 0), None).expect("it runs");
        let route = live.route(&scenario.flows[0].route);
        let link = scenario.flows[0].route[0].clone();
        live.advance(at(250.0), &mut NoVisitors);
        assert_eq!(live.pause(None, Span::from_millis(500)), Ok(at(750.0)));
        // What reaches a queue meanwhile waits there.
        live.send(route, visitor(1, 100));
        let arrived: Vec<_> = [700.0, 1_000.0].map(|millis| arrivals(&mut live, at(millis)).len()).into();
        assert_eq!(arrived, [0, 1]);
        live.set_rate(&link, Rate::default()).expect("it has a rate");
        live.set_loss(&link, 0.01).expect("it can lose packets");
        assert!(
            live.set_rate("none", Rate::from_mbps(1)).is_err() && live.pause(Some("none"), Span::from_secs(1)).is_err()
        );
        let seen = live.rows_since(&mut Seen::default());
        let tables = live.finish(at(1_500.0)).expect("nothing is written").tables;
        assert_eq!(seen.commands, tables.commands);
        let rows = tables
            .commands
            .iter()
            .map(|row| (row.t_s, format!("{} {} {}", row.command, row.subject, row.value), row.until_s));
        let expected = [
            (0.25, "outage  500 ms".to_owned(), Some(0.75)),
            (1.0, format!("rate {link} off"), None),
            (1.0, format!("loss {link} 0.01"), None),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let events = tables.events.iter().filter(|row| row.kind == "command");
        let events: Vec<_> = events.map(|row| (row.t_ns, row.link.to_owned(), row.detail.to_owned())).collect();
        let event = |ms: u64, link: &str, detail: String| (ms * 1_000_000, link.to_owned(), detail);
        let expected = [
            event(250, "", "outage 500 ms".to_owned()),
            event(1_000, &link, format!("rate {link} off")),
            event(1_000, &link, format!("loss {link} 0.01")),
        ];
        assert_eq!(events, expected);
        assert_eq!(tables.events.len() > 3, !settings.is_empty());
    }
}

/// Keeps what it is given of a run.
#[derive(Default)]
struct Looks(Mutex<Vec<Tables>>);

impl Watch for Looks {
    fn is_due(&self, _: Job) -> bool {
        true
    }

    fn take_rows(&self, _: Job, _: Span, rows: Tables, _: Vec<UePlace>) {
        self.0.lock().expect("nobody panicked").push(rows);
    }

    fn take_finished(&self, _: Job, tables: &Tables, seen: &Seen) {
        self.0.lock().expect("nobody panicked").push(seen.rest_of(tables, true));
    }
}

#[test]
fn who_follows_a_simulation_gets_every_sample_and_all_flows_at_one_moment() {
    let loaded = load(MANY, &[]);
    let (stop, looks) = (AtomicBool::new(false), Looks::default());
    let options = Options { watch: Some(&looks), ..Options::new(1, &stop, &|_| {}) };
    let whole = sim::run(&loaded, &options).expect("it runs").results.tables;
    let looks = looks.0.into_inner().expect("nobody panicked");
    assert!(looks.len() > 3, "{}", looks.len());
    let mut joined = Tables::default();
    for rows in &looks {
        let moments: BTreeSet<u64> = rows.flows.iter().map(|row| row.measured_to_s.to_bits()).collect();
        assert_eq!((rows.flows.len(), moments.len()), (150, 1));
        joined.samples.append(&rows.samples);
    }
    assert!(joined.samples.len() > 25_000 && joined.samples == whole.samples, "{}", joined.samples.len());
}

#[test]
fn who_follows_an_emulation_gets_a_part_of_many_flows_at_a_time() {
    let loaded = load(MANY, &[]);
    let mut live = Live::new(&loaded, &loaded.points()[0].scenario, (0, 0), None).expect("it runs");
    let (mut seen, mut flows) = (Seen::default(), BTreeSet::new());
    for look in 1..=10 {
        live.advance(at(100.0 * f64::from(look)), &mut NoVisitors);
        let rows = live.rows_since(&mut seen);
        assert!(rows.flows.len() <= 16 && rows.samples.len() <= 5_000, "packets wait meanwhile");
        flows.extend(rows.flows.iter().map(|row| row.conn));
    }
    assert_eq!(flows.len(), 150);
}
