//! Delivery of notifications: tests, expiry, retries, WebSocket, and consumers that are slow, dead or hostile.
// Tests wait for real sockets and programs.

use crate::common::{Consumer, Running, Schemas, start, timing_advance, to_this_machine, until};
use futures_util::StreamExt;
use rnis::event::What;
use serde_json::{Value, json};
use services::rnis::{Limits, Options};
use services::unix_now;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

fn fast() -> Options {
    let limits = Limits {
        callback_timeout: Duration::from_millis(300),
        attempts: 3,
        first_retry: Duration::from_millis(20),
        most_failed: 3,
    };
    Options { limits, callbacks: to_this_machine(), ..Options::default() }
}

fn advance(service: &Running, timing_advance: u32) {
    service.feed(What::TimingAdvance { timing_advance });
}

async fn create(service: &Running, body: &Value) -> Value {
    let reply = service.post(body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()
}

async fn is_subscribed(service: &Running, subscription: &Value) -> bool {
    let href = subscription["_links"]["self"]["href"].as_str().expect("it has a link");
    let path = href.strip_prefix(&format!("http://{}", service.address)).expect("it is ours");
    service.send("GET", path, &[], b"").await.status == 200
}

fn in_a_second() -> Value {
    let deadline = unix_now().as_nanos() + 1_000_000_000;
    json!({ "seconds": deadline / 1_000_000_000, "nanoSeconds": deadline % 1_000_000_000 })
}

#[tokio::test]
async fn a_test_notification_is_sent_first() {
    let service = start(fast()).await;
    let consumer = Consumer::start(&[204], Duration::ZERO).await;
    let mut body = timing_advance(&consumer.uri());
    body["requestTestNotification"] = json!(true);
    let created = create(&service, &body).await;
    advance(&service, 3);
    let received = consumer.wait(2).await;
    assert_eq!(received[0]["notificationType"], "TestNotification");
    assert_eq!(received[0]["_links"]["subscription"], created["_links"]["self"]);
    assert_eq!(received[1]["timingAdvance"], 3);
}

#[tokio::test]
async fn an_expired_subscription_is_notified_and_removed() {
    let schemas = Schemas::load();
    let service = start(fast()).await;
    let consumer = Consumer::start(&[204], Duration::ZERO).await;
    let mut body = timing_advance(&consumer.uri());
    body["expiryDeadline"] = in_a_second();
    let created = create(&service, &body).await;
    assert!(is_subscribed(&service, &created).await);
    let received = consumer.wait(1).await;
    schemas.check("ExpiryNotification", &received[0]);
    assert_eq!(received[0]["expiryDeadline"], body["expiryDeadline"]);
    assert!(!is_subscribed(&service, &created).await);
    advance(&service, 3);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(consumer.received().len(), 1);
}

#[tokio::test]
async fn a_failed_notification_is_retried_and_arrives_in_order() {
    let service = start(fast()).await;
    let consumer = Consumer::start(&[500, 302, 204], Duration::ZERO).await;
    create(&service, &timing_advance(&consumer.uri())).await;
    (1..4).for_each(|n| advance(&service, n));
    let received = consumer.wait(3).await;
    let values: Vec<&Value> = received.iter().map(|notification| &notification["timingAdvance"]).collect();
    assert_eq!((values, consumer.attempts()), (vec![&json!(1), &json!(2), &json!(3)], 5));
}

#[tokio::test]
async fn a_dead_callback_ends_the_subscription_and_harms_no_other() {
    let service = start(fast()).await;
    let alive = Consumer::start(&[204], Duration::ZERO).await;
    let dead = create(&service, &timing_advance("http://127.0.0.1:1/")).await;
    let failing = Consumer::start(&[503], Duration::ZERO).await;
    let failed = create(&service, &timing_advance(&failing.uri())).await;
    create(&service, &timing_advance(&alive.uri())).await;
    (1..6).for_each(|n| advance(&service, n));
    assert_eq!(alive.wait(5).await.len(), 5);
    for _ in 0..100 {
        if !is_subscribed(&service, &dead).await && !is_subscribed(&service, &failed).await {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert!(!is_subscribed(&service, &dead).await && !is_subscribed(&service, &failed).await);
    // Three notifications with three attempts each.
    assert_eq!(failing.attempts(), 9);
}

#[tokio::test]
async fn a_slow_callback_times_out_and_loses_the_oldest_notifications() {
    let service = start(fast()).await;
    let slow = Consumer::start(&[204], Duration::from_millis(100)).await;
    let stuck = Consumer::start(&[204], Duration::from_secs(60)).await;
    create(&service, &timing_advance(&slow.uri())).await;
    let ended = create(&service, &timing_advance(&stuck.uri())).await;
    let before = std::time::Instant::now();
    (0..1000).for_each(|n| advance(&service, n));
    assert!(before.elapsed() < Duration::from_secs(1), "the feed waited");
    until(|| slow.received().last().is_some_and(|last| last["timingAdvance"] == 999)).await;
    assert!(slow.received().len() <= 34, "{}", slow.received().len());
    for _ in 0..100 {
        if !is_subscribed(&service, &ended).await {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the stuck callback was not given up");
}

#[tokio::test]
async fn a_deleted_subscription_is_not_notified() {
    let service = start(fast()).await;
    let consumer = Consumer::start(&[204], Duration::ZERO).await;
    let created = create(&service, &timing_advance(&consumer.uri())).await;
    let href = created["_links"]["self"]["href"].as_str().expect("it has a link").to_owned();
    let path = href.strip_prefix(&format!("http://{}", service.address)).expect("it is ours");
    assert_eq!(service.send("DELETE", path, &[], b"").await.status, 204);
    advance(&service, 3);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(consumer.attempts(), 0);
}

fn over_websocket() -> Value {
    let mut body = timing_advance("");
    body.as_object_mut().expect("it is an object").remove("callbackReference");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    body
}

async fn next(
    socket: &mut (impl futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin),
) -> Option<Value> {
    loop {
        match timeout(Duration::from_secs(10), socket.next()).await.expect("there is a message") {
            Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).expect("it is JSON")),
            Some(Ok(Message::Ping(_))) => {}
            _ => return None,
        }
    }
}

#[tokio::test]
async fn notifications_are_delivered_over_websocket() {
    let schemas = Schemas::load();
    let service = start(fast()).await;
    let mut body = over_websocket();
    body["expiryDeadline"] = in_a_second();
    body["requestTestNotification"] = json!(true);
    let created = create(&service, &body).await;
    let config = &created["websockNotifConfig"];
    schemas.check("WebsockNotifConfig", config);
    let uri = config["websocketUri"].as_str().expect("there is a URI");
    assert!(uri.starts_with(&format!("ws://{}/rni/v2/", service.address)), "{uri}");
    // What happens before the consumer connects waits for it.
    advance(&service, 1);
    let (mut first, _) = connect_async(uri).await.expect("it can connect");
    assert_eq!(next(&mut first).await.expect("it is open")["notificationType"], "TestNotification");
    let notification = next(&mut first).await.expect("it is open");
    schemas.check("MeasTaNotification", &notification);
    // A second connection with the secret URI takes over from the first, which is told why.
    let (mut second, _) = connect_async(uri).await.expect("it can connect");
    let why = loop {
        match timeout(Duration::from_secs(10), first.next()).await.expect("it is closed") {
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(Message::Close(Some(why)))) => break why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why.reason.as_str(), "another consumer has connected with this URI");
    advance(&service, 2);
    assert_eq!(next(&mut second).await.expect("it is open")["timingAdvance"], 2);
    let last = next(&mut second).await.expect("it is open");
    schemas.check("ExpiryNotification", &last);
    assert_eq!(next(&mut second).await, None);
    assert!(connect_async(uri).await.is_err());
}

#[tokio::test]
async fn only_one_way_of_delivery_is_chosen_and_returned() {
    let service = start(fast()).await;
    let mut both = over_websocket();
    both["callbackReference"] = json!("http://127.0.0.1:9/");
    let created = create(&service, &both).await;
    assert_eq!((created.get("websockNotifConfig"), &created["callbackReference"]), (None, &both["callbackReference"]));
    // A callback that the operator does not allow leaves the WebSocket.
    both["callbackReference"] = json!("http://192.0.2.1/");
    let created = create(&service, &both).await;
    assert!(created.get("callbackReference").is_none() && created["websockNotifConfig"]["websocketUri"].is_string());
}

#[tokio::test]
async fn a_subscription_moves_from_websocket_to_callback() {
    let service = start(fast()).await;
    let created = create(&service, &over_websocket()).await;
    let uri = created["websockNotifConfig"]["websocketUri"].as_str().expect("there is a URI");
    let (mut socket, _) = connect_async(uri).await.expect("it can connect");
    let consumer = Consumer::start(&[204], Duration::ZERO).await;
    let mut body = timing_advance(&consumer.uri());
    body["_links"] = created["_links"].clone();
    let href = created["_links"]["self"]["href"].as_str().expect("it has a link").to_owned();
    let path = href.strip_prefix(&format!("http://{}", service.address)).expect("it is ours");
    assert_eq!(service.put(path, &body).await.status, 200);
    assert_eq!(next(&mut socket).await, None);
    advance(&service, 4);
    assert_eq!(consumer.wait(1).await[0]["timingAdvance"], 4);
    assert!(connect_async(uri).await.is_err());
}

#[tokio::test]
async fn hostile_websockets_are_closed() {
    use futures_util::SinkExt;
    let service = start(fast()).await;
    let created = create(&service, &over_websocket()).await;
    let uri = created["websockNotifConfig"]["websocketUri"].as_str().expect("there is a URI");
    let (mut socket, _) = connect_async(uri).await.expect("it can connect");
    let _ = socket.send(Message::text("x".repeat(100_000))).await;
    assert_eq!(next(&mut socket).await, None);
    let path = uri.split_once("/rni/v2").expect("it is ours").1;
    let plain = service.get(path).await;
    assert_eq!((plain.status, &plain.headers["content-type"][..]), (400, "application/problem+json"));
    assert_eq!(service.get(&format!("/websocket/{}", "0".repeat(32))).await.status, 404);
}
