//! Writes and reads the results of some runs.

#![allow(clippy::disallowed_methods)] // This module is where results meet the disk.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::meta::{FORMAT, MetaFile, Results};
use crate::table::Table;
use crate::tables::{Tables, each_table};
use crate::{Error, Output, Summary, report};

impl Results {
    /// Writes everything to `dir`, whole or not at all. See [`Output::create`] for which directories are refused.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Foreign`], [`Error::Busy`]. What was in `dir` before is still there.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let output = Output::create(dir)?;
        self.write_to(&output)?;
        output.commit()
    }

    /// Writes everything but captures into an output that was created before the run, so that captures could go there
    /// meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_to(&self, output: &Output) -> Result<(), Error> {
        macro_rules! write {
            ($table:ident) => {
                output.write_with(concat!(stringify!($table), ".parquet"), |file| {
                    self.tables.$table.write_parquet(file)
                })?;
            };
        }
        each_table!(write);
        output.write("meta.json", &json(&MetaFile { format: FORMAT, meta: self.meta.clone() }))?;
        output.write("timing.json", &json(&self.timing))?;
        output.write("summary.json", &json(&Summary::of(self)))?;
        output.write("report.html", report::html(self).as_bytes())
    }

    /// Reads what [`Results::write`] wrote.
    ///
    /// # Errors
    /// [`Error::NotResults`], [`Error::Damaged`] or [`Error::Io`].
    pub fn read(dir: &Path) -> Result<Results, Error> {
        Ok(Results::read_within(dir, usize::MAX)?.0)
    }

    /// Reads what [`Results::write`] wrote, but not many more than `most` rows of any table: see [`Table::read_thinned`].
    /// Returns a line about each table that was thinned as well.
    ///
    /// # Errors
    /// As [`Results::read`]; also for a table that is longer and cannot be thinned.
    pub fn read_within(dir: &Path, most: usize) -> Result<(Results, Vec<String>), Error> {
        if fs::metadata(dir).map_err(Error::io("read", dir))?.is_dir() && !dir.join("meta.json").exists() {
            return Err(Error::NotResults { path: dir.to_owned() });
        }
        let MetaFile { format, meta } = read_json(&dir.join("meta.json"))?;
        if format != FORMAT {
            let what = format!("its format is {format}, this program reads {FORMAT}");
            return Err(Error::damaged(&dir.join("meta.json"), &what));
        }
        let timing = read_json(&dir.join("timing.json"))?;
        let (mut tables, mut notes) = (Tables::default(), Vec::new());
        macro_rules! read {
            ($table:ident) => {
                let path = dir.join(concat!(stringify!($table), ".parquet"));
                let file = File::open(&path).map_err(Error::io("read", &path))?;
                let (table, every) = Table::read_thinned(file, most).map_err(|error| Error::damaged(&path, &error))?;
                tables.$table = table;
                if every > 1 {
                    notes.push(format!("{}: of every {every} moments one is shown: it is too long", path.display()));
                }
            };
        }
        each_table!(read);
        Ok((Results { meta, timing, tables }, notes))
    }

    /// Means and confidence intervals.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("string keys and plain values");
    text.push(b'\n');
    text
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    serde_json::from_reader(io::BufReader::new(file)).map_err(|error| Error::damaged(path, &error))
}
