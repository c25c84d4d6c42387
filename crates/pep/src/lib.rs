//! The lightweight PEP (performance-enhancing proxy): between two domains, it observes passing TCP segments and reports to
//! the sender which data has passed (PEP-ACK) and which is missing (PEP-NACK). It splits no connection, delays nothing and
//! stores no payload. Hosts that do not understand its reports ignore them.
//!
//! Source: Z. Krämer et al., "Towards Multi-Domain Congestion Control in Next-Generation Networks" (WCNC 2019), section
//! IV-A, which leaves formats and rules open; those are this project's, in `docs/src/pep-messages.md`.
//!
//! [`Pep`] does no I/O. Its driver calls, with a `now` that never decreases:
//!
//! - [`Pep::on_data`] for each segment from the sender's side, and sends back the report that it returns;
//! - [`Pep::on_reply`] for each segment from the receiver's side.
//!
//! Segments may be forged: `docs/src/threat-model.md` describes by whom, and with which effect.
//!
//! The driver identifies flows by a key, the same in both directions.

mod arrival;
mod flow;
mod newcomer;
mod table;

pub use arrival::Arrival;

use flow::Flow;
use newcomer::{Newcomer, Opening, Place, Verdict, announces};
use table::Table;
use units::{Span, Time};
use wire::report::Key;
use wire::{Flags, Options, Segment, Timestamps};

/// Maximum lifetime of a flow that both sides have closed: later retransmissions need no report.
const CLOSING: Span = Span::from_secs(10);

/// A PEP's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Maximum number of flows. The flow idle for longest is evicted for a new one.
    pub flows: usize,
    /// Data segments per report, unless data is missing or a burst ends.
    pub every: u32,
    /// Whether to report to senders that have not announced that they understand reports, too.
    pub all: bool,
    /// The key that authenticates reports to senders with the same key.
    pub key: Option<Key>,
}

/// Maximum number of unconfirmed flows: more than the minimum-size segments that a processor forwards in the time of an answer.
const NEWCOMERS: usize = 65_536;
/// Maximum number of SYNs of receivers that wait for an answer.
const OPENINGS: usize = 16_384;

impl Default for Config {
    fn default() -> Config {
        Config { flows: 65_536, every: 2, all: false, key: None }
    }
}

/// A PEP's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments that carried data, and their IP packets' bytes.
    pub data: u64,
    /// See `data`.
    pub data_bytes: u64,
    /// Reports, reports that named missing data, and the bytes of their IP packets.
    pub reports: u64,
    /// See `reports`.
    pub nacks: u64,
    /// See `reports`.
    pub report_bytes: u64,
    /// Reports withheld because they would have exceeded the bytes received from the sender's side.
    pub withheld: u64,
    /// Current flows, and evicted ones.
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
    openings: Table<K, Opening>,
    stats: Stats,
}

impl<K: Ord + Copy> Pep<K> {
    /// Creates a PEP without flows.
    pub fn new(config: Config) -> Pep<K> {
        Pep {
            config,
            flows: Table::default(),
            newcomers: Table::default(),
            openings: Table::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        Stats { flows: self.flows.len() as u64, ..self.stats }
    }

    /// Processes a segment of the sender in an IP packet of `packet_len` bytes. Returns the report to send back, if any.
    pub fn on_data(&mut self, key: K, segment: &Segment, packet_len: u32, now: Time) -> Option<Segment> {
        self.on_arrival(key, segment, &Arrival { packets: 1, packet_len, via: 0 }, now)
    }

    /// The same with all details of the arrival.
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
                _ => self.meet(key, segment, timestamps, &Newcomer::new(segment, timestamps, arrival, now)),
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
        if announces(segment) {
            flow.announce();
        }
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

    /// Processes a segment of the receiver.
    pub fn on_reply(&mut self, key: K, segment: &Segment, now: Time) {
        if segment.flags.has(Flags::RST) {
            if self.flow(&key, now).is_some_and(|flow| flow.is_next_reply(segment.seq)) {
                self.flows.remove(&key);
            }
            return;
        }
        let Some(timestamps) = segment.timestamps else { return };
        if !segment.flags.has(Flags::ACK) {
            if segment.flags.has(Flags::SYN) {
                self.open(key, &Opening::new(segment, timestamps));
            }
            return;
        }
        if let Options::Report(report) = segment.options {
            // Another PEP's, nearer to the receiver. One without our key's tag may be anybody's.
            let believed = self.config.key.is_none_or(|key| report.is_authentic(key, segment.ack, timestamps));
            if believed && let Some(flow) = self.flow(&key, now).filter(|flow| flow.is_answered_by(segment, timestamps))
            {
                flow.yield_to_inner();
            }
            return;
        }
        match self.flow(&key, now) {
            Some(flow) if flow.is_answered_by(segment, timestamps) => flow.reply(segment, timestamps, now),
            _ => self.confirm(key, segment, timestamps, now),
        }
    }

    /// Returns the flow, if it is known, and makes it the most recent one.
    #[inline]
    fn flow(&mut self, key: &K, now: Time) -> Option<&mut Flow> {
        self.flows.touch(key).filter(|flow| !is_over(flow, now))
    }

    /// Records a SYN of the receiver.
    #[cold]
    fn open(&mut self, key: K, opening: &Opening) {
        if let Some(there) = self.openings.touch(&key) {
            return there.meet(opening);
        }
        make_room(&mut self.openings, OPENINGS);
        self.openings.insert(key, *opening);
    }

    /// Records a SYN of the sender: beside that of the receiver if it answers one.
    #[cold]
    fn meet(&mut self, key: K, segment: &Segment, timestamps: Timestamps, newcomer: &Newcomer) {
        let opening = self.openings.touch(&key);
        if !opening.is_some_and(|opening| opening.take_answer(segment, timestamps, newcomer)) {
            self.note((key, Some(newcomer.next)), *newcomer);
        }
    }

    /// Records a newcomer.
    #[cold]
    fn note(&mut self, place: Place<K>, newcomer: Newcomer) {
        if let Some(there) = self.newcomers.touch(&place) {
            return there.meet(&newcomer);
        }
        make_room(&mut self.newcomers, NEWCOMERS);
        self.newcomers.insert(place, newcomer);
    }

    /// Checks whether a segment of the receiver answers a newcomer.
    #[cold]
    fn confirm(&mut self, key: K, segment: &Segment, timestamps: Timestamps, now: Time) {
        if let Some(&opening) = self.openings.get(&key)
            && let Some(answer) = opening.confirmed(segment, timestamps)
        {
            self.openings.remove(&key);
            return self.begin(key, &answer, Flow::new(&answer, Some(&opening), segment, timestamps, now), now);
        }
        for place in [(key, Some(segment.ack)), (key, None)] {
            let Some(&newcomer) = self.newcomers.get(&place) else { continue };
            let verdict = newcomer.verdict(segment, timestamps);
            if verdict == Verdict::Nothing {
                continue;
            }
            self.newcomers.remove(&place);
            if verdict == Verdict::Confirmed {
                return self.begin(key, &newcomer, Flow::new(&newcomer, None, segment, timestamps, now), now);
            }
        }
    }

    /// Begins the flow of a confirmed newcomer.
    fn begin(&mut self, key: K, newcomer: &Newcomer, mut flow: Flow, now: Time) {
        match self.flows.touch(&key) {
            Some(known) => {
                // The same connection, which was lost sight of, or another one.
                flow.announced |= known.announced && !newcomer.syn && !is_over(known, now);
                *known = flow;
            }
            None => self.remember(key, flow),
        }
    }

    /// Removes the flow idle for longest, if it is over. One per packet is enough.
    fn forget_closed(&mut self, now: Time) {
        if let Some((&key, flow)) = self.flows.oldest()
            && is_over(flow, now)
        {
            self.flows.remove(&key);
        }
    }

    /// Adds a flow.
    fn remember(&mut self, key: K, flow: Flow) {
        if self.flows.len() >= self.config.flows
            && let Some((&key, _)) = self.flows.oldest()
        {
            self.flows.remove(&key);
            self.stats.evicted += 1;
        }
        self.flows.insert(key, flow);
    }
}

/// Removes the entry unused for longest, if there are so many.
fn make_room<K: Ord + Copy, V>(table: &mut Table<K, V>, entries: usize) {
    if table.len() >= entries
        && let Some((&oldest, _)) = table.oldest()
    {
        table.remove(&oldest);
    }
}

/// Returns whether both sides closed a flow some time ago.
#[inline]
fn is_over(flow: &Flow, now: Time) -> bool {
    flow.is_closing() && now.saturating_since(flow.seen) > CLOSING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_unused_for_longest_makes_room_when_a_table_is_full() {
        let mut table = Table::default();
        for key in 0..5 {
            make_room(&mut table, 3);
            table.insert(key, ());
            assert_eq!(table.len(), (key + 1).min(3));
        }
        assert_eq!(table.oldest(), Some((&2, &())));
    }

    #[test]
    fn syns_of_receivers_take_a_bounded_number_of_places() {
        let mut pep = Pep::new(Config::default());
        let timestamps = Some(Timestamps { value: 1, echo: 0 });
        for key in 0..OPENINGS + 10 {
            let syn = Segment { flags: Flags::SYN, timestamps, ..Segment::default() };
            pep.on_reply(key, &syn, Time::ZERO);
        }
        assert_eq!((pep.openings.len(), pep.openings.oldest().map(|(key, _)| *key)), (OPENINGS, Some(10)));
    }

    fn segment(seq: u32, ack: u32, len: u16, flags: Flags, value: u32, echo: u32) -> Segment {
        let timestamps = Some(Timestamps { value, echo });
        Segment { seq, ack, window: 1_000, len, flags, timestamps, options: Options::default() }
    }

    /// A sender's SYN that announces itself passes at `value`, and is answered.
    fn open(pep: &mut Pep<u32>, key: u32, value: u32) {
        let options = wire::SynOptions { mss: 1460, window_scale: None, sack_permitted: true, reports: true };
        let syn = Segment { options: Options::Syn(options), ..segment(999, 0, 0, Flags::SYN, value, 0) };
        assert_eq!(pep.on_data(key, &syn, 60, Time::ZERO), None);
        pep.on_reply(key, &segment(500, 1_000, 0, Flags::ACK, 50, value), Time::ZERO);
    }

    #[test]
    fn newcomers_take_a_bounded_number_of_places() {
        let mut pep = Pep::new(Config::default());
        for key in 0..NEWCOMERS + 10 {
            assert_eq!(pep.on_data(key, &segment(1, 1, 100, Flags::ACK, 1, 1), 152, Time::ZERO), None);
        }
        let oldest = pep.newcomers.oldest().map(|((key, _), _)| *key);
        assert_eq!((pep.newcomers.len(), oldest), (NEWCOMERS, Some(10)));
    }

    #[test]
    fn what_is_confirmed_or_refuted_leaves_its_place() {
        let mut pep = Pep::new(Config::default());
        let data = |value| segment(1_000, 1, 100, Flags::ACK, value, 1);
        let reply = |echo| segment(1, 1_100, 0, Flags::ACK, 50, echo);
        // The receiver answers something else: the next newcomer need not wait for a second.
        pep.on_data(1, &data(10), 152, Time::ZERO);
        pep.on_reply(1, &reply(11), Time::ZERO);
        assert_eq!((pep.newcomers.len(), pep.stats().flows), (0, 0));
        pep.on_data(1, &data(12), 152, Time::ZERO);
        pep.on_reply(1, &reply(12), Time::ZERO);
        assert_eq!((pep.newcomers.len(), pep.stats().flows), (0, 1));
        // A receiver's SYN, and the sender's answer beside it.
        pep.on_reply(2, &segment(499, 0, 0, Flags::SYN, 40, 0), Time::ZERO);
        pep.on_data(2, &segment(999, 500, 0, Flags::SYN | Flags::ACK, 10, 40), 60, Time::ZERO);
        assert_eq!((pep.newcomers.len(), pep.openings.len()), (0, 1));
        pep.on_reply(2, &segment(500, 1_000, 0, Flags::ACK, 41, 10), Time::ZERO);
        assert_eq!((pep.openings.len(), pep.stats().flows), (0, 2));
    }

    #[test]
    fn what_is_neither_a_syn_nor_an_acknowledgement_opens_nothing() {
        let mut pep = Pep::new(Config::default());
        for flags in [Flags(0), Flags::FIN, Flags::PSH] {
            pep.on_reply(1, &segment(499, 0, 0, flags, 40, 0), Time::ZERO);
        }
        assert_eq!(pep.openings.len(), 0);
    }

    #[test]
    fn a_connection_that_was_over_for_long_is_not_served_and_passes_nothing_on() {
        let mut pep = Pep::new(Config::default());
        // The one that was idle for longest is another one, which goes on.
        open(&mut pep, 2, 10);
        open(&mut pep, 1, 10);
        let fin = Flags::ACK | Flags::FIN;
        pep.on_data(1, &segment(1_000, 500, 10, fin, 11, 50), 62, Time::ZERO);
        pep.on_reply(1, &segment(500, 1_011, 0, fin, 51, 11), Time::ZERO);
        let data = segment(1_000, 501, 10, Flags::ACK | Flags::PSH, 12, 51);
        let later = Time::ZERO + CLOSING + Span::from_nanos(1);
        // Data of the same addresses and ports is that of a newcomer, which has announced nothing.
        let mut pushed = segment(1_011, 501, 100, Flags::ACK | Flags::PSH, 12, 51);
        assert_eq!((pep.on_data(1, &data, 152, later), pep.on_data(1, &pushed, 152, later)), (None, None));
        pep.on_reply(1, &segment(501, 1_010, 0, Flags::ACK, 52, 12), later);
        for _ in 0..3 {
            assert_eq!(pep.on_data(1, &pushed, 152, later), None);
            pushed.seq += 100;
            pep.on_reply(1, &segment(501, pushed.seq, 0, Flags::ACK, 52, 12), later);
        }
        let announced = |key: u32| pep.flows.get(&key).map(|flow| flow.announced);
        assert_eq!((announced(1), announced(2), pep.stats().flows), (Some(false), Some(true), 2));
    }
}
