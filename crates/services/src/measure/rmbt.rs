//! RMBT on a socket.

use super::app::{App, Ended};
use super::client::{Client, Fault, linger};
use super::limits::Visitor;
use super::stream::Stream;
use speedtest::rmbt::server::{Framing, Limits, Need, Server};
use speedtest::websocket::{self, Decoder, Opcode, Piece, Sender};
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};
use units::Span;

/// The most bytes that are read at once. The kernel holds the socket while it copies them, and what was copied has to stay in the
/// processor's caches until it is processed: uploads of throughput1 on loopback have 0.6 to 0.7 times the rate with reads of 256 KiB or
/// 1 MiB, and 0.8 times with 16 KiB. With TLS, whose records are shorter, it makes no difference.
pub(super) const READ: usize = 64 * 1024;
/// The most bytes that are read at once while lines are expected.
const READ_LINES: usize = 4096;
/// Reads or writes until other connections get their turn.
pub(super) const TURNS: usize = 16;
/// The most bytes of frames that wait to be sent besides those of the protocol.
pub(super) const MOST_FRAMES: usize = 4096;

thread_local! {
    /// What has just been read. It is processed before the thread does anything else, so connections need no buffer of their own.
    pub(super) static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// Answers to pings, whose payload may arrive in parts.
#[derive(Debug, Default)]
pub(super) struct Pongs(Vec<u8>);

impl Pongs {
    /// Puts the pong to a ping that is complete among the frames to send.
    pub(super) fn answer(&mut self, piece: &Piece<'_>, frames: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.extend_from_slice(piece.payload);
        if piece.ends {
            frames.extend(websocket::frame(Opcode::Pong, &std::mem::take(&mut self.0), None));
        }
        // A client that pings and does not read makes them grow.
        if frames.len() > MOST_FRAMES { Err(Fault::Protocol) } else { Ok(()) }
    }
}

struct Session<'a> {
    app: &'a App,
    stream: Stream,
    server: Server,
    decoder: Option<Decoder>,
    /// What was read and not used.
    pending: Vec<u8>,
    /// Frames to send besides the protocol's, between two of those.
    frames: Vec<u8>,
    pongs: Pongs,
    /// Whether a part of the protocol's output was sent.
    divided: bool,
    /// Whether the client has sent a close frame.
    closed: bool,
}

/// Serves RMBT on a connection whose first bytes are `head`.
pub(super) async fn serve(
    app: &App,
    stream: Stream,
    mut head: Vec<u8>,
    framing: Framing,
    client: Client,
    visitor: &mut Visitor,
) -> Result<(), Fault> {
    let limits = &app.limits;
    let limits = Limits { seconds: limits.seconds, bytes: limits.bytes, sample: Span::from_millis(10) };
    let mut session = Session {
        app,
        stream,
        server: Server::new(limits, framing),
        decoder: (framing == Framing::WebSocket).then(|| Decoder::new(Sender::Client)),
        pending: Vec::new(),
        frames: Vec::new(),
        pongs: Pongs::default(),
        divided: false,
        closed: false,
    };
    session.take(&mut head)?;
    let mut test = String::new();
    let result = session.run(client, visitor, &mut test).await;
    session.server.abandon();
    session.store(client, &test);
    if result.is_ok() {
        let deadline = Instant::now() + app.limits.handshake;
        let mut sent = timeout_at(deadline, poll_fn(|cx| session.poll_output(cx))).await;
        // A close frame comes after the last line.
        if framing == Framing::WebSocket && !session.closed && matches!(sent, Ok(Ok(()))) {
            session.frames.extend(websocket::frame(Opcode::Close, &1000_u16.to_be_bytes(), None));
            sent = timeout_at(deadline, poll_fn(|cx| session.poll_output(cx))).await;
        }
        if matches!(sent, Ok(Ok(()))) {
            linger(&mut session.stream).await;
        }
    }
    result
}

impl Session<'_> {
    async fn run(&mut self, client: Client, visitor: &mut Visitor, test: &mut String) -> Result<(), Fault> {
        let limits = self.app.limits;
        // What a client requests has to be over some time after its time was, however slow it is.
        let transfer = Duration::from_secs(2 * u64::from(limits.seconds)) + limits.idle;
        let mut admitted = false;
        let mut transfer_deadline = None;
        loop {
            let need = self.server.need();
            match need {
                Need::Close => return Ok(()),
                Need::Decision => {
                    let token = self.server.token().unwrap_or_default().to_owned();
                    match self.app.admit(visitor, client.peer.ip(), &token) {
                        Ok(admission) => {
                            tokio::time::sleep(admission.wait).await;
                            *test = admission.test;
                            admitted = true;
                            self.server.admit();
                        }
                        Err(denied) => self.server.refuse(&denied.to_string()),
                    }
                    continue;
                }
                Need::Line => transfer_deadline = None,
                Need::Send | Need::Chunks => {
                    transfer_deadline.get_or_insert_with(|| Instant::now() + transfer);
                }
            }
            let idle = Instant::now() + limits.idle;
            let deadline = if admitted { transfer_deadline.map_or(idle, |end| end.min(idle)) } else { client.deadline };
            if admitted {
                timeout_at(deadline, poll_fn(|cx| self.poll_turn(cx))).await.map_err(|_| Fault::Timeout)??;
            } else {
                tokio::select! {
                    turn = timeout_at(deadline, poll_fn(|cx| self.poll_turn(cx))) => turn.map_err(|_| Fault::Timeout)??,
                    () = visitor.evicted() => return Err(Fault::Timeout),
                }
            }
            self.store(client, test);
            if self.closed {
                return Ok(());
            }
        }
    }

    /// Stores a transfer that has ended.
    fn store(&mut self, client: Client, test: &str) {
        if let Some(transfer) = self.server.poll_transfer() {
            self.app.end(&self.stream, Ended { protocol: "rmbt", test, peer: client.peer.ip(), transfer });
        }
    }

    /// Makes some progress, or waits.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let output = self.poll_output(cx)?;
        let need = self.server.need();
        if output.is_pending() && need != Need::Chunks {
            return Poll::Pending;
        }
        match need {
            Need::Send => self.poll_send(cx),
            Need::Line | Need::Chunks if !self.pending.is_empty() => {
                let pending = std::mem::take(&mut self.pending);
                let used = self.server.handle_input(&pending, self.app.now());
                self.pending = pending[used..].to_vec();
                Poll::Ready(Ok(()))
            }
            Need::Line => self.poll_receive(cx, READ_LINES),
            Need::Chunks => self.poll_receive(cx, READ),
            Need::Decision | Need::Close => Poll::Ready(Ok(())),
        }
    }

    /// Sends the output. Ready when there is none left.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if !self.divided {
            while !self.frames.is_empty() {
                let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.frames))?;
                if sent == 0 {
                    return Poll::Ready(Err(Fault::Broken));
                }
                self.frames.drain(..sent);
            }
        }
        let mut wrote = false;
        while !self.server.output().is_empty() {
            self.divided = true;
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, self.server.output()))?;
            if sent == 0 {
                return Poll::Ready(Err(Fault::Broken));
            }
            self.server.consume_output(sent);
            wrote = true;
        }
        self.divided = false;
        if wrote || self.stream.is_tls() {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        for turn in 0..TURNS {
            let written = {
                let burst = self.server.burst(&self.app.random, self.app.now());
                Pin::new(&mut self.stream).poll_write_vectored(cx, &burst)
            };
            let sent = match written {
                Poll::Ready(sent) => sent?,
                Poll::Pending if turn == 0 => return Poll::Pending,
                Poll::Pending => break,
            };
            if sent == 0 {
                return Poll::Ready(Err(Fault::Broken));
            }
            self.server.sent(sent, self.app.now());
            if self.server.need() != Need::Send {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Drops those bytes of an upload that do not matter, if it is worth it. Ready when there is something to read.
    fn poll_skip(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while let Some(most) = self.server.skippable().filter(|&most| most > 0) {
            let dropped = ready!(self.stream.poll_discard(cx, most))?;
            if dropped == 0 {
                return Poll::Ready(Err(Fault::Broken));
            }
            self.server.skipped(dropped, self.app.now());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Result<(), Fault>> {
        SCRATCH.with_borrow_mut(|scratch| {
            for turn in 0..TURNS {
                let skips = !self.stream.is_tls() && self.server.skippable().is_some();
                if skips {
                    match self.poll_skip(cx) {
                        Poll::Ready(result) => result?,
                        Poll::Pending if turn == 0 => return Poll::Pending,
                        Poll::Pending => break,
                    }
                }
                // After what was dropped comes the byte that matters.
                let most = if skips { 1 } else { most };
                let mut buffer = ReadBuf::new(&mut scratch[..most]);
                match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                    Poll::Ready(result) => result?,
                    Poll::Pending if turn == 0 => return Poll::Pending,
                    Poll::Pending => break,
                }
                if buffer.filled().is_empty() {
                    return Poll::Ready(Err(Fault::Broken));
                }
                self.take(buffer.filled_mut())?;
                // More is read only while nothing waits, neither to be processed nor to be sent.
                if self.server.need() != Need::Chunks || !self.pending.is_empty() || !self.server.output().is_empty() {
                    break;
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Gives what was read to the server, and keeps what it does not take.
    fn take(&mut self, mut input: &mut [u8]) -> Result<(), Fault> {
        let now = self.app.now();
        let (server, pending) = (&mut self.server, &mut self.pending);
        let mut give = |bytes: &[u8]| {
            let used = if pending.is_empty() { server.handle_input(bytes, now) } else { 0 };
            pending.extend_from_slice(&bytes[used..]);
        };
        let Some(decoder) = &mut self.decoder else {
            give(input);
            return Ok(());
        };
        while let Some(piece) = decoder.decode(&mut input).map_err(|_| Fault::Protocol)? {
            match piece.opcode {
                Opcode::Text | Opcode::Binary | Opcode::Continuation => give(piece.payload),
                Opcode::Close => self.closed = true,
                Opcode::Ping => self.pongs.answer(&piece, &mut self.frames)?,
                Opcode::Pong => {}
            }
        }
        Ok(())
    }
}
