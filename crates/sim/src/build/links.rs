//! Builds links and their queues.

use super::recordings::{DelayTraces, Traces};
use crate::network::link::Carrier;
use des::Streams;
use link::{Delays, Schedule, Sharing, Trace};
use scenario::{Capacity, Delay, Jitter, Loss, Queue, Service};
use std::sync::Arc;
use units::{Rate, Span, Time};

/// One direction of a link, ready to run; `foresee` as in [`Carrier::new`].
pub(super) fn link(
    of: &scenario::Link,
    (service, delay): (link::Service, link::Delay),
    streams: &Streams,
    foresee: bool,
) -> Carrier {
    let name = &of.name;
    let config = link::Config {
        queue: queue(of.queue, streams, &format!("link {name}")),
        service,
        overhead: of.overhead.get() as u32,
        loss: match of.loss {
            None => link::Loss::None,
            Some(Loss::Random { probability }) => link::Loss::Independent { probability },
            Some(Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
                link::Loss::GilbertElliott { to_bad: good_to_bad, to_good: bad_to_good, loss_good, loss_bad }
            }
        },
        delay,
        reordering: of.reordering.map_or_else(link::Reordering::default, |r| link::Reordering {
            share: r.share,
            delay: r.delay,
            spread: r.spread,
        }),
        jitter: match of.jitter {
            None => link::Jitter::None,
            Some(Jitter::Uniform { max }) => link::Jitter::Uniform { max },
            Some(Jitter::HalfNormal { sigma }) => link::Jitter::HalfNormal { sigma },
        },
    };
    Carrier::new(config, streams.named(&format!("link {name} wire")), foresee)
}

fn trace_of<'a>(traces: &'a Traces, file: &str) -> &'a Arc<Trace> {
    traces.get(file).expect("every trace of the scenario was loaded")
}

/// The delay of a link; `begin` as in [`service`].
pub(super) fn delay(of: &Delay, traces: &DelayTraces, begin: Span) -> link::Delay {
    let varying = |delays, offset| link::Delay::Varying { delays, offset };
    match of {
        Delay::Constant { delay } => link::Delay::Constant(*delay),
        Delay::Steps { steps } => {
            let delays = Delays::steps(steps.clone()).expect("a checked scenario's steps are in order");
            varying(Arc::new(delays), Span::ZERO)
        }
        Delay::Trace { file, offset } => {
            let delays = traces.get(file).expect("every trace of the scenario was loaded");
            varying(Arc::clone(delays), offset.unwrap_or(begin))
        }
    }
}

/// How a link serves packets; `begin` is the moment at which recorded traces begin that have no offset of their own.
pub(super) fn service(
    of: &scenario::Link,
    duration: Span,
    traces: &Traces,
    begin: Span,
    streams: &Streams,
) -> link::Service {
    match &of.rate {
        None => link::Service::Infinite,
        Some(Capacity::Constant { rate }) => link::Service::Rate(Schedule::constant(*rate)),
        Some(Capacity::Steps { steps }) => {
            let initial = steps.first().map_or(Rate::default(), |step| step.1);
            let changes = steps.iter().skip(1).map(|(at, rate)| (Time::ZERO + *at, *rate)).collect();
            link::Service::Rate(Schedule::new(initial, changes).expect("a checked scenario's steps are in order"))
        }
        Some(Capacity::Trace { file, service, offset }) => {
            let trace = trace_of(traces, file);
            let sharing = match service {
                Service::Bytes => Sharing::Bytes,
                Service::Packets => Sharing::Whole,
            };
            link::Service::Trace { trace: Arc::clone(trace), sharing, offset: offset.unwrap_or(begin) }
        }
        Some(Capacity::Synthetic { mean, peak, spread, correlation, outage_every, outage }) => {
            let parameters = link::trace::Synthetic {
                duration,
                mean: *mean,
                peak: *peak,
                spread: *spread,
                correlation: *correlation,
                outage_every: outage_every.unwrap_or(Span::MAX),
                outage: *outage,
            };
            let trace = link::trace::synthetic(&parameters, &mut streams.named(&format!("link {} trace", of.name)));
            link::Service::Trace { trace: Arc::new(trace), sharing: Sharing::Bytes, offset: Span::ZERO }
        }
    }
}

/// A queue discipline; `name` is whose it is.
pub(super) fn queue(queue: Queue, streams: &Streams, name: &str) -> Queue {
    use rand_xoshiro::rand_core::Rng;
    queue.salted(|| streams.named(&format!("{name} salt")).next_u64())
}
