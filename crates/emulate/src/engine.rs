//! The real-time loop: takes the hosts' packets into the network, and delivers them to the hosts on time.
//!
//! One thread does all of it. Each pass reads what the hosts have sent, advances the network to the present, delivers what
//! has arrived, and sleeps until something is due or a host sends. The network does everything at its due time, however
//! late the pass; only deliveries are late, and their lateness is recorded. A packet enters the network when it is read.
//!
//! A host is what is behind a port: a namespace, or everything at an existing interface. Hosts may send anything, and may
//! remove their interfaces at any time. The former does no harm; the latter ends the run, with the results until then.

use crate::border::OnTheWay;
use crate::capture::{Direction, RawCapture};
use crate::control::{Command, Control};
use crate::forward::{Forward, visitor};
use crate::held::Store;
use crate::lateness::Lates;
use crate::passage::Passage;
use crate::port::{LONGEST, Port};
use crate::reports::Readers;
use netio::frames;
use netio::realtime::Clock;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeVal};
use observe::Observer;
use record::Tables;
use scenario::Scenario;
use sim::{Live, Seen, Status, UePlace};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Rate, Span, Time};
use wire::Headers;
use wire::ip::mark_ce;

/// Packets read from a host in a row before the network has its turn.
const BATCH: usize = 32;
/// Interval between updates of the [`Glance`].
const GLANCE: Span = Span::from_millis(1000);
/// Interval between looks at whether the watch wants news, and the most connections in one of them: packets wait meanwhile.
const LOOK: Span = Span::from_millis(100);
const FEW: usize = 32;
/// Most answers to packets that are too long in that interval (RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f)).
const MOST_ANSWERS: u32 = 100;
/// The shortest time between two wake-ups by the clock: packets due in between are delivered together. A sleep and a
/// wake-up cost as much as ten packets, and more on a virtual machine.
const STEP: Span = Span::from_micros(100);
/// A real-time thread that has not slept for this long sleeps for `REST`: other threads get at least 5 % of its processor.
const SLICE: Span = Span::from_micros(1_900);
const REST: Span = Span::from_micros(100);
/// The longest sleep, so that it notices when it is to stop.
const LONGEST_SLEEP: Span = Span::from_millis(50);

/// The state of a running emulation, as seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The time of the snapshot.
    pub at: Span,
    /// The state of the network.
    pub status: Status,
    /// IP bytes delivered to each host in the last second.
    pub received: Vec<u64>,
    /// Mean one-way delay of these packets, by host.
    pub delay: Vec<Option<Span>>,
    /// A failure that does not end the run: that of the capture, or that of a reader of reports.
    pub trouble: Option<String>,
}

/// What is new since the last time.
#[derive(Debug)]
pub struct News {
    /// The time.
    pub at: Span,
    /// The network's rows: new ones of samples, queues, radio and mobility, those so far of flows, links and UEs.
    pub rows: Tables,
    /// The flows of some of the real connections, so far, with new samples.
    pub flows: Vec<observe::Flow>,
    /// Where the UEs are.
    pub places: Vec<UePlace>,
}

/// Follows an emulation. The thread that moves packets calls it, so that it must return at once.
pub trait Watch: Send {
    /// Whether it wants news.
    fn is_due(&self) -> bool;
    /// Takes news.
    fn take(&mut self, news: News);
}

/// The outcome of the loop, beside the network's own results.
pub(crate) struct Ended {
    pub(crate) end: Time,
    pub(crate) lates: Lates,
    /// Packets for an unknown destination.
    pub(crate) stray: u64,
    /// Packets refused because too many were in the network.
    pub(crate) refused: u64,
    /// Packets that the receiving interface did not take.
    pub(crate) untaken: u64,
    /// Frames lost at existing interfaces because they were not read in time, and packets for which a host had no room in time.
    pub(crate) missed: u64,
    /// The host whose interface was removed, which ended the run.
    pub(crate) gone: Option<usize>,
    /// The thread's processor time as a share of the elapsed time.
    pub(crate) cpu_share: f64,
}

/// What was delivered to a host since the last glance.
#[derive(Clone, Copy, Default)]
struct Received {
    bytes: u64,
    packets: u64,
    delays: Span,
}

/// The loop's inputs and parts.
pub(crate) struct Engine<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) live: Live<'a>,
    pub(crate) clock: Clock,
    /// By host.
    pub(crate) ports: Vec<Port>,
    /// By sending host and receiving host.
    pub(crate) routes: Vec<Vec<Option<u32>>>,
    pub(crate) forward: Forward,
    pub(crate) observer: Observer,
    pub(crate) capture: Option<RawCapture>,
    /// The delays of data through a proxy, if there is one.
    pub(crate) passage: Option<Passage>,
    pub(crate) readers: Readers,
    pub(crate) control: Control,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) glance: Arc<Mutex<Glance>>,
    pub(crate) watch: Option<Box<dyn Watch>>,
    /// Whether the thread has a real-time priority.
    pub(crate) realtime: bool,
    pub(crate) state: State,
}

/// The loop's state.
pub(crate) struct State {
    store: Store,
    received: Vec<Received>,
    /// When it was last woken by the clock.
    woken: Time,
    /// Since when it has been busy.
    busy: Time,
    /// When it last slept.
    rested: Time,
    lates: Lates,
    stray: u64,
    refused: u64,
    untaken: Untaken,
    /// Answers to packets that were too long, since the last glance.
    answers: u32,
    gone: Option<usize>,
    /// What the watch has seen.
    seen: Seen,
}

impl State {
    /// The initial state; at most 1 % of the packets of a valid run are later than `bound`.
    pub(crate) fn new(bound: Span) -> State {
        State {
            store: Store::default(),
            received: Vec::new(),
            woken: Time::ZERO,
            busy: Time::ZERO,
            rested: Time::ZERO,
            lates: Lates::within(bound),
            stray: 0,
            refused: 0,
            untaken: Untaken::default(),
            answers: 0,
            gone: None,
            seen: Seen::default(),
        }
    }
}

/// The reasons for a wake-up.
struct Ready {
    hosts: Vec<bool>,
    control: bool,
}

impl Engine<'_> {
    /// Runs until it is told to stop.
    pub(crate) fn run(&mut self) -> Ended {
        let cpu_before = processor_time();
        let mut buffer = vec![0; LONGEST];
        self.state.received = vec![Received::default(); self.ports.len()];
        let mut interval = self.scenario.record.samples.interval();
        let mut sample = interval.map_or(Time::MAX, |interval| Time::ZERO + interval);
        let mut warmup = Time::ZERO + self.scenario.warmup;
        let mut glance = Time::ZERO + GLANCE;
        let mut look = if self.watch.is_some() { Time::ZERO + LOOK } else { Time::MAX };
        while !self.stop.load(Ordering::Relaxed) {
            let ready = self.sleep(sample.min(glance).min(warmup).min(look));
            self.read(&ready, &mut buffer);
            let now = self.advance();
            if let Some(since) = interval.filter(|_| now >= sample) {
                let until = self.observer.sample(sample, since);
                interval = Some(until);
                sample += until;
            }
            if now >= warmup {
                self.observer.warmed_up(warmup);
                warmup = Time::MAX;
            }
            if now >= look {
                self.publish(now);
                look = now + LOOK;
            }
            if now >= glance {
                self.show(now);
                self.state.answers = 0;
                if let Some(host) = self.ports.iter().position(Port::is_gone) {
                    self.end_without(host);
                }
                glance = now + GLANCE;
            }
            if ready.control {
                self.obey(now);
            }
        }
        let end = self.advance();
        let missed: u64 = self.ports.iter().map(Port::missed).sum();
        let state = std::mem::replace(&mut self.state, State::new(Span::ZERO));
        let State { lates, stray, refused, untaken, gone, .. } = state;
        let cpu_share = (processor_time() - cpu_before) / (end - Time::ZERO).as_secs_f64();
        let (untaken, missed) = (untaken.rejected, missed + untaken.without_room);
        Ended { end, lates, stray, refused, untaken, missed, gone, cpu_share }
    }

    /// Ends the run because the interface of a host is gone.
    #[cold]
    fn end_without(&mut self, host: usize) {
        self.state.gone = Some(host);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sleeps until a host sends, a command comes, the network is due, or `until`.
    fn sleep(&mut self, until: Time) -> Ready {
        self.state.lates.pass(self.state.busy, self.clock.now());
        self.rest();
        let step = self.state.woken + STEP;
        let due = self.live.poll_timeout().map_or(until, |due| due.max(step).min(until));
        let asleep = self.clock.now();
        let span = due.saturating_since(asleep).min(LONGEST_SLEEP);
        let fds = self.ports.iter().map(AsFd::as_fd).chain([self.control.as_fd()]);
        let mut fds: Vec<PollFd> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let pause = TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()));
        // Interrupted is as good as woken by somebody.
        let by_clock = ppoll(&mut fds, Some(pause), None) == Ok(0);
        let now = self.clock.now();
        if by_clock {
            self.state.woken = now;
        }
        if now.saturating_since(asleep) >= REST {
            self.state.rested = now;
        }
        // Later than that it had something to do and did not get the processor.
        self.state.busy = now.min(asleep + span);
        let is_ready = |fd: &PollFd| fd.any() == Some(true);
        let control = fds.pop().is_some_and(|fd| is_ready(&fd));
        Ready { hosts: fds.iter().map(is_ready).collect(), control }
    }

    /// Sleeps for a moment if it has not slept for long: under a flood there is always something to do, and other threads
    /// would get only what the kernel takes away from real-time threads, 50 ms at a time.
    fn rest(&mut self) {
        if self.realtime && self.clock.now().saturating_since(self.state.rested) >= SLICE {
            std::thread::sleep(Duration::from_nanos(REST.as_nanos()));
            self.state.rested = self.clock.now();
        }
    }

    /// Takes what the hosts have sent into the network.
    fn read(&mut self, ready: &Ready, buffer: &mut [u8]) {
        for host in (0..self.ports.len()).filter(|&host| ready.hosts[host]) {
            self.rest();
            // The network is at the present when a packet enters it.
            let now = self.advance();
            let mut count = 0;
            while count < BATCH {
                let frame = match self.ports[host].read(buffer) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(_) => return self.end_without(host),
                };
                match frame.segment.and_then(|size| frames::cut(frame.bytes, size)) {
                    None => {
                        self.take(host, frame.bytes, frame.ip, now);
                        count += 1;
                    }
                    Some(pieces) => {
                        for piece in pieces {
                            self.take(host, &piece, frames::packet(&piece), now);
                            count += 1;
                        }
                    }
                }
            }
        }
    }

    /// Takes a frame, which holds a packet for the network or goes to the other side unchanged.
    fn take(&mut self, from: usize, frame: &[u8], ip: Option<Range<usize>>, now: Time) {
        match ip {
            Some(ip) => self.enter(from, frame, ip, now),
            None => give(&self.ports[1 - from], frame, &mut self.state.untaken),
        }
    }

    fn enter(&mut self, from: usize, frame: &[u8], ip: Range<usize>, now: Time) {
        let packet = &frame[ip.clone()];
        if let Some(capture) = &mut self.capture {
            capture.packet(from as u32, Direction::Outbound, now, packet);
        }
        if let Forward::Across { mtu } = self.forward
            && packet.len() > usize::from(mtu)
            && self.is_answered(from, frame, mtu)
        {
            return;
        }
        let routed = Headers::parse(packet).ok().and_then(|header| {
            let to = self.forward.to(&header, from)?;
            Some((header, to, self.routes[from][to]?))
        });
        let Some((header, to, route)) = routed else {
            self.state.stray += 1;
            return;
        };
        if !self.state.store.has_room(frame.len()) {
            self.state.refused += 1;
            return;
        }
        let flow = self.observer.entered(from, to, &header, now);
        if let Some(passage) = self.passage.as_mut().filter(|_| !self.forward.is_router(from)) {
            passage.entered(&header, now);
        }
        let len = packet.len() as u32;
        let tag = self.state.store.keep(frame, ip, Some(flow), to);
        self.live.send(route, visitor(tag, len, &header));
    }

    /// Answers the sender of a packet that is too long as a router does, up to [`MOST_ANSWERS`]. Returns whether it is too
    /// long.
    fn is_answered(&mut self, from: usize, frame: &[u8], mtu: u16) -> bool {
        let answer = frames::too_big(frame, mtu);
        if let Some(answer) = &answer
            && self.state.answers < MOST_ANSWERS
        {
            self.state.answers += 1;
            give(&self.ports[from], answer, &mut self.state.untaken);
        }
        answer.is_some()
    }

    /// Advances the network to the present, and delivers to the hosts what has arrived.
    fn advance(&mut self) -> Time {
        let now = self.clock.now();
        self.live.advance(now, &mut OnTheWay { store: &mut self.state.store, forward: &self.forward });
        let State { store, received, lates, untaken, .. } = &mut self.state;
        while let Some(tag) = self.live.poll_lost() {
            if let Some(flow) = store.get(tag).flow {
                self.observer.lost(flow, now);
            }
            store.free(tag);
        }
        while let Some(arrival) = self.live.poll_arrival() {
            let held = store.get_mut(arrival.tag);
            let (to, flow) = (held.to, held.flow);
            if arrival.ce {
                mark_ce(held.packet());
            }
            give(&self.ports[to], &held.frame, untaken);
            lates.note(arrival.at, self.clock.now());
            let packet = held.packet();
            if let Some(capture) = &mut self.capture {
                capture.packet(to as u32, Direction::Inbound, arrival.at, packet);
            }
            if let Some((header, flow)) = Headers::parse(packet).ok().zip(flow) {
                let passage = self.passage.as_mut().filter(|_| !self.forward.is_router(to));
                let delay = passage.and_then(|passage| passage.arrived(&header, arrival.at)).unwrap_or(arrival.delay);
                self.observer.arrived(flow, &header, delay, arrival.ce, arrival.at);
            }
            let seen = &mut received[to];
            *seen = Received {
                bytes: seen.bytes + packet.len() as u64,
                packets: seen.packets + 1,
                delays: seen.delays + arrival.delay,
            };
            store.free(arrival.tag);
        }
        while let Some((ue, report)) = self.live.poll_report() {
            self.readers.send(ue, report);
        }
        now
    }

    /// Carries out commands from the control socket.
    fn obey(&mut self, now: Time) {
        for request in self.control.requests() {
            let answer = self.carry_out(&request.command, now);
            self.control.answer(&request, &answer);
        }
    }

    /// Carries out a command, and returns the answer.
    fn carry_out(&mut self, command: &Command, now: Time) -> Result<String, String> {
        let done = |()| String::new();
        match command {
            Command::Sinr { ue, db } => self.live.set_sinr(ue, *db).map(done),
            Command::Handover { ue, cell } => self.live.hand_over(ue, cell).map(done),
            Command::Load { cell, share } => self.live.set_load(cell, *share).map(done),
            Command::Rate { link, rate } => {
                self.check_queue(Some(link), "rate")?;
                self.live.set_rate(link, *rate)?;
                let waits = || format!("packets wait until `{link}` has a rate again; see `outage` for a time");
                Ok(if *rate == Rate::default() { waits() } else { String::new() })
            }
            Command::Outage { link, span } => {
                self.check_queue(link.as_deref(), "service")?;
                let until = self.live.pause(link.as_deref(), *span)?;
                Ok(format!("packets wait until {:.3} s", until.as_secs_f64()))
            }
            Command::Loss { link, share } => self.live.set_loss(link, *share).map(done),
            Command::Stop => {
                self.stop.store(true, Ordering::Relaxed);
                Ok(String::new())
            }
            Command::Status => Ok(self.status(now)),
            Command::Help => Ok(Command::help()),
        }
    }

    /// Checks that `what` of a link, or of any, is not also that of the queue in its host.
    fn check_queue(&self, link: Option<&str>, what: &str) -> Result<(), String> {
        let is_meant = |of: &&scenario::Link| of.queue_in_host && link.is_none_or(|link| link == of.name);
        let Some(of) = self.scenario.links.iter().find(is_meant) else { return Ok(()) };
        Err(format!("the {what} of link `{}` is also that of the queue in its host, and cannot be set", of.name))
    }

    /// Returns the state as JSON.
    fn status(&mut self, now: Time) -> String {
        let status = self.live.status(now);
        let links = status.links.iter().map(|link| {
            let about = serde_json::json!({ "packets": link.packets, "bytes": link.bytes });
            (link.link.clone(), about)
        });
        let ues = status.ues.iter().map(|ue| {
            let queues = serde_json::json!({
                "cell": ue.cell, "cqi": ue.cqi, "downlink_bytes": ue.downlink_bytes, "uplink_bytes": ue.uplink_bytes,
            });
            (ue.ue.clone(), queues)
        });
        let (links, ues): (serde_json::Map<_, _>, serde_json::Map<_, _>) = (links.collect(), ues.collect());
        serde_json::json!({ "t_s": now.as_secs_f64(), "links": links, "ues": ues }).to_string()
    }

    /// Gives the watch what is new, if it wants it.
    fn publish(&mut self, now: Time) {
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.is_due()) else { return };
        let rows = self.live.rows_since(&mut self.state.seen);
        let flows = self.observer.flows_so_far(now, FEW);
        watch.take(News { at: now - Time::ZERO, rows, flows, places: self.live.places() });
    }

    /// Updates the glance, unless it is being read at this moment.
    fn show(&mut self, now: Time) {
        let received = std::mem::replace(&mut self.state.received, vec![Received::default(); self.ports.len()]);
        let unread = || {
            let what = "nobody reads the reports of the cells, or not fast enough; they are dropped".to_owned();
            (self.readers.unread() > 0).then_some(what)
        };
        if let Ok(mut glance) = self.glance.try_lock() {
            *glance = Glance {
                at: now - Time::ZERO,
                status: self.live.status(now),
                received: received.iter().map(|r| r.bytes).collect(),
                delay: received.iter().map(|r| (r.packets > 0).then(|| r.delays / r.packets)).collect(),
                trouble: self.capture.as_ref().and_then(RawCapture::failure).map(str::to_owned).or_else(unread),
            };
        }
    }
}

/// Frames that could not be delivered to hosts.
#[derive(Default)]
struct Untaken {
    /// Rejected by the interface. The counters of a TUN interface have them.
    rejected: u64,
    /// Packets for which the TUN device had no room, because the host did not process those before in time. No counter of the
    /// kernel has them (`tun_get_user` in drivers/net/tun.c: `rx_dropped` leaves out EAGAIN).
    without_room: u64,
}

impl Untaken {
    fn count(&mut self, is_tun: bool, why: io::ErrorKind) {
        if is_tun && why == io::ErrorKind::WouldBlock {
            self.without_room += 1;
        } else {
            self.rejected += 1;
        }
    }
}

/// Delivers a frame to a host. A host that takes no more loses it, as at a real interface.
fn give(to: &Port, frame: &[u8], untaken: &mut Untaken) {
    if let Err(why) = to.write(frame) {
        untaken.count(matches!(to, Port::Tun(..)), why.kind());
    }
}

/// Returns the processor time of the calling thread, in seconds.
fn processor_time() -> f64 {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_a_tun_device_had_no_room_for_are_not_those_that_the_kernel_counts() {
        let mut untaken = Untaken::default();
        untaken.count(true, io::ErrorKind::WouldBlock);
        untaken.count(true, io::ErrorKind::InvalidInput);
        untaken.count(false, io::ErrorKind::WouldBlock);
        assert_eq!((untaken.without_room, untaken.rejected), (1, 2));
    }
}
