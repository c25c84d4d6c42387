//! Messages to the operator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between messages about faults of one input.
const FAULTS: Duration = Duration::from_secs(10);

/// Where messages to the operator go.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Creates a log from a function, which is called from any thread.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(write))
    }

    pub(crate) fn line(&self, text: fmt::Arguments<'_>) {
        (self.0)(&text.to_string());
    }
}

impl Default for Log {
    /// Drops all messages.
    fn default() -> Log {
        Log::new(|_| {})
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Log")
    }
}

/// Reports faults of an input, not more often than the operator can read.
#[derive(Debug)]
pub(super) struct Faults {
    log: Log,
    name: String,
    last: Option<Instant>,
    suppressed: u64,
}

impl Faults {
    pub(super) fn new(log: Log, name: String) -> Faults {
        Faults { log, name, last: None, suppressed: 0 }
    }

    pub(super) fn report(&mut self, fault: &str) {
        if self.last.is_some_and(|last| last.elapsed() < FAULTS) {
            self.suppressed += 1;
            return;
        }
        let more = match std::mem::take(&mut self.suppressed) {
            0 => String::new(),
            n => format!(" ({n} more faults before)"),
        };
        self.log.line(format_args!("{}: {fault}{more}", self.name));
        self.last = Some(Instant::now());
    }
}
