//! What a PEP reports on random streams with losses, late segments and merged ones, report by report. A change that is meant
//! to change a table shows there which reports change.

use pep::{Arrival, Config, Pep};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use units::{Span, Time};
use wire::report::Key;
use wire::{Flags, Options, Segment, SynOptions, Timestamps};

const MSS: u32 = 1_000;
const FIRST: u32 = u32::MAX - 20_000;
const REPLY: u32 = u32::MAX - 100;

/// Knuth's MMIX generator: a number below `bound`.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// The order in which segments pass: some are missing and come again later, some are late.
fn order(state: &mut u64, count: u32) -> Vec<(u32, bool)> {
    let mut waiting: Vec<(u32, u32, bool)> = Vec::new();
    let mut order = Vec::new();
    for n in 0..count {
        match draw(state, 100) {
            0..=4 => waiting.push((n + 12 + draw(state, 10) as u32, n, true)),
            5..=12 => waiting.push((n + 1 + draw(state, 7) as u32, n, false)),
            13..=14 => order.extend([(n, false), (n, true)]),
            _ => order.push((n, false)),
        }
        waiting.sort_unstable();
        while waiting.first().is_some_and(|&(due, ..)| due <= n) {
            let (_, late, again) = waiting.remove(0);
            order.push((late, again));
        }
    }
    order.extend(waiting.into_iter().map(|(_, n, again)| (n, again)));
    order
}

/// A download past a PEP: its reports, a line each, with the segment that caused it.
fn stream(config: Config, announced: bool, seed: u64) -> String {
    let mut pep: Pep<u8> = Pep::new(config);
    let (mut state, mut now, mut text) = (seed, Time::ZERO, String::new());
    let options = |reports| SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports };
    let timestamps = |value, echo| Some(Timestamps { value, echo });
    let plain = |seq, ack, value, echo| Segment {
        seq,
        ack,
        window: 0,
        len: 0,
        flags: Flags::ACK,
        timestamps: timestamps(value, echo),
        options: Options::default(),
    };
    let syn = Segment { flags: Flags::SYN, options: Options::Syn(options(false)), ..plain(REPLY - 1, 0, 900, 0) };
    pep.on_reply(1, &syn, now);
    let both = Flags::SYN | Flags::ACK;
    let answer =
        Segment { flags: both, options: Options::Syn(options(announced)), ..plain(FIRST - 1, REPLY, 100, 900) };
    assert_eq!(pep.on_data(1, &answer, 60, now), None);
    pep.on_reply(1, &Segment { window: 400, ..plain(REPLY, FIRST, 901, 100) }, now);
    let (mut arrived, mut acked, mut next) = (BTreeSet::new(), 0, REPLY);
    let mut replies: VecDeque<(u32, Segment)> = VecDeque::new();
    let mut echo = 901;
    for (step, (n, again)) in (0..).zip(order(&mut state, 300)) {
        now += Span::from_millis(1);
        while let Some((_, reply)) = replies.pop_front_if(|(due, _)| *due <= step) {
            echo = echo.max(reply.timestamps.map_or(0, |stamps| stamps.value));
            pep.on_reply(1, &reply, now);
        }
        // A segment keeps the time of its first transmission unless it is sent again.
        let stamp = if again { 101 + step } else { 101 + n };
        let merged = if draw(&mut state, 20) == 0 { 2 } else { 1 };
        let push = if draw(&mut state, 30) == 0 { Flags::PSH } else { Flags(0) };
        let options = if draw(&mut state, 90) == 0 { Options::Announcement } else { Options::default() };
        let data = Segment {
            len: MSS as u16,
            flags: Flags::ACK | push,
            options,
            ..plain(FIRST.wrapping_add(n * MSS), REPLY, stamp, echo)
        };
        let via = u64::from(draw(&mut state, 60) == 0);
        let arrival = Arrival { packets: merged, packet_len: 52 + MSS, via };
        if let Some(sent) = pep.on_arrival(1, &data, &arrival, now) {
            let Options::Report(report) = sent.options else { panic!("{sent:?}") };
            let offset = |number: u32| sent.ack.wrapping_add(number).wrapping_sub(FIRST) as i32;
            write!(text, "{n:>3}: {} to {}", offset(report.from), offset(report.through)).expect("a text takes it");
            for range in report.missing() {
                write!(text, " but {} to {}", offset(range.start), offset(range.end)).expect("a text takes it");
            }
            let stamps = sent.timestamps.expect("it has some");
            writeln!(
                text,
                "; ack {} seq {} win {} ts {} {}{}",
                sent.ack.wrapping_sub(FIRST) as i32,
                sent.seq.wrapping_sub(REPLY),
                sent.window,
                stamps.value,
                stamps.echo,
                if report.is_tagged() { " tagged" } else { "" }
            )
            .expect("a text takes it");
        }
        arrived.insert(n);
        while arrived.contains(&acked) {
            acked += 1;
        }
        if draw(&mut state, 2) == 0 {
            // The receiver sends a little, too.
            let len = if draw(&mut state, 8) == 0 { 50 } else { 0 };
            let ack = FIRST.wrapping_add(acked * MSS);
            let window = 300 + draw(&mut state, 200) as u16;
            let reply = Segment { len, window, ..plain(next, ack, 901 + step, stamp) };
            next = next.wrapping_add(u32::from(len));
            replies.push_back((step + 3 + draw(&mut state, 4) as u32, reply));
        }
    }
    writeln!(text, "{:?}", pep.stats()).expect("a text takes it");
    text
}

#[test]
fn every_second_segment_to_a_sender_that_asked() {
    insta::assert_snapshot!(stream(Config::default(), true, 1));
}

#[test]
fn every_fifth_segment_to_any_sender() {
    insta::assert_snapshot!(stream(Config { every: 5, all: true, ..Config::default() }, false, 2));
}

#[test]
fn with_a_key() {
    let config = Config { key: Some(Key::new([9; 16])), every: 3, ..Config::default() };
    insta::assert_snapshot!(stream(config, true, 3));
}
