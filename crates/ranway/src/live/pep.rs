//! `ranway pep`.

use crate::live::args::PepArgs;
use crate::live::dashboard::{Values, untitled};
use crate::live::metrics;
use crate::live::status_line::StatusLine;
use crate::{failure::Failure, terminal};
use ebpf::Key;
use ebpf::pep::{Counters, Options, Pep, Statistics, TookOver};
use netio::manager::{self, Manager};
use netio::process::{Happened, Signals};
use netio::reservation::{self, Reservation, Role};
use record::Tables;
use record::report::live::Counter;
use record::tables::SampleRow;
use services::{Metric, MetricsAccess, MetricsListener, MetricsServer};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between status lines, and between checks of the interfaces.
const TICK: Duration = Duration::from_secs(1);
/// Attempts to serve metrics before the operator is told that they fail: the PEP that this one replaces has their address until it ends.
const ATTEMPTS: u32 = 5;

pub(crate) fn run(args: &PepArgs) -> Result<(), Failure> {
    let kept = manager::kept();
    let old: Vec<String> = kept.iter().map(|(name, _)| name.clone()).collect();
    let options = Options {
        all: args.all,
        every: args.every,
        flows: args.flows,
        take_over: args.take_over,
        blind: args.blind,
        key: args.key.as_deref().map(Key::read).transpose()?,
        ..Options::new(&args.wan, &args.ran)
    };
    options.check()?;
    ebpf::pep::check()?;
    let signals = Signals::take()?;
    let replaces = args.take_over || !old.is_empty();
    let mut served = Served::open(args, replaces)?;
    let mut reserved = match reserve(args) {
        // The PEP that this one replaces holds the reservations until it ends.
        Err(_) if args.take_over => None,
        reserved => Some(reserved?),
    };
    let mut pep = Pep::start(&options, kept)?;
    if let Some(manager) = Manager::find()? {
        hand_over(&manager, &old, &pep.parts())
            .map_err(|why| anyhow::anyhow!("speak to the service manager: {why}"))?;
    }
    // Reading counters and detaching need only open file descriptors.
    netio::rights::give_up()?;
    served.look(&pep);
    if !args.quiet {
        let before = match pep.took_over() {
            TookOver::Nothing => "",
            TookOver::Places => ", taken over from the previous one, a different version, without its flows",
            TookOver::All => ", taken over from the previous one",
        };
        let at = metrics::place(served.server.as_ref());
        terminal::message!("PEP running between {} and {}{before}{at}; press Ctrl-C to stop", args.wan, args.ran);
    }
    let title = || untitled(format!("PEP between {} and {}", args.wan, args.ran));
    let dashboard = match args.dashboard.start("pep", title, args.quiet, |_| {}) {
        // The one that it replaces still has the address, and ends.
        Err(why) if replaces => {
            let why = why.message().unwrap_or_default();
            terminal::message!("error: {why}; the PEP goes on without the page");
            None
        }
        dashboard => dashboard?,
    };
    let values = dashboard.as_ref().map(|page| Values::new(page.publisher()));
    let (mut before, mut looked) = (pep.counters(), Instant::now());
    let mut proxied = false;
    let mut line = (!args.quiet && !args.json).then(|| StatusLine::new(false)).flatten();
    loop {
        warn_of_proxy(&mut proxied, args);
        let happened = signals.wait(TICK);
        if let Some(values) = &values {
            let (now, seconds) = (pep.counters(), looked.elapsed().as_secs_f64().max(1e-3));
            looked = Instant::now();
            values.show(|t_s| (rows(t_s, (&before, &now), seconds), counted(&now)));
            before = now;
        }
        if reserved.is_none() {
            reserved = reserve(args).ok();
        }
        served.look(&pep);
        match happened {
            Happened::Asked { .. } => break,
            _ if pep.lost_interface().is_some() => {
                drop(line);
                let interface = pep.lost_interface().unwrap_or_default();
                let what = format!("the interface `{interface}` was removed, or moved to another network namespace");
                return Err(anyhow::anyhow!(what).into());
            }
            _ if terminal::is_closed() => break,
            _ if pep.is_replaced() => {
                drop(line);
                if !args.quiet {
                    terminal::message!("another PEP has taken over; exiting");
                }
                return Ok(());
            }
            _ if args.json => terminal::put_line(&serde_json::to_string(&pep.counters())?)?,
            _ => line.iter_mut().for_each(|line| line.show(&text(&pep.counters()))),
        }
    }
    drop(line);
    if !args.quiet && !args.json {
        terminal::message!("{}", text(&pep.counters()));
    }
    Ok(())
}

/// The metrics, without which the PEP reports, too.
struct Served {
    access: Option<MetricsAccess>,
    listener: Option<MetricsListener>,
    server: Option<MetricsServer>,
    failures: u32,
}

impl Served {
    /// Reserves the address of the metrics, if they are to be served. If the PEP replaces another one, a failure is no reason not to.
    fn open(args: &PepArgs, replaces: bool) -> Result<Served, Failure> {
        let access = args.metrics.access()?;
        let listener = match access.clone().map(MetricsListener::bind).transpose() {
            Err(_) if replaces => None,
            listener => listener?,
        };
        Ok(Served { access, listener, server: None, failures: 0 })
    }

    /// Begins to serve the metrics that the operator wants, until that has succeeded.
    fn look(&mut self, pep: &Pep) {
        if self.server.is_some() {
            return;
        }
        let Some(access) = &self.access else { return };
        let listener = self.listener.take().map_or_else(|| MetricsListener::bind(access.clone()), Ok);
        let statistics = pep.statistics();
        match listener.and_then(|listener| listener.serve(move || told(&statistics))) {
            Ok(server) => self.server = Some(server),
            Err(why) => {
                self.failures += 1;
                if self.failures == ATTEMPTS {
                    terminal::message!("error: {why}; the PEP goes on without them, and tries again");
                }
            }
        }
    }
}

/// Has the service manager keep these parts instead of the old ones: the programs stay attached while the service is restarted.
fn hand_over(manager: &Manager, old: &[String], parts: &[(String, OwnedFd)]) -> io::Result<()> {
    for name in old {
        manager.forget(name)?;
    }
    for (name, part) in parts {
        manager.keep(name, part.as_fd())?;
    }
    manager.ready()
}

/// Says what will not work beside a split proxy, once for each that is there or starts.
fn warn_of_proxy(known: &mut bool, args: &PepArgs) {
    let found = [&args.wan, &args.ran]
        .into_iter()
        .find_map(|interface| Some((interface, reservation::holder_of(Role::Proxy, interface)?)));
    if let Some((interface, holder)) = found.as_ref().filter(|_| !*known) {
        terminal::message!(
            "warning: {holder} proxies the connections of `{interface}`: they end at this machine, so no server gets reports on \
             them; only connections that the proxy lets pass get reports"
        );
    }
    *known = found.is_some();
}

/// Reserves the interfaces on both sides.
fn reserve(args: &PepArgs) -> Result<[Reservation; 2], netio::Error> {
    Ok([Reservation::new(Role::Pep, &args.wan)?, Reservation::new(Role::Pep, &args.ran)?])
}

/// The rates over the seconds between two looks, for the dashboard: of the data towards UEs, and of the reports towards servers.
fn rows(t_s: f64, (before, now): (&Counters, &Counters), seconds: f64) -> Tables {
    let mut rows = Tables::default();
    let data = now.data_bytes.saturating_sub(before.data_bytes);
    let reports = now.report_bytes.saturating_sub(before.report_bytes);
    for (flow, bytes) in [("data of all flows", data), ("reports to servers", reports)] {
        rows.samples.push(&SampleRow::counted((0, flow, 0), t_s, bytes as f64 * 8e-6 / seconds));
    }
    rows
}

/// The counters for the dashboard.
fn counted(counters: &Counters) -> Vec<Counter> {
    let &Counters { data, reports, nacks, withheld, flows, failed, damaged, .. } = counters;
    vec![
        Counter { name: "pep_flows", what: "flows", value: flows },
        Counter { name: "pep_segments", what: "data segments", value: data },
        Counter { name: "pep_reports", what: "reports (PEP-ACK)", value: reports },
        Counter { name: "pep_nacks", what: "reports of missing data (PEP-NACK)", value: nacks },
        Counter { name: "pep_withheld", what: "reports withheld", value: withheld },
        Counter { name: "pep_failed", what: "reports that could not be sent", value: failed },
        Counter { name: "pep_damaged", what: "segments ignored for a wrong checksum", value: damaged },
    ]
}

/// The metrics; none if the kernel does not tell the counters.
fn told(statistics: &Arc<Statistics>) -> Vec<Metric> {
    statistics.counters().map_or_else(Vec::new, |counters| described(&counters, statistics.flows_limit()))
}

fn described(counters: &Counters, flows_limit: u32) -> Vec<Metric> {
    let &Counters { data_bytes, report_bytes, missed, .. } = counters;
    let mut all = metrics::of_counters(counted(counters));
    all.extend([
        Metric::counter("pep_segment_bytes", "bytes of data segments, on the IP layer", data_bytes),
        Metric::counter("pep_report_bytes", "bytes of reports, on the IP layer", report_bytes),
        Metric::counter("pep_missed", "segments ignored because another processor had their flow", missed),
        Metric::gauge("pep_flows_limit", "the most flows that are remembered", Some(f64::from(flows_limit))),
    ]);
    all
}

#[cfg(test)]
pub(crate) fn example() -> Vec<Metric> {
    described(&Counters::default(), 1)
}

fn text(counters: &Counters) -> String {
    let Counters { data, data_bytes, reports, nacks, withheld, flows, failed, damaged, .. } = counters;
    let mut text = format!(
        "{flows} flows  {data} segments of {:.1} MB  {reports} reports, {nacks} of them NACKs",
        *data_bytes as f64 / 1e6
    );
    for (count, what) in [(withheld, "withheld"), (failed, "failed"), (damaged, "damaged")] {
        if *count > 0 {
            text += &format!("  {count} {what}");
        }
    }
    text
}
