//! The steps of recovery, each at its limits.

use super::*;
use crate::queue::{LOST, RETRANSMITTED};
use crate::sender::tests::{acked, at, flying, poll, sacked, sender, with_context};
use cc::new_reno::NewReno;

const MS: fn(u64) -> Span = Span::from_millis;

fn seen(change: impl FnOnce(&mut Seen)) -> Seen {
    let mut seen = Seen::default();
    change(&mut seen);
    seen
}

#[test]
fn fifteen_retries_are_the_924_seconds_of_the_kernels_documentation() {
    assert_eq!(give_up_after(15), Span::from_millis(924_600));
    assert_eq!([0, 3, 9, 10].map(|retries| give_up_after(retries).as_millis()), [200, 3_000, 204_600, 324_600]);
}

#[test]
fn an_echo_from_before_the_first_retransmission_tells_that_the_original_arrived() {
    for (at_ms, echo, arrived) in [
        (None, None, true),
        (None, Some(5_000), true),
        (Some(1_000), Some(999), true),
        (Some(1_000), Some(1_000), false),
        (Some(1_000), None, false),
    ] {
        let mut s = flying(3, 20);
        s.recovery.retransmitted_at = at_ms.map(at);
        assert_eq!(s.original_arrived(echo), arrived, "{at_ms:?} {echo:?}");
    }
}

#[test]
fn a_reaction_may_be_undone_by_d_sacks_or_an_echo_while_it_lasts() {
    for (marker, needed, retransmitted, evidence) in [
        (None, Some(0), None, None),
        (Some(1), Some(0), Some(1_000), Some(Evidence::DSack)),
        (Some(1), Some(1), None, Some(Evidence::Timestamp)),
        (Some(1), None, Some(1_000), None),
        (Some(1), Some(1), Some(1_000), None),
    ] {
        let mut s = flying(3, 20);
        (s.recovery.marker, s.recovery.needed) = (marker, needed);
        s.recovery.retransmitted_at = retransmitted.map(at);
        assert!(s.evidence(None) == evidence, "{marker:?} {needed:?} {retransmitted:?}");
    }
}

#[test]
fn d_sacks_count_down_the_retransmissions_since_the_reaction_began() {
    let mut recovery = super::state::Recovery::default();
    recovery.note_retransmission(at(5));
    recovery.note_retransmission(at(6));
    assert_eq!((recovery.needed, recovery.retransmitted_at), (Some(2), Some(at(5))));
    recovery.on_needless(2_001, 1);
    assert_eq!(recovery.needed, Some(2), "there is nothing to undo");
    recovery.marker = Some(1_001);
    recovery.on_needless(1_001, 1);
    assert_eq!(recovery.needed, Some(2), "it was sent before");
    recovery.on_needless(1_002, 1);
    assert_eq!(recovery.needed, Some(1));
    recovery.on_needless(2_001, 5);
    assert_eq!(recovery.needed, Some(0));
}

#[test]
fn what_is_left_out_keeps_the_sender_in_disorder() {
    let phase = |change: fn(&mut Sender<NewReno>)| {
        let mut s = flying(5, 20);
        s.recovery.phase = Phase::Cwr;
        change(&mut s);
        s.keep_open();
        assert_eq!(s.recovery.high, s.next);
        s.recovery.phase
    };
    assert_eq!(phase(|_| {}), Phase::Open);
    assert_eq!(phase(|s| s.queue.sacked_out = 1), Phase::Disorder);
    assert_eq!(phase(|s| s.queue.lost_out = 1), Phase::Disorder);
    assert_eq!(phase(|s| s.queue.retrans_out = 1), Phase::Disorder);
    assert_eq!(phase(|s| s.queue.get_mut(0).flags |= EVER_RETRANSMITTED), Phase::Disorder);
    assert_eq!(phase(|s| s.queue.get_mut(1).flags |= EVER_RETRANSMITTED), Phase::Open);
    // Nothing changes where the phase stays.
    let mut s = flying(5, 20);
    s.recovery.high = 7;
    s.keep_open();
    assert_eq!((s.recovery.phase, s.recovery.high), (Phase::Open, 7));
}

#[test]
fn a_recovery_without_sack_is_held_until_something_above_it_is_acknowledged() {
    for (sack, una, held) in [(false, 5_001, true), (false, 6_001, false), (true, 5_001, false)] {
        let mut s = flying(8, 20);
        (s.sack, s.una, s.recovery.high, s.recovery.phase) = (sack, una, 5_001, Phase::Recovery);
        s.recovery.retransmitted_at = Some(at(1_000));
        let told = with_context(1_100, |cx| s.end_recovery(None, cx));
        assert_eq!((told, s.recovery.phase), (held, if held { Phase::Recovery } else { Phase::Open }));
        // The episode is forgotten, unless a retransmission is still under way.
        assert_eq!(s.recovery.retransmitted_at.is_none(), held);
    }
}

#[test]
fn f_rto_tells_a_spurious_time_out_from_a_loss() {
    // RFC 5682 section 3.1. A time-out with five segments in flight and three more written.
    let timed_out = || {
        let mut s = flying(5, 5);
        s.write(3_000);
        with_context(1_300, |cx| {
            s.arm(Timer::Retransmit, cx.now);
            s.on_timer(cx);
            assert!(s.poll(0, cx).is_some_and(|out| out.seq == 1));
            while s.poll(0, cx).is_some() {}
        });
        assert!(s.recovery.f_rto && s.recovery.high == 5_001);
        s
    };
    // Step 2b: the retransmission is acknowledged alone, so two new segments leave before anything is sent again.
    let mut s = timed_out();
    s.queue.get_mut(0).flags |= EVER_RETRANSMITTED;
    acked(&mut s, 1_001, 1 << 30, 1_400);
    assert!(s.recovery.f_rto && s.recovery.new_data_first);
    assert_eq!(poll(&mut s, 1_400), 2);
    assert!(s.recovery.hold && !s.recovery.new_data_first);
    // Step 3b: data from before the time-out is acknowledged; nothing was lost.
    let mut spurious = timed_out();
    acked(&mut spurious, 1_001, 1 << 30, 1_400);
    poll(&mut spurious, 1_400);
    acked(&mut spurious, 3_001, 1 << 30, 1_450);
    assert_eq!((spurious.stats.undone_frto, spurious.recovery.phase, spurious.queue.lost_out), (1, Phase::Open, 0));
    // Step 3a: a report of new data alone; the losses are real, and are repaired.
    sacked(&mut s, 1, &[(5, 7)], 1_450);
    assert_eq!((s.stats.undone_frto, s.recovery.f_rto, s.recovery.phase), (0, false, Phase::Loss));
    assert_eq!(s.recovery.high, 5_001);
    assert!(!s.recovery.hold);
    let again = with_context(1_450, |cx| s.poll(0, cx)).expect("a retransmission");
    assert_eq!((again.seq, again.new), (1_001, false));
    // Without new data, or room for it, there is nothing to tell by.
    for (written, window) in [(5_001, 1 << 30), (8_001, 4_000)] {
        let mut s = timed_out();
        (s.written, s.window) = (written, window);
        acked(&mut s, 1_001, window, 1_400);
        assert_eq!((s.recovery.f_rto, s.recovery.new_data_first), (false, false), "{written} {window}");
    }
}

#[test]
fn a_partial_acknowledgement_of_an_original_undoes_the_recovery() {
    // Recovery from a loss that was none: a retransmission under way, the echo, and what was marked early by a report.
    for (retrans_out, echo, early, waits, undone) in [
        (0, Some(1_099), 0, false, 1),
        (1, Some(1_099), 0, true, 0),
        (0, Some(1_100), 0, false, 0),
        (0, Some(1_099), 2_001, false, 1),
        (0, Some(1_099), 2_002, false, 0),
    ] {
        let mut s = flying(8, 20);
        (s.recovery.phase, s.recovery.marker, s.recovery.restores) = (Phase::Recovery, Some(1), true);
        (s.recovery.retransmitted_at, s.recovery.early) = (Some(at(1_100)), early);
        s.una = 2_001;
        s.queue.retrans_out = retrans_out;
        let seen = seen(|seen| seen.echo = echo);
        let told = with_context(1_200, |cx| s.try_undo_partial(1, &seen, cx));
        assert_eq!((told, s.stats.undone_timestamp), (waits, undone), "{retrans_out} {echo:?} {early}");
        assert_eq!(s.recovery.phase == Phase::Open, undone == 1);
    }
}

#[test]
fn three_duplicates_without_sack_mark_the_first_segment_and_partial_acknowledgements_the_next() {
    for (phase, duplicates, advanced, lost) in [
        (Phase::Open, 2, false, 0),
        (Phase::Disorder, 3, false, 1),
        (Phase::Cwr, 3, false, 1),
        (Phase::Recovery, 5, false, 0),
        (Phase::Recovery, 0, true, 1),
        (Phase::Loss, 5, true, 0),
    ] {
        let mut s = flying(8, 20);
        (s.sack, s.recovery.phase, s.queue.sacked_out) = (false, phase, duplicates);
        s.mark_head_lost(advanced);
        assert_eq!(
            (s.queue.lost_out, s.stats.lost, s.rate.lost),
            (lost, lost.into(), lost.into()),
            "{phase:?} {duplicates}"
        );
        assert_eq!(s.queue.get(0).has(LOST), lost > 0);
    }
}

#[test]
fn the_timer_of_the_reordering_window_begins_a_recovery() {
    let mut s = flying(4, 20);
    // The last was delivered, and the first two are late: RACK's window is a quarter of 100 ms.
    sacked(&mut s, 0, &[(3, 4)], 1_100);
    assert_eq!((s.timer, s.deadline), (Timer::Reorder, at(1_000) + MS(125) + TIMEOUT_MIN));
    with_context(1_127, |cx| s.on_timer(cx));
    assert_eq!((s.recovery.phase, s.queue.lost_out, s.stats.lost, s.rate.lost), (Phase::Recovery, 3, 3, 3));
    assert_eq!((s.timer, s.deadline), (Timer::Retransmit, at(1_127) + s.rto() - MS(127)));
    assert_eq!(s.limits.ssthresh, 10);
    s.queue.audit(true);
    // One segment was delivered, so one leaves (RFC 6937).
    assert_eq!(poll(&mut s, 1_127), 1);
    assert_eq!([0, 1, 2].map(|id| s.queue.get(id).has(RETRANSMITTED)), [true, false, false]);
}

#[test]
fn d_sacks_of_the_probe_that_is_out_are_awaited_too() {
    let mut s = sender(20, &crate::Config::default());
    for (retrans_out, probe_end, again, count) in
        [(0, 0, true, None), (2, 0, true, Some(2)), (0, 5, true, Some(1)), (2, 5, true, Some(3)), (0, 5, false, None)]
    {
        (s.queue.retrans_out, s.rack.probe_end, s.rack.probe_retransmitted) = (retrans_out, probe_end, again);
        assert_eq!(s.retransmissions_in_flight(), count, "{retrans_out} {probe_end} {again}");
    }
}

#[test]
fn the_controller_hears_of_what_is_lost_and_not_under_way_again() {
    let mut s = flying(8, 20);
    for (lost, again, told) in [(3, 1, 2), (3, 3, 0), (0, 0, 0), (1, 2, 0)] {
        (s.queue.lost_out, s.queue.retrans_out) = (lost, again);
        let congestion = s.congestion(Sign::Loss, true);
        assert_eq!((congestion.lost, congestion.in_flight), (told, 8 + again - lost));
        assert_eq!((congestion.una, congestion.next, congestion.announced), (1, 8_001, true));
    }
}

#[test]
fn a_reduction_that_a_mark_asked_for_restores_nothing() {
    let mut recovery = super::state::Recovery { restores: true, marker: Some(1), ..Default::default() };
    recovery.forget_undo();
    assert_eq!((recovery.restores, recovery.has_marker()), (false, false));
}

#[test]
fn an_undo_forgets_the_episode_unless_the_first_segment_was_sent_again() {
    for again in [false, true] {
        let mut s = flying(8, 20);
        (s.recovery.phase, s.recovery.marker, s.recovery.retransmitted_at) =
            (Phase::Recovery, Some(1), Some(at(1_100)));
        s.queue.get_mut(0).flags |= if again { EVER_RETRANSMITTED } else { 0 };
        let seen = seen(|seen| seen.echo = Some(1_099));
        assert!(!with_context(1_200, |cx| s.try_undo_partial(1, &seen, cx)));
        assert_eq!((s.stats.undone_timestamp, s.recovery.retransmitted_at.is_some()), (1, again));
        assert_eq!(s.recovery.phase, if again { Phase::Disorder } else { Phase::Open });
    }
}

#[test]
fn a_time_out_without_sack_that_was_needless_ends_f_rto_and_the_retries() {
    let mut s = flying(8, 20);
    (s.sack, s.recovery.phase, s.recovery.marker) = (false, Phase::Loss, Some(1));
    (s.recovery.f_rto, s.retries) = (true, 3);
    assert!(with_context(1_200, |cx| s.try_undo_loss(false, None, cx)));
    assert_eq!((s.recovery.f_rto, s.retries, s.recovery.phase), (false, 0, Phase::Loss));
    assert_eq!(s.stats.undone_timestamp, 1);
}

#[test]
fn the_answer_to_a_window_probe_ends_the_retries() {
    let mut s = sender(20, &crate::Config::default());
    s.retries = 5;
    acked(&mut s, 1, 0, 1_200);
    assert_eq!((s.retries, s.window), (0, 0));
}

#[test]
fn a_pause_lets_the_buffer_go_that_nothing_fills_any_more() {
    let mut s = sender(4, &crate::Config { tso: false, ..crate::Config::default() });
    s.write_unlimited();
    assert_eq!(poll(&mut s, 1_000), 4);
    assert!(s.buffer.blocked && s.buffer.held > s.next);
    s.pause();
    assert_eq!((s.buffer.blocked, s.buffer.held, s.unsent()), (false, s.next, 0));
}

#[test]
fn a_closed_window_is_probed_as_often_as_the_retries_allow() {
    let mut s = sender(20, &crate::Config { retries: 2, tso: false, ..crate::Config::default() });
    s.write(100);
    s.window = 0;
    poll(&mut s, 1_000);
    for (ms, lives, retries) in [(1_300, true, 1), (2_000, true, 2), (4_000, false, 2)] {
        assert_eq!(s.timer, Timer::WindowProbe);
        assert_eq!(with_context(ms, |cx| s.on_timer(cx)), lives, "{ms}");
        assert_eq!((s.retries, u32::from(s.backoff)), (retries, retries));
        poll(&mut s, ms);
    }
}
