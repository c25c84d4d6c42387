//! The sender's decisions, each at its limits.

mod timeouts;

use super::*;
use crate::ack::Incoming;
use crate::queue::LOST;
use cc::new_reno::NewReno;
use rand_core::SeedableRng;
use wire::Sack;

const MS: fn(u64) -> Span = Span::from_millis;
pub(crate) const MSS: u32 = 1000;

pub(crate) fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A sender of segments of 1000 bytes with an open window, after a handshake of 100 ms that ended at 100 ms.
pub(crate) fn sender(cwnd: u32, config: &Config) -> Sender<NewReno> {
    let mut s = Sender::new(config, NewReno::new(cwnd), 0, Time::ZERO);
    s.take_rtt(MS(100), Some(MS(100)), at(100));
    s.begin(MSS, true, at(100));
    (s.window, s.max_window) = (1 << 30, 1 << 30);
    s
}

pub(crate) fn plain() -> Config {
    Config { tso: false, send_buffer: crate::SendBuffer::Fixed(u64::MAX), ..Config::default() }
}

pub(crate) fn with_context<T>(ms: u64, f: impl FnOnce(&mut Context) -> T) -> T {
    let mut random = cc::Random::seed_from_u64(1);
    f(&mut Context { now: at(ms), random: &mut random, log: None })
}

/// Sends what may leave; gives how many segments.
pub(crate) fn poll(s: &mut Sender<NewReno>, ms: u64) -> usize {
    with_context(ms, |cx| std::iter::from_fn(|| s.poll(0, cx)).count())
}

pub(crate) fn acked(s: &mut Sender<NewReno>, ack: u64, window: u64, ms: u64) {
    let sack = &Sack::NONE;
    let a = Incoming { ack, seq: 1, has_data: false, window, sack, ece: false, echo: None };
    with_context(ms, |cx| s.on_ack(&a, cx));
    s.queue.audit(true);
}

#[test]
fn the_stacks_rate_is_twice_the_window_in_slow_start_and_a_fifth_more_later() {
    // Linux `tcp_update_pacing_rate`: below half of the threshold twice, from there on 1.2 times.
    for (cwnd, ssthresh, percent) in [(10, 22, 200), (11, 22, 120), (40, 22, 120)] {
        let mut s = sender(cwnd, &plain());
        s.limits.ssthresh = ssthresh;
        s.refresh_stack_rate();
        let rate = s.path.stack_rate.get().map(BitRate::bits_per_sec);
        assert_eq!(rate, Some(u64::from(cwnd) * 8_000 * percent / 100 * 10), "{cwnd} {ssthresh}");
    }
    // What is in flight counts if it is more.
    let mut s = sender(40, &plain());
    s.write(40_000);
    poll(&mut s, 100);
    (s.limits.cwnd, s.limits.ssthresh) = (10, 2);
    s.refresh_stack_rate();
    assert_eq!(s.path.stack_rate.get().map(BitRate::bits_per_sec), Some(40 * 8_000 * 12));
}

#[test]
fn a_write_into_a_network_with_room_marks_what_follows() {
    // Linux `tcp_rate_check_app_limited`: buffered bytes, segments in flight, lost and retransmitted, and the host's queue.
    for (buffered, in_flight, lost, host, marked) in [
        (999, 9, 0, 0, true),
        (1_000, 9, 0, 0, false),
        (0, 10, 0, 0, false),
        (0, 9, 1, 0, false),
        (0, 0, 0, 0, true),
        (0, 0, 0, 1, false),
    ] {
        let mut s = sender(100, &plain());
        s.write(in_flight * 1_000);
        assert_eq!(poll(&mut s, 100) as u64, in_flight);
        (s.limits.cwnd, s.rate.app_limited) = (10, 0);
        s.written += buffered;
        s.queue.lost_out += lost;
        s.limits.cwnd -= lost;
        s.host.queue.payload = host;
        s.check_app_limited();
        let mark = if marked { s.rate.delivered + in_flight } else { 0 };
        assert_eq!(s.rate.app_limited, mark, "{buffered} {in_flight} {lost} {host}");
    }
}

#[test]
fn probes_of_a_closed_window_double_up_to_two_minutes() {
    let mut s = sender(10, &plain());
    assert_eq!(s.probe_interval(), MS(300));
    s.backoff = 3;
    assert_eq!(s.probe_interval(), MS(2_400));
    s.backoff = 40;
    assert_eq!(s.probe_interval(), RTO_MAX);
    assert_eq!(s.rto(), RTO_MAX);
    (s.path.rto, s.backoff) = (MS(10), 0);
    assert_eq!(s.probe_interval(), MS(200));
    // So does the retransmission time-out.
    (s.path.rto, s.backoff) = (MS(300), 5);
    assert_eq!(s.rto(), MS(9_600));
}

#[test]
fn a_tail_is_probed_after_two_round_trips_or_a_time_out_if_that_is_sooner() {
    // In flight, SRTT, and when the probe is due; the time-out is 300 ms after what was sent first.
    for (segments, srtt, due) in [
        (2, Some(100), 202),
        (2, Some(148), 298),
        (2, Some(149), 300),
        (1, Some(40), 280),
        (1, Some(49), 298),
        (1, Some(51), 300),
        (2, None, 300),
    ] {
        let mut s = sender(10, &plain());
        s.write(segments * 1_000);
        poll(&mut s, 1_000);
        s.path.srtt = srtt.map(MS);
        assert!(s.schedule_loss_probe(false, at(1_000)));
        assert_eq!((s.timer, s.deadline), (Timer::LossProbe, at(1_000 + due)), "{segments} {srtt:?}");
        // Counted from the first segment, of which a part has passed; or from now.
        assert!(s.schedule_loss_probe(false, at(1_100)));
        assert_eq!(s.deadline, at((1_100 + due.min(if srtt.is_none() { 300 } else { due })).min(1_300)));
        assert!(s.schedule_loss_probe(true, at(1_100)));
        assert_eq!(s.deadline, at(1_100 + due));
    }
    // A time-out that is overdue bounds nothing.
    for (ms, due) in [(1_299, 1_300), (1_300, 1_502), (1_301, 1_503)] {
        let mut s = flying(2, 10);
        assert!(s.schedule_loss_probe(false, at(ms)));
        assert_eq!(s.deadline, at(due), "{ms}");
    }
    // Only where nothing is being recovered, with SACK, and something in flight.
    let mut s = sender(10, &plain());
    assert!(!s.schedule_loss_probe(true, at(1_000)));
    s.write(1_000);
    poll(&mut s, 1_000);
    for (phase, probes) in [
        (Phase::Open, true),
        (Phase::Cwr, true),
        (Phase::Disorder, false),
        (Phase::Recovery, false),
        (Phase::Loss, false),
    ] {
        s.recovery.phase = phase;
        assert_eq!(s.schedule_loss_probe(true, at(1_000)), probes, "{phase:?}");
    }
    (s.recovery.phase, s.sack) = (Phase::Open, false);
    assert!(!s.schedule_loss_probe(true, at(1_000)));
}

#[test]
fn the_retransmission_timer_runs_from_now_or_from_the_first_segment() {
    let mut s = sender(10, &plain());
    s.write(2_000);
    poll(&mut s, 1_000);
    s.timer = Timer::Retransmit;
    s.rearm_rto(at(1_100));
    assert_eq!(s.deadline, at(1_400));
    for timer in [Timer::Reorder, Timer::LossProbe] {
        s.timer = timer;
        s.rearm_rto(at(1_100));
        assert_eq!((s.timer, s.deadline), (Timer::Retransmit, at(1_300)));
        // Overdue: at once, but not now.
        s.timer = timer;
        s.rearm_rto(at(1_300));
        assert_eq!(s.deadline, at(1_300) + Span::from_micros(1));
    }
    acked(&mut s, 2_001, 1 << 30, 1_310);
    assert_eq!((s.timer, s.deadline), (Timer::Idle, Time::MAX));
    s.timer = Timer::WindowProbe;
    s.rearm_rto(at(1_400));
    assert_eq!(s.timer, Timer::WindowProbe);
}

#[test]
fn a_window_is_limiting_while_it_was_full_or_half_full_in_slow_start() {
    let mut s = sender(10, &plain());
    for (cwnd, ssthresh, max_out, full, limiting) in
        [(10, 20, 6, false, true), (10, 20, 5, false, false), (10, 10, 9, false, false), (10, 10, 0, true, true)]
    {
        (s.limits.cwnd, s.limits.ssthresh, s.max_out, s.cwnd_limited) = (cwnd, ssthresh, max_out, full);
        assert_eq!(s.is_cwnd_limited(), limiting, "{cwnd} {ssthresh} {max_out} {full}");
    }
}

#[test]
fn the_use_of_the_window_is_remembered_for_a_round_trip() {
    // Linux `tcp_cwnd_validate`: the most in flight, or that the window was full, until what was sent then is acknowledged.
    let mut s = sender(100, &plain());
    s.write(8_000);
    poll(&mut s, 1_000);
    assert_eq!((s.max_out, s.cwnd_limited, s.usage_end), (8, false, 8_001));
    acked(&mut s, 4_001, 1 << 30, 1_100);
    s.write(1_000);
    poll(&mut s, 1_100);
    assert_eq!((s.max_out, s.usage_end), (8, 8_001), "five are fewer, and the round trip is not over");
    s.write(9_000);
    poll(&mut s, 1_110);
    assert_eq!((s.max_out, s.usage_end), (14, 18_001), "more count at once");
    s.write(200_000);
    poll(&mut s, 1_120);
    let end = s.next;
    assert_eq!((s.cwnd_limited, s.usage_end, s.queue.in_flight()), (true, end, s.limits.cwnd));
    // A round trip later it is no longer.
    s.written = s.next;
    acked(&mut s, end - 10_000, 1 << 30, 1_200);
    s.write(1_000);
    poll(&mut s, 1_200);
    assert!(s.cwnd_limited, "until then it counts as full");
    acked(&mut s, end, 1 << 30, 1_210);
    s.write(1_000);
    poll(&mut s, 1_210);
    assert!(!s.cwnd_limited);
}

#[test]
fn a_segment_waits_for_whole_room_in_the_send_buffer_unless_nothing_is_in_flight() {
    let mut s = sender(100, &Config { send_buffer: crate::SendBuffer::Fixed(2_500), ..plain() });
    s.write_all(10_000);
    assert_eq!(s.next_new(0), Some((1_000, false)));
    assert_eq!(s.next_new(12), Some((988, false)), "options take their room");
    assert_eq!(poll(&mut s, 1_000), 2);
    assert_eq!(s.next_new(0), None, "500 bytes are held, and more is written");
    acked(&mut s, 1_001, 1 << 30, 1_100);
    assert_eq!(s.next_new(0), Some((1_000, false)));
    let mut s = sender(100, &Config { send_buffer: crate::SendBuffer::Fixed(500), ..plain() });
    s.write_all(10_000);
    assert_eq!(s.next_new(0), Some((500, false)));
    // The FIN goes with the last byte, or alone, and once.
    let mut s = sender(100, &plain());
    s.write(1_200);
    s.finish();
    assert_eq!(s.next_new(0), Some((1_000, false)));
    poll(&mut s, 1_000);
    assert_eq!((s.next_new(0), s.fin_sent, s.next, s.fin_acked()), (None, true, 1_202, false));
    acked(&mut s, 1_201, 1 << 30, 1_100);
    assert!(!s.fin_acked());
    acked(&mut s, 1_202, 1 << 30, 1_101);
    assert!(s.fin_acked());
    assert_eq!(s.write(1), 0, "nothing is written after a close");
}

#[test]
fn a_window_update_is_taken_from_the_newest_segment() {
    // Linux `tcp_may_update_window`.
    for (ack, seq, window, taken) in [
        (1, 50, 3_000, false),
        (1, 50, 5_001, true),
        (1, 50, 0, true),
        (1, 51, 3_000, true),
        (1, 49, 9_000, false),
        (1_001, 49, 3_000, true),
    ] {
        let mut s = sender(10, &plain());
        s.write(3_000);
        poll(&mut s, 1_000);
        (s.window, s.window_seq, s.max_window) = (5_000, 50, 5_000);
        let sack = &Sack::NONE;
        let a = Incoming { ack, seq, has_data: false, window, sack, ece: false, echo: None };
        with_context(1_100, |cx| s.on_ack(&a, cx));
        assert_eq!(s.window, if taken { window } else { 5_000 }, "{ack} {seq} {window}");
        assert_eq!(s.max_window, s.window.max(5_000));
        assert_eq!(s.window_seq, if taken { seq } else { 50 });
    }
}

#[test]
fn reordering_is_counted_in_segments_up_to_three_hundred() {
    let mut s = sender(2_000, &plain());
    s.write(1_000_000);
    poll(&mut s, 1_000);
    for (low, sacked, reordering, seen) in [
        (5_001, (2_001, 5_001), 3, 0),
        (1_001, (2_001, 5_001), 4, 1),
        (1_000, (2_001, 5_001), 5, 1),
        (1, (400_001, 401_001), 300, 1),
    ] {
        let mut t = sender(2_000, &plain());
        std::mem::swap(&mut t.queue, &mut s.queue);
        t.next = s.next;
        t.una = 1;
        t.queue.sacked.clear();
        t.queue.sacked.insert(crate::ranges::Range::new(sacked.0, sacked.1));
        t.check_reordering(low);
        assert_eq!((t.rack.reordering, t.stats.reorderings, t.rack.reordered), (reordering, seen, seen > 0), "{low}");
        std::mem::swap(&mut t.queue, &mut s.queue);
    }
}

#[test]
fn a_sender_that_is_not_concerned_ignores_what_a_receiver_hears() {
    let s = sender(10, &plain());
    assert!(s.is_unconcerned(1, 1 << 30));
    assert!(!s.is_unconcerned(2, 1 << 30) && !s.is_unconcerned(1, 1));
    let with = |change: fn(&mut Sender<NewReno>)| {
        let mut s = sender(10, &plain());
        change(&mut s);
        s.is_unconcerned(s.una, s.window)
    };
    assert!(!with(|s| s.timer = Timer::WindowProbe));
    assert!(!with(|s| s.rack.probe_end = 5));
    assert!(!with(|s| {
        s.write(1_000);
        poll(s, 1_000);
    }));
}

#[test]
fn what_is_lost_and_not_sent_again_counts_for_the_controller() {
    let mut s = sender(10, &plain());
    s.write(10_000);
    poll(&mut s, 1_000);
    for id in [0, 1, 2] {
        s.queue.mark_lost(id);
    }
    assert_eq!((s.queue.in_flight(), s.queue.lost_out), (7, 3));
    s.touch();
    // Three may leave again, lowest first, and they are in flight then.
    let again = with_context(1_100, |cx| std::iter::from_fn(|| s.poll(0, cx)).map(|out| out.seq).collect::<Vec<_>>());
    assert_eq!(again, [1, 1_001, 2_001]);
    assert_eq!((s.queue.in_flight(), s.queue.retrans_out), (10, 3));
    assert!(s.queue.get(0).has(LOST) && s.queue.get(0).has(RETRANSMITTED));
    s.queue.audit(true);
}

/// Segments `from..to` are selectively acknowledged, and all below `ack` cumulatively; in whole segments.
pub(crate) fn sacked(s: &mut Sender<NewReno>, ack: u64, blocks: &[(u32, u32)], ms: u64) {
    let mut sack = Sack::NONE;
    for &(from, to) in blocks {
        sack.push(wire::Block { start: 1 + from * MSS, end: 1 + to * MSS });
    }
    let ack = 1 + ack * u64::from(MSS);
    let a = Incoming { ack, seq: 1, has_data: false, window: s.window, sack: &sack, ece: false, echo: None };
    with_context(ms, |cx| s.on_ack(&a, cx));
    s.queue.audit(true);
}

/// So many segments are in flight since 1000 ms.
pub(crate) fn flying(segments: u64, cwnd: u32) -> Sender<NewReno> {
    let mut s = sender(cwnd, &plain());
    s.write(segments * 1_000);
    assert_eq!(poll(&mut s, 1_000) as u64, segments);
    s
}

#[test]
fn a_d_sack_is_told_from_a_block_by_its_place() {
    // RFC 2883 section 4: below the acknowledgement, or within the second block.
    for (ack, blocks, duplicates, held) in [
        (4, &[(2, 3)][..], 1, 0),
        (4, &[(2, 4)], 2, 0),
        (4, &[(6, 7)], 0, 1),
        (0, &[(6, 7), (5, 8)], 1, 3),
        (0, &[(5, 8), (5, 8)], 3, 3),
        (0, &[(5, 9), (5, 8)], 0, 4),
        (0, &[(4, 8), (5, 8)], 0, 4),
        (4, &[(3, 4), (6, 7)], 1, 1),
    ] {
        let mut s = flying(10, 20);
        // Enough was sent again for them not to be the network's.
        s.stats.retransmitted_fast = 10;
        sacked(&mut s, ack, blocks, 1_100);
        assert_eq!((s.stats.dsacks_received, s.queue.sacked_out), (duplicates, held), "{ack} {blocks:?}");
        assert!(!s.rack.d_sack_seen, "no reordering was seen, so the window stays");
    }
}

#[test]
fn more_d_sacks_than_retransmissions_are_the_networks_own_duplicates() {
    for (again, delivered) in [(0, 4), (1, 5)] {
        let mut s = flying(10, 20);
        s.stats.retransmitted_fast = again;
        s.rack.reordered = true;
        sacked(&mut s, 4, &[(2, 3)], 1_100);
        assert_eq!(s.stats.dsacks_received, 1);
        assert_eq!(s.rate.delivered - 1, delivered, "{again}");
    }
    // One of more than any window is none.
    let mut s = flying(10, 20);
    (s.window, s.max_window, s.stats.retransmitted_fast) = (999, 999, 10);
    sacked(&mut s, 4, &[(2, 3)], 1_100);
    assert_eq!(s.stats.dsacks_received, 0);
}

#[test]
fn blocks_of_what_was_never_sent_or_of_a_part_are_ignored() {
    let mut s = flying(10, 20);
    sacked(&mut s, 0, &[(8, 11)], 1_100);
    assert_eq!(s.queue.sacked_out, 0);
    sacked(&mut s, 0, &[(8, 10)], 1_100);
    assert_eq!(s.queue.sacked_out, 2);
    // Half of a segment at both ends.
    let mut sack = Sack::NONE;
    sack.push(wire::Block { start: 2_501, end: 4_501 });
    let a = Incoming { ack: 1, seq: 1, has_data: false, window: s.window, sack: &sack, ece: false, echo: None };
    with_context(1_100, |cx| s.on_ack(&a, cx));
    assert_eq!(s.queue.sacked_out, 3);
    assert!(s.queue.get(3).has(crate::queue::SACKED));
}

#[test]
fn round_trip_times_come_from_the_last_segment_and_the_variance_from_the_first() {
    // Segments that were sent at 1000, 1010 and 1020 ms are acknowledged together at 1100.
    let mut s = sender(20, &plain());
    for n in 0..3 {
        s.write(1_000);
        poll(&mut s, 1_000 + n * 10);
    }
    s.rtt = Rtt::new(MS(200));
    acked(&mut s, 3_001, 1 << 30, 1_100);
    assert_eq!((s.rtt.latest, s.rtt.min()), (Some(MS(100)), Some(MS(80))));
    // Selectively acknowledged ones tell too, if nothing was acknowledged cumulatively.
    let mut s = sender(20, &plain());
    for n in 0..4 {
        s.write(1_000);
        poll(&mut s, 1_000 + n * 10);
    }
    s.rtt = Rtt::new(MS(200));
    sacked(&mut s, 0, &[(1, 3)], 1_100);
    assert_eq!((s.rtt.latest, s.rtt.min()), (Some(MS(90)), Some(MS(80))));
    sacked(&mut s, 1, &[(3, 4), (1, 3)], 1_105);
    assert_eq!((s.rtt.latest, s.rtt.min()), (Some(MS(105)), Some(MS(75))), "the block tells of the minimum alone");
}

#[test]
fn an_echo_tells_the_round_trip_of_a_retransmission() {
    // Milliseconds, one at least, and no time from the future.
    let ago = |millis: u32| 1_100_u32.wrapping_sub(millis);
    for (echo, rtt) in [
        (ago(60), Some(60)),
        (ago(0), Some(1)),
        (1_101, None),
        (ago(1 << 31), None),
        (ago((1 << 31) - 1), Some((1 << 31) - 1)),
    ] {
        let mut s = flying(1, 20);
        s.queue.get_mut(0).flags |= EVER_RETRANSMITTED;
        (s.rtt, s.backoff) = (Rtt::new(MS(200)), 3);
        let sack = &Sack::NONE;
        let a = Incoming { ack: 1_001, seq: 1, has_data: false, window: 9, sack, ece: false, echo: Some(echo) };
        let told = with_context(1_100, |cx| s.on_ack(&a, cx));
        assert_eq!((s.rtt.latest, told), (rtt.map(MS), None), "{echo}");
        assert_eq!(s.backoff, if rtt.is_some() { 0 } else { 3 });
    }
}

#[test]
fn a_short_segment_alone_tells_nothing_of_the_minimum() {
    // Linux `FLAG_ACK_MAYBE_DELAYED`. The minimum, of 50 ms, has expired.
    for (bytes, ece, min) in [(999, false, 50), (1_000, false, 55), (1_500, false, 55), (999, true, 55)] {
        let mut s = sender(20, &plain());
        s.write(bytes);
        poll(&mut s, 400_000);
        s.rtt = Rtt::new(MS(200));
        s.rtt.sample_min(at(0), MS(50));
        s.path.min_rtt = Some(MS(50));
        let sack = &Sack::NONE;
        let a = Incoming { ack: 1 + bytes, seq: 1, has_data: false, window: 9, sack, ece, echo: None };
        with_context(400_055, |cx| s.on_ack(&a, cx));
        assert_eq!((s.rtt.latest, s.rtt.min()), (Some(MS(55)), Some(MS(min))), "{bytes} {ece}");
    }
}

#[test]
fn a_receiver_that_drops_what_it_had_reported_is_given_a_moment() {
    // Linux `tcp_check_sack_reneging`: half of a round trip, 10 ms at least.
    for (srtt, wait) in [(100, 50), (10, 10)] {
        let mut s = flying(5, 20);
        sacked(&mut s, 0, &[(2, 4)], 1_100);
        s.path.srtt = Some(MS(srtt));
        let keep = s.path.srtt;
        let sack = &Sack::NONE;
        let a = Incoming { ack: 2_001, seq: 1, has_data: false, window: s.window, sack, ece: false, echo: None };
        // The round-trip time of this acknowledgement does not count here.
        s.queue.get_mut(0).flags |= EVER_RETRANSMITTED;
        s.queue.get_mut(1).flags |= EVER_RETRANSMITTED;
        with_context(1_110, |cx| s.on_ack(&a, cx));
        assert_eq!(s.path.srtt, keep);
        assert_eq!((s.timer, s.deadline), (Timer::Retransmit, at(1_110 + wait)), "{srtt}");
        // Then everything is sent again, whatever it had reported.
        with_context(1_110 + wait, |cx| s.on_timer(cx));
        assert_eq!((s.queue.sacked_out, s.queue.lost_out, s.stats.lost), (0, 3, 3));
        s.queue.audit(true);
    }
}

#[test]
fn the_acknowledgement_of_a_tail_loss_probe_tells_what_became_of_it() {
    use crate::ack::Seen;
    // RFC 8985 section 7.4. Whether the probe was a retransmission, the acknowledgement, a D-SACK of it, whether it advanced,
    // is no duplicate or reports something; whether the probe is settled, and repaired a loss.
    for (again, ack, d_sack, advanced, not_duplicate, sacked, settled, repaired) in [
        (true, 4_000, false, true, true, false, false, false),
        (true, 5_000, false, true, true, false, false, false),
        (true, 5_000, false, false, false, false, true, false),
        (true, 5_000, false, false, true, false, false, false),
        (true, 5_000, false, false, false, true, false, false),
        (true, 5_000, true, true, true, false, true, false),
        (true, 5_001, true, true, true, false, true, false),
        (true, 5_001, false, true, true, false, true, true),
        (false, 4_999, false, true, true, false, false, false),
        (false, 5_000, false, true, true, false, true, false),
        (false, 5_001, false, true, true, false, true, false),
    ] {
        let mut s = flying(10, 20);
        (s.rack.probe_end, s.rack.probe_retransmitted) = (5_000, again);
        let mut seen = Seen::default();
        (seen.advanced, seen.not_duplicate, seen.sacked, seen.d_sack_of_probe) =
            (advanced, not_duplicate, sacked, d_sack);
        with_context(1_100, |cx| s.process_probe(ack, &seen, cx));
        assert_eq!(
            (s.rack.probe_end == 0, s.stats.loss_probe_recoveries),
            (settled, repaired.into()),
            "{again} {ack} {d_sack}"
        );
        // A repaired loss reduces the window, and recovery is over at once.
        assert_eq!((s.limits.ssthresh == 10, s.recovery.phase, s.queue_cwr), (repaired, Phase::Open, repaired));
    }
    // Without a probe there is nothing to tell.
    let mut s = flying(10, 20);
    s.rack.probe_retransmitted = true;
    with_context(1_100, |cx| s.process_probe(5_001, &Seen::default(), cx));
    assert_eq!(s.stats.loss_probe_recoveries, 0);
}

#[test]
fn a_sample_as_low_as_the_minimum_renews_it() {
    // A delayed acknowledgement at 200 s, as quick as the handshake: 300 s later it is forgotten.
    for (rtt, min) in [(100, 100), (101, 120)] {
        let mut s = sender(10, &plain());
        s.take_rtt(MS(rtt), None, at(200_000));
        s.take_rtt(MS(120), Some(MS(120)), at(350_000));
        assert_eq!(s.path.min_rtt, Some(MS(min)), "{rtt} ms");
    }
}

#[test]
fn a_fixed_buffer_takes_what_is_not_acknowledged() {
    let mut s = sender(10, &Config { send_buffer: crate::SendBuffer::Fixed(5_000), ..plain() });
    assert_eq!((s.write(3_000), s.buffer.blocked), (3_000, false));
    assert_eq!((s.write(2_000), s.buffer.blocked), (2_000, false));
    assert_eq!((s.write(1), s.buffer.blocked, s.waits_for_room()), (0, true, true));
    poll(&mut s, 1_000);
    assert!(s.is_blocked());
    // An acknowledgement makes room, of a byte too.
    acked(&mut s, 1_001, 1 << 30, 1_100);
    assert!(!s.buffer.blocked && !s.is_blocked());
    assert_eq!((s.write(4_000), s.unacked()), (1_000, 5_000));
    // What waits outside blocks as well, and so do more than two windows of unsent data.
    let mut s = sender(10, &Config { send_buffer: crate::SendBuffer::Fixed(5_000), ..plain() });
    s.write_all(5_000);
    assert!(!s.waits_for_room());
    s.write_all(1);
    assert!(s.waits_for_room() && s.is_blocked());
    for (bytes, blocked) in [(20_000, false), (20_001, true)] {
        let mut s = sender(10, &plain());
        s.write(bytes);
        assert_eq!((s.is_blocked(), s.waits_for_room()), (blocked, false), "{bytes}");
    }
}

#[test]
fn a_growing_buffer_holds_whole_packets_until_one_exceeds_it() {
    // Packets of a segment of 1000 bytes take 1000 + 832.
    let config = Config { max_header: 192, tso: false, ..Config::default() };
    let mut s = sender(10, &config);
    for (limit, held) in [(1, 1), (1_832, 1), (1_833, 2), (3_664, 2), (3_665, 3)] {
        (s.buffer.limit, s.buffer.held, s.buffer.blocked, s.written) = (limit, 1, false, 1);
        assert_eq!((s.write(100_000), s.buffer.blocked), (held * 1_000, true), "{limit}");
    }
    (s.buffer.limit, s.buffer.held, s.buffer.blocked, s.written) = (1, 2, false, 2);
    assert_eq!((s.write(5_000), s.buffer.held), (999, 1_001), "of which a byte is there");
    // The last packet takes what fits into it, even where there is no room for another.
    (s.buffer.limit, s.buffer.held, s.buffer.blocked, s.written) = (1, 301, false, 301);
    assert_eq!((s.write(5_000), s.buffer.held), (700, 1_001));
    (s.buffer.held, s.written) = (301, 301);
    assert_eq!((s.write(200), s.buffer.held, s.buffer.blocked), (200, 501, false));
}

#[test]
fn a_buffer_grows_for_the_window_or_the_reordering_threshold_and_not_beyond_its_bound() {
    // Linux `tcp_sndbuf_expand`: 2048 + 256 for a segment of 1000 bytes, twice the window of a loss-based control.
    for (cwnd, reordering, most, limit) in [
        (5, 3, 1 << 20, 2 * 10 * 2_304),
        (11, 3, 1 << 20, 2 * 11 * 2_304),
        (11, 20, 1 << 20, 2 * 21 * 2_304),
        (100, 3, 100_000, 100_000),
    ] {
        let config = Config { send_buffer: crate::SendBuffer::Growing(most), max_header: 192, ..Config::default() };
        let mut s = sender(cwnd, &config);
        s.rack.reordering = reordering;
        s.buffer.limit = 0;
        s.begin_buffer();
        assert_eq!(s.buffer.limit, limit, "{cwnd} {reordering} {most}");
        // It never shrinks.
        s.limits.cwnd = 1;
        s.begin_buffer();
        assert_eq!(s.buffer.limit, limit);
    }
}

#[test]
fn acknowledgements_without_data_back_off_nothing_and_count() {
    let mut s = sender(10, &plain());
    (s.retries, s.window_seq) = (5, 40);
    s.note_ack(50, true);
    assert_eq!((s.retries, s.window_seq, s.stats.ece_received), (0, 50, 1));
    s.note_ack(45, false);
    assert_eq!((s.window_seq, s.stats.ece_received), (50, 1));
}

#[test]
fn duplicates_are_counted_until_something_is_acknowledged() {
    let mut s = flying(10, 20);
    let window = s.window;
    s.window_seq = 1;
    for n in 1..=4 {
        sacked(&mut s, 0, &[(5, 5 + n)], 1_100);
        assert_eq!((s.stats.dup_acks_received, s.stats.dup_acks_since), (u64::from(n), u64::from(n)));
    }
    sacked(&mut s, 1, &[(5, 9)], 1_110);
    assert_eq!((s.stats.dup_acks_since, s.stats.dup_acks_longest), (0, 4));
    // A window update is none, and neither is data.
    s.window = window - 1;
    acked(&mut s, 1_001, window, 1_120);
    let sack = &Sack::NONE;
    let a = Incoming { ack: 1_001, seq: 1, has_data: true, window, sack, ece: false, echo: None };
    with_context(1_120, |cx| s.on_ack(&a, cx));
    assert_eq!((s.stats.dup_acks_received, s.stats.dup_acks_since), (4, 0));
}

#[test]
fn an_echo_of_congestion_reduces_once_a_round_trip() {
    let mut s = flying(10, 20);
    let marked = |s: &mut Sender<NewReno>, ack: u64| {
        let sack = &Sack::NONE;
        let a = Incoming { ack, seq: 1, has_data: false, window: 1 << 30, sack, ece: true, echo: None };
        with_context(1_100, |cx| s.on_ack(&a, cx));
    };
    marked(&mut s, 2_001);
    assert_eq!((s.recovery.phase, s.recovery.high, s.stats.ecn_reductions), (Phase::Cwr, 10_001, 1));
    assert_eq!((s.limits.ssthresh, s.queue_cwr), (10, true));
    marked(&mut s, 5_001);
    assert_eq!((s.stats.ecn_reductions, s.limits.ssthresh, s.stats.ece_received), (1, 10, 2));
    // At `high` the phase is held, until something beyond it is acknowledged.
    acked(&mut s, 10_001, 1 << 30, 1_200);
    assert_eq!(s.recovery.phase, Phase::Cwr);
    s.write(2_000);
    poll(&mut s, 1_200);
    acked(&mut s, 11_001, 1 << 30, 1_300);
    assert_eq!(s.recovery.phase, Phase::Open);
    assert_eq!((s.stats.undone_dsack, s.stats.undone_timestamp), (0, 0));
}

#[test]
fn a_window_probe_has_what_fits_and_the_fin_if_that_fits_too() {
    // The bytes that are left, the room in the window, and the length of the probe; less than a segment leaves in part.
    for (unsent, room, len, fin) in [
        (100, 101, 100, true),
        (100, 100, 100, false),
        (100, 40, 40, false),
        (2_000, 5_000, 1_000, false),
        (1, 1, 1, false),
    ] {
        let mut s = sender(10, &plain());
        s.write(unsent);
        s.finish();
        (s.window, s.forced, s.backoff) = (room, Forced::WindowProbe, 3);
        let out = with_context(1_000, |cx| s.poll(0, cx)).expect("a probe");
        assert_eq!((out.seq, out.len, out.fin, out.new), (1, len, fin, true), "{unsent} {room}");
        assert_eq!((s.backoff, s.stats.window_probes, s.fin_sent), (0, 1, fin));
    }
    // Without room, a byte that was acknowledged already.
    let mut s = sender(10, &plain());
    s.write(100);
    (s.window, s.forced, s.backoff) = (0, Forced::WindowProbe, 3);
    let out = with_context(1_000, |cx| s.poll(0, cx)).expect("a probe");
    assert_eq!((out.seq, out.len, out.new, s.backoff, s.next), (0, 0, false, 3, 1));
}

#[test]
fn a_part_of_a_segment_that_is_acknowledged_moves_no_timer() {
    let mut s = flying(2, 10);
    let before = (s.timer, s.deadline);
    acked(&mut s, 501, 1 << 30, 1_050);
    assert_eq!(((s.timer, s.deadline), s.stats.bytes_acked, s.queue.len()), (before, 500, 2));
}

#[test]
fn a_d_sack_of_what_is_in_flight_takes_back_its_retransmission() {
    // Not marked lost any more, after an undo, and reported twice within a block.
    let mut s = flying(10, 20);
    s.stats.retransmitted_fast = 10;
    s.queue.get_mut(5).flags |= RETRANSMITTED | EVER_RETRANSMITTED;
    s.queue.retrans_out = 1;
    sacked(&mut s, 0, &[(5, 6), (5, 8)], 1_100);
    assert_eq!((s.queue.retrans_out, s.queue.sacked_out, s.stats.dsacks_received), (0, 3, 1));
    assert!(!s.queue.get(5).has(RETRANSMITTED) && s.queue.get(5).has(EVER_RETRANSMITTED));
}

#[test]
fn a_single_byte_is_new_data() {
    let mut s = sender(10, &plain());
    s.write(1);
    let out = with_context(1_000, |cx| s.poll(0, cx)).expect("a byte");
    assert_eq!((out.len, out.new, out.push), (1, true, true));
}

#[test]
fn a_window_probe_is_not_put_off_by_what_happens_meanwhile() {
    let mut s = sender(10, &plain());
    s.write(100);
    s.window = 0;
    poll(&mut s, 1_000);
    assert_eq!((s.timer, s.deadline), (Timer::WindowProbe, at(1_300)));
    s.touch();
    poll(&mut s, 1_100);
    assert_eq!((s.timer, s.deadline), (Timer::WindowProbe, at(1_300)));
}

#[test]
fn only_new_data_lets_f_rto_wait_for_its_answer() {
    for (high, holds) in [(5_001, false), (5_000, true)] {
        let mut s = flying(5, 20);
        (s.recovery.high, s.recovery.f_rto, s.recovery.new_data_first) = (high, true, true);
        s.touch();
        poll(&mut s, 1_100);
        assert_eq!((s.recovery.hold, s.recovery.f_rto, s.recovery.new_data_first), (holds, holds, false), "{high}");
    }
}
