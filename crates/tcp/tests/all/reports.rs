//! What a sender makes of a PEP's reports, and what it does not.

use crate::pipe::*;
use cc::{Listens, Sign};
use tcp::Config;
use wire::report::{Key, Report};
use wire::{Block, Flags, Options, Segment, Timestamps};

const MSS: u32 = 1448;

/// A connection whose client works with PEPs; the handshake took until 150 ms.
fn cooperating(retransmit: bool) -> Pipe<Fixed> {
    let with = Fixed {
        listens: Listens { passages: true, early_retransmission: retransmit, ..Listens::default() },
        ..fixed(20)
    };
    let mut p = Pipe::new(&plain(), with, fixed(20));
    p.run_until(at(1000));
    p
}

/// A report as of the way from the server: segments `from` to `through` have passed but those `missing`; the newest that
/// passed was sent at `echo` ms.
fn report(from: u32, through: u32, missing: &[(u32, u32)], echo: u32) -> Segment {
    let number = |n: u32| 1 + n * MSS;
    let mut report = Report::new(number(from), number(through));
    for &(start, end) in missing {
        assert!(report.push(Block { start: number(start), end: number(end) }));
    }
    Segment {
        seq: SERVER_ISN + 1,
        ack: CLIENT_ISN,
        window: 502,
        len: 0,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 50, echo }),
        options: Options::Report(report),
    }
}

/// Passages that reports told: segments passed and missing.
fn told(p: &Pipe<Fixed>) -> Vec<(u32, u32)> {
    p.client.controller().passages.iter().filter(|p| p.reported).map(|p| (p.passed, p.missing)).collect()
}

#[test]
fn the_syn_announces_it_once_and_only_if_the_controller_asks_for_it() {
    let mut p = cooperating(true).script(|_| Fate::Drop);
    let announces = |e: &&Entry| matches!(e.segment.options, Options::Syn(options) if options.reports);
    assert_eq!(
        (
            p.sent(Client).iter().filter(|e| announces(e)).count(),
            p.sent(Server).iter().filter(|e| announces(e)).count()
        ),
        (1, 0)
    );
    let with =
        Fixed { listens: Listens { passages: true, early_retransmission: true, ..Listens::default() }, ..fixed(20) };
    p = Pipe::new(&plain(), with, fixed(20)).script(|e| if e.number == 1 { Fate::Drop } else { Fate::Pass });
    p.run_until(at(3000));
    let syns: Vec<_> = p.sent(Client).iter().filter(|e| e.has(Flags::SYN)).map(announces).collect();
    assert_eq!(syns, [true, false]);
}

#[test]
fn what_has_passed_is_counted_once_whoever_tells_it() {
    let mut p = cooperating(true);
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    p.inject(Server, report(0, 2, &[], 1000));
    p.inject(Server, report(0, 5, &[], 1000));
    p.inject(Server, report(0, 5, &[], 1000));
    p.run_for(ms(51));
    assert_eq!(told(&p), [(2, 0), (3, 0), (0, 0)]);
    let first = &p.client.controller().passages[0];
    assert_eq!((first.rtt, first.next - first.una, first.in_flight), (Some(ms(10)), 6 * u64::from(MSS), 8));
    // What has passed in a row from the acknowledged offset on; not what lies beyond a gap.
    let ends = p.client.controller().passages.iter().map(|p| (p.next - p.una) / u64::from(MSS)).collect::<Vec<_>>();
    assert_eq!(ends, [6, 3, 3]);
    // The receiver acknowledges all: three segments of it are new.
    p.run_until(at(2000));
    let implied: u32 = p.client.controller().passages.iter().filter(|p| !p.reported).map(|p| p.passed).sum();
    assert_eq!(implied, 3);
    assert_eq!(p.client.stats().dup_acks_received, 0);
}

#[test]
fn what_is_missing_is_retransmitted_at_once_and_its_loss_was_announced() {
    for retransmit in [true, false] {
        let mut p = cooperating(retransmit);
        p.rescript(|e| if e.from == Client && e.data_number == 2 { Fate::Drop } else { Fate::Pass });
        p.write(Client, 8 * u64::from(MSS));
        p.run_for(ms(10));
        p.inject(Server, report(0, 8, &[(1, 2)], 1000));
        p.run_until(at(3000));
        // By the report at 1010 ms, or by the receiver's acknowledgements after a round trip.
        let expected = if retransmit { 1010 } else { 1100 };
        assert_eq!(p.data_story(Client)[8..], [(expected, 1)]);
        assert_eq!(told(&p), [(7, 1)]);
        let passage = &p.client.controller().passages[0];
        assert_eq!(passage.next - passage.una, 7 * u64::from(MSS), "the first alone has passed before the gap");
        assert_eq!(
            (&p.client.controller().signs[..], &p.client.controller().announced[..]),
            (&[Sign::Loss][..], &[true][..])
        );
        assert_eq!(p.delivered(Server), 8 * u64::from(MSS));
        assert_eq!(p.client.stats().retransmitted_fast, 1);
    }
}

#[test]
fn a_loss_that_no_report_names_was_not_announced_even_in_the_same_recovery() {
    let mut p = cooperating(true);
    // Segment 1 is lost before the PEP, segment 3 behind it.
    p.rescript(|e| if e.from == Client && [2, 4].contains(&e.data_number) { Fate::Drop } else { Fate::Pass });
    p.write(Client, 10 * u64::from(MSS));
    p.run_for(ms(10));
    p.inject(Server, report(0, 10, &[(1, 2)], 1000));
    p.run_until(at(3000));
    assert_eq!(p.client.controller().announced, [true, false]);
    assert_eq!(p.delivered(Server), 10 * u64::from(MSS));
}

#[test]
fn acknowledgements_of_what_was_sent_before_do_not_make_an_early_retransmission_spurious() {
    // Of the original, whose acknowledgement echoes a time before the retransmission, they do.
    for (missing, undone) in [(true, 0), (false, 1)] {
        let mut p = cooperating(true);
        p.rescript(move |e| if missing && e.from == Client && e.data_number == 3 { Fate::Drop } else { Fate::Pass });
        p.write(Client, 8 * u64::from(MSS));
        p.run_for(ms(10));
        p.inject(Server, report(0, 8, &[(2, 3)], 1000));
        p.run_until(at(3000));
        assert_eq!((p.client.stats().undone_timestamp, p.client.controller().undos), (undone, undone as u32));
        assert_eq!((p.client.stats().reorderings > 0, p.delivered(Server)), (!missing, 8 * u64::from(MSS)));
    }
}

#[test]
fn what_was_retransmitted_is_not_missing_because_an_earlier_report_says_so() {
    let mut p = cooperating(true);
    p.rescript(|e| if e.from == Client && e.data_number == 2 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    for through in [5, 6, 8] {
        p.inject(Server, report(0, through, &[(1, 2)], 1000));
        p.run_for(ms(1));
    }
    p.run_until(at(3000));
    assert_eq!(p.data_story(Client)[8..], [(1010, 1)]);
}

#[test]
fn forged_replayed_and_late_reports_are_not_taken() {
    let mut p = cooperating(true);
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    let unsent = report(0, 9, &[], 1000);
    let of_the_future = report(0, 4, &[], 1500);
    let of_the_past = report(0, 4, &[], 99);
    let backwards = Segment { options: Options::Report(Report::new(10, 10)), ..report(0, 4, &[], 1000) };
    let outside = report(0, 4, &[(3, 5)], 1000);
    let elsewhere = Segment { ack: CLIENT_ISN.wrapping_add(1 << 30), ..report(0, 4, &[], 1000) };
    for forged in [unsent, of_the_future, of_the_past, backwards, outside, elsewhere] {
        p.inject(Server, forged);
    }
    p.run_for(ms(51));
    assert_eq!(told(&p), []);
    assert_eq!((p.client.stats().reports_received, p.client.stats().reports_taken), (5, 0));
    // One that is taken makes older ones stale.
    p.run_until(at(1500));
    let sent = (p.now.as_nanos() / 1_000_000) as u32;
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    for (through, echo) in [(4, sent), (6, sent - 1)] {
        let timestamps = Some(Timestamps { value: sent, echo });
        let report = report(0, through, &[], echo);
        p.inject(Server, Segment { ack: CLIENT_ISN + 8 * MSS, timestamps, ..report });
    }
    p.run_for(ms(1));
    assert_eq!(told(&p), [(4, 0)]);
}

#[test]
fn who_knows_nothing_of_reports_neither_counts_nor_answers_them() {
    let mut p = connected(20);
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    let sent = p.sent(Client).len();
    for through in 1..8 {
        p.inject(Server, report(0, through, &[(0, 1)], 1000));
    }
    p.run_for(ms(51));
    assert_eq!(p.sent(Client).len(), sent);
    assert_eq!((p.client.stats().dup_acks_received, p.client.stats().challenge_acks_sent), (0, 0));
    p.run_until(at(3000));
    assert_eq!(p.delivered(Server), 8 * u64::from(MSS));
    assert_eq!(p.client.stats().retransmitted(), 0);
}

#[test]
fn a_sender_with_a_key_takes_no_report_without_its_tag_and_one_without_takes_none_with_a_tag() {
    let key = Key::new([1; 16]);
    let tagged = |segment: Segment, key| {
        let Options::Report(mut report) = segment.options else { panic!("it is one") };
        report.authenticate(key, segment.ack, segment.timestamps.expect("it has some"));
        Segment { options: Options::Report(report), ..segment }
    };
    for report_key in [Some(key), None] {
        let with = Fixed {
            listens: Listens { passages: true, early_retransmission: true, ..Listens::default() },
            ..fixed(20)
        };
        let mut p = Pipe::new(&Config { report_key, ..plain() }, with, fixed(20));
        p.run_until(at(1000));
        p.write(Client, 8 * u64::from(MSS));
        p.run_for(ms(10));
        let (plain, genuine) = (report(0, 4, &[], 1000), tagged(report(0, 4, &[], 1000), key));
        let of_another_key = tagged(plain, Key::new([2; 16]));
        // A genuine tag on another segment, or on other words.
        let later = Segment { timestamps: Some(Timestamps { value: 51, echo: 1000 }), ..genuine };
        let shifted = Segment { ack: genuine.ack + 1, ..genuine };
        for forged in [of_another_key, later, shifted] {
            p.inject(Server, forged);
        }
        p.inject(Server, if report_key.is_some() { plain } else { genuine });
        p.run_for(ms(51));
        assert_eq!((told(&p), p.client.stats().reports_received, p.client.stats().reports_taken), (vec![], 4, 0));
        p.inject(Server, if report_key.is_some() { genuine } else { plain });
        p.run_for(ms(51));
        assert_eq!((told(&p), p.client.stats().reports_taken), (vec![(4, 0)], 1));
    }
}

#[test]
fn a_sender_that_hears_a_pep_no_more_announces_itself_again_ever_more_seldom() {
    let mdcc = cc::multi_domain::MultiDomain::new(cc::multi_domain::MultiDomainConfig::default(), 10);
    for heard in [true, false] {
        // A small window, so that there is not much to send in 20 s.
        let config = Config { receive_buffer_max: 131_072, ..plain() };
        let mut p = Pipe::new(&config, mdcc.clone(), mdcc.clone());
        p.run_until(at(1000));
        p.write(Client, 8 * u64::from(MSS));
        if heard {
            p.run_for(ms(10));
            p.inject(Server, report(0, 8, &[], 1000));
        }
        p.run_until(at(2000));
        p.client.write_unlimited();
        p.run_until(at(20_000));
        let again: Vec<u64> = p
            .sent(Client)
            .iter()
            .filter(|e| e.segment.options == Options::Announcement)
            .inspect(|e| assert_eq!(u32::from(e.segment.len) + 4, MSS, "it has room"))
            .map(|e| e.time.as_nanos() / 1_000_000_000)
            .collect();
        // Two round trips of 100 ms without a report, or three; then 1, 2, 4, 8 s.
        assert_eq!(again, if heard { vec![2, 3, 5, 9, 17] } else { vec![] });
        assert_eq!(p.client.stats().retransmitted(), 0);
    }
}

#[test]
fn only_new_data_announce_a_sender_again() {
    let mdcc = cc::multi_domain::MultiDomain::new(cc::multi_domain::MultiDomainConfig::default(), 10);
    let mut p = Pipe::new(&plain(), mdcc.clone(), mdcc);
    p.run_until(at(1000));
    p.write(Client, 8 * u64::from(MSS));
    p.run_for(ms(10));
    p.inject(Server, report(0, 8, &[], 1000));
    // It hears the PEP no more.
    for _ in 0..8 {
        p.write(Client, u64::from(MSS));
        p.run_for(ms(300));
    }
    assert!(p.sent(Client).iter().any(|e| e.segment.options == Options::Announcement));
    // The next announcement is due, and only acknowledgements leave.
    p.run_for(ms(20_000));
    let start = p.now;
    p.write(Server, 4 * u64::from(MSS));
    p.run_for(ms(1_000));
    // One segment with an announcement. It is lost, and sent again until after the next one is due.
    let end = p.now + ms(70_000);
    p.rescript(move |e| if e.from == Client && e.time < end { Fate::Drop } else { Fate::Pass });
    p.write(Client, u64::from(MSS) / 2);
    p.run_for(ms(200_000));
    let since: Vec<&Entry> = p.sent(Client).into_iter().filter(|e| e.time >= start).collect();
    assert!(since.iter().any(|e| !e.is_data()), "{since:?}");
    let data = since.iter().filter(|e| e.is_data());
    let announce: Vec<bool> = data.map(|e| e.segment.options == Options::Announcement).collect();
    assert!(announce.len() > 5 && announce[0] && announce[1..].iter().all(|again| !again), "{announce:?}");
    assert_eq!(since.iter().filter(|e| e.segment.options == Options::Announcement).count(), 1);
    assert_eq!(p.delivered(Server), 16 * u64::from(MSS) + u64::from(MSS) / 2);
}

#[test]
fn what_has_passed_after_all_is_lost_unannounced() {
    // Segment 1 is missing at the PEP; its retransmission passes, which a report tells, and is lost behind it.
    for passes in [true, false] {
        let mut p = cooperating(true);
        p.rescript(|e| if e.from == Client && [2, 9].contains(&e.data_number) { Fate::Drop } else { Fate::Pass });
        p.write(Client, 8 * u64::from(MSS));
        p.run_for(ms(10));
        p.inject(Server, report(0, 8, &[(1, 2)], 1000));
        p.run_for(ms(20));
        assert_eq!(p.data_story(Client)[8..], [(1010, 1)]);
        if passes {
            p.inject(Server, report(0, 8, &[], 1010));
        }
        // What is sent later arrives, so that the retransmission is found lost.
        p.write(Client, 8 * u64::from(MSS));
        p.run_until(at(3000));
        assert_eq!(p.delivered(Server), 16 * u64::from(MSS));
        let announced = if passes { &[true, false][..] } else { &[true] };
        assert_eq!(p.client.controller().announced, announced);
    }
}
