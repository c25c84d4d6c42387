//! Runs the programs of a task, one after the other.

use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Instant;

/// Runs one command, says what and how long it took, and fails with its name.
pub(crate) fn step(what: &str, program: &str, args: &[&str]) -> Result<()> {
    step_with(&[], what, program, args)
}

/// As [`step`], with these variables in its environment.
pub(crate) fn step_with(variables: &[(&str, &str)], what: &str, program: &str, args: &[&str]) -> Result<()> {
    println!("==> {what}: {program} {}", args.join(" "));
    let start = Instant::now();
    let status = Command::new(program).args(args).envs(variables.iter().copied()).status().with_context(|| {
        format!("`{program}` does not start: is it installed? `make setup` installs what is needed")
    })?;
    if !status.success() {
        bail!("{what} failed: {program} {}", args.join(" "));
    }
    println!("    {what}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
