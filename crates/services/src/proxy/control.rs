//! Control of windows and rates: observes the connections and applies what a [`Control`] decides.
//!
//! Each direction of a connection towards a UE is a flow. A thread of its own asks the control when it wants to be called,
//! reads what the kernel knows of both legs, and sets:
//!
//! - the receive window of the wired leg (`TCP_WINDOW_CLAMP`) once data has arrived, because the kernel forgets an earlier
//!   limit. It is read back and set again in each update, because the kernel's automatic tuning may raise it;
//! - the receive buffer of the wired leg (`SO_RCVBUF`), at most what it would be without a control. It shrinks as the announced
//!   window is used ([`rapid::Room`]);
//! - what the radio leg takes beyond what it has sent (`TCP_NOTSENT_LOWAT`), at most that of the settings;
//! - the pacing rate of the radio leg (`SO_MAX_PACING_RATE`);
//! - the congestion window of the radio leg, if there are [`RadioWindows`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use netio::realtime::{Clock, thread_time};
use netio::sys;
use rapid::{Category, Control, Decision, LEAST_SEGMENTS, Sample};
use rustix::net::sockopt;
use units::{Span, Time};

use super::feeds::{Feed, Trust, Unused, Watch};
use super::flow::{Flow, Following, News, Registry};
use super::inbox::Inbox;
use super::relay::NO_LIMIT;
use super::ues::Ues;
use super::window::{Leg, Limits, ReceiveWindow};
use super::worker::Shared;
use crate::clock::unix_now;
use crate::socket_file::SocketFile;

/// Interval between checks for new connections while the control has nothing to do.
const IDLE: Duration = Duration::from_millis(20);
/// Time for which congestion windows are kept in force, and the interval between extensions of it. A control that takes longer
/// than that for an update hangs.
const IN_FORCE: Duration = Duration::from_secs(1);
const EXTEND: Span = Span::from_millis(100);
/// How many times as long as it took to observe the flows and to apply the decisions the control leaves its processor to the
/// bytes, before the next update: with thousands of active flows, updates become rarer.
const REST: u32 = 9;
/// The least pacing rate in bytes per second. The kernel sets the time of the next packet at the rate of the last one: a
/// flow that was promised next to nothing while it was idle would wait for minutes when it sends again.
const LEAST_PACING: u64 = 125_000;
/// Packets of the kernel have up to 64 KiB. At this rate in bytes per second and above, such a packet leaves in each of NR's slots of
/// 125 us (TS 38.211 table 4.3.2-1, 120 kHz): the radio sends in slots, so closer timers would spread nothing.
const UNPACED: u64 = LONGEST_PACKET * 8_000;
/// A flow that waits less than this for its worker, in ns, needs no room for what it sends meanwhile.
const SHORT_TURN: u64 = 250_000;
/// The part of the memory for all connections that they may take to bear late turns. A buffer takes twice its size, and what was
/// read may wait to be sent.
const LATE_PART: u64 = 4;
/// The least that each may take: the longest packet of the kernel, which can be moved at the cost of one.
const LONGEST_PACKET: u64 = 64 << 10;
/// How long a worker takes to move such a packet, in ns. When all flows begin to send at once, its first turn takes that long for
/// each of them; idle flows have the settings for it in advance.
const MOVE: u64 = 64_000;
/// A connection is controlled once it has carried this many bytes towards its UE, or is this old. Most are over before: they send
/// less than an initial window of ten segments (RFC 6928), to which the control's settings would come too late.
const WORTH: u64 = 8 << 10;
const YOUNG: Span = Span::from_millis(100);
/// Time between a change of a receive buffer's limit and a small reduction.
const SETTLING: Span = Span::from_secs(1);
/// The age of a control's clock when it begins: reports from just before have a time on it, as those that waited while another
/// process handed over.
const BEFORE: Span = Span::from_secs(1);
/// Interval between looks at the feeds.
const LOOK: Span = Span::from_millis(500);

/// Identifies a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    worker: usize,
    id: u64,
}

/// A congestion control whose windows can be set, in the kernel. A socket is given its window first, and then selects it by
/// name.
pub trait RadioWindows: Send {
    /// Returns the name of the congestion control in the kernel.
    fn name(&self) -> &str;
    /// Sets the window of a socket in segments.
    ///
    /// # Errors
    /// The connection has ended, or the kernel has no memory.
    fn set(&mut self, socket: BorrowedFd, segments: u32) -> io::Result<()>;
    /// Removes the window of a socket.
    ///
    /// # Errors
    /// As [`RadioWindows::set`].
    fn clear(&mut self, socket: BorrowedFd) -> io::Result<()>;
    /// Keeps all windows in force for this time from now. Without it they do not count.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn renew(&mut self, time: Duration) -> io::Result<()>;
}

/// What decides and applies the windows and rates of flows.
pub struct Governor {
    /// The control, by flow and by the name of a UE: its address, or the first of its IPv6 prefix.
    pub control: Box<dyn Control<FlowKey, IpAddr>>,
    /// Its reports.
    pub reports: Inbox,
    /// The socket that they come by, if the proxy has made one: it is removed even if the proxy is killed.
    pub reports_socket: Option<SocketFile>,
    /// Bits of the IPv6 prefix that a UE has, at most 128.
    pub ipv6_prefix: u8,
    /// What applies its congestion windows, if anything.
    pub windows: Option<Box<dyn RadioWindows>>,
}

/// A flow that the control knows, and its settings.
#[derive(Default)]
struct Controlled {
    flow: Weak<Flow>,
    /// The name of its UE.
    ue: Option<IpAddr>,
    /// Bytes delivered when the control was told of it, from which the control counts.
    before: u64,
    last: Sample,
    /// If everything that came had been delivered at the last observation: what had been taken.
    quiet: Option<[u64; 2]>,
    /// Payload of a full segment of the radio leg.
    mss: u32,
    /// The same of the wired leg, as far as it is known.
    wired_mss: u32,
    /// The receive window of the wired leg.
    receive: ReceiveWindow,
    /// The limit of its buffer, and when that was last changed.
    buffer: Option<u64>,
    resized: Time,
    unsent: Option<u64>,
    pacing: Option<u64>,
    /// The radio leg's congestion window in segments.
    segments: Option<u32>,
    /// The congestion control that the radio leg had before it got a window, if it has one.
    replaced: Option<String>,
}

/// What the control follows.
#[derive(Default)]
struct Flows {
    controlled: BTreeMap<FlowKey, Controlled>,
    /// The connections of the last [`YOUNG`] and when each was established, in this order. Some have ended or are controlled.
    young: VecDeque<(Time, FlowKey)>,
}

/// Runs a control until `stop`, and then lifts all limits, also if the control panics. Returns whether it did not.
pub(super) fn run(governor: Governor, workers: &[Arc<Shared>], stop: &AtomicBool) -> bool {
    let Governor { mut control, reports, ipv6_prefix, mut windows, .. } = governor;
    let mut flows = Flows::default();
    let mut ues = Ues::new(ipv6_prefix);
    let controlling =
        AssertUnwindSafe(|| drive(&mut *control, &reports, &mut ues, &mut windows, &mut flows, workers, stop));
    let is_well = catch_unwind(controlling).is_ok();
    if let Some(shared) = workers.first() {
        shared.registry.feeds.publish(Vec::new(), Unused::default());
    }
    let most = bounds(workers);
    flows.controlled.values_mut().for_each(|flow| flow.apply(&Decision::UNLIMITED, most, &mut windows, Time::ZERO));
    is_well
}

fn drive(
    control: &mut dyn Control<FlowKey, IpAddr>,
    reports: &Inbox,
    ues: &mut Ues,
    windows: &mut Option<Box<dyn RadioWindows>>,
    flows: &mut Flows,
    workers: &[Arc<Shared>],
    stop: &AtomicBool,
) {
    let clock = Clock::start();
    let present = || clock.now() + BEFORE;
    let all: Vec<(&Shared, Following)> = workers.iter().map(|shared| (&**shared, shared.registry.follow())).collect();
    let mut news = Vec::new();
    let mut extended = None;
    let mut rests_until = Instant::now();
    let (mut watch, mut looked) = (Watch::default(), Time::ZERO);
    while !stop.load(Relaxed) {
        for (shared, following) in &all {
            following.take(&mut news);
            news.iter().for_each(|&news| learn(control, shared, ues, flows, news, present()));
        }
        let now = present();
        while let Some((_, key)) = flows.young.pop_front_if(|(since, _)| now.saturating_since(*since) >= YOUNG) {
            if let Some(flow) = workers[key.worker].registry.get(key.id) {
                adopt(control, &flow, ues, flows, key, now);
            }
        }
        if let Some(windows) = windows
            && extended.is_none_or(|last| now.saturating_since(last) >= EXTEND)
        {
            extended = Some(now);
            // If it fails, the windows do not count.
            let _ = windows.renew(IN_FORCE);
        }
        if let Some((shared, _)) = all.first()
            && now.saturating_since(looked) >= LOOK
        {
            looked = now;
            look_at_feeds(control, reports, &mut watch, flows, &shared.registry, now);
        }
        match control.poll_timeout() {
            Some(due) if due <= now && rests_until <= Instant::now() => {
                let before = thread_time();
                for report in reports.take(now, unix_now()) {
                    let Some((name, former)) = ues.learn(&report.ue, now) else { continue };
                    if let Some(former) = former {
                        rename(control, ues, &mut flows.controlled, former, now);
                    }
                    control.on_report(name, &report, now);
                }
                update(control, windows, &mut flows.controlled, workers, now);
                rests_until = Instant::now() + REST * thread_time().saturating_sub(before);
            }
            due => {
                let wait = due.map_or(IDLE, |due| Duration::from_nanos(due.saturating_since(now).as_nanos()));
                let rest = rests_until.saturating_duration_since(Instant::now());
                std::thread::sleep(wait.max(rest).min(IDLE));
            }
        }
    }
}

/// Publishes what is known of the feeds of UEs that have connections.
fn look_at_feeds(
    control: &dyn Control<FlowKey, IpAddr>,
    reports: &Inbox,
    watch: &mut Watch,
    flows: &Flows,
    to: &Registry,
    now: Time,
) {
    let mut feeds = BTreeMap::new();
    control.feeds(now, &mut |ue, feed| {
        feeds.insert(ue, *feed);
    });
    // Connections have addresses, and a UE has several.
    let mut by_address = BTreeMap::new();
    for controlled in flows.controlled.values() {
        let Some(feed) = controlled.ue.and_then(|ue| feeds.get(&ue)) else { continue };
        if let Some(flow) = controlled.flow.upgrade() {
            let ue = flow.ue().ip();
            let (age_s, trust) = (feed.age.as_secs_f64(), Trust::of(feed));
            by_address.entry(ue).or_insert(Feed { ue, age_s, trust });
        }
    }
    let unused = Unused::new(control.rejected(), reports.old());
    to.notify(watch.look(&feeds, unused, now));
    to.feeds.publish(by_address.into_values().collect(), unused);
}

/// Returns the receive buffer and the unsent data of a leg without a control.
fn bounds(workers: &[Arc<Shared>]) -> (u64, u64) {
    workers.first().map_or((0, 0), |shared| {
        let settings = shared.settings.get();
        (settings.receive_buffer as u64, settings.unsent as u64)
    })
}

/// Takes note of what has happened to a connection of a worker.
fn learn(
    control: &mut dyn Control<FlowKey, IpAddr>,
    shared: &Shared,
    ues: &Ues,
    flows: &mut Flows,
    news: News,
    now: Time,
) {
    let key = |id| FlowKey { worker: shared.number, id };
    match news {
        News::Established(id) => flows.young.push_back((now, key(id))),
        News::Progress(id) => {
            if let Some(flow) = flows.controlled.get(&key(id)).and_then(|controlled| controlled.flow.upgrade()) {
                flow.on_noted();
                control.on_progress(key(id));
            } else if let Some(flow) = shared.registry.get(id) {
                flow.on_noted();
                if flow.to_ue.taken.load(Relaxed) >= WORTH {
                    adopt(control, &flow, ues, flows, key(id), now);
                }
            }
        }
        News::Closed(id) => {
            if flows.controlled.remove(&key(id)).is_some() {
                control.close(key(id));
            }
        }
    }
}

/// Tells the control of a connection, unless it knows it.
fn adopt(
    control: &mut dyn Control<FlowKey, IpAddr>,
    flow: &Arc<Flow>,
    ues: &Ues,
    flows: &mut Flows,
    key: FlowKey,
    now: Time,
) {
    if flows.controlled.contains_key(&key) {
        return;
    }
    flow.on_noted();
    let (mss, before) = flow.observe().map_or((1448, 0), |of| (of.radio.snd_mss, of.delivered()));
    let ue = ues.name(flow.ue().ip());
    control.open(key, ue, mss, now);
    if flow.taken() != [0, 0] {
        control.on_progress(key);
    }
    let (receive, flow) = (ReceiveWindow::new(flow.receive_buffer), Arc::downgrade(flow));
    flows.controlled.insert(key, Controlled { flow, ue: Some(ue), before, mss, receive, ..Controlled::default() });
}

/// Tells the control of the UE that the flows of `former` belong to by now.
fn rename(
    control: &mut dyn Control<FlowKey, IpAddr>,
    ues: &Ues,
    flows: &mut BTreeMap<FlowKey, Controlled>,
    former: IpAddr,
    now: Time,
) {
    for (&key, controlled) in flows.iter_mut().filter(|(_, controlled)| controlled.ue == Some(former)) {
        let Some(flow) = controlled.flow.upgrade() else { continue };
        let name = ues.name(flow.ue().ip());
        if name == former {
            continue;
        }
        controlled.ue = Some(name);
        controlled.quiet = None;
        controlled.before = flow.observe().map_or(controlled.before, |of| of.delivered());
        control.close(key);
        control.open(key, name, controlled.mss, now);
    }
}

fn update(
    control: &mut dyn Control<FlowKey, IpAddr>,
    windows: &mut Option<Box<dyn RadioWindows>>,
    flows: &mut BTreeMap<FlowKey, Controlled>,
    workers: &[Arc<Shared>],
    now: Time,
) {
    let most = bounds(workers);
    let first_turn = (flows.len() / workers.len().max(1)) as u64 * MOVE;
    let most_late =
        workers.first().map_or(0, |shared| shared.settings.get().memory / LATE_PART) / (flows.len() as u64).max(1);
    let cell = RefCell::new(flows);
    let mut observe = |key: FlowKey| {
        let mut flows = cell.borrow_mut();
        let Some(controlled) = flows.get_mut(&key) else { return Sample::default() };
        controlled.observe();
        controlled.last
    };
    let mut apply = |key: FlowKey, decision: &Decision| {
        if let Some(controlled) = cell.borrow_mut().get_mut(&key) {
            let turn = workers.get(key.worker).map_or(0, |shared| shared.turn.load(Relaxed));
            let decision = for_a_turn(decision, turn, first_turn, most_late.max(LONGEST_PACKET));
            controlled.apply(&decision, most, windows, now);
        }
    };
    control.update(now, &mut observe, &mut apply);
}

/// Returns the decision with room for what a flow sends at its rate in `turn` ns, for which it waits for its worker; if it is
/// idle, in `first_turn` ns at the rate that it would have. A worker that has more to do than it can then moves more at a time,
/// which costs less for each byte. Towards the server the room has `most` bytes, because it takes memory for each flow whose UE stops
/// reading.
fn for_a_turn(decision: &Decision, turn: u64, first_turn: u64, most: u64) -> Decision {
    let is_idle = decision.category == Category::Idle;
    let (rate, turn) = if is_idle { (decision.pacing, turn.max(first_turn)) } else { (decision.rate, turn) };
    // In steps, so that settings need not change each time.
    let turn = if turn < SHORT_TURN { 0 } else { turn.next_power_of_two() };
    let late = rate.map_or(0, |rate| (rate.bytes_per_sec() as f64 * turn as f64 * 1e-9) as u64);
    let and_late = |bytes: Option<u64>| bytes.map(|bytes| bytes.saturating_add(late));
    let and_some = |bytes: Option<u64>| bytes.map(|bytes| bytes.saturating_add(late.min(most)));
    Decision {
        receive_window: and_some(decision.receive_window),
        receive_buffer: and_some(decision.receive_buffer),
        unsent: and_late(decision.unsent),
        window: and_late(decision.window),
        ..*decision
    }
}

/// Returns the receive buffer to aim at where `new` is decided. A small reduction waits until the one before has lasted
/// (`has_settled`), because each costs some calls of the kernel.
fn settled(new: Option<u64>, before: Option<u64>, has_settled: bool) -> Option<u64> {
    match (new, before) {
        (Some(new), Some(before)) if new < before && new >= before / 4 * 3 && !has_settled => Some(before),
        _ => new,
    }
}

impl Controlled {
    /// Reads the state of both legs, unless nothing can have changed. What cannot be observed any more stays as it was, until it
    /// is reported as closed.
    fn observe(&mut self) {
        let Some(flow) = self.flow.upgrade() else { return };
        let taken = flow.taken();
        if self.quiet == Some(taken) {
            return;
        }
        if let Ok(observed) = flow.observe() {
            self.last = observed.sample(self.before);
            (self.mss, self.wired_mss) = (observed.radio.snd_mss, observed.wired.rcv_mss);
            self.quiet = (self.last.arrived == self.last.delivered && observed.held_from_ue == 0).then_some(taken);
        }
    }

    fn apply(
        &mut self,
        decision: &Decision,
        (most_buffer, most_unsent): (u64, u64),
        windows: &mut Option<Box<dyn RadioWindows>>,
        now: Time,
    ) {
        let Some(flow) = self.flow.upgrade() else { return };
        flow.promise(decision.rate);
        let at_least = |bytes: Option<u64>| bytes.map(|bytes| bytes.max(self.least_window()));
        let (window, buffer) = (at_least(decision.receive_window), at_least(decision.receive_buffer));
        let wanted = buffer.map(|bytes| bytes.min(most_buffer));
        let buffer = settled(wanted, self.buffer, now.saturating_since(self.resized) >= SETTLING);
        if buffer != self.buffer {
            (self.buffer, self.resized) = (buffer, now);
        }
        let (has_data, is_quiet) = (self.last.arrived > 0, self.quiet.is_some());
        // Each call fails only if the connection has just ended.
        self.receive.limit(
            flow.wired(),
            Limits { buffer, window, least: self.least_window() },
            Leg { size: flow.size().map(|bytes| bytes as u64), has_data, is_quiet },
        );
        let unsent = decision.unsent.map(|bytes| bytes.min(most_unsent));
        if unsent != self.unsent {
            self.unsent = unsent;
            // The kernel asks for more when half of it is sent.
            flow.passing.store(unsent.map_or(NO_LIMIT, |bytes| (bytes as usize / 2).max(1)), Relaxed);
            let bytes = u32::try_from(unsent.unwrap_or(most_unsent)).unwrap_or(u32::MAX);
            let _ = sys::set_notsent_lowat(flow.radio(), bytes);
        }
        let pacing = decision.pacing.map(|rate| (rate.bits_per_sec() / 8).max(LEAST_PACING));
        let pacing = pacing.filter(|&bytes| bytes < UNPACED);
        if pacing != self.pacing {
            self.pacing = pacing;
            let _ = sys::set_max_pacing_rate(flow.radio(), pacing.unwrap_or(u64::MAX).min(flow.most_pacing));
        }
        if let Some(windows) = windows {
            self.apply_window(flow.radio(), decision.window, &mut **windows);
        }
    }

    /// The least receive window and buffer of the wired leg.
    fn least_window(&self) -> u64 {
        LEAST_SEGMENTS * u64::from(self.wired_mss)
    }

    /// Sets the congestion window of the radio leg, with the congestion control that keeps it. Without a window, the leg gets
    /// back the one that it had.
    fn apply_window(&mut self, radio: BorrowedFd, window: Option<u64>, windows: &mut dyn RadioWindows) {
        let segments = window.map(|bytes| u32::try_from(bytes / u64::from(self.mss.max(1))).unwrap_or(u32::MAX));
        if segments == self.segments {
            return;
        }
        // Each call fails only if the connection has just ended or memory is short.
        match segments {
            Some(segments) => {
                if windows.set(radio, segments).is_err() {
                    return;
                }
                if self.replaced.is_none()
                    && let Ok(before) = sockopt::tcp_congestion(radio)
                    && sockopt::set_tcp_congestion(radio, windows.name()).is_ok()
                {
                    self.replaced = Some(before);
                }
            }
            None => {
                if let Some(before) = self.replaced.take() {
                    let _ = sockopt::set_tcp_congestion(radio, &before);
                }
                let _ = windows.clear(radio);
            }
        }
        self.segments = segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rate;

    #[test]
    fn a_limit_of_a_buffer_grows_at_once_and_shrinks_a_little_only_now_and_then() {
        let settled = |new, before, has_settled| settled(Some(new), Some(before), has_settled);
        assert_eq!(settled(81_000, 80_000, false), Some(81_000));
        assert_eq!(settled(62_000, 80_000, false), Some(80_000));
        assert_eq!(settled(62_000, 80_000, true), Some(62_000));
        // A window of another kind, as after a handover.
        assert_eq!(settled(30_000, 80_000, false), Some(30_000));
        assert_eq!(super::settled(None, Some(80_000), false), None);
        assert_eq!(super::settled(Some(80_000), None, false), Some(80_000));
    }

    #[test]
    fn a_late_worker_gives_room_for_what_comes_meanwhile() {
        let windows = |receive, send| Decision {
            rate: Some(Rate::from_mbps(80)),
            receive_window: Some(receive),
            receive_buffer: Some(receive),
            unsent: Some(send),
            window: Some(send),
            ..Decision::UNLIMITED
        };
        let decision = windows(20_000, 20_000);
        let for_a_turn = |decision: &Decision, turn, first| for_a_turn(decision, turn, first, 100_000);
        assert_eq!(for_a_turn(&decision, SHORT_TURN - 1, u64::MAX), decision);
        // 2^20 ns is the next step, in which 10,485 bytes come; and 2^24 ns, in which 167,772 come.
        assert_eq!(for_a_turn(&decision, 1_000_000, 0), windows(30_485, 30_485));
        assert_eq!(for_a_turn(&decision, 10_000_000, 0), windows(120_000, 187_772));
        assert_eq!(for_a_turn(&Decision::UNLIMITED, 10_000_000, 10_000_000), Decision::UNLIMITED);
        // A flow that is idle has room for its first turn at its pacing rate.
        let pacing = decision.rate;
        let idle = |bytes| Decision { rate: None, category: Category::Idle, pacing, ..windows(bytes, bytes) };
        assert_eq!(for_a_turn(&idle(20_000), 0, 1_000_000), idle(30_485));
    }
}
