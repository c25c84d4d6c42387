//! The course of a measurement.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use netio::sniff::interface_to;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use observe::kernel::{Flow, Remote, State, Way, is_paced, round_trip, scenario_name};
use observe::progress::Samples;
use units::{Span, Time};
use wire::tcp_info::TcpInfo;

use crate::fault::Fault;
use crate::flow::Shared;
use crate::kinds::{Latency, Probe, Requests};
use crate::line::{Clock, Line};
use crate::outcome::{Load, LoadTimes, Outcome};
use crate::plan::{Amount, Plan, Protocol};
use crate::rmbt::Rmbt;
use crate::sampler;
use crate::{mlab, modem, probes, probes::handshakes};

/// Interval between two glances.
const GLANCES: Duration = Duration::from_millis(250);

/// What a measurement looks like while it runs.
#[derive(Clone, Debug)]
pub struct Glance {
    /// Time since the beginning.
    pub at: Time,
    /// The load that runs, from 0.
    pub load: usize,
    /// The directions of its flows; none between loads.
    pub ways: Vec<Way>,
    /// Bytes delivered so far by the flows of the load.
    pub bytes: u64,
    /// The flows of the load that have begun.
    pub flows: Vec<FlowGlance>,
    /// The latest round-trip time of a probe to the server.
    pub rtt: Option<Span>,
}

/// What a flow looks like while it runs.
#[derive(Clone, Debug)]
pub struct FlowGlance {
    /// Its direction.
    pub way: Way,
    /// Its number among those of its direction, from 0.
    pub number: usize,
    /// The congestion control of its sender as scenarios call it; empty if this end does not know it.
    pub control: String,
    /// Whether its sender, if that is at this end, keeps to a pacing rate.
    pub is_paced: bool,
    /// When its transfer began.
    pub start: Time,
    /// The moment of this glance, or when the transfer ended, if it has.
    pub at: Time,
    /// Bytes since the start: that arrived, of a download; that the server's kernel has acknowledged, of an upload.
    pub bytes: u64,
    /// The smoothed round-trip time in this end's kernel.
    pub rtt: Option<Span>,
    /// The state of its sender's kernel at the start and now, if that is this end's.
    pub sender: Option<[TcpInfo; 2]>,
}

/// The latest round trip, for glances.
type Latest = Mutex<Option<Span>>;

/// What all threads of a measurement know.
struct Course<'a> {
    plan: &'a Plan,
    clock: Clock,
    /// Ends everything.
    stop: Arc<AtomicBool>,
    random: Vec<u8>,
    latest: Latest,
    measurement: String,
    /// Whether the server speaks RMBT inside HTTP, once that is known.
    inside_http: OnceLock<bool>,
}

/// A flow that is connected and admitted.
enum Ready {
    Rmbt(Box<Rmbt>),
    /// Its request starts the transfer, and has to come with the connection.
    MLab,
}

/// A flow's transfer, as its thread returns it.
type Transferred = Result<(Time, Samples), Fault>;

/// Measures as planned until `stop` is set; `glance` is called several times in a second.
///
/// # Errors
/// The server cannot be reached or refuses, or all flows of the first load fail. A failure of a single flow is in its outcome, and
/// that of a later load in [`Outcome::fault`].
pub fn measure(plan: &Plan, stop: &Arc<AtomicBool>, glance: &mut dyn FnMut(&Glance)) -> Result<Outcome, Fault> {
    let mut random = vec![0; speedtest::rmbt::chunks::RANDOM];
    let mut name = [0; 8];
    let no_random = |why| Fault::Protocol(format!("there is no random data: {why}"));
    getrandom::fill(&mut random).and_then(|()| getrandom::fill(&mut name)).map_err(no_random)?;
    let course = Course {
        plan,
        clock: Clock::start(),
        stop: Arc::clone(stop),
        random,
        latest: Mutex::default(),
        measurement: format!("{:016x}", u64::from_le_bytes(name)),
        inside_http: OnceLock::new(),
    };
    let mut outcome = Outcome { unix: course.clock.unix, ..Outcome::default() };
    let probing_ends = AtomicBool::new(false);
    // The first connection finds out whether the server can be reached, before anything else happens.
    let requests = course.probe_line()?;
    thread::scope(|scope| {
        let server = (plan.target.address, plan.target.interface.as_deref());
        let (clock, end, course) = (course.clock, &probing_ends, &course);
        let probes = scope.spawn(move || probes::run(server, (plan.probing, plan.hops), clock, end));
        // RMBT has requests of its own, and requests in TLS would need one more handshake.
        let has_http = plan.target.protocol != Protocol::Rmbt && plan.target.tls.is_none();
        let host = has_http.then_some(plan.target.name.as_str());
        let handshakes = scope.spawn(move || handshakes(server, host, clock, end));
        let through = plan.target.interface.clone().or_else(|| interface_to(plan.target.address).ok());
        let modems = scope.spawn(move || modem::follow(&plan.modem, through.as_deref(), clock, end));
        let requests = requests.map(|line| scope.spawn(move || course.request(line, end)));
        let mut result = Ok(());
        for (number, ways) in plan.loads.iter().enumerate() {
            let ended = course.load(scope, number, ways, glance).and_then(|load| {
                let ended = course.check(&load);
                outcome.loads.push(load);
                ended
            });
            match ended {
                Ok(()) => {
                    outcome.finished += 1;
                    continue;
                }
                Err(Fault::Interrupted) => outcome.interrupted = true,
                Err(fault) if outcome.finished == 0 => result = Err(fault),
                Err(fault) => {
                    outcome.missing.push(format!("the loads from {number} on: {fault}"));
                    outcome.fault = Some(fault.to_string());
                }
            }
            break;
        }
        probing_ends.store(true, Relaxed);
        let (found, missing) = join(probes);
        outcome.latencies.extend(found);
        outcome.missing.extend(missing);
        let (cells, missing) = join(modems);
        outcome.cells = cells;
        outcome.missing.extend(missing);
        outcome.latencies.extend(join(handshakes));
        if let Some((found, requests)) = requests.map(join) {
            outcome.latencies.extend(found);
            outcome.requests = requests;
        }
        outcome.latencies.sort_by_key(|latency| latency.at);
        result
    })?;
    if outcome.interrupted && outcome.loads.is_empty() {
        return Err(Fault::Interrupted);
    }
    Ok(outcome)
}

fn join<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Course<'_> {
    fn connect(&self, congestion: Option<&str>) -> Result<Line, Fault> {
        let target = &self.plan.target;
        let (server, interface) = ((target.name.as_str(), target.address), target.interface.as_deref());
        Line::connect(server, interface, congestion, target.tls.as_ref(), self.clock, &self.stop)
    }

    /// Opens the connection for requests, if the protocol has any.
    fn probe_line(&self) -> Result<Option<Rmbt>, Fault> {
        let line = self.connect(None)?;
        match self.plan.target.protocol {
            Protocol::Rmbt => Rmbt::admit(line, &self.plan.target, &self.inside_http).map(Some),
            Protocol::Throughput1 | Protocol::Ndt7 => Ok(None),
        }
    }

    /// Measures requests and answers until `end`, or until the connection breaks.
    fn request(&self, mut rmbt: Rmbt, end: &AtomicBool) -> (Vec<Latency>, Option<Requests>) {
        let (mut found, mut requests) = (Vec::new(), None);
        let interval = Duration::from_nanos(self.plan.probing.as_nanos());
        while !end.load(Relaxed) {
            let at = self.clock.now();
            let Ok((rtt, confirmed)) = rmbt.ping() else {
                if self.clock.now().saturating_since(at) >= probes::patience(Probe::Request, &found) {
                    found.push(Latency { at, probe: Probe::Request, rtt: None });
                }
                return (found, requests);
            };
            // A server that does not measure its side says 0.
            let answered = if confirmed > Span::ZERO { rtt.min(confirmed) } else { rtt };
            requests = Some(Requests::add(requests, rmbt.line().min_rtt(), answered));
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(rtt);
            found.push(Latency { at, probe: Probe::Request, rtt: Some(rtt) });
            let passed = Duration::from_nanos(self.clock.now().saturating_since(at).as_nanos());
            if rmbt.line().rest(interval.saturating_sub(passed)).is_err() {
                return (found, requests);
            }
        }
        rmbt.quit();
        (found, requests)
    }

    /// Runs one load, with the probes alone before and after it.
    fn load<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        ways: &[Way],
        glance: &mut dyn FnMut(&Glance),
    ) -> Result<Load, Fault> {
        let mut flows = self.ready(ways)?;
        let shared: Vec<Arc<Shared>> = flows.iter().map(|(shared, _)| Arc::clone(shared)).collect();
        let look = |ways: &[Way]| Glance {
            at: self.clock.now(),
            load: number,
            ways: ways.to_vec(),
            bytes: shared.iter().map(|flow| flow.delivered()).sum(),
            flows: shared.iter().filter_map(|flow| self.glance(flow)).collect(),
            rtt: *self.latest.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let before = self.clock.now();
        self.idle(&mut || glance(&look(&[])))?;
        let warming = self.clock.now();
        self.warm(&mut flows)?;
        let during = self.clock.now();
        let sampling_ends = Arc::new(AtomicBool::new(false));
        let sampler = {
            let (shared, end, interval) = (shared.clone(), Arc::clone(&sampling_ends), self.plan.interval);
            scope.spawn(move || sampler::run(&shared, interval, self.clock, &end))
        };
        let start = |(shared, ready): (Arc<Shared>, Ready)| {
            scope.spawn(move || {
                let mut remote = Remote::default();
                (self.transfer(ready, &shared, &mut remote), remote)
            })
        };
        let threads: Vec<_> = flows.into_iter().map(start).collect();
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            glance(&look(ways));
            thread::sleep(GLANCES);
        }
        let after = self.clock.now();
        sampling_ends.store(true, Relaxed);
        sampler.thread().unpark();
        let samples = join(sampler);
        let results: Vec<(Transferred, Remote)> = threads.into_iter().map(join).collect();
        let flows: Vec<Flow> = shared
            .iter()
            .zip(results.into_iter().zip(samples))
            .map(|(shared, (result, samples))| self.outcome(shared, result, samples, during))
            .collect();
        let mut load = Load { times: LoadTimes { before, warming, during, after, end: after }, flows };
        if self.check(&load).is_ok() {
            // An interruption from here on is noticed by the next load.
            let _ = self.idle(&mut || glance(&look(&[])));
        }
        load.times.end = self.clock.now();
        Ok(load)
    }

    /// Looks at a flow, if it has begun.
    fn glance(&self, shared: &Shared) -> Option<FlowGlance> {
        let (begun, ended) = (shared.begun()?, shared.ended());
        let now = || self.clock.now();
        let state = ended.map_or_else(|| shared.sample(now), |ended| ended.state.clone());
        let states = begun.state.as_ref().zip(state.as_ref()).map(|(first, last)| [first.info, last.info]);
        let sender = states.filter(|_| shared.way == Way::Up);
        let congestion = self.congestion(shared);
        Some(FlowGlance {
            way: shared.way,
            number: shared.number,
            control: scenario_name(&congestion).to_owned(),
            is_paced: sender.is_some_and(|[_, now]| is_paced(&congestion, &now)),
            start: begun.at,
            at: ended.map(|ended| ended.at).or(state.as_ref().map(|state| state.at)).unwrap_or_else(now),
            bytes: sender
                .map_or_else(|| shared.delivered(), |[first, last]| last.bytes_acked.saturating_sub(first.bytes_acked)),
            rtt: state.and_then(|state| round_trip(&state.info, shared.way == Way::Up)),
            sender,
        })
    }

    /// The congestion control of a flow's sender, as the kernel calls it: of a download, the one that was asked for. Empty if this
    /// end does not know it.
    fn congestion(&self, shared: &Shared) -> String {
        let name = |socket| getsockopt(&socket, TcpCongestion).ok();
        match shared.way {
            Way::Up => {
                let name = shared.socket().and_then(name).unwrap_or_default();
                name.to_string_lossy().trim_end_matches('\0').to_owned()
            }
            Way::Down => self.plan.congestion_of(shared.number).unwrap_or_default().to_owned(),
        }
    }

    /// Checks that a load was not cut short.
    ///
    /// # Errors
    /// It was interrupted, or all of its flows failed.
    fn check(&self, load: &Load) -> Result<(), Fault> {
        let mut failures = load.flows.iter().filter_map(|flow| flow.failure.as_deref());
        let Some(first) = failures.next() else { return Ok(()) };
        if self.stop.load(Relaxed) {
            return Err(Fault::Interrupted);
        }
        if failures.count() + 1 < load.flows.len() { Ok(()) } else { Err(Fault::Protocol(first.to_owned())) }
    }

    /// Connects a flow.
    fn connect_flow(&self, shared: &Shared) -> Result<Line, Fault> {
        let congestion = self.plan.congestion_of(shared.number).filter(|_| shared.way == Way::Up);
        let line = self.connect(congestion)?;
        shared.connected(line.handle()?);
        Ok(line)
    }

    /// Connects the flows of a load at the same time, and lets the server admit them.
    fn ready(&self, ways: &[Way]) -> Result<Vec<(Arc<Shared>, Ready)>, Fault> {
        let flows = ways.iter().flat_map(|&way| (0..self.plan.flows).map(move |number| (way, number)));
        thread::scope(|scope| {
            let prepare = |(way, number)| scope.spawn(move || self.prepare(way, number));
            let threads: Vec<_> = flows.map(prepare).collect();
            threads.into_iter().map(join).collect()
        })
    }

    fn prepare(&self, way: Way, number: usize) -> Result<(Arc<Shared>, Ready), Fault> {
        let shared = Arc::new(Shared::new(way, number));
        let ready = match self.plan.target.protocol {
            Protocol::Rmbt => {
                let rmbt = Rmbt::admit(self.connect_flow(&shared)?, &self.plan.target, &self.inside_http)?;
                Ready::Rmbt(Box::new(rmbt))
            }
            Protocol::Throughput1 | Protocol::Ndt7 => Ready::MLab,
        };
        Ok((shared, ready))
    }

    /// Warms up all flows at the same time, if the plan asks for it. Nothing may come between this and their load: Linux shrinks the
    /// congestion window of a sender that is idle for longer than its retransmission timeout.
    fn warm(&self, flows: &mut [(Arc<Shared>, Ready)]) -> Result<(), Fault> {
        if !self.plan.warm {
            return Ok(());
        }
        thread::scope(|scope| {
            let warm = |(shared, ready): &'_ mut (Arc<Shared>, Ready)| match ready {
                Ready::Rmbt(rmbt) => rmbt.warm(shared.way, &self.random),
                Ready::MLab => Ok(()),
            };
            let threads: Vec<_> = flows.iter_mut().map(|flow| scope.spawn(move || warm(flow))).collect();
            threads.into_iter().try_for_each(join)
        })
    }

    fn transfer(&self, ready: Ready, shared: &Shared, remote: &mut Remote) -> Transferred {
        let plan = self.plan;
        match ready {
            Ready::Rmbt(mut rmbt) => {
                let result = rmbt.transfer(plan.amount, shared, &self.random);
                rmbt.line().take_stamps(Some(shared));
                if result.is_ok() {
                    rmbt.quit();
                }
                result
            }
            Ready::MLab => {
                let line = self.connect_flow(shared)?;
                let Amount::Time(duration) = plan.amount else { unreachable!("a plan was checked") };
                let request = mlab::Request {
                    protocol: plan.target.protocol,
                    way: shared.way,
                    host: &plan.target.name,
                    token: &plan.target.token,
                    streams: plan.flows,
                    duration,
                    congestion: plan.congestion_of(shared.number),
                    measurement: &self.measurement,
                };
                mlab::transfer(line, &request, shared, &self.random, remote)
            }
        }
    }

    fn outcome(
        &self,
        shared: &Shared,
        (result, remote): (Transferred, Remote),
        samples: Vec<State>,
        start: Time,
    ) -> Flow {
        let is_told = shared.way == Way::Down && !remote.congestion.is_empty();
        let congestion = if is_told { remote.congestion.clone() } else { self.congestion(shared) };
        let (start, bytes, failure) = match result {
            Ok((start, bytes)) => (start, bytes, None),
            Err(why) => (shared.begun().map_or(start, |begun| begun.at), Samples::default(), Some(why.to_string())),
        };
        // The server's count of an upload that was cut short does not come; nor do some servers send one in the end.
        let is_counted = bytes.last().is_some();
        let begun = shared.begun().filter(|_| shared.way == Way::Up);
        let bytes = if is_counted { bytes } else { sampler::counted(shared, &samples) };
        Flow {
            way: shared.way,
            number: shared.number,
            congestion,
            start,
            acknowledged: shared.way == Way::Up && !is_counted && bytes.last().is_some(),
            bytes,
            ended: shared.ended().map(|ended| ended.at),
            before: begun.and_then(|begun| begun.state.as_ref()).map(|state| state.info),
            samples,
            remote,
            passages: shared.stamps().finish(),
            failure,
        }
    }

    /// Lets the probes alone.
    fn idle(&self, glance: &mut dyn FnMut()) -> Result<(), Fault> {
        let start = self.clock.now();
        while self.clock.now().saturating_since(start) < self.plan.idle {
            if self.stop.load(Relaxed) {
                return Err(Fault::Interrupted);
            }
            glance();
            let left = self.plan.idle.saturating_sub(self.clock.now().saturating_since(start));
            thread::sleep(Duration::from_nanos(left.as_nanos()).min(GLANCES));
        }
        Ok(())
    }
}
