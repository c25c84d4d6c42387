//! The `ranway` command: arguments and wiring only.
// A command-line program has to read files and write to the terminal.
#![allow(clippy::disallowed_methods)]
// All output goes through `terminal`, which does not panic when the terminal has been closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod analyse;
mod args;
mod backlog;
mod campaign;
mod dashboard;
mod demo;
mod emulate;
mod failure;
mod generate;
mod import;
mod init;
mod interrupt;
mod mdcc;
mod measure;
mod oracle;
mod out;
mod pep;
mod progress;
mod proxy;
mod reproduce;
mod rnis;
mod run;
mod show;
mod status_line;
mod sweep;
mod table;
mod terminal;
mod typo;

use crate::terminal::message;
use args::Command;
use failure::Failure;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match typo::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Merge(args) => sweep::merge(&args),
        Command::Check(args) => run::check(&args),
        Command::List => show::list(),
        Command::Show(args) => show::show(&args),
        Command::Init(args) => init::init(&args),
        Command::Schema => generate::schema(),
        Command::Emulate(args) => emulate::emulate(&args),
        Command::Control(args) => emulate::control(&args),
        Command::Mdcc(command) => mdcc::run(&command),
        Command::Pep(args) => pep::run(&args),
        Command::Backlog(args) => backlog::run(&args),
        Command::Rnis(args) => rnis::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::MeasureCapture { server } => measure::capture::help(server),
        Command::Campaign(args) => campaign::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::ProxyGuardian => proxy::guard(),
        Command::Oracle(args) => oracle::run(&args),
        Command::Report(args) => show::report(&args),
        Command::Analyse(args) => analyse::run(&args),
        Command::Import(command) => import::run(&command),
        Command::Compare(args) => show::compare(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completion(args) => generate::completion(&args),
        Command::Reference(args) => generate::reference(&args),
        Command::ManPages { dir } => generate::man_pages(&dir),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that stops early (`ranway list | head`) is not an error.
        Err(Failure::Failed(error))
            if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            if let Some(what) = failure.message() {
                message!("error: {what}");
            }
            ExitCode::from(failure.code())
        }
    }
}
