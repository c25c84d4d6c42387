//! Runs the programs of a task, one after the other.

use anyhow::{Context, Result, bail};
use serde_json::Value;
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
    let status = command(program).args(args).envs(variables.iter().copied()).status().with_context(|| {
        format!("`{program}` does not start: is it installed? `make setup` installs what is needed")
    })?;
    if !status.success() {
        bail!("{what} failed: {program} {}", args.join(" "));
    }
    println!("    {what}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs one command without a word, and returns its output; fails with its name and what it complains of.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
    if !output.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// Returns what `cargo metadata` tells of the workspace with these options.
pub(crate) fn metadata(options: &[&str]) -> Result<Value> {
    let args = [&["metadata", "--locked", "--format-version=1"], options].concat();
    serde_json::from_slice(&output("cargo", &args)?).context("cargo metadata")
}

/// Returns a command without the variables that cargo has set for this task runner. The build script of `ring` would run again for
/// them, and all that depends on it would be built again, each time that one builds by hand between two tasks.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_ours =
            name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_ours {
            command.env_remove(name);
        }
    }
    command
}
