//! Which subscriptions are valid, and which events they are about.

use super::*;
use crate::event::{Bearer, Event, Measurement, S1Action, S1Bearer, Signal, TunnelEnd};
use crate::mec::{Book, Delivery, Id, MOST_PER_OWNER, MOST_SUBSCRIPTIONS, Refusal, notify};
use crate::report::UeId;
use serde_json::json;
use std::net::IpAddr;
use units::Time;

fn parse(value: &Value) -> Result<Subscription, Invalid> {
    Subscription::parse(value.to_string().as_bytes())
}

fn subscription(kind: Kind, criteria: Value) -> Subscription {
    parse(&body(kind, criteria)).expect("it is valid")
}

fn body(kind: Kind, criteria: Value) -> Value {
    let mut body = json!({ "subscriptionType": kind.subscription_type(), "callbackReference": "http://127.0.0.1:9/x" });
    body[kind.criteria_name()] = criteria;
    if kind == Kind::S1Bearer {
        body["eventType"] = json!([1, 2, 3]);
    }
    body
}

fn occurrence(what: What) -> Occurrence {
    let address = IpAddr::from([10, 45, 0, 2]);
    let event =
        Event { time: Time::from_nanos(1_500_000_000), cell: 7, ue: UeId::new(61).at(address), temp_ue_id: None, what };
    Occurrence { event, ids: vec![address.into()], qci: Some(9) }
}

fn events() -> Vec<(Kind, What)> {
    let bearer = Bearer { erab: 5, qci: 9, rates: None };
    let end = TunnelEnd { address: [10, 0, 0, 1].into(), teid: 3 };
    let serving = Signal { rsrp_dbm: Some(-100.0), rsrq_db: Some(-10.0), sinr_db: None };
    vec![
        (Kind::CellChange, What::CellChange { status: HandoverStatus::Completed, targets: vec![8] }),
        (Kind::RabEst, What::BearerEstablished(bearer)),
        (Kind::RabMod, What::BearerModified(bearer)),
        (Kind::RabRel, What::BearerReleased { erab: 5 }),
        (Kind::MeasRepUe, What::Measurement(Measurement { trigger: 12, serving, neighbours: vec![] })),
        (Kind::MeasTa, What::TimingAdvance { timing_advance: 3 }),
        (Kind::CaReconf, What::CarrierReconfigured { added: vec![8], removed: vec![] }),
        (
            Kind::S1Bearer,
            What::S1Bearer { action: S1Action::Modified, bearer: S1Bearer { erab: 5, enb: end, sgw: end } },
        ),
    ]
}

/// The least criteria of a type.
fn least(kind: Kind) -> Value {
    match kind {
        Kind::RabEst => json!({ "qci": 9 }),
        Kind::RabMod | Kind::RabRel => json!({ "qci": 9, "erabId": 5 }),
        _ => json!({}),
    }
}

#[test]
fn each_type_is_notified_of_its_events_only() {
    let network = Network::default();
    for kind in Kind::ALL {
        let wanted = subscription(kind, least(kind));
        for (event_kind, what) in events() {
            assert_eq!(wanted.matches(&occurrence(what.clone()), &network), kind == event_kind, "{kind:?} {what:?}");
        }
    }
    let nr = Network { rat: Rat::Nr, ..network };
    let (_, measurement) = events().swap_remove(4);
    assert!(subscription(Kind::NrMeasRepUe, json!({})).matches(&occurrence(measurement.clone()), &nr));
    assert!(!subscription(Kind::MeasRepUe, json!({})).matches(&occurrence(measurement), &nr));
}

#[test]
fn all_lists_of_the_criteria_must_fit() {
    let network = Network::default();
    let ue = json!({ "type": 1, "value": "10.45.0.2" });
    let other = json!({ "type": 1, "value": "10.45.0.3" });
    let cell = |id: &str| json!({ "plmn": { "mcc": "001", "mnc": "01" }, "cellId": id });
    let foreign = json!({ "plmn": { "mcc": "262", "mnc": "01" }, "cellId": "0000007" });
    let change = || occurrence(What::CellChange { status: HandoverStatus::InExecution, targets: vec![8] });
    for (criteria, fits) in [
        (json!({}), false),
        (json!({ "hoStatus": [1, 2] }), true),
        (json!({ "hoStatus": [2], "associateId": [other.clone(), ue.clone()] }), true),
        (json!({ "hoStatus": [2], "associateId": [other] }), false),
        (json!({ "hoStatus": [2], "ecgi": [cell("0000007")] }), true),
        (json!({ "hoStatus": [2], "ecgi": [cell("0000008")] }), true),
        (json!({ "hoStatus": [2], "ecgi": [cell("0000009")], "associateId": [ue] }), false),
        (json!({ "hoStatus": [2], "ecgi": [foreign] }), false),
    ] {
        assert_eq!(subscription(Kind::CellChange, criteria.clone()).matches(&change(), &network), fits, "{criteria}");
    }
    let bearer = |qci| Occurrence { qci, ..occurrence(What::BearerReleased { erab: 5 }) };
    let wanted = subscription(Kind::RabRel, json!({ "qci": 9, "erabId": 5 }));
    assert!(wanted.matches(&bearer(Some(9)), &network));
    assert!(!wanted.matches(&bearer(Some(8)), &network) && !wanted.matches(&bearer(None), &network));
    let (_, measurement) = events().swap_remove(4);
    assert!(
        subscription(Kind::MeasRepUe, json!({ "trigger": [12] })).matches(&occurrence(measurement.clone()), &network)
    );
    assert!(!subscription(Kind::MeasRepUe, json!({ "trigger": [1] })).matches(&occurrence(measurement), &network));
}

#[test]
fn a_subscription_is_sent_as_it_was_received() {
    let criteria = json!({
        "appInstanceId": "app", "associateId": [{ "type": 4, "value": "77" }],
        "ecgi": [{ "plmn": { "mcc": "001", "mnc": "01" }, "cellId": "abcdef0" }], "hoStatus": [1, 3],
    });
    let mut sent = body(Kind::CellChange, criteria);
    sent["expiryDeadline"] = json!({ "seconds": 100, "nanoSeconds": 5 });
    let mut expected = sent.clone();
    expected["_links"] = json!({ "self": { "href": "http://h/1" } });
    assert_eq!(parse(&sent).expect("it is valid").to_json("http://h/1", None), expected);
    let default = subscription(Kind::CellChange, json!({})).to_json("http://h/1", None);
    assert_eq!(default["filterCriteriaAssocHo"], json!({ "hoStatus": [3] }));
}

#[test]
fn faults_name_the_member() {
    for (kind, criteria, message) in [
        (Kind::RabEst, json!({}), "`filterCriteriaQci.qci` is missing"),
        (Kind::RabMod, json!({ "qci": 9 }), "`filterCriteriaQci.erabId` is missing"),
        (Kind::RabRel, json!({ "qci": 9, "erabId": 16 }), "`erabId` is greater than 15"),
        (Kind::RabRel, json!({ "qci": 9, "erabId": [1] }), "`erabId` is not a number"),
        (Kind::S1Bearer, json!({ "erabId": 5 }), "`erabId` is not a list"),
        (Kind::CellChange, json!({ "hoStatus": [3, 6] }), "`hoStatus[1]` is invalid"),
        (Kind::MeasRepUe, json!({ "trigger": [6] }), "`trigger[0]` is invalid"),
        (Kind::NrMeasRepUe, json!({ "triggerNr": [40] }), "`triggerNr[0]` is invalid"),
        (
            Kind::MeasTa,
            json!({ "associateId": vec![json!({ "type": 4, "value": "1" }); 65] }),
            "`associateId` has more than 64 entries",
        ),
        (
            Kind::CaReconf,
            json!({ "ecgi": [{ "plmn": { "mcc": "1", "mnc": "01" }, "cellId": "1" }] }),
            "`ecgi[0]` is invalid",
        ),
    ] {
        assert_eq!(parse(&body(kind, criteria)), Err(Invalid(message.into())));
    }
    let mut none = body(Kind::MeasTa, json!({}));
    none["callbackReference"] = json!("");
    assert!(parse(&none).expect_err("there is no way to deliver").0.starts_with("`callbackReference` or"));
    for wrong in
        [json!({}), json!([]), json!({ "subscriptionType": "X" }), json!({ "subscriptionType": "MeasTaSubscription" })]
    {
        assert!(parse(&wrong).is_err(), "{wrong}");
    }
}

fn id(number: u8) -> Id {
    Id::new([number; 16])
}

#[test]
fn subscriptions_expire_in_order_and_are_removed() {
    let mut book = Book::default();
    let mut add = |number: u8, seconds: u32, now: u64| {
        let mut subscription = subscription(Kind::MeasTa, json!({}));
        subscription.expiry = Some(TimeStamp { seconds, nano_seconds: 0 });
        let name = (id(number), format!("s/{number}"));
        book.create(name, subscription, Delivery::Callback, "owner", Time::from_nanos(now))
    };
    assert_eq!((add(1, 5, 0), add(2, 3, 0), add(3, 9, 0)), (Ok(()), Ok(()), Ok(())));
    assert_eq!(add(4, 5, 5_000_000_000), Err(Refusal::Expired));
    let due = book.due(Time::from_nanos(5_000_000_000));
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [id(2), id(1)]);
    let sent = serde_json::to_value(&due[0].notification).expect("it can be written");
    assert_eq!(sent["expiryDeadline"]["seconds"], 3);
    assert_eq!((book.len(), book.next_expiry()), (1, Some(Time::from_nanos(9_000_000_000))));
    assert!(book.remove(id(3)).is_some() && book.next_expiry().is_none() && book.is_empty());
}

#[test]
fn the_number_of_subscriptions_is_bounded_per_owner_and_in_total() {
    let mut book = Book::default();
    let name = |number: usize| {
        let mut random = [0; 16];
        random[..8].copy_from_slice(&number.to_be_bytes());
        (Id::new(random), format!("s/{number}"))
    };
    let mut add = |number: usize, owner: usize| {
        let subscription = subscription(Kind::MeasTa, json!({}));
        book.create(name(number), subscription, Delivery::Callback, &owner.to_string(), Time::ZERO)
    };
    for n in 0..MOST_SUBSCRIPTIONS {
        assert!(add(n, n / MOST_PER_OWNER).is_ok());
        if n + 1 == MOST_PER_OWNER {
            assert_eq!(add(9999, 0), Err(Refusal::OwnerFull));
        }
    }
    assert_eq!(add(9999, 99), Err(Refusal::Full));
    book.remove(name(1).0);
    let subscription = subscription(Kind::MeasTa, json!({}));
    assert!(book.create(name(9999), subscription, Delivery::Callback, "0", Time::ZERO).is_ok());
}

#[test]
fn identifiers_have_one_form() {
    let known = Id::new([0xab; 16]);
    assert_eq!(known.to_string().parse(), Ok(known));
    assert_eq!(format!("{known:?}"), "Id(..)");
    for text in ["", "1", &"AB".repeat(16), &"ab".repeat(17), &format!("+{}", "a".repeat(31)), &"é".repeat(16)] {
        assert_eq!(text.parse::<Id>(), Err(Refusal::Unknown), "{text}");
    }
}

#[test]
fn a_measurement_without_the_required_values_is_not_notified() {
    let network = Network::default();
    let measurement = Measurement { trigger: 1, serving: Signal::default(), neighbours: vec![] };
    assert_eq!(notify(&occurrence(What::Measurement(measurement)), &network, "s"), None);
}
