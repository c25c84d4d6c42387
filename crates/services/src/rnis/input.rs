//! The feeds that a service takes in, each in its own task.

use super::amqp::Broker;
use super::faults::Faults;
use super::hub::Hub;
use super::intake::Intake;
use super::settings::Error;
use crate::clock::unix_now;
use crate::log::Log;
use crate::socket_file::{SocketFile, bind};
use futures_util::{SinkExt, StreamExt};
use rnis::FeedError;
use rnis::feed::{Carrier, LONGEST_MESSAGE, Parser, flexric, kpm, modem, srsran};
use std::fmt;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UnixListener;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use units::Time;

/// The longest time to connect, and the waits between attempts: the first, and the longest.
const CONNECT: Duration = Duration::from_secs(5);
/// See [`CONNECT`].
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// A gNB that was silent for this long is connected to anew.
const SILENCE: Duration = Duration::from_secs(60);
/// Programs that may be connected to one socket.
const MOST_PRODUCERS: usize = 16;
/// Interval between queries of a modem, whose values change once a second at most.
const MODEM_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause that a replay reproduces.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A feed: `KIND:ADDRESS`.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Lines { format: Format, source: Source, replay: bool },
    Srsran { address: String },
    Modem { modem: String },
    Amqp(Broker),
}

/// A format with one record a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Recording,
    Kpm,
    Flexric,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Stdin,
    File(PathBuf),
    /// A socket that the service creates, for programs that connect to it.
    Socket(PathBuf),
}

impl FromStr for Input {
    type Err = String;

    /// Parses `KIND:ADDRESS`. The message of a fault lists the kinds.
    fn from_str(text: &str) -> Result<Input, String> {
        let known =
            "recording:SOURCE, replay:FILE, kpm:SOURCE, flexric:SOURCE, srsran:HOST:PORT, modem:INDEX or amqp:URL";
        let unknown = || format!("invalid input `{text}`: expected {known}");
        let (kind, address) = text.split_once(':').ok_or_else(unknown)?;
        if address.is_empty() {
            return Err(unknown());
        }
        let lines = |format, replay| Kind::Lines { format, source: Source::parse(address), replay };
        let kind = match kind {
            "recording" => lines(Format::Recording, false),
            "replay" => lines(Format::Recording, true),
            "kpm" => lines(Format::Kpm, false),
            "flexric" => lines(Format::Flexric, false),
            "srsran" => {
                let valid = address
                    .rsplit_once(':')
                    .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
                let plain = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_[]".contains(&byte));
                if !valid || !plain {
                    return Err(format!("invalid input `{text}`: expected srsran:HOST:PORT"));
                }
                Kind::Srsran { address: address.to_owned() }
            }
            "modem" => {
                // The index goes to another program, which must not take it for an option.
                if !address.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(format!(
                        "invalid input `{text}`: expected modem:INDEX, with the index that `mmcli -L` prints"
                    ));
                }
                Kind::Modem { modem: address.to_owned() }
            }
            "amqp" | "amqps" => {
                // The kind may stand before the URL, as it does for other inputs.
                let url = if address.starts_with("//") { text } else { address };
                Kind::Amqp(Broker::parse(url).map_err(|why| why.0)?)
            }
            _ => return Err(unknown()),
        };
        let name = if let Kind::Amqp(broker) = &kind { broker.name() } else { text.to_owned() };
        Ok(Input { name, kind })
    }
}

impl Source {
    fn parse(address: &str) -> Source {
        match address.strip_prefix("unix:") {
            Some(path) => Source::Socket(path.into()),
            None if address == "-" => Source::Stdin,
            None => Source::File(address.into()),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)
    }
}

impl Input {
    /// Returns whether the feed comes from a broker.
    pub fn is_amqp(&self) -> bool {
        matches!(self.kind, Kind::Amqp(_))
    }

    /// Completes the broker, if the feed comes from one.
    ///
    /// # Errors
    /// Those of `complete`.
    pub fn with_broker(mut self, complete: impl FnOnce(Broker) -> Result<Broker, Error>) -> Result<Input, Error> {
        if let Kind::Amqp(broker) = self.kind {
            self.kind = Kind::Amqp(complete(broker)?);
        }
        Ok(self)
    }

    /// Returns whether the feed is standard input, which only one input can be.
    pub fn is_stdin(&self) -> bool {
        matches!(self.kind, Kind::Lines { source: Source::Stdin, .. })
    }

    /// Opens what must be there from the beginning: files, sockets and programs.
    pub(super) async fn open(self, carrier: Carrier) -> Result<Opened, Error> {
        let error = |why: &dyn fmt::Display| Error(format!("input {}: {why}", self.name));
        let stream = match &self.kind {
            Kind::Lines { source: Source::Stdin, .. } => Stream::Reader(Box::new(tokio::io::stdin())),
            Kind::Lines { source: Source::File(path), .. } => {
                let kind = tokio::fs::metadata(path).await.map_err(|why| error(&why))?.file_type();
                if kind.is_dir() {
                    return Err(error(&"is a directory"));
                }
                // Opening a FIFO as a file would wait for a writer.
                if kind.is_fifo() {
                    let fifo = pipe::OpenOptions::new().open_receiver(path).map_err(|why| error(&why))?;
                    Stream::Reader(Box::new(fifo))
                } else {
                    let file = tokio::fs::File::open(path).await.map_err(|why| error(&why))?;
                    Stream::Reader(Box::new(file))
                }
            }
            Kind::Lines { source: Source::Socket(path), .. } => {
                let listener = bind(path).map_err(|why| error(&why))?;
                let file = SocketFile::at(path).map_err(|why| error(&why))?;
                Stream::Socket(Socket { file, listener })
            }
            Kind::Modem { modem } => {
                let output = query_modem(modem).await.map_err(|why| error(&why))?;
                Parser::Modem(modem::Modem::new(carrier)).parse(&output, unix_now()).map_err(|why| error(&why))?;
                Stream::None
            }
            Kind::Srsran { .. } | Kind::Amqp(_) => Stream::None,
        };
        Ok(Opened { name: self.name, kind: self.kind, carrier, stream })
    }
}

/// An input that can run.
pub(super) struct Opened {
    name: String,
    kind: Kind,
    carrier: Carrier,
    stream: Stream,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("name", &self.name).finish_non_exhaustive()
    }
}

enum Stream {
    Reader(Box<dyn AsyncRead + Send + Unpin>),
    Socket(Socket),
    None,
}

/// A socket in the file system, which is removed at the end.
struct Socket {
    file: SocketFile,
    listener: UnixListener,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.file.remove();
    }
}

impl Opened {
    /// Returns the file of its socket, if it has one.
    pub(super) fn socket_file(&self) -> Option<SocketFile> {
        if let Stream::Socket(socket) = &self.stream { Some(socket.file.clone()) } else { None }
    }

    /// Takes in the feed until it ends. A fault in a file or in standard input is an error; a fault in a live feed is reported,
    /// and the feed goes on.
    pub(super) async fn run(self, hub: &Arc<Hub>, log: &Log) -> Result<(), Error> {
        let counts = hub.add_input(&self.name);
        let ended = self.take_in(&Intake::new(hub.clone(), counts.clone()), log).await;
        counts.has_ended.store(true, Relaxed);
        ended
    }

    async fn take_in(self, hub: &Intake, log: &Log) -> Result<(), Error> {
        let faults = hub.faults(log, format!("input {}", self.name));
        match (self.kind, self.stream) {
            (Kind::Lines { format, replay, .. }, Stream::Reader(reader)) => {
                let error = |why: &dyn fmt::Display| Error(format!("input {}: {why}", self.name));
                let mut parser = parser(format, self.carrier);
                let mut lines = Lines::new(reader);
                let mut replay = replay.then(Replay::default);
                let mut is_empty = true;
                while let Some(line) = lines.next().await.map_err(|why| error(&why))? {
                    let records = line.and_then(|line| parser.parse(&line, unix_now()));
                    let records = records.map_err(|why| error(&FeedError::at(lines.number, why)))?;
                    for mut record in records {
                        is_empty = false;
                        if let Some(replay) = &mut replay {
                            record.set_time(replay.wait(record.time()).await);
                        }
                        hub.feed_paced(record).await;
                    }
                }
                if is_empty {
                    return Err(error(&format_args!("has no report in its {} lines", lines.number)));
                }
                log.line(format_args!("input {}: ended after {} lines", self.name, lines.number));
            }
            (Kind::Lines { format, .. }, Stream::Socket(socket)) => {
                accept(&socket, format, self.carrier, hub, faults).await;
            }
            (Kind::Srsran { address }, _) => listen_to_gnb(&address, self.carrier, hub, faults).await,
            (Kind::Modem { modem }, _) => poll_modem(&modem, self.carrier, hub, faults).await,
            (Kind::Amqp(broker), _) => broker.consume(hub, log).await,
            (Kind::Lines { .. }, Stream::None) => {}
        }
        Ok(())
    }
}

fn parser(format: Format, carrier: Carrier) -> Parser {
    match format {
        Format::Recording => Parser::Recording,
        Format::Kpm => Parser::Kpm(kpm::Kpm::new(carrier)),
        Format::Flexric => Parser::Flexric(flexric::Flexric::new(carrier)),
    }
}

/// Takes in what programs send that connect to a socket.
async fn accept(socket: &Socket, format: Format, carrier: Carrier, hub: &Intake, faults: Faults) {
    let producers = Arc::new(Semaphore::new(MOST_PRODUCERS));
    let faults = Arc::new(tokio::sync::Mutex::new(faults));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        if producers.available_permits() == 0 {
            let why = format!("{MOST_PRODUCERS} programs are connected; others wait until one of them leaves");
            faults.lock().await.report(&why);
        }
        let Ok(permit) = producers.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = socket.listener.accept().await else {
            sleep(RETRY.0).await;
            continue;
        };
        // Ended tasks are taken out, so the set does not grow.
        while tasks.try_join_next().is_some() {}
        let (hub, faults) = (hub.clone(), faults.clone());
        tasks.spawn(async move {
            let _permit = permit;
            let mut parser = parser(format, carrier);
            let mut lines = Lines::new(stream);
            while let Ok(Some(line)) = lines.next().await {
                match line.and_then(|line| parser.parse(&line, unix_now())) {
                    Ok(records) => hub.feed_all(records).await,
                    Err(why) => faults.lock().await.report(&FeedError::at(lines.number, why).to_string()),
                }
            }
        });
    }
}

/// Subscribes to the metrics of a gNB and takes them in; connects again when the gNB goes away.
async fn listen_to_gnb(address: &str, carrier: Carrier, hub: &Intake, mut faults: Faults) {
    let mut wait = RETRY.0;
    loop {
        let before = Instant::now();
        let why = match gnb_session(address, carrier, hub, &mut faults).await {
            Ok(()) => "the gNB closed the connection".to_owned(),
            Err(why) => why,
        };
        faults.report(&format!("{why}; trying again"));
        // A session that lasted was not refused.
        wait = if before.elapsed() > RETRY.1 { RETRY.0 } else { wait };
        sleep(wait).await;
        wait = (wait * 2).min(RETRY.1);
    }
}

async fn gnb_session(address: &str, carrier: Carrier, hub: &Intake, faults: &mut Faults) -> Result<(), String> {
    let limits =
        WebSocketConfig::default().max_message_size(Some(LONGEST_MESSAGE)).max_frame_size(Some(LONGEST_MESSAGE));
    let text = |why: WsError| why.to_string();
    let connect = connect_async_with_config(format!("ws://{address}/"), Some(limits), true);
    let (mut socket, _) = timeout(CONNECT, connect).await.map_err(|_| "timed out".to_owned())?.map_err(text)?;
    socket.send(Message::text(srsran::SUBSCRIBE)).await.map_err(text)?;
    let mut parser = Parser::Srsran(srsran::Srsran::new(carrier));
    loop {
        let message = timeout(SILENCE, socket.next()).await.map_err(|_| "the gNB is silent".to_owned())?;
        let body = match message {
            None | Some(Ok(Message::Close(_))) => return Ok(()),
            Some(Err(why)) => return Err(why.to_string()),
            Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
            Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
            Some(Ok(_)) => continue,
        };
        match parser.parse(&body, unix_now()) {
            Ok(records) => hub.feed_all(records).await,
            Err(why) => faults.report(&why.to_string()),
        }
    }
}

/// Asks ModemManager for the signal of a modem each second.
async fn poll_modem(modem: &str, carrier: Carrier, hub: &Intake, mut faults: Faults) {
    let mut parser = Parser::Modem(modem::Modem::new(carrier));
    loop {
        sleep(MODEM_INTERVAL).await;
        let records = match query_modem(modem).await {
            Ok(output) => parser.parse(&output, unix_now()).map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        match records {
            Ok(records) => hub.feed_all(records).await,
            Err(why) => faults.report(&why),
        }
    }
}

async fn query_modem(modem: &str) -> Result<Vec<u8>, String> {
    let mut command = Command::new("mmcli");
    command.args(["-m", modem, "--signal-get", "-J"]).stdin(Stdio::null()).kill_on_drop(true);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|why| format!("mmcli: {why}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let run = async {
        let read = async |stream: Option<&mut (dyn AsyncRead + Send + Unpin)>| {
            let mut bytes = Vec::new();
            if let Some(stream) = stream {
                stream.take(LONGEST_MESSAGE as u64).read_to_end(&mut bytes).await?;
            }
            Ok::<_, std::io::Error>(bytes)
        };
        let (mut stdout, mut stderr) = (stdout, stderr);
        let output = read(stdout.as_mut().map(|stream| stream as _)).await?;
        let errors = read(stderr.as_mut().map(|stream| stream as _)).await?;
        Ok::<_, std::io::Error>((output, errors, child.wait().await?))
    };
    let ran = timeout(CONNECT, run).await.map_err(|_| "mmcli: timed out".to_owned())?;
    let (output, errors, status) = ran.map_err(|why| format!("mmcli: {why}"))?;
    if status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&errors);
    let line = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed").trim();
    Err(FeedError::new(format_args!("mmcli: {line}")).to_string())
}

/// The lines of a stream; a line that is too long is skipped and reported.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins, and up to where there is no line break.
    start: usize,
    searched: usize,
    /// The rest of a line that was too long follows.
    skipping: bool,
    ended: bool,
    /// Lines so far.
    number: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: Vec::new(), start: 0, searched: 0, skipping: false, ended: false, number: 0 }
    }

    async fn next(&mut self) -> std::io::Result<Option<Result<Vec<u8>, FeedError>>> {
        loop {
            if let Some(length) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let end = self.searched + length;
                let line = self.buffer[self.start..end].to_vec();
                (self.start, self.searched) = (end + 1, end + 1);
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                self.number += 1;
                return Ok(Some(Ok(line)));
            }
            self.buffer.drain(..self.start);
            (self.start, self.searched) = (0, self.buffer.len());
            if self.buffer.len() > LONGEST_MESSAGE {
                self.buffer.clear();
                self.searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    self.number += 1;
                    return Ok(Some(Err(FeedError::new(format_args!("longer than {LONGEST_MESSAGE} bytes")))));
                }
            }
            if self.ended {
                let line = std::mem::take(&mut self.buffer);
                self.searched = 0;
                if line.is_empty() || self.skipping {
                    return Ok(None);
                }
                self.number += 1;
                return Ok(Some(Ok(line)));
            }
            let mut chunk = [0; 16 * 1024];
            let read = self.reader.read(&mut chunk).await?;
            self.buffer.extend_from_slice(&chunk[..read]);
            self.ended = read == 0;
        }
    }
}

/// The timing of a recording, repeated from now on.
#[derive(Debug, Default)]
struct Replay {
    start: Option<(Time, Time, Instant)>,
}

impl Replay {
    /// Waits until a record is due, and returns its time as if it were recorded now.
    async fn wait(&mut self, recorded: Time) -> Time {
        let (first, began, clock) = *self.start.get_or_insert_with(|| (recorded, unix_now(), Instant::now()));
        let since = recorded.saturating_since(first);
        let pause = Duration::from_nanos(since.as_nanos());
        if pause > clock.elapsed() + LONGEST_PAUSE {
            // A jump of the recording's clock; go on from here.
            self.start = Some((recorded, unix_now(), Instant::now()));
            return unix_now();
        }
        sleep_until(clock + pause).await;
        began + since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_a_kind_and_an_address() {
        for text in [
            "recording:-",
            "recording:a.jsonl",
            "replay:a.jsonl",
            "kpm:unix:/run/kpm",
            "flexric:/tmp/fifo",
            "srsran:127.0.0.1:8001",
            "modem:0",
            "amqp:amqp://host",
            "amqp://host",
            "amqp:amqps://host",
            "amqps://host",
        ] {
            assert!(text.parse::<Input>().is_ok(), "{text}");
        }
        for text in [
            "x:y",
            "recording",
            "recording:",
            "srsran:host",
            "srsran:host/x:80",
            "modem:-L",
            "amqp:http://h",
            "amqp:amqp://user:secret@h",
        ] {
            assert!(text.parse::<Input>().is_err_and(|why| !why.contains("secret")), "{text}");
        }
    }

    #[tokio::test]
    async fn lines_are_bounded_and_counted() {
        let mut text = b"a\n\n".to_vec();
        text.resize(text.len() + LONGEST_MESSAGE * 3, b'x');
        text.extend(b"\nb\nlast");
        let mut lines = Lines::new(&text[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.expect("it can be read") {
            assert!(lines.buffer.len() <= LONGEST_MESSAGE + 2 * 16 * 1024);
            seen.push((lines.number, line.map(|line| String::from_utf8_lossy(&line).into_owned()).ok()));
        }
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(seen, [(1, line("a")), (2, line("")), (3, None), (4, line("b")), (5, line("last"))]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replay_keeps_the_distances_between_records() {
        let mut replay = Replay::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let (start, first) = (Instant::now(), replay.wait(at(5000)).await);
        let second = replay.wait(at(5250)).await;
        assert_eq!((second - first, start.elapsed().as_millis()), (units::Span::from_millis(250), 250));
        let before = replay.wait(at(4000)).await;
        assert_eq!(before, first);
        replay.wait(at(99_000_000_000)).await;
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
