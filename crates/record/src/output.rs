//! A results directory in the making, which appears whole or not at all.
//!
//! Files go to the hidden sibling `.NAME.partial`. In the end all are flushed to the disk, and one rename puts the directory
//! in its place. Earlier results there are exchanged atomically (on Linux; by two renames elsewhere) and then
//! removed. A directory with anything else in it is refused before the run starts. An interrupted run leaves at most
//! the hidden sibling, which the next one to the same place removes; a lock on it tells it from one that is still running.
//!
//! The parent and the hidden directory are held open from the start ([`disk::Dir`]), and every file is made anew in the
//! latter, which nobody else may enter until it is complete. Whoever exchanges names meanwhile redirects nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Dir, Made};

use crate::Error;
use crate::durable::Written;
use crate::meta::is_complete;

/// What captures leave for the results, in bytes.
const RESERVE: u64 = 64 << 20;
/// How often a hidden directory is made before another run is believed to be at work.
const TRIES: u32 = 3;

/// A results directory that is being written. Dropped without [`Output::commit`], it leaves nothing behind, nor do its
/// parents stay that were made for it.
#[derive(Debug)]
pub struct Output {
    /// Where the directory will appear.
    parent: Dir,
    name: OsString,
    /// The name of `dir` until then.
    partial: OsString,
    /// Holds the lock for as long as it is open.
    dir: Dir,
    written: Arc<Written>,
    /// Dropped after `partial` is gone.
    parents: Option<Made>,
    committed: bool,
}

impl Output {
    /// Begins to write results to `dir`, which may not exist, be empty, or hold earlier results. Its parents are made.
    ///
    /// # Errors
    /// [`Error::Foreign`] if `dir` holds anything else, [`Error::Busy`] if another run is writing to it,
    /// [`Error::Untrusted`] if this process is root and others could exchange files there, [`Error::Io`] if the system
    /// refuses.
    pub fn create(dir: &Path) -> Result<Output, Error> {
        let (parent, name, parents) = resolve(dir)?;
        refuse_foreign(&parent, &name)?;
        let mut partial = OsString::from(".");
        partial.push(&name);
        partial.push(".partial");
        for _ in 0..TRIES {
            if parent.look(&partial)?.is_some() {
                // Whoever writes to it holds the lock; a link or a file is nobody's work.
                if parent.sub(&partial).is_ok_and(|dir| !dir.lock()) {
                    break;
                }
                parent.remove_tree(&partial)?;
            }
            let dir = match parent.make(&partial, true) {
                Ok(dir) => dir,
                Err(disk::Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error.into()),
            };
            let is_there = |found: Option<(_, _)>| Ok::<_, Error>(found.map(|(_, id)| id) == Some(dir.identity()?));
            // Another run may have taken it for an abandoned one before it was locked.
            if dir.lock() && is_there(parent.look(&partial)?)? {
                let written = Arc::default();
                return Ok(Output { parent, name, partial, dir, written, parents: Some(parents), committed: false });
            }
        }
        Err(Error::Busy { path: parent.path().join(name) })
    }

    /// Where the directory will appear.
    pub fn place(&self) -> PathBuf {
        self.parent.path().join(&self.name)
    }

    /// Opens the file `name` (below the directory, with `/`) for writing. [`OutputFile::finish`] must follow.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is such a file already.
    pub fn file(&self, name: &str) -> Result<OutputFile, Error> {
        let mut dir = self.dir.try_clone()?;
        let (parents, file) = name.rsplit_once('/').map_or((None, name), |(parents, file)| (Some(parents), file));
        for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
            dir = if dir.look(parent)?.is_some() { dir.sub(parent)? } else { dir.make(parent, false)? };
        }
        let file = dir.create_new(file)?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(OutputFile { path: self.place().join(name), file, written: self.written.clone() })
    }

    /// Renames a file that was written (names below the directory, with `/`, in the same folder).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let (folder, from) = from.rsplit_once('/').map_or((None, from), |(folder, file)| (Some(folder), file));
        let to = to.rsplit_once('/').map_or(to, |(_, file)| file);
        let mut dir = self.dir.try_clone()?;
        for name in folder.into_iter().flat_map(|folder| folder.split('/')) {
            dir = dir.sub(name)?;
        }
        Ok(dir.rename(from.as_ref(), to.as_ref())?)
    }

    /// Removes all that was written so far.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn clear(&self) -> Result<(), Error> {
        self.written.clear();
        for name in self.dir.names()? {
            self.dir.remove_tree(&name)?;
        }
        Ok(())
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
        refuse_foreign(&self.parent, &self.name)?;
        self.written.sync()?;
        self.dir.publish(0o777)?;
        self.dir.sync()?;
        let ours = self.parent.look(&self.partial)?.map(|(_, identity)| identity) == Some(self.dir.identity()?);
        if !ours {
            let source = io::Error::other("somebody has moved the directory that was being written");
            return Err(Error::io("put results in place at", &self.place())(source));
        }
        self.put_in_place()?;
        self.committed = true;
        if let Some(parents) = self.parents.take() {
            parents.keep();
        }
        Ok(self.parent.sync()?)
    }

    /// Renames the hidden directory to what it is to be, and removes what was there.
    fn put_in_place(&self) -> Result<(), Error> {
        let Output { parent, name, partial, .. } = self;
        // An empty directory is replaced by rename itself.
        let exists = parent.look(name)?.is_some() && !parent.sub(name)?.names()?.is_empty();
        if !exists {
            return parent.rename(partial, name).map_err(in_place);
        }
        if parent.exchange(partial, name).map_err(in_place)? {
            return Ok(parent.remove_tree(partial)?);
        }
        let mut old = partial.clone();
        old.push(".old");
        parent.rename(name, &old).map_err(in_place)?;
        if let Err(error) = parent.rename(partial, name) {
            parent.rename(&old, name)?;
            return Err(in_place(error));
        }
        Ok(parent.remove_tree(&old)?)
    }
}

/// Describes the purpose of a failed rename.
fn in_place(error: disk::Error) -> Error {
    match error.into() {
        Error::Io { path, source, .. } => Error::Io { doing: "put results in place at", path, source },
        error => error,
    }
}

impl Output {
    /// Puts partial results in place, unless complete ones are there.
    ///
    /// # Errors
    /// [`Error::Complete`], [`Error::Io`]; what was there before is still there.
    pub(crate) fn commit_over_partial(self) -> Result<(), Error> {
        if is_complete(&self.parent, &self.name) {
            return Err(Error::Complete { path: self.place() });
        }
        self.commit()
    }

    /// Puts partial results in place, without replacing complete ones: where those are, partial ones go to the first of
    /// `NAME-interrupted`, `NAME-interrupted-2`, ... that holds nothing, or partial results. Returns where they are.
    ///
    /// # Errors
    /// [`Error::Io`]; what was there before is still there.
    pub fn commit_partial(mut self) -> Result<PathBuf, Error> {
        let name = self.name.clone();
        let mut number = 1;
        while is_complete(&self.parent, &self.name) || refuse_foreign(&self.parent, &self.name).is_err() {
            let mut other = name.clone();
            other.push("-interrupted");
            if number > 1 {
                other.push(format!("-{number}"));
            }
            number += 1;
            self.name = other;
        }
        let place = self.place();
        self.commit()?;
        Ok(place)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done for a directory that cannot be removed; the next run tries again.
            let _ = self.parent.remove_tree(&self.partial);
        }
    }
}

/// A file of an [`Output`].
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: BufWriter<File>,
    written: Arc<Written>,
}

impl OutputFile {
    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file system has too little room for anything but the results themselves: less than 64 MB, or than an
    /// eighth of a small one.
    pub fn is_short_of_space(&self) -> bool {
        disk::space(self.file.get_ref()).is_some_and(|space| space.free < RESERVE.min(space.total / 8))
    }

    /// Writes what is left in memory. The file is on the disk after [`Output::commit`].
    ///
    /// # Errors
    /// [`Error::Io`], as of a full disk.
    pub fn finish(self) -> Result<(), Error> {
        let OutputFile { path, file, written } = self;
        match file.into_inner() {
            Ok(file) => written.add(path, file),
            Err(error) => Err(Error::io("write", &path)(error.into_error())),
        }
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

/// Refuses a directory that holds anything but results, and one of somebody else's.
fn refuse_foreign(parent: &Dir, name: &OsStr) -> Result<(), Error> {
    if parent.look(name)?.is_none() {
        return Ok(());
    }
    let place = parent.trusted_sub(name)?;
    let names: Vec<String> = place.names()?.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let foreign = names.iter().find(|name| !ours(name));
    // Files of our names without a meta.json are somebody's extract, not results.
    let extract = names.first().filter(|_| !names.iter().any(|name| name == "meta.json"));
    match foreign.or(extract) {
        Some(entry) => Err(Error::Foreign { path: place.path().to_owned(), entry: entry.clone() }),
        None => Ok(()),
    }
}

/// The parent of `dir`, without symbolic links, and its name there; parents that are missing are made.
fn resolve(dir: &Path) -> Result<(Dir, OsString, Made), Error> {
    // A link to a directory stands for that, and so do names as `.` and `..`.
    match Dir::open(dir) {
        Ok(place) => match (place.path().parent(), place.path().file_name()) {
            (Some(parent), Some(name)) => Ok((Dir::open(parent)?, name.to_owned(), Made::default())),
            _ => Err(Error::Foreign { path: place.path().to_owned(), entry: "the whole system".to_owned() }),
        },
        Err(disk::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Dir::parent_of(dir)?),
        Err(error) => Err(error.into()),
    }
}
