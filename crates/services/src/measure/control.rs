//! The small control server: tokens for clients of RMBT, and their results.

use super::app::App;
use super::client::{Client, Fault};
use super::error::fill_random;
use super::limits::{RETRY_AFTER, truncated};
use super::stream::Stream;
use crate::clock::unix_now;
use axum::http::uri::Authority;
use serde::Serialize;
use speedtest::http::{self, Request};
use speedtest::rmbt::control::{
    BASE, ClientResult, LONGEST_BODY, Setting, Settings, TestParameters, TestRequest, uuid,
};
use speedtest::rmbt::token;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

/// A body that is no longer has to arrive as soon as a token.
const SMALL_BODY: usize = 16 * 1024;
/// The longest time that a longer body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A result is taken so many seconds after the start of its test.
const RESULT_SECONDS: i64 = 900;
/// The pings that clients are asked for.
const PINGS: u32 = 10;

const OK: (u16, &str) = (200, "OK");

/// What a client has measured, as it is stored.
#[derive(Debug, Serialize)]
struct StoredResult<'a> {
    time: f64,
    kind: &'static str,
    test: &'a str,
    client: String,
    #[serde(flatten)]
    result: &'a ClientResult,
}

/// Answers a request whose body begins with `body`.
pub(super) async fn answer(
    app: &App,
    stream: &mut Stream,
    request: &Request,
    body: Vec<u8>,
    client: Client,
) -> Result<String, Fault> {
    let refuse = |status, text: &str| Ok(http::respond(status, "text/plain", &format!("{text}\n"), None));
    match request.method.as_str() {
        "POST" => {}
        "OPTIONS" => return Ok(http::respond((204, "No Content"), "text/plain", "", None)),
        _ => return refuse((405, "Method Not Allowed"), "the method is POST"),
    }
    if let Err(busy) = app.gate.request(client.peer.ip()) {
        app.counters.refuse(busy);
        let text = error(&busy.to_string());
        return Ok(http::respond((503, "Service Unavailable"), "application/json", &text, Some(RETRY_AFTER)));
    }
    let length = request.fields.get("content-length").and_then(|length| length.parse::<usize>().ok());
    let Some(length) = length else { return refuse((411, "Length Required"), "the length of the body is missing") };
    if length > LONGEST_BODY {
        return refuse((413, "Content Too Large"), "the body is longer than 1 MiB");
    }
    // Small bodies wait for nobody; those of results have a bound in all.
    let (_permits, deadline) = if length <= SMALL_BODY {
        (None, client.deadline)
    } else {
        let permits = app.gate.body(client.peer.ip()).zip(app.bodies.try_acquire().ok());
        let Some(permits) = permits else {
            let text = error("busy, retry later");
            return Ok(http::respond((503, "Service Unavailable"), "application/json", &text, Some(RETRY_AFTER)));
        };
        (Some(permits), Instant::now() + BODY_TIMEOUT)
    };
    let body = read_body(stream, body, length, deadline).await?;
    let text = match request.path.strip_prefix(BASE) {
        Some("settings") => settings(),
        Some("testRequest") => test_request(app, stream, request, &body, client),
        Some("result") => result(app, &body, client),
        _ => return refuse((404, "Not Found"), "expected settings, testRequest or result"),
    };
    Ok(http::respond(OK, "application/json", &text, None))
}

async fn read_body(stream: &mut Stream, mut body: Vec<u8>, length: usize, deadline: Instant) -> Result<Vec<u8>, Fault> {
    body.truncate(length);
    let mut part = [0; 8192];
    while body.len() < length {
        let room = (length - body.len()).min(part.len());
        let read = timeout_at(deadline, stream.read(&mut part[..room])).await.map_err(|_| Fault::Timeout)??;
        if read == 0 {
            return Err(Fault::Broken);
        }
        body.extend_from_slice(&part[..read]);
    }
    Ok(body)
}

/// Returns the answer to a request that fails. Clients show the text.
fn error(why: &str) -> String {
    serde_json::json!({ "error": [why] }).to_string()
}

fn new_uuid() -> Option<String> {
    let mut random = [0; 16];
    fill_random(&mut random).ok().map(|()| uuid(random))
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| error("the answer cannot be written"))
}

fn settings() -> String {
    match new_uuid() {
        Some(uuid) => to_json(&Settings { settings: vec![Setting { uuid }], error: Vec::new() }),
        None => error("no random numbers"),
    }
}

fn test_request(app: &App, stream: &Stream, request: &Request, body: &[u8], client: Client) -> String {
    let (Some(control), Some(test)) = (&app.control, new_uuid()) else { return error("no tests are possible") };
    let Ok(wanted) = serde_json::from_slice::<TestRequest>(body) else {
        return error("the body is not a request for a test");
    };
    let keys = app.keys();
    let Some(key) = keys.0.first() else { return error("no tests are possible") };
    let Ok(local) = stream.socket().local_addr() else { return error("no tests are possible") };
    let address = control.name.clone().or_else(|| host(request)).unwrap_or_else(|| local.ip().to_string());
    let kind = if wanted.client == "RMBTws" { "RMBTws" } else { "RMBThttp" };
    to_json(&TestParameters {
        test_token: token::make(key, &test, client.peer.ip(), unix_now().as_secs_f64() as i64),
        test_uuid: test,
        test_server_address: address,
        test_server_port: local.port(),
        test_server_encryption: stream.is_tls(),
        test_server_type: kind.into(),
        test_duration: control.seconds,
        test_numthreads: control.flows,
        test_numpings: PINGS,
        test_wait: 0,
        client_remote_ip: client.peer.ip().to_canonical().to_string(),
        error: Vec::new(),
    })
}

/// Returns the host that the client has named, without the port.
fn host(request: &Request) -> Option<String> {
    let named = request.fields.get("host").filter(|host| host.len() < 256 && !host.contains('@'))?;
    let authority: Authority = named.parse().ok()?;
    let host = authority.host();
    // Clients want an IPv6 address without its brackets.
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_name = bare.parse::<IpAddr>().is_ok()
        || bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    (is_name && !bare.is_empty()).then(|| bare.to_owned())
}

fn result(app: &App, body: &[u8], client: Client) -> String {
    let Ok(result) = ClientResult::parse(body) else { return error("the body is not a result") };
    // The token was valid when the test started. A result is worth no more than its client; it is stored beside what the server saw.
    let now = unix_now().as_secs_f64() as i64;
    let token = (0..=RESULT_SECONDS / token::LATE).find_map(|age| {
        let then = now - age * token::LATE;
        token::check(&result.test_token, &app.keys().0, client.peer.ip(), then, false).ok()
    });
    let Some(token) = token else { return error("the token of the result is not valid") };
    app.results.store(&StoredResult {
        time: unix_now().as_secs_f64(),
        kind: "client",
        test: &token.test,
        client: truncated(client.peer.ip()),
        result: &result,
    });
    serde_json::json!({ "error": [] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use speedtest::http::parse_request;

    #[test]
    fn the_host_of_a_request_is_a_name_or_an_address() {
        for (field, expected) in [
            ("test.example:8080", Some("test.example")),
            ("127.0.0.1:443", Some("127.0.0.1")),
            ("[::1]:443", Some("::1")),
            ("user@host", None),
            ("a b", None),
            ("", None),
            ("x<script>", None),
        ] {
            let text = format!("POST / HTTP/1.1\r\nHost: {field}\r\n\r\n");
            let request = parse_request(text.as_bytes()).expect("valid").expect("complete").0;
            assert_eq!(host(&request).as_deref(), expected, "{field}");
        }
    }
}
