//! A connection, from its first byte to what it speaks.

use super::app::App;
use super::client::{Client, Fault, LINGER, linger};
use super::keys::{Denied, Open};
use super::limits::{RETRY_AFTER, Visitor, is_private};
use super::stream::Stream;
use super::{control, rmbt, streams};
use crate::server::{host_name, is_own_page};
use speedtest::http::{self, LONGEST_HEAD, Request, Upgrade, parse_request};
use speedtest::rmbt::server::Framing;
use speedtest::{ndt7, rmbt as protocol, throughput1};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// The first byte of a TLS connection: a handshake record (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// How HTTP requests begin.
const METHODS: [&[u8]; 4] = [b"GET ", b"POST ", b"OPTIONS ", b"HEAD "];
/// The longest connection, whatever it does.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Serves a connection to its end.
pub(super) async fn serve(app: Arc<App>, stream: TcpStream, peer: SocketAddr, mut visitor: Visitor) {
    let client = Client { peer, deadline: Instant::now() + app.limits.handshake };
    let _ = stream.set_nodelay(true);
    let fault = match timeout(LONGEST, start(&app, stream, client, &mut visitor)).await {
        Ok(Ok(())) => return,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::Timeout,
    };
    match fault {
        Fault::Broken => {}
        Fault::Timeout => drop(app.counters.timeouts.fetch_add(1, Relaxed)),
        Fault::Protocol => drop(app.counters.faults.fetch_add(1, Relaxed)),
    }
}

async fn start(app: &App, stream: TcpStream, client: Client, visitor: &mut Visitor) -> Result<(), Fault> {
    let opened = tokio::select! {
        opened = open(app, stream, client.deadline) => opened?,
        () = visitor.evicted() => return Err(Fault::Timeout),
    };
    let Some((stream, head)) = opened else { return Ok(()) };
    if is_http(&head) == Some(true) {
        serve_http(app, stream, head, client, visitor).await
    } else {
        rmbt::serve(app, stream, head, Framing::Plain, client, visitor).await
    }
}

/// Does the TLS handshake if there is one, and waits for the client's first words. Returns them, or nothing if the client has to
/// use TLS and does not.
async fn open(app: &App, stream: TcpStream, deadline: Instant) -> Result<Option<(Stream, Vec<u8>)>, Fault> {
    let silence = Duration::from_nanos(protocol::SILENCE.as_nanos());
    let first_byte = timeout(silence, async {
        let mut first = [0];
        stream.peek(&mut first).await.map(|length| (length == 1).then_some(first[0]))
    });
    let first = match first_byte.await {
        Ok(Ok(Some(first))) => Some(first),
        Ok(_) => return Err(Fault::Broken),
        Err(_) => None,
    };
    let mut stream = match app.tls() {
        Some(acceptor) if first == Some(TLS_HANDSHAKE) => match timeout_at(deadline, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
            Ok(Err(_)) => {
                app.counters.tls_failures.fetch_add(1, Relaxed);
                return Err(Fault::Broken);
            }
            Err(_) => return Err(Fault::Timeout),
        },
        _ if app.tls_only => return Ok(None),
        _ => Stream::Plain(stream),
    };
    let mut head = Vec::new();
    if first.is_none() {
        return Ok(Some((stream, head)));
    }
    // A client that has begun to speak is waited for until it is clear what it speaks.
    let mut until = if stream.is_tls() { Instant::now() + silence } else { deadline };
    while is_http(&head).is_none() {
        match timeout_at(until.min(deadline), read_head(&mut stream, &mut head)).await {
            Ok(read) => read?,
            Err(_) if head.is_empty() && until < deadline => break,
            Err(_) => return Err(Fault::Timeout),
        }
        until = deadline;
    }
    Ok(Some((stream, head)))
}

/// Reads some more of a head.
async fn read_head(stream: &mut Stream, head: &mut Vec<u8>) -> Result<(), Fault> {
    let mut part = [0; 1024];
    let room = (LONGEST_HEAD - head.len()).min(part.len());
    let length = stream.read(&mut part[..room]).await?;
    if length == 0 {
        return Err(Fault::Broken);
    }
    head.extend_from_slice(&part[..length]);
    Ok(())
}

/// Whether a connection that begins with these bytes speaks HTTP; nothing if it is not clear yet.
fn is_http(head: &[u8]) -> Option<bool> {
    if METHODS.iter().any(|method| head.starts_with(method)) {
        Some(true)
    } else if METHODS.iter().any(|method| method.starts_with(head)) {
        None
    } else {
        Some(false)
    }
}

async fn serve_http(
    app: &App,
    mut stream: Stream,
    mut head: Vec<u8>,
    client: Client,
    visitor: &mut Visitor,
) -> Result<(), Fault> {
    let request = loop {
        match parse_request(&head) {
            Ok(Some((request, length))) => {
                head.drain(..length);
                break request;
            }
            Ok(None) => {}
            Err(fault) => {
                let status = if fault == http::Fault::TooLong {
                    (431, "Request Header Fields Too Large")
                } else {
                    (400, "Bad Request")
                };
                reply(&mut stream, &http::respond(status, "text/plain", &format!("{fault}\n"), None)).await?;
                return Err(Fault::Protocol);
            }
        }
        tokio::select! {
            read = timeout_at(client.deadline, read_head(&mut stream, &mut head)) => {
                read.map_err(|_| Fault::Timeout)??;
            }
            () = visitor.evicted() => return Err(Fault::Timeout),
        }
    };
    if request.path.starts_with(protocol::control::BASE) && app.control.is_some() {
        let answer = tokio::select! {
            answer = control::answer(app, &mut stream, &request, head, client) => answer?,
            () = visitor.evicted() => return Err(Fault::Timeout),
        };
        return reply(&mut stream, &answer).await;
    }
    match request.upgrade() {
        Some(upgrade) => serve_upgrade(app, stream, &request, upgrade, head, client, visitor).await,
        None => {
            let text = "this is a measurement server: RMBT, ndt7, throughput1\n";
            reply(&mut stream, &http::respond((404, "Not Found"), "text/plain", text, None)).await
        }
    }
}

/// Returns whether a request comes from no page, from one of this server's host, or from one whose host is an address of this host or of
/// a private network.
fn is_page_of_private_network(request: &Request) -> bool {
    let Some(origin) = request.fields.get("origin") else { return true };
    let host = origin.split_once("://").and_then(|(_, authority)| host_name(authority));
    let is_local = |name: &str| name == "localhost" || name.parse().is_ok_and(is_private);
    is_own_page(origin, request.fields.get("host")) || host.is_some_and(is_local)
}

async fn serve_upgrade(
    app: &App,
    mut stream: Stream,
    request: &Request,
    upgrade: Upgrade,
    rest: Vec<u8>,
    client: Client,
    visitor: &mut Visitor,
) -> Result<(), Fault> {
    // Clients of private networks are trusted, but not every page that their browsers show.
    let is_socket = matches!(upgrade, Upgrade::WebSocket { .. });
    if app.open == Open::Private && is_socket && !is_page_of_private_network(request) {
        let text = "without a token, this server is for private networks, not for pages of other sites\n";
        return reply(&mut stream, &http::respond((403, "Forbidden"), "text/plain", text, None)).await;
    }
    let kind = match &upgrade {
        Upgrade::Rmbt => None,
        Upgrade::WebSocket { protocols, .. } => {
            let offers = |name: &str| protocols.iter().any(|offered| offered == name);
            match request.path.as_str() {
                ndt7::DOWNLOAD | ndt7::UPLOAD if offers(ndt7::SUBPROTOCOL) => Some(ndt7::SUBPROTOCOL),
                throughput1::DOWNLOAD | throughput1::UPLOAD if offers(throughput1::SUBPROTOCOL) => {
                    Some(throughput1::SUBPROTOCOL)
                }
                ndt7::DOWNLOAD | ndt7::UPLOAD | throughput1::DOWNLOAD | throughput1::UPLOAD => {
                    let text = "the WebSocket subprotocol of the test is missing\n";
                    let answer = http::respond((400, "Bad Request"), "text/plain", text, None);
                    return reply(&mut stream, &answer).await;
                }
                _ => None,
            }
        }
    };
    let Some(subprotocol) = kind else {
        let framing = match upgrade {
            Upgrade::Rmbt => Framing::Plain,
            Upgrade::WebSocket { .. } => Framing::WebSocket,
        };
        send(&mut stream, &http::switch(&upgrade, None)).await?;
        return rmbt::serve(app, stream, rest, framing, client, visitor).await;
    };
    let test = match streams::Test::parse(app, request) {
        Ok(test) => test,
        Err(invalid) => {
            let answer = http::respond((400, "Bad Request"), "text/plain", &format!("{invalid}\n"), None);
            return reply(&mut stream, &answer).await;
        }
    };
    let token = request.parameter("access_token").unwrap_or_default();
    let admission = match app.admit(visitor, client.peer.ip(), token) {
        Ok(admission) => admission,
        Err(denied) => {
            let (status, retry) = match denied {
                Denied::Busy(_) => ((503, "Service Unavailable"), Some(RETRY_AFTER)),
                Denied::Token(_) => ((401, "Unauthorized"), None),
                Denied::Foreign => ((403, "Forbidden"), None),
            };
            return reply(&mut stream, &http::respond(status, "text/plain", &format!("{denied}\n"), retry)).await;
        }
    };
    tokio::time::sleep(admission.wait).await;
    send(&mut stream, &http::switch(&upgrade, Some(subprotocol))).await?;
    streams::serve(app, stream, rest, test, &admission, client).await
}

/// Sends a text, which fits into the socket's buffer.
async fn send(stream: &mut Stream, text: &str) -> Result<(), Fault> {
    let sent = timeout(LINGER, async {
        stream.write_all(text.as_bytes()).await?;
        stream.flush().await
    });
    sent.await.map_err(|_| Fault::Timeout)?.map_err(Fault::from)
}

/// Sends an answer and closes the connection.
async fn reply(stream: &mut Stream, text: &str) -> Result<(), Fault> {
    send(stream, text).await?;
    linger(stream).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_told_from_those_of_private_networks() {
        let of = |origin: &str| {
            let head = format!("GET /ndt/v7/download HTTP/1.1\r\nHost: lab.example:5231\r\n{origin}\r\n");
            let (request, _) = parse_request(head.as_bytes()).expect("it is valid").expect("it is complete");
            is_page_of_private_network(&request)
        };
        for origin in
            ["", "http://lab.example:5231", "http://127.0.0.1:8000", "https://[fd00::1]", "http://localhost:80"]
        {
            let line = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
            assert!(of(&line), "{origin}");
        }
        for origin in
            ["http://evil.example", "http://lab.example", "null", "http://8.8.8.8", "http://10.0.0.1.evil.example"]
        {
            assert!(!of(&format!("Origin: {origin}\r\n")), "{origin}");
        }
    }
}
