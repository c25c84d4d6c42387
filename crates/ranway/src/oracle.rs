//! `ranway oracle`.

use crate::args::OracleArgs;
use crate::say::say;
use crate::{Failure, interrupt};
use ebpf::mdcc::{self, Held, Parameters};
use indicatif::{ProgressBar, ProgressStyle};
use oracle::{Both, Case, Comparison, cases, compare};
use record::{Lateness, Output, Results};
use scenario::Loaded;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

pub(crate) fn run(args: &OracleArgs) -> Result<(), Failure> {
    let chosen = choose(&args.cases)?;
    host::lab::check()?;
    let mut to_run = Vec::new();
    for case in chosen {
        if let Some(path) = case.missing(&args.recordings) {
            say!("SKIPPED: the case {} needs {}", case.name, path.display());
            continue;
        }
        let loaded = case.load(&args.recordings, &[format!("runs={}", args.runs)]);
        let loaded = loaded.map_err(|e| Failure::Wrong(e.to_string()))?;
        if oracle::needs_mdcc(&loaded)
            && let Err(why) = mdcc::check()
        {
            say!("SKIPPED: the case {}: {why}", case.name);
            continue;
        }
        to_run.push((case, loaded));
    }
    let needs_mdcc = to_run.iter().any(|(_, loaded)| oracle::needs_mdcc(loaded));
    let _mdcc = needs_mdcc.then(|| Held::load(Parameters::default())).transpose()?;
    let bar = bar(&to_run, args);
    let (mut all, mut late) = (Comparison::default(), Vec::new());
    for (case, loaded) in &to_run {
        bar.set_message(case.name.clone());
        let Some(both) = oracle::run(loaded, args.runs, interrupt::flag(), &|| bar.inc(1))? else {
            return Err(Failure::Interrupted);
        };
        let rows = compare(&case.name, &both.simulated, &both.emulated);
        write(&args.out.join(&case.name), &both)?;
        late.extend(both.late);
        all.rows.extend(rows);
    }
    bar.finish_and_clear();
    let document = format!("{}{}", all.markdown(), lateness(&late));
    disk::write(&args.out.join("oracle.md"), document.as_bytes())?;
    disk::write(&args.out.join("oracle.json"), &serde_json::to_vec_pretty(&all)?)?;
    if !args.quiet {
        let mut stdout = crate::say::stdout();
        write!(stdout, "{}{}", all.text(), lateness(&late))?;
        writeln!(stdout, "table: {}", args.out.join("oracle.md").display())?;
    }
    Ok(())
}

/// The cases of these names, or all of them.
fn choose(names: &[String]) -> Result<Vec<Case>, Failure> {
    let all = cases();
    let known = || all.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|case| case.name != **name)) {
        return Err(Failure::Wrong(format!("there is no case `{unknown}`; there are {}", known())));
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

/// Writes the results of both worlds, for `ranway compare`.
fn write(dir: &Path, both: &Both) -> Result<(), Failure> {
    let mut emulated: Option<Results> = None;
    for results in &both.emulated {
        match &mut emulated {
            Some(all) => all.tables.append(&results.tables),
            None => emulated = Some(results.clone()),
        }
    }
    for (name, results) in [("simulated", Some(&both.simulated)), ("kernel", emulated.as_ref())] {
        let Some(results) = results else { continue };
        let output = Output::create(&dir.join(name))?;
        results.write_to(&output)?;
        output.commit()?;
    }
    Ok(())
}

/// What was to be run again.
fn lateness(late: &[Lateness]) -> String {
    let mut text = String::new();
    if !late.is_empty() {
        let worst = late.iter().map(|l| l.p99_ms).fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "\n{} runs were too late (99 % within {worst:.3} ms in the worst, or packets missed) and were run again.",
            late.len()
        );
    }
    text
}
