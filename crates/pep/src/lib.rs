//! The lightweight PEP (performance-enhancing proxy): where two domains meet, it watches TCP pass and tells the sender what
//! has passed (PEP-ACK) and what is missing before that (PEP-NACK). It splits nothing, holds nothing up and keeps no
//! payload; who does not understand it loses nothing.
//!
//! Source: Z. Krämer et al., "Towards Multi-Domain Congestion Control in Next-Generation Networks" (WCNC 2019), section
//! IV-A, which leaves formats and rules open; those are this project's, in `docs/src/pep-messages.md`.
//!
//! [`Pep`] does no input or output. Its driver calls, with a `now` that never goes back,
//!
//! - [`Pep::on_data`] for each segment that passes from the sender's side to the receiver's, and sends back what it gives;
//! - [`Pep::on_reply`] for each segment that passes the other way.
//!
//! What passes may be forged: `docs/src/threat-model.md` says by whom, and what that does.
//!
//! Which flow a segment belongs to is the driver's to say: a key for each, the same in both directions.

mod arrival;
mod flow;
mod newcomer;
mod table;

pub use arrival::Arrival;

use flow::Flow;
use newcomer::{Newcomer, Place, Verdict, announces};
use table::Table;
use units::{Span, Time};
use wire::report::Key;
use wire::{Flags, Segment, Timestamps};

/// How long a flow that both sides have closed is remembered at most: what is retransmitted then needs no report.
const CLOSING: Span = Span::from_secs(10);

/// A PEP's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Flows that are remembered at most; then the one that has been idle for longest goes.
    pub flows: usize,
    /// A report for so many segments of data, unless something is missing or a burst ends.
    pub every: u32,
    /// Also to senders that have not announced that they understand reports.
    pub all: bool,
    /// Shows senders with the same key that reports are from here.
    pub key: Option<Key>,
}

/// Flows that wait to be confirmed, at most.
const NEWCOMERS: usize = 4096;

impl Default for Config {
    fn default() -> Config {
        Config { flows: 65_536, every: 2, all: false, key: None }
    }
}

/// What a PEP has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments that carried data, and their IP packets' bytes.
    pub data: u64,
    /// See `data`.
    pub data_bytes: u64,
    /// Reports, those of them that named something missing, and the bytes of their IP packets.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// See `reports`.
    pub report_bytes: u64,
    /// Reports that were due and not sent, because they would have been more than what came.
    pub withheld: u64,
    /// Flows that are remembered now, and those that had to go for others.
    pub flows: u64,
    /// See `flows`.
    pub evicted: u64,
}

impl core::ops::Add for Stats {
    type Output = Stats;
    fn add(self, other: Stats) -> Stats {
        Stats {
            data: self.data + other.data,
            data_bytes: self.data_bytes + other.data_bytes,
            reports: self.reports + other.reports,
            nacks: self.nacks + other.nacks,
            report_bytes: self.report_bytes + other.report_bytes,
            withheld: self.withheld + other.withheld,
            flows: self.flows + other.flows,
            evicted: self.evicted + other.evicted,
        }
    }
}

/// See the crate's documentation.
#[derive(Debug)]
pub struct Pep<K> {
    config: Config,
    flows: Table<K, Flow>,
    newcomers: Table<Place<K>, Newcomer>,
    stats: Stats,
}

impl<K: Ord + Copy> Pep<K> {
    /// A PEP that has seen nothing yet.
    pub fn new(config: Config) -> Pep<K> {
        Pep { config, flows: Table::default(), newcomers: Table::default(), stats: Stats::default() }
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        Stats { flows: self.flows.len() as u64, ..self.stats }
    }

    /// A segment of the sender passes, in an IP packet of `packet_len` bytes; the report to send back, if any.
    pub fn on_data(&mut self, key: K, segment: &Segment, packet_len: u32, now: Time) -> Option<Segment> {
        self.on_arrival(key, segment, &Arrival { packets: 1, packet_len, via: 0 }, now)
    }

    /// The same for a segment that came in another way.
    pub fn on_arrival(&mut self, key: K, segment: &Segment, arrival: &Arrival, now: Time) -> Option<Segment> {
        self.forget_closed(now);
        if segment.flags.has(Flags::RST) {
            if self.flow(&key, now).is_some_and(|flow| flow.is_next(segment.seq)) {
                self.flows.remove(&key);
            }
            return None;
        }
        let timestamps = segment.timestamps?;
        if segment.flags.has(Flags::SYN) {
            let next = segment.seq.wrapping_add(segment.seq_len());
            match self.flow(&key, now) {
                Some(flow) if flow.starts_at(next) => flow.announced |= announces(segment),
                _ => self.note((key, Some(next)), Newcomer::new(segment, timestamps, arrival, now)),
            }
            return None;
        }
        if segment.seq_len() == 0 {
            return None;
        }
        self.stats.data += u64::from(arrival.packets);
        self.stats.data_bytes += u64::from(arrival.packet_len);
        let Config { every, all, key: secret, .. } = self.config;
        let flow = self.flows.touch(&key).filter(|flow| !is_over(flow, now) && flow.owns(segment, timestamps));
        let Some(flow) = flow else {
            self.note((key, None), Newcomer::new(segment, timestamps, arrival, now));
            return None;
        };
        flow.announced |= announces(segment);
        if !flow.pass(segment, timestamps.value, arrival, now) || !flow.is_due(every, all) {
            return None;
        }
        let news = flow.news(flow::ranges(secret))?;
        let ip_header = arrival.packet_len.saturating_sub(segment.header_len() + u32::from(segment.len));
        let Some((report, len)) = flow.report(&news, secret, ip_header) else {
            self.stats.withheld += 1;
            return None;
        };
        self.stats.reports += 1;
        self.stats.nacks += u64::from(news.is_nack());
        self.stats.report_bytes += u64::from(len);
        Some(report)
    }

    /// A segment of the receiver passes.
    pub fn on_reply(&mut self, key: K, segment: &Segment, now: Time) {
        if segment.flags.has(Flags::RST) {
            if self.flow(&key, now).is_some_and(|flow| flow.is_next_reply(segment.seq)) {
                self.flows.remove(&key);
            }
            return;
        }
        let Some(timestamps) = segment.timestamps.filter(|_| segment.flags.has(Flags::ACK)) else { return };
        match self.flow(&key, now) {
            Some(flow) if flow.is_answered_by(segment, timestamps) => flow.reply(segment, timestamps, now),
            _ => self.confirm(key, segment, timestamps, now),
        }
    }

    /// The flow, if it is remembered, which is the newest from now on.
    #[inline]
    fn flow(&mut self, key: &K, now: Time) -> Option<&mut Flow> {
        self.flows.touch(key).filter(|flow| !is_over(flow, now))
    }

    /// Notes what may become a flow.
    #[cold]
    fn note(&mut self, place: Place<K>, newcomer: Newcomer) {
        if let Some(there) = self.newcomers.touch(&place) {
            return there.meet(&newcomer);
        }
        if self.newcomers.len() >= NEWCOMERS
            && let Some((&oldest, _)) = self.newcomers.oldest()
        {
            self.newcomers.remove(&oldest);
        }
        self.newcomers.insert(place, newcomer);
    }

    /// A segment of the receiver may answer a newcomer.
    #[cold]
    fn confirm(&mut self, key: K, segment: &Segment, timestamps: Timestamps, now: Time) {
        for place in [(key, Some(segment.ack)), (key, None)] {
            let Some(&newcomer) = self.newcomers.get(&place) else { continue };
            let verdict = newcomer.verdict(segment, timestamps);
            if verdict == Verdict::Nothing {
                continue;
            }
            self.newcomers.remove(&place);
            if verdict == Verdict::Confirmed {
                let mut flow = Flow::new(&newcomer, segment, timestamps, now);
                match self.flows.touch(&key) {
                    Some(known) => {
                        // The same connection, which was lost sight of, or another one.
                        flow.announced |= known.announced && !newcomer.syn && !is_over(known, now);
                        *known = flow;
                    }
                    None => self.remember(key, flow),
                }
                return;
            }
        }
    }

    /// Forgets the flow that has been idle for longest, if it is over. One at each packet is enough.
    fn forget_closed(&mut self, now: Time) {
        if let Some((&key, flow)) = self.flows.oldest()
            && is_over(flow, now)
        {
            self.flows.remove(&key);
        }
    }

    /// A flow that is not remembered yet.
    fn remember(&mut self, key: K, flow: Flow) {
        if self.flows.len() >= self.config.flows.max(1)
            && let Some((&key, _)) = self.flows.oldest()
        {
            self.flows.remove(&key);
            self.stats.evicted += 1;
        }
        self.flows.insert(key, flow);
    }
}

/// Whether both sides have closed a flow some time ago.
#[inline]
fn is_over(flow: &Flow, now: Time) -> bool {
    flow.is_closing() && now.saturating_since(flow.seen) > CLOSING
}
