//! `ranway backlog`.

use crate::live::args::BacklogArgs;
use crate::live::dashboard::{Values, untitled};
use crate::live::metrics::{self, Latest};
use crate::live::status_line::StatusLine;
use crate::{failure::Failure, terminal};
use ::backlog::{Answers, Autorate, Bounds, DrainModel, Estimate, Fixed};
use ebpf::divert::{self, Diversion, MARK};
use netio::process::{Happened, Signals};
use netio::rights;
use record::Tables;
use record::report::live::Counter;
use record::tables::{QueueRow, SampleRow};
use services::Metric;
use services::backlog::{Backlog, Counters, Input};
use std::time::{Duration, Instant};
use units::{Rate, Span};

/// Interval between status lines.
const TICK: Duration = Duration::from_secs(1);
/// Interval between checks for signals.
const TURN: Duration = Duration::from_millis(100);
/// Packets are diverted for this much longer than a turn: if the program stalls for longer, packets bypass it.
const GRACE: Duration = Duration::from_millis(400);

/// Interval between checks for new rates on standard input.
const FOLLOW_TURN: Duration = Duration::from_millis(5);
/// Interval between pings, to one reflector after the other: cake-autorate's, which pings six reflectors every 300 ms.
const PING_INTERVAL: Span = Span::from_millis(50);

/// The queues' names on the dashboard, and what nobody knows of the second one.
const HOST: &str = "host";
const MODEM: &str = "modem (estimated)";
const UNKNOWN: [&str; 3] = ["packets", "dropped", "marked"];

pub(crate) fn run(args: &BacklogArgs) -> Result<(), Failure> {
    let BacklogArgs { modem, reflector, follow, quiet, json, .. } = args;
    let drain = drain(args)?;
    let signals = Signals::take()?;
    divert::check("ranway backlog")?;
    let listener = args.metrics.listen()?;
    let mut backlog = Backlog::open(modem, drain, MARK)?;
    if !reflector.is_empty() {
        backlog.ping(reflector, PING_INTERVAL)?;
    }
    let mut rates = follow.then(Input::default);
    let turn = if *follow { FOLLOW_TURN } else { TURN };
    let latest = Latest::new(State::of(&backlog));
    let shown = latest.clone();
    let server = listener.map(|listener| listener.serve(move || shown.get().described())).transpose()?;
    let diversion = Diversion::start(backlog.interface(), backlog.beside())?;
    diversion.renew(TURN + GRACE)?;
    if !quiet {
        let at = metrics::place(server.as_ref());
        terminal::message!("shaping the traffic of {modem}{at}; press Ctrl-C to stop");
    }
    let dashboard = args.dashboard.start("backlog", || untitled(format!("Backlog of {modem}")), *quiet, |_| {})?;
    let values = dashboard.as_ref().map(|page| Values::new(page.publisher()));
    values.iter().for_each(|values| values.leave_out_of(MODEM, &UNKNOWN));
    // From here on the process only forwards packets that others have written.
    rights::confine(rights::BPF)?;
    let mut line = (!quiet && !json).then(|| StatusLine::new(false)).flatten();
    let (mut before, mut last_status) = (Counters::default(), Instant::now());
    let mut outcome = Ok(());
    loop {
        backlog.serve(turn)?;
        if server.is_some() {
            latest.set(State::of(&backlog));
        }
        if let Some(rates) = &mut rates {
            while let Some(line) = rates.next_line() {
                match parse_rate(&line) {
                    Ok(rate) => backlog.set_rate(rate),
                    Err(why) => terminal::message!("{why}; the rate is unchanged"),
                }
            }
        }
        diversion.renew(TURN + GRACE)?;
        if matches!(signals.wait(Duration::ZERO), Happened::Asked { .. }) || terminal::is_closed() {
            break;
        }
        if last_status.elapsed() < TICK {
            continue;
        }
        let seconds = last_status.elapsed().as_secs_f64();
        last_status = Instant::now();
        let (since, waiting) = (between(&before, &backlog.counters()), backlog.waiting());
        let interval = Interval { since, seconds, packets: waiting.packets, waiting: waiting.bytes };
        before = backlog.counters();
        values
            .iter()
            .for_each(|values| values.show(|t_s| (interval.rows(t_s, &backlog.estimate()), counted(&interval.since))));
        if *json {
            outcome = terminal::put_line(&interval.json(&backlog.estimate(), &before).to_string());
            // The reader has gone: packets in the queue are still passed to the modem below.
            if outcome.is_err() {
                break;
            }
        } else if let Some(line) = &mut line {
            line.show(&interval.text(&backlog.estimate()));
        }
    }
    drop(diversion);
    let counters = backlog.finish();
    drop(line);
    if !quiet && !json {
        terminal::message!("{}", totals(&counters));
    }
    Ok(outcome?)
}

/// Creates the model of the modem's queue and drain rate.
fn drain(args: &BacklogArgs) -> Result<Box<dyn DrainModel>, Failure> {
    let &BacklogArgs { rate, min_rate, max_rate, delay_threshold: threshold, target, .. } = args;
    let zero = |rate: Option<Rate>| rate.is_some_and(|rate| rate.bits_per_sec() == 0);
    if target == Span::ZERO || zero(rate) {
        return Err(Failure::Invalid("--target and --rate must be greater than 0".into()));
    }
    let (Some(base), Some(min), Some(max)) = (rate, min_rate, max_rate) else {
        return Ok(match rate {
            Some(rate) => Box::new(Fixed::new(rate, target)),
            None => Box::new(Answers::new(target)),
        });
    };
    if zero(min_rate) || threshold == Span::ZERO {
        return Err(Failure::Invalid("--min-rate and --delay-threshold must be greater than 0".into()));
    }
    if min > base || base > max {
        let why = format!("--min-rate ({min}) <= --rate ({base}) <= --max-rate ({max}) must hold");
        return Err(Failure::Invalid(why));
    }
    Ok(Box::new(Autorate::new(Bounds { min, base, max, threshold })))
}

/// Parses a rate from a line of standard input.
fn parse_rate(line: &str) -> Result<Rate, String> {
    let rate: Rate = line.trim().parse().map_err(|why| format!("standard input: {why}"))?;
    if rate.bits_per_sec() == 0 {
        return Err("standard input: the rate must be greater than 0".into());
    }
    Ok(rate)
}

/// What the metrics tell.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    counters: Counters,
    /// Packets and bytes in the host's queue.
    packets: u64,
    bytes: u64,
    estimate: Estimate,
}

impl State {
    fn of(backlog: &Backlog) -> State {
        let waiting = backlog.waiting();
        let (packets, bytes) = (waiting.packets, waiting.bytes);
        State { counters: backlog.counters(), packets, bytes, estimate: backlog.estimate() }
    }

    fn described(&self) -> Vec<Metric> {
        let &Counters { packets, bytes, waited_ns, overflowed, answers, unheard, .. } = &self.counters;
        let Estimate { rate, bytes: held, delay } = self.estimate;
        // Without a rate and a delay, nobody knows what the modem holds.
        let held = rate.and(delay).map(|_| held as f64);
        let queues = [("host", Some(self.bytes as f64)), ("modem", held)];
        let rate = rate.map(|rate| rate.bits_per_sec() as f64 / 8.0);
        let waited_s = waited_ns as f64 * 1e-9;
        let mut all = metrics::of_counters(counted(&self.counters));
        all.extend([
            Metric::counter("backlog_packets", "packets passed to the modem", packets),
            Metric::counter("backlog_bytes", "bytes of packets passed to the modem, on the IP layer", bytes),
            Metric::sum("backlog_wait_seconds", "time that these packets waited in the host, in all", waited_s),
            Metric::counter("backlog_overflowed", "packets dropped because the queue was full", overflowed),
            Metric::counter("backlog_answers", "answers that came in by the modem", answers),
            Metric::counter("backlog_unheard", "incoming frames lost before they were read", unheard),
            Metric::gauges("backlog_queue_bytes", "bytes that wait in the host, and in the modem", "queue", queues),
            Metric::gauge("backlog_queue_packets", "packets that wait in the host", Some(self.packets as f64)),
            Metric::gauge("backlog_modem_rate_bytes_per_second", "drain rate of the modem", rate),
            Metric::gauge(
                "backlog_modem_delay_seconds",
                "time that the last answered packet spent in the modem",
                delay.map(Span::as_secs_f64),
            ),
        ]);
        all
    }
}

#[cfg(test)]
pub(crate) fn example() -> Vec<Metric> {
    State::default().described()
}

/// The counters, on the dashboard and in the metrics.
fn counted(counters: &Counters) -> Vec<Counter> {
    let &Counters { dropped, overflowed, marked, refused, missed, .. } = counters;
    vec![
        Counter { name: "backlog_dropped", what: "packets dropped", value: dropped + overflowed },
        Counter { name: "backlog_marked", what: "packets marked", value: marked },
        Counter { name: "backlog_refused", what: "packets rejected by the interface", value: refused },
        Counter { name: "backlog_missed", what: "packets lost before they were read", value: missed },
    ]
}

/// The statistics since the last status line.
struct Interval {
    /// Packets, bytes and their waiting since then; the other counters since the start.
    since: Counters,
    seconds: f64,
    /// Packets and bytes in the host's queue.
    packets: u64,
    waiting: u64,
}

impl Interval {
    fn mbps(&self) -> f64 {
        self.since.bytes as f64 * 8e-6 / self.seconds
    }

    /// The values for the dashboard.
    fn rows(&self, t_s: f64, estimate: &Estimate) -> Tables {
        let mut rows = Tables::default();
        rows.samples.push(&SampleRow::counted((0, "all traffic", 0), t_s, self.mbps()));
        rows.queues.push(&QueueRow {
            link: HOST,
            t_s,
            packets: self.packets,
            bytes: self.waiting,
            dropped: self.since.dropped + self.since.overflowed,
            marked: self.since.marked,
            sojourn_ms: (self.since.packets > 0).then(|| waited_ms(&self.since)),
            point: 0,
            run: 0,
            // The queue's rates and its longest sojourn are not measured.
            served_mbps: 0.0,
            capacity_mbps: None,
            sojourn_max_ms: None,
        });
        rows.queues.push(&QueueRow {
            link: MODEM,
            t_s,
            bytes: estimate.bytes,
            capacity_mbps: estimate.rate.map(Rate::as_mbps),
            sojourn_ms: estimate.delay.map(record::ms),
            point: 0,
            run: 0,
            // What the modem drops and serves is not seen.
            packets: 0,
            dropped: 0,
            marked: 0,
            served_mbps: 0.0,
            sojourn_max_ms: None,
        });
        rows
    }

    fn text(&self, estimate: &Estimate) -> String {
        let known = estimate.rate.map_or_else(|| "unknown".into(), |rate| format!("{:.2} Mbit/s", rate.as_mbps()));
        let ms = |span: Option<Span>| span.map_or_else(|| "-".into(), |span| format!("{:.0}", record::ms(span)));
        format!(
            "up {:6.2} Mbit/s  host queue {:5} kB, {:4.0} ms  modem queue {:5} kB, {:>4} ms  drain rate {known}",
            self.mbps(),
            self.waiting / 1000,
            waited_ms(&self.since),
            estimate.bytes / 1000,
            ms(estimate.delay),
        )
    }

    fn json(&self, estimate: &Estimate, counters: &Counters) -> serde_json::Value {
        serde_json::json!({
            "mbps": self.mbps(),
            "waiting_bytes": self.waiting,
            "waited_ms": waited_ms(&self.since),
            "modem_mbps": estimate.rate.map(units::Rate::as_mbps),
            "modem_bytes": estimate.bytes,
            "modem_ms": estimate.delay.map(record::ms),
            "counters": counters,
        })
    }
}

/// The mean time that packets waited in the host's queue.
fn waited_ms(counters: &Counters) -> f64 {
    counters.waited_ns as f64 / 1e6 / counters.packets.max(1) as f64
}

fn between(before: &Counters, now: &Counters) -> Counters {
    Counters {
        packets: now.packets - before.packets,
        bytes: now.bytes - before.bytes,
        waited_ns: now.waited_ns - before.waited_ns,
        ..*now
    }
}

fn totals(counters: &Counters) -> String {
    let Counters { packets, bytes, dropped, marked, overflowed, refused, missed, .. } = counters;
    let mut line = format!(
        "{packets} packets, {:.1} MB, mean wait {:.1} ms; {dropped} dropped, {marked} marked (ECN)",
        *bytes as f64 / 1e6,
        waited_ms(counters),
    );
    for (count, what) in [
        (overflowed, "dropped because the queue was full"),
        (refused, "rejected by the interface"),
        (missed, "lost before they were read"),
    ] {
        if *count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}
