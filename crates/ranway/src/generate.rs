//! Files generated from the code: the schema, completion scripts, pages of the reference.

use crate::args::{Args, CompletionArgs, Page, ReferenceArgs};
use crate::failure::Failure;
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn schema() -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&scenario::schema())?)?;
    Ok(())
}

pub(crate) fn completion(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "ranway", &mut script);
    std::io::stdout().write_all(&script)?;
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
