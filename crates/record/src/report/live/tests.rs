//! Boards that sources fill.

use serde_json::Value;

use super::history::{MOST_FLOWS, MOST_VALUES, OTHERS, SILENCE_S};
use super::{Board, page};
use crate::tables::{FlowRow, LinkRow, MobilityRow, QueueRow, RadioRow, RttRow, SampleRow, TransferRow, UeRow};
use crate::{Meta, Point, Tables};

fn board() -> Board {
    Board::new("one".to_owned(), "run", Meta::default(), false)
}

fn sample(flow: &str, t_s: f64, goodput_mbps: f64) -> SampleRow<'_> {
    SampleRow { flow, t_s, goodput_mbps, cwnd_bytes: Some(14_480), ..SampleRow::default() }
}

fn samples<'a>(rows: impl IntoIterator<Item = SampleRow<'a>>) -> Tables {
    let mut tables = Tables::default();
    rows.into_iter().for_each(|row| tables.samples.push(&row));
    tables
}

fn growth(board: &mut Board) -> Value {
    let text = board.growth(true).expect("something is new");
    serde_json::from_str::<Value>(&text).expect("JSON")
}

fn whole(board: &Board) -> Value {
    serde_json::from_str::<Value>(&board.whole("one-1")).expect("JSON")
}

/// A column of the only series of a kind and name.
fn column(result: &Value, kind: &str, name: &str, column: &str) -> Vec<f64> {
    let all = result["series"].as_array().expect("series");
    let found = all.iter().filter(|one| one["kind"] == kind && one["name"] == name).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found[0]["columns"][column].as_array().expect("a column").iter().filter_map(Value::as_f64).collect()
}

#[test]
fn growth_has_what_is_new_and_the_whole_has_everything() {
    let mut board = board();
    board.add(&samples([sample("a", 0.1, 1.0), sample("a", 0.2, 2.0)]));
    let first = growth(&mut board);
    assert_eq!(column(&first["results"][0], "goodput", "a", "goodput_mbps"), [1.0, 2.0]);
    assert_eq!(board.growth(true), None, "nothing is new");
    board.add(&samples([sample("a", 0.3, 3.0)]));
    let second = growth(&mut board);
    assert_eq!(column(&second["results"][0], "goodput", "a", "t"), [0.3]);
    assert_eq!(column(&second["results"][0], "samples", "a", "cwnd_bytes"), [14_480.0]);
    assert_eq!(column(&whole(&board)["results"][0], "goodput", "a", "t"), [0.1, 0.2, 0.3]);
    assert_eq!(whole(&board)["last"], "one-1");
}

#[test]
fn every_sample_is_kept_however_many_come_at_once() {
    let mut board = board();
    board.add(&samples((0..1_000_u32).map(|n| sample("a", f64::from(n) / 10.0, f64::from(n % 7)))));
    let goodput = column(&growth(&mut board)["results"][0], "goodput", "a", "goodput_mbps");
    assert_eq!(goodput, (0..1_000_u32).map(|n| f64::from(n % 7)).collect::<Vec<_>>());
}

#[test]
fn rows_of_flows_links_and_ues_are_those_so_far_and_so_are_the_means() {
    let mut board = board();
    for goodput_mbps in [4.0, 8.0] {
        let mut tables = Tables::default();
        let row = FlowRow {
            flow: "a",
            transport: "tcp",
            goodput_mbps,
            bytes: (goodput_mbps * 125e3) as u64,
            measured_to_s: 1.0,
            rtt_p50_ms: Some(10.0 * goodput_mbps),
            ..FlowRow::default()
        };
        tables.flows.push(&row);
        tables.rtts.push(&RttRow { flow: "a", rtt_ms: 10.0 * goodput_mbps, count: 3, ..RttRow::default() });
        tables.links.push(&LinkRow { link: "l", utilisation: goodput_mbps / 10.0, ..LinkRow::default() });
        tables.ues.push(&UeRow {
            ue: "u",
            direction: "downlink",
            mbits: goodput_mbps,
            measured_s: 1.0,
            ..UeRow::default()
        });
        tables.transfers.push(&TransferRow { flow: "a", completion_s: Some(goodput_mbps), ..TransferRow::default() });
        board.add(&tables);
    }
    let grown = &growth(&mut board)["results"][0];
    for of in ["flows", "links", "ues"] {
        assert_eq!(grown[of].as_array().map(Vec::len), Some(1), "{of}");
    }
    assert_eq!(grown["flows"][0]["goodput_mbps"], 8.0);
    let point = &grown["summary"]["points"][0];
    assert_eq!(point["goodput_mbps"]["mean"], 8.0);
    assert_eq!(
        (&point["rtt_p50_ms"]["mean"], &point["flows"][0]["completion_p50_s"]["mean"]),
        (&80.0.into(), &8.0.into())
    );
    assert_eq!(point["links"][0]["utilisation"]["mean"], 0.8);
    assert_eq!(column(grown, "transfers", "a", "x"), [8.0]);
    assert_eq!(whole(&board)["results"][0]["summary"]["points"][0], *point);
}

#[test]
fn each_run_counts_once_in_the_means_of_its_point() {
    let points = ["0.1", "0.2"].map(|loss| Point { values: [("loss".to_owned(), loss.into())].into() });
    let meta = Meta { points: points.to_vec(), runs: 2, ..Meta::default() };
    let mut board = Board::new("one".to_owned(), "sweep", meta, false);
    for (point, run, bytes) in [(0, 0, 125_000), (1, 0, 250_000), (1, 1, 500_000)] {
        let mut tables = Tables::default();
        let row = FlowRow { point, run, flow: "a", transport: "tcp", bytes, measured_to_s: 1.0, ..FlowRow::default() };
        tables.flows.push(&row);
        board.add(&tables);
    }
    let grown = growth(&mut board);
    let of = |point: usize| &grown["results"][0]["summary"]["points"][point];
    assert_eq!((&of(0)["values"]["loss"], &of(1)["values"]["loss"]), (&"0.1".into(), &"0.2".into()));
    assert_eq!((&of(0)["goodput_mbps"]["mean"], &of(0)["goodput_mbps"]["n"]), (&1.0.into(), &1.into()));
    assert_eq!((&of(1)["goodput_mbps"]["mean"], &of(1)["goodput_mbps"]["n"]), (&3.0.into(), &2.into()));
    // Only what has changed is sent again.
    let mut tables = Tables::default();
    tables.flows.push(&FlowRow { run: 1, flow: "a", transport: "tcp", measured_to_s: 1.0, ..FlowRow::default() });
    board.add(&tables);
    let points = growth(&mut board)["results"][0]["summary"]["points"].clone();
    assert_eq!((points.as_array().map(Vec::len), &points[0]["point"]), (Some(1), &0.into()));
}

#[test]
fn long_series_are_bounded_and_keep_their_peaks_and_ends() {
    let mut board = board();
    let mut t = 0.0;
    for _ in 0..200 {
        let rows = (0..100).map(|_| {
            t += 0.1;
            sample("a", t, if (t - 50.0_f64).abs() < 0.05 { 1e4 } else { 5.0 })
        });
        board.add(&samples(rows));
        growth(&mut board);
    }
    let result = &whole(&board)["results"][0];
    let (times, goodput) = (column(result, "goodput", "a", "t"), column(result, "goodput", "a", "goodput_mbps"));
    assert!(times.len() <= 2 * board.live().points && times.len() > board.live().points, "{}", times.len());
    assert!(
        times.is_sorted_by(|a, b| a < b) && (times[0] - 0.1).abs() < 1e-9 && (times[times.len() - 1] - t).abs() < 0.1
    );
    assert!(goodput.contains(&1e4), "the peak is kept");
    let last: Vec<f64> = times[times.len() - 500..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(last.iter().all(|step| (step - 0.1).abs() < 0.06), "the newest samples are whole");
}

#[test]
fn many_series_get_coarser_rather_than_too_many() {
    let mut board = board();
    let names: Vec<String> = (0..MOST_FLOWS).map(|n| format!("flow {n}")).collect();
    for second in 0..120 {
        let rows = |k: u32| names.iter().map(move |name| sample(name, f64::from(second) + f64::from(k) / 10.0, 1.0));
        board.add(&samples((0..10).flat_map(rows)));
    }
    growth(&mut board);
    assert!(board.live().points < 1_500);
    let text = board.whole("x");
    assert!(text.len() < 6 * MOST_VALUES, "{} bytes", text.len());
}

#[test]
fn flows_beyond_the_first_ones_are_a_sum_and_silent_ones_make_room() {
    let mut board = board();
    let names: Vec<String> = (0..1_000).map(|n| format!("flow {n:04}")).collect();
    for t in [1.0, 2.0] {
        board.add(&samples(names.iter().map(|name| sample(name, t, 0.5))));
    }
    let grown = growth(&mut board);
    assert_eq!(column(&grown["results"][0], "goodput", OTHERS, "goodput_mbps"), [400.0, 400.0]);
    assert_eq!(grown["live"]["left_out"], 800);
    // All are silent, and then another one comes.
    board.add(&samples([sample("flow 0999", 3.0 + SILENCE_S, 1.0), sample("late", 3.0 + SILENCE_S, 1.0)]));
    let grown = growth(&mut board);
    assert_eq!(grown["results"][0]["gone"].as_array().map(Vec::len), Some(2));
    assert_eq!(column(&grown["results"][0], "goodput", "late", "t"), [3.0 + SILENCE_S]);
    assert_eq!(grown["live"]["left_out"], 799);
}

#[test]
fn a_flow_that_is_forgotten_leaves_nothing() {
    let mut board = board();
    let mut tables =
        samples([sample("a", 0.1, 1.0), SampleRow { conn: 1, ..sample("a", 0.1, 1.0) }, sample("b", 0.1, 2.0)]);
    tables.flows.push(&FlowRow { flow: "a", transport: "tcp", measured_to_s: 1.0, ..FlowRow::default() });
    board.add(&tables);
    growth(&mut board);
    board.forget("a");
    let grown = growth(&mut board);
    let gone = serde_json::json!([{ "name": "a", "conn": 0 }, { "name": "a", "conn": 1 }]);
    assert_eq!(grown["results"][0]["gone"], gone);
    let text = whole(&board)["results"][0]["series"].to_string();
    assert!(!text.contains("\"a\"") && text.contains("\"b\""), "{text}");
    assert_eq!(whole(&board)["results"][0]["flows"], serde_json::json!([]));
    assert!(board.latest().iter().all(|one| one.name == "b"));
    board.forget("a");
    assert_eq!(growth(&mut board)["results"][0]["gone"], serde_json::json!([]));
}

#[test]
fn a_ue_that_is_forgotten_leaves_nothing() {
    let mut board = board();
    let add = |board: &mut Board, t_s: f64, ues: &[&str]| {
        let mut tables = Tables::default();
        for ue in ues {
            tables.radio.push(&RadioRow { ue, t_s, cell: "c", dl_mbps: 1.0, ..RadioRow::default() });
            tables.ues.push(&UeRow { ue, direction: "downlink", measured_s: 1.0, ..UeRow::default() });
        }
        board.add(&tables);
    };
    add(&mut board, 1.0, &["a", "b"]);
    growth(&mut board);
    board.forget_ue("a");
    let grown = growth(&mut board);
    assert_eq!(grown["results"][0]["gone"], serde_json::json!([{ "name": "a", "conn": null }]));
    let of_point = |grown: &Value| grown["results"][0]["summary"]["points"][0]["ues"].as_array().map(Vec::len);
    assert_eq!(of_point(&grown), Some(1), "the means are renewed");
    let all = whole(&board)["results"][0].clone();
    assert_eq!((all["ues"].as_array().map(Vec::len), &all["ues"][0]["ue"]), (Some(1), &"b".into()));
    assert!(!all["series"].to_string().contains("\"a\""), "{all}");
    let names = |board: &Board| board.latest().iter().map(|one| one.name.to_owned()).collect::<Vec<_>>();
    assert!(names(&board).iter().all(|name| name != "a") && names(&board).contains(&"c".to_owned()));
    // It comes back before anybody has seen that it was gone.
    board.forget_ue("b");
    add(&mut board, 2.0, &["b"]);
    let grown = growth(&mut board);
    assert_eq!(grown["results"][0]["gone"], serde_json::json!([{ "name": "b", "conn": null }]));
    assert_eq!((&grown["results"][0]["ues"][0]["ue"], of_point(&grown)), (&"b".into(), Some(1)));
    assert_eq!(column(&whole(&board)["results"][0], "radio", "b", "t"), [2.0]);
    board.forget_ue("nobody");
    assert_eq!(growth(&mut board)["results"][0]["gone"], serde_json::json!([]));
}

#[test]
fn a_flow_that_goes_on_makes_no_room_however_long_a_look_was_ago() {
    let mut board = board();
    let names: Vec<String> = (0..=MOST_FLOWS + 1).map(|n| format!("flow {n:04}")).collect();
    let at = |t: f64, flows: &[String]| samples(flows.iter().map(|name| sample(name, t, 0.5)));
    board.add(&at(1.0, &names[..MOST_FLOWS]));
    // The first one has ended, and another one takes its place.
    let mut going_on = names[1..=MOST_FLOWS].to_vec();
    board.add(&at(10.0 + SILENCE_S, &going_on));
    let gone = |grown: &Value| grown["results"][0]["gone"].as_array().map(Vec::len);
    assert_eq!(gone(&growth(&mut board)), Some(1));
    // A later one precedes it in the table, and finds no room.
    going_on.insert(0, names[MOST_FLOWS + 1].clone());
    board.add(&at(20.0 + 2.0 * SILENCE_S, &going_on));
    let grown = growth(&mut board);
    assert_eq!((gone(&grown), &grown["live"]["left_out"]), (Some(0), &1.into()));
}

#[test]
fn cells_keep_their_numbers_from_one_part_to_the_next() {
    let mut board = board();
    for (t_s, cell) in [(1.0, "b"), (2.0, "a"), (3.0, "b"), (4.0, "")] {
        let mut tables = Tables::default();
        tables.radio.push(&RadioRow { ue: "u", t_s, cell, ..RadioRow::default() });
        board.add(&tables);
    }
    let series = whole(&board)["results"][0]["series"].clone();
    let radio = series.as_array().and_then(|all| all.iter().find(|one| one["kind"] == "radio")).expect("it is there");
    assert_eq!(radio["cells"], serde_json::json!(["b", "a"]));
    assert_eq!(radio["columns"]["cell"], serde_json::json!([0.0, 1.0, 0.0, null]));
}

#[test]
fn events_and_handovers_are_sent_once_and_bounded() {
    let mut board = board();
    board.note(Some(1.0), "command `rate s1 5 Mbit/s`");
    let mut tables = Tables::default();
    tables.mobility.push(&MobilityRow { t_s: 2.0, ue: "u", event: "connected", cell: "b", ..MobilityRow::default() });
    board.add(&tables);
    let grown = growth(&mut board);
    assert_eq!(grown["events"][0]["text"], "command `rate s1 5 Mbit/s`");
    assert_eq!(grown["results"][0]["mobility"][0]["cell"], "b");
    board.note(None, "more");
    assert_eq!(growth(&mut board)["events"], serde_json::json!([{ "t_s": null, "text": "more" }]));
    (0..10_000).for_each(|n| board.note(None, format!("{n}")));
    assert!(whole(&board)["events"].as_array().is_some_and(|all| all.len() <= 2_000));
}

#[test]
fn the_newest_values_are_those_of_a_single_run() {
    let mut board = board();
    let mut tables = samples([sample("a", 0.1, 1.0), sample("a", 0.2, 2.5)]);
    tables.queues.push(&QueueRow { link: "l", t_s: 0.2, bytes: 77, ..QueueRow::default() });
    board.add(&tables);
    let latest = board.latest();
    let value = |of, column| latest.iter().find(|one| (one.of, one.column) == (of, column)).map(|one| one.value);
    assert_eq!((value("flow", "goodput_mbps"), value("link", "bytes")), (Some(2.5), Some(77.0)));
    assert_eq!(value("flow", "t"), None);
    board.add(&samples([SampleRow { run: 1, ..sample("a", 0.1, 1.0) }]));
    assert!(board.latest().is_empty());
}

#[test]
fn columns_that_a_source_does_not_know_are_nowhere() {
    let mut board = board();
    board.leave_out(&["cwnd_bytes", "in_flight_bytes"]);
    board.add(&samples([SampleRow { srtt_ms: Some(20.0), ..sample("a", 0.1, 1.0) }]));
    assert!(board.latest().iter().all(|one| one.column != "cwnd_bytes"));
    for data in [growth(&mut board), whole(&board)] {
        let result = &data["results"][0];
        assert_eq!(column(result, "samples", "a", "srtt_ms"), [20.0]);
        assert!(!result["series"].to_string().contains("cwnd_bytes"));
    }
}

#[test]
fn columns_that_a_source_does_not_know_of_one_queue_are_known_of_others() {
    let mut board = board();
    board.leave_out_of("modem", &["packets", "dropped"]);
    let mut tables = Tables::default();
    for link in ["host", "modem"] {
        tables.queues.push(&QueueRow { link, t_s: 0.1, packets: 2, bytes: 3_000, dropped: 1, ..QueueRow::default() });
    }
    board.add(&tables);
    let columns: Vec<String> = board.latest().iter().map(|one| format!("{} {}", one.name, one.column)).collect();
    assert_eq!(
        columns,
        ["host packets", "host bytes", "host dropped", "host marked", "modem bytes", "modem marked"],
        "in the order of names"
    );
    for data in [growth(&mut board), whole(&board)] {
        let result = &data["results"][0];
        assert_eq!(column(result, "queue", "host", "dropped"), [1.0]);
        let series = result["series"].as_array().expect("series");
        let modem = series.iter().find(|one| one["name"] == "modem").expect("it is there");
        assert_eq!(
            (&modem["columns"]["bytes"], &modem["columns"]["dropped"]),
            (&serde_json::json!([3e3]), &Value::Null)
        );
    }
}

#[test]
fn columns_that_a_source_does_not_know_are_in_no_row() {
    let mut board = board();
    board.leave_out(&["retransmissions", "padding_bytes"]);
    let mut tables = Tables::default();
    tables.ues.push(&UeRow { ue: "u", direction: "downlink", blocks: 5, measured_s: 1.0, ..UeRow::default() });
    board.add(&tables);
    for data in [growth(&mut board), whole(&board)] {
        let row = &data["results"][0]["ues"][0];
        assert_eq!((&row["blocks"], &row["utilisation"]), (&5.into(), &Value::Null));
        assert!(row.get("utilisation").is_some() && row.get("retransmissions").is_none(), "{row}");
        assert!(data["results"][0]["summary"]["points"][0]["ues"][0]["downlink"]["utilisation"].is_null());
    }
}

#[test]
fn shares_and_queues_that_are_not_known_are_gaps() {
    let mut board = board();
    let mut at = |t_s: f64, rows: [(&str, Option<f64>, Option<u64>); 2]| {
        let mut tables = Tables::default();
        for (ue, dl_cell_prbs, dl_queue_bytes) in rows {
            let row = RadioRow {
                ue,
                t_s,
                cell: "c",
                dl_prbs: dl_cell_prbs,
                dl_cell_prbs,
                dl_queue_bytes,
                ..RadioRow::default()
            };
            tables.radio.push(&row);
        }
        board.add(&tables);
    };
    at(1.0, [("a", Some(0.25), Some(100)), ("b", None, None)]);
    at(2.0, [("a", None, None), ("b", None, Some(0))]);
    let result = &whole(&board)["results"][0];
    let series = |kind: &str, name: &str| {
        let all = result["series"].as_array().expect("series").iter();
        all.clone().find(|one| one["kind"] == kind && one["name"] == name).expect("it is there")["columns"].clone()
    };
    assert_eq!(series("cell", "c")["dl_prbs"], serde_json::json!([0.25, null]), "the sum of those that are known");
    assert_eq!(series("radio", "a")["dl_queue_bytes"], serde_json::json!([100.0, null]));
    assert_eq!(series("radio", "b")["dl_queue_bytes"], serde_json::json!([null, 0.0]));
    let latest = board.latest();
    let value = |name, column| latest.iter().find(|one| (one.name, one.column) == (name, column)).map(|one| one.value);
    assert_eq!(
        (value("b", "dl_queue_bytes"), value("a", "dl_queue_bytes"), value("c", "dl_prbs")),
        (Some(0.0), None, None)
    );
    assert_eq!(value("a", "dl_prbs"), None);
}

#[test]
fn the_page_may_connect_to_its_own_server_alone() {
    let page = page(board().whole("one-0"));
    assert!(page.contains("default-src 'none'; connect-src 'self'; script-src"));
    assert!(page.contains("\"last\":\"one-0\""));
    assert!(!page.contains("RANWAY-DATA"));
}
