//! From a scenario to a world that is ready to run.

mod links;
mod nr;
mod radio;
pub(crate) mod recordings;
mod surroundings;
mod watch;

use crate::error::Error;
use crate::hosts::{Flow, Hosts};
use crate::middlebox::Middleboxes;
use crate::network::Network;
use crate::network::link::PlacedLink;
use crate::network::medium::{AnyMedium, PlacedMedium};
use crate::network::packet::End;
use crate::network::route::Hop;
use crate::parts::{Kind, Parts};
use crate::reporting::Reports;
use crate::rows::RunId;
use crate::rows::links::LinkRows;
use crate::world::World;
use cc::Random;
use des::Streams;
use rand_xoshiro::rand_core::Rng as _;
use record::{Output, Tables};
use recordings::{Playback, Recordings};
use scenario::{ProxyPolicy, Scenario, Transport};
use std::collections::VecDeque;
use traffic::App;
use units::{Span, Time};

/// The world of one run of a scenario; `live` if packets come from outside and links change while it runs.
pub(crate) fn world<'a>(
    scenario: &'a Scenario,
    id: RunId,
    recordings: &Recordings,
    output: Option<&Output>,
    live: bool,
) -> Result<World<'a>, Error> {
    let mut world = World {
        scenario,
        id,
        streams: Streams::new(scenario.seed, id.run.into()),
        parts: Parts::new(),
        network: Network::default(),
        middleboxes: Middleboxes::default(),
        hosts: Hosts::new(id),
        link_rows: LinkRows::new(id, scenario.links.len()),
        tables: Tables::default(),
        arrived: VecDeque::new(),
        visitors: 0,
        reports: None,
    };
    let begin = recordings.begin(scenario, &world.streams);
    add_links(&mut world, recordings, begin.unwrap_or_default(), live);
    add_radio(&mut world, Playback { channels: &recordings.channels, begin });
    for flow in &scenario.flows {
        add_flows(&mut world, flow);
    }
    // The last one is of all packets from outside together.
    world.network.traffic.lost = vec![0; world.hosts.len() as usize + 1];
    world.network.traffic.watch = watch::watch(scenario, &world.network.media, id, output)?;
    world.network.connect();
    if let Some(interval) = scenario.record.samples.interval() {
        let part = world.parts.add(Kind::Sample);
        world.parts.agenda.wake(part, Some(Time::ZERO + interval));
    }
    if scenario.warmup > Span::ZERO {
        let part = world.parts.add(Kind::WarmedUp);
        world.parts.agenda.wake(part, Some(Time::ZERO + scenario.warmup));
    }
    Ok(world)
}

fn add_links(world: &mut World, recordings: &Recordings, begin: Span, live: bool) {
    let World { scenario, streams, parts, network, .. } = world;
    for (i, of) in (0..).zip(&scenario.links) {
        let part = parts.add(Kind::Link(i));
        let service = links::service(of, scenario.duration, &recordings.traces, begin, streams);
        let delay = links::delay(&of.delay, &recordings.delays, begin);
        // Senders are told when packets leave a queue in a host, which a foreseen link does not do.
        let carrier = links::link(of, (service, delay), streams, !(live || of.queue_in_host));
        network.links.push(PlacedLink::new(of.name.clone(), carrier, of.queue_in_host, part));
        network.hops.insert(of.name.clone(), Hop::Link(i));
    }
}

fn add_radio(world: &mut World, playback: Playback<'_>) {
    let World { scenario, id, streams, parts, network, .. } = world;
    let Some(radio_network) = &scenario.radio else { return };
    let radio = radio::radio(scenario, radio_network, *id, playback, streams);
    let part = parts.add(Kind::Medium(network.media.len() as u16));
    let placed = PlacedMedium::new(AnyMedium::Radio(Box::new(radio)), part);
    network.add_medium(placed);
    network.wake_media(&mut parts.agenda);
    let has_readers = radio_network.proxy().is_some_and(|proxy| proxy.policy != ProxyPolicy::Split);
    if let Some(radio) = network.radio().filter(|_| has_readers) {
        world.reports = Some(Reports::new(radio_network, radio, parts, streams));
    }
}

/// Adds the copies of a flow.
fn add_flows<'a>(world: &mut World<'a>, flow: &'a scenario::Flow) {
    let mut routes = [0; 2];
    routes[End::From as usize] = world.network.add_route(&flow.return_route);
    routes[End::To as usize] = world.network.add_route(&flow.route);
    if flow.transport() == Transport::Tcp {
        world.place_peps(routes[End::To as usize], routes[End::From as usize]);
        if flow.proxied {
            world.place_proxy(routes[End::To as usize], routes[End::From as usize]);
        }
    }
    let tracks_host = flow.tcp.small_queues && flow.transport() == Transport::Tcp;
    // What an end sends takes the route towards the other.
    let hosts = [End::To, End::From]
        .map(|towards| if tracks_host { world.network.track_host(routes[towards as usize]) } else { None });
    let World { scenario, streams, parts, hosts: all, .. } = world;
    let nodes = [&flow.from, &flow.to].map(|name| all.node(name, &scenario.hosts, streams, parts));
    for copy in 0..flow.count {
        let name = format!("flow {} {copy}", flow.name);
        let mut random = world.streams.named(&name);
        let start = Time::ZERO
            + flow.start
            + flow.stagger * copy.into()
            + jitter(flow.start_jitter, &mut world.streams.named(&format!("{name} start")));
        let stop = flow.stop.map(|stop| Time::ZERO + stop);
        let app = App::new(&flow.traffic, flow.tcp.mss, start, stop, random.clone());
        // The controllers and the application draw from different parts of the flow's stream.
        random.long_jump();
        let part = world.parts.add(Kind::Flow(world.hosts.len()));
        world.parts.agenda.wake(part, app.poll_timeout());
        world.hosts.add(Flow::new((flow, copy), app, part, (&flow.tcp).into(), (routes, hosts, nodes), start, random));
    }
}

/// A moment up to `width` later, equally likely each.
fn jitter(width: Span, random: &mut Random) -> Span {
    width.mul_div(random.next_u64() >> 32, 1 << 32)
}
