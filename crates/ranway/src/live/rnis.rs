//! `ranway rnis`.

use crate::failure::Failure;
use crate::live::dashboard::{DashboardArgs, Reports, untitled};
use crate::live::secrets::{BrokerArgs, MetricsArgs};
use crate::terminal;
use clap::Args as ClapArgs;
use rnis::feed::{Carrier, recording};
use rnis::identity::{Plmn, Rat};
use rnis::{AddressMap, Network as Cells, Record};
use services::Log;
use services::rnis::{CallbackPolicy, Error, Input, Limits, Options, Service, TakeRecord, run as serve};
use services::{Network, parse_host};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use units::Span;

/// The longest table of UEs.
const LONGEST_TABLE: u64 = 16 << 20;

/// The options of `ranway rnis`.
#[derive(ClapArgs)]
#[command(
    after_help = "The service answers what ETSI MEC 012 v2.2.1 defines below http://ADDRESS/rni/v2: bearers, S1 bearers, layer 2 \
measurements, and subscriptions with notifications by callback or WebSocket. It needs no privileges and changes nothing on the host.

Kinds of inputs:
  recording:SOURCE    our own reports and events as lines of JSON, from a simulation, an emulation or --print
  replay:FILE         a recording with its timing, as if it happened now
  srsran:HOST:PORT    the WebSocket of srsRAN's gNB (remote_control.enabled, metrics.enable_json)
  kpm:SOURCE          E2SM-KPM measurements of an xApp, as JSON or CSV
  flexric:SOURCE      FlexRIC's MAC and RLC service models as CSV
  modem:INDEX         the signal quality of a modem (mmcli); a hint, from which no capacity follows
  amqp:URL            reports of another ranway rnis, through a broker at amqp:// or, with TLS, amqps://
SOURCE is a file, `-` for standard input, or unix:PATH, a socket to which programs connect.

Queries need no authentication: listen on loopback, or put a reverse proxy in front, name its URL with --api-root and its address \
with --trusted-proxy. A subscription belongs to whoever knows its identifier, a secret, and presents the bearer token of its request if \
there was one.

Examples:
  ranway rnis --input replay:drive.jsonl
  curl http://127.0.0.1:8085/rni/v2/queries/layer2_meas
  ranway rnis --input srsran:127.0.0.1:8001 --rat nr --n-prb 106 --dl-slots 1400 --ues ues.txt
  xapp | ranway rnis --input flexric:- --rat nr --n-prb 106 --dl-slots 1400 --amqp amqp://127.0.0.1
  ranway rnis --input modem:0 --callback-network 10.0.0.0/8 --listen 10.0.0.1:8085

The table of UEs (--ues) has a line for each: the RNTI, or CELL/RNTI, then its addresses:
  0x4601    10.45.0.2 fd00::2
  7/0x4602  10.45.0.3 nat=192.0.2.1 teid=0x1a2b"
)]
pub(crate) struct RnisArgs {
    /// Address and port of the HTTP server
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8085")]
    listen: SocketAddr,
    /// A feed; give several [default: none]
    #[arg(long, value_name = "KIND:ADDRESS")]
    input: Vec<String>,
    /// Broker to publish reports on (topic exchange `rni`, topics rni.CELL.UE)
    #[arg(long, value_name = "URL")]
    amqp: Option<String>,
    #[command(flatten)]
    broker: BrokerArgs,
    /// Table of the UEs' addresses, for cells that do not know them
    #[arg(long, value_name = "FILE")]
    ues: Option<PathBuf>,
    /// Radio access technology of the cells
    #[arg(long, value_name = "lte|nr", default_value = "lte", value_parser = rat)]
    rat: Rat,
    /// Network of the cells
    #[arg(long, value_name = "MCC-MNC", default_value = "001-01", value_parser = plmn)]
    plmn: Plmn,
    /// Cell of feeds that do not name one
    #[arg(long, value_name = "ID", default_value = "1", value_parser = number)]
    cell: u64,
    /// Resource blocks of the carrier, which most feeds leave out
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=275))]
    n_prb: u16,
    /// Downlink slots of the carrier per second
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=64_000))]
    dl_slots: u32,
    /// Interval of reports that do not tell it
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    period: Span,
    /// Network whose hosts notifications may be posted to, such as 10.0.0.0/8; give several. `0.0.0.0/0` and `::/0` mean all public
    /// addresses: loopback, private, link-local and other special addresses need a network within their own block [default: none,
    /// so that notifications are delivered by WebSocket alone]
    #[arg(long, value_name = "NETWORK")]
    callback_network: Vec<Network>,
    /// Name under which clients reach the service, beside addresses, localhost and the host of --api-root; give several
    #[arg(long, value_name = "NAME", value_parser = parse_host)]
    host: Vec<String>,
    /// Address or network of reverse proxies, whose X-Forwarded-For tells the addresses of clients, which limits count; give several
    #[arg(long, value_name = "NETWORK")]
    trusted_proxy: Vec<Network>,
    /// URL of the service as clients see it, if it is behind a proxy
    #[arg(long, value_name = "URL")]
    api_root: Option<String>,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    dashboard: DashboardArgs,
    /// Print each report and event as a line of JSON, which is a recording
    #[arg(long)]
    print: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

fn rat(text: &str) -> Result<Rat, String> {
    match text {
        "lte" => Ok(Rat::Lte),
        "nr" => Ok(Rat::Nr),
        _ => Err("expected lte or nr".into()),
    }
}

fn plmn(text: &str) -> Result<Plmn, String> {
    Plmn::parse(text).ok_or_else(|| "expected a country and a network code, such as 001-01".into())
}

fn number(text: &str) -> Result<u64, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u64::from_str_radix(digits, radix).map_err(|_| "expected a number, in decimal or as 0x1a2b".into())
}

pub(crate) fn run(args: &RnisArgs) -> Result<(), Failure> {
    let quiet = args.quiet;
    let options = options(args)?;
    let count = options.inputs.len();
    let started = |service: &Service| {
        if !quiet {
            let address = service.address();
            let metrics = service.metrics().map_or_else(String::new, |at| format!(", metrics at http://{at}/metrics"));
            terminal::message!("serving http://{address}/rni/v2 from {count} inputs{metrics}; press Ctrl-C to stop");
        }
    };
    let title = || untitled("Radio network information".to_owned());
    // The addresses of UEs are nobody else's business.
    let dashboard = args.dashboard.start("rnis", title, quiet, |options| options.is_private = true)?;
    let shown = dashboard.as_ref().map(|page| Reports::new(page.publisher())).transpose()?;
    let print = args.print;
    let (failed, failure) = mpsc::channel();
    let take: Option<TakeRecord> = if print || shown.is_some() {
        Some(Box::new(move |record: &Record| {
            if let Record::Report(report) = record {
                shown.iter().for_each(|shown| shown.take(report));
            }
            if !print {
                return true;
            }
            let written = terminal::put_line(&recording::format_line(record));
            written.map_err(|error| failed.send(error)).is_ok()
        }))
    } else {
        None
    };
    serve(options, started, take).map_err(|Error(why)| Failure::Invalid(why))?;
    failure.try_recv().map_or(Ok(()), |error| Err(error.into()))
}

fn options(args: &RnisArgs) -> Result<Options, Failure> {
    let invalid = Failure::Invalid;
    let inputs: Vec<Input> = args.input.iter().map(|text| args.broker.input(text)).collect::<Result<_, _>>()?;
    if inputs.iter().filter(|input| input.is_stdin()).count() > 1 {
        return Err(invalid("only one input can be standard input".into()));
    }
    if args.amqp.is_some() && inputs.iter().any(Input::is_amqp) {
        return Err(invalid("--amqp and an input amqp: would publish each report again and again".into()));
    }
    if args.broker.is_given() && args.amqp.is_none() && !inputs.iter().any(Input::is_amqp) {
        return Err(invalid("--amqp-credentials and --amqp-ca are for a broker: give --amqp or an input amqp:".into()));
    }
    if args.period == Span::from_nanos(0) || args.period > Span::from_secs(3600) {
        return Err(invalid("--period must be greater than 0, and at most an hour".into()));
    }
    let addresses = match &args.ues {
        Some(path) => {
            let fault = |why: &dyn std::fmt::Display| invalid(format!("{}: {why}", path.display()));
            let bytes = disk::read(path, LONGEST_TABLE).map_err(|why| fault(&why))?;
            let text = std::str::from_utf8(&bytes).map_err(|why| fault(&why))?;
            AddressMap::parse(text).map_err(|why| fault(&why))?
        }
        None => AddressMap::default(),
    };
    let quiet = args.quiet;
    Ok(Options {
        listen: args.listen,
        root: args.api_root.clone(),
        network: Cells { plmn: args.plmn.clone(), rat: args.rat },
        addresses,
        carrier: Carrier { cell: args.cell, n_prb: args.n_prb, slots_per_second: args.dl_slots, period: args.period },
        inputs,
        amqp: args.amqp.as_deref().map(|url| args.broker.broker(url)).transpose()?,
        hosts: args.host.clone(),
        proxies: args.trusted_proxy.clone(),
        callbacks: CallbackPolicy::new(args.callback_network.clone()),
        limits: Limits::default(),
        metrics: args.metrics.access()?,
        log: Log::new(move |line| {
            if !quiet {
                terminal::message!("{line}");
            }
        }),
    })
}
