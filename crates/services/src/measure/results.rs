//! Results as lines of JSON in files of bounded size, of which the oldest are deleted.

use super::error::Error;
use super::metrics::Counters;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Results that wait to be written; further ones are dropped and counted.
const MOST_WAITING: usize = 256;
/// The name of a file: a number follows.
const PREFIX: &str = "measure-";
/// The end of a file's name.
const SUFFIX: &str = ".jsonl";
/// The longest time until the end of the service for what waits.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Where results are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The directory, which is made if it is missing.
    pub directory: PathBuf,
    /// A file that is longer gets no further result.
    pub file_bytes: u64,
    /// The most files.
    pub files: usize,
}

impl Store {
    /// Stores in a directory with usual bounds: 64 files of 64 MiB.
    pub fn new(directory: PathBuf) -> Store {
        Store { directory, file_bytes: 64 << 20, files: 64 }
    }
}

/// Writes results on a thread of its own, so that a slow disk delays no test.
#[derive(Debug)]
pub(super) struct Results {
    sender: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

impl Results {
    /// Opens a directory, or stores nothing.
    pub(super) fn open(store: Option<Store>, counters: Arc<Counters>) -> Result<Results, Error> {
        let Some(store) = store else { return Ok(Results { sender: None, thread: None, counters }) };
        let files = Files::open(store)?;
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let counted = counters.clone();
        let builder = std::thread::Builder::new().name("measure-results".into());
        let thread = builder.spawn(move || write_all(files, &receiver, &counted));
        let thread = thread.map_err(|why| Error(format!("cannot start a thread: {why}")))?;
        Ok(Results { sender: Some(sender), thread: Some(thread), counters })
    }

    /// Whether results are stored.
    pub(super) fn is_stored(&self) -> bool {
        self.sender.is_some()
    }

    /// Stores a result, unless too many wait.
    pub(super) fn store(&self, result: &impl Serialize) {
        let Some(sender) = &self.sender else { return };
        let line = serde_json::to_string(result).ok();
        if line.is_none_or(|line| sender.try_send(line).is_err()) {
            self.counters.results_dropped.fetch_add(1, Relaxed);
        }
    }

    /// Writes what waits, and ends.
    pub(super) fn close(&mut self) {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return };
        let start = std::time::Instant::now();
        while !thread.is_finished() && start.elapsed() < END_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn write_all(mut files: Files, lines: &Receiver<String>, counters: &Counters) {
    for line in lines {
        match files.write(&line) {
            Ok(()) => counters.results_stored.fetch_add(1, Relaxed),
            Err(_) => counters.results_dropped.fetch_add(1, Relaxed),
        };
    }
}

/// The files of a directory.
#[derive(Debug)]
struct Files {
    store: Store,
    number: u64,
    open: Option<(File, u64)>,
}

impl Files {
    fn open(store: Store) -> Result<Files, Error> {
        let name = store.directory.display().to_string();
        let wrong = |why: std::io::Error| Error(format!("results directory {name}: {why}"));
        fs::create_dir_all(&store.directory).map_err(wrong)?;
        let number = numbers(&store.directory).map_err(wrong)?.last().map_or(0, |last| last + 1);
        let mut files = Files { store, number, open: None };
        // Whether it can be written to is known before the first test.
        files.rotate().map_err(wrong)?;
        Ok(files)
    }

    fn write(&mut self, line: &str) -> std::io::Result<()> {
        if self.open.as_ref().is_none_or(|(_, bytes)| *bytes >= self.store.file_bytes) {
            self.rotate()?;
        }
        if let Some((file, bytes)) = &mut self.open {
            let line = format!("{line}\n");
            let written = file.write_all(line.as_bytes());
            *bytes += line.len() as u64;
            if written.is_err() {
                // A part of a line may be there: the next one goes to another file.
                self.open = None;
            }
            return written;
        }
        Ok(())
    }

    fn rotate(&mut self) -> std::io::Result<()> {
        let path = |number: u64| self.store.directory.join(format!("{PREFIX}{number:08}{SUFFIX}"));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o640).open(path(self.number))?;
        let known = numbers(&self.store.directory)?;
        for old in known.iter().rev().skip(self.store.files.max(1)) {
            fs::remove_file(path(*old))?;
        }
        self.number += 1;
        self.open = Some((file, 0));
        Ok(())
    }
}

/// Returns the numbers of the files in a directory, in order.
fn numbers(directory: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_bound_and_the_oldest_are_deleted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = Store { directory: directory.path().to_owned(), file_bytes: 100, files: 3 };
        let counters = Arc::new(Counters::default());
        let mut results = Results::open(Some(store.clone()), counters.clone()).expect("it can be written to");
        for number in 0..60 {
            results.store(&serde_json::json!({ "number": number, "more": "0123456789" }));
            // Results that wait are bounded as well.
            while number % 50 == 0 && counters.results_stored.load(Relaxed) <= number {
                std::thread::yield_now();
            }
        }
        results.close();
        assert_eq!((counters.results_stored.load(Relaxed), counters.results_dropped.load(Relaxed)), (60, 0));
        let left = numbers(directory.path()).expect("it can be read");
        assert_eq!(left.len(), 3);
        let last = format!("{PREFIX}{:08}{SUFFIX}", left[2]);
        let text = fs::read_to_string(directory.path().join(last)).expect("it can be read");
        assert!(text.lines().last().is_some_and(|line| line.contains("\"number\":59")), "{text}");
        let again = Files::open(store).expect("it can be written to");
        assert_eq!(again.number, left[2] + 2, "a new process starts a new file");
    }

    #[test]
    fn a_directory_that_is_none_is_an_error_at_the_start() {
        let store = Store::new("/dev/null/results".into());
        let why = Results::open(Some(store), Arc::default()).err().map(|why| why.to_string());
        let expected = "results directory /dev/null/results: Not a directory (os error 20)";
        assert_eq!(why.as_deref(), Some(expected));
    }
}
