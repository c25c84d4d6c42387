//! Servers at the network's server end, for a first try: a web server for downloads and uploads of any length, and iperf3
//! if it is installed.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, oneshot};

use crate::Error;
use crate::lab::Lab;
use netio::program::find_program;
use netio::rights;

/// Connections served at once, well below the usual limit of open files; more wait in the kernel to be accepted.
const CONNECTIONS: usize = 512;
/// Longest request head in bytes.
const HEAD: usize = 64 << 10;
/// How long a client may take to send a request's head, and keep an idle connection.
const IDLE: Duration = Duration::from_secs(60);
/// The longest answer of a given length.
const LONGEST: u64 = 1_000_000_000_000;
/// The longest time before an answer.
const LATEST: f64 = 60.0;
/// The port of iperf3.
const IPERF3: u16 = 5201;
/// The block that answers repeat: longer than the windows of usual compressors.
const BLOCK: usize = 1 << 20;

const HELP: &str = "try /100MB, /5000000 (bytes), /endless, /delay/2 (seconds), or send something with POST or PUT\n";

/// A web server in a thread of its own. Dropping it stops the server, whatever it is doing.
///
/// It does not serve ranges: every answer is whole. A stalled transfer keeps its connection, because networks that stall
/// are what users try here.
#[derive(Debug)]
pub struct Web {
    /// The server stops when this is gone.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Serves what connects to `listeners`, which stay in the network namespace that they were made in.
    pub fn start(listeners: Vec<TcpListener>) -> Result<Web, Error> {
        let failed = || Error::system("cannot start the web server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed())?;
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let router = Router::new().fallback(answer).with_state(block());
        let inside = runtime.enter();
        for listener in listeners {
            listener.set_nonblocking(true).map_err(failed())?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed())?;
            runtime.spawn(accept(listener, places.clone(), router.clone()));
        }
        drop(inside);
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            // It only answers on its listeners from here on.
            if rights::confine(&[libc::SYS_setsockopt]).is_err() {
                return;
            }
            // Comes when the sender is gone; with the runtime, all connections go.
            let _ = runtime.block_on(stopped);
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(serve).map_err(failed())?;
        Ok(Web { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, places: Arc<Semaphore>, router: Router) {
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, or a client that has left: neither lasts.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Only that a short answer may come a little later, if it fails.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(HEAD)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            // What goes wrong on a connection is the client's business.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn answer(State(block): State<Bytes>, request: Request) -> Response {
    let begun = Instant::now();
    let path = request.uri().path();
    match *request.method() {
        Method::GET | Method::HEAD => {}
        Method::POST | Method::PUT => return swallow(request.into_body(), begun).await,
        _ => return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD, POST, PUT")], HELP).into_response(),
    }
    let name = path.trim_start_matches('/');
    if name.is_empty() {
        front(request.headers())
    } else if name == "endless" {
        data(block, None)
    } else if let Some(seconds) = name.strip_prefix("delay/") {
        match seconds.parse::<f64>() {
            Ok(wait) if (0.0..=LATEST).contains(&wait) => {
                tokio::time::sleep(Duration::from_secs_f64(wait)).await;
                format!("{wait} s later\n").into_response()
            }
            _ => wrong(format!("`{seconds}` is not a delay: it takes seconds, from 0 to {LATEST}\n")),
        }
    } else if name.starts_with(|first: char| first.is_ascii_digit()) {
        match size(name) {
            Ok(size) => data(block, Some(size)),
            Err(why) => wrong(why),
        }
    } else {
        (StatusCode::NOT_FOUND, HELP).into_response()
    }
}

fn wrong(why: String) -> Response {
    (StatusCode::BAD_REQUEST, why).into_response()
}

/// The length that a path asks for: an amount with a unit, or bytes.
fn size(text: &str) -> Result<u64, String> {
    let bytes = if text.bytes().all(|digit| digit.is_ascii_digit()) {
        // Only a number that is too large for any length cannot be read.
        text.parse().unwrap_or(u64::MAX)
    } else {
        text.parse::<units::Bytes>().map_err(|why| format!("{why}, or bytes without a unit\n"))?.get()
    };
    if bytes > LONGEST {
        return Err(format!("`{text}` is too long: up to 1000GB can be asked for, or /endless\n"));
    }
    Ok(bytes)
}

/// Returns the index page, with the host name that the client used.
fn front(headers: &HeaderMap) -> Response {
    let named = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    let host = named(header::HOST).filter(|host| !host.is_empty() && host.chars().all(plain)).unwrap_or("server");
    if !named(header::ACCEPT).is_some_and(|accept| accept.contains("text/html")) {
        return format!(
            "Data that cannot be compressed, as much as the path says:\n\
             \x20 curl -o /dev/null http://{host}/100MB      (B, kB, MB, GB, KiB, MiB, GiB; without a unit: bytes)\n\
             \x20 curl -o /dev/null http://{host}/endless\n\
             Uploads are counted and forgotten:\n\
             \x20 curl -T FILE http://{host}/\n\
             An answer after some seconds:\n\
             \x20 curl http://{host}/delay/2\n"
        )
        .into_response();
    }
    let links: String = ["100kB", "1MB", "10MB", "100MB", "1GB", "endless", "delay/2"]
        .map(|path| format!("<li><a href=\"/{path}\">http://{host}/{path}</a></li>\n"))
        .concat();
    Html(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{host}</title>\n\
         <style>body {{ font: 1rem/1.5 sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }}</style>\n\
         <h1>{host}</h1>\n<p>Data that cannot be compressed, as much as the path says:</p>\n<ul>\n{links}</ul>\n\
         <p>Amounts are in B, kB, MB, GB, KiB, MiB, GiB, or without a unit in bytes. What is sent here with POST or PUT \
         is counted and forgotten: <code>curl -T FILE http://{host}/</code></p>\n</html>\n"
    ))
    .into_response()
}

/// Reads all of `body` and reports its rate, from the request's arrival on.
async fn swallow(body: Body, begun: Instant) -> Response {
    let mut body = pin!(body);
    let mut bytes = 0;
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        match frame {
            Ok(frame) => bytes += frame.data_ref().map_or(0, Bytes::len),
            Err(why) => return wrong(format!("the upload broke off after {bytes} bytes: {why}\n")),
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    format!("{bytes} bytes in {seconds:.3} s: {:.3} Mbit/s\n", bytes as f64 * 8e-6 / seconds.max(1e-9)).into_response()
}

fn data(block: Bytes, left: Option<u64>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::ACCEPT_RANGES, "none"),
    ];
    (headers, Body::new(Data { block, left })).into_response()
}

/// A body that repeats one block, without copying it.
struct Data {
    block: Bytes,
    /// `None` until the client disconnects.
    left: Option<u64>,
}

impl HttpBody for Data {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Data>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        let len = self.left.map_or(BLOCK, |left| left.min(BLOCK as u64) as usize);
        if let Some(left) = &mut self.left {
            *left -= len as u64;
        }
        Poll::Ready((len > 0).then(|| Ok(Frame::data(self.block.slice(..len)))))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }
}

/// The same noise in every run (SplitMix64).
fn block() -> Bytes {
    let word = |index: u64| {
        let mut word = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    };
    Bytes::from((1..=BLOCK as u64 / 8).flat_map(word).collect::<Vec<u8>>())
}

/// An iperf3 server on its usual port. Dropping it stops the server.
#[derive(Debug)]
pub struct Iperf3(Child);

/// Starts iperf3 as a server on `host`, if it is installed. It accepts clients when this returns.
pub fn iperf3(lab: &Lab, host: usize) -> Option<Iperf3> {
    let program = find_program(OsStr::new("iperf3"))?;
    let mut command = lab.command(host, program.as_os_str());
    command.arg("-s").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Iperf3(command.spawn().ok()?);
    let begun = Instant::now();
    // One that cannot start is no reason to wait for ever.
    while !lab.inside(host, || listens(IPERF3)).unwrap_or(true) && begun.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(server)
}

/// Whether a program listens on TCP `port` in the namespace of the calling thread.
fn listens(port: u16) -> bool {
    // "NUMBER: ADDRESS:PORT PEER:PORT STATE", of which 0A is LISTEN.
    let local = format!(":{port:04X}");
    let is = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        matches!(words[..], [_, address, _, "0A"] if address.ends_with(&local))
    };
    let sockets = |table| std::fs::read_to_string(table).unwrap_or_default();
    ["/proc/thread-self/net/tcp6", "/proc/thread-self/net/tcp"].map(sockets).iter().any(|all| all.lines().any(is))
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        // Fails only if it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests;
