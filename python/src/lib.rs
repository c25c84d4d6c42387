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
use record::{Output, Table, report, tables};
use std::io;
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
struct Loaded(scenario::Loaded);

#[pymethods]
impl Loaded {
    /// Reads the file at `path`, or the built-in scenario of that name, and applies `overrides` (`KEY=VALUE`).
    #[staticmethod]
    fn load(path: &str, overrides: Vec<String>) -> PyResult<Loaded> {
        read(path, &overrides, &scenario::read_file)
    }

    /// Reads `text`, called `name` in errors. Its file names are relative to the working directory.
    #[staticmethod]
    fn parse(name: &str, text: &str, overrides: Vec<String>) -> PyResult<Loaded> {
        let files = |path: &str| if path == name { Ok(text.to_owned()) } else { scenario::read_file(path) };
        read(name, &overrides, &files)
    }

    /// Returns the title.
    #[getter]
    fn title(&self) -> &str {
        &self.0.points()[0].scenario.title
    }

    /// Returns the points as a JSON array of objects, each mapping swept keys to values.
    fn points(&self) -> String {
        let points: Vec<_> = self.0.points().iter().map(scenario::Point::values).collect();
        json(&points)
    }

    /// Returns the warnings, one line each.
    fn warnings(&self) -> Vec<String> {
        self.0.warnings().iter().map(line).collect()
    }
}

fn read(path: &str, overrides: &[String], files: &impl scenario::Files) -> PyResult<Loaded> {
    scenario::Scenario::load_for_emulation(path, overrides, files).map(Loaded).map_err(|error| {
        let lines: Vec<String> = error.faults().iter().map(line).collect();
        ScenarioError::new_err(lines.join("\n"))
    })
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

    /// Returns the report, one HTML page.
    fn report(&self, py: Python<'_>) -> String {
        py.detach(|| report::html(&self.0))
    }

    /// Returns a table as the bytes of a Parquet file.
    fn parquet<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Bound<'py, PyBytes>> {
        let tables = &self.0.tables;
        let bytes = py.detach(|| match table {
            tables::Flows::NAME => parquet(&tables.flows),
            tables::Samples::NAME => parquet(&tables.samples),
            tables::Rtts::NAME => parquet(&tables.rtts),
            tables::Owds::NAME => parquet(&tables.owds),
            tables::Queues::NAME => parquet(&tables.queues),
            tables::Links::NAME => parquet(&tables.links),
            tables::Events::NAME => parquet(&tables.events),
            tables::Transfers::NAME => parquet(&tables.transfers),
            tables::Ues::NAME => parquet(&tables.ues),
            tables::Radio::NAME => parquet(&tables.radio),
            tables::Mobility::NAME => parquet(&tables.mobility),
            tables::Transmissions::NAME => parquet(&tables.transmissions),
            tables::Peps::NAME => parquet(&tables.peps),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("unknown table `{table}`"))),
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

fn parquet(table: &impl Table) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    table.write_parquet(&mut bytes)?;
    Ok(bytes)
}

/// Runs every repetition of every point of `loaded` on `jobs` threads (0: one per core). Calls `progress` in the
/// calling thread with the completed share, the number of completed runs and the total number of runs. With `out`,
/// writes results and captures there, atomically.
#[pyfunction]
#[pyo3(signature = (loaded, jobs, progress=None, out=None))]
fn run(
    py: Python<'_>,
    loaded: &Loaded,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
    out: Option<PathBuf>,
) -> PyResult<Results> {
    if loaded.0.points().iter().any(|point| point.scenario.flows.is_empty()) {
        return Err(ScenarioError::new_err("flows: the scenario has no flows; add [[flows]]"));
    }
    let output = out.as_deref().map(create).transpose()?;
    let progress = progress.map(|callback| callback.clone().unbind());
    let outcome = py.detach(|| batch(&loaded.0, jobs, progress.as_ref(), output.as_ref()))?;
    if let Some(output) = output {
        py.detach(|| outcome.results.write_to(&output).and_then(|()| output.commit())).map_err(record_error)?;
    }
    Ok(Results(outcome.results))
}

fn create(dir: &Path) -> PyResult<Output> {
    Output::create(dir).map_err(record_error)
}

/// Runs in other threads and keeps this one for Python.
fn batch(
    loaded: &scenario::Loaded,
    jobs: usize,
    callback: Option<&Py<PyAny>>,
    output: Option<&Output>,
) -> PyResult<sim::Outcome> {
    let stop = AtomicBool::new(false);
    let latest = Mutex::new(None);
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        let (stop, latest) = (&stop, &latest);
        let runs = scope.spawn(move || {
            // Dropped at the end or by a panic, which wakes the waiting thread.
            let _done = done;
            let progress = |progress| *latest.lock().expect("nobody panics with it") = Some(progress);
            sim::run(loaded, &sim::Options { jobs, stop, progress: &progress, output })
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
        sim::Error::Trace { .. } | sim::Error::Channel { .. } | sim::Error::Flow { .. } => {
            ScenarioError::new_err(error.to_string())
        }
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
    running: Mutex<Option<host::Emulation>>,
    hosts: Vec<(String, String, String, String)>,
    control: PathBuf,
}

#[pymethods]
impl Emulation {
    /// Returns the hosts, the server first: name, namespace, IPv4 and IPv6 address.
    fn hosts(&self) -> Vec<(String, String, String, String)> {
        self.hosts.clone()
    }

    /// Sends a line to the control socket and returns the answer without its `ok`.
    fn control(&self, py: Python<'_>, line: &str) -> PyResult<String> {
        py.detach(|| host::control::ask(&self.control, line, CONTROL_TIMEOUT)).map_err(|error| match error {
            host::Error::Wrong(what) => RanwayError::new_err(what),
            error => host_error(error),
        })
    }

    /// Ends the emulation, writes the requested output, and returns the results, and notes on them, one line each.
    fn finish(&self, py: Python<'_>) -> PyResult<(Results, Vec<String>)> {
        let running = self.running.lock().expect("nobody panics with it").take();
        let running = running.ok_or_else(|| PyRuntimeError::new_err("the emulation has already ended"))?;
        let finished = py.detach(|| running.finish()).map_err(host_error)?;
        let notes = finished.notes();
        let host::Finished { results, output, gone, .. } = finished;
        if let Some(output) = output {
            py.detach(|| results.write_to(&output).and_then(|()| output.commit())).map_err(record_error)?;
        }
        if let Some(what) = gone {
            return Err(RanwayError::new_err(what));
        }
        Ok((Results(results), notes))
    }
}

/// The keyword arguments of `ranway.emulate`, as a dictionary.
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
}

/// Connects real hosts through the network of `loaded`. With `out`, the results are written there at the end.
#[pyfunction]
fn emulate(py: Python<'_>, loaded: &Loaded, options: EmulateOptions) -> PyResult<Emulation> {
    let EmulateOptions { kernel, mtu, max_lateness, pcap, out, nat, dns } = options;
    let bound = max_lateness.parse().map_err(|error| PyValueError::new_err(format!("max_lateness: {error}")))?;
    let output = out.as_deref().map(create).transpose()?;
    let address = |dns: &String| {
        dns.parse()
            .map_err(|_| PyValueError::new_err(format!("dns: `{dns}` is not an IPv4 address such as 192.0.2.53")))
    };
    let dns = dns.iter().map(address).collect::<PyResult<_>>()?;
    let nat = nat.then_some(host::uplink::Nat { dns });
    let options = host::Options { which: None, nat, mtu, kernel, capture: pcap, bound, output };
    let start = || host::attend::without_signals(|| host::Emulation::start(loaded.0.clone(), options));
    let running = py.detach(start).map_err(host_error)?;
    let lab = running.lab().expect("it was started with namespaces");
    let host =
        |host: &host::lab::Host| (host.name.clone(), host.netns.clone(), host.v4.to_string(), host.v6.to_string());
    Ok(Emulation {
        hosts: lab.hosts().iter().map(host).collect(),
        control: host::control::socket(lab.dir().path()),
        running: Mutex::new(Some(running)),
    })
}

fn host_error(error: host::Error) -> PyErr {
    match error {
        host::Error::Wrong(what) => ScenarioError::new_err(what),
        host::Error::Sim(error) => sim_error(error),
        host::Error::Record(error) => record_error(error),
        host::Error::Missing(_) | host::Error::System { .. } => RanwayError::new_err(error.to_string()),
    }
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
    module.add_function(wrap_pyfunction!(emulate, module)?)?;
    module.add_function(wrap_pyfunction!(builtin, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)
}
