//! What a PEP says of a flow, told packet by packet; and that it never says too much, whatever passes.

use bolero::{TypeGenerator, check};
use pep::{Arrival, Config, Pep};
use std::collections::BTreeSet;
use units::{Span, Time};
use wire::report::Report;
use wire::{Block, Flags, Options, Segment, SynOptions, Timestamps};

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
        Story::of_a_flow_with(announced, Config::default())
    }

    /// The same, with another PEP.
    fn of_a_flow_with(announced: bool, config: Config) -> Story {
        let mut story = Story::new(config);
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: announced };
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
    assert_eq!(story.pep.stats().flows, 0);
    // The first that counts shows that there is a flow, the second that the receiver takes data.
    story.reply(6, 101);
    assert!((9..13).all(|n| story.says(n, 101).is_none()));
    story.reply(10, 101);
    assert_eq!(story.says(13, 101), Some((10, 14, vec![])));
}

#[test]
fn a_running_flow_is_reported_from_where_it_was_first_seen() {
    let mut story = Story::new(Config { all: true, ..Config::default() });
    story.says(10, 101);
    // Segments 11 to 19 pass meanwhile: what is known begins behind them.
    story.reply(11, 101);
    story.says(20, 101);
    story.reply(12, 101);
    assert_eq!(story.says(21, 101), Some((20, 22, vec![])));
}

#[test]
fn a_pep_that_was_started_anew_serves_a_running_flow_once_the_sender_announces_itself() {
    let mut story = Story::new(Config::default());
    story.says(10, 101);
    story.reply(11, 101);
    for n in 11..20 {
        assert_eq!(story.says(n, 101), None, "nobody has asked");
    }
    let data = segment(FIRST.wrapping_add(20 * MSS), MSS as u16, 102);
    let announcing = Segment { options: Options::Announcement, ..data };
    assert_eq!(story.pep.on_data(1, &announcing, 56 + MSS, story.now), None);
    story.reply(12, 101);
    assert_eq!(story.says(21, 102), Some((12, 22, vec![])));
}

#[test]
fn an_idle_flow_is_remembered_for_as_long_as_there_is_room() {
    let mut story = Story::of_a_flow(true);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    story.reply(2, 101);
    story.now += Span::from_secs(7 * 24 * 3_600);
    let later = 101 + 7 * 24 * 3_600_000;
    assert_eq!((story.says(2, later), story.says(3, later)), (None, Some((2, 4, vec![]))));
}

#[test]
fn what_is_forged_without_sight_of_the_flow_learns_nothing_and_stops_nothing() {
    let syn = |seq: u32, value| {
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: false };
        let timestamps = Some(Timestamps { value, echo: 0 });
        Segment { flags: Flags::SYN, options: Options::Syn(options), timestamps, ..segment(seq, 0, 0) }
    };
    let data = |seq: u32, value, echo, flags| {
        let timestamps = Some(Timestamps { value, echo });
        Segment { flags: Flags::ACK | Flags::PSH | flags, timestamps, ..segment(seq, 1, 0) }
    };
    let far = FIRST.wrapping_add(1 << 31);
    let forged = [
        ("a SYN", true, syn(77, 5)),
        ("data out of the window", true, data(far, 102, 500, Flags(0))),
        ("data with a late timestamp", true, data(FIRST.wrapping_add(2 * MSS), u32::MAX / 2, 1 << 30, Flags(0))),
        ("data with a timestamp of before", true, data(FIRST, 102_u32.wrapping_sub(1 << 24), 500, Flags(0))),
        ("a FIN", true, data(far, 102, 500, Flags::FIN)),
        ("a reset", true, Segment { flags: Flags::RST, ..segment(FIRST, 0, 0) }),
        ("an answer out of the window", false, Segment { ack: far, ..data(REPLY, 500, 101, Flags(0)) }),
        ("an answer that echoes nothing", false, Segment { ack: FIRST, ..data(REPLY, 500, 1 << 30, Flags::FIN) }),
        ("a reset of the receiver", false, Segment { flags: Flags::RST, ..segment(REPLY + 1, 0, 0) }),
    ];
    for (what, from_sender, forged) in forged {
        let mut story = Story::of_a_flow(true);
        assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
        for _ in 0..10 {
            if from_sender {
                assert_eq!(story.pep.on_data(1, &forged, 53, story.now), None, "{what}");
            } else {
                story.pep.on_reply(1, &forged, story.now);
            }
            story.now += Span::from_secs(1);
        }
        assert_eq!(story.says(2, 102), None, "{what}");
        let (sent, _) = story.passes(3, 102).unwrap_or_else(|| panic!("{what} has stopped it"));
        assert_eq!(sent.timestamps, Some(Timestamps { value: 500, echo: 102 }), "{what}");
        assert_eq!((sent.seq, sent.ack), (REPLY, FIRST), "{what}");
    }
}

#[test]
fn forged_segments_that_come_first_do_not_keep_a_flow_from_being_found() {
    let mut story = Story::new(Config::default());
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: true };
    let flags = Flags::SYN | Flags::ACK;
    let syn = Segment { flags, options: Options::Syn(options), ..segment(FIRST.wrapping_sub(1), 0, 100) };
    for n in 0..100 {
        let forged = Segment { seq: n * 1_000, ..syn };
        assert_eq!(story.pep.on_data(1, &forged, 60, story.now), None);
        assert_eq!(story.pep.on_data(1, &segment(n * 1_000, 9, n), 61, story.now), None);
    }
    assert_eq!(story.pep.on_data(1, &syn, 60, story.now), None);
    for n in 100..200 {
        assert_eq!(story.pep.on_data(1, &Segment { seq: n * 1_000, ..syn }, 60, story.now), None);
    }
    story.reply(0, 100);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    assert_eq!(story.pep.stats().flows, 1);
}

#[test]
fn a_report_goes_to_the_flows_neighbour_alone() {
    let mut story = Story::of_a_flow(true);
    let pass = |story: &mut Story, n: u32, via| {
        let data = segment(FIRST.wrapping_add(n * MSS), MSS as u16, 101);
        let arrival = Arrival { packets: 1, packet_len: 52 + MSS, via };
        story.pep.on_arrival(1, &data, &arrival, story.now).is_some()
    };
    // Whoever else on the link sends data of the flow gets no answer: not even if a report is due.
    assert!(!pass(&mut story, 0, 0) && !pass(&mut story, 2, 7) && !pass(&mut story, 3, 7) && !pass(&mut story, 4, 7));
    assert!(pass(&mut story, 1, 0));
    // A flow that goes on by another way is answered there, from its second segment on.
    assert!(!pass(&mut story, 5, 8) && pass(&mut story, 6, 8));
    assert!(!pass(&mut story, 7, 0) && pass(&mut story, 8, 0));
}

#[test]
fn with_a_key_reports_have_a_tag_and_name_one_missing_range() {
    let key = wire::report::Key::new([3; 16]);
    let mut story = Story::of_a_flow_with(true, Config { key: Some(key), ..Config::default() });
    let mut named = Vec::new();
    for n in [0, 2, 4, 6, 7, 8, 9] {
        let Some((sent, report)) = story.passes(n, 101) else { continue };
        assert!(report.is_authentic(key, sent.ack, sent.timestamps.expect("it has some")), "{report:?}");
        assert!(report.missing().len() <= 1);
        named.extend(report.missing().iter().map(|range| range.start / MSS));
    }
    named.dedup();
    assert_eq!(named, [1, 3, 5]);
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
    // Each segment pushes, so each is answered or the report is withheld.
    assert_eq!(stats.withheld, 1_000 - u64::from(replies));
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
    let mut meet = |key: u32, answered: bool| {
        pep.on_data(key, &segment(1, 100, 1), 152, Time::ZERO);
        if answered {
            let timestamps = Some(Timestamps { value: 1, echo: 1 });
            pep.on_reply(key, &Segment { ack: 101, timestamps, ..segment(REPLY, 0, 1) }, Time::ZERO);
        }
        pep.stats()
    };
    for key in 0..1_000 {
        assert!(meet(key, true).flows <= 100);
    }
    assert_eq!(meet(999, true).evicted, 900);
    // What nobody answers takes no place from what is answered.
    for key in 1_000..20_000 {
        assert_eq!(meet(key, false).evicted, 900);
    }
    // Of the rest, what was idle for longest has gone.
    meet(900, true);
    meet(20_000, true);
    assert_eq!(meet(900, true).evicted, 901);
}

#[test]
fn a_flow_that_both_sides_have_closed_is_forgotten() {
    let mut story = Story::of_a_flow(true);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..segment(FIRST, 10, 101) };
    story.pep.on_data(1, &fin, 62, story.now);
    let timestamps = Some(Timestamps { value: 501, echo: 101 });
    let answer = Segment { flags: Flags::ACK | Flags::FIN, timestamps, ..segment(REPLY, 0, 0) };
    story.pep.on_reply(1, &Segment { ack: FIRST.wrapping_add(11), ..answer }, story.now);
    assert_eq!(story.pep.stats().flows, 1);
    story.now += Span::from_secs(11);
    story.pep.on_data(2, &segment(1, 100, 1), 152, story.now);
    assert_eq!(story.pep.stats().flows, 0);
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
fn a_segment_that_counts_as_several_is_answered_once() {
    let mut story = Story::of_a_flow(true);
    let merged = segment(FIRST, 4 * MSS as u16, 101);
    let arrival = Arrival { packets: 4, packet_len: 52 + 4 * MSS, via: 0 };
    let report = story.pep.on_arrival(1, &merged, &arrival, story.now).map(|sent| sent.options);
    assert_eq!(report, Some(Options::Report(Report::new(0, 4 * MSS))));
    assert_eq!((story.says(4, 101), story.says(5, 101)), (None, Some((0, 6, vec![]))));
}

#[test]
fn a_flow_that_jumps_ahead_is_found_again_where_it_is() {
    let mut story = Story::of_a_flow(true);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    // Most of it takes another way for a while.
    assert_eq!((story.says(900_000, 102), story.says(900_001, 102)), (None, None));
    story.reply(900_001, 102);
    story.says(900_002, 103);
    story.reply(900_002, 102);
    assert_eq!(story.says(900_003, 103), Some((900_002, 900_004, vec![])));
}

/// A flow whose receiver has opened it with windows that count in units of 128 bytes; it has announced room for 33 of them.
fn of_an_opened_flow(config: Config, between: impl FnOnce(&mut Pep<u8>)) -> Story {
    let mut story = Story::new(config);
    let options = |reports| SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports };
    let timestamps = Some(Timestamps { value: 499, echo: 0 });
    let syn =
        Segment { flags: Flags::SYN, options: Options::Syn(options(false)), timestamps, ..segment(REPLY - 1, 0, 0) };
    story.pep.on_reply(1, &syn, story.now);
    let timestamps = Some(Timestamps { value: 100, echo: 499 });
    let flags = Flags::SYN | Flags::ACK;
    let answer =
        Segment { flags, options: Options::Syn(options(true)), timestamps, ..segment(FIRST.wrapping_sub(1), 0, 0) };
    assert_eq!(story.pep.on_data(1, &answer, 60, story.now), None);
    between(&mut story.pep);
    story.reply(0, 100);
    story
}

#[test]
fn what_the_receiver_has_no_room_for_is_not_reported_and_opens_no_hole() {
    // 33 units of 128 bytes: four segments.
    let mut story = of_an_opened_flow(Config::default(), |_| {});
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    for n in [4, 5, 6, 7, 8, 100] {
        assert_eq!(story.says(n, 101), None, "{n}");
    }
    assert_eq!((story.says(2, 101), story.says(3, 101)), (None, Some((0, 4, vec![]))));
    story.reply(4, 101);
    assert_eq!((story.says(4, 102), story.says(5, 102)), (None, Some((4, 6, vec![]))));
}

#[test]
fn a_window_of_which_the_scale_is_not_known_bounds_nothing() {
    // Only the sender's SYN-ACK was seen, which offers a scale.
    let mut story = Story::new(Config::default());
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: true };
    let flags = Flags::SYN | Flags::ACK;
    let syn = Segment { flags, options: Options::Syn(options), ..segment(FIRST.wrapping_sub(1), 0, 100) };
    assert_eq!(story.pep.on_data(1, &syn, 60, story.now), None);
    story.reply(0, 100);
    let through = (0..100).filter_map(|n| story.says(n, 101)).map(|(_, through, _)| through).max();
    assert_eq!(through, Some(100));
}

#[test]
fn a_flood_of_the_senders_side_keeps_no_receivers_connection_from_reports() {
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: true };
    // As many as would fill every place, with the flow's own addresses and with others.
    let flood = |pep: &mut Pep<u8>| {
        for n in 0..200_000_u32 {
            let flags = if n % 2 == 0 { Flags::SYN | Flags::ACK } else { Flags::SYN };
            let forged = Segment { flags, options: Options::Syn(options), ..segment(n * 16, 0, n) };
            pep.on_data((n % 5) as u8, &forged, 60, Time::ZERO);
        }
    };
    let mut story = of_an_opened_flow(Config::default(), flood);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
}

/// A report of another PEP that passes on its way to the sender.
fn inner_report(story: &mut Story, key: Option<wire::report::Key>) {
    let (ack, timestamps) = (FIRST, Timestamps { value: 500, echo: 101 });
    let mut report = Report::new(0, MSS);
    if let Some(key) = key {
        report.authenticate(key, ack, timestamps);
    }
    let options = Options::Report(report);
    story.pep.on_reply(1, &Segment { ack, timestamps: Some(timestamps), options, ..segment(REPLY, 0, 0) }, story.now);
}

#[test]
fn of_two_peps_the_one_nearer_to_the_receiver_reports() {
    let mut story = Story::of_a_flow(true);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    inner_report(&mut story, None);
    for n in [2, 3, 5, 6, 7, 8] {
        assert_eq!(story.says(n, 102), None, "the other one does");
    }
    // The other one has gone, which the sender has noticed.
    story.reply(4, 102);
    let data = segment(FIRST.wrapping_add(9 * MSS), MSS as u16, 103);
    let sent = story.pep.on_data(1, &Segment { options: Options::Announcement, ..data }, 56 + MSS, story.now);
    let Some(Segment { options: Options::Report(report), .. }) = sent else { panic!("{sent:?}") };
    assert_eq!(report.missing().len(), 1);
}

#[test]
fn with_a_key_a_pep_yields_only_to_one_with_the_same_key() {
    let key = wire::report::Key::new([3; 16]);
    for (other, yields) in [(None, false), (Some(wire::report::Key::new([4; 16])), false), (Some(key), true)] {
        let mut story = Story::of_a_flow_with(true, Config { key: Some(key), ..Config::default() });
        story.says(0, 101);
        inner_report(&mut story, other);
        assert_eq!(story.says(1, 101).is_none(), yields, "{other:?}");
    }
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
                    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports };
                    let seq = base.wrapping_sub(1);
                    let syn = Segment { flags: Flags::SYN, options: Options::Syn(options), ..segment(seq, 0, 0) };
                    pep.on_data(0, &syn, 60, Time::ZERO);
                }
            }
        }
    });
}

#[test]
fn what_touches_a_hole_and_has_passed_before_fills_nothing() {
    let mut story = Story::of_a_flow(true);
    assert_eq!(story.says(0, 101), None);
    for n in [2, 3, 4] {
        story.says(n, 101);
    }
    // The segments just below and above the hole come again.
    assert_eq!((story.says(0, 103), story.says(2, 103)), (None, None));
    assert_eq!(story.says(1, 104), Some((1, 2, vec![])));
}

#[test]
fn a_segment_fills_a_part_of_a_hole_or_several_holes() {
    // Segments 1 to 5 are missing, and so is 7; then 3 passes, and the two ends of what is left, and all of the rest at once.
    let mut story = Story::of_a_flow(true);
    let said: Vec<_> = [0, 6, 8, 9, 10].into_iter().filter_map(|n| story.says(n, 101)).collect();
    assert_eq!(said.last(), Some(&(0, 11, vec![(1, 6), (7, 8)])));
    assert_eq!(story.says(3, 103), Some((3, 4, vec![])));
    assert_eq!(story.says(5, 103), Some((5, 6, vec![])));
    assert_eq!(story.says(1, 103), Some((1, 2, vec![])));
    assert_eq!((story.says(11, 103), story.says(12, 103)), (None, Some((3, 13, vec![(4, 5), (7, 8)]))));
    let rest = segment(FIRST.wrapping_add(2 * MSS), 7 * MSS as u16, 104);
    let sent = story.pep.on_data(1, &rest, 52 + 7 * MSS, story.now).expect("it fills three holes");
    let Options::Report(report) = sent.options else { panic!("{sent:?}") };
    assert_eq!((report.from, report.through, report.missing().len()), (2 * MSS, 9 * MSS, 0));
    assert_eq!((story.says(13, 104), story.says(14, 104)), (None, Some((0, 15, vec![]))));
}

#[test]
fn a_new_connection_announces_itself_anew() {
    // The same addresses and ports: what one connection has announced is not true of the next.
    let mut story = Story::of_a_flow(true);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: false };
    let flags = Flags::SYN | Flags::ACK;
    let seq = FIRST.wrapping_add(1 << 30);
    let syn = Segment { flags, options: Options::Syn(options), ..segment(seq, 0, 200) };
    assert_eq!(story.pep.on_data(1, &syn, 60, story.now), None);
    let timestamps = Some(Timestamps { value: 600, echo: 200 });
    let reply = Segment { ack: seq.wrapping_add(1), timestamps, ..segment(REPLY + 1_000_000_000, 0, 0) };
    story.pep.on_reply(1, &reply, story.now);
    for n in 0..6 {
        let data =
            Segment { timestamps: Some(Timestamps { value: 201, echo: 600 }), ..segment(seq + 1 + n * MSS, 1000, 0) };
        assert_eq!(story.pep.on_data(1, &data, 1052, story.now), None);
    }
    // A running connection that was lost sight of is the same one, and has announced itself.
    let mut story = Story::of_a_flow(true);
    assert_eq!((story.says(0, 101), story.says(1, 101)), (None, Some((0, 2, vec![]))));
    assert_eq!(story.says(900_000, 102), None);
    story.reply(900_001, 102);
    assert_eq!(story.says(900_001, 103), None);
    story.reply(900_002, 103);
    assert_eq!(story.says(900_002, 104), Some((900_002, 900_003, vec![])));
}

#[test]
fn before_data_is_acknowledged_a_report_bears_the_receivers_own_number() {
    let mut story = Story::of_a_flow(true);
    story.passes(0, 101);
    // The receiver repeats its number.
    story.reply(0, 101);
    let (sent, _) = story.passes(1, 101).expect("a report");
    assert_eq!(sent.ack, FIRST);
    story.reply(1, 101);
    story.passes(2, 101);
    let (sent, _) = story.passes(3, 101).expect("a report");
    assert_eq!(sent.ack, FIRST.wrapping_add(MSS - 1));
}

#[test]
fn a_closed_connection_is_served_for_ten_seconds() {
    for (millis, flows) in [(9_999, 1), (10_000, 1), (10_001, 0)] {
        let mut story = Story::of_a_flow(true);
        let fin = Segment { flags: Flags::ACK | Flags::FIN, ..segment(FIRST, 10, 101) };
        story.pep.on_data(1, &fin, 62, story.now);
        let timestamps = Some(Timestamps { value: 501, echo: 101 });
        let answer = Segment { flags: Flags::ACK | Flags::FIN, timestamps, ..segment(REPLY, 0, 0) };
        story.pep.on_reply(1, &Segment { ack: FIRST.wrapping_add(11), ..answer }, story.now);
        story.now += Span::from_millis(millis);
        story.pep.on_data(2, &segment(1, 100, 1), 152, story.now);
        assert_eq!(story.pep.stats().flows, flows, "{millis} ms");
    }
    // One side alone closes nothing.
    let mut story = Story::of_a_flow(true);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..segment(FIRST, 10, 101) };
    story.pep.on_data(1, &fin, 62, story.now);
    story.now += Span::from_secs(3_600);
    story.pep.on_data(2, &segment(1, 100, 1), 152, story.now);
    assert_eq!(story.pep.stats().flows, 1);
}

#[test]
fn counts_are_of_what_carried_data_and_of_what_was_said() {
    let mut story = Story::of_a_flow(true);
    // Acknowledgements of the sender carry nothing.
    for _ in 0..5 {
        assert_eq!(story.pep.on_data(1, &segment(FIRST, 0, 101), 52, story.now), None);
    }
    assert_eq!(story.pep.stats(), pep::Stats { flows: 1, ..pep::Stats::default() });
    for n in [0, 1, 3, 4, 5] {
        story.says(n, 101);
    }
    let stats = story.pep.stats();
    // (0, 2), (0, 2) at segment 3 says nothing new, and (0, 6) with a missing range.
    let expected = pep::Stats {
        data: 5,
        data_bytes: 5 * (52 + u64::from(MSS)),
        reports: 2,
        nacks: 1,
        report_bytes: 64 + 72,
        withheld: 0,
        flows: 1,
        evicted: 0,
    };
    assert_eq!(stats, expected);
    let counts = |n| pep::Stats {
        data: n,
        data_bytes: 2 * n,
        reports: 3 * n,
        nacks: 4 * n,
        report_bytes: 5 * n,
        withheld: 6 * n,
        flows: 7 * n,
        evicted: 8 * n,
    };
    assert_eq!(counts(10) + counts(3), counts(13));
}

#[test]
fn a_receiver_that_refuses_at_once_ends_the_flow() {
    // The sender opens, the receiver answers and then resets with its next number.
    for (seq, flows) in [(REPLY + 1, 0), (REPLY, 1), (REPLY + 2, 1)] {
        let mut story = Story::new(Config::default());
        let options = |reports| SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports };
        let syn = Segment {
            flags: Flags::SYN,
            options: Options::Syn(options(true)),
            ..segment(FIRST.wrapping_sub(1), 0, 100)
        };
        assert_eq!(story.pep.on_data(1, &syn, 60, story.now), None);
        let timestamps = Some(Timestamps { value: 500, echo: 100 });
        let flags = Flags::SYN | Flags::ACK;
        let answer =
            Segment { ack: FIRST, flags, options: Options::Syn(options(false)), timestamps, ..segment(REPLY, 0, 0) };
        story.pep.on_reply(1, &answer, story.now);
        assert_eq!(story.pep.stats().flows, 1);
        story.pep.on_reply(1, &Segment { flags: Flags::RST, ..segment(seq, 0, 0) }, story.now);
        assert_eq!(story.pep.stats().flows, flows, "{seq}");
    }
}

#[test]
fn what_the_receiver_has_is_no_hole_to_the_byte() {
    // Segment 1 is missing, and told; the receiver acknowledges as far as its beginning, into it, and up to its end.
    for (ack, missing) in [(1_000, vec![(1_000, 2_000)]), (1_999, vec![(1_999, 2_000)]), (2_000, vec![])] {
        let mut story = Story::of_a_flow(true);
        for n in [0, 2, 3, 4] {
            story.says(n, 101);
        }
        let timestamps = Some(Timestamps { value: 500, echo: 101 });
        let reply = Segment { ack: FIRST.wrapping_add(ack), timestamps, ..segment(REPLY, 0, 0) };
        story.pep.on_reply(1, &reply, story.now);
        story.says(5, 101);
        let (sent, report) = story.passes(6, 101).expect("a report");
        let number = |offset: u32| sent.ack.wrapping_add(offset).wrapping_sub(FIRST);
        let said: Vec<_> = report.missing().iter().map(|range| (number(range.start), number(range.end))).collect();
        assert_eq!((said, number(report.from), number(report.through)), (missing, ack, 7_000));
    }
}

#[test]
fn a_hole_that_a_report_has_no_room_for_is_told_with_the_next_segment() {
    let mut story = Story::of_a_flow(true);
    for n in [0, 2, 4] {
        story.says(n, 101);
    }
    // Three merged packets overtake three holes at once; the report has room for two.
    let merged = segment(FIRST.wrapping_add(6 * MSS), MSS as u16, 101);
    let arrival = Arrival { packets: 3, packet_len: 52 + MSS, via: 0 };
    let sent = story.pep.on_arrival(1, &merged, &arrival, story.now).expect("a report");
    let Options::Report(report) = sent.options else { panic!("{sent:?}") };
    let said: Vec<_> = report.missing().iter().map(|range| (range.start / MSS, range.end / MSS)).collect();
    assert_eq!((said, report.through), (vec![(1, 2), (3, 4)], 5 * MSS));
    assert_eq!(story.says(7, 101), Some((2, 8, vec![(3, 4), (5, 6)])));
    assert_eq!(story.says(8, 101), None);
}
