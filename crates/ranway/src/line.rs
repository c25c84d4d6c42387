//! The line about what goes on.

use crate::say;
use console::Term;

/// Terminals with fewer rows are left to the command.
const ROWS: u16 = 8;

/// A line about what goes on, each time in its own place, and gone when this is dropped.
///
/// Where a command writes to the same terminal, the line has the last row, and the command's output scrolls above it, as
/// `apt` has it for `dpkg`'s.
pub(crate) struct Line {
    term: Term,
    /// How many rows the terminal has, if the last of them is the line's.
    rows: Option<u16>,
}

impl Line {
    /// A line on standard error; `shared` if a command writes there too. `None` where there is no place for it.
    pub(crate) fn new(shared: bool) -> Option<Line> {
        let term = Term::stderr();
        if !term.is_term() {
            return None;
        }
        let mut line = Line { term, rows: None };
        (!shared || line.reserve()).then_some(line)
    }

    /// Takes the last row, or the one that is the last now; whether there is room.
    fn reserve(&mut self) -> bool {
        let (rows, _) = self.term.size();
        if rows < ROWS {
            return false;
        }
        if self.rows.replace(rows) != Some(rows) {
            // What stands in the last row goes up by one; the cursor stays above.
            say::sequence(&format!("\n\x1b7\x1b[1;{}r\x1b8\x1b[1A", rows - 1));
        }
        true
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.rows.is_some() && !self.reserve() {
            return;
        }
        // What is too long for the terminal is cut off, because a second row would stay.
        let text = format!("\x1b[?7l{}\x1b[K\x1b[?7h", say::clean(text));
        match self.rows {
            None => say::sequence(&format!("\r{text}")),
            Some(rows) => say::sequence(&format!("\x1b7\x1b[{rows};1H{text}\x1b8")),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        match self.rows {
            None => say::sequence("\r\x1b[K"),
            Some(rows) => say::sequence(&format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[K\x1b8")),
        }
    }
}
