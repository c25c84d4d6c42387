//! The HTTP server: a bounded number of connections, each with a bounded time to send its request.

use axum::Router;
use axum::body::Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// The address of the client, which the server adds to each request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The longest time for the head of a request, an idle connection included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after the system refused a connection, when file descriptors are exhausted.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Serves at most `most` connections at a time until the future is dropped; further ones wait.
pub(crate) async fn serve(listener: TcpListener, router: Router, most: usize) {
    let connections = Arc::new(Semaphore::new(most));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Peer(peer));
                router.clone().oneshot(request.map(Body::new))
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(64 * 1024)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            // A broken connection concerns its client only.
            let _ = connection.await;
        });
    }
}
