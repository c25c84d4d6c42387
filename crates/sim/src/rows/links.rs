//! The rows of links and their queues.

use super::RunId;
use crate::network::link::PlacedLink;
use record::ms;
use record::tables::{LinkRow, Links, QueueRow, Queues};
use scenario::Capacity;
use std::ops::Range;
use units::{Bytes, Rate, Span, Time};

/// What the links had counted at the end of the warm-up and at the last sample, by link.
pub(crate) struct LinkRows {
    id: RunId,
    before: Vec<Before>,
    sampled: Vec<Sampled>,
}

/// What a link had counted at the end of the warm-up.
#[derive(Clone, Copy, Default)]
struct Before {
    stats: link::Stats,
    marks: u64,
    /// Bytes of the packet in service that were still to be served.
    unserved: f64,
}

/// What a link had counted at a moment: bytes and packets served, how long these had waited together, and a trace's bytes that
/// passed unused.
#[derive(Clone, Copy, Default)]
struct Sampled {
    served: u64,
    packets: u64,
    waited: Span,
    wasted: u64,
}

impl LinkRows {
    /// For so many links, which have counted nothing yet.
    pub(crate) fn new(id: RunId, links: usize) -> LinkRows {
        LinkRows { id, before: vec![Default::default(); links], sampled: vec![Default::default(); links] }
    }

    /// The rows of the queues at a sampling moment. The scenario describes the links `of`.
    pub(crate) fn sample(
        &mut self,
        links: &mut [PlacedLink],
        of: &[scenario::Link],
        now: Time,
        interval: Span,
        table: &mut Queues,
    ) {
        let from = (now - Time::ZERO).saturating_sub(interval);
        for ((link, of), before) in links.iter_mut().zip(of).zip(&mut self.sampled) {
            let stats = link.stats(now);
            let backlog = link.backlog(now);
            let served = Bytes::new(stats.served.bytes - before.served);
            let is_limited = of.rate.is_some() && !link.is_changed();
            let capacity = is_limited.then(|| {
                // Of a trace: what was served and what was not used of it.
                let unused = stats.wasted.saturating_sub(before.wasted);
                capacity(of, from, interval).unwrap_or((served.get() + unused) as f64)
            });
            let left = stats.served.packets - before.packets;
            let waited = stats.total_sojourn.saturating_sub(before.waited);
            let longest = link.take_longest_wait(now);
            table.push(&QueueRow {
                point: self.id.point,
                run: self.id.run,
                link: &link.name,
                t_s: now.as_secs_f64(),
                packets: backlog.packets,
                bytes: backlog.bytes,
                dropped: stats.overflows + stats.control_drops + stats.losses,
                marked: link.marks(),
                served_mbps: Rate::over(served, interval).as_mbps(),
                capacity_mbps: capacity.map(|bytes| bytes * 8e-6 / interval.as_secs_f64()),
                sojourn_ms: (left > 0).then(|| ms(waited) / left as f64),
                sojourn_max_ms: (left > 0).then(|| ms(longest)),
            });
            *before = Sampled {
                served: stats.served.bytes,
                packets: stats.served.packets,
                waited: stats.total_sojourn,
                wasted: stats.wasted,
            };
        }
    }

    /// Ends the warm-up: the summary leaves out what was counted so far.
    pub(crate) fn warmed_up(&mut self, links: &mut [PlacedLink], of: &[scenario::Link], now: Time) {
        for ((link, of), before) in links.iter_mut().zip(of).zip(&mut self.before) {
            let stats = link.stats(now);
            *before = Before { stats, marks: link.marks(), unserved: unserved(of, &stats, now) };
            link.forget_waits();
        }
    }

    /// The rows of the links at the end of a run that was measured from `warmup` on.
    pub(crate) fn finish(
        &self,
        links: &mut [PlacedLink],
        of: &[scenario::Link],
        measured: (Span, Time),
        table: &mut Links,
    ) {
        self.rows_so_far(0..links.len(), links, of, measured, table);
    }

    /// The rows of `some` of the links at a moment, as if the run ended there.
    pub(crate) fn rows_so_far(
        &self,
        some: Range<usize>,
        links: &mut [PlacedLink],
        of: &[scenario::Link],
        (warmup, end): (Span, Time),
        table: &mut Links,
    ) {
        let span = (end - Time::ZERO).saturating_sub(warmup);
        for ((link, of), Before { stats: before, marks, unserved: unserved_before }) in
            links.iter_mut().zip(of).zip(&self.before).skip(some.start).take(some.len())
        {
            let stats = link.stats(end);
            let begun = stats.served.bytes - before.served.bytes;
            // Of a packet whose service spans an edge of the measured time, only the part within it counts.
            let served = begun as f64 + unserved_before - unserved(of, &stats, end);
            let could = match capacity(of, warmup, span) {
                // After a change the capacity is not known.
                _ if link.is_changed() => 0.0,
                Some(bytes) => bytes,
                // A trace: what was served and what was not used of it.
                None if of.rate.is_some() => (begun + stats.wasted - before.wasted) as f64,
                None => f64::INFINITY,
            };
            let waits = link.waits();
            let quantile = |q| waits.quantile(q).map(ms);
            table.push(&LinkRow {
                point: self.id.point,
                run: self.id.run,
                link: &link.name,
                packets_in: stats.arrived.packets - before.arrived.packets,
                packets_out: stats.delivered.packets - before.delivered.packets,
                bytes_out: stats.delivered.bytes - before.delivered.bytes,
                dropped_overflow: stats.overflows - before.overflows,
                dropped_control: stats.control_drops - before.control_drops,
                dropped_loss: stats.losses - before.losses,
                marked: link.marks() - marks,
                utilisation: if could > 0.0 { served / could } else { 0.0 },
                sojourn_p50_ms: quantile(0.5),
                sojourn_p95_ms: quantile(0.95),
                sojourn_p99_ms: quantile(0.99),
            });
        }
    }
}

/// The bytes that a link with a known rate has yet to serve at `now` of the packet in service.
fn unserved(of: &scenario::Link, stats: &link::Stats, now: Time) -> f64 {
    let left = stats.service_ends.saturating_since(now);
    capacity(of, now - Time::ZERO, left).unwrap_or(0.0)
}

/// How many bytes of packets `link` could have carried in `span` from `from` on; `None` if a trace or nothing limits it.
fn capacity(link: &scenario::Link, from: Span, span: Span) -> Option<f64> {
    let steps = match link.rate.as_ref()? {
        Capacity::Constant { rate } => vec![(Span::ZERO, *rate)],
        Capacity::Steps { steps } => steps.clone(),
        Capacity::Trace { .. } | Capacity::Synthetic { .. } => return None,
    };
    let until = from + span;
    let ends = steps.iter().skip(1).map(|s| s.0).chain([Span::MAX]);
    let part = |((begin, rate), end): ((Span, Rate), Span)| {
        end.min(until).saturating_sub(begin.max(from)).as_secs_f64() * rate.bits_per_sec() as f64 / 8.0
    };
    Some(steps.iter().copied().zip(ends).map(part).sum())
}
