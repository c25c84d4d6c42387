//! Which of a scenario's flows the kernel can carry.

use super::flow::Flow;
use super::settings;
use crate::Error;
use cc::bbr::Version;
use cc::scalable;
use netio::socket::check_congestion;
use scenario::{Cc, Hosts, Scenario, Tcp, Traffic};
use std::collections::BTreeSet;
use traffic::short_flows::Single;
use units::Span;

/// Most flows: beyond them, the receivers' ports would meet iperf3's.
const MOST_FLOWS: usize = 200;

/// Returns a scenario's flows, one for each copy. `host_of` maps a node to its host.
///
/// # Errors
/// A line about the first flow that the kernel cannot carry as the scenario has it.
pub fn flows(scenario: &Scenario, host_of: impl Fn(&str) -> Option<usize>) -> Result<Vec<Flow>, Error> {
    let count: usize = scenario.flows.iter().map(|flow| flow.count as usize).sum();
    if count > MOST_FLOWS {
        return Err(Error::Wrong(format!("the kernel carries up to {MOST_FLOWS} flows, not {count}")));
    }
    let mut flows = Vec::with_capacity(count);
    let mut known = BTreeSet::new();
    for flow in &scenario.flows {
        let wrong = |what: String| Error::Wrong(format!("flow {}: {what}", flow.name));
        let host = |node: &str| host_of(node).ok_or_else(|| wrong(format!("its end `{node}` is not a real host")));
        let bytes = match &flow.traffic {
            Traffic::Bulk => None,
            Traffic::Transfer(Single { size }) => Some(size.get()),
            _ => return Err(wrong("the kernel carries only `bulk` and `transfer` traffic".to_owned())),
        };
        if flow.start_jitter > Span::ZERO {
            return Err(wrong(
                "`start_jitter` is drawn by the simulator; a flow of the kernel needs `start` and `stagger`".to_owned(),
            ));
        }
        let cc = kernel_name(&flow.cc).map_err(wrong)?;
        if known.insert(cc) {
            check_congestion(cc).map_err(wrong)?;
        }
        let tos = tos(flow.priority).ok_or_else(|| {
            let priority = flow.priority;
            wrong(format!("priority {priority} has no TOS byte; supported: 0 (0x00), 2 (0x08), 4 (0x18), 6 (0x10)"))
        })?;
        if cc == "bbr" && flow.tcp.pacing == Some(false) {
            return Err(wrong("the kernel's `bbr` paces, with `pacing = false` too".to_owned()));
        }
        settings::check(&flow.tcp).map_err(wrong)?;
        let (from, to) = (host(&flow.from)?, host(&flow.to)?);
        flows.extend((0..flow.count).map(|copy| Flow {
            name: flow.name.clone(),
            copy,
            cc,
            from,
            to,
            start: flow.start + Span::from_nanos(flow.stagger.as_nanos().saturating_mul(copy.into())),
            stop: flow.stop,
            bytes,
            reader: flow.reader,
            tos,
            tcp: flow.tcp.clone(),
        }));
    }
    settings::agree(&flows)?;
    Ok(flows)
}

/// Returns the keys that a scenario sets and the kernel does not follow, because it decides them itself.
pub fn unheeded(scenario: &Scenario) -> Vec<&'static str> {
    let default = Tcp::default();
    let keys = |tcp: &Tcp| {
        [
            ("tcp.linux", tcp.linux != default.linux),
            ("tcp.ssthresh_cache", tcp.ssthresh_cache != default.ssthresh_cache),
            ("tcp.small_queues", tcp.small_queues != default.small_queues),
            ("tcp.tso", tcp.tso != default.tso),
            ("tcp.send_autotuning", tcp.send_autotuning != default.send_autotuning),
            ("tcp.max_header", tcp.max_header != default.max_header),
        ]
    };
    let set = scenario.flows.iter().flat_map(|flow| keys(&flow.tcp)).filter(|&(_, is_set)| is_set);
    let mut unheeded: Vec<&str> = (scenario.hosts != Hosts::default()).then_some("hosts").into_iter().collect();
    for (key, _) in set {
        if !unheeded.contains(&key) {
            unheeded.push(key);
        }
    }
    unheeded
}

/// Returns the kernel's name of a congestion control that this kernel has.
///
/// # Errors
/// What it lacks.
pub(crate) fn congestion_control(cc: &Cc) -> Result<&'static str, String> {
    let name = kernel_name(cc)?;
    check_congestion(name).map(|()| name)
}

/// Returns the kernel's name of a congestion control, if it has one.
fn kernel_name(cc: &Cc) -> Result<&'static str, String> {
    Ok(match cc {
        Cc::NewReno => "reno",
        Cc::Bbr(bbr) if bbr.linux == Version::Linux4_9 => {
            return Err("this kernel's `bbr` is not that of Linux 4.9".into());
        }
        Cc::Scalable(given) if *given != scalable::Parameters::default() => {
            let scalable::Parameters { step, decrease } = scalable::Parameters::default();
            return Err(format!("the kernel's `scalable` has step {step} and decrease {decrease} alone"));
        }
        // The parameters of `mdcc` are the module's.
        other => other.name(),
    })
}

/// Returns the TOS byte that Linux maps to a priority (`ip_tos2prio`).
fn tos(priority: u8) -> Option<u8> {
    match priority {
        0 => Some(0x00),
        2 => Some(0x08),
        4 => Some(0x18),
        6 => Some(0x10),
        _ => None,
    }
}
