//! The control socket of a running emulation: a Unix socket that takes one command per line and answers each with a line.
//!
//! The answer is `ok`, `ok` and a text, or `error: ` and what would be valid; so `nc -U` and `socat` can be clients, too.
//!
//! The real-time loop serves it between packets, so nothing here blocks or grows: [`Control`] is readable for `poll` while
//! there is something to do, [`Control::requests`] reads at most one line of each client and leaves the rest in the
//! kernel's buffers, and a client whose answer the kernel cannot take at once is disconnected.

mod command;

pub use command::{Command, line};

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use disk::Dir;
use netio::socket::listen_for_owner;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{self, MsgFlags};

use crate::Error;
use crate::tidy::RECORDS;

/// The name of the socket.
const NAME: &str = "control";
/// Most clients at a time.
const CLIENTS: usize = 8;
/// Longest line in bytes, including its end.
const LINE: usize = 4096;
/// Longest answer that [`ask`] takes, in bytes.
const ANSWER: usize = 4 << 20;

/// The control socket of a running emulation.
///
/// Order of calls: [`Control::requests`] whenever it is readable, then [`Control::answer`] for each of them.
#[derive(Debug)]
pub struct Control {
    directory: Dir,
    /// Watches the listener, by number 0, and the clients.
    epoll: Epoll,
    listener: UnixListener,
    clients: Vec<Client>,
    /// Counts connections and lines: the number of the latest.
    last: u64,
}

/// A command of a client that waits for its answer.
#[derive(Debug)]
pub struct Request {
    client: u64,
    /// The command.
    pub command: Command,
}

#[derive(Debug)]
struct Client {
    number: u64,
    stream: UnixStream,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// The number of its last line; 0 before the first.
    spoke: u64,
}

/// What was read from a client.
enum Said {
    Line(Vec<u8>),
    /// No whole line yet.
    Nothing,
    TooMuch,
    /// The client is gone.
    End,
}

impl Control {
    /// Makes the socket in `directory` ([`socket()`] has its path), for its owner alone. Dropping the value removes it.
    pub fn bind(directory: &Dir) -> Result<Control, Error> {
        let open = || -> io::Result<(UnixListener, Epoll)> {
            let listener = listen_for_owner(&directory.at(NAME), 2 * CLIENTS as i32)?;
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
            Ok((listener.into(), epoll))
        };
        let place = socket(directory.path());
        let (listener, epoll) =
            open().map_err(Error::system(format!("cannot open the control socket {}", place.display())))?;
        Ok(Control { directory: directory.try_clone()?, epoll, listener, clients: Vec::new(), last: 0 })
    }

    /// Returns clients' commands, at most one of each; invalid ones are answered here. Never blocks.
    pub fn requests(&mut self) -> Vec<Request> {
        let mut events = [EpollEvent::empty(); CLIENTS + 1];
        let ready = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let mut requests = Vec::new();
        for event in &events[..ready] {
            match event.data() {
                0 => self.accept(),
                number => requests.extend(self.hear(number).map(|command| Request { client: number, command })),
            }
        }
        requests
    }

    /// Answers a request. The answer becomes one line.
    pub fn answer(&mut self, request: &Request, answer: &Result<String, String>) {
        self.tell(request.client, answer);
    }

    /// Accepts new clients, as many as there is room for at a time; the others wait in the kernel.
    fn accept(&mut self) {
        for _ in 0..CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { return };
            self.last += 1;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, self.last);
            if stream.set_nonblocking(true).is_err() || self.epoll.add(&stream, event).is_err() {
                continue;
            }
            if self.clients.len() == CLIENTS {
                self.make_room();
            }
            self.clients.push(Client { number: self.last, stream, begun: Vec::new(), spoke: 0 });
        }
    }

    /// Disconnects one client: one that never sent a line, or else the one silent for longest.
    fn make_room(&mut self) {
        if let Some(first) = self.clients.iter().min_by_key(|client| (client.spoke, client.number)) {
            let number = first.number;
            self.tell(number, &Err(format!("there are more than {CLIENTS} clients")));
            self.close(number);
        }
    }

    /// Returns the next command of a client, if it is one for the caller.
    fn hear(&mut self, number: u64) -> Option<Command> {
        let client = self.clients.iter_mut().find(|client| client.number == number)?;
        let line = match client.read() {
            Said::Line(line) => line,
            Said::Nothing => return None,
            Said::TooMuch => {
                self.tell(number, &Err(format!("a line has at most {LINE} bytes")));
                self.close(number);
                return None;
            }
            Said::End => {
                self.close(number);
                return None;
            }
        };
        self.last += 1;
        client.spoke = self.last;
        let text = String::from_utf8(line).map_err(|_| "a line is UTF-8 text".to_owned());
        match text.and_then(|line| Command::parse(&line)) {
            Ok(Command::Help) => self.tell(number, &Ok(Command::help())),
            Ok(command) => return Some(command),
            Err(what) => self.tell(number, &Err(what)),
        }
        None
    }

    fn tell(&mut self, number: u64, answer: &Result<String, String>) {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == number) else { return };
        let (verdict, text) = match answer {
            Ok(text) if text.is_empty() => ("ok", text),
            Ok(text) => ("ok ", text),
            Err(text) => ("error: ", text),
        };
        let mut line = format!("{verdict}{text}").replace(char::is_control, " ");
        line.push('\n');
        // Whoever does not read what is said is not waited for.
        if !client.stream.write(line.as_bytes()).is_ok_and(|written| written == line.len()) {
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        // The kernel forgets a closed file's place in the epoll set.
        self.clients.retain(|client| client.number != number);
    }
}

impl AsFd for Control {
    /// Readable while there is something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.directory.remove_file(NAME);
    }
}

impl Client {
    /// Reads up to the end of a line and leaves the rest in the socket, which stays readable.
    fn read(&mut self) -> Said {
        let mut buffer = [0; LINE];
        let room = &mut buffer[..LINE - self.begun.len()];
        let seen = match socket::recv(self.stream.as_raw_fd(), room, MsgFlags::MSG_PEEK) {
            Ok(0) => return Said::End,
            Ok(seen) => seen,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Said::Nothing,
            Err(_) => return Said::End,
        };
        let end = room[..seen].iter().position(|byte| *byte == b'\n');
        let taken = &mut room[..end.map_or(seen, |end| end + 1)];
        if self.stream.read_exact(taken).is_err() {
            return Said::End;
        }
        self.begun.extend_from_slice(taken);
        match end {
            Some(_) => {
                self.begun.pop();
                Said::Line(core::mem::take(&mut self.begun))
            }
            None if self.begun.len() == LINE => Said::TooMuch,
            None => Said::Nothing,
        }
    }
}

/// Sends `line` to the emulation whose control socket is at `path`. Returns what follows its `ok`.
pub fn ask(path: &Path, line: &str, timeout: Duration) -> Result<String, Error> {
    if line.contains('\n') {
        return Err(Error::Wrong("a command is one line".to_owned()));
    }
    let failed = |e| Error::system(format!("cannot reach the emulation at {}", path.display()))(e);
    let answer = exchange(path, line, timeout).map_err(failed)?;
    match answer.strip_prefix("error: ") {
        Some(what) => Err(Error::Wrong(what.to_owned())),
        None => Ok(answer.strip_prefix("ok").unwrap_or(&answer).trim_start().to_owned()),
    }
}

/// Sends a line and reads one, without their ends.
fn exchange(path: &Path, line: &str, timeout: Duration) -> io::Result<String> {
    let deadline = Instant::now() + timeout;
    let mut stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut reader = BufReader::new(stream);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", timeout.as_secs_f64())));
        }
        reader.get_ref().set_read_timeout(Some(left))?;
        let more = match reader.fill_buf() {
            Ok(more) => more,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(e) => return Err(e),
        };
        let end = more.iter().position(|byte| *byte == b'\n');
        let (taken, used) = (end.unwrap_or(more.len()), end.map_or(more.len(), |end| end + 1));
        answer.extend_from_slice(&more[..taken]);
        reader.consume(used);
        if end.is_some() {
            return String::from_utf8(answer).map_err(|_| io::Error::other("the answer is not valid UTF-8"));
        }
        if used == 0 || answer.len() > ANSWER {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection without an answer"));
        }
    }
}

/// Returns the path of the control socket of the emulation with this directory.
pub fn socket(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Returns the running emulations, by name, with their control sockets.
pub fn running() -> Vec<(String, PathBuf)> {
    running_in(Path::new(RECORDS))
}

fn running_in(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let listening = |entry: std::fs::DirEntry| {
        let path = socket(&entry.path());
        // One that was killed has left its socket, and nobody listens.
        UnixStream::connect(&path).ok()?;
        Some((entry.file_name().into_string().ok()?, path))
    };
    let mut running: Vec<_> = entries.filter_map(listening).collect();
    running.sort();
    running
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_whose_socket_somebody_listens_on_are_running() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "a", "dead", "without"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let path = |name: &str| socket(&directory.path().join(name));
        let open = |name: &str| Dir::open(&directory.path().join(name)).unwrap();
        let _running = ["a", "b"].map(|name| Control::bind(&open(name)).unwrap());
        // A listener of the library leaves its socket behind, as a process that was killed does.
        drop(UnixListener::bind(path("dead")).unwrap());
        assert!(path("dead").exists());
        assert_eq!(running_in(directory.path()), [("a".to_owned(), path("a")), ("b".to_owned(), path("b"))]);
        assert_eq!(running_in(&directory.path().join("nowhere")), []);
    }
}
