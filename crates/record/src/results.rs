//! Writes and reads the results of some runs.

#![allow(clippy::disallowed_methods)] // This module is where results meet the disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use bytes::Bytes;
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
    /// [`Error::Io`], [`Error::Foreign`], [`Error::Busy`]; [`Error::Complete`] if these results are partial and those in
    /// `dir` are not. What was in `dir` before is still there.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        self.commit(Output::create(dir)?)
    }

    /// Writes everything into an output and puts it in place.
    ///
    /// # Errors
    /// As [`Results::write`].
    pub fn commit(&self, output: Output) -> Result<(), Error> {
        self.write_to(&output)?;
        if self.meta.partial.is_some() { output.commit_over_partial() } else { output.commit() }
    }

    /// Writes everything but captures into an output that was created before the run, so that captures could go there
    /// meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_to(&self, output: &Output) -> Result<(), Error> {
        macro_rules! write {
            ($table:ident) => {
                if !(Tables::OPTIONAL.contains(&stringify!($table)) && self.tables.$table.is_empty()) {
                    output.write_with(concat!(stringify!($table), ".parquet"), |file| {
                        self.tables.$table.write_parquet(file)
                    })?;
                }
            };
        }
        each_table!(write);
        let summary = self.summary();
        self.write_texts(output, &summary, |summary| report::html_with(self, summary))
    }

    /// Writes everything but tables and captures. `report` makes the report with the summary.
    pub(crate) fn write_texts(
        &self,
        output: &Output,
        summary: &Summary,
        report: impl FnOnce(Summary) -> String,
    ) -> Result<(), Error> {
        output.write("meta.json", &json(&MetaFile { format: FORMAT, meta: self.meta.clone() }))?;
        output.write("timing.json", &json(&self.timing))?;
        output.write("summary.json", &json(summary))?;
        output.write("report.html", report(summary.clone()).as_bytes())
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
        let meta: MetaFile = read_json(&dir.join("meta.json"))?;
        check_format(&meta, &dir.join("meta.json"))?;
        let timing = read_json(&dir.join("timing.json"))?;
        let (mut tables, mut notes) = (Tables::default(), Vec::new());
        macro_rules! read {
            ($table:ident) => {
                let path = dir.join(concat!(stringify!($table), ".parquet"));
                if !Tables::OPTIONAL.contains(&stringify!($table)) || path.exists() {
                    let file = File::open(&path).map_err(Error::io("read", &path))?;
                    let read = Table::read_thinned(file, most).map_err(|error| Error::damaged(&path, &error));
                    let (table, every) = read?;
                    tables.$table = table;
                    if every > 1 {
                        let what = "moments one is shown: it is too long";
                        notes.push(format!("{}: of every {every} {what}", path.display()));
                    }
                }
            };
        }
        each_table!(read);
        Ok((Results { meta: meta.meta, timing, tables }, notes))
    }

    /// The files that hold these results, by name, to send them to another process: those of [`Results::write`] without
    /// summary and report, which are computed from the others, and without tables that have no rows.
    ///
    /// # Errors
    /// A table cannot be written as Parquet.
    pub fn to_files(&self) -> io::Result<BTreeMap<String, Vec<u8>>> {
        let meta = MetaFile { format: FORMAT, meta: self.meta.clone() };
        let texts = [("meta.json", json(&meta)), ("timing.json", json(&self.timing))];
        let mut files = BTreeMap::from(texts.map(|(name, bytes)| (name.to_owned(), bytes)));
        files.append(&mut to_files(&self.tables, false)?);
        Ok(files)
    }

    /// Reads what [`Results::to_files`] returned.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the file.
    pub fn from_files(mut files: BTreeMap<String, Vec<u8>>) -> Result<Results, Error> {
        let meta: MetaFile = from_json("meta.json", &files)?;
        check_format(&meta, Path::new("meta.json"))?;
        let timing = from_json("timing.json", &files)?;
        let tables = from_files(&mut files)?;
        Ok(Results { meta: meta.meta, timing, tables })
    }

    /// Means and confidence intervals.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}

/// The Parquet files of the tables that have rows, by name; [`Table::write_for_now`] writes them if they are soon read again.
///
/// # Errors
/// A table cannot be written as Parquet.
pub(crate) fn to_files(tables: &Tables, for_now: bool) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    macro_rules! write {
        ($table:ident) => {
            if !tables.$table.is_empty() {
                let mut bytes = Vec::new();
                if for_now {
                    tables.$table.write_for_now(&mut bytes)?;
                } else {
                    tables.$table.write_parquet(&mut bytes)?;
                }
                files.insert(concat!(stringify!($table), ".parquet").to_owned(), bytes);
            }
        };
    }
    each_table!(write);
    Ok(files)
}

/// Takes the tables out of what [`to_files`] returned; those without a file have no rows.
///
/// # Errors
/// [`Error::Damaged`] names the file.
pub(crate) fn from_files(files: &mut BTreeMap<String, Vec<u8>>) -> Result<Tables, Error> {
    let mut tables = Tables::default();
    macro_rules! read {
        ($table:ident) => {
            let name = concat!(stringify!($table), ".parquet");
            if let Some(bytes) = files.remove(name) {
                let table = Table::read_parquet(Bytes::from(bytes));
                tables.$table = table.map_err(|error| Error::damaged(Path::new(name), &error))?;
            }
        };
    }
    each_table!(read);
    Ok(tables)
}

fn check_format(meta: &MetaFile, path: &Path) -> Result<(), Error> {
    if meta.format == FORMAT {
        return Ok(());
    }
    let what = format!("its format is {}, this program reads {FORMAT}", meta.format);
    Err(Error::damaged(path, &what))
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("string keys and plain values");
    text.push(b'\n');
    text
}

pub(crate) fn from_json<T: DeserializeOwned>(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<T, Error> {
    let bytes = files.get(name).ok_or_else(|| Error::damaged(Path::new(name), &"it is missing"))?;
    serde_json::from_slice(bytes).map_err(|error| Error::damaged(Path::new(name), &error))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    serde_json::from_reader(io::BufReader::new(file)).map_err(|error| Error::damaged(path, &error))
}
