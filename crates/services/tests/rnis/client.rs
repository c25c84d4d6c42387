//! A client that is generated from the standard's API description works with the service unchanged.

// Tests wait for real sockets and programs.

use crate::common::{QUERIES, kinds, report, start, subscription, with_callbacks};
use rnis::Record;
use rnis::event::{Bearer, S1Action, S1Bearer, TunnelEnd, What};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Returns a Python that has the generator: the repository's, or the first in the path.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(path.split(':').map(PathBuf::from));
    let mut with_generator = folders.filter(|folder| folder.join("openapi-python-client").exists());
    with_generator.find_map(|folder| Some(folder.join("python")).filter(|python| python.exists()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_client_works_unchanged() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let description = manifest.join("../../../shared/data/mec012/advantedge_RniAPI_v2.2.1.yaml");
    if !testkit::root::has_data(&description) {
        return;
    }
    let python = python();
    if !testkit::root::has_program(python.is_some(), "openapi-python-client") {
        return;
    }
    let python = python.expect("it is there");
    let service = start(with_callbacks()).await;
    service.hub.feed(Record::Report(report(7, 2)));
    let end = |teid| TunnelEnd { address: [192, 0, 2, 1].into(), teid };
    let s1 = S1Bearer { erab: 5, enb: end(7), sgw: end(8) };
    for what in [
        What::BearerEstablished(Bearer { erab: 5, qci: 9, rates: None }),
        What::S1Bearer { action: S1Action::Established, bearer: s1 },
    ] {
        let Record::Event(mut event) = crate::common::event(what) else { unreachable!() };
        event.ue.rnti = 2;
        service.hub.feed(Record::Event(event));
    }
    let body = |(kind, criteria, least, _)| subscription(kind, criteria, &least, "http://127.0.0.1:9/notify");
    let subscriptions: Vec<_> = QUERIES.into_iter().zip(kinds().into_iter().map(body)).collect();
    let base = format!("http://{}/rni/v2", service.address);
    let output = Command::new(python)
        .arg(manifest.join("tests/rnis/client.py"))
        .arg(description)
        .args([base, serde_json::to_string(&subscriptions).expect("it is JSON")])
        .output()
        .await
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
