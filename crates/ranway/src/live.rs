//! The commands that meet real networks, programs and captures: the feature `live`.

mod analyse;
pub(crate) mod args;
mod backlog;
mod campaign;
pub(crate) mod dashboard;
mod emulate;
mod mdcc;
mod measure;
mod metrics;
mod oracle;
mod pep;
mod proxy;
mod rnis;
mod secrets;
mod status_line;

use crate::failure::Failure;
use args::Command;

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Emulate(args) => emulate::emulate(args),
        Command::Control(args) => emulate::control(args),
        Command::Rootless(args) => emulate::rootless(args),
        Command::Mdcc(command) => mdcc::run(command),
        Command::Pep(args) => pep::run(args),
        Command::Backlog(args) => backlog::run(args),
        Command::Rnis(args) => rnis::run(args),
        Command::Measure(args) => measure::run(args),
        Command::MeasureCapture { server, interface } => measure::capture::help(*server, interface.clone()),
        Command::Campaign(args) => campaign::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::ProxyGuardian => proxy::guard(),
        Command::Oracle(args) => oracle::run(args),
        Command::Analyse(args) => analyse::run(args),
    }
}
