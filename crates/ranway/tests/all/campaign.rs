//! `ranway campaign` as a user runs it. Tests that need root and TUN report when they are skipped.

use crate::common::{command, eventually, may, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gethostname};
use record::Results;
use record::tables::{MobilityRow, ModemRow};
use sha2::{Digest, Sha256};
use speedtest::rmbt::token::{Key, make_v1};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, at_once, conclusive};

const LINK: &str =
    "duration = '1 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '40 ms'\nqueue = { kind = 'drop-tail', packets = 50 }\n";

/// Twelve tests that take some milliseconds each.
const CAMPAIGN: &str = "title = 'two controls'\ncc = ['cubic', 'bbr']\nflows = [1, 2]\ndirections = ['up']\nrepetitions = 3\nseed = 5\n\
                        time = '2 s'\n[where]\nsimulation = 'link.toml'\n";

fn scratch(campaign: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("link.toml"), LINK).expect("written");
    fs::write(dir.path().join("c.toml"), campaign).expect("written");
    dir
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let args = [&["campaign", "c.toml", "--out", "out"], args].concat();
    command(dir, &args).output().expect("it runs")
}

/// Runs a campaign that must succeed.
fn succeed(dir: &Path, args: &[&str]) -> Output {
    let output = run(dir, args);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Runs a campaign that must be refused as invalid. Returns its only line.
fn refused(dir: &Path) -> String {
    let output = run(dir, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

/// Reads a file of JSON.
fn json(dir: &Path, file: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(dir.join(file)).expect("it was written")).expect("JSON")
}

/// All files below a directory, by their paths in it.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder") {
            let path = folder.join(entry.expect("an entry").file_name());
            match root.join(&path).is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = fs::read(root.join(&path)).expect("a file");
                    found.insert(path.display().to_string(), bytes);
                }
            }
        }
    }
    found
}

/// The results of all tests, but for what depends on the clock.
fn results(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let tests = dir.join("out/tests");
    // Without the folder, none has finished.
    let mut files = if tests.exists() { files(&tests) } else { BTreeMap::new() };
    files.retain(|name, _| !name.ends_with("timing.json") && !name.ends_with("report.html"));
    files
}

#[test]
fn a_campaign_runs_every_combination_in_every_block_and_summarises_them() {
    let dir = scratch(CAMPAIGN);
    let plan = text(&succeed(dir.path(), &["--dry-run"]).stdout);
    assert_eq!(plan.lines().filter(|line| line.contains("flows  up")).count(), 12, "{plan}");
    assert!(!dir.path().join("out").exists(), "a dry run writes nothing");
    succeed(dir.path(), &["--quiet"]);
    let names: BTreeSet<String> = fs::read_dir(dir.path().join("out/tests"))
        .expect("tests")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 12);
    let summary = json(&dir.path().join("out"), "summary.json");
    assert_eq!((&summary["planned"], &summary["finished"]), (&12.into(), &12.into()));
    let combinations = summary["combinations"].as_array().expect("an array");
    assert_eq!(combinations.len(), 4);
    for combination in combinations {
        assert_eq!(combination["tests"], 3);
        let throughput = &combination["measures"]["upload"]["throughput_mbps"];
        let [median, low, high] = ["median", "low", "high"].map(|key| throughput[key].as_f64().expect("a number"));
        // A link of 10 Mbit/s; slow start takes a part of two seconds.
        assert!(low <= median && median <= high && median > 5.0 && high < 10.0, "{throughput}");
        let flows = combination["flows"].as_u64().expect("a number");
        assert_eq!(combination["measures"]["upload"]["flow_goodput_mbps"]["values"], 3 * flows);
        // Three tests: sqrt(ln(40) / 6).
        let distribution = &combination["distributions"]["upload"]["throughput_mbps"];
        assert_eq!(distribution["values"].as_array().map(Vec::len), Some(3), "{distribution}");
        assert!(distribution["band"].as_f64().is_some_and(|band| (band - 0.784_100).abs() < 1e-6), "{distribution}");
    }
    // Each block has both controls with each number of flows.
    let comparisons = summary["comparisons"].as_array().expect("an array");
    let pairs: Vec<_> = comparisons.iter().map(|of| (&of["first"], &of["second"], of["flows"].as_u64())).collect();
    let [cubic, bbr] = ["cubic", "bbr"].map(serde_json::Value::from);
    assert_eq!(pairs, [(&cubic, &bbr, Some(1)), (&cubic, &bbr, Some(2))]);
    for comparison in comparisons {
        let throughput = &comparison["measures"]["upload"]["throughput_mbps"];
        let [median, low, high] = ["median", "low", "high"].map(|key| throughput[key].as_f64().expect("a number"));
        assert!(low <= median && median <= high && throughput["blocks"] == 3, "{throughput}");
    }
    // The same command has nothing to do, and shows the tables once more.
    let before = files(&dir.path().join("out/tests"));
    let shown = text(&succeed(dir.path(), &[]).stdout);
    assert!(shown.contains("within blocks, median difference of two tests:\n"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.trim_start().starts_with("bbr - cubic ")).count(), 2, "{shown}");
    // Three tests bound nothing.
    assert!(!shown.contains('±') && !shown.contains('['), "{shown}");
    assert!(shown.contains("4 rows left out; fewer than 8 tests do not bound the median\n"), "{shown}");
    assert!(shown.contains("fewer than 6 tests: too few for an interval of 95 %\n"), "{shown}");
    assert!(files(&dir.path().join("out/tests")) == before);
    assert!(json(&dir.path().join("out"), "journal.json").as_array().is_some_and(|journal| journal.len() == 12));
    let host = &json(&dir.path().join("out"), "campaign.json")["host"];
    assert!(host["kernel"].is_string() && host["sysctls"]["tcp_congestion_control"].is_string());
}

#[test]
fn a_campaign_has_a_report_page_and_intervals_of_tests_that_are_enough() {
    let dir = scratch(&CAMPAIGN.replace("repetitions = 3", "repetitions = 8").replace("flows = [1, 2]", "flows = [2]"));
    let shown = text(&succeed(dir.path(), &[]).stdout);
    assert_eq!(shown.lines().filter(|line| line.contains("±48 %")).count(), 2, "{shown}");
    assert!(shown.contains("report: out/report.html\n") && !shown.contains("too few"), "{shown}");
    let written = fs::read_to_string(dir.path().join("out/report.html")).expect("it was written");
    let report = |args: &[&str]| command(dir.path(), args).output().expect("it runs");
    let output = report(&["report", "out", "--out", "page.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read_to_string(dir.path().join("page.html")).expect("it was written") == written);
    // A failed or missing test is left out, and the page is that of a part.
    let first = fs::read_dir(dir.path().join("out/tests")).expect("tests").next().expect("a test").expect("an entry");
    fs::remove_dir_all(first.path()).expect("it is removed");
    assert!(report(&["report", "out"]).status.success());
    let data = page_data(&fs::read_to_string(dir.path().join("out/report.html")).expect("it was written"));
    let result = &data["results"][0];
    assert_eq!(result["meta"]["points"][1], serde_json::json!({ "cc": "bbr" }));
    assert_eq!((&result["meta"]["runs"], &result["meta"]["partial"]["finished"]), (&8.into(), &15.into()));
    let goodput = |point: usize| result["summary"]["points"][point]["goodput_mbps"]["n"].as_u64().expect("a number");
    assert_eq!(goodput(0) + goodput(1), 15);
    let campaign = &result["meta"]["scenario"]["campaign"];
    assert_eq!((&campaign["finished"], &campaign["least_tests"]), (&15.into(), &6.into()));
    assert!(campaign["combinations"][0]["measures"]["upload"]["throughput_mbps"]["low"].is_f64(), "{campaign}");
}

/// What a report page is made from.
fn page_data(page: &str) -> serde_json::Value {
    let start = page.find("id=\"data\"").and_then(|at| Some(at + page[at..].find('>')? + 1)).expect("it has data");
    let end = start + page[start..].find("</script>").expect("it ends");
    serde_json::from_str(&page[start..end]).expect("JSON")
}

/// A running program and what it prints. It does not outlive the test.
struct Running(Child, Lines<BufReader<ChildStderr>>);

impl Running {
    fn of(mut command: Command) -> Running {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // It stays open: a program whose terminal is closed ends in order.
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Running(child, lines)
    }

    fn start(dir: &Path) -> Running {
        Running::of(command(dir, &["campaign", "c.toml", "--out", "out"]))
    }

    /// Waits until so many tests have finished, or the campaign has ended.
    fn until(&mut self, tests: usize) {
        let mut finished = self.1.by_ref().map_while(Result::ok).filter(|line| line.contains(": finished in"));
        for _ in 0..tests {
            finished.next();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_campaign_that_is_killed_at_any_point_resumes_to_the_same_results() {
    let whole = scratch(CAMPAIGN);
    succeed(whole.path(), &["--quiet"]);
    let expected = results(whole.path());
    let dir = scratch(CAMPAIGN);
    let mut most = 0;
    // Kills between and amid tests: after so many tests, and so much later. Each run resumes what the one before has left.
    for (tests, later_us) in (0..12).map(|n| (n % 3, n * 731 % 5000)) {
        let mut running = Running::start(dir.path());
        running.until(tests as usize);
        // Without a test to wait for, the start of the program and the creation of the directory are hit.
        let start_us = if tests == 0 { 20_000 + later_us * 9 } else { 0 };
        std::thread::sleep(Duration::from_micros(later_us + start_us));
        drop(running);
        let finished = fs::read_dir(dir.path().join("out/tests")).map_or(0, Iterator::count);
        assert!(finished >= most, "a finished test was lost");
        most = finished;
        // What is there is whole, and the same as without interruption.
        for (name, bytes) in results(dir.path()) {
            assert!(expected.get(&name) == Some(&bytes), "{name}");
        }
    }
    succeed(dir.path(), &["--quiet"]);
    assert!(results(dir.path()) == expected);
    assert!(fs::read_dir(dir.path().join("out/work")).expect("it is there").next().is_none(), "nothing is left behind");
}

#[test]
fn after_an_interruption_the_same_command_resumes() {
    let campaign = CAMPAIGN.replace("time = '2 s'", "time = '20 s'\npause = '100 ms'");
    let dir = scratch(&campaign);
    let mut running = Running::start(dir.path());
    running.until(1);
    kill(Pid::from_raw(running.0.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(running.0.ends().code(), Some(130));
    let finished = json(&dir.path().join("out"), "summary.json")["finished"].as_u64().expect("a number");
    assert!((1..12).contains(&finished), "{finished}");
    let before = results(dir.path());
    succeed(dir.path(), &["--quiet"]);
    let after = results(dir.path());
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "finished tests are kept");
    let whole = scratch(&campaign);
    succeed(whole.path(), &["--quiet"]);
    assert!(after == results(whole.path()), "an interruption changes no result");
    // No finished test is run again.
    let journal = json(&dir.path().join("out"), "journal.json");
    let finished = journal.as_array().expect("an array").iter().filter(|entry| entry["outcome"] == "finished");
    assert_eq!(finished.count(), 12, "{journal}");
}

#[test]
fn a_test_that_fails_is_tried_again_at_the_end_and_reported() {
    // 10 MB take 8 s at 10 Mbit/s, and four times as much does not fit into the time.
    let campaign = "title = 't'\ncc = ['cubic']\nflows = [4, 1]\nbytes = '10 MB'\ntimeout = '20 s'\n[where]\nsimulation = 'link.toml'\n";
    let dir = scratch(campaign);
    let output = run(dir.path(), &["--quiet"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 test failed") && said.contains("has not finished"), "{said}");
    let journal = json(&dir.path().join("out"), "journal.json");
    let tests: Vec<u64> =
        journal.as_array().expect("an array").iter().filter_map(|entry| entry["test"].as_u64()).collect();
    assert_eq!(tests.len(), 3);
    assert!(tests[2] == tests[0] || tests[2] == tests[1], "{journal}");
    assert_ne!(tests[0], tests[1], "all others come first");
    let summary = json(&dir.path().join("out"), "summary.json");
    assert_eq!((&summary["finished"], &summary["failed"][0]["attempts"]), (&1.into(), &2.into()));
    // It is not tried for a third time.
    assert_eq!(run(dir.path(), &["--quiet"]).status.code(), Some(1));
    assert_eq!(json(&dir.path().join("out"), "journal.json"), journal);
}

#[test]
fn a_changed_campaign_or_network_is_refused_with_what_changed() {
    let dir = scratch(&CAMPAIGN.replace("repetitions = 3", "repetitions = 1"));
    succeed(dir.path(), &["--quiet"]);
    fs::write(
        dir.path().join("c.toml"),
        CAMPAIGN.replace("repetitions = 3", "repetitions = 1 # one\nflows = [1, 2] # same").replacen(
            "flows = [1, 2]\n",
            "",
            1,
        ),
    )
    .expect("written");
    succeed(dir.path(), &["--quiet"]);
    fs::write(
        dir.path().join("c.toml"),
        CAMPAIGN.replace("[1, 2]", "[1, 8]").replace("repetitions = 3", "repetitions = 1"),
    )
    .expect("written");
    let said = refused(dir.path());
    assert!(
        said.contains("the campaign file has changed since the campaign in out began: `flows[1]` was 2 and is 8"),
        "{said}"
    );
    fs::write(dir.path().join("c.toml"), CAMPAIGN.replace("repetitions = 3", "repetitions = 1")).expect("written");
    fs::write(dir.path().join("link.toml"), LINK.replace("10 Mbit/s", "20 Mbit/s")).expect("written");
    let said = refused(dir.path());
    assert!(said.contains("the scenario has changed since the campaign in out began: `links[0]."), "{said}");
}

#[test]
fn a_mistyped_campaign_is_refused_in_one_line_and_leaves_nothing() {
    for (from, to, what) in [
        ("cubic", "cubix", "did you mean `cubic`"),
        ("flows = [1, 2]", "flow = [1, 2]", "unknown field `flow`, expected one of"),
        ("'link.toml'", "'lnk.toml'", "lnk.toml"),
        ("simulation", "simulator", "unknown field `simulator`, expected one of `simulation`, `emulation`, `server`"),
        ("time = '2 s'", "time = '2 parsecs'", "line 7"),
        (
            "[where]\nsimulation = 'link.toml'",
            "[where]\nserver = 'no.such.host.invalid'\nprotocol = 'ndt7'",
            "unknown variant `ndt7`",
        ),
        ("directions = ['up']", "directions = ['up', 'down']\nbytes = '1 MB'", "either `time` or `bytes`"),
        (
            "simulation = 'link.toml'",
            "server = '127.0.0.1'\nprotocol = 'rmbt'",
            "the server chooses the congestion control",
        ),
        ("simulation = 'link.toml'", "server = '127.0.0.1'\ncontrol = 'h'", "where.control: invalid URL `h`"),
        ("simulation = 'link.toml'", "server = '127.0.0.1'\nkey = 'none'", "/none: No such file"),
        ("simulation = 'link.toml'", "server = '127.0.0.1'\nkey = 'link.toml'", "link.toml: line 3: a key has"),
        (
            "simulation = 'link.toml'",
            "server = '127.0.0.1'\ntls = true\nca = 'link.toml'",
            "link.toml: expected a certificate in PEM form",
        ),
    ] {
        let campaign = CAMPAIGN.replace(from, to);
        let dir = scratch(&if what.contains("server chooses") { campaign.replace("'up'", "'both'") } else { campaign });
        let said = refused(dir.path());
        assert!(said.contains(what), "{what}: {said}");
        assert!(!dir.path().join("out").exists(), "{what}");
    }
    let dir = scratch("\u{0}\u{1b}[31m = [[[");
    assert!(!refused(dir.path()).contains('\u{1b}'));
}

#[test]
fn a_congestion_control_that_this_kernel_lacks_is_refused_before_anything_runs() {
    let campaign = CAMPAIGN.replace("'cubic', 'bbr'", "'new-reno', 'cubix'");
    let campaign = campaign.replace("simulation = 'link.toml'", "server = '127.0.0.1'");
    let dir = scratch(&campaign);
    let said = refused(dir.path());
    assert!(said.starts_with("error: c.toml: cc: the kernel has no congestion control `cubix`; it has "), "{said}");
    let output = run(dir.path(), &["--dry-run"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), said));
    assert!(!dir.path().join("out").exists());
    // The kernel of a server has the congestion control of its downloads.
    let down = scratch(&campaign.replace("['up']", "['down']"));
    succeed(down.path(), &["--dry-run"]);
}

/// Whether a text contains an IP address, as a word.
fn has_address(text: &str) -> bool {
    let words = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '.' || c == ':'));
    words.into_iter().any(|word| word.trim_matches(['.', ':']).parse::<IpAddr>().is_ok())
}

/// Asserts that a folder for publication is complete and tells nobody's identity. Returns its files.
fn check_published(folder: &Path, secrets: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let files = files(folder);
    let sums = text(&files["SHA256SUMS"]);
    let listed: BTreeMap<&str, &str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    assert_eq!(listed.len(), files.len() - 1, "all files but the list itself");
    let host = gethostname().expect("a name").to_string_lossy().to_ascii_lowercase();
    for (name, bytes) in &files {
        if name != "SHA256SUMS" {
            let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(listed[name.as_str()], sum, "{name}");
        }
        let lower = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        for secret in secrets.iter().copied().chain((host.len() > 3).then_some(host.as_str())) {
            assert!(!lower.contains(&secret.to_ascii_lowercase()), "{name} contains {secret}");
        }
        if !name.ends_with(".parquet") && name != "SHA256SUMS" {
            assert!(!has_address(&lower), "{name} contains an address: {lower}");
        }
    }
    files
}

#[test]
fn a_folder_for_publication_has_checksums_units_and_no_identity() {
    // Names of flows stand in tables and summaries of tests.
    let link =
        format!("{LINK}[[flows]]\nname = 'to 192.0.2.77'\n[[flows]]\nname = 'of grace-hopper'\nstart = '500 ms'\n");
    let place = "[location]\nlatitude = 59.379312\nlongitude = 13.503612\n[publish]\nlicence = 'CC0-1.0'\nremove = ['grace-hopper']\n";
    let dir = scratch(
        &(CAMPAIGN
            .replace("repetitions = 3", "repetitions = 1")
            .replace("two controls", "at 198.51.100.9 by Grace-Hopper")
            + place),
    );
    fs::write(dir.path().join("link.toml"), link).expect("written");
    succeed(dir.path(), &["--quiet", "--publish"]);
    let folder = dir.path().join("out/publish");
    let files =
        check_published(&folder, &["192.0.2.77", "grace-hopper", "198.51.100.9", "59.3793", "13.5036", "/tmp/"]);
    for name in ["README.md", "LICENSE", "schema.json", "campaign.json", "tests.json", "summary.json"] {
        assert!(files.contains_key(name), "{name}");
    }
    assert!(text(&files["LICENSE"]).contains("CC0-1.0"));
    let columns = json(&folder, "schema.json")["tables"]["flows"]["columns"].clone();
    let goodput = columns.as_array().into_iter().flatten().find(|column| column["name"] == "goodput_mbps").cloned();
    assert_eq!(goodput.expect("a column")["unit"], "Mbit/s");
    let place = json(&folder, "campaign.json")["location"].clone();
    let [latitude, longitude] = ["latitude", "longitude"].map(|key| place[key].as_f64().expect("a number"));
    assert!((latitude - 59.3793).abs() < 0.0046 && (longitude - 13.5036).abs() < 0.0092, "{place}");
    // Tables can be read, and have all flows of the test.
    let first = json(&folder, "tests.json")[0]["test"].as_str().expect("a name").to_owned();
    assert!(files.contains_key(&format!("tests/{first}/flows.parquet")));
    let tables = Results::from_files(
        ["meta.json", "timing.json", "flows.parquet"]
            .map(|name| (name.to_owned(), files[&format!("tests/{first}/{name}")].clone()))
            .into(),
    );
    let tables = tables.expect("readable").tables;
    let names: BTreeSet<String> = tables.flows.iter().map(|row| row.flow.to_owned()).collect();
    assert_eq!(names, ["of [removed]", "to [removed]", "upload"].map(str::to_owned).into());
}

/// Adds what a modem tells to the results of a test: two cells, of which the second one is entered.
fn add_modem(results: &Path, cells: [u64; 2]) {
    let mut read = Results::read(results).expect("results");
    for (cell, t_s) in cells.into_iter().zip([0.5, 1.0]) {
        let (cell, pci) = (Some(cell), Some(301));
        let row = ModemRow {
            t_s,
            source: "modemmanager",
            modem: "wwan0",
            technology: "lte",
            cell,
            pci,
            ..ModemRow::default()
        };
        read.tables.modem.push(&row);
    }
    let cell = cells[1].to_string();
    let changed = MobilityRow { t_s: 1.0, ue: "wwan0", event: "changed", cell: &cell, ..MobilityRow::default() };
    read.tables.mobility.push(&changed);
    for (name, bytes) in read.to_files().expect("files") {
        fs::write(results.join(name), bytes).expect("written");
    }
}

#[test]
fn published_cells_have_labels_unless_the_campaign_keeps_their_identities() {
    for keep in [false, true] {
        let publish = if keep { "[publish]\nkeep_cells = true\n" } else { "" };
        let campaign =
            "title = 't'\ncc = ['cubic']\nrepetitions = 2\ntime = '1 s'\n[where]\nsimulation = 'link.toml'\n";
        let dir = scratch(&(campaign.to_owned() + publish));
        succeed(dir.path(), &["--quiet"]);
        let mut tests: Vec<PathBuf> = fs::read_dir(dir.path().join("out/tests"))
            .expect("tests")
            .map(|entry| entry.expect("a test").path())
            .collect();
        tests.sort();
        add_modem(&tests[0], [27_447_297, 27_447_298]);
        add_modem(&tests[1], [27_447_298, 27_447_299]);
        succeed(dir.path(), &["--quiet", "--publish"]);
        let folder = dir.path().join("out/publish");
        let secrets: &[&str] = if keep { &[] } else { &["27447297", "27447298", "27447299"] };
        check_published(&folder, secrets);
        let published = |test: &Path| {
            let of = |name: &str| {
                let path = folder.join("tests").join(test.file_name().expect("a name")).join(name);
                (name.to_owned(), fs::read(path).expect("it is there"))
            };
            let files = ["meta.json", "timing.json", "modem.parquet", "mobility.parquet"].map(of);
            let results = Results::from_files(files.into()).expect("results");
            let modem: Vec<_> = results.tables.modem.iter().map(|row| (row.cell.expect("a cell"), row.pci)).collect();
            let changed: Vec<String> = results.tables.mobility.iter().map(|row| row.cell.to_owned()).collect();
            (modem, changed)
        };
        let readme = fs::read_to_string(folder.join("README.md")).expect("it is there");
        if keep {
            let cells = vec![(27_447_297, Some(301)), (27_447_298, Some(301))];
            assert_eq!(published(&tests[0]), (cells, vec!["27447298".to_owned()]));
            assert!(readme.contains("identities of cells are kept"), "{readme}");
            continue;
        }
        // The cell that both tests have seen has one label.
        assert_eq!(published(&tests[0]), (vec![(1, None), (2, None)], vec!["cell-2".to_owned()]));
        assert_eq!(published(&tests[1]), (vec![(2, None), (3, None)], vec!["cell-3".to_owned()]));
        assert!(readme.contains("identities of cells were replaced by numbers"), "{readme}");
    }
}

#[test]
fn a_server_is_measured_with_each_combination_and_one_that_is_gone_fails_the_tests() {
    let args = ["measure", "serve", "--open", "--listen", "127.0.0.1:0"];
    let mut server = Running::of(command(Path::new("."), &args));
    let line = server.1.next().expect("it says where it serves").expect("it is text");
    let address = line.strip_prefix("serving at ").and_then(|rest| rest.split([',', ';']).next()).expect("an address");
    let campaign = format!(
        "title = 't'\ncc = ['cubic', 'new-reno']\nflows = [2]\ndirections = ['up']\ntime = '300 ms'\n[where]\nserver = '{address}'\n"
    );
    let dir = scratch(&campaign);
    let output = run(dir.path(), &["--publish"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let summary = json(&dir.path().join("out"), "summary.json");
    assert_eq!(summary["finished"], 2);
    assert!(
        summary["combinations"][1]["measures"]["upload"]["throughput_mbps"]["median"]
            .as_f64()
            .is_some_and(|rate| rate > 1.0)
    );
    let metrics = json(&dir.path().join("out"), "journal.json")[0]["tcp_metrics"].as_str().expect("a text").to_owned();
    assert!(metrics == "flushed" || metrics.starts_with("not flushed: ip"), "{metrics}");
    check_published(&dir.path().join("out/publish"), &["127.0.0.1", address]);
    drop(server);
    let gone = scratch(&campaign);
    let output = run(gone.path(), &["--quiet", "--publish"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no server at"), "{}", text(&output.stderr));
    // The reason holds the address, which is not published.
    check_published(&gone.path().join("out/publish"), &["127.0.0.1", address]);
    eventually("nothing runs on", || {
        fs::read_dir(gone.path().join("out/work")).is_ok_and(|mut entries| entries.next().is_none())
    });
}

/// The key of a server that demands tokens.
const KEY: &str = "0f1e2d3c4b5a6978";

/// Writes a file for its owner alone.
fn write_secret(path: &Path, content: &str) {
    fs::write(path, content).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
}

/// The arguments of all running processes.
fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| text(&line).replace('\0', " ")).collect()
}

#[test]
fn a_server_that_demands_tokens_and_tls_is_measured_and_no_secret_is_told() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    // The certificate is its own authority.
    let authority = made.cert.pem();
    let home = tempfile::tempdir().expect("a temporary directory");
    write_secret(&home.path().join("keys"), KEY);
    write_secret(&home.path().join("own.pem"), &authority);
    write_secret(&home.path().join("private.pem"), &made.signing_key.serialize_pem());
    let args = ["measure", "serve", "--control", "--key", "keys", "--tls", "own.pem", "private.pem", "--tls-only"];
    let mut server = Running::of(command(home.path(), &[&args[..], &["--listen", "127.0.0.1:0"]].concat()));
    let line = server.1.next().expect("it says where it serves").expect("it is text");
    let address = line.strip_prefix("serving at ").and_then(|rest| rest.split([',', ';']).next()).expect("an address");
    let port = address.rsplit_once(':').expect("a port").1;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let token = make_v1(&Key::new(KEY.as_bytes()), "8723358c-2037-4029-a70c-91e5d9d35cf3", now as i64);
    let campaigns = [
        ("up", format!("control = 'https://localhost:{port}'\nwarm = true\nmodem = 'none'")),
        ("down", "key = 'keys'".to_owned()),
        ("up", format!("token = '{token}'")),
    ];
    at_once(campaigns, |(direction, access)| {
        let dir = scratch(&format!(
            "title = 't'\ncc = ['cubic']\ndirections = ['{direction}']\ntime = '300 ms'\n[where]\nserver = 'localhost:{port}'\n\
             tls = true\nca = 'own.pem'\n{access}\n"
        ));
        write_secret(&dir.path().join("keys"), KEY);
        write_secret(&dir.path().join("own.pem"), &authority);
        let mut running = Running::start(dir.path());
        let mut is_seen = false;
        while running.0.try_wait().expect("it is ours").is_none() {
            for line in command_lines() {
                assert!(!line.contains(&token) && !line.contains(KEY), "{line}");
                is_seen |= line.contains(&format!(" measure localhost:{port} ")) && line.contains(" --tls ");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = running.0.ends();
        let said: Vec<String> = running.1.by_ref().map_while(Result::ok).collect();
        assert!(status.success() && is_seen, "{access}: {said:?}");
        succeed(dir.path(), &["--quiet", "--publish"]);
        let out = dir.path().join("out");
        assert_eq!(json(&out, "summary.json")["finished"], 1, "{access}");
        let place = json(&out, "campaign.json")["campaign"]["where"].clone();
        assert_eq!(place["tls"], true);
        assert!(["token", "control", "key", "ca"].iter().all(|key| place.get(key).is_none()), "{place}");
        for (name, bytes) in files(&out) {
            let content = text(&bytes);
            assert!(
                [KEY, token.as_str(), "own.pem"].into_iter().all(|secret| !content.contains(secret)),
                "{access}: {name}"
            );
        }
        let server = format!("localhost:{port}");
        check_published(&out.join("publish"), &[server.as_str(), "127.0.0.1", KEY, token.as_str()]);
    });
}

#[test]
fn root_an_emulated_network_is_measured_with_each_combination() {
    conclusive(an_emulated_network_is_measured_with_each_combination);
}

fn an_emulated_network_is_measured_with_each_combination(watch: &mut Watch) {
    if !may() {
        return;
    }
    let campaign =
        "title = 't'\ncc = ['cubic']\ndirections = ['up', 'down']\ntime = '2 s'\n[where]\nemulation = 'link.toml'\n";
    let dir = scratch(campaign);
    fs::write(dir.path().join("link.toml"), crate::common::LINK.replace("2 s", "60 s")).expect("written");
    let output = run(dir.path(), &["--quiet", "--publish"]);
    let said = text(&output.stderr);
    if said.contains("missed its deadlines") {
        watch.void(said);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    for combination in json(&dir.path().join("out"), "summary.json")["combinations"].as_array().expect("an array") {
        let measures = combination["measures"].as_object().expect("an object");
        for rates in measures.values() {
            let rate = rates["throughput_mbps"]["median"].as_f64().expect("a number");
            assert!((4.0..8.0).contains(&rate), "{combination}");
        }
    }
    check_published(&dir.path().join("out/publish"), &["10.0.0.1"]);
}
