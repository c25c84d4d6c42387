//! ndt7 and throughput1 on a WebSocket.

use super::app::{App, Ended};
use super::client::{Client, Fault, linger};
use super::error::fill_random;
use super::keys::{Admission, hexadecimal};
use super::rmbt::{Pongs, SCRATCH, TURNS};
use super::stream::Stream;
use observe::progress::Samples;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use speedtest::http::Request;
use speedtest::ndt7::{self, AppInfo, BbrInfo, ConnectionInfo, Sizes, TcpInfo};
use speedtest::rmbt::server::{Direction, Transfer};
use speedtest::throughput1::{self, Counters, Invalid, Options};
use speedtest::websocket::{self, Decoder, Opcode, Sender};
use std::future::poll_fn;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};
use units::{Span, Time};

/// Time for the end of a test: what is on its way, and the close frames.
const GRACE: Duration = Duration::from_secs(3);
/// How much longer than agreed an upload may last: what its sender has written may still be in its buffers, or in a modem's. An upload of
/// ndt7 is then ended after [`ndt7::LONGEST`].
const UPLOAD_GRACE: Duration = Duration::from_secs(5);
/// The header of a message, and its payload, which may go round the random data several times.
const MOST_SLICES: usize = 4;

/// The protocol and its options.
#[derive(Clone, Debug)]
pub(super) struct Test {
    direction: Direction,
    /// The options of throughput1; ndt7 has none.
    options: Option<Options>,
    duration: Duration,
    bytes: u64,
}

impl Test {
    /// Reads the test from the path and the query of a request, within the limits of the server.
    pub(super) fn parse(app: &App, request: &Request) -> Result<Test, Invalid> {
        let path = request.path.as_str();
        let direction = match path {
            ndt7::DOWNLOAD | throughput1::DOWNLOAD => Direction::Download,
            _ => Direction::Upload,
        };
        let options = match path {
            throughput1::DOWNLOAD | throughput1::UPLOAD => Some(Options::parse(request)?),
            _ => None,
        };
        let duration = options.as_ref().map_or(ndt7::DURATION, |options| options.duration);
        let duration = Duration::from_nanos(duration.as_nanos()).min(Duration::from_secs(app.limits.seconds.into()));
        let bytes = options.as_ref().and_then(|options| options.bytes).unwrap_or(u64::MAX).min(app.limits.bytes);
        Ok(Test { direction, options, duration, bytes })
    }

    fn protocol(&self) -> &'static str {
        if self.options.is_some() { "throughput1" } else { "ndt7" }
    }

    fn sizes(&self) -> Sizes {
        if self.options.is_some() { throughput1::SIZES } else { ndt7::SIZES }
    }
}

/// A message that is being sent.
#[derive(Debug)]
struct Message {
    header: arrayvec::ArrayVec<u8, 14>,
    size: usize,
    /// Where its payload starts in the random data.
    base: usize,
    /// Bytes sent, those of the header included.
    position: usize,
}

struct Session<'a> {
    app: &'a App,
    stream: Stream,
    decoder: Decoder,
    pongs: Pongs,
    /// Frames to send between two messages.
    frames: Vec<u8>,
    message: Option<Message>,
    /// The size of messages.
    size: usize,
    sizes: Sizes,
    /// Whether messages are to be sent.
    sends: bool,
    sent: u64,
    received: u64,
    /// Whether the client has sent a close frame, or ended the connection.
    ended: bool,
    start: Time,
    samples: Samples,
}

/// Serves a test to its end.
pub(super) async fn serve(
    app: &App,
    stream: Stream,
    mut rest: Vec<u8>,
    test: Test,
    admission: &Admission,
    client: Client,
) -> Result<(), Fault> {
    let congestion = test.options.as_ref().and_then(|options| options.congestion.as_deref());
    if let Some(name) = congestion {
        // The result names the congestion control that was used; one that the system lacks fails no test.
        let _ = rustix::net::sockopt::set_tcp_congestion(stream.socket(), name);
    }
    let mut session = Session {
        app,
        stream,
        decoder: Decoder::new(Sender::Client),
        pongs: Pongs::default(),
        frames: Vec::new(),
        message: None,
        size: test.sizes().first,
        sizes: test.sizes(),
        sends: test.direction == Direction::Download,
        sent: 0,
        received: 0,
        ended: false,
        start: app.now(),
        samples: Samples::new(Span::from_millis(10)),
    };
    let result = match session.take(&mut rest) {
        Ok(()) => session.run(&test, client).await,
        Err(fault) => Err(fault),
    };
    let (duration, bytes) = session.progress(test.direction);
    let complete = result.is_ok();
    let (direction, chunk) = (test.direction, session.size);
    let samples = std::mem::take(&mut session.samples);
    let name = test.options.as_ref().map_or(admission.test.as_str(), |options| options.measurement.as_str());
    let transfer = Transfer { direction, bytes, duration, chunk, samples, complete };
    let ended = Ended { protocol: test.protocol(), test: name, peer: client.peer.ip(), transfer };
    app.end(&session.stream, ended);
    if complete {
        session.close().await;
    }
    result
}

impl Session<'_> {
    /// Sends or receives until the sender ends the test, or the time is over. The last measurement then waits to be sent, with all bytes.
    async fn run(&mut self, test: &Test, client: Client) -> Result<(), Fault> {
        let begin = Instant::now();
        // The sender ends the test: its close frame comes after all of its data.
        let until = match test.direction {
            Direction::Upload => begin + test.duration + UPLOAD_GRACE,
            Direction::Download => begin + test.duration,
        };
        let mut seed = [0; 8];
        fill_random(&mut seed).map_err(|_| Fault::Broken)?;
        let mut random = SplitMix64::from_seed(seed);
        let mut interval = || {
            let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            Duration::from_nanos(ndt7::interval(uniform).as_nanos())
        };
        let mut first = true;
        let mut next = begin + interval();
        let mut heard = (begin, 0);
        loop {
            let turn = timeout_at(next.min(until), poll_fn(|cx| self.poll_turn(cx))).await;
            if let Ok(result) = turn {
                result?;
            }
            let (elapsed, bytes) = self.progress(test.direction);
            self.samples.record(elapsed, bytes);
            let now = Instant::now();
            if bytes > heard.1 {
                heard = (now, bytes);
            }
            if now - heard.0 > self.app.limits.idle {
                return Err(Fault::Timeout);
            }
            if self.ended || now >= until || bytes >= test.bytes {
                self.samples.finish(elapsed, bytes);
                let text = self.measurement(test, client, first);
                self.frames.extend(websocket::frame(Opcode::Text, text.as_bytes(), None));
                return Ok(());
            }
            if now >= next {
                next = now + interval();
                // A client that reads nothing gets no further measurement.
                if self.frames.is_empty() {
                    let text = self.measurement(test, client, first);
                    self.frames = websocket::frame(Opcode::Text, text.as_bytes(), None);
                    first = false;
                }
            }
        }
    }

    /// Returns the time since the start and the bytes of payload.
    fn progress(&self, direction: Direction) -> (Span, u64) {
        let bytes = if direction == Direction::Download { self.sent } else { self.received };
        (self.app.now().saturating_since(self.start), bytes)
    }

    fn measurement(&self, test: &Test, client: Client, first: bool) -> String {
        let elapsed = self.app.now().saturating_since(self.start).as_micros();
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let count = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let socket = self.stream.socket();
        let info = netio::sys::tcp_info(socket.as_fd()).ok();
        let known = |total: Option<u64>| count(total.unwrap_or(0));
        let tcp_info = info.map(|info| TcpInfo { elapsed_time: Some(elapsed), ..TcpInfo::from(&info) });
        let bbr_info = netio::sys::bbr_info(socket.as_fd()).ok().flatten().map(|bbr| BbrInfo::from(&bbr));
        let local = socket.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
        let mut name = [0; 8];
        let _ = fill_random(&mut name);
        let (remote, uuid) = (client.peer.to_string(), hexadecimal(&name));
        let json = if test.options.is_some() {
            let congestion = rustix::net::sockopt::tcp_congestion(socket).unwrap_or_default();
            let once = |text: String| if first { text } else { String::new() };
            let network = info.map_or_else(Counters::default, |info| Counters {
                sent: known(info.bytes_sent),
                received: count(info.bytes_received),
            });
            serde_json::to_string(&throughput1::Measurement {
                congestion: once(congestion),
                uuid: once(uuid),
                local: once(local),
                remote: once(remote),
                application: Counters { sent: count(self.sent), received: count(self.received) },
                network,
                elapsed_time: elapsed,
                tcp_info,
                bbr_info,
            })
        } else {
            let (bytes, name) = match test.direction {
                Direction::Download => (self.sent, "download"),
                Direction::Upload => (self.received, "upload"),
            };
            serde_json::to_string(&ndt7::Measurement {
                app_info: Some(AppInfo { elapsed_time: elapsed, num_bytes: count(bytes) }),
                connection_info: first.then_some(ConnectionInfo { client: remote, server: local, uuid }),
                origin: Some("server".into()),
                test: Some(name.into()),
                tcp_info,
                bbr_info,
            })
        };
        json.unwrap_or_default()
    }

    /// Ends the test: the rest of a message, the last measurement, a close frame, and what the client still sends.
    async fn close(&mut self) {
        let deadline = Instant::now() + GRACE;
        self.sends = false;
        self.frames.extend(websocket::frame(Opcode::Close, &1000_u16.to_be_bytes(), None));
        loop {
            let done = self.frames.is_empty() && self.message.is_none();
            if done && self.ended {
                return linger(&mut self.stream).await;
            }
            match timeout_at(deadline, poll_fn(|cx| self.poll_turn(cx))).await {
                Ok(Ok(())) => {}
                // The client is gone, or too slow for the rest.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Makes some progress, or waits. Reads what there is first, so that a client that sends is never waited for.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let read = if self.ended { Poll::Pending } else { self.poll_receive(cx)? };
        let written = self.poll_send(cx)?;
        if read.is_ready() || written.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Ready if something was sent.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let mut progress = Poll::Pending;
        for _ in 0..TURNS {
            if self.message.is_none() && self.frames.is_empty() && self.sends {
                self.size = self.sizes.next(self.size, self.sent);
                let header = websocket::header(Opcode::Binary, self.size as u64, None);
                let base = (self.sent % self.app.random.len() as u64) as usize;
                self.message = Some(Message { header, size: self.size, base, position: 0 });
            }
            let sent = if let Some(message) = &mut self.message {
                let slices = slices(message, &self.app.random);
                Pin::new(&mut self.stream).poll_write_vectored(cx, &slices)
            } else if self.frames.is_empty() {
                break;
            } else {
                Pin::new(&mut self.stream).poll_write(cx, &self.frames)
            };
            let Poll::Ready(sent) = sent else { break };
            let sent = sent?;
            if sent == 0 {
                return Poll::Ready(Err(Fault::Broken));
            }
            progress = Poll::Ready(Ok(()));
            match &mut self.message {
                Some(message) => {
                    let header = message.header.len();
                    let before = message.position.saturating_sub(header);
                    message.position += sent;
                    self.sent += (message.position.saturating_sub(header) - before) as u64;
                    if message.position == header + message.size {
                        self.message = None;
                    }
                }
                None => {
                    self.frames.drain(..sent);
                }
            }
        }
        // TLS may hold back records that were written.
        if self.stream.is_tls() && Pin::new(&mut self.stream).poll_flush(cx)?.is_pending() {
            return progress;
        }
        progress
    }

    /// Ready if something was received.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        SCRATCH.with_borrow_mut(|scratch| {
            for turn in 0..TURNS {
                let mut buffer = ReadBuf::new(scratch);
                match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                    Poll::Ready(result) => result?,
                    Poll::Pending if turn == 0 => return Poll::Pending,
                    Poll::Pending => break,
                }
                if buffer.filled().is_empty() {
                    self.ended = true;
                    break;
                }
                self.take(buffer.filled_mut())?;
                if self.ended {
                    break;
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Counts what was received.
    fn take(&mut self, mut input: &mut [u8]) -> Result<(), Fault> {
        while let Some(piece) = self.decoder.decode(&mut input).map_err(|_| Fault::Protocol)? {
            match piece.opcode {
                // Measurements of the client count as data, as in the reference servers.
                Opcode::Text | Opcode::Binary | Opcode::Continuation => self.received += piece.payload.len() as u64,
                Opcode::Close => self.ended = true,
                Opcode::Ping => self.pongs.answer(&piece, &mut self.frames)?,
                Opcode::Pong => {}
            }
        }
        Ok(())
    }
}

/// Returns what is left of a message. Its payload is cut from `random`, which it may exceed.
fn slices<'a>(message: &'a Message, random: &'a [u8]) -> arrayvec::ArrayVec<IoSlice<'a>, MOST_SLICES> {
    let mut slices = arrayvec::ArrayVec::new();
    let header = message.header.len();
    if message.position < header {
        slices.push(IoSlice::new(&message.header[message.position..]));
    }
    let mut done = message.position.saturating_sub(header);
    while done < message.size && !slices.is_full() {
        let from = (message.base + done) % random.len();
        let length = (message.size - done).min(random.len() - from);
        slices.push(IoSlice::new(&random[from..from + length]));
        done += length;
    }
    slices
}
