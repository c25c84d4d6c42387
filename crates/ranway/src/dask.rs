//! `ranway sweep --dask`: the jobs of a sweep run on a Dask cluster. Dask is a library of Python, so Python's `ranway._cluster`, which
//! comes with this command in the wheel, hands them out.

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::run::overrides;
use anyhow::{Context, anyhow};
use std::env;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The module that runs the jobs.
const MODULE: &str = "ranway._cluster";
/// How often it is looked whether the user has interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the jobs that are left of a sweep, whose results will go to `out`, on the cluster of `scheduler`: an address or a file. Not all
/// have finished if the user interrupted.
///
/// # Errors
/// Python, its packages or the cluster are missing or failed. Finished jobs are kept.
pub(crate) fn run(scheduler: &str, scenario: &ScenarioArgs, out: &Path, quiet: bool) -> Result<(), Failure> {
    let python = python();
    can_import(&python)?;
    let request = serde_json::json!({
        "scheduler": scheduler, "source": scenario.source.file, "overrides": overrides(scenario), "out": out,
        "progress": !quiet,
    });
    let mut child = Command::new(&python)
        .args(["-m", MODULE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| python.display().to_string())?;
    let mut input = child.stdin.take().expect("it is piped");
    // If it has ended already, it has said why.
    let _ = writeln!(input, "{request}");
    let mut output = child.stdout.take().expect("it is piped");
    let said = thread::spawn(move || {
        let mut said = String::new();
        output.read_to_string(&mut said).map(|_| said)
    });
    // It ends when its input does, so with this process, too.
    let mut input = Some(input);
    let status = loop {
        if interrupt::flag().load(Relaxed) {
            input = None;
        }
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(LOOK),
        }
    };
    let said = said.join().expect("it does not panic")?;
    match said.trim() {
        _ if status.success() || input.is_none() => Ok(()),
        "" => Err(anyhow!("{MODULE}: {status}").into()),
        why => Err(anyhow!("--dask {scheduler}: {why}").into()),
    }
}

/// The Python that the command was installed with, or else the first in the search path.
fn python() -> PathBuf {
    let beside = env::current_exe().ok().map(|this| this.with_file_name("python3"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("python3"))
}

/// # Errors
/// There is no such Python, or it lacks a package.
fn can_import(python: &Path) -> Result<(), Failure> {
    let tried = Command::new(python).args(["-c", &format!("import {MODULE}")]).stdin(Stdio::null()).output();
    let why = match tried {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    let needed = "--dask needs the Python package `ranway` with its extra `dask`, as `pip install 'ranway[dask]'`";
    Err(anyhow!("{needed}; {}: {why}", python.display()).into())
}
