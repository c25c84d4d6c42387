//! Output to the terminal.
//!
//! Two rules hold for everything the command prints. First, a closed terminal or a reader that has gone never causes a panic:
//! output that cannot be written is dropped, and [`is_closed`] tells long-running commands to shut down in order. Second,
//! text from a scenario, a file or a packet never reaches the terminal as a control sequence: control characters are printed
//! in JSON's notation, such as `\u001b`.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, StderrLock, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard error has been closed.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Error codes of a terminal that hung up (`EIO`) or never existed (`ENXIO`).
const HUNG_UP: [i32; 2] = [5, 6];

/// Prints a line to standard error.
macro_rules! message {
    ($($text:tt)*) => {
        $crate::terminal::print_line(format_args!($($text)*))
    };
}
pub(crate) use message;

/// Returns whether standard error can no longer be written to: its terminal was closed, or its reader has gone.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Notices that the terminal was closed, without writing anything.
pub(crate) fn notice_hang_up() {
    // Not even nothing can be written to a closed terminal.
    record_error(io::stderr().write(b"").map(drop));
}

/// Prints a line to standard error. See [`message!`].
pub(crate) fn print_line(text: fmt::Arguments<'_>) {
    record_error(stderr().write_fmt(format_args!("{text}\n")));
}

/// Prints control sequences of our own to standard error, unsanitized.
pub(crate) fn print_control_sequence(text: &str) {
    record_error(io::stderr().write_all(text.as_bytes()));
}

fn record_error(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == ErrorKind::BrokenPipe || error.raw_os_error().is_some_and(|code| HUNG_UP.contains(&code)) {
        CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Standard output, sanitized.
pub(crate) fn stdout() -> Sanitized<StdoutLock<'static>> {
    Sanitized(io::stdout().lock())
}

/// Writes a line to standard output at once.
///
/// # Errors
/// The system's error, with its kind.
pub(crate) fn put_line(text: &str) -> io::Result<()> {
    let mut stdout = stdout();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}")))
}

/// Standard error, sanitized.
pub(crate) fn stderr() -> Sanitized<StderrLock<'static>> {
    Sanitized(io::stderr().lock())
}

/// A writer that escapes control characters.
pub(crate) struct Sanitized<W>(W);

impl<W: Write> Write for Sanitized<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(sanitize(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        // Formats everything first, so that no character is split between two writes.
        self.0.write_all(sanitize(&text.to_string()).as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns `text` with control characters other than line feeds and tabs, and characters that change the direction of text,
/// in the form `\u001b`.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) {
            let _ = write!(cleaned, "\\u{:04x}", u32::from(c));
        } else {
            cleaned.push(c);
        }
    }
    Cow::Owned(cleaned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_escaped_and_other_text_is_unchanged() {
        for text in ["", "ünïcode, 日本 ± 1\n\tnext", "{\"a\": \"b\"}"] {
            assert!(matches!(sanitize(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(sanitize("a\x1b]0;title\x07b\u{9b}2J\r\x7f"), "a\\u001b]0;title\\u0007b\\u009b2J\\u000d\\u007f");
        assert_eq!(sanitize("left\u{202e}right"), "left\\u202eright");
        let mut out = Sanitized(Vec::new());
        out.write_fmt(format_args!("{}é", '\x1b')).unwrap();
        out.write_all(b"\x1b[2J\n").unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "\\u001bé\\u001b[2J\n");
    }

    #[test]
    fn sanitized_json_parses_to_the_same_value() {
        let text = serde_json::to_string("\u{9b}31m\u{202e}\x7f").unwrap();
        let cleaned = sanitize(&text);
        assert!(cleaned.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&cleaned).unwrap(), "\u{9b}31m\u{202e}\x7f");
    }
}
