//! Builds links and their queues.

use super::recordings::{DelayTraces, Traces};
use crate::network::link::Carrier;
use des::Streams;
use link::{Delays, Schedule, Sharing};
use scenario::{Capacity, Delay, Queue};
use std::collections::BTreeMap;
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
        loss: of.loss,
        delay,
        reordering: of.reordering,
        jitter: of.jitter,
    };
    Carrier::new(config, streams.named(&format!("link {name} wire")), foresee)
}

/// Returns what was read of a file that the scenario names.
fn recorded<'a, T>(all: &'a BTreeMap<String, Arc<T>>, file: &str) -> &'a Arc<T> {
    all.get(file).expect("every trace of the scenario was loaded")
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
        Delay::Trace { file, offset } => varying(Arc::clone(recorded(traces, file)), offset.unwrap_or(begin)),
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
            let trace = recorded(traces, file);
            link::Service::Trace { trace: Arc::clone(trace), sharing: *service, offset: offset.unwrap_or(begin) }
        }
        Some(Capacity::Synthetic(parameters)) => {
            let mut random = streams.named(&format!("link {} trace", of.name));
            let trace = Arc::new(link::trace::synthetic(parameters, duration, &mut random));
            link::Service::Trace { trace, sharing: Sharing::Bytes, offset: Span::ZERO }
        }
    }
}

/// A queue discipline; `name` is whose it is.
pub(super) fn queue(queue: Queue, streams: &Streams, name: &str) -> Queue {
    use rand_xoshiro::rand_core::Rng;
    queue.salted(|| streams.named(&format!("{name} salt")).next_u64())
}
