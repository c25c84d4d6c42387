//! The report: one file that holds its data, whatever the data says, and that stays within its size.

mod made_up;

use record::report::{MAX_BYTES, POINTS_PER_SERIES, compare, html, reproduction};
use record::tables::TransferRow;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The data in the page, found as a browser finds it: up to the first `</script`.
fn data(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let from = page.find(start).expect("the page has data") + start.len();
    let to = from + page[from..].find("</script").expect("the data ends");
    serde_json::from_str(&page[from..to]).expect("the data is JSON")
}

#[test]
fn no_title_breaks_the_page() {
    for title in ["</script><script>alert(1)</script>", "<!--<script>", "\"RANWAY-DATA\"", "a \\u003c b \u{2028} \0 é"]
    {
        let page = html(&made_up::single(title, 10));
        assert_eq!(data(&page)["results"][0]["meta"]["title"], title);
        let scripts = |page: &str| page.matches("<script").count();
        assert_eq!(scripts(&page), scripts(&html(&made_up::single("plain", 10))));
    }
}

#[test]
fn the_page_loads_nothing() {
    let page = html(&made_up::single("plain", 10));
    // A saved plot clips its lines to an area of its own.
    let page = page.replace("url(#area)", "");
    // A live page asks its own server; the policy of a saved one permits no connection.
    for outside in [" src=", "<link", "@import", "url(", "XMLHttpRequest", "connect-src"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

/// Content Security Policy Level 3, section 2.3.1: a script runs if its SHA-256 is in the policy.
#[test]
fn the_policy_permits_the_pages_script_and_no_other() {
    let page = html(&made_up::single("plain", 10));
    let (_, rest) = page.split_once("script-src '").expect("there is a policy");
    let (allowed, _) = rest.split_once("';").expect("it ends");
    let scripts: Vec<&str> = page.split("<script>").skip(1).collect();
    let [script] = scripts[..] else { panic!("{} scripts", scripts.len()) };
    let (script, _) = script.split_once("</script>").expect("it ends");
    let digest = base64(&Sha256::digest(script.as_bytes()));
    assert_eq!(allowed, format!("sha256-{digest}"), "run `npm run build` in web/");
    let (_, handlers) = page.split_once("<body>").expect("there is a body");
    let (before_script, _) = handlers.split_once("<script").expect("there is one");
    assert!(!before_script.contains(" on"), "{before_script}");
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | usize::from(bytes.get(i).copied().unwrap_or(0)));
        let digit = |i: usize| if i <= bytes.len() { char::from(DIGITS[bits >> (18 - 6 * i) & 63]) } else { '=' };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn a_long_series_is_thinned_and_the_page_says_how() {
    let page = html(&made_up::single("long", 20_000));
    let data = data(&page);
    let samples = data["results"][0]["series"].as_array().unwrap().iter().find(|one| one["kind"] == "samples").unwrap();
    assert_eq!(samples["columns"]["t"].as_array().unwrap().len(), POINTS_PER_SERIES);
    assert_eq!(data["shown"]["points_per_series"], POINTS_PER_SERIES);
    assert_eq!(data["shown"]["series"], data["shown"]["series_of"]);
}

#[test]
fn a_large_sweep_stays_within_the_size_and_says_what_is_left_out() {
    // 80 points of 10 runs.
    let results: Vec<_> = (0..10).map(|i| made_up::sweep(&format!("sweep {i}"), 10, 1_000)).collect();
    let page = compare(&results);
    assert!(page.len() <= MAX_BYTES && page.len() > MAX_BYTES / 4, "{}", page.len());
    let data = data(&page);
    let shown = &data["shown"];
    assert!(shown["points_per_series"].as_u64().unwrap() < POINTS_PER_SERIES as u64);
    for result in data["results"].as_array().unwrap() {
        let first_runs = result["series"].as_array().unwrap().iter().filter(|one| one["run"] == 0);
        let points: std::collections::BTreeSet<u64> = first_runs.map(|one| one["point"].as_u64().unwrap()).collect();
        assert_eq!(points.len(), 8, "the first run of every point is there");
        assert_eq!(result["summary"]["points"].as_array().unwrap().len(), 8);
    }
    let series: usize =
        data["results"].as_array().unwrap().iter().map(|result| result["series"].as_array().unwrap().len()).sum();
    assert_eq!(shown["series"], series);
}

#[test]
fn several_results_stand_side_by_side() {
    let page = compare(&[made_up::single("one", 10), made_up::single("two", 10)]);
    let data = data(&page);
    let titles: Vec<&str> =
        data["results"].as_array().unwrap().iter().map(|one| one["meta"]["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["one", "two"]);
}

#[test]
fn published_rows_stand_on_the_page_as_they_are() {
    let rows = [serde_json::json!({
        "paper": "p", "experiment": "e", "variant": "cubic", "parameter": "loss=1e-4", "metric": "</script>",
        "unit": "Mbit/s", "published": 34.34, "published_ci": 0.3, "measured": 34.5, "ci": 0.31, "verdict": "held",
    })];
    let page = reproduction(&rows, &[serde_json::json!({})], &[made_up::single("one", 10)]);
    let data = data(&page);
    assert_eq!(data["reproduction"], serde_json::json!(rows));
    assert_eq!(data["results"][0]["meta"]["title"], "one");
    assert_eq!(self::data(&html(&made_up::single("one", 10)))["reproduction"], serde_json::json!([]));
}

#[test]
fn goodput_is_shown_as_means_that_keep_the_bytes() {
    let results = made_up::single("long", 6_000);
    let page = html(&results);
    let data = data(&page);
    let series = data["results"][0]["series"].as_array().unwrap();
    let goodput =
        series.iter().find(|one| one["kind"] == "goodput").unwrap()["columns"]["goodput_mbps"].as_array().unwrap();
    assert_eq!(goodput.len(), 120);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let shown: Vec<f64> = goodput.iter().map(|value| value.as_f64().unwrap()).collect();
    let sampled: Vec<f64> = results.tables.samples.iter().map(|row| row.goodput_mbps).collect();
    assert!((mean(&shown) / mean(&sampled) - 1.0).abs() < 1e-4);
}

#[test]
fn each_point_has_the_distributions_of_all_its_copies_and_runs() {
    let mut results = made_up::sweep("CDFs", 3, 100);
    let extra = record::tables::OwdRow { point: 0, run: 2, flow: "call", conn: 0, owd_ms: 40.0, count: 3 };
    results.tables.owds.push(&extra);
    results.tables.owds.push(&record::tables::OwdRow { owd_ms: 30.0, conn: 1, count: 1, ..extra });
    let data = data(&html(&results));
    let series = data["results"][0]["series"].as_array().unwrap();
    let merged = |kind: &'static str| series.iter().filter(move |one| one["kind"] == kind && one["conn"].is_null());
    let call = merged("owds").find(|one| one["name"] == "call").unwrap();
    assert_eq!(
        (&call["columns"]["x"], &call["columns"]["share"]),
        (&serde_json::json!([30.0, 40.0]), &serde_json::json!([0.25, 1.0]))
    );
    for kind in ["rtts", "owds"] {
        let points: Vec<u64> =
            merged(kind).filter(|one| one["name"] == "download").map(|one| one["point"].as_u64().unwrap()).collect();
        assert_eq!(points.len(), 8, "one line for each point: {points:?}");
        for one in merged(kind) {
            let share = one["columns"]["share"].as_array().unwrap();
            assert!(share.len() <= 200 && share.last().unwrap() == 1.0);
            let x: Vec<f64> = one["columns"]["x"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            assert!(x.is_sorted(), "{kind}");
        }
    }
}

#[test]
fn the_page_has_delay_loss_and_capacity_over_time() {
    let data = data(&html(&made_up::single("call", 200)));
    let series = data["results"][0]["series"].as_array().unwrap();
    let of = |kind: &str, column: &str| {
        let one = series.iter().find(|one| one["kind"] == kind).unwrap();
        one["columns"][column].as_array().unwrap_or_else(|| panic!("{kind} has no {column}")).clone()
    };
    assert_eq!(of("samples", "owd_ms").len(), 200);
    assert_eq!(of("samples", "lost").iter().filter(|n| !n.is_null()).count(), 3);
    assert!(of("queue", "capacity_mbps").iter().all(|mbps| *mbps == 35.0));
}

#[test]
fn a_transfer_that_did_not_finish_keeps_the_distribution_below_one() {
    let mut results = made_up::single("pages", 10);
    let row = results.tables.transfers.row(0);
    let mut unfinished = record::tables::Transfers::default();
    (0..10).for_each(|index| unfinished.push(&TransferRow { index: 100 + index, completion_s: None, ..row }));
    results.tables.transfers.append(&unfinished);
    let data = data(&html(&results));
    let series = data["results"][0]["series"].as_array().unwrap();
    let transfers = series.iter().find(|one| one["kind"] == "transfers").unwrap();
    assert_eq!(transfers["begun"], 40);
    assert_eq!(transfers["columns"]["share"].as_array().unwrap().last().unwrap(), 0.75);
}

#[test]
fn a_cells_resource_blocks_are_those_of_its_ues() {
    let results = made_up::cells("Cells", 1, 200, 3);
    let data = data(&html(&results));
    let result = &data["results"][0];
    let series = |kind: &str, name: &str| {
        let all = result["series"].as_array().unwrap();
        all.iter().find(|one| one["kind"] == kind && one["name"] == name && one["point"] == 0).unwrap().clone()
    };
    let column = |series: &Value, name: &str| -> Vec<Option<f64>> {
        series["columns"][name].as_array().unwrap().iter().map(Value::as_f64).collect()
    };
    for (name, cell) in [("west", series("cell", "west")), ("east", series("cell", "east"))] {
        let (t, shares) = (column(&cell, "t"), column(&cell, "dl_prbs"));
        assert_eq!(t.len(), 200, "a moment without a UE counts as unused");
        assert!(t.is_sorted_by(|a, b| a < b));
        for i in [0, 77, 199] {
            let moment =
                results.tables.radio.iter().filter(|row| row.point == 0 && (row.t_s - t[i].unwrap()).abs() < 1e-3);
            let expected: f64 = moment.filter(|row| row.cell == name).filter_map(|row| row.dl_cell_prbs).sum();
            assert!((shares[i].unwrap() - expected).abs() < 1e-3, "{name} {i}");
        }
    }
    let ue = series("radio", "ue-2");
    let cells: Vec<&str> = ue["cells"].as_array().unwrap().iter().map(|cell| cell.as_str().unwrap()).collect();
    let rows = results.tables.radio.iter().filter(|row| row.point == 0 && row.ue == "ue-2");
    for (row, cell) in rows.zip(column(&ue, "cell")) {
        assert_eq!(cell.map_or("", |cell| cells[cell as usize]), row.cell);
    }
    assert_eq!(result["ues"].as_array().unwrap().len(), results.tables.ues.iter().len());
    assert_eq!(result["mobility"].as_array().unwrap().len(), results.tables.mobility.iter().len());
}

#[test]
fn the_busiest_ues_are_kept_when_not_all_fit() {
    let results: Vec<_> = (0..6).map(|i| made_up::cells(&format!("{i}"), 10, 1_000, 12)).collect();
    let page = compare(&results);
    assert!(page.len() <= MAX_BYTES && page.len() > MAX_BYTES / 4, "{}", page.len());
    let data = data(&page);
    assert!(data["shown"]["series"].as_u64().unwrap() < data["shown"]["series_of"].as_u64().unwrap());
    let mut parted = 0;
    for (result, embedded) in results.iter().zip(data["results"].as_array().unwrap()) {
        for (point, run) in (0..2).flat_map(|point| (0..10).map(move |run| (point, run))) {
            let mut mbits = std::collections::BTreeMap::<&str, f64>::new();
            for row in result.tables.ues.iter().filter(|row| (row.point, row.run) == (point, run)) {
                *mbits.entry(row.ue).or_default() += row.mbits;
            }
            let kept = embedded["series"].as_array().unwrap().iter().filter(|one| {
                one["kind"] == "radio" && one["point"] == u64::from(point) && one["run"] == u64::from(run)
            });
            let kept: Vec<f64> = kept.filter_map(|one| mbits.remove(one["name"].as_str().unwrap())).collect();
            let least = kept.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(mbits.values().all(|left_out| *left_out <= least), "point {point}, run {run}");
            parted += usize::from(!kept.is_empty() && !mbits.is_empty());
        }
    }
    assert!(parted > 0, "some run's UEs are kept in part");
}
