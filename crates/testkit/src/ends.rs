//! Waits for programs, with a bound: a test that hangs says what it waited for.

#![allow(clippy::disallowed_methods, reason = "looks at the clock and at processes")]

use std::io::Read;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// For how long a program may take to end, and others to close the streams that they have of it.
const LIMIT: Duration = Duration::from_secs(60);

/// Waiting for a child's end.
pub trait Ends {
    /// Waits until it has ended.
    ///
    /// # Panics
    /// If that takes longer than a minute, with its command line.
    fn ends(&mut self) -> ExitStatus;

    /// The same, and returns what it wrote to its streams that are piped.
    ///
    /// # Panics
    /// Also if other processes keep its streams open for a minute after its end.
    fn ends_with_output(self) -> Output;
}

impl Ends for Child {
    fn ends(&mut self) -> ExitStatus {
        ends_within(self, LIMIT)
    }

    fn ends_with_output(mut self) -> Output {
        // A program that waits for the end of its input would wait for this one.
        drop(self.stdin.take());
        let [stdout, stderr] = [self.stdout.take().map(collect), self.stderr.take().map(collect)];
        let status = self.ends();
        let [stdout, stderr] = [stdout, stderr].map(|stream| all_of(stream, LIMIT));
        Output { status, stdout, stderr }
    }
}

fn ends_within(child: &mut Child, limit: Duration) -> ExitStatus {
    let begin = Instant::now();
    // Most end soon.
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if begin.elapsed() > limit {
            let line = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let _ = child.kill();
            let _ = child.wait();
            panic!("not within {limit:?}: the end of process {} (`{}`)", child.id(), line.trim_end());
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Reads a stream to its end in the background.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, all) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    all
}

fn all_of(stream: Option<Receiver<Vec<u8>>>, limit: Duration) -> Vec<u8> {
    let Some(stream) = stream else { return Vec::new() };
    stream.recv_timeout(limit).unwrap_or_else(|_| {
        panic!("not within {limit:?}: the end of what a program writes, which has ended: others have its streams")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::process::{Command, Stdio};

    fn shell(line: &str) -> Child {
        Command::new("sh").args(["-c", line]).stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().expect("a shell")
    }

    #[test]
    fn a_program_that_ends_gives_its_status_and_output() {
        let output = shell("cat; echo done; exit 3").ends_with_output();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"done\n"[..]));
    }

    #[test]
    fn a_program_that_hangs_is_named_and_killed() {
        let panic = catch_unwind(|| {
            let mut child = Command::new("sleep").arg("1004").spawn().expect("sleep");
            ends_within(&mut child, Duration::from_millis(50))
        });
        let panic = panic.expect_err("it hangs");
        let said = panic.downcast_ref::<String>().expect("a text");
        assert!(said.starts_with("not within 50ms: the end of process") && said.ends_with("(`sleep 1004`)"), "{said}");
    }

    #[test]
    fn streams_that_others_have_are_not_waited_for_without_a_bound() {
        let mut child = shell("sleep 2 & exit 0");
        let stream = child.stdout.take().map(collect);
        assert!(child.ends().success());
        let panic = catch_unwind(std::panic::AssertUnwindSafe(|| all_of(stream, Duration::from_millis(50))));
        assert!(panic.expect_err("it is open").downcast_ref::<String>().expect("a text").contains("streams"));
    }
}
