//! A results directory in the making, which appears whole or not at all.
//!
//! Files go to the hidden sibling `.NAME.partial`, each is flushed to the disk, and at the end one rename puts the
//! directory in its place. Earlier results there are exchanged atomically (on Linux; by two renames elsewhere) and then
//! removed. A directory with anything else in it is refused before the run starts. An interrupted run leaves at most
//! the hidden sibling, which the next one to the same place removes; a lock tells it from one that is still running.

#![allow(clippy::disallowed_methods)] // This module is where results meet the disk.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// The lock in a directory that is being written.
const LOCK: &str = ".lock";

/// A results directory that is being written. Dropped without [`Output::commit`], it leaves nothing behind, nor do its
/// parents stay that were made for it.
#[derive(Debug)]
pub struct Output {
    /// Where the directory will appear, without symbolic links.
    place: PathBuf,
    partial: PathBuf,
    /// Held for as long as `partial` is ours.
    _lock: File,
    /// Dropped after `partial` is gone.
    parents: Parents,
    committed: bool,
}

impl Output {
    /// Begins to write results to `dir`, which may not exist, be empty, or hold earlier results. Its parents are made.
    ///
    /// # Errors
    /// [`Error::Foreign`] if `dir` holds anything else, [`Error::Busy`] if another run is writing to it, [`Error::Io`]
    /// if the system refuses.
    pub fn create(dir: &Path) -> Result<Output, Error> {
        let (place, parents) = resolve(dir)?;
        refuse_foreign(&place)?;
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(Error::Foreign { path: place.clone(), entry: "the whole system".to_owned() });
        };
        let mut hidden = OsStr::new(".").to_owned();
        hidden.push(name);
        hidden.push(".partial");
        let partial = parent.join(hidden);
        if partial.exists() {
            if File::open(partial.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
            {
                return Err(Error::Busy { path: place });
            }
            fs::remove_dir_all(&partial).map_err(Error::io("remove what an interrupted run left in", &partial))?;
        }
        fs::create_dir(&partial).map_err(Error::io("make", &partial))?;
        let lock = File::create(partial.join(LOCK)).map_err(Error::io("write in", &partial))?;
        // Where the file system has no locks, two runs to one place are the user's to avoid.
        let _ = lock.try_lock();
        Ok(Output { place, partial, _lock: lock, parents, committed: false })
    }

    /// Opens the file `name` (below the directory, with `/`) for writing. [`OutputFile::finish`] must follow.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file(&self, name: &str) -> Result<OutputFile, Error> {
        let path = self.partial.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io("make", parent))?;
        }
        let file = File::create(&path).map_err(Error::io("write", &self.place.join(name)))?;
        Ok(OutputFile { path: self.place.join(name), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Writes the file `name` at once.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_with(name, |file| file.write_all(bytes))
    }

    /// Writes the file `name` by a function.
    pub(crate) fn write_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut OutputFile) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut file = self.file(name)?;
        write(&mut file).map_err(Error::io("write", &file.path))?;
        file.finish()
    }

    /// Puts the directory in its place. Earlier results there are replaced.
    ///
    /// # Errors
    /// [`Error::Io`]; what was there before is still there.
    pub fn commit(mut self) -> Result<(), Error> {
        refuse_foreign(&self.place)?;
        fs::remove_file(self.partial.join(LOCK)).map_err(Error::io("unlock", &self.partial))?;
        sync_dir(&self.partial)?;
        put_in_place(&self.partial, &self.place).map_err(Error::io("put results in place at", &self.place))?;
        self.committed = true;
        self.parents.0.clear();
        self.place.parent().map_or(Ok(()), sync_dir)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done for a directory that cannot be removed; the next run tries again.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Directories that were made on the way to another, the innermost first. Dropped, it removes those that are empty.
#[derive(Debug)]
struct Parents(Vec<PathBuf>);

impl Parents {
    /// Makes `dir` and what is missing on the way to it.
    fn make(dir: &Path) -> io::Result<Parents> {
        // The working directory may be another one when they are removed.
        let dir = std::path::absolute(dir)?;
        let missing = dir.ancestors().take_while(|path| !path.exists()).map(Path::to_owned);
        let parents = Parents(missing.collect());
        fs::create_dir_all(&dir)?;
        Ok(parents)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for path in &self.0 {
            // What somebody else has put something into stays.
            let _ = fs::remove_dir(path);
        }
    }
}

/// A file of an [`Output`].
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl OutputFile {
    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes the file to the disk.
    ///
    /// # Errors
    /// [`Error::Io`], as of a full disk.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(Error::io("write", &self.path))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether a run writes an entry of this name.
fn ours(name: &str) -> bool {
    let stem_of_table = name.strip_suffix(".parquet");
    stem_of_table.is_some_and(|stem| crate::Tables::NAMES.contains(&stem))
        || ["captures", "meta.json", "report.html", "summary.json", "timing.json"].contains(&name)
}

/// Refuses a directory that holds anything but results.
fn refuse_foreign(place: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", place)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(Error::io("read", place))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let foreign = names.iter().find(|name| !ours(name));
    // Files of our names without a meta.json are somebody's extract, not results.
    let extract = names.first().filter(|_| !names.iter().any(|name| name == "meta.json"));
    match foreign.or(extract) {
        Some(entry) => Err(Error::Foreign { path: place.to_owned(), entry: entry.clone() }),
        None => Ok(()),
    }
}

/// `dir` as an absolute path without symbolic links, its parents made.
fn resolve(dir: &Path) -> Result<(PathBuf, Parents), Error> {
    match fs::canonicalize(dir) {
        Ok(place) => return Ok((place, Parents(Vec::new()))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("use", dir)(error)),
        Err(_) => {}
    }
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parents = Parents::make(parent).map_err(Error::io("make", parent))?;
    let parent = fs::canonicalize(parent).map_err(Error::io("use", parent))?;
    let name = dir.file_name().ok_or_else(|| Error::io("use", dir)(io::ErrorKind::InvalidInput.into()))?;
    Ok((parent.join(name), parents))
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("write", dir))
}

/// Renames `partial` to `place`, and removes what was there.
fn put_in_place(partial: &Path, place: &Path) -> io::Result<()> {
    // An empty directory is replaced by rename itself.
    let exists = fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some());
    if !exists {
        return fs::rename(partial, place);
    }
    if exchange(partial, place)? {
        return fs::remove_dir_all(partial);
    }
    let old = partial.with_extension("old");
    fs::rename(place, &old)?;
    fs::rename(partial, place).or_else(|error| fs::rename(&old, place).and(Err(error)))?;
    fs::remove_dir_all(old)
}

/// Exchanges two directories in one step; `false` if the system or the file system has no such step.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}
