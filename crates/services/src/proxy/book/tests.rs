use super::*;

fn book(most: usize) -> Arc<Book> {
    Arc::new(Book::new(Arc::new(Gate::new(most, Vec::new()))))
}

fn settings() -> Settings {
    Settings {
        max_per_ue: 4,
        max_per_server: 6,
        max_half_open: 10,
        max_half_open_per_ue: 2,
        max_half_open_per_server: 8,
        ..Settings::new(&["wan"], &["ran"])
    }
}

fn ends(ue: u8, port: u16, server: u8) -> Ends {
    (SocketAddr::from(([10, 0, 0, ue], port)), SocketAddr::from(([192, 0, 2, server], 443)))
}

fn take(answer: Answer) -> Place {
    match answer {
        Answer::Take(place) => place,
        other => panic!("{other:?}"),
    }
}

fn reason(answer: &Answer) -> Option<Reason> {
    if let Answer::Pass(reason) = answer { Some(*reason) } else { None }
}

#[test]
fn no_ue_server_or_side_takes_more_than_its_share() {
    let (book, settings, now) = (book(100), settings(), Instant::now());
    let ask = |ue, port, server| book.ask(ends(ue, port, server), Side::Ran, 0, &settings, now);
    let mut half_open = vec![take(ask(1, 1, 1)), take(ask(1, 2, 1))];
    assert_eq!(reason(&ask(1, 3, 1)), Some(Reason::HalfOpenUe));
    half_open.extend([take(ask(2, 1, 1)), take(ask(2, 2, 1))]);
    assert_eq!(reason(&ask(3, 1, 1)), Some(Reason::HalfOpenServer));
    half_open.push(take(ask(4, 1, 2)));
    assert_eq!(reason(&ask(5, 1, 3)), Some(Reason::HalfOpen));
    // The other side has its own.
    let of_server = take(book.ask((ends(0, 9, 9).1, ends(6, 7, 0).0), Side::Wan, 0, &settings, now));
    assert_eq!(book.half_open(), 6);
    drop((half_open, of_server));
    let mut open: Vec<Place> =
        (10..14).map(|port| take(ask(1, port, 1))).inspect(|_| ()).fold(Vec::new(), |mut all, mut place| {
            place.deliver();
            place.establish(now);
            all.push(place);
            all
        });
    assert_eq!((reason(&ask(1, 20, 1)), book.half_open()), (Some(Reason::Ue), 0));
    for port in [30, 31] {
        let mut place = take(ask(2, port, 1));
        place.establish(now);
        open.push(place);
    }
    assert_eq!(reason(&ask(3, 40, 1)), Some(Reason::Server));
    drop(open);
    assert_eq!(book.gate.count(), 0);
    let inner = book.lock();
    assert!(inner.known.is_empty() && inner.ues.is_empty() && inner.servers.is_empty() && inner.half_open == [0, 0]);
}

#[test]
fn hosts_that_have_completed_a_handshake_have_places_of_their_own() {
    let (book, settings, now) = (book(100), settings(), Instant::now());
    let ask = |ue, port| book.ask(ends(ue, port, ue), Side::Ran, 0, &settings, now);
    let mut known = take(ask(1, 1));
    known.establish(now);
    drop(known);
    let _flood: Vec<Place> = (2..7).map(|ue| take(ask(ue, 1))).collect();
    assert_eq!(reason(&ask(7, 1)), Some(Reason::HalfOpen));
    let later = now + REMEMBERED;
    let _place = take(ask(1, 2));
    assert_eq!(reason(&book.ask(ends(1, 3, 1), Side::Ran, 0, &settings, later)), Some(Reason::HalfOpen));
}

#[test]
fn clients_that_nobody_knows_have_few_places_at_a_server_for_which_syns_are_forged() {
    let (book, now) = (book(10_000), Instant::now());
    let settings = Settings::new(&["wan"], &["ran"]);
    let ask = |ue: u16, server, now| {
        let client = SocketAddr::from(([10, 0, (ue >> 8) as u8, ue as u8], 1));
        book.ask((client, ends(1, 1, server).1), Side::Ran, 0, &settings, now)
    };
    let mut known = take(ask(1, 1, now));
    known.deliver();
    known.establish(now);
    let taken = |first: u16, now| {
        let places = (first..first + 300).map_while(|ue| match ask(ue, 1, now) {
            Answer::Take(place) => Some(place),
            _ => None,
        });
        places.collect::<Vec<Place>>()
    };
    let mut forged = taken(1_000, now);
    assert_eq!(forged.len(), settings.max_half_open_per_server / UNPROVEN_PART);
    forged.iter_mut().for_each(|place| place.is_late(now));
    assert_eq!(book.lock().servers[&forged[0].server].late, forged.len());
    drop(forged);
    let more = taken(2_000, now);
    assert_eq!(more.len(), FEW);
    // Other servers have theirs, and so have clients that are known.
    let others: Vec<Place> = (3_000..3_000 + 2 * FEW as u16).map(|ue| take(ask(ue, 2, now))).collect();
    drop(take(book.ask(ends(1, 2, 1), Side::Ran, 0, &settings, now)));
    drop((more, others));
    assert!(taken(4_000, now + REMEMBERED).len() > FEW);
}

#[test]
fn a_syn_that_comes_again_goes_where_the_first_went() {
    let (book, settings, now) = (book(1), settings(), Instant::now());
    let ask = |port, now| book.ask(ends(1, port, 1), Side::Ran, 3, &settings, now);
    let mut place = take(ask(1, now));
    assert!(matches!(ask(1, now), Answer::Wait));
    assert_eq!(book.accept(ends(1, 1, 1)), None);
    place.deliver();
    assert!(matches!(ask(1, now), Answer::Deliver));
    assert_eq!((book.accept(ends(1, 1, 1)), book.accept(ends(1, 1, 1))), (Some(3), None));
    place.establish(now);
    assert!(matches!(ask(1, now), Answer::Check(3)));
    assert_eq!(reason(&ask(2, now)), Some(Reason::Closed));
    // Its client has gone, and comes again.
    place.release();
    assert_eq!((reason(&ask(1, now)), book.has(&ends(1, 1, 1))), (Some(Reason::Closed), true));
    drop(place);
    assert!(!book.has(&ends(1, 1, 1)));
    assert_eq!(reason(&ask(2, now + Duration::from_secs(100))), Some(Reason::Again));
    drop(take(ask(2, now + REMEMBERED)));
    book.remember(ends(1, 1, 1), now);
    assert_eq!(reason(&ask(1, now)), Some(Reason::Again));
}

#[test]
fn connections_to_a_server_that_refuses_pass_for_a_while_and_what_waits_for_it_does_when_it_comes_again() {
    let (book, settings, now) = (book(100), settings(), Instant::now());
    let ask = |port, server: SocketAddr, now| book.ask((ends(1, port, 1).0, server), Side::Ran, 3, &settings, now);
    let (refusing, other, another) = (ends(1, 1, 1).1, ends(1, 1, 2).1, SocketAddr::from(([192, 0, 2, 1], 80)));
    let waiting = [take(ask(1, another, now)), take(ask(2, other, now))];
    assert!(matches!(ask(1, another, now), Answer::Wait));
    book.refuses((ends(1, 1, 1).0, refusing), now);
    assert_eq!(reason(&ask(3, refusing, now)), Some(Reason::Refused));
    // Other clients are not refused.
    drop(take(book.ask((ends(2, 3, 1).0, refusing), Side::Ran, 3, &settings, now)));
    assert!(matches!(ask(1, another, now), Answer::GiveUp(3)) && matches!(ask(2, other, now), Answer::Wait));
    drop(waiting);
    // It serves somebody now.
    let mut open = take(ask(4, another, now));
    open.establish(now);
    let waiting = take(ask(5, another, now));
    assert!(matches!(ask(5, another, now), Answer::Wait));
    drop((open, waiting));
    let later = now + REFUSING;
    drop(take(ask(6, refusing, later)));
}

#[test]
fn a_host_whose_handshakes_do_not_get_on_is_no_evidence_while_others_are_served() {
    const TEST_TIMEOUT: Duration = Duration::from_millis(400);
    let (book, settings, now) = (book(100), settings(), Instant::now());
    let ask = |ue, port, server| take(book.ask(ends(ue, port, server), Side::Ran, 0, &settings, now));
    let how = |at| book.handshakes(at, TEST_TIMEOUT);
    assert_eq!(how(now), Handshakes::None);
    let mut other = ask(1, 1, 1);
    assert_eq!(how(now), Handshakes::UnderWay);
    other.establish(now);
    // One UE.
    let stuck = [ask(2, 1, 2), ask(2, 2, 3)];
    assert_eq!(
        [how(now), how(now + TEST_TIMEOUT), how(now + SERVED)],
        [Handshakes::UnderWay, Handshakes::UnderWay, Handshakes::StuckAtOne]
    );
    // One server.
    drop(stuck);
    let stuck = [ask(2, 3, 2), ask(3, 1, 2)];
    assert_eq!([how(now + TEST_TIMEOUT), how(now + SERVED)], [Handshakes::UnderWay, Handshakes::StuckAtOne]);
    // Two of each, and the one that was served is no other.
    let more = ask(4, 1, 3);
    assert_eq!([how(now + TEST_TIMEOUT), how(now + SERVED)], [Handshakes::UnderWay, Handshakes::Stuck]);
    drop((stuck, more));
    let own = ask(1, 2, 2);
    assert_eq!(how(now + TEST_TIMEOUT), Handshakes::StuckAtOne);
    // Many were served until a moment ago, and now nobody is.
    let serve = |ue| {
        let mut place = ask(ue, 1, ue);
        place.establish(now);
        place
    };
    let served: Vec<Place> = (10..90).map(serve).collect();
    assert_eq!([how(now + TEST_TIMEOUT), how(now + 5 * TEST_TIMEOUT)], [Handshakes::UnderWay, Handshakes::StuckAtOne]);
    drop((other, own, served));
}

#[test]
fn a_server_that_opens_connections_has_one_network() {
    let book = book(100);
    let settings = Settings { max_per_server: 2, ..settings() };
    let now = Instant::now();
    let ask = |ending: u16| {
        let client = SocketAddr::new(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, ending]), 1_000);
        book.ask((client, "[fd01::2]:80".parse().expect("an address")), Side::Wan, 0, &settings, now)
    };
    let mut first = take(ask(1));
    first.establish(now);
    let second = take(ask(2));
    // A client of a network that has completed a handshake is known.
    assert!(second.is_proven());
    assert_eq!(reason(&ask(3)), Some(Reason::Server));
    drop((first, second));
}

#[test]
fn on_trial_each_ue_has_one_place() {
    let (book, settings, now) = (book(100), settings(), Instant::now());
    book.gate.set_obstructed(false, true);
    let ask = |ue, port| book.ask(ends(ue, port, ue), Side::Ran, 0, &settings, now);
    let one = take(ask(1, 1));
    assert_eq!(reason(&ask(1, 2)), Some(Reason::HalfOpenUe));
    let others: Vec<Place> = (2..=ON_TRIAL as u8).map(|ue| take(ask(ue, 1))).collect();
    assert_eq!(reason(&ask(100, 1)), Some(Reason::HalfOpen));
    drop((one, others));
}

#[test]
fn clients_that_are_not_heard_at_a_port_pass_there() {
    let (book, settings, now) = (book(100), settings(), Instant::now());
    let ask = |ue, port| book.ask(ends(ue, port, 1), Side::Ran, 0, &settings, now);
    take(ask(1, 1)).is_unheard(now);
    assert_eq!(reason(&ask(1, 2)), Some(Reason::Unheard));
    let mut place = take(ask(2, 1));
    place.establish(now);
    // Somebody else may have sent this one.
    take(ask(2, 2)).is_unheard(now);
    drop(take(ask(2, 3)));
}

#[test]
fn what_is_remembered_is_bounded() {
    let (book, now) = (book(1), Instant::now());
    for n in 0..2 * MOST_REMEMBERED {
        let (client, server) = ends((n >> 16) as u8, n as u16, 1);
        book.remember((client, server), now);
    }
    let Inner { passed, .. } = &*book.lock();
    assert_eq!((passed.last.len(), passed.ages.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
}

#[test]
fn all_addresses_of_a_prefix_are_one_ue() {
    let of = |text: &str| host(text.parse().expect("an address"), 64);
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
}
