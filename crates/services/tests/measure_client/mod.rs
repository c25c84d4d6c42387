//! A client of RMBT on a blocking socket, for tests of the server.

#![allow(dead_code, reason = "each test binary uses a part")]

use speedtest::http::{parse_response, request_rmbt, request_websocket, websocket_key};
use speedtest::rmbt::Client;
use speedtest::rmbt::chunks::{End, RANDOM};
use speedtest::rmbt::client::{Event, Need};
use speedtest::rmbt::server::{Framing, Transfer};
use speedtest::websocket::{self, Decoder, Opcode, Sender};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use units::{Span, Time};

static RANDOM_DATA: LazyLock<Vec<u8>> = LazyLock::new(|| (0..RANDOM).map(|index| ((index * 31) >> 3) as u8).collect());

/// The three framings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Greeting,
    Upgrade,
    WebSocket,
}

pub(crate) const ALL: [How; 3] = [How::Greeting, How::Upgrade, How::WebSocket];

/// A connection.
pub(crate) struct Conn<S> {
    stream: S,
    client: Client,
    decoder: Option<Decoder>,
    start: Instant,
}

/// Connects, with time-outs that no test exceeds.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Sends a request, and returns the status, the fields and the body of the answer.
pub(crate) fn exchange<S: Read + Write>(stream: &mut S, request: &[u8]) -> (u16, Option<u64>, String) {
    stream.write_all(request).expect("it takes it");
    let mut answer = Vec::new();
    // A connection that is reset after the answer is as good as one that is closed.
    let _ = stream.read_to_end(&mut answer);
    let (head, length) = parse_response(&answer).expect("a valid answer").expect("a complete answer");
    (head.status, head.retry_after(), String::from_utf8_lossy(&answer[length..]).into_owned())
}

/// Sends a body to the control server, and returns the answer.
pub(crate) fn post(address: SocketAddr, what: &str, body: &str) -> (u16, serde_json::Value) {
    let request = format!(
        "POST /RMBTControlServer/{what} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, _, body) = exchange(&mut connect(address), request.as_bytes());
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Gets a token from the control server.
pub(crate) fn token(address: SocketAddr) -> String {
    let (status, answer) = post(address, "testRequest", r#"{"uuid":"","client":"RMBT"}"#);
    assert_eq!(status, 200, "{answer}");
    answer["test_token"].as_str().expect("a token").to_owned()
}

/// Gets a token and opens a connection with it, or learns why not. Under attack either connection may have to make room.
pub(crate) fn attempt(address: SocketAddr) -> Result<Conn<TcpStream>, String> {
    attempt_over(address, std::convert::identity)
}

/// The same over what `wrap` makes of each TCP connection, such as TLS.
pub(crate) fn attempt_over<S: Read + Write>(
    address: SocketAddr,
    wrap: impl Fn(TcpStream) -> S,
) -> Result<Conn<S>, String> {
    let body = "{}";
    let request = format!(
        "POST /RMBTControlServer/testRequest HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut stream, mut answer) = (wrap(connect(address)), Vec::new());
    stream.write_all(request.as_bytes()).map_err(|why| why.to_string())?;
    stream.read_to_end(&mut answer).map_err(|why| why.to_string())?;
    let (_, length) = parse_response(&answer).ok().flatten().ok_or("no answer")?;
    let answer: serde_json::Value = serde_json::from_slice(&answer[length..]).map_err(|why| why.to_string())?;
    let token = answer["test_token"].as_str().ok_or_else(|| answer.to_string())?;
    Conn::open(wrap(connect(address)), How::Upgrade, token)
}

impl<S: Read + Write> Conn<S> {
    /// Opens a connection up to the first command. The error is what the server refused.
    pub(crate) fn open(mut stream: S, how: How, token: &str) -> Result<Conn<S>, String> {
        let accept = match how {
            How::Greeting => None,
            How::Upgrade => {
                stream.write_all(request_rmbt("localhost", "/rmbt").as_bytes()).map_err(|why| why.to_string())?;
                Some(None)
            }
            How::WebSocket => {
                let request = request_websocket("localhost", "/rmbt", [7; 16], None);
                stream.write_all(request.as_bytes()).map_err(|why| why.to_string())?;
                Some(Some(websocket::accept(&websocket_key([7; 16]))))
            }
        };
        if let Some(accept) = accept {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).map_err(|why| why.to_string())?;
                head.push(byte[0]);
            }
            let (head, _) = parse_response(&head).expect("valid").expect("complete");
            if !head.is_upgraded(accept.as_deref()) {
                return Err(format!("status {}", head.status));
            }
        }
        let (framing, decoder) = match how {
            How::WebSocket => (Framing::WebSocket, Some(Decoder::new(Sender::Server))),
            How::Greeting | How::Upgrade => (Framing::Plain, None),
        };
        let mut conn = Conn { stream, client: Client::new(token, framing), decoder, start: Instant::now() };
        conn.run()?;
        Ok(conn)
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Runs until a command is needed.
    fn run(&mut self) -> Result<Vec<Event>, String> {
        let (mut events, mut buffer) = (Vec::new(), vec![0; 1 << 18]);
        loop {
            let length = self.client.output().len();
            self.stream.write_all(self.client.output()).map_err(|why| why.to_string())?;
            self.stream.flush().map_err(|why| why.to_string())?;
            self.client.consume_output(length);
            match self.client.need() {
                Need::Command => return Ok(events),
                Need::Close => {
                    return match events.pop() {
                        Some(Event::Refused(why)) => Err(why),
                        Some(Event::Ended) => Ok(events),
                        other => Err(format!("{other:?}")),
                    };
                }
                Need::Send => {
                    let now = self.now();
                    let sent = {
                        let burst = self.client.burst(&RANDOM_DATA, now);
                        self.stream.write_vectored(&burst).map_err(|why| why.to_string())?
                    };
                    self.client.sent(sent);
                }
                Need::Input => {
                    let length = self.stream.read(&mut buffer).map_err(|why| why.to_string())?;
                    if length == 0 {
                        return Err("the server has closed the connection".into());
                    }
                    let now = self.now();
                    match &mut self.decoder {
                        None => self.client.handle_input(&buffer[..length], now).map_err(|why| why.to_string())?,
                        Some(decoder) => {
                            let mut rest = &mut buffer[..length];
                            while let Some(piece) = decoder.decode(&mut rest).map_err(|why| why.to_string())? {
                                match piece.opcode {
                                    // It follows BYE.
                                    Opcode::Close if self.client.need() == Need::Close => {}
                                    Opcode::Close => return Err("the server has sent a close frame".into()),
                                    _ => {
                                        let heard = self.client.handle_input(piece.payload, now);
                                        heard.map_err(|why| why.to_string())?;
                                    }
                                }
                            }
                        }
                    }
                    events.extend(std::iter::from_fn(|| self.client.poll_event()));
                }
            }
        }
    }

    fn transfer(&mut self) -> Result<Transfer, String> {
        match &self.run()?[..] {
            [Event::Transferred(transfer)] => Ok(transfer.clone()),
            other => Err(format!("no transfer: {other:?}")),
        }
    }

    pub(crate) fn ping(&mut self) -> Result<(Span, Span), String> {
        self.client.ping(self.now());
        match &self.run()?[..] {
            [Event::Pinged { client, server }] => Ok((*client, *server)),
            other => Err(format!("no ping: {other:?}")),
        }
    }

    pub(crate) fn get_chunks(&mut self, count: u32, chunk: usize) -> Result<Transfer, String> {
        self.client.get_chunks(count, Some(chunk), self.now());
        self.transfer()
    }

    pub(crate) fn get_time(&mut self, seconds: u32, chunk: usize) -> Result<Transfer, String> {
        self.client.get_time(seconds, Some(chunk), self.now());
        self.transfer()
    }

    pub(crate) fn put(&mut self, end: End, chunk: usize, reports: bool) -> Result<Transfer, String> {
        self.client.put(end, Some(chunk), reports, self.now());
        self.transfer()
    }

    pub(crate) fn quit(mut self) -> Result<(), String> {
        self.client.quit();
        self.run().map(drop)
    }
}
