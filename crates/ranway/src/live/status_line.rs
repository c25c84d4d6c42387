//! The status line of a long-running command.

use crate::terminal;
use console::Term;

/// On terminals with fewer rows no status line is shown.
const ROWS: u16 = 8;

/// A status line, updated in place and erased when dropped.
///
/// If a command writes to the same terminal, the status line occupies the last row and the command's output scrolls above it,
/// as `apt` does with `dpkg`'s output.
pub(crate) struct StatusLine {
    term: Term,
    /// The terminal's number of rows, if the last row is reserved for the status line.
    rows: Option<u16>,
}

impl StatusLine {
    /// Creates a status line on standard error; `shared` if a command writes there too. Returns `None` if standard error is
    /// not a terminal or has too few rows.
    pub(crate) fn new(shared: bool) -> Option<StatusLine> {
        let term = Term::stderr();
        if !term.is_term() {
            // It may have been one until a moment ago, and nobody writes to it any more.
            terminal::notice_hang_up();
            return None;
        }
        let mut line = StatusLine { term, rows: None };
        (!shared || line.reserve()).then_some(line)
    }

    /// Reserves the terminal's last row, also after a resize. Returns whether the terminal has enough rows.
    fn reserve(&mut self) -> bool {
        let (rows, _) = self.term.size();
        if rows < ROWS {
            return false;
        }
        if self.rows.replace(rows) != Some(rows) {
            // The contents of the last row scroll up by one; the cursor stays above the reserved row.
            terminal::print_control_sequence(&format!("\n\x1b7\x1b[1;{}r\x1b8\x1b[1A", rows - 1));
        }
        true
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.rows.is_some() && !self.reserve() {
            return;
        }
        // Longer text is truncated: a second row would not be erased.
        let text = format!("\x1b[?7l{}\x1b[K\x1b[?7h", terminal::sanitize(text));
        match self.rows {
            None => terminal::print_control_sequence(&format!("\r{text}")),
            Some(rows) => terminal::print_control_sequence(&format!("\x1b7\x1b[{rows};1H{text}\x1b8")),
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        match self.rows {
            None => terminal::print_control_sequence("\r\x1b[K"),
            Some(rows) => terminal::print_control_sequence(&format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[K\x1b8")),
        }
    }
}
