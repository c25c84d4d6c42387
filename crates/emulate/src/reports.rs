//! The cells' reports and events, sent to readers as lines of JSON with wall-clock times.
//!
//! Each reader has a thread. The engine never waits for it: a report that finds the thread's queue full is dropped and
//! counted, and so are those for which no reader is there.

use crate::Error;
use rnis::Record;
use rnis::feed::recording;
use sim::reports::{Recording, add_addresses};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use units::Span;

/// Reports that wait for a reader: a second of the shortest useful interval of some UEs.
const WAITING: usize = 8_192;
/// Reports written at once.
const BATCH: usize = 256;
/// Interval between attempts to reach a reader, and between checks for the end while one does not read.
const RETRY: Duration = Duration::from_millis(200);

/// Where reports go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A socket that a reader makes.
    Socket(PathBuf),
    /// A file, which is complete or not there.
    File(PathBuf),
}

impl Target {
    /// Parses `unix:PATH` or a path.
    ///
    /// # Errors
    /// A path that is empty.
    pub fn parse(text: &str) -> Result<Target, &'static str> {
        match text.strip_prefix("unix:") {
            Some("") => Err("expected the path of a socket after `unix:`"),
            Some(path) => Ok(Target::Socket(path.into())),
            None if text.is_empty() => Err("expected a file, or unix:PATH"),
            None => Ok(Target::File(text.into())),
        }
    }
}

/// All readers of an emulation's reports.
pub(crate) struct Readers {
    readers: Vec<Reader>,
    /// The time of the emulation's start, since the Unix epoch.
    epoch: Span,
}

/// A reader, and the thread that writes to it.
struct Reader {
    /// The proxy wants those of UEs that are real hosts alone.
    hosts: Option<usize>,
    reports: SyncSender<Record>,
    unread: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), String>>,
}

/// What became of the reports that were not for the proxy.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Reports that nobody took.
    pub(crate) unread: u64,
    /// Why a recording is missing.
    pub(crate) failure: Option<String>,
}

impl Readers {
    /// Opens the readers: the proxy at a socket, for `hosts` UEs, and a target.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn open(proxy: Option<(&Path, usize)>, target: Option<&Target>) -> Result<Readers, Error> {
        let at_socket = |hosts, path: PathBuf| {
            Reader::start(hosts, move |reports, from| {
                stream(&path, reports, from);
                Ok(())
            })
        };
        let mut readers = Vec::new();
        if let Some((socket, hosts)) = proxy {
            readers.push(at_socket(Some(hosts), socket.to_owned())?);
        }
        match target.cloned() {
            None => {}
            Some(Target::Socket(path)) => readers.push(at_socket(None, path)?),
            Some(Target::File(path)) => {
                let mut recording = Recording::create(&path)?;
                readers.push(Reader::start(None, move |reports, _| {
                    reports.iter().for_each(|record| recording.write(&record));
                    recording.finish()
                })?);
            }
        }
        Ok(Readers { readers, epoch: Span::ZERO })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }

    /// The emulation starts now.
    pub(crate) fn start(&mut self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.epoch = Span::from_nanos(now.as_nanos() as u64);
    }

    /// Sends the report on a UE of a cell, or what happened to it.
    pub(crate) fn send(&self, ue: u32, mut record: Record) {
        record.set_time(record.time() + self.epoch);
        add_addresses(&mut record, ue);
        for reader in &self.readers {
            if reader.hosts.is_none_or(|hosts| (ue as usize) < hosts) {
                reader.send(&record);
            }
        }
    }

    /// Reports so far that nobody took, but for the proxy's.
    pub(crate) fn unread(&self) -> u64 {
        self.readers.iter().filter(|reader| reader.hosts.is_none()).map(Reader::unread).sum()
    }

    /// Ends the threads.
    pub(crate) fn finish(self) -> Read {
        let mut read = Read::default();
        for Reader { hosts, reports, unread, stop, thread } in self.readers {
            stop.store(true, Ordering::Relaxed);
            drop(reports);
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if hosts.is_none() {
                read.unread += unread.load(Ordering::Relaxed);
                read.failure = ended.err();
            }
        }
        read
    }
}

/// What a thread needs to know beside the reports.
struct From {
    unread: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    fn start(
        hosts: Option<usize>,
        act: impl FnOnce(&Receiver<Record>, &From) -> Result<(), String> + Send + 'static,
    ) -> Result<Reader, Error> {
        let (reports, waiting) = mpsc::sync_channel(WAITING);
        let (unread, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let from = From { unread: Arc::clone(&unread), stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("reports".into()).spawn(move || act(&waiting, &from));
        Ok(Reader { hosts, reports, unread, stop, thread: thread.map_err(Error::system("start a thread"))? })
    }

    fn send(&self, record: &Record) {
        if self.reports.try_send(record.clone()).is_err() {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }
}

/// Writes reports to the reader at the socket `path`, whenever there is one.
fn stream(path: &Path, reports: &Receiver<Record>, from: &From) {
    let (mut reader, mut tried) = (None::<UnixStream>, None::<Instant>);
    let mut text = String::new();
    while let Ok(first) = reports.recv() {
        text.clear();
        let mut count = 0;
        for record in std::iter::once(first).chain(reports.try_iter().take(BATCH)) {
            text += &recording::format_line(&record);
            text.push('\n');
            count += 1;
        }
        let is_due = |tried: Instant| tried.elapsed() >= RETRY && !from.stop.load(Ordering::Relaxed);
        if reader.is_none() && tried.is_none_or(is_due) {
            tried = Some(Instant::now());
            reader = connect(path).ok();
        }
        let written = reader.as_mut().map(|reader| write_all(reader, text.as_bytes(), &from.stop));
        if !matches!(written, Some(Ok(()))) {
            reader = None;
            from.unread.fetch_add(count, Ordering::Relaxed);
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let reader = UnixStream::connect(path)?;
    reader.set_write_timeout(Some(RETRY))?;
    Ok(reader)
}

/// Writes all of `bytes`, however long the reader takes, unless the emulation ends meanwhile.
fn write_all(reader: &mut UnixStream, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    while !bytes.is_empty() {
        match reader.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && !stop.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnis::UeId;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    fn report(at: u64) -> Record {
        let text = format!(
            r#"{{"time_us":{at},"interval_us":1000,"cell":1,"rnti":61,"n_prb":100,"slots":1,"acked_bits":8000,"blocks":1,"failed":0}}"#
        );
        recording::parse_line(text.as_bytes()).expect("it can be read")
    }

    #[test]
    fn a_target_is_a_socket_or_a_file() {
        assert_eq!(Target::parse("unix:/run/x"), Ok(Target::Socket("/run/x".into())));
        assert_eq!(Target::parse("x.jsonl"), Ok(Target::File("x.jsonl".into())));
        assert!(Target::parse("unix:").is_err() && Target::parse("").is_err());
    }

    #[test]
    fn a_reader_gets_the_reports_with_wall_clock_times_and_addresses() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).expect("it is free");
        let mut readers = Readers::open(None, Some(&Target::Socket(path))).expect("they start");
        readers.start();
        let before = readers.epoch;
        (1..=3).for_each(|n| readers.send(1, report(n * 1000)));
        let (stream, _) = listener.accept().expect("it connects");
        // All are read before the socket closes: a report that finds it closed is unread.
        let lines: Vec<String> = BufReader::new(stream).lines().take(3).map(|line| line.expect("text")).collect();
        let Ok(Record::Report(read)) = recording::parse_line(lines[0].as_bytes()) else { panic!("{}", lines[0]) };
        let second = "fd00:0:1:2::1".parse().ok();
        assert_eq!(read.ue, UeId { second_address: second, ..UeId::new(61).at([10, 0, 1, 2]) });
        assert_eq!(read.time.as_nanos() / 1000, before.as_nanos() / 1000 + 1000);
        assert_eq!(readers.finish().unread, 0);
    }

    #[test]
    fn nobody_waits_for_a_reader_that_is_absent_or_does_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let readers = Readers::open(None, Some(&Target::Socket(path.clone()))).expect("they start");
        readers.send(0, report(1));
        assert_eq!(readers.finish().unread, 1);
        let listener = UnixListener::bind(&path).expect("it is free");
        let readers = Readers::open(None, Some(&Target::Socket(path))).expect("they start");
        let start = Instant::now();
        for n in 0..100_000 {
            readers.send(0, report(n));
        }
        let unread = readers.finish().unread;
        assert!(unread > 50_000, "the socket and the queue hold a part: {unread}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        drop(listener);
    }

    #[test]
    fn a_recording_is_complete_or_not_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("drive.jsonl");
        let readers = Readers::open(None, Some(&Target::File(path.clone()))).expect("they start");
        readers.send(0, report(7));
        assert!(!path.exists());
        assert!(readers.finish().failure.is_none());
        assert_eq!(std::fs::read_to_string(&path).expect("it is there").lines().count(), 1);
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is a directory").count(), 1);
        drop(Recording::create(&path.with_extension("other")).expect("it can be written"));
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is a directory").count(), 1);
    }
}
