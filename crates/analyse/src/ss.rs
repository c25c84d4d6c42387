//! Logs of `ss -ti`, which prints the kernel's state of all connections once, run again and again.
//!
//! Read first: `tcp_stats_print` in iproute2, `misc/ss.c`. A connection is a line with its addresses, and its state behind it or on the
//! next line. Without `-n`, ports have names, and with `-r` hosts: of these, only ports are known. ss leaves out what is 0. What it never prints: the state of recovery (`tcpi_ca_state`).
//!
//! Times are those in front of lines or snapshots ([`crate::stamps`]). Without them, snapshots are as far apart as the caller says;
//! a snapshot begins with ss's heading, or with a connection that was in the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use units::{Span, Time};
use wire::tcp_info::{BbrInfo, TcpInfo};

use crate::collector::{Collector, Error};
use crate::kernel::{self, Connection, States};
use crate::ports::port;
use crate::stamps::{self, Stamp};
use crate::text::Lines;

/// Connections that are followed.
const MOST_CONNECTIONS: usize = 16_384;
/// Half a day: by more than that a time of day goes back at midnight alone.
const HALF_DAY_S: f64 = 43_200.0;
/// The states that ss names.
const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "CLOSED",
];

/// A connection: its addresses, and how many before it had the same ones.
type Key = (SocketAddr, SocketAddr, u32);

/// What is known of a connection beside its states.
#[derive(Default)]
struct Known {
    generation: u32,
    latest: Option<(f64, TcpInfo)>,
    congestion: String,
}

/// Reads a log.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let mut log = Log::default();
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next(path)? {
        if lines.number.is_multiple_of(1 << 10) {
            all.options.check()?;
            (all.options.progress)(all.bytes);
        }
        all.bytes += line.len() as u64 + 1;
        log.line(&line);
    }
    log.finish(path, all)
}

#[derive(Default)]
struct Log {
    /// The latest time in the log, as it was written, and what is added to it: the days, or the years, that are over.
    stamp: Option<f64>,
    written: f64,
    over: f64,
    is_calendar: bool,
    /// The number of the snapshot, whether there is one yet, and the connections in it.
    snapshot: u64,
    begun: bool,
    seen: BTreeSet<(SocketAddr, SocketAddr)>,
    current: Option<(SocketAddr, SocketAddr)>,
    known: BTreeMap<(SocketAddr, SocketAddr), Known>,
    /// Times are in ns since the first one, or are numbers of snapshots.
    states: States<Key>,
    congestions: BTreeMap<Key, String>,
    first: Option<f64>,
    other: u64,
    /// Whether the current connection has names whose addresses or ports are not known, and states of such.
    has_names: bool,
    named: u64,
    left_out: u64,
    back: u64,
    /// States before the first time.
    early: u64,
}

impl Log {
    fn line(&mut self, line: &str) {
        let mut rest = line;
        if let Some((stamp, behind)) = stamps::take(line) {
            self.time(stamp);
            rest = behind;
        }
        let rest = rest.trim_start();
        if rest.is_empty() {
            return;
        }
        if rest.starts_with("State ") || rest.starts_with("Recv-Q") || rest.starts_with("Netid") {
            self.begin();
            return;
        }
        if let Some((ends, info)) = addresses(rest) {
            self.has_names = matches!(ends, Ends::Names);
            let Ends::Known(local, peer) = ends else {
                self.current = None;
                self.named += u64::from(self.has_names && info.contains("rto:"));
                return;
            };
            let ends = (local, peer);
            if self.seen.contains(&ends) {
                self.begin();
            }
            self.begun = true;
            self.seen.insert(ends);
            self.current = Some(ends);
            if info.contains("rto:") {
                self.state(info);
            }
        } else if self.current.is_some() && rest.contains("rto:") {
            self.state(rest);
        } else if self.has_names && rest.contains("rto:") {
            (self.named, self.has_names) = (self.named + 1, false);
        } else if self.current.is_none() || !rest.contains(':') {
            self.other += u64::from(!rest.contains("rto:"));
        }
    }

    fn time(&mut self, stamp: Stamp) {
        let at = match stamp {
            Stamp::Unix(at) => {
                self.is_calendar = true;
                at
            }
            Stamp::Other(at) => {
                if let Some(before) = self.stamp {
                    let back = before - (at + self.over);
                    if back > stamps::YEAR_S / 2.0 {
                        self.over += stamps::YEAR_S;
                    } else if back > HALF_DAY_S {
                        self.over += HALF_DAY_S * 2.0;
                    } else if stamps::skips_29_february(self.written, at) {
                        self.over -= HALF_DAY_S * 2.0;
                    }
                }
                self.written = at;
                at + self.over
            }
        };
        if self.stamp.is_none() && self.begun {
            // What stands before the first time has none.
            let early = std::mem::take(&mut self.states);
            self.early = early.into_iter().map(|(_, states)| states.len() as u64).sum();
            (self.first, self.snapshot) = (None, 0);
            self.known.clear();
            self.congestions.clear();
        }
        self.stamp = Some(at);
    }

    /// Begins a snapshot.
    fn begin(&mut self) {
        self.snapshot += u64::from(self.begun);
        self.begun = true;
        self.seen.clear();
        self.current = None;
    }

    /// Takes the state of the current connection.
    fn state(&mut self, text: &str) {
        let Some(ends) = self.current.take() else { return };
        if !self.known.contains_key(&ends) && self.known.len() >= MOST_CONNECTIONS {
            self.left_out += 1;
            return;
        }
        let (info, bbr, congestion) = state(text);
        let at = self.stamp.unwrap_or(self.snapshot as f64);
        let first = *self.first.get_or_insert(at);
        let known = self.known.entry(ends).or_default();
        if let Some((before, latest)) = &known.latest {
            if at <= *before {
                self.back += 1;
                return;
            }
            let is_new = info.bytes_acked < latest.bytes_acked
                || info.bytes_received < latest.bytes_received
                || info.data_segs_out < latest.data_segs_out;
            known.generation += u32::from(is_new);
        }
        if at < first || at - first > 1e9 {
            self.back += 1;
            return;
        }
        known.latest = Some((at, info));
        let key = (ends.0, ends.1, known.generation);
        if !congestion.is_empty() && known.congestion != congestion {
            congestion.clone_into(&mut known.congestion);
            self.congestions.insert(key, congestion.to_owned());
        } else {
            self.congestions.entry(key).or_insert_with(|| known.congestion.clone());
        }
        self.states.push(key, kernel::state(Time::ZERO + Span::from_secs_f64(at - first), info, bbr));
    }

    fn finish(self, path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
        let invalid = |what: &str| Error::Invalid(format!("{}: {what}", path.display()));
        let Some(first) = self.first else {
            let what = match self.named {
                0 => "no state of a connection: run ss with -t and -i",
                _ => "all connections have host or service names: run ss with -n",
            };
            return Err(invalid(what));
        };
        let interval = match (self.stamp, all.options.interval) {
            (Some(_), _) => None,
            (None, Some(interval)) => Some(interval),
            (None, None) => {
                let what = "has no times: run `date +%s.%N` before each ss, or give the time between two snapshots (--interval 100ms)";
                return Err(invalid(what));
            }
        };
        if self.stamp.is_some() && all.options.interval.is_some() {
            all.note(path, "has times: --interval is not used");
        }
        for (count, what) in [
            (self.other, "lines are not of ss"),
            (self.named, "states are of connections with host or service names and were left out: run ss with -n"),
            (self.left_out, "states are of connections beyond the first 16384 and were left out"),
            (self.early, "states stand before the first time and were left out"),
            (self.back, "states are not later than the one before of their connection and were left out"),
        ] {
            if count > 0 {
                all.note(path, format_args!("{count} {what}"));
            }
        }
        if self.states.stride() > 1 {
            all.note(path, format_args!("of every {} states of a connection one is kept", self.states.stride()));
        }
        let (mut once, mut idle, mut windowless, mut ends_s) = (0u64, 0u64, 0u64, 0.0f64);
        let mut point = None;
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for (key, mut states) in self.states.into_iter() {
            if let Some(interval) = interval {
                for state in &mut states {
                    let number = state.at.as_nanos() / 1_000_000_000;
                    state.at = Time::ZERO + interval * number;
                }
            }
            let [_, .., last] = &states[..] else {
                once += 1;
                continue;
            };
            let at_sender = kernel::are_of_sender(&states);
            if kernel::grown(&states, at_sender) == 0 {
                idle += 1;
                continue;
            }
            let (from, to) = if at_sender { (key.0, key.1) } else { (key.1, key.0) };
            let name = format!("tcp {from} > {to}");
            if !all.options.wants(&name) {
                continue;
            }
            ends_s = ends_s.max(last.at.as_secs_f64());
            let point = *point.get_or_insert_with(|| all.point(&[("file", path.display().to_string())]));
            // No kernel has a window of 0: one that could not be read.
            let is_whole = states.iter().all(|state| state.info.snd_cwnd > 0);
            windowless += u64::from(!is_whole);
            let (from, to) = (from.ip().to_string(), to.ip().to_string());
            let conn = names.entry(name.clone()).or_default();
            let one = Connection {
                flow: &name,
                conn: *conn,
                from: &from,
                to: &to,
                // That of a receiver is not its sender's.
                congestion: self.congestions.get(&key).filter(|_| at_sender).map_or("", String::as_str),
                at_sender,
                has_senders_rtt: at_sender,
                is_whole,
                has_state: false,
                bytes: None,
            };
            *conn += 1;
            kernel::push(all, point, &one, states);
        }
        for (count, what) in [(once, "seen once only"), (idle, "without data")] {
            if count > 0 {
                all.note(path, format_args!("{count} connections {what} are left out"));
            }
        }
        if windowless > 0 {
            let what = "connections have congestion windows that cannot be read: windows and segments are missing";
            all.note(path, format_args!("{windowless} {what}"));
        }
        if let Some(point) = point {
            all.measured_s += ends_s;
            if self.is_calendar {
                all.anchor(point, first, ends_s);
            }
        }
        Ok(())
    }
}

/// The ends of a socket.
enum Ends {
    Known(SocketAddr, SocketAddr),
    /// Of a host or a port that ss gave a name, without `-n` or with `-r`.
    Names,
    /// It is not connected.
    None,
}

/// Takes the addresses of a socket from the beginning of a line. Returns what is behind them as well.
fn addresses(line: &str) -> Option<(Ends, &str)> {
    let mut rest = line;
    let mut word = || -> Option<&str> {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        (!word.is_empty()).then_some(word)
    };
    let mut first = word()?;
    if first == "tcp" {
        first = word()?;
    }
    let state = STATES.contains(&first).then_some(first);
    if state.is_some() {
        first = word()?;
    }
    first.parse::<u64>().ok()?;
    word()?.parse::<u64>().ok()?;
    let (local, peer) = (word()?, word()?);
    if !local.contains(':') || !peer.contains(':') {
        return None;
    }
    let is_open = |text: &str| text.ends_with(":*");
    let ends = match address(local).zip(address(peer)) {
        _ if state == Some("LISTEN") || is_open(local) || is_open(peer) => Ends::None,
        Some((local, peer)) => Ends::Known(local, peer),
        None => Ends::Names,
    };
    Some((ends, rest))
}

/// An address with its port, without the interface that ss adds after `%`. Without `-n`, ports have names.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, number) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.split('%').next()?.trim_end_matches(']');
    // A socket of IPv6 shows addresses of IPv4 as mapped ones (RFC 4291, section 2.5.5.2); its packets are those of IPv4.
    let host: IpAddr = host.parse().ok()?;
    Some(SocketAddr::new(host.to_canonical(), port(number)?))
}

/// Reads the state of a connection, BBR's, and the name of the congestion control; empty if there is none.
fn state(text: &str) -> (TcpInfo, Option<BbrInfo>, &str) {
    let mut info = TcpInfo { snd_ssthresh: u32::MAX, ..TcpInfo::default() };
    let (mut bbr, mut congestion, mut before) = (None, "", "");
    let micros = |ms: &str| ms.parse::<f64>().map_or(0, |ms| (ms * 1e3) as u32);
    let small = |digits: &str| digits.parse::<u32>().unwrap_or(0);
    let large = |digits: &str| digits.parse::<u64>().unwrap_or(0);
    // Of `4ms(12.5%)`, in microseconds.
    let busy = |text: &str| text.split_once("ms").map_or(0, |(ms, _)| large(ms).saturating_mul(1_000));
    let mut is_modern = false;
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once(':') else {
            match before {
                "pacing_rate" => info.pacing_rate = rate(word),
                "delivery_rate" => info.delivery_rate = rate(word),
                _ => {}
            }
            info.flags |= u8::from(word == "app_limited");
            before = word;
            continue;
        };
        match key {
            // The congestion control is the last word before these.
            "wscale" | "rto"
                if congestion.is_empty() && !["ts", "sack", "ecn", "ecnseen", "fastopen", ""].contains(&before) =>
            {
                congestion = if before.len() <= 16 { before } else { "" };
            }
            _ => {}
        }
        before = "";
        let two = |separator| value.split_once(separator).unwrap_or((value, ""));
        match key {
            "rto" => info.rto = micros(value),
            "backoff" => info.backoff = value.parse().unwrap_or(0),
            "rtt" => (info.rtt, info.rttvar) = (micros(two('/').0), micros(two('/').1)),
            "mss" => info.snd_mss = small(value),
            "pmtu" => info.pmtu = small(value),
            "rcvmss" => info.rcv_mss = small(value),
            "advmss" => info.advmss = small(value),
            "cwnd" => info.snd_cwnd = small(value),
            "ssthresh" => info.snd_ssthresh = small(value),
            "bytes_sent" => (info.bytes_sent, is_modern) = (Some(large(value)), true),
            "bytes_retrans" => info.bytes_retrans = Some(large(value)),
            "bytes_acked" => info.bytes_acked = large(value),
            "bytes_received" => info.bytes_received = large(value),
            "segs_out" => info.segs_out = small(value),
            "segs_in" => info.segs_in = small(value),
            "data_segs_out" => info.data_segs_out = small(value),
            "data_segs_in" => info.data_segs_in = small(value),
            "delivered" => (info.delivered, is_modern) = (Some(small(value)), true),
            "busy" => (info.busy_time, is_modern) = (Some(busy(value)), true),
            "rwnd_limited" => info.rwnd_limited = Some(busy(value)),
            "sndbuf_limited" => info.sndbuf_limited = Some(busy(value)),
            "unacked" => info.unacked = small(value),
            "retrans" => (info.retrans, info.total_retrans) = (small(two('/').0), small(two('/').1)),
            "lost" => info.lost = small(value),
            "sacked" => info.sacked = small(value),
            "reordering" => info.reordering = small(value),
            "dsack_dups" => info.dsack_dups = Some(small(value)),
            "reord_seen" => info.reord_seen = Some(small(value)),
            "rcv_ooopack" => info.rcv_ooopack = Some(small(value)),
            "rcv_rtt" => info.rcv_rtt = micros(value),
            "rcv_space" => info.rcv_space = small(value),
            "notsent" => info.notsent_bytes = small(value),
            "minrtt" => info.min_rtt = micros(value),
            "snd_wnd" => info.snd_wnd = Some(small(value)),
            "bbr" => bbr = bbr_state(value),
            _ => {}
        }
    }
    if is_modern {
        // A kernel that counts these, and an ss that leaves out what is 0.
        for count in [&mut info.busy_time, &mut info.rwnd_limited, &mut info.sndbuf_limited] {
            count.get_or_insert(0);
        }
    }
    (info, bbr, congestion)
}

/// Bytes per second of `1.2Mbps`, `800Kbps` or `123456bps`.
fn rate(text: &str) -> u64 {
    let Some(number) = text.strip_suffix("bps") else { return 0 };
    let (number, scale) = match number.as_bytes().last() {
        Some(b'K') => (&number[..number.len() - 1], 1e3),
        Some(b'M') => (&number[..number.len() - 1], 1e6),
        Some(b'G') => (&number[..number.len() - 1], 1e9),
        _ => (number, 1.0),
    };
    number.parse::<f64>().map_or(0, |bits| (bits * scale / 8.0) as u64)
}

/// `(bw:24803540768bps,mrtt:0.018,pacing_gain:2.88672,cwnd_gain:2.88672)`.
fn bbr_state(text: &str) -> Option<BbrInfo> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let field = |name: &str| inner.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix(':'));
    let number = |name| field(name).and_then(|digits| digits.parse::<f64>().ok()).filter(|number| number.is_finite());
    Some(BbrInfo {
        bandwidth: rate(field("bw")?),
        min_rtt: number("mrtt").map(|ms| (ms * 1e3) as u32),
        pacing_gain: number("pacing_gain").unwrap_or(0.0),
        cwnd_gain: number("cwnd_gain").unwrap_or(0.0),
    })
}
