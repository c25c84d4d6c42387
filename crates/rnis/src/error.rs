//! The error of a feed.

use core::fmt;

/// The longest message; hostile input is quoted at most this far.
const LONGEST_MESSAGE: usize = 200;

/// Input that is not what its format requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedError {
    line: Option<usize>,
    what: String,
}

impl FeedError {
    /// Creates an error of a whole message.
    pub fn new(what: impl fmt::Display) -> FeedError {
        FeedError { line: None, what: printable(&what.to_string()) }
    }

    /// Creates an error of a message of one line of JSON, whose number the caller knows.
    pub(crate) fn json(why: &serde_json::Error) -> FeedError {
        let text = why.to_string();
        let (line, column) = (why.line(), why.column());
        match text.strip_suffix(&format!(" at line {line} column {column}")) {
            Some(what) => FeedError::new(format_args!("{what} at column {column}")),
            None => FeedError::new(text),
        }
    }

    /// Creates an error in a line, counted from 1.
    pub fn at(line: usize, what: impl fmt::Display) -> FeedError {
        FeedError { line: Some(line), ..FeedError::new(what) }
    }
}

/// Escapes control characters, and shortens text that is too long.
fn printable(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let mut short: String = text.chars().take(LONGEST_MESSAGE).map(escape).collect();
    if text.chars().nth(LONGEST_MESSAGE).is_some() {
        short.push_str("...");
    }
    short
}

impl fmt::Display for FeedError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(to, "line {line}: {}", self.what),
            None => to.write_str(&self.what),
        }
    }
}

impl core::error::Error for FeedError {}
