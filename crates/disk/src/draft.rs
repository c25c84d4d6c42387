//! A file that is written over some time and takes its place when it is complete.

use crate::dir::Dir;
use crate::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The drafts of this process: the directory and the hidden name of each.
static DRAFTS: Mutex<Vec<(Dir, OsString)>> = Mutex::new(Vec::new());

fn drafts() -> MutexGuard<'static, Vec<(Dir, OsString)>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all drafts of this process, which is about to exit without dropping them.
pub fn remove_drafts() {
    for (dir, hidden) in drafts().drain(..) {
        let _ = dir.remove_file(&hidden);
    }
}

/// A file under a hidden name. Dropping it removes it; [`Draft::commit`] gives it its name, in place of an existing regular
/// file. A process that exits without dropping its drafts calls [`remove_drafts`].
#[derive(Debug)]
pub struct Draft {
    file: File,
    dir: Dir,
    hidden: OsString,
    name: OsString,
    is_committed: bool,
}

impl Draft {
    /// Creates the file that will be at `path`, and missing directories on the path.
    ///
    /// # Errors
    /// The same as [`Dir::open_or_make`] and [`Dir::create_new`]; [`Error::Io`] also if there is something else than a regular
    /// file at `path`, such as a symbolic link.
    pub fn create(path: &Path) -> Result<Draft, Error> {
        let (dir, name, made) = Dir::parent_of(path)?;
        if let Some((kind, _)) = dir.look(&name)?
            && kind != rustix::fs::FileType::RegularFile
        {
            return Err(Error::io("write", path)(io::Error::other("not a regular file")));
        }
        let registered = dir.try_clone()?;
        let (file, hidden) = dir.create_hidden(&name)?;
        drafts().push((registered, hidden.clone()));
        made.keep();
        Ok(Draft { file, dir, hidden, name, is_committed: false })
    }

    /// Another handle of the file, for a process that writes to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn handle(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(Error::io("write", &self.dir.path().join(&self.name)))
    }

    /// Gives the file its name, once its contents are on the disk.
    ///
    /// # Errors
    /// [`Error::Io`]; the file is removed.
    pub fn commit(mut self) -> Result<(), Error> {
        self.file.sync_all().map_err(Error::io("write", &self.dir.path().join(&self.name)))?;
        self.dir.rename(&self.hidden, &self.name)?;
        self.is_committed = true;
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A hidden name is unique in a process.
        drafts().retain(|(_, hidden)| *hidden != self.hidden);
        if !self.is_committed {
            let _ = self.dir.remove_file(&self.hidden);
        }
    }
}
