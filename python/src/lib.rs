//! `ranway._ranway`: Python bindings of the simulator, without logic; users import the package `ranway`.
//!
//! A run releases the interpreter to other threads. It executes in its own threads, while the calling thread waits and
//! checks a few times per second for signals (Ctrl-C) and for progress to report; an exception from either stops the
//! run and is raised.

// A binding is at the edge: it reads the files named by a scenario, and starts the thread it waits for.
#![allow(clippy::disallowed_methods)]

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use record::{Against, Means, Output, SweepDir, Unfinished, report};
use sim::{Batch, Job};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Timeout of a request to a running emulation.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum delay of signals and progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

import_exception!(ranway._errors, RanwayError);
import_exception!(ranway._errors, ScenarioError);

/// A scenario that was read and checked: the points of its sweep. A network for real hosts may have no flows.
#[pyclass(frozen, module = "ranway._ranway")]
struct Loaded {
    loaded: scenario::Loaded,
    files: BTreeMap<String, String>,
}

#[pymethods]
impl Loaded {
    /// Reads the file at `path`, or the built-in scenario of that name, and applies `overrides` (`KEY=VALUE`).
    #[staticmethod]
    fn load(path: &str, overrides: Vec<String>, files: BTreeMap<String, String>) -> PyResult<Loaded> {
        let read = RefCell::new(BTreeMap::new());
        let keep = |path: &str| {
            let text = files.get(path).map_or_else(|| scenario::read_file(path), |text| Ok(text.clone()))?;
            read.borrow_mut().insert(path.to_owned(), text.clone());
            Ok(text)
        };
        let loaded = scenario::Scenario::load_for_emulation(path, &overrides, &keep).map_err(|error| {
            let lines: Vec<String> = error.faults().iter().map(line).collect();
            ScenarioError::new_err(lines.join("\n"))
        })?;
        Ok(Loaded { loaded, files: read.into_inner() })
    }

    /// The contents of all files that were read, by path.
    fn files(&self) -> BTreeMap<String, String> {
        self.files.clone()
    }

    /// The jobs in order: point and run.
    fn jobs(&self) -> Vec<(u32, u32)> {
        pairs(&sim::jobs(&self.loaded))
    }

    /// Returns the title.
    #[getter]
    fn title(&self) -> &str {
        &self.loaded.points()[0].scenario.title
    }

    /// Returns the points as a JSON array of objects, each mapping swept keys to values.
    fn points(&self) -> String {
        let points: Vec<_> = self.loaded.points().iter().map(scenario::Point::values).collect();
        json(&points)
    }

    /// Returns the warnings, one line each.
    fn warnings(&self) -> Vec<String> {
        self.loaded.warnings().iter().map(line).collect()
    }
}

/// Jobs as Python has them: point and run.
type Pairs = Vec<(u32, u32)>;

fn pairs(jobs: &[Job]) -> Pairs {
    jobs.iter().map(|job| (job.point, job.run)).collect()
}

/// Formats a fault as a line. `--set KEY=VALUE` on the command line is `set(KEY=VALUE)` here.
fn line(fault: &scenario::Fault) -> String {
    let text = fault.to_string();
    let set = fault.origin.as_ref().and_then(|origin| origin.source.strip_prefix("--set "));
    set.map_or_else(|| text.clone(), |set| text.replacen(&format!("--set {set}"), &format!("set({set})"), 1))
}

/// The results of runs.
#[pyclass(frozen, eq, module = "ranway._ranway")]
struct Results(record::Results);

/// Equal if scenario and values are equal, regardless of the time taken.
impl PartialEq for Results {
    fn eq(&self, other: &Results) -> bool {
        self.0.meta == other.0.meta && self.0.tables == other.0.tables
    }
}

#[pymethods]
impl Results {
    /// Reads results written by [`Results::write`] or the command.
    #[staticmethod]
    fn read(py: Python<'_>, dir: PathBuf) -> PyResult<Results> {
        py.detach(|| record::Results::read(&dir)).map(Results).map_err(record_error)
    }

    /// Reads what `files` returned.
    #[staticmethod]
    fn from_files(py: Python<'_>, files: BTreeMap<String, Vec<u8>>) -> PyResult<Results> {
        py.detach(|| record::Results::from_files(files)).map(Results).map_err(record_error)
    }

    /// The files that hold the results, by name, to send them to another process.
    fn files(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Vec<u8>>> {
        Ok(py.detach(|| self.0.to_files())?)
    }

    /// The jobs that these are the results of: point and run. An interrupted emulation names none.
    fn jobs(&self) -> Vec<(u32, u32)> {
        pairs(&self.0.jobs().unwrap_or_default())
    }

    /// Writes everything but captures to `dir`, atomically.
    fn write(&self, py: Python<'_>, dir: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.write(&dir)).map_err(record_error)
    }

    /// Returns the metadata as JSON.
    fn meta(&self) -> String {
        json(&self.0.meta)
    }

    /// Returns the cost of the runs as JSON.
    fn timing(&self) -> String {
        json(&self.0.timing)
    }

    /// Returns means and confidence intervals as JSON.
    fn summary(&self, py: Python<'_>) -> String {
        py.detach(|| json(&self.0.summary()))
    }

    /// Returns the summary of each flow in each run as the bytes of a Parquet file.
    fn summary_frame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        py.detach(|| record::write_summary_frame(&self.0, &mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns means and their intervals as CSV, or as LaTeX.
    fn means(
        &self,
        py: Python<'_>,
        figures: Vec<String>,
        against: Option<(String, String)>,
        latex: bool,
    ) -> PyResult<String> {
        let against = against.map(|(key, value)| Against { key, value });
        let means = py.detach(|| Means::of(&self.0, &figures, against)).map_err(PyValueError::new_err)?;
        Ok(if latex { means.latex() } else { means.csv() })
    }

    /// Returns the report, one HTML page.
    fn report(&self, py: Python<'_>) -> String {
        py.detach(|| report::html(&self.0))
    }

    /// Returns a table as the bytes of a Parquet file.
    fn parquet<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        py.detach(|| self.0.tables.write_parquet(table, &mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Runs every repetition of every point of `loaded` on `jobs` threads (0: one per core). Calls `progress` in the
/// calling thread with the completed share, the number of completed runs and the total number of runs. With `out`,
/// writes results and captures there, atomically.
#[pyfunction]
#[pyo3(signature = (loaded, jobs, threads, progress=None, out=None))]
fn run(
    py: Python<'_>,
    loaded: &Loaded,
    jobs: Option<Vec<String>>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    out: Option<PathBuf>,
) -> PyResult<Results> {
    let loaded = &loaded.loaded;
    if loaded.points().iter().any(|point| point.scenario.flows.is_empty()) {
        return Err(ScenarioError::new_err("flows: the scenario has no flows; add [[flows]]"));
    }
    let mut jobs = jobs.map_or_else(|| Ok(Batch::all(loaded)), |jobs| listed(loaded, &jobs))?;
    let output = out.as_deref().map(create).transpose()?;
    if let Some(output) = &output {
        jobs = jobs.capturing_into(output);
    }
    let progress = progress.map(|callback| callback.clone().unbind());
    let outcome = py.detach(|| apart(threads, progress.as_ref(), |options| jobs.run(options)))?;
    if let Some(output) = output {
        py.detach(|| outcome.results.commit(output)).map_err(record_error)?;
    }
    Ok(Results(outcome.results))
}

/// The jobs of a sweep with the directory `dir`, which is made if it is missing: all, and those that have not finished; and a
/// line about each thing that was found damaged there and is made anew. `out`, where the results will go, must be a place that
/// can be written to.
#[pyfunction]
#[pyo3(signature = (loaded, dir, out=None))]
fn sweep_jobs(
    py: Python<'_>,
    loaded: &Loaded,
    dir: PathBuf,
    out: Option<PathBuf>,
) -> PyResult<(Pairs, Pairs, Vec<String>)> {
    let loaded = &loaded.loaded;
    if loaded.has_captures() {
        return Err(ScenarioError::new_err("record.pcap: a sweep writes no captures: remove the key, or use `run`"));
    }
    py.detach(|| {
        out.as_deref().map(create).transpose()?;
        let sweep = sim::sweep_dir(loaded, &dir).map_err(record_error)?;
        let all = sweep.jobs();
        let left = unfinished(&sweep, &all)?;
        Ok((pairs(&all), pairs(&left.jobs), left.repairs))
    })
}

/// Which of `jobs` are left to run.
fn unfinished(sweep: &SweepDir, jobs: &[Job]) -> PyResult<Unfinished> {
    let mut signal = Ok(());
    let left = sweep.unfinished(jobs, &mut |_| unless_signalled(&mut signal)).map_err(record_error)?;
    signal?;
    Ok(left.expect("only a signal stops it"))
}

/// Returns whether no signal asks to stop; only the interpreter looks at signals.
fn unless_signalled(signal: &mut PyResult<()>) -> bool {
    Python::attach(|py| *signal = py.check_signals());
    signal.is_ok()
}

/// Runs those jobs of a sweep that have not finished, and writes the results of each into `dir` when it does. Returns their number.
#[pyfunction]
#[pyo3(signature = (loaded, dir, jobs, threads, progress=None))]
fn sweep_run(
    py: Python<'_>,
    loaded: &Loaded,
    dir: PathBuf,
    jobs: Vec<String>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let loaded = &loaded.loaded;
    let batch = listed(loaded, &jobs)?;
    let progress = progress.map(|callback| callback.clone().unbind());
    py.detach(|| {
        let sweep = sim::sweep_dir(loaded, &dir).map_err(record_error)?;
        let left = unfinished(&sweep, batch.jobs())?;
        let batch = Batch::of(loaded, left.jobs).map_err(|error| PyValueError::new_err(error.to_string()))?;
        apart(threads, progress.as_ref(), |options| batch.run_into(&sweep, options))?;
        Ok(batch.jobs().len())
    })
}

/// Assembles the results of sweeps' directories at `out`, and removes the directories unless they are to be kept.
#[pyfunction]
fn sweep_merge(py: Python<'_>, dirs: Vec<PathBuf>, out: PathBuf, keep: bool) -> PyResult<()> {
    py.detach(|| {
        let parts = dirs.iter().map(|dir| SweepDir::open(dir)).collect::<Result<Vec<_>, _>>().map_err(record_error)?;
        let output = create(&out)?;
        let mut signal = Ok(());
        let assembled = record::assemble(&parts, &output, &mut |_| unless_signalled(&mut signal));
        let assembled = assembled.map_err(record_error)?;
        signal?;
        if assembled.is_some() {
            output.commit().map_err(record_error)?;
            if !keep {
                parts.into_iter().try_for_each(SweepDir::remove).map_err(record_error)?;
            }
        }
        Ok(())
    })
}

/// Puts the results of disjoint lists of jobs together.
#[pyfunction]
fn merge(py: Python<'_>, parts: Vec<Py<Results>>) -> PyResult<Results> {
    let parts: Vec<&record::Results> = parts.iter().map(|part| &part.get().0).collect();
    py.detach(|| record::merge(&parts)).map(Results).map_err(|error| RanwayError::new_err(error.to_string()))
}

fn create(dir: &Path) -> PyResult<Output> {
    Output::create(dir).map_err(record_error)
}

/// The jobs of a list.
fn listed<'a>(loaded: &'a scenario::Loaded, jobs: &[String]) -> PyResult<Batch<'a>> {
    let jobs = jobs.iter().map(|job| job.parse::<Job>()).collect::<Result<_, _>>();
    let jobs = jobs.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Batch::of(loaded, jobs).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Runs jobs in other threads and keeps this one for Python.
fn apart<T: Send>(
    threads: usize,
    callback: Option<&Py<PyAny>>,
    run: impl FnOnce(&sim::Options<'_>) -> Result<T, sim::Error> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let latest = Mutex::new(None);
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        let (stop, latest) = (&stop, &latest);
        let runs = scope.spawn(move || {
            // Dropped at the end or by a panic, which wakes the waiting thread.
            let _done = done;
            let progress = |progress| *latest.lock().expect("nobody panics with it") = Some(progress);
            run(&sim::Options::new(threads, stop, &progress))
        });
        let tell = || {
            Python::attach(|py| {
                py.check_signals()?;
                let news = latest.lock().expect("nobody panics with it").take();
                if let (Some(callback), Some(sim::Progress { share, runs_done, runs })) = (callback, news) {
                    callback.call1(py, (share, runs_done, runs))?;
                }
                PyResult::Ok(())
            })
        };
        let mut told = Ok(());
        while told.is_ok() && finished.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            told = tell();
        }
        stop.fetch_or(told.is_err(), Ordering::Relaxed);
        let outcome =
            runs.join().map_err(|_| PyRuntimeError::new_err("the simulator panicked: this is a bug in it"))?;
        told.and_then(|()| tell())?;
        outcome.map_err(sim_error)
    })
}

fn sim_error(error: sim::Error) -> PyErr {
    match error {
        sim::Error::Trace { .. } | sim::Error::Channel { .. } => ScenarioError::new_err(error.to_string()),
        sim::Error::Record(error) => record_error(error),
        sim::Error::Threads(_) => RanwayError::new_err(error.to_string()),
    }
}

/// Converts errors of the system to `OSError` with the system's number, so that Python raises `PermissionError` and the
/// like.
fn record_error(error: record::Error) -> PyErr {
    let text = error.to_string();
    match error {
        record::Error::Io { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, text)),
            None => PyOSError::new_err(text),
        },
        _ => RanwayError::new_err(text),
    }
}

/// A running emulation.
#[pyclass(frozen, module = "ranway._ranway")]
struct Emulation {
    running: Mutex<Option<::emulate::Emulation>>,
    hosts: Vec<(String, String, String, String)>,
    has_router: bool,
    id: String,
    control: PathBuf,
}

#[pymethods]
impl Emulation {
    /// Returns the hosts, the server first: name, namespace, IPv4 and IPv6 address.
    fn hosts(&self) -> Vec<(String, String, String, String)> {
        self.hosts.clone()
    }

    /// Returns the ID, which `ranway control --id` takes.
    fn id(&self) -> &str {
        &self.id
    }

    /// Sends a line to the control socket and returns the answer without its `ok`.
    fn control(&self, py: Python<'_>, line: &str) -> PyResult<String> {
        py.detach(|| ::emulate::control::ask(&self.control, line, CONTROL_TIMEOUT)).map_err(|error| match error {
            ::emulate::Error::Wrong(what) => RanwayError::new_err(what),
            error => emulate_error(error),
        })
    }

    /// Returns whether the last host is a router.
    fn has_router(&self) -> bool {
        self.has_router
    }

    /// Ends the emulation, writes the requested output, and returns the results, and notes on them, one line each.
    fn finish(&self, py: Python<'_>) -> PyResult<(Results, Vec<String>)> {
        let running = self.running.lock().expect("nobody panics with it").take();
        let running = running.ok_or_else(|| PyRuntimeError::new_err("the emulation has already ended"))?;
        let finished = py.detach(|| running.finish()).map_err(emulate_error)?;
        let notes = finished.notes();
        let ::emulate::Finished { results, output, gone, .. } = finished;
        if let Some(output) = output {
            py.detach(|| results.commit(output)).map_err(record_error)?;
        }
        if let Some(what) = gone {
            return Err(RanwayError::new_err(what));
        }
        Ok((Results(results), notes))
    }
}

/// The keyword arguments of `ranway.emulate` and `ranway.attach`, as a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EmulateOptions {
    kernel: bool,
    mtu: u32,
    max_lateness: String,
    pcap: bool,
    out: Option<PathBuf>,
    nat: bool,
    dns: Vec<String>,
    router: Option<String>,
    names: BTreeMap<String, String>,
}

impl EmulateOptions {
    fn read(self) -> PyResult<::emulate::Options> {
        let wrong = |key: &'static str| move |what: String| PyValueError::new_err(format!("{key}: {what}"));
        let bound = self.max_lateness.parse();
        let bound = bound.map_err(|error: units::ParseUnitError| wrong("max_lateness")(error.to_string()))?;
        let output = self.out.as_deref().map(create).transpose()?;
        let address = |dns: &String| {
            dns.parse().map_err(|_| wrong("dns")(format!("`{dns}` is not an IPv4 address such as 192.0.2.53")))
        };
        let dns = self.dns.iter().map(address).collect::<PyResult<_>>()?;
        let name = |(name, host)| ::emulate::GivenName::parse(&format!("{name}={host}")).map_err(wrong("names"));
        Ok(::emulate::Options {
            mtu: self.mtu,
            kernel: self.kernel,
            capture: self.pcap,
            bound,
            output,
            nat: self.nat.then_some(::emulate::uplink::Nat { dns }),
            router: self.router,
            names: self.names.into_iter().map(name).collect::<PyResult<_>>()?,
            ..::emulate::Options::default()
        })
    }
}

/// Connects real hosts through the network of `loaded`. With `out`, the results are written there at the end.
#[pyfunction]
fn emulate(py: Python<'_>, loaded: &Loaded, options: EmulateOptions) -> PyResult<Emulation> {
    let options = options.read()?;
    begun(py, || ::emulate::Emulation::start(loaded.loaded.clone(), options))
}

/// Puts the network of `loaded` between two interfaces; the hosts behind `ran` stand for the host with the number `ue`.
#[pyfunction]
fn attach(
    py: Python<'_>,
    loaded: &Loaded,
    interfaces: (String, String),
    ue: usize,
    options: EmulateOptions,
) -> PyResult<Emulation> {
    let (options, (wan, ran)) = (options.read()?, interfaces);
    begun(py, || ::emulate::Emulation::attach(loaded.loaded.clone(), options, [&wan, &ran], ue))
}

fn begun(
    py: Python<'_>,
    start: impl FnOnce() -> Result<::emulate::Emulation, ::emulate::Error> + Send,
) -> PyResult<Emulation> {
    let running = py.detach(|| netio::process::without_signals(start)).map_err(emulate_error)?;
    let host =
        |host: &::emulate::lab::Host| (host.name.clone(), host.netns.clone(), host.v4.to_string(), host.v6.to_string());
    Ok(Emulation {
        hosts: running.lab().iter().flat_map(|lab| lab.hosts()).map(host).collect(),
        has_router: running.lab().is_some_and(|lab| lab.router().is_some()),
        id: running.id().to_owned(),
        control: ::emulate::control::socket(running.dir()),
        running: Mutex::new(Some(running)),
    })
}

fn emulate_error(error: ::emulate::Error) -> PyErr {
    match error {
        ::emulate::Error::Wrong(what) => ScenarioError::new_err(what),
        ::emulate::Error::Sim(error) => sim_error(error),
        ::emulate::Error::Record(error) => record_error(error),
        ::emulate::Error::Missing(_) | ::emulate::Error::System { .. } => RanwayError::new_err(error.to_string()),
    }
}

/// Returns the 97.5 % quantile of Student's t distribution with so many degrees of freedom, at least one.
#[pyfunction]
fn student_t(degrees: usize) -> f64 {
    units::stats::student_t(degrees.max(1))
}

/// Returns values of a swept key, a JSON array, as numbers and the name of their unit, if they are amounts with units.
#[pyfunction]
fn amounts(values: &str) -> Option<(&'static str, Vec<Option<f64>>)> {
    let values: Vec<serde_json::Value> = serde_json::from_str(values).ok()?;
    let amounts = record::means::amounts(&values.iter().collect::<Vec<_>>())?;
    Some((amounts.suffix, amounts.numbers))
}

/// Returns the built-in scenarios: name and one-line description.
#[pyfunction]
fn builtin() -> Vec<(&'static str, &'static str)> {
    scenario::builtin::list().iter().map(|builtin| (builtin.name, builtin.about)).collect()
}

/// Returns the JSON Schema of scenario files as JSON.
#[pyfunction]
fn schema() -> String {
    json(&scenario::schema())
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("string keys and plain values")
}

#[pymodule]
fn _ranway(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", sim::VERSION)?;
    module.add("TABLES", record::Tables::NAMES)?;
    module.add_class::<Loaded>()?;
    module.add_class::<Results>()?;
    module.add_class::<Emulation>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_jobs, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_merge, module)?)?;
    module.add_function(wrap_pyfunction!(crate::emulate, module)?)?;
    module.add_function(wrap_pyfunction!(attach, module)?)?;
    module.add_function(wrap_pyfunction!(student_t, module)?)?;
    module.add_function(wrap_pyfunction!(amounts, module)?)?;
    module.add_function(wrap_pyfunction!(builtin, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)
}
