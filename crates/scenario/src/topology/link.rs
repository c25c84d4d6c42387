//! Links before anything is set, and the names of their reverses.

use crate::{Link, Queue};
use units::Span;

pub(super) fn reverse_name(name: &str) -> String {
    format!("{name}-reverse")
}

/// A duplex link that takes no time and loses nothing.
pub(super) fn plain_link(name: String, from: &str, to: &str) -> Link {
    Link {
        name,
        from: from.to_owned(),
        to: to.to_owned(),
        duplex: true,
        rate: None,
        delay: Span::ZERO,
        jitter: None,
        loss: None,
        queue: Queue::default(),
        overhead: Default::default(),
        pep: false,
        pep_report_loss: 0.0,
        reverse: None,
    }
}
