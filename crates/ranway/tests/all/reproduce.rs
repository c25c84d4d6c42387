//! `ranway reproduce DIR`: a user's own paper folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PAPER: &str = r#"
title = "A paper of mine"
authors = "Nobody"

[[experiments]]
name = "one_flow"
about = "Table I: one flow alone"
scenario = "link.toml"

[[experiments.checks]]
variant = "cubic"
parameter = "20 Mbit/s"
metric = "throughput"
point = { rate = "20 Mbit/s" }
measure = { kind = "throughput", flow = "download" }

[[experiments.checks]]
variant = "cubic"
parameter = "10 Mbit/s"
metric = "throughput"
point = { rate = "10 Mbit/s" }
measure = { kind = "throughput", flow = "download" }
why = "published as more than the link carries"

[[experiments.figures]]
kind = "means"
title = "Figure 1"
y = "throughput, Mbit/s"
over = "rate"
lines = [{ label = "CUBIC" }]
measure = { kind = "throughput", flow = "download" }
"#;
const PUBLISHED: &str = "experiment,variant,parameter,metric,unit,value,ci95,where
one_flow,cubic,20 Mbit/s,throughput,Mbit/s,20,,Table I
# A comment.
one_flow,cubic,10 Mbit/s,throughput,Mbit/s,14,0.5,Table I
one_flow,cubic,10 Mbit/s,colour,,,,page 3
";
const LINK: &str = r#"
include = ["base.toml"]
[sweep]
rate = ["10 Mbit/s", "20 Mbit/s"]
[dumbbell]
rate = "${rate}"
rtt = "20 ms"
[[flows]]
name = "download"
"#;
const BASE: &str = "duration = \"4 s\"\nwarmup = \"2 s\"\n[parameters]\nrate = \"10 Mbit/s\"\n";

/// The folder `name` in `dir` with a whole paper.
fn paper(dir: &Path, name: &str) {
    let folder = dir.join(name);
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in [("paper.toml", PAPER), ("published.csv", PUBLISHED), ("link.toml", LINK), ("base.toml", BASE)]
    {
        fs::write(folder.join(file), text).unwrap();
    }
}

fn reproduce(dir: &Path, args: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_ranway");
    Command::new(command).arg("reproduce").args(args).current_dir(dir).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The verdicts of `--json`, in the order of the rows.
fn verdicts(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    rows.iter().map(|row| row["verdict"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_folder_is_reproduced_like_a_built_in_paper() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), "mine");
    let expected = ["held", "missed", "not possible yet"];
    // A directory with a paper.toml, with or without a slash, or one experiment of it.
    for name in ["mine", "mine/", "./mine", "mine/one-flow"] {
        assert_eq!(verdicts(&reproduce(dir.path(), &[name, "--json"])), expected, "{name}");
    }
    let out = dir.path().join("ranway-out/reproduce");
    assert!(out.join("mine/one-flow/summary.json").is_file() && out.join("report.html").is_file());
    let tables = fs::read_to_string(out.join("tables.md")).unwrap();
    let rows: Vec<&str> = tables.lines().filter(|line| line.starts_with("| cubic | ")).collect();
    assert!(tables.starts_with("## mine/one-flow\n\n**Table I: one flow alone**\n\n| variant | "), "{tables}");
    assert!(
        rows.len() == 3 && rows[0].ends_with(" | held |") && rows[1].contains(" | missed: published as"),
        "{tables}"
    );
    // From inside it, by a path from elsewhere, and beside a built-in one.
    assert_eq!(verdicts(&reproduce(&dir.path().join("mine"), &[".", "--json"])), expected);
    let path = dir.path().join("mine").display().to_string();
    let both =
        reproduce(Path::new("/"), &[&path, "mdcc-towards/wireless-loss", "--runs", "1", "--json", "--out", &path]);
    assert_eq!((both.status.code(), verdicts(&both).len()), (Some(0), 3 + 16), "{}", text(&both.stderr));

    let said = text(&reproduce(dir.path(), &["mine"]).stdout);
    assert!(said.contains("mine/one-flow: Table I: one flow alone"), "{said}");
    assert!(said.contains("missed: published as more than the link carries"), "{said}");
    assert!(said.contains("1 held, 1 missed, 1 not possible yet"), "{said}");
}

#[test]
fn marks_and_origins_are_in_every_output_and_counted_apart() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), "mine");
    let folder = dir.path().join("mine");
    let marked = PAPER.replace("why = \"published", "ceiling = { most = 12 }\nwhy = \"published").replace(
        "point = { rate = \"20 Mbit/s\" }",
        "point = { rate = \"20 Mbit/s\" }\ntolerance = 9\nbecause = \"a plot\"\nfitted = \"the rate\"",
    );
    fs::write(folder.join("paper.toml"), marked).unwrap();
    fs::write(folder.join("published.csv"), PUBLISHED.replace("page 3", "ours: of colours")).unwrap();
    let output = reproduce(dir.path(), &["mine", "--json"]);
    assert_eq!(verdicts(&output), ["held", "impossible", "not possible yet"]);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&rows[0]["fitted"], &rows[0]["tolerance"], &rows[0]["because"]),
        (&"the rate".into(), &9.0.into(), &"a plot".into())
    );
    assert_eq!(
        (&rows[0]["origin"], &rows[1]["ceiling"], &rows[2]["origin"]),
        (&"paper".into(), &12.0.into(), &"ours".into())
    );
    let out = dir.path().join("ranway-out/reproduce");
    let tables = fs::read_to_string(out.join("tables.md")).unwrap();
    for cell in [
        "| held (fitted: the rate; within 9: a plot) |",
        "| ≤ 12.000 | impossible: published as",
        "| not possible yet (ours) |",
    ] {
        assert!(tables.contains(cell), "{cell}: {tables}");
    }
    let counts = fs::read_to_string(out.join("counts.md")).unwrap();
    let expected = "| mine | 2 | 0 | 0 | 1 | 0 | 1 of 1 |  |  | 0 of 1 |";
    assert!(counts.lines().any(|line| line == expected), "{counts}");
    let said = text(&reproduce(dir.path(), &["mine"]).stdout);
    let counted = "0 held, 0 missed, 1 impossible; held of those counted apart: 1 of 1 fitted, 0 of 1 of ours";
    assert!(said.contains(counted), "{said}");
}

#[test]
fn a_name_is_the_built_in_paper_even_where_a_folder_has_it() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), "mdcc-towards");
    let output = reproduce(dir.path(), &["mdcc-towards/one-flow"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = reproduce(dir.path(), &["mdcc-towards/wireless-loss", "--runs", "1", "--json"]);
    assert_eq!(verdicts(&output).len(), 16);
    // The results of both would lie in one directory.
    let output = reproduce(dir.path(), &["./mdcc-towards"]);
    assert!(text(&output.stderr).contains("another paper is also called `mdcc-towards`"), "{}", text(&output.stderr));
}

#[test]
fn each_fault_of_a_folder_gets_a_line_that_says_where_and_what_would_be_right() {
    let replaced = |of: &str, what: &str, with: &str| {
        assert!(of.contains(what), "{what}");
        Some(of.replacen(what, with, 1))
    };
    let published = |what, with| ("published.csv", replaced(PUBLISHED, what, with));
    let toml = |what, with| ("paper.toml", replaced(PAPER, what, with));
    let link = |what, with| ("link.toml", replaced(LINK, what, with));
    for ((file, contents), hints) in [
        (("paper.toml", None), &["mine/paper.toml: no such file"][..]),
        (("paper.toml", Some("title = \"a\"\nauthors = \"b\"\nexperiments = []\n".into())), &["no `[[experiments]]`"]),
        (toml("authors", "author"), &["mine/paper.toml:3: unknown field `author`"]),
        (toml("kind = \"throughput\"", "kind = \"speed\""), &["paper.toml:", "unknown variant `speed`", "`goodput`"]),
        (toml("one_flow", "one/flow"), &["paper.toml: experiment `one/flow`: ", "no `/`"]),
        (toml("one_flow", "two_flows"), &["published.csv:2: unknown experiment `one_flow`", "two_flows"]),
        (toml("link.toml", "lin.toml"), &["experiment `one_flow`: ", "cannot read `mine/lin.toml`"]),
        (
            toml("parameter = \"20 Mbit/s\"", "parameter = \"2 Mbit/s\""),
            &["`cubic`, `2 Mbit/s`, `throughput`: no such row"],
        ),
        (toml("rate = \"20 Mbit/s\"", "rate = \"2 Mbit/s\""), &["`point` matches no point", "rate = 10 Mbit/s"]),
        (toml("flow = \"download\"", "flow = \"upload\""), &["no flow `upload`; it has download"]),
        (toml("over = \"rate\"", "over = \"delay\""), &["figure `Figure 1`"]),
        (toml("point = {", "against = { rate = \"9 Mbit/s\" }\npoint = {"), &["`against` matches no point"]),
        (("published.csv", None), &["mine/published.csv: no such file"]),
        (published("ci95", "ci"), &["published.csv: the first line must be experiment,variant"]),
        (published(",0.5,Table I", ""), &["published.csv:4: 6 fields instead of 8"]),
        (published("0.5", "half"), &["published.csv:4: ci95: `half` is not a number"]),
        (published("0.5", "inf"), &["published.csv:4: ci95: `inf` is not a finite number from 0 on"]),
        (published("0.5", "-1"), &["published.csv:4: ci95: `-1` is not a finite number from 0 on"]),
        (published("20,,", "inf,,"), &["published.csv:2: value: `inf` is not a finite number"]),
        (published("20,,", "NaN,,"), &["published.csv:2: value: `NaN` is not a finite number"]),
        (published("20,,", "fast,,"), &["neither a number nor a claim"]),
        (published("20,,", "8..2,,"), &["neither a number nor a claim"]),
        (published("20,,", ">=inf,,"), &["neither a number nor a claim"]),
        (published("20,,", "nan..30,,"), &["neither a number nor a claim"]),
        (toml("why = ", "expect = \"[8, 2]\"\nwhy = "), &["`expect` is `[8, 2]`, but must be `>=x`"]),
        (toml("why = ", "tolerance = inf\nwhy = "), &["`tolerance` is inf, but must be a finite number"]),
        (
            toml("why = ", "tolerance = 3\nwhy = "),
            &["`tolerance` is 3, which is more than the default of 1.4", "`because`"],
        ),
        (toml("why = ", "expect = \">=1\"\nwhy = "), &["`expect` replaces the default of 12.6", "`because`"]),
        (toml("why = ", "because = \"so\"\nwhy = "), &["`because` is the reason of a `tolerance` or an `expect`"]),
        (
            toml("why = ", "rising = [\"rate\"]\nwhy = "),
            &["`rising` and `falling` have no effect on a published number"],
        ),
        (
            toml("why = ", "floor = { size = \"75 MB\", rate = \"20 Mbit/s\" }\nwhy = "),
            &["`floor` is a time", "`Mbit/s`"],
        ),
        (
            toml("point = { rate = \"10", "point = { rate = \"10 Mbit/s\" }\nagainst = { rate = \"10"),
            &["`against` compares a point with itself: rate = 10 Mbit/s"],
        ),
        (toml("why = ", "fitted = \" \"\nwhy = "), &["`fitted` is empty, but must say why"]),
        (toml("why = ", "fitted = \"a\"\ngiven = \"b\"\nwhy = "), &["`fitted` and `given` exclude each other"]),
        (
            published("20,,Table I", "20,,"),
            &["published.csv:2: where: name the place in the paper, or `ours`, or `artefact`"],
        ),
        (
            published("page 3", "artefact's"),
            &["published.csv:5: where: `artefact's` must be `artefact` or `artefact: ...`"],
        ),
        (
            published("page 3", "Our addition"),
            &["published.csv:5: where: `Our addition` says `Our`: write `ours: ...`"],
        ),
        (("link.toml", None), &["experiment `one_flow`: ", "cannot read `mine/link.toml`"]),
        (link("base.toml", "bas.toml"), &["mine/link.toml:2:", "cannot read `mine/bas.toml`"]),
        (link("rtt", "rrt"), &["mine/link.toml:7:", "`rtt`"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        paper(dir.path(), "mine");
        let path = dir.path().join("mine").join(file);
        match &contents {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let output = reproduce(dir.path(), &["./mine/"]);
        let said = text(&output.stderr).replace("./mine", "mine");
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{file} {contents:?}: {said}");
        assert!(hints.iter().all(|hint| said.contains(hint)), "{hints:?}: {said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{hints:?} wrote something");
    }
}

#[test]
fn what_is_no_paper_at_all_is_answered_with_those_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    paper(dir.path(), "mine");
    for (name, hint) in [
        ("nowhere/paper", "no such built-in paper, experiment or folder; `ranway list` shows all names"),
        ("empty", "has no `paper.toml`"),
        ("empty/", "empty/paper.toml: no such file"),
        ("mine/two-flows", "no such experiment; did you mean `mine/one-flow`?\n"),
    ] {
        let output = reproduce(dir.path(), &[name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{name}: {}", text(&output.stderr));
    }
}

const VARIANT: &str = r#"
[[variants]]
name = "slower"
about = "half of the delay is not said"
set = ["duration=3 s"]

[[variants.rows]]
experiment = "one_flow"
why = "a reason of the variant"

[[variants.unstated]]
what = "round trip"
choices = [{ name = "20 ms", set = ["dumbbell.rtt=20 ms"] }, { name = "2 s", set = ["dumbbell.rtt=2 s"] }]

[[variants.unstated]]
what = "filled at"
choices = [{ name = "beginning", counted = "beginning" }, { name = "end", counted = "end" }]
"#;

#[test]
fn a_variant_runs_in_its_first_setting_and_a_grid_in_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), "mine");
    fs::write(dir.path().join("mine/paper.toml"), PAPER.to_owned() + VARIANT).unwrap();
    for name in ["mine@slower", "./mine@slower/one-flow"] {
        assert_eq!(
            verdicts(&reproduce(dir.path(), &[name, "--json"])),
            ["held", "missed", "not possible yet"],
            "{name}"
        );
    }
    let said = text(&reproduce(dir.path(), &["mine@slower"]).stdout);
    assert!(said.contains("mine@slower/one-flow") && said.contains("missed: a reason of the variant"), "{said}");
    assert!(dir.path().join("ranway-out/reproduce/mine@slower/one-flow/summary.json").is_file());

    let output = reproduce(dir.path(), &["mine@slower", "--grid"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = dir.path().join("ranway-out/reproduce/mine@slower");
    let table = fs::read_to_string(out.join("grid.md")).unwrap();
    assert!(text(&output.stdout).contains(&table), "{}", text(&output.stdout));
    // In two seconds nothing arrives after a handshake of two.
    for line in [
        "| round trip | filled at | one_flow | all rows |",
        "| 20 ms | beginning | 1 of 3 | 1 of 3 |",
        "| 20 ms | end | 1 of 3 | 1 of 3 |",
        "| 2 s | beginning | 0 of 3 | 0 of 3 |",
        "| 2 s | end | 0 of 3 | 0 of 3 |",
    ] {
        assert!(table.lines().any(|other| other == line), "{line}: {table}");
    }
    let cells: serde_json::Value = serde_json::from_slice(&fs::read(out.join("grid.json")).unwrap()).unwrap();
    assert_eq!((cells.as_array().map(Vec::len), cells[3]["rows"].as_array().map(Vec::len)), (Some(4), Some(3)));

    let output = reproduce(dir.path(), &["mine", "--grid"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--grid needs a variant"), "{}", text(&output.stderr));
    for (what, with, hint) in [
        ("name = \"slower\"", "name = \"slow er\"", "variant `slow er`: a variant's name"),
        ("\"one_flow\"\nwhy", "\"two_flows\"\nwhy", "`rows`: unknown experiment `two_flows`"),
        ("dumbbell.rtt=2 s", "dumbbell.rrt=2 s", "`rtt`"),
    ] {
        let wrong = PAPER.to_owned() + &VARIANT.replace(what, with);
        fs::write(dir.path().join("mine/paper.toml"), wrong).unwrap();
        let output = reproduce(dir.path(), &["mine@slower"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{hint}: {}", text(&output.stderr));
    }
}

#[test]
fn texts_of_a_folder_cannot_leave_their_cell_of_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), "mine");
    let folder = dir.path().join("mine");
    let hostile = PAPER
        .replace("\"Table I: one flow alone\"", r##""# <img src=x>\nTable""##)
        .replace("published as more than", r"a\nb | c \u001b]0;title\u0007");
    fs::write(folder.join("paper.toml"), hostile).unwrap();
    let output = reproduce(dir.path(), &["mine", "--quiet"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tables = fs::read_to_string(dir.path().join("ranway-out/reproduce/tables.md")).unwrap();
    assert!(tables.contains("\n**# &lt;img src=x> Table**\n"), "{tables}");
    assert!(tables.contains("missed: a b \\| c \\u001b]0;title\\u0007"), "{tables}");
    assert!(
        !tables.contains('\u{1b}') && tables.lines().all(|line| line.is_empty() || line.starts_with(['#', '*', '|']))
    );
}
