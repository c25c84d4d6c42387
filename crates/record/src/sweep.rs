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
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use disk::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::merge::{difference, together};
use crate::report::Chosen;
use crate::results::{from_files, json, to_files};
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
/// What differs if only the jobs tell that something does.
const IDENTITY: &str = "scenario, seed, number of runs or version";
/// What differs if nothing else does.
const INPUTS: &str = "parameter, trace or recorded channel";
/// Tables of a job with fewer rows take more memory than their rows do: they are read again instead.
const WORTH_KEEPING: usize = 1_000;
/// The most threads that read jobs for one that writes.
const MOST_READERS: usize = 8;
/// The largest file of a job that is read, in bytes.
const LARGEST: u64 = 4 << 30;
/// The largest `job.json` that is read, in bytes.
const LARGEST_DESCRIPTION: u64 = 1 << 20;
/// How much of a table's file is digested at a time, in bytes.
const PIECE: u64 = 1 << 20;
/// The length of a digest as text, in bytes.
const DIGEST_LEN: usize = 64;
/// How many jobs are asked of which sweep they are, if `sweep.json` does not say.
const WITNESSES: usize = 8;

/// `sweep.json`.
#[derive(Debug, Serialize, Deserialize)]
struct SweepFile {
    format: u32,
    /// The number of runs of each point.
    runs: Vec<u32>,
    /// A digest of everything that the jobs depend on.
    inputs: String,
    meta: Meta,
    /// The digests of the same sweep with fewer runs, whose jobs are jobs of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<String>,
}

/// What is run, but for how often.
fn without_runs(meta: &Meta) -> Meta {
    let mut meta = Meta { runs: 0, ..meta.clone() };
    if let Some(scenario) = meta.scenario.as_object_mut() {
        scenario.remove("runs");
    }
    meta
}

impl SweepFile {
    /// Reads the file in `dir`; `None` if there is none.
    fn read(dir: &Dir) -> Result<Option<SweepFile>, Error> {
        if dir.look(SWEEP)?.is_none() {
            return Ok(None);
        }
        let path = dir.path().join(SWEEP);
        let file = io::BufReader::new(dir.read(SWEEP)?);
        let mut file: SweepFile = serde_json::from_reader(file).map_err(|error| Error::damaged(&path, &error))?;
        if file.format != FORMAT {
            let what = format!("its format is {}, this program reads {FORMAT}", file.format);
            return Err(Error::damaged(&path, &what));
        }
        let possible = 1..=crate::merge::MAX_RUNS;
        let fits = file.runs.len() == file.meta.points.len() && (1..=MOST_POINTS).contains(&file.runs.len());
        if !fits || !file.runs.iter().all(|runs| possible.contains(runs)) {
            return Err(Error::damaged(&path, &"its runs do not fit its points"));
        }
        // Not written, so not part of the digest either.
        file.meta.partial = None;
        Ok(Some(file))
    }

    /// Writes the file into `dir`.
    fn write(&self, dir: &Dir) -> Result<(), Error> {
        let new = format!(".{SWEEP}.{:016x}", unique());
        write_new(dir, &new, &json(self))?;
        Ok(dir.rename(new.as_ref(), SWEEP.as_ref())?)
    }

    /// A digest of what is run, which the jobs' files hold.
    fn id(&self) -> String {
        hex(Sha256::new_with_prefix(json(&(&self.meta, &self.runs, &self.inputs))))
    }

    /// What differs between this sweep and another one. The number of runs, which may grow, is named if nothing else does.
    fn difference(&self, other: &SweepFile) -> Option<&'static str> {
        let all = || difference(&self.meta, &other.meta);
        let apart = difference(&without_runs(&self.meta), &without_runs(&other.meta));
        let inputs = (self.inputs != other.inputs).then_some(INPUTS);
        apart.or(inputs).or_else(all).or((self.runs != other.runs).then_some("number of runs"))
    }

    /// This sweep with more runs, as `wanted` has them; `None` if something else differs.
    ///
    /// A run does not depend on how many there are, unless it is the only one: recordings begin at their beginning then.
    fn grown(&self, wanted: &SweepFile) -> Option<SweepFile> {
        let same = self.inputs == wanted.inputs && without_runs(&self.meta) == without_runs(&wanted.meta);
        let more = |(before, after): (&u32, &u32)| before == after || *before >= 2 && before < after;
        let grows = self.runs.len() == wanted.runs.len() && self.runs.iter().zip(&wanted.runs).all(more);
        let earlier = || self.earlier.iter().cloned().chain([self.id()]).collect();
        (same && grows).then(|| SweepFile {
            format: FORMAT,
            runs: wanted.runs.clone(),
            inputs: wanted.inputs.clone(),
            meta: wanted.meta.clone(),
            earlier: earlier(),
        })
    }

    /// Checks that this file, which was found in the directory at `path`, is of the sweep that is wanted there.
    fn check_same(&self, wanted: &SweepFile, path: &Path) -> Result<(), Error> {
        match self.difference(wanted) {
            Some(what) => Err(Error::OtherSweep { path: path.to_owned(), what }),
            None => Ok(()),
        }
    }

    /// Checks that this file may be written to `dir`, where there is none, or one that gave the error `unreadable`: either the
    /// directory is empty, or the first finished jobs are all of this sweep. Returns whether there are such jobs.
    fn may_replace(&self, dir: &Dir, unreadable: Option<Error>) -> Result<bool, Error> {
        let (names, path) = (dir.names()?, || dir.path().to_owned());
        if unreadable.is_none() && names.iter().any(|name| name == SWEEP) {
            // Another process has made it just now.
            return Ok(false);
        }
        let (id, jobs) = (self.id(), names.iter().filter(|name| is_job(name)));
        let described = jobs.filter_map(|name| Some((name, describe(dir, name)?))).take(WITNESSES);
        let (ours, others): (Vec<_>, Vec<(&OsString, JobFile)>) = described.partition(|(_, job)| job.sweep == id);
        match (ours.is_empty(), others.first()) {
            (false, None) => return Ok(true),
            (false, Some((name, _))) => return Err(of_another_sweep(&path().join(name))),
            (true, Some(_)) => return Err(Error::OtherSweep { path: path(), what: IDENTITY }),
            (true, None) => {}
        }
        let untold = "no job tells what was run: choose another directory, or remove this one";
        match unreadable {
            Some(Error::Damaged { path: file, what }) => Err(Error::damaged(&file, &format!("{what}; {untold}"))),
            Some(error) => Err(error),
            None => {
                // What begins with a point is of a process that was killed before the file had its name.
                let foreign = |name: &&OsString| !name.to_string_lossy().starts_with('.') && !is_job(name);
                match names.iter().find(foreign) {
                    Some(entry) => Err(Error::Foreign { path: path(), entry: entry.to_string_lossy().into_owned() }),
                    None if names.iter().any(|name| is_job(name)) => {
                        Err(Error::LostSweep { path: path(), remedy: untold })
                    }
                    None => Ok(false),
                }
            }
        }
    }
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

/// The files in a job's file.
type Files = BTreeMap<String, Vec<u8>>;

/// What is left to run of some jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The jobs without a file, and those whose file is damaged, in their order.
    pub jobs: Vec<Job>,
    /// What was found lost or damaged and is made anew: a line for each kind, for a user.
    pub repairs: Vec<String>,
}

/// The directory of a sweep in progress.
#[derive(Debug)]
pub struct SweepDir {
    dir: Dir,
    /// A digest of what is run, which the jobs' files hold.
    id: String,
    file: SweepFile,
    /// Whether `sweep.json` was lost or damaged.
    restored: bool,
    /// Part of the names of files that are being written.
    unique: u64,
    written: AtomicU64,
}

impl SweepDir {
    /// Opens the directory of a sweep, or makes it. `runs` is the number of runs of each point; `inputs` are texts of everything
    /// that the jobs depend on, in an order that does not change: every point's scenario, traces, recorded channels.
    ///
    /// A `sweep.json` that is lost or damaged is made anew if the first finished jobs are all of this sweep. A sweep whose points
    /// had fewer runs, but two at least, grows: its finished jobs are kept.
    ///
    /// # Errors
    /// [`Error::OtherSweep`] if the directory is of another sweep, [`Error::NotJob`] if `sweep.json` is lost or damaged and some
    /// jobs are of another sweep, [`Error::LostSweep`] if no job can be read either, [`Error::Foreign`] if the directory is of
    /// something else, [`Error::Damaged`], [`Error::Untrusted`] or [`Error::Io`].
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
        let meta = Meta { partial: None, ..meta.clone() };
        let wanted = SweepFile { format: FORMAT, runs: runs.to_vec(), inputs: hex(digest), meta, earlier: Vec::new() };
        let (dir, made) = Dir::open_or_make(path)?;
        let unreadable = match SweepFile::read(&dir) {
            Ok(Some(file)) => {
                if let Some(grown) = file.grown(&wanted).filter(|_| file.difference(&wanted).is_some()) {
                    grown.write(&dir)?;
                    return Ok(SweepDir::new(dir, grown, false));
                }
                file.check_same(&wanted, path)?;
                return Ok(SweepDir::new(dir, file, false));
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let restored = wanted.may_replace(&dir, unreadable)?;
        wanted.write(&dir)?;
        made.keep();
        // Of several processes that begin at the same time, the last one's file stays; all should be the same.
        let file = SweepFile::read(&dir)?.ok_or_else(|| Error::NotSweep { path: path.to_owned() })?;
        file.check_same(&wanted, path)?;
        Ok(SweepDir::new(dir, file, restored))
    }

    /// Opens the directory of a sweep.
    ///
    /// # Errors
    /// [`Error::NotSweep`], [`Error::LostSweep`], [`Error::Damaged`], [`Error::Untrusted`] or [`Error::Io`].
    pub fn open(path: &Path) -> Result<SweepDir, Error> {
        let dir = Dir::open(path)?;
        match SweepFile::read(&dir) {
            Ok(Some(file)) => Ok(SweepDir::new(dir, file, false)),
            Ok(None) if dir.names()?.iter().any(|name| is_job(name)) => {
                let remedy = "start the same sweep again to make it anew";
                Err(Error::LostSweep { path: path.to_owned(), remedy })
            }
            Ok(None) => Err(Error::NotSweep { path: path.to_owned() }),
            Err(Error::Damaged { path, what }) => {
                Err(Error::damaged(&path, &format!("{what}; start the same sweep again to make it anew")))
            }
            Err(error) => Err(error),
        }
    }

    fn new(dir: Dir, file: SweepFile, restored: bool) -> SweepDir {
        SweepDir { dir, id: file.id(), file, restored, unique: unique(), written: AtomicU64::new(0) }
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What is run.
    pub fn meta(&self) -> &Meta {
        &self.file.meta
    }

    /// All jobs of the sweep, in order.
    pub fn jobs(&self) -> Vec<Job> {
        Job::all(&self.file.runs).collect()
    }

    /// Which of `jobs` are left to run: those without a file, and those whose file is damaged. To find these, it reads the files of
    /// all others, on several threads, as the merge does; that is little beside what it took to run them. `progress` is called
    /// with the share that is done, and returns whether to continue.
    ///
    /// Returns `None` if `progress` said to stop.
    ///
    /// # Errors
    /// [`Error::NotJob`] if running a job would replace a directory, a file that cannot be read, or a job of another sweep;
    /// [`Error::Io`].
    pub fn unfinished(&self, jobs: &[Job], progress: &mut dyn FnMut(f64) -> bool) -> Result<Option<Unfinished>, Error> {
        let finished = self.finished()?;
        let (there, mut left): (Vec<Job>, Vec<Job>) = jobs.iter().copied().partition(|job| finished.contains(job));
        let (count, mut checked, mut damaged) = (there.len(), 0, Vec::new());
        let check = |job| (job, self.read_file(job, |_, _| {}));
        let all = read_ahead(there.into_iter(), check, |(job, read)| {
            match read {
                Ok(_) => {}
                Err(Error::Damaged { .. }) => damaged.push(job),
                Err(error) => return Err(error),
            }
            checked += 1;
            Ok(progress(f64::from(checked) / count as f64))
        })?;
        if !all {
            return Ok(None);
        }
        let mut repairs = Vec::new();
        if self.restored {
            repairs
                .push(format!("{}: it was lost or damaged, and has been made anew", self.path().join(SWEEP).display()));
        }
        if !damaged.is_empty() {
            let place = self.path().display();
            repairs.push(format!("{place}: files are damaged, and these jobs run again: {}", Job::list(&damaged)));
            left.extend(damaged);
            let is_left: BTreeSet<Job> = left.into_iter().collect();
            left = jobs.iter().copied().filter(|job| is_left.contains(job)).collect();
        }
        Ok(Some(Unfinished { jobs: left, repairs }))
    }

    /// The jobs that have a file, which may be damaged.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finished(&self) -> Result<BTreeSet<Job>, Error> {
        let names = self.dir.names()?;
        let exists = |job: &Job| self.file.runs.get(job.point as usize).is_some_and(|&runs| job.run < runs);
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
    /// [`Error::Damaged`] and [`Error::NotJob`] name the file; [`Error::Io`].
    pub fn read_job(&self, job: Job) -> Result<(Tables, Timing), Error> {
        let mut files = Files::new();
        let timing = self.read_file(job, |name, piece| {
            files.entry(name.to_owned()).or_default().extend_from_slice(piece);
        })?;
        // The file is as it was written, so the sweep would take it for a finished job again.
        let wrong = |what: &dyn fmt::Display| {
            let path = self.path().join(name_of(job));
            Error::damaged(&path, &format!("{what}; remove it and start the same sweep again"))
        };
        let tables = from_files(&mut files).map_err(|error| wrong(&error))?;
        if tables.rows_of_jobs().keys().any(|&other| other != job) {
            return Err(wrong(&"it has rows of other jobs"));
        }
        Ok((tables, timing))
    }

    /// Reads the file of a finished job, and checks that the tables' files in it are as they were written. `take` is called with
    /// the name and the next piece of each of them, before they are checked.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::NotJob`] name the file; [`Error::Io`].
    fn read_file(&self, job: Job, mut take: impl FnMut(&str, &[u8])) -> Result<Timing, Error> {
        let name = name_of(job);
        let path = self.path().join(&name);
        let damaged = |what: &dyn fmt::Display| {
            Error::damaged(&path, &format!("{what}; start the same sweep again to redo the job"))
        };
        let file = self.dir.read(&name).map_err(|error| match (self.dir.look(&name), error) {
            (Ok(Some((kind, _))), _) if kind.is_dir() => not_job(&path, "is a directory"),
            (Ok(Some((kind, _))), _) if !kind.is_file() => damaged(&"it is not a regular file"),
            (_, disk::Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                not_job(&path, &format!("cannot be read ({source})"))
            }
            (_, error) => error.into(),
        })?;
        let mut archive = tar::Archive::new(io::BufReader::new(file).take(LARGEST));
        let mut entries = entries(&mut archive).map_err(|error| damaged(&error))?;
        let description = read_description(&mut entries).map_err(|error| damaged(&error))?;
        if description.sweep != self.id && !self.file.earlier.contains(&description.sweep) {
            return Err(of_another_sweep(&path));
        }
        if description.job != job {
            return Err(damaged(&"it is of another job"));
        }
        let (mut missing, mut piece) = (description.tables, Vec::new());
        for entry in entries {
            let mut entry = entry.map_err(|error| damaged(&error))?;
            let name = entry.path().map_err(|error| damaged(&error))?.to_string_lossy().into_owned();
            let Some(expected) = missing.remove(&name) else {
                return Err(damaged(&format!("it holds {name:?}, which {JOB} does not list")));
            };
            let mut digest = Sha256::new();
            while entry.by_ref().take(PIECE).read_to_end(&mut piece).map_err(|error| damaged(&error))? > 0 {
                digest.update(&piece);
                take(&name, &piece);
                piece.clear();
            }
            if hex(digest) != expected {
                return Err(damaged(&format!("{name} is changed")));
            }
        }
        match missing.keys().next() {
            Some(name) => Err(damaged(&format!("{name} is missing"))),
            None => Ok(description.timing),
        }
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

fn is_job(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| job_of(name).is_some())
}

/// The error for an entry that running a job would replace, though it is not a file of this job.
fn not_job(path: &Path, what: &str) -> Error {
    Error::NotJob { path: path.to_owned(), what: what.to_owned() }
}

fn of_another_sweep(path: &Path) -> Error {
    not_job(path, "is a job of another sweep")
}

/// The entries of a job's file. They are raw: the extensions that the library would otherwise read into memory, such as long
/// names, are never written.
fn entries<R: Read>(archive: &mut tar::Archive<R>) -> io::Result<tar::Entries<'_, R>> {
    Ok(archive.entries()?.raw(true))
}

/// Reads `job.json`, the first entry of a job's file.
fn read_description<R: Read>(entries: &mut tar::Entries<'_, R>) -> io::Result<JobFile> {
    let first = entries.next().ok_or_else(|| io::Error::other("it has no entries"))??;
    if first.path()?.as_os_str() != OsStr::new(JOB) {
        return Err(io::Error::other(format!("it does not begin with {JOB}")));
    }
    let mut text = Vec::new();
    first.take(LARGEST_DESCRIPTION).read_to_end(&mut text)?;
    let description: JobFile = serde_json::from_slice(&text)?;
    // Otherwise it would pass for a job of another sweep.
    if description.sweep.len() != DIGEST_LEN || !description.sweep.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(io::Error::other(format!("{JOB} names no sweep")));
    }
    Ok(description)
}

/// What the file of a job says of itself, if it can be read.
fn describe(dir: &Dir, name: &OsStr) -> Option<JobFile> {
    let mut archive = tar::Archive::new(io::BufReader::new(dir.read(name).ok()?).take(LARGEST));
    let mut entries = entries(&mut archive).ok()?;
    read_description(&mut entries).ok()
}

/// A digest as text.
fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of each file.
fn digests(files: &Files) -> BTreeMap<String, String> {
    files.iter().map(|(name, bytes)| (name.clone(), hex(Sha256::new_with_prefix(bytes)))).collect()
}

/// The file of a job.
fn archive(description: &[u8], files: &Files) -> io::Result<Vec<u8>> {
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
        if let Some(key) = first.file.difference(&other.file) {
            return Err(Error::Merge(MergeError::Different { part, key }));
        }
    }
    // A job that several have is the same in all: jobs depend on nothing but the scenario.
    let mut owners = BTreeMap::new();
    for part in parts {
        owners.extend(part.finished()?.into_iter().map(|job| (job, part)));
    }
    let missing: Vec<Job> = Job::all(&first.file.runs).filter(|job| !owners.contains_key(job)).collect();
    if !missing.is_empty() {
        return Err(Error::Merge(MergeError::Jobs { missing, repeated: Vec::new() }));
    }

    let (mut files, mut chosen) = (files(), Chosen::new());
    let (mut timing, mut points, mut of_point) = (Timing::default(), Vec::new(), Tables::default());
    let mut done = 0;
    let jobs = owners.iter().map(|(&job, &part)| (job, part));
    let all = read_ahead(
        jobs,
        |(job, part)| (job, part, part.read_job(job)),
        |(job, part, read)| {
            let (tables, its) = read?;
            if !progress(f64::from(done) / owners.len() as f64) {
                return Ok(false);
            }
            done += 1;
            if job.point as usize > points.len() {
                summarise(first.meta(), &mut of_point, &mut points);
            }
            timing = together([&timing, &its].into_iter());
            for file in &mut files {
                file.append(output, &tables)?;
            }
            of_point.append_summarised(&tables);
            let rows = tables.row_count();
            if rows > 0 {
                chosen.offer(job, rows as u64, (part, (rows >= WORTH_KEEPING).then_some((tables, its))));
            }
            Ok(true)
        },
    )?;
    if !all {
        return Ok(None);
    }
    summarise(first.meta(), &mut of_point, &mut points);
    for file in files {
        file.finish(output)?;
    }

    let (counts, mut tables) = (chosen.counts(), Tables::default());
    let all = read_ahead(
        chosen.into_kept(),
        |(job, (part, kept))| kept.map_or_else(|| part.read_job(job), Ok),
        |read| {
            tables.append(read?.0);
            Ok(progress(1.0))
        },
    )?;
    if !all {
        return Ok(None);
    }
    let results = Results { meta: first.meta().clone(), timing, tables };
    let summary = Summary::with(first.meta(), points);
    results.write_texts(output, &summary, |summary| report::html_of(&results, summary, counts))?;
    Ok(Some((summary, timing)))
}

/// Calls `read` with `items` on several threads, each an item ahead, and `take` with what it returned, in the items' order, in
/// this thread, until that returns false. Returns whether it took all.
///
/// # Errors
/// Those of `take`.
fn read_ahead<I: Send, T: Send>(
    items: impl Iterator<Item = I>,
    read: impl Fn(I) -> T + Sync,
    mut take: impl FnMut(T) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let mut shares: Vec<Vec<I>> = (0..threads).map(|_| Vec::new()).collect();
    items.enumerate().for_each(|(number, item)| shares[number % threads].push(item));
    shares.retain(|share| !share.is_empty());
    let read = &read;
    thread::scope(|scope| {
        let start = |share: Vec<I>| {
            let (to, from) = mpsc::sync_channel(0);
            scope.spawn(move || {
                // Nobody takes it if `take` has stopped.
                let _ = share.into_iter().map(read).try_for_each(|item| to.send(item));
            });
            from
        };
        let readers: Vec<_> = shares.into_iter().map(start).collect();
        for from in readers.iter().cycle() {
            // They take turns: when one has no further item, none has.
            let Ok(item) = from.recv() else { break };
            if !take(item)? {
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
