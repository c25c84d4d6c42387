//! The receiver's decisions, each at its limits.

use super::*;

const MS: fn(u64) -> Span = Span::from_millis;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A receiver of an established connection that has taken so many bytes and acknowledged all of them, with a window of
/// 60,000 bytes; acknowledgements are not quick any more.
fn receiver(kernel: Kernel) -> Receiver {
    let config = Config { kernel, auto_read: false, ..Config::default() };
    let mut r = Receiver::new(&config);
    r.synchronize(0);
    r.begin(1448, true);
    r.establish(at(0));
    (r.next, r.acked, r.copied, r.window, r.mss) = (10_001, 10_001, 10_001, 60_000, 1448);
    (r.ato, r.last_data) = (ATO_MIN, at(1_000));
    r
}

const DELAYS: Delays = Delays { srtt: None, rto: Span::from_millis(300) };

fn payload(seq: u64, len: u64) -> Payload {
    Payload { seq, len, fin: false, push: false }
}

#[test]
fn a_segment_that_touches_the_window_is_acceptable() {
    let r = receiver(Kernel::V6_18);
    // From the last acknowledged byte to one past the window: 70,001.
    for (seq, end, acceptable) in [
        (9_000, 10_000, false),
        (9_000, 10_001, true),
        (10_001, 10_001, true),
        (70_001, 70_001, true),
        (70_000, 80_000, true),
        (70_002, 70_002, false),
    ] {
        assert_eq!(r.acceptable(seq, end), acceptable, "{seq} to {end}");
    }
    // The window that was announced is counted from the last acknowledgement.
    let mut r = receiver(Kernel::V6_18);
    r.next = 20_001;
    assert_eq!(r.open_window(), 50_000);
    assert!(r.acceptable(10_001, 10_001) && r.acceptable(70_001, 70_001) && !r.acceptable(70_002, 70_002));
}

#[test]
fn what_begins_inside_the_window_is_taken_and_the_rest_is_useless() {
    for (data, delivered, duplicates) in [
        (payload(10_001, 100), 100, 0),
        (payload(9_901, 200), 100, 0),
        (payload(9_901, 100), 0, 1),
        (payload(70_000, 100), 0, 0),
        (payload(70_001, 100), 0, 1),
        // A FIN without data may stand at the end of the window.
        (Payload { fin: true, ..payload(70_001, 0) }, 0, 0),
        (Payload { fin: true, ..payload(70_002, 0) }, 0, 1),
        (Payload { fin: true, ..payload(10_001, 0) }, 0, 0),
    ] {
        let mut r = receiver(Kernel::V6_18);
        let mut stats = Stats::default();
        assert_eq!(r.on_data(data, DELAYS, at(1_100), &mut stats), delivered, "{data:?}");
        assert_eq!(stats.duplicates_received, duplicates, "{data:?}");
        assert_eq!(stats.out_of_order_received, u64::from(data.seq > 10_001 && duplicates == 0), "{data:?}");
        assert_eq!(
            (r.next, r.finished()),
            (10_001 + delivered + u64::from(data.fin && data.seq == 10_001), r.fin < r.next)
        );
        assert!(r.owed);
        // What had arrived before is reported.
        let reported = (data.seq < 10_001).then(|| Range::new(data.seq, 10_001));
        assert_eq!(r.d_sack, reported, "{data:?}");
    }
}

#[test]
fn the_expected_gap_between_segments_follows_half_of_it() {
    // Linux `tcp_event_data_recv`: the gap, and what 100 ms become.
    for (gap, ato, quick) in [
        (0, 70, 0),
        (20, 70, 0),
        (21, 71, 0),
        (99, 149, 0),
        (100, 100, 0),
        (300, 100, 0),
        // More than a time-out: 60,000 / 2896 = 20 segments, of which 16 are acknowledged at once.
        (301, 100, 16),
    ] {
        let mut r = receiver(Kernel::V6_18);
        r.ato = MS(100);
        r.on_arrival(100, false, DELAYS, at(1_000 + gap));
        assert_eq!((r.ato, r.quick, r.last_data), (MS(ato), quick, at(1_000 + gap)), "{gap} ms");
    }
    // At most a time-out, and for the first segment 40 ms.
    let mut r = receiver(Kernel::V6_18);
    r.ato = MS(280);
    r.on_arrival(100, false, DELAYS, at(1_279));
    assert_eq!(r.ato, MS(300));
    r.ato = Span::ZERO;
    r.on_arrival(100, false, DELAYS, at(1_300));
    assert_eq!((r.ato, r.quick), (ATO_MIN, 16));
}

#[test]
fn few_segments_in_the_window_mean_few_quick_acknowledgements() {
    for (window, quick) in [(60_000, 16), (46_336, 16), (46_335, 15), (5_792, 2), (2_896, 1), (2_895, 2), (0, 2)] {
        let mut r = receiver(Kernel::V6_18);
        r.window = window;
        r.add_quick_acks(QUICK_ACKS);
        assert_eq!(r.quick, quick, "{window}");
    }
    // More are kept, and a mark asks for two.
    let mut r = receiver(Kernel::V6_18);
    r.quick = 5;
    (r.interactive, r.ato) = (true, MS(90));
    r.on_ce();
    assert_eq!((r.quick, r.interactive, r.ato, r.demand_cwr), (5, false, ATO_MIN, true));
    r.quick = 0;
    r.on_ce();
    assert_eq!(r.quick, 0, "only the first mark");
    r.on_cwr(false);
    assert!(!r.demand_cwr && !r.now_due);
    r.on_ce();
    assert_eq!(r.quick, 2);
    r.on_cwr(true);
    assert!(!r.demand_cwr && r.now_due);
}

#[test]
fn an_acknowledgement_waits_for_the_next_segment_but_not_for_long() {
    // The gap, whether replies are expected, the round-trip time, and the delay in both kernels.
    for (ato, interactive, srtt, old, new) in [
        (30, false, None, 30, 30),
        (40, false, Some(10), 40, 40),
        (41, false, None, 41, 41),
        (100, false, Some(60), 60, 60),
        (100, false, Some(30), 40, 40),
        (100, true, Some(150), 100, 100),
        (600, false, None, 200, 199),
        (600, true, Some(700), 200, 199),
    ] {
        for (kernel, delay) in [(Kernel::V6_1, old), (Kernel::V6_18, new)] {
            let mut r = receiver(kernel);
            (r.ato, r.interactive) = (MS(ato), interactive);
            r.delay_ack(Delays { srtt: srtt.map(MS), ..DELAYS }, at(2_000));
            assert_eq!((r.delayed, r.now_due), (at(2_000 + delay), false), "{ato} {interactive} {srtt:?} {kernel:?}");
        }
    }
}

#[test]
fn a_timer_that_is_about_to_expire_is_not_waited_for() {
    // With a delay of 40 ms: an earlier timer within 10 ms is due now; a later one comes forward.
    for (left, due, delayed) in [(10, true, 10), (11, false, 11), (40, false, 40), (90, false, 40)] {
        let mut r = receiver(Kernel::V6_18);
        r.delayed = at(2_000 + left);
        r.delay_ack(DELAYS, at(2_000));
        assert_eq!((r.now_due, r.delayed), (due, at(2_000 + delayed)), "{left} ms");
    }
}

#[test]
fn a_delayed_acknowledgement_that_had_to_leave_doubles_the_gap() {
    for (ato, interactive, after) in [(100, false, 200), (200, false, 300), (100, true, 40)] {
        let mut r = receiver(Kernel::V6_18);
        (r.owed, r.delayed, r.ato, r.interactive) = (true, at(2_000), MS(ato), interactive);
        r.on_timeout(MS(300), at(1_999));
        assert!(!r.now_due);
        r.on_timeout(MS(300), at(2_000));
        assert_eq!((r.now_due, r.ato, r.interactive, r.delayed), (true, MS(after), false, Time::MAX));
    }
    // What was acknowledged meanwhile, or has nothing compressed, does not leave.
    let mut r = receiver(Kernel::V6_18);
    (r.delayed, r.compress) = (at(2_000), at(2_000));
    r.on_timeout(MS(300), at(2_000));
    assert_eq!((r.now_due, r.ato, r.timeout()), (false, ATO_MIN, Time::MAX));
    (r.compress, r.compressed) = (at(3_000), 1);
    assert_eq!(r.timeout(), at(3_000));
    r.on_timeout(MS(300), at(3_000));
    assert!(r.now_due);
}

#[test]
fn an_acknowledgement_is_due_for_more_than_a_segment_if_the_window_may_advance() {
    let check = |next: u64, unread: u64, window: u64, auto_read: bool| {
        let mut r = receiver(Kernel::V6_18);
        (r.next, r.copied, r.window, r.owed) = (next, next - unread, window, true);
        r.space.set_full(60_000);
        r.auto_read = auto_read;
        r.check_ack(DELAYS, at(2_000));
        r.now_due
    };
    // More than 1448 bytes, of which the application has read all, or the window need not shrink.
    assert!(!check(11_449, 0, 60_000, false) && check(11_450, 0, 60_000, false));
    assert!(!check(11_450, 1_449, 60_000, false) && check(11_450, 1_449, 1_448, false));
    // Of 58,551 bytes that are free, the window is the next multiple of 1024.
    assert!(check(11_450, 1_449, 59_392, false) && !check(11_450, 1_449, 59_393, false));
    // Who reads as data arrives has room.
    assert!(check(11_450, 1_449, 60_000, true));
}

#[test]
fn a_reader_that_empties_the_buffer_acknowledges_what_was_pushed() {
    // The peer pushed once, or twice; a reply is expected or not; all is read or not.
    for (pushed, twice, interactive, all, due) in [
        (false, false, false, true, false),
        (true, false, false, true, true),
        (true, false, true, true, false),
        (true, true, true, true, true),
        (true, true, true, false, false),
        (true, false, false, false, false),
    ] {
        let mut r = receiver(Kernel::V6_18);
        (r.pushed, r.pushed_twice, r.interactive) = (pushed, twice, interactive);
        (r.next, r.owed) = (10_101, true);
        assert_eq!(r.read(if all { u64::MAX } else { 99 }, at(2_000)), if all { 100 } else { 99 });
        assert_eq!(r.now_due, due, "{pushed} {twice} {interactive} {all}");
    }
    // More than a segment is acknowledged when it is read.
    for (len, due) in [(1_448, false), (1_449, true)] {
        let mut r = receiver(Kernel::V6_18);
        (r.next, r.owed) = (10_001 + len, true);
        r.read(10, at(2_000));
        assert_eq!(r.now_due, due, "{len}");
    }
}

#[test]
fn two_pushes_of_short_segments_are_told_from_one() {
    let mut r = receiver(Kernel::V6_18);
    r.on_small_segment(100, true);
    assert_eq!((r.pushed, r.pushed_twice, r.small_mss), (true, false, 0));
    r.on_small_segment(100, true);
    assert!(r.pushed_twice);
    // 88 bytes without PSH, or 536 with it, that come twice are the peer's full size.
    for (len, push, full) in [(87, false, false), (88, false, true), (535, true, false), (536, true, true)] {
        let mut r = receiver(Kernel::V6_18);
        r.on_small_segment(len, push);
        r.on_small_segment(len, push);
        assert_eq!(r.mss == len, full, "{len} {push}");
        assert_eq!(r.pushed_twice, !full);
    }
}

#[test]
fn the_timestamp_to_echo_is_that_of_the_segment_that_an_acknowledgement_is_for() {
    // RFC 7323 section 4.3.
    for (seq, value, taken) in [(10_001, 50, true), (10_001, 49, false), (10_002, 51, false), (9_000, 51, true)] {
        let mut r = receiver(Kernel::V6_18);
        r.ts_recent = 50;
        r.update_ts_recent(seq, value);
        assert_eq!(r.ts_recent, if taken { value } else { 50 }, "{seq} {value}");
    }
}

#[test]
fn a_reply_within_the_gap_makes_a_conversation() {
    for (ms, interactive) in [(39, true), (40, false)] {
        let mut r = receiver(Kernel::V6_18);
        r.on_data_sent(at(1_000 + ms));
        assert_eq!(r.interactive, interactive, "{ms} ms");
    }
}

#[test]
fn blocks_are_merged_forgotten_and_bounded() {
    let range = |start| Range::new(start, start + 10);
    let mut blocks = Blocks::default();
    (0..5).for_each(|n| blocks.push_front(range(n * 100)));
    assert_eq!(blocks.as_slice(), [range(400), range(300), range(200), range(100)]);
    blocks.bring_to_front(2);
    assert_eq!(blocks.as_slice(), [range(200), range(400), range(300), range(100)]);
    // 100 to 310 joins three of them.
    blocks.extend(3, &Range::new(100, 300));
    blocks.bring_to_front(3);
    assert_eq!(blocks.as_slice(), [Range::new(100, 310), range(400)]);
    blocks.retain(|block| block.start >= 400);
    assert_eq!(blocks.as_slice(), [range(400)]);
}

#[test]
fn d_sacks_that_touch_become_one() {
    for (second, merged) in
        [((20, 30), (10, 30)), ((21, 30), (21, 30)), ((5, 10), (5, 20)), ((5, 9), (5, 9)), ((12, 15), (10, 20))]
    {
        let mut r = receiver(Kernel::V6_18);
        r.set_d_sack(Range::new(10, 20));
        r.set_d_sack(Range::new(second.0, second.1));
        assert_eq!(r.d_sack, Some(Range::new(merged.0, merged.1)), "{second:?}");
    }
}

#[test]
fn segments_of_128_bytes_or_more_open_the_window() {
    for (len, quick) in [(127, 0), (128, 1)] {
        let mut r = receiver(Kernel::V6_18);
        r.space.set_full(1 << 20);
        r.on_arrival(len, false, DELAYS, at(1_010));
        assert_eq!(r.quick, quick, "{len}");
    }
}

#[test]
fn the_peers_segments_are_taken_to_be_as_long_as_both_sides_allow() {
    // 536 bytes at most, what this side announces less its options, and half of the window but 88 bytes.
    for (mss, payload, window, full) in
        [(1_460, 1_448, 60_000, 536), (500, 488, 60_000, 488), (1_460, 1_448, 1_000, 500), (1_460, 1_448, 100, 88)]
    {
        let mut r = Receiver::new(&Config { mss, ..Config::default() });
        r.window = window;
        r.begin(payload, true);
        assert_eq!((r.full_segment(), r.max_mss), (full, payload.into()), "{mss} {window}");
    }
}

#[test]
fn the_last_quick_acknowledgement_resets_the_gap() {
    for (quick, owed, left, ato) in [(1, true, 0, 40), (2, true, 1, 90), (1, false, 1, 90), (0, true, 0, 90)] {
        let mut r = receiver(Kernel::V6_18);
        (r.quick, r.owed, r.ato) = (quick, owed, MS(90));
        r.announce();
        assert_eq!((r.quick, r.ato), (left, MS(ato)), "{quick} {owed}");
    }
}

#[test]
fn an_unscaled_window_is_at_most_what_its_field_can_say() {
    let mut r = receiver(Kernel::V6_18);
    r.scale = 0;
    r.space.provide(1 << 20);
    r.space.grow_window(0, 1 << 20);
    assert_eq!((r.announce(), r.open_window()), (65_535, 65_535));
}

#[test]
fn an_acknowledgement_is_due_once_all_gaps_are_filled() {
    let mut r = receiver(Kernel::V6_18);
    let mut take = |seq| {
        r.now_due = false;
        r.on_data(payload(seq, 100), DELAYS, at(1_100), &mut Stats::default());
        (r.now_due, r.next)
    };
    assert_eq!(take(10_101), (false, 10_001));
    assert_eq!(take(10_301), (false, 10_001));
    assert_eq!(take(10_001), (false, 10_201));
    assert_eq!(take(10_201), (true, 10_401));
    assert_eq!(take(10_401), (false, 10_501));
}

#[test]
fn who_begins_to_read_as_data_arrives_reads_what_is_there() {
    for (auto_read, unread) in [(true, 0), (false, 100)] {
        let mut r = receiver(Kernel::V6_18);
        r.next = 10_101;
        r.set_auto_read(auto_read, at(2_000));
        assert_eq!(r.unread(), unread);
    }
}
