//! `ranway measure serve`.

use crate::failure::Failure;
use crate::live::secrets::MetricsArgs;
use crate::terminal;
use clap::{Args as ClapArgs, ValueEnum};
use services::Log;
use services::measure::{Control, Error, Limits, Open, Options, Service, Store, Tls, run as serve};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::{Bytes, Span};

/// The options of `ranway measure serve`.
#[derive(ClapArgs)]
#[command(
    after_help = "A port serves RMBT in its three framings (greeting first after 300 ms of silence, HTTP upgrade, WebSocket), ndt7 and \
throughput1 over WebSocket, and with --control a small control server, each with TLS and without.

Clients need a token, signed with a key of --key. RMBT clients get one from a control server; clients of ndt7 and throughput1 \
have it as `access_token` in the URL. With --open no token is needed, from this host and private networks alone unless --open any.

No privileges are needed for ports above 1023. SIGHUP reads --key and --tls again. SIGTERM and Ctrl-C wait for running tests.

Examples:
  ranway measure serve --open                                          tests on this host alone
  ranway measure serve --open --listen '[::]:5231'                     clients of private networks, over IPv4 and IPv6
  ranway measure serve --open --listen 10.0.0.1:5231 --results results those of one network; results are kept
  ranway measure serve --control --listen '[::]:5231'                  anyone can get a token, within the limits
  ranway measure serve --key keys --tls cert.pem key.pem --listen '[::]:443' --metrics 127.0.0.1:9181
  rmbt-client -h http://127.0.0.1:5231                                 a client, with --control"
)]
pub(super) struct ServeArgs {
    /// Where clients connect, such as `[::]:5231` for all addresses of this host, IPv4's too; give several
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5231")]
    listen: Vec<SocketAddr>,
    /// Certificate and private key in PEM form
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
    tls: Option<Vec<PathBuf>>,
    /// Make a certificate for this run, for tests
    #[arg(long, conflicts_with = "tls")]
    self_signed: bool,
    /// Close connections without TLS
    #[arg(long)]
    tls_only: bool,
    /// File of the keys that tokens are signed with, one a line [default: a key made for this run]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Refuse tokens without a v2 part, which is bound to the client's address
    #[arg(long)]
    require_v2: bool,
    /// Who needs no token
    #[arg(long, value_name = "CLIENTS", num_args = 0..=1, default_missing_value = "private")]
    open: Option<OpenTo>,
    /// Run the control server, from which clients of RMBT get tokens
    #[arg(long)]
    control: bool,
    /// Name or address that the control server gives clients [default: the host that they name]
    #[arg(long, value_name = "HOST", requires = "control")]
    name: Option<String>,
    /// Seconds of each direction that the control server gives clients
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=60))]
    test_seconds: u32,
    /// Number of connections that the control server gives clients
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    test_flows: u32,
    /// Directory for the results: what the server has sent and received, as lines of JSON
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
    /// The most files of results of 64 MiB; the oldest are deleted
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    results_files: u16,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// The most connections; a quarter of them may be without a token
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(4..=1_000_000))]
    max_connections: u32,
    /// The most connections of an IPv4 address or an IPv6 /64
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_address: u32,
    /// The most connections with a token
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_flows: u32,
    /// The most connections with a token of an IPv4 address or an IPv6 /64
    #[arg(long, value_name = "N", default_value_t = 130, value_parser = clap::value_parser!(u32).range(1..))]
    flows_per_address: u32,
    /// The longest transfer in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    max_seconds: u32,
    /// The most bytes of a transfer
    #[arg(long, value_name = "BYTES", default_value = "128 GB")]
    max_bytes: Bytes,
    /// The longest time without a byte; paths with long outages need more
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    idle: Span,
    /// The longest wait for running tests at the end
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    drain: Span,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Who needs no token.
#[derive(Clone, Copy, ValueEnum)]
enum OpenTo {
    /// Clients on this host and in private networks; others are refused
    Private,
    /// All clients
    Any,
}

pub(super) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let (options, quiet) = (options(args)?, args.quiet);
    let started = |service: &Service| {
        if quiet {
            return;
        }
        let addresses: Vec<String> = service.addresses().iter().map(ToString::to_string).collect();
        let metrics = service.metrics().map_or_else(String::new, |address| format!(", metrics at http://{address}"));
        terminal::message!("serving at {}{metrics}; press Ctrl-C to stop", addresses.join(", "));
        if let Some(hint) = unreached(service.addresses()) {
            terminal::message!("{hint}");
        }
    };
    serve(options, started).map_err(|Error(why)| Failure::Invalid(why))
}

/// Tells how other hosts can reach a server whose addresses are all of the loopback interface; `None` if they can.
fn unreached(addresses: &[SocketAddr]) -> Option<String> {
    let port = addresses.first()?.port();
    let is_alone = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    is_alone.then(|| format!("only this host can reach it; --listen '[::]:{port}' serves other hosts as well"))
}

/// Returns a span of time within bounds.
fn bounded(name: &str, span: Span, most: Span) -> Result<Duration, Failure> {
    if span == Span::ZERO || span > most {
        return Err(Failure::Invalid(format!("{name} must be greater than 0, and at most {most}")));
    }
    Ok(Duration::from_nanos(span.as_nanos()))
}

fn options(args: &ServeArgs) -> Result<Options, Failure> {
    let tls = match args.tls.as_deref() {
        Some([certificate, key]) => Some(Tls::Files { certificate: certificate.clone(), key: key.clone() }),
        _ => args.self_signed.then_some(Tls::SelfSigned),
    };
    if args.tls_only && tls.is_none() {
        return Err(Failure::Invalid("--tls-only needs --tls or --self-signed".into()));
    }
    if args.key.is_none() && !args.control && args.open.is_none() {
        let why = "tokens cannot be checked: give --key FILE, or --control, or --open for a laboratory";
        return Err(Failure::Invalid(why.into()));
    }
    if args.max_bytes == Bytes::ZERO {
        return Err(Failure::Invalid("--max-bytes must be greater than 0".into()));
    }
    let hour = Span::from_secs(3600);
    let quiet = args.quiet;
    let many = |count: u32| count as usize;
    Ok(Options {
        listen: args.listen.clone(),
        tls,
        tls_only: args.tls_only,
        keys: args.key.clone(),
        require_v2: args.require_v2,
        open: match args.open {
            None => Open::Nobody,
            Some(OpenTo::Private) => Open::Private,
            Some(OpenTo::Any) => Open::Anyone,
        },
        control: args.control.then(|| Control {
            name: args.name.clone(),
            seconds: args.test_seconds.min(args.max_seconds),
            flows: args.test_flows,
        }),
        limits: Limits {
            connections: many(args.max_connections),
            waiting: many(args.max_connections / 4),
            connections_per_address: many(args.connections_per_address),
            flows: many(args.max_flows),
            flows_per_address: many(args.flows_per_address),
            seconds: args.max_seconds,
            bytes: args.max_bytes.get(),
            idle: bounded("--idle", args.idle, hour)?,
            ..Limits::default()
        },
        results: args
            .results
            .clone()
            .map(|directory| Store { files: args.results_files.into(), ..Store::new(directory) }),
        metrics: args.metrics.access()?,
        drain: bounded("--drain", args.drain, hour)?,
        log: Log::new(move |line| {
            if !quiet {
                terminal::message!("{line}");
            }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_the_loopback_interface_alone_tells_how_others_reach_it() {
        let of = |addresses: &[&str]| {
            let parsed: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
            unreached(&parsed)
        };
        let hint = "only this host can reach it; --listen '[::]:5231' serves other hosts as well";
        for alone in [&["127.0.0.1:5231"][..], &["[::1]:5231", "127.0.0.1:5231"], &["[::ffff:127.0.0.1]:5231"]] {
            assert_eq!(of(alone).as_deref(), Some(hint), "{alone:?}");
        }
        for reached in [&["0.0.0.0:5231"][..], &["[::]:5231"], &["127.0.0.1:5231", "10.0.0.1:5231"]] {
            assert_eq!(of(reached), None, "{reached:?}");
        }
    }
}
