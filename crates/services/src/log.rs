//! Messages to the operator.

use std::fmt;
use std::sync::Arc;

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
