//! A service under test, a client that speaks plain HTTP, a consumer of callbacks, and the standard's schemas.

use rnis::event::{Bearer, Event, HandoverStatus, Measurement, Neighbour, S1Action, S1Bearer, Signal, TunnelEnd, What};
use rnis::{RadioReport, Record, UeId};
use serde_json::{Value, json};
use services::rnis::{CallbackPolicy, Hub, Options, Service};
use services::unix_now;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use units::Span;

pub(crate) const BASE: &str = "/rni/v2";

/// A service that runs until the test ends.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) hub: Arc<Hub>,
    /// The token that requests present, if any.
    bearer: Option<&'static str>,
}

pub(crate) async fn start(options: Options) -> Running {
    let mut service = Service::start(options).await.unwrap_or_else(|why| panic!("{why}"));
    let running = Running { address: service.address(), hub: service.hub(), bearer: None };
    tokio::spawn(async move { service.run().await });
    running
}

/// The policy that permits callbacks to this machine.
pub(crate) fn to_this_machine() -> CallbackPolicy {
    CallbackPolicy::new(vec!["127.0.0.0/8".parse().expect("it is a network")])
}

/// Options that permit callbacks to this machine.
pub(crate) fn with_callbacks() -> Options {
    Options { callbacks: to_this_machine(), ..Options::default() }
}

/// A reply: status, headers in lower case, body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }
}

impl Running {
    /// The same service, as a client with a token asks it.
    pub(crate) fn with_token(&self, bearer: &'static str) -> Running {
        Running { address: self.address, hub: self.hub.clone(), bearer: Some(bearer) }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(token) = self.bearer {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.raw(&[(head + "\r\n").as_bytes(), body].concat()).await
    }

    /// Sends bytes and reads the reply.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.expect("the service listens");
        // The service may reply and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut reply = Vec::new();
        let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut reply)).await.expect("the service replies");
        let text = String::from_utf8(reply).expect("the reply is text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("there is a status");
        let headers = lines.filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.to_lowercase(), v.to_owned()));
        Reply { status, headers: headers.collect(), text: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", &format!("{BASE}{path}"), &[], b"").await
    }

    pub(crate) async fn post(&self, body: &Value) -> Reply {
        let json = [("Content-Type", "application/json")];
        self.send("POST", &format!("{BASE}/subscriptions"), &json, body.to_string().as_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        let json = [("Content-Type", "application/json")];
        self.send("PUT", path, &json, body.to_string().as_bytes()).await
    }

    pub(crate) fn feed(&self, what: What) {
        self.hub.feed(event(what));
    }
}

/// A consumer of callbacks: keeps what it receives and replies with a status after a delay.
pub(crate) struct Consumer {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Value>>>,
    attempts: Arc<Mutex<u32>>,
}

impl Consumer {
    pub(crate) async fn start(replies: &'static [u16], delay: Duration) -> Consumer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let received = Arc::new(Mutex::new(Vec::new()));
        let attempts = Arc::new(Mutex::new(0));
        let consumer = Consumer { address, received: received.clone(), attempts: attempts.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (received, attempts) = (received.clone(), attempts.clone());
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let body = loop {
                        let mut chunk = [0; 4096];
                        let Ok(n @ 1..) = stream.read(&mut chunk).await else { return };
                        bytes.extend_from_slice(&chunk[..n]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let length =
                            head.to_lowercase().lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok());
                        if body.len() >= length.unwrap_or(0) {
                            assert!(
                                head.starts_with("POST ")
                                    && head.to_lowercase().contains("content-type: application/json")
                            );
                            break serde_json::from_str(body).expect("a notification is JSON");
                        }
                    };
                    let attempt = {
                        *attempts.lock().unwrap() += 1;
                        *attempts.lock().unwrap() as usize
                    };
                    let status = replies[(attempt - 1).min(replies.len() - 1)];
                    if status < 300 {
                        received.lock().unwrap().push(body);
                    }
                    sleep(delay).await;
                    let reply =
                        format!("HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(reply.as_bytes()).await;
                });
            }
        });
        consumer
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}/notify", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn attempts(&self) -> u32 {
        *self.attempts.lock().unwrap()
    }

    /// Waits for so many notifications.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Value> {
        until(|| self.received().len() >= count).await;
        self.received()
    }
}

/// Waits for a condition.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "the condition never held");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn ue() -> UeId {
    UeId::new(61).at([10, 45, 0, 2])
}

pub(crate) fn event(what: What) -> Record {
    Record::Event(Event { time: unix_now(), cell: 7, ue: ue(), temp_ue_id: None, what })
}

pub(crate) fn report(cell: u64, rnti: u16) -> RadioReport {
    RadioReport {
        time: unix_now(),
        interval: Span::from_millis(100),
        cell,
        ue: UeId::new(rnti).at([10, 45, 0, rnti as u8]),
        n_prb: 100,
        slots: 100,
        cell_prbs: Some(2500),
        active_ues: Some(2),
        prbs: Some(1250),
        acked_bits: 1_000_000,
        blocks: 100,
        failed: 3,
        mcs: Some(20),
        layers: Some(2),
        cqi: Some(12),
        bits_per_prb: Some(800.0),
        queue_bytes: Some(3000),
    }
}

/// The values of `subscription_type` for the types of [`kinds`].
pub(crate) const QUERIES: [&str; 9] = [
    "cell_change",
    "rab_est",
    "rab_mod",
    "rab_rel",
    "meas_rep_ue",
    "nr_meas_rep_ue",
    "timing_advance_ue",
    "ca_reconf",
    "s1_bearer",
];

/// An event for each type of subscription, with the least criteria that it needs.
pub(crate) fn kinds() -> Vec<(&'static str, &'static str, Value, What)> {
    let bearer = Bearer { erab: 5, qci: 9, rates: None };
    let end = |teid| TunnelEnd { address: [192, 0, 2, 1].into(), teid };
    let serving = Signal { rsrp_dbm: Some(-101.0), rsrq_db: Some(-11.0), sinr_db: Some(3.0) };
    let neighbour = |rat| Neighbour { cell: 8, rat, signal: serving };
    let neighbours =
        vec![neighbour(None), neighbour(Some(rnis::identity::Rat::Nr)), neighbour(Some(rnis::identity::Rat::Lte))];
    let measurement = || What::Measurement(Measurement { trigger: 12, serving, neighbours: neighbours.clone() });
    let s1 = S1Bearer { erab: 5, enb: end(7), sgw: end(8) };
    let change = What::CellChange { status: HandoverStatus::Completed, targets: vec![8] };
    let none = || json!({});
    vec![
        ("CellChange", "filterCriteriaAssocHo", none(), change),
        ("RabEst", "filterCriteriaQci", json!({ "qci": 9 }), What::BearerEstablished(bearer)),
        ("RabMod", "filterCriteriaQci", json!({ "qci": 9, "erabId": 5 }), What::BearerModified(bearer)),
        ("RabRel", "filterCriteriaQci", json!({ "qci": 9, "erabId": 5 }), What::BearerReleased { erab: 5 }),
        ("MeasRepUe", "filterCriteriaAssocTri", none(), measurement()),
        ("NrMeasRepUe", "filterCriteriaNrMrs", none(), measurement()),
        ("MeasTa", "filterCriteriaAssoc", none(), What::TimingAdvance { timing_advance: 12 }),
        ("CaReconf", "filterCriteriaAssoc", none(), What::CarrierReconfigured { added: vec![8], removed: vec![9] }),
        (
            "S1Bearer",
            "S1BearerSubscriptionCriteria",
            none(),
            What::S1Bearer { action: S1Action::Established, bearer: s1 },
        ),
    ]
}

pub(crate) fn subscription(kind: &str, criteria: &str, value: &Value, callback: &str) -> Value {
    let mut body = json!({ "subscriptionType": format!("{kind}Subscription"), "callbackReference": callback });
    body[criteria] = value.clone();
    if kind == "S1Bearer" {
        body["eventType"] = json!([1, 2, 3]);
    }
    body
}

/// The least subscription to timing advances.
pub(crate) fn timing_advance(callback: &str) -> Value {
    subscription("MeasTa", "filterCriteriaAssoc", &json!({}), callback)
}

/// The schemas of the standard's API descriptions that are there: of version 2.2.1, and of ETSI's own file, which is of 2.1.1.
pub(crate) struct Schemas(Vec<Value>);

/// Types of which version 2.1.1 demands another form than 2.2.1: a link `self`, and the identity of an NR cell as text.
const CHANGED: [&str; 2] = ["ExpiryNotification", "NrMeasRepUeNotification"];

impl Schemas {
    pub(crate) fn load() -> Schemas {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/mec012");
        // Only the validation is skipped.
        let files = [("advantedge_RniAPI_v2.2.1.yaml", &[][..]), ("etsi_RniAPI_v2.1.1.yaml", &CHANGED)];
        let read = |(file, without): (&str, &[&str])| {
            let path = folder.join(file);
            let text =
                testkit::root::has_data(&path).then(|| std::fs::read_to_string(path).expect("it can be read"))?;
            let mut all: Value = serde_norway::from_str(&text).expect("the API description is YAML");
            let schemas = all["components"]["schemas"].as_object_mut().expect("there are schemas");
            schemas.retain(|name, _| !without.contains(&name.as_str()));
            Some(all["components"].take())
        };
        Schemas(files.into_iter().filter_map(read).collect())
    }

    /// Asserts that a value has a type of the API descriptions.
    pub(crate) fn check(&self, name: &str, value: &Value) {
        let mut known = 0;
        for components in self.0.iter().filter(|components| components["schemas"].get(name).is_some()) {
            known += 1;
            let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": components });
            let validator = jsonschema::draft4::new(&schema).unwrap_or_else(|why| panic!("{name}: {why}"));
            let faults: Vec<String> =
                validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
            assert!(faults.is_empty(), "{name} of description {known}: {faults:#?}\n{value:#}");
        }
        assert!(self.0.is_empty() || known > 0, "there is no schema {name}");
    }
}
