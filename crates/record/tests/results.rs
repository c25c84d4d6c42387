//! Results on a disk: whole, the same everywhere, and read back as they were.

#![allow(clippy::disallowed_methods)] // These tests are about files.

mod made_up;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use record::tables::{FlowRow, Flows, Mobility, Radio, Samples, Transmissions, UeRow, Ues};
use record::{Error, Lateness, Output, Results, Stat, Summary, Table};

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn results_read_back_are_equal_to_those_written() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("not yet/there");
    for results in [made_up::sweep("A sweep", 2, 50), made_up::cells("Cells", 2, 100, 3)] {
        results.write(&dir).unwrap();
        assert_eq!(Results::read(&dir).unwrap(), results);
        let summary: Summary = serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary, results.summary());
    }
}

#[test]
fn an_empty_table_is_written_and_read_back() {
    let temp = tempfile::tempdir().unwrap();
    let results = Results::default();
    results.write(&temp.path().join("r")).unwrap();
    assert_eq!(Results::read(&temp.path().join("r")).unwrap(), results);
}

#[test]
fn a_table_longer_than_a_batch_is_read_back() {
    let mut tables = record::Tables::default();
    let row = |conn| record::tables::RttRow { point: 1, run: 2, flow: "f", conn, rtt_ms: f64::from(conn), count: 3 };
    (0..150_000).for_each(|conn| tables.rtts.push(&row(conn)));
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("rtts.parquet");
    tables.rtts.write_parquet(fs::File::create(&path).unwrap()).unwrap();
    let read = record::tables::Rtts::read_parquet(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(read, tables.rtts);
}

#[test]
fn the_same_results_are_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (temp.path().join("a"), temp.path().join("b"));
    let results = made_up::sweep("A sweep", 2, 50);
    results.write(&a).unwrap();
    let mut later = made_up::sweep("A sweep", 2, 50);
    later.timing.wall_s = Some(99.0);
    later.write(&b).unwrap();
    assert_eq!(files(&a), files(&b));
    for name in files(&a) {
        let same = fs::read(a.join(&name)).unwrap() == fs::read(b.join(&name)).unwrap();
        assert_eq!(same, !["timing.json", "report.html"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn every_column_says_what_it_is_and_every_quantity_its_unit() {
    let radio = [Ues::schema(), Radio::schema(), Mobility::schema(), Transmissions::schema()];
    for schema in [Flows::schema(), Samples::schema()].into_iter().chain(radio) {
        for field in schema.fields() {
            assert!(field.metadata().get("doc").is_some_and(|doc| doc.len() > 5), "{}", field.name());
            let units =
                [("_s", "s"), ("_ms", "ms"), ("_mbps", "Mbit/s"), ("_bytes", "B"), ("_dbm", "dBm"), ("_db", "dB")];
            for (ending, unit) in units {
                if field.name().ends_with(ending) {
                    assert_eq!(field.metadata().get("unit").map(String::as_str), Some(unit), "{}", field.name());
                }
            }
        }
    }
}

#[test]
fn earlier_results_are_replaced_and_nothing_is_left_beside() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    made_up::single("first", 10).write(&dir).unwrap();
    made_up::single("second", 10).write(&dir).unwrap();
    assert_eq!(Results::read(&dir).unwrap().meta.title, "second");
    assert_eq!(files(temp.path()), ["r"]);
}

#[test]
fn a_directory_with_foreign_files_is_refused_before_the_run() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("home");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.tex"), "dear").unwrap();
    let error = Output::create(&dir).unwrap_err();
    assert!(matches!(&error, Error::Foreign { entry, .. } if entry == "thesis.tex"), "{error}");
    assert!(error.to_string().contains("choose another directory"), "{error}");
    assert_eq!(files(temp.path()), ["home"]);
}

#[test]
fn notes_beside_earlier_results_are_not_lost() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    made_up::single("first", 10).write(&dir).unwrap();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    assert!(
        matches!(made_up::single("second", 10).write(&dir), Err(Error::Foreign { entry, .. }) if entry == "notes.txt")
    );
    assert_eq!(Results::read(&dir).unwrap().meta.title, "first");
    assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn an_output_that_is_not_committed_leaves_what_was_there() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    made_up::single("first", 10).write(&dir).unwrap();
    let output = Output::create(&dir).unwrap();
    made_up::single("second", 10).write_to(&output).unwrap();
    drop(output);
    assert_eq!(Results::read(&dir).unwrap().meta.title, "first");
    assert_eq!(files(temp.path()), ["r"]);
}

#[test]
fn an_output_that_is_not_committed_takes_the_parents_along_that_were_made_for_it() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = ["out/deep/a", "out/b"].map(|dir| temp.path().join(dir));
    drop(Output::create(&a).unwrap());
    assert_eq!(files(temp.path()), [""; 0]);
    // Another run has moved in meanwhile.
    let first = Output::create(&a).unwrap();
    made_up::single("other", 10).write(&b).unwrap();
    drop(first);
    assert_eq!(files(&temp.path().join("out")), ["b"]);
    // An empty directory of somebody's is no parent that was made.
    fs::create_dir(temp.path().join("mine")).unwrap();
    drop(Output::create(&temp.path().join("mine/c")).unwrap());
    assert_eq!(files(temp.path()), ["mine", "out"]);
}

#[test]
fn a_parent_that_cannot_be_made_leaves_those_before_it_unmade() {
    let temp = tempfile::tempdir().unwrap();
    let long = "x".repeat(300);
    assert!(matches!(Output::create(&temp.path().join("a").join(long).join("b")), Err(Error::Io { .. })));
    assert_eq!(files(temp.path()), [""; 0]);
}

#[test]
fn what_an_interrupted_run_left_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    fs::create_dir(temp.path().join(".r.partial")).unwrap();
    fs::write(temp.path().join(".r.partial/.lock"), "").unwrap();
    fs::write(temp.path().join(".r.partial/flows.parquet"), "half").unwrap();
    made_up::single("second", 10).write(&dir).unwrap();
    assert_eq!(files(temp.path()), ["r"]);
}

#[test]
fn two_runs_to_one_place_at_once_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    let first = Output::create(&dir).unwrap();
    assert!(matches!(Output::create(&dir), Err(Error::Busy { .. })));
    made_up::single("first", 10).write_to(&first).unwrap();
    first.commit().unwrap();
    assert_eq!(Results::read(&dir).unwrap().meta.title, "first");
}

#[test]
fn a_directory_without_results_says_so() {
    let temp = tempfile::tempdir().unwrap();
    assert!(matches!(Results::read(temp.path()), Err(Error::NotResults { .. })));
    assert!(matches!(Results::read(&temp.path().join("none")), Err(Error::Io { .. })));
}

#[test]
fn damaged_files_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    for (name, content) in [("samples.parquet", "PAR1 not really"), ("meta.json", "{}"), ("timing.json", "[")] {
        made_up::single("first", 10).write(&dir).unwrap();
        fs::write(dir.join(name), content).unwrap();
        let error = Results::read(&dir).unwrap_err();
        assert!(matches!(&error, Error::Damaged { path, .. } if path.ends_with(name)), "{error}");
    }
    // A whole table of another kind lacks columns.
    made_up::single("first", 10).write(&dir).unwrap();
    fs::copy(dir.join("links.parquet"), dir.join("flows.parquet")).unwrap();
    let error = Results::read(&dir).unwrap_err();
    assert!(error.to_string().contains("the column flow is missing"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mount = temp.path().join("tiny");
    fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=200k", "tmpfs"]).arg(&mount).output();
    if !mounted.as_ref().is_ok_and(|out| out.status.success()) {
        // Not by a macro, whose output the test harness would keep to itself.
        let _ = writeln!(io::stderr(), "SKIPPED the full disk: mounting a tmpfs needs root ({mounted:?})");
        return;
    }
    let dir = mount.join("r");
    let outcome = made_up::sweep("too large", 3, 2_000).write(&dir);
    let left = files(&mount);
    let _ = Command::new("umount").arg(&mount).status();
    let error = outcome.unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull), "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_stat_is_the_mean_with_students_interval() {
    assert_eq!(Stat::of([]), None);
    assert_eq!(Stat::of([3.0]), Some(Stat { n: 1, mean: 3.0, ci95: None, min: 3.0, max: 3.0 }));
    let stat = Stat::of([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    // s = sqrt(2.5), t(4) = 2.7764: 2.7764 * sqrt(2.5 / 5).
    assert!((stat.ci95.unwrap() - 1.963_211).abs() < 1e-5, "{stat:?}");
    assert_eq!((stat.mean, stat.min, stat.max, stat.n), (3.0, 1.0, 5.0, 5));
}

#[test]
fn intervals_beyond_the_table_follow_student() {
    // t(40) = 2.02108, t(100) = 1.98397: with values of -1 and 1 in equal number, s^2 = n / (n - 1).
    for (n, t) in [(41, 2.021_08), (101, 1.983_97)] {
        let values: Vec<f64> = (0..n).map(f64::from).collect();
        let stat = Stat::of(values).unwrap();
        let n = f64::from(n);
        // The variance of 0..n-1 is n (n + 1) / 12.
        let expected = t * (n * (n + 1.0) / 12.0 / n).sqrt();
        assert!((stat.ci95.unwrap() / expected - 1.0).abs() < 2e-4, "{n}");
    }
}

#[test]
fn the_summary_follows_from_the_tables() {
    let results = made_up::sweep("A sweep", 3, 100);
    let summary = results.summary();
    assert_eq!(summary.points.len(), 8);
    for (i, point) in summary.points.iter().enumerate() {
        let rows: Vec<_> = results.tables.flows.iter().filter(|row| row.point as usize == i).collect();
        let bulk: Vec<f64> = rows.iter().filter(|row| row.flow == "download").map(|row| row.goodput_mbps).collect();
        assert_eq!(point.flows.iter().map(|flow| flow.flow.as_str()).collect::<Vec<_>>(), ["download", "pages"]);
        let got = point.flows[0].goodput_mbps.unwrap();
        assert!((got.mean - bulk.iter().sum::<f64>() / 3.0).abs() < 1e-9);
        assert_eq!(got.n, 3);
        let shares = point.flows[1].limited.unwrap();
        let sum = shares.app.mean + shares.cwnd.mean + shares.rwnd.mean + shares.pacing.mean + shares.other.mean;
        assert!((sum - 1.0).abs() < 1e-9);
        assert_eq!(point.flows[0].completion_s, None, "an endless flow is never complete");
        assert_eq!(point.flows[1].copies.mean, 6.0);
        assert_eq!(point.flows[1].transfers.unwrap().mean, 30.0);
        assert_eq!(point.flows[1].transfers_finished.unwrap().mean, 1.0);
        let (median, mean) = (point.flows[1].completion_p50_s.unwrap(), point.flows[1].completion_s.unwrap());
        assert!(median.min > 0.3 && median.mean < point.flows[1].completion_p95_s.unwrap().mean && mean.min > 0.3);
        // Six of 120 kB: from the first's start to the last's end.
        let run: Vec<_> = rows.iter().filter(|row| row.flow == "pages" && row.run == 0).collect();
        let seconds = run.iter().map(|row| row.measured_to_s).fold(0.0, f64::max);
        assert!(point.flows[1].goodput_mbps.unwrap().max >= 6.0 * 0.96 / seconds - 1e-9);
        assert!(point.jain.unwrap().mean > 1.0 / 7.0 && point.jain.unwrap().mean <= 1.0);
    }
}

#[test]
fn a_flow_without_tcp_has_one_way_delays_and_loss_and_a_tcp_flow_no_loss() {
    let made_up = made_up::single("a call", 10);
    let (mut results, template) = (made_up.clone(), made_up.tables.flows.row(0));
    let call = FlowRow {
        flow: "call",
        transport: "udp",
        cc: None,
        segments_sent: Some(200),
        lost_packets: Some(3),
        ..template
    };
    let call = FlowRow { owd_p50_ms: Some(20.0), owd_p95_ms: Some(60.0), ..call };
    let mut tables = record::Tables::default();
    tables.flows.push(&template);
    tables.flows.push(&call);
    results.tables = tables;
    let flows = &results.summary().points[0].flows;
    assert_eq!(flows[0].loss, None);
    let mean = |stat: Option<Stat>| stat.map(|stat| stat.mean);
    assert_eq!(mean(flows[1].owd_p50_ms), Some(20.0));
    assert_eq!(mean(flows[1].owd_p95_ms), Some(60.0));
    assert_eq!(mean(flows[1].loss), Some(0.015));

    // Of several copies together: all packets, not the mean of the quantiles.
    for (conn, owd_ms, count) in [(0, 20.0, 97), (1, 200.0, 3)] {
        if conn == 1 {
            results.tables.flows.push(&FlowRow { conn, owd_p50_ms: Some(200.0), lost_packets: Some(197), ..call });
        }
        results.tables.owds.push(&record::tables::OwdRow { point: 0, run: 0, flow: "call", conn, owd_ms, count });
    }
    let call = &results.summary().points[0].flows[1];
    assert_eq!((mean(call.owd_p95_ms), mean(call.loss)), (Some(20.0), Some(0.5)));
}

#[test]
fn identical_runs_are_summarised_as_one() {
    let mut results = made_up::single("a recorded trace", 10);
    results.meta.runs = 3;
    let tables = results.tables.clone();
    let row = tables.flows.row(0);
    let with = |bytes: [u64; 3]| {
        let mut tables = record::Tables::default();
        (0..).zip(bytes).for_each(|(run, bytes)| tables.flows.push(&FlowRow { run, bytes, ..row }));
        tables
    };
    let (equal, different) = (with([5; 3]), with([5, 5, 6]));
    let summary = |tables| record::Results { tables, ..results.clone() }.summary().points.remove(0);
    let (equal, different) = (summary(equal), summary(different));
    assert!(equal.identical_runs && !different.identical_runs);
    assert_eq!(equal.goodput_mbps.map(|stat| (stat.n, stat.ci95)), Some((1, None)));
    assert_eq!(different.goodput_mbps.map(|stat| stat.n), Some(3));
}

#[test]
fn partial_results_say_so_in_every_file_that_people_read() {
    let mut results = made_up::single("Interrupted", 10);
    results.meta.partial = Some(record::Partial { finished: 3, of: 20, ..Default::default() });
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("out");
    results.write(&dir).unwrap();
    let json =
        |name: &str| -> serde_json::Value { serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap() };
    for file in ["summary.json", "meta.json"] {
        assert_eq!(json(file)["partial"], serde_json::json!({ "finished": 3, "of": 20 }), "{file}");
    }
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("Interrupted (partial: 3 of 20 runs)"), "the report looks complete");
    assert_eq!(Results::read(&dir).unwrap().meta.partial, results.meta.partial);
}

#[test]
fn partial_results_replace_partial_ones_and_never_complete_ones() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("out");
    let complete = made_up::single("Complete", 10);
    let mut partial = made_up::single("Partial", 10);
    let write = |results: &Results| {
        let output = Output::create(&dir).unwrap();
        results.write_to(&output).unwrap();
        let place = output.commit_partial().unwrap();
        (place.file_name().unwrap().to_string_lossy().into_owned(), Results::read(&place).unwrap() == *results)
    };
    partial.meta.partial = Some(record::Partial { finished: 1, of: 9, ..Default::default() });
    assert_eq!(write(&partial), ("out".to_owned(), true));
    partial.meta.partial = Some(record::Partial { finished: 2, of: 9, ..Default::default() });
    assert_eq!(write(&partial), ("out".to_owned(), true));
    complete.write(&dir).unwrap();
    assert_eq!(write(&partial), ("out-interrupted".to_owned(), true));
    assert_eq!(write(&partial), ("out-interrupted".to_owned(), true));
    assert_eq!(Results::read(&dir).unwrap(), complete);
    // Nor does it take the place of anything else.
    complete.write(&temp.path().join("out-interrupted")).unwrap();
    fs::create_dir(temp.path().join("out-interrupted-2")).unwrap();
    fs::write(temp.path().join("out-interrupted-2/thesis.tex"), "precious").unwrap();
    assert_eq!(write(&partial), ("out-interrupted-3".to_owned(), true));
    // What cannot be read may be complete.
    fs::write(dir.join("meta.json"), "{").unwrap();
    assert_eq!(write(&partial).0, "out-interrupted-3");
}

#[test]
fn a_quantile_of_a_flow_is_that_of_all_its_samples() {
    let mut results = made_up::single("two copies", 10);
    results.tables = record::Tables::default();
    let template = made_up::single("template", 10);
    let row = template.tables.flows.row(0);
    for (conn, rtt_ms, count) in [(0, 10.0, 97), (1, 100.0, 3)] {
        let of_one = record::tables::FlowRow { conn, rtt_p50_ms: Some(rtt_ms), rtt_p95_ms: Some(rtt_ms), ..row };
        results.tables.flows.push(&of_one);
        results.tables.rtts.push(&record::tables::RttRow { point: 0, run: 0, flow: row.flow, conn, rtt_ms, count });
    }
    let point = &results.summary().points[0];
    assert_eq!(point.flows[0].rtt_p95_ms.unwrap().mean, 10.0, "not the mean of the quantiles, 55");
    assert_eq!(point.rtt_p95_ms.unwrap().mean, 10.0);
    assert_eq!(point.jain.unwrap().mean, 1.0);
}

#[test]
fn an_unfinished_transfer_counts_as_begun_and_has_no_completion_time() {
    let mut results = made_up::single("three transfers", 10);
    results.tables.transfers = record::tables::Transfers::default();
    for (index, completion_s) in [(0, Some(1.0)), (1, Some(4.0)), (2, None)] {
        let flow = "download";
        let bytes = 1_000;
        results.tables.transfers.push(&record::tables::TransferRow {
            point: 0,
            run: 0,
            flow,
            conn: 0,
            index,
            start_s: 0.0,
            completion_s,
            bytes,
        });
    }
    let flow = &results.summary().points[0].flows[0];
    assert_eq!(flow.transfers.unwrap().mean, 3.0);
    assert!((flow.transfers_finished.unwrap().mean - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(flow.completion_s.unwrap().mean, 2.5);
    assert_eq!(flow.completion_p50_s.unwrap().mean, 1.0);
    assert_eq!(flow.completion_p95_s.unwrap().mean, 4.0);
}

#[test]
fn the_summary_of_a_ue_follows_from_its_rows() {
    let results = made_up::cells("Cells", 3, 200, 2);
    for point in &results.summary().points {
        assert_eq!(point.ues.iter().map(|ue| ue.ue.as_str()).collect::<Vec<_>>(), ["ue-1", "ue-2"]);
        for ue in &point.ues {
            let of = |direction: &str| -> Vec<UeRow<'_>> {
                let all = results.tables.ues.iter();
                all.filter(|row| row.point == point.point && row.ue == ue.ue && row.direction == direction).collect()
            };
            for (summary, rows) in [(&ue.downlink, of("downlink")), (&ue.uplink, of("uplink"))] {
                assert_eq!(summary.scheduled_mbps, Stat::of(rows.iter().map(|row| row.mbits / 60.0)));
                assert_eq!(summary.block_error_rate, Stat::of(rows.iter().map(|row| row.block_error_rate)));
                assert_eq!(summary.utilisation, Stat::of(rows.iter().filter_map(|row| row.utilisation)));
                assert_eq!(summary.queue_ms, Stat::of(rows.iter().map(|row| row.queue_ms)));
                assert_eq!(summary.air_ms, Stat::of(rows.iter().map(|row| row.air_ms)));
                assert_eq!(summary.core_ms, Stat::of(rows.iter().map(|row| row.core_ms)));
                assert_eq!(summary.harq_ms, Stat::of(rows.iter().map(|row| row.harq_ms)));
                assert_eq!(summary.rlc_ms, Stat::of(rows.iter().map(|row| row.rlc_ms)));
                assert_eq!(summary.queue_ms.map(|stat| stat.n), Some(3));
            }
            assert_eq!(ue.handovers, Stat::of(of("uplink").iter().map(|row| row.handovers as f64)));
            assert_eq!(ue.handover_failures, Stat::of(of("uplink").iter().map(|row| row.handover_failures as f64)));
            assert_eq!(ue.link_failures, Stat::of(of("uplink").iter().map(|row| row.link_failures as f64)));
        }
    }
}

#[test]
fn a_ue_that_got_nothing_has_no_delay_and_no_error_rate() {
    let template = made_up::cells("Cells", 1, 100, 1);
    let mut results = template.clone();
    results.tables.ues = Ues::default();
    let row = template.tables.ues.row(0);
    results.tables.ues.push(&UeRow { blocks: 0, mbits: 0.0, block_error_rate: 0.0, packets: 0, ..row });
    let ue = &results.summary().points[0].ues[0];
    assert_eq!(ue.downlink.scheduled_mbps.map(|stat| stat.mean), Some(0.0));
    assert_eq!((ue.downlink.block_error_rate, ue.downlink.queue_ms, ue.downlink.harq_ms), (None, None, None));
    assert_eq!((ue.uplink.scheduled_mbps, ue.handovers), (None, None));
}

#[test]
fn a_link_without_a_rate_has_no_utilisation_and_one_flow_no_fairness() {
    let mut results = made_up::single("one flow", 10);
    let (flow, link) = (results.tables.flows.row(0), results.tables.links.row(0));
    let mut tables = record::Tables::default();
    tables.flows.push(&flow);
    tables.flows.push(&FlowRow { flow: "call", transport: "udp", cc: None, ..flow });
    tables.links.push(&record::tables::LinkRow { utilisation: 0.0, ..link });
    tables.links.push(&record::tables::LinkRow { link: "idle", utilisation: 0.0, bytes_out: 0, ..link });
    results.tables = tables;
    let point = &results.summary().points[0];
    assert_eq!(point.jain, None);
    assert_eq!(point.links[0].utilisation, None);
    assert_eq!(point.links[1].utilisation.unwrap().mean, 0.0);
}

#[test]
fn real_flows_one_after_the_other_do_not_add_up_and_nobody_knows_what_held_them_back() {
    let template = made_up::single("an emulation", 10);
    let mut results = template.clone();
    let flow = FlowRow {
        flow: "tcp server:80 > ue:1",
        cc: None,
        limited_app: None,
        limited_cwnd: None,
        limited_rwnd: None,
        limited_pacing: None,
        limited_sndbuf: None,
        limited_other: None,
        ..template.tables.flows.row(0)
    };
    let at = |from: f64| FlowRow { measured_from_s: from, measured_to_s: from + 5.0, bytes: 5_000_000, ..flow };
    let mut tables = record::Tables::default();
    tables.flows.push(&at(0.0));
    tables.flows.push(&FlowRow { flow: "tcp server:80 > ue:2", ..at(5.0) });
    results.tables = tables;
    results.timing.lateness = Some(Lateness::default());
    let point = &results.summary().points[0];
    assert_eq!(point.goodput_mbps.unwrap().mean, 8.0);
    assert_eq!(point.flows.iter().map(|flow| flow.goodput_mbps.unwrap().mean).collect::<Vec<_>>(), [8.0, 8.0]);
    assert_eq!(point.flows.iter().map(|flow| flow.limited).collect::<Vec<_>>(), [None, None]);
    assert_eq!(point.jain, None);
    // Beside them, two simulated flows share a link.
    for (name, rate) in [("a", 3.0), ("b", 1.0)] {
        results.tables.flows.push(&FlowRow { flow: name, cc: Some("cubic"), goodput_mbps: rate, ..at(0.0) });
    }
    assert_eq!(results.summary().points[0].jain.unwrap().mean, 0.8);
    // So it is in captures, which have connections of all kinds; those of a measurement are its own.
    results.timing.lateness = None;
    results.meta.scenario = serde_json::json!({ "analysed": [] });
    assert_eq!(results.summary().points[0].jain.unwrap().mean, 0.8);
    results.meta.scenario = serde_json::json!({});
    assert_ne!(results.summary().points[0].jain.unwrap().mean, 0.8);
}

#[test]
fn a_table_that_is_too_long_is_thinned_by_whole_moments() {
    let mut results = made_up::single("long", 10);
    results.tables.samples = Samples::default();
    let flows = ["a", "b", "c"];
    // 100,000 moments, each with a row of each flow: more than a batch of the reader.
    for n in 0..100_000 {
        for flow in flows {
            let row = record::tables::SampleRow { flow, t_s: f64::from(n) * 0.1, ..Default::default() };
            results.tables.samples.push(&row);
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("r");
    results.write(&dir).unwrap();
    let (thinned, notes) = Results::read_within(&dir, 10_000).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("every 30 moments"), "{notes:?}");
    let rows: Vec<_> = thinned.tables.samples.iter().map(|row| (row.flow.to_owned(), row.t_s)).collect();
    // The first moment of every 30, with all of its rows.
    let expected = (0..100_000).step_by(30).flat_map(|n| flows.map(|flow| (flow.to_owned(), f64::from(n) * 0.1)));
    assert!(rows.iter().cloned().eq(expected), "{} rows", rows.len());
    assert_eq!(Results::read_within(&dir, 1 << 20).unwrap(), (results, Vec::new()));
    // One that is not over time cannot be thinned, and the error says what is wrong.
    let error = Results::read_within(&dir, 1).unwrap_err().to_string();
    assert!(error.contains("flows.parquet") && error.contains("are the most"), "{error}");
}

#[test]
fn partial_results_written_directly_do_not_replace_complete_ones() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("results");
    let complete = made_up::single("Complete", 10);
    complete.write(&place).unwrap();
    let mut partial = complete.clone();
    partial.meta.partial = Some(record::Partial { finished: 1, of: 9, ..Default::default() });
    let error = partial.write(&place).unwrap_err().to_string();
    assert!(
        error.ends_with("holds complete results, which partial ones do not replace: choose another directory"),
        "{error}"
    );
    assert_eq!(Results::read(&place).unwrap().meta.partial, None);
    let other = dir.path().join("other");
    partial.write(&other).unwrap();
    partial.write(&other).unwrap();
    complete.write(&other).unwrap();
}

#[test]
fn impossible_numbers_of_runs_are_not_merged() {
    let part = |runs: &[u32], jobs: &[(u32, u32)]| {
        let mut results = made_up::single("Part", 10);
        let jobs = jobs.iter().map(|&(point, run)| record::Job { point, run }).collect();
        results.meta.partial = Some(record::Partial { finished: 1, of: 3, jobs, runs: runs.to_vec() });
        record::merge(&[&results]).unwrap_err().to_string()
    };
    for (runs, jobs) in [(&[u32::MAX][..], &[(0, 0)][..]), (&[1], &[(0, 1)]), (&[1], &[(7, 0)])] {
        let error = part(runs, jobs);
        assert!(error.contains("their meta.json does not fit"), "{runs:?} {jobs:?}: {error}");
    }
    assert_eq!(part(&[2], &[(0, 0)]), "missing jobs: 0/1");
}

#[test]
fn a_congestion_control_that_nothing_tells_is_null() {
    let temp = tempfile::tempdir().unwrap();
    let mut results = made_up::single("a capture", 10);
    let known = results.tables.flows.row(0);
    let mut tables = record::Tables::default();
    tables.flows.push(&known);
    tables.flows.push(&FlowRow { flow: "tcp server:80 > ue:1", cc: None, ..known });
    results.tables = tables;
    let dir = temp.path().join("r");
    results.write(&dir).unwrap();
    let read = Results::read(&dir).unwrap();
    assert_eq!(read, results);
    assert!(read.tables.flows.row(0).cc.is_some());
    assert_eq!(read.tables.flows.row(1).cc, None);
    let summary = fs::read(dir.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["points"][0]["flows"][1]["cc"], serde_json::Value::Null);
}
