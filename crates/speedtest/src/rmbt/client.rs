//! A connection as the client sees it.

use super::chunks::{Burst, End, Incoming, Outgoing};
use super::grammar::{Command, Reply, Version};
use super::lines::Lines;
use super::server::{Direction, Framing, Transfer};
use super::{CHUNK, LARGEST_CHUNK};
use crate::websocket;
use observe::progress::Samples;
use std::collections::VecDeque;
use std::fmt::Write;
use units::{Span, Time};

/// The shortest interval between two samples.
const SAMPLE: Span = Span::from_millis(10);
/// The most reports of an upload that are kept as samples is that of [`Samples`]; this is the most events that wait.
const MOST_EVENTS: usize = 64;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Input, once the output was sent.
    Input,
    /// A command, such as [`Client::ping`].
    Command,
    /// The caller to send [`Client::burst`], and to read at the same time.
    Send,
    /// Nothing: the connection has ended.
    Close,
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server has greeted.
    Greeted(Version),
    /// The server has accepted the token.
    Admitted,
    /// The server has refused the token or a command; the words are the server's.
    Refused(String),
    /// A ping: the round trip that the client measured, and that of the server.
    Pinged {
        /// From `PING` to `PONG`, measured by the client.
        client: Span,
        /// From `PONG` to `OK`, measured by the server.
        server: Span,
    },
    /// A transfer has ended. The samples of a download are the client's, those of an upload the server's reports. The duration
    /// is the server's.
    Transferred(Transfer),
    /// The server has said good-bye.
    Ended,
}

/// A line that the server may not send now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent `{0}`, which is not the protocol of RMBT at this point")]
pub struct Unexpected(pub String);

#[derive(Debug)]
enum State {
    Greeting,
    /// The server names commands, of which one is `TOKEN`.
    Offered,
    /// The token was sent.
    Presented,
    /// The next `ACCEPT` means that the server is ready.
    Waiting,
    Ready,
    Pinging {
        start: Time,
        client: Option<Span>,
    },
    Receiving {
        start: Time,
        stream: Incoming,
        samples: Samples,
    },
    Confirmed {
        stream: Incoming,
        samples: Samples,
    },
    Announced {
        start: Time,
        end: End,
    },
    Sending {
        stream: Outgoing,
        samples: Samples,
    },
    Sent {
        bytes: u64,
        samples: Samples,
    },
    Leaving,
    Closed,
}

/// A client's side of a connection.
///
/// Send [`Client::output`]. Then do what [`Client::need`] says: read and call [`Client::handle_input`]; give a command; or send
/// [`Client::burst`] and call [`Client::sent`], and read as well, since reports arrive meanwhile. Take events after each call. Time
/// must not go back. Memory is bounded: a line, some events, and the samples of one transfer.
#[derive(Debug)]
pub struct Client {
    framing: Framing,
    token: String,
    state: State,
    lines: Lines,
    /// The size of chunks unless a command sets another one, and the server's range.
    chunk: usize,
    range: (usize, usize),
    /// The size of chunks of the transfer.
    current: usize,
    output: Vec<u8>,
    events: VecDeque<Event>,
}

impl Client {
    /// Waits for the greeting, and presents `token` then. A server that checks no tokens takes any.
    pub fn new(token: &str, framing: Framing) -> Client {
        let token = token.to_owned();
        let (lines, output, events) = (Lines::default(), Vec::new(), VecDeque::new());
        let range = (CHUNK, LARGEST_CHUNK);
        Client { framing, token, state: State::Greeting, lines, chunk: CHUNK, range, current: CHUNK, output, events }
    }

    /// Returns the bytes to send before anything else.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes note that the first `bytes` bytes of the output were sent.
    pub fn consume_output(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    /// Returns what the client waits for.
    pub fn need(&self) -> Need {
        match self.state {
            State::Ready => Need::Command,
            State::Sending { .. } => Need::Send,
            State::Closed => Need::Close,
            _ => Need::Input,
        }
    }

    /// Returns the range of chunk sizes that the server offers, in bytes.
    pub fn chunk_range(&self) -> (usize, usize) {
        self.range
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the bytes and the time of the transfer that is going on, as far as the client knows them.
    pub fn progress(&self) -> Option<(Span, u64)> {
        match &self.state {
            State::Receiving { samples, .. } | State::Sending { samples, .. } | State::Sent { samples, .. } => {
                samples.last()
            }
            _ => None,
        }
    }

    /// Measures a round trip. Nothing happens unless a command is needed; that holds for all commands.
    pub fn ping(&mut self, now: Time) {
        self.command(&Command::Ping, State::Pinging { start: now, client: None });
    }

    /// Requests `count` chunks of `chunk` bytes.
    pub fn get_chunks(&mut self, count: u32, chunk: Option<usize>, now: Time) {
        let state = self.receiving(chunk, now);
        self.command(&Command::GetChunks(count, chunk), state);
    }

    /// Requests chunks of `chunk` bytes for some seconds.
    pub fn get_time(&mut self, seconds: u32, chunk: Option<usize>, now: Time) {
        let state = self.receiving(chunk, now);
        self.command(&Command::GetTime(seconds, chunk), state);
    }

    /// Sends chunks of `chunk` bytes until `end`. With `reports`, the server says what it has received.
    pub fn put(&mut self, end: End, chunk: Option<usize>, reports: bool, now: Time) {
        let command = if reports { Command::Put(chunk) } else { Command::PutNoResult(chunk) };
        self.current = self.usable(chunk);
        self.command(&command, State::Announced { start: now, end });
    }

    /// Ends the connection.
    pub fn quit(&mut self) {
        self.command(&Command::Quit, State::Leaving);
    }

    fn usable(&self, chunk: Option<usize>) -> usize {
        chunk.unwrap_or(self.chunk).clamp(1, LARGEST_CHUNK)
    }

    fn receiving(&mut self, chunk: Option<usize>, now: Time) -> State {
        self.current = self.usable(chunk);
        State::Receiving { start: now, stream: Incoming::new(self.current), samples: Samples::new(SAMPLE) }
    }

    fn command(&mut self, command: &Command, next: State) {
        if matches!(self.state, State::Ready) {
            self.say(command);
            self.state = next;
        }
    }

    /// Takes bytes from the server. All of them are used.
    ///
    /// # Errors
    /// The line that the server may not send; the connection is of no use then.
    pub fn handle_input(&mut self, mut input: &[u8], now: Time) -> Result<(), Unexpected> {
        while !input.is_empty() && !matches!(self.state, State::Closed) {
            if let State::Receiving { start, stream, samples } = &mut self.state {
                // A refusal comes instead of the first chunk, whose data is random: only the whole line tells them apart.
                if stream.bytes() == 0 && input.starts_with(b"ERR\n") {
                    self.state = State::Waiting;
                    input = &input[4..];
                    self.happen(Event::Refused(String::new()));
                    continue;
                }
                let taken = stream.take(input);
                input = &input[taken.used..];
                samples.record(now.saturating_since(*start), stream.bytes());
                if taken.last {
                    samples.finish(now.saturating_since(*start), stream.bytes());
                    self.state = State::Confirmed { stream: stream.clone(), samples: std::mem::take(samples) };
                    self.say(&Command::Ok);
                }
                continue;
            }
            let (used, line) = self.lines.take(input);
            input = &input[used..];
            match line {
                Ok(None) => {}
                Ok(Some(line)) => self.handle_line(&line, now)?,
                Err(fault) => {
                    self.state = State::Closed;
                    return Err(Unexpected(fault.to_string()));
                }
            }
        }
        Ok(())
    }

    fn handle_line(&mut self, line: &str, now: Time) -> Result<(), Unexpected> {
        let unexpected = || Unexpected(line.chars().take(80).collect());
        let reply: Reply = line.parse().map_err(|_| unexpected())?;
        let state = std::mem::replace(&mut self.state, State::Closed);
        self.state = match (state, reply) {
            (State::Greeting, Reply::Greeting(version)) => {
                self.happen(Event::Greeted(version));
                State::Offered
            }
            (State::Offered, Reply::Accept(commands)) if commands.iter().any(|name| name == "TOKEN") => {
                let token = Command::Token(self.token.clone());
                self.say(&token);
                State::Presented
            }
            (State::Presented, Reply::Ok) => {
                self.happen(Event::Admitted);
                State::Waiting
            }
            (State::Waiting, Reply::ChunkSize { size, min, max }) => {
                self.chunk = size.clamp(1, LARGEST_CHUNK);
                self.range = (min, max);
                State::Waiting
            }
            (State::Waiting, Reply::Accept(_)) => State::Ready,
            (State::Pinging { start, client: None }, Reply::Pong) => {
                self.say(&Command::Ok);
                State::Pinging { start, client: Some(now.saturating_since(start)) }
            }
            (State::Pinging { client: Some(client), .. }, Reply::Time(server)) => {
                self.happen(Event::Pinged { client, server });
                State::Waiting
            }
            (State::Confirmed { stream, samples }, Reply::Time(duration)) => {
                self.transferred(Direction::Download, stream.bytes(), duration, samples);
                State::Waiting
            }
            (State::Announced { start, end }, Reply::Ok) => {
                let prefix = match self.framing {
                    Framing::Plain => Default::default(),
                    // The data is the client's own, so a mask of zeros hides nothing from anyone.
                    Framing::WebSocket => {
                        websocket::header(websocket::Opcode::Binary, self.current as u64, Some([0; 4]))
                    }
                };
                let stream = Outgoing::new(self.current, end, start, &prefix);
                State::Sending { stream, samples: Samples::new(SAMPLE) }
            }
            (State::Sending { stream, mut samples }, Reply::TimeBytes(time, bytes)) => {
                samples.record(time, bytes);
                State::Sending { stream, samples }
            }
            (State::Sent { bytes, mut samples }, Reply::TimeBytes(time, received)) => {
                samples.record(time, received);
                State::Sent { bytes, samples }
            }
            (State::Sent { bytes, mut samples }, Reply::Time(duration)) => {
                samples.finish(duration, bytes);
                self.transferred(Direction::Upload, bytes, duration, samples);
                State::Waiting
            }
            (State::Presented | State::Sending { .. } | State::Sent { .. } | State::Greeting, Reply::Err(why)) => {
                self.happen(Event::Refused(why));
                State::Closed
            }
            (
                State::Pinging { .. } | State::Confirmed { .. } | State::Announced { .. } | State::Waiting,
                Reply::Err(why),
            ) => {
                self.happen(Event::Refused(why));
                State::Waiting
            }
            (State::Leaving, Reply::Bye) => {
                self.happen(Event::Ended);
                State::Closed
            }
            // The rest of an upload's reports may come after QUIT (phase 7 of the specification).
            (State::Leaving, Reply::Time(_) | Reply::TimeBytes(..)) => State::Leaving,
            _ => return Err(unexpected()),
        };
        Ok(())
    }

    /// Returns how many of the next bytes of a download may be dropped unread ([`super::chunks::Incoming::skippable`]); `None` if they
    /// have to be read.
    pub fn skippable(&self) -> Option<usize> {
        match &self.state {
            // A refusal comes instead of the first chunk.
            State::Receiving { stream, .. } if self.framing == Framing::Plain && stream.bytes() > 0 => {
                stream.skippable()
            }
            _ => None,
        }
    }

    /// Takes note that bytes of a download were dropped unread, at most [`Client::skippable`].
    pub fn skipped(&mut self, bytes: usize, now: Time) {
        if let State::Receiving { start, stream, samples } = &mut self.state {
            stream.skip(bytes);
            samples.record(now.saturating_since(*start), stream.bytes());
        }
    }

    /// Returns the next bytes of an upload, cut from `random`; empty if there is none.
    ///
    /// # Panics
    /// If `random` has fewer than [`super::chunks::RANDOM`] bytes.
    pub fn burst<'a>(&'a mut self, random: &'a [u8], now: Time) -> Burst<'a> {
        match &mut self.state {
            State::Sending { stream, .. } => stream.burst(random, now),
            _ => Burst::new(),
        }
    }

    /// Takes note that the first `bytes` bytes of the latest burst were sent.
    pub fn sent(&mut self, bytes: usize) {
        let State::Sending { stream, samples } = &mut self.state else { return };
        stream.sent(bytes);
        if stream.is_finished() {
            self.state = State::Sent { bytes: stream.bytes(), samples: std::mem::take(samples) };
        }
    }

    fn transferred(&mut self, direction: Direction, bytes: u64, duration: Span, samples: Samples) {
        let chunk = self.current;
        self.happen(Event::Transferred(Transfer { direction, bytes, duration, chunk, samples, complete: true }));
    }

    fn happen(&mut self, event: Event) {
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(event);
        }
    }

    fn say(&mut self, command: &Command) {
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(line, "{command}");
        if self.framing == Framing::WebSocket {
            let header = websocket::header(websocket::Opcode::Text, line.len() as u64, Some([0; 4]));
            self.output.extend_from_slice(&header);
        }
        self.output.extend_from_slice(line.as_bytes());
    }
}
