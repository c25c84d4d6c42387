//! The command line.

use crate::dashboard::DashboardArgs;
use crate::import::ImportCommand;
use crate::source::SourceArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use record::{Against, Job};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Simulate, emulate, measure and fix TCP over LTE and 5G.
///
/// Start with `ranway run dumbbell`: it simulates one CUBIC download and prints where its report is. `ranway list` shows the
/// other built-in scenarios and `ranway show NAME` prints one. `ranway init` writes a scenario file of your own, for
/// `ranway run FILE`.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 success; 1 a failure of the environment, such as a full disk; 2 invalid input, nothing was written; \
130 interrupted, the results of completed runs were written and marked as partial. `ranway emulate` has further codes."
)]
pub(crate) struct Args {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and write its results and report
    Run(RunArgs),
    /// Simulate all points of a sweep: on all cores, resumable, or a share of them on each of many machines
    Sweep(SweepArgs),
    /// Make results of the jobs of a sweep that many machines have shared
    Merge(MergeArgs),
    /// Check a scenario without running it
    Check(ScenarioArgs),
    /// List the built-in scenarios, presets and papers
    List,
    /// Print a built-in scenario or preset, including its comments
    Show(ShowArgs),
    /// Write a commented scenario file to start from
    Init(InitArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Regenerate the report of existing results
    Report(ReportArgs),
    /// Print means and confidence intervals, or paired differences, as text, CSV or LaTeX
    Table(TableArgs),
    /// Those that meet real networks, programs and captures
    #[cfg(feature = "live")]
    #[command(flatten)]
    Live(crate::live::args::Command),
    /// Convert rate tables, packet captures and logs of ns-3 and OMNeT++ into traces and recorded channels
    #[command(subcommand)]
    Import(ImportCommand),
    /// Compare several results in one report
    Compare(CompareArgs),
    /// Run experiments of papers and print published and measured numbers side by side
    Reproduce(ReproduceArgs),
    /// Compare congestion controls over a cellular trace and reproduce a paper's table
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference(ReferenceArgs),
    /// Write a manual page for each subcommand
    #[command(hide = true)]
    ManPages {
        /// The directory to write them to
        dir: PathBuf,
    },
}

/// The scenario and the number of repetitions.
#[derive(ClapArgs)]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Repetitions of each point, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
}

/// Parses a number of threads.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// How runs are executed and printed.
#[derive(ClapArgs)]
pub(crate) struct JobArgs {
    /// Number of threads; a run uses one, and several runs execute in parallel [default: all cores]
    #[arg(long, short, value_name = "N", value_parser = at_least_one())]
    jobs: Option<usize>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

impl JobArgs {
    /// Returns the number of threads; 0 means all cores.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.unwrap_or(0)
    }
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway run dumbbell
  ranway run dumbbell --set flows.*.cc=bbr
  ranway run loss-sweep --set loss=1e-3 --runs 20
  ranway run my.toml --set dumbbell.rate='10 Mbit/s' --out results/slow --json

After Ctrl-C, the results of completed runs are written and marked as partial. They never replace complete \
results: partial results then go to NAME-interrupted, beside the complete ones.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Record the cells' reports on the UEs in a file, as lines of JSON with times from the run's start, for
    /// `ranway rnis --input replay:FILE`; of one run
    #[arg(long, value_name = "FILE")]
    pub(crate) reports: Option<PathBuf>,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A sweep is a list of jobs, one for each run of each point. Each job's results are written when it finishes, into \
OUT.sweep; when all have, the results go to OUT, the same bytes as from `ranway run`, and OUT.sweep is removed. After Ctrl-C, a \
crash or a full disk, the same command resumes and skips the finished jobs. Memory does not grow with the number of jobs.

On many machines, each takes a share of the jobs with --shard. They may share OUT.sweep, or have one each.

Examples:
  ranway sweep loss-sweep --runs 100
  ranway sweep my.toml --set 'sweep.flows.*.cc=[\"cubic\", \"bbr\"]' --out results/cc
  ranway sweep my.toml --out results/cc --shard 3/20    the third of twenty shares, as of a job array
  ranway merge results/cc.sweep                         when all shares have finished
  ranway sweep my.toml --dask tcp://head:8786           on the workers of a Dask cluster"
)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Number of threads; a job uses one [default: all cores]
    #[arg(long, short, value_name = "N", value_parser = at_least_one())]
    jobs: Option<usize>,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run the I-th of N shares of the jobs and write no results yet; `ranway merge` does
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Run the jobs on the Dask cluster of this scheduler, or of a file of `dask scheduler --scheduler-file`; its workers must see the
    /// output directory under the same path. Needs the Python package `ranway[dask]`
    #[arg(long, value_name = "ADDRESS|FILE", conflicts_with_all = ["shard", "jobs"])]
    pub(crate) dask: Option<String>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

impl SweepArgs {
    /// Returns the number of threads; 0 means all cores.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.unwrap_or(0)
    }
}

#[derive(ClapArgs)]
#[command(
    after_help = "Several directories are those of machines that share none; a job that two have is taken once. Together they must have \
all jobs, or those that are missing are named.

Examples:
  ranway merge ranway-out/loss-sweep.sweep
  ranway merge node-*/cc.sweep --out results/cc"
)]
pub(crate) struct MergeArgs {
    /// Directories that `ranway sweep --shard` has written
    #[arg(value_name = "SWEEP", required = true)]
    pub(crate) sweeps: Vec<PathBuf>,
    /// Output directory; replaces earlier results there [default: the first SWEEP without `.sweep`]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

/// What happens when the jobs of a sweep have finished.
#[derive(ClapArgs)]
pub(crate) struct EndArgs {
    /// Keep the jobs' own files, with which the sweep can grow: the same command with more --runs computes only the new ones
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

/// One of several shares of the jobs of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    index: usize,
    count: usize,
}

impl Shard {
    /// Returns the jobs of this share: every N-th, so that all shares have some of each kind.
    pub(crate) fn of(self, jobs: &[Job]) -> Vec<Job> {
        jobs.iter().copied().skip(self.index - 1).step_by(self.count).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parse = || {
            let (index, count) = text.split_once('/')?;
            Some(Shard { index: index.parse().ok()?, count: count.parse().ok()? })
        };
        let shard = parse().filter(|shard| (1..=shard.count).contains(&shard.index));
        shard.ok_or_else(|| "expected I/N with I from 1 to N, as in 3/20".to_owned())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway show dumbbell
  ranway show lte-cell > my.toml          a copy to edit
  ranway show preset:lte-drive            what `include = [\"preset:lte-drive\"]` stands for")]
pub(crate) struct ShowArgs {
    /// The name of a built-in scenario, or of a preset (`ranway list`)
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway init                             scenario.toml: two flows over a bottleneck
  ranway init lte my-cell.toml            an LTE cell with two phones
  ranway run scenario.toml")]
pub(crate) struct InitArgs {
    /// The template to start from
    #[arg(default_value = "bottleneck")]
    pub(crate) kind: Starter,
    /// The file to write; an existing one is never overwritten
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
}

/// Templates of scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Starter {
    /// Two flows that share a bottleneck
    Bottleneck,
    /// A recorded or synthetic cellular link
    Trace,
    /// An LTE cell with two phones
    Lte,
    /// A sweep over congestion controls and loss rates, with repetitions
    Sweep,
    /// A network for real hosts (`ranway emulate`)
    Emulate,
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// A results directory, as of `ranway run`, or the directory of a campaign
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The report file to write [default: report.html in DIR]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A row is a flow at a point of the sweep, with means over the runs and half of their 95 % confidence intervals \
(Student's t). With --against, a row has the differences to the point with that value: runs of the same number share their random \
numbers, so that intervals are those of paired differences.

Examples:
  ranway table results
  ranway table results --figures goodput_mbps,rtt_p95_ms --format latex --out table.tex
  ranway table results --against cc=cubic --format csv"
)]
pub(crate) struct TableArgs {
    /// A results directory written by `ranway run` or `ranway sweep`
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The figures, named as in summary.json [default: the usual ones that have values]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) figures: Vec<String>,
    /// A value of a swept key with which all others are compared
    #[arg(long, value_name = "KEY=VALUE", value_parser = against)]
    pub(crate) against: Option<Against>,
    /// The form of the table
    #[arg(long, value_enum, default_value_t = TableForm::Text)]
    pub(crate) format: TableForm,
    /// The file to write instead of printing the table
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the text at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

/// The form of a table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableForm {
    /// columns for a terminal
    Text,
    /// numbers, intervals and counts of runs, separated by commas
    Csv,
    /// a tabular with the rules of booktabs
    Latex,
}

fn against(text: &str) -> Result<Against, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok(Against { key: key.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err("expected a swept key and one of its values, such as cc=cubic".to_owned()),
    }
}

#[derive(ClapArgs)]
pub(crate) struct CompareArgs {
    /// Results directories written by `ranway run`
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The report file to write
    #[arg(long, short, value_name = "FILE", default_value = "ranway-out/compare.html")]
    pub(crate) out: PathBuf,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway reproduce                               every experiment of every paper
  ranway reproduce mdcc-towards                  every experiment of one paper
  ranway reproduce mdcc-towards/wireless-loss    one experiment
  ranway reproduce mdcc-lte@as-run --grid        a variant, in each of its settings
  ranway reproduce ./my-paper                    every experiment in a folder of your own
  ranway reproduce ./my-paper/my-experiment      one experiment from it")]
pub(crate) struct ReproduceArgs {
    /// The experiments to reproduce: built-in papers (`ranway list`), folders with a `paper.toml`, or experiments of either
    /// [default: all built-in papers]
    #[arg(value_name = "PAPER|DIR[@VARIANT][/EXPERIMENT]")]
    pub(crate) which: Vec<String>,
    /// Repetitions of each point, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// Run a variant in every setting of the parameters that its paper leaves open, and count the published rows that each
    /// reproduces
    #[arg(long)]
    pub(crate) grid: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Output directory for results and the comparison page
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/reproduce")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// A recorded trace in mahimahi's format, or a folder of them; without one, the link is synthetic
    #[arg(long, value_name = "PATH")]
    pub(crate) traces: Option<PathBuf>,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
    /// Output directory for the report
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/demo")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct CompletionArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(ClapArgs)]
pub(crate) struct ReferenceArgs {
    /// The page
    pub(crate) page: Page,
}

/// The generated pages of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// The keys of scenario files
    Scenario,
    /// The command line
    Command,
}
