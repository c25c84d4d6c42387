//! The HTTP server: a bounded number of connections, in all and of one client, each with a bounded time to send its request and to
//! take the answer.

mod gate;
mod host;
mod network;
mod site;

pub(crate) use gate::{Busy, Most};
pub use host::parse_host;
pub(crate) use host::{Hosts, is_own_page, name as host_name};
pub use network::Network;
pub(crate) use network::host;
pub(crate) use site::Site;

use axum::Router;
use axum::body::Body;
use gate::Gate;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};
use tower::ServiceExt;

/// The client, which the server adds to each request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Keeps the connection counted, after it has become a WebSocket, too.
    pub(crate) busy: Busy,
}

/// The longest time for the head of a request, an idle connection included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time for which a client may take nothing of its answer.
const TAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that waits unsent in the kernel for a client, in bytes. More would only make the data of a slow client older.
const UNSENT: u32 = 64 << 10;
/// Pause after the system refused a connection, when file descriptors are exhausted.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Returns why an address cannot be listened on, and the option that chooses another one if that helps.
pub(crate) fn refused(why: &io::Error, option: &str) -> String {
    match why.kind() {
        io::ErrorKind::AddrInUse => format!("{why}: choose another address with {option}"),
        _ => why.to_string(),
    }
}

/// Serves connections until the future is dropped. Those for which there is no room are reset. Clients in the networks of `proxies` are
/// reverse proxies, whose connections only count in all.
pub(crate) async fn serve(listener: TcpListener, router: Router, most: Most, proxies: Vec<Network>) {
    let gate = Gate::new(most);
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        let is_shared = proxies.iter().any(|network| network.contains(peer.ip()));
        let Some(visitor) = gate.enter(peer.ip(), is_shared) else {
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            continue;
        };
        let _ = netio::sys::set_notsent_lowat(stream.as_fd(), UNSENT);
        let router = router.clone();
        tokio::spawn(async move {
            let of_requests = visitor.clone();
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                let busy = of_requests.occupy();
                request.extensions_mut().insert(Peer { address: peer, busy: busy.clone() });
                let answer = router.clone().oneshot(request.map(Body::new));
                async move { answer.await.map(|answer| answer.map(|body| Kept { body, _busy: busy })) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(64 * 1024)
                .serve_connection(TokioIo::new(Patient { stream, stalled: None }), service)
                .with_upgrades();
            // A broken connection concerns its client only.
            tokio::select! {
                _ = connection => {}
                () = visitor.evicted() => {}
            }
            visitor.detach();
        });
    }
}

/// The body of an answer, which keeps its connection busy until it is sent.
struct Kept {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Kept {
    type Data = <Body as hyper::body::Body>::Data;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// A connection that breaks if its client takes nothing for [`TAKE_TIMEOUT`].
struct Patient {
    stream: TcpStream,
    /// Set while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn bounded<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(TAKE_TIMEOUT)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
