//! Pages in Debian's Chromium: that of `--dashboard`, and the book.

use crate::common::shown::{SCENARIO, Shown, short};
use crate::common::{CELLS, PATIENT, may, scratch, text};
use netio::program::find_program;
use record::Results;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::realtime::{Watch, conclusive};
use testkit::root::{has_program, has_program_of};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_there(program: &str) -> bool {
    find_program(program.as_ref()).is_some()
}

/// A script of `web/scripts`, which drives Chromium. Without what it needs, the test is skipped or fails.
fn script(name: &str) -> Option<Command> {
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().any(is_there);
    let all = chromium && is_there("node") && root().join("web/node_modules/playwright-core").exists();
    if !has_program(all, "chromium, node or web/node_modules") {
        return None;
    }
    let mut command = Command::new("node");
    command.arg(root().join("web/scripts").join(name));
    Some(command)
}

/// A page in Chromium, which does `steps` in order.
struct Browser(Child);

impl Browser {
    /// Opens `url`. Without Chromium or Playwright, the test is skipped or fails ([`testkit::root::has_program`]).
    fn open(url: &str, steps: &Value) -> Option<Browser> {
        let mut command = script("dashboard.mjs")?;
        command.args([url, &steps.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(Browser(command.spawn().expect("node is there")))
    }

    /// Waits until the page prints `line`.
    fn await_line(&mut self, line: &str) {
        let stdout = self.0.stdout.as_mut().expect("piped");
        let mut said = Vec::new();
        while !said.ends_with(format!("{line}\n").as_bytes()) {
            let mut byte = [0];
            assert_eq!(stdout.read(&mut byte).expect("it is open"), 1, "it ended: {}", text(&said));
            said.extend(byte);
        }
    }

    fn go_on(&mut self) {
        self.0.stdin.as_mut().expect("piped").write_all(b"go\n").expect("it reads");
    }

    /// What it has found in the end.
    fn found(mut self) -> Value {
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        let found: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).expect("JSON");
        assert!(found["failed"].is_null() && found["errors"] == json!([]), "{found}");
        found
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fails if something on a light or a dark page is hard to see, or if there was nothing of these kinds (`contrast.mjs`).
fn assert_is_seen(contrast: &Value, kinds: &[&str]) {
    for look in ["light", "dark"] {
        let found = &contrast[look];
        assert_eq!(found["wrong"], json!([]), "{look}");
        for kind in kinds {
            assert!(found["seen"][kind].as_u64().is_some_and(|n| n > 0), "{look}: no {kind}: {found}");
        }
    }
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().expect("a list").iter().map(|one| one.as_f64().expect("a number")).collect()
}

/// The median and the largest of some numbers.
fn median_and_worst(of: &Value) -> (f64, f64) {
    let mut all = numbers(of);
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], all[all.len() - 1])
}

/// Fails if a page did not do what its reader wanted (`interaction.mjs`), got no new data meanwhile, or needed more than so many
/// milliseconds for it: the medians for a single plot or field, and for a zoom of all plots. The longest of all depends on what else
/// the machine does.
fn assert_answers(found: &Value, single_ms: f64, zoom_ms: f64) {
    let found = &found["interact"];
    assert_eq!(found["wrong"], json!([]));
    assert!(found["moments"].as_array().is_some_and(|moments| moments.len() > 1), "{}", found["moments"]);
    for (what, most) in [("hover", single_ms), ("toggle", single_ms), ("keys", single_ms), ("zoom", zoom_ms)] {
        let (median, worst) = median_and_worst(&found[what]);
        println!("{what}: {median:.0} ms (median), {worst:.0} ms (longest)");
        assert!(median < most, "{what}: {median:.0} ms of {most:.0} ms");
    }
    let (median, worst) = median_and_worst(&found["frames"]);
    println!("frames: {median:.0} ms (median), {worst:.0} ms (longest)");
    assert!(median < 50.0, "half of the frames take more than {median:.0} ms");
    // Drawing rests four times as long as it takes.
    let frames = numbers(&found["frames"]);
    let busy = frames.iter().filter(|ms| **ms > 100.0).sum::<f64>() / frames.iter().sum::<f64>();
    assert!(busy < 0.5, "in {:.0} % of the time, a frame takes more than 100 ms", busy * 100.0);
}

/// Reads the goodput's plot through its own button.
const PLOTTED: &str = r#"(async () => {
    let text = "";
    URL.createObjectURL = (blob) => { blob.text().then((all) => (text = all)); return "data:,"; };
    const figure = [...document.querySelectorAll("figure")].find((one) => one.querySelector("figcaption b")?.firstChild.textContent === "Goodput");
    [...figure.querySelectorAll(".save button")].find((one) => one.textContent === "CSV").click();
    while (text === "") await new Promise((done) => setTimeout(done, 50));
    return text;
})()"#;

#[test]
fn root_the_page_of_an_emulation_plots_its_values_takes_commands_and_stays_after_the_end() {
    if !may() {
        return;
    }
    let dir = scratch(SCENARIO);
    let args =
        ["emulate", "net.toml", "--max-lateness", "1 s", "--set", "duration=\"30 s\"", "--dashboard", "--out", "out"];
    let shown = Shown::start(dir.path(), &args);
    let steps = json!([
        { "wait": "live" },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "command": ["loss", "wire", "0.05"] },
        { "command": ["rate", "wire", "4 Mbit/s"] },
        { "until": "document.querySelector('.log')?.textContent.includes('rate wire')" },
        { "wait": "ended", "s": 80 },
        { "until": "document.querySelector('.live a')?.href.startsWith('blob:')" },
        { "contrast": "contrast" },
        { "read": "plotted", "script": PLOTTED },
        { "read": "bar", "script": "document.querySelector('.live').textContent" },
        { "inject": "injected" },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    let (code, said) = shown.end();
    assert!(matches!(code, Some(0 | 3)), "{said}");
    assert_eq!(found["injected"], "script-src-elem", "the policy permits only the page's own script");
    assert!(found["bar"].as_str().is_some_and(|bar| bar.starts_with("ended")), "{found}");
    assert_is_seen(&found["contrast"], &["texts", "fields", "canvases"]);
    let results = Results::read(&dir.path().join("out")).expect("results");
    let own = results.tables.samples.iter().filter(|row| row.flow == "download");
    let own: Vec<(f64, f64)> = own.map(|row| (short(row.t_s), short(row.goodput_mbps))).collect();
    let lines = found["plotted"].as_str().expect("text").lines().filter_map(|line| line.strip_prefix("download,"));
    let plotted: Vec<(f64, f64)> = lines
        .filter_map(|line| line.split_once(',').and_then(|(t, y)| Some((t.parse().ok()?, y.parse().ok()?))))
        .collect();
    assert!(plotted.len() > 100, "{}", plotted.len());
    // The last samples may come after the last look.
    assert_eq!(plotted[..], own[..plotted.len()]);
    assert!(own.len() - plotted.len() < 20, "{} of {}", plotted.len(), own.len());
    let late = own.iter().filter(|(t, _)| *t > 25.0).map(|(_, mbps)| mbps).sum::<f64>() / 50.0;
    assert!(late < 4.0, "the rate was changed: {late} Mbit/s");
    let lost = results.tables.links.iter().any(|row| row.link == "wire" && row.dropped_loss > 0);
    assert!(lost, "the loss was changed");
}

/// A script that returns whether something is so of `sinr`, the phone's newest SINR in the metrics, which are what the page plots.
fn sinr_is(condition: &str) -> String {
    let pattern = r#"/ranway_ue_sinr_db\{ue="phone"\} (\S+)/"#;
    format!(
        "(async () => {{ const sinr = Number({pattern}.exec(await (await fetch('metrics')).text())?.[1]); return {condition}; }})()"
    )
}

#[test]
fn root_each_control_of_the_radio_has_its_effect() {
    if !may() {
        return;
    }
    let dir = scratch(&CELLS.replace("5 s", "100 s"));
    let args = [&["emulate", "net.toml"][..], &PATIENT, &["--dashboard", "--out", "out"]].concat();
    let shown = Shown::start(dir.path(), &args);
    let served_by = |cell: &str| {
        format!("document.querySelector('.map-figure svg')?.getAttribute('aria-label').endsWith('served by {cell}')")
    };
    let steps = json!([
        { "wait": "live" },
        { "until": served_by("cell-1") },
        { "until": sinr_is("sinr > 20") },
        { "command": ["load", "cell-2", "1"] },
        { "until": sinr_is("sinr < 15") },
        { "command": ["sinr", "phone", "-3.5"] },
        { "until": sinr_is("Math.abs(sinr + 3.5) < 0.5") },
        { "command": ["sinr", "phone", "off"] },
        { "until": sinr_is("sinr > 0 && sinr < 15") },
        { "command": ["load", "cell-2", "0"] },
        { "until": sinr_is("sinr > 20") },
        { "command": ["handover", "phone", "cell-2"] },
        { "until": served_by("cell-2") },
        { "command": ["handover", "phone", "cell-2"] },
        { "read": "refused", "script": "document.querySelector('.answer').textContent" },
        { "until": "document.querySelector('.log').textContent.split('command `handover').length > 2" },
        { "read": "log", "script": "[...document.querySelectorAll('.log li')].map((one) => one.lastChild.textContent)" },
        { "contrast": "contrast" },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    shown.signal("-INT");
    let (code, said) = shown.end();
    assert!(matches!(code, Some(3 | 130)), "{code:?}: {said}");
    assert_eq!(found["refused"], "handover phone cell-2: the cell already serves the UE");
    let log: Vec<&str> = found["log"].as_array().expect("a list").iter().filter_map(Value::as_str).rev().collect();
    let commands: Vec<&str> = log.iter().copied().filter(|line| line.starts_with("command ")).collect();
    let given = ["load cell-2 1", "sinr phone -3.5", "sinr phone off", "load cell-2 0", "handover phone cell-2"];
    assert_eq!(commands[..5], given.map(|line| format!("command `{line}`")));
    assert_eq!(commands[5..], ["command `handover phone cell-2`: the cell already serves the UE"]);
    assert!(log.contains(&"phone: connected (cell-2)"), "{log:?}");
    assert_is_seen(&found["contrast"], &["texts", "labels", "shapes", "fields", "canvases"]);
    let results = Results::read(&dir.path().join("out")).expect("results");
    assert!(results.tables.radio.iter().any(|row| row.sinr_db.is_some_and(|db| (db + 3.5).abs() < 0.5)), "SINR");
    let handed_over = results.tables.mobility.iter().any(|row| row.event == "connected" && row.cell == "cell-2");
    assert!(handed_over, "handover");
}

/// Reads what the map shows, in pixels from its upper left corner.
const MAP: &str = r#"(() => {
    const picture = document.querySelector(".map-figure svg");
    const { left, top, width, height } = picture.getBoundingClientRect();
    const box = (one) => (({ x, y, width, height }) => ({ left: x - left, top: y - top, width, height }))(one.getBoundingClientRect());
    const markers = (kind) => [...picture.querySelectorAll(kind)].map((one) => ({ name: one.querySelector("title").textContent, fill: one.getAttribute("fill"), ...box(one) }));
    const font = (one) => (parseFloat(getComputedStyle(one).fontSize) * width) / picture.viewBox.baseVal.width;
    const labels = [...picture.querySelectorAll("text")].map((one) => ({ name: one.textContent, font: font(one), ...box(one) }));
    return { width, height, told: picture.getAttribute("aria-label"), cells: markers(".cell"), ues: markers(".ue"), lines: picture.querySelectorAll(".serves").length, labels };
})()"#;

/// Left, top, right and bottom of something that [`MAP`] has read.
fn sides(of: &Value) -> [f64; 4] {
    let [left, top, width, height] = ["left", "top", "width", "height"].map(|key| of[key].as_f64().expect("a number"));
    [left, top, left + width, top + height]
}

/// Fails unless the map of five cells, 500 m from each other, has all of them and the car where its description says, and labels that
/// can be read. Returns how far east the car is, in metres.
fn assert_map(map: &Value) -> f64 {
    let list = |key: &str| map[key].as_array().expect("a list");
    let [cells, ues, labels] = ["cells", "ues", "labels"].map(list);
    let (cell_names, names): (Vec<_>, Vec<_>) =
        (cells.iter().map(|cell| &cell["name"]).collect(), labels.iter().map(|label| &label["name"]).collect());
    assert_eq!(cell_names, ["cell-1", "cell-2", "cell-3", "cell-4", "cell-5"]);
    assert_eq!(names, ["cell-1", "cell-2", "cell-3", "cell-4", "cell-5", "car"], "all have labels");
    // A cell is in the middle of its triangle's width, 8 pixels below its upper corner.
    let masts: Vec<[f64; 2]> =
        cells.iter().map(sides).map(|[left, top, right, _]| [(left + right) / 2.0, top + 8.0]).collect();
    let scale = (masts[4][0] - masts[0][0]) / 2_000.0;
    let width = map["width"].as_f64().expect("a number");
    assert!(scale * 2_000.0 > width * 0.7, "the map is filled: {map}");
    for (n, [x, y]) in masts.iter().enumerate() {
        assert!((x - masts[0][0] - n as f64 * 500.0 * scale).abs() < 1.0 && (y - masts[0][1]).abs() < 1.0, "{map}");
    }
    let told = map["told"].as_str().expect("text");
    let (east, serving) = told
        .strip_prefix("Map. car at ")
        .and_then(|rest| rest.split_once(" m east, 20 m north, served by "))
        .unwrap_or_else(|| panic!("{told}"));
    let east: f64 = east.parse().expect("metres");
    let [left, top, right, bottom] = sides(&ues[0]);
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    // Its description has whole metres.
    assert!((x - masts[0][0] - east * scale).abs() < 1.0 + scale, "{map}");
    assert!((y - masts[0][1] + 20.0 * scale).abs() < 1.0, "{map}");
    let cell = cells.iter().find(|cell| cell["name"] == serving).expect("a cell serves it");
    assert_eq!(
        (&ues[0]["fill"], &map["lines"]),
        (&cell["fill"], &json!(1)),
        "it has its cell's colour and a line to it"
    );
    let height = map["height"].as_f64().expect("a number");
    let mut boxes: Vec<[f64; 4]> = Vec::new();
    for label in labels {
        assert!(label["font"].as_f64().is_some_and(|pixels| pixels >= 11.0), "{label}");
        let [left, top, right, bottom] = sides(label);
        assert!(left >= 0.0 && top >= 0.0 && right <= width && bottom <= height, "{label} is within the map");
        let is_free = |other: &[f64; 4]| right <= other[0] || left >= other[2] || bottom <= other[1] || top >= other[3];
        assert!(boxes.iter().all(is_free), "{label} is on no other one: {map}");
        boxes.push([left, top, right, bottom]);
    }
    east
}

#[test]
fn root_the_map_has_cells_and_ues_where_they_are_and_can_be_read_on_a_phone() {
    if !may() {
        return;
    }
    let dir = scratch("include = [\"preset:lte-drive\"]\nduration = \"100 s\"\n[[flows]]\nname = \"download\"\n");
    let args = [&["emulate", "net.toml"][..], &PATIENT, &["--dashboard", "--out", "out"]].concat();
    let shown = Shown::start(dir.path(), &args);
    // It is drawn for the width that it has now.
    let served = "(() => { const picture = document.querySelector('.map-figure svg'); \
                  return /served by cell/.test(picture?.getAttribute('aria-label')) \
                  && Math.abs(picture.viewBox.baseVal.width - picture.getBoundingClientRect().width) < 1; })()";
    let moved = "(() => { const told = document.querySelector('.map-figure svg').getAttribute('aria-label'); \
                 window.told ??= told; return told !== window.told && /served by cell/.test(told); })()";
    let steps = json!([
        { "wait": "live" },
        { "until": served },
        { "read": "wide", "script": MAP },
        { "until": moved },
        { "read": "moved", "script": MAP },
        { "contrast": "contrast" },
        { "width": 400 },
        { "until": format!("document.querySelector('.map-figure svg').getBoundingClientRect().width < 400 && {served}") },
        { "read": "narrow", "script": MAP },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    shown.signal("-INT");
    shown.end();
    let [wide, moved, narrow] = ["wide", "moved", "narrow"].map(|name| assert_map(&found[name]));
    assert!(wide < moved && moved <= narrow, "it drives: {wide} m, {moved} m, {narrow} m");
    let widths = ["wide", "narrow"].map(|name| found[name]["width"].as_f64().expect("a number"));
    assert!(widths[0] > 900.0 && widths[1] < 400.0, "{widths:?}");
    assert_is_seen(&found["contrast"], &["labels", "shapes"]);
}

#[test]
fn a_page_comes_back_after_a_restart() {
    let dir = scratch(SCENARIO);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").to_string();
    let start = |out: &str, title: &str| {
        let title = format!("title=\"{title}\"");
        let args =
            ["run", "net.toml", "--set", "duration=\"100000 s\"", "--set", &title, "--dashboard", &free, "--out", out];
        Shown::start(dir.path(), &args)
    };
    let first = start("one", "Before");
    let steps = json!([
        { "wait": "live" },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "line": "seen" },
        { "wait": "reconnecting", "s": 60 },
        { "contrast": "contrast" },
        { "line": "lost" },
        { "wait": "live", "s": 60 },
        { "until": "document.querySelector('h1').textContent === 'After'", "s": 60 },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "read": "title", "script": "document.title" },
    ]);
    let Some(mut browser) = Browser::open(&first.url, &steps) else { return };
    browser.await_line("seen");
    first.signal("-KILL");
    drop(first);
    browser.go_on();
    browser.await_line("lost");
    let second = start("two", "After");
    browser.go_on();
    let found = browser.found();
    assert_eq!(found["title"], "After – Ranway");
    assert_is_seen(&found["contrast"], &["texts", "canvases"]);
    drop(second);
}

#[test]
fn root_a_page_of_a_thousand_flows_answers_its_reader_at_once() {
    if may() {
        conclusive(a_live_page_answers);
    }
}

fn a_live_page_answers(_: &mut Watch) {
    // Ten samples of each flow a second, as they come from a run in real time.
    let scenario = SCENARIO.replace("8 Mbit/s", "100 Mbit/s").replace("20 s", "100 s");
    let dir = scratch(&scenario.replace("name = \"download\"", "name = \"download\"\ncount = 1000"));
    let args = [&["emulate", "net.toml"][..], &PATIENT, &["--dashboard", "--out", "out"]].concat();
    let shown = Shown::start(dir.path(), &args);
    let steps = json!([
        { "wait": "live", "s": 60 },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1 && document.querySelectorAll('tbody tr').length > 90", "s": 60 },
        { "interact": 7 },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    shown.signal("-INT");
    shown.end();
    assert_answers(&found, 100.0, 300.0);
}

#[test]
fn a_thousand_flows_stay_usable_with_keyboard_and_contrast() {
    conclusive(a_thousand_flows_are_usable);
}

fn a_thousand_flows_are_usable(_: &mut Watch) {
    // The simulation runs much faster than real time: with ten samples a second, its rows would fill gigabytes.
    let scenario = SCENARIO.replace("8 Mbit/s", "100 Mbit/s").replace("\"100 ms\"", "\"1 s\"");
    let dir = scratch(&scenario.replace("name = \"download\"", "name = \"download\"\ncount = 1000"));
    let args = ["run", "net.toml", "--set", "duration=\"100000 s\"", "--dashboard", "--out", "out"];
    let shown = Shown::start(dir.path(), &args);
    let typed = r##"(async () => {
        const input = document.querySelector("#case input");
        input.focus();
        input.value = "call";
        input.dispatchEvent(new Event("change"));
        await new Promise((done) => setTimeout(done, 3000));
        return [document.querySelector("#case input").value, document.activeElement === document.querySelector("#case input"),
            [...document.querySelectorAll(".keys")][0].textContent];
    })()"##;
    let steps = json!([
        { "wait": "live", "s": 60 },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1 && document.querySelectorAll('tbody tr').length > 90", "s": 60 },
        { "interact": 3 },
        { "contrast": "contrast" },
        { "keyboard": 60 },
        { "read": "typed", "script": typed },
        { "read": "bar", "script": "document.querySelector('.live').textContent" },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    // Much more than in real time arrives at once.
    assert_answers(&found, 300.0, 1_000.0);
    assert_is_seen(&found["contrast"], &["texts", "fields", "canvases"]);
    let stops = found["keyboard"].as_array().expect("a list");
    let interactive: Vec<&Value> = stops.iter().filter(|stop| stop["tag"] != "BODY").collect();
    assert!(interactive.len() > 40, "{stops:?}");
    let is_seen =
        |stop: &&Value| stop["outlined"] == true && stop["seen"].as_f64().is_some_and(|contrast| contrast >= 3.0);
    assert!(interactive.iter().all(is_seen), "the focus is seen: {stops:?}");
    let tops: Vec<i64> = interactive.iter().filter_map(|stop| stop["y"].as_i64()).collect();
    let back = tops.windows(2).filter(|pair| pair[1] < pair[0] - 400).count();
    assert!(back <= 1, "the focus goes from top to bottom: {tops:?}");
    assert_eq!(
        (&found["typed"][0], &found["typed"][1]),
        (&"call".into(), &true.into()),
        "what is typed stays, and so does the focus"
    );
}

#[test]
fn the_book_has_a_search_and_pictures_and_no_dead_link() {
    if !has_program_of("docs", is_there("mdbook"), "mdbook") {
        return;
    }
    let Some(mut read) = script("book.mjs") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let built =
        Command::new("mdbook").args(["build", "docs", "--dest-dir"]).arg(dir.path()).current_dir(root()).output();
    let built = built.expect("it starts");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let output = read.arg(dir.path()).args(["Prometheus", "dashboard.html"]).output().expect("node is there");
    let found = text(&output.stdout);
    let found: Value = serde_json::from_str(&found).unwrap_or_else(|e| panic!("{e}: {found}{}", text(&output.stderr)));
    assert_eq!(found["wrong"], json!([]));
    for (kind, least) in [("pages", 40), ("links", 1_000), ("pictures", 7), ("results", 1)] {
        assert!(found[kind].as_u64().is_some_and(|n| n >= least), "{kind}: {found}");
    }
}
