//! The log of connections: a line of JSON for each that has ended, in files that rotate by their size.
//!
//! Workers never wait for a disk: a thread writes, and what it cannot keep up with is counted as lost.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use netio::Error;

use super::ended::Ended;
use super::thread;

/// Entries that may wait for the disk.
const MOST_WAITING: usize = 1 << 16;
/// The longest time for which a line stays in memory.
const FLUSH: Duration = Duration::from_secs(1);
/// Others than the owner and the group may not know who speaks with whom.
const MODE: u32 = 0o640;

/// Where the log is, and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The file. Earlier ones have `.1`, `.2` and so on after its name.
    pub file: PathBuf,
    /// Bytes after which a file is an earlier one.
    pub size: u64,
    /// The number of earlier files that are kept.
    pub keep: u32,
}

/// The way to the log.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLog {
    entries: SyncSender<Ended>,
    lost: Arc<AtomicU64>,
}

impl ConnectionLog {
    /// Opens the log and starts its thread, which ends after the last of this value's copies.
    ///
    /// # Errors
    /// [`Error::Wrong`] if the file cannot be opened.
    pub(super) fn open(settings: &LogSettings) -> Result<(ConnectionLog, JoinHandle<()>), Error> {
        let wrong = |why: io::Error| Error::Wrong(format!("{}: {why}", settings.file.display()));
        let files = Files::open(settings.clone()).map_err(wrong)?;
        let (entries, taken) = sync_channel(MOST_WAITING);
        let lost = Arc::<AtomicU64>::default();
        let count = Arc::clone(&lost);
        let thread = thread::start("proxy-log", move || write(files, &taken, &count))?;
        Ok((ConnectionLog { entries, lost }, thread))
    }

    pub(super) fn put(&self, entry: Ended) {
        if self.entries.try_send(entry).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Entries that could not be written so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

fn write(mut files: Files, taken: &Receiver<Ended>, lost: &AtomicU64) {
    loop {
        let written = match taken.recv_timeout(FLUSH) {
            Ok(entry) => files.write(&entry),
            Err(RecvTimeoutError::Timeout) => {
                // What a full disk does not take is counted when its line is written.
                let _ = files.file.flush();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return drop(files.file.flush()),
        };
        if written.is_err() {
            lost.fetch_add(1, Relaxed);
        }
    }
}

/// The newest file and those before it.
struct Files {
    settings: LogSettings,
    file: BufWriter<File>,
    bytes: u64,
}

impl Files {
    fn open(settings: LogSettings) -> io::Result<Files> {
        let file = OpenOptions::new().create(true).append(true).mode(MODE).open(&settings.file)?;
        let bytes = file.metadata()?.len();
        Ok(Files { settings, file: BufWriter::new(file), bytes })
    }

    fn write(&mut self, entry: &Ended) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.settings.size {
            self.rotate()?;
        }
        self.bytes += line.len() as u64;
        self.file.write_all(&line)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let LogSettings { file, keep, .. } = &self.settings;
        let earlier = |n: u32| numbered(file, n);
        for n in (1..*keep).rev() {
            // There may be fewer.
            let _ = std::fs::rename(earlier(n), earlier(n + 1));
        }
        let moved = if *keep > 0 { std::fs::rename(file, earlier(1)) } else { std::fs::remove_file(file) };
        // Somebody may have taken it away.
        moved.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        *self = Files::open(self.settings.clone())?;
        Ok(())
    }
}

fn numbered(file: &Path, n: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::ended::tests::example as entry;

    #[test]
    fn each_entry_is_a_line_and_files_rotate_by_their_size() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("connections.jsonl");
        let line = serde_json::to_string(&entry(10_000)).expect("JSON");
        let settings = LogSettings { file: file.clone(), size: 2 * (line.len() as u64 + 1), keep: 2 };
        for round in 0..2 {
            // An earlier process has left some.
            let (log, thread) = ConnectionLog::open(&settings).expect("it can be written");
            (0..4).for_each(|n| log.put(entry(10_000 + 4 * round + n)));
            assert_eq!(log.lost(), 0);
            drop(log);
            thread.join().expect("it only writes");
        }
        let ports = |file: &Path| -> Vec<u16> {
            let text = std::fs::read_to_string(file).expect("it is there");
            let values = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
            values
                .map(|of| {
                    of["ue"].as_str().expect("text").rsplit(':').next().expect("a port").parse().expect("a number")
                })
                .collect()
        };
        assert_eq!(ports(&file), [10_006, 10_007]);
        assert_eq!(
            (ports(&numbered(&file, 1)), ports(&numbered(&file, 2))),
            (vec![10_004, 10_005], vec![10_002, 10_003])
        );
        assert!(!numbered(&file, 3).exists());
        assert!(line.contains("\"opened_by\":\"ran\"") && line.contains("\"wan\":null"), "{line}");
        // Somebody takes the file away.
        let (log, thread) = ConnectionLog::open(&settings).expect("it can be written");
        std::fs::remove_file(&file).expect("it is there");
        (0..3).for_each(|n| log.put(entry(10_100 + n)));
        drop(log);
        thread.join().expect("it only writes");
        assert_eq!(ports(&file), [10_102]);
        let why = ConnectionLog::open(&LogSettings { file: dir.path().to_owned(), ..settings }).expect_err("a folder");
        assert!(why.to_string().contains(&dir.path().display().to_string()), "{why}");
    }
}
