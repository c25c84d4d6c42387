//! Captures of both ends of a path: two vantage points with two clocks.
//!
//! Packets are recognized by addresses, ports, sequence and acknowledgement numbers, timestamps and window: middleboxes that
//! change these (address translation, proxies) make two connections of one. Super-packets are cut first, as the same data may
//! be cut differently at the ends.
//!
//! The files are read twice. First, a sample of the packets that both have gives the clocks ([`Clock`]) and tells on which
//! side each host is; the sample is chosen by the packets' hashes, so that it is the same in both files. Then both are read
//! in the order of the first clock's time: a packet enters at its sender's side and arrives at the other, or is lost if it
//! has not after [`LONGEST_DELAY`].

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use observe::{Inspection, Observer, Rules};
use record::tables::ClockRow;
use units::stats::upper_median;
use units::{Span, Time};
use wire::hash::{address_bits, hash};
use wire::{Headers, Options as TcpOptions, Transport};

use crate::capture::{Frames, Source, sample};
use crate::clock::{Clock, Point};
use crate::collector::{Collector, Error, INTERVAL};
use crate::tunnel;

/// Packets of a file in the sample.
const SAMPLE: usize = 1 << 15;
/// Packets that both must have in the sample.
const LEAST_MATCHED: usize = 16;
/// Hosts whose side is noted.
const MOST_HOSTS: usize = 4_096;
/// How long a packet may be on its way.
const LONGEST_DELAY: Span = Span::from_secs(30);
/// Packets on their way, and those that seem to have arrived before they were sent, by the clocks' remaining error.
const MOST_PENDING: usize = 1 << 20;
const MOST_EARLY: usize = 4_096;
/// Connections that are followed singly.
const MOST_CONNECTIONS: usize = 16_384;
/// Payload of the largest segment that is not cut if the handshake is not seen.
const ETHERNET: u32 = 1_500;
const CE: u8 = 3;

/// What tells a packet from others, in either capture.
fn signature(header: &Headers) -> Option<u64> {
    let Transport::Tcp(tcp) = &header.transport else { return None };
    let ports = u64::from(header.source_port) << 32 | u64::from(header.destination_port) << 16 | u64::from(tcp.window);
    let base = hash(address_bits(header.source), address_bits(header.destination), ports);
    let stamps = tcp.timestamps.map_or(0, |stamps| u64::from(stamps.value) << 32 | u64::from(stamps.echo));
    let numbers = u64::from(tcp.seq) << 32 | u64::from(tcp.ack);
    // The last piece of a packet may have flags that the others have not.
    let kind = u64::from(header.payload_len > 0) << 8 | u64::from(tcp.flags.0 & 0b111);
    let first_sack = match &tcp.options {
        TcpOptions::Sack(sack) => sack.blocks().first().map_or(0, |block| u64::from(block.end)),
        _ => 0,
    };
    Some(hash(u128::from(base) << 64 | u128::from(stamps), numbers.into(), kind << 32 ^ first_sack))
}

/// Cuts packets into segments by the smaller segment size of a connection's SYNs.
#[derive(Default)]
struct Cutter {
    /// By connection, whatever the direction.
    mss: BTreeMap<u64, u16>,
}

impl Cutter {
    fn pieces(&mut self, header: &Headers, mut each: impl FnMut(&Headers)) {
        let Transport::Tcp(tcp) = header.transport else { return };
        let ends = |a: IpAddr, b: u16| address_bits(a) << 16 | u128::from(b);
        let (from, to) = (ends(header.source, header.source_port), ends(header.destination, header.destination_port));
        let key = hash(from.min(to), from.max(to), 0);
        if let TcpOptions::Syn(syn) = tcp.options {
            if self.mss.len() > 4 * MOST_CONNECTIONS {
                self.mss.clear();
            }
            let known = self.mss.entry(key).or_insert(syn.mss);
            *known = syn.mss.min(*known);
        }
        let overhead = header.len.saturating_sub(header.payload_len);
        let fixed = if header.source.is_ipv6() { 60 } else { 40 };
        let size = if header.payload_len == 0 {
            1
        } else {
            let mss = self.mss.get(&key).map_or(ETHERNET - fixed, |mss| u32::from(*mss));
            (mss + fixed).saturating_sub(overhead).max(64)
        };
        if header.payload_len <= size {
            each(header);
            return;
        }
        observe::pieces(header, size, each);
    }
}

/// The sample of a file: the packets with the smallest signatures.
#[derive(Default)]
struct Sample {
    /// Time and source; `None` if several packets have the signature.
    packets: BTreeMap<u64, Option<(u64, IpAddr)>>,
    first: Option<u64>,
}

impl Sample {
    fn take(&mut self, header: &Headers, at: u64) {
        let Some(signature) = signature(header) else { return };
        if self.packets.len() >= SAMPLE {
            match self.packets.last_entry() {
                Some(last) if *last.key() > signature => {
                    last.remove();
                }
                _ => return,
            }
        }
        let known = self.packets.entry(signature);
        known.and_modify(|known| *known = None).or_insert(Some((at, header.source)));
    }

    fn read(path: &Path, all: &mut Collector<'_>) -> Result<Sample, Error> {
        let (mut source, mut frames) = (Source::open(path, all.options, all.bytes)?, Frames::default());
        let (mut sample, mut cutter) = (Sample::default(), Cutter::default());
        while let Some(packet) = source.next(path)? {
            let at = packet.at;
            let Some(header) = frames.headers(&packet) else { continue };
            sample.first.get_or_insert(at);
            cutter.pieces(&header, |piece| sample.take(piece, at));
        }
        all.bytes += source.reader.position();
        Ok(sample)
    }
}

/// What the sample tells: the clocks, and the side of each host.
struct Setting {
    clock: Clock,
    matched: usize,
    /// Whether a host is on the side of the first capture.
    near_first: BTreeMap<IpAddr, bool>,
}

impl Setting {
    /// `None` if too few packets are in both.
    fn of(one: &Sample, other: &Sample) -> Option<Setting> {
        let (first, second) = (one.first?, other.first?);
        let mut by_host: BTreeMap<IpAddr, Vec<Point>> = BTreeMap::new();
        let mut matched = 0;
        for (signature, packet) in &one.packets {
            let (Some((at, host)), Some(Some((there, _)))) = (packet, other.packets.get(signature)) else { continue };
            let (at, there) = ((at - first.min(*at)) as f64, there.saturating_sub(second) as f64);
            if by_host.len() < MOST_HOSTS || by_host.contains_key(host) {
                by_host.entry(*host).or_default().push((at, there - at));
                matched += 1;
            }
        }
        if matched < LEAST_MATCHED || by_host.len() < 2 {
            return None;
        }
        // What goes to the second capture is later there than what comes from it: hosts on either side of the largest gap
        // between their median differences.
        let median = |points: &[Point]| {
            let mut all: Vec<f64> = points.iter().map(|point| point.1).collect();
            upper_median(&mut all)
        };
        let mut hosts: Vec<(f64, IpAddr)> =
            by_host.iter().filter_map(|(host, points)| Some((median(points)?, *host))).collect();
        hosts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gap = |at: usize| hosts[at].0 - hosts[at - 1].0;
        let split = (1..hosts.len()).fold(1, |best, at| if gap(at) > gap(best) { at } else { best });
        let near_first: BTreeMap<IpAddr, bool> =
            hosts.iter().enumerate().map(|(at, (_, host))| (*host, at >= split)).collect();
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for (host, points) in by_host {
            if near_first[&host] { &mut there } else { &mut back }.extend(points);
        }
        Some(Setting { clock: Clock::of(there, back)?, matched, near_first })
    }
}

/// A packet on its way.
struct Pending {
    signature: u64,
    flow: u32,
    at: Time,
    arrived: bool,
    /// The number of the next with the same signature.
    next: Option<u64>,
}

/// The packets on their way, in the order in which they were sent.
#[derive(Default)]
struct OnTheWay {
    queue: VecDeque<Pending>,
    /// The number of the first in the queue.
    begin: u64,
    /// By signature: the first and the last that have not arrived.
    ends: BTreeMap<u64, (u64, u64)>,
}

impl OnTheWay {
    fn enter(&mut self, signature: u64, flow: u32, at: Time) {
        let number = self.begin + self.queue.len() as u64;
        self.queue.push_back(Pending { signature, flow, at, arrived: false, next: None });
        let begin = self.begin;
        match self.ends.get_mut(&signature) {
            Some((_, last)) => {
                if let Some(before) = self.queue.get_mut((*last - begin) as usize) {
                    before.next = Some(number);
                }
                *last = number;
            }
            None => {
                self.ends.insert(signature, (number, number));
            }
        }
    }

    /// The oldest packet with this signature arrives.
    fn arrive(&mut self, signature: u64) -> Option<(u32, Time)> {
        let (first, _) = *self.ends.get(&signature)?;
        let packet = self.queue.get_mut((first - self.begin) as usize)?;
        packet.arrived = true;
        let (flow, at, next) = (packet.flow, packet.at, packet.next);
        self.follow(signature, next);
        Some((flow, at))
    }

    fn follow(&mut self, signature: u64, next: Option<u64>) {
        match next {
            Some(next) => {
                if let Some(ends) = self.ends.get_mut(&signature) {
                    ends.0 = next;
                }
            }
            None => {
                self.ends.remove(&signature);
            }
        }
    }

    /// A packet that has been on its way for too long.
    fn expire(&mut self, now: Time) -> Option<u32> {
        loop {
            let front = self.queue.front()?;
            let old = now.saturating_since(front.at) > LONGEST_DELAY || self.queue.len() > MOST_PENDING;
            if !old && !front.arrived {
                return None;
            }
            let front = self.queue.pop_front()?;
            self.begin += 1;
            if !front.arrived {
                self.follow(front.signature, front.next);
                return Some(front.flow);
            }
        }
    }

    /// All that never arrived.
    fn rest(&mut self) -> impl Iterator<Item = u32> {
        self.ends.clear();
        self.queue.drain(..).filter(|packet| !packet.arrived).map(|packet| packet.flow)
    }
}

/// A file that is read in the order of the first clock's time.
struct Side<'a> {
    path: &'a Path,
    source: Source<'a, File>,
    frames: Frames,
    cutter: Cutter,
    /// The first packet's time.
    first: u64,
    clock: Option<Clock>,
    next: Option<(Time, Headers)>,
}

impl Side<'_> {
    /// Reads up to the next IP packet. The time never goes back.
    fn advance(&mut self, origin: f64) -> Result<(), Error> {
        let last = self.next.as_ref().map_or(Time::ZERO, |next| next.0);
        loop {
            let Some(packet) = self.source.next(self.path)? else {
                self.next = None;
                return Ok(());
            };
            let at = packet.at.saturating_sub(self.first) as f64;
            if let Some(header) = self.frames.headers(&packet) {
                let at = self.clock.map_or(at, |clock| clock.first(at)) - origin;
                let at = Time::from_nanos(at.max(0.0) as u64);
                self.next = Some((at.max(last), header));
                return Ok(());
            }
        }
    }
}

/// Analyses captures of both ends; false if they have too few packets in common.
pub(crate) fn analyse(one: &Path, other: &Path, all: &mut Collector<'_>) -> Result<bool, Error> {
    let before = all.bytes;
    let samples = (Sample::read(one, all)?, Sample::read(other, all)?);
    let Some(setting) = Setting::of(&samples.0, &samples.1) else {
        if all.options.ends == Some(true) {
            let what = "no 16 packets in common in both directions: are addresses translated, or is it another time?";
            return Err(Error::Invalid(format!("{} and {}: {what}", one.display(), other.display())));
        }
        all.bytes = before;
        return Ok(false);
    };
    let clock = setting.clock;
    // The first packet of either, by the first clock.
    let origin = clock.first(0.0).min(0.0);
    let side = |path, first: Option<u64>, clock, before| -> Result<Side<'_>, Error> {
        let source = Source::open(path, all.options, before)?;
        let (frames, cutter) = (Frames::default(), Cutter::default());
        let mut side = Side { path, source, frames, cutter, first: first.unwrap_or(0), clock, next: None };
        side.advance(origin)?;
        Ok(side)
    };
    let mut sides =
        [side(one, samples.0.first, None, all.bytes)?, side(other, samples.1.first, Some(clock), all.bytes)?];
    drop(samples);
    let inspection = Inspection { rules: Rules::Ranway, connections: MOST_CONNECTIONS, rows: true };
    let mut observer = Observer::inspecting(Vec::new(), inspection);
    let (mut sampled, mut interval, mut now) = (Time::ZERO, INTERVAL, Time::ZERO);
    let mut on_the_way = OnTheWay::default();
    let mut early: BTreeMap<u64, Time> = BTreeMap::new();
    let (mut unknown, mut unsent) = (0u64, 0u64);
    loop {
        let at = match (&sides[0].next, &sides[1].next) {
            (Some(a), Some(b)) => usize::from(b.0 < a.0),
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (None, None) => break,
        };
        let side = &mut sides[at];
        let Some((time, header)) = side.next else { break };
        now = now.max(time);
        if now.saturating_since(sampled) >= interval {
            sample(&mut observer, (&mut sampled, &mut interval), now);
        }
        while let Some(flow) = on_the_way.expire(now) {
            observer.lost(flow, now);
        }
        match setting.near_first.get(&header.source) {
            None => unknown += 1,
            Some(near_first) => {
                let enters = *near_first == (at == 0);
                side.cutter.pieces(&header, |piece| {
                    let Some(signature) = signature(piece) else { return };
                    let ce = piece.tos & CE == CE;
                    if enters {
                        let flow = observer.entered(at, 1 - at, piece, now);
                        match early.remove(&signature) {
                            Some(_) => observer.arrived(flow, piece, Span::ZERO, ce, now),
                            None => on_the_way.enter(signature, flow, now),
                        }
                    } else if let Some((flow, sent)) = on_the_way.arrive(signature) {
                        observer.arrived(flow, piece, now.saturating_since(sent), ce, now);
                    } else {
                        unsent += 1;
                        if early.len() >= MOST_EARLY {
                            early.clear();
                        }
                        early.insert(signature, now);
                    }
                });
            }
        }
        side.advance(origin)?;
    }
    for flow in on_the_way.rest() {
        observer.lost(flow, now);
    }
    sample(&mut observer, (&mut sampled, &mut interval), now);
    let mut flows = observer.finish(now);
    sides.iter().for_each(|side| tunnel::name(side.frames.counted.tunnels(), &mut flows));
    let (file, second) = (one.display().to_string(), other.display().to_string());
    let point = all.point(&[("file", file.clone()), ("other", second.clone())]);
    all.tables.clocks.push(&ClockRow {
        point,
        run: 0,
        file: &file,
        other: &second,
        matched: setting.matched as u64,
        offset_ms: (clock.offset + absolute(&sides)) / 1e6,
        offset_bound_ms: clock.offset_bound / 1e6,
        drift_ppm: clock.drift * 1e6,
        drift_bound_ppm: clock.drift_bound * 1e6,
    });
    all.flows(point, flows, Rules::Ranway);
    all.measured_s += now.as_secs_f64();
    for side in &sides {
        side.frames.notes(all, side.path, &side.source.reader);
        all.bytes += side.source.reader.position();
        all.packets += side.frames.all;
    }
    note_left_out(one, unknown, unsent, all);
    Ok(true)
}

/// Notes how many packets were left out: those of hosts whose side is `unknown`, and those that the other file lacks, although they came
/// from there (`unsent`).
fn note_left_out(first: &Path, unknown: u64, unsent: u64, all: &mut Collector<'_>) {
    if unknown > 0 {
        let what = "packets of either file are from hosts of unknown side and were left out";
        all.note(first, format_args!("{unknown} {what}"));
    }
    if unsent > 0 {
        let what = "packets of either file are not in the other although they came from there";
        all.note(first, format_args!("{unsent} {what}"));
    }
}

/// What the second file's first packet is later than the first file's, by their own clocks: offsets are between those.
fn absolute(sides: &[Side<'_>; 2]) -> f64 {
    sides[1].first as f64 - sides[0].first as f64
}
