//! Handling of Ctrl-C: the first one stops the runs and keeps completed ones, the second exits at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Returns the flag that Ctrl-C (or SIGTERM) sets.
pub(crate) fn flag() -> &'static Arc<AtomicBool> {
    // Setting a second handler fails, and is not needed. Without a handler, Ctrl-C exits and leaves no partial results.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            disk::remove_drafts();
            std::process::exit(130);
        }
    });
    &STOP
}
