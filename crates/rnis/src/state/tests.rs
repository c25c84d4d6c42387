//! What the state knows after which records.

use super::*;
use crate::event::{BearerRates, TunnelEnd};

const ADDRESS: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 45, 0, 2));

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn report(ms: u64, cell: u64, rnti: u16, address: Option<IpAddr>) -> Record {
    Record::Report(RadioReport {
        time: at(ms),
        interval: Span::from_millis(1),
        cell,
        ue: UeId { address, ..UeId::new(rnti) },
        n_prb: 50,
        slots: 2,
        cell_prbs: Some(60),
        active_ues: Some(1),
        prbs: Some(60),
        acked_bits: 1000,
        blocks: 2,
        failed: 0,
        mcs: None,
        layers: None,
        cqi: None,
        bits_per_prb: None,
        queue_bytes: None,
    })
}

fn event(ms: u64, cell: u64, rnti: u16, what: What) -> Record {
    Record::Event(Event { time: at(ms), cell, ue: UeId::new(rnti), temp_ue_id: None, what })
}

fn ue(state: &State, cell: u64, rnti: u16) -> &Ue {
    &state.ues[&(cell, rnti)]
}

#[test]
fn the_latest_report_wins_and_an_older_one_is_dropped() {
    let mut state = State::default();
    assert!(state.accept(report(10, 1, 61, None), at(10)).record.is_some());
    assert_eq!(state.accept(report(9, 1, 61, None), at(11)), Accepted::default());
    assert_eq!(ue(&state, 1, 61).report.as_ref().expect("there is one").time, at(10));
    assert_eq!(state.cells[&1].prbs, Some((60, 100)));
}

#[test]
fn a_report_from_the_future_does_not_block_later_ones() {
    let mut state = State::default();
    state.accept(report(9_000_000, 1, 61, None), at(10));
    assert!(state.accept(report(20, 1, 61, None), at(20)).record.is_some());
    assert_eq!(ue(&state, 1, 61).report.as_ref().expect("there is one").time, at(20));
}

#[test]
fn an_address_in_another_cell_is_a_cell_change_that_takes_the_bearers_along() {
    let mut state = State::default();
    state.accept(report(10, 1, 61, Some(ADDRESS)), at(10));
    let rates = BearerRates { mbr_dl: 2, mbr_ul: 2, gbr_dl: 1, gbr_ul: 1 };
    let bearer = Bearer { erab: 5, qci: 1, rates: Some(rates) };
    let occurrences = state.accept(event(11, 1, 61, What::BearerEstablished(bearer)), at(11)).occurrences;
    assert_eq!((occurrences[0].qci, occurrences[0].event.ue.address), (Some(1), Some(ADDRESS)));
    let occurrences = state.accept(report(20, 2, 99, Some(ADDRESS)), at(20)).occurrences;
    let [Occurrence { event, ids, .. }] = &occurrences[..] else { panic!("{occurrences:?}") };
    assert_eq!(event.what, What::CellChange { status: HandoverStatus::Completed, targets: vec![2] });
    assert_eq!((event.cell, event.ue.rnti, ids), (1, 61, &vec![ADDRESS.into()]));
    assert!(ue(&state, 2, 99).has_guaranteed_bearer());
    assert_eq!((state.ues.len(), state.latest(ADDRESS).map(|report| report.cell)), (1, Some(2)));
}

#[test]
fn a_reported_cell_change_is_not_reported_again() {
    let mut state = State::default();
    state.accept(report(10, 1, 61, Some(ADDRESS)), at(10));
    let change = What::CellChange { status: HandoverStatus::Completed, targets: vec![2] };
    assert_eq!(state.accept(event(15, 1, 61, change), at(15)).occurrences.len(), 1);
    assert_eq!(state.accept(report(20, 2, 99, Some(ADDRESS)), at(20)).occurrences, vec![]);
}

#[test]
fn a_released_bearer_is_notified_with_its_class() {
    let mut state = State::default();
    state.accept(event(1, 1, 61, What::BearerEstablished(Bearer { erab: 5, qci: 9, rates: None })), at(1));
    let occurrences = state.accept(event(2, 1, 61, What::BearerReleased { erab: 5 }), at(2)).occurrences;
    assert_eq!(occurrences[0].qci, Some(9));
    assert!(ue(&state, 1, 61).bearers.is_empty());
}

#[test]
fn the_tunnel_of_an_s1_bearer_identifies_the_ue_until_its_release() {
    let mut state = State::default();
    let end = |teid| TunnelEnd { address: [10, 0, 0, 1].into(), teid };
    let bearer = S1Bearer { erab: 5, enb: end(77), sgw: end(78) };
    let s1 = |action| What::S1Bearer { action, bearer };
    let occurrences = state.accept(event(1, 1, 61, s1(S1Action::Established)), at(1)).occurrences;
    assert_eq!(occurrences[0].ids, vec![AssociateId::GtpTeid(77)]);
    state.accept(event(2, 1, 61, s1(S1Action::Released)), at(2));
    assert!(ue(&state, 1, 61).ids.is_empty() && ue(&state, 1, 61).s1.is_empty());
}

/// Returns the UE of an accepted report.
fn id_of(accepted: Accepted) -> UeId {
    let Some(Record::Report(report)) = accepted.record else { panic!("{accepted:?}") };
    report.ue
}

#[test]
fn an_event_names_a_ue_by_both_its_addresses() {
    let mut state = State::default();
    let second: IpAddr = "fd00::2".parse().expect("it is an address");
    let measured = event(
        1,
        1,
        61,
        What::Measurement(crate::event::Measurement {
            trigger: crate::event::PERIODICAL,
            serving: crate::event::Signal::default(),
            neighbours: Vec::new(),
        }),
    );
    let Record::Event(mut measured) = measured else { unreachable!() };
    measured.ue = UeId { second_address: Some(second), ..measured.ue.at(ADDRESS) };
    let accepted = state.accept(Record::Event(measured.clone()), at(1));
    let ids = [ADDRESS, second].map(AssociateId::from);
    assert_eq!((&accepted.occurrences[0].ids[..], &ue(&state, 1, 61).ids[..]), (&ids[..], &ids[..]));
    assert_eq!(accepted.record, Some(Record::Event(measured)));
}

#[test]
fn the_table_names_ues_that_the_cell_does_not() {
    let mut state = State::new(AddressMap::parse("1/61 10.45.0.2").expect("it is valid"));
    let accepted = state.accept(report(10, 1, 61, None), at(10));
    assert_eq!(id_of(accepted).address, Some(ADDRESS));
    assert!(state.latest(ADDRESS).is_some());
}

#[test]
fn silent_ues_and_cells_are_forgotten_and_memory_is_bounded() {
    let mut state = State::default();
    for n in 0..20_000u64 {
        let address = IpAddr::from(core::net::Ipv4Addr::from(n as u32));
        state.accept(report(n, n, n as u16, Some(address)), at(n));
    }
    assert_eq!((state.ues.len(), state.cells.len()), (MOST_UES, MOST_CELLS));
    assert_eq!(
        (state.by_age.len(), state.by_address.len(), state.cells_by_age.len()),
        (MOST_UES, MOST_UES, MOST_CELLS)
    );
    state.forget(at(19_999) + KEEP);
    assert_eq!(state.ues.len(), 1);
    state.forget(at(20_000) + KEEP);
    assert!(state.ues.is_empty() && state.cells.is_empty() && state.by_address.is_empty());
}

#[test]
fn a_ue_that_left_is_forgotten_at_once() {
    let mut state = State::default();
    state.accept(report(10, 1, 61, Some(ADDRESS)), at(10));
    assert_eq!(state.accept(event(11, 1, 61, What::Left), at(11)).occurrences, vec![]);
    assert_eq!((state.ues.len(), state.latest(ADDRESS)), (0, None));
}

#[test]
fn a_ue_of_ever_new_addresses_is_found_by_the_latest_ones_alone() {
    let mut state = State::default();
    let address = |n: u32| IpAddr::from(n.to_be_bytes());
    for n in 0..1000 {
        let Record::Event(mut event) = event(u64::from(n), 1, 61, What::BearerReleased { erab: 5 }) else {
            unreachable!()
        };
        event.ue.address = Some(address(n));
        state.accept(Record::Event(event), at(u64::from(n)));
    }
    assert!(state.by_address.len() <= MOST_IDS, "{}", state.by_address.len());
    assert!(state.by_address.contains_key(&address(999)));
    state.accept(report(1000, 1, 61, Some(address(1000))), at(1000));
    assert!(state.latest(address(1000)).is_some());
}

#[test]
fn the_table_gives_a_report_one_address_of_each_ip_version() {
    let map = AddressMap::parse("61 10.45.0.2 10.45.0.3 fd00:1::1 fd00:2::1\n62 fd00:3::1").expect("it is valid");
    let mut state = State::new(map);
    let mut of = |rnti, address| {
        let accepted = state.accept(report(1, 1, rnti, address), at(1));
        let ue = id_of(accepted);
        (ue.address.map(|address| address.to_string()), ue.second_address.map(|address| address.to_string()))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(of(61, None), (some("10.45.0.2"), some("fd00:1::1")));
    assert_eq!(of(62, None), (some("fd00:3::1"), None));
    // A cell that knows one address is completed, and its address stays the first.
    assert_eq!(of(61, "fd00:9::1".parse().ok()), (some("fd00:9::1"), some("10.45.0.2")));
    assert_eq!(of(63, None), (None, None));
}
