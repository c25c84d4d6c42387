//! Ctrl-C: the first ends the runs and keeps what has finished, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// The flag that is set by Ctrl-C (and by a polite kill).
pub(crate) fn flag() -> &'static AtomicBool {
    // A second handler is refused and not needed; without any, Ctrl-C ends the program and leaves no half results.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    &STOP
}
