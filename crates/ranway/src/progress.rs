//! A progress bar with a time estimate.

use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use sim::Progress;

/// The bar's resolution.
const STEPS: u64 = 10_000;
/// The bar's width in characters; what a line has beside it and its name: the figures, the frame, and the last column, after
/// which some terminals begin a new line.
const LONGEST: usize = 30;
const SHORTEST: usize = 5;
const FIGURES: usize = 52;

/// A progress bar on standard error; hidden if that is not a terminal, or on request.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over simulations.
    pub(crate) fn new(what: &str, quiet: bool) -> Bar {
        Bar::styled(what, quiet, STEPS, "{percent:>3} %  {msg}  {elapsed} so far, {eta} to go")
    }

    /// A bar over bytes that are read.
    pub(crate) fn of_bytes(what: &str, bytes: u64, quiet: bool) -> Bar {
        Bar::styled(what, quiet, bytes, "{bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go")
    }

    /// A bar over work whose share is known.
    pub(crate) fn of_steps(what: &str, quiet: bool) -> Bar {
        Bar::styled(what, quiet, STEPS, "{percent:>3} %  {elapsed} so far, {eta} to go")
    }

    fn styled(what: &str, quiet: bool, length: u64, figures: &str) -> Bar {
        if quiet {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(length);
        let columns = Term::stderr().size_checked().map_or(usize::MAX, |(_, columns)| columns.into());
        let width = columns.saturating_sub(what.chars().count() + FIGURES).clamp(SHORTEST, LONGEST);
        let style = ProgressStyle::with_template(&format!("{{prefix}} [{{bar:{width}}}] {figures}"));
        bar.set_style(style.expect("a constant template").progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Bar(bar)
    }

    /// Prints something, with the bar out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    pub(crate) fn set_share(&self, share: f64) {
        self.0.set_position((share * STEPS as f64) as u64);
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    pub(crate) fn show(&self, progress: Progress) {
        self.set_share(progress.share);
        self.0.set_message(format!("{} of {} runs", progress.runs_done, progress.runs));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
