//! `ranway sweep` and `ranway merge`.

use crate::args::{EndArgs, MergeArgs, Shard, SweepArgs};
use crate::dashboard::{Dashboard, Runs};
use crate::dask::Dask;
use crate::failure::Failure;
use crate::interrupt;
use crate::out::{counted, default_out, stem};
use crate::progress::Bar;
use crate::run::{load, wrong};
use crate::table;
use crate::terminal::{self, message};
use console::Term;
use record::{Job, Output, SweepDir, assemble};
use scenario::Loaded;
use sim::{Batch, Options};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// What the directory of a sweep in progress has instead of the results' name.
const SUFFIX: &str = ".sweep";

pub(crate) fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario)?;
    refuse_captures(&loaded)?;
    sim::check(&loaded).map_err(wrong)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.scenario.source.file));
    let place = in_progress(&out)?;
    if args.dask.is_some() && args.dashboard.is_wanted() {
        let what = "--dashboard shows what runs in this process: Dask's own page shows what runs on its cluster";
        return Err(Failure::Invalid(what.to_owned()));
    }
    let dask = args.dask.as_deref().map(Dask::new).transpose()?;
    // An address that cannot be used is known before anything is written.
    let dashboard = args.dashboard.start("sweep", || sim::meta(&loaded), args.ending.quiet, |_| {})?;
    // A place that cannot be written to is known before the work is done. Shards, which begin together, only look at it.
    if args.shard.is_none() {
        drop(Output::create(&out)?);
    } else if let Err(error) = disk::Dir::open(&out).map_err(record::Error::from)
        && error.is_invalid_place()
    {
        return Err(error.into());
    }
    let dir = sim::sweep_dir(&loaded, &place).map_err(given)?;
    let all = dir.jobs();
    let mine = args.shard.as_ref().map_or_else(|| all.clone(), |shard| shard.of(&all));
    let left = left_of(&dir, &mine, args.ending.quiet)?;
    if left.len() < mine.len() && !args.ending.quiet {
        message!("{} of {} have finished before", mine.len() - left.len(), counted(mine.len() as u64, "job"));
    }
    let finished = match &dask {
        Some(dask) if !left.is_empty() => {
            let is_interrupted = dask.run(&args.scenario, &out, args.ending.quiet)?;
            let finished = dir.finished()?.len();
            if finished < mine.len() && !is_interrupted {
                let left = counted((mine.len() - finished) as u64, "job");
                return Err(anyhow::anyhow!("Python ended before {left}, and told no reason").into());
            }
            finished
        }
        Some(_) => mine.len(),
        None => mine.len() - left.len() + run_here(&loaded, left, &dir, args, dashboard.as_ref())?,
    };
    if finished < mine.len() {
        message!(
            "interrupted: {finished} of {} have finished; the same command resumes",
            counted(mine.len() as u64, "job")
        );
        return Err(Failure::Interrupted);
    }
    if let Some(shard) = &args.shard {
        return told(&dir, shard, mine.len(), args);
    }
    write_results(vec![dir], &out, &args.ending)?;
    if let Some(dashboard) = dashboard {
        dashboard.end(&out);
    }
    Ok(())
}

/// Runs jobs in this process. Returns how many have finished: not all, if the user interrupted.
fn run_here(
    loaded: &Loaded,
    jobs: Vec<Job>,
    dir: &SweepDir,
    args: &SweepArgs,
    dashboard: Option<&Dashboard>,
) -> Result<usize, Failure> {
    let runs = jobs.len();
    let batch = Batch::of(loaded, jobs).map_err(|error| Failure::Invalid(error.to_string()))?;
    let bar = Bar::new(&stem(&args.scenario.source.file), args.ending.quiet);
    // Runs that have finished before are not shown.
    let follow = dashboard.map(|dashboard| Runs::new(dashboard, loaded, runs));
    let progress = |progress| {
        bar.show(progress);
        follow.as_ref().inspect(|runs| runs.show(progress));
    };
    let options = Options {
        watch: follow.as_ref().map(|runs| runs as &dyn sim::Watch),
        ..Options::new(args.jobs(), interrupt::flag(), &progress)
    };
    Ok(batch.run_into(dir, &options).map_err(wrong)? as usize)
}

/// Returns which of `jobs` are left to run, and says what is run or made anew because it is damaged.
fn left_of(dir: &SweepDir, jobs: &[Job], quiet: bool) -> Result<Vec<Job>, Failure> {
    let (stop, bar) = (interrupt::flag(), Bar::of_steps("checking finished jobs", quiet));
    let left = dir.unfinished(jobs, &mut |share| {
        bar.set_share(share);
        !stop.load(Relaxed)
    });
    drop(bar);
    let Some(left) = left.map_err(given)? else {
        message!("interrupted while finished jobs were checked; the same command resumes");
        return Err(Failure::Interrupted);
    };
    left.repairs.iter().for_each(|line| message!("warning: {line}"));
    Ok(left.jobs)
}

/// Says that a shard has finished, and what is left to do.
fn told(dir: &SweepDir, shard: &Shard, mine: usize, args: &SweepArgs) -> Result<(), Failure> {
    let (finished, all) = (dir.finished()?.len(), dir.jobs().len());
    let mut out = terminal::stdout();
    if args.ending.json {
        let answer = serde_json::json!({
            "sweep": dir.path().display().to_string(), "shard": shard.to_string(), "jobs": mine, "finished": finished, "of": all
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.ending.quiet {
        let mine = if mine == 1 { "its job has".to_owned() } else { format!("its {mine} jobs have") };
        writeln!(out, "shard {shard}: {mine} finished; of all shards, {finished} of {all}")?;
        writeln!(out, "when all have: ranway merge {}", dir.path().display())?;
    }
    Ok(())
}

pub(crate) fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let mut parts = Vec::<SweepDir>::new();
    for path in &args.sweeps {
        let part = SweepDir::open(path).map_err(named)?;
        if !parts.iter().any(|other| other.path() == part.path()) {
            parts.push(part);
        }
    }
    let out = match &args.out {
        Some(out) => out.clone(),
        None => results_of(&args.sweeps[0])?,
    };
    write_results(parts, &out, &args.ending)
}

/// Assembles results from `parts`, puts them at `out`, and removes the parts.
fn write_results(parts: Vec<SweepDir>, out: &Path, ending: &EndArgs) -> Result<(), Failure> {
    let output = Output::create(out)?;
    let stop = interrupt::flag();
    let bar = Bar::of_steps("writing results", ending.quiet);
    let assembled = assemble(&parts, &output, &mut |share| {
        bar.set_share(share);
        !stop.load(Relaxed)
    });
    drop(bar);
    let Some((summary, timing)) = assembled.map_err(given)? else {
        message!("interrupted: no results were written; the jobs are kept, and the same command continues");
        return Err(Failure::Interrupted);
    };
    output.commit()?;
    if !ending.keep {
        // The results are written; what is left of the jobs' files does no harm.
        for part in parts {
            part.remove().unwrap_or_else(|why| message!("warning: {why}"));
        }
    }
    let mut stdout = terminal::stdout();
    if ending.json {
        let answer = serde_json::json!({ "out": out.display().to_string(), "summary": summary, "timing": timing });
        writeln!(stdout, "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !ending.quiet {
        write!(stdout, "{}", table::of_summary(&summary, &timing, table::width(&Term::stdout(), ending.wide)))?;
        writeln!(stdout, "report: {}", out.join("report.html").display())?;
    }
    Ok(())
}

/// Classifies an error of opening a directory by its name, which may be misspelt.
fn named(error: record::Error) -> Failure {
    let is_missing = matches!(&error, record::Error::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    if is_missing { Failure::Invalid(error.to_string()) } else { given(error) }
}

/// Classifies an error about the directories of sweeps that were given.
fn given(error: record::Error) -> Failure {
    match error {
        record::Error::NotSweep { .. }
        | record::Error::LostSweep { .. }
        | record::Error::OtherSweep { .. }
        | record::Error::NotJob { .. }
        | record::Error::InsideSweep { .. }
        | record::Error::Merge(_) => Failure::Invalid(error.to_string()),
        error => error.into(),
    }
}

/// Captures are files beside the tables, which jobs on other machines cannot write there.
fn refuse_captures(loaded: &Loaded) -> Result<(), Failure> {
    if !loaded.has_captures() {
        return Ok(());
    }
    Err(Failure::Invalid("record.pcap: a sweep writes no captures: remove the key, or use `ranway run`".into()))
}

/// The directory of the sweep whose results go to `out`.
fn in_progress(out: &Path) -> Result<PathBuf, Failure> {
    let name = out.file_name().ok_or_else(|| Failure::Invalid(format!("--out {}: it has no name", out.display())))?;
    let mut name = name.to_owned();
    name.push(SUFFIX);
    Ok(out.with_file_name(name))
}

/// Where the results of the sweep at `place` go.
fn results_of(place: &Path) -> Result<PathBuf, Failure> {
    let name = place.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX));
    let name = name.filter(|name| !name.is_empty());
    let name =
        name.ok_or_else(|| Failure::Invalid(format!("{}: choose the output directory with --out", place.display())))?;
    Ok(place.with_file_name(name))
}
