//! The tasks that CI runs. `cargo xtask ci` is exactly what `make test` and CI do after the set-up.
// A task runner reads files and the environment by its nature.
#![allow(clippy::disallowed_methods)]

mod bill;
mod includes;
mod layers;
mod licences;
mod modules;
mod mutants;
mod package;
mod samples;
mod step;
mod times;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use step::{output, step, step_with};
use times::{Failed, Times};

const HELP: &str = "\
cargo xtask ci       every check and test, in order
cargo xtask checks   every check: what `lint` and `web` do, and whether generated pages are fresh
cargo xtask lint     format, lints, layers, modules, licences, spelling
cargo xtask pure     the tests that compute, of crates that need neither clang nor npm nor root; documentation samples
cargo xtask root     the other Rust tests, and whether generated pages are fresh
cargo xtask python   types and tests of the Python package
cargo xtask web      types and tests of the report's page, and whether the built one is fresh
cargo xtask docs     write the generated pages of docs/ and the output of commands again
cargo xtask modules  print which modules of each crate use which, and check them
cargo xtask mutants  plant faults in core crates and report which of them no test notices (`mutants --help`)
cargo xtask package  build the wheel, the source distribution and the Debian package in target/package
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    std::env::set_current_dir(root())?;
    match std::env::args().nth(1).as_deref() {
        Some("ci") => checks().and_then(|()| reported(every_test)),
        Some("checks") => checks(),
        Some("lint") => lint(),
        Some("pure") => reported(pure),
        Some("root") => reported(real_hosts),
        Some("python") => reported(|_| python()),
        Some("web") => web(&["-p", "record"]),
        Some("docs") => docs(),
        Some("package") => package::package(),
        Some("mutants") => mutants::run(std::env::args().skip(2)),
        Some("modules") => {
            print!("{}", modules::graphs()?);
            modules::check()
        }
        Some("help" | "--help") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("`{other}` is not a task\n{HELP}"),
    }
}

/// The packages that a build is of. A part of the workspace has other features of libraries, which are then built again.
const WORKSPACE: &[&str] = &["--workspace"];

/// The crates that are built with clang, as eBPF programs are in them or their tests, or with Python.
const NOT_RUST_ALONE: &[&str] = &["ebpf", "oracle", "ranway", "ranway-python"];

fn checks() -> Result<()> {
    lint()?;
    web(WORKSPACE)?;
    fresh_pages()
}

fn lint() -> Result<()> {
    step("format", "cargo", &["fmt", "--all", "--check"])?;
    step("lints", "cargo", &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let simulator = ["clippy", "--locked", "-p", "ranway", "--no-default-features", "--", "-D", "warnings"];
    step("lints of what simulates alone", "cargo", &simulator)?;
    layers::check()?;
    modules::check()?;
    step("licences and bans", "cargo", &["deny", "--locked", "check", "bans", "licenses", "sources"])?;
    step("spelling", "typos", &[])?;
    step("Python format", "ruff", &["format", "--check", "python", "peers", "examples", "packaging"])?;
    step("Python lints", "ruff", &["check", "python", "peers", "examples", "packaging"])
}

/// Checks the report's page, and compares generated sources and tables with the code. Only test builds of `packages`, of which `record`
/// is one, carry the generators.
fn web(packages: &[&str]) -> Result<()> {
    step("web: types and the built report", "npm", &["--prefix", "web", "run", "--silent", "check"])?;
    step("generated sources and tables are fresh (`make docs`)", "cargo", &generated(packages))
}

/// Compares the generated pages with what the code generates. The command must have been built.
fn fresh_pages() -> Result<()> {
    println!("==> generated pages are fresh (`make docs`)");
    let stale: Vec<String> = stale_pages()?.into_iter().map(|(page, _)| page.display().to_string()).collect();
    if !stale.is_empty() {
        bail!("not what the code generates: {}", stale.join(", "));
    }
    Ok(())
}

/// Tests in real time that no attempt has decided, or only after a failure, a line each (`testkit::realtime`).
const INCONCLUSIVE: &str = "target/inconclusive.txt";

/// Rust tests that were skipped for want of root, programs or files, a line each (`testkit::root`).
const SKIPPED: &str = "target/skipped.txt";

/// Runs `tests`, and then prints what they left undecided or skipped.
fn reported(tests: impl FnOnce(&mut Times) -> Result<()>) -> Result<()> {
    for file in [INCONCLUSIVE, SKIPPED, AGAIN] {
        let _ = std::fs::remove_file(file);
    }
    let mut times = Times::default();
    let done = tests(&mut times);
    times.print();
    // Test runners show nothing of what passes.
    if let Ok(lines) = std::fs::read_to_string(INCONCLUSIVE) {
        eprint!("{lines}");
        eprintln!("In doubt: {} tests; run them again on a quiet machine", lines.lines().count());
    }
    if let Ok(lines) = std::fs::read_to_string(AGAIN) {
        eprintln!("Undecided or failed once beside others, and therefore run again, alone:\n{}", lines.trim_end());
    }
    if let Ok(lines) = std::fs::read_to_string(SKIPPED) {
        eprintln!(
            "SKIPPED: {} Rust tests or parts of them for want of root or files; {SKIPPED} lists them",
            lines.lines().count()
        );
    }
    done
}

fn every_test(times: &mut Times) -> Result<()> {
    rust_tests(WORKSPACE, "all()", times)?;
    samples_and_determinism(WORKSPACE)?;
    python()
}

fn pure(times: &mut Times) -> Result<()> {
    let mut packages = vec!["--workspace"];
    NOT_RUST_ALONE.iter().for_each(|name| packages.extend(["--exclude", name]));
    lane(times, "Rust tests", &packages, &format!("not ({REAL_TIME})"), processors() + 2, &[])?;
    samples_and_determinism(&packages)
}

fn real_hosts(times: &mut Times) -> Result<()> {
    let others: Vec<String> = NOT_RUST_ALONE.iter().map(|name| format!("package({name})")).collect();
    rust_tests(WORKSPACE, &others.join(" or "), times)?;
    fresh_pages()
}

/// Runs the documentation samples, and the determinism tests as in a release.
fn samples_and_determinism(packages: &[&str]) -> Result<()> {
    let samples = [&["test", "--locked", "--doc", "--quiet"], packages].concat();
    step("documentation samples", "cargo", &samples)?;
    same_bytes_in_release(packages)
}

fn python() -> Result<()> {
    step("Python package", "maturin", &["develop", "--locked", "--manifest-path", "python/Cargo.toml"])?;
    step("Python types", "mypy", &[])?;
    // One of them has real hosts, and waits as well.
    let workers = (processors() + 1).to_string();
    let all = ["-m", "pytest", "-q", "-n", &workers, "--dist", "loadgroup", "python/tests"];
    step_with(required(), "Python tests", "python", &all)
}

/// As root, a test that needs root fails where it would be skipped.
fn required() -> &'static [(&'static str, &'static str)] {
    const REQUIRE_ROOT: &str = "RANWAY_REQUIRE_ROOT";
    let is_root = rustix::process::geteuid().is_root() && std::env::var_os(REQUIRE_ROOT).is_none();
    if is_root { &[(REQUIRE_ROOT, "1")] } else { &[] }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Tests in real time: of real networks, one of a browser and one of iperf3.
const REAL_TIME: &str = "test(/(^|::)root_/) or test(a_thousand_flows_stay_usable_with_keyboard_and_contrast) or \
                         test(what_iperf3_writes_is_read)";

/// Names of tests in real time that are undecided, a line each (`testkit::realtime`).
const AGAIN: &str = "target/again.txt";

/// Crates whose tests talk to other programs over sockets, with the deadlines of those programs.
const WITH_SOCKETS: &[&str] = &["meter", "services"];

/// The most tests of a lane that run again because they failed. More of them are no accident.
const MOST_FAILED: usize = 3;

/// Runs the Rust tests: first those that compute and that `which` selects, then those in real time, which must be conclusive
/// (`testkit::realtime`). Of these `.config/nextest.toml` lets few run at once, as they wait more than they compute. What that leaves
/// undecided runs again, alone, and so do a few tests that failed and have not repeated themselves.
fn rust_tests(packages: &[&str], which: &str, times: &mut Times) -> Result<()> {
    let again = root().join(AGAIN).display().to_string();
    let beside = [required(), &[("RANWAY_AGAIN", &again)]].concat();
    // Some of those that compute wait, too. What one lane finds does not hide what the others do.
    let computing = format!("({which}) and not ({REAL_TIME})");
    let mut computing = lane(times, "Rust tests", packages, &computing, processors() + 2, required());
    let computed = accident(&computing, times, |test| WITH_SOCKETS.contains(&test.of.as_str()));
    let mut in_real_time = lane(times, "Rust tests in real time", packages, REAL_TIME, processors() + 2, &beside);
    let waited = accident(&in_real_time, times, |_| true);
    let mut names: Vec<String> =
        std::fs::read_to_string(AGAIN).unwrap_or_default().lines().map(str::to_owned).collect();
    for (failed, done) in [(computed, &mut computing), (waited, &mut in_real_time)] {
        if !failed.is_empty() {
            names.extend(failed);
            *done = Ok(());
        }
    }
    if !names.is_empty() {
        std::fs::write(AGAIN, names.join("\n"))?;
        let these: Vec<String> = names.iter().map(|name| format!("test(={name})")).collect();
        let strict = [required(), &[("RANWAY_INCONCLUSIVE", "fail")]].concat();
        let alone = lane(times, "Rust tests again, alone", packages, &these.join(" or "), 1, &strict);
        in_real_time = in_real_time.and(alone);
    }
    computing.and(in_real_time)
}

/// The names of the tests that `lane` has just failed for if they are few, have not repeated themselves and all `may` run again; none
/// otherwise.
fn accident(lane: &Result<()>, times: &Times, may: impl Fn(&Failed) -> bool) -> Vec<String> {
    let failed = times.failed();
    let is_one =
        lane.is_err() && failed.len() <= MOST_FAILED && failed.iter().all(|test| !test.is_repeated && may(test));
    if is_one { failed.iter().map(|test| test.name.clone()).collect() } else { Vec::new() }
}

/// Runs `which` of the tests of `packages`, so many at once.
fn lane(
    times: &mut Times,
    what: &str,
    packages: &[&str],
    which: &str,
    threads: usize,
    variables: &[(&str, &str)],
) -> Result<()> {
    let threads = threads.to_string();
    let args = [&["nextest", "run", "--locked", "--test-threads", &threads, "-E", which], packages].concat();
    Times::begin();
    let done = step_with(variables, what, "cargo", &args);
    times.add().and(done)
}

/// Runs the determinism tests with our code compiled as in a release. Libraries of others stay as the tests have built them: a
/// release would take minutes to build them again.
fn same_bytes_in_release(packages: &[&str]) -> Result<()> {
    let args = [&["nextest", "run", "--locked", "--test", "determinism"], packages].concat();
    let mut args: Vec<String> = args.into_iter().map(String::from).collect();
    let manifest = std::fs::read_to_string("Cargo.toml").context("Cargo.toml")?;
    for (name, _) in layers::CRATES {
        // A library of others has the same name: version 1 of `cc` builds C.
        let name = if *name == "cc" { "\"cc@0\"" } else { name };
        let level = level_in_release(&manifest, name).with_context(|| format!("Cargo.toml: a release of {name}"))?;
        for setting in [&format!("opt-level={level}"), "debug-assertions=false", "overflow-checks=false"] {
            args.extend(["--config".to_owned(), format!("profile.dev.package.{name}.{setting}")]);
        }
    }
    step("the same bytes in release", "cargo", &args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The level at which a release optimises a crate: its own or that of all.
fn level_in_release<'m>(manifest: &'m str, name: &str) -> Option<&'m str> {
    let level = |table: &str| manifest.split_once(table)?.1.trim_start().strip_prefix("opt-level = ")?.lines().next();
    level(&format!("[profile.release.package.{name}]")).or_else(|| level("[profile.release]"))
}

/// The arguments of `cargo` for the tests that compare generated sources and tables with the code. Of the workspace, they build the
/// command too.
fn generated<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let tests = "test(/types::the_page_types_are_those_of_the_rust_types$/) + test(/::the_generated_.*_are_fresh$/)";
    [&["nextest", "run", "--locked", "-E", tests], packages].concat()
}

/// The folder of the command that tests are built with. A release build takes as long as they do.
const BIN: &str = "target/debug";

/// Writes what is generated from the code: the report's types and figures, the tables of results, the command line, the scenario keys,
/// the schema, and what commands print.
fn docs() -> Result<()> {
    step_with(&[("RANWAY_WRITE_TYPES", "1")], "generated sources and tables", "cargo", &generated(WORKSPACE))?;
    for (page, text) in stale_pages()? {
        std::fs::create_dir_all(page.parent().expect("a file in a folder"))?;
        std::fs::write(&page, text).with_context(|| page.display().to_string())?;
    }
    Ok(())
}

/// The generated pages whose text is not what the code generates, with that text.
fn stale_pages() -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut pages = samples::pages(Path::new(BIN))?;
    for (args, page) in [
        (&["schema"][..], "schema/scenario.json"),
        (&["reference", "scenario"], "docs/src/reference/scenario.md"),
        (&["reference", "command"], "docs/src/reference/command.md"),
    ] {
        pages.push((page.into(), output(&format!("{BIN}/ranway"), args)?));
    }
    pages.retain(|(page, text)| std::fs::read(page).map_or(true, |old| old != *text));
    Ok(pages)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_optimised_as_in_a_release() {
        let manifest = "[profile.dev]\nopt-level = 0\n[profile.release]\nopt-level = 1\n\n[profile.release.package.a]\nopt-level = 3\n";
        assert_eq!((level_in_release(manifest, "a"), level_in_release(manifest, "b")), (Some("3"), Some("1")));
        assert_eq!(level_in_release("[package]\n", "a"), None);
    }
}
