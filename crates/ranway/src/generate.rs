//! Files generated from the code: the schema, completion scripts, manual pages, pages of the reference.

use crate::args::{Args, CompletionArgs, Page, ReferenceArgs};
use crate::failure::Failure;
use anyhow::Context;
use clap::{Command, CommandFactory};
use std::io::Write;
use std::path::Path;

pub(crate) fn schema() -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&scenario::schema())?)?;
    Ok(())
}

pub(crate) fn completion(args: &CompletionArgs) -> Result<(), Failure> {
    // clap_complete would offer hidden subcommands, too.
    let all = Args::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut command =
        Command::new("ranway").version(env!("CARGO_PKG_VERSION")).propagate_version(true).subcommands(visible);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ranway", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}

/// Writes a manual page for the command and for each of its subcommands, such as `ranway-measure-serve.1`.
pub(crate) fn man_pages(dir: &Path) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Args::command(), dir)
    };
    write().with_context(|| format!("{}: the manual pages are not written", dir.display()))?;
    Ok(())
}

pub(crate) fn reference(args: &ReferenceArgs) -> Result<(), Failure> {
    let page = match args.page {
        Page::Scenario => scenario::reference_markdown(),
        Page::Command => {
            let options = clap_markdown::MarkdownOptions::new().title("The command line".to_owned()).show_footer(false);
            clap_markdown::help_markdown_custom::<Args>(&options)
        }
    };
    write!(std::io::stdout(), "{page}")?;
    Ok(())
}
