//! A progress bar with a time estimate.

use indicatif::{ProgressBar, ProgressStyle};
use sim::Progress;

/// The bar's resolution.
const STEPS: u64 = 10_000;

/// A progress bar on standard error; hidden if that is not a terminal, or on request.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(what: &str, quiet: bool) -> Bar {
        if quiet {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(STEPS);
        let style =
            ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3} %  {msg}  {elapsed} so far, {eta} to go");
        bar.set_style(style.expect("a constant template").progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Bar(bar)
    }

    /// A bar over bytes that are read.
    pub(crate) fn of_bytes(what: &str, bytes: u64, quiet: bool) -> Bar {
        if quiet {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(bytes);
        let template = "{prefix} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
        bar.set_style(ProgressStyle::with_template(template).expect("a constant template").progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Bar(bar)
    }

    /// A bar over work whose share is known.
    pub(crate) fn of_steps(what: &str, quiet: bool) -> Bar {
        if quiet {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(STEPS);
        let template = "{prefix} [{bar:30}] {percent:>3} %  {elapsed} so far, {eta} to go";
        bar.set_style(ProgressStyle::with_template(template).expect("a constant template").progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Bar(bar)
    }

    pub(crate) fn set_share(&self, share: f64) {
        self.0.set_position((share * STEPS as f64) as u64);
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    pub(crate) fn show(&self, progress: Progress) {
        self.0.set_position((progress.share * STEPS as f64) as u64);
        self.0.set_message(format!("{} of {} runs", progress.runs_done, progress.runs));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
