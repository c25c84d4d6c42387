//! The control socket: what is understood, and that nobody can keep others from being served.

// Tests of sockets make files and look at the clock.
#![allow(clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use emulate::Error;
use emulate::control::{Command, Control, ask, line};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use units::{Rate, Span};

const SOON: Duration = Duration::from_secs(5);

/// A loop that serves a control socket as the real-time one does: it answers `load` with its share, has a `status` of
/// two lines, and refuses everything else.
struct Served {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    /// Gives how often the loop was woken.
    thread: Option<JoinHandle<u64>>,
    _directory: tempfile::TempDir,
}

fn open(directory: &tempfile::TempDir) -> disk::Dir {
    disk::Dir::open(directory.path()).unwrap()
}

impl Served {
    fn new() -> Served {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let mut control = Control::bind(&open(&directory)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut woken = 0;
            while !stopped.load(Ordering::Relaxed) {
                let mut files = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
                woken += u64::from(poll(&mut files, PollTimeout::from(20u8)).unwrap() > 0);
                for request in control.requests() {
                    let answer = match &request.command {
                        Command::Load { share, .. } => Ok(share.to_string()),
                        Command::Sinr { .. } => Ok(String::new()),
                        Command::Status => Ok(format!("{{\n\"much\":\"{}\"}}", "x".repeat(10_000))),
                        other => Err(format!("not here: {other:?}")),
                    };
                    control.answer(&request, &answer);
                }
            }
            woken
        });
        Served { path, stop, thread: Some(thread), _directory: directory }
    }

    fn ask(&self, line: &str) -> Result<String, String> {
        ask(&self.path, line, SOON).map_err(|e| e.to_string())
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    }

    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn read_line(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn commands_read_as_people_write_them() {
    let is = |line: &str, command: Command| assert_eq!(Command::parse(line), Ok(command), "{line}");
    let phone = || "phone".to_owned();
    is("sinr phone 12.5", Command::Sinr { ue: phone(), db: Some(12.5) });
    is("  sinr\tphone  -3 ", Command::Sinr { ue: phone(), db: Some(-3.0) });
    is("sinr \"my phone\" off", Command::Sinr { ue: "my phone".to_owned(), db: None });
    is("handover phone \"cell 2\"", Command::Handover { ue: phone(), cell: "cell 2".to_owned() });
    is("load west 0.25", Command::Load { cell: "west".to_owned(), share: 0.25 });
    for line in ["rate s1 10 Mbit/s", "rate s1 10Mbit/s", "rate \"s1\" \"10 Mbit/s\""] {
        is(line, Command::Rate { link: "s1".to_owned(), rate: Rate::from_mbps(10) });
    }
    is("rate s1 0", Command::Rate { link: "s1".to_owned(), rate: Rate::default() });
    is("rate s1 off", Command::Rate { link: "s1".to_owned(), rate: Rate::default() });
    let outage = |link: Option<&str>| Command::Outage { link: link.map(str::to_owned), span: Span::from_secs(10) };
    for line in ["outage 10 s", "outage 10s", "outage \"10 s\""] {
        is(line, outage(None));
    }
    for line in ["outage s1 10 s", "outage s1 10s", "outage \"s1\" 10 s"] {
        is(line, outage(Some("s1")));
    }
    is("loss s1 0.01", Command::Loss { link: "s1".to_owned(), share: 0.01 });
    is("status", Command::Status);
    is("stop", Command::Stop);
    is("help", Command::Help);
}

#[test]
fn a_wrong_command_says_what_would_be_right() {
    let says = |line: &str| Command::parse(line).unwrap_err();
    let known = "sinr UE DB|off, handover UE CELL, load CELL SHARE, rate LINK RATE|off, outage [LINK] TIME, loss LINK SHARE, status, stop, help";
    assert_eq!(says(" "), format!("a command is needed: {known}"));
    assert_eq!(says("snir phone 3"), format!("there is no command `snir`; known: {known}"));
    assert_eq!(says("sinr phone"), "`sinr` is written `sinr UE DB|off`, as in `sinr phone 12.5`");
    assert_eq!(says("sinr my phone 3"), "`sinr` is written `sinr UE DB|off`, as in `sinr phone 12.5`");
    assert_eq!(says("sinr phone 3dB"), "`3dB` is no SINR: a number from -100 to 100 (dB), or `off`");
    assert_eq!(says("sinr phone NaN"), "`NaN` is no SINR: a number from -100 to 100 (dB), or `off`");
    assert_eq!(says("sinr phone 101"), "`101` is no SINR: a number from -100 to 100 (dB), or `off`");
    assert_eq!(says("sinr \"phone 3"), "a `\"` is missing at the end of a name");
    assert_eq!(says("sinr \"\" 3"), "a name is empty");
    assert_eq!(says("load west 50%"), "`50%` is no load: a share from 0 to 1");
    for share in ["1%", "-0.1", "1.5", "NaN"] {
        assert_eq!(says(&format!("loss s1 {share}")), format!("`{share}` is no loss: a share from 0 to 1"));
    }
    assert_eq!(says("rate s1"), "`rate` is written `rate LINK RATE|off`, as in `rate bottleneck 10 Mbit/s`");
    assert_eq!(says("outage"), "`outage` is written `outage [LINK] TIME`, as in `outage 10 s`");
    assert_eq!(says("outage s1 ten"), "`ten` is not a time: it needs a number and a unit (h, min, s, ms, us, ns)");
    assert_eq!(says("outage 0 s"), "0 ns is out of range: more than 0 and at most 24 h");
    assert_eq!(says("rate s1 10 MB"), "`MB` is not a unit of a rate: use one of Gbit/s, Mbit/s, kbit/s, bit/s");
    assert_eq!(says("rate s1 20000 Gbit/s"), "20000 Gbit/s is out of range: at most 10000 Gbit/s");
    assert_eq!(says("status now"), "`status` is written `status`, as in `status`");
    assert!(says(&"x".repeat(4000)).len() < 300, "an error repeats all that was said");
}

#[test]
fn any_line_gives_a_command_or_says_what_would_be_right() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Err(what) = Command::parse(&text) {
            assert!(!what.is_empty() && what.len() < 600, "{what}");
        }
    });
}

#[test]
fn words_of_a_command_line_are_the_words_of_the_command() {
    bolero::check!().with_type::<(String, String)>().for_each(|(ue, cell)| {
        let fit = |name: &str| !name.is_empty() && !name.contains('"');
        if fit(ue) && fit(cell) {
            let command = Command::Handover { ue: ue.clone(), cell: cell.clone() };
            assert_eq!(Command::parse(&line(["handover", ue, cell])), Ok(command));
        }
    });
}

#[test]
fn each_line_has_its_answer_of_one_line() {
    let served = Served::new();
    assert_eq!(served.ask("load west 0.5"), Ok("0.5".to_owned()));
    assert_eq!(served.ask("sinr phone 3"), Ok(String::new()));
    assert_eq!(served.ask("sinr phone"), Err("`sinr` is written `sinr UE DB|off`, as in `sinr phone 12.5`".to_owned()));
    assert_eq!(served.ask("stop"), Err("not here: Stop".to_owned()));
    assert!(served.ask("help").unwrap().starts_with("sinr UE DB|off, "));
    assert!(served.ask("status").unwrap().starts_with("{ \"much\""));
    // Many at once, and in pieces.
    let mut stream = served.connect();
    stream.write_all(b"load a 0.1\nload a 0.2\r\n\nload a 0").unwrap();
    stream.write_all(b".3\n").unwrap();
    let lines: Vec<String> = BufReader::new(&stream).lines().take(4).map(Result::unwrap).collect();
    assert_eq!((&*lines[0], &*lines[1], &*lines[3]), ("ok 0.1", "ok 0.2", "ok 0.3"));
    assert!(lines[2].starts_with("error: a command is needed"), "{}", lines[2]);
}

#[test]
fn who_writes_and_closes_is_answered_and_half_a_line_is_not_obeyed() {
    let served = Served::new();
    let mut stream = served.connect();
    stream.write_all(b"load a 0.1\nload a 0.2").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all, "ok 0.1\n");
}

#[test]
fn the_socket_is_its_owners_alone_and_goes_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control");
    let control = Control::bind(&open(&directory)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = Control::bind(&open(&directory)).unwrap_err().to_string();
    assert!(again.contains("control") && again.contains("in use"), "{again}");
    drop(control);
    assert!(!path.exists());
    assert!(matches!(ask(&path, "status", SOON), Err(Error::System { .. })));
}

#[test]
fn nobody_keeps_others_from_being_served() {
    let served = Served::new();
    // One who has been served and stays.
    let mut regular = served.connect();
    regular.write_all(b"load a 0.5\n").unwrap();
    assert_eq!(read_line(&regular), "ok 0.5\n");
    let mut half = served.connect();
    half.write_all(b"load a").unwrap();
    let mut garbage = served.connect();
    garbage.write_all(b"\xff\x00\xfe\n\n\x1b[2J\n").unwrap();
    assert_eq!(read_line(&garbage), "error: a line is UTF-8 text\n");
    // A megabyte without a line end: the connection ends, and the answer says why.
    let mut endless = served.connect();
    assert!(endless.write_all(&vec![b'x'; 1 << 20]).is_err());
    assert_eq!(read_line(&endless), "error: a line has at most 4096 bytes\n");
    assert_eq!(served.ask("load a 0.25"), Ok("0.25".to_owned()));
    // A hundred connections that say nothing, and one that never reads.
    let silent: Vec<UnixStream> = (0..100).map(|_| served.connect()).collect();
    let mut deaf = served.connect();
    let mut cut = false;
    for _ in 0..10_000 {
        cut = cut || deaf.write_all(b"status\n").is_err();
    }
    assert!(cut, "who does not read goes on to be served");
    assert_eq!(served.ask("load a 0.75"), Ok("0.75".to_owned()));
    regular.write_all(b"load a 1\n").unwrap();
    assert_eq!(read_line(&regular), "ok 1\n", "who was served before is still served");
    assert_eq!(read_line(&silent[0]), "error: there are more than 8 clients\n");
    drop(silent);
    assert_eq!(served.ask("load a 0"), Ok("0".to_owned()));
}

#[test]
fn a_loop_with_idle_clients_is_not_woken() {
    let served = Served::new();
    let mut half = served.connect();
    half.write_all(b"load a").unwrap();
    let _idle = served.connect();
    let mut gone = served.connect();
    gone.write_all(b"load a 0.5\nload").unwrap();
    assert_eq!(read_line(&gone), "ok 0.5\n");
    drop(gone);
    std::thread::sleep(Duration::from_millis(300));
    let woken = served.end();
    assert!(woken <= 12, "woken {woken} times");
}

#[test]
fn a_question_that_nobody_answers_ends_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control");
    let _unserved = Control::bind(&open(&directory)).unwrap();
    let error = ask(&path, "status", Duration::from_millis(50)).unwrap_err().to_string();
    assert!(error.contains("no answer within 0.05 s"), "{error}");
    assert!(matches!(ask(&path, "status\nstop", SOON), Err(Error::Wrong(_))));
}
