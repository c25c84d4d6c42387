//! `ranway emulate` and `ranway control`.

use crate::failure::{Failure, warned};
use crate::live::args::{ControlArgs, EmulateArgs, RootlessArgs};
use crate::live::dashboard::OfEmulation;
use crate::live::status_line::StatusLine;
use crate::out::{commit, default_out, stem};
use crate::{reports, table, terminal};
use anyhow::anyhow;
use console::Term;
use emulate::account::Account;
use emulate::lab::{ID_VARIABLE, Lab};
use emulate::reports::Target;
use emulate::uplink::Nat;
use emulate::{Emulation, Finished, Glance, Options, control, rootless};
use netio::process::{Attended, Happened, Signals};
use record::{Lateness, Output, Partial, Results};
use scenario::{Loaded, Scenario};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{Bytes, Rate, Span};

/// Exit code for a failure of the environment.
const FAILED: u8 = 1;
/// Exit code of an emulation whose results are invalid because packets were late.
const INVALID: u8 = 3;
/// Exit code after the terminal was closed, the same as a shell's for SIGHUP.
const HUNG_UP: u8 = 128 + 1;
/// How long a command may take to end after its terminal was closed.
const GRACE: Duration = Duration::from_secs(2);
/// Exit code for a program that does not exist, the same as a shell's.
const NOT_FOUND: u8 = 127;
/// Interval between updates of the status line.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn emulate(args: &EmulateArgs) -> Result<(), Failure> {
    become_root(args)?;
    let loaded = load(args)?;
    // All checks of the input come before anything is written.
    let scenario = emulate::single(&loaded)?;
    let (duration, hosts) = (scenario.duration, emulate::hosts(scenario));
    let ue = which_ue(args.ue, &hosts)?;
    let command = command(args)?;
    let account = args.user.as_deref().map(Account::named).transpose()?;
    if command.is_none() {
        check_without_command(args, scenario)?;
    }
    let interfaces = match args.attach.as_deref() {
        Some([wan, ran]) => Some([wan.as_str(), ran]),
        _ => None,
    };
    let mut options = Options {
        which: None,
        mtu: args.mtu,
        kernel: args.kernel,
        capture: args.pcap,
        bound: args.max_lateness,
        output: None,
        nat: None,
        router: args.router.clone(),
        names: args.names.clone(),
        program: Some(std::env::current_exe()?),
        reports: args.reports.clone(),
        watch: None,
    };
    emulate::check(scenario, &options, interfaces.is_some())?;
    let unheeded = if args.kernel { emulate::kernel::unheeded(scenario) } else { Vec::new() };
    if !unheeded.is_empty() {
        let keys = unheeded.join("`, `");
        terminal::message!("warning: `{keys}`: set for simulated hosts; the kernel's have their own");
    }
    let out = args.out.clone().unwrap_or_else(|| default_out(&format!("{}-emulated", stem(&args.source.file))));
    if let Some(Target::File(file)) = &args.reports {
        reports::check(file, &out)?;
    }
    interfaces.map_or_else(emulate::lab::check, |wires| Ok(netio::attach::check(wires)?))?;
    let nat = args.nat.then(|| Nat { dns: args.dns.clone() });
    nat.as_ref().map_or(Ok(()), |_| emulate::uplink::check())?;
    let signals = Signals::take()?;
    let output = Output::create(&out)?;
    (options.output, options.nat) = (Some(output), nat);
    let dashboard = OfEmulation::start(
        &args.dashboard,
        emulate::single(&loaded)?,
        || sim::meta(&loaded),
        args.quiet,
        &mut options,
    )?;
    let started = |emulation: &Emulation| dashboard.iter().for_each(|dashboard| dashboard.started(emulation));
    let (emulation, code) = match interfaces {
        Some([wan, ran]) => {
            let emulation = Emulation::attach(loaded, options, [wan, ran], ue)?;
            started(&emulation);
            if !args.quiet {
                let (server, ue, id) = (&hosts[0], &hosts[ue], emulation.id());
                terminal::message!("attached {wan} ({server}) and {ran} ({ue}); ID {id}; press Ctrl-C to stop");
            }
            let code = wait_for_stop(&emulation, (1, &hosts[ue]), &mut status_line(args), &signals);
            (emulation, code)
        }
        None => {
            let emulation = Emulation::start(loaded, options)?;
            started(&emulation);
            if emulation.lab().and_then(Lab::resolves) == Some(false) {
                terminal::message!(
                    "warning: the hosts cannot resolve external names: /etc/resolv.conf has no server that they can reach. Set \
                     one with --dns ADDRESS"
                );
            }
            let code = run_command(
                args,
                &emulation,
                (ue, &hosts[ue]),
                (command.as_ref(), account.as_ref()),
                duration,
                &signals,
            )?;
            (emulation, code)
        }
    };
    let finished = emulation.finish()?;
    let notes = finished.notes();
    let Finished { mut results, output, gone, incomplete, .. } = finished;
    let stopped_early = interfaces.is_none() && command.is_none() && code != 0;
    let partial = stopped_early || gone.is_some();
    results.meta.partial = partial.then_some(Partial { of: 1, ..Partial::default() });
    let code = if gone.is_some() || incomplete.is_some() { FAILED } else { code };
    let out = save_results(&results, output.expect("it was given one"), partial, &out)?;
    let lateness = results.timing.lateness.unwrap_or_default();
    if let Some(dashboard) = dashboard {
        notes.iter().for_each(|note| dashboard.note(note));
        dashboard.end(&out);
    }
    show_results(args, &results, &notes, code, &out)?;
    if !lateness.valid {
        terminal::message!("invalid: {}", why_invalid(&lateness));
    }
    if let Some(why) = gone {
        return Err(anyhow!("{why}; the measurements until then are in {}", out.display()).into());
    }
    match code {
        0 if !lateness.valid => Err(Failure::Exit(INVALID)),
        0 => Ok(()),
        code => Err(Failure::Exit(code)),
    }
}

/// Checks that there is something to run without a command, and nothing that needs one.
fn check_without_command(args: &EmulateArgs, scenario: &Scenario) -> Result<(), Failure> {
    if args.user.is_some() {
        return Err(Failure::Invalid("--user needs a command: give one after `--`, or use --shell".into()));
    }
    if args.server.is_none() && args.attach.is_none() && scenario.flows.is_empty() {
        return Err(Failure::Invalid(format!(
            "{}: nothing to run: the scenario has no [[flows]], and no command was given. Give one after `--`, as in \
             `ranway emulate {} -- ping -c 10 server`, or use --shell",
            args.source.file, args.source.file
        )));
    }
    Ok(())
}

fn show_results(args: &EmulateArgs, results: &Results, notes: &[String], code: u8, out: &Path) -> Result<(), Failure> {
    if args.json {
        let answer = serde_json::json!({ "out": out, "exit_code": code, "summary": results.summary(), "timing": results.timing });
        writeln!(terminal::stdout(), "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.quiet {
        let summary = table::summary(results, table::width(&Term::stderr(), args.wide));
        terminal::message!("{}", summary.trim_end_matches('\n'));
        terminal::message!("{}", lateness_text(&results.timing.lateness.unwrap_or_default()));
        for note in notes {
            terminal::message!("{note}");
        }
        terminal::message!("report: {}", out.join("report.html").display());
    }
    Ok(())
}

/// Writes the results and returns their path. If the disk is full, the captures are deleted first; if that does not free
/// enough, the summary is printed, so that it is not lost.
fn save_results(results: &Results, output: Output, partial: bool, out: &Path) -> Result<PathBuf, Failure> {
    let mut written = results.write_to(&output);
    if written.as_ref().is_err_and(record::Error::is_full) {
        terminal::message!("the disk is full: deleting captures to save the results");
        output.clear()?;
        written = results.write_to(&output);
    }
    let saved = written.map_err(Failure::from).and_then(|()| commit(output, partial, out));
    if saved.is_err() {
        let summary = table::summary(results, table::width(&Term::stderr(), false));
        terminal::message!("{}", summary.trim_end_matches('\n'));
    }
    saved
}

/// Prints a non-fatal problem of the run, once.
fn warn(glance: &Glance, warned: &mut bool) {
    if let Some(trouble) = glance.trouble.as_ref().filter(|_| !*warned) {
        *warned = true;
        terminal::message!("warning: {trouble}");
    }
}

/// Creates the status line, except in quiet mode and for a shell, which has the whole terminal.
fn status_line(args: &EmulateArgs) -> Option<StatusLine> {
    let shared = !args.command.is_empty() || args.server.is_some() || args.at_router.is_some();
    (!args.quiet && !args.shell).then(|| StatusLine::new(shared)).flatten()
}

/// Reads the scenario, with one run: an emulation is one run.
fn load(args: &EmulateArgs) -> Result<Loaded, Failure> {
    let mut set = args.source.overrides();
    set.push("runs=1".into());
    warned(Scenario::load_for_emulation(&args.source.file, &set, &scenario::read_file))
}

/// Checks a UE's number, counted from 1. The first host is the server, so the number is the UE's index among the hosts.
/// Without root, goes into namespaces in which this process is root, unless the emulation needs the machine's own.
fn become_root(args: &EmulateArgs) -> Result<(), Failure> {
    let needs_root = [
        (args.attach.is_some(), "--attach"),
        (args.nat, "--nat"),
        (args.user.is_some(), "--user"),
        (args.dashboard.is_wanted(), "--dashboard"),
    ];
    if !rootless::is_needed() {
        return Ok(());
    }
    if let Some((_, option)) = needs_root.into_iter().find(|(is_set, _)| *is_set) {
        return Err(Failure::Invalid(format!("{option} needs root: use sudo")));
    }
    rootless::enter()?;
    if !args.quiet {
        terminal::message!("note: without root: {}", rootless::LACKS);
    }
    Ok(())
}

/// Becomes a program in namespaces in which emulations need no root.
pub(crate) fn rootless(args: &RootlessArgs) -> Result<(), Failure> {
    if rootless::is_needed() {
        rootless::enter()?;
    }
    let (program, rest) = args.command.split_first().expect("it is required");
    let error = std::process::Command::new(program).args(rest).exec();
    Err(Failure::Invalid(format!("{}: {error}", program.display())))
}

fn which_ue(ue: usize, hosts: &[String]) -> Result<usize, Failure> {
    if ue == 0 || ue >= hosts.len() {
        let ues = hosts.iter().skip(1).enumerate().map(|(i, name)| format!("{} ({name})", i + 1));
        let ues: Vec<String> = ues.collect();
        return Err(Failure::Invalid(format!("--ue {ue}: no such UE; the UEs are {}", ues.join(", "))));
    }
    Ok(ue)
}

/// Returns the command to run at the UE, if any.
fn command(args: &EmulateArgs) -> Result<Option<(OsString, Vec<OsString>)>, Failure> {
    if args.shell {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        return Ok(Some((shell, Vec::new())));
    }
    let Some((program, rest)) = args.command.split_first() else { return Ok(None) };
    if netio::program::find_program(program).is_none() {
        terminal::message!("error: {}: program not found", program.display());
        return Err(Failure::Exit(NOT_FOUND));
    }
    Ok(Some((program.clone(), rest.to_vec())))
}

/// Waits until the emulation is stopped, and returns the exit code.
fn wait_for_stop(emulation: &Emulation, ue: (usize, &str), line: &mut Option<StatusLine>, signals: &Signals) -> u8 {
    let mut warned = false;
    while !emulation.is_over() {
        let happened = signals.wait(TICK);
        warn(&emulation.glance(), &mut warned);
        match (happened, &mut *line) {
            (happened, _) if happened.is_hang_up() || terminal::is_closed() => return HUNG_UP,
            (Happened::Asked { .. }, _) => break,
            (Happened::Nothing, Some(line)) => line.show(&status(&emulation.glance(), ue)),
            _ => {}
        }
    }
    0
}

/// Runs the command at a UE, or the scenario's flows without a command, and returns the exit code.
fn run_command(
    args: &EmulateArgs,
    emulation: &Emulation,
    ue: (usize, &str),
    (command, account): (Option<&(OsString, Vec<OsString>)>, Option<&Account>),
    duration: Span,
    signals: &Signals,
) -> Result<u8, Failure> {
    let lab = emulation.lab().expect("commands run in namespaces");
    let start_at = |host: usize, line: &String| {
        let mut shell = lab.command(host, "sh".as_ref());
        shell.args(["-c", line]);
        Attended::start(shell, line)
    };
    // They end in the reverse order.
    let at_router = args.at_router.as_ref().zip(lab.router());
    let mut at_router = at_router.map(|(line, router)| start_at(router, line)).transpose()?;
    let mut at_server = args.server.as_ref().map(|line| start_at(0, line)).transpose()?;
    let mut attended = match command {
        None => None,
        Some((program, rest)) => {
            let mut command = match account {
                Some(account) => account.command(lab, ue.0, program),
                None => lab.command(ue.0, program),
            };
            command.args(rest);
            Some(Attended::start(command, &program.to_string_lossy())?)
        }
    };
    let mut line = status_line(args);
    let mut warned = false;
    let code = loop {
        let happened = signals.wait(TICK);
        warn(&emulation.glance(), &mut warned);
        if let Some(attended) = &mut attended
            && let Some(code) = attended.ended()?
        {
            break Ok(code);
        }
        if emulation.is_over() || (attended.is_none() && emulation.elapsed() >= duration) {
            break Ok(0);
        }
        if happened.is_hang_up() || terminal::is_closed() {
            if let Some(attended) = &mut attended {
                attended.hang_up(GRACE);
            }
            break Ok(HUNG_UP);
        }
        match (happened, &attended) {
            // The command has received the terminal's signal as well.
            (Happened::Asked { terminal: true, .. }, Some(_)) => {}
            (Happened::Asked { signal, terminal: false }, Some(attended)) => attended.signal(signal),
            (Happened::Asked { signal, .. }, None) => break Ok(128 + signal as u8),
            (Happened::Nothing, _) => line.iter_mut().for_each(|line| line.show(&status(&emulation.glance(), ue))),
            _ => {}
        }
    };
    for (option, attended) in [("--at-router", &mut at_router), ("--server", &mut at_server)] {
        if let Some(code @ 1..) = attended.as_mut().map(Attended::ended).transpose()?.flatten() {
            terminal::message!("warning: the command of {option} ended with the exit code {code}");
        }
    }
    code
}

/// The text of the status line; `host` is the index of the host whose packets are counted, `ue` the UE's name.
fn status(glance: &Glance, (host, ue): (usize, &str)) -> String {
    let mbps = |bytes: Option<&u64>| Rate::over(Bytes::new(bytes.copied().unwrap_or(0)), Span::from_secs(1)).as_mbps();
    let delay =
        glance.delay.get(host).copied().flatten().map_or_else(|| "-".into(), |d| format!("{:.0}", record::ms(d)));
    let ue = glance.status.ues.iter().find(|about| about.ue == ue);
    let queue = ue.map_or_else(
        || glance.status.links.iter().map(|link| link.bytes).max().unwrap_or(0),
        |ue| ue.downlink_bytes.max(ue.uplink_bytes),
    );
    let radio = ue.map_or_else(String::new, |ue| {
        format!("  CQI {:2}  {}", ue.cqi, ue.cell.as_deref().unwrap_or("between cells"))
    });
    format!(
        "{:5.0} s  down {:7.2} Mbit/s  up {:7.2} Mbit/s  delay {delay:>5} ms  queue {:6} kB{radio}",
        glance.at.as_secs_f64(),
        mbps(glance.received.get(host)),
        mbps(glance.received.first()),
        queue / 1000,
    )
}

fn lateness_text(late: &Lateness) -> String {
    format!(
        "packet lateness: {:.3} ms (median), {:.3} ms (99th percentile), {:.3} ms (maximum); CPU load {:.0} % of one core",
        late.p50_ms,
        late.p99_ms,
        late.max_ms,
        late.cpu_share * 100.0
    )
}

fn why_invalid(late: &Lateness) -> String {
    if late.missed > 0 {
        return format!(
            "{} packets were lost between a host and the network: the packet rate is too high for this machine",
            late.missed
        );
    }
    let hint = if late.realtime { "" } else { ", which is to be expected without real-time priority" };
    let why = if late.p99_ms > late.bound_ms {
        format!("1 % of the packets were more than {:.3} ms late; the bound is {:.3} ms", late.p99_ms, late.bound_ms)
    } else if late.max_ms > late.worst_bound_ms {
        format!("a packet was {:.3} ms late; the bound for any packet is {:.3} ms", late.max_ms, late.worst_bound_ms)
    } else if late.longest_stall_ms > late.worst_bound_ms {
        format!("the network stalled for {:.3} ms; the bound is {:.3} ms", late.longest_stall_ms, late.worst_bound_ms)
    } else {
        format!("the network was stalled for {:.2} % of the time; the bound is 1 %", late.stalled_share * 100.0)
    };
    why + hint
}

pub(crate) fn control(args: &ControlArgs) -> Result<(), Failure> {
    let running = control::running();
    let names = || running.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ");
    // A program in a host of an emulation means that one.
    let own = std::env::var(ID_VARIABLE).ok().filter(|id| running.iter().any(|(running, _)| running == id));
    let (_, path) = match (args.id.as_ref().or(own.as_ref()), &running[..]) {
        (_, []) => return Err(anyhow!("no emulation of this user is running on this machine").into()),
        (Some(id), _) => running
            .iter()
            .find(|(running, _)| running == id)
            .ok_or_else(|| Failure::Invalid(format!("no emulation has the ID {id}; running: {}", names())))?,
        (None, [only]) => only,
        (None, _) => {
            return Err(Failure::Invalid(format!("several emulations are running; choose one with --id: {}", names())));
        }
    };
    let line = control::line(args.words.iter().map(String::as_str));
    let answer = control::ask(path, &line, Duration::from_secs(2))?;
    if !answer.is_empty() {
        writeln!(terminal::stdout(), "{answer}")?;
    }
    Ok(())
}
