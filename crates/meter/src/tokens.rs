//! Tokens: from a control server of RMBT, or made with the key of the measurement server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netio::socket::{connect_through, own_address};
use rustls::StreamOwned;
use speedtest::http;
use speedtest::rmbt::LONGEST_LINE;
use speedtest::rmbt::control::{self, TestParameters, TestRequest};
use speedtest::rmbt::token::{self, Key};

use crate::fault::Fault;
use crate::tls::{self, Tls, Trust};

/// The variable with a server's token. Arguments are shown to every user of a machine, variables to their owner alone.
pub const TOKEN_VARIABLE: &str = "RANWAY_MEASURE_TOKEN";
/// Time for each address of a control server.
const CONNECT: Duration = Duration::from_secs(5);
/// Time for its answer.
const ANSWER: Duration = Duration::from_secs(15);
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 256 << 10;
/// The longest reason of a server that is shown.
const LONGEST_REASON: usize = 200;

/// The host, the port and the path of the requests of a control server.
#[derive(Debug, PartialEq, Eq)]
struct Url<'a> {
    is_tls: bool,
    host: &'a str,
    port: u16,
    base: String,
}

impl Url<'_> {
    fn parse(text: &str) -> Result<Url<'_>, Fault> {
        let expected = "expected http://HOST[:PORT] or https://HOST[:PORT]";
        let invalid = |what: &str| Fault::Option(format!("invalid URL `{text}`: {what}; {expected}"));
        let (is_tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(invalid("it does not begin with http:// or https://")),
        };
        if rest.bytes().any(|byte| !byte.is_ascii_graphic() || b"@?#".contains(&byte)) {
            return Err(invalid("it has a character that is not valid there"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(|| invalid("`]` is missing"))?;
                (host, if after.is_empty() { None } else { Some(after.strip_prefix(':').unwrap_or("")) })
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            None if is_tls => 443,
            None => 80,
            Some(port) => port.parse().ok().filter(|&port| port > 0).ok_or_else(|| invalid("invalid port"))?,
        };
        if host.is_empty() {
            return Err(invalid("the host is missing"));
        }
        let path = path.trim_end_matches('/');
        // Clients are given the address with this path, or without.
        let base = match path {
            "" => control::BASE.to_owned(),
            path => format!("/{path}/"),
        };
        Ok(Url { is_tls, host, port, base })
    }

    fn connect(&self, interface: Option<&str>) -> Result<TcpStream, Fault> {
        let server = || format!("{}:{}", self.host, self.port);
        let failed = |source: io::Error| Fault::Connect { server: server(), source };
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for address in (self.host, self.port).to_socket_addrs().map_err(failed)? {
            match connect_through(address, interface, CONNECT) {
                Ok(stream) => return Ok(stream),
                Err(why) => refused = why,
            }
        }
        Err(failed(refused))
    }
}

/// Checks the URL of a control server, without asking it.
///
/// # Errors
/// [`Fault::Option`]: what is wrong with it, and what would be valid.
pub fn check_url(url: &str) -> Result<(), Fault> {
    Url::parse(url).map(drop)
}

/// Asks a control server for a test, through an interface if one is given, and returns its token. `trust` tells who may sign its
/// certificate, if the URL begins with `https://`.
///
/// # Errors
/// [`Fault::Option`] if the URL is none; that the server cannot be reached, refuses or does not speak the protocol;
/// [`Fault::Tls`].
pub fn request_token(url: &str, trust: &Trust, interface: Option<&str>) -> Result<String, Fault> {
    let url = Url::parse(url)?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|why| Fault::Protocol(format!("there is no random data: {why}")))?;
    let request = TestRequest { uuid: control::uuid(random), client: "RMBT".into() };
    let body = serde_json::to_string(&request).expect("it has string keys");
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.to_owned() };
    let head = format!(
        "POST {}testRequest HTTP/1.1\r\nHost: {host}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Accept: application/json\r\nConnection: close\r\n\r\n",
        url.base,
        url.port,
        body.len()
    );
    let session = if url.is_tls { Some(Tls::new(trust)?.session(url.host)?) } else { None };
    let socket = url.connect(interface)?;
    let deadline = Instant::now() + ANSWER;
    socket.set_write_timeout(Some(ANSWER))?;
    socket.set_read_timeout(Some(ANSWER))?;
    let request = format!("{head}{body}");
    let answer = match session {
        Some(session) => ask(&mut StreamOwned::new(session, socket.try_clone()?), &socket, &request, deadline),
        None => ask(&mut &socket, &socket, &request, deadline),
    };
    parse(&answer?)
}

/// Sends a request on a socket, and reads until the server ends the connection, or all that it has announced is there.
fn ask(
    stream: &mut (impl Read + Write),
    socket: &TcpStream,
    request: &str,
    deadline: Instant,
) -> Result<Vec<u8>, Fault> {
    stream.write_all(request.as_bytes()).map_err(|error| of_tls(error, true))?;
    let (mut all, mut part) = (Vec::new(), [0; 8192]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Fault::Protocol(format!("the control server has not answered within {} s", ANSWER.as_secs())));
        }
        socket.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(all),
            Ok(length) => all.extend_from_slice(&part[..length]),
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A server's TLS that ends without saying so: whether the answer is complete is seen when it is parsed.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(all),
            Err(error) => return Err(of_tls(error, all.is_empty())),
        }
        if all.len() > LONGEST_ANSWER {
            return Err(Fault::Protocol("the answer of the control server is too long".into()));
        }
        if announced(&all).is_some_and(|length| all.len() >= length) {
            return Ok(all);
        }
    }
}

/// Tells errors of TLS from others.
fn of_tls(error: io::Error, is_new: bool) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(why) => Fault::Tls(tls::explain(why, is_new)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => Fault::Closed("before it answered"),
        None => error.into(),
    }
}

/// The length of an answer with its head, if its head has one.
fn announced(answer: &[u8]) -> Option<usize> {
    let (head, used) = http::parse_response(answer).ok()??;
    let length: usize = head.fields.get("content-length")?.parse().ok()?;
    used.checked_add(length)
}

/// Returns the token of an answer.
fn parse(answer: &[u8]) -> Result<String, Fault> {
    let no_control = || Fault::Protocol("the server there is no control server of RMBT".into());
    let (head, used) = http::parse_response(answer).ok().flatten().ok_or_else(no_control)?;
    let reason = |text: &str| text.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect::<String>();
    let is_chunked = head.fields.has("transfer-encoding", "chunked");
    let body = if is_chunked { unchunked(&answer[used..]) } else { Some(answer[used..].to_vec()) };
    let parameters = body.and_then(|body| serde_json::from_slice::<TestParameters>(&body).ok());
    if let Some(why) = parameters.as_ref().and_then(|parameters| parameters.error.first()) {
        return Err(Fault::Refused(reason(why)));
    }
    if head.status != 200 {
        let later = head.retry_after().map(|seconds| format!("; try again in {seconds} s")).unwrap_or_default();
        return Err(Fault::Refused(format!("status {}{later}", head.status)));
    }
    let token = parameters.ok_or_else(no_control)?.test_token;
    let is_token = !token.is_empty() && token.len() < LONGEST_LINE - 16 && token.bytes().all(|b| b.is_ascii_graphic());
    if is_token { Ok(token) } else { Err(Fault::Protocol("the control server sent no token".into())) }
}

/// Joins the chunks of a body (RFC 9112, section 7.1); `None` if it is not complete.
fn unchunked(mut input: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = input.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&input[..end]).ok()?;
        let length = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        input = &input[end + 2..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(input.get(..length)?);
        input = input.get(length..)?.strip_prefix(b"\r\n")?;
    }
}

/// Returns the first key of a file's text.
///
/// # Errors
/// What is wrong with the file.
pub fn first_key(keys: &str) -> Result<Key, String> {
    let keys = Key::parse_file(keys).map_err(|(line, why)| match line {
        0 => why.to_owned(),
        line => format!("line {line}: {why}"),
    })?;
    Ok(keys.into_iter().next().expect("a file without a key is an error"))
}

/// Makes a token with a key, for the address from which this host reaches `server`, through an interface if one is given.
///
/// # Errors
/// There is no random data, or no way to the server.
pub fn make_token(key: &Key, server: SocketAddr, interface: Option<&str>) -> Result<String, Fault> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|why| Fault::Protocol(format!("there is no random data: {why}")))?;
    let unreached = |source| Fault::Connect { server: server.to_string(), source };
    let own = own_address(server, interface).map_err(unreached)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(token::make(key, &control::uuid(random), own, now as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_a_port_and_maybe_a_path() {
        let url = |host, port, base: &str| Url { is_tls: false, host, port, base: base.to_owned() };
        let base = "/RMBTControlServer/";
        for (text, expected) in [
            ("http://example.org", url("example.org", 80, base)),
            ("http://192.0.2.1:5231/", url("192.0.2.1", 5231, base)),
            ("http://[2001:db8::1]:8080", url("2001:db8::1", 8080, base)),
            ("http://[::1]/RMBTControlServer", url("::1", 80, base)),
            ("http://h/other/place/", url("h", 80, "/other/place/")),
            ("https://h", Url { is_tls: true, ..url("h", 443, base) }),
            ("https://h:5231", Url { is_tls: true, ..url("h", 5231, base) }),
        ] {
            assert_eq!(Url::parse(text).expect("it is valid"), expected);
        }
        for (text, why) in [
            ("example.org", "it does not begin with http:// or https://"),
            ("wss://example.org", "it does not begin with http:// or https://"),
            ("http://", "the host is missing"),
            ("http://h:0", "invalid port"),
            ("http://h:99999", "invalid port"),
            ("http://[::1", "`]` is missing"),
            ("http://u@h", "it has a character that is not valid there"),
            ("http://h/a\r\nHost: b", "it has a character that is not valid there"),
        ] {
            let expected = format!("invalid URL `{text}`: {why}; expected http://HOST[:PORT] or https://HOST[:PORT]");
            assert_eq!(check_url(text).expect_err("it is none").to_string(), expected);
        }
    }

    fn answered(head: &str, body: &str) -> Result<String, String> {
        parse(format!("HTTP/1.1 {head}\r\n\r\n{body}").as_bytes()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_answer_is_a_token_or_one_line_that_tells_why_not() {
        let token = "5f8f8f8f-0000-4000-8000-000000000000_1500000000_abc=";
        let body = format!(r#"{{"test_token":"{token}","test_duration":"7","error":[]}}"#);
        assert_eq!(answered("200 OK\r\nContent-Type: application/json", &body), Ok(token.to_owned()));
        let (first, second) = body.split_at(20);
        let chunked = format!("14\r\n{first}\r\n{:x};x=y\r\n{second}\r\n0\r\n\r\n", second.len());
        assert_eq!(answered("200 OK\r\nTransfer-Encoding: chunked", &chunked), Ok(token.to_owned()));
        let why = |head, body| answered(head, body).expect_err("there is no token");
        let refused = "the server refuses the measurement: ";
        assert_eq!(why("200 OK", r#"{"error":["too\nbusy"]}"#), format!("{refused}toobusy"));
        assert_eq!(why("503 No\r\nRetry-After: 5", ""), format!("{refused}status 503; try again in 5 s"));
        assert_eq!(why("200 OK", "<html>"), "the server there is no control server of RMBT");
        assert_eq!(why("200 OK", "{}"), "the control server sent no token");
        assert_eq!(why("200 OK", r#"{"test_token":"a b"}"#), "the control server sent no token");
        assert_eq!(
            parse(b"SSH-2.0\r\n").expect_err("no HTTP").to_string(),
            "the server there is no control server of RMBT"
        );
    }

    #[test]
    fn any_answer_is_a_token_or_an_error() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = (parse(bytes), announced(bytes));
            if let Some(body) = unchunked(bytes) {
                assert!(body.len() < bytes.len());
            }
            let body = [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], bytes].concat();
            assert!(parse(&body).is_ok_and(|token| !token.contains(' ')) || parse(&body).is_err());
        });
    }

    #[test]
    fn a_token_made_with_a_servers_key_is_valid_there() {
        let server = ([127, 0, 0, 1], 5231).into();
        let text = "# keys\n0123456789abcdef label\nfedcba9876543210\n";
        let made = make_token(&first_key(text).expect("it has two"), server, None).expect("it is made");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
        let keys = [Key::new(b"0123456789abcdef")];
        assert!(token::check(&made, &keys, [127, 0, 0, 1].into(), now, true).is_ok());
        let why = |text| first_key(text).expect_err("no key");
        assert_eq!(why("ok\n"), "line 1: a key has at least 8 characters, as written by: openssl rand -hex 16");
        assert_eq!(why(""), "it has no key; write one with: openssl rand -hex 16");
    }
}
