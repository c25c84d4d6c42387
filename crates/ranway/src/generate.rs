//! Files generated from the code: the schema, completion scripts, manual pages, pages of the reference.

mod names;

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

/// Writes a completion script, which also knows built-in scenarios, presets, papers and the keys of scenarios in the shells for which
/// packages have scripts.
pub(crate) fn completion(args: &CompletionArgs) -> Result<(), Failure> {
    // clap_complete would offer hidden subcommands, too.
    let all = Args::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut command =
        Command::new("ranway").version(env!("CARGO_PKG_VERSION")).propagate_version(true).subcommands(visible);
    let names = names::Names::of(&command);
    command = names.marked(command);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ranway", &mut script);
    let script = names.complete(args.shell, String::from_utf8(script).context("a script is UTF-8 text")?);
    std::io::stdout().write_all(script.as_bytes())?;
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
        Page::Command => command_page(),
    };
    write!(std::io::stdout(), "{page}")?;
    Ok(())
}

fn command_page() -> String {
    let options = clap_markdown::MarkdownOptions::new().title("The command line".to_owned()).show_footer(false);
    separate_usages(&clap_markdown::help_markdown_custom::<Args>(&options))
}

/// The beginning of a command's usage in the reference.
const USAGE: &str = "**Usage:** `";

/// Makes each usage of a command code of its own. clap-markdown renders a subcommand alone: it puts the commands above it before the first
/// of its usages only, and all of them into one code.
fn separate_usages(page: &str) -> String {
    let mut parts = page.split(USAGE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (usages, rest) = part.split_once('`').unwrap_or((part, ""));
        let mut usages = usages.lines().map(str::trim);
        let first = usages.next().unwrap_or_default();
        let whole = |usage: &str| {
            let name = usage.split(' ').next().unwrap_or_default();
            let above = first.split(' ').take_while(|word| *word != name);
            above.chain([usage]).collect::<Vec<_>>().join(" ")
        };
        let all: Vec<String> = [first.to_owned()].into_iter().chain(usages.map(whole)).collect();
        text.push_str(&format!("{USAGE}{}`{rest}", all.join("` or `")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_usage_in_the_reference_has_all_of_its_command() {
        let page = "# x\n\n**Usage:** `ranway a [OPTIONS] <B>\n       a <COMMAND>`\n\n`c`\n\n**Usage:** `ranway a b`\n";
        let expected =
            "# x\n\n**Usage:** `ranway a [OPTIONS] <B>` or `ranway a <COMMAND>`\n\n`c`\n\n**Usage:** `ranway a b`\n";
        assert_eq!(separate_usages(page), expected);
        let page = command_page();
        let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(USAGE)).collect();
        assert!(lines.len() > 10, "{lines:?}");
        for line in lines {
            let usages = line.strip_suffix('`').unwrap_or_else(|| panic!("{line} does not end there"));
            assert!(usages.split("` or `").all(|usage| usage.starts_with("ranway")), "{line}");
        }
    }

    #[test]
    fn no_help_names_a_file_that_packages_do_not_have() {
        let page = command_page();
        let named: Vec<&str> = page.lines().filter(|line| line.contains("docs/src/")).collect();
        assert!(named.is_empty(), "{named:?}");
    }
}
