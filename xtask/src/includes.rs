//! Files that pages show: their text stands in the page, so that it is read wherever the page is.
//!
//! A line `<!-- the file PATH; ... -->`, with a path relative to the page, is followed by a block of code or, for a file of
//! Markdown, by its text and [`END`].

use anyhow::{Context, Result, bail};

const MARK: &str = "<!-- the file ";
const REST: &str = "; `cargo xtask docs` writes it -->";
const END: &str = "<!-- end of the file -->";
const FENCE: &str = "```";

/// A page with the files that it shows written again; `read` returns the text of one.
pub(crate) fn fill(page: &str, read: &dyn Fn(&str) -> Result<String>) -> Result<String> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        push(&mut new, line);
        let Some(path) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(REST)) else { continue };
        let text = read(path).with_context(|| path.to_owned())?;
        let close = match lines.next() {
            Some(open) if open.starts_with(FENCE) => {
                push(&mut new, open);
                FENCE
            }
            Some("") => {
                push(&mut new, "");
                END
            }
            _ => bail!("after `{line}` comes a block of code, or an empty line"),
        };
        if !lines.by_ref().any(|line| line == close) {
            bail!("after `{line}`, `{close}` is missing");
        }
        text.trim_end().lines().for_each(|line| push(&mut new, line));
        if close == END {
            push(&mut new, "");
        }
        push(&mut new, close);
    }
    Ok(new)
}

/// Adds a line to a page.
pub(crate) fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(code: &str, table: &str) -> String {
        format!(
            "a\n\n{MARK}x.toml{REST}\n```toml\n{code}```\n\n{MARK}t.md{REST}\n\n{table}\n{END}\nb\n\n```toml\nkept\n```\n"
        )
    }

    #[test]
    fn a_file_takes_the_place_of_what_stood_there() {
        let read = |path: &str| Ok(if path == "x.toml" { "n = 1\n".to_owned() } else { "| t |\n".to_owned() });
        let new = fill(&page("old\nolder\n", "old\n"), &read).unwrap();
        assert_eq!(new, page("n = 1\n", "| t |\n"));
        assert_eq!(fill(&new, &read).unwrap(), new);
    }

    #[test]
    fn a_mark_without_a_place_is_an_error() {
        let read = |_: &str| Ok(String::new());
        for rest in ["text\n", "```toml\nnever closed\n", "\nnever closed\n"] {
            assert!(fill(&format!("{MARK}x{REST}\n{rest}"), &read).is_err(), "{rest}");
        }
        assert!(fill(&format!("{MARK}x{REST}\n"), &|_| bail!("no such file")).is_err());
    }
}
