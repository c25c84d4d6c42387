//! Reports on an AMQP 0-9-1 broker.
//!
//! The publisher sends each report to the topic exchange [`session::EXCHANGE`] with the routing key `rni.CELL.UE`: CELL is the number of
//! the cell, UE the UE's address with `-` for `.` and `:` (which topics cannot contain), or `rnti-NUMBER` without one. A
//! message expires after the interval of its report, when the next one is due. While the broker is slow or away, the latest
//! report of each UE waits, and no other. Nothing is durable.
//!
//! The protocol is `rnis::amqp`'s, which interprets nothing of what a broker sends beyond what is needed. A session ends with the
//! first fault, and the next one begins after a wait. A session that panics ends like one that fails.

mod broker;
mod session;

pub use broker::{Broker, Credentials};

use super::faults::Faults;
use super::hub::Mailbox;
use super::intake::Intake;
use crate::log::Log;
use rnis::amqp::{Event, Role, ShortText};
use rnis::feed::{LONGEST_MESSAGE, recording};
use rnis::{RadioReport, Record};
use session::{Failure, Happened, Session};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The topics that a consumer takes.
const TOPICS: &str = "rni.#";
/// The waits between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Bytes of messages that are sent at once, at least, if so many wait.
const BATCH: usize = 64 << 10;

impl Broker {
    /// Publishes reports until the future is dropped; reconnects when the broker goes away.
    pub(super) async fn publish(&self, mailbox: &Arc<Mailbox>, log: &Log) {
        let open = || {
            let (broker, mailbox, log) = (self.clone(), mailbox.clone(), log.clone());
            async move {
                let mut session = Session::open(&broker, Role::Publish).await.map_err(Lost::Unopened)?;
                log.line(format_args!("publishing reports on {}", broker.name()));
                Err(Lost::Ended(publish_all(&mut session, &mailbox).await))
            }
        };
        self.again(open, log).await;
    }

    /// Takes in reports until the future is dropped; reconnects when the broker goes away.
    pub(super) async fn consume(&self, hub: &Intake, log: &Log) {
        let faults = Arc::new(tokio::sync::Mutex::new(hub.faults(log, self.name())));
        let open = || {
            let (broker, hub, log, faults) = (self.clone(), hub.clone(), log.clone(), faults.clone());
            async move {
                let mut session = Session::open(&broker, Role::Consume(TOPICS)).await.map_err(Lost::Unopened)?;
                log.line(format_args!("receiving reports from {}", broker.name()));
                let mut faults = faults.lock().await;
                Err(Lost::Ended(consume_all(&mut session, &hub, &mut faults).await))
            }
        };
        self.again(open, log).await;
    }

    /// Runs one session after the other. Failures to connect are told once until one succeeds; the waits in between become longer
    /// until a session lasts.
    async fn again<F>(&self, open: impl Fn() -> F, log: &Log)
    where
        F: Future<Output = Result<std::convert::Infallible, Lost>> + Send + 'static,
    {
        let mut wait = RETRY.0;
        let mut announced = false;
        loop {
            let begun = Instant::now();
            // In a task of its own, so that a panic ends the session only; the task ends with this future.
            let mut task = tokio::task::JoinSet::new();
            task.spawn(open());
            let (why, was_open) = match task.join_next().await {
                Some(Ok(Err(Lost::Unopened(why)))) => (why.to_string(), false),
                Some(Ok(Err(Lost::Ended(why)))) => (why.to_string(), true),
                _ => ("its session failed by an error of this program".to_owned(), true),
            };
            if was_open || !announced {
                log.line(format_args!("{}: {why}; trying again", self.name()));
                announced = true;
            }
            if begun.elapsed() > RETRY.1 {
                wait = RETRY.0;
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }
}

/// How a session was lost.
enum Lost {
    Unopened(Failure),
    Ended(Failure),
}

/// Publishes reports until the broker fails.
async fn publish_all(session: &mut Session, mailbox: &Mailbox) -> Failure {
    loop {
        let may_publish = session.client.may_publish();
        let reports = tokio::select! {
            reports = mailbox.take(), if may_publish => reports,
            happened = session.wait() => {
                match session.settle(happened).await {
                    Ok(()) => while let Some(event) = session.next() {
                        if let Err(why) = event {
                            return why;
                        }
                    },
                    Err(why) => return why,
                }
                continue;
            }
        };
        for report in reports.into_values() {
            let expires = Duration::from_nanos(report.interval.as_nanos());
            let key = routing_key(&report);
            let body = recording::format_line(&Record::Report(report));
            session.client.publish(&key, body.as_bytes(), expires);
            if session.client.output().len() >= BATCH
                && let Err(why) = session.flush().await
            {
                return why;
            }
        }
        if let Err(why) = session.flush().await {
            return why;
        }
    }
}

/// Takes in reports until the broker fails or ends the subscription.
async fn consume_all(session: &mut Session, hub: &Intake, faults: &mut Faults) -> Failure {
    loop {
        while let Some(event) = session.next() {
            match event {
                Ok(Event::Message(body)) => match recording::parse_line(&body) {
                    Ok(record) => hub.feed_paced(record).await,
                    Err(why) => faults.report(&why.to_string()),
                },
                Ok(Event::TooLong) => faults.report(&format!("a message is longer than {LONGEST_MESSAGE} bytes")),
                Ok(Event::Ready { .. }) => {}
                Err(why) => return why,
            }
        }
        if let Err(why) = session.flush().await {
            return why;
        }
        let happened: Happened = session.wait().await;
        if let Err(why) = session.settle(happened).await {
            return why;
        }
    }
}

/// Returns the topic of a report.
fn routing_key(report: &RadioReport) -> ShortText {
    let ue = match report.ue.address {
        Some(address) => address.to_string().replace(['.', ':'], "-"),
        None => format!("rnti-{}", report.ue.rnti),
    };
    // Numbers and an address are short.
    ShortText::new(&format!("rni.{}.{ue}", report.cell)).unwrap_or_default()
}
