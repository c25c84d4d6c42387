//! A capture with one vantage point: packets in the order of the file, in bounded memory.
//!
//! Times count from the first packet. Packets whose times go back, as of several processors, have the time of the one before.
//! Each interface of a pcapng file is a vantage point of its own: the same packet may be in the file once for each.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use import::counted::Counted;
use import::packets::{Others, Packet, Reader, ip_packet, link};
use observe::{Flow, Inspected, Inspection, Observer, Rules};
use units::{Span, Time};
use wire::ip::TCP;
use wire::{Headers, Transport};

use crate::collector::{Collector, Error, INTERVAL, Options, open};
use crate::tunnel;

/// Connections of an interface that are followed singly.
const MOST_CONNECTIONS: usize = 16_384;
/// Interfaces of a file that are told apart.
const MOST_INTERFACES: usize = 8;
/// Packets between calls to show progress.
const PACKETS_PER_STEP: u64 = 1 << 13;
/// A silence after which nothing is sampled; connections are not sampled after 10 s.
const LONGEST_GAP: Span = Span::from_secs(20);
/// The ECN code point "congestion experienced".
const CE: u8 = 3;

/// Analyses the packets of one vantage point.
pub struct Single {
    observer: Observer,
    /// The time of the latest packet, and of the sample after it.
    now: Time,
    sampled: Time,
    interval: Span,
    /// Packets whose time was before that of the one before.
    pub back_in_time: u64,
}

impl Single {
    /// Begins; `rows` keeps segments for time–sequence plots.
    pub fn new(rules: Rules, rows: bool) -> Single {
        let inspection = Inspection { rules, connections: MOST_CONNECTIONS, rows };
        let observer = Observer::inspecting(Vec::new(), inspection);
        Single { observer, now: Time::ZERO, sampled: Time::ZERO, interval: INTERVAL, back_in_time: 0 }
    }

    /// The next packet, at a time since the first. Returns the number of its direction of its connection, and what it
    /// told.
    #[inline]
    pub fn packet(&mut self, header: &Headers, at: Time) -> (u32, Inspected) {
        if at < self.now {
            self.back_in_time += 1;
        } else {
            self.now = at;
            if at.saturating_since(self.sampled) >= self.interval {
                self.sample();
            }
        }
        self.observer.inspect(header, header.tos & CE == CE, self.now)
    }

    /// Samples at all times up to now that are due.
    #[cold]
    fn sample(&mut self) {
        sample(&mut self.observer, (&mut self.sampled, &mut self.interval), self.now);
    }

    /// The flows, and the number of connections that were counted together.
    pub fn finish(mut self) -> (Vec<Flow>, u64) {
        self.sample();
        let together = self.observer.counted_together();
        (self.observer.finish(self.now), together)
    }
}

/// Samples at all times up to `now` that are due; after a long gap, only from its end on.
pub(crate) fn sample(observer: &mut Observer, (sampled, interval): (&mut Time, &mut Span), now: Time) {
    while now.saturating_since(*sampled) >= *interval {
        let gap = now.saturating_since(*sampled);
        if gap > LONGEST_GAP * 2 {
            // All that is to be sampled in a silence is its beginning.
            let end = *sampled + LONGEST_GAP;
            while *sampled < end {
                *sampled += *interval;
                *interval = observer.sample(*sampled, *interval);
            }
            let left = now.saturating_since(*sampled).as_nanos();
            *sampled = now - Span::from_nanos(left % interval.as_nanos());
            continue;
        }
        *sampled += *interval;
        *interval = observer.sample(*sampled, *interval);
    }
}

/// What a file's frames were.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) all: u64,
    /// Frames without an IP packet, and with one that could not be read.
    other: Others,
    broken: u64,
    pub(crate) counted: Counted,
    /// Frames of link types that cannot be read, and one of these types.
    foreign: (u64, u16),
    /// Packets of TCP whose header was cut off, and those that lack options alone.
    cut: u64,
    without_options: u64,
}

impl Frames {
    /// The headers of the IP packet in a frame.
    #[inline]
    pub(crate) fn headers(&mut self, packet: &Packet<'_>) -> Option<Headers> {
        self.all += 1;
        let Some(ip) = ip_packet(packet.link, packet.data) else {
            if link::ALL.contains(&packet.link) {
                self.other.note(packet);
            } else {
                self.foreign = (self.foreign.0 + 1, packet.link);
            }
            return None;
        };
        let len = packet.len as usize - (packet.data.len() - ip.len());
        let headers = Headers::parse_captured(ip, len).ok();
        self.broken += u64::from(headers.is_none());
        let (cut, without_options) = (&mut self.cut, &mut self.without_options);
        // Inside a tunnel, too.
        self.counted.take(headers?, ip, (packet.at, packet.interface), |headers, ip| {
            if headers.protocol == TCP && ip.len() < headers.len as usize {
                *cut += u64::from(headers.transport == Transport::Other);
                *without_options += u64::from(lacks_options(&headers, ip.len()));
            }
            headers
        })
    }

    /// What to tell about them.
    pub(crate) fn notes<R: Read>(&self, all: &mut Collector<'_>, path: &Path, reader: &Reader<R>) {
        if reader.is_cut_short() {
            all.note(path, "ends within a packet; everything before it was analysed");
        }
        for note in reader.without_time_note().into_iter().chain(reader.unknown_blocks_note()) {
            all.note(path, note);
        }
        if self.foreign.0 > 0 {
            let (count, link) = self.foreign;
            all.note(path, format_args!("{count} of {} frames have an unsupported link type ({link})", self.all));
        }
        let count = self.other.total();
        if count > 0 {
            let kinds: Vec<String> = self.other.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            all.note(path, format_args!("{count} of {} frames are not IP: {}", self.all, kinds.join(", ")));
        }
        self.counted.notes().for_each(|note| all.note(path, note));
        if self.broken > 0 {
            all.note(path, format_args!("{} of {} frames have damaged IP headers", self.broken, self.all));
        }
        if self.cut > 0 {
            let what = "lack a part of TCP's header, and what is counted of them is no goodput: capture more bytes (tcpdump -s 128)";
            all.note(path, format_args!("{} of {} frames {what}", self.cut, self.all));
        }
        if self.without_options > 0 {
            let what = "lack TCP options, and what those tell (segment size, window scale, SACK, timestamps) is unknown: capture more \
                        bytes (tcpdump -s 128)";
            all.note(path, format_args!("{} of {} frames {what}", self.without_options, self.all));
        }
    }
}

/// Whether so many bytes of a packet have the fixed part of TCP's header, but not all options.
fn lacks_options(headers: &Headers, captured: usize) -> bool {
    let whole = headers.len.saturating_sub(headers.payload_len) as usize;
    matches!(headers.transport, Transport::Tcp(_)) && captured < whole
}

/// Reads a file and tells how far it is, now and then.
pub(crate) struct Source<'a, R> {
    pub(crate) reader: Reader<R>,
    options: &'a Options<'a>,
    before: u64,
    packets: u64,
}

impl<'a> Source<'a, File> {
    pub(crate) fn open(path: &Path, options: &'a Options<'a>, before: u64) -> Result<Self, Error> {
        let reader = Reader::new(open(path)?).map_err(Error::of(path))?;
        Ok(Source { reader, options, before, packets: 0 })
    }
}

impl<R: Read> Source<'_, R> {
    #[inline]
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<Packet<'_>>, Error> {
        self.packets += 1;
        if self.packets.is_multiple_of(PACKETS_PER_STEP) {
            self.options.check()?;
            (self.options.progress)(self.before + self.reader.position());
        }
        self.reader.next_packet().map_err(Error::of(path))
    }
}

/// Notes at which vantage point an interface is.
#[cold]
fn note_interface<R: Read>(vantage: &mut Vec<u32>, reader: &Reader<R>, interface: u32) -> u32 {
    let known = vantage.len() as u32;
    if interface - known > 65_536 {
        return interface;
    }
    for number in known..=interface {
        vantage.push(reader.vantage_point(number));
    }
    vantage[interface as usize]
}

/// Tells what of the flows is unknown or was left out.
fn note_flows(all: &mut Collector<'_>, path: &Path, flows: &[Flow]) {
    let one_way = flows.iter().filter(|flow| flow.tells_retransmissions && flow.max_in_flight.is_none()).count();
    if one_way > 0 {
        let what = "without acknowledgements (the other direction was not captured): round-trip times, losses and bytes in flight \
                    are unknown, and goodput is what passed";
        all.note(path, format_args!("{one_way} of {} flows are {what}", flows.len()));
    }
    let foreign: u64 = flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.counters.foreign).sum();
    if foreign > 0 {
        let what = "segments are not of the connection between their ends (an earlier one between the same ports, or outside the \
                    window) and were left out: column foreign of tcp_flows";
        all.note(path, format_args!("{foreign} {what}"));
    }
}

/// Analyses a file.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let options = all.options;
    let mut source = Source::open(path, options, all.bytes)?;
    let mut frames = Frames::default();
    let mut first = None;
    let mut places: BTreeMap<u32, Single> = BTreeMap::new();
    let (mut left_out, mut early) = (0u64, 0u64);
    // Nearly always the only one, and not looked up.
    let (mut number, mut place) = (0, Single::new(options.rules, true));
    let mut vantage: Vec<u32> = Vec::new();
    while let Some(packet) = source.next(path)? {
        let (at, interface) = (packet.at, packet.interface);
        let Some(header) = frames.headers(&packet) else { continue };
        let interface = match vantage.get(interface as usize) {
            Some(&known) => known,
            None => note_interface(&mut vantage, &source.reader, interface),
        };
        if first.is_none() {
            number = interface;
        }
        let began = *first.get_or_insert(at);
        // Time does not go below 0.
        early += u64::from(at < began);
        let at = Time::from_nanos(at.saturating_sub(began));
        if interface != number {
            if !places.contains_key(&interface) && places.len() + 1 >= MOST_INTERFACES {
                left_out += 1;
                continue;
            }
            let other = places.remove(&interface).unwrap_or_else(|| Single::new(options.rules, true));
            places.insert(number, std::mem::replace(&mut place, other));
            number = interface;
        }
        place.packet(&header, at);
    }
    places.insert(number, place);
    let reader = source.reader;
    if frames.all == 0 {
        let what = match reader.without_time() {
            0 => "contains no packet",
            _ => "its packets have no times (simple packet blocks), without which nothing can be measured",
        };
        return Err(Error::Invalid(format!("{}: {what}", path.display())));
    }
    if frames.foreign.0 == frames.all {
        let what = "expected Ethernet, Linux cooked, raw IP, loopback or PPP";
        return Err(Error::Invalid(format!("{}: unsupported link type {}; {what}", path.display(), frames.foreign.1)));
    }
    frames.notes(all, path, &reader);
    if left_out > 0 {
        let what =
            "packets were left out: only the first 8 interfaces are analysed (editcap, tshark -Y frame.interface_id)";
        all.note(path, format_args!("{left_out} {what}"));
    }
    if early > 0 {
        let what = "packets have times before that of the first, and are analysed as if they had come with it";
        all.note(path, format_args!("{early} {what}; reordercap sorts a capture"));
    }
    let file = path.display().to_string();
    let many = places.len() > 1;
    for (interface, place) in places {
        if place.back_in_time > 0 {
            all.note(path, format_args!("the times of {} packets go back", place.back_in_time));
        }
        let length = place.now.as_secs_f64();
        let (mut flows, together) = place.finish();
        tunnel::name(frames.counted.tunnels(), &mut flows);
        if flows.is_empty() {
            continue;
        }
        if together > 0 {
            let what = "packets are of connections beyond the first 16384, and were only counted";
            all.note(path, format_args!("{together} {what}"));
        }
        note_flows(all, path, &flows);
        let mut values = vec![("file", file.clone())];
        if many {
            values.push(("interface", reader.interface_label(interface)));
        }
        let point = all.point(&values);
        all.flows(point, flows, options.rules);
        all.anchor(point, first.unwrap_or(0) as f64 / 1e9, length);
        all.measured_s += length;
    }
    all.bytes += reader.position();
    all.packets += frames.all;
    Ok(())
}
