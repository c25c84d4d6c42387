use super::*;

/// A feed that agrees with what is measured: 1 MB/s of each kind, without a queue.
const RIGHT: Evidence = Evidence {
    told: 1e6,
    delivered: 1e6,
    received: 1e6,
    decoded: 1e6,
    promised: Some(1e6),
    has_backlog: true,
    on_leg: 0.02,
    rtt: 0.02,
    least: 0.02,
    believed: Span::from_millis(100),
};
/// Three times what is told is delivered.
const LOW: Evidence = Evidence { delivered: 3e6, received: 3e6, promised: None, ..RIGHT };
/// A third of what is promised is delivered, and bytes are on the leg for three times the least time.
const HIGH: Evidence = Evidence { delivered: 0.33e6, received: 0.33e6, on_leg: 0.06, ..RIGHT };

/// Returns the doubt that arises within 20 s, and after how many milliseconds.
fn doubt(seen: Evidence) -> Option<(Doubt, u64)> {
    let mut trust = Trust::default();
    (0..20_000).find_map(|ms| {
        assert!(!trust.judge(&seen, 0.001, Time::ZERO + Span::from_millis(ms)), "it was never in doubt");
        trust.doubt().map(|doubt| (doubt, ms))
    })
}

#[test]
fn a_feed_is_too_low_if_far_more_is_delivered_or_received_than_it_tells() {
    use Doubt::TooLow;
    assert_eq!(doubt(RIGHT), None);
    assert_eq!(doubt(LOW), Some((TooLow, 200)));
    // For three periods of its reports, if that is longer.
    assert_eq!(doubt(Evidence { believed: Span::from_millis(600), ..LOW }), Some((TooLow, 600)));
    // More than 2.5 times the capacity, or the bytes that it says were decoded, if it tells them.
    assert_eq!(doubt(Evidence { delivered: 2.5e6, received: 2.5e6, ..LOW }), None);
    assert_eq!(doubt(Evidence { delivered: 2.51e6, received: 0.0, ..LOW }), Some((TooLow, 200)));
    assert_eq!(doubt(Evidence { received: 2.51e6, promised: None, ..RIGHT }), Some((TooLow, 200)));
    assert_eq!(doubt(Evidence { received: 2.51e6, decoded: 0.0, promised: None, ..RIGHT }), None);
    // Little says nothing.
    assert_eq!(doubt(Evidence { told: 1.0, delivered: LITTLE, ..LOW }), None);
    assert_eq!(doubt(Evidence { told: 1.0, delivered: LITTLE + 1.0, ..LOW }), Some((TooLow, 200)));
}

#[test]
fn a_feed_is_too_high_if_far_less_is_delivered_than_it_lets_promise() {
    use Doubt::TooHigh;
    assert_eq!(doubt(HIGH), Some((TooHigh, 200)));
    assert_eq!(doubt(Evidence { believed: Span::from_millis(600), ..HIGH }), Some((TooHigh, 600)));
    // A loss may be under repair for a round trip, up to half a second.
    assert_eq!(doubt(Evidence { rtt: 0.4, ..HIGH }), Some((TooHigh, 400)));
    assert_eq!(doubt(Evidence { rtt: 0.7, ..HIGH }), Some((TooHigh, 500)));
    // Less than 0.4 of it.
    assert_eq!(doubt(Evidence { delivered: 0.4e6, received: 0.4e6, ..HIGH }), None);
    assert_eq!(doubt(Evidence { delivered: 0.39e6, received: 0.39e6, ..HIGH }), Some((TooHigh, 200)));
    assert_eq!(doubt(Evidence { received: 0.4e6, ..HIGH }), None, "the greater of both counts");
    assert_eq!(doubt(Evidence { promised: None, ..HIGH }), None);
    // Without a queue, or with blocks to spare, it takes 5 s.
    for unclear in [Evidence { on_leg: 0.04, ..HIGH }, Evidence { decoded: 0.75e6, ..HIGH }] {
        assert_eq!(doubt(unclear), Some((TooHigh, 5_000)), "{unclear:?}");
    }
    for clear in [Evidence { on_leg: 0.041, ..HIGH }, Evidence { decoded: 0.76e6, ..HIGH }] {
        assert_eq!(doubt(clear), Some((TooHigh, 200)), "{clear:?}");
    }
}

#[test]
fn an_interruption_begins_the_time_anew() {
    for (wrong, doubt) in [(LOW, Doubt::TooLow), (HIGH, Doubt::TooHigh)] {
        for lapses in [false, true] {
            let mut trust = Trust::default();
            for ms in 0..=351 {
                let seen = if ms == 150 { RIGHT } else { wrong };
                trust.judge(&seen, 0.001, Time::ZERO + Span::from_millis(ms));
                if lapses && ms == 150 {
                    trust.lapse();
                }
                assert_eq!(trust.doubt(), (ms == 351).then_some(doubt), "{ms} ms");
            }
        }
    }
}

/// Two seconds the first time, four the second, and so on up to 64.
#[test]
fn a_feed_in_doubt_is_believed_again_after_twice_as_long_each_time() {
    let mut trust = Trust::default();
    let mut now = 0;
    let mut believed_after = |trust: &mut Trust, seen: &dyn Fn(u64) -> Evidence| {
        for _ in 0..=200 {
            trust.judge(&LOW, 0.001, Time::ZERO + Span::from_millis(now));
            now += 1;
        }
        assert_eq!(trust.doubt(), Some(Doubt::TooLow));
        (1..=1000).find(|ms| trust.judge(&seen(*ms), 0.125, Time::ZERO + Span::from_millis(now)))
    };
    let right = |_| RIGHT;
    // In steps of an eighth of a second.
    let steps: Vec<_> = (0..7).map(|_| believed_after(&mut trust, &right)).collect();
    assert_eq!(steps, [16, 32, 64, 128, 256, 512, 512].map(Some));
    let mut first = |seen: &dyn Fn(u64) -> Evidence| believed_after(&mut Trust::default(), seen);
    // Disagreement takes as much away, but not more than there is.
    assert_eq!(first(&|step| if step == 10 { LOW } else { RIGHT }), Some(10 + 16 - (9 - 1)));
    assert_eq!(first(&|step| if step <= 10 { LOW } else { RIGHT }), Some(26));
    // Nothing is learnt while little is delivered, or no data waits.
    let unclear = [
        Evidence { delivered: LITTLE, ..RIGHT },
        Evidence { told: LITTLE, delivered: LITTLE, ..RIGHT },
        Evidence { has_backlog: false, ..RIGHT },
    ];
    for unclear in unclear {
        assert_eq!(first(&|step| if step <= 10 { unclear } else { RIGHT }), Some(26), "{unclear:?}");
    }
    // It agrees between 0.4 and 2.5 times what is delivered.
    for (told, agrees) in [(0.39e6, false), (0.4e6, true), (2.5e6, true), (2.51e6, false)] {
        assert_eq!(first(&|_| Evidence { told, ..RIGHT }).is_some(), agrees, "{told}");
    }
}
