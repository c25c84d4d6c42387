//! From a scenario's words to the endpoints' and the watch's settings.

use crate::Error;
use crate::watch::Watch;
use cc::cubic::{Cubic, CubicConfig};
use cc::multi_domain::{MultiDomain, MultiDomainConfig};
use cc::scalable::{Scalable, ScalableConfig};
use cc::vegas::{Vegas, VegasConfig};
use cc::{AnyController, Random};
use rand_xoshiro::rand_core::Rng;
use record::tables::Events;
use record::{Capture, Output};
use scenario::{Cc, Flow, Scenario};
use units::Span;

/// The congestion controller of a flow's connection.
pub(crate) fn controller(flow: &Flow) -> AnyController {
    let window = flow.tcp.initial_window;
    match flow.cc {
        Cc::Cubic => Cubic::new(CubicConfig::default(), window).into(),
        Cc::NewReno => cc::new_reno::NewReno::new(window).into(),
        Cc::Bbr => cc::bbr::Bbr::new(window).into(),
        Cc::Vegas => Vegas::new(VegasConfig::default(), window).into(),
        Cc::Westwood => cc::westwood::Westwood::new(window).into(),
        Cc::Yeah => cc::yeah::Yeah::new(window).into(),
        Cc::Scalable { step, decrease } => Scalable::new(scalable(step, decrease, false), window).into(),
        Cc::Mdcc { step, per_acknowledgement, decrease, loss_filter, early_retransmission } => {
            let scalable = scalable(step, decrease, per_acknowledgement);
            let default = MultiDomainConfig::default();
            let config = MultiDomainConfig { scalable, loss_filter, early_retransmission, ..default };
            MultiDomain::new(config, window).into()
        }
    }
}

/// An endpoint's settings.
pub(crate) fn tcp(of: &scenario::Tcp) -> tcp::Config {
    let receive_buffer = of.receive_buffer.get().min(u32::MAX.into()) as u32;
    let default = tcp::Config::default();
    tcp::Config {
        // The scenario gives the payload of a full segment, the option counts the timestamps in.
        mss: of.mss as u16 + 12,
        ecn: of.ecn,
        receive_buffer: default.receive_buffer.min(receive_buffer),
        receive_buffer_max: receive_buffer,
        window_clamp: of.window_clamp.map(|c| c.get().min(u32::MAX.into()) as u32),
        delayed_ack: of.delayed_ack,
        slow_start_after_idle: of.slow_start_after_idle,
        send_buffer: of.send_buffer.get(),
        pacing: of.pacing,
        tso: of.tso,
        rto_min: of.min_rto,
        ..default
    }
}

/// A moment up to `width` later, equally likely each.
pub(crate) fn jitter(width: Span, random: &mut Random) -> Span {
    width.mul_div(random.next_u64() >> 32, 1 << 32)
}

/// A random number from 0 to 1, without 1.
pub(crate) fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The watch that a scenario asks for, if it asks for any.
pub(crate) fn watch(
    scenario: &Scenario,
    links: &[String],
    (point, run): (u32, u32),
    output: Option<&Output>,
) -> Result<Option<Box<Watch>>, Error> {
    let record = &scenario.record;
    // A radio hop is no link with an interface.
    let is_link = |name: &String| scenario.links.iter().any(|link| link.name == *name);
    let captured = |name: &String| record.pcap.iter().any(|p| p == "*" || p == name) && is_link(name);
    let wanted: Vec<&str> = links.iter().filter(|l| captured(l)).map(String::as_str).collect();
    if !record.events && wanted.is_empty() {
        return Ok(None);
    }
    let mut interfaces = vec![None; links.len()];
    let places = links.iter().enumerate().filter(|(_, l)| captured(l)).map(|(i, _)| i);
    for (interface, link) in places.enumerate() {
        interfaces[link] = Some(interface as u32);
    }
    let captures = match output {
        Some(output) if !wanted.is_empty() => {
            let file = output.file(&format!("captures/point-{point}-run-{run}.pcapng"))?;
            Some(Capture::new(file, wanted.iter().copied())?)
        }
        _ => None,
    };
    let nodes = scenario.nodes();
    let node = |name: &str| nodes.iter().position(|n| *n == name).unwrap_or_default() as u32;
    let copies = |f: &Flow| vec![(f.name.clone(), [node(&f.from), node(&f.to)]); f.count as usize];
    Ok(Some(Box::new(Watch {
        point,
        run,
        events: record.events.then(Events::default),
        captures,
        interfaces,
        flows: scenario.flows.iter().flat_map(copies).chain([("visitors".to_owned(), [0, 0])]).collect(),
        links: links.to_vec(),
        log: Vec::new(),
        kept: Vec::new(),
        failure: None,
    })))
}

/// The controller counts whole acknowledgements for a segment of growth, and 1024ths of the window.
fn scalable(step: f64, decrease: f64, per_acknowledgement: bool) -> ScalableConfig {
    ScalableConfig {
        acks_per_segment: (1.0 / step).round().max(1.0) as u32,
        decrease_1024ths: (decrease * 1024.0).round() as u32,
        per_acknowledgement,
    }
}
