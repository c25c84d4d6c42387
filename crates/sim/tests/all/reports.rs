//! The cells' reports and events as readers outside get them.

use crate::common::load;
use record::Tables;
use rnis::event::{Event, What};
use rnis::feed::recording;
use rnis::{RadioReport, Record};
use sim::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use units::{Span, Time};

/// Two cars on a drive past two cells with two carriers each; at the border, shadowing causes handovers to and fro.
const LTE: &str = r#"
duration = "8 s"
[lte]
bandwidth = "5 MHz"
secondary = { downlink_mhz = 1840, bandwidth = "10 MHz" }
handover = { hysteresis_db = 0, time_to_trigger = "0 s", filter = 0 }
cells = [{ name = "a" }, { name = "b", position = [400, 0, 30] }]
[[lte.ues]]
name = "both"
mobility = { kind = "line", from = [100, 20, 1.5], velocity = [25, 0, 0] }
channel = { kind = "log-distance", exponent = 3.5, at_1m_db = 38, shadowing_db = 6, correlation_m = 5 }
[[lte.ues]]
name = "one"
carriers = 1
mobility = { kind = "line", from = [90, 20, 1.5], velocity = [25, 0, 0] }
channel = { kind = "log-distance", exponent = 3.5, at_1m_db = 38, shadowing_db = 6, correlation_m = 5 }
[[flows]]
name = "down"
to = "*"
"#;

/// A drive past unlike cells: LTE, and NR with two carriers.
const NR: &str = r#"
duration = "8 s"
[nr]
bandwidth_mhz = 40
secondary = { frequency_mhz = 3600, bandwidth_mhz = 20 }
duplex = { kind = "tdd", pattern = "DDDSU" }
lte = { downlink_mhz = 806, uplink_mhz = 847, bandwidth = "5 MHz" }
cells = [
    { name = "lte", rat = "lte", position = [200, 100, 30], power_dbm = 46 },
    { name = "west", position = [100, 0, 10], power_dbm = 38 },
    { name = "east", position = [300, 0, 10], power_dbm = 38 },
]
[[nr.ues]]
name = "car"
mobility = { kind = "line", from = [0, 20, 1.5], velocity = [50, 0, 0] }
channel = { kind = "umi" }
[[flows]]
name = "down"
to = "*"
"#;

/// Runs a scenario whose proxy has a report in each `period`. Returns the records in the order in which a reader outside gets
/// them, and the results.
fn run(scenario: &str, period: &str, policy: &str) -> (Vec<Record>, Tables) {
    let (kind, rest) = scenario.split_once("cells = ").expect("there are cells");
    let proxy = format!("proxy = {{ policy = \"{policy}\", reports = {{ period = \"{period}\" }} }}");
    let loaded = load(&format!("{kind}{proxy}\ncells = {rest}"), &[]);
    let (stop, records) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let take = |_: u32, record: Record| records.lock().expect("no panic").push(record);
    let options = Options { reports: Some(&take), ..Options::new(1, &stop, &|_| {}) };
    let tables = sim::run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).results.tables;
    (records.into_inner().expect("no panic"), tables)
}

/// The same with a proxy that only splits: returns the records, and when UEs changed cells. A link that is re-established in the same
/// cell changes none.
fn records(scenario: &str, period: &str) -> (Vec<Record>, Vec<f64>) {
    let (records, tables) = run(scenario, period, "none");
    let mut cells = BTreeMap::new();
    let connected = tables.mobility.iter().filter(|row| row.event == "connected");
    let changed = connected.filter(|row| cells.insert(row.ue, row.cell) != Some(row.cell));
    let changes = changed.map(|row| row.t_s).collect();
    (records, changes)
}

fn reports(records: &[Record]) -> impl Iterator<Item = &RadioReport> {
    records.iter().filter_map(|record| match record {
        Record::Report(report) => Some(report),
        Record::Event(_) => None,
    })
}

fn events(records: &[Record]) -> impl Iterator<Item = &Event> {
    records.iter().filter_map(|record| match record {
        Record::Event(event) => Some(event),
        Record::Report(_) => None,
    })
}

#[test]
fn each_record_of_cells_with_handovers_and_two_carriers_can_be_read_again() {
    for scenario in [LTE, NR] {
        for period in ["1 ms", "100 ms", "1 s"] {
            let (records, _) = records(scenario, period);
            for record in &records {
                let line = recording::format_line(record);
                let read = recording::parse_line(line.as_bytes());
                assert!(read.is_ok(), "{period}: {read:?}: {line}");
            }
            let cells: BTreeSet<_> = reports(&records).map(|report| (report.cell, report.n_prb)).collect();
            assert!(cells.len() > 1, "{period}: {cells:?}");
            let busy: u64 = reports(&records).filter_map(|report| report.prbs).sum();
            assert!(busy > 0, "{period}");
        }
    }
}

#[test]
fn events_have_their_own_times_however_rare_reports_are() {
    for scenario in [LTE, NR] {
        for period in ["1 ms", "1 s"] {
            let (records, connected) = records(scenario, period);
            let times: Vec<Time> = records.iter().map(Record::time).collect();
            assert!(times.is_sorted(), "{period}");
            let changes = events(&records).filter(|event| matches!(event.what, What::CellChange { .. }));
            let changes: Vec<f64> = changes.map(|event| event.time.as_secs_f64()).collect();
            // Those after the last measurement are not told before the end; here there are none.
            assert_eq!(changes, connected, "{period}");
            let measured = events(&records).filter(|event| matches!(event.what, What::Measurement(_)));
            let measured: Vec<Time> = measured.map(|event| event.time).collect();
            assert!(measured.len() > 60, "{period}: {}", measured.len());
            let interval = Span::from_millis(120).as_nanos();
            assert!(measured.iter().all(|time| time.as_nanos() % interval == 0), "{period}: {measured:?}");
        }
    }
}

#[test]
fn a_report_counts_the_blocks_that_the_ue_can_receive() {
    let scenario = "duration = \"1 s\"\n[lte]\nbandwidth = \"5 MHz\"\n\
        secondary = { downlink_mhz = 1840, bandwidth = \"10 MHz\" }\ncells = [{}]\n\
        [[lte.ues]]\nname = \"one\"\ncarriers = 1\n[[lte.ues]]\nname = \"both\"\n[[flows]]\nname = \"down\"\nto = \"*\"\n";
    let (records, _) = records(scenario, "100 ms");
    let reports: Vec<_> = reports(&records).collect();
    assert_eq!(reports.len(), 20);
    for pair in reports.chunks(2) {
        let [one, both] = pair else { panic!("{pair:?}") };
        assert_eq!((one.n_prb, both.n_prb, one.slots, both.slots), (25, 75, 100, 100));
        let used = one.prbs.expect("it is reported") + both.prbs.expect("it is reported");
        assert_eq!(both.cell_prbs, Some(used));
        assert!(one.cell_prbs >= one.prbs && one.cell_prbs <= Some(one.all_prbs()), "{one:?}");
    }
}

#[test]
fn what_a_ue_has_in_a_cell_is_told_when_the_cell_begins_to_serve_it() {
    for period in ["1 ms", "1 s"] {
        let scenario =
            LTE.replace("name = \"both\"", "name = \"both\"\ndedicated = [{ priorities = [6], bearer = { qci = 1 } }]");
        let (records, _) = records(&scenario, period);
        let of = |rnti: u16| events(&records).filter(move |event| event.ue.rnti == rnti);
        let both = events(&records).map(|event| event.ue.rnti).min().expect("there are events");
        let mut cell = None;
        let mut told = Vec::new();
        for event in of(both) {
            match &event.what {
                What::CellChange { targets, .. } => {
                    assert_eq!(Some(event.cell), cell, "{period}");
                    cell = Some(targets[0]);
                    told.push(Vec::new());
                }
                What::BearerEstablished(bearer) => {
                    if cell.is_none() {
                        told.push(Vec::new());
                    }
                    cell = Some(event.cell);
                    told.last_mut().expect("a cell was told").push(format!("{} {}", bearer.erab, bearer.qci));
                }
                What::CarrierReconfigured { added, removed } => {
                    assert_eq!((Some(event.cell), &removed[..]), (cell, &[][..]), "{period}");
                    told.last_mut().expect("a cell was told").push(format!("{added:?}"));
                }
                _ => {}
            }
        }
        assert!(told.len() > 2, "{told:?}");
        for (at, told) in told.iter().enumerate() {
            let second = if at % 2 == 0 { "[2]" } else { "[3]" };
            assert_eq!(told, &["5 9", "6 1", second], "{period}: {at}");
        }
        assert!(of(both + 1).all(|event| !matches!(event.what, What::CarrierReconfigured { .. })));
    }
}

#[test]
fn a_timing_advance_is_told_each_time_it_changes() {
    // 16 Ts to and fro are 78.07 m: from 1000 to 1400 m at 50 m/s, each 1.56 s.
    let scenario = "duration = \"8.1 s\"\n[lte]\nbandwidth = \"5 MHz\"\ncells = [{ position = [0, 0, 1.5] }]\n\
        [[lte.ues]]\nname = \"car\"\nmobility = { kind = \"line\", from = [1000, 0, 1.5], velocity = [50, 0, 0] }\n\
        [[flows]]\nname = \"down\"\nto = \"*\"\n";
    let (records, _) = records(scenario, "100 ms");
    let advances: Vec<(f64, u32)> = events(&records)
        .filter_map(|event| match event.what {
            What::TimingAdvance { timing_advance } => Some((event.time.as_secs_f64(), timing_advance)),
            _ => None,
        })
        .collect();
    let steps: Vec<u32> = advances.iter().map(|&(_, advance)| advance).collect();
    assert_eq!(steps, [13, 14, 15, 16, 17, 18]);
    for (at, advance) in &advances[1..] {
        let crossed = ((f64::from(*advance) - 0.5) * 78.07 - 1000.0) / 50.0;
        assert!((0.0..0.121).contains(&(at - crossed)), "{advance} at {at} s, crossed at {crossed} s");
    }
}

#[test]
fn the_load_of_reports_is_what_their_lines_take_from_the_first_packet_or_the_warm_up_on() {
    for warm_up in ["0 s", "3 s"] {
        let scenario = format!("warmup = \"{warm_up}\"\n{LTE}");
        let (records, tables) = run(&scenario, "1 ms", "best");
        let ues: BTreeSet<_> = reports(&records).map(|report| report.ue).collect();
        let rows = tables.ues.iter().filter(|row| row.direction == "downlink");
        for (ue, row) in ues.into_iter().zip(rows) {
            let lines = reports(&records).filter(|report| report.ue == ue);
            let lines: Vec<usize> =
                lines.map(|report| recording::format_line(&Record::Report(report.clone())).len()).collect();
            let count = (row.reported_s * 1e3).round() as usize;
            // There are none while a handover interrupts.
            assert!((if warm_up == "0 s" { 5_001..8_000 } else { 2_000..5_001 }).contains(&count), "{count}");
            let last = &lines[lines.len() - count..];
            assert_eq!(row.report_bytes, last.iter().sum::<usize>() as u64);
        }
        let up = tables.ues.iter().find(|row| row.direction == "uplink").expect("there is a row");
        assert_eq!((up.reported_s, up.report_bytes), (0.0, 0));
    }
}
