//! What the kernel computes, as a process beside the test.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::str::FromStr;

/// A C program of the tests, which answers lines of numbers.
pub(crate) struct Twin {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Twin {
    /// Compiles `name.c` into the directory and starts it.
    pub(crate) fn new(name: &str, directory: &Path) -> Twin {
        let program = directory.join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-o"]).arg(&program).arg(source);
        assert!(cc.status().expect("a C compiler").success());
        let mut process =
            Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (to, from) = (process.stdin.take(), process.stdout.take());
        Twin { process, to: to.expect("piped"), from: BufReader::new(from.expect("piped")) }
    }

    pub(crate) fn tell(&mut self, lines: &str) {
        self.to.write_all(lines.as_bytes()).expect("it listens");
    }

    /// The numbers of its next line.
    pub(crate) fn answer<T: FromStr<Err: Debug>>(&mut self) -> Vec<T> {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it answers");
        line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
