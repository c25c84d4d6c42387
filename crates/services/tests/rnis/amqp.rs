//! Reports over RabbitMQ, which the test starts.
// Tests wait for real sockets and programs.

use crate::common::{report, start, until};
use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use rnis::Record;
use services::rnis::{Broker as Address, Input, Options};
use services::{Log, unix_now};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::broker::{Broker, free_ports};
use tokio::time::{sleep, timeout};

/// Connects to the broker.
async fn connect(broker: &Broker) -> Connection {
    let url = broker.url();
    let connecting = Connection::connect(&url, ConnectionProperties::default());
    timeout(Duration::from_secs(5), connecting).await.expect("it answers").expect("the broker runs")
}

fn address(url: &str) -> Address {
    Address::parse(url).expect("it is valid")
}

fn logged() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    (Log::new(move |line| kept.lock().unwrap().push(line.to_owned())), lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_pass_a_broker_that_is_killed_and_restarted() {
    let directory = tempfile::tempdir().expect("there is room");
    let Some(mut broker) = Broker::new(directory.path()) else { return };
    broker.start();
    let (log, lines) = logged();
    let publisher = start(Options { amqp: Some(address(&broker.url())), log, ..Options::default() }).await;
    let input: Input = format!("amqp:{}", broker.url()).parse().expect("it is valid");
    let consumer = start(Options { inputs: vec![input], ..Options::default() }).await;
    let published = || lines.lock().unwrap().iter().filter(|line| line.starts_with("publishing")).count();
    until(|| published() == 1).await;

    // Another client sees the topic, and that messages expire and are not durable.
    let connection = connect(&broker).await;
    let channel = connection.create_channel().await.expect("the broker runs");
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare("".into(), options, FieldTable::default()).await.expect("the broker runs");
    let topic = "rni.7.10-45-0-61".into();
    let bound = channel.queue_bind(
        queue.name().clone(),
        "rni".into(),
        topic,
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.expect("the exchange is there");
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut messages = channel
        .basic_consume(queue.name().clone(), "".into(), options, FieldTable::default())
        .await
        .expect("the broker runs");
    publisher.hub.feed(Record::Report(report(8, 62)));
    publisher.hub.feed(Record::Report(report(7, 61)));
    let message = timeout(Duration::from_secs(10), messages.next())
        .await
        .expect("it arrives")
        .expect("it arrives")
        .expect("it arrives");
    assert_eq!(message.routing_key.as_str(), "rni.7.10-45-0-61");
    assert_eq!(message.properties.expiration().as_ref().map(ToString::to_string), Some("100".to_owned()));
    assert_eq!(message.properties.delivery_mode(), &Some(1));
    let read = rnis::feed::recording::parse_line(&message.data).expect("it is a report");
    assert!(matches!(read, Record::Report(report) if report.cell == 7));

    let address = IpAddr::from([10, 45, 0, 61]);
    let arrives = async |reason: &str| {
        let sent = unix_now();
        let start = Instant::now();
        while consumer.hub.latest(address).is_none_or(|report| report.time < sent) {
            assert!(start.elapsed() < Duration::from_secs(60), "{reason}");
            publisher.hub.feed(Record::Report(report(7, 61)));
            sleep(Duration::from_millis(50)).await;
        }
    };
    arrives("the first report").await;
    broker.kill();
    // Without a broker the feed goes on at full speed.
    let before = Instant::now();
    for _ in 0..10_000 {
        publisher.hub.feed(Record::Report(report(7, 61)));
    }
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    assert_eq!(publisher.get("/queries/layer2_meas").await.status, 200);
    sleep(Duration::from_secs(1)).await;
    broker.start();
    arrives("a report after the restart").await;
    assert!(published() >= 2, "{lines:?}");
    let lines = lines.lock().unwrap();
    assert!(lines.iter().all(|line| !line.contains("guest")), "{lines:?}");
}

#[tokio::test]
async fn a_missing_broker_does_not_hold_up_the_service() {
    let amqp = Some(address(&format!("amqp://127.0.0.1:{}", free_ports()[0])));
    let (log, lines) = logged();
    let service = start(Options { amqp, log, ..Options::default() }).await;
    for n in 0..10_000 {
        service.hub.feed(Record::Report(report(n, 61)));
    }
    assert_eq!(service.get("/queries/layer2_meas").await.status, 200);
    until(|| lines.lock().unwrap().len() == 1).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
}
