//! What the parts of the service share: the state, the subscriptions, and who is to be told of what.

use super::callback::{CallbackPolicy, Target};
use super::counts::{Counters, Counts};
use super::faults::Losses;
use super::outbox::{Next, Outbox};
use super::settings::Limits;
use crate::clock::unix_now;
use crate::log::Log;
use crate::secret;
use crate::server::Site;
use rnis::mec::{Book, Delivery, Entry, Id, Kind, Notification, Refusal, Subscription};
use rnis::state::MOST_UES;
use rnis::{AddressMap, Network, RadioReport, Record, State};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio::time::{Instant, sleep};

/// Interval between checks for what has expired.
const TICK: Duration = Duration::from_millis(200);
/// Reports and events that a slow reader of the in-process feed may lag behind. Inputs wait for readers beyond half of it, so
/// one report of each UE never waits.
const FEED_LENGTH: usize = 2 * MOST_UES;
/// The longest time that inputs wait for readers of the in-process feed that have stopped reading.
const READER_TIMEOUT: Duration = Duration::from_secs(2);
/// Callbacks in progress at a time, in all and of one subscriber's host.
const MOST_CALLBACKS: usize = 256;
/// See [`MOST_CALLBACKS`].
const MOST_CALLBACKS_PER_OWNER: usize = 64;

/// The state and the subscriptions of a service, and its in-process feed.
#[derive(Debug)]
pub struct Hub {
    pub(super) network: Network,
    pub(super) policy: CallbackPolicy,
    pub(super) limits: Limits,
    pub(super) log: Log,
    inner: Mutex<Inner>,
    records: broadcast::Sender<Arc<Record>>,
    /// While the in-process feed is more than half full.
    congestion: Mutex<Option<Congestion>>,
    callbacks: Arc<Semaphore>,
    runtime: Handle,
    inputs: Mutex<Vec<Arc<Counts>>>,
    pub(super) counters: Arc<Counters>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    book: Book,
    outboxes: BTreeMap<Id, Arc<Outbox>>,
    /// The bearer tokens of subscriptions that were created with one.
    bearers: BTreeMap<Id, Bearer>,
    mailboxes: Vec<Arc<Mailbox>>,
    takers: Vec<Taker>,
    owners: BTreeMap<Site, Weak<Semaphore>>,
}

/// The token with which a client proves that it is the one that created a subscription.
#[derive(Clone)]
pub(super) struct Bearer(pub(super) String);

impl fmt::Debug for Bearer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Bearer(..)")
    }
}

impl PartialEq for Bearer {
    fn eq(&self, other: &Bearer) -> bool {
        secret::is_same(&self.0, &other.0)
    }
}

/// Who subscribes.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    pub(super) address: IpAddr,
    pub(super) bearer: Option<Bearer>,
}

/// A consumer that takes each report at once.
struct Taker(Box<dyn FnMut(&RadioReport) + Send>);

impl fmt::Debug for Taker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Taker")
    }
}

/// What inputs know of readers of the in-process feed that lag.
#[derive(Debug)]
struct Congestion {
    /// When the slowest reader was last seen to read.
    since: Instant,
    /// The fewest records that it has lagged behind.
    least: usize,
}

/// The latest report of each UE that a slow consumer has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    latest: Mutex<BTreeMap<(u64, u16), RadioReport>>,
    filled: Notify,
}

impl Mailbox {
    fn put(&self, report: &RadioReport) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (report.cell, report.ue.rnti);
        // As many as the state remembers; a consumer that is that slow loses the rest.
        if latest.len() < MOST_UES || latest.contains_key(&key) {
            latest.insert(key, report.clone());
        }
        drop(latest);
        self.filled.notify_one();
    }

    /// Waits for reports and takes them all.
    pub(super) async fn take(&self) -> BTreeMap<(u64, u16), RadioReport> {
        loop {
            let taken = std::mem::take(&mut *self.latest.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken;
            }
            self.filled.notified().await;
        }
    }
}

impl Hub {
    /// Creates a hub whose deliveries run on the current runtime.
    pub(super) fn new(
        network: Network,
        addresses: AddressMap,
        policy: CallbackPolicy,
        limits: Limits,
        log: Log,
    ) -> Arc<Hub> {
        let inner = Inner {
            state: State::new(addresses),
            book: Book::default(),
            outboxes: BTreeMap::new(),
            bearers: BTreeMap::new(),
            mailboxes: Vec::new(),
            takers: Vec::new(),
            owners: BTreeMap::new(),
        };
        Arc::new(Hub {
            network,
            policy,
            limits,
            log,
            inner: Mutex::new(inner),
            records: broadcast::channel(FEED_LENGTH).0,
            congestion: Mutex::new(None),
            callbacks: Arc::new(Semaphore::new(MOST_CALLBACKS)),
            runtime: Handle::current(),
            inputs: Mutex::default(),
            counters: Arc::default(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a record. Never waits for a consumer; may be called from any thread.
    pub fn feed(&self, record: Record) {
        let inner = &mut *self.inner();
        let accepted = inner.state.accept(record, unix_now());
        if let Some(record) = accepted.record {
            if let Record::Report(report) = &record {
                inner.mailboxes.iter().for_each(|mailbox| mailbox.put(report));
                inner.takers.iter_mut().for_each(|taker| (taker.0)(report));
            }
            // Nobody may be listening.
            let _ = self.records.send(Arc::new(record));
        }
        for occurrence in &accepted.occurrences {
            for (id, notification) in inner.book.matching(occurrence, &self.network) {
                if let Some(outbox) = inner.outboxes.get(&id) {
                    let dropped = outbox.push(text(&notification));
                    self.counters.dropped.fetch_add(u64::from(dropped), Relaxed);
                }
            }
        }
    }

    /// Takes in a record of an input, and waits while readers of the in-process feed are about to lose records. For readers that
    /// have stopped reading, it waits no longer than [`READER_TIMEOUT`], and again once they read.
    pub(super) async fn feed_paced(&self, record: Record) {
        self.feed(record);
        while self.must_wait() {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Adds an input, whose records are counted.
    pub(super) fn add_input(&self, name: &str) -> Arc<Counts> {
        let counts = Arc::new(Counts { name: name.to_owned(), ..Counts::default() });
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).push(counts.clone());
        counts
    }

    /// Returns the inputs.
    pub(super) fn inputs(&self) -> Vec<Arc<Counts>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn congestion(&self) -> MutexGuard<'_, Option<Congestion>> {
        self.congestion.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether readers of the in-process feed are about to lose records, and are still reading.
    fn must_wait(&self) -> bool {
        let mut congestion = self.congestion();
        let length = self.records.len();
        if length <= FEED_LENGTH / 2 {
            *congestion = None;
            return false;
        }
        let known = congestion.get_or_insert_with(|| Congestion { since: Instant::now(), least: length });
        if length < known.least {
            *known = Congestion { since: Instant::now(), least: length };
        }
        known.since.elapsed() < READER_TIMEOUT
    }

    /// Calls `take` with each report from now on, before [`Hub::feed`] returns, so that none is lost. It must not wait.
    pub(super) fn for_each_report(&self, take: impl FnMut(&RadioReport) + Send + 'static) {
        self.inner().takers.push(Taker(Box::new(take)));
    }

    /// Returns the in-process feed: each report and event from now on. A reader that lags more than 8192 of them behind loses
    /// the oldest.
    pub fn records(&self) -> broadcast::Receiver<Arc<Record>> {
        self.records.subscribe()
    }

    /// Calls `take` with each report and event from now on until it returns `false`. Losses are told.
    pub(super) fn for_each_record<F>(self: Arc<Hub>, mut take: F) -> impl Future<Output = ()> + Send
    where
        F: FnMut(&Record) -> bool + Send,
    {
        let mut records = self.records();
        let mut losses = Losses::new(self.log.clone(), "output".into());
        async move {
            loop {
                match records.recv().await {
                    Ok(next) if take(&next) => {}
                    Ok(_) | Err(RecvError::Closed) => return,
                    Err(RecvError::Lagged(lost)) => {
                        losses.add(lost);
                        // It reads again, so inputs may wait for it again.
                        *self.congestion() = None;
                    }
                }
            }
        }
    }

    /// Returns the latest report of the UE with an address.
    pub fn latest(&self, address: IpAddr) -> Option<RadioReport> {
        self.inner().state.latest(address).cloned()
    }

    /// Creates a mailbox, which receives each report from now on.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        self.inner().mailboxes.push(mailbox.clone());
        mailbox
    }

    /// Answers a query from the state.
    pub(super) fn answer<T>(&self, query: impl FnOnce(&State) -> T) -> T {
        query(&self.inner().state)
    }

    /// Reads the subscriptions.
    pub(super) fn with_book<T>(&self, read: impl FnOnce(&Book) -> T) -> T {
        read(&self.inner().book)
    }

    /// Adds a subscription, to be delivered to `target` or, without one, to a WebSocket.
    pub(super) fn subscribe(
        self: &Arc<Hub>,
        subscription: Subscription,
        target: Option<Target>,
        requester: &Requester,
        (id, link): (Id, String),
    ) -> Result<Entry, Refusal> {
        let now = unix_now();
        let inner = &mut *self.inner();
        let test = subscription.test;
        let delivery = if target.is_some() { Delivery::Callback } else { Delivery::WebSocket };
        let site = Site::of(requester.address);
        inner.book.create((id, link), subscription, delivery, &site.to_string(), now)?;
        let entry = inner.book.get(id).cloned().ok_or(Refusal::Unknown)?;
        let outbox = Arc::new(Outbox::default());
        if test {
            outbox.push(text(&Notification::test(&entry.this, now.into())));
        }
        inner.outboxes.insert(id, outbox.clone());
        if let Some(bearer) = &requester.bearer {
            inner.bearers.insert(id, bearer.clone());
        }
        if let Some(target) = target {
            self.deliver(inner, id, target, outbox, site);
        }
        Ok(entry)
    }

    /// Replaces a subscription; notifications that wait are delivered in the new way.
    pub(super) fn replace(
        self: &Arc<Hub>,
        id: Id,
        subscription: Subscription,
        target: Option<Target>,
        requester: &Requester,
    ) -> Result<Entry, Refusal> {
        let now = unix_now();
        let inner = &mut *self.inner();
        let test = subscription.test;
        let delivery = if target.is_some() { Delivery::Callback } else { Delivery::WebSocket };
        let was_websocket = inner.book.get(id).is_some_and(|entry| entry.delivery == Delivery::WebSocket);
        let entry = inner.book.replace(id, subscription, delivery, now)?.clone();
        let test = test.then(|| text(&Notification::test(&entry.this, now.into())));
        // A connected WebSocket stays.
        if was_websocket && target.is_none() {
            if let (Some(outbox), Some(test)) = (inner.outboxes.get(&id), test) {
                outbox.push(test);
            }
            return Ok(entry);
        }
        let outbox = Arc::new(Outbox::default());
        test.into_iter().for_each(|test| _ = outbox.push(test));
        if let Some(old) = inner.outboxes.insert(id, outbox.clone()) {
            old.take().into_iter().for_each(|notification| _ = outbox.push(notification));
            old.close();
        }
        if let Some(target) = target {
            self.deliver(inner, id, target, outbox, Site::of(requester.address));
        }
        Ok(entry)
    }

    /// Returns whether a client may see and change a subscription: one without a bearer token belongs to whoever knows its identifier.
    pub(super) fn may(&self, id: Id, bearer: Option<&Bearer>) -> bool {
        self.inner().bearers.get(&id).is_none_or(|own| Some(own) == bearer)
    }

    /// Returns the subscriptions that were created with a bearer token.
    pub(super) fn of_bearer(&self, bearer: &Bearer, kind: Option<Kind>) -> Vec<Entry> {
        let inner = self.inner();
        let own = inner.book.list(kind).filter(|(id, _)| inner.bearers.get(id) == Some(bearer));
        own.map(|(_, entry)| entry.clone()).collect()
    }

    /// Removes a subscription; nothing is delivered any more.
    pub(super) fn unsubscribe(&self, id: Id) -> bool {
        let inner = &mut *self.inner();
        inner.bearers.remove(&id);
        if let Some(outbox) = inner.outboxes.remove(&id) {
            outbox.close();
        }
        inner.book.remove(id).is_some()
    }

    /// Returns the notifications of a subscription over WebSocket.
    pub(super) fn websocket_outbox(&self, id: Id) -> Option<Arc<Outbox>> {
        let inner = self.inner();
        let over_websocket = inner.book.get(id).is_some_and(|entry| entry.delivery == Delivery::WebSocket);
        over_websocket.then(|| inner.outboxes.get(&id).cloned()).flatten()
    }

    /// Looks for what has expired, again and again.
    pub(super) async fn expire(self: Arc<Hub>) {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    /// Forgets silent UEs, and ends subscriptions that have expired after a last notification.
    fn tick(&self) {
        let now = unix_now();
        let inner = &mut *self.inner();
        inner.state.forget(now);
        for due in inner.book.due(now) {
            inner.bearers.remove(&due.id);
            if let Some(outbox) = inner.outboxes.remove(&due.id) {
                outbox.push(text(&due.notification));
                outbox.finish();
            }
        }
        inner.owners.retain(|_, semaphore| semaphore.strong_count() > 0);
    }

    /// Starts the task that posts the notifications of a subscription.
    fn deliver(self: &Arc<Hub>, inner: &mut Inner, id: Id, target: Target, outbox: Arc<Outbox>, site: Site) {
        let known = inner.owners.get(&site).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| Arc::new(Semaphore::new(MOST_CALLBACKS_PER_OWNER)));
        inner.owners.insert(site, Arc::downgrade(&own));
        let hub = Arc::downgrade(self);
        let (policy, limits, callbacks) = (self.policy.clone(), self.limits, self.callbacks.clone());
        let (log, counters) = (self.log.clone(), self.counters.clone());
        self.runtime.spawn(async move {
            let generation = outbox.take_over();
            let mut failed = 0;
            while let Next::Deliver(notification) = outbox.next(generation).await {
                let mut wait = limits.first_retry;
                let mut attempt = 1;
                let fault = loop {
                    let result = {
                        let permits = async { (own.acquire().await, callbacks.acquire().await) };
                        let permits = tokio::select! {
                            permits = permits => permits,
                            () = outbox.closed(generation) => return,
                        };
                        let (Ok(_own), Ok(_all)) = permits else { return };
                        target.post(notification.clone(), &policy, limits.callback_timeout).await
                    };
                    match result {
                        Ok(()) => break None,
                        Err(fault) if attempt >= limits.attempts => break Some(fault),
                        Err(_) => {}
                    }
                    attempt += 1;
                    // A removed subscription is not retried; one that has expired still is.
                    tokio::select! {
                        () = tokio::time::sleep(wait) => wait *= 2,
                        () = outbox.closed(generation) => return,
                    }
                };
                let Some(fault) = fault else {
                    counters.delivered.fetch_add(1, Relaxed);
                    failed = 0;
                    continue;
                };
                counters.undelivered.fetch_add(1, Relaxed);
                failed += 1;
                if failed == 1 {
                    log.line(format_args!("subscription of {site}: a notification was dropped: {fault}"));
                }
                if failed >= limits.most_failed {
                    log.line(format_args!(
                        "subscription of {site}: removed after {failed} notifications could not be delivered"
                    ));
                    counters.removed.fetch_add(1, Relaxed);
                    if let Some(hub) = hub.upgrade() {
                        hub.unsubscribe(id);
                    }
                    return;
                }
            }
        });
    }
}

fn text(notification: &Notification) -> String {
    // Notifications have text keys only, so serialisation cannot fail.
    serde_json::to_string(notification).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test(start_paused = true)]
    async fn inputs_wait_for_readers_unless_they_have_stopped_and_losses_are_told() {
        let (lines, taken) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let log = {
            let lines = lines.clone();
            Log::new(move |line| lines.lock().unwrap().push(line.to_owned()))
        };
        let (network, policy) = (Network::default(), CallbackPolicy::default());
        let hub = Hub::new(network, AddressMap::default(), policy, Limits::default(), log);
        let text =
            br#"{"time_us":1,"interval_us":1,"cell":1,"rnti":61,"n_prb":6,"slots":1,"acked_bits":0,"blocks":0,"failed":0}"#;
        let record = rnis::feed::recording::parse_line(text).expect("it can be read");
        let reading = {
            let taken = taken.clone();
            hub.clone().for_each_record(move |_| {
                taken.fetch_add(1, Relaxed);
                true
            })
        };

        // It does not read yet, and is waited for once.
        let start = Instant::now();
        for _ in 0..FEED_LENGTH + 100 {
            hub.feed_paced(record.clone()).await;
        }
        let waited = start.elapsed();
        assert!(waited >= READER_TIMEOUT && waited < READER_TIMEOUT + Duration::from_millis(10), "{waited:?}");

        // It reads whenever the input waits.
        tokio::spawn(reading);
        tokio::task::yield_now().await;
        for _ in 0..4 * FEED_LENGTH {
            hub.feed_paced(record.clone()).await;
        }
        sleep(Duration::from_millis(1)).await;
        assert_eq!(taken.load(Relaxed), 5 * FEED_LENGTH);
        let told = "output: 100 reports were lost: they came faster than they were taken";
        assert_eq!(*lines.lock().unwrap(), [told]);
    }
}
