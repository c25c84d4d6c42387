//! The reference of all metrics, and what asks for them: neither may name one that does not exist, and the reference names all.

use crate::{dashboard, measure, proxy, rnis};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Metrics of `ranway pep`, `ranway backlog` and `ranway mdcc`, which are defined there. A test of `ranway` compares them.
const OF_OTHERS: [&str; 3] = ["ranway_pep_", "ranway_backlog_", "ranway_mdcc_"];

/// By name: the type, and the labels.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// What services print.
async fn printed() -> Metrics {
    let mut metrics = Metrics::new();
    let texts = [
        proxy::metrics::tests::example(),
        measure::metrics::tests::example(),
        dashboard::metrics::tests::example(),
        rnis::metrics::tests::example().await,
    ];
    for text in texts {
        let mut family = (String::new(), String::new());
        for line in text.lines() {
            if let Some(of) = line.strip_prefix("# TYPE ") {
                let (name, kind) = of.split_once(' ').expect("a name and a type");
                let end = if kind == "counter" { "_total" } else { "" };
                family = (format!("{name}{end}"), kind.to_owned());
            } else if !line.starts_with('#') {
                let labels =
                    line.split_once('{').and_then(|(_, after)| after.rsplit_once('}')).map_or("", |(labels, _)| labels);
                let names = labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
                let names = names.filter(|name| *name != "le").map(str::to_owned);
                let (name, kind) = &family;
                metrics.entry(name.clone()).or_insert_with(|| (kind.clone(), BTreeSet::new())).1.extend(names);
            }
        }
    }
    metrics
}

fn is_of_others(name: &str) -> bool {
    OF_OTHERS.iter().any(|of| name.starts_with(of))
}

/// What the rows of the reference's tables name.
fn documented() -> Metrics {
    let text = read("docs/src/metrics.md");
    let rows = text.lines().filter(|line| line.starts_with("| `ranway_") || line.starts_with("| `process_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, kind, labels, meaning, _] = cells[..] else { panic!("five bars: {row}") };
        assert!(!meaning.is_empty(), "{row}");
        let labels = labels.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        (name.trim_matches('`').to_owned(), (kind.to_owned(), labels.filter(|label| !label.is_empty()).collect()))
    })
    .collect()
}

#[tokio::test]
async fn the_reference_has_all_metrics_with_their_types_and_labels() {
    let (printed, mut documented) = (printed().await, documented());
    documented.retain(|name, _| !is_of_others(name));
    let row = |(name, (kind, labels)): (&String, &(String, BTreeSet<String>))| {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {kind} | {} |", labels.join(", "))
    };
    let (is, told): (BTreeSet<String>, BTreeSet<String>) =
        (printed.iter().map(row).collect(), documented.iter().map(row).collect());
    let difference = |one: &BTreeSet<String>, other| one.difference(other).cloned().collect::<Vec<_>>().join("\n");
    let (missing, wrong) = (difference(&is, &told), difference(&told, &is));
    assert!(missing.is_empty() && wrong.is_empty(), "docs/src/metrics.md lacks:\n{missing}\nand has:\n{wrong}");
}

#[tokio::test]
async fn names_are_in_base_units() {
    for name in printed().await.keys().chain(documented().keys()) {
        let name = name.trim_end_matches("_total");
        for end in ["_ms", "_us", "_ns", "_mbps", "_kbps", "_mb", "_kb", "_bits", "_percent", "_share"] {
            assert!(!name.ends_with(end), "{name}");
        }
    }
}

#[tokio::test]
async fn dashboards_and_rules_ask_only_for_metrics_that_exist() {
    let mut printed = printed().await;
    printed.extend(documented().into_iter().filter(|(name, _)| is_of_others(name)));
    for path in [
        "packaging/grafana/ranway.json",
        "packaging/grafana/ranway-services.json",
        "packaging/prometheus/ranway.rules.yml",
    ] {
        let text = read(path);
        // Queries alone: in JSON, in YAML on one line or folded. Names of alerts and files are written in another way.
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: BTreeSet<&str> =
            words.filter(|word| word.starts_with("ranway_") || word.starts_with("process_")).collect();
        assert!(asked.len() > 10, "{path}: {asked:?}");
        for name in asked {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_histogram =
                family.is_some_and(|family| printed.get(family).is_some_and(|(kind, _)| kind == "histogram"));
            assert!(printed.contains_key(name) || is_histogram, "{path}: nothing has the metric {name}");
        }
    }
}
