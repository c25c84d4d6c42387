//! What a mistyped command was meant to be.

use crate::args::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::path::Path;

/// The command line. One that is wrong ends the program, with a suggestion where there is one.
pub(crate) fn parse() -> Args {
    Args::try_parse().unwrap_or_else(|mut error| {
        suggest(&mut error);
        error.exit()
    })
}

/// Suggests commands of which letters are missing, wrong or swapped, which clap does not find in short names; and `run`
/// where the command is missing before a scenario.
fn suggest(error: &mut clap::Error) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand).cloned() else { return };
    let commands = Args::command();
    let names = || commands.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let is_scenario = scenario::builtin::list().iter().any(|builtin| builtin.name == wrong)
        || (Path::new(&wrong).extension().is_some_and(|end| end == "toml") && Path::new(&wrong).is_file());
    let suggestion = if is_scenario {
        Some(format!("run {wrong}"))
    } else {
        scenario::nearest(&wrong, names()).map(ToOwned::to_owned)
    };
    if let Some(suggestion) = suggestion {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![suggestion]));
    }
}
