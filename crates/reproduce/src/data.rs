//! Results to compare and to draw.

use crate::study::Study;
use record::Results;
use std::cell::OnceCell;

/// Results, and the tests in them once somebody asks.
pub(crate) struct Data<'a> {
    pub(crate) results: &'a Results,
    study: OnceCell<Study>,
}

impl<'a> Data<'a> {
    pub(crate) fn new(results: &'a Results) -> Data<'a> {
        Data { results, study: OnceCell::new() }
    }

    pub(crate) fn study(&self) -> &Study {
        self.study.get_or_init(|| Study::new(self.results))
    }
}
