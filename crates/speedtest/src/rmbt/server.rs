//! A connection as the server sees it, from the greeting to `BYE`.
//!
//! ```text
//! greeting ── TOKEN ──> deciding ── admit ──> ready ── GETTIME, GETCHUNKS ──> sending ── last chunk ──> confirming ── OK ──> ready
//!                          │ refuse            ├── PUT, PUTNORESULT ──> receiving ── last chunk ──> ready
//!                          v                   ├── PING ──> confirming ── OK ──> ready
//!                        closed                └── QUIT ──> closed
//! ```

use super::chunks::{Burst, End, Incoming, Outgoing};
use super::grammar::{Command, Reply};
use super::lines::Lines;
use super::{CHUNK, LARGEST_CHUNK, MOST_CHUNKS, REPORT_INTERVAL, SMALLEST_CHUNK, VERSION};
use crate::websocket;
use observe::progress::Samples;
use std::fmt::Write;
use units::{Span, Time};

/// The server takes no further input while so many bytes of output wait.
const MOST_OUTPUT: usize = 4096;
/// The connection ends after so many lines that are no commands.
const MOST_INVALID: u32 = 16;

/// What a client may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest transfer in seconds. The specification has 30 for `GETTIME` and no limit for uploads.
    pub seconds: u32,
    /// The most bytes of one transfer.
    pub bytes: u64,
    /// The shortest interval between two samples of an upload.
    pub sample: Span,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { seconds: 60, bytes: 1 << 37, sample: Span::from_millis(10) }
    }
}

/// How chunks and lines are put on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// As they are: greeting first, or after an upgrade to RMBT.
    Plain,
    /// A text frame a line, a binary frame a chunk. The caller decodes what arrives.
    WebSocket,
}

/// What the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Input, once the output was sent.
    Line,
    /// Input, while output is sent as far as possible.
    Chunks,
    /// The caller's decision on [`Server::token`].
    Decision,
    /// The caller to send [`Server::burst`].
    Send,
    /// Nothing: the caller sends the output and closes the connection.
    Close,
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the server to the client.
    Download,
    /// From the client to the server.
    Upload,
}

/// A transfer that has ended.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Which way it went.
    pub direction: Direction,
    /// Bytes in chunks: received by the server, or sent and confirmed by the client.
    pub bytes: u64,
    /// From the request to the last chunk of an upload, or to the confirmation of a download.
    pub duration: Span,
    /// The size of a chunk in bytes.
    pub chunk: usize,
    /// Samples of the server: bytes received over time, or bytes handed to the kernel.
    pub samples: Samples,
    /// Whether it ended with the last chunk.
    pub complete: bool,
}

#[derive(Clone, Debug)]
enum State {
    Greeting,
    Deciding(String),
    Ready,
    Sending(Outgoing, Samples),
    Confirming { start: Time, what: Option<(Outgoing, Samples)> },
    Receiving { stream: Incoming, start: Time, reports: bool, reported: Option<Time>, samples: Samples },
    Closed,
}

/// A server's side of a connection.
///
/// Send [`Server::output`]. Then do what [`Server::need`] says: read and call [`Server::handle_input`]; decide and call
/// [`Server::admit`] or [`Server::refuse`]; or send [`Server::burst`] and call [`Server::sent`]. After each call,
/// [`Server::poll_transfer`] may return a transfer that has ended, and there may be output. Time must not go back. Memory is
/// bounded: a line, some output, and the samples of one transfer.
#[derive(Debug)]
pub struct Server {
    limits: Limits,
    framing: Framing,
    state: State,
    lines: Lines,
    chunk: usize,
    invalid: u32,
    output: Vec<u8>,
    ended: Option<Transfer>,
}

impl Server {
    /// Greets the client.
    pub fn new(limits: Limits, framing: Framing) -> Server {
        let mut server = Server {
            limits,
            framing,
            state: State::Greeting,
            lines: Lines::default(),
            chunk: CHUNK,
            invalid: 0,
            output: Vec::new(),
            ended: None,
        };
        server.say(&Reply::Greeting(VERSION));
        server.say(&Reply::Accept(vec!["TOKEN".into(), "QUIT".into()]));
        server
    }

    /// Returns the bytes to send before anything else.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes note that the first `bytes` bytes of the output were sent.
    pub fn consume_output(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    /// Returns what the server waits for.
    pub fn need(&self) -> Need {
        match self.state {
            State::Greeting | State::Ready | State::Confirming { .. } => Need::Line,
            State::Deciding(_) => Need::Decision,
            State::Sending(..) => Need::Send,
            State::Receiving { .. } => Need::Chunks,
            State::Closed => Need::Close,
        }
    }

    /// Returns the token on which the caller decides.
    pub fn token(&self) -> Option<&str> {
        if let State::Deciding(token) = &self.state { Some(token) } else { None }
    }

    /// Accepts the token.
    pub fn admit(&mut self) {
        if matches!(self.state, State::Deciding(_)) {
            self.say(&Reply::Ok);
            self.say(&Reply::ChunkSize { size: CHUNK, min: SMALLEST_CHUNK, max: LARGEST_CHUNK });
            self.become_ready();
        }
    }

    /// Refuses whatever the client asks for, and ends the connection. `why` is one line of printable ASCII.
    pub fn refuse(&mut self, why: &str) {
        self.abandon();
        self.say(&Reply::Err(why.to_owned()));
        self.state = State::Closed;
    }

    /// Takes bytes from the client. Returns how many were used; the caller keeps the others until the need is input again.
    pub fn handle_input(&mut self, input: &[u8], now: Time) -> usize {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            match &mut self.state {
                State::Receiving { stream, start, reports, reported, samples } => {
                    let taken = stream.take(rest);
                    used += taken.used;
                    let elapsed = now.saturating_since(*start);
                    samples.record(elapsed, stream.bytes());
                    let is_due = reported.is_none_or(|last| now.saturating_since(last) >= REPORT_INTERVAL);
                    let report = Reply::TimeBytes(elapsed, stream.complete());
                    let may_report = taken.completed && *reports && is_due && self.output.is_empty();
                    let over =
                        elapsed > Span::from_secs(self.limits.seconds.into()) || stream.bytes() > self.limits.bytes;
                    if may_report {
                        *reported = Some(now);
                        self.say(&report);
                    }
                    if taken.last {
                        self.end_upload(elapsed, true);
                        self.say(&Reply::Time(elapsed));
                        self.become_ready();
                    } else if over {
                        self.refuse("the transfer exceeds the limits of this server");
                    }
                }
                State::Greeting | State::Ready | State::Confirming { .. } if self.output.len() < MOST_OUTPUT => {
                    let (bytes, line) = self.lines.take(rest);
                    used += bytes;
                    match line {
                        Ok(None) => {}
                        Ok(Some(line)) => self.handle_line(&line, now),
                        Err(fault) => self.refuse(&fault.to_string()),
                    }
                }
                // What follows is not of this protocol.
                State::Closed => return input.len(),
                _ => return used,
            }
        }
        used
    }

    fn handle_line(&mut self, line: &str, now: Time) {
        if line.is_empty() && matches!(self.state, State::Greeting) {
            self.count_invalid();
            return;
        }
        let command = line.parse::<Command>();
        match (&mut self.state, command) {
            (State::Greeting, Ok(Command::Token(token))) => self.state = State::Deciding(token),
            (State::Greeting | State::Ready, Ok(Command::Quit)) => {
                self.say(&Reply::Bye);
                self.state = State::Closed;
            }
            (State::Greeting, _) => self.refuse("expected TOKEN"),
            (State::Confirming { start, what }, Ok(Command::Ok)) => {
                let (elapsed, what) = (now.saturating_since(*start), what.take());
                if let Some((stream, samples)) = what {
                    self.end_download(&stream, samples, elapsed, true);
                }
                self.say(&Reply::Time(elapsed));
                self.become_ready();
            }
            (State::Confirming { .. }, _) => {
                self.abandon();
                self.state = State::Ready;
                self.fail_command();
            }
            (State::Ready, Ok(command)) => self.obey(&command, now),
            (State::Ready, Err(_)) => self.fail_command(),
            (State::Deciding(_) | State::Sending(..) | State::Receiving { .. } | State::Closed, _) => {
                unreachable!("lines are not read in this state")
            }
        }
    }

    fn obey(&mut self, command: &Command, now: Time) {
        let is_chunk = |size: &usize| (SMALLEST_CHUNK..=LARGEST_CHUNK).contains(size);
        let size = match command {
            Command::GetChunks(_, size)
            | Command::GetTime(_, size)
            | Command::Put(size)
            | Command::PutNoResult(size) => *size,
            _ => None,
        };
        if size.is_some_and(|size| !is_chunk(&size)) {
            return self.fail_command();
        }
        let chunk = size.unwrap_or(self.chunk);
        let most_chunks = (self.limits.bytes / chunk as u64).min(MOST_CHUNKS.into());
        match *command {
            Command::GetTime(seconds, _) if (1..=self.limits.seconds).contains(&seconds) => {
                self.start_download(chunk, End::After(Span::from_secs(seconds.into())), now);
            }
            Command::GetChunks(count, _) if (1..=most_chunks).contains(&count.into()) => {
                self.start_download(chunk, End::Chunks(count.into()), now);
            }
            Command::Put(_) | Command::PutNoResult(_) => {
                self.chunk = chunk;
                self.say(&Reply::Ok);
                self.state = State::Receiving {
                    stream: Incoming::new(chunk),
                    start: now,
                    reports: matches!(command, Command::Put(_)),
                    reported: None,
                    samples: Samples::new(self.limits.sample),
                };
            }
            Command::Ping => {
                self.say(&Reply::Pong);
                self.state = State::Confirming { start: now, what: None };
            }
            _ => self.fail_command(),
        }
    }

    fn start_download(&mut self, chunk: usize, end: End, now: Time) {
        self.chunk = chunk;
        let prefix = match self.framing {
            Framing::Plain => Default::default(),
            Framing::WebSocket => websocket::header(websocket::Opcode::Binary, chunk as u64, None),
        };
        let stream = Outgoing::new(chunk, end, now, &prefix);
        self.state = State::Sending(stream, Samples::new(self.limits.sample));
    }

    /// Returns the next bytes of a download, cut from `random`; empty if there is none.
    ///
    /// # Panics
    /// If `random` has fewer than [`super::chunks::RANDOM`] bytes.
    pub fn burst<'a>(&'a mut self, random: &'a [u8], now: Time) -> Burst<'a> {
        match &mut self.state {
            State::Sending(stream, _) => stream.burst(random, now),
            _ => Burst::new(),
        }
    }

    /// Takes note that the first `bytes` bytes of the latest burst were sent. A download above the limits ends here.
    pub fn sent(&mut self, bytes: usize, now: Time) {
        let State::Sending(stream, samples) = &mut self.state else { return };
        stream.sent(bytes);
        let elapsed = now.saturating_since(stream.start());
        samples.record(elapsed, stream.bytes());
        if stream.is_finished() {
            let what = Some((stream.clone(), std::mem::take(samples)));
            self.state = State::Confirming { start: stream.start(), what };
        } else if stream.bytes() > self.limits.bytes {
            // There is no way to say so within a chunk.
            self.abandon();
            self.state = State::Closed;
        }
    }

    /// Ends a transfer whose connection has failed, so that [`Server::poll_transfer`] returns what there was of it.
    pub fn abandon(&mut self) {
        match &mut self.state {
            State::Receiving { samples, .. } => {
                let elapsed = samples.last().map_or(Span::ZERO, |(time, _)| time);
                self.end_upload(elapsed, false);
            }
            State::Sending(stream, samples) | State::Confirming { what: Some((stream, samples)), .. } => {
                let (stream, samples) = (stream.clone(), std::mem::take(samples));
                let elapsed = samples.last().map_or(Span::ZERO, |(time, _)| time);
                self.end_download(&stream, samples, elapsed, false);
                self.state = State::Closed;
            }
            _ => {}
        }
    }

    /// Returns how many of the next bytes may be dropped unread ([`super::chunks::Incoming::skippable`]); `None` if they have to be read.
    pub fn skippable(&self) -> Option<usize> {
        match &self.state {
            State::Receiving { stream, .. } if self.framing == Framing::Plain => stream.skippable(),
            _ => None,
        }
    }

    /// Takes note that bytes of an upload were dropped unread, at most [`Server::skippable`].
    pub fn skipped(&mut self, bytes: usize, now: Time) {
        if let State::Receiving { stream, start, samples, .. } = &mut self.state {
            stream.skip(bytes);
            samples.record(now.saturating_since(*start), stream.bytes());
        }
    }

    /// Returns a transfer that has ended.
    pub fn poll_transfer(&mut self) -> Option<Transfer> {
        self.ended.take()
    }

    fn end_upload(&mut self, duration: Span, complete: bool) {
        if let State::Receiving { stream, samples, .. } = &mut self.state {
            let (bytes, mut samples) = (stream.bytes(), std::mem::take(samples));
            samples.finish(duration, bytes);
            let (direction, chunk) = (Direction::Upload, self.chunk);
            self.ended = Some(Transfer { direction, bytes, duration, chunk, samples, complete });
            self.state = State::Ready;
        }
    }

    fn end_download(&mut self, stream: &Outgoing, mut samples: Samples, duration: Span, complete: bool) {
        samples.finish(duration, stream.bytes());
        let (direction, bytes, chunk) = (Direction::Download, stream.bytes(), self.chunk);
        self.ended = Some(Transfer { direction, bytes, duration, chunk, samples, complete });
    }

    fn become_ready(&mut self) {
        if !matches!(self.state, State::Closed) {
            let commands = ["GETCHUNKS", "GETTIME", "PUT", "PUTNORESULT", "PING", "QUIT"];
            self.say(&Reply::Accept(commands.map(ToOwned::to_owned).to_vec()));
            self.state = State::Ready;
        }
    }

    fn fail_command(&mut self) {
        self.say(&Reply::Err(String::new()));
        self.count_invalid();
        self.become_ready();
    }

    fn count_invalid(&mut self) {
        self.invalid += 1;
        if self.invalid >= MOST_INVALID {
            self.state = State::Closed;
        }
    }

    fn say(&mut self, reply: &Reply) {
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(line, "{reply}");
        if self.framing == Framing::WebSocket {
            self.output.extend_from_slice(&websocket::header(websocket::Opcode::Text, line.len() as u64, None));
        }
        self.output.extend_from_slice(line.as_bytes());
    }
}
