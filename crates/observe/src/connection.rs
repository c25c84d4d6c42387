//! A connection: both directions between two ends, whatever the protocol.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use units::{Distribution, Span, Time};
use wire::hash::{address_bits, hash};
use wire::icmp::Echo;
use wire::{Flags, Headers, Transport};

use crate::counters::Counters;
use crate::inspect::track::Track;
use crate::inspect::wireshark::Conversation;
use crate::inspect::{Inspected, Inspection, Marks, Rules};
use crate::sample::Sample;
use crate::stream::{Admission, Heard, Late, Sent, Stream};

/// After this long without a packet, a connection is no longer sampled, and one of a protocol without an end has ended.
pub(crate) const SILENCE: Span = Span::from_secs(10);
/// The bits of the TOS byte that tell whether a packet may be marked (RFC 3168).
const ECN: u8 = 3;
/// Echo requests of a pinger that can be unanswered at a time.
const MOST_ECHOES: usize = 256;

/// The two ends of a connection, the lower first, so that both directions have the same; and the leg of its route that is
/// measured: a proxy may use the same addresses on both sides of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) protocol: u8,
    v6: bool,
    leg: u32,
    low: End,
    high: End,
}

/// An address as a number, and a port; for echoes, which have none, the pinger's identifier.
type End = (u128, u16);

impl Ends {
    /// Those of a packet's connection, and its direction: 0 if it goes from the lower end to the higher, else 1.
    #[inline]
    pub(crate) fn of(header: &Headers, leg: u32) -> (Ends, usize) {
        let ports = match header.transport {
            Transport::Echo(Echo { id, .. }) => (id, id),
            _ => (header.source_port, header.destination_port),
        };
        let (from, to) = ((address_bits(header.source), ports.0), (address_bits(header.destination), ports.1));
        let (protocol, v6) = (header.protocol, header.source.is_ipv6());
        if from <= to {
            (Ends { protocol, v6, leg, low: from, high: to }, 0)
        } else {
            (Ends { protocol, v6, leg, low: to, high: from }, 1)
        }
    }

    /// The same for both directions.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        let ports = u64::from(self.low.1) << 16 | u64::from(self.high.1);
        let rest = ports << 16 | u64::from(self.protocol) << 8 | u64::from(self.v6);
        hash(self.low.0, self.high.0, rest ^ u64::from(self.leg) << 48)
    }
}

/// What a direction's packets mean.
#[derive(Debug)]
enum Kind {
    Tcp(Box<Stream>),
    /// Requests without a reply yet, each in the place that its sequence number says.
    Echo(Box<[Option<(u16, Time)>; MOST_ECHOES]>),
    Plain,
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Way {
    /// The vantage point at which its packets enter, once one has.
    pub(crate) from: Option<usize>,
    /// What is looked at beside the counters, of captures.
    pub(crate) track: Option<Box<Track>>,
    /// Where its packets come from.
    pub(crate) source: SocketAddr,
    kind: Kind,
    /// Payload that was sent, whatever became of it.
    pub(crate) payload: u64,
    pub(crate) totals: Counters,
    /// The totals at the end of the warm-up.
    pub(crate) before: Counters,
    pub(crate) rtts: Distribution,
    pub(crate) owds: Distribution,
    pub(crate) last_delivery: Option<Time>,
    pub(crate) max_flight: u64,
    flight: u64,
    flight_since: Time,
    srtt: Option<Span>,
    /// The newest since the last sample.
    latest_rtt: Option<Span>,
    /// The one-way delays of the data packets since the last sample: their sum and number.
    sampled_owds: (Span, u64),
    sampled: u64,
    sampled_lost: u64,
    pub(crate) samples: Vec<Sample>,
}

impl Way {
    fn new(kind: Kind, source: SocketAddr) -> Way {
        Way {
            from: None,
            track: None,
            source,
            kind,
            payload: 0,
            totals: Counters::default(),
            before: Counters::default(),
            rtts: Distribution::new(),
            owds: Distribution::new(),
            last_delivery: None,
            max_flight: 0,
            flight: 0,
            flight_since: Time::ZERO,
            srtt: None,
            latest_rtt: None,
            sampled_owds: Default::default(),
            sampled: 0,
            sampled_lost: 0,
            samples: Vec::new(),
        }
    }

    #[inline]
    fn deliver(&mut self, bytes: u64, now: Time) {
        // Whoever leaves out sequence numbers and has them acknowledged has not sent them.
        let bytes = bytes.min(self.payload - self.totals.delivered);
        if bytes > 0 {
            self.totals.delivered += bytes;
            self.last_delivery = Some(now);
        }
    }

    /// Counts data that has turned out to be the connection's.
    #[cold]
    fn late(&mut self, late: &Late, counts: bool, now: Time) {
        self.payload += late.bytes;
        self.totals.segments += late.segments;
        self.deliver(late.delivered, now);
        if let Some(track) = self.track.as_mut().filter(|_| counts) {
            track.late(late, now);
        }
    }

    /// Whether what of it is in flight can be known: with one vantage point, from acknowledgements alone.
    pub(crate) fn tells_flight(&self, is_alone: bool) -> bool {
        match &self.kind {
            Kind::Tcp(stream) => {
                !is_alone || self.payload == 0 || stream.was_heard() && stream.unheard() <= self.payload / 2
            }
            _ => false,
        }
    }

    /// Whether acknowledgements pass elsewhere.
    fn is_unheard(&self, is_alone: bool) -> bool {
        is_alone && matches!(&self.kind, Kind::Tcp(stream) if stream.is_unheard())
    }

    /// Whether its protocol tells of retransmissions.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp(_))
    }

    /// The sender took a round-trip time sample; what it smooths (RFC 6298) is the `slowest` of its acknowledgement.
    #[inline]
    fn rtt(&mut self, rtt: Span, slowest: Span) {
        self.rtts.record(rtt);
        self.latest_rtt = Some(rtt);
        let smooth = |srtt: Span| Span::from_nanos(srtt.as_nanos() - srtt.as_nanos() / 8 + slowest.as_nanos() / 8);
        self.srtt = Some(self.srtt.map_or(slowest, smooth));
    }

    /// So many bytes are in flight now.
    #[inline]
    fn level(&mut self, flight: u64, now: Time) {
        if self.flight > 0 {
            let seconds = now.saturating_since(self.flight_since).as_secs_f64();
            self.totals.flight_area += self.flight as f64 * seconds;
        }
        (self.flight, self.flight_since) = (flight, now);
        self.max_flight = self.max_flight.max(flight);
    }

    /// Whether its sender has ended it, and all of it has arrived.
    fn completed(&self, reset: bool) -> bool {
        let Kind::Tcp(stream) = &self.kind else { return false };
        stream.all_arrived() && (stream.ended() || reset && self.totals.delivered > 0)
    }

    /// Returns its state now, and what was delivered in `interval`; `None` before any payload.
    fn sample(&mut self, now: Time, interval: Span, (closed, is_alone): (bool, bool)) -> Option<Sample> {
        let delivered = self.totals.delivered - std::mem::replace(&mut self.sampled, self.totals.delivered);
        let lost = self.totals.packets.lost - std::mem::replace(&mut self.sampled_lost, self.totals.packets.lost);
        let rtt = self.latest_rtt.take();
        let (owds, packets) = std::mem::take(&mut self.sampled_owds);
        let owd = (packets > 0).then(|| Span::from_nanos(owds.as_nanos() / packets));
        let (at, srtt) = (now, self.srtt);
        let in_flight = (self.is_tcp() && !self.is_unheard(is_alone)).then_some(self.flight);
        let lost = (!is_alone).then_some(lost);
        let (pipe, retransmitted, out_of_order) = self.track.as_mut().map_or((None, 0, 0), |track| {
            let now = (track.counters.retransmitted, track.counters.out_of_order);
            let before = std::mem::replace(&mut track.sampled, now);
            (in_flight.map(|_| track.pipe()), now.0 - before.0, now.1 - before.1)
        });
        (self.payload > 0).then_some(Sample {
            at,
            delivered,
            interval,
            in_flight,
            pipe,
            window: None,
            retransmitted,
            out_of_order,
            srtt,
            rtt,
            owd,
            lost,
            closed,
        })
    }

    /// The stream of TCP and what is looked at beside it.
    #[inline]
    fn inspected(&mut self) -> Option<(&mut Stream, &mut Track)> {
        match (&mut self.kind, &mut self.track) {
            (Kind::Tcp(stream), Some(track)) => Some((stream, track)),
            _ => None,
        }
    }

    fn release(&mut self) {
        if let Kind::Tcp(stream) = &mut self.kind {
            stream.release();
        }
        if let Some(track) = &mut self.track {
            track.release();
        }
    }
}

/// A connection, or all those of a protocol that are not followed singly.
#[derive(Debug)]
pub(crate) struct Connection {
    /// `None` if it counts many together.
    pub(crate) ends: Option<Ends>,
    pub(crate) protocol: u8,
    /// When its first packet entered, and when its last entered or arrived.
    pub(crate) start: Time,
    pub(crate) last: Time,
    /// Which direction its first packet had.
    pub(crate) opener: usize,
    reset: bool,
    /// Whether its packets pass one vantage point.
    pub(crate) is_alone: bool,
    /// When it was over: both directions had a FIN, or one an RST.
    pub(crate) closed: Option<Time>,
    /// Number of earlier connections between the same ends.
    pub(crate) earlier: u32,
    /// Until when its samples were shown while the observer went on.
    pub(crate) shown: Time,
    /// Whether it is in the list of those that are sampled.
    pub(crate) active: bool,
    /// The times of the SYN, the SYN-ACK and the acknowledgement of that, of captures.
    handshake: [Option<Time>; 3],
    /// By Wireshark's rules.
    wireshark: Option<Box<Conversation>>,
    pub(crate) ways: [Way; 2],
}

impl Connection {
    /// The connection whose first packet this is.
    pub(crate) fn new(
        ends: Ends,
        way: usize,
        header: &Headers,
        inspection: Option<&Inspection>,
        notes: usize,
    ) -> Connection {
        let kind = || match header.transport {
            Transport::Tcp(_) => Kind::Tcp(Box::new(Stream::new(notes))),
            Transport::Echo(_) => Kind::Echo(Box::new([None; MOST_ECHOES])),
            _ => Kind::Plain,
        };
        let mut ways = [
            Way::new(kind(), SocketAddr::new(header.source, header.source_port)),
            Way::new(kind(), SocketAddr::new(header.destination, header.destination_port)),
        ];
        ways.rotate_left(way);
        let mut connection = Connection { ends: Some(ends), ways, ..Connection::of_many(header.protocol) };
        if let (Transport::Tcp(_), Some(inspection)) = (&header.transport, inspection) {
            let rows = inspection.rows;
            connection.ways.iter_mut().for_each(|way| way.track = Some(Box::new(Track::new(rows))));
            connection.wireshark = (inspection.rules == Rules::Wireshark).then(Box::default);
        }
        connection
    }

    /// A packet that goes `way` passes the only vantage point. Returns what it told.
    pub(crate) fn inspect(&mut self, way: usize, header: &Headers, ce: bool, now: Time) -> Inspected {
        let Transport::Tcp(tcp) = &header.transport else {
            self.entered(way, (0, None), header, now);
            self.arrived(way, header, None, ce, now);
            return Inspected::default();
        };
        let theirs = self.wireshark.as_mut().map(|both| both.inspect(way, tcp, header.payload_len, now));
        let mut told = self.entered(way, (0, None), header, now);
        let heard = self.arrived(way, header, None, ce, now);
        if let Some(theirs) = theirs {
            let (mine, other) = self.pair(way);
            if let (Some(own), Some(back)) = (&mut mine.track, &mut other.track) {
                own.counters.sent(theirs.marks, header.payload_len);
                back.counters.heard(theirs.marks);
            }
            theirs.rtt.into_iter().for_each(|rtt| other.rtt(rtt, rtt));
            return theirs;
        }
        told.marks.add(heard.marks);
        told.rtt = heard.rtt;
        told.pipe = self.ways[way].track.as_ref().map(|track| track.pipe());
        told
    }

    /// The size into which a packet's payload is cut, if it is larger than its sender's segments can be.
    #[inline]
    pub(crate) fn cut(&self, header: &Headers) -> Option<u32> {
        if self.wireshark.is_some() {
            return None;
        }
        let headers = header.len.saturating_sub(header.payload_len);
        let fixed = if header.source.is_ipv6() { 60 } else { 40 };
        let mss = |way: &Way| way.track.as_ref().and_then(|track| track.syn).map(|syn| u32::from(syn.mss));
        let [a, b] = [mss(&self.ways[0]), mss(&self.ways[1])];
        // Without a handshake, Ethernet's frames.
        let mss = a.into_iter().chain(b).min().unwrap_or(1_500 - fixed);
        let size = (mss + fixed).saturating_sub(headers).max(64);
        (header.payload_len > size).then_some(size)
    }

    /// A packet that went `way` was several segments.
    pub(crate) fn super_packet(&mut self, way: usize) {
        self.ways[way].track.iter_mut().for_each(|track| track.counters.super_packets += 1);
    }

    /// Rows kept for time–sequence plots.
    pub(crate) fn row_count(&self) -> usize {
        self.tracks().map(Track::row_count).sum()
    }

    /// Keeps about half of the rows.
    pub(crate) fn thin_rows(&mut self) {
        for way in &mut self.ways {
            way.track.iter_mut().for_each(|track| track.thin());
        }
    }

    /// Keeps no rows if there are none yet.
    pub(crate) fn close_rows(&mut self) {
        for way in &mut self.ways {
            way.track.iter_mut().for_each(|track| track.close_rows());
        }
    }

    fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.ways.iter().filter_map(|way| way.track.as_deref())
    }

    /// Forgets what only packets to come would need.
    pub(crate) fn release(&mut self) {
        self.ways.iter_mut().for_each(Way::release);
        self.wireshark.iter_mut().for_each(|both| both.release());
    }

    /// What packets told of TCP in one direction.
    pub(crate) fn tcp(&mut self, way: usize, open: f64) -> Option<crate::Tcp> {
        let [syn, answer, ack] = self.handshake;
        let span = |from: Option<Time>, to: Option<Time>| Some(to?.saturating_since(from?));
        let handshake = [span(syn, answer), span(answer, ack)];
        let (mine, other) = self.pair(way);
        let (own, peer) = (mine.track.as_mut()?, other.track.as_ref()?);
        Some(own.finish(peer, open, handshake))
    }

    /// Notes the handshake; the way to both ends and back, once it is known.
    #[inline]
    fn shake(&mut self, tcp: &wire::Segment, now: Time) -> Option<Span> {
        let [syn, answer, ack] = &mut self.handshake;
        if ack.is_none() && !tcp.flags.has(Flags::RST) {
            match (tcp.flags.has(Flags::SYN), tcp.flags.has(Flags::ACK)) {
                // Of several, the latest is answered.
                (true, false) if answer.is_none() => *syn = Some(now),
                (true, true) if answer.is_none() => *answer = Some(now),
                (false, true) if answer.is_some() => *ack = Some(now),
                _ => {}
            }
        }
        Some(ack.as_ref()?.saturating_since((*syn)?))
    }

    /// The entry that counts the connections of a protocol together.
    pub(crate) fn of_many(protocol: u8) -> Connection {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Connection {
            ends: None,
            protocol,
            start: Time::ZERO,
            last: Time::ZERO,
            opener: 0,
            reset: false,
            is_alone: false,
            closed: None,
            earlier: 0,
            shown: Time::ZERO,
            active: false,
            handshake: [None; 3],
            wireshark: None,
            ways: [Way::new(Kind::Plain, nowhere), Way::new(Kind::Plain, nowhere)],
        }
    }

    /// Whether any packet of it has entered.
    pub(crate) fn began(&self) -> bool {
        self.ways.iter().any(|way| way.totals.packets.entered > 0)
    }

    /// Whether a packet that goes `way` begins another connection between the same ends.
    #[inline]
    pub(crate) fn is_replaced_by(&self, header: &Headers, way: usize) -> bool {
        match (&self.ways[way].kind, &header.transport) {
            (Kind::Tcp(stream), Transport::Tcp(tcp)) => stream.is_replaced_by(tcp, self.closed.is_some()),
            _ => false,
        }
    }

    /// Judges a segment that goes `way`, before it is counted. Returns whether it is to be taken for the connection's, and for a probe
    /// of a closed window.
    #[inline]
    fn admit(&mut self, way: usize, tcp: &wire::Segment, payload: u32, now: Time) -> (bool, bool) {
        let (alone, counts) = (self.is_alone, self.wireshark.is_none());
        let (mine, other) = self.pair(way);
        let (Kind::Tcp(stream), Kind::Tcp(back)) = (&mut mine.kind, &mut other.kind) else { return (true, false) };
        let admission = stream.admit(back, tcp, payload, alone, now);
        let vouched = match admission {
            Admission::Foreign => return (false, false),
            _ => back.vouch(stream, tcp, alone),
        };
        if let Some(late) = vouched {
            other.late(&late, counts, now);
        }
        match admission {
            Admission::Late(late) => mine.late(&late, counts, now),
            // Another SYN-ACK takes the place of one that was not acknowledged.
            Admission::Anew => {
                mine.track.iter_mut().for_each(|track| track.release());
                self.handshake = [self.handshake[0], None, None];
                self.reopen();
            }
            _ => {}
        }
        // The same SYN after a reset: the client takes another answer.
        if self.closed.is_some() && tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK) {
            self.reopen();
        }
        (true, matches!(admission, Admission::Probe))
    }

    /// A connection that was reset before it had carried data goes on.
    #[cold]
    fn reopen(&mut self) {
        if self.closed.is_some() && self.ways.iter().all(|way| way.totals.delivered == 0) {
            (self.closed, self.reset, self.handshake) = (None, false, [None; 3]);
        }
    }

    /// A direction, and the other.
    #[inline]
    fn pair(&mut self, way: usize) -> (&mut Way, &mut Way) {
        let [low, high] = &mut self.ways;
        if way == 0 { (low, high) } else { (high, low) }
    }

    /// A packet that goes `way` has entered the network.
    #[inline]
    pub(crate) fn entered(
        &mut self,
        way: usize,
        (from, to): (usize, Option<usize>),
        header: &Headers,
        now: Time,
    ) -> Inspected {
        if !self.began() {
            (self.start, self.opener) = (now, way);
        }
        self.last = now;
        self.is_alone = to.is_none();
        let (mine, other) = self.pair(way);
        mine.from = Some(from);
        // An end that sends nothing is named by the vantage point in front of it.
        other.from = other.from.or(to);
        mine.totals.packets.entered += 1;
        let mut is_probe = false;
        if let Transport::Tcp(tcp) = &header.transport {
            let is_own;
            (is_own, is_probe) = self.admit(way, tcp, header.payload_len, now);
            if !is_own {
                let has_data = header.payload_len > 0 || tcp.flags.0 & (Flags::SYN | Flags::FIN).0 != 0;
                if let Some(track) = self.ways[way].track.as_mut().filter(|_| has_data) {
                    track.counters.foreign += 1;
                }
                return Inspected::default();
            }
        }
        let open = self.closed.is_none();
        let mut told = Inspected::default();
        if let (true, Transport::Tcp(tcp)) = (self.ways[way].track.is_some(), &header.transport) {
            told.marks = self.track_sent(way, (tcp, header.payload_len, is_probe), now);
        }
        let (mine, other) = self.pair(way);
        mine.payload += if is_probe { 0 } else { u64::from(header.payload_len) };
        let mut sent = if header.payload_len > 0 { Sent::New } else { Sent::Nothing };
        match (&mut mine.kind, &mut other.kind, &header.transport) {
            (Kind::Tcp(stream), Kind::Tcp(back), Transport::Tcp(tcp)) => {
                sent = if is_probe { Sent::Nothing } else { stream.entered(tcp, header.payload_len, now) };
                if told.marks.any(Marks::OUT_OF_ORDER) {
                    sent = Sent::New;
                }
                told.in_flight = Some(stream.in_flight());
                let is_reset = tcp.flags.has(Flags::RST) && stream.resets(back, tcp);
                let (flight, over) = (stream.in_flight(), stream.ended() && back.ended() || is_reset);
                let confirmed = back.confirmed(tcp);
                other.deliver(confirmed, now);
                if open {
                    mine.level(flight, now);
                }
                self.reset |= is_reset;
                if open && over {
                    self.closed = Some(now);
                    for way in &mut self.ways {
                        way.level(0, now);
                        if let Some((stream, track)) = way.inspected() {
                            track.level(stream, true, now);
                        }
                    }
                }
            }
            (Kind::Echo(requests), _, Transport::Echo(Echo { reply: false, seq, .. })) => {
                requests[usize::from(*seq) % MOST_ECHOES] = Some((*seq, now));
            }
            _ => {}
        }
        let over = self.closed.is_some();
        if let Some((stream, track)) = self.ways[way].inspected() {
            track.level(stream, over, now);
        }
        let totals = &mut self.ways[way].totals;
        totals.segments += u64::from(matches!(sent, Sent::New | Sent::Again));
        totals.retransmitted += u64::from(sent == Sent::Again);
        totals.retransmitted_control += u64::from(sent == Sent::ControlAgain);
        told
    }

    /// A segment was sent: what it is.
    #[inline]
    fn track_sent(&mut self, way: usize, (tcp, payload, is_probe): (&wire::Segment, u32, bool), now: Time) -> Marks {
        let (round_trip, alone) = (self.shake(tcp, now), self.is_alone);
        let counts = self.wireshark.is_none();
        let (mine, other) = self.pair(way);
        let echoed = if payload > 0 { other.track.as_mut().and_then(|back| back.echoed(tcp, now)) } else { None };
        let (Some((stream, track)), Some(back)) = (mine.inspected(), &other.track) else { return Marks::default() };
        let marks = track.sent((stream, back), (tcp, payload, is_probe), (alone, round_trip), now);
        if let Some(span) = echoed {
            track.min_to_sender = Some(track.min_to_sender.map_or(span, |least| least.min(span)));
        }
        if counts {
            track.counters.sent(marks, payload);
            if let (true, Some(data)) = (marks.any(Marks::ZERO_WINDOW), &mut other.track) {
                data.counters.zero_windows += 1;
            }
        }
        marks
    }

    /// An acknowledgement reached the sender of the other direction.
    #[inline]
    fn track_heard(&mut self, way: usize, tcp: &wire::Segment, bare: bool, now: Time) -> Marks {
        let counts = self.wireshark.is_none();
        let (mine, other) = self.pair(way);
        let (Some((back, receiver)), Some((stream, track))) = (mine.inspected(), other.inspected()) else {
            return Marks::default();
        };
        let news = stream.first().is_some() && stream.offset(tcp.ack) > stream.acked();
        let marks = track.heard(stream, (tcp, bare), now);
        track.acknowledged(stream, receiver, tcp, now);
        if bare && news {
            receiver.note_echo(tcp, now);
        }
        let _ = back;
        if counts {
            track.counters.heard(marks);
        }
        marks
    }

    /// A packet that goes `way` has arrived; `delay` is unknown with one vantage point.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        way: usize,
        header: &Headers,
        delay: Option<Span>,
        ce: bool,
        now: Time,
    ) -> Inspected {
        self.last = now;
        let open = self.closed.is_none();
        let mut told = Inspected::default();
        let takes_rtts = self.wireshark.is_none();
        let counts = takes_rtts && self.ways[way].track.is_some();
        let is_own = match (&self.ways[way].kind, &header.transport) {
            (Kind::Tcp(stream), Transport::Tcp(tcp)) => stream.owns(tcp, header.payload_len),
            _ => true,
        };
        if let (true, Transport::Tcp(tcp)) = (is_own && self.ways[way].track.is_some(), &header.transport) {
            told.marks = self.track_heard(way, tcp, is_bare(header, tcp), now);
            if let (wire::Options::Syn(syn), Some(_), Some(track)) = (tcp.options, delay, &mut self.ways[way].track) {
                track.far_syn = Some(syn);
            }
        }
        let (mine, other) = self.pair(way);
        mine.totals.packets.arrived += 1;
        mine.totals.arrived += u64::from(header.len);
        mine.totals.marked += u64::from(ce);
        mine.totals.markable += u64::from(header.tos & ECN != 0 || ce);
        if header.payload_len > 0
            && let Some(delay) = delay
        {
            mine.owds.record(delay);
            mine.sampled_owds = (mine.sampled_owds.0 + delay, mine.sampled_owds.1 + 1);
        }
        match (&mut mine.kind, &mut other.kind, &header.transport) {
            (Kind::Tcp(_), _, _) if !is_own => {}
            (Kind::Tcp(stream), Kind::Tcp(back), Transport::Tcp(tcp)) => {
                let delivered = stream.arrived(tcp, header.payload_len, delay.is_none());
                let Heard { rtt, slowest, duplicate } = back.acknowledged(stream, tcp, is_bare(header, tcp), now);
                mine.deliver(delivered, now);
                let flight = back.in_flight();
                if takes_rtts {
                    rtt.zip(slowest).into_iter().for_each(|(rtt, slowest)| other.rtt(rtt, slowest));
                }
                other.totals.dup_acks += u64::from(duplicate);
                told.rtt = rtt;
                if duplicate {
                    told.marks.add(Marks::DUPLICATE_ACK);
                }
                if counts {
                    other.track.iter_mut().for_each(|track| track.counters.duplicate_acks += u64::from(duplicate));
                }
                if let Some((stream, track)) = other.inspected() {
                    track.level(stream, !open, now);
                }
                if open {
                    other.level(flight, now);
                }
            }
            (_, back, transport) => {
                mine.deliver(header.payload_len.into(), now);
                if let (Kind::Echo(requests), Transport::Echo(Echo { reply: true, seq, .. })) = (back, transport)
                    && let Some((_, sent)) =
                        requests[usize::from(*seq) % MOST_ECHOES].take_if(|(request, _)| request == seq)
                {
                    let rtt = now.saturating_since(sent);
                    other.rtt(rtt, rtt);
                }
            }
        }
        told
    }

    /// A packet that went `way` was lost.
    pub(crate) fn lost(&mut self, way: usize) {
        self.ways[way].totals.packets.lost += 1;
    }

    /// Ends the warm-up: the measured period begins now.
    pub(crate) fn warmed_up(&mut self, now: Time) {
        for way in &mut self.ways {
            way.level(way.flight, now);
            way.before = way.totals;
            (way.rtts, way.owds) = (Distribution::new(), Distribution::new());
            way.max_flight = way.flight;
        }
    }

    /// Samples both directions; the samples are kept only if `keep`.
    pub(crate) fn sample(&mut self, now: Time, interval: Span, keep: bool) {
        let state = (self.closed.is_some(), self.is_alone);
        let window = |way: &Way| way.track.as_ref().and_then(|track| track.window());
        let windows = [window(&self.ways[1]), window(&self.ways[0])];
        for (way, window) in self.ways.iter_mut().zip(windows) {
            let sampled = way.sample(now, interval, state).map(|sample| Sample { window, ..sample });
            way.samples.extend(sampled.filter(|_| keep));
        }
    }

    /// Number of samples kept.
    pub(crate) fn sample_count(&self) -> usize {
        self.ways.iter().map(|way| way.samples.len()).sum()
    }

    /// Merges each sample with the next one, so that about half of them are left.
    pub(crate) fn thin(&mut self) {
        for way in &mut self.ways {
            // In place: long lists elsewhere would leave holes in the heap.
            let samples = &mut way.samples;
            let len = samples.len();
            for pair in 0..len / 2 {
                samples[pair] = samples[2 * pair].merged(&samples[2 * pair + 1]);
            }
            if len % 2 == 1 {
                samples[len / 2] = samples[len - 1];
            }
            samples.truncate(len.div_ceil(2));
        }
    }

    /// Counts up to `end`.
    pub(crate) fn end(&mut self, end: Time) {
        self.ways.iter_mut().for_each(|way| way.level(way.flight, end));
    }

    /// Whether all that its sender wanted to send `way` has arrived.
    pub(crate) fn completed(&self, way: usize) -> bool {
        self.ways[way].completed(self.reset)
    }

    /// Whether it is a pinger's.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self.ways[0].kind, Kind::Echo(_))
    }
}

/// Whether a segment carries nothing but an acknowledgement.
#[inline]
fn is_bare(header: &Headers, tcp: &wire::Segment) -> bool {
    header.payload_len == 0 && tcp.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0 == 0
}
