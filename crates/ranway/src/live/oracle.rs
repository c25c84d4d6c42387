//! `ranway oracle`.

use crate::live::args::OracleArgs;
use crate::terminal::message;
use crate::{failure::Failure, interrupt};
use ebpf::mdcc::{self, Held, Parameters};
use indicatif::{ProgressBar, ProgressStyle};
use oracle::{Case, Comparison, cases, compare};
use record::{Lateness, Output, Results};
use scenario::Loaded;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The directories of the two sets of results.
const SIMULATED: &str = "simulated";
const KERNEL: &str = "kernel";

pub(crate) fn run(args: &OracleArgs) -> Result<(), Failure> {
    let chosen = choose(&args.cases)?;
    if args.reuse.is_none() {
        emulate::lab::check()?;
    }
    let mut to_run = Vec::new();
    let instant = args.instant_hosts.then(|| "hosts.processing=\"0 s\"".to_owned());
    let overrides: Vec<String> = std::iter::once(format!("runs={}", args.runs)).chain(instant).collect();
    for case in chosen {
        if let Some(path) = case.missing(&args.recordings) {
            message!("SKIPPED: the case {} needs {}", case.name, path.display());
            continue;
        }
        let loaded = case.load(&args.recordings, &overrides);
        let loaded = loaded.map_err(|e| Failure::Invalid(e.to_string()))?;
        if args.reuse.is_none()
            && oracle::needs_mdcc(&loaded)
            && let Err(why) = mdcc::check()
        {
            message!("SKIPPED: the case {}: {why}", case.name);
            continue;
        }
        to_run.push((case, loaded));
    }
    let needs_mdcc = args.reuse.is_none() && to_run.iter().any(|(_, loaded)| oracle::needs_mdcc(loaded));
    let _mdcc = needs_mdcc.then(|| Held::load(Parameters::default())).transpose()?;
    let bar = bar(&to_run, args);
    let (mut all, mut late) = (Comparison::default(), Vec::new());
    for (case, loaded) in &to_run {
        bar.set_message(case.name.clone());
        let out = args.out.join(&case.name);
        let rows = if let Some(earlier) = &args.reuse {
            let simulated = oracle::simulate(loaded, interrupt::flag())?;
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let emulated = read_kernel(&earlier.join(&case.name).join(KERNEL), &simulated)?;
            bar.inc(loaded.points().len() as u64 * u64::from(args.runs));
            write(&out, SIMULATED, &simulated)?;
            write(&out, KERNEL, &emulated)?;
            compare(&case.name, &simulated, &[emulated])
        } else {
            let Some(both) = oracle::run(loaded, args.runs, interrupt::flag(), &|| bar.inc(1))? else {
                return Err(Failure::Interrupted);
            };
            let rows = compare(&case.name, &both.simulated, &both.emulated);
            write(&out, SIMULATED, &both.simulated)?;
            if let Some(emulated) = joined(&both.emulated) {
                write(&out, KERNEL, &emulated)?;
            }
            late.extend(both.late);
            rows
        };
        all.rows.extend(rows);
    }
    bar.finish_and_clear();
    let document = format!("{}{}", all.markdown(), lateness(&late));
    disk::write(&args.out.join("oracle.md"), document.as_bytes())?;
    disk::write(&args.out.join("oracle.json"), &serde_json::to_vec_pretty(&all)?)?;
    if !args.quiet {
        let mut stdout = crate::terminal::stdout();
        write!(stdout, "{}{}", all.text(), lateness(&late))?;
        writeln!(stdout, "table: {}", args.out.join("oracle.md").display())?;
    }
    Ok(())
}

/// Returns the cases of these names, or all of them.
fn choose(names: &[String]) -> Result<Vec<Case>, Failure> {
    let all = cases();
    let known = || all.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|case| case.name != **name)) {
        let near = scenario::nearest(unknown, all.iter().map(|case| case.name.as_str()));
        let hint = near.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        return Err(Failure::Invalid(format!("unknown case `{unknown}`{hint}; the cases are {}", known())));
    }
    Ok(all.iter().filter(|case| names.is_empty() || names.contains(&case.name)).cloned().collect())
}

fn bar(to_run: &[(Case, Loaded)], args: &OracleArgs) -> ProgressBar {
    if args.quiet {
        return ProgressBar::hidden();
    }
    let points: usize = to_run.iter().map(|(_, loaded)| loaded.points().len()).sum();
    let bar = ProgressBar::new(points as u64 * u64::from(args.runs));
    let style =
        ProgressStyle::with_template("oracle [{bar:30}] {pos} of {len} runs  {msg}  {elapsed} so far, {eta} to go");
    bar.set_style(style.expect("a constant template").progress_chars("=> "));
    bar
}

/// Reads the kernel's results of an earlier comparison of the same scenario, with all runs merged.
fn read_kernel(dir: &Path, simulated: &Results) -> Result<Results, Failure> {
    let invalid = |what: &str| Failure::Invalid(format!("{}: {what}", dir.display()));
    if !dir.is_dir() {
        return Err(invalid("no such directory; `--reuse` takes the `--out` of an earlier `ranway oracle`"));
    }
    let results = Results::read(dir)?;
    match results.timing.lateness {
        None => return Err(invalid("these results are simulated, not the kernel's")),
        Some(lateness) if !lateness.valid => message!("note: {}: packets were late", dir.display()),
        Some(_) => {}
    }
    if results.meta.partial.is_some() {
        return Err(invalid("these results are partial; run the case again without `--reuse`"));
    }
    // The number of runs may differ, and real hosts have no processing time of ours.
    let comparable = |results: &Results| {
        let mut scenario = results.meta.scenario.clone();
        if let Some(keys) = scenario.as_object_mut() {
            for key in ["runs", "hosts"] {
                keys.remove(key);
            }
        }
        scenario
    };
    if comparable(&results) != comparable(simulated) {
        return Err(invalid("measured with a different version of the scenario; run the case again without `--reuse`"));
    }
    Ok(results)
}

/// Merges the results of all runs.
fn joined(runs: &[Results]) -> Option<Results> {
    let (first, others) = runs.split_first()?;
    let mut all = first.clone();
    for results in others {
        all.tables.append(results.tables.clone());
    }
    Some(all)
}

/// Writes the simulator's or the kernel's results, for `ranway compare` and `--reuse`.
fn write(dir: &Path, world: &str, results: &Results) -> Result<(), Failure> {
    let output = Output::create(&dir.join(world))?;
    results.write_to(&output)?;
    output.commit()?;
    Ok(())
}

/// Describes the runs that had to be repeated because packets were late.
fn lateness(late: &[Lateness]) -> String {
    let mut text = String::new();
    if !late.is_empty() {
        let worst = late.iter().map(|l| l.p99_ms).fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "\n{} runs were repeated because packets were late (99 % within {worst:.3} ms in the worst run) or lost.",
            late.len()
        );
    }
    text
}
