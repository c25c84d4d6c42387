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
//! Which flow a segment belongs to is the driver's to say: a key for each, the same in both directions.

mod flow;
mod table;

use flow::Flow;
use table::Table;
use tcp::segment::{Flags, Options, Segment};
use units::{Span, Time};

/// How long a flow that is closing is remembered at most: what is retransmitted then needs no report.
const CLOSING: Span = Span::from_secs(10);

/// A PEP's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Flows that are remembered at most; then the one that has been idle for longest goes.
    pub flows: usize,
    /// How long an idle flow is remembered.
    pub idle: Span,
    /// A report for so many segments of data, unless something is missing or a burst ends.
    pub every: u32,
    /// Also to senders that have not announced that they understand reports.
    pub all: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { flows: 65_536, idle: Span::from_secs(120), every: 2, all: false }
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
    stats: Stats,
}

impl<K: Ord + Copy> Pep<K> {
    /// A PEP that has seen nothing yet.
    pub fn new(config: Config) -> Pep<K> {
        Pep { config, flows: Table::default(), stats: Stats::default() }
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        Stats { flows: self.flows.len() as u64, ..self.stats }
    }

    /// A segment of the sender passes, in an IP packet of `packet_len` bytes; the report to send back, if any.
    pub fn on_data(&mut self, key: K, segment: &Segment, packet_len: u32, now: Time) -> Option<Segment> {
        self.on_merged(key, segment, 1, packet_len, now)
    }

    /// The same for what a host has merged of so many segments that followed each other (GRO): one report answers them.
    pub fn on_merged(
        &mut self,
        key: K,
        segment: &Segment,
        packets: u32,
        packet_len: u32,
        now: Time,
    ) -> Option<Segment> {
        self.forget_idle(now);
        if segment.flags.has(Flags::RST) || segment.flags.has(Flags::SYN) {
            self.on_control(key, segment, now);
            return None;
        }
        let timestamps = segment.timestamps?;
        if segment.seq_len() == 0 {
            return None;
        }
        let config = &self.config;
        if self.flows.touch(&key).is_none_or(|flow| is_idle(config, flow, now)) {
            // It has been going on for a while.
            self.flows.remove(&key);
            self.remember(key, Flow::new(segment.seq, timestamps.value, false, now));
        }
        let flow = self.flows.newest()?;
        self.stats.data += u64::from(packets);
        self.stats.data_bytes += u64::from(packet_len);
        flow.pass(segment, timestamps.value, packets, packet_len, now);
        if !flow.is_due(self.config.every, self.config.all) {
            return None;
        }
        let news = flow.news()?;
        let ip_header = packet_len.saturating_sub(segment.header_len() + u32::from(segment.len));
        let Some((report, len)) = flow.report(&news, ip_header) else {
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
        let Some(flow) = self.flows.touch(&key) else { return };
        if is_idle(&self.config, flow, now) {
            self.flows.remove(&key);
        } else if segment.flags.has(Flags::RST) {
            if flow.is_next_reply(segment.seq) {
                self.flows.remove(&key);
            }
        } else if !segment.flags.has(Flags::SYN) {
            flow.reply(segment, now);
        }
    }

    /// A connection ends at once or begins, or its SYN is sent again.
    #[cold]
    fn on_control(&mut self, key: K, segment: &Segment, now: Time) {
        if self.flows.get(&key).is_some_and(|flow| is_idle(&self.config, flow, now)) {
            self.flows.remove(&key);
        }
        if segment.flags.has(Flags::RST) {
            if self.flows.get(&key).is_some_and(|flow| flow.is_next(segment.seq)) {
                self.flows.remove(&key);
            }
            return;
        }
        let Options::Syn(options) = segment.options else { return };
        let Some(timestamps) = segment.timestamps else {
            self.flows.remove(&key);
            return;
        };
        let next = segment.seq.wrapping_add(segment.seq_len());
        match self.flows.touch(&key) {
            // One that is sent again carries no announcement.
            Some(flow) if flow.starts_at(next) => flow.announced |= options.reports,
            Some(flow) => *flow = Flow::new(next, timestamps.value, options.reports, now),
            None => self.remember(key, Flow::new(next, timestamps.value, options.reports, now)),
        }
    }

    /// Forgets the flow that has been idle for longest, if that is for too long. One at each packet is enough.
    fn forget_idle(&mut self, now: Time) {
        if let Some((&key, flow)) = self.flows.oldest()
            && is_idle(&self.config, flow, now)
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

/// Whether a flow has been idle for too long to be remembered.
#[inline]
fn is_idle(config: &Config, flow: &Flow, now: Time) -> bool {
    let idle = now.saturating_since(flow.seen);
    idle > config.idle || (idle > CLOSING && flow.is_closing())
}
