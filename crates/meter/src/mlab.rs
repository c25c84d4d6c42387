//! A stream of throughput1 or ndt7, over WebSocket.

use std::io::IoSlice;
use std::sync::atomic::Ordering::Relaxed;

use nix::poll::PollFlags;
use observe::kernel::{Remote, Way};
use observe::progress::Samples;
use speedtest::ndt7::{self, Sizes, TcpInfo};
use speedtest::websocket::{self, Decoder, Opcode, Sender};
use speedtest::{http, throughput1};
use units::{Span, Time};

use crate::fault::Fault;
use crate::flow::Shared;
use crate::line::Line;
use crate::plan::Protocol;
use crate::remote::Listen;
use crate::upgrade::upgrade;

/// Bytes of one read.
const BLOCK: usize = 256 << 10;
/// The longest text of a server.
const LONGEST_TEXT: usize = 16 << 10;
/// Writes before the server's messages are read, if the kernel takes that many.
const WRITES: u32 = 32;
/// The shortest interval between two samples.
const SAMPLE: Span = Span::from_millis(10);
/// Time for a server to end a transfer, after the time for it is over.
const GRACE: Span = Span::from_secs(5);
/// The status of a regular end (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;
/// A mask that changes nothing: the data is the client's own, so it hides nothing from anyone.
const MASK: [u8; 4] = [0; 4];

/// What a stream is asked for with.
pub(crate) struct Request<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) way: Way,
    pub(crate) host: &'a str,
    pub(crate) token: &'a str,
    pub(crate) streams: usize,
    pub(crate) duration: Span,
    /// The congestion control of a download.
    pub(crate) congestion: Option<&'a str>,
    /// The name of the measurement.
    pub(crate) measurement: &'a str,
}

impl Request<'_> {
    fn target(&self) -> String {
        let token = Some(self.token).filter(|token| !token.is_empty());
        match (self.protocol, self.way) {
            (Protocol::Throughput1, way) => {
                let options = throughput1::Options {
                    streams: self.streams as u32,
                    duration: self.duration,
                    delay: Span::ZERO,
                    congestion: self.congestion.map(str::to_owned),
                    bytes: None,
                    measurement: self.measurement.to_owned(),
                };
                let path = if way == Way::Down { throughput1::DOWNLOAD } else { throughput1::UPLOAD };
                format!("{path}?{}", options.query(token))
            }
            (_, way) => {
                let path = if way == Way::Down { ndt7::DOWNLOAD } else { ndt7::UPLOAD };
                let token: Option<String> =
                    token.map(|token| form_urlencoded::byte_serialize(token.as_bytes()).collect());
                token.map_or_else(|| path.to_owned(), |token| format!("{path}?access_token={token}"))
            }
        }
    }

    fn subprotocol(&self) -> &'static str {
        if self.protocol == Protocol::Throughput1 { throughput1::SUBPROTOCOL } else { ndt7::SUBPROTOCOL }
    }

    fn sizes(&self) -> Sizes {
        if self.protocol == Protocol::Throughput1 { throughput1::SIZES } else { ndt7::SIZES }
    }
}

/// A stream whose transfer has begun at the server.
struct Stream<'a> {
    line: Line,
    shared: &'a Shared,
    /// What the server tells of the sender of a download.
    remote: &'a mut Remote,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// The text that is arriving.
    text: Vec<u8>,
    start: Time,
    samples: Samples,
    received: u64,
    /// Whether the server has ended the stream.
    closed: bool,
    /// The congestion control that the server was asked for, of a download.
    congestion: Option<&'a str>,
}

/// Transfers data, and returns its samples as [`crate::rmbt::Rmbt::transfer`] does. `remote` has what the server tells, even if
/// the transfer fails.
pub(crate) fn transfer(
    line: Line,
    request: &Request,
    shared: &Shared,
    random: &[u8],
    remote: &mut Remote,
) -> Result<(Time, Samples), Fault> {
    let mut stream = open(line, request, shared, remote)?;
    shared.begin(stream.start);
    let done = match request.way {
        Way::Down => stream.download(request.duration, request.protocol),
        Way::Up => stream.upload(request.duration, request.sizes(), random),
    };
    shared.end(stream.line.now());
    done?;
    let now = stream.line.now().saturating_since(stream.start);
    if request.way == Way::Down {
        stream.samples.finish(now, stream.received);
    }
    Ok((stream.start, stream.samples))
}

/// Sends the request, and waits for the answer.
fn open<'a>(
    mut line: Line,
    request: &Request<'a>,
    shared: &'a Shared,
    remote: &'a mut Remote,
) -> Result<Stream<'a>, Fault> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|why| Fault::Protocol(format!("there is no random data: {why}")))?;
    let head = http::request_websocket(request.host, &request.target(), nonce, Some(request.subprotocol()));
    let accept = websocket::accept(&http::websocket_key(nonce));
    let mut rest = upgrade(&mut line, &head, Some(&accept), Some(shared))?;
    if request.way == Way::Up {
        let _ = line.stamp();
    }
    let start = line.now();
    let mut stream = Stream {
        line,
        shared,
        remote,
        decoder: Decoder::new(Sender::Server),
        buffer: vec![0; BLOCK],
        text: Vec::new(),
        start,
        samples: Samples::new(SAMPLE),
        received: 0,
        closed: false,
        congestion: request.congestion.filter(|_| request.way == Way::Down),
    };
    stream.take(&mut rest)?;
    Ok(stream)
}

impl Stream<'_> {
    fn elapsed(&self) -> Span {
        self.line.now().saturating_since(self.start)
    }

    fn download(&mut self, duration: Span, protocol: Protocol) -> Result<(), Fault> {
        while !self.closed && self.elapsed() < duration + GRACE {
            self.line.wait(PollFlags::POLLIN, Some(self.shared))?;
            self.read()?;
            // A server of ndt7 goes on for ten seconds, unless the client ends the test.
            if protocol == Protocol::Ndt7 && self.elapsed() >= duration {
                return self.line.write_all(&websocket::frame(Opcode::Close, &NORMAL.to_be_bytes(), Some(MASK)));
            }
        }
        if self.closed { Ok(()) } else { Err(Fault::Protocol("the server does not end the download".into())) }
    }

    fn upload(&mut self, duration: Span, sizes: Sizes, random: &[u8]) -> Result<(), Fault> {
        let (mut size, mut sent) = (sizes.first, 0);
        while self.elapsed() < duration && !self.closed {
            let length = size.min(random.len());
            let header = websocket::header(Opcode::Binary, length as u64, Some(MASK));
            self.send(&header, &random[..length])?;
            sent += length as u64;
            size = sizes.next(size, sent);
        }
        self.send(&websocket::frame(Opcode::Close, &NORMAL.to_be_bytes(), Some(MASK)), &[])?;
        // What is still in buffers arrives before the server answers.
        while !self.closed {
            match self.line.wait(PollFlags::POLLIN, Some(self.shared)).and_then(|_| self.read()) {
                Err(Fault::Closed(_)) => break,
                other => other?,
            }
        }
        Ok(())
    }

    /// Sends a frame, and reads what the server sends meanwhile.
    fn send(&mut self, mut header: &[u8], mut payload: &[u8]) -> Result<(), Fault> {
        let mut writes = 0;
        while !(header.is_empty() && payload.is_empty()) {
            let sent = self.line.write(&[IoSlice::new(header), IoSlice::new(payload)], Some(self.shared))?;
            let of_header = sent.min(header.len());
            header = &header[of_header..];
            payload = &payload[sent - of_header..];
            self.shared.moved.fetch_add((sent - of_header) as u64, Relaxed);
            writes += 1;
            if sent == 0 {
                self.line.wait(PollFlags::POLLIN | PollFlags::POLLOUT, Some(self.shared))?;
            }
            if sent == 0 || writes % WRITES == 0 {
                self.read()?;
            }
            if self.closed {
                break;
            }
        }
        Ok(())
    }

    /// Reads what there is.
    fn read(&mut self) -> Result<(), Fault> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.line.read(&mut buffer).and_then(|length| self.take(&mut buffer[..length]));
        self.buffer = buffer;
        result
    }

    fn take(&mut self, mut input: &mut [u8]) -> Result<(), Fault> {
        let broken = |why: websocket::Fault| Fault::Protocol(why.to_string());
        while let Some(piece) = self.decoder.decode(&mut input).map_err(broken)? {
            match piece.opcode {
                Opcode::Binary => self.received += piece.payload.len() as u64,
                Opcode::Text => {
                    if self.text.len() + piece.payload.len() > LONGEST_TEXT {
                        return Err(Fault::Protocol("the server sends a text that is too long".into()));
                    }
                    self.text.extend_from_slice(piece.payload);
                    if piece.ends {
                        let text = std::mem::take(&mut self.text);
                        match self.shared.way {
                            Way::Down => self.hear(&text)?,
                            Way::Up => self.note(&text),
                        }
                    }
                }
                Opcode::Close => self.closed = true,
                _ => {}
            }
        }
        if self.shared.way == Way::Down {
            self.samples.record(self.elapsed(), self.received);
            self.shared.moved.store(self.received, Relaxed);
        }
        Ok(())
    }

    /// Takes note of what the server tells of its end of a download. Texts of other kinds are ignored.
    fn hear(&mut self, text: &[u8]) -> Result<(), Fault> {
        // One of ndt7 has the same fields but for the time.
        let Ok(message) = serde_json::from_slice::<throughput1::Measurement>(text) else { return Ok(()) };
        self.check_congestion(&message.congestion)?;
        self.remote.set_congestion(&message.congestion);
        let Some(info) = &message.tcp_info else { return Ok(()) };
        let of_ndt7 = serde_json::from_slice::<ndt7::Measurement>(text).ok().and_then(|message| message.app_info);
        let elapsed = of_ndt7.map_or(message.elapsed_time, |of_ndt7| of_ndt7.elapsed_time);
        let elapsed = Some(elapsed).filter(|&micros| micros != 0).or(info.elapsed_time);
        if let Some(elapsed) = elapsed {
            let arrived = self.elapsed();
            self.remote.take(info, message.bbr_info, elapsed, (self.start, arrived));
        }
        Ok(())
    }

    /// Checks that the server sends with the congestion control that it was asked for, if it tells which one it `used`.
    fn check_congestion(&self, used: &str) -> Result<(), Fault> {
        let Some(asked) = self.congestion else { return Ok(()) };
        if used.is_empty() || used == asked {
            return Ok(());
        }
        Err(Fault::Refused(format!("it does not send with {asked} but with {}", used.escape_debug())))
    }

    /// Takes note of what the server has received of an upload. Texts of other kinds are ignored.
    fn note(&mut self, text: &[u8]) {
        let of_throughput1 = serde_json::from_slice::<throughput1::Measurement>(text).ok();
        let of_ndt7 = serde_json::from_slice::<ndt7::Measurement>(text).ok();
        let (app, info) = of_ndt7.map_or((None, None), |message| (message.app_info, message.tcp_info));
        let (micros, bytes) = match (app, of_throughput1, info) {
            (Some(app), ..) => (app.elapsed_time, app.num_bytes),
            (None, Some(message), _) if message.elapsed_time > 0 => {
                (message.elapsed_time, message.application.received)
            }
            // M-Lab's server of ndt7 tells what its kernel counted, and nothing else.
            (.., Some(TcpInfo { elapsed_time: Some(micros), bytes_received: Some(bytes), .. })) => (micros, bytes),
            _ => return,
        };
        let (Ok(micros), Ok(bytes)) = (u64::try_from(micros), u64::try_from(bytes)) else { return };
        self.samples.finish(Span::from_micros(micros.min(1 << 40)), bytes);
        self.shared.confirmed.fetch_max(bytes, Relaxed);
    }
}
