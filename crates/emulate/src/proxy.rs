//! The scenario's proxy: `ranway proxy`, running in a router between the server and the UEs.
//!
//! The router forwards packets like any other; the proxy in it splits TCP connections. Its arguments follow the scenario's
//! table `proxy`, and the cells' reports come to it through a socket in the emulation's directory, which only root can
//! enter. The process is in a session of its own, so that Ctrl-C ends the emulation first; it ends with the namespace.

use crate::Error;
use crate::kernel;
use crate::lab::{Lab, SIDES};
use netio::sys;
use scenario::{ProxyPolicy, Scenario};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::{Bytes, Span};

/// The longest time until it splits connections.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks that it runs.
const TURN: Duration = Duration::from_millis(50);
/// The beginning of the line that it prints when it is ready.
const READY: &str = "splitting ";
/// The beginning of its error.
const ERROR: &str = "error: ";
/// The shortest interval between two updates of its windows.
const SHORTEST_TICK: Span = Span::from_micros(500);
/// What it holds of a connection between its sockets: the least possible, since the simulated one holds nothing there.
const PIPE: Bytes = Bytes::new(32 << 10);
/// The socket for reports, in the emulation's directory.
const REPORTS: &str = "reports";

/// A running proxy. Dropping it ends the process, which resets its connections.
pub(crate) struct Proxy {
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    watcher: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts the proxy of `program` in the lab's router and waits until it splits connections. If it ends by itself later,
    /// `ended` becomes true.
    ///
    /// # Errors
    /// [`Error::Wrong`] with its message if it does not start.
    pub(crate) fn start(
        lab: &Lab,
        program: &Path,
        arguments: &[String],
        ended: Arc<AtomicBool>,
    ) -> Result<Proxy, Error> {
        let router = lab.router().expect("a lab with a proxy has a router");
        let [wan, ran] = SIDES;
        let mut command = lab.command(router, program.as_os_str());
        // The simulated one has no limits, and splits what servers open, too.
        command.args(["proxy", "--wan", wan, "--ran", ran, "--from-servers", "--max-per-ue", "20000"]);
        command.args(["--max-half-open-per-ue", "2000", "--max-half-open-per-server", "2000"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let failed = || Error::system("start the proxy");
        let mut child = sys::in_own_session(&mut command).spawn().map_err(failed())?;
        let stderr = child.stderr.take().expect("it is piped");
        let (say, said) = mpsc::channel();
        let read = move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // It never waits for a full pipe, whether or not anybody reads what it says.
                let _ = say.send(line);
            }
        };
        std::thread::Builder::new().name("proxy-says".into()).spawn(read).map_err(failed())?;
        if let Err(why) = wait_until_ready(&said) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Wrong(format!("the proxy did not start: {why}")));
        }
        let (stop, failure) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (stop2, failure2) = (Arc::clone(&stop), Arc::clone(&failure));
        let watch = move || {
            if let Some(why) = watch(child, &said, &stop2) {
                if let Ok(mut failure) = failure2.lock() {
                    *failure = Some(why);
                }
                ended.store(true, Ordering::Relaxed);
            }
        };
        let watcher = std::thread::Builder::new().name("proxy-watch".into()).spawn(watch).map_err(failed())?;
        Ok(Proxy { stop, failure, watcher: Some(watcher) })
    }

    /// Returns why it ended by itself, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().ok()?.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

/// Waits until the proxy says that it is ready. Returns the error that it prints instead, if it does.
fn wait_until_ready(said: &Receiver<String>) -> Result<(), String> {
    let start = Instant::now();
    while start.elapsed() < START_TIMEOUT {
        match said.recv_timeout(START_TIMEOUT) {
            Ok(line) if line.starts_with(READY) => return Ok(()),
            Ok(line) => match line.strip_prefix(ERROR) {
                Some(why) => return Err(why.to_owned()),
                None => continue,
            },
            Err(_) => break,
        }
    }
    Err("it is not ready in time".to_owned())
}

/// Waits for its end or for `stop`, and returns why it ended by itself.
fn watch(mut child: Child, said: &Receiver<String>, stop: &AtomicBool) -> Option<String> {
    let mut why = None;
    let error = |line: String| line.strip_prefix(ERROR).map(str::to_owned);
    loop {
        let ended = child.try_wait();
        why = said.try_iter().find_map(error).or(why);
        if let Ok(Some(status)) = ended {
            // What it said last may still be on its way.
            while why.is_none()
                && let Ok(line) = said.recv_timeout(TURN * 4)
            {
                why = error(line);
            }
            return Some(format!("the proxy ended: {}", why.unwrap_or_else(|| status.to_string())));
        }
        if stop.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(TURN);
    }
}

/// The arguments of the proxy of a scenario, after its interfaces, and the socket that it makes for reports, if it uses them.
/// `bypassed` has the ports of connections that it does not split.
///
/// # Errors
/// [`Error::Wrong`] for a setting that the deployable proxy lacks.
pub(crate) fn arguments(
    proxy: &scenario::Proxy,
    directory: &Path,
    bypassed: &[u16],
) -> Result<(Vec<String>, Option<PathBuf>), Error> {
    let cc = kernel::congestion_control(&proxy.cc).map_err(|why| Error::Wrong(format!("proxy.cc: {why}")))?;
    let bytes = |bytes: Bytes| format!("{} B", bytes.get());
    let buffer = proxy.buffer;
    let mut all = vec!["--threads".to_owned(), "1".to_owned(), "--cc".to_owned(), cc.to_owned()];
    let mut add = |name: &str, value: String| all.extend([name.to_owned(), value]);
    add("--receive-buffer", bytes(buffer));
    add("--unsent", bytes(buffer));
    add("--buffer", bytes(PIPE));
    if !bypassed.is_empty() {
        add("--ports", all_ports_but(bypassed));
    }
    if matches!(proxy.policy, ProxyPolicy::None | ProxyPolicy::Split) {
        return Ok((all, None));
    }
    let socket = directory.join(REPORTS);
    add("--reports", format!("recording:unix:{}", socket.display()));
    add("--policy", scenario::policy_text(&proxy.policy));
    add("--tick", proxy.tick.max(SHORTEST_TICK).to_string());
    Ok((all, Some(socket)))
}

/// The ports of the kernel's flows that stand for protocols which a proxy cannot split.
pub(crate) fn bypassed(scenario: &Scenario, flows: &[kernel::Flow]) -> Vec<u16> {
    let is_proxied = |name: &str| scenario.flows.iter().any(|flow| flow.name == name && flow.proxied);
    let ports = flows.iter().zip(kernel::receivers_ports());
    ports.filter(|(flow, _)| !is_proxied(&flow.name)).map(|(_, port)| port).collect()
}

/// All ports but some, which are in order, as ranges.
fn all_ports_but(ports: &[u16]) -> String {
    let mut ranges = Vec::new();
    let mut first = 1;
    for &port in ports {
        if first < port {
            ranges.push(format!("{first}-{}", port - 1));
        }
        first = port + 1;
    }
    ranges.push(format!("{first}-{}", u16::MAX));
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{BlockTable, Code};

    fn said(policy: ProxyPolicy) -> String {
        let proxy = scenario::Proxy { policy, ..scenario::Proxy::default() };
        arguments(&proxy, Path::new("/run/x"), &[]).expect("the proxy has all of it").0.join(" ")
    }

    #[test]
    fn the_policy_selects_the_arguments() {
        if testkit::root::granted(netio::socket::check_congestion("cubic")).is_none() {
            return;
        }
        let split = said(ProxyPolicy::Split);
        assert_eq!(split, "--threads 1 --cc cubic --receive-buffer 16000000 B --unsent 16000000 B --buffer 32768 B");
        let reports = format!("{split} --reports recording:unix:/run/x/reports");
        assert_eq!(
            said(ProxyPolicy::default()),
            format!("{reports} --policy best:proxy_target=2 ms,radio_target=5 ms --tick 1 ms")
        );
        let published = ProxyPolicy::Published {
            slow_threshold: 0.8,
            alpha: 0.125,
            blocks: Some(BlockTable::Nr64qam),
            elements: Some(144),
        };
        assert_eq!(
            said(published),
            format!(
                "{reports} --policy published:alpha=0.125,blocks=nr-64qam,elements=144,slow_threshold=0.8 --tick 1 ms"
            )
        );
        assert_eq!(
            said(ProxyPolicy::Artefact { code: Code::KernelModule }),
            format!("{reports} --policy artefact:code=kernel-module --tick 1 ms")
        );
    }

    #[test]
    fn ports_that_bypass_the_proxy_are_left_out() {
        assert_eq!(all_ports_but(&[5000]), "1-4999,5001-65535");
        assert_eq!(all_ports_but(&[5001, 5002, 5004]), "1-5000,5003-5003,5005-65535");
    }
}
