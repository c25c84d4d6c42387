//! What clients may not do: reach hosts of the operator's, use names and pages of others, see or take over subscriptions of others, and
//! shut each other out.

use crate::common::{BASE, Consumer, Running, start, timing_advance, with_callbacks};
use rnis::event::What;
use serde_json::{Value, json};
use services::rnis::Options;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{client_async, connect_async};

fn over_websocket() -> Value {
    let mut body = timing_advance("");
    body.as_object_mut().expect("it is an object").remove("callbackReference");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    body
}

async fn subscribe(service: &Running) -> (String, String) {
    let created = service.post(&over_websocket()).await;
    assert_eq!(created.status, 201, "{created:?}");
    let uri = created.json()["websockNotifConfig"]["websocketUri"].as_str().expect("there is a URI").to_owned();
    let (_, path) = created.headers["location"].split_once("/rni/v2").expect("it is ours");
    (format!("{BASE}{path}"), uri)
}

/// Connects from an address of this machine.
async fn connect_from(source: [u8; 4], service: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((source, 0).into()).expect("it is this machine's");
    socket.connect(service).await.expect("the service listens")
}

#[tokio::test]
async fn a_callback_to_this_machine_is_refused_wherever_the_request_comes_from() {
    let victim = Consumer::start(&[204], Duration::ZERO).await;
    let json_type = ("Content-Type", "application/json");
    for options in [
        Options::default(),
        Options { proxies: vec!["127.0.0.0/8".parse().expect("a network")], ..Options::default() },
        Options { root: Some("https://mec.example".into()), ..Options::default() },
    ] {
        let service = start(options).await;
        for headers in [vec![json_type], vec![json_type, ("X-Forwarded-For", "127.0.0.1")]] {
            for uri in [victim.uri(), victim.uri().replace("127.0.0.1", "localhost"), "http://10.0.0.1/".into()] {
                let body = timing_advance(&uri).to_string();
                let path = format!("{BASE}/subscriptions");
                let reply = service.send("POST", &path, &headers, body.as_bytes()).await;
                assert_eq!(reply.status, 403, "{uri}: {reply:?}");
            }
        }
        service.feed(What::TimingAdvance { timing_advance: 1 });
    }
    assert_eq!(victim.attempts(), 0);
}

#[tokio::test]
async fn a_name_of_others_and_a_page_of_others_get_nothing() {
    let options =
        Options { hosts: vec!["lab.example".into()], root: Some("http://mec.example".into()), ..with_callbacks() };
    let service = start(options).await;
    let ask = async |host: &str, rest: &str| {
        let head = format!("GET {BASE}/queries/rab_info HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{rest}\r\n");
        service.raw(head.as_bytes()).await.status
    };
    for host in ["localhost:1", "127.0.0.1", "lab.example", "mec.example:80"] {
        assert_eq!(ask(host, "").await, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:8085", "lab.example.evil", ""] {
        assert_eq!(ask(host, "").await, 403, "{host}");
    }
    let body = over_websocket().to_string();
    let own = format!("http://{}", service.address);
    let post = async |origin: &str| {
        let headers = [("Content-Type", "application/json"), ("Origin", origin)];
        service.send("POST", &format!("{BASE}/subscriptions"), &headers, body.as_bytes()).await.status
    };
    for (origin, status) in [(&own[..], 201), ("http://mec.example", 201), ("http://evil.example", 403), ("null", 403)]
    {
        assert_eq!(post(origin).await, status, "{origin}");
    }
    let (path, uri) = subscribe(&service).await;
    let uri = uri.replace("mec.example", &service.address.to_string());
    let delete = [("Origin", "http://evil.example")];
    assert_eq!(service.send("DELETE", &path, &delete, b"").await.status, 403);
    for (origin, accepted) in [(None, true), (Some(&own[..]), true), (Some("http://evil.example"), false)] {
        let mut request = (&uri[..]).into_client_request().expect("it is a request");
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().expect("a value"));
        }
        assert_eq!(connect_async(request).await.is_ok(), accepted, "{origin:?}");
    }
}

#[tokio::test]
async fn a_subscription_is_its_owners() {
    let service = start(with_callbacks()).await;
    let [one, other] = ["one's secret", "other's secret"].map(|token| service.with_token(token));
    let (path, _) = subscribe(&one).await;
    let (anonymous, _) = subscribe(&service).await;
    let listed = async |client: &Running| {
        let list = client.get("/subscriptions").await.json();
        let links = list["_links"]["subscription"].as_array().expect("it is a list").clone();
        let href = |link: &Value| link["href"].as_str().expect("a link").to_owned();
        links.iter().map(href).collect::<Vec<_>>()
    };
    assert_eq!(listed(&one).await, [format!("http://{}{path}", service.address)]);
    assert!(listed(&other).await.is_empty() && listed(&service).await.is_empty(), "identifiers are secrets");
    for client in [&other, &service] {
        for method in ["GET", "DELETE"] {
            assert_eq!(client.send(method, &path, &[], b"").await.status, 404, "{method}");
        }
        assert_eq!(client.put(&path, &over_websocket()).await.status, 404);
    }
    assert_eq!(one.send("DELETE", &path, &[], b"").await.status, 204);
    // Without a token, it belongs to whoever knows its identifier, which nobody can guess.
    assert_eq!(other.send("GET", &anonymous, &[], b"").await.status, 200);
    let id = anonymous.rsplit_once('/').expect("a path").1;
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_shuts_nobody_out() {
    netio::process::allow_files();
    let service = start(with_callbacks()).await;
    let mut idle = Vec::new();
    for _ in 0..1_100 {
        idle.push(connect_from([127, 0, 0, 2], service.address).await);
    }
    let mut sending = Vec::new();
    for _ in 0..1_100 {
        let mut stream = connect_from([127, 0, 0, 3], service.address).await;
        let request = "POST /rni/v2/subscriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n                       Content-Length: 100\r\n\r\n";
        // Those beyond the limit are reset.
        let _ = stream.write_all(request.as_bytes()).await;
        sending.push(stream);
    }
    let asked = timeout(Duration::from_secs(5), service.get("/queries/rab_info")).await;
    assert_eq!(asked.expect("it is served").status, 200);
    // Its own connections without a request make room for one with a request.
    let mut own = connect_from([127, 0, 0, 2], service.address).await;
    own.write_all(b"GET /rni/v2/queries/rab_info HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it is open");
    let mut answer = [0; 12];
    timeout(Duration::from_secs(5), own.read_exact(&mut answer)).await.expect("it is served").expect("it is open");
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websockets_are_bounded_for_each_client_also_behind_a_proxy() {
    netio::process::allow_files();
    let proxies = vec!["127.0.0.4".parse().expect("a network")];
    let service = start(Options { proxies, ..with_callbacks() }).await;
    let (_, uri) = subscribe(&service).await;
    let open = async |source: [u8; 4], forwarded: Option<&str>| {
        let mut request = (&uri[..]).into_client_request().expect("it is a request");
        if let Some(forwarded) = forwarded {
            request.headers_mut().insert("x-forwarded-for", forwarded.parse().expect("a value"));
        }
        let stream = connect_from(source, service.address).await;
        client_async(request, stream).await.map(|(socket, _)| socket)
    };
    for (source, forwarded, other) in
        [([127, 0, 0, 2], None, None), ([127, 0, 0, 4], Some("192.0.2.1"), Some("192.0.2.2"))]
    {
        let mut sockets = Vec::new();
        let mut refused = None;
        for n in 0..100 {
            let (_, uri) = subscribe(&service).await;
            let mut request = uri.into_client_request().expect("it is a request");
            if let Some(forwarded) = forwarded {
                request.headers_mut().insert("x-forwarded-for", forwarded.parse().expect("a value"));
            }
            let stream = connect_from(source, service.address).await;
            match client_async(request, stream).await {
                Ok((socket, _)) => sockets.push(socket),
                Err(why) => {
                    refused = Some((n, why.to_string()));
                    break;
                }
            }
        }
        assert_eq!(refused, Some((64, "HTTP error: 429 Too Many Requests".to_owned())), "{forwarded:?}");
        assert!(open(if other.is_some() { source } else { [127, 0, 0, 3] }, other).await.is_ok(), "another client");
    }
}
