//! The command line.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Simulate, emulate, measure and fix TCP over LTE and 5G.
///
/// Start with `ranway run dumbbell`: it simulates one CUBIC download and says where its report is. `ranway list` shows the
/// other built-in scenarios; `ranway run FILE` takes your own.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 something outside failed (a disk, a missing file), 2 the input is wrong and \
nothing was written, 130 interrupted; what had finished was written."
)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and write its results and report
    Run(RunArgs),
    /// Check a scenario without running it
    Check(ScenarioArgs),
    /// List the built-in scenarios, presets and papers
    List,
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Write the report of results again
    Report(ReportArgs),
    /// Put several results into one report, side by side
    Compare(CompareArgs),
    /// Run papers' experiments and print published and measured numbers side by side
    Reproduce(ReproduceArgs),
    /// Compare congestion controls over a cellular trace and reproduce a paper's table
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// Which scenario, and what to change in it.
#[derive(ClapArgs)]
pub(crate) struct ScenarioArgs {
    /// A scenario file, or the name of a built-in one (`ranway list`)
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Set a parameter or any key, as loss=1e-3, links.radio.delay="20 ms" or flows.*.cc=bbr
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all randomness, instead of the scenario's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Repetitions of each point, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
}

/// How to run.
#[derive(ClapArgs)]
pub(crate) struct JobArgs {
    /// Threads; a run uses one, runs go side by side [default: all cores]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway run dumbbell
  ranway run dumbbell --set flows.*.cc=bbr --runs 10
  ranway run my.toml --set loss=1e-3 --out results/lossy --json")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Where to write results; earlier results there are replaced [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// Results, as `ranway run` wrote them
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Where to write the report [default: report.html in DIR]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct CompareArgs {
    /// Results, as `ranway run` wrote them
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "ranway-out/compare.html")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway reproduce                               every experiment of every paper
  ranway reproduce mdcc-towards                  every experiment of one paper
  ranway reproduce mdcc-towards/wireless-loss    one experiment")]
pub(crate) struct ReproduceArgs {
    /// What to reproduce; everything unless given
    #[arg(value_name = "PAPER[/EXPERIMENT]")]
    pub(crate) which: Vec<String>,
    /// Repetitions of each point, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Where to write results and the page that compares them
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/reproduce")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// A recorded trace, or a folder of them (mahimahi's format); without any, a made-up one is used
    #[arg(long, value_name = "PATH")]
    pub(crate) traces: Option<PathBuf>,
    /// Where to write the report
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
    /// Which page
    pub(crate) page: Page,
}

/// A generated page of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// The keys of scenario files
    Scenario,
    /// The command line
    Command,
}
