//! What a PEP says of a flow, told packet by packet; and that it never says too much, whatever passes.

use bolero::{TypeGenerator, check};
use pep::{Config, Pep};
use std::collections::BTreeSet;
use tcp::report::Report;
use tcp::segment::{Block, Flags, Options, Segment, SynOptions, Timestamps};
use units::{Span, Time};

const MSS: u32 = 1_000;
/// The sender's first byte: close to the wrap-around.
const FIRST: u32 = u32::MAX - 2_499;
/// The receiver's first byte.
const REPLY: u32 = 77;

/// What a report says, in segments: from, through, missing.
type Said = (u32, u32, Vec<(u32, u32)>);

struct Story {
    pep: Pep<u8>,
    now: Time,
}

fn segment(seq: u32, len: u16, stamp: u32) -> Segment {
    let timestamps = Some(Timestamps { value: stamp, echo: 1 });
    Segment { seq, ack: REPLY, window: 9, len, flags: Flags::ACK, timestamps, options: Options::default() }
}

impl Story {
    fn new(config: Config) -> Story {
        Story { pep: Pep::new(config), now: Time::ZERO }
    }

    /// A flow whose sender's SYN-ACK has passed at time stamp 100 and was answered.
    fn of_a_flow(announced: bool) -> Story {
        let mut story = Story::new(Config::default());
        let options = SynOptions { mss: 1460, window_scale: None, sack_permitted: true, reports: announced };
        let flags = Flags::SYN | Flags::ACK;
        let syn = Segment { flags, options: Options::Syn(options), ..segment(FIRST.wrapping_sub(1), 0, 100) };
        assert_eq!(story.pep.on_data(1, &syn, 60, story.now), None);
        story.reply(0, 100);
        story
    }

    /// The receiver acknowledges so many segments, echoing `echo`.
    fn reply(&mut self, segments: u32, echo: u32) {
        let ack = FIRST.wrapping_add(segments * MSS);
        let timestamps = Some(Timestamps { value: 500, echo });
        let reply =
            Segment { seq: REPLY, ack, window: 33, len: 0, flags: Flags::ACK, timestamps, ..Segment::default() };
        self.pep.on_reply(1, &reply, self.now);
    }

    /// Segment number `n` passes, sent at `stamp`; the report and its header.
    fn passes(&mut self, n: u32, stamp: u32) -> Option<(Segment, Report)> {
        let data = segment(FIRST.wrapping_add(n * MSS), MSS as u16, stamp);
        let sent = self.pep.on_data(1, &data, 52 + MSS, self.now)?;
        match sent.options {
            Options::Report(report) => Some((sent, report)),
            other => panic!("{other:?}"),
        }
    }

    /// As `passes`, in segments.
    fn says(&mut self, n: u32, stamp: u32) -> Option<Said> {
        let (sent, report) = self.passes(n, stamp)?;
        let number = |offset: u32| sent.ack.wrapping_add(offset).wrapping_sub(FIRST) / MSS;
        let missing = report.missing().iter().map(|range| (number(range.start), number(range.end))).collect();
        Some((number(report.from), number(report.through), missing))
    }
}

#[test]
fn every_second_segment_is_reported_from_the_acknowledgement_on() {
    let mut story = Story::of_a_flow(true);
    assert_eq!(story.says(0, 101), None);
    assert_eq!(story.says(1, 101), Some((0, 2, vec![])));
    assert_eq!(story.says(2, 102), None);
    story.reply(1, 101);
    assert_eq!(story.says(3, 102), Some((1, 4, vec![])));
}

#[test]
fn a_report_is_an_old_acknowledgement_of_the_receivers_making() {
    let mut story = Story::of_a_flow(true);
    story.passes(0, 101);
    let (sent, report) = story.passes(1, 102).expect("a report");
    // Nothing is acknowledged yet: the receiver's own number.
    assert_eq!((sent.ack, report), (FIRST, Report::new(0, 2 * MSS)));
    story.reply(1, 101);
    story.passes(2, 102);
    let (sent, report) = story.passes(3, 102).expect("a report");
    let expected = Segment {
        seq: REPLY,
        ack: FIRST.wrapping_add(MSS - 1),
        window: 33,
        len: 0,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 500, echo: 102 }),
        options: Options::Report(Report::new(1, 3 * MSS + 1)),
    };
    assert_eq!(sent, expected);
    assert!(report.is_sound());
}

#[test]
fn a_hole_is_missing_once_three_segments_have_passed_above_it() {
    let mut story = Story::of_a_flow(true);
    assert_eq!(story.says(0, 101), None);
    // Segment 1 is late: what is above it is not reported yet.
    assert_eq!(story.says(2, 101), Some((0, 1, vec![])));
    assert_eq!(story.says(3, 101), None);
    assert_eq!(story.says(4, 101), Some((0, 5, vec![(1, 2)])));
    // The hole stays in sight until it is filled, which is told at once.
    assert_eq!(story.says(5, 101), None);
    assert_eq!(story.says(6, 101), Some((0, 7, vec![(1, 2)])));
    assert_eq!(story.says(1, 103), Some((1, 2, vec![])));
    assert_eq!(story.says(7, 103), None);
    assert_eq!(story.says(8, 103), Some((0, 9, vec![])));
}

#[test]
fn of_many_holes_two_are_told_at_a_time() {
    let mut story = Story::of_a_flow(true);
    // Segments 1, 3, 5 and 7 are missing.
    let said: Vec<_> = [0, 2, 4, 6, 8, 9, 10, 11].into_iter().filter_map(|n| story.says(n, 101)).collect();
    let expected = [
        (0, 1, vec![]),
        (0, 3, vec![(1, 2)]),
        (0, 5, vec![(1, 2), (3, 4)]),
        (2, 7, vec![(3, 4), (5, 6)]),
        (4, 11, vec![(5, 6), (7, 8)]),
    ];
    assert_eq!(said, expected);
}

#[test]
fn reordering_is_no_loss_and_is_learnt() {
    let mut story = Story::of_a_flow(true);
    for n in [0, 2, 3, 4] {
        story.says(n, 101);
    }
    // Sent at 100, before what overtook it: three overtook it, then five.
    assert_eq!(story.says(1, 100), Some((1, 2, vec![])));
    for n in [6, 7, 8] {
        let said = story.says(n, 103);
        assert_eq!(said.is_some_and(|(.., missing)| !missing.is_empty()), n == 8, "{n}");
    }
    assert_eq!(story.says(9, 103), None);
    assert!(story.says(10, 103).is_some());
    assert_eq!(story.says(5, 102), Some((5, 6, vec![])));
    for n in [12, 13, 14, 15] {
        assert!(story.says(n, 104).is_none_or(|(.., missing)| missing.is_empty()), "{n} of five that may overtake");
    }
    assert_eq!(story.says(16, 104).expect("the fifth").2, [(11, 12)]);
}

#[test]
fn what_passed_before_is_not_reported_again() {
    let mut story = Story::of_a_flow(true);
    story.says(0, 101);
    assert!(story.says(1, 101).is_some());
    for n in [0, 1, 0, 1] {
        assert_eq!(story.says(n, 150), None);
    }
    // The receiver echoes the retransmission's time stamp, and is believed.
    story.reply(2, 150);
    story.says(2, 151);
    assert_eq!(story.says(3, 151), Some((2, 4, vec![])));
}

#[test]
fn nothing_is_said_to_who_did_not_ask_or_has_not_been_answered() {
    let mut story = Story::of_a_flow(false);
    assert!((0..20).all(|n| story.says(n, 101).is_none()));

    // Running before it was first seen, and no reply yet; then one that echoes what never passed.
    let mut story = Story::new(Config { all: true, ..Config::default() });
    assert!((0..5).all(|n| story.says(n, 101).is_none()));
    story.reply(1, 90);
    story.reply(2, 102);
    assert!((5..9).all(|n| story.says(n, 101).is_none()));
    // The first that counts shows where the receiver is, the second that it takes data.
    story.reply(1, 101);
    assert!((9..13).all(|n| story.says(n, 101).is_none()));
    story.reply(3, 101);
    assert_eq!(story.says(13, 101), Some((3, 14, vec![])));
}

#[test]
fn a_running_flow_is_reported_from_where_it_was_first_seen() {
    let mut story = Story::new(Config { all: true, ..Config::default() });
    story.says(10, 101);
    story.reply(3, 101);
    story.reply(4, 101);
    // Segments 4 to 9 went by before.
    assert_eq!(story.says(11, 101), Some((10, 12, vec![])));
}

#[test]
fn replies_are_no_more_than_what_came() {
    let mut story = Story::of_a_flow(true);
    let mut replies = 0;
    for n in 0..1_000 {
        // One byte in 53: a report of 64 bytes takes more than one.
        let data = Segment { flags: Flags::ACK | Flags::PSH, ..segment(FIRST.wrapping_add(n), 1, 101) };
        replies += u32::from(story.pep.on_data(1, &data, 53, story.now).is_some());
    }
    let stats = story.pep.stats();
    assert!(stats.report_bytes <= stats.data_bytes && u64::from(replies) == stats.reports);
    assert_eq!(replies, 1_000 * 53 / 64);
    assert!(stats.withheld > 0);
}

#[test]
fn a_ninth_hole_is_not_opened_and_nothing_beyond_is_acknowledged() {
    let mut story = Story::of_a_flow(true);
    let mut highest = 0;
    for n in (0..40).step_by(2) {
        if let Some((_, through, _)) = story.says(n, 101) {
            highest = highest.max(through);
        }
    }
    // Holes 1, 3, .. 15: segment 16 is the last that is noted.
    assert!(highest <= 17, "{highest}");
    assert_eq!(story.says(1, 103), Some((1, 2, vec![])));
}

#[test]
fn the_memory_of_flows_is_bounded_and_the_idle_go_first() {
    let mut pep: Pep<u32> = Pep::new(Config { flows: 100, ..Config::default() });
    for key in 0..1_000 {
        pep.on_data(key, &segment(1, 100, 1), 152, Time::ZERO);
        assert!(pep.stats().flows <= 100);
    }
    assert_eq!(pep.stats().evicted, 900);
    // Two minutes later each packet takes an idle one away.
    let later = Time::ZERO + Span::from_secs(121);
    for _ in 0..200 {
        pep.on_data(5_000, &segment(1, 100, 1), 152, later);
    }
    assert_eq!(pep.stats().flows, 1);
}

#[test]
fn a_reset_in_the_window_forgets_the_flow_and_others_do_not() {
    for (seq, forgotten) in [(FIRST, true), (FIRST.wrapping_add(5), false)] {
        let mut story = Story::of_a_flow(true);
        story.pep.on_data(1, &Segment { flags: Flags::RST, ..segment(seq, 0, 101) }, 40, story.now);
        assert_eq!(story.pep.stats().flows == 0, forgotten);
    }
}

#[test]
fn a_reset_with_a_syn_is_a_reset() {
    let mut story = Story::of_a_flow(true);
    let both = Segment { flags: Flags::RST | Flags::SYN, ..segment(FIRST, 0, 101) };
    story.pep.on_data(1, &both, 40, story.now);
    assert_eq!(story.pep.stats().flows, 0);
}

#[test]
fn an_answer_does_not_revive_a_flow_that_was_idle_for_too_long() {
    let mut story = Story::of_a_flow(true);
    story.now += Span::from_secs(121);
    story.reply(0, 100);
    assert_eq!(story.pep.stats().flows, 0);
}

#[test]
fn a_segment_that_counts_as_several_is_answered_once() {
    let mut story = Story::of_a_flow(true);
    let merged = segment(FIRST, 4 * MSS as u16, 101);
    let report = story.pep.on_merged(1, &merged, 4, 52 + 4 * MSS, story.now).map(|sent| sent.options);
    assert_eq!(report, Some(Options::Report(Report::new(0, 4 * MSS))));
    assert_eq!((story.says(4, 101), story.says(5, 101)), (None, Some((0, 6, vec![]))));
}

#[test]
fn what_lies_further_back_than_any_window_is_forgotten() {
    let mut story = Story::of_a_flow(true);
    // Ahead by 0.9 * 2^30 bytes each time, unanswered: the receiver is not known any more.
    for n in 1..=2 {
        assert_eq!(story.says(n * 966_000, 101), None);
    }
    assert_eq!((story.says(1_932_001, 101), story.says(1_932_002, 101)), (None, None));
    story.reply(1_932_003, 101);
    assert_eq!(story.says(1_932_003, 102), Some((1_932_003, 1_932_004, vec![])));
}

/// Anything that may pass.
#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Passing {
    Data { start: u8, len: u8, stamp: u8, flags: u8 },
    Reply { ack: u8, echo: u8, flags: u8 },
    Syn { reports: bool },
}

#[test]
fn it_never_acknowledges_a_byte_that_it_has_not_seen() {
    check!().with_type::<(bool, u32, Vec<Passing>)>().with_iterations(20_000).for_each(|&(all, base, ref passing)| {
        let mut pep = Pep::new(Config { all, ..Config::default() });
        let mut seen = BTreeSet::new();
        let (mut acked, mut came, mut replied) = (0, 0, 0);
        let stamps = |value: u8, echo: u8| Some(Timestamps { value: value.into(), echo: echo.into() });
        for &one in passing {
            match one {
                Passing::Data { start, len, stamp, flags } => {
                    let (flags, len) = (Flags(flags & 0x1b), u16::from(len) + 1);
                    let start = u32::from(start) * 16;
                    let data = Segment {
                        flags: Flags(flags.0 & !Flags::SYN.0),
                        timestamps: stamps(stamp, 0),
                        ..segment(base.wrapping_add(start), len, 0)
                    };
                    let packet_len = 20 + data.header_len() + u32::from(len);
                    if !data.flags.has(Flags::RST) {
                        seen.extend(start..start + data.seq_len());
                    }
                    came += packet_len;
                    let Some(sent) = pep.on_data(0, &data, packet_len, Time::ZERO) else { continue };
                    replied += 20 + sent.header_len();
                    assert!(replied <= came, "amplified");
                    let Options::Report(report) = sent.options else { panic!("not a report") };
                    assert!(report.is_sound(), "{report:?}");
                    let number = |offset: u32| sent.ack.wrapping_add(offset).wrapping_sub(base);
                    let missing = |byte: &u32| {
                        report.missing().iter().any(|&Block { start, end }| (number(start)..number(end)).contains(byte))
                    };
                    for byte in (number(report.from)..number(report.through)).filter(|byte| !missing(byte)) {
                        assert!(byte < acked || seen.contains(&byte), "byte {byte} of {report:?}");
                    }
                }
                Passing::Reply { ack, echo, flags } => {
                    let ack = u32::from(ack) * 16;
                    let flags = Flags(flags & 0x15);
                    if flags.has(Flags::ACK) {
                        acked = acked.max(ack);
                    }
                    let reply = Segment { flags, timestamps: stamps(1, echo), ..segment(REPLY, 0, 0) };
                    pep.on_reply(0, &Segment { ack: base.wrapping_add(ack), ..reply }, Time::ZERO);
                }
                Passing::Syn { reports } => {
                    // A new connection: what the old one has seen is void.
                    let options = SynOptions { mss: 1460, window_scale: None, sack_permitted: true, reports };
                    let seq = base.wrapping_sub(1);
                    let syn = Segment { flags: Flags::SYN, options: Options::Syn(options), ..segment(seq, 0, 0) };
                    pep.on_data(0, &syn, 60, Time::ZERO);
                }
            }
        }
    });
}
