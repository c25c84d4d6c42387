//! Settings of a whole namespace, and the check that flows agree on them.

use super::flow::{Flow, TIMESTAMPS};
use super::hosts::Hosts;
use crate::Error;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Command;
use units::Span;

/// `tcp_rmem[0]` and `tcp_rmem[1]`: what a socket keeps under pressure, and begins with.
const RECEIVE: [u64; 2] = [4_096, 131_072];
/// The same of `tcp_wmem`.
const SEND: [u64; 2] = [4_096, 16_384];

/// The end of a flow that a sysctl applies to.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Sender,
    Receiver,
}

/// Returns the sysctls that set these options in a namespace. New namespaces have the kernel's defaults for all others.
pub fn sysctls(tcp: &scenario::Tcp) -> Vec<(&'static str, String)> {
    let grows = |[least, first]: [u64; 2], most: u64| {
        let most = most.min(i32::MAX as u64);
        format!("{} {} {most}", least.min(most), first.min(most))
    };
    vec![
        ("net.ipv4.tcp_rmem", grows(RECEIVE, tcp.receive_buffer.get())),
        ("net.ipv4.tcp_wmem", grows(SEND, tcp.send_buffer.get())),
        ("net.ipv4.tcp_ecn", u8::from(tcp.ecn).to_string()),
        ("net.ipv4.tcp_slow_start_after_idle", u8::from(tcp.slow_start_after_idle).to_string()),
        // What one connection learns of a destination would otherwise be where the next one begins.
        ("net.ipv4.tcp_no_metrics_save", "1".to_owned()),
    ]
}

/// Whether a sysctl matters to a flow's end.
fn concerns(sysctl: &str, role: Role) -> bool {
    match sysctl {
        "net.ipv4.tcp_rmem" => role == Role::Receiver,
        "net.ipv4.tcp_wmem" | "net.ipv4.tcp_slow_start_after_idle" => role == Role::Sender,
        _ => true,
    }
}

/// The TCP options of a host's route to another one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Route {
    /// Initial window and shortest time-out of its senders; all flows that send this way agree.
    sender: Option<(u32, Span)>,
    /// Whether its receivers acknowledge each segment at once.
    at_once: Option<bool>,
}

impl Route {
    /// As `ip route` takes it; empty if the kernel's defaults are meant.
    fn options(&self) -> Vec<String> {
        let default = scenario::Tcp::default();
        let mut options = Vec::new();
        if let Some((window, min_rto)) = self.sender {
            if window != default.initial_window {
                options.extend(["initcwnd".to_owned(), window.to_string()]);
            }
            if min_rto != default.min_rto {
                options.extend(["rto_min".to_owned(), format!("{}ms", min_rto.as_millis())]);
            }
        }
        if self.at_once == Some(true) {
            options.extend(["quickack".to_owned(), "1".to_owned()]);
        }
        options
    }
}

/// Checks that the kernel can do what a flow's options say.
pub(super) fn check(tcp: &scenario::Tcp) -> Result<(), String> {
    if Span::from_millis(tcp.min_rto.as_millis()) != tcp.min_rto {
        return Err("`tcp.min_rto`: the kernel takes whole milliseconds".to_owned());
    }
    // `TCP_MIN_MSS` and `MAX_TCP_WINDOW`.
    if !(88..=32_767).contains(&(tcp.mss + TIMESTAMPS)) {
        return Err(format!("`tcp.mss`: the kernel takes from 76 to 32755 bytes, not {}", tcp.mss));
    }
    Ok(())
}

/// Checks that the flows agree on the settings of each namespace and route.
pub(super) fn agree(flows: &[Flow]) -> Result<(), Error> {
    plan(flows).map(|_| ())
}

/// Sysctls by host, and routes by host and destination.
type Plan = (BTreeMap<(usize, &'static str), String>, BTreeMap<(usize, usize), Route>);

fn plan(flows: &[Flow]) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    for flow in flows {
        let differs = |what: &str, a: &str, b: &str| {
            Error::Wrong(format!(
                "flow {}: {what} is set for a whole host, and another flow wants {a}, not {b}",
                flow.name
            ))
        };
        for (host, role) in [(flow.from, Role::Sender), (flow.to, Role::Receiver)] {
            for (sysctl, value) in sysctls(&flow.tcp).into_iter().filter(|(sysctl, _)| concerns(sysctl, role)) {
                let set = plan.0.entry((host, sysctl)).or_insert_with(|| value.clone());
                if *set != value {
                    return Err(differs(&format!("`{sysctl}`"), set, &value));
                }
            }
        }
        let (window, min_rto) = (flow.tcp.initial_window, flow.tcp.min_rto);
        let there = plan.1.entry((flow.from, flow.to)).or_default().sender.get_or_insert((window, min_rto));
        if *there != (window, min_rto) {
            let text = |(window, min_rto): (u32, Span)| format!("{window} segments and {} ms", min_rto.as_millis());
            return Err(differs("the initial window and shortest time-out", &text(*there), &text((window, min_rto))));
        }
        let at_once = !flow.tcp.delayed_ack;
        let back = plan.1.entry((flow.to, flow.from)).or_default().at_once.get_or_insert(at_once);
        if *back != at_once {
            return Err(differs("`delayed_ack`", &(!*back).to_string(), &flow.tcp.delayed_ack.to_string()));
        }
    }
    Ok(plan)
}

/// Applies the flows' settings in the namespaces of their ends.
pub(super) fn apply(hosts: &impl Hosts, flows: &[Flow]) -> Result<(), Error> {
    let (sysctls, routes) = plan(flows)?;
    for ((host, sysctl), value) in sysctls {
        hosts.inside(host, || {
            let path = format!("/proc/sys/{}", sysctl.replace('.', "/"));
            std::fs::write(path, &value).map_err(Error::system(format!("set {sysctl} to `{value}`")))
        })?;
    }
    for ((host, peer), route) in routes {
        let options = route.options();
        if !options.is_empty() {
            let (source, destination) = (hosts.address(host), hosts.address(peer));
            hosts.inside(host, || set_route(source, destination, &options))?;
        }
    }
    Ok(())
}

/// Gives the destination a route of its own, along its present route.
fn set_route(source: Ipv4Addr, destination: Ipv4Addr, options: &[String]) -> Result<(), Error> {
    let found = ip(&["route", "get", &destination.to_string()])?;
    let words: Vec<&str> = found.split_whitespace().collect();
    let after = |key: &str| words.iter().position(|word| *word == key).and_then(|i| words.get(i + 1).copied());
    let interface = after("dev").ok_or_else(|| Error::Missing(format!("no route to {destination}")))?;
    let (source, target) = (source.to_string(), format!("{destination}/32"));
    let mut arguments = vec!["route", "replace", &target];
    if let Some(gateway) = after("via") {
        arguments.extend(["via", gateway]);
    }
    arguments.extend(["dev", interface, "src", &source]);
    arguments.extend(options.iter().map(String::as_str));
    ip(&arguments).map(|_| ())
}

/// Runs `ip` in the namespace of this thread. Returns its output.
fn ip(arguments: &[&str]) -> Result<String, Error> {
    let line = format!("ip {}", arguments.join(" "));
    let output = Command::new("ip").args(arguments).output().map_err(Error::system(&line))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Missing(format!("{line}: {}", text.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, from: usize, to: usize) -> Flow {
        Flow {
            name: name.to_owned(),
            copy: 0,
            cc: "cubic",
            from,
            to,
            start: Span::ZERO,
            stop: None,
            bytes: None,
            reader: None,
            tos: 0,
            tcp: scenario::Tcp::default(),
        }
    }

    #[test]
    fn the_defaults_are_those_that_the_kernel_has_and_need_no_route() {
        let tcp = scenario::Tcp::default();
        let of = |key: &str| sysctls(&tcp).into_iter().find(|(k, _)| *k == key).map(|(_, v)| v).unwrap();
        assert_eq!(of("net.ipv4.tcp_rmem"), "4096 131072 33554432");
        assert_eq!(of("net.ipv4.tcp_wmem"), "4096 16384 4194304");
        let (_, routes) = plan(&[flow("a", 0, 1)]).unwrap();
        assert!(routes.values().all(|route| route.options().is_empty()), "{routes:?}");
    }

    #[test]
    fn a_small_buffer_bounds_what_a_socket_begins_with() {
        let tcp = scenario::Tcp { receive_buffer: units::Bytes::new(50_000), ..Default::default() };
        assert_eq!(sysctls(&tcp)[0].1, "4096 50000 50000");
    }

    #[test]
    fn windows_and_time_outs_are_the_senders_route_and_quick_acks_the_receivers() {
        let mut one = flow("a", 0, 1);
        one.tcp.initial_window = 4;
        one.tcp.min_rto = Span::from_millis(50);
        one.tcp.delayed_ack = false;
        let (_, routes) = plan(&[one]).unwrap();
        assert_eq!(routes[&(0, 1)].options(), ["initcwnd", "4", "rto_min", "50ms"]);
        assert_eq!(routes[&(1, 0)].options(), ["quickack", "1"]);
    }

    #[test]
    fn flows_that_disagree_on_a_host_are_refused_and_those_on_different_hosts_are_not() {
        let (a, mut b, mut c) = (flow("a", 0, 1), flow("b", 0, 1), flow("c", 0, 2));
        b.tcp.receive_buffer = units::Bytes::new(100_000);
        c.tcp.receive_buffer = units::Bytes::new(100_000);
        assert_eq!(
            agree(&[a.clone(), b]).unwrap_err().to_string(),
            "flow b: `net.ipv4.tcp_rmem` is set for a whole host, and another flow wants 4096 131072 33554432, not 4096 \
             100000 100000"
        );
        agree(&[a, c]).unwrap();
    }
}
