//! The line about what goes on in an emulation.

use console::Term;
use host::Glance;
use units::{Bytes, Rate, Span};

/// Terminals with fewer rows are left to the command.
const ROWS: u16 = 8;

/// A line about what goes on, each time in its own place, and gone when this is dropped.
///
/// Where a command writes to the same terminal, the line has the last row, and the command's output scrolls above it, as
/// `apt` has it for `dpkg`'s.
pub(crate) struct Line<'a> {
    /// The number of the host whose packets are counted.
    host: usize,
    /// Its name.
    ue: &'a str,
    term: Term,
    /// How many rows the terminal has, if the last of them is the line's.
    rows: Option<u16>,
}

impl Line<'_> {
    /// A line on standard error; `shared` if a command writes there too. `None` where there is no place for it.
    pub(crate) fn new(host: usize, ue: &str, shared: bool) -> Option<Line<'_>> {
        let term = Term::stderr();
        if !term.is_term() {
            return None;
        }
        let mut line = Line { host, ue, term, rows: None };
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
            eprint!("\n\x1b7\x1b[1;{}r\x1b8\x1b[1A", rows - 1);
        }
        true
    }

    pub(crate) fn show(&mut self, glance: &Glance) {
        if self.rows.is_some() && !self.reserve() {
            return;
        }
        // What is too long for the terminal is cut off, because a second row would stay.
        let text = format!("\x1b[?7l{}\x1b[K\x1b[?7h", say(glance, self.host, self.ue));
        match self.rows {
            None => eprint!("\r{text}"),
            Some(rows) => eprint!("\x1b7\x1b[{rows};1H{text}\x1b8"),
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        match self.rows {
            None => eprint!("\r\x1b[K"),
            Some(rows) => eprint!("\x1b7\x1b[r\x1b[{rows};1H\x1b[K\x1b8"),
        }
    }
}

fn say(glance: &Glance, host: usize, ue: &str) -> String {
    let mbps = |bytes: Option<&u64>| Rate::over(Bytes::new(bytes.copied().unwrap_or(0)), Span::from_secs(1)).as_mbps();
    let delay =
        glance.delay.get(host).copied().flatten().map_or_else(|| "-".into(), |d| format!("{:.0}", record::ms(d)));
    let ue = glance.status.ues.iter().find(|status| status.ue == ue);
    let queue = ue.map_or_else(
        || glance.status.links.iter().map(|link| link.bytes).max().unwrap_or(0),
        |ue| ue.downlink_bytes.max(ue.uplink_bytes),
    );
    let radio = ue.map_or_else(String::new, |ue| {
        format!("  CQI {:2}  {}", ue.cqi, ue.cell.as_deref().unwrap_or("between cells"))
    });
    format!(
        "{:5.0} s  down {:7.2} Mbit/s  up {:7.2} Mbit/s  delay {delay:>5} ms  queue {:6} kB{radio}",
        glance.at.as_secs_f64(),
        mbps(glance.received.get(host)),
        mbps(glance.received.first()),
        queue / 1000,
    )
}
