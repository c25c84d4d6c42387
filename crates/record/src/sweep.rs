//! A sweep in progress: a directory with a file for each finished job, and the results that are assembled from them.
//!
//! Jobs finish in any order, in any process, on any machine that shares the directory; or each machine has a directory of its
//! own, and the results are assembled from all of them. A job's file appears whole or not at all, so a killed process loses
//! the job that it was at and no other, and whoever continues skips the jobs that have a file.
//!
//! | file | contents |
//! | --- | --- |
//! | `sweep.json` | what is run ([`Meta`]), and the number of runs of each point |
//! | `POINT-RUN.tar` | the results of a job: `job.json`, and the tables that have rows, as Parquet |

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use disk::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::merge::{difference, one_after_the_other};
use crate::report::Chosen;
use crate::results::{from_files, from_json, json, to_files};
use crate::table::{Appender, Table};
use crate::tables::each_table;
use crate::{Error, Job, MergeError, Meta, Output, OutputFile, PointSummary, Results, Summary, Tables, Timing, report};

/// What is run.
const SWEEP: &str = "sweep.json";
/// A job's description in its file.
const JOB: &str = "job.json";
/// The version of the layout.
const FORMAT: u32 = 1;
/// The most points of a sweep, as in scenarios.
const MOST_POINTS: usize = 10_000;
/// What differs if nothing else does.
const INPUTS: &str = "parameter, trace or recorded channel";
/// Tables of a job with fewer rows take more memory than their rows do: they are read again instead.
const WORTH_KEEPING: usize = 1_000;
/// The most threads that read jobs for one that writes.
const MOST_READERS: usize = 8;
/// The largest file of a job that is read, in bytes.
const LARGEST: u64 = 4 << 30;

/// `sweep.json`.
#[derive(Serialize, Deserialize)]
struct SweepFile {
    format: u32,
    /// The number of runs of each point.
    runs: Vec<u32>,
    /// A digest of everything that the jobs depend on.
    inputs: String,
    meta: Meta,
}

/// `job.json`.
#[derive(Serialize, Deserialize)]
struct JobFile {
    /// The sweep.
    sweep: String,
    job: Job,
    timing: Timing,
    /// The files of tables, and a digest of each.
    tables: BTreeMap<String, String>,
}

/// The directory of a sweep in progress.
#[derive(Debug)]
pub struct SweepDir {
    dir: Dir,
    /// A digest of what is run, which the jobs' files hold.
    id: String,
    meta: Meta,
    runs: Vec<u32>,
    inputs: String,
    /// Part of the names of files that are being written.
    unique: u64,
    written: AtomicU64,
}

impl SweepDir {
    /// Opens the directory of a sweep, or makes it. `runs` is the number of runs of each point; `inputs` are texts of everything
    /// that the jobs depend on, in an order that does not change: every point's scenario, traces, recorded channels.
    ///
    /// # Errors
    /// [`Error::OtherSweep`] if the directory is of another sweep, [`Error::Foreign`] if it is of something else,
    /// [`Error::Damaged`], [`Error::Untrusted`] or [`Error::Io`].
    pub fn open_or_create(
        path: &Path,
        meta: &Meta,
        runs: &[u32],
        inputs: impl IntoIterator<Item = String>,
    ) -> Result<SweepDir, Error> {
        let mut digest = Sha256::new();
        for text in inputs {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        let inputs = hex(digest);
        let (dir, made) = Dir::open_or_make(path)?;
        let wanted = Meta { partial: None, ..meta.clone() };
        if dir.look(SWEEP)?.is_none() {
            let names = dir.names()?;
            // A killed process may have left the file before it had its name; another one may have made it just now.
            let foreign = names.iter().map(|name| name.to_string_lossy()).find(|name| !name.starts_with('.'));
            if let Some(entry) = foreign.filter(|_| !names.iter().any(|name| name == SWEEP)) {
                return Err(Error::Foreign { path: dir.path().to_owned(), entry: entry.into_owned() });
            }
            // Of several processes that begin at the same time, the last one's file stays; all are the same.
            let file = SweepFile { format: FORMAT, runs: runs.to_vec(), inputs: inputs.clone(), meta: wanted.clone() };
            let new = format!(".{SWEEP}.{:016x}", unique());
            write_new(&dir, &new, &json(&file))?;
            dir.rename(new.as_ref(), SWEEP.as_ref())?;
        }
        made.keep();
        let sweep = SweepDir::read(dir)?;
        match sweep.difference(&wanted, runs, &inputs) {
            Some(what) => Err(Error::OtherSweep { path: path.to_owned(), what }),
            None => Ok(sweep),
        }
    }

    /// Opens the directory of a sweep.
    ///
    /// # Errors
    /// [`Error::NotSweep`], [`Error::Damaged`], [`Error::Untrusted`] or [`Error::Io`].
    pub fn open(path: &Path) -> Result<SweepDir, Error> {
        let dir = Dir::open(path)?;
        if dir.look(SWEEP)?.is_none() {
            return Err(Error::NotSweep { path: path.to_owned() });
        }
        SweepDir::read(dir)
    }

    fn read(dir: Dir) -> Result<SweepDir, Error> {
        let path = dir.path().join(SWEEP);
        let file = io::BufReader::new(dir.read(SWEEP)?);
        let file: SweepFile = serde_json::from_reader(file).map_err(|error| Error::damaged(&path, &error))?;
        if file.format != FORMAT {
            let what = format!("its format is {}, this program reads {FORMAT}", file.format);
            return Err(Error::damaged(&path, &what));
        }
        let possible = 1..=crate::merge::MAX_RUNS;
        let fits = file.runs.len() == file.meta.points.len() && (1..=MOST_POINTS).contains(&file.runs.len());
        if !fits || !file.runs.iter().all(|runs| possible.contains(runs)) {
            return Err(Error::damaged(&path, &"its runs do not fit its points"));
        }
        let id = hex(Sha256::new_with_prefix(json(&(&file.meta, &file.runs, &file.inputs))));
        Ok(SweepDir {
            dir,
            id,
            meta: file.meta,
            runs: file.runs,
            inputs: file.inputs,
            unique: unique(),
            written: AtomicU64::new(0),
        })
    }

    /// What differs between this sweep and another one.
    fn difference(&self, meta: &Meta, runs: &[u32], inputs: &str) -> Option<&'static str> {
        let runs = (self.runs != runs).then_some("number of runs");
        difference(&self.meta, meta).or(runs).or((self.inputs != inputs).then_some(INPUTS))
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What is run.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// All jobs of the sweep, in order.
    pub fn jobs(&self) -> Vec<Job> {
        Job::all(&self.runs).collect()
    }

    /// Those of `jobs` that have not finished, in their order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn unfinished(&self, jobs: &[Job]) -> Result<Vec<Job>, Error> {
        let finished = self.finished()?;
        Ok(jobs.iter().copied().filter(|job| !finished.contains(job)).collect())
    }

    /// The jobs that have finished.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finished(&self) -> Result<BTreeSet<Job>, Error> {
        let names = self.dir.names()?;
        let exists = |job: &Job| self.runs.get(job.point as usize).is_some_and(|&runs| job.run < runs);
        Ok(names.iter().filter_map(|name| job_of(name.to_str()?)).filter(exists).collect())
    }

    /// Writes the results of a job.
    ///
    /// # Errors
    /// [`Error::Io`]; then there is no file of the job, or the one from before.
    pub fn write(&self, job: Job, tables: &Tables, timing: &Timing) -> Result<(), Error> {
        let name = name_of(job);
        let archived = to_files(tables, true).and_then(|files| {
            let tables = digests(&files);
            let description = JobFile { sweep: self.id.clone(), job, timing: *timing, tables };
            archive(&json(&description), &files)
        });
        let bytes = archived.map_err(Error::io("write", &self.path().join(&name)))?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let new = format!(".{name}.{:016x}-{number}", self.unique);
        write_new(&self.dir, &new, &bytes)?;
        Ok(self.dir.rename(new.as_ref(), name.as_ref())?)
    }

    /// Reads the results of a finished job.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the file; [`Error::Io`].
    pub fn read_job(&self, job: Job) -> Result<(Tables, Timing), Error> {
        let name = name_of(job);
        let path = self.path().join(&name);
        let damaged =
            |what: &dyn std::fmt::Display| Error::damaged(&path, &format!("{what}; remove it and run the job again"));
        let file = self.dir.read(&name)?;
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(io::BufReader::new(file).take(LARGEST));
        for entry in archive.entries().map_err(|error| damaged(&error))? {
            let mut entry = entry.map_err(|error| damaged(&error))?;
            let name = entry.path().map_err(|error| damaged(&error))?.to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
            files.insert(name, bytes);
        }
        let description: JobFile = from_json(JOB, &files).map_err(|error| damaged(&error))?;
        if description.sweep != self.id || description.job != job {
            return Err(damaged(&"it is of another sweep or job"));
        }
        files.remove(JOB);
        if digests(&files) != description.tables {
            return Err(damaged(&"a table is missing or changed"));
        }
        let tables = from_files(&mut files).map_err(|error| damaged(&error))?;
        if tables.rows_of_jobs().keys().any(|&other| other != job) {
            return Err(damaged(&"it has rows of other jobs"));
        }
        Ok((tables, description.timing))
    }

    /// Removes the directory and what sweeps write there.
    ///
    /// # Errors
    /// [`Error::Io`], also if the directory holds anything else, which stays.
    pub fn remove(self) -> Result<(), Error> {
        for name in self.dir.names()? {
            let text = name.to_string_lossy();
            // What a killed process has left, too.
            let unfinished = text.starts_with('.') && (text.contains(".tar.") || text.contains(&format!("{SWEEP}.")));
            if unfinished || job_of(&text).is_some() {
                self.dir.remove_file(&name)?;
            }
        }
        // Last, so that what is left of it is still known as a sweep.
        self.dir.remove_file(SWEEP)?;
        let (parent, name, _) = Dir::parent_of(self.dir.path())?;
        Ok(parent.remove_dir(name)?)
    }
}

/// A number that differs between processes, on one machine or on several.
fn unique() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Writes a file that does not exist, down to the disk.
fn write_new(dir: &Dir, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut file = dir.create_new(name)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|source| {
        // Nothing more can be done for a file that cannot be removed; its name is nobody else's.
        let _ = dir.remove_file(name);
        Error::io("write", &dir.path().join(name))(source)
    })
}

fn name_of(job: Job) -> String {
    format!("{}-{}.tar", job.point, job.run)
}

fn job_of(name: &str) -> Option<Job> {
    let (point, run) = name.strip_suffix(".tar")?.split_once('-')?;
    let job = Job { point: point.parse().ok()?, run: run.parse().ok()? };
    // Not `007-0.tar`.
    (name_of(job) == name).then_some(job)
}

/// A digest as text.
fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of each file.
fn digests(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    files.iter().map(|(name, bytes)| (name.clone(), hex(Sha256::new_with_prefix(bytes)))).collect()
}

/// The file of a job.
fn archive(description: &[u8], files: &BTreeMap<String, Vec<u8>>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes)
    };
    add(JOB, description)?;
    files.iter().try_for_each(|(name, bytes)| add(name, bytes))?;
    archive.into_inner()
}

/// Assembles the results of a sweep from its directories, which must be of the same sweep and have all jobs together, into
/// `output`. What is written is, byte for byte, what [`Results::write`] writes for one run of all jobs, except for the timing.
/// Memory is bounded: tables are written while jobs are read, in order. `progress` is called with the share that is done, and
/// returns whether to continue.
///
/// Returns the summary and the timing; `None` if `progress` said to stop.
///
/// # Errors
/// [`Error::InsideSweep`] if the results would go there; [`Error::Merge`] if directories are of different sweeps or jobs are missing; [`Error::Damaged`], [`Error::Io`].
pub fn assemble(
    parts: &[SweepDir],
    output: &Output,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<(Summary, Timing)>, Error> {
    let first = parts.first().ok_or(Error::Merge(MergeError::Empty))?;
    if let Some(part) = parts.iter().find(|part| output.place().starts_with(part.path())) {
        return Err(Error::InsideSweep { path: output.place(), sweep: part.path().to_owned() });
    }
    for (part, other) in parts.iter().enumerate().skip(1) {
        if let Some(key) = first.difference(&other.meta, &other.runs, &other.inputs) {
            return Err(Error::Merge(MergeError::Different { part, key }));
        }
    }
    // A job that several have is the same in all: jobs depend on nothing but the scenario.
    let mut owners = BTreeMap::new();
    for part in parts {
        owners.extend(part.finished()?.into_iter().map(|job| (job, part)));
    }
    let missing: Vec<Job> = Job::all(&first.runs).filter(|job| !owners.contains_key(job)).collect();
    if !missing.is_empty() {
        return Err(Error::Merge(MergeError::Jobs { missing, repeated: Vec::new() }));
    }

    let (mut files, mut chosen) = (files(), Chosen::new());
    let (mut timing, mut points, mut of_point) = (Timing::default(), Vec::new(), Tables::default());
    let mut done = 0;
    let all = read_ahead(owners.iter().map(|(&job, &part)| (job, (part, None))), |job, part, tables, its| {
        if !progress(f64::from(done) / owners.len() as f64) {
            return Ok(false);
        }
        done += 1;
        if job.point as usize > points.len() {
            summarise(&first.meta, &mut of_point, &mut points);
        }
        timing = one_after_the_other([&timing, &its].into_iter());
        for file in &mut files {
            file.append(output, &tables)?;
        }
        of_point.append_summarised(&tables);
        let rows = tables.row_count();
        if rows > 0 {
            chosen.offer(job, rows as u64, (part, (rows >= WORTH_KEEPING).then_some((tables, its))));
        }
        Ok(true)
    })?;
    if !all {
        return Ok(None);
    }
    summarise(&first.meta, &mut of_point, &mut points);
    for file in files {
        file.finish(output)?;
    }

    let (counts, mut tables) = (chosen.counts(), Tables::default());
    let all = read_ahead(chosen.into_kept(), |_, _, of_job, _| {
        tables.append(of_job);
        Ok(progress(1.0))
    })?;
    if !all {
        return Ok(None);
    }
    let results = Results { meta: first.meta.clone(), timing, tables };
    let summary = Summary::with(&first.meta, points);
    results.write_texts(output, &summary, |summary| report::html_of(&results, summary, counts))?;
    Ok(Some((summary, timing)))
}

/// Where the results of a job are, and they themselves if they are in memory.
type Place<'a> = (&'a SweepDir, Option<(Tables, Timing)>);

/// Reads the jobs that are not in memory on several threads, each a job ahead, and calls `take` with the results of one after the
/// other until it returns false. Returns whether it took all.
///
/// # Errors
/// Those of [`SweepDir::read_job`] and of `take`.
fn read_ahead<'a>(
    jobs: impl Iterator<Item = (Job, Place<'a>)>,
    mut take: impl FnMut(Job, &'a SweepDir, Tables, Timing) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let mut shares: Vec<Vec<(Job, Place)>> = (0..threads).map(|_| Vec::new()).collect();
    jobs.enumerate().for_each(|(number, job)| shares[number % threads].push(job));
    thread::scope(|scope| {
        let read = |share: Vec<(Job, Place<'a>)>| {
            let (to, from) = mpsc::sync_channel(0);
            scope.spawn(move || {
                for (job, (part, kept)) in share {
                    let read = kept.map_or_else(|| part.read_job(job), Ok);
                    // Nobody takes it if another one could not be read.
                    if to.send((job, part, read)).is_err() {
                        return;
                    }
                }
            });
            from
        };
        let readers: Vec<_> = shares.into_iter().map(read).collect();
        for from in readers.iter().cycle() {
            // They take turns: when one has no further job, none has.
            let Ok((job, part, read)) = from.recv() else { break };
            let (tables, timing) = read?;
            if !take(job, part, tables, timing)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Adds the summary of the next point, whose tables are complete.
fn summarise(meta: &Meta, of_point: &mut Tables, points: &mut Vec<PointSummary>) {
    let tables = std::mem::take(of_point);
    let point = points.len();
    points.extend(meta.points.get(point).map(|at| PointSummary::of(point as u32, at, &tables, false)));
}

/// A table's file while it is written.
trait TableFile {
    /// Appends the table's rows.
    fn append(&mut self, output: &Output, tables: &Tables) -> Result<(), Error>;
    /// Ends the file. Tables without rows have one, too, unless they are optional.
    fn finish(self: Box<Self>, output: &Output) -> Result<(), Error>;
}

struct Growing<T> {
    of: fn(&Tables) -> &T,
    file: Option<Appender<T, OutputFile>>,
}

impl<T: Table> Growing<T> {
    fn open(output: &Output) -> Result<Appender<T, OutputFile>, Error> {
        Ok(Appender::new(output.file(&format!("{}.parquet", T::NAME))?))
    }

    /// Where the file will appear.
    fn path(output: &Output) -> PathBuf {
        output.place().join(format!("{}.parquet", T::NAME))
    }
}

impl<T: Table> TableFile for Growing<T> {
    fn append(&mut self, output: &Output, tables: &Tables) -> Result<(), Error> {
        let table = (self.of)(tables);
        if table.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Self::open(output)?),
        };
        file.append(table).map_err(Error::io("write", &Self::path(output)))
    }

    fn finish(self: Box<Self>, output: &Output) -> Result<(), Error> {
        let file = match self.file {
            None if Tables::OPTIONAL.contains(&T::NAME) => return Ok(()),
            Some(file) => file,
            None => Self::open(output)?,
        };
        file.finish().map_err(Error::io("write", &Self::path(output)))?.finish()
    }
}

/// The files of all tables.
fn files() -> Vec<Box<dyn TableFile>> {
    fn file<T: Table + 'static>(of: fn(&Tables) -> &T) -> Box<dyn TableFile> {
        Box::new(Growing { of, file: None })
    }
    let mut files = Vec::new();
    macro_rules! add {
        ($table:ident) => {
            files.push(file(|tables| &tables.$table))
        };
    }
    each_table!(add);
    files
}
