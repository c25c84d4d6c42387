use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

fn web() -> (Web, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    (Web::start(vec![listener]).unwrap(), at)
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends `request` and reads until the server closes: the head, and the body's bytes.
fn ask(at: SocketAddr, request: &[u8]) -> (String, Vec<u8>) {
    let mut stream = connect(at);
    stream.write_all(request).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let body = all.split_off(end);
    (String::from_utf8(all).unwrap(), body)
}

fn get(at: SocketAddr, path: &str) -> (String, Vec<u8>) {
    ask(at, format!("GET {path} HTTP/1.1\r\nHost: net\r\nConnection: close\r\n\r\n").as_bytes())
}

#[test]
fn as_many_bytes_come_as_the_path_says() {
    let (_web, at) = web();
    for (path, bytes) in
        [("/0", 0), ("/1", 1), ("/5000000", 5_000_000), ("/3kB", 3_000), ("/2MiB", 2 << 20), ("/1.5MB", 1_500_000)]
    {
        let (head, body) = get(at, path);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains(&format!("content-length: {bytes}\r\n")), "{head}");
        assert_eq!(body.len(), bytes, "{path}");
    }
}

#[test]
fn the_data_does_not_repeat_within_a_compressors_window() {
    let noise = block();
    assert_eq!(noise.len(), BLOCK);
    let words: std::collections::BTreeSet<_> = noise.chunks(8).collect();
    assert_eq!(words.len(), BLOCK / 8);
    let ones: u32 = noise.iter().map(|byte| byte.count_ones()).sum();
    assert!((f64::from(ones) / BLOCK as f64 - 4.0).abs() < 0.01, "{ones}");
}

#[test]
fn head_tells_the_length_and_sends_nothing() {
    let (_web, at) = web();
    let (head, body) = ask(at, b"HEAD /1GB HTTP/1.1\r\nHost: net\r\nConnection: close\r\n\r\n");
    assert!(head.contains("content-length: 1000000000\r\n"), "{head}");
    assert!(body.is_empty());
}

#[test]
fn a_range_is_answered_with_the_whole() {
    let (_web, at) = web();
    let (head, body) = ask(at, b"GET /1000 HTTP/1.1\r\nHost: net\r\nRange: bytes=5-9\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("accept-ranges: none"), "{head}");
    assert_eq!(body.len(), 1000);
}

#[test]
fn the_front_page_calls_the_server_as_the_client_does() {
    let (_web, at) = web();
    let (_, body) = get(at, "/");
    assert!(String::from_utf8(body).unwrap().contains("http://net/100MB"));
    let html = b"GET / HTTP/1.1\r\nHost: net:81\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
    let (head, body) = ask(at, html);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("<a href=\"/100MB\">http://net:81/100MB</a>"));
    let hostile = b"GET / HTTP/1.1\r\nHost: <script>\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
    assert!(!String::from_utf8(ask(at, hostile).1).unwrap().contains("<script>"));
}

#[test]
fn an_upload_is_counted() {
    let (_web, at) = web();
    for method in ["POST /", "PUT /any/path"] {
        let mut request =
            format!("{method} HTTP/1.1\r\nHost: net\r\nContent-Length: 3000000\r\nConnection: close\r\n\r\n")
                .into_bytes();
        request.resize(request.len() + 3_000_000, 7);
        let (head, body) = ask(at, &request);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let body = String::from_utf8(body).unwrap();
        assert!(body.starts_with("3000000 bytes in ") && body.ends_with(" Mbit/s\n"), "{body}");
        assert_eq!(body.lines().count(), 1);
    }
    let chunked = b"POST / HTTP/1.1\r\nHost: net\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        5\r\nhello\r\n0\r\n\r\n";
    assert!(ask(at, chunked).1.starts_with(b"5 bytes in "));
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let (_web, at) = web();
    for (path, status, says) in [
        ("/10XB", 400, "`XB` is not a unit of an amount of data: use one of GiB, GB, MiB, MB, KiB, kB, B, or bytes"),
        ("/1..5MB", 400, "needs a number and a unit"),
        ("/1001GB", 400, "up to 1000GB"),
        ("/99999999999999999999999999", 400, "up to 1000GB"),
        ("/1e300GB", 400, "out of the range"),
        ("/delay/61", 400, "from 0 to 60"),
        ("/delay/NaN", 400, "from 0 to 60"),
        ("/delay/-1", 400, "from 0 to 60"),
        ("/favicon.ico", 404, "try /100MB"),
        ("/../etc/passwd", 404, "try /100MB"),
    ] {
        let (head, body) = get(at, path);
        let body = String::from_utf8(body).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
        assert!(body.contains(says), "{path}: {body}");
        assert_eq!(body.lines().count(), 1, "{path}: {body}");
    }
    let (head, _) = ask(at, b"DELETE / HTTP/1.1\r\nHost: net\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
}

#[test]
fn a_delayed_answer_comes_when_it_should() {
    let (_web, at) = web();
    let begun = Instant::now();
    let (head, _) = get(at, "/delay/0.3");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn many_are_served_at_once() {
    let (_web, at) = web();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..20).map(|_| scope.spawn(|| get(at, "/delay/0.5"))).collect();
        let fetching: Vec<_> = (0..20).map(|_| scope.spawn(|| get(at, "/1MB").1.len())).collect();
        assert!(waiting.into_iter().all(|one| one.join().unwrap().0.starts_with("HTTP/1.1 200")));
        assert!(fetching.into_iter().all(|one| one.join().unwrap() == 1_000_000));
    });
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn one_connection_can_ask_again() {
    let (_web, at) = web();
    let twice = b"GET /5 HTTP/1.1\r\nHost: net\r\n\r\nGET /7 HTTP/1.1\r\nHost: net\r\nConnection: close\r\n\r\n";
    let (_, rest) = ask(at, twice);
    let rest = String::from_utf8_lossy(&rest[5..]).into_owned();
    assert!(rest.starts_with("HTTP/1.1 200") && rest.contains("content-length: 7"), "{rest}");
}

#[test]
fn dropped_while_transfers_go_on_it_is_gone_at_once() {
    let (web, at) = web();
    let mut open = Vec::new();
    for request in ["GET /endless", "GET /100GB", "GET /delay/60", "POST /"] {
        let mut stream = connect(at);
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: net\r\nContent-Length: 9\r\n\r\n").as_bytes()).unwrap();
        if request.contains("GET /e") {
            stream.read_exact(&mut vec![0; 5_000_000]).unwrap();
        }
        open.push(stream);
    }
    let begun = Instant::now();
    drop(web);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(TcpStream::connect(at).is_err(), "nobody listens any more");
}

#[test]
fn garbage_and_half_requests_disturb_nobody() {
    let (_web, at) = web();
    let mut open = Vec::new();
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01"[..], b"GET /1MB HT", b"", b"\r\n\r\n\r\n", b"GET http://[::::/ HTTP/1.1\r\n\r\n"]
    {
        let mut stream = connect(at);
        stream.write_all(bytes).unwrap();
        open.push(stream);
    }
    // One that asks for much and reads nothing.
    let mut slow = connect(at);
    slow.write_all(b"GET /endless HTTP/1.1\r\nHost: net\r\n\r\n").unwrap();
    // A head without end: refused, not kept.
    let mut stream = connect(at);
    let _ = stream.write_all(&[b"GET / HTTP/1.1\r\nLong: ".as_slice(), &vec![b'a'; 1 << 20]].concat());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&said));
    assert_eq!(get(at, "/1MB").1.len(), 1_000_000);
}

#[test]
fn more_connections_than_there_are_places_wait_for_one() {
    let (_web, at) = web();
    let idle: Vec<_> = (0..CONNECTIONS - 1).map(|_| connect(at)).collect();
    assert_eq!(get(at, "/9").1.len(), 9, "there is one place left");
    let last = connect(at);
    let mut waiting = connect(at);
    waiting.write_all(b"GET /9 HTTP/1.1\r\nHost: net\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(waiting.read(&mut [0; 100]).is_err(), "nobody serves it yet");
    drop((idle, last));
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(waiting.read(&mut [0; 100]).unwrap() > 0);
}

#[test]
fn root_it_answers_in_the_namespace_of_its_listeners_alone() {
    if !crate::lab::may() {
        return;
    }
    let lab = Lab::new(&["server".to_owned(), "phone".to_owned()], None, 1500, None).unwrap();
    let host = &lab.hosts()[0];
    let addresses = [SocketAddr::from((host.v4, 80)), SocketAddr::from((host.v6, 80))];
    let listeners = lab.inside(0, || addresses.map(|address| TcpListener::bind(address).unwrap())).unwrap();
    let _web = Web::start(listeners.into()).unwrap();
    for address in addresses {
        assert_eq!(lab.inside(0, || get(address, "/1MB").1.len()).unwrap(), 1_000_000, "{address}");
        // The network between them is not there.
        let elsewhere = lab.inside(1, || TcpStream::connect_timeout(&address, Duration::from_millis(200)));
        assert!(elsewhere.unwrap().is_err(), "{address}");
    }
}

#[test]
fn a_dropped_iperf3_server_is_gone() {
    let child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{}", child.id()));
    assert!(process.exists());
    drop(Iperf3(child));
    assert!(!process.exists());
}
