//! Lines of standard input, read without blocking.

use std::io;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The longest line in bytes; longer lines are dropped.
const LONGEST: usize = 4096;

/// Reads lines without blocking.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Input {
    /// Returns the next complete line, without its end.
    pub fn next_line(&mut self) -> Option<String> {
        if !self.bytes.contains(&b'\n') {
            self.read();
        }
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Reads what is there. The standard library's buffer would hide what is left in it from `poll`.
    fn read(&mut self) {
        let stdin = io::stdin();
        let mut ready = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        if self.is_over || !poll(&mut ready, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return;
        }
        if self.bytes.len() >= LONGEST {
            self.bytes.clear();
        }
        let mut buffer = [0; LONGEST];
        match nix::unistd::read(stdin.as_fd(), &mut buffer) {
            Ok(0) => self.is_over = true,
            Ok(len) => self.bytes.extend_from_slice(&buffer[..len]),
            Err(_) => {}
        }
    }
}
