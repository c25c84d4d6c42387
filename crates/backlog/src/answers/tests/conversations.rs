//! Which answers say what, conversation by conversation.

use super::super::*;
use super::{MS, at};

/// Hands down packets of 1000 bytes of conversation 1, with these ends, at these times in ms.
fn handed(packets: &[(u32, u64)]) -> Answers {
    let mut drain = Answers::new(MS * 20);
    for &(end, ms) in packets {
        drain.handed(1000, Some(Probe { conversation: 1, end }), at(ms));
    }
    drain
}

fn answer(drain: &mut Answers, upto: u32, exactly: Option<u32>, window: Option<u16>, ms: u64) {
    drain.answered(Answer { conversation: 1, upto, exactly, window }, at(ms));
}

/// The ends that are still to be answered.
fn open(drain: &Answers) -> Vec<u32> {
    drain.conversations[&1].probes.iter().map(|asked| asked.end).collect()
}

#[test]
fn numbers_are_compared_on_a_circle() {
    for (a, b, before) in [
        (5, 5, true),
        (5, 6, true),
        (6, 5, false),
        (u32::MAX, 0, true),
        (0, u32::MAX, false),
        (7, 6 + (1 << 31), true),
        (7, 7 + (1 << 31), false),
    ] {
        assert_eq!(upto(a, b), before, "{a}, {b}");
    }
}

/// The shortest round trip of the last ten seconds, and of the time before in which another one was begun.
#[test]
fn a_base_is_remembered_for_ten_to_twenty_seconds() {
    let mut of = Conversation::new(at(0));
    for (ms, rtt, base) in [
        (0, 50, 50),
        (5_000, 40, 40),
        (10_000, 60, 40),
        (10_001, 70, 40),
        (20_001, 65, 40),
        (20_002, 80, 65),
        (21_000, 75, 65),
        (30_003, 90, 75),
    ] {
        assert_eq!(of.base(MS * rtt, at(ms)), MS * base, "{ms} ms");
    }
}

/// The round trip of the last one that is answered counts, beyond the shortest.
#[test]
fn an_answer_is_to_all_up_to_its_number_and_to_the_one_that_it_names() {
    let ends = [(1000, 0), (2000, 10), (3000, 20), (4000, 30)];
    // Which is answered, at which time, what is learnt of which position, and which are open.
    for (upto, exactly, position, waited, still) in [
        (1000, None, Some(1000), 0, &[2000, 3000, 4000][..]),
        (2999, None, Some(2000), 0, &[3000, 4000]),
        (4000, None, Some(4000), 0, &[]),
        (999, Some(3000), Some(3000), 0, &[1000, 2000, 4000]),
        (1000, Some(3000), Some(3000), 0, &[2000, 4000]),
        (1000, Some(2500), Some(1000), 0, &[2000, 3000, 4000]),
        (999, None, None, 0, &[1000, 2000, 3000, 4000]),
        (4001, Some(1000), None, 0, &[1000, 2000, 3000, 4000]),
    ] {
        let mut drain = handed(&ends);
        answer(&mut drain, upto, exactly, None, 50);
        let row = format!("{upto}, {exactly:?}");
        assert_eq!(drain.last.map(|last| last.position), position, "{row}");
        assert_eq!(drain.delay, position.map(|_| MS * waited), "{row}: its own round trip is the shortest");
        assert_eq!(drain.heard, at(if position.is_some() { 50 } else { 30 }), "{row}");
        assert_eq!(open(&drain), still, "{row}");
    }
    let mut drain = handed(&ends);
    answer(&mut drain, 1000, None, None, 40);
    answer(&mut drain, 4000, None, None, 85);
    let last = drain.last.expect("it is known");
    assert_eq!((drain.delay, last.base, last.answered), (Some(MS * 15), MS * 40, at(85)));
    drain.answered(Answer { conversation: 2, upto: 4000, exactly: None, window: None }, at(90));
    assert_eq!(drain.heard, at(85), "of another conversation, nothing was asked");
}

/// It may have been sent alone, and acknowledged late.
#[test]
fn an_answer_of_tcp_to_all_that_is_open_in_one_packet_tells_the_base_alone() {
    for (ends, upto, window, is_learnt) in [
        (&[(1000, 0)][..], 1000, Some(900), false),
        (&[(1000, 0)], 1000, None, true),
        (&[(1000, 0), (2000, 0)], 1000, Some(900), true),
        (&[(1000, 0), (2000, 0)], 2000, Some(900), true),
    ] {
        let mut drain = handed(ends);
        answer(&mut drain, upto, None, window, 30);
        assert_eq!(drain.last.is_some(), is_learnt, "{ends:?}, {upto}, {window:?}");
        assert_eq!(drain.conversations[&1].base, MS * 30);
    }
}

/// It is not known which of the two is answered (Karn).
#[test]
fn what_is_sent_again_is_not_asked() {
    let mut drain = handed(&[(1000, 0), (2000, 1), (3000, 2), (2000, 3), (1500, 4), (3000, 5), (4000, 6)]);
    assert_eq!(open(&drain), [1000, 4000]);
    assert_eq!(drain.handed, 7_000);
    // A number on the other side of the circle is a new one.
    drain.handed(1000, Some(Probe { conversation: 1, end: 4000 + (1 << 31) - 1 }), at(7));
    assert_eq!(open(&drain), [1000, 4000, 4000 + (1 << 31) - 1]);
    // The first of a conversation is new whatever its number is.
    assert_eq!(open(&handed(&[(u32::MAX, 0)])), [u32::MAX]);
    assert_eq!(open(&handed(&[(0, 0)])), [0]);
}

/// Below a quarter of the widest, for ten seconds.
#[test]
fn a_receiver_whose_window_falls_is_not_asked_for_a_while() {
    for (window, is_slow) in [(1000, false), (250, false), (249, true)] {
        let mut drain = handed(&[(1000, 0), (2000, 0), (3000, 0)]);
        answer(&mut drain, 1000, None, Some(1000), 30);
        answer(&mut drain, 1000, None, Some(window), 40);
        assert_eq!(open(&drain), if is_slow { vec![] } else { vec![2000, 3000] }, "{window}");
        for (end, ms, is_asked) in [(4000, 41, !is_slow), (5000, 10_039, !is_slow), (6000, 10_040, true)] {
            drain.handed(1000, Some(Probe { conversation: 1, end }), at(ms));
            assert_eq!(open(&drain).last() == Some(&end), is_asked, "{window}: {end}");
        }
    }
}

#[test]
fn conversations_beyond_those_that_are_remembered_are_not_asked_until_others_have_been_silent() {
    let mut drain = Answers::new(MS * 20);
    let mut send = |conversation: u64, ms: u64| {
        drain.handed(1000, Some(Probe { conversation, end: ms as u32 }), at(ms));
        (drain.conversations.contains_key(&conversation), drain.conversations.len())
    };
    let most = CONVERSATIONS as u64;
    (0..most).for_each(|conversation| assert!(send(conversation, 1).0));
    assert_eq!(send(most, 2), (false, CONVERSATIONS));
    assert_eq!(send(7, 3), (true, CONVERSATIONS), "a known one is");
    assert_eq!(send(most, 10_000), (false, CONVERSATIONS));
    assert_eq!(send(most, 10_001), (true, 2), "all but one were silent for ten seconds");
}

#[test]
fn probes_beyond_those_that_are_remembered_are_not_asked() {
    let mut drain = Answers::new(MS * 20);
    let asked = |drain: &mut Answers, conversation: u64, end: u32| {
        drain.handed(1000, Some(Probe { conversation, end }), at(1));
        drain.conversations[&conversation].probes.back().is_some_and(|asked| asked.end == end)
    };
    let most = PROBES as u32;
    assert!((1..=most).all(|end| asked(&mut drain, 0, end)) && !asked(&mut drain, 0, most + 1));
    // Of all conversations together, sixteen times as many as there may be conversations.
    let all = CONVERSATIONS as u32 * 16;
    let (others, of_each) = (16, most - 1);
    let mut count = most;
    for conversation in 1..=others {
        for end in 1..=of_each {
            count += 1;
            assert_eq!(asked(&mut drain, conversation, end), count <= all, "{conversation}, {end}");
        }
    }
    assert!(count > all);
}

/// Those leave the front that are answered, or behind which something has drained.
#[test]
fn what_asks_first_is_the_first_that_is_still_open() {
    let fronts = |upto: u32, exactly: Option<u32>| {
        let mut drain = handed(&[(1000, 0), (2000, 0), (3000, 0), (4000, 0)]);
        answer(&mut drain, upto, exactly, None, 30);
        drain.shift();
        drain.asked.front().map(|&(position, _)| position)
    };
    assert_eq!(fronts(999, None), Some(1000));
    assert_eq!(fronts(2000, None), Some(3000));
    assert_eq!(fronts(999, Some(3000)), Some(4000));
    assert_eq!(fronts(4000, None), None);
    // Sent again, nothing is asked of it.
    let mut drain = handed(&[(1000, 0), (2000, 0), (1000, 1)]);
    drain.shift();
    assert_eq!(drain.asked.front(), Some(&(2000, 1)));
    // A conversation that is forgotten asks nothing.
    drain.conversations.clear();
    drain.shift();
    assert!(drain.asked.is_empty());
}

/// Of two answers, that one counts by which more has drained by now: at 1 MB/s, a base longer by 10 ms is 10 kB.
#[test]
fn the_answer_by_which_most_has_drained_counts() {
    let last = |rate: Option<u64>, position: u64, base: u64| {
        let mut drain = Answers::new(MS * 20);
        drain.rate = rate.map(Rate::from_mbps);
        drain.last = Some(Drained { position: 100_000, base: MS * 40, answered: at(1) });
        drain.conversations.insert(1, Conversation::new(at(500)));
        drain.learn(1, Asked { end: 1, position, at: at(500) }, at(500 + base));
        drain.last.expect("there is one").position
    };
    assert_eq!([last(Some(8), 90_000, 50), last(Some(8), 89_999, 50)], [90_000, 100_000]);
    assert_eq!([last(Some(8), 110_000, 30), last(Some(8), 109_999, 30)], [110_000, 100_000]);
    assert_eq!([last(None, 100_000, 10), last(None, 99_999, 90)], [100_000, 100_000]);
}

/// A packet after a rest has the time of a whole silence to be answered.
#[test]
fn a_rest_ends_with_the_next_packet() {
    let mut drain = handed(&[(1000, 0), (2000, 5)]);
    assert_eq!(drain.heard, at(5), "nothing was answered yet");
    answer(&mut drain, 1000, None, None, 40);
    drain.handed(1000, Some(Probe { conversation: 1, end: 3000 }), at(50));
    let answered = |drain: &Answers| drain.last.map(|last| last.answered);
    assert_eq!((drain.heard, answered(&drain)), (at(40), Some(at(40))), "something is unanswered");
    answer(&mut drain, 3000, None, None, 90);
    drain.handed(1000, Some(Probe { conversation: 1, end: 4000 }), at(700));
    assert_eq!((drain.heard, answered(&drain)), (at(700), Some(at(700))));
}

/// Whatever was known.
#[test]
fn after_a_second_without_an_answer_nothing_is_known() {
    let rested = |since: u64| {
        let mut drain = super::draining(2_000_000, Some(101_000));
        drain.conversations.insert(1, Conversation::new(at(0)));
        drain.conversations.get_mut(&1).expect("it is there").probes.push_back(Asked {
            end: 1,
            position: 101_000,
            at: at(0),
        });
        drain.delay = Some(MS);
        (drain.has_room(at(500 + since)), drain)
    };
    let (has_room, drain) = rested(999);
    assert!(!has_room && drain.rate.is_some());
    let (has_room, mut drain) = rested(1_000);
    assert!(has_room && drain.last.is_none() && drain.round.is_none() && drain.asked.is_empty());
    assert_eq!(drain.estimate(at(1_500)), Estimate::default());
    assert!(drain.conversations[&1].probes.is_empty() && drain.rates.is_empty());
    assert_eq!(drain.poll_timeout(at(1_500)), None);
    // All that was sent has drained: there is room, whatever the window is.
    drain = super::draining(100_000, None);
    drain.rate = Some(Rate::from_bits_per_sec(0));
    assert!(drain.has_room(at(500)));
}
