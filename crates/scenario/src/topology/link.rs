//! Default links, and the names of reverse links.

use crate::{Link, Queue};
use units::Span;

pub(super) fn reverse_name(name: &str) -> String {
    format!("{name}-reverse")
}

/// Returns a duplex link without delay and loss.
pub(super) fn plain_link(name: String, from: &str, to: &str) -> Link {
    Link {
        name,
        from: from.to_owned(),
        to: to.to_owned(),
        duplex: true,
        rate: None,
        delay: Span::ZERO,
        jitter: None,
        reordering: None,
        loss: None,
        queue: Queue::default(),
        overhead: Default::default(),
        pep: false,
        pep_report_loss: 0.0,
        reverse: None,
    }
}
