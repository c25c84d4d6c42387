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
use reproduce::{Counts, Drawn, Experiment, Origin, Paper, Published, Row, Tally, Verdict};
use scenario::Loaded;
use sim::Batch;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The comparison page, its tables in Markdown, and the number of rows with each verdict.
const REPORT: &str = "report.html";
const TABLES: &str = "tables.md";
const COUNTS: &str = "counts.md";
/// The head of the column with physical bounds.
const BOUND: &str = "bound";

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
    let pages = [REPORT, TABLES, COUNTS].map(|name| args.out.join(name));
    for page in &pages {
        remove(page)?;
    }
    let [page, tables_page, counts_page] = pages;
    let Gathered { rows, figures, results, tables } = reproduce(&tasks, args.job.jobs(), quiet, args.job.wide)?;
    show::save(&page, &report::reproduction(&rows, &figures, &results))?;
    show::save(&tables_page, &tables)?;
    let counted = counts(&rows);
    show::save(&counts_page, &markdown_table(&counted))?;
    let mut stdout = crate::terminal::stdout();
    if args.job.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&rows)?)?;
    } else if !args.job.quiet {
        let width = table::width(&Term::stdout(), args.job.wide);
        if let Some(table) = terminal_table(&counted, width).filter(|_| counted.len() > 2) {
            writeln!(stdout, "{table}\n")?;
        }
        writeln!(stdout, "{}", reproduce::counts_by_paper(&rows).1)?;
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
    let Some(table) = terminal_table(&cells(rows), width) else { return Ok(()) };
    let mut out = crate::terminal::stdout();
    writeln!(out, "{}/{}: {}\n{table}\n", paper.name, experiment.id(), experiment.about)?;
    Ok(())
}

/// Formats cells, of which the first are the head, as a table for the terminal.
fn terminal_table(cells: &[Vec<String>], width: Option<usize>) -> Option<comfy_table::Table> {
    let [heads, rows @ ..] = cells else { return None };
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = table::table(&heads, width);
    table.add_rows(rows);
    Some(table)
}

/// Formats the rows of an experiment as a section of `tables.md`.
fn markdown(paper: &Paper, experiment: &Experiment, rows: &[Row]) -> String {
    let (name, about) = (format!("{}/{}", paper.name, experiment.id()), inline(&experiment.about));
    format!("## {name}\n\n**{about}**\n\n{}\n", markdown_table(&cells(rows)))
}

/// Formats cells, of which the first are the head, as a table in Markdown.
fn markdown_table(cells: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let escaped: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        format!("| {} |\n", escaped.join(" | "))
    };
    let mut lines: Vec<String> = cells.iter().map(|cells| line(cells)).collect();
    if let Some(heads) = cells.first() {
        lines.insert(1, line(&vec!["---".to_owned(); heads.len()]));
    }
    lines.concat()
}

/// Escapes text from a paper's folder for use inside a line of Markdown: no line breaks, column separators, HTML or control
/// characters.
fn inline(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let escaped = one_line.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    crate::terminal::sanitize(&escaped).into_owned()
}

/// Formats rows as the cells of a table, its head first. The column of physical bounds is present if a row has one.
fn cells(rows: &[Row]) -> Vec<Vec<String>> {
    let figure = |value: &Option<Published>, ci| match value {
        Some(Published::Number(value)) => with_ci(*value, ci),
        Some(Published::Text(text)) => text.clone(),
        None => String::new(),
    };
    let cells = rows.iter().map(|row| {
        let bounds = [("≥", row.floor), ("≤", row.ceiling)];
        let bounds = bounds.into_iter().filter_map(|(sign, bound)| Some(format!("{sign} {:.3}", bound?)));
        let published = figure(&row.published, row.published_ci);
        let expected = row.expected.iter().map(|expected| format!("({expected})"));
        [
            row.variant.clone(),
            row.parameter.clone(),
            row.metric.clone(),
            row.unit.clone(),
            [published].into_iter().filter(|text| !text.is_empty()).chain(expected).collect::<Vec<_>>().join(" "),
            figure(&row.measured, row.ci),
            bounds.collect::<Vec<_>>().join(", "),
            verdict(row),
        ]
    });
    let heads = ["variant", "parameter", "metric", "unit", "published", "measured", BOUND, "verdict"];
    let bounds = rows.iter().any(|row| row.floor.or(row.ceiling).is_some());
    let shown = |row: [String; 8]| {
        let columns = heads.iter().zip(row).filter(|(head, _)| bounds || **head != BOUND);
        columns.map(|(_, cell)| cell).collect()
    };
    [heads.map(str::to_owned)].into_iter().chain(cells).map(shown).collect()
}

/// Formats a row's verdict, with its marks and the reason of a tolerance in parentheses and what is known about a missed row.
fn verdict(row: &Row) -> String {
    let verdict = match row.verdict {
        Verdict::Held => "held",
        Verdict::Missed => "missed",
        Verdict::Impossible => "impossible",
        Verdict::NotPossible => "not possible yet",
    };
    let origin = match row.origin {
        Origin::Paper => None,
        Origin::Artefact => Some("the artefact's".to_owned()),
        Origin::Ours => Some("ours".to_owned()),
    };
    let fitted = row.fitted.as_ref().map(|what| format!("fitted: {what}"));
    let given = row.given.as_ref().map(|why| format!("given: {why}"));
    let because = row.because.as_ref().map(|why| match row.tolerance {
        Some(tolerance) => format!("within {tolerance}: {why}"),
        None => why.clone(),
    });
    let marks: Vec<String> = [origin, fitted, given, because].into_iter().flatten().collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join("; ")) };
    let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    format!("{verdict}{marks}{why}")
}

/// Formats the number of rows with each verdict as the cells of a table, its head first: a line for each paper, and their sum.
fn counts(rows: &[Row]) -> Vec<Vec<String>> {
    let cells = |name: &str, counts: &Counts| {
        let Counts { held, fitted, given, missed, impossible, not_possible, artefact, ours } = counts;
        let marked = |tally: &Tally| if tally.all == 0 { String::new() } else { tally.to_string() };
        let numbers = [*held, *missed, *impossible, *not_possible].map(|count| count.to_string());
        let tallies = [fitted, given, artefact, ours].map(marked);
        [&[name.to_owned(), counts.own().to_string()][..], &numbers[..], &tallies[..]].concat()
    };
    let heads = [
        "paper",
        "its own rows",
        "held",
        "missed",
        "impossible",
        "not possible yet",
        "fitted",
        "given",
        "the artefact's",
        "ours",
    ];
    let (by_paper, sum) = reproduce::counts_by_paper(rows);
    let sum = (by_paper.len() > 1).then(|| cells("all, without variants", &sum));
    let papers = by_paper.iter().map(|(name, counts)| cells(name, counts));
    [heads.map(str::to_owned).to_vec()].into_iter().chain(papers).chain(sum).collect()
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
        let hint = match (near, here) {
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, Some(_)) => format!("; there are {}", names.join(", ")),
            (None, None) => "; `ranway list` shows all names".to_owned(),
        };
        return Err(Failure::Invalid(format!("`{name}`: {why}{hint}")));
    }
    Ok(chosen)
}
