//! Suggestions for mistyped commands.

use crate::args::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::Path;

/// The commands of the feature `live`.
#[cfg(any(test, not(feature = "live")))]
const LIVE: [&str; 12] = [
    "emulate", "control", "rootless", "mdcc", "pep", "backlog", "rnis", "measure", "campaign", "proxy", "oracle",
    "analyse",
];

/// Parses the command line. If it is invalid, exits with a message, and a suggestion if one is close enough.
pub(crate) fn parse() -> Args {
    Args::try_parse().unwrap_or_else(|mut error| {
        suggest(&mut error);
        name_numbers(&mut error);
        error.exit()
    })
}

/// Says what a number must be, where clap quotes the standard library.
fn name_numbers(error: &mut clap::Error) {
    let Some(source) = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation) else { return };
    let what = if let Some(wrong) = source.downcast_ref::<ParseIntError>() {
        match wrong.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "the number is too large",
            _ => "expected a whole number, such as 3",
        }
    } else if source.is::<ParseFloatError>() {
        "expected a number, such as 0.5"
    } else {
        return;
    };
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return;
    };
    let said = format!("invalid value '{value}' for '{option}': {what}\n\nFor more information, try '--help'.\n");
    *error = clap::Error::raw(ErrorKind::ValueValidation, said);
}

/// Suggests commands with missing, wrong or swapped letters, which clap misses in short names; and `run` if the first
/// argument is a scenario instead of a command.
fn suggest(error: &mut clap::Error) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand).cloned() else { return };
    #[cfg(not(feature = "live"))]
    if LIVE.contains(&wrong.as_str()) {
        let why = format!("this command was built to simulate alone; `make build` builds one with `{wrong}`");
        *error = Args::command().error(ErrorKind::InvalidSubcommand, why);
        return;
    }
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

#[cfg(all(test, feature = "live"))]
mod tests {
    use super::*;
    use clap::Subcommand;

    #[test]
    fn what_a_build_to_simulate_lacks_are_the_live_commands() {
        let commands = crate::live::args::Command::augment_subcommands(clap::Command::new("ranway"));
        let names = commands.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        assert_eq!(names.collect::<Vec<_>>(), LIVE);
    }
}
