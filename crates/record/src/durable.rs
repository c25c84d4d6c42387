//! Files that have been written, on their way to the disk.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Error;

/// How many files are open at most while they wait.
const MOST: usize = 64;
/// How many are flushed at the same time.
const AT_ONCE: usize = 16;
/// All that a thread needs that only makes one system call.
const STACK: usize = 64 << 10;

/// Files that are complete and may not be on the disk yet. A flush waits for the disk, and the system joins those that wait
/// together: twenty small files take one tenth of the time that they take one after the other.
#[derive(Debug, Default)]
pub(crate) struct Written(Mutex<Vec<(PathBuf, File)>>);

impl Written {
    /// Adds a file. With many files this flushes those before it.
    pub(crate) fn add(&self, path: PathBuf, file: File) -> Result<(), Error> {
        let full = {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let full = if files.len() < MOST { Vec::new() } else { std::mem::take(&mut *files) };
            files.push((path, file));
            full
        };
        sync_all(&full)
    }

    /// Forgets the files, because they were removed.
    pub(crate) fn clear(&self) {
        self.take();
    }

    /// Returns once all files are on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_all(&self.take())
    }

    fn take(&self) -> Vec<(PathBuf, File)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Flushes files to the disk, several at once. Returns the error of the first that failed.
fn sync_all(files: &[(PathBuf, File)]) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some((path, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(source) = file.sync_all() {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.push(Error::io("write", path)(source));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..files.len().min(AT_ONCE) {
            // Where there can be no more threads, the others do it.
            let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        }
        work();
    });
    failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn any_file() -> File {
        File::create(tempfile::tempdir().unwrap().path().join("any")).unwrap()
    }

    #[test]
    fn few_files_are_open_at_a_time() {
        let written = Written::default();
        for n in 0..3 * MOST {
            written.add(format!("{n}").into(), any_file()).unwrap();
            assert!(written.0.lock().unwrap().len() <= MOST);
        }
        written.sync().unwrap();
        assert!(written.0.lock().unwrap().is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_flushed_is_named() {
        let written = Written::default();
        for n in 0..AT_ONCE {
            written.add(format!("{n}").into(), any_file()).unwrap();
        }
        // The kernel has no disk for it.
        written.add("refuses".into(), File::options().read(true).open("/proc/self/status").unwrap()).unwrap();
        let error = written.sync().unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path == Path::new("refuses")), "{error}");
    }
}
