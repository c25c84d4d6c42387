//! Everything that the command prints.
//!
//! Two rules hold for all of it. A terminal that is gone, or a reader that has left, is no reason to panic: what cannot be
//! printed is dropped, and [`is_lost`] tells whoever runs for long, so that the run ends in order. And nothing that comes
//! from a scenario, a file or a packet reaches the terminal as a control sequence: control characters are printed as
//! `\u001b` and the like, the form that JSON has for them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, StderrLock, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard error has gone away.
static LOST: AtomicBool = AtomicBool::new(false);
/// What a terminal says that has been hung up (`EIO`), and one that never was (`ENXIO`).
const GONE: [i32; 2] = [5, 6];

/// Prints a line to standard error.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// Whether standard error cannot be written to any more: its terminal was closed, or its reader has left.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints a line to standard error. See [`say!`].
pub(crate) fn line(text: fmt::Arguments<'_>) {
    note(stderr().write_fmt(format_args!("{text}\n")));
}

/// Prints control sequences of our own to standard error, as they are.
pub(crate) fn sequence(text: &str) {
    note(io::stderr().write_all(text.as_bytes()));
}

fn note(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == ErrorKind::BrokenPipe || error.raw_os_error().is_some_and(|code| GONE.contains(&code)) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Standard output, cleaned.
pub(crate) fn stdout() -> Clean<StdoutLock<'static>> {
    Clean(io::stdout().lock())
}

/// Standard error, cleaned.
pub(crate) fn stderr() -> Clean<StderrLock<'static>> {
    Clean(io::stderr().lock())
}

/// Writes text without control characters.
pub(crate) struct Clean<W>(W);

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(clean(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        // All at once, so that no character is cut in two.
        self.0.write_all(clean(&text.to_string()).as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `text` with every control character but line feeds and tabs in the form `\u001b`, and those that change the direction
/// of text, too.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
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
    fn control_sequences_are_shown_and_text_is_not_touched() {
        for text in ["", "ünïcode, 日本 ± 1\n\tnext", "{\"a\": \"b\"}"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(clean("a\x1b]0;title\x07b\u{9b}2J\r\x7f"), "a\\u001b]0;title\\u0007b\\u009b2J\\u000d\\u007f");
        assert_eq!(clean("left\u{202e}right"), "left\\u202eright");
        let mut out = Clean(Vec::new());
        out.write_fmt(format_args!("{}é", '\x1b')).unwrap();
        out.write_all(b"\x1b[2J\n").unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "\\u001bé\\u001b[2J\n");
    }

    #[test]
    fn json_stays_json_and_means_the_same() {
        let text = serde_json::to_string("\u{9b}31m\u{202e}\x7f").unwrap();
        let cleaned = clean(&text);
        assert!(cleaned.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&cleaned).unwrap(), "\u{9b}31m\u{202e}\x7f");
    }
}
