//! `ranway backlog`.

use crate::args::BacklogArgs;
use crate::line::Line;
use crate::{failure::Failure, say};
use ::backlog::{Answers, Autorate, Bounds, DrainModel, Estimate, Fixed};
use ebpf::divert::{self, Diversion, MARK};
use netio::process::{Happened, Signals};
use netio::rights;
use services::backlog::{Backlog, Counters, Input};
use std::io::Write;
use std::time::{Duration, Instant};
use units::{Rate, Span};

/// How often it is said what goes on.
const TICK: Duration = Duration::from_secs(1);
/// How often it is looked for signals.
const TURN: Duration = Duration::from_millis(100);
/// Packets are diverted for so long beyond that: who stands still for longer is passed by.
const GRACE: Duration = Duration::from_millis(400);

/// How often it is looked for new rates on standard input.
const FOLLOW_TURN: Duration = Duration::from_millis(5);
/// From one ping of a reflector to the next one of the next: that of cake-autorate, six that are pinged every 300 ms.
const PING_INTERVAL: Span = Span::from_millis(50);

pub(crate) fn run(args: &BacklogArgs) -> Result<(), Failure> {
    let BacklogArgs { modem, reflector, follow, quiet, json, .. } = args;
    let drain = drain(args)?;
    let signals = Signals::take()?;
    divert::check("keeping a backlog")?;
    let mut backlog = Backlog::open(modem, drain, MARK)?;
    if !reflector.is_empty() {
        backlog.ping(reflector, PING_INTERVAL)?;
    }
    let mut rates = follow.then(Input::default);
    let turn = if *follow { FOLLOW_TURN } else { TURN };
    let diversion = Diversion::start(backlog.interface(), backlog.beside())?;
    diversion.renew(TURN + GRACE)?;
    if !quiet {
        say::say!("the backlog of {modem} is kept above it; Ctrl-C ends it");
    }
    // From here on it only moves packets that others have written.
    rights::confine(rights::BPF)?;
    let mut line = (!quiet && !json).then(|| Line::new(false)).flatten();
    let (mut before, mut said) = (Counters::default(), Instant::now());
    loop {
        backlog.serve(turn)?;
        if let Some(rates) = &mut rates {
            while let Some(line) = rates.next_line() {
                match told(&line) {
                    Ok(rate) => backlog.set_rate(rate),
                    Err(why) => say::say!("{why}; the rate stays as it is"),
                }
            }
        }
        diversion.renew(TURN + GRACE)?;
        if matches!(signals.wait(Duration::ZERO), Happened::Asked { .. }) || say::is_lost() {
            break;
        }
        if said.elapsed() < TICK {
            continue;
        }
        let seconds = said.elapsed().as_secs_f64();
        said = Instant::now();
        let now = Now { since: between(&before, &backlog.counters()), seconds, waiting: backlog.waiting().bytes };
        before = backlog.counters();
        if *json {
            let mut stdout = say::stdout();
            let line = now.json(&backlog.estimate(), &before);
            // Whoever read it has left: the packets that wait are still handed down.
            if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
                break;
            }
        } else if let Some(line) = &mut line {
            line.show(&now.say(&backlog.estimate()));
        }
    }
    drop(diversion);
    let counters = backlog.finish();
    drop(line);
    if !quiet && !json {
        say::say!("{}", end(&counters));
    }
    Ok(())
}

/// The model of how the modem drains.
fn drain(args: &BacklogArgs) -> Result<Box<dyn DrainModel>, Failure> {
    let &BacklogArgs { rate, min_rate, max_rate, delay_threshold: threshold, target, .. } = args;
    let zero = |rate: Option<Rate>| rate.is_some_and(|rate| rate.bits_per_sec() == 0);
    if target == Span::ZERO || zero(rate) {
        return Err(Failure::Wrong("--target and --rate are more than 0".into()));
    }
    let (Some(base), Some(min), Some(max)) = (rate, min_rate, max_rate) else {
        return Ok(match rate {
            Some(rate) => Box::new(Fixed::new(rate, target)),
            None => Box::new(Answers::new(target)),
        });
    };
    if zero(min_rate) || threshold == Span::ZERO {
        return Err(Failure::Wrong("--min-rate and --delay-threshold are more than 0".into()));
    }
    if min > base || base > max {
        let why = format!("--min-rate ({min}) <= --rate ({base}) <= --max-rate ({max}) does not hold");
        return Err(Failure::Wrong(why));
    }
    Ok(Box::new(Autorate::new(Bounds { min, base, max, threshold })))
}

/// A rate on a line of standard input.
fn told(line: &str) -> Result<Rate, String> {
    let rate: Rate = line.trim().parse().map_err(|why| format!("standard input: {why}"))?;
    if rate.bits_per_sec() == 0 {
        return Err("standard input: a rate is more than 0".into());
    }
    Ok(rate)
}

/// The last second.
struct Now {
    since: Counters,
    seconds: f64,
    waiting: u64,
}

impl Now {
    fn mbps(&self) -> f64 {
        self.since.bytes as f64 * 8e-6 / self.seconds
    }

    fn say(&self, estimate: &Estimate) -> String {
        let known = estimate.rate.map_or_else(|| "unknown".into(), |rate| format!("{:.2} Mbit/s", rate.as_mbps()));
        let ms = |span: Option<Span>| span.map_or_else(|| "-".into(), |span| format!("{:.0}", record::ms(span)));
        format!(
            "up {:6.2} Mbit/s  above {:5} kB, {:4.0} ms  in the modem {:5} kB, {:>4} ms  it drains {known}",
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

/// How long packets waited above, in the mean.
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

fn end(counters: &Counters) -> String {
    let Counters { packets, bytes, dropped, marked, overflowed, refused, missed, .. } = counters;
    let mut line = format!(
        "{packets} packets of {:.1} MB, which waited {:.1} ms in the mean; {dropped} dropped, {marked} marked to slow senders down",
        *bytes as f64 / 1e6,
        waited_ms(counters),
    );
    for (count, what) in
        [(overflowed, "without room"), (refused, "not taken by the interface"), (missed, "lost before they were read")]
    {
        if *count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}
