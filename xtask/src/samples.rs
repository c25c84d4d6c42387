//! Output of commands in the README and the book, which is what they print today, and files that pages show.
//!
//! A block of text that begins with [`MARK`] and a console block is written again: each line `$ COMMAND` is run, and what it
//! prints takes the place of what follows it, up to the next such line. Commands run in virtual time, so that the same
//! program prints the same on any machine; lines that tell the wall-clock time are left out.

use crate::includes::{self, push};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands alone in the line before a block that is generated.
const MARK: &str = "<!-- what the command prints; `cargo xtask docs` writes it -->";
const OPEN: &str = "```console";
const CLOSE: &str = "```";
/// How wide the tables may be.
const COLUMNS: &str = "110";

/// Returns all pages with their generated blocks written again. `bin` is the folder of the command.
pub(crate) fn pages(bin: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let root = std::env::current_dir()?;
    let folder = root.join("target/docs-samples");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("docs"))?;
    for file in std::fs::read_dir("docs/samples")? {
        let file = file?.path();
        let name = file.file_name().context("a file has a name")?;
        std::fs::copy(&file, folder.join(name))?;
    }
    std::os::unix::fs::symlink(root.join("docs/samples"), folder.join("docs/samples"))?;
    let path = format!("{}:{}", root.join(bin).display(), std::env::var("PATH").unwrap_or_default());
    let run = |command: &str| -> Result<String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(&folder);
        let output = shell.env("PATH", &path).env("COLUMNS", COLUMNS).output().context(command.to_owned())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let filled = |page: PathBuf| {
        let text = std::fs::read_to_string(&page)?;
        let folder = page.parent().context("a page is in a folder")?;
        let read = |path: &str| Ok(std::fs::read_to_string(folder.join(path))?);
        let new = includes::fill(&text, &read).and_then(|text| renew(&text, &run));
        Ok((page.clone(), new.with_context(|| page.display().to_string())?.into_bytes()))
    };
    let pages = markdown(Path::new("docs/src"))?;
    [PathBuf::from("README.md")].into_iter().chain(pages).map(filled).collect()
}

/// The pages below a folder, in order.
fn markdown(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(markdown(&path)?);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A page with its generated blocks written again by what `run` says that each command prints.
fn renew(page: &str, run: &dyn Fn(&str) -> Result<String>) -> Result<String> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        push(&mut new, line);
        if line != MARK {
            continue;
        }
        if lines.next() != Some(OPEN) {
            bail!("after `{MARK}` comes `{OPEN}`");
        }
        push(&mut new, OPEN);
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != CLOSE).collect();
        let commands: Vec<&str> = block.into_iter().filter_map(|line| line.strip_prefix("$ ")).collect();
        if commands.is_empty() {
            bail!("a generated block has no line `$ COMMAND`");
        }
        for command in commands {
            push(&mut new, &format!("$ {command}"));
            let said = run(command)?;
            let kept = said.lines().map(str::trim_end).filter(|line| !line.contains(" simulated in "));
            kept.for_each(|line| push(&mut new, line));
        }
        push(&mut new, CLOSE);
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_becomes_what_its_commands_print_and_nothing_else_changes() {
        let run = |command: &str| Ok(format!("told by {command}  \n60 s simulated in 0.15 s, 7 packets\nend\n"));
        let page =
            format!("# Page\n\n```console\n$ kept\nold\n```\n{MARK}\n{OPEN}\n$ a b\nold\nold\n$ c\n{CLOSE}\nend\n");
        let new = renew(&page, &run).unwrap();
        let block = format!("{MARK}\n{OPEN}\n$ a b\ntold by a b\nend\n$ c\ntold by c\nend\n{CLOSE}\n");
        assert_eq!(new, format!("# Page\n\n```console\n$ kept\nold\n```\n{block}end\n"));
        // What is fresh stays as it is.
        assert_eq!(renew(&new, &run).unwrap(), new);
    }

    #[test]
    fn a_mark_without_a_block_or_a_command_is_an_error() {
        let run = |_: &str| Ok(String::new());
        assert!(renew(&format!("{MARK}\ntext\n"), &run).is_err());
        assert!(renew(&format!("{MARK}\n{OPEN}\nno command\n{CLOSE}\n"), &run).is_err());
    }
}
