//! One direction of a TCP connection, by the definitions of [`super`]: beside its [`Stream`], which tells data from
//! retransmissions and takes round-trip times.
//!
//! Bounded: of more retransmissions, holes or timestamps than are kept, the oldest are forgotten, and then some spurious
//! retransmissions, reorderings or round-trip times are not recognized as such.

use std::collections::VecDeque;

use units::{Distribution, Span, Time};
use wire::{Block, Flags, Options, Segment, SynOptions};

use super::rows::{Item, Row, Rows};
use super::{Marks, SHORTEST_TIMEOUT, Tcp, TcpCounters};
use crate::ranges::Ranges;
use crate::stream::{Late, Stream};

/// Retransmissions, holes and timestamps that are remembered.
const MOST_RETRANSMISSIONS: usize = 1_024;
const MOST_HOLES: usize = 64;
const MOST_TIMESTAMPS: usize = 1_024;
/// Segments beyond a hole after which it is lost (RFC 6675: `DupThresh`).
const DUP_THRESH: u64 = 3;
/// The longest way to both ends and back that is assumed if the handshake was not seen.
const UNKNOWN_ROUND_TRIP: Span = Span::from_millis(3);
/// The segment size where none was seen.
const USUAL_MSS: u16 = 1_460;

/// Data that was not seen although later data was.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    /// When the first segment beyond it came, and its timestamp.
    since: Time,
    stamp: Option<u32>,
}

/// A retransmission whose fate may still show.
#[derive(Clone, Copy, Debug)]
struct Resent {
    start: u64,
    end: u64,
    stamp: Option<u32>,
    is_spurious: bool,
}

/// One direction of a connection. For a packet of this direction, [`Track::sent`] before [`Stream::entered`]; for one of
/// the other, [`Track::heard`] before [`Stream::acknowledged`]; [`Track::level`] after either.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub(crate) counters: TcpCounters,
    pub(crate) syn: Option<SynOptions>,
    pub(crate) syn_timestamps: bool,
    pub(crate) far_syn: Option<SynOptions>,
    pub(crate) ts_rtts: Distribution,
    pub(crate) min_to_sender: Option<Span>,
    /// The receive window that its sender advertises in the other direction, in bytes; unknown before, or if the
    /// scale is.
    window: Option<u64>,
    /// The largest end of that window, as an offset of the other direction.
    edge: u64,
    /// The extremes of [`Track::window`] after the handshake.
    windows: Option<(u64, u64)>,
    holes: VecDeque<Hole>,
    resent: VecDeque<Resent>,
    /// What was selectively acknowledged, and what is retransmitted and not acknowledged.
    sacked: Ranges,
    again: Ranges,
    /// After a timeout, everything below is lost.
    lost_below: u64,
    /// Duplicate acknowledgements in a row.
    duplicates: u64,
    last: Time,
    /// The first times of the timestamps of its data, and of its acknowledgements.
    stamps: VecDeque<(u32, Time)>,
    echoes: VecDeque<(u32, Time)>,
    pipe: u64,
    pipe_since: Time,
    pipe_area: f64,
    max_pipe: u64,
    rows: Option<Rows>,
    /// Counters at the sample before.
    pub(crate) sampled: (u64, u64),
}

impl Track {
    pub(crate) fn new(rows: bool) -> Track {
        Track { rows: rows.then(Rows::default), ..Track::default() }
    }

    /// Holes below are lost, by what was selectively acknowledged above (RFC 6675: `IsLost`).
    fn lost_by_sack(&self) -> Option<u64> {
        self.sacked.place_below((DUP_THRESH - 1) * self.mss(), DUP_THRESH as usize)
    }

    /// The segment size, with which lost segments are counted.
    fn mss(&self) -> u64 {
        self.syn.map_or(USUAL_MSS, |syn| syn.mss).clamp(48, 9_000).into()
    }

    /// Bytes in flight as RFC 6675 counts them.
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// The receive window that its sender advertises, in bytes.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Rows kept.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::len)
    }

    pub(crate) fn thin(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.thin();
        }
    }

    /// Keeps no more rows.
    pub(crate) fn close_rows(&mut self) {
        if self.row_count() == 0 {
            self.rows = None;
        }
    }

    /// Forgets what only packets to come would need.
    pub(crate) fn release(&mut self) {
        self.holes = VecDeque::new();
        self.resent = VecDeque::new();
        self.stamps = VecDeque::new();
        self.echoes = VecDeque::new();
        self.sacked.clear();
        self.again.clear();
    }

    fn row(&mut self, stream: &Stream, at: Time, (start, end): (u64, u64), item: Item) {
        if let Some(rows) = &mut self.rows {
            rows.push(Row { at, start: stream.relative(start), end: stream.relative(end), item });
        }
    }

    /// Its sender sent a packet. `back` is the other direction; `alone` if there is one vantage point, and `round_trip` the
    /// way from there to both ends and back.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        (stream, back): (&Stream, &Track),
        (tcp, payload, is_probe): (&Segment, u32, bool),
        (alone, round_trip): (bool, Option<Span>),
        now: Time,
    ) -> Marks {
        let flags = tcp.flags;
        let control = flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0 != 0;
        let mut marks = self.advertise(tcp, back, control);
        if let Options::Syn(syn) = tcp.options {
            self.syn = Some(syn);
            self.syn_timestamps = tcp.timestamps.is_some();
        }
        if is_probe {
            return marks | Marks::ZERO_WINDOW_PROBE;
        }
        let stamp = tcp.timestamps.map(|stamps| stamps.value);
        let highest = stream.highest();
        let Some((start, end)) = stream.extent(tcp, payload) else {
            if let Some(first) = stream.first() {
                let probe = stream.offset(tcp.seq) + 1 == highest && stream.acked() == highest && first != tcp.seq;
                return marks.with_if(Marks::KEEP_ALIVE, probe && !control);
            }
            // The first packet of this direction.
            if payload > 0 || flags.has(Flags::SYN) || flags.has(Flags::FIN) {
                marks.add(Marks::DATA);
                self.note_stamp(stamp, now);
                self.row_first(tcp, payload, now);
            }
            self.last = now;
            return marks;
        };
        marks.add(Marks::DATA);
        if payload == 1 && !control && end == highest && stream.acked() == highest {
            return Marks(marks.0 & !Marks::DATA.0 | Marks::KEEP_ALIVE.0);
        }
        marks = marks.with_if(Marks::WINDOW_FULL, payload > 0 && back.window.is_some() && end == back.edge);
        let mut item = Item::Data;
        if start >= highest {
            if start > highest {
                marks.add(Marks::LOST_SEGMENT);
                push(&mut self.holes, MOST_HOLES, Hole { start: highest, end: start, since: now, stamp });
            }
        } else if alone && stream.is_unseen(start, end) && self.is_late(start, stamp, round_trip, now) {
            marks.add(Marks::OUT_OF_ORDER);
            item = Item::OutOfOrder;
        } else {
            marks.add(Marks::RETRANSMISSION);
            item = Item::Retransmission;
            marks = marks.with_if(Marks::SPURIOUS, end <= stream.acked());
            let is_fast = self.duplicates >= DUP_THRESH || self.lost_by_sack().is_some_and(|edge| start < edge);
            let quiet = now.saturating_since(self.last) >= SHORTEST_TIMEOUT;
            if is_fast {
                marks.add(Marks::FAST);
            } else if quiet && start <= stream.acked() && end > stream.acked() && payload > 0 {
                marks.add(Marks::TIMEOUT);
                self.lost_below = highest;
                self.again.clear();
            }
            let is_spurious = marks.any(Marks::SPURIOUS);
            push(&mut self.resent, MOST_RETRANSMISSIONS, Resent { start, end, stamp, is_spurious });
            self.again.insert(start.max(stream.acked()), end);
        }
        self.note_stamp(stamp, now);
        self.last = now;
        self.row(stream, now, (start, end), item);
        marks
    }

    /// Data that has turned out to be of this direction.
    pub(crate) fn late(&mut self, late: &Late, now: Time) {
        self.counters.foreign = self.counters.foreign.saturating_sub(late.segments);
        self.counters.segments += late.segments;
        self.counters.bytes += late.bytes;
        let (start, end) = late.gap;
        if start < end {
            self.counters.gaps += 1;
            push(&mut self.holes, MOST_HOLES, Hole { start, end, since: now, stamp: None });
        }
    }

    /// The row of the first segment, whose number nothing is relative to yet.
    #[cold]
    fn row_first(&mut self, tcp: &Segment, payload: u32, at: Time) {
        let end = u64::from(payload) + u64::from(tcp.flags.has(Flags::SYN)) + u64::from(tcp.flags.has(Flags::FIN));
        if let Some(rows) = &mut self.rows {
            rows.push(Row { at, start: 0, end, item: Item::Data });
        }
    }

    /// Notes the window that a packet advertises.
    #[inline]
    fn advertise(&mut self, tcp: &Segment, back: &Track, control: bool) -> Marks {
        if tcp.flags.has(Flags::RST) {
            return Marks::default();
        }
        let field = u64::from(tcp.window);
        self.window = if tcp.flags.has(Flags::SYN) {
            Some(field)
        } else {
            // A scale counts only if both offered one.
            let scale = |syn: &SynOptions| syn.window_scale;
            match (&self.syn, &back.syn) {
                (Some(own), Some(other)) => Some(field << scale(own).filter(|_| scale(other).is_some()).unwrap_or(0)),
                _ if field == 0 => Some(0),
                _ => None,
            }
        };
        if let Some(window) = self.window.filter(|_| !tcp.flags.has(Flags::SYN)) {
            let (least, most) = self.windows.unwrap_or((window, window));
            self.windows = Some((least.min(window), most.max(window)));
        }
        Marks::default().with_if(Marks::ZERO_WINDOW, field == 0 && !control)
    }

    /// Whether data below the highest that was not seen before was overtaken, rather than sent again.
    fn is_late(&self, start: u64, stamp: Option<u32>, round_trip: Option<Span>, now: Time) -> bool {
        let Some(hole) = self.holes.iter().rev().find(|hole| hole.start <= start && start < hole.end) else {
            return false;
        };
        match (stamp, hole.stamp) {
            (Some(own), Some(beyond)) if own != beyond => (own.wrapping_sub(beyond) as i32) < 0,
            _ => now.saturating_since(hole.since) < round_trip.unwrap_or(UNKNOWN_ROUND_TRIP),
        }
    }

    #[inline]
    fn note_stamp(&mut self, stamp: Option<u32>, now: Time) {
        if let Some(stamp) = stamp {
            note(&mut self.stamps, stamp, now);
        }
    }

    /// The sender received a packet. `bare` if it carries nothing else.
    #[inline]
    pub(crate) fn heard(&mut self, stream: &Stream, (tcp, bare): (&Segment, bool), now: Time) -> Marks {
        let mut marks = Marks::default();
        if !tcp.flags.has(Flags::ACK) || stream.first().is_none() {
            return marks;
        }
        let (ack, acked, highest) = (stream.offset(tcp.ack), stream.acked(), stream.highest());
        if ack > highest {
            marks.add(Marks::ACKED_UNSEEN);
            return marks;
        }
        let echo = tcp.timestamps.map(|stamps| stamps.echo);
        if let Options::Sack(sack) = &tcp.options
            && let [first, others @ ..] = sack.blocks()
        {
            self.selectively(stream, (ack, highest), (first, others), now, &mut marks);
        }
        if ack > acked {
            self.duplicates = 0;
            self.last = now;
            if let Some(echo) = echo {
                if let Some(rtt) = answered(&mut self.stamps, echo, now) {
                    self.ts_rtts.record(rtt);
                }
                if !self.resent.is_empty() {
                    self.eifel((acked, ack), echo);
                }
            }
            if !self.sacked.is_empty() {
                self.sacked.remove_below(ack);
            }
            if !self.again.is_empty() {
                self.again.remove_below(ack);
            }
            while self.holes.front().is_some_and(|hole| hole.end <= ack) {
                self.holes.pop_front();
            }
        } else if bare && ack == acked && highest > ack {
            self.duplicates += 1;
        }
        marks
    }

    /// A row of an acknowledgement, and the edge of the window that `receiver` advertises with it.
    #[inline]
    pub(crate) fn acknowledged(&mut self, stream: &Stream, receiver: &mut Track, tcp: &Segment, now: Time) {
        if !tcp.flags.has(Flags::ACK) || stream.first().is_none() {
            return;
        }
        let ack = stream.offset(tcp.ack);
        let edge = ack + receiver.window.unwrap_or(0);
        // Windows that shrink are rare; the edge that was advertised last counts.
        receiver.edge = edge;
        if self.rows.is_some() && ack <= stream.highest() {
            self.row(stream, now, (ack, edge), Item::Ack);
        }
    }

    /// SACK blocks: the first may be a D-SACK (RFC 2883 section 4).
    #[cold]
    fn selectively(
        &mut self,
        stream: &Stream,
        (ack, highest): (u64, u64),
        (first, others): (&Block, &[Block]),
        now: Time,
        marks: &mut Marks,
    ) {
        let offsets = |block: &Block| {
            let (start, end) = (stream.offset(block.start), stream.offset(block.end));
            (start < end && end <= highest).then_some((start, end))
        };
        let Some((start, end)) = offsets(first) else { return };
        let encloses = |block: &Block| offsets(block).is_some_and(|(from, to)| from <= start && end <= to);
        let mut blocks = others;
        let whole;
        if end <= ack || others.first().is_some_and(encloses) {
            marks.add(Marks::DSACK);
            self.row(stream, now, (start, end), Item::Dsack);
            for resent in self.resent.iter_mut().filter(|resent| resent.start < end && resent.end > start) {
                self.counters.spurious += u64::from(!resent.is_spurious);
                resent.is_spurious = true;
            }
        } else {
            whole = [*first];
            self.add_block(stream, offsets(&whole[0]), ack, now);
        }
        while let [block, rest @ ..] = blocks {
            self.add_block(stream, offsets(block), ack, now);
            blocks = rest;
        }
    }

    fn add_block(&mut self, stream: &Stream, block: Option<(u64, u64)>, ack: u64, now: Time) {
        let Some((start, end)) = block.filter(|block| block.0 >= ack) else { return };
        if !self.sacked.covers(start, end) {
            self.sacked.insert(start, end);
            self.row(stream, now, (start, end), Item::Sack);
        }
        self.again.remove(start, end);
    }

    /// What acknowledges a retransmission with an older timestamp answers the first transmission (RFC 3522).
    #[cold]
    fn eifel(&mut self, (from, to): (u64, u64), echo: u32) {
        for resent in self.resent.iter_mut().filter(|resent| resent.start < to && resent.end > from) {
            if !resent.is_spurious && resent.stamp.is_some_and(|stamp| (echo.wrapping_sub(stamp) as i32) < 0) {
                resent.is_spurious = true;
                self.counters.spurious += 1;
            }
        }
    }

    /// Measures the way to the sender: `acknowledges` if a bare packet of this direction acknowledged something new, and
    /// `answered` the echo of data of the other direction, whose track is `other`.
    #[inline]
    pub(crate) fn note_echo(&mut self, tcp: &Segment, now: Time) {
        if let Some(stamps) = tcp.timestamps {
            note(&mut self.echoes, stamps.value, now);
        }
    }

    /// Data of the other direction echoes a timestamp of this one's acknowledgements: the way to the other direction's
    /// sender and back.
    #[inline]
    pub(crate) fn echoed(&mut self, tcp: &Segment, now: Time) -> Option<Span> {
        let stamps = tcp.timestamps?;
        if self.echoes.is_empty() { None } else { answered(&mut self.echoes, stamps.echo, now) }
    }

    /// What is in flight after a packet; nothing once the connection is over.
    #[inline]
    pub(crate) fn level(&mut self, stream: &Stream, over: bool, now: Time) {
        let flight = if over { 0 } else { stream.in_flight() };
        let pipe = if self.sacked.is_empty() && self.lost_below <= stream.acked() && self.again.is_empty() {
            flight
        } else if over {
            0
        } else {
            self.scoreboard(stream, flight)
        };
        if self.pipe > 0 {
            self.pipe_area += self.pipe as f64 * now.saturating_since(self.pipe_since).as_secs_f64();
        }
        (self.pipe, self.pipe_since) = (pipe, now);
        self.max_pipe = self.max_pipe.max(pipe);
    }

    #[cold]
    fn scoreboard(&self, stream: &Stream, flight: u64) -> u64 {
        let edge = self.lost_by_sack().unwrap_or(0).max(self.lost_below).clamp(stream.acked(), stream.highest());
        let lost = (edge - stream.acked()).saturating_sub(self.sacked.bytes_below(edge));
        flight.saturating_sub(self.sacked.bytes()).saturating_sub(lost) + self.again.bytes()
    }

    /// The result; `open` is how long the connection was open, in seconds, and `peer` its receiver's.
    pub(crate) fn finish(&mut self, peer: &Track, open: f64, handshake: [Option<Span>; 2]) -> Tcp {
        Tcp {
            counters: self.counters,
            syn: self.syn,
            syn_timestamps: self.syn_timestamps,
            far_syn: self.far_syn,
            peer_syn: peer.syn,
            ts_rtts: std::mem::take(&mut self.ts_rtts),
            min_to_sender: self.min_to_sender,
            handshake,
            mean_pipe: Some(if open > 0.0 { self.pipe_area / open } else { 0.0 }),
            max_pipe: Some(self.max_pipe),
            window: peer.windows.filter(|_| peer.syn.is_some() && self.syn.is_some()),
            rows: self.rows.as_mut().map(Rows::take).unwrap_or_default(),
        }
    }
}

/// Adds to what is remembered; the oldest is forgotten.
fn push<T>(to: &mut VecDeque<T>, most: usize, one: T) {
    if to.len() >= most {
        to.pop_front();
    }
    to.push_back(one);
}

/// Remembers a timestamp, if it is newer than all before.
#[inline]
fn note(stamps: &mut VecDeque<(u32, Time)>, stamp: u32, now: Time) {
    if stamps.back().is_none_or(|&(last, _)| (stamp.wrapping_sub(last) as i32) > 0) {
        push(stamps, MOST_TIMESTAMPS, (stamp, now));
    }
}

/// The time since a timestamp was seen, once; older ones are forgotten.
#[inline]
fn answered(stamps: &mut VecDeque<(u32, Time)>, echo: u32, now: Time) -> Option<Span> {
    while let Some(&(stamp, at)) = stamps.front() {
        match stamp.wrapping_sub(echo) as i32 {
            0 => {
                stamps.pop_front();
                return Some(now.saturating_since(at));
            }
            1.. => return None,
            _ => {
                stamps.pop_front();
            }
        }
    }
    None
}
