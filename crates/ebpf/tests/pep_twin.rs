//! The kernel's PEP (`src/bpf/pep_flow.h`) beside the simulator's: the same reports at the same segments, whatever passes.
//!
//! Of the differences that `pep.bpf.c` lists, one shows here: segments that GRO has merged, for which the simulator's has
//! a call. The others are about what is not looked at, and about which flow goes when there is no room.

#![allow(clippy::disallowed_methods)] // Tests run a compiler and read its output.

mod common;

use bolero::generator::bolero_generator::driver::{Options as Generation, bytes};
use bolero::{TypeGenerator, ValueGenerator, produce};
use common::Twin;
use pep::{Arrival, Config, Pep};
use rand_core::{Rng, SeedableRng};
use units::{Span, Time};
use wire::report::{Key, Message, Report};
use wire::{Flags, Options, Segment, SynOptions, Timestamps};

const MSS: u32 = 1448;
const FLOWS: usize = 4;
const CASES: u64 = 9_000;
const IPV4_HEADER: u32 = 20;
const KEY: [u8; 16] = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6];

/// Something happens; [`Model::apply`] says what.
#[derive(Clone, Copy, Debug, TypeGenerator)]
struct Op {
    kind: u8,
    flow: u8,
    a: u8,
    b: u8,
    c: u8,
    big: u32,
}

/// What a flow's two ends have done.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    isn: u32,
    next: u32,
    /// The newest `TSval` of the sender.
    stamp: u32,
    reply_next: u32,
    ack: u32,
    /// The newest `TSval` of the receiver.
    reply_stamp: u32,
}

struct Model {
    pep: Pep<usize>,
    ends: [Ends; FLOWS],
    now: Time,
    /// Its segments are so short that reports are more.
    chatty: bool,
    key: Option<Key>,
}

#[derive(Clone, Copy, Debug)]
struct Passing {
    flow: usize,
    from_sender: bool,
    segment: Segment,
    packets: u32,
    via: u8,
    now: Time,
}

/// Whether a PEP with this key believes another PEP's report, as pep.bpf.c has it of the segment's bytes.
fn believes(key: Option<Key>, report: &Report, segment: &Segment) -> bool {
    key.is_none_or(|key| report.is_authentic(key, segment.ack, segment.timestamps.unwrap_or_default()))
}

impl Passing {
    fn packet_len(&self) -> u32 {
        IPV4_HEADER + self.segment.header_len() + u32::from(self.segment.len)
    }

    /// The line for the twin, which has this key.
    fn line(&self, key: Option<Key>) -> String {
        let Segment { seq, ack, window, len, flags, timestamps, options } = self.segment;
        let Timestamps { value, echo } = timestamps.unwrap_or_default();
        let announces = matches!(options, Options::Syn(syn) if syn.reports) || options == Options::Announcement;
        let scale = match options {
            Options::Syn(syn) => syn.window_scale.unwrap_or(u8::MAX),
            _ => u8::MAX,
        };
        let reports = match options {
            Options::Report(report) if believes(key, &report, &self.segment) => 2,
            Options::Report(_) => 1,
            _ => 0,
        };
        let op = if self.from_sender { 'd' } else { 'r' };
        let (now, packet_len) = (self.now.as_nanos(), self.packet_len());
        let flags = (flags.0, u8::from(timestamps.is_some()), u8::from(announces));
        format!(
            "{op} {} {now} {seq} {ack} {value} {echo} {len} {packet_len} {} {window} {} {} {} {} {scale} {reports}",
            self.flow, self.packets, flags.0, flags.1, flags.2, self.via
        )
    }
}

impl Model {
    fn new(config: Config, starts: [u32; FLOWS], chatty: bool) -> Model {
        let ends = starts.map(|start| {
            // Half of them wrap soon.
            let isn = if start % 2 == 0 { start } else { 0_u32.wrapping_sub(start % 100_000) };
            let next = isn.wrapping_add(1);
            Ends { isn, next, stamp: start, reply_next: start, ack: next, reply_stamp: 1_000 }
        });
        Model { pep: Pep::new(config), ends, now: Time::from_nanos(1_000_000_000), chatty, key: config.key }
    }

    fn apply(&mut self, op: Op) -> Option<Passing> {
        let Op { kind, flow, a, b, c, big } = op;
        let flow = usize::from(flow % 8).saturating_sub(FLOWS);
        self.now += Span::from_millis(u64::from(c % 2));
        let clock = (self.now.as_nanos() / 1_000_000) as u32;
        let ends = &mut self.ends[flow];
        let stamp = ends.isn.wrapping_add(clock);
        let stamps = |value, echo| Some(Timestamps { value, echo });
        let data = Segment { seq: ends.next, ack: ends.reply_next, flags: Flags::ACK, ..Segment::default() };
        let data = Segment { timestamps: stamps(stamp, ends.reply_stamp), ..data };
        let window_scale = (big % 3 > 0).then_some((big % 5) as u8 * 3);
        let syn = |reports| Options::Syn(SynOptions { mss: 1460, window_scale, sack_permitted: true, reports });
        let mut packets = 1;
        let (from_sender, segment) = match kind {
            // The next data, often in full segments, sometimes many at once; some before it may not have come here.
            0..110 => {
                let lost = u32::from(a.saturating_sub(200) % 8);
                packets = if b >= 240 { u32::from(b - 240) + 2 } else { 1 };
                let len = if b < 16 || self.chatty { u32::from(b % 16) + 1 } else { packets * MSS };
                let flags = [Flags::ACK, Flags::ACK | Flags::PSH, Flags::ACK | Flags::FIN];
                let flags = flags[usize::from(c > 200) + usize::from(c > 252)];
                let seq = ends.next.wrapping_add(lost * MSS);
                let options = if big % 64 == 1 { Options::Announcement } else { Options::default() };
                let segment = Segment { seq, len: len as u16, flags, options, ..data };
                ends.next = seq.wrapping_add(segment.seq_len());
                (true, segment)
            }
            // Earlier data: sent again, or late and with the timestamp of then. Not always cut as the first time.
            110..160 => {
                let shift = if b % 8 == 0 { u32::from(b) } else { 0 };
                let age = if c % 4 == 0 { u32::from(c) / 4 } else { 0 };
                packets = u32::from(b % 4 / 3) + 1;
                let seq = ends.next.wrapping_sub(u32::from(a % 16) * MSS + shift);
                let len = if self.chatty { 9 } else { (packets * MSS) as u16 };
                let timestamps = stamps(stamp.wrapping_sub(age), ends.reply_stamp);
                (true, Segment { seq, len, timestamps, ..data })
            }
            // The receiver answers: up to some way back, with the timestamp that it saw last or an older one.
            160..235 => {
                let back = if b % 2 == 0 { u32::from(b) / 2 % 12 * MSS } else { 0 };
                let ack = ends.next.wrapping_sub(back);
                if (ack.wrapping_sub(ends.ack) as i32) > 0 {
                    ends.ack = ack;
                }
                let ack = if c % 5 == 0 { ack } else { ends.ack };
                let flags = match c {
                    250.. => Flags::ACK | Flags::FIN,
                    248.. => Flags::ACK | Flags::SYN,
                    _ => Flags::ACK,
                };
                let len = if a % 8 == 0 { u16::from(a) } else { 0 };
                let echo = ends.stamp.wrapping_sub(if a % 16 == 1 { u32::from(b) } else { 0 });
                let value = clock.wrapping_sub(u32::from(c % 3));
                let seq = ends.reply_next.wrapping_sub(if c % 16 == 3 { u32::from(a) } else { 0 });
                let window = (big & 0xffff) as u16;
                let timestamps = if big % 64 == 0 { None } else { stamps(value, echo) };
                let options = match a {
                    // A report of another PEP, with a tag or without.
                    129..133 => {
                        let mut report = Report::new(0, MSS);
                        if let Some(key) = self.key.filter(|_| b % 4 > 0) {
                            report.authenticate(key, ack, Timestamps { value, echo });
                        }
                        Options::Report(report)
                    }
                    _ if flags.has(Flags::SYN) => syn(false),
                    _ => Options::default(),
                };
                let segment = Segment { seq, ack, window, len, flags, timestamps, options };
                ends.reply_next = seq.wrapping_add(segment.seq_len());
                (false, segment)
            }
            235..241 => {
                self.now += Span::from_millis(u64::from(a) * if b % 4 == 0 { 1_000 } else { 1 });
                return None;
            }
            // The receiver opens a connection, or its SYN comes again.
            243 => {
                ends.reply_next = ends.reply_next.wrapping_add(u32::from(b % 2));
                let seq = ends.reply_next.wrapping_sub(1);
                let (timestamps, options) = (stamps(clock, 0), syn(false));
                (false, Segment { seq, flags: Flags::SYN, timestamps, options, ..Segment::default() })
            }
            // A connection begins, or its SYN or SYN-ACK comes again, perhaps late.
            241..246 => {
                if b % 4 == 0 {
                    *ends = Ends { isn: big, next: big.wrapping_add(1), ack: big.wrapping_add(1), ..*ends };
                }
                let timestamps = if a % 16 == 0 { None } else { data.timestamps };
                let flags = if kind < 243 { Flags::SYN } else { Flags::SYN | Flags::ACK };
                (true, Segment { seq: ends.isn, flags, timestamps, options: syn(c % 4 > 0), ..data })
            }
            246..248 => {
                let flags = if c % 2 == 0 { Flags::RST } else { Flags::RST | Flags::ACK };
                let off = u32::from(a % 4 / 3);
                let seq = if b % 2 == 0 { ends.next } else { ends.reply_next }.wrapping_add(off);
                (b % 2 == 0, Segment { seq, flags, ..data })
            }
            248..250 => (true, Segment { timestamps: None, len: MSS as u16, ..data }),
            // Far ahead or behind, with the ends following or not.
            250..252 => {
                let seq = ends.next.wrapping_add(if b % 2 == 0 { big } else { big % (1 << 30) });
                if a % 2 == 0 {
                    ends.next = seq.wrapping_add(MSS);
                }
                (true, Segment { seq, len: MSS as u16, ..data })
            }
            252..254 => {
                let ack = ends.next.wrapping_sub(big >> (a % 32));
                let timestamps = stamps(clock, ends.stamp);
                (false, Segment { seq: ends.reply_next, ack, timestamps, flags: Flags::ACK, ..Segment::default() })
            }
            _ => {
                let seq = ends.next.wrapping_add(u32::from(a)).wrapping_sub(128);
                let flags = Flags(c & 0x1f);
                let options = if flags.has(Flags::SYN) { syn(c & 0x80 > 0) } else { Options::default() };
                (big % 2 == 0, Segment { seq, ack: seq, flags, len: u16::from(b), options, ..data })
            }
        };
        // Some are forged, with a timestamp that is off.
        let mut segment = segment;
        if let Some(Timestamps { value, echo }) = &mut segment.timestamps {
            let off = if big % 48 == 5 { big.wrapping_mul(77) >> (a % 32) } else { 0 };
            *(if big & 64 > 0 { value } else { echo }) = (if big & 64 > 0 { *value } else { *echo }).wrapping_add(off);
        }
        if let Some(Timestamps { value, .. }) = segment.timestamps {
            *(if from_sender { &mut ends.stamp } else { &mut ends.reply_stamp }) = value;
        }
        let via = u8::from(big % 40 == 7);
        Some(Passing { flow, from_sender, segment, packets, via, now: self.now })
    }

    /// As the twin says it: the length of the report's packet, -1 if it was withheld, and what it says.
    fn tell(&mut self, passing: &Passing) -> Vec<i64> {
        let Passing { flow, from_sender, segment, packets, now, .. } = passing;
        if !from_sender {
            self.pep.on_reply(*flow, segment, *now);
            return vec![0];
        }
        let before = self.pep.stats().withheld;
        let arrival = Arrival { packets: *packets, packet_len: passing.packet_len(), via: passing.via.into() };
        let Some(report) = self.pep.on_arrival(*flow, segment, &arrival, *now) else {
            return vec![if self.pep.stats().withheld > before { -1 } else { 0 }];
        };
        assert_eq!((report.len, report.flags), (0, Flags::ACK));
        let Options::Report(says) = report.options else { panic!("not a report: {report:?}") };
        assert!(says.is_sound(), "{says:?}");
        let Timestamps { value, echo } = report.timestamps.expect("it has timestamps");
        let len = IPV4_HEADER + report.header_len();
        let mut said = vec![len, report.seq, report.ack, value, echo, report.window.into(), says.from, says.through];
        said.extend(says.missing().iter().flat_map(|range| [range.start, range.end]));
        let mut said: Vec<i64> = said.into_iter().map(i64::from).collect();
        if says.is_tagged() {
            let bytes = says.to_bytes();
            assert_eq!(Message::parse(&bytes), Some(Message::Report(says)));
            said.extend(bytes.last_chunk().map(|tag| i64::from_be_bytes(*tag)));
        }
        said
    }
}

/// Shows the twin a sequence of segments; its answer to each.
fn tell(twin: &mut Twin, config: &Config, sequence: &[Passing]) -> Vec<Vec<i64>> {
    let [low, high] =
        [KEY.first_chunk(), KEY.last_chunk()].map(|half| half.map_or(0, |half| u64::from_le_bytes(*half)));
    let how = u8::from(config.all) + 2 * u8::from(config.key.is_some());
    let mut lines = format!("n {} {how} {low} {high}\n", config.every);
    for (at, passing) in sequence.iter().enumerate() {
        let last = u8::from(at + 1 == sequence.len());
        lines += &format!("{} {last}\n", passing.line(config.key));
    }
    twin.tell(&lines);
    sequence.iter().map(|_| twin.answer()).collect()
}

#[test]
fn both_peps_report_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut twin = Twin::new("pep_twin", directory.path());
    let (mut reports, mut nacks, mut withheld) = (0, 0, 0);
    let generator = (produce::<(u8, bool, [u32; FLOWS])>(), produce::<Vec<Op>>().with().len(0_usize..400));
    // The same cases each time.
    for case in 0..CASES {
        let mut input = vec![0; 4_096];
        cc::Random::seed_from_u64(case).fill_bytes(&mut input);
        let mut driver = bytes::Driver::new(input, &Generation::default());
        let Some(((every, all, starts), ops)) = generator.generate(&mut driver) else { continue };
        let key = (starts[0] % 3 == 0).then_some(Key::new(KEY));
        let config = Config { every: u32::from(every % 4) + 1, all, key, ..Config::default() };
        let mut model = Model::new(config, starts, every >= 224);
        let sequence: Vec<Passing> = ops.iter().filter_map(|&op| model.apply(op)).collect();
        let answers = tell(&mut twin, &config, &sequence);
        for (at, (passing, answer)) in sequence.iter().zip(answers).enumerate() {
            let expected = model.tell(passing);
            let story = || {
                let of_flow = sequence[..=at].iter().filter(|p| p.flow == passing.flow);
                of_flow.map(|p| p.line(config.key)).collect::<Vec<_>>()
            };
            assert_eq!(answer, expected, "case {case}, segment {at}, {config:?}: {:#?}", story());
            reports += u32::from(expected.len() > 1);
            nacks += u32::from(expected.len() > 8);
            withheld += u32::from(expected[0] < 0);
        }
    }
    eprintln!("{reports} reports, {nacks} of something missing, {withheld} withheld");
    assert!(reports > 20_000 && nacks > 5_000 && withheld > 20, "they say too little");
}
