//! A campaign as one set of results, for its report page: combinations are points, and blocks are runs.

use std::path::Path;

use record::{Meta, Partial, Point, Results, Tables, Timing, report};
use serde_json::{Value, json};

use crate::plan::{Combination, Plan, Test};
use crate::store::Store;
use crate::summary::{LEAST_TESTS, Summary};
use crate::{Error, File};

/// The most rows over time that the page is made from; of tests beyond, only their means are used.
const MOST_ROWS: usize = 2_000_000;

/// Writes the report page of a campaign into its directory.
///
/// # Errors
/// Results of a test cannot be read, or the page cannot be written.
pub fn write_report(file: &File, plan: &Plan, store: &Store, summary: &Summary) -> Result<(), Error> {
    store.write_bytes("report.html", page(file, plan, store, summary)?.as_bytes())
}

/// Returns the report page of the campaign in a directory, as far as it has come; `None` if there is no campaign.
///
/// # Errors
/// The campaign, or results of a test, cannot be read.
pub fn report_of(path: &Path) -> Result<Option<String>, Error> {
    let Some(store) = Store::look(path)? else { return Ok(None) };
    let invalid = |why: serde_json::Error| Error::Invalid(format!("{}: campaign.json: {why}", path.display()));
    let file: File = serde_json::from_value(store.state().campaign.clone()).map_err(invalid)?;
    let plan = Plan::of(&file);
    let summary = Summary::of(&file, &plan, &store, file.is_complete())?;
    page(&file, &plan, &store, &summary).map(Some)
}

fn page(file: &File, plan: &Plan, store: &Store, summary: &Summary) -> Result<String, Error> {
    Ok(report::html(&results(file, plan, store, summary)?))
}

/// Puts the results of all finished tests together.
fn results(file: &File, plan: &Plan, store: &Store, summary: &Summary) -> Result<Results, Error> {
    let (mut tables, mut timing) = (Tables::default(), Timing { threads: 1, ..Timing::default() });
    for (combination, point) in plan.combinations.iter().zip(0..) {
        let mut tests: Vec<&Test> = plan.tests.iter().filter(|test| test.combination == *combination).collect();
        tests.sort_by_key(|test| test.block);
        for test in tests {
            if !store.has_finished(test)? {
                continue;
            }
            let Results { tables: of, timing: took, .. } = Results::read(&store.results(test))?;
            timing.cpu_s += took.cpu_s;
            timing.simulated_s += took.simulated_s;
            timing.events += took.events;
            timing.packets += took.packets;
            let mut of = shown(of, tables.row_count() < MOST_ROWS);
            of.set_job(point, test.block - 1);
            tables.append(of);
        }
    }
    let is_partial = summary.finished < summary.planned;
    let meta = Meta {
        title: file.title.clone(),
        version: store.state().version.clone(),
        scenario: json!({ "campaign": described(summary) }),
        points: points(&plan.combinations),
        runs: file.repetitions,
        seed: file.seed,
        partial: is_partial.then(|| Partial {
            finished: summary.finished as u64,
            of: summary.planned as u64,
            ..Partial::default()
        }),
    };
    Ok(Results { meta, timing, tables })
}

/// The tables that the page shows.
fn shown(tables: Tables, over_time: bool) -> Tables {
    let Tables { flows, rtts, owds, links, transfers, ues, .. } = tables;
    let means = Tables { flows, rtts, owds, links, transfers, ues, ..Tables::default() };
    if !over_time {
        return means;
    }
    let Tables { samples, queues, radio, mobility, latencies, waits, modem, responsiveness, .. } = tables;
    Tables { samples, queues, radio, mobility, latencies, waits, modem, responsiveness, ..means }
}

/// The factors of each combination that differ between them.
fn points(combinations: &[Combination]) -> Vec<Point> {
    let factors = |of: &Combination| -> [(&str, Value); 4] {
        let interface = of.interface.clone().map_or(Value::Null, Value::from);
        [
            ("cc", of.cc.clone().into()),
            ("flows", of.flows.into()),
            ("direction", of.direction.name().into()),
            ("interface", interface),
        ]
    };
    let first = combinations.first().map(factors);
    let varies = |place: usize| {
        let first = first.as_ref().map(|first| &first[place].1);
        combinations.iter().any(|of| Some(&factors(of)[place].1) != first)
    };
    let varied = [0, 1, 2, 3].map(varies);
    let point = |of: &Combination| {
        let varied = factors(of).into_iter().zip(varied).filter(|(_, varies)| *varies);
        Point { values: varied.map(|((name, value), _)| (name.to_owned(), value)).collect() }
    };
    combinations.iter().map(point).collect()
}

/// The summary without the values of single tests, which the page has in its tables.
fn described(summary: &Summary) -> Value {
    let mut value = json!(summary);
    for combination in value["combinations"].as_array_mut().into_iter().flatten() {
        combination.as_object_mut().map(|of| of.remove("distributions"));
    }
    value["least_tests"] = LEAST_TESTS.into();
    value
}
