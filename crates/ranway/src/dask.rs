//! `ranway sweep --dask`: the jobs of a sweep run on a Dask cluster. Dask is a library of Python, so Python's `ranway._cluster`, which
//! comes with this command in the wheel, hands them out.

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::run::overrides;
use anyhow::{Context, anyhow};
use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// The module that runs the jobs.
const MODULE: &str = "ranway._cluster";
/// How often it is looked whether the user has interrupted.
const LOOK: Duration = Duration::from_millis(100);
/// How long Python may take to end after an interruption.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A scheduler, and the Python that can reach it.
pub(crate) struct Dask<'a> {
    scheduler: &'a str,
    python: PathBuf,
}

/// How Python ended.
struct Ended {
    succeeded: bool,
    interrupted: bool,
    /// Its standard output.
    said: String,
}

impl<'a> Dask<'a> {
    /// Checks the address of a scheduler, or the name of its file, and that Python has what is needed.
    ///
    /// # Errors
    /// It is neither, or there is no such Python.
    pub(crate) fn new(scheduler: &'a str) -> Result<Dask<'a>, Failure> {
        if !Path::new(scheduler).is_file() && !is_address(scheduler) {
            let what = "there is no such file, and an address has a port, as tcp://127.0.0.1:8786";
            return Err(Failure::Invalid(format!("--dask {scheduler}: {what}")));
        }
        let python = python();
        let needed = "--dask needs the Python package `ranway` with its extra `dask`, as `pip install 'ranway[dask]'`";
        let tried = Command::new(&python)
            .args([
                "-c",
                &format!("try:\n import {MODULE}\nexcept ImportError as why:\n print(why)\n raise SystemExit(1)"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .and_then(ended);
        match tried {
            Ok(ended) if ended.interrupted => Err(Failure::Interrupted),
            Ok(ended) if ended.succeeded => Ok(Dask { scheduler, python }),
            Ok(ended) => Err(anyhow!("{needed}; {}: {}", python.display(), ended.said.trim()).into()),
            Err(error) => Err(anyhow!("{needed}; {}: {error}", python.display()).into()),
        }
    }

    /// Runs the jobs that are left of a sweep, whose results will go to `out`. Returns whether the user interrupted.
    ///
    /// # Errors
    /// What Python says. Finished jobs are kept.
    pub(crate) fn run(&self, scenario: &ScenarioArgs, out: &Path, quiet: bool) -> Result<bool, Failure> {
        let request = serde_json::json!({
            "scheduler": self.scheduler, "source": scenario.source.file, "overrides": overrides(scenario), "out": out,
            "progress": !quiet,
        });
        let mut child = Command::new(&self.python)
            .args(["-m", MODULE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| self.python.display().to_string())?;
        // If it has ended already, it has said why.
        let _ = writeln!(child.stdin.as_mut().expect("it is piped"), "{request}");
        let ended = ended(child)?;
        if ended.succeeded || ended.interrupted {
            return Ok(ended.interrupted);
        }
        let why = if ended.said.trim().is_empty() { "Python has failed" } else { ended.said.trim() };
        Err(anyhow!("--dask {}: {why}", self.scheduler).into())
    }
}

/// Waits for a process. After an interruption its input is closed, with which it ends, as it does with this process.
fn ended(mut child: Child) -> io::Result<Ended> {
    let mut input = child.stdin.take();
    let mut output = child.stdout.take().expect("it is piped");
    let said = thread::spawn(move || {
        let mut said = Vec::new();
        let _ = output.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let mut interrupted = None;
    let status = loop {
        if interrupt::flag().load(Relaxed) {
            input = None;
            if interrupted.get_or_insert_with(Instant::now).elapsed() > END_TIMEOUT {
                child.kill()?;
            }
        }
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(LOOK),
        }
    };
    drop(input);
    let said = said.join().expect("it does not panic");
    Ok(Ended { succeeded: status.success(), interrupted: interrupted.is_some(), said })
}

/// Whether it is `HOST:PORT`, perhaps after a protocol.
fn is_address(scheduler: &str) -> bool {
    let place = scheduler.split_once("://").map_or(scheduler, |(_, place)| place);
    place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// The Python that the command was installed with, or else the first in the search path.
fn python() -> PathBuf {
    let beside = env::current_exe().ok().map(|this| this.with_file_name("python3"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("python3"))
}
