//! `ranway mdcc`.

use crate::failure::Failure;
use crate::live::args::{MdccCommand, MdccLoadArgs, MdccMode, MdccStatusArgs};
use crate::live::metrics;
use crate::terminal::{self, message};
use comfy_table::{CellAlignment, Table, presets};
use ebpf::Key;
use ebpf::mdcc::{self, Options, Parameters, Socket, Watch};
use netio::process::{Happened, Signals};
use services::{Metric, MetricsListener};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Interval between checks that it is still loaded.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(command: &MdccCommand) -> Result<(), Failure> {
    match command {
        MdccCommand::Load(args) => load(args),
        MdccCommand::Status(args) => status(args),
        MdccCommand::Unload => unload(),
    }
}

fn load(args: &MdccLoadArgs) -> Result<(), Failure> {
    let parameters = Parameters {
        step: args.step,
        decrease: args.decrease,
        initial_ratio: args.initial_ratio,
        validation_ratio: args.validation_ratio,
        loss_filter: !args.no_loss_filter,
        published: args.mode == MdccMode::Published,
    };
    let cgroup = args.cgroup.clone();
    let key = args.key.as_deref().map(Key::read).transpose()?;
    Ok(mdcc::load(&Options { parameters, cgroup, default: args.default, announce_all: args.announce_all, key })?)
}

fn unload() -> Result<(), Failure> {
    match mdcc::unload()? {
        0 => {}
        1 => message!("a connection still uses mdcc; it continues with CUBIC until it is closed"),
        n => message!("{n} connections still use mdcc; they continue with CUBIC until they are closed"),
    }
    Ok(())
}

fn status(args: &MdccStatusArgs) -> Result<(), Failure> {
    if let Some(listener) = args.metrics.listen()? {
        return serve(listener, args.quiet);
    }
    let sockets = mdcc::status()?;
    let mut stdout = terminal::stdout();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&sockets)?)?;
    } else if sockets.is_empty() {
        writeln!(stdout, "mdcc is loaded; no connection uses it")?;
    } else {
        writeln!(stdout, "{}", table(&sockets))?;
    }
    Ok(())
}

/// Serves metrics of the sockets until a signal, or until it is unloaded.
fn serve(listener: MetricsListener, quiet: bool) -> Result<(), Failure> {
    let signals = Signals::take()?;
    let watch = Arc::new(Watch::open()?);
    // Listing sockets needs only an open file descriptor.
    netio::rights::give_up()?;
    let told = Arc::clone(&watch);
    // Sockets that the kernel does not tell are missing.
    let server = listener.serve(move || told.sockets().map_or_else(|_| Vec::new(), |sockets| described(&sockets)))?;
    if !quiet {
        let at = metrics::place(Some(&server));
        message!("watching the connections that use mdcc{at}; press Ctrl-C to stop");
    }
    while watch.is_loaded() {
        if matches!(signals.wait(TICK), Happened::Asked { .. }) || terminal::is_closed() {
            return Ok(());
        }
    }
    if !quiet {
        message!("mdcc was unloaded; exiting");
    }
    Ok(())
}

/// The metrics of the sockets together. What they have counted ends with them, so the sums are no counters.
fn described(sockets: &[Socket]) -> Vec<Metric> {
    let number = |joined| sockets.iter().filter(|socket| socket.joined == joined).count() as f64;
    let heard = [("heard", Some(number(true))), ("silent", Some(number(false)))];
    let sum = |of: fn(&Socket) -> u64| Some(sockets.iter().map(of).sum::<u64>() as f64);
    let cwnds = [("pep", sum(|socket| socket.cwnd_pep.into())), ("e2e", sum(|socket| socket.cwnd_e2e.into()))];
    let rtts: Vec<f64> = sockets.iter().filter_map(|socket| socket.pep_rtt_ms).collect();
    let mean_s = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() * 1e-3 / rtts.len() as f64);
    vec![
        Metric::gauges("mdcc_connections", "connections that use mdcc, by whether a PEP is heard", "pep", heard),
        Metric::gauges("mdcc_cwnd_segments", "congestion windows of these connections together", "window", cwnds),
        Metric::gauge("mdcc_pep_rtt_seconds", "mean smoothed round-trip time to the PEP of connections", mean_s),
        Metric::gauge("mdcc_reports", "reports that these connections have accepted", sum(|socket| socket.reports)),
        Metric::gauge("mdcc_nacks", "accepted reports of missing data", sum(|socket| socket.nacks)),
        Metric::gauge("mdcc_ignored", "reports that were not valid", sum(|socket| socket.ignored)),
        Metric::gauge(
            "mdcc_fallbacks",
            "times that a PEP fell silent, or a timeout occurred",
            sum(|socket| socket.fallbacks),
        ),
        Metric::gauge(
            "mdcc_filtered",
            "losses that left the end-to-end window as it was",
            sum(|socket| socket.filtered),
        ),
    ]
}

#[cfg(test)]
pub(crate) fn example() -> Vec<Metric> {
    described(&[])
}

fn table(sockets: &[Socket]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "local",
        "remote",
        "PEP",
        "cwnd_pep",
        "cwnd_e2e",
        "PEP RTT",
        "reports",
        "NACKs",
        "filtered",
        "fallbacks",
        "ignored",
    ]);
    for socket in sockets {
        let rtt = socket.pep_rtt_ms.map_or_else(|| "-".into(), |ms| format!("{ms:.1} ms"));
        table.add_row([
            socket.local.to_string(),
            socket.remote.to_string(),
            if socket.joined { "heard" } else { "silent" }.into(),
            socket.cwnd_pep.to_string(),
            socket.cwnd_e2e.to_string(),
            rtt,
            socket.reports.to_string(),
            socket.nacks.to_string(),
            socket.filtered.to_string(),
            socket.fallbacks.to_string(),
            socket.ignored.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
