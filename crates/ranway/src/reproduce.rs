//! `ranway reproduce`: papers' experiments, with published and measured numbers side by side.

mod grid;

use crate::args::ReproduceArgs;
use crate::out::counted;
use crate::progress::Bar;
use crate::run::{write, wrong};
use crate::terminal::message;
use crate::{failure::Failure, interrupt, show, table};
use console::Term;
use record::{Output, Results, report};
use reproduce::{Counts, Drawn, Experiment, Paper, Published, Row, Verdict};
use scenario::Loaded;
use sim::Batch;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The comparison page, and its tables in Markdown.
const REPORT: &str = "report.html";
const TABLES: &str = "tables.md";
/// The head of the column with physical bounds.
const FLOOR: &str = "floor";

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    let papers = papers(&args.which)?;
    let chosen = choose(&papers, &args.which)?;
    if args.grid {
        return grid::run(args, &chosen);
    }
    let quiet = args.job.quiet || args.job.json;
    let set: Vec<String> = args.runs.map(|runs| format!("runs={runs}")).into_iter().collect();
    let task = |chosen: &(_, _)| {
        let &(paper, experiment): &(&Paper, &Experiment) = chosen;
        Task::new(paper, experiment, &set, args.out.join(&paper.name).join(experiment.id()))
    };
    let tasks: Vec<Task> = chosen.iter().map(task).collect::<Result<_, _>>()?;
    // If this run is interrupted, pages of an earlier run would describe other results.
    let pages = [REPORT, TABLES].map(|name| args.out.join(name));
    for page in &pages {
        remove(page)?;
    }
    let [page, tables_page] = pages;
    let Gathered { rows, figures, results, tables } = reproduce(&tasks, args.job.jobs(), quiet, args.job.wide)?;
    show::save(&page, &report::reproduction(&rows, &figures, &results))?;
    show::save(&tables_page, &tables)?;
    let mut stdout = crate::terminal::stdout();
    if args.job.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&rows)?)?;
    } else if !args.job.quiet {
        writeln!(stdout, "{}", Counts::of(&rows))?;
        writeln!(stdout, "report: {}", page.display())?;
    }
    Ok(())
}

/// Removes a file if it exists.
fn remove(path: &Path) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let (parent, name, _) = disk::Dir::parent_of(path)?;
    Ok(parent.remove_file(name)?)
}

/// An experiment to run. One that cannot be run yet has nothing loaded, and yields only its published rows.
pub(crate) struct Task<'a> {
    paper: &'a Paper,
    experiment: &'a Experiment,
    name: String,
    loaded: Option<Loaded>,
    out: PathBuf,
}

impl<'a> Task<'a> {
    /// Loads an experiment, whose results will go to `out`.
    pub(crate) fn new(
        paper: &'a Paper,
        experiment: &'a Experiment,
        set: &[String],
        out: PathBuf,
    ) -> Result<Task<'a>, Failure> {
        let loaded = experiment.load(set).map_err(|e| Failure::Invalid(e.to_string()))?;
        let name = format!("{}/{}", paper.name, experiment.id());
        if let Some(loaded) = &loaded {
            if loaded.has_captures() {
                let why = "record.pcap: reproductions write no captures: remove the key, or use `ranway run`";
                return Err(Failure::Invalid(format!("{name}: {why}")));
            }
            sim::check(loaded).map_err(wrong)?;
            // A place that cannot be written to is known before the work is done.
            drop(Output::create(&out)?);
        }
        Ok(Task { paper, experiment, name, loaded, out })
    }

    /// Writes the results, and compares them with the published rows.
    fn compare(&self, outcome: Option<sim::Outcome>) -> Result<(Vec<Row>, Option<Results>), Failure> {
        let Some(outcome) = outcome else { return Ok((reproduce::compare(self.paper, self.experiment, None), None)) };
        write(&outcome, &self.name, Output::create(&self.out)?, &self.out)?;
        if outcome.finished < outcome.runs {
            // With fewer runs, different numbers would carry the same name.
            message!("interrupted: {}: {} of {} completed", self.name, outcome.finished, counted(outcome.runs, "run"));
            return Err(Failure::Interrupted);
        }
        let rows = reproduce::compare(self.paper, self.experiment, Some(&outcome.results));
        Ok((rows, Some(outcome.results)))
    }
}

/// What experiments have given.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) rows: Vec<Row>,
    pub(crate) figures: Vec<Drawn>,
    pub(crate) results: Vec<Results>,
    /// The rows as Markdown.
    tables: String,
}

/// Runs experiments on `jobs` threads, the next one as soon as a thread is free. Writes the results of each one and prints
/// its rows when it and all before it have finished.
pub(crate) fn reproduce(tasks: &[Task], jobs: usize, quiet: bool, wide: bool) -> Result<Gathered, Failure> {
    let batches: Vec<Batch> = tasks.iter().filter_map(|task| Some(Batch::all(task.loaded.as_ref()?))).collect();
    let bar = match tasks {
        [task] => Bar::new(&task.name, quiet),
        _ => Bar::new(&counted(tasks.len() as u64, "experiment"), quiet),
    };
    let progress = |progress| bar.show(progress);
    let options = sim::Options::new(jobs, interrupt::flag(), &progress);
    let mut all = Gathered::default();
    let mut take = |task: &Task, outcome: Option<sim::Outcome>| -> Result<(), Failure> {
        let (rows, result) = task.compare(outcome)?;
        if !quiet {
            bar.aside(|| print(task.paper, task.experiment, &rows, table::width(&Term::stdout(), wide)))?;
        }
        all.tables += &markdown(task.paper, task.experiment, &rows);
        all.rows.extend(rows);
        all.figures.extend(result.iter().flat_map(|result| reproduce::draw(task.paper, task.experiment, result)));
        all.results.extend(result);
        Ok(())
    };
    let mut waiting = tasks.iter();
    sim::run_all(&batches, &options, |_, outcome| {
        for task in waiting.by_ref() {
            if task.loaded.is_some() {
                return take(task, Some(outcome));
            }
            take(task, None)?;
        }
        Ok(())
    })?;
    waiting.try_for_each(|task| take(task, None))?;
    Ok(all)
}

/// Prints the rows of an experiment.
fn print(paper: &Paper, experiment: &Experiment, rows: &[Row], width: Option<usize>) -> Result<(), Failure> {
    let [heads, cells @ ..] = &cells(rows)[..] else { return Ok(()) };
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = table::table(&heads, width);
    table.add_rows(cells);
    let mut out = crate::terminal::stdout();
    writeln!(out, "{}/{}: {}\n{table}\n", paper.name, experiment.id(), experiment.about)?;
    Ok(())
}

/// Formats the rows of an experiment as a section of `tables.md`.
fn markdown(paper: &Paper, experiment: &Experiment, rows: &[Row]) -> String {
    let cells = cells(rows);
    let line = |cells: &[String]| {
        let escaped: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        format!("| {} |\n", escaped.join(" | "))
    };
    let mut text = format!("## {}/{}\n\n**{}**\n\n", paper.name, experiment.id(), inline(&experiment.about));
    if let [heads, rows @ ..] = &cells[..] {
        text += &line(heads);
        text += &line(&vec!["---".to_owned(); heads.len()]);
        text.extend(rows.iter().map(|row| line(row)));
        text.push('\n');
    }
    text
}

/// Escapes text from a paper's folder for use inside a line of Markdown: no line breaks, column separators, HTML or control
/// characters.
fn inline(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let escaped = one_line.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    crate::terminal::sanitize(&escaped).into_owned()
}

/// Formats rows as the cells of a table, its head first. The column of floors is present if a row has one.
fn cells(rows: &[Row]) -> Vec<Vec<String>> {
    let figure = |value: &Option<Published>, ci| match value {
        Some(Published::Number(value)) => with_ci(*value, ci),
        Some(Published::Text(text)) => text.clone(),
        None => String::new(),
    };
    let cells = rows.iter().map(|row| {
        let verdict = match row.verdict {
            Verdict::Held => "held",
            Verdict::Missed => "missed",
            Verdict::NotPossible => "not possible yet",
        };
        let verdict = if row.fitted { format!("{verdict} (fitted)") } else { verdict.to_owned() };
        [
            row.variant.clone(),
            row.parameter.clone(),
            row.metric.clone(),
            row.unit.clone(),
            figure(&row.published, row.published_ci),
            figure(&row.measured, row.ci),
            row.floor.map_or_else(String::new, |floor| format!("{floor:.3}")),
            row.why.as_ref().map_or_else(|| verdict.clone(), |why| format!("{verdict}: {why}")),
        ]
    });
    let heads = ["variant", "parameter", "metric", "unit", "published", "measured", FLOOR, "verdict"];
    let floors = rows.iter().any(|row| row.floor.is_some());
    let shown = |row: [String; 8]| {
        let columns = heads.iter().zip(row).filter(|(head, _)| floors || **head != FLOOR);
        columns.map(|(_, cell)| cell).collect()
    };
    [heads.map(str::to_owned)].into_iter().chain(cells).map(shown).collect()
}

fn with_ci(value: f64, ci: Option<f64>) -> String {
    ci.map_or_else(|| format!("{value:.2}"), |ci| format!("{value:.2} ± {ci:.2}"))
}

/// A paper, and the folder it was read from unless it is built in.
pub(crate) struct Source {
    pub(crate) paper: Paper,
    folder: Option<PathBuf>,
}

/// Returns the built-in papers and the folders named in `which`.
pub(crate) fn papers(which: &[String]) -> Result<Vec<Source>, Failure> {
    let mut papers: Vec<Source> = reproduce::papers().into_iter().map(|paper| Source { paper, folder: None }).collect();
    let built_in = papers.len();
    for name in which {
        if papers[..built_in].iter().any(|source| !source.matching(name).is_empty()) {
            continue;
        }
        let Some(folder) = folder(name) else { continue };
        if papers.iter().any(|source| source.folder.as_deref() == Some(folder)) {
            continue;
        }
        for paper in Paper::open(folder).map_err(|e| Failure::Invalid(e.to_string()))? {
            if papers.iter().any(|source| source.paper.name == paper.name) {
                return Err(Failure::Invalid(format!(
                    "`{name}`: another paper is also called `{}`, and the results of both would be written to the same \
                     directory; rename the folder",
                    paper.name
                )));
            }
            papers.push(Source { paper, folder: Some(folder.to_owned()) });
        }
    }
    Ok(papers)
}

/// Returns the folder named by `DIR`, `DIR@VARIANT` or either with `/EXPERIMENT`.
fn folder(name: &str) -> Option<&Path> {
    let variant = name.rsplit_once('@').map(|(folder, _)| Path::new(folder));
    if let Some(folder) = variant.filter(|folder| reproduce::is_folder(folder)) {
        return Some(folder);
    }
    let path = Path::new(name);
    if path.is_dir() && (name.contains('/') || reproduce::is_folder(path)) {
        return Some(path);
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty() && reproduce::is_folder(parent))
}

impl Source {
    /// Returns its name on the command line.
    fn at(&self) -> PathBuf {
        let Some(folder) = &self.folder else { return PathBuf::from(&self.paper.name) };
        let variant = self.paper.name.rsplit_once('@').filter(|_| !self.paper.settings.is_empty());
        variant.map_or_else(|| folder.clone(), |(_, variant)| format!("{}@{variant}", folder.display()).into())
    }

    /// Returns the experiments that `name` selects: all, or one. `NAME/` and `./NAME` are folders, never built-in papers.
    fn matching(&self, name: &str) -> Vec<&Experiment> {
        if self.folder.is_none() && name.ends_with('/') {
            return Vec::new();
        }
        let Ok(rest) = Path::new(name).strip_prefix(self.at()) else { return Vec::new() };
        let all = self.paper.experiments.iter();
        all.filter(|e| rest.as_os_str().is_empty() || rest == Path::new(&e.id())).collect()
    }

    /// Returns all names that select it or one of its experiments.
    fn names(&self) -> Vec<String> {
        let experiments = self.paper.experiments.iter().map(|e| self.at().join(e.id()));
        [self.at()].into_iter().chain(experiments).map(|path| path.display().to_string()).collect()
    }
}

/// Returns the experiments selected by `which`: all of a paper, or one; without names, all built-in ones.
pub(crate) fn choose<'a>(papers: &'a [Source], which: &[String]) -> Result<Vec<(&'a Paper, &'a Experiment)>, Failure> {
    if which.is_empty() {
        let all = |source: &'a Source| source.paper.experiments.iter().map(move |e| (&source.paper, e));
        return Ok(papers.iter().flat_map(all).collect());
    }
    let mut chosen = Vec::new();
    for name in which {
        let before = chosen.len();
        for source in papers {
            chosen.extend(source.matching(name).into_iter().map(|e| (&source.paper, e)));
        }
        if chosen.len() > before {
            continue;
        }
        // Inside an existing folder, suggest only its own experiments.
        let here = folder(name);
        let own = |source: &&Source| here.is_none_or(|here| source.folder.as_deref() == Some(here));
        let names: Vec<String> = papers.iter().filter(own).flat_map(Source::names).collect();
        let why = match here {
            Some(_) => "no such experiment",
            None if Path::new(name).is_dir() => {
                "no such built-in paper or experiment, and the folder of this name has no `paper.toml`"
            }
            None => "no such built-in paper, experiment or folder",
        };
        let near = scenario::nearest(name, names.iter().map(String::as_str));
        let hint = near.map_or_else(|| "; available".into(), |near| format!("; did you mean `{near}`? Available"));
        return Err(Failure::Invalid(format!("`{name}`: {why}{hint}: {}", names.join(", "))));
    }
    Ok(chosen)
}
