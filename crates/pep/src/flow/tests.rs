//! The limits of what belongs to a flow, to the byte and the tick.

use super::*;

/// The first byte of the sender, the next number of the receiver, and the newest timestamps of both.
const FIRST: u32 = 1_000_000;
const REPLY: u32 = 5_000;
const SENDERS: u32 = 100;
const RECEIVERS: u32 = 500;
/// The limits of `docs/src/pep-messages.md`: 8 MB, 2^30 bytes, 2^22 ticks.
const MB_8: u64 = 8 << 20;
const GIB: u64 = 1 << 30;
const TICKS: u32 = 1 << 22;

fn stamps(value: u32, echo: u32) -> Timestamps {
    Timestamps { value, echo }
}

fn data(offset: u64, len: u16) -> Segment {
    let seq = FIRST.wrapping_add(offset as u32);
    Segment { seq, ack: REPLY, window: 9, len, flags: Flags::ACK, timestamps: None, options: Options::default() }
}

fn ack(offset: u64) -> Segment {
    Segment { seq: REPLY, ack: FIRST.wrapping_add(offset as u32), window: 1000, ..data(0, 0) }
}

const ARRIVAL: Arrival = Arrival { packets: 1, packet_len: 1_000, via: 0 };

/// A flow whose handshake was seen, without a window scale in the receiver's SYN: windows count bytes.
fn flow() -> Flow {
    let options = wire::SynOptions { mss: 1460, window_scale: None, sack_permitted: true, reports: true };
    let syn = Segment { flags: Flags::SYN, options: Options::Syn(options), ..data(0, 0) };
    let syn = Segment { seq: FIRST.wrapping_sub(1), ..syn };
    let newcomer = Newcomer::new(&syn, stamps(SENDERS, 0), &ARRIVAL, Time::ZERO);
    Flow::new(&newcomer, None, &ack(0), stamps(RECEIVERS, SENDERS), Time::ZERO)
}

/// The same, whose receiver has announced more room than any test needs: nothing but the distance bounds the data.
fn roomy() -> Flow {
    let mut flow = flow();
    flow.receiver.edge = None;
    flow
}

/// So many bytes have passed in a row.
fn passed(mut flow: Flow, bytes: u64) -> Flow {
    let mut at = 0;
    while at < bytes {
        let len = (bytes - at).min(50_000);
        flow.pass(&data(at, len as u16), SENDERS, &ARRIVAL, Time::ZERO);
        at += len;
    }
    flow
}

const NOW: Timestamps = Timestamps { value: SENDERS, echo: RECEIVERS };
const THEN: Timestamps = Timestamps { value: RECEIVERS, echo: SENDERS };

#[test]
fn data_belongs_to_a_flow_within_8_mib_of_what_has_passed() {
    let flow = roomy();
    assert!(flow.owns(&data(MB_8, 100), NOW));
    assert!(!flow.owns(&data(MB_8 + 1, 100), NOW));
    // Below the receiver's acknowledgement, the end counts.
    let mut flow = passed(flow, 2 * MB_8);
    flow.reply(&ack(2 * MB_8), THEN, Time::ZERO);
    assert!(flow.owns(&data(MB_8 - 100, 100), NOW));
    assert!(!flow.owns(&data(MB_8 - 101, 100), NOW));
}

#[test]
fn data_in_transit_widens_the_distance() {
    let flow = passed(roomy(), 3 * MB_8);
    assert!(flow.owns(&data(6 * MB_8, 1), NOW));
    assert!(!flow.owns(&data(6 * MB_8 + 1, 1), NOW));
}

#[test]
fn nothing_belongs_to_a_flow_a_gibibyte_beyond_the_acknowledgement() {
    let bytes = 3 * (1 << 28);
    let mut flow = passed(roomy(), bytes);
    assert!(flow.owns(&data(GIB - 101, 100), NOW));
    assert!(!flow.owns(&data(GIB - 100, 100), NOW));
    assert!(flow.is_answered_by(&ack(GIB - 1), THEN));
    assert!(!flow.is_answered_by(&ack(GIB), THEN));
    // Nor is a number that is as far from the highest byte.
    flow.reply(&ack(bytes), THEN, Time::ZERO);
    assert_eq!(flow.offset((flow.high + GIB - 1) as u32), Some(flow.high + GIB - 1));
    assert_eq!(flow.offset((flow.high + GIB) as u32), None);
    assert_eq!(flow.offset((flow.high - GIB) as u32), None);
}

#[test]
fn data_belongs_to_a_flow_up_to_the_receivers_edge() {
    let mut flow = flow();
    assert!(flow.owns(&data(0, 1000), NOW) && flow.owns(&data(900, 100), NOW));
    assert!(!flow.owns(&data(0, 1001), NOW) && !flow.owns(&data(901, 100), NOW));
    // The edge never moves back, and a window is counted from its own acknowledgement.
    flow.reply(&Segment { window: 10, ..ack(0) }, THEN, Time::ZERO);
    assert!(flow.owns(&data(900, 100), NOW));
    flow.pass(&data(0, 1000), SENDERS, &ARRIVAL, Time::ZERO);
    flow.reply(&Segment { window: 700, ..ack(500) }, THEN, Time::ZERO);
    assert!(flow.owns(&data(1000, 200), NOW) && !flow.owns(&data(1000, 201), NOW));
}

#[test]
fn timestamps_of_data_are_not_much_older_than_those_known_and_its_echo_not_much_newer() {
    let flow = flow();
    let owns = |value: u32, echo: u32| flow.owns(&data(0, 100), stamps(value, echo));
    assert!(owns(SENDERS.wrapping_sub(TICKS), RECEIVERS) && !owns(SENDERS.wrapping_sub(TICKS + 1), RECEIVERS));
    assert!(owns(SENDERS, RECEIVERS.wrapping_sub(TICKS)) && !owns(SENDERS, RECEIVERS.wrapping_sub(TICKS + 1)));
    assert!(owns(SENDERS, RECEIVERS + TICKS) && !owns(SENDERS, RECEIVERS + TICKS + 1));
    // A sender's clock may have run on for as long as it likes.
    assert!(owns(SENDERS + 10 * TICKS, RECEIVERS));
}

#[test]
fn an_answer_echoes_what_has_passed_and_is_near_in_both_directions() {
    let mut flow = passed(roomy(), 10_000);
    let answers = |flow: &Flow, value: u32, echo: u32| flow.is_answered_by(&ack(10_000), stamps(value, echo));
    assert!(answers(&flow, RECEIVERS, SENDERS) && !answers(&flow, RECEIVERS, SENDERS + 1));
    assert!(answers(&flow, RECEIVERS, SENDERS.wrapping_sub(TICKS)));
    assert!(!answers(&flow, RECEIVERS, SENDERS.wrapping_sub(TICKS + 1)));
    assert!(answers(&flow, RECEIVERS.wrapping_sub(TICKS), SENDERS));
    assert!(!answers(&flow, RECEIVERS.wrapping_sub(TICKS + 1), SENDERS));
    // What is acknowledged may have passed elsewhere, but not far from what passed here.
    assert!(flow.is_answered_by(&ack(10_000 + MB_8), THEN) && !flow.is_answered_by(&ack(10_001 + MB_8), THEN));
    let beyond = |distance: u32| Segment { seq: REPLY.wrapping_add(distance), ..ack(10_000) };
    let span = MB_8 as u32;
    assert!(flow.is_answered_by(&beyond(span), THEN) && !flow.is_answered_by(&beyond(span + 1), THEN));
    let below = |distance: u32| Segment { seq: REPLY.wrapping_sub(distance), ..ack(10_000) };
    assert!(flow.is_answered_by(&below(span), THEN) && !flow.is_answered_by(&below(span + 1), THEN));
    // Of data, the end counts.
    let with_data = |distance: u32| Segment { len: 100, ..beyond(distance) };
    assert!(flow.is_answered_by(&with_data(span - 100), THEN) && !flow.is_answered_by(&with_data(span - 99), THEN));
    // An acknowledgement from long before the highest one answers nothing.
    flow = passed(roomy(), 3 * MB_8);
    flow.reply(&ack(2 * MB_8), THEN, Time::ZERO);
    assert!(flow.is_answered_by(&ack(MB_8), THEN) && !flow.is_answered_by(&ack(MB_8 - 1), THEN));
}

#[test]
fn replies_that_overtake_each_other_leave_the_highest_number() {
    let mut flow = passed(flow(), 1000);
    let with_data = |seq: u32, len: u16, value| (Segment { seq, len, ..ack(500) }, stamps(value, SENDERS));
    let (second, stamps) = with_data(REPLY + 100, 100, RECEIVERS + 2);
    flow.reply(&second, stamps, Time::ZERO);
    let (first, stamps) = with_data(REPLY, 100, RECEIVERS + 1);
    flow.reply(&Segment { window: 77, ..first }, stamps, Time::ZERO);
    let Receiver { next, stamp, window, ack: known, .. } = flow.receiver;
    assert_eq!((next, stamp, window), (REPLY + 200, RECEIVERS + 2, 1000), "what was sent first tells nothing new");
    assert_eq!(known as u32, FIRST + 500);
    // A pure acknowledgement of the same tick bears the next number, though it is lower: the receiver went back.
    flow.reply(&Segment { seq: REPLY + 150, window: 5, ..ack(400) }, self::stamps(RECEIVERS + 2, SENDERS), Time::ZERO);
    let Receiver { next, window, ack: after, .. } = flow.receiver;
    assert_eq!((next, window, after), (REPLY + 150, 5, known), "and the acknowledgement never falls");
}

#[test]
fn a_connection_is_over_when_both_sides_have_closed_it() {
    let mut flow = flow();
    assert!(!flow.is_closing());
    flow.pass(&Segment { flags: Flags::ACK | Flags::FIN, ..data(0, 10) }, SENDERS, &ARRIVAL, Time::ZERO);
    assert!(!flow.is_closing(), "the sender alone");
    flow.pass(&data(0, 10), SENDERS, &ARRIVAL, Time::ZERO);
    flow.reply(&Segment { flags: Flags::ACK | Flags::FIN, ..ack(11) }, THEN, Time::ZERO);
    assert!(flow.is_closing());
    let mut flow = self::flow();
    flow.reply(&Segment { flags: Flags::ACK | Flags::FIN, ..ack(0) }, THEN, Time::ZERO);
    flow.reply(&ack(0), THEN, Time::ZERO);
    assert!(!flow.is_closing(), "the receiver alone");
}

#[test]
fn the_scale_of_windows_needs_the_offers_of_both() {
    let syn = |window_scale| {
        let options = wire::SynOptions { mss: 1460, window_scale, sack_permitted: true, reports: true };
        Segment { flags: Flags::SYN, options: Options::Syn(options), ..data(0, 0) }
    };
    let newcomer = |segment: &Segment| Newcomer::new(segment, NOW, &ARRIVAL, Time::ZERO);
    let (scaling, plain) = (newcomer(&syn(Some(7))), newcomer(&syn(None)));
    let opening = |scale| Opening::new(&syn(scale), THEN);
    // The sender opens, and the receiver's SYN-ACK is the reply; or the receiver has opened.
    assert_eq!(window_scale(&scaling, None, &syn(Some(3))), Some(3));
    assert_eq!(window_scale(&scaling, None, &syn(None)), Some(0));
    assert_eq!(window_scale(&scaling, Some(&opening(Some(5))), &ack(0)), Some(5));
    assert_eq!(window_scale(&scaling, Some(&opening(None)), &ack(0)), Some(0));
    assert_eq!(window_scale(&scaling, None, &ack(0)), None, "the receiver's SYN was not seen");
    assert_eq!(window_scale(&plain, Some(&opening(Some(5))), &syn(Some(3))), Some(0));
    assert_eq!(window_scale(&newcomer(&data(0, 100)), None, &syn(Some(3))), None);
}

/// A flow that was running when it was first seen: its data up to `offset` has been answered.
fn adrift(offset: u64) -> Flow {
    let newcomer = Newcomer::new(&data(offset - 100, 100), NOW, &ARRIVAL, Time::ZERO);
    Flow::new(&newcomer, None, &ack(offset), THEN, Time::ZERO)
}

#[test]
fn data_that_passed_unseen_widens_the_distance_until_some_is_seen() {
    let far = 1_u64 << 28;
    let mut flow = adrift(100);
    assert!(flow.owns(&data(100 + far, 1), NOW) && !flow.owns(&data(101 + far, 1), NOW));
    flow.pass(&data(100, 100), SENDERS, &ARRIVAL, Time::ZERO);
    assert!(flow.owns(&data(200 + MB_8, 1), NOW) && !flow.owns(&data(201 + MB_8, 1), NOW));
    // It begins where it is seen, but not with what the receiver has already.
    for (start, high) in [(5_000, 5_500), (5_200, 5_700), (4_000, 5_000), (4_900, 5_400)] {
        let mut flow = adrift(5_000);
        let base = flow.high - 5_000;
        flow.pass(&data(start, 500), SENDERS, &ARRIVAL, Time::ZERO);
        assert_eq!((flow.high - base, flow.open), (high, 0), "{start}");
    }
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    let syn = |seq: u32, ack: u32, flags| {
        let options = wire::SynOptions { mss: 1460, window_scale: Some(3), sack_permitted: true, reports: true };
        Segment { seq, ack, window: 1000, flags: Flags::SYN | flags, options: Options::Syn(options), ..data(0, 0) }
    };
    let newcomer = Newcomer::new(&syn(FIRST - 1, 0, Flags(0)), stamps(SENDERS, 0), &ARRIVAL, Time::ZERO);
    let mut flow = Flow::new(&newcomer, None, &syn(REPLY - 1, FIRST, Flags::ACK), THEN, Time::ZERO);
    assert!(flow.owns(&data(0, 1_000), NOW) && !flow.owns(&data(0, 1_001), NOW));
    // In units of 8 bytes from then on.
    flow.reply(&ack(0), THEN, Time::ZERO);
    assert!(flow.owns(&data(0, 8_000), NOW) && !flow.owns(&data(0, 8_001), NOW));
}

#[test]
fn a_flow_may_begin_at_the_first_sequence_number() {
    let at = |offset: u32, len| Segment { seq: offset, ..data(0, len) };
    let syn = Segment { flags: Flags::SYN, ..at(u32::MAX, 0) };
    let newcomer = Newcomer::new(&syn, stamps(SENDERS, 0), &ARRIVAL, Time::ZERO);
    let mut flow = Flow::new(&newcomer, None, &Segment { ack: 0, ..ack(0) }, THEN, Time::ZERO);
    assert!(flow.owns(&at(0, 100), NOW) && flow.owns(&at(u32::MAX - 99, 100), NOW));
    flow.announce();
    flow.pass(&at(0, 100), SENDERS, &ARRIVAL, Time::ZERO);
    flow.pass(&at(100, 100), SENDERS, &ARRIVAL, Time::ZERO);
    flow.receiver.moved = true;
    let news = flow.news(RANGES).expect("data has passed");
    let (report, _) = flow.report(&news, None, 20).expect("more has come than it takes");
    assert_eq!((report.ack, report.options), (u32::MAX, Options::Report(Report::new(1, 201))));
}

#[test]
fn a_hole_is_not_split_where_there_is_no_room_for_another() {
    let mut flow = roomy();
    // Three missing segments, and seven of one.
    for n in [0, 4, 6, 8, 10, 12, 14, 16, 18] {
        flow.pass(&data(100 * n, 100), SENDERS, &ARRIVAL, Time::ZERO);
    }
    let holes = |flow: &Flow| -> Vec<(u64, u64)> {
        let base = flow.first;
        flow.holes[..flow.open].iter().map(|hole| (hole.start - base, hole.end - base)).collect()
    };
    let before = holes(&flow);
    assert_eq!((before.len(), before[0], before[7]), (HOLES, (100, 400), (1700, 1800)));
    flow.pass(&data(200, 100), SENDERS, &ARRIVAL, Time::ZERO);
    assert_eq!((holes(&flow), flow.due), (before.clone(), Due::Nothing));
    // Its ends need no room.
    flow.pass(&data(100, 100), SENDERS, &ARRIVAL, Time::ZERO);
    flow.pass(&data(300, 100), SENDERS, &ARRIVAL, Time::ZERO);
    assert_eq!(holes(&flow)[..2], [(200, 300), before[1]]);
    flow.pass(&data(1700, 100), SENDERS, &ARRIVAL, Time::ZERO);
    assert_eq!(holes(&flow).len(), HOLES - 1);
}

#[test]
fn reordering_is_learnt_up_to_three_hundred_and_never_unlearnt() {
    let mut flow = roomy();
    // Sent before what overtook it, or after.
    let late = |flow: &mut Flow, at: u64, overtaking: u64, stamp: u32| {
        for n in (0..=overtaking).filter(|&n| n != 1) {
            flow.pass(&data(at + 10 * n, 10), SENDERS, &ARRIVAL, Time::ZERO);
        }
        flow.pass(&data(at + 10, 10), stamp, &ARRIVAL, Time::ZERO);
        flow.reordering
    };
    assert_eq!(late(&mut flow, 0, 8, SENDERS - 1), 7);
    assert_eq!(late(&mut flow, 90, 4, SENDERS - 1), 7);
    assert_eq!(late(&mut flow, 140, 20, SENDERS), 7, "it was sent again");
    assert_eq!(late(&mut flow, 350, 500, SENDERS - 1), 300);
}

#[test]
fn a_segment_that_fills_a_hole_and_shows_another_missing_is_reported_with_all() {
    let mut flow = roomy();
    for n in [0, 2, 4] {
        flow.pass(&data(100 * n, 100), SENDERS, &ARRIVAL, Time::ZERO);
    }
    flow.pass(&data(300, 100), SENDERS, &ARRIVAL, Time::ZERO);
    assert_eq!((flow.due, flow.open, flow.holes[0].missing), (Due::All, 1, true));
    let news = flow.news(RANGES).expect("a hole is missing");
    assert_eq!((news.through - flow.first, news.is_nack()), (500, true));
}

#[test]
fn an_overview_names_as_many_ranges_as_there_is_room_for_and_ends_at_the_next() {
    let mut flow = roomy();
    let base = flow.receiver.ack;
    // Bytes 1000 to 1999, 3000 to 3999 and 5000 to 5999 are missing.
    for at in [0, 2000, 4000, 6000, 7000, 8000] {
        flow.pass(&data(at, 1000), SENDERS, &ARRIVAL, Time::ZERO);
    }
    let seen = |flow: &Flow, ranges: usize| {
        let News { from, through, missing } = flow.overview(base, ranges);
        (from - base, through - base, missing)
    };
    assert_eq!(seen(&flow, 1), (0, 3000, (0, 1)));
    assert_eq!(seen(&flow, 2), (0, 5000, (0, 2)));
    assert_eq!(seen(&flow, 3), (0, 9000, (0, 3)));
    // What has been told makes room for what is new, and is told again if nothing is.
    flow.holes[0].reported = true;
    assert_eq!(seen(&flow, 1), (2000, 5000, (1, 2)));
    assert_eq!(seen(&flow, 2), (2000, 9000, (1, 3)));
    flow.holes[1].reported = true;
    flow.holes[2].reported = true;
    assert_eq!(seen(&flow, 2), (2000, 9000, (1, 3)));
}
