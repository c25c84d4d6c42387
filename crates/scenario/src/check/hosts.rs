//! Checks of hosts.

use crate::faults::*;
use crate::*;
use units::Span;

/// The longest processing time.
const LONGEST: Span = Span::from_secs(1);
/// The most quantiles.
const MOST_QUANTILES: usize = 100;

/// Checks the processing times. [`crate::topology`] checks the names.
pub(super) fn check(hosts: &Hosts, c: &mut Check) {
    check_processing(&hosts.processing, c);
    for (i, host) in hosts.named.iter().enumerate() {
        c.key("named", |c| c.index(i, |c| check_processing(&host.processing, c)));
    }
}

fn check_processing(processing: &Processing, c: &mut Check) {
    match processing {
        Processing::Constant { time } => c.range("processing", *time, Span::ZERO..=LONGEST),
        Processing::Linux => {}
        Processing::Quantiles { points } => c.key("processing", |c| c.key("points", |c| check_quantiles(points, c))),
    }
}

fn check_quantiles(points: &[(f64, Span)], c: &mut Check) {
    let ends = [points.first(), points.last()].map(|end| end.map(|(share, _)| *share));
    if points.len() > MOST_QUANTILES {
        return c.wrong(format!("{} quantiles; at most {MOST_QUANTILES}", points.len()));
    }
    if ends != [Some(0.0), Some(1.0)] {
        return c.wrong("the first share must be 0 and the last one 1");
    }
    for (i, pair) in points.windows(2).enumerate() {
        if !(pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1) {
            c.index(i + 1, |c| c.wrong("shares must increase, and times must not decrease"));
        }
    }
    if let Some((_, last)) = points.last() {
        c.index(points.len() - 1, |c| c.within(*last, Span::ZERO..=LONGEST));
    }
}
