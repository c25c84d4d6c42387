//! The mutation run: plants faults in core crates, one at a time, and reports which of them no test notices.
//!
//! Faults are drawn at random by a printed seed, from each kind in turn. They are planted in a copy of the sources in
//! `target/mutants`, where the tests are built too: the work tree is only read. A fault that does not compile is drawn again.

mod sites;
#[cfg(test)]
mod tests;

use crate::step::command;
use anyhow::{Context, Result, bail, ensure};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use sites::{Kind, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// The crates that a run without names is about.
const CORE: &[&str] = &["tcp", "cc", "aqm", "pep", "rapid", "link", "ran"];

/// The copy of the sources, and what is built from them.
const TREE: &str = "target/mutants/tree";
const BUILD: &str = "target/mutants/build";

/// Survivors of a run, with the change that each makes.
const SURVIVORS: &str = "target/mutants/survivors.txt";

/// Faults that change no behaviour, each with the reason. See [`Equivalent`].
const EQUIVALENT: &str = "xtask/src/mutants/equivalent.txt";

/// The page of the book, of which `--write` renews the table.
const PAGE: &str = "docs/src/mutation.md";

/// Address space of a build or a test: a loop without an end fails before it takes the machine's memory.
const MEMORY: u64 = 8 << 30;

const HELP: &str = "\
cargo xtask mutants [CRATE...] [--count N] [--seed N] [--digest] [--write] [--list]
  CRATE      default: the core crates
  --count N  mutants of each crate; default 20
  --seed N   the draw; default: a new one, which is printed
  --digest   judge survivors by the determinism tests of `sim` too
  --write    write the scores to the book
  --list     print the draw, and run nothing
";

/// What is to be run.
#[derive(Debug)]
struct Options {
    crates: Vec<String>,
    count: usize,
    seed: u64,
    digest: bool,
    write: bool,
    list: bool,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Options> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let seed = now.as_secs() % 1_000_000;
        let mut options = Options { crates: Vec::new(), count: 20, seed, digest: false, write: false, list: false };
        while let Some(arg) = args.next() {
            let mut number = || {
                let text = args.next().unwrap_or_default();
                text.parse().with_context(|| format!("{arg}: `{text}` is not a number\n{HELP}"))
            };
            match arg.as_str() {
                "--count" => options.count = number()? as usize,
                "--seed" => options.seed = number()?,
                "--digest" => options.digest = true,
                "--write" => options.write = true,
                "--list" => options.list = true,
                name if Path::new("crates").join(name).join("src").is_dir() => options.crates.push(arg),
                _ => bail!("`{arg}` is neither an option nor a crate\n{HELP}"),
            }
        }
        if options.crates.is_empty() {
            options.crates = CORE.iter().map(|name| (*name).to_owned()).collect();
        }
        Ok(options)
    }
}

/// A fault in a file of a crate.
struct Mutant {
    file: String,
    site: Site,
    description: String,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Noticed,
    NoticedByDigest,
    Survived,
    Equivalent,
    Unviable,
}

/// The counts of a crate.
#[derive(Debug, Default)]
struct Score {
    noticed: usize,
    by_digest: usize,
    survived: usize,
    equivalent: usize,
}

impl Score {
    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Noticed => self.noticed += 1,
            Fate::NoticedByDigest => self.by_digest += 1,
            Fate::Survived => self.survived += 1,
            Fate::Equivalent => self.equivalent += 1,
            Fate::Unviable => {}
        }
    }

    fn drawn(&self) -> usize {
        self.noticed + self.by_digest + self.survived + self.equivalent
    }

    /// Returns the row of a crate; `draw` is when and by which seed its mutants were drawn.
    fn row(&self, name: &str, draw: &str) -> String {
        let changing = self.noticed + self.by_digest + self.survived;
        let percent =
            (100 * self.noticed).checked_div(changing).map_or("–".to_owned(), |percent| percent.to_string());
        let Score { noticed, by_digest, survived, equivalent } = self;
        let drawn = self.drawn();
        format!("| `{name}` | {draw} | {drawn} | {equivalent} | {noticed} | {by_digest} | {survived} | {percent} |\n")
    }
}

const HEAD: &str = "\
| crate | day, seed | mutants | equivalent | noticed by its tests | by the digest alone | survived | noticed, % of those that change behaviour |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// Runs `cargo xtask mutants`.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(args)?;
    let equivalent = Equivalent::read(&std::fs::read_to_string(EQUIVALENT).context(EQUIVALENT)?)?;
    let names = options.crates.join(" ");
    println!("==> mutants: --seed {} --count {} {names}", options.seed, options.count);
    if !options.list {
        limit_memory();
        copy_sources()?;
    }
    let day = String::from_utf8(crate::step::output("date", &["--utc", "+%F"])?)?;
    let drawn = format!("{}, {}", day.trim(), options.seed);
    let (mut rows, mut survivors) = (Vec::new(), String::new());
    for name in &options.crates {
        let tree = Path::new(if options.list { "." } else { TREE });
        let draw = draw(mutants(tree, name)?, &mut SplitMix64::seed_from_u64(options.seed ^ hash(name)));
        if options.list {
            for mutant in draw.iter().take(options.count) {
                println!("{}", line(mutant));
            }
            continue;
        }
        let fate = judge(name, None)?;
        ensure!(fate == Fate::Survived, "the tests of {name} fail without a fault: `cargo nextest run -p {name}`");
        let mut score = Score::default();
        for mutant in &draw {
            if score.drawn() == options.count {
                break;
            }
            let start = Instant::now();
            let mut fate = if equivalent.contains(mutant) { Fate::Equivalent } else { judge(name, Some(mutant))? };
            if fate == Fate::Survived && options.digest && judge("sim", Some(mutant))? == Fate::Noticed {
                fate = Fate::NoticedByDigest;
            }
            println!("{fate:?} ({:.0} s) {}", start.elapsed().as_secs_f64(), line(mutant));
            if matches!(fate, Fate::Survived | Fate::NoticedByDigest) {
                writeln!(survivors, "{fate:?} {}", line(mutant))?;
                std::fs::write(SURVIVORS, &survivors).context(SURVIVORS)?;
            }
            score.count(fate);
        }
        rows.push(score.row(name, &drawn));
        if options.write {
            let page = std::fs::read_to_string(PAGE).context(PAGE)?;
            std::fs::write(PAGE, with_rows(&page, &rows)?).context(PAGE)?;
        }
    }
    if !options.list {
        print!("\n{HEAD}{}\n{survivors}", rows.concat());
    }
    Ok(())
}

fn line(mutant: &Mutant) -> String {
    format!("{}:{} {}: {}", mutant.file, mutant.site.line, mutant.site.kind.name(), mutant.description)
}

/// Every fault of a crate of the workspace at `tree`.
fn mutants(tree: &Path, name: &str) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let mut files = Vec::new();
    source_files(&tree.join("crates").join(name).join("src"), &mut BTreeSet::new(), &mut files)?;
    for path in files {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file = path.strip_prefix(tree)?.to_string_lossy().into_owned();
        mutants.extend(mutants_of(&file, &text).with_context(|| file.clone())?);
    }
    Ok(mutants)
}

/// Every fault of a file. Of equal descriptions, the second and later ones have a number.
fn mutants_of(file: &str, text: &str) -> Result<Vec<Mutant>> {
    let mut known = BTreeMap::new();
    let mutant = |site: Site| {
        let mut description = site.describe(text);
        let count = known.entry((site.kind, description.clone())).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            write!(description, " ({count})").expect("a text takes it");
        }
        Mutant { file: file.to_owned(), site, description }
    };
    Ok(sites::sites(text)?.into_iter().map(mutant).collect())
}

/// The Rust files of a folder, without modules that are for tests alone; of these, `of_tests` are known already.
fn source_files(folder: &Path, of_tests: &mut BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        // A file declares modules beside it (`lib.rs`, `mod.rs`) or in the folder of its name.
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let beside = if matches!(&*stem, "lib" | "mod" | "main") { folder.to_owned() } else { folder.join(stem) };
        of_tests.extend(sites::test_modules(&text)?.into_iter().map(|module| beside.join(module)));
    }
    of_tests.insert(folder.join("tests"));
    for path in paths {
        if of_tests.contains(&path.with_extension("")) {
            continue;
        }
        if path.is_dir() {
            source_files(&path, of_tests, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Puts the mutants in a random order in which the kinds take turns.
fn draw(mutants: Vec<Mutant>, random: &mut SplitMix64) -> Vec<Mutant> {
    let mut kinds: Vec<Vec<Mutant>> = Kind::ALL.iter().map(|_| Vec::new()).collect();
    for mutant in mutants {
        kinds[mutant.site.kind as usize].push(mutant);
    }
    let mut draw = Vec::new();
    while kinds.iter().any(|kind| !kind.is_empty()) {
        for kind in &mut kinds {
            if !kind.is_empty() {
                draw.push(kind.swap_remove((random.next_u64() % kind.len() as u64) as usize));
            }
        }
    }
    draw
}

/// FNV-1a, so that the draw of a crate does not depend on which others are named.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs the tests of a crate with the fault planted in the copy. Of `sim`, the determinism tests alone.
fn judge(name: &str, mutant: Option<&Mutant>) -> Result<Fate> {
    let copy = mutant.map(|mutant| Path::new(TREE).join(&mutant.file));
    let original = copy.as_ref().map(std::fs::read_to_string).transpose()?;
    if let (Some(mutant), Some(original), Some(copy)) = (mutant, &original, &copy) {
        std::fs::write(copy, mutant.site.planted(original))?;
    }
    // A library of others has the same name: version 1 of `cc` builds C.
    let package = if name == "cc" { "cc@0" } else { name };
    let mut args = vec!["nextest", "run", "--locked", "--profile", "mutants", "-p", package];
    if name == "sim" {
        args.extend(["--test", "determinism"]);
    }
    let output = command("cargo")
        .args(&args)
        .current_dir(TREE)
        .env("CARGO_TARGET_DIR", std::path::absolute(BUILD)?)
        .env("BOLERO_RANDOM_SEED", "1")
        .stdin(Stdio::null())
        .output()
        .context("cargo nextest: `make setup` installs it")?;
    if let (Some(original), Some(copy)) = (&original, &copy) {
        // With a new modification time, so that cargo builds it again.
        std::fs::write(copy, original)?;
    }
    // https://docs.rs/nextest-metadata/latest/nextest_metadata/enum.NextestExitCode.html
    match output.status.code() {
        Some(0) => Ok(Fate::Survived),
        Some(100) => Ok(Fate::Noticed),
        Some(101) if mutant.is_some() => Ok(Fate::Unviable),
        _ => bail!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)),
    }
}

fn limit_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::As).maximum;
    let current = Some(maximum.map_or(MEMORY, |maximum| maximum.min(MEMORY)));
    if let Err(error) = setrlimit(Resource::As, Rlimit { current, maximum }) {
        println!("    the memory of tests is not limited: {error}");
    }
}

/// Brings the copy of the sources up to date: all that git tracks or would add.
fn copy_sources() -> Result<()> {
    let list = crate::step::output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let files: BTreeSet<PathBuf> =
        String::from_utf8(list)?.split_terminator('\0').map(PathBuf::from).filter(|path| path.is_file()).collect();
    remove_others(Path::new(TREE), &files)?;
    for file in files {
        let (from, to) = (std::fs::read(&file)?, Path::new(TREE).join(&file));
        if std::fs::read(&to).ok().as_ref() != Some(&from) {
            std::fs::create_dir_all(to.parent().context("a file in a folder")?)?;
            std::fs::copy(&file, &to).with_context(|| file.display().to_string())?;
        }
    }
    Ok(())
}

/// Removes files of the copy that are sources no more.
fn remove_others(folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, files)?;
        } else if !files.contains(path.strip_prefix(TREE)?) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Faults that change no behaviour. A paragraph of the file is a fault, as the run prints it without its line number, and below
/// it the reason, indented.
#[derive(Debug)]
struct Equivalent(BTreeSet<String>);

impl Equivalent {
    fn read(text: &str) -> Result<Equivalent> {
        let mut faults = BTreeSet::new();
        let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        while let Some(fault) = lines.next() {
            ensure!(!fault.starts_with(' '), "{EQUIVALENT}: a reason without a fault: {}", fault.trim());
            ensure!(
                lines.next_if(|line| line.starts_with(' ')).is_some(),
                "{EQUIVALENT}: give the reason, indented, below `{fault}`"
            );
            while lines.next_if(|line| line.starts_with(' ')).is_some() {}
            faults.insert(fault.to_owned());
        }
        Ok(Equivalent(faults))
    }

    fn contains(&self, mutant: &Mutant) -> bool {
        let Mutant { file, site, description } = mutant;
        self.0.contains(&format!("{file} {}: {description}", site.kind.name()))
    }
}

/// The page with these rows in its table: those of the same crates are replaced, and others stay.
fn with_rows(page: &str, rows: &[String]) -> Result<String> {
    let (begin, end) = ("<!-- scores -->\n", "<!-- end of scores -->");
    let (before, rest) = page.split_once(begin).with_context(|| format!("{PAGE} lacks `{}`", begin.trim()))?;
    let (table, after) = rest.split_once(end).with_context(|| format!("{PAGE} lacks `{end}`"))?;
    let known = table.split_inclusive('\n').filter(|line| line.starts_with("| `"));
    let name = |row: &str| row.split('`').nth(1).unwrap_or_default().to_owned();
    let all: BTreeMap<String, &str> =
        known.chain(rows.iter().map(String::as_str)).map(|row| (name(row), row)).collect();
    let all: String = all.into_values().collect();
    Ok(format!("{before}{begin}\n{HEAD}{all}\n{end}{after}"))
}
