//! From a scenario's description to the parts that run: links, routes, applications, endpoints' settings.

use crate::Error;
use crate::lte::{Channels, load_channels};
use crate::network::Carrier;
use aqm::{codel, drop_tail, fq, fq_codel, pfifo_fast};
use des::Streams;
use link::{Schedule, Sharing, Trace};
use scenario::{Capacity, Flow, Gap, Jitter, Loaded, Loss, Queue, Scenario, Service, Size, Traffic};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Bytes, Rate, Span, Time};

/// The recorded traces that a scenario's links name, by the name that they use.
pub(crate) type Traces = BTreeMap<String, Arc<Trace>>;

/// Everything recorded that a scenario names.
pub(crate) struct Recordings {
    pub(crate) traces: Traces,
    pub(crate) channels: Channels,
}

/// Reads everything recorded that `loaded` names.
pub(crate) fn load_recordings(loaded: &Loaded) -> Result<Recordings, Error> {
    Ok(Recordings { traces: load_traces(loaded)?, channels: load_channels(loaded)? })
}

/// The traces that the links of `loaded` name.
fn load_traces(loaded: &Loaded) -> Result<Traces, Error> {
    let mut traces = Traces::new();
    for link in loaded.points().iter().flat_map(|p| &p.scenario.links) {
        let Some(Capacity::Trace { file, .. }) = &link.rate else { continue };
        if !traces.contains_key(file) {
            let text = loaded.trace(file).expect("a loaded scenario's traces were read");
            let trace = Trace::parse(text).map_err(|e| Error::Trace { file: file.clone(), what: e.to_string() })?;
            traces.insert(file.clone(), Arc::new(trace));
        }
    }
    Ok(traces)
}

/// One direction of a link, ready to run; `foresee` as in [`Carrier::new`].
pub(crate) fn link(of: &scenario::Link, service: link::Service, streams: &Streams, foresee: bool) -> Carrier {
    let name = &of.name;
    let config = link::Config {
        queue: queue(&of.queue, streams, &format!("link {name}")),
        service,
        overhead: of.overhead.get() as u32,
        loss: match of.loss {
            None => link::Loss::None,
            Some(Loss::Random { probability }) => link::Loss::Independent { probability },
            Some(Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
                link::Loss::GilbertElliott { to_bad: good_to_bad, to_good: bad_to_good, loss_good, loss_bad }
            }
        },
        delay: of.delay,
        jitter: match of.jitter {
            None => link::Jitter::None,
            Some(Jitter::Uniform { max }) => link::Jitter::Uniform { max },
            Some(Jitter::HalfNormal { sigma }) => link::Jitter::HalfNormal { sigma },
        },
    };
    Carrier::new(config, streams.named(&format!("link {name} wire")), foresee)
}

/// The moment of the recorded traces at which a run begins: their beginning in a scenario of a single run, otherwise a
/// random whole millisecond, another one in each run.
///
/// It is the same for all links of a run, so that traces that were recorded together, as both directions of a link, stay
/// together.
pub(crate) fn trace_offset(scenario: &Scenario, traces: &Traces, streams: &Streams) -> Span {
    use rand_xoshiro::rand_core::Rng;
    if scenario.runs < 2 {
        return Span::ZERO;
    }
    let period = |link: &scenario::Link| match &link.rate {
        Some(Capacity::Trace { file, offset: None, .. }) => Some(trace_of(traces, file).period().as_millis()),
        _ => None,
    };
    let longest = scenario.links.iter().filter_map(period).max().unwrap_or(0);
    let draw = streams.named("trace offset").next_u64();
    // The high half of a product is below `longest`, and equally likely each.
    Span::from_millis(((u128::from(draw) * u128::from(longest)) >> 64) as u64)
}

fn trace_of<'a>(traces: &'a Traces, file: &str) -> &'a Arc<Trace> {
    traces.get(file).expect("every trace of the scenario was loaded")
}

/// How a link serves packets; `begin` is the moment at which recorded traces begin that have no offset of their own.
pub(crate) fn service(
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
pub(crate) fn queue(queue: &Queue, streams: &Streams, name: &str) -> aqm::Config {
    use rand_xoshiro::rand_core::Rng;
    let salt = || streams.named(&format!("{name} salt")).next_u64();
    let params = |target, interval, ecn, ce_threshold| codel::Params {
        target,
        interval,
        ecn,
        ce_threshold,
        ..codel::Params::default()
    };
    match *queue {
        Queue::DropTail { packets, bytes, drop } => aqm::Config::DropTail(drop_tail::Config {
            packets: packets.map(u64::from),
            bytes: bytes.map(Bytes::get),
            victim: match drop {
                scenario::Drop::Tail => drop_tail::Victim::Arriving,
                scenario::Drop::Head => drop_tail::Victim::Oldest,
            },
        }),
        Queue::PfifoFast { packets } => {
            aqm::Config::PfifoFast(pfifo_fast::Config { packets_per_band: Some(packets.into()) })
        }
        Queue::Codel { target, interval, packets, ecn, ce_threshold } => aqm::Config::Codel(codel::Config {
            packets: Some(packets.into()),
            params: params(target, interval, ecn, ce_threshold),
        }),
        Queue::Fq { packets, queues, quantum } => aqm::Config::Fq(fq::Config {
            packets: Some(packets.into()),
            flows: queues,
            quantum: quantum.get() as u32,
            salt: salt(),
        }),
        Queue::FqCodel { target, interval, packets, bytes, queues, quantum, ecn, ce_threshold } => {
            aqm::Config::FqCodel(fq_codel::Config {
                packets: Some(packets.into()),
                memory: Some(bytes.get()),
                flows: queues,
                quantum: quantum.get() as u32,
                salt: salt(),
                params: params(target, interval, ecn, ce_threshold),
            })
        }
    }
}

/// The application of a flow.
pub(crate) fn application(flow: &Flow) -> traffic::Config {
    match &flow.traffic {
        Traffic::Bulk => traffic::Config::Bulk,
        Traffic::Transfer { size } => traffic::Config::Transfer { bytes: *size },
        Traffic::ShortFlows { size: of, interval, count } => {
            traffic::Config::ShortFlows { size: size(of), gap: traffic::Gap::Every(length(interval)), count: *count }
        }
        Traffic::OnOff { on, off, rate } => {
            traffic::Config::OnOff { rate: *rate, write: flow.tcp.mss, on: length(on), off: length(off) }
        }
        Traffic::Pages { objects, object_size, connections, request, think, count } => traffic::Config::Pages {
            connections: *connections,
            request: *request,
            objects: vec![size(object_size); *objects as usize],
            think: length(think),
            count: *count,
        },
        Traffic::Cbr { rate, packet } => traffic::Config::Cbr { rate: *rate, packet: packet.get() as u32 },
        Traffic::Ppbp { burst_rate, mean_burst, arrival_rate, hurst, packet } => traffic::Config::Ppbp {
            bursts_per_s: *arrival_rate,
            burst: *mean_burst,
            hurst: *hurst,
            rate: *burst_rate,
            packet: packet.get() as u32,
        },
    }
}

/// Whether the application of a flow can run with its parameters.
pub(crate) fn check_application(flow: &Flow) -> Result<(), Error> {
    let app = traffic::App::new(&application(flow), Time::ZERO, None, Streams::new(0, 0).named("check"));
    app.map(drop).map_err(|e| Error::Flow { flow: flow.name.clone(), what: e.to_string() })
}

fn size(size: &Size) -> traffic::Size {
    match *size {
        Size::Constant { size } => traffic::Size::Fixed(size),
        Size::Exponential { mean } => traffic::Size::Exponential { mean },
        Size::Pareto { mean, shape } => traffic::Size::Pareto { mean, shape },
    }
}

fn length(gap: &Gap) -> traffic::Length {
    match *gap {
        Gap::Constant { time } => traffic::Length::Fixed(time),
        Gap::Exponential { mean } => traffic::Length::Exponential { mean },
        Gap::Pareto { mean, shape } => traffic::Length::Pareto { mean, shape },
    }
}

/// How many bytes of packets `link` could have carried in `span` from `from` on; `None` if a trace or nothing limits it.
pub(crate) fn capacity(link: &scenario::Link, from: Span, span: Span) -> Option<f64> {
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
