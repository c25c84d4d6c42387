//! The `ranway` command: arguments and wiring only.
// A command reads files and writes to the terminal by its nature.
#![allow(clippy::disallowed_methods)]
// Everything is printed by `say`, which does not panic when the terminal is gone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod backlog;
mod demo;
mod emulate;
mod failure;
mod generate;
mod import;
mod init;
mod interrupt;
mod line;
mod mdcc;
mod oracle;
mod pep;
mod progress;
mod reproduce;
mod run;
mod say;
mod show;
mod table;
mod typo;

use crate::say::say;
use args::Command;
use failure::Failure;
use std::process::ExitCode;

/// An error and its causes, each cause only if what was said before does not hold it already.
fn told_once(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

fn main() -> ExitCode {
    let outcome = match typo::parse().command {
        Command::Run(args) => run::run(&args),
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
        Command::Oracle(args) => oracle::run(&args),
        Command::Report(args) => show::report(&args),
        Command::Import(command) => import::run(&command),
        Command::Compare(args) => show::compare(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completion(args) => generate::completion(&args),
        Command::Reference(args) => generate::reference(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) => {
            // A reader that has seen enough (`ranway list | head`) is no failure.
            if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            say!("error: {}", told_once(&error));
            ExitCode::from(1)
        }
        Err(Failure::Wrong(what)) => {
            say!("error: {what}");
            ExitCode::from(2)
        }
        Err(Failure::Ended(code)) => ExitCode::from(code),
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}
