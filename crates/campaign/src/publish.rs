//! A folder for publication: the tables of all tests, a schema with units, checksums, a README, a licence, and no identities.

use std::fmt::Write as _;
use std::path::PathBuf;

use record::{Results, Tables};
use serde_json::{Value, json};

use crate::cells::Cells;
use crate::plan::Plan;
use crate::scrub::{Scrub, coarsen};
use crate::store::{Folder, Store, json as to_json};
use crate::summary::Summary;
use crate::{Error, File};

/// Writes the folder `publish` of a campaign; replaces an earlier one. Returns its path.
///
/// # Errors
/// A test cannot be read, or the folder not be written.
pub fn export(file: &File, plan: &Plan, store: &Store, summary: &Summary, scrub: &Scrub) -> Result<PathBuf, Error> {
    let mut folder = Folder::create(store, "publish")?;
    let (mut index, mut cells) = (Vec::new(), Cells::default());
    for test in &plan.tests {
        let finished = store.has_finished(test)?;
        let entry = store.last(test);
        let mut about = json!({
            "test": test.name(),
            "number": test.number,
            "block": test.block,
            "cc": test.combination.cc,
            "flows": test.combination.flows,
            "direction": test.combination.direction.name(),
            "finished": finished,
            "attempt": entry,
        });
        if let Some(interface) = &test.combination.interface {
            about["interface"] = interface.as_str().into();
        }
        scrub.value(&mut about);
        index.push(about);
        if !finished {
            continue;
        }
        let mut results = Results::read(&store.results(test))?;
        if !file.publish.keep_cells {
            cells.relabel(&mut results.tables);
        }
        results.tables.map_texts(&|text| scrub.text(text));
        results.meta.title = scrub.text(&results.meta.title);
        scrub.value(&mut results.meta.scenario);
        for point in &mut results.meta.points {
            point.values.values_mut().for_each(|value| scrub.value(value));
        }
        let path = store.results(test);
        let files = results.to_files().map_err(Error::io("export", &path))?;
        for (name, bytes) in files {
            folder.write(&format!("tests/{}/{name}", scrub.text(&test.name())), &bytes)?;
        }
    }
    folder.write("tests.json", &to_json(&index))?;
    folder.write("campaign.json", &to_json(&about(file, store, scrub)))?;
    let mut summary = serde_json::to_value(summary).expect("string keys and plain values");
    scrub.value(&mut summary);
    folder.write("summary.json", &to_json(&summary))?;
    folder.write("schema.json", &to_json(&schema()))?;
    let licence = &file.publish.licence;
    folder.write("LICENSE", format!("SPDX-License-Identifier: {licence}\n\nThe data in this folder may be used under the terms of {licence}:\nhttps://spdx.org/licenses/\n").as_bytes())?;
    folder.write("README.md", readme(file, plan, scrub).as_bytes())?;
    let sums = folder.sums();
    folder.write("SHA256SUMS", sums.as_bytes())?;
    folder.commit()
}

/// The campaign without what identifies people, places and machines.
fn about(file: &File, store: &Store, scrub: &Scrub) -> Value {
    let mut about = serde_json::to_value(store.state()).expect("string keys and plain values");
    if let Some(campaign) = about["campaign"].as_object_mut() {
        campaign.remove("location");
        if let Some(publish) = campaign.get_mut("publish").and_then(Value::as_object_mut) {
            publish.remove("remove");
        }
        if let Some(place) = campaign.get_mut("where").and_then(Value::as_object_mut)
            && place.contains_key("server")
        {
            place.insert("server".into(), "[removed]".into());
        }
    }
    scrub.value(&mut about);
    if let Some(place) = file.location {
        let grid_m = file.publish.grid_m;
        let (latitude, longitude) = coarsen(place.latitude, place.longitude, grid_m);
        about["location"] = json!({ "latitude": latitude, "longitude": longitude, "grid_m": grid_m });
    }
    about
}

/// The columns of all tables, with what is in the metadata of the Parquet files.
fn schema() -> Value {
    let table = |(name, schema): (&'static str, record::Schema)| {
        let columns: Vec<Value> = schema
            .fields()
            .iter()
            .map(|field| {
                let of = |key: &str| field.metadata().get(key).cloned();
                let data_type = match field.data_type().to_string() {
                    text if text.starts_with("Dictionary") => "Utf8".to_owned(),
                    other => other,
                };
                json!({ "name": field.name(), "type": data_type, "unit": of("unit"), "nullable": field.is_nullable(), "doc": of("doc") })
            })
            .collect();
        (name.to_owned(), json!({ "file": format!("{name}.parquet"), "columns": columns }))
    };
    let tables: serde_json::Map<String, Value> = Tables::schemas().into_iter().map(table).collect();
    let measures: serde_json::Map<String, Value> =
        Summary::units().map(|(name, unit)| (name.to_owned(), json!({ "unit": unit }))).collect();
    json!({ "tables": tables, "summary": measures })
}

fn readme(file: &File, plan: &Plan, scrub: &Scrub) -> String {
    let mut text = format!("# {}\n\n", scrub.text(&file.title));
    let _ = write!(
        text,
        "Results of a measurement campaign with Ranway: {} tests of {} combinations of congestion control, number of flows{} and \
         direction, in {} randomised blocks. Each block has every combination once, in an order drawn from the seed {}.\n\n",
        plan.tests.len(),
        plan.combinations.len(),
        if file.place.interfaces.is_empty() { "" } else { ", interface" },
        file.repetitions,
        file.seed
    );
    text += "| file | contents |\n| --- | --- |\n\
        | `tests.json` | the tests in their order, and how each ended |\n\
        | `tests/NNNN-CC-FLOWS-DIRECTION[-INTERFACE]/*.parquet` | the tables of a test; tables without rows are left out |\n\
        | `schema.json` | the columns of all tables: type, unit, meaning; the Parquet files hold the same |\n\
        | `summary.json` | medians and 95 % intervals for each combination |\n\
        | `campaign.json` | the campaign, its network, and the kernel and TCP settings of the measuring machine |\n\
        | `SHA256SUMS` | checksums: `sha256sum -c SHA256SUMS` |\n\
        | `LICENSE` | the licence |\n\n\
        The tables are Apache Parquet: DuckDB, Polars and pandas open them as they are.\n\n\
        The test is the unit of the statistics, and its flows are nested in it: intervals are those of a cluster bootstrap, which draws \
        whole tests.\n\n\
        Addresses, host names, user names and directories were replaced by `[removed]` or left out";
    if file.location.is_some() {
        let _ = write!(text, "; the place is the centre of a cell of {} m", file.publish.grid_m);
    }
    text += if file.publish.keep_cells {
        ". The identities of cells are kept: they tell where the modem was"
    } else {
        ". The identities of cells were replaced by numbers, the same ones in all tests: `cell` in the table `modem` is the N of \
         `cell-N` in `mobility`. Physical cell identities were left out"
    };
    text += ". Times of day are kept. Packet captures are not part of this folder.\n";
    let _ = write!(text, "\nLicence of the data: {}\n", file.publish.licence);
    text
}
