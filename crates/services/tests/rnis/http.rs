//! MEC 012 over HTTP: every resource and method, valid and invalid.
// Tests wait for real sockets and programs.

use crate::common::{
    BASE, Consumer, QUERIES, Schemas, kinds, report, start, subscription, timing_advance, to_this_machine,
    with_callbacks,
};
use rnis::event::{Bearer, BearerRates, S1Action, S1Bearer, TunnelEnd, What};
use rnis::identity::Rat;
use rnis::{AddressMap, Network, Record};
use serde_json::{Value, json};
use services::rnis::Options;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn assert_problem(schemas: &Schemas, reply: &crate::common::Reply, status: u16) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    schemas.check("ProblemDetails", &reply.json());
    assert_eq!(reply.json()["status"], status);
}

#[tokio::test]
async fn queries_answer_from_reports_and_events() {
    let schemas = Schemas::load();
    let addresses = AddressMap::parse("61 10.45.0.61 nat=192.0.2.9").expect("it is valid");
    let service = start(Options { addresses, ..Options::default() }).await;
    service.hub.feed(Record::Report(report(7, 61)));
    service.hub.feed(Record::Report(report(8, 62)));
    let ue = |rnti: u16, cell: u64, what| {
        let Record::Event(mut event) = crate::common::event(what) else { unreachable!() };
        (event.cell, event.ue.rnti, event.ue.address) = (cell, rnti, None);
        service.hub.feed(Record::Event(event));
    };
    ue(62, 8, What::BearerEstablished(Bearer { erab: 5, qci: 9, rates: None }));
    let rates = BearerRates { mbr_dl: 128_000, mbr_ul: 64_000, gbr_dl: 64_000, gbr_ul: 32_000 };
    ue(62, 8, What::BearerEstablished(Bearer { erab: 6, qci: 1, rates: Some(rates) }));
    ue(61, 7, What::BearerEstablished(Bearer { erab: 5, qci: 8, rates: None }));
    let end = |teid| TunnelEnd { address: [192, 0, 2, 1].into(), teid };
    ue(61, 7, What::S1Bearer { action: S1Action::Established, bearer: S1Bearer { erab: 5, enb: end(7), sgw: end(8) } });

    let all = service.get("/queries/rab_info?app_ins_id=app").await.json();
    schemas.check("RabInfo", &all);
    assert_eq!((&all["appInstanceId"], all["cellUserInfo"].as_array().map(Vec::len)), (&json!("app"), Some(2)));
    for (query, bearers) in [
        ("cell_id=0000007", 1),
        ("cell_id=0000007,0000008", 3),
        ("cell_id=0000007&cell_id=0000008", 3),
        ("ue_ipv4_address=10.45.0.62", 2),
        ("nated_ip_address=192.0.2.9", 1),
        ("gtp_teid=7", 1),
        ("qci=9", 1),
        ("erab_id=5", 2),
        ("erab_mbr_dl=128000&erab_gbr_ul=32000", 1),
        ("erab_gbr_dl=1", 0),
        ("ue_ipv6_address=2001:db8::1", 0),
    ] {
        let info = service.get(&format!("/queries/rab_info?{query}")).await.json();
        schemas.check("RabInfo", &info);
        let ues =
            info["cellUserInfo"].as_array().into_iter().flatten().flat_map(|cell| cell["ueInfo"].as_array()).flatten();
        let found: usize = ues.map(|ue| ue["erabInfo"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(found, bearers, "{query}: {info:#}");
    }

    let plmns = service.get("/queries/plmn_info?app_ins_id=a,b").await.json();
    let [first, second] = &plmns.as_array().expect("it is a list")[..] else { panic!("{plmns}") };
    schemas.check("PlmnInfo", first);
    assert_eq!((&first["appInstanceId"], &second["plmn"][0]), (&json!("a"), &json!({ "mcc": "001", "mnc": "01" })));

    let s1 = service.get("/queries/s1_bearer_info?gtp_teid=7&erab_id=5").await.json();
    schemas.check("S1BearerInfo", &s1);
    assert_eq!(s1["s1UeInfo"][0]["s1BearerInfoDetailed"][0]["sGwInfo"]["tunnelId"], "8");
    assert_problem(&schemas, &service.get("/queries/s1_bearer_info?gtp_teid=9").await, 404);

    let layer2 = service.get("/queries/layer2_meas").await.json();
    schemas.check("L2Meas", &layer2);
    assert_eq!(layer2["cellInfo"][0]["dl_total_prb_usage_cell"], 25);
    assert_eq!(layer2["cellInfo"][0]["dl_nongbr_prb_usage_cell"], 25);
    // In cell 8 a bearer has a guaranteed rate, so the kinds of traffic cannot be told apart.
    assert_eq!(layer2["cellInfo"][1].get("dl_nongbr_prb_usage_cell"), None);
    let ue = &layer2["cellUEInfo"][0];
    assert_eq!((&ue["dl_nongbr_throughput_ue"], &ue["dl_nongbr_data_volume_ue"]), (&json!(10_000), &json!(1000)));
    assert_eq!(layer2["cellUEInfo"].as_array().map(Vec::len), Some(1));
    let one = service.get("/queries/layer2_meas?cell_id=0000007&dl_total_prb_usage_cell=1").await.json();
    schemas.check("L2Meas", &one);
    assert_eq!((one["cellInfo"][0].as_object().map(serde_json::Map::len), &one["cellUEInfo"]), (Some(2), &json!([])));
}

#[tokio::test]
async fn invalid_queries_are_problems() {
    let schemas = Schemas::load();
    let service = start(Options::default()).await;
    for path in [
        "/queries/plmn_info",
        "/queries/plmn_info?app_ins_id=",
        "/queries/rab_info?qci=x",
        "/queries/rab_info?qci=1&qci=2",
        "/queries/rab_info?cell_id=xyz",
        "/queries/rab_info?ue_ipv4_address=fe80::1",
        "/queries/rab_info?unknown=1",
        "/queries/s1_bearer_info?erab_id=1,x",
        "/queries/layer2_meas?dl_gbr_delay_ue=x",
        "/subscriptions?subscription_type=x",
    ] {
        assert_problem(&schemas, &service.get(path).await, 400);
    }
    let long = "x,".repeat(5000);
    assert_problem(&schemas, &service.get(&format!("/queries/rab_info?cell_id={long}")).await, 414);
    let many = "1,".repeat(300);
    assert_problem(&schemas, &service.get(&format!("/queries/rab_info?cell_id={many}")).await, 400);
    for path in
        ["/", "/rni/v1/subscriptions", "/rni/v2", "/rni/v2/queries", "/rni/v2/subscriptions/1/2", "/rni/v2/../x"]
    {
        assert_problem(&schemas, &service.send("GET", path, &[], b"").await, 404);
    }
    for (method, path) in [("POST", "/queries/rab_info"), ("DELETE", "/subscriptions"), ("PATCH", "/subscriptions/1")] {
        assert_problem(&schemas, &service.send(method, &format!("{BASE}{path}"), &[], b"").await, 405);
    }
    let html = [("Accept", "text/html")];
    assert_problem(&schemas, &service.send("GET", &format!("{BASE}/queries/rab_info"), &html, b"").await, 406);
    for accept in ["application/json", "text/html, */*;q=0.1", "application/*"] {
        let headers = [("Accept", accept)];
        assert_eq!(service.send("GET", &format!("{BASE}/queries/rab_info"), &headers, b"").await.status, 200);
    }
}

#[tokio::test]
async fn all_types_of_subscriptions_are_created_read_changed_and_deleted() {
    let schemas = Schemas::load();
    let service = start(with_callbacks()).await.with_token("its own");
    let callback = "http://127.0.0.1:9/notify";
    for (kind, criteria, least, _) in kinds() {
        let name = format!("{kind}Subscription");
        let mut body = subscription(kind, criteria, &least, callback);
        schemas.check(&name, &body);
        let created = service.post(&body).await;
        assert_eq!(created.status, 201, "{created:?}");
        let location = created.headers["location"].clone();
        schemas.check(&name, &created.json());
        assert_eq!(created.json()["_links"]["self"]["href"], location);
        assert!(location.starts_with(&format!("http://{}{BASE}/subscriptions/", service.address)), "{location}");
        let path = location.strip_prefix(&format!("http://{}", service.address)).expect("it is our own").to_owned();

        let read = service.send("GET", &path, &[], b"").await;
        assert_eq!((read.status, read.json()), (200, created.json()));

        assert_problem(&schemas, &service.put(&path, &body).await, 400);
        body["_links"] = json!({ "self": { "href": "http://127.0.0.1/rni/v2/subscriptions/999" } });
        assert_problem(&schemas, &service.put(&path, &body).await, 400);
        body["_links"] = json!({ "self": { "href": location } });
        body["expiryDeadline"] = json!({ "seconds": 1_999_999_999, "nanoSeconds": 0 });
        body["callbackReference"] = json!("http://127.0.0.1:10/other");
        let changed = service.put(&path, &body).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        schemas.check(&name, &changed.json());
        let read = service.send("GET", &path, &[], b"").await.json();
        assert_eq!((&read["callbackReference"], &read), (&json!("http://127.0.0.1:10/other"), &changed.json()));

        let mut other = timing_advance(callback);
        other["_links"] = body["_links"].clone();
        let expected = if kind == "MeasTa" { 200 } else { 400 };
        assert_eq!(service.put(&path, &other).await.status, expected);
    }
    let list = service.get("/subscriptions").await.json();
    schemas.check("SubscriptionLinkList", &list);
    let links = list["_links"]["subscription"].as_array().expect("it is a list").clone();
    assert_eq!(links.len(), 9);
    for query in QUERIES {
        let list = service.get(&format!("/subscriptions?subscription_type={query}")).await.json();
        schemas.check("SubscriptionLinkList", &list);
        assert_eq!(list["_links"]["subscription"].as_array().map(Vec::len), Some(1), "{query}");
    }
    for link in links {
        let path = link["href"]
            .as_str()
            .expect("it is a link")
            .strip_prefix(&format!("http://{}", service.address))
            .expect("ours")
            .to_owned();
        let deleted = service.send("DELETE", &path, &[], b"").await;
        assert_eq!((deleted.status, &deleted.text[..]), (204, ""));
        assert_problem(&schemas, &service.send("DELETE", &path, &[], b"").await, 404);
        assert_problem(&schemas, &service.send("GET", &path, &[], b"").await, 404);
        assert_problem(&schemas, &service.put(&path, &timing_advance(callback)).await, 404);
    }
    let list = service.get("/subscriptions").await.json();
    schemas.check("SubscriptionLinkList", &list);
    assert_eq!(list["_links"]["subscription"], json!([]));
}

#[tokio::test]
async fn invalid_subscriptions_are_problems() {
    let schemas = Schemas::load();
    let service = start(with_callbacks()).await;
    let path = format!("{BASE}/subscriptions");
    let json_type = [("Content-Type", "application/json; charset=utf-8")];
    for body in [&b"{"[..], b"[]", b"null", b"\xff\xfe", b"{\"subscriptionType\":7}", &[b'['; 10_000]] {
        assert_problem(&schemas, &service.send("POST", &path, &json_type, body).await, 400);
    }
    for id in ["x", "01", "-1", "18446744073709551616", "%31%00"] {
        assert_problem(&schemas, &service.get(&format!("/subscriptions/{id}")).await, 404);
    }
    for content_type in [vec![], vec![("Content-Type", "text/plain")], vec![("Content-Type", "application/jsonx")]] {
        assert_problem(&schemas, &service.send("POST", &path, &content_type, b"{}").await, 415);
    }
    let large = json!({ "subscriptionType": "x".repeat(70_000) });
    assert_problem(&schemas, &service.post(&large).await, 413);
    // The same without a length in advance.
    let mut chunked = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..20 {
        chunked.extend(b"2000\r\n");
        chunked.resize(chunked.len() + 0x2000, b' ');
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    assert_problem(&schemas, &service.raw(&chunked).await, 413);

    assert_problem(&schemas, &service.post(&timing_advance("http://169.254.169.254/latest/meta-data")).await, 403);
    for uri in ["https://127.0.0.1/", "gopher://127.0.0.1/", "x"] {
        assert_problem(&schemas, &service.post(&timing_advance(uri)).await, 422);
    }
    let mut past = timing_advance("http://127.0.0.1:9/");
    past["expiryDeadline"] = json!({ "seconds": 1, "nanoSeconds": 0 });
    assert_problem(&schemas, &service.post(&past).await, 422);
}

#[tokio::test]
async fn ten_thousand_subscriptions_are_bounded_and_the_service_goes_on() {
    let schemas = Schemas::load();
    let service = start(with_callbacks()).await;
    let mut accepted = 0;
    let mut stream = tokio::net::TcpStream::connect(service.address).await.expect("the service listens");
    let body = timing_advance("http://127.0.0.1:9/x").to_string();
    let request = format!(
        "POST {BASE}/subscriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut buffer = vec![0; 65536];
    for n in 0..10_000 {
        stream.write_all(request.as_bytes()).await.expect("the connection stays");
        let mut reply = String::new();
        while !reply.contains("\r\n\r\n") || !reply.ends_with('}') {
            let read = stream.read(&mut buffer).await.expect("the connection stays");
            assert!(read > 0, "closed at {n}");
            reply += std::str::from_utf8(&buffer[..read]).expect("it is text");
        }
        match &reply[9..12] {
            "201" => accepted += 1,
            "429" => {}
            status => panic!("{status} at {n}"),
        }
    }
    assert_eq!(accepted, rnis::mec::MOST_PER_OWNER);
    assert_problem(&schemas, &service.post(&timing_advance("http://127.0.0.1:9/x")).await, 429);
    // 256 dead callbacks do not hold up the feed or the queries.
    let before = std::time::Instant::now();
    for n in 0..100 {
        service.feed(What::TimingAdvance { timing_advance: n });
    }
    assert_eq!(service.get("/queries/rab_info").await.status, 200);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test]
async fn links_are_below_the_configured_api_root() {
    let root = Some("https://mec.example/lab".to_owned());
    let service = start(Options { root, ..with_callbacks() }).await;
    let body = timing_advance("http://127.0.0.1:9/").to_string();
    let headers = [("Content-Type", "application/json")];
    let reply = service.send("POST", "/lab/rni/v2/subscriptions", &headers, body.as_bytes()).await;
    let id = reply.headers["location"].strip_prefix("https://mec.example/lab/rni/v2/subscriptions/");
    assert_eq!(id.map(str::len), Some(32), "{reply:?}");
    assert_eq!(service.get("/subscriptions").await.status, 404);
}

#[tokio::test]
async fn slow_clients_do_not_block_others() {
    let service = start(Options::default()).await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(service.address).await.expect("the service listens");
        stream
            .write_all(b"POST /rni/v2/subscriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: appl")
            .await
            .expect("it is sent");
        slow.push(stream);
    }
    let before = std::time::Instant::now();
    assert_eq!(service.get("/queries/layer2_meas").await.status, 200);
    assert!(before.elapsed() < Duration::from_secs(2));
}

/// Notifications of all types, as the standard's schemas require them.
#[tokio::test]
async fn each_type_of_event_is_notified() {
    let schemas = Schemas::load();
    let consumer = Consumer::start(&[204], Duration::ZERO).await;
    let mut seen = 0;
    for rat in [Rat::Lte, Rat::Nr] {
        let network = Network { rat, ..Network::default() };
        let callbacks = to_this_machine();
        let service = start(Options { network, callbacks, ..Options::default() }).await;
        for (kind, criteria, mut least, what) in kinds() {
            if (rat == Rat::Nr) != (kind == "NrMeasRepUe") {
                continue;
            }
            if !kind.starts_with("Rab") {
                least["associateId"] = json!([{ "type": 1, "value": "10.45.0.2" }]);
            }
            let created = service.post(&subscription(kind, criteria, &least, &consumer.uri())).await;
            assert_eq!(created.status, 201, "{created:?}");
            service.feed(what);
            seen += 1;
            let notification = consumer.wait(seen).await.pop().expect("it was received");
            schemas.check(&format!("{kind}Notification"), &notification);
            let name: Value = if kind == "CaReconf" { "CaReConf".into() } else { kind.into() };
            assert_eq!(notification["notificationType"], format!("{}Notification", name.as_str().unwrap()));
            assert_eq!(notification["_links"]["subscription"]["href"], created.headers["location"]);
        }
    }
    assert_eq!(consumer.received().len(), 9);
}
