//! The options of `ranway proxy`.

use crate::failure::Failure;
use crate::live::dashboard::DashboardArgs;
use crate::live::secrets::{BrokerArgs, MetricsArgs};
use clap::{Args as ClapArgs, Subcommand};
use rapid::Policy;
use services::Network;
use services::proxy::{self, Class, Mark, Settings};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use units::{Bytes, Rate, Span};

/// The least rate of a class, in bit/s: with less, a packet would take more than a second.
const LEAST_RATE: u64 = 8_000;

#[derive(Clone, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Run it on a router between servers and UEs. It splits each TCP connection that a UE opens and that this machine would \
forward, and moves the bytes between both halves. Hosts need no settings: they see each other's own addresses and ports. A UE's \
handshake is complete only when the server's is. What routes, rules and firewall forbid stays forbidden; connections to addresses \
of the router itself, and all other traffic, pass as without it.

New connections bypass the proxy when it is not running or hangs, when their server refuses or does not answer, and beyond the \
limits of each host and of all; forwarding must be enabled (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding). Connections that the proxy has split cannot outlive it: they are reset, so \
no host takes a part of its data for all. On SIGTERM or Ctrl-C, new connections bypass the proxy, and existing ones may end for \
--drain; a second signal resets them at once. SIGHUP reads --config again and changes what it can without touching a connection: all \
but interfaces, --port, --threads, --buffer, --metrics and --dashboard, which it names if they wait for a restart. Buffers and --cc then hold for new connections. \
SIGUSR2 starts a successor, such as a new version, that takes over the connections (--take-over). Rules, routes and the nftables \
table disappear with the proxy, even if it is killed.

With --reports, the proxy is RAPID: it divides among the flows of a UE what the radio network reports that the UE can receive, \
by receive windows towards servers, and by congestion windows and pacing towards UEs. Reports need the UEs' addresses; `ranway rnis` \
makes them from the feeds of base stations. A flow whose UE is not reported, or no longer, is not limited. Congestion windows take \
Linux 6.10 or newer with BTF, CAP_BPF and CAP_PERFMON; without them, the proxy paces only.

Examples:
  ranway proxy --wan eth0 --ran eth1
  ranway proxy --wan eth0 --ran eth1 --reports amqp://127.0.0.1              RAPID, with the reports of a ranway rnis
  ranway proxy --wan eth0 --ran eth1 --reports recording:unix:/run/reports   with those that programs write to a socket
  ranway proxy --wan eth0 --ran eth1 --ports 80,443,8000-8080
  ranway proxy --config proxy.toml                                options from a file, which SIGHUP reads again
  ranway proxy --wan eth0 --ran eth1 --metrics 127.0.0.1:9180     counters for Prometheus at /metrics
  ranway proxy --wan eth0 --ran eth1 --ipfix 192.0.2.9:4739       a flow record of each connection for a collector
  ranway proxy --wan eth0 --ran eth1 --take-over                  go on with the connections of the proxy that runs
  ranway proxy status                                             counters and connections, by UE
  ranway proxy status --top 10                                    the UEs with most traffic at the moment
  ranway proxy status --json"
)]
pub(crate) struct ProxyArgs {
    #[command(subcommand)]
    pub(super) command: Option<ProxyCommand>,
    /// The interface towards the servers, or several, such as eth0,eth2
    #[arg(long, value_name = "IF", value_delimiter = ',', required_unless_present = "config")]
    pub(super) wan: Vec<String>,
    /// The interface towards the UEs, or several. The first one names the proxy
    #[arg(long, value_name = "IF", value_delimiter = ',', required_unless_present = "config")]
    pub(super) ran: Vec<String>,
    /// TOML file with options by their names here, such as `wan = "eth0"`; those of the command line precede. SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Destination ports of the connections to split, such as 80,443,8000-8080
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = ports, default_value = "1-65535")]
    pub(super) ports: Vec<RangeInclusive<u16>>,
    /// Destination ports of connections that the proxy accepts before their server does. It saves a round trip to the server; but a
    /// closed port looks open for a moment, and programs that try another address if one fails notice that late
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = ports)]
    pub(super) early_accept: Vec<RangeInclusive<u16>>,
    /// Also split connections that servers open to UEs
    #[arg(long)]
    pub(super) from_servers: bool,
    /// Networks and addresses whose connections bypass the proxy, of servers and of UEs, such as `192.0.2.0/24,2001:db8::1`
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    pub(super) bypass: Vec<Network>,
    /// Marks of packets (nft `meta mark`) whose connections bypass the proxy, such as 0x10 or 0x10/0xff
    #[arg(long, value_name = "MARKS", value_delimiter = ',', value_parser = mark)]
    pub(super) bypass_marks: Vec<Mark>,
    /// What connections whose first packet has a mark have towards their UE: a congestion control, and a rate that each has at most,
    /// as in 0x20/0xf0:cc=bbr:rate=20 Mbit/s,0x30:cc=cubic. The first mark that fits counts
    #[arg(long, value_name = "CLASSES", value_delimiter = ',', value_parser = class)]
    pub(super) classes: Vec<Class>,
    /// Networks and addresses of the UEs whose connections alone are split [default: all]
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    pub(super) only: Vec<Network>,
    /// Port at which the proxy listens, on the loopback addresses
    #[arg(long, value_name = "PORT", default_value_t = 5080, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: u16,
    /// Number of threads that move bytes [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Number of connections at which new ones begin to bypass the proxy [default: 20000, or less if the limit of open files
    /// permits less]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) max_connections: Option<u32>,
    /// Number of a UE's connections at which its further ones bypass the proxy [default: 1000, but no more than a quarter of
    /// --max-connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_per_ue: Option<u32>,
    /// Number of a server's connections at which its further ones bypass the proxy [default: 10000, but no more than half of
    /// --max-connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_per_server: Option<u32>,
    /// Number of connections in their handshake, of those that one side opens, at which further ones bypass the proxy
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub(super) max_half_open: u32,
    /// The same for those of a UE
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_half_open_per_ue: u32,
    /// The same for those of a server
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_half_open_per_server: u32,
    /// Data that the proxy holds in each direction of a connection between its two sockets
    #[arg(long, value_name = "SIZE", default_value = "256 KiB")]
    pub(super) buffer: Bytes,
    /// Receive buffer of each socket, an upper bound of its window: at least rate times round-trip time. The kernel uses up to as
    /// much again for its overhead
    #[arg(long, value_name = "SIZE", default_value = "1 MiB")]
    pub(super) receive_buffer: Bytes,
    /// Data that a socket accepts beyond what it has sent
    #[arg(long, value_name = "SIZE", default_value = "256 KiB")]
    pub(super) unsent: Bytes,
    /// Memory that connections may take together, in sockets and pipes; beyond it, those whose readers have stopped are reset, the
    /// largest first [default: half of what makes the kernel save memory for TCP, or of the control group's memory]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<Bytes>,
    /// Congestion control towards UEs as long as RAPID sets no window, by its name in the kernel [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub(super) cc: Option<String>,
    /// Where reports of the radio network come from: amqp:URL, or recording:SOURCE with a file, `-` or unix:PATH [default: none]
    #[arg(long, value_name = "KIND:ADDRESS")]
    pub(super) reports: Option<String>,
    #[command(flatten)]
    pub(super) broker: BrokerArgs,
    /// How RAPID divides what a UE can receive: best, published (the paper's text), artefact (its code) or milli-proxy, and after a
    /// colon the parameters that scenarios have, as in `best:radio_target=10 ms,proxy_target=4 ms`
    #[arg(long, value_name = "POLICY", default_value = "best", value_parser = policy, requires = "reports")]
    pub(super) policy: Policy,
    /// Length of the IPv6 prefix that each UE has, by which its connections and reports are put together
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(..=128))]
    pub(super) ipv6_prefix: u8,
    /// Interval between two updates of windows and rates
    #[arg(long, value_name = "TIME", default_value = "5 ms", value_parser = tick, requires = "reports")]
    pub(super) tick: Span,
    /// Time that a server has to accept a connection, before that bypasses the proxy
    #[arg(long, value_name = "TIME", default_value = "3 s")]
    pub(super) connect_timeout: Span,
    /// Time without data after which a connection is reset
    #[arg(long, value_name = "TIME", default_value = "7440 s")]
    pub(super) idle_timeout: Span,
    /// Time without data after which a connection is reset if one side has ended
    #[arg(long, value_name = "TIME", default_value = "900 s")]
    pub(super) half_closed_timeout: Span,
    /// Time without an answer after which a host is dead, if the other host asks for it by keepalives. The other half is then reset
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    pub(super) dead_peer_time: Span,
    /// Take over the connections of the proxy that runs between these interfaces, which then ends; without one, start as usual.
    /// SIGUSR2 has a proxy start such a successor, as after an upgrade
    #[arg(long)]
    pub(super) take_over: bool,
    /// Time that connections have to end before the proxy does
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    pub(super) drain: Span,
    /// File to which a line of JSON is written for each connection that ends
    #[arg(long, value_name = "FILE")]
    pub(super) connection_log: Option<PathBuf>,
    /// Size at which that file becomes an earlier one, with .1 after its name
    #[arg(long, value_name = "SIZE", default_value = "100 MB")]
    pub(super) connection_log_size: Bytes,
    /// Number of earlier files that are kept
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(..=9999))]
    pub(super) connection_log_files: u32,
    /// Collector to which a flow record (IPFIX over UDP) is sent for each connection that ends, such as `192.0.2.9:4739`
    /// or `[2001:db8::9]:4739`
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = collector)]
    pub(super) ipfix: Option<SocketAddr>,
    /// Observation domain of this proxy's flow records
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) ipfix_domain: u32,
    /// Interval at which the collector is told again what records consist of. A collector that starts later understands none before
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = refresh)]
    pub(super) ipfix_templates: Span,
    #[command(flatten)]
    pub(super) metrics: MetricsArgs,
    #[command(flatten)]
    pub(super) dashboard: DashboardArgs,
    /// Print counters as a line of JSON every second
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Clone, Subcommand)]
pub(super) enum ProxyCommand {
    /// Print the counters and connections of a running proxy
    Status(StatusArgs),
}

#[derive(Clone, ClapArgs)]
pub(crate) struct StatusArgs {
    /// The running proxy's interface towards the UEs [default: the only proxy]
    #[arg(long, value_name = "IF")]
    pub(super) ran: Option<String>,
    /// Print the N UEs to and from which most bytes pass within a second, instead of connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) top: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What keeps the proxy from starting is the operator's to change, and nothing has been changed yet.
pub(super) fn refusal(error: netio::Error) -> Failure {
    match error {
        netio::Error::Wrong(what) | netio::Error::Missing(what) => Failure::Invalid(what),
        error => error.into(),
    }
}

pub(super) fn settings(args: &ProxyArgs) -> Result<Settings, Failure> {
    let defaults = Settings::new(&[], &[]);
    let time = |span: Span| Duration::from_nanos(span.as_nanos());
    let size = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    let mut settings = Settings {
        wan: args.wan.clone(),
        ran: args.ran.clone(),
        ports: args.ports.clone(),
        early: args.early_accept.clone(),
        opened_by_servers: args.from_servers,
        bypass: args.bypass.clone(),
        bypass_marks: args.bypass_marks.clone(),
        classes: args.classes.clone(),
        only: args.only.clone(),
        ipv6_prefix: args.ipv6_prefix,
        port: args.port,
        threads: args.threads.map_or(defaults.threads, usize::from),
        max_connections: args.max_connections.map_or(defaults.max_connections, |connections| connections as usize),
        max_half_open: args.max_half_open as usize,
        max_half_open_per_ue: args.max_half_open_per_ue as usize,
        max_half_open_per_server: args.max_half_open_per_server as usize,
        buffer: size(args.buffer),
        receive_buffer: size(args.receive_buffer),
        unsent: size(args.unsent),
        memory: args.memory.map_or(defaults.memory, Bytes::get),
        connect_timeout: time(args.connect_timeout),
        idle_timeout: time(args.idle_timeout),
        half_closed_timeout: time(args.half_closed_timeout),
        dead_peer_time: time(args.dead_peer_time),
        radio_congestion: args.cc.clone(),
        ..defaults
    };
    if args.max_connections.is_none() {
        settings.max_connections = proxy::permitted_connections(&settings).max(1);
    }
    let most = |given: Option<u32>, default: usize, part: usize| {
        given.map_or(default.min(settings.max_connections.div_ceil(part)), |given| given as usize)
    };
    let max_per_ue = most(args.max_per_ue, settings.max_per_ue, 4);
    let max_per_server = most(args.max_per_server, settings.max_per_server, 2);
    Ok(Settings { max_per_ue, max_per_server, ..settings })
}

/// Parses a policy as a scenario has it, in the form of the command line.
fn policy(text: &str) -> Result<Policy, String> {
    let policy = match text.split(':').next() {
        Some("best" | "published" | "artefact" | "milli-proxy") => scenario::policy_of(text)?.policy(),
        _ => None,
    };
    policy.ok_or_else(|| "expected best, published, artefact or milli-proxy".into())
}

fn tick(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|why| format!("{why}"))?;
    let range = Span::from_micros(500)..=Span::from_secs(1);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 0.5 ms to 1 s".into()) }
}

/// Parses the address of a collector.
fn collector(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 && !address.ip().is_unspecified() => Ok(address),
        _ => Err("expected an address and a port, such as 192.0.2.9:4739 or [2001:db8::9]:4739".into()),
    }
}

fn refresh(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|why| format!("{why}"))?;
    let range = Span::from_secs(1)..=Span::from_secs(24 * 60 * 60);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 1 s to 24 h".into()) }
}

/// Parses a mark, or its bits and where they count.
fn mark(text: &str) -> Result<Mark, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    match (number(value), number(mask)) {
        (Some(value), Some(mask)) if value & !mask == 0 && mask != 0 => Ok(Mark { value, mask }),
        _ => Err("expected a mark or a mark and its mask, such as 0x10 or 0x10/0xff".into()),
    }
}

/// Parses a class of connections.
fn class(text: &str) -> Result<Class, String> {
    let expected = "expected a mark and what its connections have, such as 0x10/0xff:cc=bbr:rate=20 Mbit/s";
    let mut parts = text.split(':');
    let mut class = Class { mark: mark(parts.next().unwrap_or_default().trim())?, congestion: None, rate: None };
    for part in parts {
        match part.trim().split_once('=') {
            Some(("cc", name)) if class.congestion.is_none() && !name.is_empty() => {
                class.congestion = Some(name.to_owned());
            }
            Some(("rate", rate)) if class.rate.is_none() => {
                let rate: Rate = rate.parse().map_err(|why| format!("rate: {why}"))?;
                if rate.bits_per_sec() < LEAST_RATE {
                    return Err("rate: expected at least 8 kbit/s".into());
                }
                class.rate = Some(rate);
            }
            _ => return Err(expected.into()),
        }
    }
    if class.congestion.is_none() && class.rate.is_none() { Err(expected.into()) } else { Ok(class) }
}

/// Parses a port or a range of ports.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| match text.trim().parse::<u16>() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a port from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    let range = port(first)?..=port(last)?;
    if range.is_empty() { Err("the first port of a range is the smaller one".into()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_the_parameters_of_scenarios() {
        let best = rapid::Best { radio_target: Span::from_millis(10), ..rapid::Best::default() };
        assert_eq!(policy("best:radio_target=10 ms"), Ok(Policy::Best(best)));
        assert_eq!(policy("best:"), policy("best"));
        let published = rapid::Published {
            blocks: rapid::TransportBlocks::Nr { mcs_table: rapid::McsTable::Qam256, elements: 144 },
            alpha: 0.4,
            ..rapid::Published::default()
        };
        assert_eq!(policy("published:alpha=0.4,blocks=nr-256qam"), Ok(Policy::Published(published)));
        assert_eq!(policy("published"), Ok(Policy::Published(rapid::Published::default())));
        let module = rapid::Published::kernel_module();
        assert_eq!(policy("artefact:code=kernel-module"), Ok(Policy::Published(module)));
        for (text, why) in [
            ("worst", "expected best, published, artefact or milli-proxy"),
            ("split", "expected best, published, artefact or milli-proxy"),
            ("best:radio_target", "expected KEY=VALUE, not `radio_target`"),
            ("published:alpha=2", "alpha: 2 is out of range: must be from 0 to 1"),
            ("milli-proxy:alpha=0", "alpha: unknown key; `milli-proxy` has no keys"),
        ] {
            assert_eq!(policy(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn marks_are_parsed_or_refused() {
        assert_eq!(mark("0x10"), Ok(Mark { value: 0x10, mask: u32::MAX }));
        assert_eq!(mark("16/0xff"), Ok(Mark { value: 0x10, mask: 0xff }));
        for text in ["0x100/0xff", "0/0", "x", "1/"] {
            assert!(mark(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_ue_and_no_server_may_take_all_places_unless_that_is_wanted() {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            args: ProxyArgs,
        }
        let limits = |more: &[&str]| {
            let all = [&["proxy", "--wan", "wan", "--ran", "ran"], more].concat();
            let Ok(settings) = settings(&<Command as clap::Parser>::parse_from(all).args) else {
                panic!("they are valid")
            };
            [settings.max_per_ue, settings.max_per_server]
        };
        assert_eq!(limits(&["--max-connections", "20000"]), [1_000, 10_000]);
        assert_eq!(limits(&["--max-connections", "101"]), [26, 51]);
        assert_eq!(limits(&["--max-connections", "100", "--max-per-ue", "90", "--max-per-server", "70"]), [90, 70]);
    }

    #[test]
    fn a_collector_has_an_address_and_a_port() {
        for text in ["192.0.2.9:4739", "[2001:db8::9]:4739"] {
            assert_eq!(collector(text).map(|address| address.to_string()).as_deref(), Ok(text));
        }
        for text in ["192.0.2.9", "192.0.2.9:0", "0.0.0.0:4739", "collector:4739", "2001:db8::9:4739"] {
            assert!(collector(text).is_err(), "{text}");
        }
        assert!(refresh("10 min").is_ok() && refresh("0.5 s").is_err() && refresh("25 h").is_err());
    }

    #[test]
    fn classes_have_a_mark_and_something_of_their_own() {
        let mark = Mark { value: 0x10, mask: 0xff };
        let (congestion, rate) = (Some("bbr".to_owned()), Some(Rate::from_mbps(20)));
        assert_eq!(class("0x10/0xff:cc=bbr:rate=20 Mbit/s"), Ok(Class { mark, congestion, rate }));
        assert_eq!(class("16/0xff:rate=20 Mbit/s"), Ok(Class { mark, congestion: None, rate }));
        for text in
            ["0x10", "0x10:", "cc=bbr", "0x10:cc=", "0x10:cc=bbr:cc=reno", "0x10:rate=20", "0x10:rate=1 bit/s", "1:x=2"]
        {
            assert!(class(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ports_are_single_or_ranges() {
        assert_eq!(ports("443"), Ok(443..=443));
        assert_eq!(ports("8000-8080"), Ok(8000..=8080));
        for (text, why) in [
            ("0", "`0` is not a port from 1 to 65535"),
            ("80-", "`` is not a port from 1 to 65535"),
            ("65536", "`65536` is not a port from 1 to 65535"),
            ("9-8", "the first port of a range is the smaller one"),
        ] {
            assert_eq!(ports(text), Err(why.to_owned()));
        }
    }
}
