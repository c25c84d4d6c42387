//! A capture of the packets of a measurement, by a process of its own.
//!
//! The helper is started before the first connection. It gives up all capabilities but `CAP_NET_RAW`, opens a packet socket with a filter
//! for the server, gives up the rest and lets the kernel refuse all system calls but those on open descriptors ([`netio::rights::confine`]).
//! Only then does it read packets. It writes to a file that this process has opened. It ends with its standard input, and so when this
//! process ends in any way.
//!
//! | descriptor of the helper | what |
//! | --- | --- |
//! | standard input | a pipe, whose end is the end of the capture |
//! | standard output | the file |
//! | standard error | a pipe with two lines: `ready INTERFACE` or `failed WHY`, and `end PACKETS DROPPED` or `failed WHY` |

mod helper;

pub use helper::run_helper;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use netio::sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Time for the helper to begin, and to end.
const BEGIN: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(10);
/// The longest line of the helper, in bytes.
const LONGEST: usize = 1024;

/// A capture that goes on. Dropping it ends it.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    says: ChildStderr,
    /// What it has said beyond the lines that were read.
    rest: Vec<u8>,
    interface: String,
}

/// What was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The interface.
    pub interface: String,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the kernel has dropped, because the helper was too slow.
    pub dropped: u64,
}

impl Capture {
    /// Starts the helper by `command`, which calls [`run_helper`] with this server, and waits until it captures.
    ///
    /// # Errors
    /// Why it cannot capture, in one line.
    pub fn start(mut command: Command, file: File) -> Result<Capture, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::from(file)).stderr(Stdio::piped()).current_dir("/");
        // Ctrl-C ends the measurement, and that the capture.
        let started = sys::in_own_session(&mut command).spawn();
        let mut child = started.map_err(|why| format!("the process that captures cannot be started: {why}"))?;
        let Some(says) = child.stderr.take() else { return Err("the process that captures has no pipe".into()) };
        let mut capture = Capture { child, says, rest: Vec::new(), interface: String::new() };
        let line = capture.line(BEGIN)?;
        match line.split_once(' ') {
            Some(("ready", interface)) => interface.clone_into(&mut capture.interface),
            Some(("failed", why)) => return Err(why.to_owned()),
            _ => return Err(format!("the process that captures failed: {line}")),
        }
        Ok(capture)
    }

    /// Ends the capture, once the file is complete.
    ///
    /// # Errors
    /// Why it is not complete, in one line.
    pub fn finish(mut self) -> Result<Captured, String> {
        drop(self.child.stdin.take());
        let line = self.line(END)?;
        let words: Vec<&str> = line.split(' ').collect();
        let numbers = match words[..] {
            ["end", packets, dropped] => packets.parse().ok().zip(dropped.parse().ok()),
            _ => None,
        };
        let why = || line.strip_prefix("failed ").unwrap_or(&line).to_owned();
        let (packets, dropped) = numbers.ok_or_else(why)?;
        Ok(Captured { interface: std::mem::take(&mut self.interface), packets, dropped })
    }

    /// Reads a line of the helper.
    fn line(&mut self, patience: Duration) -> Result<String, String> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.rest.len() > LONGEST {
                return Err("the process that captures does not answer".into());
            }
            let mut wanted = [PollFd::new(self.says.as_fd(), PollFlags::POLLIN)];
            if poll(&mut wanted, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0) {
                let mut part = [0; LONGEST];
                match self.says.read(&mut part) {
                    Ok(0) | Err(_) => return Err("the process that captures has ended early".into()),
                    Ok(length) => self.rest.extend_from_slice(&part[..length]),
                }
            }
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > END {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
