//! The `ranway` command: arguments and wiring only.
// A command-line program has to read files and write to the terminal.
#![allow(clippy::disallowed_methods)]
// All output goes through `terminal`, which does not panic when the terminal has been closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]
// Some of what commands share is for those of the feature `live` alone.
#![cfg_attr(not(feature = "live"), allow(dead_code))]

mod args;
#[cfg(not(feature = "live"))]
mod dashboard;
mod dask;
mod demo;
mod failure;
mod generate;
mod import;
mod init;
mod interrupt;
#[cfg(feature = "live")]
mod live;
mod out;
mod progress;
mod reports;
mod reproduce;
mod run;
mod show;
mod source;
mod sweep;
mod table;
mod terminal;
mod typo;

use crate::terminal::message;
use args::Command;
use failure::Failure;
#[cfg(feature = "live")]
use live::dashboard;
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
        #[cfg(feature = "live")]
        Command::Live(command) => live::run(&command),
        Command::Report(args) => show::report(&args),
        Command::Table(args) => show::table(&args),
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
