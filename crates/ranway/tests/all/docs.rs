//! Checks the documentation against the code: scenarios load and links resolve.

use scenario::Scenario;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the files below `folder` (relative to the repository) whose names end in `ending`, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "python/README.md", "web/README.md"];
    let mut pages: Vec<PathBuf> = top.iter().map(|page| root().join(page)).collect();
    for folder in ["docs/src", "papers", "peers"] {
        pages.extend(files(folder, ".md"));
    }
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns all substrings between `open` and `close`.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(inner, _)| inner).collect()
}

#[test]
fn every_scenario_of_the_repository_loads_without_a_warning() {
    let mut scenarios = files("docs/samples", ".toml");
    assert!(scenarios.len() >= 9, "the samples of the book");
    let is_campaign = |path: &PathBuf| path.ends_with("docs/samples/campaign.toml");
    scenarios.retain(|path| !is_campaign(path));
    // Included files are not scenarios by themselves; others load them.
    let included = ["cell.toml", "nlos.toml", "nodes.toml", "route.toml", "street.toml"];
    let is_scenario =
        |path: &PathBuf| !path.ends_with("paper.toml") && !included.iter().any(|name| path.ends_with(name));
    scenarios.extend(files("papers", ".toml").into_iter().filter(is_scenario));
    scenarios.extend(files("peers/scenarios", ".toml"));
    for path in scenarios {
        let name = path.to_str().expect("the repository's file names are UTF-8");
        // Networks for real hosts have no flows.
        let for_hosts = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("emulate-"));
        let load = if for_hosts { Scenario::load_for_emulation } else { Scenario::load };
        let loaded = load(name, &[], &scenario::read_file).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.warnings(), [], "{name}");
    }
}

#[test]
fn the_campaign_of_the_book_is_valid() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ranway"));
    let output = command.args(["campaign", "docs/samples/campaign.toml", "--dry-run"]).current_dir(root()).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("20 tests in 5 blocks of 4 combinations"));
}

#[test]
fn every_sample_is_shown_in_the_book() {
    let book: String = files("docs/src", ".md").iter().map(|page| read(page)).collect();
    for sample in files("docs/samples", ".toml") {
        let name = sample.file_name().and_then(|n| n.to_str()).expect("a name");
        assert!(book.contains(&format!("samples/{name}")), "{name}");
    }
}

/// Returns whether a block is part of a paper.toml, which is not a scenario.
fn is_of_a_paper(block: &str) -> bool {
    ["[[experiments]]", "[[variants]]"].iter().any(|table| block.contains(table))
}

#[test]
fn every_scenario_in_the_text_of_a_page_loads() {
    let mut seen = 0;
    for page in pages() {
        let text = read(&page);
        let parts: Vec<&str> = text.split("```toml\n").collect();
        // The files that a page shows are loaded with what they include.
        let is_file = |before: &str| before.lines().last().is_some_and(|line| line.starts_with(FILE));
        let blocks = parts.windows(2).filter(|parts| !is_file(parts[0]));
        let blocks = blocks.filter_map(|parts| parts[1].split_once("```")).map(|(block, _)| block);
        for block in blocks.filter(|block| !is_of_a_paper(block)) {
            Scenario::parse(block).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
            seen += 1;
        }
    }
    assert!(seen > 0, "the README shows a scenario");
}

/// Begins the line before a file that a page shows.
const FILE: &str = "<!-- the file ";

/// Returns the targets of a page's links, and the files that it includes.
fn targets<'a>(prose: &'a str, text: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut links = between(prose, "](", ')');
    links.extend(prose.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).map(|(_, to)| to));
    (links, between(text, FILE, ';'))
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

/// Returns a page without its blocks of code.
fn prose(text: &str) -> String {
    let mut fence = None;
    let outside = text.lines().filter(|line| {
        let start = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (open, _) => return open.is_none(),
        }
        false
    });
    outside.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the anchors of a page, as mdBook and forges make them of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // Of a link, the text is shown.
        let shown = heading.trim().split("](").enumerate().map(|(n, part)| match part.split_once(')') {
            Some((_, rest)) if n > 0 => rest,
            _ => part,
        });
        let id: String = shown
            .collect::<String>()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || "-_".contains(c) => Some(c.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        let numbered = (1..).map(|n| format!("{id}-{n}"));
        let free = std::iter::once(id.clone()).chain(numbered).find(|id| !anchors.contains(id));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn anchors_are_those_of_headings() {
    let page = "# A `b-c` D, e\n```sh\n# not one\n```\n#no\n## [Text](to.md) at 5 %\n## Same\n### Same\n";
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["a-b-c-d-e", "same", "same-1", "text-at-5-"]);
}

#[test]
fn every_relative_link_and_include_leads_to_a_file_and_its_heading() {
    let (mut files, mut headings) = (0, 0);
    for page in pages() {
        let (text, folder) = (read(&page), page.parent().expect("a page is in a folder"));
        let prose = prose(&text);
        let (links, included) = targets(&prose, &text);
        for target in links.into_iter().chain(included).filter(|target| is_relative(target)) {
            let (file, heading) =
                target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
            let to = if file.is_empty() { page.clone() } else { folder.join(file) };
            assert!(to.exists(), "{}: {target}", page.display());
            files += usize::from(!file.is_empty());
            if let Some(heading) = heading.filter(|_| to.extension().is_some_and(|end| end == "md")) {
                assert!(anchors(&read(&to)).contains(heading), "{}: {target}: no such heading", page.display());
                headings += 1;
            }
        }
    }
    assert!(files > 150 && headings > 40, "only {files} links to files and {headings} to headings were found");
}

#[test]
fn links_of_the_book_and_of_the_packages_page_lead_to_what_their_readers_have() {
    let book = root().join("docs/src").canonicalize().expect("it is a folder");
    let mut seen = 0;
    for page in files("docs/src", ".md") {
        let (prose, folder) = (prose(&read(&page)), page.parent().expect("a page is in a folder"));
        for target in targets(&prose, "").0.into_iter().filter(|target| is_relative(target)) {
            let to = folder.join(target.split('#').next().unwrap_or_default());
            let to = to.canonicalize().unwrap_or_else(|e| panic!("{}: {target}: {e}", page.display()));
            assert!(to.starts_with(&book), "{}: {target} is not in the book: name the forge's address", page.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} links were found");
    // The index of Python packages shows this page, and nothing else of the repository.
    let page = prose(&read(&root().join("python/README.md")));
    let links = targets(&page, "").0;
    assert!(links.len() > 5 && !links.iter().any(|target| is_relative(target)), "{links:?}");
}

/// Returns the forge's address: the repository of the workspace's manifest.
fn forge() -> String {
    let manifest = read(&root().join("Cargo.toml"));
    between(&manifest, "\nrepository = \"", '"').first().expect("the workspace has a repository").to_string()
}

#[test]
fn links_to_the_forge_have_its_address_and_lead_to_files_and_headings() {
    let forge = forge();
    let mut seen = 0;
    for page in pages() {
        let prose = prose(&read(&page));
        for target in targets(&prose, "").0 {
            let Some(path) = target.strip_prefix(&forge) else {
                assert!(!target.contains("/ranway/ranway"), "{}: {target}: not the forge's address", page.display());
                continue;
            };
            let path = path.strip_prefix("/blob/main/").or_else(|| path.strip_prefix("/tree/main/"));
            let path = path.unwrap_or_else(|| panic!("{}: {target}: not a file of `main`", page.display()));
            let (path, heading) = path.split_once('#').map_or((path, None), |(path, heading)| (path, Some(heading)));
            let to = root().join(path);
            assert!(to.exists(), "{}: {target}", page.display());
            assert_eq!(target.contains("/tree/"), to.is_dir(), "{}: {target}", page.display());
            assert!(
                heading.is_none_or(|heading| anchors(&read(&to)).contains(heading)),
                "{}: {target}",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 8, "only {seen} links to the forge were found");
    assert!(pages().iter().all(|page| !read(page).contains("OWNER/REPOSITORY")));
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = read(&root().join("docs/src/SUMMARY.md"));
    for page in files("docs/src", ".md") {
        let page = page.strip_prefix(root().join("docs/src")).expect("below docs/src").display().to_string();
        assert!(page == "SUMMARY.md" || summary.contains(&format!("({page})")), "{page}");
    }
}

#[test]
fn the_readme_has_the_books_counts() {
    let book = read(&root().join("docs/reproduced-counts.md"));
    let readme = read(&root().join("README.md"));
    let rows: Vec<&str> = readme.lines().skip_while(|line| !line.starts_with("| paper | its own rows")).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        assert!(book.lines().any(|line| line == row), "{row}");
    }
}
