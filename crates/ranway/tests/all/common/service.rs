//! Running services, for the tests of them and of their clients.

use super::command;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;

/// A running `ranway rnis`.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Service {
    pub(crate) fn start(command: &mut Command) -> Service {
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        // An input may have something to say before.
        let address =
            lines.find_map(|line| line.expect("it is text").split_once("http://").map(|(_, rest)| rest.to_owned()));
        let rest = address.expect("it says where it serves");
        let (address, _) = rest.split_once('/').expect("a path follows");
        let address = address.to_owned();
        // What follows is read, so the command never waits for a full pipe.
        std::thread::spawn(move || lines.count());
        Service { child, address }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let head = format!("GET /rni/v2{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("it is open");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it replies");
        serde_json::from_str(reply.split_once("\r\n\r\n").expect("there is a body").1).expect("it is JSON")
    }

    /// Ends the service with Ctrl-C.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).expect("it runs");
        assert_eq!(self.child.ends().code(), Some(0));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `ranway measure serve` for everybody on an address of loopback.
pub(crate) struct MeasureServer {
    child: Child,
    pub(crate) address: String,
}

impl MeasureServer {
    pub(crate) fn start(listen: &str) -> MeasureServer {
        let mut command = command(Path::new("."), &["measure", "serve", "--open", "--listen", listen]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = lines.next().expect("it says where it serves").expect("it is text");
        let address = line.strip_prefix("serving at ").and_then(|rest| rest.split([',', ';']).next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        std::thread::spawn(move || lines.count());
        MeasureServer { child, address }
    }
}

impl Drop for MeasureServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "the condition never held");
        std::thread::sleep(Duration::from_millis(20));
    }
}
