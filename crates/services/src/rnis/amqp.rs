//! Reports on an AMQP 0-9-1 broker.
//!
//! The publisher sends each report to the topic exchange [`EXCHANGE`] with the routing key `rni.CELL.UE`: CELL is the number of
//! the cell, UE the UE's address with `-` for `.` and `:` (which topics cannot contain), or `rnti-NUMBER` without one. A
//! message expires after the interval of its report, when the next one is due. While the broker is slow or away, the latest
//! report of each UE waits, and no other. Nothing is durable.

use super::hub::{Hub, Mailbox};
use super::log::{Faults, Log};
use super::settings::Error;
use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::tcp::{AMQPUriTcpExt, AsyncTcpStream};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use netio::socket::Keepalive;
use rnis::feed::{LONGEST_MESSAGE, recording};
use rnis::{RadioReport, Record};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The exchange of reports.
const EXCHANGE: &str = "rni";
/// The longest time for one step with the broker.
const STEP: Duration = Duration::from_secs(5);
/// Tells when a broker's host is gone: during the handshake there are no heartbeats, and its time is not bounded.
const KEEPALIVE: Keepalive = Keepalive { silence: Duration::from_secs(10), interval: STEP, probes: 3 };
/// The waits between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Messages that the broker sends ahead, and messages that wait there for this consumer.
const PREFETCH: u16 = 256;
/// See [`PREFETCH`].
const QUEUE_LENGTH: i32 = 4096;

/// A broker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Broker {
    uri: AMQPUri,
}

impl Broker {
    /// Parses `amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]`.
    pub(super) fn parse(text: &str) -> Result<Broker, Error> {
        // The text may contain a password, so it is not repeated.
        let invalid = |why: &str| Error(format!("invalid AMQP URL: {why}"));
        let uri: AMQPUri = text.parse().map_err(|_| invalid("expected amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]"))?;
        if uri.scheme != AMQPScheme::AMQP {
            return Err(invalid("only amqp:// is supported; put a TLS proxy in front of the broker for amqps://"));
        }
        Ok(Broker { uri })
    }

    /// The broker without its password.
    pub(super) fn name(&self) -> String {
        format!("amqp://{}:{}", self.uri.authority.host, self.uri.authority.port)
    }

    async fn connect(&self, log: &Log) -> Result<(Connection, Channel), lapin::Error> {
        let properties = ConnectionProperties::default().with_connection_name("ranway rnis".into());
        let runtime = lapin::runtime::default_runtime()?;
        let mut opening = pin!(Connection::connector(
            self.uri.clone(),
            runtime,
            async |uri, runtime| {
                let stream = uri.connect_async(&runtime).await?;
                if let AsyncTcpStream::Plain(stream) = &stream {
                    KEEPALIVE.set(stream.get_ref())?;
                }
                Ok(stream)
            },
            properties,
        ));
        // Of an attempt that is given up, lapin keeps the thread and the socket: one waits for a broker that does not answer, until
        // it does or its host is gone.
        let connection = match timeout(STEP, &mut opening).await {
            Ok(opened) => opened?,
            Err(_) => {
                log.line(format_args!("{}: does not answer; waiting", self.name()));
                opening.await?
            }
        };
        let channel = within(connection.create_channel()).await?;
        let options = ExchangeDeclareOptions::default();
        within(channel.exchange_declare(EXCHANGE.into(), ExchangeKind::Topic, options, FieldTable::default())).await?;
        Ok((connection, channel))
    }

    /// Publishes reports until the future is dropped; reconnects when the broker goes away.
    pub(super) async fn publish(&self, mailbox: &Mailbox, log: &Log) {
        let mut wait = RETRY.0;
        let mut announced = false;
        loop {
            let result = match self.connect(log).await {
                Ok((_connection, channel)) => {
                    log.line(format_args!("publishing reports on {}", self.name()));
                    (wait, announced) = (RETRY.0, false);
                    publish_all(&channel, mailbox).await
                }
                Err(why) => why,
            };
            if !announced {
                log.line(format_args!("{}: {result}; trying again", self.name()));
                announced = true;
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }

    /// Takes in reports until the future is dropped; reconnects when the broker goes away.
    pub(super) async fn consume(&self, hub: &Hub, log: &Log) {
        let mut wait = RETRY.0;
        let mut announced = false;
        let mut faults = Faults::new(log.clone(), self.name());
        loop {
            let result = match self.connect(log).await {
                Ok((_connection, channel)) => {
                    log.line(format_args!("receiving reports from {}", self.name()));
                    (wait, announced) = (RETRY.0, false);
                    consume_all(&channel, hub, &mut faults).await
                }
                Err(why) => Err(why),
            };
            if !announced {
                let why = result.map_or_else(|why| why.to_string(), |()| "the broker ended the subscription".into());
                log.line(format_args!("{}: {why}; trying again", self.name()));
                announced = true;
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }
}

/// Bounds the time of a step.
async fn within<T>(step: impl Future<Output = Result<T, lapin::Error>>) -> Result<T, lapin::Error> {
    let timed_out =
        || lapin::Error::from(lapin::ErrorKind::IOError(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
    timeout(STEP, step).await.unwrap_or_else(|_| Err(timed_out()))
}

/// Publishes reports until the broker fails.
async fn publish_all(channel: &Channel, mailbox: &Mailbox) -> lapin::Error {
    loop {
        for report in mailbox.take().await.into_values() {
            let ttl = report.interval.as_millis().max(1).to_string();
            let properties = BasicProperties::default()
                .with_content_type("application/json".into())
                .with_delivery_mode(1)
                .with_expiration(ttl.into());
            let key = routing_key(&report);
            let body = recording::format_line(&Record::Report(report));
            let sent = channel.basic_publish(
                EXCHANGE.into(),
                key.into(),
                BasicPublishOptions::default(),
                body.as_bytes(),
                properties,
            );
            if let Err(why) = within(async { sent.await.map(drop) }).await {
                return why;
            }
        }
    }
}

/// Takes in reports until the broker fails or ends the subscription.
async fn consume_all(channel: &Channel, hub: &Hub, faults: &mut Faults) -> Result<(), lapin::Error> {
    let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(QUEUE_LENGTH));
    arguments.insert("x-overflow".into(), AMQPValue::LongString(LongString::from("drop-head")));
    let queue = within(channel.queue_declare("".into(), options, arguments)).await?;
    let name = queue.name().clone();
    let bind = QueueBindOptions::default();
    within(channel.queue_bind(name.clone(), EXCHANGE.into(), "rni.#".into(), bind, FieldTable::default())).await?;
    within(channel.basic_qos(PREFETCH, BasicQosOptions::default())).await?;
    let options = BasicConsumeOptions::default();
    let mut consumer = within(channel.basic_consume(name, "".into(), options, FieldTable::default())).await?;
    while let Some(delivery) = consumer.next().await {
        let delivery = delivery?;
        if delivery.data.len() > LONGEST_MESSAGE {
            faults.report(&format!("a message is longer than {LONGEST_MESSAGE} bytes"));
        } else {
            match recording::parse_line(&delivery.data) {
                Ok(record) => hub.feed_paced(record).await,
                Err(why) => faults.report(&why.to_string()),
            }
        }
        within(async { delivery.ack(BasicAckOptions::default()).await.map(drop) }).await?;
    }
    Ok(())
}

/// Returns the topic of a report.
fn routing_key(report: &RadioReport) -> String {
    let ue = match report.ue.address {
        Some(address) => address.to_string().replace(['.', ':'], "-"),
        None => format!("rnti-{}", report.ue.rnti),
    };
    format!("rni.{}.{ue}", report.cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_and_passwords_not_repeated() {
        let broker = Broker::parse("amqp://user:secret@host:5673/%2f").expect("it is valid");
        assert_eq!(broker.name(), "amqp://host:5673");
        for url in ["amqps://user:secret@host", "http://user:secret@host", "user:secret"] {
            let fault = Broker::parse(url).expect_err(url).0;
            assert!(!fault.contains("secret"), "{fault}");
        }
    }
}
