//! Heads of HTTP/1.1 messages, as far as upgrades and the small control server need them.

use crate::websocket;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The longest head of a message, in bytes.
pub const LONGEST_HEAD: usize = 8 * 1024;
/// The most header fields.
const MOST_FIELDS: usize = 64;

/// A head that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is longer than [`LONGEST_HEAD`], or has too many fields.
    #[error("the head of the message is too long")]
    TooLong,
    /// It does not follow the grammar.
    #[error("the head of the message is not HTTP/1.1")]
    Malformed,
}

/// Header fields: names in lower case; values of equal names joined by commas (RFC 9110, section 5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    fn parse(fields: &[httparse::Header]) -> Fields {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for field in fields {
            let value = String::from_utf8_lossy(field.value).trim().to_owned();
            let known = all.entry(field.name.to_ascii_lowercase());
            known.and_modify(|known| known.push_str(&format!(", {value}"))).or_insert(value);
        }
        Fields(all)
    }

    /// Returns the value of a field, whose name is given in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns whether a list has an item, whatever its case.
    pub fn has(&self, name: &str, item: &str) -> bool {
        self.get(name).is_some_and(|list| list.split(',').any(|part| part.trim().eq_ignore_ascii_case(item)))
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The header fields.
    pub fields: Fields,
}

/// What a request wants its connection to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// RMBT, framing as if greeted first.
    Rmbt,
    /// WebSocket, with the value of `Sec-WebSocket-Accept` and the subprotocols that the client offers.
    WebSocket {
        /// What proves that the server has read the request.
        accept: String,
        /// The subprotocols.
        protocols: Vec<String>,
    },
}

/// Parses the head of a request at the start of `input`. Returns it and its length, or `None` if it is not complete.
///
/// # Errors
/// What is wrong with it.
pub fn parse_request(input: &[u8]) -> Result<Option<(Request, usize)>, Fault> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(input) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if input.len() < LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooLong),
        Err(_) => return Err(Fault::Malformed),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else { return Err(Fault::Malformed) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let (method, path, fields) = (method.to_owned(), path.to_owned(), Fields::parse(request.headers));
    Ok(Some((Request { method, path, query, fields }, length)))
}

impl Request {
    /// Returns the first value of a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns what the connection shall become, if the request asks for that in a valid way.
    pub fn upgrade(&self) -> Option<Upgrade> {
        if self.method != "GET" || !self.fields.has("connection", "upgrade") {
            return None;
        }
        if self.fields.has("upgrade", crate::rmbt::UPGRADE) {
            return Some(Upgrade::Rmbt);
        }
        let is_13 = self.fields.get("sec-websocket-version") == Some("13");
        let key = self.fields.get("sec-websocket-key").filter(|key| key.len() == 24)?;
        let protocols = self.fields.get("sec-websocket-protocol").unwrap_or_default();
        let protocols = protocols.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned);
        let protocols = protocols.take(16).collect();
        let accept = websocket::accept(key);
        (is_13 && self.fields.has("upgrade", "websocket")).then_some(Upgrade::WebSocket { accept, protocols })
    }
}

/// Returns the response that upgrades a connection, with the subprotocol that the server has chosen.
pub fn switch(upgrade: &Upgrade, protocol: Option<&str>) -> String {
    let mut head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n".to_owned();
    // Writing to a string does not fail.
    let _ = match upgrade {
        Upgrade::Rmbt => {
            write!(head, "Upgrade: {}\r\nRMBT-Version: {}\r\n", crate::rmbt::UPGRADE, crate::rmbt::VERSION)
        }
        Upgrade::WebSocket { accept, .. } => write!(head, "Upgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n"),
    };
    if let Some(protocol) = protocol {
        let _ = write!(head, "Sec-WebSocket-Protocol: {protocol}\r\n");
    }
    head.push_str("\r\n");
    head
}

/// Returns a complete response, after which the connection ends. `retry` is the value of `Retry-After` in seconds.
pub fn respond(status: (u16, &str), media: &str, body: &str, retry: Option<u64>) -> String {
    let (code, reason) = status;
    let retry = retry.map_or_else(String::new, |seconds| format!("Retry-After: {seconds}\r\n"));
    format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n{retry}Cache-Control: no-store\r\n\
         Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: Content-Type\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the request of a client that upgrades to RMBT.
pub fn request_rmbt(host: &str, path: &str) -> String {
    let (name, version) = (crate::rmbt::UPGRADE, crate::rmbt::VERSION);
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {name}\r\nRMBT-Version: {version}\r\n\r\n"
    )
}

/// Returns the request of a client that upgrades to WebSocket. `nonce` is random; the answer has to have
/// [`websocket::accept`] of [`websocket_key`].
pub fn request_websocket(host: &str, target: &str, nonce: [u8; 16], protocol: Option<&str>) -> String {
    let key = websocket_key(nonce);
    let protocol = protocol.map_or_else(String::new, |name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
    format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {key}\r\n{protocol}\r\n"
    )
}

/// Returns the key that a client sends for a nonce.
pub fn websocket_key(nonce: [u8; 16]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(nonce)
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub fields: Fields,
}

/// Parses the head of a response at the start of `input`. Returns it and its length, or `None` if it is not complete.
///
/// # Errors
/// What is wrong with it.
pub fn parse_response(input: &[u8]) -> Result<Option<(Response, usize)>, Fault> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(input) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if input.len() < LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooLong),
        Err(_) => return Err(Fault::Malformed),
    };
    let status = response.code.ok_or(Fault::Malformed)?;
    Ok(Some((Response { status, fields: Fields::parse(response.headers) }, length)))
}

impl Response {
    /// Whether the connection has become what was asked for. `accept` is what a WebSocket server has to answer.
    pub fn is_upgraded(&self, accept: Option<&str>) -> bool {
        let accepted = accept.is_none_or(|accept| self.fields.get("sec-websocket-accept") == Some(accept));
        self.status == 101 && accepted
    }

    /// Returns after how many seconds the server wants to be asked again.
    pub fn retry_after(&self) -> Option<u64> {
        self.fields.get("retry-after")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        parse_request(text.as_bytes()).expect("it is valid").expect("it is complete").0
    }

    #[test]
    fn the_upgrade_of_the_reference_client_is_rmbt() {
        let text = request_rmbt("test.example", "/rmbt");
        let read = request(&text);
        assert_eq!((read.path.as_str(), read.upgrade()), ("/rmbt", Some(Upgrade::Rmbt)));
        let reply = switch(&Upgrade::Rmbt, None);
        assert!(reply.contains("\r\nUpgrade: RMBT\r\n") && reply.ends_with("\r\n\r\n"), "{reply}");
    }

    #[test]
    fn a_websocket_is_upgraded_on_both_sides() {
        let nonce = *b"the sample nonce";
        let text = request_websocket("h", "/ndt/v7/download?mid=1%202&x=", nonce, Some("net.measurementlab.ndt.v7"));
        let read = request(&text);
        assert_eq!((read.parameter("mid"), read.parameter("x"), read.parameter("y")), (Some("1 2"), Some(""), None));
        let upgrade = read.upgrade().expect("it is one");
        // The example of RFC 6455, section 1.3.
        let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned();
        let protocols = vec!["net.measurementlab.ndt.v7".to_owned()];
        assert_eq!(upgrade, Upgrade::WebSocket { accept: accept.clone(), protocols });
        let reply = switch(&upgrade, Some("net.measurementlab.ndt.v7"));
        let (response, length) = parse_response(reply.as_bytes()).expect("valid").expect("complete");
        assert_eq!((length, response.is_upgraded(Some(&accept))), (reply.len(), true));
        assert!(!response.is_upgraded(Some("another")));
    }

    #[test]
    fn a_request_without_all_of_an_upgrade_is_none() {
        let all = "GET / HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        assert!(request(all).upgrade().is_some());
        for (from, to) in [("GET", "POST"), ("Upgrade\r", "x\r"), ("13", "8"), ("==", ""), (": websocket", ": h2c")] {
            assert_eq!(request(&all.replacen(from, to, 1)).upgrade(), None, "{from}");
        }
    }

    #[test]
    fn a_head_has_at_most_8_kib() {
        let head = |n: usize| format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(n - 23));
        assert_eq!(head(LONGEST_HEAD).len(), LONGEST_HEAD);
        assert!(parse_request(head(LONGEST_HEAD).as_bytes()).is_ok_and(|head| head.is_some()));
        assert_eq!(parse_request(head(LONGEST_HEAD + 1).as_bytes()), Err(Fault::TooLong));
        assert_eq!(parse_request(&head(LONGEST_HEAD + 9).as_bytes()[..LONGEST_HEAD]), Err(Fault::TooLong));
        assert_eq!(parse_request(b"GET / HTTP/1.1\r\nX: "), Ok(None));
        assert_eq!(parse_request(b"\x16\x03\x01\x02\0"), Err(Fault::Malformed));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: 1\r\n".repeat(65));
        assert_eq!(parse_request(many.as_bytes()), Err(Fault::TooLong));
    }

    #[test]
    fn a_response_that_refuses_says_when_to_come_back() {
        let text = respond((503, "Service Unavailable"), "text/plain", "busy\n", Some(5));
        let (response, length) = parse_response(text.as_bytes()).expect("valid").expect("complete");
        assert_eq!((response.status, response.retry_after(), &text[length..]), (503, Some(5), "busy\n"));
    }
}
