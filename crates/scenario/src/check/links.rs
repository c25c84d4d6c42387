//! Checks of links: rates, queues, loss, jitter, and PEPs at their ends.

use crate::faults::*;
use crate::network::Path;
use crate::*;
use units::{Bytes, Span};

const NO_RATE: &str = "a link without a `rate` is infinitely fast and never queues; give it a rate";

pub(super) fn check_link(link: &Link, c: &mut Check) {
    for (key, name) in [("name", &link.name), ("from", &link.from), ("to", &link.to)] {
        c.name(key, name);
    }
    if link.from == link.to {
        c.key("to", |c| c.wrong(format!("the link leads from `{}` to itself", link.from)));
    }
    match &link.rate {
        Some(rate) => check_capacity("rate", rate, c),
        None if link.queue != Queue::default() => {
            c.key("queue", |c| c.wrong(NO_RATE));
        }
        None => {}
    }
    if link.queue_in_host && link.rate.is_none() {
        c.key("queue_in_host", |c| c.wrong(NO_RATE));
    }
    check_delay(&link.delay, c);
    check_pep(link.pep, link.pep_report_loss, c);
    check_path(&link.path(), c);
    let reverse_queues = link.reverse.as_ref().is_some_and(|r| r.queue.is_some() && r.rate.is_none());
    if reverse_queues && link.rate.is_none() {
        c.key("reverse", |c| c.key("queue", |c| c.wrong(NO_RATE)));
    }
    if link.reverse.is_some() && !link.duplex {
        c.key("reverse", |c| c.wrong("this link is not duplex; remove `reverse` or `duplex = false`"));
    }
    check_reverse(link.reverse.as_ref(), c);
}

pub(super) fn check_pep(pep: bool, report_loss: f64, c: &mut Check) {
    c.probability("pep_report_loss", report_loss);
    if report_loss > 0.0 && !pep {
        c.key("pep_report_loss", |c| c.wrong("`pep_report_loss` needs a PEP; add `pep = true`"));
    }
}

pub(super) fn check_pep_at(pep: bool, at: PepAt, c: &mut Check) {
    if at == PepAt::Cells && !pep {
        c.key("pep_at", |c| c.wrong("`pep_at` needs a PEP; add `pep = true`"));
    }
}

pub(super) fn check_reverse(reverse: Option<&Reverse>, c: &mut Check) {
    let Some(r) = reverse else { return };
    c.key("reverse", |c| {
        if let Some(rate) = &r.rate {
            check_capacity("rate", rate, c);
        }
        if let Some(delay) = &r.delay {
            check_delay(delay, c);
        }
        check_path(&r.path(), c);
    });
}

/// Checks the keys that links, their other directions and dumbbells have in common.
pub(super) fn check_path(path: &Path, c: &mut Check) {
    let Path { jitter, reordering, loss, queue, overhead } = *path;
    if let Some(jitter) = jitter {
        jitter.check("jitter", c);
    }
    if let Some(loss) = loss {
        loss.check("loss", c);
    }
    if let Some(queue) = queue {
        c.key("queue", |c| queue.check(c));
    }
    if let Some(overhead) = overhead {
        c.range("overhead", *overhead, Bytes::ZERO..=Bytes::new(65_535));
    }
    if let Some(reordering) = reordering {
        c.key("reordering", |c| reordering.check(c));
    }
}

fn check_delay(delay: &Delay, c: &mut Check) {
    match delay {
        Delay::Constant { delay } => c.span("delay", *delay),
        Delay::Steps { steps } => c.key("delay", |c| {
            c.key("steps", |c| {
                c.times(steps);
                for (i, (_, delay)) in steps.iter().enumerate() {
                    c.index(i, |c| c.within(*delay, units::check::Range::POSITIVE_SPAN));
                }
            });
        }),
        Delay::Trace { file, offset } => c.key("delay", |c| check_file(file, *offset, c)),
    }
}

/// A recording, and the moment of it at which a run begins.
fn check_file(file: &str, offset: Option<Span>, c: &mut Check) {
    if file.is_empty() {
        c.key("file", |c| c.wrong("a file name is required"));
    }
    c.range("offset", offset.unwrap_or_default(), Span::ZERO..=MAX_SPAN);
}

pub(super) fn check_capacity(key: &str, capacity: &Capacity, c: &mut Check) {
    if let Capacity::Constant { rate } = capacity {
        return c.rate(key, *rate);
    }
    c.key(key, |c| match capacity {
        Capacity::Constant { .. } => {}
        Capacity::Steps { steps } => c.rates("steps", steps),
        Capacity::Trace { file, offset, .. } => check_file(file, *offset, c),
        Capacity::Synthetic(of) => of.check(c),
    });
}
