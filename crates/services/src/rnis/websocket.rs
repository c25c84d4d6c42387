//! Delivery of notifications over WebSocket (MEC 009 6.12a).

use super::counts::Counters;
use super::outbox::{Next, Outbox};
use axum::body::Body;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::http::Response;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{Instant, interval, timeout};

/// The longest message that a consumer may send; there is nothing for it to say.
const LONGEST_MESSAGE: usize = 4096;
/// Interval between pings; a consumer that answers none of two is gone.
const PING: Duration = Duration::from_secs(20);
/// The longest time that a message may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts a WebSocket and sends the notifications of a subscription on it. An earlier one gets a close frame that says why; only who
/// knows the subscription's secret identifier can take over. `counted` is kept as long as the WebSocket is open.
pub(super) fn upgrade<T: Send + 'static>(
    upgrade: WebSocketUpgrade,
    outbox: Arc<Outbox>,
    counters: Arc<Counters>,
    counted: T,
) -> Response<Body> {
    upgrade.max_message_size(LONGEST_MESSAGE).max_frame_size(LONGEST_MESSAGE).on_upgrade(async move |socket| {
        serve(socket, outbox, &counters).await;
        drop(counted);
    })
}

async fn serve(mut socket: WebSocket, outbox: Arc<Outbox>, counters: &Counters) {
    let generation = outbox.take_over();
    let mut pings = interval(PING);
    let mut heard = Instant::now();
    loop {
        let message = tokio::select! {
            next = outbox.next(generation) => match next {
                Next::Deliver(notification) => Message::text(notification),
                Next::End => break,
            },
            received = socket.recv() => match received {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {
                    heard = Instant::now();
                    continue;
                }
            },
            _ = pings.tick() => {
                if heard.elapsed() > PING * 3 {
                    return;
                }
                Message::Ping(axum::body::Bytes::new())
            }
        };
        let is_notification = matches!(message, Message::Text(_));
        if !matches!(timeout(SEND_TIMEOUT, socket.send(message)).await, Ok(Ok(()))) {
            return;
        }
        counters.delivered.fetch_add(u64::from(is_notification), Relaxed);
    }
    let close = outbox.is_taken_over(generation).then(|| CloseFrame {
        code: close_code::POLICY,
        reason: "another consumer has connected with this URI".into(),
    });
    let _ = timeout(SEND_TIMEOUT, socket.send(Message::Close(close))).await;
}
