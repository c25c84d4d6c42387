//! The commands that meet real networks, programs and captures: the feature `live`.

mod analyse;
pub(crate) mod args;
mod backlog;
mod campaign;
pub(crate) mod dashboard;
mod emulate;
mod mdcc;
mod measure;
mod oracle;
mod pep;
mod proxy;
mod rnis;
mod status_line;

use crate::failure::Failure;
use anyhow::Error;
use args::Command;

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Emulate(args) => emulate::emulate(args),
        Command::Control(args) => emulate::control(args),
        Command::Mdcc(command) => mdcc::run(command),
        Command::Pep(args) => pep::run(args),
        Command::Backlog(args) => backlog::run(args),
        Command::Rnis(args) => rnis::run(args),
        Command::Measure(args) => measure::run(args),
        Command::MeasureCapture { server } => measure::capture::help(*server),
        Command::Campaign(args) => campaign::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::ProxyGuardian => proxy::guard(),
        Command::Oracle(args) => oracle::run(args),
        Command::Analyse(args) => analyse::run(args),
    }
}

/// What is wrong with the input, if an error says so.
pub(crate) fn wrong(error: &Error) -> Option<String> {
    let refused = matches!(error.downcast_ref(), Some(::emulate::Error::Record(record::Error::Untrusted(_))))
        || matches!(
            error.downcast_ref(),
            Some(
                ::campaign::Error::Invalid(_)
                    | ::campaign::Error::Disk(disk::Error::Untrusted { .. })
                    | ::campaign::Error::Record(record::Error::Untrusted(_))
            )
        );
    if refused {
        return Some(error.to_string());
    }
    match (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()) {
        (Some(::emulate::Error::Wrong(what)), _, _)
        | (_, Some(netio::Error::Wrong(what)), _)
        | (_, _, Some(ebpf::Error::Wrong(what))) => Some(what.clone()),
        _ => None,
    }
}
