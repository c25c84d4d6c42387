//! `ranway mdcc`.

use crate::failure::Failure;
use crate::live::args::{MdccCommand, MdccLoadArgs, MdccMode, MdccStatusArgs};
use crate::terminal::message;
use comfy_table::{CellAlignment, Table, presets};
use ebpf::Key;
use ebpf::mdcc::{self, Options, Parameters, Socket};
use std::io::Write;

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
    let sockets = mdcc::status()?;
    let mut stdout = crate::terminal::stdout();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&sockets)?)?;
    } else if sockets.is_empty() {
        writeln!(stdout, "mdcc is loaded; no connection uses it")?;
    } else {
        writeln!(stdout, "{}", table(&sockets))?;
    }
    Ok(())
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
