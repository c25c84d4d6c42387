//! The machine of a campaign: kernel, queueing disciplines, TCP settings; its cached TCP metrics.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A key, which is a secret.
const SECRET: &str = "tcp_fastopen_key";

/// What of this machine affects tests. Interfaces are not named: names may hold hardware addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The architecture.
    pub machine: String,
    /// The default queueing discipline, `net.core.default_qdisc`.
    pub default_qdisc: Option<String>,
    /// Queueing disciplines of the interface towards the server, root first; of simulations and emulations none.
    pub qdiscs: Vec<String>,
    /// `net.ipv4.tcp_*` by name.
    pub sysctls: BTreeMap<String, String>,
    /// What could not be read, and why.
    pub missing: Vec<String>,
}

impl Host {
    /// Reads the state of this machine, and of its interface towards a server.
    pub fn read(server: Option<IpAddr>) -> Host {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let mut host = Host { machine: std::env::consts::ARCH.to_owned(), ..Host::default() };
        let mut note = |what: &str, result: Result<String, std::io::Error>| {
            result.map_err(|why| host.missing.push(format!("{what}: {why}"))).ok()
        };
        host.kernel = note("kernel", line("/proc/sys/kernel/osrelease"));
        host.default_qdisc = note("net.core.default_qdisc", line("/proc/sys/net/core/default_qdisc"));
        for entry in fs::read_dir("/proc/sys/net/ipv4").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with("tcp_") || name == SECRET {
                continue;
            }
            match fs::read_to_string(entry.path()) {
                Ok(text) => {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    host.sysctls.insert(name, text);
                }
                Err(why) => host.missing.push(format!("net.ipv4.{name}: {}", why.kind())),
            }
        }
        if host.sysctls.is_empty() {
            host.missing.push("net.ipv4.tcp_*: not readable".to_owned());
        }
        host.missing.sort();
        if let Some(server) = server {
            match qdiscs(server) {
                Ok(kinds) => host.qdiscs = kinds,
                Err(why) => host.missing.push(format!("queueing disciplines: {why}")),
            }
        }
        host
    }
}

fn qdiscs(server: IpAddr) -> Result<Vec<String>, String> {
    let route = json_of("ip", &["-j", "route", "get", &server.to_string()])?;
    let interface = route[0]["dev"].as_str().ok_or("there is no route to the server")?.to_owned();
    let found = json_of("tc", &["-j", "qdisc", "show", "dev", &interface])?;
    let kinds = found.as_array().into_iter().flatten();
    Ok(kinds.filter_map(|qdisc| qdisc["kind"].as_str().map(str::to_owned)).collect())
}

fn json_of(program: &str, args: &[&str]) -> Result<Value, String> {
    serde_json::from_str(&output(program, args)?).map_err(|why| format!("{program}: {why}"))
}

fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let run = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = run.map_err(|why| format!("{program}: {why}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim();
    Err(format!("{program}: {}", line.chars().take(200).collect::<String>()))
}

/// Flushes the kernel's cached TCP metrics, so that a test does not begin with what the one before has left (before Linux 5.5 its
/// slow start threshold). Returns `flushed`, or why not.
pub fn flush_metrics() -> String {
    match output("ip", &["tcp_metrics", "flush"]) {
        Ok(_) => "flushed".to_owned(),
        Err(why) => format!("not flushed: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_tcp_settings_and_tells_no_secret() {
        let host = Host::read(Some(IpAddr::from([127, 0, 0, 1])));
        assert!(host.kernel.is_some_and(|kernel| kernel.contains('.')));
        assert!(host.sysctls.contains_key("tcp_congestion_control"));
        assert!(!host.sysctls.contains_key(SECRET));
        assert!(!host.qdiscs.is_empty() || host.missing.iter().any(|what| what.starts_with("queueing disciplines")));
    }

    #[test]
    fn metrics_are_flushed_or_the_reason_is_told() {
        let told = flush_metrics();
        assert!(told == "flushed" || told.starts_with("not flushed: ip"), "{told}");
    }
}
