//! Files of the collection of cases that were read wrongly once, with their right values. `RANWAY_CASES` names its folder.
#![allow(clippy::disallowed_methods, reason = "cases are files, and only tests read them here")]

use std::fs::File;
use std::path::PathBuf;

use import::capture::{self, Which};
use import::route::{self, Layout};
use import::{Columns, Error, Trace, Unit, mahimahi, rates};

/// The folder of a case; `None`, said loudly, if there is none.
fn case(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let folder = std::env::var("RANWAY_CASES").map_or(root, PathBuf::from).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no case in {}; RANWAY_CASES names the folder of cases", folder.display());
    None
}

/// The length of a trace in milliseconds, and its mean rate in Mbit/s.
fn length_and_mean(trace: &Trace) -> (u64, f64) {
    (trace.period().as_millis(), trace.mean_rate().as_mbps())
}

fn table(path: PathBuf, columns: &Columns) -> Result<(u64, f64), Error> {
    let read = rates(File::open(path).unwrap(), columns, 0.0, None)?;
    Ok(length_and_mean(&read.value))
}

#[test]
fn f01_an_outage_at_the_end_is_in_the_trace() {
    let Some(folder) = case("F01-trailing-outage") else { return };
    assert_eq!(table(folder.join("rates.csv"), &Columns::default()).unwrap(), (6_000, 4.0));
    let part = mahimahi(File::open(folder.join("outage.down")).unwrap(), 0.0, Some(10.0)).unwrap();
    assert_eq!(length_and_mean(&part), (10_000, 6.0));
}

#[test]
fn f02_times_are_in_the_unit_of_their_name_or_their_size() {
    let Some(folder) = case("F02-time-unit") else { return };
    assert_eq!(table(folder.join("t.csv"), &Columns::default()).unwrap(), (4_000, 12.0));
    assert_eq!(table(folder.join("epoch.csv"), &Columns::default()).unwrap(), (3_000, 12.0));
}

#[test]
fn f03_rates_are_in_the_unit_of_their_name() {
    let Some(folder) = case("F03-rate-unit") else { return };
    for (file, mbps) in [("bytes_per_s.csv", 12.0), ("kbytes.csv", 12.0), ("MBps.csv", 12.0), ("gbps.csv", 1_200.0)] {
        assert_eq!(table(folder.join(file), &Columns::default()).unwrap().1, mbps, "{file}");
    }
}

#[test]
fn f04_a_file_without_a_header_is_data_from_its_first_line_on() {
    let Some(folder) = case("F04-no-header") else { return };
    let columns =
        Columns { time: Some("1".into()), rate: Some("2".into()), unit: Some(Unit::MBPS), ..Columns::default() };
    assert_eq!(table(folder.join("nohead.csv"), &columns).unwrap(), (4_000, 39.0));
}

#[test]
fn f15_bytes_came_since_the_previous_row() {
    let Some(folder) = case("F15-bytes-since-previous") else { return };
    let columns =
        Columns { time: Some("ms".into()), rate: Some("bytes".into()), seconds: Some(1e-3), ..Columns::default() };
    let (length, mean) = table(folder.join("ghent.csv"), &columns).unwrap();
    // 6 MB in 13 s.
    assert!(length == 13_000 && (mean - 48.0 / 13.0).abs() < 1e-6, "{length} ms, {mean} Mbit/s");
}

#[test]
fn f08_obsolete_packet_blocks_have_packets() {
    let Some(folder) = case("F08-pcapng-packet-block") else { return };
    for file in ["mixed.pcapng", "all_old.pcapng"] {
        let read = capture::read(File::open(folder.join(file)).unwrap()).unwrap();
        let flows: Vec<(u64, u64)> = read.flows().iter().map(|one| (one.packets, one.bytes)).collect();
        // A SYN, an ACK and 100 segments of 1448 bytes; a SYN-ACK and an ACK.
        assert_eq!(flows, [(102, 44 + 40 + 100 * 1_488), (2, 44 + 40)], "{file}");
        assert!(read.notes.is_empty(), "{:?}", read.notes);
    }
}

#[test]
fn f10_a_packet_that_passed_two_interfaces_counts_once() {
    let Some(folder) = case("F10-two-interfaces") else { return };
    let read = capture::read(File::open(folder.join("router.pcapng")).unwrap()).unwrap();
    let flows: Vec<_> = read.flows().iter().map(|one| (one.interface.clone().unwrap(), one.packets)).collect();
    let [lan, wan] = ["0".to_owned(), "1".to_owned()];
    assert_eq!(flows, [(lan.clone(), 102), (lan, 2), (wan.clone(), 102), (wan, 2)]);
    let from = Which { from: Some([192, 0, 2, 1].into()), ..Which::default() };
    let error = read.trace(&from, 0.0, None).unwrap_err().to_string();
    let wanted = "the packets are of several interfaces, and may be in the file once for each: select one with --interface; choose one of 0, 1";
    assert_eq!(error, wanted);
    let trace = read.trace(&Which { interface: Some("1".into()), ..from }, 0.0, None).unwrap().value;
    // 148,884 bytes in 0.141 s.
    let (length, mean) = length_and_mean(&trace);
    assert!(length == 141 && (mean - 8.4).abs() < 0.05, "{length} ms, {mean} Mbit/s");
}

const LAYOUT: Layout = Layout { origin: None, rotate_deg: 0.0, height_m: 1.5, speed: None };

#[test]
fn f12_a_stop_is_where_the_feeds_distances_say() {
    let Some(folder) = case("F12-gtfs-shape-distances") else { return };
    let read = route::gtfs(&folder, None, &LAYOUT).unwrap();
    let (route, notes) = (read.value, read.notes);
    assert!((route.length_m() - 7_000.0).abs() < 40.0 && route.seconds() == 467.0, "{} m", route.length_m());
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn f16_unknown_elements_of_gpx_are_skipped() {
    let Some(folder) = case("F16-gpx-valid-refused") else { return };
    let read = route::gpx(File::open(folder.join("walk.gpx")).unwrap(), None, &LAYOUT).unwrap();
    assert!((read.value.length_m() - 223.0).abs() < 1.0 && read.value.seconds() == 120.0);
}
