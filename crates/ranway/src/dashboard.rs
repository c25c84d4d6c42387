//! Without the feature `live`, there is no dashboard: this stands in its place.

use crate::failure::Failure;
use clap::Args as ClapArgs;
use record::{Meta, Tables};
use scenario::Loaded;
use sim::{Job, Progress, Seen, UePlace};
use std::convert::Infallible;
use std::path::Path;
use units::Span;

/// No arguments.
#[derive(Clone, ClapArgs)]
pub(crate) struct DashboardArgs {}

impl DashboardArgs {
    /// There is none to want.
    pub(crate) fn is_wanted(&self) -> bool {
        false
    }

    /// There is none to start.
    pub(crate) fn start(
        &self,
        _: &'static str,
        _: impl FnOnce() -> Meta,
        _: bool,
        _: impl FnOnce(&mut ()),
    ) -> Result<Option<Dashboard>, Failure> {
        Ok(None)
    }
}

/// There is none.
pub(crate) struct Dashboard(Infallible);

impl Dashboard {
    pub(crate) fn end(self, _: &Path) {
        match self.0 {}
    }
}

/// There is no page that they are shown on.
pub(crate) struct Runs(Infallible);

impl Runs {
    pub(crate) fn new(dashboard: &Dashboard, _: &Loaded, _: usize) -> Runs {
        match dashboard.0 {}
    }

    pub(crate) fn show(&self, _: Progress) {
        match self.0 {}
    }
}

impl sim::Watch for Runs {
    fn is_due(&self, _: Job) -> bool {
        match self.0 {}
    }

    fn take_rows(&self, _: Job, _: Span, _: Tables, _: Vec<UePlace>) {
        match self.0 {}
    }

    fn take_finished(&self, _: Job, _: &Tables, _: &Seen) {
        match self.0 {}
    }
}
