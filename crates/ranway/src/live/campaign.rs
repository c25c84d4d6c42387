//! `ranway campaign`.

mod failed;
mod program;
mod simulation;

use crate::failure::Failure;
use crate::live::status_line::StatusLine;
use crate::out::{counted, stem};
use crate::terminal::message;
use crate::{interrupt, terminal};
use ::campaign::{Entry, File, Host, Outcome, Plan, Scrub, State, Store, Summary, Test, WhereKind};
use ::campaign::{export_publication, flush_metrics, values, write_report};
use clap::Args as ClapArgs;
use failed::{Failed, TICK, one_line};
use record::Results;
use serde_json::Value;
use simulation::Network;
use std::io::Write as _;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// `ranway campaign`.
#[derive(ClapArgs)]
#[command(
    after_help = "The tests are the product of congestion controls, numbers of flows and directions, in randomised blocks: each \
block has every combination once, in an order drawn from the seed. After Ctrl-C, a crash or a power failure, the same command \
resumes: finished tests are skipped. A test that fails is recorded with its reason and tried once more at the end.

Examples:
  ranway campaign campaign.toml --dry-run      print the tests in their order
  ranway campaign campaign.toml                run or resume it
  ranway campaign campaign.toml --publish      also write a folder for publication, without identities

Exit codes: 0 all tests have finished; 1 some tests failed twice, or a failure of the environment; 2 invalid input, or a campaign \
file that has changed; 130 interrupted."
)]
pub(crate) struct CampaignArgs {
    /// The campaign file
    #[arg(value_name = "FILE")]
    file: String,
    /// Output directory; a campaign there is resumed [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the tests in their order and run none
    #[arg(long)]
    dry_run: bool,
    /// Write the folder `publish` too: tables, schema with units, checksums, README and licence, without identities
    #[arg(long)]
    publish: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// A campaign that was read and checked.
struct Campaign {
    file: File,
    plan: Plan,
    /// The network of simulations and emulations.
    network: Option<Network>,
    /// The server and its address, of real networks.
    server: Option<IpAddr>,
}

pub(crate) fn run(args: &CampaignArgs) -> Result<(), Failure> {
    let campaign = load(&args.file)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("ranway-out").join(stem(&args.file)));
    let check_interfaces = || program::check_interfaces(&args.file, &campaign.file.place);
    if args.dry_run || !out.exists() {
        check_interfaces()?;
    }
    if args.dry_run {
        let mut out = terminal::stdout();
        write!(out, "{}: {}\n{}", campaign.file.title, campaign.size(), campaign.plan.text())?;
        return Ok(());
    }
    campaign.check_environment()?;
    let mut store = Store::open(&out, campaign.state()?, &mut |what| message!("warning: {what}"))?;
    // A campaign that has finished is summarised and published anywhere.
    for test in &campaign.plan.tests {
        if !store.has_finished(test)? {
            check_interfaces()?;
            break;
        }
    }
    let interrupted = campaign.run(&mut store, args.quiet || args.json)?;
    let summary = Summary::of(&campaign.file, &campaign.plan, &store, campaign.file.is_complete())?;
    store.write("summary.json", &summary)?;
    write_report(&campaign.file, &campaign.plan, &store, &summary)?;
    let mut exports = Vec::new();
    if args.publish && !interrupted {
        let scrub = Scrub::of_this_machine(campaign.identities()).with_labels(campaign.interfaces());
        exports.push(export_publication(&campaign.file, &campaign.plan, &store, &summary, &scrub)?);
    }
    if args.json {
        let answer = serde_json::json!({ "out": out, "exports": exports, "summary": summary });
        writeln!(terminal::stdout(), "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.quiet {
        write!(terminal::stdout(), "{}", summary.text())?;
        for path in exports.iter().chain([&out.join("summary.json")]) {
            writeln!(terminal::stdout(), "written: {}", path.display())?;
        }
        writeln!(terminal::stdout(), "report: {}", out.join("report.html").display())?;
    }
    if interrupted {
        message!(
            "interrupted: {} of {} tests have finished; the same command resumes",
            summary.finished,
            summary.planned
        );
        return Err(Failure::Interrupted);
    }
    if summary.failed.is_empty() {
        return Ok(());
    }
    let first = &summary.failed[0];
    let count = counted(summary.failed.len() as u64, "test");
    Err(Failure::Failed(anyhow::anyhow!("{count} failed; {}: {}", first.test, first.reason)))
}

/// Reads a campaign file and what it names.
fn load(path: &str) -> Result<Campaign, Failure> {
    let text = scenario::read_file(path).map_err(|why| Failure::Invalid(format!("{path}: {why}")))?;
    let mut file = File::parse(path, &text)?;
    for name in [&mut file.place.key, &mut file.place.ca].into_iter().flatten() {
        *name = beside(path, name)?;
    }
    let plan = Plan::of(&file);
    let network = match file.kind() {
        WhereKind::Simulation(name) => Some(Network::load(path, name, &file.place.set)?),
        WhereKind::Emulation(name) => Some(Network::load(path, name, &file.place.set)?),
        WhereKind::Server(_) => None,
    };
    let campaign = Campaign { file, plan, network, server: None };
    campaign.check_tests()?;
    program::check_access(&campaign.file.place)?;
    program::check_congestion(path, &campaign.file)?;
    Ok(Campaign { server: campaign.resolve()?, ..campaign })
}

/// The absolute path of a file that the campaign file `campaign` names.
fn beside(campaign: &str, name: &Path) -> Result<PathBuf, Failure> {
    let path = Path::new(campaign).parent().unwrap_or(Path::new("")).join(name);
    std::path::absolute(&path).map_err(|why| Failure::Invalid(format!("{}: {why}", path.display())))
}

/// Whether the name of an interface has its hardware address, as systemd's `wwx0a1b2c3d4e5f`.
fn has_hardware_address(name: &str) -> bool {
    name.get(3..).is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Seconds since the Unix epoch.
fn unix_time() -> f64 {
    services::unix_now().as_secs_f64()
}

impl Campaign {
    /// Checks every combination before any is run.
    fn check_tests(&self) -> Result<(), Failure> {
        match (self.file.kind(), &self.network) {
            (WhereKind::Simulation(_), Some(network)) => {
                for test in &self.plan.tests[..self.plan.combinations.len()] {
                    sim::check(&network.test(&self.file, &self.plan, test)?)
                        .map_err(|why| Failure::Invalid(why.to_string()))?;
                }
                Ok(())
            }
            _ => self.plan.combinations.iter().try_for_each(|combination| program::check(&self.file, combination)),
        }
    }

    /// Returns an address of the server.
    fn resolve(&self) -> Result<Option<IpAddr>, Failure> {
        let WhereKind::Server(server) = self.file.kind() else { return Ok(None) };
        let bare = server.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Ok(Some(address));
        }
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let found = (host, 0).to_socket_addrs();
        let mut found = found.map_err(|why| Failure::Invalid(format!("where.server: {host}: {why}")))?;
        Ok(found.next().map(|address| address.ip()))
    }

    /// Checks that this machine can run the tests.
    fn check_environment(&self) -> Result<(), Failure> {
        match (self.file.kind(), &self.network) {
            (WhereKind::Emulation(_), Some(network)) => {
                network.check_hosts()?;
                Ok(emulate::lab::check()?)
            }
            _ => Ok(()),
        }
    }

    fn state(&self) -> Result<State, Failure> {
        let host = Host::read(self.server);
        let scenario = self.network.as_ref().map_or(Value::Null, Network::describe);
        let campaign = serde_json::to_value(&self.file)?;
        Ok(State::new(env!("CARGO_PKG_VERSION"), unix_time() as u64, campaign, scenario, host))
    }

    fn size(&self) -> String {
        format!(
            "{} in {} of {}",
            counted(self.plan.tests.len() as u64, "test"),
            counted(self.file.repetitions.into(), "block"),
            counted(self.plan.combinations.len() as u64, "combination"),
        )
    }

    /// The interfaces whose names identify a machine, with what they are called where they are published.
    fn interfaces(&self) -> Vec<(String, String)> {
        let numbered = self.file.place.interfaces.iter().zip(1..);
        let telling = numbered.filter(|(name, _)| has_hardware_address(name));
        telling.map(|(name, number)| (name.clone(), format!("interface-{number}"))).collect()
    }

    /// Words that identify people and machines, beside those of this machine.
    fn identities(&self) -> Vec<String> {
        let mut words = self.file.publish.remove.clone();
        words.extend(self.file.place.token.clone());
        let server = match self.file.kind() {
            WhereKind::Server(server) => Some(server),
            _ => None,
        };
        let control = self.file.place.control.as_deref().and_then(|url| url.split_once("://")?.1.split('/').next());
        for name in server.into_iter().chain(control) {
            words.push(name.to_owned());
            words.extend(name.rsplit_once(':').map(|(host, _)| host.to_owned()));
        }
        words
    }

    /// Runs the tests that have not finished. Returns whether it was interrupted.
    fn run(&self, store: &mut Store, quiet: bool) -> Result<bool, Failure> {
        let stop = interrupt::flag();
        let mut line = (!quiet).then(|| StatusLine::new(false)).flatten();
        let mut pace = Pace::default();
        let mut is_first = true;
        while let Some(test) = store.next(&self.plan)? {
            if !is_first && self.rest(&mut line) || stop.load(Relaxed) || terminal::is_closed() {
                return Ok(true);
            }
            is_first = false;
            let left = self.left(store)?;
            let name = test.name();
            if let Some(line) = &mut line {
                line.show(&format!(
                    "{name}: {left} of {} tests left{}",
                    self.plan.tests.len(),
                    pace.text(left, self.file.pause)
                ));
            }
            let tcp_metrics = match self.file.kind() {
                WhereKind::Simulation(_) => "not needed: the test is simulated".to_owned(),
                WhereKind::Emulation(_) => "not needed: each emulation has namespaces of its own".to_owned(),
                WhereKind::Server(_) => flush_metrics(),
            };
            let (started_unix_s, start) = (unix_time(), Instant::now());
            let result = self.attempt(store, test);
            let wall_s = start.elapsed().as_secs_f64();
            let outcome = match result {
                Ok(()) => Outcome::Finished,
                Err(Failed::Interrupted) => return Ok(true),
                Err(Failed::Campaign(failure)) => return Err(failure),
                Err(Failed::Test(why)) => Outcome::Failed(one_line(&why)),
            };
            pace.add(wall_s);
            if !quiet {
                drop(line.take());
                match &outcome {
                    Outcome::Finished => message!("{name}: finished in {wall_s:.1} s"),
                    Outcome::Failed(why) => message!("{name}: failed: {why}"),
                }
                line = StatusLine::new(false);
            }
            store.note(Entry { test: test.number, started_unix_s, wall_s, outcome, tcp_metrics })?;
        }
        Ok(false)
    }

    /// Number of tests that have neither finished nor failed for good.
    fn left(&self, store: &Store) -> Result<usize, Failure> {
        let mut left = 0;
        for test in &self.plan.tests {
            left += usize::from(store.failures(test) < 2 && !store.has_finished(test)?);
        }
        Ok(left)
    }

    /// Waits between two tests. Returns whether it was interrupted.
    fn rest(&self, line: &mut Option<StatusLine>) -> bool {
        let (start, pause) = (Instant::now(), Duration::from_nanos(self.file.pause.as_nanos()));
        while start.elapsed() < pause {
            if interrupt::flag().load(Relaxed) || terminal::is_closed() {
                return true;
            }
            if let Some(line) = line {
                line.show(&format!("pause: {:.0} s left", (pause - start.elapsed().min(pause)).as_secs_f64()));
            }
            thread::sleep(TICK.min(pause.saturating_sub(start.elapsed())));
        }
        false
    }

    fn attempt(&self, store: &Store, test: &Test) -> Result<(), Failed> {
        match (self.file.kind(), &self.network) {
            (WhereKind::Simulation(_), Some(network)) => {
                let loaded = network.test(&self.file, &self.plan, test).map_err(Failed::Campaign)?;
                simulation::run(&loaded, &store.work(test), self.file.timeout)?;
            }
            (_, network) => program::run(&self.file, network.as_ref(), store, test)?,
        }
        let read = Results::read(&store.work(test)).map_err(|why| Failed::Test(why.to_string()))?;
        values(&read, &test.combination, self.file.is_complete()).map_err(Failed::Test)?;
        store.accept(test).map_err(|error| Failed::Campaign(error.into()))
    }
}

/// How long tests take.
#[derive(Default)]
struct Pace {
    tests: u32,
    wall_s: f64,
}

impl Pace {
    fn add(&mut self, wall_s: f64) {
        self.tests += 1;
        self.wall_s += wall_s;
    }

    /// The estimate for the tests that are left.
    fn text(&self, left: usize, pause: Span) -> String {
        if self.tests == 0 {
            return String::new();
        }
        let seconds = left as f64 * (self.wall_s / f64::from(self.tests) + pause.as_secs_f64());
        match seconds {
            seconds if seconds < 90.0 => format!(", about {seconds:.0} s to go"),
            seconds if seconds < 5400.0 => format!(", about {:.0} min to go", seconds / 60.0),
            seconds => format!(", about {:.1} h to go", seconds / 3600.0),
        }
    }
}
